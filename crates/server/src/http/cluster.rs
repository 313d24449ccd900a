//! Who and what there is: agents, machines, instances, services; and how all of it is.

use super::access::Caller;
use super::{Problem, Shared, schema};
use crate::desk::Answer;
use crate::view::ChainView;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_bus::{AgentState, Message, subject};
use catena_fleet::{Pool, Setup};
use catena_model::chain::RunId;
use catena_model::{Name, Resources};
use catena_schedule::Class;
use catena_store::{AgentRecord, ChainRecord, Counts, Instance, Machine, MachineState, RunState};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write;
use utoipa::ToSchema;

/// So many of an agent's chains are named.
const NAMED: usize = 50;

/// An agent, what it offers and what it has to do.
#[derive(Serialize, ToSchema)]
#[schema(as = Agent)]
pub(super) struct AgentView {
    #[schema(value_type = String)]
    id: Name,
    /// Differs with every start.
    incarnation: u64,
    #[schema(value_type = Vec<String>)]
    capabilities: Vec<Name>,
    #[schema(value_type = schema::Resources)]
    resources: Resources,
    /// The instance whose scheduler gives it work.
    #[schema(value_type = Option<String>, required)]
    scheduler: Option<Name>,
    joined: i64,
    /// When it was last heard of.
    seen: i64,
    /// How many chains it has.
    count: usize,
    /// What it executes and what it holds in advance, in the order in which it was given them; at most fifty.
    chains: Vec<HeldView>,
}

/// A chain that an agent has.
#[derive(Serialize, ToSchema)]
#[schema(as = HeldChain)]
pub(super) struct HeldView {
    #[schema(value_type = i64)]
    run: RunId,
    chain: u64,
    attempt: u32,
    #[schema(required)]
    since: Option<i64>,
    #[schema(value_type = Vec<String>)]
    tasks: Vec<Name>,
    #[schema(value_type = schema::Resources)]
    resources: Resources,
}

impl AgentView {
    fn new(agent: &AgentRecord, chains: &[ChainRecord]) -> Self {
        let mut own: Vec<&ChainRecord> =
            chains.iter().filter(|c| c.agent.as_ref() == Some(&agent.id)).collect();
        own.sort_by_key(|c| (c.started, c.key));
        let held = |c: &&ChainRecord| HeldView {
            run: c.key.run,
            chain: c.key.seq,
            attempt: c.attempt,
            since: c.started,
            tasks: ChainView::new(c).tasks,
            resources: Class::from_key(&c.class).map(|c| c.resources).unwrap_or_default(),
        };
        Self {
            id: agent.id.clone(),
            incarnation: agent.incarnation,
            capabilities: agent.capabilities.clone(),
            resources: agent.resources.clone(),
            scheduler: agent.scheduler.clone(),
            joined: agent.joined,
            seen: agent.seen,
            count: own.len(),
            chains: own.iter().take(NAMED).map(held).collect(),
        }
    }
}

#[utoipa::path(get, path = "/agents", responses((status = 200, body = Vec<AgentView>)))]
/// Lists agents, what they offer and what they have to do
pub(super) async fn agents(State(front): Shared) -> Result<Json<Vec<AgentView>>, Problem> {
    let agents = front.member.store.agents().await?;
    let names: Vec<_> = agents.iter().map(|a| a.id.clone()).collect();
    let chains = front.member.store.chains_of(&names).await?;
    Ok(Json(agents.iter().map(|a| AgentView::new(a, &chains)).collect()))
}

#[utoipa::path(get, path = "/agents/{id}", params(("id" = String, Path)),
    responses((status = 200, body = AgentView), (status = 404, body = Problem)))]
/// Shows an agent and the chains it has
pub(super) async fn agent(State(front): Shared, Path(id): Path<String>) -> Result<Json<AgentView>, Problem> {
    let agents = front.member.store.agents().await?;
    let found = agents.iter().find(|a| a.id == id);
    let found = found.ok_or_else(|| Problem::not_found(&format!("agent {id}")))?;
    let chains = front.member.store.chains_of(std::slice::from_ref(&found.id)).await?;
    Ok(Json(AgentView::new(found, &chains)))
}

#[utoipa::path(post, path = "/agents/{id}/visit", params(("id" = String, Path)),
    responses((status = 200, description = "What the agent should know"), (status = 503, body = Problem)))]
/// Lets an agent tell what it has and ask what it should have; for agents only
pub(super) async fn visit(
    State(front): Shared,
    Path(id): Path<String>,
    Json(state): Json<AgentState>,
) -> Result<Json<Answer>, Problem> {
    if state.id != id {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "an agent can only speak for itself"));
    }
    let answer = front.visit(&state).await;
    answer.map(Json).map_err(|e| Problem::new(StatusCode::SERVICE_UNAVAILABLE, e))
}

#[utoipa::path(post, path = "/agents/{id}/shutdown", params(("id" = String, Path)),
    responses((status = 202, description = "It will end"), (status = 404, body = Problem)))]
