//! Controller and scheduler of one instance: plans, claims, assigns, takes results in, ends runs.
//!
//! One turn of the loop takes in everything that has arrived, decides, gives agents new chains, and writes
//! all of it in one transaction, so that however many tasks finish at once, the disk sees one write.
//!
//! Agents get their chains before the write: this instance owns its store, so nobody else can have given
//! them away, and processes start while the disk is busy. If the instance dies in between, what was not
//! written runs again, in directories of its own, and replaces what it left.

use crate::event::{FailedTask, RunEvent, RunSummary};
use catena_bus::{Assignment, Bus, Message, Subscription, subject};
use catena_model::Name;
use catena_model::chain::{
    AgentEvent, Attempt, ChainKey, ChainState, Outcome, ProcessChain, RunContext, RunId, TaskFailure,
    TaskResult,
};
use catena_plan::{PlanError, Planner};
use catena_schedule::{AgentInfo, Class, Command, Event, Scheduler};
use catena_store::{
    Batch, ChainFilter, Counts, Feed, Finish, NewChain, NewChains, Requeue, Run, RunChange, RunState, Start,
    Store, StoreError,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
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
    run: Run,
    context: Arc<RunContext>,
    planner: Planner,
    plan_failure: Option<PlanError>,
    /// Chains that are with agents.
    live: HashMap<ChainKey, Live>,
    /// Chains that wait for an agent: by class, then by priority and age.
    waiting: HashMap<Name, BTreeMap<(Reverse<i32>, u64), Waiting>>,
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
}

/// A chain and how often it was tried.
type Waiting = (Arc<ProcessChain>, u32);

struct Live {
    attempt: u32,
    class: Name,
    chain: Arc<ProcessChain>,
}

#[derive(Default)]
struct Done {
    /// Tasks that were done before this session.
    earlier: u64,
    tasks: u64,
    cached: u64,
}

/// Wall-clock time that a change of the system's clock cannot turn back.
struct Clock {
    start: Instant,
    wall: i64,
}

impl Clock {
    fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        Self { start: Instant::now(), wall }
    }

    fn now(&self) -> i64 {
        self.wall + self.start.elapsed().as_millis() as i64
    }
}

/// What one turn has taken in and wants written.
#[derive(Default)]
struct Turn {
    batch: Batch,
    fed: Vec<u64>,
    fed_after: u64,
    events: Vec<RunEvent>,
}

