//! Executes tasks for others: brings what they read, runs them, and holds what they write.
//!
//! What a task writes is known by its content and found by nobody before its ending says that it is there. So an attempt
//! whose lease counts no more leaves nothing where others look.

mod supply;
#[cfg(test)]
mod tests;

pub(crate) use supply::{Holders, bring_all};

use crate::book::Book;
use crate::matter::{Finished, Item, Lost, Task, TaskEnding};
use crate::offer;
use catena_agent::{Agent, AgentConfig, Job, Mode, Roster, end_leftovers};
use catena_data::{Depot, DepotError, DepotOptions, Pin};
use catena_model::chain::{
    AgentEvent, Attempt, ChainKey, DataAddress, Origin, Outcome, Produced, RunContext, RunId, Supply,
    TaskFailure,
};
use catena_model::{Name, Resources};
use catena_rules::Value;
use catena_space::id::Id;
use catena_space::molecule::{self, Ending};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use thiserror::Error;

/// What a peer that executes tasks is and has.
#[derive(Clone, Debug)]
pub struct ExecutorConfig {
    /// What others call it.
    pub name: Name,
    /// Where it works and holds files. No other may use it.
    pub directory: PathBuf,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
    /// How fast it is; 1 is a usual machine.
    pub speed: f64,
    /// Where it serves what it holds. Port 0 is any free one.
    pub listen: SocketAddr,
    /// What other machines call this one; the address it listens at if nothing is said.
    pub host: Option<String>,
    /// It holds at most so many bytes.
    pub quota: Option<u64>,
}

/// A task to be executed.
#[derive(Clone, Debug)]
pub(crate) struct Assignment<'a> {
    /// Which one.
    pub task: Id,
    /// With which lease.
    pub epoch: u32,
    /// The workflow it is a part of.
    pub workflow: Id,
    /// What it is, see [`Task`].
    pub payload: &'a [u8],
    /// What those it waited for have given.
    pub inputs: &'a [(molecule::Name, Arc<Ending>)],
    /// Peers that may have copies of what it reads. They are asked for what is not where it should be.
    pub others: Vec<Name>,
}

/// A task has been executed.
#[derive(Clone, Debug)]
pub(crate) struct Executed {
    /// Which one.
    pub task: Id,
    /// With which lease.
    pub epoch: u32,
    /// What came of it, see [`TaskEnding`].
    pub ending: Ending,
}

/// Why tasks cannot be executed.
#[derive(Debug, Error)]
pub enum ExecutorError {
    /// Its directory cannot be used.
    #[error("{directory}: {error}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It cannot hold or serve files.
    #[error(transparent)]
    Depot(#[from] DepotError),
}

/// Executes tasks. Dropping it stops them.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    agent: Arc<Agent>,
}

struct Shared {
    config: ExecutorConfig,
    depot: Arc<Depot>,
    book: Book,
    state: Mutex<State>,
    agent: OnceLock<Weak<Agent>>,
    report: Box<dyn Fn(Executed) + Send + Sync>,
}

struct State {
    running: HashMap<Attempt, Running>,
    free: Resources,
    /// Attempts are numbered here, so that no two share a place.
    serial: u32,
}

/// A task that is here.
struct Running {
    task: Id,
    epoch: u32,
    job: Arc<Task>,
    items: Arc<[Item]>,
    others: Arc<[Name]>,
    /// Keep what it reads.
    pins: Vec<Pin>,
    /// How often what it reads was brought.
    tries: u32,
    /// Nobody wants to know of it any more.
    stopped: bool,
}

/// So often what a task reads is brought, if it gets damaged here.
const TRIES: u32 = 3;
/// In this file of its directory is of which workflow a run is.
const WORKFLOW: &str = "workflow";

