//! What the tests of clusters do again and again.

use catena_testbed::{Cluster, wait_until};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Settings under which death is noticed soon.
pub(crate) const QUICK: &str = "lease: 1500ms\nlook: 1s\nagent: {cpus: 1, memory: 1 GiB, cache: false}\n";

pub(crate) fn start(settings: &str) -> Cluster {
    Cluster::start(Path::new(env!("CARGO_BIN_EXE_catena")), settings).unwrap()
}

/// A workflow of independent chains. Each notes in a file that it has run, so that starts can be counted.
pub(crate) fn counting(cluster: &Cluster, name: &str, chains: usize, seconds: f64) {
    let notes = cluster.path().join(format!("{name}.txt"));
    let text = format!(
        "catena: 1\nname: {name}\ninputs: {{ns: {{range: {chains}}}}}\nsteps:\n  work:\n    for: n in ns\n    run: \"sleep {seconds}; echo {{n}} >> {}\"\n",
        notes.display()
    );
    std::fs::write(cluster.path().join(format!("{name}.yaml")), text).unwrap();
}

pub(crate) fn submit(cluster: &Cluster, workflow: &str) -> i64 {
    let output = cluster.command(&["submit", workflow]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let run = text.trim().strip_prefix("run ").and_then(|n| n.parse().ok());
    run.unwrap_or_else(|| panic!("{}\n{}", String::from_utf8_lossy(&output.stderr), cluster.logs()))
}

pub(crate) fn status(cluster: &Cluster, run: i64) -> Option<Value> {
    serde_json::from_str(&cluster.ask(&["status", &run.to_string(), "--json"])?).ok()
}

/// Waits until so many chains are done.
pub(crate) fn wait_for_chains(cluster: &Cluster, run: i64, done: u64) {
    let enough = || status(cluster, run).filter(|s| s["chains"]["succeeded"].as_u64() >= Some(done));
    wait_until(Duration::from_mins(1), enough)
        .unwrap_or_else(|| panic!("{:#?}\n{}", status(cluster, run), cluster.logs()));
}

/// Waits for the end of a run and returns how it ended.
pub(crate) fn wait_for_end(cluster: &Cluster, run: i64) -> Value {
    let ended = || status(cluster, run).filter(|s| s["state"] != "running");
    wait_until(Duration::from_secs(90), ended)
        .unwrap_or_else(|| panic!("{:#?}\n{}", status(cluster, run), cluster.logs()))
}

pub(crate) fn assert_succeeded(cluster: &Cluster, run: i64, chains: u64) {
    let end = wait_for_end(cluster, run);
    assert_eq!(end["state"], "succeeded", "{end:#}\n{}", cluster.logs());
    assert_eq!(end["chains"]["succeeded"], chains, "{end:#}");
}
