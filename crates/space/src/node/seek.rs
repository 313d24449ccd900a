//! Looks for resources and for tasks in the index.
//!
//! Both sides first look and, if there is nothing, leave a note where the other side looks, and look once more. So of a
//! task and a resource that come at the same time at least one finds the other.

use super::call::{Purpose, To};
use super::{Node, Timer};
use crate::id::{Id, Peer};
use crate::index::{self, Answer, Entry, Label, Operation, Outcome, Step, Trie};
use crate::message::{Message, Request};
use crate::molecule::{Pointer, Ref, Wanted};
use crate::time::{Micros, SECOND};

/// A task that looks for a resource.
#[derive(Debug)]
pub(super) struct Search {
    step: Look,
    /// The two parts of the index it looks at.
    shards: [u16; 2],
    /// Where its note is.
    note: Option<Note>,
    /// The operation under way.
    operation: Option<u64>,
    /// How often it has renewed its note.
    renewals: u32,
}

/// A note in the index, as it was left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    trie: Trie,
    key: index::Key,
    id: u64,
    stamp: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    First,
    Second,
    Park,
    Last,
    Rest,
}

/// An operation on the index.
#[derive(Debug)]
pub(super) struct Asked {
    operation: Operation<Pointer, Wanted>,
    goal: Goal,
    /// A request that waits for its time.
    later: Option<(u64, index::Request<Pointer, Wanted>)>,
}

/// What an operation on the index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A resource for a task.
    Resource(Id),
    /// That a task waits.
    Park(Id),
    /// A task for this peer; whether this peer has a note in the index.
    Task(bool),
    /// That this peer is free.
    Offer,
    /// A note is not needed any more.
    Remove,
}

/// After a search that found nothing, others do not try first.
const SCARCE: Micros = 2 * SECOND;
/// Notes are renewed at least so often.
const SELDOM: Micros = 600 * SECOND;
/// So many leaves of the index are asked before a search gives up.
const LEAVES: u16 = 6;

impl Node {
    pub(super) fn operate(&mut self, now: Micros, operation: Operation<Pointer, Wanted>, goal: Goal) -> u64 {
        self.serial += 1;
        let number = self.serial;
        self.operations.insert(number, Asked { operation, goal, later: None });
        self.step(now, number, None);
        number
    }

    fn step(&mut self, now: Micros, number: u64, answer: Option<Answer<Pointer>>) {
        let Some(asked) = self.operations.get_mut(&number) else { return };
        match asked.operation.next(&mut self.memory, answer) {
            Step::Ask { position, request, after: 0, .. } => {
                let what = Request::Index(request);
                self.call(now, To::Place(position), Purpose::Index(number), what);
            }
            Step::Ask { position, request, after, .. } => {
                asked.later = Some((position, request));
                self.timers.insert((now + after, Timer::Ask(number)));
            }
            Step::Done(outcome) => {
                let goal = asked.goal;
                self.operations.remove(&number);
                self.operated(now, number, goal, outcome);
            }
        }
    }

    pub(super) fn ask_index(&mut self, now: Micros, number: u64) {
        let later = self.operations.get_mut(&number).and_then(|asked| asked.later.take());
        if let Some((position, request)) = later {
            self.call(now, To::Place(position), Purpose::Index(number), Request::Index(request));
        }
    }

    /// The index has answered, or does not.
    pub(super) fn indexed(&mut self, now: Micros, number: u64, answer: Option<Answer<Pointer>>) {
        match answer {
            Some(answer) => self.step(now, number, Some(answer)),
            None => {
                if let Some(asked) = self.operations.remove(&number) {
                    self.operated(now, number, asked.goal, Outcome::Nothing);
                }
            }
        }
    }

    fn operated(&mut self, now: Micros, number: u64, goal: Goal, outcome: Outcome<Pointer>) {
        let entry = match outcome {
            Outcome::Taken(entry) => Some(entry.pointer),
            Outcome::Stored(_) | Outcome::Nothing => None,
        };
        match (goal, entry) {
            (Goal::Resource(task), Some(Pointer::Free(peer, _))) => {
                if self.is_searching(task, number) {
                    self.found_resource(now, task, peer);
                } else {
                    // Nobody looks any more.
                    self.send(peer, Message::Free);
                }
            }
            (Goal::Resource(task) | Goal::Park(task), _) => {
                if self.is_searching(task, number) {
                    self.look_further(now, task);
                }
            }
            (Goal::Task(_), Some(Pointer::Parked(task, _))) => self.found_task(now, task),
            (Goal::Task(noted), _) => self.found_no_task(now, noted),
            (Goal::Offer, _) => self.offered(now),
            (Goal::Remove, _) => {}
        }
    }

