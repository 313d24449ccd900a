//! What all roles of an instance share: its name, its lease, and whether store and bus can be relied on.

use crate::clock::Clock;
use catena_bus::Bus;
use catena_model::Name;
use catena_store::{Instance, Store, StoreError};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long to wait before trying again what has failed for a reason that may go away.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// An instance as a member of a cluster.
pub(crate) struct Member {
    pub(crate) id: Name,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) lease: Duration,
    /// How often every role looks into the store, whatever messages say.
    pub(crate) look: Duration,
    clock: Mutex<Clock>,
    /// Others get the benefit of the doubt until then: they could not renew their leases either.
    lenient_until: AtomicI64,
}

impl Member {
    pub(crate) fn new(
        id: Name,
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        lease: Duration,
        look: Duration,
    ) -> Self {
        let clock = Mutex::new(Clock::start());
        Self { id, store, bus, lease, look, clock, lenient_until: AtomicI64::new(0) }
    }

    /// The time of the store.
    pub(crate) fn now(&self) -> i64 {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).now()
    }

    /// The time by which other instances are judged: one whose lease ended before it is dead.
    pub(crate) fn judgement(&self) -> i64 {
        let now = self.now();
        let lenient = now < self.lenient_until.load(Ordering::Relaxed);
        if lenient { now - self.lease_millis() } else { now }
    }

    pub(crate) fn lease_millis(&self) -> i64 {
        self.lease.as_millis() as i64
    }

    /// How often a lease is renewed.
    pub(crate) fn beat(&self) -> Duration {
        (self.lease / 6).max(Duration::from_millis(1))
    }

    /// Waits for the store if need be, and becomes a member. Returns whether it has, and not been asked to stop.
    pub(crate) async fn join(
        &self,
        instance: &Instance,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<bool, StoreError> {
        loop {
            match self.renew(instance).await {
                Ok(()) => return Ok(true),
                Err(e) if e.is_transient() => eprintln!("waiting: {e}"),
                Err(e) => return Err(e),
            }
            if stops_within(Duration::from_secs(1), stop).await {
                return Ok(false);
            }
        }
    }

    async fn renew(&self, instance: &Instance) -> Result<(), StoreError> {
        let clock = Clock::of(&*self.store).await?;
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
        let until = clock.now() + self.lease_millis();
        self.store.enlist(&Instance { until, ..instance.clone() }).await
    }

    /// Renews the lease until it is time to stop.
    pub(crate) async fn stay(&self, instance: Instance, mut stop: watch::Receiver<bool>) {
        let mut failing = false;
        loop {
            let pause = if failing { TRY_AGAIN } else { self.beat() };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.changed() => return,
            }
            match self.renew(&instance).await {
                Ok(()) if failing => {
                    eprintln!("the store is back");
                    failing = false;
                    self.lenient_until.store(self.now() + self.lease_millis(), Ordering::Relaxed);
                }
                Ok(()) => {}
                Err(e) => {
                    if !failing {
                        eprintln!("{e}; trying again");
                    }
                    failing = true;
                }
            }
        }
    }

    /// After a failure: waits if it may go away, otherwise gives up. Returns whether to go on; not if it is time to
    /// stop, for the store may never return.
    pub(crate) async fn endure(
        &self,
        error: StoreError,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<bool, StoreError> {
        if !error.is_transient() {
            return Err(error);
        }
        Ok(!stops_within(TRY_AGAIN, stop).await)
    }
}

/// Waits for so long, or until it is time to stop. Returns whether it is.
async fn stops_within(pause: Duration, stop: &mut watch::Receiver<bool>) -> bool {
    tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok()
}
