//! The DAGMan language of HTCondor: which jobs there are, and which wait for which.
//!
//! Everything of the current language is read, with its place. Splices and included files are taken in, so that
//! what comes out is one flat list of nodes; a node of a splice `S` is called `S+node`, as DAGMan calls it.
//! Paths are relative to the directory of the file, as with `condor_submit_dag -usedagdir`.

mod assemble;
mod instrument;
mod lex;
mod parse;
mod submit;

use crate::Name;
use crate::diag::{Diagnostics, Sources, Span};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use instrument::{PriorityMethod, has_own_priority, prioritised_dag, prioritised_submit};
pub use submit::{GetEnv, Submission, SubmitContext, SubmitJob, read_submit};

/// A DAG file with everything it takes in.
#[derive(Debug)]
pub struct LoadedDag {
    /// What was read, as far as it could be.
    pub dag: DagFile,
    /// Everything that is wrong.
    pub diags: Diagnostics,
    /// The texts.
    pub sources: Sources,
}

/// What a DAG file says.
#[derive(Debug, Default)]
pub struct DagFile {
    /// Where it is.
    pub path: PathBuf,
    /// All nodes in the order of their definition.
    pub nodes: Vec<DagNode>,
    /// Which node waits for which, each once.
    pub arcs: Vec<DagArc>,
    /// How many splices were taken in.
    pub splices: usize,
    /// Submit descriptions with a name, as text.
    pub descriptions: BTreeMap<Name, String>,
    /// How many jobs of a category may be in the queue at a time.
    pub categories: BTreeMap<Name, u32>,
    /// A file with settings.
    pub config: Option<PathBuf>,
    /// Variables of the environment to set, and to pass on.
    pub env: Vec<(bool, Name)>,
    /// Attributes of the DAGMan job itself.
    pub job_attributes: Vec<Name>,
    /// A picture of the graph.
    pub dot: Option<DotOptions>,
    /// Where the state of the nodes is written.
    pub node_status: Option<NodeStatusFile>,
    /// Where each change of a node's state is written.
    pub jobstate_log: Option<Name>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct DagNode {
    /// Its name, with those of the splices it is in before it.
    pub name: Name,
    /// What it is.
    pub kind: NodeKind,
    /// It does nothing and succeeds.
    pub noop: bool,
    /// It was executed already.
    pub done: bool,
    /// Higher ones come first.
    pub priority: i32,
    /// Where it is defined.
    pub span: Span,
    /// What it runs.
    pub submit: Submit,
    /// Where its paths start.
    pub directory: Arc<Path>,
    /// Macros for its submit description: name, value, and whether they come after it.
    pub vars: Vec<(Name, Name, bool)>,
    rules: Option<Box<NodeRules>>,
}

/// What is special about a node. Most have nothing of it.
#[derive(Clone, Debug)]
pub struct NodeRules {
    /// Runs before the job.
    pub pre: Option<Script>,
    /// Runs after the job.
    pub post: Option<Script>,
    /// Runs when the job is held.
    pub hold: Option<Script>,
    /// An exit code of the PRE script with which the node succeeds without a job.
    pub pre_skip: Option<i64>,
    /// How often it is tried again, and an exit code with which it is not.
    pub retry: Option<(u32, Option<i64>)>,
    /// An exit code with which the whole DAG is stopped, and what is returned then.
    pub abort: Option<(i64, Option<u8>)>,
    /// How many of its jobs may fail.
    pub tolerance: Option<Tolerance>,
    /// Whose limit it counts for.
    pub category: Option<Name>,
    /// Where the progress is written when it starts; empty for the usual place.
    pub save_point: Option<Name>,
}

impl DagNode {
    /// What is special about it.
    pub fn rules(&self) -> &NodeRules {
        const NONE: &NodeRules = &NodeRules::NONE;
        self.rules.as_deref().unwrap_or(NONE)
    }

    fn rules_mut(&mut self) -> &mut NodeRules {
        self.rules.get_or_insert_with(|| Box::new(NodeRules::NONE))
    }
}

impl NodeRules {
    const NONE: Self = Self {
        pre: None,
        post: None,
        hold: None,
        pre_skip: None,
        retry: None,
        abort: None,
        tolerance: None,
        category: None,
        save_point: None,
    };
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An ordinary job.
    Job,
    /// Runs when everything else has ended, however it ended.
    Final,
    /// Runs before everything else.
    Provisioner,
    /// Runs beside everything else.
    Service,
    /// A DAG of its own.
    SubDag,
}

/// What a node runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submit {
    /// A file, or the name of a description in the DAG file.
    Named(Name),
    /// A description in the DAG file, and the line it starts in.
    Inline {
        /// The description.
        text: String,
        /// The number of its first line.
        line: u32,
    },
}

/// A script that runs where DAGMan runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Program and arguments.
    pub command: Name,
    /// With this exit code it runs again after so many seconds.
    pub defer: Option<(i64, u64)>,
    /// Where its output goes, and which: STDOUT, STDERR or ALL.
    pub debug: Option<(Name, Name)>,
}

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptKind {
    Pre,
    Post,
    Hold,
}

/// How many jobs of a node may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// So many.
    pub count: u32,
    /// Of a hundred.
    pub percent: bool,
    /// The others are stopped once it is exceeded.
    pub fail_fast: bool,
}

/// Who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagArc {
    /// Comes first.
    pub parent: u32,
    /// Comes after it.
    pub child: u32,
    /// The child needs the parent to have ended, not to have succeeded.
    pub weak: bool,
    /// It comes from the pins of splices.
    pub pinned: bool,
    /// The command that says so.
    pub span: Span,
}

/// A picture of the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotOptions {
    /// The file.
    pub file: Name,
    /// It is drawn again as nodes end.
    pub update: bool,
    /// The file is replaced each time.
    pub overwrite: bool,
    /// A file whose text is put in.
    pub include: Option<Name>,
}

/// Where the state of the nodes is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatusFile {
    /// The file.
    pub file: Name,
    /// Not more often than this.
    pub min_seconds: u64,
    /// Also if nothing has changed.
    pub always: bool,
}

/// Reads a DAG file and what it takes in.
pub fn load_dag(path: &Path) -> LoadedDag {
    assemble::assemble(path, None)
}

/// The same, with a file that says what is done already.
pub fn load_rescued_dag(path: &Path, rescue: &Path) -> LoadedDag {
    assemble::assemble(path, Some(rescue))
}
