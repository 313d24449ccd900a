//! Registers: each molecule lives with three peers, and what two of them have accepted is so.
//!
//! One of the homes leads: it proposes changes and counts who has accepted them (Lamport's Paxos with a leader, kept for
//! each register by itself; the register has no log, as in Rystsov's CASPaxos). A leader that is not heard of any more is
//! replaced by the next home, which first asks the others what they have. So a change that two homes have accepted is
//! never lost, and of two peers that believe to lead at most one can change anything.
//!
//! Homes change like everything else: the old ones agree on the new ones, which is the last thing they agree on; the new
//! ones take over what was agreed on last. Each set of homes is a *view*; ballots of one view mean nothing in another.
//!
//! - [`Registers`] are those a peer is a home of; [`Registers::handle`] takes messages in, and [`Effects`] are what comes
//!   out of it.
//! - [`Registers::review`] decides whether it is time to take over or to move.

mod leader;
mod message;
mod replica;
#[cfg(test)]
mod tests;

pub use leader::NotNow;
pub use message::{Ballot, Copy, Held, Message, What};

use crate::agenda::Agenda;
use crate::id::{Group, Id, Peer};
use crate::time::{Micros, SECOND};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// After so long without an answer a message is sent again.
const RESEND: Micros = SECOND;
/// After so many times without a majority whoever uses the register is told.
const PATIENCE: u32 = 4;
/// So long a home waits for each one before it that should lead and does not.
const YIELD: Micros = 20 * SECOND;
/// Not more often than this, however long it takes.
const SLOWEST: Micros = 30 * SECOND;
/// So long after the beginning of a view a home may join that has not been told of it.
const YOUNG: Micros = 300 * SECOND;
/// So long is remembered where a register has gone. Longer than a view is young: who has forgotten is not mistaken for
/// somebody who never knew.
const REMEMBER: Micros = 1200 * SECOND;

/// What comes of a message, a wish or the passing of time.
#[derive(Debug)]
pub struct Effects<B, S> {
    /// Messages to other peers.
    pub sent: Vec<(Peer, Message<B, S>)>,
    /// What happened to registers here.
    pub events: Vec<(Id, Event)>,
}

impl<B, S> Default for Effects<B, S> {
    fn default() -> Self {
        Self { sent: Vec::new(), events: Vec::new() }
    }
}

/// What happened to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This peer leads from now on.
    Led,
    /// What was proposed here is so.
    Changed,
    /// This peer does not lead any more; what it had proposed may be so or not.
    Deposed,
    /// No majority answers. It goes on trying.
    Stuck,
}

/// The registers that a peer is a home of.
#[derive(Debug)]
pub struct Registers<B, S> {
    me: Peer,
    held: BTreeMap<Id, Register<B, S>>,
    /// Where registers have gone, and until when that is remembered.
    gone: BTreeMap<Id, Gone>,
    forget: Agenda<Id>,
    /// When to look again at what is not settled.
    due: Agenda<Id>,
    /// What has to be written down before anybody hears of it.
    unsaved: BTreeSet<Id>,
}

/// What a home must not forget of a register, even if it is started again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Saved<B, S> {
    /// It is here.
    Held {
        /// Its view.
        view: u32,
        /// Whom this home has promised to follow.
        promised: Ballot,
        /// Its homes, and what never changes.
        copy: Copy<B, S>,
        /// Whose change it has accepted last.
        accepted: Ballot,
        /// Its next homes.
        next: Option<Group>,
    },
    /// It has gone: to which view, with these homes.
    Gone(u32, Group),
}

#[derive(Debug)]
struct Register<B, S> {
    body: Arc<B>,
    view: u32,
    group: Group,
    /// When this peer came to know of the view.
    since: Micros,
    promised: Ballot,
    accepted: Ballot,
    version: u32,
    state: S,
    /// What it was before a change that is not agreed on yet.
    before: Option<S>,
    next: Option<Group>,
    role: Role<S>,
    /// Since when nobody is known to lead.
    unled: Option<Micros>,
    led: Led,
    /// When it is looked at again.
    due: Option<Micros>,
}

/// Who has led a register or wanted to, as far as is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Led {
    Never,
    By(Peer),
    Often,
}

