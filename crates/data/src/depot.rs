//! A machine among others: what it holds, where it serves it, and how it gets what others hold.

use crate::error::DataError;
use crate::fetch::{Absent, FetchError, FetchOptions, fetch_parts};
use crate::holdings::Holdings;
#[cfg(feature = "object")]
use crate::object::{ObjectStorage, Remote, RemoteError};
use crate::place::Place;
use crate::room::Pin;
use crate::secret::random_hex;
use crate::serve::{ServeOptions, Server};
use crate::source::{Fault, FaultKind, Source};
use crate::web::{AgentSource, DownloadError, Patience, WebSource};
use catena_model::Name;
use catena_model::chain::{DataAddress, Origin, Supply, Unsupplied};
use catena_model::content::{Artifact, ContentId};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// What a depot is made of.
#[derive(Clone, Debug)]
pub struct DepotOptions {
    /// Where its files are. No other depot may use it.
    pub directory: PathBuf,
    /// Where it serves them. Port 0 is any free one.
    pub listen: SocketAddr,
    /// What others call this machine, a name or an address; where it listens if nothing is said.
    pub host: Option<String>,
    /// It holds at most so many bytes.
    pub quota: Option<u64>,
    /// The object storage that all machines share: `s3://bucket/prefix` or `file:///directory`.
    pub object: Option<String>,
    /// Where the logs of runs are, if it serves these too.
    pub logs: Option<PathBuf>,
}

