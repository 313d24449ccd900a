//! WfCommons' WfFormat: workflows in JSON.

use super::JobGraph;
use crate::Name;
use serde::Deserialize;
use std::collections::HashMap;

#[derive(Deserialize)]
struct Document {
    workflow: Workflow,
}

#[derive(Deserialize)]
struct Workflow {
    specification: Option<Specification>,
    /// Where tasks were up to version 1.3.
    #[serde(default)]
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Specification {
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    name: String,
    id: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    children: Vec<String>,
}

/// Reads the tasks of a WfFormat file.
pub fn read_wfformat(text: &str) -> Result<JobGraph, String> {
    let document: Document = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let workflow = document.workflow;
    let tasks = workflow.specification.map_or(workflow.tasks, |s| s.tasks);
    let mut graph = JobGraph::default();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for (number, task) in (0..).zip(&tasks) {
        let id = task.id.as_deref().unwrap_or(&task.name);
        if numbers.insert(id, number).is_some() {
            return Err(format!("there are two tasks `{id}`"));
        }
        graph.jobs.push(Name::new(id));
    }
    let find = |id: &String| {
        numbers
            .get(id.as_str())
            .copied()
            .ok_or_else(|| format!("there is no task `{id}`, which another refers to"))
    };
    for (number, task) in (0..).zip(&tasks) {
        for child in &task.children {
            graph.arcs.push((number, find(child)?));
        }
    }
    // Either side may say it.
    for (number, task) in (0..).zip(&tasks) {
        for parent in &task.parents {
            graph.arcs.push((find(parent)?, number));
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_from_both_versions() {
        let new = r#"{"workflow": {"specification": {"tasks": [{"name": "x", "id": "a", "children": ["b"]}, {"name": "x", "id": "b", "parents": ["a"]}]}}}"#;
        let old = r#"{"workflow": {"tasks": [{"name": "a"}, {"name": "b", "parents": ["a"]}]}}"#;
        assert_eq!(read_wfformat(new).unwrap().jobs, read_wfformat(old).unwrap().jobs);
        assert_eq!(read_wfformat(old).unwrap().arcs, [(0, 1)]);
        assert!(read_wfformat(r#"{"workflow": {"tasks": [{"name": "a", "parents": ["b"]}]}}"#).is_err());
    }
}
