//! Writes a workflow in the long form, so that the short form's meaning can be seen and run elsewhere.

use crate::Name;
use crate::library::Library;
use crate::policy::RetryPolicy;
use crate::quantity::Resources;
use crate::workflow::{
    Action, Execute, First, ForEach, Gather, Include, Input, InputSource, Output, Reference, VarRef, Workflow,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// The workflow as long-form YAML.
pub fn to_long_form(workflow: &Workflow, library: &Library) -> String {
    to_yaml(&to_long_value(workflow, library), &FIELD_ORDER)
}

/// A mapping as YAML. On every level these fields come first, in this order.
pub fn to_yaml(value: &Value, first: &[&str]) -> String {
    let mut out = String::new();
    for (key, value) in sorted(value.as_object(), first) {
        entry(&mut out, key, value, 0, first);
    }
    out
}

/// The workflow in the long form, as a value.
pub fn to_long_value(workflow: &Workflow, library: &Library) -> Value {
    let mut root = Map::new();
    root.insert("api".into(), json!(workflow.api.as_str()));
    if let Some(name) = &workflow.name {
        root.insert("name".into(), json!(name));
    }
    if workflow.priority != 0 {
        root.insert("priority".into(), json!(workflow.priority));
    }
    if let Some(policy) = &workflow.chain_retries {
        root.insert("retries".into(), json!({"processChains": retries(policy)}));
    }
    let vars = workflow.vars.iter().map(|v| match &v.value {
        Some(value) => json!({"id": v.id.as_str(), "value": value}),
        None => json!({"id": v.id.as_str()}),
    });
    root.insert("vars".into(), vars.collect());
    root.insert("actions".into(), actions(&workflow.actions, library));
    if !workflow.results.is_empty() {
        let results = workflow.results.iter().map(|r| (r.name.to_string(), json!(r.var.as_str())));
        root.insert("results".into(), Value::Object(results.collect()));
    }
    Value::Object(root)
}

fn actions(list: &[Action], library: &Library) -> Value {
    list.iter()
        .map(|a| match a {
            Action::Execute(a) => execute(a, library),
            Action::For(a) => for_each(a, library),
            Action::Include(a) => include(a),
            Action::First(a) => first(a),
        })
        .collect()
}

fn names(list: &[Reference]) -> Value {
    list.iter().map(|r| r.id.as_str()).collect()
}

fn vars(list: &[VarRef]) -> Value {
    match list {
        [one] => json!(one.id.as_str()),
        many => many.iter().map(|v| v.id.as_str()).collect(),
    }
}

fn inputs(list: &[Input]) -> Value {
    list.iter()
        .map(|i| match &i.source {
            InputSource::Var(var) => json!({"id": i.id.as_str(), "var": var.as_str()}),
            InputSource::Value(value) => json!({"id": i.id.as_str(), "value": value}),
        })
        .collect()
}

fn outputs(list: &[Output]) -> Value {
    list.iter()
        .map(|o| {
            let mut m = json!({"id": o.id.as_str(), "var": o.var.as_str()});
            if let Some(prefix) = &o.prefix {
                m["prefix"] = json!(prefix);
            }
            if o.store {
                m["store"] = json!(true);
            }
            if let Some(name) = &o.name {
                m["as"] = json!(name.to_string());
            }
            if o.value {
                m["value"] = json!(true);
            }
            m
        })
        .collect()
}

fn retries(policy: &RetryPolicy) -> Value {
    serde_json::to_value(policy).unwrap_or_default()
}

fn resources(r: &Resources) -> Value {
    let mut m = json!({"cpus": r.cpus as f64 / 1000.0});
    if r.memory > 0 {
        m["memory"] = json!(r.memory);
    }
    if r.disk > 0 {
        m["disk"] = json!(r.disk);
    }
    for (name, n) in &r.named {
        m[name.as_str()] = json!(*n as f64 / 1000.0);
    }
    m
}

fn execute(a: &Execute, library: &Library) -> Value {
    let mut m = json!({"type": "execute", "id": a.id.as_str()});
    let service = library.service(&a.service);
    match service.and_then(|s| Some((s, s.script.as_ref()?))).filter(|(s, _)| s.id.starts_with("run:")) {
        Some((service, script)) => {
            m["run"] = json!(script.to_string());
            if !service.required_capabilities.is_empty() {
                m["requiredCapabilities"] = service.required_capabilities.iter().map(Name::as_str).collect();
            }
        }
        None => m["service"] = json!(a.service.as_str()),
    }
    if !a.inputs.is_empty() {
        m["inputs"] = inputs(&a.inputs);
    }
    if !a.outputs.is_empty() {
        m["outputs"] = outputs(&a.outputs);
    }
    if !a.depends_on.is_empty() {
        m["dependsOn"] = names(&a.depends_on);
    }
    let o = a.options();
    if let Some(policy) = &o.retries {
        m["retries"] = retries(policy);
    }
    let limits =
        [("maxInactivity", o.max_inactivity), ("maxRuntime", o.max_runtime), ("deadline", o.deadline)];
    for (key, limit) in limits {
        if let Some(limit) = limit {
            m[key] = serde_json::to_value(limit).unwrap_or_default();
        }
    }
    if let Some(when) = &o.when {
        m["when"] = json!(when.source());
    }
    if let Some(r) = &o.resources {
        m["resources"] = resources(r);
    }
    if !o.env.is_empty() {
        m["env"] = o.env.iter().map(|(k, v)| (k.to_string(), json!(v))).collect::<Map<_, _>>().into();
    }
    if let Some(cache) = o.cache {
        m["cache"] = json!(cache);
    }
    if let Some(replicas) = o.replicas {
        m["replicas"] = json!(replicas);
    }
    if o.exclusive {
        m["start"] = json!("exclusive");
    }
    m
}

fn for_each(a: &ForEach, library: &Library) -> Value {
    let mut m = json!({
        "type": "for",
        "id": a.id.as_str(),
        "input": a.input.id.as_str(),
        "enumerator": a.enumerator.id.as_str(),
        "actions": actions(&a.actions, library),
    });
    if !a.zip.is_empty() {
        let pairs = a.zip.iter().map(|(v, e)| json!({"input": v.id.as_str(), "enumerator": e.id.as_str()}));
        m["zip"] = pairs.collect();
    }
    if !a.output.is_empty() {
        m["output"] = vars(&a.output);
    }
    if !a.yield_to_output.is_empty() {
        m["yieldToOutput"] = vars(&a.yield_to_output);
    }
    match &a.gather {
        Gather::Join => {}
        Gather::Nest => m["collect"] = json!("nested"),
        Gather::Carry { carried, condition } => {
            let carried = carried.iter();
            m["carry"] = carried
                .map(|c| json!({"enumerator": c.enumerator.id.as_str(), "init": c.init.id.as_str()}))
                .collect();
            if let Some(condition) = condition {
                m["while"] = json!(condition.source());
            }
        }
        Gather::Pairs { right } => m["pairs"] = json!(right.id.as_str()),
    }
    if let Some(v) = &a.yield_to_input {
        m["yieldToInput"] = json!(v.id.as_str());
    }
    if !a.depends_on.is_empty() {
        m["dependsOn"] = names(&a.depends_on);
    }
    if let Some(when) = &a.when {
        m["when"] = json!(when.source());
    }
    m
}

fn include(a: &Include) -> Value {
    let mut m = json!({"type": "include", "id": a.id.as_str(), "macro": a.macro_id.as_str()});
    if !a.inputs.is_empty() {
        m["inputs"] = inputs(&a.inputs);
    }
    if !a.outputs.is_empty() {
        m["outputs"] = outputs(&a.outputs);
    }
    if !a.depends_on.is_empty() {
        m["dependsOn"] = names(&a.depends_on);
    }
    if let Some(when) = &a.when {
        m["when"] = json!(when.source());
    }
    m
}

fn first(a: &First) -> Value {
    let mut m = json!({"type": "first", "id": a.id.as_str(), "output": a.output.id.as_str()});
    m["inputs"] = a.inputs.iter().map(|v| v.id.as_str()).collect();
    if !a.depends_on.is_empty() {
        m["dependsOn"] = names(&a.depends_on);
    }
    m
}

/// Fields in the order people expect them; the rest follows by name.
const FIELD_ORDER: [&str; 15] = [
    "api",
    "name",
    "priority",
    "retries",
    "vars",
    "type",
    "id",
    "service",
    "run",
    "input",
    "enumerator",
    "inputs",
    "outputs",
    "actions",
    "results",
];

fn entry(out: &mut String, key: &str, value: &Value, indent: usize, first: &[&str]) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(m) if !m.is_empty() => {
            let _ = writeln!(out, "{pad}{}:", scalar(key));
            for (k, v) in sorted(Some(m), first) {
                entry(out, k, v, indent + 2, first);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let _ = writeln!(out, "{pad}{}:", scalar(key));
            for item in items {
                list_item(out, item, indent + 2, first);
            }
        }
        other => {
            let _ = writeln!(out, "{pad}{}: {}", scalar(key), inline(other));
        }
    }
}

fn list_item(out: &mut String, item: &Value, indent: usize, first: &[&str]) {
    let pad = " ".repeat(indent);
    match item {
        Value::Object(m) if !m.is_empty() => {
            let mut text = String::new();
            for (k, v) in sorted(Some(m), first) {
                entry(&mut text, k, v, indent + 2, first);
            }
            let _ = write!(out, "{pad}- {}", &text[indent + 2..]);
        }
        other => {
            let _ = writeln!(out, "{pad}- {}", inline(other));
        }
    }
}

fn sorted<'m>(m: Option<&'m Map<String, Value>>, first: &[&str]) -> Vec<(&'m String, &'m Value)> {
    let mut entries: Vec<_> = m.into_iter().flatten().collect();
    entries.sort_by_key(|(k, _)| first.iter().position(|f| f == k).unwrap_or(first.len()));
    entries
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(s) => scalar(s),
        // JSON is YAML, so nested values can stay on one line.
        other => other.to_string(),
    }
}

/// A string as a YAML scalar: plain where it is safe, else in JSON's double quotes.
fn scalar(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_./$-".contains(c);
    let starts_well = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || "_/$".contains(c));
    let is_word =
        matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if starts_well && !is_word && text.chars().all(safe) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}
