//! Compositions: what people edit together, its history, its versions, its locks.

use super::access::Caller;
use super::{Front, Problem, Shared, TokenRole, schema};
use crate::studio::new_session;
use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::{Message as Frame, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_compose::lock::Session;
use catena_compose::model::{Composition, WorkflowId, check, parse_composition, write};
use catena_compose::room::{
    Ask, Change, Code, Done, LARGEST_MESSAGE, LockView, Operation, Role, Said, Version,
};
use catena_store::CompositionHead;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Frames that are larger end the connection; messages that are larger than a room reads are refused.
const LARGEST_FRAME: usize = 16 * LARGEST_MESSAGE;

impl Caller {
    /// What the caller may do with a composition.
    fn role(&self, head: &CompositionHead) -> Role {
        match self.role {
            TokenRole::Operator => Role::Owner,
            TokenRole::Editor if self.name == head.creator => Role::Owner,
            TokenRole::Editor => Role::Editor,
            TokenRole::Viewer | TokenRole::Agent => Role::Viewer,
        }
    }
}

impl Front {
    async fn head(&self, id: &str) -> Result<CompositionHead, Problem> {
        let found = self.member.store.composition_head(id).await?;
        found.ok_or_else(|| Problem::not_found(&format!("composition {id}")))
    }

    /// A composition as it is, or a version of it.
    async fn composition(&self, id: &str, version: Option<&str>) -> Result<Composition, Problem> {
        let missing = || Problem::not_found(&format!("composition {id}"));
        match version {
            None => Ok(self.member.store.load_composition(id).await?.ok_or_else(missing)?.composition),
            Some(name) => {
                let found = self.member.store.composition_version(id, name).await?;
                found.ok_or_else(|| Problem::not_found(&format!("version {name} of composition {id}")))
            }
        }
    }

    async fn ask(&self, id: &str, caller: &Caller, ask: Ask) -> Result<Json<Done>, Problem> {
        let head = self.head(id).await?;
        match self.studio.ask(id, &caller.name, caller.role(&head), ask).await? {
            Said::Done { ok, .. } => Ok(Json(ok)),
            Said::Refused { error, .. } => {
                let status = match error.code {
                    Code::NotAllowed => StatusCode::FORBIDDEN,
                    Code::Unknown => StatusCode::NOT_FOUND,
                    Code::Malformed | Code::TooLarge => StatusCode::BAD_REQUEST,
                    Code::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
                    Code::Moved => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::CONFLICT,
                };
                let mut problem = Problem::new(status, error.message.clone());
                problem.details = serde_json::to_value(&error).ok();
                Err(problem)
            }
            Said::Event(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no answer")),
        }
    }
}

#[utoipa::path(get, path = "/compositions", responses((status = 200, body = Vec<schema::CompositionHead>)))]
/// Lists compositions
pub(super) async fn list(State(front): Shared) -> Result<Json<Vec<CompositionHead>>, Problem> {
    Ok(Json(front.member.store.compositions().await?))
}

#[utoipa::path(put, path = "/compositions/{id}", params(("id" = String, Path)),
    request_body(content = String, content_type = "application/yaml"),
    responses((status = 201, description = "Made"), (status = 200, description = "Changed"), (status = 422, body = Problem)))]
/// Makes a composition from its YAML form, or changes the one there is to be like it
pub(super) async fn put(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Done>), Problem> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if id.is_empty() || id.len() > 100 || !id.chars().all(good) {
        let error = format!("`{id}` cannot be the name of a composition; use letters, digits, `-` and `_`");
        return Err(Problem::new(StatusCode::BAD_REQUEST, error));
    }
    let text = std::str::from_utf8(&body)
        .map_err(|e| Problem::new(StatusCode::BAD_REQUEST, format!("the request is not UTF-8: {e}")))?;
    let composition = parse_composition(text).map_err(|diags| {
        let first = diags.iter().next().map(|d| format!("{}:{}: {}", d.span.line, d.span.column, d.message));
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            first.unwrap_or_else(|| "this is no composition".to_owned()),
        )
    })?;
    let now = front.member.now();
    if front.member.store.create_composition(&id, &caller.name, &composition, now).await? {
        return Ok((StatusCode::CREATED, Json(Done::default())));
    }
    let changes = vec![Change::Replace { composition }];
    let operation = Operation { changes, note: "imported".to_owned(), ..Operation::default() };
    Ok((StatusCode::OK, front.ask(&id, &caller, Ask::Do(operation)).await?))
}

