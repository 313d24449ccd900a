//! How hosts keep a trie in shape: leaves that are too full are split, leaves that are too small give up.
//!
//! An inner node knows which of its children exist. Where one does not, the outermost leaf below the other looks after its
//! keys too: that is its cover. So keys that nobody has cost nothing, and there are no empty leaves to walk through.
//! (A prefix hash tree as published has a leaf for every key.)
//!
//! While nobody crashes nothing is lost: entries that move are in the outbox of their sender until the receiver has
//! confirmed them, and the receiver knows copies by their serial. A node neither splits nor merges while something it said is
//! not confirmed, so at most one change at a time is on its way between a parent and a child. After a crash, beats make
//! missing parents again, and a leaf that hears of a child below it takes its entries or lets it be.

use super::entries::Entries;
use super::host::{Host, Turn};
use super::key::Span;
use super::label::Label;
use super::map::Map;
use super::message::{Body, Hosted, Item, Serial, Why};
use super::node::{Kid, Kind, Node, Told};
use std::collections::BTreeMap;

impl<P: Clone> Host<P> {
    /// Another host says something.
    pub(super) fn maintain(&mut self, turn: &mut Turn<'_, P>, hosted: Hosted<P>) {
        let label = hosted.label;
        match hosted.body {
            Body::Adopt { from, serial, why, items } => {
                turn.out.push(Hosted { label: from, body: Body::Ack(serial) });
                if self.seen.insert(turn.now, serial, ()) {
                    self.adopt(turn, label, from, why, items);
                }
            }
            Body::Ack(serial) => {
                if let Some(from) = self.outbox.confirm(turn.now, serial, turn.out) {
                    self.resized(turn, from);
                    self.merge(turn, from);
                }
            }
            Body::Recall(serial) => {
                if self.seen.insert(turn.now, serial, ()) {
                    self.recalled(turn, label, serial);
                } else if let (Some(parent), true) = (label.parent(), self.nodes.contains_key(&label)) {
                    // It did not give up then, and the answer may be lost.
                    let body = Body::Stays { from: label, recall: serial };
                    turn.out.push(Hosted { label: parent, body });
                }
            }
            Body::Stays { from, recall } => {
                if self.outbox.confirm(turn.now, recall, turn.out).is_some() {
                    self.stays(turn, label, from);
                    self.release(turn, label);
                }
            }
            Body::Beat(beat) => self.heard(turn, label, beat),
        }
    }

    /// Entries come here.
    fn adopt(&mut self, turn: &mut Turn<'_, P>, label: Label, from: Label, why: Why, items: Vec<Item<P>>) {
        if let Why::Left(recall) = why {
            self.outbox.confirm(turn.now, recall, turn.out);
        }
        let is_new = !self.nodes.contains_key(&label);
        let node = self.nodes.entry(label).or_insert_with(|| Node::leaf(label, label.span()));
        match why {
            Why::Down(cover) => return self.cover(turn, label, cover, items),
            Why::Along(cover) if is_new => return self.cover(turn, label, cover, items),
            Why::Along(_) => return self.route(turn, label, items),
            Why::Left(_) => {
                let before = node.covers(label);
                if let Kind::Inner(kids) = &mut node.kind {
                    kids[from.side()] = Kid::Void;
                }
                self.pass(turn, label, before, items);
                return self.release(turn, label);
            }
            Why::Evicted => {}
        }
        let mut before = node.covers(label);
        if let Kind::Inner(kids) = &mut node.kind {
            for (side, kid) in kids.iter_mut().enumerate() {
                let live = |i: &&Item<P>| i.pointer.is_some() && label.side_of(i.key) == side;
                let count = items.iter().filter(live).count();
                // Worth a leaf of its own. If there are fewer, the other side keeps looking after them.
                if *kid == Kid::Void && count >= self.settings.capacity / 4 {
                    *kid = Kid::new(label.child(side), count, turn.now);
                }
                if *kid == Kid::Void {
                    // Who sent them seems not to know, so it is told.
                    before[1 - side] = label.child(1 - side).span();
                }
            }
        }
        self.pass(turn, label, before, items);
    }

    /// A node looks after these keys from now on, and gets these entries.
    fn cover(&mut self, turn: &mut Turn<'_, P>, label: Label, cover: Span, items: Vec<Item<P>>) {
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let before = node.covers(label);
        node.cover = cover.union(label.span());
        self.pass(turn, label, before, items);
    }

