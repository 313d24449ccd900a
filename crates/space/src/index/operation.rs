//! What a peer wants from a trie, and whom it asks next.

use super::key::{Key, Span};
use super::label::{Label, Trie};
use super::memory::Memory;
use super::message::{Answer, Direction, Entry, Item, Request, Take};
use super::search::{Found, Search, WAIT, WAITS};

/// One operation on a trie. `P` is what entries point to, `Q` what a taker looks for.
///
/// Requests that are not answered are asked again by the caller, unchanged. An operation that is dropped halfway may have
/// taken an entry that then nobody has: it comes back with its next refresh.
#[derive(Clone, Debug)]
pub struct Operation<P, Q> {
    trie: Trie,
    goal: Goal<P, Q>,
    search: Option<Search>,
    step: u16,
}

#[derive(Clone, Debug)]
enum Goal<P, Q> {
    Put { item: Item<P>, through: bool },
    Take(Wanted<Q>),
}

#[derive(Clone, Debug)]
struct Wanted<Q> {
    id: u64,
    query: Q,
    bounds: Span,
    direction: Direction,
    /// Leaves that may still be asked.
    leaves: u16,
    most: u16,
    /// Something was on its way, so that it may have been missed.
    is_unsettled: bool,
    waits: u8,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<P, Q> {
    /// Ask somebody.
    Ask {
        /// Who.
        label: Label,
        /// Where it is on the ring.
        position: u64,
        /// What.
        request: Request<P, Q>,
        /// Wait so many microseconds before that: mostly 0.
        after: u64,
    },
    /// That was it.
    Done(Outcome<P>),
}

/// What has become of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<P> {
    /// The entry is there, or is gone. Says whether that was news, as far as it is known.
    Stored(bool),
    /// Handed out.
    Taken(Entry<P>),
    /// There was nothing that fits.
    Nothing,
}

impl<P: Clone, Q: Clone> Operation<P, Q> {
    /// Inserts an entry, or refreshes it.
    pub fn insert(trie: Trie, entry: Entry<P>) -> Self {
        Self { trie, goal: Goal::Put { item: entry.into(), through: false }, search: None, step: 0 }
    }

    /// Removes the entry that was inserted with this stamp or an earlier one.
    pub fn remove(trie: Trie, key: Key, id: u64, stamp: u64) -> Self {
        let item = Item { key, id, stamp, life: 0, pointer: None };
        Self { trie, goal: Goal::Put { item, through: false }, search: None, step: 0 }
    }

    /// Takes the best entry that fits, from the low or the high end of the bounds. Asks at most so many leaves. `id` names
    /// the operation: no other of any peer may have the same within a minute.
    pub fn take(
        trie: Trie,
        id: u64,
        query: Q,
        bounds: Option<(Key, Key)>,
        direction: Direction,
        leaves: u16,
    ) -> Self {
        let bounds = bounds.map_or(Span::ALL, |(low, high)| Span(low, high));
        let (is_unsettled, waits) = (false, 0);
        let wanted = Wanted { id, query, bounds, direction, leaves, most: leaves, is_unsettled, waits };
        Self { trie, goal: Goal::Take(wanted), search: None, step: 0 }
    }

    /// Takes an answer in, nothing at first, and says what to do next.
    pub fn next(&mut self, memory: &mut Memory, answer: Option<Answer<P>>) -> Step<P, Q> {
        let Some((answer, mut search)) = answer.zip(self.search.take()) else {
            let start = match &self.goal {
                Goal::Put { item, .. } => item.key,
                Goal::Take(wanted) if wanted.bounds.0 > wanted.bounds.1 => {
                    return Step::Done(Outcome::Nothing);
                }
                Goal::Take(wanted) => wanted.start(),
            };
            return self.ask(Search::new(memory, self.trie, start), 0);
        };
        let found = match answer {
            Answer::Inner { next, settled } => {
                if let Goal::Take(wanted) = &mut self.goal {
                    wanted.is_unsettled |= !settled;
                }
                search.inner(memory, next)
            }
            Answer::Absent => search.absent(memory),
            Answer::Elsewhere(cover) => search.elsewhere(memory, cover),
            Answer::Stored { changed, cover } => {
                search.found(memory);
                if let Some(cover) = cover {
                    memory.learn(search.asked, cover);
                }
                return Step::Done(Outcome::Stored(changed));
            }
            Answer::Taken { entry, cover } => {
                search.found(memory);
                memory.learn(search.asked, cover);
                return Step::Done(Outcome::Taken(entry));
            }
            Answer::Nothing { cover, settled } => {
                search.found(memory);
                memory.learn(search.asked, cover);
                if let Goal::Take(wanted) = &mut self.goal {
                    wanted.is_unsettled |= !settled;
                }
                return self.go_on(memory, cover);
            }
        };
        match (found, &mut self.goal) {
            (Found::Ask(after), _) => self.ask(search, after),
            (Found::NoTrie, Goal::Take(_)) => Step::Done(Outcome::Nothing),
            (Found::Hole(span), Goal::Take(_)) => self.go_on(memory, span),
            (Found::NoTrie | Found::Hole(_), Goal::Put { through, .. }) => {
                // The way to the leaf is broken. The last node before the gap repairs it; the root can do that always.
                let root = Label::root(self.trie);
                search.asked = if *through { root } else { search.deepest().unwrap_or(root) };
                *through = true;
                self.ask(search, 0)
            }
        }
    }

    /// These keys have nothing that fits: asks who has the next ones.
    fn go_on(&mut self, memory: &Memory, passed: Span) -> Step<P, Q> {
        let Goal::Take(wanted) = &mut self.goal else { return Step::Done(Outcome::Nothing) };
        wanted.leaves = wanted.leaves.saturating_sub(1);
        let next = match wanted.direction {
            Direction::Up => passed.1.next(),
            Direction::Down => passed.0.previous(),
        };
        if let Some(at) = next.filter(|key| wanted.bounds.contains(*key) && wanted.leaves > 0) {
            return self.ask(Search::new(memory, self.trie, at), 0);
        }
        if wanted.is_unsettled && wanted.waits < WAITS {
            wanted.waits += 1;
            (wanted.is_unsettled, wanted.leaves) = (false, wanted.most);
            let (start, after) = (wanted.start(), WAIT << (wanted.waits - 1));
            return self.ask(Search::new(memory, self.trie, start), after);
        }
        Step::Done(Outcome::Nothing)
    }

    fn ask(&mut self, search: Search, after: u64) -> Step<P, Q> {
        self.step = self.step.wrapping_add(1);
        let (label, step) = (search.asked, self.step);
        let request = match &self.goal {
            Goal::Put { item, through } => {
                Request::Put { label, item: item.clone(), step, through: *through }
            }
            Goal::Take(wanted) => {
                let (id, query) = (wanted.id, wanted.query.clone());
                let (at, bounds, direction) = (search.at(), wanted.bounds, wanted.direction);
                Request::Take { label, take: Take { id, step, query, at, bounds, direction } }
            }
        };
        self.search = Some(search);
        Step::Ask { label, position: label.position(), request, after }
    }
}

impl<Q> Wanted<Q> {
    /// Where the best ones are.
    fn start(&self) -> Key {
        match self.direction {
            Direction::Up => self.bounds.0,
            Direction::Down => self.bounds.1,
        }
    }
}
