//! Files by content: what a machine holds, and how files get from one machine to another.

mod blocks;
mod bundle;
mod content;
mod error;
mod fetch;
mod holdings;
mod http;
mod index;
mod manifest;
#[cfg(feature = "object")]
mod object;
mod outline;
mod place;
mod put;
mod room;
mod serve;
mod source;
mod web;

pub use content::{Artifact, ContentId, DirectoryRef, FileRef, NotAnId};
pub use error::{Corruption, DataError};
pub use fetch::{FetchError, FetchOptions, Fetched, fetch};
pub use holdings::{Holdings, Usage};
pub use manifest::{Entry, Manifest, ManifestError};
#[cfg(feature = "object")]
pub use object::{ObjectStorage, Remote, RemoteError};
pub use outline::{BLOCK, Outline};
pub use place::Place;
pub use put::Put;
pub use room::Pin;
pub use serve::{ServeOptions, Server};
pub use source::{Fault, FaultKind, Source, SourceError};
pub use web::{AgentSource, DownloadError, Patience, WebSource};
