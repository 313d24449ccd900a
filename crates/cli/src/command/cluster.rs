//! Commands that talk to a server: submitting, pausing, priorities, agents, the fleet.

use super::fetch::fetch_results;
use super::send::{sees_our_files, send_files};
use super::{EXIT_CANCELLED, EXIT_FAILED, Outcome, print, show_problems};
use crate::arguments::{
    Arguments, DismissArgs, ListArgs, PriorityArgs, RetryArgs, RunRef, ShowArgs, SubmitArgs,
};
use crate::display::Display;
use crate::project::load_source;
use crate::remote::{Server, encode};
use catena_model::{Bytes, moment};
use catena_server::{Definition, RunEvent, RunSummary, RunView, Submission, WaitingView};
use catena_store::RunState;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a server that has gone away while a run is shown is waited for.
const PATIENCE: Duration = Duration::from_mins(5);
/// The kind of a submission.
const SUBMISSION: &str = "application/vnd.catena+json";
const JSON: &str = "application/json";

pub(crate) fn submit(args: &SubmitArgs, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    let (loaded, options, _) = load_source(&args.source)?;
    show_problems(&loaded);
    if loaded.diags.has_errors() {
        return Ok(ExitCode::from(super::EXIT_USAGE));
    }
    let definition = Definition { inputs: options.inputs, ..Definition::default() }.with_files(&loaded);
    let absolute = |path: &std::path::PathBuf| std::path::absolute(path).map_err(|e| e.to_string());
    let is_shared = sees_our_files(&server)?;
    if args.out.is_some() && !is_shared && !args.wait {
        return Err("the server does not see your files: wait for results with --wait, or get them with `catena fetch`".to_owned());
    }
    let data = if is_shared {
        Vec::new()
    } else {
        let mut display = Display::new(args.show);
        let sending = |name: &str, bytes: u64| display.note(&format!("sending {name} ({})", Bytes(bytes)));
        let sent = send_files(&server, &loaded, sending);
        display.close();
        sent?
    };
    let submission = Submission {
        name: args.name.clone(),
        files: definition.files,
        services: options.services,
        macros: options.macros,
        inputs: definition.inputs,
        directory: definition.directory,
        // A directory here means nothing to a server that does not see it.
        out: args.out.as_ref().filter(|_| is_shared).map(absolute).transpose()?.unwrap_or_default(),
        chains: args.chains.name().to_owned(),
        order: args.order.name().to_owned(),
        priority: args.priority,
        data,
    };
    let submitted: Value = server.send("POST", "/runs", SUBMISSION, &submission)?;
    let run = submitted["run"].as_i64().ok_or("the server has not said which run it made")?;
    if !args.wait {
        print(&if args.show.json { format!("{submitted}\n") } else { format!("run {run}\n") });
        return Ok(ExitCode::SUCCESS);
    }
    let ended = show(&server, run, args.show)?;
    if let Some(out) = args.out.as_ref().filter(|_| !is_shared && ended == ExitCode::SUCCESS) {
        for (path, _) in fetch_results(&server, run, out)? {
            print(&format!("{}\n", path.display()));
        }
    }
    Ok(ended)
}

/// Tries failed chains again and shows the run until it ends.
pub(crate) fn retry(args: &RetryArgs, server: &Server) -> Outcome {
    let run = number(server, args.run)?;
    server.send::<Value>("POST", &format!("/runs/{run}/retry"), JSON, &json!({}))?;
    show(server, run, args.show)
}

/// Shows a run until it ends, and ends as it does.
fn show(server: &Server, run: i64, how: ShowArgs) -> Outcome {
    let mut display = Display::new(how);
    let summary = watch(server, run, &mut display);
    display.close();
    let summary = summary?;
    display.end(&summary, &[]);
    Ok(match summary.state {
        RunState::Succeeded => ExitCode::SUCCESS,
        RunState::Cancelled => ExitCode::from(EXIT_CANCELLED),
        _ => ExitCode::from(EXIT_FAILED),
    })
}

