//! What is composed, whether it is right, and what it means.

mod adopt;
mod check;
mod compile;
mod composition;
mod document;
mod load;
mod tables;
mod types;

pub use adopt::adopt;
pub use check::{Flaw, check, check_workflow};
pub use compile::{Compiled, compile};
pub use composition::{
    Body, Composition, Construct, End, Graph, How, Interface, Link, LinkId, Node, NodeId, Port, PortId, Task,
    TaskOutput, Workflow, WorkflowId,
};
pub use document::{is_composition, write};
pub use load::{is_composition_text, load, load_text, parse_composition, read_composition, workflow_file};
pub use tables::{
    Cell, Kind, Row, RowChange, TABLES, TableDefinition, from_rows, row_changes, rows, workflow_changes,
};
pub use types::Type;
