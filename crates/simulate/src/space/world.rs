//! Nodes, their messages, and the time.

use super::load::Load;
use super::outcome::SpaceOutcome;
use super::swarm::{Known, Routing, Swarm, resource};
use crate::random::Random;
use catena_space::id::{Id, Peer};
use catena_space::molecule::{Body, Ending, Kind, Matter, Name, State};
use catena_space::register::Saved;
use catena_space::route::{Contact, Effects, FullView, Ring, Route};
use catena_space::time::{MILLI, Micros, SECOND};
use catena_space::{Message, Node, Note, Output};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A message arrives: the slot it is kept in.
    Arrives(u32),
    /// A node wanted to be woken.
    Wakes(u32),
    /// A task is executed: by whom, and in which slot it is described.
    Ends(u32, u32),
    /// A workflow enters.
    Enters(u32),
    /// A peer misses what a source of a task has given: in which slot it is described.
    Misses(u32, u32),
    /// A peer has what came of a workflow.
    Takes(u32, u32),
    /// A peer dies, or stands still.
    Dies,
    Pauses,
    /// A peer comes: in which place.
    Comes(u32),
    /// A peer looks whether it is alone.
    Joins(u32),
    /// The network is cut, or mended.
    Cuts,
    Mends,
}

/// Peers have random places: there is nothing to hash.
#[derive(Default)]
struct Straight(u64);

impl Hasher for Straight {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

type Disk = BTreeMap<Id, Box<Saved<Body, State>>>;

struct World<'a> {
    swarm: &'a Swarm,
    load: Arc<Load>,
    random: Random,
    now: Micros,
    queue: BinaryHeap<Reverse<(Micros, u64, u32)>>,
    serial: u64,
    events: Vec<Event>,
    free_events: Vec<u32>,
    mail: Vec<Option<(Peer, u32, Message)>>,
    free_mail: Vec<u32>,
    nodes: Vec<Option<Node>>,
    places: HashMap<Peer, u32, BuildHasherDefault<Straight>>,
    names: Vec<Peer>,
    speeds: Vec<f64>,
    /// What each peer has written down, if peers come back.
    disks: Vec<Disk>,
    wakes: Vec<Micros>,
    paused: Vec<Micros>,
    side: Vec<bool>,
    cut: bool,
    /// What each peer executes.
    running: BTreeMap<(u32, Id), (u32, Micros)>,
    ends: Vec<(Id, u32)>,
    /// Tasks whose sources' data nobody has.
    misses: Vec<(Id, u32, Name)>,
    ready: HashMap<Id, Micros>,
    commits: HashMap<Id, u32>,
    workflows: HashMap<Id, usize>,
    over: usize,
    out: SpaceOutcome,
}

/// The number of a workflow on the ring.
fn workflow_id(seed: u64, workflow: usize) -> Id {
    Id::of(format!("workflow {workflow} of {seed}").as_bytes())
}

/// Executes workflows among peers that do not exist.
pub fn simulate_space(swarm: &Swarm, load: &Load) -> SpaceOutcome {
    let mut world = World::new(swarm, load);
    world.run();
    world.finish()
}

