//! Real servers on this machine, started for a moment and killed at will: for tests and experiments.
//!
//! - [`Postgres`] and [`Nats`] are private servers on free ports of the loopback device, with directories of
//!   their own. They end with the value that stands for them, or with the process.
//! - [`Cluster`] is both, with instances of Catena, here or on the hosts of a [`Net`].
//! - [`Peers`] are peers of Catena that need no server, here or on hosts.
//! - [`Net`] is hosts with a network between them that is limited, slow, or cut at will.
//! - [`Server`] is any process that is started, watched, killed and started again.

mod cluster;
mod nats;
mod net;
mod peers;
mod place;
mod postgres;
mod relay;
mod server;

pub use cluster::{AgentStart, Cluster};
pub use nats::Nats;
pub use net::{Host, Net, Rate, Traffic};
pub use peers::Peers;
pub use postgres::Postgres;
pub use server::{Server, TestbedError, free_port, wait_until};
