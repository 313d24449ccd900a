//! What was measured and what was predicted, as text, table, pictures and JSON.

use super::predict::Predicted;
use super::trial::Trial;
use super::variant::{Variant, references};
use super::work::Work;
use crate::arguments::{DataArgs, DataExperiment};
use crate::render::lanes::{self, Busy};
use crate::render::plot::{self, Curve, Labels};
use crate::time::duration;
use catena_model::Bytes;
use serde_json::{Value, json};
use std::fmt::Write;

/// An experiment, as far as it was made.
pub(super) struct Measured {
    experiment: DataExperiment,
    rows: Vec<Row>,
}

/// A variant and what came of it.
struct Row {
    variant: Variant,
    predicted: Predicted,
    /// None if it was only simulated.
    trials: Vec<Trial>,
}

impl Row {
    /// The one in the middle, by a measure.
    fn middle(&self, of: impl Fn(&Trial) -> f64) -> Option<f64> {
        let mut all: Vec<f64> = self.trials.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        let middle = all.len().checked_sub(1)? / 2;
        // Of an even number, between the two in the middle.
        Some(f64::midpoint(all[middle], all[all.len() / 2]))
    }

    /// Makespan in seconds: measured, or else predicted.
    fn makespan(&self) -> f64 {
        self.middle(|t| t.makespan).unwrap_or(self.predicted.makespan)
    }

    fn moved(&self) -> f64 {
        self.middle(|t| t.bytes_moved as f64).unwrap_or(self.predicted.bytes_moved as f64)
    }
}

impl Measured {
    pub(super) fn new(
        experiment: DataExperiment,
        variants: Vec<Variant>,
        predicted: Vec<Predicted>,
        trials: Vec<Vec<Trial>>,
    ) -> Self {
        let trials = trials.into_iter().chain(std::iter::repeat_with(Vec::new));
        let rows = variants.into_iter().zip(predicted).zip(trials);
        let rows = rows.map(|((variant, predicted), trials)| Row { variant, predicted, trials }).collect();
        Self { experiment, rows }
    }

    /// What the others are compared with.
    fn references(&self) -> impl Iterator<Item = &Row> {
        references(self.experiment)
            .iter()
            .filter_map(|name| self.rows.iter().find(|r| r.variant.name == *name))
    }
}

/// A trial in a line.
pub(super) fn one(trial: &Trial) -> String {
    format!(
        "{}, {} moved, {} needed",
        duration(trial.makespan * 1e3),
        Bytes(trial.bytes_moved),
        Bytes(trial.bytes_needed)
    )
}

fn ratio(value: f64, reference: f64) -> f64 {
    value / reference.max(1e-9)
}

/// A table for people.
pub(super) fn text(args: &DataArgs, work: &Work, all: &[Measured]) -> String {
    let mut out = String::new();
    for measured in all {
        let how = if args.simulate {
            "simulated".to_owned()
        } else {
            format!("{} × live, the middle counts", args.repeat)
        };
        let _ = writeln!(
            out,
            "{}: {}, {} tasks, agents at {} Mbit/s, {how}",
            measured.experiment.name(),
            work.trace.name,
            work.trace.jobs.len(),
            args.rate
        );
        table(&mut out, measured);
        out.push('\n');
    }
    let _ = writeln!(out, "tables and pictures are in {}", args.out.display());
    out
}

fn table(out: &mut String, measured: &Measured) {
    let width = measured.rows.iter().map(|r| r.variant.name.chars().count()).max().unwrap_or(0);
    let heads = ["makespan", "moved", "needed", "simulated", "moved", "live / sim."];
    let line = |out: &mut String, name: &str, cells: [String; 6]| {
        let _ = write!(out, "  {name:<width$}");
        for cell in cells {
            let _ = write!(out, " {cell:>11}");
        }
        out.push('\n');
    };
    line(out, "", heads.map(str::to_owned));
    for row in &measured.rows {
        let bytes = |b: f64| Bytes(b as u64).to_string();
        let cells = [
            row.middle(|t| t.makespan).map(|s| duration(s * 1e3)),
            row.middle(|t| t.bytes_moved as f64).map(bytes),
            row.middle(|t| t.bytes_needed as f64).map(bytes),
            Some(duration(row.predicted.makespan * 1e3)),
            Some(bytes(row.predicted.bytes_moved as f64)),
            row.middle(|t| t.makespan).map(|s| format!("{:.3}", ratio(s, row.predicted.makespan))),
        ];
        line(out, &row.variant.name, cells.map(Option::unwrap_or_default));
    }
    for reference in measured.references() {
        let name = |row: &Row| format!("{} / {}", row.variant.name, reference.variant.name);
        for row in measured.rows.iter().filter(|r| r.variant.name != reference.variant.name) {
            let (makespan, moved) =
                (ratio(row.makespan(), reference.makespan()), ratio(row.moved(), reference.moved()));
            let _ = writeln!(out, "  {}: makespan {makespan:.3}, moved {moved:.3}", name(row));
        }
    }
}

