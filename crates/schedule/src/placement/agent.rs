//! What an agent was given, and what it does with it.
//!
//! An agent that holds nothing in advance has a slot for everything it was given, and brings data while the slot waits.
//! One that holds tasks in advance brings their data while others compute: its link carries one transfer after the
//! other, and whenever a slot is free the most urgent task starts whose data are there.

use super::Urgency;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A task that an agent was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) task: u32,
    pub(super) urgency: Urgency,
    /// How many slots it takes.
    pub(super) width: usize,
    pub(super) compute: u64,
    /// How long it takes to bring what is missing of its data,
    pub(super) brings: u64,
    /// and when they are expected to be there.
    pub(super) data: u64,
    /// When it should end, once it has started,
    pub(super) due: u64,
    /// and when it is expected to end.
    pub(super) end: u64,
    /// How long it is from there to the end of everything.
    pub(super) after: u64,
    pub(super) has_started: bool,
    /// For whom it was asked back.
    pub(super) asked_for: Option<u32>,
    /// How often somebody has given it back.
    pub(super) returns: u8,
    /// Whether it came back here after it was asked back from here: then it stays.
    pub(super) is_settled: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Agent {
    /// Agents of a kind are alike but for what they have and do.
    pub(super) kind: usize,
    pub(super) is_up: bool,
    /// How many tasks of one processor it can execute at once.
    pub(super) slots: usize,
    /// How many more of them can wait there.
    pub(super) ahead: usize,
    pub(super) idle_since: u64,
    /// What it was given, by task.
    given: Vec<Given>,
    /// How many slots all of that takes.
    used: usize,
    /// When a slot is free for what is less urgent than everything else, if none is now.
    free: u64,
    /// When everything is expected to be there that is brought to it.
    pub(super) link: u64,
    /// When everything is expected to be sent that others get from it.
    pub(super) out: u64,
    /// The least urgent of what waits there.
    least: Option<Urgency>,
    /// Until when it would be busy with what waits for it in this step.
    pub(super) wanted: Option<u64>,
}

impl Agent {
    pub(super) fn new(kind: usize, slots: usize, ahead: usize, now: u64) -> Self {
        Self { kind, is_up: true, slots, ahead, idle_since: now, ..Self::default() }
    }

    pub(super) fn given(&self) -> &[Given] {
        &self.given
    }

    fn find(&self, task: u32) -> Result<usize, usize> {
        self.given.binary_search_by_key(&task, |g| g.task)
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_up && self.used < self.slots + self.ahead
    }

    /// How many slots what it was given takes, at most all.
    pub(super) fn busy(&self) -> usize {
        self.used.min(self.slots)
    }

    /// Whether everything it was given has a slot, and there is another one.
    pub(super) fn is_idle(&self) -> bool {
        self.is_up && self.used < self.slots
    }

    /// Whether something has to wait there for a slot.
    pub(super) fn is_crowded(&self) -> bool {
        self.used > self.slots
    }

