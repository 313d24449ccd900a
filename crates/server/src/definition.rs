//! What a run is: enough to go on with it, and to tell whether it is the same work as another.

use catena_model::{Loaded, Name, Value};
use catena_plan::ChainPolicy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What was asked for, as it is kept with a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The workflow file.
    pub workflow: PathBuf,
    /// Files with services.
    #[serde(default)]
    pub services: Vec<PathBuf>,
    /// Files with macros.
    #[serde(default)]
    pub macros: Vec<PathBuf>,
    /// Values that were set from outside.
    #[serde(default)]
    pub inputs: Vec<(Name, Value)>,
    /// Where results go.
    pub out: PathBuf,
    /// How chains are cut: `split`, `union` or `single`.
    #[serde(default)]
    pub chains: String,
    /// The text of the workflow, to show it later.
    #[serde(default)]
    pub text: String,
}

/// Texts longer than this are not kept with a run.
const MAX_KEPT_TEXT: usize = 1 << 20;

impl Definition {
    /// Adds what was read to what was asked for.
    #[must_use]
    pub fn with_text(mut self, loaded: &Loaded) -> Self {
        if let Some(source) = loaded.sources.main().filter(|s| s.text.len() <= MAX_KEPT_TEXT) {
            self.text = source.text.to_string();
        }
        self
    }

    /// The policy by its name.
    pub fn policy(&self) -> ChainPolicy {
        match self.chains.as_str() {
            "union" => ChainPolicy::Union,
            "single" => ChainPolicy::Single,
            _ => ChainPolicy::Split,
        }
    }

    /// Identifies the work: everything that was read, the values of inputs, and how chains are cut.
    pub fn fingerprint(&self, loaded: &Loaded) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        add(env!("CARGO_PKG_VERSION"));
        add(&self.chains);
        add(&self.out.to_string_lossy());
        for source in loaded.sources.iter() {
            let name = std::path::absolute(&source.name).unwrap_or_else(|_| source.name.clone());
            add(&name.to_string_lossy());
            add(&source.text);
        }
        // Lists of files depend on the disk, so the constants count and not only the text.
        let workflow = loaded.expanded.as_ref().or(loaded.workflow.as_ref());
        for var in workflow.map(|w| w.vars.as_slice()).unwrap_or_default() {
            add(&var.id);
            if let Some(value) = &var.value {
                add(&value.to_string());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}
