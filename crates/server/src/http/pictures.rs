//! What pictures of runs are drawn from.

use super::{Front, Problem, Shared};
use crate::board::BoardView;
use crate::definition::Definition;
use crate::lineage::{CriticalPath, Lineage, Provenance};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use catena_model::Name;
use catena_model::chain::RunId;
use catena_model::dagman::load_dag;
use catena_plan::{Layout, StepGraph, layout};
use catena_store::{ChainRecord, Run};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What is known already.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct BoardQuery {
    /// The version that is known.
    #[serde(default)]
    after: u64,
    /// The board that it is a version of.
    epoch: Option<String>,
}

#[utoipa::path(get, path = "/runs/{id}/board", params(("id" = i64, Path), BoardQuery),
    responses((status = 200, body = BoardView), (status = 404, body = Problem)))]
/// Shows all chains of a run in few bytes, or those that have changed since a version
pub(super) async fn board(
    State(front): Shared,
    Path(id): Path<i64>,
    Query(query): Query<BoardQuery>,
) -> Result<Json<BoardView>, Problem> {
    let run = front.find(id).await?;
    let known = (query.epoch.as_deref(), query.after);
    Ok(Json(front.boards.since(&*front.member.store, &run, front.setup.aging, known).await?))
}

/// The steps of a workflow, and where they are drawn.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Graph)]
pub(super) struct GraphView {
    nodes: Vec<NodeView>,
    /// From, to, and whether it is an order without data.
    #[schema(value_type = Vec<(usize, usize, bool)>)]
    edges: Vec<(usize, usize, bool)>,
    width: f64,
    height: f64,
}

/// A step, whatever it loops over.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GraphNode)]
pub(super) struct NodeView {
    #[schema(value_type = String)]
    name: Name,
    /// The program or service.
    service: String,
    /// What it is applied to each element of.
    #[schema(required)]
    over: Option<String>,
    /// Whether it may be skipped.
    conditional: bool,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl GraphView {
    fn new(graph: StepGraph) -> Self {
        let Layout { boxes, width, height } = layout(&graph);
        let round = |n: f64| (n * 10.0).round() / 10.0;
        let node = |(step, place): (catena_plan::Step, &catena_plan::Place)| NodeView {
            name: step.name,
            service: step.service,
            over: step.over,
            conditional: step.conditional,
            x: round(place.x),
            y: round(place.y),
            width: round(place.width),
            height: round(place.height),
        };
        let edges = graph.edges.iter().map(|e| (e.from, e.to, e.order_only)).collect();
        Self { nodes: graph.nodes.into_iter().zip(&boxes).map(node).collect(), edges, width, height }
    }
}

/// The steps of a run.
fn steps_of(definition: &Definition) -> StepGraph {
    if definition.workflow.extension().is_some_and(|e| e.eq_ignore_ascii_case("dag")) {
        return StepGraph::of_dag(&load_dag(&definition.workflow).dag);
    }
    let loaded = definition.load();
    loaded.expanded.as_ref().map(|w| StepGraph::new(w, &loaded.library)).unwrap_or_default()
}

impl Front {
    pub(super) async fn definition(&self, run: &Run) -> Result<Definition, Problem> {
        let definition = self.member.store.definition(run.id).await?.unwrap_or_default();
        serde_json::from_slice(&definition)
            .map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("run {}: {e}", run.id)))
    }

    /// The steps of a run. Reading a large workflow takes a while, and others do not wait for it.
    async fn steps(&self, run: &Run) -> Result<StepGraph, Problem> {
        let definition = self.definition(run).await?;
        let read = tokio::task::spawn_blocking(move || steps_of(&definition)).await;
        read.map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))
    }
}

#[utoipa::path(get, path = "/runs/{id}/graph", params(("id" = i64, Path)),
    responses((status = 200, body = GraphView), (status = 404, body = Problem)))]
/// Shows the steps of a run, one node each, and who gets something from whom
pub(super) async fn graph(State(front): Shared, Path(id): Path<i64>) -> Result<Json<GraphView>, Problem> {
    let run = front.find(id).await?;
    let steps = front.steps(&run).await?;
    let drawn = tokio::task::spawn_blocking(move || GraphView::new(steps)).await;
    drawn.map(Json).map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e.to_string()))
}

#[utoipa::path(get, path = "/runs/{id}/critical-path", params(("id" = i64, Path)),
    responses((status = 200, body = CriticalPath), (status = 404, body = Problem)))]
/// Shows what the end of a run waited for
pub(super) async fn critical_path(
    State(front): Shared,
    Path(id): Path<i64>,
) -> Result<Json<CriticalPath>, Problem> {
    let run = front.find(id).await?;
    let steps = front.steps(&run).await?;
    let aging = front.setup.aging.as_millis() as i64;
    let registered = |c: &ChainRecord| i64::from(c.priority) * aging - c.rank;
    let lineage = Lineage::read(&*front.member.store, run.id).await?;
    Ok(Json(lineage.critical_path(&steps, run.started.unwrap_or(run.created), registered).await?))
}

#[utoipa::path(get, path = "/runs/{id}/chains/{chain}/provenance", params(("id" = i64, Path), ("chain" = u64, Path)),
    responses((status = 200, body = Provenance), (status = 404, body = Problem)))]
/// Shows where what a chain has written comes from
pub(super) async fn provenance(
    State(front): Shared,
    Path((id, chain)): Path<(i64, u64)>,
) -> Result<Json<Provenance>, Problem> {
    let record = front.chain(id, chain).await?;
    let lineage = Lineage::read(&*front.member.store, record.key.run).await?;
    Ok(Json(lineage.provenance(chain).await?))
}

#[utoipa::path(get, path = "/runs/{id}/results/{result}/{number}/provenance",
    params(("id" = i64, Path), ("result" = String, Path), ("number" = usize, Path)),
    responses((status = 200, body = Provenance), (status = 404, body = Problem)))]
/// Shows where a result of a run comes from: of a named result, the one with this number, counted from 0
pub(super) async fn result_provenance(
    State(front): Shared,
    Path((id, result, number)): Path<(i64, String, usize)>,
) -> Result<Json<Provenance>, Problem> {
    let file = front.result_file(id, &result, number).await?;
    let lineage = Lineage::read(&*front.member.store, RunId(id)).await?;
    let unknown = || Problem::not_found(&format!("chain of run {id} that has written {}", file.display()));
    let chain = lineage.writer_of_result(&file.to_string_lossy()).ok_or_else(unknown)?;
    Ok(Json(lineage.provenance(chain).await?))
}
