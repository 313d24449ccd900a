//! `catena graph`
use super::Outcome;
use crate::arguments::GraphArgs;
pub(crate) fn graph(_args: &GraphArgs) -> Outcome { Err("later".into()) }
