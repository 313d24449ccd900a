//! Runs and their chains.

use super::{Front, Problem, Shared, schema};
use crate::definition::Definition;
use crate::memory;
use crate::search::state_name;
use crate::view::{self, ChainView, RunView, StatusView};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use catena_compose::model::load_text;
use catena_model::chain::{ChainState, Produced, RunId};
use catena_model::{Loaded, Name, Value};
use catena_store::{ChainFilter, NewRun, Run, RunChange, RunState};
use serde::{Deserialize, Serialize};
use std::path::{Path as FilePath, PathBuf};
use utoipa::{IntoParams, ToSchema};

/// How many runs or chains are shown at a time.
const PAGE: usize = 100;

/// A workflow with what it needs. The text of a workflow alone will do as well.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Submission {
    /// A name for people.
    #[serde(default)]
    pub name: Option<String>,
    /// The workflow first, then other files it refers to: pairs of path and text.
    #[schema(value_type = Vec<Vec<String>>)]
    pub files: Vec<(PathBuf, String)>,
    /// Which of the files have services.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub services: Vec<PathBuf>,
    /// Which of the files have macros.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub macros: Vec<PathBuf>,
    /// Values for inputs.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub inputs: Vec<(Name, Value)>,
    /// The directory that relative paths refer to.
    #[serde(default)]
    #[schema(value_type = String)]
    pub directory: PathBuf,
    /// Where results go.
    #[serde(default)]
    #[schema(value_type = String)]
    pub out: PathBuf,
    /// How chains are cut: split, union or single.
    #[serde(default)]
    pub chains: String,
    /// Which chains come first: fifo, prio or auto.
    #[serde(default)]
    pub order: String,
    /// Higher ones come first; what the workflow says if this is missing.
    #[serde(default)]
    pub priority: Option<i32>,
    /// Files that the workflow names and that were sent, where agents have files of their own.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub data: Vec<Produced>,
}

/// The run that was made.
#[derive(Serialize, Deserialize, ToSchema)]
pub(super) struct Submitted {
    /// Its number.
    #[schema(value_type = i64)]
    pub run: RunId,
}

/// Which runs to show.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct RunQuery {
    /// Only in this state.
    state: Option<String>,
    /// Skip so many.
    #[serde(default)]
    offset: usize,
    /// Show so many.
    limit: Option<usize>,
}

#[utoipa::path(get, path = "/runs", params(RunQuery), responses((status = 200, body = Vec<RunView>)))]
/// Lists runs, newest first
pub(super) async fn list(
    State(front): Shared,
    Query(query): Query<RunQuery>,
) -> Result<Json<Vec<RunView>>, Problem> {
    let runs = front.member.store.runs().await?;
    let wanted = |r: &&Run| query.state.as_ref().is_none_or(|s| state_name(r.state) == *s);
    let page = runs.iter().filter(wanted).skip(query.offset).take(query.limit.unwrap_or(PAGE));
    Ok(Json(front.with_counts(page).await?))
}

/// Reads what was sent: a submission, or the text of a workflow.
fn read(headers: &HeaderMap, body: &Bytes) -> Result<Submission, Problem> {
    let bad = |what: String| Problem::new(StatusCode::BAD_REQUEST, what);
    let text = std::str::from_utf8(body).map_err(|e| bad(format!("the request is not UTF-8: {e}")))?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|h| h.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/vnd.catena+json") {
        let submission: Submission =
            serde_json::from_str(text).map_err(|e| bad(format!("the submission cannot be read: {e}")))?;
        if submission.files.is_empty() {
            return Err(bad("the submission has no files; the workflow comes first".to_owned()));
        }
        return Ok(submission);
    }
    Ok(Submission { files: vec![(PathBuf::from("workflow.yaml"), text.to_owned())], ..Submission::default() })
}

impl Front {
    /// Runs with how far they are.
    async fn with_counts<'r>(&self, runs: impl Iterator<Item = &'r Run>) -> Result<Vec<RunView>, Problem> {
        let mut views = Vec::new();
        for run in runs {
            views.push(RunView::new(run, self.member.store.counts(run.id).await?));
        }
        Ok(views)
    }

    fn load(&self, submission: &Submission) -> Loaded {
        let texts = submission.files.iter();
        let options = catena_model::LoadOptions {
            services: self.setup.services.iter().chain(&submission.services).cloned().collect(),
            macros: self.setup.macros.iter().chain(&submission.macros).cloned().collect(),
            inputs: submission.inputs.clone(),
            texts: texts.map(|(name, text)| (name.clone(), text.as_str().into())).collect(),
        };
        let (name, text) = &submission.files[0];
        load_text(name, text, &options)
    }

    pub(super) async fn find(&self, id: i64) -> Result<Run, Problem> {
        let run = self.member.store.run(RunId(id)).await?;
        run.ok_or_else(|| Problem::not_found(&format!("run {id}")))
    }

    /// A run that has not ended.
    async fn find_live(&self, id: i64) -> Result<Run, Problem> {
        let run = self.find(id).await?;
        if run.state.is_final() {
            let error = format!("run {id} is over already: it {}", run.state);
            return Err(Problem::new(StatusCode::CONFLICT, error));
        }
        Ok(run)
    }
}

