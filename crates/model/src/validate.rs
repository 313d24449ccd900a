//! Checks that a workflow can run before it does, and reports everything that is wrong with it.
//!
//! The rules of the language come first; services are checked for actions that obey them, so that one
//! slip does not show up as two errors.

use crate::Name;
use crate::diag::{Diagnostics, Span};
use crate::library::Library;
use crate::read::{Context, Note};
use crate::workflow::{
    Action, Direction, Execute, ForEach, Include, Input, InputSource, Macro, Output, Service,
    ServiceParameter, Variable, Workflow,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Checks a workflow against the language and the known services and macros.
pub fn validate_workflow(workflow: &Workflow, library: &Library) -> Diagnostics {
    let no_parameters = HashSet::new();
    let mut v = Validator::new("workflow", &workflow.vars, &workflow.actions, library, &no_parameters);
    v.language();
    v.named_results(workflow);
    v.services();
    v.ctx.diags
}

/// Checks a macro, and the services it runs if `with_services`.
pub fn validate_macro(m: &Macro, library: &Library, with_services: bool) -> Diagnostics {
    let of = |d| m.parameters.iter().filter(move |p| p.direction == d).map(|p| p.id.as_str());
    let inputs: HashSet<&str> = of(Direction::Input).collect();
    let outputs: HashSet<&str> = of(Direction::Output).collect();
    let mut v = Validator::new("macro", &m.vars, &m.actions, library, &inputs);
    v.include_cycle();
    v.macro_parameters(m, &outputs);
    v.language();
    if with_services {
        v.services();
    }
    v.ctx.diags
}

/// The macros that actions include, directly or through other macros.
pub(crate) fn included_macros<'l>(actions: &[Action], library: &'l Library) -> Vec<&'l Macro> {
    let mut out: Vec<&'l Macro> = Vec::new();
    let mut open: Vec<&Include> = includes(actions);
    while let Some(include) = open.pop() {
        if let Some(m) = library.macro_named(&include.macro_id)
            && !out.iter().any(|known| known.id == m.id)
        {
            out.push(m);
            open.extend(includes(&m.actions));
        }
    }
    out
}

struct Validator<'w> {
    ctx: Context,
    vars: &'w [Variable],
    actions: &'w [Action],
    library: &'w Library,
    macro_inputs: &'w HashSet<&'w str>,
    constants: HashMap<&'w str, &'w Value>,
    /// Actions in which something is wrong already.
    flawed: HashSet<Span>,
}

/// The action being looked at, with its place noted in the context's path.
type Visit<'v, 'w> = dyn FnMut(&mut Validator<'w>, &'w Action) + 'v;

impl<'w> Validator<'w> {
    fn new(
        root: &'static str,
        vars: &'w [Variable],
        actions: &'w [Action],
        library: &'w Library,
        macro_inputs: &'w HashSet<&'w str>,
    ) -> Self {
        let constants = vars.iter().filter_map(|v| Some((v.id.as_str(), v.value.as_ref()?))).collect();
        Self {
            ctx: Context::new(root),
            vars,
            actions,
            library,
            macro_inputs,
            constants,
            flawed: HashSet::new(),
        }
    }

    fn language(&mut self) {
        self.reserved_names();
        self.outputs_with_values();
        self.duplicate_ids();
        self.missing_dependencies();
        self.cycles();
        self.missing_inputs();
        self.reused_outputs();
        self.reused_enumerators();
        self.enumerators_as_outputs();
        self.include_parameters();
        self.scoping();
    }

    /// Calls `f` for every action, outer ones first.
    fn visit(&mut self, f: &mut Visit<'_, 'w>) {
        self.visit_list(self.actions, f);
    }

