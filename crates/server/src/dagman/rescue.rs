//! Rescue files: where a DAG that has not succeeded goes on.

use catena_model::dagman::{LoadedDag, load_dag, load_rescued_dag};
use catena_model::{Severity, read_text};
use catena_plan::{DagOptions, DagView, dag_of, rescue_text};
use std::io;
use std::path::{Path, PathBuf};

/// The last number of a rescue file; it is written again and again.
const LAST: u32 = 100;

/// From where a DAG goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rescue {
    /// From its newest rescue file, if there is one.
    #[default]
    Newest,
    /// From a certain file.
    File(PathBuf),
    /// From the beginning.
    Nothing,
}

/// A DAG that was read.
pub struct OpenDag {
    /// What it says.
    pub loaded: LoadedDag,
    /// The file it goes on from.
    pub rescue: Option<PathBuf>,
    /// The settings it asks for.
    pub options: DagOptions,
}

/// Reads a DAG and the rescue file it goes on from.
pub fn open_dag(path: &Path, rescue: &Rescue) -> OpenDag {
    let rescue = match rescue {
        Rescue::Newest => newest(path).map(|(_, file)| file),
        Rescue::File(file) => Some(file.clone()),
        Rescue::Nothing => None,
    };
    let mut loaded = match &rescue {
        Some(file) => load_rescued_dag(path, file),
        None => load_dag(path),
    };
    dag_of(&mut loaded);
    let options = settings(&loaded);
    OpenDag { loaded, rescue, options }
}

impl OpenDag {
    /// The DAG, if it can be run. Pins that do not fit are only a warning for those who check a file.
    pub fn usable(self) -> Result<Self, String> {
        let LoadedDag { diags, sources, .. } = &self.loaded;
        let fatal = diags.iter().find(|d| d.severity == Severity::Error || d.code == "dag-pins");
        match fatal {
            Some(problem) => Err(problem.render(sources).to_string()),
            None => Ok(self),
        }
    }
}

/// What the file with settings says about the execution.
fn settings(loaded: &LoadedDag) -> DagOptions {
    let mut options = DagOptions::default();
    let text = loaded.dag.config.as_deref().and_then(|file| read_text(file).ok()).unwrap_or_default();
    for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let truth = value.eq_ignore_ascii_case("true") || value == "1";
        let number = value.parse();
        match key.trim().to_ascii_uppercase().as_str() {
            "DAGMAN_MAX_JOBS_SUBMITTED" => options.max_jobs = number.unwrap_or(options.max_jobs),
            "DAGMAN_MAX_PRE_SCRIPTS" => options.max_pre = number.unwrap_or(options.max_pre),
            "DAGMAN_MAX_POST_SCRIPTS" => options.max_post = number.unwrap_or(options.max_post),
            "DAGMAN_ALWAYS_RUN_POST" => options.always_run_post = truth,
            "DAGMAN_RESET_RETRIES_UPON_RESCUE" => options.reset_retries = truth,
            _ => {}
        }
    }
    options
}

/// Writes the next rescue file of a DAG. Returns where it is.
pub(crate) fn write_rescue(dag: DagView<'_>) -> io::Result<PathBuf> {
    let path = &dag.file().path;
    let number = newest(path).map_or(1, |(n, _)| (n + 1).min(LAST));
    let file = numbered(path, number);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    std::fs::write(&file, rescue_text(dag, &name))?;
    Ok(file)
}

/// Gives rescue files other names, so that the DAG starts from the beginning.
pub fn retire_rescues(path: &Path) -> io::Result<()> {
    for (_, file) in rescues(path) {
        let mut old = file.clone().into_os_string();
        old.push(".old");
        std::fs::rename(&file, old)?;
    }
    Ok(())
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(format!(".rescue{number:03}"));
    file.into()
}

fn rescues(path: &Path) -> impl Iterator<Item = (u32, PathBuf)> {
    (1..=LAST).map(|n| (n, numbered(path, n))).filter(|(_, file)| file.is_file())
}

fn newest(path: &Path) -> Option<(u32, PathBuf)> {
    rescues(path).last()
}
