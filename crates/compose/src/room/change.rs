//! What can be changed in a composition, what has to be locked for it, and how it is undone.

use super::place::Place;
use crate::model::{
    Body, Composition, Construct, Graph, Interface, Link, LinkId, Node, NodeId, PortId, Task, Workflow,
    WorkflowId,
};
use catena_model::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One change of a composition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// The name, the values of inputs, services and settings.
    SetSettings {
        /// A name for people.
        name: String,
        /// Values for the inputs of the root.
        values: BTreeMap<PortId, Value>,
        /// Services that tasks use.
        services: Value,
        /// `priority` and `retries`.
        settings: serde_json::Map<String, Value>,
    },
    /// A new workflow. Something must use it after the operation.
    AddWorkflow {
        /// What it is called.
        id: WorkflowId,
        /// What it is.
        workflow: Workflow,
    },
    /// A workflow that nothing uses any more goes.
    RemoveWorkflow {
        /// Which.
        id: WorkflowId,
    },
    /// Name and description.
    SetAbout {
        /// Of which workflow.
        workflow: WorkflowId,
        /// A name for people.
        name: String,
        /// What it does.
        description: String,
    },
    /// Ports.
    SetInterface {
        /// Of which workflow.
        workflow: WorkflowId,
        /// The ports.
        interface: Interface,
    },
    /// The task.
    SetTask {
        /// Of which workflow.
        workflow: WorkflowId,
        /// The task.
        task: Task,
    },
    /// The construct, and what it is applied to.
    SetConstruct {
        /// Of which workflow.
        workflow: WorkflowId,
        /// The construct.
        construct: Construct,
    },
    /// Ports and body, whatever these are.
    SetBody {
        /// Of which workflow.
        workflow: WorkflowId,
        /// The ports.
        interface: Interface,
        /// The body.
        body: Body,
    },
    /// A new node.
    AddNode {
        /// In which workflow.
        workflow: WorkflowId,
        /// What it is called.
        id: NodeId,
        /// What it is.
        node: Node,
    },
    /// A node goes.
    RemoveNode {
        /// In which workflow.
        workflow: WorkflowId,
        /// Which.
        id: NodeId,
    },
    /// The label of a node, and what it comes after.
    SetNode {
        /// In which workflow.
        workflow: WorkflowId,
        /// Which.
        id: NodeId,
        /// A name for people.
        label: String,
        /// Nodes that must have ended before.
        after: Vec<NodeId>,
    },
    /// A node is drawn elsewhere. Needs no lock; the last one counts.
    MoveNode {
        /// In which workflow.
        workflow: WorkflowId,
        /// Which.
        id: NodeId,
        /// Where.
        x: f64,
        /// Where.
        y: f64,
    },
    /// A new link.
    AddLink {
        /// In which workflow.
        workflow: WorkflowId,
        /// What it is called.
        id: LinkId,
        /// What it is.
        link: Link,
    },
    /// A link goes.
    RemoveLink {
        /// In which workflow.
        workflow: WorkflowId,
        /// Which.
        id: LinkId,
    },
    /// Everything, as when an earlier version comes back or a file is imported.
    Replace {
        /// What there is afterwards.
        composition: Composition,
    },
}

/// What has to be locked for a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Written.
    pub write: Vec<Place>,
    /// Something is added in it.
    pub extend: Vec<Place>,
    /// Must stay as it is meanwhile.
    pub read: Vec<Place>,
    /// Becomes part of something else, so nobody may be about to write to it.
    pub join: Vec<WorkflowId>,
}

