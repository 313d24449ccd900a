//! Where it matters which agent a chain goes to: agents have data of their own, or are not equally fast.
//!
//! The most urgent task goes where it would end first, which is what Topcuoglu, Hariri and Wu's HEFT does; but nothing
//! is planned ahead. A task waits for a busy agent if that is sooner than bringing its data elsewhere, and nothing that
//! has not started is promised to anybody: everything is decided again whenever something has happened.
//!
//! Agents may hold a few tasks in advance and bring their data while others compute. They get them as late as that allows:
//! what was given away cannot be decided again. What waits at an agent is asked back if another one has nothing to do and
//! would be done with it earlier.
//!
//! Whoever is not urgent is thrifty. From what is executed, what is ready and what else is to be done follows when
//! everything could be over at the earliest. As long as that does not make it later, tasks go where their data are: an
//! idle agent takes tasks whose data it has before more urgent ones, and if there is time to spare a task waits for the
//! agent that has its data.

mod agent;
mod choose;
mod decide;
mod entry;
mod files;
mod outlook;
mod recall;
mod thrift;

use crate::stages::Place;
use agent::{Agent, Given};
use entry::Entry;
use files::Files;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What tasks cost where. Times are nanoseconds; live they are learned, in simulations they are known.
pub trait Costs {
    /// Whether an agent could execute a task, had it nothing else to do. One that is gone could not.
    fn can(&self, task: u32, agent: u32) -> bool;
    /// Whether an agent that holds nothing in advance has room for a task now, if it also starts some others.
    fn fits(&self, task: u32, agent: u32, others: &[u32]) -> bool;
    /// How long a task computes on an agent.
    fn compute(&self, task: u32, agent: u32) -> u64;
    /// How long it takes to bring an agent so many bytes.
    fn transfer(&self, bytes: u64) -> u64;
    /// The files that a task reads, if it matters where they are.
    fn inputs(&self, task: u32) -> &[u32];
    /// How large a file is.
    fn size(&self, file: u32) -> u64;
    /// How long everything takes one after the other that was not given to anybody yet, ready or not.
    fn unstarted(&self) -> u64;
    /// How many slots of an agent that holds tasks in advance a task takes.
    fn width(&self, _task: u32, _agent: u32) -> usize {
        1
    }
    /// How long it takes from the end of a task until its agent has another one, if that was not there before.
    fn decision(&self) -> u64 {
        20_000_000
    }
    /// Whether what is brought to such an agent shares its link: one after the other. Otherwise nothing disturbs anything.
    fn is_shared(&self) -> bool {
        true
    }
}

/// Tasks that can start, and the agents they may go to.
///
/// Tasks, files and agents are small numbers that can be used again when what they stood for is gone: what is known of
/// them is kept in tables.
#[derive(Debug, Default)]
pub struct Placement {
    place: Place,
    /// Tasks that are ready, the most urgent first; then those that came first.
    ready: BTreeSet<Key>,
    /// What is known of ready tasks.
    entries: Vec<Option<Box<Entry>>>,
    arrivals: u64,
    agents: Vec<Agent>,
    slots: u64,
    /// How many agents there are, and how many of them hold tasks in advance.
    there: u64,
    hoarders: u64,
    /// Agents with room, by kind: first those that can compute something first, then the longest idle.
    open: BTreeMap<usize, BTreeSet<(u64, u64, u32)>>,
    /// Agents at which tasks wait, by the lowest level of these: first those that have a slot first if it is not for them.
    yielding: BTreeSet<(i64, u64, u32)>,
    /// Who was given a task.
    executors: HashMap<u32, Vec<u32>>,
    files: Files,
    /// When something that waits now should be given away.
    wake: Option<u64>,
    /// Tasks that were asked back and are not ready yet: who had them, and how often that was so.
    returned: HashMap<u32, (u32, u8)>,
}

/// How urgent a task is: by its level, then its rank, then its arrival. What is smaller comes first.
type Urgency = (Reverse<i64>, Reverse<u64>, u64);

