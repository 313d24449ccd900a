//! The graph of a workflow: one node per action, edges along data and `dependsOn`.

use crate::render::layout::{Layout, Place, layout};
use catena_model::dagman::{DagArc, DagFile, DagNode, NodeKind, Submit};
use catena_model::{Action, Condition, InputSource, Library, Name, Workflow};
use std::collections::HashMap;
use std::fmt::Write;

/// A workflow as nodes and edges.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// An action.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: Name,
    /// The program or service.
    pub(crate) service: String,
    /// How many loops are around it.
    pub(crate) loops: usize,
    /// What the innermost loop walks through.
    pub(crate) over: Option<String>,
    pub(crate) conditional: bool,
}

/// From one action to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Whether it is an order without data.
    pub(crate) order_only: bool,
}

/// What a variable stands for.
enum Origin<'w> {
    Node(usize),
    Var(&'w Name),
}

struct Builder<'w> {
    library: &'w Library,
    graph: Graph,
    origins: HashMap<&'w str, Origin<'w>>,
    /// Nodes inside an action: itself, or all inside a loop.
    inside: HashMap<&'w str, Vec<usize>>,
}

impl Graph {
    /// The graph of a workflow without include actions.
    pub(crate) fn new(workflow: &Workflow, library: &Library) -> Self {
        let mut b =
            Builder { library, graph: Graph::default(), origins: HashMap::new(), inside: HashMap::new() };
        b.declare(&workflow.actions, 0, None);
        let mut next = 0;
        b.connect(&workflow.actions, &mut next, &[]);
        b.graph.edges.sort_by_key(|e| (e.from, e.to, e.order_only));
        b.graph.edges.dedup_by_key(|e| (e.from, e.to));
        b.graph
    }

    /// The graph of a DAG file.
    pub(crate) fn of_dag(dag: &DagFile) -> Self {
        let node = |n: &DagNode| Node {
            name: n.name.clone(),
            service: match (&n.submit, n.kind) {
                (_, NodeKind::Final) => "FINAL".to_owned(),
                (Submit::Named(name), _) => name.to_string(),
                (Submit::Inline { .. }, _) => String::new(),
            },
            loops: 0,
            over: None,
            conditional: false,
        };
        let edge = |a: &DagArc| Edge { from: a.parent as usize, to: a.child as usize, order_only: a.weak };
        Self { nodes: dag.nodes.iter().map(node).collect(), edges: dag.arcs.iter().map(edge).collect() }
    }
}

impl<'w> Builder<'w> {
    fn declare(&mut self, actions: &'w [Action], loops: usize, over: Option<&str>) -> Vec<usize> {
        let mut all = Vec::new();
        for action in actions {
            let mut own = Vec::new();
            match action {
                Action::Execute(a) => {
                    let node = self.graph.nodes.len();
                    let service = self.library.service(&a.service);
                    let service = match service.and_then(|s| s.script.as_ref()) {
                        Some(script) => program(&script.to_string()),
                        None => a.service.to_string(),
                    };
                    self.graph.nodes.push(Node {
                        name: a.id.clone(),
                        service,
                        loops,
                        over: over.map(str::to_owned),
                        conditional: a.options().when.is_some(),
                    });
                    for output in &a.outputs {
                        self.origins.insert(&output.var, Origin::Node(node));
                    }
                    own.push(node);
                }
                Action::For(a) => {
                    for (list, enumerator) in a.lists() {
                        self.origins.insert(&enumerator.id, Origin::Var(&list.id));
                    }
                    for (output, from) in a.output.iter().zip(&a.yield_to_output) {
                        self.origins.insert(&output.id, Origin::Var(&from.id));
                    }
                    for c in a.carried() {
                        self.origins.insert(&c.enumerator.id, Origin::Var(&c.init.id));
                    }
                    own = self.declare(&a.actions, loops + 1, Some(&a.input.id));
                }
                Action::First(a) => {
                    if let Some(input) = a.inputs.first() {
                        self.origins.insert(&a.output.id, Origin::Var(&input.id));
                    }
                }
                Action::Include(_) => {}
            }
            all.extend(&own);
            self.inside.insert(action.id(), own);
        }
        all
    }

    /// The action that produces a variable, if one does.
    fn origin(&self, var: &str) -> Option<usize> {
        let mut var = var;
        for _ in 0..1000 {
            match self.origins.get(var)? {
                Origin::Node(node) => return Some(*node),
                Origin::Var(next) => var = next,
            }
        }
        None
    }