impl<'o> Driver<'o> {
    /// Prepares to drive a run. `planner` has replayed what the store knows.
    pub async fn new(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        run: Run,
        context: RunContext,
        planner: Planner,
        observer: &'o mut dyn FnMut(RunEvent),
    ) -> Self {
        let inbox = bus.subscribe(subject::SCHEDULER).await;
        Self {
            store,
            bus,
            inbox,
            observer,
            scheduler: Scheduler::default(),
            run,
            context: Arc::new(context),
            planner,
            plan_failure: None,
            live: HashMap::new(),
            waiting: HashMap::new(),
            paused: BTreeMap::new(),
            agents: Vec::new(),
            counts: Counts::default(),
            done: Done::default(),
            wish: StopWish::No,
            fail_fast: false,
            clock: Clock::new(),
            failures: Vec::new(),
            last_changes: 0,
            unsatisfiable: Vec::new(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
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
            started: self.run.started.is_none().then(|| self.clock.now()),
            ended: Some(None),
            error: Some(None),
            cancel_requested: Some(false),
            ..RunChange::default()
        };
        self.store.change_run(self.run.id, &change).await?;
        // Whatever is in a chain and does not wait is done.
        let waiting =
            self.waiting.values().flat_map(BTreeMap::values).map(|(chain, _)| chain.executables.len() as u64);
        self.done.earlier = self.planner.counts().planned.saturating_sub(waiting.sum());
        let done = self.done.earlier;
        (self.observer)(RunEvent::Started { run: self.run.id, name: self.run.name.clone(), resumed, done });
        Ok(())
    }

    /// Takes over the chains that wait in the store. There are never many: planning waits for them.
    async fn take_over(&mut self) -> Result<(), DriverError> {
        self.counts = self.store.counts(self.run.id).await?;
        let mut from = 0;
        loop {
            let registered = Some(ChainState::Registered);
            let filter =
                ChainFilter { state: registered, from, limit: PAGE, payload: true, ..ChainFilter::default() };
            let page = self.store.chains(self.run.id, &filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            from = last.key.seq + 1;
            for record in page {
                let chain = serde_json::from_slice(&record.payload).map_err(|e| DriverError::Replay {
                    run: self.run.id,
                    detail: format!("chain {} is unreadable: {e}", record.key.seq),
                })?;
                self.register(record.key.seq, (Arc::new(chain), record.attempt));
            }
        }
    }

    /// One turn. Returns whether there is more to plan right now.
    async fn turn(&mut self, messages: Vec<Message>) -> Result<bool, DriverError> {
        let mut turn = Turn { fed_after: self.planner.chain_count(), ..Turn::default() };
        for message in messages {
            match message {
                Message::AgentJoined { id, capabilities, resources } => {
                    self.agents.push(id.clone());
                    self.scheduler.handle(Event::AgentJoined(AgentInfo { id, capabilities, resources }));
                }
                Message::Agent { id, events } => {
                    for event in events {
                        self.agent_event(&id, event, &mut turn);
                    }
                }
                Message::Assign { .. } | Message::Cancel(_) | Message::Interrupt | Message::Look => {}
            }
        }
        self.feed(&mut turn);
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
        Ok(more)
    }

    fn report_progress(&mut self) {
        let plan = self.planner.counts();
        (self.observer)(RunEvent::Progress {
            run: self.run.id,
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
                let Some(task) = live.chain.executables.get(index).map(|t| t.id.clone()) else {
                    return;
                };
                turn.events.push(RunEvent::TaskStarted {
                    run: attempt.chain.run,
                    chain: attempt.chain.seq,
                    attempt: attempt.number,
                    task,
                    cached,
                    reason,
                });
            }
            AgentEvent::Ended { attempt, outcome, started, ended, millis } => {
                let Some(live) = self.live.get(&attempt.chain).filter(|l| l.attempt == attempt.number) else {
                    return;
                };
                self.scheduler.handle(Event::Ended {
                    agent: agent.clone(),
                    class: live.class.clone(),
                    millis,
                });
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
        outcome: Outcome,
        time: (i64, i64, f64),
        turn: &mut Turn,
    ) {
        let (started, ended, millis) = time;
        let mut finish =
            Finish { attempt, state: ChainState::Succeeded, started, ended, result: Vec::new(), error: None };
        let mut cached = 0;
        let mut failed = None;
        match outcome {
            Outcome::Succeeded(results) => {
                cached = results.iter().filter(|r| r.cached).count() as u32;
                finish.result = serde_json::to_vec(&results).unwrap_or_default();
                self.done.tasks += results.len() as u64;
                self.done.cached += u64::from(cached);
                let outputs = results.into_iter().map(|r: TaskResult| r.outputs).collect();
                // Fed at once, in the order of arrival; the journal says the same.
                self.planner.chain_succeeded(attempt.chain.seq, outputs);
                turn.fed.push(attempt.chain.seq);
            }
            Outcome::Interrupted if self.wish == StopWish::Cancel => finish.state = ChainState::Cancelled,
            Outcome::Interrupted => return self.requeue(attempt, live, turn),
            Outcome::Failed(failure) => {
                let retries = live
                    .chain
                    .retries
                    .filter(|r| r.allows_another(attempt.number) && self.wish == StopWish::No);
                if let Some(policy) = retries {
                    return self.pause(
                        attempt,
                        live,
                        &failure,
                        policy.pause_after(attempt.number),
                        time,
                        turn,
                    );
                }
                finish.state = ChainState::Failed;
                failed = Some(failure);
            }
            Outcome::Cancelled(failure) => {
                finish.state = ChainState::Cancelled;
                failed = Some(failure);
            }
        }
        finish.error = failed.as_ref().and_then(|f| serde_json::to_string(f).ok());
        self.moved(ChainState::Running, finish.state);
        if let Some(failure) = failed.as_ref().filter(|_| self.failures.len() < FAILURES_KEPT) {
            let (chain, attempt) = (attempt.chain.seq, attempt.number);
            self.failures.push(FailedTask { chain, attempt, failure: (**failure).clone() });
        }
        Self::report_end(attempt, live, finish.state, cached, millis, failed, turn);
        turn.batch.finishes.push(finish);
    }

    fn requeue(&mut self, attempt: Attempt, live: &Live, turn: &mut Turn) {
        self.moved(ChainState::Running, ChainState::Registered);
        self.register(attempt.chain.seq, (live.chain.clone(), attempt.number));
        turn.batch.requeues.push(Requeue { attempt, failure: None, not_before: 0 });
    }

    fn pause(
        &mut self,
        attempt: Attempt,
        live: &Live,
        failure: &TaskFailure,
        pause: Duration,
        (started, ended, millis): (i64, i64, f64),
        turn: &mut Turn,
    ) {
        self.moved(ChainState::Running, ChainState::Paused);
        self.paused.insert((Instant::now() + pause, attempt.chain.seq), (live.chain.clone(), attempt.number));
        let error = serde_json::to_string(failure).unwrap_or_default();
        let not_before = self.clock.now() + pause.as_millis() as i64;
        turn.batch.requeues.push(Requeue { attempt, failure: Some((started, ended, error)), not_before });
        Self::report_end(attempt, live, ChainState::Paused, 0, millis, Some(Box::new(failure.clone())), turn);
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
            tasks: live.chain.executables.iter().map(|t| t.id.clone()).collect(),
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

    /// Writes down which results were used, in which order, after how many chains.
    fn feed(&mut self, turn: &mut Turn) {
        if !turn.fed.is_empty() {
            let chains = std::mem::take(&mut turn.fed);
            turn.batch.feeds.push(Feed { run: self.run.id, after_chains: turn.fed_after, chains });
        }
    }

    fn plan(&mut self, turn: &mut Turn) -> bool {
        if self.wish != StopWish::No || self.plan_failure.is_some() || self.has_failed_fast() {
            return false;
        }
        let mut new = NewChains { run: self.run.id, first: self.planner.chain_count(), chains: Vec::new() };
        let mut more = false;
        loop {
            if new.chains.len() >= PLAN_PER_TURN
                || self.counts.registered + new.chains.len() as u64 >= REGISTERED_AHEAD
            {
                more = new.chains.len() >= PLAN_PER_TURN;
                break;
            }
            match self.planner.next_chain() {
                Ok(Some(chain)) => {
                    let seq = new.first + new.chains.len() as u64;
                    let payload = serde_json::to_vec(&chain).unwrap_or_default();
                    new.chains.push(NewChain {
                        class: Class::of(&chain).key(),
                        priority: chain.priority,
                        payload,
                    });
                    self.register(seq, (Arc::new(chain), 0));
                }
                Ok(None) => break,
                Err(e) => {
                    turn.events.push(RunEvent::Notice { run: self.run.id, message: e.to_string() });
                    self.plan_failure = Some(e);
                    break;
                }
            }
        }
        self.counts.registered += new.chains.len() as u64;
        if !new.chains.is_empty() {
            turn.batch.chains.push(new);
        }
        more
    }

    fn has_failed_fast(&self) -> bool {
        self.fail_fast && self.counts.failed > 0
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
    fn register(&mut self, seq: u64, (chain, attempts): Waiting) {
        let class = Class::of(&chain);
        let priority = chain.priority;
        let waiting = self.waiting.entry(class.key()).or_default();
        waiting.insert((Reverse(priority), seq), (chain, attempts));
        self.scheduler.handle(Event::Registered { class, count: 1, priority });
    }

    /// Gives agents the chains that the scheduler wants them to have. Returns whether there were any.
    async fn assign(&mut self, turn: &mut Turn) -> bool {
        if self.wish != StopWish::No || self.has_failed_fast() {
            return false;
        }
        for command in self.scheduler.decide() {
            match command {
                Command::Claim { agent, class, limit } => self.give(agent, class, limit, turn).await,
                // Agents join only after the first turn; until then nothing is missing.
                Command::Unsatisfiable { .. } if self.agents.is_empty() => {}
                Command::Unsatisfiable { reason, .. } => {
                    turn.events.push(RunEvent::Notice { run: self.run.id, message: reason.clone() });
                    self.unsatisfiable.push(reason);
                }
            }
        }
        !turn.batch.starts.is_empty()
    }

    async fn give(&mut self, agent: Name, class: Name, limit: usize, turn: &mut Turn) {
        let waiting = self.waiting.entry(class.clone()).or_default();
        let mut chains = Vec::new();
        while chains.len() < limit
            && let Some(((_, seq), (chain, attempts))) = waiting.pop_first()
        {
            let key = ChainKey { run: self.run.id, seq };
            chains.push(Assignment { attempt: Attempt { chain: key, number: attempts + 1 }, chain });
        }
        let got = chains.len() as u64;
        self.scheduler.handle(Event::Claimed {
            agent: agent.clone(),
            class: class.clone(),
            asked: limit as u64,
            got,
        });
        let now = self.clock.now();
        for Assignment { attempt, chain } in &chains {
            self.moved(ChainState::Registered, ChainState::Running);
            self.live.insert(
                attempt.chain,
                Live { attempt: attempt.number, class: class.clone(), chain: chain.clone() },
            );
            turn.batch.starts.push(Start { attempt: *attempt, agent: agent.clone(), now });
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
        let run = self.store.run(self.run.id).await?;
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
            let message =
                if wish == StopWish::Cancel { Message::Cancel(self.run.id) } else { Message::Interrupt };
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
            return self.counts.registered == 0 && self.paused.is_empty() && self.planner.is_finished();
        }
        // With agents that have room and nothing under way, whatever still waits waits in vain.
        self.counts.registered == 0 || !self.unsatisfiable.is_empty()
    }

    async fn end(mut self) -> Result<RunSummary, DriverError> {
        let plan = self.planner.counts();
        let blocked = plan.waiting;
        let all_planned = self.planner.is_finished() && self.counts.registered == 0;
        let c = self.counts;
        let (state, error) = if self.wish == StopWish::Interrupt {
            (RunState::Interrupted, None)
        } else if self.wish == StopWish::Cancel || (c.cancelled > 0 && c.failed == 0) {
            (RunState::Cancelled, None)
        } else if let Some(e) = &self.plan_failure {
            (RunState::Failed, Some(e.to_string()))
        } else if let Some(reason) = self.unsatisfiable.first() {
            (RunState::Failed, Some(reason.clone()))
        } else if c.failed == 0 && all_planned {
            (RunState::Succeeded, None)
        } else if c.failed == 0 {
            let names = self.planner.waiting_actions(5).join(", ");
            (RunState::Failed, Some(format!("{blocked} tasks never got their inputs: {names}")))
        } else if c.succeeded == 0 {
            (RunState::Failed, Some(format!("all {} process chains failed", c.failed)))
        } else {
            let state = if all_planned { RunState::PartiallySucceeded } else { RunState::Failed };
            let waiting = if blocked > 0 {
                format!(", and {blocked} tasks wait for their results")
            } else {
                String::new()
            };
            (state, Some(format!("{} of {} process chains failed{waiting}", c.failed, c.total())))
        };
        let results = self.planner.results();
        let change = RunChange {
            state: Some(state),
            ended: Some(Some(self.clock.now())),
            error: Some(error.clone()),
            results: serde_json::to_string(&results).ok(),
            tasks: Some((plan.planned + plan.waiting) as i64),
            skipped: Some(plan.skipped as i64),
            ..RunChange::default()
        };
        self.store.change_run(self.run.id, &change).await?;
        self.store.sync().await?;
        let summary = RunSummary {
            run: self.run.id,
            name: self.run.name.clone(),
            state,
            error,
            counts: c,
            tasks_done: self.done.tasks,
            tasks_cached: self.done.cached,
            tasks_skipped: plan.skipped,
            tasks_blocked: blocked,
            millis: self.clock.start.elapsed().as_secs_f64() * 1e3,
            results,
            failures: std::mem::take(&mut self.failures),
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
