//! A peer of the space: what it does when a message comes, when time passes, when something is done.
//!
//! Each thing a peer does has its place: [`home`] leads tasks from waiting to done, [`parcel`] takes workflows and levels
//! apart and puts the results together, [`holder`] executes tasks for others, [`seek`] looks for resources and for tasks in
//! the index, [`entry`] gives workflows in and gets results back. [`call`] repeats what is not answered.

mod call;
mod entry;
mod holder;
mod home;
mod parcel;
mod seek;

use crate::agenda::Agenda;
use crate::chemistry::Chemistry;
use crate::id::{Group, Id, Peer, Position};
use crate::index;
use crate::message::{Message, Reply, Request, Tell, Way};
use crate::molecule::{Body, Ending, Name, Order, Pointer, State, Wanted};
use crate::random::Random;
use crate::register::{self, Registers, Saved};
use crate::route::{self, Contact, Route};
use crate::time::{Micros, SECOND};
use call::{Call, To};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How a peer behaves. All times are microseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A task whose executor is not heard of for so long is given to another one.
    pub lease: Micros,
    /// Into how many parts the index is cut, so that no peer has all of the best resources.
    pub shards: u16,
    /// So many free resources or waiting tasks are in one leaf of the index. More make it shallower, and busier where the
    /// best resources are.
    pub leaf: usize,
    /// A free resource says so again after this time.
    pub refresh: Micros,
    /// A task that found no resource looks again after this time.
    pub again: Micros,
    /// Results of a lease that counts no more are refused. Only tests that must fail without it turn it off.
    #[doc(hidden)]
    pub fencing: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: 60 * SECOND,
            shards: 1,
            leaf: 128,
            refresh: 120 * SECOND,
            again: 120 * SECOND,
            fencing: true,
        }
    }
}

/// What a workflow consists of is found out by this, while results come in. It must come to the same tasks whenever it is
/// given the same results in the same order: whoever takes over does just that.
pub trait Weaver {
    /// The first tasks.
    fn begin(&mut self) -> Result<Vec<NewTask>, String>;
    /// A task is done: what can be said of now.
    fn done(&mut self, task: u32, ending: &Ending) -> Result<Vec<NewTask>, String>;
    /// Whether the ends of all tasks are wanted, or only of those that nobody waits for.
    fn wants_all(&self) -> bool;
    /// What came of the workflow, once all of its tasks are done.
    fn ending(&self) -> Ending;
}

/// A task of a workflow.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Its number, from 1.
    pub number: u32,
    /// Tasks of the same batch that it waits for.
    pub sources: Vec<u32>,
    /// What it wants of a resource, as rules see it: pairs such as `CPUS:2`.
    pub want: Vec<catena_rules::Value>,
    /// What else rules may want to know of it: pairs such as `WORK:60`.
    pub about: Vec<catena_rules::Value>,
    /// What is to be executed.
    pub order: Order,
}

/// What a node cannot know by itself.
pub trait Host {
    /// Finds out what a workflow consists of.
    fn weaver(&self, workflow: &[u8]) -> Result<Box<dyn Weaver>, String>;
}

/// What a node wants done.
#[derive(Debug)]
pub enum Output {
    /// A message is to be sent.
    Send(Peer, Message),
    /// What is known of a molecule is to be written down before messages that come after this are sent: nothing means
    /// that it can be forgotten.
    Save(Id, Option<Box<Saved<Body, State>>>),
    /// A task is to be executed here.
    Start {
        /// Which one.
        task: Id,
        /// With which lease.
        epoch: u32,
        /// What it is.
        body: Arc<Body>,
        /// What those it waited for have given.
        inputs: Vec<(Name, Arc<Ending>)>,
    },
    /// A task need not be executed here any more.
    Stop {
        /// Which one.
        task: Id,
        /// With which lease.
        epoch: u32,
    },
    /// A workflow that was given in here is in the space: whatever happens to this peer, it is looked after.
    Entered(Id),
    /// How far a workflow is, since somebody here wanted to know.
    Progress {
        /// Which one.
        workflow: Id,
        /// So many of its tasks are done.
        done: u32,
        /// Of so many that are known.
        known: u32,
        /// What cannot go on, and why.
        blocked: Vec<(Name, String)>,
    },
    /// Nobody answers for a workflow, although somebody here wanted to know how far it is.
    Unheard(Id),
    /// A workflow that was given in here is over. It is remembered among peers until [`taken`](Node::taken) is called.
    Over {
        /// Which one.
        workflow: Id,
        /// What came of it.
        ending: Arc<Ending>,
    },
    /// Nobody knows of a workflow any more, although it was asked whether [it is still there](Node::ask_exists).
    Gone(Id),
    /// It is known how to reach a peer.
    Met(Contact),
    /// Something happened that is worth knowing.
    Note(Note),
}

