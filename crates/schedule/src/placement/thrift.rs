//! Tasks go where their data are, as long as that makes nothing later.

use super::agent::{Agent, Given};
use super::decide::{REFUSALS, Step};
use super::entry::Entry;
use super::outlook::{Item, Lanes, Lineup};
use super::{Costs, Placement};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much time there is.
struct Outlook {
    /// When everything could be over at the earliest.
    end: u64,
    /// Whether agents may be idle now without making that later.
    is_spare: bool,
}

impl Placement {
    /// Tasks where their data are, as long as everything is over as early as otherwise; the others where they end first.
    pub(super) fn be_thrifty(&mut self, tasks: &[u32], is_lowest: bool, step: &mut Step, costs: &dyn Costs) {
        let outlook = self.outlook(tasks, is_lowest, step, costs);
        self.match_data(tasks, &outlook, step, costs);
        // Who has its data somewhere goes last: it may still get there.
        for task in tasks {
            self.look(*task, costs);
        }
        let is_homeless = |task: &u32| self.entry(*task).is_some_and(|e| !e.has_home());
        let homeless: Vec<u32> = tasks.iter().copied().filter(is_homeless).collect();
        let mut refusals = 0;
        for task in homeless {
            if self.is_full(step.level, step.horizon) || refusals == REFUSALS {
                break;
            }
            self.look(task, costs);
            let Some((agent, end)) = self.best(task, step, costs) else { continue };
            if self.is_premature(task, agent) {
                continue;
            }
            let is_free = self.can_have(task, agent, step, costs);
            if is_free && self.is_in_time(tasks, (task, agent, end), &outlook, step) {
                self.begin(task, agent, end, step, costs);
            } else {
                refusals += 1;
            }
        }
        refusals = 0;
        for task in tasks.iter().copied() {
            if self.is_full(step.level, step.horizon) {
                return;
            }
            if self.entry(task).is_none() {
                continue;
            }
            self.look(task, costs);
            let asks = outlook.is_spare && refusals < REFUSALS;
            let home = if asks { self.home(task, step, costs) } else { None };
            match home {
                Some((agent, end)) if self.is_in_time(tasks, (task, agent, end), &outlook, step) => {
                    self.give(task, agent, end, step, costs);
                }
                _ => {
                    refusals += usize::from(home.is_some());
                    if let Some((agent, end)) = self.best(task, step, costs)
                        && !self.is_premature(task, agent)
                    {
                        self.give(task, agent, end, step, costs);
                    }
                }
            }
        }
    }

    /// Whether it is too early to give a task to an agent: it is busy, and somebody else has more of the task's data, who may
    /// be free before it is. What is given in advance goes where most of its data are; the rest of them is brought.
    fn is_premature(&self, task: u32, agent: u32) -> bool {
        let state = &self.agents[agent as usize];
        let is_elsewhere = |e: &Entry| e.near(agent).bytes < e.most();
        state.ahead > 0 && !state.is_idle() && self.entry(task).is_some_and(is_elsewhere)
    }

