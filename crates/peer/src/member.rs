//! A peer at work: its node in the space, its wire, its executor, and the time.

use crate::desk::{Answer, Ask, LARGEST_MESSAGE, Status};
use crate::entries::Entries;
use crate::execute::{Assignment, Executed, Executor, ExecutorConfig, ExecutorError};
use crate::journal::Journal;
use crate::matter::{Document, Finished, Lost, Over, TaskEnding};
use crate::weave::Loom;
use crate::wire::{Event, Events, GroupKey, Identity, PeerId, Reason, Reply, Settings as WireSettings, Wire};
use catena_data::address_towards;
use catena_model::chain::{DataAddress, Supply};
use catena_space::id::{Id, Peer};
use catena_space::molecule::{Body, Ending, Matter, Name};
use catena_space::register::Saved;
use catena_space::route::{Contact, FullView};
use catena_space::time::Micros;
use catena_space::{Chemistry, Message, Node, Note, Output, Settings};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tokio::sync::mpsc;

/// What a peer is, and whom it joins.
pub struct MemberConfig {
    /// Where it keeps what it must not forget.
    pub directory: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What other machines call this one; found out if nothing is said.
    pub host: Option<String>,
    /// Peers to join, as `host:port`; none: others will join this one.
    pub join: Vec<String>,
    /// What all peers of the group know, and nobody else.
    pub key: GroupKey,
    /// Whether to look for peers in the local network.
    pub mdns: bool,
    /// The rules all peers of the group follow.
    pub chemistry: Arc<Chemistry>,
    /// How it behaves in the space.
    pub settings: Settings,
    /// What it executes, and how much at once.
    pub executor: ExecutorConfig,
}

/// A peer could not go on.
#[derive(Debug, Error)]
pub enum MemberError {
    /// Its files.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Its identity.
    #[error(transparent)]
    Identity(#[from] crate::wire::IdentityError),
    /// What it is to be called.
    #[error("--host {host}: {error}")]
    Host {
        /// The name.
        host: String,
        /// Why it cannot be used.
        error: io::Error,
    },
    /// Its wire.
    #[error(transparent)]
    Wire(#[from] crate::wire::StartError),
    /// Its executor.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// Another process has the same identity.
    #[error(
        "another peer with the identity of {directory} runs at {address}; each peer needs a directory of its own"
    )]
    Twin {
        /// Where this one keeps its identity.
        directory: PathBuf,
        /// Where the other one is.
        address: SocketAddr,
    },
}

/// Something a person may want to know.
#[derive(Clone, Debug)]
pub enum Told {
    /// It listens.
    Listens(SocketAddr, PeerId),
    /// So many peers are there now.
    Peers(usize),
    /// Somebody was not let in, or did not let this peer in.
    Refused(String, Reason),
    /// Nobody answers there.
    NobodyAt(String, String),
    /// Something about work.
    Note(Note),
}

/// Whoever has not been joined is asked again after this time.
const JOIN: Duration = Duration::from_secs(3);
/// Whether anybody needs what is here of a run is asked so often.
const TIDY: Duration = Duration::from_mins(10);
/// No workflow is larger: it has to fit into messages with what else is in them.
const LARGEST_WORKFLOW: usize = LARGEST_MESSAGE / 2;