    fn visit_list(&mut self, actions: &'w [Action], f: &mut Visit<'_, 'w>) {
        for (i, action) in actions.iter().enumerate() {
            self.ctx.enter("actions", Some(i), note(action));
            let before = self.ctx.diags.error_count();
            f(self, action);
            if self.ctx.diags.error_count() > before {
                self.flawed.insert(action.span());
            }
            if let Action::For(a) = action {
                self.visit_list(&a.actions, f);
            }
            self.ctx.leave();
        }
    }

    fn has_value(&self, var: &str) -> bool {
        self.constants.contains_key(var)
    }

    fn reserved_names(&mut self) {
        let check = |v: &mut Self, id: &str, span| {
            if id.starts_with('$') {
                v.ctx
                    .error("reserved-name", span, format!("the variable `{id}` has a reserved name"))
                    .help("names that start with `$` are made by Catena; choose another");
            }
        };
        for (i, var) in self.vars.iter().enumerate() {
            self.ctx.enter("vars", Some(i), Note::None);
            check(self, &var.id, var.span);
            self.ctx.leave();
        }
        self.visit(&mut |v, action| {
            for (id, span) in action.output_vars() {
                check(v, id, span);
            }
            for e in enumerators(action) {
                check(v, &e.id, e.span);
            }
        });
    }

    fn outputs_with_values(&mut self) {
        let mut seen = HashSet::new();
        self.visit(&mut |v, action| {
            for (id, span) in action.output_vars() {
                if v.has_value(id) && seen.insert(id) {
                    v.ctx.error("output-with-value", span, format!("the output variable `{id}` has a value already"))
                        .help("the action produces the value; remove it from the variable, and use `prefix` to choose a directory");
                }
            }
        });
    }

