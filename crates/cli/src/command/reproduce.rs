//! `catena reproduce`

use super::Outcome;
use crate::arguments::ReproduceCommand;

pub(crate) fn reproduce(command: &ReproduceCommand) -> Outcome {
    let ReproduceCommand::Steep(_) = command;
    Err("not yet".to_owned())
}
