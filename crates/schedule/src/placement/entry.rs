//! What is known of a task that is ready.

use super::files::{Files, Seen};
use super::{Costs, Urgency};

/// A task that is ready.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) urgency: Urgency,
    /// How many bytes it reads.
    pub(super) bytes: u64,
    /// How long it takes where nothing of its data is.
    pub(super) length: u64,
    /// How much of that is bringing its data.
    pub(super) transfer: u64,
    /// Who gave it back when asked to, and how often somebody did.
    pub(super) came_from: Option<(u32, u8)>,
    /// What it reads, and what it knows of that.
    reads: Box<[Seen]>,
    version: Option<u64>,
    /// Agents that have something of its data, by agent.
    at_hand: Vec<Near>,
    /// How many bytes those have that have most.
    most: u64,
}

/// An agent that has something of a task's data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    pub(super) agent: u32,
    pub(super) bytes: u64,
    /// When all of that is there, if some of it is on its way.
    pub(super) since: u64,
}

impl Entry {
    pub(super) fn new(
        urgency: Urgency,
        bytes: u64,
        (compute, transfer): (u64, u64),
        reads: Box<[Seen]>,
    ) -> Self {
        Self {
            urgency,
            bytes,
            length: compute + transfer,
            transfer,
            reads,
            version: None,
            at_hand: Vec::new(),
            most: 0,
            came_from: None,
        }
    }

    pub(super) fn level(&self) -> i64 {
        self.urgency.0.0
    }

    /// How long it is from the beginning of the task to the end of everything.
    pub(super) fn rank(&self) -> u64 {
        self.urgency.1.0
    }

    /// How long it is from the end of the task to the end of everything.
    pub(super) fn after(&self) -> u64 {
        self.rank().saturating_sub(self.length)
    }

    /// What it reads.
    pub(super) fn files(&self) -> impl Iterator<Item = u32> {
        self.reads.iter().map(|seen| seen.file)
    }

    /// Agents that have something of its data.
    pub(super) fn at_hand(&self) -> &[Near] {
        &self.at_hand
    }

    /// What an agent has of its data.
    pub(super) fn near(&self, agent: u32) -> Near {
        let place = self.at_hand.binary_search_by_key(&agent, |near| near.agent);
        place.map_or(Near { agent, ..Near::default() }, |place| self.at_hand[place])
    }

    /// How many bytes of its data an agent lacks that has so much of it.
    pub(super) fn missing(&self, near: Near) -> u64 {
        self.bytes.saturating_sub(near.bytes)
    }

    /// The agents of whom nobody has more of its data.
    pub(super) fn nearest(&self) -> impl Iterator<Item = u32> {
        self.at_hand.iter().filter(|near| near.bytes == self.most).map(|near| near.agent)
    }

    /// How many bytes of its data these have.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Whether somebody has nearly all of its data.
    pub(super) fn has_home(&self) -> bool {
        !self.at_hand.is_empty() && self.most * 10 >= self.bytes * 9
    }

    /// Looks where its data are.
    pub(super) fn look(&mut self, files: &Files, costs: &dyn Costs) {
        if self.version == Some(files.version()) {
            return;
        }
        self.version = Some(files.version());
        if !self.reads.iter().all(|seen| files.is_true(*seen)) {
            (self.at_hand, self.most) = (Vec::new(), 0);
            for seen in &mut self.reads {
                *seen = files.unseen(seen.file);
            }
        }
        let mut news: Vec<Near> = Vec::new();
        for seen in &mut self.reads {
            let holders = files.news(seen);
            if !holders.is_empty() {
                let bytes = costs.size(seen.file);
                news.extend(holders.iter().map(|h| Near { agent: h.agent, bytes, since: h.since }));
            }
        }
        if news.len() < 8 {
            for more in news {
                self.gain(more);
            }
        } else {
            self.gain_all(news);
        }
    }

    /// An agent has more of its data.
    fn gain(&mut self, more: Near) {
        let place = self.at_hand.binary_search_by_key(&more.agent, |near| near.agent);
        let place = place.unwrap_or_else(|place| {
            self.at_hand.insert(place, Near { agent: more.agent, ..Near::default() });
            place
        });
        let near = &mut self.at_hand[place];
        near.add(more);
        self.most = self.most.max(near.bytes);
    }

    fn gain_all(&mut self, mut news: Vec<Near>) {
        news.append(&mut self.at_hand);
        news.sort_unstable_by_key(|near| near.agent);
        news.dedup_by(|next, first| {
            let is_same = next.agent == first.agent;
            if is_same {
                first.add(*next);
            }
            is_same
        });
        self.most = news.iter().map(|near| near.bytes).max().unwrap_or(0);
        self.at_hand = news;
    }
}

impl Near {
    fn add(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.since = self.since.max(more.since);
    }
}
