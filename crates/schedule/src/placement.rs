//! Where it matters which agent a chain goes to: agents have data of their own, or are not equally fast.
//!
//! The most urgent task goes where it would end first, which is what Topcuoglu, Hariri and Wu's HEFT does; but nothing
//! is planned ahead. A task waits for a busy agent if that is sooner than bringing its data elsewhere, and nothing that
//! has not started is promised to anybody: everything is decided again whenever something has happened.
//!
//! Whoever is not urgent is thrifty. From what is executed, what is ready and what else is to be done follows when
//! everything could be over at the earliest. As long as that does not make it later, tasks go where their data are: an
//! idle agent takes tasks whose data it has before more urgent ones, and if there is time to spare a task waits for the
//! agent that has its data.

use crate::stages::Place;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

/// What tasks cost where. Times are nanoseconds; live they are learned, in simulations they are known.
pub trait Costs {
    /// Whether an agent could execute a task, had it nothing else to do.
    fn can(&self, task: u32, agent: u32) -> bool;
    /// Whether an agent has room for a task now, if it also starts some others.
    fn fits(&self, task: u32, agent: u32, others: &[u32]) -> bool;
    /// How long a task computes on an agent.
    fn compute(&self, task: u32, agent: u32) -> u64;
    /// How long it takes to bring an agent so many bytes.
    fn transfer(&self, bytes: u64) -> u64;
    /// The files that a task reads, if it matters where they are.
    fn inputs(&self, task: u32) -> &[u32];
    /// How large a file is.
    fn size(&self, file: u32) -> u64;
    /// How long everything takes one after the other that has not started yet, ready or not.
    fn unstarted(&self) -> u64;
}

/// Tasks that can start, and the agents they may go to.
#[derive(Debug, Default)]
pub struct Placement {
    place: Place,
    /// Tasks that are ready, the most urgent first; then those that came first.
    ready: BTreeSet<Key>,
    entries: HashMap<u32, Entry>,
    arrivals: u64,
    agents: Vec<Agent>,
    slots: u64,
    /// Agents with room, by kind, the longest idle first.
    open: BTreeMap<usize, BTreeSet<(u64, u32)>>,
    /// Who has a file.
    holders: HashMap<u32, Vec<u32>>,
    /// Ready tasks that read a file.
    readers: HashMap<u32, BTreeSet<u32>>,
}

/// No more than so many ready tasks are looked at in one step, the most urgent ones.
const LOOK: usize = 4096;
/// After so many places that would make everything later, no further ones are tried in a step.
const REFUSALS: usize = 8;

/// The order of ready tasks: rank, arrival, number.
type Key = (Reverse<u64>, u64, u32);

#[derive(Clone, Debug)]
struct Entry {
    /// How long it is from the beginning of the task to the end of everything.
    rank: u64,
    arrival: u64,
    /// How many bytes it reads.
    bytes: u64,
    /// How long it takes where nothing of its data is.
    length: u64,
    /// How many bytes of its data agents have.
    at_hand: BTreeMap<u32, u64>,
}

impl Entry {
    /// How long it is from the end of the task to the end of everything.
    fn after(&self) -> u64 {
        self.rank.saturating_sub(self.length)
    }

    fn missing(&self, agent: u32) -> u64 {
        self.bytes - self.at_hand.get(&agent).copied().unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default)]
struct Agent {
    /// Agents of a kind are alike but for what they have and do.
    kind: usize,
    is_up: bool,
    /// When what it executes is expected to end, and how long it is from there to the end of everything.
    ends: BTreeMap<u32, (u64, u64)>,
    idle_since: u64,
    /// How many tasks of one processor it can take at once.
    slots: usize,
    /// Ready tasks of whose data it has some.
    near: BTreeSet<u32>,
}

impl Agent {
    fn is_open(&self) -> bool {
        self.is_up && self.ends.len() < self.slots
    }