/// All mistakes, with their places.
fn listed(loaded: &Loaded) -> Vec<serde_json::Value> {
    let json =
        |d: &catena_model::Diagnostic| serde_json::to_value(d.to_json(&loaded.sources)).unwrap_or_default();
    loaded.diags.iter().map(json).collect()
}

pub(super) fn mistakes(loaded: &Loaded) -> Option<Problem> {
    if !loaded.diags.has_errors() {
        return None;
    }
    let n = loaded.diags.error_count();
    let first = loaded.diags.iter().next().map(|d| d.render(&loaded.sources).to_string());
    let mut problem = Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        format!("the workflow has {n} errors; the first is\n{}", first.unwrap_or_default()),
    );
    problem.details = Some(listed(loaded).into());
    Some(problem)
}

#[utoipa::path(
    post, path = "/runs", request_body(content = Submission, content_type = "application/vnd.catena+json"),
    responses((status = 201, body = Submitted), (status = 400, body = Problem), (status = 422, body = Problem))
)]
/// Submits a workflow: a submission, or just the text of a workflow in YAML or JSON
pub(super) async fn submit(
    State(front): Shared,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    let mut submission = read(&headers, &body)?;
    let data = std::mem::take(&mut submission.data);
    front.check_files(&data)?;
    let mut run = front.new_run(submission)?;
    drop(body);
    memory::give_back();
    let home = front.home.as_ref().filter(|_| !data.is_empty());
    let failed = |e: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, e);
    if let Some(home) = home {
        home.offer(&*front.member.store, &data).await.map_err(failed)?;
    }
    run.files = data;
    let number = front.member.store.create_run(&run).await?;
    if let Some(home) = home {
        home.keep(number, &run.files).map_err(|e| failed(e.to_string()))?;
    }
    let run = number;
    front.hint(run).await;
    Ok((StatusCode::CREATED, Json(Submitted { run })))
}

impl Front {
    /// Reads a submission, and refuses what cannot be planned: said now, not later to nobody.
    fn new_run(&self, submission: Submission) -> Result<NewRun, Problem> {
        let loaded = self.load(&submission);
        if let Some(problem) = mistakes(&loaded) {
            return Err(problem);
        }
        let Some(workflow) = &loaded.expanded else {
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "only workflows can be run"));
        };
        catena_plan::Program::new(workflow, &loaded.library)
            .map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()))?;
        let priority = submission.priority.unwrap_or(workflow.priority);
        let source = submission.files[0].0.clone();
        let mut definition = Definition {
            workflow: source.clone(),
            services: self.setup.services.iter().chain(&submission.services).cloned().collect(),
            macros: self.setup.macros.iter().chain(&submission.macros).cloned().collect(),
            inputs: submission.inputs.clone(),
            out: submission.out,
            chains: submission.chains,
            order: submission.order,
            ..Definition::default()
        };
        definition.check().map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e))?;
        let fingerprint = definition.fingerprint(&loaded);
        let directory = submission.directory;
        definition = definition.with_files(&loaded);
        definition.directory = directory;
        let name = submission.name.or_else(|| workflow.name.clone());
        let name = name.unwrap_or_else(|| definition.default_name());
        Ok(NewRun {
            name,
            source: source.to_string_lossy().into_owned(),
            fingerprint,
            definition: serde_json::to_vec(&definition).unwrap_or_default(),
            created: self.member.now(),
            priority,
            files: Vec::new(),
        })
    }
}

