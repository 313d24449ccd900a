//! The YAML form of compositions, which loses nothing.
//!
//! ```yaml
//! composition: 1
//! root: main
//! workflows:
//!   count:
//!     inputs: [{id: text, type: file}]
//!     outputs: [{id: lines, type: integer}]
//!     task: {run: "wc -l < {text} > {lines}"}
//!   main:
//!     inputs: [{id: texts, type: "[file]"}]
//!     outputs: [{id: lines, type: "[integer]"}]
//!     graph:
//!       nodes: {each: {use: counts}}
//!       links: {a: texts -> each.text, b: each.lines -> lines}
//!   counts:
//!     map: {of: count}
//! ```

use super::check::check;
use super::composition::{
    Body, Composition, Construct, End, Graph, How, Interface, Link, LinkId, Node, NodeId, Port, PortId, Task,
    Workflow, WorkflowId,
};
use super::types::Type;
use catena_model::{Diagnostics, Node as Yaml, Span, Value};
use serde_json::{Map, json};
use std::collections::BTreeMap;

/// The field that makes a document a composition.
const MARK: &str = "composition";

/// Whether a document is a composition.
pub fn is_composition(document: &Yaml) -> bool {
    document.get(MARK).is_some()
}

/// Reads a composition and reports everything that is wrong with it, with its place.
pub(super) fn read(document: &Yaml, diags: &mut Diagnostics) -> Option<Composition> {
    let mut reader = Reader { diags, spans: BTreeMap::new(), place: String::new() };
    let composition = reader.composition(document);
    let Reader { spans, .. } = reader;
    if diags.has_errors() {
        return None;
    }
    for flaw in check(&composition) {
        diags.error("composition", nearest_span(&spans, &flaw.place), flaw.place.clone(), flaw.message);
    }
    (!diags.has_errors()).then_some(composition)
}

/// The place of something, or of what it is in.
fn nearest_span(spans: &BTreeMap<String, Span>, place: &str) -> Span {
    let mut at = place;
    loop {
        if let Some(span) = spans.get(at) {
            return *span;
        }
        at = match at.rfind('/') {
            Some(cut) => &at[..cut],
            None => return spans.get("").copied().unwrap_or_default(),
        };
    }
}

struct Reader<'d> {
    diags: &'d mut Diagnostics,
    spans: BTreeMap<String, Span>,
    /// Where the reader is.
    place: String,
}

