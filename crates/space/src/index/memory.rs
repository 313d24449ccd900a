//! What a peer remembers of tries, so that the usual operation asks the right leaf at once.

use super::key::{Key, Span};
use super::label::{Label, Trie};
use std::collections::BTreeMap;

/// How much is remembered. What is beyond it is learned again.
const TRIES: usize = 256;
const LEAVES: usize = 128;

/// Leaves that a peer has seen lately, and which keys they looked after. It may be out of date: that costs requests, nothing
/// else.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tries: BTreeMap<Trie, Known>,
    clock: u64,
}

#[derive(Clone, Debug, Default)]
struct Known {
    /// By the first key.
    leaves: BTreeMap<Key, (Key, Label)>,
    used: u64,
    /// Grows when a guess was wrong, and shrinks when it was right.
    doubt: u8,
}

/// How much doubt a wrong guess brings and a right one takes away, from when on it is too much, and where it ends. A wrong guess
/// costs about two requests more than asking the root first, a right one saves one.
const WRONG: u8 = 3;
const RIGHT: u8 = 2;
const TOO_MUCH: u8 = 6;
const MOST: u8 = 12;

impl Memory {
    /// Whom to ask first about a key.
    pub(super) fn guess(&self, trie: Trie, key: Key) -> Label {
        let Some(known) = self.tries.get(&trie) else { return Label::root(trie) };
        let below = known.leaves.range(..=key).next_back().map(|(_, (high, label))| (*high, *label));
        if let Some((high, label)) = below
            && key <= high
        {
            return label;
        }
        // Leaves next to each other are often equally deep.
        let above = known.leaves.range(key..).next().map(|(_, (_, label))| *label);
        let near = below.map(|(_, label)| label).or(above);
        near.map_or(Label::root(trie), |label| Label::of(trie, key, label.len()))
    }

    /// Whether guesses have been wrong so often lately that it is better to ask the root first.
    pub(super) fn is_doubtful(&self, trie: Trie) -> bool {
        self.tries.get(&trie).is_some_and(|known| known.doubt >= TOO_MUCH)
    }

    /// A guess was right or wrong.
    pub(super) fn judge(&mut self, trie: Trie, right: bool) {
        if let Some(known) = self.tries.get_mut(&trie) {
            let doubt = if right { known.doubt.saturating_sub(RIGHT) } else { known.doubt + WRONG };
            known.doubt = doubt.min(MOST);
        }
    }

    /// A leaf says what it looks after.
    pub(super) fn learn(&mut self, label: Label, cover: Span) {
        self.clock += 1;
        let known = self.tries.entry(label.trie()).or_default();
        known.used = self.clock;
        // At most one that begins earlier reaches into it.
        let first = known.leaves.range(..cover.0).next_back().filter(|(_, (high, _))| *high >= cover.0);
        let first = first.map(|(low, _)| *low);
        let inside = known.leaves.range(cover.0..=cover.1).map(|(low, _)| *low);
        for low in first.into_iter().chain(inside).collect::<Vec<Key>>() {
            known.leaves.remove(&low);
        }
        known.leaves.retain(|_, (_, other)| *other != label);
        if known.leaves.len() >= LEAVES {
            known.leaves.clear();
        }
        known.leaves.insert(cover.0, (cover.1, label));
        if self.tries.len() > TRIES {
            let oldest = self.tries.iter().min_by_key(|(_, known)| known.used).map(|(trie, _)| *trie);
            oldest.and_then(|trie| self.tries.remove(&trie));
        }
    }

    /// There is no such leaf any more.
    pub(super) fn forget(&mut self, label: Label) {
        if let Some(known) = self.tries.get_mut(&label.trie()) {
            known.leaves.retain(|_, (_, other)| *other != label);
        }
    }

    /// There is no such trie any more.
    pub(super) fn forget_trie(&mut self, trie: Trie) {
        self.tries.remove(&trie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIE: Trie = Trie { kind: Trie::FREE, shard: 0 };

    #[test]
    fn what_is_learned_replaces_what_it_contradicts() {
        let mut memory = Memory::default();
        let label = |bits: u32, len| Label::of(TRIE, Key(bits << 24), len);
        assert_eq!(memory.guess(TRIE, Key(5)), Label::root(TRIE));
        memory.learn(label(0x00, 2), label(0x00, 2).span());
        memory.learn(label(0x40, 2), label(0x40, 1).span().union(label(0x40, 2).span()));
        assert_eq!(memory.guess(TRIE, Key(5)), label(0x40, 2), "the later one looks after it");
        assert_eq!(memory.guess(TRIE, Key(0xf000_0000)), label(0xf0, 2), "as deep as its neighbour");
        memory.forget(label(0x40, 2));
        assert_eq!(memory.guess(TRIE, Key(5)), Label::root(TRIE));
    }
}
