//! A run while it is planned: what a controller knows of it. Deciding only; reading and writing is for others.

use crate::plan::Plan;
use crate::urgency::Urgency;
use catena_model::chain::{ProcessChain, RunId, TaskResult};
use catena_plan::{DagEnd, DagPlan, DagView, NodeStatus, PlanError};
use catena_schedule::Class;
use catena_store::{Batch, Counts, Feed, NewChain, NewChains, Run, RunChange, RunState, rank};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// How far apart the first and the last chain of an ordered workflow are in the eyes of other runs, as if they had
/// been registered so long after each other.
const ORDER_SPREAD: Duration = Duration::from_mins(1);

/// How many nodes that failed are named.
const NAMED: usize = 5;

/// A run and its plan.
pub(crate) struct RunControl {
    run: Run,
    plan: Plan,
    plan_failure: Option<PlanError>,
    /// Results used so far, their tasks, and those of them that came from a cache.
    used: u64,
    tasks: (u64, u64),
    /// Results used since chains were last planned, and how many chains there were.
    fed: Vec<u64>,
    fed_after: u64,
    priority: Option<i32>,
    aging: Duration,
    /// How much comes after each chain, where schedulers want to know.
    urgency: Option<Urgency>,
}

/// A chain that was planned.
pub(crate) struct Planned {
    pub(crate) seq: u64,
    pub(crate) chain: Arc<ProcessChain>,
    pub(crate) class: Class,
    pub(crate) rank: i64,
}

/// How a run ends.
pub(crate) struct Verdict {
    pub(crate) state: RunState,
    pub(crate) error: Option<String>,
}

impl RunControl {
    /// A run whose planner has used so many results, of so many tasks and cached tasks.
    pub(crate) fn new(run: Run, plan: Plan, used: u64, tasks: (u64, u64), aging: Duration) -> Self {
        let fed_after = plan.chain_count();
        // Whoever submits a workflow may want another priority than it says. The nodes of a DAG have their own.
        let priority = match plan {
            Plan::Workflow(_) => Some(run.priority),
            Plan::Dag(_) => None,
        };
        let fed = Vec::new();
        Self { run, plan, plan_failure: None, used, tasks, fed, fed_after, priority, aging, urgency: None }
    }

    /// Chains say how much comes after them from now on, and it is noted which files nobody needs any more.
    pub(crate) fn with_files(mut self) -> Self {
        self.urgency = Some(Urgency::default());
        if let Plan::Workflow(planner) = &mut self.plan {
            planner.track_files();
        }
        self
    }

    /// Files that nobody will read any more, since the last call.
    pub(crate) fn take_released(&mut self) -> Vec<String> {
        self.plan.take_released()
    }

