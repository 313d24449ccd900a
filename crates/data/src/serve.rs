//! Serves what a machine holds to others.
//!
//! | request | answer |
//! |---|---|
//! | `GET`, `HEAD /data/<id>` | the object, or the range asked for; its ETag is its id |
//! | `GET /data/<id>/outline` | what its blocks must hash to |
//! | `POST /bundle` with ids of 32 bytes each | many small objects in one answer ([`Bundle`](crate::bundle)) |
//! | `POST /data/<id>/doubt` | 202; the object is hashed, and removed if it is damaged |
//!
//! Each connection has a thread, as tasks do, and the system copies files to sockets without us (`sendfile`). The
//! receiver verifies every block, so nothing is hashed here unless a file looks other than it did, or is doubted.

use crate::bundle;
use crate::error::DataError;
use crate::holdings::Holdings;
use crate::http::{LONGEST_HEAD, Method, Refusal, Request, Wanted, reason, wanted};
use catena_model::content::ContentId;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a server treats its clients.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// What clients must know to be answered.
    pub token: Option<String>,
    /// How many are served at the same time. Others are sent away.
    pub connections: usize,
    /// How long a client may take for its request, or for nothing between two.
    pub patience: Duration,
    /// The bytes per second a client must at least take, once its patience is used up.
    pub slowest: u64,
    /// Where the logs of runs are, if they are served too: `<run>/logs/<log>` below this.
    pub logs: Option<PathBuf>,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            token: None,
            connections: 128,
            patience: Duration::from_secs(20),
            slowest: 16 << 10,
            logs: None,
        }
    }
}

/// A server of what a machine holds. It ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    holdings: Holdings,
    options: ServeOptions,
    token: Option<blake3::Hash>,
    open: Mutex<HashMap<u64, TcpStream>>,
    stopping: AtomicBool,
    sent: AtomicU64,
    requests: AtomicU64,
}

impl Server {
    /// Starts to serve at an address. Port 0 is any free one.
    pub fn start(holdings: &Holdings, address: SocketAddr, options: ServeOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let token = options.token.as_ref().map(|t| blake3::hash(t.as_bytes()));
        let shared = Arc::new(Shared {
            holdings: holdings.clone(),
            options,
            token,
            open: Mutex::default(),
            stopping: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        });
        let accepting = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("data".to_owned()).spawn(move || accept(&listener, &accepting))?;
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Where it serves.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where others find it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many bytes of objects it has sent.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// How many requests it has answered.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes up whoever waits for the next connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for stream in self.shared.open.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0;
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Too many open files, perhaps; it is better later.
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        number += 1;
        let Ok(clone) = stream.try_clone() else { continue };
        {
            let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
            if open.len() >= shared.options.connections {
                let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
                let mut stream = stream;
                let _ = refuse(&mut stream, (503, "too many are served right now"));
                continue;
            }
            open.insert(number, clone);
        }
        let served = Arc::clone(shared);
        let started = thread::Builder::new().name("data-serve".to_owned()).spawn(move || {
            let mut connection = Connection { stream, shared: &served, buffer: Vec::new() };
            // A client that is gone is nobody's trouble.
            let _ = connection.serve();
            served.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        });
        if started.is_err() {
            shared.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
    }
}

struct Connection<'s> {
    stream: TcpStream,
    shared: &'s Shared,
    /// What was read and not used yet.
    buffer: Vec<u8>,
}

