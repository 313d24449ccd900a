//! Decentralised scheduling in virtual time: the evaluation of Fernández, Obrovac and Tedeschi (Figures 3 to 5), and what it
//! leaves open.
//!
//! - [`plan`] says what is simulated, [`trial`] simulates it once, [`group`] brings seeds together.
//! - [`live`] has real peers beside simulated ones.
//! - [`bound`] says what is promised; [`report`] has tables, [`picture`] curves.

mod bound;
mod group;
mod live;
mod picture;
mod plan;
mod report;
mod trial;

use crate::arguments::{SpaceArgs, SpaceExperiment};
use crate::command::{Outcome, print};
use crate::parallel;
use crate::time::duration;
use std::process::ExitCode;
use trial::{Row, Trial};

pub(super) fn reproduce(args: &SpaceArgs) -> Outcome {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let mut all = Vec::new();
    for experiment in &args.experiment {
        if *experiment == SpaceExperiment::Live {
            live::reproduce(args)?;
            continue;
        }
        let rows = simulate(*experiment, &plan::trials(*experiment, args))?;
        // Whoever is interrupted has what is done so far.
        write(args, &format!("space-{}.csv", experiment.name()), &report::csv(&rows))?;
        for (name, picture) in picture::pictures(*experiment, &rows) {
            write(args, &name, &picture)?;
        }
        if !args.json {
            print(&report::text(*experiment, &rows));
        }
        all.extend(rows);
    }
    if all.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let bounds = bound::bounds(&all);
    print(&if args.json { report::json(args, &all, &bounds) } else { report::closing(args, &bounds) });
    Ok(ExitCode::SUCCESS)
}

fn simulate(experiment: SpaceExperiment, trials: &[Trial]) -> Result<Vec<Row>, String> {
    if experiment != SpaceExperiment::Load {
        let rows = parallel::map(experiment.name(), trials, |_, trial| trial.run());
        return rows.into_iter().collect();
    }
    // Here it matters how long it takes: one after the other.
    let timed = |trial: &Trial| {
        let row = trial.run()?;
        eprintln!("{} in {}", trial.title(), duration(row.machine.wall * 1e3));
        Ok(row)
    };
    trials.iter().map(timed).collect()
}

fn write(args: &SpaceArgs, file: &str, text: &str) -> Result<(), String> {
    let path = args.out.join(file);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}
