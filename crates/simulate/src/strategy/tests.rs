//! What must hold whatever is simulated: nothing starts before its data are there, no node does more than it can, all
//! work is done whatever goes wrong, and the same seed gives the same result.

use super::*;
use crate::cluster::{Chance, Inputs, Kind, Network};
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
        network: Network { bandwidth: 1.25e8, latency: 1000, is_fair, at_once: None },
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
    // At no time does a node do more than it can.
    for start in &outcome.executions {
        let at = |e: &&Execution| e.node == start.node && e.busy <= start.busy && start.busy < e.end;
        let used: u64 =
            outcome.executions.iter().filter(at).map(|e| workload.class(e.task).resources.cpus).sum();
        let stay = outcome.stays.iter().find(|s| s.node == start.node).unwrap();
        assert!(used <= stay.cpus, "{policy}: node {} does too much", start.node);
        assert!(stay.from <= start.start && start.end <= stay.to, "{policy}: a node that is not there");
        let order = [start.start, start.staged.min(start.busy), start.staged.max(start.busy), start.end];
        assert!(order.is_sorted(), "{policy}: {start:?}");
        // What is given in advance occupies a node when its files are there, and no node has a task twice.
        assert!(cluster.ahead == 0 || start.staged <= start.busy, "{policy}: {start:?}");
        let twice = |e: &&Execution| e.task == start.task && e.start <= start.start && start.start < e.end;
        let twice = outcome.executions.iter().filter(twice).filter(|e| e.node == start.node).count();
        assert!(twice <= 1, "{policy}: {} twice on node {}", start.task, start.node);
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
    fn every_policy_knows_nodes_that_hold_tasks_in_advance(
        (workload, nodes, is_local, is_fair, chance, seed) in
            (workload(), 1..6u32, any::<bool>(), any::<bool>(), chance(), 0..1000u64),
        (ahead, scheduling, is_home, at_once) in
            (0..4u32, prop_oneof![Just(0), Just(5_000_000)], any::<bool>(), prop::option::of(1..3u32)),
    ) {
        let inputs = if is_home { Inputs::Home(Some(5e7)) } else { Inputs::Outside };
        let mut cluster = Cluster { ahead, scheduling, inputs, ..cluster(nodes, is_local, is_fair, chance) };
        cluster.network.at_once = at_once;
        for policy in policies() {
            let outcome = run(policy, &workload, &cluster, seed);
            check(policy, &workload, &cluster, &outcome);
            prop_assert_eq!(&outcome, &run(policy, &workload, &cluster, seed), "{} is not repeatable", policy);
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

/// So many tasks that compute for a second and read 125 MB from outside each, which takes another.
fn readers(tasks: u32) -> Workload {
    let task =
        |n: u32| Task { id: Name::new(n.to_string()), seconds: 1.0, inputs: vec![n], ..Task::default() };
    let all = (0..tasks).map(task).collect();
    let dag = Dag::new(tasks as usize, &[]).unwrap();
    Workload::of_tasks(String::new(), all, vec![125_000_000; tasks as usize], dag, vec![Class::default()])
}

fn local(nodes: u32, is_fair: bool) -> Cluster {
    let network = Network { bandwidth: 1.25e8, latency: 0, is_fair, at_once: None };
    Cluster { storage: Storage::Local, network, ..Cluster::default() }.with_nodes(nodes)
}

#[test]
fn what_is_brought_in_advance_takes_no_time() {
    let workload = readers(40);
    let both: Vec<PolicyName> =
        ["catena", "place:longest-idle", "place:data", "place:min-min", "queue:2", "adage"]
            .iter()
            .map(|name| name.parse().unwrap())
            .collect();
    for is_fair in [false, true] {
        for policy in &both {
            let at_once = run(*policy, &workload, &local(4, is_fair), 1);
            let ahead = run(*policy, &workload, &Cluster { ahead: 2, ..local(4, is_fair) }, 1);
            let seconds = |outcome: &Outcome| crate::time::seconds(outcome.makespan);
            assert!(seconds(&at_once) >= 20.0, "{policy}: {}", seconds(&at_once));
            // The first files have to be brought, and share what there is; ADAGE's also with copies of others.
            let most = if *policy == PolicyName::Adage && is_fair { 25.0 } else { 13.0 };
            assert!((11.0..=most).contains(&seconds(&ahead)), "{policy}, {is_fair}: {}", seconds(&ahead));
            // What ADAGE has in several queues is brought to several nodes.
            let (more, less) = (ahead.bytes_moved, at_once.bytes_moved);
            assert!(
                more == less || *policy == PolicyName::Adage && more > less,
                "{policy}: {more}, not {less}"
            );
            let busy = |outcome: &Outcome| outcome.utilisation(|_| 1000) * seconds(outcome);
            assert!(busy(&at_once) > 19.0 && (busy(&ahead) - 10.0).abs() < 1e-6, "{policy}");
        }
    }
}

#[test]
fn what_is_brought_one_after_the_other_is_there_sooner() {
    let staged = |at_once: Option<u32>| {
        let mut cluster = Cluster { ahead: 1, ..local(1, true) };
        cluster.network.at_once = at_once;
        let outcome = run(PolicyName::Catena, &readers(2), &cluster, 1);
        let staged = outcome.executions.iter().map(|e| crate::time::seconds(e.staged)).collect::<Vec<_>>();
        (staged, crate::time::seconds(outcome.makespan))
    };
    assert_eq!(staged(None), (vec![2.0, 2.0], 4.0));
    assert_eq!(staged(Some(1)), (vec![1.0, 2.0], 3.0));
}

#[test]
fn what_waits_at_a_node_that_dies_is_executed_elsewhere() {
    let workload = readers(60);
    let chance = Chance { lifetime: Some(nanos(20.0)), repair: nanos(5.0), ..Chance::default() };
    for is_fair in [false, true] {
        let cluster = Cluster { ahead: 3, chance, ..local(3, is_fair) };
        let mut lost = 0;
        for seed in 0..20 {
            let outcome = run(PolicyName::Catena, &workload, &cluster, seed);
            check(PolicyName::Catena, &workload, &cluster, &outcome);
            let waited = |e: &&Execution| e.fate == Fate::Lost && e.busy == e.end;
            lost += outcome.executions.iter().filter(waited).count();
        }
        assert!(lost > 10, "{lost} executions were lost before they began");
    }
}

#[test]
fn who_is_idle_gets_what_waits_elsewhere() {
    // Nobody knows that half of the tasks take five times as long.
    let workload = readers(64);
    let chance = Chance { stragglers: 0.5, factor: 5.0, ..Chance::default() };
    let cluster = Cluster { ahead: 8, chance, ..local(8, true) };
    let policy: PolicyName = "replicate:none".parse().unwrap();
    let outcome = run(policy, &workload, &cluster, 1);
    check(policy, &workload, &cluster, &outcome);
    let recalled = outcome.executions.iter().filter(|e| e.fate == Fate::Recalled).count();
    assert!(recalled > 0 && outcome.wasted() == 0);
    // All work is 192 seconds on average, on eight nodes.
    assert!(outcome.makespan < nanos(33.0), "{}", crate::time::seconds(outcome.makespan));
}

#[test]
fn schedulers_need_their_time() {
    // Ten tasks, one after the other.
    let task = |n: u32| Task { id: Name::new(n.to_string()), seconds: 1.0, ..Task::default() };
    let arcs: Vec<(u32, u32)> = (1..10).map(|n| (n - 1, n)).collect();
    let dag = Dag::new(10, &arcs).unwrap();
    let chain =
        Workload::of_tasks(String::new(), (0..10).map(task).collect(), vec![], dag, vec![Class::default()]);
    let makespan = |policy: PolicyName, workload: &Workload, ahead: u32| {
        let cluster = Cluster { scheduling: nanos(0.1), ahead, ..local(1, false) };
        run(policy, workload, &cluster, 1).makespan
    };
    for policy in policies().into_iter().filter(|p| *p != PolicyName::Adage) {
        // Who has a plan knows what is first.
        let is_planned = matches!(policy, PolicyName::Heft | PolicyName::Cpop);
        assert_eq!(makespan(policy, &chain, 0), nanos(if is_planned { 10.9 } else { 11.0 }), "{policy}");
    }
    // What was given in advance waits for nobody.
    let mut many = readers(10);
    many.files = vec![0; 10];
    assert_eq!(makespan(PolicyName::Catena, &many, 0), nanos(11.0));
    assert_eq!(makespan(PolicyName::Catena, &many, 1), nanos(10.1));
}

#[test]
fn inputs_come_from_home() {
    let workload = readers(4);
    let seconds = |inputs: Inputs| {
        let cluster = Cluster { inputs, ..local(4, true) };
        let outcome = run(PolicyName::Catena, &workload, &cluster, 1);
        assert_eq!(outcome.bytes_moved, 500_000_000);
        crate::time::seconds(outcome.makespan)
    };
    assert!((seconds(Inputs::Outside) - 2.0).abs() < 1e-6, "one to bring and one to compute");
    assert!((seconds(Inputs::Home(None)) - 5.0).abs() < 1e-6, "four share what one can send");
    assert!((seconds(Inputs::Home(Some(2.5e8))) - 3.0).abs() < 1e-6);
}
