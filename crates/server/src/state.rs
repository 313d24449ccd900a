//! The directory in which an embedded instance keeps everything.

use catena_model::chain::{RunContext, RunId};
use catena_store::{SqliteOptions, SqliteStore, StoreError};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The state directory cannot be used.
#[derive(Debug, Error)]
pub enum StateError {
    /// Another process owns it.
    #[error(
        "another catena is working in {path} ({owner}); wait for it, stop it with `catena cancel`, or use another directory with --state"
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who it is.
        owner: String,
    },
    /// It cannot be made or written.
    #[error(
        "the directory {path} cannot be used: {error}; make it writable, or use another one with --state"
    )]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// There is none.
    #[error(
        "there is no run here yet: {path} does not exist; start one with `catena run`, or name the directory with --state"
    )]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// The store in it cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A state directory. While it is owned, no other instance works in it.
pub struct StateDirectory {
    path: PathBuf,
    lock: Option<File>,
}

impl StateDirectory {
    /// Takes the directory for this process alone, and makes it if there is none.
    pub fn own(path: &Path, purpose: &str) -> Result<Self, StateError> {
        let unusable = |error| StateError::Unusable { path: path.to_path_buf(), error };
        std::fs::create_dir_all(path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let unusable = |error| StateError::Unusable { path: path.clone(), error };
        let mut lock = File::options()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(unusable)?;
        if let Err(e) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            if e != rustix::io::Errno::WOULDBLOCK {
                return Err(unusable(e.into()));
            }
            let mut owner = String::new();
            let _ = lock.read_to_string(&mut owner);
            return Err(StateError::InUse { path, owner: owner.trim().to_owned() });
        }
        let note = format!("process {}, {purpose}\n", std::process::id());
        let written =
            lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| lock.write_all(note.as_bytes()));
        written.map_err(unusable)?;
        Ok(Self { path, lock: Some(lock) })
    }

    /// Looks into a directory that another process may own.
    pub fn look(path: &Path) -> Result<Self, StateError> {
        if !path.join("catena.db").is_file() {
            return Err(StateError::Missing { path: path.to_path_buf() });
        }
        let path =
            path.canonicalize().map_err(|error| StateError::Unusable { path: path.to_path_buf(), error })?;
        Ok(Self { path, lock: None })
    }

    /// Whether a process works in the directory now.
    pub fn is_owned_by_another(&self) -> bool {
        self.lock.is_none()
            && File::open(self.path.join("lock"))
                .is_ok_and(|f| flock(&f, FlockOperation::NonBlockingLockShared).is_err())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the store.
    pub fn store(&self) -> Result<SqliteStore, StateError> {
        let options = SqliteOptions { read_only: self.lock.is_none() };
        Ok(SqliteStore::open(&self.path.join("catena.db"), options)?)
    }

    /// The file of the result cache.
    pub fn cache_file(&self) -> PathBuf {
        self.path.join("cache.db")
    }

    /// Where a run keeps its files.
    pub fn run_directory(&self, run: RunId) -> PathBuf {
        self.path.join("runs").join(run.to_string())
    }

    /// The places of a run.
    pub fn context(&self, run: RunId, workflow: &Path, directory: &Path, out: &Path) -> RunContext {
        let base = self.run_directory(run);
        RunContext {
            run,
            workflow: workflow.to_string_lossy().into_owned(),
            directory: directory.to_path_buf(),
            tmp: base.join("data"),
            out: out.join(run.to_string()),
            work: base.join("work"),
            logs: base.join("logs"),
            state: self.path.clone(),
        }
    }
}
