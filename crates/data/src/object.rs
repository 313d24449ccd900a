//! Object storage: content by id in a bucket of S3 or something like it, or in a directory.
//!
//! ```text
//! <prefix>/objects/ab/abcdef…    content
//! <prefix>/outlines/ab/abcdef…   the outlines of large objects, written before them
//! ```
//!
//! A manifest is written when everything it names is there. What is read is verified like what comes from agents.

use crate::error::DataError;
use crate::holdings::Holdings;
use crate::outline::BLOCK;
use crate::source::{FaultKind, Source, SourceError};
use async_trait::async_trait;
use catena_model::content::{Artifact, ContentId};
use http_body_util::BodyExt;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ClientOptions, Error, ObjectStore, ObjectStoreExt, PutPayload};
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How much is sent or asked for at a time.
const PART: u64 = 16 * BLOCK;

/// A place that content can be put to, beside being read from.
pub trait Remote: Source {
    /// Puts an artifact that is held here there, with everything that belongs to it. What is there is not sent again.
    fn put(&self, holdings: &Holdings, artifact: &Artifact) -> Result<(), RemoteError>;
}

/// Why something could not be put to object storage.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It is not here.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The storage has refused it.
    #[error("{storage}: {error}")]
    Storage {
        /// Where.
        storage: String,
        /// What it said.
        error: Error,
    },
    /// A URL that names no storage.
    #[error("{0} is no object storage: it begins with s3:// or file://")]
    Url(String),
}

/// A bucket, or a directory that stands for one.
pub struct ObjectStorage {
    name: String,
    prefix: Path,
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
}

impl ObjectStorage {
    /// The storage at `s3://bucket/prefix` or `file:///directory`. Options are those of S3 by their usual names
    /// (`endpoint`, `region`, `access_key_id`, `allow_http` …); the environment is looked at first.
    pub fn open(url: &str, options: &[(&str, &str)]) -> Result<Self, RemoteError> {
        let failed = |error| RemoteError::Storage { storage: url.to_owned(), error };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|e| failed(Error::Generic { store: "tokio", source: e.into() }))?;
        let (store, prefix): (Arc<dyn ObjectStore>, &str) = if let Some(place) = url.strip_prefix("s3://") {
            let mut builder = AmazonS3Builder::from_env().with_http_connector(Connector);
            for (name, value) in options {
                builder = builder.with_config(name.parse().map_err(failed)?, *value);
            }
            let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
            (Arc::new(builder.with_bucket_name(bucket).build().map_err(failed)?), prefix)
        } else if let Some(directory) = url.strip_prefix("file://") {
            (Arc::new(LocalFileSystem::new_with_prefix(directory).map_err(failed)?), "")
        } else {
            return Err(RemoteError::Url(url.to_owned()));
        };
        let prefix = Path::parse(prefix).map_err(|e| failed(e.into()))?;
        Ok(Self { name: url.to_owned(), prefix, store, runtime })
    }

    fn path(&self, kind: &str, id: &ContentId) -> Path {
        let hex = id.to_string();
        self.prefix.clone().join(kind).join(&hex[..2]).join(hex.as_str())
    }

    fn put_object(&self, holdings: &Holdings, id: &ContentId) -> Result<(), RemoteError> {
        let failed = |error| RemoteError::Storage { storage: self.name.clone(), error };
        let (file, size) = holdings.open_object(id)?;
        let path = self.path("objects", id);
        match self.runtime.block_on(self.store.head(&path)) {
            Ok(found) if found.size == size => return Ok(()),
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(e) => return Err(failed(e)),
        }
        if size > BLOCK {
            let outline = PutPayload::from(holdings.outline(id)?.write().to_vec());
            self.runtime.block_on(self.store.put(&self.path("outlines", id), outline)).map_err(failed)?;
        }
        let mut parts = Parts { file, left: size };
        let unreadable = |e: io::Error| Error::Generic { store: "holdings", source: e.into() };
        let sent = self.runtime.block_on(async {
            if size <= PART {
                let content = parts.next().unwrap_or_else(|| Ok(Vec::new())).map_err(unreadable)?;
                return self.store.put(&path, content.into()).await.map(|_| ());
            }
            let mut upload = self.store.put_multipart(&path).await?;
            for part in &mut parts {
                let sent = match part {
                    Ok(bytes) => upload.put_part(bytes.into()).await,
                    Err(e) => Err(unreadable(e)),
                };
                if let Err(e) = sent {
                    let _ = upload.abort().await;
                    return Err(e);
                }
            }
            upload.complete().await.map(|_| ())
        });
        sent.map_err(failed)
    }

    fn get(&self, path: &Path, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        self.runtime.block_on(self.store.get_range(path, range)).map(Into::into).map_err(|e| trouble(&e))
    }
}

