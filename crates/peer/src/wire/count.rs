//! How much was said.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Messages sent and received, since the start. Bytes are those of the messages themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were written to a connection.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Messages that came.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Messages that were never written: no address, no connection, or too many waiting.
    pub dropped: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
    dropped: AtomicU64,
}

impl Tally {
    pub(crate) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn dropped(&self, messages: usize) {
        self.dropped.fetch_add(messages as u64, Relaxed);
    }

    pub(crate) fn read(&self) -> Counts {
        Counts {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
        }
    }
}
