//! The graph of a DAGMan file.

use crate::graph::{Cycle, Dag};
use catena_model::dagman::{DagFile, LoadedDag, NodeKind};
use serde::Serialize;
use std::cmp::Reverse;

/// How large the graph of a DAGMan file is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DagShape {
    /// Ordinary jobs.
    pub nodes: usize,
    /// Nodes of all kinds.
    pub total_nodes: usize,
    /// Nodes that are DAGs of their own.
    pub subdags: usize,
    /// Files that are spliced in.
    pub splices: usize,
    /// Who waits for whom.
    pub arcs: usize,
    /// The most nodes at one depth.
    pub width: usize,
    /// How many depths there are.
    pub height: usize,
    /// The number of nodes at each depth.
    pub width_by_depth: Vec<usize>,
    /// Nodes wait for each other in a circle.
    pub cyclic: bool,
}

/// The graph of a file, node by node. If nodes wait for each other in a circle, that is reported.
pub fn dag_of(loaded: &mut LoadedDag) -> Option<Dag> {
    let file = &loaded.dag;
    let arcs: Vec<(u32, u32)> = file.arcs.iter().map(|a| (a.parent, a.child)).collect();
    match Dag::new(file.nodes.len(), &arcs) {
        Ok(dag) => Some(dag),
        Err(Cycle(cycle)) => {
            let name = |n: &u32| file.nodes[*n as usize].name.as_str();
            let mut names: Vec<&str> = cycle.iter().map(name).take(20).collect();
            if cycle.len() > names.len() {
                names.push("…");
            }
            let message = format!("{} → {} wait for each other in a circle", names.join(" → "), names[0]);
            let mut is_on_it = vec![false; file.nodes.len()];
            for node in &cycle {
                is_on_it[*node as usize] = true;
            }
            let closing =
                file.arcs.iter().rev().find(|a| is_on_it[a.parent as usize] && is_on_it[a.child as usize]);
            let span = closing.map(|a| a.span).unwrap_or_default();
            loaded.diags.error("dag-cycle", span, "", message).help("remove one of these dependencies");
            None
        }
    }
}

/// For each node the length of the path by which a walk comes to it first that goes deep before it goes wide, in
/// the order in which nodes are defined. That is what HTCondor calls its depth; it is neither the shortest path
/// nor the longest.
fn depths(dag: &Dag) -> Vec<u32> {
    let mut depths = vec![u32::MAX; dag.len()];
    let sources = (0..dag.len() as u32).rev().filter(|n| dag.parents(*n).is_empty());
    let mut waiting: Vec<(u32, u32)> = sources.map(|n| (n, 0)).collect();
    while let Some((node, depth)) = waiting.pop() {
        if depths[node as usize] == u32::MAX {
            depths[node as usize] = depth;
            let known = waiting.len();
            let children = dag.children(node).iter().filter(|c| depths[**c as usize] == u32::MAX);
            waiting.extend(children.map(|c| (*c, depth + 1)));
            waiting[known..].sort_unstable_by_key(|(child, _)| Reverse(*child));
        }
    }
    depths
}

impl DagShape {
    /// The shape of a file, as HTCondor's checker counts: without what pins connect.
    pub fn new(file: &DagFile) -> Self {
        let arcs = file.arcs.iter().filter(|a| !a.pinned).map(|a| (a.parent, a.child));
        let arcs: Vec<(u32, u32)> = arcs.collect();
        let dag = Dag::new(file.nodes.len(), &arcs).ok();
        let count = |kind: NodeKind| file.nodes.iter().filter(|n| n.kind == kind).count();
        let mut widths = Vec::new();
        let depths = dag.as_ref().map(depths).unwrap_or_default();
        for (node, depth) in file.nodes.iter().zip(depths) {
            if matches!(node.kind, NodeKind::Job | NodeKind::SubDag) {
                let depth = depth as usize;
                widths.resize(widths.len().max(depth + 1), 0);
                widths[depth] += 1;
            }
        }
        Self {
            nodes: count(NodeKind::Job),
            total_nodes: file.nodes.len(),
            subdags: count(NodeKind::SubDag),
            splices: file.splices,
            arcs: arcs.len(),
            width: widths.iter().copied().max().unwrap_or(0),
            height: widths.len(),
            width_by_depth: widths,
            cyclic: dag.is_none(),
        }
    }
}
