//! A peer knows everybody: membership is SWIM's (Das, Gupta and Motivala 2002), as `foca` implements it.

use super::{Effects, Message, Route};
use crate::id::{Group, Peer, Position};
use crate::random::Random;
use crate::time::{Micros, SECOND};
use foca::{Config, Foca, Identity, NoCustomBroadcast, Notification, PostcardCodec, Runtime, Timer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::{NonZeroU8, NonZeroUsize};
use std::time::Duration;

/// A peer, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// Who.
    pub peer: Peer,
    /// Where, in whatever form the driver understands.
    pub address: String,
    /// Grows each time it is started, or was said to be gone and was not.
    pub renewals: u64,
}

impl Contact {
    /// A peer at an address.
    pub fn new(peer: Peer, address: String) -> Self {
        Self { peer, address, renewals: 0 }
    }

    /// The same, started at this time: of what is known of a peer that was started again, the latest counts.
    #[must_use]
    pub fn started(self, at: Micros) -> Self {
        Self { renewals: at, ..self }
    }
}

impl Identity for Contact {
    type Addr = Peer;

    fn renew(&self) -> Option<Self> {
        Some(Self { renewals: self.renewals + 1, ..self.clone() })
    }

    fn addr(&self) -> Peer {
        self.peer
    }

    fn win_addr_conflict(&self, other: &Self) -> bool {
        self.renewals > other.renewals
    }
}

/// Knows everybody.
pub struct FullView {
    me: Peer,
    swim: Foca<Contact, PostcardCodec, Random, NoCustomBroadcast>,
    /// Everybody there, this peer included, in the order of the ring.
    peers: Vec<Peer>,
    timers: BTreeMap<(Micros, u64), Timer<Contact>>,
    serial: u64,
    /// How everybody can be reached who was there, and since when it is gone.
    contacts: BTreeMap<Peer, (Contact, Option<Micros>)>,
    announces: u32,
    announce_at: Micros,
    random: Random,
}

/// Somebody who is gone is told so often that this peer is there, in case that it is not gone at all but was cut off; and
/// somebody who is there each third time. SWIM's own announcements stop when all peers of one side have taken new
/// identities at once, as they do when a cut heals: then they talk to identities that nobody has any more.
const ANNOUNCE: Micros = 10 * SECOND;
/// Whoever is gone for so long is forgotten.
const GONE: Micros = 3600 * SECOND;

impl std::fmt::Debug for FullView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FullView").field("me", &self.me).field("peers", &self.peers).finish_non_exhaustive()
    }
}

/// What SWIM wants done, for a moment.
#[derive(Default)]
struct Wishes {
    sent: Vec<(Peer, Vec<u8>)>,
    timers: Vec<(Duration, Timer<Contact>)>,
    up: Vec<Contact>,
    down: Vec<Peer>,
}

impl Runtime<Contact> for &mut Wishes {
    fn notify(&mut self, notification: Notification<'_, Contact>) {
        match notification {
            Notification::MemberUp(contact) | Notification::Rename(_, contact) => {
                self.up.push(contact.clone());
            }
            Notification::MemberDown(contact) => self.down.push(contact.peer),
            _ => {}
        }
    }

