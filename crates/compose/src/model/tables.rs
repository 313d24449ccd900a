//! Compositions as rows: the relational schema of Fei, Lu and Zhang (Figure 2), one table per part of a definition.
//!
//! A table of a store has the composition as its first column and these columns after it. A link from an input of a
//! workflow to a node is a row of `graph_input_map`, one from a node to an output a row of `graph_output_map`, and every
//! other a row of `data_link`. Where nodes are drawn is kept with them, not in a file of its own.

use super::composition::{
    Body, Composition, Construct, End, Graph, How, Interface, Link, LinkId, Node, NodeId, Port, PortId, Task,
    TaskOutput, Workflow, WorkflowId,
};
use catena_model::{Name, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text; JSON where the name of the column says so.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Real,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct TableDefinition {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [(&'static str, Kind)],
    /// So many columns at the beginning identify a row, together with the composition.
    pub key: usize,
}

use Kind::{Integer, Real, Text};

macro_rules! tables {
    ($($name:ident / $key:literal: $($column:ident $kind:ident),+;)+) => {
        /// All tables.
        pub const TABLES: &[TableDefinition] = &[$(TableDefinition {
            name: stringify!($name),
            columns: &[$((stringify!($column), $kind)),+],
            key: $key,
        }),+];
    };
}

tables! {
    workflow / 1: id Text, name Text, description Text, body_kind Text;
    input_port / 2: workflow_id Text, id Text, pos Integer, name Text, type Text;
    output_port / 2: workflow_id Text, id Text, pos Integer, name Text, type Text;
    task_body / 1: workflow_id Text, task_json Text;
    task_input_map / 2: workflow_id Text, port_id Text, task_input Text;
    task_output_map / 2: workflow_id Text, port_id Text, output_json Text;
    uconstruct_body / 1: workflow_id Text, kind Text, base_workflow_id Text;
    map / 2: workflow_id Text, port_id Text, pos Integer;
    reduce / 1: workflow_id Text, acc_port Text, elem_port Text;
    tree / 1: workflow_id Text, left_port Text, right_port Text;
    conditional / 1: workflow_id Text, predicate Text, else_workflow_id Text;
    loop / 1: workflow_id Text, predicate Text, max_iter Integer;
    loop_feedback / 2: workflow_id Text, out_port Text, in_port Text;
    curry / 2: workflow_id Text, port_id Text, value_json Text;
    node_workflow / 2: graph_id Text, id Text, workflow_id Text, label Text, after_json Text, x Real, y Real;
    data_link / 2: graph_id Text, id Text, from_node Text, from_port Text, to_node Text, to_port Text;
    graph_input_map / 2: graph_id Text, id Text, port_id Text, node_id Text, node_port Text;
    graph_output_map / 2: graph_id Text, id Text, node_id Text, node_port Text, port_id Text;
    root_value / 1: port_id Text, value_json Text;
    composition_setting / 1: name Text, value_json Text;
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
}

impl Eq for Cell {}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Real(a), Self::Real(b)) => a.total_cmp(b),
            (Self::Text(_), _) | (Self::Integer(_), Self::Real(_)) => Ordering::Less,
            _ => Ordering::Greater,
        }
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The table, by its place in [`TABLES`].
    pub table: usize,
    /// The values.
    pub cells: Vec<Cell>,
}

impl Row {
    /// The values that identify it.
    pub fn key(&self) -> &[Cell] {
        &self.cells[..TABLES[self.table].key]
    }

    fn text(&self, column: usize) -> &str {
        if let Some(Cell::Text(text)) = self.cells.get(column) { text } else { "" }
    }

    fn integer(&self, column: usize) -> i64 {
        if let Some(Cell::Integer(n)) = self.cells.get(column) { *n } else { 0 }
    }

    fn real(&self, column: usize) -> f64 {
        if let Some(Cell::Real(n)) = self.cells.get(column) { *n } else { 0.0 }
    }

