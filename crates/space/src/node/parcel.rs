//! Takes workflows and levels apart, and puts together what came of their parts.
//!
//! Taking apart is done in two steps, because a peer may die at any time. First the homes agree on the number of the try;
//! then all parts are made, with identifiers that no other try has; then the homes agree that this try is the one. Parts of
//! tries that were not are never told to begin.

use super::call::{Purpose, To};
use super::home::{TIDY, over};
use super::{Node, Note, Timer, Weaver};
use crate::chemistry::{Part, Ripe};
use crate::id::{Group, Id, Peer};
use crate::message::{Reply, Request, Tell};
use crate::molecule::{Batch, Body, Ending, Kind, Matter, Name, Order, Phase, Ref, State};
use crate::time::Micros;
use catena_rules::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the leader of a workflow or of a level knows besides what its homes have agreed on.
pub(super) struct Parcel {
    value: Value,
    weaver: Option<Box<dyn Weaver>>,
    /// What those it waits for, and its parts, have given.
    pub(super) inputs: BTreeMap<Name, Arc<Ending>>,
    /// Parts that exist: where they are, and at which try they were made.
    parts: BTreeMap<Name, (Ref, u32)>,
    /// Which of them has a task that is none of them.
    holds: BTreeMap<Name, Name>,
    /// Parts whose end it waits for.
    awaited: BTreeSet<Name>,
    /// What tasks are, by number.
    orders: BTreeMap<u32, Order>,
    /// Parts that are being made.
    birth: Option<Birth>,
    /// Parts that are to be made next.
    unborn: Vec<Part>,
    /// Ends that were taken in since the last batch, in order.
    journal: Vec<Name>,
    /// Ends that have to be taken in first, in this order, after each of which batch.
    replay: VecDeque<Vec<Name>>,
    /// Ends that came meanwhile, in order.
    news: VecDeque<Name>,
    batches: Vec<Batch>,
    failed: Option<Arc<Ending>>,
    /// What cannot go on, and why.
    blocked: BTreeMap<Name, String>,
    /// Those who wait for it, or have given it in, are being told that it is over.
    pub(super) delivering: bool,
    begun: bool,
}

impl Parcel {
    /// What came of a level: if the workflow wants to know, of each of its tasks.
    fn ending(&self, reports: bool) -> Ending {
        let tasks = self.inputs.iter().filter(|(name, _)| reports && name.kind == Kind::Task);
        let tasks: Vec<(Name, &Ending)> = tasks.map(|(name, ending)| (*name, &**ending)).collect();
        let matter = postcard::to_allocvec(&tasks).unwrap_or_default();
        Ending { good: true, matter: matter.into() }
    }
}

/// What came of the tasks of a level.
fn read_endings(level: &Ending) -> Vec<(Name, Arc<Ending>)> {
    let tasks: Vec<(Name, Ending)> = postcard::from_bytes(&level.matter).unwrap_or_default();
    tasks.into_iter().map(|(name, ending)| (name, Arc::new(ending))).collect()
}

struct Birth {
    attempt: u32,
    parts: Vec<Part>,
    homes: BTreeMap<Name, Group>,
    /// Bodies that no home has been asked to keep yet.
    queue: VecDeque<(Ref, Arc<Body>)>,
    unborn: BTreeSet<Name>,
    agreed: bool,
}

/// So many parts are made at the same time.
const WINDOW: usize = 256;

