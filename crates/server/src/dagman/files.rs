//! What DAGMan's users look at while a DAG runs: states of nodes, pictures, logs, save points.

use super::rescue::write_rescue;
use catena_model::dagman::{DagFile, DotOptions, NodeStatusFile};
use catena_model::moment;
use catena_plan::{DagEvent, DagPlan, DagView, Happening, NodeStatus, rescue_text};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pictures that are kept up to date are not drawn more often than this.
const REDRAW: Duration = Duration::from_secs(1);

/// Writes the files that DAGs ask for. What cannot be written is said once; the DAG goes on.
#[derive(Debug, Default)]
pub struct DagFiles {
    dags: Vec<Outputs>,
    problems: Vec<String>,
}

/// The files of one DAG.
#[derive(Debug, Default)]
struct Outputs {
    jobstates: Option<File>,
    last_status: Option<Instant>,
    last_dot: Option<Instant>,
    changed: bool,
    /// The number of the next picture, where none is replaced.
    pictures: u32,
}

impl DagFiles {
    /// Writes what follows from what has happened.
    pub(crate) fn happened(&mut self, plan: &DagPlan, events: &[DagEvent], now: i64) {
        for dag in self.dags.len() as u32..plan.dag_count() {
            self.dags.push(Outputs::default());
            self.begin(dag, plan.view(dag), now);
        }
        for event in events {
            self.dags[event.dag as usize].changed = true;
            self.log(plan.view(event.dag), event, now);
            self.save_point(plan.view(event.dag), event);
        }
        for dag in 0..plan.dag_count() {
            self.refresh(dag, plan.view(dag), now, false);
        }
    }

    /// Writes everything for the last time, and a rescue file if one is needed. Returns where it is.
    pub(crate) fn ended(&mut self, plan: &DagPlan, rescue: bool, now: i64) -> Option<PathBuf> {
        for dag in 0..self.dags.len() as u32 {
            let view = plan.view(dag);
            let code = view.end().map_or(2, |e| e.code);
            self.jobstate(dag, &format!("{} INTERNAL *** DAGMAN_FINISHED {code} ***\n", now / 1000));
            self.refresh(dag, view, now, true);
        }
        if !rescue {
            return None;
        }
        let path = plan.view(0).file().path.clone();
        self.report(write_rescue(plan.view(0)), &path)
    }

    /// What could not be written since the last time.
    pub(crate) fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    fn report<T>(&mut self, result: io::Result<T>, path: &Path) -> Option<T> {
        result.map_err(|e| self.problems.push(format!("{} cannot be written: {e}", path.display()))).ok()
    }

    fn begin(&mut self, dag: u32, view: DagView<'_>, now: i64) {
        let Some(name) = &view.file().jobstate_log else { return };
        let path = beside(view.file(), name);
        let file = self.report(File::options().create(true).append(true).open(&path), &path);
        self.dags[dag as usize].jobstates = file;
        self.jobstate(dag, &format!("{} INTERNAL *** DAGMAN_STARTED 0.0 ***\n", now / 1000));
    }

    fn jobstate(&mut self, dag: u32, line: &str) {
        if let Some(file) = &mut self.dags[dag as usize].jobstates {
            let _ = file.write_all(line.as_bytes());
        }
    }

    fn log(&mut self, view: DagView<'_>, event: &DagEvent, now: i64) {
        if self.dags[event.dag as usize].jobstates.is_none() {
            return;
        }
        let (name, try_) = (&view.file().nodes[event.node as usize].name, view.retries(event.node) + 1);
        let fine = |code: i64| if code == 0 { "SUCCESS" } else { "FAILURE" };
        let mut lines = Vec::new();
        match &event.what {
            Happening::PreStarted => lines.push(("PRE_SCRIPT_STARTED".to_owned(), "-".to_owned())),
            Happening::PreEnded(code) => lines.push((format!("PRE_SCRIPT_{}", fine(*code)), "-".to_owned())),
            Happening::Submitted { cluster, jobs } => {
                lines.extend((0..*jobs).map(|job| ("SUBMIT".to_owned(), format!("{cluster}.{job}"))));
            }
            Happening::JobStarted { cluster, job } => {
                lines.push(("EXECUTE".to_owned(), format!("{cluster}.{job}")));
            }
            Happening::JobEnded { cluster, job, code } => {
                lines.push(("JOB_TERMINATED".to_owned(), format!("{cluster}.{job}")));
                lines.push((format!("JOB_{}", fine(*code)), code.to_string()));
            }
            Happening::PostStarted => lines.push(("POST_SCRIPT_STARTED".to_owned(), "-".to_owned())),
            Happening::PostEnded(code) => {
                lines.push(("POST_SCRIPT_TERMINATED".to_owned(), "-".to_owned()));
                lines.push((format!("POST_SCRIPT_{}", fine(*code)), "-".to_owned()));
            }
            Happening::NotSubmitted(_) => lines.push(("SUBMIT_FAILURE".to_owned(), "-".to_owned())),
            Happening::Retried { .. }
            | Happening::Ended(_)
            | Happening::Warned(_)
            | Happening::Aborted(_) => {}
        }
        for (what, id) in lines {
            self.jobstate(event.dag, &format!("{} {name} {what} {id} local - {try_}\n", now / 1000));
        }
    }

