//! Transfers that share links: what a node can send and receive, and what a shared file system can send, is divided
//! equally among the transfers that use it; a transfer is as fast as the slower of its two ends lets it be.

use crate::cluster::{Cluster, Inputs, Storage};
use crate::time::{Nanos, nanos};
use std::collections::BTreeMap;

/// Where files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A node that has them.
    Node(u32),
    /// The file system that all share.
    Shared,
    /// The machine that has what comes with the work.
    Home,
    /// Somewhere that is as fast as is wanted.
    Outside,
}

/// Files on their way to a node.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) source: Source,
    pub(crate) to: u32,
    pub(crate) files: Vec<u32>,
    left: f64,
    rate: f64,
    since: Nanos,
    /// Changes whenever the rate does: what was expected before is not true any more.
    pub(crate) version: u32,
}

/// One end of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    From(Source),
    To(u32),
}

/// All transfers that go on.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    going: BTreeMap<u64, Flow>,
    ends: BTreeMap<End, Vec<u64>>,
    next: u64,
    bandwidth: f64,
    shared: f64,
    home: f64,
}

/// A transfer is expected to end: when, which one, and what was true of it.
pub(crate) type Expected = (Nanos, u64, u32);

impl Flows {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let shared = if let Storage::Shared(rate) = cluster.storage { rate } else { 0.0 };
        let bandwidth = cluster.network.bandwidth;
        let home = if let Inputs::Home(rate) = cluster.inputs { rate.unwrap_or(bandwidth) } else { 0.0 };
        Self { bandwidth, shared, home, ..Self::default() }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Flow> {
        self.going.get(&id)
    }

    /// How many transfers come from a source.
    pub(crate) fn load(&self, source: Source) -> usize {
        self.ends.get(&End::From(source)).map_or(0, Vec::len)
    }

    /// The transfers from or to a node.
    pub(crate) fn of(&self, node: u32) -> Vec<u64> {
        let ends = [End::From(Source::Node(node)), End::To(node)];
        ends.iter().filter_map(|end| self.ends.get(end)).flatten().copied().collect()
    }

    /// Begins a transfer. Everything whose speed changes is added to `expected`.
    pub(crate) fn begin(
        &mut self,
        (source, to): (Source, u32),
        files: Vec<u32>,
        bytes: u64,
        now: Nanos,
        expected: &mut Vec<Expected>,
    ) -> u64 {
        self.next += 1;
        let flow = Flow { source, to, files, left: bytes as f64, rate: 0.0, since: now, version: 0 };
        for end in [End::From(source), End::To(to)] {
            self.ends.entry(end).or_default().push(self.next);
        }
        self.going.insert(self.next, flow);
        self.share(source, to, now, expected);
        self.next
    }

    /// Ends a transfer, whole or not.
    pub(crate) fn end(&mut self, id: u64, now: Nanos, expected: &mut Vec<Expected>) -> Option<Flow> {
        let flow = self.going.remove(&id)?;
        for end in [End::From(flow.source), End::To(flow.to)] {
            if let Some(flows) = self.ends.get_mut(&end) {
                flows.retain(|other| *other != id);
            }
        }
        self.share(flow.source, flow.to, now, expected);
        Some(flow)
    }

    /// Divides the links that have one transfer more or less.
    fn share(&mut self, source: Source, to: u32, now: Nanos, expected: &mut Vec<Expected>) {
        let mut touched: Vec<u64> = Vec::new();
        for end in [End::From(source), End::To(to)] {
            // What comes from outside is not limited there.
            if end != End::From(Source::Outside) {
                touched.extend(self.ends.get(&end).into_iter().flatten());
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for id in touched {
            let Some(flow) = self.going.get(&id) else { continue };
            let count = |end: End| self.ends.get(&end).map_or(1, Vec::len).max(1) as f64;
            let sends = match flow.source {
                Source::Node(_) => self.bandwidth / count(End::From(flow.source)),
                Source::Shared => self.shared / count(End::From(flow.source)),
                Source::Home => self.home / count(End::From(flow.source)),
                Source::Outside => f64::INFINITY,
            };
            let rate = sends.min(self.bandwidth / count(End::To(flow.to)));
            let Some(flow) = self.going.get_mut(&id) else { continue };
            if flow.rate.to_bits() == rate.to_bits() {
                continue;
            }
            flow.left = (flow.left - flow.rate * (now - flow.since) as f64 / 1e9).max(0.0);
            (flow.rate, flow.since) = (rate, now);
            flow.version += 1;
            expected.push((now + nanos(flow.left / rate), id, flow.version));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::seconds;

    /// When transfers between these nodes end, if all begin at once with a gigabyte.
    fn ends(pairs: &[(u32, u32)]) -> Vec<f64> {
        let mut cluster = Cluster { storage: Storage::Local, ..Cluster::default() };
        cluster.network.bandwidth = 1e9;
        let mut flows = Flows::new(&cluster);
        let mut expected = Vec::new();
        for (from, to) in pairs {
            flows.begin((Source::Node(*from), *to), Vec::new(), 1_000_000_000, 0, &mut expected);
        }
        let mut ends = vec![0.0; pairs.len()];
        while !expected.is_empty() {
            expected.sort_unstable();
            let (time, id, version) = expected.remove(0);
            if flows.get(id).is_some_and(|f| f.version == version) {
                flows.end(id, time, &mut expected);
                ends[id as usize - 1] = seconds(time);
            }
        }
        ends
    }

    #[test]
    fn transfers_share_what_both_ends_can_do() {
        assert_eq!(ends(&[(0, 1)]), [1.0]);
        assert_eq!(ends(&[(0, 1), (2, 3)]), [1.0, 1.0]);
        assert_eq!(ends(&[(0, 1), (0, 2)]), [2.0, 2.0]);
        assert_eq!(ends(&[(0, 2), (1, 2), (3, 4)]), [2.0, 2.0, 1.0]);
    }

    #[test]
    fn who_remains_gets_what_others_leave() {
        // 0 sends to 2 and 3, 1 sends to 3: node 3 receives from both.
        let ends = ends(&[(0, 2), (0, 3), (1, 3)]);
        assert!(ends.iter().all(|e| (*e - 2.0).abs() < 1e-6), "{ends:?}");
    }
}
