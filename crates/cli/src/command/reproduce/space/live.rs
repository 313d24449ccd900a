//! Real peers on hosts of their own, beside simulated ones with the same places and the same work; and what comes of it if
//! some of them are killed and some stand still.

use crate::arguments::SpaceArgs;
use crate::command::print;
use catena_simulate::space::{FlowTask, Load, Routing, Swarm, simulate_space};
use catena_space::Chemistry;
use catena_space::id::Peer;
use catena_space::time::{MILLI, Micros, SECOND};
use catena_testbed::{Net, Peers, wait_until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Tasks take a quarter of what they take in the other experiments.
const SHORTER: u64 = 4;
/// Peers are killed one after the other, each so long after the one before: who has lost one home needs another one before
/// it loses the second.
const PAUSE: Duration = Duration::from_secs(10);
/// So long some stand still: longer than their leases.
const STILL: Duration = Duration::from_secs(12);
/// Peers are simulated for so long before the first workflow comes.
const BEFORE: Micros = 200 * SECOND;
/// Messages are counted so long beyond the end: workflows are forgotten then.
const LINGER: Duration = Duration::from_secs(3);
/// A kind of message with fewer than these is left to chance.
const FEW: u64 = 100;

/// How large everything is.
struct Size {
    /// On so many hosts; one for each would be more than the kernel remembers neighbours of.
    hosts: usize,
    peers: usize,
    workflows: usize,
    tasks: u64,
}

/// Messages of a kind: real ones and simulated ones.
type Counts = BTreeMap<String, (u64, u64)>;

pub(super) fn reproduce(args: &SpaceArgs) -> Result<(), String> {
    Net::is_possible().map_err(|why| {
        format!("{why}: every peer gets a host of its own here, which takes root and iproute2 on Linux")
    })?;
    let size = if args.quick {
        Size { hosts: 5, peers: 25, workflows: 2, tasks: 12 }
    } else {
        Size { hosts: 10, peers: 50, workflows: 4, tasks: 48 }
    };
    let mut load = Load::random(size.workflows, size.tasks, 1.0, args.seed);
    for (n, flow) in load.workflows.iter_mut().enumerate() {
        flow.at = BEFORE + n as Micros * SECOND;
        for task in &mut flow.tasks {
            task.length /= SHORTER;
        }
        let read: BTreeSet<u32> = flow.tasks.iter().flat_map(|t| t.sources.iter().copied()).collect();
        let sources = (1..=flow.tasks.len() as u32).filter(|n| !read.contains(n)).collect();
        flow.tasks.push(FlowTask { sources, length: 100 * MILLI });
    }
    let calm = calm(&size, &load, args.seed)?;
    let trouble = trouble(&size, &load)?;
    let csv = calm.counts.iter().map(|(kind, (real, simulated))| format!("{kind},{real},{simulated}\n"));
    let csv = format!("kind,real,simulated\n{}", csv.collect::<String>());
    super::write(args, "space-live.csv", &csv)?;
    print(&if args.json {
        format!(
            "{}\n",
            json!({"peers": size.peers, "tasks": load.tasks(), "calm": calm.json(), "trouble": trouble.json()})
        )
    } else {
        format!("{}\n{}\n", calm.text(&size, &load), trouble.text())
    });
    Ok(())
}

/// A group without failures.
struct Calm {
    counts: Counts,
    /// Messages of upkeep of each peer in a second.
    upkeep: (f64, f64),
    seconds: (f64, f64),
    idle_memory: u64,
    memory: u64,
}

/// A group with failures.
struct Trouble {
    killed: usize,
    paused: usize,
    seconds: f64,
    wasted: usize,
    again: usize,
    same: usize,
    workflows: usize,
}

fn group(size: &Size, lease: &str) -> Result<Peers, String> {
    let names: Vec<String> = (0..size.hosts).map(|n| format!("h{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let net = Net::start(&names, None).map_err(|e| e.to_string())?;
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let more = |_| ["--cpus", "1", "--lease", lease].map(str::to_owned).to_vec();
    eprintln!("starting {} peers on {} hosts …", size.peers, size.hosts);
    let peers = Peers::start_on(net, size.peers / size.hosts, &program, &more).map_err(|e| e.to_string())?;
    peers.wait_for(0, size.peers).map_err(|e| e.to_string())?;
    peers.wait_for(size.peers - 1, size.peers).map_err(|e| e.to_string())?;
    Ok(peers)
}

fn calm(size: &Size, load: &Load, seed: u64) -> Result<Calm, String> {
    let peers = group(size, "60s")?;
    write_workflows(peers.path(), load)?;
    // Until everybody has said that it is there.
    sleep(Duration::from_secs(15));
    let before = statuses(&peers)?;
    let memory = |peers: &Peers| (0..size.peers).filter_map(|n| peers.memory(n)).max().unwrap_or(0);
    let idle_memory = memory(&peers);
    let begin = Instant::now();
    let runs = start(&peers, load, "calm")?;
    for run in runs {
        finish(run, &peers)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    sleep(LINGER);
    let after = statuses(&peers)?;
    let places = after.iter().filter_map(|s| u64::from_str_radix(s["peer"].as_str()?, 16).ok()).map(Peer);
    let chemistry = Chemistry::shipped("dependencies").ok_or("no rules")?;
    let mut swarm = Swarm::new(size.peers, Arc::new(chemistry), seed);
    swarm.places = Some(places.collect());
    (swarm.routing, swarm.hop) = (Routing::Full, (MILLI / 5, 2 * MILLI));
    swarm.linger = LINGER.as_micros() as Micros;
    let outcome = simulate_space(&swarm, load);
    let virtual_seconds = (outcome.end - outcome.began) as f64 / SECOND as f64 - LINGER.as_secs_f64();
    let simulated = |kind: &str| {
        let all = outcome.messages.get(kind).copied().unwrap_or(0);
        all - outcome.before.get(kind).copied().unwrap_or(0)
    };
    let (before, after) = (sent(&before), sent(&after));
    let kinds: BTreeSet<String> =
        after.keys().cloned().chain(outcome.messages.keys().map(|k| (*k).to_owned())).collect();
    let real = |kind: &str| after.get(kind).copied().unwrap_or(0) - before.get(kind).copied().unwrap_or(0);
    let mut counts: Counts = kinds.iter().map(|kind| (kind.clone(), (real(kind), simulated(kind)))).collect();
    // Only because somebody watches.
    counts.retain(|kind, _| kind != "progress" && kind != "progressed");
    let swim = counts.remove("swim").unwrap_or_default();
    let each = |n: u64, seconds: f64| n as f64 / size.peers as f64 / (seconds + LINGER.as_secs_f64());
    let upkeep = (each(swim.0, seconds), each(swim.1, virtual_seconds));
    Ok(Calm { counts, upkeep, seconds: (seconds, virtual_seconds), idle_memory, memory: memory(&peers) })
}

fn trouble(size: &Size, load: &Load) -> Result<Trouble, String> {
    let mut peers = group(size, "5s")?;
    write_workflows(peers.path(), load)?;
    let begin = Instant::now();
    let mut runs = start(&peers, load, "trouble")?;
    let (mut gone, mut paused, mut killed) = (BTreeSet::new(), 0, 0);
    let going = |runs: &mut Vec<Child>| runs.iter_mut().any(|run| matches!(run.try_wait(), Ok(None)));
    for n in 0..size.peers / 25 + size.peers / 5 {
        sleep(PAUSE);
        let Some(victim) = busiest(&peers, size, &gone)?.filter(|_| going(&mut runs)) else { break };
        if n < size.peers / 25 {
            peers.pause(victim, true);
            sleep(STILL);
            peers.pause(victim, false);
            paused += 1;
        } else {
            peers.member(victim).kill();
            gone.insert(victim);
            killed += 1;
        }
        eprintln!("{paused} peers have stood still, {killed} are killed");
    }
    for run in runs {
        finish(run, &peers)?;
    }
    let seconds = begin.elapsed().as_secs_f64();
    let told =
        |kind: &str| peers.logs().lines().filter(|l| l.contains(&format!("\"event\":\"{kind}\""))).count();
    let (wasted, again) = (told("wasted"), told("again"));
    let mut same = 0;
    for number in 0..size.workflows {
        local(peers.path(), number)?;
        let file = |out: &str| fs::read(peers.path().join(format!("{out}-{number}/all.txt")));
        let (there, here) = (file("trouble"), file("local"));
        same += usize::from(matches!((there, here), (Ok(a), Ok(b)) if a == b && !a.is_empty()));
    }
    let workflows = size.workflows;
    Ok(Trouble { killed, paused, seconds, wasted, again, same, workflows })
}

/// Who has most to lose: tasks that it executes, molecules that it leads. Not those who were asked: results come back there.
fn busiest(peers: &Peers, size: &Size, gone: &BTreeSet<usize>) -> Result<Option<usize>, String> {
    let busy = |s: &Value| s["running"].as_u64().unwrap_or(0) * 100 + s["leads"].as_u64().unwrap_or(0);
    let mut most = None;
    for status in statuses(peers)? {
        let address = status["address"].as_str().unwrap_or_default().to_owned();
        let mut others = (size.workflows..size.peers).filter(|n| !gone.contains(n));
        let number = others.find(|n| peers.address(*n) == address);
        most = most.max(number.map(|n| (busy(&status), n)));
    }
    Ok(most.map(|(_, n)| n))
}

/// Each workflow as a file that real peers understand: tasks sleep, and write what depends on all that they read.
fn write_workflows(directory: &Path, load: &Load) -> Result<(), String> {
    for (number, flow) in load.workflows.iter().enumerate() {
        let mut text = "catena: 1\nsteps:\n".to_owned();
        let last = flow.tasks.len();
        for (n, task) in flow.tasks.iter().enumerate() {
            let n = n + 1;
            let inputs: Vec<String> = task.sources.iter().map(|s| format!("{{t{s}.out}}")).collect();
            let read = if inputs.is_empty() { String::new() } else { format!("cat {}; ", inputs.join(" ")) };
            let sleep = task.length as f64 / SECOND as f64;
            let out = if n == last { "all.txt".to_owned() } else { format!("t{n}.txt") };
            let _ = writeln!(
                text,
                "  t{n}: {{ run: 'sleep {sleep:.3}; ({read}echo t{n}) | sha256sum > {{out}}', out: {out} }}"
            );
        }
        let _ = writeln!(text, "results: {{ all: '{{t{last}.out}}' }}");
        let path = directory.join(format!("flow-{number}.yaml"));
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Gives each workflow in at a peer of its own, one a second.
fn start(peers: &Peers, load: &Load, out: &str) -> Result<Vec<Child>, String> {
    let mut runs = Vec::new();
    for number in 0..load.workflows.len() {
        let (flow, out) = (format!("flow-{number}.yaml"), format!("{out}-{number}"));
        let words = ["run", &flow, "--out", &out, "--chains", "single", "--quiet"];
        let mut command = peers.command(number, &words);
        runs.push(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().map_err(|e| e.to_string())?);
        sleep(Duration::from_secs(1));
    }
    Ok(runs)
}

fn finish(run: Child, peers: &Peers) -> Result<(), String> {
    let output = run.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}", String::from_utf8_lossy(&output.stderr), peers.log(0)))
}

/// The same workflow on this machine.
fn local(directory: &Path, number: usize) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let path = directory.join(format!("flow-{number}.yaml"));
    let text = fs::read_to_string(&path).map_err(|e| e.to_string())?;
    // It need not sleep to come to the same.
    let quick: Vec<String> = text.lines().map(without_sleep).collect();
    let path = directory.join(format!("quick-{number}.yaml"));
    fs::write(&path, quick.join("\n")).map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg("run").arg(&path).args(["--out", &format!("local-{number}"), "--state", "local", "--quiet"]);
    let output = command.current_dir(directory).output().map_err(|e| e.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn without_sleep(line: &str) -> String {
    match (line.find("sleep "), line.find("; (")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &line[..from], &line[to + 2..]),
        _ => line.to_owned(),
    }
}

/// How all peers are.
fn statuses(peers: &Peers) -> Result<Vec<Value>, String> {
    let ask = || {
        let output = peers.command(0, &["peers", "--json"]).output().ok()?;
        serde_json::from_slice::<Vec<Value>>(&output.stdout).ok()
    };
    wait_until(Duration::from_secs(30), ask).ok_or_else(|| "peers do not say how they are".to_owned())
}

/// What all have sent, by what it is.
fn sent(statuses: &[Value]) -> BTreeMap<String, u64> {
    let mut sent = BTreeMap::new();
    for (kind, count) in statuses.iter().filter_map(|s| s["sent"].as_object()).flatten() {
        *sent.entry(kind.clone()).or_insert(0) += count.as_u64().unwrap_or(0);
    }
    sent
}

impl Calm {
    /// How far real and simulated messages are apart: all, and the kind that is worst.
    fn apart(&self) -> (f64, f64) {
        let sum = self.counts.values().fold((0, 0), |s, c| (s.0 + c.0, s.1 + c.1));
        let ratio = |(real, simulated): (u64, u64)| real as f64 / simulated.max(1) as f64 - 1.0;
        let usual = self.counts.values().filter(|c| c.0.max(c.1) >= FEW);
        let worst = usual.map(|c| ratio(*c)).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        (ratio(sum), worst.unwrap_or(0.0))
    }

    fn json(&self) -> Value {
        let (all, worst) = self.apart();
        json!({
            "messages": self.counts, "apart": all, "worst": worst, "upkeep": self.upkeep, "seconds": self.seconds,
            "idle_memory": self.idle_memory, "memory": self.memory,
        })
    }

    fn text(&self, size: &Size, load: &Load) -> String {
        let (peers, workflows, tasks) = (size.peers, size.workflows, load.tasks());
        let mut text =
            format!("{peers} real peers, {workflows} workflows with {tasks} tasks, beside simulated ones\n");
        let _ = writeln!(text, "{:<12} {:>8} {:>10} {:>8}", "messages", "real", "simulated", "%");
        for (kind, (real, simulated)) in &self.counts {
            let apart = 100.0 * (*real as f64 / (*simulated).max(1) as f64 - 1.0);
            let shown = if (*real).max(*simulated) < FEW { "few".to_owned() } else { format!("{apart:+.1}") };
            let _ = writeln!(text, "{kind:<12} {real:>8} {simulated:>10} {shown:>8}");
        }
        let (all, worst) = self.apart();
        let _ = writeln!(
            text,
            "all {:+.1} %, the worst kind with at least {FEW} {:+.1} %; upkeep {:.2} and {:.2} a second and peer; {:.1} s and {:.1} s",
            100.0 * all,
            100.0 * worst,
            self.upkeep.0,
            self.upkeep.1,
            self.seconds.0,
            self.seconds.1
        );
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let _ = writeln!(
            text,
            "memory of the largest peer: {:.1} MiB idle, {:.1} MiB in the end",
            mib(self.idle_memory),
            mib(self.memory)
        );
        text
    }
}

impl Trouble {
    fn json(&self) -> Value {
        let Self { killed, paused, seconds, wasted, again, same, workflows } = self;
        json!({
            "killed": killed, "paused": paused, "seconds": seconds, "wasted": wasted, "again": again,
            "same": same, "workflows": workflows,
        })
    }

    fn text(&self) -> String {
        let Self { killed, paused, seconds, wasted, again, same, workflows } = self;
        format!(
            "{killed} peers killed one after the other, {paused} stood still for 12 s with leases of 5 s: {same} of {workflows} results as on one machine, \
             in {seconds:.1} s; {wasted} executions in vain, {again} tasks once more because their data were lost"
        )
    }
}
