//! What machines are made from.

use catena_model::{Name, Resources};
use catena_schedule::Class;
use std::time::Duration;

/// A kind of machine that can be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Its name.
    pub id: Name,
    /// What its agents can do.
    pub provides: Vec<Name>,
    /// How much its agents can do at once.
    pub resources: Resources,
    /// At least so many machines at any time.
    pub min: u32,
    /// At most so many.
    pub max: u32,
    /// At most so many of them in the making.
    pub max_create_concurrent: u32,
    /// Who makes them.
    pub provider: Name,
    /// Commands that prepare a machine before its agent starts.
    pub provisioning: Vec<String>,
    /// How long it takes a machine to boot, where that is pretended.
    pub boot_delay: Duration,
    /// The agent must have joined after so long.
    pub ready_within: Duration,
    /// An agent without anything to do ends after so long.
    pub idle_shutdown: Duration,
    /// How often to try before giving up for a while.
    pub attempts: u32,
    /// How long to wait after the first failure; twice as long after each further one.
    pub retry_delay: Duration,
    /// How long to give up for.
    pub lock_after_failures: Duration,
    /// Settings for the instance on the machine.
    pub settings: Vec<(String, String)>,
    /// A network namespace of its own, connected to a bridge.
    pub network: Option<Network>,
}

/// The network that agents in namespaces of their own share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The bridge. It is made if there is none.
    pub bridge: String,
    /// The first three numbers of all addresses; the bridge is number 1.
    pub prefix: String,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            id: Name::default(),
            provides: Vec::new(),
            resources: Resources { cpus: 1000, ..Resources::default() },
            min: 0,
            max: 1,
            max_create_concurrent: u32::MAX,
            provider: Name::new_static("process"),
            provisioning: Vec::new(),
            boot_delay: Duration::ZERO,
            ready_within: Duration::from_mins(5),
            idle_shutdown: Duration::from_mins(1),
            attempts: 5,
            retry_delay: Duration::from_secs(5),
            lock_after_failures: Duration::from_mins(20),
            settings: Vec::new(),
            network: None,
        }
    }
}

impl Setup {
    /// What a class asks for that a machine does not have.
    pub fn lacks(&self, class: &Class) -> Vec<String> {
        let capabilities = class.capabilities.iter().filter(|c| !self.provides.contains(c));
        let mut lacks: Vec<String> = capabilities.map(|c| format!("`{c}`")).collect();
        if lacks.is_empty() && !self.resources.fits(&class.resources) {
            lacks.push(format!("{} (it has {})", class.resources, self.resources));
        }
        lacks
    }

    /// How many chains of a class one machine can run at once.
    pub fn slots(&self, class: &Class) -> u64 {
        if !self.lacks(class).is_empty() {
            return 0;
        }
        self.resources.times(&class.resources).clamp(1, 1 << 20)
    }
}

/// A limit for machines with certain capabilities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Machines that offer all of these.
    pub capabilities: Vec<Name>,
    /// At least so many at any time.
    pub min: u32,
    /// At most so many.
    pub max: Option<u32>,
}

impl Pool {
    /// Whether machines of a setup belong to it.
    pub fn includes(&self, setup: &Setup) -> bool {
        self.capabilities.iter().all(|c| setup.provides.contains(c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_machine_with_one_gpu_runs_one_chain_that_needs_one() {
        let gpu = || BTreeMap::from([(Name::new_static("gpus"), 1000)]);
        let resources = Resources { cpus: 8000, named: gpu(), ..Resources::default() };
        let setup = Setup { resources, ..Setup::default() };
        let mut class = Class::default();
        assert_eq!(setup.slots(&class), 8);
        class.resources.named = gpu();
        assert_eq!(setup.slots(&class), 1);
        class.resources.named = BTreeMap::from([(Name::new_static("gpus"), 2000)]);
        assert_eq!(setup.slots(&class), 0);
    }
}
