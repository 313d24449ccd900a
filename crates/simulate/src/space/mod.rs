//! Peers that do not exist: the nodes of [`catena_space`], unchanged, in virtual time and on a virtual network.
//!
//! - [`simulate_space`] executes a [`Load`] among peers that a [`Swarm`] describes; a [`SpaceOutcome`] says what came of it.
//! - [`trial`] is a small group in which everything goes wrong, and [`broken`] what must not come of it.
//! - [`central`] is what a scheduler that knows everything at once would have done with the same rules.

mod central;
mod load;
mod outcome;
mod swarm;
#[cfg(test)]
mod tests;
mod trial;
mod trouble;
mod world;

pub use central::central;
pub use load::{Flow, FlowTask, Load};
pub use outcome::SpaceOutcome;
pub use swarm::{Routing, Swarm};
pub use trial::{broken, trial};
pub use trouble::Trouble;
pub use world::simulate_space;
