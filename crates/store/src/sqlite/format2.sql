-- What several instances need that share work.
ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN controller TEXT;

ALTER TABLE chain ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chain ADD COLUMN losses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chain ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
DROP INDEX chain_registered;
CREATE INDEX chain_registered ON chain (class, rank DESC, id) WHERE state = 0;

CREATE TABLE instance (
    id TEXT PRIMARY KEY,
    roles TEXT NOT NULL,
    host TEXT NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE duty (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE agent (
    id TEXT PRIMARY KEY,
    incarnation INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    resources TEXT NOT NULL,
    scheduler TEXT,
    joined INTEGER NOT NULL,
    seen INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE machine (
    id TEXT PRIMARY KEY,
    setup TEXT NOT NULL,
    state TEXT NOT NULL,
    handle TEXT,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    reason TEXT
) WITHOUT ROWID;

CREATE TABLE token (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    hash TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER
) WITHOUT ROWID;
