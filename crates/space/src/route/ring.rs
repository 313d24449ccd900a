//! A peer knows its neighbours, and fingers that point half around the ring, a quarter, an eighth and so on (Chord, Stoica
//! et al. 2001).
//!
//! We deviate in how neighbours are watched: each tells the one before and the one after it, at regular intervals, that it
//! is there and who its neighbours are. So both directions are known, which the homes of a molecule need, and who is gone
//! is noticed on both sides. Who has been lost is called again now and then: two halves of a network that was cut find
//! each other like this.

use super::{Contact, Effects, Message, Route};
use crate::id::{Group, Peer, Position, distance};
use crate::random::Random;
use crate::time::{Micros, SECOND};
use std::collections::{BTreeMap, VecDeque};

/// So many peers after this one are known, and so many before it.
const AFTER: usize = 8;
const BEFORE: usize = 4;
/// Neighbours hear from each other so often.
const BEAT: Micros = 5 * SECOND;
/// News are passed on at once, but not more often than this: neighbours that disagree would never come to rest.
const NEWS: Micros = SECOND / 4;
/// After so long without a sign a neighbour is gone.
const SILENCE: Micros = 16 * SECOND;
/// So long nobody is believed who says that somebody is there who was found to be gone.
const DISBELIEF: Micros = 60 * SECOND;
/// So many times it is found out who comes after this peer, once there is doubt.
const DOUBTS: u8 = 20;
/// One finger is looked at so often.
const FINGER: Micros = 60 * SECOND;
/// Fingers: the last one points to a part of the ring in which there is hardly a peer, however large the ring.
const FINGERS: usize = 24;
/// So many of those who were heard of lately are remembered, and so long.
const RECENT: usize = 48;
const LATELY: Micros = 120 * SECOND;
/// So many of those who were lost are remembered.
const LOST: usize = 32;

/// Knows its neighbours and some peers far away.
#[derive(Debug)]
pub struct Ring {
    me: Peer,
    /// The nearest first.
    after: Vec<Peer>,
    before: Vec<Peer>,
    fingers: [Option<Peer>; FINGERS],
    /// When something was heard of the nearest neighbours last.
    heard: BTreeMap<Peer, Micros>,
    /// Who was found to be gone, and until when nobody is believed who says otherwise.
    gone: BTreeMap<Peer, Micros>,
    lost: VecDeque<Peer>,
    /// Who was heard of lately, from anywhere on the ring: the more are known, the shorter the ways.
    recent: VecDeque<(Peer, Micros)>,
    random: Random,
    beat_at: Micros,
    /// Before this no news are passed on, and whether there are any.
    news_at: Micros,
    news: bool,
    finger_at: Micros,
    finger: usize,
    /// Neighbours came or went lately, so that there may be others who should be neighbours: who comes after this peer is
    /// found out again, by way of anybody, so many times.
    doubts: u8,
}

impl Ring {
    /// A peer that knows nobody.
    pub fn new(now: Micros, me: Peer, seed: u64) -> Self {
        let mut random = Random::new(seed ^ me.0);
        let (beat_at, finger_at) = (now + random.below(BEAT), now + random.below(FINGER));
        Self {
            me,
            after: Vec::new(),
            before: Vec::new(),
            fingers: [None; FINGERS],
            heard: BTreeMap::new(),
            gone: BTreeMap::new(),
            lost: VecDeque::new(),
            recent: VecDeque::new(),
            random,
            beat_at,
            news_at: 0,
            news: false,
            finger_at,
            finger: 0,
            doubts: 0,
        }
    }

    /// A peer that has been there for long, among these, which are in the order of the ring.
    pub fn among(now: Micros, me: Peer, peers: &[Peer], seed: u64) -> Self {
        let mut ring = Self::new(now, me, seed);
        let place = peers.partition_point(|p| *p < me);
        let others = peers.len().saturating_sub(1);
        let at = |i: usize| peers[i % peers.len()];
        ring.after = (1..=AFTER.min(others)).map(|i| at(place + i)).collect();
        ring.before = (1..=BEFORE.min(others)).map(|i| at(place + peers.len() - i)).collect();
        for finger in 0..FINGERS {
            let target = ring.target(finger);
            let owner = at(peers.partition_point(|p| p.0 < target));
            ring.fingers[finger] = (owner != me).then_some(owner);
        }
        for peer in ring.after.first().into_iter().chain(ring.before.first()) {
            ring.heard.insert(*peer, now);
        }
        ring
    }

