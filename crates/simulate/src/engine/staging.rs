//! Files get to the nodes that need them.

use super::{Engine, What};
use crate::cluster::{Inputs, Storage};
use crate::outcome::Execution;
use crate::time::{NEVER, Nanos};
use crate::transfer::{Expected, Source};
use crate::world::Node;
use std::collections::BTreeMap;

impl Engine<'_> {
    /// When the files of a task are on a node, if transfers do not disturb each other.
    pub(super) fn stage(&mut self, task: u32, node: u32) -> Nanos {
        let moved = self.world.missing(task, node);
        self.outcome.bytes_moved += moved;
        let mut staged = self.now + self.world.cluster.transfer(moved);
        if self.world.cluster.storage == Storage::Local {
            let held = &mut self.world.nodes[node as usize].held;
            let arrival = staged;
            for file in &self.world.workload.tasks[task as usize].inputs {
                let since = *held.entry(*file).or_insert_with(|| {
                    self.holders[*file as usize] += 1;
                    arrival
                });
                staged = staged.max(since);
            }
        }
        staged
    }

    /// Begins the transfers of an execution, where they share links.
    pub(super) fn bring(&mut self, execution: u32) {
        let Execution { task, node, .. } = self.outcome.executions[execution as usize];
        let workload = self.world.workload;
        let inputs = &workload.tasks[task as usize].inputs;
        let mut groups: BTreeMap<Source, Vec<u32>> = BTreeMap::new();
        let mut pending = 0;
        if let Storage::Shared(_) = self.world.cluster.storage {
            if !inputs.is_empty() {
                groups.insert(Source::Shared, inputs.clone());
            }
        } else {
            for file in inputs {
                if self.world.nodes[node as usize].held.get(file) == Some(&NEVER) {
                    self.awaited.entry((node, *file)).or_default().push(execution);
                    pending += 1;
                }
            }
            groups = self.sources(task, node);
        }
        for (source, files) in groups {
            for file in &files {
                self.awaited.entry((node, *file)).or_default().push(execution);
                pending += 1;
            }
            self.transfer(source, node, files);
        }
        self.pending.insert(execution, pending);
        if pending == 0 {
            self.all_there(execution);
        }
    }

    /// What a node lacks of a task's files and does not get yet, and from where that comes.
    fn sources(&self, task: u32, node: u32) -> BTreeMap<Source, Vec<u32>> {
        let mut groups: BTreeMap<Source, Vec<u32>> = BTreeMap::new();
        for file in &self.world.workload.tasks[task as usize].inputs {
            if !self.world.nodes[node as usize].held.contains_key(file) {
                groups.entry(self.nearest(*file)).or_default().push(*file);
            }
        }
        groups
    }

    /// A node gets the files of a task that it was not given yet.
    pub(super) fn prefetch(&mut self, task: u32, node: u32) {
        if self.world.cluster.storage != Storage::Local || !self.world.nodes[node as usize].is_up {
            return;
        }
        if self.flows.is_none() {
            self.stage(task, node);
            return;
        }
        for (source, files) in self.sources(task, node) {
            self.transfer(source, node, files);
        }
    }

    fn transfer(&mut self, source: Source, node: u32, files: Vec<u32>) {
        let bytes = files.iter().map(|f| self.world.workload.files[*f as usize]).sum();
        self.outcome.bytes_moved += bytes;
        if source != Source::Shared {
            self.world.nodes[node as usize].held.extend(files.iter().map(|f| (*f, NEVER)));
        }
        let mut expected = Vec::new();
        if let Some(flows) = &mut self.flows {
            flows.begin((source, node), files, bytes, self.now, &mut expected);
        }
        self.expect(expected);
    }

    fn expect(&mut self, expected: Vec<Expected>) {
        for (time, flow, version) in expected {
            self.plan(time, What::Arrived(flow, version));
        }
    }

    /// From where a file comes: of those who have it, who sends least.
    fn nearest(&self, file: u32) -> Source {
        let Some(flows) = &self.flows else { return Source::Outside };
        let has = |node: &Node| node.is_up && node.held.get(&file).is_some_and(|since| *since <= self.now);
        let holders = (0..).zip(&self.world.nodes).filter(|(_, n)| has(n)).map(|(i, _)| Source::Node(i));
        let is_at_home = matches!(self.world.cluster.inputs, Inputs::Home(_))
            && self.world.workload.writers[file as usize].is_none();
        let holders = holders.chain(is_at_home.then_some(Source::Home));
        holders.min_by_key(|source| flows.load(*source)).unwrap_or(Source::Outside)
    }

    pub(super) fn arrived(&mut self, id: u64, version: u32) {
        let Some(flows) = &mut self.flows else { return };
        if flows.get(id).is_none_or(|f| f.version != version) {
            return;
        }
        let mut expected = Vec::new();
        let flow = flows.end(id, self.now, &mut expected);
        self.expect(expected);
        let Some(flow) = flow else { return };
        for file in flow.files {
            if flow.source != Source::Shared {
                self.hold(flow.to, file);
            }
            for execution in self.awaited.remove(&(flow.to, file)).unwrap_or_default() {
                let Some(pending) = self.pending.get_mut(&execution) else { continue };
                *pending -= 1;
                if *pending == 0 {
                    self.all_there(execution);
                }
            }
        }
    }

    /// A node has a file from now on.
    pub(super) fn hold(&mut self, node: u32, file: u32) {
        let before = self.world.nodes[node as usize].held.insert(file, self.now);
        if before.is_none_or(|since| since == NEVER) {
            self.holders[file as usize] += 1;
        }
    }

    /// A transfer from or to a node that is gone. What comes from there must come from elsewhere.
    pub(super) fn break_off(&mut self, id: u64, node: u32) {
        let mut expected = Vec::new();
        let flow = self.flows.as_mut().and_then(|f| f.end(id, self.now, &mut expected));
        self.expect(expected);
        let Some(flow) = flow.filter(|f| f.to != node) else { return };
        let mut groups: BTreeMap<Source, Vec<u32>> = BTreeMap::new();
        for file in flow.files {
            groups.entry(self.nearest(file)).or_default().push(file);
        }
        for (source, files) in groups {
            self.transfer(source, flow.to, files);
        }
    }

    fn all_there(&mut self, execution: u32) {
        self.pending.remove(&execution);
        if self.is_running(execution) {
            let Execution { task, node, start, .. } = self.outcome.executions[execution as usize];
            let latency = if self.now > start { self.world.cluster.network.latency } else { 0 };
            self.expect_staged(execution, self.now + latency);
            if self.world.cluster.ahead > 0 {
                self.world.nodes[node as usize].staging.retain(|t| *t != task);
                self.fetch(node);
            }
        }
    }
}
