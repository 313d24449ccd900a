//! `catena peer`, `catena peers` and `catena run --peer`: groups without a server.

mod guest;
mod list;

pub(crate) use guest::run_with_peer;
pub(crate) use list::peers;

use super::run::agent_config;
use super::serve::watch_stop;
use super::{Outcome, print};
use crate::arguments::{Arguments, KeyArgs, PeerArgs};
use crate::project::find_config;
use catena_data::random_hex;
use catena_model::{parse_bytes, parse_duration};
use catena_peer::{ExecutorConfig, GroupKey, MemberConfig, Told, run_member};
use catena_space::chemistry::SHIPPED;
use catena_space::{Chemistry, Note, Settings};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn peer(args: &PeerArgs, arguments: &Arguments) -> Outcome {
    let directory = args.directory.clone().unwrap_or_else(|| arguments.state.join("peer"));
    let key = group_key(&args.key, &arguments.state, args.join.is_empty())?;
    let settings = find_config(Path::new("."))?.agent;
    let agent = agent_config(&settings, &args.agent, "peer".into())?;
    let lease = parse_duration(&args.lease).map_err(|e| format!("--lease {}: {e}", args.lease))?;
    let config = MemberConfig {
        listen: args.listen,
        host: args.host.clone(),
        join: args.join.clone(),
        key,
        mdns: args.mdns,
        chemistry: Arc::new(rules(&args.rules)?),
        settings: Settings { lease: lease.as_micros() as u64, ..Settings::default() },
        executor: ExecutorConfig {
            name: agent.id,
            directory: directory.join("work"),
            capabilities: agent.capabilities,
            resources: agent.resources,
            speed: args.speed,
            listen: (args.listen.ip(), 0).into(),
            host: None,
            quota: args.quota.as_deref().map(parse_bytes).transpose()?,
        },
        directory,
    };
    let mut stop = watch_stop()?;
    let json = args.json;
    let tell = Box::new(move |told| if json { tell_json(&told) } else { tell_person(&told) });
    let run = run_member(config, async move { drop(stop.wait_for(|stop| *stop).await) }, tell);
    runtime()?.block_on(run).map_err(|e| e.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())
}

/// The rules with this name, or in this file.
fn rules(name: &str) -> Result<Chemistry, String> {
    if let Some(shipped) = Chemistry::shipped(name) {
        return Ok(shipped);
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).map_err(|e| {
        let names: Vec<&str> = SHIPPED.iter().map(|(n, _)| *n).collect();
        format!("--rules {name}: {e}; rules that come with catena: {}", names.join(", "))
    })?;
    Chemistry::read(path, &text).map_err(|rejected| {
        let shown = rejected.diags.iter().map(|d| d.render(&rejected.sources).to_string());
        shown.collect::<Vec<_>>().join("\n")
    })
}

/// The key of the group. Whoever begins a group makes one.
fn group_key(args: &KeyArgs, state: &Path, begins: bool) -> Result<GroupKey, String> {
    let path = args.file.clone().unwrap_or_else(|| state.join("group.key"));
    if begins && !path.exists() && args.file.is_none() {
        let secret = random_hex(32).map_err(|e| format!("a key for the group cannot be made: {e}"))?;
        std::fs::create_dir_all(state).map_err(|e| format!("{}: {e}", state.display()))?;
        write_secret(&path, &format!("{secret}\n")).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("made a key for the group: {}; peers that join need a copy of it", path.display());
    }
    GroupKey::from_file(&path).map_err(|e| {
        let copy = "copy it from the machine that began the group, or say where it is with --key";
        format!("the key of the group: {e}; {copy}")
    })
}

fn write_secret(path: &Path, secret: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret.as_bytes())
}

fn tell_person(told: &Told) {
    match told {
        Told::Listens(address, id) => eprintln!("peer {id} listens at {address}"),
        Told::Peers(count) => eprintln!("{count} peers are there"),
        Told::Refused(address, reason) => eprintln!("{address}: {reason}"),
        Told::NobodyAt(address, why) => eprintln!("{address}: {why}; trying again"),
        Told::Note(Note::Blocked(_, name, why)) => eprintln!("{name} cannot go on: {why}"),
        Told::Note(_) => {}
    }
}

fn tell_json(told: &Told) {
    let line = match told {
        Told::Listens(address, id) => {
            json!({"event": "listens", "address": address.to_string(), "peer": id.to_string()})
        }
        Told::Peers(count) => json!({"event": "peers", "count": count}),
        Told::Refused(address, reason) => {
            json!({"event": "refused", "address": address, "reason": reason.to_string()})
        }
        Told::NobodyAt(address, why) => json!({"event": "unreachable", "address": address, "reason": why}),
        Told::Note(note) => match note {
            Note::Ready(id, name) => {
                json!({"event": "ready", "molecule": id.to_string(), "name": name.to_string()})
            }
            Note::Leased(id, epoch, peer) => {
                json!({"event": "leased", "molecule": id.to_string(), "epoch": epoch, "peer": peer.to_string()})
            }
            Note::Committed(id, epoch, _) => {
                json!({"event": "committed", "molecule": id.to_string(), "epoch": epoch})
            }
            Note::Again(id) => json!({"event": "again", "molecule": id.to_string()}),
            Note::Wasted(id, epoch) => json!({"event": "wasted", "molecule": id.to_string(), "epoch": epoch}),
            Note::Blocked(id, name, why) => {
                json!({"event": "blocked", "workflow": id.to_string(), "name": name.to_string(), "reason": why})
            }
            Note::Begun(id) => json!({"event": "begun", "workflow": id.to_string()}),
            Note::Over(id, good) => json!({"event": "over", "workflow": id.to_string(), "good": good}),
        },
    };
    print(&format!("{line}\n"));
}
