//! Executes a DAGMan file as DAGMan does: which script or job comes next, and what follows from its exit code.
//!
//! Nothing here waits, reads or writes, but for [`Submitter`], which reads descriptions when their jobs are due: they
//! may have been made by the jobs before.
//!
//! A plan is never saved. Every step has a name that depends on nothing but the node and the try, so that a plan
//! which is told of the steps that a store knows, and of what came of them, goes on where they end.

use super::api::{DagEvent, DagOptions, DagView, Happening, KnownChain, Submitter};
use super::node::NodeStatus;
use super::state::{Graph, Stage, is_ordinary};
use crate::planner::PlanCounts;
use catena_model::Name;
use catena_model::chain::{ProcessChain, TaskResult};
use catena_model::dagman::{DagFile, NodeKind};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The state of a DAG while it is executed.
pub struct DagPlan {
    pub(super) options: DagOptions,
    pub(super) submitter: Box<dyn Submitter>,
    pub(super) graphs: Vec<Graph>,
    /// Chains that have not ended.
    pub(super) steps: HashMap<u64, Step>,
    /// Chains that nobody has asked for yet.
    pub(super) made: VecDeque<(Step, ProcessChain)>,
    /// What a store knows and the plan has not come to yet.
    pub(super) known: HashMap<Name, (u64, Option<Vec<TaskResult>>)>,
    /// Known ends that have not been taken in yet.
    pub(super) arrived: VecDeque<(Step, Vec<TaskResult>)>,
    /// DAGs in which something may be able to start.
    pub(super) stirred: BTreeSet<u32>,
    /// What happens now has happened before.
    catching_up: bool,
    pub(super) chain_count: u64,
    pub(super) clusters: u64,
    pub(super) arrivals: u32,
    pub(super) last_place: Option<f64>,
    pub(super) unwanted: Vec<u64>,
    pub(super) events: Vec<DagEvent>,
    pub(super) counts: PlanCounts,
}

/// What a chain is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) graph: u32,
    pub(super) node: u32,
    pub(super) kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Pre,
    Job(u32),
    Post,
}

impl std::fmt::Debug for DagPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let statuses: Vec<_> = self.view(0).statuses().collect();
        f.debug_struct("DagPlan").field("statuses", &statuses).finish_non_exhaustive()
    }
}

impl DagPlan {
    /// Starts a DAG, or goes on with one of which these chains are known.
    pub fn new(
        file: DagFile,
        options: DagOptions,
        submitter: Box<dyn Submitter>,
        known: Vec<KnownChain>,
    ) -> Self {
        let catching_up = !known.is_empty();
        let chain_count = known.iter().map(|k| k.seq + 1).max().unwrap_or(0);
        let mut plan = Self {
            options,
            submitter,
            graphs: Vec::new(),
            steps: HashMap::new(),
            made: VecDeque::new(),
            known: known.into_iter().map(|k| (k.id, (k.seq, k.results))).collect(),
            arrived: VecDeque::new(),
            stirred: BTreeSet::new(),
            catching_up,
            chain_count,
            clusters: 0,
            arrivals: 0,
            last_place: None,
            unwanted: Vec::new(),
            events: Vec::new(),
            counts: PlanCounts { planned: chain_count, ..PlanCounts::default() },
        };
        plan.begin(file, None, String::new(), 0);
        if plan.catching_up {
            plan.catch_up();
        }
        plan.catching_up = false;
        plan.events.clear();
        plan
    }

    /// Goes through everything that is known.
    fn catch_up(&mut self) {
        loop {
            if let Some((step, results)) = self.arrived.pop_front() {
                self.ended(step, &results);
            } else if let Some(g) = self.stirred.first().copied() {
                if !self.start(g) {
                    self.stirred.remove(&g);
                }
            } else {
                break;
            }
        }
        // Where everything is being stopped, nobody comes to what is left.
        if self.graphs[0].aborted.is_some() {
            let left = self.known.values().filter(|(_, results)| results.is_none());
            self.unwanted.extend(left.map(|(seq, _)| *seq));
        }
    }

    /// Whether everything has ended.
    pub fn is_finished(&self) -> bool {
        self.view(0).end().is_some()
    }

    /// How far it is. Nodes that cannot run any more do not wait.
    pub fn counts(&self) -> PlanCounts {
        self.counts
    }

    /// How many chains there were so far; the next one gets this number.
    pub fn chain_count(&self) -> u64 {
        self.chain_count
    }

    /// Where the chain that was made last stands in the order of the DAG, between 0 and 1.
    pub fn place(&self) -> Option<f64> {
        self.last_place
    }

    /// How many DAGs there are: the file itself, and those of nodes that have been opened.
    pub fn dag_count(&self) -> u32 {
        self.graphs.len() as u32
    }

    /// A look at one of them; the file itself is 0.
    pub fn view(&self, dag: u32) -> DagView<'_> {
        DagView { graph: &self.graphs[dag as usize], options: &self.options }
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Vec<DagEvent> {
        std::mem::take(&mut self.events)
    }