    fn send_to(&mut self, to: Contact, data: &[u8]) {
        self.sent.push((to.peer, data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Contact>, after: Duration) {
        self.timers.push((after, event));
    }
}

fn settings() -> Config {
    Config {
        probe_period: Duration::from_millis(1500),
        probe_rtt: Duration::from_millis(500),
        num_indirect_probes: NonZeroUsize::new(3).expect("not zero"),
        max_transmissions: NonZeroU8::new(10).expect("not zero"),
        suspect_to_down_after: Duration::from_secs(4),
        remove_down_after: Some(Duration::from_hours(1)),
        max_packet_size: NonZeroUsize::new(60_000).expect("not zero"),
        notify_down_members: true,
        periodic_announce: None,
        periodic_announce_to_down_members: None,
        periodic_gossip: None,
    }
}

impl FullView {
    /// A peer that knows nobody.
    pub fn new(me: Contact, seed: u64) -> Self {
        let peer = me.peer;
        let swim = Foca::new(me, settings(), Random::new(seed ^ peer.0), PostcardCodec);
        Self {
            me: peer,
            swim,
            peers: vec![peer],
            timers: BTreeMap::new(),
            serial: 0,
            contacts: BTreeMap::new(),
            announces: 0,
            announce_at: Micros::MAX,
            random: Random::new(seed ^ peer.0.rotate_left(17)),
        }
    }

    /// A peer that has been there for long, among these.
    pub fn among(now: Micros, me: Contact, peers: &[Contact], seed: u64, out: &mut Effects) -> Self {
        let mut view = Self::new(me, seed);
        let others = peers.iter().filter(|c| c.peer != view.me);
        let members: Vec<_> = others.map(|c| foca::Member::alive(c.clone())).collect();
        view.with(now, out, |swim, wishes| drop(swim.apply_many(members.into_iter(), false, wishes)));
        view
    }

    fn with(
        &mut self,
        now: Micros,
        out: &mut Effects,
        act: impl FnOnce(&mut Foca<Contact, PostcardCodec, Random, NoCustomBroadcast>, &mut Wishes),
    ) {
        let mut wishes = Wishes::default();
        act(&mut self.swim, &mut wishes);
        for (after, timer) in wishes.timers {
            self.serial += 1;
            self.timers.insert((now + after.as_micros() as Micros, self.serial), timer);
        }
        for contact in wishes.up {
            if let Err(place) = self.peers.binary_search(&contact.peer) {
                self.peers.insert(place, contact.peer);
                out.changed = true;
            }
            if self.announce_at == Micros::MAX {
                // Not all at the same time.
                self.announce_at = now + self.random.below(ANNOUNCE);
            }
            self.contacts.insert(contact.peer, (contact.clone(), None));
            out.met.push(contact);
        }
        for peer in wishes.down {
            if let Ok(place) = self.peers.binary_search(&peer)
                && peer != self.me
            {
                self.peers.remove(place);
                out.changed = true;
            }
            if let Some((_, gone)) = self.contacts.get_mut(&peer) {
                gone.get_or_insert(now);
            }
        }
        out.sent.extend(wishes.sent.into_iter().map(|(to, data)| (to, Message::Swim(data))));
    }

    /// Tells somebody that this peer is there.
    fn announce(&mut self, now: Micros, out: &mut Effects) {
        self.announce_at = now + ANNOUNCE;
        self.announces = self.announces.wrapping_add(1);
        self.contacts.retain(|_, (_, gone)| gone.is_none_or(|at| now.saturating_sub(at) < GONE));
        let there = |(_, gone): &(Contact, Option<Micros>)| gone.is_none();
        let mut chosen = Vec::new();
        if self.contacts.values().any(|c| !there(c)) {
            chosen.push(false);
        }
        if self.announces.is_multiple_of(3) && self.contacts.values().any(there) {
            chosen.push(true);
        }
        for up in chosen {
            let those: Vec<&(Contact, _)> = self.contacts.values().filter(|c| there(c) == up).collect();
            let contact = those[self.random.below(those.len() as u64) as usize].0.clone();
            self.with(now, out, |swim, wishes| drop(swim.announce(contact, wishes)));
        }
    }

    fn from(&self, at: Position) -> impl Iterator<Item = Peer> {
        let first = self.peers.partition_point(|p| p.0 < at);
        self.peers[first..].iter().chain(&self.peers[..first]).copied()
    }
}

impl Route for FullView {
    fn next(&self, at: Position) -> Option<Peer> {
        self.from(at).next().filter(|p| *p != self.me)
    }

    fn homes(&self, at: Position) -> Option<Group> {
        Some(Group::new(self.from(at)))
    }

    fn is_up(&self, peer: Peer) -> Option<bool> {
        Some(self.peers.binary_search(&peer).is_ok())
    }

    fn detour(&mut self, at: Position) -> Option<Peer> {
        self.next(at)
    }

    fn known(&self) -> Vec<Peer> {
        self.peers.iter().copied().filter(|p| *p != self.me).collect()
    }

    fn is_alone(&self) -> bool {
        self.peers.len() == 1
    }

    fn estimate(&self) -> usize {
        self.peers.len()
    }

    fn silent(&mut self, _: Micros, _: Peer, _: &mut Effects) {}

    fn heard(&mut self, _: Micros, _: Peer) {}

    fn found(&mut self, _: Micros, _: Position, _: Group, _: &mut Effects) {}

    fn join(&mut self, now: Micros, contact: Contact, out: &mut Effects) {
        self.with(now, out, |swim, wishes| drop(swim.announce(contact, wishes)));
    }

    fn leave(&mut self, now: Micros, out: &mut Effects) {
        self.with(now, out, |swim, wishes| drop(swim.leave_cluster(wishes)));
    }

    fn handle(&mut self, now: Micros, _: Peer, message: Message, out: &mut Effects) {
        // What cannot be read is from somebody who does not speak SWIM as this peer does.
        if let Message::Swim(data) = message {
            self.with(now, out, |swim, wishes| drop(swim.handle_data(&data, wishes)));
        }
    }

    fn wake_at(&self) -> Micros {
        let timer = self.timers.first_key_value().map_or(Micros::MAX, |((at, _), _)| *at);
        timer.min(self.announce_at)
    }

    fn wake(&mut self, now: Micros, out: &mut Effects) {
        if self.announce_at <= now {
            self.announce(now, out);
        }
        // Timers that are set meanwhile have their turn later, however long they are overdue.
        for _ in 0..self.timers.len() {
            let Some(((at, serial), _)) = self.timers.first_key_value() else { return };
            let key = (*at, *serial);
            if key.0 > now {
                return;
            }
            let timer = self.timers.remove(&key).expect("just seen");
            self.with(now, out, |swim, wishes| drop(swim.handle_timer(timer, wishes)));
        }
    }
}
