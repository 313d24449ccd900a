//! How loops unroll, collect what their iterations yield, and end.

use super::{Edge, NONE, PlanError, Planner, READY_AHEAD, TURN, Waiter};
use crate::program::{ActionTemplate, CourseTemplate, ForTemplate, Source};
use crate::value::Slot;
use catena_model::Value;
use std::cmp::Reverse;

impl Planner {
    /// Lets loops and actions that became ready react to what changed until nothing changes any more.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(Reverse(l)) = self.dirty_loops.pop() {
                while self.dirty_loops.peek() == Some(&Reverse(l)) {
                    self.dirty_loops.pop();
                }
                if let Err(e) = self.advance_loop(l) {
                    self.failure.get_or_insert(e);
                }
            } else if let Some(instance) = self.unblocked.pop() {
                if self.choose(instance) {
                    continue;
                }
                match self.skips(instance) {
                    Ok(true) => self.skip(instance),
                    Ok(false) => {
                        let key = (self.place_of(instance), self.order(instance), instance);
                        self.ready.push(Reverse(key));
                    }
                    Err(e) => {
                        self.failure.get_or_insert(e);
                    }
                }
            } else if self.ready.len() < READY_AHEAD
                && let Some(Reverse((turns, order, l))) = self.deferred_loops.pop()
            {
                self.take_turn(l, turns, order);
            } else {
                break;
            }
        }
        self.leave_scopes();
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
        self.collect(l, template);
        if !self.loops[l as usize].closed && self.instances[instance as usize].unmet == 0 {
            let error = |message| PlanError { action: self.instance_name(instance), message };
            let condition_known =
                template.when.iter().flat_map(|w| &w.names).all(|(_, s)| self.is_known(s, scope));
            if condition_known {
                if self.holds(template.when.as_deref(), scope).map_err(error)? {
                    self.look_at_input(l, scope, template)?;
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
    fn collect(&mut self, l: u32, template: &ForTemplate) {
        let mut arrived = std::mem::take(&mut self.loops[l as usize].arrived);
        // Within a step the order of arrival is an accident; that of the iterations is not.
        arrived.sort_unstable();
        for (output, iteration, var) in arrived {
            let CourseTemplate::Each { nested } = template.course else {
                self.hand_on(l, output, iteration, var);
                continue;
            };
            let slot = &self.vars[var as usize].slot;
            let values = if nested { slot.to_element().into_iter().collect() } else { slot.to_items() };
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
            let this = &mut self.loops[l as usize];
            let body = this.body;
            let count = values.len();
            this.recursive_pending -= 1;
            this.recursive.extend(values);
            self.expect(body, count);
        }
    }

    /// Learns how many elements are known, and closes the loop if no more can come.
    fn look_at_input(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Result<(), PlanError> {
        let Some((known, complete)) = self.known_elements(l, scope, template)? else { return Ok(()) };
        let fresh = known - self.loops[l as usize].known;
        self.loops[l as usize].known = known;
        let fresh = match template.course {
            CourseTemplate::Each { .. } => fresh,
            CourseTemplate::Carry { .. } | CourseTemplate::Pairs => {
                self.begin(l, scope, template, complete)?
            }
        };
        let this = &mut self.loops[l as usize];
        // An iteration may yield an element back to the input, or what comes next may depend on what it yields.
        let may_go_on = (template.yield_to_input.is_some() || !template.collects()) && !this.is_unrolled();
        this.closed = complete && !may_go_on && this.recursive_pending == 0;
        if this.closed {
            self.counts.open_loops -= 1;
        }
        if this.can_iterate() && !this.deferred {
            this.deferred = true;
            let instance = this.instance;
            self.deferred_loops.push(Reverse((0, self.order(instance), l)));
        }
        self.expect(template.body as u32, fresh);
        Ok(())
    }

    /// How many elements of its lists a loop can iterate over, and whether that is all. `None` if that is
    /// not known yet.
    fn known_elements(
        &mut self,
        l: u32,
        scope: u32,
        template: &ForTemplate,
    ) -> Result<Option<(usize, bool)>, PlanError> {
        let [source] = template.inputs.as_slice() else {
            return self.zipped_elements(l, scope, template);
        };
        let var = self.var_of(source, scope);
        let slot = var.map(|v| &self.vars[v as usize].slot);
        if let Some(Slot::Growing { in_loop, output }) = slot {
            self.loops[l as usize].growing_input = Some((*in_loop, *output));
        }
        let complete = slot.is_none_or(Slot::is_set);
        Ok(match self.loops[l as usize].growing_input {
            Some((producer, output)) => {
                Some((self.loops[producer as usize].outputs[output as usize].items.len(), complete))
            }
            None => self.length(source, scope).map(|length| (length, complete)),
        })
    }

    /// Lists walked through side by side must be complete and of the same length.
    fn zipped_elements(
        &self,
        l: u32,
        scope: u32,
        template: &ForTemplate,
    ) -> Result<Option<(usize, bool)>, PlanError> {
        let lengths: Option<Vec<usize>> = template.inputs.iter().map(|s| self.length(s, scope)).collect();
        let Some(lengths) = lengths else { return Ok(None) };
        if lengths.iter().all(|length| *length == lengths[0]) {
            return Ok(Some((lengths[0], true)));
        }
        let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
        let message =
            format!("lists that are zipped must have the same length, but they have {}", lengths.join(", "));
        Err(PlanError { action: self.instance_name(self.loops[l as usize].instance), message })
    }

    /// Starts iterations for the elements of a loop that come next.
    fn take_turn(&mut self, l: u32, turns: u32, order: u32) {
        let instance = &self.instances[self.loops[l as usize].instance as usize];
        let scope = instance.scope;
        let program = self.program.clone();
        let body = self.scopes[scope as usize].body as usize;
        if let ActionTemplate::For(template) = &program.bodies[body].actions[instance.action as usize] {
            for _ in 0..TURN {
                let Some(values) = self.next_element(l, scope, template) else { break };
                self.iterate(l, scope, template, values);
            }
        }
        let this = &mut self.loops[l as usize];
        this.deferred = this.can_iterate();
        if this.deferred {
            self.deferred_loops.push(Reverse((turns + 1, order, l)));
        } else {
            self.dirty_loops.push(Reverse(l));
        }
    }

    /// A value for every list of the loop.
    fn next_element(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Option<Vec<Value>> {
        if !template.collects() {
            return self.next_handed(l, scope, template);
        }
        let this = &mut self.loops[l as usize];
        let index = this.cursor;
        if index == this.known {
            return this.recursive.pop_front().map(|v| vec![v]);
        }
        this.cursor += 1;
        Some(match this.growing_input {
            Some((producer, output)) => {
                vec![self.loops[producer as usize].outputs[output as usize].items[index].1.clone()]
            }
            None => template.inputs.iter().map(|source| self.element(source, scope, index)).collect(),
        })
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
                    if template.collects() {
                        self.loops[l as usize].outputs[output].items.push((iteration, value));
                    } else {
                        self.hand_value(l, output as u32, iteration, Some(value));
                        self.dirty_loops.push(Reverse(l));
                    }
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
        if !self.loops[l as usize].closed || !self.loops[l as usize].is_unrolled() {
            return;
        }
        self.publish_handed(l);
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
