//! Hosts that crash, and peers that come back with nothing.

use super::super::{Entry, Key};
use super::world::{Random, SECOND, World, entry};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PEERS: usize = 20;
const RESOURCES: u64 = 200;

/// Everybody publishes what it has, and finds it published already or not.
fn refresh(world: &mut World, keys: &[Key], time: u64) {
    for id in 0..RESOURCES {
        let peer =
            (id as usize..id as usize + PEERS).map(|p| p % PEERS).find(|p| world.is_alive(*p)).unwrap();
        let stamp = world.now;
        world.insert(peer, Entry { life: 70 * SECOND, ..entry(keys[id as usize], id, stamp) });
        world.run_for(time / RESOURCES);
    }
}

fn heals(seed: u64, wide: bool, loss: u64) {
    let mut world = World::new(PEERS, seed);
    world.loss = loss;
    let mut random = Random(seed);
    let keys: Vec<Key> = (0..RESOURCES)
        .map(|id| if wide { Key(random.number() as u32) } else { Key::new(1.0 + random.below(9) as f64, id) })
        .collect();
    refresh(&mut world, &keys, 30 * SECOND);
    for _ in 0..6 {
        for _ in 0..2 {
            let peer = 1 + random.below(PEERS as u64 - 1) as usize;
            if world.is_alive(peer) {
                world.crash(peer);
            } else {
                world.restart(peer);
            }
        }
        refresh(&mut world, &keys, 30 * SECOND);
    }
    world.finish_all();
    world.loss = 0;
    // What was lost is there again after a refresh, as soon as the nodes have found each other.
    world.run_for(25 * SECOND);
    refresh(&mut world, &keys, 30 * SECOND);
    world.finish_all();
    world.quiesce();
    let all: BTreeSet<u64> = world.empty().into_iter().collect();
    assert_eq!(all, (0..RESOURCES).collect(), "all can be taken");
    world.run_for(400 * SECOND);
    assert_eq!(world.sizes(), (0, 0, 0), "nothing is left over");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_crashes_take_away_comes_back_with_a_refresh(seed in any::<u32>(), wide in any::<bool>(), loss in 0..10_u64) {
        heals(u64::from(seed), wide, loss);
    }
}

#[test]
fn when_the_host_of_the_root_crashes_the_trie_heals() {
    let mut world = World::new(PEERS, 9);
    let keys: Vec<Key> = (0..RESOURCES).map(|id| Key::new(id as f64, id)).collect();
    refresh(&mut world, &keys, 30 * SECOND);
    let (leaves, inner, _) = world.sizes();
    assert!(leaves >= 6 && inner >= 5, "{:?}", world.sizes());
    let root = world.host_of_root();
    world.crash(root);
    world.run_for(25 * SECOND);
    refresh(&mut world, &keys, 30 * SECOND);
    world.quiesce();
    let all: BTreeSet<u64> = world.empty().into_iter().collect();
    assert_eq!(all.len() as u64, RESOURCES);
}

#[test]
fn when_the_ring_changes_nodes_move_to_their_new_hosts() {
    let mut world = World::new(PEERS, 4);
    world.crash(3);
    world.crash(8);
    let keys: Vec<Key> = (0..RESOURCES).map(|id| Key::new(id as f64, id)).collect();
    refresh(&mut world, &keys, 10 * SECOND);
    world.quiesce();
    world.restart(3);
    world.restart(8);
    world.run_for(10 * SECOND);
    world.quiesce();
    let all: BTreeSet<u64> = world.empty().into_iter().collect();
    assert_eq!(all.len() as u64, RESOURCES, "nothing was lost");
}
