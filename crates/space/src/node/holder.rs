//! Executes tasks for others: says that there is room, takes tasks, reports what came of them.

use super::call::{Purpose, To};
use super::seek::Note as Published;
use super::{Node, Note, Output, Timer};
use crate::id::{Group, Id, Peer};
use crate::message::{Deploy, Message, Reply, Request, Tell};
use crate::molecule::{Body, Ending, Matter, Name, Ref};
use crate::time::Micros;
use catena_rules::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a peer executes, and what it has room for.
#[derive(Debug, Default)]
pub(super) struct Holder {
    /// What there is room for, as rules see it.
    pub(super) offer: Option<Value>,
    pub(super) note: Option<Published>,
    /// A look at the index is under way.
    looking: bool,
    /// A task that this peer has offered itself to: the call, and the task.
    volunteering: Option<(u64, Id)>,
    held: BTreeMap<Id, Held>,
    refresh_at: Micros,
    /// Tasks had to wait when this peer looked last.
    wanted: bool,
}

/// A task that is executed here.
#[derive(Debug)]
struct Held {
    epoch: u32,
    task: Ref,
    /// Who leads it, as far as is known.
    leader: Peer,
    body: Arc<Body>,
    inputs: Vec<(Name, Arc<Ending>)>,
    /// What came out.
    ending: Option<Arc<Ending>>,
    renew_at: Micros,
}

impl Node {
    /// The driver says what there is room for; nothing: for no task.
    pub fn offer(&mut self, now: Micros, offer: Option<Value>) {
        if self.holder.offer == offer {
            return;
        }
        let old = self.holder.note.take();
        self.remove_note(now, old);
        self.holder.offer = offer;
        self.look_around(now);
        self.settle(now);
    }

    /// The tasks that are executed here, and the leases they have.
    pub fn held(&self) -> impl Iterator<Item = (Id, u32)> {
        self.holder.held.iter().map(|(id, held)| (*id, held.epoch))
    }

    fn look_around(&mut self, now: Micros) {
        let holder = &mut self.holder;
        if holder.offer.is_none() || holder.looking || holder.volunteering.is_some() {
            return;
        }
        holder.looking = true;
        let noted = holder.note.is_some();
        if noted || holder.wanted {
            self.look_for_task(now, noted);
        } else {
            // Nobody waits, most likely: it is enough to look once, when the note is there.
            self.holder.note = self.publish(now);
        }
    }

    pub(super) fn found_task(&mut self, now: Micros, task: Ref) {
        self.holder.looking = false;
        self.holder.wanted = true;
        match self.holder.offer.clone() {
            Some(offer) if self.holder.volunteering.is_none() => {
                let note = self.holder.note.take();
                self.remove_note(now, note);
                let what = Request::Volunteer(offer);
                let call = self.call(now, To::Molecule(task), Purpose::Volunteer(task.id), what);
                self.holder.volunteering = Some((call, task.id));
            }
            // There is no room any more: the task has to leave another note.
            _ => self.tell(task, Tell::Look),
        }
    }

    pub(super) fn found_no_task(&mut self, now: Micros, noted: bool) {
        self.holder.looking = false;
        self.holder.wanted = false;
        if self.holder.offer.is_none() || self.holder.volunteering.is_some() {
            return;
        }
        if noted {
            self.rest(now);
        } else {
            self.holder.looking = true;
            self.holder.note = self.publish(now);
        }
    }

    /// The note is in the index: whoever came before it was there did not see it.
    pub(super) fn offered(&mut self, now: Micros) {
        self.holder.looking = false;
        if self.holder.offer.is_some() && self.holder.note.is_some() {
            self.look_around(now);
        }
    }

    fn rest(&mut self, now: Micros) {
        let at = now + self.settings.refresh + self.random.below(self.settings.refresh / 4);
        self.timers.remove(&(self.holder.refresh_at, Timer::Refresh));
        self.holder.refresh_at = at;
        self.timers.insert((at, Timer::Refresh));
    }

    /// The note may have been lost with whoever had it.
    pub(super) fn refresh(&mut self, now: Micros) {
        if self.holder.offer.is_some() && !self.holder.looking && self.holder.volunteering.is_none() {
            self.holder.looking = true;
            self.holder.note = self.publish(now);
        }
    }

    /// Somebody had got this peer from the index and does not need it.
    pub(super) fn freed(&mut self, now: Micros) {
        self.holder.note = None;
        self.look_around(now);
    }

    pub(super) fn volunteered(&mut self, now: Micros, id: Id, yes: bool) {
        if self.holder.volunteering.is_some_and(|(_, task)| task == id) && !yes {
            self.holder.volunteering = None;
            self.look_around(now);
        }
    }

