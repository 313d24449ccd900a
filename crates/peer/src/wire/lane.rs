//! What waits for each peer, and where that peer is.

use super::count::{Counts, Tally};
use super::settings::Settings;
use libp2p_identity::PeerId;
use libp2p_swarm::ConnectionId;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How many addresses of one peer are remembered; the latest are.
const ADDRESSES: usize = 8;

/// What is known about one peer, and what waits for it.
pub(crate) struct Lane {
    state: Mutex<State>,
    pub(crate) tally: Tally,
}

struct State {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The one that worked last comes first.
    addresses: Vec<SocketAddr>,
    /// Connections with a stream of messages. The last one is written to.
    links: Vec<(ConnectionId, Arc<Notify>)>,
    /// The driver knows that something waits.
    wanted: bool,
    failures: u32,
    not_before: Instant,
    used: Instant,
}

impl Lane {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                bytes: 0,
                addresses: Vec::new(),
                links: Vec::new(),
                wanted: false,
                failures: 0,
                not_before: now,
                used: now,
            }),
            tally: Tally::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.lock().addresses.clone()
    }

    /// Remembers an address, as the best one if it has just worked.
    pub(crate) fn learn(&self, address: SocketAddr, works: bool) {
        let mut state = self.lock();
        let known = state.addresses.iter().position(|a| *a == address);
        match known {
            Some(0) => {}
            Some(at) if works => {
                state.addresses.remove(at);
                state.addresses.insert(0, address);
            }
            Some(_) => {}
            None => {
                let at = if works { 0 } else { state.addresses.len().min(ADDRESSES - 1) };
                state.addresses.truncate(ADDRESSES - 1);
                state.addresses.insert(at, address);
                // A new address is a new hope: no need to wait any longer.
                state.not_before = Instant::now();
            }
        }
    }

    /// When to try to connect next.
    pub(crate) fn not_before(&self) -> Instant {
        self.lock().not_before
    }

    pub(crate) fn is_linked(&self) -> bool {
        !self.lock().links.is_empty()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    /// A stream of messages is there. Whether it is the only one; `first` runs before anyone else can change that.
    pub(crate) fn link(&self, connection: ConnectionId, wake: Arc<Notify>, first: impl FnOnce()) {
        let mut state = self.lock();
        if state.links.is_empty() {
            first();
        }
        state.links.push((connection, wake));
        state.failures = 0;
        state.wanted = false;
    }

    /// A stream of messages is gone. `last` runs if it was the only one, before anyone else can change that. Gives
    /// whether something waits that nobody will write.
    pub(crate) fn unlink(&self, connection: ConnectionId, back_off: Duration, last: impl FnOnce()) -> bool {
        let mut state = self.lock();
        state.links.retain(|(id, _)| *id != connection);
        if state.links.is_empty() {
            last();
            state.not_before = Instant::now() + back_off;
            state.wanted = !state.queue.is_empty();
            return state.wanted;
        }
        if let Some((_, wake)) = state.links.last() {
            wake.notify_one();
        }
        false
    }

    /// Moves what waits into `buffer`, up to `most` bytes or one message, if this connection is the one to write to.
    pub(crate) fn take(&self, connection: ConnectionId, most: usize, buffer: &mut Vec<u8>, total: &Tally) {
        let mut state = self.lock();
        if state.links.last().is_none_or(|(id, _)| *id != connection) {
            return;
        }
        while let Some(message) = state.queue.front() {
            if !buffer.is_empty() && buffer.len() + message.len() > most {
                break;
            }
            let length = message.len();
            super::frame::put_message(buffer, message);
            state.queue.pop_front();
            state.bytes -= length;
            self.tally.sent(length);
            total.sent(length);
        }
    }
}

/// All lanes.
pub(crate) struct Lanes {
    by_peer: Mutex<HashMap<PeerId, Arc<Lane>>>,
    wanted: Mutex<Vec<PeerId>>,
    /// Something is wanted.
    pub(crate) wake: Notify,
    pub(crate) total: Tally,
    peers: usize,
    queue_frames: usize,
    queue_bytes: usize,
    back_off: Duration,
    longest_back_off: Duration,
}

