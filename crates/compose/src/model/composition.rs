//! What is composed: workflows with an interface and a body, put together by reference (Fei and Lu, "A dataflow-based
//! scientific workflow composition framework").

use super::types::Type;
use catena_model::{Name, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Name);

        impl $name {
            /// From a text.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(Name::new(text))
            }

            /// As a text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    };
}

id!(
    /// Names a workflow within a composition.
    WorkflowId
);
id!(
    /// Names a port within a workflow. Stays the same if the port gets another name.
    PortId
);
id!(
    /// Names a node within a graph.
    NodeId
);
id!(
    /// Names a link within a graph.
    LinkId
);

/// Workflows that belong together; one of them is the one that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Composition {
    /// A name for people.
    pub name: String,
    /// The workflow that runs. Nothing else refers to it, and it refers to everything, over others.
    pub root: WorkflowId,
    /// `priority` and `retries` of the long form.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub settings: serde_json::Map<String, Value>,
    /// Values for the inputs of the root.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<PortId, Value>,
    /// Services that tasks use, as in the long form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub services: Value,
    /// All workflows.
    pub workflows: BTreeMap<WorkflowId, Workflow>,
}

/// A workflow of a composition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// A name for people.
    #[serde(default)]
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What goes in and comes out. Empty for constructs, whose interface follows from what they are applied to.
    #[serde(default)]
    pub interface: Interface,
    /// How it does it.
    pub body: Body,
}

/// What goes into a workflow and what comes out of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// What goes in.
    #[serde(default)]
    pub inputs: Vec<Port>,
    /// What comes out.
    #[serde(default)]
    pub outputs: Vec<Port>,
}

/// Something that goes in or comes out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Names it.
    pub id: PortId,
    /// A name for people.
    pub name: String,
    /// What flows.
    #[serde(rename = "type")]
    pub data_type: Type,
}

impl Port {
    /// A port that is called as it is named.
    pub fn new(id: impl AsRef<str>, data_type: Type) -> Self {
        Self { id: PortId::new(&id), name: id.as_ref().to_owned(), data_type }
    }
}

/// How a workflow does what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Body {
    /// By one task.
    Task(Task),
    /// By other workflows, along links.
    Graph(Graph),
    /// By another workflow, applied in some way.
    Construct(Construct),
}

/// One task of the ordinary language.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// An action of the long form without its name, outputs and dependencies: `run` or `service`, and settings. Its
    /// `inputs` are constants, among which `{port: …}` stands for an input of the workflow.
    pub action: serde_json::Map<String, Value>,
    /// What the task calls the inputs of the workflow. Those that are not mentioned have the same name; an empty name is
    /// that of an input which only conditions mention.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<PortId, Name>,
    /// What the task calls the outputs of the workflow, and how their files are called.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<PortId, TaskOutput>,
}

/// An output of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskOutput {
    /// What the task calls it, if not as the workflow does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<Name>,
    /// `as`, `prefix` and `store` of the long form.
    #[serde(flatten)]
    pub settings: serde_json::Map<String, Value>,
}

/// Workflows along links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Workflows that are used, each as often as there are nodes for it.
    #[serde(default)]
    pub nodes: BTreeMap<NodeId, Node>,
    /// What flows from where to where.
    #[serde(default)]
    pub links: BTreeMap<LinkId, Link>,
}

/// A use of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What is used.
    pub workflow: WorkflowId,
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Nodes that must have ended before, without data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<NodeId>,
    /// Where it is drawn.
    #[serde(default)]
    pub x: f64,
    /// Where it is drawn.
    #[serde(default)]
    pub y: f64,
}

/// Something flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// From here.
    pub from: End,
    /// To there.
    pub to: End,
}

/// An end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct End {
    /// The node; none for the ports of the workflow itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The port.
    pub port: PortId,
}

impl End {
    /// A port of a node.
    pub fn of(node: impl AsRef<str>, port: impl AsRef<str>) -> Self {
        Self { node: Some(NodeId::new(node)), port: PortId::new(port) }
    }

    /// A port of the workflow itself.
    pub fn this(port: impl AsRef<str>) -> Self {
        Self { node: None, port: PortId::new(port) }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "{node}.{}", self.port),
            None => write!(f, "{}", self.port),
        }
    }
}

/// What makes a workflow of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Construct {
    /// The other.
    pub of: WorkflowId,
    /// How.
    #[serde(flatten)]
    pub how: How,
}

