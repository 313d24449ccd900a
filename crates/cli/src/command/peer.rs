//! `catena peer`, `catena peers` and `catena run --peer`: groups without a server.

use super::run::agent_config;
use super::serve::watch_stop;
use super::{EXIT_FAILED, EXIT_INTERRUPTED, Outcome, print};
use crate::arguments::{Arguments, KeyArgs, PeerArgs, PeersArgs, RunArgs};
use crate::project::find_config;
use catena_data::{Depot, DepotOptions};
use catena_model::{Loaded, parse_bytes, parse_duration};
use catena_peer::wire::Settings as WireSettings;
use catena_peer::{
    Answer, Ask, Document, ExecutorConfig, GroupKey, Identity, MemberConfig, Over, Status, Told, Wire,
    fetch_results, run_member,
};
use catena_server::Definition;
use catena_space::chemistry::SHIPPED;
use catena_space::molecule::Ending;
use catena_space::{Chemistry, Note, Settings};
use serde_json::json;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long a peer has to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a peer may take to get the files of a workflow.
const FILES: Duration = Duration::from_hours(1);
/// How often it is asked what came of a workflow.
const OFTEN: Duration = Duration::from_millis(200);

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
        let identity = Identity::fleeting();
        let secret = format!("{}{}\n", identity.id(), Identity::fleeting().id());
        std::fs::create_dir_all(state).map_err(|e| format!("{}: {e}", state.display()))?;
        write_secret(&path, &secret).map_err(|e| format!("{}: {e}", path.display()))?;
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

/// A guest of the group, which asks one of its peers.
struct Guest {
    wire: Wire,
    at: String,
}

impl Guest {
    fn new(at: &str, key: GroupKey) -> Result<Self, String> {
        let settings = WireSettings { largest_frame: 64 << 20, ..WireSettings::guest() };
        let (wire, mut events) =
            Wire::start(&Identity::fleeting(), key, settings).map_err(|e| e.to_string())?;
        tokio::spawn(async move { while events.next().await.is_some() {} });
        Ok(Self { wire, at: at.to_owned() })
    }

    async fn ask(&self, at: &str, ask: &Ask, patience: Duration) -> Result<Answer, String> {
        let bytes = serde_json::to_vec(ask).map_err(|e| e.to_string())?;
        let answer = self.wire.ask(at, &bytes, patience).await.map_err(|e| format!("{at}: {e}"))?;
        match serde_json::from_slice(&answer).map_err(|e| format!("{at} answers what cannot be read: {e}"))? {
            Answer::No(why) => Err(format!("{at}: {why}")),
            answer => Ok(answer),
        }
    }
}

