//! Capability-based scheduling, with real servers, real processes and real kills.
//!
//! Krämer, "Capability-based scheduling of scientific workflows in the cloud", section 6: four kinds of chains
//! (R1 to R4), five types of agents, at most eight of them. Chains sleep; a second of the paper takes `--scale`
//! seconds here.

use crate::arguments::SteepArgs;
use crate::command::{EXIT_FAILED, Outcome, print};
use crate::render::lanes::{self, Busy, Kill};
use crate::time::{duration, now_millis};
use catena_schedule::Policy;
use catena_server::{ChainView, StatusView};
use catena_testbed::{Cluster, TestbedError};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Table 1 of the paper: types of agents, and how many of each there may be.
const TYPES: [(&str, &[&str], u32); 5] = [
    ("R1", &["R1"], 2),
    ("R2", &["R2"], 2),
    ("R3", &["R3"], 1),
    ("R4", &["R4"], 1),
    ("R3R4", &["R3", "R4"], 2),
];
const SETS: [&str; 4] = ["R1", "R2", "R3", "R4"];
/// "Starting a virtual machine and deploying itself to it took almost three minutes."
const BOOT_SECONDS: f64 = 170.0;
/// How many chains are read at a time.
const PAGE: usize = 10_000;

/// What an experiment consists of, in seconds of the paper.
struct Experiment {
    chains: u64,
    /// Mean duration of a chain. The paper does not say; these lead to its makespans.
    mean: f64,
    /// Agents that are there from the beginning.
    static_agents: &'static [(&'static str, &'static [&'static str])],
    fleet: bool,
    kills: bool,
    /// What the paper measured.
    paper: Option<f64>,
}

const EIGHT: [(&str, &[&str]); 8] = [
    ("a1", &["R1"]),
    ("a2", &["R1"]),
    ("a3", &["R2"]),
    ("a4", &["R2"]),
    ("a5", &["R3"]),
    ("a6", &["R4"]),
    ("a7", &["R3", "R4"]),
    ("a8", &["R3", "R4"]),
];

fn experiment(number: u8) -> Experiment {
    match number {
        1 => Experiment {
            chains: 100,
            mean: 58.0,
            static_agents: &EIGHT,
            fleet: false,
            kills: false,
            paper: Some(794.0),
        },
        2 => Experiment {
            chains: 1000,
            mean: 8.0,
            static_agents: &EIGHT[..1],
            fleet: true,
            kills: false,
            paper: None,
        },
        3 => Experiment {
            chains: 150_000,
            mean: 3.2,
            static_agents: &EIGHT[..1],
            fleet: true,
            kills: false,
            paper: Some(17.0 * 3600.0),
        },
        _ => {
            Experiment { chains: 1000, mean: 8.0, static_agents: &[], fleet: true, kills: true, paper: None }
        }
    }
}

pub(super) fn reproduce(args: &SteepArgs) -> Outcome {
    let policy: Policy = args.policy.parse()?;
    if !(args.scale >= 0.0 && args.scale.is_finite()) {
        return Err(format!("--scale must be a number that is not negative, not {}", args.scale));
    }
    let outcome = Run::new(args, policy).run().map_err(|e| e.to_string())?;
    let done = outcome["succeeded"] == outcome["chains"];
    if args.json {
        print(&format!("{outcome:#}\n"));
    } else {
        print(&describe(&outcome));
    }
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn describe(o: &Value) -> String {
    let millis = |key: &str| duration(o[key].as_f64().unwrap_or(0.0) * 1e3);
    let mut out = format!(
        "experiment {}: {} of {} chains succeeded in {}; agents were busy {:.1} % of their time\n",
        o["experiment"],
        o["succeeded"],
        o["chains"],
        millis("seconds"),
        o["utilisation"].as_f64().unwrap_or(0.0) * 100.0
    );
    if o["paper_seconds_scaled"].is_number() {
        let _ = writeln!(out, "the paper's makespan on this scale: {}", millis("paper_seconds_scaled"));
    }
    if let Some(kills) = o["kills"].as_array().filter(|k| !k.is_empty()) {
        let _ =
            writeln!(out, "{} kills; {} chains were started more than once", kills.len(), o["started_again"]);
    }
    out + &format!(
        "picture: {}\ntable:   {}\n",
        o["picture"].as_str().unwrap_or(""),
        o["table"].as_str().unwrap_or("")
    )
}

/// A generator of random numbers that gives the same ones for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

struct Run<'a> {
    args: &'a SteepArgs,
    policy: Policy,
    plan: Experiment,
    chains: u64,
    random: Random,
}

