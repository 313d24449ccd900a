//! Many peers, one register, a network that delays, loses, repeats and parts: what was agreed on stays so.

use super::{Effects, Event, Message, Registers};
use crate::id::{Group, Id, Peer};
use crate::random::Random;
use crate::time::{MILLI, Micros, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a register has: the operations it has seen, in order. So one look tells the whole history.
type Log = Vec<u32>;

/// From whom, to whom, what.
type Letter = (Peer, Peer, Message<(), Log>);

struct World {
    random: Random,
    now: Micros,
    peers: BTreeMap<Peer, Registers<(), Log>>,
    dead: BTreeSet<Peer>,
    paused: BTreeMap<Peer, Micros>,
    /// Peers on different sides do not hear each other.
    side: BTreeMap<Peer, u8>,
    mail: BTreeMap<(Micros, u64), Letter>,
    serial: u64,
    /// Per mille of messages that get lost, and that come twice.
    loss: u64,
    /// Operations that were acknowledged, in order, with when they were begun.
    done: Vec<(u32, Micros, Micros)>,
    begun: BTreeMap<Peer, (u32, Micros)>,
    next: u32,
    /// The longest history that was agreed on.
    agreed: Log,
    id: Id,
}

impl World {
    fn new(seed: u64, peers: u64) -> Self {
        let mut random = Random::new(seed);
        let peers: BTreeMap<_, _> = (1..=peers).map(|i| (Peer(i), Registers::new(Peer(i)))).collect();
        let loss = [0, 0, 50, 200][random.below(4) as usize];
        let mut world = Self {
            random,
            now: 0,
            peers,
            dead: BTreeSet::new(),
            paused: BTreeMap::new(),
            side: BTreeMap::new(),
            mail: BTreeMap::new(),
            serial: 0,
            loss,
            done: Vec::new(),
            begun: BTreeMap::new(),
            next: 0,
            agreed: Vec::new(),
            id: Id(0),
        };
        let group = world.homes(Peer(1));
        for peer in group.peers().to_vec() {
            if peer == Peer(1) || world.random.below(4) == 0 {
                world.at(peer, |r, now, out| r.create(now, Id(0), group, Arc::new(()), Vec::new(), out));
            }
        }
        world
    }

    /// The homes as one peer sees them: those alive on its side.
    fn homes(&self, of: Peer) -> Group {
        Group::new(self.peers.keys().copied().filter(|p| self.is_up(of, *p)))
    }

    fn is_up(&self, of: Peer, other: Peer) -> bool {
        !self.dead.contains(&other) && self.side.get(&of) == self.side.get(&other)
    }

    fn at(&mut self, peer: Peer, act: impl FnOnce(&mut Registers<(), Log>, Micros, &mut Effects<(), Log>)) {
        let mut out = Effects::default();
        act(self.peers.get_mut(&peer).expect("a peer"), self.now, &mut out);
        for (to, message) in out.sent {
            if self.random.below(1000) < self.loss {
                continue;
            }
            let copies = if self.random.below(1000) < self.loss { 2 } else { 1 };
            for _ in 0..copies {
                let slow = if self.random.below(50) == 0 { 3 * SECOND } else { 20 * MILLI };
                let at = self.now + MILLI + self.random.below(slow);
                self.serial += 1;
                self.mail.insert((at, self.serial), (peer, to, message.clone()));
            }
        }
        for (id, event) in out.events {
            assert_eq!(id, self.id);
            match event {
                Event::Changed => self.agree(peer),
                Event::Deposed => drop(self.begun.remove(&peer)),
                Event::Led | Event::Stuck => {}
            }
        }
    }

    fn agree(&mut self, peer: Peer) {
        let (_, log) = self.peers[&peer].peek(self.id).expect("held");
        let mut log = log.clone();
        let Some((operation, begun)) = self.begun.remove(&peer) else { return };
        assert_eq!(log.last(), Some(&operation), "the change that was proposed is the last one");
        self.done.push((operation, begun, self.now));
        // Who hears late that others had accepted its change may have been followed already.
        if log.len() > self.agreed.len() {
            std::mem::swap(&mut log, &mut self.agreed);
        }
        assert!(self.agreed.starts_with(&log), "{log:?} was agreed on, and now {:?}", self.agreed);
    }

    fn step(&mut self) {
        let mail = self.mail.first_key_value().map(|((at, _), _)| *at);
        let wake = self
            .peers
            .iter()
            .filter(|(p, _)| !self.dead.contains(p))
            .filter_map(|(p, r)| Some((r.wake_at()?.max(self.paused.get(p).copied().unwrap_or(0)), *p)))
            .min();
        let at = mail.into_iter().chain(wake.map(|(at, _)| at)).min().unwrap_or(self.now + SECOND);
        self.now = self.now.max(at);
        if let Some((wake, peer)) = wake
            && wake == at
        {
            self.at(peer, Registers::wake);
            return;
        }
        let Some((_, (from, to, message))) = self.mail.pop_first() else { return };
        if self.dead.contains(&to) || self.side.get(&from) != self.side.get(&to) {
            return;
        }
        if let Some(until) = self.paused.get(&to).copied()
            && until > self.now
        {
            self.serial += 1;
            self.mail.insert((until, self.serial), (from, to, message));
            return;
        }
        self.at(to, |r, now, out| r.handle(now, from, message, out));
    }

    /// Something happens that nobody wants.
    fn trouble(&mut self) {
        let alive: Vec<Peer> = self.peers.keys().copied().filter(|p| !self.dead.contains(p)).collect();
        let one = alive[self.random.below(alive.len() as u64) as usize];
        match self.random.below(12) {
            0 if alive.len() > 4 => drop(self.dead.insert(one)),
            1 => drop(self.paused.insert(one, self.now + self.random.below(20 * SECOND))),
            2 => {
                for peer in alive {
                    self.side.insert(peer, self.random.below(2) as u8);
                }
            }
            3 | 4 => self.side.clear(),
            _ => {}
        }
    }

    /// Everybody looks at what it has, and whoever leads begins an operation.
    fn work(&mut self) {
        let alive: Vec<Peer> = self.peers.keys().copied().filter(|p| !self.dead.contains(p)).collect();
        for peer in alive {
            if self.paused.get(&peer).is_some_and(|until| *until > self.now) {
                continue;
            }
            let homes = self.homes(peer);
            // Now and then somebody is believed to be dead who is not.
            let wrong = Peer(self.random.below(40));
            let up: BTreeSet<Peer> =
                self.peers.keys().copied().filter(|p| self.is_up(peer, *p) && *p != wrong).collect();
            let id = self.id;
            self.at(peer, |r, now, out| r.review(now, id, homes, &|p| up.contains(&p), out));
            if let Some((_, log, true)) = self.peers[&peer].leading(id) {
                let mut log = log.clone();
                self.next += 1;
                log.push(self.next);
                self.begun.insert(peer, (self.next, self.now));
                self.at(peer, |r, now, out| r.propose(now, id, log, out).expect("it leads"));
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        let mut look = self.now;
        while self.now < end {
            if self.now >= look {
                look = self.now + SECOND / 2;
                self.trouble();
                self.work();
            }
            self.step();
        }
    }

    /// All is well again: the register must be of use.
    fn recover(&mut self) {
        self.side.clear();
        self.paused.clear();
        self.loss = 0;
        let before = self.done.len();
        for _ in 0..600 {
            self.work();
            let end = self.now + SECOND / 2;
            while self.now < end {
                self.step();
            }
            if self.done.len() > before + 3 {
                return;
            }
        }
        let alive = self.homes(*self.peers.keys().find(|p| !self.dead.contains(p)).expect("one"));
        let state: Vec<_> = self.peers.iter().filter(|(p, _)| !self.dead.contains(p)).collect();
        panic!("nothing more is agreed on; alive {alive:?}\n{state:#?}");
    }
}

/// A register is linearizable if there is one order of its operations in which each comes after those that were done
/// before it was begun. The history that was agreed on is such an order, or there is none.
fn check(world: &World) {
    let place: BTreeMap<u32, usize> = world.agreed.iter().enumerate().map(|(i, o)| (*o, i)).collect();
    assert_eq!(place.len(), world.agreed.len(), "an operation counts once");
    for (operation, _, done) in &world.done {
        let mine = place.get(operation).expect("what was acknowledged is not lost");
        for (other, begun, _) in &world.done {
            assert!(begun <= done || place[other] > *mine, "{operation} was done before {other} was begun");
        }
    }
}

#[test]
fn without_trouble_one_round_trip_agrees() {
    let mut world = World::new(1, 3);
    world.loss = 0;
    world.recover();
    check(&world);
    assert!(world.done.len() >= 3);
    assert!(world.done.iter().skip(1).all(|(_, begun, done)| done - begun < 4 * SECOND));
}

#[test]
fn what_was_agreed_on_is_never_lost_whatever_happens() {
    let mut operations = 0;
    for seed in 0..20_000 {
        let mut world = World::new(seed, 5 + seed % 3);
        world.run(60);
        check(&world);
        operations += world.done.len();
    }
    assert!(operations > 200_000, "only {operations}: nothing happened");
}

#[test]
fn a_register_that_has_lost_a_home_is_of_use_again() {
    for seed in 0..60 {
        let mut world = World::new(seed, 6);
        world.loss = 0;
        world.recover();
        for peer in [Peer(1), Peer(3), Peer(2)] {
            world.dead.insert(peer);
            world.recover();
        }
        check(&world);
    }
}

#[test]
fn with_two_of_three_homes_lost_nothing_is_agreed_on() {
    let mut world = World::new(3, 6);
    world.loss = 0;
    world.recover();
    let done = world.done.len();
    world.dead.extend([Peer(1), Peer(2)]);
    for _ in 0..100 {
        world.work();
        world.step();
    }
    world.work();
    assert_eq!(world.done.len(), done);
}