    /// When it is expected to have room again, if it is full.
    fn free_at(&self, now: u64) -> u64 {
        if self.is_open() {
            now
        } else {
            self.ends.values().map(|(end, _)| *end).min().unwrap_or(now).max(now)
        }
    }
}

/// What is decided in one step.
#[derive(Default)]
struct Step {
    now: u64,
    /// How many small tasks could still start.
    room: usize,
    starts: Vec<(u32, u32)>,
    on: HashMap<u32, Vec<u32>>,
    /// Agents that tasks wait for, and until when these would be busy with them.
    wanted: HashMap<u32, u64>,
    /// Tasks that wait for them.
    waits: HashSet<u32>,
}

/// How much time there is.
struct Outlook {
    /// When everything could be over at the earliest.
    end: u64,
    /// Whether agents may be idle now without making that later.
    is_spare: bool,
}

impl Placement {
    /// Places tasks in this way.
    pub fn new(place: Place) -> Self {
        Self { place, ..Self::default() }
    }

    /// An agent is there. It can take `slots` small tasks at once.
    pub fn join(&mut self, agent: u32, kind: usize, slots: usize, now: u64) {
        if self.agents.len() <= agent as usize {
            self.agents.resize(agent as usize + 1, Agent::default());
        }
        self.slots += slots.max(1) as u64;
        self.agents[agent as usize] =
            Agent { kind, is_up: true, idle_since: now, slots: slots.max(1), ..Agent::default() };
        self.open.entry(kind).or_default().insert((now, agent));
    }

    /// An agent is gone, with everything it has.
    pub fn leave(&mut self, agent: u32) {
        self.close(agent);
        let state = &mut self.agents[agent as usize];
        self.slots -= state.slots as u64;
        state.is_up = false;
        state.ends.clear();
        for task in std::mem::take(&mut state.near) {
            if let Some(entry) = self.entries.get_mut(&task) {
                entry.at_hand.remove(&agent);
            }
        }
        for holders in self.holders.values_mut() {
            holders.retain(|a| *a != agent);
        }
    }

    /// An agent has files.
    pub fn hold(&mut self, agent: u32, files: &[u32], costs: &dyn Costs) {
        for file in files {
            let holders = self.holders.entry(*file).or_default();
            if holders.contains(&agent) {
                continue;
            }
            holders.push(agent);
            for task in self.readers.get(file).into_iter().flatten() {
                if let Some(entry) = self.entries.get_mut(task) {
                    *entry.at_hand.entry(agent).or_default() += costs.size(*file);
                    self.agents[agent as usize].near.insert(*task);
                }
            }
        }
    }

    /// A task can start, once more if it is executed already. Its rank is how urgent it is: how long it is from its
    /// beginning to the end of everything.
    pub fn add(&mut self, task: u32, rank: u64, costs: &dyn Costs) {
        self.arrivals += 1;
        self.remove(task, costs);
        let mut at_hand: BTreeMap<u32, u64> = BTreeMap::new();
        let mut bytes = 0;
        for file in costs.inputs(task) {
            bytes += costs.size(*file);
            self.readers.entry(*file).or_default().insert(task);
            for agent in self.holders.get(file).into_iter().flatten() {
                *at_hand.entry(*agent).or_default() += costs.size(*file);
                self.agents[*agent as usize].near.insert(task);
            }
        }
        let able = (0..self.agents.len() as u32).find(|a| costs.can(task, *a));
        let length = able.map_or(0, |agent| costs.compute(task, agent)) + costs.transfer(bytes);
        self.entries.insert(task, Entry { rank, arrival: self.arrivals, bytes, length, at_hand });
        self.ready.insert((Reverse(rank), self.arrivals, task));
    }

    /// A task need not start any more.
    pub fn remove(&mut self, task: u32, costs: &dyn Costs) {
        let Some(entry) = self.entries.remove(&task) else { return };
        self.ready.remove(&(Reverse(entry.rank), entry.arrival, task));
        for agent in entry.at_hand.keys() {
            self.agents[*agent as usize].near.remove(&task);
        }
        for file in costs.inputs(task) {
            if let Some(readers) = self.readers.get_mut(file) {
                readers.remove(&task);
            }
        }
    }

