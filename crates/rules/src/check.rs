//! What can be said about a rule without running it.

use crate::ast::{Bound, Expr, ExprKind, Item, Op, RuleAst, Type};
use crate::functions::{Extern, built_in, built_in_names};
use crate::parser::Parser;
use crate::value::Value;
use catena_model::Span;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Variables in scope, and whether each is a `?rest`.
type Scope<'a> = HashMap<&'a str, bool>;

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    /// Among the products: effects are allowed.
    Product,
    /// In `if` or `prefer`.
    Condition,
    /// Outside of rules: evaluated once, when the text is read.
    Constant,
}

/// Checks a rule inside of a scope.
pub(crate) fn rule(parser: &mut Parser<'_>, ast: &RuleAst, outer: &Scope<'_>) {
    let mut scope = outer.clone();
    let mut types: HashMap<&str, Type> = HashMap::new();
    let mut bad = Vec::new();
    for pattern in ast.patterns() {
        pattern.variables(&mut |Bound { name, rest, kind, span }| {
            if scope.insert(name, rest).is_some_and(|old| old != rest) {
                bad.push((name.clone(), span));
            }
            if let Some(kind) = kind
                && types.insert(name, kind).is_some_and(|old| old != kind)
            {
                parser
                    .diags
                    .warning(
                        "never-fires",
                        span,
                        "",
                        format!("`{name}` would have to be of two types at once"),
                    )
                    .help("the rule can never fire");
            }
        });
    }
    for (name, span) in bad {
        let message = format!("`{name}` is bound as a molecule and `?{name}` as a rest");
        parser.diags.error("two-kinds", span, "", message).help("choose different names");
    }
    for product in &ast.give {
        item(parser, product, &scope, Position::Product);
    }
    let conditions = ast.when.iter().chain(ast.prefer.as_ref().map(|(_, e)| e));
    for condition in conditions {
        expr(parser, condition, &scope, Position::Condition);
    }
    if let Some(when) = &ast.when
        && is_false(when)
    {
        parser
            .diags
            .warning("never-fires", when.span, "", "the condition is never true")
            .help("the rule can never fire");
    }
}

/// Whether some conjunct is false whatever the variables are.
fn is_false(when: &Expr) -> bool {
    match &when.kind {
        ExprKind::Binary(Op::And, a, b) => is_false(a) || is_false(b),
        _ => {
            let mut names = 0;
            let mut calls = 0;
            when.names(&mut |_, _| names += 1);
            when.walk(&mut |e| calls += usize::from(matches!(e.kind, ExprKind::Call(..))));
            let constant = names + calls == 0;
            constant && crate::code::constant(when, &Arc::from([])) == Ok(Value::Bool(false))
        }
    }
}

/// Checks an expression that must not have variables.
pub(crate) fn constant(parser: &mut Parser<'_>, e: &Expr) {
    expr(parser, e, &HashMap::new(), Position::Constant);
}

fn item(parser: &mut Parser<'_>, item: &Item, scope: &Scope<'_>, position: Position) {
    match item {
        Item::One(e) => expr(parser, e, scope, position),
        Item::Rest(name, span) => match scope.get(name.as_str()) {
            Some(true) => {}
            Some(false) => {
                let message = format!("`{name}` is a single molecule, not the rest of a solution");
                parser
                    .diags
                    .error("not-a-rest", *span, "", message)
                    .help(format!("write {name} without `?`"));
            }
            None => {
                let rests = scope.iter().filter(|(_, rest)| **rest).map(|(n, _)| *n);
                parser
                    .diags
                    .error("unbound", *span, "", format!("`?{name}` is not bound by a pattern"))
                    .did_you_mean(name, rests);
            }
        },
    }
}

fn expr(parser: &mut Parser<'_>, e: &Expr, scope: &Scope<'_>, position: Position) {
    match &e.kind {
        ExprKind::Value(_) => {}
        ExprKind::Var(name) => match scope.get(name.as_str()) {
            Some(false) => {}
            Some(true) => {
                let message = format!("`?{name}` is the rest of a solution, not a single molecule");
                parser.diags.error("not-a-molecule", e.span, "", message).help(format!("write <?{name}>"));
            }
            None => {
                let mut known: Vec<&str> = scope.keys().copied().collect();
                known.sort_unstable();
                parser.unbound(name, e.span, &known);
            }
        },
        ExprKind::Neg(inner) | ExprKind::Not(inner) | ExprKind::Attribute(inner, _) => {
            expr(parser, inner, scope, position);
        }
        ExprKind::Binary(_, a, b) => {
            expr(parser, a, scope, position);
            expr(parser, b, scope, position);
        }
        ExprKind::Tuple(items) => items.iter().for_each(|i| expr(parser, i, scope, position)),
        ExprKind::Solution(items) => items.iter().for_each(|i| item(parser, i, scope, position)),
        ExprKind::Call(name, arguments) => {
            call(parser, name, arguments.len(), e.span, position);
            for argument in arguments {
                expr(parser, argument, scope, position);
            }
        }
        ExprKind::Rule(inner) => rule(parser, inner, scope),
    }
}

fn call(parser: &mut Parser<'_>, name: &SmolStr, given: usize, span: Span, position: Position) {
    let (least, most, effect) = match (parser.declared.externs.get(name), built_in(name)) {
        (Some(e), _) => (e.arity, e.arity, e.effect),
        (None, Some(b)) => (b.arity.0, b.arity.1, false),
        (None, None) if name == "print" => (1, 1, true),
        (None, None) => {
            let known: Vec<SmolStr> = parser.declared.externs.keys().cloned().collect();
            let mut names: Vec<&str> = built_in_names().collect();
            names.extend(known.iter().map(SmolStr::as_str));
            let near = catena_model::nearest(name, names.into_iter());
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("declare it if the host has it: `extern pure {name}/{given};`"),
            };
            let message = format!("there is no function `{name}`");
            parser.diags.error("unknown-function", span, "", message).help(help);
            return;
        }
    };
    if given < least || given > most {
        let wanted = if least == most { format!("{least}") } else { format!("at least {least}") };
        let message = format!("`{name}` takes {wanted} arguments, not {given}");
        parser.diags.error("arity", span, "", message);
    }
    let host = parser.declared.externs.contains_key(name);
    match position {
        Position::Condition if effect => {
            parser
                .diags
                .error(
                    "effect-in-condition",
                    span,
                    "",
                    format!("`{name}` has an effect and can only stand after `by`"),
                )
                .help("conditions are tried many times; effects happen once, after a reaction");
        }
        Position::Constant if effect || host => {
            parser
                .diags
                .error("not-constant", span, "", format!("`{name}` cannot be called outside of rules"))
                .help("values outside of rules are known when the text is read; only built-in functions without effects are");
        }
        _ => {}
    }
}

/// The functions of the host that a rule calls, also in rules inside of it.
pub(crate) fn externs(ast: &RuleAst, declared: &BTreeMap<SmolStr, Extern>) -> Arc<[Extern]> {
    fn collect(ast: &RuleAst, called: &mut BTreeSet<SmolStr>) {
        for e in ast.expressions() {
            e.walk(&mut |e| match &e.kind {
                ExprKind::Call(name, _) => {
                    called.insert(name.clone());
                }
                ExprKind::Rule(inner) => collect(inner, called),
                _ => {}
            });
        }
    }
    let mut called = BTreeSet::new();
    collect(ast, &mut called);
    called.iter().filter_map(|name| declared.get(name).cloned()).collect()
}
