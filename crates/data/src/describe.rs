//! What files and directories are, without holding them.

use crate::error::DataError;
use crate::manifest::{Entry, Manifest};
use crate::outline::Outline;
use crate::put::walk;
use catena_model::content::{Artifact, ContentId, FileRef};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file or directory of somebody else, and what it consists of.
pub struct Described {
    /// What it is.
    pub artifact: Artifact,
    /// Where its parts are. The manifest of a directory comes last.
    pub parts: Vec<(ContentId, Part)>,
}

/// Where content is that is not held.
pub enum Part {
    /// In a file.
    File(PathBuf),
    /// Here.
    Bytes(Vec<u8>),
}

/// Says what a file or a directory is. Links at its end are followed.
pub fn describe(path: &Path) -> Result<Described, DataError> {
    if fs::metadata(path).map_err(DataError::at(path))?.is_dir() {
        return describe_tree(path);
    }
    let file = describe_file(path)?;
    let parts = vec![(file.id, Part::File(path.to_path_buf()))];
    Ok(Described { artifact: Artifact::File(file), parts })
}

fn describe_file(path: &Path) -> Result<FileRef, DataError> {
    let file = File::open(path).map_err(DataError::at(path))?;
    let meta = file.metadata().map_err(DataError::at(path))?;
    if !meta.is_file() {
        return Err(DataError::Special(path.to_path_buf()));
    }
    let size = meta.len();
    let outline = Outline::of_file(&file, size).map_err(DataError::at(path))?;
    Ok(FileRef { id: outline.id(), size, executable: meta.permissions().mode() & 0o111 != 0 })
}

fn describe_tree(directory: &Path) -> Result<Described, DataError> {
    let bad = |error| DataError::Manifest { place: directory.display().to_string(), error };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    walk(directory, "", &mut entries)?;
    // Refused before anything is read.
    let mut entries = Manifest::new(entries).map_err(bad)?.into_entries();
    let mut parts = Vec::new();
    for (path, entry) in &mut entries {
        if let Entry::File(file) = entry {
            let path = directory.join(path);
            *file = describe_file(&path)?;
            parts.push((file.id, Part::File(path)));
        }
    }
    let (artifact, bytes) = Manifest::new(entries).map_err(bad)?.artifact();
    parts.push((artifact.id(), Part::Bytes(bytes)));
    Ok(Described { artifact, parts })
}
