//! Which tasks can be given out together.
//!
//! A task may name only tasks that are given out together with it as those it waits for. So it is held back until all
//! others that it waits for are over.

/// Holds tasks back. They are numbered from 1, in the order in which they are added.
#[derive(Debug, Default)]
pub(super) struct Gate {
    tasks: Vec<Held>,
    /// Counts what was given out together.
    batch: u32,
    given: Vec<u32>,
}

#[derive(Debug)]
struct Held {
    stage: Stage,
    /// So many of those it waits for are not over.
    open: u32,
    /// So many of these are in a batch, and which.
    beside: (u32, u32),
    dependents: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Held,
    Given(u32),
    Over,
}

impl Gate {
    /// The next task waits for these.
    pub(super) fn add(&mut self, sources: &[u32]) {
        let number = self.tasks.len() as u32 + 1;
        let (mut open, mut beside, batch) = (0, 0, self.batch);
        for source in sources {
            let source = self.at(*source);
            if source.stage != Stage::Over {
                open += 1;
                source.dependents.push(number);
            }
            beside += u32::from(source.stage == Stage::Given(batch));
        }
        let held = Held { stage: Stage::Held, open, beside: (beside, batch), dependents: Vec::new() };
        self.tasks.push(held);
        self.give(vec![number]);
    }

    /// A task is over. Returns whether it was given out and was not over before.
    pub(super) fn over(&mut self, number: u32) -> bool {
        let task = (number as usize).checked_sub(1).and_then(|n| self.tasks.get_mut(n));
        let Some(task) = task.filter(|t| matches!(t.stage, Stage::Given(_))) else { return false };
        task.stage = Stage::Over;
        let dependents = std::mem::take(&mut task.dependents);
        for dependent in &dependents {
            self.at(*dependent).open -= 1;
        }
        self.give(dependents);
        true
    }

    /// What is given out now, by number.
    pub(super) fn take(&mut self) -> Vec<u32> {
        self.batch += 1;
        let mut given = std::mem::take(&mut self.given);
        given.sort_unstable();
        given
    }

    /// Whether a task is over.
    pub(super) fn is_over(&self, number: u32) -> bool {
        let task = (number as usize).checked_sub(1).and_then(|n| self.tasks.get(n));
        task.is_some_and(|t| t.stage == Stage::Over)
    }

    /// Gives out those of some tasks that can be, and what can be because of that.
    fn give(&mut self, mut tasks: Vec<u32>) {
        let batch = self.batch;
        while let Some(number) = tasks.pop() {
            let task = self.at(number);
            let beside = if task.beside.1 == batch { task.beside.0 } else { 0 };
            if task.stage != Stage::Held || task.open != beside {
                continue;
            }
            task.stage = Stage::Given(batch);
            let dependents = task.dependents.clone();
            self.given.push(number);
            for dependent in dependents {
                let beside = &mut self.at(dependent).beside;
                *beside = if beside.1 == batch { (beside.0 + 1, batch) } else { (1, batch) };
                tasks.push(dependent);
            }
        }
    }

    fn at(&mut self, number: u32) -> &mut Held {
        &mut self.tasks[number as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_held_back_until_all_that_it_waits_for_is_over_or_beside_it() {
        let mut gate = Gate::default();
        for sources in [&[][..], &[1], &[1, 2]] {
            gate.add(sources);
        }
        assert_eq!(gate.take(), [1, 2, 3]);
        for sources in [&[1][..], &[2, 4], &[5], &[]] {
            gate.add(sources);
        }
        assert_eq!(gate.take(), [7], "the others wait for tasks that were given out before");
        assert!(gate.over(1) && !gate.over(1) && !gate.over(5) && !gate.over(0) && !gate.over(99));
        assert_eq!(gate.take(), [4], "5 waits for 2 as well");
        gate.over(2);
        assert!(gate.take().is_empty(), "4 was given out before");
        gate.over(4);
        assert_eq!(gate.take(), [5, 6]);
    }
}