#[utoipa::path(
    post, path = "/runs/{id}/again", params(("id" = i64, Path)),
    request_body(content = String, content_type = "application/yaml"),
    responses((status = 201, body = Submitted), (status = 404, body = Problem), (status = 422, body = Problem))
)]
/// Runs the workflow of a run again with another text; all else is as it was, and what is unchanged comes from the cache
pub(super) async fn again(
    State(front): Shared,
    Path(id): Path<i64>,
    body: Bytes,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    let text = read(&HeaderMap::new(), &body)?.files.swap_remove(0).1;
    let run = front.find(id).await?;
    let before = front.definition(&run).await?;
    let mut files = before.files;
    match files.first_mut() {
        Some(workflow) => workflow.1 = text,
        None => files.push((before.workflow, text)),
    }
    let is_ours = |f: &&PathBuf| !front.setup.services.contains(f) && !front.setup.macros.contains(f);
    let submission = Submission {
        name: Some(run.name),
        files,
        services: before.services.iter().filter(is_ours).cloned().collect(),
        macros: before.macros.iter().filter(is_ours).cloned().collect(),
        directory: before.directory,
        out: before.out,
        chains: before.chains,
        order: before.order,
        priority: Some(run.priority),
        ..Submission::default()
    };
    let number = front.member.store.create_run(&front.new_run(submission)?).await?;
    front.hint(number).await;
    Ok((StatusCode::CREATED, Json(Submitted { run: number })))
}

/// What is wrong with a workflow, if anything is.
#[derive(Serialize, ToSchema)]
pub(super) struct Checked {
    /// Whether it can be run.
    valid: bool,
    /// Mistakes, and what is only noticed.
    #[schema(value_type = Vec<schema::Mistake>)]
    mistakes: Vec<serde_json::Value>,
}

#[utoipa::path(
    post, path = "/check", request_body(content = String, content_type = "application/yaml"),
    responses((status = 200, body = Checked), (status = 400, body = Problem))
)]
/// Says what is wrong with a workflow, without running it
pub(super) async fn check(
    State(front): Shared,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Checked>, Problem> {
    let loaded = front.load(&read(&headers, &body)?);
    Ok(Json(Checked { valid: !loaded.diags.has_errors(), mistakes: listed(&loaded) }))
}

#[utoipa::path(get, path = "/runs/{id}", params(("id" = i64, Path)),
    responses((status = 200, body = StatusView), (status = 404, body = Problem)))]
/// Shows how a run stands, and why its chains wait
pub(super) async fn get(State(front): Shared, Path(id): Path<i64>) -> Result<Json<StatusView>, Problem> {
    let run = front.find(id).await?;
    let mut status = view::status(&*front.member.store, &run).await?;
    if !run.state.is_final() {
        status.waiting = front.why_waiting(Some(run.id)).await?;
    }
    Ok(Json(status))
}

#[utoipa::path(get, path = "/runs/{id}/workflow", params(("id" = i64, Path)),
    responses((status = 200, description = "The text of the workflow"), (status = 404, body = Problem)))]
/// Shows the workflow of a run
pub(super) async fn workflow(State(front): Shared, Path(id): Path<i64>) -> Result<String, Problem> {
    let definition = front.definition(&front.find(id).await?).await?;
    let text = definition.files.into_iter().next().map(|f| f.1);
    Ok(text.unwrap_or(definition.text))
}

#[utoipa::path(delete, path = "/runs/{id}", params(("id" = i64, Path)),
    responses((status = 204, description = "It is gone"), (status = 409, body = Problem)))]
/// Deletes a run that is over, with its files
pub(super) async fn delete(State(front): Shared, Path(id): Path<i64>) -> Result<StatusCode, Problem> {
    let run = front.find(id).await?;
    if !run.state.is_final() {
        return Err(Problem::new(StatusCode::CONFLICT, format!("run {id} goes on; cancel it first")));
    }
    let context = front.places.context(&*front.member.store, run.id).await?;
    front.member.store.delete_run(run.id).await?;
    if let Some(base) = context.and_then(|c| c.logs.parent().map(FilePath::to_path_buf)) {
        let _ = tokio::fs::remove_dir_all(base).await;
    }
    Ok(StatusCode::NO_CONTENT)
}

impl Front {
    async fn change(&self, id: i64, change: RunChange) -> Result<Json<RunView>, Problem> {
        self.member.store.change_run(RunId(id), &change).await?;
        self.hint(RunId(id)).await;
        let run = self.find(id).await?;
        Ok(Json(RunView::new(&run, self.member.store.counts(run.id).await?)))
    }
}

#[utoipa::path(post, path = "/runs/{id}/cancel", params(("id" = i64, Path)),
    responses((status = 200, body = RunView), (status = 409, body = Problem)))]
/// Stops a run for good
pub(super) async fn cancel(State(front): Shared, Path(id): Path<i64>) -> Result<Json<RunView>, Problem> {
    front.find_live(id).await?;
    front.change(id, RunChange { cancel_requested: Some(true), ..RunChange::default() }).await
}

