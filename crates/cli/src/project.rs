//! Reads what a command refers to: the workflow with its services and macros, inputs, and the
//! `catena.yaml` of a project.

use crate::arguments::{ConfigArgs, SourceArgs};
use crate::jobs::is_dagman;
use catena_compose::model::load;
use catena_model::{Diagnostics, LoadOptions, Loaded, Name, Node, Value, parse_yaml, read_text};
use catena_server::{CONFIG_FILE, Config};
use std::path::{Path, PathBuf};

/// Finds and reads the settings that apply to a workflow: `catena.yaml` beside it or in the current directory.
pub(crate) fn find_config(workflow: &Path) -> Result<Config, String> {
    let beside = if workflow.is_dir() { workflow } else { workflow.parent().unwrap_or(Path::new("")) };
    for directory in [beside, Path::new("")] {
        let file = directory.join(CONFIG_FILE);
        if file.is_file() {
            return Config::read(&file).map_err(|mistakes| mistakes.join("\n"));
        }
    }
    Ok(Config::default())
}

/// The settings of an instance: the file, then the environment, then the command line.
pub(crate) fn instance_config(args: &ConfigArgs) -> Result<(Config, Option<PathBuf>), String> {
    let file = args.config.clone().or_else(|| Some(PathBuf::from(CONFIG_FILE)).filter(|f| f.is_file()));
    let mut config = Config::default();
    let mut mistakes = file.as_ref().map(|f| config.add_file(f)).unwrap_or_default();
    mistakes.extend(config.add_environment(std::env::vars()));
    for given in &args.set {
        let set = given.split_once('=').ok_or_else(|| "expected SETTING=VALUE".to_owned());
        let set = set.and_then(|(setting, value)| config.add_text(setting.trim(), value));
        mistakes.extend(set.err().map(|e| format!("--set {given}: {e}")));
    }
    if mistakes.is_empty() { Ok((config, file)) } else { Err(mistakes.join("\n")) }
}

/// Reads a YAML file that is no workflow; the first mistake is reported with its place.
pub(crate) fn read_yaml(file: &Path) -> Result<Vec<Node>, String> {
    let text = read_text(file)?;
    let mut diags = Diagnostics::default();
    let nodes = parse_yaml(&text, 0, &mut diags);
    match diags.iter().next() {
        Some(d) => Err(format!("{}:{}:{}: {}", file.display(), d.span.line, d.span.column, d.message)),
        None => Ok(nodes),
    }
}

/// What to load, and from where.
pub(crate) fn load_options(source: &SourceArgs, project: &Config) -> Result<LoadOptions, String> {
    let mut inputs = Vec::new();
    for file in &source.inputs {
        let nodes = read_yaml(file)?;
        let entries = nodes.first().and_then(Node::as_map);
        let entries =
            entries.ok_or_else(|| format!("{}: expected a mapping of inputs to values", file.display()))?;
        inputs.extend(entries.iter().filter_map(|(k, v)| Some((Name::new(k.as_str()?), v.to_value()))));
    }
    for given in &source.input {
        let (name, value) =
            given.split_once('=').ok_or_else(|| format!("`-i {given}`: expected NAME=VALUE"))?;
        let mut diags = Diagnostics::default();
        let nodes = parse_yaml(value, 0, &mut diags);
        // What is no YAML is meant as text.
        let value = match nodes.first() {
            Some(node) if diags.is_empty() => node.to_value(),
            _ => Value::String(value.to_owned()),
        };
        inputs.push((Name::new(name.trim()), value));
    }
    let services = project.services.iter().chain(&source.services).cloned().collect();
    let macros = project.macros.iter().chain(&source.macros).cloned().collect();
    Ok(LoadOptions { services, macros, inputs, texts: Vec::new() })
}

/// Loads what a command names.
pub(crate) fn load_source(source: &SourceArgs) -> Result<(Loaded, LoadOptions, Config), String> {
    if is_dagman(&source.workflow) {
        let file = source.workflow.display();
        return Err(format!("{file} is a DAG file; `catena run`, `check`, `prio` and `graph` take those"));
    }
    let project = find_config(&source.workflow)?;
    let options = load_options(source, &project)?;
    Ok((load(&source.workflow, &options), options, project))
}
