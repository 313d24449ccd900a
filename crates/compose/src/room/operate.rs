//! Changing the composition of a room: all of an operation or nothing, under locks, and right afterwards.

use super::message::{Applied, Code, Done as Answer, Event, Operation, Refused, Theirs};
use super::place::{Place, parts};
use super::{Change, Needs, Output, Record, Result, Room, content, refuse};
use crate::lock::{Millis, Mode, Obstruction, Refusal, Session, Unit, Want};
use crate::model::{Composition, WorkflowId, check, check_workflow};
use std::collections::{BTreeMap, BTreeSet};

/// The parts that were changed, and what undoes it.
type Changed = (BTreeSet<Place>, Vec<Change>);

impl Room {
    pub(super) fn operate(&mut self, session: Session, operation: Operation, now: Millis) -> Result<Answer> {
        if let Some(seq) = self.history.find(session, operation.op) {
            let message = format!("this operation was done before, as number {seq}");
            return refuse(Code::Replayed, message);
        }
        self.stale(&operation)?;
        let applied = self.apply(session, operation, now)?;
        let seq = applied.seq;
        self.history.did(session, &self.user(session), applied.clone());
        self.announce(session, applied);
        Ok(Answer { seq: Some(seq), ..Answer::default() })
    }

    /// Writes an operation down and tells everybody, who need not know how to undo it.
    pub(super) fn announce(&mut self, session: Session, applied: Applied) {
        let told = Applied { inverse: Vec::new(), ..applied.clone() };
        self.out.push(Output::Record(Record::Applied(applied)));
        self.out.push(Output::Tell(Some(session), Event::Changed(told)));
    }

    /// Refuses what counts on something that is not so any more.
    fn stale(&self, operation: &Operation) -> Result<()> {
        let changed =
            operation.seen.iter().filter(|(place, seen)| self.history.version_of(place).0 != **seen);
        let theirs: Vec<Theirs> = changed
            .map(|(place, _)| {
                let (version, by) = self.history.version_of(place);
                let by = by.map(str::to_owned).unwrap_or_default();
                Theirs { unit: place.clone(), version, by, content: content(&self.composition, place) }
            })
            .collect();
        let Some(first) = theirs.first() else { return Ok(()) };
        let message = format!(
            "{} has changed {} meanwhile; keep theirs, or send yours again with version {}",
            first.by,
            first.unit.describe(&self.composition),
            first.version
        );
        Err(Box::new(Refused { code: Code::Stale, message, theirs, ..Refused::default() }))
    }

    /// Changes the composition, under locks that the session has or that it gets for the moment.
    pub(super) fn apply(&mut self, session: Session, operation: Operation, now: Millis) -> Result<Applied> {
        self.check_tokens(session, &operation)?;
        if operation.changes.is_empty() {
            return refuse(Code::Malformed, "an operation has at least one change");
        }
        let (touched, inverse) = if operation.changes.iter().all(Change::is_local) {
            self.change_here(session, &operation.changes, now)?
        } else {
            self.change_all(session, &operation.changes, now)?
        };
        self.locks.pump(now);
        for place in &touched {
            if let Some(unit) = self.atlas.unit(place) {
                self.locks.touch(session, unit, now);
            }
        }
        let Operation { op, changes, note, .. } = operation;
        let units = touched.iter().cloned().collect();
        let seq = self.history.next(touched, &self.user(session));
        Ok(Applied { seq, time: now, user: self.user(session), session, op, changes, inverse, units, note })
    }

    /// Changes that leave the rest of the composition alone, in place. What is refused is taken back.
    fn change_here(&mut self, session: Session, changes: &[Change], now: Millis) -> Result<Changed> {
        let (mut inverse, mut needs, mut touched) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut done = Ok(());
        for change in changes {
            needs.push(change.needs(&self.composition));
            touched.extend(change.places(&self.composition));
            match change.apply(&mut self.composition) {
                Ok(back) => inverse.push(back),
                Err(message) => {
                    done = refuse(Code::Invalid, message);
                    break;
                }
            }
        }
        inverse.reverse();
        let workflows: BTreeSet<&WorkflowId> = changes.iter().filter_map(Change::workflow).collect();
        let flaws = |id| check_workflow(&self.composition, id).into_iter().find(|f| !f.is_gap);
        if let Some(flaw) = workflows.into_iter().find_map(flaws)
            && done.is_ok()
        {
            done = refuse(Code::Invalid, format!("{}: {}", flaw.place, flaw.message));
        }
        match done.and_then(|()| self.borrow(session, &needs, now)) {
            Ok(borrowed) => {
                self.give_back(session, &borrowed);
                Ok((touched, inverse))
            }
            Err(refused) => {
                for back in &inverse {
                    let _: std::result::Result<Change, String> = back.apply(&mut self.composition);
                }
                Err(refused)
            }
        }
    }

