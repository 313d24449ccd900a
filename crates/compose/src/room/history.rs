//! What was done, by whom, and how it is taken back.
//!
//! Everybody undoes what they themselves have done, last thing first, as long as nobody else has changed it since. Undoing
//! is an operation like any other, under locks and in the history.

use super::message::{Applied, Code, Done, Operation, Refused, Theirs, Version};
use super::place::Place;
use super::{Event, Millis, Output, Record, Result, Room, Saved, refuse};
use crate::lock::Session;
use crate::model::{Composition, check};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many operations of a user can be undone.
const DEPTH: usize = 200;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct History {
    seq: u64,
    /// The operation that has changed a part last, and its user.
    versions: BTreeMap<Place, (u64, String)>,
    /// The last operation of each session, and its number.
    last_ops: HashMap<Session, (u64, u64)>,
    stacks: HashMap<String, Stacks>,
    named: Vec<(Version, Composition)>,
    published: Option<Version>,
    /// Who has changed something since the last publication.
    authors: BTreeSet<String>,
    /// What the parts that the next operation changes had as versions before.
    before: BTreeMap<Place, u64>,
}

/// What a user can take back, and do again.
#[derive(Debug, Default)]
struct Stacks {
    done: Vec<Step>,
    undone: Vec<Step>,
}

/// An operation that can be taken back.
#[derive(Clone, Debug)]
struct Step {
    applied: Applied,
    /// The versions of the parts it has changed, before and after it.
    before: BTreeMap<Place, u64>,
    after: BTreeMap<Place, u64>,
}

impl Stacks {
    /// A part is again what it was with an earlier version.
    fn same_again(&mut self, place: &Place, earlier: u64, now: u64) {
        for step in self.done.iter_mut().chain(&mut self.undone) {
            if let Some(version) = step.after.get_mut(place).filter(|v| **v == earlier) {
                *version = now;
            }
        }
    }
}

impl History {
    pub(super) fn new(saved: &Saved) -> Self {
        let mut history =
            Self { named: saved.named.clone(), published: saved.published.clone(), ..Self::default() };
        for applied in &saved.operations {
            history.seq = applied.seq - 1;
            history.next(applied.units.iter().cloned().collect(), &applied.user);
            history.did(applied.session, &applied.user, applied.clone());
        }
        history.seq = history.seq.max(saved.seq);
        history
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn last_op(&self, session: Session) -> u64 {
        self.last_ops.get(&session).map_or(0, |(op, _)| *op)
    }

    /// The number of an operation that a session has done before.
    pub(super) fn find(&self, session: Session, op: u64) -> Option<u64> {
        self.last_ops.get(&session).filter(|(last, _)| op != 0 && op <= *last).map(|(_, seq)| *seq)
    }

    pub(super) fn versions(&self) -> BTreeMap<Place, u64> {
        self.versions.iter().map(|(place, (version, _))| (place.clone(), *version)).collect()
    }

    /// The version of a part, and who has made it.
    pub(super) fn version_of(&self, place: &Place) -> (u64, Option<&str>) {
        self.versions.get(place).map_or((0, None), |(version, by)| (*version, Some(by)))
    }

    /// Counts an operation that changes these parts.
    pub(super) fn next(&mut self, touched: BTreeSet<Place>, user: &str) -> u64 {
        self.seq += 1;
        self.before = touched.iter().map(|p| (p.clone(), self.version_of(p).0)).collect();
        for place in touched {
            self.versions.insert(place, (self.seq, user.to_owned()));
        }
        self.authors.insert(user.to_owned());
        self.seq
    }

    /// Notes an operation that was just counted.
    pub(super) fn did(&mut self, session: Session, user: &str, applied: Applied) {
        if applied.op > 0 {
            self.last_ops.insert(session, (applied.op, applied.seq));
        }
        let step = self.step(applied);
        let stacks = self.stacks.entry(user.to_owned()).or_default();
        stacks.undone.clear();
        stacks.done.push(step);
        if stacks.done.len() > DEPTH {
            stacks.done.remove(0);
        }
    }

    fn step(&mut self, applied: Applied) -> Step {
        let before = std::mem::take(&mut self.before);
        let after = before.keys().map(|p| (p.clone(), applied.seq)).collect();
        Step { applied, before, after }
    }

    pub(super) fn named(&self) -> impl Iterator<Item = &Version> {
        self.named.iter().map(|(version, _)| version)
    }

    pub(super) fn published(&self) -> Option<&Version> {
        self.published.as_ref()
    }

    pub(super) fn version(&self, name: &str) -> Option<&Composition> {
        self.named.iter().find(|(v, _)| v.name == name).map(|(_, c)| c)
    }
}

/// Which way to go in the history.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Back,
    Forth,
}

impl Room {
    pub(super) fn undo(&mut self, session: Session, skip: bool, now: Millis) -> Result<Done> {
        self.go(session, Way::Back, skip, now)
    }

    pub(super) fn redo(&mut self, session: Session, now: Millis) -> Result<Done> {
        self.go(session, Way::Forth, false, now)
    }

