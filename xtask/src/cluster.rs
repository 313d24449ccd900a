//! `cargo xtask bench cluster`: what a chain costs on a cluster, how soon it starts, and how soon a cluster that
//! has lost a part goes on.

use crate::bench::time;
use crate::{SERVERS, install, run};
use catena_testbed::{Cluster, wait_until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const AGENTS: usize = 8;
const SETTINGS: &str = "lease: 2s\nlook: 2s\nagent: {cpus: 1, memory: 1 GiB, cache: false}\n";

/// The parts that can be measured alone.
const PARTS: [&str; 3] = ["throughput", "latency", "recovery"];

pub(crate) fn bench(arguments: &[&str]) -> Result<(), String> {
    let quick = arguments.contains(&"--quick");
    let wanted: Vec<&str> = arguments.iter().copied().filter(|a| *a != "--quick").collect();
    if let Some(unknown) = wanted.iter().find(|a| !PARTS.contains(a)) {
        return Err(format!("`{unknown}` cannot be measured; {} can", PARTS.join(", ")));
    }
    let measure = |part: &str| wanted.is_empty() || wanted.contains(&part);
    install(&SERVERS)?;
    run(Command::new("cargo").args(["build", "--release"]))?;
    let catena = crate::target().join("release/catena");
    let counts: &[usize] = if quick { &[3_000, 30_000] } else { &[15_000, 150_000] };
    if measure("throughput") {
        throughput(&catena, counts)?;
    }
    if measure("latency") {
        latency(&catena)?;
    }
    if measure("recovery") {
        recovery(&catena, Duration::from_secs(if quick { 5 } else { 60 }))?;
    }
    Ok(())
}

/// A cluster with one instance besides its agents.
fn start_small(catena: &Path, agents: usize) -> Result<Cluster, String> {
    let fail = |e: catena_testbed::TestbedError| e.to_string();
    let mut cluster = Cluster::start(catena, SETTINGS).map_err(fail)?;
    cluster.serve("main", "http,controller,scheduler", &[]).map_err(fail)?;
    for n in 0..agents {
        cluster.agent(&format!("a{n}"), &[], &[]).map_err(fail)?;
    }
    cluster.wait_for_agents(agents).map_err(fail)?;
    Ok(cluster)
}

fn start(catena: &Path, agents: usize) -> Result<Cluster, String> {
    let fail = |e: catena_testbed::TestbedError| e.to_string();
    let mut cluster = Cluster::start(catena, SETTINGS).map_err(fail)?;
    cluster.serve("http", "http", &[]).map_err(fail)?;
    for n in 1..=2 {
        cluster.serve(&format!("scheduler{n}"), "scheduler", &[]).map_err(fail)?;
        cluster.serve(&format!("controller{n}"), "controller", &[]).map_err(fail)?;
    }
    for n in 0..agents {
        cluster.agent(&format!("a{n}"), &[], &[]).map_err(fail)?;
    }
    cluster.wait_for_agents(agents).map_err(fail)?;
    Ok(cluster)
}

/// Writes a workflow of independent chains.
fn independent(cluster: &Cluster, chains: usize, program: &str, argument: &str) -> Result<(), String> {
    let list = (0..chains).map(|_| argument).collect::<Vec<_>>().join(",");
    let workflow = format!(
        "api: 4.7.0\nvars:\n  - {{id: list, value: [{list}]}}\nactions:\n  - type: for\n    input: list\n    enumerator: i\n    actions:\n      - {{type: execute, service: work, inputs: [{{id: n, var: i}}]}}\n"
    );
    let service = format!(
        "- {{id: work, name: work, description: work, path: {program}, runtime: other, parameters: [{{id: n, name: n, description: n, type: input, cardinality: 1..1}}]}}\n"
    );
    std::fs::write(cluster.path().join("workflow.yaml"), workflow).map_err(|e| e.to_string())?;
    std::fs::write(cluster.path().join("services.yaml"), service).map_err(|e| e.to_string())
}

fn submit(cluster: &Cluster, wait: bool) -> Result<i64, String> {
    let mut arguments =
        vec!["submit", "workflow.yaml", "--services", "services.yaml", "--chains", "single", "--json"];
    if wait {
        arguments.push("--wait");
    }
    let said = cluster.ask(&arguments).ok_or_else(|| cluster.logs())?;
    let numbers = said.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
    numbers.filter_map(|v| v["run"].as_i64()).next_back().ok_or(said)
}

fn get(cluster: &Cluster, path: &str) -> Result<Value, String> {
    let token = cluster.token().unwrap_or_default();
    let request =
        ureq::get(format!("{}{path}", cluster.url())).header("Authorization", format!("Bearer {token}"));
    let mut response = request.call().map_err(|e| e.to_string())?;
    response.body_mut().with_config().limit(u64::MAX).read_json().map_err(|e| e.to_string())
}

/// Start and end of each chain, by agent, in order.
fn chains(cluster: &Cluster, run: i64) -> Result<BTreeMap<String, Vec<(i64, i64)>>, String> {
    let all = get(cluster, &format!("/runs/{run}/chains?limit=10000"))?;
    let mut lanes: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for c in all.as_array().into_iter().flatten() {
        if let (Some(agent), Some(s), Some(e)) =
            (c["agent"].as_str(), c["started"].as_i64(), c["ended"].as_i64())
        {
            lanes.entry(agent.to_owned()).or_default().push((s, e));
        }
    }
    for lane in lanes.values_mut() {
        lane.sort_unstable();
    }
    Ok(lanes)
}

/// Memory of the instance in KiB.
fn memory(cluster: &mut Cluster, which: &str) -> u64 {
    let pid = cluster.instance("main").and_then(|i| i.pid()).unwrap_or(0);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(which)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn throughput(catena: &Path, counts: &[usize]) -> Result<(), String> {
    println!("\n### No-op chains, {AGENTS} agents, PostgreSQL and NATS\n");
    println!(
        "| chains | seconds | ms per chain | × xargs -P2 | memory of the instance, highest |\n|---|---|---|---|---|"
    );
    for chains in counts {
        let mut cluster = start_small(catena, AGENTS)?;
        independent(&cluster, *chains, "/bin/true", "1")?;
        let begin = Instant::now();
        submit(&cluster, true)?;
        let seconds = begin.elapsed().as_secs_f64();
        let floor = time(Command::new("sh").args(["-c", "seq 3000 | xargs -P2 -n1 /bin/true"]))? / 3000.0;
        let each = seconds / *chains as f64;
        println!(
            "| {chains} | {seconds:.1} | {:.3} | {:.2} | {} MiB, {} MiB |",
            each * 1e3,
            each / floor,
            memory(&mut cluster, "VmRSS") / 1024,
            memory(&mut cluster, "VmHWM") / 1024
        );
    }
    Ok(())
}

fn percentile(mut values: Vec<f64>, p: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len() as f64 - 1.0) * p) as usize).copied().unwrap_or(f64::NAN)
}