    fn is_searching(&self, task: Id, number: u64) -> bool {
        let search = self.homes.get(&task).and_then(|h| h.search.as_ref());
        search.is_some_and(|s| s.operation == Some(number))
    }

    /// A task begins to look for a resource.
    pub(super) fn search(&mut self, now: Micros, id: Id) {
        let shards = u64::from(self.settings.shards);
        let first = self.random.below(shards) as u16;
        let other = (u64::from(first) + 1 + self.random.below(shards.max(2) - 1)) % shards;
        let step = if self.scarce_until > now { Look::Park } else { Look::First };
        let search = Search { step, shards: [first, other as u16], note: None, operation: None, renewals: 0 };
        if let Some(home) = self.homes.get_mut(&id) {
            home.search = Some(search);
            self.look(now, id);
        }
    }

    fn look_further(&mut self, now: Micros, id: Id) {
        let shards = self.settings.shards;
        let Some(search) = self.homes.get_mut(&id).and_then(|h| h.search.as_mut()) else { return };
        search.step = match search.step {
            Look::First if shards > 1 => Look::Second,
            Look::First | Look::Second => Look::Park,
            // Whoever came since it left its first note has seen it.
            Look::Park if search.renewals > 0 => Look::Rest,
            Look::Park => Look::Last,
            Look::Last | Look::Rest => Look::Rest,
        };
        self.look(now, id);
    }

    fn look(&mut self, now: Micros, id: Id) {
        let Some((body, _, _)) = self.registers.leading(id) else {
            // It begins anew when this peer leads again.
            if let Some(home) = self.homes.get_mut(&id) {
                home.search = None;
            }
            return;
        };
        let me = Ref { id, name: body.name, homes: self.homes_now(id) };
        let Some(home) = self.homes.get_mut(&id) else { return };
        let (Some(search), Some(query)) = (&mut home.search, &home.query) else { return };
        let shard = search.shards[usize::from(search.step == Look::Second)];
        self.serial += 1;
        let stamp = self.serial;
        let (operation, goal) = match search.step {
            Look::First | Look::Second | Look::Last => {
                let trie = Trie { kind: Trie::FREE, shard };
                let (bounds, direction) = self.chemistry.resources(query);
                let wanted = Wanted::Resource(query.clone());
                let unique = self.random.number();
                (Operation::take(trie, unique, wanted, bounds, direction, LEAVES), Goal::Resource(id))
            }
            Look::Park => {
                let trie = Trie { kind: Trie::PARKED, shard };
                let tie = id.0 as u64;
                let key = index::Key::new(home.order, tie);
                let life = 3 * pause(self.settings.again, search.renewals);
                let pointer = Pointer::Parked(me, query.clone());
                search.note = Some(Note { trie, key, id: tie, stamp });
                (Operation::insert(trie, Entry { key, id: tie, stamp, life, pointer }), Goal::Park(id))
            }
            Look::Rest => {
                search.operation = None;
                self.scarce_until = now + SCARCE;
                let pause = pause(self.settings.again, search.renewals);
                search.renewals += 1;
                let pause = pause + self.random.below(pause / 4);
                self.timers.insert((now + pause, Timer::Search(id)));
                return;
            }
        };
        // It may be over before its number is known.
        let number = self.serial + 1;
        search.operation = Some(number);
        let parked = search.note.filter(|_| search.step == Look::Park);
        if let Some(note) = parked {
            self.note_host(note.trie);
        }
        self.operate(now, operation, goal);
    }

    /// A note is left with whoever has this part of the index now.
    fn note_host(&mut self, trie: Trie) {
        if let Some(host) = self.host_of(trie) {
            self.hosts.insert(trie, host);
        }
    }

