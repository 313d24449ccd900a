//! Who has locked what.
//!
//! Only what sessions have asked for is an entry. What follows from entries (that somebody reads or writes something
//! below) is derived and counted, so that letting go of an entry takes back exactly what it had brought: the algorithms
//! of the paper (Figures 4 to 7) keep one mode per unit and therefore lose intents that are still needed, or never get
//! rid of others. Writing is announced on all paths to a unit. Reading is announced on one, which is enough because a
//! shared unit is written only by who has locked it itself, or everything it is part of (Gray's rule for graphs).

use super::mode::Mode;
use super::units::{Unit, Units};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Who locks: one user in one window, a program, a transaction of the model checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Session(pub u64);

/// A unit that a session wants to lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// What.
    pub unit: Unit,
    /// How.
    pub mode: Mode,
    /// The way from the root by which it was opened, without the unit itself. The first there is if none is given.
    pub path: Option<Arc<[Unit]>>,
}

impl Want {
    /// Wants a unit by whichever path.
    pub fn new(unit: Unit, mode: Mode) -> Self {
        Self { unit, mode, path: None }
    }
}

/// Why something cannot be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Who is in the way.
    pub session: Session,
    /// Where: the unit that was asked for, or something above it.
    pub unit: Unit,
    /// How the other one has locked it.
    pub mode: Mode,
}

/// Who has locked what.
#[derive(Clone, Debug, Default)]
pub struct Table {
    units: Units,
    /// For each unit the number of sessions with each mode.
    present: Vec<[u32; 6]>,
    sessions: FxHashMap<Session, Holdings>,
}

/// What a session has.
#[derive(Clone, Debug, Default)]
struct Holdings {
    entries: FxHashMap<Unit, Entry>,
    /// The units it has anything to do with.
    touched: FxHashMap<Unit, Share>,
}

/// Something a session has asked for.
#[derive(Clone, Debug)]
struct Entry {
    mode: Mode,
    /// The units above it that know of it.
    above: Arc<[Unit]>,
}

/// What a session's mode at a unit consists of.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    entry: Option<Mode>,
    /// So many entries below read, and write.
    readers: u32,
    writers: u32,
}

impl Share {
    fn mode(self) -> Option<Mode> {
        let writes = (self.writers > 0).then_some(Mode::Ix);
        let reads = (self.readers > 0).then_some(Mode::Is);
        [self.entry, writes, reads].into_iter().flatten().reduce(Mode::join)
    }

    fn count(&mut self, intent: Mode) -> &mut u32 {
        if intent == Mode::Ix { &mut self.writers } else { &mut self.readers }
    }
}

impl Table {
    /// An empty table for these units.
    pub fn new(units: Units) -> Self {
        let present = vec![[0; 6]; units.len()];
        Self { units, present, sessions: FxHashMap::default() }
    }

    /// What can be locked.
    pub fn units(&self) -> &Units {
        &self.units
    }

    /// Locks all of these, or nothing. What a session has and what it asks for add up.
    pub fn lock(&mut self, session: Session, wants: &[Want]) -> Result<(), Vec<Conflict>> {
        let mut undo = Vec::with_capacity(wants.len());
        let mut conflicts = Vec::new();
        for want in wants {
            let before = self.sessions.get(&session).and_then(|h| h.entries.get(&want.unit)).cloned();
            let mode = before.as_ref().map_or(want.mode, |e| e.mode.join(want.mode));
            if before.as_ref().is_some_and(|e| e.mode == mode) {
                continue;
            }
            let above = self.announced(want, mode);
            self.put(session, want.unit, Some(Entry { mode, above: above.clone() }));
            undo.push((want.unit, before));
            for unit in std::iter::once(&want.unit).chain(above.iter()) {
                if self.is_contested(session, *unit) {
                    conflicts.extend(self.opponents(session, *unit));
                }
            }
        }
        if conflicts.is_empty() {
            return Ok(());
        }
        for (unit, before) in undo.into_iter().rev() {
            self.put(session, unit, before);
        }
        self.forget_idle(session);
        conflicts.sort_unstable_by_key(|c| (c.session, c.unit));
        conflicts.dedup();
        Err(conflicts)
    }

