//! Which process stands behind an identity.
//!
//! An identity is a file and files get copied. Every process picks a random number when it starts (its *instance*) and
//! tells it when it connects. One identity with two instances that both live is a twin. A process that has crashed is no
//! twin of its successor, although its connections may still look open: so before anyone is called a twin, the other one
//! is asked for a sign of life.

use super::settings::Role;
use libp2p_identity::PeerId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long an admitted peer may take to get connected.
const CLAIM: Duration = Duration::from_secs(15);
/// How often is looked whether the other one has answered.
const LOOK: Duration = Duration::from_millis(20);

/// One process. Later ones are greater, as far as clocks agree; the random part makes the order total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instance {
    /// Milliseconds since 1970.
    pub(crate) since: u64,
    pub(crate) random: [u8; 16],
}

/// What a peer says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) role: Role,
    pub(crate) instance: Instance,
    /// Where it listens, 0 if it does not.
    pub(crate) port: u16,
}

/// Signs of life of one process.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Mutex<Instant>,
    /// Someone wants a sign of life now.
    pub(crate) probe: Notify,
}

impl Pulse {
    fn new() -> Self {
        Self { heard: Mutex::new(Instant::now()), probe: Notify::new() }
    }

    pub(crate) fn beat(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Entry {
    profile: Profile,
    pulse: Arc<Pulse>,
    connections: usize,
    /// Handshakes that were won but are no connection yet.
    claims: usize,
    claimed: Instant,
}

impl Entry {
    /// Claims end by themselves: libp2p does not tell what becomes of each.
    fn is_live(&self) -> bool {
        self.connections > 0 || (self.claims > 0 && self.claimed.elapsed() < CLAIM)
    }
}

/// The right to connect. Given back when dropped, unless it is kept.
#[must_use]
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    presence: &'a Presence,
    peer: PeerId,
    instance: Instance,
    kept: bool,
}

impl Claim<'_> {
    /// The connection will be there soon.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.presence
                .change(self.peer, self.instance, |entry| entry.claims = entry.claims.saturating_sub(1));
        }
    }
}

/// Who is connected.
#[derive(Default, Debug)]
pub(crate) struct Presence {
    entries: Mutex<HashMap<PeerId, Entry>>,
}

/// Another process of the same identity is alive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// It started before the one that asked.
    pub(crate) earlier: bool,
}

impl Presence {
    fn lock(&self) -> MutexGuard<'_, HashMap<PeerId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a process in, unless another one of the same identity shows that it lives within `patience`.
    pub(crate) async fn admit(
        &self,
        peer: PeerId,
        profile: Profile,
        patience: Duration,
    ) -> Result<Claim<'_>, Taken> {
        let asked = Instant::now();
        loop {
            let Some((other, pulse)) = self.claim(peer, profile, asked.elapsed() >= patience) else {
                return Ok(Claim { presence: self, peer, instance: profile.instance, kept: false });
            };
            if pulse.last() > asked {
                return Err(Taken { earlier: other < profile.instance });
            }
            pulse.probe.notify_one();
            tokio::time::sleep(LOOK.min(patience)).await;
        }
    }

    /// Takes the place of the identity; gives the process that has it, if that may be alive.
    fn claim(&self, peer: PeerId, profile: Profile, by_force: bool) -> Option<(Instance, Arc<Pulse>)> {
        let mut entries = self.lock();
        entries.retain(|_, entry| entry.is_live());
        match entries.get_mut(&peer) {
            Some(entry) if entry.profile.instance == profile.instance => {
                entry.profile = profile;
                entry.claims += 1;
                entry.claimed = Instant::now();
                None
            }
            Some(entry) if !by_force => Some((entry.profile.instance, entry.pulse.clone())),
            _ => {
                let pulse = Arc::new(Pulse::new());
                let claimed = Instant::now();
                entries.insert(peer, Entry { profile, pulse, connections: 0, claims: 1, claimed });
                None
            }
        }
    }

    /// A connection is there.
    pub(crate) fn connected(&self, peer: PeerId) -> Option<(Profile, Arc<Pulse>)> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&peer)?;
        entry.connections += 1;
        entry.claims = entry.claims.saturating_sub(1);
        Some((entry.profile, entry.pulse.clone()))
    }

    /// What a peer has said, if it is connected or about to be.
    pub(crate) fn profile(&self, peer: PeerId) -> Option<Profile> {
        self.lock().get(&peer).map(|entry| entry.profile)
    }

    /// A connection of this process is gone.
    pub(crate) fn closed(&self, peer: PeerId, instance: Instance) {
        self.change(peer, instance, |entry| entry.connections = entry.connections.saturating_sub(1));
    }

    fn change(&self, peer: PeerId, instance: Instance, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(&peer)
            && entry.profile.instance == instance
        {
            change(entry);
            if !entry.is_live() {
                entries.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(since: u64) -> Profile {
        Profile { role: Role::Member, instance: Instance { since, random: [0; 16] }, port: 1 }
    }

    const PATIENCE: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_second_process_is_refused_while_the_first_answers() {
        let (presence, peer) = (Presence::default(), PeerId::random());
        presence.admit(peer, profile(1), PATIENCE).await.unwrap().keep();
        let (_, pulse) = presence.connected(peer).unwrap();
        let answer = async {
            pulse.probe.notified().await;
            pulse.beat();
        };
        let (admitted, ()) = tokio::join!(presence.admit(peer, profile(2), PATIENCE), answer);
        assert_eq!(admitted.unwrap_err(), Taken { earlier: true });
        assert_eq!(presence.profile(peer), Some(profile(1)));
    }

    #[tokio::test]
    async fn a_silent_process_is_replaced_and_its_end_does_not_touch_the_new_one() {
        let (presence, peer) = (Presence::default(), PeerId::random());
        presence.admit(peer, profile(1), PATIENCE).await.unwrap().keep();
        presence.connected(peer).unwrap();
        presence.admit(peer, profile(2), PATIENCE).await.unwrap().keep();
        presence.connected(peer).unwrap();
        presence.closed(peer, profile(1).instance);
        assert_eq!(presence.profile(peer), Some(profile(2)));
        presence.closed(peer, profile(2).instance);
        assert_eq!(presence.profile(peer), None);
    }

    #[tokio::test]
    async fn the_same_process_may_connect_twice() {
        let (presence, peer) = (Presence::default(), PeerId::random());
        for _ in 0..2 {
            presence.admit(peer, profile(1), PATIENCE).await.unwrap().keep();
            presence.connected(peer).unwrap();
        }
        presence.closed(peer, profile(1).instance);
        assert!(presence.profile(peer).is_some());
    }

    #[tokio::test]
    async fn a_handshake_that_fails_after_all_leaves_no_trace() {
        let (presence, peer) = (Presence::default(), PeerId::random());
        drop(presence.admit(peer, profile(1), PATIENCE).await.unwrap());
        assert_eq!(presence.profile(peer), None);
    }
}
