//! Jobs and who waits for whom, whatever language they are written in.

use crate::arguments::SourceArgs;
use crate::command::{EXIT_USAGE, load_valid};
use catena_model::dagman::{LoadedDag, NodeKind, load_dag};
use catena_model::import::{Trace, TraceJob, read_recorded};
use catena_model::{Diagnostic, Diagnostics, Name, Severity, Sources, read_text};
use catena_plan::{Cycle, Dag, StepGraph, dag_of};
use std::path::Path;
use std::process::ExitCode;

/// The jobs of a file.
pub(crate) struct Jobs {
    pub(crate) names: Vec<Name>,
    pub(crate) dag: Dag,
    /// The DAGMan file they come from, if it is one.
    pub(crate) dagman: Option<LoadedDag>,
}

/// Whether a path is that of a DAGMan file.
pub(crate) fn is_dagman(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("dag"))
}

/// Reads the jobs of a file; its problems go to standard error.
pub(crate) fn read_jobs(source: &SourceArgs) -> Result<Jobs, ExitCode> {
    let path = &source.workflow;
    if is_dagman(path) {
        let (loaded, dag) = read_with_dag(path)?;
        return jobs_of_dag(loaded, dag);
    }
    if let Some(trace) = read_trace(path) {
        let jobs = |trace: Trace| connect(trace.jobs.into_iter().map(|j| j.id).collect(), &trace.arcs);
        return trace.and_then(jobs).map_err(|e| usage(&e));
    }
    let loaded = load_valid(source)?;
    let workflow = loaded.expanded.as_ref().ok_or_else(|| usage("only workflows have an order"))?;
    let graph = StepGraph::new(workflow, &loaded.library);
    let arcs: Vec<(u32, u32)> = graph.edges.iter().map(|e| (e.from as u32, e.to as u32)).collect();
    connect(graph.nodes.into_iter().map(|n| n.name).collect(), &arcs).map_err(|e| usage(&e))
}

/// Reads a workflow that another system has recorded: DAX, WfFormat or Pegasus 5. `None` if it is something else.
pub(crate) fn read_trace(path: &Path) -> Option<Result<Trace, String>> {
    read_recorded(path, &read_text(path).ok()?)
}

/// Reads any workflow as if it was recorded. Of those that were not, only the jobs and who waits for whom are known, and
/// that is what is told with it.
pub(crate) fn trace_of(source: &SourceArgs) -> Result<(Trace, bool), ExitCode> {
    if let Some(trace) = read_trace(&source.workflow) {
        return trace.map(|trace| (trace, true)).map_err(|e| usage(&e));
    }
    let jobs = read_jobs(source)?;
    let job = |id: Name| TraceJob { program: id.clone(), id, cores: 1.0, ..TraceJob::default() };
    let name = source.workflow.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let arcs = jobs.dag.arcs().collect();
    let trace = Trace { name, jobs: jobs.names.into_iter().map(job).collect(), arcs, ..Trace::default() };
    Ok((trace, false))
}

fn usage(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(EXIT_USAGE)
}

fn connect(names: Vec<Name>, arcs: &[(u32, u32)]) -> Result<Jobs, String> {
    match Dag::new(names.len(), arcs) {
        Ok(dag) => Ok(Jobs { names, dag, dagman: None }),
        Err(Cycle(cycle)) => {
            let names: Vec<&str> = cycle.iter().take(20).map(|n| names[*n as usize].as_str()).collect();
            Err(format!("these wait for each other in a circle: {}", names.join(" → ")))
        }
    }
}

/// Reads a DAG file; its problems go to standard error.
pub(crate) fn read_dagman(path: &Path) -> Result<LoadedDag, ExitCode> {
    read_with_dag(path).map(|(loaded, _)| loaded)
}

fn read_with_dag(path: &Path) -> Result<(LoadedDag, Dag), ExitCode> {
    let mut loaded = load_dag(path);
    let dag = dag_of(&mut loaded);
    show(&loaded.diags, &loaded.sources);
    dag.filter(|_| !loaded.diags.has_errors()).map(|dag| (loaded, dag)).ok_or(ExitCode::from(EXIT_USAGE))
}

/// Only jobs and sub-DAGs have an order; the other nodes have their place at the beginning or the end.
fn jobs_of_dag(loaded: LoadedDag, dag: Dag) -> Result<Jobs, ExitCode> {
    let mut numbers = vec![u32::MAX; loaded.dag.nodes.len()];
    let mut names = Vec::new();
    for (place, node) in numbers.iter_mut().zip(&loaded.dag.nodes) {
        if matches!(node.kind, NodeKind::Job | NodeKind::SubDag) {
            *place = names.len() as u32;
            names.push(node.name.clone());
        }
    }
    if names.len() == loaded.dag.nodes.len() {
        return Ok(Jobs { names, dag, dagman: Some(loaded) });
    }
    let arcs = loaded.dag.arcs.iter().map(|a| (numbers[a.parent as usize], numbers[a.child as usize]));
    let jobs = connect(names, &arcs.collect::<Vec<_>>()).map_err(|e| usage(&e))?;
    Ok(Jobs { dagman: Some(loaded), ..jobs })
}

/// So many problems are shown. A file with more is probably something else.
const MAX_SHOWN: usize = 100;

/// Prints problems to standard error, errors first if there are many.
pub(crate) fn show(diags: &Diagnostics, sources: &Sources) {
    let total = diags.iter().count();
    let (errors, warnings): (Vec<_>, Vec<_>) = diags.iter().partition(|d| d.severity == Severity::Error);
    let by_severity = || errors.iter().chain(&warnings).copied();
    let shown: Vec<&Diagnostic> =
        if total > MAX_SHOWN { by_severity().take(MAX_SHOWN).collect() } else { diags.iter().collect() };
    for d in shown {
        eprintln!("{}", d.render(sources));
    }
    if total > MAX_SHOWN {
        eprintln!("and {} problems more; --json shows all of them", total - MAX_SHOWN);
    }
}
