//! Who runs what, in virtual time: the policies by their names.

mod adage;
mod central;
mod data;
mod heft;
#[cfg(test)]
mod tests;

use crate::cluster::{Cluster, Storage};
use crate::engine::Strategy;
use crate::workload::Workload;
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
    /// Planned before anything runs, with full knowledge: Topcuoglu, Hariri and Wu, 2002.
    Heft,
    /// As in the paper on ADAGE, or rather as its authors' code does it.
    Adage,
    /// Ours: the task with the longest way to the end, where it ends first.
    Catena,
}

impl PolicyName {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Fcfs, Self::Steep, Self::MinMin, Self::MaxMin, Self::Heft, Self::Adage, Self::Catena];

    /// The name users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Steep => "steep",
            Self::MinMin => "min-min",
            Self::MaxMin => "max-min",
            Self::Heft => "heft",
            Self::Adage => "adage",
            Self::Catena => "catena",
        }
    }

    /// The policy, ready to decide. Only what is random depends on the seed.
    pub fn strategy(self, workload: &Workload, cluster: &Cluster, seed: u64) -> Box<dyn Strategy> {
        let by_length = |sign: f64| {
            let length = |t: u32| (sign * cluster.longest(workload, t) * 1e6) as i64;
            (0..workload.len() as u32).map(length).collect()
        };
        match self {
            Self::Fcfs => Box::new(central::Central::new(cluster, Vec::new(), false)),
            Self::Steep => Box::new(central::Central::new(cluster, Vec::new(), true)),
            Self::MinMin => Box::new(central::Central::new(cluster, by_length(-1.0), false)),
            Self::MaxMin => Box::new(central::Central::new(cluster, by_length(1.0), false)),
            Self::Heft => Box::new(heft::Heft::new(workload, cluster)),
            Self::Adage => Box::new(adage::Adage::new(workload, cluster, seed)),
            Self::Catena => {
                let upward = workload.upward(|t| cluster.longest(workload, t));
                match cluster.storage {
                    Storage::Shared(_) => {
                        let ranks = upward.iter().map(|u| (u * 1e6) as i64).collect();
                        Box::new(central::Central::new(cluster, ranks, false))
                    }
                    Storage::Local(_) => Box::new(data::DataAware::new(cluster, upward)),
                }
            }
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|p| p.name() == name).ok_or_else(|| {
            format!("there is no policy `{name}`; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}
