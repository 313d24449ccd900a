//! What a peer hosts for others: nodes of tries, and how it answers clients.

use super::key::Key;
use super::label::Label;
use super::message::{Answer, Hosted, Item, Request, Serial, Take};
use super::node::{Kind, Node};
use super::outbox::{GIVE_UP, Outbox};
use super::recent::Recent;
use std::collections::BTreeMap;

/// How a host keeps its nodes. All times are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A leaf with more entries is split.
    pub capacity: usize,
    /// How often a node tells its parent that it is there.
    pub beat: u64,
    /// How often a leaf tells its parent at most that it has become small.
    pub pause: u64,
    /// How long an entry that was taken or removed is remembered.
    pub grave: u64,
    /// How long the answer to a request is remembered, in case that it got lost.
    pub answers: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let second = 1_000_000;
        let (beat, pause, grave, answers) = (20 * second, second, 30 * second, 30 * second);
        Self { capacity: 32, beat, pause, grave, answers }
    }
}

/// How many answers, and how many messages of other hosts, a host remembers.
const ANSWERS: usize = 8192;
const SEEN: usize = 16384;

/// How much a host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Nodes that hold entries.
    pub leaves: usize,
    /// Nodes that only know their children.
    pub inner: usize,
    /// Entries that can be taken.
    pub entries: usize,
    /// Messages to other hosts that are not confirmed.
    pub unconfirmed: usize,
    /// Answers that are remembered.
    pub answers: usize,
}

/// The nodes of tries that a peer hosts because it owns their positions on the ring. `P` is what entries point to.
#[derive(Clone, Debug)]
pub struct Host<P> {
    pub(super) settings: Settings,
    pub(super) nodes: BTreeMap<Label, Node<P>>,
    pub(super) outbox: Outbox<P>,
    pub(super) seen: Recent<Serial, ()>,
    answers: Recent<Asked, Answer<P>>,
}

/// Names a request: by its operation (a take has an id; an insert or removal is one entry with one stamp) and its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Put { label: Label, key: Key, id: u64, stamp: u64, inserts: bool, step: u16 },
    Take { id: u64, step: u16 },
}

/// One call of a host: what time it is, and what others have to be told.
pub(super) struct Turn<'a, P> {
    pub(super) now: u64,
    pub(super) out: &'a mut Vec<Hosted<P>>,
}

impl<P: Clone> Host<P> {
    /// A host that has nothing yet. No two hosts may have the same `id`, nor one that was restarted the one it had.
    pub fn new(id: u64, settings: Settings) -> Self {
        Self {
            settings,
            nodes: BTreeMap::new(),
            outbox: Outbox::new(id),
            seen: Recent::new(3 * GIVE_UP, SEEN),
            answers: Recent::new(settings.answers, ANSWERS),
        }
    }

    /// Takes a request in, gives the answer for who asked, and what hosts of other labels have to be told. Those need not
    /// answer, and what they are told may get lost.
    pub fn handle<Q>(
        &mut self,
        now: u64,
        request: Request<P, Q>,
        fits: &mut dyn FnMut(&Q, &P) -> bool,
        out: &mut Vec<Hosted<P>>,
    ) -> Option<Answer<P>> {
        let turn = &mut Turn { now, out };
        match request {
            Request::Put { label, item, step, through } => {
                let Item { key, id, stamp, .. } = item;
                let asked = Asked::Put { label, key, id, stamp, inserts: item.pointer.is_some(), step };
                Some(self.once(turn, asked, |host, turn| host.put(turn, label, item, through)))
            }
            Request::Take { label, take } => {
                let asked = Asked::Take { id: take.id, step: take.step };
                Some(self.once(turn, asked, |host, turn| host.take(turn, label, &take, fits)))
            }
            Request::Maintain(hosted) => {
                self.maintain(turn, hosted);
                None
            }
        }
    }

    /// Whether there is nothing to look after.
    pub fn is_idle(&self) -> bool {
        self.nodes.is_empty() && self.outbox.len() == 0
    }

    /// How much there is.
    pub fn sizes(&self) -> Sizes {
        let (unconfirmed, answers) = (self.outbox.len(), self.answers.len());
        let mut sizes = Sizes { unconfirmed, answers, ..Sizes::default() };
        for node in self.nodes.values() {
            match &node.kind {
                Kind::Leaf(entries) => {
                    sizes.leaves += 1;
                    sizes.entries += entries.live();
                }
                Kind::Inner(_) => sizes.inner += 1,
            }
        }
        sizes
    }

    /// Answers a request, and remembers the answer: a copy of the request gets the same. So what is inserted is accepted once,
    /// and a late copy takes nothing that nobody waits for.
    fn once(
        &mut self,
        turn: &mut Turn<'_, P>,
        asked: Asked,
        answer: impl FnOnce(&mut Self, &mut Turn<'_, P>) -> Answer<P>,
    ) -> Answer<P> {
        if let Some(answer) = self.answers.get(asked) {
            return answer.clone();
        }
        let answer = answer(self, turn);
        self.answers.insert(turn.now, asked, answer.clone());
        answer
    }

    fn put(&mut self, turn: &mut Turn<'_, P>, label: Label, mut item: Item<P>, through: bool) -> Answer<P> {
        if item.pointer.is_none() {
            item.life = self.settings.grave;
        }
        let settled = self.outbox.is_settled(label);
        if label.is_empty() {
            self.nodes.entry(label).or_insert_with(|| Node::leaf(label, label.span()));
        }
        let Some(node) = self.nodes.get_mut(&label) else { return Answer::Absent };
        let cover = node.cover;
        if !cover.contains(item.key) {
            return Answer::Elsewhere(cover);
        }
        if let Some(next) = node.signpost(label, item.key).filter(|_| !through) {
            return Answer::Inner { next, settled };
        }
        if let Kind::Leaf(entries) = &mut node.kind {
            let changed = entries.put(turn.now, item);
            self.resized(turn, label);
            return Answer::Stored { changed, cover: Some(cover) };
        }
        self.route(turn, label, vec![item]);
        Answer::Stored { changed: true, cover: None }
    }

    fn take<Q>(
        &mut self,
        turn: &mut Turn<'_, P>,
        label: Label,
        take: &Take<Q>,
        fits: &mut dyn FnMut(&Q, &P) -> bool,
    ) -> Answer<P> {
        let settled = self.outbox.is_settled(label);
        let Some(node) = self.nodes.get_mut(&label) else { return Answer::Absent };
        let (cover, grave) = (node.cover, self.settings.grave);
        if !cover.contains(take.at) {
            return Answer::Elsewhere(cover);
        }
        if let Some(next) = node.signpost(label, take.at) {
            return Answer::Inner { next, settled };
        }
        let Kind::Leaf(entries) = &mut node.kind else { return Answer::Absent };
        let found = entries.take(turn.now, take.bounds, take.direction, grave, |p| fits(&take.query, p));
        let Some(entry) = found else { return Answer::Nothing { cover, settled } };
        self.resized(turn, label);
        Answer::Taken { entry, cover }
    }

    /// Lets old entries and empty nodes vanish, says again what was not confirmed, and tells parents that their children are
    /// there. To be called every few seconds.
    pub fn expire(&mut self, now: u64, out: &mut Vec<Hosted<P>>) {
        let turn = &mut Turn { now, out };
        self.answers.expire(now);
        self.seen.expire(now);
        for (from, message) in self.outbox.repeat(now, turn.out) {
            self.gave_up(turn, from, &message);
        }
        let labels: Vec<Label> = self.nodes.keys().copied().collect();
        for label in labels {
            self.expire_node(turn, label);
        }
    }
}
