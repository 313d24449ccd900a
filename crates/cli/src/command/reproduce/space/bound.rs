//! What is promised, and whether it was kept.

use super::group::Group;
use super::plan::{CUT, LOADS, USUAL};
use super::trial::Row;
use crate::arguments::SpaceExperiment;
use serde::Serialize;

/// Something that must not be more than a limit; or, if it is a [`floor`](Bound::floor), not less.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Bound {
    pub(super) what: String,
    pub(super) measured: f64,
    pub(super) limit: f64,
    pub(super) floor: bool,
    pub(super) kept: bool,
}

/// From this number of nodes on a part of the bounds holds, or another one.
const LARGE: usize = 1024;
const LARGEST: usize = 10_000;
const SMALLEST: usize = 64;

/// How many messages a task may cost, as a part of log2²(n). Fewer nodes than 64 have no bound.
pub(super) fn messages(nodes: usize) -> Option<f64> {
    match nodes {
        ..SMALLEST => None,
        SMALLEST..LARGE => Some(1.6),
        _ => Some(1.0),
    }
}

/// Tasks done on the larger side of a cut, as a part of what would have been done by as many peers if nothing had been cut.
pub(super) fn larger_side(row: &Row, usual: &Row) -> f64 {
    let within = usual.done.iter().filter(|at| (CUT.0..CUT.1).contains(at)).count();
    row.cut_larger as f64 / (row.cut_share * within as f64).max(1.0)
}

/// The one of the same size and seed to which nothing special happened.
pub(super) fn usual<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    let same = |r: &&Row| {
        r.experiment == row.experiment && r.variant == USUAL && r.nodes == row.nodes && r.seed == row.seed
    };
    rows.iter().find(same)
}

pub(super) fn bounds(rows: &[Row]) -> Vec<Bound> {
    Group::all(rows).iter().flat_map(|group| of_group(group, rows)).collect()
}

fn of_group(group: &Group<'_>, rows: &[Row]) -> Vec<Bound> {
    let row = group.first();
    let mut all = Vec::new();
    let mut most = |what: &str, measured: f64, limit: f64| {
        let kept = measured <= limit;
        all.push(Bound { what: title(row, what), measured, limit, floor: false, kept });
    };
    let is = |experiment: SpaceExperiment| row.experiment == experiment.name();
    most("tasks lost", group.sum(|r| r.lost) as f64, 0.0);
    most("tasks committed twice", group.sum(|r| r.twice) as f64, 0.0);
    // Settings are tried to see what is worse.
    if let Some(limit) = messages(row.nodes).filter(|_| !is(SpaceExperiment::Settings)) {
        let limit = if is(SpaceExperiment::Trouble) { 1.1 * limit } else { limit };
        most("messages per task / log2²(n)", group.spread(|r| r.per_task_log2).most, limit);
    }
    if is(SpaceExperiment::Load) {
        for (what, of) in [
            ("makespan, % beyond central", (|r| r.makespan) as fn(&Row) -> f64),
            ("mean workflow time, % beyond central", |r| r.mean_workflow),
        ] {
            most(what, group.beyond_central(of).map_or(0.0, |s| s.mean), 5.0);
        }
        if row.variant == LOADS[0].0 {
            most("ready to start, p95, s", group.spread(|r| r.wait_p95).most, 1.0);
        }
        let differ = group.rows.iter().filter(|r| r.machine.same == Some(false)).count();
        most("seeds that came out differently the second time", differ as f64, 0.0);
    }
    if row.nodes >= LARGEST && is(SpaceExperiment::Load) {
        most("busiest node / mean", group.spread(|r| r.hottest).most, 30.0);
        most("time to simulate, s", group.spread(|r| r.machine.wall).most, 120.0);
    }
    if is(SpaceExperiment::Trouble) && row.cut_larger + row.cut_smaller > 0 {
        let parts = group.rows.iter().filter_map(|r| Some(larger_side(r, usual(rows, r)?)));
        let measured = super::group::Spread::of(parts).mean;
        let what = title(row, "done on the larger side / its share");
        all.push(Bound { what, measured, limit: 0.9, floor: true, kept: measured >= 0.9 });
    }
    all
}

fn title(row: &Row, what: &str) -> String {
    let variant = if row.variant.is_empty() { String::new() } else { format!(", {}", row.variant) };
    let (nodes, workflows, rules) = (row.nodes, row.workflows, row.rules);
    format!("{what} ({}{variant}: {nodes} nodes, {workflows} workflows, {rules})", row.experiment)
}
