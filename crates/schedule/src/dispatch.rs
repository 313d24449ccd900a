//! What a scheduler knows of the agents it looks after, and of the attempts they have.
//!
//! The store says which attempts an agent should have; the agent says which it has. [`Dispatch::beat`] finds out
//! what to do where the two differ.

use crate::class::Class;
use crate::scheduler::{AgentInfo, Command, Event, Scheduler, Settings};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ProcessChain};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An attempt that an agent has.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its number.
    pub attempt: u32,
    /// How many attempts at the chain have failed. Those that were lost do not count.
    pub failures: u32,
    /// The class of the chain.
    pub class: Name,
    /// Its rank among those that wait.
    pub rank: i64,
    /// The chain.
    pub chain: Arc<ProcessChain>,
    /// When it was last sent.
    sent: i64,
    recalled: bool,
}

impl Live {
    /// An attempt that was sent, or has to be sent if that was long ago.
    pub fn new(
        attempt: u32,
        failures: u32,
        class: Name,
        rank: i64,
        chain: Arc<ProcessChain>,
        sent: i64,
    ) -> Self {
        Self { attempt, failures, class, rank, chain, sent, recalled: false }
    }
}

/// Where agent and store differ.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// Send these again: the agent does not have them.
    pub resend: Vec<(Attempt, Arc<ProcessChain>)>,
    /// Tell the agent that these are void: somebody else has or had the chains.
    pub void: Vec<Attempt>,
}

/// The agents of one scheduler.
#[derive(Clone, Debug, Default)]
pub struct Dispatch {
    scheduler: Scheduler,
    agents: BTreeMap<Name, Attached>,
    /// How long an assignment may be on its way, in milliseconds.
    patience: i64,
}

#[derive(Clone, Debug)]
struct Attached {
    info: AgentInfo,
    incarnation: u64,
    heard: i64,
    live: BTreeMap<ChainKey, Live>,
}

impl Dispatch {
    /// Nobody yet. An assignment that an agent has not got after `patience` milliseconds is sent again.
    pub fn new(settings: Settings, patience: i64) -> Self {
        Self { scheduler: Scheduler::new(settings), agents: BTreeMap::new(), patience }
    }

