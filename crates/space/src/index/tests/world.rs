//! A small simulator: peers on a ring, and a network that delays, loses and doubles messages.

use super::super::{
    Answer, Direction, Entry, Host, Hosted, Key, Label, Memory, Operation, Outcome, Request, Settings, Step,
    Trie,
};
use std::collections::BTreeMap;

pub(super) const TRIE: Trie = Trie { kind: Trie::FREE, shard: 0 };
pub(super) const SECOND: u64 = 1_000_000;
/// How long entries live without a refresh.
pub(super) const LIFE: u64 = 100_000 * SECOND;

pub(super) type Op = Operation<u32, u32>;
type Req = Request<u32, u32>;

/// Numbers that look random and are the same every time.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        super::super::label::mix(self.0)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Put,
    Take,
    Time,
}

enum Event {
    Ask { op: usize, request: Req, token: u32 },
    Request { op: usize, request: Req, token: u32 },
    Answer { op: usize, answer: Answer<u32>, token: u32 },
    Hosted { message: Hosted<u32>, cause: Cause },
    Overdue { op: usize, token: u32 },
    Tick { peer: usize },
}

struct Running {
    peer: usize,
    operation: Op,
    cause: Cause,
    /// The request that waits for an answer.
    token: u32,
    request: Option<Req>,
}

struct Peer {
    host: Host<u32>,
    memory: Memory,
    position: u64,
    is_alive: bool,
}

pub(super) struct World {
    pub(super) now: u64,
    pub(super) random: Random,
    /// Percentages.
    pub(super) loss: u64,
    pub(super) doubles: u64,
    peers: Vec<Peer>,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    running: BTreeMap<usize, Running>,
    operations: usize,
    pub(super) done: BTreeMap<usize, Outcome<u32>>,
    pub(super) messages: BTreeMap<Cause, usize>,
    /// Messages for each peer.
    pub(super) received: Vec<usize>,
}

impl World {
    pub(super) fn new(peers: usize, seed: u64) -> Self {
        let mut random = Random(seed << 32);
        let peer = |id| Peer {
            host: Host::new(id as u64, Settings::default()),
            memory: Memory::default(),
            position: random.number(),
            is_alive: true,
        };
        let peers: Vec<Peer> = (0..peers).map(peer).collect();
        let received = vec![0; peers.len()];
        let mut world = Self {
            now: 1_000 * SECOND,
            random,
            loss: 0,
            doubles: 0,
            peers,
            queue: BTreeMap::new(),
            sequence: 0,
            running: BTreeMap::new(),
            operations: 0,
            done: BTreeMap::new(),
            messages: BTreeMap::new(),
            received,
        };
        for peer in 0..world.peers.len() {
            let after = world.random.below(2 * SECOND);
            world.push(after, Event::Tick { peer });
        }
        world
    }

