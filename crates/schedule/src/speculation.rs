//! Which executions take so long that another one is worth a try.
//!
//! An execution that takes much longer than expected has probably met a slow machine, and a second one would probably
//! be faster. It is worth its cost as soon as it is likely to end before the first one: one that is late by half of what
//! was expected is as likely as not late by much more.

use std::collections::{BTreeSet, HashMap};

/// When another execution of a task starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// An execution is late after so many times the expected time.
    pub factor: f64,
    /// No execution is late before it has taken so long, in nanoseconds: what is over soon need not be copied.
    pub least: u64,
    /// At most so many executions of a task go on at once.
    pub copies: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self { factor: 1.5, least: 0, copies: 3 }
    }
}

/// Watches executions.
#[derive(Debug, Default)]
pub struct Speculation {
    patience: Patience,
    /// The executions of each task: who executes it, and since when.
    running: HashMap<u32, Vec<Execution>>,
    /// When an execution will be late.
    deadlines: BTreeSet<(u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Execution {
    agent: u32,
    deadline: u64,
}

impl Speculation {
    /// Nothing is executed yet.
    pub fn new(patience: Patience) -> Self {
        Self { patience, ..Self::default() }
    }

    /// An agent has started a task that is expected to take so long.
    pub fn started(&mut self, task: u32, agent: u32, now: u64, expected: u64) {
        let patient = (expected as f64 * self.patience.factor) as u64;
        let deadline = now.saturating_add(patient.max(self.patience.least)).max(now + 1);
        self.running.entry(task).or_default().push(Execution { agent, deadline });
        self.deadlines.insert((deadline, task));
    }

    /// An execution is over.
    pub fn ended(&mut self, task: u32, agent: u32) {
        let Some(executions) = self.running.get_mut(&task) else { return };
        executions.retain(|e| e.agent != agent);
        if executions.is_empty() {
            self.forget(task);
        }
    }

    /// A task has ended, or nobody executes it any more.
    pub fn forget(&mut self, task: u32) {
        self.running.remove(&task);
        // What is left in `deadlines` is dropped when its time comes.
    }

    /// When the next execution will be late.
    pub fn next_late(&mut self) -> Option<u64> {
        while let Some((deadline, task)) = self.deadlines.first().copied() {
            if self.is_true(deadline, task) {
                return Some(deadline);
            }
            self.deadlines.pop_first();
        }
        None
    }

    fn is_true(&self, deadline: u64, task: u32) -> bool {
        self.running.get(&task).is_some_and(|all| all.iter().any(|e| e.deadline == deadline))
    }

    /// Tasks that should be executed once more, because all their executions are late. Each is named once until the new
    /// execution has started.
    pub fn late(&mut self, now: u64) -> Vec<u32> {
        let mut late = Vec::new();
        while let Some((deadline, task)) = self.deadlines.first().copied().filter(|(d, _)| *d <= now) {
            self.deadlines.pop_first();
            let Some(executions) = self.running.get(&task) else { continue };
            let is_new = executions.iter().any(|e| e.deadline == deadline);
            let all_late = executions.iter().all(|e| e.deadline <= now);
            if is_new && all_late && executions.len() < self.patience.copies {
                late.push(task);
            }
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_tried_once_more() {
        let mut s = Speculation::new(Patience::default());
        s.started(7, 0, 100, 1000);
        s.started(8, 1, 100, 100_000);
        assert_eq!(s.next_late(), Some(1600));
        assert!(s.late(1599).is_empty());
        assert_eq!(s.late(1600), [7]);
        assert!(s.late(2000).is_empty(), "named once");
        s.started(7, 2, 2000, 1000);
        assert!(s.late(3499).is_empty(), "the second one is not late yet");
        assert_eq!(s.late(3500), [7], "both are late");
        s.started(7, 3, 3500, 1000);
        assert!(s.late(9000).is_empty(), "three executions are enough");
        s.ended(7, 0);
        assert!(s.late(9000).is_empty());
    }

    #[test]
    fn what_has_ended_is_not_late() {
        let mut s = Speculation::new(Patience { copies: 3, ..Patience::default() });
        s.started(1, 0, 0, 10);
        s.forget(1);
        assert_eq!(s.next_late(), None);
        s.started(1, 0, 20, 10);
        assert_eq!((s.late(34), s.late(35)), (vec![], vec![1]));
        s.started(1, 1, 35, 10);
        assert_eq!(s.late(50), [1], "both are late");
    }
}
