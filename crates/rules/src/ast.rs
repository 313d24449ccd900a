//! Rules as they are written: by names, with places. Printed and analysed in this form; executed as [`Code`].
//!
//! [`Code`]: crate::code::Code

use crate::value::Value;
use catena_model::Span;
use smol_str::SmolStr;
use std::collections::HashMap;

/// What variables stand for, by name.
pub(crate) type Known = HashMap<SmolStr, Value>;

#[derive(Clone, Debug)]
pub(crate) struct RuleAst {
    /// Whether it disappears after one reaction (`replace-one`).
    pub(crate) once: bool,
    pub(crate) take: Vec<Pattern>,
    pub(crate) keep: Vec<Pattern>,
    pub(crate) give: Vec<Item>,
    pub(crate) when: Option<Expr>,
    pub(crate) prefer: Option<(Toward, Expr)>,
    pub(crate) priority: i64,
    pub(crate) span: Span,
}

/// Which end of a scale is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toward {
    Min,
    Max,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: PatternKind,
    pub(crate) span: Span,
}

/// A variable in a pattern.
pub(crate) struct Bound<'p> {
    pub(crate) name: &'p SmolStr,
    /// Whether it is a `?rest`.
    pub(crate) rest: bool,
    pub(crate) kind: Option<Type>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum PatternKind {
    Value(Value),
    Var(SmolStr, Option<Type>),
    Any,
    As(SmolStr, Box<Pattern>),
    Tuple(Vec<Pattern>),
    Solution(Vec<Pattern>, Option<SmolStr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    Int,
    Float,
    Text,
    Bool,
    Solution,
    Rule,
}

impl Type {
    pub(crate) const ALL: [(&'static str, Type); 6] = [
        ("int", Type::Int),
        ("float", Type::Float),
        ("string", Type::Text),
        ("bool", Type::Bool),
        ("sol", Type::Solution),
        ("rule", Type::Rule),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, t)| *t == self).map_or("", |(n, _)| n)
    }

    pub(crate) fn has(self, value: &Value) -> bool {
        matches!(
            (self, value),
            (Type::Int, Value::Int(_))
                | (Type::Float, Value::Float(_))
                | (Type::Text, Value::Text(_))
                | (Type::Bool, Value::Bool(_))
                | (Type::Solution, Value::Solution(_))
                | (Type::Rule, Value::Rule(_))
        )
    }
}

/// An element of a solution that is written down, or a product.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    One(Expr),
    /// `?w`: all elements of it.
    Rest(SmolStr, Span),
}

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How deeply it is nested, counted as for values.
    pub(crate) depth: u16,
}

#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    Value(Value),
    Var(SmolStr),
    Neg(Box<Expr>),
    Not(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Tuple(Vec<Expr>),
    Solution(Vec<Item>),
    /// `m.attr`
    Attribute(Box<Expr>, SmolStr),
    Call(SmolStr, Vec<Expr>),
    /// A rule that may use variables of the rule around it.
    Rule(Box<RuleAst>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Or,
    And,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

impl Op {
    pub(crate) const ALL: [(&'static str, Op); 13] = [
        ("or", Op::Or),
        ("and", Op::And),
        ("<", Op::Lt),
        ("<=", Op::Le),
        (">", Op::Gt),
        (">=", Op::Ge),
        ("==", Op::Eq),
        ("!=", Op::Ne),
        ("+", Op::Add),
        ("-", Op::Sub),
        ("*", Op::Mul),
        ("/", Op::Div),
        ("%", Op::Rem),
    ];

    pub(crate) fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(_, o)| *o == self).map_or("", |(s, _)| s)
    }

    /// Binding strength; higher binds tighter. `not` has 3 and `:` has 5.
    pub(crate) fn strength(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And => 2,
            Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne => 4,
            Op::Add | Op::Sub => 6,
            Op::Mul | Op::Div | Op::Rem => 7,
        }
    }
}

impl Pattern {
    /// Calls `f` with each variable it binds.
    pub(crate) fn variables<'p>(&'p self, f: &mut dyn FnMut(Bound<'p>)) {
        let mut bound = |name, rest, kind| f(Bound { name, rest, kind, span: self.span });
        match &self.kind {
            PatternKind::Value(_) | PatternKind::Any => {}
            PatternKind::Var(name, kind) => bound(name, false, *kind),
            PatternKind::As(name, inner) => {
                bound(name, false, None);
                inner.variables(f);
            }
            PatternKind::Tuple(items) => {
                for item in items {
                    item.variables(f);
                }
            }
            PatternKind::Solution(items, rest) => {
                if let Some(rest) = rest {
                    bound(rest, true, None);
                }
                for item in items {
                    item.variables(f);
                }
            }
        }
    }

