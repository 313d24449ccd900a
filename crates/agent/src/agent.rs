//! Slots that take chains from a queue and execute them.

use crate::cache::Cache;
use crate::execute::{Executor, attempt_mark, now_millis};
use crate::process::{Stop, Wish, adopt_orphans, end_orphans};
use crate::roster::Roster;
use catena_model::chain::{AgentEvent, Attempt, Outcome, ProcessChain, RunContext, RunId, TaskResult};
use catena_model::{Name, Resources};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
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
}

/// Executes chains.
pub struct Agent {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    config: AgentConfig,
    cache: Option<Arc<Cache>>,
    roster: Roster,
    report: Box<dyn Fn(AgentEvent) + Send + Sync>,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Counts assignments, to notice one without taking the lock.
    arrivals: AtomicU64,
    processors: usize,
}

/// How long a slot waits actively for its next chain before it goes to sleep.
const ACTIVE_WAIT: Duration = Duration::from_micros(300);

struct Queue {
    waiting: BTreeMap<QueueKey, Job>,
    free: Resources,
    running: HashMap<Attempt, (RunId, Arc<Stop>)>,
    idle: usize,
    /// How often the first waiting chain did not fit and another one was started.
    passed_by: u32,
    closing: bool,
    last_orphan_check: Instant,
    /// The state directory of the chains seen so far.
    state: Option<String>,
}

/// Processes that escape from their task's group are looked for this often.
const ORPHAN_CHECK: Duration = Duration::from_millis(200);

/// So often a chain that needs more than is free is passed by.
const MAX_PASSED_BY: u32 = 64;

/// Orders chains by priority, then age.
type QueueKey = (Reverse<i32>, RunId, u64, u32);

impl Agent {
    /// Starts an agent that reports to `report`.
    pub fn start(
        config: AgentConfig,
        cache: Option<Arc<Cache>>,
        roster: Roster,
        report: impl Fn(AgentEvent) + Send + Sync + 'static,
    ) -> Self {
        adopt_orphans();
        let queue = Queue {
            waiting: BTreeMap::new(),
            free: config.resources.clone(),
            running: HashMap::new(),
            idle: 0,
            passed_by: 0,
            closing: false,
            last_orphan_check: Instant::now(),
            state: None,
        };
        let shared = Shared {
            config,
            cache,
            roster,
            report: Box::new(report),
            queue: Mutex::new(queue),
            changed: Condvar::new(),
            arrivals: AtomicU64::new(0),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        };
        Self { shared: Arc::new(shared), threads: Mutex::new(Vec::new()) }
    }

    /// Gives the agent chains. It executes them as soon as it has room.
    pub fn assign(&self, jobs: Vec<Job>) {
        if self.shared.config.mode == Mode::Pretend {
            for job in jobs {
                self.pretend(&job);
            }
            return;
        }
        let mut queue = self.shared.queue();
        for job in jobs {
            let Attempt { chain, number } = job.attempt;
            queue.waiting.insert((Reverse(job.chain.priority), chain.run, chain.seq, number), job);
        }
        let startable = queue.startable();
        for _ in queue.idle..startable {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("slot".to_owned()).stack_size(1 << 20);
            match thread.spawn(move || shared.slot()) {
                Ok(handle) => {
                    queue.idle += 1;
                    self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
                }
                // With at least one thread everything is executed, only later.
                Err(_) => break,
            }
        }
        drop(queue);
        self.shared.arrivals.fetch_add(1, Ordering::Release);
        self.shared.changed.notify_all();
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
        let chosen: Vec<_> =
            queue.waiting.iter().filter(|(_, j)| which(j.attempt)).map(|(k, _)| *k).collect();
        let dropped: Vec<Job> = chosen.iter().filter_map(|k| queue.waiting.remove(k)).collect();
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
            });
        }
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
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            let _ = thread.join();
        }
        if let Some(state) = self.shared.queue().state.clone() {
            end_orphans(&state, |_| false);
        }
    }
}

impl Queue {
    /// How many of the waiting chains fit into what is free.
    fn startable(&self) -> usize {
        let mut free = self.free.clone();
        let mut n = 0;
        for job in self.waiting.values() {
            if !free.fits(&job.chain.resources) {
                break;
            }
            free.take(&job.chain.resources);
            n += 1;
        }
        n
    }

    /// The first waiting chain that fits into what is free. One that needs much is not passed by for ever.
    fn next(&mut self) -> Option<Job> {
        let free = &self.free;
        let mut waiting = self.waiting.iter();
        let (place, key) = waiting
            .by_ref()
            .enumerate()
            .find(|(_, (_, j))| free.fits(&j.chain.resources))
            .map(|(i, (k, _))| (i, *k))?;
        if place > 0 {
            if self.passed_by >= MAX_PASSED_BY {
                return None;
            }
            self.passed_by += 1;
        } else {
            self.passed_by = 0;
        }
        self.waiting.remove(&key)
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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
            roster: &self.roster,
            report: &*self.report,
        };
        let mut queue = self.queue();
        loop {
            let Some(job) = queue.next() else {
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
            let (outcome, keys) = executor.chain(&job, &stop);
            let millis = clock.elapsed().as_secs_f64() * 1e3;
            queue = self.queue();
            queue.free.give(&job.chain.resources);
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
            });
            executor.remember(&job, &keys);
            queue = self.queue();
        }
    }
}
