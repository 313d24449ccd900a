//! Iterations and what is in them: where actions and variables are, what they are called, and who waits for whom.

use super::{Edge, Instance, Loop, NONE, Planner, Scope, State, Var, Waiter};
use crate::program::{
    ActionPlace, ActionTemplate, ExecuteTemplate, FirstTemplate, ForTemplate, Program, Source,
};
use crate::value::Slot;
use catena_model::{Name, Value};
use smol_str::format_smolstr;
use std::cmp::Reverse;
use std::fmt::Write;

impl Planner {
    /// So many more iterations of a body are going to be.
    pub(super) fn expect(&mut self, body: u32, iterations: usize) {
        let (loops, tasks) = self.size(body);
        self.counts.open_loops += iterations as u64 * loops;
        self.counts.waiting += iterations as u64 * tasks;
    }

    /// So many iterations of a body that were expected are not going to be.
    pub(super) fn forgo(&mut self, body: u32, iterations: usize) {
        let (loops, tasks) = self.size(body);
        self.counts.open_loops -= iterations as u64 * loops;
        self.counts.waiting -= iterations as u64 * tasks;
        self.counts.skipped += iterations as u64 * (loops + tasks);
    }

    /// How many loops and tasks there are in a body itself.
    fn size(&self, body: u32) -> (u64, u64) {
        let actions = &self.program.bodies[body as usize].actions;
        let loops = actions.iter().filter(|a| matches!(a, ActionTemplate::For(_))).count();
        let tasks = actions.iter().filter(|a| matches!(a, ActionTemplate::Execute(_))).count();
        (loops as u64, tasks as u64)
    }

