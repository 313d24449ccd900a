//! Which tasks start now, and where.

use super::agent::{Agent, Given};
use super::choose::lead;
use super::entry::Entry;
use super::outlook::{Lanes, Lineup};
use super::{Costs, Key, Placement};
use crate::stages::Place;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// No more than so many ready tasks are looked at in one step, the most urgent ones.
const LOOK: usize = 4096;
/// After so many places that would make everything later, no further ones are tried in a step.
pub(super) const REFUSALS: usize = 8;
/// So many tasks are looked at in a step, again and again, to find out what would make anything later. Then it goes on
/// without asking: many tasks for many agents must not take long.
const QUESTIONS: usize = 1_000_000;

/// What is decided in one step.
pub(super) struct Step {
    pub(super) now: u64,
    /// Until when agents must have a slot to be given something now.
    pub(super) horizon: u64,
    /// When something that waits should be given away.
    pub(super) wake: Option<u64>,
    /// What is decided about now.
    pub(super) level: i64,
    /// How many small tasks could still start.
    pub(super) room: usize,
    pub(super) starts: Vec<(u32, u32)>,
    pub(super) on: HashMap<u32, Vec<u32>>,
    /// Agents that tasks wait for.
    pub(super) wanted: Vec<u32>,
    /// Tasks that wait for them.
    pub(super) waits: HashSet<u32>,
    pub(super) lanes: Lanes,
    /// Tasks that neither start nor wait for somebody yet.
    pub(super) lineup: Lineup,
    /// How many tasks may still be looked at.
    pub(super) questions: usize,
}

impl Placement {
    /// Which tasks agents are given now: those that hold nothing in advance start them.
    pub fn decide(&mut self, now: u64, costs: &dyn Costs) -> Vec<(u32, u32)> {
        // What did not come back has ended.
        self.returned.clear();
        self.wake = None;
        let Some(((Reverse(highest), ..), _)) = self.ready.first() else { return Vec::new() };
        if self.is_full(*highest, u64::MAX) {
            return Vec::new();
        }
        self.catch_up(now);
        let tasks: Vec<Key> = self.ready.iter().take(LOOK).copied().collect();
        let horizon = self.horizon(&tasks, now, costs);
        if self.is_full(tasks[0].0.0.0, horizon) {
            self.wake = self.next_slot(horizon).map(|slot| slot - (horizon - now));
            return Vec::new();
        }
        let mut step = self.step(now, horizon);
        let mut levels = tasks.chunk_by(|a, b| a.0.0 == b.0.0).peekable();
        while let Some(level) = levels.next() {
            step.level = level[0].0.0.0;
            let level: Vec<u32> = level.iter().map(|(_, task)| *task).collect();
            let is_last = levels.peek().is_none();
            self.place(&level, is_last, &mut step, costs);
            if self.is_full(step.level, horizon) {
                break;
            }
            if !is_last {
                self.reserve(&level, &mut step, costs);
            }
        }
        for agent in std::mem::take(&mut step.wanted) {
            self.agents[agent as usize].wanted = None;
            self.reopen(agent);
        }
        let next = self.next_slot(horizon).map(|slot| slot - (horizon - now));
        self.wake = next.into_iter().chain(step.wake).min().filter(|_| !self.ready.is_empty());
        step.starts
    }

    /// Until when agents must have a slot to be given something now.
    fn horizon(&self, tasks: &[Key], now: u64, costs: &dyn Costs) -> u64 {
        if self.hoarders == 0 {
            return now;
        }
        let entries = tasks.iter().filter_map(|(_, task)| self.entry(*task));
        let lead = entries.map(|e| lead(e.length - e.transfer, e.transfer, costs)).max();
        now.saturating_add(lead.unwrap_or(0))
    }

    /// When the first agent has a slot of those that have none until then.
    fn next_slot(&self, horizon: u64) -> Option<u64> {
        let next = |agents: &BTreeSet<(u64, u64, u32)>| {
            agents.range((horizon.saturating_add(1), 0, 0)..).next().map(|(when, ..)| *when)
        };
        self.open.values().filter_map(next).min()
    }

    /// Places tasks of a level, which may be the lowest.
    fn place(&mut self, tasks: &[u32], is_lowest: bool, step: &mut Step, costs: &dyn Costs) {
        if self.place == Place::EarliestFinish {
            return self.be_thrifty(tasks, is_lowest, step, costs);
        }
        for task in tasks {
            if self.is_full(step.level, step.horizon) {
                break;
            }
            self.look(*task, costs);
            self.put(*task, step, costs);
        }
    }

