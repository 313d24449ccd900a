//! Compositions in the ordinary language, so that every engine executes them: a workflow is a macro, a node an include
//! action, a construct a for-each action or a condition.

use super::composition::{
    Body, Composition, Construct, End, Graph, How, Interface, NodeId, Port, PortId, Task, Workflow,
    WorkflowId,
};
use catena_model::{Condition, Value};
use serde_json::{Map, json};

/// A composition in the long form.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The text.
    pub text: String,
    /// The workflow each line belongs to, counted from 0.
    lines: Vec<Option<WorkflowId>>,
}

impl Compiled {
    /// The workflow that a line of the text belongs to, counted from 1.
    pub fn workflow_at(&self, line: u32) -> Option<&WorkflowId> {
        self.lines.get((line as usize).checked_sub(1)?)?.as_ref()
    }
}

/// Writes a composition, which must be well-formed, in the long form.
pub fn compile(composition: &Composition) -> Compiled {
    let root = composition.interface(&composition.root).unwrap_or_default();
    let vars: Vec<Value> = root
        .inputs
        .iter()
        .map(|p| match composition.values.get(&p.id) {
            Some(value) => json!({"id": p.id, "value": value}),
            None => json!({"id": p.id}),
        })
        .collect();
    let results: Map<String, Value> =
        root.outputs.iter().map(|p| (p.id.to_string(), json!(result_var(p)))).collect();
    let run = json!({
        "type": "include",
        "id": "run",
        "macro": composition.root,
        "inputs": root.inputs.iter().map(|p| json!({"id": p.id, "var": p.id})).collect::<Vec<_>>(),
        "outputs": root.outputs.iter().map(|p| json!({"id": p.id, "var": result_var(p)})).collect::<Vec<_>>(),
    });
    let mut lines = vec![None];
    let mut text = String::from("{\"api\": \"4.7.0\",\n");
    let mut add = |text: &mut String, workflow: Option<&WorkflowId>, line: String| {
        text.push_str(&line);
        text.push('\n');
        lines.push(workflow.cloned());
    };
    if !composition.name.is_empty() {
        add(&mut text, None, format!("\"name\": {},", json!(composition.name)));
    }
    for (key, value) in &composition.settings {
        add(&mut text, None, format!("{}: {value},", json!(key)));
    }
    if !composition.services.is_null() {
        add(&mut text, None, format!("\"services\": {},", composition.services));
    }
    add(&mut text, None, format!("\"vars\": {},", json!(vars)));
    add(&mut text, None, format!("\"results\": {},", Value::Object(results)));
    add(&mut text, None, "\"macros\": [".to_owned());
    let last = composition.workflows.len().saturating_sub(1);
    for (n, (id, workflow)) in composition.workflows.iter().enumerate() {
        let comma = if n == last { "" } else { "," };
        add(&mut text, Some(id), format!("{}{comma}", definition(composition, id, workflow)));
    }
    add(&mut text, None, "],".to_owned());
    add(&mut text, None, format!("\"actions\": [{run}]}}"));
    Compiled { text, lines }
}

fn result_var(port: &Port) -> String {
    format!("result.{}", port.id)
}

/// A workflow as a macro.
fn definition(composition: &Composition, id: &WorkflowId, workflow: &Workflow) -> Value {
    let interface = composition.interface(id).unwrap_or_default();
    let of = |ports: &[Port], side: &str| -> Vec<Value> {
        ports.iter().map(|p| json!({"id": p.id, "type": side})).collect()
    };
    let mut parameters = of(&interface.inputs, "input");
    parameters.extend(of(&interface.outputs, "output"));
    let mut vars = Vec::new();
    let actions = match &workflow.body {
        Body::Task(task) => vec![task_action(id, task, &interface)],
        Body::Graph(graph) => graph_actions(composition, graph),
        Body::Construct(construct) => construct_actions(composition, construct, &mut vars),
    };
    json!({"id": id, "name": workflow.name, "parameters": parameters, "vars": vars, "actions": actions})
}

