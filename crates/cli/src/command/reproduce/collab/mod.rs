//! The experiment of Fei, Lu and Zhang: how much collaborators get done, whatever depends on what, with whole workflows
//! locked and with parts of them; in virtual time, and with real connections.

mod client;
mod live;
mod load;

use crate::arguments::{CollabArgs, CollabExperiment};
use crate::command::{Outcome, print};
use crate::parallel;
use crate::render::plot::{self, Curve, Labels};
use catena_simulate::collab::{Collaboration, Policy, Setting, Topology, collaborate, composition};
use catena_testbed::{Cluster, free_port, wait_until};
use client::Door;
use load::{Crowd, Loaded};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The points that are tried live.
const LIVE: [(Policy, usize); 4] =
    [(Policy::Seen, 150), (Policy::Seen, 50), (Policy::Parts, 100), (Policy::Write { takes: 0.5 }, 50)];
/// How long a live point lasts, in seconds of its own time, and how much of that does not count.
const LIVE_LASTS: (f64, f64) = (60.0, 10.0);
/// How long servers may take to start.
const PATIENCE: Duration = Duration::from_mins(1);

pub(super) fn reproduce(args: &CollabArgs) -> Outcome {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let mut outcome = serde_json::Map::new();
    for experiment in &args.experiment {
        let (name, value) = match experiment {
            CollabExperiment::Grid => ("grid", grid(args)?),
            CollabExperiment::Live => ("live", live(args)?),
            CollabExperiment::Load => ("load", under_load(args, false)?),
            CollabExperiment::Death => ("death", under_load(args, true)?),
        };
        outcome.insert(name.to_owned(), value);
    }
    if args.json {
        print(&format!("{:#}\n", Value::Object(outcome)));
    } else if args.experiment.contains(&CollabExperiment::Grid) {
        print(&format!("tables and pictures are in {}\n", args.out.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn setting(args: &CollabArgs, topology: Topology, policy: Policy, collaborators: usize) -> Setting {
    Setting {
        topology,
        policy,
        collaborators,
        workflows: args.workflows as usize,
        parts: args.parts as usize,
        think: args.think,
        ..Setting::default()
    }
}

/// What nobody can get beyond: everybody finishes something after each thought.
fn bound(args: &CollabArgs, collaborators: f64) -> f64 {
    collaborators * 60.0 / args.think
}

fn grid(args: &CollabArgs) -> Result<Value, String> {
    let mut cells = Vec::new();
    for topology in Topology::ALL {
        for policy in Policy::ALL {
            for n in &args.collaborators {
                for seed in 1..=args.seeds {
                    cells.push(Setting { seed, ..setting(args, topology, policy, *n as usize) });
                }
            }
        }
    }
    let came = parallel::map("collaborators", &cells, |_, setting| collaborate(setting));
    // Seeds of the same setting stand side by side.
    let mean =
        |of: &[Collaboration], f: fn(&Collaboration) -> f64| of.iter().map(f).sum::<f64>() / of.len() as f64;
    let seeds = args.seeds as usize;
    let mut table = String::from(
        "topology,policy,collaborators,updates_per_minute,failures_per_minute,mean_wait_s,of_bound\n",
    );
    let mut rows = Vec::new();
    for (setting, came) in cells.iter().step_by(seeds).zip(came.chunks(seeds)) {
        let (updates, failures) = (mean(came, |c| c.updates), mean(came, |c| c.failures));
        let wait = mean(came, |c| c.wait);
        let of_bound = updates / bound(args, setting.collaborators as f64);
        let (topology, policy) = (setting.topology.name(), setting.policy.name());
        let n = setting.collaborators;
        let _ =
            writeln!(table, "{topology},\"{policy}\",{n},{updates:.1},{failures:.1},{wait:.2},{of_bound:.4}");
        rows.push((setting.topology, setting.policy, n as f64, updates, failures));
    }
    write(args, "collab.csv", &table)?;
    for topology in Topology::ALL {
        for (file, title, unit, failures) in [
            ("throughput", "updates", "updates per minute", false),
            ("failures", "attempts that a conflict has ended", "failures per minute", true),
        ] {
            let of = |policy: &Policy| {
                let own = rows.iter().filter(|r| r.0 == topology && r.1 == *policy);
                let points = own.map(|r| (r.2, if failures { r.4 } else { r.3 })).collect();
                Curve { name: policy.name(), points }
            };
            let mut curves: Vec<Curve> =
                Policy::ALL.iter().filter(|p| **p != Policy::Shared).map(of).collect();
            if !failures {
                let points = args.collaborators.iter().map(|n| (f64::from(*n), bound(args, f64::from(*n))));
                curves.retain(|c| c.name != Policy::Write { takes: 0.5 }.name());
                curves.insert(0, Curve { name: "without conflicts".to_owned(), points: points.collect() });
            }
            let name = topology.name();
            let title = format!("{name}: {title}");
            let labels = Labels { title: &title, x: "collaborators", y: unit, ..Labels::default() };
            let file = format!("collab-{file}-{}.svg", name.to_lowercase());
            write(args, &file, &plot::svg(&labels, &curves))?;
        }
    }
    if !args.json {
        show_grid(args, &rows);
    }
    let json = |r: &(Topology, Policy, f64, f64, f64)| json!({"topology": r.0.name(), "policy": r.1.name(), "collaborators": r.2, "updates": r.3, "failures": r.4});
    Ok(rows.iter().map(json).collect())
}

fn show_grid(args: &CollabArgs, rows: &[(Topology, Policy, f64, f64, f64)]) {
    let last = args.collaborators.iter().max().copied().unwrap_or(0);
    print(&format!("{last} collaborators: updates per minute (failures)\n"));
    let names = Topology::ALL.map(Topology::name);
    print(&format!("{:30} {:>16} {:>16} {:>16}\n", "", names[0], names[1], names[2]));
    for policy in Policy::ALL {
        let cell = |t: Topology| {
            let found = rows.iter().find(|r| r.0 == t && r.1 == policy && r.2 as u32 == last);
            found.map(|r| format!("{:.0} ({:.0})", r.3, r.4)).unwrap_or_default()
        };
        let cells = Topology::ALL.map(cell);
        print(&format!("{:30} {:>16} {:>16} {:>16}\n", policy.name(), cells[0], cells[1], cells[2]));
    }
    print(&format!("{:30} {:>16.0}\n", "without conflicts", bound(args, f64::from(last))));
}

fn write(args: &CollabArgs, file: &str, text: &str) -> Result<(), String> {
    let path = args.out.join(file);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// A server with a database and a message server, and compositions on it.
fn serve(instances: usize, compositions: &[(String, String)]) -> Result<(Cluster, Vec<Door>), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let fail = |e: catena_testbed::TestbedError| e.to_string();
    let mut cluster = Cluster::start(&program, "").map_err(fail)?;
    cluster.serve("one", "http", &[]).map_err(fail)?;
    let mut urls = vec![cluster.url()];
    for n in 1..instances {
        let port = free_port();
        cluster
            .serve(&format!("more-{n}"), "http", &["--listen", &format!("127.0.0.1:{port}")])
            .map_err(fail)?;
        urls.push(format!("http://127.0.0.1:{port}"));
    }
    wait_until(PATIENCE, || cluster.ask(&["compose", "list", "--json"]))
        .ok_or_else(|| format!("the server does not start:\n{}", cluster.logs()))?;
    let token = cluster.token();
    let server = crate::remote::Server::of(&urls[0], token.clone());
    for (id, text) in compositions {
        server.put(&format!("/compositions/{id}"), text.as_bytes())?;
    }
    let doors = urls.into_iter().map(|url| Door { url, token: token.clone() }).collect();
    Ok((cluster, doors))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())
}

fn live(args: &CollabArgs) -> Result<Value, String> {
    let (workflows, parts) = (args.workflows as usize, args.parts as usize);
    let mut texts = Vec::new();
    for topology in Topology::ALL {
        for (n, _) in LIVE.iter().enumerate() {
            let text = catena_compose::model::write(&composition(topology, workflows, parts));
            texts.push((format!("{}-{n}", topology.name()), text));
        }
    }
    let (_cluster, doors) = serve(1, &texts)?;
    let runtime = runtime()?;
    let mut rows = Vec::new();
    let mut table = String::from(
        "topology,policy,collaborators,live_updates,simulated_updates,live_failures,simulated_failures\n",
    );
    for topology in Topology::ALL {
        for (n, (policy, collaborators)) in LIVE.into_iter().enumerate() {
            let (lasts, warm_up) = LIVE_LASTS;
            let slow = Setting { lasts, warm_up, ..setting(args, topology, policy, collaborators) };
            let simulated = collaborate(&Setting { lasts: 600.0, warm_up: 60.0, ..slow });
            let faster = args.faster;
            let quick = |policy| match policy {
                Policy::Write { takes } => Policy::Write { takes: takes / faster },
                other => other,
            };
            let setting = Setting {
                think: slow.think / faster,
                lasts: lasts / faster,
                warm_up: warm_up / faster,
                policy: quick(policy),
                ..slow
            };
            let id = format!("{}-{n}", topology.name());
            let real = runtime.block_on(live::collaborate(&doors[0], &id, setting))?;
            let (updates, failures) = (real.updates / faster, real.failures / faster);
            let name = policy.name();
            let _ = writeln!(
                table,
                "{},\"{name}\",{collaborators},{updates:.1},{:.1},{failures:.1},{:.1}",
                topology.name(),
                simulated.updates,
                simulated.failures
            );
            if !args.json {
                print(&format!(
                    "{:8} {name:28} {collaborators:4} live {updates:7.1} ({failures:.1}), simulated {:7.1} ({:.1}): {:+.1} %\n",
                    topology.name(),
                    simulated.updates,
                    simulated.failures,
                    (updates / simulated.updates - 1.0) * 100.0
                ));
            }
            rows.push(json!({
                "topology": topology.name(), "policy": name, "collaborators": collaborators,
                "live": updates, "simulated": simulated.updates,
                "live_failures": failures, "simulated_failures": simulated.failures,
            }));
        }
    }
    write(args, "collab-live.csv", &table)?;
    Ok(rows.into())
}

fn under_load(args: &CollabArgs, kill: bool) -> Result<Value, String> {
    let parts = args.parts as usize;
    let (clients, compositions) = (args.clients as usize, args.compositions as usize);
    let workflows = clients.div_ceil(compositions).div_ceil(parts).max(2);
    let text = catena_compose::model::write(&composition(Topology::HBinary, workflows, parts));
    let texts: Vec<(String, String)> = (0..compositions).map(|n| (format!("c{n}"), text.clone())).collect();
    let (mut cluster, doors) = serve(if kill { 2 } else { 1 }, &texts)?;
    let lasts = Duration::from_secs(args.lasts);
    let crowd = Crowd::new(doors, compositions, parts, lasts);
    let killer = crowd.clone();
    let loaded = runtime()?.block_on(async {
        let all = load::run(crowd, clients);
        let end = async {
            if kill {
                tokio::time::sleep(lasts / 2).await;
                // Whoever looks for a door from now on takes the other one.
                killer.killed.store(true, Ordering::Relaxed);
                cluster.kill("one");
            }
        };
        let (all, ()) = tokio::join!(all, end);
        all
    });
    Ok(show_load(args, &loaded))
}

fn show_load(args: &CollabArgs, loaded: &Loaded) -> Value {
    let at = |values: &[f64], share: f64| {
        let last = values.len().saturating_sub(1);
        values.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
    };
    let (median, high, most) = (at(&loaded.millis, 0.5), at(&loaded.millis, 0.99), at(&loaded.millis, 1.0));
    let mut errors = loaded.errors.clone();
    errors.sort();
    errors.dedup();
    errors.truncate(5);
    if !args.json {
        print(&format!(
            "{} clients on {} compositions: {} operations acknowledged in {median:.1} ms (p50), {high:.1} ms (p99), {most:.1} ms (all); {} errors\n",
            args.clients,
            args.compositions,
            loaded.millis.len(),
            loaded.errors.len()
        ));
        for error in &errors {
            print(&format!("  {error}\n"));
        }
        if !loaded.resumed.is_empty() {
            print(&format!(
                "{} sessions came back: {:.1} s (p50), {:.1} s (p99), {:.1} s (all); {} acknowledged operations lost\n",
                loaded.resumed.len(),
                at(&loaded.resumed, 0.5),
                at(&loaded.resumed, 0.99),
                at(&loaded.resumed, 1.0),
                loaded.lost
            ));
        }
    }
    json!({
        "clients": args.clients, "compositions": args.compositions, "operations": loaded.millis.len(),
        "p50_ms": median, "p99_ms": high, "max_ms": most, "errors": loaded.errors.len(), "lost": loaded.lost,
        "resumed": loaded.resumed.len(), "resumed_p50_s": at(&loaded.resumed, 0.5),
        "resumed_p99_s": at(&loaded.resumed, 0.99), "resumed_max_s": at(&loaded.resumed, 1.0),
    })
}
