//! `catena report`
use super::Outcome;
use crate::arguments::{Arguments, ReportArgs};
pub(crate) fn report(_args: &ReportArgs, _arguments: &Arguments) -> Outcome { Err("later".into()) }
