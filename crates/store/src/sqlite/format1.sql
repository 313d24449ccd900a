CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    definition BLOB NOT NULL,
    state INTEGER NOT NULL,
    created INTEGER NOT NULL,
    started INTEGER,
    ended INTEGER,
    error TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    results TEXT,
    tasks INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0
);

-- Required capabilities and resources. There are few of them, however many chains there are.
CREATE TABLE class (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);

-- What changes about a chain. Rows are small so that changing one touches little.
-- The id is run * 2^32 + number within the run.
CREATE TABLE chain (
    id INTEGER PRIMARY KEY,
    class INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    not_before INTEGER NOT NULL DEFAULT 0,
    agent TEXT,
    started INTEGER,
    ended INTEGER
);
CREATE INDEX chain_registered ON chain (class, priority DESC, id) WHERE state = 0;

-- What never changes about a chain.
CREATE TABLE payload (
    id INTEGER PRIMARY KEY,
    chain BLOB NOT NULL
);

-- What came of a chain, and when it was used to plan more: as which result of the run, after how many
-- chains. Replaying results in this order rebuilds a planner.
CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    result BLOB NOT NULL,
    number INTEGER,
    after_chains INTEGER
);

CREATE TABLE failed_attempt (
    id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    agent TEXT,
    started INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (id, attempt)
) WITHOUT ROWID;

-- Chains by class and state, changed in the same transaction as the chains.
CREATE TABLE class_count (
    run INTEGER NOT NULL,
    class INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (run, class, state)
) WITHOUT ROWID;
