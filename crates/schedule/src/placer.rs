//! Places the chains of a live cluster whose agents have files of their own: learns what things cost, and drives
//! [`Placement`] and [`Speculation`] with that.
//!
//! It knows the chains that are ready, what they read and who has it; everything else is in the store. Chains and files
//! have small numbers here, which are used again.

mod facts;

use crate::class::Class;
use crate::placement::{Costs, Placement};
use crate::scheduler::AgentInfo;
use crate::speculation::{Patience, Speculation};
use crate::stages::{Place, Queue, Replicate, Stages};
use catena_model::Name;
use catena_model::chain::{ChainKey, ProcessChain};
use catena_model::content::ContentId;
use facts::{Facts, Task};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// A chain that waits for an agent.
#[derive(Clone, Debug)]
pub struct ReadyChain {
    /// Which.
    pub key: ChainKey,
    /// Its rank in the store: priority and age.
    pub rank: i64,
    /// What it requires.
    pub class: Class,
    /// What it does: chains with the same signature take about the same time.
    pub signature: Name,
    /// How long it is from its beginning to the end of its workflow, in milliseconds.
    pub ahead: u64,
    /// So many agents execute it, if they have nothing else to do.
    pub replicas: u32,
    /// What it reads.
    pub inputs: Vec<ReadyInput>,
}

/// Something that a chain reads.
#[derive(Clone, Debug)]
pub struct ReadyInput {
    /// What.
    pub content: ContentId,
    /// How many bytes of it.
    pub size: u64,
    /// Who has it.
    pub holders: Vec<Name>,
}

impl ReadyChain {
    /// What chains are called that do the same: the services of their tasks.
    pub fn signature_of(chain: &ProcessChain) -> Name {
        let names: Vec<&str> = chain.executables.iter().map(|t| t.service_id.as_str()).collect();
        Name::new(names.join("+"))
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Give a chain that waits to an agent.
    Pick {
        /// The chain.
        chain: ChainKey,
        /// The agent.
        agent: Name,
    },
    /// Let one more agent execute a chain.
    Copy {
        /// The chain.
        chain: ChainKey,
        /// The agent.
        agent: Name,
    },
    /// Ask an agent to give a chain back that it has not started: another one could begin at once.
    Recall {
        /// The chain.
        chain: ChainKey,
        /// The agent.
        agent: Name,
    },
}

/// Decides which chain goes to which agent.
pub struct Placer {
    stages: Stages,
    aging: Duration,
    placement: Placement,
    speculation: Speculation,
    facts: Facts,
    numbers: HashMap<ChainKey, u32>,
    agents: HashMap<Name, u32>,
    /// Agents that offer the same and are about equally fast.
    kinds: Vec<(AgentInfo, i32)>,
    /// Chains of which more executions are wanted, whatever happens.
    wanted: BTreeSet<u32>,
    /// Executions of which nobody knows yet how long they should take: the chain, the agent, and since when.
    unwatched: Vec<(u32, u32, u64)>,
}

impl Placer {
    /// Nobody is there yet, and nothing to do.
    pub fn new(stages: Stages, aging: Duration) -> Self {
        // What is over soon need not be copied.
        let patience = Patience { least: 500_000_000, ..Patience::default() };
        Self {
            stages,
            aging,
            placement: Placement::new(stages.place),
            speculation: Speculation::new(patience),
            facts: Facts::default(),
            numbers: HashMap::new(),
            agents: HashMap::new(),
            kinds: Vec::new(),
            wanted: BTreeSet::new(),
            unwatched: Vec::new(),
        }
    }

    /// How many chains an agent holds besides those that it executes, where it can execute so many at once.
    fn ahead(&self, slots: usize) -> usize {
        match self.stages.queue {
            Queue::Batch => slots,
            Queue::Depth(n) => n as usize * slots,
            Queue::All => usize::MAX / 4,
        }
    }

    /// An agent is there, or again.
    pub fn join(&mut self, info: &AgentInfo, now: u64) {
        self.leave(&info.id);
        let slots = (info.resources.cpus / 1000).max(1) as usize;
        let ahead = self.ahead(slots);
        let number = self.facts.add_agent(info, ahead as f64 / slots as f64);
        self.agents.insert(info.id.clone(), number);
        let kind = self.kind(number);
        self.placement.join(number, kind, slots, ahead, now);
    }

    /// The kind of an agent, by what it offers and by how fast it seems to be.
    fn kind(&mut self, agent: u32) -> usize {
        let (info, pace) = (&self.facts.agents[agent as usize].info, self.facts.pace(agent));
        let same = |(k, p): &(AgentInfo, i32)| {
            *p == pace && k.capabilities == info.capabilities && k.resources == info.resources
        };
        if let Some(known) = self.kinds.iter().position(same) {
            return known;
        }
        self.kinds.push((AgentInfo { id: Name::default(), ..info.clone() }, pace));
        self.kinds.len() - 1
    }

