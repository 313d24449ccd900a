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
mod loops;
#[cfg(test)]
mod properties;

use crate::program::{
    ActionPlace, ActionTemplate, ConditionTemplate, ExecuteTemplate, ForTemplate, Program, Source,
};
use crate::value::{Slot, list_element, list_length, text_values};
use catena_model::chain::ProcessChain;
use catena_model::{Name, Value};
use smol_str::format_smolstr;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt::Write;
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
    /// The place of the chain that was made last.
    last_place: u32,
    dirty_loops: BinaryHeap<Reverse<u32>>,
    /// Loops with elements that no iteration was started for: turns they had, age, index.
    deferred_loops: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// Directories that were promised as outputs, by variable.
    directories: HashMap<u32, Name>,
    next_id: u64,
    chain_count: u64,
    /// The tasks of chains that have not succeeded yet.
    chains: HashMap<u64, Box<[u32]>>,
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
    Done,
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
        }
    }

    /// Whether every known element has its iteration.
    fn is_unrolled(&self) -> bool {
        self.cursor == self.known && self.recursive.is_empty()
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
            dirty_loops: BinaryHeap::new(),
            deferred_loops: BinaryHeap::new(),
            directories: HashMap::new(),
            next_id: 0,
            chain_count: 0,
            chains: HashMap::new(),
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

    /// The next chain that can be executed with what is known now.
    pub fn next_chain(&mut self) -> Result<Option<ProcessChain>, PlanError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(Reverse((place, _, instance))) = self.ready.pop() else { return Ok(None) };
        self.last_place = place;
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

    // ----- scopes and names ------------------------------------------------------------------

    /// So many more iterations of a body are going to be.
    fn expect(&mut self, body: u32, iterations: usize) {
        let actions = &self.program.bodies[body as usize].actions;
        let loops = actions.iter().filter(|a| matches!(a, ActionTemplate::For(_))).count();
        self.counts.open_loops += (iterations * loops) as u64;
        self.counts.waiting += (iterations * (actions.len() - loops)) as u64;
    }

    fn enter_scope(
        &mut self,
        parent: u32,
        body: u32,
        in_loop: u32,
        iteration: u32,
        values: Vec<Value>,
    ) -> u32 {
        let scope = self.free_scopes[body as usize].pop().unwrap_or_else(|| self.add_scope(body));
        let program = self.program.clone();
        let template = &program.bodies[body as usize];
        let this = &mut self.scopes[scope as usize];
        this.parent = parent;
        this.in_loop = in_loop;
        this.iteration = iteration;
        this.order = self.created;
        this.open = template.actions.len() as u32;
        self.created += this.open;
        let (first_value, first_instance) = (this.first_value as usize, this.first_instance);
        for (place, value) in self.enumerator_values[first_value..].iter_mut().zip(values) {
            *place = value;
        }
        for (instance, action) in (first_instance..).zip(&template.actions) {
            match action {
                ActionTemplate::Execute(t) => self.wait_for_inputs(instance, scope, t),
                ActionTemplate::For(t) => self.wait_for_lists(instance, scope, t),
            }
        }
        scope
    }

    /// Makes place for an iteration of a body.
    fn add_scope(&mut self, body: u32) -> u32 {
        let scope = self.scopes.len() as u32;
        let program = self.program.clone();
        let template = &program.bodies[body as usize];
        self.scopes.push(Scope {
            parent: NONE,
            body,
            in_loop: NONE,
            iteration: 0,
            first_var: self.vars.len() as u32,
            first_instance: self.instances.len() as u32,
            first_value: self.enumerator_values.len() as u32,
            first_loop: self.loops.len() as u32,
            order: 0,
            open: 0,
        });
        self.enumerator_values.extend(template.enumerators.iter().map(|_| Value::Null));
        self.vars.extend(template.locals.iter().map(|_| Var::new()));
        let first_var = self.scopes[scope as usize].first_var;
        for (i, action) in template.actions.iter().enumerate() {
            let instance = self.instances.len() as u32;
            let mut loop_index = NONE;
            if let ActionTemplate::For(t) = action {
                loop_index = self.loops.len() as u32;
                self.loops.push(Loop::new(instance, t, first_var));
                self.promise_outputs(loop_index);
            }
            self.instances.push(Instance {
                scope,
                action: i as u32,
                unmet: 0,
                dependents: NONE,
                loop_index,
                state: State::Waiting,
            });
        }
        scope
    }

    /// The outputs of a loop grow from the start, so that who reads them need not wait for the end.
    fn promise_outputs(&mut self, in_loop: u32) {
        for (i, output) in self.loops[in_loop as usize].outputs.iter().enumerate() {
            self.vars[output.var as usize].slot = Slot::Growing { in_loop, output: i as u32 };
        }
    }

    /// Makes the places of scopes in which everything has been executed free. One with a variable that
    /// never got a value is kept, for somebody may wait for it.
    fn leave_scopes(&mut self) {
        let program = self.program.clone();
        for scope in std::mem::take(&mut self.finished_scopes) {
            let Scope { body, first_var, first_instance, first_value, first_loop, .. } =
                self.scopes[scope as usize];
            let template = &program.bodies[body as usize];
            let vars = first_var as usize..first_var as usize + template.locals.len();
            if !self.vars[vars.clone()].iter().all(|v| v.slot.is_set()) {
                continue;
            }
            self.vars[vars].fill_with(Var::new);
            let values = first_value as usize..first_value as usize + template.enumerators.len();
            self.enumerator_values[values].fill(Value::Null);
            let mut l = first_loop;
            for (instance, action) in (first_instance..).zip(&template.actions) {
                let this = &mut self.instances[instance as usize];
                (this.unmet, this.dependents, this.state) = (0, NONE, State::Waiting);
                if let ActionTemplate::For(t) = action {
                    self.loops[l as usize] = Loop::new(instance, t, first_var);
                    self.promise_outputs(l);
                    l += 1;
                }
            }
            self.free_scopes[body as usize].push(scope);
        }
    }

    fn wait_for_inputs(&mut self, instance: u32, scope: u32, template: &ExecuteTemplate) {
        let mut unmet = 0;
        let conditions = template.when.iter().flat_map(|w| w.names.iter().map(|(_, source)| source));
        for source in template.inputs.iter().map(|i| &i.source).chain(conditions) {
            if let Some(var) = self.var_of(source, scope)
                && !self.vars[var as usize].slot.is_set()
            {
                self.wait_for_var(var, Waiter::Task(instance));
                unmet += 1;
            }
        }
        unmet += self.wait_for_actions(instance, scope, &template.waits_for);
        self.instances[instance as usize].unmet = unmet;
        if unmet == 0 {
            self.unblocked.push(instance);
        }
    }

    fn wait_for_lists(&mut self, instance: u32, scope: u32, template: &ForTemplate) {
        let loop_index = self.instances[instance as usize].loop_index;
        let conditions = template.when.iter().flat_map(|w| w.names.iter().map(|(_, source)| source));
        for source in template.inputs.iter().chain(conditions) {
            if let Some(var) = self.var_of(source, scope)
                && !self.vars[var as usize].slot.is_set()
            {
                self.wait_for_var(var, Waiter::LoopInput(loop_index));
            }
        }
        self.instances[instance as usize].unmet = self.wait_for_actions(instance, scope, &template.waits_for);
        self.dirty_loops.push(Reverse(loop_index));
    }

    fn wait_for_actions(&mut self, instance: u32, scope: u32, places: &[ActionPlace]) -> u32 {
        let mut unmet = 0;
        for place in places {
            let owner = self.scope_up(scope, place.up);
            let target = self.scopes[owner as usize].first_instance + place.index;
            if self.instances[target as usize].state != State::Done {
                let next = self.instances[target as usize].dependents;
                self.instances[target as usize].dependents = self.add_edge(Waiter::Task(instance), next);
                unmet += 1;
            }
        }
        unmet
    }

    fn add_edge(&mut self, to: Waiter, next: u32) -> u32 {
        let edge = Edge { to, next };
        if self.free_edges == NONE {
            self.edges.push(edge);
            return self.edges.len() as u32 - 1;
        }
        let place = self.free_edges;
        self.free_edges = std::mem::replace(&mut self.edges[place as usize], edge).next;
        place
    }

    /// Takes an edge out of the list it is the first of. Returns where it led, and the next of the list.
    fn take_edge(&mut self, edge: u32) -> (Waiter, u32) {
        let Edge { to, next } = self.edges[edge as usize];
        self.edges[edge as usize].next = self.free_edges;
        self.free_edges = edge;
        (to, next)
    }

    fn wait_for_var(&mut self, var: u32, waiter: Waiter) {
        let next = self.vars[var as usize].waiters;
        self.vars[var as usize].waiters = self.add_edge(waiter, next);
    }

    fn scope_up(&self, scope: u32, up: u32) -> u32 {
        (0..up).fold(scope, |s, _| self.scopes[s as usize].parent)
    }

    fn var_of(&self, source: &Source, scope: u32) -> Option<u32> {
        match source {
            Source::Local { up, slot } => {
                let owner = self.scope_up(scope, *up);
                Some(self.scopes[owner as usize].first_var + slot)
            }
            Source::Constant(_) | Source::Enumerator { .. } => None,
        }
    }

    /// `$n` for each loop around a scope, outermost first.
    fn suffix(&self, scope: u32) -> String {
        let mut numbers = Vec::new();
        let mut at = scope;
        while self.scopes[at as usize].parent != NONE {
            numbers.push(self.scopes[at as usize].iteration);
            at = self.scopes[at as usize].parent;
        }
        numbers.iter().rev().fold(String::new(), |mut out, n| {
            let _ = write!(out, "${n}");
            out
        })
    }

    fn name_in(&self, name: &Name, scope: u32) -> Name {
        if self.scopes[scope as usize].parent == NONE {
            name.clone()
        } else {
            format_smolstr!("{name}{}", self.suffix(scope))
        }
    }

    fn instance_name(&self, instance: u32) -> Name {
        let i = &self.instances[instance as usize];
        let body = self.scopes[i.scope as usize].body;
        self.name_in(self.program.bodies[body as usize].actions[i.action as usize].id(), i.scope)
    }

    /// The place of the action of the workflow that an instance is or is in.
    fn place_of(&self, instance: u32) -> u32 {
        if self.places.is_empty() {
            return 0;
        }
        let mut i = &self.instances[instance as usize];
        while self.scopes[i.scope as usize].in_loop != NONE {
            let l = self.scopes[i.scope as usize].in_loop;
            i = &self.instances[self.loops[l as usize].instance as usize];
        }
        self.places[i.action as usize]
    }

    /// How many instances there were before this one.
    fn order(&self, instance: u32) -> u32 {
        let i = &self.instances[instance as usize];
        self.scopes[i.scope as usize].order + i.action
    }

    fn task_template<'p>(
        program: &'p Program,
        scopes: &[Scope],
        instance: &Instance,
    ) -> Option<&'p ExecuteTemplate> {
        let body = scopes[instance.scope as usize].body;
        match &program.bodies[body as usize].actions[instance.action as usize] {
            ActionTemplate::Execute(t) => Some(t),
            ActionTemplate::For(_) => None,
        }
    }

    fn output_vars(&self, task: u32) -> Vec<u32> {
        let instance = &self.instances[task as usize];
        let first = self.scopes[instance.scope as usize].first_var;
        let template = Self::task_template(&self.program, &self.scopes, instance);
        // In the order of the service's parameters, which is the order of the arguments.
        let mut outputs: Vec<_> = template.map(|t| t.outputs.iter().collect()).unwrap_or_default();
        outputs.sort_by_key(|o| o.parameter);
        outputs.into_iter().map(|o| first + o.slot).collect()
    }

    // ----- values ----------------------------------------------------------------------------

    /// Values of a task's output. One value stands for itself, several are a list.
    fn set_result(&mut self, var: u32, mut values: Vec<Value>) {
        let directory = self.directories.remove(&var);
        let inside = |d: &Name| values.iter().all(|v| v.as_str().is_some_and(|v| is_inside(v, d)));
        let slot = match directory.filter(inside) {
            Some(path) => Slot::directory(path, values),
            None if values.len() == 1 => Slot::from(values.remove(0)),
            None => Slot::from(Value::Array(values)),
        };
        self.set(var, slot);
    }

    fn set(&mut self, var: u32, slot: Slot) {
        if self.vars[var as usize].slot.is_set() {
            return;
        }
        self.vars[var as usize].slot = slot;
        let mut edge = std::mem::replace(&mut self.vars[var as usize].waiters, NONE);
        while edge != NONE {
            let (to, next) = self.take_edge(edge);
            edge = next;
            match to {
                Waiter::Task(instance) => self.count_down(instance),
                Waiter::LoopInput(l) => self.dirty_loops.push(Reverse(l)),
                Waiter::Yield { in_loop, output, iteration } => {
                    self.loops[in_loop as usize].arrived.push((output, iteration, var));
                    self.dirty_loops.push(Reverse(in_loop));
                }
                Waiter::YieldToInput { in_loop, iteration } => {
                    self.loops[in_loop as usize].arrived_recursive.push((iteration, var));
                    self.dirty_loops.push(Reverse(in_loop));
                }
            }
        }
    }

    fn count_down(&mut self, instance: u32) {
        let i = &mut self.instances[instance as usize];
        i.unmet = i.unmet.saturating_sub(1);
        if i.unmet > 0 || i.state != State::Waiting {
            return;
        }
        match i.loop_index {
            NONE => self.unblocked.push(instance),
            l => self.dirty_loops.push(Reverse(l)),
        }
    }

    /// An action has been executed, or will never be because it is skipped.
    fn executed(&mut self, instance: u32) {
        let i = &mut self.instances[instance as usize];
        if i.state == State::Done {
            return;
        }
        i.state = State::Done;
        let scope = i.scope;
        let mut edge = std::mem::replace(&mut i.dependents, NONE);
        while edge != NONE {
            let (to, next) = self.take_edge(edge);
            edge = next;
            if let Waiter::Task(dependent) = to {
                self.count_down(dependent);
            }
        }
        let this = &mut self.scopes[scope as usize];
        this.open -= 1;
        let (parent, open) = (this.in_loop, this.open);
        if parent != NONE {
            if open == 0 {
                self.finished_scopes.push(scope);
            }
            let l = &mut self.loops[parent as usize];
            l.open_children -= 1;
            if l.open_children == 0 {
                self.dirty_loops.push(Reverse(parent));
            }
        }
    }

    /// The value a source has now. `None` if it has none yet.
    fn value(&self, source: &Source, scope: u32) -> Option<Value> {
        match source {
            Source::Constant(value) => Some((**value).clone()),
            Source::Enumerator { up, index } => Some(self.enumerator(scope, *up, *index).clone()),
            Source::Local { .. } => {
                self.var_of(source, scope).and_then(|var| self.vars[var as usize].slot.to_value())
            }
        }
    }

    fn enumerator(&self, scope: u32, up: u32, index: u32) -> &Value {
        let owner = self.scope_up(scope, up);
        &self.enumerator_values[(self.scopes[owner as usize].first_value + index) as usize]
    }

    /// How many elements a source has as a list, if it is known.
    fn length(&self, source: &Source, scope: u32) -> Option<usize> {
        match source {
            Source::Constant(value) => Some(list_length(value)),
            Source::Enumerator { up, index } => Some(list_length(self.enumerator(scope, *up, *index))),
            Source::Local { .. } => self.vars[self.var_of(source, scope)? as usize].slot.length(),
        }
    }

    /// An element of a source as a list.
    fn element(&self, source: &Source, scope: u32, index: usize) -> Value {
        match source {
            Source::Constant(value) => list_element(value, index),
            Source::Enumerator { up, index: n } => list_element(self.enumerator(scope, *up, *n), index),
            Source::Local { .. } => {
                let var = self.var_of(source, scope);
                var.map_or(Value::Null, |var| self.vars[var as usize].slot.element(index))
            }
        }
    }

    fn texts(&self, source: &Source, scope: u32) -> Option<Vec<String>> {
        self.value(source, scope).map(|v| text_values(&v))
    }

    fn holds(&self, when: Option<&ConditionTemplate>, scope: u32) -> Result<bool, String> {
        let Some(when) = when else { return Ok(true) };
        let lookup = |name: &str| {
            let source = when.names.iter().find(|(n, _)| n == name).map(|(_, source)| source);
            source.and_then(|s| self.value(s, scope)).unwrap_or(Value::Null)
        };
        when.condition.holds(&lookup)
    }
}

fn is_inside(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

impl ActionTemplate {
    fn id(&self) -> &Name {
        match self {
            ActionTemplate::Execute(t) => &t.id,
            ActionTemplate::For(t) => &t.id,
        }
    }
}
