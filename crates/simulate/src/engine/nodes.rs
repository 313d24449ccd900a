//! Nodes come, die and go; what only they had is computed again.

use super::{Engine, Event, What};
use crate::outcome::{Fate, Stay};
use crate::time::NEVER;
use crate::world::{Node, State};
use catena_schedule::ReadyQueue;
use std::collections::{BTreeSet, HashMap};

impl Engine<'_> {
    pub(super) fn add_node(&mut self, kind: usize) -> u32 {
        let k = &self.world.cluster.kinds[kind];
        let number = self.world.nodes.len() as u32;
        self.world.nodes.push(Node {
            kind,
            is_up: false,
            free: k.resources.clone(),
            running: Vec::new(),
            crowd: Vec::new(),
            spare: k.resources.clone(),
            staged: ReadyQueue::default(),
            unstaged: ReadyQueue::default(),
            staging: Vec::new(),
            held: HashMap::new(),
            deaths: 0,
            idle_since: self.now,
        });
        let (cpus, price) = (k.resources.cpus, k.price);
        self.outcome.stays.push(Stay { node: number, kind, cpus, price, from: self.now, to: NEVER });
        number
    }

    pub(super) fn join(&mut self, node: u32) {
        let state = &mut self.world.nodes[node as usize];
        (state.is_up, state.idle_since) = (true, self.now);
        let deaths = state.deaths;
        if let Some(lifetime) = self.luck.lifetime(node, deaths) {
            self.plan(self.now.saturating_add(lifetime), What::Dies(node, deaths));
        }
        self.say(Event::Joined(node));
    }

    /// A node is gone with everything on it.
    pub(super) fn lose(&mut self, node: u32) {
        let resources = self.world.kind(node).resources.clone();
        let state = &mut self.world.nodes[node as usize];
        state.is_up = false;
        state.deaths += 1;
        (state.free, state.spare) = (resources.clone(), resources);
        state.crowd.clear();
        (state.staged, state.unstaged) = (ReadyQueue::default(), ReadyQueue::default());
        state.staging.clear();
        let running = std::mem::take(&mut state.running);
        let held = std::mem::take(&mut state.held);
        self.say(Event::Left(node));
        for task in running {
            if let Some(execution) = self.execution_on(task, node) {
                self.close(execution, Fate::Lost);
                self.reconsider(task);
            }
        }
        for flow in self.flows.as_ref().map(|f| f.of(node)).unwrap_or_default() {
            self.break_off(flow, node);
        }
        self.awaited.retain(|(on, _), _| *on != node);
        let lost = held.into_iter().filter(|(_, since)| *since != NEVER).map(|(file, _)| file);
        let lost: BTreeSet<u32> = lost.collect();
        for file in &lost {
            self.holders[*file as usize] -= 1;
        }
        self.compute_again(lost);
    }

    /// Files of which there is no copy any more, and which somebody will read, are computed again.
    fn compute_again(&mut self, lost: BTreeSet<u32>) {
        let workload = self.world.workload;
        let mut again: BTreeSet<u32> = BTreeSet::new();
        let mut files: Vec<u32> = lost.into_iter().collect();
        while let Some(file) = files.pop() {
            let Some(writer) = workload.writers[file as usize] else { continue };
            if self.holders[file as usize] > 0 || self.world.state(writer) != State::Done {
                continue;
            }
            let reads = |t: &u32| {
                (self.world.state(*t) != State::Done || again.contains(t))
                    && workload.tasks[*t as usize].inputs.contains(&file)
            };
            if workload.dag.children(writer).iter().any(reads) && again.insert(writer) {
                files.extend(&workload.tasks[writer as usize].inputs);
            }
        }
        for task in &again {
            self.world.set(*task, State::Waiting);
            self.done -= 1;
        }
        for task in &again {
            let parents = workload.dag.parents(*task).iter();
            let open = parents.filter(|p| self.world.state(**p) != State::Done).count();
            self.waits[*task as usize] = open as u32;
        }
        for task in &again {
            for child in workload.dag.children(*task) {
                if self.world.state(*child) == State::Done || again.contains(child) {
                    continue;
                }
                self.waits[*child as usize] += 1;
                if self.world.state(*child) == State::Ready {
                    self.world.set(*child, State::Waiting);
                    self.say(Event::Withdrawn(*child));
                }
            }
        }
        for task in again {
            self.reconsider(task);
        }
    }

    /// Whether a node has files that nobody else has and that somebody will read.
    fn is_needed(&self, node: u32) -> bool {
        let workload = self.world.workload;
        let is_needed = |file: &u32| {
            let Some(writer) = workload.writers[*file as usize] else { return false };
            let reads = |t: &u32| {
                self.world.state(*t) != State::Done && workload.tasks[*t as usize].inputs.contains(file)
            };
            self.holders[*file as usize] == 1 && workload.dag.children(writer).iter().any(reads)
        };
        self.world.nodes[node as usize].held.keys().any(is_needed)
    }

    pub(super) fn look_at_fleet(&mut self) -> Result<(), String> {
        let Some(mut elastic) = self.elastic.take() else { return Ok(()) };
        for node in elastic.idle(self.now, &self.world) {
            if !self.is_needed(node) {
                self.lose(node);
                self.outcome.stays[node as usize].to = self.now;
            }
        }
        let orders = elastic.decide(self.now, &self.world)?;
        for (kind, name) in orders {
            let node = self.add_node(kind);
            elastic.made(node, name);
            self.plan(self.now + self.world.cluster.kinds[kind].boot, What::Booted(node));
        }
        if let Some(time) = elastic.next_look(self.now, &self.world) {
            self.plan(time, What::Look);
        }
        self.elastic = Some(elastic);
        Ok(())
    }
}
