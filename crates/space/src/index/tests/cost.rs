//! What operations cost in messages.

use super::super::{Direction, Key, Outcome, Trie};
use super::world::{Cause, Op, Random, World, entry};
use std::collections::BTreeSet;

struct Cost {
    insert: f64,
    take: f64,
    /// Beats and the like, for each operation.
    background: f64,
}

/// A thousand resources are taken and come back at random. The number of free ones wanders between 0 and 300.
fn steady_state(clients: usize, values: fn(u64) -> f64, direction: Direction, tides: bool) -> Cost {
    let mut world = World::new(clients, 5);
    let mut random = Random(11);
    let keys: Vec<Key> = (0..1000).map(|id| Key::new(values(id), id)).collect();
    let mut busy: Vec<u64> = (0..1000).collect();
    let mut free = 0_usize;
    let (mut inserts, mut takes) = (0_usize, 0_usize);
    let mut pending: BTreeSet<usize> = BTreeSet::new();
    let mut goal = 150;
    for stamp in 0..60_000 {
        if stamp == 10_000 {
            world.messages.clear();
            (inserts, takes) = (0, 0);
        }
        if random.below(400) == 0 {
            goal = random.below(301) as usize;
        }
        let towards = if !tides {
            50
        } else if free < goal {
            60
        } else {
            40
        };
        let grows = free == 0 || free < 300 && random.chance(towards);
        if grows && !busy.is_empty() {
            let at = random.below(busy.len() as u64) as usize;
            let id = busy.swap_remove(at);
            // A resource belongs to a peer, which inserts it.
            world.insert(id as usize % clients, entry(keys[id as usize], id, stamp));
            free += 1;
            inserts += 1;
        } else {
            let peer = random.below(clients as u64) as usize;
            let op = world.take(peer, 1, (Key::MIN, Key::MAX), direction);
            pending.insert(op);
            free = free.saturating_sub(1);
            takes += 1;
        }
        world.run_for(30_000);
        pending.retain(|op| match world.done.remove(op) {
            Some(Outcome::Taken(entry)) => {
                busy.push(entry.id);
                false
            }
            Some(_) => {
                free += 1;
                false
            }
            None => true,
        });
    }
    let count = |cause| world.messages.get(&cause).copied().unwrap_or_default() as f64;
    Cost {
        insert: count(Cause::Put) / inserts as f64,
        take: count(Cause::Take) / takes as f64,
        background: count(Cause::Time) / (inserts + takes) as f64,
    }
}

/// Values as machines have them: speeds, sizes of memory, and some from the whole scale.
fn speed(id: u64) -> f64 {
    0.5 + (id * 7919 % 1000) as f64 / 1000.0
}

fn size(id: u64) -> f64 {
    f64::from(1 << (id * 7919 % 7)) * 1e9
}

fn anything(id: u64) -> f64 {
    2_f64.powf((id * 7919 % 1000) as f64 / 1000.0 * 47.9)
}

fn check(name: &str, values: fn(u64) -> f64, clients: usize, tides: bool, limits: (f64, f64)) {
    let cost = steady_state(clients, values, Direction::Down, tides);
    let Cost { insert, take, background } = cost;
    println!(
        "{name}, {clients} clients, tides {tides}: {insert:.2} for each insert, {take:.2} for each take, {background:.2} besides"
    );
    assert!(insert <= limits.0 && take <= limits.1, "{name}: {insert:.2}, {take:.2}");
}

#[test]
fn with_a_warm_memory_the_usual_operation_asks_once() {
    check("speeds", speed, 16, false, (2.8, 3.0));
    check("sizes", size, 16, false, (3.6, 3.7));
    check("anything", anything, 16, false, (2.8, 3.0));
}

#[test]
fn without_a_memory_that_can_be_trusted_an_operation_asks_twice() {
    check("speeds", speed, 1000, false, (5.0, 5.2));
    check("sizes", size, 1000, false, (5.5, 5.7));
    check("anything", anything, 1000, false, (4.8, 5.0));
}

#[test]
fn when_the_number_of_free_resources_goes_up_and_down_quickly_it_costs_little_more() {
    check("speeds", speed, 16, true, (3.7, 4.0));
    check("sizes", size, 16, true, (4.8, 5.5));
    check("anything", anything, 16, true, (3.2, 3.4));
}

#[test]
fn with_shards_the_load_is_spread() {
    let mut world = World::new(64, 2);
    for id in 0..6400_u64 {
        let trie = Trie { kind: Trie::FREE, shard: (id % 32) as u16 };
        let op = Op::insert(trie, entry(Key::new(speed(id), id), id, 1));
        world.start(id as usize % 64, op, false);
        world.run_for(10_000);
    }
    let (most, sum) = (world.received.iter().max().unwrap(), world.received.iter().sum::<usize>());
    assert!(*most < 8 * sum / 64, "at most {most}, on average {}", sum / 64);
}
