//! Who wrote what others have read: where results come from, and what the end of a run waited for.

use catena_model::chain::{ChainKey, Executable, ProcessChain, RunId, TaskResult};
use catena_model::{Direction, Name};
use catena_plan::{StepGraph, step_name};
use catena_store::{ChainFilter, ChainRecord, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use utoipa::ToSchema;

/// How many chains are read at a time.
const PAGE: usize = 2000;
/// Where something comes from is told for so many tasks.
const MOST_TASKS: usize = 500;
/// No path is followed further than this.
const LONGEST: usize = 10_000;

/// Where what a chain has written comes from.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Provenance {
    /// Tasks, those that came last first.
    tasks: Vec<Origin>,
    /// There was more than is told.
    truncated: bool,
}

/// A task on the way to a file.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ProvenanceTask)]
pub(crate) struct Origin {
    chain: u64,
    task: String,
    /// What was started.
    command: String,
    #[schema(required)]
    agent: Option<String>,
    #[schema(required)]
    started: Option<i64>,
    #[schema(required)]
    millis: Option<f64>,
    /// The result was there before.
    cached: bool,
    /// What it has read.
    inputs: Vec<String>,
    /// What it has written.
    outputs: Vec<String>,
}

/// What the end of a run waited for, first to last.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct CriticalPath {
    /// From the beginning of the run to its end, in milliseconds.
    total: i64,
    /// Chains, each of which waited for the one before.
    links: Vec<CriticalLink>,
}

/// A chain that others waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct CriticalLink {
    chain: u64,
    tasks: Vec<String>,
    steps: Vec<String>,
    #[schema(required)]
    agent: Option<String>,
    /// Between when it could run and when it did, in milliseconds.
    waited: i64,
    started: i64,
    ended: i64,
}

/// The chains of a run, by what they have written.
pub(crate) struct Lineage<'s> {
    store: &'s dyn Store,
    run: RunId,
    /// By the hash of a path: the paths of a large run would take much room.
    writers: HashMap<u64, u64>,
    /// By the hash of a file name: none if several have written such a file.
    names: HashMap<u64, Option<u64>>,
    hasher: std::hash::RandomState,
    /// The chain of each step that ended last, for orders without data.
    last_of_step: HashMap<String, (u64, i64)>,
    /// When chains ended.
    ends: HashMap<u64, i64>,
    last: Option<u64>,
}

/// What a task has read and written.
struct Traffic {
    reads: Vec<String>,
    writes: Vec<String>,
}

