//! Leads tasks from waiting to done, at whoever leads the molecule.
//!
//! What two homes have agreed on is in the register; what is here is what this peer knows besides, and another one that
//! takes over finds out again: which sources are over, which resource is being talked to, until when a lease runs.

use super::call::{Purpose, To};
use super::seek::Search;
use super::{Node, Note, Timer};
use crate::chemistry::Ripe;
use crate::id::{Group, Id, Peer};
use crate::message::{Deploy, Message, Reply, Request, Tell};
use crate::molecule::{Body, Ending, Kind, Matter, Name, Phase, Ref, State};
use crate::time::{Micros, SECOND};
use catena_rules::{Query, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the leader of a task knows besides what its homes have agreed on.
#[derive(Debug)]
pub(super) struct Home {
    /// The task as rules see it, with those gone from its sources that are over.
    value: Value,
    /// What its sources have given.
    pub(super) inputs: BTreeMap<Name, Arc<Ending>>,
    /// What it looks for, once it waits for nothing else.
    pub(super) query: Option<Query>,
    pub(super) search: Option<Search>,
    /// A resource it will get, as soon as its homes have agreed on that.
    pub(super) chosen: Option<Peer>,
    /// A resource that has offered itself and waits for an answer.
    volunteer: Option<(Peer, u64)>,
    /// The resource is being told, with which lease.
    deploying: Option<u32>,
    /// Until when the lease runs.
    until: Micros,
    /// A result that waits to be agreed on, and who is told then.
    finish: Option<(u32, Arc<Ending>, (Peer, u64))>,
    /// Who waits to be told that it may begin.
    begin: Option<(u32, (Peer, u64))>,
    /// Sources that have to be made again, because nobody has what they have given.
    lacking: BTreeSet<Name>,
    /// It has to be made again itself.
    again: bool,
    /// Who else wants to know when it is.
    askers: Vec<Ref>,
    /// Those who wait for it are being told that it is over.
    delivering: bool,
    /// How many who look after its executor say that it is gone.
    certificates: usize,
    /// The last lease when a result came.
    last: u32,
    /// Its place among others that look for a resource.
    pub(super) order: f64,
}

/// Whoever takes a molecule over asks those it waits for again after this time.
const POLL: Micros = 30 * SECOND;
/// Whether a molecule is still of use is asked so often, in case that nobody has said that it can be forgotten.
pub(super) const TIDY: Micros = 900 * SECOND;

impl Node {
    /// Somebody wants a molecule to be here.
    pub(super) fn create(&mut self, now: Micros, from: (Peer, u64), id: Id, homes: Group, body: Arc<Body>) {
        if self.registers.moved(id).is_some() {
            return self.reply(from, Reply::Gone);
        }
        if self.registers.leading(id).is_some() {
            return self.reply(from, Reply::Yes);
        }
        if !self.registers.has(id) {
            self.with_registers(now, |registers, out| {
                registers.create(now, id, homes, body, State::default(), out);
            });
        }
        if self.registers.leading(id).is_some() {
            self.reply(from, Reply::Yes);
        } else {
            self.creators.entry(id).or_default().push(from);
        }
    }

    /// This peer leads a molecule from now on.
    pub(super) fn led(&mut self, now: Micros, id: Id) {
        for from in self.creators.remove(&id).unwrap_or_default() {
            self.reply(from, Reply::Yes);
        }
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        if !self.registers.is_first(id) {
            // Whoever led before is gone, most likely: another home is needed before one more is lost.
            self.review_soon(now);
        }
        match body.name.kind {
            Kind::Task => self.lead_task(now, id, &body, &state),
            Kind::Level | Kind::Workflow => self.lead_parcel(now, id, &body, &state),
        }
    }

    fn lead_task(&mut self, now: Micros, id: Id, body: &Arc<Body>, state: &State) {
        // Its homes may have changed without this peer having ceased to lead.
        let is_new = !self.homes.contains_key(&id);
        if is_new {
            let home = Home {
                value: body.value.clone(),
                inputs: BTreeMap::new(),
                query: None,
                search: None,
                chosen: None,
                volunteer: None,
                deploying: None,
                until: 0,
                finish: None,
                begin: None,
                lacking: BTreeSet::new(),
                again: false,
                askers: Vec::new(),
                delivering: false,
                certificates: 0,
                last: 0,
                order: 0.0,
            };
            self.homes.insert(id, home);
        }
        if is_new {
            self.timers.insert((now + TIDY, Timer::Tidy(id)));
        }
        if is_new && !self.registers.is_first(id) {
            match &state.phase {
                // Whoever led before may not have said so.
                Phase::Waiting if state.epoch > 0 => self.note(Note::Again(id)),
                Phase::Leased(holder) | Phase::Begun(holder) => {
                    // Whoever executes it has to know whom to tell.
                    let homes = self.homes_now(id);
                    self.send(*holder, Message::Hello { task: id, epoch: state.epoch, homes });
                    self.extend_lease(now, id);
                }
                _ => {}
            }
            if over(state).is_none() {
                // It may have to be given to another one.
                self.ask_sources(now, id, body);
                self.poll_later(now, id, 0);
            }
        }
        self.advance(now, id);
    }

    /// Finds out anew which sources are over. Whoever led before may go on to believe so for a while, and take in what
    /// this peer should hear of; so it asks until all have come.
    pub(super) fn ask_sources(&mut self, now: Micros, id: Id, body: &Body) {
        let Some((parent, attempt)) = body.parent else { return };
        let me = Ref { id, name: body.name, homes: self.homes_now(id) };
        let inputs = self.homes.get(&id).map(|h| &h.inputs).or(self.parcels.get(&id).map(|p| &p.inputs));
        let known: BTreeSet<Name> = inputs.into_iter().flat_map(|i| i.keys().copied()).collect();
        if body.sources.is_empty() && !known.contains(&parent.name) {
            self.call(now, To::Molecule(parent), Purpose::Source, Request::Ask(me));
        }
        for name in body.sources.iter().filter(|n| !known.contains(n)) {
            let source =
                Ref { id: parent.id.child(attempt, name.code()), name: *name, homes: Group::default() };
            self.call(now, To::Molecule(source), Purpose::Source, Request::Ask(me));
        }
    }

    pub(super) fn poll_later(&mut self, now: Micros, id: Id, times: u8) {
        let pause = POLL << times.min(4);
        self.timers.insert((now + pause, Timer::Poll(id, times)));
    }

    /// Asks those again of whom nothing has been heard.
    pub(super) fn poll(&mut self, now: Micros, id: Id, times: u8) {
        let Some((body, state, _)) = self.registers.leading(id) else {
            // Its homes may just be changing.
            if self.homes.contains_key(&id) || self.parcels.contains_key(&id) {
                self.poll_later(now, id, times);
            }
            return;
        };
        let apart = matches!(state.phase, Phase::Apart(_));
        let (body, waits) = (body.clone(), over(state).is_none() && !apart);
        if self.homes.get(&id).is_some_and(|home| !home.lacking.is_empty()) {
            self.ask_to_remake(now, id);
        } else if waits {
            let parent = body.parent.map(|(parent, _)| parent.name);
            let wanted: Vec<Name> =
                if body.sources.is_empty() { parent.into_iter().collect() } else { body.sources.clone() };
            let inputs = self.homes.get(&id).map(|h| &h.inputs).or(self.parcels.get(&id).map(|p| &p.inputs));
            if inputs.is_some_and(|i| wanted.iter().all(|n| i.contains_key(n))) {
                return;
            }
            self.ask_sources(now, id, &body);
        } else if !apart || !self.ask_parts(now, id) {
            return;
        }
        self.poll_later(now, id, times.saturating_add(1));
    }

    /// Somebody wants to be told if a molecule is over, or if what it was taken apart into may begin.
    pub(super) fn is_over(&mut self, now: Micros, from: (Peer, u64), id: Id, who: Ref) {
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        // Parts of a try that was not the one have nobody who tells them to begin.
        let waits = body.targets.iter().any(|target| target.id == who.id);
        let (name, ending) = (body.name, over(state).filter(|_| waits));
        let child = matches!(&state.phase, Phase::Apart(batches) if batches.iter().any(|b| {
            id.child(b.attempt, who.name.code()) == who.id
        }));
        let ending = ending.or_else(|| child.then(|| Arc::new(Ending { good: true, matter: [].into() })));
        self.reply(from, Reply::Yes);
        if let Some(ending) = ending {
            self.call(now, To::Molecule(who), Purpose::Deliver, Request::Done(name, ending));
        }
    }

    /// A source is over.
    pub(super) fn source_done(
        &mut self,
        now: Micros,
        from: (Peer, u64),
        id: Id,
        name: Name,
        ending: Arc<Ending>,
    ) {
        self.reply(from, Reply::Yes);
        if self.parcels.contains_key(&id) {
            return self.part_done(now, id, name, ending);
        }
        let Some(home) = self.homes.get_mut(&id) else { return };
        if home.lacking.remove(&name) {
            home.inputs.insert(name, ending);
            self.advance(now, id);
        } else if home.inputs.insert(name, ending).is_none() {
            match self.chemistry.arrive(&home.value, name) {
                Ok(value) => home.value = value,
                Err(why) => return self.fault(now, id, why),
            }
            self.advance(now, id);
        }
    }

    /// Does what can be done for a task now.
    pub(super) fn advance(&mut self, now: Micros, id: Id) {
        let Some((body, state, can_change)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        let Some(home) = self.homes.get_mut(&id) else { return };
        if let Phase::Done(ending) = &state.phase {
            if home.again {
                if can_change {
                    self.propose(now, id, State { epoch: state.epoch, phase: Phase::Waiting });
                }
                return;
            }
            if !home.delivering {
                let last = if home.last > 0 { home.last } else { state.epoch };
                self.note(Note::Committed(id, state.epoch, last));
            }
            return self.deliver(now, id, &body, ending.clone());
        }
        if !can_change {
            return;
        }
        if let Some((epoch, ending, _)) = &home.finish {
            let phase = Phase::Done(ending.clone());
            let state = State { epoch: *epoch, phase };
            self.propose(now, id, state);
            return;
        }
        if let (Some((epoch, _)), Phase::Leased(holder)) = (&home.begin, &state.phase) {
            let state = State { epoch: *epoch, phase: Phase::Begun(*holder) };
            self.propose(now, id, state);
            return;
        }
        if let Some(holder) = home.chosen {
            let state = State { epoch: state.epoch + 1, phase: Phase::Leased(holder) };
            self.propose(now, id, state);
            return;
        }
        let looks = match state.phase {
            Phase::Waiting => true,
            // Whoever has it is not heard of any more.
            Phase::Leased(_) => home.deploying.is_none() && home.until <= now && !is_exclusive(&body),
            _ => false,
        };
        if !looks || home.search.is_some() || !home.lacking.is_empty() {
            return;
        }
        if home.query.is_none() {
            // Its parent may still be taken apart in another way.
            let parent = body.parent.map(|(parent, _)| parent.name);
            if body.sources.is_empty() && !parent.is_some_and(|p| home.inputs.contains_key(&p)) {
                return;
            }
            match self.chemistry.ripe(&home.value, now) {
                Ok(Ripe::Search(query, order)) => (home.query, home.order) = (Some(query), order),
                Ok(_) => return,
                Err(why) => return self.fault(now, id, why),
            }
            if state.phase == Phase::Waiting && state.epoch == 0 {
                self.note(Note::Ready(id, body.name));
            }
        }
        self.search(now, id);
    }

    pub(super) fn propose(&mut self, now: Micros, id: Id, state: State) {
        self.with_registers(now, |registers, out| {
            // What cannot be proposed now is proposed when it can be.
            let _ = registers.propose(now, id, state, out);
        });
    }

    /// What this peer proposed is so.
    pub(super) fn changed(&mut self, now: Micros, id: Id) {
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        if self.parcels.contains_key(&id) {
            return self.parcel_changed(now, id, &body, &state);
        }
        let Some(home) = self.homes.get_mut(&id) else { return };
        match &state.phase {
            Phase::Leased(holder) if home.chosen == Some(*holder) => {
                home.chosen = None;
                home.deploying = Some(state.epoch);
                home.certificates = 0;
                // What it is told to execute is its answer.
                home.volunteer = None;
                let query = home.query.clone().expect("it has found a resource");
                let inputs = home.inputs.iter().map(|(n, e)| (*n, e.clone())).collect();
                self.note(Note::Leased(id, state.epoch, *holder));
                let me = Ref { id, name: body.name, homes: self.homes_now(id) };
                let (task, epoch, body) = (me, state.epoch, body.clone());
                let what = Request::Deploy(Box::new(Deploy { task, epoch, query, body, inputs }));
                self.call(now, To::Peer(*holder), Purpose::Deploy(id, epoch), what);
            }
            Phase::Begun(_) => {
                if let Some((_, from)) = home.begin.take() {
                    self.reply(from, Reply::Yes);
                }
            }
            Phase::Waiting if home.again => {
                (home.again, home.delivering, home.until) = (false, false, now);
                self.note(Note::Again(id));
            }
            Phase::Done(_) => {
                if let Some((_, _, from)) = home.finish.take() {
                    self.reply(from, Reply::Yes);
                }
            }
            _ => {}
        }
        self.advance(now, id);
    }

    pub(super) fn deposed(&mut self, id: Id) {
        // A note in the index will be found to be of no use, or is not renewed.
        self.homes.remove(&id);
        self.parcels.remove(&id);
    }

    /// A resource was found.
    pub(super) fn choose(&mut self, now: Micros, id: Id, holder: Peer) {
        let Some(home) = self.homes.get_mut(&id) else { return self.send(holder, Message::Free) };
        home.chosen = Some(holder);
        self.advance(now, id);
    }

    /// A resource offers itself.
    pub(super) fn volunteer(&mut self, now: Micros, from: (Peer, u64), id: Id, offer: &Value) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        let waits = state.phase == Phase::Waiting;
        let Some(home) = self.homes.get_mut(&id) else { return self.reply(from, Reply::No) };
        let known = home.volunteer.is_some_and(|v| v.0 == from.0);
        if known {
            home.volunteer = Some(from);
            return;
        }
        let open = home.chosen.is_none() && home.deploying.is_none() && home.finish.is_none();
        let wants = waits || (matches!(state.phase, Phase::Leased(_)) && home.until <= now);
        let suits = home.query.as_ref().is_some_and(|q| self.chemistry.accepts(q, offer));
        if !(open && wants && suits) {
            return self.reply(from, Reply::No);
        }
        home.volunteer = Some(from);
        home.chosen = Some(from.0);
        if let Some(search) = home.search.take() {
            self.end_search(now, search);
        }
        self.advance(now, id);
    }

    /// A resource was told to execute a task.
    pub(super) fn deploy_answered(&mut self, now: Micros, id: Id, epoch: u32, yes: bool) {
        // Also while its homes are changing: nobody will say it again.
        let Some(home) = self.homes.get_mut(&id).filter(|h| h.deploying == Some(epoch)) else { return };
        home.deploying = None;
        if yes {
            self.extend_lease(now, id);
        } else {
            home.until = now;
            self.advance(now, id);
        }
    }

    fn extend_lease(&mut self, now: Micros, id: Id) {
        let lease = self.settings.lease;
        let Some(home) = self.homes.get_mut(&id) else { return };
        if home.until > now {
            self.timers.remove(&(home.until, Timer::Lease(id)));
        }
        home.until = now + lease;
        self.timers.insert((home.until, Timer::Lease(id)));
    }

    pub(super) fn renewed(&mut self, now: Micros, from: Peer, id: Id, epoch: u32) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        let holds = matches!(state.phase, Phase::Leased(p) | Phase::Begun(p) if p == from);
        let done = matches!(state.phase, Phase::Done(_));
        if holds && state.epoch == epoch {
            self.extend_lease(now, id);
        } else if !done || state.epoch != epoch {
            self.send(from, Message::Fenced { task: id, epoch });
        }
    }

    pub(super) fn unheld(&mut self, now: Micros, from: Peer, id: Id, epoch: u32) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        if state.epoch == epoch && state.phase == Phase::Leased(from) {
            self.lease_over(now, id);
        }
    }

    pub(super) fn lease_ends(&mut self, now: Micros, id: Id) {
        let Some(home) = self.homes.get(&id) else { return };
        if home.until > now || home.deploying.is_some() {
            return;
        }
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        match state.phase {
            Phase::Leased(_) if !is_exclusive(&body) => self.lease_over(now, id),
            Phase::Leased(holder) | Phase::Begun(holder) => {
                // Only those who look after the executor can say that it is gone.
                self.extend_lease(now, id);
                let homes = self.route.homes(holder.0.wrapping_add(1));
                let witnesses: Vec<Peer> = homes.iter().flat_map(|g| g.peers().to_vec()).collect();
                for witness in witnesses.into_iter().filter(|w| *w != holder) {
                    let purpose = Purpose::Certify(id, state.epoch);
                    self.call(now, To::Peer(witness), purpose, Request::Certify(holder));
                }
            }
            _ => {}
        }
    }

    /// Somebody who looks after an executor says whether it is gone.
    pub(super) fn certified(&mut self, now: Micros, id: Id, epoch: u32, gone: bool) {
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        let Some(home) = self.homes.get_mut(&id) else { return };
        if state.epoch != epoch || !gone {
            return;
        }
        home.certificates += 1;
        if home.certificates < 2 {
            return;
        }
        match state.phase {
            // It has not begun, and cannot any more once another one has the next lease.
            Phase::Leased(_) => self.lease_over_exclusive(now, id),
            Phase::Begun(holder) => {
                let why = format!(
                    "peer {holder} is gone and had begun to execute it; it must not be started twice"
                );
                self.tell_blocked(&body, why);
            }
            _ => {}
        }
    }

    /// The note of a task in the index was taken by somebody who has no room any more.
    pub(super) fn look_anew(&mut self, now: Micros, id: Id) {
        if let Some(home) = self.homes.get_mut(&id)
            && home.search.take().is_some()
        {
            self.advance(now, id);
        }
    }

    fn lease_over(&mut self, now: Micros, id: Id) {
        if let Some(home) = self.homes.get_mut(&id) {
            home.until = now;
        }
        self.advance(now, id);
    }

    fn lease_over_exclusive(&mut self, now: Micros, id: Id) {
        let Some(home) = self.homes.get_mut(&id) else { return };
        home.until = now;
        if home.search.is_none() && home.chosen.is_none() {
            self.search(now, id);
        }
    }

    /// An executor asks whether it may begin.
    pub(super) fn begin(&mut self, now: Micros, from: (Peer, u64), id: Id, epoch: u32) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        if state.epoch == epoch && state.phase == Phase::Begun(from.0) {
            return self.reply(from, Reply::Yes);
        }
        if state.epoch != epoch || state.phase != Phase::Leased(from.0) {
            return self.reply(from, Reply::No);
        }
        let Some(home) = self.homes.get_mut(&id) else { return };
        if home.chosen.is_some() {
            return self.reply(from, Reply::No);
        }
        home.begin = Some((epoch, from));
        self.advance(now, id);
    }

    /// An executor has a result.
    pub(super) fn finish(&mut self, now: Micros, from: (Peer, u64), id: Id, epoch: u32, ending: Arc<Ending>) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        if let Phase::Done(_) = state.phase {
            let mine = state.epoch == epoch;
            return self.reply(from, if mine { Reply::Yes } else { Reply::No });
        }
        let counts =
            state.epoch == epoch && matches!(state.phase, Phase::Leased(p) | Phase::Begun(p) if p == from.0);
        if !counts && self.settings.fencing {
            return self.reply(from, Reply::No);
        }
        let last = state.epoch;
        let Some(home) = self.homes.get_mut(&id) else { return };
        if home.finish.as_ref().is_some_and(|(e, ..)| *e != epoch)
            || home.chosen.is_some() && self.settings.fencing
        {
            // Somebody else is about to get it.
            return;
        }
        home.last = last;
        home.finish = Some((epoch, ending, from));
        if let Some(search) = home.search.take() {
            self.end_search(now, search);
        }
        self.advance(now, id);
    }

    /// An executor says that nobody has what a source has given.
    pub(super) fn lacks(&mut self, now: Micros, from: (Peer, u64), id: Id, epoch: u32, source: Name) {
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let held =
            state.epoch == epoch && matches!(state.phase, Phase::Leased(p) | Phase::Begun(p) if p == from.0);
        let body = body.clone();
        self.reply(from, Reply::Yes);
        if !held {
            return;
        }
        if source == Name::WORKFLOW {
            let why = "nobody has a file that came with the workflow; the peer where it was given in has to come back";
            self.tell_blocked(&body, why.to_owned());
        }
        let Some(home) = self.homes.get_mut(&id) else { return };
        home.lacking.insert(source);
        home.until = now;
        if source != Name::WORKFLOW {
            self.ask_to_remake(now, id);
        }
        self.poll_later(now, id, 0);
    }

    /// Sources whose data nobody has have to be made again. The workflow knows where they are.
    fn ask_to_remake(&mut self, now: Micros, id: Id) {
        let Some((body, _, _)) = self.registers.leading(id) else { return };
        let (body, me) = (body.clone(), Ref { id, name: body.name, homes: self.homes_now(id) });
        let Some(home) = self.homes.get_mut(&id) else { return };
        if home.lacking.remove(&Name::WORKFLOW) {
            // What came with the workflow cannot be made again, but whoever has it may have come back.
            self.advance(now, id);
        }
        let Some(home) = self.homes.get(&id) else { return };
        let had = |name: &Name| home.inputs.get(name).map(|e| Id::of(&e.matter));
        let lacking: Vec<_> = home.lacking.iter().map(|name| (*name, had(name))).collect();
        for (name, had) in lacking {
            let what = Request::Remake(name, had, me);
            self.call(now, To::Molecule(body.workflow), Purpose::Remake, what);
        }
    }

    /// Nobody has what a task has given, and somebody needs it.
    pub(super) fn remake(
        &mut self,
        now: Micros,
        from: (Peer, u64),
        id: Id,
        name: Name,
        had: Option<Id>,
        who: Ref,
    ) {
        let Some((body, state, _)) = self.registers.leading(id) else { return };
        let (body, ending) = (body.clone(), over(state));
        self.reply(from, Reply::Yes);
        if body.name != name {
            return self.remake_part(now, id, name, had, who);
        }
        if is_exclusive(&body) {
            let why = "nobody has what it has written any more; it must not be started twice".to_owned();
            return self.tell_blocked(&body, why);
        }
        let Some(home) = self.homes.get_mut(&id) else { return };
        if let Some(ending) = &ending
            && had.is_some_and(|had| Id::of(&ending.matter) != had)
        {
            // It has been made again already.
            let what = Request::Done(name, ending.clone());
            self.call(now, To::Molecule(who), Purpose::Deliver, what);
            return;
        }
        if !body.targets.iter().chain(&home.askers).any(|known| known.id == who.id) {
            home.askers.push(who);
        }
        if ending.is_none() {
            return;
        }
        home.again = true;
        // Whoever took over has not needed to know what its sources have given.
        self.ask_sources(now, id, &body);
        self.poll_later(now, id, 0);
        self.advance(now, id);
    }

    /// Tells who waits for it that a molecule is over.
    pub(super) fn deliver(&mut self, now: Micros, id: Id, body: &Body, ending: Arc<Ending>) {
        let first = match self.homes.get_mut(&id) {
            Some(home) => !std::mem::replace(&mut home.delivering, true),
            None => self.parcels.get_mut(&id).is_some_and(|p| !std::mem::replace(&mut p.delivering, true)),
        };
        if !first {
            return;
        }
        let askers = self.homes.get_mut(&id).map(|home| std::mem::take(&mut home.askers)).unwrap_or_default();
        let all = body.targets.iter().copied().chain(askers);
        // Nobody goes on after a failure; the workflow has to know at once.
        let targets: Vec<Ref> = if ending.good { all.collect() } else { vec![body.workflow] };
        for target in targets {
            if target.id != id {
                let what = Request::Done(body.name, ending.clone());
                self.call(now, To::Molecule(target), Purpose::Deliver, what);
            }
        }
    }

    /// A molecule has been there for long: is it still of use?
    pub(super) fn tidy(&mut self, now: Micros, id: Id) {
        let Some((body, _, _)) = self.registers.leading(id) else { return };
        if body.name.kind == Kind::Workflow {
            return;
        }
        let workflow = body.workflow;
        self.call(now, To::Molecule(workflow), Purpose::Tidy(id), Request::Exists);
        self.timers.insert((now + TIDY, Timer::Tidy(id)));
    }

    /// A molecule is not needed any more.
    pub(super) fn forget(&mut self, now: Micros, id: Id) {
        let Some((_, state, _)) = self.registers.leading(id) else {
            if let Some(parcel) = self.parcels.get_mut(&id) {
                // Its homes are changing: it is found out again when they have.
                parcel.delivering = false;
            }
            return;
        };
        if let Phase::Leased(holder) | Phase::Begun(holder) = state.phase {
            let epoch = state.epoch;
            self.send(holder, Message::Fenced { task: id, epoch });
        }
        self.forget_parts(id);
        self.homes.remove(&id);
        self.parcels.remove(&id);
        self.with_registers(now, |registers, out| registers.retire(now, id, out));
    }

    /// No majority of the homes answers.
    pub(super) fn stuck(&mut self, id: Id) {
        let Some((body, _)) = self.registers.peek(id) else { return };
        let body = body.clone();
        let others = self.homes_now(id).peers().len();
        let why = format!("less than two of its {others} homes answer; what it is now cannot be known");
        if body.name.kind == Kind::Workflow {
            // Whoever leads it does not, and so nobody else would say it.
            return self.note(Note::Blocked(id, body.name, why));
        }
        self.tell_blocked(&body, why);
    }

    pub(super) fn tell_blocked(&mut self, body: &Body, why: String) {
        let workflow = body.workflow;
        let what = Tell::Blocked(body.name, why);
        self.tell(workflow, what);
    }

    /// Tells who leads a molecule something, without an answer.
    pub(super) fn tell(&mut self, target: Ref, what: Tell) {
        let up = target.homes.peers().iter().copied().find(|p| self.route.is_up(*p) != Some(false));
        let next = up.or_else(|| self.route.next(target.id.position())).unwrap_or(self.me);
        self.send(next, Message::Tell { id: target.id, hops: (0, 0), what });
    }

    /// Rules could not be applied: the molecule fails.
    pub(super) fn fault(&mut self, now: Micros, id: Id, why: String) {
        let Some((_, state, _)) = self.registers.leading(id) else { return };
        let ending = Ending { good: false, matter: why.into_bytes().into() };
        let state = State { epoch: state.epoch, phase: Phase::Done(Arc::new(ending)) };
        self.propose(now, id, state);
    }
}

fn is_exclusive(body: &Body) -> bool {
    matches!(&body.matter, Matter::Task(order) if order.exclusive)
}

/// What came of a molecule, if it is over.
pub(super) fn over(state: &State) -> Option<Arc<Ending>> {
    match &state.phase {
        Phase::Done(ending) => Some(ending.clone()),
        _ => None,
    }
}