    /// The place whose owner comes after this peer.
    fn beyond(&self) -> Position {
        self.me.0.wrapping_add(1)
    }

    fn target(&self, finger: usize) -> Position {
        self.me.0.wrapping_add(1 << (63 - finger))
    }

    fn is_gone(&self, now: Micros, peer: Peer) -> bool {
        self.gone.get(&peer).is_some_and(|until| *until > now)
    }

    /// Takes note of a peer that is there, if it is near. Returns whether it is a nearest neighbour now and was not.
    fn admit(&mut self, now: Micros, peer: Peer) -> bool {
        if peer == self.me {
            return false;
        }
        let me = self.me.0;
        let after = insert(&mut self.after, peer, AFTER, |p| distance(me, p.0));
        let before = insert(&mut self.before, peer, BEFORE, |p| distance(p.0, me));
        let nearest = after == Some(0) || before == Some(0);
        if nearest {
            self.heard.entry(peer).or_insert(now);
        }
        nearest
    }

    /// What a nearest neighbour says of those beyond it is so.
    fn believe(&mut self, now: Micros, from: Peer, before: &[Peer], after: &[Peer]) -> bool {
        let old = (self.after.clone(), self.before.clone());
        let mut calls: Vec<&Peer> = Vec::new();
        if self.after.first() == Some(&from) {
            self.after.truncate(1);
            for peer in after {
                if *peer != self.me && !self.is_gone(now, *peer) && !self.after.contains(peer) {
                    insert(&mut self.after, *peer, AFTER, |p| distance(self.me.0, p.0));
                }
            }
            calls.extend(before.first());
        }
        if self.before.first() == Some(&from) {
            self.before.truncate(1);
            for peer in before {
                if *peer != self.me && !self.is_gone(now, *peer) && !self.before.contains(peer) {
                    insert(&mut self.before, *peer, BEFORE, |p| distance(p.0, self.me.0));
                }
            }
            calls.extend(after.first());
        }
        for peer in calls {
            // Somebody new between two neighbours.
            if !self.is_gone(now, *peer) {
                self.admit(now, *peer);
            }
        }
        old != (self.after.clone(), self.before.clone())
    }

    fn drop_peer(&mut self, now: Micros, peer: Peer) -> bool {
        self.gone.insert(peer, now + DISBELIEF);
        self.doubts = DOUBTS;
        if !self.lost.contains(&peer) {
            self.lost.push_front(peer);
            self.lost.truncate(LOST);
        }
        self.heard.remove(&peer);
        let known = self.after.len() + self.before.len();
        self.after.retain(|p| *p != peer);
        self.before.retain(|p| *p != peer);
        self.recent.retain(|(p, _)| *p != peer);
        for finger in &mut self.fingers {
            if *finger == Some(peer) {
                *finger = None;
            }
        }
        if self.after.is_empty() || self.before.is_empty() {
            // Whoever is left is better than nobody.
            let others: Vec<Peer> = self.fingers.iter().flatten().copied().collect();
            for other in others {
                if !self.is_gone(now, other) {
                    self.admit(now, other);
                }
            }
        }
        for nearest in self.after.first().into_iter().chain(self.before.first()) {
            self.heard.entry(*nearest).or_insert(now);
        }
        known != self.after.len() + self.before.len()
    }

    fn beat(&self) -> Message {
        Message::Beat { before: self.before.clone(), after: self.after.clone() }
    }

    fn beat_neighbours(&self, out: &mut Effects) {
        if let Some(next) = self.after.first() {
            out.sent.push((*next, self.beat()));
        }
        if let Some(last) = self.before.first()
            && self.after.first() != Some(last)
        {
            out.sent.push((*last, self.beat()));
        }
    }
}

impl Ring {
    /// Tells neighbours what is new, now or soon.
    fn pass_on(&mut self, now: Micros, out: &mut Effects) {
        self.news = now < self.news_at;
        if !self.news {
            self.news_at = now + NEWS;
            self.beat_neighbours(out);
        }
    }
}

