//! `catena convert`

use super::{Outcome, load_valid, write_to};
use crate::arguments::{ConvertArgs, Form};
use crate::jobs::{read_trace, trace_of};
use catena_model::import::{StandIn, write_dax, write_wfformat};
use catena_model::to_long_form;
use std::process::ExitCode;

pub(crate) fn convert(args: &ConvertArgs) -> Outcome {
    match args.to {
        Form::Long => long(args),
        Form::Composition => composition(args),
        Form::Dax | Form::Wfformat => recorded(args),
        Form::StandIn => stand_in(args),
    }
}

fn long(args: &ConvertArgs) -> Outcome {
    if read_trace(&args.source.workflow).is_some() {
        return Err(
            "a recorded workflow has no commands: it can be converted to dax, wfformat and stand-in only"
                .to_owned(),
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

fn composition(args: &ConvertArgs) -> Outcome {
    match super::compose::composition(&args.source)? {
        Ok(composition) => {
            let text = catena_compose::model::write(&composition);
            write_to(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(code) => Ok(code),
    }
}

/// What is recorded has runtimes and files; of other workflows only their jobs and dependencies are known.
fn recorded(args: &ConvertArgs) -> Outcome {
    let trace = match trace_of(&args.source) {
        Ok((trace, _)) => trace,
        Err(code) => return Ok(code),
    };
    write_to(args.output.as_deref(), |out| match args.to {
        Form::Wfformat => write_wfformat(&trace, out),
        Form::Dax | Form::Long | Form::Composition | Form::StandIn => write_dax(&trace, out),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A workflow and the files it reads, in a directory.
fn stand_in(args: &ConvertArgs) -> Outcome {
    let trace = match read_trace(&args.source.workflow) {
        Some(trace) => trace?,
        None => {
            let known = "DAX, WfFormat or Pegasus";
            return Err(format!("only workflows with runtimes and files have a stand-in: {known}"));
        }
    };
    let directory = args.output.as_deref().ok_or("a stand-in is a directory: say which with -o DIR")?;
    StandIn::new(&trace).write(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
