//! What came of runs.

use super::send::send_file;
use super::{Front, Problem, Shared};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use std::path::PathBuf;

impl Front {
    /// Where a file is that is a result of a run. Only results can be had: nothing else has a number.
    pub(super) async fn result_file(&self, id: i64, result: &str, number: usize) -> Result<PathBuf, Problem> {
        let run = self.find(id).await?;
        let results = run.results.as_deref().and_then(|t| serde_json::from_str(t).ok());
        let results: Vec<(String, Vec<String>)> = results.unwrap_or_default();
        let values = results.into_iter().find(|(name, _)| name == result).map(|(_, values)| values);
        let value = values.and_then(|values| values.into_iter().nth(number));
        let what = || format!("result `{result}` number {number} of run {id}");
        value.map(PathBuf::from).ok_or_else(|| Problem::not_found(&what()))
    }
}

#[utoipa::path(
    get, path = "/runs/{id}/results/{result}/{number}",
    params(("id" = i64, Path), ("result" = String, Path), ("number" = usize, Path)),
    responses((status = 200, description = "The file"),
              (status = 206, description = "The part that was asked for with `Range: bytes=…`"),
              (status = 404, body = Problem), (status = 409, body = Problem))
)]
/// Gives a file that is a result of a run: of a named result, the one with this number, counted from 0
pub(super) async fn file(
    State(front): Shared,
    Path((id, result, number)): Path<(i64, String, usize)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let path = front.result_file(id, &result, number).await?;
    send_file(&path, &headers).await
}
