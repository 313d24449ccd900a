//! Virtual time: workflows that never run, and clusters that do not exist.
//!
//! - [`generate`] has dags with the shapes and sizes that published experiments use.
//! - [`batch`] is the grid in which prio was evaluated: workers come in batches and take what is eligible.

pub mod batch;
pub mod generate;
mod random;
