//! When everything could be over.
//!
//! Ready tasks go in the order of their ranks, each to whoever has room first. That is asked again for every place that
//! is considered, so it has to be quick: slots are kept in order while a step is decided, and nothing is looked up.

/// When slots are free, the earliest first.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    free: Vec<u64>,
    now: u64,
    /// The sum of how long they are not free.
    busy: u64,
}

impl Lanes {
    pub(super) fn new(mut free: Vec<u64>, now: u64) -> Self {
        free.sort_unstable();
        let busy = free.iter().map(|f| f - now).sum();
        Self { free, now, busy }
    }

    pub(super) fn busy(&self) -> u64 {
        self.busy
    }

    /// The slots of an agent are free at other times than before.
    pub(super) fn change(&mut self, before: &[u64], after: &[u64]) {
        let (gone, new) = differences(before, after);
        for value in gone {
            if let Ok(place) = self.free.binary_search(&value) {
                self.free.remove(place);
                self.busy -= value - self.now;
            }
        }
        for value in new {
            let place = self.free.partition_point(|v| *v < value);
            self.free.insert(place, value);
            self.busy += value - self.now;
        }
    }
}

/// What is only in the one, and what is only in the other.
fn differences(before: &[u64], after: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut gone, mut new) = (before.to_vec(), Vec::new());
    for value in after {
        match gone.iter().position(|v| v == value) {
            Some(place) => {
                gone.swap_remove(place);
            }
            None => new.push(*value),
        }
    }
    (gone, new)
}

/// A ready task that has no place yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) task: u32,
    pub(super) rank: u64,
    /// How long it takes where nothing of its data is.
    pub(super) length: u64,
    /// How much of that is bringing its data.
    pub(super) transfer: u64,
}

impl Item {
    /// When everything is over that follows from it, and when its slot is free again, if its data are brought while others
    /// compute on that slot. What brings them carries also those of other slots.
    fn after_others(&self, free: u64, now: u64, sharing: u64) -> (u64, u64) {
        let compute = self.length - self.transfer;
        let end = free.max(now + self.transfer) + compute;
        (end + self.rank.saturating_sub(self.length), end.max(free + self.transfer * sharing))
    }
}

/// Ready tasks without a place, the most urgent first.
#[derive(Debug, Default)]
pub(super) struct Lineup {
    items: Vec<Option<Item>>,
    /// Where tasks are in it, by task.
    places: std::collections::HashMap<u32, usize>,
    /// Whether data are brought while other tasks compute, and how many slots share what brings them.
    sharing: Option<u64>,
    /// Everything is over at the latest so long after slots are free on average: whoever is first to have room has it no
    /// later than others on average.
    bound: u64,
}

impl Lineup {
    pub(super) fn new(items: impl Iterator<Item = Item>, slots: u64, sharing: Option<u64>) -> Self {
        let items: Vec<Option<Item>> = items.map(Some).collect();
        let (mut sum, mut bound) = (0u64, 0);
        for item in items.iter().flatten() {
            let rest = if sharing.is_some() { item.rank.max(item.length) } else { item.rank };
            bound = bound.max(sum / slots.max(1) + 1 + rest);
            let brings = item.transfer.saturating_mul(sharing.unwrap_or(1));
            sum = sum.saturating_add(item.length - item.transfer).saturating_add(brings);
        }
        let places = items.iter().flatten().map(|i| i.task).zip(0..).collect();
        Self { items, places, sharing, bound }
    }

    /// A task has a place.
    pub(super) fn remove(&mut self, task: u32) {
        if let Some(place) = self.places.remove(&task) {
            self.items[place] = None;
        }
        // What is gone must not be passed by again and again.
        if self.items.len() > 2 * self.places.len() + 64 {
            self.items.retain(Option::is_some);
            self.places = self.items.iter().flatten().map(|i| i.task).zip(0..).collect();
        }
    }

    /// When everything that follows from these tasks would be over. It is not said exactly if it is later than `limit`.
    pub(super) fn project(&self, lanes: &Lanes, limit: u64, budget: &mut usize) -> u64 {
        self.walk(None, &lanes.free, lanes.now, limit, budget)
    }

    /// Whether that is not later than `limit` if one of them goes to an agent whose slots are free then at other times.
    pub(super) fn is_in_time(
        &self,
        task: u32,
        lanes: &Lanes,
        (before, after): (&[u64], &[u64]),
        limit: u64,
        budget: &mut usize,
    ) -> bool {
        let (gone, new) = differences(before, after);
        let sum = |values: &[u64]| values.iter().map(|v| v - lanes.now).sum::<u64>();
        let busy = lanes.busy + sum(&new) - sum(&gone);
        if lanes.now + busy / (lanes.free.len() as u64).max(1) + 1 + self.bound <= limit {
            return true;
        }
        // Of slots that are free later than so many others as there are tasks, none is needed.
        let needed = (self.places.len() + gone.len()).min(lanes.free.len());
        let mut free = Vec::with_capacity(needed + new.len());
        free.extend_from_slice(&lanes.free[..needed]);
        for value in gone {
            if let Ok(place) = free.binary_search(&value) {
                free.remove(place);
            }
        }
        for value in new {
            let place = free.partition_point(|v| *v < value);
            free.insert(place, value);
        }
        self.walk(Some(task), &free, lanes.now, limit, budget) <= limit
    }

