-- Chains that several agents execute, and agents that have files of their own.

-- When the attempt that ended a chain began what, as JSON.
ALTER TABLE chain ADD COLUMN history text;
-- Where an agent serves the files that it has, as JSON.
ALTER TABLE agent ADD COLUMN data text;

-- What came of a failure is forgotten when the chain is tried again. What came of a success stays, even if the chain
-- is executed once more.
ALTER TABLE result ADD COLUMN failed boolean NOT NULL DEFAULT false;
UPDATE result r SET failed = true FROM chain c WHERE c.id = r.id AND c.state IN (4, 5);
DELETE FROM result r USING chain c WHERE c.id = r.id AND c.state IN (0, 1, 2);

-- Attempts that go on although a newer one was started; that one is in the row of the chain. Only chains that are
-- running have any. Whoever changes them has locked the chain before.
CREATE TABLE copy (
    id bigint NOT NULL,
    started bigint,
    attempt integer NOT NULL,
    agent text NOT NULL,
    PRIMARY KEY (id, attempt)
);
CREATE INDEX copy_agent ON copy (agent);

-- The chain is its number within the run; NULL if the file came with the run. Names are in the order of their bytes,
-- as everywhere in Catena.
CREATE TABLE file (
    run bigint NOT NULL,
    chain bigint,
    name text COLLATE "C" NOT NULL,
    artifact text NOT NULL,
    PRIMARY KEY (run, name)
);

CREATE TABLE holder (
    content bytea NOT NULL,
    agent text COLLATE "C" NOT NULL,
    kept boolean NOT NULL,
    PRIMARY KEY (content, agent)
);
CREATE INDEX holder_agent ON holder (agent);

CREATE TABLE home (
    id text COLLATE "C" PRIMARY KEY,
    address text NOT NULL
);
