//! Peers that do not exist do what peers should.

use super::{Load, Swarm, broken, central, simulate_space, trial};
use catena_space::Chemistry;
use std::sync::Arc;

fn rules(name: &str) -> Arc<Chemistry> {
    Arc::new(Chemistry::shipped(name).expect("shipped rules are good"))
}

#[test]
fn all_workflows_end_and_no_task_is_done_twice() {
    for (peers, name) in [(16, "dependencies"), (16, "levels"), (16, "min-min"), (1100, "dependencies")] {
        let load = Load::random(5, 24, 0.05, 1);
        let swarm = Swarm::new(peers, rules(name), 1);
        let reference = central(&swarm, &load).expect("rules are good");
        let outcome = simulate_space(&swarm, &load);
        let per_task = outcome.messages_per_task();
        println!("{peers} {name}: {per_task} messages a task; {:?}", outcome.messages);
        println!(
            "makespan {} of {}, mean {} of {}, wait {} {}",
            outcome.makespan,
            reference.makespan,
            outcome.mean_workflow(),
            reference.mean_workflow(),
            outcome.wait(50),
            outcome.wait(95)
        );
        assert_eq!(outcome.ended(), 5, "{name}");
        assert_eq!(reference.ended(), 5, "{name}");
        assert_eq!(outcome.committed, load.tasks() as u64);
        assert_eq!((outcome.twice, outcome.wasted, outcome.stale), (0, 0, 0));
    }
}

/// More of them are in `cargo xtask soak space`.
#[test]
fn whatever_happens_each_task_is_done_once() {
    for seed in 0..1000 {
        let (load, outcome) = trial(seed, true);
        if let Some(what) = broken(&load, &outcome) {
            panic!("seed {seed}: {what}: {outcome:?}");
        }
    }
}

#[test]
fn without_fencing_results_count_that_should_not() {
    assert!((0..300).any(|seed| trial(seed, false).1.stale > 0), "the trials would not notice");
}

#[test]
fn the_same_seed_gives_the_same_simulation() {
    let digest = |seed| trial(seed, true).1.digest;
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

#[test]
fn what_is_counted_adds_up() {
    let load = Load::random(4, 16, 0.05, 1);
    let outcome = simulate_space(&Swarm::new(24, rules("dependencies"), 1), &load);
    assert_eq!(outcome.messages.values().sum::<u64>(), outcome.control + outcome.upkeep);
    assert_eq!(outcome.received.iter().sum::<u64>(), outcome.control);
    assert!(outcome.received(50) <= outcome.received(99) && outcome.hottest() >= 1.0);
    assert_eq!(outcome.done.len() as u64, outcome.committed);
    assert!(outcome.done.is_sorted());
    assert_eq!(outcome.done_between(0, outcome.end + 1), (load.tasks(), 0), "nothing was cut");
}
