//! `catena simulate`

mod charts;

use super::inspect::{find_run, open, wait};
use super::{EXIT_USAGE, Outcome, print};
use crate::arguments::{Arguments, SimulateArgs, SourceArgs};
use crate::jobs::trace_of;
use crate::parallel;
use crate::time::duration;
use catena_model::import::Trace;
use catena_model::{Bytes, read_text};
use catena_server::History;
use catena_simulate::{Cluster, Figure, Workload, generate, read_cluster};
pub(crate) use charts::against_nodes;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// How many nodes there are if nobody says so.
const NODES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

pub(crate) fn simulate(args: &SimulateArgs, arguments: &Arguments) -> Outcome {
    let usual = if args.calibrate.is_some() { "plain" } else { "adage" };
    let name = args.cluster.as_deref().unwrap_or(usual);
    let (cluster, is_known) = match Cluster::by_name(name) {
        Some(cluster) => (cluster, true),
        None => match read_cluster_file(Path::new(name)) {
            Ok(cluster) => (cluster, false),
            Err(code) => return Ok(code),
        },
    };
    let cluster = with_chance(cluster, args);
    let history = args.calibrate.map(|run| history(run, arguments)).transpose()?;
    let mut workloads = Vec::new();
    let traces = args.workflows.iter().map(|path| read(path, args, history.as_ref()));
    let run = history.as_ref().filter(|_| args.workflows.is_empty()).map(|h| Ok(h.trace()));
    for trace in traces.chain(run) {
        let trace = match trace {
            Ok(trace) => trace,
            Err(Failure::Shown(code)) => return Ok(code),
            Err(Failure::Message(message)) => return Err(message),
        };
        let workload = Workload::new(&trace, cluster.uniform).map_err(|e| format!("{}: {e}", trace.name))?;
        workloads.push(workload);
    }
    let clusters: Vec<Cluster> = match &args.nodes[..] {
        [] if is_known => NODES.iter().map(|n| cluster.clone().with_nodes(*n)).collect(),
        [] => vec![cluster],
        nodes => nodes.iter().map(|n| cluster.clone().with_nodes(*n)).collect(),
    };
    let mut cells = Vec::new();
    for workload in &workloads {
        for cluster in &clusters {
            for policy in &args.policy {
                cells.extend((1..=args.seeds).map(|seed| (workload, cluster, *policy, seed)));
            }
        }
    }
    let figures = parallel::map("simulating", &cells, |_, (workload, cluster, policy, seed)| {
        Figure::of(workload, cluster, *policy, *seed).map(|(figure, _)| figure)
    });
    let figures = figures.into_iter().collect::<Result<Vec<Figure>, String>>()?;
    if let Some(directory) = &args.svg {
        charts::draw(directory, &workloads, &clusters, &args.policy, &figures)?;
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!({ "results": figures })));
    } else if args.csv {
        print(&csv(&figures));
    } else {
        print(&table(&figures));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a run of this machine tells about its tasks.
fn history(run: i64, arguments: &Arguments) -> Result<History, String> {
    let (_, store) = open(arguments)?;
    let run = find_run(&store, Some(run))?;
    let history = wait(History::read(&store, run.id))?.map_err(|e| e.to_string())?;
    history.ok_or_else(|| format!("no task of run {} has ended, so nothing is known about durations", run.id))
}

enum Failure {
    Message(String),
    /// What is wrong was said already.
    Shown(ExitCode),
}

/// Reads a workflow, or generates one if its name says so.
fn read(path: &Path, args: &SimulateArgs, history: Option<&History>) -> Result<Trace, Failure> {
    if let Some((kind, jobs)) = path.to_str().and_then(|p| p.split_once(':')).filter(|_| !path.exists()) {
        let what = "a kind and a size are written as in montage:1000";
        let jobs = jobs.parse().map_err(|_| Failure::Message(format!("{}: {what}", path.display())))?;
        let trace = generate::by_name(kind, jobs, 1).map_err(Failure::Message)?;
        return Ok(Trace { name: path.display().to_string(), ..trace });
    }
    let source = SourceArgs {
        workflow: path.to_owned(),
        services: Vec::new(),
        macros: Vec::new(),
        input: Vec::new(),
        inputs: Vec::new(),
    };
    let (mut trace, is_recorded) = trace_of(&source).map_err(Failure::Shown)?;
    for job in &mut trace.jobs {
        let learned = history.and_then(|h| h.runtime(&job.program).or_else(|| h.runtime(&job.id)));
        match learned {
            Some(learned) => job.runtime = learned,
            None if !is_recorded => job.runtime = args.runtime,
            None => {}
        }
    }
    if let Some(name) = path.file_name() {
        trace.name = name.to_string_lossy().into_owned();
    } else if trace.name.is_empty() {
        trace.name = path.display().to_string();
    }
    Ok(trace)
}

fn read_cluster_file(path: &Path) -> Result<Cluster, ExitCode> {
    let fail = |message: String| {
        eprintln!("error: {message}");
        ExitCode::from(EXIT_USAGE)
    };
    if !path.exists() && path.extension().is_none() {
        let known = "there are plain, adage and adage-local; or name a file";
        return Err(fail(format!("there is no cluster `{}`; {known}", path.display())));
    }
    let text = read_text(path).map_err(fail)?;
    read_cluster(&text).map_err(|mistakes| {
        let place = |m: &String| format!("{}:{m}", path.display());
        fail(mistakes.iter().map(place).collect::<Vec<_>>().join("\nerror: "))
    })
}

/// What the command line says about chance comes before what a file says.
fn with_chance(mut cluster: Cluster, args: &SimulateArgs) -> Cluster {
    let chance = &mut cluster.chance;
    chance.spread = args.spread.unwrap_or(chance.spread);
    chance.stragglers = args.stragglers.unwrap_or(chance.stragglers);
    chance.factor = args.factor.unwrap_or(if chance.factor > 0.0 { chance.factor } else { 5.0 });
    cluster
}

fn csv(figures: &[Figure]) -> String {
    let mut out =
        "workflow,tasks,nodes,policy,seed,makespan,bytes_moved,utilisation,cost,wasted,lower_bound\n"
            .to_owned();
    for f in figures {
        let name = if f.workflow.contains([',', '"']) {
            format!("\"{}\"", f.workflow.replace('"', "\"\""))
        } else {
            f.workflow.clone()
        };
        let (tasks, nodes, policy, seed) = (f.tasks, f.nodes, &f.policy, f.seed);
        let _ = writeln!(
            out,
            "{name},{tasks},{nodes},{policy},{seed},{},{},{},{},{},{}",
            f.makespan, f.bytes_moved, f.utilisation, f.cost, f.wasted, f.lower_bound
        );
    }
    out
}

fn table(figures: &[Figure]) -> String {
    let has_cost = figures.iter().any(|f| f.cost > 0.0);
    let has_waste = figures.iter().any(|f| f.wasted > 0);
    let width = figures.iter().map(|f| f.policy.chars().count()).max().unwrap_or(0).max(6);
    let mut out = format!(
        "{:<24} {:>6}  {:<width$} {:>14} {:>8} {:>6} {:>12}",
        "workflow", "nodes", "policy", "makespan", "× bound", "busy", "moved"
    );
    out.push_str(if has_cost { "       cost" } else { "" });
    out.push_str(if has_waste { "  in vain" } else { "" });
    out.push('\n');
    for f in figures {
        let _ = write!(
            out,
            "{:<24} {:>6}  {:<width$} {:>14} {:>8.3} {:>5.0}% {:>12}",
            f.workflow,
            f.nodes,
            f.policy,
            duration(f.makespan * 1e3),
            f.makespan / f.lower_bound.max(1e-9),
            f.utilisation * 100.0,
            Bytes(f.bytes_moved).to_string()
        );
        if has_cost {
            let _ = write!(out, " {:>10.2}", f.cost);
        }
        if has_waste {
            let _ = write!(out, " {:>8}", f.wasted);
        }
        out.push('\n');
    }
    out
}
