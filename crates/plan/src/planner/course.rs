//! Loops whose iterations need each other: each gets what the one before it yields, or elements are paired until one is
//! left.

use super::{NONE, PlanError, Planner};
use crate::program::{ActionTemplate, CourseTemplate, ForTemplate, Source};
use crate::value::Slot;
use catena_model::Value;
use std::collections::VecDeque;

/// How far a loop is whose iterations need each other.
#[derive(Debug)]
pub(super) enum Course {
    Each,
    Carry(Carry),
    Pairs(Pairs),
}

/// What is handed from one iteration to the next.
#[derive(Debug, Default)]
pub(super) struct Carry {
    /// Nothing as long as an iteration is on its way to yield it.
    values: Vec<Option<Value>>,
    /// The first iteration's part is known.
    is_begun: bool,
    /// The condition does not hold any more, or something that should be handed on was skipped.
    has_stopped: bool,
    is_absent: bool,
    /// The iterations to come are expected, because no condition decides.
    is_counted: bool,
}

/// A tree of pairs: the elements are round zero, what comes of the pairs is the next round.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    rounds: Vec<Vec<Option<Value>>>,
    /// Pairs that are complete, and where what comes of them belongs.
    ready: VecDeque<(Value, Value, (usize, usize))>,
    /// Where what an iteration yields belongs.
    places: Vec<(usize, usize)>,
    is_begun: bool,
    is_absent: bool,
}

impl Course {
    pub(super) fn new(template: &ForTemplate) -> Self {
        match &template.course {
            CourseTemplate::Each { .. } => Self::Each,
            CourseTemplate::Carry { .. } => Self::Carry(Carry::default()),
            CourseTemplate::Pairs => Self::Pairs(Pairs::default()),
        }
    }

    /// Whether no iteration will begin any more, where that does not follow from the elements alone.
    pub(super) fn is_over(&self) -> Option<bool> {
        match self {
            Self::Each => None,
            Self::Carry(c) => c.has_stopped.then_some(true),
            Self::Pairs(p) => Some(p.is_absent || (p.is_begun && p.result().is_some())),
        }
    }

    /// Whether what an iteration needs of others is there.
    pub(super) fn is_open(&self, has_element: bool) -> bool {
        match self {
            Self::Each => true,
            Self::Carry(c) => has_element && c.is_begun && c.values.iter().all(Option::is_some),
            Self::Pairs(p) => !p.ready.is_empty(),
        }
    }
}

impl Pairs {
    fn begin(&mut self, elements: Vec<Value>) {
        let mut width = elements.len();
        self.is_begun = true;
        loop {
            self.rounds.push(vec![None; width]);
            if width <= 1 {
                break;
            }
            width = width.div_ceil(2);
        }
        for (index, value) in elements.into_iter().enumerate() {
            self.put(0, index, value);
        }
    }

    fn put(&mut self, round: usize, index: usize, value: Value) {
        let (width, above) = (self.rounds[round].len(), (round + 1, index / 2));
        if width > 1 && index + 1 == width && index.is_multiple_of(2) {
            return self.put(above.0, above.1, value);
        }
        let partner = self.rounds[round].get(index ^ 1).cloned().flatten();
        match partner {
            Some(partner) if index.is_multiple_of(2) => self.ready.push_back((value.clone(), partner, above)),
            Some(partner) => self.ready.push_back((partner, value.clone(), above)),
            None => {}
        }
        self.rounds[round][index] = Some(value);
    }

    fn result(&self) -> Option<&Value> {
        self.rounds.last()?.first()?.as_ref()
    }
}

impl Planner {
    /// Notes what is known before the first iteration. Returns how many iterations are known to come.
    pub(super) fn begin(
        &mut self,
        l: u32,
        scope: u32,
        template: &ForTemplate,
        complete: bool,
    ) -> Result<usize, PlanError> {
        let absent = template.inputs.iter().chain(template.inits()).any(|s| self.is_skipped(s, scope));
        let is_known = template.inits().iter().all(|s| self.is_known(s, scope))
            && template.deciding().all(|s| self.is_known(&s, scope));
        let begins = absent || (complete && is_known);
        let known = self.loops[l as usize].known;
        match &self.loops[l as usize].course {
            Course::Carry(c) if begins && !c.is_begun => {
                let values = template.inits().iter().map(|s| self.value(s, scope));
                let values = values.collect();
                let is_counted = !absent && template.condition().is_none();
                let carry =
                    Carry { values, is_begun: true, has_stopped: absent, is_absent: absent, is_counted };
                self.loops[l as usize].course = Course::Carry(carry);
                Ok(if is_counted { known } else { 0 })
            }
            Course::Pairs(p) if begins && !p.is_begun => {
                let mut pairs = Pairs { is_absent: absent, is_begun: true, ..Pairs::default() };
                if known == 0 && !absent {
                    let action = self.instance_name(self.loops[l as usize].instance);
                    let message = "nothing comes of pairing the elements of an empty list".to_owned();
                    return Err(PlanError { action, message });
                }
                if !absent {
                    let elements = (0..known).map(|i| self.element(&template.inputs[0], scope, i));
                    pairs.begin(elements.collect());
                }
                self.loops[l as usize].cursor = known;
                self.loops[l as usize].course = Course::Pairs(pairs);
                Ok(if absent { 0 } else { known - 1 })
            }
            Course::Each | Course::Carry(_) | Course::Pairs(_) => Ok(0),
        }
    }

