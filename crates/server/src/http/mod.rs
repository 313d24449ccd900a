//! The HTTP interface: runs, chains, logs, agents, the fleet, events, metrics; and the workbench that uses it.

mod access;
mod chain;
mod cluster;
mod compositions;
mod content;
mod docs;
mod events;
mod logs;
mod pictures;
mod results;
mod runs;
pub(crate) mod schema;
mod send;
mod simulate;
mod why;
mod workbench;

pub use access::{Access, TokenRole, hash_token, new_token};
pub use runs::Submission;

use crate::board::Boards;
use crate::desk::{Desk, StoreDesk};
use crate::home::Home;
use crate::member::Member;
use crate::places::Places;
use crate::studio::Studio;
use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use catena_bus::{Message, subject};
use catena_fleet::{Pool, Setup};
use catena_model::Library;
use catena_store::StoreError;
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, broadcast, watch};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How the HTTP interface is set up.
pub struct HttpSetup {
    /// Where it listens, bound already so that mistakes are found at once.
    pub listener: std::net::TcpListener,
    /// The largest request.
    pub max_request: u64,
    /// Who may do what.
    pub access: Access,
    /// Files with services and macros that every workflow may use.
    pub services: Vec<PathBuf>,
    /// Files with macros.
    pub macros: Vec<PathBuf>,
    /// The services in them, to be shown.
    pub library: Library,
    /// What machines can be made from.
    pub setups: Vec<Setup>,
    /// Limits on machines with certain capabilities.
    pub pools: Vec<Pool>,
    /// Directories whose files may be shown to everybody who may look at a run that names them. What runs have written
    /// may be in any case.
    pub readable: Vec<PathBuf>,
    /// So much waiting counts as much as one point of priority.
    pub aging: Duration,
}

/// What requests need.
pub(crate) struct Front {
    member: Arc<Member>,
    places: Arc<Places>,
    desk: StoreDesk,
    events: broadcast::Sender<serde_json::Value>,
    setup: HttpSetup,
    /// Where files that come with runs are held, where agents have files of their own.
    home: Option<Arc<Home>>,
    sent: content::Sent,
    /// Lets people edit together.
    studio: Arc<Studio>,
    /// What pictures of runs are drawn from.
    boards: Boards,
    /// How many simulations may go on at the same time.
    simulations: Arc<Semaphore>,
}

type Shared = axum::extract::State<Arc<Front>>;

/// What went wrong, as it is told to a client.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What went wrong.
    error: String,
    /// Details, such as the mistakes in a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    details: Option<serde_json::Value>,
    #[serde(skip)]
    status: u16,
}

impl Problem {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { error: error.into(), details: None, status: status.as_u16() }
    }

    fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what}"))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Self {
        let status = if e.is_transient() {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Self::new(status, e.to_string())
    }
}

#[derive(OpenApi)]
#[openapi(
    components(schemas(schema::Mistake)),
    info(
        title = "Catena",
        description = "Runs scientific workflows. Every request but those for /health, /openapi.json, /docs and the workbench at /ui carries a token: `Authorization: Bearer …`."
    )
)]
struct Api;