    fn host_of(&self, trie: Trie) -> Option<Peer> {
        self.route.homes(Label::root(trie).position()).and_then(|homes| homes.peers().first().copied())
    }

    /// Notes are lost with the peer that has them, and of those that move from one to another nobody takes notice: who has
    /// left one where another peer is now begins anew.
    pub(super) fn review_notes(&mut self, now: Micros) {
        let moved: Vec<Trie> = self
            .hosts
            .iter()
            .filter(|(t, h)| self.host_of(**t).is_some_and(|n| n != **h))
            .map(|(t, _)| *t)
            .collect();
        if moved.is_empty() {
            return;
        }
        for trie in &moved {
            self.note_host(*trie);
        }
        let has_moved = |note: &Option<Note>| note.is_some_and(|note| moved.contains(&note.trie));
        if has_moved(&self.holder.note) {
            self.refresh(now);
        }
        let rests = |home: &super::home::Home| {
            home.search.as_ref().is_some_and(|s| s.step == Look::Rest && has_moved(&s.note))
        };
        let tasks: Vec<Id> = self.homes.iter().filter(|(_, home)| rests(home)).map(|(id, _)| *id).collect();
        for id in tasks {
            let search = self.homes.get_mut(&id).and_then(|home| home.search.take());
            self.remove_note(now, search.and_then(|s| s.note));
            self.scarce_until = 0;
            self.search(now, id);
        }
    }

    /// A task has waited for long.
    pub(super) fn search_again(&mut self, now: Micros, id: Id) {
        let shards = self.settings.shards;
        let Some(home) = self.homes.get_mut(&id) else { return };
        let Some(search) = &mut home.search else { return };
        if search.step != Look::Rest {
            return;
        }
        let old = search.note.take();
        search.step = if shards > 1 { Look::First } else { Look::Park };
        if shards > 1 {
            // Perhaps others have what it wants.
            search.shards = [search.shards[1], self.random.below(u64::from(shards)) as u16];
            self.remove_note(now, old);
        }
        self.look(now, id);
    }

    fn found_resource(&mut self, now: Micros, id: Id, peer: Peer) {
        let Some(search) = self.homes.get_mut(&id).and_then(|h| h.search.take()) else { return };
        self.end_search(now, search);
        self.scarce_until = 0;
        self.choose(now, id, peer);
    }

    /// A task has found what it looked for.
    pub(super) fn end_search(&mut self, now: Micros, search: Search) {
        self.remove_note(now, search.note);
    }

    pub(super) fn remove_note(&mut self, now: Micros, note: Option<Note>) {
        if let Some(Note { trie, key, id, stamp }) = note {
            self.operate(now, Operation::remove(trie, key, id, stamp), Goal::Remove);
        }
    }

    /// Leaves a note that this peer is free.
    pub(super) fn publish(&mut self, now: Micros) -> Option<Note> {
        let offer = self.holder.offer.clone()?;
        self.serial += 1;
        let stamp = self.serial;
        let shard = (crate::random::mix(self.me.0) % u64::from(self.settings.shards)) as u16;
        let trie = Trie { kind: Trie::FREE, shard };
        let id = self.me.0;
        let key = index::Key::new(self.chemistry.resource_order(&offer), id);
        let life = 3 * self.settings.refresh;
        let entry = Entry { key, id, stamp, life, pointer: Pointer::Free(self.me, offer) };
        self.note_host(trie);
        self.operate(now, Operation::insert(trie, entry), Goal::Offer);
        Some(Note { trie, key, id, stamp })
    }

    /// Looks for a task that waits.
    pub(super) fn look_for_task(&mut self, now: Micros, noted: bool) {
        let Some(offer) = self.holder.offer.clone() else { return };
        let shard = (crate::random::mix(self.me.0) % u64::from(self.settings.shards)) as u16;
        let trie = Trie { kind: Trie::PARKED, shard };
        let unique = self.random.number();
        let direction = self.chemistry.tasks();
        let operation = Operation::take(trie, unique, Wanted::Task(offer), None, direction, LEAVES);
        self.operate(now, operation, Goal::Task(noted));
    }
}

/// How long a note is left alone: longer each time.
fn pause(first: Micros, renewals: u32) -> Micros {
    (first << renewals.min(8)).min(SELDOM.max(first))
}
