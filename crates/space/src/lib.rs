//! A space of molecules among peers: who is there, where molecules live, how they find each other, and how rules are
//! applied although nobody sees all of them.
//!
//! - A [`Node`] is a peer: messages, time and what the driver has done go in, [`Output`]s come out. No clock, no socket,
//!   no thread: the same code runs among real peers and in the simulator.
//! - [`route`] knows who is there and the way to every place on the ring; [`register`] keeps molecules with three peers, two
//!   of which agree; [`index`] has an order, in which free resources and waiting tasks find each other.
//! - [`Chemistry`] is the rules at work: how workflows are taken apart, when a task may look for a resource, and which.
//! - [`Message`] is all that peers tell each other.

mod agenda;
pub mod chemistry;
pub mod id;
pub mod index;
pub mod message;
pub mod molecule;
pub mod node;
pub mod random;
pub mod register;
pub mod route;
pub mod time;

pub use chemistry::Chemistry;
pub use message::Message;
pub use node::{Host, NewTask, Node, Note, Output, Settings, Weaver};
