//! What can be chosen.

use std::net::SocketAddr;
use std::time::Duration;

/// Whether a peer belongs to the group or only asks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes part: gets and sends messages.
    Member,
    /// Knows the key, asks and leaves: command-line tools.
    Guest,
}

/// How a [`Wire`](super::Wire) behaves. The defaults suit; what is here beyond `listen` and `mdns` is for tests and for
/// unusual links.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Member or guest.
    pub role: Role,
    /// Where to listen. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Whether to look for peers of the local network.
    pub mdns: bool,
    /// The largest message, request or answer.
    pub largest_frame: usize,
    /// How many messages wait for one peer before the oldest are dropped.
    pub queue_frames: usize,
    /// How many bytes wait for one peer before the oldest messages are dropped.
    pub queue_bytes: usize,
    /// How many events wait to be taken before peers are no longer read from.
    pub event_frames: usize,
    /// How many bytes of messages and requests wait to be taken before peers are no longer read from.
    pub event_bytes: usize,
    /// How many requests and byte streams may be open at once, each way.
    pub streams: usize,
    /// How many peers are remembered. Those that have not been talked to for longest are forgotten first.
    pub peers: usize,
    /// How long connecting may take, from the first packet to the last proof.
    pub handshake: Duration,
    /// How often a sign of life is sent when there is nothing to say.
    pub beat: Duration,
    /// How long nothing is heard until a connection is given up.
    pub silence: Duration,
    /// How long another instance of an identity has to answer before it counts as gone.
    pub probe: Duration,
    /// How long to wait before connecting again; doubles with each failure.
    pub back_off: Duration,
    /// The longest wait before connecting again.
    pub longest_back_off: Duration,
    /// How long a connection that nobody needs is kept.
    pub idle: Duration,
    /// How often the same refusal of the same host is told.
    pub refusals: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            role: Role::Member,
            listen: Vec::new(),
            mdns: false,
            largest_frame: 1 << 20,
            queue_frames: 1024,
            queue_bytes: 4 << 20,
            event_frames: 1024,
            event_bytes: 8 << 20,
            streams: 128,
            peers: 10_000,
            handshake: Duration::from_secs(10),
            beat: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            probe: Duration::from_secs(3),
            back_off: Duration::from_millis(200),
            longest_back_off: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            refusals: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// A member that listens at these addresses.
    pub fn member(listen: impl IntoIterator<Item = SocketAddr>) -> Self {
        Self { listen: listen.into_iter().collect(), ..Self::default() }
    }

    /// A guest: listens nowhere.
    pub fn guest() -> Self {
        Self { role: Role::Guest, ..Self::default() }
    }
}
