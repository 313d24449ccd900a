-- Compositions: who has which at the moment, their history, and their workflows in the tables of Fei, Lu and Zhang
-- (Figure 2), each with the composition as its first column.

CREATE TABLE composition (
    id text PRIMARY KEY,
    name text NOT NULL,
    creator text NOT NULL,
    created bigint NOT NULL,
    -- The last operation, and the largest number a lock has had.
    seq bigint NOT NULL,
    last_number bigint NOT NULL,
    published text,
    -- The instance that has it until then, and how often it has changed hands.
    owner text,
    until bigint NOT NULL,
    term bigint NOT NULL
);

CREATE TABLE operation (
    composition text NOT NULL,
    seq bigint NOT NULL,
    operation_json text NOT NULL,
    PRIMARY KEY (composition, seq)
);

CREATE TABLE named_version (
    composition text NOT NULL,
    name text NOT NULL,
    seq bigint NOT NULL,
    version_json text NOT NULL,
    composition_json text NOT NULL,
    PRIMARY KEY (composition, name)
);

CREATE TABLE lock_event (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    composition text NOT NULL,
    event_json text NOT NULL
);
CREATE INDEX lock_event_composition ON lock_event (composition, id);

CREATE TABLE workflow (
    composition text NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    body_kind text NOT NULL,
    PRIMARY KEY (composition, id)
);

CREATE TABLE input_port (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    id text NOT NULL,
    pos bigint NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    PRIMARY KEY (composition, workflow_id, id)
);

CREATE TABLE output_port (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    id text NOT NULL,
    pos bigint NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    PRIMARY KEY (composition, workflow_id, id)
);

CREATE TABLE task_body (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    task_json text NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE task_input_map (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    port_id text NOT NULL,
    task_input text NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
);

CREATE TABLE task_output_map (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    port_id text NOT NULL,
    output_json text NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
);

CREATE TABLE uconstruct_body (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    kind text NOT NULL,
    base_workflow_id text NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE map (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    port_id text NOT NULL,
    pos bigint NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
);

CREATE TABLE reduce (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    acc_port text NOT NULL,
    elem_port text NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE tree (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    left_port text NOT NULL,
    right_port text NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE conditional (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    predicate text NOT NULL,
    else_workflow_id text NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE loop (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    predicate text NOT NULL,
    max_iter bigint NOT NULL,
    PRIMARY KEY (composition, workflow_id)
);

CREATE TABLE loop_feedback (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    out_port text NOT NULL,
    in_port text NOT NULL,
    PRIMARY KEY (composition, workflow_id, out_port)
);

CREATE TABLE curry (
    composition text NOT NULL,
    workflow_id text NOT NULL,
    port_id text NOT NULL,
    value_json text NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
);

CREATE TABLE node_workflow (
    composition text NOT NULL,
    graph_id text NOT NULL,
    id text NOT NULL,
    workflow_id text NOT NULL,
    label text NOT NULL,
    after_json text NOT NULL,
    x double precision NOT NULL,
    y double precision NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
);

CREATE TABLE data_link (
    composition text NOT NULL,
    graph_id text NOT NULL,
    id text NOT NULL,
    from_node text NOT NULL,
    from_port text NOT NULL,
    to_node text NOT NULL,
    to_port text NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
);

CREATE TABLE graph_input_map (
    composition text NOT NULL,
    graph_id text NOT NULL,
    id text NOT NULL,
    port_id text NOT NULL,
    node_id text NOT NULL,
    node_port text NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
);

CREATE TABLE graph_output_map (
    composition text NOT NULL,
    graph_id text NOT NULL,
    id text NOT NULL,
    node_id text NOT NULL,
    node_port text NOT NULL,
    port_id text NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
);

CREATE TABLE root_value (
    composition text NOT NULL,
    port_id text NOT NULL,
    value_json text NOT NULL,
    PRIMARY KEY (composition, port_id)
);

CREATE TABLE composition_setting (
    composition text NOT NULL,
    name text NOT NULL,
    value_json text NOT NULL,
    PRIMARY KEY (composition, name)
);
