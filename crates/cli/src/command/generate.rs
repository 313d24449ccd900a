//! `catena generate`

use super::{Outcome, print};
use crate::arguments::{GenerateArgs, Shape};
use catena_simulate::generate::{self, Generated};
use std::fmt::Write;
use std::process::ExitCode;

pub(crate) fn generate(args: &GenerateArgs) -> Outcome {
    let mut graph = match &args.shape {
        Shape::Airsn { width, handle } => generate::airsn(*width, *handle),
        Shape::Inspiral { widths, ring } => generate::inspiral(widths, *ring),
        Shape::Montage { side, overlaps } => generate::montage(*side, overlaps.unwrap_or(usize::MAX)),
        Shape::Sdss { stripes, fields } => generate::sdss(*stripes, *fields),
        Shape::Layered { jobs, width, parents, skips } => {
            generate::layered(*jobs, *width, *parents, *skips, args.seed)
        }
    };
    if args.shuffle {
        graph = graph.shuffled(args.seed);
    }
    let text = dagman(&graph);
    match &args.output {
        Some(path) => std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?,
        None => print(&text),
    }
    Ok(ExitCode::SUCCESS)
}

/// A DAGMan file in which each job sleeps for a moment.
fn dagman(graph: &Generated) -> String {
    let mut out = String::from("SUBMIT-DESCRIPTION work {\n  executable = /bin/sleep\n  arguments = 1\n}\n");
    for name in &graph.names {
        let _ = writeln!(out, "JOB {name} work");
    }
    let mut arcs = graph.arcs.iter().peekable();
    while let Some((from, to)) = arcs.next() {
        let name = |job: u32| &graph.names[job as usize];
        let _ = write!(out, "PARENT {} CHILD {}", name(*from), name(*to));
        while let Some((_, next)) = arcs.next_if(|(f, _)| f == from) {
            let _ = write!(out, " {}", name(*next));
        }
        out.push('\n');
    }
    out
}
