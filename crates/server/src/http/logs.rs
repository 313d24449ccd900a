//! What tasks have written.

use super::send::wanted;
use super::{Front, Problem, Shared};
use crate::logs::log_file;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_data::{AgentSource, Patience};
use catena_model::Name;
use catena_model::chain::{ChainKey, RunId};
use catena_store::ChainRecord;
use futures_util::stream;
use serde::Deserialize;
use std::io::SeekFrom;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use utoipa::IntoParams;

/// How often a log that is followed is looked at.
const POLL: Duration = Duration::from_millis(200);
/// How much is read at a time.
const CHUNK: u64 = 256 << 10;

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
    /// Begin with this byte, where a log is followed.
    #[serde(default)]
    from: u64,
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
    let log = if front.places.mode().is_local() {
        front.log_of_agent(&record, attempt, &path).await?
    } else {
        Log::File(path)
    };
    if query.follow {
        let front = front.clone();
        let is_over = move || {
            let front = front.clone();
            async move {
                let record = front.member.store.chain(key).await.ok().flatten();
                record.is_none_or(|r| r.state.is_final() || r.attempt > attempt)
            }
        };
        return Ok(follow(log, query.from, is_over));
    }
    whole_or_part(log, &headers).await
}

/// A log that can be read.
#[derive(Clone)]
enum Log {
    /// In a file that this instance sees.
    File(PathBuf),
    /// With an agent that has files of its own.
    Agent { agent: Name, source: Arc<AgentSource>, run: i64, name: String },
}

impl Log {
    /// Some bytes from here on, none at its end, and how long it is so far. A task that has written nothing has no log.
    async fn read(&self, from: u64, most: u64) -> std::io::Result<(Vec<u8>, u64)> {
        match self {
            Self::File(path) => {
                let Ok(mut file) = File::open(path).await else { return Ok((Vec::new(), 0)) };
                let size = file.metadata().await?.len();
                file.seek(SeekFrom::Start(from)).await?;
                let mut chunk = Vec::new();
                file.take(most).read_to_end(&mut chunk).await?;
                Ok((chunk, size))
            }
            Self::Agent { agent, source, run, name } => {
                let (source, run, name) = (source.clone(), *run, name.clone());
                let read = tokio::task::spawn_blocking(move || source.log(run, &name, from..from + most));
                let read = read.await.map_err(std::io::Error::other)?;
                let away = |e| {
                    std::io::Error::other(format!("the log is on agent {agent}, which does not answer: {e}"))
                };
                let read = read.map_err(away)?;
                Ok(read.unwrap_or_default())
            }
        }
    }
}

impl Front {
    /// The log of an attempt on an agent that has files of its own.
    async fn log_of_agent(
        &self,
        record: &ChainRecord,
        attempt: u32,
        path: &FilePath,
    ) -> Result<Log, Problem> {
        let store = &self.member.store;
        let mut agent = record.agent.clone();
        if attempt != record.attempt {
            let failed = store.failed_attempts(record.key.run).await?;
            let of = |f: &&catena_store::FailedAttempt| f.key == record.key && f.attempt == attempt;
            agent = failed.iter().find(of).and_then(|f| f.agent.clone());
        }
        let agent = agent.ok_or_else(|| Problem::not_found("agent that has it"))?;
        let agents = store.agents().await?;
        let address = agents.into_iter().find(|a| a.id == agent).and_then(|a| a.data);
        let gone =
            || Problem::new(StatusCode::GONE, format!("the log is on agent {agent}, which is not there"));
        let address = address.ok_or_else(gone)?;
        let source = AgentSource::new(&address.url, Some(&address.token), Patience::default());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Log::Agent { agent, source: Arc::new(source), run: record.key.run.0, name })
    }
}

fn kind() -> [(header::HeaderName, &'static str); 2] {
    [(header::CONTENT_TYPE, "text/plain; charset=utf-8"), (header::ACCEPT_RANGES, "bytes")]
}

async fn whole_or_part(log: Log, headers: &HeaderMap) -> Result<Response, Problem> {
    let failed = |e: std::io::Error| Problem::new(StatusCode::BAD_GATEWAY, e.to_string());
    let (_, size) = log.read(0, 1).await.map_err(failed)?;
    let (first, last) = match wanted(headers, size) {
        Ok(None) => return Ok((kind(), Body::from_stream(read(log, 0, size))).into_response()),
        Ok(Some(part)) => part,
        Err(refusal) => return Ok(*refusal),
    };
    let content = format!("bytes {first}-{last}/{size}");
    let body = Body::from_stream(read(log, first, last + 1));
    Ok((StatusCode::PARTIAL_CONTENT, kind(), [(header::CONTENT_RANGE, content)], body).into_response())
}

/// A part of a log.
fn read(log: Log, first: u64, end: u64) -> impl stream::Stream<Item = std::io::Result<Vec<u8>>> {
    stream::unfold((log, first), move |(log, from)| async move {
        let most = CHUNK.min(end.saturating_sub(from));
        if most == 0 {
            return None;
        }
        match log.read(from, most).await {
            Ok((chunk, _)) if chunk.is_empty() => None,
            Ok((chunk, _)) => {
                let next = from + chunk.len() as u64;
                Some((Ok(chunk), (log, next)))
            }
            Err(e) => Some((Err(e), (log, end))),
        }
    })
}

/// A log as it grows, until what writes it is over.
fn follow<F>(log: Log, from: u64, is_over: impl Fn() -> F + Send + 'static) -> Response
where
    F: Future<Output = bool> + Send,
{
    let grown = stream::unfold((log, from, is_over, false), |(log, from, is_over, mut over)| async move {
        loop {
            // Who is away for a moment may come back.
            let (chunk, _) = log.read(from, CHUNK).await.unwrap_or_default();
            if !chunk.is_empty() {
                let next = from + chunk.len() as u64;
                return Some((Ok::<_, std::io::Error>(chunk), (log, next, is_over, over)));
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
