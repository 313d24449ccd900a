//! What can go wrong with a store, in words that say what to do.

use std::path::PathBuf;
use thiserror::Error;

/// A store cannot do what it was asked to.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Made by a newer version.
    #[error(
        "{path} was made by a newer version of Catena (format {found}, this one knows {known}); nothing was changed. Use the newer version, or another directory with --state"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// Not a store at all.
    #[error(
        "{path} is not a Catena store; nothing was changed. Move it away, or use another directory with --state"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Damaged.
    #[error(
        "{path} is damaged ({detail}); nothing was changed. Keep a copy for recovery, then move it away: results that are still on disk will be made again"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
    /// Not writable.
    #[error(
        "{path} cannot be written ({detail}); make the directory writable, or use another one with --state"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What the system says.
        detail: String,
    },
    /// No space left.
    #[error(
        "there is no space left for {path}; free some space and run the same command again, it goes on where it stopped"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process has locked it for too long.
    #[error("{path} is in use by another process")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Cannot be reached, or not now.
    #[error("the store {store} cannot be reached: {detail}")]
    Unavailable {
        /// The store.
        store: String,
        /// What went wrong.
        detail: String,
    },
    /// Another instance has taken over what was to be changed.
    #[error("another instance has taken over {what}")]
    TakenOver {
        /// What.
        what: String,
    },
    /// Anything else the database says.
    #[error("the store {path} failed: {detail}")]
    Other {
        /// The file.
        path: PathBuf,
        /// What the database says.
        detail: String,
    },
}

impl StoreError {
    /// Whether trying again later can help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Busy { .. })
    }

    /// Sorts a database error into the kinds a user can do something about.
    pub(crate) fn from_sqlite(path: &std::path::Path, e: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        let path = path.to_path_buf();
        let detail = e.to_string();
        match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => Self::Corrupt { path, detail },
            Some(ErrorCode::NotADatabase) => Self::Foreign { path },
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::ReadOnly { path, detail }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            _ => Self::Other { path, detail },
        }
    }
}
