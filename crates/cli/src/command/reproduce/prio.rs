//! The evaluation of prio: how many jobs are eligible (Figure 4), and what that is worth in a grid in which workers
//! come and go (Figures 6 to 9).

use crate::arguments::{PaperDag, PrioEvaluationArgs};
use crate::command::{Outcome, print};
use crate::parallel;
use crate::render::plot::{self, Curve, Labels};
use crate::time::duration;
use catena_plan::{Dag, eligible_gain, prio_order};
use catena_simulate::batch::{Choice, Grid, Metrics, RatioInterval, ratio_interval};
use catena_simulate::generate;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;
use std::time::Instant;

/// The size of the smallest dag, for which as many runs are made as in the paper.
const AIRSN_JOBS: usize = 773;

/// What is compared: how it is called in tables and in pictures.
const METRICS: [(&str, &str); 3] =
    [("time", "execution time"), ("stalling", "probability of stalling"), ("utilisation", "utilisation")];

/// A point of the figures: mean time between batches, mean size of a batch, and the ratio of each metric.
struct Cell {
    /// As a power of 10.
    bit: i32,
    /// As a power of 2.
    bs: i32,
    ratios: [Option<RatioInterval>; 3],
}

impl Cell {
    fn interarrival(&self) -> f64 {
        10f64.powi(self.bit)
    }

    fn size(&self) -> f64 {
        2f64.powi(self.bs)
    }
}

