use super::*;
use crate::engine::{Outcome, lower_bound, simulate};
use crate::workload::Task;
use catena_model::Name;
use catena_plan::Dag;
use proptest::prelude::*;

/// Tasks that read what those before them have written, and some files from outside.
fn workload() -> impl Strategy<Value = Workload> {
    let task = (1..2000u32, prop::collection::vec(0..30u32, 0..4), 0..2_000_000_000u64);
    prop::collection::vec(task, 1..30).prop_map(|tasks| {
        let n = tasks.len() as u32;
        let mut arcs = Vec::new();
        let mut all = Vec::new();
        let mut files = Vec::new();
        for (t, (millis, parents, size)) in (0..n).zip(tasks) {
            let parents: Vec<u32> = parents.into_iter().filter(|p| *p < t).collect();
            arcs.extend(parents.iter().map(|p| (*p, t)));
            // Each task writes a file of its own, and reads one from outside.
            let mut inputs = parents.clone();
            inputs.sort_unstable();
            inputs.dedup();
            inputs.push(n + t % 3);
            files.push(size);
            let id = Name::new(t.to_string());
            all.push(Task { id, seconds: f64::from(millis) / 100.0, inputs, outputs: vec![t] });
        }
        files.extend([1000, 1_000_000, 500_000_000]);
        Workload { name: "random".to_owned(), tasks: all, files, dag: Dag::new(n as usize, &arcs).unwrap() }
    })
}

use proptest::strategy::Strategy;

fn run(policy: PolicyName, workload: &Workload, cluster: &Cluster, seed: u64) -> Outcome {
    simulate(workload, cluster, &mut *policy.strategy(workload, cluster, seed)).unwrap()
}

proptest! {
    #[test]
    fn every_policy_executes_every_workload((workload, nodes, seed) in (workload(), 1..9usize, any::<u64>())) {
        for cluster in [Cluster::adage(nodes), Cluster::adage_local(nodes)] {
            for policy in PolicyName::ALL {
                let outcome = run(policy, &workload, &cluster, seed);
                for t in 0..workload.len() as u32 {
                    let start = outcome.history[t as usize].1;
                    for parent in workload.dag.parents(t) {
                        prop_assert!(outcome.history[*parent as usize].2 <= start + 1e-9, "{policy}: too early");
                    }
                }
                let mut slots: Vec<(u32, f64, f64)> = outcome.history.clone();
                slots.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                for pair in slots.windows(2).filter(|p| p[0].0 == p[1].0) {
                    prop_assert!(pair[0].2 <= pair[1].1 + 1e-9, "{policy}: two tasks at once");
                }
                prop_assert!(outcome.makespan >= lower_bound(&workload, &cluster) - 1e-6, "{policy}");
                prop_assert_eq!(&outcome, &run(policy, &workload, &cluster, seed), "{} is not repeatable", policy);
            }
        }
    }

    #[test]
    fn with_enough_nodes_the_longest_path_decides(workload in workload()) {
        let cluster = Cluster::adage(workload.len());
        for policy in [PolicyName::Fcfs, PolicyName::Heft, PolicyName::Catena] {
            let makespan = run(policy, &workload, &cluster, 1).makespan;
            prop_assert!((makespan - lower_bound(&workload, &cluster)).abs() < 1e-6, "{policy}");
        }
    }
}