impl Node {
    pub(super) fn lead_parcel(&mut self, now: Micros, id: Id, body: &Arc<Body>, state: &State) {
        if self.parcels.contains_key(&id) {
            return self.advance_parcel(now, id);
        }
        let parcel = Parcel {
            value: body.value.clone(),
            weaver: None,
            inputs: BTreeMap::new(),
            parts: BTreeMap::new(),
            holds: BTreeMap::new(),
            awaited: BTreeSet::new(),
            orders: BTreeMap::new(),
            birth: None,
            unborn: Vec::new(),
            journal: Vec::new(),
            replay: VecDeque::new(),
            news: VecDeque::new(),
            batches: Vec::new(),
            failed: None,
            blocked: BTreeMap::new(),
            delivering: false,
            begun: false,
        };
        self.parcels.insert(id, parcel);
        self.timers.insert((now + TIDY, Timer::Tidy(id)));
        match &state.phase {
            Phase::Apart(batches) => {
                let batches = batches.clone();
                self.recover(now, id, body, batches);
            }
            Phase::Waiting if !self.registers.is_first(id) => self.ask_sources(now, id, body),
            _ => {}
        }
        if !self.registers.is_first(id) {
            self.poll_later(now, id, 0);
        }
        self.advance_parcel(now, id);
    }

