//! Where the logs of tasks are.

use std::path::{Path, PathBuf};

/// The file with what a task of a chain has written in an attempt, to standard output or standard error.
pub fn log_file(logs: &Path, chain: u64, attempt: u32, task: usize, error: bool) -> PathBuf {
    let kind = if error { "err" } else { "out" };
    logs.join(format!("{chain}-{attempt}-{task}.{kind}"))
}
