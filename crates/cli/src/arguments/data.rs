//! What `catena reproduce data` is asked for.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Which experiments
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [DataExperiment::Locality, DataExperiment::Slow])]
    pub(crate) experiment: Vec<DataExperiment>,
    /// What is executed: a generated workflow, or a file with a recorded one
    #[arg(long, value_name = "KIND:JOBS|FILE", default_value = "montage:80")]
    pub(crate) workflow: String,
    /// Tasks take this part of what was recorded
    #[arg(long, value_name = "FACTOR", default_value_t = 0.15)]
    pub(crate) runtimes: f64,
    /// Files have this part of their sizes
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) sizes: f64,
    /// What is random in a generated workflow, and in simulations
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many agents, each with one processor and on a host of its own
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=200))]
    pub(crate) agents: u32,
    /// What each agent can send, and receive, in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) rate: u64,
    /// What the host can that has database, message server and instance, in Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) home_rate: u64,
    /// Policies that are compared in `locality`: names, or stages such as place:data+queue:2
    #[arg(long, value_name = "POLICY,…", value_delimiter = ',', default_values_t = ["catena", "longest-idle", "steep", "adage"].map(str::to_owned))]
    pub(crate) policy: Vec<String>,
    /// How many times longer one agent takes in `slow`
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) slowness: u32,
    /// How often everything is measured; the middle counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Only simulate
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataExperiment {
    /// Policies that know where files are, and others
    Locality,
    /// One agent is much slower than the others
    Slow,
}

impl DataExperiment {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Locality => "locality",
            Self::Slow => "slow",
        }
    }
}
