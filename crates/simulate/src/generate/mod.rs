//! Workflows that nobody has recorded: of any size, with the shapes and figures of published ones.
//!
//! - [`Kind`] names the workflows that come with runtimes and files; [`by_name`] makes one.
//! - [`airsn`], [`inspiral`], [`montage`], [`sdss`] and [`layered`] are bare dags. The first four have, by the right
//!   parameters, the very sizes and shapes of the evaluation of prio.

mod astronomy;
mod earth;
mod layers;
mod life;
mod recorder;
mod shapes;

use catena_model::import::Trace;
use std::fmt;
use std::str::FromStr;

pub use recorder::shuffled;
pub use shapes::{Generated, airsn, inspiral, layered, montage, sdss};

/// A workflow of which there can be one of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Mosaics of the sky.
    Montage,
    /// Earthquake hazards: seismograms for many ruptures.
    CyberShake,
    /// Maps of the epigenetic state of cells: lanes of reads, split, cleaned and mapped.
    Epigenomics,
    /// The search for gravitational waves.
    Inspiral,
    /// The search for small RNAs in the genomes of bacteria.
    Sipht,
    /// Functional magnetic resonance imaging.
    Airsn,
    /// The search for clusters of galaxies.
    Sdss,
    /// Layers of jobs, each of which waits for random ones of the layer before.
    Layered,
}

impl Kind {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::Montage,
        Self::CyberShake,
        Self::Epigenomics,
        Self::Inspiral,
        Self::Sipht,
        Self::Airsn,
        Self::Sdss,
        Self::Layered,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Montage => "montage",
            Self::CyberShake => "cybershake",
            Self::Epigenomics => "epigenomics",
            Self::Inspiral => "inspiral",
            Self::Sipht => "sipht",
            Self::Airsn => "airsn",
            Self::Sdss => "sdss",
            Self::Layered => "layered",
        }
    }

    /// How many jobs the smallest workflow of this kind has.
    pub const fn least(self) -> usize {
        match self {
            Self::Montage => 11,
            Self::CyberShake => 7,
            Self::Epigenomics => 8,
            Self::Inspiral | Self::Sdss | Self::Airsn => 6,
            Self::Sipht => 13,
            Self::Layered => 1,
        }
    }

    /// A workflow with as many jobs; of those that are too small, the smallest. The same `seed` gives the same workflow
    /// everywhere, as it takes nothing but sums and products.
    pub fn trace(self, jobs: usize, seed: u64) -> Trace {
        let jobs = jobs.max(self.least());
        let mut trace = match self {
            Self::Montage => astronomy::montage(jobs, seed),
            Self::CyberShake => earth::cybershake(jobs, seed),
            Self::Epigenomics => life::epigenomics(jobs, seed),
            Self::Inspiral => astronomy::inspiral(jobs, seed),
            Self::Sipht => life::sipht(jobs, seed),
            Self::Airsn => life::airsn(jobs, seed),
            Self::Sdss => astronomy::sdss(jobs, seed),
            Self::Layered => layers::layered(jobs, seed),
        };
        trace.name = format!("{self}-{}", trace.jobs.len());
        trace
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| {
            format!("`{name}` is none of the known workflows: {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// A workflow with runtimes and files, of a [`Kind`] that is known by its name. See [`Kind::trace`].
pub fn by_name(kind: &str, jobs: usize, seed: u64) -> Result<Trace, String> {
    Ok(kind.parse::<Kind>()?.trace(jobs, seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan::Dag;
    use std::collections::HashSet;

    #[test]
    fn every_kind_has_as_many_jobs_as_asked_for() {
        for kind in Kind::ALL {
            for jobs in (kind.least()..200).chain([1000, 1003, 4999]) {
                let trace = kind.trace(jobs, 7);
                assert_eq!(trace.jobs.len(), jobs, "{kind}");
                assert!(Dag::new(jobs, &trace.arcs).is_ok(), "{kind}");
                let ids: HashSet<&str> = trace.jobs.iter().map(|j| j.id.as_str()).collect();
                let names: HashSet<&str> = trace.files.iter().map(|f| f.name.as_str()).collect();
                assert_eq!((ids.len(), names.len()), (jobs, trace.files.len()), "{kind} with {jobs} jobs");
            }
            assert_eq!(kind.trace(0, 1).jobs.len(), kind.least());
        }
    }
}
