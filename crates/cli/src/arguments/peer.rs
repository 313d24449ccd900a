//! What peers are asked for.

use super::AgentArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    /// Peers to join, as HOST:PORT; without any, others join this one
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub(crate) join: Vec<String>,
    /// Where to listen; port 0 is any free one
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7746")]
    pub(crate) listen: SocketAddr,
    /// What other machines call this one [default: found out]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Look for peers in the local network
    #[arg(long)]
    pub(crate) mdns: bool,
    /// Where this peer keeps its identity, what it must not forget, and files [default: `peer` in the state directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// The rules all peers of the group follow: dependencies, levels, min-min, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "dependencies")]
    pub(crate) rules: String,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// How fast this machine is; 1 is a usual one
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Hold at most so much data, such as `100 GiB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) quota: Option<String>,
    /// A task whose executor is not heard of for so long is given to another one
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) lease: String,
    /// Print what happens as JSON, one event a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What all peers of a group know, and nobody else.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeyArgs {
    /// A file with what all peers of the group know, and nobody else [default: `group.key` in the state directory]
    #[arg(long = "key", value_name = "FILE", env = "CATENA_GROUP_KEY")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PeersArgs {
    /// Any peer of the group, as HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7746")]
    pub(crate) peer: String,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the ring as a picture
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) picture: Option<PathBuf>,
}