fn task_action(id: &WorkflowId, task: &Task, interface: &Interface) -> Value {
    let mut action = task.action.clone();
    action.insert("id".into(), json!(id));
    if action.contains_key("type") {
        return Value::Object(action);
    }
    action.insert("type".into(), json!("execute"));
    let is_run = action.contains_key("run");
    let given = |port: &PortId| {
        let parameter = task.inputs.get(port).unwrap_or(&port.0);
        (!parameter.is_empty()).then(|| json!({"id": parameter, "var": port}))
    };
    // Constants stand in their places among the ports; ports that are not mentioned there follow.
    let ordered = action.remove("inputs");
    let ordered = ordered.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let port_of = |entry: &Value| entry.get("port").and_then(Value::as_str).map(PortId::new);
    let mut inputs: Vec<Value> = Vec::new();
    for entry in ordered {
        match port_of(entry) {
            Some(port) => inputs.extend(given(&port)),
            None => inputs.push(entry.clone()),
        }
    }
    let others =
        interface.inputs.iter().filter(|p| !ordered.iter().any(|e| port_of(e).as_ref() == Some(&p.id)));
    inputs.extend(others.filter_map(|p| given(&p.id)));
    let outputs = interface.outputs.iter().map(|port| {
        let known = task.outputs.get(&port.id);
        let mut output = known.map(|o| o.settings.clone()).unwrap_or_default();
        let parameter = known.and_then(|o| o.parameter.clone()).unwrap_or_else(|| port.id.0.clone());
        output.insert("id".into(), json!(parameter));
        output.insert("var".into(), json!(port.id));
        if is_run {
            let suffix = if port.data_type.is_directory() { "/" } else { "" };
            let file = format!("{}{suffix}", port.id);
            output.entry("as").or_insert(json!(file));
            if port.data_type.is_value() {
                output.insert("value".into(), json!(true));
            }
        }
        Value::Object(output)
    });
    let outputs: Vec<Value> = outputs.collect();
    action.insert("inputs".into(), json!(inputs));
    action.insert("outputs".into(), json!(outputs));
    Value::Object(action)
}

fn graph_actions(composition: &Composition, graph: &Graph) -> Vec<Value> {
    // What only leaves the workflow is called as it is called there. What is read inside, too, is copied: a macro must not
    // read its own outputs.
    let leaves = |end: &End| {
        let mut links = graph.links.values().filter(|l| l.from == *end);
        links.next().filter(|_| links.next().is_none()).filter(|l| l.to.node.is_none()).map(|l| &l.to.port)
    };
    let var = |end: &End| match (&end.node, leaves(end)) {
        (None, _) => end.port.to_string(),
        (Some(_), Some(port)) => port.to_string(),
        (Some(node), None) => format!("{node}.{}", end.port),
    };
    let source = |node: &NodeId, port: &PortId| {
        let to = End { node: Some(node.clone()), port: port.clone() };
        graph.links.values().find(|l| l.to == to).map(|l| var(&l.from)).unwrap_or_default()
    };
    let mut actions: Vec<Value> = Vec::new();
    for (id, node) in &graph.nodes {
        let interface = composition.interface(&node.workflow).unwrap_or_default();
        let inputs = interface.inputs.iter().map(|p| json!({"id": p.id, "var": source(id, &p.id)}));
        let outputs = interface.outputs.iter().map(|p| {
            let end = End { node: Some(id.clone()), port: p.id.clone() };
            json!({"id": p.id, "var": var(&end)})
        });
        let mut action = json!({"type": "include", "id": id, "macro": node.workflow});
        action["inputs"] = inputs.collect();
        action["outputs"] = outputs.collect();
        if !node.after.is_empty() {
            action["dependsOn"] = json!(node.after);
        }
        actions.push(action);
    }
    for link in graph.links.values().filter(|l| l.to.node.is_none()) {
        let (from, to) = (&link.from, &link.to.port);
        if from.node.is_none() || leaves(from).is_none() {
            let id = format!("{to}.copy");
            actions.push(json!({"type": "first", "id": id, "inputs": [var(from)], "output": to}));
        }
    }
    actions
}

/// How a construct includes what it is applied to: inputs by the names they have there, outputs by new ones.
fn include(
    id: &str,
    of: &WorkflowId,
    base: &Interface,
    input: impl Fn(&PortId) -> Value,
    output: impl Fn(&PortId) -> String,
) -> Value {
    let inputs = base.inputs.iter().map(|p| {
        let mut given = input(&p.id);
        given["id"] = json!(p.id);
        given
    });
    let outputs = base.outputs.iter().map(|p| json!({"id": p.id, "var": output(&p.id)}));
    json!({
        "type": "include",
        "id": id,
        "macro": of,
        "inputs": inputs.collect::<Vec<_>>(),
        "outputs": outputs.collect::<Vec<_>>(),
    })
}

