//! Room: what may be removed, what may not, and what happens when there is none.

use crate::error::DataError;
use crate::holdings::{Holdings, Shared, State, Unfinished};
use catena_model::content::{Artifact, ContentId};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::sync::Arc;

/// While this exists, some objects are not removed to make room.
#[must_use = "objects are pinned as long as this exists"]
pub struct Pin {
    shared: Arc<Shared>,
    ids: Vec<ContentId>,
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        for id in &self.ids {
            state.unpin(id);
        }
    }
}

impl Pin {
    /// Pins what another pin pins too.
    pub fn add(&mut self, mut other: Self) {
        self.ids.append(&mut other.ids);
    }
}

impl State {
    fn pin(&mut self, ids: &[ContentId]) {
        for id in ids {
            *self.pins.entry(*id).or_default() += 1;
        }
    }

    fn unpin(&mut self, id: &ContentId) {
        if let Some(count) = self.pins.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(id);
            }
        }
    }
}

/// Bytes that are promised to something that is arriving.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Reservation {
    /// What was promised has become an object, in the same moment.
    pub(crate) fn spend(&mut self, state: &mut State) {
        state.reserved -= std::mem::take(&mut self.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shared.state().reserved -= self.bytes;
        }
    }
}

/// What is needed across restarts.
#[derive(Serialize, Deserialize)]
struct Kept {
    name: String,
    ids: Vec<ContentId>,
}

impl Holdings {
    /// Makes sure that an artifact that is held stays until the pin is dropped.
    pub fn pin(&self, artifact: &Artifact) -> Result<Pin, DataError> {
        let mut pin = self.pin_ids(vec![artifact.id()]);
        pin.add(self.pin_ids(self.parts(artifact)?));
        Ok(pin)
    }

    /// Pins objects, whether they are there or not.
    pub(crate) fn pin_ids(&self, ids: Vec<ContentId>) -> Pin {
        self.state().pin(&ids);
        Pin { shared: Arc::clone(&self.shared), ids }
    }

    /// Makes sure that an artifact stays until its name is [released](Self::release), also after a restart.
    pub fn keep(&self, name: &str, artifact: &Artifact) -> Result<(), DataError> {
        let _pin = self.pin(artifact)?;
        let ids = self.parts(artifact)?;
        let path = self.kept_path(name);
        let kept = Kept { name: name.to_owned(), ids };
        let text = serde_json::to_string(&kept).map_err(|e| DataError::at(&path)(e.into()))?;
        let new = Unfinished(self.new_path());
        fs::write(&new.0, text).and_then(|()| fs::rename(&new.0, &path)).map_err(DataError::at(&path))?;
        let mut state = self.state();
        state.pin(&kept.ids);
        state.release(name);
        state.kept.insert(kept.name, kept.ids);
        Ok(())
    }

    /// Ends that something is kept. Says whether it was.
    pub fn release(&self, name: &str) -> Result<bool, DataError> {
        let path = self.kept_path(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(DataError::at(&path)(e)),
            _ => Ok(self.state().release(name)),
        }
    }

    /// The names of what is kept.
    pub fn kept(&self) -> Vec<String> {
        self.state().kept.keys().cloned().collect()
    }

    fn kept_path(&self, name: &str) -> std::path::PathBuf {
        // Names are other people's; hashes are always good names of files.
        self.shared.directory.join("kept").join(ContentId::of(name.as_bytes()).to_string())
    }

    pub(crate) fn read_kept(&self) -> Result<(), DataError> {
        let directory = self.shared.directory.join("kept");
        for entry in fs::read_dir(&directory).map_err(DataError::at(&directory))? {
            let path = entry.map_err(DataError::at(&directory))?.path();
            let text = fs::read_to_string(&path).map_err(DataError::at(&path))?;
            // After a crash of the machine it may be empty; whoever wants something kept says so again.
            if let Ok(kept) = serde_json::from_str::<Kept>(&text) {
                let mut state = self.state();
                state.pin(&kept.ids);
                state.kept.insert(kept.name, kept.ids);
            }
        }
        Ok(())
    }

    /// Promises room for something that is about to arrive, and makes it.
    pub(crate) fn reserve(&self, needed: u64) -> Result<Reservation, DataError> {
        let mut state = self.state();
        if let Some(quota) = self.shared.quota {
            let over =
                |state: &State| (state.bytes + state.reserved).saturating_add(needed).saturating_sub(quota);
            if over(&state) > 0 {
                // A little more than is needed, so that not everything new has to look for the oldest.
                self.shared.remove_partials(&state)?;
                let wanted = over(&state).saturating_add(quota / 20);
                self.shared.evict(&mut state, wanted)?;
            }
            if over(&state) > 0 {
                let in_use = state.bytes + state.reserved;
                return Err(DataError::NoRoom { needed, quota, in_use });
            }
        }
        state.reserved = state.reserved.saturating_add(needed);
        Ok(Reservation { shared: Arc::clone(&self.shared), bytes: needed })
    }

    /// Does something that writes; if the disk is full, removes what nobody needs and tries once more.
    pub(crate) fn with_space<T>(
        &self,
        needed: u64,
        mut write: impl FnMut() -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match write() {
            Err(DataError::DiskFull { .. }) if self.free(needed)? > 0 => write(),
            other => other,
        }
    }

    /// Removes what is not pinned, those first that were not used for longest, until so many bytes are free. Says how
    /// many it were.
    pub fn free(&self, wanted: u64) -> Result<u64, DataError> {
        let mut state = self.state();
        let freed = self.shared.remove_partials(&state)?;
        Ok(freed + self.shared.evict(&mut state, wanted.saturating_sub(freed))?)
    }
}

impl Shared {
    fn evict(&self, state: &mut State, wanted: u64) -> Result<u64, DataError> {
        let mut freed = 0;
        let unpinned = state.objects.iter().filter(|(id, _)| !state.pins.contains_key(*id));
        let mut candidates: Vec<(u64, ContentId, u64)> =
            unpinned.map(|(id, h)| (h.used, *id, h.size)).collect();
        candidates.sort_unstable();
        for (_, id, size) in candidates {
            if freed >= wanted {
                break;
            }
            self.remove(state, &id)?;
            freed += size;
        }
        Ok(freed)
    }

    /// What nobody is fetching any more can be fetched again.
    fn remove_partials(&self, state: &State) -> Result<u64, DataError> {
        let directory = self.directory.join("partial");
        let mut freed = 0;
        for entry in fs::read_dir(&directory).map_err(DataError::at(&directory))? {
            let entry = entry.map_err(DataError::at(&directory))?;
            let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if id.is_none_or(|id| !state.arriving.contains(&id)) {
                freed += entry.metadata().map_or(0, |m| m.len());
                fs::remove_file(entry.path()).map_err(DataError::at(&entry.path()))?;
            }
        }
        Ok(freed)
    }
}

impl State {
    fn release(&mut self, name: &str) -> bool {
        let Some(ids) = self.kept.remove(name) else { return false };
        for id in &ids {
            self.unpin(id);
        }
        true
    }
}
