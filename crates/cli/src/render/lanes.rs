//! Who was busy when: a lane per agent, a colour per required capability set, a cross where one was killed.
//! The picture of Figure 3 of Krämer's paper on Steep, with time from left to right.

use crate::render::graph::escape;
use crate::time::duration;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A chain on an agent.
#[derive(Clone, Debug)]
pub(crate) struct Busy {
    pub(crate) agent: String,
    /// The required capability set.
    pub(crate) set: String,
    /// In milliseconds.
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// Somebody was killed.
#[derive(Clone, Debug)]
pub(crate) struct Kill {
    /// The agent, or what else it was.
    pub(crate) who: String,
    /// In milliseconds.
    pub(crate) at: f64,
}

const WIDTH: f64 = 1100.0;
const LANE: f64 = 26.0;
const LEFT: f64 = 120.0;
const TOP: f64 = 70.0;
/// A fill for what an agent does, and a darker shade for where a chain starts.
const COLOURS: [(&str, &str); 6] = [
    ("#8fb8de", "#2f6da8"),
    ("#f4b183", "#c8641b"),
    ("#a9d18e", "#4f8a2c"),
    ("#d5a6bd", "#963f6c"),
    ("#ffe699", "#b58a00"),
    ("#b7b7b7", "#555555"),
];

/// The picture.
pub(crate) fn svg(title: &str, busy: &[Busy], kills: &[Kill]) -> String {
    let start =
        busy.iter().map(|b| b.start).fold(f64::INFINITY, f64::min).min(busy.first().map_or(0.0, |b| b.start));
    let end = busy.iter().map(|b| b.end).fold(start + 1.0, f64::max);
    let x = |t: f64| LEFT + (t - start) / (end - start) * (WIDTH - LEFT - 16.0);
    let mut sets: Vec<&str> = busy.iter().map(|b| b.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let colour = |set: &str| COLOURS[sets.binary_search(&set).unwrap_or(0) % COLOURS.len()];
    // Agents in the order in which they began to work.
    let mut first: BTreeMap<&str, f64> = BTreeMap::new();
    for b in busy {
        let t = first.entry(&b.agent).or_insert(b.start);
        *t = t.min(b.start);
    }
    let mut agents: Vec<(&str, f64)> = first.into_iter().collect();
    agents.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(b.0)));
    let lane = |agent: &str| agents.iter().position(|(a, _)| *a == agent);
    let height = TOP + agents.len() as f64 * LANE + 34.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"8\" y=\"18\" font-size=\"14\">{}</text>\n",
        escape(title)
    );
    for (i, set) in sets.iter().enumerate() {
        let at = LEFT + i as f64 * 110.0;
        let (fill, dark) = colour(set);
        let _ = writeln!(
            out,
            "<rect x=\"{at}\" y=\"26\" width=\"14\" height=\"12\" fill=\"{fill}\"/><rect x=\"{at}\" y=\"26\" width=\"3\" height=\"12\" fill=\"{dark}\"/><text x=\"{}\" y=\"36\">{}</text>",
            at + 19.0,
            escape(set)
        );
    }
    for (i, _) in agents.iter().enumerate() {
        let y = TOP + i as f64 * LANE;
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"#f3f3f3\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">A{}</text>",
            y + 2.0,
            WIDTH - LEFT - 16.0,
            LANE - 4.0,
            LEFT - 8.0,
            y + LANE / 2.0 + 4.0,
            i + 1
        );
    }
    draw_chains(&mut out, busy, &x, &lane, &colour);
    for (n, kill) in kills.iter().enumerate() {
        let (at, y) = (x(kill.at.clamp(start, end)), lane(&kill.who));
        let y = y.map_or(TOP - 4.0, |i| TOP + (i as f64 + 0.5) * LANE);
        let label = if lane(&kill.who).is_none() {
            format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" text-anchor=\"middle\">{}</text>",
                at,
                // Names of what was killed shortly after one another stand above one another.
                y - 7.0 - 10.0 * (n % 2) as f64,
                escape(&kill.who)
            )
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\" stroke=\"black\" stroke-width=\"2.2\"/>{label}",
            at - 4.0,
            y - 4.0
        );
    }
    for i in 0..=6 {
        let t = start + (end - start) * f64::from(i) / 6.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            x(t),
            height - 12.0,
            duration(t - start)
        );
    }
    out + "</svg>\n"
}

/// Chains that follow one another within a pixel are drawn as one, so that the picture stays small.
fn draw_chains<'a>(
    out: &mut String,
    busy: &'a [Busy],
    x: &dyn Fn(f64) -> f64,
    lane: &dyn Fn(&str) -> Option<usize>,
    colour: &dyn Fn(&str) -> (&'static str, &'static str),
) {
    let mut by_lane: BTreeMap<usize, Vec<&'a Busy>> = BTreeMap::new();
    for b in busy {
        if let Some(lane) = lane(&b.agent) {
            by_lane.entry(lane).or_default().push(b);
        }
    }
    for (lane, mut chains) in by_lane {
        chains.sort_by(|a, b| a.start.total_cmp(&b.start));
        let y = TOP + lane as f64 * LANE + 2.0;
        let mut last_mark = f64::NEG_INFINITY;
        let mut open: Option<(f64, f64, &str)> = None;
        for b in chains {
            let (from, to) = (x(b.start), x(b.end));
            match &mut open {
                Some((_, end, set)) if *set == b.set && from - *end < 0.6 => *end = end.max(to),
                _ => {
                    draw_bar(out, open, y, colour);
                    open = Some((from, to, &b.set));
                }
            }
            if from - last_mark >= 0.9 {
                last_mark = from;
                let _ = write!(
                    out,
                    "<path d=\"M{from:.1} {y:.1}v{}\" stroke=\"{}\" stroke-width=\"1\"/>",
                    LANE - 4.0,
                    colour(&b.set).1
                );
            }
        }
        draw_bar(out, open, y, colour);
        out.push('\n');
    }
}

fn draw_bar(
    out: &mut String,
    bar: Option<(f64, f64, &str)>,
    y: f64,
    colour: &dyn Fn(&str) -> (&'static str, &'static str),
) {
    if let Some((from, to, set)) = bar {
        let _ = write!(
            out,
            "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.7\"/>",
            (to - from).max(0.4),
            LANE - 4.0,
            colour(set).0
        );
    }
}
