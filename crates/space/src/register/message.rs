//! What the homes of a molecule tell each other.

use crate::id::{Group, Id, Peer};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who may decide: of two that think so the one with the greater ballot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Counted up with every try.
    pub round: u32,
    /// Who tries.
    pub peer: Peer,
}

impl Ballot {
    /// Nobody has decided anything.
    pub const NONE: Self = Self { round: 0, peer: Peer(0) };

    /// The first ballot of a peer after this one.
    #[must_use]
    pub fn after(self, peer: Peer) -> Self {
        Self { round: self.round + 1, peer }
    }
}

/// A register as somebody holds it who has not accepted anything yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Copy<B, S> {
    /// Its homes.
    pub group: Group,
    /// What never changes.
    pub body: Arc<B>,
    /// How often it has changed.
    pub version: u32,
    /// What changes.
    pub state: S,
}

/// What somebody has accepted last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Held<S> {
    /// From whom.
    pub accepted: Ballot,
    /// How often the register had changed.
    pub version: u32,
    /// To what.
    pub state: S,
    /// Its next homes, if it is to move.
    pub next: Option<Group>,
}

/// A message about one register, at one view: a view is a time with the same homes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message<B, S> {
    /// Which register.
    pub id: Id,
    /// Which of its views.
    pub view: u32,
    /// What about it.
    pub what: What<B, S>,
}

/// What is said about a register.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What<B, S> {
    /// I want to decide. Who does not have the register may take this copy.
    Prepare {
        /// My ballot.
        ballot: Ballot,
        /// The register, while the view is young.
        copy: Option<Box<Copy<B, S>>>,
    },
    /// You may, and this is what I have.
    Promise {
        /// Your ballot.
        ballot: Ballot,
        /// What was accepted here.
        held: Box<Held<S>>,
        /// Nobody else was promised anything here.
        first: bool,
    },
    /// It changes.
    Accept {
        /// My ballot, and to what.
        ballot: Ballot,
        /// The version it has then.
        version: u32,
        /// What it is then.
        state: S,
        /// Its next homes, if it is to move.
        next: Option<Group>,
        /// The rest, for somebody who does not have it.
        rest: Option<(Group, Arc<B>)>,
    },
    /// I have it.
    Accepted {
        /// Your ballot.
        ballot: Ballot,
        /// The version I have.
        version: u32,
    },
    /// Somebody else decides.
    Refused {
        /// Their ballot.
        promised: Ballot,
    },
    /// The register lives elsewhere now: at this view, with these homes. No homes: it is over.
    Moved {
        /// Its view now.
        view: u32,
        /// Its homes now.
        group: Group,
    },
    /// I do not have it.
    Unknown {
        /// Of whom this was asked.
        ballot: Ballot,
    },
}

impl<B, S> What<B, S> {
    /// Its name, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Prepare { .. } => "prepare",
            Self::Promise { .. } => "promise",
            Self::Accept { .. } => "accept",
            Self::Accepted { .. } => "accepted",
            Self::Refused { .. } => "refused",
            Self::Moved { .. } => "moved",
            Self::Unknown { .. } => "unknown",
        }
    }
}
