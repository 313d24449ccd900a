//! What a simulation comes to, in figures.

use crate::cluster::Cluster;
use crate::engine::simulate;
use crate::outcome::Outcome;
use crate::strategy::PolicyName;
use crate::time::seconds;
use crate::workload::Workload;
use serde::Serialize;

/// One simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What was computed.
    pub workflow: String,
    /// How many tasks it has.
    pub tasks: usize,
    /// How many nodes there are at most.
    pub nodes: u32,
    /// Who ran what.
    pub policy: String,
    /// What chance depended on.
    pub seed: u64,
    /// In seconds.
    pub makespan: f64,
    /// Over the network, or from shared storage.
    pub bytes_moved: u64,
    /// The part of the time in which processors were busy.
    pub utilisation: f64,
    /// What the nodes cost.
    pub cost: f64,
    /// Executions that were in vain.
    pub wasted: usize,
    /// No policy could be faster, in seconds.
    pub lower_bound: f64,
}

impl Figure {
    /// Simulates once.
    pub fn of(
        workload: &Workload,
        cluster: &Cluster,
        policy: PolicyName,
        seed: u64,
    ) -> Result<(Self, Outcome), String> {
        let place = |e: String| format!("{}, {policy}: {e}", workload.name);
        let mut strategy = policy.strategy(workload, cluster, seed).map_err(place)?;
        let outcome = simulate(workload, cluster, &mut *strategy, seed).map_err(place)?;
        let figure = Self {
            workflow: workload.name.clone(),
            tasks: workload.len(),
            nodes: cluster.nodes(),
            policy: policy.to_string(),
            seed,
            makespan: seconds(outcome.makespan),
            bytes_moved: outcome.bytes_moved,
            utilisation: outcome.utilisation(|t| workload.class(t).resources.cpus),
            cost: outcome.cost(),
            wasted: outcome.wasted(),
            lower_bound: seconds(cluster.lower_bound(workload)),
        };
        Ok((figure, outcome))
    }
}
