//! What is in the bytes that peers carry for each other without looking into them: workflows, tasks, and what came of both.

use catena_data::{Depot, Put};
use catena_model::chain::{
    Origin, ProcessChain, Produced, RunContext, RunId, Supply, TaskFailure, TaskResult,
};
use catena_model::{Loaded, Name};
use catena_server::{Definition, Places, Storage, named_files};
use catena_space::molecule::Ending;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A workflow as it is given in: whoever has this needs no file of the machine it came from, only the contents of those
/// that it names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// Tells this run of the workflow from all others.
    pub run: i64,
    /// What is to be done.
    pub definition: Definition,
    /// The files that the workflow reads.
    #[serde(default)]
    pub files: Vec<Produced>,
    /// Who has them.
    #[serde(default)]
    pub holders: Vec<Origin>,
    /// How long a task of a service usually takes, in seconds, where that is known.
    #[serde(default)]
    pub usual: BTreeMap<Name, f64>,
}

/// A task: a process chain, and where the rest of what it reads can be had.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Its number in the workflow.
    pub number: u32,
    /// Where the run would live, did all machines share one file system.
    pub context: RunContext,
    /// What is executed.
    pub chain: ProcessChain,
    /// What it reads, unless it comes from tasks that were given out together with this one.
    pub items: Vec<Item>,
}

/// Something that is read, and who made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The number of the task that wrote it; 0 if it came with the workflow.
    pub of: u32,
    /// What it is, and where it can be had.
    pub supply: Supply,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskEnding {
    /// It is done.
    Done {
        /// What its parts have given.
        results: Vec<TaskResult>,
        /// Who has what they have written.
        holders: Vec<Origin>,
    },
    /// It has failed.
    Failed(Box<TaskFailure>),
    /// Something that it reads is nowhere.
    Lost(Lost),
}

/// Something that nobody has any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The number of the task that wrote it; 0 if it came with the workflow.
    pub of: u32,
    /// What the run calls it.
    pub name: Name,
    /// Why it cannot be had.
    pub message: String,
}

/// What came of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The run.
    pub run: i64,
    /// How many tasks there were.
    pub tasks: u32,
    /// The named results: paths, or other values as they are.
    pub results: Vec<(Name, Vec<String>)>,
    /// What is at these paths, and what was stored besides.
    pub files: Vec<Item>,
    /// Below this path is what was stored.
    pub stored: PathBuf,
}

/// How a workflow ended, for who gave it in.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// It is done.
    Done(Box<Finished>),
    /// A task has failed.
    Failed(Box<TaskFailure>),
    /// It could not go on.
    Stuck(String),
}

impl Document {
    /// A workflow that enters here. The files that it names are taken into a depot, from which others get them; `name` is
    /// what the depot is called.
    pub fn new(definition: Definition, loaded: &Loaded, depot: &Depot, name: &Name) -> Result<Self, String> {
        let run = getrandom::u64().map_err(|e| e.to_string())?;
        // It stands in paths: never negative, and never 0.
        let run = (run >> 1).max(1) as i64;
        let mut files = Vec::new();
        for (name, path) in named_files(loaded) {
            let fail = |e| format!("{}: {e}", path.display());
            // A link is read as what it leads to, as by a task.
            let real = path.canonicalize().map_err(|e| fail(e.to_string()))?;
            let (artifact, _pin) = depot.holdings().put(&real, Put::Copy).map_err(|e| fail(e.to_string()))?;
            depot.holdings().keep(&format!("{run}/{name}"), &artifact).map_err(|e| fail(e.to_string()))?;
            files.push(Produced { name, artifact });
        }
        let holders = vec![Origin::Agent { name: name.clone(), address: depot.address().clone() }];
        let definition = definition.with_files(loaded);
        Ok(Self { run, definition, files, holders, usual: BTreeMap::new() })
    }

    /// The same for the same workflow with the same files, whoever gives it in and when.
    pub fn fingerprint(&self) -> String {
        let same = Self { run: 0, holders: Vec::new(), ..self.clone() };
        let bytes = serde_json::to_vec(&same).unwrap_or_default();
        blake3::hash(&bytes).to_hex()[..32].to_owned()
    }

    /// Where the run would live, did all machines share one file system.
    pub fn context(&self) -> RunContext {
        let places = Places::new(PathBuf::new(), Storage::Local);
        (*places.remember(RunId(self.run), &self.definition)).clone()
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Result<Arc<[u8]>, String> {
        to_bytes(self)
    }

    /// From bytes.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        read(bytes, "a workflow")
    }
}

impl Task {
    /// As bytes.
    pub(crate) fn to_bytes(&self) -> Result<Arc<[u8]>, String> {
        to_bytes(self)
    }

    /// From bytes.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        read(bytes, "a task")
    }
}

impl TaskEnding {
    /// As peers carry it.
    pub(crate) fn to_ending(&self) -> Ending {
        let good = matches!(self, Self::Done { .. });
        match to_bytes(self) {
            Ok(matter) => Ending { good, matter },
            Err(why) => Ending { good: false, matter: why.into_bytes().into() },
        }
    }

    /// What an ending of a task says.
    pub(crate) fn read(ending: &Ending) -> Result<Self, String> {
        read(&ending.matter, "the end of a task")
    }

    /// A task that has failed before it could start.
    pub(crate) fn failed(task: Name, message: String) -> Self {
        Self::Failed(Box::new(TaskFailure { task, message, ..TaskFailure::default() }))
    }
}

impl Over {
    /// What the ending of a workflow says. It may be that of the task that has failed.
    pub fn read(ending: &Ending) -> Self {
        if ending.good {
            return match read(&ending.matter, "the end of a workflow") {
                Ok(finished) => Self::Done(Box::new(finished)),
                Err(why) => Self::Stuck(why),
            };
        }
        match TaskEnding::read(ending) {
            Ok(TaskEnding::Failed(failure)) => Self::Failed(failure),
            Ok(TaskEnding::Lost(lost)) => Self::Stuck(lost.message),
            Ok(TaskEnding::Done { .. }) => Self::Stuck("a task is done and not done".to_owned()),
            Err(_) => Self::Stuck(String::from_utf8_lossy(&ending.matter).into_owned()),
        }
    }
}

impl Finished {
    /// As peers carry it.
    pub(crate) fn to_ending(&self) -> Ending {
        match to_bytes(self) {
            Ok(matter) => Ending { good: true, matter },
            Err(why) => Ending { good: false, matter: why.into_bytes().into() },
        }
    }
}

fn to_bytes(what: &impl Serialize) -> Result<Arc<[u8]>, String> {
    serde_json::to_vec(what).map(Into::into).map_err(|e| e.to_string())
}

fn read<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("{what} cannot be read: {e}"))
}
