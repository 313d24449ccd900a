//! Values and rules as text that can be read again.

use crate::ast::{Expr, ExprKind, Item, Op, Pattern, PatternKind, RuleAst, Toward};
use crate::solution::Solution;
use crate::value::Value;
use std::fmt::{self, Display, Formatter, Write};

/// What stands around a value decides whether it needs parentheses.
const TUPLE: u8 = 5;
const ATOM: u8 = 8;

/// `{}` prints rules in full, `{:#}` by their names.
impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        value(f, self, 0)
    }
}

impl Display for Solution {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('<')?;
        list(f, self.iter(), |f, v| value(f, v, TUPLE))?;
        f.write_char('>')
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut one: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        one(f, item)?;
    }
    Ok(())
}

fn value(f: &mut Formatter<'_>, v: &Value, around: u8) -> fmt::Result {
    match v {
        Value::Bool(b) => write!(f, "{b}"),
        // Numbers below zero are read as a sign and a number.
        Value::Int(i) if *i < 0 && around >= ATOM => write!(f, "({i})"),
        Value::Int(i) => write!(f, "{i}"),
        Value::Float(x) if x.get() < 0.0 && around >= ATOM => write!(f, "({:?})", x.get()),
        Value::Float(x) => write!(f, "{:?}", x.get()),
        Value::Text(t) => quoted(f, t),
        Value::Tag(t) => f.write_str(t),
        Value::Tuple(t) => {
            let nested = around > TUPLE;
            f.write_str(if nested { "(" } else { "" })?;
            for (i, item) in t.items().iter().enumerate() {
                f.write_str(if i > 0 { ":" } else { "" })?;
                value(f, item, TUPLE + 1)?;
            }
            f.write_str(if nested { ")" } else { "" })
        }
        Value::Solution(s) => Display::fmt(s, f),
        Value::Rule(r) => match r.name() {
            Some(name) if f.alternate() => f.write_str(name),
            _ => write!(f, "({})", r.text()),
        },
    }
}

fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '\r' => f.write_str("\\r")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// A rule as it would be written.
pub(crate) fn rule_text(rule: &RuleAst) -> String {
    struct Shown<'r>(&'r RuleAst);
    impl Display for Shown<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            write_rule(f, self.0)
        }
    }
    Shown(rule).to_string()
}

fn write_rule(f: &mut Formatter<'_>, rule: &RuleAst) -> fmt::Result {
    f.write_str(if rule.once { "replace-one " } else { "replace " })?;
    list(f, &rule.take, pattern)?;
    if !rule.keep.is_empty() {
        f.write_str(" keeping ")?;
        list(f, &rule.keep, pattern)?;
    }
    f.write_str(" by")?;
    if !rule.give.is_empty() {
        f.write_char(' ')?;
        list(f, &rule.give, item)?;
    }
    if let Some(when) = &rule.when {
        f.write_str(" if ")?;
        expr(f, when, 0)?;
    }
    if let Some((toward, e)) = &rule.prefer {
        f.write_str(if *toward == Toward::Max { " prefer max " } else { " prefer min " })?;
        expr(f, e, 0)?;
    }
    if rule.priority != 0 {
        write!(f, " priority {}", rule.priority)?;
    }
    Ok(())
}

fn pattern(f: &mut Formatter<'_>, p: &Pattern) -> fmt::Result {
    match &p.kind {
        PatternKind::As(name, inner) => {
            write!(f, "{name}@")?;
            pattern(f, inner)
        }
        PatternKind::Tuple(items) => {
            for (i, item) in items.iter().enumerate() {
                f.write_str(if i > 0 { ":" } else { "" })?;
                part(f, item)?;
            }
            Ok(())
        }
        PatternKind::Value(v) => value(f, v, 0),
        _ => part(f, p),
    }
}

/// A pattern as a component of a tuple.
fn part(f: &mut Formatter<'_>, p: &Pattern) -> fmt::Result {
    match &p.kind {
        PatternKind::Value(v) => value(f, v, TUPLE + 1),
        PatternKind::Var(name, None) => f.write_str(name),
        PatternKind::Var(name, Some(kind)) => write!(f, "{name}::{}", kind.name()),
        PatternKind::Any => f.write_char('_'),
        PatternKind::As(..) | PatternKind::Tuple(_) => {
            f.write_char('(')?;
            pattern(f, p)?;
            f.write_char(')')
        }
        PatternKind::Solution(items, rest) => {
            f.write_char('<')?;
            list(f, items, pattern)?;
            if let Some(rest) = rest {
                write!(f, "{}?{rest}", if items.is_empty() { "" } else { ", " })?;
            }
            f.write_char('>')
        }
    }
}

fn item(f: &mut Formatter<'_>, item: &Item) -> fmt::Result {
    match item {
        Item::One(e) => expr(f, e, TUPLE),
        Item::Rest(name, _) => write!(f, "?{name}"),
    }
}

fn expr(f: &mut Formatter<'_>, e: &Expr, around: u8) -> fmt::Result {
    let wrap = |f: &mut Formatter<'_>, own: u8, inner: &dyn Fn(&mut Formatter<'_>) -> fmt::Result| {
        if own < around {
            f.write_char('(')?;
            inner(f)?;
            f.write_char(')')
        } else {
            inner(f)
        }
    };
    match &e.kind {
        ExprKind::Value(v) => value(f, v, around),
        ExprKind::Var(name) => f.write_str(name),
        ExprKind::Neg(inner) => wrap(f, ATOM - 1, &|f| {
            f.write_char('-')?;
            expr(f, inner, ATOM)
        }),
        ExprKind::Not(inner) => wrap(f, 3, &|f| {
            f.write_str("not ")?;
            expr(f, inner, 4)
        }),
        ExprKind::Binary(op, a, b) => wrap(f, op.strength(), &|f| {
            let own = op.strength();
            // Comparisons do not chain.
            let left =
                if matches!(op, Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne) { own + 1 } else { own };
            expr(f, a, left)?;
            write!(f, " {} ", op.symbol())?;
            expr(f, b, own + 1)
        }),
        ExprKind::Tuple(items) => wrap(f, TUPLE, &|f| {
            for (i, item) in items.iter().enumerate() {
                f.write_str(if i > 0 { ":" } else { "" })?;
                expr(f, item, TUPLE + 1)?;
            }
            Ok(())
        }),
        ExprKind::Solution(items) => {
            f.write_char('<')?;
            list(f, items, item)?;
            f.write_char('>')
        }
        ExprKind::Attribute(inner, attr) => {
            expr(f, inner, ATOM)?;
            write!(f, ".{attr}")
        }
        ExprKind::Call(name, arguments) => {
            write!(f, "{name}(")?;
            list(f, arguments, |f, a| expr(f, a, 0))?;
            f.write_char(')')
        }
        ExprKind::Rule(rule) => {
            f.write_char('(')?;
            write_rule(f, rule)?;
            f.write_char(')')
        }
    }
}
