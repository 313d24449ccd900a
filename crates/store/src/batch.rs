//! Changes that belong together.

use catena_model::Name;
use catena_model::chain::{Attempt, ChainState, RunId};

/// Changes applied in one transaction, in the order of the fields.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Attempts that ended.
    pub finishes: Vec<Finish>,
    /// Chains that go back to the queue.
    pub requeues: Vec<Requeue>,
    /// Results that were used to generate more chains.
    pub feeds: Vec<Feed>,
    /// Chains that were generated from them.
    pub chains: Vec<NewChains>,
    /// Chains that were given to agents by the only one who gives any.
    pub starts: Vec<Start>,
    /// Chains to give to agents, where several schedulers compete for them.
    pub claims: Vec<Claim>,
    /// Who asks, where several instances share the store: it plans only runs that it controls and claims
    /// only for agents that it looks after.
    pub instance: Option<Name>,
}

impl Batch {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.finishes.is_empty()
            && self.requeues.is_empty()
            && self.feeds.is_empty()
            && self.chains.is_empty()
            && self.starts.is_empty()
            && self.claims.is_empty()
    }

    /// The runs whose plan changes.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunId> {
        self.feeds.iter().map(|f| f.run).chain(self.chains.iter().map(|c| c.run))
    }
}

/// The end of an attempt. Ignored unless the attempt is the newest one and still running.
#[derive(Clone, Debug)]
pub struct Finish {
    /// Which attempt.
    pub attempt: Attempt,
    /// How the chain stands now: a final state.
    pub state: ChainState,
    /// When the attempt started.
    pub started: i64,
    /// When it ended.
    pub ended: i64,
    /// The result of a success.
    pub result: Vec<u8>,
    /// What happened in a failure, as JSON.
    pub error: Option<String>,
}

/// A chain goes back to the queue. Ignored unless the attempt is the newest one and still running.
#[derive(Clone, Debug)]
pub struct Requeue {
    /// Which attempt ends here.
    pub attempt: Attempt,
    /// When the attempt started and ended, and why it failed; `None` if it was no failure.
    pub failure: Option<(i64, i64, String)>,
    /// The earliest time of the next attempt.
    pub not_before: i64,
}

/// Results that were used together, in this order.
#[derive(Clone, Debug)]
pub struct Feed {
    /// The run.
    pub run: RunId,
    /// How many results were used before.
    pub first: u64,
    /// How many chains had been generated before.
    pub after_chains: u64,
    /// The chains whose results were used.
    pub chains: Vec<u64>,
}

/// Chains generated together.
#[derive(Clone, Debug)]
pub struct NewChains {
    /// The run.
    pub run: RunId,
    /// The number of the first; the others follow.
    pub first: u64,
    /// The chains.
    pub chains: Vec<NewChain>,
}

/// A generated chain.
#[derive(Clone, Debug)]
pub struct NewChain {
    /// Identifies required capabilities and resources.
    pub class: Name,
    /// What the user asked for.
    pub priority: i32,
    /// Higher ones are claimed first. See [`rank`](crate::rank).
    pub rank: i64,
    /// The chain itself; opaque to the store.
    pub payload: Vec<u8>,
}

/// A chain was given to an agent. Ignored if the chain does not wait for one.
#[derive(Clone, Debug)]
pub struct Start {
    /// Which attempt starts here.
    pub attempt: Attempt,
    /// The agent.
    pub agent: Name,
    /// When.
    pub now: i64,
}

/// Give up to `limit` registered chains of a class to an agent, highest rank first.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The class.
    pub class: Name,
    /// At most so many.
    pub limit: usize,
    /// The agent.
    pub agent: Name,
    /// The time now.
    pub now: i64,
}

/// What a batch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// For each finish whether it counted.
    pub finished: Vec<bool>,
    /// For each requeue whether it counted.
    pub requeued: Vec<bool>,
    /// For each claim what was claimed, highest rank first.
    pub claimed: Vec<Vec<Claimed>>,
}

/// A chain that was given to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which attempt.
    pub attempt: Attempt,
    /// Its rank.
    pub rank: i64,
    /// How many attempts have failed.
    pub failures: u32,
    /// The chain itself.
    pub payload: Vec<u8>,
}
