//! Who and what there is: agents, machines, instances, services; and how all of it is.

use super::{Front, Problem, Shared, TokenRole};
use crate::desk::Answer;
use crate::view::WaitingView;
use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_bus::{AgentState, Message, subject};
use catena_fleet::Fleet;
use catena_model::chain::RunId;
use catena_schedule::{AgentInfo, Class, Event, Scheduler};
use catena_store::{AgentRecord, ChainRecord, Counts, RunState};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

#[utoipa::path(get, path = "/agents", responses((status = 200, description = "All agents")))]
/// Lists agents, what they offer and how much they have to do
pub(super) async fn agents(State(front): Shared) -> Result<Json<Vec<Value>>, Problem> {
    let agents = front.member.store.agents().await?;
    let names: Vec<_> = agents.iter().map(|a| a.id.clone()).collect();
    let chains = front.member.store.chains_of(&names).await?;
    let view = |a: &AgentRecord| {
        let mut view = serde_json::to_value(a).unwrap_or_default();
        view["chains"] = chains.iter().filter(|c| c.agent.as_ref() == Some(&a.id)).count().into();
        view
    };
    Ok(Json(agents.iter().map(view).collect()))
}

#[utoipa::path(get, path = "/agents/{id}", params(("id" = String, Path)),
    responses((status = 200, description = "The agent and its chains"), (status = 404, body = Problem)))]
/// Shows an agent and the chains it has
pub(super) async fn agent(State(front): Shared, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let agents = front.member.store.agents().await?;
    let found = agents.iter().find(|a| a.id == id);
    let found = found.ok_or_else(|| Problem::not_found(&format!("agent {id}")))?;
    let chains = front.member.store.chains_of(std::slice::from_ref(&found.id)).await?;
    let mut view = serde_json::to_value(found).unwrap_or_default();
    let show = |c: &ChainRecord| json!({"run": c.key.run, "chain": c.key.seq, "attempt": c.attempt, "since": c.started});
    view["chains"] = chains.iter().map(show).collect();
    Ok(Json(view))
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

#[utoipa::path(get, path = "/fleet", responses((status = 200, description = "Setups and machines")))]
/// Shows what machines can be made from, and those that were made
pub(super) async fn fleet(State(front): Shared) -> Result<Json<Value>, Problem> {
    let machines = front.member.store.machines().await?;
    let setups = front.setup.setups.iter().map(|s| {
        let count =
            |state: &str| machines.iter().filter(|m| m.setup == s.id && m.state.name() == state).count();
        json!({
            "id": s.id, "provides": s.provides, "resources": s.resources, "min": s.min, "max": s.max,
            "provider": s.provider, "creating": count("creating"), "running": count("running"),
        })
    });
    Ok(Json(json!({"setups": setups.collect::<Vec<_>>(), "machines": machines})))
}

impl Front {
    /// Why chains wait, of one run or of all.
    pub(super) async fn why_waiting(&self, run: Option<RunId>) -> Result<Vec<WaitingView>, Problem> {
        let store = &self.member.store;
        let mut waiting: BTreeMap<_, u64> = BTreeMap::new();
        if let Some(run) = run {
            for c in store.class_counts(run).await? {
                if c.state == catena_model::chain::ChainState::Registered {
                    waiting.insert(c.class, c.count);
                }
            }
        } else {
            waiting.extend(store.waiting(self.member.now()).await?.into_iter().map(|w| (w.class, w.count)));
        }
        let agents = store.agents().await?;
        let mut scheduler = Scheduler::default();
        for a in &agents {
            let info = AgentInfo {
                id: a.id.clone(),
                capabilities: a.capabilities.clone(),
                resources: a.resources.clone(),
            };
            scheduler.handle(Event::AgentJoined(info));
        }
        let fleet = Fleet::new(self.setup.setups.clone(), Vec::new(), "");
        let explain = |(key, count): (catena_model::Name, u64)| {
            let class = Class::from_key(&key)?;
            let able = |a: &&AgentRecord| {
                class.capabilities.iter().all(|c| a.capabilities.contains(c))
                    && a.resources.fits(&class.resources)
            };
            let able = agents.iter().filter(able).count();
            let reason = if able > 0 {
                format!("{able} agents can run them and have as much as they can take")
            } else if self.setup.setups.iter().any(|s| s.slots(&class) > 0) {
                "no agent can run them yet; machines that can are being made".to_owned()
            } else if self.setup.setups.is_empty() {
                scheduler.why_not(&class)
            } else {
                fleet.why_not(&class)
            };
            Some(WaitingView { capabilities: class.capabilities, resources: class.resources, count, reason })
        };
        Ok(waiting.into_iter().filter_map(explain).collect())
    }
}

#[utoipa::path(get, path = "/waiting", responses((status = 200, body = Vec<WaitingView>)))]
/// Says what waits, and why
pub(super) async fn waiting(State(front): Shared) -> Result<Json<Vec<WaitingView>>, Problem> {
    Ok(Json(front.why_waiting(None).await?))
}

#[utoipa::path(get, path = "/instances", responses((status = 200, description = "Instances that are alive")))]
/// Lists the instances of the cluster
pub(super) async fn instances(State(front): Shared) -> Result<Json<Value>, Problem> {
    let instances = front.member.store.instances(front.member.now()).await?;
    Ok(Json(serde_json::to_value(instances).unwrap_or_default()))
}

fn show_service(s: &catena_model::Service) -> Value {
    let parameter = |p: &catena_model::ServiceParameter| json!({"id": p.id, "description": p.description, "type": p.direction, "dataType": p.data_type});
    json!({
        "id": s.id, "name": s.name, "description": s.description, "path": s.path, "runtime": s.runtime,
        "requiredCapabilities": s.required_capabilities,
        "parameters": s.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}

#[utoipa::path(get, path = "/services", responses((status = 200, description = "All services")))]
/// Lists the services that every workflow may use
pub(super) async fn services(State(front): Shared) -> Json<Vec<Value>> {
    Json(front.setup.library.services().map(show_service).collect())
}

#[utoipa::path(get, path = "/services/{id}", params(("id" = String, Path)),
    responses((status = 200, description = "The service"), (status = 404, body = Problem)))]
/// Shows a service
pub(super) async fn service(State(front): Shared, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    let found = front.setup.library.service(&id).map(show_service);
    found.map(Json).ok_or_else(|| Problem::not_found(&format!("service {id}")))
}

#[utoipa::path(get, path = "/whoami", responses((status = 200, description = "The role of the token")))]
/// Says what the bearer of this token may do
pub(super) async fn whoami(Extension(role): Extension<TokenRole>) -> Json<Value> {
    Json(json!({"role": role.name(), "version": env!("CARGO_PKG_VERSION")}))
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
