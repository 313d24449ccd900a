//! What a run is: enough to go on with it, and to tell whether it is the same work as another.

use catena_compose::model::{load, load_text};
use catena_model::chain::RunContext;
use catena_model::dagman::LoadedDag;
use catena_model::{LoadOptions, Loaded, Name, Sources, Value};
use catena_plan::{ChainPolicy, Order, PlanOptions, Program};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// Which chains come first: `fifo`, `prio` or `auto`.
    #[serde(default)]
    pub order: String,
    /// The text of the workflow, to show it later.
    #[serde(default)]
    pub text: String,
    /// The directory that relative paths refer to.
    #[serde(default)]
    pub directory: PathBuf,
    /// Everything that was read, where whoever goes on with the run may not be able to read it: the workflow
    /// first.
    #[serde(default)]
    pub files: Vec<(PathBuf, String)>,
}

/// Texts longer than this are not kept with a run.
const MAX_KEPT_TEXT: usize = 1 << 20;

const CHAIN_POLICIES: &[(&str, ChainPolicy)] =
    &[("split", ChainPolicy::Split), ("union", ChainPolicy::Union), ("single", ChainPolicy::Single)];

const ORDERS: &[(&str, Order)] = &[("fifo", Order::Fifo), ("prio", Order::Prio), ("auto", Order::Auto)];

/// What a name stands for; nothing was said if it is empty.
fn choice<T: Copy + Default>(what: &str, name: &str, known: &[(&str, T)]) -> Result<T, String> {
    if name.is_empty() {
        return Ok(T::default());
    }
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("`{what}` cannot be `{name}`; known are {}", known.join(", "))
    })
}

impl Definition {
    /// Adds what was read to what was asked for.
    #[must_use]
    pub fn with_text(mut self, sources: &Sources) -> Self {
        if let Some(source) = sources.main().filter(|s| s.text.len() <= MAX_KEPT_TEXT) {
            self.text = source.text.to_string();
        }
        self
    }

    /// Makes the definition complete in itself: whoever has it needs no file of the machine it came from.
    #[must_use]
    pub fn with_files(mut self, loaded: &Loaded) -> Self {
        self.files = loaded.sources.iter().map(|s| (s.name.clone(), s.text.to_string())).collect();
        // Without macros there is only the expansion.
        let workflow = loaded.workflow.as_ref().or(loaded.expanded.as_ref());
        let vars = workflow.map(|w| w.vars.as_slice()).unwrap_or_default().iter();
        // Lists of files are those of the machine the workflow came from.
        self.inputs = vars.filter_map(|v| Some((v.id.clone(), v.value.clone()?))).collect();
        self.directory = std::path::absolute(&loaded.directory).unwrap_or_else(|_| loaded.directory.clone());
        self
    }

    /// Reads what [`Definition::with_files`] has kept.
    pub fn load(&self) -> Loaded {
        let texts = self.files.iter().map(|(name, text)| (name.clone(), Arc::from(text.as_str()))).collect();
        let options = LoadOptions {
            services: self.services.clone(),
            macros: self.macros.clone(),
            inputs: self.inputs.clone(),
            texts,
        };
        match self.files.first() {
            Some((name, text)) => load_text(name, text, &options),
            None => load(&self.workflow, &options),
        }
    }

    /// Prepares the workflow for planning.
    pub fn compile(&self) -> Result<Program, String> {
        let loaded = self.load();
        if let Some(problem) = loaded.diags.iter().find(|_| loaded.diags.has_errors()) {
            return Err(problem.message.clone());
        }
        let workflow = loaded.expanded.as_ref().ok_or("it is no workflow")?;
        Program::new(workflow, &loaded.library).map_err(|e| e.to_string())
    }

    /// How the run is planned.
    pub fn plan_options(&self, context: &RunContext) -> PlanOptions {
        PlanOptions {
            tmp: context.tmp.to_string_lossy().into_owned(),
            out: context.out.to_string_lossy().into_owned(),
            policy: choice("chains", &self.chains, CHAIN_POLICIES).unwrap_or_default(),
            order: self.order(),
        }
    }

    /// Which chains come first.
    pub fn order(&self) -> Order {
        choice("order", &self.order, ORDERS).unwrap_or_default()
    }

    /// Refuses names of ways to cut and to order chains that do not exist.
    pub fn check(&self) -> Result<(), String> {
        choice("chains", &self.chains, CHAIN_POLICIES)?;
        choice("order", &self.order, ORDERS)?;
        Ok(())
    }

    /// What the run is called if nobody has said: as its file, or as the directory of a `workflow.yaml`.
    pub fn default_name(&self) -> String {
        let stem = self.workflow.file_stem().unwrap_or_default();
        let directory = || self.workflow.parent().and_then(Path::file_name).or(self.directory.file_name());
        let name = if stem == "workflow" { directory().unwrap_or(stem) } else { stem };
        name.to_string_lossy().into_owned()
    }

    /// Identifies the work: everything that was read, the values of inputs, and how chains are cut.
    pub fn fingerprint(&self, loaded: &Loaded) -> String {
        let mut print = self.begin_fingerprint(&loaded.sources);
        // Lists of files depend on the disk, so the constants count and not only the text.
        let workflow = loaded.expanded.as_ref().or(loaded.workflow.as_ref());
        for var in workflow.map(|w| w.vars.as_slice()).unwrap_or_default() {
            print.add(&var.id);
            if let Some(value) = &var.value {
                print.add(&value.to_string());
            }
        }
        print.finish()
    }

    /// The same for a DAG, whose rescue file counts too.
    pub fn dag_fingerprint(&self, loaded: &LoadedDag) -> String {
        self.begin_fingerprint(&loaded.sources).finish()
    }

    fn begin_fingerprint(&self, sources: &Sources) -> Fingerprint {
        let mut print = Fingerprint(blake3::Hasher::new());
        print.add(env!("CARGO_PKG_VERSION"));
        print.add(&self.chains);
        print.add(&self.order);
        print.add(&self.out.to_string_lossy());
        for source in sources.iter() {
            let name = std::path::absolute(&source.name).unwrap_or_else(|_| source.name.clone());
            print.add(&name.to_string_lossy());
            print.add(&source.text);
        }
        print
    }
}

/// Something that differs if any of what was added differs.
struct Fingerprint(blake3::Hasher);

impl Fingerprint {
    fn add(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }

    fn finish(self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(workflow: &str, directory: &str) -> Definition {
        Definition { workflow: workflow.into(), directory: directory.into(), ..Definition::default() }
    }

    #[test]
    fn a_run_is_called_as_its_file_or_as_the_directory_of_a_workflow() {
        assert_eq!(definition("/home/anna/mosaic.yaml", "").default_name(), "mosaic");
        assert_eq!(definition("/home/anna/sky/workflow.yaml", "").default_name(), "sky");
        assert_eq!(definition("workflow.yaml", "/home/anna/sky").default_name(), "sky");
        assert_eq!(definition("workflow.yaml", "").default_name(), "workflow");
    }

    #[test]
    fn ways_to_cut_and_order_chains_that_do_not_exist_are_refused() {
        let mut definition =
            Definition { chains: "union".into(), order: "auto".into(), ..Definition::default() };
        assert_eq!((definition.check(), definition.order()), (Ok(()), Order::Auto));
        definition.chains = "onion".to_owned();
        assert_eq!(
            definition.check().unwrap_err(),
            "`chains` cannot be `onion`; known are split, union, single"
        );
        assert_eq!(Definition::default().check(), Ok(()));
    }
}
