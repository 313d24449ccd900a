//! What is written down about a DAG that has not succeeded, so that it can go on.

use super::api::DagView;
use super::node::NodeStatus;
use catena_model::dagman::{DagArc, NodeKind};
use std::fmt::Write;

/// The rescue file of a DAG, in the form of DAGMan's: what is done need not be done again. A node that failed and
/// that others wait for only to end counts as done.
pub fn rescue_text(view: DagView<'_>, file: &str) -> String {
    let nodes = &view.file().nodes;
    let statuses: Vec<NodeStatus> = view.statuses().collect();
    // Whether others wait for a node to succeed, and to end.
    let mut awaited = vec![[false; 2]; nodes.len()];
    for DagArc { parent, weak, .. } in &view.file().arcs {
        awaited[*parent as usize][usize::from(*weak)] = true;
    }
    let is_done = |n: usize| match statuses[n] {
        NodeStatus::Done => true,
        NodeStatus::Error => awaited[n] == [false, true],
        _ => false,
    };
    let may_be_done =
        |n: &usize| !matches!(nodes[*n].kind, NodeKind::Final | NodeKind::Service | NodeKind::Provisioner);
    let done: Vec<usize> = (0..nodes.len()).filter(may_be_done).filter(|n| is_done(*n)).collect();
    let failed = (0..nodes.len()).filter(|n| statuses[*n] == NodeStatus::Error);
    let failed: Vec<&str> = failed.map(|n| nodes[n].name.as_str()).collect();
    let mut out = format!(
        "# Rescue DAG file, created after running\n#   the {file} DAG file\n# Rescue DAG version: 2.1.0 (partial)\n#\n# Total number of Nodes: {}\n# Nodes premarked DONE: {}\n# Nodes that failed: {}\n#   ",
        nodes.len(),
        done.len(),
        failed.len(),
    );
    for name in &failed {
        let _ = write!(out, "{name},");
    }
    out.push_str("<ENDLIST>\n\n");
    for n in done {
        let _ = writeln!(out, "DONE {}", nodes[n].name);
    }
    for (n, node) in nodes.iter().enumerate() {
        if let Some((max, unless)) =
            node.rules().retry.filter(|_| !view.options().reset_retries && !is_done(n))
        {
            let _ = write!(out, "RETRY {} {}", node.name, max.saturating_sub(view.retries(n as u32)));
            let _ = match unless {
                Some(code) => writeln!(out, " UNLESS-EXIT {code}"),
                None => writeln!(out),
            };
        }
    }
    out
}
