//! Peers without a server: how they talk, plan, execute, and share what they have.
//!
//! - [`wire`] carries messages, requests and byte streams between peers that share a [`GroupKey`]. Who a message is from
//!   is the authenticated [`PeerId`] of its sender.
//! - A [`Document`] is a workflow as it is given in. The peer that leads it finds out with a [`Weave`] what it consists of;
//!   a [`Loom`] makes these for the space.
//! - [`run_member`] is a peer at work: it executes what an [`ExecutorConfig`] allows, and others [`Ask`] it.
//! - [`Over`] is how a workflow ended; [`fetch_results`] brings its results home.
//!
//! What peers tell each other is decided elsewhere: by the state machines of the space. This crate is their world.

mod book;
mod catalogue;
mod desk;
mod entries;
mod execute;
mod journal;
mod matter;
mod member;
mod offer;
mod results;
mod weave;
#[cfg(test)]
mod whole;
pub mod wire;

pub use desk::{Answer, Ask, LARGEST_MESSAGE, Status};
pub use execute::{ExecutorConfig, ExecutorError};
pub use matter::{Document, Finished, Item, Lost, Over};
pub use member::{MemberConfig, MemberError, Told, place, run_member};
pub use results::{ResultsError, fetch_results};
pub use weave::{Loom, Pace, Weave};
pub use wire::{GroupKey, Identity, PeerId, Wire};
