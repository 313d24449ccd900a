//! One execution on a cluster of its own, so that nothing is there yet.

use super::Interrupt;
use super::least::least_moved;
use super::variant::Variant;
use super::work::Work;
use crate::arguments::DataArgs;
use crate::remote::Server;
use catena_plan::step_name;
use catena_server::{ChainView, StatusView};
use catena_store::RunState;
use catena_testbed::{AgentStart, Cluster, Net, Rate};
use serde::Serialize;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long it is listened to what agents and servers say to each other when there is nothing to do.
const QUIET: Duration = Duration::from_secs(3);
/// How often it is asked how far the run is.
const ASK: Duration = Duration::from_millis(250);
/// How often that is told.
const TELL: Duration = Duration::from_secs(5);
/// How many chains are read at a time.
const PAGE: usize = 10_000;
/// The host of the servers.
const HOME: &str = "home";

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Trial {
    /// From the start of the run to its end, in seconds.
    pub(super) makespan: f64,
    /// Bytes that agents received, without what they receive when there is nothing to do.
    pub(super) bytes_moved: u64,
    /// What the placement of tasks would have had to move.
    pub(super) bytes_needed: u64,
    /// What all agents together receive per second when there is nothing to do.
    pub(super) quiet: f64,
    #[serde(skip)]
    pub(super) executed: Vec<Executed>,
}

/// A task that was executed.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    /// Its number in the workflow.
    pub(super) job: usize,
    pub(super) agent: String,
    /// In seconds since the start of the run.
    pub(super) start: f64,
    pub(super) end: f64,
}

pub(super) fn run(
    args: &DataArgs,
    work: &Work,
    variant: &Variant,
    title: &str,
    interrupt: &Interrupt,
) -> Result<Trial, String> {
    let cluster = start(args, variant).map_err(|e| e.to_string())?;
    interrupt.check()?;
    let directory = cluster.path().join("workflow");
    work.stand_in.write(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let (before, since) = (received(&cluster)?, Instant::now());
    pause(QUIET, interrupt)?;
    let quiet = (received(&cluster)? - before) as f64 / since.elapsed().as_secs_f64();
    let (before, since) = (received(&cluster)?, Instant::now());
    let run = submit(&cluster)?;
    let server = Server::of(&cluster.url(), cluster.token());
    let status = wait(&server, &run, title, interrupt)?;
    let bytes = (received(&cluster)? - before) as f64 - quiet * since.elapsed().as_secs_f64();
    let (Some(started), Some(ended), RunState::Succeeded) =
        (status.run.started, status.run.ended, status.run.state)
    else {
        return Err(failure(args, &cluster, &status));
    };
    let executed = executed(&server, &run, work, started)?;
    Ok(Trial {
        makespan: (ended - started) as f64 / 1e3,
        bytes_moved: bytes.max(0.0) as u64,
        bytes_needed: least_moved(&work.trace, &executed),
        quiet,
        executed,
    })
}

fn start(args: &DataArgs, variant: &Variant) -> Result<Cluster, catena_testbed::TestbedError> {
    let agents: Vec<String> = (1..=variant.agents).map(|n| format!("a{n}")).collect();
    let hosts: Vec<&str> = std::iter::once(HOME).chain(agents.iter().map(String::as_str)).collect();
    let net = Net::start(&hosts, Some(Rate::megabits(args.rate)))?;
    net.host(HOME)?.set_rate(Some(Rate::megabits(args.home_rate)))?;
    // Who is starved by others on this machine for a moment is not dead.
    let settings = format!(
        "lease: 10s\nlook: 5s\nstorage.mode: local\nscheduler.policy: '{}'\nagent: {{cpus: 1, memory: 1 GiB, cache: false}}\n",
        variant.policy
    );
    let mut cluster = Cluster::start_on(net, HOME, &std::env::current_exe()?, &settings)?;
    cluster.serve("main", "http,controller,scheduler", &[])?;
    cluster.wait_for_agents(0)?;
    let slowness = variant.slowness.to_string();
    for (n, agent) in agents.iter().enumerate() {
        let slow = [("CATENA_TEST_SLOW", slowness.as_str())];
        let environment = if n == 0 && variant.slowness > 1 { &slow[..] } else { &[] };
        cluster.agent_with(agent, AgentStart { on: Some(agent), environment, ..AgentStart::default() })?;
    }
    cluster.wait_for_agents(agents.len())?;
    Ok(cluster)
}

/// What agents have received so far.
fn received(cluster: &Cluster) -> Result<u64, String> {
    let hosts = cluster.net().map(Net::hosts).unwrap_or_default();
    let agents = hosts.iter().filter(|h| h.name() != HOME);
    agents.map(|h| h.traffic().map(|t| t.received).map_err(|e| e.to_string())).sum()
}

fn pause(time: Duration, interrupt: &Interrupt) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < time {
        interrupt.check()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Submits the workflow from where the servers are. A chain is a task, as in simulations.
fn submit(cluster: &Cluster) -> Result<String, String> {
    let output = cluster.command(&["submit", "workflow", "--chains", "single"]).output();
    let output = output.map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().strip_prefix("run ").map(str::to_owned).ok_or_else(|| {
        format!("the workflow was not taken: {}", String::from_utf8_lossy(&output.stderr).trim())
    })
}

fn wait(server: &Server, run: &str, title: &str, interrupt: &Interrupt) -> Result<StatusView, String> {
    let mut told = Instant::now();
    loop {
        let status: StatusView = server.get(&format!("/runs/{run}"))?;
        if status.run.state.is_final() {
            return Ok(status);
        }
        if told.elapsed() > TELL {
            told = Instant::now();
            eprintln!(
                "{title}: {} tasks done, {} with agents",
                status.run.chains.succeeded, status.run.chains.running
            );
        }
        pause(ASK, interrupt)?;
    }
}

/// Why a run has not succeeded. What everybody has written is kept.
fn failure(args: &DataArgs, cluster: &Cluster, status: &StatusView) -> String {
    let log: &Path = &args.out.join("data-failed.log");
    let kept = std::fs::write(log, cluster.logs())
        .map_or(String::new(), |()| format!("; logs are in {}", log.display()));
    let why = status.failures.first().map(|f| f.failure.message.as_str()).or(status.run.error.as_deref());
    format!("the run has {}: {}{kept}", status.run.state, why.unwrap_or("nobody knows why"))
}

fn executed(server: &Server, run: &str, work: &Work, started: i64) -> Result<Vec<Executed>, String> {
    let jobs: HashMap<&str, usize> =
        work.stand_in.steps.iter().enumerate().map(|(n, step)| (step.as_str(), n)).collect();
    let mut chains: Vec<ChainView> = Vec::new();
    loop {
        let from = chains.last().map_or(0, |c| c.chain + 1);
        let page: Vec<ChainView> = server.get(&format!("/runs/{run}/chains?limit={PAGE}&from={from}"))?;
        if page.is_empty() {
            break;
        }
        chains.extend(page);
    }
    let since = |time: i64| (time - started) as f64 / 1e3;
    let executed = chains.iter().filter_map(|c| {
        let job = *jobs.get(step_name(c.tasks.first()?))?;
        Some(Executed { job, agent: c.agent.clone()?, start: since(c.started?), end: since(c.ended?) })
    });
    Ok(executed.collect())
}
