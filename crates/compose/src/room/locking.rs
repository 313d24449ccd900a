//! Locking in a room, and saying why something cannot be locked.

use super::message::{Blocker, Code, Done as Answer, Event, LockView, Refused, Said, Waits, Wanted};
use super::place::{Place, parts};
use super::{LockRecord, Output, Record, Result, Room, refuse};
use crate::lock::{
    LockEvent, Millis, Mode, Obstruction, Outcome, Patience, Refusal, Release, Session, Unit, Want,
};
use std::sync::Arc;

impl Room {
    pub(super) fn lock(
        &mut self,
        session: Session,
        wanted: &[Wanted],
        wait: bool,
        now: Millis,
    ) -> Result<Answer> {
        let wants = wanted.iter().map(|w| self.want(w)).collect::<Result<Vec<Want>>>()?;
        let patience = if wait { Patience::Wait } else { Patience::None };
        match self.locks.request(session, &wants, patience, now) {
            Outcome::Granted(numbers) => {
                let named = numbers.into_iter().filter_map(|(u, n)| Some((self.atlas.place(u)?.clone(), n)));
                Ok(Answer { locks: named.collect(), ..Answer::default() })
            }
            Outcome::Queued(obstructions) => {
                for want in wanted {
                    self.record_lock("queue", session, &want.unit, Some(want.mode), None, now);
                }
                let waits = Waits {
                    position: obstructions.iter().filter(|o| o.is_waiting).count() + 1,
                    blockers: self.blockers(&obstructions, now),
                };
                Ok(Answer { waits: Some(waits), ..Answer::default() })
            }
            Outcome::Refused(refusal) => {
                for want in wanted {
                    self.record_lock("refuse", session, &want.unit, Some(want.mode), None, now);
                }
                Err(self.explain(refusal, wanted.first().map(|w| &w.unit), now))
            }
        }
    }

    fn want(&self, wanted: &Wanted) -> Result<Want> {
        let unit = self.unit(&wanted.unit)?;
        let path = wanted.path.iter().map(|p| self.unit(p)).collect::<Result<Vec<Unit>>>()?;
        if !path.is_empty() && !self.locks.table().units().is_chain(&path, unit) {
            return refuse(Code::Unknown, format!("this is no way to `{}`", wanted.unit));
        }
        Ok(Want { unit, mode: wanted.mode, path: (!path.is_empty()).then(|| Arc::from(path)) })
    }

    fn blockers(&self, obstructions: &[Obstruction], now: Millis) -> Vec<Blocker> {
        let mut blockers: Vec<Blocker> = Vec::new();
        for o in obstructions {
            let session = o.conflict.session;
            // What is in the way may be above or below what it follows from; people want to know what somebody edits.
            let held =
                self.locks.holds().filter(|(s, u, ..)| *s == session && self.touches(*u, o.conflict.unit));
            let Some((unit, mode, since)) =
                held.map(|(_, u, m, h)| (u, m, h.since)).min_by_key(|(u, ..)| *u).or({
                    let place = self.atlas.place(o.conflict.unit);
                    place.map(|_| (o.conflict.unit, o.conflict.mode, now))
                })
            else {
                continue;
            };
            let Some(unit) = self.atlas.place(unit).cloned() else { continue };
            if !blockers.iter().any(|b| b.session == session && b.unit == unit) {
                let (user, since) = (self.user(session), now.saturating_sub(since));
                blockers.push(Blocker { session, user, unit, mode, since, waiting: o.is_waiting });
            }
        }
        blockers
    }

    /// Whether a unit is another one, or below it.
    fn touches(&self, unit: Unit, other: Unit) -> bool {
        unit == other || self.locks.table().units().below(other).contains(&unit)
    }