    fn duplicate_ids(&mut self) {
        let mut seen: HashMap<&'w str, Span> = HashMap::new();
        let mut check = |v: &mut Self, id: &'w str, span: Span| {
            if let Some(first) = seen.get(id) {
                let help = format!(
                    "it is taken in line {}; variables and actions share one set of names",
                    first.line
                );
                v.ctx.error("duplicate-id", span, format!("the name `{id}` is used twice")).help(help);
            } else {
                seen.insert(id, span);
            }
        };
        for (i, var) in self.vars.iter().enumerate() {
            self.ctx.enter("vars", Some(i), Note::None);
            check(self, &var.id, var.span);
            self.ctx.leave();
        }
        self.visit(&mut |v, action| check(v, action.id(), action.span()));
    }

    fn missing_dependencies(&mut self) {
        let mut ids: HashSet<&'w str> = HashSet::new();
        self.visit(&mut |_, action| {
            ids.insert(action.id());
        });
        self.visit(&mut |v, action| {
            for d in action.depends_on() {
                if !ids.contains(d.id.as_str()) {
                    let message =
                        format!("the action `{}` depends on `{}`, which does not exist", action.id(), d.id);
                    v.ctx
                        .error("unknown-dependency", d.span, message)
                        .did_you_mean(&d.id, ids.iter().copied());
                }
            }
        });
    }

    /// Finds actions that wait for each other, through `dependsOn` or through variables.
    fn cycles(&mut self) {
        let graph = WaitGraph::new(self.actions);
        for cycle in graph.cycles() {
            let names: Vec<String> = cycle.iter().map(|a| format!("`{}`", a.id())).collect();
            let message = format!("these actions wait for each other: {}", names.join(", "));
            self.ctx
                .error("cycle", cycle[0].span(), message)
                .help("break the cycle by removing one of their `dependsOn` entries or inputs");
        }
    }

    fn include_cycle(&mut self) {
        let mut seen = HashSet::new();
        for start in self.library.macros() {
            if seen.contains(start.id.as_str()) {
                continue;
            }
            let mut trail: Vec<&str> = Vec::new();
            if self.finds_itself(start, &mut trail) {
                seen.extend(trail.iter().copied());
                let message = format!("these macros include each other: {}", trail.join(" -> "));
                self.ctx
                    .error("include-cycle", start.span, message)
                    .help("a macro must not contain itself, not even through others");
                break;
            }
        }
    }

    fn finds_itself(&self, m: &'w Macro, trail: &mut Vec<&'w str>) -> bool {
        if trail.contains(&m.id.as_str()) {
            return true;
        }
        trail.push(&m.id);
        for include in includes(&m.actions) {
            if let Some(inner) = self.library.macro_named(&include.macro_id)
                && self.finds_itself(inner, trail)
            {
                return true;
            }
        }
        trail.pop();
        false
    }

    fn macro_parameters(&mut self, m: &'w Macro, outputs: &HashSet<&str>) {
        let mut seen = HashSet::new();
        for (i, p) in m.parameters.iter().enumerate() {
            self.ctx.enter("parameters", Some(i), Note::None);
            if !seen.insert(&p.id) {
                self.ctx.error(
                    "duplicate-parameter",
                    p.span,
                    format!("the parameter `{}` is declared twice", p.id),
                );
            }
            self.ctx.leave();
        }
        for (i, var) in self.vars.iter().enumerate() {
            if m.parameters.iter().any(|p| p.id == var.id) {
                let message = format!("the variable `{}` is a parameter of the macro already", var.id);
                self.ctx.at("vars", Some(i), |ctx| {
                    ctx.error("redeclared-parameter", var.span, message).help("remove it from `vars`");
                });
            }
        }
        for (i, p) in m.parameters.iter().enumerate() {
            if p.direction == Direction::Output && p.default.is_some() {
                let message = format!("the output parameter `{}` has a default value", p.id);
                self.ctx.at("parameters", Some(i), |ctx| {
                    ctx.error("output-with-default", p.span, message)
                        .help("outputs get their values when the macro runs");
                });
            }
        }
        let inputs = self.macro_inputs;
        self.visit(&mut |v, action| {
            for (id, span) in used_vars(action) {
                if inputs.contains(id.as_str()) && v.has_value(id) {
                    v.ctx
                        .error(
                            "parameter-with-value",
                            span,
                            format!("the input parameter `{id}` has a value"),
                        )
                        .help("its value comes from the action that includes the macro");
                }
            }
        });
        self.visit(&mut |v, action| {
            for (id, span) in action.output_vars() {
                if inputs.contains(id.as_str()) {
                    v.ctx.error(
                        "input-as-output",
                        span,
                        format!("the input parameter `{id}` is used as an output"),
                    );
                }
            }
        });
        self.visit(&mut |v, action| {
            for (id, span) in used_vars(action) {
                if outputs.contains(id.as_str()) {
                    v.ctx.error(
                        "output-as-input",
                        span,
                        format!("the output parameter `{id}` is used as an input"),
                    );
                }
            }
        });
        self.visit(&mut |v, action| {
            for e in enumerators(action) {
                if inputs.contains(e.id.as_str()) || outputs.contains(e.id.as_str()) {
                    let message = format!("the parameter `{}` is used as an enumerator", e.id);
                    v.ctx.error("parameter-as-enumerator", e.span, message);
                }
            }
        });
    }

    /// Every variable that some action produces or enumerates.
    fn produced(&mut self) -> HashSet<&'w str> {
        let mut produced: HashSet<&'w str> = HashSet::new();
        self.visit(&mut |_, action| {
            produced.extend(action.output_vars().map(|(id, _)| id.as_str()));
            produced.extend(enumerators(action).map(|e| e.id.as_str()));
        });
        produced
    }

    fn missing_inputs(&mut self) {
        let produced = self.produced();
        let known =
            |v: &Self, id: &str| v.has_value(id) || produced.contains(id) || v.macro_inputs.contains(id);
        self.visit(&mut |v, action| {
            for (id, span) in used_vars(action) {
                if !known(v, id) {
                    let names = produced.iter().copied().chain(v.constants.keys().copied());
                    let mut names: Vec<&str> = names.collect();
                    names.retain(|n| n.len() < 40);
                    v.ctx
                        .error("missing-value", span, format!("the input variable `{id}` never gets a value"))
                        .help("give the variable a `value`, or make it the output of an action");
                    if let Some(near) = crate::diag::nearest(id, names.into_iter()) {
                        v.ctx.last_help(format!("did you mean `{near}`?"));
                    }
                }
            }
            if let Action::For(a) = action {
                for y in a.yield_to_output.iter().chain(&a.yield_to_input) {
                    if !produced.contains(y.id.as_str()) {
                        v.ctx
                            .error(
                                "unknown-yield",
                                y.span,
                                format!("no action produces `{}`, so it cannot be yielded", y.id),
                            )
                            .did_you_mean(&y.id, produced.iter().copied());
                    }
                }
            }
            let when = match action {
                Action::Execute(a) => a.options().when.as_ref(),
                Action::For(a) => a.when.as_ref(),
                Action::Include(_) => None,
            };
            for name in when.map(crate::condition::Condition::names).unwrap_or_default() {
                if !known(v, &name) {
                    v.ctx
                        .error(
                            "missing-value",
                            action.span(),
                            format!("the condition mentions `{name}`, which never gets a value"),
                        )
                        .did_you_mean(&name, produced.iter().copied());
                }
            }
        });
    }

    fn reused_outputs(&mut self) {
        let mut seen = HashSet::new();
        self.visit(&mut |v, action| {
            for (id, span) in action.output_vars() {
                if !seen.insert(id) {
                    v.ctx
                        .error("reused-output", span, format!("two actions write the variable `{id}`"))
                        .help("a variable gets its value once; use another variable for each output");
                }
            }
        });
    }

    fn reused_enumerators(&mut self) {
        let mut seen = HashSet::new();
        self.visit(&mut |v, action| {
            for e in enumerators(action) {
                if !seen.insert(&e.id) {
                    let message =
                        format!("the enumerator `{}` belongs to another for-each action already", e.id);
                    v.ctx.error("reused-enumerator", e.span, message);
                }
            }
        });
    }

    fn enumerators_as_outputs(&mut self) {
        let mut outputs = HashSet::new();
        self.visit(&mut |_, action| outputs.extend(action.output_vars().map(|(id, _)| id)));
        self.visit(&mut |v, action| {
            for e in enumerators(action) {
                if outputs.contains(&e.id) {
                    let message = format!("the enumerator `{}` is also an output", e.id);
                    v.ctx
                        .error("enumerator-as-output", e.span, message)
                        .help("the for-each action sets its enumerator; nothing else may");
                }
            }
        });
    }

    fn include_parameters(&mut self) {
        let library = self.library;
        self.visit(&mut |v, action| {
            let Action::Include(a) = action else { return };
            if library.macro_named(&a.macro_id).is_none() {
                v.ctx
                    .error("unknown-macro", a.span, format!("there is no macro `{}`", a.macro_id))
                    .did_you_mean(&a.macro_id, library.macros().map(|m| m.id.as_str()));
            }
        });
        self.visit(&mut |v, action| {
            let Action::Include(a) = action else { return };
            let mut seen = HashSet::new();
            for (id, span) in given(a) {
                if !seen.insert(id) {
                    v.ctx.error("duplicate-parameter", span, format!("the parameter `{id}` is given twice"));
                }
            }
        });
        self.visit(&mut |v, action| {
            let Action::Include(a) = action else { return };
            let Some(m) = library.macro_named(&a.macro_id) else {
                return;
            };
            for p in &m.parameters {
                let missing = match p.direction {
                    Direction::Input => p.default.is_none() && !a.inputs.iter().any(|i| i.id == p.id),
                    Direction::Output => !a.outputs.iter().any(|o| o.id == p.id),
                };
                if missing {
                    let message = format!(
                        "the {} parameter `{}` of the macro `{}` is missing",
                        p.direction, p.id, m.id
                    );
                    v.ctx.error("missing-parameter", a.span, message);
                }
            }
        });
        self.visit(&mut |v, action| {
            let Action::Include(a) = action else { return };
            let Some(m) = library.macro_named(&a.macro_id) else {
                return;
            };
            let inputs = a.inputs.iter().map(|i| (&i.id, i.span, Direction::Input));
            let outputs = a.outputs.iter().map(|o| (&o.id, o.span, Direction::Output));
            for (id, span, direction) in inputs.chain(outputs) {
                let of = || m.parameters.iter().filter(|p| p.direction == direction).map(|p| p.id.as_str());
                if !of().any(|p| p == id) {
                    v.ctx
                        .error(
                            "unknown-parameter",
                            span,
                            format!("the macro `{}` has no {direction} parameter `{id}`", m.id),
                        )
                        .did_you_mean(id, of());
                }
            }
        });
    }

    /// What a for-each action produces inside is visible inside only.
    fn scoping(&mut self) {
        let produced = self.produced();
        let mut frames: Vec<HashSet<&'w str>> = vec![self.constants.keys().copied().collect()];
        self.scope(self.actions, &produced, &mut frames);
    }

    fn scope(
        &mut self,
        actions: &'w [Action],
        produced: &HashSet<&'w str>,
        frames: &mut Vec<HashSet<&'w str>>,
    ) {
        let outputs = actions.iter().flat_map(Action::output_vars);
        frames.push(outputs.map(|(id, _)| id.as_str()).collect());
        for (i, action) in actions.iter().enumerate() {
            self.ctx.enter("actions", Some(i), note(action));
            for (id, span) in used_vars(action) {
                let visible = frames.iter().any(|f| f.contains(id.as_str()));
                if !self.has_value(id) && produced.contains(id.as_str()) && !visible {
                    self.ctx
                        .error("not-visible", span, format!("the variable `{id}` is not visible here"))
                        .help(
                            "it gets its value inside a for-each action; use `yieldToOutput` to bring it out",
                        );
                    self.flawed.insert(action.span());
                }
            }
            if let Action::For(a) = action {
                frames.push(a.lists().map(|(_, e)| e.id.as_str()).collect());
                self.scope(&a.actions, produced, frames);
                frames.pop();
            }
            self.ctx.leave();
        }
        frames.pop();
    }

    fn named_results(&mut self, workflow: &'w Workflow) {
        let produced = self.produced();
        for r in &workflow.results {
            if !self.has_value(&r.var) && !produced.contains(r.var.as_str()) {
                self.ctx
                    .error("unknown-result", r.span, format!("no action produces the result `{}`", r.var))
                    .did_you_mean(&r.var, produced.iter().copied());
            }
        }
    }

    fn services(&mut self) {
        let nothing_known = self.library.services().next().is_none();
        if nothing_known && self.ctx.diags.has_errors() {
            return;
        }
        self.visit(&mut |v, action| {
            if let Action::Execute(a) = action
                && !v.flawed.contains(&a.span)
            {
                v.service(a);
            }
        });
    }

    fn service(&mut self, a: &'w Execute) {
        let Some(service) = self.library.service(&a.service) else {
            let d = self.ctx.error("unknown-service", a.span, format!("there is no service `{}`", a.service));
            d.did_you_mean(&a.service, self.library.services().map(|s| s.id.as_str()));
            if d.help.is_none() {
                d.help("name the file that describes it with --services, or write `run:` instead");
            }
            return;
        };
        let of = |d| service.parameters.iter().filter(move |p| p.direction == d);
        let inputs = a.inputs.iter().map(|i| (&i.id, i.span, Direction::Input));
        let outputs = a.outputs.iter().map(|o| (&o.id, o.span, Direction::Output));
        for (id, span, direction) in inputs.chain(outputs) {
            if !of(direction).any(|p| p.id == *id) {
                let message = format!("the service `{}` has no {direction} parameter `{id}`", service.id);
                self.ctx
                    .error("unknown-parameter", span, message)
                    .did_you_mean(id, of(direction).map(|p| p.id.as_str()));
            }
        }
        for p in &service.parameters {
            self.cardinality(a, service, p);
        }
    }

    /// Counts what is known before the run: constants count exactly, variables at least as nothing.
    fn cardinality(&mut self, a: &'w Execute, service: &Service, p: &ServiceParameter) {
        let mut count = 0;
        let mut unknown = false;
        match p.direction {
            Direction::Output => count = a.outputs.iter().filter(|o| o.id == p.id).count(),
            Direction::Input => {
                for input in a.inputs.iter().filter(|i| i.id == p.id) {
                    match self.constant(input) {
                        Some(Value::Array(items)) if !p.is_directory() => count += flat_len(items),
                        Some(_) => count += 1,
                        None => unknown = true,
                    }
                }
            }
        }
        let given = a.inputs.iter().any(|i| i.id == p.id);
        if !given
            && p.direction == Direction::Input
            && p.cardinality.min == 1
            && p.cardinality.max == 1
            && p.default.is_some()
        {
            return;
        }
        let too_few = !unknown && count < p.cardinality.min as usize;
        let too_many = count > p.cardinality.max as usize;
        if too_few || too_many {
            let span = a.inputs.iter().find(|i| i.id == p.id).map_or(a.span, |i| i.span);
            let message = format!(
                "the {} parameter `{}` of the service `{}` is given {count} times, but its cardinality is {}",
                p.direction, p.id, service.id, p.cardinality
            );
            self.ctx.error("cardinality", span, message);
        }
    }

    fn constant(&self, input: &'w Input) -> Option<&'w Value> {
        match &input.source {
            InputSource::Value(value) => Some(value),
            InputSource::Var(id) => self.constants.get(id.as_str()).copied(),
        }
    }
}