    /// The progress when a node starts, so that one can go back there.
    fn save_point(&mut self, view: DagView<'_>, event: &DagEvent) {
        let node = &view.file().nodes[event.node as usize];
        let Some(named) = &node.rules().save_point else { return };
        let starts = match event.what {
            Happening::PreStarted => true,
            Happening::Submitted { .. } => node.rules().pre.is_none(),
            _ => false,
        };
        if !starts || view.retries(event.node) > 0 {
            return;
        }
        let dag = view.file().path.file_name().unwrap_or_default().to_string_lossy();
        let name = if named.is_empty() { format!("{}-{dag}.save", node.name) } else { named.to_string() };
        let path = if name.contains('/') {
            beside(view.file(), &name)
        } else {
            beside(view.file(), "save_files").join(name)
        };
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
            if path.exists() {
                let mut old = path.clone().into_os_string();
                old.push(".old");
                std::fs::rename(&path, old)?;
            }
            std::fs::write(&path, rescue_text(view, &dag))
        };
        let written = write();
        self.report(written, &path);
    }

    fn refresh(&mut self, dag: u32, view: DagView<'_>, now: i64, last: bool) {
        let Outputs { last_status, last_dot, changed, pictures, .. } = &mut self.dags[dag as usize];
        let due = |at: &Option<Instant>, pause: Duration| at.is_none_or(|t| t.elapsed() >= pause);
        let mut written = Vec::new();
        if let Some(status) = &view.file().node_status {
            let pause = Duration::from_secs(status.min_seconds);
            if last || (due(last_status, pause) && (*changed || status.always)) {
                *last_status = Some(Instant::now());
                written.push((beside(view.file(), &status.file), status_text(view, status, now)));
            }
        }
        if let Some(dot) = &view.file().dot {
            let first = last_dot.is_none();
            if first || (dot.update && *changed && due(last_dot, REDRAW)) || (dot.update && last) {
                *last_dot = Some(Instant::now());
                let mut path = beside(view.file(), &dot.file);
                if !dot.overwrite {
                    path = path.with_added_extension(pictures.to_string());
                    *pictures += 1;
                }
                written.push((path, dot_text(view, dot, now)));
            }
        }
        if !written.is_empty() {
            *changed = false;
        }
        for (path, text) in written {
            // Readers must never see half a file.
            let new = path.with_added_extension("tmp");
            let result = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
            self.report(result, &path);
        }
    }
}

/// A path that is relative to the directory of the DAG file.
fn beside(file: &DagFile, name: &str) -> PathBuf {
    file.path.parent().unwrap_or(Path::new("")).join(name)
}

fn status_text(view: DagView<'_>, file: &NodeStatusFile, now: i64) -> String {
    let statuses: Vec<NodeStatus> = view.statuses().collect();
    let count = |status| statuses.iter().filter(|s| **s == status).count();
    let total = match view.end() {
        Some(end) if end.code == 0 => NodeStatus::Done,
        Some(_) => NodeStatus::Error,
        None => NodeStatus::Submitted,
    };
    let seconds = now / 1000;
    let mut out = format!(
        "[\n  Type = \"DagStatus\";\n  DagFiles = {{\n    \"{}\"\n  }};\n  Timestamp = {seconds}; /* \"{}\" */\n  DagStatus = {}; /* \"{}\" */\n",
        view.file().path.file_name().unwrap_or_default().to_string_lossy(),
        moment(now),
        total as u8,
        total.name(),
    );
    for (name, n) in [
        ("NodesTotal", statuses.len()),
        ("NodesDone", count(NodeStatus::Done)),
        ("NodesPre", count(NodeStatus::Pre)),
        ("NodesQueued", count(NodeStatus::Submitted)),
        ("NodesPost", count(NodeStatus::Post)),
        ("NodesReady", count(NodeStatus::Ready)),
        ("NodesUnready", count(NodeStatus::NotReady)),
        ("NodesFutile", count(NodeStatus::Futile)),
        ("NodesFailed", count(NodeStatus::Error)),
        ("JobProcsHeld", 0),
        ("JobProcsIdle", 0),
    ] {
        let _ = writeln!(out, "  {name} = {n};");
    }
    out.push_str("]\n");
    for (n, (node, status)) in (0..).zip(view.file().nodes.iter().zip(&statuses)) {
        let _ = writeln!(
            out,
            "[\n  Type = \"NodeStatus\";\n  Node = \"{}\";\n  NodeStatus = {}; /* \"{}\" */\n  StatusDetails = \"\";\n  RetryCount = {};\n]",
            node.name,
            *status as u8,
            status.name(),
            view.retries(n),
        );
    }
    let next = if view.end().is_some() { 0 } else { seconds + file.min_seconds as i64 };
    let _ = writeln!(out, "[\n  Type = \"StatusEnd\";\n  EndTime = {seconds};\n  NextUpdate = {next};\n]");
    out
}

fn dot_text(view: DagView<'_>, dot: &DotOptions, now: i64) -> String {
    let mut out = format!("digraph DAG {{\n    label=\"DAG at {}\";\n", moment(now));
    if let Some(text) =
        dot.include.as_ref().and_then(|f| std::fs::read_to_string(beside(view.file(), f)).ok())
    {
        out.push_str(&text);
        out.push('\n');
    }
    let nodes = &view.file().nodes;
    for (node, status) in nodes.iter().zip(view.statuses()) {
        let short = match status {
            NodeStatus::NotReady => "I",
            NodeStatus::Ready => "R",
            NodeStatus::Pre => "P",
            NodeStatus::Submitted => "S",
            NodeStatus::Post => "O",
            NodeStatus::Done => "D",
            NodeStatus::Error => "E",
            NodeStatus::Futile => "F",
        };
        let _ = writeln!(out, "    \"{0}\" [shape=ellipse label=\"{0} ({short})\"];", node.name);
    }
    for arc in &view.file().arcs {
        let (parent, child) = (&nodes[arc.parent as usize].name, &nodes[arc.child as usize].name);
        let style = if arc.weak { " [style=dashed]" } else { "" };
        let _ = writeln!(out, "    \"{parent}\" -> \"{child}\"{style};");
    }
    out.push_str("}\n");
    out
}
