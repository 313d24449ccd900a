//! Curves of the figures of the paper, and of what goes beyond them.

use super::bound::messages;
use super::group::Group;
use super::plan::RULES;
use super::trial::{Row, Scheduler};
use crate::arguments::SpaceExperiment;
use crate::render::plot::{self, Curve, Labels, Range, Scale};
use catena_space::time::SECOND;

/// The pictures of an experiment: file and content.
pub(super) fn pictures(experiment: SpaceExperiment, rows: &[Row]) -> Vec<(String, String)> {
    match experiment {
        SpaceExperiment::Nodes => figures(rows, "nodes", |r| r.nodes as f64),
        SpaceExperiment::Workflows => figures(rows, "workflows", |r| r.workflows as f64),
        SpaceExperiment::Trouble => vec![("space-trouble.svg".to_owned(), done(rows))],
        SpaceExperiment::Load | SpaceExperiment::Settings | SpaceExperiment::Live => Vec::new(),
    }
}

/// More points nobody sees.
const POINTS: usize = 250;

type Of = fn(&Row) -> f64;

/// Figures 3 to 5, and what tasks cost.
fn figures(rows: &[Row], x: &'static str, at: Of) -> Vec<(String, String)> {
    let log = (Scale::Log, Scale::Log);
    let mut all = vec![
        ("3", "Mean time of a workflow", "seconds", (Scale::Log, Scale::Linear), time(rows, at)),
        ("4", "Messages because of the work, and of upkeep", "messages", log, kinds(rows, at)),
        ("5", "Messages per node because of the work", "messages per node", log, per_node(rows, at)),
    ];
    if x == "nodes" {
        let what = ("bound", "Messages per task / log2²(nodes)", "", (Scale::Log, Scale::Linear));
        all.push((what.0, what.1, what.2, what.3, bounded(rows, at)));
    }
    let drawn = all.into_iter().map(|(number, title, y, scales, curves)| {
        let (curves, ranges): (Vec<Curve>, Vec<Vec<Range>>) = curves.into_iter().unzip();
        let labels = Labels { title, x, y, scales, ..Labels::default() };
        (format!("space-{number}-{x}.svg"), plot::svg_with_ranges(&labels, &curves, &ranges))
    });
    drawn.collect()
}

/// The mean of all seeds at each place, and between which values they were.
fn curve(name: &str, rows: &[Row], choose: impl Fn(&Row) -> bool, at: Of, of: Of) -> (Curve, Vec<Range>) {
    let chosen: Vec<&Row> = rows.iter().filter(|r| choose(r)).collect();
    let mut places: Vec<f64> = chosen.iter().map(|r| at(r)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let spread = |place: &f64| {
        let here = chosen.iter().filter(|r| at(r).total_cmp(place).is_eq());
        (*place, super::group::Spread::of(here.map(|r| of(r))))
    };
    let spreads: Vec<_> = places.iter().map(spread).collect();
    let points = spreads.iter().map(|(place, s)| (*place, s.mean)).collect();
    let ranges = spreads.iter().map(|(place, s)| (*place, (s.least, s.most))).collect();
    (Curve { name: name.to_owned(), points }, ranges)
}

fn space(rules: &'static str) -> impl Fn(&Row) -> bool {
    move |r| r.scheduler == Scheduler::Space && r.rules == rules
}

fn time(rows: &[Row], at: Of) -> Vec<(Curve, Vec<Range>)> {
    let both = |rules: &'static str| {
        let central = move |r: &Row| r.scheduler == Scheduler::Central && r.rules == rules;
        let title = format!("{rules}, central");
        [
            curve(rules, rows, space(rules), at, |r| r.mean_workflow),
            curve(&title, rows, central, at, |r| r.mean_workflow),
        ]
    };
    RULES.into_iter().flat_map(both).collect()
}

fn kinds(rows: &[Row], at: Of) -> Vec<(Curve, Vec<Range>)> {
    let mut curves: Vec<_> =
        RULES.iter().map(|rules| curve(rules, rows, space(rules), at, |r| r.control as f64)).collect();
    curves.push(curve("upkeep, dependencies", rows, space(RULES[1]), at, |r| r.upkeep as f64));
    curves
}

fn per_node(rows: &[Row], at: Of) -> Vec<(Curve, Vec<Range>)> {
    let mut curves: Vec<_> = RULES
        .iter()
        .map(|rules| curve(&format!("{rules}, mean"), rows, space(rules), at, |r| r.node_mean))
        .collect();
    let chosen = || space(RULES[1]);
    curves.push(curve("dependencies, p99", rows, chosen(), at, |r| r.node_p99 as f64));
    curves.push(curve("dependencies, busiest", rows, chosen(), at, |r| r.hottest * r.node_mean));
    curves
}

fn bounded(rows: &[Row], at: Of) -> Vec<(Curve, Vec<Range>)> {
    let mut curves: Vec<_> =
        RULES.iter().map(|rules| curve(rules, rows, space(rules), at, |r| r.per_task_log2)).collect();
    let limit = |r: &Row| messages(r.nodes).unwrap_or(0.0);
    curves.push(curve("bound", rows, |r| messages(r.nodes).is_some(), at, limit));
    curves
}

/// How many tasks were done when, with each kind of trouble, for the first seed and the largest number of nodes.
fn done(rows: &[Row]) -> String {
    let nodes = rows.iter().map(|r| r.nodes).max().unwrap_or(0);
    let groups = Group::all(rows);
    let curve = |group: &Group<'_>| {
        let done = &group.first().done;
        let ends = done.iter().zip(1..).step_by(done.len().div_ceil(POINTS).max(1));
        let points = ends.map(|(at, n)| (*at as f64 / SECOND as f64, f64::from(n))).collect();
        Curve { name: group.first().variant.clone(), points }
    };
    let curves: Vec<Curve> = groups.iter().filter(|g| g.first().nodes == nodes).map(curve).collect();
    let title = format!("Tasks done by {nodes} nodes");
    plot::svg(&Labels { title: &title, x: "seconds", y: "tasks", ..Labels::default() }, &curves)
}
