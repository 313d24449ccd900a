//! `catena prio`

use super::{Outcome, print};
use crate::arguments::{OrderName, PrioArgs, PriorityMethodName};
use crate::jobs::{Jobs, read_jobs};
use crate::render::plot::{self, Curve, Labels};
use catena_model::dagman::{
    DagNode, LoadedDag, NodeKind, PriorityMethod, Submit, has_own_priority, prioritised_dag,
    prioritised_submit,
};
use catena_model::{Name, read_text};
use catena_plan::{auto_order, eligible_gain, fifo_order, prio_order};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn prio(args: &PrioArgs) -> Outcome {
    let jobs = match read_jobs(&args.source) {
        Ok(jobs) => jobs,
        Err(code) => return Ok(code),
    };
    let order = match args.order {
        OrderName::Prio => prio_order(&jobs.dag),
        OrderName::Fifo => fifo_order(&jobs.dag),
        OrderName::Auto => auto_order(&jobs.dag),
    };
    let total = jobs.names.len();
    let ranked = order.iter().enumerate().map(|(t, job)| (jobs.names[*job as usize].clone(), total - t));
    let priorities: Vec<(Name, usize)> = ranked.collect();
    if let Some(path) = &args.plot {
        write_plot(path, &jobs, &order)?;
    }
    if args.json {
        let names: Vec<&Name> = priorities.iter().map(|(name, _)| name).collect();
        let by_name: BTreeMap<&Name, usize> = priorities.iter().map(|(name, p)| (name, *p)).collect();
        let mut out = json!({ "order": names, "priority": by_name });
        if args.stats {
            out["stats"] = stats(&jobs, &order).to_json();
        }
        print(&format!("{out}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.stats {
        print(&stats(&jobs, &order).to_text());
    }
    let method = args.method.unwrap_or(PriorityMethodName::Priority);
    if args.in_place || args.out.is_some() {
        let loaded = jobs
            .dagman
            .as_ref()
            .ok_or("priorities can be written into DAGMan files only; for others, use --json")?;
        let files = instrument(&args.source.workflow, loaded, &priorities, method.into())?;
        let files = match &args.out {
            Some(directory) => copies(&args.source.workflow, loaded, files, directory)?,
            None => files,
        };
        return write_all(&files).map(|()| ExitCode::SUCCESS);
    }
    if args.method.is_some() {
        return Err("--method says how priorities are written; add --in-place or --out DIR".to_owned());
    }
    if !args.stats && args.plot.is_none() {
        let lines = priorities.iter().map(|(name, priority)| format!("{priority}\t{name}\n"));
        print(&lines.collect::<String>());
    }
    Ok(ExitCode::SUCCESS)
}

impl From<PriorityMethodName> for PriorityMethod {
    fn from(name: PriorityMethodName) -> Self {
        let (command, macros) = match name {
            PriorityMethodName::Priority => (true, false),
            PriorityMethodName::Vars => (false, true),
            PriorityMethodName::Both => (true, true),
        };
        Self { command, macros }
    }
}

/// By how much more jobs are eligible than first come, first served.
struct Stats {
    least: i64,
    mean: f64,
    most: i64,
    behind: usize,
}

fn stats(jobs: &Jobs, order: &[u32]) -> Stats {
    let all = eligible_gain(&jobs.dag, order);
    Stats {
        least: all.iter().copied().min().unwrap_or(0),
        mean: all.iter().sum::<i64>() as f64 / all.len().max(1) as f64,
        most: all.iter().copied().max().unwrap_or(0),
        behind: all.iter().filter(|d| **d < 0).count(),
    }
}

impl Stats {
    fn to_json(&self) -> serde_json::Value {
        json!({ "min": self.least, "mean": self.mean, "max": self.most, "negative_steps": self.behind })
    }

    fn to_text(&self) -> String {
        format!(
            "eligible jobs compared with first come, first served: {:+.2} on average, between {:+} and {:+}, fewer in {} steps\n",
            self.mean, self.least, self.most, self.behind
        )
    }
}

fn write_plot(path: &Path, jobs: &Jobs, order: &[u32]) -> Result<(), String> {
    let points =
        eligible_gain(&jobs.dag, order).into_iter().enumerate().map(|(t, d)| (t as f64, d as f64)).collect();
    let curve = Curve { name: String::new(), points };
    let labels = Labels {
        title: "Eligible jobs: this order minus first come, first served",
        x: "executed jobs",
        y: "difference",
        ..Labels::default()
    };
    std::fs::write(path, plot::svg(&labels, &[curve])).map_err(|e| format!("{}: {e}", path.display()))
}

type Files = Vec<(PathBuf, String)>;

/// The DAG file and those of its submit files that have to say something else, each once.
fn instrument(
    path: &Path,
    loaded: &LoadedDag,
    priorities: &[(Name, usize)],
    method: PriorityMethod,
) -> Result<Files, String> {
    let text = loaded.sources.main().map(|s| s.text.clone()).unwrap_or_default();
    let submit_files = submit_files(loaded);
    let others = if method.macros { others(loaded, &submit_files) } else { Vec::new() };
    let mut files = vec![(path.to_path_buf(), prioritised_dag(&text, priorities, &others, method))];
    for SubmitFile { path, needed } in submit_files {
        let text = match read_text(&path) {
            Ok(text) => text,
            Err(_) if !needed && !path.exists() => continue,
            Err(error) if method.macros => return Err(error),
            Err(error) => {
                eprintln!("warning: {error}");
                continue;
            }
        };
        let prioritised = prioritised_submit(&text, method);
        if has_own_priority(&prioritised) {
            eprintln!(
                "warning: {} says a priority itself, which counts in HTCondor's queue; --method vars replaces it",
                path.display()
            );
        }
        files.push((path, prioritised));
    }
    for source in loaded.sources.iter().skip(1).filter(|_| method.macros) {
        if source.text.contains('{') || source.text.contains("@=") {
            eprintln!(
                "warning: descriptions in {} are not changed; use --method priority, or describe jobs in files",
                source.name.display()
            );
        }
    }
    Ok(files)
}

/// A file that describes jobs.
struct SubmitFile {
    path: PathBuf,
    /// Some job that uses it does something.
    needed: bool,
}

/// The submit files of ordinary jobs, each once, however it is written, in the order of their first use.
fn submit_files(loaded: &LoadedDag) -> Vec<SubmitFile> {
    let mut files: Vec<SubmitFile> = Vec::new();
    let mut written: HashMap<PathBuf, usize> = HashMap::new();
    let mut real: HashMap<PathBuf, usize> = HashMap::new();
    for node in loaded.dag.nodes.iter().filter(|n| n.kind == NodeKind::Job) {
        let Some(path) = submit_file(loaded, node) else { continue };
        let known = written.get(&path).copied();
        let place = known.unwrap_or_else(|| {
            let place =
                *real.entry(path.canonicalize().unwrap_or_else(|_| path.clone())).or_insert(files.len());
            if place == files.len() {
                files.push(SubmitFile { path: path.clone(), needed: false });
            }
            written.insert(path, place);
            place
        });
        files[place].needed |= !node.noop;
    }
    files
}

fn submit_file(loaded: &LoadedDag, node: &DagNode) -> Option<PathBuf> {
    match &node.submit {
        Submit::Named(name) if !loaded.dag.descriptions.contains_key(name) => Some(node.directory.join(name)),
        _ => None,
    }
}

/// Nodes that have no place in the order, but a description in common with jobs that have.
fn others(loaded: &LoadedDag, submit_files: &[SubmitFile]) -> Vec<Name> {
    let special = [NodeKind::Final, NodeKind::Provisioner, NodeKind::Service];
    let nodes = loaded.dag.nodes.iter().filter(|n| special.contains(&n.kind));
    let shares = nodes.filter(|node| match (submit_file(loaded, node), &node.submit) {
        (Some(path), _) => {
            let real = path.canonicalize().ok();
            submit_files
                .iter()
                .any(|f| f.path == path || (real.is_some() && f.path.canonicalize().ok() == real))
        }
        (None, submit) => matches!(submit, Submit::Named(_)),
    });
    shares.map(|n| n.name.clone()).collect()
}

/// The same files and all others that belong to the DAG, below another directory.
fn copies(path: &Path, loaded: &LoadedDag, files: Files, directory: &Path) -> Result<Files, String> {
    let base = path.parent().unwrap_or(Path::new(""));
    let mut out = Vec::new();
    let mut known: HashSet<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    let submits = submit_files(loaded).into_iter().map(|f| f.path);
    let others = loaded.sources.iter().map(|s| s.name.clone()).chain(submits);
    let mut rest = Vec::new();
    for file in others {
        if known.insert(file.clone()) && file.exists() {
            let text = read_text(&file)?;
            rest.push((file, text.to_string()));
        }
    }
    for (file, text) in files.into_iter().chain(rest) {
        let inside = file.strip_prefix(base).ok().filter(|p| !p.starts_with("..") && p.is_relative());
        match inside {
            Some(relative) => out.push((directory.join(relative), text)),
            None => eprintln!(
                "warning: {} is outside the directory of the DAG and stays as it is",
                file.display()
            ),
        }
    }
    Ok(out)
}

/// Writes all files or none: only when all texts are on the disk do they take the places of the files. A link stays
/// one, to what is written.
fn write_all(files: &Files) -> Result<(), String> {
    let mut ready: Vec<Replacement> = Vec::new();
    let outcome = files.iter().try_for_each(|(path, text)| {
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory).map_err(fail)?;
        }
        let place = path.canonicalize().unwrap_or_else(|_| path.clone());
        if std::fs::read(&place).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        let beside = |ending: &str| {
            let mut name = place.file_name().unwrap_or_default().to_owned();
            name.push(ending);
            place.with_file_name(name)
        };
        let (fresh, old) = (beside(".prio-new"), beside(".prio-old"));
        ready.push(Replacement { fresh: fresh.clone(), old: old.clone(), place: place.clone() });
        std::fs::write(&fresh, text).map_err(fail)?;
        if let Ok(metadata) = std::fs::metadata(&place) {
            std::fs::set_permissions(&fresh, metadata.permissions()).map_err(fail)?;
            let _ = std::fs::remove_file(&old);
            std::fs::hard_link(&place, &old)
                .or_else(|_| std::fs::copy(&place, &old).map(|_| ()))
                .map_err(fail)?;
        }
        Ok(())
    });
    let mut replaced = 0;
    let outcome = outcome.and_then(|()| {
        ready.iter().try_for_each(|Replacement { fresh, place, .. }| {
            std::fs::rename(fresh, place).map_err(|e| format!("{}: {e}", place.display()))?;
            replaced += 1;
            Ok(())
        })
    });
    for (number, Replacement { fresh, old, place }) in ready.iter().enumerate() {
        if outcome.is_err() {
            // A file that was not there before has no old text to come back.
            if number < replaced && std::fs::rename(old, place).is_err() {
                let _ = std::fs::remove_file(place);
            }
            let _ = std::fs::remove_file(fresh);
        }
        let _ = std::fs::remove_file(old);
    }
    outcome
}

/// A text that is to take the place of a file, whose old text is kept until all have.
struct Replacement {
    fresh: PathBuf,
    old: PathBuf,
    place: PathBuf,
}
