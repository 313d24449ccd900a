//! The functions every rule can use, and those a host adds.

use crate::outcome::Reaction;
use crate::value::{Float, Value};
use smol_str::SmolStr;

/// The world around a solution: functions that are declared with `extern`, and who wants to see reactions.
pub trait Host {
    /// Calls a function without effects. It must give the same value for the same arguments.
    fn pure(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        let _ = arguments;
        Err(format!("nobody here knows the function `{name}`"))
    }

    /// Calls a function with effects, after the reaction has been committed. It may give a value.
    fn effect(&mut self, name: &str, arguments: &[Value]) -> Result<Option<Value>, String>;

    /// Is told of each reaction.
    fn reacted(&mut self, reaction: &Reaction<'_>) {
        let _ = reaction;
    }
}

/// A host without functions. What is printed is lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn effect(&mut self, name: &str, _: &[Value]) -> Result<Option<Value>, String> {
        if name == "print" { Ok(None) } else { Err(format!("nobody here knows the function `{name}`")) }
    }
}

/// A function that is declared with `extern`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// Its name.
    pub name: SmolStr,
    /// How many arguments it takes.
    pub arity: usize,
    /// Whether it does something, in place of only giving a value.
    pub effect: bool,
}

/// Who executes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    BuiltIn(BuiltIn),
    Pure,
    Effect,
}

type BuiltInFn = fn(&[Value]) -> Result<Value, String>;

/// A function that is always there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    /// The fewest and the most arguments.
    pub(crate) arity: (usize, usize),
    pub(crate) call: BuiltInFn,
}

impl PartialEq for BuiltIn {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for BuiltIn {}

const MANY: usize = 100;

/// The names of all built-in functions, with effects or without.
pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_INS.iter().map(|b| b.name).chain(["print"])
}

pub(crate) fn built_in(name: &str) -> Option<BuiltIn> {
    BUILT_INS.iter().find(|b| b.name == name).copied()
}

const fn built(name: &'static str, least: usize, most: usize, call: BuiltInFn) -> BuiltIn {
    BuiltIn { name, arity: (least, most), call }
}

