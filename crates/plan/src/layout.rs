//! Places the nodes of a graph in layers from top to bottom.
//!
//! The layers are longest paths; within a layer, nodes are moved towards their neighbours (Sugiyama's
//! method with barycentres), which keeps most edges short and few of them crossing.

use crate::steps::StepGraph;

const CHARACTER: f64 = 7.6;
/// Left and right of a name, with room for a sign that says how it stands.
const MARGINS: f64 = 46.0;
const HEIGHT: f64 = 44.0;
const GAP_X: f64 = 28.0;
const GAP_Y: f64 = 52.0;
/// Between the lines of a layer that is too wide for one.
const GAP_LINE: f64 = 16.0;
/// So many nodes stand beside each other at most. Nobody could follow a line of thousands.
const WIDEST: usize = 60;
const MARGIN: f64 = 16.0;
const SWEEPS: usize = 8;

/// Where everything is.
pub struct Layout {
    /// Of each node.
    pub boxes: Vec<Place>,
    /// Of everything.
    pub width: f64,
    /// Of everything.
    pub height: f64,
}

/// Where a node is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Its left side.
    pub x: f64,
    /// Its upper side.
    pub y: f64,
    /// How wide it is.
    pub width: f64,
    /// How high it is.
    pub height: f64,
}

impl Place {
    /// The middle of its width.
    pub fn middle(&self) -> f64 {
        self.x + self.width / 2.0
    }
}

/// Places the steps of a workflow.
pub fn layout(graph: &StepGraph) -> Layout {
    let layers = layers(graph);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |m| m + 1)];
    for (node, layer) in layers.iter().enumerate() {
        rows[*layer].push(node);
    }
    order(graph, &mut rows);
    let width_of = |i: usize| {
        let n = &graph.nodes[i];
        let sub = n.over.as_ref().map_or(n.service.len(), |o| n.service.len() + o.len() + 15);
        (n.name.len().min(40) as f64 * (CHARACTER + 0.6)).max(sub.min(44) as f64 * 6.2).max(60.0) + MARGINS
    };
    let line_width = |line: &[usize]| line.iter().map(|i| width_of(*i) + GAP_X).sum::<f64>() - GAP_X;
    let width = rows.iter().flat_map(|row| row.chunks(WIDEST)).map(line_width).fold(0.0, f64::max);
    let mut boxes = vec![Place::default(); graph.nodes.len()];
    let mut y = MARGIN;
    for row in &rows {
        for line in row.chunks(WIDEST) {
            let mut x = MARGIN + (width - line_width(line)) / 2.0;
            for node in line {
                let w = width_of(*node);
                boxes[*node] = Place { x, y, width: w, height: HEIGHT };
                x += w + GAP_X;
            }
            y += HEIGHT + GAP_LINE;
        }
        y += GAP_Y - GAP_LINE;
    }
    let height = (y - MARGIN - GAP_Y).max(0.0);
    Layout { boxes, width: width + 2.0 * MARGIN + 8.0, height: height + 2.0 * MARGIN + 8.0 }
}

/// For each node the length of the longest path to it.
fn layers(graph: &StepGraph) -> Vec<usize> {
    let n = graph.nodes.len();
    let mut incoming = vec![0; n];
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); n];
    for e in &graph.edges {
        incoming[e.to] += 1;
        outgoing[e.from].push(e.to);
    }
    let mut layer = vec![0; n];
    let mut ready: Vec<usize> = (0..n).filter(|i| incoming[*i] == 0).collect();
    while let Some(node) = ready.pop() {
        for to in &outgoing[node] {
            layer[*to] = layer[*to].max(layer[node] + 1);
            incoming[*to] -= 1;
            if incoming[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    layer
}

/// Moves nodes within their rows towards the middle of their neighbours.
fn order(graph: &StepGraph, rows: &mut [Vec<usize>]) {
    let n = graph.nodes.len();
    let mut neighbours: [Vec<Vec<usize>>; 2] = [vec![Vec::new(); n], vec![Vec::new(); n]];
    for e in &graph.edges {
        neighbours[0][e.to].push(e.from);
        neighbours[1][e.from].push(e.to);
    }
    let mut position = vec![0.0; n];
    let note = |row: &[usize], position: &mut Vec<f64>| {
        for (i, node) in row.iter().enumerate() {
            position[*node] = i as f64 / row.len() as f64;
        }
    };
    for row in rows.iter() {
        note(row, &mut position);
    }
    for sweep in 0..SWEEPS {
        let side = &neighbours[sweep % 2];
        let count = rows.len();
        for r in 0..count {
            let row = &mut rows[if sweep % 2 == 0 { r } else { count - 1 - r }];
            let middle = |node: usize| {
                let list = &side[node];
                if list.is_empty() {
                    position[node]
                } else {
                    list.iter().map(|i| position[*i]).sum::<f64>() / list.len() as f64
                }
            };
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|node| (middle(*node), *node)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, node)| node).collect();
            note(row, &mut position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::{Edge, Step};

    #[test]
    fn a_layer_that_is_too_wide_has_several_lines() {
        let step = |i: usize| Step {
            name: format!("s{i}").into(),
            service: String::new(),
            loops: 0,
            over: None,
            conditional: false,
        };
        let edges = (0..1000).map(|i| Edge { from: i, to: 1000, order_only: false }).collect();
        let drawn = layout(&StepGraph { nodes: (0..=1000).map(step).collect(), edges });
        assert!(drawn.width < 10_000.0, "{}", drawn.width);
        let last = drawn.boxes[1000];
        assert!(
            drawn.boxes[..1000].iter().all(|b| b.y + b.height < last.y),
            "all are above what waits for them"
        );
        assert!(last.y + last.height <= drawn.height);
    }
}
