//! Makes a composition of a workflow in the ordinary language, so that it can be edited together.
//!
//! A macro becomes a workflow that others share, an action a node, a loop whose iterations yield one element each a map.
//! What has no counterpart (recursion, loops that join lists) stays as it is, as the task of a workflow.

use super::composition::{
    Body, Composition, Construct, End, Graph, How, Interface, Link, LinkId, Node, NodeId, Port, PortId, Task,
    TaskOutput, Workflow, WorkflowId,
};
use super::types::Type;
use catena_model::{Condition, Library, Loaded, Name, Value};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};

/// How far apart nodes are drawn.
const STEP: (f64, f64) = (240.0, 120.0);

/// Makes a composition of a workflow that was read without errors. `services` are those the document itself describes.
pub fn adopt(loaded: &Loaded, services: Value) -> Option<Composition> {
    let workflow = loaded.workflow.as_ref().or(loaded.expanded.as_ref())?;
    let long = catena_model::to_long_value(workflow, &loaded.library);
    let mut adopter =
        Adopter { library: &loaded.library, workflows: BTreeMap::new(), macros: BTreeMap::new() };
    let values: BTreeMap<String, Value> =
        list(&long, "vars").iter().filter_map(|v| Some((text(v, "id"), v.get("value")?.clone()))).collect();
    let results: Vec<(String, String)> = long
        .get("results")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, var)| (name.clone(), var.as_str().unwrap_or_default().to_owned()))
        .collect();
    let root = adopter.fresh("main");
    adopter.workflows.insert(root.clone(), placeholder());
    let inputs: Vec<String> = values.keys().cloned().collect();
    let body = adopter.scope(&inputs, &results, &BTreeMap::new(), list(&long, "actions"));
    let name = workflow.name.clone().unwrap_or_default();
    let values =
        values.into_iter().filter_map(|(var, value)| Some((body.ports.get(&var)?.clone(), value))).collect();
    let settings = long.as_object()?.iter().filter(|(k, _)| ["priority", "retries"].contains(&k.as_str()));
    let settings = settings.map(|(k, v)| (k.clone(), v.clone())).collect();
    adopter.workflows.insert(root.clone(), body.into_workflow(&name));
    Some(Composition { name, root, settings, values, services, workflows: adopter.workflows })
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One name or a list of them.
fn names(value: &Value, key: &str) -> Vec<String> {
    match value.get(key) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn placeholder() -> Workflow {
    let body = Body::Graph(Graph::default());
    Workflow { name: String::new(), description: String::new(), interface: Interface::default(), body }
}

/// A name without what separates names.
fn plain(name: &str) -> String {
    let good = |c: char| if c.is_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let plain: String = name.chars().map(good).collect();
    if plain.is_empty() { "x".to_owned() } else { plain }
}

/// A name that is not taken yet.
fn unique(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let name = plain(name);
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    std::iter::once(name.clone()).chain(numbered).find(|n| !is_taken(n)).unwrap_or(name)
}

struct Adopter<'l> {
    library: &'l Library,
    workflows: BTreeMap<WorkflowId, Workflow>,
    /// Macros that have become workflows.
    macros: BTreeMap<String, WorkflowId>,
}

/// A list of actions that becomes a graph.
#[derive(Default)]
struct Scope {
    interface: Interface,
    graph: Graph,
    /// The ports that variables from outside come in by.
    ports: BTreeMap<String, PortId>,
    /// Where variables get their values.
    origins: BTreeMap<String, End>,
    /// The node that an action is in.
    nodes: BTreeMap<String, NodeId>,
}

impl Scope {
    fn into_workflow(self, name: &str) -> Workflow {
        let body = Body::Graph(self.graph);
        Workflow { name: name.to_owned(), description: String::new(), interface: self.interface, body }
    }

    fn link(&mut self, from: &End, to: End) {
        let id = unique(&format!("l{}", self.graph.links.len() + 1), |n| {
            self.graph.links.contains_key(&LinkId::new(n))
        });
        self.graph.links.insert(LinkId::new(id), Link { from: from.clone(), to });
    }
}

/// A workflow that stands for an action: which variables go in and come out by which ports.
struct Part {
    workflow: WorkflowId,
    inputs: Vec<(String, PortId)>,
    outputs: Vec<(String, PortId)>,
}

