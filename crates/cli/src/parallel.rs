//! Many independent computations on all processors, with a bar that shows how far they are.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Computes something for each item. What comes out is in the order of the items, whoever was faster.
pub(crate) fn map<T: Sync, R: Send>(
    name: &str,
    items: &[T],
    compute: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}");
    let bar = ProgressBar::new(items.len() as u64).with_message(name.to_owned());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(n) else { return };
                    let result = compute(n, item);
                    if let Ok(mut results) = results.lock() {
                        results[n] = Some(result);
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.into_iter().flatten().collect()
}