fn trouble(error: &Error) -> SourceError {
    match error {
        Error::NotFound { .. } => SourceError::Missing,
        other => SourceError::Failed(FaultKind::Unavailable, other.to_string()),
    }
}

/// A file in parts.
struct Parts {
    file: File,
    left: u64,
}

impl Iterator for Parts {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let mut part = vec![0; self.left.min(PART) as usize];
        self.left -= part.len() as u64;
        Some(self.file.read_exact(&mut part).map(|()| part))
    }
}

impl Remote for ObjectStorage {
    fn put(&self, holdings: &Holdings, artifact: &Artifact) -> Result<(), RemoteError> {
        let _pin = holdings.pin(artifact)?;
        // The manifest comes first of the parts, and is written last.
        for id in holdings.parts(artifact)?.iter().rev() {
            self.put_object(holdings, id)?;
        }
        Ok(())
    }
}

impl Source for ObjectStorage {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(
        &self,
        id: &ContentId,
        part: Range<u64>,
        _: u64,
    ) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let mut reader =
            Reader { storage: self, path: self.path("objects", id), part, now: Cursor::default() };
        // Whether it is there at all is said at once.
        if reader.part.is_empty() {
            self.runtime.block_on(self.store.head(&reader.path)).map_err(|e| trouble(&e))?;
        } else {
            reader.more()?;
        }
        Ok(Box::new(reader))
    }

    fn outline(&self, id: &ContentId, _: u64) -> Result<Option<Vec<u8>>, SourceError> {
        let got =
            self.runtime.block_on(async { self.store.get(&self.path("outlines", id)).await?.bytes().await });
        match got {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(trouble(&e)),
        }
    }
}

/// Reads an object part by part.
struct Reader<'r> {
    storage: &'r ObjectStorage,
    path: Path,
    /// What was not asked for yet.
    part: Range<u64>,
    now: Cursor<Vec<u8>>,
}

impl Reader<'_> {
    fn more(&mut self) -> Result<(), SourceError> {
        let end = self.part.end.min(self.part.start + PART);
        let bytes = self.storage.get(&self.path, self.part.start..end)?;
        if bytes.len() as u64 != end - self.part.start {
            let what = format!("it gave {} bytes in place of {}", bytes.len(), end - self.part.start);
            return Err(SourceError::Failed(FaultKind::CutOff, what));
        }
        self.part.start = end;
        self.now = Cursor::new(bytes);
        Ok(())
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.now.position() == self.now.get_ref().len() as u64 && !self.part.is_empty() {
            self.more().map_err(|e| io::Error::other(format!("{e:?}")))?;
        }
        self.now.read(buffer)
    }
}

/// The client that everything else here uses too, in place of a second one with its own encryption.
#[derive(Debug)]
struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let wait = Some(Duration::from_secs(30));
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(wait)
            .timeout_per_read(wait)
            .timeout_per_write(wait)
            .timeout_recv_response(wait)
            .allow_non_standard_methods(true)
            .build();
        Ok(HttpClient::new(Client(config.into())))
    }
}

#[derive(Clone)]
struct Client(ureq::Agent);

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes().to_vec();
        let client = self.0.clone();
        let done = tokio::task::spawn_blocking(move || {
            let request = ureq::http::Request::from_parts(head, body);
            let response = client.run(request).map_err(|e| (kind(&e), e.into_io()))?;
            let (head, mut body) = response.into_parts();
            let bytes = body.with_config().limit(2 * PART).read_to_vec();
            let bytes = bytes.map_err(|e| (HttpErrorKind::Interrupted, e.into_io()))?;
            Ok(HttpResponse::from_parts(head, HttpResponseBody::from(bytes)))
        });
        let done = done.await.map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        done.map_err(|(kind, e)| HttpError::new(kind, e))
    }
}

fn kind(error: &ureq::Error) -> HttpErrorKind {
    match error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => HttpErrorKind::Connect,
        _ => HttpErrorKind::Request,
    }
}