fn variable(name: impl std::fmt::Display) -> Value {
    json!({"var": name.to_string()})
}

fn construct_actions(composition: &Composition, construct: &Construct, vars: &mut Vec<Value>) -> Vec<Value> {
    let of = &construct.of;
    let base = composition.interface(of).unwrap_or_default();
    let each = |p: &PortId| format!("{p}.each");
    let outputs: Vec<&PortId> = base.outputs.iter().map(|p| &p.id).collect();
    let yields: Vec<String> = outputs.iter().map(|p| each(p)).collect();
    let repeat = |extra: Value, inner: Value| {
        let mut action = json!({"type": "for", "id": "each", "output": outputs, "yieldToOutput": yields});
        let fields = extra.as_object().cloned().unwrap_or_default();
        action.as_object_mut().into_iter().for_each(|a| a.extend(fields.clone()));
        action["actions"] = json!([inner]);
        vec![action]
    };
    match &construct.how {
        How::Map { over } => {
            let is_mapped = |p: &PortId| over.is_empty() || over.contains(p);
            let input = |p: &PortId| if is_mapped(p) { variable(each(p)) } else { variable(p) };
            let lists = base.inputs.iter().map(|p| &p.id).filter(|p| is_mapped(p));
            let mut lists: Vec<Value> = lists.map(|p| json!({"input": p, "enumerator": each(p)})).collect();
            let mut extra = if lists.is_empty() { json!({}) } else { lists.remove(0) };
            extra["zip"] = json!(lists);
            extra["collect"] = json!("nested");
            repeat(extra, include("once", of, &base, input, each))
        }
        How::Reduce { carry, element } => {
            let is_own = |p: &PortId| p == carry || p == element;
            let input = |p: &PortId| if is_own(p) { variable(each(p)) } else { variable(p) };
            let extra = json!({
                "input": element,
                "enumerator": each(element),
                "carry": [{"enumerator": each(carry), "init": carry}],
            });
            repeat(extra, include("once", of, &base, input, each))
        }
        How::Tree { left, right } => {
            let is_own = |p: &PortId| p == left || p == right;
            let input = |p: &PortId| if is_own(p) { variable(each(p)) } else { variable(p) };
            let extra = json!({"input": left, "enumerator": each(left), "pairs": each(right)});
            repeat(extra, include("once", of, &base, input, each))
        }
        How::Loop { condition, feedback, max } => {
            let is_fed = |p: &PortId| feedback.values().any(|input| input == p);
            let input = |p: &PortId| if is_fed(p) { variable(each(p)) } else { variable(p) };
            let renamed = |name: &str| {
                let port = PortId::new(name);
                catena_model::Name::new(if is_fed(&port) { each(&port) } else { name.to_owned() })
            };
            let condition = Condition::parse(condition).map(|c| c.rename(renamed).source().to_owned());
            let carried = outputs.iter().filter_map(|o| feedback.get(*o));
            let carried: Vec<Value> =
                carried.map(|input| json!({"enumerator": each(input), "init": input})).collect();
            vars.push(json!({"id": "rounds", "value": (1..=*max).collect::<Vec<u32>>()}));
            let extra = json!({
                "input": "rounds",
                "enumerator": "round",
                "carry": carried,
                "while": condition.unwrap_or_default(),
            });
            repeat(extra, include("once", of, &base, input, |p| each(p)))
        }
        How::Conditional { when, otherwise } => {
            let Some(other) = otherwise else {
                let mut action = include("then", of, &base, |p| variable(p), ToString::to_string);
                action["when"] = json!(when);
                return vec![action];
            };
            let mut then = include("then", of, &base, |p| variable(p), |p| format!("{p}.then"));
            let mut or = include("else", other, &base, |p| variable(p), |p| format!("{p}.else"));
            then["when"] = json!(when);
            or["when"] = json!(format!("not ({when})"));
            let mut actions = vec![then, or];
            for port in &outputs {
                let inputs = [format!("{port}.then"), format!("{port}.else")];
                let id = format!("{port}.first");
                actions.push(json!({"type": "first", "id": id, "inputs": inputs, "output": port}));
            }
            actions
        }
        How::Curry { with } => {
            let input = |p: &PortId| with.get(p).map_or_else(|| variable(p), |v| json!({"value": v}));
            vec![include("with", of, &base, input, ToString::to_string)]
        }
    }
}
