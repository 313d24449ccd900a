//! How an agent with room chooses among the classes it could run.

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
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Steep, Self::MinMin, Self::MaxMin, Self::Catena];

    /// The name users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Steep => "steep",
            Self::MinMin => "min-min",
            Self::MaxMin => "max-min",
            Self::Catena => "catena",
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