fn flat_len(items: &[Value]) -> usize {
    items.iter().map(|v| if let Value::Array(inner) = v { flat_len(inner) } else { 1 }).sum()
}

/// How an action is named in paths.
fn note(action: &Action) -> Note {
    match action {
        Action::Execute(a) => Note::Kind("execute", a.service.clone()),
        Action::For(_) => Note::Kind("for-each", Name::default()),
        Action::Include(a) => Note::Kind("include", a.macro_id.clone()),
    }
}

/// The variables an action reads.
fn used_vars(action: &Action) -> impl Iterator<Item = (&Name, Span)> {
    let (inputs, loops): (&[Input], Option<&ForEach>) = match action {
        Action::Execute(a) => (&a.inputs, None),
        Action::Include(a) => (&a.inputs, None),
        Action::For(a) => (&[], Some(a)),
    };
    let inputs = inputs.iter().filter_map(|i| match &i.source {
        InputSource::Var(id) => Some((id, i.span)),
        InputSource::Value(_) => None,
    });
    inputs.chain(loops.into_iter().flat_map(ForEach::lists).map(|(list, _)| (&list.id, list.span)))
}

/// The enumerators of a for-each action.
fn enumerators(action: &Action) -> impl Iterator<Item = &Variable> {
    let loops = if let Action::For(a) = action { Some(&**a) } else { None };
    loops.into_iter().flat_map(ForEach::lists).map(|(_, e)| e)
}