impl<'a> World<'a> {
    fn new(swarm: &'a Swarm, load: &Load) -> Self {
        let mut random = Random::new(swarm.seed);
        let somewhere = (0..swarm.peers).map(|_| Peer(random.next())).collect();
        let mut peers: Vec<Peer> = swarm.places.clone().unwrap_or(somewhere);
        peers.sort_unstable();
        peers.dedup();
        let count = peers.len();
        let load = Arc::new(load.clone());
        let mut world = Self {
            swarm,
            load: load.clone(),
            random,
            now: 0,
            queue: BinaryHeap::new(),
            serial: 0,
            events: Vec::new(),
            free_events: Vec::new(),
            mail: Vec::new(),
            free_mail: Vec::new(),
            nodes: (0..count).map(|_| None).collect(),
            places: peers.iter().enumerate().map(|(i, p)| (*p, i as u32)).collect(),
            names: peers.clone(),
            speeds: swarm.speeds(),
            disks: (0..count).map(|_| Disk::new()).collect(),
            wakes: vec![Micros::MAX; count],
            paused: vec![0; count],
            side: vec![false; count],
            cut: false,
            running: BTreeMap::new(),
            ends: Vec::new(),
            misses: Vec::new(),
            ready: HashMap::new(),
            commits: HashMap::new(),
            workflows: HashMap::new(),
            over: 0,
            out: SpaceOutcome { received: vec![0; count], ..SpaceOutcome::default() },
        };
        let contacts: Vec<Contact> = peers.iter().map(|p| Contact::new(*p, String::new())).collect();
        for place in 0..count {
            let peer = peers[place];
            let mut effects = Effects::default();
            let route: Box<dyn Route> = match swarm.routing {
                Routing::Full => {
                    Box::new(FullView::among(0, contacts[place].clone(), &contacts, swarm.seed, &mut effects))
                }
                Routing::Ring => Box::new(Ring::among(0, peer, &peers, swarm.seed)),
            };
            world.nodes[place] = Some(world.node(peer, route));
            world.at(place as u32, |node, now, speed| node.offer(now, Some(resource(node.me().0, speed))));
        }
        world.out.workflows = vec![None; load.workflows.len()];
        for (number, flow) in load.workflows.iter().enumerate() {
            world.workflows.insert(workflow_id(swarm.seed, number), number);
            // Peers first say that they are there.
            world.after(flow.at + SECOND, Event::Enters(number as u32));
        }
        world.plan_trouble();
        world
    }

    fn plan_trouble(&mut self) {
        let trouble = &self.swarm.trouble;
        let (cut, churn, pauses) = (trouble.cut, trouble.churn, trouble.pauses.0);
        if let Some((from, to, part)) = cut {
            self.side = (0..self.nodes.len()).map(|_| self.random.below(100) < part).collect();
            self.out.beyond = self.side.iter().filter(|s| **s).count();
            self.after(from, Event::Cuts);
            self.after(to, Event::Mends);
        }
        if churn > 0.0 {
            self.after_random(churn, Event::Dies);
        }
        if pauses > 0.0 {
            self.after_random(pauses, Event::Pauses);
        }
    }

    /// Something that happens to so many peers of a thousand each minute happens next.
    fn after_random(&mut self, per_mille: f64, event: Event) {
        let rate = per_mille / 1000.0 * self.nodes.len() as f64 / 60.0;
        let pause = (self.random.exponential() / rate * SECOND as f64) as Micros;
        let at = self.now + pause + 1;
        if self.swarm.trouble.until.is_none_or(|until| at < until) {
            self.after(pause + 1, event);
        }
    }

    fn node(&mut self, peer: Peer, route: Box<dyn Route>) -> Node {
        Node::new(
            self.now,
            peer,
            route,
            self.swarm.chemistry.clone(),
            Box::new(Known(self.load.clone())),
            self.swarm.settings.clone(),
            self.swarm.seed,
        )
    }

    fn after(&mut self, pause: Micros, event: Event) {
        let slot = match self.free_events.pop() {
            Some(slot) => {
                self.events[slot as usize] = event;
                slot
            }
            None => {
                self.events.push(event);
                self.events.len() as u32 - 1
            }
        };
        self.serial += 1;
        self.queue.push(Reverse((self.now + pause, self.serial, slot)));
    }

    /// Something happens at a node, and what comes of it is done.
    fn at(&mut self, place: u32, act: impl FnOnce(&mut Node, Micros, f64)) {
        let Some(node) = &mut self.nodes[place as usize] else { return };
        act(node, self.now, self.speeds[place as usize]);
        let me = node.me();
        for output in node.outputs() {
            self.done(place, me, output);
        }
        if let Some(node) = &self.nodes[place as usize] {
            let at = node.wake_at().max(self.now);
            if at < self.wakes[place as usize] {
                self.wakes[place as usize] = at;
                self.after(at - self.now, Event::Wakes(place));
            }
        }
    }

