//! The rules at work: workflows are taken apart, molecules become ripe, tasks and resources react.
//!
//! Nobody sees the whole solution, so each rule is applied where what it needs is: rules that consume one molecule at its
//! home, together with what that molecule waits for; rules that bring a task together with a resource half at the home of
//! the task and half where the index has the resource. Rules that need more than that are refused when they are read.

use crate::index::{Direction, Key};
use crate::molecule::{Kind, Name, Pointer, Wanted};
use crate::node::NewTask;
use crate::time::{Micros, SECOND};
use catena_model::{Diagnostics, Span};
use catena_rules::{
    Class, Engine, Host, Program, Query, RangeRule, Rejected, Rule, RuleSet, Side, Value, classify,
};
use std::path::Path;
use std::sync::Arc;

/// Rules that come with Catena, by name.
pub const SHIPPED: [(&str, &str); 3] = [
    ("dependencies", include_str!("../rules/dependencies.hocl")),
    ("levels", include_str!("../rules/levels.hocl")),
    ("min-min", include_str!("../rules/min-min.hocl")),
];

/// Rules that peers can apply.
#[derive(Debug)]
pub struct Chemistry {
    /// Rules that take workflows apart, levels apart, and remove what has arrived from what is waited for.
    workflow: RuleSet,
    level: RuleSet,
    arrive: RuleSet,
    map: RangeRule,
    resource_attribute: String,
    resource_direction: Direction,
    task_attribute: String,
    task_direction: Direction,
}

/// A molecule that another one was taken apart into.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is called.
    pub name: Name,
    /// Whom it waits for.
    pub sources: Vec<Name>,
    /// How rules see it.
    pub value: Value,
    /// The tasks that it will be taken apart into.
    pub holds: Vec<u32>,
}

/// What can be done with a molecule.
#[derive(Clone, Debug)]
pub enum Ripe {
    /// Nothing: it waits.
    Waits,
    /// It is taken apart.
    Apart(Vec<Part>),
    /// It looks for a resource: which, and its place among others that do.
    Search(Query, f64),
}

/// No molecule is taken apart in more reactions than this.
const LIMIT: u64 = 10_000_000;
/// Where tasks stand in line unless the rules say otherwise.
const SINCE: &str = "since";

/// The functions that peers have for rules.
struct Functions;

impl Host for Functions {
    fn pure(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        match (name, arguments) {
            ("fits", [want, features]) => Ok(Value::Bool(fits(want, features))),
            _ => Err(format!("peers have no function `{name}` with {} arguments", arguments.len())),
        }
    }

    fn effect(&mut self, name: &str, _: &[Value]) -> Result<Option<Value>, String> {
        Err(format!("`{name}` cannot be done while a molecule is taken apart"))
    }
}

/// Whether a resource has what is wanted: of every number at least as much, and everything else as it is.
fn fits(want: &Value, features: &Value) -> bool {
    let Value::Solution(wants) = want else { return false };
    let Value::Solution(has) = features else { return false };
    wants.iter().all(|wanted| match wanted.components() {
        [Value::Tag(tag), amount] if amount.as_number().is_some() => {
            let there = has.attribute(tag).and_then(Value::as_number);
            there.is_some_and(|there| Some(there) >= amount.as_number())
        }
        _ => has.contains(wanted),
    })
}

