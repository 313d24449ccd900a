//! What is executed, live and in virtual time.

use crate::arguments::DataArgs;
use crate::jobs::read_trace;
use catena_model::import::{StandIn, Trace};
use catena_simulate::{Workload, generate};
use std::path::Path;

/// A workflow.
pub(super) struct Work {
    pub(super) trace: Trace,
    /// What the simulator executes.
    pub(super) workload: Workload,
    /// What agents execute.
    pub(super) stand_in: StandIn,
}

impl Work {
    /// A workflow, generated or recorded, on the scale that was asked for.
    pub(super) fn read(args: &DataArgs) -> Result<Self, String> {
        for (name, factor) in [("--runtimes", args.runtimes), ("--sizes", args.sizes)] {
            if !(factor.is_finite() && factor >= 0.0) {
                return Err(format!("{name} must be a number that is not negative, not {factor}"));
            }
        }
        let trace = scaled(read(&args.workflow, args.seed)?, args.runtimes, args.sizes);
        let workload = Workload::new(&trace, false).map_err(|e| e.to_string())?;
        let stand_in = StandIn::new(&trace);
        Ok(Self { trace, workload, stand_in })
    }
}

fn read(name: &str, seed: u64) -> Result<Trace, String> {
    let path = Path::new(name);
    if let Some((kind, jobs)) = name.split_once(':').filter(|_| !path.exists()) {
        let jobs =
            jobs.parse().map_err(|_| format!("`{name}`: a kind and a size are written as in montage:80"))?;
        return Ok(Trace { name: name.to_owned(), ..generate::by_name(kind, jobs, seed)? });
    }
    let none = || {
        format!("{name}: this is no DAX, WfFormat or Pegasus file, nor a kind and a size as in montage:80")
    };
    read_trace(path).ok_or_else(none)?
}

/// Tasks are as short, and files as small, as there is time for. No file vanishes.
fn scaled(mut trace: Trace, runtimes: f64, sizes: f64) -> Trace {
    for job in &mut trace.jobs {
        job.runtime *= runtimes;
    }
    for file in &mut trace.files {
        file.size = ((file.size as f64 * sizes) as u64).max(file.size.min(1));
    }
    trace
}
