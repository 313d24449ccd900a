//! Workflows in virtual time, for those who would rather look.

use super::{Front, Problem, Shared, schema};
use crate::history::History;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use catena_compose::model::load_text;
use catena_model::chain::RunId;
use catena_model::import::{Trace, TraceJob, read_recorded};
use catena_plan::StepGraph;
use catena_simulate::generate::{self, Kind};
use catena_simulate::{
    CLUSTERS, Cluster, Fate, Figure, Outcome, PolicyName, Workload, read_cluster, seconds,
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use utoipa::ToSchema;

/// So many simulations may go on at the same time: they take a processor each.
pub(super) const AT_ONCE: usize = 1;
/// Larger workflows are not simulated on a server.
const MOST_TASKS: usize = 200_000;
/// So many simulations may be asked for at once.
const MOST_CELLS: usize = 500;
/// How long tasks of workflows that were never recorded are taken to be, in seconds.
const RUNTIME: f64 = 10.0;

/// Something with a name.
#[derive(Serialize, ToSchema)]
#[schema(as = SimulateChoice)]
pub(super) struct Choice {
    id: String,
    description: String,
}

/// A workflow that can be generated.
#[derive(Serialize, ToSchema)]
pub(super) struct Shape {
    id: &'static str,
    /// How many tasks it has at least.
    least: usize,
}

/// What there is to choose from.
#[derive(Serialize, ToSchema)]
#[schema(as = SimulateChoices)]
pub(super) struct Choices {
    shapes: Vec<Shape>,
    clusters: Vec<Choice>,
    policies: Vec<Choice>,
}

#[utoipa::path(get, path = "/simulate", responses((status = 200, body = Choices)))]
/// Says what can be simulated, where, and by which policies
pub(super) async fn choices() -> Json<Choices> {
    let cluster = |(id, description): (&str, &str)| Choice { id: id.into(), description: description.into() };
    let policy = |p: PolicyName| Choice { id: p.to_string(), description: p.description().to_owned() };
    Json(Choices {
        shapes: Kind::ALL.map(|kind| Shape { id: kind.name(), least: kind.least() }).into(),
        clusters: CLUSTERS.map(cluster).into(),
        policies: PolicyName::all().map(policy).collect(),
    })
}

/// What to simulate.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = SimulateWorkflow)]
pub(super) enum Source {
    /// A generated workflow.
    Shape {
        shape: String,
        tasks: usize,
        #[serde(default = "one")]
        seed: u64,
    },
    /// DAX, WfFormat, Pegasus or a workflow of Catena; the name of the file says which.
    File {
        #[schema(value_type = String)]
        file: PathBuf,
        text: String,
        /// How long tasks take, in seconds, where that was not recorded.
        runtime: Option<f64>,
    },
    /// A run, with the durations it had.
    Run { run: i64 },
}

/// What to simulate, where, and by which policies.
#[derive(Deserialize, ToSchema)]
#[schema(as = SimulateRequest)]
pub(super) struct Wanted {
    workflow: Source,
    /// The name of a cluster, or its description in YAML.
    cluster: String,
    /// How many nodes there are; as many as the description says if this is empty.
    #[serde(default)]
    nodes: Vec<u32>,
    policies: Vec<String>,
    #[serde(default = "one")]
    seed: u64,
    /// Who was busy when is told for clusters of this size.
    #[serde(default)]
    timeline: Option<u32>,
}

fn one() -> u64 {
    1
}

/// One of the lines of the answer.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SimulateLine)]
pub(super) enum Line {
    /// What is simulated.
    Workload { name: String, tasks: usize },
    /// What came of one simulation.
    #[schema(value_type = schema::Figure)]
    Figure(Figure),
    /// Who was busy when.
    Timeline(Timeline),
    /// Why one simulation, or all of them, came to nothing.
    Error(String),
}

/// Who was busy with what: columns of equal length, with times in seconds.
#[derive(Serialize, ToSchema)]
#[schema(as = SimulatedTimeline)]
pub(super) struct Timeline {
    policy: String,
    nodes: u32,
    makespan: f64,
    /// Of nodes.
    names: Vec<String>,
    programs: Vec<String>,
    /// Which of `names`.
    node: Vec<u32>,
    /// Which of `programs`.
    program: Vec<u32>,
    start: Vec<f64>,
    end: Vec<f64>,
    /// 0 if it counted, 1 if it was in vain.
    vain: Vec<u8>,
}

impl Timeline {
    fn new(figure: &Figure, workload: &Workload, cluster: &Cluster, outcome: &Outcome) -> Self {
        let mut timeline = Self {
            policy: figure.policy.clone(),
            nodes: figure.nodes,
            makespan: figure.makespan,
            names: Vec::new(),
            programs: Vec::new(),
            node: Vec::new(),
            program: Vec::new(),
            start: Vec::new(),
            end: Vec::new(),
            vain: Vec::new(),
        };
        let mut places: HashMap<u32, u32> = HashMap::new();
        for stay in &outcome.stays {
            places.entry(stay.node).or_insert_with(|| {
                timeline.names.push(format!("{} {}", cluster.kinds[stay.kind].id, stay.node + 1));
                timeline.names.len() as u32 - 1
            });
        }
        let mut programs: HashMap<&str, u32> = HashMap::new();
        for e in outcome.executions.iter().filter(|e| e.fate != Fate::Recalled) {
            let Some(node) = places.get(&e.node) else { continue };
            let name = workload.tasks[e.task as usize].program.as_str();
            let program = *programs.entry(name).or_insert_with(|| {
                timeline.programs.push(name.to_owned());
                timeline.programs.len() as u32 - 1
            });
            timeline.node.push(*node);
            timeline.program.push(program);
            timeline.start.push(seconds(e.busy));
            timeline.end.push(seconds(e.end));
            timeline.vain.push(u8::from(e.fate != Fate::Succeeded));
        }
        timeline
    }
}

fn bad(error: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error)
}

