//! What chains read and where it can be had, where agents have files of their own.
//!
//! A chain names what it reads by paths, as if all machines shared one file system. What is at such a path the catalogue
//! knows: the path itself, or a directory above it.

use crate::places::is_own_directory;
use catena_bus::Assignment;
use catena_model::chain::{Argument, DataAddress, Executable, Origin, ProcessChain, RunId, Supply};
use catena_model::content::{Artifact, ContentId};
use catena_model::{Direction, Name};
use catena_store::{FileRecord, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// How many files are read at a time.
const PAGE: usize = 1024;

/// Finds out what chains read.
pub(crate) struct Supplier {
    store: Arc<dyn Store>,
    /// All machines share an object storage that has everything.
    has_object_storage: bool,
    /// Where machines serve what they hold.
    addresses: Mutex<HashMap<Name, DataAddress>>,
}

/// What a chain reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) supplies: Vec<Supply>,
    /// Files that nobody has.
    pub(crate) missing: Vec<FileRecord>,
}

impl Reads {
    /// How many bytes have to be brought to where nothing of a supply is.
    pub(crate) fn bytes(supply: &Supply) -> u64 {
        match &supply.artifact {
            Artifact::Directory(d) if !supply.parts.is_empty() => {
                d.bytes / d.files.max(1) * (supply.parts.len() as u64).min(d.files)
            }
            artifact => artifact.bytes(),
        }
    }

    /// The agents that have a supply.
    pub(crate) fn holders(supply: &Supply) -> Vec<Name> {
        let name = |origin: &Origin| match origin {
            Origin::Agent { name, .. } => Some(name.clone()),
            Origin::Object => None,
        };
        supply.sources.iter().filter_map(name).collect()
    }
}

impl Supplier {
    pub(crate) fn new(store: Arc<dyn Store>, has_object_storage: bool) -> Self {
        Self { store, has_object_storage, addresses: Mutex::default() }
    }

