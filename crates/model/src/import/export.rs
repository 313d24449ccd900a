//! Traces as files that other systems read.

use super::Trace;
use serde_json::{Value, json};
use std::fmt::Write;

/// A trace as WfFormat 1.5.
pub fn write_wfformat(trace: &Trace) -> Value {
    let mut parents = vec![Vec::new(); trace.jobs.len()];
    let mut children = vec![Vec::new(); trace.jobs.len()];
    for (from, to) in &trace.arcs {
        parents[*to as usize].push(&trace.jobs[*from as usize].id);
        children[*from as usize].push(&trace.jobs[*to as usize].id);
    }
    let names = |files: &[u32]| -> Vec<&str> {
        files.iter().map(|f| trace.files[*f as usize].name.as_str()).collect()
    };
    let specified = trace.jobs.iter().zip(parents.iter().zip(&children)).map(|(job, (parents, children))| {
        json!({
            "name": job.program, "id": job.id, "parents": parents, "children": children,
            "inputFiles": names(&job.inputs), "outputFiles": names(&job.outputs),
        })
    });
    let executed = trace.jobs.iter().map(|job| {
        json!({
            "id": job.id, "runtimeInSeconds": job.runtime, "coreCount": job.cores, "memoryInBytes": job.memory,
            "command": { "program": job.program, "arguments": [] },
        })
    });
    let files = trace.files.iter().map(|f| json!({ "id": f.name, "sizeInBytes": f.size }));
    json!({
        "name": trace.name,
        "description": "",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": { "tasks": specified.collect::<Vec<_>>(), "files": files.collect::<Vec<_>>() },
            "execution": { "makespanInSeconds": 0, "executedAt": "1970-01-01T00:00:00Z", "tasks": executed.collect::<Vec<_>>() },
        },
    })
}

/// A trace as Pegasus DAX 3.
pub fn write_dax(trace: &Trace) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<adag xmlns=\"http://pegasus.isi.edu/schema/DAX\" version=\"3.6\" name=\"{}\">",
        escape(&trace.name)
    );
    for job in &trace.jobs {
        let (id, program) = (escape(&job.id), escape(&job.program));
        let _ = writeln!(out, "  <job id=\"{id}\" name=\"{program}\" runtime=\"{}\">", job.runtime);
        for (files, link) in [(&job.inputs, "input"), (&job.outputs, "output")] {
            for file in files.iter().map(|f| &trace.files[*f as usize]) {
                let _ = writeln!(
                    out,
                    "    <uses name=\"{}\" link=\"{link}\" size=\"{}\"/>",
                    escape(&file.name),
                    file.size
                );
            }
        }
        out.push_str("  </job>\n");
    }
    let mut arcs = trace.arcs.clone();
    arcs.sort_unstable_by_key(|(from, to)| (*to, *from));
    for group in arcs.chunk_by(|a, b| a.1 == b.1) {
        let _ = writeln!(out, "  <child ref=\"{}\">", escape(&trace.jobs[group[0].1 as usize].id));
        for (from, _) in group {
            let _ = writeln!(out, "    <parent ref=\"{}\"/>", escape(&trace.jobs[*from as usize].id));
        }
        out.push_str("  </child>\n");
    }
    out.push_str("</adag>\n");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::{TraceFile, TraceJob, read_dax, read_wfformat};
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        let job = |id: &str, inputs: Vec<u32>, outputs: Vec<u32>| TraceJob {
            id: id.into(),
            program: "p\"<&".into(),
            runtime: 1.25,
            cores: 1.0,
            inputs,
            outputs,
            ..TraceJob::default()
        };
        let file = |name: &str, size| TraceFile { name: name.into(), size };
        let trace = Trace {
            name: "w".to_owned(),
            jobs: vec![job("a", vec![0], vec![1]), job("b", vec![1], vec![])],
            files: vec![file("x", 5), file("y", 7)],
            arcs: vec![(0, 1)],
        };
        assert_eq!(read_dax(&write_dax(&trace)).unwrap(), trace);
        assert_eq!(read_wfformat(&write_wfformat(&trace).to_string()).unwrap(), trace);
    }
}
