//! What must hold whatever is simulated: nothing starts before its data are there, no node does more than it can, all
//! work is done whatever goes wrong, and the same seed gives the same result.

use super::*;
use crate::cluster::{Chance, Kind, Network};
use crate::engine::simulate;
use crate::outcome::{Execution, Fate, Outcome};
use crate::time::nanos;
use crate::workload::Task;
use catena_model::{Name, Resources};
use catena_plan::Dag;
use catena_schedule::Class;
use proptest::prelude::*;
use proptest::strategy::Strategy;

/// Tasks that read what those before them have written, and some files from outside; some need two processors.
fn workload() -> impl Strategy<Value = Workload> {
    let task = (1..2000u32, prop::collection::vec(0..30u32, 0..4), 0..2_000_000_000u64, 0..2u32);
    prop::collection::vec(task, 1..30).prop_map(|tasks| {
        let n = tasks.len() as u32;
        let mut arcs = Vec::new();
        let mut all = Vec::new();
        let mut files = Vec::new();
        for (t, (millis, parents, size, class)) in (0..n).zip(tasks) {
            let parents: Vec<u32> = parents.into_iter().filter(|p| *p < t).collect();
            arcs.extend(parents.iter().map(|p| (*p, t)));
            // Each task writes a file of its own, and reads one from outside.
            let mut inputs = parents.clone();
            inputs.sort_unstable();
            inputs.dedup();
            inputs.push(n + t % 3);
            files.push(size);
            all.push(Task {
                id: Name::new(t.to_string()),
                program: Name::default(),
                seconds: f64::from(millis) / 100.0,
                class,
                inputs,
                outputs: vec![t],
            });
        }
        files.extend([1000, 1_000_000, 500_000_000]);
        let wide = Class { resources: Resources { cpus: 2000, ..Resources::default() }, ..Class::default() };
        let dag = Dag::new(n as usize, &arcs).unwrap();
        Workload::of_tasks("random".to_owned(), all, files, dag, vec![Class::default(), wide])
    })
}

/// Fast nodes with two processors and slow ones with four, wherever files are and however they travel.
fn cluster(nodes: u32, is_local: bool, is_fair: bool, chance: Chance) -> Cluster {
    let kind = |id: &str, count: u32, cpus: u64, speed: f64| Kind {
        id: Name::new(id),
        speed,
        resources: Resources { cpus, memory: u64::MAX, ..Resources::default() },
        ..Kind::new(count)
    };
    Cluster {
        kinds: vec![kind("fast", nodes, 2000, 2.0), kind("slow", 1, 4000, 0.5)],
        storage: if is_local { Storage::Local } else { Storage::Shared(1e9) },
        network: Network { bandwidth: 1.25e8, latency: 1000, is_fair },
        chance,
        ..Cluster::default()
    }
}

fn chance() -> impl Strategy<Value = Chance> {
    let troubles = Chance {
        spread: 0.3,
        stragglers: 0.2,
        factor: 5.0,
        failures: 0.1,
        lifetime: Some(nanos(100.0)),
        repair: nanos(5.0),
    };
    prop_oneof![Just(Chance::default()), Just(troubles), Just(Chance { lifetime: None, ..troubles })]
}

fn run(policy: PolicyName, workload: &Workload, cluster: &Cluster, seed: u64) -> Outcome {
    let mut strategy = policy.strategy(workload, cluster, seed).unwrap();
    simulate(workload, cluster, &mut *strategy, seed).unwrap_or_else(|e| panic!("{policy}: {e}"))
}

/// All policies with a name, and some that have none.
fn policies() -> Vec<PolicyName> {
    let choices = [
        "order:prio+place:longest-idle+replicate:2",
        "place:data+replicate:none",
        "order:fifo+queue:all+rebalance:steal",
        "queue:2+place:data+rebalance:give+replicate:2",
        "queue:1+place:longest-idle+rebalance:none+replicate:none",
    ];
    PolicyName::all().chain(choices.iter().map(|c| c.parse().unwrap())).collect()
}

