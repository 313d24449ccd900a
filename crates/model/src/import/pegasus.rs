//! Pegasus 5: workflows in YAML.

use super::builder::{Builder, NO_JOBS, bytes, cores, number, seconds};
use super::{Trace, TraceJob};
use crate::Name;
use crate::diag::{Diagnostics, Span};
use crate::yaml::{self, Node};
use std::collections::HashMap;

/// Where something is wrong, and what.
type Wrong = (Span, String);

/// Reads a workflow of Pegasus 5. What is wrong is told with its line and column.
pub fn read_pegasus(text: &str) -> Result<Trace, String> {
    let mut diags = Diagnostics::default();
    let nodes = yaml::parse(text, 0, &mut diags);
    let wrong = |span: Span, message: &str| format!("{}:{}: {message}", span.line, span.column);
    if let Some(d) = diags.iter().next() {
        return Err(wrong(d.span, &format!("this is no YAML: {}", d.message)));
    }
    let root = nodes.first().ok_or_else(|| format!("1:1: {NO_JOBS}"))?;
    read(root).map_err(|(span, message)| wrong(span, &message))
}

fn read(root: &Node) -> Result<Trace, Wrong> {
    if root.as_map().is_none() {
        return Err((
            root.span,
            format!("expected a workflow, found {}: is it a file of Pegasus?", root.kind()),
        ));
    }
    let mut builder = Builder::default();
    text(root, "name")?.unwrap_or_default().clone_into(&mut builder.trace.name);
    let jobs = list(root, "jobs")?;
    if jobs.is_empty() {
        return Err((root.span, NO_JOBS.to_owned()));
    }
    let catalogues = Catalogues::read(root)?;
    for job in jobs {
        read_job(job, &catalogues, &mut builder)?;
    }
    for dependency in list(root, "jobDependencies")? {
        let find = |node: &Node| {
            let id = node.as_str().ok_or_else(|| format!("expected the id of a job, found {}", node.kind()));
            id.and_then(|id| builder.find(id)).map_err(|message| (node.span, message))
        };
        let from = find(needed(dependency, "id")?)?;
        let arcs: Vec<(u32, u32)> =
            list(dependency, "children")?.iter().map(|c| Ok((from, find(c)?))).collect::<Result<_, _>>()?;
        builder.trace.arcs.extend(arcs);
    }
    builder.finish().map_err(|(job, message)| (jobs[job as usize].span, message))
}

/// What is said elsewhere in the file about programs and files.
struct Catalogues<'a> {
    /// The profiles of all jobs.
    workflow: &'a Node,
    /// Programs by name, with their profiles.
    programs: HashMap<&'a str, &'a Node>,
    /// The sizes of files that are there at the beginning.
    sizes: HashMap<&'a str, u64>,
}

impl<'a> Catalogues<'a> {
    fn read(root: &'a Node) -> Result<Self, Wrong> {
        let part = |catalogue: &str, key: &str| match root.get(catalogue) {
            Some(node) => list(node, key),
            None => Ok(&[][..]),
        };
        let programs = part("transformationCatalog", "transformations")?.iter();
        let programs = programs.filter_map(|t| Some((t.get("name")?.as_str()?, t))).collect();
        let mut sizes = HashMap::new();
        for replica in part("replicaCatalog", "replicas")? {
            if let (Some(lfn), Some(size)) = (replica.get("lfn").and_then(Node::as_str), size(replica)?) {
                sizes.insert(lfn, size);
            }
        }
        Ok(Self { workflow: root, programs, sizes })
    }