    /// Who is in the way of a request. Nothing is changed.
    pub fn conflicts(&mut self, session: Session, wants: &[Want]) -> Vec<Conflict> {
        let demand = self.demand(session, wants);
        let contested = |(unit, mode): &(Unit, Mode)| {
            let (unit, mode) = (*unit, *mode);
            let others = self.holders(unit).filter(move |(s, m)| *s != session && !m.is_compatible(mode));
            others.map(move |(session, mode)| Conflict { session, unit, mode }).collect::<Vec<_>>()
        };
        let mut conflicts: Vec<Conflict> = demand.iter().flat_map(contested).collect();
        conflicts.sort_unstable_by_key(|c| (c.session, c.unit));
        conflicts
    }

    /// The modes a session would have where a request changes something.
    pub fn demand(&mut self, session: Session, wants: &[Want]) -> Vec<(Unit, Mode)> {
        let mut demand: FxHashMap<Unit, Mode> = FxHashMap::default();
        for want in wants {
            let before = self.entry(session, want.unit);
            let mode = before.map_or(want.mode, |m| m.join(want.mode));
            if before == Some(mode) {
                continue;
            }
            let above = self.announced(want, mode);
            let intents = above.iter().map(|u| (*u, mode.intent()));
            for (unit, mode) in std::iter::once((want.unit, mode)).chain(intents) {
                let held = self.mode(session, unit);
                let known = demand.get(&unit).copied().or(held);
                demand.insert(unit, known.map_or(mode, |m| m.join(mode)));
            }
        }
        demand.retain(|unit, mode| self.mode(session, *unit) != Some(*mode));
        demand.into_iter().collect()
    }

    /// Lets go of what a session had asked for.
    pub fn release(&mut self, session: Session, unit: Unit) -> bool {
        let had = self.entry(session, unit).is_some();
        if had {
            self.put(session, unit, None);
            self.forget_idle(session);
        }
        had
    }

    /// Keeps only a weaker mode of what a session had asked for.
    pub fn weaken(&mut self, session: Session, unit: Unit, mode: Mode) -> bool {
        let weaker = self.entry(session, unit).is_some_and(|m| m.covers(mode) && m != mode);
        if weaker {
            let above = self.announced(&Want::new(unit, mode), mode);
            self.put(session, unit, Some(Entry { mode, above }));
        }
        weaker
    }

    /// What a session has asked for at a unit.
    pub fn entry(&self, session: Session, unit: Unit) -> Option<Mode> {
        Some(self.sessions.get(&session)?.entries.get(&unit)?.mode)
    }

    /// Everything a session has asked for.
    pub fn entries(&self, session: Session) -> impl Iterator<Item = (Unit, Mode)> {
        self.sessions.get(&session).into_iter().flat_map(|h| h.entries.iter().map(|(u, e)| (*u, e.mode)))
    }

    /// Everybody who has locked something.
    pub fn sessions(&self) -> impl Iterator<Item = Session> {
        self.sessions.keys().copied()
    }

    /// The mode a session has at a unit, asked for or derived.
    pub fn mode(&self, session: Session, unit: Unit) -> Option<Mode> {
        self.sessions.get(&session)?.touched.get(&unit)?.mode()
    }

    /// Who has anything to do with a unit, and how.
    pub fn holders(&self, unit: Unit) -> impl Iterator<Item = (Session, Mode)> {
        self.sessions.iter().filter_map(move |(s, h)| Some((*s, h.touched.get(&unit)?.mode()?)))
    }

    /// The units above an entry that know of it.
    pub fn announced_at(&self, session: Session, unit: Unit) -> &[Unit] {
        let entry = self.sessions.get(&session).and_then(|h| h.entries.get(&unit));
        entry.map(|e| &e.above[..]).unwrap_or_default()
    }

    /// Whether a session is protected from others writing to a unit.
    pub fn may_read(&self, session: Session, unit: Unit) -> bool {
        let Some(holdings) = self.sessions.get(&session) else { return false };
        let reads = |u: Unit| holdings.entries.get(&u).is_some_and(|e| e.mode.reads());
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![unit];
        while let Some(at) = open.pop() {
            if reads(at) {
                return true;
            }
            open.extend(self.units.parents(at).iter().filter(|p| seen.insert(**p)));
        }
        false
    }

