//! `catena run x.dag`

use super::run::{Work, absolute, start};
use super::{EXIT_USAGE, Outcome};
use crate::arguments::{Arguments, DagArgs, RunArgs};
use crate::jobs::show;
use crate::project::find_config;
use catena_model::dagman::{DagFile, NodeKind, Submit};
use catena_plan::DagOptions;
use catena_server::{Definition, Rescue, open_dag, retire_rescues};
use std::process::ExitCode;

/// Runs a DAG file, from its newest rescue file unless told otherwise.
pub(super) fn run_dag(args: &RunArgs, arguments: &Arguments) -> Outcome {
    let path = absolute(&args.source.workflow)?;
    let rescue = match &args.dag.rescue {
        Some(file) => Rescue::File(absolute(file)?),
        None if args.new => Rescue::Nothing,
        None => Rescue::Newest,
    };
    let mut dag = open_dag(&path, &rescue);
    show(&dag.loaded.diags, &dag.loaded.sources);
    if dag.loaded.diags.has_errors() {
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    dag = dag.usable()?;
    warn_about(&dag.loaded.dag)?;
    if args.new && args.dry_run.is_none() {
        retire_rescues(&path).map_err(|e| format!("a rescue file cannot be renamed: {e}"))?;
    }
    let DagArgs { max_jobs, max_pre, max_post, .. } = args.dag;
    let definition = Definition {
        workflow: path.clone(),
        out: absolute(&args.out)?,
        order: args.order.name().to_owned(),
        ..Definition::default()
    };
    dag.options = DagOptions {
        max_jobs: max_jobs.unwrap_or(dag.options.max_jobs),
        max_pre: max_pre.unwrap_or(dag.options.max_pre),
        max_post: max_post.unwrap_or(dag.options.max_post),
        order: definition.order(),
        ..dag.options
    };
    if let Some(rescue) = &dag.rescue {
        eprintln!("going on from {}", rescue.display());
    }
    start(args, arguments, Work::of_dag(dag, definition), find_config(&path)?)
}

/// What is better said before anything runs: descriptions that are not there, and what is not done as HTCondor does it.
fn warn_about(dag: &DagFile) -> Result<(), String> {
    let mut waits = vec![false; dag.nodes.len()];
    for arc in &dag.arcs {
        waits[arc.child as usize] = true;
    }
    let mut missing = Vec::new();
    for (node, waits) in dag.nodes.iter().zip(waits) {
        let Submit::Named(name) = &node.submit else { continue };
        let path = node.directory.join(name.as_str());
        if node.noop || node.done || dag.descriptions.contains_key(name) || path.is_file() {
            continue;
        }
        // A file that is not there yet can still be made by a script or by a node before.
        if waits || node.rules().pre.is_some() {
            eprintln!("warning: {} of node {} does not exist yet", path.display(), node.name);
        } else {
            missing.push(format!("{} of node {} does not exist", path.display(), node.name));
        }
    }
    if dag.nodes.iter().any(|n| n.kind == NodeKind::Provisioner) {
        eprintln!("warning: other nodes do not wait for what the PROVISIONER node provides");
    }
    if dag.nodes.iter().any(|n| n.rules().hold.is_some()) {
        eprintln!("warning: HOLD scripts never run, because no job is ever held");
    }
    if missing.is_empty() { Ok(()) } else { Err(missing.join("\nerror: ")) }
}
