//! When which task ran: a lane per slot, a colour per step.

use crate::render::graph::{escape, shorten};
use crate::time::duration;
use std::fmt::Write;

/// A task on the timeline.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) agent: String,
    pub(crate) name: String,
    /// The step it belongs to; bars of a step share a colour.
    pub(crate) step: String,
    /// In milliseconds.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) cached: bool,
    pub(crate) failed: bool,
}

const WIDTH: f64 = 1000.0;
const LANE: f64 = 22.0;
const LEFT: f64 = 90.0;
const COLOURS: [&str; 10] = [
    "#4a6fa5", "#c8793f", "#5a9e6f", "#a8577e", "#8a8f3c", "#6a5acd", "#2f8f9d", "#b5524d", "#7c6f64",
    "#3f7fbf",
];

/// Gives every bar a lane such that bars of a lane do not overlap. Returns the lanes' agents.
fn lanes(bars: &[Bar]) -> (Vec<usize>, Vec<String>) {
    let mut order: Vec<usize> = (0..bars.len()).collect();
    order.sort_by(|a, b| bars[*a].start.total_cmp(&bars[*b].start));
    let mut lane_of = vec![0; bars.len()];
    let mut ends: Vec<(String, f64)> = Vec::new();
    for i in order {
        let bar = &bars[i];
        let free = ends.iter().position(|(agent, end)| *agent == bar.agent && *end <= bar.start + 0.5);
        let lane = free.unwrap_or_else(|| {
            ends.push((bar.agent.clone(), 0.0));
            ends.len() - 1
        });
        ends[lane].1 = bar.end;
        lane_of[i] = lane;
    }
    (lane_of, ends.into_iter().map(|(agent, _)| agent).collect())
}

/// The timeline as an SVG picture.
pub(crate) fn svg(bars: &[Bar]) -> String {
    let start = bars.iter().map(|b| b.start).fold(f64::INFINITY, f64::min);
    let end = bars.iter().map(|b| b.end).fold(start, f64::max);
    let span = (end - start).max(1.0);
    let (lane_of, agents) = lanes(bars);
    let mut steps: Vec<&str> = bars.iter().map(|b| b.step.as_str()).collect();
    steps.sort_unstable();
    steps.dedup();
    let colour = |step: &str| COLOURS[steps.binary_search(&step).unwrap_or(0) % COLOURS.len()];
    let height = agents.len() as f64 * LANE + 34.0;
    let x = |t: f64| LEFT + (t - start) / span * (WIDTH - LEFT - 10.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n"
    );
    for i in 0..=5 {
        let t = start + span * f64::from(i) / 5.0;
        let _ = writeln!(
            out,
            "<line x1=\"{0:.1}\" y1=\"4\" x2=\"{0:.1}\" y2=\"{1:.1}\" class=\"grid\"/><text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\" class=\"axis\">{3}</text>",
            x(t),
            height - 22.0,
            height - 8.0,
            duration(t - start)
        );
    }
    for (lane, agent) in agents.iter().enumerate() {
        let y = lane as f64 * LANE + 18.0;
        let _ =
            writeln!(out, "<text x=\"4\" y=\"{y:.1}\" class=\"axis\">{}</text>", escape(&shorten(agent, 12)));
    }
    for (bar, lane) in bars.iter().zip(&lane_of) {
        let y = *lane as f64 * LANE + 5.0;
        let (x1, x2) = (x(bar.start), x(bar.end));
        let fill = if bar.failed { "#c62828" } else { colour(&bar.step) };
        let opacity = if bar.cached { "0.35" } else { "0.95" };
        let note = if bar.failed {
            ", failed"
        } else if bar.cached {
            ", from the cache"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "<rect x=\"{x1:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" rx=\"2\" fill=\"{fill}\" opacity=\"{opacity}\"><title>{}: {}{note}</title></rect>",
            (x2 - x1).max(0.6),
            LANE - 6.0,
            escape(&bar.name),
            duration(bar.end - bar.start)
        );
    }
    out.push_str("</svg>\n");
    if steps.len() <= 24 {
        out.push_str("<p class=\"legend\">");
        for step in &steps {
            let _ = write!(out, "<span><i style=\"background:{}\"></i>{}</span>", colour(step), escape(step));
        }
        out.push_str("</p>\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(start: f64, end: f64) -> Bar {
        Bar {
            agent: "a".into(),
            name: "t".into(),
            step: "t".into(),
            start,
            end,
            cached: false,
            failed: false,
        }
    }

    #[test]
    fn overlapping_bars_get_lanes_of_their_own() {
        let (lanes, agents) = lanes(&[bar(0.0, 10.0), bar(5.0, 15.0), bar(10.0, 20.0)]);
        assert_eq!(lanes, [0, 1, 0]);
        assert_eq!(agents.len(), 2);
    }
}