fn too_large(tasks: usize) -> Result<(), Problem> {
    if tasks <= MOST_TASKS {
        return Ok(());
    }
    Err(bad(format!(
        "the workflow has {tasks} tasks, and at most {MOST_TASKS} are simulated here; `catena simulate` takes any"
    )))
}

/// Reads a workflow as if it was recorded.
fn read(file: &Path, text: &str, runtime: Option<f64>) -> Result<Trace, Problem> {
    if let Some(trace) = read_recorded(file, text) {
        return trace.map_err(bad);
    }
    if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("dag")) {
        return Err(bad(
            "DAG files name other files, which are not here; `catena convert --to dax` makes one file of them",
        ));
    }
    let loaded = load_text(file, text, &catena_model::LoadOptions::default());
    if let Some(problem) = super::runs::mistakes(&loaded) {
        return Err(problem);
    }
    let workflow = loaded.expanded.as_ref().ok_or_else(|| bad("only workflows can be simulated"))?;
    let graph = StepGraph::new(workflow, &loaded.library);
    let runtime = runtime.unwrap_or(RUNTIME);
    let job = |step: &catena_plan::Step| TraceJob {
        id: step.name.clone(),
        program: step.name.clone(),
        runtime,
        cores: 1.0,
        ..TraceJob::default()
    };
    Ok(Trace {
        name: file.display().to_string(),
        jobs: graph.nodes.iter().map(job).collect(),
        arcs: graph.edges.iter().map(|e| (e.from as u32, e.to as u32)).collect(),
        ..Trace::default()
    })
}

