//! What a machine holds: objects by content in a directory, checked, pinned, and removed when room is needed.
//!
//! ```text
//! objects/ab/cdef…   the content, read-only
//! outlines/ab/cdef…  the hash trees of large objects
//! partial/abcdef…    what has arrived of large objects, to be gone on with
//! new/               what is being written; emptied at the start
//! kept/              what is needed across restarts, by name
//! index              which objects were found whole, and how their files looked then
//! lock               held by the process that uses the directory
//! ```
//!
//! An object appears by a rename when it is whole, so a process may die at any moment. Nothing is synced: the index
//! names the boot of the machine it was written in, and after another one every object is hashed before it is used.

use crate::error::{Corruption, DataError};
use crate::index::{Index, Stamp};
use crate::manifest::{self, Manifest};
use crate::outline::{BLOCK, Outline};
use crate::room::Reservation;
use catena_model::content::{Artifact, ContentId};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_OMIT, flock};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a machine holds. Clones are the same holdings.
#[derive(Clone)]
pub struct Holdings {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) directory: PathBuf,
    pub(crate) quota: Option<u64>,
    pub(crate) state: Mutex<State>,
    /// Told when an object that was arriving is there, or is given up.
    pub(crate) arrived: Condvar,
    counter: AtomicU64,
    _lock: File,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: HashMap<ContentId, Held>,
    /// How often each object is pinned; also those that are not there (yet).
    pub(crate) pins: HashMap<ContentId, u32>,
    /// The bytes of all objects.
    pub(crate) bytes: u64,
    /// The bytes that are promised to what is arriving.
    pub(crate) reserved: u64,
    /// Large objects that somebody is fetching right now.
    pub(crate) arriving: HashSet<ContentId>,
    pub(crate) kept: HashMap<String, Vec<ContentId>>,
    corruptions: Vec<Corruption>,
    /// What is not here any more, damaged or not.
    removed: Vec<ContentId>,
    index: Option<Index>,
}

pub(crate) struct Held {
    pub(crate) size: u64,
    /// How the file looked when it was known to be whole. `None` if that is not known.
    stamp: Option<Stamp>,
    /// When it was used last, in nanoseconds since 1970.
    pub(crate) used: u64,
}

/// How much there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How many objects.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of those that are pinned.
    pub pinned: u64,
}