    /// Changes that may concern everything, on a copy.
    fn change_all(&mut self, session: Session, changes: &[Change], now: Millis) -> Result<Changed> {
        let mut after = self.composition.clone();
        let (mut inverse, mut needs, mut touched) = (Vec::new(), Vec::new(), BTreeSet::new());
        for change in changes {
            needs.push(change.needs(&after));
            touched.extend(change.places(&after));
            match change.apply(&mut after) {
                Ok(back) => inverse.push(back),
                Err(message) => return refuse(Code::Invalid, message),
            }
        }
        inverse.reverse();
        if let Some(flaw) = check(&after).into_iter().find(|f| !f.is_gap) {
            return refuse(Code::Invalid, format!("{}: {}", flaw.place, flaw.message));
        }
        for change in changes {
            touched.extend(change.whole(&after));
        }
        let borrowed = self.borrow(session, &needs, now)?;
        let restructured = self.restructure(session, &borrowed, &after, now);
        self.give_back(session, &borrowed);
        restructured?;
        self.composition = after;
        Ok((touched, inverse))
    }

    fn check_tokens(&mut self, session: Session, operation: &Operation) -> Result<()> {
        for (place, number) in &operation.tokens {
            let unit = self.unit(place)?;
            if self.locks.hold(session, unit).is_none_or(|h| h.number != *number) {
                let others: Vec<String> = self
                    .locks
                    .holds()
                    .filter(|(s, u, ..)| *u == unit && *s != session)
                    .map(|(s, ..)| self.user(s))
                    .collect();
                let now_with = if others.is_empty() {
                    String::new()
                } else {
                    format!("; {} has it now", others.join(", "))
                };
                let message = format!(
                    "you do not have the lock {number} on {} any more{now_with}",
                    place.describe(&self.composition)
                );
                return refuse(Code::StaleToken, message);
            }
        }
        Ok(())
    }

    /// Locks what an operation needs and the session has not locked, for the moment. Returns what it had there before.
    fn borrow(
        &mut self,
        session: Session,
        needs: &[Needs],
        now: Millis,
    ) -> Result<BTreeMap<Unit, Option<Mode>>> {
        let mut wants: Vec<Want> = Vec::new();
        let mut add = |unit: Unit, mode: Mode| match wants.iter_mut().find(|w| w.unit == unit) {
            Some(want) => want.mode = want.mode.join(mode),
            None => wants.push(Want::new(unit, mode)),
        };
        let table = self.locks.table();
        let mut joined: Vec<Unit> = Vec::new();
        for need in needs {
            // What does not exist yet is nobody else's.
            let units = |places: &[Place]| -> Vec<Unit> {
                places.iter().filter_map(|p| self.atlas.unit(p)).collect()
            };
            for unit in units(&need.write).into_iter().filter(|u| !table.may_write(session, *u)) {
                add(unit, Mode::X);
            }
            for unit in units(&need.extend) {
                if !matches!(table.mode(session, unit), Some(Mode::Ix | Mode::Six | Mode::X))
                    && !table.may_write(session, unit)
                {
                    add(unit, Mode::Ix);
                }
            }
            for unit in units(&need.read).into_iter().filter(|u| !table.may_read(session, *u)) {
                add(unit, Mode::S);
            }
            let workflows: Vec<Place> = need.join.iter().map(|w| Place::Workflow(w.clone())).collect();
            for unit in units(&workflows) {
                joined.push(unit);
                if !table.may_read(session, unit) {
                    add(unit, Mode::S);
                }
            }
        }
        let before: BTreeMap<Unit, Option<Mode>> =
            wants.iter().map(|w| (w.unit, table.entry(session, w.unit))).collect();
        if !wants.is_empty() {
            let wanted = wants.first().and_then(|w| self.atlas.place(w.unit)).cloned();
            // Those who wait need not be asked: nothing stays locked.
            if let Err(conflicts) = self.locks.table_mut().lock(session, &wants) {
                let taken = conflicts.into_iter().map(|conflict| Obstruction { conflict, is_waiting: false });
                return Err(self.explain(Refusal::Taken(taken.collect()), wanted.as_ref(), now));
            }
        }
        for unit in joined {
            let writer = self.locks.table().holders(unit).find(|(s, m)| *s != session && *m == Mode::U);
            if let Some((other, mode)) = writer {
                self.give_back(session, &before);
                let conflict = crate::lock::Conflict { session: other, unit, mode };
                let taken = vec![Obstruction { conflict, is_waiting: false }];
                return Err(self.explain(Refusal::Taken(taken), self.atlas.place(unit), now));
            }
        }
        Ok(before)
    }

