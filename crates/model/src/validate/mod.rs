//! Checks that a workflow can run before it does, and reports everything that is wrong with it.
//!
//! The rules of the language come first; services are checked for actions that obey them, so that one
//! slip does not show up as two errors.

mod cycles;
mod macros;
mod services;

use crate::Name;
use crate::condition::Condition;
use crate::diag::{Diagnostics, Span};
use crate::library::Library;
use crate::read::{Context, Note};
use crate::workflow::{Action, ForEach, Gather, Input, InputSource, VarRef, Variable, Workflow};
use cycles::WaitGraph;
pub(crate) use macros::included_macros;
pub use macros::validate_macro;
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
                    if !produced.contains(y.id.as_str()) && !v.macro_inputs.contains(y.id.as_str()) {
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
            let (when, go_on) = match action {
                Action::Execute(a) => (a.options().when.as_ref(), None),
                Action::For(a) => match &a.gather {
                    Gather::Carry { condition, .. } => (a.when.as_ref(), condition.as_ref()),
                    Gather::Join | Gather::Nest | Gather::Pairs { .. } => (a.when.as_ref(), None),
                },
                Action::Include(a) => (a.when.as_ref(), None),
                Action::First(_) => (None, None),
            };
            for name in when.into_iter().chain(go_on).flat_map(Condition::names) {
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
                frames.push(a.enumerators().map(|e| e.id.as_str()).collect());
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
}

/// How an action is named in paths.
fn note(action: &Action) -> Note {
    match action {
        Action::Execute(a) => Note::Kind("execute", a.service.clone()),
        Action::For(_) => Note::Kind("for-each", Name::default()),
        Action::Include(a) => Note::Kind("include", a.macro_id.clone()),
        Action::First(_) => Note::Kind("first", Name::default()),
    }
}

/// The variables an action reads.
fn used_vars(action: &Action) -> impl Iterator<Item = (&Name, Span)> {
    let (inputs, loops, choice): (&[Input], Option<&ForEach>, &[VarRef]) = match action {
        Action::Execute(a) => (&a.inputs, None, &[]),
        Action::Include(a) => (&a.inputs, None, &[]),
        Action::For(a) => (&[], Some(a), &[]),
        Action::First(a) => (&[], None, &a.inputs),
    };
    let inputs = inputs.iter().filter_map(|i| match &i.source {
        InputSource::Var(id) => Some((id, i.span)),
        InputSource::Value(_) => None,
    });
    inputs.chain(loops.into_iter().flat_map(ForEach::reads).chain(choice).map(|v| (&v.id, v.span)))
}

/// The enumerators of a for-each action.
fn enumerators(action: &Action) -> impl Iterator<Item = &Variable> {
    let loops = if let Action::For(a) = action { Some(&**a) } else { None };
    loops.into_iter().flat_map(ForEach::enumerators)
}
