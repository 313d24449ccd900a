//! Requests that are repeated until they are answered.

use super::{Node, Output, Timer};
use crate::id::{Id, Peer, Position};
use crate::message::{Message, Reply, Request, Way};
use crate::molecule::{Name, Ref};
use crate::route;
use crate::time::{MILLI, Micros, SECOND};

/// Whom a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum To {
    /// This very peer.
    Peer(Peer),
    /// Who leads a molecule.
    Molecule(Ref),
    /// One of the homes of a molecule that is to be.
    Home(Ref),
    /// The owner of a place.
    Place(Position),
}

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A place that the way-finder wants to know.
    Route(Position),
    /// The homes that a molecule should have.
    Rehome(Id),
    /// A step of an operation on the index.
    Index(u64),
    /// The homes for a part of what is taken apart.
    Homes(Id, Name),
    /// A part of what is taken apart.
    Create(Id, Name),
    /// The homes for a workflow that enters here, and the workflow.
    Enter(Id),
    /// That a molecule is over.
    Deliver,
    /// Whether a source is over; if so, it says that by itself.
    Source,
    /// That a peer executes a task.
    Deploy(Id, u32),
    /// That a task takes this peer.
    Volunteer(Id),
    /// That a task may begin here.
    Begin(Id, u32),
    /// That a task cannot be executed here.
    Lost(Id, u32),
    /// That a task is executed.
    Finish(Id, u32),
    /// That a task is made again whose data is lost.
    Remake,
    /// What came of a workflow.
    Result(Id),
    /// Whether a workflow is still there, for who has something that belongs to it.
    Exists(Id),
    /// How far a workflow is.
    Progress(Id),
    /// Whether a workflow is still there, for what is over.
    Tidy(Id),
    /// That an executor is gone.
    Certify(Id, u32),
}

#[derive(Debug)]
pub(super) struct Call {
    to: To,
    purpose: Purpose,
    what: Request,
    tries: u32,
    /// Whom it was sent to last.
    last: Option<Peer>,
}

/// After so long without an answer a request is sent again; each time twice as long, but not longer than this.
const FIRST: Micros = 1500 * MILLI;
const LONGEST: Micros = 30 * SECOND;

impl Purpose {
    /// How often it is tried.
    fn limit(self) -> u32 {
        match self {
            // Whoever wants to know asks again by itself.
            Self::Route(_) | Self::Rehome(_) | Self::Progress(_) => 2,
            Self::Deploy(..) | Self::Volunteer(_) | Self::Certify(..) => 3,
            Self::Create(..) | Self::Homes(..) => 12,
            Self::Index(_) | Self::Tidy(_) | Self::Exists(_) => 6,
            _ => u32::MAX,
        }
    }
}

/// How many owners of places are remembered.
const OWNERS: usize = 256;

impl Node {
    pub(super) fn call(&mut self, now: Micros, to: To, purpose: Purpose, what: Request) -> u64 {
        self.serial += 1;
        let call = self.serial;
        self.calls.insert(call, Call { to, purpose, what, tries: 0, last: None });
        self.send_call(now, call);
        call
    }

    pub(super) fn hang_up(&mut self, call: u64) {
        self.calls.remove(&call);
    }

    fn send_call(&mut self, now: Micros, number: u64) {
        let Some(call) = self.calls.get_mut(&number) else { return };
        let tries = call.tries;
        call.tries += 1;
        let pause = (FIRST << tries.min(5)).min(LONGEST);
        self.timers.insert((now + pause, Timer::Call(number)));
        let (next, way) = match call.to {
            To::Peer(peer) => (Some(peer), Way::Peer),
            To::Place(at) => {
                // Who answered last is asked directly, once.
                let known = self.owners.get(&at).copied().filter(|_| tries == 0);
                // Who looks for the way cannot rely on what it knows of it.
                let usual = tries == 0 && !matches!(call.purpose, Purpose::Route(_));
                let way = if usual { self.route.next(at) } else { self.route.detour(at) };
                (known.or(way), Way::Place(at, 0))
            }
            To::Home(target) => {
                let homes = target.homes.peers();
                (homes.get(tries as usize % homes.len().max(1)).copied(), Way::Peer)
            }
            To::Molecule(target) => {
                let homes = target.homes.peers();
                // First where it was, one home after the other; then where it should be.
                let known = homes.get(tries as usize % (homes.len() + 1)).copied();
                let up = known.filter(|p| self.route.is_up(*p) != Some(false) && *p != self.me);
                (up, Way::Molecule(target.id, 0, 0))
            }
        };
        call.last = next;
        let (origin, what) = (self.me, call.what.clone());
        match next {
            Some(peer) if peer != self.me => {
                self.send(peer, Message::Request { origin, call: number, way, what });
            }
            // It is here, or whoever is here knows the way.
            _ => self.asked(now, origin, number, way, what),
        }
    }