/// Shows a run until it ends, also if the server goes away for a while.
fn watch(server: &Server, run: i64, display: &mut Display) -> Result<RunSummary, String> {
    let mut summary = None;
    let mut last_heard = Instant::now();
    loop {
        let watched = server.events(&format!("/runs/{run}/events"), |event| {
            last_heard = Instant::now();
            match serde_json::from_value(event) {
                Ok(RunEvent::Ended(end)) => {
                    display.show(&RunEvent::Ended(end.clone()));
                    summary = Some(end);
                    false
                }
                Ok(event) => {
                    display.show(&event);
                    true
                }
                Err(_) => true,
            }
        });
        if let Some(summary) = summary.take() {
            return Ok(summary);
        }
        if last_heard.elapsed() > PATIENCE {
            let reason = watched.err().unwrap_or_else(|| "the server has nothing to say".to_owned());
            return Err(format!("{reason}; run {run} may go on: `catena status {run}` tells"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// The number of a run, or of the newest.
pub(crate) fn number(server: &Server, run: Option<i64>) -> Result<i64, String> {
    if let Some(run) = run {
        return Ok(run);
    }
    let runs: Vec<RunView> = server.get("/runs?limit=1")?;
    runs.first()
        .map(|r| r.run.0)
        .ok_or_else(|| "there is no run yet; submit one with `catena submit`".to_owned())
}

fn act(args: &RunRef, arguments: &Arguments, action: &str, done: &str) -> Outcome {
    let server = Server::expect(arguments)?;
    let run = number(&server, args.run)?;
    server.send::<Value>("POST", &format!("/runs/{run}/{action}"), JSON, &json!({}))?;
    print(&format!("run {run} {done}\n"));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pause(args: &RunRef, arguments: &Arguments) -> Outcome {
    act(args, arguments, "pause", "waits")
}

pub(crate) fn resume(args: &RunRef, arguments: &Arguments) -> Outcome {
    act(args, arguments, "resume", "goes on")
}

pub(crate) fn priority(args: &PriorityArgs, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    let path = format!("/runs/{}/priority", args.run);
    let view: RunView = server.send("PUT", &path, JSON, &json!({"priority": args.priority}))?;
    print(&format!("run {} has priority {}\n", view.run, view.priority));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn delete(args: &RunRef, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    let run = args.run.ok_or("which run? name it, so that none is deleted by accident")?;
    server.delete(&format!("/runs/{run}"))?;
    print(&format!("run {run} is deleted\n"));
    Ok(ExitCode::SUCCESS)
}

fn words(list: &Value) -> String {
    let names = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.collect::<Vec<_>>().join(", ")
}

pub(crate) fn agents(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let agents: Vec<Value> = Server::expect(arguments)?.get("/agents")?;
    if args.json {
        print(&format!("{:#}\n", json!(agents)));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("{:<32} {:>5} {:>7}  {:<20} {}\n", "agent", "cpus", "chains", "last heard of", "offers"));
    for a in &agents {
        let cpus = a["resources"]["cpus"].as_f64().unwrap_or(0.0) / 1000.0;
        let name = a["id"].as_str().unwrap_or_default();
        let seen = moment(a["seen"].as_i64().unwrap_or(0));
        print(&format!("{name:<32} {cpus:>5} {:>7}  {seen:<20} {}\n", a["count"], words(&a["capabilities"])));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn dismiss(args: &DismissArgs, arguments: &Arguments) -> Outcome {
    let server = Server::expect(arguments)?;
    for agent in &args.agents {
        server.post(&format!("/agents/{}/shutdown", encode(agent)))?;
        print(&format!("agent {agent} ends once it has nothing to do\n"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn instances(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let instances: Vec<Value> = Server::expect(arguments)?.get("/instances")?;
    if args.json {
        print(&format!("{:#}\n", json!(instances)));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("{:<32} {:<20} {:<20} {}\n", "instance", "host", "since", "roles"));
    for i in &instances {
        let text = |key: &str| i[key].as_str().unwrap_or_default();
        let since = moment(i["since"].as_i64().unwrap_or(0));
        let roles = text("roles").replace(',', ", ");
        print(&format!("{:<32} {:<20} {since:<20} {roles}\n", text("id"), text("host")));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn services(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let services: Vec<Value> = Server::expect(arguments)?.get("/services")?;
    if args.json {
        print(&format!("{:#}\n", json!(services)));
        return Ok(ExitCode::SUCCESS);
    }
    for s in &services {
        let text = |key: &str| s[key].as_str().unwrap_or_default();
        print(&format!("{:<24} {}\n", text("id"), text("description")));
    }
    if services.is_empty() {
        print("there are none; `services` in the settings of the instance names files with services\n");
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn fleet(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let fleet: Value = Server::expect(arguments)?.get("/fleet")?;
    if args.json {
        print(&format!("{fleet:#}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{:<24} {:>8} {:>8} {:>4} {:>4}  {}\n",
        "setup", "running", "creating", "min", "max", "provides"
    ));
    for s in fleet["setups"].as_array().into_iter().flatten() {
        let name = s["id"].as_str().unwrap_or_default();
        let counts = format!("{:>8} {:>8} {:>4} {:>4}", s["running"], s["creating"], s["min"], s["max"]);
        print(&format!("{name:<24} {counts}  {}\n", words(&s["provides"])));
    }
    let failed = fleet["machines"].as_array().into_iter().flatten().filter(|m| m["state"] == "failed");
    for m in failed.take(5) {
        let (id, reason) = (m["id"].as_str().unwrap_or_default(), m["reason"].as_str().unwrap_or_default());
        print(&format!("{id} failed: {reason}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn waiting(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let waiting: Vec<WaitingView> = Server::expect(arguments)?.get("/waiting")?;
    if args.json {
        print(&format!("{:#}\n", json!(waiting)));
        return Ok(ExitCode::SUCCESS);
    }
    for w in &waiting {
        print(&format!(
            "{} chains that require {{{}}} wait: {}\n",
            w.count,
            w.capabilities.join(", "),
            w.reason
        ));
    }
    if waiting.is_empty() {
        print("nothing waits\n");
    }
    Ok(ExitCode::SUCCESS)
}