/// A small set on purpose; `docs/rules.md` has the table.
const BUILT_INS: [BuiltIn; 21] = [
    built("abs", 1, 1, |a| match &a[0] {
        Value::Int(i) => i.checked_abs().map(Value::Int).ok_or_else(too_large),
        Value::Float(f) => float(f.get().abs()),
        other => Err(not("a number", other)),
    }),
    built("ceil", 1, 1, |a| whole(&a[0], f64::ceil)),
    built("contains", 2, 2, |a| match (&a[0], &a[1]) {
        (Value::Solution(s), x) => Ok(Value::Bool(s.contains(x))),
        (Value::Text(t), Value::Text(part)) => Ok(Value::Bool(t.contains(part.as_str()))),
        (Value::Tuple(t), x) => Ok(Value::Bool(t.items().contains(x))),
        (other, _) => Err(not("a solution, a tuple or a string", other)),
    }),
    built("div", 2, 2, |a| match (&a[0], &a[1]) {
        (Value::Int(_), Value::Int(0)) => Err("division by zero".to_owned()),
        (Value::Int(x), Value::Int(y)) => x.checked_div_euclid(*y).map(Value::Int).ok_or_else(too_large),
        (Value::Int(_), other) | (other, _) => Err(not("an int", other)),
    }),
    built("exp", 1, 1, |a| float(number(&a[0])?.exp())),
    built("float", 1, 1, |a| match &a[0] {
        Value::Text(t) => float(t.trim().parse().map_err(|_| format!("{t:?} is not a number"))?),
        other => float(number(other)?),
    }),
    built("floor", 1, 1, |a| whole(&a[0], f64::floor)),
    built("int", 1, 1, |a| match &a[0] {
        Value::Text(t) => {
            t.trim().parse().map(Value::Int).map_err(|_| format!("{t:?} is not a whole number"))
        }
        other => whole(other, f64::trunc),
    }),
    built("kind", 1, 1, |a| {
        let kind = a[0].kind();
        Ok(Value::text(kind.split_once(' ').map_or(kind, |(_, k)| k)))
    }),
    built("list", 1, 1, |a| match &a[0] {
        Value::Solution(s) => {
            let items = std::iter::once(Value::tag("LIST")).chain(s.iter().cloned());
            Value::tuple(items).ok_or_else(too_deep)
        }
        other => Err(not("a solution", other)),
    }),
    built("log", 1, 1, |a| match number(&a[0])? {
        n if n > 0.0 => float(n.ln()),
        _ => Err("the logarithm is defined for numbers above zero only".to_owned()),
    }),
    built("max", 1, MANY, |a| best(a, std::cmp::Ordering::is_gt)),
    built("min", 1, MANY, |a| best(a, std::cmp::Ordering::is_lt)),
    built("nth", 2, 2, |a| match (&a[0], &a[1]) {
        (tuple, Value::Int(n)) => usize::try_from(*n)
            .ok()
            .and_then(|n| tuple.components().get(n).cloned())
            .ok_or_else(|| format!("there is no component {n}; they are counted from 0")),
        (_, other) => Err(not("an int", other)),
    }),
    built("pow", 2, 2, |a| match (&a[0], &a[1]) {
        (Value::Int(x), Value::Int(y)) if *y >= 0 => {
            let power = u32::try_from(*y).ok().and_then(|y| x.checked_pow(y));
            power.map(Value::Int).ok_or_else(too_large)
        }
        (x, y) => float(number(x)?.powf(number(y)?)),
    }),
    built("round", 1, 1, |a| whole(&a[0], f64::round)),
    built("size", 1, 1, |a| match &a[0] {
        Value::Solution(s) => Ok(Value::Int(s.len() as i64)),
        Value::Text(t) => Ok(Value::Int(t.chars().count() as i64)),
        other => Ok(Value::Int(other.components().len() as i64)),
    }),
    built("sqrt", 1, 1, |a| match number(&a[0])? {
        n if n >= 0.0 => float(n.sqrt()),
        _ => Err("the square root is not defined for numbers below zero".to_owned()),
    }),
    built("sum", 1, 1, |a| match &a[0] {
        Value::Solution(s) => s.iter().try_fold(Value::Int(0), |sum, v| crate::eval::add(&sum, v)),
        other => Err(not("a solution", other)),
    }),
    built("tag", 1, 1, |a| match a[0].head() {
        Some(tag) => Ok(Value::tag(tag)),
        None => Err(not("a TAG, or a tuple that starts with one", &a[0])),
    }),
    built("text", 1, 1, |a| match &a[0] {
        Value::Text(t) => Ok(Value::Text(t.clone())),
        other => Ok(Value::text(&other.to_string())),
    }),
];

fn too_large() -> String {
    "the result is too large for an int".to_owned()
}

pub(crate) fn too_deep() -> String {
    "the value would be nested too deeply".to_owned()
}

fn not(wanted: &str, got: &Value) -> String {
    format!("expected {wanted}, not {}", got.kind())
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_number().ok_or_else(|| not("a number", value))
}

pub(crate) fn float(number: f64) -> Result<Value, String> {
    Float::new(number).map(Value::Float).ok_or_else(|| "the result is not a finite number".to_owned())
}

fn whole(value: &Value, f: fn(f64) -> f64) -> Result<Value, String> {
    match value {
        Value::Int(i) => Ok(Value::Int(*i)),
        Value::Float(x) => {
            let n = f(x.get());
            if n.abs() < 9e18 { Ok(Value::Int(n as i64)) } else { Err(too_large()) }
        }
        other => Err(not("a number", other)),
    }
}

fn best(values: &[Value], better: fn(std::cmp::Ordering) -> bool) -> Result<Value, String> {
    let mut best = &values[0];
    if values.len() == 1 {
        crate::eval::compare(best, best)?;
    }
    for value in &values[1..] {
        if better(crate::eval::compare(value, best)?) {
            best = value;
        }
    }
    Ok(best.clone())
}
