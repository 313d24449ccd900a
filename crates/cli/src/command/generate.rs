//! `catena generate`

use super::{Outcome, write_to};
use crate::arguments::{Format, GenerateArgs, Shape, Size};
use catena_model::Name;
use catena_model::import::{Trace, TraceJob, write_dax, write_wfformat};
use catena_simulate::generate::{self, Generated, Kind};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// How many jobs there are if nobody says so.
const JOBS: usize = 1000;

pub(crate) fn generate(args: &GenerateArgs) -> Outcome {
    let format = args.format.unwrap_or_else(|| format_of(args.output.as_deref()));
    let recorded = |kind: Kind, size: &Size| kind.trace(size.jobs.unwrap_or(JOBS), args.seed);
    // Where no size is asked for, a DAG file has the dag of the evaluation of prio.
    let is_bare = |size: &Size, is_shaped: bool| is_shaped || size.jobs.is_none() && format == Format::Dag;
    let trace = match &args.shape {
        Shape::Airsn { size, width, handle } if is_bare(size, width.or(*handle).is_some()) => {
            bare(generate::airsn(width.unwrap_or(250), handle.unwrap_or(21)))
        }
        Shape::Inspiral { size, widths, ring } if is_bare(size, widths.is_some() || ring.is_some()) => {
            let paper = [62, 62, 62, 62, 62, 62, 92, 92, 93, 93];
            bare(generate::inspiral(widths.as_deref().unwrap_or(&paper), ring.unwrap_or(6)))
        }
        Shape::Montage { size, side, overlaps } if is_bare(size, side.or(*overlaps).is_some()) => {
            bare(generate::montage(side.unwrap_or(37), overlaps.unwrap_or(usize::MAX)))
        }
        Shape::Sdss { size, stripes, fields } if is_bare(size, stripes.or(*fields).is_some()) => {
            bare(generate::sdss(stripes.unwrap_or(12), fields.unwrap_or(1000)))
        }
        Shape::Layered { size, width, parents, skips } if format == Format::Dag => {
            let jobs = size.jobs.unwrap_or(JOBS);
            bare(generate::layered(jobs, width.unwrap_or(100), *parents, *skips, args.seed))
        }
        Shape::Layered { size, width, parents, skips } => {
            generate::layered_trace(size.jobs.unwrap_or(JOBS), *width, *parents, *skips, args.seed)
        }
        Shape::Airsn { size, .. } => recorded(Kind::Airsn, size),
        Shape::Inspiral { size, .. } => recorded(Kind::Inspiral, size),
        Shape::Montage { size, .. } => recorded(Kind::Montage, size),
        Shape::Sdss { size, .. } => recorded(Kind::Sdss, size),
        Shape::Cybershake(size) => recorded(Kind::CyberShake, size),
        Shape::Epigenomics(size) => recorded(Kind::Epigenomics, size),
        Shape::Sipht(size) => recorded(Kind::Sipht, size),
    };
    let trace = if args.shuffle { generate::shuffled(trace, args.seed) } else { trace };
    write_to(args.output.as_deref(), |out| match format {
        Format::Dag => write_dag(&trace, out),
        Format::Dax => write_dax(&trace, out),
        Format::Wfformat => write_wfformat(&trace, out),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The language of a file by the end of its name.
fn format_of(path: Option<&Path>) -> Format {
    let extension = path.and_then(|p| p.extension()).unwrap_or_default().to_ascii_lowercase();
    match extension.to_str() {
        Some("xml" | "dax") => Format::Dax,
        Some("json") => Format::Wfformat,
        _ => Format::Dag,
    }
}

/// A dag whose jobs take a moment.
fn bare(graph: Generated) -> Trace {
    let job = |name: String| {
        let id = Name::from(name);
        TraceJob { program: id.clone(), id, runtime: 1.0, cores: 1.0, ..TraceJob::default() }
    };
    let jobs = graph.names.into_iter().map(job).collect();
    Trace { name: "dag".to_owned(), jobs, arcs: graph.arcs, ..Trace::default() }
}

/// A DAGMan file in which each job sleeps for as long as it takes.
fn write_dag(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let is_moment = |job: &TraceJob| job.runtime.to_bits() == 1.0_f64.to_bits();
    let all = trace.jobs.iter().all(is_moment);
    let seconds = if all { "1" } else { "$(seconds)" };
    write!(out, "SUBMIT-DESCRIPTION work {{\n  executable = /bin/sleep\n  arguments = {seconds}\n}}\n")?;
    for job in &trace.jobs {
        writeln!(out, "JOB {} work", job.id)?;
        if !all {
            writeln!(out, "VARS {} seconds=\"{}\"", job.id, job.runtime)?;
        }
    }
    let mut arcs = trace.arcs.iter().peekable();
    while let Some((from, to)) = arcs.next() {
        let name = |job: u32| &trace.jobs[job as usize].id;
        write!(out, "PARENT {} CHILD {}", name(*from), name(*to))?;
        while let Some((_, next)) = arcs.next_if(|(f, _)| f == from) {
            write!(out, " {}", name(*next))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
