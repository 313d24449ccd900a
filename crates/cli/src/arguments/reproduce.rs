//! What `catena reproduce` is asked for.

use super::{CollabArgs, DataArgs, SpaceArgs};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ReproduceCommand {
    /// Capability-based scheduling: real instances, PostgreSQL, NATS, and agents made on demand
    Steep(SteepArgs),
    /// Prioritising dags: eligible jobs, and a simulated grid in which workers come in batches
    Prio(PrioEvaluationArgs),
    /// Data-aware scheduling in virtual time: ADAGE, MATRIX and Albatross, and beside them HEFT and Catena
    Adage(AdageArgs),
    /// Data-aware scheduling on real hosts: agents with files of their own and limited links, beside what is simulated
    Data(DataArgs),
    /// Decentralised scheduling in virtual time: peers that share molecules and rules, beside one scheduler that knows everything
    Space(SpaceArgs),
    /// Composing together: collaborators who lock whole workflows or parts of them, in virtual time and over real connections
    Collab(CollabArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AdageArgs {
    /// A directory with the five workflows as DAX files [default: generated workflows of the same shapes]
    #[arg(long, value_name = "DIR")]
    pub(crate) dax: Option<PathBuf>,
    /// Numbers of nodes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024], value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) nodes: Vec<u32>,
    /// Numbers of tasks, for the experiment on scaling
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1000, 2000, 4000, 6000, 8000, 10_000])]
    pub(crate) tasks: Vec<usize>,
    /// How often what is random is tried
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PrioEvaluationArgs {
    /// Which dags
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [PaperDag::Airsn, PaperDag::Inspiral, PaperDag::Montage, PaperDag::Sdss])]
    pub(crate) dag: Vec<PaperDag>,
    /// Mean times between batches, as powers of 10
    #[arg(long, value_name = "N", value_delimiter = ',', allow_hyphen_values = true, default_values_t = [-3, -2, -1, 0, 1, 2, 3])]
    pub(crate) bit: Vec<i32>,
    /// Mean sizes of a batch, as powers of 2
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = 0..=16)]
    pub(crate) bs: Vec<i32>,
    /// How many samples
    #[arg(short, default_value_t = 300, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) p: u16,
    /// How many runs a sample is the mean of [default: 300 for airsn, fewer for larger dags]
    #[arg(short)]
    pub(crate) q: Option<usize>,
    /// What randomness starts from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A dag of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperDag {
    Airsn,
    Inspiral,
    Montage,
    Sdss,
}

#[derive(Debug, Args)]
pub(crate) struct SteepArgs {
    /// Which experiment of the paper
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=4))]
    pub(crate) experiment: u8,
    /// One second of the paper takes this many seconds here; the default makes experiment 1 take about 15 s
    #[arg(long, default_value_t = 0.02)]
    pub(crate) scale: f64,
    /// How many chains [default: as in the paper]
    #[arg(long, value_name = "N")]
    pub(crate) chains: Option<u64>,
    /// The placement policy
    #[arg(long, default_value = "catena")]
    pub(crate) policy: String,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Decides what is random: the order of chains and who is killed when
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
