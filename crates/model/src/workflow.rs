//! The types every spelling parses into: workflows, actions, services, macros.

use crate::Name;
use crate::condition::Condition;
use crate::diag::Span;
use crate::policy::{RetryPolicy, TimeoutPolicy};
use crate::quantity::{Cardinality, Resources};
use crate::template::Template;
use serde_json::Value;
use std::sync::Arc;

/// A workflow as submitted.
#[derive(Clone, Debug, Default)]
pub struct Workflow {
    /// Version of the workflow language, `4.7.0` by default.
    pub api: Name,
    /// A name for people.
    pub name: Option<String>,
    /// Chains of workflows with a higher priority are scheduled first.
    pub priority: i32,
    /// How often a whole process chain is tried.
    pub chain_retries: Option<RetryPolicy>,
    /// Declared variables.
    pub vars: Vec<Variable>,
    /// What to do.
    pub actions: Vec<Action>,
    /// Named results, shown at the end of a run and published under their file names.
    pub results: Vec<NamedResult>,
}

/// A variable: a constant if it has a value, else something an action produces.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name.
    pub id: Name,
    /// Its value, if it is a constant.
    pub value: Option<Value>,
    /// Where it stands.
    pub span: Span,
}

/// A result with a name.
#[derive(Clone, Debug)]
pub struct NamedResult {
    /// The name.
    pub name: Name,
    /// The variable that holds it.
    pub var: Name,
    /// Where it stands.
    pub span: Span,
}

/// One step of a workflow.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs a service.
    Execute(Box<Execute>),
    /// Repeats actions for each element of a list.
    For(Box<ForEach>),
    /// Inserts a macro.
    Include(Box<Include>),
    /// Takes the first of several values that is there.
    First(Box<First>),
}

/// Runs a service.
#[derive(Clone, Debug)]
pub struct Execute {
    /// Its name, unique in the workflow.
    pub id: Name,
    /// The service to run.
    pub service: Name,
    /// What goes in.
    pub inputs: Vec<Input>,
    /// What comes out.
    pub outputs: Vec<Output>,
    /// Actions that must have ended before.
    pub depends_on: Vec<Reference>,
    /// Everything that is rarely given.
    pub options: Option<Box<ExecuteOptions>>,
    /// Where it stands.
    pub span: Span,
}

/// The settings of an execute action that are rarely given. They override the service's.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// How often the task is tried.
    pub retries: Option<RetryPolicy>,
    /// Longest time without output.
    pub max_inactivity: Option<TimeoutPolicy>,
    /// Longest time of one attempt.
    pub max_runtime: Option<TimeoutPolicy>,
    /// Longest time of all attempts together.
    pub deadline: Option<TimeoutPolicy>,
    /// Runs only if this holds.
    pub when: Option<Condition>,
    /// What the task needs of an agent.
    pub resources: Option<Resources>,
    /// Environment variables.
    pub env: Vec<(Name, String)>,
    /// Whether the result may come from an earlier run.
    pub cache: Option<bool>,
    /// How many copies run at once.
    pub replicas: Option<u32>,
    /// It must not be started twice, whatever happens.
    pub exclusive: bool,
}

/// Repeats actions for each element of a list.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// Its name, unique in the workflow.
    pub id: Name,
    /// The list.
    pub input: VarRef,
    /// Holds the current element.
    pub enumerator: Variable,
    /// Further lists that are walked through side by side, each with its own enumerator.
    pub zip: Vec<(VarRef, Variable)>,
    /// What becomes of what the iterations yield, and whether they need each other.
    pub gather: Gather,
    /// Receive what the iterations yield.
    pub output: Vec<VarRef>,
    /// What is repeated.
    pub actions: Vec<Action>,
    /// The variables each iteration adds to the outputs, in the same order.
    pub yield_to_output: Vec<VarRef>,
    /// The variable each iteration adds to the input, for recursion.
    pub yield_to_input: Option<VarRef>,
    /// Actions that must have ended before.
    pub depends_on: Vec<Reference>,
    /// Runs only if this holds.
    pub when: Option<Condition>,
    /// Where it stands.
    pub span: Span,
}

/// What becomes of what the iterations of a for-each action yield.
#[derive(Clone, Debug, Default)]
pub enum Gather {
    /// It is collected. A list that is yielded is taken apart.
    #[default]
    Join,
    /// It is collected. A list that is yielded is one element.
    Nest,
    /// It is handed to the next iteration. The output is what the last one yields.
    Carry {
        /// What is handed on, one for each output.
        carried: Vec<Carried>,
        /// The next iteration begins only if this holds.
        condition: Option<Condition>,
    },
    /// The elements are paired, then what came of the pairs, until one is left. An odd last one waits for the next round.
    Pairs {
        /// Holds the second of a pair, as the enumerator holds the first.
        right: Variable,
    },
}

