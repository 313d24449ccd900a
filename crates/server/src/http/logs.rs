//! What tasks have written.

use super::{Problem, Shared};
use crate::logs::log_file;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_model::chain::{ChainKey, RunId};
use futures_util::stream;
use serde::Deserialize;
use std::io::SeekFrom;
use std::path::PathBuf;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use utoipa::IntoParams;

/// How often a log that is followed is looked at.
const POLL: Duration = Duration::from_millis(200);
/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// Which log.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct LogQuery {
    /// Which task of the chain, counted from 0.
    #[serde(default)]
    task: usize,
    /// Which attempt; the newest if none is named.
    attempt: Option<u32>,
    /// `out` or `err`.
    stream: Option<String>,
    /// Go on until the chain has ended.
    #[serde(default)]
    follow: bool,
}

#[utoipa::path(
    get, path = "/runs/{id}/chains/{chain}/log", params(("id" = i64, Path), ("chain" = u64, Path), LogQuery),
    responses((status = 200, description = "What the task has written"),
              (status = 206, description = "The part that was asked for with `Range: bytes=…`"),
              (status = 404, body = Problem))
)]
/// Shows what a task has written, as a whole, in part, or as it is written
pub(super) async fn log(
    State(front): Shared,
    Path((id, seq)): Path<(i64, u64)>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let key = ChainKey { run: RunId(id), seq };
    let record = front.member.store.chain(key).await?;
    let record = record.ok_or_else(|| Problem::not_found(&format!("chain {seq} in run {id}")))?;
    let context = front.places.context(&*front.member.store, key.run).await?;
    let context = context.ok_or_else(|| Problem::not_found(&format!("run {id}")))?;
    let attempt = query.attempt.unwrap_or(record.attempt);
    let error = query.stream.as_deref() == Some("err");
    let path = log_file(&context.logs, seq, attempt, query.task, error);
    if query.follow {
        let front = front.clone();
        let is_over = move || {
            let front = front.clone();
            async move {
                let record = front.member.store.chain(key).await.ok().flatten();
                record.is_none_or(|r| r.state.is_final() || r.attempt > attempt)
            }
        };
        return Ok(follow(path, is_over));
    }
    whole_or_part(path, &headers).await
}

fn kind() -> [(header::HeaderName, &'static str); 2] {
    [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::ACCEPT_RANGES, "bytes")]
}

async fn whole_or_part(path: PathBuf, headers: &HeaderMap) -> Result<Response, Problem> {
    let Ok(mut file) = File::open(&path).await else {
        // A task that has written nothing has no file.
        return Ok((kind(), String::new()).into_response());
    };
    let failed = |e: std::io::Error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string());
    let size = file.metadata().await.map_err(failed)?.len();
    let range = headers.get(header::RANGE).and_then(|h| h.to_str().ok());
    let Some(range) = range else {
        return Ok((kind(), Body::from_stream(read(file, size))).into_response());
    };
    let Some((first, last)) = parse_range(range, size) else {
        let total = format!("bytes */{size}");
        let problem = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the log has {size} bytes"));
        return Ok(([(header::CONTENT_RANGE, total)], problem).into_response());
    };
    file.seek(SeekFrom::Start(first)).await.map_err(failed)?;
    let content = format!("bytes {first}-{last}/{size}");
    let body = Body::from_stream(read(file, last + 1 - first));
    Ok((StatusCode::PARTIAL_CONTENT, kind(), [(header::CONTENT_RANGE, content)], body).into_response())
}

/// The first and last byte of `bytes=a-b`, `bytes=a-` or `bytes=-n`.
fn parse_range(range: &str, size: u64) -> Option<(u64, u64)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first.trim(), last.trim()) {
        ("", n) => (size.saturating_sub(n.parse().ok()?), size.checked_sub(1)?),
        (a, "") => (a.parse().ok()?, size.checked_sub(1)?),
        (a, b) => (a.parse().ok()?, b.parse::<u64>().ok()?.min(size.checked_sub(1)?)),
    };
    (first <= last).then_some((first, last))
}

/// Up to so many bytes of a file.
fn read(file: File, limit: u64) -> impl stream::Stream<Item = std::io::Result<Vec<u8>>> {
    stream::unfold((file, limit), |(mut file, left)| async move {
        if left == 0 {
            return None;
        }
        let mut chunk = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
        match file.read(&mut chunk).await {
            Ok(0) => None,
            Ok(n) => {
                chunk.truncate(n);
                Some((Ok(chunk), (file, left - n as u64)))
            }
            Err(e) => Some((Err(e), (file, 0))),
        }
    })
}

/// A file as it grows, until what writes it is over.
fn follow<F>(path: PathBuf, is_over: impl Fn() -> F + Send + 'static) -> Response
where
    F: Future<Output = bool> + Send,
{
    let start = (None::<File>, path, is_over, false);
    let grown = stream::unfold(start, |(mut file, path, is_over, mut over)| async move {
        loop {
            if file.is_none() {
                file = File::open(&path).await.ok();
            }
            if let Some(open) = &mut file {
                let mut chunk = vec![0; CHUNK];
                let n = open.read(&mut chunk).await.unwrap_or(0);
                if n > 0 {
                    chunk.truncate(n);
                    return Some((Ok::<_, std::io::Error>(chunk), (file, path, is_over, over)));
                }
            }
            if over {
                return None;
            }
            // What was written just before the end is read in one more round.
            over = is_over().await;
            if !over {
                tokio::time::sleep(POLL).await;
            }
        }
    });
    (kind(), Body::from_stream(grown)).into_response()
}

#[cfg(test)]
mod tests {
    use super::parse_range;

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(parse_range("bytes=0-9", 100), Some((0, 9)));
        assert_eq!(parse_range("bytes=90-", 100), Some((90, 99)));
        assert_eq!(parse_range("bytes=-5", 100), Some((95, 99)));
        assert_eq!(parse_range("bytes=50-500", 100), Some((50, 99)));
        assert_eq!(parse_range("bytes=-500", 100), Some((0, 99)));
        for wrong in ["bytes=100-", "bytes=9-3", "lines=1-2", "bytes=a-b", "bytes=0-"] {
            let size = if wrong == "bytes=0-" { 0 } else { 100 };
            assert_eq!(parse_range(wrong, size), None, "{wrong}");
        }
    }
}
