//! The values of expressions.

use crate::ast::{Known, Op};
use crate::code::{Ex, ExItem, ExKind};
use crate::functions::{Called, Host, float, too_deep};
use crate::rule::Rule;
use crate::solution::Solution;
use crate::value::{MAX_DEPTH, Value};
use catena_model::{Diagnostic, Severity, Span};
use std::cmp::Ordering;

/// Why an expression has no value, and where it is written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// A stable, short name for the kind of fault.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub span: Span,
}

impl Fault {
    pub(crate) fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), span }
    }

    /// As a problem of the text that the expression is in.
    pub fn diagnostic(&self, rule: Option<&str>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code: self.code,
            message: self.message.clone(),
            help: None,
            span: self.span,
            path: rule.unwrap_or_default().to_owned(),
        }
    }

    /// Whether a molecule only lacks an attribute. In conditions it then does not match, as with a pattern.
    pub(crate) fn is_missing(&self) -> bool {
        self.code == NO_ATTRIBUTE
    }
}

const NO_ATTRIBUTE: &str = "no-attribute";

/// Whether effects may happen.
enum World<'h> {
    Pure(&'h dyn Host),
    Full(&'h mut dyn Host),
}

/// The value of an expression without effects.
pub(crate) fn eval_pure(ex: &Ex, bindings: &[Option<Value>], host: &dyn Host) -> Result<Value, Fault> {
    eval(ex, bindings, &mut World::Pure(host))
}

/// The value of an expression; effects in it happen.
pub(crate) fn eval_full(ex: &Ex, bindings: &[Option<Value>], host: &mut dyn Host) -> Result<Value, Fault> {
    eval(ex, bindings, &mut World::Full(host))
}

/// Whether a condition holds.
pub(crate) fn holds(ex: &Ex, bindings: &[Option<Value>], host: &dyn Host) -> Result<bool, Fault> {
    match eval_pure(ex, bindings, host) {
        Ok(value) => truth(&value, ex.span),
        Err(fault) if fault.is_missing() => Ok(false),
        Err(fault) => Err(fault),
    }
}

fn truth(value: &Value, span: Span) -> Result<bool, Fault> {
    match value {
        Value::Bool(b) => Ok(*b),
        other => Err(Fault::new("type", span, format!("expected a bool, not {}", other.kind()))),
    }
}

fn bound(bindings: &[Option<Value>], slot: u16, span: Span) -> Result<Value, Fault> {
    let value = bindings.get(usize::from(slot)).cloned().flatten();
    value.ok_or_else(|| Fault::new("unbound", span, "a variable has no value"))
}

fn eval(ex: &Ex, bindings: &[Option<Value>], world: &mut World<'_>) -> Result<Value, Fault> {
    let wrong = |message: String| Fault::new("type", ex.span, message);
    match &ex.kind {
        ExKind::Value(v) => Ok(v.clone()),
        ExKind::Var(slot) => bound(bindings, *slot, ex.span),
        ExKind::Neg(inner) => match eval(inner, bindings, world)? {
            Value::Int(i) => i.checked_neg().map(Value::Int).ok_or_else(|| overflow(ex.span)),
            Value::Float(f) => float(-f.get()).map_err(wrong),
            other => Err(wrong(format!("expected a number after `-`, not {}", other.kind()))),
        },
        ExKind::Not(inner) => {
            let value = eval(inner, bindings, world)?;
            Ok(Value::Bool(!truth(&value, inner.span)?))
        }
        ExKind::Binary(op @ (Op::And | Op::Or), a, b) => {
            let left = truth(&eval(a, bindings, world)?, a.span)?;
            if left == (*op == Op::Or) {
                return Ok(Value::Bool(left));
            }
            let right = eval(b, bindings, world)?;
            Ok(Value::Bool(truth(&right, b.span)?))
        }
        ExKind::Binary(op, a, b) => {
            let a = eval(a, bindings, world)?;
            let b = eval(b, bindings, world)?;
            binary(*op, &a, &b, ex.span)
        }
        ExKind::Tuple(items) => {
            let items = items.iter().map(|i| eval(i, bindings, world)).collect::<Result<Vec<_>, _>>()?;
            Value::tuple(items).ok_or_else(|| Fault::new("too-deep", ex.span, too_deep()))
        }
        ExKind::Solution(items) => {
            let solution = solution(items, bindings, world, ex.span)?;
            let value = Value::Solution(solution);
            if value.depth() > MAX_DEPTH {
                return Err(Fault::new("too-deep", ex.span, too_deep()));
            }
            Ok(value)
        }
        ExKind::Attribute(inner, tag) => {
            let value = eval(inner, bindings, world)?;
            value.tagged_attribute(tag).cloned().ok_or_else(|| {
                Fault::new(NO_ATTRIBUTE, ex.span, format!("there is no pair `{tag}:…` in {}", value.kind()))
            })
        }
        ExKind::Call(called, name, arguments) => {
            let arguments =
                arguments.iter().map(|a| eval(a, bindings, world)).collect::<Result<Vec<_>, _>>()?;
            let failed = |message: String| Fault::new("call", ex.span, format!("`{name}`: {message}"));
            match (called, world) {
                (Called::BuiltIn(b), _) => (b.call)(&arguments).map_err(failed),
                (Called::Pure, World::Pure(host)) => host.pure(name, &arguments).map_err(failed),
                (Called::Pure, World::Full(host)) => host.pure(name, &arguments).map_err(failed),
                (Called::Effect, World::Full(host)) => {
                    let value = host.effect(name, &arguments).map_err(failed)?;
                    value.ok_or_else(|| failed("it gives no value that could be used here".to_owned()))
                }
                (Called::Effect, World::Pure(_)) => Err(failed("effects are not possible here".to_owned())),
            }
        }
        ExKind::Rule(ast, captured, externs) => {
            let mut known = Known::new();
            for (name, slot) in captured {
                known.insert(name.clone(), bound(bindings, *slot, ex.span)?);
            }
            let rule = Rule::closed(ast, &known, externs);
            if rule.depth() > MAX_DEPTH {
                return Err(Fault::new("too-deep", ex.span, too_deep()));
            }
            Ok(Value::Rule(rule))
        }
    }
}

fn solution(
    items: &[ExItem],
    bindings: &[Option<Value>],
    world: &mut World<'_>,
    span: Span,
) -> Result<Solution, Fault> {
    let mut rests = Vec::new();
    let mut ones = Vec::with_capacity(items.len());
    for item in items {
        match item {
            ExItem::One(e) => ones.push(eval(e, bindings, world)?),
            ExItem::Rest(slot) => match bound(bindings, *slot, span)? {
                Value::Solution(s) => rests.push(s),
                other => ones.push(other),
            },
        }
    }
    // Rests are shared; what is added to the largest one is usually little.
    let Some(mut all) = rests.pop() else { return Ok(ones.into_iter().collect()) };
    for rest in rests {
        all.extend(rest);
    }
    if ones.len() > 16 {
        all.extend(ones.into_iter().collect());
    } else {
        for one in ones {
            all.insert(one);
        }
    }
    Ok(all)
}

fn overflow(span: Span) -> Fault {
    Fault::new("overflow", span, "the result is too large for an int")
}

fn binary(op: Op, a: &Value, b: &Value, span: Span) -> Result<Value, Fault> {
    let wrong = |message: String| Fault::new("type", span, message);
    let order = || compare(a, b).map_err(wrong);
    Ok(match op {
        Op::Eq => Value::Bool(same(a, b)),
        Op::Ne => Value::Bool(!same(a, b)),
        Op::Lt => Value::Bool(order()?.is_lt()),
        Op::Le => Value::Bool(order()?.is_le()),
        Op::Gt => Value::Bool(order()?.is_gt()),
        Op::Ge => Value::Bool(order()?.is_ge()),
        _ => return arithmetic(op, a, b, span),
    })
}

fn arithmetic(op: Op, a: &Value, b: &Value, span: Span) -> Result<Value, Fault> {
    let zero = || Fault::new("division-by-zero", span, "division by zero");
    if let (Op::Add, Value::Text(a), Value::Text(b)) = (op, a, b) {
        return Ok(Value::Text(format!("{a}{b}").into()));
    }
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        let whole = match op {
            Op::Add => a.checked_add(*b),
            Op::Sub => a.checked_sub(*b),
            Op::Mul => a.checked_mul(*b),
            Op::Rem if *b == 0 => return Err(zero()),
            Op::Rem => a.checked_rem_euclid(*b),
            _ => None,
        };
        if op != Op::Div {
            return whole.map(Value::Int).ok_or_else(|| overflow(span));
        }
    }
    let (Some(x), Some(y)) = (a.as_number(), b.as_number()) else {
        let message = format!("`{}` does not take {} and {}", op.symbol(), a.kind(), b.kind());
        return Err(Fault::new("type", span, message));
    };
    if matches!(op, Op::Div | Op::Rem) && y == 0.0 {
        return Err(zero());
    }
    let result = match op {
        Op::Add => x + y,
        Op::Sub => x - y,
        Op::Mul => x * y,
        Op::Rem => x.rem_euclid(y),
        _ => x / y,
    };
    float(result).map_err(|message| Fault::new("overflow", span, message))
}

/// Adds two values, for functions that do not know where they are called.
pub(crate) fn add(a: &Value, b: &Value) -> Result<Value, String> {
    arithmetic(Op::Add, a, b, Span::default()).map_err(|f| f.message)
}

/// Numbers are the same if they are equal, whichever kind they are of.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(_), Value::Float(_)) | (Value::Float(_), Value::Int(_)) => a.as_number() == b.as_number(),
        _ => a == b,
    }
}

/// The order of two numbers, strings, truth values or TAGs.
pub(crate) fn compare(a: &Value, b: &Value) -> Result<Ordering, String> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) | (Value::Tag(a), Value::Tag(b)) => Ok(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        _ => match (a.as_number(), b.as_number()) {
            (Some(x), Some(y)) => x.partial_cmp(&y).ok_or_else(|| "not a number".to_owned()),
            _ => Err(format!("{} and {} have no order", a.kind(), b.kind())),
        },
    }
}
