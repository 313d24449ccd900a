//! Slots that take chains from a queue and execute them.

use crate::cache::Cache;
use crate::execute::{Executor, attempt_mark, now_millis};
use crate::process::{Stop, Wish, adopt_orphans, end_orphans};
use crate::roster::Roster;
use crate::supply::{Stock, bring, inventory, keep, kept_runs, release};
use catena_data::Depot;
use catena_model::chain::{
    AgentEvent, Attempt, History, Neighbour, Origin, Outcome, Phase, ProcessChain, RunContext, RunId, Supply,
    TaskResult,
};
use catena_model::{Name, Resources};
use catena_schedule::ReadyQueue;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What an agent is and has.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its name.
    pub id: Name,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
    /// Whether it executes tasks or only says so.
    pub mode: Mode,
    /// Whether to find out why a task has to run.
    pub explain: bool,
    /// The shell for scripts and its arguments before the script.
    pub shell: (PathBuf, Vec<OsString>),
}

/// Whether tasks are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are.
    Execute,
    /// Every task succeeds at once and nothing is started.
    Pretend,
}

impl AgentConfig {
    /// The strictest shell there is: bash stops at the first command that fails, also in pipes.
    pub fn find_shell() -> (PathBuf, Vec<OsString>) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bash = std::env::split_paths(&path).map(|d| d.join("bash")).find(|f| f.is_file());
        match bash {
            Some(bash) => (bash, ["-euo", "pipefail", "-c"].map(OsString::from).to_vec()),
            None => (PathBuf::from("/bin/sh"), ["-euc"].map(OsString::from).to_vec()),
        }
    }
}

/// A chain to execute.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which attempt at which chain.
    pub attempt: Attempt,
    /// The chain.
    pub chain: Arc<ProcessChain>,
    /// Where it lives.
    pub context: Arc<RunContext>,
    /// What it reads, where agents have files of their own.
    pub supplies: Vec<Supply>,
    /// Another agent has given it away; it is not given away again.
    pub received: bool,
}

/// Executes chains.
pub struct Agent {
    shared: Arc<Shared>,
}

