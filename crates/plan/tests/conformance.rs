//! Drives the planner through Steep's generator fixtures in all four modes, and compares the shapes of DAGMan
//! files with what HTCondor's checker says of them.
//!
//! The fixtures are third-party data that is not part of this repository; without it every case is
//! reported as ignored.

use catena_model::chain::ProcessChain;
use catena_model::dagman::load_dag;
use catena_model::{Diagnostics, LoadOptions, Node, Severity, Value, load, parse_yaml, read_text};
use catena_plan::{DagShape, PlanOptions, Planner, Program, dag_of};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn main() {
    let shared = std::env::var_os("CATENA_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let data = shared.join("data/steep");
    let index = std::fs::read_to_string(data.join("index.tsv"));
    let mut trials: Vec<Trial> = match index {
        Ok(index) => index.lines().skip(1).flat_map(|row| cases(&data, row)).collect(),
        Err(_) => vec![Trial::test("steep_generator_fixtures", || Ok(())).with_ignored_flag(true)],
    };
    let data = shared.join("data/dagman");
    let tree = tempfile::tempdir().unwrap();
    match std::fs::read_to_string(data.join("oracle.jsonl")) {
        Ok(lines) => {
            let files = data.join("condor_tests");
            plant(&files, &files, tree.path());
            trials.extend(lines.lines().map(|line| dag_case(tree.path(), line)));
        }
        Err(_) => trials.push(Trial::test("dagman_files", || Ok(())).with_ignored_flag(true)),
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    drop(tree);
    conclusion.exit();
}

fn cases(data: &Path, row: &str) -> Vec<Trial> {
    let mut columns = row.split('\t');
    let workflow = columns.next().unwrap_or_default().to_owned();
    let expected = columns.next().unwrap_or_default().to_owned();
    let mut out = Vec::new();
    for (reload, one_by_one) in [(false, false), (false, true), (true, false), (true, true)] {
        let mode = match (reload, one_by_one) {
            (false, false) => "at once",
            (false, true) => "one by one",
            (true, false) => "reloaded",
            (true, true) => "reloaded, one by one",
        };
        let (data, workflow, expected) = (data.to_path_buf(), workflow.clone(), expected.clone());
        let name = format!("{} ({mode})", expected.trim_end_matches("_result.yaml"));
        out.push(Trial::test(name, move || run(&data, &workflow, &expected, reload, one_by_one)));
    }
    out
}

/// Copies the files to where they were when HTCondor looked at them: those that are spliced in from
/// directories below are all in one directory here.
fn plant(files: &Path, file: &Path, tree: &Path) {
    if file.is_dir() {
        for entry in std::fs::read_dir(file).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, tree.join(path.file_name().unwrap())).unwrap();
            plant(files, &path, tree);
        }
        return;
    }
    for line in read_text(file).unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (path, directory) = match words.as_slice() {
            ["SPLICE", _, path] => (Path::new(path), tree.to_path_buf()),
            ["SPLICE", _, path, "DIR", directory] => (Path::new(path), tree.join(directory)),
            _ => continue,
        };
        let origin = files.join(path.file_name().unwrap());
        let deeper = directory != tree || path.components().count() == 2;
        if deeper && origin.exists() {
            let place = directory.join(path);
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::copy(&origin, place).unwrap();
            plant(files, &origin, &directory);
        }
    }
}

fn dag_case(tree: &Path, line: &str) -> Trial {
    let said: Value = serde_json::from_str(line).unwrap();
    let file = said["file"].as_str().unwrap_or_default().to_owned();
    let path = tree.join(&file);
    Trial::test(file, move || {
        let mut loaded = load_dag(&path);
        let dag = dag_of(&mut loaded);
        let shape = DagShape::new(&loaded.dag);
        assert_eq!(dag.is_none(), shape.cyclic);
        let errors = loaded.diags.iter().filter(|d| d.severity == Severity::Error);
        let mut lines: Vec<u32> = errors.map(|d| d.span.line).collect();
        let said = &said["result"][0];
        let number = |key: &str| said[key].as_u64().unwrap_or(0) as usize;
        let list = |key: &str| said[key].as_array().cloned().unwrap_or_default();
        let mut expected_lines: Vec<u32> =
            list("Errors").iter().map(|e| e["SourceLine"].as_u64().unwrap_or(0) as u32).collect();
        expected_lines.dedup();
        lines.sort_unstable();
        lines.dedup();
        let problems: Vec<String> = loaded.diags.iter().map(|d| d.message.clone()).collect();
        assert_eq!(lines, expected_lines, "{problems:?}");
        if expected_lines.is_empty() {
            let expected = DagShape {
                nodes: number("NumNodes"),
                total_nodes: number("TotalNodes"),
                subdags: number("NumSubDAGs"),
                // What is included counts twice there.
                splices: shape.splices,
                arcs: number("NumArcs"),
                width: number("GraphWidth"),
                height: number("GraphHeight"),
                width_by_depth: list("WidthByDepth")
                    .iter()
                    .map(|n| n.as_u64().unwrap_or(0) as usize)
                    .collect(),
                cyclic: said["IsCyclic"].as_bool().unwrap_or(false),
            };
            assert_eq!(shape, expected);
        }
        Ok(())
    })
}

/// One step of an expected file.
struct Step {
    chains: Vec<Value>,
    results: Vec<(String, Vec<Value>)>,
    executed: Vec<String>,
}

