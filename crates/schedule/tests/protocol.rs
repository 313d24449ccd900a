//! The protocol between schedulers and agents, checked by exploring everything that can happen.
//!
//! The code under test is the code that runs: [`Dispatch`] and [`Attachment`]. Around it is a small model of the
//! store and of a network that loses, delays and repeats messages. Schedulers and agents may die at any moment,
//! and an agent may be taken for dead although it is alive. In every state that can be reached:
//!
//! - a chain has committed at most once,
//! - no start of an agent has started an attempt twice,
//! - and if from now on nothing more goes wrong, every chain is committed in the end: nothing is lost.

use catena_model::chain::{Attempt, ChainKey, ProcessChain, RunId};
use catena_model::{Name, Resources};
use catena_schedule::{Address, AgentInfo, Attachment, Class, Command, Dispatch, Event, Live, Settings};
use proptest::prelude::*;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

const BEAT: i64 = 10;
const LEASE: i64 = 60;
const CHAINS: u64 = 2;

#[derive(Clone, Debug)]
enum ChainIs {
    Waiting,
    With { agent: usize },
    Done,
}

#[derive(Clone, Debug)]
struct Row {
    is: ChainIs,
    attempt: u32,
    commits: u32,
}

/// What must never be lost, as a store keeps it.
#[derive(Clone, Debug)]
struct Store {
    chains: Vec<Row>,
    /// Who looks after which start of an agent.
    agents: Vec<(Option<usize>, u64)>,
}

#[derive(Clone, Debug)]
enum Said {
    /// To a scheduler, or to all: everything an agent knows.
    State {
        to: Option<usize>,
        agent: usize,
        incarnation: u64,
        holding: Vec<Attempt>,
        ended: Vec<Attempt>,
    },
    /// To a scheduler: these have ended.
    Report {
        to: usize,
        agent: usize,
        ended: Vec<Attempt>,
    },
    /// To an agent.
    Attached {
        to: usize,
        scheduler: usize,
    },
    Assign {
        to: usize,
        attempts: Vec<Attempt>,
    },
    Known {
        to: usize,
        attempts: Vec<Attempt>,
    },
    Void {
        to: usize,
        attempts: Vec<Attempt>,
    },
}

#[derive(Clone, Debug)]
struct World {
    now: i64,
    store: Store,
    /// `None` is dead.
    schedulers: Vec<Option<Dispatch>>,
    agents: Vec<Attachment<Attempt>>,
    incarnations: Vec<u64>,
    network: Vec<Said>,
    /// Attempts that a start of an agent has started.
    started: Vec<(usize, u64, Attempt)>,
    /// How much may still go wrong.
    mischief: u32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Deliver(usize),
    Lose(usize),
    Repeat(usize),
    Finish(usize),
    Tick(usize),
    Decide(usize),
    Adopt(usize, usize),
    TakeForDead(usize, usize),
    KillScheduler(usize),
    KillAgent(usize),
}

fn name(n: usize) -> Name {
    Name::new(format!("{n}"))
}

fn number(name: &Name) -> usize {
    name.parse().unwrap()
}

fn chain() -> Arc<ProcessChain> {
    Arc::new(ProcessChain::new("c".into(), Vec::new()))
}

fn attempt(seq: usize, number: u32) -> Attempt {
    Attempt { chain: ChainKey { run: RunId(1), seq: seq as u64 }, number }
}

impl World {
    fn new(schedulers: usize, agents: usize, mischief: u32) -> Self {
        let row = Row { is: ChainIs::Waiting, attempt: 0, commits: 0 };
        let mut world = Self {
            now: 1000,
            store: Store { chains: vec![row; CHAINS as usize], agents: vec![(None, 0); agents] },
            schedulers: vec![Some(Dispatch::new(Settings::default(), BEAT)); schedulers],
            agents: (0..agents).map(|_| Attachment::new(BEAT, LEASE, 1000)).collect(),
            incarnations: vec![1; agents],
            network: Vec::new(),
            started: Vec::new(),
            mischief,
        };
        for s in 0..schedulers {
            world.count_waiting(s);
        }
        world
    }

