//! Replaces include actions by the actions of their macros.
//!
//! Everything inside a macro gets a new name made of the include action, the macro and the old name, so
//! that a macro can be included many times without clashes.

use crate::Name;
use crate::condition::Condition;
use crate::diag::{Diagnostics, Span};
use crate::library::Library;
use crate::workflow::{
    Action, Carried, Execute, First, ForEach, Gather, Include, Input, InputSource, Macro, Output, Reference,
    VarRef, Variable, Workflow,
};
use smol_str::format_smolstr;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

/// The workflow without include actions. Fails if a macro or a parameter is missing, or if macros
/// include each other in a circle.
pub fn expand_macros(mut workflow: Workflow, library: &Library) -> Result<Workflow, Diagnostics> {
    let mut expander = Expander { library, vars: Vec::new(), diags: Diagnostics::default() };
    let actions = std::mem::take(&mut workflow.actions);
    if !contains_include(&actions) {
        workflow.actions = actions;
        return Ok(workflow);
    }
    let actions = expander.list(actions, &mut Vec::new());
    if expander.diags.has_errors() {
        return Err(expander.diags);
    }
    workflow.vars.extend(expander.vars);
    workflow.actions = replace_dependencies(actions);
    Ok(workflow)
}

fn contains_include(actions: &[Action]) -> bool {
    actions.iter().any(|a| match a {
        Action::Include(_) => true,
        Action::For(f) => contains_include(&f.actions),
        Action::Execute(_) | Action::First(_) => false,
    })
}

struct Expander<'l> {
    library: &'l Library,
    vars: Vec<Variable>,
    diags: Diagnostics,
}

impl Expander<'_> {
    /// Expands a list of actions. `open` names the macros we are inside of.
    fn list(&mut self, actions: Vec<Action>, open: &mut Vec<Name>) -> Vec<Action> {
        let mut out = Vec::with_capacity(actions.len());
        for action in actions {
            match action {
                Action::Execute(_) | Action::First(_) => out.push(action),
                Action::For(mut f) => {
                    f.actions = self.list(std::mem::take(&mut f.actions), open);
                    out.push(Action::For(f));
                }
                Action::Include(include) => self.include(&include, open, &mut out),
            }
        }
        out
    }

    fn include(&mut self, include: &Include, open: &mut Vec<Name>, out: &mut Vec<Action>) {
        let Some(m) = self.library.macro_named(&include.macro_id) else {
            let known = self.library.macros().map(|m| m.id.as_str());
            let message = format!("there is no macro `{}`", include.macro_id);
            self.diags
                .error("unknown-macro", include.span, "", message)
                .did_you_mean(&include.macro_id, known);
            return;
        };
        if open.contains(&m.id) {
            let circle = open.iter().map(Name::as_str).chain([m.id.as_str()]).collect::<Vec<_>>();
            let message = format!("these macros include each other: {}", circle.join(" -> "));
            self.diags.error("include-cycle", include.span, "", message);
            return;
        }
        let Some(scope) = self.scope(include, m) else {
            return;
        };
        let renamed = m.vars.iter().map(|v| Variable { id: scope.new_id(&v.id), ..v.clone() });
        self.vars.extend(renamed);
        let actions = m.actions.iter().map(|a| scope.action(a)).collect();
        self.vars.extend(scope.value_vars());
        open.push(m.id.clone());
        out.extend(self.list(actions, open));
        open.pop();
    }

    /// What the names inside a macro mean for one include action.
    fn scope<'m>(&mut self, include: &'m Include, m: &'m Macro) -> Option<Scope<'m>> {
        let mut scope = Scope { include, macro_id: &m.id, inputs: HashMap::new(), outputs: HashMap::new() };
        let mut complete = true;
        for p in &m.parameters {
            let found = match p.direction {
                crate::workflow::Direction::Input => {
                    let given = include.inputs.iter().find(|i| i.id == p.id).map(|i| i.source.clone());
                    let source = given.or_else(|| {
                        let id = format_smolstr!("{}$default", scope.new_id(&p.id));
                        let value = Some(p.default.clone()?);
                        self.vars.push(Variable { id: id.clone(), value, span: p.span });
                        Some(InputSource::Var(id))
                    });
                    let given = |source| GivenInput { source, needs_var: Cell::new(false), span: p.span };
                    source.map(|s| scope.inputs.insert(&p.id, given(s))).is_some()
                }
                crate::workflow::Direction::Output => {
                    let given = include.outputs.iter().find(|o| o.id == p.id);
                    given.map(|o| scope.outputs.insert(&p.id, &o.var)).is_some()
                }
            };
            if !found {
                let message =
                    format!("the {} parameter `{}` of the macro `{}` is missing", p.direction, p.id, m.id);
                self.diags.error("missing-parameter", include.span, "", message);
                complete = false;
            }
        }
        complete.then_some(scope)
    }
}

