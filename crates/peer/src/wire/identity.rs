//! Who a peer is: a key pair in a file.

use libp2p_identity::{Keypair, PeerId, ed25519};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const TITLE: &str = "catena identity 1";
/// An identity has about 200 bytes.
const LONGEST: u64 = 4096;

/// The key pair of a peer. Its public half is its name.
#[derive(Clone)]
pub struct Identity(Keypair);

impl Identity {
    /// One that is kept nowhere: for who only asks.
    pub fn fleeting() -> Self {
        Self(Keypair::generate_ed25519())
    }

    /// The identity in a file, which is made if there is none.
    pub fn at(path: &Path) -> Result<Self, IdentityError> {
        match File::open(path) {
            Ok(file) => Self::read(path, file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path),
            Err(error) => Err(IdentityError::Unreadable { path: path.to_owned(), error }),
        }
    }

    /// Its name.
    pub fn id(&self) -> PeerId {
        self.0.public().to_peer_id()
    }

    pub(crate) fn pair(&self) -> &Keypair {
        &self.0
    }

    fn read(path: &Path, file: File) -> Result<Self, IdentityError> {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => corrupt(path, "it is not text"),
            _ => IdentityError::Unreadable { path: path.to_owned(), error },
        })?;
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(corrupt(path, "it does not start with “catena identity 1”"));
        }
        let (name, pair) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let mut pair = from_hex(pair).ok_or_else(|| corrupt(path, "the key is not in hexadecimal"))?;
        let pair = ed25519::Keypair::try_from_bytes(&mut pair)
            .map_err(|_| corrupt(path, "the key is not a pair of Ed25519 keys"))?;
        let identity = Self(pair.into());
        if identity.id().to_string() != name {
            return Err(corrupt(path, "the key is not that of the peer it names"));
        }
        Ok(identity)
    }

    /// A second process that does the same at the same time gets the same identity: who links first wins.
    fn create(path: &Path) -> Result<Self, IdentityError> {
        let failed = |error| IdentityError::Unwritable { path: path.to_owned(), error };
        let pair = ed25519::Keypair::generate();
        let identity = Self(pair.clone().into());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".new.{}", std::process::id()));
        let new = PathBuf::from(new);
        let _ = fs::remove_file(&new);
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).and_then(|mut f| {
                writeln!(f, "{TITLE}\n{}\n{}", identity.id(), to_hex(&pair.to_bytes()))?;
                f.sync_all()
            });
        let linked = written.and_then(|()| fs::hard_link(&new, path));
        let _ = fs::remove_file(&new);
        match linked {
            Ok(()) => Ok(identity),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::at(path),
            Err(error) => Err(failed(error)),
        }
    }
}

fn corrupt(path: &Path, why: &'static str) -> IdentityError {
    IdentityError::Corrupt { path: path.to_owned(), why }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |d: u8| char::from(d).to_digit(16).map(|d| d as u8);
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It is there but cannot be read.
    #[error("cannot read the identity of this peer from {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot be made.
    #[error("cannot write an identity for this peer to {}: {error}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is damaged. It is not replaced: others know this peer by it.
    #[error("{} is not the identity of a peer: {why}. Restore it, or remove it to become another peer", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn it_is_made_once_and_for_nobody_else_to_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("peer/identity");
        let first = Identity::at(&path).unwrap().id();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Identity::at(&path).unwrap().id(), first);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_one_is_told_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("identity");
        Identity::at(&path).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        let other = Identity::fleeting().id().to_string();
        let name = good.lines().nth(1).unwrap().to_owned();
        for (bad, why) in [
            (String::new(), "does not start with"),
            (good[..good.len() - 9].to_owned(), "not a pair"),
            (good.replace(&name, &other), "not that of the peer it names"),
            (good.replace(char::is_numeric, "x").replace("identity x", "identity 1"), "hexadecimal"),
        ] {
            fs::write(&path, &bad).unwrap();
            let error = Identity::at(&path).err().unwrap().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Identity::at(&path).err().unwrap().to_string().contains("not text"));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let error = Identity::at(directory.path()).err().unwrap().to_string();
        assert!(error.contains("cannot read the identity"), "{error}");
    }
}