/// The order of ready tasks.
type Key = (Urgency, u32);

impl Placement {
    /// Places tasks in this way.
    pub fn new(place: Place) -> Self {
        Self { place, ..Self::default() }
    }

    /// An agent is there. It can execute `slots` small tasks at once and hold `ahead` more that wait there; then it must be
    /// said when it has [started](Self::started) one.
    pub fn join(&mut self, agent: u32, kind: usize, slots: usize, ahead: usize, now: u64) {
        if self.agents.len() <= agent as usize {
            self.agents.resize(agent as usize + 1, Agent::default());
        }
        if self.agents[agent as usize].is_up {
            self.leave(agent);
        }
        let state = Agent::new(kind, slots.max(1), ahead, now);
        self.slots += state.slots as u64;
        self.there += 1;
        self.hoarders += u64::from(ahead > 0);
        self.agents[agent as usize] = state;
        self.reopen(agent);
    }

    /// An agent is of another kind from now on: it is faster or slower than was believed.
    pub fn set_kind(&mut self, agent: u32, kind: usize) {
        if self.agents[agent as usize].kind != kind {
            self.close(agent);
            self.agents[agent as usize].kind = kind;
            self.reopen(agent);
        }
    }

    /// An agent is gone, with everything it has.
    pub fn leave(&mut self, agent: u32) {
        if !self.knows(agent) {
            return;
        }
        self.close(agent);
        let state = std::mem::take(&mut self.agents[agent as usize]);
        self.slots -= state.slots as u64;
        self.there -= u64::from(state.is_up);
        self.hoarders -= u64::from(state.ahead > 0);
        for given in state.given() {
            self.forget_executor(given.task, agent);
        }
        self.files.leave(agent);
    }

    /// An agent has files. What it has to bring for tasks it was given counts as if it had it.
    pub fn hold(&mut self, agent: u32, files: &[u32]) {
        for file in files {
            self.files.hold(*file, agent, 0);
        }
    }

    /// An agent does not have files any more.
    pub fn unhold(&mut self, agent: u32, files: &[u32]) {
        for file in files {
            self.files.unhold(*file, agent);
        }
    }

    /// Who has a file.
    pub fn holders(&self, file: u32) -> impl Iterator<Item = u32> {
        self.files.holders(file).iter().map(|h| h.agent)
    }

    /// Nobody has a file any more, and nobody will ask for it: its number may stand for another one.
    pub fn forget_file(&mut self, file: u32) {
        self.files.forget(file);
    }

    /// A task can start, once more if it is executed already. Its level is how urgent users say it is: no task of a lower
    /// one goes first where this one could go. Within a level the rank decides, which is how long it is from the
    /// beginning of the task to the end of everything.
    pub fn add(&mut self, task: u32, level: i64, rank: u64, costs: &dyn Costs) {
        self.arrivals += 1;
        self.remove(task);
        let inputs = costs.inputs(task);
        let bytes = inputs.iter().map(|file| costs.size(*file)).sum();
        let able = (0..self.agents.len() as u32).find(|a| costs.can(task, *a));
        let compute = able.map_or(0, |agent| costs.compute(task, agent));
        let transfer = costs.transfer(bytes);
        let reads = inputs.iter().map(|file| self.files.unseen(*file)).collect();
        let urgency = (Reverse(level), Reverse(rank), self.arrivals);
        let mut entry = Entry::new(urgency, bytes, (compute, transfer), reads);
        entry.came_from = self.returned.remove(&task);
        if self.entries.len() <= task as usize {
            self.entries.resize_with(task as usize + 1, || None);
        }
        self.entries[task as usize] = Some(Box::new(entry));
        self.ready.insert((urgency, task));
    }

    /// When to [decide](Self::decide) again, even if nothing happens before: a task should be given to an agent then that will
    /// have a slot for it.
    pub fn wake(&self) -> Option<u64> {
        self.wake
    }

    /// A task need not start any more.
    pub fn remove(&mut self, task: u32) {
        self.take(task);
    }

