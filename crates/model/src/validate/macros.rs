//! Macros: what they include, their parameters, and what is given for them.

use super::{Validator, enumerators, used_vars};
use crate::Name;
use crate::diag::{Diagnostics, Span};
use crate::library::Library;
use crate::read::Note;
use crate::workflow::{Action, Direction, Include, Macro, Output};
use std::collections::HashSet;

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

impl<'w> Validator<'w> {
    pub(super) fn include_cycle(&mut self) {
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

    pub(super) fn finds_itself(&self, m: &'w Macro, trail: &mut Vec<&'w str>) -> bool {
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

    pub(super) fn macro_parameters(&mut self, m: &'w Macro, outputs: &HashSet<&str>) {
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

    pub(super) fn include_parameters(&mut self) {
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
            Action::Execute(_) | Action::First(_) => {}
        }
    }
    out
}