/// Lets an agent end once it has nothing to do
pub(super) async fn shut_down(State(front): Shared, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    if !front.member.store.agents().await?.iter().any(|a| a.id == id) {
        return Err(Problem::not_found(&format!("agent {id}")));
    }
    front.member.bus.publish(&subject::agent(&id), Message::ShutDown).await;
    Ok(StatusCode::ACCEPTED)
}

/// What machines can be made from, and those that were made.
#[derive(Serialize, ToSchema)]
#[schema(as = Fleet)]
pub(super) struct FleetView {
    setups: Vec<SetupView>,
    pools: Vec<PoolView>,
    /// Those that are there or in the making, and those that failed or went lately.
    #[schema(value_type = Vec<schema::Machine>)]
    machines: Vec<Machine>,
}

/// What machines can be made from.
#[derive(Serialize, ToSchema)]
#[schema(as = Setup)]
pub(super) struct SetupView {
    #[schema(value_type = String)]
    id: Name,
    #[schema(value_type = Vec<String>)]
    provides: Vec<Name>,
    #[schema(value_type = schema::Resources)]
    resources: Resources,
    min: u32,
    max: u32,
    #[schema(value_type = String)]
    provider: Name,
    creating: usize,
    running: usize,
    /// Why machines of it are made, or would be.
    why: Vec<String>,
}

/// How many machines with certain capabilities there may be, whatever they were made from.
#[derive(Serialize, ToSchema)]
#[schema(as = Pool)]
pub(super) struct PoolView {
    #[schema(value_type = Vec<String>)]
    capabilities: Vec<Name>,
    min: u32,
    #[schema(required)]
    max: Option<u32>,
    /// How many there are.
    machines: usize,
}

impl SetupView {
    fn new(setup: &Setup, machines: &[Machine], waiting: &[(Class, u64)]) -> Self {
        let count = |state| machines.iter().filter(|m| m.setup == setup.id && m.state == state).count();
        let at_least = (setup.min > 0).then(|| format!("at least {} are always there", setup.min));
        let wanted = waiting.iter().filter(|(class, _)| setup.slots(class) > 0);
        let wanted = wanted.map(|(class, count)| {
            let sets = class.show_capabilities();
            if *count == 1 {
                format!("a chain that requires {sets} waits")
            } else {
                format!("{count} chains that require {sets} wait")
            }
        });
        Self {
            id: setup.id.clone(),
            provides: setup.provides.clone(),
            resources: setup.resources.clone(),
            min: setup.min,
            max: setup.max,
            provider: setup.provider.clone(),
            creating: count(MachineState::Creating),
            running: count(MachineState::Running),
            why: at_least.into_iter().chain(wanted).collect(),
        }
    }
}

#[utoipa::path(get, path = "/fleet", responses((status = 200, body = FleetView)))]
/// Shows what machines can be made from and why they are made, and those that were made
pub(super) async fn fleet(State(front): Shared) -> Result<Json<FleetView>, Problem> {
    let machines = front.member.store.machines().await?;
    let waiting = front.member.store.waiting(front.member.now()).await?;
    let waiting: Vec<(Class, u64)> =
        waiting.into_iter().filter_map(|w| Some((Class::from_key(&w.class)?, w.count))).collect();
    let setups = &front.setup.setups;
    let pool = |pool: &Pool| {
        let of = |m: &&Machine| setups.iter().any(|s| s.id == m.setup && pool.includes(s));
        PoolView {
            capabilities: pool.capabilities.clone(),
            min: pool.min,
            max: pool.max,
            machines: machines.iter().filter(|m| m.state.counts()).filter(of).count(),
        }
    };
    Ok(Json(FleetView {
        setups: setups.iter().map(|s| SetupView::new(s, &machines, &waiting)).collect(),
        pools: front.setup.pools.iter().map(pool).collect(),
        machines,
    }))
}

#[utoipa::path(get, path = "/instances", responses((status = 200, body = Vec<schema::Instance>)))]
/// Lists the instances of the cluster
pub(super) async fn instances(State(front): Shared) -> Result<Json<Vec<Instance>>, Problem> {
    Ok(Json(front.member.store.instances(front.member.now()).await?))
}

/// A service that every workflow may use.
#[derive(Serialize, ToSchema)]
#[schema(as = Service)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServiceView {
    id: String,
    name: String,
    description: String,
    path: String,
    runtime: String,
    #[schema(value_type = Vec<String>)]
    required_capabilities: Vec<Name>,
    parameters: Vec<ParameterView>,
}

/// What goes into a service or comes out of it.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceParameter)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParameterView {
    id: String,
    description: String,
    #[serde(rename = "type")]
    #[schema(value_type = schema::Direction)]
    direction: catena_model::Direction,
    data_type: String,
}

impl ServiceView {
    fn new(s: &catena_model::Service) -> Self {
        let parameter = |p: &catena_model::ServiceParameter| ParameterView {
            id: p.id.to_string(),
            description: p.description.clone(),
            direction: p.direction,
            data_type: p.data_type.to_string(),
        };
        Self {
            id: s.id.to_string(),
            name: s.name.clone(),
            description: s.description.clone(),
            path: s.path.to_string(),
            runtime: s.runtime.to_string(),
            required_capabilities: s.required_capabilities.clone(),
            parameters: s.parameters.iter().map(parameter).collect(),
        }
    }
}