    /// The scheduler that decides.
    pub fn scheduler(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// Takes an agent on, or again, with the attempts that it should have.
    pub fn adopt(
        &mut self,
        info: AgentInfo,
        incarnation: u64,
        mut live: BTreeMap<ChainKey, Live>,
        heard: i64,
    ) {
        let before = self.agents.get(&info.id).filter(|a| a.incarnation == incarnation);
        let heard = before.map_or(heard, |a| a.heard.max(heard));
        for (chain, live) in &mut live {
            // What was sent a moment ago is still on its way.
            if let Some(old) = before.and_then(|b| b.live.get(chain)).filter(|l| l.attempt == live.attempt) {
                (live.sent, live.recalled) = (old.sent, old.recalled);
            }
        }
        let id = info.id.clone();
        self.scheduler.handle(Event::AgentJoined(info.clone()));
        for live in live.values() {
            if let Some(class) = Class::from_key(&live.class) {
                self.scheduler.handle(Event::Has { agent: id.clone(), class, count: 1 });
            }
        }
        self.agents.insert(id, Attached { info, incarnation, heard, live });
    }

    /// Whether it looks after this start of an agent.
    pub fn has(&self, agent: &Name, incarnation: u64) -> bool {
        self.agents.get(agent).is_some_and(|a| a.incarnation == incarnation)
    }

    /// The agents it looks after.
    pub fn agents(&self) -> impl Iterator<Item = &Name> {
        self.agents.keys()
    }

    /// What an agent offers, which start of it this is, and how many attempts it has.
    pub fn agent(&self, agent: &Name) -> Option<(&AgentInfo, u64, usize)> {
        self.agents.get(agent).map(|a| (&a.info, a.incarnation, a.live.len()))
    }

    /// The attempt at a chain that an agent has.
    pub fn live(&self, agent: &Name, attempt: Attempt) -> Option<&Live> {
        let live = self.agents.get(agent)?.live.get(&attempt.chain);
        live.filter(|l| l.attempt == attempt.number)
    }

    /// An agent was heard of.
    pub fn heard(&mut self, agent: &Name, now: i64) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.heard = agent.heard.max(now);
        }
    }

    /// Compares what an agent says it has with what it should have. `told` are attempts whose end it tells.
    pub fn beat(&mut self, agent: &Name, holding: &[Attempt], told: &[Attempt], now: i64) -> Reconciled {
        self.heard(agent, now);
        let mut reconciled = Reconciled::default();
        let Some(agent) = self.agents.get_mut(agent) else { return reconciled };
        let there: BTreeSet<Attempt> = holding.iter().chain(told).copied().collect();
        for (chain, live) in &mut agent.live {
            let attempt = Attempt { chain: *chain, number: live.attempt };
            if !there.contains(&attempt) && now - live.sent >= self.patience {
                live.sent = now;
                reconciled.resend.push((attempt, live.chain.clone()));
            }
        }
        let wanted = |a: &&Attempt| agent.live.get(&a.chain).is_some_and(|l| l.attempt == a.number);
        reconciled.void = holding.iter().filter(|a| !wanted(a)).copied().collect();
        reconciled
    }

    /// An attempt has ended. `None` if the agent should not have had it, or has told so before.
    pub fn ended(&mut self, agent: &Name, attempt: Attempt, millis: Option<f64>) -> Option<Live> {
        let live = &mut self.agents.get_mut(agent)?.live;
        if live.get(&attempt.chain)?.attempt != attempt.number {
            return None;
        }
        let live = live.remove(&attempt.chain)?;
        self.scheduler.handle(Event::Ended { agent: agent.clone(), class: live.class.clone(), millis });
        Some(live)
    }

    /// What to do now.
    pub fn decide(&mut self, now: i64) -> Vec<Command> {
        self.scheduler.decide(now)
    }

    /// The answer to a claim.
    pub fn claimed(
        &mut self,
        agent: &Name,
        class: &Name,
        asked: usize,
        chains: Vec<(ChainKey, Live)>,
        rank: Option<i64>,
    ) {
        let (asked, got) = (asked as u64, chains.len() as u64);
        self.scheduler.handle(Event::Claimed {
            agent: agent.clone(),
            class: class.clone(),
            asked,
            got,
            rank,
        });
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.live.extend(chains);
        }
    }

    /// An agent was given a certain chain: one that waited, or one that others execute too.
    pub fn given(&mut self, agent: &Name, chain: ChainKey, live: Live, has_waited: bool) {
        let Some(attached) = self.agents.get_mut(agent) else { return };
        if let Some(class) = Class::from_key(&live.class) {
            self.scheduler.handle(Event::Has { agent: agent.clone(), class, count: 1 });
        }
        let (class, n) = (live.class.clone(), u64::from(has_waited));
        self.scheduler.handle(Event::Claimed { agent: agent.clone(), class, asked: n, got: n, rank: None });
        attached.live.insert(chain, live);
    }

    /// An agent does not have a chain any more, and what becomes of it there does not matter.
    pub fn dropped(&mut self, agent: &Name, chain: ChainKey) -> Option<Attempt> {
        let live = self.agents.get_mut(agent)?.live.remove(&chain)?;
        self.scheduler.handle(Event::Ended { agent: agent.clone(), class: live.class, millis: None });
        Some(Attempt { chain, number: live.attempt })
    }

    /// Which attempt at a chain an agent has.
    pub fn attempt(&self, agent: &Name, chain: ChainKey) -> Option<Attempt> {
        let live = self.agents.get(agent)?.live.get(&chain)?;
        Some(Attempt { chain, number: live.attempt })
    }

    /// The attempts to ask back from an agent: the ones that were sent last have most likely not started.
    pub fn recall(&mut self, agent: &Name, class: &Name, limit: usize) -> Vec<Attempt> {
        let Some(agent) = self.agents.get_mut(agent) else { return Vec::new() };
        let mut candidates: Vec<(&ChainKey, &mut Live)> =
            agent.live.iter_mut().filter(|(_, l)| l.class == *class && !l.recalled).collect();
        candidates.sort_by_key(|(chain, live)| (-live.sent, std::cmp::Reverse(**chain)));
        let chosen = candidates.into_iter().take(limit);
        chosen
            .map(|(chain, live)| {
                live.recalled = true;
                Attempt { chain: *chain, number: live.attempt }
            })
            .collect()
    }

    /// Agents that were not heard of for so long.
    pub fn silent(&self, lease: i64, now: i64) -> Vec<Name> {
        self.agents.iter().filter(|(_, a)| now - a.heard > lease).map(|(id, _)| id.clone()).collect()
    }

    /// An agent is gone, or somebody else looks after it now.
    pub fn leave(&mut self, agent: &Name) {
        self.agents.remove(agent);
        self.scheduler.handle(Event::AgentLeft(agent.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::Resources;
    use catena_model::chain::RunId;

    fn key(seq: u64) -> ChainKey {
        ChainKey { run: RunId(1), seq }
    }

    fn attempt(seq: u64, number: u32) -> Attempt {
        Attempt { chain: key(seq), number }
    }

    fn live(number: u32, sent: i64) -> Live {
        let chain = ProcessChain::new("c".into(), Vec::new());
        Live::new(number, 0, Class::of(&chain).key(), 0, Arc::new(chain), sent)
    }

    fn dispatch(attempts: &[(u64, u32)]) -> Dispatch {
        let mut d = Dispatch::new(Settings::default(), 10);
        let info = AgentInfo { id: "a".into(), capabilities: Vec::new(), resources: Resources::default() };
        d.adopt(info, 1, attempts.iter().map(|(seq, n)| (key(*seq), live(*n, 0))).collect(), 0);
        d
    }

    #[test]
    fn what_the_agent_lacks_is_sent_again_but_not_at_once() {
        let mut d = dispatch(&[(1, 1), (2, 1)]);
        assert!(d.beat(&"a".into(), &[], &[], 5).resend.is_empty(), "it may be on its way");
        let resent = d.beat(&"a".into(), &[attempt(1, 1)], &[], 10).resend;
        assert_eq!(resent.iter().map(|r| r.0).collect::<Vec<_>>(), [attempt(2, 1)]);
        assert!(d.beat(&"a".into(), &[attempt(1, 1)], &[], 15).resend.is_empty());
        assert!(d.beat(&"a".into(), &[], &[attempt(1, 1), attempt(2, 1)], 99).resend.is_empty());
    }

    #[test]
    fn what_the_agent_should_not_have_is_void() {
        let mut d = dispatch(&[(1, 2)]);
        let void = d.beat(&"a".into(), &[attempt(1, 1), attempt(1, 2), attempt(3, 1)], &[], 1).void;
        assert_eq!(void, [attempt(1, 1), attempt(3, 1)]);
    }

    #[test]
    fn an_end_counts_once_and_only_for_the_live_attempt() {
        let mut d = dispatch(&[(1, 2)]);
        assert!(d.ended(&"a".into(), attempt(1, 1), None).is_none());
        assert!(d.ended(&"b".into(), attempt(1, 2), None).is_none());
        assert!(d.ended(&"a".into(), attempt(1, 2), Some(5.0)).is_some());
        assert!(d.ended(&"a".into(), attempt(1, 2), Some(5.0)).is_none());
    }

    #[test]
    fn silence_is_noticed() {
        let mut d = dispatch(&[]);
        assert!(d.silent(30, 30).is_empty());
        assert_eq!(d.silent(30, 31), ["a"]);
        d.heard(&"a".into(), 20);
        assert!(d.silent(30, 31).is_empty());
        d.leave(&"a".into());
        assert!(d.silent(30, 1000).is_empty());
    }
}
