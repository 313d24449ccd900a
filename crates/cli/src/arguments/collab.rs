//! What `catena reproduce collab` is asked for.

use super::positive;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CollabArgs {
    /// What is tried
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [CollabExperiment::Grid])]
    pub(crate) experiment: Vec<CollabExperiment>,
    /// Numbers of collaborators
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [10, 25, 50, 75, 100, 125, 150], value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub(crate) collaborators: Vec<u32>,
    /// How many workflows the composition has
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) workflows: u32,
    /// How many parts of its own each workflow has
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) parts: u32,
    /// How long collaborators think, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = positive)]
    pub(crate) think: f64,
    /// How often each setting is tried
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// For live collaborators time passes so much faster
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, value_parser = positive)]
    pub(crate) faster: f64,
    /// For the load: so many clients
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) clients: u32,
    /// on so many compositions,
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) compositions: u32,
    /// for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) lasts: u64,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CollabExperiment {
    /// The experiment of the paper in virtual time: all policies, topologies and numbers of collaborators
    Grid,
    /// Some points of it with real connections to a real server, beside the simulated ones
    Live,
    /// Many real clients that change something every five seconds: how soon that is acknowledged
    Load,
    /// The same, and the instance that has all compositions is killed: what is lost, and how soon clients go on
    Death,
}
