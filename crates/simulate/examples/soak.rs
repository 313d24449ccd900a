//! Many small groups in which everything goes wrong that can, one for each seed: `soak [FIRST] [COUNT]`. Says which seeds
//! break a promise, and fails if any does.

use catena_simulate::space::{broken, trial};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Ok(first), Ok(count)) = (numbers.next().unwrap_or(Ok(0)), numbers.next().unwrap_or(Ok(10_000)))
    else {
        eprintln!("soak [FIRST] [COUNT]: two numbers");
        return ExitCode::from(2);
    };
    let [next, bad, started, wasted, again] = [first, 0, 0, 0, 0].map(AtomicU64::new);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= first + count {
                return;
            }
            let (load, outcome) = trial(seed, true);
            started.fetch_add(outcome.started, Relaxed);
            wasted.fetch_add(outcome.started.saturating_sub(outcome.committed + outcome.again), Relaxed);
            again.fetch_add(outcome.again, Relaxed);
            if let Some(what) = broken(&load, &outcome) {
                bad.fetch_add(1, Relaxed);
                println!("seed {seed}: {what}");
            }
            let done = seed + 1 - first;
            if done.is_multiple_of(1000) {
                eprintln!("{done} of {count}");
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let [bad, started, wasted, again] = [bad, started, wasted, again].map(AtomicU64::into_inner);
    println!("{count} groups, {bad} of which broke a promise");
    println!("{started} tasks started, {wasted} in vain, {again} once more because their data were lost");
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
