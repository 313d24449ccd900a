//! Turns a workflow into process chains, iteration by iteration, as results arrive.
//!
//! The rule is the one of Krämer's paper on Steep (section 3) and of its public implementation: a chain
//! starts at an action whose inputs are all known and goes on as long as exactly one action comes next.
//! We deviate where the original is wrong: an empty list completes its loop, `dependsOn` waits for whole
//! loops including recursive ones, directories mean the same inside and between chains, and chains are
//! cut where required capabilities differ.
//!
//! The work of a step is proportional to what changed. An action counts what it still waits for; a value
//! that arrives counts down those who wait for it; whoever reaches zero is ready.
//!
//! So is the memory proportional to what is going on. A loop starts iterations only while few actions are
//! ready, and the place of an iteration that is over is taken by a later one. Both depend on nothing but
//! the chains made and the results used, so a planner that replays them comes to the same state.

mod chains;
mod course;
mod foresight;
mod loops;
#[cfg(test)]
mod properties;
mod scopes;
mod values;

use crate::lifetimes::Lifetimes;
use crate::paths::Paths;
use crate::program::{ForTemplate, Program};
use crate::value::Slot;
use catena_model::chain::ProcessChain;
use catena_model::{Name, Value};
use course::Course;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use thiserror::Error;

/// How chains are cut besides where the workflow forks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChainPolicy {
    /// Where required capabilities or resources differ.
    #[default]
    Split,
    /// Nowhere: a chain requires everything its tasks require, as in Steep.
    Union,
    /// Everywhere: each task is a chain of its own.
    Single,
}

/// Where generated files go, and how chains are cut.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// For intermediate files.
    pub tmp: String,
    /// For outputs with `store: true`.
    pub out: String,
    /// How chains are cut.
    pub policy: ChainPolicy,
    /// Which chains come first.
    pub order: Order,
}

/// Which of the chains of a workflow come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Those that can run first.
    #[default]
    Fifo,
    /// Those after which many others can run, see [`prio_order`](crate::prio_order).
    Prio,
    /// The better of both.
    Auto,
}

/// A chain cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message} (action `{action}`)")]
pub struct PlanError {
    /// The action that cannot be planned.
    pub action: Name,
    /// Why not.
    pub message: String,
}

/// A look at how far the planning is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCounts {
    /// Tasks that are in chains.
    pub planned: u64,
    /// Tasks known to exist that wait for something.
    pub waiting: u64,
    /// Tasks that were skipped because of a condition.
    pub skipped: u64,
    /// Loops that may still produce tasks.
    pub open_loops: u64,
}

const NONE: u32 = u32::MAX;
/// Beyond this many actions the search for a common root gives up and cuts the chain, which is always
/// correct and keeps the cost of a step bounded.
const ROOT_SEARCH_LIMIT: usize = 100_000;
/// Loops start iterations while fewer actions than this are ready. Few in tests, whose loops are short.
const READY_AHEAD: usize = if cfg!(test) { 2 } else { 1024 };
/// So many iterations a loop starts before others have their turn.
const TURN: u32 = if cfg!(test) { 2 } else { 1024 };

