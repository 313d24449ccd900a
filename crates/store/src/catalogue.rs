//! Which files there are, and who has them, where agents have files of their own.

use crate::error::StoreError;
use crate::record::ChainRecord;
use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{DataAddress, RunId};
use catena_model::content::{Artifact, ContentId};

/// A file or directory of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRecord {
    /// What the run calls it.
    pub name: Name,
    /// The chain that wrote it; `None` if it came with the run.
    pub chain: Option<u64>,
    /// What it is.
    pub artifact: Artifact,
}

/// Somebody has some content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What: a file, or the manifest of a directory that is there with everything in it.
    pub content: ContentId,
    /// Who: an agent, or a home.
    pub agent: Name,
    /// It stays there until somebody says otherwise. Other content may be removed to make room.
    pub kept: bool,
}

/// What has changed about the content that somebody holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldingChange {
    /// Who: an agent, or a home.
    pub agent: Name,
    /// It has this now, and whether it keeps it. What it keeps already it goes on keeping.
    pub holds: Vec<(ContentId, bool)>,
    /// It does not have this any more, even if it is also among what it holds: to ask in vain costs more than not to
    /// ask.
    pub lost: Vec<ContentId>,
}

/// A machine that holds what came with runs and what comes of them, and executes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its name, the same with every start.
    pub id: Name,
    /// Where it serves what it holds.
    pub address: DataAddress,
}

/// Files by name and by content.
#[async_trait]
pub trait Catalogue: Send + Sync {
    /// The files of a run with these names, as far as there are any, in the order of their names.
    async fn files(&self, run: RunId, names: &[Name]) -> Result<Vec<FileRecord>, StoreError>;
    /// Up to `limit` files of a run with names after `after`, in the order of their names.
    async fn files_after(&self, run: RunId, after: &str, limit: usize)
    -> Result<Vec<FileRecord>, StoreError>;

    /// Who has these contents, in the order of contents and names.
    async fn holders(&self, contents: &[ContentId]) -> Result<Vec<Holder>, StoreError>;
    /// Changes who has what.
    async fn change_holdings(&self, changes: &[HoldingChange]) -> Result<(), StoreError>;
    /// Somebody has exactly this, whatever was known before: it says so itself after a start.
    async fn replace_holdings(&self, agent: &Name, holds: &[(ContentId, bool)]) -> Result<(), StoreError>;

    /// Notes a home, or where it serves now.
    async fn put_home(&self, home: &Home) -> Result<(), StoreError>;
    /// All homes.
    async fn homes(&self) -> Result<Vec<Home>, StoreError>;

    /// Makes chains of a run that have succeeded wait for an agent again, because what they have written is gone.
    /// Returns those that had. What came of them before stays as it is: it may have been used.
    async fn reopen(&self, run: RunId, chains: &[u64]) -> Result<Vec<ChainRecord>, StoreError>;
}