#[utoipa::path(get, path = "/services", responses((status = 200, body = Vec<ServiceView>)))]
/// Lists the services that every workflow may use
pub(super) async fn services(State(front): Shared) -> Json<Vec<ServiceView>> {
    Json(front.setup.library.services().map(ServiceView::new).collect())
}

#[utoipa::path(get, path = "/services/{id}", params(("id" = String, Path)),
    responses((status = 200, body = ServiceView), (status = 404, body = Problem)))]
/// Shows a service
pub(super) async fn service(
    State(front): Shared,
    Path(id): Path<String>,
) -> Result<Json<ServiceView>, Problem> {
    let found = front.setup.library.service(&id).map(ServiceView::new);
    found.map(Json).ok_or_else(|| Problem::not_found(&format!("service {id}")))
}

/// The bearer of a token.
#[derive(Serialize, ToSchema)]
pub(super) struct WhoAmI {
    /// The name of the token.
    name: String,
    /// What it allows.
    #[schema(value_type = schema::TokenRole)]
    role: &'static str,
    /// Of the server.
    version: &'static str,
}

#[utoipa::path(get, path = "/whoami", responses((status = 200, body = WhoAmI)))]
/// Says what the bearer of this token may do
pub(super) async fn whoami(Extension(caller): Extension<Caller>) -> Json<WhoAmI> {
    Json(WhoAmI { name: caller.name, role: caller.role.name(), version: env!("CARGO_PKG_VERSION") })
}

#[utoipa::path(get, path = "/health",
    responses((status = 200, description = "All is well"), (status = 503, description = "The store is away")))]
/// Says whether this instance can work
pub(super) async fn health(State(front): Shared) -> Response {
    match front.member.store.now().await {
        Ok(_) => Json(json!({"healthy": true})).into_response(),
        Err(e) => {
            let body = json!({"healthy": false, "reason": e.to_string()});
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "Metrics in the format of Prometheus")))]
/// Shows figures for Prometheus
pub(super) async fn metrics(State(front): Shared) -> Result<Response, Problem> {
    let store = &front.member.store;
    let runs = store.runs().await?;
    let mut out = String::new();
    let mut gauge = |name: &str, help: &str, values: &[(String, u64)]| {
        let _ = writeln!(out, "# HELP catena_{name} {help}\n# TYPE catena_{name} gauge");
        for (labels, value) in values {
            let _ = writeln!(out, "catena_{name}{labels} {value}");
        }
    };
    let states = [
        RunState::Running,
        RunState::Interrupted,
        RunState::Succeeded,
        RunState::PartiallySucceeded,
        RunState::Failed,
        RunState::Cancelled,
    ];
    let label = |name: &str, value: &str| {
        format!("{{{name}=\"{}\"}}", value.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let count = |s: RunState| runs.iter().filter(|r| r.state == s).count() as u64;
    let by_state: Vec<_> = states.map(|s| (label("state", &s.to_string()), count(s))).to_vec();
    gauge("runs", "Runs by state.", &by_state);
    let mut chains = Counts::default();
    for run in runs.iter().filter(|r| r.state == RunState::Running) {
        let c = store.counts(run.id).await?;
        chains.registered += c.registered;
        chains.running += c.running;
        chains.paused += c.paused;
        chains.succeeded += c.succeeded;
        chains.failed += c.failed;
        chains.cancelled += c.cancelled;
    }
    let values = [
        ("registered", chains.registered),
        ("running", chains.running),
        ("paused", chains.paused),
        ("succeeded", chains.succeeded),
        ("failed", chains.failed),
        ("cancelled", chains.cancelled),
    ];
    let values: Vec<_> = values.map(|(s, n)| (label("state", s), n)).to_vec();
    gauge("process_chains", "Process chains of runs that go on, by state.", &values);
    let waiting = store.waiting(front.member.now()).await?;
    let show = |key: &str| Class::from_key(key).map(|c| c.capabilities.join(",")).unwrap_or_default();
    let values: Vec<_> = waiting.iter().map(|w| (label("capabilities", &show(&w.class)), w.count)).collect();
    gauge(
        "waiting_process_chains",
        "Process chains that wait for an agent, by required capabilities.",
        &values,
    );
    let agents = store.agents().await?;
    gauge("agents", "Agents.", &[(String::new(), agents.len() as u64)]);
    let instances = store.instances(front.member.now()).await?;
    gauge("instances", "Instances.", &[(String::new(), instances.len() as u64)]);
    let machines = store.machines().await?;
    let names = ["creating", "running", "failed"];
    let values: Vec<_> = names
        .map(|s| (label("state", s), machines.iter().filter(|m| m.state.name() == s).count() as u64))
        .to_vec();
    gauge("machines", "Machines by state.", &values);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], out).into_response())
}
