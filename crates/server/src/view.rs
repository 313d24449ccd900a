//! What people and programs are shown of runs and chains: the same by every command and every interface.

use crate::event::{FailedTask, RunSummary};
use crate::http::schema;
use catena_model::chain::{ChainState, ProcessChain, RunId, TaskFailure};
use catena_model::{Name, Resources, Value};
use catena_schedule::Class;
use catena_store::{ChainFilter, ChainRecord, Counts, Run, RunState, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;

/// How many running chains and failures a status names.
const NAMED: usize = 100;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Its number.
    #[schema(value_type = i64)]
    pub run: RunId,
    /// A name for people.
    pub name: String,
    /// Where it stands.
    #[schema(value_type = schema::RunState)]
    pub state: RunState,
    /// The file it came from.
    pub workflow: String,
    /// When it was submitted, in milliseconds since 1970.
    pub created: i64,
    /// When it started.
    #[schema(required)]
    pub started: Option<i64>,
    /// When it ended.
    #[schema(required)]
    pub ended: Option<i64>,
    /// Why it failed.
    #[schema(required)]
    pub error: Option<String>,
    /// How many tasks are known.
    pub tasks: i64,
    /// How many of them were skipped.
    pub skipped: i64,
    /// Named results.
    #[schema(value_type = Option<Vec<(String, Vec<String>)>>, required)]
    pub results: Option<Value>,
    /// Higher ones come first.
    pub priority: i32,
    /// Whether somebody asked it to wait.
    pub held: bool,
    /// Chains by state.
    #[schema(value_type = schema::Counts)]
    pub chains: Counts,
}

impl RunView {
    /// A run as the store knows it, and how many of its chains are in which state.
    pub fn new(r: &Run, chains: Counts) -> Self {
        Self {
            run: r.id,
            name: r.name.clone(),
            state: r.state,
            workflow: r.source.clone(),
            created: r.created,
            started: r.started,
            ended: r.ended,
            error: r.error.clone(),
            tasks: r.tasks,
            skipped: r.skipped,
            results: r.results.as_deref().and_then(|t| serde_json::from_str(t).ok()),
            priority: r.priority,
            held: r.held,
            chains,
        }
    }
}

/// A run and what happens in it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StatusView {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// Chains that run now, at most a hundred.
    pub running: Vec<RunningView>,
    /// Failures, at most a hundred.
    pub failures: Vec<FailureView>,
    /// Why chains wait, by what they require.
    #[serde(default)]
    #[schema(required)]
    pub waiting: Vec<WaitingView>,
}

/// A chain that runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunningView {
    /// Its number within the run.
    #[serde(default)]
    #[schema(required)]
    pub chain: u64,
    /// Its tasks.
    pub tasks: String,
    /// Since when.
    pub since: i64,
    /// Where.
    #[serde(default)]
    #[schema(required)]
    pub agent: Option<String>,
}

/// An attempt that failed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailureView {
    /// The chain.
    pub chain: u64,
    /// The attempt.
    pub attempt: u32,
    /// What went wrong.
    #[schema(value_type = schema::TaskFailure)]
    pub failure: TaskFailure,
}

/// Chains that wait.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WaitingView {
    /// What they require.
    #[schema(value_type = Vec<String>)]
    pub capabilities: Vec<Name>,
    /// How much of it.
    #[schema(value_type = schema::Resources)]
    pub resources: Resources,
    /// How many.
    pub count: u64,
    /// Why.
    pub reason: String,
}

/// A chain.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChainView {
    /// Its number within the run.
    pub chain: u64,
    /// Where it stands.
    #[schema(value_type = schema::ChainState)]
    pub state: ChainState,
    /// How often it was given to an agent.
    pub attempt: u32,
    /// How often it failed there.
    pub failures: u32,
    /// How many agents were lost while they had it.
    pub losses: u32,
    /// What it requires.
    #[schema(value_type = Vec<String>)]
    pub capabilities: Vec<Name>,
    /// Its priority.
    pub priority: i32,
    /// The agent that has or had it.
    #[schema(required)]
    pub agent: Option<String>,
    /// When it could run for the first time, where that is known.
    #[serde(default)]
    #[schema(required)]
    pub registered: Option<i64>,
    /// When the last attempt started.
    #[schema(required)]
    pub started: Option<i64>,
    /// When it ended.
    #[schema(required)]
    pub ended: Option<i64>,
    /// Its tasks.
    #[schema(value_type = Vec<String>)]
    pub tasks: Vec<Name>,
    /// What it was at when: ready, queued, stage-in, running, stage-out, and complete, failed or cancelled; as far as
    /// that is known.
    #[serde(default)]
    #[schema(required)]
    pub history: Vec<MomentView>,
}

