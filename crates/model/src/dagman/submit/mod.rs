//! Submit descriptions of HTCondor: which programs a node runs, with what, and how often.
//!
//! A description assigns values to keys and ends with `queue`, which makes the jobs. As with HTCondor, values are
//! taken apart only then: the last assignment counts, and macros have the values they have for each job.

mod functions;
mod keys;
mod macros;
mod numbers;
mod queue;
mod read;
mod requirements;
mod words;

#[cfg(test)]
mod tests;

use crate::chain::Transfer;
use crate::{Name, Resources};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a submit description is read with.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitContext<'a> {
    /// What the description is called in messages.
    pub name: &'a Path,
    /// The number of its first line in messages: 1 for a file.
    pub line: u32,
    /// Where relative paths start: the directory of the node.
    pub directory: &'a Path,
    /// Macros that count before the description: an assignment there wins. Names compare without case.
    pub before: Vec<(Name, Name)>,
    /// Macros that count after the description.
    pub after: Vec<(Name, Name)>,
    /// The number of this submission, for `$(Cluster)`.
    pub cluster: u64,
}

/// One job that `queue` makes.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitJob {
    /// The program: an absolute path, or a bare name that is looked up in PATH.
    pub executable: Name,
    /// Its arguments.
    pub arguments: Vec<Name>,
    /// Variables of its environment, each once.
    pub environment: Vec<(Name, String)>,
    /// What it takes over from the environment of whoever submits it.
    pub getenv: GetEnv,
    /// Where it runs, and where the paths below start.
    pub directory: PathBuf,
    /// What it reads from its standard input.
    pub input: Option<PathBuf>,
    /// Where its standard output goes.
    pub output: Option<PathBuf>,
    /// Where its standard error goes.
    pub error: Option<PathBuf>,
    /// Where what happens to it is written.
    pub log: Option<PathBuf>,
    /// What it needs.
    pub resources: Resources,
    /// What the machine must have, sorted and each once.
    pub capabilities: Vec<Name>,
    /// Higher ones come first.
    pub priority: Option<i32>,
    /// How often it is tried again.
    pub max_retries: Option<u32>,
    /// An exit code with which it is not tried again.
    pub retry_until: Option<i32>,
    /// The exit code that means success.
    pub success_exit_code: i32,
    /// The files that move with it, if it runs in a directory of its own.
    pub transfer: Option<Transfer>,
    /// It is stopped after this time.
    pub max_runtime: Option<Duration>,
    /// It does nothing and succeeds.
    pub noop: bool,
}

/// What a job takes over from the environment of whoever submits it.
#[derive(Clone, Debug, PartialEq)]
pub enum GetEnv {
    /// Nothing.
    No,
    /// Everything.
    All,
    /// The variables with these names, where `*` stands for anything; names after a `!` are left out.
    Some(Vec<Name>),
}

/// The jobs of a submit description, and what could not be honoured.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The jobs, in the order of their numbers.
    pub jobs: Vec<SubmitJob>,
    /// What HTCondor would do and we do not, each once and with its place.
    pub warnings: Vec<String>,
}

/// Reads a submit description. What is wrong with it is told with its place, as `name:line:column: …`.
///
/// A description without `queue` makes one job: DAGMan allows that in a DAG file.
pub fn read_submit(text: &str, context: &SubmitContext<'_>) -> Result<Submission, String> {
    let mut reader = read::Reader::new(context);
    let outcome = reader.read(text).and_then(|description| keys::jobs(&description, &mut reader));
    match outcome {
        Ok(jobs) => Ok(Submission { jobs, warnings: reader.into_warnings() }),
        Err(problem) => Err(reader.located(problem.place, &problem.message)),
    }
}

/// Where something stands: the number of a file that was read, a line and a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    file: usize,
    line: u32,
    column: u32,
}

/// What is wrong, and where.
#[derive(Debug)]
struct Problem {
    place: Place,
    message: String,
}

impl Place {
    fn problem(self, message: impl Into<String>) -> Problem {
        Problem { place: self, message: message.into() }
    }
}