impl Chemistry {
    /// Rules that come with Catena.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(n, _)| *n == name)?;
        Self::read(Path::new(name), text).ok()
    }

    /// Reads rules, and refuses those that peers cannot apply.
    pub fn read(name: &Path, text: &str) -> Result<Self, Box<Rejected>> {
        let program = Program::read(name, text)?;
        let mut problems = Diagnostics::default();
        let homed = |tag: &str| Kind::from_tag(tag).is_some() || tag == "DONE" || tag == "PLAN";
        let indexed = |tag: &str| program.indexes().iter().any(|i| i.tag == tag) && !homed(tag);
        let (mut workflow, mut level, mut arrive, mut map) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for rule in floating(&program) {
            match classify(&rule, &homed, &indexed) {
                Class::Local if rule.heads().next().flatten() == Some(Kind::Level.tag()) => level.push(rule),
                Class::Local => workflow.push(rule),
                Class::KeyRoutable => arrive.push(rule),
                Class::Range(range) => map.push(range),
                Class::Global { why } => {
                    let error = problems.error(why.code, why.span, why.path, why.message);
                    error.help = why.help;
                }
            }
        }
        let mut lacks = |what: &str, help: &str| {
            problems.error("not-for-peers", Span::default(), "", what).help = Some(help.to_owned());
        };
        if map.len() != 1 {
            lacks(
                "exactly one rule must bring tasks and resources together",
                "write one such as `replace TASK:i:<SRC:<>, WANT:w, ?t>, RES:r:<?f> by deploy(i, r) if fits(w, <?f>)`",
            );
        }
        if workflow.is_empty() {
            lacks(
                "no rule takes a workflow apart",
                "write one such as `replace-one WF:w:<?tasks>:<?edges> by ?tasks`",
            );
        }
        let resource = program.indexes().iter().find(|i| indexed(&i.tag));
        if resource.is_none() {
            lacks("no index has the resources", "write `index RES by speed;`");
        }
        if !map.iter().all(|m| m.rule().externs().iter().any(|e| e.name == "deploy")) {
            lacks(
                "the rule that brings tasks and resources together executes nothing",
                "let it produce `deploy(i, r)`",
            );
        }
        let Some((map, resource)) = map.pop().zip(resource).filter(|_| !problems.has_errors()) else {
            return Err(Box::new(Rejected { diags: problems, sources: program.sources().clone() }));
        };
        let first = |index: Option<&catena_rules::Index>| {
            index.and_then(|i| i.attributes.first()).map_or_else(|| SINCE.to_owned(), ToString::to_string)
        };
        let task = program.indexes().iter().find(|i| i.tag == Kind::Task.tag());
        let (resource_attribute, task_attribute) = (first(Some(resource)), first(task));
        let direction = |side, attribute: &str| match map.direction(side, attribute) {
            Some(catena_rules::Direction::Down) => Direction::Down,
            _ => Direction::Up,
        };
        Ok(Self {
            workflow: RuleSet::new(workflow),
            level: RuleSet::new(level),
            arrive: RuleSet::new(arrive),
            resource_direction: direction(Side::Indexed, &resource_attribute),
            task_direction: direction(Side::Homed, &task_attribute),
            map,
            resource_attribute,
            task_attribute,
        })
    }

    /// Takes a workflow, or what has been added to it, apart.
    pub fn weave(&self, tasks: &[NewTask]) -> Result<Vec<Part>, String> {
        apart(&self.workflow, workflow_value(tasks)?)
    }

    /// Something that a molecule may wait for is done.
    pub fn arrive(&self, value: &Value, name: Name) -> Result<Value, String> {
        let done = tuple([Value::tag("DONE"), name_value(name)?])?;
        let mut engine = Engine::new(&self.arrive);
        engine.add(value.clone());
        engine.add(done);
        engine.run(LIMIT, &mut Functions).map_err(|e| e.diagnostic().message)?;
        let tag = value.head();
        let same = engine.molecules().find(|m| m.head() == tag && m.id() == value.id());
        same.cloned().ok_or_else(|| "a rule has consumed a molecule that was to wait".to_owned())
    }

    /// What can be done with a molecule now.
    pub fn ripe(&self, value: &Value, now: Micros) -> Result<Ripe, String> {
        if value.head() == Some(Kind::Level.tag()) {
            let parts = apart(&self.level, value.clone())?;
            let same = parts.len() == 1 && parts[0].value == *value;
            return Ok(if same { Ripe::Waits } else { Ripe::Apart(parts) });
        }
        Ok(self.map.bind(value).map_or(Ripe::Waits, |query| {
            let attribute = value.attribute(&self.task_attribute).and_then(Value::as_number);
            Ripe::Search(query, attribute.unwrap_or(now as f64 / SECOND as f64))
        }))
    }

    /// Takes a level apart whatever it waits for, because somebody has done so before.
    pub fn force_apart(&self, value: &Value) -> Result<Vec<Part>, String> {
        let mut value = value.clone();
        for source in part_of(&value).map(|p| p.sources).unwrap_or_default() {
            value = self.arrive(&value, source)?;
        }
        match self.ripe(&value, 0)? {
            Ripe::Apart(parts) => Ok(parts),
            _ => Err("the rules do not take it apart any more".to_owned()),
        }
    }

    /// Whether a task and a resource react.
    pub fn accepts(&self, query: &Query, resource: &Value) -> bool {
        // A rule that cannot be applied to a resource does not apply to it.
        self.map.accepts(query, resource, &Functions).unwrap_or(false)
    }

    /// Whether what is looked for is what is there.
    pub fn suits(&self, wanted: &Wanted, pointer: &Pointer) -> bool {
        match (wanted, pointer) {
            (Wanted::Resource(query), Pointer::Free(_, resource))
            | (Wanted::Task(resource), Pointer::Parked(_, query)) => self.accepts(query, resource),
            _ => false,
        }
    }

    /// Where resources for a task are in the index, and which end is best.
    pub fn resources(&self, query: &Query) -> (Option<(Key, Key)>, Direction) {
        let (low, high) = self.map.bounds(query, &self.resource_attribute, &Functions);
        let bounds = (low.is_some() || high.is_some())
            .then(|| (low.map_or(Key::MIN, Key::least), high.map_or(Key::MAX, Key::greatest)));
        (bounds, self.resource_direction)
    }

    /// Which end of the waiting tasks is best.
    pub fn tasks(&self) -> Direction {
        self.task_direction
    }

    /// The place of a resource among others.
    pub fn resource_order(&self, resource: &Value) -> f64 {
        resource.attribute(&self.resource_attribute).and_then(Value::as_number).unwrap_or(0.0)
    }
}

