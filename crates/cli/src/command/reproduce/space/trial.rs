//! One simulation: what is executed by whom, and what came of it.

use crate::arguments::SpaceExperiment;
use catena_simulate::space::{Load, Routing, SpaceOutcome, Swarm, Trouble, central, simulate_space};
use catena_space::Chemistry;
use catena_space::time::{Micros, SECOND};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// About how many tasks a workflow has.
const TASKS: u64 = 64;
/// After the last workflow has come, and after the time that the work would take if nobody had to wait, this is too long.
const PATIENCE: Micros = 2 * 3600 * SECOND;

/// How fast workflows come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// So fast that this part of what all peers can do is needed.
    Use(f64),
    /// All within so many seconds.
    Within(f64),
}

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Scheduler {
    /// All peers, together.
    Space,
    /// One that knows everything at once and needs no time.
    Central,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) experiment: SpaceExperiment,
    /// What is special about it.
    pub(super) variant: String,
    pub(super) scheduler: Scheduler,
    pub(super) rules: &'static str,
    pub(super) nodes: usize,
    pub(super) workflows: usize,
    pub(super) pace: Pace,
    pub(super) seed: u64,
    /// Other than usual.
    pub(super) shards: Option<u16>,
    pub(super) leaf: Option<usize>,
    pub(super) routing: Option<Routing>,
    pub(super) trouble: Trouble,
    /// It is simulated once more, to see whether the same happens.
    pub(super) again: bool,
}

/// What came of it. Times are in seconds. All but [`Machine`] is the same for the same seed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) experiment: &'static str,
    pub(super) variant: String,
    pub(super) scheduler: Scheduler,
    pub(super) rules: &'static str,
    pub(super) nodes: usize,
    pub(super) workflows: usize,
    pub(super) tasks: usize,
    pub(super) seed: u64,
    /// Workflows that come each second, and which part of what peers can do they need.
    pub(super) rate: f64,
    pub(super) utilisation: f64,
    pub(super) makespan: f64,
    pub(super) mean_workflow: f64,
    /// How long tasks waited for nothing but a resource.
    pub(super) wait_p50: f64,
    pub(super) wait_p95: f64,
    /// Messages because of the work, and because peers say that they are there.
    pub(super) control: u64,
    pub(super) upkeep: u64,
    pub(super) per_task: f64,
    /// The same, divided by the square of the logarithm of the number of nodes.
    pub(super) per_task_log2: f64,
    /// Messages that a node got because of the work.
    pub(super) node_mean: f64,
    pub(super) node_p99: u64,
    /// How many times the mean the busiest one got.
    pub(super) hottest: f64,
    /// Those of upkeep that a node sent each second.
    pub(super) upkeep_rate: f64,
    pub(super) ended: usize,
    pub(super) committed: u64,
    pub(super) twice: u64,
    pub(super) stale: u64,
    pub(super) lost: u64,
    pub(super) started: u64,
    pub(super) wasted: u64,
    pub(super) blocked: u64,
    /// Tasks done while the network was cut, on the larger and on the smaller side; and the part of peers on the larger one.
    pub(super) cut_larger: usize,
    pub(super) cut_smaller: usize,
    pub(super) cut_share: f64,
    pub(super) events: u64,
    pub(super) digest: Digest,
    #[serde(skip)]
    pub(super) done: Vec<Micros>,
    #[serde(skip)]
    pub(super) machine: Machine,
}

/// What depends on the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    /// How long it took to simulate, in seconds.
    pub(super) wall: f64,
    /// Whether the same happened when it was simulated once more.
    pub(super) same: Option<bool>,
}

