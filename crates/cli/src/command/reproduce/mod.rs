//! `catena reproduce`: the experiments of a paper.

mod adage;
mod collab;
mod data;
mod prio;
mod space;
mod steep;

use super::Outcome;
use crate::arguments::ReproduceCommand;

pub(crate) fn reproduce(command: &ReproduceCommand) -> Outcome {
    match command {
        ReproduceCommand::Steep(args) => steep::reproduce(args),
        ReproduceCommand::Prio(args) => prio::reproduce(args),
        ReproduceCommand::Adage(args) => adage::reproduce(args),
        ReproduceCommand::Data(args) => data::reproduce(args),
        ReproduceCommand::Space(args) => space::reproduce(args),
        ReproduceCommand::Collab(args) => collab::reproduce(args),
    }
}
