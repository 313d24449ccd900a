//! Drives macro expansion and validation through Steep's fixtures.
//!
//! The fixtures are third-party data that is not part of this repository; without it every case is
//! reported as ignored.

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
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
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