impl Lanes {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            by_peer: Mutex::default(),
            wanted: Mutex::default(),
            wake: Notify::new(),
            total: Tally::default(),
            peers: settings.peers.max(1),
            queue_frames: settings.queue_frames.max(1),
            queue_bytes: settings.queue_bytes,
            back_off: settings.back_off,
            longest_back_off: settings.longest_back_off,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PeerId, Arc<Lane>>> {
        self.by_peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, peer: PeerId) -> Option<Arc<Lane>> {
        self.lock().get(&peer).cloned()
    }

    /// The lane of a peer, a new one if need be. The one that was idle for longest makes room for it.
    pub(crate) fn get_or_add(&self, peer: PeerId) -> Arc<Lane> {
        let mut lanes = self.lock();
        if let Some(lane) = lanes.get(&peer) {
            return lane.clone();
        }
        if lanes.len() >= self.peers {
            let idle = lanes.iter().filter_map(|(peer, lane)| {
                let state = lane.lock();
                (state.links.is_empty() && state.queue.is_empty()).then_some((state.used, *peer))
            });
            if let Some((_, oldest)) = idle.min() {
                lanes.remove(&oldest);
            }
        }
        let lane = Arc::new(Lane::new());
        lanes.insert(peer, lane.clone());
        lane
    }

    pub(crate) fn forget(&self, peer: PeerId) {
        let mut lanes = self.lock();
        if lanes.get(&peer).is_some_and(|lane| !lane.is_linked()) {
            lanes.remove(&peer);
        }
    }

    /// Puts a message into its lane. It is dropped if nobody knows where the peer is.
    pub(crate) fn send(&self, peer: PeerId, message: Vec<u8>) {
        let Some(lane) = self.get(peer) else {
            self.total.dropped(1);
            return;
        };
        let mut state = lane.lock();
        state.used = Instant::now();
        if state.links.is_empty() && state.addresses.is_empty() {
            lane.tally.dropped(1);
            self.total.dropped(1);
            return;
        }
        // The oldest go: what is sent here is sent again when it matters, and the newest says most.
        let mut dropped = 0;
        while !state.queue.is_empty()
            && (state.queue.len() >= self.queue_frames || state.bytes + message.len() > self.queue_bytes)
        {
            let oldest = state.queue.pop_front();
            state.bytes -= oldest.map_or(0, |m| m.len());
            dropped += 1;
        }
        state.bytes += message.len();
        state.queue.push_back(message);
        let new = !std::mem::replace(&mut state.wanted, true);
        if let Some((_, wake)) = state.links.last() {
            wake.notify_one();
            state.wanted = false;
        }
        let want = new && state.links.is_empty();
        drop(state);
        if dropped > 0 {
            lane.tally.dropped(dropped);
            self.total.dropped(dropped);
        }
        if want {
            self.want(peer);
        }
    }

