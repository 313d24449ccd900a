//! A node of a trie, as its host knows it.

use super::entries::Entries;
use super::key::{Key, Span};
use super::label::Label;
use super::map::Map;
use super::message::Item;

/// A node of a trie.
#[derive(Clone, Debug)]
pub(super) struct Node<P> {
    /// Keys it looks after: those of its label, and those next to them that no other node has.
    pub(super) cover: Span,
    pub(super) kind: Kind<P>,
    /// What its parent was told last, and when.
    pub(super) told: Option<Told>,
    /// What came for a child that is leaving. It waits until the child has left.
    pub(super) held: Vec<Item<P>>,
}

#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) count: Option<u32>,
    pub(super) map: Map,
    pub(super) at: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Kind<P> {
    Leaf(Entries<P>),
    Inner([Kid; 2]),
}

/// What an inner node knows of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kid {
    /// There is none: its keys are looked after by the other one.
    Void,
    /// It was told to give up and has not answered yet.
    Leaving,
    Here {
        /// How many entries it had; nothing if it is not a leaf.
        count: Option<u32>,
        /// It has not even graves.
        bare: bool,
        /// Who is below it.
        map: Map,
        heard: u64,
    },
}

impl Kid {
    /// A leaf that has just been made, with so many entries.
    pub(super) fn new(label: Label, count: usize, now: u64) -> Self {
        let map = Map::of(label, label.span().0);
        Self::Here { count: Some(count as u32), bare: false, map, heard: now }
    }

    /// How many entries it has, if it is a leaf.
    pub(super) fn count(&self) -> Option<u32> {
        if let Self::Here { count, .. } = self { *count } else { None }
    }

    pub(super) fn is_here(&self) -> bool {
        matches!(self, Self::Here { .. })
    }
}

impl<P: Clone> Node<P> {
    pub(super) fn leaf(label: Label, cover: Span) -> Self {
        let kind = Kind::Leaf(Entries::default());
        Self { cover: cover.union(label.span()), kind, told: None, held: Vec::new() }
    }

    pub(super) fn inner(label: Label, kids: [Kid; 2]) -> Self {
        Self { cover: label.span(), kind: Kind::Inner(kids), told: None, held: Vec::new() }
    }

    /// How many entries a leaf has.
    pub(super) fn count(&self) -> Option<u32> {
        match &self.kind {
            Kind::Leaf(entries) => Some(entries.live() as u32),
            Kind::Inner(_) => None,
        }
    }

    pub(super) fn is_bare(&self) -> bool {
        matches!(&self.kind, Kind::Leaf(entries) if entries.is_bare())
    }

    /// Who is below it.
    pub(super) fn map(&self, label: Label) -> Map {
        let map = match &self.kind {
            Kind::Inner([Kid::Here { map: low, .. }, Kid::Here { map: high, .. }]) => Map::join(low, high),
            Kind::Inner([Kid::Here { map, .. }, _] | [_, Kid::Here { map, .. }]) => Some(map.clone()),
            Kind::Leaf(_) | Kind::Inner(_) => None,
        };
        map.unwrap_or_else(|| Map::of(label, self.cover.0))
    }

    /// Where an inner node sends who looks for a key: to the child that contains it, or else to the other one, or to who is
    /// below that.
    pub(super) fn signpost(&self, label: Label, key: Key) -> Option<Label> {
        let Kind::Inner(kids) = &self.kind else { return None };
        let side = label.side_of(key);
        let below = [&kids[side], &kids[1 - side]].into_iter().find_map(|kid| match kid {
            Kid::Here { map, .. } => map.find(key),
            Kid::Void | Kid::Leaving => None,
        });
        Some(below.unwrap_or(label.child(side)))
    }

    /// What each child has to look after.
    pub(super) fn covers(&self, label: Label) -> [Span; 2] {
        let Kind::Inner(kids) = &self.kind else { return [self.cover; 2] };
        let low = Span(self.cover.0, label.child(0).span().1);
        let high = Span(label.child(1).span().0, self.cover.1);
        // Who is leaving has not given up its keys yet.
        let both = !kids.contains(&Kid::Void);
        if both { [low, high] } else { [self.cover; 2] }
    }
}
