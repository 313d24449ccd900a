//! The evaluation of ADAGE in virtual time: execution times on up to 1,024 nodes (Figure 3) and of up to 10,000 tasks
//! (Figure 4), throughput (Figure 5) and completed tasks over time (Figure 6), beside them HEFT, Catena and what nobody
//! can be faster than.

use crate::arguments::AdageArgs;
use crate::command::simulate::against_nodes;
use crate::command::{Outcome, print};
use crate::jobs::read_trace;
use crate::parallel;
use crate::render::plot::{self, Curve, Labels, Scale};
use catena_model::import::Trace;
use catena_simulate::generate::Kind;
use catena_simulate::{Cluster, Execution, Fate, Figure, PolicyName, Workload, seconds};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// The workflows of the paper, their files, and how large they are there.
const WORKFLOWS: [(Kind, &str, usize); 5] = [
    (Kind::CyberShake, "CyberShake_1000.xml", 1000),
    (Kind::Epigenomics, "Epigenomics_997.xml", 997),
    (Kind::Inspiral, "Inspiral_1000.xml", 1000),
    (Kind::Montage, "Montage_1000.xml", 1000),
    (Kind::Sipht, "Sipht_1000.xml", 1000),
];

const POLICIES: [PolicyName; 5] =
    [PolicyName::Adage, PolicyName::Matrix, PolicyName::Albatross, PolicyName::Heft, PolicyName::Catena];

/// What is compared with Catena in the closing table: the name, and the figure.
const PEERS: [&str; 4] = ["adage", "matrix", "albatross", "heft"];

