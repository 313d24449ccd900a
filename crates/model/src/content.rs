//! What a file or a directory is: the hash of what is in it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Names content: its BLAKE3 hash. Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId([u8; 32]);

/// A text that is not the name of any content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content id has 64 lower-case hexadecimal digits")
    }
}

impl std::error::Error for NotAnId {}

impl ContentId {
    /// The id of content that is in memory.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The 32 bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for ContentId {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl From<blake3::Hash> for ContentId {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

impl FromStr for ContentId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        // One spelling only: ids are compared as text in URLs and file names too.
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(NotAnId);
        }
        blake3::Hash::from_hex(text).map(Self::from).map_err(|_| NotAnId)
    }
}

impl Serialize for ContentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A file, wherever it is and whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// What is in it.
    pub id: ContentId,
    /// How many bytes that is.
    pub size: u64,
    /// Whether it may be started as a program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// A directory with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectoryRef {
    /// The id of its manifest, which says what is in it.
    pub id: ContentId,
    /// The bytes of the manifest.
    pub size: u64,
    /// How many files are below it.
    pub files: u64,
    /// The bytes of all files together: what a transfer costs.
    pub bytes: u64,
}

/// What tasks read and write, named by content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Artifact {
    /// One file.
    File(FileRef),
    /// A directory with everything below it.
    Directory(DirectoryRef),
}

impl Artifact {
    /// The id of the file, or of the directory's manifest.
    pub const fn id(&self) -> ContentId {
        match self {
            Self::File(f) => f.id,
            Self::Directory(d) => d.id,
        }
    }

    /// How many bytes have to be moved to have it elsewhere.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::File(f) => f.size,
            Self::Directory(d) => d.bytes + d.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_in_one_way_and_read_back() {
        let id = ContentId::of(b"abc");
        assert_eq!(id.to_string(), "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "6437", &id.to_string().to_uppercase(), &format!("{id}0"), &"g".repeat(64)] {
            assert_eq!(bad.parse::<ContentId>(), Err(NotAnId), "{bad}");
        }
    }

    #[test]
    fn artifacts_are_data() {
        let id = ContentId::of(b"");
        let file = Artifact::File(FileRef { id, size: 0, executable: false });
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(text, format!("{{\"type\":\"file\",\"id\":\"{id}\",\"size\":0}}"));
        assert_eq!(serde_json::from_str::<Artifact>(&text).unwrap(), file);
    }
}
