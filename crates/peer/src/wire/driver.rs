//! The task that owns the swarm of libp2p: connects, accepts, hands streams to those who use them.
//!
//! It never waits for whoever takes the events: what it has to tell and cannot tell at once is kept in a short list.
//! So a listener may wait for the driver while the driver has news for it.

use super::address::{multiaddr, socket};
use super::behaviour::{Purpose, Streamed, Streams, Ticket};
use super::error::{OpenError, ReachError};
use super::event::{Event, Teller};
use super::handshake::Local;
use super::lane::Lanes;
use super::link::{End, Link};
use super::presence::{Instance, Pulse};
use super::refusal::{Reason, Restraint, reason};
use super::settings::{Role, Settings};
use super::stream::{ByteStream, answer};
use super::swarm::{Behaviour, BehaviourEvent};
use futures_util::StreamExt as _;
use libp2p_core::ConnectedPoint;
use libp2p_identity::PeerId;
use libp2p_mdns as mdns;
use libp2p_swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p_swarm::{ConnectionId, DialError, ListenError, Stream, Swarm, SwarmEvent};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// How much news is kept for a listener that is busy.
const NEWS: usize = 256;
/// How long connections have to close at the end.
const FAREWELL: Duration = Duration::from_millis(500);

/// What the driver is asked to do.
pub(crate) enum Command {
    /// Connects to whoever is at an address.
    Reach(SocketAddr, oneshot::Sender<Result<PeerId, ReachError>>),
    /// Opens a stream to a peer.
    Open(PeerId, Purpose, Opening),
    /// Ends.
    Stop(oneshot::Sender<()>),
}

pub(crate) type Opening = oneshot::Sender<Result<Stream, OpenError>>;

/// A link that has ended.
pub(crate) type Ended = (PeerId, ConnectionId, End);

struct Connection {
    id: ConnectionId,
    address: SocketAddr,
    /// Where it was found, if it was us who connected.
    dialled: Option<SocketAddr>,
    instance: Instance,
    pulse: Arc<Pulse>,
    is_linked: bool,
}

enum Awaited {
    Link(PeerId, ConnectionId),
    Open(ConnectionId, Opening),
}

pub(crate) struct Driver {
    pub(crate) swarm: Swarm<Behaviour>,
    pub(crate) local: Arc<Local>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) teller: Teller,
    pub(crate) listening: Arc<Mutex<Vec<SocketAddr>>>,
    pub(crate) commands: mpsc::Receiver<Command>,
    state: State,
}

struct State {
    connections: HashMap<PeerId, Vec<Connection>>,
    reaching: HashMap<ConnectionId, oneshot::Sender<Result<PeerId, ReachError>>>,
    awaited: HashMap<Ticket, Awaited>,
    /// Streams for peers that are being connected.
    waiting: HashMap<PeerId, Vec<(Purpose, Opening)>>,
    /// When to connect to peers for which something waits.
    later: BTreeSet<(Instant, PeerId)>,
    news: VecDeque<Event>,
    restraint: Restraint,
    incoming: Arc<Semaphore>,
    ended: (mpsc::Sender<Ended>, mpsc::Receiver<Ended>),
}