/// Something that an iteration gets from the one before it.
#[derive(Clone, Debug)]
pub struct Carried {
    /// Holds it.
    pub enumerator: Variable,
    /// What the first iteration gets.
    pub init: VarRef,
}

/// Takes the first of several values that is there: not skipped.
#[derive(Clone, Debug)]
pub struct First {
    /// Its name, unique in the workflow.
    pub id: Name,
    /// The values, in the order of preference.
    pub inputs: Vec<VarRef>,
    /// Receives the value.
    pub output: VarRef,
    /// Actions that must have ended before.
    pub depends_on: Vec<Reference>,
    /// Where it stands.
    pub span: Span,
}

/// Inserts a macro.
#[derive(Clone, Debug)]
pub struct Include {
    /// Its name, unique in the workflow.
    pub id: Name,
    /// The macro to insert.
    pub macro_id: Name,
    /// What goes in.
    pub inputs: Vec<Input>,
    /// What comes out.
    pub outputs: Vec<Output>,
    /// Actions that must have ended before.
    pub depends_on: Vec<Reference>,
    /// Everything in it runs only if this holds.
    pub when: Option<Condition>,
    /// Where it stands.
    pub span: Span,
}

/// The name of an action, as written in `dependsOn`.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The action's name.
    pub id: Name,
    /// Where it stands.
    pub span: Span,
}

/// A mention of a variable.
#[derive(Clone, Debug)]
pub struct VarRef {
    /// The variable's name.
    pub id: Name,
    /// Where it stands.
    pub span: Span,
}

/// An input of an action.
#[derive(Clone, Debug)]
pub struct Input {
    /// The parameter.
    pub id: Name,
    /// Where the value comes from.
    pub source: InputSource,
    /// Where it stands.
    pub span: Span,
}

/// Where the value of an input comes from.
#[derive(Clone, Debug)]
pub enum InputSource {
    /// From a variable.
    Var(Name),
    /// Given right here.
    Value(Value),
}

/// An output of an action.
#[derive(Clone, Debug)]
pub struct Output {
    /// The parameter.
    pub id: Name,
    /// The variable that receives the value.
    pub var: Name,
    /// A directory, or the beginning of the file name.
    pub prefix: Option<Box<str>>,
    /// Whether the value is kept as a result of the workflow.
    pub store: bool,
    /// The exact file name, in a directory of its own; may use the action's inputs.
    pub name: Option<Arc<Template>>,
    /// Not the file counts but what is in it. For actions with `run`; services say it of their parameters.
    pub value: bool,
    /// Where it stands.
    pub span: Span,
}

/// A program that actions can run.
#[derive(Clone, Debug)]
pub struct Service {
    /// Its name in workflows.
    pub id: Name,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The program.
    pub path: Name,
    /// How it is started: `other` is a local process.
    pub runtime: Name,
    /// A shell command in place of `path` and arguments.
    pub script: Option<Arc<Template>>,
    /// What goes in and comes out, in the order of the command line.
    pub parameters: Vec<ServiceParameter>,
    /// Arguments for the runtime.
    pub runtime_args: Vec<RuntimeArgument>,
    /// What an agent must offer.
    pub required_capabilities: Vec<Name>,
    /// What it needs of an agent.
    pub resources: Option<Resources>,
    /// Environment variables.
    pub env: Vec<(Name, String)>,
    /// How often a task is tried.
    pub retries: Option<RetryPolicy>,
    /// Longest time without output.
    pub max_inactivity: Option<TimeoutPolicy>,
    /// Longest time of one attempt.
    pub max_runtime: Option<TimeoutPolicy>,
    /// Longest time of all attempts together.
    pub deadline: Option<TimeoutPolicy>,
    /// Whether results may come from an earlier run.
    pub cache: bool,
    /// The system package that has the program, named when it is missing.
    pub package: Option<Name>,
    /// A task must not be started twice, whatever happens.
    pub exclusive: bool,
    /// Where it stands.
    pub span: Span,
}

/// Whether a parameter goes in or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Goes in.
    Input,
    /// Comes out.
    Output,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Direction::Input => "input",
            Direction::Output => "output",
        })
    }
}

