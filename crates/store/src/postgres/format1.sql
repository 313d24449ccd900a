CREATE TABLE run (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    source text NOT NULL,
    fingerprint text NOT NULL,
    definition bytea NOT NULL,
    state bigint NOT NULL,
    created bigint NOT NULL,
    started bigint,
    ended bigint,
    error text,
    cancel_requested boolean NOT NULL DEFAULT false,
    results text,
    tasks bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    priority integer NOT NULL DEFAULT 0,
    held boolean NOT NULL DEFAULT false,
    controller text
);

CREATE INDEX run_stopped ON run (id) WHERE held OR cancel_requested;

-- Required capabilities and resources. There are few of them, however many chains there are.
CREATE TABLE class (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE
);

-- What changes about a chain. The id is run * 2^32 + number within the run.
CREATE TABLE chain (
    id bigint PRIMARY KEY,
    not_before bigint NOT NULL DEFAULT 0,
    rank bigint NOT NULL,
    started bigint,
    ended bigint,
    class integer NOT NULL,
    priority integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    losses integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    state smallint NOT NULL,
    agent text
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX chain_registered ON chain (class, rank DESC, id) WHERE state = 0;
CREATE INDEX chain_running ON chain (agent) WHERE state = 1;
CREATE INDEX chain_paused ON chain (not_before) WHERE state = 2;

-- What never changes about a chain.
CREATE TABLE payload (
    id bigint PRIMARY KEY,
    chain bytea NOT NULL
);

-- What came of a chain, and when it was used to plan more: as which result of the run, after how many
-- chains. Replaying results in this order rebuilds a planner.
CREATE TABLE result (
    id bigint PRIMARY KEY,
    number bigint,
    after_chains bigint,
    result bytea NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX result_unused ON result (id) WHERE number IS NULL;

CREATE TABLE failed_attempt (
    id bigint NOT NULL,
    attempt integer NOT NULL,
    agent text,
    started bigint NOT NULL,
    ended bigint NOT NULL,
    error text NOT NULL,
    PRIMARY KEY (id, attempt)
);

-- Chains by class and state: the sum of changes. Each transaction adds its own and nobody waits for
-- anybody's lock; now and then the changes of a run are folded into one row each.
CREATE TABLE class_count (
    run bigint NOT NULL,
    class integer NOT NULL,
    state smallint NOT NULL,
    count bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX class_count_run ON class_count (run);

CREATE TABLE instance (
    id text PRIMARY KEY,
    roles text NOT NULL,
    host text NOT NULL,
    since bigint NOT NULL,
    until bigint NOT NULL
);

CREATE TABLE duty (
    name text PRIMARY KEY,
    holder text NOT NULL,
    until bigint NOT NULL
);

CREATE TABLE agent (
    id text PRIMARY KEY,
    incarnation bigint NOT NULL,
    capabilities text NOT NULL,
    resources text NOT NULL,
    scheduler text,
    joined bigint NOT NULL,
    seen bigint NOT NULL
);

CREATE TABLE machine (
    id text PRIMARY KEY,
    setup text NOT NULL,
    state text NOT NULL,
    handle text,
    created bigint NOT NULL,
    changed bigint NOT NULL,
    reason text
);

CREATE TABLE token (
    name text PRIMARY KEY,
    role text NOT NULL,
    hash text NOT NULL,
    created bigint NOT NULL,
    expires bigint
);
