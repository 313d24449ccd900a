//! Curves over an axis.

use crate::render::graph::escape;
use std::fmt::Write;

/// A curve: its name and its points.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Between which values something was, at which place.
pub(crate) type Range = (f64, (f64, f64));

/// What a plot says about itself.
#[derive(Default)]
pub(crate) struct Labels<'l> {
    pub(crate) title: &'l str,
    pub(crate) x: &'l str,
    pub(crate) y: &'l str,
    /// The value that means no difference, which is always shown.
    pub(crate) even: f64,
    /// How numbers are spread over the axes.
    pub(crate) scales: (Scale, Scale),
}

/// How numbers are spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are.
    Log,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.max(1e-12).log2(),
        }
    }

    /// Round numbers between two places, about `count` of them, and where they are.
    fn ticks(self, low: f64, high: f64, count: f64) -> Vec<(f64, f64)> {
        if self == Scale::Linear {
            return ticks(low, high, count).into_iter().map(|t| (t, t)).collect();
        }
        let (first, last) = ((low - 1e-6).ceil() as i32, (high + 1e-6).floor() as i32);
        let every = ((f64::from(last - first) / count).ceil() as i32).max(1);
        (first..=last).filter(|n| (n - first) % every == 0).map(|n| (2f64.powi(n), f64::from(n))).collect()
    }
}

/// A number as short as it can be said.
fn number(value: f64) -> String {
    let (value, unit) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = if value.abs() >= 100.0 { 0 } else { 3 };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 30.0;
const RIGHT: f64 = 16.0;
/// How far lines of text are apart.
const LINE: f64 = 14.0;
const COLOURS: [&str; 7] = ["#4a6fa5", "#c8793f", "#5a9e6f", "#a8577e", "#8a8f3c", "#6a5acd", "#2f8f9d"];
/// A curve is drawn with at most so many points.
const POINTS: usize = 2000;

/// Round numbers between two others, about `count` of them.
fn ticks(low: f64, high: f64, count: f64) -> Vec<f64> {
    let rough = (high - low).max(1e-9) / count;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-6).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// The curves as an SVG picture.
pub(crate) fn svg(labels: &Labels<'_>, curves: &[Curve]) -> String {
    svg_with_ranges(labels, curves, &[])
}

/// The curves as an SVG picture, those that have ranges with bars.
pub(crate) fn svg_with_ranges(labels: &Labels<'_>, curves: &[Curve], ranges: &[Vec<Range>]) -> String {
    let ends = ranges.iter().flatten().flat_map(|(at, (low, high))| [(*at, *low), (*at, *high)]);
    let ends: Vec<(f64, f64)> = ends.collect();
    let points = || curves.iter().flat_map(|c| &c.points).chain(&ends);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    };
    let (sx, sy) = labels.scales;
    let (x0, x1) = range(&mut points().map(|p| sx.place(p.0)));
    let even = (sy == Scale::Linear).then_some(labels.even);
    let (y0, y1) = range(&mut points().map(|p| sy.place(p.1)).chain(even));
    let (x1, y1) = (x1.max(x0 + 1e-9), y1.max(y0 + 1e-9));
    let x = |v: f64| LEFT + (sx.place(v) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - (sy.place(v) - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
        escape(labels.title)
    );
    for (t, _) in sx.ticks(x0, x1, 11.0) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            x(t),
            HEIGHT - BOTTOM + 16.0,
            number(t)
        );
    }
    for (t, _) in sy.ticks(y0, y1, 6.0) {
        let (at, right) = (y(t), WIDTH - RIGHT);
        let colour = if (t - labels.even).abs() < 1e-9 { "#888" } else { "#ddd" };
        let label = number(t);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"{colour}\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{label}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(LEFT, WIDTH),
        HEIGHT - 8.0,
        escape(labels.x)
    );
    let middle = f64::midpoint(TOP, HEIGHT - BOTTOM);
    let _ = writeln!(
        out,
        "<text transform=\"translate(14 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(labels.y)
    );
    // Names stand in the upper corner where less is drawn.
    let below = TOP + LINE * (curves.len() as f64 + 1.0);
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    let crowded: Vec<bool> = points().filter(|p| y(p.1) < below).map(|p| x(p.0) < middle).collect();
    let left = crowded.iter().filter(|is_left| **is_left).count();
    let (names_at, anchor) =
        if 2 * left < crowded.len() { (LEFT + 8.0, "start") } else { (WIDTH - RIGHT, "end") };
    for (i, curve) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let every = curve.points.len().div_ceil(POINTS).max(1);
        let mut path = String::new();
        for (n, (px, py)) in curve.points.iter().enumerate() {
            if n % every == 0 || n + 1 == curve.points.len() {
                let _ = write!(path, "{}{:.1} {:.1}", if n == 0 { "M" } else { "L" }, x(*px), y(*py));
            }
        }
        for (at, (low, high)) in ranges.get(i).into_iter().flatten() {
            let _ = write!(path, "M{:.1} {:.1}V{:.1}", x(*at), y(*low), y(*high));
        }
        let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
        if curves.len() > 1 {
            let at = TOP + LINE * (i as f64 + 1.0);
            let _ = writeln!(
                out,
                "<text x=\"{names_at}\" y=\"{at}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{}</text>",
                escape(&curve.name)
            );
        }
    }
    out.push_str("</svg>\n");
    out
}
