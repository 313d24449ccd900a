use super::*;
use catena_model::Resources;
use catena_model::chain::RunId;

fn agent(id: &str) -> AgentInfo {
    let resources = Resources { cpus: 1000, memory: 1 << 30, ..Resources::default() };
    AgentInfo { id: id.into(), capabilities: Vec::new(), resources }
}

fn key(seq: u64) -> ChainKey {
    ChainKey { run: RunId(1), seq }
}

/// A chain that reads some megabytes that somebody has.
fn chain(seq: u64, megabytes: u64, holders: &[&str]) -> ReadyChain {
    let inputs = vec![ReadyInput {
        content: ContentId::of(&seq.to_le_bytes()),
        size: megabytes << 20,
        holders: holders.iter().map(Name::new).collect(),
    }];
    let class =
        Class { capabilities: Vec::new(), resources: Resources { cpus: 1000, ..Resources::default() } };
    ReadyChain { key: key(seq), rank: 0, class, signature: "s".into(), ahead: 0, replicas: 0, inputs }
}

fn placer(stages: Stages, agents: &[&str]) -> Placer {
    let mut placer = Placer::new(stages, Duration::from_mins(10));
    for id in agents {
        placer.join(&agent(id), 0);
    }
    placer
}

fn picks(placed: &[Placed]) -> Vec<(u64, &str)> {
    let pick = |p: &'_ Placed| match p {
        Placed::Pick { chain, agent } => Some((chain.seq, agent.clone())),
        _ => None,
    };
    let mut picks: Vec<(u64, Name)> = placed.iter().filter_map(pick).collect();
    picks.sort();
    picks.into_iter().map(|(seq, agent)| (seq, &*Box::leak(agent.to_string().into_boxed_str()))).collect()
}

#[test]
fn chains_go_where_their_data_are() {
    let mut placer = placer(Stages::default(), &["a", "b"]);
    placer.ready(&chain(1, 500, &["b"]));
    placer.ready(&chain(2, 500, &["a"]));
    assert_eq!(picks(&placer.decide(1)), [(1, "b"), (2, "a")]);
    assert!(placer.waiting().next().is_none());
}

#[test]
fn what_ends_makes_room_and_what_is_forgotten_leaves_nothing() {
    let mut placer = placer(Stages { queue: Queue::Depth(0), ..Stages::default() }, &["a"]);
    for seq in 1..=3 {
        placer.ready(&chain(seq, 1, &["a"]));
    }
    for seq in 1..=3 {
        let placed = placer.decide(seq);
        assert_eq!(placed.len(), 1, "one at a time");
        let Placed::Pick { chain, agent } = &placed[0] else { panic!("{placed:?}") };
        placer.ended(*chain, agent, Some(100.0), seq);
        placer.forget(*chain);
    }
    assert!(placer.numbers.is_empty());
    assert!(
        placer.facts.known_file(&ContentId::of(&1u64.to_le_bytes())).is_none(),
        "nobody reads it any more"
    );
}

#[test]
fn an_agent_that_is_slow_is_learned_of_and_its_late_chain_gets_a_copy() {
    let mut placer = placer(Stages { queue: Queue::Depth(0), ..Stages::default() }, &["a", "b"]);
    let second = 1_000_000_000;
    // What a chain usually takes.
    for seq in 1..=4 {
        placer.ready(&chain(seq, 0, &[]));
        let placed = placer.decide(seq * second);
        let Placed::Pick { chain, agent } = &placed[0] else { panic!("{placed:?}") };
        placer.started(*chain, agent, seq * second);
        placer.ended(*chain, agent, Some(1000.0), seq * second);
    }
    placer.ready(&chain(9, 0, &[]));
    let start = 10 * second;
    let placed = placer.decide(start);
    let Placed::Pick { agent: first, .. } = &placed[0] else { panic!("{placed:?}") };
    placer.started(key(9), first, start);
    assert!(placer.decide(start + second).is_empty(), "it is in time");
    let late = placer.wake().expect("it will be late");
    let placed = placer.decide(late);
    let Placed::Copy { agent: second, .. } = &placed[0] else { panic!("{placed:?}") };
    assert_ne!(first, second, "who is slow is no help");
    assert_eq!(placer.with(key(9)).len(), 2);
    // The copy is done first; whoever is still at it is not asked again while somebody else is there.
    let (first, second) = (first.clone(), second.clone());
    placer.started(key(9), &second, late);
    let end = late + 1_000_000_000;
    placer.ended(key(9), &second, Some(1000.0), end);
    placer.overtaken(key(9), &second, end);
    placer.forget(key(9));
    for seq in 20..24 {
        placer.ready(&chain(seq, 0, &[]));
        let placed = placer.decide(end + seq);
        let Placed::Pick { agent, .. } = &placed[0] else { panic!("{placed:?}") };
        assert_eq!(*agent, second, "and not {first}");
        placer.ended(key(seq), agent, Some(1000.0), end + seq);
    }
}

