-- The last number that was given out. One that was, is not given out again, also if what had it is gone.
CREATE TABLE number (
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO number (name, last) SELECT 'run', coalesce(max(id), 0) FROM run;