fn latency(catena: &Path) -> Result<(), String> {
    println!("\n### How soon chains start\n\n| | p50 | p99 |\n|---|---|---|");
    let mut cluster = start(catena, AGENTS)?;
    // Each task is a chain that becomes ready when the one before it has ended.
    let mut text = String::from("catena: 1\nsteps:\n");
    for n in 0..300 {
        let before = if n == 0 { String::new() } else { format!("cat {{s{}.out}} > /dev/null; ", n - 1) };
        text += &format!("  s{n}: {{run: \"{before}date +%s%N > {{out}}\", out: t}}\n");
    }
    std::fs::write(cluster.path().join("workflow.yaml"), text).map_err(|e| e.to_string())?;
    std::fs::write(cluster.path().join("services.yaml"), "[]\n").map_err(|e| e.to_string())?;
    let run = submit(&cluster, true)?;
    let list = get(&cluster, &format!("/runs/{run}/chains?limit=10000"))?;
    let list = list.as_array().into_iter().flatten();
    let waits: Vec<f64> =
        list.filter_map(|c| Some((c["started"].as_i64()? - c["registered"].as_i64()?) as f64)).collect();
    println!(
        "| idle cluster: chain becomes ready → process starts, ms | {} | {} |",
        percentile(waits.clone(), 0.5),
        percentile(waits, 0.99)
    );
    let mut all: Vec<(i64, i64)> = chains(&cluster, run)?.into_values().flatten().collect();
    all.sort_unstable();
    let gaps: Vec<f64> = all.windows(2).map(|w| (w[1].0 - w[0].1) as f64).collect();
    println!(
        "| idle cluster: end of a chain → planning → start of the next, ms | {} | {} |",
        percentile(gaps.clone(), 0.5),
        percentile(gaps, 0.99)
    );
    independent(&cluster, 4000, "/bin/sleep", "0.02")?;
    let run = submit(&cluster, true)?;
    let lanes = chains(&cluster, run)?;
    let gaps: Vec<f64> = lanes
        .values()
        .flat_map(|l| l.windows(2).map(|w| (w[1].0 - w[0].1) as f64).collect::<Vec<_>>())
        .collect();
    println!(
        "| full queue: idle between two chains on an agent, ms | {} | {} |",
        percentile(gaps.clone(), 0.5),
        percentile(gaps, 0.99)
    );
    let mut firsts = Vec::new();
    for n in 0..10 {
        independent(&cluster, 400, "/bin/sleep", "0.2")?;
        let run = submit(&cluster, false)?;
        std::thread::sleep(Duration::from_millis(500));
        let name = format!("new{n}");
        cluster.agent(&name, &[], &[]).map_err(|e| e.to_string())?;
        std::thread::sleep(Duration::from_millis(1500));
        let agents = get(&cluster, "/agents")?;
        let joined = agents
            .as_array()
            .into_iter()
            .flatten()
            .find(|a| a["id"] == name.as_str())
            .and_then(|a| a["joined"].as_i64());
        let first = chains(&cluster, run)?.get(&name).and_then(|l| l.first().copied());
        if let (Some(joined), Some((first, _))) = (joined, first) {
            firsts.push((first - joined) as f64);
        }
        cluster.ask(&["cancel", &run.to_string()]);
        cluster.kill(&name);
    }
    println!(
        "| new agent joined → its first chain, ms | {} | {} |",
        percentile(firsts.clone(), 0.5),
        percentile(firsts, 0.99)
    );
    Ok(())
}

