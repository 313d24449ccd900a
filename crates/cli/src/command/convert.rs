//! `catena convert`

use super::{Outcome, load_valid, print};
use crate::arguments::{ConvertArgs, Form};
use catena_model::to_long_form;
use std::process::ExitCode;

pub(crate) fn convert(args: &ConvertArgs) -> Outcome {
    let loaded = match load_valid(&args.source) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let workflow = loaded.expanded.as_ref().ok_or("only workflows can be converted")?;
    match args.to {
        Form::Long => print(&to_long_form(workflow, &loaded.library)),
    }
    Ok(ExitCode::SUCCESS)
}
