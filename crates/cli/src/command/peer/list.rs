//! `catena peers`: who is there, and what they have to do.

use super::guest::{ANSWER, Guest};
use super::{group_key, runtime};
use crate::arguments::{Arguments, PeersArgs};
use crate::command::{Outcome, print};
use crate::render::ring;
use catena_peer::{Answer, Ask, Status};
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(crate) fn peers(args: &PeersArgs, arguments: &Arguments) -> Outcome {
    let key = group_key(&args.key, &arguments.state, false)?;
    let statuses = runtime()?.block_on(async { ask_all(&Guest::new(key)?, &args.peer).await })?;
    if let Some(path) = &args.picture {
        std::fs::write(path, ring::svg(&statuses)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&statuses).map_err(|e| e.to_string())?));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{:<16}  {:<21}  {:>9}  {:>7}  {:>9}  {:>5}  {:>5}  capabilities\n",
        "place", "address", "cpus free", "running", "molecules", "leads", "index"
    ));
    for s in &statuses {
        let free = format!("{}/{}", s.cpus.0, s.cpus.1);
        let capabilities = s.capabilities.join(", ");
        print(&format!(
            "{:<16}  {:<21}  {free:>9}  {:>7}  {:>9}  {:>5}  {:>5}  {capabilities}\n",
            s.peer, s.address, s.running, s.molecules, s.leads, s.entries,
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks a peer who is there, and all of them how they are.
async fn ask_all(guest: &Guest, first: &str) -> Result<Vec<Status>, String> {
    let mut addresses = vec![first.to_owned()];
    if let Answer::Peers(others) = guest.ask(first, &Ask::Peers, ANSWER).await? {
        addresses.extend(others.into_iter().map(|(_, address)| address).filter(|a| !a.is_empty()));
    }
    let ask = |address: &String| {
        let address = address.clone();
        async move { guest.ask(&address, &Ask::Status, ANSWER).await }
    };
    let mut statuses = BTreeMap::new();
    for answer in futures_util::future::join_all(addresses.iter().map(ask)).await {
        match answer {
            Ok(Answer::Status(status)) => drop(statuses.insert(status.peer.clone(), *status)),
            Ok(_) => {}
            Err(why) => eprintln!("{why}"),
        }
    }
    Ok(statuses.into_values().collect())
}