/// The longest time in which no chain started, in seconds, and the time of the last start.
fn longest_pause(lanes: &BTreeMap<String, Vec<(i64, i64)>>) -> f64 {
    let mut starts: Vec<i64> = lanes.values().flatten().map(|c| c.0).collect();
    starts.sort_unstable();
    starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0) as f64 / 1e3
}

fn recovery(catena: &Path, away: Duration) -> Result<(), String> {
    println!(
        "\n### How soon a cluster goes on (lease 2 s)\n\n| what is killed | longest time without a start, s | chains | lost | started again |\n|---|---|---|---|---|"
    );
    type Break = fn(&mut Cluster, Duration) -> Result<(), catena_testbed::TestbedError>;
    let cases: [(&str, Break); 4] = [
        ("both schedulers, one after the other", |c, _| {
            for name in ["scheduler1", "scheduler2"] {
                c.kill(name);
                std::thread::sleep(Duration::from_secs(6));
                c.start_again(name)?;
                std::thread::sleep(Duration::from_secs(3));
            }
            Ok(())
        }),
        ("both controllers, one after the other", |c, _| {
            for name in ["controller1", "controller2"] {
                c.kill(name);
                std::thread::sleep(Duration::from_secs(6));
                c.start_again(name)?;
                std::thread::sleep(Duration::from_secs(3));
            }
            Ok(())
        }),
        ("NATS", |c, away| {
            c.nats.kill();
            std::thread::sleep(away);
            c.nats.start_again()
        }),
        ("PostgreSQL", |c, away| {
            c.postgres.kill();
            std::thread::sleep(away);
            c.postgres.start_again()
        }),
    ];
    for (what, kill) in cases {
        let mut cluster = start(catena, AGENTS)?;
        let seconds = 30.0 + away.as_secs_f64();
        let count = (seconds / 0.25) as usize * AGENTS;
        independent(&cluster, count, "/bin/sleep", "0.25")?;
        let run = submit(&cluster, false)?;
        std::thread::sleep(Duration::from_secs(4));
        kill(&mut cluster, away).map_err(|e| e.to_string())?;
        let back = Instant::now();
        let done = |c: &Cluster| get(c, &format!("/runs/{run}")).ok();
        let before = wait_until(Duration::from_mins(1), || done(&cluster));
        let before = before.and_then(|s| s["chains"]["succeeded"].as_u64()).unwrap_or(0);
        wait_until(Duration::from_mins(2), || {
            done(&cluster).filter(|s| s["chains"]["succeeded"].as_u64() > Some(before))
        });
        let progress = back.elapsed().as_secs_f64();
        let end = wait_until(Duration::from_mins(10), || done(&cluster).filter(|s| s["state"] != "running"));
        let end = end.ok_or_else(|| cluster.logs())?;
        let succeeded = end["chains"]["succeeded"].as_u64().unwrap_or(0);
        let all = get(&cluster, &format!("/runs/{run}/chains?limit=10000"))?;
        let again = all.as_array().into_iter().flatten().filter(|c| c["attempt"].as_u64() > Some(1)).count();
        let pause = longest_pause(&chains(&cluster, run)?);
        let after = if what.contains("both") {
            String::new()
        } else {
            format!(" ({progress:.1} s after its return)")
        };
        println!("| {what} | {pause:.1}{after} | {count} | {} | {again} |", count as u64 - succeeded);
    }
    Ok(())
}