impl Route for Ring {
    fn next(&self, at: Position) -> Option<Peer> {
        let Some(last) = self.before.first() else {
            // Whoever has no neighbours knows nothing better than to ask somebody else.
            return self.fingers.iter().flatten().next().copied();
        };
        let way = distance(self.me.0, at);
        if way == 0 || distance(last.0, at).wrapping_sub(1) < distance(last.0, self.me.0) {
            return None;
        }
        // A neighbour owns it, if it is not beyond all of them.
        if let Some(owner) = self.after.iter().find(|p| way <= distance(self.me.0, p.0)) {
            return Some(*owner);
        }
        let known =
            self.fingers.iter().flatten().chain(&self.after).chain(self.recent.iter().map(|(p, _)| p));
        known.filter(|p| distance(self.me.0, p.0) < way).max_by_key(|p| distance(self.me.0, p.0)).copied()
    }

    fn homes(&self, at: Position) -> Option<Group> {
        let around = self.before.iter().rev().chain([&self.me]).chain(&self.after);
        if self.is_small() {
            let mut peers: Vec<Peer> = around.copied().collect();
            peers.sort_by_key(|p| distance(at, p.0));
            peers.dedup();
            return Some(Group::new(peers));
        }
        let first = self.before.last()?;
        let reach = distance(first.0, at);
        if reach == 0 || reach > distance(first.0, self.after.last()?.0) {
            return None;
        }
        let homes = Group::new(around.copied().filter(|p| distance(first.0, p.0) >= reach));
        (homes.peers().len() == crate::id::HOMES).then_some(homes)
    }

    fn is_up(&self, peer: Peer) -> Option<bool> {
        if peer == self.me || self.after.contains(&peer) || self.before.contains(&peer) {
            return Some(true);
        }
        if self.gone.contains_key(&peer) || self.is_small() {
            return Some(false);
        }
        let near = distance(self.me.0, peer.0) < distance(self.me.0, self.after.last()?.0)
            || distance(peer.0, self.me.0) < distance(self.before.last()?.0, self.me.0);
        near.then_some(false)
    }

    fn detour(&mut self, at: Position) -> Option<Peer> {
        let next = self.next(at)?;
        let known = self.known();
        let anybody = self.random.below(known.len() as u64 + 1) as usize;
        Some(known.get(anybody).copied().unwrap_or(next))
    }

    fn known(&self) -> Vec<Peer> {
        let mut known: Vec<Peer> =
            self.after.iter().chain(&self.before).chain(self.fingers.iter().flatten()).copied().collect();
        known.extend(self.recent.iter().map(|(p, _)| *p));
        known.sort_unstable();
        known.dedup();
        known
    }

    fn is_alone(&self) -> bool {
        self.after.is_empty()
    }

    fn estimate(&self) -> usize {
        match (self.before.last(), self.after.last()) {
            (Some(first), Some(last)) if !self.is_small() => {
                let part = distance(first.0, last.0) as f64 / 2f64.powi(64);
                ((self.before.len() + self.after.len()) as f64 / part) as usize
            }
            _ => self.known().len() + 1,
        }
    }

    fn silent(&mut self, now: Micros, peer: Peer, out: &mut Effects) {
        out.changed |= self.drop_peer(now, peer);
    }

