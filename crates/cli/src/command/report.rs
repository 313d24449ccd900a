//! `catena report`: one page with everything about a run.

use super::inspect::{each_task, find_run, open, read_definition, wait};
use super::{Outcome, print};
use crate::arguments::{Arguments, ReportArgs};
use crate::jobs::is_dagman;
use crate::render::graph::{self, escape};
use crate::render::timeline::{self, Bar};
use crate::time::duration;
use catena_model::chain::TaskFailure;
use catena_model::dagman::load_dag;
use catena_model::{Bytes, LoadOptions, moment};
use catena_plan::{StepGraph, step_name};
use catena_server::Definition;
use catena_store::{Run, SqliteStore, Store};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

/// The timeline shows at most this many tasks.
const MAX_BARS: usize = 5000;
/// The page shows at most this many failures.
const MAX_FAILURES: usize = 100;

/// What the tasks of a step have in common.
#[derive(Default)]
struct Step {
    count: u64,
    cached: u64,
    total: f64,
    longest: f64,
    cpu: f64,
    memory: u64,
}

/// Tasks on the timeline, tasks by step, and how many there are.
type Tasks = (Vec<Bar>, BTreeMap<String, Step>, u64);

struct Failure {
    attempt: u32,
    failure: TaskFailure,
}

pub(crate) fn report(args: &ReportArgs, arguments: &Arguments) -> Outcome {
    let (_, store) = open(arguments)?;
    let run = find_run(&store, args.run)?;
    let (bars, steps, total) = tasks(&store, &run)?;
    let failures = failures(&store, &run)?;
    let definition = read_definition(&store, &run)?;
    let page = page(&run, &definition, &bars, &steps, total, &failures);
    std::fs::write(&args.output, page).map_err(|e| format!("{}: {e}", args.output.display()))?;
    print(&format!("{}\n", args.output.display()));
    Ok(ExitCode::SUCCESS)
}

fn tasks(store: &SqliteStore, run: &Run) -> Result<Tasks, String> {
    let mut bars = Vec::new();
    let mut steps: BTreeMap<String, Step> = BTreeMap::new();
    let mut total = 0;
    each_task(store, run, |agent, _, task, result| {
        total += 1;
        let name = step_name(&task.id);
        let step = steps.entry(name.to_owned()).or_default();
        step.count += 1;
        step.cached += u64::from(result.cached);
        step.total += result.millis;
        step.longest = step.longest.max(result.millis);
        step.cpu += result.cpu_millis;
        step.memory = step.memory.max(result.memory);
        if bars.len() < MAX_BARS {
            bars.push(Bar {
                agent: agent.to_owned(),
                name: task.id.to_string(),
                step: name.to_owned(),
                start: result.started as f64,
                end: result.started as f64 + result.millis,
                cached: result.cached,
                failed: false,
            });
        }
    })?;
    Ok((bars, steps, total))
}

fn failures(store: &SqliteStore, run: &Run) -> Result<Vec<Failure>, String> {
    let attempts = wait(store.failed_attempts(run.id))?.map_err(|e| e.to_string())?;
    let parse = |error: &str| serde_json::from_str::<TaskFailure>(error).ok();
    Ok(attempts
        .iter()
        .filter_map(|f| Some(Failure { attempt: f.attempt, failure: parse(&f.error)? }))
        .collect())
}