/// The state of a workflow's planning.
#[derive(Debug)]
pub struct Planner {
    program: Arc<Program>,
    options: PlanOptions,
    scopes: Vec<Scope>,
    enumerator_values: Vec<Value>,
    vars: Vec<Var>,
    instances: Vec<Instance>,
    loops: Vec<Loop>,
    edges: Vec<Edge>,
    /// Scopes whose iterations are over, by body: a later iteration takes such a place.
    free_scopes: Vec<Vec<u32>>,
    free_edges: u32,
    /// Scopes in which everything has been executed, until the values they yield are taken.
    finished_scopes: Vec<u32>,
    /// How many instances there have been.
    created: u32,
    /// Actions that wait for nothing any more and may still turn out to be skipped.
    unblocked: Vec<u32>,
    /// The places of the workflow's actions in the order they should be executed in, if there is one.
    places: Vec<u32>,
    /// Actions that can be executed: their place, when they were created, and which they are.
    ready: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// The place of the chain that was made last, and the body and action it begins with.
    last_place: u32,
    last_action: (u32, u32),
    dirty_loops: BinaryHeap<Reverse<u32>>,
    /// Loops with elements that no iteration was started for: turns they had, age, index.
    deferred_loops: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// Directories that were promised as outputs, by variable.
    directories: HashMap<u32, Name>,
    next_id: u64,
    chain_count: u64,
    /// The tasks of chains that have not succeeded yet.
    chains: HashMap<u64, Box<[u32]>>,
    /// Until when files are needed, if somebody wants to know.
    lifetimes: Option<Lifetimes>,
    /// How often variables will still be read, once they have been read.
    unread: HashMap<u32, u32>,
    /// Files that nobody will read any more.
    released: Vec<String>,
    /// Who waits for whom, if somebody wants to know.
    origins: Option<foresight::Origins>,
    counts: PlanCounts,
    failure: Option<PlanError>,
}

#[derive(Debug)]
struct Scope {
    parent: u32,
    body: u32,
    /// The loop this scope is an iteration of.
    in_loop: u32,
    iteration: u32,
    first_var: u32,
    first_instance: u32,
    first_value: u32,
    first_loop: u32,
    /// How many instances there were before those of this scope.
    order: u32,
    /// How many of its instances have not been executed.
    open: u32,
}

#[derive(Debug)]
struct Var {
    slot: Slot,
    /// The first of the edges to whoever waits for the value.
    waiters: u32,
}

impl Var {
    fn new() -> Self {
        Self { slot: Slot::Unset, waiters: NONE }
    }
}

#[derive(Debug)]
struct Instance {
    scope: u32,
    action: u32,
    unmet: u32,
    /// The first of the edges to actions that depend on this one.
    dependents: u32,
    /// Index in `loops` for for-each actions.
    loop_index: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Planned,
    /// What comes of it is known before it is executed.
    Foreseen,
    Done,
}

impl State {
    /// Whether those who depend on it can be planned.
    fn is_past(self) -> bool {
        matches!(self, Self::Foreseen | Self::Done)
    }
}

#[derive(Debug)]
struct Loop {
    instance: u32,
    body: u32,
    outputs: Vec<Collected>,
    /// How many elements of the input are known, and how many of them were taken.
    known: usize,
    cursor: usize,
    iterations: u32,
    /// Values yielded back to the input that no iteration has taken yet.
    recursive: VecDeque<Value>,
    /// Iterations whose yield to the input is outstanding.
    recursive_pending: u32,
    /// Yields that arrived since the loop was last looked at: output, iteration, variable.
    arrived: Vec<(u32, u32, u32)>,
    arrived_recursive: Vec<(u32, u32)>,
    open_children: u32,
    /// Reads a list that is still growing, in the order of arrival.
    growing_input: Option<(u32, u32)>,
    /// No more elements can become known.
    closed: bool,
    /// Is among the deferred loops.
    deferred: bool,
    /// How its iterations hang together.
    course: Course,
}

impl Loop {
    fn new(instance: u32, template: &ForTemplate, first_var: u32) -> Self {
        let outputs = template.outputs.iter();
        let outputs = outputs.map(|slot| Collected { var: first_var + slot, ..Collected::default() });
        Self {
            instance,
            body: template.body as u32,
            outputs: outputs.collect(),
            known: 0,
            cursor: 0,
            iterations: 0,
            recursive: VecDeque::new(),
            recursive_pending: 0,
            arrived: Vec::new(),
            arrived_recursive: Vec::new(),
            open_children: 0,
            growing_input: None,
            closed: false,
            deferred: false,
            course: Course::new(template),
        }
    }

