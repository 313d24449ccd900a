//! `catena chains`: the chains of a run, where they were executed, and what they were at when.

use super::cluster::number;
use super::inspect::{find_run, open, wait};
use super::{Outcome, print};
use crate::arguments::{Arguments, ChainsArgs};
use crate::remote::Server;
use crate::time::duration;
use catena_model::chain::ChainState;
use catena_server::ChainView;
use catena_store::{ChainFilter, Store};
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// How many chains are asked for at a time.
const PAGE: usize = 1000;

pub(crate) fn chains(args: &ChainsArgs, arguments: &Arguments) -> Outcome {
    let state = args.only.as_ref().map(|name| read_state(name)).transpose()?;
    let mut pages = Pages::open(args, state, arguments)?;
    let mut all = Vec::new();
    let mut from = 0;
    loop {
        let page = pages.next(from)?;
        let Some(last) = page.last() else { break };
        from = last.chain + 1;
        if args.json {
            all.extend(page);
        } else {
            print(&page.iter().map(describe).collect::<String>());
        }
    }
    if args.json {
        print(&format!("{:#}\n", json!(all)));
    }
    Ok(ExitCode::SUCCESS)
}

fn read_state(name: &str) -> Result<ChainState, String> {
    let found = ChainState::ALL.into_iter().find(|s| s.to_string() == name);
    let names = || ChainState::ALL.map(|s| s.to_string()).join(", ");
    found.ok_or_else(|| format!("`{name}` is no state of a chain; there are {}", names()))
}

/// Where chains come from.
enum Pages {
    Server {
        server: Server,
        run: i64,
        state: Option<ChainState>,
    },
    Local {
        store: Box<catena_store::SqliteStore>,
        run: catena_model::chain::RunId,
        state: Option<ChainState>,
    },
}

impl Pages {
    fn open(args: &ChainsArgs, state: Option<ChainState>, arguments: &Arguments) -> Result<Self, String> {
        if let Some(server) = Server::find(arguments) {
            let run = number(&server, args.run)?;
            return Ok(Self::Server { server, run, state });
        }
        let (_, store) = open(arguments)?;
        let run = find_run(&store, args.run)?.id;
        Ok(Self::Local { store: Box::new(store), run, state })
    }

    fn next(&mut self, from: u64) -> Result<Vec<ChainView>, String> {
        match self {
            Self::Server { server, run, state } => {
                let state = state.map(|s| format!("&state={s}")).unwrap_or_default();
                server.get(&format!("/runs/{run}/chains?from={from}&limit={PAGE}{state}"))
            }
            Self::Local { store, run, state } => {
                let filter =
                    ChainFilter { state: *state, from, limit: PAGE, payload: true, ..ChainFilter::default() };
                let records = wait(store.chains(*run, &filter))?.map_err(|e| e.to_string())?;
                Ok(records.iter().map(ChainView::new).collect())
            }
        }
    }
}

/// A chain in one line: what it was at for how long.
fn describe(chain: &ChainView) -> String {
    let mut out = format!("{:>6}  {:<10}", chain.chain, chain.state.to_string());
    let agent = chain.agent.as_deref().unwrap_or("-");
    let _ = write!(out, "  {agent:<12}  {}", chain.tasks.join(" -> "));
    let times = chain.history.windows(2).map(|pair| {
        let time = (pair[1].at - pair[0].at).max(0) as f64;
        format!("{} {}", pair[0].state, if time < 1.0 { "0 ms".to_owned() } else { duration(time) })
    });
    let times: Vec<String> = times.collect();
    if !times.is_empty() {
        let _ = write!(out, "  ({})", times.join(", "));
    }
    if chain.attempt > 1 {
        let _ = write!(out, "  {} attempts", chain.attempt);
    }
    out.push('\n');
    out
}
