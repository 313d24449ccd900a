//! A home that leads, or wants to.

use super::{
    Ballot, Copy, Effects, Event, Held, Led, Message, PATIENCE, RESEND, Register, Registers, Role, SLOWEST,
    What, YIELD, YOUNG,
};
use crate::id::{Group, Id, Peer};
use crate::time::Micros;
use std::sync::Arc;

/// A change that was not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// This peer does not lead.
    NotLeading,
    /// Another change is under way.
    Busy,
}

impl<B, S: Clone> Registers<B, S> {
    /// Makes a register. Whoever asks for it has chosen its homes once and for all, so it does not matter how often and of
    /// which of them it is asked.
    pub fn create(
        &mut self,
        now: Micros,
        id: Id,
        group: Group,
        body: Arc<B>,
        state: S,
        out: &mut Effects<B, S>,
    ) {
        if self.gone.contains_key(&id) || !group.has(self.me) {
            return;
        }
        if !self.held.contains_key(&id) {
            self.install(now, id, 1, Copy { group, body, version: 0, state });
            self.take_over(now, id, out);
        }
    }

    /// Asks the other homes to let this peer lead.
    pub fn take_over(&mut self, now: Micros, id: Id, out: &mut Effects<B, S>) {
        let me = self.me;
        let Some(register) = self.held.get_mut(&id) else { return };
        let Some(place) = register.group.place(me) else { return };
        let ballot = register.promised.after(me);
        register.promised = ballot;
        self.unsaved.insert(id);
        register.was_led_by(me);
        let best = Some(register.holds());
        register.role = Role::Asks { ballot, promises: 1 << place, best, alike: true, tries: 0 };
        self.ask(now, id, 0, out);
        self.consider(now, id, out);
    }

    /// Proposes a change.
    pub fn propose(&mut self, now: Micros, id: Id, state: S, out: &mut Effects<B, S>) -> Result<(), NotNow> {
        self.change(now, id, Some(state), None, out)
    }

    /// Proposes other homes.
    pub fn move_to(
        &mut self,
        now: Micros,
        id: Id,
        group: Group,
        out: &mut Effects<B, S>,
    ) -> Result<(), NotNow> {
        self.change(now, id, None, Some(group), out)
    }

    fn change(
        &mut self,
        now: Micros,
        id: Id,
        state: Option<S>,
        next: Option<Group>,
        out: &mut Effects<B, S>,
    ) -> Result<(), NotNow> {
        match self.leading(id) {
            None => return Err(NotNow::NotLeading),
            Some((_, _, false)) => return Err(NotNow::Busy),
            Some((_, _, true)) => {}
        }
        let me = self.me;
        let register = self.held.get_mut(&id).expect("led");
        let Role::Leads { ballot, .. } = register.role else { return Err(NotNow::NotLeading) };
        register.version += 1;
        register.before = Some(register.state.clone());
        if let Some(state) = state {
            register.state = state;
        }
        register.next = next;
        register.lead(me, ballot, false);
        self.unsaved.insert(id);
        self.tell(now, id, 0, out);
        self.settle(now, id, out);
        Ok(())
    }

