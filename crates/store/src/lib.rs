//! What must never be lost: runs, process chains, results, and the order in which results were used.
//!
//! - [`Store`] is the one interface; [`SqliteStore`] implements it in a file, [`PostgresStore`] in a database
//!   that many instances share. [`Members`] is the part about who shares it.
//! - [`Catalogue`] knows which files there are and who has them; [`Compositions`] what people compose together.
//! - Everything that changes together is one [`Batch`], applied in one transaction.
//! - The [`contract`] module has the tests every implementation must pass.

mod batch;
mod catalogue;
mod compositions;
pub mod contract;
mod error;
mod members;
mod postgres;
mod record;
mod sqlite;

pub use batch::{
    Applied, Batch, Claim, Claimed, Feed, Finish, Gift, NewChain, NewChains, Pick, Requeue, Start,
};
pub use catalogue::{Catalogue, FileRecord, Holder, HoldingChange, Home};
pub use compositions::{CompositionHead, CompositionWrite, Compositions};
pub use error::StoreError;
pub use members::{AgentRecord, Instance, Machine, MachineState, Members, Token};
pub use postgres::PostgresStore;
pub use record::{
    ChainFilter, ChainRecord, ClassCount, Counts, FailedAttempt, FeedRecord, NewRun, Run, RunChange,
    RunState, WaitingClass, rank,
};
pub use sqlite::{SqliteOptions, SqliteStore};

use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, RunId};

/// The truth about runs and chains.
#[async_trait]
pub trait Store: Members + Catalogue + Compositions {
    /// Adds a run.
    async fn create_run(&self, run: &NewRun) -> Result<RunId, StoreError>;
    /// The run with this number.
    async fn run(&self, id: RunId) -> Result<Option<Run>, StoreError>;
    /// See [`NewRun::definition`]. `None` if there is no such run.
    async fn definition(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError>;
    /// All runs, newest first.
    async fn runs(&self) -> Result<Vec<Run>, StoreError>;
    /// Changes a run.
    async fn change_run(&self, id: RunId, change: &RunChange) -> Result<(), StoreError>;
    /// Removes a run and everything about it.
    async fn delete_run(&self, id: RunId) -> Result<(), StoreError>;
    /// Makes `controller` plan the runs that are under way and that nobody else alive plans, and returns them,
    /// except those that it has already.
    async fn adopt_runs(&self, controller: &Name, has: &[RunId], now: i64) -> Result<Vec<Run>, StoreError>;
    /// Changes the priority of a run and of its chains that wait; `aging` as in [`rank`].
    async fn prioritise(
        &self,
        run: RunId,
        priority: i32,
        aging: std::time::Duration,
    ) -> Result<(), StoreError>;

    /// Applies everything in the batch in one transaction, or nothing of it.
    async fn apply(&self, batch: Batch) -> Result<Applied, StoreError>;
    /// How many chains of a run are in which state.
    async fn counts(&self, run: RunId) -> Result<Counts, StoreError>;
    /// Chains by class and state, maintained with every change.
    async fn class_counts(&self, run: RunId) -> Result<Vec<ClassCount>, StoreError>;
    /// Ends pauses that are over, and tells which chains wait for an agent, in all runs.
    async fn waiting(&self, now: i64) -> Result<Vec<WaitingClass>, StoreError>;
    /// Chains of a run in the order they were generated.
    async fn chains(&self, run: RunId, filter: &ChainFilter) -> Result<Vec<ChainRecord>, StoreError>;
    /// One chain with its payload and result.
    async fn chain(&self, key: ChainKey) -> Result<Option<ChainRecord>, StoreError>;
    /// Up to `limit` chains that wait for an agent, of runs that are neither held nor cancelled, highest rank first;
    /// with their class and rank but without their payload.
    async fn registered(&self, limit: usize) -> Result<Vec<ChainRecord>, StoreError>;
    /// The payloads of some chains, in any order.
    async fn payloads(&self, chains: &[ChainKey]) -> Result<Vec<(ChainKey, Vec<u8>)>, StoreError>;
    /// The chains that some agents have, with their payload; also those that others execute too. Number, agent and
    /// start are those of the attempt.
    async fn chains_of(&self, agents: &[Name]) -> Result<Vec<ChainRecord>, StoreError>;
    /// The results of a run in the order in which they were used.
    async fn feeds(&self, run: RunId) -> Result<Vec<FeedRecord>, StoreError>;
    /// Up to `limit` chains of a run, with results that were not used yet.
    async fn unused_results(&self, run: RunId, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError>;
    /// The results of some chains of a run, in any order.
    async fn results(&self, run: RunId, chains: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, StoreError>;
    /// Attempts that failed or were lost with their agent, oldest first.
    async fn failed_attempts(&self, run: RunId) -> Result<Vec<FailedAttempt>, StoreError>;
    /// Makes chains of a run that were given to an agent available again, after the agent was lost.
    async fn release_running(&self, run: RunId) -> Result<u64, StoreError>;
    /// Makes the chains of a lost agent available again and returns them. A chain that has lost `limit` agents
    /// is given up, with `error`: it may be what kills them. Where others execute a chain too, nothing is lost but
    /// the attempt.
    async fn release_agent(
        &self,
        agent: &Name,
        limit: u32,
        error: &str,
        now: i64,
    ) -> Result<Vec<ChainRecord>, StoreError>;
    /// Makes failed and cancelled chains of a run available again. What came of their failures is forgotten.
    async fn retry_failed(&self, run: RunId) -> Result<u64, StoreError>;
    /// Moves all chains of a run from one state to another; both are states without an agent.
    async fn move_chains(&self, run: RunId, from: ChainState, to: ChainState) -> Result<u64, StoreError>;
    /// Compares the maintained counts with the truth, repairs them, and returns how many were wrong.
    async fn repair_counts(&self, run: RunId) -> Result<u64, StoreError>;
    /// Changes whenever another process has changed the store, where that can be told.
    async fn foreign_changes(&self) -> Result<u64, StoreError>;
    /// Makes everything that was applied survive a loss of power.
    async fn sync(&self) -> Result<(), StoreError>;
}
