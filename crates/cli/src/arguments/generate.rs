//! What `catena generate` is asked for.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) shape: Shape,
    /// Where to write it [default: standard output]
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The language to write [default: what FILE ends in, else dag]
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<Format>,
    /// Define the jobs in a random order
    #[arg(long, global = true)]
    pub(crate) shuffle: bool,
    /// What randomness starts from
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// A language for jobs and who waits for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// DAGMan: jobs that sleep
    Dag,
    /// Pegasus DAX 3, with runtimes and files
    Dax,
    /// WfCommons WfFormat 1.5, with runtimes and files
    Wfformat,
}

/// How many jobs a workflow with runtimes and files has.
#[derive(Debug, Args)]
pub(crate) struct Size {
    /// With runtimes and files, and this many jobs [default for DAX and WfFormat: 1000]
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Shape {
    /// Magnetic resonance imaging: a double umbrella with fringes
    Airsn {
        #[command(flatten)]
        size: Size,
        /// The jobs of a fork [default: 250]
        #[arg(long, conflicts_with = "jobs")]
        width: Option<usize>,
        /// The jobs before the first fork [default: 21]
        #[arg(long, conflicts_with = "jobs")]
        handle: Option<usize>,
    },
    /// Earthquake hazards
    Cybershake(Size),
    /// The epigenetic state of cells
    Epigenomics(Size),
    /// The search for gravitational waves
    Inspiral {
        #[command(flatten)]
        size: Size,
        /// The jobs of each level, group by group [default: 62 in each of six, 92, 92, 93, 93]
        #[arg(long, value_delimiter = ',', conflicts_with = "jobs")]
        widths: Option<Vec<usize>>,
        /// How many groups are tied together in a ring [default: 6]
        #[arg(long, conflicts_with = "jobs")]
        ring: Option<usize>,
    },
    /// A mosaic of the sky
    Montage {
        #[command(flatten)]
        size: Size,
        /// The images in a row, and the rows [default: 37]
        #[arg(long, conflicts_with = "jobs")]
        side: Option<usize>,
        /// How many pairs of neighbours are compared at most [default: all]
        #[arg(long, conflicts_with = "jobs")]
        overlaps: Option<usize>,
    },
    /// The search for clusters of galaxies
    Sdss {
        #[command(flatten)]
        size: Size,
        /// The stripes of the sky [default: 12]
        #[arg(long, conflicts_with = "jobs")]
        stripes: Option<usize>,
        /// The fields in each [default: 1000]
        #[arg(long, conflicts_with = "jobs")]
        fields: Option<usize>,
    },
    /// The search for small RNAs in bacteria
    Sipht(Size),
    /// Layers of jobs, each of which waits for random ones of the layer before
    Layered {
        #[command(flatten)]
        size: Size,
        /// How many in a layer [default: 100; in DAX and WfFormat, so that there are at most fifty layers]
        #[arg(long)]
        width: Option<usize>,
        /// For how many a job waits, on average
        #[arg(long, default_value_t = 2)]
        parents: usize,
        /// Some also wait for jobs of earlier layers
        #[arg(long)]
        skips: bool,
    },
}