/// Why there is no depot.
#[derive(Debug, Error)]
pub enum DepotError {
    /// Its files cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// It cannot serve them.
    #[error("files cannot be served at {address}: {error}")]
    Serve {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The object storage cannot be used.
    #[cfg(feature = "object")]
    #[error(transparent)]
    Object(#[from] RemoteError),
    /// This program knows no object storage.
    #[cfg(not(feature = "object"))]
    #[error("{0} cannot be used: this program was built without the feature `object`")]
    NoObject(String),
}

/// A machine that holds files, serves them, and gets others.
pub struct Depot {
    holdings: Holdings,
    server: Server,
    address: DataAddress,
    sources: Mutex<HashMap<DataAddress, Arc<dyn Source>>>,
    #[cfg(feature = "object")]
    object: Option<Arc<ObjectStorage>>,
}

/// Something that was brought here.
pub struct Brought {
    /// Keeps it from being removed.
    pub pin: Pin,
    /// What was not here before.
    pub new: Vec<ContentId>,
    /// How many bytes have come from others.
    pub bytes: u64,
    /// What others did wrong on the way.
    pub faults: Vec<Fault>,
    /// Who was believed to have it and has not, or not all of it, or something else.
    pub gone: Vec<(Name, ContentId)>,
}

impl Depot {
    /// Opens the depot and begins to serve.
    pub fn open(options: &DepotOptions) -> Result<Self, DepotError> {
        let holdings = Holdings::open(&options.directory, options.quota)?;
        let failed = |error| DepotError::Serve { address: options.listen, error };
        let token = random_hex(16).map_err(failed)?;
        let serve = ServeOptions {
            token: Some(token.clone()),
            logs: options.logs.clone(),
            ..ServeOptions::default()
        };
        let server = Server::start(&holdings, options.listen, serve).map_err(failed)?;
        let port = server.address().port();
        let url = match &options.host {
            Some(host) if host.contains(':') => format!("http://[{host}]:{port}"),
            Some(host) => format!("http://{host}:{port}"),
            None if options.listen.ip().is_unspecified() => format!("http://127.0.0.1:{port}"),
            None => server.url(),
        };
        let address = DataAddress { url: url.into(), token: token.into() };
        #[cfg(not(feature = "object"))]
        if let Some(url) = &options.object {
            return Err(DepotError::NoObject(url.clone()));
        }
        #[cfg(feature = "object")]
        let object =
            options.object.as_ref().map(|url| ObjectStorage::open(url, &[])).transpose()?.map(Arc::new);
        Ok(Self {
            holdings,
            server,
            address,
            sources: Mutex::default(),
            #[cfg(feature = "object")]
            object,
        })
    }

    /// What it holds.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// Where others find it.
    pub fn address(&self) -> &DataAddress {
        &self.address
    }

    /// How many bytes it has sent to others.
    pub fn sent(&self) -> u64 {
        self.server.sent()
    }

    /// Whether all machines share an object storage.
    pub fn has_object_storage(&self) -> bool {
        #[cfg(feature = "object")]
        return self.object.is_some();
        #[cfg(not(feature = "object"))]
        false
    }

    /// Puts something that is held here to the object storage, if there is one.
    pub fn export(&self, artifact: &Artifact) -> Result<(), String> {
        #[cfg(feature = "object")]
        if let Some(object) = &self.object {
            return object.put(&self.holdings, artifact).map_err(|e| e.to_string());
        }
        let _ = artifact;
        Ok(())
    }

    /// Gets what a chain reads, from wherever it can be had.
    pub fn bring(&self, supply: &Supply) -> Result<Brought, Unsupplied> {
        let names: HashMap<&str, &Name> = supply
            .sources
            .iter()
            .filter_map(|origin| match origin {
                Origin::Agent { name, address } => Some((address.url.as_str(), name)),
                Origin::Object => None,
            })
            .collect();
        let gone = |absent: BTreeSet<Absent>, faults: &[Fault]| -> Vec<(Name, ContentId)> {
            // Who lacks a part of something does not have it.
            let lied = faults.iter().filter(|f| f.kind == FaultKind::Lied).map(|f| f.source.clone());
            let liars: BTreeSet<String> = absent.into_iter().map(|(source, _)| source).chain(lied).collect();
            let named = liars.iter().filter_map(|source| names.get(source.as_str()));
            named.map(|name| ((*name).clone(), supply.artifact.id())).collect()
        };
        let was_here = self.holdings.has(&supply.artifact.id());
        let wanted = |path: &str| supply.parts.is_empty() || supply.parts.iter().any(|p| p == path);
        let sources = self.sources(&supply.sources);
        let fetched =
            fetch_parts(&self.holdings, &supply.artifact, wanted, &sources, FetchOptions::default());
        match fetched {
            Ok(fetched) => Ok(Brought {
                pin: fetched.pin,
                // Only what is here as a whole can be had from here.
                new: Vec::from_iter((!was_here && supply.parts.is_empty()).then_some(supply.artifact.id())),
                bytes: fetched.bytes.values().sum(),
                gone: gone(fetched.absent, &fetched.faults),
                faults: fetched.faults,
            }),
            Err(FetchError::Data(error)) => {
                let no_room = matches!(error, DataError::DiskFull { .. } | DataError::NoRoom { .. });
                let help =
                    no_room.then(|| "free some space, or let the agent hold more (storage.quota)".to_owned());
                let message = format!("its input {} cannot be brought here: {error}", supply.name);
                Err(Unsupplied { message, help, gone: Vec::new(), no_room })
            }
            Err(FetchError::Nowhere { id, sources, faults, absent }) => {
                let gone = gone(absent, &faults);
                let why = FetchError::Nowhere { id, sources, faults, absent: BTreeSet::new() };
                let message = format!("its input {} cannot be brought here: {why}", supply.name);
                Err(Unsupplied { message, gone, ..Unsupplied::default() })
            }
        }
    }

    /// Puts what was brought here where tasks will look for it. Nothing may be there yet.
    pub fn place(&self, supply: &Supply, destination: &Path) -> Result<(), DataError> {
        let Artifact::Directory(directory) = &supply.artifact else {
            return self.holdings.place(&supply.artifact, destination, Place::Shared);
        };
        if supply.parts.is_empty() {
            return self.holdings.place(&supply.artifact, destination, Place::Shared);
        }
        // The manifest was checked: none of its paths leads out of the directory.
        let manifest = self.holdings.manifest(&directory.id)?;
        for (path, file) in manifest.files().filter(|(path, _)| supply.parts.iter().any(|p| p == path)) {
            self.holdings.place(&Artifact::File(*file), &destination.join(path), Place::Shared)?;
        }
        Ok(())
    }

    /// Takes a file in from the web, as it is now.
    pub fn download(&self, url: &str) -> Result<(Artifact, Pin), DownloadError> {
        let (file, pin) = WebSource::new(url, Patience::default()).download(&self.holdings)?;
        Ok((Artifact::File(file), pin))
    }

    /// Those who can be asked. Connections to them are used again.
    fn sources(&self, origins: &[Origin]) -> Vec<Arc<dyn Source>> {
        let mut known = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MOST_SOURCES {
            known.clear();
        }
        let mut sources: Vec<Arc<dyn Source>> = Vec::new();
        for origin in origins {
            match origin {
                Origin::Agent { address, .. } if *address == self.address => {}
                Origin::Agent { address, .. } => {
                    let source = known.entry(address.clone()).or_insert_with(|| {
                        Arc::new(AgentSource::new(&address.url, Some(&address.token), Patience::default()))
                    });
                    sources.push(Arc::clone(source));
                }
                Origin::Object => {
                    #[cfg(feature = "object")]
                    sources.extend(self.object.iter().map(|o| Arc::clone(o) as Arc<dyn Source>));
                }
            }
        }
        sources
    }
}

/// How many others are remembered.
const MOST_SOURCES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_colons_stands_in_brackets_before_the_port() {
        let directory = tempfile::tempdir().unwrap();
        let options = DepotOptions {
            directory: directory.path().to_path_buf(),
            listen: ([127, 0, 0, 1], 0).into(),
            host: Some("::1".to_owned()),
            quota: None,
            object: None,
            logs: None,
        };
        let depot = Depot::open(&options).unwrap();
        let port = depot.server.address().port();
        assert_eq!(depot.address().url, format!("http://[::1]:{port}"));
    }
}
