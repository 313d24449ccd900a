//! Remembers which processes run, so that they can be ended after this process was killed.
//!
//! A killed agent cannot stop its tasks. The next one that uses the same directory finds their process
//! ids here, makes sure that they are what they were, and ends them before it runs anything again. If the
//! agent was killed just when it started a process, its id is not known: then all processes are looked at.

use rustix::process::{Pid, Signal};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Names the state directory in the environment of every task.
pub(crate) const STATE_VARIABLE: &str = "CATENA_STATE";

/// Names the attempt in the environment of every task.
pub(crate) const ATTEMPT_VARIABLE: &str = "CATENA_ATTEMPT";

/// Stands for a process whose id is not known yet.
const STARTING: i32 = -1;

/// The processes of one agent, in a file of eight bytes per slot.
pub struct Roster {
    file: Option<File>,
    free: Mutex<(Vec<u64>, u64)>,
}

impl Roster {
    /// An empty roster in the state directory.
    pub fn create(state: &Path) -> Self {
        let file = File::options().create(true).write(true).truncate(true).open(roster_path(state)).ok();
        Self { file, free: Mutex::new((Vec::new(), 0)) }
    }

    /// Notes that a process is about to start, and returns its place.
    pub(crate) fn reserve(&self) -> u64 {
        let place = {
            let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            free.0.pop().unwrap_or_else(|| {
                free.1 += 1;
                free.1 - 1
            })
        };
        self.write(place, STARTING);
        place
    }

    /// Notes the process at a place.
    pub(crate) fn enter(&self, place: u64, pid: Pid) {
        self.write(place, pid.as_raw_nonzero().get());
    }

    /// Forgets the process at a place.
    pub(crate) fn leave(&self, place: u64) {
        self.write(place, 0);
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0.push(place);
    }

    fn write(&self, place: u64, pid: i32) {
        if let Some(file) = &self.file {
            // Losing the note costs a stray process after a crash, not correctness.
            let _ = file.write_all_at(&i64::from(pid).to_le_bytes(), place * 8);
        }
    }
}

fn roster_path(state: &Path) -> PathBuf {
    state.join("processes")
}

/// Ends what an agent that was killed has left running. Returns how many process groups there were.
pub fn end_leftovers(state: &Path) -> usize {
    let mut bytes = Vec::new();
    let read = File::open(roster_path(state)).and_then(|mut f| f.read_to_end(&mut bytes));
    if read.is_err() {
        return 0;
    }
    let entries = bytes.chunks_exact(8).filter_map(|c| c.try_into().ok().map(i64::from_le_bytes));
    let entries: Vec<i64> = entries.collect();
    let mut pids: Vec<i32> =
        entries.iter().filter(|p| **p > 1).filter_map(|p| i32::try_from(*p).ok()).collect();
    if entries.contains(&i64::from(STARTING)) {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.extend(all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()));
    }
    let pids = pids.into_iter().filter_map(Pid::from_raw).filter(|pid| belongs_to(*pid, state));
    let groups: BTreeSet<i32> = pids
        .filter_map(|pid| rustix::process::getpgid(Some(pid)).ok())
        // Who asks may be a task itself.
        .filter(|group| *group != rustix::process::getpgrp())
        .map(|group| group.as_raw_nonzero().get())
        .collect();
    for group in groups.iter().filter_map(|group| Pid::from_raw(*group)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    groups.len()
}

/// Whether a process was started by an agent of this state directory: process ids are used again.
fn belongs_to(pid: Pid, state: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let wanted = format!("{STATE_VARIABLE}={}", state.display());
    environment.split(|b| *b == 0).any(|entry| entry == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    #[test]
    fn processes_are_ended_whether_or_not_there_was_time_to_note_them() {
        for is_noted in [true, false] {
            let state = tempfile::tempdir().unwrap();
            let roster = Roster::create(state.path());
            let place = roster.reserve();
            let mut sleep = Command::new("sleep");
            let mut sleep =
                sleep.arg("70").env(STATE_VARIABLE, state.path()).process_group(0).spawn().unwrap();
            if is_noted {
                roster.enter(place, Pid::from_child(&sleep));
            }
            // For a moment a new process has no environment that others could see.
            let begin = std::time::Instant::now();
            while !belongs_to(Pid::from_child(&sleep), state.path()) {
                assert!(begin.elapsed().as_secs() < 60, "it never gets its environment");
                std::thread::yield_now();
            }
            assert_eq!(end_leftovers(state.path()), 1);
            assert_eq!(sleep.wait().unwrap().signal(), Some(9));
            assert_eq!(end_leftovers(state.path()), 0);
        }
    }
}