#[derive(Debug)]
enum Role<S> {
    /// Another one leads: whoever has the ballot that was promised last.
    Follows,
    /// This peer asks whether it may lead.
    Asks { ballot: Ballot, promises: u8, best: Option<Held<S>>, alike: bool, tries: u32 },
    /// This peer leads: who has accepted the present version, and whether that is a majority.
    Leads { ballot: Ballot, accepts: u8, agreed: bool, entering: bool, tries: u32 },
    /// This peer has led, and now tells homes to which it does not belong.
    Hands { ballot: Ballot, promises: u8, tries: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Gone {
    view: u32,
    group: Group,
    until: Micros,
}

impl<B, S: Clone> Registers<B, S> {
    /// None yet.
    pub fn new(me: Peer) -> Self {
        Self {
            me,
            held: BTreeMap::new(),
            gone: BTreeMap::new(),
            forget: Agenda::default(),
            due: Agenda::default(),
            unsaved: BTreeSet::new(),
        }
    }

    /// What has changed since this was asked last and must be written down before any message is sent; nothing: it need
    /// not be remembered any more.
    pub fn unsaved(&mut self) -> Vec<(Id, Option<Saved<B, S>>)> {
        let ids = std::mem::take(&mut self.unsaved);
        ids.into_iter().map(|id| (id, self.saved(id))).collect()
    }

    fn saved(&self, id: Id) -> Option<Saved<B, S>> {
        if let Some(r) = self.held.get(&id) {
            let (view, promised, accepted, next) = (r.view, r.promised, r.accepted, r.next);
            return Some(Saved::Held { view, promised, copy: r.copy(), accepted, next });
        }
        self.gone.get(&id).map(|gone| Saved::Gone(gone.view, gone.group))
    }

    /// Remembers what was written down.
    pub fn restore(&mut self, now: Micros, id: Id, saved: Saved<B, S>) {
        match saved {
            Saved::Held { view, promised, copy, accepted, next } => {
                self.install(now, id, view, copy);
                if let Some(register) = self.held.get_mut(&id) {
                    (register.promised, register.accepted, register.next) = (promised, accepted, next);
                    // The view is not young: others may have forgotten.
                    register.since = 0;
                    register.led = Led::Often;
                }
            }
            Saved::Gone(view, group) => self.leave(now, id, view, group),
        }
        self.unsaved.clear();
    }

    /// Those held here.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        self.held.keys().copied()
    }

    /// How many are held here.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether one is held here.
    pub fn has(&self, id: Id) -> bool {
        self.held.contains_key(&id)
    }

    /// The homes of one that is held here.
    pub fn group(&self, id: Id) -> Option<Group> {
        self.held.get(&id).map(|r| r.group)
    }

    /// What is known of one here; another home may know better.
    pub fn peek(&self, id: Id) -> Option<(&Arc<B>, &S)> {
        self.held.get(&id).map(|r| (&r.body, &r.state))
    }

    /// A register that this peer leads, and whether a change may be proposed now.
    pub fn leading(&self, id: Id) -> Option<(&Arc<B>, &S, bool)> {
        let register = self.held.get(&id)?;
        match register.role {
            Role::Leads { agreed, entering: false, .. } => {
                // What is not agreed on yet is not so.
                let state = register.before.as_ref().filter(|_| !agreed).unwrap_or(&register.state);
                Some((&register.body, state, agreed && register.next.is_none()))
            }
            _ => None,
        }
    }

    /// Who leads, as far as is known here.
    pub fn leader(&self, id: Id) -> Option<Peer> {
        let register = self.held.get(&id)?;
        match register.role {
            Role::Follows if register.promised == Ballot::NONE => register.group.peers().first().copied(),
            Role::Follows => Some(register.promised.peer),
            Role::Asks { .. } | Role::Hands { .. } => None,
            Role::Leads { .. } => Some(self.me),
        }
    }

    /// Whether nobody has led a register before this peer.
    pub fn is_first(&self, id: Id) -> bool {
        self.held.get(&id).is_some_and(|r| r.view == 1 && r.led == Led::By(self.me))
    }

    /// Where a register that was here has gone; an empty group: it is over.
    pub fn moved(&self, id: Id) -> Option<Group> {
        self.gone.get(&id).map(|g| g.group)
    }

    /// A register is over: nobody needs it any more. The other homes are told once; who misses it will ask.
    pub fn retire(&mut self, now: Micros, id: Id, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get(&id) else { return };
        let (view, group) = (register.view, register.group);
        for peer in group.peers().iter().filter(|p| **p != self.me) {
            let what = What::Moved { view: view + 1, group: Group::default() };
            out.sent.push((*peer, Message { id, view, what }));
        }
        self.leave(now, id, view + 1, Group::default());
    }

    /// Forgets a register, but not where it went.
    fn leave(&mut self, now: Micros, id: Id, view: u32, group: Group) {
        if let Some(register) = self.held.remove(&id)
            && let Some(at) = register.due
        {
            self.due.remove(&(at, id));
        }
        self.unsaved.insert(id);
        let until = now + REMEMBER;
        if let Some(old) = self.gone.insert(id, Gone { view, group, until }) {
            self.forget.remove(&(old.until, id));
        }
        self.forget.insert((until, id));
    }

    /// When [`wake`](Self::wake) has something to do.
    pub fn wake_at(&self) -> Option<Micros> {
        let due = self.due.first().map(|(at, _)| *at);
        let forget = self.forget.first().map(|(at, _)| *at);
        due.into_iter().chain(forget).min()
    }

    /// Time has passed: says again what was not answered.
    pub fn wake(&mut self, now: Micros, out: &mut Effects<B, S>) {
        while let Some((at, id)) = self.due.first().copied()
            && at <= now
        {
            self.due.remove(&(at, id));
            if let Some(register) = self.held.get_mut(&id) {
                register.due = None;
            }
            self.insist(now, id, out);
        }
        while let Some((at, id)) = self.forget.first().copied()
            && at <= now
        {
            self.forget.remove(&(at, id));
            self.gone.remove(&id);
            self.unsaved.insert(id);
        }
    }

    fn set_due(&mut self, id: Id, at: Option<Micros>) {
        let Some(register) = self.held.get_mut(&id) else { return };
        if register.due == at {
            return;
        }
        if let Some(before) = register.due {
            self.due.remove(&(before, id));
        }
        register.due = at;
        if let Some(at) = at {
            self.due.insert((at, id));
        }
    }
}