    /// Decides whether it is time to lead a register or to move it: `up` says whether a peer is there, as far as is known,
    /// and `homes` are where the register should be.
    pub fn review(
        &mut self,
        now: Micros,
        id: Id,
        homes: Group,
        up: &dyn Fn(Peer) -> bool,
        out: &mut Effects<B, S>,
    ) {
        let leader = self.leader(id);
        let Some(register) = self.held.get_mut(&id) else { return };
        let group = register.group;
        let first = group.peers().iter().copied().find(|p| *p == self.me || up(*p));
        match register.role {
            Role::Follows => {
                let led = leader.is_some_and(|l| group.has(l) && l != self.me && up(l));
                // Who should lead may not know that it is a home.
                let unled = if led { None } else { Some(register.unled.unwrap_or(now)) };
                register.unled = unled;
                let place = group.place(self.me).unwrap_or_default() as Micros;
                let waited = unled.is_some_and(|since| now.saturating_sub(since) > YIELD * place);
                // Who has agreed on other homes and hears nothing more has missed that it is none.
                let missed = register.next.is_some() && now.saturating_sub(register.since) > YOUNG;
                // Who was started again has led and does no more, and nobody else knows.
                let forgot = leader == Some(self.me);
                if !led && (first == Some(self.me) || waited) || missed || forgot {
                    self.take_over(now, id, out);
                }
            }
            Role::Leads { agreed: true, entering: false, .. } if register.next.is_none() => {
                let lost = group.peers().iter().any(|p| *p != self.me && !up(*p));
                // Who leaves one that is not lost has time; the new homes come one by one anyway.
                let better = homes != group && homes.peers().len() >= group.peers().len();
                if better && (lost || now.saturating_sub(register.since) >= RESEND) {
                    let _ = self.move_to(now, id, homes, out);
                }
            }
            _ => {}
        }
    }

    /// Sends the question of a peer that wants to lead to those who have not answered.
    fn ask(&mut self, now: Micros, id: Id, tries: u32, out: &mut Effects<B, S>) {
        let me = self.me;
        let Some(register) = self.held.get_mut(&id) else { return };
        let Role::Asks { ballot, promises, .. } = register.role else { return };
        let young = now.saturating_sub(register.since) < YOUNG;
        for (place, peer) in register.group.peers().iter().enumerate() {
            if *peer != me && promises & (1 << place) == 0 {
                let copy = young.then(|| Box::new(register.copy()));
                let what = What::Prepare { ballot, copy };
                out.sent.push((*peer, Message { id, view: register.view, what }));
            }
        }
        self.set_due(id, Some(now + pause(tries)));
    }

    /// Sends the present version to those who have not accepted it.
    fn tell(&mut self, now: Micros, id: Id, tries: u32, out: &mut Effects<B, S>) {
        let me = self.me;
        let Some(register) = self.held.get_mut(&id) else { return };
        let Role::Leads { ballot, accepts, .. } = register.role else { return };
        for (place, peer) in register.group.peers().iter().enumerate() {
            if *peer != me && accepts & (1 << place) == 0 {
                let what = register.accept(ballot, None);
                out.sent.push((*peer, Message { id, view: register.view, what }));
            }
        }
        self.set_due(id, Some(now + pause(tries)));
    }

    /// Tells the next homes of a register, of which this peer is none.
    fn hand(&mut self, now: Micros, id: Id, tries: u32, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get_mut(&id) else { return };
        let (Role::Hands { ballot, promises, .. }, Some(next)) = (&register.role, register.next) else {
            return;
        };
        for (place, peer) in next.peers().iter().enumerate() {
            if promises & (1 << place) == 0 {
                let copy = Some(Box::new(Copy { group: next, ..register.copy() }));
                let what = What::Prepare { ballot: *ballot, copy };
                out.sent.push((*peer, Message { id, view: register.view + 1, what }));
            }
        }
        self.set_due(id, Some(now + pause(tries)));
    }