    fn json<T: serde::de::DeserializeOwned + Default>(&self, column: usize) -> T {
        serde_json::from_str(self.text(column)).unwrap_or_default()
    }
}

/// A change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// It is there, in place of any with the same key.
    Put(Row),
    /// It is not there any more. Only the key counts.
    Remove(Row),
}

struct Writer(BTreeSet<Row>);

impl Writer {
    fn add(&mut self, table: &str, cells: Vec<Cell>) {
        if let Some(table) = TABLES.iter().position(|t| t.name == table) {
            debug_assert_eq!(cells.len(), TABLES[table].columns.len(), "{}", TABLES[table].name);
            self.0.insert(Row { table, cells });
        }
    }
}

fn text(value: impl ToString) -> Cell {
    Cell::Text(value.to_string())
}

fn json(value: &impl serde::Serialize) -> Cell {
    Cell::Text(serde_json::to_string(value).unwrap_or_default())
}

/// The rows of what belongs to no workflow.
fn settings_rows(composition: &Composition) -> BTreeSet<Row> {
    let mut rows = Writer(BTreeSet::new());
    for (port, value) in &composition.values {
        rows.add("root_value", vec![text(port), json(value)]);
    }
    let mut setting = |name: &str, value: Cell| rows.add("composition_setting", vec![text(name), value]);
    setting("name", json(&composition.name));
    setting("root", json(&composition.root));
    setting("services", json(&composition.services));
    setting("settings", json(&composition.settings));
    rows.0
}

/// The rows of a workflow.
fn workflow_rows(id: &WorkflowId, workflow: &Workflow) -> BTreeSet<Row> {
    let mut rows = Writer(BTreeSet::new());
    let kind = match &workflow.body {
        Body::Task(_) => "task",
        Body::Graph(_) => "graph",
        Body::Construct(_) => "construct",
    };
    rows.add("workflow", vec![text(id), text(&workflow.name), text(&workflow.description), text(kind)]);
    for (table, ports) in
        [("input_port", &workflow.interface.inputs), ("output_port", &workflow.interface.outputs)]
    {
        for (pos, port) in (0..).zip(ports) {
            let cells =
                vec![text(id), text(&port.id), Cell::Integer(pos), text(&port.name), text(&port.data_type)];
            rows.add(table, cells);
        }
    }
    match &workflow.body {
        Body::Task(task) => {
            rows.add("task_body", vec![text(id), json(&task.action)]);
            for (port, input) in &task.inputs {
                rows.add("task_input_map", vec![text(id), text(port), text(input)]);
            }
            for (port, output) in &task.outputs {
                rows.add("task_output_map", vec![text(id), text(port), json(output)]);
            }
        }
        Body::Graph(graph) => graph_rows(id, graph, &mut rows),
        Body::Construct(construct) => construct_rows(id, construct, &mut rows),
    }
    rows.0
}

fn graph_rows(id: &WorkflowId, graph: &Graph, rows: &mut Writer) {
    for (node_id, node) in &graph.nodes {
        let mut cells =
            vec![text(id), text(node_id), text(&node.workflow), text(&node.label), json(&node.after)];
        cells.extend([Cell::Real(node.x), Cell::Real(node.y)]);
        rows.add("node_workflow", cells);
    }
    for (link_id, Link { from, to }) in &graph.links {
        let (table, ends) = match (&from.node, &to.node) {
            (None, Some(node)) => ("graph_input_map", vec![text(&from.port), text(node), text(&to.port)]),
            (Some(node), None) => ("graph_output_map", vec![text(node), text(&from.port), text(&to.port)]),
            (from_node, to_node) => {
                let name = |n: &Option<NodeId>| text(n.as_ref().map(NodeId::as_str).unwrap_or_default());
                ("data_link", vec![name(from_node), text(&from.port), name(to_node), text(&to.port)])
            }
        };
        rows.add(table, [vec![text(id), text(link_id)], ends].concat());
    }
}