fn check(policy: PolicyName, workload: &Workload, cluster: &Cluster, outcome: &Outcome) {
    let last = outcome.of_tasks(workload.len());
    for t in 0..workload.len() as u32 {
        let end = last[t as usize].map(|e| e.end);
        assert!(end.is_some(), "{policy}: task {t} was never done");
    }
    // An execution starts when every parent has succeeded before.
    let succeeded = |t: u32, by: u64| {
        let of = |e: &&Execution| e.task == t && e.fate == Fate::Succeeded && e.end <= by;
        outcome.executions.iter().any(|e| of(&e))
    };
    for execution in &outcome.executions {
        for parent in workload.dag.parents(execution.task) {
            assert!(succeeded(*parent, execution.start), "{policy}: {} starts too early", execution.task);
        }
    }
    // At no start is a node asked for more than it has.
    for start in &outcome.executions {
        let at = |e: &&Execution| e.node == start.node && e.start <= start.start && start.start < e.end;
        let used: u64 =
            outcome.executions.iter().filter(at).map(|e| workload.class(e.task).resources.cpus).sum();
        let stay = outcome.stays.iter().find(|s| s.node == start.node).unwrap();
        assert!(used <= stay.cpus, "{policy}: node {} does too much", start.node);
        assert!(stay.from <= start.start && start.end <= stay.to, "{policy}: a node that is not there");
    }
    assert!(outcome.makespan > 0 || workload.is_empty());
    if cluster.chance == Chance::default() {
        assert!(outcome.makespan >= cluster.lower_bound(workload), "{policy} is faster than possible");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_policy_executes_every_workload_whatever_happens(
        (workload, nodes, is_local, is_fair, chance, seed) in
            (workload(), 1..6u32, any::<bool>(), any::<bool>(), chance(), 0..1000u64)
    ) {
        let cluster = cluster(nodes, is_local, is_fair, chance);
        for policy in policies() {
            let outcome = run(policy, &workload, &cluster, seed);
            check(policy, &workload, &cluster, &outcome);
            prop_assert_eq!(&outcome, &run(policy, &workload, &cluster, seed), "{} is not repeatable", policy);
            if chance == Chance::default() && policy != "order:prio+place:longest-idle+replicate:2".parse().unwrap() {
                let copies = outcome.executions.iter().filter(|e| e.fate == Fate::Lost || e.fate == Fate::Failed);
                prop_assert_eq!(copies.count(), 0, "{}: nothing goes wrong", policy);
            }
        }
    }

    #[test]
    fn with_enough_nodes_the_longest_path_decides(workload in workload()) {
        let mut workload = workload;
        for task in &mut workload.tasks {
            task.class = 0;
        }
        let cluster = Cluster::adage().with_nodes(workload.len() as u32);
        for policy in [PolicyName::Fcfs, PolicyName::Heft, PolicyName::Catena] {
            prop_assert_eq!(run(policy, &workload, &cluster, 1).makespan, cluster.lower_bound(&workload), "{}", policy);
        }
    }

    #[test]
    fn nodes_are_made_when_tasks_wait_and_go_when_they_do_not((workload, seed) in (workload(), 0..9u64)) {
        let mut cluster = cluster(0, false, false, Chance::default());
        cluster.kinds[0] = Kind { max: 4, boot: nanos(3.0), idle: nanos(2.0), price: 3.6, ..cluster.kinds[0].clone() };
        cluster.kinds[1] = Kind { count: 0, max: 2, price: 0.0, ..cluster.kinds[1].clone() };
        for policy in [PolicyName::Fcfs, PolicyName::Catena, PolicyName::Matrix] {
            let outcome = run(policy, &workload, &cluster, seed);
            check(policy, &workload, &cluster, &outcome);
            // Whatever was there had to be asked for, and no more than may be there were at any time.
            for stay in &outcome.stays {
                let same = outcome.stays.iter().filter(|s| s.kind == stay.kind);
                let at_once = same.filter(|s| s.from <= stay.from && stay.from < s.to).count();
                prop_assert!(at_once <= cluster.kinds[stay.kind].max as usize);
            }
            prop_assert!(outcome.stays[0].to > outcome.stays[0].from);
        }
        prop_assert!(PolicyName::Heft.strategy(&workload, &cluster, 1).is_err());
    }
}

#[test]
fn work_that_no_node_can_do_is_refused() {
    let wide = Class { resources: Resources { cpus: 9000, ..Resources::default() }, ..Class::default() };
    let task = Task { id: Name::new("big"), seconds: 1.0, ..Task::default() };
    let workload =
        Workload::of_tasks(String::new(), vec![task], vec![], Dag::new(1, &[]).unwrap(), vec![wide]);
    let cluster = cluster(1, false, false, Chance::default());
    let mut strategy = PolicyName::Catena.strategy(&workload, &cluster, 1).unwrap();
    let error = simulate(&workload, &cluster, &mut *strategy, 1).unwrap_err();
    assert!(error.contains("`big`") && error.contains("9 cpus") && error.contains("`slow`"), "{error}");
}

#[test]
fn a_second_execution_saves_what_a_slow_one_would_cost() {
    let task = |n: usize| Task { id: Name::new(n.to_string()), seconds: 10.0, ..Task::default() };
    let tasks = (0..200).map(task).collect();
    let workload =
        Workload::of_tasks(String::new(), tasks, vec![], Dag::new(200, &[]).unwrap(), vec![Class::default()]);
    let chance = Chance { stragglers: 0.1, factor: 20.0, ..Chance::default() };
    let cluster = Cluster { chance, ..Cluster::default() }.with_nodes(50);
    // A second execution may be slow as well, so that one seed says little.
    let all =
        |policy: PolicyName| (1..=5).map(|seed| run(policy, &workload, &cluster, seed).makespan).sum::<u64>();
    let (with, without) = (all(PolicyName::Catena), all("replicate:none".parse().unwrap()));
    assert!(with * 3 < without * 2, "{with} {without}");
}

#[test]
fn what_only_a_dead_node_had_is_computed_again() {
    // Two tasks one after the other, on nodes that die now and then.
    let task = |n: u32, inputs: Vec<u32>| Task {
        id: Name::new(n.to_string()),
        seconds: 50.0,
        inputs,
        outputs: vec![n],
        ..Task::default()
    };
    let tasks = vec![task(0, vec![]), task(1, vec![0]), task(2, vec![1]), task(3, vec![2])];
    let dag = Dag::new(4, &[(0, 1), (1, 2), (2, 3)]).unwrap();
    let workload = Workload::of_tasks(String::new(), tasks, vec![1000; 4], dag, vec![Class::default()]);
    let chance = Chance { lifetime: Some(nanos(60.0)), repair: nanos(1.0), ..Chance::default() };
    let cluster = Cluster { storage: Storage::Local, chance, ..Cluster::default() }.with_nodes(2);
    let again = (0..20).map(|seed| {
        let outcome = run(PolicyName::Catena, &workload, &cluster, seed);
        check(PolicyName::Catena, &workload, &cluster, &outcome);
        outcome.executions.iter().filter(|e| e.fate == Fate::Succeeded).count()
    });
    assert!(again.max() > Some(4), "something that had succeeded was computed again");
}

#[test]
fn policies_are_known_by_their_names() {
    for policy in policies() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert_eq!("catena+order:prio".parse::<PolicyName>(), "order:prio".parse());
    assert!("catenna".parse::<PolicyName>().unwrap_err().contains("albatross"));
}