fn given(a: &Include) -> impl Iterator<Item = (&Name, Span)> {
    let outputs = a.outputs.iter().map(|o: &Output| (&o.id, o.span));
    a.inputs.iter().map(|i| (&i.id, i.span)).chain(outputs)
}

/// All include actions in a list, also inside for-each actions.
fn includes(actions: &[Action]) -> Vec<&Include> {
    let mut out = Vec::new();
    for action in actions {
        match action {
            Action::Include(a) => out.push(&**a),
            Action::For(a) => out.extend(includes(&a.actions)),
            Action::Execute(_) => {}
        }
    }
    out
}

/// Which action waits for which. A for-each action has two nodes: its beginning, for which the actions
/// inside wait, and its end, which waits for them.
struct WaitGraph<'w> {
    nodes: Vec<&'w Action>,
    waits_for: Vec<Vec<usize>>,
}

impl<'w> WaitGraph<'w> {
    fn new(actions: &'w [Action]) -> Self {
        let mut graph = Self { nodes: Vec::new(), waits_for: Vec::new() };
        let mut begins = Vec::new();
        let mut ends: HashMap<&'w str, usize> = HashMap::new();
        let mut producers: HashMap<&'w str, usize> = HashMap::new();
        graph.add(actions, None, &mut begins, &mut ends, &mut producers);
        for (action, begin) in begins {
            let dependencies = action.depends_on().iter().filter_map(|d| ends.get(d.id.as_str()));
            let inputs = used_vars(action).filter_map(|(id, _)| producers.get(id.as_str()));
            graph.waits_for[begin].extend(dependencies.chain(inputs));
        }
        graph
    }

