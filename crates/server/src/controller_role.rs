//! The controller of a cluster: plans the runs that it has adopted, as results arrive.

use crate::control::{RunControl, Verdict};
use crate::definition::Definition;
use crate::driver::DriverError;
use crate::event::{FailedTask, RunEvent, RunSummary};
use crate::member::Member;
use crate::memory;
use crate::places::Places;
use crate::plan::Blueprint;
use crate::publish::publish_results;
use crate::resume::{replay, use_results};
use catena_bus::{Message, Registered, Subscription, subject};
use catena_model::chain::{ChainState, RunId};
use catena_plan::Program;
use catena_store::{Batch, Counts, FailedAttempt, Run, RunChange, RunState, Store, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

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
/// So many chains are enough.
const ENOUGH: u64 = 512;

/// Plans runs.
pub(crate) struct ControllerRole {
    member: Arc<Member>,
    places: Arc<Places>,
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
}

impl ControllerRole {
    pub(crate) async fn new(member: Arc<Member>, places: Arc<Places>, aging: Duration) -> Self {
        let inbox = member.bus.subscribe(subject::CONTROLLERS).await;
        Self { member, places, aging, inbox, runs: BTreeMap::new(), dirty: HashSet::new(), adopt: true }
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
            (compile(&definition).map_err(fail)?, definition.plan_options(&context))
        };
        drop(definition);
        memory::give_back();
        if run.started.is_none() {
            let change = RunChange { started: Some(self.member.now()), ..RunChange::default() };
            self.member.store.change_run(run.id, &change).await?;
        }
        let blueprint = Blueprint::Workflow { program: Arc::new(program), options };
        replay(&*self.member.store, run, blueprint, self.aging).await
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
        let is_over = idle && used == 0 && stopped == 0 && !run.held;
        let progress = if is_over { None } else { run.progress(counts) };
        if let Some(message) = failure {
            self.tell(&RunEvent::Notice { run: id, message }).await;
        }
        if let Some(progress) = progress {
            self.tell(&progress).await;
        }
        if is_over {
            self.end(id, &counts).await?;
        }
        Ok(())
    }

    async fn end(&mut self, id: RunId, counts: &Counts) -> Result<(), DriverError> {
        let Some(run) = self.runs.remove(&id) else { return Ok(()) };
        let mut verdict = run.control.verdict(counts);
        if run.cancelled {
            verdict = Verdict { state: RunState::Cancelled, error: None };
        }
        if verdict.state == RunState::Succeeded
            && let Some(context) = self.places.context(&*self.member.store, id).await?
            && let Err(e) = publish_results(&run.control.plan().results(), &context.out)
        {
            verdict.error = Some(format!("results cannot be put in their place: {e}"));
        }
        let mut change = run.control.ending(&verdict, self.member.now());
        change.controller = Some(None);
        self.member.store.change_run(id, &change).await?;
        let summary = self.summary(&run.control, verdict, *counts).await?;
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

fn compile(definition: &Definition) -> Result<Program, String> {
    let loaded = definition.load();
    if let Some(problem) = loaded.diags.iter().find(|_| loaded.diags.has_errors()) {
        return Err(problem.message.clone());
    }
    let workflow = loaded.expanded.as_ref().ok_or("it is no workflow")?;
    Program::new(workflow, &loaded.library).map_err(|e| e.to_string())
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
