//! The steps of a workflow: one node per action, whatever it loops over; edges along data and `dependsOn`.

use catena_model::dagman::{DagArc, DagFile, DagNode, NodeKind, Submit};
use catena_model::{Action, Condition, InputSource, Library, Name, Workflow};
use std::collections::HashMap;

/// A workflow as nodes and edges.
#[derive(Clone, Debug, Default)]
pub struct StepGraph {
    /// Its steps.
    pub nodes: Vec<Step>,
    /// Who gets something from whom.
    pub edges: Vec<Edge>,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called.
    pub name: Name,
    /// The program or service.
    pub service: String,
    /// How many loops are around it.
    pub loops: usize,
    /// What the innermost loop walks through.
    pub over: Option<String>,
    /// Whether it may be skipped.
    pub conditional: bool,
}

/// From one action to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// This one first.
    pub from: usize,
    /// Then that one.
    pub to: usize,
    /// Whether it is an order without data.
    pub order_only: bool,
}

/// What a variable stands for.
enum Origin<'w> {
    Node(usize),
    Var(&'w Name),
}

struct Builder<'w> {
    library: &'w Library,
    graph: StepGraph,
    origins: HashMap<&'w str, Origin<'w>>,
    /// Nodes inside an action: itself, or all inside a loop.
    inside: HashMap<&'w str, Vec<usize>>,
}

impl StepGraph {
    /// The graph of a workflow without include actions.
    pub fn new(workflow: &Workflow, library: &Library) -> Self {
        let mut b =
            Builder { library, graph: StepGraph::default(), origins: HashMap::new(), inside: HashMap::new() };
        b.declare(&workflow.actions, 0, None);
        let mut next = 0;
        b.connect(&workflow.actions, &mut next, &[]);
        b.graph.edges.sort_by_key(|e| (e.from, e.to, e.order_only));
        b.graph.edges.dedup_by_key(|e| (e.from, e.to));
        b.graph
    }

    /// The graph of a DAG file.
    pub fn of_dag(dag: &DagFile) -> Self {
        let node = |n: &DagNode| Step {
            name: n.name.clone(),
            service: match (&n.submit, n.kind) {
                (_, NodeKind::Final) => "FINAL".to_owned(),
                (Submit::Named(name), _) => name.to_string(),
                (Submit::Inline { .. }, _) => String::new(),
            },
            loops: 0,
            over: None,
            conditional: false,
        };
        let edge = |a: &DagArc| Edge { from: a.parent as usize, to: a.child as usize, order_only: a.weak };
        Self { nodes: dag.nodes.iter().map(node).collect(), edges: dag.arcs.iter().map(edge).collect() }
    }
}

impl<'w> Builder<'w> {
    fn declare(&mut self, actions: &'w [Action], loops: usize, over: Option<&str>) -> Vec<usize> {
        let mut all = Vec::new();
        for action in actions {
            let mut own = Vec::new();
            match action {
                Action::Execute(a) => {
                    let node = self.graph.nodes.len();
                    let service = self.library.service(&a.service);
                    let service = match service.and_then(|s| s.script.as_ref()) {
                        Some(script) => program(&script.to_string()),
                        None => a.service.to_string(),
                    };
                    self.graph.nodes.push(Step {
                        name: a.id.clone(),
                        service,
                        loops,
                        over: over.map(str::to_owned),
                        conditional: a.options().when.is_some(),
                    });
                    for output in &a.outputs {
                        self.origins.insert(&output.var, Origin::Node(node));
                    }
                    own.push(node);
                }
                Action::For(a) => {
                    for (list, enumerator) in a.lists() {
                        self.origins.insert(&enumerator.id, Origin::Var(&list.id));
                    }
                    for (output, from) in a.output.iter().zip(&a.yield_to_output) {
                        self.origins.insert(&output.id, Origin::Var(&from.id));
                    }
                    for c in a.carried() {
                        self.origins.insert(&c.enumerator.id, Origin::Var(&c.init.id));
                    }
                    own = self.declare(&a.actions, loops + 1, Some(&a.input.id));
                }
                Action::First(a) => {
                    if let Some(input) = a.inputs.first() {
                        self.origins.insert(&a.output.id, Origin::Var(&input.id));
                    }
                }
                Action::Include(_) => {}
            }
            all.extend(&own);
            self.inside.insert(action.id(), own);
        }
        all
    }