impl Executor {
    /// Starts an executor. Processes that one with the same directory has left are ended first. `report` is called from
    /// threads of the executor, never from within one of its methods.
    pub(crate) fn start(
        config: ExecutorConfig,
        report: Box<dyn Fn(Executed) + Send + Sync>,
    ) -> Result<Self, ExecutorError> {
        let directory = &config.directory;
        let runs = directory.join("runs");
        let fail = |error| ExecutorError::Directory { directory: directory.clone(), error };
        fs::create_dir_all(&runs).map_err(fail)?;
        let options = DepotOptions {
            directory: directory.join("data"),
            listen: config.listen,
            host: config.host.clone(),
            quota: config.quota,
            object: None,
            logs: Some(runs),
        };
        // It has a lock, so from here on nobody else uses the directory.
        let depot = Arc::new(Depot::open(&options)?);
        end_leftovers(directory);
        let agent = AgentConfig {
            id: config.name.clone(),
            capabilities: config.capabilities.clone(),
            resources: config.resources.clone(),
            mode: Mode::Execute,
            explain: false,
            shell: AgentConfig::find_shell(),
        };
        let roster = Roster::create(directory);
        let state = State { running: HashMap::new(), free: config.resources.clone(), serial: 0 };
        let shared = Arc::new(Shared {
            depot: depot.clone(),
            book: Book::default(),
            state: Mutex::new(state),
            agent: OnceLock::new(),
            report,
            config,
        });
        let hears = shared.clone();
        let agent = Arc::new(Agent::start(agent, None, Some(depot), roster, move |event| hears.hear(event)));
        let _ = shared.agent.set(Arc::downgrade(&agent));
        Ok(Self { shared, agent })
    }

    /// Takes a task. Its end is reported.
    pub(crate) fn assign(&self, assignment: Assignment<'_>) {
        let Assignment { task, epoch, workflow, payload, inputs, others } = assignment;
        let read = Task::read(payload).and_then(|job| {
            let items = supply::items(&job, inputs)?;
            Ok((job, items))
        });
        let (job, items) = match read {
            Ok(read) => read,
            Err(why) => {
                let ending = TaskEnding::failed(Name::default(), why).to_ending();
                let shared = self.shared.clone();
                return spawn("report", move || (shared.report)(Executed { task, epoch, ending }));
            }
        };
        self.shared.remember(job.context.run.0, workflow);
        let mut state = self.shared.state();
        if state.running.values().any(|r| r.task == task && r.epoch == epoch) {
            return;
        }
        state.free.take(&job.chain.resources);
        state.serial += 1;
        let seq = u64::from(job.number.saturating_sub(1));
        let attempt = Attempt { chain: ChainKey { run: job.context.run, seq }, number: state.serial };
        let (pins, job, items, others) = (Vec::new(), Arc::new(job), items.into(), others.into());
        let running = Running { task, epoch, job, items, others, pins, tries: 0, stopped: false };
        state.running.insert(attempt, running);
        drop(state);
        let shared = self.shared.clone();
        spawn("bring", move || shared.supply(attempt));
    }

    /// A task need not be executed here any more. Nothing is reported of it.
    pub(crate) fn stop(&self, task: Id, epoch: u32) {
        let mut state = self.shared.state();
        let is_it = |r: &Running| r.task == task && r.epoch == epoch;
        let found = state.running.iter_mut().find(|(_, r)| is_it(r));
        let Some((attempt, running)) = found else { return };
        running.stopped = true;
        let attempt = *attempt;
        drop(state);
        self.agent.stop_attempts(&[attempt]);
    }

    /// What there is room for now, as rules see it: `RES:id:<SPEED:…, CPUS:…, …>`. Nothing if all processors are taken.
    pub(crate) fn resource(&self, me: u64) -> Option<Value> {
        let ExecutorConfig { speed, resources, capabilities, .. } = &self.shared.config;
        let free = self.shared.state().free.clone();
        if free.cpus == 0 {
            return None;
        }
        offer::resource(me, *speed, (resources, &free), capabilities)
    }

    /// How many processors are free, of how many.
    pub(crate) fn processors(&self) -> (f64, f64) {
        let cpus = |resources: &Resources| resources.cpus as f64 / 1000.0;
        (cpus(&self.shared.state().free), cpus(&self.shared.config.resources))
    }

    /// A peer serves what it holds at this address now.
    pub(crate) fn know(&self, name: Name, address: DataAddress) {
        self.shared.book.note(name, address);
    }

    /// Only these peers are there: nobody else need be asked for anything.
    pub(crate) fn set_there(&self, there: &HashSet<Name>) {
        self.shared.book.set_there(there);
    }