    /// A home wants a task to be executed here.
    pub(super) fn deployed(&mut self, now: Micros, from: (Peer, u64), deploy: Deploy) {
        let Deploy { task, epoch, query, body, inputs } = deploy;
        let id = task.id;
        if self.holder.held.get(&id).is_some_and(|h| h.epoch == epoch) {
            return self.reply(from, Reply::Yes);
        }
        if self.holder.held.get(&id).is_some_and(|h| h.epoch > epoch) {
            return self.reply(from, Reply::No);
        }
        let expected = match self.holder.volunteering {
            Some((call, expected)) if expected == id => {
                self.hang_up(call);
                true
            }
            Some(_) => false,
            None => true,
        };
        let room = self.holder.offer.as_ref().is_some_and(|o| self.chemistry.accepts(&query, o));
        if !room || !expected {
            return self.reply(from, Reply::No);
        }
        self.holder.volunteering = None;
        // A lease before this one counts no more.
        self.drop_held(id);
        // Whoever found this peer in the index has taken its note from there.
        self.holder.note = None;
        self.holder.offer = None;
        let renew_at = now + self.settings.lease / 3;
        self.timers.insert((renew_at, Timer::Renew(id)));
        let exclusive = matches!(&body.matter, Matter::Task(order) if order.exclusive);
        let held = Held {
            epoch,
            task,
            leader: from.0,
            body: body.clone(),
            inputs: inputs.clone(),
            ending: None,
            renew_at,
        };
        self.holder.held.insert(id, held);
        self.reply(from, Reply::Yes);
        if exclusive {
            self.call(now, To::Molecule(task), Purpose::Begin(id, epoch), Request::Begin(epoch));
        } else {
            self.out.push(Output::Start { task: id, epoch, body, inputs });
        }
    }

    /// Whether a task that must not be started twice may be started.
    pub(super) fn may_begin(&mut self, _: Micros, id: Id, epoch: u32, yes: bool) {
        let Some(held) = self.holder.held.get_mut(&id).filter(|h| h.epoch == epoch) else { return };
        if yes {
            let (body, inputs) = (held.body.clone(), std::mem::take(&mut held.inputs));
            self.out.push(Output::Start { task: id, epoch, body, inputs });
        } else {
            self.drop_held(id);
        }
    }

    /// The driver has executed a task.
    pub fn finished(&mut self, now: Micros, id: Id, epoch: u32, ending: Ending) {
        if let Some(held) = self.holder.held.get_mut(&id).filter(|h| h.epoch == epoch) {
            let ending = Arc::new(ending);
            held.ending = Some(ending.clone());
            let target = held.target();
            let what = Request::Finish(epoch, ending);
            self.call(now, To::Molecule(target), Purpose::Finish(id, epoch), what);
        }
        self.settle(now);
    }

    /// The driver cannot execute a task, because nobody has what a source has given.
    pub fn lost(&mut self, now: Micros, id: Id, epoch: u32, source: Name) {
        if let Some(held) = self.holder.held.get(&id).filter(|h| h.epoch == epoch) {
            let target = held.target();
            self.call(now, To::Molecule(target), Purpose::Lost(id, epoch), Request::Lost(epoch, source));
        }
        self.settle(now);
    }

    pub(super) fn given_up(&mut self, id: Id, epoch: u32) {
        if self.holder.held.get(&id).is_some_and(|h| h.epoch == epoch) {
            self.drop_held(id);
        }
    }

    pub(super) fn finished_there(&mut self, _: Micros, id: Id, epoch: u32, yes: bool) {
        if self.holder.held.get(&id).is_some_and(|h| h.epoch == epoch) {
            self.holder.held.remove(&id);
            if !yes {
                self.note(Note::Wasted(id, epoch));
                self.out.push(Output::Stop { task: id, epoch });
            }
        }
    }

    pub(super) fn renew(&mut self, now: Micros, id: Id) {
        let pause = self.settings.lease / 3;
        let Some(held) = self.holder.held.get_mut(&id) else { return };
        if held.renew_at > now {
            return;
        }
        held.renew_at = now + pause;
        self.timers.insert((held.renew_at, Timer::Renew(id)));
        if held.ending.is_none() {
            let (target, epoch) = (held.target(), held.epoch);
            self.tell(target, Tell::Renew(self.me, epoch));
        }
    }

    /// Another peer leads a task that is executed here.
    pub(super) fn greeted(&mut self, now: Micros, from: Peer, id: Id, epoch: u32, homes: Group) {
        match self.holder.held.get_mut(&id).filter(|h| h.epoch == epoch) {
            Some(held) => {
                held.leader = from;
                held.task.homes = homes;
                let target = held.target();
                match held.ending.clone() {
                    Some(ending) => {
                        let what = Request::Finish(epoch, ending);
                        self.call(now, To::Molecule(target), Purpose::Finish(id, epoch), what);
                    }
                    None => self.tell(target, Tell::Renew(self.me, epoch)),
                }
            }
            None => {
                let what = Tell::Unheld(self.me, epoch);
                self.send(from, Message::Tell { id, hops: (0, 0), what });
            }
        }
    }

    /// A lease counts no more.
    pub(super) fn fenced(&mut self, _: Micros, id: Id, epoch: u32) {
        if self.holder.held.get(&id).is_some_and(|h| h.epoch == epoch) {
            self.drop_held(id);
        }
    }

    fn drop_held(&mut self, id: Id) {
        if let Some(held) = self.holder.held.remove(&id) {
            self.note(Note::Wasted(id, held.epoch));
            self.out.push(Output::Stop { task: id, epoch: held.epoch });
        }
    }
}

impl Held {
    /// Its home, with who leads it first.
    fn target(&self) -> Ref {
        let others = self.task.homes.peers().iter().copied().filter(|p| *p != self.leader);
        Ref { homes: Group::new([self.leader].into_iter().chain(others)), ..self.task }
    }
}
