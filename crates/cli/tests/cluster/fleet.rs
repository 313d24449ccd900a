//! Agents that are made when they are needed.

use crate::{QUICK, assert_succeeded, counting, start, status, submit};
use catena_testbed::{Cluster, wait_until};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

fn with_setups(setups: &str) -> Cluster {
    let mut cluster = start(&format!("{QUICK}fleet:\n  setups:\n{setups}"));
    cluster.serve("main", "http,controller,scheduler,fleet", &[]).unwrap();
    cluster.wait_for_agents(0).unwrap();
    cluster
}

fn machines(cluster: &Cluster, state: &str) -> usize {
    let fleet: Value =
        cluster.ask(&["fleet", "--json"]).and_then(|t| serde_json::from_str(&t).ok()).unwrap_or_default();
    fleet["machines"].as_array().into_iter().flatten().filter(|m| m["state"] == state).count()
}

#[test]
fn agents_are_made_on_demand_and_leave_when_idle() {
    let cluster = with_setups("    - {id: worker, max: 3, bootDelay: 300ms, idleShutdown: 1s}\n");
    assert_eq!(machines(&cluster, "running"), 0);
    counting(&cluster, "work", 12, 0.3);
    let run = submit(&cluster, "work.yaml");
    assert_succeeded(&cluster, run, 12);
    assert!(machines(&cluster, "running") + machines(&cluster, "destroyed") >= 2, "several at once");
    let gone = || (machines(&cluster, "destroyed") >= 2 && machines(&cluster, "running") == 0).then_some(());
    wait_until(Duration::from_secs(30), gone).unwrap_or_else(|| panic!("{}", cluster.logs()));
}

#[test]
fn what_no_setup_can_satisfy_is_said_at_once() {
    let cluster = with_setups("    - {id: worker, provides: [red], max: 3}\n");
    let text = "catena: 1\nsteps:\n  a: {run: \"true\", needs: [red]}\n  b: {run: \"true\", needs: [blue]}\n";
    std::fs::write(cluster.path().join("colours.yaml"), text).unwrap();
    let run = submit(&cluster, "colours.yaml");
    let explained = || {
        let waiting = status(&cluster, run)?["waiting"].clone();
        let reason =
            waiting.as_array()?.iter().find_map(|w| w["reason"].as_str().filter(|r| r.contains("blue")))?;
        Some(reason.to_owned())
    };
    let reason = wait_until(Duration::from_secs(20), explained).unwrap();
    assert_eq!(reason, "no setup can satisfy {blue}; the nearest, worker, lacks `blue`");
    wait_until(Duration::from_secs(30), || status(&cluster, run).filter(|s| s["chains"]["succeeded"] == 1))
        .unwrap();
}

#[test]
fn machines_that_cannot_be_made_are_not_tried_again_and_again() {
    let setup = "    - {id: broken, max: 1, provisioning: ['echo out of order >&2; exit 3'], attempts: 2, retryDelay: 100ms, lockAfterFailures: 1h}\n";
    let cluster = with_setups(setup);
    counting(&cluster, "work", 1, 0.0);
    submit(&cluster, "work.yaml");
    wait_until(Duration::from_secs(20), || (machines(&cluster, "failed") == 2).then_some(())).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(machines(&cluster, "failed"), 2);
    let fleet = cluster.ask(&["fleet"]).unwrap();
    assert!(fleet.contains("out of order"), "{fleet}");
}

#[test]
fn machines_that_nobody_knows_of_are_taken_down() {
    let cluster = with_setups("    - {id: worker, max: 1}\n");
    let storage = cluster.path().join("storage").canonicalize().unwrap();
    let name = format!("{}|{}", cluster.postgres.url(), storage.display());
    let mut stray = Command::new("sleep")
        .arg("60")
        .env("CATENA_CLUSTER", name)
        .env("CATENA_MACHINE", "forgotten")
        .spawn()
        .unwrap();
    let mut other = Command::new("sleep").arg("60").env("CATENA_CLUSTER", "another").spawn().unwrap();
    let ended = wait_until(Duration::from_secs(20), || stray.try_wait().unwrap());
    let unharmed = other.try_wait().unwrap().is_none();
    let _ = (stray.kill(), other.kill(), other.wait());
    assert!(ended.is_some(), "{}", cluster.logs());
    assert!(unharmed, "machines of other clusters are left alone");
}

#[test]
fn killed_machines_are_replaced() {
    let cluster = with_setups("    - {id: worker, min: 2, max: 2, idleShutdown: 60s}\n");
    cluster.wait_for_agents(2).unwrap();
    counting(&cluster, "work", 16, 0.4);
    let run = submit(&cluster, "work.yaml");
    crate::wait_for_chains(&cluster, run, 3);
    let fleet: Value = serde_json::from_str(&cluster.ask(&["fleet", "--json"]).unwrap()).unwrap();
    let pid =
        fleet["machines"].as_array().unwrap().iter().find(|m| m["state"] == "running").unwrap()["handle"]
            .clone();
    let pid = rustix::process::Pid::from_raw(pid.as_str().unwrap().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_succeeded(&cluster, run, 16);
    let replaced =
        || (machines(&cluster, "running") == 2 && machines(&cluster, "destroyed") == 1).then_some(());
    wait_until(Duration::from_secs(30), replaced).unwrap_or_else(|| panic!("{}", cluster.logs()));
}
