//! Who and what is where on the ring.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A place on the ring: peers and molecules have one, and a molecule lives with the peers that come at or after it.
pub type Position = u64;

/// A peer, by its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer(pub Position);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A molecule. No two have the same, whoever made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id(pub u128);

impl Id {
    /// The identifier of what has this description.
    pub fn of(description: &[u8]) -> Self {
        let hash = blake3::hash(description);
        let bytes: [u8; 16] = hash.as_bytes()[..16].try_into().expect("a hash is longer");
        Self(u128::from_be_bytes(bytes))
    }

    /// The identifier of a molecule that another one is taken apart into: which one, and at which try.
    #[must_use]
    pub fn child(self, attempt: u32, seq: u32) -> Self {
        let mut description = [0; 24];
        description[..16].copy_from_slice(&self.0.to_be_bytes());
        description[16..20].copy_from_slice(&attempt.to_be_bytes());
        description[20..].copy_from_slice(&seq.to_be_bytes());
        Self::of(&description)
    }

    /// Where it lives.
    pub fn position(self) -> Position {
        (self.0 >> 64) as Position
    }
}

impl FromStr for Id {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// How far it is from one place to another, in the direction of the ring.
pub fn distance(from: Position, to: Position) -> u64 {
    to.wrapping_sub(from)
}

/// How many peers a molecule lives with.
pub const HOMES: usize = 3;

/// The peers a molecule lives with, in the order of the ring; at most [`HOMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Group {
    peers: [Peer; HOMES],
    len: u8,
}

impl Group {
    /// These peers; what is more than a group needs is left out.
    pub fn new(peers: impl IntoIterator<Item = Peer>) -> Self {
        let mut group = Self::default();
        for peer in peers.into_iter().take(HOMES) {
            group.peers[usize::from(group.len)] = peer;
            group.len += 1;
        }
        group
    }

    /// Its peers.
    pub fn peers(&self) -> &[Peer] {
        &self.peers[..usize::from(self.len)]
    }

    /// Whether a peer is one of them.
    pub fn has(&self, peer: Peer) -> bool {
        self.peers().contains(&peer)
    }

    /// So many of them decide: any two such sets have a peer in common.
    pub fn majority(&self) -> usize {
        usize::from(self.len) / 2 + 1
    }

    /// The place of a peer among them.
    pub(crate) fn place(&self, peer: Peer) -> Option<usize> {
        self.peers().iter().position(|p| *p == peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_differ_by_attempt_and_number() {
        let parent = Id::of(b"workflow");
        assert_eq!(parent.child(1, 2), parent.child(1, 2));
        assert_ne!(parent.child(1, 2), parent.child(2, 1));
        assert_ne!(parent.child(1, 2), Id::of(b"another").child(1, 2));
    }

    #[test]
    fn two_majorities_have_a_peer_in_common() {
        for size in 1..=HOMES {
            let group = Group::new((0..size as u64).map(Peer));
            assert!(2 * group.majority() > size, "{size}");
        }
    }
}
