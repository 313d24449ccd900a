//! Drives macro expansion and validation through Steep's fixtures, and the importers through recorded workflows.
//!
//! The fixtures are third-party data that is not part of this repository; without it every case is
//! reported as ignored.

use catena_model::import::{Trace, read_dax, read_wfformat, write_dax, write_wfformat};
use catena_model::{LoadOptions, load, load_text, to_long_form};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};

fn main() {
    let shared = std::env::var_os("CATENA_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let data = shared.join("data/steep");
    let mut trials = Vec::new();
    if let Ok(table) = std::fs::read_to_string(data.join("validate/expected.tsv")) {
        for row in table.lines().skip(1) {
            let columns: Vec<String> = row.split('\t').map(str::to_owned).collect();
            let data = data.clone();
            trials.push(Trial::test(format!("validate {}", columns[0]), move || validate(&data, &columns)));
        }
        let mut files: Vec<PathBuf> = std::fs::read_dir(data.join("macros"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.path())
            .collect();
        files.sort();
        for file in files {
            let name = format!("expand {}", file.file_name().unwrap_or_default().to_string_lossy());
            let data = data.clone();
            trials.push(Trial::test(name, move || expand(&data, &file)));
        }
    } else {
        trials.push(Trial::test("steep_language_fixtures", || Ok(())).with_ignored_flag(true));
    }
    for (kind, check) in [("dax", recorded_dax as fn(&str) -> _), ("wfformat", recorded_wfformat)] {
        let entries = std::fs::read_dir(shared.join("data").join(kind)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|e| e.path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "xml" || e == "json"));
        files.sort();
        if files.is_empty() {
            trials.push(Trial::test(format!("recorded_{kind}_files"), || Ok(())).with_ignored_flag(true));
        }
        for file in files {
            let name = format!("import {}", file.file_name().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(name, move || check(&std::fs::read_to_string(&file)?)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// What is in a DAX, counted in its text, is in the trace.
fn recorded_dax(text: &str) -> Result<(), Failed> {
    let trace = read_dax(text)?;
    let jobs = text.split("<job ").skip(1);
    let runtimes = jobs
        .filter_map(|e| e.split('>').next()?.split(" runtime=\"").nth(1)?.split('"').next())
        .filter_map(|value| value.trim().parse().ok());
    let runtimes: Vec<f64> = runtimes.map(|r: f64| r.max(0.0)).collect();
    let found: Vec<f64> = trace.jobs.iter().map(|j| j.runtime).collect();
    ensure(found == runtimes, "runtimes")?;
    ensure(trace.arcs.len() == text.matches("<parent ").count(), "dependencies")?;
    let uses: usize = trace.jobs.iter().map(|j| j.inputs.len() + j.outputs.len()).sum();
    let both = trace.jobs.iter().filter(|j| j.inputs.iter().any(|f| j.outputs.contains(f))).count();
    // Some jobs of Sipht name a file twice.
    let said = text.matches("<uses ").count();
    ensure(uses <= said && uses * 100 >= said * 99 && both == 0, "uses")?;
    again(&trace)
}

/// What is in WfFormat, read without knowing what it means, is in the trace.
fn recorded_wfformat(text: &str) -> Result<(), Failed> {
    let trace = read_wfformat(text)?;
    let document: serde_json::Value = serde_json::from_str(text)?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let specification = &document["workflow"]["specification"];
    let executed = list(&document["workflow"]["execution"]["tasks"]);
    let tasks = list(&specification["tasks"]);
    ensure(tasks.len() == trace.jobs.len(), "tasks")?;
    let mut arcs = Vec::new();
    for (task, job) in tasks.iter().zip(&trace.jobs) {
        ensure(task["id"] == job.id.as_str(), "ids")?;
        let of = executed.iter().find(|e| e["id"] == task["id"]).ok_or("a task was not executed")?;
        ensure(of["runtimeInSeconds"].as_f64() == Some(job.runtime), "runtimes")?;
        ensure(of["coreCount"].as_f64().unwrap_or(1.0).to_bits() == job.cores.to_bits(), "processors")?;
        ensure(of["memoryInBytes"].as_u64().unwrap_or(0) == job.memory, "memory")?;
        for (key, files) in [("inputFiles", &job.inputs), ("outputFiles", &job.outputs)] {
            let names: Vec<&str> = files.iter().map(|f| trace.files[*f as usize].name.as_str()).collect();
            ensure(task[key].as_array().map_or(0, Vec::len) == names.len(), key)?;
            ensure(list(&task[key]).iter().all(|n| names.iter().any(|f| n == f)), key)?;
        }
        arcs.extend(list(&task["parents"]).iter().map(|p| (p.to_string(), task["id"].to_string())));
    }
    let id = |job: u32| format!("\"{}\"", trace.jobs[job as usize].id);
    let mut found: Vec<(String, String)> = trace.arcs.iter().map(|(f, t)| (id(*f), id(*t))).collect();
    arcs.sort();
    found.sort();
    ensure(arcs == found, "dependencies")?;
    let files = list(&specification["files"]);
    let sizes = files.iter().map(|f| (f["id"].as_str(), f["sizeInBytes"].as_u64()));
    ensure(sizes.eq(trace.files.iter().map(|f| (Some(f.name.as_str()), Some(f.size)))), "files")?;
    again(&trace)
}

/// Written and read again it is the same, and so is how long it takes.
fn again(trace: &Trace) -> Result<(), Failed> {
    let mut json = Vec::new();
    write_wfformat(trace, &mut json)?;
    let mut xml = Vec::new();
    write_dax(trace, &mut xml)?;
    let [json, xml] = [read_wfformat(&String::from_utf8(json)?)?, read_dax(&String::from_utf8(xml)?)?];
    for read in [json, xml] {
        let jobs = |t: &Trace| -> Vec<(String, f64, u64, usize, usize)> {
            let figures = |j: &catena_model::import::TraceJob| {
                (j.id.to_string(), j.runtime, j.memory, j.inputs.len(), j.outputs.len())
            };
            t.jobs.iter().map(figures).collect()
        };
        let bytes = |t: &Trace| t.files.iter().map(|f| f.size).sum::<u64>();
        ensure(jobs(&read) == jobs(trace), "jobs, again")?;
        ensure(bytes(&read) == bytes(trace), "sizes, again")?;
        ensure(read.critical_path().to_bits() == trace.critical_path().to_bits(), "critical path, again")?;
    }
    Ok(())
}

fn ensure(holds: bool, what: &str) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(format!("{what} are not the same").into()) }
}

/// The number of errors must be that of a validator that reports all of them, whether or not services
/// are known.
fn validate(data: &Path, columns: &[String]) -> Result<(), Failed> {
    let macros = ["validMacro.yaml", "validMacro2.yaml"].iter().map(|f| data.join("generator").join(f));
    let macros: Vec<PathBuf> = if columns[1] == "workflow" { macros.collect() } else { Vec::new() };
    for services in [vec![data.join("services.yaml")], Vec::new()] {
        let options = LoadOptions { services, macros: macros.clone(), ..LoadOptions::default() };
        let loaded = load(&data.join("validate").join(&columns[0]), &options);
        if loaded.diags.error_count().to_string() != columns[2] {
            let found: Vec<String> =
                loaded.diags.iter().map(|d| d.render(&loaded.sources).to_string()).collect();
            return Err(format!("expected {} errors, found:\n{}", columns[2], found.join("\n")).into());
        }
        if loaded.diags.iter().any(|d| d.span.line == 0) {
            return Err("an error has no place".into());
        }
    }
    Ok(())
}

/// Three documents: macros, a workflow, and the workflow after expansion.
fn expand(data: &Path, file: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let documents: Vec<&str> = text.split("\n---").collect();
    let documents: Vec<&str> = if documents[0].trim().is_empty() || !documents[0].contains("id:") {
        documents[1..].to_vec()
    } else {
        documents
    };
    let [macros, workflow, rest @ ..] = &documents[..] else {
        return Err("expected three documents".into());
    };
    let dir = std::env::temp_dir().join(format!(
        "catena-expand-{}-{}",
        std::process::id(),
        file.file_stem().unwrap().to_string_lossy()
    ));
    std::fs::create_dir_all(&dir)?;
    let macro_file = dir.join("macros.yaml");
    std::fs::write(&macro_file, macros.trim_start_matches("---"))?;
    let services = vec![data.join("services.yaml")];
    let options = LoadOptions { services, macros: vec![macro_file], ..LoadOptions::default() };
    let loaded = load_text(Path::new("workflow.yaml"), workflow, &options);
    std::fs::remove_dir_all(&dir)?;

    let expected = rest.first().map(|t| t.trim()).filter(|t| !t.is_empty() && !t.ends_with("{}"));
    let Some(expected) = expected else {
        return if loaded.diags.has_errors() { Ok(()) } else { Err("expansion must fail".into()) };
    };
    // The fixtures leave variables without values and give services parameters they do not have; only
    // what concerns macros counts here.
    let workflow = loaded.workflow.ok_or("the workflow was not read")?;
    let expanded = catena_model::expand_macros(workflow, &loaded.library)
        .map_err(|diags| diags.iter().map(|d| d.message.clone()).collect::<Vec<_>>().join("\n"))?;
    let wanted = load_text(Path::new("expected.yaml"), expected, &LoadOptions::default());
    let wanted = wanted.workflow.or(wanted.expanded).ok_or("the expectation was not read")?;
    let show = |w: &catena_model::Workflow| {
        let mut w = w.clone();
        w.vars.sort_by(|a, b| a.id.cmp(&b.id));
        to_long_form(&w, &loaded.library)
    };
    let (found, wanted) = (show(&expanded), show(&wanted));
    if found == wanted { Ok(()) } else { Err(format!("expected\n{wanted}\nfound\n{found}").into()) }
}
