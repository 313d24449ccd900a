//! One composition and those who edit it: the document, the locks, who is there, and the history. Nothing here waits, sends
//! or looks at a clock; whoever drives a room writes down what it [records](Output::Record) before others hear of it.

mod change;
mod history;
mod locking;
mod message;
mod operate;
mod place;
#[cfg(test)]
mod tests;

pub use change::{Change, Needs, content};
pub use message::{
    Applied, Ask, Blocker, Code, Done, Event, LockView, Operation, Person, Refused, Request, Role, Said,
    State, Theirs, Version, Waits, Wanted,
};
pub use place::Place;

use crate::lock::{Locks, Millis, Mode, Release, Session, Table, Timing, Unit};
use crate::model::{Composition, check};
use history::History;
use message::Done as Answer;
use place::Atlas;
use std::collections::{BTreeMap, BTreeSet};

/// A message is not read if it has more bytes.
pub const LARGEST_MESSAGE: usize = 256 << 10;
/// What a session shows of itself has at most so many bytes.
const LARGEST_CURSOR: usize = 1 << 10;

/// What a room wants to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Say this to a session.
    Say(Session, Said),
    /// Say this to all sessions but one.
    Tell(Option<Session>, Event),
    /// Write this down before anything that comes after it is said.
    Record(Record),
}

/// What must not be lost.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// An operation.
    Applied(Applied),
    /// A version with a name, and what it is.
    Named {
        /// The version.
        version: Version,
        /// What there was.
        composition: Composition,
    },
    /// The version that runs.
    Published {
        /// The version.
        version: Version,
    },
    /// Something about locks, for whoever asks later who had what when.
    Lock(LockRecord),
}

/// Something about locks.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LockRecord {
    /// When.
    pub time: Millis,
    /// `ask`, `grant`, `queue`, `refuse`, `release`, `expire`, `idle`, `hand-over`, `break`.
    pub what: String,
    /// Who.
    pub user: String,
    /// In which session.
    pub session: Session,
    /// What.
    pub unit: Place,
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The number of the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
}

/// What a room was when it was last driven.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// What is composed.
    pub composition: Composition,
    /// The latest operations, oldest first: what can be undone, and which versions parts have.
    pub operations: Vec<Applied>,
    /// The number of the last operation.
    pub seq: u64,
    /// Versions with names.
    pub named: Vec<(Version, Composition)>,
    /// The version that runs.
    pub published: Option<Version>,
    /// The largest number a lock has had.
    pub last_number: u64,
}

/// One composition and those who edit it.
#[derive(Debug)]
pub struct Room {
    composition: Composition,
    atlas: Atlas,
    locks: Locks,
    history: History,
    members: BTreeMap<Session, Member>,
    out: Vec<Output>,
}

#[derive(Clone, Debug)]
struct Member {
    user: String,
    role: Role,
    /// The last request, and the last operation.
    last: u64,
    cursor: catena_model::Value,
    is_here: bool,
}

type Result<T> = std::result::Result<T, Box<Refused>>;

fn refuse<T>(code: Code, message: impl Into<String>) -> Result<T> {
    Err(Box::new(Refused { code, message: message.into(), ..Refused::default() }))
}

impl Room {
    /// A room for a composition.
    pub fn new(saved: Saved, timing: Timing) -> Self {
        let (atlas, units) = Atlas::new(&saved.composition);
        let locks = Locks::new(Table::new(units), timing).numbered_from(saved.last_number);
        let history = History::new(&saved);
        let (members, out) = (BTreeMap::new(), Vec::new());
        Self { composition: saved.composition, atlas, locks, history, members, out }
    }

    /// What is composed.
    pub fn composition(&self) -> &Composition {
        &self.composition
    }

    /// The number of the last operation.
    pub fn seq(&self) -> u64 {
        self.history.seq()
    }

    /// The largest number a lock has had.
    pub fn last_number(&self) -> u64 {
        self.locks.last_number()
    }

    /// What is to be done, since the last call.
    pub fn take_output(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// When something happens next, if nobody says anything.
    pub fn next_moment(&self) -> Option<Millis> {
        self.locks.next_moment()
    }

    /// Whether nobody is here and nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.members.values().all(|m| !m.is_here) && self.locks.holds().next().is_none()
    }

