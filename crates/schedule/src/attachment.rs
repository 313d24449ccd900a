//! What an agent knows of its scheduler, and of what its scheduler may not know yet.
//!
//! Messages may be lost in both directions. So an agent says everything again from time to time, keeps the end
//! of an attempt until somebody has confirmed it, and looks for another scheduler when its own falls silent.

use catena_model::Name;
use catena_model::chain::Attempt;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Whom to speak to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Every scheduler: who hears it may take the agent over.
    Everyone,
    /// The one that looks after the agent.
    Scheduler(Name),
}

/// What the passing of time asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Say everything to them.
    pub say: Option<Address>,
    /// Nobody has spoken to the agent for so long that it should give back what it has not started.
    pub free: bool,
}

/// How many ended attempts are remembered, so that a late copy of an assignment does not start them again.
const REMEMBERED: usize = 8192;

/// The agent's side of the bond between an agent and its scheduler. `E` is what tells of an end.
#[derive(Clone, Debug)]
pub struct Attachment<E> {
    /// How often to say everything, in milliseconds.
    beat: i64,
    /// How long silence is accepted.
    lease: i64,
    scheduler: Option<Name>,
    heard: i64,
    said: i64,
    freed: bool,
    holding: BTreeSet<Attempt>,
    /// Ended, and when that was last said.
    ended: BTreeMap<Attempt, (E, i64)>,
    over: VecDeque<Attempt>,
    over_set: BTreeSet<Attempt>,
}

impl<E: Clone> Attachment<E> {
    /// An agent that has just started.
    pub fn new(beat: i64, lease: i64, now: i64) -> Self {
        Self {
            beat,
            lease,
            scheduler: None,
            heard: now,
            said: now - beat,
            freed: false,
            holding: BTreeSet::new(),
            ended: BTreeMap::new(),
            over: VecDeque::new(),
            over_set: BTreeSet::new(),
        }
    }

    /// Whom to report to.
    pub fn address(&self) -> Address {
        self.scheduler.clone().map_or(Address::Everyone, Address::Scheduler)
    }

    /// Attempts that wait or run here.
    pub fn holding(&self) -> impl Iterator<Item = Attempt> {
        self.holding.iter().copied()
    }

    /// Whether there is nothing to do and nothing to tell.
    pub fn is_idle(&self) -> bool {
        self.holding.is_empty() && self.ended.is_empty()
    }

    /// A chain was assigned. Returns whether to start it: not if it is here or was here already.
    pub fn assigned(&mut self, attempt: Attempt, now: i64) -> bool {
        self.heard = now;
        !self.ended.contains_key(&attempt)
            && !self.over_set.contains(&attempt)
            && self.holding.insert(attempt)
    }

    /// An attempt has ended, and its scheduler is told now.
    pub fn ended(&mut self, attempt: Attempt, event: E, now: i64) {
        self.holding.remove(&attempt);
        self.ended.insert(attempt, (event, now));
    }

    /// A chain that has not started goes to another agent. If nobody hears of it, it comes back.
    pub fn gave(&mut self, attempt: Attempt) {
        self.holding.remove(&attempt);
    }

    /// A scheduler says that it looks after the agent. Returns whether it should be told everything.
    pub fn attached(&mut self, scheduler: &Name, now: i64) -> bool {
        let new = self.scheduler.as_ref() != Some(scheduler);
        self.scheduler = Some(scheduler.clone());
        self.heard = now;
        self.freed = false;
        if new {
            self.said = now;
        }
        new
    }

    /// The ends of these attempts are known.
    pub fn known(&mut self, attempts: &[Attempt], now: i64) {
        self.heard = now;
        for attempt in attempts {
            if self.ended.remove(attempt).is_some() && self.over_set.insert(*attempt) {
                self.over.push_back(*attempt);
                if self.over.len() > REMEMBERED
                    && let Some(oldest) = self.over.pop_front()
                {
                    self.over_set.remove(&oldest);
                }
            }
        }
    }

    /// Ends that were not confirmed, to be told again. Those that were told a moment ago are left out.
    pub fn untold(&mut self, now: i64) -> Vec<E> {
        let beat = self.beat;
        let due = self.ended.values_mut().filter(|(_, said)| now - *said >= beat);
        due.map(|(event, said)| {
            *said = now;
            event.clone()
        })
        .collect()
    }

    /// All ends that were not confirmed, for somebody who has heard of none of them.
    pub fn all_untold(&self) -> Vec<E> {
        self.ended.values().map(|(event, _)| event.clone()).collect()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: i64) -> Heard {
        let mut heard = Heard::default();
        if now - self.said >= self.beat {
            self.said = now;
            // Two answers may be lost; then it is time to look for somebody else.
            if now - self.heard > 3 * self.beat {
                self.scheduler = None;
            }
            heard.say = Some(self.address());
        }
        if now - self.heard > self.lease && !self.freed {
            self.freed = true;
            heard.free = true;
        }
        heard
    }

    /// When to ask [`Attachment::tick`] again.
    pub fn next(&self) -> i64 {
        self.said + self.beat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::chain::{ChainKey, RunId};

    fn attempt(seq: u64) -> Attempt {
        Attempt { chain: ChainKey { run: RunId(1), seq }, number: 1 }
    }

    fn attached() -> Attachment<u64> {
        let mut a = Attachment::new(10, 60, 0);
        assert_eq!(a.tick(0).say, Some(Address::Everyone));
        assert!(a.attached(&"s".into(), 1));
        a
    }

    #[test]
    fn an_assignment_that_comes_twice_starts_once() {
        let mut a = attached();
        assert!(a.assigned(attempt(1), 2));
        assert!(!a.assigned(attempt(1), 3), "it runs");
        a.ended(attempt(1), 1, 4);
        assert!(!a.assigned(attempt(1), 5), "it has run");
        a.known(&[attempt(1)], 6);
        assert!(!a.assigned(attempt(1), 7), "it has run, and everybody knows");
        assert!(a.is_idle());
    }

    #[test]
    fn an_end_is_told_until_somebody_knows() {
        let mut a = attached();
        a.assigned(attempt(1), 2);
        a.ended(attempt(1), 7, 5);
        assert!(a.untold(6).is_empty(), "told a moment ago");
        assert_eq!(a.untold(15), [7]);
        assert_eq!(a.untold(25), [7]);
        a.known(&[attempt(1)], 26);
        assert!(a.untold(100).is_empty());
    }

    #[test]
    fn a_silent_scheduler_is_left() {
        let mut a = attached();
        assert_eq!(a.tick(11).say, Some(Address::Scheduler("s".into())));
        assert_eq!(a.tick(21).say, Some(Address::Scheduler("s".into())));
        assert_eq!(a.tick(32).say, Some(Address::Everyone));
        assert!(a.attached(&"t".into(), 33), "the new one has to be told everything");
        assert!(!a.attached(&"t".into(), 34));
        assert_eq!(a.address(), Address::Scheduler("t".into()));
    }

    #[test]
    fn who_hears_nothing_frees_itself_once() {
        let mut a = attached();
        assert!(!a.tick(61).free);
        assert!(a.tick(62).free);
        assert!(!a.tick(63).free);
        a.attached(&"s".into(), 64);
        assert!(!a.tick(70).free);
        assert!(a.tick(130).free);
    }
}
