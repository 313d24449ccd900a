//! `catena list` and `catena status`

use super::cluster::number;
use super::{Outcome, print};
use crate::arguments::{Arguments, ListArgs, SearchArgs, StatusArgs};
use crate::display::describe;
use crate::remote::{Server, encode};
use crate::time::{duration, now_millis};
use catena_model::chain::{Executable, ProcessChain, RunId, TaskResult};
use catena_model::moment;
use catena_server::{Definition, RunView, StateDirectory, StatusView};
use catena_store::{ChainFilter, Run, RunState, SqliteStore, Store};
use serde_json::json;
use std::fmt::Write;
use std::future::Future;
use std::process::ExitCode;

/// How many runs a search finds at most.
const FOUND: usize = 1000;

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

/// What a run is.
pub(crate) fn read_definition(store: &SqliteStore, run: &Run) -> Result<Definition, String> {
    let definition = wait(store.definition(run.id))?.map_err(|e| e.to_string())?.unwrap_or_default();
    serde_json::from_slice(&definition).map_err(|e| format!("run {} cannot be read: {e}", run.id))
}

/// How many chains are read at once.
const PAGE: usize = 2000;

/// Shows every task of a run that has ended well: who executed it, the chain it belongs to, and what came of it.
pub(crate) fn each_task(
    store: &SqliteStore,
    run: &Run,
    mut show: impl FnMut(&str, &ProcessChain, &Executable, &TaskResult),
) -> Result<(), String> {
    let mut from = 0;
    loop {
        let filter = ChainFilter { from, limit: PAGE, payload: true, result: true, ..ChainFilter::default() };
        let page = wait(store.chains(run.id, &filter))?.map_err(|e| e.to_string())?;
        let Some(last) = page.last() else { return Ok(()) };
        from = last.key.seq + 1;
        for record in page {
            let Ok(chain) = serde_json::from_slice::<ProcessChain>(&record.payload) else { continue };
            let Ok(results) = serde_json::from_slice::<Vec<TaskResult>>(&record.result) else { continue };
            for (task, result) in chain.executables.iter().zip(&results) {
                show(record.agent.as_deref().unwrap_or(""), &chain, task, result);
            }
        }
    }
}

/// A run as it stands, also if the process that ran it has died.
fn local_view(store: &SqliteStore, run: &Run, owned: bool) -> Result<RunView, String> {
    let counts = wait(store.counts(run.id))?.map_err(|e| e.to_string())?;
    let mut view = RunView::new(run, counts);
    if view.state == RunState::Running && !owned {
        view.state = RunState::Interrupted;
    }
    Ok(view)
}

pub(crate) fn list(args: &ListArgs, arguments: &Arguments) -> Outcome {
    let runs: Vec<RunView> = match Server::find(arguments) {
        Some(server) => server.get("/runs?limit=10000")?,
        None => {
            let (state, store) = open(arguments)?;
            let owned = state.is_owned_by_another();
            let runs = wait(store.runs())?.map_err(|e| e.to_string())?;
            runs.iter().map(|r| local_view(&store, r, owned)).collect::<Result<_, _>>()?
        }
    };
    show_runs(&runs, args.json);
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn search(args: &SearchArgs, arguments: &Arguments) -> Outcome {
    let words = args.words.join(" ");
    let runs: Vec<RunView> = match Server::find(arguments) {
        Some(server) => server.get(&format!("/search?limit={FOUND}&q={}", encode(&words)))?,
        None => {
            let (state, store) = open(arguments)?;
            let owned = state.is_owned_by_another();
            let runs = wait(catena_server::search(&store, &words, FOUND))?.map_err(|e| e.to_string())?;
            runs.iter().map(|r| local_view(&store, r, owned)).collect::<Result<_, _>>()?
        }
    };
    show_runs(&runs, args.json);
    Ok(ExitCode::SUCCESS)
}

fn show_runs(runs: &[RunView], as_json: bool) {
    if as_json {
        print(&format!("{:#}\n", json!(runs)));
        return;
    }
    print(&format!("{:>5}  {:<20} {:<20} {:>12}  {}\n", "run", "state", "started", "took", "workflow"));
    for r in runs {
        let took = r.started.zip(r.ended).map_or(String::new(), |(s, e)| duration((e - s) as f64));
        let started = moment(r.started.unwrap_or(r.created));
        let state = if r.held { "paused".to_owned() } else { r.state.to_string() };
        print(&format!("{:>5}  {state:<20} {started:<20} {took:>12}  {} ({})\n", r.run, r.name, r.workflow));
    }
}

pub(crate) fn status(args: &StatusArgs, arguments: &Arguments) -> Outcome {
    let (status, owned) = match Server::find(arguments) {
        Some(server) => {
            let run = number(&server, args.run)?;
            (server.get::<StatusView>(&format!("/runs/{run}"))?, true)
        }
        None => {
            let (state, store) = open(arguments)?;
            let owned = state.is_owned_by_another();
            let run = find_run(&store, args.run)?;
            let mut status = wait(catena_server::status(&store, &run))?.map_err(|e| e.to_string())?;
            status.run = local_view(&store, &run, owned)?;
            (status, owned)
        }
    };
    if args.json {
        print(&format!("{:#}\n", json!(status)));
    } else {
        print(&describe_status(&status, owned));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_status(status: &StatusView, owned: bool) -> String {
    let StatusView { run, running, failures, waiting } = status;
    let chains = &run.chains;
    let mut out = String::new();
    let state = if run.held { "paused".to_owned() } else { run.state.to_string() };
    let _ = writeln!(out, "run {} ({}): {state}", run.run, run.name);
    let _ = writeln!(out, "  workflow  {}", run.workflow);
    let _ = writeln!(out, "  started   {}", moment(run.started.unwrap_or(run.created)));
    if let (Some(s), Some(e)) = (run.started, run.ended) {
        let _ = writeln!(out, "  ended     {} after {}", moment(e), duration((e - s) as f64));
    }
    let _ = writeln!(
        out,
        "  chains    {} done, {} running, {} waiting, {} failed, {} cancelled",
        chains.succeeded,
        chains.running,
        chains.registered + chains.paused,
        chains.failed,
        chains.cancelled
    );
    if let Some(error) = &run.error {
        let _ = writeln!(out, "  error     {error}");
    }
    let now = now_millis();
    if owned {
        for r in running.iter().take(20) {
            let place = r.agent.as_ref().map_or(String::new(), |a| format!(" on {a}"));
            let _ =
                writeln!(out, "  running   {}{place}  {}", r.tasks, duration((now - r.since).max(0) as f64));
        }
    }
    for w in waiting {
        let _ = writeln!(
            out,
            "  waiting   {} that require {{{}}}: {}",
            w.count,
            w.capabilities.join(", "),
            w.reason
        );
    }
    for f in failures.iter().take(20) {
        let _ = write!(out, "\n{}", describe(&f.failure));
    }
    if failures.len() > 20 {
        let _ = writeln!(out, "\n… and {} more failures", failures.len() - 20);
    }
    out
}