    /// Somebody comes, or comes back: who has been here before under the same session keeps its locks.
    pub fn join(&mut self, session: Session, user: &str, role: Role, now: Millis) {
        let known = self.members.get(&session).filter(|m| m.user == user);
        let last = known.map_or(0, |m| m.last);
        let member =
            Member { user: user.to_owned(), role, last, cursor: catena_model::Value::Null, is_here: true };
        self.members.insert(session, member);
        self.locks.renew(session, now);
        self.out.push(Output::Tell(Some(session), Event::Joined { session, user: user.to_owned() }));
        let state = self.state(session, now);
        self.say(session, 0, Ok(Answer { state: Some(Box::new(state)), ..Answer::default() }));
    }

    /// The connection of a session is gone. Its locks stay until its lease ends, so that it can come back.
    pub fn disconnected(&mut self, session: Session) {
        if let Some(member) = self.members.get_mut(&session)
            && member.is_here
        {
            member.is_here = false;
            self.out.push(Output::Tell(Some(session), Event::Left { session }));
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Millis) {
        self.locks.tick(now);
        self.tell_locks(now);
        let gone: Vec<Session> = self.members.iter().filter(|(_, m)| !m.is_here).map(|(s, _)| *s).collect();
        let holds: BTreeSet<Session> = self.locks.holds().map(|(s, ..)| s).collect();
        for session in gone.into_iter().filter(|s| !holds.contains(s)) {
            self.members.remove(&session);
        }
    }

    /// A message as it came, which may be anything.
    pub fn receive(&mut self, session: Session, text: &str, now: Millis) {
        if text.len() > LARGEST_MESSAGE {
            let message = format!("a message has at most {} KiB", LARGEST_MESSAGE >> 10);
            return self.say(session, 0, refuse(Code::TooLarge, message));
        }
        match serde_json::from_str::<Request>(text) {
            Ok(request) => self.handle(session, request, now),
            Err(e) => self.say(session, 0, refuse(Code::Malformed, format!("this cannot be read: {e}"))),
        }
    }

    /// A session asks for something.
    pub fn handle(&mut self, session: Session, request: Request, now: Millis) {
        let Request { id, ask } = request;
        let answer = self.answer(session, id, ask, now);
        self.tell_locks(now);
        self.say(session, id, answer);
    }

    fn say(&mut self, session: Session, re: u64, answer: Result<Answer>) {
        let said = match answer {
            Ok(ok) => Said::Done { re, ok },
            Err(error) => Said::Refused { re, error: *error },
        };
        self.out.push(Output::Say(session, said));
    }

    fn answer(&mut self, session: Session, id: u64, ask: Ask, now: Millis) -> Result<Answer> {
        let Some(member) = self.members.get_mut(&session) else {
            return refuse(Code::Unknown, "this session has not joined");
        };
        if id <= member.last && id != 0 {
            let message = format!("the request {id} was made before; the last one was {}", member.last);
            return refuse(Code::Replayed, message);
        }
        member.last = id.max(member.last);
        let role = member.role;
        self.locks.renew(session, now);
        let needed = match &ask {
            Ask::Renew | Ask::Point { .. } | Ask::State | Ask::Leave | Ask::Cancel => Role::Viewer,
            Ask::Break { .. } => Role::Owner,
            _ => Role::Editor,
        };
        if role < needed {
            let message = match needed {
                Role::Owner => "only an owner may take a lock away from others",
                _ => "you may look, but not change anything",
            };
            return refuse(Code::NotAllowed, message);
        }
        match ask {
            Ask::Lock { wants, wait } => self.lock(session, &wants, wait, now),
            Ask::Release { units } => {
                for place in units {
                    let unit = self.unit(&place)?;
                    self.locks.release(session, unit, now);
                }
                Ok(Answer::default())
            }
            Ask::Renew => Ok(Answer::default()),
            Ask::Cancel => {
                self.locks.withdraw(session, now);
                Ok(Answer::default())
            }
            Ask::HandOver { unit: place } => {
                let unit = self.unit(&place)?;
                self.record_lock("ask", session, &place, None, None, now);
                if self.locks.ask(session, unit, now).is_empty() {
                    return refuse(
                        Code::Nothing,
                        format!("nobody has locked {}", place.describe(&self.composition)),
                    );
                }
                Ok(Answer::default())
            }
            Ask::Give { unit } => {
                let unit = self.unit(&unit)?;
                self.locks.hand_over(session, unit, now);
                Ok(Answer::default())
            }
            Ask::Break { unit: place } => {
                let unit = self.unit(&place)?;
                self.record_lock("break", session, &place, None, None, now);
                if self.locks.break_lock(unit, now).is_empty() {
                    return refuse(
                        Code::Nothing,
                        format!("nobody has locked {}", place.describe(&self.composition)),
                    );
                }
                Ok(Answer::default())
            }
            Ask::Do(operation) => self.operate(session, operation, now),
            Ask::Undo { skip } => self.undo(session, skip, now),
            Ask::Redo => self.redo(session, now),
            Ask::Point { cursor } => {
                if cursor.to_string().len() > LARGEST_CURSOR {
                    return refuse(Code::TooLarge, format!("a cursor has at most {LARGEST_CURSOR} bytes"));
                }
                if let Some(member) = self.members.get_mut(&session) {
                    member.cursor = cursor.clone();
                }
                self.out.push(Output::Tell(Some(session), Event::Pointed { session, cursor }));
                Ok(Answer::default())
            }
            Ask::Name { name } => self.name(session, &name, now),
            Ask::Publish { name } => self.publish(session, name, now),
            Ask::Restore { name } => {
                let Some(composition) = self.history.version(&name).cloned() else {
                    return refuse(Code::Unknown, format!("there is no version `{name}`"));
                };
                let changes = vec![Change::Replace { composition }];
                self.operate(
                    session,
                    Operation { changes, note: format!("back to {name}"), ..Operation::default() },
                    now,
                )
            }
            Ask::State => {
                let state = self.state(session, now);
                Ok(Answer { state: Some(Box::new(state)), ..Answer::default() })
            }
            Ask::Leave => {
                self.locks.leave(session, Release::Wanted, now);
                self.disconnected(session);
                self.tell_locks(now);
                self.members.remove(&session);
                Ok(Answer::default())
            }
        }
    }

    /// Everything that a session sees.
    fn state(&self, session: Session, now: Millis) -> State {
        let member = self.members.get(&session);
        let people = self.members.iter().filter(|(_, m)| m.is_here);
        let people = people.map(|(session, m)| Person {
            session: *session,
            user: m.user.clone(),
            cursor: m.cursor.clone(),
        });
        State {
            session,
            role: member.map_or(Role::Viewer, |m| m.role),
            last_op: self.history.last_op(session),
            seq: self.history.seq(),
            composition: self.composition.clone(),
            versions: self.history.versions(),
            people: people.collect(),
            locks: self.lock_views(now),
            named: self.history.named().cloned().collect(),
            published: self.history.published().cloned(),
            gaps: check(&self.composition)
                .into_iter()
                .map(|f| format!("{}: {}", f.place, f.message))
                .collect(),
        }
    }

    /// What is locked.
    pub fn lock_views(&self, now: Millis) -> Vec<LockView> {
        let mut views: Vec<LockView> = self
            .locks
            .holds()
            .filter_map(|(session, unit, mode, hold)| {
                let (user, unit) = (self.user(session), self.atlas.place(unit)?.clone());
                Some(LockView { session, user, unit, mode, since: now.saturating_sub(hold.since) })
            })
            .collect();
        views.sort_by(|a, b| (&a.unit, a.session).cmp(&(&b.unit, b.session)));
        views
    }

    fn user(&self, session: Session) -> String {
        self.members.get(&session).map(|m| m.user.clone()).unwrap_or_default()
    }

    fn unit(&self, place: &Place) -> Result<Unit> {
        match self.atlas.unit(place) {
            Some(unit) => Ok(unit),
            None => refuse(Code::Unknown, format!("there is no part `{place}`")),
        }
    }
}