    fn give_back(&mut self, session: Session, before: &BTreeMap<Unit, Option<Mode>>) {
        for (unit, mode) in before {
            match mode {
                Some(mode) => {
                    self.locks.table_mut().weaken(session, *unit, *mode);
                }
                None => {
                    self.locks.table_mut().release(session, *unit);
                }
            }
        }
    }

    /// Makes the units those of the composition as it is going to be.
    fn restructure(
        &mut self,
        session: Session,
        borrowed: &BTreeMap<Unit, Option<Mode>>,
        after: &Composition,
        now: Millis,
    ) -> Result<()> {
        let (old, new) = (parts(&self.composition), parts(after));
        if old == new {
            return Ok(());
        }
        let arcs = |parts: &BTreeMap<Place, BTreeSet<Place>>| -> BTreeSet<(Place, Place)> {
            let of = |(child, parents): (&Place, &BTreeSet<Place>)| {
                parents.iter().map(|p| (p.clone(), child.clone())).collect::<Vec<_>>()
            };
            parts.iter().flat_map(of).collect()
        };
        let (old_arcs, new_arcs) = (arcs(&old), arcs(&new));
        // Nobody may have come to anything by a way that goes.
        for (parent, child) in old_arcs.difference(&new_arcs) {
            let (Some(p), Some(c)) = (self.atlas.unit(parent), self.atlas.unit(child)) else { continue };
            // What is read just for this moment is given back before the way goes.
            let is_brief = |(s, u): &(Session, Unit)| *s == session && borrowed.get(u) == Some(&None);
            if let Some((other, unit)) = self.locks.table().all_passing(p, c).find(|p| !is_brief(p)) {
                let mode = self.locks.table().mode(other, unit).unwrap_or(Mode::Is);
                let conflict = crate::lock::Conflict { session: other, unit, mode };
                let taken = vec![Obstruction { conflict, is_waiting: false }];
                return Err(self.explain(Refusal::Taken(taken), Some(parent), now));
            }
        }
        for place in new.keys().filter(|p| !old.contains_key(p)) {
            let unit = self.locks.table_mut().add_unit(&[]);
            self.atlas.insert(place.clone(), unit);
        }
        for (parent, child) in new_arcs.difference(&old_arcs) {
            if let (Some(p), Some(c)) = (self.atlas.unit(parent), self.atlas.unit(child)) {
                self.locks.table_mut().join(session, p, c);
            }
        }
        for unit in borrowed.iter().filter(|(_, before)| before.is_none()).map(|(unit, _)| *unit) {
            if self.locks.table().entry(session, unit) == Some(Mode::S) {
                self.locks.table_mut().release(session, unit);
            }
        }
        for (parent, child) in old_arcs.difference(&new_arcs) {
            if let (Some(p), Some(c)) = (self.atlas.unit(parent), self.atlas.unit(child)) {
                self.locks.table_mut().part(session, p, c);
            }
        }
        for place in old.keys().filter(|p| !new.contains_key(p)) {
            if let Some(unit) = self.atlas.unit(place) {
                self.locks.remove(unit, now);
                self.tell_locks(now);
                self.atlas.remove(place);
            }
        }
        Ok(())
    }
}
