//! What can be locked in a composition, by name, and how that is a graph of units.

use crate::lock::{Unit, Units};
use crate::model::{Body, Composition, LinkId, NodeId, WorkflowId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// A part of a composition that can be locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// The name of the composition, the values of its inputs, its services.
    Settings,
    /// A workflow, with everything in it.
    Workflow(WorkflowId),
    /// Its name and description.
    About(WorkflowId),
    /// Its ports.
    Interface(WorkflowId),
    /// Its task.
    Task(WorkflowId),
    /// Its construct: what it is applied to.
    Construct(WorkflowId),
    /// How its construct is applied.
    How(WorkflowId),
    /// A node of its graph, with the workflow that it uses.
    Node(WorkflowId, NodeId),
    /// The label of a node, and what it comes after.
    Properties(WorkflowId, NodeId),
    /// A link of its graph.
    Link(WorkflowId, LinkId),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("settings"),
            Self::Workflow(w) => write!(f, "workflows/{w}"),
            Self::About(w) => write!(f, "workflows/{w}/about"),
            Self::Interface(w) => write!(f, "workflows/{w}/interface"),
            Self::Task(w) => write!(f, "workflows/{w}/task"),
            Self::Construct(w) => write!(f, "workflows/{w}/construct"),
            Self::How(w) => write!(f, "workflows/{w}/construct/how"),
            Self::Node(w, n) => write!(f, "workflows/{w}/nodes/{n}"),
            Self::Properties(w, n) => write!(f, "workflows/{w}/nodes/{n}/properties"),
            Self::Link(w, l) => write!(f, "workflows/{w}/links/{l}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let workflow = || WorkflowId::new(parts[1]);
        match &parts[..] {
            ["settings"] => Ok(Self::Settings),
            ["workflows", _] => Ok(Self::Workflow(workflow())),
            ["workflows", _, "about"] => Ok(Self::About(workflow())),
            ["workflows", _, "interface"] => Ok(Self::Interface(workflow())),
            ["workflows", _, "task"] => Ok(Self::Task(workflow())),
            ["workflows", _, "construct"] => Ok(Self::Construct(workflow())),
            ["workflows", _, "construct", "how"] => Ok(Self::How(workflow())),
            ["workflows", _, "nodes", node] => Ok(Self::Node(workflow(), NodeId::new(node))),
            ["workflows", _, "nodes", node, "properties"] => {
                Ok(Self::Properties(workflow(), NodeId::new(node)))
            }
            ["workflows", _, "links", link] => Ok(Self::Link(workflow(), LinkId::new(link))),
            _ => Err(format!(
                "`{text}` is no part of a composition; parts are written as `workflows/align/task`"
            )),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Place {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Place {
    /// The workflow it belongs to.
    pub fn workflow(&self) -> Option<&WorkflowId> {
        match self {
            Self::Settings => None,
            Self::Workflow(w)
            | Self::About(w)
            | Self::Interface(w)
            | Self::Task(w)
            | Self::Construct(w)
            | Self::How(w)
            | Self::Node(w, _)
            | Self::Properties(w, _)
            | Self::Link(w, _) => Some(w),
        }
    }

    /// In words, for people.
    pub fn describe(&self, composition: &Composition) -> String {
        let name = |w: &WorkflowId| match composition.workflows.get(w) {
            Some(workflow) if !workflow.name.is_empty() => format!("*{}*", workflow.name),
            _ => format!("*{w}*"),
        };
        match self {
            Self::Settings => "the settings".to_owned(),
            Self::Workflow(w) => name(w),
            Self::About(w) => format!("the description of {}", name(w)),
            Self::Interface(w) => format!("the ports of {}", name(w)),
            Self::Task(w) => format!("the task of {}", name(w)),
            Self::Construct(w) | Self::How(w) => format!("the construct of {}", name(w)),
            Self::Node(w, n) | Self::Properties(w, n) => {
                let node = composition.workflows.get(w).and_then(|workflow| match &workflow.body {
                    Body::Graph(graph) => graph.nodes.get(n),
                    Body::Task(_) | Body::Construct(_) => None,
                });
                let label = node.map(|n| n.label.as_str()).filter(|l| !l.is_empty());
                format!("*{}* inside {}", label.unwrap_or(n.as_str()), name(w))
            }
            Self::Link(w, l) => format!("the link *{l}* inside {}", name(w)),
        }
    }
}

/// All parts of a composition, each with what it is part of.
pub(super) fn parts(composition: &Composition) -> BTreeMap<Place, BTreeSet<Place>> {
    let mut parts: BTreeMap<Place, BTreeSet<Place>> = BTreeMap::new();
    let mut add = |place: Place, parent: Option<Place>| parts.entry(place).or_default().extend(parent);
    add(Place::Settings, Some(Place::Workflow(composition.root.clone())));
    for (id, workflow) in &composition.workflows {
        let whole = Place::Workflow(id.clone());
        add(whole.clone(), None);
        add(Place::About(id.clone()), Some(whole.clone()));
        match &workflow.body {
            Body::Task(_) => {
                add(Place::Interface(id.clone()), Some(whole.clone()));
                add(Place::Task(id.clone()), Some(whole));
            }
            Body::Construct(construct) => {
                let unit = Place::Construct(id.clone());
                add(unit.clone(), Some(whole));
                add(Place::How(id.clone()), Some(unit.clone()));
                for operand in construct.operands() {
                    add(Place::Workflow(operand.clone()), Some(unit.clone()));
                }
            }
            Body::Graph(graph) => {
                add(Place::Interface(id.clone()), Some(whole.clone()));
                for (node_id, node) in &graph.nodes {
                    let unit = Place::Node(id.clone(), node_id.clone());
                    add(unit.clone(), Some(whole.clone()));
                    add(Place::Properties(id.clone(), node_id.clone()), Some(unit.clone()));
                    add(Place::Workflow(node.workflow.clone()), Some(unit));
                }
                for link in graph.links.keys() {
                    add(Place::Link(id.clone(), link.clone()), Some(whole.clone()));
                }
            }
        }
    }
    parts
}

/// Which unit stands for which part.
#[derive(Clone, Debug, Default)]
pub(super) struct Atlas {
    units: BTreeMap<Place, Unit>,
    places: BTreeMap<Unit, Place>,
}

impl Atlas {
    /// The parts of a composition as units.
    pub(super) fn new(composition: &Composition) -> (Self, Units) {
        let (mut atlas, mut units) = (Self::default(), Units::default());
        let parts = parts(composition);
        for place in parts.keys() {
            atlas.insert(place.clone(), units.add(&[]));
        }
        for (place, parents) in &parts {
            for parent in parents {
                units.connect(atlas.units[parent], atlas.units[place]);
            }
        }
        (atlas, units)
    }

    pub(super) fn insert(&mut self, place: Place, unit: Unit) {
        self.places.insert(unit, place.clone());
        self.units.insert(place, unit);
    }

    pub(super) fn remove(&mut self, place: &Place) -> Option<Unit> {
        let unit = self.units.remove(place)?;
        self.places.remove(&unit);
        Some(unit)
    }

    pub(super) fn unit(&self, place: &Place) -> Option<Unit> {
        self.units.get(place).copied()
    }

    pub(super) fn place(&self, unit: Unit) -> Option<&Place> {
        self.places.get(&unit)
    }
}
