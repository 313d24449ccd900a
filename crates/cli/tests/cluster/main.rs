//! Clusters of real processes against real servers, and what happens when parts of them die.

mod data;
mod faults;
mod fleet;
mod http;
mod peers;
mod reproduce;
mod work;

use catena_testbed::{Cluster, wait_until};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Settings under which death is noticed soon.
const QUICK: &str = "lease: 1500ms\nlook: 1s\nagent: {cpus: 1, memory: 1 GiB, cache: false}\n";

fn start(settings: &str) -> Cluster {
    Cluster::start(Path::new(env!("CARGO_BIN_EXE_catena")), settings).unwrap()
}

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

/// A workflow of independent chains. Each notes in a file that it has run, so that starts can be counted.
fn counting(cluster: &Cluster, name: &str, chains: usize, seconds: f64) {
    let notes = cluster.path().join(format!("{name}.txt"));
    let text = format!(
        "catena: 1\nname: {name}\ninputs: {{ns: {{range: {chains}}}}}\nsteps:\n  work:\n    for: n in ns\n    run: \"sleep {seconds}; echo {{n}} >> {}\"\n",
        notes.display()
    );
    std::fs::write(cluster.path().join(format!("{name}.yaml")), text).unwrap();
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

fn submit(cluster: &Cluster, workflow: &str) -> i64 {
    let output = cluster.command(&["submit", workflow]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let run = text.trim().strip_prefix("run ").and_then(|n| n.parse().ok());
    run.unwrap_or_else(|| panic!("{}\n{}", String::from_utf8_lossy(&output.stderr), cluster.logs()))
}

fn status(cluster: &Cluster, run: i64) -> Option<Value> {
    serde_json::from_str(&cluster.ask(&["status", &run.to_string(), "--json"])?).ok()
}

/// Waits until so many chains are done.
fn wait_for_chains(cluster: &Cluster, run: i64, done: u64) {
    let enough = || status(cluster, run).filter(|s| s["chains"]["succeeded"].as_u64() >= Some(done));
    wait_until(Duration::from_mins(1), enough)
        .unwrap_or_else(|| panic!("{:#?}\n{}", status(cluster, run), cluster.logs()));
}

/// Waits for the end of a run and returns how it ended.
fn wait_for_end(cluster: &Cluster, run: i64) -> Value {
    let ended = || status(cluster, run).filter(|s| s["state"] != "running");
    wait_until(Duration::from_secs(90), ended)
        .unwrap_or_else(|| panic!("{:#?}\n{}", status(cluster, run), cluster.logs()))
}

fn assert_succeeded(cluster: &Cluster, run: i64, chains: u64) {
    let end = wait_for_end(cluster, run);
    assert_eq!(end["state"], "succeeded", "{end:#}\n{}", cluster.logs());
    assert_eq!(end["chains"]["succeeded"], chains, "{end:#}");
}
