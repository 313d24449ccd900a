//! Rules as they are executed: variables are numbered slots, functions are resolved.

use crate::ast::{Expr, ExprKind, Item, Known, Op, Pattern, PatternKind, RuleAst, Toward, Type};
use crate::eval::{Fault, eval_pure};
use crate::functions::{Called, Extern, NoHost, built_in};
use crate::rule::Rule;
use crate::value::Value;
use catena_model::Span;
use smol_str::SmolStr;
use std::sync::Arc;

/// A numbered variable.
pub(crate) type Slot = u16;

/// What variables are bound to, by slot.
pub(crate) type Bindings = Vec<Option<Value>>;

pub(crate) struct Code {
    pub(crate) slots: Vec<SmolStr>,
    /// What is consumed, then what is kept.
    pub(crate) patterns: Vec<Pat>,
    /// How many patterns are consumed.
    pub(crate) take: usize,
    pub(crate) give: Vec<Product>,
    /// The conjuncts of `if`, in order, with the slots each needs.
    pub(crate) conditions: Vec<(Ex, Vec<Slot>)>,
    pub(crate) prefer: Option<(Toward, Ex)>,
}

#[derive(Clone, Debug)]
pub(crate) enum Pat {
    Value(Value),
    Var(Slot, Option<Type>),
    Any,
    As(Slot, Box<Pat>),
    Tuple(Box<[Pat]>),
    Solution(Box<[Pat]>, Option<Slot>),
}

pub(crate) enum Product {
    One(Ex),
    Rest(Slot),
    /// An effect whose value is a product, if it gives one.
    Effect(SmolStr, Vec<Ex>, Span),
}

pub(crate) struct Ex {
    pub(crate) kind: ExKind,
    pub(crate) span: Span,
}

pub(crate) enum ExKind {
    Value(Value),
    Var(Slot),
    Neg(Box<Ex>),
    Not(Box<Ex>),
    Binary(Op, Box<Ex>, Box<Ex>),
    Tuple(Vec<Ex>),
    Solution(Vec<ExItem>),
    /// The value of the pair with this TAG.
    Attribute(Box<Ex>, SmolStr),
    Call(Called, SmolStr, Vec<Ex>),
    /// A rule that is complete once these variables are known.
    Rule(Box<RuleAst>, Vec<(SmolStr, Slot)>, Arc<[Extern]>),
}

pub(crate) enum ExItem {
    One(Ex),
    Rest(Slot),
}

/// The value of an expression without variables and without functions of the host.
pub(crate) fn constant(expr: &Expr, externs: &Arc<[Extern]>) -> Result<Value, Fault> {
    let compiled = Compiler { slots: Vec::new(), externs }.expr(expr);
    eval_pure(&compiled, &[], &NoHost)
}

struct Compiler<'e> {
    slots: Vec<SmolStr>,
    externs: &'e Arc<[Extern]>,
}

impl Code {
    /// The rule must have been checked.
    pub(crate) fn new(ast: &RuleAst, externs: &Arc<[Extern]>) -> Self {
        let mut c = Compiler { slots: Vec::new(), externs };
        let patterns = ast.patterns().map(|p| c.pattern(p)).collect();
        let give = ast.give.iter().map(|i| c.product(i)).collect();
        let mut conditions = Vec::new();
        if let Some(when) = &ast.when {
            c.conjuncts(when, &mut conditions);
        }
        let prefer = ast.prefer.as_ref().map(|(toward, e)| (*toward, c.expr(e)));
        Self { slots: c.slots, patterns, take: ast.take.len(), give, conditions, prefer }
    }

    pub(crate) fn bindings(&self) -> Bindings {
        vec![None; self.slots.len()]
    }

    pub(crate) fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.iter().position(|s| s == name).map(|s| s as Slot)
    }
}

