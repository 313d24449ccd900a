//! How peers talk: TCP, encrypted, between those who share a [`GroupKey`].
//!
//! - An [`Identity`] is the key pair of a peer, kept in a file. Its [`PeerId`] is what others know it by.
//! - [`Wire::start`] listens and gives a handle, which is cheap to clone, and the [`Events`].
//! - [`Wire::know`] says where a peer is, [`Wire::reach`] finds out who is at an address.
//! - [`Wire::send`] sends a message and does not wait: it may get lost, and who sends too fast loses the oldest ones.
//! - [`Wire::ask`] waits for an answer. A [guest](Settings::guest) can do this too, without being part of the group.
//! - [`Wire::open`] gives a stream of bytes.
//!
//! Nothing here waits without a limit and nothing is kept without one. Who is not admitted is told why, and so is this
//! side: [`Event::Refused`]. Two processes with one identity are found out: [`Event::Twin`].

mod address;
mod behaviour;
mod count;
mod driver;
mod error;
mod event;
mod frame;
mod handshake;
#[cfg(test)]
mod hostile;
mod identity;
mod key;
mod lane;
mod link;
mod presence;
mod refusal;
mod settings;
mod stream;
mod swarm;
mod upgrade;

pub use count::Counts;
pub use error::{AskError, OpenError, ReachError, SendError, StartError};
pub use event::{Event, Events};
pub use identity::{Identity, IdentityError};
pub use key::{GroupKey, KeyError};
pub use libp2p_identity::PeerId;
pub use refusal::Reason;
pub use settings::{Role, Settings};
pub use stream::{ByteStream, Reply};

use behaviour::Purpose;
use driver::{Command, Driver};
use event::Teller;
use handshake::Local;
use lane::Lanes;
use presence::Instance;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// How long what is on its way has to leave when a wire is stopped.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Whom to ask.
#[derive(Clone, Debug)]
pub enum Target {
    /// A peer whose address is known, or that is connected.
    Peer(PeerId),
    /// Whoever is at `host:port`.
    Place(String),
}

impl From<PeerId> for Target {
    fn from(peer: PeerId) -> Self {
        Self::Peer(peer)
    }
}

impl From<&str> for Target {
    fn from(place: &str) -> Self {
        Self::Place(place.to_owned())
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::Place(address.to_string())
    }
}

/// The connection of this process to its group. Cheap to clone; ends when the last one is dropped.
#[derive(Clone)]
pub struct Wire {
    local: Arc<Local>,
    lanes: Arc<Lanes>,
    settings: Arc<Settings>,
    listening: Arc<Mutex<Vec<SocketAddr>>>,
    commands: mpsc::Sender<Command>,
    outgoing: Arc<Semaphore>,
}

impl Wire {
    /// Listens, and does everything else in a task of the runtime this is called in.
    pub fn start(
        identity: &Identity,
        key: GroupKey,
        mut settings: Settings,
    ) -> Result<(Self, Events), StartError> {
        settings.largest_frame = settings.largest_frame.min(frame::LIMIT);
        let settings = Arc::new(settings);
        let local = Arc::new(Local {
            id: identity.id(),
            key,
            role: settings.role,
            instance: instance()?,
            port: AtomicU16::new(settings.listen.first().map_or(0, SocketAddr::port)),
            presence: presence::Presence::default(),
            probe: settings.probe,
        });
        let mut swarm = swarm::swarm(identity.pair(), local.clone(), &settings)?;
        for address in &settings.listen {
            let failed = |error| StartError::Listen { address: *address, error };
            // libp2p lets several processes listen at one port and would not say so.
            TcpListener::bind(address).map_err(failed)?;
            swarm.listen_on(address::multiaddr(*address)).map_err(|error| failed(io::Error::other(error)))?;
        }
        let lanes = Arc::new(Lanes::new(&settings));
        let (teller, events) = Teller::new(settings.event_frames, settings.event_bytes);
        let listening = Arc::default();
        let (commands, receiver) = mpsc::channel(settings.streams.max(1));
        let outgoing = Arc::new(Semaphore::new(settings.streams));
        let wire = Self { local, lanes, settings, listening, commands, outgoing };
        let driver = Driver::new(
            swarm,
            wire.local.clone(),
            wire.lanes.clone(),
            wire.settings.clone(),
            teller,
            wire.listening.clone(),
            receiver,
        );
        tokio::spawn(driver.run());
        Ok((wire, events))
    }

    /// Who this is.
    pub fn id(&self) -> PeerId {
        self.local.id
    }

