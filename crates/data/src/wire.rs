//! Reads parts of objects from agents straight from the socket into the buffer they are hashed in. A general client
//! copies once more, which costs as much as the hash.

use crate::http::LONGEST_HEAD;
use crate::source::{FaultKind, SourceError};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections to an agent that are used again.
pub(crate) struct Wire {
    /// Host and port.
    place: String,
    stall: Duration,
    idle: Mutex<Vec<TcpStream>>,
}

/// An answer whose head was read.
pub(crate) struct Answer<'w> {
    wire: &'w Wire,
    stream: Option<TcpStream>,
    pub(crate) status: u16,
    pub(crate) range: Option<String>,
    pub(crate) length: u64,
    left: u64,
    /// What was read together with the head, last first.
    early: Vec<u8>,
    deadline: Instant,
}

impl Wire {
    /// Connections to an agent at a plain `http://host:port`. Others are not for us.
    pub(crate) fn new(url: &str, stall: Duration) -> Option<Self> {
        let place = url.strip_prefix("http://").filter(|p| !p.contains(['/', '@', '?', '#']))?;
        let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let place = if has_port { place.to_owned() } else { format!("{place}:80") };
        Some(Self { place, stall, idle: Mutex::default() })
    }

    /// Asks for a path. The answer must be there within a time.
    pub(crate) fn get(&self, path: &str, headers: &str, limit: Duration) -> Result<Answer<'_>, SourceError> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.place);
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        // The agent may have ended a connection that nobody used.
        if let Some(stream) = idle
            && let Ok(answer) = self.ask(stream, &request, limit)
        {
            return Ok(answer);
        }
        Ok(self.ask(self.connect()?, &request, limit)?)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in self.place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.stall) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(self.stall))?;
                    stream.set_write_timeout(Some(self.stall))?;
                    return Ok(stream);
                }
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    fn ask(&self, mut stream: TcpStream, request: &str, limit: Duration) -> io::Result<Answer<'_>> {
        let deadline = Instant::now() + limit;
        stream.write_all(request.as_bytes())?;
        let mut head = Vec::new();
        let end = loop {
            let searched = head.len().saturating_sub(3);
            let mut piece = [0; 1 << 10];
            let n = stream.read(&mut piece)?;
            in_time(deadline)?;
            head.extend_from_slice(&piece[..n]);
            if let Some(end) = head[searched..].windows(4).position(|w| w == b"\r\n\r\n") {
                break searched + end + 4;
            }
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if head.len() > LONGEST_HEAD {
                return Err(malformed());
            }
        };
        let early: Vec<u8> = head.drain(end..).rev().collect();
        let text = std::str::from_utf8(&head).map_err(|_| malformed())?;
        let mut lines = text.trim_end().split("\r\n");
        let status = lines.next().and_then(|l| l.strip_prefix("HTTP/1.1 ")).and_then(|l| l.get(..3));
        let status = status.and_then(|s| s.parse().ok()).ok_or_else(malformed)?;
        let (mut range, mut length) = (None, None);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(malformed)?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" if length.is_none() => length = value.trim().parse().ok(),
                "content-range" => range = Some(value.trim().to_owned()),
                "content-length" | "transfer-encoding" => return Err(malformed()),
                _ => {}
            }
        }
        let length = length.ok_or_else(malformed)?;
        if early.len() as u64 > length {
            return Err(malformed());
        }
        Ok(Answer { wire: self, stream: Some(stream), status, range, length, left: length, early, deadline })
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is malformed")
}

fn in_time(deadline: Instant) -> io::Result<()> {
    if Instant::now() > deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "it is too slow"));
    }
    Ok(())
}

impl Read for Answer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let Some(stream) = self.stream.as_mut().filter(|_| most > 0) else { return Ok(0) };
        let n = if self.early.is_empty() {
            stream.read(&mut buffer[..most])?
        } else {
            let n = most.min(self.early.len());
            let start = self.early.len() - n;
            for (to, from) in buffer.iter_mut().zip(self.early.drain(start..).rev()) {
                *to = from;
            }
            n
        };
        in_time(self.deadline)?;
        self.left -= n as u64;
        Ok(n)
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // What was not read would be taken for the next answer.
        if let Some(stream) = self.stream.take().filter(|_| self.left == 0) {
            self.wire.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        }
    }
}

/// Why an answer with this status has not what was asked for.
pub(crate) fn refused(status: u16) -> Option<SourceError> {
    match status {
        200 | 202 | 206 => None,
        404 | 410 => Some(SourceError::Missing),
        416 => Some(SourceError::WholeOnly),
        status => Some(SourceError::Failed(FaultKind::Unavailable, format!("it answered {status}"))),
    }
}
