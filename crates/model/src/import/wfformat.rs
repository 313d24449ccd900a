//! WfCommons' WfFormat: workflows in JSON.

use super::builder::{Builder, NO_JOBS, bytes, cores, seconds};
use super::place::{Step, locate};
use super::{Trace, TraceJob};
use crate::Name;
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    name: String,
    workflow: Workflow,
}

#[derive(Deserialize)]
struct Workflow {
    specification: Option<Specification>,
    execution: Option<Execution>,
    /// Where tasks were up to version 1.4.
    tasks: Option<Vec<Task>>,
    /// Where they were up to version 1.2.
    jobs: Option<Vec<Task>>,
}

#[derive(Deserialize)]
struct Specification {
    tasks: Vec<Task>,
    files: Option<Vec<File>>,
}

#[derive(Deserialize)]
struct Execution {
    tasks: Option<Vec<Executed>>,
}

/// A task; up to version 1.4 with its files and what was measured.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    name: Option<String>,
    id: Option<String>,
    parents: Option<Vec<String>>,
    children: Option<Vec<String>>,
    input_files: Option<Vec<String>>,
    output_files: Option<Vec<String>>,
    files: Option<Vec<File>>,
    command: Option<Command>,
    runtime: Option<f64>,
    runtime_in_seconds: Option<f64>,
    cores: Option<f64>,
    /// In kilobytes.
    memory: Option<f64>,
    memory_in_bytes: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    id: Option<String>,
    name: Option<String>,
    /// In kilobytes.
    size: Option<f64>,
    size_in_bytes: Option<f64>,
    link: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Executed {
    id: String,
    runtime_in_seconds: Option<f64>,
    core_count: Option<f64>,
    memory_in_bytes: Option<f64>,
    command: Option<Command>,
}

#[derive(Deserialize)]
struct Command {
    program: Option<String>,
}

impl Task {
    fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.name.as_deref()).filter(|id| !id.is_empty())
    }
}

impl File {
    fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.name.as_deref()).filter(|id| !id.is_empty())
    }

    fn bytes(&self) -> Result<Option<u64>, String> {
        self.size_in_bytes.or_else(|| self.size.map(|kilobytes| kilobytes * 1e3)).map(bytes).transpose()
    }
}

/// Where something is wrong, and what.
type Wrong = (Vec<Step>, String);

/// Reads a WfFormat file of version 1.0 to 1.5. What is wrong is told with its line and column.
pub fn read_wfformat(text: &str) -> Result<Trace, String> {
    let document: Document = serde_json::from_str(text).map_err(|e| {
        let message = e.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(m, _)| m);
        let message = message.replace("expected f64", "expected a number").replace("a sequence", "a list");
        let what = if e.is_data() { "this is no WfFormat" } else { "this is no JSON" };
        format!("{}:{}: {what}: {message}", e.line().max(1), e.column().max(1))
    })?;
    read(document).map_err(|(path, message)| {
        let (line, column) = locate(text, &path);
        format!("{line}:{column}: {message}")
    })
}