impl Compiler<'_> {
    fn slot(&mut self, name: &SmolStr) -> Slot {
        let at = self.slots.iter().position(|s| s == name).unwrap_or_else(|| {
            self.slots.push(name.clone());
            self.slots.len() - 1
        });
        at as Slot
    }

    fn pattern(&mut self, p: &Pattern) -> Pat {
        match &p.kind {
            PatternKind::Value(v) => Pat::Value(v.clone()),
            PatternKind::Var(name, kind) => Pat::Var(self.slot(name), *kind),
            PatternKind::Any => Pat::Any,
            PatternKind::As(name, inner) => Pat::As(self.slot(name), Box::new(self.pattern(inner))),
            PatternKind::Tuple(items) => Pat::Tuple(items.iter().map(|i| self.pattern(i)).collect()),
            PatternKind::Solution(items, rest) => {
                let items = items.iter().map(|i| self.pattern(i)).collect();
                Pat::Solution(items, rest.as_ref().map(|r| self.slot(r)))
            }
        }
    }

    fn product(&mut self, item: &Item) -> Product {
        match item {
            Item::Rest(name, _) => Product::Rest(self.slot(name)),
            Item::One(e) => match &e.kind {
                ExprKind::Call(name, arguments) if self.called(name) == Called::Effect => {
                    Product::Effect(name.clone(), arguments.iter().map(|a| self.expr(a)).collect(), e.span)
                }
                _ => Product::One(self.expr(e)),
            },
        }
    }

    fn conjuncts(&mut self, e: &Expr, out: &mut Vec<(Ex, Vec<Slot>)>) {
        if let ExprKind::Binary(Op::And, a, b) = &e.kind {
            self.conjuncts(a, out);
            self.conjuncts(b, out);
            return;
        }
        let mut needs = Vec::new();
        e.names(&mut |name, _| needs.extend(self.slots.iter().position(|s| s == name).map(|s| s as Slot)));
        needs.sort_unstable();
        needs.dedup();
        out.push((self.expr(e), needs));
    }

    fn called(&self, name: &str) -> Called {
        match self.externs.iter().find(|e| e.name == name) {
            Some(e) if e.effect => Called::Effect,
            Some(_) => Called::Pure,
            None => built_in(name).map_or(Called::Effect, Called::BuiltIn),
        }
    }

    fn expr(&mut self, e: &Expr) -> Ex {
        let kind = match &e.kind {
            ExprKind::Value(v) => ExKind::Value(v.clone()),
            ExprKind::Var(name) => ExKind::Var(self.slot(name)),
            ExprKind::Neg(inner) => ExKind::Neg(Box::new(self.expr(inner))),
            ExprKind::Not(inner) => ExKind::Not(Box::new(self.expr(inner))),
            ExprKind::Binary(op, a, b) => ExKind::Binary(*op, Box::new(self.expr(a)), Box::new(self.expr(b))),
            ExprKind::Tuple(items) => ExKind::Tuple(items.iter().map(|i| self.expr(i)).collect()),
            ExprKind::Solution(items) => ExKind::Solution(
                items
                    .iter()
                    .map(|i| match i {
                        Item::One(e) => ExItem::One(self.expr(e)),
                        Item::Rest(name, _) => ExItem::Rest(self.slot(name)),
                    })
                    .collect(),
            ),
            ExprKind::Attribute(inner, name) => {
                ExKind::Attribute(Box::new(self.expr(inner)), name.to_ascii_uppercase().into())
            }
            ExprKind::Call(name, arguments) => {
                let called = self.called(name);
                ExKind::Call(called, name.clone(), arguments.iter().map(|a| self.expr(a)).collect())
            }
            ExprKind::Rule(rule) => {
                let mut captured: Vec<(SmolStr, Slot)> = Vec::new();
                rule.names(&mut |name| {
                    if let Some(slot) = self.slots.iter().position(|s| s == name)
                        && !captured.iter().any(|(n, _)| n == name)
                    {
                        captured.push((name.clone(), slot as Slot));
                    }
                });
                if captured.is_empty() {
                    ExKind::Value(Value::Rule(Rule::closed(rule, &Known::new(), self.externs)))
                } else {
                    ExKind::Rule(rule.clone(), captured, self.externs.clone())
                }
            }
        };
        Ex { kind, span: e.span }
    }
}

impl Ex {
    /// Whether it calls a function with effects.
    pub(crate) fn has_effect(&self) -> bool {
        match &self.kind {
            ExKind::Value(_) | ExKind::Var(_) | ExKind::Rule(..) => false,
            ExKind::Neg(e) | ExKind::Not(e) | ExKind::Attribute(e, _) => e.has_effect(),
            ExKind::Binary(_, a, b) => a.has_effect() || b.has_effect(),
            ExKind::Tuple(items) => items.iter().any(Ex::has_effect),
            ExKind::Solution(items) => items.iter().any(|i| matches!(i, ExItem::One(e) if e.has_effect())),
            ExKind::Call(called, _, arguments) => {
                *called == Called::Effect || arguments.iter().any(Ex::has_effect)
            }
        }
    }
}