/// The rules that take part: those in the solution of the program, or all if it has none.
fn floating(program: &Program) -> Vec<Arc<Rule>> {
    let inside = program.main().map(|solution| {
        let rules =
            solution.iter().filter_map(|v| if let Value::Rule(rule) = v { Some(rule.clone()) } else { None });
        rules.collect::<Vec<_>>()
    });
    inside.unwrap_or_else(|| program.rules().cloned().collect())
}

/// What a molecule becomes if rules are applied until nothing changes.
fn apart(rules: &RuleSet, value: Value) -> Result<Vec<Part>, String> {
    let mut engine = Engine::new(rules);
    engine.add(value);
    let outcome = engine.run(LIMIT, &mut Functions).map_err(|e| e.diagnostic().message)?;
    if !outcome.is_inert() {
        return Err(format!("the rules have not come to an end after {LIMIT} reactions"));
    }
    let mut parts: Vec<Part> = engine.molecules().filter_map(part_of).collect();
    parts.sort_by_key(|p| p.name);
    Ok(parts)
}

fn part_of(value: &Value) -> Option<Part> {
    let name = value_name(value)?;
    let names = |attribute: &str| match value.attribute(attribute) {
        Some(Value::Solution(names)) => names.iter().filter_map(value_name).collect(),
        _ => Vec::new(),
    };
    let holds = names("hold").into_iter().map(|n: Name| n.number).collect();
    Some(Part { name, sources: names("src"), value: value.clone(), holds })
}

/// A task is known by its number, anything else by its TAG and number.
fn value_name(value: &Value) -> Option<Name> {
    match value.components() {
        [Value::Int(number)] => Some(Name::task(u32::try_from(*number).ok()?)),
        [Value::Tag(tag), Value::Int(number), ..] => {
            Some(Name { kind: Kind::from_tag(tag)?, number: u32::try_from(*number).ok()? })
        }
        _ => None,
    }
}

fn name_value(name: Name) -> Result<Value, String> {
    let number = Value::Int(i64::from(name.number));
    match name.kind {
        Kind::Task => Ok(number),
        kind => tuple([Value::tag(kind.tag()), number]),
    }
}

fn workflow_value(tasks: &[NewTask]) -> Result<Value, String> {
    let int = |n: u32| Value::Int(i64::from(n));
    let mut molecules = Vec::new();
    let mut edges = Vec::new();
    for task in tasks {
        let sources = solution(task.sources.iter().map(|s| int(*s)))?;
        let mut inside = vec![
            tuple([Value::tag("SRC"), sources])?,
            tuple([Value::tag("WANT"), solution(task.want.iter().cloned())?])?,
        ];
        inside.extend(task.about.iter().cloned());
        molecules.push(tuple([Value::tag(Kind::Task.tag()), int(task.number), solution(inside)?])?);
        edges.push(tuple([Value::tag("LV"), int(task.number), Value::Int(0)])?);
        for source in &task.sources {
            edges.push(tuple([Value::tag("EDGE"), int(*source), int(task.number)])?);
        }
    }
    tuple([Value::tag(Kind::Workflow.tag()), Value::Int(0), solution(molecules)?, solution(edges)?])
}

fn tuple(items: impl IntoIterator<Item = Value>) -> Result<Value, String> {
    Value::tuple(items).ok_or_else(|| "a molecule is nested too deeply".to_owned())
}

fn solution(items: impl IntoIterator<Item = Value>) -> Result<Value, String> {
    Value::solution(items).ok_or_else(|| "a molecule is nested too deeply".to_owned())
}
