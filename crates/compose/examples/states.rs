//! Every state that sessions can come into on every graph of five units: too much for the tests.
//!
//! `cargo run --release -p catena-compose --example states`

#[path = "../tests/compose/explore.rs"]
mod explore;

use catena_compose::lock::Mode;
use explore::{World, rooted_graphs};
use std::sync::Mutex;
use std::time::Instant;

fn main() {
    for (units, sessions, modes) in [(5, 2, &Mode::ALL[..]), (5, 3, &[Mode::S, Mode::U, Mode::X][..])] {
        let clock = Instant::now();
        let graphs = rooted_graphs(units);
        let left = Mutex::new(graphs.clone());
        let work = || {
            let mut states = 0;
            while let Some(arcs) = { left.lock().ok().and_then(|mut l| l.pop()) } {
                states += World::new(units, &arcs, sessions, modes).explore();
            }
            states
        };
        let states: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..std::thread::available_parallelism().map_or(1, usize::from))
                .map(|_| scope.spawn(work))
                .collect();
            threads.into_iter().map(|t| t.join().expect("everything holds")).sum()
        });
        let names: Vec<&str> = modes.iter().map(|m| m.name()).collect();
        println!(
            "{} graphs of {units} units, {sessions} sessions, {}: {states} states, everything holds ({:.0} s)",
            graphs.len(),
            names.join(" "),
            clock.elapsed().as_secs_f64()
        );
    }
}
