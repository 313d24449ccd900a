//! Which simulations make up an experiment.

use super::trial::{Pace, Trial};
use crate::arguments::{SpaceArgs, SpaceExperiment};
use catena_simulate::space::{Routing, Trouble};
use catena_space::time::{Micros, SECOND};

/// The rules of the paper, and those that do without its barrier.
pub(super) const RULES: [&str; 2] = ["levels", "dependencies"];
/// How much of what peers can do is needed in `load`.
pub(super) const LOADS: [(&str, f64); 3] = [("light", 0.3), ("near saturation", 0.9), ("overload", 2.0)];
/// When the network is cut in `trouble`, until when, and how many peers of a hundred are on the smaller side.
pub(super) const CUT: (Micros, Micros, u64) = (400 * SECOND, 460 * SECOND, 30);
/// What the others in `trouble` and `settings` are compared with.
pub(super) const USUAL: &str = "as usual";

/// So many peers of a thousand die each minute, and are away for so long.
const CHURN: f64 = 10.0;
const ABSENCE: Micros = 30 * SECOND;

/// Everything an experiment simulates. What is compared with a central scheduler has it next to it.
pub(super) fn trials(experiment: SpaceExperiment, args: &SpaceArgs) -> Vec<Trial> {
    let seeds = || args.all_seeds();
    match experiment {
        SpaceExperiment::Nodes => {
            let sizes = || if args.quick { vec![16, 32, 64] } else { (6..=14).map(|n| 1 << n).collect() };
            let workflows = if args.quick { 8 } else { 256 };
            let nodes = args.nodes.clone().unwrap_or_else(sizes);
            let each = nodes.iter().flat_map(|n| seeds().map(move |seed| (*n as usize, seed)));
            beside_central(each.map(|(n, seed)| Trial::new(experiment, n, workflows, Pace::Use(0.5), seed)))
        }
        SpaceExperiment::Workflows => {
            let sizes = || if args.quick { vec![2, 4, 8] } else { (4..=10).map(|n| 1 << n).collect() };
            let nodes = if args.quick { 32 } else { 1024 };
            let workflows = args.workflows.clone().unwrap_or_else(sizes);
            let each = workflows.iter().flat_map(|w| seeds().map(move |seed| (*w as usize, seed)));
            beside_central(each.map(|(w, seed)| Trial::new(experiment, nodes, w, Pace::Within(60.0), seed)))
        }
        SpaceExperiment::Load => load(args),
        SpaceExperiment::Trouble => trouble(args),
        SpaceExperiment::Settings => settings(args),
        SpaceExperiment::Live => Vec::new(),
    }
}

/// With all rules, and with a central scheduler.
fn beside_central(trials: impl Iterator<Item = Trial>) -> Vec<Trial> {
    let ruled = trials.flat_map(|trial| RULES.map(|rules| Trial { rules, ..trial.clone() }));
    ruled.flat_map(|trial| [trial.central(), trial]).collect()
}

fn load(args: &SpaceArgs) -> Vec<Trial> {
    // The largest takes minutes: one seed is enough.
    let sizes =
        if args.quick { vec![(64, 16, true)] } else { vec![(1024, 1024, true), (10_000, 2500, false)] };
    let mut trials = Vec::new();
    for (nodes, workflows, all) in sizes {
        for (name, part) in LOADS {
            for seed in args.all_seeds().take(if all { usize::MAX } else { 1 }) {
                let trial = Trial::new(SpaceExperiment::Load, nodes, workflows, Pace::Use(part), seed);
                let trial = Trial { variant: name.to_owned(), again: true, ..trial };
                trials.extend([trial.central(), trial]);
            }
        }
    }
    trials
}

fn trouble(args: &SpaceArgs) -> Vec<Trial> {
    let churn = |returns| Trouble { churn: CHURN, absence: ABSENCE, returns, ..Trouble::default() };
    let kinds = [
        (USUAL, Trouble::default()),
        ("churn, peers come back", churn(true)),
        ("churn, others come", churn(false)),
        ("cut 30/70", Trouble { cut: Some(CUT), ..Trouble::default() }),
    ];
    let sizes = if args.quick { vec![(64, 16)] } else { vec![(512, 128), (1024, 256)] };
    let mut trials = Vec::new();
    for (nodes, workflows) in sizes {
        for (name, trouble) in &kinds {
            for seed in args.all_seeds() {
                let trial = Trial::new(SpaceExperiment::Trouble, nodes, workflows, Pace::Use(0.6), seed);
                trials.push(Trial { variant: (*name).to_owned(), trouble: trouble.clone(), ..trial });
            }
        }
    }
    trials
}

fn settings(args: &SpaceArgs) -> Vec<Trial> {
    let (large, small, workflows) = if args.quick { (64, 32, 8) } else { (2048, 512, 256) };
    let trial = |nodes, variant: String| {
        let trial = Trial::new(SpaceExperiment::Settings, nodes, workflows, Pace::Use(0.9), args.seed);
        Trial { variant, ..trial }
    };
    let mut all = vec![trial(large, USUAL.to_owned())];
    for shards in [1, 2, 24] {
        let shown = if shards == 1 { "1 shard".to_owned() } else { format!("{shards} shards") };
        all.push(Trial { shards: Some(shards), ..trial(large, shown) });
    }
    for leaf in [8, 32, 512] {
        all.push(Trial { leaf: Some(leaf), ..trial(large, format!("leaves of {leaf}")) });
    }
    for (name, routing) in [("everybody knows everybody", Routing::Full), ("a ring", Routing::Ring)] {
        all.push(Trial { routing: Some(routing), ..trial(small, name.to_owned()) });
    }
    let seeds =
        |trial: &Trial| args.all_seeds().map(|seed| Trial { seed, ..trial.clone() }).collect::<Vec<_>>();
    all.iter().flat_map(seeds).flat_map(|trial| [trial.central(), trial]).collect()
}
