//! What is compared.

use crate::arguments::{DataArgs, DataExperiment};
use catena_schedule::{Policy, Replicate, Stages};

/// Everything as `catena` does it, but who has been idle for longest gets the next task, wherever its data are.
const LONGEST_IDLE: &str = "order:auto+place:longest-idle+queue:batch+rebalance:none+replicate:none";

/// One way to execute the workflow.
#[derive(Clone, Debug)]
pub(super) struct Variant {
    pub(super) name: String,
    /// What `scheduler.policy` is set to.
    pub(super) policy: String,
    /// What that means where agents have files of their own.
    pub(super) stages: Stages,
    pub(super) agents: u32,
    /// So many times longer the first agent takes.
    pub(super) slowness: u32,
}

impl Variant {
    /// A policy that is named as on the command line.
    fn new(name: &str, agents: u32) -> Result<Self, String> {
        let policy = if name == "longest-idle" { LONGEST_IDLE } else { name };
        let stages = if policy.contains(':') {
            policy.parse()?
        } else {
            policy.parse::<Policy>().map_err(|e| format!("{e}, longest-idle"))?.stages()
        };
        Ok(Self { name: name.to_owned(), policy: policy.to_owned(), stages, agents, slowness: 1 })
    }
}

/// What an experiment compares.
pub(super) fn variants(experiment: DataExperiment, args: &DataArgs) -> Result<Vec<Variant>, String> {
    if experiment == DataExperiment::Locality {
        return args.policy.iter().map(|name| Variant::new(name, args.agents)).collect();
    }
    let usual = Variant::new("catena", args.agents)?;
    let alone = Stages { replicate: Replicate::None, ..usual.stages };
    Ok(vec![
        Variant { slowness: args.slowness, ..usual.clone() },
        Variant {
            name: "no copies".to_owned(),
            policy: alone.to_string(),
            stages: alone,
            slowness: args.slowness,
            ..usual.clone()
        },
        Variant { name: "without it".to_owned(), agents: args.agents - 1, ..usual },
    ])
}

/// The variants that the others are compared with.
pub(super) fn references(experiment: DataExperiment) -> &'static [&'static str] {
    match experiment {
        DataExperiment::Locality => &["longest-idle", "adage"],
        DataExperiment::Slow => &["without it"],
    }
}