    /// An agent is gone, with everything it has.
    pub fn leave(&mut self, agent: &Name) {
        let Some(number) = self.agents.remove(agent) else { return };
        self.placement.leave(number);
        for task in self.facts.remove_agent(number) {
            self.speculation.ended(task, number);
            self.drop_if_idle(task);
        }
    }

    /// Whether an agent is there.
    pub fn has_agent(&self, agent: &Name) -> bool {
        self.agents.contains_key(agent)
    }

    /// Whether a chain is known: it waits, or somebody has it.
    pub fn knows(&self, chain: ChainKey) -> bool {
        self.numbers.contains_key(&chain)
    }

    /// Chains that wait for an agent.
    pub fn waiting(&self) -> impl Iterator<Item = ChainKey> {
        self.numbers
            .iter()
            .filter(|(_, n)| self.facts.tasks[**n as usize].with.is_empty())
            .map(|(key, _)| *key)
    }

    /// A chain waits for an agent.
    pub fn ready(&mut self, chain: &ReadyChain) {
        self.forget(chain.key);
        let level = chain.rank.div_euclid((self.aging.as_millis() as i64).max(1));
        let number = self.facts.add_task(chain, level);
        self.numbers.insert(chain.key, number);
        for input in &chain.inputs {
            let file = self.facts.file(input.content);
            for holder in input.holders.iter().filter_map(|h| self.agents.get(h)) {
                self.placement.hold(*holder, &[file]);
                self.facts.hold(*holder, file);
            }
        }
        self.add(number);
    }

    fn add(&mut self, number: u32) {
        let (level, rank) = self.facts.urgency(number);
        self.placement.add(number, level, rank, &self.facts);
    }

    /// An agent has a chain from an earlier time, or by a gift.
    pub fn has(&mut self, chain: &ReadyChain, agent: &Name, now: u64) {
        let Some(on) = self.agents.get(agent).copied() else { return };
        if !self.knows(chain.key) {
            let level = chain.rank.div_euclid((self.aging.as_millis() as i64).max(1));
            let number = self.facts.add_task(chain, level);
            self.numbers.insert(chain.key, number);
        }
        let number = self.numbers[&chain.key];
        if !self.facts.tasks[number as usize].with.contains(&on) {
            self.placement.adopt(number, on, self.facts.urgency(number), now, &self.facts);
            self.facts.give(number, on);
        }
    }

    /// A chain does not concern anybody any more: it is over, or somebody else gives it away.
    pub fn forget(&mut self, chain: ChainKey) {
        let Some(number) = self.numbers.remove(&chain) else { return };
        self.wanted.remove(&number);
        self.placement.remove(number);
        self.speculation.forget(number);
        for agent in self.facts.tasks[number as usize].with.clone() {
            self.placement.ended(number, agent, self.facts.now);
            self.facts.take_back(number, agent);
        }
        for file in self.facts.remove_task(number) {
            self.placement.forget_file(file);
        }
    }

    fn drop_if_idle(&mut self, number: u32) {
        let task = &self.facts.tasks[number as usize];
        if task.with.is_empty() {
            self.forget(task.key);
        }
    }

    /// An agent is done with a chain, whatever came of it. It took so long, in milliseconds, if it came to its end.
    pub fn ended(&mut self, chain: ChainKey, agent: &Name, millis: Option<f64>, now: u64) {
        self.facts.now = now;
        let (Some(number), Some(on)) = (self.numbers.get(&chain).copied(), self.agents.get(agent).copied())
        else {
            return;
        };
        if let Some(millis) = millis {
            self.facts.learn(number, on, millis);
            let kind = self.kind(on);
            self.placement.set_kind(on, kind);
            self.watch();
        }
        self.placement.ended(number, on, now);
        self.speculation.ended(number, on);
        self.facts.take_back(number, on);
        self.drop_if_idle(number);
    }

    /// A chain is over, and somebody else has executed it: whoever still does so is slower than was believed.
    pub fn overtaken(&mut self, chain: ChainKey, by: &Name, now: u64) {
        let Some(number) = self.numbers.get(&chain).copied() else { return };
        let by = self.agents.get(by).copied();
        for on in self.facts.tasks[number as usize].with.clone() {
            if Some(on) != by {
                self.facts.learn_slow(number, on, now);
                let kind = self.kind(on);
                self.placement.set_kind(on, kind);
            }
        }
    }

    /// An agent executes a chain from now on.
    pub fn started(&mut self, chain: ChainKey, agent: &Name, now: u64) {
        let (Some(number), Some(on)) = (self.numbers.get(&chain).copied(), self.agents.get(agent).copied())
        else {
            return;
        };
        self.placement.started(number, on, now);
        self.facts.begin(number, on, now);
        if self.stages.replicate == Replicate::Speculative {
            self.unwatched.push((number, on, now));
            self.watch();
        }
        // What only waits there had better be given away than be executed twice.
        self.want_copies(number);
    }

