//! Waiting for locks: first come, first served, and never in a circle.
//!
//! A request does not overtake an earlier one that it conflicts with, unless that one waits for something that the very
//! session has which asks: a holder that wants more passes those who wait for it. A request that would make sessions wait for each other is
//! refused, with everybody's names.

use super::mode::Mode;
use super::table::{Conflict, Session, Table, Want};
use super::units::Unit;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All of it is locked.
    Granted,
    /// It waits for these.
    Queued(Vec<Obstruction>),
    /// Nothing has changed.
    Refused(Refusal),
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Others are in the way, and nobody wanted to wait.
    Taken(Vec<Obstruction>),
    /// These wait for the session, directly or over others.
    Circle(Vec<Obstruction>),
    /// The session waits for something else already.
    Waiting,
}

/// What is in the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstruction {
    /// Who, where and how.
    pub conflict: Conflict,
    /// It has not been locked yet, but was asked for earlier.
    pub is_waiting: bool,
}

/// Whether a session is ready to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Now or not at all.
    None,
    /// As long as it takes.
    Wait,
}

/// Locks, and those who wait for them.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    table: Table,
    waiting: Vec<Waiting>,
    /// What there is to lock may have changed since demands were looked at.
    is_stale: bool,
}

#[derive(Clone, Debug)]
struct Waiting {
    session: Session,
    wants: Vec<Want>,
    /// The modes the session would have where the request changes something.
    demand: Demand,
}

/// The modes that a request comes to, by unit.
type Demand = Vec<(Unit, Mode)>;

impl Queue {
    /// Nothing is locked.
    pub fn new(table: Table) -> Self {
        Self { table, waiting: Vec::new(), is_stale: false }
    }

    /// Who has locked what.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// What there is to lock may be changed. Who waits is looked at again with the next [`pump`](Self::pump).
    pub fn table_mut(&mut self) -> &mut Table {
        self.is_stale = true;
        &mut self.table
    }

    /// Locks all of these, or nothing yet.
    pub fn request(&mut self, session: Session, wants: &[Want], patience: Patience) -> Answer {
        self.refresh();
        let waits = self.waiting.iter().any(|w| w.session == session);
        let earlier = if self.waiting.is_empty() { Vec::new() } else { self.earlier(session, wants) };
        if earlier.is_empty() {
            match self.table.lock(session, wants) {
                Ok(()) if waits => {
                    self.look_again(session);
                    return Answer::Granted;
                }
                Ok(()) => return Answer::Granted,
                Err(_) if waits => return Answer::Refused(Refusal::Waiting),
                Err(conflicts) => return self.enqueue(session, wants, patience, held(conflicts)),
            }
        }
        if waits {
            return Answer::Refused(Refusal::Waiting);
        }
        let mut obstructions = held(self.table.conflicts(session, wants));
        obstructions.extend(earlier);
        self.enqueue(session, wants, patience, obstructions)
    }

    fn enqueue(
        &mut self,
        session: Session,
        wants: &[Want],
        patience: Patience,
        obstructions: Vec<Obstruction>,
    ) -> Answer {
        if patience == Patience::None {
            return Answer::Refused(Refusal::Taken(obstructions));
        }
        // Nobody waits for one that has nothing.
        if self.table.entries(session).next().is_some() {
            let awaits = |o: &&Obstruction| self.awaits(o.conflict.session, session);
            let circle: Vec<Obstruction> = obstructions.iter().filter(awaits).copied().collect();
            if !circle.is_empty() {
                return Answer::Refused(Refusal::Circle(circle));
            }
        }
        let demand = self.demand(session, wants);
        self.waiting.push(Waiting { session, wants: wants.to_vec(), demand });
        Answer::Queued(obstructions)
    }

    fn demand(&mut self, session: Session, wants: &[Want]) -> Demand {
        let mut demand = self.table.demand(session, wants);
        demand.sort_unstable_by_key(|(unit, _)| *unit);
        demand
    }

    /// What a session has is another than before, so what it waits for comes to something else.
    fn look_again(&mut self, session: Session) {
        if let Some(at) = self.waiting.iter().position(|w| w.session == session) {
            let wants = self.waiting[at].wants.clone();
            self.waiting[at].demand = self.demand(session, &wants);
        }
    }