#[test]
fn who_was_slow_from_the_beginning_is_late_as_soon_as_others_show_how_long_it_takes() {
    let mut placer = placer(Stages { queue: Queue::Depth(0), ..Stages::default() }, &["a", "b"]);
    let second = 1_000_000_000;
    placer.ready(&chain(1, 0, &[]));
    placer.ready(&chain(2, 0, &[]));
    let placed = placer.decide(0);
    assert_eq!(placed.len(), 2);
    placer.started(key(1), &placer.with(key(1))[0].clone(), 0);
    placer.started(key(2), &placer.with(key(2))[0].clone(), 0);
    assert!(placer.wake().is_none(), "nobody knows how long it takes");
    placer.ended(key(1), &placer.with(key(1))[0].clone(), Some(1000.0), second);
    assert!(placer.decide(second).is_empty(), "not late yet");
    let placed = placer.decide(2 * second);
    assert!(matches!(&placed[..], [Placed::Copy { chain, .. }] if *chain == key(2)), "{placed:?}");
}

#[test]
fn what_waits_behind_a_straggler_is_asked_back() {
    let mut placer = placer(Stages::default(), &["a", "b"]);
    let second = 1_000_000_000;
    placer.ready(&chain(1, 0, &[]));
    placer.ready(&chain(2, 0, &[]));
    assert_eq!(placer.decide(0).len(), 2);
    let of = |placer: &Placer, agent: &str| (1..=2).find(|n| placer.with(key(*n)) == [agent]).unwrap();
    let (on_a, on_b) = (of(&placer, "a"), of(&placer, "b"));
    placer.started(key(on_a), &"a".into(), 0);
    placer.started(key(on_b), &"b".into(), 0);
    placer.has(&chain(3, 0, &[]), &"a".into(), 0);
    placer.ended(key(on_b), &"b".into(), Some(1000.0), second);
    let placed = placer.decide(2 * second);
    let back = Placed::Recall { chain: key(3), agent: "a".into() };
    assert!(placed.contains(&back), "{placed:?}");
}

#[test]
fn replicas_start_where_their_inputs_are_cheap_and_only_there() {
    let stages = Stages { queue: Queue::Depth(0), ..Stages::default() };
    let mut cheap = placer(stages, &["a", "b"]);
    cheap.ready(&ReadyChain { replicas: 2, ..chain(1, 1, &["a"]) });
    let first = cheap.decide(1);
    cheap.started(key(1), &"a".into(), 2);
    let second = cheap.decide(2);
    assert!(matches!(&first[..], [Placed::Pick { .. }, ..]), "{first:?}");
    let copies = first.iter().chain(&second).filter(|p| matches!(p, Placed::Copy { .. })).count();
    assert_eq!(copies, 1, "{first:?} {second:?}");
    let mut dear = placer(stages, &["a", "b"]);
    dear.ready(&ReadyChain { replicas: 2, ..chain(1, 10_000, &["a"]) });
    let mut all = dear.decide(1);
    dear.started(key(1), &"a".into(), 2);
    all.extend(dear.decide(2));
    assert!(!all.iter().any(|p| matches!(p, Placed::Copy { .. })), "{all:?}");
}

#[test]
fn what_a_lost_agent_had_is_unknown_until_it_waits_again() {
    let mut placer = placer(Stages::default(), &["a", "b"]);
    placer.ready(&chain(1, 500, &["a"]));
    assert_eq!(picks(&placer.decide(1)), [(1, "a")]);
    placer.leave(&"a".into());
    assert!(!placer.knows(key(1)));
    placer.ready(&chain(1, 500, &[]));
    assert_eq!(picks(&placer.decide(2)), [(1, "b")]);
}