    fn push(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    /// Sends a message over the network.
    fn send(&mut self, cause: Cause, event: impl Fn() -> Event) {
        *self.messages.entry(cause).or_default() += 1;
        let copies = 1 + usize::from(self.random.chance(self.doubles));
        for _ in 0..copies {
            if !self.random.chance(self.loss) {
                // Mostly quick, now and then very late.
                let most = if self.random.chance(5) { 400_000 } else { 20_000 };
                let after = 1_000 + self.random.below(most);
                self.push(after, event());
            }
        }
    }

    fn owner(&self, position: u64) -> usize {
        let distance = |p: &Peer| p.position.wrapping_sub(position);
        let alive = self.peers.iter().enumerate().filter(|(_, p)| p.is_alive);
        alive.min_by_key(|(_, p)| distance(p)).map(|(at, _)| at).unwrap()
    }

    pub(super) fn host_of_root(&self) -> usize {
        self.owner(Label::root(TRIE).position())
    }

    pub(super) fn crash(&mut self, peer: usize) {
        self.peers[peer].is_alive = false;
    }

    /// A peer that crashed comes back with nothing.
    pub(super) fn restart(&mut self, peer: usize) {
        let id = self.random.number();
        let old = &mut self.peers[peer];
        (old.host, old.memory, old.is_alive) = (Host::new(id, Settings::default()), Memory::default(), true);
    }

    pub(super) fn is_alive(&self, peer: usize) -> bool {
        self.peers[peer].is_alive
    }

    pub(super) fn start(&mut self, peer: usize, operation: Op, is_take: bool) -> usize {
        let op = self.operations;
        self.operations += 1;
        let cause = if is_take { Cause::Take } else { Cause::Put };
        self.running.insert(op, Running { peer, operation, cause, token: 0, request: None });
        self.advance(op, None);
        op
    }

    pub(super) fn insert(&mut self, peer: usize, entry: Entry<u32>) -> usize {
        self.start(peer, Op::insert(TRIE, entry), false)
    }

    pub(super) fn take(
        &mut self,
        peer: usize,
        query: u32,
        bounds: (Key, Key),
        direction: Direction,
    ) -> usize {
        let id = self.random.number();
        self.start(peer, Op::take(TRIE, id, query, Some(bounds), direction, 1000), true)
    }

    fn advance(&mut self, op: usize, answer: Option<Answer<u32>>) {
        let Some(running) = self.running.get_mut(&op) else { return };
        let memory = &mut self.peers[running.peer].memory;
        match running.operation.next(memory, answer) {
            Step::Done(outcome) => {
                self.running.remove(&op);
                self.done.insert(op, outcome);
            }
            Step::Ask { label, position, request, after } => {
                assert_eq!((label, position), (request.label(), request.label().position()));
                running.token += 1;
                if running.token > 14 {
                    println!("LONG {op} {}", running.token);
                }
                running.request = Some(request.clone());
                let token = running.token;
                self.push(after, Event::Ask { op, request, token });
            }
        }
    }

    fn step(&mut self) -> bool {
        let Some(((at, _), event)) = self.queue.pop_first() else { return false };
        self.now = at;
        let mut out = Vec::new();
        let mut fits = |query: &u32, pointer: &u32| pointer.is_multiple_of(*query);
        let mut cause = Cause::Time;
        match event {
            Event::Ask { op, request, token } => {
                let Some(running) = self.running.get(&op) else { return true };
                self.send(running.cause, || Event::Request { op, request: request.clone(), token });
                self.push(SECOND, Event::Overdue { op, token });
            }
            Event::Request { op, request, token } => {
                let owner = self.owner(request.label().position());
                self.received[owner] += 1;
                cause = if matches!(request, Request::Take { .. }) { Cause::Take } else { Cause::Put };
                let answer = self.peers[owner].host.handle(at, request, &mut fits, &mut out).unwrap();
                self.send(cause, || Event::Answer { op, answer: answer.clone(), token });
            }
            Event::Answer { op, answer, token } => {
                if self.running.get(&op).is_some_and(|r| r.token == token) {
                    self.advance(op, Some(answer));
                }
            }
            Event::Overdue { op, token } => {
                if let Some(running) = self.running.get(&op).filter(|r| r.token == token) {
                    let request = running.request.clone().unwrap();
                    self.push(0, Event::Ask { op, request, token });
                }
            }
            Event::Hosted { message, cause: why } => {
                cause = why;
                let owner = self.owner(message.position());
                self.received[owner] += 1;
                let request: Req = Request::Maintain(message);
                assert!(self.peers[owner].host.handle(at, request, &mut fits, &mut out).is_none());
            }
            Event::Tick { peer } => {
                if self.peers[peer].is_alive {
                    let mut host =
                        std::mem::replace(&mut self.peers[peer].host, Host::new(0, Settings::default()));
                    host.hand_over(at, &mut |position| self.owner(position) == peer, &mut out);
                    host.expire(at, &mut out);
                    self.peers[peer].host = host;
                }
                self.push(2 * SECOND, Event::Tick { peer });
            }
        }
        for message in out {
            self.send(cause, || Event::Hosted { message: message.clone(), cause });
        }
        true
    }

    pub(super) fn run_for(&mut self, time: u64) {
        let end = self.now + time;
        while self.queue.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Until hosts have nothing more to tell each other.
    pub(super) fn quiesce(&mut self) {
        self.run_for(3 * SECOND);
        while self.queue.values().any(|event| matches!(event, Event::Hosted { .. })) {
            self.step();
        }
    }

    /// Until this operation has ended.
    pub(super) fn finish(&mut self, op: usize) -> Outcome<u32> {
        while !self.done.contains_key(&op) {
            assert!(self.step());
        }
        self.done[&op].clone()
    }

    /// Until all operations have ended.
    pub(super) fn finish_all(&mut self) {
        let limit = self.now + 600 * SECOND;
        while !self.running.is_empty() && self.step() {
            assert!(self.now < limit, "some operations never end");
        }
    }

    /// Leaves, inner nodes and entries of all peers that are alive.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        let sizes = self.peers.iter().filter(|p| p.is_alive).map(|p| p.host.sizes());
        sizes.fold((0, 0, 0), |(l, i, e), s| (l + s.leaves, i + s.inner, e + s.entries))
    }

    /// Takes everything there is, one after the other.
    pub(super) fn empty(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            let op = self.take(0, 1, (Key::MIN, Key::MAX), Direction::Up);
            let Outcome::Taken(entry) = self.finish(op) else { return all };
            all.push(entry.id);
        }
    }
}

pub(super) fn entry(key: Key, id: u64, stamp: u64) -> Entry<u32> {
    Entry { key, id, stamp, life: LIFE, pointer: id as u32 }
}
