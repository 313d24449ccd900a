//! Reads what nodes refer to, when they are due.

use super::rescue::{Rescue, open_dag, write_rescue};
use catena_model::dagman::{DagFile, DagNode, Submission, Submit, SubmitContext, read_submit};
use catena_model::{Name, read_text};
use catena_plan::{DagView, JobMacros, Submitter};
use std::path::Path;
use std::sync::Arc;

/// Reads submit descriptions and DAGs of nodes from the disk.
pub(crate) struct DiskSubmitter;

impl Submitter for DiskSubmitter {
    fn jobs(&mut self, file: &DagFile, node: &DagNode, macros: &JobMacros) -> Result<Submission, String> {
        let path;
        let (text, name, line): (Arc<str>, &Path, u32) = match &node.submit {
            Submit::Inline { text, line } => (text.as_str().into(), &file.path, *line),
            Submit::Named(name) => match file.descriptions.get(name) {
                Some(text) => (text.as_str().into(), &file.path, 1),
                None => {
                    path = node.directory.join(name.as_str());
                    (read_text(&path)?, &path, 1)
                }
            },
        };
        let (mut before, after): (Vec<_>, Vec<_>) = node.vars.iter().partition(|(_, _, after)| !after);
        let context = SubmitContext {
            name,
            line,
            directory: &node.directory,
            before: macros_of(node, macros).into_iter().chain(before.drain(..).map(pair)).collect(),
            after: after.into_iter().map(pair).collect(),
            cluster: macros.cluster,
        };
        read_submit(&text, &context)
    }

    fn open(&mut self, node: &DagNode) -> Result<DagFile, String> {
        let Submit::Named(name) = &node.submit else { return Err("a DAG must be a file".to_owned()) };
        let opened = open_dag(&node.directory.join(name.as_str()), &Rescue::Newest);
        opened.usable().map(|dag| dag.loaded.dag)
    }

    fn failed(&mut self, dag: DagView<'_>) {
        // That it cannot be written shows when somebody looks for it; the DAG goes on.
        let _ = write_rescue(dag);
    }
}

fn pair((name, value, _): &(Name, Name, bool)) -> (Name, Name) {
    (name.clone(), value.clone())
}

/// The macros that DAGMan gives every job.
fn macros_of(node: &DagNode, macros: &JobMacros) -> Vec<(Name, Name)> {
    let [_, _, _, failed, _] = macros.counts;
    let number = |n: u32| Name::new(n.to_string());
    vec![
        (Name::new_static("JOB"), node.name.clone()),
        (Name::new_static("RETRY"), number(macros.retry)),
        (Name::new_static("DAGManJobId"), Name::new_static("0")),
        (Name::new_static("DAG_STATUS"), number(macros.dag_status)),
        (Name::new_static("FAILED_COUNT"), number(failed)),
        (Name::new_static("DAG_PARENT_NAMES"), Name::from(macros.parents.join(","))),
    ]
}