    /// Whether a session may write to a unit: it has locked it so, or everything that it is part of.
    pub fn may_write(&self, session: Session, unit: Unit) -> bool {
        let mut known = FxHashMap::default();
        self.sessions.get(&session).is_some_and(|h| self.writes(h, unit, &mut known))
    }

    fn writes(&self, holdings: &Holdings, unit: Unit, known: &mut FxHashMap<Unit, bool>) -> bool {
        if let Some(known) = known.get(&unit) {
            return *known;
        }
        let own = holdings.entries.get(&unit).is_some_and(|e| e.mode == Mode::X);
        let parents = self.units.parents(unit);
        let writes = own || (!parents.is_empty() && parents.iter().all(|p| self.writes(holdings, *p, known)));
        known.insert(unit, writes);
        writes
    }

    /// The units above that have to know of a request.
    fn announced(&mut self, want: &Want, mode: Mode) -> Arc<[Unit]> {
        if mode.is_writing() {
            return self.units.above(want.unit);
        }
        let given = want.path.as_ref().filter(|path| self.units.is_chain(path, want.unit));
        given.cloned().unwrap_or_else(|| self.units.first_chain(want.unit).into())
    }

    fn put(&mut self, session: Session, unit: Unit, entry: Option<Entry>) {
        let holdings = self.sessions.entry(session).or_default();
        let present = &mut self.present;
        let mut change = |unit: Unit, with: &dyn Fn(&mut Share)| {
            let share = holdings.touched.entry(unit).or_default();
            let before = share.mode();
            with(share);
            let after = share.mode();
            if after.is_none() {
                holdings.touched.remove(&unit);
            }
            if before != after {
                let counts = &mut present[unit.index()];
                if let Some(mode) = before {
                    counts[mode as usize] -= 1;
                }
                if let Some(mode) = after {
                    counts[mode as usize] += 1;
                }
            }
        };
        let old = match &entry {
            Some(entry) => holdings.entries.insert(unit, entry.clone()),
            None => holdings.entries.remove(&unit),
        };
        change(unit, &|share| share.entry = entry.as_ref().map(|e| e.mode));
        if let Some(entry) = &entry {
            entry.above.iter().for_each(|u| change(*u, &|share| *share.count(entry.mode.intent()) += 1));
        }
        if let Some(entry) = &old {
            entry.above.iter().for_each(|u| change(*u, &|share| *share.count(entry.mode.intent()) -= 1));
        }
    }

    fn forget_idle(&mut self, session: Session) {
        if self.sessions.get(&session).is_some_and(|h| h.entries.is_empty()) {
            self.sessions.remove(&session);
        }
    }

    /// Whether another session has a mode at a unit that does not go together with this one's.
    fn is_contested(&self, session: Session, unit: Unit) -> bool {
        let Some(own) = self.mode(session, unit) else { return false };
        let counts = &self.present[unit.index()];
        let others = |m: Mode| counts[m as usize] > u32::from(m == own);
        Mode::ALL.into_iter().any(|m| own.conflicts() & m.bit() != 0 && others(m))
    }

    fn opponents(&self, session: Session, unit: Unit) -> Vec<Conflict> {
        let Some(own) = self.mode(session, unit) else { return Vec::new() };
        let others = self.holders(unit).filter(|(s, m)| *s != session && !m.is_compatible(own));
        others.map(|(session, mode)| Conflict { session, unit, mode }).collect()
    }
}

/// Changing what there is to lock, while it is locked.
impl Table {
    /// A new unit below others.
    pub fn add_unit(&mut self, parents: &[Unit]) -> Unit {
        let unit = self.units.add(parents);
        self.present.resize(self.units.len(), [0; 6]);
        unit
    }