    fn is_skipped(&self, source: &Source, scope: u32) -> bool {
        self.var_of(source, scope).is_some_and(|v| matches!(self.vars[v as usize].slot, Slot::Skipped))
    }

    /// An iteration has yielded something.
    pub(super) fn hand_on(&mut self, l: u32, output: u32, iteration: u32, var: u32) {
        self.loops[l as usize].outputs[output as usize].pending -= 1;
        let value = self.vars[var as usize].slot.to_element();
        self.hand_value(l, output, iteration, value);
    }

    /// An iteration has yielded a value, or something that was skipped.
    pub(super) fn hand_value(&mut self, l: u32, output: u32, iteration: u32, value: Option<Value>) {
        if value.is_none() {
            self.give_up(l);
        }
        match (&mut self.loops[l as usize].course, value) {
            (Course::Carry(c), value) => c.values[output as usize] = value,
            (Course::Pairs(p), Some(value)) => {
                let (round, index) = p.places[iteration as usize];
                p.put(round, index, value);
            }
            (Course::Each | Course::Pairs(_), _) => {}
        }
    }

    /// Something that an iteration needs was skipped, so no more begin.
    fn give_up(&mut self, l: u32) {
        let this = &mut self.loops[l as usize];
        let left = match &mut this.course {
            Course::Carry(c) if !c.is_absent => {
                (c.is_absent, c.has_stopped) = (true, true);
                if c.is_counted { this.known - this.cursor } else { 0 }
            }
            Course::Pairs(p) if !p.is_absent => {
                p.is_absent = true;
                this.known - 1 - p.places.len()
            }
            Course::Each | Course::Carry(_) | Course::Pairs(_) => return,
        };
        let body = this.body;
        self.forgo(body, left);
    }

    /// The values of the next iteration, if there is one.
    pub(super) fn next_handed(&mut self, l: u32, scope: u32, template: &ForTemplate) -> Option<Vec<Value>> {
        if !self.loops[l as usize].can_iterate() {
            return None;
        }
        let cursor = self.loops[l as usize].cursor;
        match &mut self.loops[l as usize].course {
            Course::Each => None,
            Course::Pairs(p) => {
                let (left, right, place) = p.ready.pop_front()?;
                p.places.push(place);
                Some(vec![left, right])
            }
            Course::Carry(c) => {
                let carried: Vec<Value> = c.values.iter().flatten().cloned().collect();
                let elements = template.inputs.iter().map(|source| self.element(source, scope, cursor));
                let values: Vec<Value> = elements.chain(carried).collect();
                if !self.goes_on(l, scope, template, &values) {
                    if let Course::Carry(c) = &mut self.loops[l as usize].course {
                        c.has_stopped = true;
                    }
                    return None;
                }
                if template.condition().is_some() {
                    self.expect(template.body as u32, 1);
                }
                let this = &mut self.loops[l as usize];
                this.cursor += 1;
                if let Course::Carry(c) = &mut this.course {
                    c.values.fill(None);
                }
                Some(values)
            }
        }
    }

    /// Whether the condition of a loop holds for the values that its next iteration would have.
    fn goes_on(&mut self, l: u32, scope: u32, template: &ForTemplate, values: &[Value]) -> bool {
        let Some(condition) = template.condition() else { return true };
        let lookup = |name: &str| {
            let source = condition.names.iter().find(|(n, _)| n == name).map(|(_, source)| source);
            let value = source.and_then(|source| match source {
                Source::Enumerator { up: 0, index } => values.get(*index as usize).cloned(),
                other => self.value(&other.outside()?, scope),
            });
            value.unwrap_or(Value::Null)
        };
        condition.condition.holds(&lookup).unwrap_or_else(|message| {
            let action = self.instance_name(self.loops[l as usize].instance);
            self.failure.get_or_insert(PlanError { action, message });
            false
        })
    }

