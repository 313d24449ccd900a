//! What can go wrong with files, said so that somebody can do something about it.

use crate::manifest::ManifestError;
use catena_model::content::ContentId;
use std::io;
use std::path::{Path, PathBuf};

/// Why something could not be held, placed or fetched.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The system refused something.
    #[error("{}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is no space left, and nothing that could be removed to make some.
    #[error("the disk is full: {} needs {needed} bytes, and nothing unneeded is left to remove", path.display())]
    DiskFull {
        /// Where space is missing.
        path: PathBuf,
        /// How much was asked for.
        needed: u64,
    },
    /// The quota does not allow more.
    #[error(
        "no room: {needed} bytes do not fit into the quota of {quota} bytes, {in_use} of which are in use"
    )]
    NoRoom {
        /// How much was asked for.
        needed: u64,
        /// How much there may be.
        quota: u64,
        /// How much is pinned or just arriving.
        in_use: u64,
    },
    /// It is not held here.
    #[error("{0} is not held here")]
    Missing(ContentId),
    /// It was held, but is damaged. It has been removed.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// A file was written to while it was read.
    #[error("{} was changed while it was read", .0.display())]
    Changed(PathBuf),
    /// Something that is neither file, directory nor link.
    #[error("{} is neither a file, a directory nor a link", .0.display())]
    Special(PathBuf),
    /// A name that other machines could not write.
    #[error("{} has a name that is not UTF-8", .0.display())]
    Name(PathBuf),
    /// A directory that must not be made, or cannot be moved.
    #[error("{place}: {error}")]
    Manifest {
        /// The directory, or the id of its manifest.
        place: String,
        /// What is wrong with it.
        error: ManifestError,
    },
    /// Another process has the directory.
    #[error("{} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A directory that is described in another way than its manifest says.
    #[error("{0} is not what it was said to be: {1}")]
    Misdescribed(ContentId, String),
}

/// An object that is not any more what its name says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} was damaged on disk ({what}) and has been removed")]
pub struct Corruption {
    /// What it should have been.
    pub id: ContentId,
    /// What was found.
    pub what: String,
}

impl DataError {
    /// Says where the system refused something. No space is an error of its own.
    pub(crate) fn io(path: &Path, needed: u64) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let path = path.to_path_buf();
            if error.kind() == io::ErrorKind::StorageFull {
                Self::DiskFull { path, needed }
            } else {
                Self::Io { path, error }
            }
        }
    }

    /// An error at a place where space is not the question.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(path, 0)
    }
}
