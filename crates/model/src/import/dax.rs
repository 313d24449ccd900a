//! Pegasus DAX: jobs and dependencies in XML.

use super::JobGraph;
use crate::Name;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::HashMap;

/// Reads the jobs of a DAX file. What is wrong is told with its line and column.
pub fn read_dax(text: &str) -> Result<JobGraph, String> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let fail = |node: &Node<'_, '_>, message: String| {
        let place = document.text_pos_at(node.range().start);
        Err(format!("{}:{}: {message}", place.row, place.col))
    };
    let root = document.root_element();
    if root.tag_name().name() != "adag" {
        return fail(&root, format!("expected an `adag`, found `{}`", root.tag_name().name()));
    }
    let mut graph = JobGraph::default();
    let mut numbers = HashMap::new();
    let elements = || root.children().filter(Node::is_element);
    for job in elements().filter(|e| matches!(e.tag_name().name(), "job" | "dax" | "dag")) {
        let Some(id) = job.attribute("id") else { return fail(&job, "a job has no `id`".to_owned()) };
        if numbers.insert(id, graph.jobs.len() as u32).is_some() {
            return fail(&job, format!("there is another job `{id}`"));
        }
        graph.jobs.push(Name::new(id));
    }
    for child in elements().filter(|e| e.tag_name().name() == "child") {
        let number = |node: &Node<'_, '_>| match node.attribute("ref") {
            Some(id) => numbers.get(id).copied().ok_or_else(|| format!("there is no job `{id}`")),
            None => Err("`ref` is missing".to_owned()),
        };
        let to = match number(&child) {
            Ok(to) => to,
            Err(message) => return fail(&child, message),
        };
        for parent in child.children().filter(|e| e.tag_name().name() == "parent") {
            match number(&parent) {
                Ok(from) => graph.arcs.push((from, to)),
                Err(message) => return fail(&parent, message),
            }
        }
    }
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_dependencies_are_read() {
        let text = "<adag><job id='b'/><job id='a'/><child ref='b'><parent ref='a'/></child></adag>";
        let graph = read_dax(text).unwrap();
        assert_eq!((graph.jobs, graph.arcs), (vec!["b".into(), "a".into()], vec![(1, 0)]));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let text = "<adag>\n<job id='a'/>\n <child ref='c'/></adag>";
        assert_eq!(read_dax(text).unwrap_err(), "3:2: there is no job `c`");
        assert!(read_dax("<adag>").is_err());
        assert!(read_dax("<html/>").unwrap_err().contains("expected an `adag`"));
    }
}
