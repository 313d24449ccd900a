//! How loops unroll, collect what their iterations yield, and end.

use super::{Edge, NONE, PlanError, Planner, Waiter};
use crate::program::{ActionTemplate, ForTemplate, Source};
use crate::value::Slot;
use catena_model::Value;
use std::cmp::Reverse;

/// The elements to iterate over next, `None` if they are not known yet, and whether the list is complete.
/// Each element has a value for every list of the loop.
type Elements = (Option<Vec<Vec<Value>>>, bool);

impl Planner {
    /// Lets loops react to what changed until nothing changes any more.
    pub(super) fn settle(&mut self) {
        while let Some(Reverse(l)) = self.dirty_loops.pop() {
            while self.dirty_loops.peek() == Some(&Reverse(l)) {
                self.dirty_loops.pop();
            }
            if let Err(e) = self.advance_loop(l) {
                self.failure.get_or_insert(e);
            }
        }
    }

    fn advance_loop(&mut self, l: u32) -> Result<(), PlanError> {
        let instance = self.loops[l as usize].instance;
        let scope = self.instances[instance as usize].scope;
        let program = self.program.clone();
        let body = self.scopes[scope as usize].body as usize;
        let action = self.instances[instance as usize].action as usize;
        let ActionTemplate::For(template) = &program.bodies[body].actions[action] else {
            return Ok(());
        };
        self.collect(l);
        if !self.loops[l as usize].closed && self.instances[instance as usize].unmet == 0 {
            let error = |message| PlanError { action: self.instance_name(instance), message };
            let condition_known =
                template.when.iter().flat_map(|w| &w.names).all(|(_, s)| self.is_known(s, scope));
            if condition_known {
                if self.holds(template.when.as_deref(), scope).map_err(error)? {
                    self.unroll(l, scope, template)?;
                } else {
                    self.skip_loop(l, instance);
                    return Ok(());
                }
            }
        }
        self.finish_loop(l, instance);
        Ok(())
    }

    pub(super) fn is_known(&self, source: &Source, scope: u32) -> bool {
        self.var_of(source, scope).is_none_or(|var| self.vars[var as usize].slot.is_set())
    }

    /// Takes in what iterations have yielded since the last look.
    fn collect(&mut self, l: u32) {
        let mut arrived = std::mem::take(&mut self.loops[l as usize].arrived);
        // Within a step the order of arrival is an accident; that of the iterations is not.
        arrived.sort_unstable();
        for (output, iteration, var) in arrived {
            let values = self.vars[var as usize].slot.to_items();
            let collected = &mut self.loops[l as usize].outputs[output as usize];
            collected.pending -= 1;
            collected.items.extend(values.into_iter().map(|v| (iteration, v)));
            let mut edge = self.vars[collected.var as usize].waiters;
            while edge != NONE {
                let Edge { to, next } = self.edges[edge as usize];
                if let Waiter::LoopInput(follower) = to {
                    self.dirty_loops.push(Reverse(follower));
                }
                edge = next;
            }
        }
        let mut arrived = std::mem::take(&mut self.loops[l as usize].arrived_recursive);
        arrived.sort_unstable();
        for (_, var) in arrived {
            let values = self.vars[var as usize].slot.to_items();
            self.loops[l as usize].recursive_pending -= 1;
            self.loops[l as usize].recursive.extend(values);
        }
    }

