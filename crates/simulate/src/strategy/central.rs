//! One queue for all: the scheduler of the live system, which counts chains by class and gives them to agents by rank.

use crate::cluster::Cluster;
use crate::engine::{Strategy, World};
use catena_model::{Name, Resources};
use catena_schedule::{AgentInfo, Class, Command, Event, Policy, Scheduler, Settings};
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

/// Drives a [`Scheduler`] in virtual time.
pub(super) struct Central {
    scheduler: Scheduler,
    class: Class,
    key: Name,
    /// For each task how urgent it is; none if they come in the order in which they become ready.
    ranks: Vec<i64>,
    arrivals: i64,
    waiting: BinaryHeap<(i64, i64, u32)>,
    names: Vec<Name>,
    numbers: BTreeMap<Name, u32>,
}

impl Central {
    pub(super) fn new(cluster: &Cluster, ranks: Vec<i64>, one_by_one: bool) -> Self {
        let policy = if one_by_one { Policy::Steep } else { Policy::Catena };
        // Messages take no time here, so nobody needs anything in advance.
        let mut scheduler =
            Scheduler::new(Settings { policy, look_ahead: Duration::ZERO, ..Settings::default() });
        let class = Class { capabilities: Vec::new(), resources: Resources::default() };
        let names: Vec<Name> = (0..cluster.nodes).map(|n| Name::new(format!("{n:06}"))).collect();
        for id in names.iter().cloned() {
            let info = AgentInfo { id, capabilities: Vec::new(), resources: Resources::default() };
            scheduler.handle(Event::AgentJoined(info));
        }
        let numbers = names.iter().cloned().zip(0..).collect();
        let key = class.key();
        Self { scheduler, class, key, ranks, arrivals: 0, waiting: BinaryHeap::new(), names, numbers }
    }
}

impl Strategy for Central {
    fn ready(&mut self, task: u32, _: f64, _: &World<'_>) {
        self.arrivals += 1;
        let rank = self.ranks.get(task as usize).copied().unwrap_or(0);
        self.waiting.push((rank, -self.arrivals, task));
        // The queue here is in order, so the scheduler need not be told ranks: there is one class only.
        self.scheduler.handle(Event::Registered { class: self.class.clone(), count: 1, rank: 0 });
    }

    fn ended(&mut self, _: u32, node: u32, _: f64, _: &World<'_>) {
        let (agent, class) = (self.names[node as usize].clone(), self.key.clone());
        self.scheduler.handle(Event::Ended { agent, class, millis: None });
    }

    fn start(&mut self, now: f64, _: &World<'_>) -> Vec<(u32, u32)> {
        let mut starts = Vec::new();
        // Some policies want several steps.
        while !self.waiting.is_empty() {
            let before = starts.len();
            for command in self.scheduler.decide((now * 1e3) as i64) {
                let Command::Claim { agent, class, limit } = command else { continue };
                let node = self.numbers[&agent];
                let mut got = 0;
                while got < limit as u64
                    && let Some((_, _, task)) = self.waiting.pop()
                {
                    starts.push((task, node));
                    got += 1;
                }
                self.scheduler.handle(Event::Claimed {
                    agent,
                    class,
                    asked: limit as u64,
                    got,
                    rank: Some(0),
                });
            }
            if starts.len() == before {
                break;
            }
        }
        starts
    }
}
