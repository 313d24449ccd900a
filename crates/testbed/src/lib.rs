//! Real servers on this machine, started for a moment and killed at will: for tests and experiments.
//!
//! - [`Postgres`] and [`Nats`] are private servers on free ports of the loopback device, with directories of
//!   their own. They end with the value that stands for them, or with the process.
//! - [`Server`] is any process that is started, watched, killed and started again.

mod nats;
mod postgres;
mod server;

pub use nats::Nats;
pub use postgres::Postgres;
pub use server::{Server, TestbedError, free_port, wait_until};