    /// Whether every known element has its iteration.
    fn is_unrolled(&self) -> bool {
        self.course.is_over().unwrap_or(self.cursor == self.known && self.recursive.is_empty())
    }

    /// Whether an iteration can be started now.
    fn can_iterate(&self) -> bool {
        !self.is_unrolled() && self.course.is_open(self.cursor < self.known)
    }
}

/// An output of a loop while it is being collected.
#[derive(Debug, Default)]
struct Collected {
    var: u32,
    /// Values in the order of arrival, each with its iteration.
    items: Vec<(u32, Value)>,
    pending: u32,
    /// Final position of each arrived item, once complete.
    ranks: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
enum Waiter {
    Task(u32),
    LoopInput(u32),
    Yield { in_loop: u32, output: u32, iteration: u32 },
    YieldToInput { in_loop: u32, iteration: u32 },
}

#[derive(Debug)]
struct Edge {
    to: Waiter,
    next: u32,
}

impl Planner {
    /// Starts planning a workflow.
    pub fn new(program: Arc<Program>, options: PlanOptions) -> Self {
        let free_scopes = vec![Vec::new(); program.bodies.len()];
        let places = program.places(options.order);
        let mut planner = Self {
            program,
            options,
            scopes: Vec::new(),
            enumerator_values: Vec::new(),
            vars: Vec::new(),
            instances: Vec::new(),
            loops: Vec::new(),
            edges: Vec::new(),
            free_scopes,
            free_edges: NONE,
            finished_scopes: Vec::new(),
            created: 0,
            unblocked: Vec::new(),
            places,
            ready: BinaryHeap::new(),
            last_place: 0,
            last_action: (0, 0),
            dirty_loops: BinaryHeap::new(),
            deferred_loops: BinaryHeap::new(),
            directories: HashMap::new(),
            next_id: 0,
            chain_count: 0,
            chains: HashMap::new(),
            lifetimes: None,
            unread: HashMap::new(),
            released: Vec::new(),
            origins: None,
            counts: PlanCounts::default(),
            failure: None,
        };
        planner.expect(0, 1);
        planner.enter_scope(NONE, 0, NONE, 0, Vec::new());
        planner.settle();
        planner
    }

    /// Whether every action is in a chain or skipped, and no loop can produce more.
    pub fn is_finished(&self) -> bool {
        self.counts.waiting == 0 && self.counts.open_loops == 0 && self.failure.is_none()
    }

    /// How far the planning is.
    pub fn counts(&self) -> PlanCounts {
        self.counts
    }

    /// How many chains were made so far; the next one gets this number.
    pub fn chain_count(&self) -> u64 {
        self.chain_count
    }

    /// Where the chain that was made last stands in the order of the workflow, between 0 and 1. `None` if chains
    /// come in the order in which they are made.
    pub fn place(&self) -> Option<f64> {
        let last = self.places.len().checked_sub(1)?;
        Some(f64::from(self.last_place) / last.max(1) as f64)
    }

    /// How long it is from the beginning of the chain that was made last to the end of the workflow.
    pub fn ahead(&self, paths: &Paths) -> f64 {
        paths.from(self.last_action.0, self.last_action.1).unwrap_or(0.0)
    }

    /// All ways to the end of the workflow, see [`Program::paths`].
    pub fn paths(&self, time: &dyn Fn(&Name) -> f64) -> Paths {
        self.program.paths(time)
    }

    /// From now on it is noted which files nobody will read any more.
    pub fn track_files(&mut self) {
        self.lifetimes = Some(self.program.lifetimes());
    }

    /// Files that nobody will read any more, since the last call.
    pub fn take_released(&mut self) -> Vec<String> {
        std::mem::take(&mut self.released)
    }

