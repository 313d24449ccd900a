//! One operation after the other: a trie does what an ordered map does.

use super::super::{Direction, Key, Outcome};
use super::world::{Op, Random, SECOND, TRIE, World, entry};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Keys of values as machines have them, or anywhere.
fn key(random: &mut Random, wide: bool, id: u64) -> Key {
    if wide { Key(random.number() as u32) } else { Key::new(0.5 + random.below(1000) as f64 / 1000.0, id) }
}

fn agrees_with_a_map(seed: u64, operations: usize, wide: bool) {
    let mut world = World::new(20, seed);
    let mut random = Random(seed);
    let mut model: BTreeMap<(Key, u64), u64> = BTreeMap::new();
    let mut grows = true;
    for stamp in 0..operations as u64 {
        if random.chance(1) {
            grows = !grows;
        }
        let peer = random.below(20) as usize;
        match random.below(20) {
            0..=16 if grows => {
                let id = random.below(10_000);
                let entry = entry(key(&mut random, wide, id), id, stamp);
                model.insert((entry.key, id), stamp);
                let op = world.insert(peer, entry);
                assert!(matches!(world.finish(op), Outcome::Stored(_)));
            }
            17 if !model.is_empty() => {
                let at = random.below(model.len() as u64) as usize;
                let (&(key, id), _) = model.iter().nth(at).unwrap();
                model.remove(&(key, id));
                let op = world.start(peer, Op::remove(TRIE, key, id, stamp), false);
                assert!(matches!(world.finish(op), Outcome::Stored(_)));
            }
            _ => {
                let query = [1, 1, 2, 7][random.below(4) as usize];
                let bounds = match random.below(3) {
                    0 => (Key::MIN, Key::MAX),
                    1 => (key(&mut random, wide, 0), Key::MAX),
                    _ => {
                        let (a, b) = (key(&mut random, wide, 0), key(&mut random, wide, 1));
                        (a.min(b), a.max(b))
                    }
                };
                let up = random.chance(50);
                let mut fitting = model
                    .range((bounds.0, 0)..=(bounds.1, u64::MAX))
                    .filter(|((_, id), _)| id % u64::from(query) == 0)
                    .map(|(name, _)| *name);
                let expected = if up { fitting.next() } else { fitting.next_back() };
                let direction = if up { Direction::Up } else { Direction::Down };
                let op = world.take(peer, query, bounds, direction);
                match (world.finish(op), expected) {
                    (Outcome::Taken(entry), Some(name)) => {
                        assert_eq!((entry.key, entry.id), name);
                        model.remove(&name);
                    }
                    (Outcome::Nothing, None) => {}
                    (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
                }
            }
        }
        // What hosts tell each other arrives before the next operation begins.
        world.quiesce();
    }
    assert_eq!(world.sizes().2, model.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_trie_does_what_an_ordered_map_does(seed in any::<u32>(), wide in any::<bool>()) {
        agrees_with_a_map(u64::from(seed), 600, wide);
    }
}

#[test]
fn entries_are_handed_out_in_order_within_the_bounds() {
    for direction in [Direction::Up, Direction::Down] {
        let mut world = World::new(10, 7);
        for id in 0..500 {
            let op = world.insert(id as usize % 10, entry(Key::new(id as f64, id), id, 1));
            world.finish(op);
        }
        world.run_for(10 * SECOND);
        let bounds = (Key::least(100.0), Key::greatest(299.0));
        let mut ids = Vec::new();
        loop {
            let op = world.take(3, 1, bounds, direction);
            let Outcome::Taken(entry) = world.finish(op) else { break };
            ids.push(entry.id);
            world.quiesce();
        }
        let mut expected: Vec<u64> = (100..300).collect();
        if direction == Direction::Down {
            expected.reverse();
        }
        assert_eq!(ids, expected);
        assert_eq!(world.sizes().2, 300);
    }
}

#[test]
fn an_empty_trie_is_one_request() {
    let mut world = World::new(10, 1);
    let op = world.take(0, 1, (Key::MIN, Key::MAX), Direction::Down);
    assert_eq!(world.finish(op), Outcome::Nothing);
    assert_eq!(world.messages.values().sum::<usize>(), 2);
}

#[test]
fn what_was_removed_does_not_come_back_by_a_late_insert() {
    let mut world = World::new(10, 1);
    let old = entry(Key(5), 1, 3);
    for op in [Op::insert(TRIE, old.clone()), Op::remove(TRIE, Key(5), 1, 3), Op::insert(TRIE, old.clone())] {
        let op = world.start(2, op, false);
        world.finish(op);
    }
    let op = world.take(0, 1, (Key::MIN, Key::MAX), Direction::Down);
    assert_eq!(world.finish(op), Outcome::Nothing);
    let op = world.insert(2, entry(Key(5), 1, 4));
    assert_eq!(world.finish(op), Outcome::Stored(true), "a later stamp is another entry");
    assert_eq!(world.empty().len(), 1);
}

#[test]
fn a_trie_that_gets_empty_collapses_and_vanishes() {
    for wide in [true, false] {
        let mut world = World::new(10, 3);
        let mut random = Random(3);
        for id in 0..400 {
            let op = world.insert(id as usize % 10, entry(key(&mut random, wide, id), id, 1));
            world.finish(op);
        }
        assert!(world.sizes().0 >= 12, "{:?}", world.sizes());
        for left in (0..400).rev() {
            let op = world.take(left % 10, 1, (Key::MIN, Key::MAX), Direction::Down);
            assert!(matches!(world.finish(op), Outcome::Taken(_)));
            world.run_for(SECOND);
            if left == 20 {
                assert!(world.sizes().0 <= 3, "{:?}", world.sizes());
            }
        }
        assert!(world.sizes().0 <= 1, "{:?}", world.sizes());
        world.run_for(200 * SECOND);
        assert_eq!(world.sizes(), (0, 0, 0));
    }
}