    /// What found no room although somebody could execute it has somebody wait for it: what it needs would otherwise go to
    /// lower levels bit by bit.
    fn reserve(&mut self, tasks: &[u32], step: &mut Step, costs: &dyn Costs) {
        let is_left = |task: &&u32| self.entry(**task).is_some() && !step.waits.contains(task);
        let left: Vec<u32> = tasks.iter().filter(is_left).copied().take(REFUSALS).collect();
        for task in left {
            let executors = self.executors(task);
            let able = (0..self.agents.len() as u32).filter(|agent| {
                let state = &self.agents[*agent as usize];
                state.is_up && !executors.contains(agent) && costs.can(task, *agent)
            });
            let first = able.map(|agent| (self.end(task, agent, step, costs), agent)).min();
            if let Some((end, agent)) = first {
                self.want(task, agent, end, step);
            }
        }
    }

    fn step(&self, now: u64, horizon: u64) -> Step {
        let busy: usize = self.agents.iter().map(Agent::busy).sum();
        let mut lanes = Vec::with_capacity(self.slots as usize);
        for agent in self.agents.iter().filter(|a| a.is_up) {
            agent.lanes(now, None, &mut lanes);
        }
        Step {
            now,
            horizon,
            level: 0,
            wake: None,
            room: (self.slots as usize).saturating_sub(busy),
            starts: Vec::new(),
            on: HashMap::new(),
            wanted: Vec::new(),
            waits: HashSet::new(),
            lanes: Lanes::new(lanes, now),
            lineup: Lineup::default(),
            questions: QUESTIONS,
        }
    }

    /// Puts a task where its place is: there it starts, or there it waits.
    pub(super) fn put(&mut self, task: u32, step: &mut Step, costs: &dyn Costs) {
        if let Some((agent, end)) = self.best(task, step, costs) {
            self.give(task, agent, end, step, costs);
        }
    }

    /// Gives a task to an agent: it starts if there is room, and waits if not.
    pub(super) fn give(&mut self, task: u32, agent: u32, end: u64, step: &mut Step, costs: &dyn Costs) {
        if self.can_have(task, agent, step, costs) {
            self.begin(task, agent, end, step, costs);
        } else {
            let state = &self.agents[agent as usize];
            if state.ahead > 0 && state.wanted.is_none() && self.has_room(task, agent, step, costs) {
                let given = self.time_to_give(task, agent, step, costs);
                step.wake = step.wake.into_iter().chain([given]).min();
            }
            self.want(task, agent, end, step);
        }
    }

    /// What an agent would be given with a task.
    fn given(
        &self,
        task: u32,
        entry: &Entry,
        (agent, end): (u32, u64),
        step: &Step,
        costs: &dyn Costs,
    ) -> Given {
        let state = &self.agents[agent as usize];
        let near = entry.near(agent);
        let brings = costs.transfer(entry.missing(near));
        // Without anything in advance, a slot waits for data.
        let is_ahead = state.ahead > 0;
        Given {
            task,
            urgency: entry.urgency,
            width: self.width(task, agent, costs),
            compute: costs.compute(task, agent),
            brings: if is_ahead && costs.is_shared() { brings } else { 0 },
            data: if is_ahead {
                self.arrival(near, brings, (entry, self.sent_from(entry, step, costs)), step, costs)
            } else {
                0
            },
            due: end,
            end,
            after: entry.after(),
            has_started: !is_ahead,
            asked_for: None,
            returns: entry.came_from.map_or(0, |(_, times)| times),
            is_settled: entry.came_from.is_some_and(|(from, _)| from == agent),
        }
    }

    pub(super) fn begin(&mut self, task: u32, agent: u32, end: u64, step: &mut Step, costs: &dyn Costs) {
        let Some(entry) = self.take(task) else { return };
        let given = self.given(task, &entry, (agent, end), step, costs);
        if given.brings > 0 {
            self.send(&entry, agent, step, costs);
        }
        for file in entry.files() {
            self.files.hold(file, agent, given.data);
        }
        self.close(agent);
        self.change(agent, step, |state, now| state.begin(given, now));
        self.reopen(agent);
        self.executors.entry(task).or_default().push(agent);
        step.lineup.remove(task);
        step.room = step.room.saturating_sub(1);
        step.on.entry(agent).or_default().push(task);
        step.starts.push((task, agent));
    }

    /// What tasks wait for counts as taken.
    fn want(&mut self, task: u32, agent: u32, end: u64, step: &mut Step) {
        step.room = step.room.saturating_sub(1);
        step.lineup.remove(task);
        step.waits.insert(task);
        self.close(agent);
        self.change(agent, step, |state, _| state.wanted = Some(end));
        step.wanted.push(agent);
    }

    /// Changes when an agent's slots are free.
    fn change(&mut self, agent: u32, step: &mut Step, change: impl FnOnce(&mut Agent, u64)) {
        let state = &mut self.agents[agent as usize];
        let (mut before, mut after) = (Vec::new(), Vec::new());
        state.lanes(step.now, None, &mut before);
        change(state, step.now);
        state.lanes(step.now, None, &mut after);
        step.lanes.change(&before, &after);
    }
}
