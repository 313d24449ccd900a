//! WfCommons' WfFormat: workflows in JSON.

use super::{Builder, Trace, TraceJob};
use crate::Name;
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
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
    #[serde(default)]
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Specification {
    tasks: Vec<Task>,
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(default)]
    tasks: Vec<Executed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    name: String,
    id: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    children: Vec<String>,
    #[serde(default)]
    input_files: Vec<String>,
    #[serde(default)]
    output_files: Vec<String>,
    /// With their direction, up to version 1.4.
    #[serde(default)]
    files: Vec<File>,
    #[serde(flatten)]
    executed: Measured,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(alias = "name")]
    id: String,
    #[serde(alias = "size")]
    size_in_bytes: Option<f64>,
    link: Option<String>,
}

#[derive(Deserialize)]
struct Executed {
    id: String,
    #[serde(flatten)]
    measured: Measured,
}

/// What was measured, in the spellings of all versions.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Measured {
    #[serde(alias = "runtime")]
    runtime_in_seconds: Option<f64>,
    #[serde(alias = "cores")]
    core_count: Option<f64>,
    #[serde(alias = "memory")]
    memory_in_bytes: Option<f64>,
}

/// Reads a WfFormat file of version 1.2 to 1.5.
pub fn read_wfformat(text: &str) -> Result<Trace, String> {
    let document: Document = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let Workflow { specification, execution, tasks } = document.workflow;
    let (tasks, files) = specification.map_or((tasks, Vec::new()), |s| (s.tasks, s.files));
    let sizes: HashMap<&str, f64> =
        files.iter().filter_map(|f| Some((f.id.as_str(), f.size_in_bytes?))).collect();
    let executed = execution.map(|e| e.tasks).unwrap_or_default();
    let executed: HashMap<&str, Measured> = executed.iter().map(|e| (e.id.as_str(), e.measured)).collect();
    let mut builder = Builder::default();
    builder.trace.name = document.name;
    for task in &tasks {
        let id = task.id.as_deref().unwrap_or(&task.name);
        let measured = executed.get(id).copied().unwrap_or(task.executed);
        let number = builder.job(TraceJob {
            id: Name::new(id),
            program: Name::new(&task.name),
            runtime: measured.runtime_in_seconds.unwrap_or(0.0).max(0.0),
            cores: measured.core_count.unwrap_or(1.0),
            memory: measured.memory_in_bytes.unwrap_or(0.0) as u64,
            ..TraceJob::default()
        })?;
        for (list, is_input) in [(&task.input_files, true), (&task.output_files, false)] {
            for file in list {
                builder.uses(number, file, sizes.get(file.as_str()).copied(), is_input);
            }
        }
        for file in &task.files {
            builder.uses(number, &file.id, file.size_in_bytes, file.link.as_deref() != Some("output"));
        }
    }
    for (number, task) in (0..).zip(&tasks) {
        for child in &task.children {
            let to = builder.find(child)?;
            builder.trace.arcs.push((number, to));
        }
    }
    // Either side may say it.
    for (number, task) in (0..).zip(&tasks) {
        for parent in &task.parents {
            let from = builder.find(parent)?;
            builder.trace.arcs.push((from, number));
        }
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_from_all_versions() {
        let new = r#"{"workflow": {"specification": {"tasks": [{"name": "x", "id": "a", "children": ["b"], "outputFiles": ["f"]}, {"name": "x", "id": "b", "parents": ["a"], "inputFiles": ["f"]}], "files": [{"id": "f", "sizeInBytes": 12}]}, "execution": {"tasks": [{"id": "b", "runtimeInSeconds": 3.5, "coreCount": 2}]}}}"#;
        let old = r#"{"workflow": {"tasks": [{"name": "a", "files": [{"link": "output", "name": "f", "size": 12}]}, {"name": "b", "parents": ["a"], "runtime": 3.5, "cores": 2, "files": [{"link": "input", "name": "f", "size": 12}]}]}}"#;
        let (new, old) = (read_wfformat(new).unwrap(), read_wfformat(old).unwrap());
        assert_eq!((&new.arcs, &new.files), (&old.arcs, &old.files));
        assert_eq!(new.arcs, [(0, 1)]);
        let b = |t: &Trace| (t.jobs[1].runtime, t.jobs[1].cores, t.jobs[1].inputs.clone());
        assert_eq!((b(&new), b(&new)), (b(&old), (3.5, 2.0, vec![0])));
        assert!(read_wfformat(r#"{"workflow": {"tasks": [{"name": "a", "parents": ["b"]}]}}"#).is_err());
    }
}