    /// Watches executions of which it is known how long they should take.
    fn watch(&mut self) {
        let Self { facts, speculation, unwatched, .. } = self;
        unwatched.retain(|(number, on, since)| {
            let goes_on = facts.tasks[*number as usize].with.contains(on);
            let is_known = facts.is_known(*number);
            if goes_on && is_known {
                speculation.started(*number, *on, *since, facts.typical(*number));
            }
            goes_on && !is_known
        });
    }

    /// Who has some content, as far as it matters to chains that wait.
    pub fn holds(&mut self, agent: &Name, contents: &[ContentId]) {
        let Some(on) = self.agents.get(agent).copied() else { return };
        let files: Vec<u32> = contents.iter().filter_map(|c| self.facts.known_file(c)).collect();
        self.placement.hold(on, &files);
        for file in files {
            self.facts.hold(on, file);
        }
    }

    /// Who does not have some content any more.
    pub fn lost(&mut self, agent: &Name, contents: &[ContentId]) {
        let Some(on) = self.agents.get(agent).copied() else { return };
        let files: Vec<u32> = contents.iter().filter_map(|c| self.facts.known_file(c)).collect();
        self.placement.unhold(on, &files);
        for file in files {
            self.facts.unhold(on, file);
        }
    }

    /// So many bytes were brought to an agent in so much time, in milliseconds.
    pub fn brought(&mut self, bytes: u64, millis: f64) {
        self.facts.learn_transfer(bytes, millis);
    }

    /// What to do now. What could not be done has to be told: [`Placer::refused`].
    pub fn decide(&mut self, now: u64) -> Vec<Placed> {
        self.facts.now = now;
        let mut placed = Vec::new();
        for number in self.speculation.late(now) {
            self.add(number);
            self.leave_behind(number, now, &mut placed);
        }
        for number in std::mem::take(&mut self.wanted) {
            let (level, _) = self.facts.urgency(number);
            self.placement.add(number, level.saturating_sub(1 << 40), 0, &self.facts);
        }
        for (number, on) in self.placement.decide(now, &self.facts) {
            let Task { key, with, .. } = &self.facts.tasks[number as usize];
            let (chain, is_copy) = (*key, !with.is_empty());
            let agent = self.facts.agents[on as usize].info.id.clone();
            if is_copy && !self.is_cheap(number, on) {
                self.placement.ended(number, on, now);
                continue;
            }
            self.facts.give(number, on);
            placed.push(if is_copy { Placed::Copy { chain, agent } } else { Placed::Pick { chain, agent } });
        }
        if self.stages.place == Place::EarliestFinish {
            for (number, on) in self.placement.recall(now, &self.facts) {
                let chain = self.facts.tasks[number as usize].key;
                placed.push(Placed::Recall { chain, agent: self.facts.agents[on as usize].info.id.clone() });
            }
        }
        placed
    }

    /// Who is late with a chain is slower than was believed, and what waits there for its turn had better not.
    fn leave_behind(&mut self, number: u32, now: u64, placed: &mut Vec<Placed>) {
        for on in self.facts.tasks[number as usize].with.clone() {
            self.facts.learn_slow(number, on, now);
            let kind = self.kind(on);
            self.placement.set_kind(on, kind);
            let agent = self.facts.agents[on as usize].info.id.clone();
            let waiting = self.facts.waiting_at(on);
            placed.extend(waiting.into_iter().map(|chain| Placed::Recall { chain, agent: agent.clone() }));
        }
    }

    /// Whether it takes less to bring an agent what it lacks of a chain's inputs than to execute the chain.
    fn is_cheap(&self, number: u32, on: u32) -> bool {
        let lacks = |file: &&u32| !self.facts.has(on, **file);
        let missing = self.facts.inputs(number).iter().filter(lacks).map(|file| self.facts.size(*file)).sum();
        self.facts.transfer(missing) <= self.facts.compute(number, on)
    }

    fn want_copies(&mut self, number: u32) {
        let task = &self.facts.tasks[number as usize];
        let always = if let Replicate::Copies(n) = self.stages.replicate { u32::from(n) } else { 1 };
        if (task.with.len() as u32) < task.replicas.max(always) {
            self.wanted.insert(number);
        }
    }

    /// A chain did not go where it should: somebody else has it.
    pub fn refused(&mut self, chain: ChainKey, agent: &Name, now: u64) {
        self.ended(chain, agent, None, now);
    }

    /// When to decide again, even if nothing happens before, in nanoseconds: somebody will be late, or should get something.
    pub fn wake(&mut self) -> Option<u64> {
        let late = self.speculation.next_late();
        late.into_iter().chain(self.placement.wake()).min()
    }

    /// Those who have a chain.
    pub fn with(&self, chain: ChainKey) -> Vec<Name> {
        let Some(number) = self.numbers.get(&chain) else { return Vec::new() };
        let with = &self.facts.tasks[*number as usize].with;
        with.iter().map(|a| self.facts.agents[*a as usize].info.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests;
