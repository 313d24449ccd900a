//! Brings what came of a workflow to where its user looks for it.

use crate::book::Book;
use crate::execute::{Holders, bring_all};
use crate::matter::{Finished, Lost, TaskEnding};
use catena_data::Depot;
use catena_server::{PublishedResult, bring_results};
use std::fs;
use std::path::Path;
use thiserror::Error;

/// Why results are not there.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// Nobody has one of them any more: the task that wrote it has to be executed again.
    #[error("{}", .0.message)]
    Lost(Lost),
    /// They cannot be put where they belong.
    #[error("{0}")]
    Place(String),
}

/// Gets the results of a workflow and puts them below `out`, as a run on one machine does. They are put together in `work`,
/// which should be on the same file system as the depot.
pub fn fetch_results(
    depot: &Depot,
    finished: &Finished,
    work: &Path,
    out: &Path,
) -> Result<Vec<PublishedResult>, ResultsError> {
    let holders = Holders { book: &Book::default(), others: &[] };
    let _pins = match bring_all(depot, &finished.files, holders, &|| true) {
        Some(Err(TaskEnding::Lost(lost))) => return Err(ResultsError::Lost(lost)),
        Some(Err(TaskEnding::Failed(failure))) => return Err(ResultsError::Place(failure.message)),
        brought => brought,
    };
    let supplies: Vec<_> = finished.files.iter().map(|i| i.supply.clone()).collect();
    let work = work.join(finished.run.to_string());
    // What was left by a process that died must not be in the way.
    let _ = fs::remove_dir_all(&work);
    let published = bring_results(depot, &supplies, &finished.results, &work, (&finished.stored, out));
    let _ = fs::remove_dir_all(&work);
    published.map_err(ResultsError::Place)
}
