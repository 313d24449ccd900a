//! What waits at an agent: its local ready queue, as in the paper on ADAGE (section III.A).

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Tasks that wait at an agent, the most urgent first, in two parts: those it was given by the scheduler, and those it
/// received from other agents, which it does not give away again. `K` names tasks, `R` says how urgent they are.
#[derive(Clone, Debug)]
pub struct ReadyQueue<K = u32, R = u64> {
    tasks: BTreeSet<(Reverse<R>, K)>,
    entries: HashMap<K, Entry<R>>,
    load: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<R> {
    rank: R,
    time: u64,
    is_own: bool,
}

impl<K, R> Default for ReadyQueue<K, R> {
    fn default() -> Self {
        Self { tasks: BTreeSet::new(), entries: HashMap::new(), load: 0 }
    }
}

impl<K: Copy + Ord + Hash, R: Copy + Ord> ReadyQueue<K, R> {
    /// A task waits here that is expected to take so long. Whether it is new here.
    pub fn push(&mut self, task: K, rank: R, time: u64, is_own: bool) -> bool {
        if self.entries.contains_key(&task) {
            return false;
        }
        self.entries.insert(task, Entry { rank, time, is_own });
        self.tasks.insert((Reverse(rank), task));
        self.load += time;
        true
    }

    /// A task does not wait here any more.
    pub fn remove(&mut self, task: K) -> bool {
        let Some(entry) = self.entries.remove(&task) else { return false };
        self.tasks.remove(&(Reverse(entry.rank), task));
        self.load -= entry.time;
        true
    }

    /// Takes the most urgent task out that can start.
    pub fn pop(&mut self, mut can_start: impl FnMut(K) -> bool) -> Option<K> {
        let task = self.tasks.iter().map(|(_, task)| *task).find(|task| can_start(*task))?;
        self.remove(task);
        Some(task)
    }

    /// How long everything that waits here is expected to take.
    pub fn load(&self) -> u64 {
        self.load
    }

    /// How many tasks wait here.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether nothing waits here.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Tasks to give away: half of those that are its own, the least urgent first, as far as they are worth it.
    pub fn gift(&self, mut is_worth: impl FnMut(K) -> bool) -> Vec<K> {
        let own = |task: &K| self.entries.get(task).is_some_and(|e| e.is_own);
        let own: Vec<K> = self.tasks.iter().rev().map(|(_, task)| *task).filter(own).collect();
        let half = own.len().div_ceil(2);
        own.into_iter().filter(|task| is_worth(*task)).take(half).collect()
    }

    /// All tasks that wait here, the most urgent first.
    pub fn tasks(&self) -> impl Iterator<Item = K> {
        self.tasks.iter().map(|(_, task)| *task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_task_that_can_start_comes_first() {
        let mut queue: ReadyQueue = ReadyQueue::default();
        for (task, rank) in [(1, 10), (2, 30), (3, 20)] {
            assert!(queue.push(task, rank, 5, true));
        }
        assert!(!queue.push(2, 1, 1, false), "a task waits once");
        assert_eq!(queue.load(), 15);
        assert_eq!(queue.pop(|t| t != 2), Some(3));
        assert_eq!((queue.pop(|_| true), queue.pop(|_| true), queue.pop(|_| true)), (Some(2), Some(1), None));
        assert_eq!(queue.load(), 0);
    }

    #[test]
    fn half_of_its_own_tasks_are_given_the_least_urgent_first() {
        let mut queue: ReadyQueue = ReadyQueue::default();
        for task in 0..4 {
            queue.push(task, u64::from(task), 1, true);
        }
        queue.push(9, 0, 1, false);
        assert_eq!(queue.gift(|_| true), [0, 1]);
        assert_eq!(queue.gift(|t| t > 0), [1, 2]);
    }
}
