//! What hosts tell parents of their nodes, and what follows from that: merging, healing, and forgetting.
//!
//! Beats tell a parent that a child is there and how large it is. Leaves that have become small are recalled by their parent.
//! A parent that was lost with its host is made again by the next beat of a child; a child that does not beat any more is taken
//! for lost.

use super::entries::Entries;
use super::host::{Host, Turn};
use super::key::Span;
use super::label::Label;
use super::message::{Beat, Body, Hosted, Why};
use super::node::{Kid, Kind, Node, Told};

/// How often a node tells its parent at most that somebody else is below it.
const MAP_PAUSE: u64 = 200_000;

impl<P: Clone> Host<P> {
    /// A child says that it is there.
    pub(super) fn heard(&mut self, turn: &mut Turn<'_, P>, label: Label, beat: Beat) {
        let (side, capacity) = (beat.child.side(), self.settings.capacity as u32);
        let here = Kid::Here { count: beat.count, bare: beat.bare, map: beat.map, heard: turn.now };
        let settled = self.outbox.is_settled(label);
        let Some(node) = self.nodes.get_mut(&label) else {
            // The parent was lost with its host.
            let mut kids = [Kid::Void, Kid::Void];
            kids[side] = here;
            self.nodes.insert(label, Node::inner(label, kids));
            return self.beat(turn, label);
        };
        match &mut node.kind {
            Kind::Leaf(_) if !settled => {}
            Kind::Leaf(entries) => match beat.count {
                Some(count) if entries.live() as u32 + count <= capacity / 2 => {
                    self.recall(turn, label, beat.child);
                }
                _ => {
                    let mut kids = [Kid::Void, Kid::Void];
                    for key in entries.keys() {
                        let side = label.side_of(key);
                        kids[side] = Kid::new(label.child(side), 0, turn.now);
                    }
                    kids[side] = here;
                    self.become_inner(turn, label, kids);
                }
            },
            Kind::Inner(kids) if kids[side] == Kid::Leaving => {}
            Kind::Inner(kids) => {
                let is_new = !kids[side].is_here();
                kids[side] = here;
                let covers = node.covers(label);
                let is_other_here = matches!(&node.kind, Kind::Inner(kids) if kids[1 - side].is_here());
                if beat.cover != covers[side] && settled {
                    self.move_items(turn, label, beat.child, Why::Down(covers[side]), Vec::new());
                }
                if is_new && is_other_here {
                    let other = label.child(1 - side);
                    self.move_items(turn, label, other, Why::Down(covers[1 - side]), Vec::new());
                }
                self.merge(turn, label);
                self.tell_map(turn, label);
            }
        }
    }

    /// Perhaps both children of an inner node, or one of them, are too small to stay.
    pub(super) fn merge(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        if !self.outbox.is_settled(label) {
            return;
        }
        let capacity = self.settings.capacity as u32;
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let Kind::Inner(kids) = &mut node.kind else { return };
        let is_bare = kids.iter().any(|kid| matches!(kid, Kid::Here { bare: true, .. }));
        let here = [kids[0].is_here(), kids[1].is_here()];
        let both = match (kids[0].count(), kids[1].count()) {
            (Some(a), Some(b)) => a + b <= capacity / 4 || a.min(b) == 0 && a + b <= capacity * 3 / 4,
            // If that is all there is in the trie, no search is spared anything.
            (Some(count), None) | (None, Some(count)) => {
                here != [true; 2] && count == 0 && (node.cover != Span::ALL || is_bare)
            }
            (None, None) => false,
        };
        if both {
            node.kind = Kind::Leaf(Entries::default());
            node.told = None;
            for side in [0, 1].into_iter().filter(|side| here[*side]) {
                self.recall(turn, label, label.child(side));
            }
        } else if here == [true; 2]
            && let Some(side) = [0, 1].into_iter().find(|side| kids[*side].count() == Some(0))
        {
            kids[side] = Kid::Leaving;
            self.recall(turn, label, label.child(side));
        }
    }

