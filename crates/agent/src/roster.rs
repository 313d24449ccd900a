//! Remembers which processes run, so that they can be ended after this process was killed.
//!
//! A killed agent cannot stop its tasks. The next one that uses the same directory finds their process
//! ids here, makes sure that they are what they were, and ends them before it runs anything again.

use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Names the state directory in the environment of every task.
pub(crate) const STATE_VARIABLE: &str = "CATENA_STATE";

/// Names the attempt in the environment of every task.
pub(crate) const ATTEMPT_VARIABLE: &str = "CATENA_ATTEMPT";

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

    /// Notes a process and returns its place.
    pub(crate) fn enter(&self, pid: Pid) -> u64 {
        let place = {
            let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            free.0.pop().unwrap_or_else(|| {
                free.1 += 1;
                free.1 - 1
            })
        };
        self.write(place, pid.as_raw_nonzero().get());
        place
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
    let pids = bytes.chunks_exact(8).filter_map(|c| c.try_into().ok().map(i64::from_le_bytes));
    let mut ended = 0;
    for pid in pids.filter(|p| *p > 1) {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            continue;
        };
        if belongs_to(pid, state) {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            ended += 1;
        }
    }
    ended
}

/// Whether a process was started by an agent of this state directory: process ids are used again.
fn belongs_to(pid: Pid, state: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let wanted = format!("{STATE_VARIABLE}={}", state.display());
    environment.split(|b| *b == 0).any(|entry| entry == wanted.as_bytes())
}
