-- Compositions: who has which at the moment, their history, and their workflows in the tables of Fei, Lu and Zhang
-- (Figure 2), each with the composition as its first column.

CREATE TABLE composition (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    creator TEXT NOT NULL,
    created INTEGER NOT NULL,
    -- The last operation, and the largest number a lock has had.
    seq INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    published TEXT,
    -- The instance that has it until then, and how often it has changed hands.
    owner TEXT,
    until INTEGER NOT NULL,
    term INTEGER NOT NULL
);

CREATE TABLE operation (
    composition TEXT NOT NULL,
    seq INTEGER NOT NULL,
    operation_json TEXT NOT NULL,
    PRIMARY KEY (composition, seq)
) WITHOUT ROWID;

CREATE TABLE named_version (
    composition TEXT NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    version_json TEXT NOT NULL,
    composition_json TEXT NOT NULL,
    PRIMARY KEY (composition, name)
) WITHOUT ROWID;

CREATE TABLE lock_event (
    id INTEGER PRIMARY KEY,
    composition TEXT NOT NULL,
    event_json TEXT NOT NULL
);
CREATE INDEX lock_event_composition ON lock_event (composition, id);

CREATE TABLE workflow (
    composition TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    body_kind TEXT NOT NULL,
    PRIMARY KEY (composition, id)
) WITHOUT ROWID;

CREATE TABLE input_port (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    id TEXT NOT NULL,
    pos INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, id)
) WITHOUT ROWID;

CREATE TABLE output_port (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    id TEXT NOT NULL,
    pos INTEGER NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, id)
) WITHOUT ROWID;

CREATE TABLE task_body (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    task_json TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE task_input_map (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    port_id TEXT NOT NULL,
    task_input TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
) WITHOUT ROWID;

CREATE TABLE task_output_map (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    port_id TEXT NOT NULL,
    output_json TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
) WITHOUT ROWID;

CREATE TABLE uconstruct_body (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    base_workflow_id TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE map (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    port_id TEXT NOT NULL,
    pos INTEGER NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
) WITHOUT ROWID;

CREATE TABLE reduce (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    acc_port TEXT NOT NULL,
    elem_port TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE tree (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    left_port TEXT NOT NULL,
    right_port TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE conditional (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    predicate TEXT NOT NULL,
    else_workflow_id TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE loop (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    predicate TEXT NOT NULL,
    max_iter INTEGER NOT NULL,
    PRIMARY KEY (composition, workflow_id)
) WITHOUT ROWID;

CREATE TABLE loop_feedback (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    out_port TEXT NOT NULL,
    in_port TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, out_port)
) WITHOUT ROWID;

CREATE TABLE curry (
    composition TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    port_id TEXT NOT NULL,
    value_json TEXT NOT NULL,
    PRIMARY KEY (composition, workflow_id, port_id)
) WITHOUT ROWID;

CREATE TABLE node_workflow (
    composition TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    label TEXT NOT NULL,
    after_json TEXT NOT NULL,
    x REAL NOT NULL,
    y REAL NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
) WITHOUT ROWID;

CREATE TABLE data_link (
    composition TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    id TEXT NOT NULL,
    from_node TEXT NOT NULL,
    from_port TEXT NOT NULL,
    to_node TEXT NOT NULL,
    to_port TEXT NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
) WITHOUT ROWID;

CREATE TABLE graph_input_map (
    composition TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    id TEXT NOT NULL,
    port_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    node_port TEXT NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
) WITHOUT ROWID;

CREATE TABLE graph_output_map (
    composition TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    node_port TEXT NOT NULL,
    port_id TEXT NOT NULL,
    PRIMARY KEY (composition, graph_id, id)
) WITHOUT ROWID;

CREATE TABLE root_value (
    composition TEXT NOT NULL,
    port_id TEXT NOT NULL,
    value_json TEXT NOT NULL,
    PRIMARY KEY (composition, port_id)
) WITHOUT ROWID;

CREATE TABLE composition_setting (
    composition TEXT NOT NULL,
    name TEXT NOT NULL,
    value_json TEXT NOT NULL,
    PRIMARY KEY (composition, name)
) WITHOUT ROWID;
