//! Sources that speak HTTP: other agents, and files anywhere on the web.

use crate::bundle;
use crate::error::DataError;
use crate::holdings::Holdings;
use crate::outline::{Outline, PIECE};
use crate::room::Pin;
use crate::source::{FaultKind, Source, SourceError};
use crate::wire::{self, Wire};
use catena_model::content::{ContentId, FileRef};
use std::io::{self, Read};
use std::ops::Range;
use std::time::Duration;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

/// How long sources may keep us waiting.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a connection, and between two pieces of an answer.
    pub stall: Duration,
    /// The bytes per second a source must at least give, once it has stalled for that long in all.
    pub slowest: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { stall: Duration::from_secs(10), slowest: 16 << 10 }
    }
}

impl Patience {
    /// How long so many bytes may take.
    fn limit(&self, bytes: u64) -> Duration {
        self.stall + Duration::from_secs_f64(bytes as f64 / self.slowest.max(1) as f64)
    }

    fn agent(&self, redirects: u32) -> Agent {
        Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(self.stall))
            .timeout_recv_response(Some(self.stall))
            .timeout_per_read(Some(self.stall))
            .timeout_per_write(Some(self.stall))
            .max_redirects(redirects)
            .accept_encoding("identity")
            .input_buffer_size(PIECE)
            .max_idle_connections_per_host(8)
            .build()
            .into()
    }
}

/// Another agent, which knows content by its id.
pub struct AgentSource {
    url: String,
    token: Option<String>,
    patience: Patience,
    client: Agent,
    /// For large objects, unless they are encrypted on the way.
    wire: Option<Wire>,
}

impl AgentSource {
    /// The agent that serves at a URL, asked with a token.
    pub fn new(url: &str, token: Option<&str>, patience: Patience) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        // A token that is not plain must not become a header of its own.
        let plain = token.is_none_or(|t| t.bytes().all(|b| b.is_ascii_graphic()));
        let wire = Wire::new(&url, patience.stall).filter(|_| plain);
        // An agent that sends us elsewhere is not one.
        Self { url, token: token.map(str::to_owned), patience, client: patience.agent(0), wire }
    }

    /// A part of a log that the agent has, less if there is no more, and how long the log is if there is some. `None` if
    /// there is no such log.
    pub fn log(&self, run: i64, log: &str, part: Range<u64>) -> Result<Option<(Vec<u8>, u64)>, SourceError> {
        let size = part.end - part.start;
        match self.get(&format!("/logs/{run}/{log}"), Some(&part), size) {
            Ok(response) => {
                let about = response.headers().get(header::CONTENT_RANGE).and_then(|h| h.to_str().ok());
                let whole = about.and_then(|h| h.rsplit('/').next()?.parse().ok()).unwrap_or(0);
                let mut content = Vec::new();
                response.into_body().into_reader().take(size).read_to_end(&mut content)?;
                Ok(Some((content, whole)))
            }
            // It ends before the part begins.
            Err(SourceError::WholeOnly) => Ok(Some((Vec::new(), 0))),
            Err(SourceError::Missing) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn get(
        &self,
        path: &str,
        range: Option<&Range<u64>>,
        expected: u64,
    ) -> Result<Response<Body>, SourceError> {
        let mut request = self.client.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(range) = range {
            request = request.header(header::RANGE, bytes(range));
        }
        let limit = self.patience.limit(expected);
        let sent = request.config().timeout_recv_body(Some(limit)).build().call();
        usable(sent)
    }

    fn post(&self, path: &str, body: &[u8], limit: Duration) -> Result<Response<Body>, SourceError> {
        let mut request = self.client.post(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        usable(request.config().timeout_recv_body(Some(limit)).build().send(body))
    }
}

fn bytes(range: &Range<u64>) -> String {
    format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
}

/// An answer that may have what was asked for.
fn usable(sent: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, SourceError> {
    let response = sent.map_err(|e| SourceError::from(plain(e.into_io())))?;
    match wire::refused(response.status().as_u16()) {
        None => Ok(response),
        Some(error) => Err(error),
    }
}

fn lied(what: String) -> SourceError {
    SourceError::Failed(FaultKind::Lied, what)
}

/// Makes sure that an answer is about the part that was asked for, of something with the right size.
fn check_part(
    status: u16,
    range: Option<&str>,
    length: Option<u64>,
    part: &Range<u64>,
    size: u64,
) -> Result<(), SourceError> {
    if status == 206 {
        let said = range.unwrap_or("nothing");
        let expected = format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1));
        if said != expected {
            return Err(lied(format!("it was asked for {expected} and gave {said}")));
        }
        return Ok(());
    }
    if *part != (0..size) {
        return Err(SourceError::WholeOnly);
    }
    match length {
        Some(length) if length != size => Err(lied(format!("it has {length} bytes in place of {size}"))),
        _ => Ok(()),
    }
}

fn check_response(response: &Response<Body>, part: &Range<u64>, size: u64) -> Result<(), SourceError> {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|v| v.to_str().ok());
    check_part(response.status().as_u16(), range, response.body().content_length(), part, size)
}

