//! One chain: its tasks, what they read and wrote, and what went wrong.

use super::send::{send, send_file};
use super::{Front, Problem, Shared, schema};
use crate::board::Mishap;
use crate::supplies::Supplier;
use crate::view::ChainView;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use catena_model::chain::{ChainKey, Executable, ProcessChain, RunContext, RunId, TaskResult};
use catena_model::content::Artifact;
use catena_model::{Direction, Name, Value};
use catena_store::ChainRecord;
use serde::Serialize;
use std::path::{Path as FilePath, PathBuf};
use tokio::fs::File;
use utoipa::ToSchema;

/// Files that agents have are brought here to be shown if they are no larger than this.
const MOST_BROUGHT: u64 = 64 << 20;
/// Whether so many values are files that can be shown is found out; of the others nobody asks.
const MOST_LOOKED_AT: usize = 1000;

/// A chain with everything about it.
#[derive(Serialize, ToSchema)]
pub(super) struct ChainDetail {
    #[serde(flatten)]
    chain: ChainView,
    /// Its tasks with what they read and write.
    files: Vec<TaskFiles>,
    /// Attempts that failed, and agents that were lost.
    mishaps: Vec<Mishap>,
    /// What is executed.
    #[schema(value_type = Object)]
    definition: Value,
    /// What came of it.
    #[schema(value_type = Object)]
    result: Value,
}

/// A task with what it reads and writes.
#[derive(Serialize, ToSchema)]
pub(super) struct TaskFiles {
    task: String,
    service: String,
    /// What is started, as a user would type it.
    command: String,
    /// How long it took.
    #[schema(required)]
    millis: Option<f64>,
    /// Its result was there before.
    cached: bool,
    arguments: Vec<ArgumentView>,
}

/// What a parameter stands for.
#[derive(Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArgumentView {
    /// The parameter of the service.
    id: String,
    #[schema(value_type = schema::Direction)]
    direction: Direction,
    data_type: String,
    /// Paths, or the value itself.
    values: Vec<String>,
    /// Whether the values are files that can be shown.
    files: bool,
}

impl TaskFiles {
    fn new(task: &Executable, result: Option<&TaskResult>) -> Self {
        let mut arguments: Vec<ArgumentView> = Vec::new();
        let mut written = result.into_iter().flat_map(|r| &r.outputs);
        for a in &task.arguments {
            let values = match a.direction {
                Direction::Output => written.next().filter(|values| !values.is_empty()).cloned(),
                Direction::Input => None,
            };
            let values = values.unwrap_or_else(|| vec![a.variable.value.to_string()]);
            // A list is one argument for each of its elements.
            match arguments.iter_mut().find(|k| k.id == a.id.as_str() && k.direction == a.direction) {
                Some(known) => known.values.extend(values),
                None => arguments.push(ArgumentView {
                    id: a.id.to_string(),
                    direction: a.direction,
                    data_type: a.data_type.to_string(),
                    values,
                    files: false,
                }),
            }
        }
        Self {
            task: task.id.to_string(),
            service: task.service_id.to_string(),
            command: task.shown(),
            millis: result.map(|r| r.millis),
            cached: result.is_some_and(|r| r.cached),
            arguments,
        }
    }
}

fn tasks_of(record: &ChainRecord) -> Vec<TaskFiles> {
    let chain: Option<ProcessChain> = serde_json::from_slice(&record.payload).ok();
    let results: Vec<TaskResult> = serde_json::from_slice(&record.result).unwrap_or_default();
    let tasks = chain.iter().flat_map(|c| &c.executables).enumerate();
    tasks.map(|(i, task)| TaskFiles::new(task, results.get(i))).collect()
}

impl Front {
    /// A chain with its payload and result.
    pub(super) async fn chain(&self, run: i64, seq: u64) -> Result<ChainRecord, Problem> {
        let record = self.member.store.chain(ChainKey { run: RunId(run), seq }).await?;
        record.ok_or_else(|| Problem::not_found(&format!("chain {seq} in run {run}")))
    }

    /// A file of a run that may be shown: it is below a directory of the run, or one whose files are for everybody here.
    /// Whatever else a workflow names is not this server's to show.
    fn readable(&self, context: &RunContext, value: &str) -> Option<PathBuf> {
        let path = context.directory.join(value).canonicalize().ok()?;
        let own = [&context.tmp, &context.out].into_iter().chain(&self.setup.readable);
        let mut own = own.filter_map(|root| root.canonicalize().ok());
        (path.is_file() && own.any(|root| path.starts_with(root))).then_some(path)
    }

