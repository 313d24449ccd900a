//! What a live scheduler has learned: how long chains take, how fast agents and the network are.

use super::ReadyChain;
use crate::class::Class;
use crate::placement::Costs;
use crate::scheduler::AgentInfo;
use catena_model::Name;
use catena_model::chain::ChainKey;
use catena_model::content::ContentId;
use std::collections::HashMap;

/// How long a chain is expected to take while nothing is known, in milliseconds.
const EXPECTED: f64 = 1000.0;
/// How fast a network is expected to be while nothing is known, in bytes per millisecond.
const BANDWIDTH: f64 = 125_000.0;
/// What every transfer takes, however small, in nanoseconds.
const LATENCY: u64 = 2_000_000;
/// How much something new changes what is believed.
const LEARNING: f64 = 0.25;
/// Nobody is taken to be slower than so many others.
const SLOWEST: f64 = 100.0;
/// Transfers of fewer bytes say more about latency than about the network.
const TELLING: u64 = 256 << 10;

/// A chain.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) key: ChainKey,
    pub(super) level: i64,
    pub(super) ahead: u64,
    pub(super) replicas: u32,
    /// The agents that have it.
    pub(super) with: Vec<u32>,
    /// Those that execute it, and since when.
    begun: Vec<(u32, u64)>,
    class: usize,
    signature: usize,
    inputs: Vec<u32>,
    is_used: bool,
}

/// An agent.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) info: AgentInfo,
    is_up: bool,
    /// How many times longer it takes than others.
    slowness: f64,
    /// What it has, in units of what it can execute at once, and how much of that it may have.
    load: f64,
    room: f64,
    tasks: Vec<u32>,
}

#[derive(Clone, Debug)]
struct File {
    content: ContentId,
    size: u64,
    readers: usize,
    /// Who has it, and not only will.
    holders: Vec<u32>,
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) now: u64,
    pub(super) tasks: Vec<Task>,
    free_tasks: Vec<u32>,
    pub(super) agents: Vec<Agent>,
    files: Vec<File>,
    free_files: Vec<u32>,
    numbers: HashMap<ContentId, u32>,
    classes: Vec<Class>,
    signatures: HashMap<Name, usize>,
    /// Expected durations by signature, in milliseconds.
    durations: Vec<Option<f64>>,
    /// Of everything together.
    overall: Option<f64>,
    /// Bytes per millisecond.
    bandwidth: Option<f64>,
}

impl Facts {
    pub(super) fn add_agent(&mut self, info: &AgentInfo, ahead: f64) -> u32 {
        // Who joins again is still as fast as before.
        let known = self.agents.iter().position(|a| a.info.id == info.id);
        let slowness = known.map_or(1.0, |k| self.agents[k].slowness);
        let agent = Agent {
            info: info.clone(),
            is_up: true,
            slowness,
            load: 0.0,
            room: 1.0 + ahead,
            tasks: Vec::new(),
        };
        let place = known.or_else(|| self.agents.iter().position(|a| !a.is_up));
        match place {
            Some(place) => self.agents[place] = agent,
            None => self.agents.push(agent),
        }
        place.unwrap_or(self.agents.len() - 1) as u32
    }

    /// An agent is gone. Returns the chains that it had.
    pub(super) fn remove_agent(&mut self, agent: u32) -> Vec<u32> {
        self.agents[agent as usize].is_up = false;
        for file in &mut self.files {
            file.holders.retain(|h| *h != agent);
        }
        let tasks = self.agents[agent as usize].tasks.clone();
        for task in &tasks {
            self.take_back(*task, agent);
        }
        tasks
    }

    pub(super) fn add_task(&mut self, chain: &ReadyChain, level: i64) -> u32 {
        let class = self.classes.iter().position(|c| *c == chain.class).unwrap_or_else(|| {
            self.classes.push(chain.class.clone());
            self.classes.len() - 1
        });
        let signature = self.signatures.get(&chain.signature).copied().unwrap_or_else(|| {
            self.durations.push(None);
            self.signatures.insert(chain.signature.clone(), self.durations.len() - 1);
            self.durations.len() - 1
        });
        let mut inputs: Vec<u32> = chain.inputs.iter().map(|i| self.add_file(i.content, i.size)).collect();
        inputs.sort_unstable();
        inputs.dedup();
        for file in &inputs {
            self.files[*file as usize].readers += 1;
        }
        let task = Task {
            key: chain.key,
            level,
            ahead: chain.ahead,
            replicas: chain.replicas,
            with: Vec::new(),
            begun: Vec::new(),
            class,
            signature,
            inputs,
            is_used: true,
        };
        let number = self.free_tasks.pop().unwrap_or_else(|| {
            self.tasks.push(task.clone());
            self.tasks.len() as u32 - 1
        });
        self.tasks[number as usize] = task;
        number
    }