/// Which form, and which version.
#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    form: Option<String>,
}

#[utoipa::path(get, path = "/compositions/{id}",
    params(("id" = String, Path), ("version" = Option<String>, Query), ("form" = Option<String>, Query, description = "yaml, json, or long for the ordinary language")),
    responses((status = 200, description = "The composition"), (status = 404, body = Problem)))]
/// Shows a composition, or a version of it
pub(super) async fn get(
    State(front): Shared,
    Path(id): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Response, Problem> {
    let composition = front.composition(&id, wanted.version.as_deref()).await?;
    let yaml = |text: String| ([(header::CONTENT_TYPE, "application/yaml")], text).into_response();
    Ok(match wanted.form.as_deref() {
        None | Some("yaml") => yaml(write(&composition)),
        Some("json") => Json(composition).into_response(),
        Some("long") => yaml(catena_compose::model::compile(&composition).text),
        Some(other) => {
            let error = format!("unknown form `{other}`; known are yaml, json and long");
            return Err(Problem::new(StatusCode::BAD_REQUEST, error));
        }
    })
}

#[utoipa::path(delete, path = "/compositions/{id}", params(("id" = String, Path)),
    responses((status = 204, description = "Removed"), (status = 404, body = Problem)))]
/// Removes a composition with its history
pub(super) async fn delete(State(front): Shared, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    if front.member.store.delete_composition(&id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(&format!("composition {id}")))
    }
}

/// Which part of a history.
#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    #[serde(default = "hundred")]
    limit: usize,
}

fn hundred() -> usize {
    100
}

fn values(texts: Vec<String>) -> Json<Vec<Value>> {
    Json(texts.iter().filter_map(|t| serde_json::from_str(t).ok()).collect())
}

#[utoipa::path(get, path = "/compositions/{id}/operations",
    params(("id" = String, Path), ("after" = Option<u64>, Query), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "Operations, oldest first")))]
/// Shows what was done to a composition
pub(super) async fn operations(
    State(front): Shared,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Vec<Value>>, Problem> {
    front.head(&id).await?;
    Ok(values(front.member.store.operations(&id, page.after, page.limit.min(10_000)).await?))
}

#[utoipa::path(post, path = "/compositions/{id}/operations", params(("id" = String, Path)),
    responses((status = 200, description = "Done"), (status = 409, body = Problem), (status = 422, body = Problem)))]
/// Changes a composition, under the same locks as everybody
pub(super) async fn operate(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(operation): Json<Operation>,
) -> Result<Json<Done>, Problem> {
    front.ask(&id, &caller, Ask::Do(operation)).await
}

#[utoipa::path(get, path = "/compositions/{id}/versions", params(("id" = String, Path)),
    responses((status = 200, description = "Versions, oldest first")))]
/// Lists the versions of a composition that have names
pub(super) async fn versions(
    State(front): Shared,
    Path(id): Path<String>,
) -> Result<Json<Vec<Value>>, Problem> {
    let saved = front.member.store.load_composition(&id).await?;
    let saved = saved.ok_or_else(|| Problem::not_found(&format!("composition {id}")))?;
    let is_published = |v: &Version| saved.published.as_ref().is_some_and(|p| p.name == v.name);
    let view = |v: &Version| {
        let mut view = serde_json::to_value(v).unwrap_or_default();
        view["published"] = is_published(v).into();
        view
    };
    Ok(Json(saved.named.iter().map(|(v, _)| view(v)).collect()))
}

/// A version.
#[derive(Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    name: Option<String>,
}

#[utoipa::path(post, path = "/compositions/{id}/versions", params(("id" = String, Path)),
    responses((status = 200, description = "Named"), (status = 422, body = Problem)))]
/// Gives what a composition is now a name
pub(super) async fn name(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(named): Json<Named>,
) -> Result<Json<Done>, Problem> {
    front.ask(&id, &caller, Ask::Name { name: named.name.unwrap_or_default() }).await
}