    fn go(&mut self, session: Session, way: Way, skip: bool, now: Millis) -> Result<Done> {
        let user = self.user(session);
        loop {
            let stacks = self.history.stacks.entry(user.clone()).or_default();
            let stack = if way == Way::Back { &mut stacks.done } else { &mut stacks.undone };
            let Some(step) = stack.last().cloned() else {
                let word = if way == Way::Back { "undo" } else { "do again" };
                return refuse(Code::Nothing, format!("you have nothing to {word}"));
            };
            if let Some(refused) = self.overtaken(&step) {
                if !skip {
                    return Err(refused);
                }
                self.stack(&user, way).pop();
                continue;
            }
            let changes =
                if way == Way::Back { step.applied.inverse.clone() } else { step.applied.changes.clone() };
            let verb = if way == Way::Back { "undo" } else { "redo" };
            let note = format!("{verb} {}", step.applied.seq);
            let applied = self.apply(session, Operation { changes, note, ..Operation::default() }, now)?;
            self.stack(&user, way).pop();
            let seq = applied.seq;
            let mut turned = self.history.step(applied.clone());
            // What was before the step is there again.
            for (place, earlier) in &step.before {
                self.history.stacks.entry(user.clone()).or_default().same_again(place, *earlier, seq);
            }
            turned.applied = step.applied;
            let other = if way == Way::Back { Way::Forth } else { Way::Back };
            self.stack(&user, other).push(turned);
            self.announce(session, applied);
            return Ok(Done { seq: Some(seq), ..Done::default() });
        }
    }

    fn stack(&mut self, user: &str, way: Way) -> &mut Vec<Step> {
        let stacks = self.history.stacks.entry(user.to_owned()).or_default();
        if way == Way::Back { &mut stacks.done } else { &mut stacks.undone }
    }

    /// Why a step cannot be taken back: somebody has changed the same since.
    fn overtaken(&self, step: &Step) -> Option<Box<Refused>> {
        let changed =
            step.after.iter().find(|(place, version)| self.history.version_of(place).0 != **version);
        let (place, _) = changed?;
        let (version, by) = self.history.version_of(place);
        let by = by.unwrap_or_default().to_owned();
        let message = format!(
            "{by} has changed {} since; skip it, or talk to {by}",
            place.describe(self.composition())
        );
        let content = super::content(self.composition(), place);
        let theirs = vec![Theirs { unit: place.clone(), version, by, content }];
        Some(Box::new(Refused { code: Code::Stale, message, theirs, ..Refused::default() }))
    }

    pub(super) fn name(&mut self, session: Session, name: &str, now: Millis) -> Result<Done> {
        let name = name.trim();
        if name.is_empty() || name.chars().count() > 100 {
            return refuse(Code::Malformed, "a version needs a name of at most 100 characters");
        }
        if self.history.version(name).is_some() {
            return refuse(Code::Invalid, format!("there is a version `{name}` already"));
        }
        let version = self.snapshot(session, name, now);
        self.out.push(Output::Tell(None, Event::Named(version)));
        Ok(Done { seq: Some(self.history.seq), ..Done::default() })
    }

    /// Gives what there is now a name.
    fn snapshot(&mut self, session: Session, name: &str, now: Millis) -> Version {
        let authors = self.history.authors.iter().cloned().collect();
        let version = Version {
            name: name.to_owned(),
            seq: self.history.seq,
            time: now,
            user: self.user(session),
            authors,
        };
        let composition = self.composition().clone();
        self.history.named.push((version.clone(), composition.clone()));
        self.out.push(Output::Record(Record::Named { version: version.clone(), composition }));
        version
    }

    pub(super) fn publish(&mut self, session: Session, name: Option<String>, now: Millis) -> Result<Done> {
        let version = match name {
            Some(name) => match self.history.named.iter().find(|(v, _)| v.name == name) {
                Some((version, _)) => version.clone(),
                None => return refuse(Code::Unknown, format!("there is no version `{name}`")),
            },
            None => {
                let taken = |n: &str| self.history.version(n).is_some();
                let names = (1..=self.history.named.len() + 1).map(|n| format!("published {n}"));
                let name = { names }.find(|n| !taken(n)).unwrap_or_default();
                if let Some(gap) = check(self.composition()).into_iter().next() {
                    return refuse(
                        Code::Invalid,
                        format!("this cannot run yet: {}: {}", gap.place, gap.message),
                    );
                }
                self.snapshot(session, &name, now)
            }
        };
        let composition = self.history.version(&version.name);
        if let Some(gap) = composition.and_then(|c| check(c).into_iter().next()) {
            return refuse(Code::Invalid, format!("this cannot run: {}: {}", gap.place, gap.message));
        }
        self.history.published = Some(version.clone());
        self.history.authors.clear();
        self.out.push(Output::Record(Record::Published { version: version.clone() }));
        self.out.push(Output::Tell(None, Event::Published(version.clone())));
        Ok(Done { seq: Some(version.seq), ..Done::default() })
    }
}