impl Adopter<'_> {
    fn fresh(&self, name: &str) -> WorkflowId {
        WorkflowId::new(unique(name, |n| self.workflows.contains_key(&WorkflowId::new(n))))
    }

    fn add(&mut self, name: &str, interface: Interface, body: Body) -> WorkflowId {
        let id = self.fresh(name);
        let workflow = Workflow { name: name.to_owned(), description: String::new(), interface, body };
        self.workflows.insert(id.clone(), workflow);
        id
    }

    /// Makes a graph of actions. `results` are what comes out, and the variables it comes from.
    fn scope(
        &mut self,
        inputs: &[String],
        results: &[(String, String)],
        constants: &BTreeMap<String, Value>,
        actions: &[Value],
    ) -> Scope {
        let mut scope = Scope::default();
        for var in inputs {
            let id = unique(var, |n| scope.interface.input(&PortId::new(n)).is_some());
            scope.interface.inputs.push(Port {
                id: PortId::new(&id),
                name: var.clone(),
                data_type: Type::any(),
            });
            scope.ports.insert(var.clone(), PortId::new(&id));
            scope.origins.insert(var.clone(), End::this(&id));
        }
        let mut parts = Vec::new();
        for (number, action) in actions.iter().enumerate() {
            let part = self.part(action, constants);
            let id =
                NodeId::new(unique(&text(action, "id"), |n| scope.graph.nodes.contains_key(&NodeId::new(n))));
            for (var, port) in &part.outputs {
                scope.origins.insert(var.clone(), End { node: Some(id.clone()), port: port.clone() });
            }
            note_nodes(action, &id, &mut scope.nodes);
            let node = Node {
                workflow: part.workflow.clone(),
                label: text(action, "id"),
                after: Vec::new(),
                x: STEP.0 * number as f64,
                y: STEP.1,
            };
            scope.graph.nodes.insert(id.clone(), node);
            parts.push((id, part, action));
        }
        for (id, part, action) in parts {
            for (var, port) in part.inputs {
                if let Some(from) = scope.origins.get(&var).cloned() {
                    scope.link(&from, End { node: Some(id.clone()), port });
                }
            }
            let mut waits = Vec::new();
            dependencies(action, &mut waits);
            let after: BTreeSet<NodeId> =
                waits.iter().filter_map(|w| scope.nodes.get(w)).filter(|n| **n != id).cloned().collect();
            if let Some(node) = scope.graph.nodes.get_mut(&id) {
                node.after = after.into_iter().collect();
            }
        }
        for (name, var) in results {
            let taken = |n: &str| {
                let id = PortId::new(n);
                scope.interface.input(&id).is_some() || scope.interface.output(&id).is_some()
            };
            let id = unique(name, taken);
            scope.interface.outputs.push(Port {
                id: PortId::new(&id),
                name: name.clone(),
                data_type: Type::any(),
            });
            if let Some(from) = scope.origins.get(var).cloned() {
                scope.link(&from, End::this(&id));
            }
        }
        scope
    }

    /// The workflow that stands for an action.
    fn part(&mut self, action: &Value, constants: &BTreeMap<String, Value>) -> Part {
        match text(action, "type").as_str() {
            "execute" => self.task(action, constants),
            "include" => self.include(action, constants),
            "for" => match self.map(action, constants) {
                Some(part) => part,
                None => self.verbatim(action, constants),
            },
            _ => self.verbatim(action, constants),
        }
    }

    fn task(&mut self, action: &Value, constants: &BTreeMap<String, Value>) -> Part {
        let mut fields = action.as_object().cloned().unwrap_or_default();
        for key in ["type", "id", "dependsOn", "inputs", "outputs"] {
            fields.remove(key);
        }
        let mut task = Task::default();
        let mut interface = Interface::default();
        let (mut inputs, mut outputs, mut fixed) = (Vec::new(), Vec::new(), Vec::new());
        for output in list(action, "outputs") {
            let parameter = text(output, "id");
            let id = PortId::new(unique(&parameter, |n| interface.output(&PortId::new(n)).is_some()));
            let mut settings = output.as_object().cloned().unwrap_or_default();
            settings.retain(|key, _| !["id", "var"].contains(&key.as_str()));
            let data_type = self.output_type(action, &parameter, &settings);
            settings.remove("value");
            interface.outputs.push(Port { id: id.clone(), name: parameter.clone(), data_type });
            outputs.push((text(output, "var"), id.clone()));
            let parameter = (id.as_str() != parameter).then(|| Name::new(&parameter));
            task.outputs.insert(id, TaskOutput { parameter, settings });
        }
        let port = |interface: &mut Interface, name: &str| {
            let taken = |n: &str| {
                let id = PortId::new(n);
                interface.input(&id).is_some() || interface.output(&id).is_some()
            };
            let id = PortId::new(unique(name, taken));
            interface.inputs.push(Port { id: id.clone(), name: name.to_owned(), data_type: Type::any() });
            id
        };
        for input in list(action, "inputs") {
            let parameter = text(input, "id");
            let given = input.get("var").and_then(Value::as_str);
            let constant = given.and_then(|var| constants.get(var)).or(input.get("value"));
            match (given, constant) {
                (Some(var), None) => {
                    let id = port(&mut interface, &parameter);
                    if id.as_str() != parameter {
                        task.inputs.insert(id.clone(), Name::new(&parameter));
                    }
                    fixed.push(json!({"port": id}));
                    inputs.push((var.to_owned(), id));
                }
                (_, constant) => fixed.push(json!({"id": parameter, "value": constant})),
            }
        }
        if fixed.iter().any(|f| f.get("value").is_some()) {
            fields.insert("inputs".to_owned(), Value::Array(fixed));
        }
        if let Some(when) = fields.get("when").and_then(Value::as_str).and_then(|w| Condition::parse(w).ok())
        {
            for name in when.names() {
                if !inputs.iter().any(|(var, _)| *var == name) && !constants.contains_key(name.as_str()) {
                    // Only the condition mentions it.
                    let id = port(&mut interface, &name);
                    task.inputs.insert(id.clone(), Name::default());
                    inputs.push((name.to_string(), id));
                }
            }
            let renamed = rename_condition(&when, &|var| lookup(&inputs, var), constants);
            fields.insert("when".to_owned(), json!(renamed));
        }
        task.action = fields;
        let workflow = self.add(&text(action, "id"), interface, Body::Task(task));
        Part { workflow, inputs, outputs }
    }

    fn output_type(&self, action: &Value, parameter: &str, settings: &Map<String, Value>) -> Type {
        let service = action.get("service").and_then(Value::as_str).and_then(|s| self.library.service(s));
        let known = service
            .and_then(|s| s.parameters.iter().find(|p| p.id == parameter))
            .map(|p| p.data_type.clone());
        let is_directory = settings.get("as").and_then(Value::as_str).is_some_and(|n| n.ends_with('/'));
        let is_value = settings.get("value").is_some_and(|v| v == true);
        match known {
            Some(known) => known.parse().unwrap_or_else(|_| Type::any()),
            None if is_value => Type::Base(Name::new_static(catena_model::VALUE)),
            None if is_directory => Type::Base(Name::new_static(catena_model::DIRECTORY)),
            None => Type::file(),
        }
    }

    fn include(&mut self, action: &Value, constants: &BTreeMap<String, Value>) -> Part {
        let macro_id = text(action, "macro");
        let base = self.shared(&macro_id);
        let base_interface = self.interface(&base);
        let (mut inputs, mut fixed) = (Vec::new(), BTreeMap::new());
        for input in list(action, "inputs") {
            let Some(port) = port_named(&base_interface.inputs, &text(input, "id")) else { continue };
            let given = input.get("var").and_then(Value::as_str);
            match given.and_then(|var| constants.get(var)).or(input.get("value")) {
                Some(value) => {
                    fixed.insert(port, value.clone());
                }
                None => inputs.push((given.unwrap_or_default().to_owned(), port)),
            }
        }
        let defaults = self.library.macro_named(&macro_id).map(|m| m.parameters.clone()).unwrap_or_default();
        for parameter in defaults {
            let port = port_named(&base_interface.inputs, &parameter.id);
            if let (Some(port), Some(value)) = (port, parameter.default)
                && !inputs.iter().any(|(_, p)| *p == port)
            {
                fixed.entry(port).or_insert(value);
            }
        }
        let outputs = list(action, "outputs").iter();
        let outputs = outputs
            .filter_map(|o| Some((text(o, "var"), port_named(&base_interface.outputs, &text(o, "id"))?)))
            .collect();
        let id = text(action, "id");
        let mut workflow = base;
        if let Some(when) = action.get("when").and_then(Value::as_str).and_then(|w| Condition::parse(w).ok())
        {
            let mut extra: Vec<String> = when.names().iter().map(ToString::to_string).collect();
            extra.retain(|name| lookup(&inputs, name).is_none() && !constants.contains_key(name));
            if !extra.is_empty() {
                let (wider, ports) = self.widened(&id, &workflow, &extra);
                workflow = wider;
                inputs.extend(extra.into_iter().zip(ports));
            }
            let renamed = rename_condition(&when, &|var| lookup(&inputs, var), constants);
            let how = How::Conditional { when: renamed, otherwise: None };
            workflow = self.add(&id, Interface::default(), Body::Construct(Construct { of: workflow, how }));
        }
        if !fixed.is_empty() {
            let how = How::Curry { with: fixed };
            workflow = self.add(&id, Interface::default(), Body::Construct(Construct { of: workflow, how }));
        }
        Part { workflow, inputs, outputs }
    }

    /// A workflow with more inputs, for conditions that mention more than it takes.
    fn widened(&mut self, name: &str, of: &WorkflowId, extra: &[String]) -> (WorkflowId, Vec<PortId>) {
        let mut interface = self.interface(of);
        let mut scope = Scope::default();
        let node = Node { workflow: of.clone(), label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
        scope.graph.nodes.insert(NodeId::new("of"), node);
        for port in &interface.inputs {
            scope.link(&End::this(port.id.as_str()), End::of("of", port.id.as_str()));
        }
        for port in &interface.outputs {
            scope.link(&End::of("of", port.id.as_str()), End::this(port.id.as_str()));
        }
        let mut ports = Vec::new();
        for name in extra {
            let taken = |n: &str| {
                let id = PortId::new(n);
                interface.input(&id).is_some() || interface.output(&id).is_some()
            };
            let id = PortId::new(unique(name, taken));
            interface.inputs.push(Port { id: id.clone(), name: name.clone(), data_type: Type::any() });
            ports.push(id);
        }
        (self.add(name, interface, Body::Graph(scope.graph)), ports)
    }

    /// The workflow that a macro has become.
    fn shared(&mut self, macro_id: &str) -> WorkflowId {
        if let Some(known) = self.macros.get(macro_id) {
            return known.clone();
        }
        let id = self.fresh(macro_id);
        self.workflows.insert(id.clone(), placeholder());
        self.macros.insert(macro_id.to_owned(), id.clone());
        let Some(definition) = self.library.macro_named(macro_id) else { return id };
        let as_workflow =
            catena_model::Workflow { actions: definition.actions.clone(), ..Default::default() };
        let long = catena_model::to_long_value(&as_workflow, self.library);
        let of = |direction| {
            let parameters = definition.parameters.iter().filter(move |p| p.direction == direction);
            parameters.map(|p| p.id.to_string()).collect::<Vec<_>>()
        };
        let inputs = of(catena_model::Direction::Input);
        let results: Vec<(String, String)> =
            of(catena_model::Direction::Output).into_iter().map(|o| (o.clone(), o)).collect();
        let constants: BTreeMap<String, Value> =
            definition.vars.iter().filter_map(|v| Some((v.id.to_string(), v.value.clone()?))).collect();
        let scope = self.scope(&inputs, &results, &constants, list(&long, "actions"));
        self.workflows.insert(id.clone(), scope.into_workflow(&definition.name));
        id
    }

    fn interface(&self, id: &WorkflowId) -> Interface {
        let composition = Composition { workflows: self.workflows.clone(), ..Composition::default() };
        composition.interface(id).unwrap_or_default()
    }

    /// A loop as a map, if each iteration yields one element.
    fn map(&mut self, action: &Value, constants: &BTreeMap<String, Value>) -> Option<Part> {
        let other = ["yieldToInput", "carry", "pairs", "when"].iter().any(|k| action.get(*k).is_some());
        let yields = names(action, "yieldToOutput");
        let nested = action.get("collect").is_some_and(|c| c == "nested");
        if other || !(nested || yields.iter().all(|y| self.is_single(action, y))) {
            return None;
        }
        let lists = std::iter::once(action).chain(list(action, "zip"));
        let lists: Vec<(String, String)> = lists.map(|l| (text(l, "input"), text(l, "enumerator"))).collect();
        if lists.iter().any(|(list, _)| constants.contains_key(list)) {
            return None;
        }
        let mut free = Vec::new();
        free_variables(action, &mut free);
        free.retain(|v| !constants.contains_key(v) && !lists.iter().any(|(list, _)| list == v));
        let mut inputs: Vec<String> = lists.iter().map(|(_, e)| e.clone()).collect();
        inputs.extend(free.iter().cloned());
        let results: Vec<(String, String)> = yields.iter().map(|y| (y.clone(), y.clone())).collect();
        let scope = self.scope(&inputs, &results, constants, list(action, "actions"));
        let port = |var: &String| scope.ports.get(var).cloned();
        let over: Vec<PortId> = lists.iter().filter_map(|(_, e)| port(e)).collect();
        let outer = lists.iter().map(|(list, e)| (list.clone(), port(e)));
        let outer = outer.chain(free.iter().map(|v| (v.clone(), port(v))));
        let outer = outer.filter_map(|(var, port)| Some((var, port?))).collect();
        let outputs = names(action, "output").into_iter();
        let outputs = outputs.zip(scope.interface.outputs.iter().map(|p| p.id.clone())).collect();
        let id = text(action, "id");
        let scope = scope.into_workflow(&id);
        let base = self.add(&format!("{id}-each"), scope.interface, scope.body);
        let construct = Construct { of: base, how: How::Map { over } };
        let workflow = self.add(&id, Interface::default(), Body::Construct(construct));
        Some(Part { workflow, inputs: outer, outputs })
    }

    /// Whether a variable is the output of a task in a loop, and not the list of what is in a directory.
    fn is_single(&self, action: &Value, var: &str) -> bool {
        let by = |a: &&Value| {
            list(a, "outputs").iter().any(|o| text(o, "var") == var) && text(a, "type") == "execute"
        };
        let Some(task) = list(action, "actions").iter().find(by) else { return false };
        let Some(output) = list(task, "outputs").iter().find(|o| text(o, "var") == var) else { return false };
        let settings = output.as_object().cloned().unwrap_or_default();
        !self.output_type(task, &text(output, "id"), &settings).is_directory()
    }

    /// An action that stays as it is.
    fn verbatim(&mut self, action: &Value, constants: &BTreeMap<String, Value>) -> Part {
        let mut free = Vec::new();
        free_variables(action, &mut free);
        let own_outputs = names(action, "output");
        let mut ports: BTreeMap<String, String> = BTreeMap::new();
        for var in free.iter().chain(&own_outputs) {
            let id = unique(var, |n| ports.values().any(|p| p == n));
            ports.insert(var.clone(), id);
        }
        let mut renamed = action.clone();
        rename(&mut renamed, &|var| ports.get(var).cloned());
        let mut fields = renamed.as_object().cloned().unwrap_or_default();
        fields.retain(|key, _| !["id", "dependsOn"].contains(&key.as_str()));
        let side = |vars: &[String]| -> Vec<(String, PortId)> {
            vars.iter().map(|v| (v.clone(), PortId::new(&ports[v]))).collect()
        };
        let (mut inputs, outputs) = (side(&free), side(&own_outputs));
        let port = |(name, id): &(String, PortId)| Port {
            id: id.clone(),
            name: name.clone(),
            data_type: Type::any(),
        };
        let interface = Interface {
            inputs: inputs.iter().map(port).collect(),
            outputs: outputs.iter().map(port).collect(),
        };
        let id = text(action, "id");
        let fixed: BTreeMap<PortId, Value> = inputs
            .iter()
            .filter_map(|(var, port)| Some((port.clone(), constants.get(var)?.clone())))
            .collect();
        inputs.retain(|(var, _)| !constants.contains_key(var));
        let task = Task { action: fields, ..Task::default() };
        let mut workflow = self.add(&id, interface, Body::Task(task));
        if !fixed.is_empty() {
            let how = How::Curry { with: fixed };
            workflow = self.add(&id, Interface::default(), Body::Construct(Construct { of: workflow, how }));
        }
        Part { workflow, inputs, outputs }
    }
}