struct Scope<'m> {
    include: &'m Include,
    macro_id: &'m str,
    inputs: HashMap<&'m str, GivenInput>,
    outputs: HashMap<&'m str, &'m Name>,
}

struct GivenInput {
    source: InputSource,
    /// A plain value needs a variable where only a variable can stand, as in a for-each action.
    needs_var: Cell<bool>,
    span: Span,
}

impl Scope<'_> {
    fn new_id(&self, id: &str) -> Name {
        format_smolstr!("${}${}${id}", self.include.id.trim_start_matches('$'), self.macro_id)
    }

    /// The name of a variable outside the macro.
    fn var(&self, id: &str) -> Name {
        if let Some(given) = self.inputs.get(id) {
            return match &given.source {
                InputSource::Var(var) => var.clone(),
                InputSource::Value(_) => {
                    given.needs_var.set(true);
                    self.value_var(id)
                }
            };
        }
        self.outputs.get(id).map_or_else(|| self.new_id(id), |var| (*var).clone())
    }

    fn value_var(&self, id: &str) -> Name {
        format_smolstr!("{}$value", self.new_id(id))
    }

    /// Variables for plain values that turned out to need one.
    fn value_vars(&self) -> Vec<Variable> {
        let mut out = Vec::new();
        for (id, given) in &self.inputs {
            if let (InputSource::Value(value), true) = (&given.source, given.needs_var.get()) {
                out.push(Variable { id: self.value_var(id), value: Some(value.clone()), span: given.span });
            }
        }
        out.sort_by(|a, b| a.id.cmp(&b.id));
        out
    }

    fn var_ref(&self, v: &VarRef) -> VarRef {
        VarRef { id: self.var(&v.id), span: v.span }
    }

    fn enumerator(&self, v: &Variable) -> Variable {
        Variable { id: self.new_id(&v.id), ..v.clone() }
    }

    fn depends_on(&self, list: &[Reference]) -> Vec<Reference> {
        let own = list.iter().map(|r| Reference { id: self.new_id(&r.id), span: r.span });
        own.chain(self.include.depends_on.iter().cloned()).collect()
    }

    fn inputs(&self, inputs: &[Input]) -> Vec<Input> {
        let source = |s: &InputSource| match s {
            InputSource::Value(v) => InputSource::Value(v.clone()),
            InputSource::Var(id) => match self.inputs.get(id.as_str()) {
                Some(given) => given.source.clone(),
                None => InputSource::Var(self.var(id)),
            },
        };
        inputs.iter().map(|i| Input { id: i.id.clone(), source: source(&i.source), span: i.span }).collect()
    }

    fn outputs(&self, outputs: &[Output]) -> Vec<Output> {
        outputs.iter().map(|o| Output { var: self.var(&o.var), ..o.clone() }).collect()
    }

    fn action(&self, action: &Action) -> Action {
        match action {
            Action::Execute(a) => {
                let mut options = a.options.clone();
                let when = self.when(options.as_deref_mut().and_then(|o| o.when.take()).as_ref());
                if when.is_some() {
                    options.get_or_insert_default().when = when;
                }
                Action::Execute(Box::new(Execute {
                    id: self.new_id(&a.id),
                    service: a.service.clone(),
                    inputs: self.inputs(&a.inputs),
                    outputs: self.outputs(&a.outputs),
                    depends_on: self.depends_on(&a.depends_on),
                    options,
                    span: a.span,
                }))
            }
            Action::For(a) => Action::For(Box::new(ForEach {
                id: self.new_id(&a.id),
                input: self.var_ref(&a.input),
                enumerator: self.enumerator(&a.enumerator),
                zip: a.zip.iter().map(|(list, e)| (self.var_ref(list), self.enumerator(e))).collect(),
                output: a.output.iter().map(|v| self.var_ref(v)).collect(),
                actions: a.actions.iter().map(|a| self.action(a)).collect(),
                yield_to_output: a.yield_to_output.iter().map(|v| self.var_ref(v)).collect(),
                yield_to_input: a.yield_to_input.as_ref().map(|v| self.var_ref(v)),
                depends_on: self.depends_on(&a.depends_on),
                when: self.when(a.when.as_ref()),
                gather: self.gather(&a.gather),
                span: a.span,
            })),
            Action::First(a) => Action::First(Box::new(First {
                id: self.new_id(&a.id),
                inputs: a.inputs.iter().map(|v| self.var_ref(v)).collect(),
                output: self.var_ref(&a.output),
                depends_on: self.depends_on(&a.depends_on),
                span: a.span,
            })),
            Action::Include(a) => Action::Include(Box::new(Include {
                id: self.new_id(&a.id),
                macro_id: a.macro_id.clone(),
                inputs: self.inputs(&a.inputs),
                outputs: self.outputs(&a.outputs),
                depends_on: self.depends_on(&a.depends_on),
                when: self.when(a.when.as_ref()),
                span: a.span,
            })),
        }
    }

    /// The condition of an action as it is outside: that of the include action counts for everything inside.
    fn when(&self, own: Option<&Condition>) -> Option<Condition> {
        let own = own.map(|c| c.rename(|n| self.var(n)));
        match (&self.include.when, own) {
            (Some(outer), Some(own)) => Some(outer.clone().and(&own)),
            (outer, own) => own.or_else(|| outer.clone()),
        }
    }

    fn gather(&self, gather: &Gather) -> Gather {
        match gather {
            Gather::Join => Gather::Join,
            Gather::Nest => Gather::Nest,
            Gather::Carry { carried, condition } => Gather::Carry {
                carried: carried
                    .iter()
                    .map(|c| Carried {
                        enumerator: self.enumerator(&c.enumerator),
                        init: self.var_ref(&c.init),
                    })
                    .collect(),
                condition: condition.as_ref().map(|c| c.rename(|n| self.var(n))),
            },
            Gather::Pairs { right } => Gather::Pairs { right: self.enumerator(right) },
        }
    }
}

