//! Many operations at once, with messages that overtake each other, get lost or are doubled.

use super::super::{Direction, Key, Outcome};
use super::world::{Op, Random, SECOND, TRIE, World, entry};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PEERS: usize = 16;

fn key(random: &mut Random, wide: bool, id: u64) -> Key {
    if wide { Key(random.number() as u32) } else { Key::new(0.5 + random.below(1000) as f64 / 1000.0, id) }
}

/// Inserts, removes and takes at random, many at once. Each entry must be handed out once, or still be there at the end.
fn nothing_is_lost_or_doubled(seed: u64, wide: bool, loss: u64, doubles: u64) {
    let mut world = World::new(PEERS, seed);
    (world.loss, world.doubles) = (loss, doubles);
    let mut random = Random(seed);
    let mut inserted: Vec<(Key, u64)> = Vec::new();
    let (mut takes, mut removed) = (Vec::new(), BTreeSet::new());
    for phase in 0..6 {
        for _ in 0..250 {
            let peer = random.below(PEERS as u64) as usize;
            // Phases in which the trie grows, and phases in which it shrinks.
            let inserts = if phase % 2 == 0 { 80 } else { 25 };
            if random.chance(inserts) {
                let id = inserted.len() as u64;
                let key = key(&mut random, wide, id);
                inserted.push((key, id));
                world.insert(peer, entry(key, id, 1));
            } else if random.chance(5) && !inserted.is_empty() {
                let (key, id) = inserted[random.below(inserted.len() as u64) as usize];
                removed.insert(id);
                world.start(peer, Op::remove(TRIE, key, id, 1), false);
            } else {
                let direction = if random.chance(80) { Direction::Down } else { Direction::Up };
                takes.push(world.take(peer, 1, (Key::MIN, Key::MAX), direction));
            }
            let most = if random.chance(2) { 2 * SECOND } else { 20_000 };
            let pause = random.below(most);
            world.run_for(pause);
        }
        let pause = random.below(10 * SECOND);
        world.run_for(pause);
    }
    world.finish_all();
    (world.loss, world.doubles) = (0, 0);
    world.run_for(60 * SECOND);
    let mut taken = BTreeSet::new();
    for op in takes {
        if let Outcome::Taken(entry) = &world.done[&op] {
            assert!(taken.insert(entry.id), "{} was handed out twice", entry.id);
        }
    }
    for id in world.empty() {
        assert!(taken.insert(id), "{id} was handed out twice");
        assert!(!removed.contains(&id), "{id} was removed");
    }
    for (_, id) in inserted {
        assert!(taken.contains(&id) || removed.contains(&id), "{id} was lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn with_many_operations_at_once_nothing_is_lost_or_handed_out_twice(seed in any::<u32>(), wide in any::<bool>()) {
        nothing_is_lost_or_doubled(u64::from(seed), wide, 0, 0);
    }

    #[test]
    fn with_lost_and_doubled_messages_nothing_is_lost_or_handed_out_twice(
        seed in any::<u32>(),
        wide in any::<bool>(),
        loss in 0..20_u64,
        doubles in 0..20_u64,
    ) {
        nothing_is_lost_or_doubled(u64::from(seed), wide, loss, doubles);
    }
}
