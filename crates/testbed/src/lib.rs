//! Real servers on this machine, started for a moment and killed at will: for tests and experiments.
//!
//! - [`Postgres`] and [`Nats`] are private servers on free ports of the loopback device, with directories of
//!   their own. They end with the value that stands for them, or with the process.
//! - [`Cluster`] is both, with instances of Catena.
//! - [`Server`] is any process that is started, watched, killed and started again.

mod cluster;
mod nats;
mod postgres;
mod server;

pub use cluster::Cluster;
pub use nats::Nats;
pub use postgres::Postgres;
pub use server::{Server, TestbedError, free_port, wait_until};
