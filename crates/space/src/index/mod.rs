//! An ordered index that many peers keep together: a prefix hash tree over the ring.
//!
//! - A [`Trie`] holds [`Entry`]s in the order of their [`Key`]s. Its nodes are called by [`Label`]s, and each is hosted by the
//!   peer that owns [`Label::position`].
//! - [`Host`] is what a peer hosts for others: [`Host::handle`] takes a [`Request`] in and gives an [`Answer`], and
//!   [`Hosted`] messages for hosts of other labels.
//! - [`Operation`] is what a peer wants itself: to insert, to remove, to take the best entry that fits. It says whom to ask
//!   next. [`Memory`] remembers leaves, so that the usual operation asks once.
//! - Whoever drives both brings requests to the owner of their position and repeats those that are not answered.
//! - All of it is soft state: what a host has is lost with the host, and comes back when publishers refresh it.
//! - No clock, no socket, no thread: the same code runs live and in the simulator.
//!
//! After Ramabhadran, Ratnasamy, Hellerstein and Shenker, "Prefix Hash Tree" (2004). Where we deviate: leaves hand entries out
//! instead of listing them, keys that nobody has need no leaf, and leaves are remembered instead of linked.

mod entries;
mod host;
mod key;
mod label;
mod map;
mod memory;
mod message;
mod node;
mod operation;
mod outbox;
mod pulse;
mod recent;
mod search;
#[cfg(test)]
mod tests;
mod upkeep;

pub use host::{Host, Settings, Sizes};
pub use key::{Key, Span};
pub use label::{Label, Trie};
pub use map::Map;
pub use memory::Memory;
pub use message::{Answer, Beat, Body, Direction, Entry, Hosted, Item, Request, Serial, Take, Why};
pub use operation::{Operation, Outcome, Step};
