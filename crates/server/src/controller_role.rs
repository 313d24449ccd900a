//! The controller of a cluster: plans the runs that it has adopted, as results arrive.

use crate::control::{RunControl, Verdict};
use crate::definition::Definition;
use crate::driver::DriverError;
use crate::event::{FailedTask, RunEvent, RunSummary};
use crate::home::{Collected, Home};
use crate::member::Member;
use crate::memory;
use crate::places::{Places, Storage, is_own_directory};
use crate::plan::Blueprint;
use crate::publish::{PublishedResult, publish_results};
use crate::resume::{replay, use_results};
use crate::supplies::Supplier;
use catena_bus::{Message, Registered, Subscription, subject};
use catena_model::Name;
use catena_model::chain::{ChainState, RunId};
use catena_store::{Batch, Counts, FailedAttempt, FileRecord, Run, RunChange, RunState, Store, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Chains are planned ahead until this many wait for an agent: enough for all kinds of agents to find some.
const REGISTERED_AHEAD: u64 = 8192;
/// How many chains one turn plans at most.
const PLAN_PER_TURN: u64 = 2048;
/// How many results are used at a time.
const RESULTS_PER_TURN: usize = 4096;
/// How many failures a summary names.
const FAILURES_KEPT: usize = 20;
/// How often watchers hear of the progress of a run.
const PROGRESS: Duration = Duration::from_millis(200);
/// How long hints are gathered: many results cost little more than one.
const GATHER: Duration = Duration::from_millis(1);
/// The same, while enough chains wait for agents.
const GATHER_BUSY: Duration = Duration::from_millis(40);
/// How soon results that could not be had are asked for again.
const COLLECT_AGAIN: Duration = Duration::from_millis(500);
/// So many chains are enough.
const ENOUGH: u64 = 512;

/// Plans runs.
pub(crate) struct ControllerRole {
    member: Arc<Member>,
    places: Arc<Places>,
    /// Where results are brought, where agents have files of their own.
    home: Option<Arc<Home>>,
    supplier: Arc<Supplier>,
    aging: Duration,
    inbox: Subscription,
    runs: BTreeMap<RunId, Controlled>,
    /// Runs about which something may have changed.
    dirty: HashSet<RunId>,
    adopt: bool,
}

struct Controlled {
    control: RunControl,
    /// What users have asked for has to be looked up.
    check: bool,
    cancelled: bool,
    held: bool,
    /// Chains that wait for an agent, when it was last looked.
    registered: u64,
    last_progress: Option<Instant>,
    /// Results are being brought to where users look for them.
    collecting: Option<JoinHandle<Result<Collected, StoreError>>>,
    collected: Option<Vec<PublishedResult>>,
}

impl ControllerRole {
    pub(crate) async fn new(
        member: Arc<Member>,
        places: Arc<Places>,
        home: Option<Arc<Home>>,
        aging: Duration,
    ) -> Self {
        let inbox = member.bus.subscribe(subject::CONTROLLERS).await;
        let supplier = Arc::new(Supplier::new(member.store.clone(), places.mode() == Storage::Object));
        let (runs, dirty) = (BTreeMap::new(), HashSet::new());
        Self { member, places, home, supplier, aging, inbox, runs, dirty, adopt: true }
    }

    /// Plans until it is time to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
        let mut look = tokio::time::interval(self.member.look);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut judge = tokio::time::interval(self.member.beat());
        judge.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut messages = Vec::new();
        loop {
            match self.turn().await {
                Ok(()) => {}
                Err(DriverError::Store(e)) => {
                    if !self.member.endure(e, &mut stop).await? {
                        return Ok(());
                    }
                    // What was written is not known for certain. The store knows.
                    self.runs.clear();
                    self.adopt = true;
                    continue;
                }
                Err(e) => eprintln!("{e}"),
            }
            if (self.adopt || !self.dirty.is_empty()) && !*stop.borrow() {
                continue;
            }
            tokio::select! {
                n = self.inbox.receive(&mut messages, 4096) => {
                    if n == 0 {
                        return Ok(());
                    }
                    tokio::time::sleep(self.patience()).await;
                    self.inbox.try_receive(&mut messages, 4096);
                }
                _ = look.tick() => self.look_at_everything(),
                _ = judge.tick() => self.adopt = true,
                _ = stop.changed() => return Ok(()),
            }
            for message in messages.drain(..) {
                self.hear(message);
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Look(runs) => {
                for id in runs {
                    match self.runs.get_mut(&id) {
                        Some(run) => {
                            run.check = true;
                            self.dirty.insert(id);
                        }
                        None => self.adopt = true,
                    }
                }
            }
            Message::Ended(runs) => self.dirty.extend(runs.iter().filter(|id| self.runs.contains_key(id))),
            _ => {}
        }
    }

    /// How long to wait for more hints.
    fn patience(&self) -> Duration {
        let enough = |r: &Controlled| r.registered >= ENOUGH;
        if !self.runs.is_empty() && self.runs.values().all(enough) { GATHER_BUSY } else { GATHER }
    }

    fn look_at_everything(&mut self) {
        self.adopt = true;
        for (id, run) in &mut self.runs {
            run.check = true;
            self.dirty.insert(*id);
        }
    }

    async fn turn(&mut self) -> Result<(), DriverError> {
        if std::mem::take(&mut self.adopt) {
            self.adopt_runs().await?;
        }
        for id in std::mem::take(&mut self.dirty) {
            match self.advance(id).await {
                Ok(()) => {}
                Err(DriverError::Store(StoreError::TakenOver { .. })) => {
                    self.runs.remove(&id);
                }
                Err(DriverError::Store(e)) => {
                    self.dirty.insert(id);
                    return Err(e.into());
                }
                Err(e) => self.fail(id, e.to_string()).await?,
            }
        }
        Ok(())
    }

    async fn adopt_runs(&mut self) -> Result<(), DriverError> {
        let has: Vec<RunId> = self.runs.keys().copied().collect();
        let adopted = self.member.store.adopt_runs(&self.member.id, &has, self.member.judgement()).await?;
        for run in adopted {
            let id = run.id;
            match self.open(run).await {
                Ok(control) => {
                    let controlled = Controlled {
                        control,
                        check: true,
                        cancelled: false,
                        held: false,
                        registered: 0,
                        last_progress: None,
                        collecting: None,
                        collected: None,
                    };
                    self.runs.insert(id, controlled);
                    self.dirty.insert(id);
                }
                Err(DriverError::Store(e)) => return Err(e.into()),
                Err(e) => self.fail(id, e.to_string()).await?,
            }
        }
        Ok(())
    }

    /// Reads a run and brings its planner to where the store stands.
    async fn open(&self, run: Run) -> Result<RunControl, DriverError> {
        let fail = |detail: String| DriverError::Replay { run: run.id, detail };
        let definition = self.member.store.definition(run.id).await?;
        let definition = definition.ok_or_else(|| fail("it was deleted".to_owned()))?;
        let (program, options) = {
            let definition: Definition =
                serde_json::from_slice(&definition).map_err(|e| fail(format!("it cannot be read: {e}")))?;
            let context = self.places.remember(run.id, &definition);
            (definition.compile().map_err(fail)?, definition.plan_options(&context))
        };
        drop(definition);
        memory::give_back();
        if run.started.is_none() {
            let change = RunChange { started: Some(self.member.now()), ..RunChange::default() };
            self.member.store.change_run(run.id, &change).await?;
        }
        let blueprint = Blueprint::Workflow { program: Arc::new(program), options };
        let control = replay(&*self.member.store, run, blueprint, self.aging).await?;
        Ok(if self.places.mode().is_local() { control.with_files() } else { control })
    }

    /// A run that cannot be planned has failed.
    async fn fail(&mut self, id: RunId, error: String) -> Result<(), DriverError> {
        self.runs.remove(&id);
        let change = RunChange {
            state: Some(RunState::Failed),
            ended: Some(Some(self.member.now())),
            error: Some(Some(error.clone())),
            ..RunChange::default()
        };
        self.member.store.change_run(id, &change).await?;
        self.tell(&RunEvent::Notice { run: id, message: error }).await;
        Ok(())
    }

    async fn tell(&self, event: &RunEvent) {
        if let Ok(event) = serde_json::to_value(event) {
            self.member.bus.publish(subject::EVENTS, Message::Event(event)).await;
        }
    }

    /// Uses results, plans more, and ends the run if nothing more can happen.
    async fn advance(&mut self, id: RunId) -> Result<(), DriverError> {
        let member = self.member.clone();
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        if std::mem::take(&mut run.check) && !run.heed(&*member.store).await? {
            self.runs.remove(&id);
            return Ok(());
        }
        let used = use_results(&*member.store, &mut run.control, RESULTS_PER_TURN).await?;
        let counts = member.store.counts(id).await?;
        let stopped = run.stop_waiting(&*member.store).await?;
        let resting = run.cancelled || run.held;
        let room = REGISTERED_AHEAD.saturating_sub(counts.registered);
        let limit = if resting { 0 } else { room.min(PLAN_PER_TURN) };
        let mut batch = Batch { instance: Some(member.id.clone()), ..Batch::default() };
        let (planned, failure) = run.control.next_chains(limit as usize, member.now(), &mut batch);
        member.store.apply(batch).await?;
        run.registered = counts.registered + planned.len() as u64;
        let released = run.control.take_released();
        if !released.is_empty() {
            let files = released.iter().flat_map(|path| kept_as(id, path)).collect();
            let message = Message::Release { runs: Vec::new(), files };
            member.bus.publish(subject::AGENTS, message).await;
        }
        if !planned.is_empty() {
            let registered = Registered::count(planned.iter().map(|p| (p.class.key(), p.rank)));
            member.bus.publish(subject::SCHEDULERS, Message::Registered(registered)).await;
        }
        if resting && counts.running > 0 {
            let message = if run.cancelled { Message::Cancel(id) } else { Message::Hold(id) };
            member.bus.publish(subject::AGENTS, message).await;
        }
        let idle = planned.is_empty() && counts.registered + counts.running + counts.paused == 0;
        // What has ended since the results were read is counted already but not used yet.
        let more = planned.len() as u64 == PLAN_PER_TURN;
        if more || used == RESULTS_PER_TURN || stopped > 0 || (idle && used > 0) {
            self.dirty.insert(id);
        }
        let is_over = idle && used == 0 && stopped == 0 && (run.cancelled || !run.held);
        let progress = if is_over { None } else { run.progress(counts) };
        if let Some(message) = failure {
            self.tell(&RunEvent::Notice { run: id, message }).await;
        }
        if let Some(progress) = progress {
            self.tell(&progress).await;
        }
        if is_over && self.has_results(id, &counts).await? {
            self.end(id, &counts).await?;
        }
        Ok(())
    }

    /// Brings the results of a run that is over to where users look for them, where agents have files of their own.
    /// Returns whether there is nothing left to do.
    async fn has_results(&mut self, id: RunId, counts: &Counts) -> Result<bool, DriverError> {
        let Some(run) = self.runs.get_mut(&id) else { return Ok(false) };
        let Some(home) = self.home.clone() else { return Ok(true) };
        if run.cancelled
            || run.collected.is_some()
            || run.control.verdict(counts).state != RunState::Succeeded
        {
            return Ok(true);
        }
        match run.collecting.take() {
            Some(task) if !task.is_finished() => {
                run.collecting = Some(task);
                return Ok(false);
            }
            Some(task) => match task.await.unwrap_or_else(|e| Ok(Collected::NotYet(e.to_string())))? {
                Collected::Here(results) => {
                    run.collected = Some(results);
                    home.release(id);
                    return Ok(true);
                }
                Collected::Missing(files) => return self.compute_again(id, &files).await.map(|()| false),
                Collected::NotYet(why) => {
                    let message = format!("results cannot be brought home: {why}; trying again");
                    self.tell(&RunEvent::Notice { run: id, message }).await;
                }
            },
            None => {}
        }
        self.collect(id, home).await?;
        Ok(false)
    }

    async fn collect(&mut self, id: RunId, home: Arc<Home>) -> Result<(), DriverError> {
        let Some(definition) = self.member.store.definition(id).await? else { return Ok(()) };
        let definition: Definition = serde_json::from_slice(&definition).unwrap_or_default();
        let (stored, out) = (self.places.remember(id, &definition), self.places.results(id, &definition.out));
        let Some(run) = self.runs.get_mut(&id) else { return Ok(()) };
        let results = run.control.plan().results();
        let (supplier, bus) = (self.supplier.clone(), self.member.bus.clone());
        run.collecting = Some(tokio::spawn(async move {
            let collected = home.collect(&supplier, id, &results, (&stored.out, &out)).await;
            if !matches!(collected, Ok(Collected::Here(_))) {
                tokio::time::sleep(COLLECT_AGAIN).await;
            }
            bus.publish(subject::CONTROLLERS, Message::Ended(vec![id])).await;
            collected
        }));
        Ok(())
    }

    /// What nobody has any more has to be computed again.
    async fn compute_again(&mut self, id: RunId, files: &[FileRecord]) -> Result<(), DriverError> {
        let chains: Vec<u64> = files.iter().filter_map(|f| f.chain).collect();
        let reopened = self.member.store.reopen(id, &chains).await?;
        let registered = Registered::count(reopened.into_iter().map(|c| (c.class, c.rank)));
        self.member.bus.publish(subject::SCHEDULERS, Message::Registered(registered)).await;
        if let Some(lost) = files.iter().find(|f| f.chain.is_none()) {
            let message =
                format!("the result {} came with the run, and no machine that has it is there", lost.name);
            self.tell(&RunEvent::Notice { run: id, message }).await;
            tokio::time::sleep(COLLECT_AGAIN).await;
        }
        self.dirty.insert(id);
        Ok(())
    }

    async fn end(&mut self, id: RunId, counts: &Counts) -> Result<(), DriverError> {
        let Some(run) = self.runs.remove(&id) else { return Ok(()) };
        let mut verdict = run.control.verdict(counts);
        if run.cancelled {
            verdict = Verdict { state: RunState::Cancelled, error: None };
        }
        if verdict.state == RunState::Succeeded
            && run.collected.is_none()
            && let Some(context) = self.places.context(&*self.member.store, id).await?
            && let Err(e) = publish_results(&run.control.plan().results(), &context.out)
        {
            verdict.error = Some(format!("results cannot be put in their place: {e}"));
        }
        let mut change = run.control.ending(&verdict, self.member.now());
        change.controller = Some(None);
        let collected: Option<Vec<(Name, Vec<String>)>> =
            run.collected.map(|results| results.into_iter().map(|r| (r.name, r.values)).collect());
        if let Some(results) = &collected {
            change.results = serde_json::to_string(results).ok();
        }
        self.member.store.change_run(id, &change).await?;
        let mut summary = self.summary(&run.control, verdict, *counts).await?;
        summary.results = collected.unwrap_or(summary.results);
        self.tell(&RunEvent::Ended(summary)).await;
        Ok(())
    }

    async fn summary(
        &self,
        control: &RunControl,
        verdict: Verdict,
        counts: Counts,
    ) -> Result<RunSummary, DriverError> {
        let id = control.id();
        let failures = self.member.store.failed_attempts(id).await?;
        let read = |f: &FailedAttempt| {
            let failure = serde_json::from_str(&f.error).ok()?;
            Some(FailedTask { chain: f.key.seq, attempt: f.attempt, failure })
        };
        let plan = control.plan().counts();
        let begun = control.run().started.unwrap_or(control.run().created);
        Ok(RunSummary {
            run: id,
            name: control.run().name.clone(),
            state: verdict.state,
            error: verdict.error,
            counts,
            tasks_done: control.tasks_done(),
            tasks_cached: control.tasks_cached(),
            tasks_skipped: plan.skipped,
            tasks_blocked: plan.waiting,
            millis: (self.member.now() - begun) as f64,
            results: control.plan().results(),
            failures: failures.iter().filter_map(read).take(FAILURES_KEPT).collect(),
            exit_code: None,
        })
    }
}

/// The names under which agents may keep a file: its own, and that of the directory that it has to itself.
fn kept_as(run: RunId, path: &str) -> Vec<(RunId, Name)> {
    let own = Path::new(path).ancestors().find(|p| is_own_directory(p));
    let names = std::iter::once(Name::new(path)).chain(own.and_then(Path::to_str).map(Name::new));
    names.map(|name| (run, name)).collect()
}

impl Controlled {
    /// Looks up what users have asked for. Returns whether there still is such a run.
    async fn heed(&mut self, store: &dyn Store) -> Result<bool, StoreError> {
        let Some(run) = store.run(self.control.id()).await? else { return Ok(false) };
        self.cancelled = run.cancel_requested;
        self.held = run.held;
        if run.priority != self.control.run().priority {
            self.control.prioritise(run.priority);
        }
        Ok(run.state == RunState::Running)
    }

    /// Chains of a run that was cancelled or held must not wait for agents. Returns how many did.
    async fn stop_waiting(&self, store: &dyn Store) -> Result<u64, StoreError> {
        let id = self.control.id();
        if self.cancelled {
            let registered = store.move_chains(id, ChainState::Registered, ChainState::Cancelled).await?;
            return Ok(registered + store.move_chains(id, ChainState::Paused, ChainState::Cancelled).await?);
        }
        if self.held {
            return store.move_chains(id, ChainState::Registered, ChainState::Paused).await;
        }
        Ok(0)
    }

    fn progress(&mut self, counts: Counts) -> Option<RunEvent> {
        if self.last_progress.is_some_and(|t| t.elapsed() < PROGRESS) {
            return None;
        }
        self.last_progress = Some(Instant::now());
        let plan = self.control.plan().counts();
        Some(RunEvent::Progress {
            run: self.control.id(),
            counts,
            tasks_done: self.control.tasks_done(),
            tasks_known: plan.planned + plan.waiting,
            growing: plan.open_loops > 0,
        })
    }
}
