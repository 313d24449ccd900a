//! What chains require, as something that can be counted.

use catena_model::chain::ProcessChain;
use catena_model::{Name, Resources};
use serde::{Deserialize, Serialize};

/// Required capabilities and resources. Chains with the same class can run in the same places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Class {
    /// What an agent must offer; sorted, without repetition.
    pub capabilities: Vec<Name>,
    /// How much of an agent a chain takes.
    pub resources: Resources,
}

impl Class {
    /// The class of a chain.
    pub fn of(chain: &ProcessChain) -> Self {
        Self { capabilities: chain.required_capabilities.clone(), resources: chain.resources.clone() }
    }

    /// A text that identifies the class, for stores and messages.
    pub fn key(&self) -> Name {
        Name::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// The class with this key.
    pub fn from_key(key: &str) -> Option<Self> {
        serde_json::from_str(key).ok()
    }

    /// The required capabilities as people read them.
    pub fn show_capabilities(&self) -> String {
        format!("{{{}}}", self.capabilities.join(", "))
    }
}
