//! How nodes come and go: their scripts and jobs are started, end, and set others going.

use super::api::{DagEvent, Happening};
use super::node::{self, NOT_SUBMITTED, Next, NodeStatus, REMOVED, Try};
use super::plan::{DagPlan, Step, StepKind};
use super::state::Stage;
use super::steps::{JobMacros, When, job_chain, script_chain};
use catena_model::chain::{ProcessChain, TaskResult};
use catena_model::dagman::{DagFile, NodeKind, Submission};
use catena_model::{Name, Resources};
use smol_str::format_smolstr;
use std::cmp::Reverse;

impl DagPlan {
    pub(super) fn set_status(&mut self, g: u32, n: u32, status: NodeStatus) {
        let waits = |s| matches!(s, NodeStatus::NotReady | NodeStatus::Ready | NodeStatus::Pre);
        let before = std::mem::replace(&mut self.graphs[g as usize].nodes[n as usize].status, status);
        match (waits(before), waits(status)) {
            (true, false) => self.counts.waiting -= 1,
            (false, true) => self.counts.waiting += 1,
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, dag: u32, node: u32, what: Happening) {
        self.events.push(DagEvent { dag, node, what });
    }

    /// A node waits for nothing but its turn.
    pub(super) fn ready(&mut self, g: u32, n: u32) {
        self.set_status(g, n, NodeStatus::Ready);
        let has_pre = self.graphs[g as usize].file.nodes[n as usize].rules().pre.is_some();
        self.enqueue(g, n, if has_pre { StepKind::Pre } else { StepKind::Job(0) });
    }

    pub(super) fn enqueue(&mut self, g: u32, n: u32, kind: StepKind) {
        let graph = &mut self.graphs[g as usize];
        let node = &graph.file.nodes[n as usize];
        let place = graph.places.get(n as usize).copied().unwrap_or(0);
        self.arrivals += 1;
        let entry = (node.priority, Reverse(place), Reverse(self.arrivals), n);
        let queue = match kind {
            StepKind::Pre => &mut graph.pre,
            StepKind::Job(_) => &mut graph.jobs,
            StepKind::Post => &mut graph.post,
        };
        queue.waiting.push(entry);
        self.stirred.insert(g);
    }

    /// Starts one thing in a DAG. Returns whether there was one.
    pub(super) fn start(&mut self, g: u32) -> bool {
        let graph = &mut self.graphs[g as usize];
        if let Some((.., n)) = graph.post.next() {
            graph.post.busy += 1;
            self.start_script(g, n, StepKind::Post);
        } else if let Some((.., n)) = graph.pre.next() {
            graph.pre.busy += 1;
            self.start_script(g, n, StepKind::Pre);
        } else if let Some(entry) = graph.jobs.next() {
            if let Some(category) = graph.category(entry.3) {
                if category.limit > 0 && category.busy >= category.limit {
                    category.held.push(entry);
                    return true;
                }
                category.busy += 1;
            }
            graph.jobs.busy += u32::from(!graph.is_beside(entry.3));
            self.start_jobs(g, entry.3);
        } else {
            return false;
        }
        true
    }

    pub(super) fn start_script(&mut self, g: u32, n: u32, kind: StepKind) {
        let macros = self.macros(g, n, self.graphs[g as usize].nodes[n as usize].try_.cluster);
        let id = self.id(g, n, kind);
        let graph = &self.graphs[g as usize];
        let node = &graph.file.nodes[n as usize];
        let (script, when, status, what) = match kind {
            StepKind::Pre => (&node.rules().pre, When::Pre, NodeStatus::Pre, Happening::PreStarted),
            _ => {
                let when = When::Post(&graph.nodes[n as usize].try_);
                (&node.rules().post, when, NodeStatus::Post, Happening::PostStarted)
            }
        };
        let Some(script) = script else { return };
        let chain = script_chain(id, node, script, &when, &macros, &graph.env);
        self.set_status(g, n, status);
        self.tell(g, n, what);
        self.emit(Step { graph: g, node: n, kind }, chain);
    }

    pub(super) fn start_jobs(&mut self, g: u32, n: u32) {
        self.set_status(g, n, NodeStatus::Submitted);
        let file = self.graphs[g as usize].file.clone();
        let node = &file.nodes[n as usize];
        self.clusters += 1;
        let cluster = self.clusters;
        self.graphs[g as usize].nodes[n as usize].try_.cluster = cluster;
        if node.noop {
            return self.jobs_over(g, n);
        }
        if node.kind == NodeKind::SubDag {
            return match self.submitter.open(node) {
                Ok(inner) if self.is_inside(g, &inner) => {
                    let message = format!("{} is a node of itself", inner.path.display());
                    self.not_submitted(g, n, message);
                }
                Ok(inner) => self.begin_inner(g, n, inner),
                Err(error) => self.not_submitted(g, n, error),
            };
        }
        let macros = self.macros(g, n, cluster);
        let Submission { jobs, warnings } = match self.submitter.jobs(&file, node, &macros) {
            Ok(submission) => submission,
            Err(error) => return self.not_submitted(g, n, error),
        };
        for warning in warnings {
            self.tell(g, n, Happening::Warned(warning));
        }
        let this = &mut self.graphs[g as usize].nodes[n as usize].try_;
        (this.jobs, this.open) = (jobs.len() as u32, jobs.len() as u32);
        self.tell(g, n, Happening::Submitted { cluster, jobs: jobs.len() as u32 });
        let alone = jobs.len() == 1;
        for (i, job) in (0..).zip(&jobs) {
            let kind = StepKind::Job(i);
            let id =
                if alone { self.id(g, n, kind) } else { format_smolstr!("{} job {i}", self.id(g, n, kind)) };
            let step = Step { graph: g, node: n, kind };
            if job.noop {
                self.count_in(step);
                self.arrived.push_back((step, Vec::new()));
            } else {
                let mut chain = job_chain(id, node, (cluster, i), job);
                if self.graphs[g as usize].is_beside(n) {
                    // It must not take the place of those that it serves.
                    chain.resources = Resources::zero();
                }
                self.emit(step, chain);
            }
        }
        if jobs.is_empty() {
            self.jobs_over(g, n);
        }
    }

    /// Whether a DAG is this one or one that this is a node of.
    fn is_inside(&self, g: u32, file: &DagFile) -> bool {
        let outer = |g: &u32| self.graphs[*g as usize].of.map(|(outer, _)| outer);
        std::iter::successors(Some(g), outer).any(|g| self.graphs[g as usize].file.path == file.path)
    }

    /// The job of a node is a DAG of its own.
    pub(super) fn begin_inner(&mut self, g: u32, n: u32, file: DagFile) {
        let graph = &mut self.graphs[g as usize];
        graph.outstanding += 1;
        let this = &mut graph.nodes[n as usize].try_;
        (this.jobs, this.open) = (1, 1);
        let cluster = this.cluster;
        let label = format!("{}: ", self.id(g, n, StepKind::Job(0)));
        let priority = self.graphs[g as usize].file.nodes[n as usize].priority;
        self.tell(g, n, Happening::Submitted { cluster, jobs: 1 });
        self.begin(file, Some((g, n)), label, priority);
    }

    pub(super) fn not_submitted(&mut self, g: u32, n: u32, error: String) {
        let this = &mut self.graphs[g as usize].nodes[n as usize].try_;
        this.job_failed = true;
        this.codes.push(NOT_SUBMITTED);
        self.tell(g, n, Happening::NotSubmitted(error));
        self.jobs_over(g, n);
    }

    /// The name of a step, the same whenever it is executed.
    pub(super) fn id(&self, g: u32, n: u32, kind: StepKind) -> Name {
        let graph = &self.graphs[g as usize];
        let name = &graph.file.nodes[n as usize].name;
        let script = match kind {
            StepKind::Pre => " PRE",
            StepKind::Job(_) => "",
            StepKind::Post => " POST",
        };
        match graph.nodes[n as usize].retries {
            0 => format_smolstr!("{}{name}{script}", graph.label),
            retry => format_smolstr!("{}{name}{script} retry {retry}", graph.label),
        }
    }

    pub(super) fn macros(&self, g: u32, n: u32, cluster: u64) -> JobMacros {
        let graph = &self.graphs[g as usize];
        let name = |p: &u32| graph.file.nodes[*p as usize].name.clone();
        JobMacros {
            cluster,
            retry: graph.nodes[n as usize].retries,
            dag_status: if graph.aborted.is_some() {
                3
            } else if graph.failed > 0 {
                2
            } else {
                0
            },
            counts: [graph.nodes.len() as u32, graph.jobs.busy, graph.done, graph.failed, graph.futile],
            parents: graph.parents.of(n).iter().map(name).collect(),
        }
    }

    pub(super) fn place_of(&self, step: Step) -> Option<f64> {
        let graph = &self.graphs[step.graph as usize];
        let place = graph.places.get(step.node as usize)?;
        Some(f64::from(*place) / graph.places.len().max(2).saturating_sub(1) as f64)
    }

    /// A chain is there to be executed, or was already.
    pub(super) fn emit(&mut self, step: Step, chain: ProcessChain) {
        self.count_in(step);
        match self.known.remove(&chain.id) {
            None => self.made.push_back((step, chain)),
            Some((seq, None)) => _ = self.steps.insert(seq, step),
            Some((_, Some(results))) => self.arrived.push_back((step, results)),
        }
    }

    pub(super) fn count_in(&mut self, step: Step) {
        let graph = &mut self.graphs[step.graph as usize];
        graph.outstanding += u32::from(!graph.is_beside(step.node));
    }

    pub(super) fn count_out(&mut self, step: Step) {
        let graph = &mut self.graphs[step.graph as usize];
        graph.outstanding -= u32::from(!graph.is_beside(step.node));
    }

    pub(super) fn ended(&mut self, step: Step, results: &[TaskResult]) {
        self.count_out(step);
        let Step { graph: g, node: n, kind } = step;
        let failure = results.iter().find_map(|r| r.failure.as_ref());
        let code = failure.map_or(0, |f| {
            let killed = f.signal.map(|s| -i64::from(s));
            f.exit_code.map(i64::from).or(killed).unwrap_or(NOT_SUBMITTED)
        });
        let file = self.graphs[g as usize].file.clone();
        let rules = file.nodes[n as usize].rules();
        self.stirred.insert(g);
        match kind {
            StepKind::Pre => {
                self.graphs[g as usize].pre.busy -= 1;
                self.graphs[g as usize].nodes[n as usize].try_.pre = Some(code);
                self.tell(g, n, Happening::PreEnded(code));
                let next = node::after_pre(rules, &self.options, code);
                self.go_on(g, n, next);
            }
            StepKind::Job(job) => self.job_ended(g, n, job, code, failure.is_some()),
            StepKind::Post => {
                self.graphs[g as usize].post.busy -= 1;
                self.tell(g, n, Happening::PostEnded(code));
                self.go_on(g, n, node::after_post(rules, code));
            }
        }
        self.look_for_end(g);
    }

    pub(super) fn job_ended(&mut self, g: u32, n: u32, job: u32, code: i64, failed: bool) {
        let graph = &mut self.graphs[g as usize];
        let file = graph.file.clone();
        let rules = file.nodes[n as usize].rules();
        let this = &mut graph.nodes[n as usize].try_;
        let cluster = this.cluster;
        this.open -= 1;
        this.codes.push(code);
        this.failed += u32::from(failed);
        this.removed += u32::from(code == REMOVED);
        if !this.job_failed && node::too_many(rules, this.failed, this.jobs) {
            this.job_failed = true;
            // The others would not help.
            if rules.tolerance.is_none_or(|t| t.fail_fast) {
                self.stop_steps(|s| s.graph == g && s.node == n);
            }
        }
        self.tell(g, n, Happening::JobEnded { cluster, job, code });
        if self.graphs[g as usize].nodes[n as usize].try_.open == 0 {
            self.jobs_over(g, n);
        }
    }

    pub(super) fn jobs_over(&mut self, g: u32, n: u32) {
        let graph = &mut self.graphs[g as usize];
        graph.jobs.busy -= u32::from(!graph.is_beside(n));
        if let Some(category) = graph.category(n) {
            category.busy -= 1;
            let held = std::mem::take(&mut category.held);
            graph.jobs.waiting.extend(held);
        }
        self.stirred.insert(g);
        let rules = graph.file.nodes[n as usize].rules();
        let next = node::after_jobs(rules, &graph.nodes[n as usize].try_);
        self.go_on(g, n, next);
    }

    pub(super) fn go_on(&mut self, g: u32, n: u32, next: Next) {
        // Where everything is being stopped, nothing more is begun.
        let stopping =
            self.graphs[g as usize].aborted.is_some() && self.graphs[g as usize].stage == Stage::Nodes;
        match next {
            Next::Submit if !stopping => self.enqueue(g, n, StepKind::Job(0)),
            Next::Post if !stopping => {
                self.set_status(g, n, NodeStatus::Post);
                self.enqueue(g, n, StepKind::Post);
            }
            Next::Succeed => self.end_node(g, n, NodeStatus::Done),
            Next::Fail(code) if !stopping => self.fail_node(g, n, code),
            Next::Abort(code) if !stopping => {
                self.tell(g, n, Happening::Aborted(code));
                self.abort(g, code);
                self.end_node(g, n, if code == 0 { NodeStatus::Done } else { NodeStatus::Error });
            }
            Next::Submit | Next::Post | Next::Fail(_) | Next::Abort(_) => {
                self.end_node(g, n, NodeStatus::Error);
            }
        }
    }

    pub(super) fn fail_node(&mut self, g: u32, n: u32, code: i64) {
        let graph = &mut self.graphs[g as usize];
        let node = &mut graph.nodes[n as usize];
        if !node::may_retry(&graph.file.nodes[n as usize], node.retries, code) {
            return self.end_node(g, n, NodeStatus::Error);
        }
        node.retries += 1;
        node.try_ = Try::default();
        let retry = node.retries;
        self.tell(g, n, Happening::Retried { retry, code });
        self.ready(g, n);
    }

    pub(super) fn end_node(&mut self, g: u32, n: u32, status: NodeStatus) {
        self.set_status(g, n, status);
        self.tell(g, n, Happening::Ended(status));
        let file = self.graphs[g as usize].file.clone();
        match file.nodes[n as usize].kind {
            NodeKind::Final => return self.end(g, i64::from(status != NodeStatus::Done)),
            NodeKind::Service | NodeKind::Provisioner => return,
            NodeKind::Job | NodeKind::SubDag => {}
        }
        let graph = &mut self.graphs[g as usize];
        graph.open -= 1;
        if status == NodeStatus::Done {
            graph.done += 1;
        } else {
            graph.failed += 1;
        }
        let arcs: Vec<u32> = graph.arcs.of(n).to_vec();
        for arc in arcs.iter().map(|a| file.arcs[*a as usize]) {
            if status != NodeStatus::Done && !arc.weak {
                self.give_up(g, arc.child);
                continue;
            }
            let graph = &mut self.graphs[g as usize];
            let child = &mut graph.nodes[arc.child as usize];
            child.unmet -= 1;
            let stopping = graph.aborted.is_some();
            if child.unmet == 0
                && child.status == NodeStatus::NotReady
                && !stopping
                && !file.nodes[arc.child as usize].done
            {
                self.ready(g, arc.child);
            }
        }
        self.look_for_end(g);
    }

    /// A node cannot run any more, nor can those that wait for it.
    pub(super) fn give_up(&mut self, g: u32, n: u32) {
        let mut lost = vec![n];
        while let Some(n) = lost.pop() {
            if self.graphs[g as usize].nodes[n as usize].status != NodeStatus::NotReady {
                continue;
            }
            self.set_status(g, n, NodeStatus::Futile);
            self.tell(g, n, Happening::Ended(NodeStatus::Futile));
            let graph = &mut self.graphs[g as usize];
            graph.open -= 1;
            graph.futile += 1;
            lost.extend(graph.arcs.of(n).iter().map(|a| graph.file.arcs[*a as usize].child));
        }
    }
}