#[utoipa::path(post, path = "/runs/{id}/pause", params(("id" = i64, Path)),
    responses((status = 200, body = RunView), (status = 409, body = Problem)))]
/// Lets a run wait: what runs goes on, nothing new is started
pub(super) async fn pause(State(front): Shared, Path(id): Path<i64>) -> Result<Json<RunView>, Problem> {
    front.find_live(id).await?;
    front.change(id, RunChange { held: Some(true), ..RunChange::default() }).await
}

#[utoipa::path(post, path = "/runs/{id}/resume", params(("id" = i64, Path)),
    responses((status = 200, body = RunView), (status = 409, body = Problem)))]
/// Lets a run that waits go on
pub(super) async fn resume(State(front): Shared, Path(id): Path<i64>) -> Result<Json<RunView>, Problem> {
    front.find_live(id).await?;
    front.change(id, RunChange { held: Some(false), ..RunChange::default() }).await
}

#[utoipa::path(post, path = "/runs/{id}/retry", params(("id" = i64, Path)),
    responses((status = 200, body = RunView), (status = 409, body = Problem)))]
/// Runs the failed and cancelled chains of a run again
pub(super) async fn retry(State(front): Shared, Path(id): Path<i64>) -> Result<Json<RunView>, Problem> {
    let run = front.find(id).await?;
    if !run.state.is_final() || run.state == RunState::Succeeded {
        let error = format!("run {id} has nothing to retry: it is {}", run.state);
        return Err(Problem::new(StatusCode::CONFLICT, error));
    }
    front.member.store.retry_failed(run.id).await?;
    let change = RunChange {
        state: Some(RunState::Running),
        ended: Some(None),
        error: Some(None),
        cancel_requested: Some(false),
        held: Some(false),
        controller: Some(None),
        ..RunChange::default()
    };
    front.change(id, change).await
}

/// A new priority.
#[derive(Deserialize, ToSchema)]
pub(super) struct Priority {
    /// Higher ones come first.
    priority: i32,
}

#[utoipa::path(put, path = "/runs/{id}/priority", params(("id" = i64, Path)), request_body = Priority,
    responses((status = 200, body = RunView), (status = 409, body = Problem)))]
/// Changes the priority of a run
pub(super) async fn prioritise(
    State(front): Shared,
    Path(id): Path<i64>,
    Json(new): Json<Priority>,
) -> Result<Json<RunView>, Problem> {
    front.find_live(id).await?;
    front.member.store.prioritise(RunId(id), new.priority, front.setup.aging).await?;
    front.change(id, RunChange::default()).await
}

/// Which chains to show.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct ChainQuery {
    /// Only in this state.
    #[param(value_type = Option<String>)]
    state: Option<ChainState>,
    /// From this one on.
    #[serde(default)]
    from: u64,
    /// Show so many.
    limit: Option<usize>,
}

#[utoipa::path(get, path = "/runs/{id}/chains", params(("id" = i64, Path), ChainQuery),
    responses((status = 200, body = Vec<ChainView>), (status = 404, body = Problem)))]
/// Lists the chains of a run
pub(super) async fn chains(
    State(front): Shared,
    Path(id): Path<i64>,
    Query(query): Query<ChainQuery>,
) -> Result<Json<Vec<ChainView>>, Problem> {
    let run = front.find(id).await?;
    let limit = query.limit.unwrap_or(PAGE).min(10_000);
    let filter =
        ChainFilter { state: query.state, from: query.from, limit, payload: true, ..ChainFilter::default() };
    let chains = front.member.store.chains(run.id, &filter).await?;
    let view = |c| ChainView::new(c).with_registered(c, front.setup.aging);
    Ok(Json(chains.iter().map(view).collect()))
}

/// What to look for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SearchQuery {
    /// Words that must all occur; `name:word`, `state:word` and `error:word` look in one place only.
    q: String,
    /// Show so many.
    limit: Option<usize>,
}

#[utoipa::path(get, path = "/search", params(SearchQuery), responses((status = 200, body = Vec<RunView>)))]
/// Finds runs by name, workflow, state, error or text
pub(super) async fn search(
    State(front): Shared,
    Query(query): Query<SearchQuery>,
) -> Result<Json<Vec<RunView>>, Problem> {
    let found = crate::search::search(&*front.member.store, &query.q, query.limit.unwrap_or(PAGE)).await?;
    Ok(Json(front.with_counts(found.iter()).await?))
}