    /// Brings a file of a run here, where agents have files of their own.
    async fn brought(&self, run: RunId, value: &str) -> Result<File, Problem> {
        let home = self.home()?.clone();
        let supplier = Supplier::new(self.member.store.clone(), home.depot().has_object_storage());
        let reads = supplier.paths(run, &[Name::new(value)]).await?;
        let gone = || Problem::new(StatusCode::GONE, format!("nobody has {value} any more"));
        let supply = reads.supplies.into_iter().next().ok_or_else(gone)?;
        if matches!(supply.artifact, Artifact::Directory(_)) && supply.parts.is_empty() {
            return Err(Problem::new(StatusCode::CONFLICT, format!("{value} is a directory")));
        }
        if supply.artifact.bytes() > MOST_BROUGHT {
            let error = format!("{value} is too large to be brought here; `catena fetch` brings results");
            return Err(Problem::new(StatusCode::CONFLICT, error));
        }
        let rest = FilePath::new(value).strip_prefix(supply.name.as_str()).unwrap_or(FilePath::new(""));
        let rest = rest.to_path_buf();
        let bring = move || home.open_brought(&supply, &rest);
        let failed = |e: String| Problem::new(StatusCode::BAD_GATEWAY, e);
        let file = tokio::task::spawn_blocking(bring).await.map_err(|e| failed(e.to_string()))?;
        file.map(File::from_std).map_err(failed)
    }
}

#[utoipa::path(get, path = "/runs/{id}/chains/{chain}", params(("id" = i64, Path), ("chain" = u64, Path)),
    responses((status = 200, body = ChainDetail), (status = 404, body = Problem)))]
/// Shows a chain: what it requires, what it executes, what that reads and writes, and what came of it
pub(super) async fn chain(
    State(front): Shared,
    Path((id, seq)): Path<(i64, u64)>,
) -> Result<Json<ChainDetail>, Problem> {
    let record = front.chain(id, seq).await?;
    let context = front.places.context(&*front.member.store, record.key.run).await?;
    let context = context.ok_or_else(|| Problem::not_found(&format!("run {id}")))?;
    let mut files = tasks_of(&record);
    let is_local = front.places.mode().is_local();
    let mut looked = 0;
    for argument in files.iter_mut().flat_map(|t| &mut t.arguments) {
        looked += argument.values.len();
        let first = argument.values.first().map(String::as_str).unwrap_or_default();
        let is_ours = FilePath::new(first).starts_with(&context.tmp);
        let is_shown = if is_local { is_ours } else { front.readable(&context, first).is_some() };
        argument.files = looked <= MOST_LOOKED_AT && is_shown;
    }
    let failed = front.member.store.failed_attempts(record.key.run).await?;
    let mishaps = failed.iter().filter(|f| f.key == record.key).map(Mishap::new).collect();
    Ok(Json(ChainDetail {
        chain: ChainView::new(&record).with_registered(&record, front.setup.aging),
        files,
        mishaps,
        definition: serde_json::from_slice(&record.payload).unwrap_or_default(),
        result: serde_json::from_slice(&record.result).unwrap_or_default(),
    }))
}

#[utoipa::path(get, path = "/runs/{id}/chains/{chain}/files/{task}/{argument}/{number}",
    params(("id" = i64, Path), ("chain" = u64, Path), ("task" = usize, Path), ("argument" = usize, Path), ("number" = usize, Path)),
    responses((status = 200, description = "The file"),
              (status = 206, description = "The part that was asked for with `Range: bytes=…`"),
              (status = 403, body = Problem), (status = 404, body = Problem)))]
/// Gives a file that a task reads or writes: of an argument, the one with this number; all are counted from 0
pub(super) async fn file(
    State(front): Shared,
    Path((id, seq, task, argument, number)): Path<(i64, u64, usize, usize, usize)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let record = front.chain(id, seq).await?;
    let context = front.places.context(&*front.member.store, record.key.run).await?;
    let context = context.ok_or_else(|| Problem::not_found(&format!("run {id}")))?;
    let tasks = tasks_of(&record);
    let argument = tasks.get(task).and_then(|t| t.arguments.get(argument));
    let value = argument.and_then(|a| a.values.get(number));
    let value = value.ok_or_else(|| Problem::not_found(&format!("such argument of chain {seq}")))?;
    if front.places.mode().is_local() {
        return send(front.brought(record.key.run, value).await?, value, &headers).await;
    }
    let path = front.readable(&context, value).ok_or_else(|| {
        let error = format!("{value} is no file of this run that is still there");
        Problem::new(StatusCode::FORBIDDEN, error)
    })?;
    send_file(&path, &headers).await
}
