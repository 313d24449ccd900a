//! Values as text that says all there is to know about them, for messages and files.
//!
//! The text is that of a small program: declarations of the functions and names that rules in it have, then the value.
//! Values without rules are just themselves: `TASK:1:<SRC:<>>`.

use crate::functions::Extern;
use crate::parser::{MAX_TEXT, Parser};
use crate::rule::Rule;
use crate::solution::Solution;
use crate::value::Value;
use catena_model::Diagnostics;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::collections::BTreeMap;
use std::fmt::Write;

impl Value {
    /// Reads a value: any text that [`Value::to_text`] or printing has given, or one that is written by hand.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err("the text is too long".to_owned());
        }
        let mut diags = Diagnostics::default();
        let value = Parser::new(text, 0, &mut diags).value();
        match (value, diags.iter().next()) {
            (Some(value), None) => Ok(value),
            (_, Some(d)) => Err(format!("{}:{}: {}", d.span.line, d.span.column, d.message)),
            (None, None) => Err("expected a value".to_owned()),
        }
    }

    /// All there is to know about it as text. Rules keep their names.
    pub fn to_text(&self) -> String {
        let mut names = BTreeMap::new();
        let mut externs = Vec::new();
        let mut rules = Vec::new();
        let mut unique = collect(self, &mut names, &mut externs, &mut rules);
        // A variable that is called like a rule would be taken for it.
        for rule in rules {
            rule.ast.names(&mut |name| unique &= !names.contains_key(name.as_str()));
        }
        let mut text = String::new();
        for e in externs {
            let kind = if e.effect { "effect" } else { "pure" };
            let _ = write!(text, "extern {kind} {}/{}; ", e.name, e.arity);
        }
        if unique {
            for (name, rule) in names {
                let _ = write!(text, "let {name} = {}; ", rule.text());
            }
            let _ = write!(text, "{self:#}");
        } else {
            let _ = write!(text, "{self}");
        }
        text
    }
}

/// Collects what rules in a value refer to. Returns whether no two rules share a name.
fn collect<'v>(
    value: &'v Value,
    names: &mut BTreeMap<&'v str, &'v Rule>,
    externs: &mut Vec<&'v Extern>,
    rules: &mut Vec<&'v Rule>,
) -> bool {
    match value {
        Value::Rule(rule) => {
            rules.push(rule);
            for e in rule.externs() {
                if !externs.contains(&e) {
                    externs.push(e);
                }
            }
            match rule.name() {
                Some(name) => *names.entry(name).or_insert(rule) == &**rule,
                None => true,
            }
        }
        Value::Tuple(t) => {
            let shared = t.items().iter().filter(|v| !collect(v, names, externs, rules));
            shared.count() == 0
        }
        Value::Solution(s) => s.iter().filter(|v| !collect(v, names, externs, rules)).count() == 0,
        _ => true,
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Value::parse(&text).map_err(D::Error::custom)
    }
}

impl Serialize for Solution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::Solution(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Solution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Solution(s) => Ok(s),
            other => Err(D::Error::custom(format!("expected a solution, not {}", other.kind()))),
        }
    }
}