fn construct_rows(id: &WorkflowId, construct: &Construct, rows: &mut Writer) {
    rows.add("uconstruct_body", vec![text(id), text(construct.how.name()), text(&construct.of)]);
    match &construct.how {
        How::Map { over } => {
            for (pos, port) in (0..).zip(over) {
                rows.add("map", vec![text(id), text(port), Cell::Integer(pos)]);
            }
        }
        How::Reduce { carry, element } => rows.add("reduce", vec![text(id), text(carry), text(element)]),
        How::Tree { left, right } => rows.add("tree", vec![text(id), text(left), text(right)]),
        How::Conditional { when, otherwise } => {
            let otherwise = otherwise.as_ref().map(WorkflowId::as_str).unwrap_or_default();
            rows.add("conditional", vec![text(id), text(when), text(otherwise)]);
        }
        How::Loop { condition, feedback, max } => {
            rows.add("loop", vec![text(id), text(condition), Cell::Integer(i64::from(*max))]);
            for (output, input) in feedback {
                rows.add("loop_feedback", vec![text(id), text(output), text(input)]);
            }
        }
        How::Curry { with } => {
            for (port, value) in with {
                rows.add("curry", vec![text(id), text(port), json(value)]);
            }
        }
    }
}

/// All rows of a composition.
pub fn rows(composition: &Composition) -> BTreeSet<Row> {
    let workflows = composition.workflows.iter().flat_map(|(id, w)| workflow_rows(id, w));
    workflows.chain(settings_rows(composition)).collect()
}

/// What has to be changed in the tables of one composition so that they are those of another.
pub fn row_changes(before: &Composition, after: &Composition) -> Vec<RowChange> {
    let ids: BTreeSet<&WorkflowId> = before.workflows.keys().chain(after.workflows.keys()).collect();
    let of = |id: &WorkflowId| workflow_changes(id, before.workflows.get(id), after.workflows.get(id));
    let mut changes: Vec<RowChange> = ids.into_iter().flat_map(of).collect();
    changes.extend(difference(&settings_rows(before), &settings_rows(after)));
    changes
}

/// What has to be changed in the tables if only one workflow has changed.
pub fn workflow_changes(
    id: &WorkflowId,
    before: Option<&Workflow>,
    after: Option<&Workflow>,
) -> Vec<RowChange> {
    if before == after {
        return Vec::new();
    }
    let rows = |w: Option<&Workflow>| w.map(|w| workflow_rows(id, w)).unwrap_or_default();
    difference(&rows(before), &rows(after))
}

fn difference(old: &BTreeSet<Row>, new: &BTreeSet<Row>) -> Vec<RowChange> {
    let keys: BTreeSet<(usize, &[Cell])> = new.iter().map(|r| (r.table, r.key())).collect();
    let gone = old.iter().filter(|r| !keys.contains(&(r.table, r.key()))).cloned().map(RowChange::Remove);
    let fresh = new.difference(old).cloned().map(RowChange::Put);
    gone.chain(fresh).collect()
}

