//! `catena list` and `catena status`

use super::{Outcome, print};
use crate::arguments::{Arguments, ListArgs, StatusArgs};
use crate::display::describe;
use crate::time::{duration, moment};
use catena_model::chain::{ChainState, ProcessChain, RunId, TaskFailure};
use catena_server::StateDirectory;
use catena_store::{ChainFilter, Run, RunState, SqliteStore, Store};
use serde_json::json;
use std::fmt::Write;
use std::future::Future;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Waits for a store. The embedded one never makes anybody wait.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    Ok(runtime.block_on(future))
}

/// Opens the store that another process may own.
pub(crate) fn open(arguments: &Arguments) -> Result<(StateDirectory, SqliteStore), String> {
    let state = StateDirectory::look(&arguments.state).map_err(|e| e.to_string())?;
    let store = state.store().map_err(|e| e.to_string())?;
    Ok((state, store))
}

/// The run with this number, or the newest.
pub(crate) fn find_run(store: &SqliteStore, number: Option<i64>) -> Result<Run, String> {
    let found = match number {
        Some(n) => wait(store.run(RunId(n)))?.map_err(|e| e.to_string())?,
        None => wait(store.runs())?.map_err(|e| e.to_string())?.into_iter().next(),
    };
    found.ok_or_else(|| match number {
        Some(n) => format!("there is no run {n}; `catena list` shows all"),
        None => "there is no run yet; start one with `catena run`".to_owned(),
    })
}

/// How a run stands, also if the process that ran it has died.
fn state_of(run: &Run, owned: bool) -> RunState {
    if run.state == RunState::Running && !owned { RunState::Interrupted } else { run.state }
}

pub(crate) fn list(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let (state, store) = open(arguments)?;
    let owned = state.is_owned_by_another();
    let runs = wait(store.runs())?.map_err(|e| e.to_string())?;
    if args.json {
        let runs: Vec<_> = runs.iter().map(|r| run_json(r, owned)).collect();
        print(&format!("{:#}\n", json!(runs)));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!("{:>5}  {:<20} {:<20} {:>12}  {}\n", "run", "state", "started", "took", "workflow"));
    for r in &runs {
        let took = r.started.zip(r.ended).map_or(String::new(), |(s, e)| duration((e - s) as f64));
        let started = moment(r.started.unwrap_or(r.created));
        print(&format!(
            "{:>5}  {:<20} {started:<20} {took:>12}  {} ({})\n",
            r.id,
            state_of(r, owned),
            r.name,
            r.source
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn run_json(r: &Run, owned: bool) -> serde_json::Value {
    json!({
        "run": r.id,
        "name": r.name,
        "state": state_of(r, owned),
        "workflow": r.source,
        "created": r.created,
        "started": r.started,
        "ended": r.ended,
        "error": r.error,
        "tasks": r.tasks,
        "skipped": r.skipped,
        "results": r.results.as_deref().and_then(|t| serde_json::from_str::<serde_json::Value>(t).ok()),
    })
}

pub(crate) fn status(args: &StatusArgs, arguments: &Arguments) -> Outcome {
    let (state, store) = open(arguments)?;
    let owned = state.is_owned_by_another();
    let run = find_run(&store, args.run)?;
    let counts = wait(store.counts(run.id))?.map_err(|e| e.to_string())?;
    let failures = wait(store.failed_attempts(run.id))?.map_err(|e| e.to_string())?;
    let failures: Vec<(u64, u32, TaskFailure)> = failures
        .iter()
        .filter_map(|f| Some((f.key.seq, f.attempt, serde_json::from_str(&f.error).ok()?)))
        .collect();
    let filter =
        ChainFilter { state: Some(ChainState::Running), limit: 100, payload: true, ..ChainFilter::default() };
    let running = wait(store.chains(run.id, &filter))?.map_err(|e| e.to_string())?;
    let running: Vec<(String, i64)> = running
        .iter()
        .filter_map(|c| {
            let chain: ProcessChain = serde_json::from_slice(&c.payload).ok()?;
            let tasks: Vec<&str> = chain.executables.iter().map(|t| t.id.as_str()).collect();
            Some((tasks.join(" -> "), c.started.unwrap_or(0)))
        })
        .collect();
    if args.json {
        let mut json = run_json(&run, owned);
        json["chains"] = json!(counts);
        json["running"] =
            running.iter().map(|(tasks, since)| json!({"tasks": tasks, "since": since})).collect();
        json["failures"] = failures
            .iter()
            .map(|(chain, attempt, f)| json!({"chain": chain, "attempt": attempt, "failure": f}))
            .collect();
        print(&format!("{json:#}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = String::new();
    let _ = writeln!(out, "run {} ({}): {}", run.id, run.name, state_of(&run, owned));
    let _ = writeln!(out, "  workflow  {}", run.source);
    let _ = writeln!(out, "  started   {}", moment(run.started.unwrap_or(run.created)));
    if let (Some(s), Some(e)) = (run.started, run.ended) {
        let _ = writeln!(out, "  ended     {} after {}", moment(e), duration((e - s) as f64));
    }
    let _ = writeln!(
        out,
        "  chains    {} done, {} running, {} waiting, {} failed, {} cancelled",
        counts.succeeded,
        counts.running,
        counts.registered + counts.paused,
        counts.failed,
        counts.cancelled
    );
    if let Some(error) = &run.error {
        let _ = writeln!(out, "  error     {error}");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
    if owned {
        for (tasks, since) in running.iter().take(20) {
            let _ = writeln!(out, "  running   {tasks}  {}", duration((now - since).max(0) as f64));
        }
    }
    for (_, _, failure) in failures.iter().take(20) {
        let _ = write!(out, "\n{}", describe(failure));
    }
    if failures.len() > 20 {
        let _ = writeln!(out, "\n… and {} more failures", failures.len() - 20);
    }
    print(&out);
    Ok(ExitCode::SUCCESS)
}