/// The place of a peer on the ring.
pub fn place(id: PeerId) -> Peer {
    let hash = blake3::hash(&id.to_bytes());
    Peer(u64::from_be_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes")))
}

struct Member {
    config: MemberConfig,
    wire: Wire,
    node: Node,
    executor: Executor,
    journal: Journal,
    begun: (Instant, Micros),
    /// Whom a place on the ring belongs to.
    people: HashMap<Peer, PeerId>,
    addresses: BTreeMap<PeerId, String>,
    entries: Entries,
    /// Workflows whose files are kept here, because this peer is one of their homes.
    kept: BTreeSet<Id>,
    joined: BTreeSet<String>,
    sent: BTreeMap<&'static str, u64>,
    known: usize,
    tell: Box<dyn FnMut(Told) + Send>,
    inner: mpsc::Sender<Inner>,
}

/// What other threads and tasks tell the loop.
enum Inner {
    Executed(Executed),
    Joined(String, Result<PeerId, String>),
    /// A workflow whose files are here.
    Submitted(Box<Document>, Result<(), String>, Reply),
    /// What came of a workflow is here, or something of it is nowhere.
    Gathered(Id, Finished, Result<(), Lost>),
}

/// Runs a peer until `stop` is ready.
pub async fn run_member(
    config: MemberConfig,
    stop: impl Future<Output = ()>,
    mut tell: Box<dyn FnMut(Told) + Send>,
) -> Result<(), MemberError> {
    let directory = config.directory.clone();
    let file = |path: PathBuf| move |error| MemberError::File { path, error };
    std::fs::create_dir_all(&directory).map_err(file(directory.clone()))?;
    let identity = Identity::at(&directory.join("identity"))?;
    let me = place(identity.id());
    let settings = WireSettings {
        mdns: config.mdns,
        largest_frame: LARGEST_MESSAGE,
        queue_bytes: LARGEST_MESSAGE + (4 << 20),
        event_bytes: LARGEST_MESSAGE + (8 << 20),
        ..WireSettings::member([config.listen])
    };
    let (wire, mut events) = Wire::start(&identity, config.key.clone(), settings)?;
    let listening = first_address(&mut events, &mut tell).await.unwrap_or(config.listen);
    let host = match &config.host {
        Some(host) => resolve(host)?,
        None => own_host(listening.ip(), &config.join),
    };
    let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as Micros);
    let (inner, mut inside) = mpsc::channel(1024);
    let reports = inner.clone();
    let mut executing = config.executor.clone();
    // Tasks run elsewhere, and must find their files nevertheless.
    executing.directory =
        std::path::absolute(&executing.directory).map_err(file(executing.directory.clone()))?;
    executing.name = me.to_string().into();
    executing.host = Some(host.to_string());
    let executor = Executor::start(
        executing,
        Box::new(move |executed| drop(reports.blocking_send(Inner::Executed(executed)))),
    )?;
    let data = executor.depot().address();
    // What others need to know to talk to this peer, and to get what it holds.
    let at = SocketAddr::new(host, listening.port());
    let address = format!("{} {at} {} {}", identity.id(), data.url, data.token);
    let path = directory.join("entries");
    let entries = Entries::open(path.clone()).map_err(file(path))?;
    let path = directory.join("molecules");
    let (journal, saved) = Journal::open(&path).map_err(file(path))?;
    let contact = Contact::new(me, address).started(start);
    let route = Box::new(FullView::new(contact, start));
    let loom = Box::new(Loom::new(&config.chemistry));
    let mut node =
        Node::new(start, me, route, config.chemistry.clone(), loom, config.settings.clone(), start);
    for (id, saved) in saved {
        node.restore(start, id, saved);
    }
    let mut member = Member {
        config,
        wire,
        node,
        executor,
        journal,
        begun: (Instant::now(), start),
        people: HashMap::new(),
        addresses: BTreeMap::new(),
        entries,
        kept: BTreeSet::new(),
        joined: BTreeSet::new(),
        sent: BTreeMap::new(),
        known: 1,
        tell,
        inner,
    };
    (member.tell)(Told::Listens(listening, identity.id()));
    let mut stop = std::pin::pin!(stop);
    let mut join = tokio::time::interval(JOIN);
    let mut tidy = tokio::time::interval(TIDY);
    loop {
        member.act().map_err(file(directory.join("molecules")))?;
        let pause = Duration::from_micros(member.node.wake_at().saturating_sub(member.now()));
        tokio::select! {
            () = &mut stop => break,
            () = tokio::time::sleep(pause) => {
                let now = member.now();
                member.node.wake(now);
            }
            event = events.next() => match event {
                Some(Event::Twin { address, we_are_later: true }) => {
                    return Err(MemberError::Twin { directory, address });
                }
                Some(event) => member.heard(event),
                None => break,
            },
            Some(inner) = inside.recv() => member.inside(inner).map_err(file(directory.join("entries")))?,
            _ = join.tick() => member.join(),
            _ = tidy.tick() => member.tidy(),
        }
    }
    let now = member.now();
    member.node.leave(now);
    member.act().map_err(file(directory.join("molecules")))?;
    member.wire.stop().await;
    Ok(())
}

/// The address it listens at.
async fn first_address(events: &mut Events, tell: &mut Box<dyn FnMut(Told) + Send>) -> Option<SocketAddr> {
    loop {
        match events.next().await? {
            Event::Listening(address) => return Some(address),
            Event::Refused { address, reason } => tell(Told::Refused(address.to_string(), reason)),
            _ => {}
        }
    }
}

/// The address that others know a machine by. Peers tell each other addresses: not all may know the same names.
fn resolve(host: &str) -> Result<IpAddr, MemberError> {
    let unknown = |error| MemberError::Host { host: host.to_owned(), error };
    let found = (host, 0).to_socket_addrs().map_err(unknown)?.next();
    found.map(|a| a.ip()).ok_or_else(|| unknown(io::ErrorKind::NotFound.into()))
}

