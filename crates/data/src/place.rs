//! How files leave the holdings for where tasks read them.

use crate::error::DataError;
use crate::holdings::Holdings;
use crate::manifest::Entry;
use crate::put::duplicate;
use catena_model::content::{Artifact, FileRef};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What a placed file is to those who find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The object itself where the file system allows it, read-only: no space, no time, one page cache.
    Shared,
    /// A file of its own that may be written to.
    Own,
}

impl Holdings {
    /// Puts an artifact where somebody will look for it. It appears there when it is whole; nothing may be there yet.
    pub fn place(&self, artifact: &Artifact, destination: &Path, how: Place) -> Result<(), DataError> {
        let _pin = self.pin(artifact)?;
        if fs::symlink_metadata(destination).is_ok() {
            return Err(DataError::at(destination)(io::ErrorKind::AlreadyExists.into()));
        }
        if let Some(parent) = destination.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(DataError::at(parent))?;
        }
        let directory = match artifact {
            Artifact::File(file) => {
                let beside = Beside::new(destination);
                self.place_file(file, &beside.path, how)?;
                return beside.publish(destination);
            }
            Artifact::Directory(directory) => directory,
        };
        let manifest = self.manifest(&directory.id)?;
        let beside = Beside::new(destination);
        let make = |path: &Path| fs::create_dir_all(path).map_err(DataError::io(path, directory.bytes));
        make(&beside.path)?;
        let mut last = PathBuf::new();
        for (path, entry) in manifest.entries() {
            let path = beside.path.join(path);
            match entry {
                Entry::Empty => make(&path)?,
                Entry::File(file) => {
                    let parent = path.parent().unwrap_or(&path);
                    if parent != last {
                        make(parent)?;
                        parent.clone_into(&mut last);
                    }
                    self.place_file(file, &path, how)?;
                }
                Entry::Link(_) => {}
            }
        }
        // Links come last: whatever a manifest says, nothing is ever written through one.
        for (path, entry) in manifest.entries() {
            if let Entry::Link(target) = entry {
                let path = beside.path.join(path);
                make(path.parent().unwrap_or(&path))?;
                symlink(target, &path).map_err(DataError::io(&path, 0))?;
            }
        }
        beside.publish(destination)
    }

    fn place_file(&self, file: &FileRef, to: &Path, how: Place) -> Result<(), DataError> {
        self.use_object(&file.id)?;
        let object = self.object_path(&file.id);
        // A hard link has one mode for all, and objects are not executable.
        if how == Place::Shared && !file.executable && fs::hard_link(&object, to).is_ok() {
            return Ok(());
        }
        let mode = match (how, file.executable) {
            (Place::Shared, false) => 0o444,
            (Place::Shared, true) => 0o555,
            (Place::Own, false) => 0o644,
            (Place::Own, true) => 0o755,
        };
        let source = File::open(&object).map_err(DataError::at(&object))?;
        let size = source.metadata().map_err(DataError::at(&object))?.len();
        self.with_space(size, || duplicate(&source, to, size, mode).map_err(DataError::io(to, size)))?;
        Ok(())
    }
}

/// Something that is being made beside its destination, and is removed if it is not finished.
struct Beside {
    path: PathBuf,
}

impl Beside {
    fn new(destination: &Path) -> Self {
        let name = destination.file_name().unwrap_or_default().to_string_lossy();
        let short: String = name.chars().take(40).collect();
        let unique = format!("{:?}", std::thread::current().id());
        let number: String = unique.chars().filter(char::is_ascii_digit).collect();
        let mark = format!(".{short}.catena-{}-{number}-{}", std::process::id(), crate::holdings::now());
        Self { path: destination.with_file_name(mark) }
    }

    fn publish(self, destination: &Path) -> Result<(), DataError> {
        fs::rename(&self.path, destination).map_err(DataError::at(destination))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|m| m.is_dir()) {
            let _ = fs::remove_dir_all(&self.path);
        } else {
            let _ = fs::remove_file(&self.path);
        }
    }
}