    /// When everything could be over: what is executed and what follows from it, ready tasks in the order of their
    /// ranks, and all that is to be done divided by all agents. Levels above others do not wait for what is below them.
    ///
    /// What waits at agents could be anywhere, as if it were ready: what was given away too early must not be a reason to
    /// be late with the next one.
    fn outlook(&self, tasks: &[u32], is_lowest: bool, step: &mut Step, costs: &dyn Costs) -> Outlook {
        let entries = || tasks.iter().filter_map(|task| Some((*task, self.entry(*task)?)));
        let item =
            |(task, e): (u32, &Entry)| Item { task, rank: e.rank(), length: e.length, transfer: e.transfer };
        let sharing = if costs.is_shared() { self.slots / self.there.max(1) } else { 1 };
        let sharing = (self.hoarders > 0).then_some(sharing);
        step.lineup = Lineup::new(entries().map(item), self.slots, sharing);
        let level = entries().next().map(|(_, e)| Reverse(e.level()));
        let counts = |g: &&Given| Some(g.urgency.0) <= level;
        let settled = self.agents.iter().flat_map(Agent::settled).filter(counts);
        let follows = settled.map(|g| g.end + g.after).max().unwrap_or(step.now);
        let waiting: Vec<&Given> = self.agents.iter().flat_map(Agent::waiting).filter(counts).collect();
        let Step { now, lineup, lanes, questions, .. } = step;
        let (end, busy) = if waiting.is_empty() {
            (lineup.project(lanes, u64::MAX, questions), lanes.busy())
        } else {
            let moved = |g: &&Given| {
                let item = Item { task: g.task, rank: g.compute + g.after, length: g.compute, transfer: 0 };
                (g.urgency, item)
            };
            let mut all: Vec<_> = waiting.iter().map(moved).collect();
            all.extend(entries().map(|(task, e)| (e.urgency, item((task, e)))));
            all.sort_unstable_by_key(|(urgency, _)| *urgency);
            let mut free = Vec::with_capacity(self.slots as usize);
            for agent in self.agents.iter().filter(|a| a.is_up) {
                agent.settled_lanes(*now, &mut free);
            }
            let lanes = Lanes::new(free, *now);
            let lineup = Lineup::new(all.into_iter().map(|(_, item)| item), self.slots, sharing);
            let work: u64 = waiting.iter().map(|g| g.compute * g.width as u64).sum();
            (lineup.project(&lanes, u64::MAX, questions), lanes.busy() + work)
        };
        let end = end.max(follows);
        if !is_lowest {
            return Outlook { end, is_spare: false };
        }
        let work = step.now + (busy + costs.unstarted()) / self.slots.max(1);
        Outlook { end: end.max(work), is_spare: end > work }
    }

    /// Whether nothing is over later if a task goes to an agent and ends there at this time.
    fn is_in_time(
        &self,
        tasks: &[u32],
        (task, agent, end): (u32, u32, u64),
        outlook: &Outlook,
        step: &mut Step,
    ) -> bool {
        let Some(entry) = self.entry(task) else { return false };
        if end + entry.after() > outlook.end || step.questions == 0 {
            return false;
        }
        let state = &self.agents[agent as usize];
        // Where there is room for all, nobody is in the way of anybody.
        if step.room > tasks.len() {
            return true;
        }
        let (mut before, mut then) = (Vec::new(), Vec::new());
        state.lanes(step.now, None, &mut before);
        state.lanes(step.now, Some(end), &mut then);
        let Step { lineup, lanes, questions, .. } = step;
        lineup.is_in_time(task, lanes, (&before, &then), outlook.end, questions)
    }

    /// The agent that has nearly all of a task's data and has room first, and when it would end there.
    fn home(&self, task: u32, step: &Step, costs: &dyn Costs) -> Option<(u32, u64)> {
        let entry = self.entry(task).filter(|e| e.has_home())?;
        let executors = self.executors(task);
        let holders = entry.nearest().filter(|agent| costs.can(task, *agent) && !executors.contains(agent));
        let ends = holders.map(|agent| (self.end(task, agent, step, costs), agent));
        ends.min().map(|(end, agent)| (agent, end))
    }

    /// Gives idle agents tasks of whose data nobody else has more: those first that have most of it there.
    fn match_data(&mut self, tasks: &[u32], outlook: &Outlook, step: &mut Step, costs: &dyn Costs) {
        let mut pairs = BinaryHeap::new();
        for task in tasks {
            self.look(*task, costs);
            let Some(entry) = self.entry(*task) else { continue };
            let is_free = |agent: &u32| {
                let state = &self.agents[*agent as usize];
                state.is_open() && state.wanted.is_none()
            };
            for agent in entry.nearest().filter(is_free) {
                let (_, Reverse(rank), arrival) = entry.urgency;
                pairs.push((entry.most(), rank, Reverse(arrival), Reverse(agent), *task));
            }
        }
        let mut refusals = 0;
        while let Some((_, _, _, Reverse(agent), task)) = pairs.pop() {
            if refusals == REFUSALS {
                return;
            }
            if self.entry(task).is_none() {
                continue;
            }
            self.look(task, costs);
            if self.can_have(task, agent, step, costs) {
                let end = self.end(task, agent, step, costs);
                if self.is_in_time(tasks, (task, agent, end), outlook, step) {
                    self.begin(task, agent, end, step, costs);
                } else {
                    refusals += 1;
                }
            }
        }
    }
}