    /// What there is to lock may have changed.
    fn refresh(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            for session in self.waiting.iter().map(|w| w.session).collect::<Vec<_>>() {
                self.look_again(session);
            }
        }
    }

    /// Lets go of a unit. Others get what they wait for with the next [`pump`](Self::pump).
    pub fn release(&mut self, session: Session, unit: Unit) -> bool {
        let had = self.table.release(session, unit);
        if had && !self.waiting.is_empty() {
            self.look_again(session);
        }
        had
    }

    /// A session does not want to wait any more.
    pub fn withdraw(&mut self, session: Session) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|w| w.session != session);
        before != self.waiting.len()
    }

    /// Grants what can be granted now, in the order of asking. Returns who got what.
    pub fn pump(&mut self) -> Vec<(Session, Vec<Want>)> {
        self.refresh();
        let mut granted = Vec::new();
        let mut kept: Vec<Waiting> = Vec::with_capacity(self.waiting.len());
        // What those who go on waiting demand, as sets of modes.
        let mut demanded: FxHashMap<Unit, u8> = FxHashMap::default();
        for waiting in std::mem::take(&mut self.waiting) {
            let contested = |(unit, mode): &(Unit, Mode)| {
                demanded.get(unit).is_some_and(|modes| modes & mode.conflicts() != 0)
            };
            let overtakes = waiting.demand.iter().any(contested)
                && kept.iter().any(|k| self.precedes(k, waiting.session, &waiting.demand).is_some());
            if !overtakes && self.table.lock(waiting.session, &waiting.wants).is_ok() {
                granted.push((waiting.session, waiting.wants));
            } else {
                for (unit, mode) in &waiting.demand {
                    *demanded.entry(*unit).or_default() |= mode.bit();
                }
                kept.push(waiting);
            }
        }
        self.waiting = kept;
        granted
    }

    /// Whether nobody waits.
    pub fn is_calm(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Those who wait, in the order of asking, with what they want.
    pub fn waiting(&self) -> impl Iterator<Item = (Session, &[Want])> {
        self.waiting.iter().map(|w| (w.session, &w.wants[..]))
    }

    /// What is in the way of somebody who waits, and how many asked earlier and are in the way.
    pub fn obstructions(&mut self, session: Session) -> Vec<Obstruction> {
        self.refresh();
        let Some(at) = self.waiting.iter().position(|w| w.session == session) else { return Vec::new() };
        let wants = self.waiting[at].wants.clone();
        let mut all = held(self.table.conflicts(session, &wants));
        let demand = &self.waiting[at].demand;
        let before = self.waiting[..at].iter();
        all.extend(before.filter_map(|w| self.precedes(w, session, demand)));
        all
    }

    /// Requests in the queue that this one conflicts with and must not overtake.
    fn earlier(&mut self, session: Session, wants: &[Want]) -> Vec<Obstruction> {
        let own = self.demand(session, wants);
        self.waiting.iter().filter_map(|w| self.precedes(w, session, &own)).collect()
    }

    /// Whether a request that waits comes before another that wants something else. One that waits for what the other
    /// session has does not.
    fn precedes(&self, waiting: &Waiting, session: Session, own: &Demand) -> Option<Obstruction> {
        let (unit, mode) = clash(own, &waiting.demand).filter(|_| waiting.session != session)?;
        let blocks = |(unit, mode): &(Unit, Mode)| {
            self.table.mode(session, *unit).is_some_and(|held| !held.is_compatible(*mode))
        };
        let conflict = Conflict { session: waiting.session, unit, mode };
        (!waiting.demand.iter().any(blocks)).then_some(Obstruction { conflict, is_waiting: true })
    }

    /// Whether a session waits for another, directly or over others.
    fn awaits(&self, who: Session, whom: Session) -> bool {
        let mut seen: FxHashSet<Session> = FxHashSet::default();
        let mut open = vec![who];
        while let Some(at) = open.pop() {
            if at == whom {
                return true;
            }
            if seen.insert(at) {
                open.extend(self.awaited(at));
            }
        }
        false
    }

    /// Those a session waits for: who has what it wants, and who asked for that earlier.
    fn awaited(&self, session: Session) -> Vec<Session> {
        let Some(at) = self.waiting.iter().position(|w| w.session == session) else { return Vec::new() };
        let demand = &self.waiting[at].demand;
        let is_held = |other: Session| {
            let clashes = |(unit, mode): &(Unit, Mode)| {
                self.table.mode(other, *unit).is_some_and(|m| !m.is_compatible(*mode))
            };
            other != session && demand.iter().any(clashes)
        };
        let holders = self.table.sessions().filter(|s| is_held(*s));
        let before = self.waiting[..at].iter().filter(|w| self.precedes(w, session, demand).is_some());
        holders.chain(before.map(|w| w.session)).collect()
    }
}

/// Where two demands do not go together, and what the second wants there. Both are in the order of units.
fn clash(own: &Demand, theirs: &Demand) -> Option<(Unit, Mode)> {
    let (mut a, mut b) = (own.iter().peekable(), theirs.iter().peekable());
    while let (Some((u, m)), Some((v, n))) = (a.peek(), b.peek()) {
        match u.cmp(v) {
            Ordering::Less => {
                a.next();
            }
            Ordering::Greater => {
                b.next();
            }
            Ordering::Equal if !m.is_compatible(*n) => return Some((*v, *n)),
            Ordering::Equal => {
                a.next();
                b.next();
            }
        }
    }
    None
}

fn held(conflicts: Vec<Conflict>) -> Vec<Obstruction> {
    conflicts.into_iter().map(|conflict| Obstruction { conflict, is_waiting: false }).collect()
}
