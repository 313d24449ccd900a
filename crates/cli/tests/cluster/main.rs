//! Clusters of real processes against real servers, and what happens when parts of them die.

mod compose;
mod data;
mod faults;
mod fleet;
mod group;
mod helper;
mod http;
mod peers;
mod work;

use catena_testbed::Cluster;
use helper::{QUICK, assert_succeeded, counting, start, status, submit, wait_for_chains, wait_for_end};

/// A cluster with one instance and some agents.
fn small(agents: usize) -> Cluster {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    for n in 0..agents {
        cluster.agent(&format!("a{n}"), &[], &[]).unwrap();
    }
    cluster.wait_for_agents(agents).unwrap();
    cluster
}

/// How often each chain of a counting workflow has run.
fn executions(cluster: &Cluster, name: &str) -> Vec<usize> {
    let notes = std::fs::read_to_string(cluster.path().join(format!("{name}.txt"))).unwrap_or_default();
    let mut counts = std::collections::BTreeMap::new();
    for n in notes.lines().filter_map(|l| l.parse::<usize>().ok()) {
        *counts.entry(n).or_insert(0) += 1;
    }
    counts.into_values().collect()
}
