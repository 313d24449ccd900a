//! Who runs what, in virtual time: the policies by their names.

mod adage;
mod central;
mod copies;
mod locality;
mod neighbours;
mod placed;
mod planned;
mod prefetched;
mod queued;
#[cfg(test)]
mod tests;

use crate::cluster::{Cluster, Storage};
use crate::engine::Strategy;
use crate::workload::Workload;
use catena_plan::{auto_order, prio_order};
use catena_schedule::{Order, Place, Policy, Queue, Replicate, Stages};
use std::fmt;
use std::str::FromStr;

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyName {
    /// First come, first served, from one queue.
    Fcfs,
    /// As in the paper on Steep: the agent that has been idle for longest, one per step.
    Steep,
    /// The shortest task first.
    MinMin,
    /// The longest task first.
    MaxMin,
    /// Planned before anything runs, with full knowledge: each task where it ends first.
    Heft,
    /// Planned likewise, with the longest path on one node.
    Cpop,
    /// As in the paper on ADAGE, or rather as its authors' code does it.
    Adage,
    /// Work stealing, with tasks bound to where large inputs are.
    Matrix,
    /// One queue, and tasks sent on to where their inputs are.
    Albatross,
    /// Ours: the task with the longest way to the end, where it ends first.
    Catena,
    /// Any choice at each stage.
    Stages(Stages),
}

/// Those that have a name of their own.
const NAMES: [(&str, PolicyName); 10] = [
    ("fcfs", PolicyName::Fcfs),
    ("steep", PolicyName::Steep),
    ("min-min", PolicyName::MinMin),
    ("max-min", PolicyName::MaxMin),
    ("heft", PolicyName::Heft),
    ("cpop", PolicyName::Cpop),
    ("adage", PolicyName::Adage),
    ("matrix", PolicyName::Matrix),
    ("albatross", PolicyName::Albatross),
    ("catena", PolicyName::Catena),
];

impl PolicyName {
    /// All that have a name of their own.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, policy)| policy)
    }

    /// What it does, in a few words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Fcfs => "first come, first served, from one queue",
            Self::Steep => "the agent that has been idle for longest, as in the paper on Steep",
            Self::MinMin => "the shortest task first",
            Self::MaxMin => "the longest task first",
            Self::Heft => "planned with full knowledge: each task where it ends first",
            Self::Cpop => "planned likewise, with the longest path on one node",
            Self::Adage => "as the authors of ADAGE do it",
            Self::Matrix => "work stealing, with tasks bound to where large inputs are",
            Self::Albatross => "one queue, and tasks sent on to where their inputs are",
            Self::Catena => "the scheduler of Catena: the longest way to the end first, where it ends first",
            Self::Stages(_) => "any choice at each stage",
        }
    }

    /// The policy, ready to decide. Only what is random depends on the seed.
    pub fn strategy(
        self,
        workload: &Workload,
        cluster: &Cluster,
        seed: u64,
    ) -> Result<Box<dyn Strategy>, String> {
        let central = |ranks, policy| -> Box<dyn Strategy> {
            Box::new(central::Central::new(workload, ranks, policy, Replicate::None))
        };
        let is_planned = matches!(self, Self::Heft | Self::Cpop | Self::Adage);
        if is_planned && cluster.kinds.iter().any(|k| k.max > k.count) {
            return Err(format!(
                "`{self}` plans for nodes that are there from the beginning, and this cluster makes nodes on demand"
            ));
        }
        Ok(match self {
            Self::Fcfs => central(Vec::new(), Policy::Catena),
            Self::Steep => central(Vec::new(), Policy::Steep),
            Self::MinMin => stages(Stages { place: Place::MinMin, ..PLAIN }, workload, cluster, seed),
            Self::MaxMin => stages(Stages { place: Place::MaxMin, ..PLAIN }, workload, cluster, seed),
            Self::Heft => Box::new(planned::heft(workload, cluster)),
            Self::Cpop => Box::new(planned::cpop(workload, cluster)),
            Self::Adage => Box::new(adage::Adage::new(workload, cluster, seed)),
            Self::Matrix => Box::new(locality::Matrix::new(seed)),
            Self::Albatross => Box::new(locality::Albatross::new()),
            Self::Catena => stages(Stages::default(), workload, cluster, seed),
            Self::Stages(choice) => stages(choice, workload, cluster, seed),
        })
    }
}

/// Nothing but a queue.
const PLAIN: Stages = Stages {
    order: Order::Fifo,
    place: Place::LongestIdle,
    queue: Queue::Batch,
    rebalance: catena_schedule::Rebalance::None,
    replicate: Replicate::None,
};

/// How urgent each task is.
fn ranks(stages: Stages, workload: &Workload, cluster: &Cluster) -> Vec<u64> {
    let lengths = || (0..workload.len() as u32).map(|t| cluster.longest(workload, t));
    let of_order = |order: Vec<u32>| {
        let mut ranks = vec![0; workload.len()];
        for (rank, task) in order.into_iter().rev().enumerate() {
            ranks[task as usize] = rank as u64;
        }
        ranks
    };
    match (stages.place, stages.order) {
        (Place::MinMin, _) => lengths().map(|length| (1 << 62) - length).collect(),
        (Place::MaxMin, _) => lengths().collect(),
        // Nobody has given priorities here.
        (_, Order::Fifo | Order::Priority) => vec![0; workload.len()],
        (_, Order::Prio) => of_order(prio_order(&workload.dag)),
        (_, Order::CriticalPath | Order::Auto) => {
            if workload.tasks.iter().all(|t| t.seconds <= 0.0) {
                return of_order(auto_order(&workload.dag));
            }
            workload.upward(|t| cluster.longest(workload, t))
        }
    }
}

/// The scheduler of the live system where it does not matter which node a task goes to; otherwise task by task.
fn stages(stages: Stages, workload: &Workload, cluster: &Cluster, seed: u64) -> Box<dyn Strategy> {
    let ranks = ranks(stages, workload, cluster);
    if !matches!(stages.queue, Queue::Batch | Queue::Depth(0)) {
        return Box::new(queued::Queued::new(stages, ranks, seed));
    }
    // Who holds tasks in advance and how many is for nobody to count by classes.
    let is_even = cluster.is_even() && cluster.storage != Storage::Local;
    if (is_even || stages.place == Place::LongestIdle) && cluster.ahead == 0 {
        return Box::new(central::Central::new(workload, ranks, Policy::Catena, stages.replicate));
    }
    Box::new(placed::Placed::new(stages.place, ranks, stages.replicate))
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stages(stages) => f.pad(&stages.to_string()),
            named => f.pad(NAMES.iter().find(|(_, policy)| policy == named).map_or("", |(name, _)| name)),
        }
    }
}

impl FromStr for PolicyName {
    type Err = String;

    /// A name, `catena` with other choices at some stages such as `catena+order:prio`, or choices alone.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, policy)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*policy);
        }
        if text.contains(':') {
            return text.strip_prefix("catena+").unwrap_or(text).parse().map(Self::Stages);
        }
        let names = NAMES.map(|(name, _)| name).join(", ");
        Err(format!("there is no policy `{text}`; there are {names}, and choices such as catena+order:prio"))
    }
}