pub(super) fn json(args: &DataArgs, work: &Work, all: &[Measured]) -> String {
    let experiments: Vec<Value> = all.iter().map(experiment).collect();
    let outcome = json!({
        "workflow": work.trace.name,
        "tasks": work.trace.jobs.len(),
        "agents": args.agents,
        "rate_mbit": args.rate,
        "experiments": experiments,
        "out": args.out,
    });
    format!("{outcome:#}\n")
}

fn experiment(measured: &Measured) -> Value {
    let row = |row: &Row| {
        let is_live = !row.trials.is_empty();
        let mut ratios = json!({});
        for reference in measured.references() {
            ratios[&reference.variant.name] = json!({
                "makespan": ratio(row.makespan(), reference.makespan()),
                "bytes_moved": ratio(row.moved(), reference.moved()),
            });
        }
        json!({
            "name": row.variant.name,
            "policy": row.variant.policy,
            "agents": row.variant.agents,
            "trials": row.trials,
            "makespan": is_live.then(|| row.makespan()),
            "bytes_moved": is_live.then(|| row.moved()),
            "simulated": row.predicted,
            "live_by_simulated": is_live.then(|| ratio(row.makespan(), row.predicted.makespan)),
            "ratios": ratios,
        })
    };
    let rows: Vec<Value> = measured.rows.iter().map(row).collect();
    json!({ "experiment": measured.experiment.name(), "variants": rows })
}

/// Writes tables and pictures.
pub(super) fn write(args: &DataArgs, work: &Work, all: &[Measured]) -> Result<(), String> {
    let write = |file: &str, text: String| {
        let path = args.out.join(file);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
    };
    write("data.csv", csv(all))?;
    for measured in all {
        let name = measured.experiment.name();
        if measured.rows.iter().any(|r| !r.trials.is_empty()) {
            write(&format!("data-{name}.svg"), progress(measured))?;
        }
        for row in &measured.rows {
            let Some(trial) = row.trials.first() else { continue };
            let variant: String = row.variant.name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            write(&format!("data-{name}-{variant}.svg"), picture(work, name, row, trial))?;
        }
    }
    Ok(())
}

fn csv(all: &[Measured]) -> String {
    let mut out = "experiment,variant,policy,agents,trial,makespan,bytes_moved,bytes_needed,simulated_makespan,simulated_bytes_moved\n".to_owned();
    for measured in all {
        for Row { variant, predicted, trials } in &measured.rows {
            let start = format!(
                "{},{},{},{}",
                measured.experiment.name(),
                variant.name,
                variant.policy,
                variant.agents
            );
            let end = format!("{:.3},{}", predicted.makespan, predicted.bytes_moved);
            if trials.is_empty() {
                let _ = writeln!(out, "{start},,,,,{end}");
            }
            for (n, trial) in trials.iter().enumerate() {
                let (moved, needed) = (trial.bytes_moved, trial.bytes_needed);
                let _ = writeln!(out, "{start},{},{:.3},{moved},{needed},{end}", n + 1, trial.makespan);
            }
        }
    }
    out
}

/// How many tasks have ended when, in the first trial of each variant.
fn progress(measured: &Measured) -> String {
    let curve = |row: &Row| {
        let mut ends: Vec<f64> = row.trials.first()?.executed.iter().map(|e| e.end).collect();
        ends.sort_by(f64::total_cmp);
        let points = ends.into_iter().zip(1..).map(|(end, n)| (end, f64::from(n))).collect();
        Some(Curve { name: row.variant.name.clone(), points })
    };
    let curves: Vec<Curve> = measured.rows.iter().filter_map(curve).collect();
    let title = format!("{}: completed tasks", measured.experiment.name());
    plot::svg(&Labels { title: &title, x: "seconds", y: "tasks", ..Labels::default() }, &curves)
}

/// Who was busy when. Between tasks an agent waits for data, or has nothing to do.
fn picture(work: &Work, experiment: &str, row: &Row, trial: &Trial) -> String {
    let mut busy: Vec<Busy> = trial
        .executed
        .iter()
        .map(|e| Busy {
            agent: e.agent.clone(),
            set: work.trace.jobs[e.job].program.to_string(),
            start: e.start * 1e3,
            end: e.end * 1e3,
        })
        .collect();
    busy.sort_by(|a, b| a.start.total_cmp(&b.start));
    lanes::svg(&format!("{experiment}, {}: {}", row.variant.name, one(trial)), &busy, &[])
}
