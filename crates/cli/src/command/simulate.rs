//! `catena simulate`

use super::{EXIT_USAGE, Outcome, print};
use crate::arguments::{ClusterModel, SimulateArgs};
use crate::jobs::{is_dagman, read_dagman, read_trace};
use crate::parallel;
use crate::time::duration;
use catena_model::Bytes;
use catena_model::dagman::DagFile;
use catena_model::import::{Trace, TraceJob};
use catena_simulate::{Cluster, PolicyName, Workload, lower_bound, simulate as execute};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// One simulation.
#[derive(Serialize)]
struct Figure {
    workflow: String,
    nodes: usize,
    policy: &'static str,
    seed: u64,
    makespan: f64,
    bytes_moved: u64,
    utilisation: f64,
    lower_bound: f64,
}

pub(crate) fn simulate(args: &SimulateArgs) -> Outcome {
    let mut workloads = Vec::new();
    for path in &args.workflows {
        match read(path, args.runtime) {
            Ok(workload) => workloads.push(workload),
            Err(Failure::Shown(code)) => return Ok(code),
            Err(Failure::Message(message)) => return Err(message),
        }
    }
    let mut cells = Vec::new();
    for (w, _) in workloads.iter().enumerate() {
        for nodes in &args.nodes {
            for policy in &args.policy {
                cells.extend((1..=args.seeds).map(|seed| (w, *nodes, *policy, seed)));
            }
        }
    }
    let figures: Result<Vec<Figure>, String> =
        parallel::map("simulating", &cells, |_, (w, nodes, policy, seed)| {
            let cluster = match args.cluster {
                ClusterModel::Adage => Cluster::adage(*nodes),
                ClusterModel::AdageLocal => Cluster::adage_local(*nodes),
            };
            figure(&workloads[*w], &cluster, *policy, *seed)
        })
        .into_iter()
        .collect();
    let figures = figures?;
    if args.json {
        print(&format!("{:#}\n", serde_json::json!({ "results": figures })));
    } else if args.csv {
        print(&csv(&figures));
    } else {
        print(&table(&figures));
    }
    Ok(ExitCode::SUCCESS)
}

fn figure(workload: &Workload, cluster: &Cluster, policy: PolicyName, seed: u64) -> Result<Figure, String> {
    let mut strategy = policy.strategy(workload, cluster, seed);
    let outcome = execute(workload, cluster, &mut *strategy)
        .map_err(|e| format!("{}, {policy}: {e}", workload.name))?;
    Ok(Figure {
        workflow: workload.name.clone(),
        nodes: cluster.nodes,
        policy: policy.name(),
        seed,
        makespan: outcome.makespan,
        bytes_moved: outcome.bytes_moved,
        utilisation: outcome.utilisation(cluster.nodes),
        lower_bound: lower_bound(workload, cluster),
    })
}

enum Failure {
    Message(String),
    /// What is wrong was said already.
    Shown(ExitCode),
}

fn read(path: &Path, runtime: f64) -> Result<Workload, Failure> {
    let trace = if is_dagman(path) {
        trace_of_dag(&read_dagman(path).map_err(Failure::Shown)?.dag, runtime)
    } else {
        let none = || format!("{} is none of DAX, WfFormat, Pegasus 5 YAML and DAG files", path.display());
        read_trace(path).ok_or_else(|| Failure::Message(none()))?.map_err(|e| {
            eprintln!("error: {e}");
            Failure::Shown(ExitCode::from(EXIT_USAGE))
        })?
    };
    let mut workload = Workload::new(&trace, |seconds| seconds)
        .map_err(|e| Failure::Message(format!("{}: {e}", path.display())))?;
    workload.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(workload)
}

/// A DAG file says nothing about how long its jobs take.
fn trace_of_dag(dag: &DagFile, runtime: f64) -> Trace {
    let job = |n: &catena_model::dagman::DagNode| TraceJob {
        id: n.name.clone(),
        program: n.name.clone(),
        runtime,
        cores: 1.0,
        ..TraceJob::default()
    };
    Trace {
        jobs: dag.nodes.iter().map(job).collect(),
        arcs: dag.arcs.iter().map(|a| (a.parent, a.child)).collect(),
        ..Trace::default()
    }
}

fn csv(figures: &[Figure]) -> String {
    let mut out = "workflow,nodes,policy,seed,makespan,bytes_moved,utilisation,lower_bound\n".to_owned();
    for f in figures {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            f.workflow, f.nodes, f.policy, f.seed, f.makespan, f.bytes_moved, f.utilisation, f.lower_bound
        );
    }
    out
}

fn table(figures: &[Figure]) -> String {
    let mut out = format!(
        "{:<24} {:>6}  {:<10} {:>14} {:>8} {:>6} {:>12}\n",
        "workflow", "nodes", "policy", "makespan", "× bound", "busy", "moved"
    );
    for f in figures {
        let _ = writeln!(
            out,
            "{:<24} {:>6}  {:<10} {:>14} {:>8.3} {:>5.0}% {:>12}",
            f.workflow,
            f.nodes,
            f.policy,
            duration(f.makespan * 1e3),
            f.makespan / f.lower_bound.max(1e-9),
            f.utilisation * 100.0,
            Bytes(f.bytes_moved).to_string()
        );
    }
    out
}