    fn count_waiting(&mut self, scheduler: usize) {
        let waiting = self.store.chains.iter().filter(|c| matches!(c.is, ChainIs::Waiting)).count() as u64;
        if let Some(dispatch) = &mut self.schedulers[scheduler] {
            dispatch.scheduler().handle(Event::Waiting {
                class: Class::of(&chain()),
                count: waiting,
                rank: 0,
            });
        }
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for i in 0..self.network.len() {
            steps.push(Step::Deliver(i));
            if self.mischief > 0 {
                steps.extend([Step::Lose(i), Step::Repeat(i)]);
            }
        }
        for a in 0..self.agents.len() {
            if self.agents[a].holding().next().is_some() {
                steps.push(Step::Finish(a));
            }
            steps.push(Step::Tick(a));
            if self.mischief > 0 {
                steps.push(Step::KillAgent(a));
            }
        }
        for s in (0..self.schedulers.len()).filter(|s| self.schedulers[*s].is_some()) {
            steps.push(Step::Decide(s));
            for a in 0..self.agents.len() {
                let (owner, incarnation) = self.store.agents[a];
                let dead = owner.is_none_or(|o| self.schedulers[o].is_none());
                if dead && incarnation > 0 {
                    steps.push(Step::Adopt(s, a));
                }
                if owner == Some(s) && self.mischief > 0 {
                    steps.push(Step::TakeForDead(s, a));
                }
            }
            let alive = self.schedulers.iter().flatten().count();
            if alive > 1 && self.mischief > 0 {
                steps.push(Step::KillScheduler(s));
            }
        }
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Deliver(i) => {
                let said = self.network.remove(i);
                self.deliver(said);
            }
            Step::Lose(i) => {
                self.network.remove(i);
                self.mischief -= 1;
            }
            Step::Repeat(i) => {
                let said = self.network[i].clone();
                self.mischief -= 1;
                self.deliver(said);
            }
            Step::Finish(a) => self.finish(a),
            Step::Tick(a) => {
                self.now += BEAT;
                let heard = self.agents[a].tick(self.now);
                if let Some(address) = heard.say {
                    self.say(a, address, false);
                }
            }
            Step::Decide(s) => self.decide(s),
            Step::Adopt(s, a) => self.adopt(s, a),
            Step::TakeForDead(s, a) => {
                self.mischief -= 1;
                self.release(a);
                self.store.agents[a] = (None, 0);
                if let Some(dispatch) = &mut self.schedulers[s] {
                    dispatch.leave(&name(a));
                }
                self.count_waiting(s);
            }
            Step::KillScheduler(s) => {
                self.mischief -= 1;
                self.schedulers[s] = None;
            }
            Step::KillAgent(a) => {
                self.mischief -= 1;
                self.agents[a] = Attachment::new(BEAT, LEASE, self.now);
                self.incarnations[a] += 1;
            }
        }
    }

    /// The store takes back what an agent had.
    fn release(&mut self, agent: usize) {
        for row in &mut self.store.chains {
            if matches!(row.is, ChainIs::With { agent: a, .. } if a == agent) {
                row.is = ChainIs::Waiting;
            }
        }
    }

    fn say(&mut self, agent: usize, address: Address, all: bool) {
        let bond = &mut self.agents[agent];
        let ended = if all { bond.all_untold() } else { bond.untold(self.now) };
        let to = match address {
            Address::Everyone => None,
            Address::Scheduler(s) => Some(number(&s)),
        };
        let holding = bond.holding().collect();
        let incarnation = self.incarnations[agent];
        self.network.push(Said::State { to, agent, incarnation, holding, ended });
    }

    fn finish(&mut self, agent: usize) {
        let bond = &mut self.agents[agent];
        let Some(done) = bond.holding().next() else { return };
        bond.ended(done, done, self.now);
        if let Address::Scheduler(s) = bond.address() {
            self.network.push(Said::Report { to: number(&s), agent, ended: vec![done] });
        }
    }

    fn adopt(&mut self, scheduler: usize, agent: usize) {
        let incarnation = self.store.agents[agent].1;
        self.store.agents[agent] = (Some(scheduler), incarnation);
        self.attach(scheduler, agent, incarnation);
        self.network.push(Said::Attached { to: agent, scheduler });
    }

    /// Reads from the store what an agent should have.
    fn attach(&mut self, scheduler: usize, agent: usize, incarnation: u64) {
        let mut live = BTreeMap::new();
        for (seq, row) in self.store.chains.iter().enumerate() {
            if matches!(row.is, ChainIs::With { agent: a } if a == agent) {
                let class = Class::of(&chain()).key();
                live.insert(attempt(seq, 0).chain, Live::new(row.attempt, 0, class, 0, chain(), 0));
            }
        }
        let resources = Resources { cpus: 1000, memory: u64::MAX, ..Resources::default() };
        let info = AgentInfo { id: name(agent), capabilities: Vec::new(), resources };
        if let Some(dispatch) = &mut self.schedulers[scheduler] {
            dispatch.adopt(info, incarnation, live, self.now);
        }
        self.count_waiting(scheduler);
    }

    fn decide(&mut self, scheduler: usize) {
        self.count_waiting(scheduler);
        let Some(mut dispatch) = self.schedulers[scheduler].take() else { return };
        for command in dispatch.decide(self.now) {
            let Command::Claim { agent, class, limit } = command else { continue };
            let a = number(&agent);
            let mut claimed = Vec::new();
            // The store gives chains only to who looks after the agent.
            let mine = self.store.agents[a].0 == Some(scheduler);
            for (seq, row) in self.store.chains.iter_mut().enumerate().filter(|_| mine) {
                if claimed.len() < limit && matches!(row.is, ChainIs::Waiting) {
                    row.attempt += 1;
                    row.is = ChainIs::With { agent: a };
                    let live = Live::new(row.attempt, 0, class.clone(), 0, chain(), self.now);
                    claimed.push((attempt(seq, row.attempt), live));
                }
            }
            if !claimed.is_empty() {
                let attempts = claimed.iter().map(|c| c.0).collect();
                self.network.push(Said::Assign { to: a, attempts });
            }
            let chains = claimed.into_iter().map(|(a, live)| (a.chain, live)).collect();
            dispatch.claimed(&agent, &class, limit, chains, None);
        }
        self.schedulers[scheduler] = Some(dispatch);
    }

    fn deliver(&mut self, said: Said) {
        match said {
            Said::State { to, agent, incarnation, holding, ended } => {
                let all: Vec<usize> = to.map_or_else(|| (0..self.schedulers.len()).collect(), |s| vec![s]);
                for s in all {
                    self.hear_state(s, agent, incarnation, &holding, &ended);
                }
            }
            Said::Report { to, agent, ended } => self.hear_ends(to, agent, &ended),
            Said::Attached { to, scheduler } => {
                if self.agents[to].attached(&name(scheduler), self.now) {
                    self.say(to, Address::Scheduler(name(scheduler)), true);
                }
            }
            Said::Assign { to, attempts } => {
                for attempt in attempts {
                    if self.agents[to].assigned(attempt, self.now) {
                        let start = (to, self.incarnations[to], attempt);
                        assert!(!self.started.contains(&start), "{start:?} is started twice");
                        self.started.push(start);
                    }
                }
            }
            Said::Known { to, attempts } => self.agents[to].known(&attempts, self.now),
            Said::Void { to, attempts } => {
                for attempt in attempts {
                    if self.agents[to].holding().any(|a| a == attempt) {
                        self.agents[to].ended(attempt, attempt, self.now);
                        self.agents[to].known(&[attempt], self.now);
                    }
                }
            }
        }
    }

    fn hear_state(
        &mut self,
        scheduler: usize,
        agent: usize,
        incarnation: u64,
        holding: &[Attempt],
        ended: &[Attempt],
    ) {
        let Some(dispatch) = &self.schedulers[scheduler] else { return };
        if !dispatch.has(&name(agent), incarnation) {
            // As a scheduler does with an agent that says hello.
            let (owner, before) = self.store.agents[agent];
            let free = owner.is_none_or(|o| o == scheduler || self.schedulers[o].is_none());
            if !free || incarnation < before {
                return;
            }
            if before != incarnation && before != 0 {
                self.release(agent);
            }
            self.store.agents[agent] = (Some(scheduler), incarnation);
            self.attach(scheduler, agent, incarnation);
        }
        let Some(dispatch) = &mut self.schedulers[scheduler] else { return };
        let reconciled = dispatch.beat(&name(agent), holding, ended, self.now);
        if !reconciled.void.is_empty() {
            self.network.push(Said::Void { to: agent, attempts: reconciled.void });
        }
        if !reconciled.resend.is_empty() {
            let attempts = reconciled.resend.iter().map(|r| r.0).collect();
            self.network.push(Said::Assign { to: agent, attempts });
        }
        self.network.push(Said::Attached { to: agent, scheduler });
        if !ended.is_empty() {
            self.hear_ends(scheduler, agent, ended);
        }
    }

    fn hear_ends(&mut self, scheduler: usize, agent: usize, ended: &[Attempt]) {
        let Some(dispatch) = &mut self.schedulers[scheduler] else { return };
        if dispatch.agent(&name(agent)).is_none() {
            return;
        }
        for attempt in ended {
            if dispatch.ended(&name(agent), *attempt, Some(1.0)).is_none() {
                continue;
            }
            let row = &mut self.store.chains[attempt.chain.seq as usize];
            // The store accepts only the newest attempt, and only once.
            if row.attempt == attempt.number && matches!(row.is, ChainIs::With { .. }) {
                row.is = ChainIs::Done;
                row.commits += 1;
            }
        }
        self.network.push(Said::Known { to: agent, attempts: ended.to_vec() });
    }

    /// From here on nothing goes wrong: everything must come to an end.
    fn settle(mut self) {
        for _ in 0..60 {
            if self.store.chains.iter().all(|c| matches!(c.is, ChainIs::Done)) {
                return;
            }
            while !self.network.is_empty() {
                self.take(Step::Deliver(0));
            }
            for a in 0..self.agents.len() {
                self.take(Step::Tick(a));
            }
            for step in self.steps() {
                if matches!(step, Step::Decide(_)) {
                    self.take(step);
                }
            }
            // Death is noticed: who has no living scheduler gets one, whose start is gone loses what it had.
            let adopts: Vec<Step> =
                self.steps().into_iter().filter(|s| matches!(s, Step::Adopt(..))).collect();
            if let Some(step) = adopts.first() {
                self.take(*step);
            }
            for a in 0..self.agents.len() {
                self.finish(a);
            }
        }
        panic!("a chain is lost: {self:#?}");
    }

    fn check(&self) {
        for row in &self.store.chains {
            assert!(row.commits <= 1, "a chain has committed twice: {self:#?}");
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }
}

/// Explores everything that can happen within so many steps. Returns how many states there are.
fn explore(world: World, depth: usize) -> usize {
    let mut seen = HashSet::from([world.fingerprint()]);
    let mut frontier = vec![world];
    for _ in 0..depth {
        let mut next = Vec::new();
        for world in frontier {
            for step in world.steps() {
                let mut changed = world.clone();
                changed.take(step);
                changed.check();
                if seen.insert(changed.fingerprint()) {
                    changed.clone().settle();
                    next.push(changed);
                }
            }
        }
        frontier = next;
    }
    seen.len()
}

#[test]
fn nothing_is_lost_or_doubled_in_any_order_of_events() {
    let states = explore(World::new(2, 1, 2), 8) + explore(World::new(1, 2, 2), 6);
    assert!(states > 20_000, "{states}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled_in_long_runs(choices in prop::collection::vec(any::<u32>(), 1..150)) {
        let mut world = World::new(3, 3, 12);
        for choice in choices {
            let steps = world.steps();
            world.take(steps[choice as usize % steps.len()]);
            world.check();
        }
        world.settle();
    }
}
