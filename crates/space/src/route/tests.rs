//! Peers that come, go, are cut off and come back: after a while everybody finds the way again.

use super::{Contact, Effects, FullView, Message, Ring, Route};
use crate::id::{Group, Peer, Position, distance};
use crate::random::Random;
use crate::time::{MILLI, Micros, SECOND};
use std::collections::{BTreeMap, BTreeSet};

struct World {
    random: Random,
    now: Micros,
    full: bool,
    peers: BTreeMap<Peer, Box<dyn Route>>,
    side: BTreeSet<Peer>,
    mail: BTreeMap<(Micros, u64), (Peer, Peer, Message)>,
    serial: u64,
}

fn contact(peer: Peer) -> Contact {
    Contact::new(peer, String::new())
}

impl World {
    fn new(seed: u64, full: bool, count: usize) -> Self {
        let mut random = Random::new(seed);
        let mut all: Vec<Peer> = (0..count).map(|_| Peer(random.number())).collect();
        all.sort_unstable();
        let mut world = Self {
            random,
            now: 0,
            full,
            peers: BTreeMap::new(),
            side: BTreeSet::new(),
            mail: BTreeMap::new(),
            serial: 0,
        };
        let contacts: Vec<Contact> = all.iter().copied().map(contact).collect();
        for peer in &all {
            let mut out = Effects::default();
            let route: Box<dyn Route> = if full {
                Box::new(FullView::among(0, contact(*peer), &contacts, seed, &mut out))
            } else {
                Box::new(Ring::among(0, *peer, &all, seed))
            };
            world.peers.insert(*peer, route);
            world.take(*peer, out);
        }
        world
    }

    fn take(&mut self, peer: Peer, out: Effects) {
        for (to, message) in out.sent {
            self.serial += 1;
            let at = self.now + 2 * MILLI + self.random.below(18 * MILLI);
            self.mail.insert((at, self.serial), (peer, to, message));
        }
        for at in out.seek {
            let start = self.peers.get_mut(&peer).expect("a peer").detour(at).unwrap_or(peer);
            if !self.peers.contains_key(&start) || !self.hears(peer, start) {
                continue;
            }
            if let Some(homes) = self.seek(start, at) {
                let mut out = Effects::default();
                self.peers.get_mut(&peer).expect("a peer").found(self.now, at, homes, &mut out);
                self.take(peer, out);
            }
        }
    }

    /// Goes from peer to peer, as messages do.
    fn seek(&mut self, from: Peer, at: Position) -> Option<Group> {
        self.steps(from, at).and_then(|(owner, _)| self.peers[&owner].homes(at))
    }

    fn steps(&mut self, from: Peer, at: Position) -> Option<(Peer, usize)> {
        let mut here = from;
        for steps in 0..64 {
            match self.peers[&here].next(at) {
                None => return Some((here, steps)),
                Some(next) if !self.peers.contains_key(&next) || !self.hears(here, next) => {
                    // It does not answer, and another way is tried.
                    let route = self.peers.get_mut(&here).expect("a peer");
                    route.silent(self.now, next, &mut Effects::default());
                }
                Some(next) => here = next,
            }
        }
        None
    }

    fn hears(&self, one: Peer, other: Peer) -> bool {
        self.side.contains(&one) == self.side.contains(&other)
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        loop {
            let mail = self.mail.first_key_value().map(|((at, _), _)| *at);
            let (wake, sleeper) =
                self.peers.iter().map(|(p, r)| (r.wake_at(), *p)).min().expect("somebody is there");
            let at = wake.min(mail.unwrap_or(Micros::MAX));
            if at > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(at);
            let mut out = Effects::default();
            let peer = if wake == at {
                self.peers.get_mut(&sleeper).expect("a peer").wake(self.now, &mut out);
                sleeper
            } else {
                let (_, (from, to, message)) = self.mail.pop_first().expect("seen");
                if !self.hears(from, to) {
                    continue;
                }
                let Some(route) = self.peers.get_mut(&to) else { continue };
                route.handle(self.now, from, message, &mut out);
                to
            };
            self.take(peer, out);
        }
    }

    /// Whoever knows few others asks anybody: they may have come together where nobody else could hear them.
    fn join_again(&mut self) {
        let few = |r: &dyn Route| r.known().len() < 4;
        let alone: Vec<Peer> = self.peers.iter().filter(|(_, r)| few(&***r)).map(|(p, _)| *p).collect();
        for peer in alone {
            let through = self.anybody();
            let mut out = Effects::default();
            self.peers.get_mut(&peer).expect("a peer").join(self.now, contact(through), &mut out);
            self.take(peer, out);
        }
    }

