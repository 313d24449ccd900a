//! What a strategy can see of the cluster and of the work.

use crate::cluster::{Cluster, Kind, Storage};
use crate::time::Nanos;
use crate::workload::Workload;
use catena_model::Resources;
use catena_schedule::ReadyQueue;
use std::collections::HashMap;

/// What a strategy can see. How long a task really takes and which node dies is not a part of it.
pub struct World<'a> {
    /// What is computed.
    pub workload: &'a Workload,
    /// Where.
    pub cluster: &'a Cluster,
    /// All nodes that there are and were.
    pub nodes: Vec<Node>,
    /// The mean speed of its processors.
    pub(crate) speed: f64,
    /// How tasks stand.
    pub(crate) states: Vec<State>,
    /// How many tasks of each class are ready.
    pub(crate) ready: Vec<u64>,
    /// How long everything takes one after the other that was not given to any node yet.
    pub(crate) unstarted: Nanos,
    /// How many executions of each task go on.
    pub(crate) copies: Vec<u8>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Which of the cluster's kinds it is.
    pub kind: usize,
    /// Whether it is there.
    pub is_up: bool,
    /// What is free of what it has, if it executes everything it was given at once, as far as possible.
    pub free: Resources,
    /// The tasks that it was given and is not done with.
    pub running: Vec<u32>,
    /// Those of them for which there is no room.
    pub(crate) crowd: Vec<u32>,
    /// What no task computes on.
    pub(crate) spare: Resources,
    /// Tasks that could compute.
    pub(crate) staged: ReadyQueue,
    /// Tasks whose files are not brought yet.
    pub(crate) unstaged: ReadyQueue,
    /// Tasks whose files are brought.
    pub(crate) staging: Vec<u32>,
    /// The files that it has, and since when, where that matters; later than now if they are on their way.
    pub(crate) held: HashMap<u32, Nanos>,
    /// How often it has died.
    pub(crate) deaths: u32,
    /// Since when it has nothing to do.
    pub(crate) idle_since: Nanos,
}

impl Node {
    /// It is given a task.
    pub(crate) fn take(&mut self, task: u32, need: &Resources) {
        self.running.push(task);
        if self.free.fits(need) {
            self.free.take(need);
        } else {
            self.crowd.push(task);
        }
    }

    /// It is done with a task, on which it may have computed. Whether it had it.
    pub(crate) fn give_up<'a>(
        &mut self,
        task: u32,
        has_begun: bool,
        need: impl Fn(u32) -> &'a Resources,
    ) -> bool {
        let Some(place) = self.running.iter().position(|t| *t == task) else { return false };
        self.running.swap_remove(place);
        if has_begun {
            self.spare.give(need(task));
        } else {
            self.staged.remove(task);
            self.unstaged.remove(task);
            self.staging.retain(|t| *t != task);
        }
        match self.crowd.iter().position(|t| *t == task) {
            Some(place) => {
                self.crowd.remove(place);
            }
            None => self.free.give(need(task)),
        }
        let free = &mut self.free;
        self.crowd.retain(|t| {
            let fits = free.fits(need(*t));
            if fits {
                free.take(need(*t));
            }
            !fits
        });
        true
    }
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Others have to end first.
    Waiting,
    /// It can start.
    Ready,
    /// At least one node was given it.
    Running,
    /// It has ended.
    Done,
}

impl World<'_> {
    /// How a task stands.
    pub fn state(&self, task: u32) -> State {
        self.states[task as usize]
    }

    pub(crate) fn set(&mut self, task: u32, state: State) {
        let before = std::mem::replace(&mut self.states[task as usize], state);
        let is_open = |state: State| matches!(state, State::Waiting | State::Ready);
        if is_open(before) != is_open(state) {
            let time = self.cluster.compute(self.workload, task, self.speed);
            if is_open(state) { self.unstarted += time } else { self.unstarted -= time }
        }
        let ready = &mut self.ready[self.workload.tasks[task as usize].class as usize];
        *ready = *ready + u64::from(state == State::Ready) - u64::from(before == State::Ready);
    }

    /// How many executions of a task go on.
    pub fn copies(&self, task: u32) -> usize {
        self.copies[task as usize].into()
    }

    /// What kind of node it is.
    pub fn kind(&self, node: u32) -> &Kind {
        &self.cluster.kinds[self.nodes[node as usize].kind]
    }

    /// How many bytes have to be brought to a node before a task can compute there.
    pub fn missing(&self, task: u32, node: u32) -> u64 {
        match self.cluster.storage {
            Storage::Shared(_) => self.workload.bytes_read(task),
            Storage::Local => {
                let held = &self.nodes[node as usize].held;
                let inputs = self.workload.tasks[task as usize].inputs.iter();
                inputs.filter(|f| !held.contains_key(f)).map(|f| self.workload.files[*f as usize]).sum()
            }
        }
    }

    /// How long a task is expected to compute on a node.
    pub fn compute(&self, task: u32, node: u32) -> Nanos {
        self.cluster.compute(self.workload, task, self.kind(node).speed)
    }

    /// How long a task is expected to take on a node if it starts there now.
    pub fn time(&self, task: u32, node: u32) -> Nanos {
        self.compute(task, node) + self.cluster.transfer(self.missing(task, node))
    }

    /// Whether a node could execute a task, had it nothing else to do.
    pub fn can(&self, task: u32, node: u32) -> bool {
        self.nodes[node as usize].is_up && self.kind(node).can(self.workload.class(task))
    }

    /// Whether a node has room for a task now.
    pub fn fits(&self, task: u32, node: u32) -> bool {
        let class = self.workload.class(task);
        self.can(task, node) && self.nodes[node as usize].free.fits(&class.resources)
    }

    /// Whether a node may be given a task, now or in advance.
    pub fn can_take(&self, task: u32, node: u32) -> bool {
        let ahead = u64::from(self.cluster.ahead);
        let state = &self.nodes[node as usize];
        let cpus = |t: &u32| self.workload.class(*t).resources.cpus;
        let held = || state.running.iter().map(cpus).sum::<u64>();
        let may_wait = ahead > 0 && held() < self.kind(node).resources.cpus * (1 + ahead);
        self.fits(task, node) || self.can(task, node) && may_wait
    }

    /// Whether a node has nothing to do.
    pub fn is_idle(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        node.is_up && node.running.is_empty()
    }
}
