//! Messages between hosts that must arrive: said again until they are confirmed, and in order.

use super::label::Label;
use super::message::{Body, Hosted, Item, Serial, Why};
use std::collections::BTreeMap;

/// When a message is said again, in microseconds. Hosts that are alive answer much sooner.
const PATIENCE: u64 = 2_000_000;
/// When its sender gives up. The receiver must remember for longer what it has seen.
pub(super) const GIVE_UP: u64 = 20_000_000;

/// What a host has said and nobody has confirmed yet.
#[derive(Clone, Debug)]
pub(super) struct Outbox<P> {
    host: u64,
    number: u64,
    waiting: BTreeMap<u64, Waiting<P>>,
    /// How many messages of a label wait.
    senders: BTreeMap<Label, u32>,
}

#[derive(Clone, Debug)]
struct Waiting<P> {
    from: Label,
    message: Hosted<P>,
    first: u64,
    /// When it was said last; nothing if it waits for an earlier one to the same label.
    last: Option<u64>,
}

impl<P: Clone> Outbox<P> {
    pub(super) fn new(host: u64) -> Self {
        Self { host, number: 0, waiting: BTreeMap::new(), senders: BTreeMap::new() }
    }

    /// Says something, and keeps it until it is confirmed. From one label to another only one thing is said at a time: a leaf
    /// must not hear of an entry before it hears that it is gone.
    pub(super) fn send(
        &mut self,
        now: u64,
        (from, to): (Label, Label),
        out: &mut Vec<Hosted<P>>,
        body: impl FnOnce(Serial) -> Body<P>,
    ) {
        self.number += 1;
        let message = Hosted { label: to, body: body(Serial { host: self.host, number: self.number }) };
        let is_first = self.is_settled(from) || self.first_between(from, to).is_none();
        *self.senders.entry(from).or_default() += 1;
        if is_first {
            out.push(message.clone());
        }
        let waiting = Waiting { from, message, first: now, last: is_first.then_some(now) };
        self.waiting.insert(self.number, waiting);
    }

    /// Moves entries. Those that wait for earlier ones to arrive go together.
    pub(super) fn adopt(
        &mut self,
        now: u64,
        (from, to): (Label, Label),
        out: &mut Vec<Hosted<P>>,
        why: Why,
        items: Vec<Item<P>>,
    ) {
        let is_settled = self.is_settled(from);
        let queued = self.waiting.values_mut().rfind(|w| w.from == from && w.message.label == to);
        if let Some(Waiting {
            message: Hosted { body: Body::Adopt { why: before, items: queued, .. }, .. },
            last,
            ..
        }) = queued.filter(|_| !is_settled)
            && last.is_none()
            && !matches!((*before, why), (Why::Left(_), _) | (_, Why::Left(_)))
        {
            // What a child was to be told it still has to be told.
            if !matches!((*before, why), (Why::Down(_), Why::Along(_))) {
                *before = why;
            }
            queued.extend(items);
            return;
        }
        self.send(now, (from, to), out, |serial| Body::Adopt { from, serial, why, items });
    }

    fn first_between(&mut self, from: Label, to: Label) -> Option<&mut Waiting<P>> {
        self.waiting.values_mut().find(|w| w.from == from && w.message.label == to)
    }

    /// Whether everything that this label said is confirmed.
    pub(super) fn is_settled(&self, from: Label) -> bool {
        !self.senders.contains_key(&from)
    }

    /// Whether this label waits for a child to answer a recall.
    pub(super) fn recalls(&self, from: Label, side: usize) -> bool {
        let is_recall = |w: &Waiting<P>| {
            w.from == from && w.message.label.side() == side && matches!(w.message.body, Body::Recall(_))
        };
        !self.is_settled(from) && self.waiting.values().any(is_recall)
    }

    /// Whether this label waits for any child to answer a recall.
    pub(super) fn recalls_any(&self, from: Label) -> bool {
        self.recalls(from, 0) || self.recalls(from, 1)
    }

    /// Something has been confirmed. Returns whose it was.
    pub(super) fn confirm(&mut self, now: u64, serial: Serial, out: &mut Vec<Hosted<P>>) -> Option<Label> {
        if serial.host != self.host {
            return None;
        }
        let waiting = self.waiting.remove(&serial.number)?;
        let from = waiting.from;
        if let Some(count) = self.senders.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.senders.remove(&from);
                return Some(from);
            }
        }
        if let Some(next) = self.first_between(from, waiting.message.label)
            && next.last.is_none()
        {
            (next.first, next.last) = (now, Some(now));
            out.push(next.message.clone());
        }
        Some(from)
    }

    /// Says again what is due. Returns what was given up: sender and message.
    pub(super) fn repeat(&mut self, now: u64, out: &mut Vec<Hosted<P>>) -> Vec<(Label, Hosted<P>)> {
        let mut over = Vec::new();
        for (number, waiting) in &mut self.waiting {
            let Some(last) = waiting.last else { continue };
            if now.saturating_sub(waiting.first) >= GIVE_UP {
                over.push(*number);
            } else if now.saturating_sub(last) >= PATIENCE {
                waiting.last = Some(now);
                out.push(waiting.message.clone());
            }
        }
        let mut given_up = Vec::with_capacity(over.len());
        for number in over {
            let message = self.waiting.get(&number).map(|w| w.message.clone());
            let from = self.confirm(now, Serial { host: self.host, number }, out);
            given_up.extend(from.zip(message));
        }
        given_up
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