    /// An agent is done with a task, whatever came of it.
    pub fn ended(&mut self, task: u32, agent: u32, now: u64) {
        self.close(agent);
        let state = &mut self.agents[agent as usize];
        state.ends.remove(&task);
        state.idle_since = now;
        self.reopen(agent);
    }

    fn close(&mut self, agent: u32) {
        let state = &self.agents[agent as usize];
        if let Some(open) = self.open.get_mut(&state.kind) {
            open.remove(&(state.idle_since, agent));
        }
    }

    fn reopen(&mut self, agent: u32) {
        let state = &self.agents[agent as usize];
        if state.is_open() {
            self.open.entry(state.kind).or_default().insert((state.idle_since, agent));
        }
    }

    fn is_full(&self) -> bool {
        self.open.values().all(BTreeSet::is_empty)
    }

    /// Which tasks start now, and where.
    pub fn decide(&mut self, now: u64, costs: &dyn Costs) -> Vec<(u32, u32)> {
        if self.ready.is_empty() || self.is_full() {
            return Vec::new();
        }
        let busy: usize = self.agents.iter().map(|a| a.ends.len()).sum();
        let mut step = Step { now, room: (self.slots as usize).saturating_sub(busy), ..Step::default() };
        let tasks: Vec<u32> = self.ready.iter().take(LOOK).map(|(_, _, task)| *task).collect();
        if self.place == Place::EarliestFinish {
            self.be_thrifty(&tasks, &mut step, costs);
        } else {
            for task in tasks {
                if self.is_full() {
                    break;
                }
                self.put(task, &mut step, costs);
            }
        }
        for agent in std::mem::take(&mut step.wanted).into_keys() {
            self.reopen(agent);
        }
        step.starts
    }

    /// Tasks where their data are, as long as everything is over as early as otherwise; the others where they end first.
    fn be_thrifty(&mut self, tasks: &[u32], step: &mut Step, costs: &dyn Costs) {
        let outlook = self.outlook(tasks, step, costs);
        self.match_data(tasks, &outlook, step, costs);
        // Who has its data somewhere goes last: it may still get there.
        let left = || tasks.iter().copied();
        let homeless: Vec<u32> =
            left().filter(|t| self.entries.contains_key(t) && !self.has_home(*t)).collect();
        let mut refusals = 0;
        for task in homeless {
            if self.is_full() || refusals == REFUSALS {
                break;
            }
            let Some((agent, end)) = self.best(task, step, costs) else { continue };
            let is_free = self.has_room(task, agent, step, costs) && !step.wanted.contains_key(&agent);
            if is_free && self.is_in_time(tasks, (task, agent, end), &outlook, step) {
                self.begin(task, agent, end, step, costs);
            } else {
                refusals += 1;
            }
        }
        refusals = 0;
        for task in left() {
            if self.is_full() {
                return;
            }
            if !self.entries.contains_key(&task) {
                continue;
            }
            let home = self.home(task, step, costs).filter(|_| outlook.is_spare && refusals < REFUSALS);
            match home {
                Some((agent, end)) if self.is_in_time(tasks, (task, agent, end), &outlook, step) => {
                    self.give(task, agent, end, step, costs);
                }
                _ => {
                    refusals += usize::from(home.is_some());
                    self.put(task, step, costs);
                }
            }
        }
    }

    /// When everything could be over: what is executed and what follows from it, ready tasks in the order of their
    /// ranks, and all that is to be done divided by all agents.
    fn outlook(&self, tasks: &[u32], step: &Step, costs: &dyn Costs) -> Outlook {
        let ends = || self.agents.iter().flat_map(|a| a.ends.values());
        let running: u64 = ends().map(|(end, _)| end.saturating_sub(step.now)).sum();
        let follows = ends().map(|(end, after)| end + after).max().unwrap_or(step.now);
        let end = self.project(tasks, None, step).max(follows);
        let work = step.now + (running + costs.unstarted()) / self.slots.max(1);
        Outlook { end: end.max(work), is_spare: end > work }
    }