    fn take(&mut self, task: u32) -> Option<Entry> {
        let entry = *self.entries.get_mut(task as usize)?.take()?;
        self.ready.remove(&(entry.urgency, task));
        Some(entry)
    }

    /// An agent has a task that it was given by somebody else, or at an earlier time.
    pub fn adopt(&mut self, task: u32, agent: u32, (level, rank): (i64, u64), now: u64, costs: &dyn Costs) {
        self.arrivals += 1;
        let compute = costs.compute(task, agent);
        let given = Given {
            task,
            urgency: (Reverse(level), Reverse(rank), self.arrivals),
            width: self.width(task, agent, costs),
            compute,
            data: now,
            brings: 0,
            due: now + compute,
            end: now + compute,
            after: rank.saturating_sub(compute),
            has_started: self.agents[agent as usize].ahead == 0,
            asked_for: None,
            returns: 0,
            is_settled: false,
        };
        self.close(agent);
        self.agents[agent as usize].begin(given, now);
        self.reopen(agent);
        self.executors.entry(task).or_default().push(agent);
    }

    /// An agent has begun to compute a task that it was given in advance.
    pub fn started(&mut self, task: u32, agent: u32, now: u64) {
        if !self.knows(agent) {
            return;
        }
        self.close(agent);
        self.agents[agent as usize].start(task, now);
        self.reopen(agent);
    }

    /// An agent is done with a task, whatever came of it.
    pub fn ended(&mut self, task: u32, agent: u32, now: u64) {
        if !self.knows(agent) {
            return;
        }
        self.close(agent);
        let given = self.agents[agent as usize].end(task, now);
        if let Some(given) = given.filter(|g| g.asked_for.is_some()) {
            self.returned.insert(task, (agent, given.returns + 1));
        }
        self.reopen(agent);
        self.forget_executor(task, agent);
    }

    /// Looks after agents whose tasks should have ended.
    fn catch_up(&mut self, now: u64) {
        for agent in 0..self.agents.len() as u32 {
            if self.agents[agent as usize].is_late(now) {
                self.close(agent);
                self.agents[agent as usize].catch_up(now);
                self.reopen(agent);
            }
        }
    }

    fn knows(&self, agent: u32) -> bool {
        (agent as usize) < self.agents.len()
    }

    fn forget_executor(&mut self, task: u32, agent: u32) {
        if let Some(executors) = self.executors.get_mut(&task) {
            executors.retain(|a| *a != agent);
            if executors.is_empty() {
                self.executors.remove(&task);
            }
        }
    }

    fn close(&mut self, agent: u32) {
        let state = &self.agents[agent as usize];
        if let Some(open) = self.open.get_mut(&state.kind) {
            open.remove(&(state.when(), state.idle_since, agent));
        }
        if let Some(level) = state.lowest() {
            self.yielding.remove(&(level, state.next(), agent));
        }
    }

    fn reopen(&mut self, agent: u32) {
        let state = &self.agents[agent as usize];
        if state.is_open() {
            self.open.entry(state.kind).or_default().insert((state.when(), state.idle_since, agent));
        }
        if let Some(level) = state.lowest() {
            self.yielding.insert((level, state.next(), agent));
        }
    }

    /// Whether nobody has room for tasks of this level, or will have a slot until then.
    fn is_full(&self, level: i64, horizon: u64) -> bool {
        self.open.values().all(|agents| agents.first().is_none_or(|(when, ..)| *when > horizon))
            && self.yielding.first().is_none_or(|(lowest, ..)| *lowest >= level)
    }

    fn entry(&self, task: u32) -> Option<&Entry> {
        self.entries.get(task as usize)?.as_deref()
    }

    /// Looks where a task's data are.
    fn look(&mut self, task: u32, costs: &dyn Costs) {
        if let Some(Some(entry)) = self.entries.get_mut(task as usize) {
            entry.look(&self.files, costs);
        }
    }
}

#[cfg(test)]
mod tests;
