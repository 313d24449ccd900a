//! The search for the leaf that looks after a key.

use super::key::{Key, Span};
use super::label::{Label, Trie};
use super::memory::Memory;

/// How long to wait for entries that are on their way, in microseconds, and how often. Each time it is twice as long.
pub(super) const WAIT: u64 = 50_000;
pub(super) const WAITS: u8 = 6;
/// After how many steps a search gives up.
const STEPS: u8 = 40;

/// Begins with what is remembered. From a node that is no leaf it follows the signpost. From a label that is no node it goes
/// up, one bit at first, because leaves mostly merge with their neighbours, then faster.
///
/// (The binary search over the lengths of prefixes of the published structure would not find its way where keys that nobody
/// has need no leaf. A signpost passes over chains of nodes, so there are about as many steps as the trie has forks.)
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// Who is asked now.
    pub(super) asked: Label,
    /// What memory says, until it is known whether that is right.
    guess: Option<Label>,
    /// The key that is looked for.
    at: Key,
    /// The last inner node on the way that looks after it.
    inner: Option<Label>,
    is_lost: bool,
    waits: u8,
    steps: u8,
}

/// Where a search has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Ask [`Search::asked`], after so many microseconds.
    Ask(u64),
    /// There is no trie.
    NoTrie,
    /// The trie is damaged, or being changed: nobody has these keys.
    Hole(Span),
}

impl Search {
    pub(super) fn new(memory: &Memory, trie: Trie, at: Key) -> Self {
        let (guess, root) = (memory.guess(trie, at), Label::root(trie));
        let asked = if memory.is_doubtful(trie) { root } else { guess };
        Self { asked, guess: Some(guess), at, inner: None, is_lost: false, waits: 0, steps: 0 }
    }

    /// The key that is looked for.
    pub(super) fn at(&self) -> Key {
        self.at
    }

    /// The last inner node on the way.
    pub(super) fn deepest(&self) -> Option<Label> {
        self.inner
    }

    /// The leaf was found.
    pub(super) fn found(&mut self, memory: &mut Memory) {
        let found = self.asked;
        self.judge(memory, found);
    }

    fn judge(&mut self, memory: &mut Memory, right: Label) {
        if let Some(guess) = self.guess.take() {
            memory.judge(guess.trie(), guess == right);
        }
    }

    /// Who was asked is an inner node, and says where to go on.
    pub(super) fn inner(&mut self, memory: &mut Memory, next: Label) -> Found {
        self.judge(memory, next);
        memory.forget(self.asked);
        self.inner = Some(self.asked);
        self.steps += 1;
        if self.steps > STEPS || next.len() <= self.asked.len() {
            return Found::Hole(self.asked.span());
        }
        self.asked = next;
        Found::Ask(0)
    }

    /// Who was asked does not exist.
    pub(super) fn absent(&mut self, memory: &mut Memory) -> Found {
        memory.forget(self.asked);
        if self.asked.is_empty() {
            memory.forget_trie(self.asked.trie());
            return Found::NoTrie;
        }
        // Mostly it has merged with its neighbour. If not, the root knows best.
        let up = if self.is_lost { 0 } else { self.asked.len() - 1 };
        self.is_lost = true;
        self.astray(self.asked.span(), up)
    }

    /// Who was asked looks after other keys.
    pub(super) fn elsewhere(&mut self, memory: &mut Memory, cover: Span) -> Found {
        memory.learn(self.asked, cover);
        let next = if self.at < cover.0 { cover.0.previous() } else { cover.1.next() };
        let next = next.unwrap_or(self.at);
        // Between the key and those that it looks after there is nobody, if the nearest node that has another side says so too.
        let hole = Span(self.at, self.at).union(Span(next, next));
        self.astray(hole, self.asked.common(next).len())
    }

    /// The one who was asked is the wrong one. Asks who is above it; if nobody knows, then nobody has these keys.
    fn astray(&mut self, hole: Span, len: u8) -> Found {
        self.steps += 1;
        if self.steps > STEPS {
            return Found::Hole(hole);
        }
        let asked = self.asked;
        let up = |len| Label::of(asked.trie(), asked.span().0, len);
        match self.inner.filter(|inner| inner.len() < asked.len()) {
            // A parent without its child: either the child has to be told yet, or it was lost.
            Some(inner) if inner.len() + 1 == asked.len() => {
                self.waits += 1;
                if self.waits > WAITS {
                    return Found::Hole(hole);
                }
                self.asked = inner;
                Found::Ask(WAIT << (self.waits - 1))
            }
            // The signpost is out of date; who is nearer knows better.
            Some(inner) => {
                self.asked = up(len.max(inner.len() + 1));
                Found::Ask(0)
            }
            None => {
                self.asked = up(len);
                Found::Ask(0)
            }
        }
    }
}
