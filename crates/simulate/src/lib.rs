//! Virtual time: workflows that never run, and clusters that do not exist.
//!
//! - [`Workload`] is what is computed, [`Cluster`] is where; [`simulate`] executes one on the other, as a [`Strategy`]
//!   decides, and an [`Outcome`] says what came of it, a [`Figure`] in few numbers. [`PolicyName`] has the strategies; that of the live system drives
//!   its very scheduler.
//! - [`generate`] has workflows of any size with the shapes and figures of published ones, and the dags of the experiments.
//! - [`batch`] is the grid in which prio was evaluated: workers come in batches and take what is eligible.
//! - [`space`] has peers that do not exist: thousands of real nodes on a virtual network, and whatever can go wrong.
//! - [`collab`] lets collaborators edit a composition together, in the rooms of the live system.

pub mod batch;
mod cluster;
pub mod collab;
mod elastic;
mod engine;
mod figure;
pub mod generate;
mod luck;
mod outcome;
mod random;
pub mod space;
mod strategy;
mod time;
mod transfer;
mod workload;
mod world;

pub use cluster::{CLUSTERS, Chance, Cluster, Inputs, Kind, Network, Storage, read_cluster};
pub use engine::{Event, Strategy, simulate};
pub use figure::Figure;
pub use outcome::{Execution, Fate, Outcome, Stay};
pub use strategy::PolicyName;
pub use time::{NEVER, Nanos, nanos, seconds};
pub use workload::{Task, Workload};
pub use world::{Node, State, World};