impl Reader<'_> {
    fn error(&mut self, span: Span, message: impl Into<String>) -> &mut catena_model::Diagnostic {
        let place = self.place.clone();
        self.diags.error("composition", span, place, message)
    }

    /// Reads something one step further down.
    fn at<T>(&mut self, step: &str, span: Span, f: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.place.len();
        if !self.place.is_empty() {
            self.place.push('/');
        }
        self.place.push_str(step);
        self.spans.insert(self.place.clone(), span);
        let result = f(self);
        self.place.truncate(before);
        result
    }

    /// The entries of a mapping, with the keys as texts.
    fn entries<'n>(&mut self, node: &'n Yaml) -> Vec<(&'n str, Span, &'n Yaml)> {
        let Some(entries) = node.as_map() else {
            let kind = node.kind();
            self.error(node.span, format!("expected a mapping, found {kind}"));
            return Vec::new();
        };
        let mut out: Vec<(&str, Span, &Yaml)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match key.as_str() {
                Some(name) if out.iter().any(|(known, ..)| *known == name) => {
                    self.error(key.span, format!("`{name}` is given twice"));
                }
                Some(name) => out.push((name, key.span, value)),
                None => {
                    self.error(key.span, "expected a name");
                }
            }
        }
        out
    }

    fn unknown(&mut self, key: &str, span: Span, known: &[&str]) {
        self.error(span, format!("unknown field `{key}`")).did_you_mean(key, known.iter().copied());
    }

    /// Something that serde can read.
    fn value<T: serde::de::DeserializeOwned>(&mut self, node: &Yaml) -> Option<T> {
        match serde_json::from_value(node.to_value()) {
            Ok(value) => Some(value),
            Err(e) => {
                self.error(node.span, e.to_string());
                None
            }
        }
    }

    fn text(&mut self, node: &Yaml) -> String {
        match node.as_str() {
            Some(text) => text.to_owned(),
            None => {
                let kind = node.kind();
                self.error(node.span, format!("expected a text, found {kind}"));
                String::new()
            }
        }
    }

    fn composition(&mut self, node: &Yaml) -> Composition {
        const KNOWN: [&str; 8] =
            [MARK, "name", "root", "priority", "retries", "values", "services", "workflows"];
        self.spans.insert(String::new(), node.span);
        let mut composition = Composition::default();
        for (key, span, value) in self.entries(node) {
            match key {
                MARK if value.as_str() == Some("1") => {}
                MARK => {
                    self.error(value.span, "this version of the form is not known; write `composition: 1`");
                }
                "name" => composition.name = self.text(value),
                "root" => composition.root = self.at("root", value.span, |r| WorkflowId::new(r.text(value))),
                "priority" | "retries" => {
                    composition.settings.insert(key.to_owned(), value.to_value());
                }
                "services" => composition.services = value.to_value(),
                "values" => self.at(key, span, |r| {
                    for (port, span, value) in r.entries(value) {
                        r.at(port, span, |_| composition.values.insert(PortId::new(port), value.to_value()));
                    }
                }),
                "workflows" => self.at(key, span, |r| {
                    for (id, span, value) in r.entries(value) {
                        let workflow = r.at(id, span, |r| r.workflow(value));
                        composition.workflows.extend(workflow.map(|w| (WorkflowId::new(id), w)));
                    }
                }),
                other => self.unknown(other, span, &KNOWN),
            }
        }
        if composition.root.as_str().is_empty() {
            self.error(node.span, "`root` is missing: which workflow runs?");
        }
        composition
    }

    fn workflow(&mut self, node: &Yaml) -> Option<Workflow> {
        let mut workflow = (String::new(), String::new(), Interface::default());
        let mut bodies: Vec<Body> = Vec::new();
        let mut known = vec!["name", "description", "inputs", "outputs", "task", "graph"];
        known.extend(How::NAMES);
        for (key, span, value) in self.entries(node) {
            match key {
                "name" => workflow.0 = self.text(value),
                "description" => workflow.1 = self.text(value),
                "inputs" => workflow.2.inputs = self.at(key, span, |r| r.ports(value)),
                "outputs" => workflow.2.outputs = self.at(key, span, |r| r.ports(value)),
                "task" => bodies.push(Body::Task(self.at(key, span, |r| r.task(value))?)),
                "graph" => bodies.push(Body::Graph(self.at(key, span, |r| r.graph(value)))),
                how if How::NAMES.contains(&how) => {
                    bodies.push(Body::Construct(self.at(key, span, |r| r.construct(how, value))?));
                }
                other => self.unknown(other, span, &known),
            }
        }
        if bodies.len() != 1 {
            self.error(node.span, "a workflow has exactly one body")
                .help(format!("write `task`, `graph`, or one of {}", How::NAMES.join(", ")));
            return None;
        }
        let (name, description, interface) = workflow;
        if let Some(Body::Construct(construct)) = bodies.first()
            && interface != Interface::default()
        {
            let how = construct.how.name();
            self.error(
                node.span,
                format!("the ports of a {how} follow from `{}`; leave them out", construct.of),
            );
        }
        Some(Workflow { name, description, interface, body: bodies.remove(0) })
    }

    /// Ports as a list, or as a mapping of names to types.
    fn ports(&mut self, node: &Yaml) -> Vec<Port> {
        if node.as_map().is_some() {
            let entries = self.entries(node).into_iter();
            return entries
                .filter_map(|(id, span, value)| {
                    let data_type = self.at(id, span, |r| r.value::<Type>(value))?;
                    Some(Port::new(id, data_type))
                })
                .collect();
        }
        let Some(items) = node.as_seq() else {
            self.error(node.span, "expected a list of ports such as `{id: text, type: file}`");
            return Vec::new();
        };
        let mut ports = Vec::new();
        for item in items {
            let id = item.get("id").and_then(Yaml::as_str).unwrap_or_default().to_owned();
            self.at(&id, item.span, |r| {
                let mut value = item.to_value();
                let missing = value.as_object().is_none_or(|v| !v.contains_key("id"));
                if missing {
                    r.error(item.span, "a port needs an `id`");
                    return;
                }
                if value.get("name").is_none() {
                    value["name"] = json!(id);
                }
                match serde_json::from_value(value) {
                    Ok(port) => ports.push(port),
                    Err(e) => {
                        r.error(item.span, e.to_string());
                    }
                }
            });
        }
        ports
    }

    fn task(&mut self, node: &Yaml) -> Option<Task> {
        let Value::Object(mut action) = node.to_value() else {
            self.error(node.span, "expected a task such as `{run: \"wc -l < {text} > {lines}\"}`");
            return None;
        };
        let names = ["inputs", "outputs", "constants"]
            .map(|key| node.get(key).filter(|_| action.remove(key).is_some()));
        let [inputs, outputs, constants] = names;
        let inputs = inputs.and_then(|n| self.value(n)).unwrap_or_default();
        let outputs = outputs.and_then(|n| self.value(n)).unwrap_or_default();
        if let Some(constants) = constants {
            action.insert("inputs".to_owned(), constants.to_value());
        }
        Some(Task { action, inputs, outputs })
    }

    fn graph(&mut self, node: &Yaml) -> Graph {
        let mut graph = Graph::default();
        for (key, span, value) in self.entries(node) {
            match key {
                "nodes" => self.at(key, span, |r| {
                    for (id, span, value) in r.entries(value) {
                        let node = r.at(id, span, |r| r.node(value));
                        graph.nodes.extend(node.map(|n| (NodeId::new(id), n)));
                    }
                }),
                "links" => self.at(key, span, |r| {
                    for (id, span, value) in r.entries(value) {
                        let link = r.at(id, span, |r| r.link(value));
                        graph.links.extend(link.map(|l| (LinkId::new(id), l)));
                    }
                }),
                other => self.unknown(other, span, &["nodes", "links"]),
            }
        }
        graph
    }

    fn node(&mut self, node: &Yaml) -> Option<Node> {
        let mut found =
            Node { workflow: WorkflowId::default(), label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
        for (key, span, value) in self.entries(node) {
            match key {
                "use" => found.workflow = WorkflowId::new(self.text(value)),
                "label" => found.label = self.text(value),
                "after" => found.after = self.value(value)?,
                "at" => [found.x, found.y] = self.value(value)?,
                other => self.unknown(other, span, &["use", "label", "after", "at"]),
            }
        }
        if found.workflow.as_str().is_empty() {
            self.error(node.span, "`use` is missing: which workflow is it?");
        }
        Some(found)
    }

    fn link(&mut self, node: &Yaml) -> Option<Link> {
        let text = self.text(node);
        let end = |text: &str| match text.trim().split_once('.') {
            Some((node, port)) => End::of(node, port),
            None => End::this(text.trim()),
        };
        match text.split_once("->") {
            Some((from, to)) => Some(Link { from: end(from), to: end(to) }),
            None => {
                self.error(node.span, "a link is written `from -> to`, such as `align.reads -> sort.input`");
                None
            }
        }
    }

    fn construct(&mut self, how: &str, node: &Yaml) -> Option<Construct> {
        let Value::Object(mut fields) = node.to_value() else {
            self.error(node.span, format!("expected what the {how} is applied to: `{{of: …}}`"));
            return None;
        };
        fields.insert("construct".to_owned(), json!(how));
        match serde_json::from_value(Value::Object(fields)) {
            Ok(construct) => Some(construct),
            Err(e) => {
                self.error(node.span, e.to_string());
                None
            }
        }
    }
}

