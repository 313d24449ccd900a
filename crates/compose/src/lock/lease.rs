//! Locks that end: leases that must be renewed, locks nobody uses, hand-over, and breaking by an owner.
//!
//! Every lock has a number, larger than all before it. Whoever wants to change something shows the number, so that one
//! whose lease has ended meanwhile is found out.

use super::mode::Mode;
use super::queue::{Answer, Obstruction, Patience, Queue, Refusal};
use super::table::{Session, Table, Want};
use super::units::Unit;
use rustc_hash::FxHashMap;

/// Milliseconds since some moment.
pub type Millis = u64;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A session that was not heard of for so long loses its locks.
    pub lease: Millis,
    /// A lock that was not used for so long is released,
    pub idle: Millis,
    /// after a warning so long before.
    pub warning: Millis,
    /// Whoever is asked to hand something over and does not use it for so long loses it.
    pub hand_over: Millis,
}

impl Default for Timing {
    fn default() -> Self {
        Self { lease: 30_000, idle: 90_000, warning: 10_000, hand_over: 15_000 }
    }
}

/// Locks that end.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    queue: Queue,
    timing: Timing,
    /// Until when the locks of a session last.
    leases: FxHashMap<Session, Millis>,
    holds: FxHashMap<(Session, Unit), Hold>,
    asks: Vec<Ask>,
    last_number: u64,
    events: Vec<LockEvent>,
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Its number.
    pub number: u64,
    /// Since when.
    pub since: Millis,
    /// When it was last used.
    pub used: Millis,
    warned: bool,
}

#[derive(Clone, Copy, Debug)]
struct Ask {
    unit: Unit,
    by: Session,
    holder: Session,
    since: Millis,
}

/// What happened to locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// Somebody has locked this.
    Granted {
        /// Who.
        session: Session,
        /// What.
        unit: Unit,
        /// How.
        mode: Mode,
        /// The number.
        number: u64,
    },
    /// It is not locked any more.
    Released {
        /// By whom.
        session: Session,
        /// What.
        unit: Unit,
        /// Why.
        why: Release,
    },
    /// It will be released soon, because it is not used.
    Idle {
        /// Whose.
        session: Session,
        /// What.
        unit: Unit,
        /// When.
        until: Millis,
    },
    /// Somebody asks for it.
    Asked {
        /// Whose.
        session: Session,
        /// What.
        unit: Unit,
        /// Who asks.
        by: Session,
        /// When it goes over unless it is used.
        until: Millis,
    },
}

/// Why something is not locked any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// The session wanted so.
    Wanted,
    /// The session was not heard of.
    Expired,
    /// It was not used.
    Idle,
    /// Another session has asked for it.
    HandedOver,
    /// An owner wanted so.
    Broken,
    /// It does not exist any more.
    Gone,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Locked, with these numbers.
    Granted(Vec<(Unit, u64)>),
    /// Waits: how many are in the way, and who.
    Queued(Vec<Obstruction>),
    /// Nothing has changed.
    Refused(Refusal),
}

impl Locks {
    /// Nothing is locked.
    pub fn new(table: Table, timing: Timing) -> Self {
        Self { queue: Queue::new(table), timing, ..Self::default() }
    }

    /// Numbers go on after this one: no lock from before a restart is taken for one from after it.
    #[must_use]
    pub fn numbered_from(mut self, last: u64) -> Self {
        self.last_number = last;
        self
    }

    /// The largest number there was.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Who has locked what.
    pub fn table(&self) -> &Table {
        self.queue.table()
    }

    /// What there is to lock may be changed.
    pub fn table_mut(&mut self) -> &mut Table {
        self.queue.table_mut()
    }

    /// Those who wait, in the order of asking.
    pub fn waiting(&self) -> impl Iterator<Item = (Session, &[Want])> {
        self.queue.waiting()
    }

    /// What is in the way of somebody who waits.
    pub fn obstructions(&mut self, session: Session) -> Vec<Obstruction> {
        self.queue.obstructions(session)
    }

    /// A lock, if the session has it.
    pub fn hold(&self, session: Session, unit: Unit) -> Option<Hold> {
        self.holds.get(&(session, unit)).copied()
    }

