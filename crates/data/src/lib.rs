//! Files by content: what a machine holds, and how files get from one machine to another.
//!
//! - [`ContentId`] names content by its BLAKE3 hash; an [`Artifact`] is a file or a directory so named. What is in a
//!   directory says its [`Manifest`], which is content too.
//! - [`Holdings`] are what a machine has: [`put`](Holdings::put) takes files in, [`place`](Holdings::place) puts them
//!   where tasks look, [`pin`](Holdings::pin) and [`keep`](Holdings::keep) say what must stay. What is damaged is found,
//!   removed and reported.
//! - [`describe`] says what a file is without holding it.
//! - A [`Server`] gives what is held to others.
//! - A [`Depot`] is a machine among others: its holdings, its server, and how it gets what others hold;
//!   [`address_towards`] finds out what others call the machine, and [`random_hex`] makes what they must know.
//! - [`fetch`] gets what is missing from several [`Source`]s at once: [`AgentSource`], [`WebSource`], and with the
//!   feature `object` also `ObjectStorage`. Every block is checked against the [`Outline`] of its file before it counts;
//!   who gives something wrong is named in a [`Fault`] and not asked again.
//!
//! Everything blocks: agents run tasks on threads, and so do transfers. Why it is done like this is in
//! `docs/decisions/0010-data-by-content.md`.

mod address;
mod blocks;
mod bundle;
mod depot;
mod describe;
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
mod secret;
mod serve;
mod source;
mod web;
mod wire;

pub use address::address_towards;
pub use catena_model::content::{Artifact, ContentId, DirectoryRef, FileRef, NotAnId};
pub use depot::{Brought, Depot, DepotError, DepotOptions};
pub use describe::{Described, Part, describe};
pub use error::{Corruption, DataError};
pub use fetch::{Absent, FetchError, FetchOptions, Fetched, fetch, fetch_parts};
pub use holdings::{Holdings, Usage};
pub use manifest::{Entry, Manifest, ManifestError};
#[cfg(feature = "object")]
pub use object::{ObjectStorage, Remote, RemoteError};
pub use outline::{BLOCK, Outline};
pub use place::Place;
pub use put::Put;
pub use room::Pin;
pub use secret::random_hex;
pub use serve::{ServeOptions, Server};
pub use source::{Fault, FaultKind, Source, SourceError};
pub use web::{AgentSource, DownloadError, Patience, WebSource};