    /// How others get what is held here.
    pub(crate) fn origin(&self) -> Origin {
        self.shared.origin()
    }

    /// What is held here.
    pub(crate) fn depot(&self) -> &Arc<Depot> {
        &self.shared.depot
    }

    /// Gets copies of what others have, in the background, and keeps them until the run is [forgotten](Self::forget).
    /// `then` hears whether they are here.
    pub(crate) fn keep(
        &self,
        (run, workflow): (i64, Id),
        files: Vec<Produced>,
        holders: Vec<Origin>,
        then: impl FnOnce(Result<(), String>) + Send + 'static,
    ) {
        let shared = self.shared.clone();
        spawn("keep", move || {
            shared.remember(run, workflow);
            then(files.iter().try_for_each(|file| shared.keep(run, file, &holders)));
        });
    }

    /// Gets all that came of a workflow, in the background, and keeps it until the run is [forgotten](Self::forget). `then`
    /// hears whether it is here, or what nobody has.
    pub(crate) fn gather(
        &self,
        workflow: Id,
        finished: Finished,
        then: impl FnOnce(Finished, Result<(), Lost>) + Send + 'static,
    ) {
        let shared = self.shared.clone();
        spawn("gather", move || {
            let gathered = shared.gather(workflow, &finished);
            then(finished, gathered);
        });
    }

    /// The runs of which something is here, and the workflows they are.
    pub(crate) fn runs(&self) -> Vec<(i64, Id)> {
        let directories =
            fs::read_dir(self.shared.config.directory.join("runs")).into_iter().flatten().flatten();
        let known = |entry: fs::DirEntry| {
            let run = entry.file_name().to_str()?.parse().ok()?;
            let id = fs::read_to_string(entry.path().join(WORKFLOW)).ok()?;
            Some((run, id.parse().ok()?))
        };
        directories.filter_map(known).collect()
    }