    /// All locks.
    pub fn holds(&self) -> impl Iterator<Item = (Session, Unit, Mode, Hold)> {
        self.holds.iter().filter_map(|((s, u), hold)| Some((*s, *u, self.table().entry(*s, *u)?, *hold)))
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<LockEvent> {
        std::mem::take(&mut self.events)
    }

    /// The session is there.
    pub fn renew(&mut self, session: Session, now: Millis) {
        self.leases.insert(session, now + self.timing.lease);
    }

    /// Locks all of these, or nothing yet.
    pub fn request(&mut self, session: Session, wants: &[Want], patience: Patience, now: Millis) -> Outcome {
        self.renew(session, now);
        match self.queue.request(session, wants, patience) {
            Answer::Granted => Outcome::Granted(self.note(session, wants, now)),
            Answer::Queued(obstructions) => Outcome::Queued(obstructions),
            Answer::Refused(refusal) => Outcome::Refused(refusal),
        }
    }

    fn note(&mut self, session: Session, wants: &[Want], now: Millis) -> Vec<(Unit, u64)> {
        let mut numbers = Vec::with_capacity(wants.len());
        for unit in wants.iter().map(|w| w.unit) {
            let Some(mode) = self.queue.table().entry(session, unit) else { continue };
            let last = &mut self.last_number;
            let hold = self.holds.entry((session, unit)).or_insert_with(|| {
                *last += 1;
                Hold { number: *last, since: now, used: now, warned: false }
            });
            (hold.used, hold.warned) = (now, false);
            numbers.push((unit, hold.number));
            self.events.push(LockEvent::Granted { session, unit, mode, number: hold.number });
        }
        numbers
    }

    /// A lock is being used, so it is not idle.
    pub fn touch(&mut self, session: Session, unit: Unit, now: Millis) {
        if let Some(hold) = self.holds.get_mut(&(session, unit)) {
            (hold.used, hold.warned) = (now, false);
        }
    }

    /// A session lets go of a unit. Whether it had it.
    pub fn release(&mut self, session: Session, unit: Unit, now: Millis) -> bool {
        let had = self.end(session, unit, Release::Wanted);
        self.pump(now);
        had
    }

    /// A session does not want to wait any more.
    pub fn withdraw(&mut self, session: Session, now: Millis) -> bool {
        let waited = self.queue.withdraw(session);
        self.pump(now);
        waited
    }

    /// A session goes, with everything it has.
    pub fn leave(&mut self, session: Session, why: Release, now: Millis) {
        self.leases.remove(&session);
        self.queue.withdraw(session);
        self.asks.retain(|a| a.by != session);
        for unit in self.units_of(session) {
            self.end(session, unit, why);
        }
        self.pump(now);
    }

    /// Asks whoever is in the way of a session at a unit to hand it over. Returns who that is.
    pub fn ask(&mut self, session: Session, unit: Unit, now: Millis) -> Vec<Session> {
        let holders: Vec<Session> =
            self.holds.keys().filter(|(s, u)| *u == unit && *s != session).map(|(s, _)| *s).collect();
        for holder in &holders {
            let is_known = self.asks.iter().any(|a| a.unit == unit && a.by == session && a.holder == *holder);
            if !is_known {
                self.asks.push(Ask { unit, by: session, holder: *holder, since: now });
                let until = now + self.timing.hand_over;
                self.events.push(LockEvent::Asked { session: *holder, unit, by: session, until });
            }
        }
        holders
    }

    /// A session that was asked hands a unit over, or one that gets it anyway does.
    pub fn hand_over(&mut self, session: Session, unit: Unit, now: Millis) -> bool {
        self.asks.retain(|a| a.unit != unit || a.holder != session);
        let had = self.end(session, unit, Release::HandedOver);
        self.pump(now);
        had
    }

    /// An owner takes a lock away. Returns who had it.
    pub fn break_lock(&mut self, unit: Unit, now: Millis) -> Vec<Session> {
        let holders: Vec<Session> = self.holds.keys().filter(|(_, u)| *u == unit).map(|(s, _)| *s).collect();
        for session in &holders {
            self.end(*session, unit, Release::Broken);
        }
        self.pump(now);
        holders
    }

    /// A unit is no more.
    pub fn remove(&mut self, unit: Unit, now: Millis) {
        let holders: Vec<Session> = self.holds.keys().filter(|(_, u)| *u == unit).map(|(s, _)| *s).collect();
        for session in holders {
            self.end(session, unit, Release::Gone);
        }
        self.queue.table_mut().remove_unit(unit);
        self.pump(now);
    }

    fn end(&mut self, session: Session, unit: Unit, why: Release) -> bool {
        let had = self.queue.release(session, unit);
        if self.holds.remove(&(session, unit)).is_some() {
            self.asks.retain(|a| a.unit != unit || a.holder != session);
            self.events.push(LockEvent::Released { session, unit, why });
        }
        had
    }

    /// Grants what can be granted now.
    pub fn pump(&mut self, now: Millis) {
        if self.queue.is_calm() {
            return;
        }
        for (session, wants) in self.queue.pump() {
            self.note(session, &wants, now);
        }
    }

    fn units_of(&self, session: Session) -> Vec<Unit> {
        let mut units: Vec<Unit> =
            self.holds.keys().filter(|(s, _)| *s == session).map(|(_, u)| *u).collect();
        units.sort_unstable();
        units
    }

    /// Time has passed: leases end, locks that are not used are released, and what was asked for is handed over.
    pub fn tick(&mut self, now: Millis) {
        let ended: Vec<Session> =
            self.leases.iter().filter(|(_, until)| **until <= now).map(|(s, _)| *s).collect();
        for session in ended {
            self.leave(session, Release::Expired, now);
        }
        let idle: Vec<(Session, Unit)> =
            self.holds.iter().filter(|(_, h)| h.used + self.timing.idle <= now).map(|(k, _)| *k).collect();
        for (session, unit) in &idle {
            self.end(*session, *unit, Release::Idle);
        }
        for ((session, unit), hold) in &mut self.holds {
            let until = hold.used + self.timing.idle;
            if !hold.warned && until.saturating_sub(self.timing.warning) <= now {
                hold.warned = true;
                self.events.push(LockEvent::Idle { session: *session, unit: *unit, until });
            }
        }
        for ask in self.asks.clone() {
            let Some(hold) = self.hold(ask.holder, ask.unit) else { continue };
            // Only one who does not use it loses it.
            let since = ask.since.max(hold.used);
            if since + self.timing.hand_over <= now {
                self.hand_over(ask.holder, ask.unit, now);
            }
        }
        if !idle.is_empty() {
            self.pump(now);
        }
    }

    /// When something happens next, if nobody does anything.
    pub fn next_moment(&self) -> Option<Millis> {
        let leases = self.leases.values().copied();
        let warnings = self.holds.values().map(|h| {
            let until = h.used + self.timing.idle;
            if h.warned { until } else { until.saturating_sub(self.timing.warning) }
        });
        let asks = self.asks.iter().filter_map(|a| {
            let hold = self.hold(a.holder, a.unit)?;
            Some(a.since.max(hold.used) + self.timing.hand_over)
        });
        leases.chain(warnings).chain(asks).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{Patience, Units};

    const ONE: Session = Session(1);
    const TWO: Session = Session(2);

    fn locks() -> (Locks, Unit, Unit) {
        let mut units = Units::default();
        let root = units.add(&[]);
        let (a, b) = (units.add(&[root]), units.add(&[root]));
        (Locks::new(Table::new(units), Timing::default()), a, b)
    }

    fn want(unit: Unit) -> [Want; 1] {
        [Want::new(unit, Mode::X)]
    }

    #[test]
    fn a_lease_that_is_not_renewed_ends_and_the_next_in_line_gets_the_lock_with_a_larger_number() {
        let (mut locks, a, _) = locks();
        let Outcome::Granted(first) = locks.request(ONE, &want(a), Patience::None, 0) else { panic!() };
        assert!(matches!(locks.request(TWO, &want(a), Patience::Wait, 5_000), Outcome::Queued(_)));
        locks.renew(ONE, 10_000);
        locks.renew(TWO, 35_000);
        locks.tick(39_999);
        assert!(locks.hold(ONE, a).is_some());
        assert_eq!(locks.next_moment(), Some(40_000));
        locks.take_events();
        locks.tick(40_000);
        let second = locks.hold(TWO, a).expect("it has waited for it");
        assert!(second.number > first[0].1 && locks.hold(ONE, a).is_none());
        let expired = LockEvent::Released { session: ONE, unit: a, why: Release::Expired };
        let granted = LockEvent::Granted { session: TWO, unit: a, mode: Mode::X, number: second.number };
        assert_eq!(locks.take_events(), [expired, granted]);
    }

    #[test]
    fn a_lock_that_is_not_used_is_released_after_a_warning() {
        let (mut locks, a, b) = locks();
        locks.request(ONE, &want(a), Patience::None, 0);
        locks.request(ONE, &want(b), Patience::None, 0);
        locks.take_events();
        locks.renew(ONE, 79_000);
        locks.touch(ONE, b, 79_000);
        locks.tick(80_000);
        assert_eq!(locks.take_events(), [LockEvent::Idle { session: ONE, unit: a, until: 90_000 }]);
        locks.tick(90_000);
        assert_eq!(locks.take_events(), [LockEvent::Released { session: ONE, unit: a, why: Release::Idle }]);
        assert!(locks.hold(ONE, b).is_some());
    }

    #[test]
    fn who_is_asked_keeps_the_lock_as_long_as_it_is_used() {
        let (mut locks, a, _) = locks();
        locks.request(ONE, &want(a), Patience::None, 0);
        locks.request(TWO, &want(a), Patience::Wait, 0);
        assert_eq!(locks.ask(TWO, a, 1_000), [ONE]);
        locks.touch(ONE, a, 10_000);
        locks.tick(16_000);
        assert!(locks.hold(ONE, a).is_some());
        locks.tick(25_000);
        assert!(locks.hold(TWO, a).is_some());
    }

    #[test]
    fn an_owner_can_break_a_lock_and_a_session_can_give_it() {
        let (mut locks, a, _) = locks();
        locks.request(ONE, &want(a), Patience::None, 0);
        assert_eq!(locks.break_lock(a, 1), [ONE]);
        assert!(locks.hold(ONE, a).is_none());
        locks.request(ONE, &want(a), Patience::None, 2);
        locks.request(TWO, &want(a), Patience::Wait, 3);
        locks.ask(TWO, a, 3);
        assert!(locks.hand_over(ONE, a, 4));
        assert!(locks.hold(TWO, a).is_some());
    }
}