    fn heard(&mut self, now: Micros, peer: Peer) {
        if let Some(last) = self.heard.get_mut(&peer) {
            *last = now;
        }
        self.gone.remove(&peer);
        if peer != self.me && !self.recent.iter().any(|(p, _)| *p == peer) {
            self.recent.push_back((peer, now));
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    fn found(&mut self, now: Micros, at: Position, homes: Group, out: &mut Effects) {
        let Some(owner) = homes.peers().first().copied() else { return };
        if at == self.beyond() {
            for peer in homes.peers() {
                if !self.is_gone(now, *peer) {
                    out.changed |= self.admit(now, *peer);
                }
            }
            self.pass_on(now, out);
        }
        for finger in 0..FINGERS {
            if self.target(finger) == at {
                self.fingers[finger] = (owner != self.me && !self.is_gone(now, owner)).then_some(owner);
            }
        }
    }

    fn join(&mut self, now: Micros, contact: Contact, out: &mut Effects) {
        // Any peer will do to find the way to the right ones.
        self.fingers[0] = Some(contact.peer);
        self.admit(now, contact.peer);
        out.seek.push(self.beyond());
        // Fingers are found one after the other, soon.
        self.finger_at = now + SECOND;
    }

    fn leave(&mut self, _: Micros, _: &mut Effects) {}

    fn handle(&mut self, now: Micros, from: Peer, message: Message, out: &mut Effects) {
        let Message::Beat { before, after } = message else { return };
        self.gone.remove(&from);
        self.lost.retain(|p| *p != from);
        let mut changed = self.admit(now, from);
        changed |= self.believe(now, from, &before, &after);
        if let Some(last) = self.heard.get_mut(&from) {
            *last = now;
        }
        let neighbour = self.after.first() == Some(&from) || self.before.first() == Some(&from);
        let mistaken = before.first() == Some(&self.me) || after.first() == Some(&self.me);
        if !neighbour && mistaken {
            // It takes this peer for a neighbour; it does not know of those between.
            out.sent.push((from, self.beat()));
        } else if changed {
            self.pass_on(now, out);
        }
        out.changed |= changed;
    }

    fn wake_at(&self) -> Micros {
        let news_at = if self.news { self.news_at } else { Micros::MAX };
        self.beat_at.min(self.finger_at).min(news_at)
    }

    fn wake(&mut self, now: Micros, out: &mut Effects) {
        if self.news && self.news_at <= now {
            self.pass_on(now, out);
        }
        if self.beat_at <= now {
            // Somebody who could not act for long has not heard of anybody either.
            let late = now.saturating_sub(self.beat_at) > BEAT;
            self.beat_at = now + BEAT;
            let nearest: Vec<Peer> =
                self.after.first().into_iter().chain(self.before.first()).copied().collect();
            self.heard.retain(|p, _| nearest.contains(p));
            for peer in nearest {
                let last = self.heard.entry(peer).or_insert(now);
                if late {
                    *last = now;
                } else if now.saturating_sub(*last) > SILENCE {
                    out.changed |= self.drop_peer(now, peer);
                }
            }
            self.beat_neighbours(out);
            if !self.lost.is_empty() && self.random.below(2) == 0 {
                let one = self.random.below(self.lost.len() as u64) as usize;
                out.sent.push((self.lost[one], self.beat()));
            }
            self.gone.retain(|_, until| *until > now);
            if self.after.is_empty() && !self.lost.is_empty() {
                let one = self.random.below(self.lost.len() as u64) as usize;
                self.fingers[0] = Some(self.lost[one]);
                self.doubts = DOUBTS;
            }
            if self.doubts > 0 && self.random.below(3) == 0 {
                self.doubts -= 1;
                out.seek.push(self.beyond());
            }
            self.recent.retain(|(_, heard)| now - heard < LATELY);
        }
        if self.finger_at <= now {
            let empty = self.fingers.iter().position(Option::is_none).filter(|f| *f < self.wanted());
            self.finger_at = now + if empty.is_some() { SECOND } else { FINGER };
            self.finger = (self.finger + 1) % FINGERS;
            let finger = empty.unwrap_or(self.finger % self.wanted());
            out.seek.push(self.target(finger));
        }
    }
}

impl Ring {
    /// Whether the ring is so small that everybody is known: those after this peer reach around to those before it.
    fn is_small(&self) -> bool {
        match self.before.first() {
            Some(last) => self.after.contains(last),
            None => self.after.is_empty(),
        }
    }

    /// How many fingers point beyond the neighbours.
    fn wanted(&self) -> usize {
        let reach = self.after.last().map_or(1, |p| distance(self.me.0, p.0));
        (reach.leading_zeros() as usize + 1).min(FINGERS)
    }
}

/// Puts a peer into a list by its distance. Returns where, if it is new.
fn insert(list: &mut Vec<Peer>, peer: Peer, limit: usize, distance: impl Fn(&Peer) -> u64) -> Option<usize> {
    let way = distance(&peer);
    let place = list.partition_point(|p| distance(p) < way);
    if place >= limit || list.get(place) == Some(&peer) {
        return None;
    }
    list.insert(place, peer);
    list.truncate(limit);
    Some(place)
}
