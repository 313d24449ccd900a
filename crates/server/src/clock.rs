//! Wall-clock time that a change of a machine's clock cannot turn back.

use catena_store::{Members, StoreError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that was set once and then measures time by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    wall: i64,
}

impl Clock {
    /// Set by this machine's clock.
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        Self { start: Instant::now(), wall }
    }

    /// Set by the clock of a store, which all instances share.
    pub(crate) async fn of<S: Members + ?Sized>(store: &S) -> Result<Self, StoreError> {
        let before = Instant::now();
        let wall = store.now().await?;
        // The answer was true somewhere between question and answer.
        Ok(Self { start: before + before.elapsed() / 2, wall })
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.wall + self.start.elapsed().as_millis() as i64
    }

    /// How long it runs.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