const STYLE: &str = "
:root{color-scheme:light dark;--fg:#1c2733;--soft:#5c6b7c;--line:#d5dde6;--card:#f5f8fb}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--soft:#9fb0c3;--line:#33404f;--card:#1b242e}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}small,.soft{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1rem 0}.tiles div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.5rem .9rem}
.tiles b{display:block;font-size:1.25rem}table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.25rem .6rem;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{text-align:left}.bar{height:.6rem;background:#4a6fa5;border-radius:3px}pre{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.7rem;overflow:auto;font-size:13px}
.failure{border-left:4px solid #c62828;padding-left:.8rem;margin:1rem 0}.grid{stroke:var(--line)}.axis{fill:var(--soft)}svg{max-width:100%;height:auto}
.legend span{margin-right:1rem;white-space:nowrap}.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.3em}
";

fn page(
    run: &Run,
    definition: &Definition,
    bars: &[Bar],
    steps: &BTreeMap<String, Step>,
    total: u64,
    failures: &[Failure],
) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{0}: run {1}</title><style>{STYLE}</style></head><body>\n<h1>{0}</h1>\n<p class=\"soft\">run {1}, {2}, started {3} (UTC)<br>{4}</p>\n",
        escape(&run.name),
        run.id,
        run.state,
        moment(run.started.unwrap_or(run.created)),
        escape(&run.source)
    );
    if let Some(error) = &run.error {
        let _ = writeln!(out, "<p class=\"failure\">{}</p>", escape(error));
    }
    let busy: f64 = steps.values().map(|s| s.total).sum();
    let cached: u64 = steps.values().map(|s| s.cached).sum();
    let took = run.started.zip(run.ended).map_or(String::from("–"), |(s, e)| duration((e - s) as f64));
    let tiles = [
        (took, "from start to end"),
        (total.to_string(), "tasks done"),
        (cached.to_string(), "from the cache"),
        (run.skipped.to_string(), "skipped"),
        (failures.len().to_string(), "failed attempts"),
        (duration(busy), "time in tasks"),
    ];
    out.push_str("<div class=\"tiles\">");
    for (value, label) in tiles {
        let _ = write!(out, "<div><b>{value}</b><small>{label}</small></div>");
    }
    out.push_str("</div>\n");
    if let Some(graph) = graph(definition) {
        let _ = writeln!(out, "<h2>Workflow</h2>\n{graph}");
    }
    if !bars.is_empty() {
        let note = if (bars.len() as u64) < total {
            format!("<p class=\"soft\">The first {} of {total} tasks.</p>", bars.len())
        } else {
            String::new()
        };
        let _ = writeln!(out, "<h2>Timeline</h2>\n{}{note}", timeline::svg(bars));
    }
    durations(&mut out, steps);
    if !failures.is_empty() {
        out.push_str("<h2>Failures</h2>\n");
        for f in failures.iter().take(MAX_FAILURES) {
            failure(&mut out, f);
        }
        if failures.len() > MAX_FAILURES {
            let _ = writeln!(out, "<p class=\"soft\">… and {} more.</p>", failures.len() - MAX_FAILURES);
        }
    }
    if !definition.text.is_empty() {
        let _ = writeln!(out, "<h2>Source</h2>\n<pre>{}</pre>", escape(&definition.text));
    }
    let _ = writeln!(out, "<p class=\"soft\">Catena {}</p>\n</body></html>", env!("CARGO_PKG_VERSION"));
    out
}

/// Larger graphs nobody could read.
const DRAWN: usize = 400;

/// The graph, if the workflow can still be read.
fn graph(definition: &Definition) -> Option<String> {
    if is_dagman(&definition.workflow) {
        let graph = StepGraph::of_dag(&load_dag(&definition.workflow).dag);
        return (graph.nodes.len() <= DRAWN).then(|| graph::svg(&graph));
    }
    let options = LoadOptions {
        services: definition.services.clone(),
        macros: definition.macros.clone(),
        inputs: definition.inputs.clone(),
        texts: Vec::new(),
    };
    let loaded = catena_compose::model::load_text(&definition.workflow, &definition.text, &options);
    let graph = StepGraph::new(loaded.expanded.as_ref()?, &loaded.library);
    (graph.nodes.len() <= DRAWN).then(|| graph::svg(&graph))
}

fn durations(out: &mut String, steps: &BTreeMap<String, Step>) {
    if steps.is_empty() {
        return;
    }
    let most = steps.values().map(|s| s.total).fold(1e-9, f64::max);
    out.push_str("<h2>Durations</h2>\n<table><tr><th>step</th><th>tasks</th><th>cached</th><th>mean</th><th>longest</th><th>processor</th><th>memory</th><th>all together</th><th style=\"width:18%\"></th></tr>\n");
    for (name, s) in steps {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><div class=\"bar\" style=\"width:{:.1}%\"></div></td></tr>",
            escape(name),
            s.count,
            s.cached,
            duration(s.total / s.count as f64),
            duration(s.longest),
            duration(s.cpu),
            Bytes(s.memory),
            duration(s.total),
            s.total / most * 100.0
        );
    }
    out.push_str("</table>\n");
}

fn failure(out: &mut String, f: &Failure) {
    let d = &f.failure;
    let _ = writeln!(
        out,
        "<div class=\"failure\"><b>{}</b> (attempt {}): {}",
        escape(&d.task),
        f.attempt,
        escape(&d.message)
    );
    if !d.command.is_empty() {
        let _ = writeln!(out, "<pre>{}</pre>", escape(&d.command));
    }
    if !d.tail.is_empty() {
        let _ = writeln!(out, "<pre>{}</pre>", escape(&d.tail.join("\n")));
    }
    if let Some(log) = &d.log {
        let _ = writeln!(out, "<small>log: {}</small>", escape(log));
    }
    if let Some(help) = &d.help {
        let _ = writeln!(out, "<p>{}</p>", escape(help));
    }
    out.push_str("</div>\n");
}
