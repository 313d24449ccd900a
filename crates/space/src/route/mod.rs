//! Who is there, and which way to a place on the ring.
//!
//! There are two answers to that, and whoever uses them need not know which: a [`FullView`] knows everybody, as groups of
//! some hundred peers can afford, and is at every place in one step; a [`Ring`] knows its neighbours and some peers far
//! away, however many there are, and gets nearer with every step.

mod full;
mod ring;
#[cfg(test)]
mod tests;

pub use full::{Contact, FullView};
pub use ring::Ring;

use crate::id::{Group, Peer, Position};
use crate::time::Micros;
use serde::{Deserialize, Serialize};

/// What peers tell each other to know who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// What SWIM has to say.
    Swim(Vec<u8>),
    /// I am here, and these are my neighbours: before and after me, the nearest first.
    Beat {
        /// Those before.
        before: Vec<Peer>,
        /// Those after.
        after: Vec<Peer>,
    },
}

/// What comes of a message or of the passing of time.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages to other peers.
    pub sent: Vec<(Peer, Message)>,
    /// Somebody came or went: what is here may have to be elsewhere.
    pub changed: bool,
    /// Peers of whom it has become known how to reach them.
    pub met: Vec<Contact>,
    /// Places whose owner is to be found, to be told with [`Route::found`].
    pub seek: Vec<Position>,
}

/// Knows who is there and which way to go.
pub trait Route {
    /// Who is nearer to a place than this peer; none: it is here.
    fn next(&self, at: Position) -> Option<Peer>;
    /// The homes of what is at a place, if that is known here.
    fn homes(&self, at: Position) -> Option<Group>;
    /// Whether a peer is there, if that is known here.
    fn is_up(&self, peer: Peer) -> Option<bool>;
    /// Somebody else than usual on the way to a place, in case that the usual way leads nowhere.
    fn detour(&mut self, at: Position) -> Option<Peer>;
    /// Everybody this peer knows to be there, except itself.
    fn known(&self) -> Vec<Peer>;
    /// Whether nobody else is known to be there: then somebody has to be joined, perhaps again.
    fn is_alone(&self) -> bool;
    /// About how many peers there are.
    fn estimate(&self) -> usize;
    /// Somebody does not answer.
    fn silent(&mut self, now: Micros, peer: Peer, out: &mut Effects);
    /// Something was heard of somebody.
    fn heard(&mut self, now: Micros, peer: Peer);
    /// The owner of a place that was sought.
    fn found(&mut self, now: Micros, at: Position, homes: Group, out: &mut Effects);
    /// Enters a group that this contact is a member of.
    fn join(&mut self, now: Micros, contact: Contact, out: &mut Effects);
    /// Says goodbye.
    fn leave(&mut self, now: Micros, out: &mut Effects);
    /// Takes a message in.
    fn handle(&mut self, now: Micros, from: Peer, message: Message, out: &mut Effects);
    /// When [`wake`](Self::wake) has something to do.
    fn wake_at(&self) -> Micros;
    /// Time has passed.
    fn wake(&mut self, now: Micros, out: &mut Effects);
}