    /// What it was given and has started or will start when its data are there.
    pub(super) fn settled(&self) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(|g| g.has_started || !self.is_crowded())
    }

    /// What has to wait for a slot there, and might as well go elsewhere.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(|g| !g.has_started && self.is_crowded())
    }

    /// Whether tasks of this level go before others that wait there. Within a level nobody counts on that: who has to wait
    /// longer then should rather have gone elsewhere.
    pub(super) fn is_passed_by(&self, level: i64) -> bool {
        self.is_up && self.lowest().is_some_and(|lowest| lowest < level)
    }

    /// Whether a task of this level can go there: what waits there and is of a lower one does not count.
    pub(super) fn has_room(&self, level: i64) -> bool {
        let counts = |g: &&Given| g.has_started || g.urgency.0.0 >= level;
        let used = || self.given.iter().filter(counts).map(|g| g.width).sum::<usize>();
        self.is_open() || self.is_passed_by(level) && used() < self.slots + self.ahead
    }

    /// The lowest level of what waits there.
    pub(super) fn lowest(&self) -> Option<i64> {
        self.least.map(|(Reverse(level), ..)| level)
    }

    /// When a slot is free if nothing that waits there takes it.
    pub(super) fn next(&self) -> u64 {
        self.given.iter().filter(|g| g.has_started).map(|g| g.end).min().unwrap_or(0)
    }

    /// From when on it can compute what it is given next and has no data of: the order in which agents are considered.
    pub(super) fn when(&self) -> u64 {
        if self.ahead == 0 || (self.used < self.slots && self.link <= self.idle_since) {
            return 0;
        }
        self.free.max(self.link)
    }

    /// When it has a slot for a task of this width and level.
    pub(super) fn slot(&self, now: u64, width: usize, level: i64) -> u64 {
        if let Some(wanted) = self.wanted {
            return wanted.max(now);
        }
        if width == 1 && !self.is_passed_by(level) {
            return self.free.max(now);
        }
        self.slot_among(width, |g| g.has_started || g.urgency.0.0 >= level).max(now)
    }

    /// When a slot is free after some of what it was given; 0 if one is now.
    fn slot_among(&self, width: usize, counts: impl Fn(&Given) -> bool) -> u64 {
        let counted = self.given.iter().filter(|g| counts(g));
        let mut ends: Vec<(u64, usize)> = counted.map(|g| (g.end, g.width)).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let mut used = width.min(self.slots);
        for (end, width) in ends {
            used += width;
            if used > self.slots {
                return end;
            }
        }
        0
    }

    /// It is given a task.
    pub(super) fn begin(&mut self, given: Given, now: u64) {
        let passes = self.least.is_some_and(|least| given.urgency < least);
        if given.brings > 0 {
            self.link = self.link.max(given.data);
        }
        match self.find(given.task) {
            Ok(place) => self.given[place] = given,
            Err(place) => self.given.insert(place, given),
        }
        if passes {
            self.plan(now);
        }
        self.look();
    }

    /// It has begun to compute a task.
    pub(super) fn start(&mut self, task: u32, now: u64) {
        if let Ok(place) = self.find(task) {
            let given = &mut self.given[place];
            (given.has_started, given.asked_for) = (true, None);
            given.due = now + given.compute;
            given.end = given.due;
            if self.given.iter().all(|g| g.has_started) {
                // Whatever was brought is there.
                self.link = self.link.min(now);
            }
            self.plan(now);
            self.look();
        }
    }

    /// Whether something should have ended there and has not.
    pub(super) fn is_late(&self, now: u64) -> bool {
        self.ahead > 0 && self.given.iter().any(|g| g.end < now)
    }

    /// What should have ended is expected to take as long again as it is late: it may well be one of those that take much
    /// longer. Whatever waits there waits for that.
    pub(super) fn catch_up(&mut self, now: u64) {
        for given in self.given.iter_mut().filter(|g| g.has_started && g.end < now) {
            given.end = now + (now - given.due);
        }
        self.plan(now);
        self.look();
    }

    /// A task is asked back for another agent.
    pub(super) fn ask(&mut self, task: u32, other: u32) {
        if let Ok(place) = self.find(task) {
            self.given[place].asked_for = Some(other);
        }
    }

    /// It is done with a task.
    pub(super) fn end(&mut self, task: u32, now: u64) -> Option<Given> {
        let given = self.find(task).ok().map(|place| self.given.remove(place));
        self.idle_since = now;
        self.plan(now);
        self.look();
        given
    }

    fn look(&mut self) {
        self.used = self.given.iter().map(|g| g.width).sum();
        self.least = self.given.iter().filter(|g| !g.has_started).map(|g| g.urgency).max();
        self.free = if self.used < self.slots { 0 } else { self.slot_among(1, |_| true) };
    }

    /// Finds out when what waits there will end.
    fn plan(&mut self, now: u64) {
        let mut waiting: Vec<usize> = (0..self.given.len()).filter(|i| !self.given[*i].has_started).collect();
        waiting.sort_unstable_by_key(|i| self.given[*i].urgency);
        let started = self.given.iter().filter(|g| g.has_started);
        let mut ends: BinaryHeap<_> = started.map(|g| Reverse((g.end.max(now), g.width))).collect();
        let mut used: usize = ends.iter().map(|Reverse((_, width))| *width).sum();
        let mut time = now;
        while !waiting.is_empty() {
            waiting.retain(|i| {
                let given = &mut self.given[*i];
                let starts = given.data <= time && used + given.width <= self.slots;
                if starts {
                    given.end = time + given.compute;
                    used += given.width;
                    ends.push(Reverse((given.end, given.width)));
                }
                !starts
            });
            let arrivals = waiting.iter().map(|i| self.given[*i].data).filter(|data| *data > time);
            let Some(next) = arrivals.chain(ends.peek().map(|Reverse((end, _))| *end)).min() else { return };
            time = next;
            while let Some(Reverse((_, width))) =
                ends.peek().copied().filter(|Reverse((end, _))| *end <= time)
            {
                ends.pop();
                used -= width;
            }
        }
    }

    /// When each of its slots would be free if nothing waited there.
    pub(super) fn settled_lanes(&self, now: u64, lanes: &mut Vec<u64>) {
        let first = lanes.len();
        let all = self.settled().flat_map(|g| std::iter::repeat_n(g.end.max(now), g.width));
        lanes.extend(all.take(self.slots));
        lanes.resize(first + self.slots, now);
    }

    /// When each of its slots is free; one of them may have been given to a task that ends then.
    pub(super) fn lanes(&self, now: u64, placed: Option<u64>, lanes: &mut Vec<u64>) {
        let first = lanes.len();
        lanes.extend(placed.into_iter().chain(self.wanted).take(self.slots));
        let left = self.slots - (lanes.len() - first);
        if self.ahead == 0 {
            lanes.extend(self.given.iter().map(|g| g.end.max(now)).take(left));
        } else {
            let all = self.given.iter().flat_map(|g| std::iter::repeat_n(g.end.max(now), g.width));
            let mut all: Vec<u64> = all.collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            lanes.extend(all.into_iter().take(left));
        }
        lanes.resize(first + self.slots, now);
    }
}