    /// Tells the driver that something waits. Each peer is told once until it is taken, so the list is bounded.
    pub(crate) fn want(&self, peer: PeerId) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).push(peer);
        self.wake.notify_one();
    }

    pub(crate) fn take_wanted(&self) -> Vec<PeerId> {
        std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Connecting has failed: what waits is old by the time it could be sent.
    pub(crate) fn failed(&self, peer: PeerId) {
        let Some(lane) = self.get(peer) else { return };
        let mut state = lane.lock();
        if !state.links.is_empty() {
            return;
        }
        let dropped = state.queue.len();
        state.queue.clear();
        state.bytes = 0;
        state.wanted = false;
        let wait = self.back_off.saturating_mul(1 << state.failures.min(16)).min(self.longest_back_off);
        state.failures = state.failures.saturating_add(1);
        state.not_before = Instant::now() + wait;
        drop(state);
        lane.tally.dropped(dropped);
        self.total.dropped(dropped);
    }

    pub(crate) fn counts(&self) -> Vec<(PeerId, Counts)> {
        self.lock().iter().map(|(peer, lane)| (*peer, lane.tally.read())).collect()
    }

    /// Who can be written to.
    pub(crate) fn linked(&self) -> Vec<PeerId> {
        self.lock().iter().filter(|(_, lane)| lane.is_linked()).map(|(peer, _)| *peer).collect()
    }

    /// Whether something waits for someone who is there.
    pub(crate) fn are_waiting(&self) -> bool {
        self.lock().values().any(|lane| lane.is_linked() && lane.is_waiting())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> (Lanes, PeerId) {
        let settings = Settings { queue_frames: 4, queue_bytes: 100, peers: 3, ..Settings::default() };
        (Lanes::new(&settings), PeerId::random())
    }

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn what_has_nowhere_to_go_is_dropped_and_counted() {
        let (lanes, peer) = lanes();
        lanes.send(peer, vec![1]);
        lanes.get_or_add(peer);
        lanes.send(peer, vec![1]);
        assert_eq!(lanes.total.read().dropped, 2);
        assert!(lanes.take_wanted().is_empty());
    }

    #[test]
    fn the_oldest_make_room_for_the_newest() {
        let (lanes, peer) = lanes();
        let lane = lanes.get_or_add(peer);
        lane.learn(address(1), false);
        for n in 0..10 {
            lanes.send(peer, vec![n]);
        }
        assert_eq!(lanes.take_wanted(), [peer]);
        assert_eq!(lane.tally.read().dropped, 6);
        let connection = ConnectionId::new_unchecked(1);
        lane.link(connection, Arc::default(), || ());
        let mut buffer = Vec::new();
        lane.take(connection, 1000, &mut buffer, &lanes.total);
        assert_eq!(buffer, [0, 0, 0, 1, 6, 0, 0, 0, 1, 7, 0, 0, 0, 1, 8, 0, 0, 0, 1, 9]);
        assert_eq!(lanes.total.read().sent, 4);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (lanes, peer) = lanes();
        lanes.get_or_add(peer).learn(address(1), false);
        lanes.send(peer, vec![0; 60]);
        lanes.send(peer, vec![1; 60]);
        lanes.send(peer, vec![2; 200]);
        assert_eq!(lanes.total.read().dropped, 2);
        assert_eq!(lanes.get(peer).unwrap().lock().bytes, 200);
    }

    #[test]
    fn only_the_newest_connection_is_written_to() {
        let (lanes, peer) = lanes();
        let lane = lanes.get_or_add(peer);
        let [old, new] = [1, 2].map(ConnectionId::new_unchecked);
        lane.link(old, Arc::default(), || ());
        lane.link(new, Arc::default(), || panic!("not the first"));
        lanes.send(peer, vec![1]);
        let mut buffer = Vec::new();
        lane.take(old, 1000, &mut buffer, &lanes.total);
        assert!(buffer.is_empty());
        assert!(!lane.unlink(new, Duration::ZERO, || panic!("not the last")));
        lane.take(old, 1000, &mut buffer, &lanes.total);
        assert_eq!(buffer.len(), 5);
    }

    #[test]
    fn failures_make_the_wait_longer_and_drop_what_waits() {
        let (lanes, peer) = lanes();
        let lane = lanes.get_or_add(peer);
        lane.learn(address(1), false);
        let mut waits = Vec::new();
        for _ in 0..10 {
            lanes.send(peer, vec![1]);
            lanes.failed(peer);
            waits.push(lane.not_before().saturating_duration_since(Instant::now()).as_millis());
        }
        assert_eq!(lanes.total.read().dropped, 10);
        assert!(waits[0] <= 200 && waits[3] > 1500 && waits[9] <= 10_000, "{waits:?}");
    }

    #[test]
    fn as_many_peers_are_remembered_as_are_allowed() {
        let (lanes, peer) = lanes();
        lanes.get_or_add(peer).link(ConnectionId::new_unchecked(1), Arc::default(), || ());
        for _ in 0..20 {
            lanes.get_or_add(PeerId::random());
        }
        assert_eq!(lanes.lock().len(), 3);
        assert!(lanes.get(peer).is_some(), "who is connected stays");
    }

    #[test]
    fn addresses_that_work_come_first() {
        let lane = Lane::new();
        for port in 1..=20 {
            lane.learn(address(port), false);
        }
        assert_eq!(lane.addresses().len(), ADDRESSES);
        lane.learn(address(99), true);
        lane.learn(address(3), true);
        let addresses = lane.addresses();
        assert_eq!(addresses[..2], [address(3), address(99)]);
        assert_eq!(addresses.len(), ADDRESSES);
    }
}