#[utoipa::path(post, path = "/compositions/{id}/publish", params(("id" = String, Path)),
    responses((status = 200, description = "Published"), (status = 422, body = Problem)))]
/// Makes a version, or what there is now, the one that runs
pub(super) async fn publish(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(named): Json<Named>,
) -> Result<Json<Done>, Problem> {
    front.ask(&id, &caller, Ask::Publish { name: named.name }).await
}

#[utoipa::path(get, path = "/compositions/{id}/locks", params(("id" = String, Path)),
    responses((status = 200, description = "Who has locked what, for how long")))]
/// Shows who has locked what
pub(super) async fn locks(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<Vec<LockView>>, Problem> {
    let viewer = Caller { role: TokenRole::Viewer, ..caller };
    let Json(done) = front.ask(&id, &viewer, Ask::State).await?;
    Ok(Json(done.state.map(|s| s.locks).unwrap_or_default()))
}

#[utoipa::path(get, path = "/compositions/{id}/lock-events",
    params(("id" = String, Path), ("limit" = Option<usize>, Query)),
    responses((status = 200, description = "What happened to locks, oldest first")))]
/// Shows what happened to locks: the audit log
pub(super) async fn lock_events(
    State(front): Shared,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Vec<Value>>, Problem> {
    front.head(&id).await?;
    Ok(values(front.member.store.lock_events(&id, page.limit.min(10_000)).await?))
}

/// Who connects.
#[derive(Deserialize)]
pub(super) struct Joining {
    /// The session that comes back, if one does.
    #[serde(default)]
    session: Option<u64>,
}

#[utoipa::path(get, path = "/compositions/{id}/live",
    params(("id" = String, Path), ("session" = Option<u64>, Query)),
    responses((status = 101, description = "A WebSocket"), (status = 404, body = Problem)))]
/// Edits a composition together with others, over a WebSocket
pub(super) async fn live(
    State(front): Shared,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(joining): Query<Joining>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    let head = front.head(&id).await?;
    let role = caller.role(&head);
    let session = Session(joining.session.filter(|s| *s > 0).unwrap_or_else(new_session));
    let upgrade = upgrade.max_message_size(LARGEST_FRAME).max_frame_size(LARGEST_FRAME);
    Ok(upgrade.on_upgrade(move |socket| converse(front, id, session, caller.name, role, socket)))
}

/// Carries what a session says and hears.
async fn converse(
    front: Arc<Front>,
    id: String,
    session: Session,
    user: String,
    role: Role,
    socket: WebSocket,
) {
    let Ok(mut inbox) = front.studio.connect(&id, session, &user, role).await else { return };
    let (mut to, mut from) = socket.split();
    loop {
        tokio::select! {
            text = inbox.recv() => {
                let Some(text) = text else { break };
                if to.feed(Frame::Text(text.to_string().into())).await.is_err() {
                    break;
                }
                // What has piled up goes together.
                while let Ok(text) = inbox.try_recv() {
                    if to.feed(Frame::Text(text.to_string().into())).await.is_err() {
                        break;
                    }
                }
                if to.flush().await.is_err() {
                    break;
                }
            }
            frame = from.next() => match frame {
                Some(Ok(Frame::Text(text))) => front.studio.says(session, text.to_string()).await,
                Some(Ok(Frame::Binary(_))) => front.studio.says(session, "binary".to_owned()).await,
                Some(Ok(Frame::Ping(_) | Frame::Pong(_))) => {}
                Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
            },
        }
    }
    front.studio.disconnect(session, inbox).await;
}

#[utoipa::path(get, path = "/compositions/{id}/check", params(("id" = String, Path), ("version" = Option<String>, Query)),
    responses((status = 200, description = "What is missing or wrong, and how often workflows are used")))]
/// Says what a composition still lacks
pub(super) async fn lacks(
    State(front): Shared,
    Path(id): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Result<Json<Value>, Problem> {
    let composition = front.composition(&id, wanted.version.as_deref()).await?;
    let uses = |w: &WorkflowId| (w.to_string(), json!(composition.uses(w)));
    let uses: serde_json::Map<String, Value> = composition.workflows.keys().map(uses).collect();
    Ok(Json(json!({"flaws": check(&composition), "uses": uses})))
}