    /// Calls `f` with each TAG in it.
    pub(crate) fn tags<'p>(&'p self, f: &mut impl FnMut(&'p str)) {
        match &self.kind {
            PatternKind::Value(Value::Tag(tag)) => f(tag),
            PatternKind::Value(_) | PatternKind::Any | PatternKind::Var(..) => {}
            PatternKind::As(_, inner) => inner.tags(f),
            PatternKind::Tuple(items) | PatternKind::Solution(items, _) => {
                for item in items {
                    item.tags(f);
                }
            }
        }
    }

    /// The TAG it starts with.
    pub(crate) fn head(&self) -> Option<&str> {
        match &self.kind {
            PatternKind::Value(v) => v.head(),
            PatternKind::Tuple(items) => match &items.first()?.kind {
                PatternKind::Value(Value::Tag(tag)) => Some(tag),
                _ => None,
            },
            PatternKind::As(_, inner) => inner.head(),
            _ => None,
        }
    }

    fn replaced(&self, known: &Known) -> Pattern {
        let all = |items: &[Pattern]| items.iter().map(|i| i.replaced(known)).collect::<Vec<_>>();
        let kind = match &self.kind {
            PatternKind::Value(_) | PatternKind::Any => self.kind.clone(),
            PatternKind::Var(name, _) => match known.get(name) {
                Some(value) => PatternKind::Value(value.clone()),
                None => self.kind.clone(),
            },
            // A name that is known and the pattern beside it must both fit; only the value says all.
            PatternKind::As(name, inner) => match known.get(name) {
                Some(value) => PatternKind::Value(value.clone()),
                None => PatternKind::As(name.clone(), Box::new(inner.replaced(known))),
            },
            PatternKind::Tuple(items) => PatternKind::Tuple(all(items)),
            PatternKind::Solution(items, rest) => {
                let mut items = all(items);
                let mut rest = rest.clone();
                if let Some(Value::Solution(elements)) = rest.as_ref().and_then(|r| known.get(r)) {
                    let one = |v: &Value| Pattern { kind: PatternKind::Value(v.clone()), span: self.span };
                    items.extend(elements.iter().map(one));
                    rest = None;
                }
                PatternKind::Solution(items, rest)
            }
        };
        Pattern { kind, span: self.span }
    }

    fn depth(&self) -> u16 {
        let most = |items: &[Pattern]| items.iter().map(Pattern::depth).max().unwrap_or(0);
        1 + match &self.kind {
            PatternKind::Value(v) => v.depth(),
            PatternKind::Var(..) | PatternKind::Any => 0,
            PatternKind::As(_, inner) => inner.depth(),
            PatternKind::Tuple(items) | PatternKind::Solution(items, _) => most(items),
        }
    }
}

impl Item {
    fn replaced(&self, known: &Known) -> Vec<Item> {
        match self {
            Item::One(e) => vec![Item::One(e.replaced(known))],
            Item::Rest(name, span) => match known.get(name) {
                Some(Value::Solution(elements)) => {
                    let one = |v: &Value| Expr::new(ExprKind::Value(v.clone()), *span);
                    elements.iter().map(|v| Item::One(one(v))).collect()
                }
                _ => vec![self.clone()],
            },
        }
    }
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Self {
        let of_item = |i: &Item| if let Item::One(e) = i { e.depth } else { 0 };
        let depth = match &kind {
            ExprKind::Value(v) => v.depth(),
            ExprKind::Var(_) => 0,
            ExprKind::Neg(e) | ExprKind::Not(e) | ExprKind::Attribute(e, _) => 1 + e.depth,
            ExprKind::Binary(_, a, b) => 1 + a.depth.max(b.depth),
            ExprKind::Tuple(items) | ExprKind::Call(_, items) => {
                1 + items.iter().map(|e| e.depth).max().unwrap_or(0)
            }
            ExprKind::Solution(items) => 1 + items.iter().map(of_item).max().unwrap_or(0),
            ExprKind::Rule(rule) => 1 + rule.depth(),
        };
        Self { kind, span, depth }
    }