    pub(super) fn enter_scope(
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
            self.note_place_taken(instance, self.instances[instance as usize].loop_index);
            match action {
                ActionTemplate::Execute(t) => self.wait_for_inputs(instance, scope, t),
                ActionTemplate::For(t) => self.wait_for_lists(instance, scope, t),
                ActionTemplate::First(t) => self.wait_for_values(instance, scope, t),
            }
        }
        scope
    }

    /// Makes place for an iteration of a body.
    pub(super) fn add_scope(&mut self, body: u32) -> u32 {
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
                self.promise_outputs(loop_index, t);
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

    /// The lists that a loop collects grow from the start, so that who reads them need not wait for the end.
    pub(super) fn promise_outputs(&mut self, in_loop: u32, template: &ForTemplate) {
        if !template.collects() {
            return;
        }
        for (i, output) in self.loops[in_loop as usize].outputs.iter().enumerate() {
            self.vars[output.var as usize].slot = Slot::Growing { in_loop, output: i as u32 };
        }
    }

    /// Makes the places of scopes in which everything has been executed free. One with a variable that
    /// never got a value is kept, for somebody may wait for it.
    pub(super) fn leave_scopes(&mut self) {
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
                    self.promise_outputs(l, t);
                    l += 1;
                }
            }
            self.free_scopes[body as usize].push(scope);
        }
    }

    pub(super) fn wait_for_inputs(&mut self, instance: u32, scope: u32, template: &ExecuteTemplate) {
        let conditions = template.when.iter().flat_map(|w| w.names.iter().map(|(_, source)| source));
        let sources = template.inputs.iter().map(|i| &i.source).chain(conditions);
        self.wait_for_all(instance, scope, sources, &template.waits_for);
    }

    fn wait_for_values(&mut self, instance: u32, scope: u32, template: &FirstTemplate) {
        self.wait_for_all(instance, scope, template.inputs.iter(), &template.waits_for);
    }

    fn wait_for_all<'s>(
        &mut self,
        instance: u32,
        scope: u32,
        sources: impl Iterator<Item = &'s Source>,
        actions: &[ActionPlace],
    ) {
        let mut unmet = 0;
        for source in sources {
            if let Some(var) = self.var_of(source, scope)
                && !self.vars[var as usize].slot.is_set()
            {
                self.wait_for_var(var, Waiter::Task(instance));
                unmet += 1;
            }
        }
        unmet += self.wait_for_actions(instance, scope, actions);
        self.instances[instance as usize].unmet = unmet;
        if unmet == 0 {
            self.unblocked.push(instance);
        }
    }

    pub(super) fn wait_for_lists(&mut self, instance: u32, scope: u32, template: &ForTemplate) {
        let loop_index = self.instances[instance as usize].loop_index;
        let conditions = template.when.iter().flat_map(|w| w.names.iter().map(|(_, source)| source));
        let deciding: Vec<Source> = template.deciding().collect();
        for source in template.inputs.iter().chain(template.inits()).chain(&deciding).chain(conditions) {
            if let Some(var) = self.var_of(source, scope)
                && !self.vars[var as usize].slot.is_set()
            {
                self.wait_for_var(var, Waiter::LoopInput(loop_index));
            }
        }
        self.instances[instance as usize].unmet = self.wait_for_actions(instance, scope, &template.waits_for);
        self.dirty_loops.push(Reverse(loop_index));
    }

    pub(super) fn wait_for_actions(&mut self, instance: u32, scope: u32, places: &[ActionPlace]) -> u32 {
        let mut unmet = 0;
        for place in places {
            let owner = self.scope_up(scope, place.up);
            let target = self.scopes[owner as usize].first_instance + place.index;
            if !self.instances[target as usize].state.is_past() {
                let next = self.instances[target as usize].dependents;
                self.instances[target as usize].dependents = self.add_edge(Waiter::Task(instance), next);
                unmet += 1;
            }
        }
        unmet
    }

    pub(super) fn add_edge(&mut self, to: Waiter, next: u32) -> u32 {
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
    pub(super) fn take_edge(&mut self, edge: u32) -> (Waiter, u32) {
        let Edge { to, next } = self.edges[edge as usize];
        self.edges[edge as usize].next = self.free_edges;
        self.free_edges = edge;
        (to, next)
    }

    pub(super) fn wait_for_var(&mut self, var: u32, waiter: Waiter) {
        let next = self.vars[var as usize].waiters;
        self.vars[var as usize].waiters = self.add_edge(waiter, next);
    }

    pub(super) fn scope_up(&self, scope: u32, up: u32) -> u32 {
        (0..up).fold(scope, |s, _| self.scopes[s as usize].parent)
    }

    pub(super) fn var_of(&self, source: &Source, scope: u32) -> Option<u32> {
        match source {
            Source::Local { up, slot } => {
                let owner = self.scope_up(scope, *up);
                Some(self.scopes[owner as usize].first_var + slot)
            }
            Source::Constant(_) | Source::Enumerator { .. } => None,
        }
    }

    /// `$n` for each loop around a scope, outermost first.
    pub(super) fn suffix(&self, scope: u32) -> String {
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

    pub(super) fn name_in(&self, name: &Name, scope: u32) -> Name {
        if self.scopes[scope as usize].parent == NONE {
            name.clone()
        } else {
            format_smolstr!("{name}{}", self.suffix(scope))
        }
    }

    pub(super) fn instance_name(&self, instance: u32) -> Name {
        let i = &self.instances[instance as usize];
        let body = self.scopes[i.scope as usize].body;
        self.name_in(self.program.bodies[body as usize].actions[i.action as usize].id(), i.scope)
    }

    /// The place of the action of the workflow that an instance is or is in.
    pub(super) fn place_of(&self, instance: u32) -> u32 {
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
    pub(super) fn order(&self, instance: u32) -> u32 {
        let i = &self.instances[instance as usize];
        self.scopes[i.scope as usize].order + i.action
    }

    pub(super) fn task_template<'p>(
        program: &'p Program,
        scopes: &[Scope],
        instance: &Instance,
    ) -> Option<&'p ExecuteTemplate> {
        let body = scopes[instance.scope as usize].body;
        match &program.bodies[body as usize].actions[instance.action as usize] {
            ActionTemplate::Execute(t) => Some(t),
            ActionTemplate::For(_) | ActionTemplate::First(_) => None,
        }
    }

    pub(super) fn output_vars(&self, task: u32) -> Vec<u32> {
        let instance = &self.instances[task as usize];
        let first = self.scopes[instance.scope as usize].first_var;
        let template = Self::task_template(&self.program, &self.scopes, instance);
        // In the order of the service's parameters, which is the order of the arguments.
        let mut outputs: Vec<_> = template.map(|t| t.outputs.iter().collect()).unwrap_or_default();
        outputs.sort_by_key(|o| o.parameter);
        outputs.into_iter().map(|o| first + o.slot).collect()
    }
}

impl ActionTemplate {
    pub(super) fn id(&self) -> &Name {
        match self {
            ActionTemplate::Execute(t) => &t.id,
            ActionTemplate::For(t) => &t.id,
            ActionTemplate::First(t) => &t.id,
        }
    }
}
