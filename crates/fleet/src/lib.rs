//! Gets and releases agents: decides which machines to make from which setups, and has providers make them.
//!
//! - A [`Setup`] says what a machine offers and how it is made; a [`Pool`] limits machines with certain
//!   capabilities, whatever they were made from.
//! - [`Fleet`] decides. It knows no clock and starts nothing: the same code runs live and in the simulator.
//! - A [`Provider`] does: [`ProcessProvider`] starts agents as processes of this machine.

mod breaker;
mod decide;
mod process;
mod setup;

pub use breaker::Breaker;
pub use decide::{Agent, Demand, Fleet, Order};
pub use process::ProcessProvider;
pub use setup::{Network, Pool, Setup};

use async_trait::async_trait;
use catena_model::Name;

/// Makes machines that run agents.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Makes a machine whose agent has this name. Returns what the provider calls it. The machine need not be
    /// ready when this returns.
    async fn create(&self, id: &Name, setup: &Setup) -> Result<String, String>;
    /// Takes a machine down. It is no failure if there is none any more.
    async fn destroy(&self, id: &Name, handle: Option<&str>) -> Result<(), String>;
    /// All machines of this cluster that there are, and what the provider calls them.
    async fn list(&self) -> Result<Vec<(Name, String)>, String>;
}