    /// What was said was not answered by all.
    pub(super) fn insist(&mut self, now: Micros, id: Id, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get_mut(&id) else { return };
        let (tries, stuck) = match &mut register.role {
            Role::Follows => return,
            Role::Asks { tries, .. } | Role::Hands { tries, .. } => {
                *tries += 1;
                (*tries, true)
            }
            // A home that misses a change which the others have will get the next one.
            Role::Leads { agreed: true, tries, .. } if *tries >= 2 => return,
            Role::Leads { agreed, tries, .. } => {
                *tries += 1;
                (*tries, !*agreed)
            }
        };
        if stuck && tries == PATIENCE {
            out.events.push((id, Event::Stuck));
        }
        match register.role {
            Role::Follows => {}
            Role::Asks { .. } => self.ask(now, id, tries, out),
            Role::Leads { .. } => self.tell(now, id, tries, out),
            Role::Hands { .. } => self.hand(now, id, tries, out),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one message")]
    pub(super) fn promised(
        &mut self,
        now: Micros,
        from: Peer,
        id: Id,
        view: u32,
        mine: Ballot,
        (held, first): (Held<S>, bool),
        out: &mut Effects<B, S>,
    ) {
        let Some(register) = self.held.get_mut(&id) else { return };
        let at = register.view;
        if !first {
            register.led = Led::Often;
        }
        match (&mut register.role, register.next) {
            (Role::Asks { ballot, promises, best, alike, .. }, _) if *ballot == mine && at == view => {
                let Some(place) = register.group.place(from) else { return };
                *promises |= 1 << place;
                let known = best.as_ref().map(|b| (b.accepted, b.version));
                *alike &= known == Some((held.accepted, held.version));
                if known < Some((held.accepted, held.version)) {
                    *best = Some(held);
                }
                self.consider(now, id, out);
            }
            // It is late, and has the beginning of the view like the others, who have agreed without it.
            (Role::Leads { ballot, accepts, agreed: true, .. }, _) if *ballot == mine && at == view => {
                let Some(place) = register.group.place(from) else { return };
                if held.accepted == Ballot::NONE && held.version == register.version {
                    *accepts |= 1 << place;
                    self.settle(now, id, out);
                }
            }
            (Role::Hands { ballot, promises, .. }, Some(next)) if *ballot == mine && at + 1 == view => {
                let Some(place) = next.place(from) else { return };
                *promises |= 1 << place;
                if promises.count_ones() as usize >= next.majority() {
                    self.farewell(now, id, next, out);
                }
            }
            _ => {}
        }
    }

    /// Leads, if a majority lets it.
    fn consider(&mut self, now: Micros, id: Id, out: &mut Effects<B, S>) {
        let me = self.me;
        let Some(register) = self.held.get_mut(&id) else { return };
        let Role::Asks { ballot, promises, best, alike, .. } = &mut register.role else { return };
        if (promises.count_ones() as usize) < register.group.majority() {
            return;
        }
        let (ballot, promises, alike) = (*ballot, *promises, *alike);
        let best = best.take().expect("at least what is here");
        // All have the beginning of the view and nothing since: that is so already.
        let settled = alike && best.accepted == Ballot::NONE;
        register.version = best.version;
        register.state = best.state;
        register.next = best.next;
        register.lead(me, ballot, !settled);
        self.unsaved.insert(id);
        if settled {
            register.role =
                Role::Leads { ballot, accepts: promises, agreed: true, entering: false, tries: 0 };
            out.events.push((id, Event::Led));
            let missing = promises.count_ones() as usize != register.group.peers().len();
            self.set_due(id, missing.then_some(now + RESEND));
        } else {
            self.tell(now, id, 0, out);
            self.settle(now, id, out);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one message")]
    pub(super) fn accepted(
        &mut self,
        now: Micros,
        from: Peer,
        id: Id,
        view: u32,
        mine: Ballot,
        version: u32,
        out: &mut Effects<B, S>,
    ) {
        let Some(register) = self.held.get_mut(&id) else { return };
        if register.view != view || version != register.version {
            return;
        }
        let Some(place) = register.group.place(from) else { return };
        if let Role::Leads { ballot, accepts, .. } = &mut register.role
            && *ballot == mine
        {
            *accepts |= 1 << place;
            self.settle(now, id, out);
        }
    }

    /// Notices that a majority has accepted.
    fn settle(&mut self, now: Micros, id: Id, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get_mut(&id) else { return };
        let Role::Leads { ballot, accepts, agreed, entering, .. } = &mut register.role else { return };
        let count = accepts.count_ones() as usize;
        let all = count == register.group.peers().len();
        let (ballot, was) = (*ballot, (*agreed, *entering));
        if count >= register.group.majority() && !*agreed {
            *agreed = true;
            *entering = false;
            register.before = None;
        }
        let news = *agreed && !was.0;
        if all {
            self.set_due(id, None);
        }
        if !news {
            return;
        }
        let next = self.held.get(&id).and_then(|r| r.next);
        match next {
            Some(next) => self.move_on(now, id, ballot, next, out),
            None => out.events.push((id, if was.1 { Event::Led } else { Event::Changed })),
        }
    }

    /// The old homes have agreed on the new ones.
    fn move_on(&mut self, now: Micros, id: Id, ballot: Ballot, next: Group, out: &mut Effects<B, S>) {
        let me = self.me;
        let register = self.held.get_mut(&id).expect("led");
        if next.has(me) {
            let old = register.group;
            let copy = Copy { group: next, ..register.copy() };
            let view = register.view + 1;
            self.install(now, id, view, copy);
            self.take_over(now, id, out);
            self.dismiss(id, view, old, next, out);
        } else {
            register.role = Role::Hands { ballot, promises: 0, tries: 0 };
            out.events.push((id, Event::Deposed));
            self.hand(now, id, 0, out);
        }
    }

    /// Tells homes that they are none any more.
    fn dismiss(&self, id: Id, view: u32, old: Group, next: Group, out: &mut Effects<B, S>) {
        for peer in old.peers().iter().filter(|p| **p != self.me && !next.has(**p)) {
            let what = What::Moved { view, group: next };
            out.sent.push((*peer, Message { id, view: view - 1, what }));
        }
    }

    /// The new homes know, and this peer is none of them.
    fn farewell(&mut self, now: Micros, id: Id, next: Group, out: &mut Effects<B, S>) {
        let register = self.held.get(&id).expect("handed over");
        let (view, old) = (register.view + 1, register.group);
        self.dismiss(id, view, old, next, out);
        self.leave(now, id, view, next);
    }

    pub(super) fn refused(
        &mut self,
        now: Micros,
        id: Id,
        view: u32,
        promised: Ballot,
        out: &mut Effects<B, S>,
    ) {
        let Some(register) = self.held.get_mut(&id) else { return };
        let at = register.view;
        match register.role {
            // Somebody leads the new homes already.
            Role::Hands { ballot, .. } if at + 1 == view && promised > ballot => {
                let next = register.next.expect("handed over");
                self.farewell(now, id, next, out);
            }
            Role::Asks { ballot, .. } | Role::Leads { ballot, .. } if at == view && promised > ballot => {
                register.promised = register.promised.max(promised);
                self.unsaved.insert(id);
                self.follow(id, promised, out);
            }
            _ => {}
        }
    }

    pub(super) fn unknown(&mut self, from: Peer, id: Id, view: u32, mine: Ballot, out: &mut Effects<B, S>) {
        let Some(register) = self.held.get(&id) else { return };
        if let Role::Leads { ballot, .. } = register.role
            && ballot == mine
            && register.view == view
        {
            let what = register.accept(ballot, Some((register.group, register.body.clone())));
            out.sent.push((from, Message { id, view, what }));
        }
    }
}

impl<B, S: Clone> Register<B, S> {
    /// Begins to count who accepts the present version.
    fn lead(&mut self, me: Peer, ballot: Ballot, entering: bool) {
        let place = self.group.place(me).expect("a home leads");
        self.accepted = ballot;
        self.role = Role::Leads { ballot, accepts: 1 << place, agreed: false, entering, tries: 0 };
    }

    fn accept(&self, ballot: Ballot, rest: Option<(Group, Arc<B>)>) -> What<B, S> {
        What::Accept { ballot, version: self.version, state: self.state.clone(), next: self.next, rest }
    }
}

/// How long to wait before something is said again.
fn pause(tries: u32) -> Micros {
    (RESEND << tries.min(5)).min(SLOWEST)
}
