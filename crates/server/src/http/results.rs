//! What came of runs.

use super::{Front, Problem, Shared};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::path::PathBuf;
use tokio::fs::File;
use tokio::io::AsyncReadExt;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

impl Front {
    /// Where a file is that is a result of a run. Only results can be had: nothing else has a number.
    async fn result_file(&self, id: i64, result: &str, number: usize) -> Result<PathBuf, Problem> {
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
    responses((status = 200, description = "The file"), (status = 404, body = Problem), (status = 409, body = Problem))
)]
/// Gives a file that is a result of a run: of a named result, the one with this number, counted from 0
pub(super) async fn file(
    State(front): Shared,
    Path((id, result, number)): Path<(i64, String, usize)>,
) -> Result<Response, Problem> {
    let path = front.result_file(id, &result, number).await?;
    let absent = |e: std::io::Error| {
        let what = format!("{} is not on this instance: {e}", path.display());
        Problem::new(StatusCode::CONFLICT, what)
    };
    let file = File::open(&path).await.map_err(absent)?;
    let meta = file.metadata().await.map_err(absent)?;
    if !meta.is_file() {
        return Err(Problem::new(StatusCode::CONFLICT, format!("{} is no file", path.display())));
    }
    let pieces = stream::unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(n) => {
                chunk.truncate(n);
                Some((Ok(chunk), file))
            }
            Err(e) => Some((Err(e), file)),
        }
    });
    let kind = [(header::CONTENT_TYPE, "application/octet-stream".to_owned())];
    let length = [(header::CONTENT_LENGTH, meta.len().to_string())];
    Ok((kind, length, Body::from_stream(pieces)).into_response())
}