    /// The action that produces a variable, if one does.
    fn origin(&self, var: &str) -> Option<usize> {
        let mut var = var;
        for _ in 0..1000 {
            match self.origins.get(var)? {
                Origin::Node(node) => return Some(*node),
                Origin::Var(next) => var = next,
            }
        }
        None
    }

    fn connect(&mut self, actions: &'w [Action], next: &mut usize, outer: &[usize]) {
        for action in actions {
            let waits = action.depends_on().iter().filter_map(|d| self.inside.get(d.id.as_str()));
            let mut order: Vec<usize> = waits.flatten().copied().collect();
            order.extend(outer);
            match action {
                Action::Execute(a) => {
                    let to = *next;
                    *next += 1;
                    let names = a.options().when.as_ref().map(Condition::names).unwrap_or_default();
                    let inputs = a.inputs.iter().filter_map(|i| match &i.source {
                        InputSource::Var(var) => self.origin(var),
                        InputSource::Value(_) => None,
                    });
                    let data: Vec<usize> =
                        inputs.chain(names.iter().filter_map(|n| self.origin(n))).collect();
                    self.graph.edges.extend(data.into_iter().map(|from| Edge {
                        from,
                        to,
                        order_only: false,
                    }));
                    self.graph.edges.extend(order.into_iter().map(|from| Edge {
                        from,
                        to,
                        order_only: true,
                    }));
                }
                Action::For(a) => self.connect(&a.actions, next, &order),
                Action::Include(_) | Action::First(_) => {}
            }
        }
    }
}

/// The name of a task without its loop numbers: the step it belongs to.
pub fn step_name(task: &str) -> &str {
    // Names that macros have made start with a `$` of their own.
    let end = task.rmatch_indices('$').take_while(|(i, _)| {
        let number = task[i + 1..].split('$').next().unwrap_or("");
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    end.last().map_or(task, |(i, _)| &task[..i])
}

/// The program a script starts with, if it is as simple as that.
fn program(script: &str) -> String {
    let first = script.split_whitespace().next().unwrap_or("");
    let plain = !first.is_empty() && first.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    let keyword = matches!(first, "while" | "for" | "if" | "cd" | "set" | "case" | "until" | "mkdir");
    if plain && !keyword { first.to_owned() } else { "shell".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::{LoadOptions, load_text};
    use std::path::Path;

    #[test]
    fn edges_follow_data_through_loops() {
        let text = "
catena: 1
inputs: { xs: [1, 2] }
steps:
  a: { for: x in xs, run: 'echo {x} > {out}', out: x.txt }
  b: { for: y in a.out, run: 'cat {y} > {out}', out: y.txt }
  c: { run: 'cat {b.out} > {out}', out: z.txt, after: [a] }
";
        let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
        assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags);
        let g = StepGraph::new(loaded.expanded.as_ref().unwrap(), &loaded.library);
        let edges: Vec<(usize, usize, bool)> = g.edges.iter().map(|e| (e.from, e.to, e.order_only)).collect();
        assert_eq!(edges, [(0, 1, false), (0, 2, true), (1, 2, false)]);
    }

    #[test]
    fn steps_are_named_without_loop_numbers() {
        assert_eq!(step_name("cp$0$12"), "cp");
        assert_eq!(step_name("cp"), "cp");
        assert_eq!(step_name("$inc1$my_macro$cp2$3"), "$inc1$my_macro$cp2");
    }
}