impl<'a> Run<'a> {
    fn new(args: &'a SteepArgs, policy: Policy) -> Self {
        let plan = experiment(args.experiment);
        let chains = args.chains.unwrap_or(plan.chains).next_multiple_of(SETS.len() as u64);
        Self { args, policy, plan, chains, random: Random(args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }
    }

    fn note(&self, text: &str) {
        if !self.args.json {
            eprintln!("{text}");
        }
    }

    fn settings(&self) -> String {
        let mut out = format!(
            "lease: 2s\nlook: 1s\nscheduler: {{policy: {}}}\nagent: {{cpus: 1, memory: 1 GiB, cache: false}}\n",
            self.policy
        );
        if !self.plan.fleet {
            return out;
        }
        out += "fleet:\n  setups:\n";
        for (id, provides, max) in TYPES {
            // The first agent of experiments 2 and 3 is one of those that may exist.
            let there =
                self.plan.static_agents.iter().filter(|(_, offers)| *offers == provides).count() as u32;
            let boot = (BOOT_SECONDS * self.args.scale * 1e3) as u64;
            let (max, min) = (max - there, if self.plan.kills { max - there } else { 0 });
            let one = if self.policy == Policy::Steep { ", maxCreateConcurrent: 1" } else { "" };
            let _ = writeln!(
                out,
                "    - {{id: {id}, provides: [{}], min: {min}, max: {max}, bootDelay: {boot}ms, cpus: 1, memory: 1 GiB, idleShutdown: 60s{one}}}",
                provides.join(", ")
            );
        }
        out
    }

    /// A loop whose body has one chain for each capability set.
    fn workflow(&mut self) -> String {
        let mean = self.plan.mean * self.args.scale;
        let rounds = self.chains / SETS.len() as u64;
        let durations: Vec<String> =
            (0..rounds).map(|_| format!("{:.4}", mean * (0.5 + self.random.next()))).collect();
        let mut out = format!(
            "api: 4.7.0\nname: steep-{}\nvars:\n  - {{id: durations, value: [{}]}}\nactions:\n  - type: for\n    input: durations\n    enumerator: d\n    actions:\n",
            self.args.experiment,
            durations.join(", ")
        );
        for set in SETS {
            let _ =
                writeln!(out, "      - {{type: execute, service: {set}, inputs: [{{id: seconds, var: d}}]}}");
        }
        out
    }

    fn services() -> String {
        let service = |set: &str| {
            format!(
                "- {{id: {set}, name: {set}, description: sleeps, path: /bin/sleep, runtime: other, requiredCapabilities: [{set}],\n   parameters: [{{id: seconds, name: seconds, description: how long, type: input, cardinality: 1..1}}]}}\n"
            )
        };
        SETS.map(service).concat()
    }

    fn run(mut self) -> Result<Value, TestbedError> {
        std::fs::create_dir_all(&self.args.out)?;
        self.note("starting PostgreSQL and NATS …");
        let program = std::env::current_exe()?;
        let mut cluster = Cluster::start(&program, &self.settings())?;
        std::fs::write(cluster.path().join("workflow.yaml"), self.workflow())?;
        std::fs::write(cluster.path().join("services.yaml"), Self::services())?;
        let fleet = if self.plan.fleet { ",fleet" } else { "" };
        if self.plan.kills {
            cluster.serve("http", "http,fleet", &[])?;
            for n in 1..=2 {
                cluster.serve(&format!("controller {n}"), "controller", &[])?;
                cluster.serve(&format!("scheduler {n}"), "scheduler", &[])?;
            }
        } else {
            cluster.serve("first", &format!("http,controller,scheduler{fleet}"), &[])?;
            cluster.serve("second", "controller,scheduler", &[])?;
        }
        for (name, offers) in self.plan.static_agents {
            cluster.agent(name, offers, &[])?;
        }
        let there = if self.plan.kills { 8 } else { self.plan.static_agents.len() };
        cluster.wait_for_agents(there)?;
        self.note(&format!("running {} chains …", self.chains));
        let submit = ["submit", "workflow.yaml", "--services", "services.yaml", "--chains", "single"];
        let run = cluster.ask(&submit).and_then(|s| s.trim().strip_prefix("run ").map(str::to_owned));
        let run = run
            .ok_or_else(|| TestbedError::Start { what: "the workflow".to_owned(), detail: cluster.logs() })?;
        let kills = self.wait(&mut cluster, &run)?;
        self.report(&cluster, &run, &kills)
    }

    /// Waits for the end of the run and breaks things meanwhile.
    fn wait(&mut self, cluster: &mut Cluster, run: &str) -> Result<Vec<Kill>, TestbedError> {
        let begin = Instant::now();
        let mut kills = Vec::new();
        let mut plan = if self.plan.kills { self.kill_plan() } else { Vec::new() };
        let mut told = Instant::now();
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, interrupted.clone())?;
        }
        loop {
            if interrupted.load(Ordering::Relaxed) {
                let detail = "it was interrupted; everything that was started is ended".to_owned();
                return Err(TestbedError::Start { what: "the experiment".to_owned(), detail });
            }
            while let Some((at, what)) = plan.first().copied().filter(|(at, _)| begin.elapsed() >= *at) {
                plan.remove(0);
                let _ = at;
                if let Some(kill) = self.strike(cluster, what)? {
                    self.note(&format!("killed {}", kill.who));
                    kills.push(kill);
                }
            }
            if let Some(status) = cluster.ask(&["status", run, "--json"])
                && let Ok(status) = serde_json::from_str::<StatusView>(&status)
            {
                if status.run.state.is_final() {
                    return Ok(kills);
                }
                if told.elapsed() > Duration::from_secs(5) {
                    told = Instant::now();
                    self.note(&format!("{} of {} chains done", status.run.chains.succeeded, self.chains));
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Nine agents from minute 2 on, as in the paper; then also schedulers, controllers and servers.
    fn kill_plan(&mut self) -> Vec<(Duration, Target)> {
        let scaled = |seconds: f64| Duration::from_secs_f64(seconds * self.args.scale);
        let mut plan: Vec<(Duration, Target)> = (0..9)
            .map(|n| (scaled(120.0 + 70.0 * f64::from(n) + 40.0 * self.random.next()), Target::Agent))
            .collect();
        plan.push((scaled(160.0), Target::Instance("scheduler 1")));
        plan.push((scaled(260.0), Target::Instance("controller 1")));
        plan.push((scaled(370.0), Target::Instance("scheduler 2")));
        plan.push((scaled(420.0), Target::Instance("controller 2")));
        plan.push((scaled(500.0), Target::Nats));
        plan.push((scaled(620.0), Target::Postgres));
        plan.sort_by_key(|(at, _)| *at);
        plan
    }

    fn strike(&mut self, cluster: &mut Cluster, target: Target) -> Result<Option<Kill>, TestbedError> {
        let at = now_millis() as f64;
        // How long something stays away.
        let away = Duration::from_secs_f64((30.0 * self.args.scale).max(0.5));
        let who = match target {
            Target::Agent => {
                let fleet =
                    cluster.ask(&["fleet", "--json"]).and_then(|t| serde_json::from_str::<Value>(&t).ok());
                let machines = fleet.as_ref().and_then(|f| f["machines"].as_array()).into_iter().flatten();
                let running: Vec<&Value> = machines.filter(|m| m["state"] == "running").collect();
                let Some(machine) = running.get((self.random.next() * running.len() as f64) as usize) else {
                    return Ok(None);
                };
                let pid = machine["handle"].as_str().and_then(|h| h.parse().ok()).and_then(Pid::from_raw);
                let Some(pid) = pid else { return Ok(None) };
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                machine["id"].as_str().unwrap_or_default().to_owned()
            }
            Target::Instance(name) => {
                cluster.kill(name);
                std::thread::sleep(away);
                cluster.start_again(name)?;
                name.to_owned()
            }
            Target::Nats => {
                cluster.nats.kill();
                std::thread::sleep(away);
                cluster.nats.start_again()?;
                "NATS".to_owned()
            }
            Target::Postgres => {
                cluster.postgres.kill();
                std::thread::sleep(away);
                cluster.postgres.start_again()?;
                "PostgreSQL".to_owned()
            }
        };
        Ok(Some(Kill { who, at }))
    }

    fn report(&self, cluster: &Cluster, run: &str, kills: &[Kill]) -> Result<Value, TestbedError> {
        let chains = Self::chains_of(cluster, run)?;
        let busy: Vec<Busy> = chains
            .iter()
            .filter_map(|c| {
                Some(Busy {
                    agent: c.agent.clone()?,
                    set: c.capabilities.join("+"),
                    start: c.started? as f64,
                    end: c.ended? as f64,
                })
            })
            .collect();
        let start = busy.iter().map(|b| b.start).fold(f64::INFINITY, f64::min);
        let end = busy.iter().map(|b| b.end).fold(start, f64::max);
        let seconds = (end - start).max(0.0) / 1e3;
        let work: f64 = busy.iter().map(|b| b.end - b.start).sum();
        let number = self.args.experiment;
        let title = format!(
            "Experiment {number}: {} chains in {}, policy {}",
            chains.len(),
            duration(seconds * 1e3),
            self.policy
        );
        let base = self.args.out.join(format!("steep-{number}-{}", self.policy));
        let (picture, table) = (base.with_extension("svg"), base.with_extension("csv"));
        std::fs::write(&picture, lanes::svg(&title, &busy, kills))?;
        let mut csv = String::from("chain,capabilities,agent,attempt,lost_agents,state,start_ms,end_ms\n");
        for c in &chains {
            let (agent, offset) = (c.agent.as_deref().unwrap_or(""), |t: Option<i64>| {
                t.map_or(String::new(), |t| format!("{:.0}", t as f64 - start))
            });
            let _ = writeln!(
                csv,
                "{},{},{agent},{},{},{},{},{}",
                c.chain,
                c.capabilities.join("+"),
                c.attempt,
                c.losses,
                c.state,
                offset(c.started),
                offset(c.ended)
            );
        }
        std::fs::write(&table, csv)?;
        let succeeded =
            chains.iter().filter(|c| c.state == catena_model::chain::ChainState::Succeeded).count();
        Ok(json!({
            "experiment": number,
            "policy": self.policy,
            "chains": self.chains,
            "succeeded": succeeded,
            "seconds": seconds,
            "paper_seconds_scaled": self.plan.paper.map(|s| s * self.args.scale),
            "utilisation": work / ((end - start).max(1.0) * 8.0),
            "started_again": chains.iter().filter(|c| c.attempt > 1).count(),
            "kills": kills.iter().map(|k| json!({"who": k.who, "at_ms": k.at - start})).collect::<Vec<_>>(),
            "picture": picture,
            "table": table,
        }))
    }

    fn chains_of(cluster: &Cluster, run: &str) -> Result<Vec<ChainView>, TestbedError> {
        let fail = |detail: String| TestbedError::Start { what: "the report".to_owned(), detail };
        let server = crate::remote::Server::of(&cluster.url(), cluster.token());
        let mut chains: Vec<ChainView> = Vec::new();
        loop {
            let from = chains.last().map_or(0, |c| c.chain + 1);
            let page: Vec<ChainView> =
                server.get(&format!("/runs/{run}/chains?limit={PAGE}&from={from}")).map_err(fail)?;
            if page.is_empty() {
                return Ok(chains);
            }
            chains.extend(page);
        }
    }
}

/// What can be killed.
#[derive(Clone, Copy)]
enum Target {
    Agent,
    Instance(&'static str),
    Nats,
    Postgres,
}