/// A hash of all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Trial {
    pub(super) fn new(
        experiment: SpaceExperiment,
        nodes: usize,
        workflows: usize,
        pace: Pace,
        seed: u64,
    ) -> Self {
        Self {
            experiment,
            variant: String::new(),
            scheduler: Scheduler::Space,
            rules: "dependencies",
            nodes,
            workflows,
            pace,
            seed,
            shards: None,
            leaf: None,
            routing: None,
            trouble: Trouble::default(),
            again: false,
        }
    }

    /// The same work for another scheduler.
    pub(super) fn central(&self) -> Self {
        Self { scheduler: Scheduler::Central, again: false, ..self.clone() }
    }

    /// What it is called while it runs.
    pub(super) fn title(&self) -> String {
        let Self { variant, rules, nodes, workflows, seed, .. } = self;
        let variant = if variant.is_empty() { String::new() } else { format!("{variant}, ") };
        let name = self.experiment.name();
        let rules = if self.scheduler == Scheduler::Central { "central" } else { rules };
        format!("{name}: {variant}{nodes} nodes, {workflows} workflows, {rules}, seed {seed}")
    }

    fn swarm(&self) -> Result<Swarm, String> {
        let chemistry = Chemistry::shipped(self.rules).ok_or_else(|| format!("no rules `{}`", self.rules))?;
        let mut swarm = Swarm::new(self.nodes, Arc::new(chemistry), self.seed);
        swarm.settings.shards = self.shards.unwrap_or(swarm.settings.shards);
        swarm.settings.leaf = self.leaf.unwrap_or(swarm.settings.leaf);
        swarm.routing = self.routing.unwrap_or(swarm.routing);
        swarm.trouble = self.trouble.clone();
        Ok(swarm)
    }

    pub(super) fn run(&self) -> Result<Row, String> {
        let mut swarm = self.swarm()?;
        let power: f64 = swarm.speeds().iter().sum();
        // Only when workflows come depends on the rate, not what they are.
        let work = Load::random(self.workflows, TASKS, 1.0, self.seed).work() / self.workflows as f64;
        let rate = match self.pace {
            Pace::Use(part) => part * power / work,
            Pace::Within(seconds) => self.workflows as f64 / seconds,
        };
        let load = Load::random(self.workflows, TASKS, rate, self.seed);
        let needs = (work * self.workflows as f64 / power) as Micros * SECOND;
        swarm.end = load.workflows.last().map_or(0, |w| w.at) + 2 * needs + PATIENCE;
        let execute = || match self.scheduler {
            Scheduler::Space => Ok(simulate_space(&swarm, &load)),
            Scheduler::Central => central(&swarm, &load),
        };
        let begin = Instant::now();
        let outcome = execute()?;
        let wall = begin.elapsed().as_secs_f64();
        let same = if self.again { Some(execute()?.digest == outcome.digest) } else { None };
        let row = self.row(&outcome, &load);
        Ok(Row { rate, utilisation: rate * work / power, machine: Machine { wall, same }, ..row })
    }

    fn row(&self, outcome: &SpaceOutcome, load: &Load) -> Row {
        let seconds = |t: Micros| t as f64 / SECOND as f64;
        let tasks = load.tasks();
        let cut = self.trouble.cut.map_or((0, 0), |(from, to, _)| outcome.done_between(from, to));
        let nodes = self.nodes as f64;
        let end = seconds(outcome.end).max(1.0);
        Row {
            experiment: self.experiment.name(),
            variant: self.variant.clone(),
            scheduler: self.scheduler,
            rules: self.rules,
            nodes: self.nodes,
            workflows: self.workflows,
            tasks,
            seed: self.seed,
            rate: 0.0,
            utilisation: 0.0,
            makespan: seconds(outcome.makespan),
            mean_workflow: outcome.mean_workflow(),
            wait_p50: outcome.wait(50),
            wait_p95: outcome.wait(95),
            control: outcome.control,
            upkeep: outcome.upkeep,
            per_task: outcome.messages_per_task(),
            per_task_log2: outcome.messages_per_task() / nodes.log2().powi(2),
            node_mean: outcome.mean_received(),
            node_p99: outcome.received(99),
            hottest: outcome.hottest(),
            upkeep_rate: outcome.upkeep as f64 / nodes / end,
            ended: outcome.ended(),
            committed: outcome.committed,
            twice: outcome.twice,
            stale: outcome.stale,
            lost: tasks as u64 - outcome.committed,
            started: outcome.started,
            wasted: outcome.started.saturating_sub(outcome.committed),
            blocked: outcome.blocked,
            cut_larger: cut.0,
            cut_smaller: cut.1,
            cut_share: 1.0 - outcome.beyond as f64 / nodes,
            events: outcome.events,
            digest: Digest(outcome.digest),
            done: outcome.done.iter().map(|(at, _)| *at).collect(),
            machine: Machine::default(),
        }
    }
}