    /// Where others can connect, as far as known: ports are known once [`Event::Listening`] has been told.
    pub fn listening(&self) -> Vec<SocketAddr> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers where a peer can be found. A few addresses of each are kept, the best ones.
    pub fn know(&self, peer: PeerId, addresses: impl IntoIterator<Item = SocketAddr>) {
        if peer == self.id() {
            return;
        }
        let lane = self.lanes.get_or_add(peer);
        for address in addresses {
            lane.learn(address, false);
        }
        if lane.is_waiting() && !lane.is_linked() {
            self.lanes.want(peer);
        }
    }

    /// Forgets a peer, unless it is connected.
    pub fn forget(&self, peer: PeerId) {
        self.lanes.forget(peer);
    }

    /// Sends a message, if it can be sent: connects if need be, and does not wait. To oneself nothing is sent.
    pub fn send(&self, to: PeerId, message: Vec<u8>) -> Result<(), SendError> {
        self.check_size(message.len())?;
        if self.settings.role == Role::Guest {
            return Err(SendError::Guest);
        }
        self.lanes.send(to, message);
        Ok(())
    }

    /// Connects to `host:port` and tells who is there. What the name stands for is tried one by one.
    pub async fn reach(&self, place: &str, patience: Duration) -> Result<PeerId, ReachError> {
        let reach = async {
            let found = address::resolve(place)
                .await
                .map_err(|error| ReachError::Name { place: place.to_owned(), error })?;
            let mut last = ReachError::Ended;
            for address in found {
                let (sender, reply) = oneshot::channel();
                self.command(Command::Reach(address, sender)).await.ok_or(ReachError::Ended)?;
                match reply.await.map_err(|_| ReachError::Ended)? {
                    Ok(peer) => return Ok(peer),
                    Err(error) => last = error,
                }
            }
            Err(last)
        };
        let late = |_| Err(ReachError::Late { place: place.to_owned(), patience });
        tokio::time::timeout(patience, reach).await.unwrap_or_else(late)
    }

    /// Asks and waits for the answer.
    pub async fn ask(
        &self,
        target: impl Into<Target>,
        request: &[u8],
        patience: Duration,
    ) -> Result<Vec<u8>, AskError> {
        self.check_size(request.len())?;
        let target = target.into();
        let ask = async {
            let peer = match target {
                Target::Peer(peer) => peer,
                Target::Place(place) => self.reach(&place, patience).await?,
            };
            let stream = self.stream(peer, Purpose::Request).await?;
            stream::ask(stream, request, self.settings.largest_frame).await?.ok_or(AskError::Silence)
        };
        tokio::time::timeout(patience, ask).await.unwrap_or(Err(AskError::Late { patience }))
    }

    /// Opens a stream of bytes to a peer that is connected or whose address is known.
    pub async fn open(&self, peer: PeerId) -> Result<ByteStream, OpenError> {
        self.stream(peer, Purpose::Bytes).await
    }

    async fn stream(&self, peer: PeerId, purpose: Purpose) -> Result<ByteStream, OpenError> {
        let permit = self.outgoing.clone().acquire_owned().await.map_err(|_| OpenError::Ended)?;
        let (sender, reply) = oneshot::channel();
        self.command(Command::Open(peer, purpose, sender)).await.ok_or(OpenError::Ended)?;
        let gone = |_| OpenError::Closed { reason: "the connection is gone".to_owned() };
        Ok(ByteStream::new(reply.await.map_err(gone)??, permit))
    }

    /// Who can be sent messages right now.
    pub fn connected(&self) -> Vec<PeerId> {
        self.lanes.linked()
    }

    /// What was sent and received in all.
    pub fn counts(&self) -> Counts {
        self.lanes.total.read()
    }

    /// What was sent to and received from each peer that is remembered.
    pub fn counts_by_peer(&self) -> Vec<(PeerId, Counts)> {
        self.lanes.counts()
    }

    /// Sends what is on its way, for a moment at most, and closes all connections.
    pub async fn stop(self) {
        let _ = tokio::time::timeout(LAST_WORDS, async {
            while self.lanes.are_waiting() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let (sender, done) = oneshot::channel();
        if self.command(Command::Stop(sender)).await.is_some() {
            let _ = done.await;
        }
    }

    async fn command(&self, command: Command) -> Option<()> {
        self.commands.send(command).await.ok()
    }

    fn check_size(&self, bytes: usize) -> Result<(), SendError> {
        let largest = self.settings.largest_frame;
        if bytes > largest { Err(SendError::TooLarge { bytes, largest }) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("id", &self.id()).finish_non_exhaustive()
    }
}

fn instance() -> io::Result<Instance> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    Ok(Instance { since, random })
}