    /// Does what can be done for a workflow or a level now.
    fn advance_parcel(&mut self, now: Micros, id: Id) {
        let Some((body, state, can_change)) = self.registers.leading(id) else { return };
        let (body, state) = (body.clone(), state.clone());
        if let Some(ending) = over(&state) {
            return self.parcel_over(now, id, &body, ending);
        }
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if !can_change {
            return;
        }
        if let Some(ending) = &parcel.failed {
            let state = State { epoch: state.epoch, phase: Phase::Done(ending.clone()) };
            return self.propose(now, id, state);
        }
        if state.phase == Phase::Waiting {
            if !parcel.begun {
                if let Some((parent, _)) = body.parent
                    && body.sources.is_empty()
                    && !parcel.inputs.contains_key(&parent.name)
                {
                    return;
                }
                match self.first_parts(id, &body) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(why) => return self.fail_parcel(now, id, why),
                }
            }
            let state = State { epoch: state.epoch + 1, phase: Phase::Apart(Vec::new()) };
            return self.propose(now, id, state);
        }
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if let Some(birth) = &parcel.birth {
            if birth.unborn.is_empty() && !birth.agreed {
                let batch = Batch { attempt: birth.attempt, after: parcel.journal.clone() };
                let batches = parcel.batches.iter().cloned().chain([batch]).collect();
                let state = State { epoch: state.epoch, phase: Phase::Apart(batches) };
                self.propose(now, id, state);
            }
            return;
        }
        if !parcel.unborn.is_empty() {
            // The next try needs a number.
            let state = State { epoch: state.epoch + 1, phase: Phase::Apart(parcel.batches.clone()) };
            return self.propose(now, id, state);
        }
        if parcel.awaited.is_empty() && parcel.replay.is_empty() {
            let ending = match &parcel.weaver {
                Some(weaver) => weaver.ending(),
                None => parcel.ending(body.reports),
            };
            let ending = Arc::new(ending);
            if body.name.kind == Kind::Workflow && ending.good {
                // As long as nobody has what came of it, a part may have to be made again.
                return self.give_result(now, id, &body, ending);
            }
            let state = State { epoch: state.epoch, phase: Phase::Done(ending) };
            self.propose(now, id, state);
        }
    }

    /// Finds out what something consists of at first. Returns whether it is time for that.
    fn first_parts(&mut self, id: Id, body: &Body) -> Result<bool, String> {
        let parts = match &body.matter {
            Matter::Workflow(workflow, _) => {
                let mut weaver = self.host.weaver(workflow)?;
                let tasks = weaver.begin()?;
                let parts = self.chemistry.weave(&tasks)?;
                let parcel = self.parcels.get_mut(&id).expect("led");
                parcel.orders.extend(tasks.into_iter().map(|t| (t.number, t.order)));
                parcel.weaver = Some(weaver);
                parts
            }
            Matter::Level(orders) => {
                let parcel = self.parcels.get_mut(&id).expect("led");
                match self.chemistry.ripe(&parcel.value, 0)? {
                    Ripe::Apart(parts) => {
                        parcel.orders.extend(orders.iter().cloned());
                        parts
                    }
                    _ => return Ok(false),
                }
            }
            Matter::Task(_) => return Err("a task cannot be taken apart".to_owned()),
        };
        let parcel = self.parcels.get_mut(&id).expect("led");
        parcel.begun = true;
        parcel.unborn = parts;
        Ok(true)
    }

    pub(super) fn fail_parcel(&mut self, now: Micros, id: Id, why: String) {
        if let Some(parcel) = self.parcels.get_mut(&id) {
            parcel.failed = Some(Arc::new(Ending { good: false, matter: why.into_bytes().into() }));
        }
        self.advance_parcel(now, id);
    }

    /// The homes have agreed on something.
    pub(super) fn parcel_changed(&mut self, now: Micros, id: Id, body: &Arc<Body>, state: &State) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if let Phase::Apart(batches) = &state.phase {
            match &mut parcel.birth {
                Some(birth) if batches.len() > parcel.batches.len() => {
                    birth.agreed = true;
                    parcel.batches.clone_from(batches);
                    parcel.journal.clear();
                    self.born(now, id, body);
                }
                None if !parcel.unborn.is_empty() => self.give_birth(now, id, state.epoch),
                _ => {}
            }
        }
        self.advance_parcel(now, id);
    }

    /// Makes the parts, with the number of this try.
    fn give_birth(&mut self, now: Micros, id: Id, attempt: u32) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        let parts = std::mem::take(&mut parcel.unborn);
        let unborn: BTreeSet<Name> = parts.iter().map(|p| p.name).collect();
        let names: Vec<Name> = unborn.iter().copied().collect();
        let (homes, queue) = (BTreeMap::new(), VecDeque::new());
        parcel.birth = Some(Birth { attempt, parts, homes, queue, unborn, agreed: false });
        for name in names {
            let place = id.child(attempt, name.code()).position();
            match self.route.homes(place) {
                Some(homes) => self.found_homes(now, id, name, homes),
                None => drop(self.call(now, To::Place(place), Purpose::Homes(id, name), Request::Find)),
            }
        }
    }

    pub(super) fn found_homes(&mut self, now: Micros, id: Id, name: Name, homes: Group) {
        let Some((body, _)) = self.registers.peek(id) else { return };
        let body = body.clone();
        let me = Ref { id, name: body.name, homes: self.homes_now(id) };
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        let Some(birth) = &mut parcel.birth else { return };
        birth.homes.insert(name, homes);
        if birth.homes.len() < birth.parts.len() || !birth.queue.is_empty() {
            return;
        }
        let wants_all = parcel.weaver.as_ref().map_or(body.reports, |w| w.wants_all());
        let at =
            |name: Name| Ref { id: id.child(birth.attempt, name.code()), name, homes: birth.homes[&name] };
        let mut targets: BTreeMap<Name, Vec<Ref>> = BTreeMap::new();
        for part in &birth.parts {
            for source in part.sources.iter().filter(|s| birth.homes.contains_key(s)) {
                targets.entry(*source).or_default().push(at(part.name));
            }
        }
        let mut queue = VecDeque::new();
        for part in &birth.parts {
            let mut targets = targets.remove(&part.name).unwrap_or_default();
            let is_last = targets.is_empty();
            if is_last || (wants_all && me.id == body.workflow.id) {
                targets.push(me);
            }
            let order = |number: &u32| parcel.orders.get(number).cloned();
            let matter = match part.name.kind {
                Kind::Task => match order(&part.name.number) {
                    Some(order) => Matter::Task(order),
                    None => continue,
                },
                _ => Matter::Level(part.holds.iter().filter_map(|n| Some((*n, order(n)?))).collect()),
            };
            let body = Body {
                name: part.name,
                workflow: body.workflow,
                parent: Some((me, birth.attempt)),
                sources: part.sources.clone(),
                targets,
                value: part.value.clone(),
                reports: wants_all,
                matter,
            };
            queue.push_back((at(part.name), Arc::new(body)));
        }
        birth.queue = queue;
        for _ in 0..WINDOW {
            self.make_next(now, id);
        }
    }

    fn make_next(&mut self, now: Micros, id: Id) {
        let birth = self.parcels.get_mut(&id).and_then(|p| p.birth.as_mut());
        if let Some((part, body)) = birth.and_then(|b| b.queue.pop_front()) {
            let what = Request::Create(part.id, part.homes, body);
            self.call(now, To::Home(part), Purpose::Create(id, part.name), what);
        }
    }

    pub(super) fn created(&mut self, now: Micros, id: Id, name: Name) {
        let Some(birth) = self.parcels.get_mut(&id).and_then(|p| p.birth.as_mut()) else { return };
        birth.unborn.remove(&name);
        if birth.unborn.is_empty() {
            self.advance_parcel(now, id);
        } else {
            self.make_next(now, id);
        }
    }

    /// A part could not be made: all of them are made again, with other identifiers.
    pub(super) fn apart_failed(&mut self, now: Micros, id: Id) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if parcel.birth.as_ref().is_none_or(|b| b.agreed) {
            return;
        }
        let birth = parcel.birth.take().expect("just seen");
        parcel.unborn.splice(0..0, birth.parts);
        self.advance_parcel(now, id);
    }

    /// The try is the one: those who wait for nothing else may begin.
    fn born(&mut self, now: Micros, id: Id, body: &Arc<Body>) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        let Some(birth) = parcel.birth.take() else { return };
        if parcel.batches.len() == 1 && body.name.kind == Kind::Workflow {
            self.note(Note::Begun(id));
        }
        let first = self.adopt(id, birth.attempt, &birth.parts, &birth.homes);
        let ending = Arc::new(Ending { good: true, matter: [].into() });
        for part in first {
            let what = Request::Done(body.name, ending.clone());
            self.call(now, To::Molecule(part), Purpose::Deliver, what);
        }
        self.take_in(now, id);
    }

    /// Takes parts that exist for its own. Returns those that wait for nothing else.
    fn adopt(&mut self, id: Id, attempt: u32, parts: &[Part], homes: &BTreeMap<Name, Group>) -> Vec<Ref> {
        let parcel = self.parcels.get_mut(&id).expect("led");
        let all = parcel.weaver.as_ref().is_some_and(|w| w.wants_all());
        let waited: BTreeSet<Name> = parts.iter().flat_map(|p| p.sources.iter().copied()).collect();
        let mut first = Vec::new();
        for part in parts {
            let homes = homes.get(&part.name).copied().unwrap_or_default();
            let me = Ref { id: id.child(attempt, part.name.code()), name: part.name, homes };
            parcel.parts.insert(part.name, (me, attempt));
            let known = parcel.inputs.contains_key(&part.name);
            if (all || !waited.contains(&part.name)) && !known {
                parcel.awaited.insert(part.name);
            }
            let inside = || part.holds.iter().map(|n| Name::task(*n));
            parcel.holds.extend(inside().map(|task| (task, part.name)));
            if all {
                parcel.awaited.extend(inside().filter(|n| !parcel.inputs.contains_key(n)));
            }
            if part.sources.is_empty() {
                first.push(me);
            }
        }
        first
    }

    /// Another peer has led this: finds out how far it had come.
    fn recover(&mut self, now: Micros, id: Id, body: &Arc<Body>, batches: Vec<Batch>) {
        match self.first_parts(id, body) {
            Ok(true) => {}
            // What it waited for is over, or it would not have been taken apart.
            Ok(false) => match self.chemistry.force_apart(&body.value) {
                Ok(parts) => {
                    let parcel = self.parcels.get_mut(&id).expect("led");
                    if let Matter::Level(orders) = &body.matter {
                        parcel.orders.extend(orders.iter().cloned());
                    }
                    parcel.unborn = parts;
                    parcel.begun = true;
                }
                Err(why) => return self.fail_parcel(now, id, why),
            },
            Err(why) => return self.fail_parcel(now, id, why),
        }
        // If nothing had been made for good, it is tried again, with another number.
        if let Some(later) = batches.get(1..) {
            let parcel = self.parcels.get_mut(&id).expect("led");
            parcel.replay = later.iter().map(|b| b.after.clone()).collect();
            parcel.batches = batches;
            self.know_batch(now, id, 0);
        }
    }

    /// The parts of a batch that others have made are known: asks them how far they are.
    fn know_batch(&mut self, now: Micros, id: Id, batch: usize) {
        let parcel = self.parcels.get_mut(&id).expect("led");
        let attempt = parcel.batches[batch].attempt;
        let parts = std::mem::take(&mut parcel.unborn);
        let first = self.adopt(id, attempt, &parts, &BTreeMap::new());
        let Some((body, _, _)) = self.registers.leading(id) else { return };
        let name = body.name;
        let ending = Arc::new(Ending { good: true, matter: [].into() });
        for part in first {
            let what = Request::Done(name, ending.clone());
            self.call(now, To::Molecule(part), Purpose::Deliver, what);
        }
        self.ask_parts(now, id);
    }

    /// Asks parts whether they are over. Returns whether there are such parts.
    pub(super) fn ask_parts(&mut self, now: Micros, id: Id) -> bool {
        let Some((body, _, _)) = self.registers.leading(id) else { return false };
        let me = Ref { id, name: body.name, homes: self.homes_now(id) };
        let Some(parcel) = self.parcels.get(&id) else { return false };
        let awaited = parcel.awaited.iter().filter_map(|name| parcel.parts.get(name));
        let awaited: Vec<Ref> = awaited.map(|(part, _)| *part).collect();
        for part in &awaited {
            self.call(now, To::Molecule(*part), Purpose::Source, Request::Ask(me));
        }
        !awaited.is_empty()
    }

    /// A part, or something this waits for, is over.
    pub(super) fn part_done(&mut self, now: Micros, id: Id, name: Name, ending: Arc<Ending>) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if !ending.good {
            parcel.failed.get_or_insert(ending);
            return self.advance_parcel(now, id);
        }
        if name.kind == Kind::Level && parcel.weaver.is_some() {
            for (task, ending) in read_endings(&ending) {
                self.part_done(now, id, task, ending);
            }
        }
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        parcel.blocked.remove(&name);
        if let Some(old) = parcel.inputs.insert(name, ending.clone()) {
            if old != ending
                && let Some(weaver) = &mut parcel.weaver
                && name.kind == Kind::Task
                && !parcel.news.contains(&name)
            {
                // It was made again, and can be had elsewhere now.
                let _ = weaver.done(name.number, &ending);
            }
            if parcel.awaited.remove(&name) {
                self.advance_parcel(now, id);
            }
            return;
        }
        if parcel.begun {
            parcel.awaited.remove(&name);
            parcel.news.push_back(name);
            self.take_in(now, id);
        } else {
            match self.chemistry.arrive(&parcel.value, name) {
                Ok(value) => parcel.value = value,
                Err(why) => return self.fail_parcel(now, id, why),
            }
        }
        self.advance_parcel(now, id);
    }

    /// Takes in the ends of parts: in the order in which they came, or in which they came when somebody else led.
    fn take_in(&mut self, now: Micros, id: Id) {
        loop {
            let Some(parcel) = self.parcels.get_mut(&id) else { return };
            if parcel.weaver.is_none() || parcel.birth.is_some() {
                return;
            }
            let replaying = !parcel.replay.is_empty();
            let next = match parcel.replay.front_mut() {
                Some(names) => match names.first() {
                    Some(name) if parcel.inputs.contains_key(name) => Some(names.remove(0)),
                    Some(_) => return,
                    None => None,
                },
                None if !parcel.unborn.is_empty() => return,
                None => match parcel.news.pop_front() {
                    Some(name) => Some(name),
                    None => return,
                },
            };
            let Some(name) = next else {
                // All that led to a batch is taken in.
                parcel.replay.pop_front();
                let batch = parcel.batches.len() - 1 - parcel.replay.len();
                self.know_batch(now, id, batch);
                continue;
            };
            if replaying {
                parcel.news.retain(|n| *n != name);
            } else {
                parcel.journal.push(name);
            }
            if name.kind != Kind::Task {
                continue;
            }
            let ending = parcel.inputs[&name].clone();
            let weaver = parcel.weaver.as_mut().expect("just seen");
            let parts = weaver.done(name.number, &ending).and_then(|tasks| {
                let parts = if tasks.is_empty() { Vec::new() } else { self.chemistry.weave(&tasks)? };
                parcel.orders.extend(tasks.into_iter().map(|t| (t.number, t.order)));
                Ok(parts)
            });
            match parts {
                Ok(parts) => parcel.unborn.extend(parts),
                Err(why) => return self.fail_parcel(now, id, why),
            }
        }
    }

    fn parcel_over(&mut self, now: Micros, id: Id, body: &Arc<Body>, ending: Arc<Ending>) {
        if body.name.kind != Kind::Workflow {
            return self.deliver(now, id, body, ending);
        }
        self.forget_parts(id);
        self.give_result(now, id, body, ending);
    }

    /// Gives what came of a workflow to who has given it in. If that is away, it waits for its return.
    fn give_result(&mut self, now: Micros, id: Id, body: &Body, ending: Arc<Ending>) {
        let Matter::Workflow(_, entry) = body.matter else { return };
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        if !std::mem::replace(&mut parcel.delivering, true) {
            self.note(Note::Over(id, ending.good));
            self.call(now, To::Peer(entry), Purpose::Result(id), Request::Result(id, ending));
        }
    }

    /// Nobody has what a part of a workflow that is over has given.
    pub(super) fn result_lacks(&mut self, now: Micros, id: Id, name: Name) {
        let me = Ref { id, name: Name::WORKFLOW, homes: self.homes_now(id) };
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        parcel.delivering = false;
        parcel.awaited.insert(name);
        let had = parcel.inputs.get(&name).map(|e| Id::of(&e.matter));
        self.call(now, To::Molecule(me), Purpose::Remake, Request::Remake(name, had, me));
    }

    /// Passes on to a part that it has to be made again.
    pub(super) fn remake_part(&mut self, now: Micros, id: Id, name: Name, had: Option<Id>, who: Ref) {
        let Some(parcel) = self.parcels.get(&id) else { return };
        let holder = parcel.holds.get(&name).unwrap_or(&name);
        // Whoever does not know its parts yet is asked again.
        let Some((part, _)) = parcel.parts.get(holder) else { return };
        self.call(now, To::Molecule(*part), Purpose::Remake, Request::Remake(name, had, who));
    }

    /// Parts are not needed any more.
    pub(super) fn forget_parts(&mut self, id: Id) {
        let Some(parcel) = self.parcels.get_mut(&id) else { return };
        let parts: Vec<Ref> = parcel.parts.values().map(|(part, _)| *part).collect();
        for part in parts {
            self.tell(part, Tell::Forget);
        }
    }

    /// Says how far a workflow is.
    pub(super) fn tell_progress(&mut self, from: (Peer, u64), id: Id) {
        if let Some(parcel) = self.parcels.get(&id) {
            let done = parcel.inputs.keys().filter(|n| n.kind == Kind::Task).count();
            let blocked = parcel.blocked.iter().map(|(name, why)| (*name, why.clone())).collect();
            self.reply(from, Reply::Progress(done as u32, parcel.orders.len() as u32, blocked));
        }
    }

    /// A part of a workflow cannot go on.
    pub(super) fn blocked(&mut self, id: Id, name: Name, why: String) {
        if let Some(parcel) = self.parcels.get_mut(&id) {
            parcel.blocked.insert(name, why.clone());
        }
        self.note(Note::Blocked(id, name, why));
    }
}