    /// Tells the parent that the node is there.
    pub(super) fn beat(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let (Some(parent), Some(node)) = (label.parent(), self.nodes.get_mut(&label)) else { return };
        let count = node.count();
        let map = node.map(label);
        node.told = Some(Told { count, map: map.clone(), at: turn.now });
        let beat = Beat { child: label, count, bare: node.is_bare(), cover: node.cover, map };
        turn.out.push(Hosted { label: parent, body: Body::Beat(beat) });
    }

    /// Tells the parent that signposts should point elsewhere, unless it was told a moment ago.
    pub(super) fn tell_map(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let Some(node) = self.nodes.get(&label) else { return };
        let is_news = |told: &Told| turn.now >= told.at + MAP_PAUSE && told.map != node.map(label);
        if node.told.as_ref().is_some_and(is_news) {
            self.beat(turn, label);
        }
    }

    /// Nobody has confirmed this for so long that nobody will.
    pub(super) fn gave_up(&mut self, turn: &mut Turn<'_, P>, from: Label, message: &Hosted<P>) {
        if let Body::Recall(_) = message.body
            && let Some(node) = self.nodes.get_mut(&from)
        {
            let before = node.covers(from);
            if let Kind::Inner(kids) = &mut node.kind {
                kids[message.label.side()] = Kid::Void;
            }
            self.pass(turn, from, before, Vec::new());
            self.release(turn, from);
        }
    }

    /// Time has passed for a node.
    pub(super) fn expire_node(&mut self, turn: &mut Turn<'_, P>, label: Label) {
        let (beat, pause) = (self.settings.beat, self.settings.pause);
        let settled = self.outbox.is_settled(label);
        let Some(node) = self.nodes.get_mut(&label) else { return };
        let before = node.covers(label);
        match &mut node.kind {
            Kind::Leaf(entries) => {
                entries.expire(turn.now);
                if label.is_empty() && entries.is_bare() && settled {
                    self.nodes.remove(&label);
                    return;
                }
            }
            Kind::Inner(kids) => {
                let mut is_lost = false;
                for kid in kids {
                    if matches!(kid, Kid::Here { heard, .. } if turn.now >= *heard + 3 * beat + pause) {
                        *kid = Kid::Void;
                        is_lost = true;
                    }
                }
                if is_lost {
                    self.pass(turn, label, before, Vec::new());
                }
            }
        }
        self.resized(turn, label);
        self.merge(turn, label);
        let Some(node) = self.nodes.get(&label) else { return };
        let due = match &node.told {
            None => true,
            Some(told) => {
                let small = node.count().is_some_and(|count| count as usize <= self.settings.capacity / 4);
                let changed = small && told.count != node.count() || told.map != node.map(label);
                let news = changed || node.is_bare();
                turn.now >= told.at + beat || news && turn.now >= told.at + pause
            }
        };
        if due {
            self.beat(turn, label);
        }
    }

    /// The ring has changed: gives nodes whose positions belong to others now to their new hosts.
    pub fn hand_over(&mut self, now: u64, owns: &mut dyn FnMut(u64) -> bool, out: &mut Vec<Hosted<P>>) {
        let turn = &mut Turn { now, out };
        let lost: Vec<Label> = self.nodes.keys().copied().filter(|label| !owns(label.position())).collect();
        for label in lost {
            let Some(node) = self.nodes.remove(&label) else { continue };
            let (cover, covers, mut items) = (node.cover, node.covers(label), node.held);
            match node.kind {
                Kind::Leaf(mut entries) => {
                    items.extend(entries.drain(turn.now));
                    self.move_items(turn, label, label, Why::Down(cover), items);
                }
                Kind::Inner(kids) => {
                    // The new host hears of the children as if they had told it.
                    for (side, kid) in kids.into_iter().enumerate() {
                        if let Kid::Here { count, bare, map, .. } = kid {
                            let beat =
                                Beat { child: label.child(side), count, bare, cover: covers[side], map };
                            turn.out.push(Hosted { label, body: Body::Beat(beat) });
                        }
                    }
                    if !items.is_empty() {
                        let to = label.parent().unwrap_or(label);
                        self.move_items(turn, label, to, Why::Evicted, items);
                    }
                }
            }
        }
    }
}