/// Something that happened, for who watches.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A task waits for nothing but a resource.
    Ready(Id, Name),
    /// A task is leased to a peer.
    Leased(Id, u32, Peer),
    /// A task is done: with which lease, and which was the last one given.
    Committed(Id, u32, u32),
    /// What a task has given is lost: it will be done once more.
    Again(Id),
    /// What was executed here counts for nothing.
    Wasted(Id, u32),
    /// A workflow cannot go on with a part of it.
    Blocked(Id, Name, String),
    /// A workflow was taken apart for the first time.
    Begun(Id),
    /// A workflow is over, and whether it was done.
    Over(Id, bool),
}

/// A peer of the space.
pub struct Node {
    me: Peer,
    settings: Settings,
    chemistry: Arc<Chemistry>,
    host: Box<dyn Host>,
    random: Random,
    route: Box<dyn Route>,
    registers: Registers<Body, State>,
    index: index::Host<Pointer>,
    index_at: Micros,
    memory: index::Memory,
    /// Who answered for a place last.
    owners: BTreeMap<Position, Peer>,
    calls: BTreeMap<u64, Call>,
    serial: u64,
    timers: Agenda<Timer>,
    homes: BTreeMap<Id, home::Home>,
    parcels: BTreeMap<Id, parcel::Parcel>,
    holder: holder::Holder,
    entries: BTreeMap<Id, entry::Entry>,
    /// Who waits to be told that a molecule is here.
    creators: BTreeMap<Id, Vec<(Peer, u64)>>,
    operations: BTreeMap<u64, seek::Asked>,
    /// Who had a part of the index when something was noted there last.
    hosts: BTreeMap<index::Trie, Peer>,
    /// Until then resources are hard to get.
    scarce_until: Micros,
    out: Vec<Output>,
    /// What this peer tells itself.
    loopback: VecDeque<Message>,
    /// What is here may have to be elsewhere.
    review_at: Option<Micros>,
}

/// What time is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Call(u64),
    Lease(Id),
    Search(Id),
    Renew(Id),
    Refresh,
    Ask(u64),
    Tidy(Id),
    Poll(Id, u8),
}

/// Parts of the index tell each other that they are there so often.
const BEAT: Micros = 60 * SECOND;
/// Hosts of the index look after it so often.
const INDEX: Micros = 2 * SECOND;
/// Whether what is here should be elsewhere is looked at so often, even if nothing seems to have happened.
const REVIEW: Micros = 15 * SECOND;
/// Messages are not passed on more often.
const HOPS: u8 = 48;
/// A molecule is looked for so far along the ring.
const WALK: u8 = 4;

