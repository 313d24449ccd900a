//! Changes that belong together.

use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ChainState, History, Produced, RunId};

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
    /// Attempts that go from one agent to another before they have started.
    pub gifts: Vec<Gift>,
    /// Chains to give to agents, where several schedulers compete for them.
    pub claims: Vec<Claim>,
    /// Certain chains to give to agents, where it matters which agent gets which.
    pub picks: Vec<Pick>,
    /// Chains that one more agent should execute.
    pub copies: Vec<Pick>,
    /// Who asks, where several instances share the store: it plans only runs that it controls, and claims, picks and
    /// copies only for agents that it looks after.
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
            && self.gifts.is_empty()
            && self.claims.is_empty()
            && self.picks.is_empty()
            && self.copies.is_empty()
    }

    /// The runs whose plan changes.
    pub(crate) fn runs(&self) -> impl Iterator<Item = RunId> {
        self.feeds.iter().map(|f| f.run).chain(self.chains.iter().map(|c| c.run))
    }
}

/// The end of an attempt. Ignored unless the attempt is live: the newest one or one that goes on beside it, of a chain
/// that still runs. The first success counts, and with a final state all other attempts are over.
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
    /// The result of a success, or of a failure where that is one. If the chain has succeeded before, the result of
    /// then stays.
    pub result: Vec<u8>,
    /// What happened in a failure, as JSON.
    pub error: Option<String>,
    /// What it has written: noted as files of the run that its agent keeps, if the end counts.
    pub files: Vec<Produced>,
    /// When the attempt began what, if that is known.
    pub history: History,
}

/// A chain goes back to the queue, unless others still execute it: then only this attempt is over. Ignored unless the
/// attempt is live. With a time before which it must not be given away the chain is paused until then.
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

/// An attempt that has not started goes to another agent. Ignored unless `from` has it, or if `to` executes the chain
/// already.
#[derive(Clone, Debug)]
pub struct Gift {
    /// Which attempt.
    pub attempt: Attempt,
    /// Who had it.
    pub from: Name,
    /// Who gets it.
    pub to: Name,
}

/// Give certain chains to an agent: as [`Batch::picks`] those of them that are registered, as [`Batch::copies`] those
/// that other agents have and this one does not. Chains of runs that are held or cancelled are left alone.
#[derive(Clone, Debug)]
pub struct Pick {
    /// The chains.
    pub chains: Vec<ChainKey>,
    /// The agent.
    pub agent: Name,
    /// The time now.
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
    /// For each gift whether it counted.
    pub given: Vec<bool>,
    /// For each claim what was claimed, highest rank first.
    pub claimed: Vec<Vec<Claimed>>,
    /// For each pick what was picked, highest rank first.
    pub picked: Vec<Vec<Claimed>>,
    /// For each copy what is executed once more, highest rank first.
    pub copied: Vec<Vec<Claimed>>,
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
