//! `catena cancel`

use super::cluster::number;
use super::inspect::{find_run, wait};
use super::{Outcome, print};
use crate::arguments::{Arguments, CancelArgs};
use crate::remote::Server;
use catena_server::{StateDirectory, StatusView};
use catena_store::{RunChange, RunState, SqliteOptions, SqliteStore, Store};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long to wait for the owner of the run to stop it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn cancel(args: &CancelArgs, arguments: &Arguments) -> Outcome {
    if let Some(server) = Server::find(arguments) {
        return cancel_remote(args, &server);
    }
    let state = StateDirectory::look(&arguments.state).map_err(|e| e.to_string())?;
    let store = SqliteStore::open(&state.path().join("catena.db"), SqliteOptions::default())
        .map_err(|e| e.to_string())?;
    let run = find_run(&store, args.run)?;
    if run.state.is_final() {
        return Err(format!("run {} is over already: it {}", run.id, run.state));
    }
    if !state.is_owned_by_another() {
        let change = RunChange { state: Some(RunState::Cancelled), ..RunChange::default() };
        wait(store.change_run(run.id, &change))?.map_err(|e| e.to_string())?;
        print(&format!("run {} is cancelled\n", run.id));
        return Ok(ExitCode::SUCCESS);
    }
    let change = RunChange { cancel_requested: Some(true), ..RunChange::default() };
    wait(store.change_run(run.id, &change))?.map_err(|e| e.to_string())?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
        let now = find_run(&store, Some(run.id.0))?;
        if now.state.is_final() {
            print(&format!("run {} is {}\n", run.id, now.state));
            return Ok(ExitCode::SUCCESS);
        }
    }
    Err(format!("run {} was asked to stop but has not within {} s", run.id, PATIENCE.as_secs()))
}

fn cancel_remote(args: &CancelArgs, server: &Server) -> Outcome {
    let run = number(server, args.run)?;
    server.send::<serde_json::Value>("POST", &format!("/runs/{run}/cancel"), "application/json", &())?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let status: StatusView = server.get(&format!("/runs/{run}"))?;
        if status.run.state.is_final() {
            print(&format!("run {run} is {}\n", status.run.state));
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(format!("run {run} was asked to stop but has not within {} s", PATIENCE.as_secs()))
}
