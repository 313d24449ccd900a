//! `catena graph`

use super::{EXIT_USAGE, Outcome, load_valid, print};
use crate::arguments::{GraphArgs, GraphFormat, SourceArgs};
use crate::jobs::{is_dagman, read_dagman};
use crate::render::graph::{dot, mermaid, svg};
use catena_plan::StepGraph;
use std::process::ExitCode;

fn read(source: &SourceArgs) -> Result<StepGraph, ExitCode> {
    if is_dagman(&source.workflow) {
        let dag = read_dagman(&source.workflow)?;
        return Ok(StepGraph::of_dag(&dag.dag));
    }
    let loaded = load_valid(source)?;
    let Some(workflow) = &loaded.expanded else {
        eprintln!("error: only workflows can be drawn");
        return Err(ExitCode::from(EXIT_USAGE));
    };
    Ok(StepGraph::new(workflow, &loaded.library))
}

pub(crate) fn graph(args: &GraphArgs) -> Outcome {
    let graph = match read(&args.source) {
        Ok(graph) => graph,
        Err(code) => return Ok(code),
    };
    let extension = args.output.as_ref().and_then(|p| p.extension()).and_then(|e| e.to_str());
    let format = args.format.unwrap_or(match extension {
        Some("dot" | "gv") => GraphFormat::Dot,
        Some("mmd" | "md" | "mermaid") => GraphFormat::Mermaid,
        _ => GraphFormat::Svg,
    });
    let text = match format {
        GraphFormat::Svg => svg(&graph),
        GraphFormat::Dot => dot(&graph),
        GraphFormat::Mermaid => mermaid(&graph),
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?,
        None => print(&text),
    }
    Ok(ExitCode::SUCCESS)
}