    /// A node gets entries, and what its children have to look after has changed from that to what it is now.
    pub(super) fn pass(
        &mut self,
        turn: &mut Turn<'_, P>,
        label: Label,
        before: [Span; 2],
        items: Vec<Item<P>>,
    ) {
        self.bring(turn, label, before, items);
        self.tell_map(turn, label);
    }

    /// Which child of an inner node looks after an entry. Nobody does while the one that did is leaving.
    fn target(&self, label: Label, item: &Item<P>) -> Option<usize> {
        let Kind::Inner(kids) = &self.nodes.get(&label)?.kind else { return None };
        let side = label.side_of(item.key);
        let side = if kids[side] == Kid::Void { 1 - side } else { side };
        kids[side].is_here().then_some(side)
    }

    /// Brings entries to where they belong, from a node that exists.
    pub(super) fn route(&mut self, turn: &mut Turn<'_, P>, label: Label, items: Vec<Item<P>>) {
        if let Some(node) = self.nodes.get(&label) {
            self.bring(turn, label, node.covers(label), items);
        }
    }

    /// Keeps entries if the node is a leaf, sends them on if not. Children hear what they have to look after, if that was not so
    /// before.
    fn bring(&mut self, turn: &mut Turn<'_, P>, label: Label, before: [Span; 2], items: Vec<Item<P>>) {
        let mut parts = [Vec::new(), Vec::new()];
        let mut own = Vec::new();
        for item in items {
            match self.target(label, &item) {
                Some(side) => parts[side].push(item),
                None => own.push(item),
            }
        }
        let Some(node) = self.nodes.get(&label) else { return };
        let covers = node.covers(label);
        if let Kind::Inner(kids) = &node.kind {
            let here = [kids[0].is_here(), kids[1].is_here()];
            for (side, items) in parts.into_iter().enumerate() {
                let is_told = covers[side] != before[side];
                if here[side] && (is_told || !items.is_empty()) {
                    let why = if is_told { Why::Down(covers[side]) } else { Why::Along(covers[side]) };
                    self.move_items(turn, label, label.child(side), why, items);
                }
            }
        }
        let Some(node) = self.nodes.get_mut(&label) else { return };
        if matches!(node.kind, Kind::Inner([Kid::Void, Kid::Void])) {
            node.kind = Kind::Leaf(Entries::default());
        }
        match &mut node.kind {
            Kind::Inner(_) => node.held.extend(own),
            Kind::Leaf(entries) => {
                for item in own {
                    entries.put(turn.now, item);
                }
                self.evict(turn, label);
                self.resized(turn, label);
            }
        }
    }

    pub(super) fn move_items(
        &mut self,
        turn: &mut Turn<'_, P>,
        from: Label,
        to: Label,
        why: Why,
        items: Vec<Item<P>>,
    ) {
        self.outbox.adopt(turn.now, (from, to), turn.out, why, items);
    }

    /// A leaf gives away what others look after.
    fn evict(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let (cover, Kind::Leaf(entries)) = (node.cover, &mut node.kind) else { return };
        let (below, above): (Vec<_>, Vec<_>) =
            entries.take_outside(turn.now, cover).into_iter().partition(|item| item.key < cover.0);
        // All that is on one side goes together, to the nearest node that has another side.
        for (next, items) in [(cover.0.previous(), below), (cover.1.next(), above)] {
            if let Some(next) = next.filter(|_| !items.is_empty()) {
                self.move_items(turn, label, label.common(next), Why::Evicted, items);
            }
        }
    }

    /// The size of a leaf has changed: it may be too full, or so small that its parent should know.
    pub(super) fn resized(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let Kind::Leaf(entries) = &node.kind else { return };
        let (live, capacity) = (entries.live(), self.settings.capacity);
        if live > capacity {
            // It may be on its way to become something else: then it is looked at again when that is confirmed.
            if self.outbox.is_settled(label) {
                self.divide(turn, label);
            }
            return;
        }
        let small = (capacity / 4) as u32;
        let is_news = match &node.told {
            None => live as u32 <= small,
            Some(Told { count: Some(told), at, .. }) => {
                let shrunk = live as u32 <= small && (live as u32) < *told;
                let grown = *told <= small / 2 && live as u32 > small
                    || *told <= small && live as u32 > small * 3 / 2;
                // An empty leaf is in the way of every search, so that is told at once.
                (shrunk || grown) && (turn.now >= *at + self.settings.pause || live == 0)
            }
            Some(Told { count: None, .. }) => true,
        };
        if is_news {
            self.beat(turn, label);
        }
    }