    /// When everything that follows from ready tasks would be over, if each goes to whoever has room first; one of them
    /// may have a place already.
    fn project(&self, tasks: &[u32], placed: Option<(u32, u32, u64)>, step: &Step) -> u64 {
        let mut free = BinaryHeap::with_capacity(self.slots as usize);
        for (number, agent) in (0..).zip(&self.agents).filter(|(_, a)| a.is_up) {
            let mut slots = agent.slots;
            if let Some((_, _, end)) = placed.filter(|(_, on, _)| *on == number) {
                free.push(Reverse(end));
                slots -= 1;
            }
            if let Some(end) = step.wanted.get(&number).filter(|_| slots > 0) {
                free.push(Reverse(*end));
                slots -= 1;
            }
            let ends = agent.ends.values().map(|(end, _)| Reverse((*end).max(step.now))).take(slots);
            let busy = agent.ends.len().min(slots);
            free.extend(ends.chain(std::iter::repeat_n(Reverse(step.now), slots - busy)));
        }
        let mut end = step.now;
        for task in tasks.iter().filter(|t| placed.is_none_or(|(placed, ..)| placed != **t)) {
            let (Some(entry), false) = (self.entries.get(task), step.waits.contains(task)) else { continue };
            let Some(mut first) = free.peek_mut() else { break };
            end = end.max(first.0 + entry.rank);
            first.0 += entry.length;
        }
        end
    }

    /// Whether nothing is over later if a task goes to an agent and ends there at this time.
    fn is_in_time(
        &self,
        tasks: &[u32],
        (task, agent, end): (u32, u32, u64),
        outlook: &Outlook,
        step: &Step,
    ) -> bool {
        // Where there is room for all, nobody is in the way of anybody.
        end + self.entries[&task].after() <= outlook.end
            && (step.room > tasks.len() || self.project(tasks, Some((task, agent, end)), step) <= outlook.end)
    }

    /// Whether somebody has nearly all of a task's data.
    fn has_home(&self, task: u32) -> bool {
        let entry = &self.entries[&task];
        entry.at_hand.values().max().is_some_and(|most| most * 10 >= entry.bytes * 9)
    }

    /// The agent that has nearly all of a task's data and has room first, and when it would end there.
    fn home(&self, task: u32, step: &Step, costs: &dyn Costs) -> Option<(u32, u64)> {
        let entry = &self.entries[&task];
        let most = entry.at_hand.values().max().filter(|_| self.has_home(task))?;
        let holders = entry.at_hand.iter().filter(|(agent, bytes)| {
            *bytes == most
                && costs.can(task, **agent)
                && !self.agents[**agent as usize].ends.contains_key(&task)
        });
        let ends = holders.map(|(agent, _)| (self.end(task, *agent, step, costs), *agent));
        ends.min().map(|(end, agent)| (agent, end))
    }

    /// Gives idle agents tasks of whose data nobody else has more: those first that have most of it there.
    fn match_data(&mut self, tasks: &[u32], outlook: &Outlook, step: &mut Step, costs: &dyn Costs) {
        let open: Vec<u32> = self.open.values().flatten().map(|(_, agent)| *agent).collect();
        let mut pairs = BinaryHeap::new();
        for agent in open {
            for task in &self.agents[agent as usize].near {
                let entry = &self.entries[task];
                let most = entry.at_hand.values().max().copied().unwrap_or(0);
                let bytes = entry.at_hand.get(&agent).copied().unwrap_or(0);
                if bytes == most {
                    pairs.push((bytes, entry.rank, Reverse(entry.arrival), Reverse(agent), *task));
                }
            }
        }
        let mut refusals = 0;
        while let Some((_, _, _, Reverse(agent), task)) = pairs.pop() {
            let can_start = self.entries.contains_key(&task) && self.has_room(task, agent, step, costs);
            if can_start && refusals < REFUSALS {
                let end = self.end(task, agent, step, costs);
                if self.is_in_time(tasks, (task, agent, end), outlook, step) {
                    self.begin(task, agent, end, step, costs);
                } else {
                    refusals += 1;
                }
            }
        }
    }