    /// A chain is forgotten. Returns the files that nobody reads any more.
    pub(super) fn remove_task(&mut self, number: u32) -> Vec<u32> {
        let task = &mut self.tasks[number as usize];
        if !std::mem::take(&mut task.is_used) {
            return Vec::new();
        }
        let inputs = std::mem::take(&mut task.inputs);
        self.free_tasks.push(number);
        let mut unread = Vec::new();
        for file in inputs {
            let f = &mut self.files[file as usize];
            f.readers -= 1;
            if f.readers == 0 {
                self.numbers.remove(&f.content);
                self.free_files.push(file);
                unread.push(file);
            }
        }
        unread
    }

    fn add_file(&mut self, content: ContentId, size: u64) -> u32 {
        if let Some(number) = self.numbers.get(&content) {
            return *number;
        }
        let file = File { content, size, readers: 0, holders: Vec::new() };
        let number = self.free_files.pop().unwrap_or_else(|| {
            self.files.push(file.clone());
            self.files.len() as u32 - 1
        });
        self.files[number as usize] = file;
        self.numbers.insert(content, number);
        number
    }

    /// Whether an agent has a file.
    pub(super) fn has(&self, agent: u32, file: u32) -> bool {
        self.files[file as usize].holders.contains(&agent)
    }

    pub(super) fn hold(&mut self, agent: u32, file: u32) {
        if !self.has(agent, file) {
            self.files[file as usize].holders.push(agent);
        }
    }

    pub(super) fn unhold(&mut self, agent: u32, file: u32) {
        self.files[file as usize].holders.retain(|h| *h != agent);
    }

    /// The number of a file that some chain reads.
    pub(super) fn file(&self, content: ContentId) -> u32 {
        self.numbers[&content]
    }

    pub(super) fn known_file(&self, content: &ContentId) -> Option<u32> {
        self.numbers.get(content).copied()
    }

    /// An agent has a chain now.
    pub(super) fn give(&mut self, number: u32, agent: u32) {
        let share = self.share(number, agent);
        let task = &mut self.tasks[number as usize];
        task.with.push(agent);
        let on = &mut self.agents[agent as usize];
        on.load += share;
        on.tasks.push(number);
    }

    /// An agent does not have a chain any more.
    pub(super) fn take_back(&mut self, number: u32, agent: u32) {
        let share = self.share(number, agent);
        let task = &mut self.tasks[number as usize];
        let Some(place) = task.with.iter().position(|a| *a == agent) else { return };
        task.with.swap_remove(place);
        task.begun.retain(|(a, _)| *a != agent);
        let on = &mut self.agents[agent as usize];
        on.tasks.retain(|t| *t != number);
        on.load = if on.tasks.is_empty() { 0.0 } else { on.load - share };
    }

    /// How much of what an agent can execute at once a chain takes.
    fn share(&self, number: u32, agent: u32) -> f64 {
        let need = &self.classes[self.tasks[number as usize].class].resources;
        let have = &self.agents[agent as usize].info.resources;
        let part = |need: u64, have: u64| if need == 0 { 0.0 } else { need as f64 / have.max(1) as f64 };
        let named = need.named.iter().map(|(n, v)| part(*v, have.named.get(n).copied().unwrap_or(0)));
        let parts = [part(need.cpus, have.cpus), part(need.memory, have.memory), part(need.disk, have.disk)];
        parts.into_iter().chain(named).fold(0.0, f64::max)
    }

    /// Whether it is known how long chains like this one take.
    pub(super) fn is_known(&self, number: u32) -> bool {
        self.durations[self.tasks[number as usize].signature].is_some()
    }

    /// How long a chain takes on an agent like most others, in nanoseconds.
    pub(super) fn typical(&self, number: u32) -> u64 {
        let known = self.durations[self.tasks[number as usize].signature].or(self.overall);
        (known.unwrap_or(EXPECTED) * 1e6) as u64
    }

    /// The level of a chain, and how long it is from its beginning to the end of everything.
    pub(super) fn urgency(&self, number: u32) -> (i64, u64) {
        let task = &self.tasks[number as usize];
        (task.level, (task.ahead * 1_000_000).max(self.typical(number)))
    }