    fn walk(&self, without: Option<u32>, free: &[u64], now: u64, limit: u64, budget: &mut usize) -> u64 {
        let mut end = now;
        if free.is_empty() {
            return end;
        }
        let mut heap = free[..free.len().min(self.places.len()).max(1)].to_vec();
        for item in self.items.iter().flatten() {
            if Some(item.task) == without {
                continue;
            }
            *budget = budget.saturating_sub(1);
            let (over, free) = match self.sharing {
                None => (heap[0] + item.rank, heap[0] + item.length),
                Some(sharing) => item.after_others(heap[0], now, sharing),
            };
            end = end.max(over);
            if end > limit {
                break;
            }
            replace_first(&mut heap, free);
        }
        end
    }
}

/// Replaces the smallest number of a heap in which each has four below it.
fn replace_first(heap: &mut [u64], value: u64) {
    let mut place = 0;
    loop {
        let first = 4 * place + 1;
        let (mut least, mut below) = (value, place);
        let last = heap.len().min(first + 4);
        for (i, other) in heap.iter().enumerate().take(last).skip(first) {
            if *other < least {
                (least, below) = (*other, i);
            }
        }
        heap[place] = least;
        if below == place {
            return;
        }
        place = below;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// When everything is over, found in the plainest way.
    fn plainly(tasks: &[(u64, u64)], mut free: Vec<u64>) -> u64 {
        let mut end = 0;
        for (rank, length) in tasks {
            let Some(first) = free.iter_mut().min() else { break };
            end = end.max(*first + rank);
            *first += length;
        }
        end
    }

    proptest! {
        #[test]
        fn what_is_quick_is_right(
            mut tasks in prop::collection::vec((0..1000u64, 1..300u64), 1..40),
            slots in prop::collection::vec(0..500u64, 1..30),
            chosen in any::<prop::sample::Index>(),
            agent in 1..4usize,
            end in 0..900u64,
            limit in 0..2000u64,
        ) {
            tasks.sort_unstable_by(|a, b| b.cmp(a));
            let item = |(task, (rank, length)): (u32, &(u64, u64))| Item { task, rank: *rank, length: *length, transfer: 0 };
            let lineup = Lineup::new((0..).zip(&tasks).map(item), slots.len() as u64, None);
            let lanes = Lanes::new(slots.clone(), 0);
            let mut questions = 1000;
            prop_assert_eq!(lineup.project(&lanes, u64::MAX, &mut questions), plainly(&tasks, slots.clone()));
            prop_assert_eq!(questions, 1000 - tasks.len());
            // One of them goes to an agent that has the first of these slots.
            let agent = agent.min(slots.len());
            let mut after = slots[..agent].to_vec();
            after[0] = end;
            let free = after.iter().chain(&slots[agent..]).copied().collect();
            let chosen = chosen.index(tasks.len());
            let in_time =
                lineup.is_in_time(chosen as u32, &lanes, (&slots[..agent], &after), limit, &mut questions);
            tasks.remove(chosen);
            prop_assert_eq!(in_time, plainly(&tasks, free) <= limit);
        }

        #[test]
        fn slots_stay_in_order(slots in prop::collection::vec(0..50u64, 2..30), ends in prop::collection::vec(0..90u64, 1..9)) {
            let mut all = slots.clone();
            let mut lanes = Lanes::new(slots.clone(), 0);
            for end in ends {
                lanes.change(&all[..2], &[end, all[1]]);
                all[0] = end;
                all.rotate_left(1);
            }
            prop_assert_eq!(lanes.busy(), all.iter().sum::<u64>());
            all.sort_unstable();
            prop_assert_eq!(lanes.free, all);
        }
    }

    #[test]
    fn a_lineup_forgets_who_is_gone() {
        let item = |task: u32| Item { task, rank: u64::from(1000 - task), length: 1, transfer: 0 };
        let mut lineup = Lineup::new((0..500).map(item), 1, None);
        for task in (0..500).filter(|t| *t != 300) {
            lineup.remove(task);
        }
        assert!(lineup.items.len() < 100);
        let lanes = Lanes::new(vec![5], 5);
        assert_eq!(lineup.project(&lanes, u64::MAX, &mut 9), 705);
        lineup.remove(300);
        assert_eq!(lineup.project(&lanes, u64::MAX, &mut 9), 5);
    }
}