    fn done(&mut self, place: u32, me: Peer, output: Output) {
        match output {
            Output::Send(to, message) => self.send(me, to, message),
            Output::Start { task, epoch, body, inputs } => {
                let Matter::Task(order) = &body.matter else { return };
                let of_tasks: Vec<Name> =
                    inputs.iter().map(|(name, _)| *name).filter(|name| name.kind == Kind::Task).collect();
                if !of_tasks.is_empty() && self.loses() {
                    let source = of_tasks[self.random.below(of_tasks.len() as u64) as usize];
                    self.misses.push((task, epoch, source));
                    let slot = self.misses.len() as u32 - 1;
                    return self.after(MILLI, Event::Misses(place, slot));
                }
                let number = |at: usize| {
                    u32::from_le_bytes(order.payload[at..at + 4].try_into().expect("eight bytes"))
                };
                let length = self.load.workflows[number(0) as usize].tasks[number(4) as usize - 1].length;
                let takes = (length as f64 / self.speeds[place as usize]) as Micros;
                self.out.started += 1;
                if let Some(ready) = self.ready.remove(&task) {
                    self.out.waits.push(self.now - ready);
                }
                self.running.insert((place, task), (epoch, self.now + takes));
                self.ends.push((task, epoch));
                let slot = self.ends.len() as u32 - 1;
                self.after(takes, Event::Ends(place, slot));
            }
            Output::Stop { task, epoch } => {
                if self.running.get(&(place, task)).is_some_and(|(e, _)| *e == epoch) {
                    self.running.remove(&(place, task));
                    self.offer(place);
                }
            }
            // Nobody reads what those have written who do not come back.
            Output::Save(..) if !self.swarm.trouble.returns => {}
            Output::Save(id, saved) => {
                let disk = &mut self.disks[place as usize];
                match saved {
                    Some(saved) => drop(disk.insert(id, saved)),
                    None => drop(disk.remove(&id)),
                }
            }
            Output::Over { workflow, .. } => {
                let number = self.workflows[&workflow] as u32;
                self.after(0, Event::Takes(place, number));
            }
            Output::Entered(_)
            | Output::Progress { .. }
            | Output::Unheard(_)
            | Output::Gone(_)
            | Output::Met(_) => {}
            Output::Note(note) => self.note(place, note),
        }
    }

    fn offer(&mut self, place: u32) {
        let busy = self.running.range((place, Id(0))..=(place, Id(u128::MAX))).next().is_some();
        if !busy {
            self.at(place, |node, now, speed| node.offer(now, Some(resource(node.me().0, speed))));
        }
    }

    fn note(&mut self, place: u32, note: Note) {
        match note {
            Note::Ready(task, _) => drop(self.ready.entry(task).or_insert(self.now)),
            Note::Committed(task, epoch, last) => {
                self.out.stale += u64::from(epoch != last);
                match self.commits.insert(task, epoch) {
                    None => {
                        self.out.committed += 1;
                        self.out.done.push((self.now, self.side[place as usize]));
                    }
                    // Whoever takes over says it again.
                    Some(before) => self.out.twice += u64::from(before != epoch),
                }
            }
            Note::Again(task) => {
                if self.commits.remove(&task).is_some() {
                    self.out.committed -= 1;
                    self.out.again += 1;
                }
            }
            Note::Wasted(..) => self.out.wasted += 1,
            Note::Blocked(..) => self.out.blocked += 1,
            Note::Over(workflow, true) => {
                let number = self.workflows[&workflow];
                let began = self.load.workflows[number].at + SECOND;
                if self.out.workflows[number].is_none() {
                    self.out.workflows[number] = Some(self.now - began);
                    self.out.makespan = self.now - SECOND;
                    self.over += 1;
                }
            }
            Note::Leased(..) | Note::Begun(_) | Note::Over(..) => {}
        }
    }

    fn send(&mut self, from: Peer, to: Peer, message: Message) {
        let kind = message.kind();
        *self.out.messages.entry(kind).or_insert(0) += 1;
        let upkeep = message.is_upkeep();
        if upkeep {
            self.out.upkeep += 1;
        } else {
            self.out.control += 1;
        }
        let Some(place) = self.places.get(&to).copied() else { return };
        if !upkeep {
            self.out.received[place as usize] += 1;
        }
        let trouble = &self.swarm.trouble;
        let calm = self.is_calm();
        if !calm && trouble.loss > 0 && self.random.below(1000) < trouble.loss {
            return;
        }
        let (least, most) = self.swarm.hop;
        let mut pause = least + self.random.below(most - least + 1);
        let (some, late) = trouble.late;
        if !calm && some > 0 && self.random.below(1000) < some {
            pause += self.random.below(late);
        }
        let slot = match self.free_mail.pop() {
            Some(slot) => {
                self.mail[slot as usize] = Some((from, place, message));
                slot
            }
            None => {
                self.mail.push(Some((from, place, message)));
                self.mail.len() as u32 - 1
            }
        };
        self.after(pause, Event::Arrives(slot));
    }