    /// A chain took so long on an agent, in milliseconds. What takes much longer or shorter than expected says something of
    /// the agent; what takes about as long, of chains like this one.
    pub(super) fn learn(&mut self, number: u32, agent: u32, millis: f64) {
        let signature = self.tasks[number as usize].signature;
        let on = &mut self.agents[agent as usize];
        let Some(expected) = self.durations[signature] else {
            self.durations[signature] = Some(millis / on.slowness);
            self.overall.get_or_insert(millis / on.slowness);
            return;
        };
        let seen = (millis.max(1.0) / expected.max(1.0)).clamp(0.05, SLOWEST);
        let surprise = seen / on.slowness;
        on.slowness += (seen - on.slowness) * LEARNING;
        let weight = if (0.5..2.0).contains(&surprise) { LEARNING } else { LEARNING / 8.0 };
        let plain = millis / on.slowness.max(0.05);
        for known in self.durations[signature].iter_mut().chain(&mut self.overall) {
            *known += (plain - *known) * weight;
        }
    }

    /// An agent executes a chain from now on.
    pub(super) fn begin(&mut self, number: u32, agent: u32, now: u64) {
        self.tasks[number as usize].begun.push((agent, now));
    }

    /// Chains that an agent has and has not begun to execute.
    pub(super) fn waiting_at(&self, agent: u32) -> Vec<ChainKey> {
        let tasks = self.agents[agent as usize].tasks.iter().map(|t| &self.tasks[*t as usize]);
        tasks.filter(|t| t.begun.iter().all(|(a, _)| *a != agent)).map(|t| t.key).collect()
    }

    /// An agent is not done with a chain that somebody else has executed meanwhile. It will be at least as long again: that
    /// is all that is known of somebody who never comes to an end.
    pub(super) fn learn_slow(&mut self, number: u32, agent: u32, now: u64) {
        let begun = &self.tasks[number as usize].begun;
        let Some((_, since)) = begun.iter().find(|(a, _)| *a == agent).copied() else { return };
        let seen = 2.0 * now.saturating_sub(since) as f64 / self.typical(number).max(1) as f64;
        let slowness = &mut self.agents[agent as usize].slowness;
        if self.durations[self.tasks[number as usize].signature].is_some() && seen > *slowness {
            *slowness = seen.min(SLOWEST);
        }
    }

    /// How fast an agent seems to be: the same for those that are about equally fast.
    pub(super) fn pace(&self, agent: u32) -> i32 {
        // Within a factor of two nobody can tell.
        self.agents[agent as usize].slowness.max(0.05).log2().round() as i32
    }

    pub(super) fn learn_transfer(&mut self, bytes: u64, millis: f64) {
        if bytes >= TELLING {
            let seen = bytes as f64 / millis.max(0.1);
            let known = self.bandwidth.get_or_insert(seen);
            *known += (seen - *known) * LEARNING;
        }
    }
}

impl Costs for Facts {
    fn can(&self, task: u32, agent: u32) -> bool {
        let class = &self.classes[self.tasks[task as usize].class];
        let Agent { info, is_up, .. } = &self.agents[agent as usize];
        *is_up
            && class.capabilities.iter().all(|c| info.capabilities.contains(c))
            && info.resources.fits(&class.resources)
    }

    fn fits(&self, task: u32, agent: u32, others: &[u32]) -> bool {
        let on = &self.agents[agent as usize];
        let others: f64 = others.iter().map(|t| self.share(*t, agent)).sum();
        self.can(task, agent) && on.load + others + self.share(task, agent) <= on.room + 1e-9
    }

    fn compute(&self, task: u32, agent: u32) -> u64 {
        (self.typical(task) as f64 * self.agents[agent as usize].slowness) as u64
    }

    fn transfer(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        LATENCY + (bytes as f64 / self.bandwidth.unwrap_or(BANDWIDTH) * 1e6) as u64
    }

    fn inputs(&self, task: u32) -> &[u32] {
        &self.tasks[task as usize].inputs
    }

    fn size(&self, file: u32) -> u64 {
        self.files[file as usize].size
    }

    fn width(&self, task: u32, agent: u32) -> usize {
        let slots = (self.agents[agent as usize].info.resources.cpus / 1000).max(1) as f64;
        (self.share(task, agent) * slots - 1e-9).ceil().max(1.0) as usize
    }

    fn unstarted(&self) -> u64 {
        let waiting = (0..).zip(&self.tasks).filter(|(_, t)| t.is_used && t.with.is_empty());
        waiting.map(|(number, _)| self.typical(number)).sum()
    }
}
