//! Labels: the names of a trie's nodes, and where on the ring they are.

use super::key::{Key, Span};
use crate::random::Random;
use serde::{Deserialize, Serialize};

/// One of many tries that share the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Trie {
    /// What is in it: [`Trie::FREE`] or [`Trie::PARKED`].
    pub kind: u8,
    /// Which part of it, so that no peer has all of it.
    pub shard: u16,
}

impl Trie {
    /// The kind of tries that hold free resources.
    pub const FREE: u8 = 0;
    /// The kind of tries that hold parked tasks.
    pub const PARKED: u8 = 1;
}

/// The first bits of keys in a trie. A node of the trie is called by the bits that all keys below it share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Label {
    trie: Trie,
    bits: u32,
    len: u8,
}

/// Every bit of the outcome depends on every bit of `x`.
pub(super) fn mix(x: u64) -> u64 {
    Random::new(x).number()
}

impl Label {
    /// The longest label: a whole key.
    pub const LONGEST: u8 = 32;

    /// The label of a trie's root.
    pub fn root(trie: Trie) -> Self {
        Self { trie, bits: 0, len: 0 }
    }

    /// The first `len` bits of a key.
    pub fn of(trie: Trie, key: Key, len: u8) -> Self {
        let len = len.min(Self::LONGEST);
        Self { trie, bits: key.0 & Self::mask(len), len }
    }

    fn mask(len: u8) -> u32 {
        u32::MAX.checked_shl(u32::from(Self::LONGEST - len)).unwrap_or(0)
    }

    /// The trie it belongs to.
    pub fn trie(self) -> Trie {
        self.trie
    }

    /// How many bits it has.
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether it is the label of the root, which has no bits.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where it is on the ring.
    pub fn position(self) -> u64 {
        let trie = u64::from(self.trie.kind) << 16 | u64::from(self.trie.shard);
        mix(mix(trie << 8 | u64::from(self.len)) ^ u64::from(self.bits))
    }

    /// The keys that start with it.
    pub fn span(self) -> Span {
        Span(Key(self.bits), Key(self.bits | !Self::mask(self.len)))
    }

    /// One bit shorter.
    pub fn parent(self) -> Option<Self> {
        let len = self.len.checked_sub(1)?;
        Some(Self::of(self.trie, Key(self.bits), len))
    }

    /// One bit longer.
    #[must_use]
    pub fn child(self, side: usize) -> Self {
        let len = (self.len + 1).min(Self::LONGEST);
        Self { trie: self.trie, bits: self.bits | (side as u32) << (Self::LONGEST - len), len }
    }

    /// Which child of its parent it is.
    pub fn side(self) -> usize {
        if self.len == 0 { 0 } else { (self.bits >> (Self::LONGEST - self.len) & 1) as usize }
    }

    /// Which child is nearest to a key: the one that contains it, if any does.
    pub fn side_of(self, key: Key) -> usize {
        usize::from(key >= self.child(1).span().0)
    }

    /// The longest label that both this one and the key start with.
    #[must_use]
    pub fn common(self, key: Key) -> Self {
        let same = (self.bits ^ key.0).leading_zeros() as u8;
        Self::of(self.trie, key, same.min(self.len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIE: Trie = Trie { kind: Trie::FREE, shard: 3 };

    #[test]
    fn a_label_contains_what_its_children_contain() {
        let label = Label::of(TRIE, Key(0xabcd_ef01), 7);
        let (zero, one) = (label.child(0), label.child(1));
        assert_eq!(zero.span().0, label.span().0);
        assert_eq!(zero.span().1.next(), Some(one.span().0));
        assert_eq!(one.span().1, label.span().1);
        assert_eq!((zero.side(), one.side()), (0, 1));
        assert_eq!((zero.parent(), one.parent()), (Some(label), Some(label)));
        assert_eq!(one.common(zero.span().0), label);
        assert_eq!((label.side_of(Key::MIN), label.side_of(Key::MAX)), (0, 1));
        assert_eq!(Label::root(TRIE).parent(), None);
        assert_eq!(Label::root(TRIE).span(), Span::ALL);
        assert_eq!(Label::of(TRIE, Key(7), 32).span(), Span(Key(7), Key(7)));
    }

    #[test]
    fn labels_spread_over_the_ring() {
        let mut peers = vec![0; 64];
        for shard in 0..64 {
            for len in 0..8_u8 {
                for bits in 0..1_u32 << len {
                    let key = Key(bits.checked_shl(u32::from(32 - len)).unwrap_or(0));
                    let label = Label::of(Trie { kind: Trie::PARKED, shard }, key, len);
                    peers[(label.position() >> 58) as usize] += 1;
                }
            }
        }
        assert!(peers.iter().all(|p| (180..340).contains(p)), "255 is the mean: {peers:?}");
    }
}
