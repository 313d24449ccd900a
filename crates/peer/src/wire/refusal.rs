//! Why peers did not come together, in words, and not too often.

use super::handshake::HandshakeError;
use libp2p_core::upgrade::NegotiationError;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Why a connection was refused, by us or by the other side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It does not know our group key, or another one.
    WrongKey,
    /// It refused us since our group key is not its own.
    OurKeyIsWrong,
    /// It speaks another version of the protocol, or something else.
    OtherVersion,
    /// It is not the peer that was expected at this address.
    OtherPeer,
    /// It is the address of this very peer.
    Myself,
    /// This peer's identity is used by another process.
    Twin,
    /// Another process with its identity is connected and answers.
    TwinOfAnother,
    /// It sent a message larger than agreed.
    TooLarge {
        /// What it announced.
        bytes: u64,
    },
    /// It sent what is no part of the protocol.
    Malformed,
    /// It went away, or nothing came for too long.
    Broken(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongKey => f.write_str("it has another group key"),
            Self::OurKeyIsWrong => f.write_str("it refused us: our group key is not its own"),
            Self::OtherVersion => f.write_str("it speaks another version of the protocol"),
            Self::OtherPeer => f.write_str("another peer is there than the one expected"),
            Self::Myself => f.write_str("it is this very peer"),
            Self::Twin => f.write_str("another process has the identity of this peer"),
            Self::TwinOfAnother => f.write_str("another process with its identity is connected"),
            Self::TooLarge { bytes } => write!(f, "it sent a message of {bytes} bytes: too large"),
            Self::Malformed => f.write_str("it does not keep to the protocol"),
            Self::Broken(why) => write!(f, "the connection broke: {why}"),
        }
    }
}

/// What an error of libp2p means, and if it is about a twin, whether this process is the later one.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> (Reason, Option<bool>) {
    for cause in causes(error) {
        if let Some(error) = cause.downcast_ref::<HandshakeError>() {
            return of_handshake(error);
        }
        if let Some(error) = cause.downcast_ref::<NegotiationError>() {
            let broken = causes(error).filter_map(|c| c.downcast_ref::<io::Error>()).last();
            return match (error, broken) {
                (NegotiationError::Failed, _) => (Reason::OtherVersion, None),
                (_, Some(io)) if io.kind() != io::ErrorKind::InvalidData => {
                    (Reason::Broken(io.to_string()), None)
                }
                _ => (Reason::Malformed, None),
            };
        }
    }
    // The outer ones tend to say nothing at all.
    let words = causes(error).map(ToString::to_string).filter(|text| !text.is_empty()).last();
    (Reason::Broken(words.unwrap_or_else(|| "nobody knows why".to_owned())), None)
}

/// An error and what is behind it. The source of an `io::Error` is the source of what it holds: that would skip the very
/// thing it holds.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

fn of_handshake(error: &HandshakeError) -> (Reason, Option<bool>) {
    let reason = match error {
        HandshakeError::WrongKey => Reason::WrongKey,
        HandshakeError::CalledWrongKey => Reason::OurKeyIsWrong,
        HandshakeError::Myself => Reason::Myself,
        HandshakeError::Twin { we_are_later } => return (Reason::Twin, Some(*we_are_later)),
        HandshakeError::TwinOfAnother => Reason::TwinOfAnother,
        HandshakeError::Silent => Reason::Broken(error.to_string()),
        HandshakeError::Io(io) => Reason::Broken(io.to_string()),
        HandshakeError::Noise(libp2p_noise::Error::Io(io)) if io.kind() != io::ErrorKind::InvalidData => {
            Reason::Broken(io.to_string())
        }
        HandshakeError::Malformed | HandshakeError::Noise(_) => Reason::Malformed,
    };
    (reason, None)
}

/// Tells the same thing about the same host only now and then.
pub(crate) struct Restraint {
    told: HashMap<(IpAddr, std::mem::Discriminant<Reason>), Instant>,
    every: Duration,
}

/// How many hosts and reasons are remembered.
const REMEMBERED: usize = 1024;

impl Restraint {
    pub(crate) fn new(every: Duration) -> Self {
        Self { told: HashMap::new(), every }
    }

    /// Whether to tell this one.
    pub(crate) fn allows(&mut self, host: IpAddr, reason: &Reason) -> bool {
        let now = Instant::now();
        let key = (host, std::mem::discriminant(reason));
        if self.told.get(&key).is_some_and(|last| now.duration_since(*last) < self.every) {
            return false;
        }
        if self.told.len() >= REMEMBERED {
            let every = self.every;
            self.told.retain(|_, last| now.duration_since(*last) < every);
            if self.told.len() >= REMEMBERED {
                return false;
            }
        }
        self.told.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_under_what_is_wrapped_around_it() {
        let error = io::Error::other(io::Error::other(HandshakeError::WrongKey));
        assert_eq!(reason(&error), (Reason::WrongKey, None));
        let error = io::Error::other(HandshakeError::Twin { we_are_later: true });
        assert_eq!(reason(&error), (Reason::Twin, Some(true)));
        let error = io::Error::new(io::ErrorKind::ConnectionRefused, "no");
        assert!(matches!(reason(&error).0, Reason::Broken(_)));
    }

    #[test]
    fn a_host_is_told_about_once_per_reason_and_time() {
        let host = |n| IpAddr::from([10, 0, (n / 256) as u8, (n % 256) as u8]);
        let mut restraint = Restraint::new(Duration::from_mins(1));
        assert!(restraint.allows(host(1), &Reason::WrongKey));
        assert!(!restraint.allows(host(1), &Reason::WrongKey));
        assert!(restraint.allows(host(1), &Reason::OtherVersion));
        assert!(restraint.allows(host(2), &Reason::WrongKey));
        for n in 0..3 * REMEMBERED {
            restraint.allows(host(n), &Reason::Malformed);
        }
        assert!(restraint.told.len() <= REMEMBERED);
    }
}