    /// A run is over: what is kept for it may go, and what it has left here goes.
    pub(crate) fn forget(&self, run: i64) {
        self.agent.release(&[RunId(run)], &[]);
        if !self.shared.state().running.keys().any(|a| a.chain.run.0 == run) {
            let _ = fs::remove_dir_all(self.shared.run_directory(run));
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        for running in self.shared.state().running.values_mut() {
            running.stopped = true;
        }
        self.agent.interrupt();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn origin(&self) -> Origin {
        Origin::Agent { name: self.config.name.clone(), address: self.depot.address().clone() }
    }

    fn run_directory(&self, run: i64) -> PathBuf {
        self.config.directory.join("runs").join(run.to_string())
    }

    /// Brings what a task reads, and lets it be executed.
    fn supply(self: &Arc<Self>, attempt: Attempt) {
        let (items, others) = {
            let state = self.state();
            let Some(running) = state.running.get(&attempt) else { return };
            (running.items.clone(), running.others.clone())
        };
        let is_wanted = || self.state().running.get(&attempt).is_some_and(|r| !r.stopped);
        let pins =
            match bring_all(&self.depot, &items, Holders { book: &self.book, others: &others }, &is_wanted) {
                Some(Ok(pins)) => pins,
                Some(Err(ending)) => return self.end(attempt, Some(ending)),
                None => return self.end(attempt, None),
            };
        let mut state = self.state();
        let Some(running) = state.running.get_mut(&attempt) else { return };
        let agent = self.agent.get().and_then(Weak::upgrade).filter(|_| !running.stopped);
        let Some(agent) = agent else {
            drop(state);
            return self.end(attempt, None);
        };
        running.pins = pins;
        running.tries += 1;
        // It is here, so nobody has to be asked for it.
        let here = |item: &Item| Supply { sources: Vec::new(), ..item.supply.clone() };
        let mut chain = running.job.chain.clone();
        if chain.exclusive {
            // To try again is to start it twice.
            chain.executables.iter_mut().for_each(|task| task.retries = None);
        }
        let job = Job {
            attempt,
            chain: Arc::new(chain),
            context: Arc::new(self.place(&running.job.context, running.epoch)),
            supplies: items.iter().map(here).collect(),
            received: true,
        };
        // With the lock, so that whoever stops it finds it either here or there.
        agent.assign(vec![job]);
    }

    /// Where a run lives on this machine. Each lease has a place of its own.
    fn place(&self, context: &RunContext, epoch: u32) -> RunContext {
        let run = self.run_directory(context.run.0);
        RunContext {
            work: run.join("work").join(epoch.to_string()),
            logs: run.join("logs"),
            state: self.config.directory.clone(),
            ..context.clone()
        }
    }

    fn hear(self: &Arc<Self>, event: AgentEvent) {
        let AgentEvent::Ended { attempt, outcome, .. } = event else { return };
        let failed = |failure: Box<TaskFailure>| Some(TaskEnding::Failed(failure));
        let ending = match outcome {
            Outcome::Succeeded(results) => Some(TaskEnding::Done { results, holders: vec![self.origin()] }),
            Outcome::Failed(failure) | Outcome::Cancelled(failure) => failed(failure),
            Outcome::Interrupted => None,
            Outcome::Unsupplied(why) => {
                let again = |r: &Running| r.tries < TRIES && !r.stopped;
                if self.state().running.get(&attempt).is_some_and(again) {
                    let shared = self.clone();
                    return spawn("bring", move || shared.supply(attempt));
                }
                failed(Box::new(TaskFailure {
                    message: why.message,
                    help: why.help,
                    ..TaskFailure::default()
                }))
            }
        };
        self.end(attempt, ending);
    }

    /// A task is not here any more. Says what came of it, unless nobody wants to know.
    fn end(&self, attempt: Attempt, ending: Option<TaskEnding>) {
        let mut state = self.state();
        let Some(running) = state.running.remove(&attempt) else { return };
        state.free.give(&running.job.chain.resources);
        drop(state);
        let Running { task, epoch, job, stopped, .. } = running;
        let Some(mut ending) = ending.filter(|_| !stopped) else { return };
        if let TaskEnding::Failed(failure) = &mut ending
            && failure.task.is_empty()
        {
            failure.task = job.chain.executables.first().map(|t| t.id.clone()).unwrap_or_default();
        }
        (self.report)(Executed { task, epoch, ending: ending.to_ending() });
    }

    /// Writes down of which workflow a run is, so that it can be asked later whether anybody still needs it.
    fn remember(&self, run: i64, workflow: Id) {
        let directory = self.run_directory(run);
        let note = directory.join(WORKFLOW);
        if !note.exists() {
            // Without it the run is never forgotten, which only costs room.
            let _ = fs::create_dir_all(&directory).and_then(|()| fs::write(note, workflow.to_string()));
        }
    }

    fn gather(&self, workflow: Id, finished: &Finished) -> Result<(), Lost> {
        self.remember(finished.run, workflow);
        let holders = Holders { book: &self.book, others: &[] };
        let _pins = match bring_all(&self.depot, &finished.files, holders, &|| true) {
            Some(Err(TaskEnding::Lost(lost))) => return Err(lost),
            Some(Err(TaskEnding::Failed(failure))) => {
                return Err(Lost { of: 0, name: failure.task, message: failure.message });
            }
            brought => brought,
        };
        for Item { supply, .. } in &finished.files {
            let key = format!("{}/{}", finished.run, supply.name);
            let kept = self.depot.holdings().keep(&key, &supply.artifact);
            kept.map_err(|e| Lost { of: 0, name: supply.name.clone(), message: e.to_string() })?;
        }
        Ok(())
    }

    fn keep(&self, run: i64, produced: &Produced, holders: &[Origin]) -> Result<(), String> {
        let Produced { name, artifact } = produced.clone();
        let supply = Supply { name: name.clone(), artifact, parts: Vec::new(), sources: holders.to_vec() };
        let _pin = self.depot.bring(&supply).map_err(|why| why.message)?.pin;
        self.depot.holdings().keep(&format!("{run}/{name}"), &artifact).map_err(|e| e.to_string())
    }
}

/// Does something beside everything else. Where no thread can be had, it is done here and now.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let run = move || take(&theirs).map_or((), |work| work());
    if thread::Builder::new().name(name.to_owned()).spawn(run).is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}
