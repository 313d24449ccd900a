//! Nodes that are made when tasks wait and go when they have nothing to do, as the fleet of the live system decides.

use crate::cluster::Cluster;
use crate::time::{Nanos, seconds};
use crate::world::World;
use catena_fleet::{Agent, Demand, Fleet, Order, Setup};
use catena_model::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Drives a [`Fleet`] in virtual time. There is none if all nodes are there from the beginning.
pub(crate) struct Elastic {
    fleet: Fleet,
    /// The name of each node.
    names: BTreeMap<u32, Name>,
    /// Nodes that stay although they have nothing to do.
    kept: BTreeSet<Name>,
    /// What was true when the fleet last decided.
    seen: Option<(Vec<u64>, usize)>,
}

/// What fleets count in.
fn millis(now: Nanos) -> i64 {
    (now / 1_000_000) as i64
}

impl Elastic {
    pub(crate) fn new(cluster: &Cluster) -> Option<Self> {
        if cluster.kinds.iter().all(|k| k.max == k.count) {
            return None;
        }
        let setup = |kind: &crate::cluster::Kind| Setup {
            id: kind.id.clone(),
            provides: kind.capabilities.clone(),
            resources: kind.resources.clone(),
            min: kind.count,
            max: kind.max,
            ready_within: Duration::from_secs_f64(seconds(kind.boot)) + Duration::from_hours(1),
            ..Setup::default()
        };
        let mut fleet = Fleet::new(cluster.kinds.iter().map(setup).collect(), Vec::new(), "");
        let mut names = BTreeMap::new();
        for kind in &cluster.kinds {
            for n in 0..kind.count {
                let name = Name::new(format!("{} {n}", kind.id));
                fleet.remember(name.clone(), &kind.id, 0, true);
                names.insert(names.len() as u32, name);
            }
        }
        Some(Self { fleet, names, kept: BTreeSet::new(), seen: None })
    }

    /// Whether a node was asked for that is not there yet.
    pub(crate) fn expects(&self, node: u32) -> bool {
        self.names.contains_key(&node)
    }

    /// A node was made that the fleet knows by this name.
    pub(crate) fn made(&mut self, node: u32, name: Name) {
        self.names.insert(node, name);
    }

    /// Nodes that have had nothing to do for long enough, and need not stay.
    pub(crate) fn idle(&self, now: Nanos, world: &World<'_>) -> Vec<u32> {
        let bored = |node: &u32| self.leaves(*node, world).is_some_and(|time| time <= now);
        self.names.keys().copied().filter(bored).collect()
    }

    /// When a node leaves if it gets nothing to do.
    fn leaves(&self, node: u32, world: &World<'_>) -> Option<Nanos> {
        let may_go = world.is_idle(node) && !self.kept.contains(self.names.get(&node)?);
        may_go.then(|| world.nodes[node as usize].idle_since + world.kind(node).idle)
    }

    /// The nodes to make: their kinds, and the names the fleet has given them.
    pub(crate) fn decide(&mut self, now: Nanos, world: &World<'_>) -> Result<Vec<(usize, Name)>, String> {
        let up = |node: &u32| world.nodes[*node as usize].is_up;
        let there = self.names.keys().filter(|n| up(n)).count();
        if self.seen.as_ref().is_some_and(|(ready, nodes)| *ready == world.ready && *nodes == there) {
            return Ok(Vec::new());
        }
        let agent = |(node, id): (&u32, &Name)| Agent {
            id: id.clone(),
            capabilities: world.kind(*node).capabilities.clone(),
            resources: world.kind(*node).resources.clone(),
        };
        self.fleet.agents(self.names.iter().filter(|(n, _)| up(n)).map(agent).collect());
        let waiting = world.workload.classes.iter().zip(&world.ready).filter(|(_, count)| **count > 0);
        let demand = waiting.map(|(class, count)| Demand { class: class.clone(), count: *count, rank: 0 });
        self.fleet.demand(demand.collect());
        let mut made = Vec::new();
        self.kept.clear();
        for order in self.fleet.decide(millis(now)) {
            match order {
                Order::Create { id, setup } => made.push((setup, id)),
                Order::KeepAlive(id) => {
                    self.kept.insert(id);
                }
                Order::Destroy { id, .. } => self.names.retain(|_, name| *name != id),
                Order::Explain { reason, .. } => return Err(reason),
            }
        }
        self.seen = Some((world.ready.clone(), there));
        Ok(made)
    }

    /// When somebody may have been idle for long enough.
    pub(crate) fn next_look(&self, now: Nanos, world: &World<'_>) -> Option<Nanos> {
        self.names.keys().filter_map(|n| self.leaves(*n, world)).filter(|t| *t > now).min()
    }
}
