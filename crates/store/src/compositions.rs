//! What people compose together: who has a composition at the moment, what it is, and what was done to it.

use crate::error::StoreError;
use async_trait::async_trait;
use catena_compose::model::{Composition, RowChange};
use catena_compose::room::{LockRecord, Saved, Version};
use catena_model::Name;
use serde::Serialize;

/// A composition, seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompositionHead {
    /// Its name in addresses.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Who has made it.
    pub creator: String,
    /// When.
    pub created: i64,
    /// The number of the last operation.
    pub seq: u64,
    /// The version that runs.
    pub published: Option<String>,
    /// The instance that has it,
    pub owner: Option<Name>,
    /// until then.
    pub until: i64,
    /// How often it has changed hands.
    pub term: u64,
}

/// What has to be written down of a composition, all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct CompositionWrite {
    /// Rows of its workflows that change.
    pub rows: Vec<RowChange>,
    /// Operations, each with its number, as JSON.
    pub operations: Vec<(u64, String)>,
    /// Versions with names.
    pub versions: Vec<(Version, Composition)>,
    /// The version that runs from now on.
    pub published: Option<String>,
    /// What happened to locks.
    pub locks: Vec<LockRecord>,
    /// The number of the last operation.
    pub seq: u64,
    /// The largest number a lock has had.
    pub last_number: u64,
    /// A name for people.
    pub name: String,
}

/// Compositions that many people edit and many instances share.
#[async_trait]
pub trait Compositions: Send + Sync {
    /// Adds a composition. Whether there was none with this id.
    async fn create_composition(
        &self,
        id: &str,
        creator: &str,
        composition: &Composition,
        now: i64,
    ) -> Result<bool, StoreError>;
    /// All compositions, by id.
    async fn compositions(&self) -> Result<Vec<CompositionHead>, StoreError>;
    /// One composition, seen from outside.
    async fn composition_head(&self, id: &str) -> Result<Option<CompositionHead>, StoreError>;
    /// Removes a composition and everything about it. Whether there was one.
    async fn delete_composition(&self, id: &str) -> Result<bool, StoreError>;
    /// Makes an instance the owner of a composition, unless somebody else has it at the moment. Who has it then; `None` if
    /// there is no such composition.
    async fn claim_composition(
        &self,
        id: &str,
        instance: &Name,
        now: i64,
        until: i64,
    ) -> Result<Option<CompositionHead>, StoreError>;
    /// An instance goes on having all that it has, until then. In the past it gives them up.
    async fn keep_compositions(&self, instance: &Name, until: i64) -> Result<(), StoreError>;
    /// A composition as it was last written down. `None` if there is none.
    async fn load_composition(&self, id: &str) -> Result<Option<Saved>, StoreError>;
    /// Writes something down, if the instance has had the composition since this term. Whether that was so.
    async fn write_composition(
        &self,
        id: &str,
        instance: &Name,
        term: u64,
        write: &CompositionWrite,
    ) -> Result<bool, StoreError>;
    /// Operations after a number, as JSON, oldest first.
    async fn operations(&self, id: &str, after: u64, limit: usize) -> Result<Vec<String>, StoreError>;
    /// A version with a name, and what it was.
    async fn composition_version(&self, id: &str, name: &str) -> Result<Option<Composition>, StoreError>;
    /// The latest things that happened to locks, as JSON, oldest first.
    async fn lock_events(&self, id: &str, limit: usize) -> Result<Vec<String>, StoreError>;
}

/// So many operations are looked at when a composition is opened: what can be undone, and which versions parts have.
pub(crate) const RECENT: i64 = 1000;