/// The requests that can be made, and their description.
fn router() -> (axum::Router<Arc<Front>>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(runs::list, runs::submit))
        .routes(routes!(runs::get, runs::delete))
        .routes(routes!(runs::workflow))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::pause))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::retry))
        .routes(routes!(runs::prioritise))
        .routes(routes!(runs::chains))
        .routes(routes!(chain::chain))
        .routes(routes!(chain::file))
        .routes(routes!(why::why))
        .routes(routes!(pictures::board))
        .routes(routes!(pictures::graph))
        .routes(routes!(pictures::critical_path))
        .routes(routes!(pictures::provenance))
        .routes(routes!(runs::again))
        .routes(routes!(runs::check))
        .routes(routes!(runs::search))
        .routes(routes!(results::file))
        .routes(routes!(pictures::result_provenance))
        .routes(routes!(content::storage))
        .routes(routes!(content::missing))
        .routes(routes!(content::put))
        .routes(routes!(logs::log))
        .routes(routes!(events::of_run))
        .routes(routes!(events::all))
        .routes(routes!(compositions::list))
        .routes(routes!(compositions::get, compositions::put, compositions::delete))
        .routes(routes!(compositions::operations, compositions::operate))
        .routes(routes!(compositions::versions, compositions::name))
        .routes(routes!(compositions::publish))
        .routes(routes!(compositions::locks))
        .routes(routes!(compositions::lock_events))
        .routes(routes!(compositions::lacks))
        .routes(routes!(compositions::live))
        .routes(routes!(cluster::agents))
        .routes(routes!(cluster::agent))
        .routes(routes!(cluster::visit))
        .routes(routes!(cluster::shut_down))
        .routes(routes!(cluster::fleet))
        .routes(routes!(why::waiting))
        .routes(routes!(simulate::choices, simulate::simulate))
        .routes(routes!(cluster::instances))
        .routes(routes!(cluster::services))
        .routes(routes!(cluster::service))
        .routes(routes!(cluster::health))
        .routes(routes!(cluster::metrics))
        .routes(routes!(cluster::whoami))
        .split_for_parts()
}

/// The description of the interface, in the OpenAPI format.
pub fn openapi() -> serde_json::Value {
    serde_json::to_value(router().1).unwrap_or_default()
}

impl Front {
    pub(crate) fn new(
        member: Arc<Member>,
        places: Arc<Places>,
        home: Option<Arc<Home>>,
        setup: HttpSetup,
    ) -> Self {
        let desk = StoreDesk::new(member.store.clone(), places.clone());
        let (events, sent) = (broadcast::channel(1024).0, content::Sent::default());
        let studio = Studio::new(member.clone());
        let (boards, simulations) = (Boards::default(), Arc::new(Semaphore::new(simulate::AT_ONCE)));
        Self { member, places, desk, events, setup, home, sent, studio, boards, simulations }
    }

    /// Serves requests until it is time to stop.
    pub(crate) async fn run(self, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
        let fail =
            |e: std::io::Error| StoreError::Other { path: PathBuf::from("http"), detail: e.to_string() };
        let listener = self.setup.listener.try_clone().map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let listener = TcpListener::from_std(listener).map_err(fail)?;
        let front = Arc::new(self);
        let relay = tokio::spawn(relay(front.clone()));
        let studio = tokio::spawn(front.studio.clone().run(stop.clone()));
        let limit = usize::try_from(front.setup.max_request).unwrap_or(usize::MAX);
        let (router, _) = router();
        let router = router
            .merge(docs::router())
            .merge(workbench::router())
            .fallback(|| async { Problem::not_found("such page; /docs shows what there is") })
            .layer(from_fn_with_state(front.clone(), access::guard))
            .layer(DefaultBodyLimit::max(limit))
            .with_state(front)
            .into_make_service_with_connect_info::<SocketAddr>();
        let server = axum::serve(listener, router);
        let result = tokio::select! {
            served = server.into_future() => served.map_err(fail),
            _ = stop.changed() => Ok(()),
        };
        relay.abort();
        // It gives up what it has, so that others can take it at once.
        let _ = tokio::time::timeout(Duration::from_secs(1), studio).await;
        result
    }

    /// Says that something about a run has changed.
    async fn hint(&self, run: catena_model::chain::RunId) {
        self.member.bus.publish(subject::CONTROLLERS, Message::Look(vec![run])).await;
    }

    async fn visit(&self, agent: &catena_bus::AgentState) -> Result<crate::desk::Answer, String> {
        self.desk.visit(agent).await
    }
}

/// Passes events on to those who watch.
async fn relay(front: Arc<Front>) {
    let mut inbox = front.member.bus.subscribe(subject::EVENTS).await;
    let mut messages = Vec::new();
    while inbox.receive(&mut messages, 256).await > 0 {
        for message in messages.drain(..) {
            if let Message::Event(event) = message {
                let _ = front.events.send(event);
            }
        }
    }
}
