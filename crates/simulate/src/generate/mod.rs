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

pub use layers::layered_trace;
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
        match self {
            Self::Montage => astronomy::montage(jobs, seed),
            Self::CyberShake => earth::cybershake(jobs, seed),
            Self::Epigenomics => life::epigenomics(jobs, seed),
            Self::Inspiral => astronomy::inspiral(jobs, seed),
            Self::Sipht => life::sipht(jobs, seed),
            Self::Airsn => life::airsn(jobs, seed),
            Self::Sdss => astronomy::sdss(jobs, seed),
            Self::Layered => layers::layered_trace(jobs, None, 2, false, seed),
        }
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

    #[test]
    fn the_same_seed_gives_the_same_workflow_and_another_one_another() {
        for kind in Kind::ALL {
            assert_eq!(kind.trace(300, 7), by_name(kind.name(), 300, 7).unwrap());
            assert_ne!(kind.trace(300, 7), kind.trace(300, 8), "{kind}");
        }
        assert!(by_name("mosaic", 1, 1).unwrap_err().contains("montage, cybershake"));
    }

    #[test]
    fn who_reads_a_file_waits_for_who_writes_it_and_for_nobody_else() {
        for kind in Kind::ALL {
            let trace = kind.trace(500, 3);
            let mut makers = vec![None; trace.files.len()];
            for (number, job) in (0_u32..).zip(&trace.jobs) {
                for file in &job.outputs {
                    assert_eq!(makers[*file as usize].replace(number), None, "{kind}: two write one file");
                }
            }
            let mut arcs: Vec<(u32, u32)> = (0_u32..)
                .zip(&trace.jobs)
                .flat_map(|(n, job)| {
                    job.inputs.iter().filter_map(|f| Some((makers[*f as usize]?, n))).collect::<Vec<_>>()
                })
                .collect();
            arcs.sort_unstable();
            arcs.dedup();
            let mut found = trace.arcs.clone();
            found.sort_unstable();
            assert_eq!(found, arcs, "{kind}");
            assert!(
                trace.jobs.iter().all(|j| j.runtime > 0.0 && !j.inputs.is_empty() && !j.outputs.is_empty())
            );
        }
    }

    #[test]
    fn shuffling_keeps_the_shape() {
        let (trace, other) = (Kind::Airsn.trace(50, 1), shuffled(Kind::Airsn.trace(50, 1), 7));
        let arcs = |t: &Trace| {
            let id = |job: u32| t.jobs[job as usize].id.clone();
            t.arcs.iter().map(|(from, to)| (id(*from), id(*to))).collect::<HashSet<_>>()
        };
        assert_ne!(trace.jobs, other.jobs);
        assert_eq!((arcs(&trace), trace.critical_path()), (arcs(&other), other.critical_path()));
    }

    /// What was recorded: jobs, seconds of work, seconds of the critical path, dependencies, bytes read, bytes written.
    const RECORDED: [(Kind, usize, f64, f64, f64, f64, f64); 15] = [
        (Kind::Montage, 25, 228.0, 47.0, 45.0, 3.412e8, 1.809e8),
        (Kind::Montage, 100, 1079.0, 71.0, 233.0, 1.467e9, 4.266e8),
        (Kind::Montage, 1000, 11_379.0, 368.0, 2485.0, 1.508e10, 3.578e9),
        (Kind::CyberShake, 30, 761.0, 222.0, 52.0, 8.756e10, 1.17e9),
        (Kind::CyberShake, 100, 3216.0, 263.0, 180.0, 3.394e11, 3.619e9),
        (Kind::CyberShake, 1000, 22_752.0, 255.0, 1988.0, 3.947e11, 2.155e9),
        (Kind::Epigenomics, 24, 17_720.0, 5581.0, 27.0, 8.908e9, 1.197e9),
        (Kind::Epigenomics, 100, 403_400.0, 29_873.0, 122.0, 1.333e11, 6.434e8),
        (Kind::Epigenomics, 997, 3_854_791.0, 34_044.0, 1234.0, 1.313e12, 7.253e9),
        (Kind::Inspiral, 30, 6617.0, 1335.0, 35.0, 8.964e8, 1.163e7),
        (Kind::Inspiral, 100, 21_024.0, 1333.0, 119.0, 2.989e9, 3.789e7),
        (Kind::Inspiral, 1000, 227_703.0, 1413.0, 1233.0, 3.028e10, 3.802e8),
        (Kind::Sipht, 29, 5546.0, 4409.0, 33.0, 7.275e8, 6.287e7),
        (Kind::Sipht, 97, 17_380.0, 4475.0, 109.0, 2.169e9, 1.747e8),
        (Kind::Sipht, 968, 171_979.0, 5287.0, 1096.0, 2.423e10, 1.857e9),
    ];

    #[test]
    fn figures_are_near_those_of_recorded_workflows_of_the_same_size() {
        for (kind, jobs, work, path, arcs, read, written) in RECORDED {
            let trace = kind.trace(jobs, 1);
            let bytes =
                |files: &[u32]| files.iter().map(|f| trace.files[*f as usize].size as f64).sum::<f64>();
            let ratios = [
                trace.jobs.iter().map(|j| j.runtime).sum::<f64>() / work,
                trace.critical_path() / path,
                trace.arcs.len() as f64 / arcs,
                trace.jobs.iter().map(|j| bytes(&j.inputs)).sum::<f64>() / read,
                trace.jobs.iter().map(|j| bytes(&j.outputs)).sum::<f64>() / written,
            ];
            assert!(ratios.iter().all(|r| (0.7..1.4).contains(r)), "{kind} with {jobs} jobs: {ratios:.2?}");
        }
    }
}