/// A dependency on an include action becomes one on everything the action was expanded to.
fn replace_dependencies(mut actions: Vec<Action>) -> Vec<Action> {
    fn collect(actions: &[Action], ids: &mut BTreeMap<Name, usize>) {
        for a in actions {
            let position = ids.len();
            ids.entry(a.id().clone()).or_insert(position);
            if let Action::For(f) = a {
                collect(&f.actions, ids);
            }
        }
    }
    fn replace(list: &mut Vec<Reference>, ids: &BTreeMap<Name, usize>) {
        if list.iter().all(|r| ids.contains_key(&r.id)) {
            return;
        }
        let mut out = Vec::new();
        for r in list.drain(..) {
            let prefix = format!("${}$", r.id.trim_start_matches('$'));
            let expanded = ids.range(Name::new(&prefix)..).take_while(|(id, _)| id.starts_with(&prefix));
            let mut expanded: Vec<(&Name, &usize)> = expanded.collect();
            if ids.contains_key(&r.id) || expanded.is_empty() {
                out.push(r);
                continue;
            }
            expanded.sort_by_key(|(_, position)| **position);
            out.extend(expanded.into_iter().map(|(id, _)| reference(id, r.span)));
        }
        *list = out;
    }
    fn walk(actions: &mut [Action], ids: &BTreeMap<Name, usize>) {
        for a in actions {
            match a {
                Action::Execute(a) => replace(&mut a.depends_on, ids),
                Action::For(a) => {
                    replace(&mut a.depends_on, ids);
                    walk(&mut a.actions, ids);
                }
                Action::First(a) => replace(&mut a.depends_on, ids),
                Action::Include(_) => {}
            }
        }
    }
    let mut ids = BTreeMap::new();
    collect(&actions, &mut ids);
    walk(&mut actions, &ids);
    actions
}

fn reference(id: &Name, span: Span) -> Reference {
    Reference { id: id.clone(), span }
}