    fn add(
        &mut self,
        actions: &'w [Action],
        parent: Option<(usize, usize)>,
        begins: &mut Vec<(&'w Action, usize)>,
        ends: &mut HashMap<&'w str, usize>,
        producers: &mut HashMap<&'w str, usize>,
    ) {
        for action in actions {
            let begin = self.node(action);
            let mut end = begin;
            if let Action::For(a) = action {
                end = self.node(action);
                self.waits_for[end].push(begin);
                producers.extend(a.lists().map(|(_, e)| (e.id.as_str(), begin)));
                self.add(&a.actions, Some((begin, end)), begins, ends, producers);
            }
            if let Some((parent_begin, parent_end)) = parent {
                self.waits_for[begin].push(parent_begin);
                self.waits_for[parent_end].push(end);
            }
            begins.push((action, begin));
            ends.entry(action.id()).or_insert(end);
            for (id, _) in action.output_vars() {
                producers.entry(id).or_insert(end);
            }
        }
    }

    fn node(&mut self, action: &'w Action) -> usize {
        self.nodes.push(action);
        self.waits_for.push(Vec::new());
        self.nodes.len() - 1
    }

    /// Tarjan's strongly connected components with more than one action, or one that waits for itself.
    fn cycles(&self) -> Vec<Vec<&'w Action>> {
        const UNSEEN: u32 = u32::MAX;
        let n = self.nodes.len();
        let mut index = vec![UNSEEN; n];
        let mut low = vec![0u32; n];
        let mut on_stack = vec![false; n];
        let mut stack = Vec::new();
        let mut next = 0;
        let mut out = Vec::new();
        let mut work: Vec<(usize, usize)> = Vec::new();
        for root in 0..n {
            if index[root] != UNSEEN {
                continue;
            }
            work.push((root, 0));
            while let Some(&(v, edge)) = work.last() {
                if edge == 0 {
                    index[v] = next;
                    low[v] = next;
                    next += 1;
                    stack.push(v);
                    on_stack[v] = true;
                }
                if let Some(&w) = self.waits_for[v].get(edge) {
                    work.last_mut().expect("not empty").1 += 1;
                    if index[w] == UNSEEN {
                        work.push((w, 0));
                    } else if on_stack[w] {
                        low[v] = low[v].min(index[w]);
                    }
                    continue;
                }
                work.pop();
                if let Some(&(parent, _)) = work.last() {
                    low[parent] = low[parent].min(low[v]);
                }
                if low[v] == index[v] {
                    let mut component = Vec::new();
                    loop {
                        let w = stack.pop().expect("v is on the stack");
                        on_stack[w] = false;
                        component.push(w);
                        if w == v {
                            break;
                        }
                    }
                    if component.len() > 1 || self.waits_for[v].contains(&v) {
                        component.sort_unstable();
                        let mut actions: Vec<&Action> = component.iter().map(|i| self.nodes[*i]).collect();
                        actions.dedup_by_key(|a| a.span());
                        out.push(actions);
                    }
                }
            }
        }
        out
    }
}
