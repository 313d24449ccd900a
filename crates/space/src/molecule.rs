//! What lives in the space: workflows, levels and tasks, and what becomes of them.

use crate::id::{Group, Id, Peer};
use catena_rules::{Query, Value};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What a molecule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A workflow.
    Workflow,
    /// Tasks that wait together.
    Level,
    /// Something to execute.
    Task,
}

impl Kind {
    /// What it is called in rules.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Workflow => "WF",
            Self::Level => "LEVEL",
            Self::Task => "TASK",
        }
    }

    /// What is called like this in rules.
    pub fn from_tag(tag: &str) -> Option<Self> {
        [Self::Workflow, Self::Level, Self::Task].into_iter().find(|k| k.tag() == tag)
    }
}

/// What a molecule is called within its workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Name {
    /// What it is.
    pub kind: Kind,
    /// Which one.
    pub number: u32,
}

impl Name {
    /// A task.
    pub fn task(number: u32) -> Self {
        Self { kind: Kind::Task, number }
    }

    /// The workflow itself.
    pub const WORKFLOW: Self = Self { kind: Kind::Workflow, number: 0 };

    /// A number of its own, for identifiers.
    pub(crate) fn code(self) -> u32 {
        (self.kind as u32) << 30 | self.number
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.tag(), self.number)
    }
}

/// A molecule, and where it was when this was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ref {
    /// Which one.
    pub id: Id,
    /// What it is called.
    pub name: Name,
    /// Its homes.
    pub homes: Group,
}

/// What a molecule is and never ceases to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Body {
    /// What it is called.
    pub name: Name,
    /// Its workflow.
    pub workflow: Ref,
    /// What was taken apart to get it, and at which try.
    pub parent: Option<(Ref, u32)>,
    /// Whose end it waits for; without any, it waits until its parent is taken apart for good.
    pub sources: Vec<Name>,
    /// Who waits for its end.
    pub targets: Vec<Ref>,
    /// How rules see it.
    pub value: Value,
    /// The workflow wants to know of its end, even if others wait for it.
    pub reports: bool,
    /// What rules do not look at.
    pub matter: Matter,
}

/// What rules do not look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Matter {
    /// What is to be executed.
    Task(Order),
    /// What the tasks of a level are.
    Level(Vec<(u32, Order)>),
    /// What the workflow is, in the driver's words, and who wants to know what comes of it.
    Workflow(Arc<[u8]>, Peer),
}

/// Something to be executed, in the driver's words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Order {
    /// What.
    pub payload: Arc<[u8]>,
    /// It must not be started twice, whatever happens.
    pub exclusive: bool,
}

/// Where a molecule stands. What is here two of its homes have agreed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Counts who may act on it: every lease of a task and every try to take something apart has a number of its own, and
    /// only the last one counts.
    pub epoch: u32,
    /// How far it is.
    pub phase: Phase,
}

/// How far a molecule is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Phase {
    /// It waits, or looks for a resource.
    Waiting,
    /// A resource has it.
    Leased(Peer),
    /// A resource has begun to execute it, and nobody else will.
    Begun(Peer),
    /// It has been taken apart, so many times; or is being taken apart for the first time.
    Apart(Vec<Batch>),
    /// It is over.
    Done(Arc<Ending>),
}

/// Molecules that a workflow was taken apart into at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The epoch in which this was tried.
    pub attempt: u32,
    /// Whose ends were taken in between the last batch and this one, in order.
    pub after: Vec<Name>,
}

/// What came of a molecule, in the driver's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Whether those who wait for it can go on.
    pub good: bool,
    /// What came out, or why nothing did.
    pub matter: Arc<[u8]>,
}

impl Default for State {
    fn default() -> Self {
        Self { epoch: 0, phase: Phase::Waiting }
    }
}

/// What is in the index: something that is free, or something that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pointer {
    /// A peer has room for a task.
    Free(Peer, Value),
    /// A task waits for a resource.
    Parked(Ref, Query),
}

/// What is looked for in the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// A resource for a task.
    Resource(Query),
    /// A task for a resource.
    Task(Value),
}
