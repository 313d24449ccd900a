//! `catena run --peer`: gives a workflow to a group of peers, waits, and brings its results here.

use super::{group_key, runtime};
use crate::arguments::{Arguments, RunArgs};
use crate::command::serve::watch_stop;
use crate::command::{EXIT_FAILED, EXIT_INTERRUPTED, Outcome, print};
use catena_data::{Depot, DepotOptions, address_towards};
use catena_model::Loaded;
use catena_peer::wire::Settings as WireSettings;
use catena_peer::{
    Answer, Ask, Document, Finished, GroupKey, Identity, LARGEST_MESSAGE, Over, Wire, fetch_results,
};
use catena_server::Definition;
use catena_space::molecule::Ending;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a peer has to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// How long a peer may take to get the files of a workflow.
const FILES: Duration = Duration::from_hours(1);
/// How often it is asked what came of a workflow.
const OFTEN: Duration = Duration::from_millis(200);

/// Somebody who knows the key of a group and asks its peers.
pub(super) struct Guest {
    wire: Wire,
}

impl Guest {
    pub(super) fn new(key: GroupKey) -> Result<Self, String> {
        let settings = WireSettings { largest_frame: LARGEST_MESSAGE, ..WireSettings::guest() };
        let (wire, mut events) =
            Wire::start(&Identity::fleeting(), key, settings).map_err(|e| e.to_string())?;
        tokio::spawn(async move { while events.next().await.is_some() {} });
        Ok(Self { wire })
    }

    pub(super) async fn ask(&self, at: &str, ask: &Ask, patience: Duration) -> Result<Answer, String> {
        let bytes = serde_json::to_vec(ask).map_err(|e| e.to_string())?;
        let answer = self.wire.ask(at, &bytes, patience).await.map_err(|e| format!("{at}: {e}"))?;
        match serde_json::from_slice(&answer).map_err(|e| format!("{at} answers what cannot be read: {e}"))? {
            Answer::No(why) => Err(format!("{at}: {why}")),
            answer => Ok(answer),
        }
    }
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
    let out = definition.out.clone();
    let guests = arguments.state.join("guest");
    let directory = guests.join(std::process::id().to_string());
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
    let note = Note::new(&guests, &document);
    let show = Show::new(args);
    let ended = runtime()?.block_on(async {
        let guest = Guest::new(key)?;
        let earlier = if args.new { None } else { note.read() };
        let id = match go_on(&guest, peer, earlier).await? {
            Some(id) => {
                show.say("again", &id, "was given in before and goes on");
                id
            }
            None => {
                let Answer::In(id) = guest.ask(peer, &Ask::Submit(Box::new(document)), FILES).await? else {
                    return Err(format!("{peer} does not say that the workflow is in"));
                };
                note.write(&id)?;
                show.say("entered", &id, "is among the peers");
                id
            }
        };
        wait(&guest, peer, &id, &show).await
    });
    let outcome = ended.and_then(|ended| {
        let Some(ending) = ended else { return Ok(ExitCode::from(EXIT_INTERRUPTED)) };
        let over = Over::read(&ending);
        if let Over::Done(finished) = &over {
            bring(&depot, finished, &directory, &out, &show)?;
        }
        note.remove();
        Ok(show.end(&over))
    });
    drop(depot);
    let _ = fs::remove_dir_all(&directory);
    outcome
}

/// A workflow that was given in before and is still known.
async fn go_on(guest: &Guest, peer: &str, earlier: Option<String>) -> Result<Option<String>, String> {
    let Some(id) = earlier else { return Ok(None) };
    match guest.ask(peer, &Ask::Result(id.clone()), ANSWER).await {
        Ok(_) => Ok(Some(id)),
        // Another peer, or it has been too long.
        Err(why) if why.contains("was given in here") => Ok(None),
        Err(why) => Err(why),
    }
}