    pub(super) fn explain(&self, refusal: Refusal, wanted: Option<&Place>, now: Millis) -> Box<Refused> {
        let (code, obstructions) = match refusal {
            Refusal::Taken(obstructions) => (Code::Locked, obstructions),
            Refusal::Circle(obstructions) => (Code::Deadlock, obstructions),
            Refusal::Waiting => {
                let message = "you wait for something else already; cancel that first".to_owned();
                return Box::new(Refused { code: Code::Waiting, message, ..Refused::default() });
            }
        };
        let blockers = self.blockers(&obstructions, now);
        let who = |b: &Blocker| {
            let doing = match (b.waiting, b.mode) {
                (true, _) => "waits for",
                (false, Mode::S | Mode::Is) => "is reading",
                (false, _) => "is editing",
            };
            format!("{} {doing} {} ({} s)", b.user, b.unit.describe(&self.composition), b.since / 1000)
        };
        let said: Vec<String> = blockers.iter().take(3).map(who).collect();
        let alternative = wanted.and_then(|w| self.alternative(w));
        let hint = match (&alternative, code) {
            (_, Code::Deadlock) => "you have what they wait for; let go of it first".to_owned(),
            (Some(other), _) => {
                format!("wait, ask for it, or take {}, which is free", other.describe(&self.composition))
            }
            (None, _) => "wait, ask for it, or edit a copy".to_owned(),
        };
        let message = format!("{}; {hint}", said.join(", "));
        Box::new(Refused { code, message, blockers, alternative, theirs: Vec::new() })
    }

    /// Something of the same kind in the same workflow that nobody has locked.
    fn alternative(&self, wanted: &Place) -> Option<Place> {
        let workflow = wanted.workflow()?;
        let parts = parts(&self.composition);
        let alike = |p: &&Place| {
            std::mem::discriminant(*p) == std::mem::discriminant(wanted)
                && p.workflow() == Some(workflow)
                && *p != wanted
        };
        let is_free = |p: &&Place| {
            let unit = self.atlas.unit(p);
            unit.is_some_and(|u| self.locks.table().holders(u).next().is_none())
        };
        parts.keys().filter(alike).find(is_free).cloned()
    }

    /// Says what happened to locks, and writes it down.
    pub(super) fn tell_locks(&mut self, now: Millis) {
        for event in self.locks.take_events() {
            match event {
                LockEvent::Granted { session, unit, mode, number } => {
                    let Some(unit) = self.atlas.place(unit).cloned() else { continue };
                    self.record_lock("grant", session, &unit, Some(mode), Some(number), now);
                    let user = self.user(session);
                    let view = LockView { session, user, unit, mode, since: 0 };
                    self.out.push(Output::Tell(None, Event::Locked(view)));
                }
                LockEvent::Released { session, unit, why } => {
                    let Some(unit) = self.atlas.place(unit).cloned() else { continue };
                    let what = match why {
                        Release::Wanted | Release::Gone => "release",
                        Release::Expired => "expire",
                        Release::Idle => "idle",
                        Release::HandedOver => "hand-over",
                        Release::Broken => "broken",
                    };
                    self.record_lock(what, session, &unit, None, None, now);
                    self.out.push(Output::Tell(None, Event::Released { session, unit, why }));
                }
                LockEvent::Idle { session, unit, until } => {
                    let Some(unit) = self.atlas.place(unit).cloned() else { continue };
                    let within = until.saturating_sub(now);
                    self.out.push(Output::Say(session, Said::Event(Event::Idle { unit, within })));
                }
                LockEvent::Asked { session, unit, by, until } => {
                    let Some(unit) = self.atlas.place(unit).cloned() else { continue };
                    let (by, within) = (self.user(by), until.saturating_sub(now));
                    self.out.push(Output::Say(session, Said::Event(Event::Asked { unit, by, within })));
                }
            }
        }
    }

    pub(super) fn record_lock(
        &mut self,
        what: &str,
        session: Session,
        unit: &Place,
        mode: Option<Mode>,
        number: Option<u64>,
        now: Millis,
    ) {
        let (what, user, unit) = (what.to_owned(), self.user(session), unit.clone());
        self.out.push(Output::Record(Record::Lock(LockRecord {
            time: now,
            what,
            user,
            session,
            unit,
            mode,
            number,
        })));
    }
}
