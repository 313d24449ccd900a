//! Where the runs of a cluster live.

use crate::definition::Definition;
use catena_model::chain::{RunContext, RunId};
use catena_store::{Store, StoreError};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Where the files of runs are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In one directory, which all instances and agents see under the same path.
    #[default]
    Shared,
    /// With the agents that wrote or read them; they get them from each other.
    Local,
    /// The same, and in an object storage that all of them reach.
    Object,
}

impl Storage {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Object => "object",
        }
    }

    /// Whether agents have files of their own.
    pub fn is_local(self) -> bool {
        self != Self::Shared
    }
}

impl FromStr for Storage {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Shared, Self::Local, Self::Object];
        let found = all.into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| format!("unknown mode `{name}`; known are {}", all.map(Self::name).join(", ")))
    }
}

/// Where the paths of runs begin whose files have no common place: a name and no directory.
const NOWHERE: &str = "/catena";

/// A directory that all instances and agents see under the same path, or that each has for itself.
pub struct Places {
    storage: PathBuf,
    mode: Storage,
    /// Contexts are asked for with every assignment and never change.
    known: Mutex<HashMap<RunId, Arc<RunContext>>>,
}

/// How many contexts are remembered.
const REMEMBERED: usize = 1024;

impl Places {
    /// Runs live below this directory.
    pub fn new(storage: PathBuf, mode: Storage) -> Self {
        Self { storage, mode, known: Mutex::default() }
    }

    /// Where the files of runs are.
    pub fn mode(&self) -> Storage {
        self.mode
    }

    /// Where the results of a run go.
    pub fn results(&self, run: RunId, out: &Path) -> PathBuf {
        if out.as_os_str().is_empty() {
            self.storage.join("results").join(run.to_string())
        } else {
            out.join(run.to_string())
        }
    }

    /// The directory.
    pub fn storage(&self) -> &Path {
        &self.storage
    }

    /// The places of a run. `None` if there is no such run.
    pub async fn context(
        &self,
        store: &dyn Store,
        run: RunId,
    ) -> Result<Option<Arc<RunContext>>, StoreError> {
        if let Some(context) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&run) {
            return Ok(Some(context.clone()));
        }
        let Some(definition) = store.definition(run).await? else { return Ok(None) };
        let definition: Option<Definition> = serde_json::from_slice(&definition).ok();
        Ok(definition.map(|d| self.remember(run, &d)))
    }

    /// The places of a run with this definition.
    pub fn remember(&self, run: RunId, definition: &Definition) -> Arc<RunContext> {
        let context = Arc::new(self.place(run, definition));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(run, context.clone());
        context
    }

    fn place(&self, run: RunId, definition: &Definition) -> RunContext {
        let root = if self.mode.is_local() { Path::new(NOWHERE) } else { &self.storage };
        let base = root.join("runs").join(run.to_string());
        let out = if self.mode.is_local() { base.join("out") } else { self.results(run, &definition.out) };
        RunContext {
            run,
            workflow: definition.workflow.to_string_lossy().into_owned(),
            directory: if definition.directory.as_os_str().is_empty() {
                base.clone()
            } else {
                definition.directory.clone()
            },
            tmp: base.join("data"),
            out,
            work: base.join("work"),
            logs: base.join("logs"),
            state: root.to_path_buf(),
        }
    }
}

/// Whether a path of a run whose files have no common place is that of a directory which an output has to itself, with
/// whatever its task has put beside it: `…/data/<number>`.
pub(crate) fn is_own_directory(path: &Path) -> bool {
    let name = |p: Option<&Path>| p.and_then(Path::file_name).and_then(|n| n.to_str()).map(str::to_owned);
    let is_number = name(Some(path)).is_some_and(|n| n.parse::<u64>().is_ok());
    let above = name(path.parent());
    is_number && path.starts_with(NOWHERE) && above.is_some_and(|a| a == "data" || a == "out")
}
