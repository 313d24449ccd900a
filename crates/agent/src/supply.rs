//! Brings what chains read to an agent that has files of its own, before it is their turn.

use crate::agent::Job;
use catena_data::{Depot, FaultKind, Pin};
use catena_model::chain::{AgentEvent, Argument, RunId, Supply, Unsupplied};
use catena_model::content::ContentId;
use catena_model::{Direction, Name};
use std::collections::BTreeSet;
use std::time::Instant;

/// What a chain reads, here. It stays as long as this does.
#[derive(Default)]
pub(crate) struct Stock {
    pub(crate) supplies: Vec<Supply>,
    /// The bytes that came from others, and how long that took, in milliseconds.
    pub(crate) moved: (u64, f64),
    pins: Vec<Pin>,
}

/// Brings everything that a chain reads.
pub(crate) fn bring(
    depot: &Depot,
    job: &Job,
    report: &(dyn Fn(AgentEvent) + Send + Sync),
) -> Result<Stock, Unsupplied> {
    let mut stock = Stock { supplies: job.supplies.clone(), ..Stock::default() };
    let (mut holds, mut gone, mut bytes) = (Vec::new(), Vec::new(), 0);
    let clock = Instant::now();
    let mut result = Ok(());
    for supply in &job.supplies {
        match depot.bring(supply) {
            Ok(brought) => {
                for fault in brought.faults.iter().filter(|f| f.kind == FaultKind::Lied) {
                    let message = format!("{fault}; it was fetched from elsewhere");
                    report(AgentEvent::Notice { run: job.attempt.chain.run, message });
                }
                stock.pins.push(brought.pin);
                holds.extend(brought.new.into_iter().map(|id| (id, false)));
                gone.extend(brought.gone);
                bytes += brought.bytes;
            }
            Err(why) => {
                gone.extend(why.gone.iter().cloned());
                result = Err(why);
                break;
            }
        }
    }
    if result.is_ok() {
        result = download(depot, job, &mut stock);
    }
    let moved = (bytes, clock.elapsed().as_secs_f64() * 1e3);
    stock.moved = moved;
    tell(depot, holds, gone, moved, report);
    result.map(|()| stock)
}

/// Files from the web are taken as they are now.
fn download(depot: &Depot, job: &Job, stock: &mut Stock) -> Result<(), Unsupplied> {
    let arguments = job.chain.executables.iter().flat_map(|t| &t.arguments);
    let is_file = |a: &&Argument| a.direction == Direction::Input && a.data_type == "file";
    for argument in arguments.filter(is_file) {
        let url = &argument.variable.value;
        let is_web = url.starts_with("http://") || url.starts_with("https://");
        if !is_web || stock.supplies.iter().any(|s| s.name == *url) {
            continue;
        }
        let (artifact, pin) = depot.download(url).map_err(|e| Unsupplied {
            message: format!("its input {} cannot be brought here: {e}", argument.id),
            ..Unsupplied::default()
        })?;
        stock.pins.push(pin);
        stock.supplies.push(Supply { name: url.clone(), artifact, parts: Vec::new(), sources: Vec::new() });
    }
    Ok(())
}

/// Says what is here now and what is not any more. What the disk has damaged is also for whoever looks after it.
pub(crate) fn tell(
    depot: &Depot,
    holds: Vec<(ContentId, bool)>,
    gone: Vec<(Name, ContentId)>,
    moved: (u64, f64),
    report: &(dyn Fn(AgentEvent) + Send + Sync),
) {
    for damaged in depot.holdings().take_corruptions() {
        eprintln!("{damaged}");
    }
    let lost = depot.holdings().take_removed();
    if !(holds.is_empty() && lost.is_empty() && gone.is_empty() && moved.0 == 0) {
        report(AgentEvent::Holdings { holds, lost, gone, moved, anew: false });
    }
}

/// So many things are named at a time: a message must not be too long.
const INVENTORY: usize = 4096;

/// Says everything that is here.
pub(crate) fn inventory(depot: &Depot, report: &(dyn Fn(AgentEvent) + Send + Sync)) {
    let contents = depot.holdings().contents();
    let mut anew = true;
    let mut rest = &contents[..];
    while anew || !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(INVENTORY));
        let (holds, lost, gone, moved) = (now.to_vec(), Vec::new(), Vec::new(), (0, 0.0));
        report(AgentEvent::Holdings { holds, lost, gone, moved, anew });
        (anew, rest) = (false, later);
    }
}

/// Gets something and keeps it for a run.
pub(crate) fn keep(depot: &Depot, run: RunId, supply: &Supply, report: &(dyn Fn(AgentEvent) + Send + Sync)) {
    let clock = Instant::now();
    let Ok(brought) = depot.bring(supply) else { return };
    let kept = depot.holdings().keep(&kept_name(run, &supply.name), &supply.artifact);
    let holds = vec![(supply.artifact.id(), kept.is_ok())];
    tell(depot, holds, brought.gone, (brought.bytes, clock.elapsed().as_secs_f64() * 1e3), report);
}

/// What is kept for runs, and certain files of runs, may go.
pub(crate) fn release(
    depot: &Depot,
    runs: &[RunId],
    files: &[(RunId, Name)],
    report: &(dyn Fn(AgentEvent) + Send + Sync),
) {
    let holdings = depot.holdings();
    // What cannot be released is released with the next message that asks for it.
    for (run, name) in files {
        let _ = holdings.release(&kept_name(*run, name));
    }
    if !runs.is_empty() {
        for name in holdings.kept().iter().filter(|name| run_of(name).is_some_and(|r| runs.contains(&r))) {
            let _ = holdings.release(name);
        }
    }
    tell(depot, Vec::new(), Vec::new(), (0, 0.0), report);
}

/// The runs for which something is kept.
pub(crate) fn kept_runs(depot: &Depot) -> Vec<RunId> {
    let runs: BTreeSet<RunId> = depot.holdings().kept().iter().filter_map(|name| run_of(name)).collect();
    runs.into_iter().collect()
}

/// The name under which something is kept for a run.
pub(crate) fn kept_name(run: RunId, name: &str) -> String {
    format!("{run}/{name}")
}

fn run_of(kept: &str) -> Option<RunId> {
    kept.split_once('/')?.0.parse().ok().map(RunId)
}
