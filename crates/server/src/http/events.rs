//! What happens, as it happens: server-sent events.

use super::{Front, Problem, Shared};
use crate::event::RunEvent;
use crate::view::summary;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, KeepAliveStream, Sse};
use catena_model::chain::RunId;
use catena_store::Counts;
use futures_util::stream::{self, Stream};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};

/// How often to look into the store, in case messages do not arrive.
const LOOK: Duration = Duration::from_secs(1);

type Boxed = Pin<Box<dyn Stream<Item = Result<Event, Infallible>> + Send>>;
type Events = Sse<KeepAliveStream<Boxed>>;

#[utoipa::path(get, path = "/events",
    responses((status = 200, description = "Events of all runs, one JSON object each", content_type = "text/event-stream")))]
/// Streams what happens in all runs
pub(super) async fn all(State(front): Shared) -> Events {
    let receiver = front.events.subscribe();
    let events = stream::unfold(receiver, |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok(event) => return Some((Ok(message(&event)), receiver)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    Sse::new(Box::pin(events) as Boxed).keep_alive(KeepAlive::default())
}

fn message(event: &serde_json::Value) -> Event {
    Event::default().data(event.to_string())
}

#[utoipa::path(get, path = "/runs/{id}/events", params(("id" = i64, Path)),
    responses((status = 200, description = "Events of a run until it ends", content_type = "text/event-stream"),
              (status = 404, body = Problem)))]
/// Streams what happens in a run, until it ends
pub(super) async fn of_run(State(front): Shared, Path(id): Path<i64>) -> Result<Events, Problem> {
    // Listening begins before looking, so that nothing falls in between.
    let receiver = front.events.subscribe();
    let run = RunId(id);
    if front.member.store.run(run).await?.is_none() {
        return Err(Problem::not_found(&format!("run {id}")));
    }
    let watch = Watch { front: front.clone(), receiver, run, counts: Counts::default(), over: false };
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok(message(&event)), watch))
    });
    Ok(Sse::new(Box::pin(events) as Boxed).keep_alive(KeepAlive::default()))
}

/// Somebody watches a run.
struct Watch {
    front: Arc<Front>,
    receiver: broadcast::Receiver<serde_json::Value>,
    run: RunId,
    counts: Counts,
    over: bool,
}

impl Watch {
    async fn next(&mut self) -> Option<serde_json::Value> {
        while !self.over {
            let heard = tokio::time::timeout(LOOK, self.receiver.recv()).await;
            match heard {
                Ok(Ok(event)) if event["run"] == self.run.0 => {
                    self.over = event["event"] == "ended";
                    return Some(event);
                }
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => {}
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => {
                    if let Some(event) = self.look().await {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    /// What the store knows and messages have not told.
    async fn look(&mut self) -> Option<serde_json::Value> {
        let store = &self.front.member.store;
        let run = store.run(self.run).await.ok()??;
        let counts = store.counts(self.run).await.ok()?;
        if run.state.is_final() {
            self.over = true;
            let summary = summary(&**store, &run).await.ok()?;
            return serde_json::to_value(RunEvent::Ended(summary)).ok();
        }
        if counts == self.counts {
            return None;
        }
        self.counts = counts;
        let progress = RunEvent::Progress {
            run: self.run,
            counts,
            tasks_done: counts.succeeded,
            tasks_known: counts.total(),
            growing: true,
        };
        serde_json::to_value(progress).ok()
    }
}
