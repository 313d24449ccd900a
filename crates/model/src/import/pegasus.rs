//! Pegasus 5: workflows in YAML.

use super::{Builder, Trace, TraceJob};
use crate::Name;
use crate::diag::Diagnostics;
use crate::yaml;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    name: String,
    jobs: Vec<Job>,
    #[serde(default)]
    job_dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Job {
    id: String,
    name: Option<String>,
    #[serde(default)]
    uses: Vec<Use>,
    #[serde(default)]
    profiles: Value,
}

#[derive(Deserialize)]
struct Use {
    lfn: String,
    #[serde(rename = "type")]
    kind: String,
    size: Option<f64>,
}

#[derive(Deserialize)]
struct Dependency {
    id: String,
    #[serde(default)]
    children: Vec<String>,
}

/// Reads a workflow of Pegasus 5. What is no YAML is told with its line and column.
pub fn read_pegasus(text: &str) -> Result<Trace, String> {
    let mut diags = Diagnostics::default();
    let nodes = yaml::parse(text, 0, &mut diags);
    if let Some(d) = diags.iter().next() {
        return Err(format!("{}:{}: {}", d.span.line, d.span.column, d.message));
    }
    let value = nodes.first().map(yaml::Node::to_value).unwrap_or_default();
    let document: Document = serde_json::from_value(value).map_err(|e| e.to_string())?;
    let mut builder = Builder::default();
    builder.trace.name = document.name;
    for job in document.jobs {
        let profile = |key: &str| {
            let value = &job.profiles["pegasus"][key];
            value.as_f64().or_else(|| value.as_str().and_then(|t| t.parse().ok()))
        };
        let number = builder.job(TraceJob {
            program: Name::new(job.name.as_deref().unwrap_or(&job.id)),
            id: Name::new(&job.id),
            runtime: profile("runtime").unwrap_or(0.0),
            cores: profile("cores").unwrap_or(1.0),
            // In megabytes.
            memory: (profile("memory").unwrap_or(0.0) * 1e6) as u64,
            ..TraceJob::default()
        })?;
        for file in &job.uses {
            builder.uses(number, &file.lfn, file.size, file.kind != "output");
        }
    }
    for Dependency { id, children } in &document.job_dependencies {
        let from = builder.find(id)?;
        for child in children {
            let to = builder.find(child)?;
            builder.trace.arcs.push((from, to));
        }
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_read() {
        let text = "pegasus: '5.0'\nname: w\njobs:\n- type: job\n  name: split\n  id: ID1\n  uses:\n  - { lfn: a.txt, type: input, size: 10 }\n  - { lfn: b.txt, type: output }\n  profiles: { pegasus: { runtime: '12', cores: 2 } }\n- { type: job, name: wc, id: ID2, uses: [] }\njobDependencies:\n- { id: ID1, children: [ID2] }\n";
        let trace = read_pegasus(text).unwrap();
        assert_eq!((trace.jobs[0].runtime, trace.jobs[0].cores, &trace.arcs[..]), (12.0, 2.0, &[(0, 1)][..]));
        assert_eq!(trace.files[0].size, 10);
        assert!(read_pegasus("jobs: []\njobDependencies: [{ id: x }]").unwrap_err().contains("no job `x`"));
        assert!(read_pegasus("a: [").unwrap_err().starts_with("2:1: "));
    }
}