    /// Chains that should be stopped.
    pub fn take_unwanted(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unwanted)
    }

    /// Names of nodes that wait for others, at most `limit` of them.
    pub fn waiting_nodes(&self, limit: usize) -> Vec<Name> {
        let view = self.view(0);
        let waiting = view.statuses().zip(&view.file().nodes).filter(|(s, _)| *s == NodeStatus::NotReady);
        waiting.take(limit).map(|(_, n)| n.name.clone()).collect()
    }

    /// The next chain that can be executed now.
    pub fn next_chain(&mut self) -> Option<ProcessChain> {
        loop {
            if let Some((step, results)) = self.arrived.pop_front() {
                self.ended(step, &results);
            } else if let Some((step, chain)) = self.made.pop_front() {
                self.steps.insert(self.chain_count, step);
                self.chain_count += 1;
                self.counts.planned += 1;
                self.last_place = self.place_of(step);
                return Some(chain);
            } else if !self.start(*self.stirred.first()?) {
                self.stirred.pop_first();
            }
        }
    }

    /// A chain was started.
    pub fn chain_started(&mut self, seq: u64) {
        if let Some(Step { graph, node, kind: StepKind::Job(job) }) = self.steps.get(&seq).copied() {
            let cluster = self.graphs[graph as usize].nodes[node as usize].try_.cluster;
            self.tell(graph, node, Happening::JobStarted { cluster, job });
        }
    }

    /// A chain has ended, however it did.
    pub fn chain_ended(&mut self, seq: u64, results: &[TaskResult]) {
        if let Some(step) = self.steps.remove(&seq) {
            self.ended(step, results);
        } else if let Some(known) = self.known.values_mut().find(|(s, _)| *s == seq) {
            // A plan that goes on may come to it later than the one before did.
            known.1 = Some(results.to_vec());
        }
    }

    pub(super) fn begin(&mut self, file: DagFile, of: Option<(u32, u32)>, label: String, priority: i32) {
        let graph = Graph::new(file, of, label, priority, &self.options);
        let g = self.graphs.len() as u32;
        self.counts.waiting += graph.nodes.len() as u64;
        self.graphs.push(graph);
        let file = self.graphs[g as usize].file.clone();
        for n in
            (0..file.nodes.len() as u32).filter(|n| self.graphs[g as usize].is_beside(*n)).collect::<Vec<_>>()
        {
            self.ready(g, n);
        }
        for (n, _) in (0..).zip(&file.nodes).filter(|(_, n)| n.done && is_ordinary(n)) {
            self.end_node(g, n, NodeStatus::Done);
        }
        for (n, _) in (0..).zip(&file.nodes).filter(|(_, n)| is_ordinary(n)) {
            let node = &self.graphs[g as usize].nodes[n as usize];
            if node.unmet == 0 && node.status == NodeStatus::NotReady {
                self.ready(g, n);
            }
        }
        self.look_for_end(g);
    }

    /// Ends a DAG in which nothing more can happen, after its FINAL node.
    pub(super) fn look_for_end(&mut self, g: u32) {
        let graph = &mut self.graphs[g as usize];
        let over = if graph.aborted.is_some() { graph.outstanding == 0 } else { graph.open == 0 };
        if graph.stage != Stage::Nodes || !over {
            return;
        }
        let last = graph.file.nodes.iter().position(|n| n.kind == NodeKind::Final);
        match last {
            Some(n) => {
                graph.stage = Stage::Final;
                // Limits are for the nodes before it.
                (graph.pre.busy, graph.jobs.busy, graph.post.busy) = (0, 0, 0);
                self.ready(g, n as u32);
            }
            None => {
                let code = graph.aborted.unwrap_or(i64::from(graph.failed > 0));
                self.end(g, code);
            }
        }
    }

    pub(super) fn end(&mut self, g: u32, code: i64) {
        self.graphs[g as usize].stage = Stage::Ended(code);
        self.stirred.remove(&g);
        // Services have nothing to serve any more.
        self.stop_steps(|s| s.graph == g);
        if let Some((parent, n)) = self.graphs[g as usize].of {
            if code != 0 && !self.catching_up {
                self.submitter.failed(DagView { graph: &self.graphs[g as usize], options: &self.options });
            }
            self.graphs[parent as usize].outstanding -= 1;
            self.job_ended(parent, n, 0, code, code != 0);
        }
    }

    /// Stops everything in a DAG but its FINAL node. It ends when all has stopped.
    pub(super) fn abort(&mut self, g: u32, code: i64) {
        let graph = &mut self.graphs[g as usize];
        if graph.aborted.is_some() || graph.stage != Stage::Nodes {
            return;
        }
        graph.aborted = Some(code);
        for queue in [&mut graph.pre, &mut graph.jobs, &mut graph.post] {
            queue.waiting.clear();
        }
        graph.categories.values_mut().for_each(|c| c.held.clear());
        self.stop_steps(|s| s.graph == g);
        let inner = |(_, h): &(u32, &Graph)| h.of.is_some_and(|(of, _)| of == g);
        let inner: Vec<u32> = (0..).zip(&self.graphs).filter(inner).map(|(h, _)| h).collect();
        for h in inner {
            self.abort(h, 1);
            self.look_for_end(h);
        }
    }

    /// Nobody wants these steps any more. Those that nobody has asked for yet vanish.
    pub(super) fn stop_steps(&mut self, which: impl Fn(&Step) -> bool) {
        let stopped = self.steps.iter().filter(|(_, s)| which(s)).map(|(seq, _)| *seq);
        self.unwanted.extend(stopped);
        let made = std::mem::take(&mut self.made);
        let (dropped, kept): (VecDeque<_>, VecDeque<_>) = made.into_iter().partition(|(s, _)| which(s));
        self.made = kept;
        for (step, _) in dropped {
            self.count_out(step);
            if let StepKind::Job(_) = step.kind {
                let this = &mut self.graphs[step.graph as usize].nodes[step.node as usize].try_;
                this.open -= 1;
                this.removed += 1;
            }
        }
    }
}