    pub(super) fn call_again(&mut self, now: Micros, number: u64) {
        let Some(call) = self.calls.get(&number) else { return };
        let (purpose, to, last) = (call.purpose, call.to, call.last);
        if call.tries >= 2
            && let (Some(peer), To::Peer(_) | To::Place(_)) = (last, to)
            && peer != self.me
        {
            let mut out = route::Effects::default();
            self.route.silent(now, peer, &mut out);
            self.routed(now, out);
        }
        if let To::Place(at) = to {
            self.owners.remove(&at);
        }
        if self.calls.get(&number).is_some_and(|c| c.tries >= purpose.limit()) {
            self.calls.remove(&number);
            self.unanswered(now, purpose);
        } else {
            self.send_call(now, number);
        }
    }

    pub(super) fn answered(&mut self, now: Micros, from: Peer, number: u64, what: Reply) {
        let Some(call) = self.calls.remove(&number) else { return };
        if let To::Place(at) = call.to
            && from != self.me
        {
            if self.owners.len() >= OWNERS {
                self.owners.clear();
            }
            self.owners.insert(at, from);
        }
        match (call.purpose, what) {
            (Purpose::Route(at), Reply::Sought(homes)) => {
                let mut out = route::Effects::default();
                self.route.found(now, at, homes, &mut out);
                self.routed(now, out);
            }
            (Purpose::Rehome(id), Reply::Sought(homes)) => self.review_one(now, id, homes),
            (Purpose::Index(operation), Reply::Indexed(answer)) => self.indexed(now, operation, Some(answer)),
            (Purpose::Homes(id, name), Reply::Found(homes)) => self.found_homes(now, id, name, homes),
            (Purpose::Create(id, name), _) => self.created(now, id, name),
            (Purpose::Enter(id), Reply::Found(homes)) => self.enter(now, id, homes),
            (Purpose::Enter(id), _) => self.entered(id),
            (Purpose::Progress(workflow), Reply::Progress(done, known, blocked)) => {
                self.out.push(Output::Progress { workflow, done, known, blocked });
            }
            (Purpose::Exists(workflow), Reply::Gone) => self.out.push(Output::Gone(workflow)),
            (Purpose::Deploy(id, epoch), what) => {
                self.deploy_answered(now, id, epoch, matches!(what, Reply::Yes));
            }
            (Purpose::Volunteer(id), what) => self.volunteered(now, id, matches!(what, Reply::Yes)),
            (Purpose::Begin(id, epoch), what) => self.may_begin(now, id, epoch, matches!(what, Reply::Yes)),
            (Purpose::Lost(id, epoch), _) => self.given_up(id, epoch),
            (Purpose::Finish(id, epoch), what) => {
                self.finished_there(now, id, epoch, matches!(what, Reply::Yes));
            }
            (Purpose::Result(id), Reply::Lacks(name)) => self.result_lacks(now, id, name),
            // Who gave it in has it, or nobody needs it.
            (Purpose::Tidy(id), Reply::Gone) | (Purpose::Result(id), _) => self.forget(now, id),
            (Purpose::Certify(id, epoch), what) => {
                self.certified(now, id, epoch, matches!(what, Reply::Yes));
            }
            // An answer that does not fit is none.
            _ => {}
        }
    }

    fn unanswered(&mut self, now: Micros, purpose: Purpose) {
        match purpose {
            Purpose::Index(operation) => self.indexed(now, operation, None),
            Purpose::Deploy(id, epoch) => self.deploy_answered(now, id, epoch, false),
            Purpose::Volunteer(id) => self.volunteered(now, id, false),
            Purpose::Homes(id, _) | Purpose::Create(id, _) => self.apart_failed(now, id),
            Purpose::Certify(id, epoch) => self.certified(now, id, epoch, false),
            Purpose::Progress(workflow) => self.out.push(Output::Unheard(workflow)),
            Purpose::Exists(workflow) => self.out.push(Output::Gone(workflow)),
            _ => {}
        }
    }
}