    pub(crate) fn id(&self) -> RunId {
        self.run.id
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan, if it is that of a DAG.
    pub(crate) fn dag(&mut self) -> Option<&mut DagPlan> {
        match &mut self.plan {
            Plan::Workflow(_) => None,
            Plan::Dag(plan) => Some(plan),
        }
    }

    pub(crate) fn has_plan_failure(&self) -> bool {
        self.plan_failure.is_some()
    }

    /// Chains get this priority from now on, whatever the workflow says.
    pub(crate) fn prioritise(&mut self, priority: i32) {
        self.priority = Some(priority);
    }

    /// Tasks that are done.
    pub(crate) fn tasks_done(&self) -> u64 {
        self.tasks.0
    }

    /// Of these, those that came from a cache.
    pub(crate) fn tasks_cached(&self) -> u64 {
        self.tasks.1
    }

    /// A result was used before it was noted.
    pub(crate) fn note_used(&mut self, seq: u64) {
        self.fed.push(seq);
    }

    /// A chain has succeeded, or failed where that is a result. Results count in the order in which they are used.
    pub(crate) fn use_result(&mut self, seq: u64, results: Vec<TaskResult>) {
        if self.fed.is_empty() {
            self.fed_after = self.plan.chain_count();
        }
        self.tasks.0 += results.len() as u64;
        self.tasks.1 += results.iter().filter(|r| r.cached).count() as u64;
        if let (Some(urgency), Plan::Workflow(planner)) = (&mut self.urgency, &self.plan) {
            urgency.learn(planner, seq, &results);
        }
        self.plan.chain_ended(seq, results);
        self.fed.push(seq);
    }

    /// Adds the results that were used and up to `limit` new chains to a batch. Returns the chains, and what
    /// went wrong if planning has failed just now.
    pub(crate) fn next_chains(
        &mut self,
        limit: usize,
        now: i64,
        batch: &mut Batch,
    ) -> (Vec<Planned>, Option<String>) {
        let run = self.run.id;
        if !self.fed.is_empty() {
            let chains = std::mem::take(&mut self.fed);
            let first = self.used;
            self.used += chains.len() as u64;
            batch.feeds.push(Feed { run, first, after_chains: self.fed_after, chains });
        }
        let mut new = NewChains { run, first: self.plan.chain_count(), chains: Vec::new() };
        let mut planned = Vec::new();
        let mut failure = None;
        while planned.len() < limit && self.plan_failure.is_none() {
            match self.plan.next_chain() {
                Ok(Some(mut chain)) => {
                    chain.priority = self.priority.unwrap_or(chain.priority);
                    if let (Some(urgency), Plan::Workflow(planner)) = (&mut self.urgency, &self.plan) {
                        chain.ahead = urgency.ahead(planner);
                    }
                    let class = Class::of(&chain);
                    let rank = self.rank(chain.priority, now);
                    new.chains.push(NewChain {
                        class: class.key(),
                        priority: chain.priority,
                        rank,
                        payload: serde_json::to_vec(&chain).unwrap_or_default(),
                    });
                    let seq = new.first + planned.len() as u64;
                    planned.push(Planned { seq, chain: Arc::new(chain), class, rank });
                }
                Ok(None) => break,
                Err(e) => {
                    failure = Some(e.to_string());
                    self.plan_failure = Some(e);
                }
            }
        }
        if !new.chains.is_empty() {
            batch.chains.push(new);
        }
        (planned, failure)
    }

    /// The rank of the chain that was planned last. Where the workflow has an order of its own, that counts and not
    /// when the chain could run.
    fn rank(&self, priority: i32, now: i64) -> i64 {
        match self.plan.place() {
            None => rank(priority, now, self.aging),
            Some(place) => {
                let begun = self.run.started.unwrap_or(self.run.created);
                rank(priority, begun, self.aging) - (place * ORDER_SPREAD.as_millis() as f64) as i64
            }
        }
    }

    /// How the run ends, if nothing more can happen.
    pub(crate) fn verdict(&self, c: &Counts) -> Verdict {
        if let Plan::Dag(plan) = &self.plan {
            return dag_verdict(plan.view(0));
        }
        let blocked = self.plan.counts().waiting;
        let all_planned = self.plan.is_finished() && c.registered == 0;
        let (state, error) = if c.cancelled > 0 && c.failed == 0 {
            (RunState::Cancelled, None)
        } else if let Some(e) = &self.plan_failure {
            (RunState::Failed, Some(e.to_string()))
        } else if c.failed == 0 && all_planned {
            (RunState::Succeeded, None)
        } else if c.failed == 0 {
            let names = self.plan.waiting(5).join(", ");
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
        Verdict { state, error }
    }

    /// What is kept about a run that ends.
    pub(crate) fn ending(&self, verdict: &Verdict, now: i64) -> RunChange {
        let plan = self.plan.counts();
        RunChange {
            state: Some(verdict.state),
            ended: Some(Some(now)),
            error: Some(verdict.error.clone()),
            results: serde_json::to_string(&self.plan.results()).ok(),
            tasks: Some((plan.planned + plan.waiting) as i64),
            skipped: Some(plan.skipped as i64),
            ..RunChange::default()
        }
    }
}

/// How a DAG ends, with the names of nodes that failed.
fn dag_verdict(dag: DagView<'_>) -> Verdict {
    let Some(DagEnd { code, failed, futile, aborted }) = dag.end() else {
        return Verdict { state: RunState::Failed, error: Some("nodes never became ready".to_owned()) };
    };
    if code == 0 {
        return Verdict { state: RunState::Succeeded, error: None };
    }
    let nodes = &dag.file().nodes;
    let failures = dag.statuses().zip(nodes).filter(|(status, _)| *status == NodeStatus::Error);
    let mut names: Vec<&str> = failures.map(|(_, node)| node.name.as_str()).take(NAMED + 1).collect();
    if names.len() > NAMED {
        names[NAMED] = "…";
    }
    let mut error = format!("{failed} of {} nodes failed ({})", nodes.len(), names.join(", "));
    if futile > 0 {
        let _ = write!(error, ", {futile} could not run");
    }
    if aborted {
        let _ = write!(error, "; a node has stopped the DAG, which returns {code}");
    }
    Verdict { state: RunState::Failed, error: Some(error) }
}
