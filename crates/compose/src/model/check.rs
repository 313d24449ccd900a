//! Whether a composition is well-formed: one root, no circle, one source per input, types that fit.

use super::composition::{Body, Composition, Construct, End, Graph, How, Interface, PortId, WorkflowId};
use catena_model::Condition;
use std::collections::{BTreeMap, BTreeSet};

/// Something that is wrong with a composition.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Flaw {
    /// Where: the path to it in the document, such as `workflows/align/graph/links/l1`.
    pub place: String,
    /// What.
    pub message: String,
    /// Something is still missing. That is normal while people compose, but nothing can run.
    pub is_gap: bool,
}

/// Everything that is wrong with a composition.
pub fn check(composition: &Composition) -> Vec<Flaw> {
    let mut checker = Checker { composition, flaws: Vec::new() };
    checker.names();
    checker.references();
    checker.circles();
    if checker.flaws.is_empty() {
        checker.roots();
        for (id, workflow) in &composition.workflows {
            checker.workflow(id, &workflow.body);
        }
        checker.values();
    }
    checker.flaws
}

/// What is wrong with one workflow, if nothing else has changed.
pub fn check_workflow(composition: &Composition, id: &WorkflowId) -> Vec<Flaw> {
    let mut checker = Checker { composition, flaws: Vec::new() };
    if let Some(workflow) = composition.workflows.get(id) {
        checker.workflow(id, &workflow.body);
    }
    checker.flaws
}

struct Checker<'c> {
    composition: &'c Composition,
    flaws: Vec<Flaw>,
}

