//! Graphs of workflows for Graphviz, for Markdown, and as pictures.

use catena_plan::{Edge, Layout, Place, StepGraph, layout};
use std::fmt::Write;

/// For Graphviz.
pub(crate) fn dot(graph: &StepGraph) -> String {
    let quote = |t: &str| format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = String::from("digraph workflow {\n  node [shape=box, style=rounded, fontname=sans];\n");
    for (i, n) in graph.nodes.iter().enumerate() {
        let more = if n.loops > 0 { ", peripheries=2" } else { "" };
        let dashed = if n.conditional { ", style=\"rounded,dashed\"" } else { "" };
        let _ = writeln!(out, "  n{i} [label={}{more}{dashed}];", quote(&n.name));
    }
    for e in &graph.edges {
        let style = if e.order_only { " [style=dashed]" } else { "" };
        let _ = writeln!(out, "  n{} -> n{}{style};", e.from, e.to);
    }
    out.push_str("}\n");
    out
}

/// For Markdown pages.
pub(crate) fn mermaid(graph: &StepGraph) -> String {
    let mut out = String::from("flowchart TD\n");
    for (i, n) in graph.nodes.iter().enumerate() {
        let name = n.name.replace('"', "#quot;");
        let (open, close) = if n.loops > 0 { ("[[\"", "\"]]") } else { ("[\"", "\"]") };
        let _ = writeln!(out, "  n{i}{open}{name}{close}");
    }
    for e in &graph.edges {
        let arrow = if e.order_only { "-.->" } else { "-->" };
        let _ = writeln!(out, "  n{} {arrow} n{}", e.from, e.to);
    }
    out
}

/// A picture that needs nothing else.
pub(crate) fn svg(graph: &StepGraph) -> String {
    let Layout { boxes, width, height } = layout(graph);
    // Edges that would run through other nodes go around them, on both sides in turn.
    let mut side = 1.0;
    let detours: Vec<f64> = graph
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
        let ends = graph.edges.iter().zip(&detours);
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
    for (e, detour) in graph.edges.iter().zip(&detours) {
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
    for (n, b) in graph.nodes.iter().zip(&boxes) {
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

    #[test]
    fn every_format_names_every_action() {
        let text = "catena: 1\nsteps:\n  a: {run: 'echo 1 > {out}', out: x}\n  b: {run: 'cat {a.out}'}\n";
        let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
        let graph = StepGraph::new(loaded.expanded.as_ref().unwrap(), &loaded.library);
        assert_eq!(graph.nodes.len(), 2);
        for text in [dot(&graph), mermaid(&graph), svg(&graph)] {
            assert!(graph.nodes.iter().all(|n| text.contains(n.name.as_str())), "{text}");
        }
    }
}