impl Node {
    /// A peer.
    pub fn new(
        now: Micros,
        me: Peer,
        route: Box<dyn Route>,
        chemistry: Arc<Chemistry>,
        host: Box<dyn Host>,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed ^ me.0.rotate_left(32));
        let index_at = now + random.below(INDEX);
        let review_at = Some(now + random.below(REVIEW));
        let indexed = index::Settings { beat: BEAT, capacity: settings.leaf, ..index::Settings::default() };
        Self {
            me,
            settings,
            chemistry,
            host,
            route,
            registers: Registers::new(me),
            index: index::Host::new(me.0, indexed),
            index_at,
            memory: index::Memory::default(),
            owners: BTreeMap::new(),
            calls: BTreeMap::new(),
            serial: random.number() >> 16,
            timers: Agenda::default(),
            homes: BTreeMap::new(),
            parcels: BTreeMap::new(),
            holder: holder::Holder::default(),
            entries: BTreeMap::new(),
            creators: BTreeMap::new(),
            operations: BTreeMap::new(),
            hosts: BTreeMap::new(),
            scarce_until: 0,
            loopback: VecDeque::new(),
            out: Vec::new(),
            review_at,
            random,
        }
    }

    /// Remembers what was written down before this peer was started again.
    pub fn restore(&mut self, now: Micros, id: Id, saved: Saved<Body, State>) {
        self.registers.restore(now, id, saved);
    }

    /// Who this is.
    pub fn me(&self) -> Peer {
        self.me
    }

    /// Who is there, as far as this peer knows.
    pub fn route(&self) -> &dyn Route {
        &*self.route
    }

    /// The molecules this peer is a home of.
    pub fn registers(&self) -> &Registers<Body, State> {
        &self.registers
    }

    /// What this peer hosts of the index.
    pub fn index(&self) -> index::Sizes {
        self.index.sizes()
    }

    /// What there is to do since this was asked last.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// Enters a group that this contact is a member of.
    pub fn join(&mut self, now: Micros, contact: Contact) {
        let mut out = route::Effects::default();
        self.route.join(now, contact, &mut out);
        self.routed(now, out);
        self.settle(now);
    }

    /// Says goodbye.
    pub fn leave(&mut self, now: Micros) {
        let mut out = route::Effects::default();
        self.route.leave(now, &mut out);
        self.routed(now, out);
    }

    /// When [`wake`](Self::wake) has something to do.
    pub fn wake_at(&self) -> Micros {
        let timer = self.timers.first().map_or(Micros::MAX, |(at, _)| *at);
        let registers = self.registers.wake_at().unwrap_or(Micros::MAX);
        let index = if self.index.is_idle() { Micros::MAX } else { self.index_at };
        timer.min(registers).min(index).min(self.route.wake_at()).min(self.review_at.unwrap_or(Micros::MAX))
    }

    /// Time has passed.
    pub fn wake(&mut self, now: Micros) {
        while let Some((at, timer)) = self.timers.first().copied()
            && at <= now
        {
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Call(call) => self.call_again(now, call),
                Timer::Lease(task) => self.lease_ends(now, task),
                Timer::Search(task) => self.search_again(now, task),
                Timer::Renew(task) => self.renew(now, task),
                Timer::Refresh => self.refresh(now),
                Timer::Ask(operation) => self.ask_index(now, operation),
                Timer::Tidy(id) => self.tidy(now, id),
                Timer::Poll(id, times) => self.poll(now, id, times),
            }
        }
        if self.registers.wake_at().is_some_and(|at| at <= now) {
            self.with_registers(now, |registers, out| registers.wake(now, out));
        }
        if self.index_at <= now {
            self.index_at = now + INDEX;
            let mut hosted = Vec::new();
            self.index.expire(now, &mut hosted);
            self.tell_hosts(hosted);
        }
        if self.route.wake_at() <= now {
            let mut out = route::Effects::default();
            self.route.wake(now, &mut out);
            self.routed(now, out);
        }
        if self.review_at.is_some_and(|at| at <= now) {
            self.review(now);
        }
        self.settle(now);
    }

    /// Hears what it has told itself.
    fn settle(&mut self, now: Micros) {
        while let Some(message) = self.loopback.pop_front() {
            self.take(now, self.me, message);
        }
    }

    /// A message has come.
    pub fn receive(&mut self, now: Micros, from: Peer, message: Message) {
        self.route.heard(now, from);
        self.take(now, from, message);
        self.settle(now);
    }

    fn take(&mut self, now: Micros, from: Peer, message: Message) {
        match message {
            Message::Route(message) => {
                let mut out = route::Effects::default();
                self.route.handle(now, from, message, &mut out);
                self.routed(now, out);
            }
            Message::Register(message) => {
                self.with_registers(now, |registers, out| registers.handle(now, from, message, out));
            }
            Message::Index(hosted, hops) => self.hear_host(now, hosted, hops),
            Message::Request { origin, call, way, what } => self.asked(now, origin, call, way, what),
            Message::Reply { call, what } => self.answered(now, from, call, what),
            Message::Tell { id, hops, what } => self.told(now, id, hops, what),
            Message::Hello { task, epoch, homes } => self.greeted(now, from, task, epoch, homes),
            Message::Fenced { task, epoch } => self.fenced(now, task, epoch),
            Message::Free => self.freed(now),
        }
    }

    fn send(&mut self, to: Peer, message: Message) {
        if to == self.me {
            self.loopback.push_back(message);
        } else {
            self.out.push(Output::Send(to, message));
        }
    }

    fn note(&mut self, note: Note) {
        self.out.push(Output::Note(note));
    }

    fn reply(&mut self, (origin, call): (Peer, u64), what: Reply) {
        self.send(origin, Message::Reply { call, what });
    }

    fn routed(&mut self, now: Micros, out: route::Effects) {
        for (to, message) in out.sent {
            self.send(to, Message::Route(message));
        }
        self.out.extend(out.met.into_iter().map(Output::Met));
        for at in out.seek {
            self.call(now, To::Place(at), call::Purpose::Route(at), Request::Seek);
        }
        if out.changed {
            self.review_soon(now);
        }
    }

    /// Looks soon whether what is here should be elsewhere. Those who left together are noticed one after the other.
    fn review_soon(&mut self, now: Micros) {
        let soon = now + SECOND / 4;
        self.review_at = Some(self.review_at.map_or(soon, |at| at.min(soon)));
    }

    fn with_registers(
        &mut self,
        now: Micros,
        act: impl FnOnce(&mut Registers<Body, State>, &mut register::Effects<Body, State>),
    ) {
        let mut out = register::Effects::default();
        act(&mut self.registers, &mut out);
        for (id, saved) in self.registers.unsaved() {
            self.out.push(Output::Save(id, saved.map(Box::new)));
        }
        for (to, message) in out.sent {
            self.send(to, Message::Register(message));
        }
        for (id, event) in out.events {
            match event {
                register::Event::Led => self.led(now, id),
                register::Event::Changed => self.changed(now, id),
                register::Event::Deposed => self.deposed(id),
                register::Event::Stuck => self.stuck(id),
            }
        }
    }

    /// Looks whether what is here should be elsewhere, or be led by this peer.
    fn review(&mut self, now: Micros) {
        self.review_at = Some(now + REVIEW);
        let mut hosted = Vec::new();
        let route = &*self.route;
        self.index.hand_over(now, &mut |at| route.next(at).is_none(), &mut hosted);
        self.tell_hosts(hosted);
        self.review_notes(now);
        let ids: Vec<Id> = self.registers.ids().collect();
        for id in ids {
            match self.route.homes(id.position()) {
                Some(homes) => self.review_one(now, id, homes),
                None => {
                    // It lives far from where it should, and whoever is there has to be found.
                    if self.registers.leading(id).is_some() && self.random.below(4) == 0 {
                        self.call(now, To::Place(id.position()), call::Purpose::Rehome(id), Request::Seek);
                    }
                    self.review_one(now, id, self.homes_now(id));
                }
            }
        }
    }

    fn review_one(&mut self, now: Micros, id: Id, homes: Group) {
        let group = self.homes_now(id);
        let route = &*self.route;
        let up: Vec<Peer> =
            group.peers().iter().copied().filter(|p| route.is_up(*p) != Some(false)).collect();
        self.with_registers(now, |registers, out| {
            registers.review(now, id, homes, &|p| up.contains(&p), out);
        });
    }

    /// A request for somebody: perhaps for this peer.
    fn asked(&mut self, now: Micros, origin: Peer, call: u64, way: Way, what: Request) {
        let from = (origin, call);
        match way {
            Way::Peer => self.serve(now, from, what),
            Way::Place(at, hops) => match self.route.next(at).filter(|_| hops < HOPS) {
                Some(next) => {
                    let way = Way::Place(at, hops + 1);
                    self.send(next, Message::Request { origin, call, way, what });
                }
                None => self.serve_place(now, from, at, what),
            },
            Way::Molecule(id, hops, walk) => match self.towards(id, (hops, walk)) {
                Towards::Here => self.serve_molecule(now, from, id, what),
                Towards::Next(next, (hops, walk)) => {
                    let way = Way::Molecule(id, hops, walk);
                    self.send(next, Message::Request { origin, call, way, what });
                }
                Towards::Over => self.reply(from, Reply::Gone),
                Towards::Nowhere => {}
            },
        }
    }

    fn told(&mut self, now: Micros, id: Id, hops: (u8, u8), what: Tell) {
        match self.towards(id, hops) {
            Towards::Here => self.hear(now, id, what),
            Towards::Next(next, hops) => self.send(next, Message::Tell { id, hops, what }),
            Towards::Over | Towards::Nowhere => {}
        }
    }

    /// The way to who leads a molecule.
    fn towards(&mut self, id: Id, (hops, walk): (u8, u8)) -> Towards {
        if self.registers.leading(id).is_some() {
            return Towards::Here;
        }
        if hops >= HOPS {
            return Towards::Nowhere;
        }
        if self.registers.has(id) {
            return match self.registers.leader(id) {
                Some(leader) if leader != self.me => Towards::Next(leader, (hops + 1, walk)),
                _ => Towards::Nowhere,
            };
        }
        if let Some(group) = self.registers.moved(id) {
            let next = group.peers().iter().copied().find(|p| *p != self.me);
            return next.map_or(Towards::Over, |p| Towards::Next(p, (hops + 1, walk)));
        }
        if walk == 0
            && let Some(next) = self.route.next(id.position())
        {
            return Towards::Next(next, (hops + 1, 0));
        }
        // It should be here, and is still with those who come after.
        let after = self.route.homes(self.me.0.wrapping_add(1)).and_then(|g| g.peers().first().copied());
        match after {
            Some(next) if walk < WALK && next != self.me => Towards::Next(next, (hops + 1, walk + 1)),
            _ => Towards::Nowhere,
        }
    }

    fn serve(&mut self, now: Micros, from: (Peer, u64), what: Request) {
        match what {
            Request::Create(id, homes, body) => self.create(now, from, id, homes, body),
            Request::Deploy(deploy) => self.deployed(now, from, *deploy),
            Request::Result(workflow, ending) => self.result(from, workflow, ending),
            Request::Certify(peer) => {
                let gone = self.route.is_up(peer) == Some(false);
                self.reply(from, if gone { Reply::Yes } else { Reply::No });
            }
            // Whoever sends this otherwise does not know the way.
            _ => {}
        }
    }

    fn serve_place(&mut self, now: Micros, from: (Peer, u64), at: Position, what: Request) {
        match what {
            Request::Find | Request::Seek => {
                if let Some(homes) = self.route.homes(at) {
                    let wants = matches!(what, Request::Find);
                    self.reply(from, if wants { Reply::Found(homes) } else { Reply::Sought(homes) });
                }
            }
            Request::Index(request) => {
                let chemistry = self.chemistry.clone();
                let mut hosted = Vec::new();
                let answer = self.index.handle(
                    now,
                    request,
                    &mut |wanted: &Wanted, pointer: &Pointer| chemistry.suits(wanted, pointer),
                    &mut hosted,
                );
                self.tell_hosts(hosted);
                if let Some(answer) = answer {
                    self.reply(from, Reply::Indexed(answer));
                }
            }
            _ => {}
        }
    }

    fn serve_molecule(&mut self, now: Micros, from: (Peer, u64), id: Id, what: Request) {
        match what {
            Request::Done(name, ending) => self.source_done(now, from, id, name, ending),
            Request::Ask(who) => self.is_over(now, from, id, who),
            Request::Volunteer(offer) => self.volunteer(now, from, id, &offer),
            Request::Begin(epoch) => self.begin(now, from, id, epoch),
            Request::Finish(epoch, ending) => self.finish(now, from, id, epoch, ending),
            Request::Lost(epoch, source) => self.lacks(now, from, id, epoch, source),
            Request::Remake(name, had, who) => self.remake(now, from, id, name, had, who),
            Request::Exists => self.reply(from, Reply::Yes),
            Request::Progress => self.tell_progress(from, id),
            _ => {}
        }
    }

    fn hear(&mut self, now: Micros, id: Id, what: Tell) {
        match what {
            Tell::Renew(holder, epoch) => self.renewed(now, holder, id, epoch),
            Tell::Unheld(holder, epoch) => self.unheld(now, holder, id, epoch),
            Tell::Blocked(name, why) => self.blocked(id, name, why),
            Tell::Forget => self.forget(now, id),
            Tell::Look => self.look_anew(now, id),
        }
    }

    fn tell_hosts(&mut self, hosted: Vec<index::Hosted<Pointer>>) {
        // Not at once: parts of the index that are both here may have much to tell each other.
        self.loopback.extend(hosted.into_iter().map(|message| Message::Index(message, 0)));
    }

    fn hear_host(&mut self, now: Micros, hosted: index::Hosted<Pointer>, hops: u8) {
        match self.route.next(hosted.position()).filter(|_| hops < HOPS) {
            Some(next) => self.send(next, Message::Index(hosted, hops + 1)),
            None => {
                let mut more = Vec::new();
                let request = index::Request::<Pointer, Wanted>::Maintain(hosted);
                self.index.handle(now, request, &mut |_, _| false, &mut more);
                self.tell_hosts(more);
            }
        }
    }

    fn homes_now(&self, id: Id) -> Group {
        self.registers.group(id).unwrap_or_default()
    }
}

/// Where something for a molecule goes.
enum Towards {
    /// This peer leads it.
    Here,
    /// To this peer, with so many hops.
    Next(Peer, (u8, u8)),
    /// It is over.
    Over,
    /// Who leads it is not known now.
    Nowhere,
}