pub(super) fn reproduce(args: &PrioEvaluationArgs) -> Outcome {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let mut outcome = Vec::new();
    for which in &args.dag {
        let graph = match which {
            PaperDag::Airsn => generate::airsn(250, 21),
            PaperDag::Inspiral => generate::inspiral(&[62, 62, 62, 62, 62, 62, 92, 92, 93, 93], 6),
            PaperDag::Montage => generate::montage(37, 5137),
            PaperDag::Sdss => generate::sdss(12, 1000),
        };
        let name = format!("{which:?}").to_lowercase();
        let dag = graph.dag().map_err(|e| e.to_string())?;
        let prio = prio_order(&dag);
        let mean = draw_eligible(args, &name, &dag, &prio)?;
        let q = args.q.unwrap_or_else(|| (300 * AIRSN_JOBS / dag.len()).clamp(3, 300));
        let begin = Instant::now();
        let cells = evaluate(args, &name, &dag, &prio, q);
        write_table(args, &name, &cells)?;
        for metric in 0..METRICS.len() {
            draw_ratios(args, &name, metric, &cells)?;
        }
        let best = cells
            .iter()
            .filter_map(|c| Some((c, c.ratios[0]?)))
            .min_by(|a, b| a.1.median.total_cmp(&b.1.median));
        let worst = cells
            .iter()
            .filter_map(|c| Some((c, c.ratios[0]?)))
            .max_by(|a, b| a.1.median.total_cmp(&b.1.median));
        let point = |at: Option<(&Cell, RatioInterval)>| {
            at.map(|(c, r)| json!({ "interarrival": c.interarrival(), "size": c.size(), "median": r.median, "low": r.low, "high": r.high }))
        };
        let seconds = begin.elapsed().as_secs_f64();
        outcome.push(json!({
            "dag": name, "jobs": dag.len(), "p": args.p, "q": q, "cells": cells.len(), "seconds": seconds,
            "eligible_difference": mean, "best": point(best), "worst": point(worst),
        }));
        if !args.json {
            let show = |at: Option<(&Cell, RatioInterval)>| {
                at.map_or_else(String::new, |(c, r)| {
                    format!(
                        "{:.3} [{:.3}, {:.3}] at {} and {}",
                        r.median,
                        r.low,
                        r.high,
                        c.interarrival(),
                        c.size()
                    )
                })
            };
            print(&format!(
                "{name}: {} jobs, {mean:+.2} eligible on average; time PRIO / FIFO from {} to {}; {} cells with p = {}, q = {q} in {}\n",
                dag.len(),
                show(best),
                show(worst),
                cells.len(),
                args.p,
                duration(seconds * 1e3)
            ));
        }
    }
    if args.json {
        print(&format!("{:#}\n", json!({ "results": outcome, "out": args.out })));
    } else {
        print(&format!("tables and pictures are in {}\n", args.out.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Figure 4. Returns the mean difference.
fn draw_eligible(args: &PrioEvaluationArgs, name: &str, dag: &Dag, prio: &[u32]) -> Result<f64, String> {
    let gain = eligible_gain(dag, prio);
    let points: Vec<(f64, f64)> = gain.iter().enumerate().map(|(t, d)| (t as f64, *d as f64)).collect();
    let mean = points.iter().map(|p| p.1).sum::<f64>() / points.len() as f64;
    let title = format!("{name}: eligible jobs, PRIO minus FIFO");
    let labels =
        Labels { title: &title, x: "executed jobs", y: "difference", even: 0.0, ..Labels::default() };
    write(
        args,
        &format!("{name}-eligible.svg"),
        &plot::svg(&labels, &[Curve { name: String::new(), points }]),
    )?;
    Ok(mean)
}

fn write(args: &PrioEvaluationArgs, file: &str, text: &str) -> Result<(), String> {
    let path = args.out.join(file);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Simulates all cells, with all processors. What is random depends on the cell and the sample only.
fn evaluate(args: &PrioEvaluationArgs, name: &str, dag: &Dag, prio: &[u32], q: usize) -> Vec<Cell> {
    let grid: Vec<(i32, i32)> =
        args.bit.iter().flat_map(|bit| args.bs.iter().map(move |bs| (*bit, *bs))).collect();
    let halves: Vec<(usize, bool)> = (0..grid.len()).flat_map(|cell| [(cell, true), (cell, false)]).collect();
    let samples: Vec<Vec<Metrics>> = parallel::map(name, &halves, |task, (cell, is_prio)| {
        let (bit, bs) = grid[*cell];
        let choice = if *is_prio { Choice::Order(prio.to_vec()) } else { Choice::Fifo };
        let mut simulated = Grid::new(dag, choice, 10f64.powi(bit), 2f64.powi(bs));
        let seed = |sample: u64| args.seed ^ ((task as u64) << 40) ^ (sample << 20);
        (0..args.p).map(|sample| simulated.sample(q, seed(sample.into()))).collect()
    });
    let ratio = |both: &[Vec<Metrics>], of: fn(&Metrics) -> f64| {
        let values = |samples: &[Metrics]| samples.iter().map(of).collect::<Vec<f64>>();
        ratio_interval(&values(&both[0]), &values(&both[1]))
    };
    let cell = |((bit, bs), both): (&(i32, i32), &[Vec<Metrics>])| {
        let ratios = [ratio(both, |m| m.time), ratio(both, |m| m.stalling), ratio(both, |m| m.utilisation)];
        Cell { bit: *bit, bs: *bs, ratios }
    };
    grid.iter().zip(samples.chunks(2)).map(cell).collect()
}

fn write_table(args: &PrioEvaluationArgs, name: &str, cells: &[Cell]) -> Result<(), String> {
    let mut out = String::from("interarrival,size,metric,mean,median,low,high\n");
    for cell in cells {
        for ((metric, _), ratio) in METRICS.iter().zip(cell.ratios) {
            let _ = write!(out, "{},{},{metric}", cell.interarrival(), cell.size());
            let _ = match ratio {
                Some(r) => writeln!(out, ",{:.5},{:.5},{:.5},{:.5}", r.mean, r.median, r.low, r.high),
                None => writeln!(out, ",,,,"),
            };
        }
    }
    write(args, &format!("{name}.csv"), &out)
}

/// One of Figures 6 to 9: a curve for each mean time between batches.
fn draw_ratios(args: &PrioEvaluationArgs, name: &str, metric: usize, cells: &[Cell]) -> Result<(), String> {
    let (file, what) = METRICS[metric];
    let curve = |bit: &i32| {
        let own = cells.iter().filter(|c| c.bit == *bit);
        let points = own.filter_map(|c| Some((f64::from(c.bs), c.ratios[metric]?.median))).collect();
        Curve { name: format!("10^{bit}"), points }
    };
    let curves: Vec<Curve> = args.bit.iter().map(curve).filter(|c| !c.points.is_empty()).collect();
    let title = format!("{name}: {what}, PRIO / FIFO, by the mean time between batches");
    let labels = Labels {
        title: &title,
        x: "mean size of a batch, as a power of 2",
        y: "ratio",
        even: 1.0,
        ..Labels::default()
    };
    write(args, &format!("{name}-{file}.svg"), &plot::svg(&labels, &curves))
}
