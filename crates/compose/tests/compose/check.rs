//! The locks, in every state that three sessions can come into on every small graph.

use crate::explore::{World, rooted_graphs};
use catena_compose::lock::Mode;
use std::sync::Mutex;

/// Explores all rooted graphs with so many units, two at a time. Returns the number of graphs and of states.
fn explore(units: u32, sessions: u64, modes: &[Mode]) -> (usize, usize) {
    let graphs = rooted_graphs(units);
    let left = Mutex::new(graphs.clone());
    let work = || {
        let mut states = 0;
        while let Some(arcs) = { left.lock().unwrap().pop() } {
            states += World::new(units, &arcs, sessions, modes).explore();
        }
        states
    };
    let states = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|t| t.join().expect("everything holds")).sum()
    });
    (graphs.len(), states)
}

#[test]
fn nothing_breaks_on_any_graph_of_two_and_three_units() {
    assert_eq!(explore(2, 3, &Mode::ALL).0, 1);
    let (graphs, states) = explore(3, 3, &Mode::ALL);
    assert_eq!(graphs, 3);
    println!("{states} states");
}

#[test]
fn nothing_breaks_on_any_graph_of_four_units() {
    let (graphs, states) = explore(4, 3, &Mode::ALL);
    assert_eq!(graphs, 21);
    println!("{states} states");
    assert!(states > 1_000_000, "{states}");
}