    /// Reads anew where machines serve what they hold.
    pub(crate) async fn learn_addresses(&self) -> Result<(), StoreError> {
        let homes = self.store.homes().await?.into_iter().map(|h| (h.id, h.address));
        let agents = self.store.agents().await?.into_iter().filter_map(|a| Some((a.id, a.data?)));
        let known = homes.chain(agents).collect();
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Where a machine serves what it holds.
    pub(crate) fn address(&self, machine: &Name) -> Option<DataAddress> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).get(machine).cloned()
    }

    /// What chains of a run read, in their order.
    pub(crate) async fn chains(
        &self,
        run: RunId,
        chains: &[&ProcessChain],
    ) -> Result<Vec<Reads>, StoreError> {
        let read: Vec<Vec<&Name>> = chains.iter().map(|chain| chain_inputs(chain)).collect();
        self.find(run, &read).await
    }

    /// Says with each chain what it reads and where that can be had.
    pub(crate) async fn supply(&self, run: RunId, chains: &mut [Assignment]) -> Result<(), StoreError> {
        let plain: Vec<Arc<ProcessChain>> = chains.iter().map(|a| a.chain.clone()).collect();
        let plain: Vec<&ProcessChain> = plain.iter().map(|c| &**c).collect();
        let reads = self.chains(run, &plain).await?;
        for (assignment, reads) in chains.iter_mut().zip(reads) {
            assignment.supplies = reads.supplies;
        }
        Ok(())
    }

    /// What is at some paths.
    pub(crate) async fn paths(&self, run: RunId, paths: &[Name]) -> Result<Reads, StoreError> {
        let found = self.find(run, &[paths.iter().collect()]).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Everything below a path.
    pub(crate) async fn below(&self, run: RunId, path: &Path) -> Result<Reads, StoreError> {
        let prefix = format!("{}/", path.display());
        let mut names: Vec<Name> = Vec::new();
        loop {
            let after = names.last().map_or(prefix.as_str(), |n| n.as_str());
            let page = self.store.files_after(run, after, PAGE).await?;
            let found = page.iter().map(|f| f.name.clone()).take_while(|n| n.starts_with(&prefix));
            let before = names.len();
            names.extend(found);
            if names.len() - before < PAGE {
                return self.paths(run, &names).await;
            }
        }
    }

    async fn find(&self, run: RunId, read: &[Vec<&Name>]) -> Result<Vec<Reads>, StoreError> {
        let mut names: BTreeSet<Name> = BTreeSet::new();
        for name in read.iter().flatten() {
            names.extend(Path::new(name.as_str()).ancestors().filter_map(Path::to_str).map(Name::new));
        }
        names.remove("");
        names.remove("/");
        let names: Vec<Name> = names.into_iter().collect();
        let files = self.store.files(run, &names).await?;
        let files: HashMap<&str, &FileRecord> = files.iter().map(|f| (f.name.as_str(), f)).collect();
        let known = |path: &str| files.get(path).map(|f| f.name.as_str());
        let found: Vec<BTreeMap<&str, BTreeSet<String>>> =
            read.iter().map(|r| wanted_parts(r, known)).collect();
        let contents: BTreeSet<ContentId> =
            found.iter().flat_map(|f| f.keys()).map(|name| files[name].artifact.id()).collect();
        let sources = self.sources(contents.into_iter().collect()).await?;
        let mut all = Vec::with_capacity(found.len());
        for (number, found) in found.into_iter().enumerate() {
            let mut reads = Reads::default();
            for (name, parts) in found {
                let file = files[name];
                let mut sources = sources.get(&file.artifact.id()).cloned().unwrap_or_default();
                if sources.is_empty() && !self.has_object_storage {
                    reads.missing.push(file.clone());
                }
                // Not everybody should ask the same one first.
                let turn = number % sources.len().max(1);
                sources.rotate_left(turn);
                sources.extend(self.has_object_storage.then_some(Origin::Object));
                let (name, artifact) = (file.name.clone(), file.artifact);
                reads.supplies.push(Supply { name, artifact, parts: parts.into_iter().collect(), sources });
            }
            all.push(reads);
        }
        Ok(all)
    }

    /// Who has contents.
    async fn sources(&self, contents: Vec<ContentId>) -> Result<HashMap<ContentId, Vec<Origin>>, StoreError> {
        let mut sources: HashMap<ContentId, Vec<Origin>> = HashMap::new();
        if contents.is_empty() {
            return Ok(sources);
        }
        let holders = self.store.holders(&contents).await?;
        if holders.iter().any(|h| self.address(&h.agent).is_none()) {
            self.learn_addresses().await?;
        }
        for holder in holders {
            if let Some(address) = self.address(&holder.agent) {
                let origin = Origin::Agent { name: holder.agent, address };
                sources.entry(holder.content).or_default().push(origin);
            }
        }
        Ok(sources)
    }
}

/// Values that may name something that a chain reads and does not write itself.
pub fn chain_inputs(chain: &ProcessChain) -> Vec<&Name> {
    let written: BTreeSet<&Name> =
        chain.executables.iter().flat_map(Executable::outputs).map(|o| &o.variable.value).collect();
    let is_path = |a: &Argument| {
        a.direction == Direction::Input
            && !matches!(a.data_type.as_str(), "integer" | "float" | "boolean")
            && !a.variable.value.is_empty()
    };
    let values = chain.executables.iter().flat_map(|task| {
        let arguments = task.arguments.iter().filter(|a| is_path(a)).map(|a| &a.variable.value);
        arguments.chain(Some(&task.path).filter(|p| p.contains('/')))
    });
    let mut values: Vec<&Name> = values.filter(|v| !written.contains(v)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Which of the files that are known are read, and which parts of those that are directories: none means all.
pub fn wanted_parts<'f>(
    read: &[&Name],
    known: impl Fn(&str) -> Option<&'f str>,
) -> BTreeMap<&'f str, BTreeSet<String>> {
    let mut found: BTreeMap<&str, Option<BTreeSet<String>>> = BTreeMap::new();
    for name in read {
        let path = Path::new(name.as_str());
        let Some(file) = path.ancestors().filter_map(Path::to_str).find_map(&known) else { continue };
        let rest = path.strip_prefix(file).ok().and_then(Path::to_str).unwrap_or_default();
        let parts = found.entry(file).or_insert_with(|| Some(BTreeSet::new()));
        // What a tool has put beside its output belongs to it.
        if rest.is_empty() || is_own_directory(Path::new(file)) {
            *parts = None;
        } else if let Some(parts) = parts {
            parts.insert(rest.to_owned());
        }
    }
    found.into_iter().map(|(name, parts)| (name, parts.unwrap_or_default())).collect()
}