    fn anybody(&mut self) -> Peer {
        *self.peers.keys().nth(self.random.below(self.peers.len() as u64) as usize).expect("one")
    }

    fn join(&mut self) {
        let through = self.anybody();
        let peer = Peer(self.random.number());
        let mut route: Box<dyn Route> = if self.full {
            Box::new(FullView::new(contact(peer), 7))
        } else {
            Box::new(Ring::new(self.now, peer, 7))
        };
        let mut out = Effects::default();
        route.join(self.now, contact(through), &mut out);
        self.peers.insert(peer, route);
        self.take(peer, out);
    }

    fn kill(&mut self) {
        let one = *self.peers.keys().nth(self.random.below(self.peers.len() as u64) as usize).expect("one");
        self.peers.remove(&one);
    }

    /// Of those who look for something from anywhere, how many do not get to the right homes.
    fn astray(&mut self) -> usize {
        let all: Vec<Peer> = self.peers.keys().copied().collect();
        let looks = (0..200).map(|_| (self.random.number(), self.random.number())).collect::<Vec<_>>();
        let mut wrong = 0;
        for (who, at) in looks {
            let mut homes = all.clone();
            homes.sort_by_key(|p| distance(at, p.0));
            let found = self.seek(all[who as usize % all.len()], at);
            wrong += usize::from(found != Some(Group::new(homes)));
        }
        wrong
    }
}

#[test]
fn everybody_finds_every_place_in_few_steps() {
    let mut world = World::new(1, false, 1000);
    assert_eq!(world.astray(), 0);
    let all: Vec<Peer> = world.peers.keys().copied().collect();
    let steps: usize =
        (0..1000).map(|i| world.steps(all[i], all[i * 7 % 1000].0 - 1).expect("a way").1).sum();
    assert!(steps < 6500, "{steps} steps for 1000 places");
    let mut full = World::new(1, true, 30);
    let first = *full.peers.keys().next().expect("one");
    assert!((0..50).all(|i| full.steps(first, i << 58).expect("a way").1 <= 1));
}

#[test]
fn who_is_gone_is_forgotten_and_who_comes_is_found() {
    for (full, count) in [(false, 60), (true, 40), (false, 6), (true, 3)] {
        let mut world = World::new(2, full, count);
        for round in 0..8 {
            for _ in 0..count / 20 {
                world.kill();
            }
            world.join();
            world.run(60);
            assert!(round < 7 || world.peers.len() > 1);
        }
        world.run(240);
        assert_eq!(world.astray(), 0, "full {full}, {count} peers");
    }
}

#[test]
fn two_halves_of_a_network_that_was_cut_find_each_other() {
    for (full, count) in [(false, 200), (true, 40)] {
        let mut world = World::new(3, full, count);
        world.run(20);
        let part: Vec<Peer> = world.peers.keys().copied().collect();
        world.side = part.into_iter().filter(|_| world.random.below(10) < 3).collect();
        world.run(60);
        world.side.clear();
        world.run(300);
        assert_eq!(world.astray(), 0, "full {full}");
    }
}

#[test]
fn a_network_that_is_cut_while_peers_come_and_go_heals() {
    for (full, seed) in (0..12).map(|seed| (false, seed)).chain([(true, 9)]) {
        let mut world = World::new(seed, full, 150);
        world.run(20);
        let part: Vec<Peer> = world.peers.keys().copied().collect();
        world.side = part.into_iter().filter(|_| world.random.below(10) < 3).collect();
        for _ in 0..12 {
            world.kill();
            world.run(5);
            world.join();
        }
        world.side.clear();
        for _ in 0..40 {
            world.join_again();
            world.run(10);
        }
        assert_eq!(world.astray(), 0, "full {full}, seed {seed}");
    }
}

#[test]
fn a_group_begins_with_one() {
    for full in [false, true] {
        let mut world = World::new(4, full, 1);
        for _ in 0..12 {
            world.join();
            world.run(10);
        }
        world.run(120);
        assert_eq!(world.astray(), 0, "full {full}");
    }
}

#[test]
fn a_ring_knows_about_how_many_it_has() {
    let world = World::new(5, false, 500);
    let guesses: Vec<usize> = world.peers.values().map(|r| r.estimate()).collect();
    let mean = guesses.iter().sum::<usize>() / guesses.len();
    assert!((350..800).contains(&mean), "{mean}");
}
