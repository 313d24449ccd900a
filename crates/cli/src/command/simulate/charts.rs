//! Pictures of simulations: what it takes on how many nodes, and who was busy when.

use crate::render::lanes::{self, Busy};
use crate::render::plot::{self, Curve, Labels, Scale};
use catena_simulate::{Cluster, Execution, Fate, Figure, Outcome, PolicyName, Workload, seconds};
use std::path::Path;

/// Pictures of who was busy show at most so many nodes.
const LANES: u32 = 64;
/// The points of a curve over time.
const POINTS: usize = 400;

/// What is drawn against the number of nodes: its name, its unit, and where it is.
type Measure = (&'static str, &'static str, fn(&Figure) -> f64);

const MEASURES: [Measure; 3] = [
    ("makespan", "seconds", |f| f.makespan),
    ("bytes", "bytes moved", |f| f.bytes_moved as f64),
    ("cost", "cost", |f| f.cost),
];

/// A name that can be that of a file.
fn file_name(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || "-_+.".contains(c) { c } else { '-' }).collect()
}

/// Draws everything into a directory.
pub(super) fn draw(
    directory: &Path,
    workloads: &[Workload],
    clusters: &[Cluster],
    policies: &[PolicyName],
    figures: &[Figure],
) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let write = |name: String, text: String| {
        let path = directory.join(file_name(&name));
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    for workload in workloads {
        let own: Vec<&Figure> = figures.iter().filter(|f| f.workflow == workload.name).collect();
        if clusters.len() > 1 {
            for (what, unit, of) in MEASURES {
                if own.iter().any(|f| of(f) > 0.0) {
                    write(format!("{}-{what}.svg", workload.name), against_nodes(&own, (what, unit), of))?;
                }
            }
        }
        // The largest cluster of which a picture can still show every node.
        let shown = clusters.iter().filter(|c| c.nodes() <= LANES).max_by_key(|c| c.nodes());
        let cluster = shown.unwrap_or(&clusters[0]);
        let mut curves = Vec::new();
        for policy in policies {
            let (_, outcome) = Figure::of(workload, cluster, *policy, 1)?;
            let title = format!("{}, {policy}, {} nodes", workload.name, cluster.nodes());
            let name = format!("{}-{policy}-{}-nodes.svg", workload.name, cluster.nodes());
            write(name, lanes::svg(&title, &lanes_of(workload, cluster, &outcome), &[]))?;
            curves.push(Curve { name: policy.to_string(), points: busy_over_time(workload, &outcome) });
        }
        let title = format!("{}: busy processors on {} nodes", workload.name, cluster.nodes());
        let labels = Labels { title: &title, x: "seconds", y: "processors", ..Labels::default() };
        write(format!("{}-busy.svg", workload.name), plot::svg(&labels, &curves))?;
    }
    Ok(())
}

/// A curve for each policy, with the mean of all seeds at each number of nodes.
pub(crate) fn against_nodes(
    figures: &[&Figure],
    (what, unit): (&str, &str),
    of: impl Fn(&Figure) -> f64,
) -> String {
    let mut policies: Vec<&str> = figures.iter().map(|f| f.policy.as_str()).collect();
    let mut seen = std::collections::HashSet::new();
    policies.retain(|p| seen.insert(*p));
    let curves: Vec<Curve> = policies
        .into_iter()
        .map(|policy| {
            let mut nodes: Vec<u32> =
                figures.iter().filter(|f| f.policy == policy).map(|f| f.nodes).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let mean = |n: &u32| {
                let own = figures.iter().filter(|f| f.policy == policy && f.nodes == *n);
                let (sum, count) = own.fold((0.0, 0.0), |(sum, count), f| (sum + of(f), count + 1.0));
                (f64::from(*n), sum / count)
            };
            Curve { name: policy.to_owned(), points: nodes.iter().map(mean).collect() }
        })
        .collect();
    let workflow = figures.first().map_or("", |f| f.workflow.as_str());
    let title = format!("{workflow}: {what}");
    let labels =
        Labels { title: &title, x: "nodes", y: unit, scales: (Scale::Log, Scale::Log), ..Labels::default() };
    plot::svg(&labels, &curves)
}

/// Executions that have occupied processors.
fn busy(outcome: &Outcome) -> impl Iterator<Item = &Execution> {
    outcome.executions.iter().filter(|e| e.fate != Fate::Recalled)
}

/// Who executed what, by what it runs.
fn lanes_of(workload: &Workload, cluster: &Cluster, outcome: &Outcome) -> Vec<Busy> {
    let name = |node: u32| {
        let kind = outcome.stays.iter().find(|s| s.node == node).map_or(0, |s| s.kind);
        format!("{} {node:05}", cluster.kinds[kind].id)
    };
    let mut lanes: Vec<Busy> = busy(outcome)
        .map(|e| Busy {
            agent: name(e.node),
            set: workload.tasks[e.task as usize].program.to_string(),
            start: seconds(e.busy) * 1e3,
            end: seconds(e.end) * 1e3,
        })
        .collect();
    lanes.sort_by(|a, b| a.start.total_cmp(&b.start).then_with(|| a.agent.cmp(&b.agent)));
    lanes
}

/// How many processors are busy, at points spread over the whole time.
fn busy_over_time(workload: &Workload, outcome: &Outcome) -> Vec<(f64, f64)> {
    let end = seconds(outcome.makespan).max(1e-9);
    let mut changes = vec![0.0; POINTS + 2];
    for e in busy(outcome) {
        let place = |t: u64| ((seconds(t) / end * POINTS as f64) as usize).min(POINTS);
        let cpus = workload.class(e.task).resources.cpus as f64 / 1e3;
        changes[place(e.busy)] += cpus;
        changes[place(e.end) + usize::from(place(e.end) == place(e.busy))] -= cpus;
    }
    let mut now = 0.0;
    let mut points = Vec::with_capacity(POINTS + 1);
    for (i, change) in changes.iter().take(POINTS + 1).enumerate() {
        now += change;
        points.push((i as f64 / POINTS as f64 * end, now));
    }
    points
}
