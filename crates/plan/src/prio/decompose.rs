//! Step 2: a dag falls into components, which are detached from the top.
//!
//! The component of a source is the smallest set that has it, all children of each of its non-sinks, and all
//! remaining parents of each of its jobs. One whose non-sinks are all sources of what remains is bipartite
//! and preferred; if there is none, all minimal ones go. Bipartite ones are found as they come into being:
//! a child all of whose parents are sources ties these together, and a set of tied sources without any
//! other child can go. Minimal ones are the terminal strongly connected components of "this job in this role
//! brings that job in that role along".

use crate::graph::Dag;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A component. Its jobs are in the order of their discovery, which is their local numbering.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// Jobs with children in the component, which belong to it alone.
    pub(super) non_sinks: Vec<u32>,
    /// The others, which may be sources of components that come after it.
    pub(super) sinks: Vec<u32>,
    pub(super) bipartite: bool,
}

/// The components of a dag without shortcuts, in the order of their detachment. Isolated jobs are in none.
pub(super) fn decompose(dag: &Dag) -> Vec<Component> {
    let mut remnant = Remnant::new(dag);
    let mut components = Vec::new();
    loop {
        if let Some(Reverse(anchor)) = remnant.bipartite.pop() {
            components.push(remnant.detach(anchor, true));
            continue;
        }
        let anchors = remnant.minimal();
        if anchors.is_empty() {
            return components;
        }
        components.extend(anchors.into_iter().map(|anchor| remnant.detach(anchor, false)));
    }
}

/// What is left of a dag.
struct Remnant<'d> {
    dag: &'d Dag,
    removed: Vec<bool>,
    /// Sources that were not detached. Some of them may have been since.
    sources: Vec<u32>,
    /// How many parents of a job are neither removed nor sources.
    waits: Vec<u32>,
    ties: Ties,
    /// The smallest source of each bipartite component.
    bipartite: BinaryHeap<Reverse<u32>>,
    marks: Marks,
    roles: Roles,
}

/// Sources that share children, as a union-find forest.
struct Ties {
    up: Vec<u32>,
    /// For each root: how many arcs lead to children that wait for jobs that are not sources.
    outside: Vec<u32>,
    /// For each root: the smallest source.
    smallest: Vec<u32>,
}

impl Ties {
    fn root(&mut self, mut job: u32) -> u32 {
        while self.up[job as usize] != job {
            let above = self.up[job as usize];
            self.up[job as usize] = self.up[above as usize];
            job = above;
        }
        job
    }

    fn tie(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.up[b as usize] = a;
            self.outside[a as usize] += self.outside[b as usize];
            self.smallest[a as usize] = self.smallest[a as usize].min(self.smallest[b as usize]);
        }
    }
}

/// In which component a job was discovered last, and in which role.
struct Marks {
    component: u32,
    non_sink: Vec<u32>,
    sink: Vec<u32>,
}

impl<'d> Remnant<'d> {
    fn new(dag: &'d Dag) -> Self {
        let n = dag.len();
        let jobs = 0..n as u32;
        let mut this = Self {
            dag,
            removed: vec![false; n],
            sources: Vec::new(),
            waits: jobs.clone().map(|v| dag.parents(v).len() as u32).collect(),
            ties: Ties { up: jobs.clone().collect(), outside: vec![0; n], smallest: jobs.clone().collect() },
            bipartite: BinaryHeap::new(),
            marks: Marks { component: 0, non_sink: vec![0; n], sink: vec![0; n] },
            roles: Roles::default(),
        };
        for job in jobs {
            if dag.parents(job).is_empty() && !dag.children(job).is_empty() {
                this.becomes_source(job);
            }
        }
        this
    }

    fn becomes_source(&mut self, job: u32) {
        self.sources.push(job);
        for child in self.dag.children(job) {
            self.waits[*child as usize] -= 1;
        }
        for child in self.dag.children(job) {
            if self.waits[*child as usize] > 0 {
                let root = self.ties.root(job);
                self.ties.outside[root as usize] += 1;
                continue;
            }
            for parent in self.dag.parents(*child) {
                if *parent != job && !self.removed[*parent as usize] {
                    let root = self.ties.root(*parent);
                    self.ties.outside[root as usize] -= 1;
                    self.ties.tie(job, *parent);
                }
            }
        }
        let root = self.ties.root(job);
        if self.ties.outside[root as usize] == 0 {
            self.bipartite.push(Reverse(self.ties.smallest[root as usize]));
        }
    }

    /// Takes the component of a source away.
    fn detach(&mut self, anchor: u32, bipartite: bool) -> Component {
        let component = self.discover(anchor, bipartite);
        for job in &component.non_sinks {
            self.removed[*job as usize] = true;
        }
        for job in &component.sinks {
            if self.dag.children(*job).is_empty() {
                self.removed[*job as usize] = true;
            } else {
                self.becomes_source(*job);
            }
        }
        component
    }