/// What a chain was at from some time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MomentView {
    /// What.
    pub state: String,
    /// Since when, in milliseconds since 1970.
    pub at: i64,
}

impl ChainView {
    /// A chain as the store knows it, with its payload.
    pub fn new(c: &ChainRecord) -> Self {
        let chain: Option<ProcessChain> = serde_json::from_slice(&c.payload).ok();
        Self {
            chain: c.key.seq,
            state: c.state,
            attempt: c.attempt,
            failures: c.failures,
            losses: c.losses,
            capabilities: Class::from_key(&c.class).map(|c| c.capabilities).unwrap_or_default(),
            priority: c.priority,
            agent: c.agent.as_ref().map(ToString::to_string),
            registered: None,
            started: c.started,
            ended: c.ended,
            tasks: chain.iter().flat_map(|c| &c.executables).map(|t| t.id.clone()).collect(),
            history: history(c),
        }
    }
}

/// What a chain was at when, from the time on that an agent had it.
fn history(c: &ChainRecord) -> Vec<MomentView> {
    let moment = |state: String, at: i64| MomentView { state, at };
    let mut moments: Vec<MomentView> = c.history.iter().map(|(p, at)| moment(p.to_string(), *at)).collect();
    if let (true, Some(started)) = (moments.is_empty(), c.started) {
        moments.push(moment("running".to_owned(), started));
    }
    if let (true, Some(ended)) = (c.state.is_final(), c.ended) {
        let end = if c.state == ChainState::Succeeded { "complete".to_owned() } else { c.state.to_string() };
        moments.push(moment(end, ended));
    }
    moments
}

impl ChainView {
    /// Adds when the chain was registered, which follows from its rank.
    #[must_use]
    pub(crate) fn with_registered(mut self, c: &ChainRecord, aging: Duration) -> Self {
        let registered = i64::from(c.priority) * (aging.as_millis() as i64) - c.rank;
        self.registered = Some(registered);
        self.history.insert(0, MomentView { state: "ready".to_owned(), at: registered });
        self
    }
}

/// Everything about a run that fits on a page, except why chains wait.
pub async fn status(store: &dyn Store, run: &Run) -> Result<StatusView, StoreError> {
    let failures = store.failed_attempts(run.id).await?;
    let failures = failures.iter().filter_map(|f| {
        let failure = serde_json::from_str(&f.error).ok()?;
        Some(FailureView { chain: f.key.seq, attempt: f.attempt, failure })
    });
    let filter = ChainFilter {
        state: Some(ChainState::Running),
        limit: NAMED,
        payload: true,
        ..ChainFilter::default()
    };
    let running = store.chains(run.id, &filter).await?;
    let running = running.iter().map(|c| {
        let view = ChainView::new(c);
        RunningView {
            chain: c.key.seq,
            tasks: view.tasks.join(" -> "),
            since: c.started.unwrap_or(0),
            agent: view.agent,
        }
    });
    Ok(StatusView {
        run: RunView::new(run, store.counts(run.id).await?),
        running: running.collect(),
        failures: failures.take(NAMED).collect(),
        waiting: Vec::new(),
    })
}

/// How a run has ended, as far as the store knows.
pub(crate) async fn summary(store: &dyn Store, run: &Run) -> Result<RunSummary, StoreError> {
    let status = status(store, run).await?;
    let failed = |f: FailureView| FailedTask { chain: f.chain, attempt: f.attempt, failure: f.failure };
    let begun = run.started.unwrap_or(run.created);
    Ok(RunSummary {
        run: run.id,
        name: run.name.clone(),
        state: run.state,
        error: run.error.clone(),
        counts: status.run.chains,
        tasks_done: status.run.chains.succeeded,
        tasks_cached: 0,
        tasks_skipped: run.skipped as u64,
        tasks_blocked: 0,
        millis: (run.ended.unwrap_or(begun) - begun) as f64,
        results: run.results.as_deref().and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default(),
        failures: status.failures.into_iter().map(failed).collect(),
        exit_code: None,
    })
}