/// Waits until a workflow is over; nothing if this is interrupted before.
async fn wait(guest: &Guest, peer: &str, id: &str, show: &Show) -> Result<Option<Ending>, String> {
    let mut stop = watch_stop()?;
    let mut told = Vec::new();
    let mut trouble = String::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(OFTEN) => {}
            _ = stop.wait_for(|stop| *stop) => {
                show.say("left", id, "goes on among the peers; the same command waits for it again");
                return Ok(None);
            }
        }
        match guest.ask(peer, &Ask::Result(id.to_owned()), ANSWER).await {
            Ok(Answer::Over(good, matter)) => return Ok(Some(Ending { good, matter: matter.into() })),
            Ok(Answer::Going { tasks, blocked }) => {
                show.progress(tasks);
                for what in blocked.iter().filter(|what| !told.contains(*what)) {
                    show.blocked(what);
                }
                told = blocked;
                trouble.clear();
            }
            Err(why) if why != trouble => {
                show.warn(&format!("{why}; waiting until it answers again"));
                trouble = why;
            }
            Ok(_) | Err(_) => {}
        }
    }
}

fn bring(depot: &Depot, finished: &Finished, work: &Path, out: &Path, show: &Show) -> Result<(), String> {
    let results = fetch_results(depot, finished, &work.join("results"), out).map_err(|e| e.to_string())?;
    for result in results {
        for value in result.values {
            show.result(&result.name, &value);
        }
    }
    Ok(())
}

/// Where to serve files so that a peer can get them.
fn listen_towards(peer: &str) -> SocketAddr {
    (address_towards(peer).unwrap_or(Ipv4Addr::LOCALHOST.into()), 0).into()
}

/// What a workflow that was given in is called, so that the same command finds it again.
struct Note(PathBuf);

impl Note {
    fn new(directory: &Path, document: &Document) -> Self {
        Self(directory.join(document.fingerprint()))
    }

    fn read(&self) -> Option<String> {
        fs::read_to_string(&self.0).ok()
    }

    fn write(&self, id: &str) -> Result<(), String> {
        fs::write(&self.0, id).map_err(|e| format!("{}: {e}", self.0.display()))
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Tells a person or a machine what happens.
struct Show {
    json: bool,
    quiet: bool,
    bar: ProgressBar,
}

impl Show {
    fn new(args: &RunArgs) -> Self {
        let (json, quiet) = (args.show.json, args.show.quiet);
        let bar = if json || quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
        let style = ProgressStyle::with_template("{bar:40} {pos} of {len} tasks, {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { json, quiet, bar }
    }

    fn event(&self, event: &Value) {
        if self.json {
            print(&format!("{event}\n"));
        }
    }

    fn say(&self, event: &str, workflow: &str, words: &str) {
        self.event(&json!({"event": event, "workflow": workflow}));
        if !self.json && !self.quiet {
            self.bar.suspend(|| eprintln!("workflow {workflow} {words}"));
        }
    }

    fn progress(&self, (done, known): (u32, u32)) {
        if self.bar.position() != u64::from(done) || self.bar.length() != Some(u64::from(known)) {
            self.event(&json!({"event": "progress", "done": done, "known": known}));
        }
        self.bar.set_length(u64::from(known));
        self.bar.set_position(u64::from(done));
    }

    fn blocked(&self, (name, why): &(String, String)) {
        self.event(&json!({"event": "blocked", "name": name, "reason": why}));
        self.warn(&format!("{name} cannot go on: {why}"));
    }

    fn warn(&self, words: &str) {
        if !self.json {
            self.bar.suspend(|| eprintln!("{words}"));
        }
    }

    fn result(&self, name: &str, value: &str) {
        self.event(&json!({"event": "result", "name": name, "value": value}));
        if !self.json {
            self.bar.suspend(|| print(&format!("{name}: {value}\n")));
        }
    }

    /// How it ended.
    fn end(&self, over: &Over) -> ExitCode {
        self.bar.finish_and_clear();
        let why = match over {
            Over::Done(finished) => {
                self.event(&json!({"event": "succeeded", "tasks": finished.tasks}));
                return ExitCode::SUCCESS;
            }
            Over::Failed(failure) => {
                let mut lines = vec![format!("{} failed: {}", failure.task, failure.message)];
                if !failure.command.is_empty() {
                    lines.push(format!("  command: {}", failure.command));
                }
                lines.extend(failure.tail.iter().map(|line| format!("  | {line}")));
                lines.extend(failure.help.iter().map(|help| format!("  help: {help}")));
                lines.join("\n")
            }
            Over::Stuck(why) => why.clone(),
        };
        self.event(&json!({"event": "failed", "error": why}));
        if !self.json {
            eprintln!("error: {why}");
        }
        ExitCode::from(EXIT_FAILED)
    }
}
