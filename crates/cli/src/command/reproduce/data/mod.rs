//! Data-aware execution on real hosts: agents with files of their own and limited links between them, beside what the
//! simulator predicts for the same workflow.
//!
//! - [`variant`] says what is compared, [`work`] what is executed.
//! - [`trial`] executes it once, on a cluster of its own; [`least`] says what its placement would have had to move.
//! - [`predict`] executes it in virtual time; [`report`] puts both beside each other.

mod least;
mod predict;
mod report;
mod trial;
mod variant;
mod work;

use crate::arguments::{DataArgs, DataExperiment};
use crate::command::{EXIT_INTERRUPTED, Outcome, print};
use catena_testbed::Net;
use report::Measured;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trial::Trial;
use variant::Variant;
use work::Work;

/// Whether somebody wants everything to end. What was started ends with the values that stand for it.
#[derive(Clone, Default)]
struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    fn listen() -> Result<Self, String> {
        let interrupt = Self::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, interrupt.0.clone()).map_err(|e| e.to_string())?;
        }
        Ok(interrupt)
    }

    fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), String> {
        if self.is_wanted() {
            return Err("it was interrupted; everything that was started is ended".to_owned());
        }
        Ok(())
    }
}

pub(super) fn reproduce(args: &DataArgs) -> Outcome {
    let work = Work::read(args)?;
    let experiments = args.experiment.iter().map(|e| Ok((*e, variant::variants(*e, args)?)));
    let experiments = experiments.collect::<Result<Vec<_>, String>>()?;
    if !args.simulate {
        Net::is_possible().map_err(|why| {
            format!("{why}: every agent gets a host of its own here, which takes root and iproute2 on Linux; --simulate does without")
        })?;
    }
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let interrupt = Interrupt::listen()?;
    let measured = match measure(args, &work, experiments, &interrupt) {
        // Servers that end at the same time may be what was complained about.
        Err(message) if interrupt.is_wanted() => {
            eprintln!("{message}");
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        measured => measured?,
    };
    report::write(args, &work, &measured)?;
    print(&if args.json {
        report::json(args, &work, &measured)
    } else {
        report::text(args, &work, &measured)
    });
    Ok(ExitCode::SUCCESS)
}

/// Executes everything, in virtual time and live.
fn measure(
    args: &DataArgs,
    work: &Work,
    experiments: Vec<(DataExperiment, Vec<Variant>)>,
    interrupt: &Interrupt,
) -> Result<Vec<Measured>, String> {
    let mut measured = Vec::new();
    for (experiment, variants) in experiments {
        let predicted = variants.iter().map(|v| predict::predict(work, v, args));
        let predicted = predicted.collect::<Result<Vec<_>, String>>()?;
        let trials = if args.simulate {
            Vec::new()
        } else {
            try_all(args, work, experiment.name(), &variants, interrupt)?
        };
        measured.push(Measured::new(experiment, variants, predicted, trials));
    }
    Ok(measured)
}

/// Executes each variant as often as asked for. They take turns, so that none has a better hour than the others.
fn try_all(
    args: &DataArgs,
    work: &Work,
    experiment: &str,
    variants: &[Variant],
    interrupt: &Interrupt,
) -> Result<Vec<Vec<Trial>>, String> {
    let mut trials: Vec<Vec<Trial>> = variants.iter().map(|_| Vec::new()).collect();
    for n in 1..=args.repeat {
        for (variant, trials) in variants.iter().zip(&mut trials) {
            let title = format!("{experiment}, {}, {n} of {}", variant.name, args.repeat);
            eprintln!("{title}: starting {} agents …", variant.agents);
            let trial =
                trial::run(args, work, variant, &title, interrupt).map_err(|e| format!("{title}: {e}"))?;
            eprintln!("{title}: {}", report::one(&trial));
            trials.push(trial);
        }
    }
    Ok(trials)
}