impl Change {
    /// The parts it changes, or makes.
    pub fn places(&self, composition: &Composition) -> Vec<Place> {
        match self {
            Self::SetSettings { .. } => vec![Place::Settings],
            Self::AddWorkflow { id, .. } | Self::RemoveWorkflow { id } => vec![Place::Workflow(id.clone())],
            Self::SetAbout { workflow, .. } => vec![Place::About(workflow.clone())],
            Self::SetInterface { workflow, .. } => vec![Place::Interface(workflow.clone())],
            Self::SetTask { workflow, .. } => vec![Place::Task(workflow.clone())],
            Self::SetConstruct { workflow, .. } => vec![Place::How(workflow.clone())],
            Self::SetBody { workflow, .. } => vec![Place::Workflow(workflow.clone())],
            Self::AddNode { workflow, id, .. } | Self::RemoveNode { workflow, id } => {
                vec![Place::Node(workflow.clone(), id.clone())]
            }
            Self::SetNode { workflow, id, .. } => vec![Place::Properties(workflow.clone(), id.clone())],
            // Where something is drawn is nobody's.
            Self::MoveNode { .. } => Vec::new(),
            Self::AddLink { workflow, id, .. } | Self::RemoveLink { workflow, id } => {
                vec![Place::Link(workflow.clone(), id.clone())]
            }
            Self::Replace { .. } => vec![Place::Workflow(composition.root.clone()), Place::Settings],
        }
    }

    /// The workflow it changes, if it changes one and nothing else.
    pub fn workflow(&self) -> Option<&WorkflowId> {
        match self {
            Self::SetSettings { .. } | Self::Replace { .. } => None,
            Self::AddWorkflow { id, .. } | Self::RemoveWorkflow { id } => Some(id),
            Self::SetAbout { workflow, .. }
            | Self::SetInterface { workflow, .. }
            | Self::SetTask { workflow, .. }
            | Self::SetConstruct { workflow, .. }
            | Self::SetBody { workflow, .. }
            | Self::AddNode { workflow, .. }
            | Self::RemoveNode { workflow, .. }
            | Self::SetNode { workflow, .. }
            | Self::MoveNode { workflow, .. }
            | Self::AddLink { workflow, .. }
            | Self::RemoveLink { workflow, .. } => Some(workflow),
        }
    }

    /// Whether everything else stays right if its own workflow is, and there is nothing more or less to lock.
    pub(super) fn is_local(&self) -> bool {
        matches!(
            self,
            Self::SetAbout { .. } | Self::SetTask { .. } | Self::SetNode { .. } | Self::MoveNode { .. }
        )
    }

    /// The parts that come with what it replaces as a whole.
    pub(super) fn whole(&self, after: &Composition) -> Vec<Place> {
        let all = super::place::parts(after).into_keys();
        match self {
            Self::Replace { .. } => all.collect(),
            Self::SetBody { workflow: id, .. } => all.filter(|p| p.workflow() == Some(id)).collect(),
            _ => Vec::new(),
        }
    }

    /// What has to be locked for it.
    pub fn needs(&self, composition: &Composition) -> Needs {
        let mut needs = Needs::default();
        match self {
            Self::AddWorkflow { workflow, .. } => needs.join(workflow.body.operands()),
            Self::AddNode { workflow, node, .. } => {
                needs.extend.push(Place::Workflow(workflow.clone()));
                needs.join([&node.workflow]);
            }
            Self::AddLink { workflow, link, .. } => {
                needs.extend.push(Place::Workflow(workflow.clone()));
                for end in [&link.from, &link.to] {
                    let of = match &end.node {
                        Some(node) => node_of(composition, workflow, node).map(|n| &n.workflow),
                        None => Some(workflow),
                    };
                    needs.read.extend(of.and_then(|w| interface_place(composition, w)));
                }
            }
            Self::SetConstruct { workflow, construct } => {
                let old = composition.workflows.get(workflow).map(|w| w.body.operands()).unwrap_or_default();
                let new: Vec<&WorkflowId> = construct.operands().collect();
                if old == new {
                    needs.write.push(Place::How(workflow.clone()));
                } else {
                    needs.write.push(Place::Construct(workflow.clone()));
                    needs.join(new.into_iter().filter(|n| !old.contains(n)));
                }
            }
            Self::SetBody { workflow, body, .. } => {
                needs.write.push(Place::Workflow(workflow.clone()));
                needs.join(body.operands());
            }
            Self::MoveNode { .. } => {}
            Self::Replace { .. } => needs.write.push(Place::Workflow(composition.root.clone())),
            other => needs.write.extend(other.places(composition)),
        }
        needs
    }

