//! Controller and scheduler of one instance: plans, claims, assigns, takes results in, ends runs.
//!
//! One turn of the loop takes in everything that has arrived, decides, gives agents new chains, and writes
//! all of it in one transaction, so that however many tasks finish at once, the disk sees one write.
//!
//! Agents get their chains before the write: this instance owns its store, so nobody else can have given
//! them away, and processes start while the disk is busy. If the instance dies in between, what was not
//! written runs again, in directories of its own, and replaces what it left.

mod dag;

use crate::clock::Clock;
use crate::control::{Planned, RunControl, Verdict};
use crate::dagman::DagFiles;
use crate::event::{FailedTask, RunEvent, RunSummary};
use crate::plan::{Blueprint, Plan};
use crate::resume::replay;
use crate::settle::{Ended, Settled};
use catena_bus::{Assignment, Bus, Message, Subscription, subject};
use catena_model::Name;
use catena_model::chain::{
    AgentEvent, Attempt, ChainKey, ChainState, Outcome, ProcessChain, RunContext, RunId, TaskFailure,
    TaskResult,
};
use catena_plan::{NodeStatus, REMOVED};
use catena_schedule::{AgentInfo, Class, Command, Event, Scheduler, Settings};
use catena_store::{Batch, ChainFilter, Counts, Run, RunChange, RunState, Start, Store, StoreError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::watch;

/// Chains are planned ahead until this many wait for an agent; the rest stays in the planner.
const REGISTERED_AHEAD: u64 = 2048;
/// How many chains one turn plans at most.
const PLAN_PER_TURN: usize = 2048;
/// How many chains are read from the store at a time.
const PAGE: usize = 1024;
/// How often the store is looked at for what others have changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait actively for the end of a task before going to sleep.
const ACTIVE_WAIT: Duration = Duration::from_millis(2);
/// How many failures a summary names.
const FAILURES_KEPT: usize = 20;

/// Something that stops the whole instance.
#[derive(Debug, Error)]
pub enum DriverError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the store has does not fit the workflow.
    #[error(
        "run {run} cannot go on: {detail}. Start it anew with `catena run --new`; unchanged results are taken from the cache"
    )]
    Replay {
        /// The run.
        run: RunId,
        /// What does not fit.
        detail: String,
    },
}

/// Whether the instance should stop, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopWish {
    /// Go on.
    #[default]
    No,
    /// Stop tasks; they can go on later.
    Interrupt,
    /// Stop for good.
    Cancel,
}

/// Controller and scheduler of one run.
pub struct Driver<'o> {
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    inbox: Subscription,
    observer: &'o mut dyn FnMut(RunEvent),
    scheduler: Scheduler,
    control: RunControl,
    context: Arc<RunContext>,
    /// Chains that are with agents.
    live: HashMap<ChainKey, Live>,
    /// Chains that wait for an agent: by class, then by rank.
    waiting: HashMap<Name, BTreeMap<(Reverse<i64>, u64), Waiting>>,
    /// Chains that wait for their next attempt, by the time it may start.
    paused: BTreeMap<(Instant, u64), Waiting>,
    agents: Vec<Name>,
    counts: Counts,
    done: Done,
    wish: StopWish,
    fail_fast: bool,
    clock: Clock,
    failures: Vec<FailedTask>,
    last_changes: u64,
    unsatisfiable: Vec<String>,
    processors: usize,
    /// What a DAG wants to be written about it.
    files: Option<DagFiles>,
    /// Attempts at chains that were taken away before an agent had them.
    removed: Vec<Attempt>,
    /// Chains that nobody wants any more.
    unwanted: HashSet<ChainKey>,
    warned: HashSet<String>,
}

/// A chain that waits.
#[derive(Clone)]
struct Waiting {
    chain: Arc<ProcessChain>,
    class: Class,
    rank: i64,
    /// How often it was given to an agent, and how often it failed there.
    attempts: u32,
    failures: u32,
}

/// A chain that an agent has.
struct Live {
    attempt: u32,
    key: Name,
    waiting: Waiting,
}

