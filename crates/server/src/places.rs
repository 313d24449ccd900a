//! Where the runs of a cluster live.

use crate::definition::Definition;
use catena_model::chain::{RunContext, RunId};
use catena_store::{Store, StoreError};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A directory that all instances and agents see under the same path.
pub struct Places {
    storage: PathBuf,
    /// Contexts are asked for with every assignment and never change.
    known: Mutex<HashMap<RunId, Arc<RunContext>>>,
}

/// How many contexts are remembered.
const REMEMBERED: usize = 1024;

impl Places {
    /// Runs live below this directory.
    pub fn new(storage: PathBuf) -> Self {
        Self { storage, known: Mutex::default() }
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
        let base = self.storage.join("runs").join(run.to_string());
        let out = if definition.out.as_os_str().is_empty() {
            self.storage.join("results").join(run.to_string())
        } else {
            definition.out.join(run.to_string())
        };
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
            state: self.storage.clone(),
        }
    }
}
