//! What a run that has ended tells about its tasks: how long they took, what they read and wrote.

use catena_model::chain::{Executable, ProcessChain, RunId, TaskResult};
use catena_model::import::{Trace, TraceFile, TraceJob};
use catena_model::{Direction, Name};
use catena_plan::step_name;
use catena_store::{ChainFilter, Store, StoreError};
use std::collections::HashMap;
use std::path::Path;

/// How many chains are read at a time.
const PAGE: usize = 2000;

/// The tasks of a run that were executed.
pub struct History {
    name: String,
    tasks: Vec<Task>,
}

struct Task {
    job: TraceJob,
    step: String,
    /// Its result was there before, so it says nothing about how long it takes.
    is_cached: bool,
    reads: Vec<String>,
    writes: Vec<String>,
}

impl Task {
    fn new(chain: &ProcessChain, task: &Executable, result: &TaskResult) -> Self {
        let inputs = task.arguments.iter().filter(|a| a.direction == Direction::Input);
        Self {
            job: TraceJob {
                id: task.id.clone(),
                program: Name::new(step_name(&task.id)),
                runtime: result.millis / 1e3,
                cores: chain.resources.cpus as f64 / 1e3,
                memory: chain.resources.memory,
                needs: chain.required_capabilities.clone(),
                ..TraceJob::default()
            },
            step: step_name(&task.id).to_owned(),
            is_cached: result.cached,
            reads: inputs.map(|a| a.variable.value.to_string()).collect(),
            writes: result.outputs.iter().flatten().cloned().collect(),
        }
    }
}

impl History {
    /// Reads the tasks of a run. Nothing is known about durations if none has ended.
    pub async fn read(store: &dyn Store, run: RunId) -> Result<Option<Self>, StoreError> {
        let mut tasks = Vec::new();
        let mut from = 0;
        loop {
            let filter =
                ChainFilter { from, limit: PAGE, payload: true, result: true, ..ChainFilter::default() };
            let page = store.chains(run, &filter).await?;
            let Some(last) = page.last() else { break };
            from = last.key.seq + 1;
            for record in page {
                let Ok(chain) = serde_json::from_slice::<ProcessChain>(&record.payload) else { continue };
                let Ok(results) = serde_json::from_slice::<Vec<TaskResult>>(&record.result) else { continue };
                tasks.extend(chain.executables.iter().zip(&results).map(|(t, r)| Task::new(&chain, t, r)));
            }
        }
        if tasks.is_empty() {
            return Ok(None);
        }
        let mut history = Self { name: format!("run {run}"), tasks };
        // What was not executed took as long as others of its step, as far as that is known.
        let means: HashMap<String, Option<f64>> =
            history.tasks.iter().map(|t| (t.step.clone(), history.runtime(&t.step))).collect();
        for task in history.tasks.iter_mut().filter(|t| t.is_cached) {
            if let Some(Some(mean)) = means.get(&task.step) {
                task.job.runtime = *mean;
            }
        }
        Ok(Some(history))
    }

    /// How long tasks of a step took on average.
    pub fn runtime(&self, step: &str) -> Option<f64> {
        let executed = self.tasks.iter().filter(|t| t.step == step && !t.is_cached);
        let (sum, count) = executed.fold((0.0, 0.0), |(sum, n), t| (sum + t.job.runtime, n + 1.0));
        (count > 0.0).then(|| sum / count)
    }

    /// The run as a workflow. A task waits for those whose files it reads.
    pub fn trace(&self) -> Trace {
        let mut trace = Trace { name: self.name.clone(), ..Trace::default() };
        let mut files: HashMap<&str, u32> = HashMap::new();
        let mut writers: HashMap<&str, u32> = HashMap::new();
        for (number, task) in (0..).zip(&self.tasks) {
            writers.extend(task.writes.iter().map(|f| (f.as_str(), number)));
        }
        for (number, task) in (0..).zip(&self.tasks) {
            let mut job = task.job.clone();
            let mut file = |name: &'_ str| -> Option<u32> {
                let (key, _) = writers.get_key_value(name).map(|(k, v)| (*k, *v))?;
                Some(*files.entry(key).or_insert_with(|| {
                    trace.files.push(TraceFile { name: Name::new(name), size: size_of(name) });
                    trace.files.len() as u32 - 1
                }))
            };
            job.outputs = task.writes.iter().filter_map(|f| file(f)).collect();
            job.inputs = task.reads.iter().filter_map(|f| file(f)).collect();
            job.inputs.retain(|f| !job.outputs.contains(f));
            let parents = task.reads.iter().filter_map(|f| writers.get(f.as_str()).copied());
            trace.arcs.extend(parents.filter(|p| *p != number).map(|p| (p, number)));
            trace.jobs.push(job);
        }
        trace.arcs.sort_unstable();
        trace.arcs.dedup();
        trace
    }
}

/// The size of a file or of everything in a directory, if it is still there.
fn size_of(path: &str) -> u64 {
    fn all(path: &Path) -> u64 {
        let Ok(meta) = path.symlink_metadata() else { return 0 };
        if !meta.is_dir() {
            return meta.len();
        }
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|e| all(&e.path())).sum()
    }
    all(Path::new(path))
}