impl Driver {
    #[allow(clippy::too_many_arguments)] // They are its fields.
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        local: Arc<Local>,
        lanes: Arc<Lanes>,
        settings: Arc<Settings>,
        teller: Teller,
        listening: Arc<Mutex<Vec<SocketAddr>>>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let state = State {
            connections: HashMap::new(),
            reaching: HashMap::new(),
            awaited: HashMap::new(),
            waiting: HashMap::new(),
            later: BTreeSet::new(),
            news: VecDeque::new(),
            restraint: Restraint::new(settings.refusals),
            incoming: Arc::new(Semaphore::new(settings.streams)),
            ended: mpsc::channel(64),
        };
        Self { swarm, local, lanes, settings, teller, listening, commands, state }
    }

    /// Works until nobody holds a handle any more, or it is told to stop.
    pub(crate) async fn run(mut self) {
        let (lanes, teller) = (self.lanes.clone(), self.teller.clone());
        let stopped = loop {
            let next = self.state.later.first().map(|(at, _)| *at);
            tokio::select! {
                event = self.swarm.select_next_some() => self.on_swarm(event),
                command = self.commands.recv() => match command {
                    Some(Command::Reach(address, reply)) => self.reach(address, reply),
                    Some(Command::Open(peer, purpose, reply)) => self.open(peer, purpose, reply),
                    Some(Command::Stop(reply)) => break Some(reply),
                    None => break None,
                },
                () = lanes.wake.notified() => self.connect_wanted(),
                Some((peer, connection, end)) = self.state.ended.1.recv() => self.on_ended(peer, connection, end),
                () = until(next) => self.connect_later(),
                room = teller.room(), if !self.state.news.is_empty() => match (room, self.state.news.pop_front()) {
                    (Ok(room), Some(event)) => room.tell(event),
                    _ => self.state.news.clear(),
                },
            }
        };
        self.say_goodbye().await;
        if let Some(reply) = stopped {
            let _ = reply.send(());
        }
    }

    /// Lets connections write what they have and close.
    async fn say_goodbye(&mut self) {
        let peers: Vec<_> = self.swarm.connected_peers().copied().collect();
        for peer in peers {
            let _ = self.swarm.disconnect_peer_id(peer);
        }
        let _ = tokio::time::timeout(FAREWELL, async {
            while self.swarm.connected_peers().next().is_some() {
                self.swarm.select_next_some().await;
            }
        })
        .await;
    }

    fn streams(&mut self) -> &mut Streams {
        &mut self.swarm.behaviour_mut().streams
    }

    fn tell(&mut self, event: Event) {
        if self.state.news.len() < NEWS {
            self.state.news.push_back(event);
        }
    }

    fn refuse(&mut self, address: SocketAddr, reason: Reason, later: Option<bool>) {
        if matches!(reason, Reason::Myself) || !self.state.restraint.allows(address.ip(), &reason) {
            return;
        }
        match later {
            Some(we_are_later) => self.tell(Event::Twin { address, we_are_later }),
            None => self.tell(Event::Refused { address, reason }),
        }
    }

    fn reach(&mut self, address: SocketAddr, reply: oneshot::Sender<Result<PeerId, ReachError>>) {
        // libp2p does not dial where it listens itself, and does not say so.
        if self.listening.lock().unwrap_or_else(PoisonError::into_inner).contains(&address) {
            let _ = reply.send(Err(ReachError::Myself));
            return;
        }
        // Who was reached there already is not connected again. What a peer says about its own port does not count.
        let known =
            self.state.connections.iter().find(|(_, all)| all.iter().any(|c| c.dialled == Some(address)));
        if let Some((peer, _)) = known {
            let _ = reply.send(Ok(*peer));
            return;
        }
        let dial = DialOpts::unknown_peer_id().address(multiaddr(address)).allocate_new_port().build();
        let id = dial.connection_id();
        match self.swarm.dial(dial) {
            Ok(()) => {
                self.state.reaching.insert(id, reply);
            }
            Err(error) => {
                let reason = reason(&error).0;
                let _ = reply.send(Err(ReachError::Refused { place: address.to_string(), reason }));
            }
        }
    }

    fn open(&mut self, peer: PeerId, purpose: Purpose, reply: Opening) {
        if let Some(connection) = self.state.connections.get(&peer).and_then(|all| all.last()) {
            let id = connection.id;
            let ticket = self.streams().open(peer, id, purpose);
            self.state.awaited.insert(ticket, Awaited::Open(id, reply));
            return;
        }
        let known = self.lanes.get(peer).is_some_and(|lane| !lane.addresses().is_empty());
        if !known {
            let _ = reply.send(Err(OpenError::Unknown { peer }));
            return;
        }
        // Whoever has given up by now is forgotten here, so that nothing piles up.
        let waiting = self.state.waiting.entry(peer).or_default();
        waiting.retain(|(_, reply)| !reply.is_closed());
        waiting.push((purpose, reply));
        self.dial(peer);
    }

    fn connect_wanted(&mut self) {
        for peer in self.lanes.take_wanted() {
            if self.state.connections.contains_key(&peer) {
                continue;
            }
            if let Some(lane) = self.lanes.get(peer) {
                self.state.later.insert((lane.not_before(), peer));
            }
        }
        self.connect_later();
    }

    fn connect_later(&mut self) {
        let now = Instant::now();
        while let Some((at, peer)) = self.state.later.pop_first() {
            if at > now {
                self.state.later.insert((at, peer));
                return;
            }
            self.dial(peer);
        }
    }

    fn dial(&mut self, peer: PeerId) {
        let Some(lane) = self.lanes.get(peer) else { return };
        let addresses = lane.addresses().into_iter().map(multiaddr).collect();
        let dial = DialOpts::peer_id(peer)
            .condition(PeerCondition::DisconnectedAndNotDialing)
            .addresses(addresses)
            .allocate_new_port()
            .build();
        match self.swarm.dial(dial) {
            Ok(()) | Err(DialError::DialPeerConditionFalse(_)) => {}
            Err(error) => self.on_failed(Some(peer), &error),
        }
    }

    fn on_swarm(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Streams(event)) => self.on_stream(event),
            SwarmEvent::Behaviour(BehaviourEvent::Mdns(mdns::Event::Discovered(found))) => {
                self.on_discovered(found);
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                if let Some(address) = socket(&address) {
                    let _ = self.local.port.compare_exchange(
                        0,
                        address.port(),
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    self.listening.lock().unwrap_or_else(PoisonError::into_inner).push(address);
                    self.tell(Event::Listening(address));
                }
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                let gone = socket(&address);
                let mut listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
                listening.retain(|a| Some(*a) != gone);
            }
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, .. } => {
                self.on_closed(peer_id, connection_id);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                if let Some(address) = socket(&send_back_addr)
                    && !matches!(error, ListenError::Denied { .. } | ListenError::Aborted)
                {
                    let (reason, later) = reason(&error);
                    self.refuse(address, reason, later);
                }
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                if let Some(reply) = self.state.reaching.remove(&connection_id) {
                    let _ = reply.send(Err(why_not_reached(&error)));
                }
                self.on_failed(peer_id, &error);
            }
            _ => {}
        }
    }

    fn on_failed(&mut self, peer: Option<PeerId>, error: &DialError) {
        let mut last = reason(error).0;
        match error {
            DialError::Transport(tried) => {
                for (address, error) in tried {
                    let (reason, later) = reason(error);
                    last = reason.clone();
                    // That nobody is there is no refusal.
                    if let Some(address) = socket(address)
                        && !matches!(reason, Reason::Broken(_))
                    {
                        self.refuse(address, reason, later);
                    }
                }
            }
            DialError::WrongPeerId { address, .. } => {
                last = Reason::OtherPeer;
                if let Some(address) = socket(address) {
                    self.refuse(address, Reason::OtherPeer, None);
                }
            }
            _ => {}
        }
        if let Some(peer) = peer
            && !self.state.connections.contains_key(&peer)
        {
            self.lanes.failed(peer);
            for (_, reply) in self.state.waiting.remove(&peer).unwrap_or_default() {
                let _ = reply.send(Err(OpenError::Refused { peer, reason: last.to_string() }));
            }
        }
    }

    fn on_connected(&mut self, peer: PeerId, id: ConnectionId, endpoint: &ConnectedPoint) {
        let reply = self.state.reaching.remove(&id);
        let Some((profile, pulse)) = self.local.presence.connected(peer) else {
            // Not admitted by us: it cannot stay.
            self.swarm.close_connection(id);
            return;
        };
        let far = match endpoint {
            ConnectedPoint::Dialer { address, .. } => socket(address),
            ConnectedPoint::Listener { send_back_addr, .. } => socket(send_back_addr)
                .map(|far| if profile.port == 0 { far } else { SocketAddr::new(far.ip(), profile.port) }),
        };
        let address = far.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        let instance = profile.instance;
        let all = self.state.connections.entry(peer).or_default();
        let older: Vec<_> = all.iter().map(|c| (c.id, c.instance)).collect();
        let dialled = endpoint.is_dialer().then_some(address);
        all.push(Connection { id, address, dialled, instance, pulse, is_linked: false });
        for (older, of) in older {
            if of != instance {
                // The process before this one: nobody answers there any more.
                self.swarm.close_connection(older);
            } else if self.local.id < peer {
                // One connection per pair is enough. Only one of the two decides which, so that not both are closed.
                self.streams().retire(peer, older);
            }
        }
        if self.local.role == Role::Member && profile.role == Role::Member {
            let lane = self.lanes.get_or_add(peer);
            if profile.port != 0 || endpoint.is_dialer() {
                lane.learn(address, true);
            }
            if endpoint.is_dialer() {
                let ticket = self.streams().open(peer, id, Purpose::Messages);
                self.state.awaited.insert(ticket, Awaited::Link(peer, id));
            }
        }
        if let Some(reply) = reply {
            let _ = reply.send(Ok(peer));
        }
        for (purpose, reply) in self.state.waiting.remove(&peer).unwrap_or_default() {
            self.open(peer, purpose, reply);
        }
    }

    fn on_closed(&mut self, peer: PeerId, id: ConnectionId) {
        if let Some(all) = self.state.connections.get_mut(&peer)
            && let Some(at) = all.iter().position(|c| c.id == id)
        {
            let gone = all.remove(at);
            self.local.presence.closed(peer, gone.instance);
            if all.is_empty() {
                self.state.connections.remove(&peer);
                // What was put into the lane before there was a link waits for another connection.
                if self.lanes.get(peer).is_some_and(|lane| !lane.is_linked() && lane.is_waiting()) {
                    self.lanes.want(peer);
                }
            }
        }
        // Dropping a reply tells that the connection is gone.
        self.state.awaited.retain(|_, awaited| match awaited {
            Awaited::Link(_, of) | Awaited::Open(of, _) => *of != id,
        });
    }

    fn on_stream(&mut self, event: Streamed) {
        match event {
            Streamed::Opened { ticket, stream } => match (self.state.awaited.remove(&ticket), stream) {
                (Some(Awaited::Link(peer, id)), Ok(stream)) => self.link(peer, id, stream),
                (Some(Awaited::Link(peer, id)), Err(_)) => {
                    self.lanes.failed(peer);
                    self.swarm.close_connection(id);
                }
                (Some(Awaited::Open(_, reply)), stream) => {
                    let _ = reply.send(stream.map_err(|reason| OpenError::Closed { reason }));
                }
                (None, _) => {}
            },
            Streamed::Incoming { peer, connection, purpose: Purpose::Messages, stream } => {
                self.link(peer, connection, stream);
            }
            Streamed::Incoming { peer, purpose, stream, .. } => {
                // Too many at once: the stream is dropped, which the other side sees at once.
                let Ok(permit) = self.state.incoming.clone().try_acquire_owned() else { return };
                let stream = ByteStream::new(stream, permit);
                let (teller, largest) = (self.teller.clone(), self.settings.largest_frame);
                tokio::spawn(async move {
                    if purpose == Purpose::Request {
                        answer(stream, peer, largest, teller).await;
                    } else {
                        let _ = teller.tell(Event::Stream { from: peer, stream }, 0).await;
                    }
                });
            }
        }
    }

    fn link(&mut self, peer: PeerId, id: ConnectionId, stream: Stream) {
        if self.local.role != Role::Member
            || self.local.presence.profile(peer).is_none_or(|p| p.role != Role::Member)
        {
            return;
        }
        let all = self.state.connections.get_mut(&peer).map(Vec::as_mut_slice).unwrap_or_default();
        let Some(connection) = all.iter_mut().find(|c| c.id == id && !c.is_linked) else { return };
        connection.is_linked = true;
        let link = Link {
            peer,
            address: connection.address,
            connection: id,
            lane: self.lanes.get_or_add(peer),
            lanes: self.lanes.clone(),
            pulse: connection.pulse.clone(),
            teller: self.teller.clone(),
            settings: self.settings.clone(),
        };
        let ended = self.state.ended.0.clone();
        tokio::spawn(async move {
            let end = link.run(stream).await;
            let _ = ended.send((peer, id, end)).await;
        });
    }

    /// A connection between members without messages is of no use.
    fn on_ended(&mut self, peer: PeerId, id: ConnectionId, end: End) {
        let address = self.state.connections.get(&peer).and_then(|all| all.iter().find(|c| c.id == id));
        if let (End::TooLarge(bytes), Some(address)) = (&end, address.map(|c| c.address)) {
            self.refuse(address, Reason::TooLarge { bytes: *bytes }, None);
        }
        self.swarm.close_connection(id);
    }

    fn on_discovered(&mut self, found: Vec<(PeerId, libp2p_core::Multiaddr)>) {
        let mut peers: BTreeMap<PeerId, Vec<SocketAddr>> = BTreeMap::new();
        for (peer, address) in found {
            if let Some(address) = socket(&address) {
                peers.entry(peer).or_default().push(address);
            }
        }
        for (peer, addresses) in peers {
            self.tell(Event::Discovered { peer, addresses });
        }
    }
}

fn why_not_reached(error: &DialError) -> ReachError {
    let (address, reason) = match error {
        DialError::Transport(tried) => match tried.first() {
            Some((address, error)) => (socket(address), reason(error).0),
            None => (None, Reason::Broken(error.to_string())),
        },
        _ => (None, reason(error).0),
    };
    match reason {
        Reason::Myself => ReachError::Myself,
        reason => {
            ReachError::Refused { place: address.map_or_else(|| "?".to_owned(), |a| a.to_string()), reason }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