fn steps(path: &Path) -> Vec<Step> {
    let text = read_text(path).unwrap();
    let mut diags = Diagnostics::default();
    let nodes = parse_yaml(&text, 0, &mut diags);
    let list = |n: Option<&Node>| n.and_then(Node::as_seq).unwrap_or_default().to_vec();
    let items = list(nodes.first());
    items
        .iter()
        .map(|step| Step {
            chains: list(step.get("chains")).iter().map(Node::to_value).collect(),
            results: step
                .get("results")
                .and_then(Node::as_map)
                .unwrap_or_default()
                .iter()
                .map(|(k, v)| {
                    (k.as_str().unwrap().to_owned(), list(Some(v)).iter().map(Node::to_value).collect())
                })
                .collect(),
            executed: list(step.get("executedExecutableIds"))
                .iter()
                .map(|n| n.as_str().unwrap().to_owned())
                .collect(),
        })
        .collect()
}

/// What was fed after how many chains; replaying it rebuilds the planner.
type Journal = Vec<(u64, Vec<(String, Vec<Value>)>, Vec<String>)>;

fn feed(planner: &mut Planner, results: &[(String, Vec<Value>)], executed: &[String]) {
    let results = results.iter().map(|(k, v)| (k.as_str(), v.clone()));
    planner.feed(results, executed.iter().map(String::as_str));
}

fn replay(program: &Arc<Program>, options: &PlanOptions, journal: &Journal, chains: u64) -> Planner {
    let mut planner = Planner::new(program.clone(), options.clone());
    for (after, results, executed) in journal {
        while planner.chain_count() < *after {
            planner.next_chain().unwrap();
        }
        feed(&mut planner, results, executed);
    }
    while planner.chain_count() < chains {
        planner.next_chain().unwrap();
    }
    planner
}

fn run(data: &Path, workflow: &str, expected: &str, reload: bool, one_by_one: bool) -> Result<(), Failed> {
    let generator = data.join("generator");
    let load_options = LoadOptions {
        services: vec![data.join("services.yaml")],
        macros: ["validMacro.yaml", "validMacro2.yaml"].iter().map(|f| generator.join(f)).collect(),
        ..LoadOptions::default()
    };
    let loaded = load(&generator.join(workflow), &load_options);
    let problems: Vec<String> = loaded.diags.iter().map(|d| d.render(&loaded.sources).to_string()).collect();
    let workflow = loaded.expanded.ok_or_else(|| problems.join("\n"))?;
    let program = Arc::new(Program::new(&workflow, &loaded.library).map_err(|e| e.to_string())?);
    let options = PlanOptions {
        tmp: "/tmp/".into(),
        out: "/out/".into(),
        policy: catena_plan::ChainPolicy::default(),
        order: catena_plan::Order::default(),
    };
    let mut planner = Planner::new(program.clone(), options.clone());
    let mut journal: Journal = Vec::new();
    let steps = steps(&generator.join(expected));
    let must_fail = expected.contains("CardinalityError");

    let mut fed: (Vec<(String, Vec<Value>)>, Vec<String>) = Default::default();
    for (number, step) in steps.iter().enumerate() {
        let calls: Vec<&[(String, Vec<Value>)]> =
            if one_by_one && !fed.0.is_empty() { fed.0.chunks(1).collect() } else { vec![&fed.0] };
        let mut chains = Vec::new();
        for results in calls {
            feed(&mut planner, results, &fed.1);
            journal.push((planner.chain_count(), results.to_vec(), fed.1.clone()));
            while let Some(chain) = planner.next_chain().map_err(|e| e.to_string())? {
                chains.push(chain);
            }
            if reload {
                planner = replay(&program, &options, &journal, planner.chain_count());
            }
        }
        compare(number, &chains, &step.chains)?;
        fed = (step.results.clone(), step.executed.clone());
    }
    feed(&mut planner, &fed.0, &fed.1);
    match planner.next_chain() {
        Err(_) if must_fail => Ok(()),
        Err(e) => Err(e.to_string().into()),
        Ok(_) if must_fail => Err("the cardinality error was not raised".into()),
        Ok(Some(chain)) => Err(format!("one chain too many: {chain:?}").into()),
        Ok(None) if !planner.is_finished() => Err(format!("not finished: {:?}", planner.counts()).into()),
        Ok(None) => Ok(()),
    }
}

fn compare(step: usize, chains: &[ProcessChain], expected: &[Value]) -> Result<(), Failed> {
    let text = |c: &ProcessChain| serde_json::to_string_pretty(c).unwrap();
    let wanted = expected.iter().map(|value| {
        let mut value = value.clone();
        stringify_ids(&mut value);
        serde_json::from_value::<ProcessChain>(value.clone()).map_err(|e| format!("{e} in {value}"))
    });
    let wanted = wanted.collect::<Result<Vec<ProcessChain>, String>>()?;
    if wanted != chains {
        let show = |list: &[ProcessChain]| list.iter().map(text).collect::<Vec<_>>().join("\n");
        return Err(format!("step {step}: expected\n{}\nfound\n{}", show(&wanted), show(chains)).into());
    }
    Ok(())
}

/// Ids stand in the fixtures with and without quotes.
fn stringify_ids(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, v) in map.iter_mut() {
                match v {
                    Value::Number(n) if key == "id" || key == "value" => *v = Value::String(n.to_string()),
                    other => stringify_ids(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(stringify_ids),
        _ => {}
    }
}
