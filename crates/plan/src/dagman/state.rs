//! What is known about a DAG while it is executed.

use super::api::DagOptions;
use super::node::Node;
use crate::graph::{Adjacency, Dag};
use crate::planner::Order;
use crate::prio::{auto_order, prio_order};
use catena_model::Name;
use catena_model::dagman::{DagFile, DagNode, NodeKind};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Graph {
    pub(super) file: Arc<DagFile>,
    /// The DAG and the node that it is the job of.
    pub(super) of: Option<(u32, u32)>,
    pub(super) label: String,
    pub(super) env: Vec<(Name, String)>,
    /// For each node the numbers of the arcs that start at it.
    pub(super) arcs: Adjacency,
    pub(super) parents: Adjacency,
    pub(super) nodes: Vec<Node>,
    /// The places of nodes in the order of the DAG, if it has one.
    pub(super) places: Vec<u32>,
    pub(super) pre: Queue,
    pub(super) jobs: Queue,
    pub(super) post: Queue,
    pub(super) categories: HashMap<Name, Category>,
    /// Ordinary nodes to which something may still happen.
    pub(super) open: u32,
    /// Chains and DAGs of nodes that have not ended, but for those of services.
    pub(super) outstanding: u32,
    pub(super) done: u32,
    pub(super) failed: u32,
    pub(super) futile: u32,
    pub(super) aborted: Option<i64>,
    pub(super) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Nodes,
    Final,
    Ended(i64),
}

/// Nodes that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) limit: u32,
    pub(super) busy: u32,
    pub(super) waiting: BinaryHeap<Entry>,
}

/// Priority, place in the order, time of arrival, node.
pub(super) type Entry = (i32, Reverse<u32>, Reverse<u32>, u32);

#[derive(Debug, Default)]
pub(super) struct Category {
    pub(super) limit: u32,
    pub(super) busy: u32,
    /// Those that have had their turn and found no room.
    pub(super) held: Vec<Entry>,
}

impl Queue {
    pub(super) fn new(limit: u32) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn has_room(&self) -> bool {
        self.limit == 0 || self.busy < self.limit
    }

    /// The next node, if there is room for one.
    pub(super) fn next(&mut self) -> Option<Entry> {
        if self.has_room() { self.waiting.pop() } else { None }
    }
}

pub(super) fn is_ordinary(node: &DagNode) -> bool {
    matches!(node.kind, NodeKind::Job | NodeKind::SubDag)
}

impl Graph {
    pub(super) fn new(
        mut file: DagFile,
        of: Option<(u32, u32)>,
        label: String,
        priority: i32,
        options: &DagOptions,
    ) -> Self {
        // The nodes of a node have its priority on top of their own.
        for node in &mut file.nodes {
            node.priority += priority;
        }
        let mut nodes: Vec<Node> = file.nodes.iter().map(|_| Node::default()).collect();
        for arc in &file.arcs {
            nodes[arc.child as usize].unmet += 1;
        }
        let starts = file.arcs.iter().enumerate().map(|(i, a)| (a.parent, i as u32));
        let category =
            |(name, limit): (&Name, &u32)| (name.clone(), Category { limit: *limit, ..Category::default() });
        let set = file.env.iter().filter(|(set, _)| *set).flat_map(|(_, text)| text.split(';'));
        let env = set.filter_map(|pair| pair.trim().split_once('='));
        Self {
            arcs: Adjacency::new(nodes.len(), starts),
            parents: Adjacency::new(nodes.len(), file.arcs.iter().map(|a| (a.child, a.parent))),
            places: places(&file, options.order),
            categories: file.categories.iter().map(category).collect(),
            env: env.map(|(k, v)| (Name::new(k), v.to_owned())).collect(),
            open: file.nodes.iter().filter(|n| is_ordinary(n)).count() as u32,
            file: Arc::new(file),
            of,
            label,
            nodes,
            pre: Queue::new(options.max_pre),
            jobs: Queue::new(options.max_jobs),
            post: Queue::new(options.max_post),
            outstanding: 0,
            done: 0,
            failed: 0,
            futile: 0,
            aborted: None,
            stage: Stage::Nodes,
        }
    }

    /// Whether a node runs beside the others and counts for nothing.
    pub(super) fn is_beside(&self, n: u32) -> bool {
        matches!(self.file.nodes[n as usize].kind, NodeKind::Service | NodeKind::Provisioner)
    }

    /// The category of a node, if it has a limit.
    pub(super) fn category(&mut self, n: u32) -> Option<&mut Category> {
        let name = self.file.nodes[n as usize].rules().category.as_ref()?;
        self.categories.get_mut(name)
    }
}

/// The places of nodes in the order of a DAG.
fn places(file: &DagFile, order: Order) -> Vec<u32> {
    if order == Order::Fifo {
        return Vec::new();
    }
    let arcs: Vec<(u32, u32)> = file.arcs.iter().map(|a| (a.parent, a.child)).collect();
    let Ok(dag) = Dag::new(file.nodes.len(), &arcs) else { return Vec::new() };
    let order = if order == Order::Prio { prio_order(&dag) } else { auto_order(&dag) };
    let mut places = vec![0; order.len()];
    for (place, n) in (0..).zip(order) {
        places[n as usize] = place;
    }
    places
}