    /// Starts an iteration for each element that has become known, and closes the loop if no more can come.
    fn unroll(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Result<(), PlanError> {
        let (elements, complete) = self.take_elements(l, scope, template)?;
        let Some(elements) = elements else { return Ok(()) };
        for values in elements {
            self.iterate(l, scope, template, values);
        }
        let this = &mut self.loops[l as usize];
        if complete && this.recursive_pending == 0 && this.recursive.is_empty() {
            this.closed = true;
            self.counts.open_loops -= 1;
        }
        Ok(())
    }

    /// The elements to iterate over next, and whether the list is complete. `None` if it is not known yet.
    fn take_elements(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Result<Elements, PlanError> {
        if template.inputs.len() > 1 {
            return self.take_zipped(l, scope, template);
        }
        let source = &template.inputs[0];
        let cursor = self.loops[l as usize].cursor;
        let var = self.var_of(source, scope);
        let growing =
            self.loops[l as usize].growing_input.or_else(|| match var.map(|v| &self.vars[v as usize].slot) {
                Some(Slot::Growing { in_loop, output }) => Some((*in_loop, *output)),
                _ => None,
            });
        let complete = var.is_none_or(|v| self.vars[v as usize].slot.is_set());
        let mut elements: Vec<Value> = match growing {
            Some((producer, output)) => {
                self.loops[l as usize].growing_input = growing;
                let items = &self.loops[producer as usize].outputs[output as usize].items;
                items[cursor.min(items.len())..].iter().map(|(_, v)| v.clone()).collect()
            }
            None => match self.list_from(source, scope, cursor) {
                Some(items) => items,
                None => return Ok((None, false)),
            },
        };
        self.loops[l as usize].cursor += elements.len();
        elements.append(&mut self.loops[l as usize].recursive);
        Ok((Some(elements.into_iter().map(|v| vec![v]).collect()), complete))
    }

    /// Lists walked through side by side must be complete and of the same length.
    fn take_zipped(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Result<Elements, PlanError> {
        if !template.inputs.iter().all(|s| self.is_known(s, scope)) {
            return Ok((None, false));
        }
        if self.loops[l as usize].cursor > 0 {
            return Ok((Some(Vec::new()), true));
        }
        let lists = template.inputs.iter().map(|s| self.list_from(s, scope, 0).unwrap_or_default());
        let lists: Vec<Vec<Value>> = lists.collect();
        let length = lists[0].len();
        if lists.iter().any(|list| list.len() != length) {
            let lengths: Vec<String> = lists.iter().map(|list| list.len().to_string()).collect();
            let message = format!(
                "lists that are zipped must have the same length, but they have {}",
                lengths.join(", ")
            );
            return Err(PlanError { action: self.instance_name(self.loops[l as usize].instance), message });
        }
        self.loops[l as usize].cursor = 1;
        let elements = (0..length).map(|i| lists.iter().map(|list| list[i].clone()).collect());
        Ok((Some(elements.collect()), true))
    }

    fn iterate(&mut self, l: u32, scope: u32, template: &ForTemplate, values: Vec<Value>) {
        let iteration = self.loops[l as usize].iterations;
        self.loops[l as usize].iterations += 1;
        let children = self.program.bodies[template.body].actions.len() as u32;
        self.loops[l as usize].open_children += children;
        let inner = self.enter_scope(scope, template.body as u32, l, iteration, values);
        for (output, source) in template.yields.iter().enumerate().take(template.outputs.len()) {
            let waiter = Waiter::Yield { in_loop: l, output: output as u32, iteration };
            match self.var_of(source, inner) {
                Some(var) => {
                    self.loops[l as usize].outputs[output].pending += 1;
                    if self.vars[var as usize].slot.is_set() {
                        self.loops[l as usize].arrived.push((output as u32, iteration, var));
                        self.dirty_loops.push(Reverse(l));
                    } else {
                        self.wait_for_var(var, waiter);
                    }
                }
                None => {
                    let value = self.value(source, inner).unwrap_or(Value::Null);
                    self.loops[l as usize].outputs[output].items.push((iteration, value));
                }
            }
        }
        if let Some(source) = &template.yield_to_input
            && let Some(var) = self.var_of(source, inner)
        {
            self.loops[l as usize].recursive_pending += 1;
            if self.vars[var as usize].slot.is_set() {
                self.loops[l as usize].arrived_recursive.push((iteration, var));
                self.dirty_loops.push(Reverse(l));
            } else {
                self.wait_for_var(var, Waiter::YieldToInput { in_loop: l, iteration });
            }
        }
    }

    /// Publishes the outputs of a closed loop, and counts it as executed when everything inside is.
    fn finish_loop(&mut self, l: u32, instance: u32) {
        if !self.loops[l as usize].closed {
            return;
        }
        for output in 0..self.loops[l as usize].outputs.len() {
            let collected = &self.loops[l as usize].outputs[output];
            let var = collected.var;
            if collected.pending > 0 || self.vars[var as usize].slot.is_set() {
                continue;
            }
            let mut order: Vec<u32> = (0..collected.items.len() as u32).collect();
            order.sort_by_key(|i| self.rank(l, collected.items[*i as usize].0));
            let mut ranks = vec![0; order.len()];
            for (rank, i) in order.iter().enumerate() {
                ranks[*i as usize] = rank as u32;
            }
            let values = order.iter().map(|i| collected.items[*i as usize].1.clone()).collect();
            self.loops[l as usize].outputs[output].ranks = ranks;
            self.set(var, Slot::from(Value::Array(values)));
        }
        let this = &self.loops[l as usize];
        if this.open_children == 0 && this.arrived.is_empty() {
            self.executed(instance);
        }
    }

    /// The position of an iteration in the final order: that of its element in the complete input list.
    fn rank(&self, l: u32, iteration: u32) -> u32 {
        let ranks = self.loops[l as usize]
            .growing_input
            .map(|(producer, output)| &self.loops[producer as usize].outputs[output as usize].ranks);
        ranks.and_then(|r| r.get(iteration as usize).copied()).unwrap_or(iteration)
    }

    fn skip_loop(&mut self, l: u32, instance: u32) {
        self.loops[l as usize].closed = true;
        self.counts.open_loops -= 1;
        self.counts.skipped += 1;
        for output in 0..self.loops[l as usize].outputs.len() {
            let var = self.loops[l as usize].outputs[output].var;
            self.set(var, Slot::Skipped);
        }
        self.executed(instance);
    }
}
