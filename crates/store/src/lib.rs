//! What must never be lost: runs, process chains, results, and the order in which results were used.
//!
//! - [`Store`] is the one interface; [`SqliteStore`] implements it in a file.
//! - Everything that changes together is one [`Batch`], applied in one transaction.
//! - The [`contract`] module has the tests every implementation must pass.

mod batch;
pub mod contract;
mod error;
mod record;
mod sqlite;

pub use batch::{Applied, Batch, Claim, Claimed, Feed, Finish, NewChain, NewChains, Requeue, Start};
pub use error::StoreError;
pub use record::{
    ChainFilter, ChainRecord, ClassCount, Counts, FailedAttempt, FeedRecord, NewRun, Run, RunChange, RunState,
};
pub use sqlite::{SqliteOptions, SqliteStore};

use async_trait::async_trait;
use catena_model::chain::{ChainKey, RunId};

/// The truth about runs and chains.
#[async_trait]
pub trait Store: Send + Sync {
    /// Adds a run.
    async fn create_run(&self, run: &NewRun) -> Result<RunId, StoreError>;
    /// The run with this number.
    async fn run(&self, id: RunId) -> Result<Option<Run>, StoreError>;
    /// All runs, newest first.
    async fn runs(&self) -> Result<Vec<Run>, StoreError>;
    /// Changes a run.
    async fn change_run(&self, id: RunId, change: &RunChange) -> Result<(), StoreError>;
    /// Applies everything in the batch in one transaction, or nothing of it.
    async fn apply(&self, batch: Batch) -> Result<Applied, StoreError>;
    /// How many chains of a run are in which state.
    async fn counts(&self, run: RunId) -> Result<Counts, StoreError>;
    /// Chains by class and state, maintained with every change.
    async fn class_counts(&self, run: RunId) -> Result<Vec<ClassCount>, StoreError>;
    /// Chains of a run in the order they were generated.
    async fn chains(&self, run: RunId, filter: &ChainFilter) -> Result<Vec<ChainRecord>, StoreError>;
    /// One chain with its payload and result.
    async fn chain(&self, key: ChainKey) -> Result<Option<ChainRecord>, StoreError>;
    /// The results of a run in the order in which they were used.
    async fn feeds(&self, run: RunId) -> Result<Vec<FeedRecord>, StoreError>;
    /// Attempts that failed, oldest first.
    async fn failed_attempts(&self, run: RunId) -> Result<Vec<FailedAttempt>, StoreError>;
    /// Makes chains of a run that were given to an agent available again, after the agent was lost.
    async fn release_running(&self, run: RunId) -> Result<u64, StoreError>;
    /// Makes failed and cancelled chains of a run available again.
    async fn retry_failed(&self, run: RunId) -> Result<u64, StoreError>;
    /// Compares the maintained counts with the truth, repairs them, and returns how many were wrong.
    async fn repair_counts(&self, run: RunId) -> Result<u64, StoreError>;
    /// Changes whenever another process has changed the store.
    async fn foreign_changes(&self) -> Result<u64, StoreError>;
    /// Makes everything that was applied survive a loss of power.
    async fn sync(&self) -> Result<(), StoreError>;
}