    /// Calls `f` for the expression and all in it, but not for what is inside of rules.
    pub(crate) fn walk<'e>(&'e self, f: &mut impl FnMut(&'e Expr)) {
        f(self);
        match &self.kind {
            ExprKind::Value(_) | ExprKind::Var(_) | ExprKind::Rule(_) => {}
            ExprKind::Neg(e) | ExprKind::Not(e) | ExprKind::Attribute(e, _) => e.walk(f),
            ExprKind::Binary(_, a, b) => {
                a.walk(f);
                b.walk(f);
            }
            ExprKind::Tuple(items) | ExprKind::Call(_, items) => items.iter().for_each(|i| i.walk(f)),
            ExprKind::Solution(items) => items.iter().for_each(|i| {
                if let Item::One(e) = i {
                    e.walk(f);
                }
            }),
        }
    }

    /// The names of variables in it, also of those that rules in it take from around them.
    pub(crate) fn names<'e>(&'e self, f: &mut dyn FnMut(&'e SmolStr, Span)) {
        self.walk(&mut |e| match &e.kind {
            ExprKind::Var(name) => f(name, e.span),
            ExprKind::Solution(items) => items.iter().for_each(|i| {
                if let Item::Rest(name, span) = i {
                    f(name, *span);
                }
            }),
            ExprKind::Rule(rule) => rule.names(&mut |name| f(name, e.span)),
            _ => {}
        });
    }

    fn replaced(&self, known: &Known) -> Expr {
        let one = |e: &Expr| Box::new(e.replaced(known));
        let kind = match &self.kind {
            ExprKind::Value(_) => self.kind.clone(),
            ExprKind::Var(name) => match known.get(name) {
                Some(value) => ExprKind::Value(value.clone()),
                None => self.kind.clone(),
            },
            ExprKind::Neg(e) => ExprKind::Neg(one(e)),
            ExprKind::Not(e) => ExprKind::Not(one(e)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, one(a), one(b)),
            ExprKind::Tuple(items) => ExprKind::Tuple(items.iter().map(|e| e.replaced(known)).collect()),
            ExprKind::Call(f, items) => {
                ExprKind::Call(f.clone(), items.iter().map(|e| e.replaced(known)).collect())
            }
            ExprKind::Solution(items) => {
                ExprKind::Solution(items.iter().flat_map(|i| i.replaced(known)).collect())
            }
            ExprKind::Attribute(e, attr) => ExprKind::Attribute(one(e), attr.clone()),
            ExprKind::Rule(rule) => ExprKind::Rule(Box::new(rule.replaced(known))),
        };
        Expr::new(kind, self.span)
    }
}

impl RuleAst {
    /// The patterns whose molecules are consumed, then those that are only read.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.take.iter().chain(&self.keep)
    }

    /// The expressions in it.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let given = self.give.iter().filter_map(|i| if let Item::One(e) = i { Some(e) } else { None });
        given.chain(&self.when).chain(self.prefer.as_ref().map(|(_, e)| e))
    }

    /// All names of variables in it.
    pub(crate) fn names<'r>(&'r self, f: &mut dyn FnMut(&'r SmolStr)) {
        for pattern in self.patterns() {
            pattern.variables(&mut |bound| f(bound.name));
        }
        for expr in self.expressions() {
            expr.names(&mut |name, _| f(name));
        }
        for item in &self.give {
            if let Item::Rest(name, _) = item {
                f(name);
            }
        }
    }

    /// The rule with values in place of names.
    pub(crate) fn replaced(&self, known: &Known) -> RuleAst {
        let patterns = |list: &[Pattern]| list.iter().map(|p| p.replaced(known)).collect();
        RuleAst {
            take: patterns(&self.take),
            keep: patterns(&self.keep),
            give: self.give.iter().flat_map(|i| i.replaced(known)).collect(),
            when: self.when.as_ref().map(|e| e.replaced(known)),
            prefer: self.prefer.as_ref().map(|(toward, e)| (*toward, e.replaced(known))),
            ..*self
        }
    }

    /// How deeply it is nested.
    pub(crate) fn depth(&self) -> u16 {
        let patterns = self.patterns().map(Pattern::depth).max().unwrap_or(0);
        let expressions = self.expressions().map(|e| e.depth).max().unwrap_or(0);
        1 + patterns.max(expressions)
    }
}