    fn run(&mut self) {
        let all = self.load.workflows.len();
        let mut end = self.swarm.end;
        let mut over = false;
        while !over || self.swarm.linger > 0 {
            let Some(Reverse((at, _, slot))) = self.queue.pop() else { break };
            if at > end {
                break;
            }
            self.now = at;
            let event = self.events[slot as usize];
            self.free_events.push(slot);
            self.out.events += 1;
            self.happens(event);
            if self.over == all && !over {
                over = true;
                end = self.now + self.swarm.linger;
            }
        }
    }

    fn happens(&mut self, event: Event) {
        let trace = match event {
            Event::Arrives(slot) => {
                self.mail[slot as usize].as_ref().map_or(0, |(f, t, _)| f.0 ^ u64::from(*t))
            }
            Event::Wakes(place) => u64::from(place) << 8 | 1,
            Event::Ends(place, slot) | Event::Takes(place, slot) | Event::Misses(place, slot) => {
                u64::from(place) << 32 | u64::from(slot)
            }
            Event::Enters(number) | Event::Comes(number) | Event::Joins(number) => u64::from(number) << 8 | 2,
            Event::Dies | Event::Pauses | Event::Cuts | Event::Mends => 3,
        };
        self.out.digest = (self.out.digest ^ trace ^ self.now).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
        match event {
            Event::Arrives(slot) => {
                let Some((from, to, message)) = self.mail[slot as usize].take() else { return };
                if let Some(until) = self.is_paused(to) {
                    self.mail[slot as usize] = Some((from, to, message));
                    return self.after(until - self.now, Event::Arrives(slot));
                }
                self.free_mail.push(slot);
                if self.cut {
                    let here = self.places.get(&from).is_some_and(|p| self.side[*p as usize]);
                    if here != self.side[to as usize] {
                        return;
                    }
                }
                self.at(to, |node, now, _| node.receive(now, from, message));
            }
            Event::Wakes(place) => {
                if self.wakes[place as usize] != self.now {
                    return;
                }
                self.wakes[place as usize] = Micros::MAX;
                if let Some(until) = self.is_paused(place) {
                    self.wakes[place as usize] = until;
                    return self.after(until - self.now, Event::Wakes(place));
                }
                self.at(place, |node, now, _| node.wake(now));
            }
            Event::Ends(place, slot) => {
                let (task, epoch) = self.ends[slot as usize];
                if self.running.get(&(place, task)) != Some(&(epoch, self.now)) {
                    return;
                }
                if let Some(until) = self.is_paused(place) {
                    self.running.insert((place, task), (epoch, until));
                    return self.after(until - self.now, Event::Ends(place, slot));
                }
                self.running.remove(&(place, task));
                let ending = Ending { good: true, matter: [].into() };
                self.at(place, |node, now, _| node.finished(now, task, epoch, ending));
                self.offer(place);
            }
            Event::Misses(place, slot) => {
                let (task, epoch, source) = self.misses[slot as usize];
                self.at(place, |node, now, _| node.lost(now, task, epoch, source));
                self.offer(place);
            }
            Event::Takes(place, number) => self.takes(place, number),
            Event::Enters(number) => self.enters(number),
            Event::Dies => {
                // Who gives a workflow in gives it in again elsewhere if it is not told that it is in.
                let entering = |node: &Option<Node>| node.as_ref().is_some_and(Node::is_entering);
                let place = self.anybody();
                // Somebody has to be left.
                let others = self.nodes.iter().flatten().count() > 1;
                if others && !entering(&self.nodes[place as usize]) {
                    self.kill(place);
                    let absence = self.swarm.trouble.absence;
                    self.after(absence + 1, Event::Comes(place));
                }
                self.after_random(self.swarm.trouble.churn, Event::Dies);
            }
            Event::Pauses => {
                let place = self.anybody();
                let (rate, longest) = self.swarm.trouble.pauses;
                self.paused[place as usize] = self.now + self.random.below(longest);
                self.after_random(rate, Event::Pauses);
            }
            Event::Comes(place) => self.comes(place),
            Event::Joins(place) => self.joins(place),
            Event::Cuts => self.cut = true,
            Event::Mends => self.cut = false,
        }
    }

