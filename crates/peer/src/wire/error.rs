//! What can go wrong, for whoever holds the handle.

use super::refusal::Reason;
use libp2p_identity::PeerId;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a wire could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nobody could connect.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The network is not usable.
    #[error("cannot use the network: {0}")]
    Network(#[from] io::Error),
}

/// Why a message was not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SendError {
    /// The other side would hang up.
    #[error("a message of {bytes} bytes is too large: at most {largest} are allowed")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What it may have.
        largest: usize,
    },
    /// Guests ask; they do not take part.
    #[error("a guest of the group cannot send messages")]
    Guest,
}

/// Why nobody was reached at an address.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// The name is not known, or not `host:port`.
    #[error("cannot find {place}: {error}")]
    Name {
        /// What was asked for.
        place: String,
        /// Why.
        error: io::Error,
    },
    /// Someone or something is in the way.
    #[error("cannot connect to {place}: {reason}")]
    Refused {
        /// Where.
        place: String,
        /// Why.
        reason: Reason,
    },
    /// It is the address of this peer.
    #[error("that is the address of this very peer")]
    Myself,
    /// It took too long.
    #[error("{place} did not answer within {} s", patience.as_secs_f32())]
    Late {
        /// Where.
        place: String,
        /// How long was waited.
        patience: Duration,
    },
    /// The wire has ended.
    #[error("the wire is closed")]
    Ended,
}

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No address is known.
    #[error("nobody knows where {peer} is")]
    Unknown {
        /// Who.
        peer: PeerId,
    },
    /// It could not be connected.
    #[error("cannot connect to {peer}: {reason}")]
    Refused {
        /// Who.
        peer: PeerId,
        /// Why.
        reason: String,
    },
    /// The connection broke, or the other side does not want the stream.
    #[error("cannot open a stream: {reason}")]
    Closed {
        /// Why.
        reason: String,
    },
    /// The wire has ended.
    #[error("the wire is closed")]
    Ended,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody was reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// It could not be asked.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It would not be taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It hung up.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// It had nothing to say.
    #[error("there was no answer")]
    Silence,
    /// It took too long.
    #[error("there was no answer within {} s", patience.as_secs_f32())]
    Late {
        /// How long was waited.
        patience: Duration,
    },
}
