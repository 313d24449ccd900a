//! Virtual time: workflows that never run, and clusters that do not exist.
//!
//! - [`Workload`] is what is computed, [`Cluster`] is where; [`simulate`] executes one on the other, as a [`Strategy`]
//!   decides. [`PolicyName`] has the strategies; that of the live system drives its very scheduler.
//! - [`generate`] has workflows of any size with the shapes and figures of published ones, and the dags of the experiments.
//! - [`batch`] is the grid in which prio was evaluated: workers come in batches and take what is eligible.

pub mod batch;
mod cluster;
mod engine;
pub mod generate;
mod random;
mod strategy;
mod workload;

pub use cluster::{Cluster, Storage};
pub use engine::{Outcome, Strategy, World, lower_bound, simulate};
pub use strategy::PolicyName;
pub use workload::{Task, Workload};
