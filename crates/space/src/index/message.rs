//! What clients ask hosts, what hosts answer, and what hosts tell each other.

use super::key::{Key, Span};
use super::label::Label;
use super::map::Map;
use serde::{Deserialize, Serialize};

/// Something to be found in a trie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry<P> {
    /// Where it stands in the order.
    pub key: Key,
    /// Who it is: the same for each refresh.
    pub id: u64,
    /// A later stamp wins. What was taken or removed comes back only with a later one.
    pub stamp: u64,
    /// How long it is kept without a refresh, in microseconds.
    pub life: u64,
    /// What it points to.
    pub pointer: P,
}

/// An entry on its way, or the memory of one that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item<P> {
    /// See [`Entry`].
    pub key: Key,
    /// See [`Entry`].
    pub id: u64,
    /// See [`Entry`].
    pub stamp: u64,
    /// How long it is still kept, in microseconds. Not a point in time, because clocks differ.
    pub life: u64,
    /// Nothing if it was taken or removed.
    pub pointer: Option<P>,
}

impl<P> From<Entry<P>> for Item<P> {
    fn from(e: Entry<P>) -> Self {
        Self { key: e.key, id: e.id, stamp: e.stamp, life: e.life, pointer: Some(e.pointer) }
    }
}

/// Which end of the bounds is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the least key.
    Up,
    /// From the greatest key.
    Down,
}

/// What a client, or another host, wants from a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request<P, Q> {
    /// Keep an entry, or remember that it is gone.
    Put {
        /// Who is asked.
        label: Label,
        /// What to keep.
        item: Item<P>,
        /// Which request of the operation. The same request always gets the same answer.
        step: u16,
        /// A node that is no leaf passes it on to where it belongs, repairing the trie if need be.
        through: bool,
    },
    /// Hand out the best entry that fits.
    Take {
        /// Who is asked.
        label: Label,
        /// What is wanted.
        take: Take<Q>,
    },
    /// What another host says.
    Maintain(Hosted<P>),
}

impl<P, Q> Request<P, Q> {
    /// Who is asked.
    pub fn label(&self) -> Label {
        match self {
            Self::Put { label, .. } | Self::Take { label, .. } => *label,
            Self::Maintain(hosted) => hosted.label,
        }
    }
}

/// What a client wants to have handed out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take<Q> {
    /// Which operation this is; no other has the same.
    pub id: u64,
    /// Which request of the operation. The same request always gets the same answer.
    pub step: u16,
    /// What the entry must fit.
    pub query: Q,
    /// Where the search has come to: the leaf that is responsible for this key is meant.
    pub at: Key,
    /// Keys that are good.
    pub bounds: Span,
    /// Which end of the bounds is best.
    pub direction: Direction,
}

/// What a client hears.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer<P> {
    /// There is no such node: look for a shorter label.
    Absent,
    /// It is not a leaf: look for a longer label.
    Inner {
        /// Where the way to the key goes on: the leaf that looks after it, as far as the node knows, or somebody on the way.
        next: Label,
        /// Nothing is on its way between this node and others.
        settled: bool,
    },
    /// It does not look after the key, only after these.
    Elsewhere(Span),
    /// Done. A leaf says which keys it looks after.
    Stored {
        /// It was news.
        changed: bool,
        /// What the leaf looks after, if it was a leaf.
        cover: Option<Span>,
    },
    /// Handed out, and removed.
    Taken {
        /// What is the client's now.
        entry: Entry<P>,
        /// What the leaf looks after.
        cover: Span,
    },
    /// The leaf has nothing that fits.
    Nothing {
        /// What the leaf looks after.
        cover: Span,
        /// Nothing is on its way to it.
        settled: bool,
    },
}

/// What a host tells the host of another label. It may get lost, late or doubled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosted<P> {
    /// Who it is for.
    pub label: Label,
    /// What is said.
    pub body: Body<P>,
}

impl<P> Hosted<P> {
    /// Where the receiver is on the ring.
    pub fn position(&self) -> u64 {
        self.label.position()
    }
}

/// Names a message of hosts that is repeated until it is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Serial {
    /// The host that sent it.
    pub host: u64,
    /// Counts its messages.
    pub number: u64,
}

/// Why entries move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// From parent to child, which looks after these keys from now on. There may be no entries.
    Down(Span),
    /// From parent to child, which looks after these keys if it does not exist yet.
    Along(Span),
    /// From a leaf to the node that looks after them, or should begin to.
    Evicted,
    /// From a child that has given up, because of this recall.
    Left(Serial),
}

/// What hosts say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body<P> {
    /// Take these over.
    Adopt {
        /// Who had them.
        from: Label,
        /// To be confirmed.
        serial: Serial,
        /// Why.
        why: Why,
        /// Entries, and memories of those that are gone.
        items: Vec<Item<P>>,
    },
    /// Received.
    Ack(Serial),
    /// To a child: give up, and send what you have.
    Recall(Serial),
    /// From a child that cannot give up now.
    Stays {
        /// Who.
        from: Label,
        /// Which recall it answers.
        recall: Serial,
    },
    /// To the parent: still here.
    Beat(Beat),
}

/// What a node tells its parent from time to time, and when it has become small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Who.
    pub child: Label,
    /// How many entries it has; nothing if it is not a leaf.
    pub count: Option<u32>,
    /// It has not even memories of entries that are gone.
    pub bare: bool,
    /// Keys it looks after.
    pub cover: Span,
    /// Who is below it.
    pub map: Map,
}
