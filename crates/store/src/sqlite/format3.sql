-- Chains that several agents execute, and agents that have files of their own.

-- When the attempt that ended a chain began what, as JSON.
ALTER TABLE chain ADD COLUMN history TEXT;
-- Where an agent serves the files that it has, as JSON.
ALTER TABLE agent ADD COLUMN data TEXT;

-- What came of a failure is forgotten when the chain is tried again. What came of a success stays, even if the chain
-- is executed once more.
ALTER TABLE result ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
UPDATE result SET failed = 1 WHERE id IN (SELECT id FROM chain WHERE state IN (4, 5));
DELETE FROM result WHERE id IN (SELECT id FROM chain WHERE state IN (0, 1, 2));

-- Attempts that go on although a newer one was started; that one is in the row of the chain. Only chains that are
-- running have any.
CREATE TABLE copy (
    id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    agent TEXT NOT NULL,
    started INTEGER,
    PRIMARY KEY (id, attempt)
) WITHOUT ROWID;
CREATE INDEX copy_agent ON copy (agent);

-- The chain is its number within the run; NULL if the file came with the run.
CREATE TABLE file (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    chain INTEGER,
    artifact TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE holder (
    content BLOB NOT NULL,
    agent TEXT NOT NULL,
    kept INTEGER NOT NULL,
    PRIMARY KEY (content, agent)
) WITHOUT ROWID;
CREATE INDEX holder_agent ON holder (agent);

CREATE TABLE home (
    id TEXT PRIMARY KEY,
    address TEXT NOT NULL
) WITHOUT ROWID;