/// How a construct applies a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "construct", rename_all = "lowercase")]
pub enum How {
    /// To each element of lists, in any order.
    Map {
        /// The inputs that become lists; all if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        over: Vec<PortId>,
    },
    /// To what came of the elements before and the next element, from the left.
    Reduce {
        /// The input that gets what came of the elements before.
        carry: PortId,
        /// The input that gets the element.
        element: PortId,
    },
    /// To pairs of neighbours, then to what came of them, until one is left.
    Tree {
        /// The input that gets the first of a pair.
        left: PortId,
        /// The input that gets the second.
        right: PortId,
    },
    /// If a condition on the inputs holds.
    Conditional {
        /// The condition.
        when: String,
        /// What is applied if it does not hold.
        #[serde(default, rename = "else", skip_serializing_if = "Option::is_none")]
        otherwise: Option<WorkflowId>,
    },
    /// Again and again, as long as a condition holds.
    Loop {
        /// The condition on the inputs.
        #[serde(rename = "while")]
        condition: String,
        /// Which output becomes which input of the next round.
        feedback: BTreeMap<PortId, PortId>,
        /// At most so often.
        max: u32,
    },
    /// With some inputs fixed.
    Curry {
        /// The values.
        with: BTreeMap<PortId, Value>,
    },
}

impl How {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Map { .. } => "map",
            Self::Reduce { .. } => "reduce",
            Self::Tree { .. } => "tree",
            Self::Conditional { .. } => "conditional",
            Self::Loop { .. } => "loop",
            Self::Curry { .. } => "curry",
        }
    }

    /// All names.
    pub const NAMES: [&str; 6] = ["map", "reduce", "tree", "conditional", "loop", "curry"];
}

impl Construct {
    /// The workflows it is made of.
    pub fn operands(&self) -> impl Iterator<Item = &WorkflowId> {
        let otherwise =
            if let How::Conditional { otherwise, .. } = &self.how { otherwise.as_ref() } else { None };
        std::iter::once(&self.of).chain(otherwise)
    }
}

impl Body {
    /// The workflows it refers to, once for each reference.
    pub fn operands(&self) -> Vec<&WorkflowId> {
        match self {
            Self::Task(_) => Vec::new(),
            Self::Graph(graph) => graph.nodes.values().map(|n| &n.workflow).collect(),
            Self::Construct(construct) => construct.operands().collect(),
        }
    }
}

impl Interface {
    /// The input with this id.
    pub fn input(&self, id: &PortId) -> Option<&Port> {
        self.inputs.iter().find(|p| p.id == *id)
    }

    /// The output with this id.
    pub fn output(&self, id: &PortId) -> Option<&Port> {
        self.outputs.iter().find(|p| p.id == *id)
    }
}

/// Constructs of constructs end somewhere, also where a composition is still wrong.
const MAX_DEPTH: usize = 64;

impl Composition {
    /// What goes into a workflow and comes out of it. Of a construct it follows from what it is applied to. Nothing if
    /// workflows are missing or go round in a circle.
    pub fn interface(&self, id: &WorkflowId) -> Option<Interface> {
        self.interface_within(id, MAX_DEPTH)
    }

    fn interface_within(&self, id: &WorkflowId, depth: usize) -> Option<Interface> {
        let workflow = self.workflows.get(id)?;
        let Body::Construct(construct) = &workflow.body else { return Some(workflow.interface.clone()) };
        let base = self.interface_within(&construct.of, depth.checked_sub(1)?)?;
        Some(construct.how.interface(base))
    }

    /// How often workflows refer to this one.
    pub fn uses(&self, id: &WorkflowId) -> usize {
        self.workflows.values().flat_map(|w| w.body.operands()).filter(|o| *o == id).count()
    }
}

impl How {
    /// The interface of a construct, given that of what it is applied to.
    fn interface(&self, mut base: Interface) -> Interface {
        let listed = |port: &mut Port| port.data_type = port.data_type.clone().list();
        match self {
            Self::Map { over } => {
                let mapped = |p: &&mut Port| over.is_empty() || over.contains(&p.id);
                base.inputs.iter_mut().filter(mapped).for_each(listed);
                base.outputs.iter_mut().for_each(listed);
            }
            Self::Reduce { element, .. } => {
                base.inputs.iter_mut().filter(|p| p.id == *element).for_each(listed);
            }
            Self::Tree { left, right } => {
                base.inputs.retain(|p| p.id != *right);
                base.inputs.iter_mut().filter(|p| p.id == *left).for_each(listed);
            }
            Self::Conditional { .. } | Self::Loop { .. } => {}
            Self::Curry { with } => base.inputs.retain(|p| !with.contains_key(&p.id)),
        }
        base
    }
}