#[derive(Default)]
struct Done {
    /// Tasks that were done before this session.
    earlier: u64,
    tasks: u64,
    cached: u64,
}

/// What one turn has taken in and wants written.
#[derive(Default)]
struct Turn {
    batch: Batch,
    events: Vec<RunEvent>,
}

impl<'o> Driver<'o> {
    /// Prepares to drive a run from where the store says that it stands. Chains that were with agents wait
    /// again.
    pub async fn open(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        run: Run,
        mut blueprint: Blueprint,
        context: RunContext,
        observer: &'o mut dyn FnMut(RunEvent),
    ) -> Result<Self, DriverError> {
        store.release_running(run.id).await?;
        let files = match &mut blueprint {
            Blueprint::Workflow { .. } => None,
            Blueprint::Dag { files, .. } => files.take(),
        };
        let mut settings = Settings::default();
        if blueprint.is_strict() {
            settings.look_ahead = Duration::ZERO;
        }
        let control = replay(&*store, run, blueprint, Settings::default().aging).await?;
        let inbox = bus.subscribe(subject::SCHEDULERS).await;
        Ok(Self {
            store,
            bus,
            inbox,
            observer,
            scheduler: Scheduler::new(settings),
            control,
            context: Arc::new(context),
            live: HashMap::new(),
            waiting: HashMap::new(),
            paused: BTreeMap::new(),
            agents: Vec::new(),
            counts: Counts::default(),
            done: Done::default(),
            wish: StopWish::No,
            fail_fast: false,
            clock: Clock::start(),
            failures: Vec::new(),
            last_changes: 0,
            unsatisfiable: Vec::new(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            files,
            removed: Vec::new(),
            unwanted: HashSet::new(),
            warned: HashSet::new(),
        })
    }

    /// Stop at the first failure in place of doing what can still be done.
    #[must_use]
    pub fn fail_fast(mut self, yes: bool) -> Self {
        self.fail_fast = yes;
        self
    }

    /// Drives the run to its end, or until `stop` says otherwise.
    pub async fn drive(
        mut self,
        mut stop: watch::Receiver<StopWish>,
        resumed: bool,
    ) -> Result<RunSummary, DriverError> {
        self.begin(resumed).await?;
        let mut messages = Vec::new();
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            // What was planned ahead may be more than one turn may take.
            let more = self.turn(std::mem::take(&mut messages)).await?;
            if self.is_over() {
                return self.end().await;
            }
            if more || self.watch_closely(&mut messages).await {
                continue;
            }
            let wake = self.paused.keys().next().map(|(t, _)| *t);
            tokio::select! {
                n = self.inbox.receive(&mut messages, 4096) => {
                    if n == 0 {
                        return self.end().await;
                    }
                }
                () = sleep_until(wake) => {}
                _ = look.tick() => self.look().await?,
                Ok(()) = stop.changed() => {
                    let wish = *stop.borrow_and_update();
                    self.stop(wish).await;
                }
            }
        }
    }

    /// Where tasks follow one another on a machine with an idle processor, being woken up takes longer than
    /// everything else between two tasks. So wait actively for a moment. Returns whether something came.
    async fn watch_closely(&mut self, messages: &mut Vec<Message>) -> bool {
        if self.live.is_empty() || self.live.len() >= self.processors {
            return false;
        }
        let start = Instant::now();
        while start.elapsed() < ACTIVE_WAIT {
            if self.inbox.try_receive(messages, 4096) > 0 {
                return true;
            }
            // Gently: the other half of this processor may be running the task.
            for _ in 0..100 {
                std::hint::spin_loop();
            }
            tokio::task::yield_now().await;
        }
        false
    }