struct Shared {
    config: AgentConfig,
    cache: Option<Arc<Cache>>,
    depot: Option<Arc<Depot>>,
    roster: Roster,
    report: Box<dyn Fn(AgentEvent) + Send + Sync>,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Counts assignments, to notice one without taking the lock.
    arrivals: AtomicU64,
    processors: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// How fast others are expected to send before anything is known, in bytes per millisecond.
const EXPECTED_SPEED: f64 = 100_000.0;
/// Transfers of fewer bytes say little about that.
const TELLING: u64 = 256 << 10;
/// How much something new changes what is believed.
const LEARNING: f64 = 0.2;

/// How long a slot waits actively for its next chain before it goes to sleep.
const ACTIVE_WAIT: Duration = Duration::from_micros(300);

struct Queue {
    /// What waits, by priority, by how much comes after it, then by age.
    order: ReadyQueue<Attempt, (i32, u64)>,
    waiting: HashMap<Attempt, Waiting>,
    free: Resources,
    running: HashMap<Attempt, (RunId, Arc<Stop>)>,
    idle: usize,
    /// Threads that bring what chains read.
    bringing: usize,
    /// How often the first waiting chain did not fit and another one was started.
    passed_by: u32,
    closing: bool,
    last_orphan_check: Instant,
    /// The state directory of the chains seen so far.
    state: Option<String>,
    /// How long chains take here, in milliseconds.
    usual: f64,
    /// How fast others send, in bytes per millisecond.
    speed: f64,
}

/// A chain that waits for its turn.
struct Waiting {
    job: Job,
    stage: Stage,
    history: History,
}

/// Whether what a chain reads is here.
enum Stage {
    /// It has to be brought.
    Wanted,
    /// It is being brought.
    Coming,
    /// It is here.
    Here(Stock),
}

impl Waiting {
    fn is_here(&self) -> bool {
        matches!(self.stage, Stage::Here(_))
    }
}

/// So many chains get what they read at the same time: enough to use a network whose answers take their time, and few
/// enough that the most urgent chain is served first.
const BRINGERS: usize = 2;

/// Processes that escape from their task's group are looked for this often.
const ORPHAN_CHECK: Duration = Duration::from_millis(200);

/// So often a chain that needs more than is free is passed by.
const MAX_PASSED_BY: u32 = 64;

impl Agent {
    /// Starts an agent that reports to `report`. With a depot it has files of its own.
    pub fn start(
        config: AgentConfig,
        cache: Option<Arc<Cache>>,
        depot: Option<Arc<Depot>>,
        roster: Roster,
        report: impl Fn(AgentEvent) + Send + Sync + 'static,
    ) -> Self {
        adopt_orphans();
        let queue = Queue {
            order: ReadyQueue::default(),
            waiting: HashMap::new(),
            free: config.resources.clone(),
            running: HashMap::new(),
            idle: 0,
            bringing: 0,
            passed_by: 0,
            closing: false,
            last_orphan_check: Instant::now(),
            state: None,
            usual: 0.0,
            speed: EXPECTED_SPEED,
        };
        let shared = Shared {
            config,
            cache,
            depot,
            roster,
            report: Box::new(report),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            arrivals: AtomicU64::new(0),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            threads: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Gives the agent chains. It executes them as soon as it has room.
    pub fn assign(&self, jobs: Vec<Job>) {
        if self.shared.config.mode == Mode::Pretend {
            for job in jobs {
                self.pretend(&job);
            }
            return;
        }
        let has_depot = self.shared.depot.is_some();
        let mut queue = self.shared.queue();
        for job in jobs {
            let (attempt, rank) = (job.attempt, (job.chain.priority, job.chain.ahead));
            queue.order.push(attempt, rank, 1, !job.received);
            let waiting = if has_depot {
                let history = vec![(Phase::Queued, now_millis())];
                Waiting { job, stage: Stage::Wanted, history }
            } else {
                Waiting { job, stage: Stage::Here(Stock::default()), history: History::new() }
            };
            queue.waiting.insert(attempt, waiting);
        }
        let wanted = queue.waiting.values().filter(|w| matches!(w.stage, Stage::Wanted)).count();
        for _ in queue.bringing..wanted.min(BRINGERS) {
            queue.bringing += usize::from(self.shared.spawn("bring", Shared::bring));
        }
        self.shared.wake_slots(queue);
    }

    /// Every task succeeds at once, with the outputs it was planned to have.
    fn pretend(&self, job: &Job) {
        let started = now_millis();
        let outputs = |t: &catena_model::chain::Executable| {
            t.outputs().map(|o| vec![o.variable.value.to_string()]).collect()
        };
        let results = job.chain.executables.iter().map(|t| TaskResult {
            outputs: outputs(t),
            started,
            attempts: 1,
            ..TaskResult::default()
        });
        let outcome = Outcome::Succeeded(results.collect());
        (self.shared.report)(AgentEvent::Ended {
            attempt: job.attempt,
            outcome,
            started,
            ended: started,
            millis: 0.0,
            history: History::new(),
        });
    }

    /// Stops all chains of a run for good.
    pub fn cancel(&self, run: RunId) {
        self.stop(Wish::Cancel, |a| a.chain.run == run);
    }

    /// Stops everything; chains can go on later.
    pub fn interrupt(&self) {
        self.stop(Wish::Interrupt, |_| true);
    }

    /// Gives chains back that have not started yet.
    pub fn give_back(&self, attempts: &[Attempt]) {
        self.drop_waiting(|a| attempts.contains(&a));
    }

    /// Gives chains of a run back that have not started yet.
    pub fn hold(&self, run: RunId) {
        self.drop_waiting(|a| a.chain.run == run);
    }

    /// Stops these attempts; somebody else has the chains.
    pub fn stop_attempts(&self, attempts: &[Attempt]) {
        if !attempts.is_empty() {
            self.stop(Wish::Interrupt, |a| attempts.contains(&a));
        }
    }

    fn stop(&self, wish: Wish, which: impl Fn(Attempt) -> bool) {
        self.drop_waiting(&which);
        let queue = self.shared.queue();
        for (_, (_, stop)) in queue.running.iter().filter(|(attempt, _)| which(**attempt)) {
            stop.ask(wish);
        }
    }

    fn drop_waiting(&self, which: impl Fn(Attempt) -> bool) {
        let mut queue = self.shared.queue();
        let chosen: Vec<Attempt> = queue.order.tasks().filter(|a| which(*a)).collect();
        let dropped: Vec<Job> = chosen.iter().filter_map(|a| queue.take(*a)).map(|w| w.job).collect();
        drop(queue);
        for job in dropped {
            let now = now_millis();
            // What never started can always run elsewhere; whoever cancels a run knows not to ask for it.
            (self.shared.report)(AgentEvent::Ended {
                attempt: job.attempt,
                outcome: Outcome::Interrupted,
                started: now,
                ended: now,
                millis: 0.0,
                history: History::new(),
            });
        }
    }

    /// Gets something and keeps it for a run, beside everything else.
    pub fn keep(&self, run: RunId, supply: Supply) {
        let Some(depot) = self.shared.depot.clone() else { return };
        let shared = self.shared.clone();
        // Whoever wants it kept asks again if it does not hear of it.
        let _ = std::thread::Builder::new().name("keep".to_owned()).spawn(move || {
            keep(&depot, run, &supply, &*shared.report);
        });
    }

    /// What it keeps for runs that are over, and files that nobody will read any more, may go.
    pub fn release(&self, runs: &[RunId], files: &[(RunId, Name)]) {
        if let Some(depot) = &self.shared.depot {
            release(depot, runs, files, &*self.shared.report);
        }
    }

    /// Says everything that it holds.
    pub fn inventory(&self) {
        if let Some(depot) = &self.shared.depot {
            inventory(depot, &*self.shared.report);
        }
    }

    /// The runs for which it keeps files.
    pub fn keeps(&self) -> Vec<RunId> {
        self.shared.depot.as_ref().map(|depot| kept_runs(depot)).unwrap_or_default()
    }

    /// How many chains of its own wait here, and whether it could start another one at once.
    pub fn backlog(&self) -> Backlog {
        let queue = self.shared.queue();
        let own = queue.waiting.values().filter(|w| !w.job.received).count();
        let is_idle = queue.waiting.is_empty() && queue.free.cpus >= 1000;
        Backlog { own, waiting: queue.waiting.len(), is_idle }
    }

    /// Takes chains out that are worth giving to another agent: half of its own, the least urgent first, if they would
    /// wait here for longer than it takes to bring what they read there.
    pub fn gift(&self, to: &Neighbour) -> Vec<Attempt> {
        let mut queue = self.shared.queue();
        let usual = queue.usual;
        let slots = (self.shared.config.resources.cpus / 1000).max(1) as f64;
        let place: HashMap<Attempt, usize> = queue.order.tasks().enumerate().map(|(n, a)| (a, n)).collect();
        let is_worth = |attempt: Attempt| {
            let Some(Waiting { job, .. }) = queue.waiting.get(&attempt) else { return false };
            let wait = usual * (place[&attempt] as f64 + 1.0) / slots;
            let bytes: u64 =
                job.supplies.iter().filter(|s| !has(s, &to.agent)).map(|s| s.artifact.bytes()).sum();
            to.can(&job.chain.required_capabilities, &job.chain.resources)
                && bytes as f64 / queue.speed < wait
        };
        let gift = queue.order.gift(is_worth);
        for attempt in &gift {
            queue.take(*attempt);
        }
        gift
    }

    /// Whether every slot has more to do when it is done with what it does now.
    pub fn has_backlog(&self) -> bool {
        let queue = self.shared.queue();
        queue.waiting.len() > 2 * queue.running.len().max(1)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.interrupt();
        self.shared.queue().closing = true;
        self.shared.changed.notify_all();
        let threads =
            std::mem::take(&mut *self.shared.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
        if let Some(state) = self.shared.queue().state.clone() {
            end_orphans(&state, |_| false);
        }
    }
}

/// What waits at an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Chains that it may give away.
    pub own: usize,
    /// All chains.
    pub waiting: usize,
    /// Whether it could start another one at once.
    pub is_idle: bool,
}

/// Whether an agent has what a chain reads.
fn has(supply: &Supply, agent: &Name) -> bool {
    supply.sources.iter().any(|s| matches!(s, Origin::Agent { name, .. } if name == agent))
}

impl Queue {
    /// Takes a chain out that waits.
    fn take(&mut self, attempt: Attempt) -> Option<Waiting> {
        self.order.remove(attempt);
        self.waiting.remove(&attempt)
    }

    /// Those that have what they read, in their order.
    fn here(&self) -> impl Iterator<Item = &Waiting> {
        self.order.tasks().filter_map(|a| self.waiting.get(&a)).filter(|w| w.is_here())
    }

    /// How many of the waiting chains fit into what is free.
    fn startable(&self) -> usize {
        let mut free = self.free.clone();
        let mut n = 0;
        for Waiting { job, .. } in self.here() {
            if !free.fits(&job.chain.resources) {
                break;
            }
            free.take(&job.chain.resources);
            n += 1;
        }
        n
    }

    /// The first waiting chain that has what it reads and fits into what is free. One that needs much is not passed by
    /// for ever.
    fn next(&mut self) -> Option<Waiting> {
        let fits = |w: &Waiting| self.free.fits(&w.job.chain.resources);
        let (place, attempt) =
            self.here().enumerate().find(|(_, w)| fits(w)).map(|(i, w)| (i, w.job.attempt))?;
        if place > 0 {
            if self.passed_by >= MAX_PASSED_BY {
                return None;
            }
            self.passed_by += 1;
        } else {
            self.passed_by = 0;
        }
        self.take(attempt)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread. Says whether there is one more.
    fn spawn(self: &Arc<Self>, name: &str, work: fn(&Arc<Self>)) -> bool {
        let shared = self.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(1 << 20);
        let spawned = thread.spawn(move || work(&shared));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|t| !t.is_finished());
        // With at least one thread everything is done, only later.
        spawned.map(|handle| threads.push(handle)).is_ok()
    }

    /// Sees to it that somebody executes what can start.
    fn wake_slots(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        for _ in queue.idle..queue.startable() {
            queue.idle += usize::from(self.spawn("slot", |shared| shared.slot()));
        }
        drop(queue);
        self.arrivals.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    /// Brings what waiting chains read, the most urgent first, until nothing is wanted.
    fn bring(self: &Arc<Self>) {
        let Some(depot) = &self.depot else { return };
        loop {
            let mut queue = self.queue();
            let is_wanted =
                |a: &Attempt| queue.waiting.get(a).is_some_and(|w| matches!(w.stage, Stage::Wanted));
            let wanted = queue.order.tasks().find(is_wanted).filter(|_| !queue.closing);
            let Some(waiting) = wanted.and_then(|a| queue.waiting.get_mut(&a)) else {
                queue.bringing -= 1;
                return;
            };
            let (job, at) = (waiting.job.clone(), now_millis());
            waiting.stage = Stage::Coming;
            waiting.history.push((Phase::StageIn, at));
            drop(queue);
            (self.report)(AgentEvent::Phase { attempt: job.attempt, phase: Phase::StageIn, at });
            let stock = bring(depot, &job, &*self.report);
            let mut queue = self.queue();
            match stock {
                Ok(stock) => {
                    if stock.moved.0 >= TELLING {
                        let seen = stock.moved.0 as f64 / stock.moved.1.max(0.1);
                        queue.speed += (seen - queue.speed) * LEARNING;
                    }
                    if let Some(waiting) = queue.waiting.get_mut(&job.attempt) {
                        waiting.stage = Stage::Here(stock);
                    }
                    self.wake_slots(queue);
                }
                Err(why) => {
                    // Unless somebody has taken it back meanwhile.
                    let waiting = queue.take(job.attempt);
                    drop(queue);
                    if let Some(Waiting { history, .. }) = waiting {
                        (self.report)(AgentEvent::Ended {
                            attempt: job.attempt,
                            outcome: Outcome::Unsupplied(Box::new(why)),
                            started: at,
                            ended: now_millis(),
                            millis: 0.0,
                            history,
                        });
                    }
                }
            }
        }
    }

    /// Waits until something changes. If a processor is idle anyway, the first moments actively: being woken
    /// up takes longer than a scheduler needs to answer.
    fn wait_for_work<'q>(&'q self, queue: MutexGuard<'q, Queue>) -> MutexGuard<'q, Queue> {
        let arrivals = self.arrivals.load(Ordering::Acquire);
        if queue.running.len() + 1 < self.processors && !queue.closing {
            drop(queue);
            let start = Instant::now();
            while start.elapsed() < ACTIVE_WAIT {
                if self.arrivals.load(Ordering::Acquire) != arrivals {
                    return self.queue();
                }
                for _ in 0..20 {
                    std::hint::spin_loop();
                }
            }
            let queue = self.queue();
            if self.arrivals.load(Ordering::Acquire) != arrivals || queue.closing {
                return queue;
            }
            return self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self) {
        let executor = Executor {
            config: &self.config,
            cache: self.cache.as_deref(),
            depot: self.depot.as_deref(),
            roster: &self.roster,
            report: &*self.report,
        };
        let mut queue = self.queue();
        loop {
            let Some(Waiting { job, stage, mut history }) = queue.next() else {
                if queue.closing {
                    return;
                }
                queue = self.wait_for_work(queue);
                continue;
            };
            queue.idle = queue.idle.saturating_sub(1);
            queue.free.take(&job.chain.resources);
            let stop = Arc::new(Stop::new());
            queue.running.insert(job.attempt, (job.attempt.chain.run, stop.clone()));
            drop(queue);
            let started = now_millis();
            let clock = Instant::now();
            let stock = if let Stage::Here(stock) = stage { stock } else { Stock::default() };
            let (outcome, keys) = executor.chain(&job, &stock, &stop, &mut history);
            // What it has read may go now.
            drop(stock);
            let millis = clock.elapsed().as_secs_f64() * 1e3;
            queue = self.queue();
            queue.free.give(&job.chain.resources);
            queue.usual += (millis - queue.usual) * LEARNING;
            queue.running.remove(&job.attempt);
            queue.idle += 1;
            // A chain that was stopped may have tried to save something from that.
            if queue.last_orphan_check.elapsed() >= ORPHAN_CHECK || stop.wish() != Wish::GoOn {
                queue.last_orphan_check = Instant::now();
                let running: Vec<String> = queue.running.keys().map(|a| attempt_mark(*a)).collect();
                let state = job.context.state.to_string_lossy().into_owned();
                end_orphans(&state, |attempt| running.iter().any(|r| r == attempt));
                queue.state = Some(state);
            }
            drop(queue);
            (self.report)(AgentEvent::Ended {
                attempt: job.attempt,
                outcome,
                started,
                ended: now_millis(),
                millis,
                history,
            });
            executor.remember(&job, &keys);
            queue = self.queue();
        }
    }
}