impl Connection<'_> {
    fn serve(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_write_timeout(Some(self.shared.options.patience))?;
        loop {
            let deadline = Instant::now() + self.shared.options.patience;
            let head = match self.head(deadline)? {
                Ok(Some(head)) => head,
                Ok(None) => return Ok(()),
                Err(refusal) => return refuse(&mut self.stream, refusal),
            };
            self.shared.requests.fetch_add(1, Ordering::Relaxed);
            let request = match Request::read(&head) {
                Ok(request) => request,
                Err(refusal) => return refuse(&mut self.stream, refusal),
            };
            let allowed = match (&self.shared.token, &request.token) {
                (None, _) => true,
                // Hashes are compared in constant time.
                (Some(token), Some(given)) => *token == blake3::hash(given.as_bytes()),
                (Some(_), None) => false,
            };
            if !allowed {
                return refuse(&mut self.stream, (401, "a token is needed here"));
            }
            if let Err(refusal) = self.answer(&request, deadline)? {
                refuse_and_go_on(&mut self.stream, refusal)?;
                // What was not read of a body would be taken for the next request.
                if request.body > 0 {
                    return Ok(());
                }
            }
            if request.close || self.shared.stopping.load(Ordering::SeqCst) {
                return Ok(());
            }
        }
    }

    /// Reads the head of the next request. `None` if the client has gone between two.
    fn head(&mut self, deadline: Instant) -> io::Result<Result<Option<Vec<u8>>, Refusal>> {
        let mut searched = 0;
        loop {
            let from = searched.min(self.buffer.len());
            let end = self.buffer[from..].windows(4).position(|w| w == b"\r\n\r\n");
            if let Some(end) = end.filter(|end| from + end <= LONGEST_HEAD) {
                let rest = self.buffer.split_off(from + end + 4);
                return Ok(Ok(Some(std::mem::replace(&mut self.buffer, rest))));
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.buffer.len() > LONGEST_HEAD {
                return Ok(Err((431, "the head of a request has at most 16 KiB")));
            }
            match self.more(deadline) {
                Ok(0) if self.buffer.is_empty() => return Ok(Ok(None)),
                Ok(0) => return Ok(Err((400, "the request is cut off"))),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::TimedOut && self.buffer.is_empty() => {
                    return Ok(Ok(None));
                }
                Err(e) if e.kind() == io::ErrorKind::TimedOut => {
                    return Ok(Err((408, "the request took too long")));
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn more(&mut self, deadline: Instant) -> io::Result<usize> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 8 << 10];
        match self.stream.read(&mut piece) {
            Ok(n) => {
                self.buffer.extend_from_slice(&piece[..n]);
                Ok(n)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Err(io::ErrorKind::TimedOut.into()),
            Err(e) => Err(e),
        }
    }

    fn body(&mut self, length: usize, deadline: Instant) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if self.more(deadline)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    fn answer(&mut self, request: &Request, deadline: Instant) -> io::Result<Result<(), Refusal>> {
        let parts: Vec<&str> = request.path.split('/').skip(1).collect();
        let id = |text: &str| text.parse::<ContentId>().ok();
        let reads = matches!(request.method, Method::Get | Method::Head);
        let unknown: Refusal = (404, "there is no such thing");
        match parts[..] {
            ["bundle"] if request.method == Method::Post => self.bundle(request, deadline),
            _ if request.body > 0 => Ok(Err((400, "a body is not expected here"))),
            ["data", text] if reads => match id(text) {
                Some(id) => self.object(&id, request),
                None => Ok(Err(unknown)),
            },
            ["data", text, "outline"] if reads => match id(text) {
                Some(id) => self.outline(&id, request.method),
                None => Ok(Err(unknown)),
            },
            ["data", text, "doubt"] if request.method == Method::Post => match id(text) {
                Some(id) if self.shared.holdings.has(&id) => {
                    self.begin(202, "", 0)?;
                    // The next request of this client waits until it is known.
                    let _ = self.shared.holdings.verify(&id);
                    Ok(Ok(()))
                }
                _ => Ok(Err(unknown)),
            },
            ["logs", run, log] if reads => self.log(run, log, request),
            ["bundle"] | ["data", ..] => Ok(Err((405, "this cannot be done with it"))),
            _ => Ok(Err(unknown)),
        }
    }

    /// Sends what there is of a log now. It may still grow.
    fn log(&mut self, run: &str, log: &str, request: &Request) -> io::Result<Result<(), Refusal>> {
        let unknown: Refusal = (404, "there is no such log");
        // Names of logs are numbers: whatever else is asked for is not ours to give.
        let is_run = !run.is_empty() && run.bytes().all(|b| b.is_ascii_digit());
        let stem = log.strip_suffix(".out").or_else(|| log.strip_suffix(".err"));
        let is_log =
            stem.is_some_and(|s| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        let Some(root) = self.shared.options.logs.as_ref().filter(|_| is_run && is_log) else {
            return Ok(Err(unknown));
        };
        let Ok(file) = File::open(root.join(run).join("logs").join(log)) else { return Ok(Err(unknown)) };
        let size = file.metadata()?.len();
        let part = match request.range.as_ref().map_or(Wanted::Whole, |r| wanted(r, size)) {
            Wanted::Whole => 0..size,
            Wanted::Part(part) => part,
            Wanted::Nothing => {
                self.begin(416, &format!("Content-Range: bytes */{size}\r\n"), 0)?;
                return Ok(Ok(()));
            }
        };
        let about = format!("Content-Range: bytes {}-{}/{size}\r\n", part.start, part.end.saturating_sub(1));
        let (status, about) = if request.range.is_some() { (206, about.as_str()) } else { (200, "") };
        self.begin(status, about, part.end - part.start)?;
        if request.method == Method::Get {
            self.send(&file, part)?;
        }
        Ok(Ok(()))
    }

    fn begin(&mut self, status: u16, headers: &str, length: u64) -> io::Result<()> {
        let text = format!(
            "HTTP/1.1 {status} {}\r\n{headers}Content-Length: {length}\r\nContent-Type: application/octet-stream\r\n\r\n",
            reason(status)
        );
        self.stream.write_all(text.as_bytes())
    }

    fn object(&mut self, id: &ContentId, request: &Request) -> io::Result<Result<(), Refusal>> {
        let (file, size) = match self.shared.holdings.open_object(id) {
            Ok(opened) => opened,
            Err(e) => return Ok(Err(refusal(&e))),
        };
        let tag = format!("\"{id}\"");
        let about = format!("ETag: {tag}\r\nAccept-Ranges: bytes\r\n");
        if request.known.as_ref().is_some_and(|k| k.split(',').any(|t| t.trim() == tag || t.trim() == "*")) {
            let text = format!("HTTP/1.1 304 {}\r\n{about}\r\n", reason(304));
            return self.stream.write_all(text.as_bytes()).map(Ok);
        }
        let range = request.range.as_ref().filter(|_| request.range_of.as_ref().is_none_or(|of| *of == tag));
        let (status, about, part) = match range.map_or(Wanted::Whole, |r| wanted(r, size)) {
            Wanted::Whole => (200, about, 0..size),
            Wanted::Part(part) => {
                let (first, last) = (part.start, part.end - 1);
                (206, format!("{about}Content-Range: bytes {first}-{last}/{size}\r\n"), part)
            }
            Wanted::Nothing => {
                self.begin(416, &format!("Content-Range: bytes */{size}\r\n"), 0)?;
                return Ok(Ok(()));
            }
        };
        self.begin(status, &about, part.end - part.start)?;
        if request.method == Method::Get {
            self.send(&file, part)?;
        }
        Ok(Ok(()))
    }

    /// Sends a part of a file without reading it.
    fn send(&mut self, file: &File, part: Range<u64>) -> io::Result<()> {
        let deadline = self.deadline(part.end - part.start);
        let mut offset = part.start;
        while offset < part.end {
            let count = (part.end - offset).min(1 << 20) as usize;
            match rustix::fs::sendfile(&self.stream, file, Some(&mut offset), count) {
                // Shorter than it was: the client must not take what comes next for the rest.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    self.shared.sent.fetch_add(n as u64, Ordering::Relaxed);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            in_time(deadline)?;
        }
        Ok(())
    }

    /// When a client must have taken so many bytes.
    fn deadline(&self, bytes: u64) -> Instant {
        let options = &self.shared.options;
        Instant::now()
            + options.patience
            + Duration::from_secs_f64(bytes as f64 / options.slowest.max(1) as f64)
    }

    fn outline(&mut self, id: &ContentId, method: Method) -> io::Result<Result<(), Refusal>> {
        let outline = match self.shared.holdings.outline(id) {
            Ok(outline) => outline,
            Err(e) => return Ok(Err(refusal(&e))),
        };
        let bytes = outline.write();
        self.begin(200, &format!("ETag: \"{id}.outline\"\r\n"), bytes.len() as u64)?;
        if method == Method::Get {
            self.stream.write_all(bytes)?;
        }
        Ok(Ok(()))
    }

    fn bundle(&mut self, request: &Request, deadline: Instant) -> io::Result<Result<(), Refusal>> {
        if request.body > bundle::LONGEST_REQUEST {
            return Ok(Err((413, "a bundle has at most 16384 objects")));
        }
        if request.expects {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = self.body(request.body as usize, deadline)?;
        let (ids, rest) = body.as_chunks::<32>();
        if !rest.is_empty() {
            return refuse_and_go_on(&mut self.stream, (400, "ids have 32 bytes")).map(Ok);
        }
        let mut found = Vec::with_capacity(ids.len());
        let mut length = 0;
        for id in ids {
            let size = self.shared.holdings.size(&ContentId::from(*id)).filter(|s| *s <= bundle::LARGEST);
            length += bundle::HEADER as u64 + size.unwrap_or(0);
            found.push((ContentId::from(*id), size));
        }
        self.begin(200, "", length)?;
        let deadline = self.deadline(length);
        let mut out = Vec::with_capacity(1 << 20);
        for (id, size) in found {
            out.extend_from_slice(&bundle::header(size));
            if let Some(size) = size {
                let (file, now) = self.shared.holdings.open_object(&id).map_err(io::Error::other)?;
                let before = out.len();
                file.take(size).read_to_end(&mut out)?;
                if now != size || (out.len() - before) as u64 != size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.shared.sent.fetch_add(size, Ordering::Relaxed);
            }
            if out.len() >= 1 << 20 {
                self.stream.write_all(&out)?;
                out.clear();
                in_time(deadline)?;
            }
        }
        self.stream.write_all(&out)?;
        Ok(Ok(()))
    }
}

fn in_time(deadline: Instant) -> io::Result<()> {
    if Instant::now() > deadline { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

fn refusal(error: &DataError) -> Refusal {
    match error {
        DataError::Missing(_) => (404, "this is not held here"),
        DataError::Corrupt(_) => (404, "this was damaged and is not held any more"),
        _ => (500, "this cannot be read"),
    }
}

/// Says why, and ends: what follows may not be what it seems.
fn refuse(stream: &mut TcpStream, refusal: Refusal) -> io::Result<()> {
    write_refusal(stream, refusal, "Connection: close\r\n")?;
    stream.shutdown(Shutdown::Write)?;
    // A socket that is closed with something unread takes the answer back.
    let deadline = Instant::now() + Duration::from_secs(1);
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut rest = [0; 4 << 10];
    while Instant::now() < deadline && stream.read(&mut rest).is_ok_and(|n| n > 0) {}
    Ok(())
}

fn refuse_and_go_on(stream: &mut TcpStream, refusal: Refusal) -> io::Result<()> {
    write_refusal(stream, refusal, "")
}

fn write_refusal(stream: &mut TcpStream, (status, why): Refusal, headers: &str) -> io::Result<()> {
    let length = why.len() + 1;
    let text = format!(
        "HTTP/1.1 {status} {}\r\n{headers}Content-Length: {length}\r\nContent-Type: text/plain\r\n\r\n{why}\n",
        reason(status)
    );
    stream.write_all(text.as_bytes())
}