    /// What a job's own profiles say, or those of its program, or those of the workflow.
    fn profile(&self, job: &'a Node, key: &str, condor: Option<&str>) -> Option<&'a Node> {
        let program = job.get("name").and_then(Node::as_str).and_then(|n| self.programs.get(n)).copied();
        [Some(job), program, Some(self.workflow)]
            .into_iter()
            .flatten()
            .filter_map(|n| n.get("profiles"))
            .find_map(|profiles| {
                let of = |namespace: &str, key: &str| profiles.get(namespace)?.get(key);
                of("pegasus", key).or_else(|| of("condor", condor?)).filter(|n| !n.is_null())
            })
    }
}

fn read_job(job: &Node, catalogues: &Catalogues, builder: &mut Builder) -> Result<(), Wrong> {
    let id = needed(job, "id")?;
    let program = [text(job, "name")?, text(job, "file")?];
    let Some(id_text) = id.as_str() else {
        return Err((id.span, format!("expected the id of a job, found {}", id.kind())));
    };
    let mut recorded = TraceJob {
        id: Name::new(id_text),
        program: Name::new(program.into_iter().flatten().find(|p| !p.is_empty()).unwrap_or(id_text)),
        cores: 1.0,
        ..TraceJob::default()
    };
    if let Some(node) = catalogues.profile(job, "runtime", None) {
        recorded.runtime = quantity(node, "runtime in seconds", seconds)?;
    }
    if let Some(node) = catalogues.profile(job, "cores", Some("request_cpus")) {
        recorded.cores = quantity(node, "number of processors", cores)?;
    }
    if let Some(node) = catalogues.profile(job, "memory", Some("request_memory")) {
        recorded.memory = quantity(node, "amount of memory in megabytes", |m| bytes(m * 1e6))?;
    }
    let number = builder.job(recorded).map_err(|message| (id.span, message))?;
    for file in list(job, "uses")? {
        let name = needed(file, "lfn")?;
        let Some(name) = name.as_str().filter(|n| !n.is_empty()) else {
            return Err((name.span, format!("expected the name of a file, found {}", name.kind())));
        };
        let size = size(file)?.or_else(|| catalogues.sizes.get(name).copied());
        let kind = needed(file, "type")?;
        let (is_read, is_written) = match kind.as_str() {
            Some("input") => (true, false),
            Some("output") => (false, true),
            Some("inout" | "checkpoint") => (true, true),
            Some("none") => (false, false),
            _ => {
                let message = "the `type` of a use can be input, output, inout, checkpoint and none";
                return Err((kind.span, message.to_owned()));
            }
        };
        for (_, is_input) in [(is_read, true), (is_written, false)].into_iter().filter(|(is, _)| *is) {
            builder.uses(number, name, size, is_input);
        }
    }
    Ok(())
}

/// The size of a file, which may stand among its metadata.
fn size(file: &Node) -> Result<Option<u64>, Wrong> {
    let said = file.get("size").or_else(|| file.get("metadata")?.get("size")).filter(|n| !n.is_null());
    said.map(|node| quantity(node, "size in bytes", bytes)).transpose()
}

/// A number, with or without quotes.
fn quantity<T>(node: &Node, what: &str, check: impl Fn(f64) -> Result<T, String>) -> Result<T, Wrong> {
    let Some(text) = node.as_str() else {
        return Err((node.span, format!("expected a {what}, found {}", node.kind())));
    };
    number(text, what).and_then(check).map_err(|message| (node.span, message))
}

fn needed<'a>(node: &'a Node, key: &str) -> Result<&'a Node, Wrong> {
    node.get(key).ok_or_else(|| (node.span, format!("`{key}` is missing here: add it")))
}

fn text<'a>(node: &'a Node, key: &str) -> Result<Option<&'a str>, Wrong> {
    match node.get(key) {
        Some(value) if value.as_str().is_none() && !value.is_null() => {
            Err((value.span, format!("`{key}` must be a text, but is {}", value.kind())))
        }
        value => Ok(value.and_then(Node::as_str)),
    }
}

fn list<'a>(node: &'a Node, key: &str) -> Result<&'a [Node], Wrong> {
    match node.get(key) {
        Some(value) if !value.is_null() => value
            .as_seq()
            .ok_or_else(|| (value.span, format!("`{key}` must be a list, but is {}", value.kind()))),
        _ => Ok(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_read() {
        let text = "pegasus: '5.0'\nname: w\nprofiles: { pegasus: { runtime: 7 } }\nreplicaCatalog: { replicas: [{ lfn: c, metadata: { size: 3 } }] }\ntransformationCatalog: { transformations: [{ name: wc, profiles: { condor: { request_cpus: 8 } } }] }\njobs:\n- type: job\n  name: split\n  id: ID1\n  uses:\n  - { lfn: a.txt, type: input, size: '10' }\n  - { lfn: b.txt, type: output, metadata: { size: 4 } }\n  profiles: { pegasus: { runtime: '12', cores: 2, memory: 2 } }\n- { type: job, name: wc, id: ID2, uses: [{ lfn: c, type: input }] }\njobDependencies:\n- { id: ID1, children: [ID2] }\n";
        let trace = read_pegasus(text).unwrap();
        let figures: Vec<_> = trace.jobs.iter().map(|j| (j.runtime, j.cores, j.memory)).collect();
        assert_eq!(figures, [(12.0, 2.0, 2_000_000), (7.0, 8.0, 0)]);
        assert_eq!(trace.arcs, [(0, 1)]);
        let sizes: Vec<u64> = trace.files.iter().map(|f| f.size).collect();
        assert_eq!(sizes, [10, 4, 3]);
    }
}