/// What others call this machine: the address from which it reaches those it joins.
fn own_host(listening: IpAddr, join: &[String]) -> IpAddr {
    if !listening.is_unspecified() {
        return listening;
    }
    // Who listens at an address of one kind does not hear those who call one of the other.
    let towards = |target: &str| {
        let all = target.to_socket_addrs().ok()?.filter(|a| a.is_ipv4() == listening.is_ipv4());
        address_towards(&all.collect::<Vec<_>>()[..])
    };
    // The address of any far host tells which way packets leave.
    let (far, near) = match listening {
        IpAddr::V4(_) => ("192.0.2.1:9", Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => ("[2001:db8::1]:9", Ipv6Addr::LOCALHOST.into()),
    };
    join.iter().find_map(|j| towards(j)).or_else(|| towards(far)).unwrap_or(near)
}

impl Member {
    fn now(&self) -> Micros {
        self.begun.1 + self.begun.0.elapsed().as_micros() as Micros
    }

    /// Says what there is room for.
    fn offer(&mut self) {
        let now = self.now();
        let resource = self.executor.resource(self.node.me().0);
        self.node.offer(now, resource);
    }

    /// Does what the node wants done.
    fn act(&mut self) -> io::Result<()> {
        loop {
            let mut outputs = self.node.outputs();
            if outputs.is_empty() {
                // Only now: what was to be started takes room.
                self.offer();
                outputs = self.node.outputs();
            }
            if outputs.is_empty() {
                return Ok(());
            }
            // Nobody may hear of what is not written down.
            let mut changed = false;
            for output in &outputs {
                if let Output::Save(id, saved) = output {
                    self.journal.note(*id, saved.as_deref())?;
                    changed = true;
                    if let Some(Saved::Held { copy, .. }) = saved.as_deref() {
                        self.keep_files(*id, &copy.body);
                    }
                }
            }
            if changed {
                self.journal.flush()?;
            }
            for output in outputs {
                self.output(output)?;
            }
        }
    }

    fn output(&mut self, output: Output) -> io::Result<()> {
        match output {
            Output::Send(to, message) => {
                *self.sent.entry(message.kind()).or_insert(0) += 1;
                if let (Some(peer), Ok(bytes)) = (self.people.get(&to), postcard::to_allocvec(&message)) {
                    // What is lost is said again.
                    let _ = self.wire.send(*peer, bytes);
                }
            }
            Output::Start { task, epoch, body, inputs } => {
                if let Matter::Task(order) = &body.matter {
                    let workflow = body.workflow.id;
                    // The homes of the workflow have what came with it.
                    let homes = self.node.route().homes(workflow.position()).unwrap_or(body.workflow.homes);
                    let others = homes.peers().iter().map(|p| p.to_string().into()).collect();
                    let (payload, inputs) = (&*order.payload, &*inputs);
                    let assignment = Assignment { task, epoch, workflow, payload, inputs, others };
                    self.executor.assign(assignment);
                }
            }
            Output::Stop { task, epoch } => self.executor.stop(task, epoch),
            Output::Entered(workflow) => self.entries.entered(workflow)?,
            Output::Progress { workflow, done, known, blocked } => {
                self.entries.progress(workflow, (done, known), &blocked);
            }
            Output::Unheard(workflow) => self.entries.unheard(workflow),
            Output::Over { workflow, ending } => self.take_result(workflow, &ending)?,
            Output::Gone(workflow) => {
                if !self.entries.has(workflow) {
                    self.forget(workflow);
                }
            }
            Output::Met(contact) => self.meet(&contact),
            Output::Note(note) => (self.tell)(Told::Note(note)),
            Output::Save(..) => {}
        }
        Ok(())
    }

    /// Brings what came of a workflow here. Until it is, peers remember the workflow, and can make again what is lost.
    fn take_result(&mut self, workflow: Id, ending: &Ending) -> io::Result<()> {
        if self.entries.is_over(workflow) {
            let now = self.now();
            self.node.taken(now, workflow);
            return Ok(());
        }
        match Over::read(ending) {
            Over::Done(finished) if self.entries.begin_gathering(workflow) => {
                let inner = self.inner.clone();
                self.executor.gather(workflow, *finished, move |finished, gathered| {
                    let _ = inner.blocking_send(Inner::Gathered(workflow, finished, gathered));
                });
                Ok(())
            }
            Over::Done(_) => Ok(()),
            Over::Failed(_) | Over::Stuck(_) => self.end(workflow, ending.clone()),
        }
    }

    /// It is known here what came of a workflow.
    fn end(&mut self, workflow: Id, ending: Ending) -> io::Result<()> {
        self.entries.over(workflow, ending)?;
        let now = self.now();
        self.node.taken(now, workflow);
        Ok(())
    }

    /// Keeps what came with a workflow that this peer is a home of, so that whoever gave it in may leave.
    fn keep_files(&mut self, id: Id, body: &Body) {
        let Matter::Workflow(bytes, _) = &body.matter else { return };
        if !self.kept.insert(id) {
            return;
        }
        if let Ok(Document { run, files, holders, .. }) = Document::read(bytes) {
            // Whoever has missed them is not asked for them.
            self.executor.keep((run, id), files, holders, |_| ());
        }
    }

    /// Asks whether anybody needs what is here of runs.
    fn tidy(&mut self) {
        self.entries.tidy();
        let now = self.now();
        for (_, workflow) in self.executor.runs() {
            if !self.entries.has(workflow) {
                self.node.ask_exists(now, workflow);
            }
        }
    }

    /// Nobody needs what is here of a workflow.
    fn forget(&mut self, workflow: Id) {
        self.kept.remove(&workflow);
        for (run, of) in self.executor.runs() {
            if of == workflow {
                self.executor.forget(run);
            }
        }
    }

    /// It is known how to reach a peer.
    fn meet(&mut self, contact: &Contact) {
        let mut words = contact.address.split(' ');
        let (Some(id), Some(address)) = (words.next(), words.next()) else { return };
        let (Ok(id), Ok(socket)) = (PeerId::from_str(id), SocketAddr::from_str(address)) else { return };
        if place(id) != contact.peer {
            return;
        }
        if let (Some(url), Some(token)) = (words.next(), words.next()) {
            let address = DataAddress { url: url.into(), token: token.into() };
            self.executor.know(contact.peer.to_string().into(), address);
        }
        self.people.insert(contact.peer, id);
        self.addresses.insert(id, address.to_owned());
        self.wire.know(id, [socket]);
    }

    fn heard(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Message { from, bytes } => {
                let peer = place(from);
                self.people.insert(peer, from);
                // What cannot be read is from somebody who speaks otherwise; there is nothing to be done about it.
                if let Ok(message) = postcard::from_bytes::<Message>(&bytes) {
                    self.node.receive(now, peer, message);
                }
                let known = self.node.route().estimate();
                if known != self.known {
                    self.known = known;
                    let there = self.node.route().known();
                    self.executor.set_there(&there.iter().map(|p| p.to_string().into()).collect());
                    (self.tell)(Told::Peers(known));
                }
            }
            Event::Connected { peer, address } => {
                self.people.insert(place(peer), peer);
                self.addresses.entry(peer).or_insert_with(|| address.to_string());
            }
            Event::Request { bytes, reply, .. } => match serde_json::from_slice(&bytes) {
                Ok(ask) => self.ask(ask, reply),
                Err(error) => Answer::No(format!("this is no question: {error}")).give(reply),
            },
            Event::Refused { address, reason } => (self.tell)(Told::Refused(address.to_string(), reason)),
            Event::Discovered { peer, addresses } => {
                self.wire.know(peer, addresses.clone());
                for address in addresses {
                    self.reach(address.to_string());
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, ask: Ask, reply: Reply) {
        match ask {
            Ask::Submit(document) => {
                let (depot, inner) = (self.executor.depot().clone(), self.inner.clone());
                let own = self.executor.origin();
                // Its files come here, so that whoever gave it in may leave.
                tokio::task::spawn_blocking(move || {
                    let mut document = document;
                    let brought = document.files.iter().try_for_each(|file| {
                        let (name, artifact) = (file.name.clone(), file.artifact);
                        let sources = document.holders.clone();
                        let supply = Supply { name, artifact, parts: Vec::new(), sources };
                        let _pin = depot.bring(&supply).map_err(|e| e.message)?.pin;
                        let key = format!("{}/{}", document.run, file.name);
                        depot.holdings().keep(&key, &supply.artifact).map_err(|e| e.to_string())
                    });
                    document.holders = vec![own];
                    let _ = inner.blocking_send(Inner::Submitted(document, brought, reply));
                });
            }
            Ask::Result(workflow) => match workflow.parse() {
                Ok(id) => {
                    let answer = self.entries.answer(id, &self.executor.origin());
                    let goes_on = matches!(answer, Answer::Going { .. });
                    answer.give(reply);
                    if goes_on {
                        let now = self.now();
                        self.node.ask_progress(now, id);
                    }
                }
                Err(_) => Answer::No(format!("`{workflow}` is not what a workflow is called")).give(reply),
            },
            Ask::Peers => {
                let mut peers: Vec<(String, String)> = Vec::new();
                for peer in self.node.route().known() {
                    let id = self.people.get(&peer);
                    let address = id.and_then(|id| self.addresses.get(id)).cloned().unwrap_or_default();
                    peers.push((peer.to_string(), address));
                }
                Answer::Peers(peers).give(reply);
            }
            Ask::Status => Answer::Status(Box::new(self.status())).give(reply),
        }
    }

    fn status(&self) -> Status {
        let registers = self.node.registers();
        Status {
            peer: self.node.me().to_string(),
            identity: self.wire.id().to_string(),
            address: self.wire.listening().first().map(ToString::to_string).unwrap_or_default(),
            resource: self.executor.resource(self.node.me().0).map(|r| r.to_string()),
            cpus: self.executor.processors(),
            capabilities: self.config.executor.capabilities.iter().map(ToString::to_string).collect(),
            running: self.node.held().count(),
            molecules: registers.len(),
            leads: registers.ids().filter(|id| registers.leading(*id).is_some()).count(),
            entries: self.node.index().entries,
            known: self.node.route().estimate(),
            sent: self.sent.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect(),
        }
    }

    fn inside(&mut self, inner: Inner) -> io::Result<()> {
        let now = self.now();
        match inner {
            Inner::Executed(Executed { task, epoch, ending }) => match TaskEnding::read(&ending) {
                Ok(TaskEnding::Lost(Lost { of: 0, .. })) => {
                    self.node.lost(now, task, epoch, Name::WORKFLOW);
                }
                Ok(TaskEnding::Lost(Lost { of, .. })) => self.node.lost(now, task, epoch, Name::task(of)),
                _ => self.node.finished(now, task, epoch, ending),
            },
            Inner::Joined(target, Ok(id)) => {
                let contact = Contact::new(place(id), format!("{id} {target}"));
                self.people.insert(contact.peer, id);
                self.joined.insert(target);
                self.node.join(now, contact);
            }
            Inner::Joined(target, Err(why)) => (self.tell)(Told::NobodyAt(target, why)),
            Inner::Submitted(_, Err(why), reply) => Answer::No(why).give(reply),
            Inner::Submitted(document, Ok(()), reply) => match document.to_bytes() {
                Ok(bytes) if bytes.len() > LARGEST_WORKFLOW => {
                    let (is, most) = (bytes.len() >> 20, LARGEST_WORKFLOW >> 20);
                    Answer::No(format!(
                        "the workflow has {is} MiB, and peers keep at most {most} MiB of one"
                    ))
                    .give(reply);
                }
                Ok(bytes) => {
                    let id = Id::of(&bytes);
                    self.entries.await_entry(id, reply);
                    self.node.submit(now, id, bytes);
                }
                Err(why) => Answer::No(why).give(reply),
            },
            Inner::Gathered(workflow, finished, Ok(())) => self.end(workflow, finished.to_ending())?,
            Inner::Gathered(workflow, _, Err(Lost { of: 0, message, .. })) => {
                self.end(workflow, Ending { good: false, matter: message.into_bytes().into() })?;
            }
            Inner::Gathered(workflow, _, Err(Lost { of, .. })) => {
                self.entries.stop_gathering(workflow);
                self.node.lacking(now, workflow, Name::task(of));
            }
        }
        Ok(())
    }

    /// Joins those who have not been joined, or again if nobody is there.
    fn join(&mut self) {
        if self.node.route().is_alone() {
            self.joined.clear();
        }
        let missing: Vec<String> =
            self.config.join.iter().filter(|j| !self.joined.contains(*j)).cloned().collect();
        for target in missing {
            self.reach(target);
        }
    }

    fn reach(&self, target: String) {
        let (wire, inner) = (self.wire.clone(), self.inner.clone());
        tokio::spawn(async move {
            let reached = wire.reach(&target, JOIN).await.map_err(|e| e.to_string());
            let _ = inner.send(Inner::Joined(target, reached)).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_called_by_an_address_of_the_kind_it_listens_at() {
        let join = ["127.0.0.1:7746".to_owned()];
        assert_eq!(own_host(Ipv4Addr::UNSPECIFIED.into(), &join), Ipv4Addr::LOCALHOST);
        assert!(own_host(Ipv6Addr::UNSPECIFIED.into(), &join).is_ipv6());
        assert_eq!(own_host(Ipv6Addr::LOCALHOST.into(), &join), Ipv6Addr::LOCALHOST);
    }
}
