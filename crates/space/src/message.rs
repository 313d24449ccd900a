//! What peers tell each other.

use crate::id::{Group, Id, Peer, Position};
use crate::index;
use crate::molecule::{Body, Ending, Name, Pointer, Ref, State, Wanted};
use crate::{register, route};
use catena_rules::{Query, Value};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A message between two peers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Who is there.
    Route(route::Message),
    /// What the homes of a molecule agree on.
    Register(register::Message<Body, State>),
    /// Hosts of the index among themselves.
    Index(index::Hosted<Pointer>, u8),
    /// Somebody wants an answer.
    Request {
        /// Who.
        origin: Peer,
        /// Its number for it.
        call: u64,
        /// Which way it goes.
        way: Way,
        /// What it wants.
        what: Request,
    },
    /// An answer.
    Reply {
        /// To which request.
        call: u64,
        /// What.
        what: Reply,
    },
    /// To who leads a molecule.
    Tell {
        /// Which one.
        id: Id,
        /// How often it was passed on, and how far along the ring the molecule was looked for.
        hops: (u8, u8),
        /// What.
        what: Tell,
    },
    /// To who executes a task, from its home: this peer leads now.
    Hello {
        /// The task.
        task: Id,
        /// With this lease.
        epoch: u32,
        /// Its homes.
        homes: Group,
    },
    /// To who executes a task, from its home: somebody else does, or nobody should.
    Fenced {
        /// The task.
        task: Id,
        /// The lease that counts no more.
        epoch: u32,
    },
    /// To a resource that was handed out: it is not needed.
    Free,
}

/// What who leads a molecule is told without an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Tell {
    /// This peer executes it, with this lease.
    Renew(Peer, u32),
    /// This peer does not execute it, with this lease.
    Unheld(Peer, u32),
    /// This part of a workflow cannot go on: two of the three homes of a molecule do not answer, or it cannot be known
    /// whether it was started.
    Blocked(Name, String),
    /// It is not needed any more.
    Forget,
    /// Its note in the index is gone, and it got nothing for it.
    Look,
}

/// Which way a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// To this very peer.
    Peer,
    /// To who leads a molecule: how often it was passed on, and how far along the ring it was looked for.
    Molecule(Id, u8, u8),
    /// To the owner of a place.
    Place(Position, u8),
}

/// What is wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// The homes of a place.
    Find,
    /// The same, for somebody who only wants to know the way.
    Seek,
    /// An operation on the index.
    Index(index::Request<Pointer, Wanted>),
    /// Be a home of a new molecule.
    Create(Id, Group, Arc<Body>),
    /// Something that a molecule waits for is over.
    Done(Name, Arc<Ending>),
    /// Tell who asks if you are over.
    Ask(Ref),
    /// Execute a task.
    Deploy(Box<Deploy>),
    /// A resource is free for a task.
    Volunteer(Value),
    /// May it begin? With this lease.
    Begin(u32),
    /// It is executed: with this lease, and this came out.
    Finish(u32, Arc<Ending>),
    /// It cannot be executed with this lease, because nobody has what this source has given.
    Lost(u32, Name),
    /// Nobody has what this one has given, which you are, or is a part of you: make it again, and tell. If it has given
    /// something else since, that is enough.
    Remake(Name, Option<Id>, Ref),
    /// A workflow is over.
    Result(Id, Arc<Ending>),
    /// Are you still there?
    Exists,
    /// How far are you?
    Progress,
    /// What others who look after somebody know: is it there?
    Certify(Peer),
}

/// A task for somebody to execute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deploy {
    /// Which one.
    pub task: Ref,
    /// With which lease.
    pub epoch: u32,
    /// What it wants of a resource.
    pub query: Query,
    /// What it is.
    pub body: Arc<Body>,
    /// What those it waited for have given.
    pub inputs: Vec<(Name, Arc<Ending>)>,
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The homes.
    Found(Group),
    /// The same, for somebody who only wants to know the way.
    Sought(Group),
    /// What the index says.
    Indexed(index::Answer<Pointer>),
    /// It is so, or will be.
    Yes,
    /// It is not so, and will not be.
    No,
    /// There is no such molecule any more.
    Gone,
    /// So many of so many parts that are known are over; what cannot go on, and why.
    Progress(u32, u32, Vec<(Name, String)>),
    /// Nobody has what this part of a workflow has given.
    Lacks(Name),
}

impl Message {
    /// What it is called when messages are counted.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Route(route::Message::Swim(_)) => "swim",
            Self::Route(route::Message::Beat { .. }) => "beat",
            Self::Register(message) => message.what.name(),
            Self::Index(..) => "index",
            Self::Request { what, .. } => what.kind(),
            Self::Reply { what, .. } => match what {
                Reply::Found(_) => "found",
                Reply::Sought(_) => "sought",
                Reply::Indexed(_) => "indexed",
                Reply::Progress(..) => "progressed",
                Reply::Yes | Reply::No | Reply::Gone | Reply::Lacks(_) => "reply",
            },
            Self::Tell { what, .. } => match what {
                Tell::Renew(..) => "renew",
                Tell::Unheld(..) => "unheld",
                Tell::Blocked(..) => "blocked",
                Tell::Forget => "forget",
                Tell::Look => "look",
            },
            Self::Hello { .. } => "hello",
            Self::Fenced { .. } => "fenced",
            Self::Free => "free",
        }
    }

    /// Whether it would be sent if there was no work at all.
    pub fn is_upkeep(&self) -> bool {
        matches!(
            self,
            Self::Route(_)
                | Self::Request { what: Request::Seek, .. }
                | Self::Reply { what: Reply::Sought(_), .. }
        )
    }
}

impl Request {
    fn kind(&self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Seek => "seek",
            Self::Index(index::Request::Put { .. }) => "put",
            Self::Index(_) => "take",
            Self::Create(..) => "create",
            Self::Done(..) => "done",
            Self::Ask(_) => "ask",
            Self::Deploy(..) => "deploy",
            Self::Volunteer(_) => "volunteer",
            Self::Begin(_) => "begin",
            Self::Finish(..) => "finish",
            Self::Lost(..) => "lost",
            Self::Remake(..) => "remake",
            Self::Result(..) => "result",
            Self::Exists => "exists",
            Self::Progress => "progress",
            Self::Certify(_) => "certify",
        }
    }
}