impl Holdings {
    /// Opens the holdings in a directory, makes them if there are none, and clears what a dead process has left.
    /// With a quota, what is not pinned and was not used for longest makes room for what is new.
    pub fn open(directory: &Path, quota: Option<u64>) -> Result<Self, DataError> {
        for part in ["objects", "outlines", "partial", "new", "kept"] {
            let path = directory.join(part);
            fs::create_dir_all(&path).map_err(DataError::at(&path))?;
        }
        let path = directory.join("lock");
        let lock = File::create(&path).map_err(DataError::at(&path))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DataError::InUse(directory.to_path_buf())),
            Err(e) => return Err(DataError::at(&path)(e.into())),
        }
        let new = directory.join("new");
        fs::remove_dir_all(&new).and_then(|()| fs::create_dir(&new)).map_err(DataError::at(&new))?;
        let path = directory.join("index");
        let known = Index::read(&path);
        let mut state = State::default();
        for (id, meta) in objects(&directory.join("objects"))? {
            let stamp = known.get(&id).copied().filter(|s| *s == Stamp::of(&meta));
            state.bytes += meta.len();
            let used = meta.atime().max(0) as u64 * 1_000_000_000 + meta.atime_nsec().max(0) as u64;
            state.objects.insert(id, Held { size: meta.len(), stamp, used });
        }
        for (id, _) in objects(&directory.join("outlines"))? {
            if !state.objects.contains_key(&id) {
                let path = directory.join("outlines").join(spread(&id));
                fs::remove_file(&path).map_err(DataError::at(&path))?;
            }
        }
        let whole = state.objects.iter().filter_map(|(id, held)| Some((id, held.stamp?)));
        state.index = Some(Index::create(&path, whole).map_err(DataError::at(&path))?);
        let shared = Shared {
            directory: directory.to_path_buf(),
            quota,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            counter: AtomicU64::new(0),
            _lock: lock,
        };
        let holdings = Self { shared: Arc::new(shared) };
        holdings.read_kept()?;
        Ok(holdings)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }

    /// Where an object is, whether it is there or not.
    pub(crate) fn object_path(&self, id: &ContentId) -> PathBuf {
        self.shared.directory.join("objects").join(spread(id))
    }

    fn outline_path(&self, id: &ContentId) -> PathBuf {
        self.shared.directory.join("outlines").join(spread(id))
    }

    /// A name for a file that is being written.
    pub(crate) fn new_path(&self) -> PathBuf {
        let number = self.shared.counter.fetch_add(1, Ordering::Relaxed);
        self.shared.directory.join("new").join(number.to_string())
    }

    /// How much there is.
    pub fn usage(&self) -> Usage {
        let state = self.state();
        let pinned = state.pins.keys().filter_map(|id| state.objects.get(id)).map(|held| held.size).sum();
        Usage { objects: state.objects.len(), bytes: state.bytes, pinned }
    }

    /// Whether an object is there, without looking at it.
    pub fn has(&self, id: &ContentId) -> bool {
        self.state().objects.contains_key(id)
    }

    /// The size of an object, if it is there.
    pub fn size(&self, id: &ContentId) -> Option<u64> {
        self.state().objects.get(id).map(|held| held.size)
    }

    /// Whether an artifact is there with everything that belongs to it, without looking at the files.
    pub fn holds(&self, artifact: &Artifact) -> bool {
        match artifact {
            Artifact::File(file) => self.has(&file.id),
            Artifact::Directory(directory) => {
                let Ok(manifest) = self.manifest(&directory.id) else { return false };
                let state = self.state();
                manifest.files().all(|(_, file)| state.objects.contains_key(&file.id))
            }
        }
    }

    /// What belongs to an artifact: the ids of all objects.
    pub(crate) fn parts(&self, artifact: &Artifact) -> Result<Vec<ContentId>, DataError> {
        match artifact {
            Artifact::File(file) => Ok(vec![file.id]),
            Artifact::Directory(directory) => {
                let manifest = self.manifest(&directory.id)?;
                Ok(std::iter::once(directory.id).chain(manifest.files().map(|(_, f)| f.id)).collect())
            }
        }
    }

    /// The manifest of a directory that is held.
    pub fn manifest(&self, id: &ContentId) -> Result<Manifest, DataError> {
        let (mut file, size) = self.open_object(id)?;
        let place = id.to_string();
        let bad = |error| DataError::Manifest { place: place.clone(), error };
        if size > manifest::LONGEST {
            return Err(bad(manifest::ManifestError::Malformed("it is too long")));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        file.read_to_end(&mut bytes).map_err(DataError::at(&self.object_path(id)))?;
        Manifest::read(&bytes).map_err(bad)
    }

    /// Opens an object for reading, and says how long it is. A file that does not look as it did is hashed first, and
    /// removed if it is damaged.
    pub fn open_object(&self, id: &ContentId) -> Result<(File, u64), DataError> {
        self.use_object(id)?;
        let path = self.object_path(id);
        let file = File::open(&path).map_err(|e| self.lost(id, e))?;
        let size = file.metadata().map_err(DataError::at(&path))?.len();
        Ok((file, size))
    }

    /// Makes sure that an object is there and looks as it did, and notes that it was used.
    pub(crate) fn use_object(&self, id: &ContentId) -> Result<(), DataError> {
        let path = self.object_path(id);
        let used = now();
        let stamp = {
            let mut state = self.state();
            let held = state.objects.get_mut(id).ok_or(DataError::Missing(*id))?;
            held.used = used;
            held.stamp
        };
        let meta = fs::symlink_metadata(&path).map_err(|e| self.lost(id, e))?;
        if stamp != Some(Stamp::of(&meta)) {
            self.verify(id)?;
        }
        // Says after a restart what was used when. It is no loss if it cannot be said.
        let at = Timespec { tv_sec: (used / 1_000_000_000) as i64, tv_nsec: (used % 1_000_000_000) as i64 };
        let times =
            Timestamps { last_access: at, last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT } };
        let _ = rustix::fs::utimensat(rustix::fs::CWD, &path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    /// Hashes an object. If it is not what its name says, it is removed, remembered among the
    /// [corruptions](Self::take_corruptions), and the error says so.
    pub fn verify(&self, id: &ContentId) -> Result<(), DataError> {
        let path = self.object_path(id);
        if !self.has(id) {
            return Err(DataError::Missing(*id));
        }
        let file = File::open(&path).map_err(|e| self.lost(id, e))?;
        let meta = file.metadata().map_err(DataError::at(&path))?;
        let stamp = Stamp::of(&meta);
        let size = self.state().objects.get(id).ok_or(DataError::Missing(*id))?.size;
        let what = match Outline::of_file(&file, meta.len()) {
            Ok(outline) if outline.id() == *id => {
                let after = file.metadata().map_err(DataError::at(&path))?;
                if Stamp::of(&after) != stamp {
                    return Err(DataError::Changed(path));
                }
                self.state().note(id, stamp);
                return Ok(());
            }
            Ok(_) if size == meta.len() => "its content has changed".to_owned(),
            Ok(_) => format!("it has {} bytes, and had {size}", meta.len()),
            Err(e) => format!("it cannot be read: {e}"),
        };
        Err(self.condemn(id, what))
    }

    /// Hashes everything; what is damaged is removed and returned.
    pub fn verify_all(&self) -> Result<Vec<Corruption>, DataError> {
        let ids: Vec<ContentId> = self.state().objects.keys().copied().collect();
        let mut found = Vec::new();
        for id in ids {
            match self.verify(&id) {
                Err(DataError::Corrupt(corruption)) => found.push(corruption),
                Ok(()) | Err(DataError::Missing(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(found)
    }

    /// What was found damaged since the last call, so that others can be told that it is not here any more.
    pub fn take_corruptions(&self) -> Vec<Corruption> {
        std::mem::take(&mut self.state().corruptions)
    }

    /// What was removed since the last call, for whatever reason.
    pub fn take_removed(&self) -> Vec<ContentId> {
        std::mem::take(&mut self.state().removed)
    }

    /// Everything that is held, and whether it is kept.
    pub fn contents(&self) -> Vec<(ContentId, bool)> {
        let state = self.state();
        let kept: HashSet<&ContentId> = state.kept.values().flatten().collect();
        state.objects.keys().map(|id| (*id, kept.contains(id))).collect()
    }

    /// Removes an object. Nobody has to know whether it was pinned: this is for what is wrong or unwanted.
    pub fn remove(&self, id: &ContentId) -> Result<(), DataError> {
        self.shared.remove(&mut self.state(), id)
    }

    /// The outline of an object; made anew if it is not there or wrong.
    pub fn outline(&self, id: &ContentId) -> Result<Outline, DataError> {
        let (file, size) = self.open_object(id)?;
        if size <= BLOCK {
            return Ok(Outline::of_small(*id, size));
        }
        let kept = fs::read(self.outline_path(id)).ok();
        if let Some(outline) = kept.and_then(|bytes| Outline::read(*id, size, &bytes)) {
            return Ok(outline);
        }
        let outline = Outline::of_file(&file, size).map_err(DataError::at(&self.object_path(id)))?;
        if outline.id() != *id {
            return Err(self.condemn(id, "its content has changed".to_owned()));
        }
        self.write_outline(&outline)?;
        Ok(outline)
    }

    fn write_outline(&self, outline: &Outline) -> Result<(), DataError> {
        if outline.size() <= BLOCK {
            return Ok(());
        }
        let path = self.outline_path(&outline.id());
        let new = Unfinished(self.new_path());
        fs::write(&new.0, outline.write()).map_err(DataError::io(&path, outline.size()))?;
        rename(&new.0, &path).map_err(DataError::io(&path, outline.size()))
    }

    /// Takes in a file that is whole and hashed, by renaming it to its place.
    pub(crate) fn admit(
        &self,
        file: &Path,
        outline: &Outline,
        room: &mut Reservation,
    ) -> Result<(), DataError> {
        let id = outline.id();
        let path = self.object_path(&id);
        let fail = || DataError::io(&path, outline.size());
        fs::set_permissions(file, Permissions::from_mode(0o444)).map_err(fail())?;
        self.write_outline(outline)?;
        let mut state = self.state();
        if state.objects.contains_key(&id) {
            return fs::remove_file(file).map_err(fail());
        }
        rename(file, &path).map_err(fail())?;
        let meta = fs::symlink_metadata(&path).map_err(fail())?;
        room.spend(&mut state);
        state.bytes += meta.len();
        state.objects.insert(id, Held { size: meta.len(), stamp: None, used: now() });
        state.note(&id, Stamp::of(&meta));
        Ok(())
    }

    /// Somebody has removed an object from under us.
    fn lost(&self, id: &ContentId, error: io::Error) -> DataError {
        if error.kind() == io::ErrorKind::NotFound {
            return self.condemn(id, "its file is gone".to_owned());
        }
        DataError::at(&self.object_path(id))(error)
    }

    fn condemn(&self, id: &ContentId, what: String) -> DataError {
        let corruption = Corruption { id: *id, what };
        let mut state = self.state();
        // Whoever has found it first has reported it.
        if state.objects.contains_key(id) {
            if let Err(e) = self.shared.remove(&mut state, id) {
                return e;
            }
            state.corruptions.push(corruption.clone());
        }
        corruption.into()
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remove(&self, state: &mut State, id: &ContentId) -> Result<(), DataError> {
        for part in ["objects", "outlines"] {
            let path = self.directory.join(part).join(spread(id));
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(DataError::at(&path)(e)),
                _ => {}
            }
        }
        if let Some(held) = state.objects.remove(id) {
            state.bytes -= held.size;
            state.removed.push(*id);
        }
        Ok(())
    }
}

impl State {
    /// Remembers that an object was found whole.
    fn note(&mut self, id: &ContentId, stamp: Stamp) {
        let Some(held) = self.objects.get_mut(id) else { return };
        held.stamp = Some(stamp);
        if let Some(index) = &mut self.index {
            // What is not in the index is hashed again after a restart.
            let _ = index.add(id, stamp);
        }
    }
}

/// A file that is removed unless it has got a name elsewhere.
pub(crate) struct Unfinished(pub(crate) PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Where an object is among others: a directory has only so many files.
fn spread(id: &ContentId) -> PathBuf {
    let hex = id.to_string();
    Path::new(&hex[..2]).join(&hex[2..])
}

/// Renames a file to a place among spread ones.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(to.parent().unwrap_or(to))?;
            fs::rename(from, to)
        }
        other => other,
    }
}

/// Everything with the name of an id below a directory.
fn objects(directory: &Path) -> Result<Vec<(ContentId, fs::Metadata)>, DataError> {
    let mut found = Vec::new();
    let list = |path: &Path| -> Result<Vec<fs::DirEntry>, DataError> {
        fs::read_dir(path).and_then(Iterator::collect).map_err(DataError::at(path))
    };
    for group in list(directory)? {
        for entry in list(&group.path())? {
            let name =
                format!("{}{}", group.file_name().to_string_lossy(), entry.file_name().to_string_lossy());
            let meta = entry.metadata().map_err(DataError::at(&entry.path()))?;
            if let (Ok(id), true) = (name.parse(), meta.is_file()) {
                found.push((id, meta));
            }
        }
    }
    Ok(found)
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}
