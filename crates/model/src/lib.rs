//! What a workflow is: types, the YAML language in two spellings, services, validation with positions.
//!
//! - [`load`] reads a workflow with its services and macros and reports everything that is wrong.
//! - [`Workflow`] and its parts are what both spellings, all importers and the workbench produce.
//! - [`expand_macros`] replaces include actions; [`validate_workflow`] checks the result of a load.
//! - [`dagman`] reads DAGMan files; [`import`] the shapes of other systems' workflows.
//! - [`chain`] has process chains, the unit that is scheduled, stored and executed; [`content`] names files by what is
//!   in them.

pub mod chain;
mod command;
mod condition;
pub mod content;
mod convert;
pub mod dagman;
mod diag;
mod document;
mod expand;
mod files;
pub mod import;
mod library;
mod long;
mod policy;
mod quantity;
mod read;
mod schema;
mod short;
mod template;
mod time;
mod validate;
mod workflow;
mod yaml;

/// A name in a workflow: cheap to copy, short ones without allocation.
pub type Name = smol_str::SmolStr;

pub use condition::Condition;
pub use convert::{to_long_form, to_long_value, to_yaml};
pub use diag::{Diagnostic, Diagnostics, Severity, Source, Sources, Span, nearest};
pub use document::{DocumentKind, LoadOptions, Loaded, WORKFLOW_FILES, load, load_text, read_text};
pub use expand::expand_macros;
pub use library::Library;
pub use policy::{ExitRule, RetryPolicy, TimeoutPolicy};
pub use quantity::{Bytes, Cardinality, Resources, parse_bytes, parse_duration};
pub use schema::json_schema;
pub use serde_json::Value;
pub use template::{Field, Insert, Part, Template, shell_quote};
pub use time::moment;
pub use validate::{validate_macro, validate_workflow};
pub use workflow::{
    Action, Carried, DIRECTORY, Direction, Execute, ExecuteOptions, First, ForEach, Gather, Include, Input,
    InputSource, Macro, MacroParameter, NamedResult, Output, Reference, RuntimeArgument, Service,
    ServiceParameter, VALUE, VarRef, Variable, Workflow, value_to_text,
};
pub use yaml::{Data, Node, parse as parse_yaml};