fn read(document: Document) -> Result<Trace, Wrong> {
    use Step::{Item, Key};
    let Workflow { specification, execution, tasks, jobs } = document.workflow;
    let (tasks, files, path) = match (specification, tasks, jobs) {
        (Some(s), ..) => (s.tasks, s.files, vec![Key("workflow"), Key("specification"), Key("tasks")]),
        (None, Some(tasks), _) => (tasks, None, vec![Key("workflow"), Key("tasks")]),
        (None, None, Some(jobs)) => (jobs, None, vec![Key("workflow"), Key("jobs")]),
        (None, None, None) => return Err((vec![Key("workflow")], NO_JOBS.to_owned())),
    };
    if tasks.is_empty() {
        return Err((path, NO_JOBS.to_owned()));
    }
    let executed = execution.and_then(|e| e.tasks).unwrap_or_default();
    let executed: HashMap<&str, (usize, &Executed)> =
        executed.iter().enumerate().map(|(n, e)| (e.id.as_str(), (n, e))).collect();
    let mut builder = Builder::default();
    builder.trace.name = document.name;
    let mut sizes: HashMap<&str, u64> = HashMap::new();
    let files = files.unwrap_or_default();
    for (number, file) in files.iter().enumerate() {
        let at = || vec![Key("workflow"), Key("specification"), Key("files"), Item(number)];
        let id = file.id().ok_or_else(|| (at(), "a file has no `id`: give it one".to_owned()))?;
        let of_file = builder.file(id);
        if let Some(size) = file.bytes().map_err(|message| (at(), message))? {
            builder.trace.files[of_file as usize].size = size;
            sizes.insert(id, size);
        }
    }
    for (number, task) in tasks.iter().enumerate() {
        let at = |rest: &[Step]| [&path[..], &[Item(number)], rest].concat();
        let id = task.id().ok_or_else(|| (at(&[]), "a task has no `id`: give it one".to_owned()))?;
        let (recorded, key) = match executed.get(id) {
            Some((number, e)) => {
                let place = vec![Key("workflow"), Key("execution"), Key("tasks"), Item(*number)];
                (measured(e.runtime_in_seconds, e.core_count, e.memory_in_bytes), place)
            }
            None => {
                let memory = task.memory_in_bytes.or_else(|| task.memory.map(|kilobytes| kilobytes * 1e3));
                (measured(task.runtime_in_seconds.or(task.runtime), task.cores, memory), at(&[]))
            }
        };
        let recorded = recorded.map_err(|(field, message)| ([&key[..], &[Key(field)]].concat(), message))?;
        let command = executed.get(id).and_then(|(_, e)| e.command.as_ref()).or(task.command.as_ref());
        let name = task.name.as_deref().filter(|n| !n.is_empty()).unwrap_or(id);
        // Where the name says no more than the id, the command does.
        let program = command.and_then(|c| c.program.as_deref()).filter(|p| name == id && !p.is_empty());
        let recorded =
            TraceJob { id: Name::new(id), program: Name::new(program.unwrap_or(name)), ..recorded };
        let job = builder.job(recorded).map_err(|message| (at(&[Key("id")]), message))?;
        for (list, is_input) in [(&task.input_files, true), (&task.output_files, false)] {
            for file in list.iter().flatten().filter(|f| !f.is_empty()) {
                builder.uses(job, file, sizes.get(file.as_str()).copied(), is_input);
            }
        }
        for (n, file) in task.files.iter().flatten().enumerate() {
            let at = || at(&[Key("files"), Item(n)]);
            let name = file.id().ok_or_else(|| (at(), "a file has no `name`: give it one".to_owned()))?;
            let size = file.bytes().map_err(|message| (at(), message))?;
            let is_input = match file.link.as_deref() {
                Some("input") => true,
                Some("output") => false,
                _ => return Err((at(), "the `link` of a file must be `input` or `output`".to_owned())),
            };
            builder.uses(job, name, size, is_input);
        }
    }
    // Before version 1.5, tasks are referred to by their names.
    for (number, task) in (0..).zip(&tasks) {
        if let Some(name) = &task.name {
            builder.alias(name, number);
        }
    }
    // Either side may say who waits for whom.
    for is_child in [true, false] {
        for (number, task) in (0..).zip(&tasks) {
            let (list, key) =
                if is_child { (&task.children, "children") } else { (&task.parents, "parents") };
            for (n, id) in list.iter().flatten().enumerate() {
                let other = builder.find(id).map_err(|message| {
                    ([&path[..], &[Item(number as usize), Key(key), Item(n)]].concat(), message)
                })?;
                builder.trace.arcs.push(if is_child { (number, other) } else { (other, number) });
            }
        }
    }
    builder.finish().map_err(|(job, message)| ([&path[..], &[Item(job as usize)]].concat(), message))
}

/// What was measured of a task; or the field in which it is wrong, and what.
fn measured(
    runtime: Option<f64>,
    processors: Option<f64>,
    memory: Option<f64>,
) -> Result<TraceJob, (&'static str, String)> {
    Ok(TraceJob {
        runtime: seconds(runtime.unwrap_or(0.0)).map_err(|m| ("runtimeInSeconds", m))?,
        cores: cores(processors.unwrap_or(1.0)).map_err(|m| ("coreCount", m))?,
        memory: bytes(memory.unwrap_or(0.0)).map_err(|m| ("memoryInBytes", m))?,
        ..TraceJob::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_from_all_versions() {
        let of_1_5 = r#"{"workflow": {"specification": {"tasks": [{"name": "x", "id": "a", "children": ["b"], "outputFiles": ["f"]}, {"name": "b", "id": "b", "parents": ["a"], "inputFiles": ["f"]}], "files": [{"id": "f", "sizeInBytes": 12000}]}, "execution": {"tasks": [{"id": "b", "runtimeInSeconds": 3.5, "coreCount": 2, "memoryInBytes": 5000, "command": {"program": "p"}}]}}}"#;
        let of_1_4 = r#"{"workflow": {"tasks": [{"name": "x", "id": "a", "files": [{"link": "output", "name": "f", "sizeInBytes": 12000}]}, {"name": "b", "id": "b", "parents": ["x"], "runtimeInSeconds": 3.5, "cores": 2, "memoryInBytes": 5000, "command": {"program": "p"}, "files": [{"link": "input", "name": "f", "sizeInBytes": 12000}]}]}}"#;
        let of_1_2 = of_1_4.replace("tasks", "jobs").replace("runtimeInSeconds", "runtime");
        let of_1_2 = of_1_2.replace("InBytes", "").replace("000", "");
        let trace = read_wfformat(of_1_5).unwrap();
        assert_eq!((trace.arcs.clone(), trace.files[0].size), (vec![(0, 1)], 12_000));
        let b = &trace.jobs[1];
        assert_eq!(
            (b.runtime, b.cores, b.memory, &b.inputs[..], b.program.as_str()),
            (3.5, 2.0, 5000, &[0][..], "p")
        );
        assert_eq!(read_wfformat(of_1_4).unwrap(), trace);
        assert_eq!(read_wfformat(&of_1_2).unwrap(), trace);
    }
}