/// A parameter of a service.
#[derive(Clone, Debug)]
pub struct ServiceParameter {
    /// Its name in actions.
    pub id: Name,
    /// A name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// In or out.
    pub direction: Direction,
    /// How often it may be given.
    pub cardinality: Cardinality,
    /// `string`, `integer`, `float`, `boolean`, `directory`, or any other word.
    pub data_type: Name,
    /// The value if none is given.
    pub default: Option<Value>,
    /// Appended to generated file names.
    pub file_suffix: Option<Name>,
    /// Stands before the value on the command line.
    pub label: Option<Name>,
}

impl ServiceParameter {
    /// Whether the values are directories.
    pub fn is_directory(&self) -> bool {
        self.data_type == DIRECTORY
    }
}

/// The data type of directories.
pub const DIRECTORY: &str = "directory";

/// The data type of outputs of which not the file counts but what is in it: a number, a word.
pub const VALUE: &str = "value";

/// An argument for a service's runtime.
#[derive(Clone, Debug)]
pub struct RuntimeArgument {
    /// Its name.
    pub id: Name,
    /// Its type.
    pub data_type: Name,
    /// Stands before the value.
    pub label: Option<Name>,
    /// The value.
    pub value: Option<String>,
}

/// A sequence of actions that workflows can include.
#[derive(Clone, Debug)]
pub struct Macro {
    /// Its name in include actions.
    pub id: Name,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What goes in and comes out.
    pub parameters: Vec<MacroParameter>,
    /// Its own variables.
    pub vars: Vec<Variable>,
    /// What it does.
    pub actions: Vec<Action>,
    /// Where it stands.
    pub span: Span,
}

/// A parameter of a macro.
#[derive(Clone, Debug)]
pub struct MacroParameter {
    /// Its name.
    pub id: Name,
    /// In or out.
    pub direction: Direction,
    /// The value if none is given.
    pub default: Option<Value>,
    /// Where it stands.
    pub span: Span,
}

impl Action {
    /// The action's name.
    pub fn id(&self) -> &Name {
        match self {
            Action::Execute(a) => &a.id,
            Action::For(a) => &a.id,
            Action::Include(a) => &a.id,
            Action::First(a) => &a.id,
        }
    }

    /// The actions that must have ended before.
    pub fn depends_on(&self) -> &[Reference] {
        match self {
            Action::Execute(a) => &a.depends_on,
            Action::For(a) => &a.depends_on,
            Action::Include(a) => &a.depends_on,
            Action::First(a) => &a.depends_on,
        }
    }

    /// Where the action stands.
    pub fn span(&self) -> Span {
        match self {
            Action::Execute(a) => a.span,
            Action::For(a) => a.span,
            Action::Include(a) => a.span,
            Action::First(a) => a.span,
        }
    }

    /// What the action produces: outputs, or the output of a for-each action.
    pub fn output_vars(&self) -> impl Iterator<Item = (&Name, Span)> {
        let (outputs, collected): (&[Output], &[VarRef]) = match self {
            Action::Execute(a) => (&a.outputs, &[]),
            Action::Include(a) => (&a.outputs, &[]),
            Action::For(a) => (&[], &a.output),
            Action::First(a) => (&[], std::slice::from_ref(&a.output)),
        };
        outputs.iter().map(|o| (&o.var, o.span)).chain(collected.iter().map(|v| (&v.id, v.span)))
    }
}

impl ForEach {
    /// The lists that are walked through side by side, each with its enumerator.
    pub fn lists(&self) -> impl Iterator<Item = (&VarRef, &Variable)> {
        std::iter::once((&self.input, &self.enumerator)).chain(self.zip.iter().map(|(v, e)| (v, e)))
    }

    /// What iterations hand to each other.
    pub fn carried(&self) -> &[Carried] {
        if let Gather::Carry { carried, .. } = &self.gather { carried } else { &[] }
    }

    /// The variables it reads: lists, and what the first iteration gets.
    pub fn reads(&self) -> impl Iterator<Item = &VarRef> {
        self.lists().map(|(list, _)| list).chain(self.carried().iter().map(|c| &c.init))
    }

    /// The variables that each iteration has: elements, what is handed on, the second of a pair.
    pub fn enumerators(&self) -> impl Iterator<Item = &Variable> {
        let right = if let Gather::Pairs { right } = &self.gather { Some(right) } else { None };
        let carried = self.carried().iter().map(|c| &c.enumerator);
        self.lists().map(|(_, e)| e).chain(carried).chain(right)
    }
}

impl Execute {
    /// The rarely given settings, or their defaults.
    pub fn options(&self) -> &ExecuteOptions {
        static NONE: std::sync::LazyLock<ExecuteOptions> = std::sync::LazyLock::new(ExecuteOptions::default);
        self.options.as_deref().unwrap_or(&NONE)
    }
}

/// The text of a plain value as it stands on a command line.
pub fn value_to_text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