    /// What is left at the end becomes the output of the loop.
    pub(super) fn publish_handed(&mut self, l: u32) {
        let absent = |n| vec![Slot::Skipped; n];
        let this = &self.loops[l as usize];
        let outputs = this.outputs.len();
        let slots: Vec<Slot> = match &this.course {
            Course::Each => return,
            Course::Carry(c) if c.is_absent => absent(outputs),
            Course::Carry(c) => c.values.iter().flatten().cloned().map(Slot::from).collect(),
            Course::Pairs(p) if p.is_absent => absent(outputs),
            Course::Pairs(p) => p.result().cloned().map(Slot::from).into_iter().collect(),
        };
        if slots.len() == outputs && this.outputs.iter().all(|o| o.pending == 0) {
            for (output, slot) in slots.into_iter().enumerate() {
                let var = self.loops[l as usize].outputs[output].var;
                self.set(var, slot);
            }
        }
    }

    /// Takes the first value that is there, if the action is one that does so.
    pub(super) fn choose(&mut self, instance: u32) -> bool {
        let scope = self.instances[instance as usize].scope;
        let program = self.program.clone();
        let body = self.scopes[scope as usize].body as usize;
        let action = self.instances[instance as usize].action as usize;
        let ActionTemplate::First(template) = &program.bodies[body].actions[action] else { return false };
        debug_assert_eq!(self.instances[instance as usize].loop_index, NONE);
        let slot = |source: &Source| match self.var_of(source, scope) {
            Some(var) => self.vars[var as usize].slot.clone(),
            None => self.value(source, scope).map_or(Slot::Skipped, Slot::from),
        };
        let first = template.inputs.iter().map(slot).find(|s| !matches!(s, Slot::Skipped));
        let output = self.scopes[scope as usize].first_var + template.output;
        self.set(output, first.unwrap_or(Slot::Skipped));
        self.executed(instance);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::{ChainPolicy, Order, PlanError, PlanOptions, Planner, Program};
    use catena_model::{LoadOptions, load_text};
    use std::path::Path;
    use std::sync::Arc;

    /// Executes a workflow: a task gives, for each output, its inputs in brackets after the first word of its command.
    /// Returns the inputs of the tasks called `show`, in the order in which they were planned.
    fn shown(text: &str) -> Result<Vec<String>, PlanError> {
        let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
        let problems: Vec<_> = loaded.diags.iter().map(|d| d.message.clone()).collect();
        let workflow = loaded.expanded.as_ref().unwrap_or_else(|| panic!("{problems:?}"));
        let program = Arc::new(Program::new(workflow, &loaded.library).unwrap());
        let (tmp, out) = ("/tmp".to_owned(), "/out".to_owned());
        let options = PlanOptions { tmp, out, policy: ChainPolicy::Split, order: Order::Fifo };
        let mut planner = Planner::new(program, options);
        let mut shown = Vec::new();
        while let Some(chain) = planner.next_chain()? {
            let number = planner.chain_count() - 1;
            let mut results = Vec::new();
            for task in &chain.executables {
                let inputs: Vec<String> = task
                    .arguments
                    .iter()
                    .filter(|a| a.direction == catena_model::Direction::Input)
                    .map(|i| i.variable.value.to_string())
                    .collect();
                let word = task.script.as_deref().unwrap_or_default().split(' ').next().unwrap_or_default();
                if word == "show" {
                    shown.push(inputs.join(" "));
                }
                let value = match word {
                    "less" => (inputs[0].parse::<i64>().unwrap() - 1).to_string(),
                    word => format!("{word}({})", inputs.join(" ")),
                };
                results.push(task.outputs().map(|_| vec![value.clone()]).collect());
            }
            assert_eq!(
                chain.executables.len(),
                1,
                "what is in a file is not known before the task has ended"
            );
            planner.chain_succeeded(number, results);
        }
        assert!(planner.is_finished(), "{:?}", planner.counts());
        Ok(shown)
    }

    /// A workflow with these lines for a loop over `xs`, and a task that shows `r`.
    fn looped(xs: &str, lines: &str) -> String {
        format!(
            "
vars: [{{id: xs, value: {xs}}}, {{id: zero, value: z}}, {{id: three, value: 3}}]
actions:
  - type: for
    input: xs
    enumerator: x
    output: r
    yieldToOutput: y
{lines}
  - {{type: execute, run: 'show {{r}}', inputs: [{{id: r, var: r}}]}}
"
        )
    }

    const FOLD: &str = "    carry: [{enumerator: acc, init: zero}]
    actions:
      - type: execute
        run: 'f {acc} {x} {y}'
        inputs: [{id: acc, var: acc}, {id: x, var: x}]
        outputs: [{id: y, var: y, value: true}]";

    const TREE: &str = "    pairs: b
    actions:
      - type: execute
        run: 't {a} {b} {y}'
        inputs: [{id: a, var: x}, {id: b, var: b}]
        outputs: [{id: y, var: y, value: true}]";

    #[test]
    fn what_is_carried_goes_from_one_iteration_to_the_next() {
        assert_eq!(shown(&looped("[a, b, c]", FOLD)), Ok(vec!["f(f(f(z a) b) c)".to_owned()]));
        assert_eq!(shown(&looped("[]", FOLD)), Ok(vec!["z".to_owned()]));
    }

    #[test]
    fn pairs_are_made_until_one_is_left_and_their_shape_follows_from_the_length() {
        let five = "t(t(t(1 2) t(3 4)) 5)".to_owned();
        assert_eq!(shown(&looped("[1, 2, 3, 4, 5]", TREE)), Ok(vec![five]));
        assert_eq!(shown(&looped("[1]", TREE)), Ok(vec!["1".to_owned()]));
        let error = shown(&looped("[]", TREE)).unwrap_err();
        assert!(error.message.contains("empty list"), "{error}");
    }

    #[test]
    fn a_condition_ends_a_loop_early_and_decides_by_what_is_in_files() {
        let lines = "    carry: [{enumerator: n, init: three}]
    while: '{n} > 1'
    actions:
      - type: execute
        run: 'less {n} {y}'
        inputs: [{id: n, var: n}]
        outputs: [{id: y, var: y, value: true}]";
        assert_eq!(shown(&looped("[1, 2, 3, 4]", lines)), Ok(vec!["1".to_owned()]));
        assert_eq!(shown(&looped("[1]", lines)), Ok(vec!["2".to_owned()]), "the list is a limit");
    }

    #[test]
    fn nested_lists_keep_their_shape() {
        let text = "
vars: [{id: xss, value: [[a, b], [c], []]}]
actions:
  - type: for
    input: xss
    enumerator: xs
    collect: nested
    output: ys
    yieldToOutput: y
    actions:
      - type: for
        input: xs
        enumerator: x
        collect: nested
        output: y
        yieldToOutput: z
        actions:
          - {type: execute, run: 'f {x} {z}', inputs: [{id: x, var: x}], outputs: [{id: z, var: z, value: true}]}
  - type: for
    input: ys
    enumerator: each
    actions:
      - {type: execute, run: 'show {e}', inputs: [{id: e, var: each}]}
";
        let mut lists = shown(text).unwrap();
        lists.sort();
        assert_eq!(lists, vec!["", "f(a) f(b)", "f(c)"]);
    }

    #[test]
    fn the_first_value_that_is_there_is_taken_and_a_condition_counts_for_a_whole_macro() {
        for (mode, expected) in [("1", vec!["one(q) one(q)"]), ("2", vec!["two(q) two(q)"]), ("3", vec![])] {
            let text = format!(
                "
macros:
  - id: one
    parameters: [{{id: i, type: input}}, {{id: o, type: output}}]
    actions:
      - {{type: execute, run: 'one {{i}} {{p}}', inputs: [{{id: i, var: i}}], outputs: [{{id: p, var: o, value: true}}]}}
vars: [{{id: mode, value: {mode}}}, {{id: q, value: q}}]
actions:
  - {{type: include, macro: one, when: '{{mode}} == 1', inputs: [{{id: i, var: q}}], outputs: [{{id: o, var: a}}]}}
  - {{type: execute, run: 'two {{q}} {{b}}', when: '{{mode}} == 2', inputs: [{{id: q, var: q}}], outputs: [{{id: b, var: b, value: true}}]}}
  - {{type: first, inputs: [a, b], output: c}}
  - {{type: first, inputs: [b, a], output: d}}
  - {{type: execute, run: 'show {{c}} {{d}}', inputs: [{{id: c, var: c}}, {{id: d, var: d}}]}}
"
            );
            assert_eq!(shown(&text).unwrap(), expected, "mode {mode}");
        }
    }

    #[test]
    fn what_was_skipped_is_not_handed_on() {
        let lines = FOLD.replace("run:", "when: '{x} != \"b\"'\n        run:");
        assert_eq!(shown(&looped("[a, b, c]", &lines)), Ok(vec![]));
    }

    #[test]
    fn a_loop_has_the_same_meaning_after_it_was_converted() {
        let text = looped("[a, b, c]", FOLD);
        let loaded = load_text(Path::new("w.yaml"), &text, &LoadOptions::default());
        let again = catena_model::to_long_form(loaded.expanded.as_ref().unwrap(), &loaded.library);
        assert_eq!(shown(&again), shown(&text), "{again}");
    }
}