fn port_named(ports: &[Port], name: &str) -> Option<PortId> {
    ports.iter().find(|p| p.name == name).map(|p| p.id.clone())
}

fn lookup(inputs: &[(String, PortId)], var: &str) -> Option<String> {
    inputs.iter().find(|(v, _)| v == var).map(|(_, p)| p.to_string())
}

/// A condition in terms of ports, with constants written out.
fn rename_condition(
    condition: &Condition,
    port: &dyn Fn(&str) -> Option<String>,
    constants: &BTreeMap<String, Value>,
) -> String {
    let mut source =
        condition.rename(|n| Name::new(port(n).unwrap_or_else(|| n.to_owned()))).source().to_owned();
    for name in condition.names() {
        if let Some(value) = constants.get(name.as_str()).filter(|_| port(&name).is_none()) {
            let literal = match value {
                Value::String(s) => format!("'{}'", s.replace('\'', "")),
                other => other.to_string(),
            };
            source = source.replace(&format!("{{{name}}}"), &literal);
        }
    }
    source
}

/// The node that each action in this one is in.
fn note_nodes(action: &Value, node: &NodeId, out: &mut BTreeMap<String, NodeId>) {
    out.insert(text(action, "id"), node.clone());
    for inner in list(action, "actions") {
        note_nodes(inner, node, out);
    }
}

