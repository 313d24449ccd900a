//! What is at the paths that a run names, who made it, and who has it.

use crate::matter::Item;
use catena_model::Name;
use catena_model::chain::{Origin, Produced, Supply};
use catena_model::content::Artifact;
use catena_server::wanted_parts;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::Path;

/// Files and directories by the paths that they would have, did all machines share one file system.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    files: BTreeMap<Name, (Artifact, u32)>,
    holders: HashMap<u32, Vec<Origin>>,
}

impl Catalogue {
    /// Adds what a task has written.
    pub(crate) fn add<'p>(
        &mut self,
        of: u32,
        produced: impl IntoIterator<Item = &'p Produced>,
        holders: &[Origin],
    ) {
        self.files.extend(produced.into_iter().map(|p| (p.name.clone(), (p.artifact, of))));
        self.holders.insert(of, holders.to_vec());
    }

    /// What is read, if these paths are.
    pub(crate) fn reads(&self, paths: &[&Name]) -> Vec<Item> {
        let known = |path: &str| self.files.get_key_value(path).map(|(name, _)| name.as_str());
        let wanted = wanted_parts(paths, known);
        wanted.into_iter().filter_map(|(name, parts)| self.item(name, parts.into_iter().collect())).collect()
    }

    /// Everything below a path.
    pub(crate) fn below(&self, path: &Path) -> Vec<Item> {
        let prefix = format!("{}/", path.display());
        let from = (Bound::Excluded(Name::new(&prefix)), Bound::Unbounded);
        let names = self.files.range(from).map(|(name, _)| name).take_while(|n| n.starts_with(&prefix));
        names.filter_map(|name| self.item(name, Vec::new())).collect()
    }

    fn item(&self, name: &str, parts: Vec<String>) -> Option<Item> {
        let (artifact, of) = self.files.get(name)?;
        let sources = self.holders.get(of).cloned().unwrap_or_default();
        Some(Item { of: *of, supply: Supply { name: name.into(), artifact: *artifact, parts, sources } })
    }
}
