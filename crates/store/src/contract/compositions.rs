//! What a store promises about compositions.

use crate::{CompositionWrite, Store};
use catena_compose::model::{parse_composition, row_changes};
use catena_compose::room::{Applied, Change, LockRecord, Place, Version};
use catena_model::Name;

const TEXT: &str = "composition: 1
name: Sorted
root: main
priority: 3
values: {reads: [a, b], n: 3}
services: [{id: s, path: s}]
workflows:
  align: {name: Align, description: 'what it is', inputs: {reads: file}, outputs: {bam: file}, task: {run: 'align {reads} > {bam}', outputs: {bam: {as: x.bam}}}}
  all: {map: {of: some, over: [reads]}}
  some: {conditional: {of: fixed, when: \"{reads} != ''\", else: align}}
  fixed: {curry: {of: align2, with: {k: [1, {a: b}]}}}
  align2: {inputs: {reads: file, k: any}, outputs: {bam: file}, task: {service: s, inputs: {reads: r}, outputs: {bam: {parameter: o}}}}
  less: {inputs: {n: integer}, outputs: {m: integer}, task: {run: 'echo $(({n} - 1)) > {m}'}}
  down: {loop: {of: less, while: '{n} > 0', feedback: {m: n}, max: 9}}
  pair: {inputs: {a: file, b: file}, outputs: {y: file}, task: {run: 'cat {a} {b} > {y}'}}
  sum: {reduce: {of: pair, carry: a, element: b}}
  best: {tree: {of: pair, left: a, right: b}}
  main:
    inputs: {reads: '[file]', n: integer}
    outputs: {bams: '[file]', y: file, same: integer}
    graph:
      nodes: {p: {use: all, at: [1.5, -2], label: 'each: one'}, d: {use: down, after: [p]}, s: {use: sum}, t: {use: best}}
      links: {l1: reads -> p.reads, l2: p.bam -> bams, l3: n -> d.n, l4: n -> same, l5: p.bam -> s.b, l6: p.bam -> t.a, l7: t.y -> s.a, l8: s.y -> y}
";

/// Everything about compositions.
pub(super) async fn all(store: &dyn Store) {
    a_composition_is_kept_as_it_is(store).await;
    a_composition_has_one_owner_and_who_has_lost_it_writes_nothing(store).await;
    what_was_done_is_kept(store).await;
}

async fn a_composition_is_kept_as_it_is(store: &dyn Store) {
    let composition =
        parse_composition(TEXT).unwrap_or_else(|d| panic!("{:?}", d.iter().collect::<Vec<_>>()));
    assert!(store.create_composition("kept", "ann", &composition, 7).await.unwrap());
    assert!(!store.create_composition("kept", "bob", &composition, 8).await.unwrap(), "there is one already");
    let saved = store.load_composition("kept").await.unwrap().unwrap();
    assert_eq!(saved.composition, composition);
    assert_eq!((saved.seq, saved.last_number), (0, 0));
    let heads = store.compositions().await.unwrap();
    let head = heads.iter().find(|h| h.id == "kept").unwrap();
    assert_eq!((head.name.as_str(), head.creator.as_str(), head.created), ("Sorted", "ann", 7));
    assert!(store.load_composition("other").await.unwrap().is_none());
    assert!(store.delete_composition("kept").await.unwrap());
    assert!(!store.delete_composition("kept").await.unwrap());
    assert!(store.load_composition("kept").await.unwrap().is_none());
}

async fn a_composition_has_one_owner_and_who_has_lost_it_writes_nothing(store: &dyn Store) {
    let composition = parse_composition(TEXT).ok().unwrap();
    store.create_composition("owned", "ann", &composition, 1).await.unwrap();
    let (one, two) = (Name::new("compose-1"), Name::new("compose-2"));
    assert!(store.claim_composition("nothing", &one, 10, 100).await.unwrap().is_none());
    let first = store.claim_composition("owned", &one, 10, 100).await.unwrap().unwrap();
    assert_eq!((first.owner.as_ref(), first.term), (Some(&one), 1));
    let again = store.claim_composition("owned", &one, 10, 100).await.unwrap().unwrap();
    assert_eq!(again.term, 1, "it has it already");
    let other = store.claim_composition("owned", &two, 10, 100).await.unwrap().unwrap();
    assert_eq!((other.owner.as_ref(), other.term), (Some(&one), 1), "it has an owner");
    let write = CompositionWrite { seq: 1, name: "x".into(), ..CompositionWrite::default() };
    assert!(store.write_composition("owned", &one, 1, &write).await.unwrap());
    store.keep_compositions(&one, 150).await.unwrap();
    let early = store.claim_composition("owned", &two, 149, 300).await.unwrap().unwrap();
    assert_eq!(early.owner.as_ref(), Some(&one));
    let taken = store.claim_composition("owned", &two, 150, 300).await.unwrap().unwrap();
    assert_eq!(
        (taken.owner.as_ref(), taken.term),
        (Some(&two), 2),
        "its owner has not said that it is alive"
    );
    let write = CompositionWrite { seq: 5, ..write };
    assert!(!store.write_composition("owned", &one, 1, &write).await.unwrap());
    assert!(!store.write_composition("owned", &two, 1, &write).await.unwrap());
    assert_eq!(store.load_composition("owned").await.unwrap().unwrap().seq, 1);
    store.delete_composition("owned").await.unwrap();
}

async fn what_was_done_is_kept(store: &dyn Store) {
    let before = parse_composition(TEXT).ok().unwrap();
    store.create_composition("done", "ann", &before, 1).await.unwrap();
    let one = Name::new("compose-3");
    store.claim_composition("done", &one, 10, 100).await.unwrap();
    let mut after = before.clone();
    let changes = vec![
        Change::SetAbout { workflow: "align".into(), name: "New".into(), description: String::new() },
        Change::MoveNode { workflow: "main".into(), id: "p".into(), x: 7.25, y: 8.0 },
        Change::RemoveLink { workflow: "main".into(), id: "l4".into() },
    ];
    let inverse: Vec<Change> = changes.iter().map(|c| c.apply(&mut after).unwrap()).collect();
    let applied = Applied {
        seq: 1,
        time: 5,
        user: "ann".into(),
        session: catena_compose::lock::Session(7),
        op: 3,
        changes,
        inverse,
        units: vec!["workflows/align/about".parse().unwrap()],
        note: "three".into(),
    };
    let version =
        Version { name: "v".into(), seq: 1, time: 6, user: "ann".into(), authors: vec!["ann".into()] };
    let lock = LockRecord {
        time: 4,
        what: "grant".into(),
        user: "ann".into(),
        session: catena_compose::lock::Session(7),
        unit: Place::Settings,
        mode: None,
        number: Some(9),
    };
    let write = CompositionWrite {
        rows: row_changes(&before, &after),
        operations: vec![(1, serde_json::to_string(&applied).unwrap())],
        versions: vec![(version.clone(), after.clone())],
        published: Some("v".into()),
        locks: vec![lock.clone()],
        seq: 1,
        last_number: 9,
        name: "Renamed".into(),
    };
    assert!(store.write_composition("done", &one, 1, &write).await.unwrap());
    let saved = store.load_composition("done").await.unwrap().unwrap();
    assert_eq!((&saved.composition, saved.seq, saved.last_number), (&after, 1, 9));
    assert_eq!((&saved.operations, &saved.published), (&vec![applied.clone()], &Some(version.clone())));
    assert_eq!(saved.named, [(version, after.clone())]);
    assert_eq!(store.composition_version("done", "v").await.unwrap(), Some(after));
    assert_eq!(store.operations("done", 0, 10).await.unwrap().len(), 1);
    assert!(store.operations("done", 1, 10).await.unwrap().is_empty());
    assert_eq!(store.lock_events("done", 10).await.unwrap(), [serde_json::to_string(&lock).unwrap()]);
    store.delete_composition("done").await.unwrap();
}