/// Writes a composition.
pub fn write(composition: &Composition) -> String {
    let mut document = json!({MARK: 1, "root": composition.root});
    if !composition.name.is_empty() {
        document["name"] = json!(composition.name);
    }
    for (key, value) in &composition.settings {
        document[key] = value.clone();
    }
    if !composition.values.is_empty() {
        document["values"] = json!(composition.values);
    }
    if !composition.services.is_null() {
        document["services"] = composition.services.clone();
    }
    let workflows = composition.workflows.iter().map(|(id, w)| (id.to_string(), workflow_value(w)));
    document["workflows"] = Value::Object(workflows.collect());
    catena_model::to_yaml(&document, &ORDER)
}

/// The order in which people expect fields.
const ORDER: [&str; 15] = [
    MARK,
    "id",
    "name",
    "description",
    "root",
    "priority",
    "values",
    "inputs",
    "outputs",
    "task",
    "graph",
    "nodes",
    "links",
    "use",
    "of",
];

fn workflow_value(workflow: &Workflow) -> Value {
    let mut out = Map::new();
    if !workflow.name.is_empty() {
        out.insert("name".into(), json!(workflow.name));
    }
    if !workflow.description.is_empty() {
        out.insert("description".into(), json!(workflow.description));
    }
    let ports = |ports: &[Port]| -> Value {
        let port = |p: &Port| {
            let mut out = json!({"id": p.id, "type": p.data_type});
            if p.name != p.id.as_str() {
                out["name"] = json!(p.name);
            }
            out
        };
        ports.iter().map(port).collect()
    };
    for (side, list) in [("inputs", &workflow.interface.inputs), ("outputs", &workflow.interface.outputs)] {
        if !list.is_empty() {
            out.insert(side.into(), ports(list));
        }
    }
    match &workflow.body {
        Body::Task(task) => {
            let mut fields = task.action.clone();
            if let Some(constants) = fields.remove("inputs") {
                fields.insert("constants".into(), constants);
            }
            if !task.inputs.is_empty() {
                fields.insert("inputs".into(), json!(task.inputs));
            }
            if !task.outputs.is_empty() {
                fields.insert("outputs".into(), json!(task.outputs));
            }
            out.insert("task".into(), Value::Object(fields));
        }
        Body::Graph(graph) => {
            let nodes = graph.nodes.iter().map(|(id, n)| (id.to_string(), node_value(n)));
            let links =
                graph.links.iter().map(|(id, l)| (id.to_string(), json!(format!("{} -> {}", l.from, l.to))));
            let graph = json!({
                "nodes": nodes.collect::<Map<String, Value>>(),
                "links": links.collect::<Map<String, Value>>(),
            });
            out.insert("graph".into(), graph);
        }
        Body::Construct(construct) => {
            let mut fields = serde_json::to_value(construct).unwrap_or_default();
            fields.as_object_mut().map(|f| f.remove("construct"));
            out.insert(construct.how.name().into(), fields);
        }
    }
    Value::Object(out)
}

fn node_value(node: &Node) -> Value {
    let mut out = json!({"use": node.workflow});
    if !node.label.is_empty() {
        out["label"] = json!(node.label);
    }
    if !node.after.is_empty() {
        out["after"] = json!(node.after);
    }
    if (node.x, node.y) != (0.0, 0.0) {
        out["at"] = json!([node.x, node.y]);
    }
    out
}
