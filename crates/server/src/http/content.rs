//! Files that come with runs, where agents have files of their own.

use super::{Front, Problem, Shared};
use crate::home::Home;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use catena_data::Pin;
use catena_model::chain::Produced;
use catena_model::content::ContentId;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// How long something stays that was sent for a run which nobody has submitted.
const PATIENCE: Duration = Duration::from_hours(1);
/// How many pieces of a file may be on their way to the disk.
const PIECES: usize = 16;

/// Where the files of runs are.
#[derive(Serialize, Deserialize, ToSchema)]
pub(super) struct StorageView {
    /// `shared`, `local` or `object`. Unless it is shared, files have to be sent with a run.
    mode: String,
}

/// What was sent for runs to come.
#[derive(Default)]
pub(super) struct Sent(Mutex<HashMap<ContentId, (Pin, Instant)>>);

impl Sent {
    fn add(&self, id: ContentId, pin: Pin) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, (_, since)| since.elapsed() < PATIENCE);
        sent.insert(id, (pin, Instant::now()));
    }
}

impl Front {
    pub(super) fn home(&self) -> Result<&Arc<Home>, Problem> {
        let shared = "files are not sent here: all machines see them in the same place";
        self.home.as_ref().ok_or_else(|| Problem::new(StatusCode::CONFLICT, shared))
    }

    /// Says what was not sent of what comes with a run.
    pub(super) fn check_files(&self, files: &[Produced]) -> Result<(), Problem> {
        if files.is_empty() {
            return Ok(());
        }
        let holdings = self.home()?.depot().holdings();
        match files.iter().find(|f| !holdings.holds(&f.artifact)) {
            None => Ok(()),
            Some(file) => {
                let what = format!("{} was not sent; PUT /content/{}", file.name, file.artifact.id());
                Err(Problem::new(StatusCode::CONFLICT, what))
            }
        }
    }
}

#[utoipa::path(get, path = "/storage", responses((status = 200, body = StorageView)))]
/// Says where the files of runs are
pub(super) async fn storage(State(front): Shared) -> Json<StorageView> {
    Json(StorageView { mode: front.places.mode().name().to_owned() })
}

#[utoipa::path(
    post, path = "/content/missing", request_body = Vec<String>,
    responses((status = 200, body = Vec<String>), (status = 409, body = Problem))
)]
/// Says which contents have to be sent, of those that come with a run
pub(super) async fn missing(
    State(front): Shared,
    Json(ids): Json<Vec<ContentId>>,
) -> Result<Json<Vec<ContentId>>, Problem> {
    let holdings = front.home()?.depot().holdings().clone();
    Ok(Json(ids.into_iter().filter(|id| !holdings.has(id)).collect()))
}

#[utoipa::path(
    put, path = "/content/{id}", params(("id" = String, Path)),
    responses((status = 204), (status = 400, body = Problem), (status = 409, body = Problem), (status = 507, body = Problem))
)]
/// Takes content that comes with a run: a file, or the manifest of a directory
pub(super) async fn put(
    State(front): Shared,
    Path(id): Path<String>,
    body: Body,
) -> Result<StatusCode, Problem> {
    let bad = |what: String| Problem::new(StatusCode::BAD_REQUEST, what);
    let id: ContentId = id.parse().map_err(|e| bad(format!("{id}: {e}")))?;
    let home = front.home()?.clone();
    let (pieces, read) = mpsc::sync_channel(PIECES);
    let written =
        tokio::task::spawn_blocking(move || home.receive(&mut Pieces { read, rest: Bytes::new() }, 0));
    let mut body = body.into_data_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|e| io::Error::other(e.to_string()));
        let failed = piece.is_err();
        let pieces = pieces.clone();
        // The disk may be slower than the network.
        let sent = tokio::task::spawn_blocking(move || pieces.send(piece)).await;
        if failed || !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    drop(pieces);
    let full = |e: String| Problem::new(StatusCode::INSUFFICIENT_STORAGE, e);
    let (artifact, pin) = written.await.map_err(|e| full(e.to_string()))?.map_err(|e| full(e.to_string()))?;
    if artifact.id() != id {
        return Err(bad(format!("what was sent is {} and not {id}", artifact.id())));
    }
    front.sent.add(id, pin);
    Ok(StatusCode::NO_CONTENT)
}

/// A body that arrives in pieces.
struct Pieces {
    read: mpsc::Receiver<io::Result<Bytes>>,
    rest: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.read.recv() {
                Ok(piece) => self.rest = piece?,
                Err(_) => return Ok(0),
            }
        }
        let n = buffer.len().min(self.rest.len());
        buffer[..n].copy_from_slice(&self.rest.split_to(n));
        Ok(n)
    }
}
