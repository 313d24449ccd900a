//! What variables hold, and whom a new value sets going.

use super::{NONE, Planner, State, Waiter};
use crate::lifetimes::Lifetime;
use crate::program::{ConditionTemplate, Source};
use crate::value::{Slot, list_element, list_length, text_values};
use catena_model::{Name, Value};
use std::cmp::Reverse;

impl Planner {
    /// Values of a task's output. One value stands for itself, several are a list.
    pub(super) fn set_result(&mut self, var: u32, mut values: Vec<Value>) {
        let directory = self.directories.remove(&var);
        let inside = |d: &Name| values.iter().all(|v| v.as_str().is_some_and(|v| is_inside(v, d)));
        let slot = match directory.filter(inside) {
            Some(path) => Slot::directory(path, values),
            None if values.len() == 1 => Slot::from(values.remove(0)),
            None => Slot::from(Value::Array(values)),
        };
        self.set(var, slot);
    }

    pub(super) fn set(&mut self, var: u32, slot: Slot) {
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

    pub(super) fn count_down(&mut self, instance: u32) {
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
    pub(super) fn executed(&mut self, instance: u32) {
        let i = &mut self.instances[instance as usize];
        if i.state == State::Done {
            return;
        }
        i.state = State::Done;
        let scope = i.scope;
        self.tell_dependents(instance);
        self.release(instance);
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

    /// Those who waited for the end of an action wait for one less.
    pub(super) fn tell_dependents(&mut self, instance: u32) {
        let mut edge = std::mem::replace(&mut self.instances[instance as usize].dependents, NONE);
        while edge != NONE {
            let (to, next) = self.take_edge(edge);
            edge = next;
            if let Waiter::Task(dependent) = to {
                self.count_down(dependent);
            }
        }
    }

    /// Notes the files that nobody will read any more, now that a task has been executed.
    fn release(&mut self, instance: u32) {
        if self.lifetimes.is_none() {
            return;
        }
        let program = self.program.clone();
        let Some(template) = Self::task_template(&program, &self.scopes, &self.instances[instance as usize])
        else {
            return;
        };
        let scope_index = self.instances[instance as usize].scope;
        for input in &template.inputs {
            let Source::Local { up: 0, slot } = input.source else { continue };
            let scope = &self.scopes[scope_index as usize];
            let lifetime = self.lifetimes.as_ref().and_then(|l| l.of(scope.body, slot));
            let Some(Lifetime { reads, collected_by, .. }) = lifetime else { continue };
            let left = self.unread.entry(scope.first_var + slot).or_insert(reads);
            *left -= 1;
            if *left > 0 {
                continue;
            }
            self.unread.remove(&(scope.first_var + slot));
            // Other tasks of a loop may still read what it has collected.
            let is_over = collected_by.is_none_or(|action| {
                let l = self.instances[(scope.first_instance + action) as usize].loop_index;
                l != NONE && self.loops[l as usize].open_children == 0
            });
            if is_over {
                let files = self.texts(&input.source, scope_index).unwrap_or_default();
                self.released.extend(files);
            }
        }
    }

    /// The value a source has now. `None` if it has none yet.
    pub(super) fn value(&self, source: &Source, scope: u32) -> Option<Value> {
        match source {
            Source::Constant(value) => Some((**value).clone()),
            Source::Enumerator { up, index } => Some(self.enumerator(scope, *up, *index).clone()),
            Source::Local { .. } => {
                self.var_of(source, scope).and_then(|var| self.vars[var as usize].slot.to_value())
            }
        }
    }

    pub(super) fn enumerator(&self, scope: u32, up: u32, index: u32) -> &Value {
        let owner = self.scope_up(scope, up);
        &self.enumerator_values[(self.scopes[owner as usize].first_value + index) as usize]
    }

    /// How many elements a source has as a list, if it is known.
    pub(super) fn length(&self, source: &Source, scope: u32) -> Option<usize> {
        match source {
            Source::Constant(value) => Some(list_length(value)),
            Source::Enumerator { up, index } => Some(list_length(self.enumerator(scope, *up, *index))),
            Source::Local { .. } => self.vars[self.var_of(source, scope)? as usize].slot.length(),
        }
    }

    /// An element of a source as a list.
    pub(super) fn element(&self, source: &Source, scope: u32, index: usize) -> Value {
        match source {
            Source::Constant(value) => list_element(value, index),
            Source::Enumerator { up, index: n } => list_element(self.enumerator(scope, *up, *n), index),
            Source::Local { .. } => {
                let var = self.var_of(source, scope);
                var.map_or(Value::Null, |var| self.vars[var as usize].slot.element(index))
            }
        }
    }

    pub(super) fn texts(&self, source: &Source, scope: u32) -> Option<Vec<String>> {
        self.value(source, scope).map(|v| text_values(&v))
    }

    pub(super) fn holds(&self, when: Option<&ConditionTemplate>, scope: u32) -> Result<bool, String> {
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
