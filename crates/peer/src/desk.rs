//! What those who are no members ask a peer for: to take workflows, to say what came of them, and who is there.

use crate::wire::Reply;
use serde::{Deserialize, Serialize};

/// No message between peers, and no question or answer, is larger.
pub const LARGEST_MESSAGE: usize = 64 << 20;

/// What a peer is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// Take a workflow in: a [`Document`](crate::Document).
    Submit(Box<crate::Document>),
    /// What has come of a workflow?
    Result(String),
    /// Who is there?
    Peers,
    /// How are you?
    Status,
}

/// What a peer answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The workflow is in the space, and this is what it is called there.
    In(String),
    /// It goes on: how many tasks are done, what cannot go on and why.
    Going {
        /// So many tasks are done, of so many that are known.
        tasks: (u32, u32),
        /// What cannot go on, and why.
        blocked: Vec<(String, String)>,
    },
    /// It is over: whether it was done, and what came of it.
    Over(bool, Vec<u8>),
    /// Who is there, and how to ask them.
    Peers(Vec<(String, String)>),
    /// How this peer is.
    Status(Box<Status>),
    /// It cannot be done.
    No(String),
}

impl Answer {
    /// Gives the answer to who has asked.
    pub(crate) fn give(&self, reply: Reply) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            reply.send(bytes);
        }
    }
}

/// How a peer is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its place on the ring.
    pub peer: String,
    /// What it is called on the wire.
    pub identity: String,
    /// Where it listens.
    pub address: String,
    /// The resource it is now, as rules see it; nothing: it has no room.
    pub resource: Option<String>,
    /// How many processors are free, of how many.
    pub cpus: (f64, f64),
    /// What it can do.
    pub capabilities: Vec<String>,
    /// Tasks it executes.
    pub running: usize,
    /// Molecules it is a home of, and how many of them it leads.
    pub molecules: usize,
    /// See [`molecules`](Self::molecules).
    pub leads: usize,
    /// Free resources and waiting tasks that it keeps for others.
    pub entries: usize,
    /// How many peers it knows to be there, itself included.
    pub known: usize,
    /// Messages it has sent, by what they are.
    pub sent: std::collections::BTreeMap<String, u64>,
}
