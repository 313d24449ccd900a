//! What came out, as text, tables and JSON.

use super::bound::{Bound, larger_side, messages, usual};
use super::group::{Group, Spread};
use super::trial::{Row, Scheduler};
use crate::arguments::{SpaceArgs, SpaceExperiment};
use serde_json::json;
use std::fmt::Write;

/// All rows. Times are in seconds.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut out = "experiment,variant,scheduler,rules,nodes,workflows,tasks,seed,workflows_per_s,utilisation,makespan_s,mean_workflow_s,wait_p50_s,wait_p95_s,control_messages,upkeep_messages,control_per_task,control_per_task_log2sq,control_per_node_mean,control_per_node_p99,hottest_by_mean,upkeep_per_node_s,workflows_ended,committed,committed_twice,committed_stale,lost,started,wasted,blocked,cut_larger_done,cut_smaller_done,cut_larger_share,events,digest\n".to_owned();
    for r in rows {
        let scheduler = if r.scheduler == Scheduler::Space { "space" } else { "central" };
        let _ = write!(out, "{},{},{scheduler},{},", r.experiment, r.variant.replace(',', ";"), r.rules);
        let _ = write!(
            out,
            "{},{},{},{},{:.6},{:.3},",
            r.nodes, r.workflows, r.tasks, r.seed, r.rate, r.utilisation
        );
        let _ = write!(out, "{:.3},{:.3},{:.3},{:.3},", r.makespan, r.mean_workflow, r.wait_p50, r.wait_p95);
        let _ = write!(out, "{},{},{:.3},{:.4},", r.control, r.upkeep, r.per_task, r.per_task_log2);
        let _ = write!(out, "{:.2},{},{:.2},{:.4},", r.node_mean, r.node_p99, r.hottest, r.upkeep_rate);
        let _ = write!(out, "{},{},{},{},{},", r.ended, r.committed, r.twice, r.stale, r.lost);
        let _ = write!(out, "{},{},{},", r.started, r.wasted, r.blocked);
        let _ = write!(out, "{},{},{:.4},", r.cut_larger, r.cut_smaller, r.cut_share);
        let _ = writeln!(out, "{},{}", r.events, r.digest);
    }
    out
}