/// The actions that this one waits for, or something in it.
fn dependencies(action: &Value, out: &mut Vec<String>) {
    out.extend(names(action, "dependsOn"));
    for inner in list(action, "actions") {
        dependencies(inner, out);
    }
}

/// The variables that an action reads and does not make itself.
fn free_variables(action: &Value, out: &mut Vec<String>) {
    fn walk(action: &Value, own: &mut BTreeSet<String>, read: &mut Vec<String>) {
        let mut reads = Vec::new();
        for list_of in std::iter::once(action).chain(list(action, "zip")) {
            reads.extend(names(list_of, "input"));
            own.extend(names(list_of, "enumerator"));
        }
        for carried in list(action, "carry") {
            reads.extend(names(carried, "init"));
            own.extend(names(carried, "enumerator"));
        }
        own.extend(names(action, "pairs"));
        match text(action, "type").as_str() {
            "first" => reads.extend(names(action, "inputs")),
            _ => reads.extend(list(action, "inputs").iter().flat_map(|i| names(i, "var"))),
        }
        for key in ["when", "while"] {
            let condition = action.get(key).and_then(Value::as_str).and_then(|c| Condition::parse(c).ok());
            reads.extend(condition.into_iter().flat_map(|c| c.names()).map(|n| n.to_string()));
        }
        own.extend(list(action, "outputs").iter().flat_map(|o| names(o, "var")));
        own.extend(names(action, "output"));
        read.extend(reads);
        for inner in list(action, "actions") {
            walk(inner, own, read);
        }
    }
    let (mut own, mut read) = (BTreeSet::new(), Vec::new());
    walk(action, &mut own, &mut read);
    for var in read {
        if !own.contains(&var) && !out.contains(&var) {
            out.push(var);
        }
    }
}