impl Checker<'_> {
    fn flaw(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(Flaw { place: place.into(), message: message.into(), is_gap: false });
    }

    fn gap(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.flaws.push(Flaw { place: place.into(), message: message.into(), is_gap: true });
    }

    /// Names are parts of other names, so they must not contain what separates those.
    fn names(&mut self) {
        let good = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let mut bad: Vec<(String, String)> = Vec::new();
        let mut look = |place: String, name: &str| {
            if name.is_empty() || !name.chars().all(good) {
                bad.push((place, name.to_owned()));
            }
        };
        for (id, workflow) in &self.composition.workflows {
            look(format!("workflows/{id}"), id.as_str());
            for (side, ports) in
                [("inputs", &workflow.interface.inputs), ("outputs", &workflow.interface.outputs)]
            {
                for port in ports {
                    look(format!("workflows/{id}/{side}/{}", port.id), port.id.as_str());
                }
            }
            if let Body::Graph(graph) = &workflow.body {
                for node in graph.nodes.keys() {
                    look(format!("workflows/{id}/graph/nodes/{node}"), node.as_str());
                }
                for link in graph.links.keys() {
                    look(format!("workflows/{id}/graph/links/{link}"), link.as_str());
                }
            }
        }
        for (place, name) in bad {
            self.flaw(place, format!("`{name}` cannot be a name; use letters, digits, `_` and `-`"));
        }
    }

    fn references(&mut self) {
        let known = |id: &WorkflowId| self.composition.workflows.contains_key(id);
        let mut flaws = Vec::new();
        if !known(&self.composition.root) {
            flaws.push(("root".to_owned(), self.composition.root.clone()));
        }
        for (id, workflow) in &self.composition.workflows {
            let missing = workflow.body.operands().into_iter().filter(|o| !known(o));
            flaws.extend(missing.map(|o| (format!("workflows/{id}"), o.clone())));
        }
        for (place, missing) in flaws {
            let names = self.composition.workflows.keys().map(WorkflowId::as_str);
            let near = catena_model::nearest(missing.as_str(), names);
            let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            self.flaw(place, format!("there is no workflow `{missing}`{hint}"));
        }
    }

    fn circles(&mut self) {
        let mut state: BTreeMap<&WorkflowId, bool> = BTreeMap::new();
        for id in self.composition.workflows.keys() {
            let mut path = Vec::new();
            if let Some(circle) = self.circle(id, &mut state, &mut path) {
                let names: Vec<&str> = circle.iter().map(WorkflowId::as_str).collect();
                let message = format!("these workflows are made of each other: {}", names.join(" -> "));
                self.flaw(format!("workflows/{}", circle[0]), message);
                return;
            }
        }
    }

    /// A circle that can be reached from a workflow. `state` has those that were looked at, and whether that is over.
    fn circle<'c>(
        &'c self,
        id: &'c WorkflowId,
        state: &mut BTreeMap<&'c WorkflowId, bool>,
        path: &mut Vec<&'c WorkflowId>,
    ) -> Option<Vec<WorkflowId>> {
        match state.get(id) {
            Some(true) => return None,
            Some(false) => {
                let start = path.iter().position(|p| *p == id)?;
                return Some(path[start..].iter().copied().chain([id]).cloned().collect());
            }
            None => {}
        }
        state.insert(id, false);
        path.push(id);
        let operands = self.composition.workflows.get(id).map(|w| w.body.operands()).unwrap_or_default();
        let found = operands.into_iter().find_map(|o| self.circle(o, state, path));
        path.pop();
        state.insert(id, true);
        found
    }

    fn roots(&mut self) {
        let used: BTreeSet<&WorkflowId> =
            self.composition.workflows.values().flat_map(|w| w.body.operands()).collect();
        let root = &self.composition.root;
        if used.contains(root) {
            self.flaw("root", format!("`{root}` is part of another workflow, so it cannot be the root"));
        }
        let unused = self.composition.workflows.keys().filter(|id| !used.contains(id) && *id != root);
        for id in unused.collect::<Vec<_>>() {
            self.flaw(format!("workflows/{id}"), format!("nothing uses the workflow `{id}`"));
        }
    }

    fn workflow(&mut self, id: &WorkflowId, body: &Body) {
        let place = format!("workflows/{id}");
        let Some(interface) = self.composition.interface(id) else { return };
        for (side, ports) in [("inputs", &interface.inputs), ("outputs", &interface.outputs)] {
            let mut seen = BTreeSet::new();
            for port in ports.iter().filter(|p| !seen.insert(&p.id)) {
                self.flaw(
                    format!("{place}/{side}/{}", port.id),
                    format!("the port `{}` is there twice", port.id),
                );
            }
        }
        let both = interface.inputs.iter().filter(|p| interface.output(&p.id).is_some());
        for port in both {
            let message = format!("`{}` is an input and an output; give one of them another name", port.id);
            self.flaw(format!("{place}/outputs/{}", port.id), message);
        }
        match body {
            Body::Task(task) => {
                if !task.action.contains_key("type")
                    && task.action.contains_key("run") == task.action.contains_key("service")
                {
                    self.gap(format!("{place}/task"), "a task has either `run` or `service`");
                }
                let unknown = task.inputs.keys().filter(|p| interface.input(p).is_none());
                let unknown = unknown.chain(task.outputs.keys().filter(|p| interface.output(p).is_none()));
                for port in unknown {
                    self.flaw(format!("{place}/task"), format!("the workflow has no port `{port}`"));
                }
                // Several inputs may go to the same parameter, one after the other; an output has one origin.
                let outputs = task.outputs.values().filter_map(|o| o.parameter.as_deref());
                self.injective(&place, outputs.collect());
            }
            Body::Graph(graph) => self.graph(&place, graph, &interface),
            Body::Construct(construct) => self.construct(&place, construct),
        }
    }

    fn injective(&mut self, place: &str, names: Vec<&str>) {
        let mut seen = BTreeSet::new();
        for name in names.into_iter().filter(|n| !seen.insert(*n)) {
            self.flaw(format!("{place}/task"), format!("two ports stand for `{name}` of the task"));
        }
    }

    fn graph(&mut self, place: &str, graph: &Graph, own: &Interface) {
        let interfaces: BTreeMap<_, _> = graph
            .nodes
            .iter()
            .filter_map(|(id, node)| Some((id, self.composition.interface(&node.workflow)?)))
            .collect();
        let mut sources: BTreeMap<&End, usize> = BTreeMap::new();
        for (id, link) in &graph.links {
            let place = format!("{place}/graph/links/{id}");
            let missing = |end: &End| match &end.node {
                Some(node) if !graph.nodes.contains_key(node) => format!("there is no node `{node}`"),
                Some(node) => format!("the node `{node}` has no such port: `{}`", end.port),
                None => format!("the workflow has no such port: `{}`", end.port),
            };
            // Seen from inside, what goes into the workflow comes out of its border.
            let from = match &link.from.node {
                Some(node) => interfaces.get(node).and_then(|i| i.output(&link.from.port)),
                None => own.input(&link.from.port),
            };
            let to = match &link.to.node {
                Some(node) => interfaces.get(node).and_then(|i| i.input(&link.to.port)),
                None => own.output(&link.to.port),
            };
            *sources.entry(&link.to).or_default() += 1;
            match (from, to) {
                (None, _) => self.flaw(place, missing(&link.from)),
                (_, None) => self.flaw(place, missing(&link.to)),
                (Some(from), Some(to)) if !from.data_type.fits(&to.data_type) => {
                    let (a, b) = (&from.data_type, &to.data_type);
                    let message = format!("`{}` gives `{a}`, but `{}` takes `{b}`", link.from, link.to);
                    self.flaw(place, message);
                }
                (Some(_), Some(_)) => {}
            }
        }
        let node_inputs = interfaces.iter().flat_map(|(node, interface)| {
            interface.inputs.iter().map(|p| End { node: Some((*node).clone()), port: p.id.clone() })
        });
        let wanted = node_inputs.chain(own.outputs.iter().map(|p| End { node: None, port: p.id.clone() }));
        for end in wanted.collect::<Vec<_>>() {
            let place = match &end.node {
                Some(node) => format!("{place}/graph/nodes/{node}"),
                None => format!("{place}/outputs/{}", end.port),
            };
            match sources.get(&end).copied().unwrap_or(0) {
                0 => self.gap(place, format!("nothing comes to `{end}`; connect it to something")),
                1 => {}
                n => self.flaw(place, format!("{n} links come to `{end}`; only one may")),
            }
        }
        for (id, node) in &graph.nodes {
            for after in node.after.iter().filter(|a| !graph.nodes.contains_key(a)) {
                let place = format!("{place}/graph/nodes/{id}");
                self.flaw(place, format!("it should come after `{after}`, which does not exist"));
            }
        }
        if let Some(circle) = node_circle(graph) {
            self.flaw(
                format!("{place}/graph"),
                format!("these nodes wait for each other: {}", circle.join(", ")),
            );
        }
    }

    fn construct(&mut self, place: &str, construct: &Construct) {
        let Some(base) = self.composition.interface(&construct.of) else { return };
        let place = format!("{place}/{}", construct.how.name());
        let of = &construct.of;
        let mut inputs: Vec<&PortId> = Vec::new();
        match &construct.how {
            How::Map { over } => {
                inputs.extend(over);
                if base.inputs.is_empty() {
                    self.flaw(&place, format!("`{of}` has no inputs, so there is nothing to go through"));
                }
            }
            How::Reduce { carry, element } => {
                inputs.extend([carry, element]);
                self.one_output(&place, of, &base, carry);
                if carry == element {
                    self.flaw(&place, "what is carried and the element cannot be the same input");
                }
            }
            How::Tree { left, right } => {
                inputs.extend([left, right]);
                self.one_output(&place, of, &base, left);
                let types = [left, right].map(|p| base.input(p).map(|p| &p.data_type));
                if left == right || types[0] != types[1] {
                    self.flaw(&place, "the two of a pair must be two inputs of the same type");
                }
            }
            How::Conditional { when, otherwise } => {
                self.condition(&place, when, &base);
                if let Some(other) = otherwise {
                    self.same_interface(&place, of, &base, other);
                }
            }
            How::Loop { condition, feedback, max } => {
                self.condition(&place, condition, &base);
                inputs.extend(feedback.values());
                self.feedback(&place, of, &base, feedback);
                if *max == 0 {
                    self.flaw(&place, "a loop needs a limit: `max` of at least 1");
                }
            }
            How::Curry { with } => inputs.extend(with.keys()),
        }
        for port in inputs.into_iter().filter(|p| base.input(p).is_none()) {
            let near = catena_model::nearest(port.as_str(), base.inputs.iter().map(|p| p.id.as_str()));
            let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            self.flaw(&place, format!("`{of}` has no input `{port}`{hint}"));
        }
    }

    /// What comes out can go in again.
    fn one_output(&mut self, place: &str, of: &WorkflowId, base: &Interface, into: &PortId) {
        let [output] = &base.outputs[..] else {
            return self
                .flaw(place, format!("`{of}` must have exactly one output, which goes into `{into}` again"));
        };
        if let Some(input) = base.input(into).filter(|i| !output.data_type.fits(&i.data_type)) {
            let (a, b) = (&output.data_type, &input.data_type);
            self.flaw(place, format!("`{of}` gives `{a}`, which cannot go into `{into}` (`{b}`) again"));
        }
    }

    fn feedback(&mut self, place: &str, of: &WorkflowId, base: &Interface, map: &BTreeMap<PortId, PortId>) {
        for output in base.outputs.iter().filter(|o| !map.contains_key(&o.id)) {
            let message =
                format!("`feedback` must say which input the output `{}` of `{of}` becomes", output.id);
            self.flaw(place, message);
        }
        let mut seen = BTreeSet::new();
        for (output, input) in map {
            let (from, to) = (base.output(output), base.input(input));
            if from.is_none() {
                self.flaw(place, format!("`{of}` has no output `{output}`"));
            }
            if let (Some(from), Some(to)) = (from, to)
                && !from.data_type.fits(&to.data_type)
            {
                let message =
                    format!("`{output}` is `{}`, but `{input}` is `{}`", from.data_type, to.data_type);
                self.flaw(place, message);
            }
            if !seen.insert(input) {
                self.flaw(place, format!("two outputs become the input `{input}`"));
            }
        }
    }

    fn same_interface(&mut self, place: &str, of: &WorkflowId, base: &Interface, other: &WorkflowId) {
        let Some(found) = self.composition.interface(other) else { return };
        let types = |i: &Interface| {
            let ports = |list: &[super::composition::Port]| -> BTreeMap<PortId, super::types::Type> {
                list.iter().map(|p| (p.id.clone(), p.data_type.clone())).collect()
            };
            (ports(&i.inputs), ports(&i.outputs))
        };
        if types(base) != types(&found) {
            self.flaw(place, format!("`{of}` and `{other}` must have the same inputs and outputs"));
        }
    }

    fn condition(&mut self, place: &str, text: &str, base: &Interface) {
        match Condition::parse(text) {
            Err(message) => self.flaw(place, message),
            Ok(condition) => {
                for name in condition.names() {
                    if base.input(&PortId(name.clone())).is_none() {
                        self.flaw(place, format!("the condition mentions `{name}`, which is no input"));
                    }
                }
            }
        }
    }

    fn values(&mut self) {
        let Some(interface) = self.composition.interface(&self.composition.root) else { return };
        for id in self.composition.values.keys().filter(|id| interface.input(id).is_none()) {
            self.flaw(format!("values/{id}"), format!("the root has no input `{id}`"));
        }
    }
}

/// Nodes that wait for each other.
fn node_circle(graph: &Graph) -> Option<Vec<&str>> {
    let mut waits: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (id, node) in &graph.nodes {
        let known = node.after.iter().filter(|a| graph.nodes.contains_key(a));
        waits.insert(id.as_str(), known.map(super::composition::NodeId::as_str).collect());
    }
    for link in graph.links.values() {
        if let (Some(from), Some(to)) = (&link.from.node, &link.to.node)
            && graph.nodes.contains_key(from)
            && let Some(waits) = waits.get_mut(to.as_str())
        {
            waits.insert(from.as_str());
        }
    }
    loop {
        let free: Vec<&str> = waits.iter().filter(|(_, w)| w.is_empty()).map(|(n, _)| *n).collect();
        if free.is_empty() {
            return (!waits.is_empty()).then(|| waits.into_keys().collect());
        }
        for node in free {
            waits.remove(node);
            for others in waits.values_mut() {
                others.remove(node);
            }
        }
    }
}