    async fn begin(&mut self, resumed: bool) -> Result<(), DriverError> {
        self.last_changes = self.store.foreign_changes().await?;
        self.take_over().await?;
        let change = RunChange {
            state: Some(RunState::Running),
            started: self.control.run().started.is_none().then(|| self.clock.now()),
            ended: Some(None),
            error: Some(None),
            cancel_requested: Some(false),
            ..RunChange::default()
        };
        self.store.change_run(self.control.id(), &change).await?;
        // Whatever is in a chain and does not wait is done.
        let waiting =
            self.waiting.values().flat_map(BTreeMap::values).map(|w| w.chain.executables.len() as u64);
        self.done.earlier = self.control.plan().counts().planned.saturating_sub(waiting.sum());
        let done = self.done.earlier;
        let name = self.control.run().name.clone();
        (self.observer)(RunEvent::Started { run: self.control.id(), name, resumed, done });
        Ok(())
    }

    /// Takes over the chains that wait in the store. There are never many: planning waits for them.
    async fn take_over(&mut self) -> Result<(), DriverError> {
        self.counts = self.store.counts(self.control.id()).await?;
        let mut from = 0;
        loop {
            let registered = Some(ChainState::Registered);
            let filter =
                ChainFilter { state: registered, from, limit: PAGE, payload: true, ..ChainFilter::default() };
            let page = self.store.chains(self.control.id(), &filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            from = last.key.seq + 1;
            for record in page {
                let chain: ProcessChain =
                    serde_json::from_slice(&record.payload).map_err(|e| DriverError::Replay {
                        run: self.control.id(),
                        detail: format!("chain {} is unreadable: {e}", record.key.seq),
                    })?;
                let waiting = Waiting {
                    class: Class::of(&chain),
                    chain: Arc::new(chain),
                    rank: record.rank,
                    attempts: record.attempt,
                    failures: record.failures,
                };
                self.register(record.key.seq, waiting);
            }
        }
    }

    /// One turn. Returns whether there is more to plan right now.
    async fn turn(&mut self, messages: Vec<Message>) -> Result<bool, DriverError> {
        let mut turn = Turn::default();
        for attempt in std::mem::take(&mut self.removed) {
            if let Some(live) = self.live.remove(&attempt.chain) {
                let now = self.clock.now();
                self.ended(attempt, &live, Outcome::Interrupted, (now, now, 0.0), &mut turn);
            }
        }
        for message in messages {
            match message {
                Message::Hello(agent) => {
                    self.agents.push(agent.id.clone());
                    let info = AgentInfo {
                        id: agent.id,
                        capabilities: agent.capabilities,
                        resources: agent.resources,
                    };
                    self.scheduler.handle(Event::AgentJoined(info));
                }
                Message::Report { agent, events } => {
                    for event in events {
                        self.agent_event(&agent, event, &mut turn);
                    }
                }
                _ => {}
            }
        }
        let more = self.plan(&mut turn);
        self.wake_paused();
        if self.assign(&mut turn).await {
            // Let an agent in this process have its chains before the disk is asked to remember them.
            tokio::task::yield_now().await;
        }
        self.store.apply(std::mem::take(&mut turn.batch)).await?;
        let changed = !turn.events.is_empty();
        for event in turn.events {
            (self.observer)(event);
        }
        if changed {
            self.report_progress();
        }
        self.remove_unwanted().await?;
        self.tell_about_nodes();
        Ok(more || !self.removed.is_empty())
    }

    fn report_progress(&mut self) {
        let plan = self.control.plan().counts();
        (self.observer)(RunEvent::Progress {
            run: self.control.id(),
            counts: self.counts,
            tasks_done: self.done.earlier + self.done.tasks,
            tasks_known: plan.planned + plan.waiting,
            growing: plan.open_loops > 0,
        });
    }

    // ----- taking in -------------------------------------------------------------------------

    fn agent_event(&mut self, agent: &Name, event: AgentEvent, turn: &mut Turn) {
        match event {
            AgentEvent::TaskStarted { attempt, index, cached, reason } => {
                let Some(live) = self.live.get(&attempt.chain).filter(|l| l.attempt == attempt.number) else {
                    return;
                };
                let Some(task) = live.waiting.chain.executables.get(index).map(|t| t.id.clone()) else {
                    return;
                };
                if let Some(plan) = self.control.dag() {
                    plan.chain_started(attempt.chain.seq);
                }
                turn.events.push(RunEvent::TaskStarted {
                    run: attempt.chain.run,
                    chain: attempt.chain.seq,
                    attempt: attempt.number,
                    task,
                    cached,
                    reason,
                });
            }
            AgentEvent::Phase { .. } | AgentEvent::Holdings { .. } | AgentEvent::Notice { .. } => {}
            AgentEvent::Ended { attempt, outcome, started, ended, millis, .. } => {
                let Some(live) = self.live.get(&attempt.chain).filter(|l| l.attempt == attempt.number) else {
                    return;
                };
                let class = live.key.clone();
                let millis_busy = (!matches!(outcome, Outcome::Interrupted)).then_some(millis);
                self.scheduler.handle(Event::Ended { agent: agent.clone(), class, millis: millis_busy });
                if let Some(live) = self.live.remove(&attempt.chain) {
                    self.ended(attempt, &live, outcome, (started, ended, millis), turn);
                }
            }
        }
    }

    fn ended(
        &mut self,
        attempt: Attempt,
        live: &Live,
        mut outcome: Outcome,
        (started, ended, millis): (i64, i64, f64),
        turn: &mut Turn,
    ) {
        let Waiting { chain, failures, .. } = &live.waiting;
        let mut cached = 0;
        let mut kept = Vec::new();
        if let Outcome::Succeeded(results) = &mut outcome {
            cached = results.iter().filter(|r| r.cached).count() as u32;
            kept = serde_json::to_vec(results).unwrap_or_default();
            self.done.tasks += results.len() as u64;
            self.done.cached += u64::from(cached);
            // Used at once, in the order of arrival; the journal says the same.
            self.control.use_result(attempt.chain.seq, std::mem::take(results));
        }
        if matches!(outcome, Outcome::Interrupted) && self.unwanted.remove(&attempt.chain) {
            let removed = TaskFailure {
                task: chain.id.clone(),
                message: "it was stopped, because nobody needs it any more".to_owned(),
                exit_code: Some(REMOVED as i32),
                ..TaskFailure::default()
            };
            outcome = Outcome::Cancelled(Box::new(removed));
        }
        if matches!(outcome, Outcome::Interrupted) && self.wish == StopWish::Cancel {
            let message = "stopped by a user".to_owned();
            outcome = Outcome::Cancelled(Box::new(TaskFailure { message, ..TaskFailure::default() }));
        }
        let (files, history) = (Vec::new(), Vec::new());
        let ended = Ended { attempt, chain, failures: *failures, time: (started, ended), files, history };
        let may_retry = self.wish == StopWish::No;
        let Settled { state, failure } =
            ended.settle(outcome, kept, may_retry, self.clock.now(), &mut turn.batch);
        self.moved(ChainState::Running, state);
        if let (Some(failure), true, true) = (&failure, state.is_final(), chain.failure_is_result) {
            let failed = TaskResult { failure: Some(failure.clone()), ..TaskResult::default() };
            self.done.tasks += 1;
            self.control.use_result(attempt.chain.seq, vec![failed]);
        }
        let mut again = live.waiting.clone();
        again.attempts = attempt.number;
        match state {
            ChainState::Registered => return self.register(attempt.chain.seq, again),
            ChainState::Paused => {
                again.failures += 1;
                let pause = chain.retries.map(|r| r.pause_after(again.failures)).unwrap_or_default();
                self.paused.insert((Instant::now() + pause, attempt.chain.seq), again);
            }
            ChainState::Failed | ChainState::Cancelled => {
                if let Some(failure) = failure.as_ref().filter(|_| self.failures.len() < FAILURES_KEPT) {
                    let (chain, attempt) = (attempt.chain.seq, attempt.number);
                    self.failures.push(FailedTask { chain, attempt, failure: (**failure).clone() });
                }
            }
            ChainState::Running | ChainState::Succeeded => {}
        }
        Self::report_end(attempt, live, state, cached, millis, failure, turn);
    }

    fn report_end(
        attempt: Attempt,
        live: &Live,
        state: ChainState,
        cached: u32,
        millis: f64,
        failure: Option<Box<TaskFailure>>,
        turn: &mut Turn,
    ) {
        turn.events.push(RunEvent::ChainEnded {
            run: attempt.chain.run,
            chain: attempt.chain.seq,
            attempt: attempt.number,
            state,
            tasks: live.waiting.chain.executables.iter().map(|t| t.id.clone()).collect(),
            cached,
            millis,
            failure,
        });
    }

    fn moved(&mut self, from: ChainState, to: ChainState) {
        let from = self.counts.of(from);
        *from = from.saturating_sub(1);
        *self.counts.of(to) += 1;
    }

    // ----- planning and scheduling -----------------------------------------------------------

    /// Plans ahead. Returns whether there is more to plan right now.
    fn plan(&mut self, turn: &mut Turn) -> bool {
        let room = REGISTERED_AHEAD.saturating_sub(self.counts.registered) as usize;
        let stopped = self.wish != StopWish::No || self.has_failed_fast();
        let limit = if stopped { 0 } else { room.min(PLAN_PER_TURN) };
        let (planned, failure) = self.control.next_chains(limit, self.clock.now(), &mut turn.batch);
        if let Some(message) = failure {
            turn.events.push(RunEvent::Notice { run: self.control.id(), message });
        }
        let more = planned.len() == PLAN_PER_TURN;
        self.counts.registered += planned.len() as u64;
        for Planned { seq, chain, class, rank } in planned {
            self.register(seq, Waiting { chain, class, rank, attempts: 0, failures: 0 });
        }
        more
    }

    fn has_failed_fast(&self) -> bool {
        // A step of a DAG may fail and be tried again.
        let has_failed = || match self.control.plan() {
            Plan::Workflow(_) => self.counts.failed > 0,
            Plan::Dag(plan) => plan.view(0).statuses().any(|s| s == NodeStatus::Error),
        };
        self.fail_fast && has_failed()
    }

    fn wake_paused(&mut self) {
        let now = Instant::now();
        while let Some(entry) = self.paused.first_entry().filter(|e| e.key().0 <= now) {
            let seq = entry.key().1;
            let chain = entry.remove();
            self.moved(ChainState::Paused, ChainState::Registered);
            self.register(seq, chain);
        }
    }

    /// A chain waits for an agent.
    fn register(&mut self, seq: u64, waiting: Waiting) {
        let (class, rank) = (waiting.class.clone(), waiting.rank);
        self.waiting.entry(class.key()).or_default().insert((Reverse(rank), seq), waiting);
        self.scheduler.handle(Event::Registered { class, count: 1, rank });
    }

    /// Gives agents the chains that the scheduler wants them to have. Returns whether there were any.
    async fn assign(&mut self, turn: &mut Turn) -> bool {
        if self.wish != StopWish::No || self.has_failed_fast() {
            return false;
        }
        for command in self.scheduler.decide(self.clock.now()) {
            match command {
                Command::Claim { agent, class, limit } => self.give(agent, class, limit, turn).await,
                // There is one agent, so nobody waits for what it has.
                Command::Recall { .. } => {}
                // Agents join only after the first turn; until then nothing is missing.
                Command::Unsatisfiable { .. } if self.agents.is_empty() => {}
                Command::Unsatisfiable { reason, .. } => {
                    turn.events.push(RunEvent::Notice { run: self.control.id(), message: reason.clone() });
                    self.unsatisfiable.push(reason);
                }
            }
        }
        !turn.batch.starts.is_empty()
    }

    async fn give(&mut self, agent: Name, class: Name, limit: usize, turn: &mut Turn) {
        let run = self.control.id();
        let waiting = self.waiting.entry(class.clone()).or_default();
        let mut chains = Vec::new();
        let mut last = None;
        let now = self.clock.now();
        while chains.len() < limit
            && let Some(((Reverse(rank), seq), waiting)) = waiting.pop_first()
        {
            let attempt = Attempt { chain: ChainKey { run, seq }, number: waiting.attempts + 1 };
            last = Some(rank);
            chains.push(Assignment::new(attempt, waiting.chain.clone()));
            turn.batch.starts.push(Start { attempt, agent: agent.clone(), now });
            self.live.insert(attempt.chain, Live { attempt: attempt.number, key: class.clone(), waiting });
        }
        let (asked, got) = (limit as u64, chains.len() as u64);
        self.scheduler.handle(Event::Claimed { agent: agent.clone(), class, asked, got, rank: last });
        for _ in 0..got {
            self.moved(ChainState::Registered, ChainState::Running);
        }
        if !chains.is_empty() {
            let message = Message::Assign { chains, context: self.context.clone() };
            self.bus.publish(&subject::agent(&agent), message).await;
        }
    }

    // ----- stopping and ending ---------------------------------------------------------------

    /// Looks at the store: whether somebody has asked to stop the run.
    async fn look(&mut self) -> Result<(), DriverError> {
        let changes = self.store.foreign_changes().await?;
        if changes == self.last_changes {
            return Ok(());
        }
        self.last_changes = changes;
        let run = self.store.run(self.control.id()).await?;
        if run.is_some_and(|r| r.cancel_requested) {
            self.stop(StopWish::Cancel).await;
        }
        Ok(())
    }

    async fn stop(&mut self, wish: StopWish) {
        if wish == StopWish::No || self.wish == StopWish::Cancel {
            return;
        }
        self.wish = wish;
        for agent in &self.agents {
            let message = if wish == StopWish::Cancel {
                Message::Cancel(self.control.id())
            } else {
                Message::Interrupt
            };
            self.bus.publish(&subject::agent(agent), message).await;
        }
    }

    /// Whether nothing more can happen.
    fn is_over(&self) -> bool {
        if !self.live.is_empty() {
            return false;
        }
        if self.wish != StopWish::No || self.has_failed_fast() {
            return true;
        }
        if self.agents.is_empty() || !self.paused.is_empty() {
            return self.counts.registered == 0
                && self.paused.is_empty()
                && self.control.plan().is_finished();
        }
        // With agents that have room and nothing under way, whatever still waits waits in vain.
        self.counts.registered == 0 || !self.unsatisfiable.is_empty()
    }

    async fn end(mut self) -> Result<RunSummary, DriverError> {
        let c = self.counts;
        let mut verdict = self.control.verdict(&c);
        if self.wish == StopWish::Interrupt {
            verdict = Verdict { state: RunState::Interrupted, error: None };
        } else if self.wish == StopWish::Cancel {
            verdict = Verdict { state: RunState::Cancelled, error: None };
        } else if let Some(reason) = self.unsatisfiable.first().filter(|_| !self.control.has_plan_failure()) {
            verdict = Verdict { state: RunState::Failed, error: Some(reason.clone()) };
        }
        if self.wish == StopWish::No && verdict.state == RunState::Succeeded {
            // What failed was made good.
            self.failures.clear();
        }
        let exit_code = self.end_dag(&mut verdict);
        let change = self.control.ending(&verdict, self.clock.now());
        self.store.change_run(self.control.id(), &change).await?;
        self.store.sync().await?;
        let plan = self.control.plan().counts();
        let summary = RunSummary {
            run: self.control.id(),
            name: self.control.run().name.clone(),
            state: verdict.state,
            error: verdict.error,
            counts: c,
            tasks_done: self.done.tasks,
            tasks_cached: self.done.cached,
            tasks_skipped: plan.skipped,
            tasks_blocked: plan.waiting,
            millis: self.clock.elapsed().as_secs_f64() * 1e3,
            results: self.control.plan().results(),
            failures: std::mem::take(&mut self.failures),
            exit_code,
        };
        (self.observer)(RunEvent::Ended(summary.clone()));
        Ok(summary)
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