impl Front {
    async fn trace(&self, source: Source) -> Result<Trace, Problem> {
        match source {
            Source::Shape { shape, tasks, seed } => {
                too_large(tasks)?;
                let trace = generate::by_name(&shape, tasks, seed).map_err(bad)?;
                Ok(Trace { name: format!("{shape}:{}", trace.jobs.len()), ..trace })
            }
            Source::File { file, text, runtime } => read(&file, &text, runtime),
            Source::Run { run } => {
                self.find(run).await?;
                let history = History::read(&*self.member.store, RunId(run)).await?;
                let nothing =
                    || bad(format!("no task of run {run} has ended, so nothing is known about durations"));
                Ok(history.ok_or_else(nothing)?.trace())
            }
        }
    }
}

#[utoipa::path(
    post, path = "/simulate", request_body = Wanted,
    responses((status = 200, description = "A line of JSON for each thing that is known, as soon as it is", body = Line, content_type = "application/x-ndjson"),
              (status = 422, body = Problem), (status = 503, body = Problem))
)]
/// Executes a workflow in virtual time, on clusters of several sizes, by several policies
pub(super) async fn simulate(State(front): Shared, Json(wanted): Json<Wanted>) -> Result<Response, Problem> {
    let Wanted { workflow, cluster, nodes, policies, seed, timeline } = wanted;
    let cluster = match Cluster::by_name(&cluster) {
        Some(cluster) => cluster,
        None => read_cluster(&cluster).map_err(|mistakes| {
            bad(format!("the description of the cluster is wrong:\n{}", mistakes.join("\n")))
        })?,
    };
    let policies = policies.iter().map(|p| p.parse().map_err(bad)).collect::<Result<Vec<PolicyName>, _>>()?;
    if policies.is_empty() {
        return Err(bad("name a policy at least"));
    }
    if nodes.len().max(1) * policies.len() > MOST_CELLS {
        return Err(bad(format!("at most {MOST_CELLS} simulations can be asked for at once")));
    }
    if nodes.contains(&0) {
        return Err(bad("a cluster has one node at least"));
    }
    // Clusters that make nodes on demand may have more than were asked for; they are known by what was asked.
    let clusters: Vec<(u32, Cluster)> = match &nodes[..] {
        [] => vec![(cluster.nodes(), cluster)],
        nodes => nodes.iter().map(|n| (*n, cluster.clone().with_nodes(*n))).collect(),
    };
    let trace = front.trace(workflow).await?;
    too_large(trace.jobs.len())?;
    let permit = front.simulations.clone().try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "somebody else simulates at the moment; try again")
    })?;
    let workload = Workload::new(&trace, clusters[0].1.uniform).map_err(|e| bad(e.to_string()))?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        execute(&workload, &clusters, &policies, seed, timeline, &|line| sender.blocking_send(line).is_ok());
    });
    let lines = stream::unfold(receiver, |mut receiver| async move {
        let line = receiver.recv().await?;
        let mut text = serde_json::to_vec(&line).unwrap_or_default();
        text.push(b'\n');
        Some((Ok::<_, std::io::Error>(text), receiver))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response())
}

/// Simulates, as long as somebody listens.
fn execute(
    workload: &Workload,
    clusters: &[(u32, Cluster)],
    policies: &[PolicyName],
    seed: u64,
    timeline: Option<u32>,
    tell: &dyn Fn(Line) -> bool,
) {
    if !tell(Line::Workload { name: workload.name.clone(), tasks: workload.len() }) {
        return;
    }
    for (nodes, cluster) in clusters {
        for policy in policies {
            let told = match Figure::of(workload, cluster, *policy, seed) {
                Ok((figure, outcome)) => {
                    let figure = Figure { nodes: *nodes, ..figure };
                    let shown = timeline.is_none_or(|n| n == figure.nodes);
                    let drawn = shown.then(|| Timeline::new(&figure, workload, cluster, &outcome));
                    tell(Line::Figure(figure)) && drawn.is_none_or(|drawn| tell(Line::Timeline(drawn)))
                }
                Err(error) => tell(Line::Error(error)),
            };
            if !told {
                return;
            }
        }
    }
}