    /// A leaf is too full: it gives away keys that it looks after for others, if it has many of those, or it is split.
    fn divide(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let Kind::Leaf(entries) = &mut node.kind else { return };
        let span = label.span();
        let mut foreign: BTreeMap<(Label, usize), usize> = BTreeMap::new();
        for key in entries.keys().filter(|key| !span.contains(*key)) {
            let ancestor = label.common(key);
            *foreign.entry((ancestor, ancestor.side_of(key))).or_default() += 1;
        }
        // The nearest ones: what is beyond them goes too, because a cover has no holes.
        let enough = self.settings.capacity / 4;
        let many = |side: usize| {
            let many = foreign.iter().filter(|((_, s), count)| *s == side && **count >= enough);
            many.map(|((ancestor, _), _)| *ancestor).max_by_key(|ancestor| ancestor.len())
        };
        let (above, below) = (many(1), many(0));
        if above.is_some() || below.is_some() {
            if let Some(ancestor) = above {
                node.cover.1 = ancestor.child(0).span().1;
            }
            if let Some(ancestor) = below {
                node.cover.0 = ancestor.child(1).span().0;
            }
            return self.evict(turn, label);
        }
        if label.len() < Label::LONGEST {
            let mut kids = [Kid::Void, Kid::Void];
            for key in entries.keys() {
                let side = label.side_of(key);
                kids[side] = Kid::new(label.child(side), 0, turn.now);
            }
            self.become_inner(turn, label, kids);
        }
    }

    /// A leaf becomes an inner node with these children, and they get its entries.
    pub(super) fn become_inner(&mut self, turn: &mut Turn<'_, P>, label: Label, mut kids: [Kid; 2]) {
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let Kind::Leaf(entries) = &mut node.kind else { return };
        for key in entries.keys() {
            if let Kid::Here { count: Some(count), .. } = &mut kids[label.side_of(key)] {
                *count += 1;
            }
        }
        let items = entries.drain(turn.now);
        let before = node.covers(label);
        node.kind = Kind::Inner(kids);
        node.told = None;
        self.pass(turn, label, before, items);
    }

    /// The parent wants what this node has.
    fn recalled(&mut self, turn: &mut Turn<'_, P>, label: Label, recall: Serial) {
        let Some(parent) = label.parent() else { return };
        let items = match self.nodes.get_mut(&label).map(|node| &mut node.kind) {
            None => Vec::new(),
            Some(Kind::Leaf(entries)) if self.outbox.is_settled(label) => entries.drain(turn.now),
            Some(_) => {
                turn.out.push(Hosted { label: parent, body: Body::Stays { from: label, recall } });
                return;
            }
        };
        self.nodes.remove(&label);
        self.move_items(turn, label, parent, Why::Left(recall), items);
    }

    /// A child cannot give up: it is not a leaf any more, or not yet.
    fn stays(&mut self, turn: &mut Turn<'_, P>, label: Label, child: Label) {
        let is_leaving = self.outbox.recalls(label, 1 - child.side());
        let map = Map::of(child, child.span().0);
        let here = Kid::Here { count: None, bare: false, map, heard: turn.now };
        let Some(node) = self.nodes.get_mut(&label) else { return };
        if let Kind::Inner(kids) = &mut node.kind {
            kids[child.side()] = here;
        } else {
            let mut kids = [Kid::Void, Kid::Void];
            kids[child.side()] = here;
            if is_leaving {
                kids[1 - child.side()] = Kid::Leaving;
            }
            self.become_inner(turn, label, kids);
        }
    }

    /// What waited for children that were recalled need not wait any more, if all have answered.
    pub(super) fn release(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        if self.outbox.recalls_any(label) {
            return;
        }
        if let Some(node) = self.nodes.get_mut(&label) {
            let held = std::mem::take(&mut node.held);
            self.route(turn, label, held);
        }
    }

    pub(super) fn recall(&mut self, turn: &mut Turn<'_, P>, label: Label, child: Label) {
        self.outbox.send(turn.now, (label, child), turn.out, Body::Recall);
    }
}