/// The composition that rows make.
pub fn from_rows(rows: impl IntoIterator<Item = Row>) -> Composition {
    let mut tables: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows {
        tables.entry(TABLES[row.table].name).or_default().push(row);
    }
    let table = |name: &str| tables.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut composition = Composition::default();
    for row in table("composition_setting") {
        match row.text(0) {
            "name" => composition.name = row.json(1),
            "root" => composition.root = row.json(1),
            "services" => composition.services = row.json(1),
            "settings" => composition.settings = row.json(1),
            _ => {}
        }
    }
    composition.values =
        table("root_value").iter().map(|r| (PortId::new(r.text(0)), r.json::<Value>(1))).collect();
    for row in table("workflow") {
        let id = row.text(0);
        let of = |name: &str| table(name).iter().filter(|r| r.text(0) == id).collect::<Vec<_>>();
        let ports = |name: &str| {
            let mut rows = of(name);
            rows.sort_by_key(|r| r.integer(2));
            let data_type = |r: &Row| r.text(4).parse().unwrap_or_else(|_| super::types::Type::any());
            let port = |r: &&Row| Port {
                id: PortId::new(r.text(1)),
                name: r.text(3).to_owned(),
                data_type: data_type(r),
            };
            rows.iter().map(port).collect::<Vec<_>>()
        };
        let body = match row.text(3) {
            "task" => Body::Task(Task {
                action: of("task_body").first().map(|r| r.json(1)).unwrap_or_default(),
                inputs: of("task_input_map")
                    .iter()
                    .map(|r| (PortId::new(r.text(1)), Name::new(r.text(2))))
                    .collect(),
                outputs: of("task_output_map")
                    .iter()
                    .map(|r| (PortId::new(r.text(1)), r.json::<TaskOutput>(2)))
                    .collect(),
            }),
            "graph" => Body::Graph(read_graph(&of)),
            _ => match read_construct(&of) {
                Some(construct) => Body::Construct(construct),
                None => continue,
            },
        };
        let interface = Interface { inputs: ports("input_port"), outputs: ports("output_port") };
        let (name, description) = (row.text(1).to_owned(), row.text(2).to_owned());
        composition.workflows.insert(WorkflowId::new(id), Workflow { name, description, interface, body });
    }
    composition
}

fn read_graph<'r>(of: &dyn Fn(&str) -> Vec<&'r Row>) -> Graph {
    let node = |r: &&Row| {
        let node = Node {
            workflow: WorkflowId::new(r.text(2)),
            label: r.text(3).to_owned(),
            after: r.json(4),
            x: r.real(5),
            y: r.real(6),
        };
        (NodeId::new(r.text(1)), node)
    };
    let end = |node: &str, port: &str| if node.is_empty() { End::this(port) } else { End::of(node, port) };
    let mut links = BTreeMap::new();
    let mut add = |r: &Row, from: End, to: End| links.insert(LinkId::new(r.text(1)), Link { from, to });
    for r in of("data_link") {
        add(r, end(r.text(2), r.text(3)), end(r.text(4), r.text(5)));
    }
    for r in of("graph_input_map") {
        add(r, End::this(r.text(2)), End::of(r.text(3), r.text(4)));
    }
    for r in of("graph_output_map") {
        add(r, End::of(r.text(2), r.text(3)), End::this(r.text(4)));
    }
    Graph { nodes: of("node_workflow").iter().map(node).collect(), links }
}

fn read_construct<'r>(of: &dyn Fn(&str) -> Vec<&'r Row>) -> Option<Construct> {
    let body = *of("uconstruct_body").first()?;
    let port = |r: &Row, column| PortId::new(r.text(column));
    let how = match body.text(1) {
        "map" => {
            let mut rows = of("map");
            rows.sort_by_key(|r| r.integer(2));
            How::Map { over: rows.into_iter().map(|r| port(r, 1)).collect() }
        }
        "reduce" => of("reduce").first().map(|r| How::Reduce { carry: port(r, 1), element: port(r, 2) })?,
        "tree" => of("tree").first().map(|r| How::Tree { left: port(r, 1), right: port(r, 2) })?,
        "conditional" => of("conditional").first().map(|r| {
            let otherwise = Some(r.text(2)).filter(|t| !t.is_empty()).map(WorkflowId::new);
            How::Conditional { when: r.text(1).to_owned(), otherwise }
        })?,
        "loop" => of("loop").first().map(|r| How::Loop {
            condition: r.text(1).to_owned(),
            feedback: of("loop_feedback").iter().map(|r| (port(r, 1), port(r, 2))).collect(),
            max: u32::try_from(r.integer(2)).unwrap_or(1),
        })?,
        "curry" => How::Curry { with: of("curry").iter().map(|r| (port(r, 1), r.json(2))).collect() },
        _ => return None,
    };
    Some(Construct { of: WorkflowId::new(body.text(2)), how })
}