    fn is_paused(&self, place: u32) -> Option<Micros> {
        Some(self.paused[place as usize]).filter(|until| *until > self.now)
    }

    /// A peer that is there.
    fn anybody(&mut self) -> u32 {
        loop {
            let place = self.random.below(self.nodes.len() as u64) as u32;
            if self.nodes[place as usize].is_some() {
                return place;
            }
        }
    }

    fn enters(&mut self, number: u32) {
        if number == 0 {
            self.out.before = self.out.messages.clone();
            self.out.began = self.now;
        }
        let place = self.anybody();
        let id = workflow_id(self.swarm.seed, number as usize);
        self.at(place, |node, now, _| node.submit(now, id, number.to_le_bytes().into()));
    }

    /// What came of a workflow is fetched, unless the data of a task are lost.
    fn takes(&mut self, place: u32, number: u32) {
        let id = workflow_id(self.swarm.seed, number as usize);
        let tasks = self.load.workflows[number as usize].tasks.len() as u64;
        if self.loses() {
            let task = Name::task(1 + self.random.below(tasks) as u32);
            self.at(place, |node, now, _| node.lacking(now, id, task));
        } else {
            self.at(place, |node, now, _| node.taken(now, id));
        }
    }

    /// Whether data that are needed now are lost.
    fn loses(&mut self) -> bool {
        let lost = self.swarm.trouble.lost;
        !self.is_calm() && lost > 0 && self.random.below(1000) < lost
    }

    fn is_calm(&self) -> bool {
        self.swarm.trouble.until.is_some_and(|until| self.now >= until)
    }

    fn kill(&mut self, place: u32) {
        if let Some(node) = self.nodes[place as usize].take() {
            self.places.remove(&node.me());
            self.wakes[place as usize] = Micros::MAX;
            let mine = (place, Id(0))..=(place, Id(u128::MAX));
            let lost: Vec<(u32, Id)> = self.running.range(mine).map(|(k, _)| *k).collect();
            for key in lost {
                self.running.remove(&key);
            }
        }
    }

    fn comes(&mut self, place: u32) {
        let disk = std::mem::take(&mut self.disks[place as usize]);
        let returns = self.swarm.trouble.returns;
        let peer = if returns { self.names[place as usize] } else { Peer(self.random.next()) };
        let route: Box<dyn Route> = match self.swarm.routing {
            Routing::Full => {
                let contact = Contact::new(peer, String::new()).started(self.now);
                Box::new(FullView::new(contact, self.swarm.seed))
            }
            Routing::Ring => Box::new(Ring::new(self.now, peer, self.swarm.seed)),
        };
        let mut node = self.node(peer, route);
        if returns {
            for (id, saved) in &disk {
                node.restore(self.now, *id, (**saved).clone());
            }
            self.disks[place as usize] = disk;
        }
        self.nodes[place as usize] = Some(node);
        self.places.insert(peer, place);
        self.at(place, |node, now, speed| node.offer(now, Some(resource(peer.0, speed))));
        self.joins(place);
    }

    /// A peer asks somebody to let it in, until it knows enough others: a few may have come together where nobody else
    /// could hear them.
    fn joins(&mut self, place: u32) {
        if self.nodes[place as usize].as_ref().is_none_or(|node| node.route().known().len() >= 4) {
            return;
        }
        let through = self.anybody();
        let contact = self.nodes[through as usize].as_ref().expect("there").me();
        self.at(place, |node, now, _| node.join(now, Contact::new(contact, String::new())));
        self.after(5 * SECOND, Event::Joins(place));
    }

    fn finish(mut self) -> SpaceOutcome {
        self.out.end = self.now;
        self.out
    }
}