    /// The services of the tasks of a chain that has not succeeded yet.
    pub fn services(&self, chain: u64) -> Vec<Name> {
        let tasks = self.chains.get(&chain).map(|t| &t[..]).unwrap_or_default();
        let template = |t: &u32| {
            let template = Self::task_template(&self.program, &self.scopes, &self.instances[*t as usize])?;
            Some(self.program.services[template.service].service.id.clone())
        };
        tasks.iter().filter_map(template).collect()
    }

    /// The next chain that can be executed with what is known now.
    pub fn next_chain(&mut self) -> Result<Option<ProcessChain>, PlanError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(Reverse((place, _, instance))) = self.ready.pop() else { return Ok(None) };
        self.last_place = place;
        let Instance { scope, action, .. } = self.instances[instance as usize];
        self.last_action = (self.scopes[scope as usize].body, action);
        match self.build_chain(instance) {
            Ok(chain) => {
                self.settle();
                Ok(Some(chain))
            }
            Err(e) => {
                self.failure = Some(e.clone());
                Err(e)
            }
        }
    }

    /// A chain has succeeded. `results` has, for each task, the values of each of its outputs.
    pub fn chain_succeeded(&mut self, chain: u64, results: Vec<Vec<Vec<String>>>) {
        let Some(tasks) = self.chains.remove(&chain) else { return };
        self.note_ended(chain);
        for (task, outputs) in tasks.iter().zip(results) {
            let vars = self.output_vars(*task);
            for (var, values) in vars.into_iter().zip(outputs) {
                let values = values.into_iter().map(Value::String).collect();
                self.set_result(var, values);
            }
        }
        for task in tasks {
            self.executed(task);
        }
        self.settle();
    }

    /// Results by the names of variables and actions, as a person or a test gives them.
    pub fn feed<'r>(
        &mut self,
        results: impl IntoIterator<Item = (&'r str, Vec<Value>)>,
        executed: impl IntoIterator<Item = &'r str>,
    ) {
        // Names are only made when somebody asks for them, so look for what they stand for.
        let results: Vec<(&str, Vec<Value>)> = results.into_iter().collect();
        let executed: Vec<&str> = executed.into_iter().collect();
        let mut vars = HashMap::new();
        let mut actions = HashMap::new();
        for (s, scope) in self.scopes.iter().enumerate().filter(|(_, scope)| scope.open > 0) {
            let body = &self.program.bodies[scope.body as usize];
            let suffix = self.suffix(s as u32);
            for (i, name) in body.locals.iter().enumerate() {
                vars.insert(format!("{name}{suffix}"), scope.first_var + i as u32);
            }
            for (i, action) in body.actions.iter().enumerate() {
                actions.insert(format!("{}{suffix}", action.id()), scope.first_instance + i as u32);
            }
        }
        for (name, values) in results {
            if let Some(var) = vars.get(name) {
                self.set_result(*var, values);
            }
        }
        for name in executed {
            if let Some(instance) =
                actions.get(name).filter(|i| self.instances[**i as usize].state == State::Planned)
            {
                self.executed(*instance);
            }
        }
        self.settle();
    }

    /// The values of the workflow's named results that are known.
    pub fn results(&self) -> Vec<(Name, Vec<String>)> {
        let program = self.program.clone();
        let known = program.results().iter().filter_map(|(name, source)| {
            let values = self.texts(source, 0)?;
            Some((name.clone(), values))
        });
        known.collect()
    }

    /// Names of actions that wait for something, at most `limit` of them.
    pub fn waiting_actions(&self, limit: usize) -> Vec<Name> {
        let exists = |i: &Instance| self.scopes[i.scope as usize].open > 0;
        let waits = |i: &Instance| match i.loop_index {
            NONE => i.state == State::Waiting,
            l => !self.loops[l as usize].closed,
        };
        let waiting = self.instances.iter().enumerate().filter(|(_, i)| exists(i) && waits(i));
        waiting.take(limit).map(|(i, _)| self.instance_name(i as u32)).collect()
    }
}
