//! The secret that makes peers a group.

use std::fmt;
use std::path::{Path, PathBuf};

/// How long a secret must be.
const SHORTEST: usize = 16;
/// More than this is not a secret but a wrong file.
const LONGEST: u64 = 64 * 1024;
/// What the key is derived for: the same secret used elsewhere gives another key.
const CONTEXT: &str = "catena 2026-11 key of a group of peers";

/// What all peers of a group know, and nobody else.
///
/// There is no defence against guessing offline: who has talked to a peer can try secrets against what it heard. So a
/// secret should be random; 16 bytes is the least that is taken.
#[derive(Clone)]
pub struct GroupKey([u8; 32]);

impl GroupKey {
    /// The key from a secret.
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        let secret = secret.trim_ascii();
        if secret.len() < SHORTEST {
            return Err(KeyError::Short { length: secret.len() });
        }
        Ok(Self(blake3::derive_key(CONTEXT, secret)))
    }

    /// The key from a file. White space at either end does not count: editors add line ends.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |error| KeyError::Unreadable { path: path.to_owned(), error };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > LONGEST {
            return Err(KeyError::Long { path: path.to_owned(), length });
        }
        Self::from_secret(&std::fs::read(path).map_err(unreadable)?)
    }

    /// Proves knowledge of the key for one conversation.
    pub(crate) fn proof(&self, about: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.0, about)
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(..)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It could be guessed.
    #[error("the secret of the group has {length} bytes: at least {SHORTEST} are needed, random ones")]
    Short {
        /// What it has.
        length: usize,
    },
    /// It is something else.
    #[error("{} has {length} bytes: that is not the secret of a group", path.display())]
    Long {
        /// The file.
        path: PathBuf,
        /// What it has.
        length: u64,
    },
    /// The file cannot be read.
    #[error("cannot read the secret of the group from {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_secret_is_refused() {
        let error = GroupKey::from_secret(b"fifteen bytes..\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the secret of the group has 15 bytes: at least 16 are needed, random ones"
        );
    }

    #[test]
    fn a_line_end_does_not_make_another_group() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        let (file, text) = (GroupKey::from_file(&path).unwrap(), GroupKey::from_secret(b"0123456789abcdef"));
        assert_eq!(file.0, text.unwrap().0);
        assert_ne!(file.0, GroupKey::from_secret(b"0123456789abcdeg").unwrap().0);
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", GroupKey::from_secret(&[7; 32]).unwrap()), "GroupKey(..)");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = GroupKey::from_file(Path::new("/does/not/exist")).unwrap_err();
        assert!(error.to_string().contains("/does/not/exist"), "{error}");
    }
}
