//! Reads what a command refers to: the workflow with its services and macros, inputs, and the
//! `catena.yaml` of a project.

use crate::arguments::SourceArgs;
use catena_model::{Diagnostics, LoadOptions, Loaded, Name, Node, Value, load, parse_yaml, read_text};
use std::path::{Path, PathBuf};

/// The settings of a project, from `catena.yaml` beside the workflow or in the current directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Project {
    pub(crate) services: Vec<PathBuf>,
    pub(crate) macros: Vec<PathBuf>,
    pub(crate) cpus: Option<f64>,
    pub(crate) memory: Option<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) resources: Vec<(String, f64)>,
}

/// The file with the settings of a project.
const PROJECT_FILE: &str = "catena.yaml";

impl Project {
    /// Finds and reads the settings that apply to a workflow.
    pub(crate) fn find(workflow: &Path) -> Result<Self, String> {
        let beside = if workflow.is_dir() { workflow } else { workflow.parent().unwrap_or(Path::new("")) };
        for directory in [beside, Path::new("")] {
            let file = directory.join(PROJECT_FILE);
            if file.is_file() {
                return Self::read(&file);
            }
        }
        Ok(Self::default())
    }

    fn read(file: &Path) -> Result<Self, String> {
        let nodes = read_yaml(file)?;
        let Some(root) = nodes.first().filter(|n| !n.is_null()) else {
            return Ok(Self::default());
        };
        let directory = file.parent().unwrap_or(Path::new(""));
        let wrong =
            |n: &Node, what: &str| format!("{}:{}:{}: {what}", file.display(), n.span.line, n.span.column);
        let mut project = Self::default();
        let entries = root
            .as_map()
            .ok_or_else(|| wrong(root, "expected a mapping with `services`, `macros` or `agent`"))?;
        for (key, value) in entries {
            match key.as_str() {
                Some("services") => project.services = files(value, directory),
                Some("macros") => project.macros = files(value, directory),
                Some("agent") => project.agent(value).map_err(|what| wrong(value, &what))?,
                other => {
                    let other = other.unwrap_or("");
                    return Err(wrong(
                        key,
                        &format!("unknown setting `{other}`; known are `services`, `macros` and `agent`"),
                    ));
                }
            }
        }
        Ok(project)
    }

    fn agent(&mut self, node: &Node) -> Result<(), String> {
        for (key, value) in node.as_map().ok_or("expected a mapping")? {
            let number = || value.as_str().and_then(|s| s.parse::<f64>().ok());
            match key.as_str().unwrap_or("") {
                "cpus" => self.cpus = number(),
                "memory" => self.memory = value.as_str().map(str::to_owned),
                "capabilities" => {
                    let items = value.as_seq().unwrap_or(std::slice::from_ref(value));
                    self.capabilities = items.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
                }
                name => self
                    .resources
                    .push((name.to_owned(), number().ok_or_else(|| format!("`{name}` must be a number"))?)),
            }
        }
        Ok(())
    }
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

fn files(node: &Node, directory: &Path) -> Vec<PathBuf> {
    let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
    items.iter().filter_map(Node::as_str).map(|f| directory.join(f)).collect()
}

/// What to load, and from where.
pub(crate) fn load_options(source: &SourceArgs, project: &Project) -> Result<LoadOptions, String> {
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
pub(crate) fn load_source(source: &SourceArgs) -> Result<(Loaded, LoadOptions, Project), String> {
    let project = Project::find(&source.workflow)?;
    let options = load_options(source, &project)?;
    Ok((load(&source.workflow, &options), options, project))
}
