//! The same in virtual time.

use super::variant::Variant;
use super::work::Work;
use crate::arguments::DataArgs;

use catena_model::Name;
use catena_schedule::Queue;
use catena_simulate::{Cluster, Figure, Inputs, Kind, Network, PolicyName, Storage, nanos};
use catena_testbed::Rate;
use serde::Serialize;

/// What a transfer takes besides its bytes, in seconds: a few messages between hosts that are near each other.
const LATENCY: f64 = 0.002;

/// For how many chains an agent brings files at the same time.
const AT_ONCE: u32 = 2;

/// How long it takes until a scheduler has heard of an end, written it down and given the agent something new, in seconds.
const DECISION: f64 = 0.02;

/// What the simulator says.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Predicted {
    /// In seconds.
    pub(super) makespan: f64,
    pub(super) bytes_moved: u64,
}

pub(super) fn predict(work: &Work, variant: &Variant, args: &DataArgs) -> Result<Predicted, String> {
    let policy = PolicyName::Stages(variant.stages);
    let (figure, _) = Figure::of(&work.workload, &cluster(variant, args), policy, args.seed)?;
    Ok(Predicted { makespan: figure.makespan, bytes_moved: figure.bytes_moved })
}

/// The hosts of a trial. What there is to say about them is said here and nowhere else.
fn cluster(variant: &Variant, args: &DataArgs) -> Cluster {
    let slow = Kind {
        id: Name::new_static("slow"),
        speed: 1.0 / f64::from(variant.slowness),
        ..Kind::new(u32::from(variant.slowness > 1))
    };
    let usual = Kind::new(variant.agents - slow.count);
    Cluster {
        kinds: [slow, usual].into_iter().filter(|k| k.count > 0).collect(),
        storage: Storage::Local,
        network: Network {
            bandwidth: Rate::megabits(args.rate).bytes_per_second() as f64,
            latency: nanos(LATENCY),
            is_fair: true,
            at_once: Some(AT_ONCE),
        },
        ahead: match variant.stages.queue {
            Queue::Batch => 1,
            Queue::Depth(n) => n,
            Queue::All => u32::MAX,
        },
        scheduling: nanos(DECISION),
        inputs: Inputs::Home(Some(Rate::megabits(args.home_rate).bytes_per_second() as f64)),
        ..Cluster::default()
    }
}
