//! What `catena reproduce space` is asked for.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SpaceArgs {
    /// Which experiments: by default all that are simulated
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = SpaceExperiment::ALL)]
    pub(crate) experiment: Vec<SpaceExperiment>,
    /// Everything much smaller: seconds instead of half an hour
    #[arg(long)]
    pub(crate) quick: bool,
    /// Numbers of nodes in `nodes` [default: 64, 128 and so on to 16,384]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub(crate) nodes: Option<Vec<u32>>,
    /// Numbers of workflows in `workflows` [default: 16, 32 and so on to 1,024]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) workflows: Option<Vec<u32>>,
    /// How often everything is simulated, each time with other workflows and peers [default: 3, with --quick 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where pictures and tables go
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    pub(crate) out: PathBuf,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl SpaceArgs {
    /// All seeds.
    pub(crate) fn all_seeds(&self) -> std::ops::Range<u64> {
        self.seed..self.seed + self.seeds.unwrap_or(if self.quick { 1 } else { 3 })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpaceExperiment {
    /// More and more nodes (Figures 3 to 5)
    Nodes,
    /// More and more workflows (Figures 3 to 5)
    Workflows,
    /// Few tasks, nearly as many as there can be, and twice as many
    Load,
    /// Peers die and come back, and a network is cut
    Trouble,
    /// What peers can be set to
    Settings,
    /// Fifty real peers on hosts of their own beside simulated ones, some of which are killed and some stand still; needs root
    Live,
}

impl SpaceExperiment {
    /// Those in virtual time.
    pub(crate) const ALL: [Self; 5] =
        [Self::Nodes, Self::Workflows, Self::Load, Self::Trouble, Self::Settings];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Workflows => "workflows",
            Self::Load => "load",
            Self::Trouble => "trouble",
            Self::Settings => "settings",
            Self::Live => "live",
        }
    }
}