    /// Changes a composition, and returns what undoes it.
    pub fn apply(&self, composition: &mut Composition) -> Result<Self, String> {
        match self.clone() {
            Self::SetSettings { name, values, services, settings } => Ok(Self::SetSettings {
                name: std::mem::replace(&mut composition.name, name),
                values: std::mem::replace(&mut composition.values, values),
                services: std::mem::replace(&mut composition.services, services),
                settings: std::mem::replace(&mut composition.settings, settings),
            }),
            Self::AddWorkflow { id, workflow } => {
                if composition.workflows.contains_key(&id) {
                    return Err(format!("there is a workflow `{id}` already"));
                }
                composition.workflows.insert(id.clone(), workflow);
                Ok(Self::RemoveWorkflow { id })
            }
            Self::RemoveWorkflow { id } => {
                let removed = composition.workflows.remove(&id);
                let workflow = removed.ok_or_else(|| format!("there is no workflow `{id}`"))?;
                Ok(Self::AddWorkflow { id, workflow })
            }
            Self::SetAbout { workflow: id, name, description } => {
                let workflow = workflow(composition, &id)?;
                let name = std::mem::replace(&mut workflow.name, name);
                let description = std::mem::replace(&mut workflow.description, description);
                Ok(Self::SetAbout { workflow: id, name, description })
            }
            Self::SetInterface { workflow: id, interface } => {
                let interface = std::mem::replace(&mut workflow(composition, &id)?.interface, interface);
                Ok(Self::SetInterface { workflow: id, interface })
            }
            Self::SetTask { workflow: id, task } => match &mut workflow(composition, &id)?.body {
                Body::Task(old) => Ok(Self::SetTask { workflow: id, task: std::mem::replace(old, task) }),
                _ => Err(format!("`{id}` does not consist of a task")),
            },
            Self::SetConstruct { workflow: id, construct } => match &mut workflow(composition, &id)?.body {
                Body::Construct(old) => {
                    Ok(Self::SetConstruct { workflow: id, construct: std::mem::replace(old, construct) })
                }
                _ => Err(format!("`{id}` is no construct")),
            },
            Self::SetBody { workflow: id, interface, body } => {
                let workflow = workflow(composition, &id)?;
                let interface = std::mem::replace(&mut workflow.interface, interface);
                let body = std::mem::replace(&mut workflow.body, body);
                Ok(Self::SetBody { workflow: id, interface, body })
            }
            Self::AddNode { workflow, id, node } => {
                let graph = graph(composition, &workflow)?;
                if graph.nodes.contains_key(&id) {
                    return Err(format!("there is a node `{id}` in `{workflow}` already"));
                }
                graph.nodes.insert(id.clone(), node);
                Ok(Self::RemoveNode { workflow, id })
            }
            Self::RemoveNode { workflow, id } => {
                let removed = graph(composition, &workflow)?.nodes.remove(&id);
                let node = removed.ok_or_else(|| format!("there is no node `{id}` in `{workflow}`"))?;
                Ok(Self::AddNode { workflow, id, node })
            }
            Self::SetNode { workflow, id, label, after } => {
                let node = node(composition, &workflow, &id)?;
                let label = std::mem::replace(&mut node.label, label);
                let after = std::mem::replace(&mut node.after, after);
                Ok(Self::SetNode { workflow, id, label, after })
            }
            Self::MoveNode { workflow, id, x, y } => {
                let node = node(composition, &workflow, &id)?;
                let (x, y) = (std::mem::replace(&mut node.x, x), std::mem::replace(&mut node.y, y));
                Ok(Self::MoveNode { workflow, id, x, y })
            }
            Self::AddLink { workflow, id, link } => {
                let graph = graph(composition, &workflow)?;
                if graph.links.contains_key(&id) {
                    return Err(format!("there is a link `{id}` in `{workflow}` already"));
                }
                graph.links.insert(id.clone(), link);
                Ok(Self::RemoveLink { workflow, id })
            }
            Self::RemoveLink { workflow, id } => {
                let removed = graph(composition, &workflow)?.links.remove(&id);
                let link = removed.ok_or_else(|| format!("there is no link `{id}` in `{workflow}`"))?;
                Ok(Self::AddLink { workflow, id, link })
            }
            Self::Replace { composition: new } => {
                Ok(Self::Replace { composition: std::mem::replace(composition, new) })
            }
        }
    }
}

