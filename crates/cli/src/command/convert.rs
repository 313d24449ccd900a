//! `catena convert`

use super::{EXIT_USAGE, Outcome, load_valid, write_to};
use crate::arguments::{ConvertArgs, Form};
use crate::jobs::{read_jobs, read_trace};
use catena_model::import::{Trace, TraceJob, write_dax, write_wfformat};
use catena_model::to_long_form;
use std::process::ExitCode;

pub(crate) fn convert(args: &ConvertArgs) -> Outcome {
    match args.to {
        Form::Long => long(args),
        Form::Dax | Form::Wfformat => recorded(args),
    }
}

fn long(args: &ConvertArgs) -> Outcome {
    if read_trace(&args.source.workflow).is_some() {
        return Err(
            "a recorded workflow has no commands: it can be converted to dax and wfformat only".to_owned()
        );
    }
    let loaded = match load_valid(&args.source) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let workflow = loaded.expanded.as_ref().ok_or("only workflows can be converted")?;
    let text = to_long_form(workflow, &loaded.library);
    write_to(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}

/// What is recorded has runtimes and files; of other workflows only their jobs and dependencies are known.
fn recorded(args: &ConvertArgs) -> Outcome {
    let path = &args.source.workflow;
    let trace = match read_trace(path) {
        Some(Ok(trace)) => trace,
        Some(Err(message)) => {
            eprintln!("error: {message}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
        None => {
            let jobs = match read_jobs(&args.source) {
                Ok(jobs) => jobs,
                Err(code) => return Ok(code),
            };
            let job = |id: catena_model::Name| TraceJob {
                program: id.clone(),
                id,
                cores: 1.0,
                ..TraceJob::default()
            };
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let arcs = jobs.dag.arcs().collect();
            Trace { name, jobs: jobs.names.into_iter().map(job).collect(), arcs, ..Trace::default() }
        }
    };
    write_to(args.output.as_deref(), |out| match args.to {
        Form::Wfformat => write_wfformat(&trace, out),
        Form::Dax | Form::Long => write_dax(&trace, out),
    })?;
    Ok(ExitCode::SUCCESS)
}