/// Reads an answer. One byte more than expected may be read, to find out that there is one.
fn reader(response: Response<Body>, limit: u64) -> Box<dyn Read + Send> {
    Box::new(Answer(response.into_body().into_with_config().limit(limit + 1).reader()))
}

struct Answer<R>(R);

impl<R: Read> Read for Answer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(plain)
    }
}

/// Says of which kind an error is, where the client has wrapped it.
fn plain(error: io::Error) -> io::Error {
    let wrapped = error.get_ref().and_then(|e| e.downcast_ref::<ureq::Error>());
    match wrapped {
        Some(ureq::Error::Timeout(why)) => {
            io::Error::new(io::ErrorKind::TimedOut, format!("nothing came ({why})"))
        }
        _ => error,
    }
}

impl Source for AgentSource {
    fn name(&self) -> &str {
        &self.url
    }

    fn open(
        &self,
        id: &ContentId,
        part: Range<u64>,
        size: u64,
    ) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let expected = part.end - part.start;
        if let Some(wire) = &self.wire {
            let token = self.token.as_ref().map(|t| format!("Authorization: Bearer {t}\r\n"));
            let headers = format!("Range: {}\r\n{}", bytes(&part), token.unwrap_or_default());
            let answer = wire.get(&format!("/data/{id}"), &headers, self.patience.limit(expected))?;
            if let Some(error) = wire::refused(answer.status) {
                return Err(error);
            }
            check_part(answer.status, answer.range.as_deref(), Some(answer.length), &part, size)?;
            if answer.length != expected {
                return Err(lied(format!("it gave {} bytes in place of {expected}", answer.length)));
            }
            return Ok(Box::new(answer));
        }
        let response = self.get(&format!("/data/{id}"), Some(&part), expected)?;
        check_response(&response, &part, size)?;
        Ok(reader(response, expected))
    }

    fn outline(&self, id: &ContentId, size: u64) -> Result<Option<Vec<u8>>, SourceError> {
        let expected = Outline::len(size).unwrap_or(0);
        let response = self.get(&format!("/data/{id}/outline"), None, expected)?;
        let mut bytes = Vec::new();
        reader(response, expected).take(expected + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn bundle(&self, ids: &[ContentId]) -> Result<Option<Box<dyn Read + Send + '_>>, SourceError> {
        let body: Vec<u8> = ids.iter().flat_map(ContentId::as_bytes).copied().collect();
        let most = ids.len() as u64 * (bundle::HEADER as u64 + bundle::LARGEST);
        let response = self.post("/bundle", &body, self.patience.limit(most))?;
        Ok(Some(reader(response, most)))
    }

    fn doubt(&self, id: &ContentId) {
        let _ = self.post(&format!("/data/{id}/doubt"), &[], self.patience.stall);
    }
}

/// A file at a URL, whatever it is. Its content is the same for everybody who asks, one hopes.
pub struct WebSource {
    url: String,
    patience: Patience,
    client: Agent,
}

impl WebSource {
    /// The file at a URL.
    pub fn new(url: &str, patience: Patience) -> Self {
        Self { url: url.to_owned(), patience, client: patience.agent(10) }
    }

    /// Takes the file into the holdings as it is now. For files whose content nobody knows yet.
    pub fn download(&self, holdings: &Holdings) -> Result<(FileRef, Pin), DownloadError> {
        let failed = |why: String| DownloadError::Source { url: self.url.clone(), why };
        let response = match usable(self.client.get(&self.url).call()) {
            Ok(response) => response,
            Err(SourceError::Missing) => return Err(failed("there is nothing".to_owned())),
            Err(SourceError::WholeOnly) => return Err(failed("it gave a part".to_owned())),
            Err(SourceError::Failed(_, why)) => return Err(failed(why)),
        };
        let length = response.body().content_length();
        let mut body = Told { inner: response.into_body().into_reader(), error: None };
        let put = holdings.put_stream(&mut body, length.unwrap_or(0));
        match body.error {
            Some(why) => Err(failed(why)),
            None => Ok(put?),
        }
    }
}

/// Remembers that reading has failed, so that it is not taken for a failure to write.
struct Told<R> {
    inner: R,
    error: Option<String>,
}

impl<R: Read> Read for Told<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|e| {
            if e.kind() != io::ErrorKind::Interrupted {
                self.error = Some(e.to_string());
            }
        })
    }
}

/// Why a file could not be had from the web.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The server is to blame.
    #[error("{url} cannot be fetched: {why}")]
    Source {
        /// What was asked for.
        url: String,
        /// What happened.
        why: String,
    },
    /// It could not be held here.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Source for WebSource {
    fn name(&self) -> &str {
        &self.url
    }

    fn open(
        &self,
        _: &ContentId,
        part: Range<u64>,
        size: u64,
    ) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let expected = part.end - part.start;
        let mut request = self.client.get(&self.url);
        if part != (0..size) {
            request = request.header(header::RANGE, bytes(&part));
        }
        let limit = self.patience.limit(expected);
        let response = usable(request.config().timeout_recv_body(Some(limit)).build().call())?;
        check_response(&response, &part, size)?;
        Ok(reader(response, expected))
    }
}
