//! What sessions and a room say to each other. The same words travel over WebSockets and between instances.

use super::change::Change;
use super::place::Place;
use crate::lock::{Mode, Release, Session};
use crate::model::Composition;
use catena_model::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Changes things.
    Editor,
    /// Takes locks away from others, too.
    Owner,
}

/// Something a session asks for. Answers come with the same number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Larger than all before it in this session.
    pub id: u64,
    /// What.
    #[serde(flatten)]
    pub ask: Ask,
}

/// What a session can ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Ask {
    /// Locks all of these, or none.
    Lock {
        /// What, and how.
        wants: Vec<Wanted>,
        /// Whether it is worth waiting.
        #[serde(default)]
        wait: bool,
    },
    /// Lets go.
    Release {
        /// Of what.
        units: Vec<Place>,
    },
    /// Is still there.
    Renew,
    /// Does not want to wait any more.
    Cancel,
    /// Asks whoever has locked something to hand it over.
    HandOver {
        /// What.
        unit: Place,
    },
    /// Hands over what others have asked for.
    Give {
        /// What.
        unit: Place,
    },
    /// Takes a lock away from whoever has it.
    Break {
        /// What.
        unit: Place,
    },
    /// Changes something.
    Do(Operation),
    /// Takes back what this user has done last.
    Undo {
        /// What others have changed since is left alone.
        #[serde(default)]
        skip: bool,
    },
    /// Does again what this user has taken back last.
    Redo,
    /// Shows others where this session is. Nobody remembers it.
    Point {
        /// Whatever the session shows: a position, a selection.
        cursor: Value,
    },
    /// Gives what there is now a name.
    Name {
        /// The name.
        name: String,
    },
    /// Makes a named version, or what there is now, the one that runs.
    Publish {
        /// The version; what there is now if none is given.
        #[serde(default)]
        name: Option<String>,
    },
    /// Brings a named version back.
    Restore {
        /// Its name.
        name: String,
    },
    /// Wants to see everything.
    State,
    /// Goes.
    Leave,
}

/// Something to be locked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// What.
    pub unit: Place,
    /// How.
    pub mode: Mode,
    /// The way by which the user came to it, from the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<Place>,
}

/// Changes that belong together: all of them happen, or none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Which operation of the session it is. One that comes again, because the answer was lost, is not done twice.
    #[serde(default)]
    pub op: u64,
    /// What.
    pub changes: Vec<Change>,
    /// The versions of the parts as the session has seen them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<Place, u64>,
    /// The numbers of the locks it counts on. What is not mentioned is locked for the moment of the change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<Place, u64>,
    /// What it is about, for the history.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What a room says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Said {
    /// Done.
    Done {
        /// The request.
        re: u64,
        /// What came of it.
        ok: Done,
    },
    /// Refused. Nothing has changed.
    Refused {
        /// The request, 0 if it could not be read.
        re: u64,
        /// Why.
        error: Refused,
    },
    /// Something has happened.
    Event(Event),
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// The locks with their numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<Place, u64>,
    /// Waits in this place, for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
    /// The number of the operation in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Everything, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<State>>,
}

/// Why somebody waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// So many have asked earlier and are in the way.
    pub position: usize,
    /// Who is in the way.
    pub blockers: Vec<Blocker>,
}

/// Why a request was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// What kind of reason.
    pub code: Code,
    /// In words.
    pub message: String,
    /// Who is in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// Something like it that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<Place>,
    /// What others have changed meanwhile, to choose between theirs and one's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub theirs: Vec<Theirs>,
}

/// Kinds of reasons for refusing something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// It could not be read, or means nothing.
    #[default]
    Malformed,
    /// It is larger than allowed.
    TooLarge,
    /// It was said before.
    Replayed,
    /// The user may not do this.
    NotAllowed,
    /// Others have locked it.
    Locked,
    /// Sessions would wait for each other.
    Deadlock,
    /// The session waits for something else already.
    Waiting,
    /// The session does not have the lock it counts on.
    StaleToken,
    /// Others have changed it meanwhile.
    Stale,
    /// The composition would be wrong.
    Invalid,
    /// There is no such thing.
    Unknown,
    /// Nothing to be undone or done again.
    Nothing,
    /// The room is elsewhere, or closing; connect again.
    Moved,
}

/// Who is in the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blocker {
    /// The session.
    pub session: Session,
    /// The user.
    pub user: String,
    /// What is locked.
    pub unit: Place,
    /// How.
    pub mode: Mode,
    /// For so many milliseconds.
    pub since: u64,
    /// It is not locked yet, but was asked for earlier.
    #[serde(default)]
    pub waiting: bool,
}

/// What others have made of something meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Theirs {
    /// What.
    pub unit: Place,
    /// Its version now.
    pub version: u64,
    /// Who has changed it last.
    pub by: String,
    /// What is there now.
    pub content: Value,
}

/// Something has happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Somebody has come.
    Joined {
        /// Who.
        session: Session,
        /// The user.
        user: String,
    },
    /// Somebody has gone.
    Left {
        /// Who.
        session: Session,
    },
    /// Somebody is somewhere.
    Pointed {
        /// Who.
        session: Session,
        /// Where.
        cursor: Value,
    },
    /// Something has been locked.
    Locked(LockView),
    /// Something is not locked any more.
    Released {
        /// By whom.
        session: Session,
        /// What.
        unit: Place,
        /// Why.
        why: Release,
    },
    /// A lock of this session will be released soon, because it is not used.
    Idle {
        /// What.
        unit: Place,
        /// In so many milliseconds.
        within: u64,
    },
    /// Somebody asks this session for a lock.
    Asked {
        /// What.
        unit: Place,
        /// Who asks.
        by: String,
        /// It goes over in so many milliseconds, unless it is used.
        within: u64,
    },
    /// Something has been changed.
    Changed(Applied),
    /// What there was at some moment has got a name.
    Named(Version),
    /// A version is the one that runs.
    Published(Version),
}

/// An operation that has been done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Its number in the history.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// Who.
    pub user: String,
    /// In which session.
    pub session: Session,
    /// Which operation of the session.
    pub op: u64,
    /// What.
    pub changes: Vec<Change>,
    /// What undoes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inverse: Vec<Change>,
    /// The parts it has changed. Their version is now its number.
    #[serde(default)]
    pub units: Vec<Place>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What there was at some moment, with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// The name.
    pub name: String,
    /// After which operation.
    pub seq: u64,
    /// When.
    pub time: u64,
    /// Who has named it.
    pub user: String,
    /// Whose changes are in it, since the version that was published before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
}

/// A lock, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockView {
    /// Who.
    pub session: Session,
    /// The user.
    pub user: String,
    /// What.
    pub unit: Place,
    /// How.
    pub mode: Mode,
    /// For so many milliseconds.
    #[serde(default)]
    pub since: u64,
}

/// Everything that a session sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The session itself.
    pub session: Session,
    /// What it may do.
    pub role: Role,
    /// The last operation of the session that was done.
    pub last_op: u64,
    /// The number of the last operation.
    pub seq: u64,
    /// What is composed.
    pub composition: Composition,
    /// The versions of parts that were changed. Others have version 0.
    pub versions: BTreeMap<Place, u64>,
    /// Who is there.
    pub people: Vec<Person>,
    /// What is locked.
    pub locks: Vec<LockView>,
    /// Versions with names.
    pub named: Vec<Version>,
    /// The version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Version>,
    /// What is still missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

/// Somebody who is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Person {
    /// The session.
    pub session: Session,
    /// The user.
    pub user: String,
    /// Where.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub cursor: Value,
}