impl Needs {
    fn join<'w>(&mut self, workflows: impl IntoIterator<Item = &'w WorkflowId>) {
        self.join.extend(workflows.into_iter().cloned());
    }
}

fn workflow<'c>(composition: &'c mut Composition, id: &WorkflowId) -> Result<&'c mut Workflow, String> {
    composition.workflows.get_mut(id).ok_or_else(|| format!("there is no workflow `{id}`"))
}

fn graph<'c>(composition: &'c mut Composition, id: &WorkflowId) -> Result<&'c mut Graph, String> {
    match &mut workflow(composition, id)?.body {
        Body::Graph(graph) => Ok(graph),
        _ => Err(format!("`{id}` is no graph")),
    }
}

fn node<'c>(
    composition: &'c mut Composition,
    id: &WorkflowId,
    node: &NodeId,
) -> Result<&'c mut Node, String> {
    let found = graph(composition, id)?.nodes.get_mut(node);
    found.ok_or_else(|| format!("there is no node `{node}` in `{id}`"))
}

fn node_of<'c>(composition: &'c Composition, id: &WorkflowId, node: &NodeId) -> Option<&'c Node> {
    match &composition.workflows.get(id)?.body {
        Body::Graph(graph) => graph.nodes.get(node),
        Body::Task(_) | Body::Construct(_) => None,
    }
}

/// What decides about the ports of a workflow.
fn interface_place(composition: &Composition, id: &WorkflowId) -> Option<Place> {
    Some(match composition.workflows.get(id)?.body {
        Body::Construct(_) => Place::How(id.clone()),
        Body::Task(_) | Body::Graph(_) => Place::Interface(id.clone()),
    })
}

/// What is at a place now, to be compared.
pub fn content(composition: &Composition, place: &Place) -> Value {
    let json = |value: Result<Value, serde_json::Error>| value.unwrap_or_default();
    let Some(id) = place.workflow() else {
        return serde_json::json!({
            "name": composition.name,
            "values": composition.values,
            "services": composition.services,
            "settings": composition.settings,
        });
    };
    let Some(workflow) = composition.workflows.get(id) else { return Value::Null };
    match (place, &workflow.body) {
        (Place::About(_), _) => {
            serde_json::json!({"name": workflow.name, "description": workflow.description})
        }
        (Place::Interface(_), _) => json(serde_json::to_value(&workflow.interface)),
        (Place::Task(_), Body::Task(task)) => json(serde_json::to_value(task)),
        (Place::Construct(_) | Place::How(_), Body::Construct(construct)) => {
            json(serde_json::to_value(construct))
        }
        (Place::Node(_, n) | Place::Properties(_, n), Body::Graph(graph)) => {
            json(serde_json::to_value(graph.nodes.get(n)))
        }
        (Place::Link(_, l), Body::Graph(graph)) => json(serde_json::to_value(graph.links.get(l))),
        (Place::Workflow(_), _) => json(serde_json::to_value(workflow)),
        _ => Value::Null,
    }
}