    /// Goes down to the children of new non-sinks and up to the parents of what is new, in turns.
    fn discover(&mut self, anchor: u32, bipartite: bool) -> Component {
        self.marks.component += 1;
        let mark = self.marks.component;
        let (mut non_sinks, mut sinks) = (vec![anchor], Vec::new());
        self.marks.non_sink[anchor as usize] = mark;
        let (mut down, mut up, mut climbed) = (0, 0, 1);
        while down < non_sinks.len() || up < sinks.len() {
            while down < non_sinks.len() {
                for child in self.dag.children(non_sinks[down]) {
                    if std::mem::replace(&mut self.marks.sink[*child as usize], mark) != mark {
                        sinks.push(*child);
                    }
                }
                down += 1;
            }
            while up < sinks.len() {
                self.add_parents(sinks[up], mark, &mut non_sinks);
                while climbed < non_sinks.len() {
                    self.add_parents(non_sinks[climbed], mark, &mut non_sinks);
                    climbed += 1;
                }
                up += 1;
            }
        }
        sinks.retain(|job| self.marks.non_sink[*job as usize] != mark);
        Component { non_sinks, sinks, bipartite }
    }

    fn add_parents(&mut self, job: u32, mark: u32, non_sinks: &mut Vec<u32>) {
        for parent in self.dag.parents(job) {
            let known = &mut self.marks.non_sink[*parent as usize];
            if !self.removed[*parent as usize] && *known != mark {
                *known = mark;
                non_sinks.push(*parent);
            }
        }
    }

    /// The smallest sources of all minimal components, in order.
    fn minimal(&mut self) -> Vec<u32> {
        let removed = &self.removed;
        self.sources.retain(|s| !removed[*s as usize]);
        self.sources.sort_unstable();
        self.roles.terminal_sources(self.dag, removed, &self.sources)
    }
}

/// Jobs in their roles, as the nodes of a graph: `2 * job` as a non-sink, `2 * job + 1` as a sink. A non-sink
/// brings along its children as sinks; both bring along their parents as non-sinks.
#[derive(Default)]
struct Roles {
    /// When a node was reached. Numbers of earlier searches are below those of this one.
    reached: Vec<u32>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    counter: u32,
}

impl Roles {
    fn neighbour(dag: &Dag, removed: &[bool], node: u32, at: &mut usize) -> Option<u32> {
        let job = node / 2;
        let children = if node.is_multiple_of(2) { dag.children(job) } else { &[] };
        if let Some(child) = children.get(*at) {
            *at += 1;
            return Some(2 * child + 1);
        }
        while let Some(parent) = dag.parents(job).get(*at - children.len()) {
            *at += 1;
            if !removed[*parent as usize] {
                return Some(2 * parent);
            }
        }
        None
    }

    /// The smallest source of each strongly connected component that nothing leads out of (Tarjan).
    fn terminal_sources(&mut self, dag: &Dag, removed: &[bool], sources: &[u32]) -> Vec<u32> {
        let nodes = 2 * dag.len();
        self.reached.resize(nodes, 0);
        self.low.resize(nodes, 0);
        self.on_stack.resize(nodes, false);
        let before = self.counter;
        let mut found = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        // Node, next neighbour, and whether something leads out of what was found below it.
        let mut path: Vec<(u32, usize, bool)> = Vec::new();
        for source in sources {
            if self.reached[2 * *source as usize] <= before {
                self.enter(2 * source, &mut stack, &mut path);
            }
            while let Some((node, at, leads_out)) = path.last_mut() {
                let node = *node;
                if let Some(next) = Self::neighbour(dag, removed, node, at) {
                    if self.reached[next as usize] <= before {
                        self.enter(next, &mut stack, &mut path);
                    } else if self.on_stack[next as usize] {
                        self.low[node as usize] = self.low[node as usize].min(self.reached[next as usize]);
                    } else {
                        *leads_out = true;
                    }
                    continue;
                }
                let leads_out = *leads_out;
                path.pop();
                let is_root = self.low[node as usize] == self.reached[node as usize];
                if is_root {
                    let start = stack.iter().rposition(|n| *n == node).unwrap_or(0);
                    let members = stack.split_off(start);
                    for member in &members {
                        self.on_stack[*member as usize] = false;
                    }
                    let is_source =
                        |n: &&u32| n.is_multiple_of(2) && sources.binary_search(&(**n / 2)).is_ok();
                    if !leads_out {
                        found.extend(members.iter().filter(is_source).min().map(|n| n / 2));
                    }
                }
                if let Some((above, _, above_leads_out)) = path.last_mut() {
                    *above_leads_out |= leads_out || is_root;
                    let low = self.low[node as usize];
                    self.low[*above as usize] = self.low[*above as usize].min(low);
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn enter(&mut self, node: u32, stack: &mut Vec<u32>, path: &mut Vec<(u32, usize, bool)>) {
        self.counter += 1;
        self.reached[node as usize] = self.counter;
        self.low[node as usize] = self.counter;
        self.on_stack[node as usize] = true;
        stack.push(node);
        path.push((node, 0, false));
    }
}