    /// Makes `child` part of `parent`, if the session may: it writes to `parent`, reads `child`, and nobody else is about
    /// to write to `child`. Then nobody else has anything to announce on the new path.
    pub fn connect(&mut self, session: Session, parent: Unit, child: Unit) -> Result<(), Obstacle> {
        if self.units.closes_cycle(parent, child) {
            return Err(Obstacle::Cycle);
        }
        if !matches!(self.mode(session, parent), Some(Mode::Ix | Mode::Six | Mode::X)) {
            return Err(Obstacle::NotWritten(parent));
        }
        if !self.may_read(session, child) {
            return Err(Obstacle::NotRead(child));
        }
        let writer = self.holders(child).find(|(s, m)| *s != session && m.is_writing());
        if let Some((session, mode)) = writer {
            return Err(Obstacle::Other(Conflict { session, unit: child, mode }));
        }
        let conflicts = self.join(session, parent, child);
        if let Some(conflict) = conflicts.first() {
            self.part(session, parent, child);
            return Err(Obstacle::Other(*conflict));
        }
        Ok(())
    }

    /// Makes `child` part of `parent` without asking whether the session may. Returns who is in the way of what the session
    /// has locked there.
    pub fn join(&mut self, session: Session, parent: Unit, child: Unit) -> Vec<Conflict> {
        self.units.connect(parent, child);
        self.announce_again(session, child)
    }

    /// Takes `child` out of `parent` without asking whether the session may.
    pub fn part(&mut self, session: Session, parent: Unit, child: Unit) {
        self.units.disconnect(parent, child);
        self.announce_again(session, child);
    }

    /// `child` is no part of `parent` any more, if the session may: it has locked `parent` to write, and nobody has come
    /// to anything by this path.
    pub fn disconnect(&mut self, session: Session, parent: Unit, child: Unit) -> Result<(), Obstacle> {
        if !self.may_write(session, parent) {
            return Err(Obstacle::NotWritten(parent));
        }
        if let Some((session, unit)) = self.passing(parent, child) {
            let mode = self.mode(session, unit).unwrap_or(Mode::Is);
            return Err(Obstacle::Other(Conflict { session, unit, mode }));
        }
        self.part(session, parent, child);
        Ok(())
    }

    /// A unit without parts is no more, nor is what sessions had locked of it.
    pub fn remove_unit(&mut self, unit: Unit) {
        for session in self.sessions().collect::<Vec<_>>() {
            self.release(session, unit);
        }
        self.units.remove(unit);
    }

    /// A session, and the unit it reads, that came by the path over a parent to its child.
    pub fn passing(&self, parent: Unit, child: Unit) -> Option<(Session, Unit)> {
        self.all_passing(parent, child).next()
    }

    /// All of them.
    pub fn all_passing(&self, parent: Unit, child: Unit) -> impl Iterator<Item = (Session, Unit)> {
        let over = move |unit: Unit, e: &Entry| {
            let at = e.above.iter().position(|u| *u == parent);
            let next = at.map(|at| e.above.get(at + 1).copied().unwrap_or(unit));
            !e.mode.is_writing() && next == Some(child)
        };
        self.sessions.iter().flat_map(move |(session, holdings)| {
            let entries = holdings.entries.iter().filter(move |(unit, entry)| over(**unit, entry));
            entries.map(|(unit, _)| (*session, *unit))
        })
    }

    /// Lets what a session has locked for writing at a unit and below be known on the paths there are now.
    fn announce_again(&mut self, session: Session, unit: Unit) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        let mut below = self.units.below(unit);
        below.push(unit);
        for unit in below {
            let entry = self.sessions.get(&session).and_then(|h| h.entries.get(&unit)).cloned();
            let Some(entry) = entry.filter(|e| e.mode.is_writing()) else { continue };
            let above = self.units.above(unit);
            self.put(session, unit, Some(Entry { mode: entry.mode, above: above.clone() }));
            for unit in above.iter().filter(|u| self.is_contested(session, **u)) {
                conflicts.extend(self.opponents(session, *unit));
            }
        }
        conflicts
    }
}

/// Why parts cannot be put together or taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Something would become part of itself.
    Cycle,
    /// The session has not locked this to write.
    NotWritten(Unit),
    /// The session has not locked this to read.
    NotRead(Unit),
    /// Somebody else is in the way.
    Other(Conflict),
}
