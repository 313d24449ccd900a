//! A home that is asked: it promises, accepts or refuses.

use super::{Ballot, Copy, Effects, Event, Held, Led, Message, Register, Registers, Role, What};
use crate::id::{Group, Id, Peer};
use crate::time::Micros;
use std::sync::Arc;

impl<B, S: Clone> Registers<B, S> {
    /// Takes a message in.
    pub fn handle(&mut self, now: Micros, from: Peer, message: Message<B, S>, out: &mut Effects<B, S>) {
        let Message { id, view, what } = message;
        match what {
            What::Prepare { ballot, copy } => {
                let answer = self.prepare(now, id, view, ballot, copy, out);
                out.sent.push((from, Message { id, view, what: answer }));
            }
            What::Accept { ballot, version, state, next, rest } => {
                let held = Held { accepted: ballot, version, state, next };
                let answer = self.accept(now, id, view, held, rest, out);
                out.sent.push((from, Message { id, view, what: answer }));
            }
            What::Promise { ballot, held, first } => {
                self.promised(now, from, id, view, ballot, (*held, first), out);
            }
            What::Accepted { ballot, version } => self.accepted(now, from, id, view, ballot, version, out),
            What::Refused { promised } => self.refused(now, id, view, promised, out),
            What::Moved { view: there, group } => self.has_moved(now, id, there, group, out),
            What::Unknown { ballot } => self.unknown(from, id, view, ballot, out),
        }
    }

    /// Why a message of some view cannot be answered, if so.
    fn out_of_date(&self, id: Id, view: u32, ballot: Ballot) -> Option<What<B, S>> {
        match (self.held.get(&id), self.gone.get(&id)) {
            (Some(register), _) if register.view == view => None,
            (Some(register), _) if register.view > view => {
                Some(What::Moved { view: register.view, group: register.group })
            }
            (None, Some(gone)) if gone.view > view || gone.group.peers().is_empty() => {
                Some(What::Moved { view: gone.view, group: gone.group })
            }
            // A view that this peer has not been told of: who asks will tell it.
            _ => Some(What::Unknown { ballot }),
        }
    }

    fn prepare(
        &mut self,
        now: Micros,
        id: Id,
        view: u32,
        ballot: Ballot,
        copy: Option<Box<Copy<B, S>>>,
        out: &mut Effects<B, S>,
    ) -> What<B, S> {
        if let Some(answer) = self.out_of_date(id, view, ballot) {
            match (answer, copy) {
                (What::Unknown { .. }, Some(copy)) => {
                    self.depose(id, out);
                    self.install(now, id, view, *copy);
                }
                (answer, _) => return answer,
            }
        }
        let register = self.held.get_mut(&id).expect("held or just installed");
        if ballot < register.promised {
            return What::Refused { promised: register.promised };
        }
        register.promised = ballot;
        let first = register.was_led_by(ballot.peer);
        self.unsaved.insert(id);
        let held = Box::new(register.holds());
        let group = register.group;
        self.follow(id, ballot, out);
        // Who hands the register over will not lead it.
        if !group.has(ballot.peer) && group.peers().first() == Some(&self.me) {
            self.take_over(now, id, out);
        }
        What::Promise { ballot, held, first }
    }

    /// Becomes a home of a register at a view that is new here.
    pub(super) fn install(&mut self, now: Micros, id: Id, view: u32, copy: Copy<B, S>) {
        self.set_due(id, None);
        self.unsaved.insert(id);
        self.gone.remove(&id);
        let Copy { group, body, version, state } = copy;
        let (promised, accepted) = (Ballot::NONE, Ballot::NONE);
        let register = Register {
            body,
            view,
            group,
            since: now,
            promised,
            accepted,
            version,
            state,
            before: None,
            next: None,
            role: Role::Follows,
            due: None,
            unled: None,
            led: Led::Never,
        };
        self.held.insert(id, register);
    }

    fn accept(
        &mut self,
        now: Micros,
        id: Id,
        view: u32,
        held: Held<S>,
        rest: Option<(Group, Arc<B>)>,
        out: &mut Effects<B, S>,
    ) -> What<B, S> {
        let ballot = held.accepted;
        if let Some(answer) = self.out_of_date(id, view, ballot) {
            match (answer, rest) {
                (What::Unknown { .. }, Some((group, body))) => {
                    self.depose(id, out);
                    let (version, state) = (held.version, held.state.clone());
                    self.install(now, id, view, Copy { group, body, version, state });
                }
                (answer, _) => return answer,
            }
        }
        let register = self.held.get_mut(&id).expect("held or just installed");
        if ballot < register.promised {
            return What::Refused { promised: register.promised };
        }
        let newer = (ballot, held.version) > (register.accepted, register.version);
        register.promised = ballot;
        if newer {
            register.accepted = ballot;
            register.version = held.version;
            register.state = held.state;
            register.next = held.next;
        }
        let version = register.version;
        self.unsaved.insert(id);
        self.follow(id, ballot, out);
        What::Accepted { ballot, version }
    }

    /// Somebody else leads or wants to.
    pub(super) fn follow(&mut self, id: Id, ballot: Ballot, out: &mut Effects<B, S>) {
        if ballot.peer == self.me {
            return;
        }
        self.depose(id, out);
        self.set_due(id, None);
    }

    /// This peer leads no more, nor wants to.
    fn depose(&mut self, id: Id, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get_mut(&id) else { return };
        if !matches!(register.role, Role::Follows) {
            register.role = Role::Follows;
            out.events.push((id, Event::Deposed));
        }
    }

    fn has_moved(&mut self, now: Micros, id: Id, view: u32, group: Group, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get(&id) else { return };
        if register.view >= view {
            return;
        }
        out.events.push((id, Event::Deposed));
        // Who is a home there will be told what to hold.
        self.leave(now, id, view, group);
    }
}

impl<B, S: Clone> Register<B, S> {
    /// Notes that a peer wants to lead. Returns whether nobody else has wanted to.
    pub(super) fn was_led_by(&mut self, peer: Peer) -> bool {
        self.led = match self.led {
            Led::Never => Led::By(peer),
            Led::By(other) if other != peer => Led::Often,
            led => led,
        };
        self.led == Led::By(peer)
    }

    pub(super) fn holds(&self) -> Held<S> {
        Held { accepted: self.accepted, version: self.version, state: self.state.clone(), next: self.next }
    }

    pub(super) fn copy(&self) -> Copy<B, S> {
        Copy { group: self.group, body: self.body.clone(), version: self.version, state: self.state.clone() }
    }
}
