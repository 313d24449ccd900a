//! Where content can be had from.

use catena_model::content::ContentId;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

/// Somebody who has content: another agent, a web server, an object storage.
///
/// Nobody is trusted. Whatever comes from a source is hashed before it is used, so a source need not check anything.
pub trait Source: Send + Sync {
    /// What it is called when something is wrong with it.
    fn name(&self) -> &str;

    /// Reads a part of an object of some size.
    fn open(
        &self,
        id: &ContentId,
        part: Range<u64>,
        size: u64,
    ) -> Result<Box<dyn Read + Send + '_>, SourceError>;

    /// What the blocks of a large object must hash to, if the source can tell.
    fn outline(&self, id: &ContentId, size: u64) -> Result<Option<Vec<u8>>, SourceError> {
        let _ = (id, size);
        Ok(None)
    }

    /// Reads many small objects, framed, if the source can give them in one answer.
    fn bundle(&self, ids: &[ContentId]) -> Result<Option<Box<dyn Read + Send + '_>>, SourceError> {
        let _ = ids;
        Ok(None)
    }

    /// Tells the source that what it gave was wrong, so that it may look at what it has.
    fn doubt(&self, id: &ContentId) {
        let _ = id;
    }
}

/// Why a source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// It does not have it. That is no fault.
    Missing,
    /// It cannot give a part of something.
    WholeOnly,
    /// Something else.
    Failed(FaultKind, String),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it does not have it"),
            Self::WholeOnly => f.write_str("it cannot give a part of it"),
            Self::Failed(_, what) => f.write_str(what),
        }
    }
}

impl From<io::Error> for SourceError {
    fn from(error: io::Error) -> Self {
        Self::Failed(FaultKind::of(&error), error.to_string())
    }
}

/// What kind of trouble somebody made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Could not be reached, or refused.
    Unavailable,
    /// Sent nothing for too long, or too little.
    Stalled,
    /// Ended before everything was sent.
    CutOff,
    /// Gave something else than was asked for: other bytes, another size.
    Lied,
}

impl FaultKind {
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Stalled,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::CutOff
            }
            _ => Self::Unavailable,
        }
    }
}

/// Something that a source did wrong while it was asked for content. What it gave was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the source.
    pub source: String,
    /// What it was asked for.
    pub id: ContentId,
    /// What kind of trouble it was.
    pub kind: FaultKind,
    /// What happened.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FaultKind::Unavailable => "could not be used",
            FaultKind::Stalled => "stalled",
            FaultKind::CutOff => "broke off",
            FaultKind::Lied => "gave something else",
        };
        write!(f, "{} {kind}: {}", self.source, self.what)
    }
}
