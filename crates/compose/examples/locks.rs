//! How many locks a second are granted and released, on a composition of 10,000 units six levels deep.
//!
//! `cargo run --release -p catena-compose --example locks`
//!
//! Every case is measured several times; the middle counts.

use catena_compose::lock::{
    Answer, Locks, Mode, Outcome, Patience, Queue, Session, Table, Timing, Unit, Units, Want,
};
use std::time::Instant;

const UNITS: usize = 10_000;
const DEPTH: usize = 6;
const PAIRS: usize = 1_000_000;
const ROUNDS: usize = 5;

/// A tree of so many units and levels, as even as it can be. `shared` makes each eleventh leaf part of a second parent.
fn units(shared: bool) -> (Units, Vec<Unit>) {
    let mut units = Units::default();
    let mut level = vec![units.add(&[])];
    let width = (UNITS as f64).powf(1.0 / (DEPTH - 1) as f64).ceil() as usize;
    let mut leaves = level.clone();
    for _ in 1..DEPTH {
        let mut next = Vec::new();
        for parent in &level {
            for _ in 0..width {
                if units.len() < UNITS {
                    next.push(units.add(&[*parent]));
                }
            }
        }
        if next.is_empty() {
            break;
        }
        if shared && next.len() > 11 {
            for (n, leaf) in next.iter().enumerate().step_by(11) {
                let other = level[(n + level.len() / 2) % level.len()];
                if !units.parents(*leaf).contains(&other) {
                    units.connect(other, *leaf);
                }
            }
        }
        leaves.clone_from(&next);
        level = next;
    }
    (units, leaves)
}

/// Numbers that look random.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

fn measure(name: &str, mut work: impl FnMut() -> usize) {
    let mut rates: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let clock = Instant::now();
            let pairs = work();
            pairs as f64 / clock.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{name:60} {:>12.0} pairs/s", rates[ROUNDS / 2]);
}

fn main() {
    for shared in [false, true] {
        let word = if shared { "shared leaves" } else { "a tree" };
        let (tree, leaves) = units(shared);
        println!("{} units, {} leaves, {word}", tree.len(), leaves.len());
        for mode in [Mode::X, Mode::S] {
            let mut table = Table::new(tree.clone());
            let mut state = 1;
            measure(&format!("table: one session, {mode}"), || {
                for _ in 0..PAIRS {
                    let unit = leaves[next(&mut state) % leaves.len()];
                    assert_eq!(table.lock(Session(1), &[Want::new(unit, mode)]), Ok(()));
                    table.release(Session(1), unit);
                }
                PAIRS
            });
        }
        // 150 sessions have five locks each, and take one more and give it back in turn.
        let mut queue = Queue::new(Table::new(tree.clone()));
        let mut state = 7;
        for session in (0..150).map(Session) {
            for _ in 0..5 {
                let unit = leaves[next(&mut state) % leaves.len()];
                queue.request(session, &[Want::new(unit, Mode::X)], Patience::None);
            }
        }
        measure("queue: 150 sessions with locks of their own, X", || {
            let mut pairs = 0;
            for n in 0..PAIRS {
                let session = Session(n as u64 % 150);
                let unit = leaves[next(&mut state) % leaves.len()];
                if queue.table().entry(session, unit).is_some() {
                    continue;
                }
                if queue.request(session, &[Want::new(unit, Mode::X)], Patience::None) == Answer::Granted {
                    queue.release(session, unit);
                }
                pairs += 1;
            }
            pairs
        });
        let mut locks = Locks::new(Table::new(tree.clone()), Timing::default());
        measure("locks with leases and numbers: 150 sessions, X", || {
            for n in 0..PAIRS {
                let session = Session(n as u64 % 150);
                let unit = leaves[next(&mut state) % leaves.len()];
                let asked = locks.request(session, &[Want::new(unit, Mode::X)], Patience::None, n as u64);
                assert!(matches!(asked, Outcome::Granted(_)));
                locks.release(session, unit, n as u64);
                locks.take_events();
            }
            PAIRS
        });
    }
}
