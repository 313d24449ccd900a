//! `catena graph`

use super::{Outcome, load_valid, print};
use crate::arguments::{GraphArgs, GraphFormat};
use crate::render::graph::Graph;
use std::process::ExitCode;

pub(crate) fn graph(args: &GraphArgs) -> Outcome {
    let loaded = match load_valid(&args.source) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let workflow = loaded.expanded.as_ref().ok_or("only workflows can be drawn")?;
    let graph = Graph::new(workflow, &loaded.library);
    let extension = args.output.as_ref().and_then(|p| p.extension()).and_then(|e| e.to_str());
    let format = args.format.unwrap_or(match extension {
        Some("dot" | "gv") => GraphFormat::Dot,
        Some("mmd" | "md" | "mermaid") => GraphFormat::Mermaid,
        _ => GraphFormat::Svg,
    });
    let text = match format {
        GraphFormat::Svg => graph.to_svg(),
        GraphFormat::Dot => graph.to_dot(),
        GraphFormat::Mermaid => graph.to_mermaid(),
    };
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?,
        None => print(&text),
    }
    Ok(ExitCode::SUCCESS)
}