    fn connect(&mut self, actions: &'w [Action], next: &mut usize, outer: &[usize]) {
        for action in actions {
            let waits = action.depends_on().iter().filter_map(|d| self.inside.get(d.id.as_str()));
            let mut order: Vec<usize> = waits.flatten().copied().collect();
            order.extend(outer);
            match action {
                Action::Execute(a) => {
                    let to = *next;
                    *next += 1;
                    let names = a.options().when.as_ref().map(Condition::names).unwrap_or_default();
                    let inputs = a.inputs.iter().filter_map(|i| match &i.source {
                        InputSource::Var(var) => self.origin(var),
                        InputSource::Value(_) => None,
                    });
                    let data: Vec<usize> =
                        inputs.chain(names.iter().filter_map(|n| self.origin(n))).collect();
                    self.graph.edges.extend(data.into_iter().map(|from| Edge {
                        from,
                        to,
                        order_only: false,
                    }));
                    self.graph.edges.extend(order.into_iter().map(|from| Edge {
                        from,
                        to,
                        order_only: true,
                    }));
                }
                Action::For(a) => self.connect(&a.actions, next, &order),
                Action::Include(_) | Action::First(_) => {}
            }
        }
    }
}

impl Graph {
    /// For Graphviz.
    pub(crate) fn to_dot(&self) -> String {
        let quote = |t: &str| format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\""));
        let mut out = String::from("digraph workflow {\n  node [shape=box, style=rounded, fontname=sans];\n");
        for (i, n) in self.nodes.iter().enumerate() {
            let more = if n.loops > 0 { ", peripheries=2" } else { "" };
            let dashed = if n.conditional { ", style=\"rounded,dashed\"" } else { "" };
            let _ = writeln!(out, "  n{i} [label={}{more}{dashed}];", quote(&n.name));
        }
        for e in &self.edges {
            let style = if e.order_only { " [style=dashed]" } else { "" };
            let _ = writeln!(out, "  n{} -> n{}{style};", e.from, e.to);
        }
        out.push_str("}\n");
        out
    }

    /// For Markdown pages.
    pub(crate) fn to_mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        for (i, n) in self.nodes.iter().enumerate() {
            let name = n.name.replace('"', "#quot;");
            let (open, close) = if n.loops > 0 { ("[[\"", "\"]]") } else { ("[\"", "\"]") };
            let _ = writeln!(out, "  n{i}{open}{name}{close}");
        }
        for e in &self.edges {
            let arrow = if e.order_only { "-.->" } else { "-->" };
            let _ = writeln!(out, "  n{} {arrow} n{}", e.from, e.to);
        }
        out
    }

    /// A picture that needs nothing else.
    pub(crate) fn to_svg(&self) -> String {
        let Layout { boxes, width, height } = layout(self);
        // Edges that would run through other nodes go around them, on both sides in turn.
        let mut side = 1.0;
        let detours: Vec<f64> = self
            .edges
            .iter()
            .map(|e| {
                let reach = detour(&boxes, e);
                if reach > 0.0 {
                    side = -side;
                }
                reach * side
            })
            .collect();
        let sides = |sign: f64| {
            let ends = self.edges.iter().zip(&detours);
            ends.map(|(e, d)| (boxes[e.from].middle() * sign).max(boxes[e.to].middle() * sign) + d * sign)
                .fold(0.0, f64::max)
        };
        let (left, right) = ((-sides(-1.0)).min(0.0) - 4.0, sides(1.0).max(width) + 4.0);
        let width = right - left;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.0} 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<style>\
             .node{{fill:#fff;stroke:#4a6fa5;stroke-width:1.5}}.more{{fill:#dfe8f3;stroke:#4a6fa5}}\
             .edge{{fill:none;stroke:#7a8aa0;stroke-width:1.5}}.order{{stroke-dasharray:5 4}}.when{{stroke-dasharray:6 3}}\
             .name{{fill:#1c2733;font-weight:600}}.sub{{fill:#5c6b7c;font-size:11px}}\
             @media(prefers-color-scheme:dark){{.node{{fill:#1d2733}}.more{{fill:#2a3a4d}}.name{{fill:#e6edf3}}.sub{{fill:#9fb0c3}}}}\
             </style>\n<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
             <path d=\"M0 0 8 4 0 8z\" fill=\"#7a8aa0\"/></marker></defs>\n"
        );
        for (e, detour) in self.edges.iter().zip(&detours) {
            let (a, b) = (&boxes[e.from], &boxes[e.to]);
            let (x1, y1, x2, y2) = (a.middle(), a.y + a.height, b.middle(), b.y - 1.0);
            let bend = ((y2 - y1) / 2.0).clamp(18.0, 70.0);
            // A curve comes to three quarters of the way to its control points.
            let (c1, c2) = (x1 + detour / 0.75, x2 + detour / 0.75);
            let class = if e.order_only { "edge order" } else { "edge" };
            let _ = writeln!(
                out,
                "<path class=\"{class}\" marker-end=\"url(#a)\" d=\"M{x1:.1} {y1:.1}C{c1:.1} {:.1} {c2:.1} {:.1} {x2:.1} {y2:.1}\"/>",
                y1 + bend,
                y2 - bend
            );
        }
        for (n, b) in self.nodes.iter().zip(&boxes) {
            for i in (1..=n.loops.min(2)).rev() {
                let d = 4.0 * i as f64;
                let _ = writeln!(
                    out,
                    "<rect class=\"more\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"7\"/>",
                    b.x + d,
                    b.y + d,
                    b.width,
                    b.height
                );
            }
            let class = if n.conditional { "node when" } else { "node" };
            let sub = match &n.over {
                Some(over) => format!("{} · for each of {over}", n.service),
                None => n.service.clone(),
            };
            let _ = writeln!(
                out,
                "<g><title>{0}: {1}</title><rect class=\"{class}\" x=\"{2:.1}\" y=\"{3:.1}\" width=\"{4:.1}\" height=\"{5:.1}\" rx=\"7\"/>\
                 <text class=\"name\" x=\"{6:.1}\" y=\"{7:.1}\" text-anchor=\"middle\">{0}</text>\
                 <text class=\"sub\" x=\"{6:.1}\" y=\"{8:.1}\" text-anchor=\"middle\">{9}</text></g>",
                escape(&shorten(&n.name, 40)),
                escape(&sub),
                b.x,
                b.y,
                b.width,
                b.height,
                b.x + b.width / 2.0,
                b.y + 19.0,
                b.y + 35.0,
                escape(&shorten(&sub, 44)),
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

/// How far an edge has to go to the side so that it does not run through other nodes.
fn detour(boxes: &[Place], e: &Edge) -> f64 {
    let (a, b) = (&boxes[e.from], &boxes[e.to]);
    let (y1, y2) = (a.y + a.height, b.y);
    let in_the_way = boxes.iter().filter(|n| n.y >= y1 && n.y + n.height <= y2).filter_map(|n| {
        let x = a.middle() + (b.middle() - a.middle()) * (n.y - y1) / (y2 - y1);
        let distance = n.width / 2.0 + 10.0 - (x - n.middle()).abs();
        (distance > 0.0).then_some(distance)
    });
    in_the_way.fold(0.0, f64::max)
}

/// The program a script starts with, if it is as simple as that.
fn program(script: &str) -> String {
    let first = script.split_whitespace().next().unwrap_or("");
    let plain = !first.is_empty() && first.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let keyword = matches!(first, "while" | "for" | "if" | "cd" | "set" | "case" | "until" | "mkdir");
    if plain && !keyword { first.to_owned() } else { "shell".to_owned() }
}

/// Text that can stand in XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The beginning of a text, with an ellipsis if it was longer.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        text.to_owned()
    } else {
        text.chars().take(limit - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::{LoadOptions, load_text};
    use std::path::Path;

    fn graph(text: &str) -> Graph {
        let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
        assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags);
        Graph::new(loaded.expanded.as_ref().unwrap(), &loaded.library)
    }

    const TEXT: &str = "
catena: 1
inputs: { xs: [1, 2] }
steps:
  a: { for: x in xs, run: 'echo {x} > {out}', out: x.txt }
  b: { for: y in a.out, run: 'cat {y} > {out}', out: y.txt }
  c: { run: 'cat {b.out} > {out}', out: z.txt, after: [a] }
";

    #[test]
    fn edges_follow_data_through_loops() {
        let g = graph(TEXT);
        let edges: Vec<(usize, usize, bool)> = g.edges.iter().map(|e| (e.from, e.to, e.order_only)).collect();
        assert_eq!(edges, [(0, 1, false), (0, 2, true), (1, 2, false)]);
    }

    #[test]
    fn every_format_names_every_action() {
        let g = graph(TEXT);
        for text in [g.to_dot(), g.to_mermaid(), g.to_svg()] {
            assert!(g.nodes.iter().all(|n| text.contains(n.name.as_str())), "{text}");
        }
    }
}