/// Gives variables of an action other names.
fn rename(action: &mut Value, to: &dyn Fn(&str) -> Option<String>) {
    let Some(fields) = action.as_object_mut() else { return };
    let is_first = fields.get("type").is_some_and(|t| t == "first");
    let swap = |value: &mut Value| match value {
        Value::String(name) => {
            if let Some(new) = to(name) {
                *name = new;
            }
        }
        Value::Array(many) => many.iter_mut().for_each(|v| {
            if let Some(new) = v.as_str().and_then(to) {
                *v = Value::String(new);
            }
        }),
        _ => {}
    };
    for (key, value) in fields.iter_mut() {
        match key.as_str() {
            "input" | "enumerator" | "output" | "yieldToOutput" | "yieldToInput" | "pairs" | "init"
            | "var" => {
                swap(value);
            }
            "inputs" if is_first => swap(value),
            "inputs" | "outputs" | "zip" | "carry" | "actions" => {
                value.as_array_mut().into_iter().flatten().for_each(|v| rename(v, to));
            }
            "when" | "while" => {
                let condition = value.as_str().and_then(|c| Condition::parse(c).ok());
                let renamed =
                    condition.map(|c| c.rename(|n| Name::new(to(n).unwrap_or_else(|| n.to_owned()))));
                if let Some(renamed) = renamed {
                    *value = json!(renamed.source());
                }
            }
            _ => {}
        }
    }
}