pub(super) fn reproduce(args: &AdageArgs) -> Outcome {
    std::fs::create_dir_all(&args.out).map_err(|e| format!("{}: {e}", args.out.display()))?;
    let workloads = WORKFLOWS.iter().map(|w| workload(w.0, w.1, w.2, args.dax.as_deref()));
    let workloads = workloads.collect::<Result<Vec<Workload>, String>>()?;
    let mut cells = Vec::new();
    for workload in &workloads {
        for nodes in &args.nodes {
            cells.extend(POLICIES.iter().map(|policy| (workload, *nodes, *policy)));
        }
    }
    let figures = grid("execution times", &cells, args.seeds)?;
    let bound =
        |f: &Figure| Figure { policy: "lower bound".to_owned(), makespan: f.lower_bound, ..f.clone() };
    let bounds: Vec<Figure> = figures.iter().filter(|f| f.policy == "heft").map(bound).collect();
    for workload in &workloads {
        let own = |f: &&Figure| f.workflow == workload.name;
        let shown: Vec<&Figure> = figures.iter().chain(&bounds).filter(own).collect();
        let name = workload.name.to_lowercase();
        write(
            args,
            &format!("adage-3-{name}.svg"),
            &against_nodes(&shown, ("makespan", "seconds"), |f| f.makespan),
        )?;
        let throughput = |f: &Figure| f.tasks as f64 / f.makespan.max(1e-9);
        let unit = ("throughput", "tasks per second");
        write(args, &format!("adage-5-{name}.svg"), &against_nodes(&shown, unit, throughput))?;
    }
    write(args, "adage-3.csv", &table(&figures))?;
    let scaling = scaling(args)?;
    write(args, "adage-4.csv", &table(&scaling))?;
    completed(args, &workloads)?;
    let ratios = ratios(&figures, args);
    if args.json {
        let outcome = json!({ "results": figures, "scaling": scaling, "ratios": ratios, "out": args.out });
        print(&format!("{outcome:#}\n"));
    } else {
        print(&show(&ratios, &workloads));
        print(&format!("tables and pictures are in {}\n", args.out.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A workflow of the paper: its file, or one of the same shape.
fn workload(kind: Kind, file: &str, jobs: usize, dax: Option<&Path>) -> Result<Workload, String> {
    let trace = match dax {
        Some(directory) => {
            let path = directory.join(file);
            let none = || format!("{} cannot be read", path.display());
            read_trace(&path).ok_or_else(none)??
        }
        None => kind.trace(jobs, 1),
    };
    let name = kind.name().to_owned();
    Workload::new(&Trace { name, ..trace }, true).map_err(|e| e.to_string())
}

/// Simulates all cells with all seeds, and takes the mean.
fn grid(what: &str, cells: &[(&Workload, u32, PolicyName)], seeds: u64) -> Result<Vec<Figure>, String> {
    let figures = parallel::map(what, cells, |_, (workload, nodes, policy)| -> Result<Figure, String> {
        let cluster = Cluster::adage().with_nodes(*nodes);
        let is_random = matches!(policy, PolicyName::Adage | PolicyName::Matrix);
        let seeds = if is_random { seeds } else { 1 };
        let all = (1..=seeds).map(|seed| Ok(Figure::of(workload, &cluster, *policy, seed)?.0));
        let all = all.collect::<Result<Vec<Figure>, String>>()?;
        let mean = all.iter().map(|f| f.makespan).sum::<f64>() / seeds as f64;
        let first = all.into_iter().next().ok_or("there must be a seed")?;
        Ok(Figure { makespan: mean, ..first })
    });
    figures.into_iter().collect()
}

/// Figure 4: two workflows of growing size on as many nodes as there are.
fn scaling(args: &AdageArgs) -> Result<Vec<Figure>, String> {
    let nodes = args.nodes.iter().copied().max().unwrap_or(1024);
    let mut all = Vec::new();
    for kind in [Kind::Montage, Kind::CyberShake] {
        let sized = args.tasks.iter().map(|tasks| {
            let trace = kind.trace((*tasks).max(kind.least()), 1);
            let name = kind.name().to_owned();
            Workload::new(&Trace { name, ..trace }, true).map_err(|e| e.to_string())
        });
        let workloads = sized.collect::<Result<Vec<Workload>, String>>()?;
        let cells: Vec<_> =
            workloads.iter().flat_map(|w| POLICIES.iter().map(move |policy| (w, nodes, *policy))).collect();
        let figures = grid(&format!("{} of growing size", kind.name()), &cells, args.seeds)?;
        let curve = |policy: &PolicyName| {
            let own = figures.iter().filter(|f| f.policy == policy.to_string());
            Curve { name: policy.to_string(), points: own.map(|f| (f.tasks as f64, f.makespan)).collect() }
        };
        let curves: Vec<Curve> = POLICIES.iter().map(curve).collect();
        let title = format!("{}: makespan on {nodes} nodes", kind.name());
        let scales = (Scale::Linear, Scale::Log);
        let labels = Labels { title: &title, x: "tasks", y: "seconds", scales, ..Labels::default() };
        write(args, &format!("adage-4-{}.svg", kind.name()), &plot::svg(&labels, &curves))?;
        all.extend(figures);
    }
    Ok(all)
}

/// Figure 6: how many tasks have ended when.
fn completed(args: &AdageArgs, workloads: &[Workload]) -> Result<(), String> {
    let nodes = args.nodes.iter().copied().max().unwrap_or(1024);
    let cluster = Cluster::adage().with_nodes(nodes);
    for workload in workloads {
        let mut curves = Vec::new();
        for policy in POLICIES {
            let (_, outcome) = Figure::of(workload, &cluster, policy, 1)?;
            let ended = |e: &Execution| (e.fate == Fate::Succeeded).then(|| seconds(e.end));
            let mut ends: Vec<f64> = outcome.executions.iter().filter_map(ended).collect();
            ends.sort_by(f64::total_cmp);
            let points = ends.iter().zip(1..).map(|(t, n)| (*t, f64::from(n))).collect();
            curves.push(Curve { name: policy.to_string(), points });
        }
        let title = format!("{}: completed tasks on {nodes} nodes", workload.name);
        let labels = Labels { title: &title, x: "seconds", y: "tasks", ..Labels::default() };
        write(args, &format!("adage-6-{}.svg", workload.name.to_lowercase()), &plot::svg(&labels, &curves))?;
    }
    Ok(())
}

/// Makespans of Catena as parts of those of others.
#[derive(serde::Serialize)]
struct Ratio {
    peer: &'static str,
    workflow: String,
    /// Geometric mean over all numbers of nodes.
    mean: f64,
    worst: f64,
}

fn ratios(figures: &[Figure], args: &AdageArgs) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    let mut workflows: Vec<&str> = figures.iter().map(|f| f.workflow.as_str()).collect();
    workflows.dedup();
    for peer in PEERS {
        for workflow in &workflows {
            let of = |policy: &str, nodes: u32| {
                let same = |f: &&Figure| f.workflow == *workflow && f.policy == policy && f.nodes == nodes;
                figures.iter().find(same).map(|f| f.makespan)
            };
            let each = args.nodes.iter().filter_map(|n| Some(of("catena", *n)? / of(peer, *n)?.max(1e-9)));
            let each: Vec<f64> = each.collect();
            let mean = (each.iter().map(|r| r.ln()).sum::<f64>() / each.len().max(1) as f64).exp();
            let worst = each.iter().copied().fold(0.0, f64::max);
            ratios.push(Ratio { peer, workflow: (*workflow).to_owned(), mean, worst });
        }
    }
    ratios
}

fn show(ratios: &[Ratio], workloads: &[Workload]) -> String {
    let mut out = format!("{:<12}", "catena /");
    for peer in PEERS {
        let _ = write!(out, " {peer:>18}");
    }
    out.push_str("\n            ");
    out.push_str(&format!(" {:>18}", "mean (worst)").repeat(PEERS.len()));
    out.push('\n');
    for workload in workloads {
        let _ = write!(out, "{:<12}", workload.name);
        for peer in PEERS {
            let own = ratios.iter().find(|r| r.peer == peer && r.workflow == workload.name);
            let text = own.map_or(String::new(), |r| format!("{:.3} ({:.3})", r.mean, r.worst));
            let _ = write!(out, " {text:>18}");
        }
        out.push('\n');
    }
    out
}

fn table(figures: &[Figure]) -> String {
    let mut out = "workflow,tasks,nodes,policy,makespan,lower_bound\n".to_owned();
    for f in figures {
        let (name, tasks, nodes, policy) = (&f.workflow, f.tasks, f.nodes, &f.policy);
        let _ = writeln!(out, "{name},{tasks},{nodes},{policy},{:.3},{:.3}", f.makespan, f.lower_bound);
    }
    out
}

fn write(args: &AdageArgs, file: &str, text: &str) -> Result<(), String> {
    let path = args.out.join(file);
    std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
}