pub(crate) fn peers(args: &PeersArgs, arguments: &Arguments) -> Outcome {
    let key = group_key(&args.key, &arguments.state, false)?;
    let statuses = runtime()?.block_on(async {
        let guest = Guest::new(&args.peer, key)?;
        let mut statuses = Vec::new();
        let mut addresses = vec![args.peer.clone()];
        if let Answer::Peers(others) = guest.ask(&guest.at, &Ask::Peers, ANSWER).await? {
            addresses.extend(others.into_iter().map(|(_, address)| address).filter(|a| !a.is_empty()));
        }
        for address in addresses {
            match guest.ask(&address, &Ask::Status, ANSWER).await {
                Ok(Answer::Status(status)) => statuses.push(*status),
                Ok(_) => {}
                Err(why) => eprintln!("{why}"),
            }
        }
        statuses.sort_by(|a: &Status, b: &Status| a.peer.cmp(&b.peer));
        statuses.dedup_by(|a, b| a.peer == b.peer);
        Ok::<_, String>(statuses)
    })?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&statuses).map_err(|e| e.to_string())?));
        return Ok(ExitCode::SUCCESS);
    }
    print(&format!(
        "{:<16}  {:<21}  {:>7}  {:>9}  {:>5}  {:>7}  resource\n",
        "place", "address", "running", "molecules", "leads", "entries"
    ));
    for s in &statuses {
        print(&format!(
            "{:<16}  {:<21}  {:>7}  {:>9}  {:>5}  {:>7}  {}\n",
            s.peer,
            s.address,
            s.running,
            s.molecules,
            s.leads,
            s.entries,
            s.resource.as_deref().unwrap_or("busy")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Gives a workflow to a group of peers, waits, and brings its results here.
pub(crate) fn run_with_peer(
    args: &RunArgs,
    arguments: &Arguments,
    peer: &str,
    loaded: &Loaded,
    definition: Definition,
) -> Outcome {
    let key = group_key(&args.key, &arguments.state, false)?;
    let out: PathBuf = definition.out.clone();
    let directory = arguments.state.join("guest").join(std::process::id().to_string());
    let directory = std::path::absolute(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let depot = Depot::open(&DepotOptions {
        directory: directory.join("data"),
        listen: listen_towards(peer),
        host: None,
        quota: None,
        object: None,
        logs: None,
    })
    .map_err(|e| e.to_string())?;
    let document = Document::new(definition, loaded, &depot, &"guest".into())?;
    let mut stop = watch_stop()?;
    let quiet = args.show.quiet;
    let ended = runtime()?.block_on(async {
        let guest = Guest::new(peer, key)?;
        let Answer::In(id) = guest.ask(peer, &Ask::Submit(Box::new(document)), FILES).await? else {
            return Err(format!("{peer} does not say that the workflow is in"));
        };
        if !quiet {
            eprintln!("workflow {id} is among the peers");
        }
        let mut told = 0;
        let bar = if quiet { indicatif::ProgressBar::hidden() } else { indicatif::ProgressBar::new(0) };
        loop {
            tokio::select! {
                () = tokio::time::sleep(OFTEN) => {}
                _ = stop.wait_for(|stop| *stop) => {
                    eprintln!("the workflow goes on among the peers");
                    return Ok(None);
                }
            }
            match guest.ask(peer, &Ask::Result(id.clone()), ANSWER).await {
                Ok(Answer::Over(good, matter)) => return Ok(Some(Ending { good, matter: matter.into() })),
                Ok(Answer::Going { tasks: (done, known), blocked }) => {
                    bar.set_length(u64::from(known));
                    bar.set_position(u64::from(done));
                    for (name, why) in blocked.iter().skip(told) {
                        eprintln!("{name} cannot go on: {why}");
                    }
                    told = blocked.len();
                }
                Ok(_) => {}
                Err(why) => eprintln!("{why}; trying again"),
            }
        }
    })?;
    let outcome = match ended.as_ref().map(Over::read) {
        None => Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Some(Over::Done(finished)) => {
            let results = fetch_results(&depot, &finished, &directory.join("results"), &out)
                .map_err(|e| e.to_string())?;
            for result in results {
                for value in result.values {
                    print(&format!("{}: {value}\n", result.name));
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Some(Over::Failed(failure)) => {
            eprintln!("error: {} failed: {}", failure.task, failure.message);
            if !failure.command.is_empty() {
                eprintln!("  command: {}", failure.command);
            }
            for line in &failure.tail {
                eprintln!("  | {line}");
            }
            if let Some(help) = &failure.help {
                eprintln!("  help: {help}");
            }
            Ok(ExitCode::from(EXIT_FAILED))
        }
        Some(Over::Stuck(why)) => {
            eprintln!("error: {why}");
            Ok(ExitCode::from(EXIT_FAILED))
        }
    };
    drop(depot);
    let _ = std::fs::remove_dir_all(&directory);
    outcome
}

/// Where to serve files so that a peer can get them.
fn listen_towards(peer: &str) -> SocketAddr {
    let towards = || {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect(peer).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    (towards().unwrap_or(Ipv4Addr::LOCALHOST.into()), 0).into()
}