    /// Puts a task where its place is: there it starts, or there it waits.
    fn put(&mut self, task: u32, step: &mut Step, costs: &dyn Costs) {
        if let Some((agent, end)) = self.best(task, step, costs) {
            self.give(task, agent, end, step, costs);
        }
    }

    /// Gives a task to an agent: it starts if there is room, and waits if not.
    fn give(&mut self, task: u32, agent: u32, end: u64, step: &mut Step, costs: &dyn Costs) {
        if !step.wanted.contains_key(&agent) && self.has_room(task, agent, step, costs) {
            self.begin(task, agent, end, step, costs);
        } else {
            self.want(task, agent, end, step);
        }
    }

    fn begin(&mut self, task: u32, agent: u32, end: u64, step: &mut Step, costs: &dyn Costs) {
        let after = self.entries[&task].after();
        self.remove(task, costs);
        self.close(agent);
        self.agents[agent as usize].ends.insert(task, (end, after));
        self.reopen(agent);
        self.hold(agent, costs.inputs(task), costs);
        step.room = step.room.saturating_sub(1);
        step.on.entry(agent).or_default().push(task);
        step.starts.push((task, agent));
    }

    /// What tasks wait for counts as taken.
    fn want(&mut self, task: u32, agent: u32, end: u64, step: &mut Step) {
        step.room = step.room.saturating_sub(1);
        step.wanted.insert(agent, end);
        step.waits.insert(task);
        self.close(agent);
    }

    fn has_room(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> bool {
        let others = step.on.get(&agent).map_or(&[][..], Vec::as_slice);
        let state = &self.agents[agent as usize];
        // Who executes a task already is no help.
        state.is_open() && !state.ends.contains_key(&task) && costs.fits(task, agent, others)
    }

    /// When an agent has room for what more urgent tasks do not want to have.
    fn free(&self, agent: u32, step: &Step) -> u64 {
        let free = || self.agents[agent as usize].free_at(step.now);
        step.wanted.get(&agent).copied().unwrap_or_else(free).max(step.now)
    }

    /// When a task would end on an agent.
    fn end(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> u64 {
        let transfer = costs.transfer(self.entries[&task].missing(agent));
        self.free(agent, step) + transfer + costs.compute(task, agent)
    }

    /// Where a task should go, and when it would end there.
    fn best(&self, task: u32, step: &Step, costs: &dyn Costs) -> Option<(u32, u64)> {
        let entry = &self.entries[&task];
        let able = |agent: &u32| {
            let state = &self.agents[*agent as usize];
            state.is_up && !state.ends.contains_key(&task) && costs.can(task, *agent)
        };
        let near = entry.at_hand.keys().copied();
        // Agents of a kind that have none of its data are alike but for when they have room.
        let far = self.open.values().filter_map(|agents| {
            let mut agents = agents.iter().map(|(_, agent)| *agent);
            agents.find(|agent| able(agent) && self.has_room(task, *agent, step, costs))
        });
        let candidates: BTreeSet<u32> = match self.place {
            Place::LongestIdle => far.collect(),
            _ => near.filter(able).chain(far).collect(),
        };
        let candidates = candidates.into_iter();
        let best = match self.place {
            Place::LongestIdle => candidates.min_by_key(|a| (self.agents[*a as usize].idle_since, *a)),
            Place::Data => {
                let open = candidates.filter(|a| self.has_room(task, *a, step, costs));
                open.min_by_key(|a| (entry.missing(*a), *a))
            }
            _ => candidates.min_by_key(|a| (self.end(task, *a, step, costs), entry.missing(*a), *a)),
        };
        best.map(|agent| (agent, self.end(task, agent, step, costs)))
    }
}

#[cfg(test)]
mod tests;
