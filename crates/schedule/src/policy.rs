//! How an agent with room chooses among the classes it could run.

use crate::stages::{Order, Place, Queue, Rebalance, Replicate, Stages};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A placement policy. Priorities come before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// As in the paper: the agent takes the set it matches best, agents are served in the order of their idle
    /// time, one agent per set and step, one chain at a time.
    Steep,
    /// The class whose chains are expected to end soonest.
    MinMin,
    /// The class whose chains are expected to take longest.
    MaxMin,
    /// The class with the most work per agent that could do it: who can do much helps where help is scarce.
    #[default]
    Catena,
    /// Where agents have files of their own, as in the paper on ADAGE: all ready chains wait at agents, where least has
    /// to be brought; who has much to do gives to others; two agents may execute a chain. Otherwise as `catena`.
    Adage,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Steep, Self::MinMin, Self::MaxMin, Self::Catena, Self::Adage];

    /// The name users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steep => "steep",
            Self::MinMin => "min-min",
            Self::MaxMin => "max-min",
            Self::Catena => "catena",
            Self::Adage => "adage",
        }
    }

    /// What it chooses at each stage, where agents have files of their own.
    pub fn stages(self) -> Stages {
        let plain = Stages {
            order: Order::Fifo,
            place: Place::LongestIdle,
            queue: Queue::Batch,
            rebalance: Rebalance::None,
            replicate: Replicate::None,
        };
        match self {
            Self::Steep => Stages { queue: Queue::Depth(0), ..plain },
            Self::MinMin => Stages { place: Place::MinMin, ..plain },
            Self::MaxMin => Stages { place: Place::MaxMin, ..plain },
            Self::Catena => Stages::default(),
            Self::Adage => Stages {
                order: Order::CriticalPath,
                place: Place::Data,
                queue: Queue::All,
                rebalance: Rebalance::Give,
                replicate: Replicate::Copies(2),
            },
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| format!("unknown policy `{name}`; known are {}", names()))
    }
}