fn traffic(task: &Executable, result: Option<&TaskResult>) -> Traffic {
    let is_file = |data_type: &str| !matches!(data_type, "integer" | "float" | "number" | "boolean");
    let inputs = task.arguments.iter().filter(|a| a.direction == Direction::Input && is_file(&a.data_type));
    let planned = task.outputs().map(|a| a.variable.value.to_string());
    let written = result.into_iter().flat_map(|r| r.outputs.iter().flatten().cloned());
    let writes: BTreeSet<String> = planned.chain(written).collect();
    Traffic {
        reads: inputs.map(|a| a.variable.value.to_string()).collect(),
        writes: writes.into_iter().collect(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A chain with what came of it.
struct Known {
    record: ChainRecord,
    chain: ProcessChain,
    results: Vec<TaskResult>,
}

impl Known {
    fn new(record: ChainRecord) -> Option<Self> {
        let chain = serde_json::from_slice(&record.payload).ok()?;
        let results = serde_json::from_slice(&record.result).unwrap_or_default();
        Some(Self { record, chain, results })
    }

    fn tasks(&self) -> impl Iterator<Item = (&Executable, Option<&TaskResult>)> {
        self.chain.executables.iter().enumerate().map(|(i, task)| (task, self.results.get(i)))
    }

    fn started(&self) -> i64 {
        self.record.started.unwrap_or_default()
    }

    fn ended(&self) -> i64 {
        self.record.ended.unwrap_or_default()
    }
}

impl<'s> Lineage<'s> {
    /// Reads who has written what.
    pub(crate) async fn read(store: &'s dyn Store, run: RunId) -> Result<Self, StoreError> {
        let (writers, names, hasher) = (HashMap::new(), HashMap::new(), std::hash::RandomState::new());
        let (last_of_step, ends) = (HashMap::new(), HashMap::new());
        let mut lineage = Self { store, run, writers, names, hasher, last_of_step, ends, last: None };
        let (mut from, mut last_ended) = (0, i64::MIN);
        loop {
            let filter =
                ChainFilter { from, limit: PAGE, payload: true, result: true, ..ChainFilter::default() };
            let page = store.chains(run, &filter).await?;
            let Some(last) = page.last() else { return Ok(lineage) };
            from = last.key.seq + 1;
            for record in page {
                let (seq, is_final) = (record.key.seq, record.state.is_final());
                let Some(known) = Known::new(record) else { continue };
                for (task, result) in known.tasks() {
                    for path in traffic(task, result).writes {
                        let (key, name) = (lineage.key(&path), lineage.key(file_name(&path)));
                        lineage.writers.insert(key, seq);
                        let writer = lineage.names.entry(name).or_insert(Some(seq));
                        *writer = writer.filter(|known| *known == seq);
                    }
                    let ended = known.ended();
                    let step =
                        lineage.last_of_step.entry(step_name(&task.id).to_owned()).or_insert((seq, ended));
                    if is_final && ended >= step.1 {
                        *step = (seq, ended);
                    }
                }
                if is_final && known.record.started.is_some() {
                    lineage.ends.insert(seq, known.ended());
                    if known.ended() >= last_ended {
                        (lineage.last, last_ended) = (Some(seq), known.ended());
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn key(&self, path: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(path.as_bytes());
        hasher.finish()
    }

    /// The chain that has written a file, or the directory that it is in.
    fn writer(&self, path: &str) -> Option<u64> {
        let mut above = Path::new(path).ancestors().filter_map(Path::to_str);
        above.find_map(|p| self.writers.get(&self.key(p)).copied())
    }

    /// The chain that has written a result. Results that were brought from agents are elsewhere now, but have their names.
    pub(crate) fn writer_of_result(&self, path: &str) -> Option<u64> {
        self.writer(path).or_else(|| self.names.get(&self.key(file_name(path))).copied().flatten())
    }

    async fn chain(&self, seq: u64) -> Result<Option<Known>, StoreError> {
        Ok(self.store.chain(ChainKey { run: self.run, seq }).await?.and_then(Known::new))
    }

    /// The chains whose files a chain has read.
    fn parents(&self, known: &Known) -> BTreeSet<u64> {
        let reads = known.tasks().flat_map(|(task, result)| traffic(task, result).reads);
        reads.filter_map(|path| self.writer(&path)).filter(|seq| *seq != known.record.key.seq).collect()
    }

    /// Where what a chain has written comes from.
    pub(crate) async fn provenance(&self, chain: u64) -> Result<Provenance, StoreError> {
        let mut found = Provenance::default();
        let mut seen = HashSet::from([chain]);
        let mut open = VecDeque::from([chain]);
        while let Some(seq) = open.pop_front() {
            if found.tasks.len() >= MOST_TASKS {
                found.truncated = true;
                break;
            }
            let Some(known) = self.chain(seq).await? else { continue };
            open.extend(self.parents(&known).into_iter().filter(|parent| seen.insert(*parent)));
            // Of a chain the last task comes first, as chains do.
            for (task, result) in known.tasks().collect::<Vec<_>>().into_iter().rev() {
                let Traffic { mut reads, writes } = traffic(task, result);
                // What is just a value came from nowhere.
                reads.retain(|path| path.contains('/') || self.writer(path).is_some());
                found.tasks.push(Origin {
                    chain: seq,
                    task: task.id.to_string(),
                    command: task.shown(),
                    agent: known.record.agent.as_ref().map(Name::to_string),
                    started: result.map(|r| r.started),
                    millis: result.map(|r| r.millis),
                    cached: result.is_some_and(|r| r.cached),
                    inputs: reads,
                    outputs: writes,
                });
            }
        }
        Ok(found)
    }

    /// Goes back from the chain that ended last to what it waited for, and from there on.
    pub(crate) async fn critical_path(
        &self,
        graph: &StepGraph,
        began: i64,
        registered: impl Fn(&ChainRecord) -> i64,
    ) -> Result<CriticalPath, StoreError> {
        let ordered: Vec<(&str, &str)> = graph
            .edges
            .iter()
            .filter(|e| e.order_only)
            .map(|e| (graph.nodes[e.from].name.as_str(), graph.nodes[e.to].name.as_str()))
            .collect();
        let mut path = CriticalPath::default();
        let mut next = self.last;
        let mut seen = HashSet::new();
        while let Some(seq) = next.filter(|seq| path.links.len() < LONGEST && seen.insert(*seq)) {
            let Some(known) = self.chain(seq).await? else { break };
            let steps: Vec<&str> = known.chain.executables.iter().map(|t| step_name(&t.id)).collect();
            let mut candidates = self.parents(&known);
            // Of the steps that come before without giving it data, what ended last.
            let before = ordered.iter().filter(|(_, to)| steps.contains(to));
            candidates.extend(before.filter_map(|(from, _)| Some(self.last_of_step.get(*from)?.0)));
            candidates.remove(&seq);
            let ended = candidates.into_iter().filter_map(|parent| Some((*self.ends.get(&parent)?, parent)));
            let before = ended.filter(|(ended, _)| *ended <= known.started()).max();
            let could = before.map_or_else(|| registered(&known.record).max(began), |(ended, _)| ended);
            path.links.push(CriticalLink {
                chain: seq,
                tasks: known.chain.executables.iter().map(|t| t.id.to_string()).collect(),
                steps: steps.iter().map(|s| (*s).to_owned()).collect(),
                agent: known.record.agent.as_ref().map(Name::to_string),
                waited: (known.started() - could).max(0),
                started: known.started(),
                ended: known.ended(),
            });
            next = before.map(|(_, parent)| parent);
        }
        path.links.reverse();
        path.total = path.links.last().map_or(0, |last| last.ended - began);
        Ok(path)
    }
}