/// Text in columns, the first ones as wide as what is in them.
struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { lines: vec![head.iter().map(|h| (*h).to_owned()).collect()] }
    }

    fn render(&self, title: &str) -> String {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.lines.iter().filter_map(|l| l.get(c)).map(|t| t.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let mut out = format!("{title}\n");
        for line in &self.lines {
            for (c, (text, width)) in line.iter().zip(&widths).enumerate() {
                // What it is to the left, numbers to the right.
                let is_name = self
                    .lines
                    .get(1)
                    .and_then(|l| l.get(c))
                    .is_some_and(|t| t.starts_with(char::is_alphabetic));
                let _ =
                    if is_name { write!(out, "{text:<width$}  ") } else { write!(out, "{text:>width$}  ") };
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        out.push('\n');
        out
    }
}

fn percent(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "–".to_owned(), |s| format!("{:+.1}", s.mean))
}

/// The mean, and between which values it was if there are several.
fn ranged(spread: Spread, digits: usize) -> String {
    let Spread { mean, least, most } = spread;
    let mean = format!("{mean:.digits$}");
    if most > least { format!("{mean} ({least:.digits$}–{most:.digits$})") } else { mean }
}

/// What an experiment came to.
pub(super) fn text(experiment: SpaceExperiment, rows: &[Row]) -> String {
    let groups = Group::all(rows);
    match experiment {
        SpaceExperiment::Nodes | SpaceExperiment::Workflows => figures(experiment, &groups),
        SpaceExperiment::Load => load(&groups),
        SpaceExperiment::Trouble => trouble(&groups, rows),
        SpaceExperiment::Settings => settings(&groups),
        // It has no rows.
        SpaceExperiment::Live => String::new(),
    }
}

fn figures(experiment: SpaceExperiment, groups: &[Group<'_>]) -> String {
    let mut table = Table::new(&[
        "nodes",
        "workflows",
        "rules",
        "workflow, s",
        "central, s",
        "% makespan",
        "messages",
        "per task",
        "/ log2²",
        "bound",
        "per node",
        "p99",
        "busiest ×",
        "upkeep /node/s",
        "wait p50, s",
        "p95",
    ]);
    for g in groups {
        let r = g.first();
        table.lines.push(vec![
            r.nodes.to_string(),
            r.workflows.to_string(),
            r.rules.to_owned(),
            ranged(g.spread(|r| r.mean_workflow), 0),
            format!("{:.0}", g.central_mean(|r| r.mean_workflow)),
            percent(g.beyond_central(|r| r.makespan)),
            format!("{:.0}", g.mean(|r| r.control as f64)),
            format!("{:.1}", g.mean(|r| r.per_task)),
            ranged(g.spread(|r| r.per_task_log2), 2),
            messages(r.nodes).map_or_else(|| "–".to_owned(), |b| format!("{b:.1}")),
            format!("{:.0}", g.mean(|r| r.node_mean)),
            format!("{:.0}", g.mean(|r| r.node_p99 as f64)),
            format!("{:.1}", g.spread(|r| r.hottest).most),
            format!("{:.2}", g.mean(|r| r.upkeep_rate)),
            format!("{:.2}", g.mean(|r| r.wait_p50)),
            format!("{:.2}", g.mean(|r| r.wait_p95)),
        ]);
    }
    let which = if experiment == SpaceExperiment::Nodes { "nodes" } else { "workflows" };
    table.render(&format!("Figures 3 to 5, more {which}; mean of all seeds (least–most)"))
}

fn load(groups: &[Group<'_>]) -> String {
    let mut table = Table::new(&[
        "nodes",
        "workflows",
        "tasks",
        "load",
        "% makespan",
        "% workflow",
        "wait p50, s",
        "p95",
        "central p50",
        "p95",
        "per task",
        "busiest ×",
        "events",
        "simulated in, s",
        "events/s",
        "same again",
    ]);
    for g in groups {
        let r = g.first();
        let wall = g.mean(|r| r.machine.wall);
        table.lines.push(vec![
            r.nodes.to_string(),
            r.workflows.to_string(),
            r.tasks.to_string(),
            r.variant.clone(),
            percent(g.beyond_central(|r| r.makespan)),
            percent(g.beyond_central(|r| r.mean_workflow)),
            format!("{:.2}", g.mean(|r| r.wait_p50)),
            format!("{:.2}", g.mean(|r| r.wait_p95)),
            format!("{:.2}", g.central_mean(|r| r.wait_p50)),
            format!("{:.2}", g.central_mean(|r| r.wait_p95)),
            format!("{:.1}", g.mean(|r| r.per_task)),
            format!("{:.1}", g.spread(|r| r.hottest).most),
            format!("{:.0}", g.mean(|r| r.events as f64)),
            format!("{wall:.1}"),
            format!("{:.0}", g.mean(|r| r.events as f64) / wall.max(1e-9)),
            if g.rows.iter().all(|r| r.machine.same == Some(true)) { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.render("Load: beyond a central scheduler, in percent")
}

fn trouble(groups: &[Group<'_>], rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "trouble",
        "nodes",
        "tasks",
        "lost",
        "twice",
        "stale",
        "wasted",
        "% messages",
        "/ log2²",
        "makespan, s",
        "larger side / share",
        "smaller side",
        "seeds that fail",
    ]);
    for g in groups {
        let r = g.first();
        let usual_of = |r: &&&Row| usual(rows, r);
        let extra = g.rows.iter().filter_map(|r| Some(100.0 * (r.per_task / usual_of(&r)?.per_task - 1.0)));
        let larger = g.rows.iter().filter_map(|r| Some(larger_side(r, usual_of(&r)?)));
        let is_cut = r.cut_larger + r.cut_smaller > 0;
        let failing: Vec<String> =
            g.rows.iter().filter(|r| r.lost + r.twice + r.stale > 0).map(|r| r.seed.to_string()).collect();
        table.lines.push(vec![
            r.variant.clone(),
            r.nodes.to_string(),
            g.sum(|r| r.tasks as u64).to_string(),
            g.sum(|r| r.lost).to_string(),
            g.sum(|r| r.twice).to_string(),
            g.sum(|r| r.stale).to_string(),
            g.sum(|r| r.wasted).to_string(),
            format!("{:+.1}", Spread::of(extra).mean),
            format!("{:.2}", g.mean(|r| r.per_task_log2)),
            format!("{:.0}", g.mean(|r| r.makespan)),
            if is_cut { format!("{:.2}", Spread::of(larger).mean) } else { "–".to_owned() },
            if is_cut { g.sum(|r| r.cut_smaller as u64).to_string() } else { "–".to_owned() },
            if failing.is_empty() { "none".to_owned() } else { failing.join(" ") },
        ]);
    }
    table.render("Trouble: all seeds together")
}

fn settings(groups: &[Group<'_>]) -> String {
    let mut table = Table::new(&[
        "setting",
        "nodes",
        "% makespan",
        "% workflow",
        "per task",
        "/ log2²",
        "busiest ×",
        "p99",
        "upkeep /node/s",
        "wait p50, s",
        "p95",
    ]);
    for g in groups {
        let r = g.first();
        table.lines.push(vec![
            r.variant.clone(),
            r.nodes.to_string(),
            percent(g.beyond_central(|r| r.makespan)),
            percent(g.beyond_central(|r| r.mean_workflow)),
            format!("{:.1}", g.mean(|r| r.per_task)),
            format!("{:.2}", g.mean(|r| r.per_task_log2)),
            format!("{:.1}", g.mean(|r| r.hottest)),
            format!("{:.0}", g.mean(|r| r.node_p99 as f64)),
            format!("{:.2}", g.mean(|r| r.upkeep_rate)),
            format!("{:.2}", g.mean(|r| r.wait_p50)),
            format!("{:.2}", g.mean(|r| r.wait_p95)),
        ]);
    }
    table.render("Settings: what they cost and what they are good for")
}

/// Which bounds were kept, and where everything is.
pub(super) fn closing(args: &SpaceArgs, bounds: &[Bound]) -> String {
    let broken: Vec<&Bound> = bounds.iter().filter(|b| !b.kept).collect();
    let mut out = format!("{} of {} bounds kept\n", bounds.len() - broken.len(), bounds.len());
    for b in broken {
        let sign = if b.floor { "≥" } else { "≤" };
        let _ = writeln!(out, "  broken: {}: {:.2}, not {sign} {:.2}", b.what, b.measured, b.limit);
    }
    let _ = writeln!(out, "tables and pictures are in {}", args.out.display());
    out
}

pub(super) fn json(args: &SpaceArgs, rows: &[Row], bounds: &[Bound]) -> String {
    let timed = rows.iter().filter(|r| r.machine.same.is_some());
    let machine = timed.map(|r| {
        json!({
            "variant": r.variant, "nodes": r.nodes, "seed": r.seed, "seconds": r.machine.wall,
            "events_per_second": r.events as f64 / r.machine.wall.max(1e-9), "same_again": r.machine.same,
        })
    });
    let machine: Vec<_> = machine.collect();
    let outcome = json!({ "results": rows, "bounds": bounds, "machine": machine, "out": args.out });
    format!("{outcome:#}\n")
}
