//! What a job requires of the machine it runs on.

use super::numbers::evaluate;
use crate::{Name, Resources};
use std::env::consts;

/// How many parentheses may be around a term.
const MAX_DEPTH: usize = 50;

/// What a term means.
#[derive(Debug, PartialEq)]
enum Meaning {
    /// It always holds.
    Nothing,
    Capability(String),
    /// At least so much of a resource.
    Resource(&'static str, f64),
}

/// Takes over what is known of an expression, and returns the terms that are not.
pub(super) fn require(
    expression: &str,
    resources: &mut Resources,
    capabilities: &mut Vec<Name>,
) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut open = vec![(expression, 0)];
    while let Some((text, depth)) = open.pop() {
        let text = text.trim();
        let terms = conjunction(text);
        if terms.len() > 1 && depth < MAX_DEPTH {
            open.extend(terms.into_iter().rev().map(|term| (term, depth + 1)));
            continue;
        }
        if let Some(inner) = inside(text).filter(|_| depth < MAX_DEPTH) {
            open.push((inner, depth + 1));
            continue;
        }
        match meaning(text) {
            Some(Meaning::Nothing) => {}
            Some(Meaning::Capability(capability)) => capabilities.push(capability.into()),
            Some(Meaning::Resource(name, amount)) => raise(resources, name, amount),
            None => unknown.push(text.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
    unknown
}

/// Raises what is needed of a resource, with the units of HTCondor's attributes.
fn raise(resources: &mut Resources, name: &str, amount: f64) {
    let at_least = |value: &mut u64, unit: f64| *value = (*value).max((amount * unit).ceil() as u64);
    match name {
        "memory" => at_least(&mut resources.memory, 1024.0 * 1024.0),
        "disk" => at_least(&mut resources.disk, 1024.0),
        "cpus" => at_least(&mut resources.cpus, 1000.0),
        name => at_least(resources.named.entry(Name::new(name)).or_default(), 1000.0),
    }
}

/// The offsets of bytes that are not in quotes, and how many parentheses are open before each.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, u8, usize)> {
    let (mut in_quotes, mut is_escaped, mut depth) = (false, false, 0_usize);
    text.bytes().enumerate().filter_map(move |(at, byte)| {
        let was_escaped = is_escaped;
        is_escaped = in_quotes && byte == b'\\' && !was_escaped;
        if byte == b'"' && !was_escaped {
            in_quotes = !in_quotes;
            return None;
        }
        if in_quotes {
            return None;
        }
        let before = depth;
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, byte, before))
    })
}

/// The parts between `&&` that are in no parentheses.
fn conjunction(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, byte, depth) in outside_quotes(text) {
        if byte == b'|' && depth == 0 && text[at..].starts_with("||") {
            return vec![text];
        }
        if byte == b'&' && depth == 0 && at >= start && text[at..].starts_with("&&") {
            parts.push(&text[start..at]);
            start = at + 2;
        }
    }
    parts.push(&text[start..]);
    parts
}

/// What is in the parentheses around a whole text.
fn inside(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let closes_before_end =
        outside_quotes(text).any(|(at, byte, depth)| byte == b')' && depth <= 1 && at + 1 < text.len());
    (!closes_before_end).then_some(inner)
}

fn without_parentheses(text: &str) -> &str {
    let text = text.trim();
    inside(text).map_or(text, str::trim)
}

/// What a single term means, if that is known.
fn meaning(term: &str) -> Option<Meaning> {
    let Some((left, operator, right)) = comparison(term) else {
        let attribute = attribute(term)?;
        return match attribute.to_ascii_lowercase().as_str() {
            "true" => Some(Meaning::Nothing),
            name if is_capability(name) => Some(Meaning::Capability(attribute.to_owned())),
            _ => None,
        };
    };
    // The attribute of the machine may be on either side.
    let is_turned = left.starts_with(|c: char| c == '"' || c.is_ascii_digit());
    let (left, operator, right) =
        if is_turned { (right, mirrored(operator), left) } else { (left, operator, right) };
    let attribute = attribute(left)?;
    let name = attribute.to_ascii_lowercase();
    let is_equal = matches!(operator, "==" | "=?=");
    match name.as_str() {
        "opsys" | "opsysandver" | "opsysname" | "opsysshortname" if is_equal => {
            Some(platform("opsys", string(right)?, consts::OS))
        }
        "arch" if is_equal => Some(platform("arch", string(right)?, consts::ARCH)),
        "memory" | "cpus" | "disk" | "gpus" => resource(&name, operator, right),
        name if is_capability(name) && is_equal && right.eq_ignore_ascii_case("true") => {
            Some(Meaning::Capability(attribute.to_owned()))
        }
        _ => None,
    }
}

fn is_capability(name: &str) -> bool {
    name.strip_prefix("has").is_some_and(|what| !what.is_empty())
}

fn platform(kind: &str, wanted: &str, here: &str) -> Meaning {
    if wanted.eq_ignore_ascii_case(here) {
        return Meaning::Nothing;
    }
    Meaning::Capability(format!("{kind}:{}", wanted.to_lowercase()))
}

fn resource(name: &str, operator: &str, amount: &str) -> Option<Meaning> {
    let name = match name {
        "memory" => "memory",
        "cpus" => "cpus",
        "disk" => "disk",
        _ => "gpus",
    };
    // HTCondor adds such a term by itself.
    let is_request = attribute(amount).is_some_and(|a| a.to_ascii_lowercase() == format!("request{name}"));
    if is_request && operator == ">=" {
        return Some(Meaning::Nothing);
    }
    let amount = evaluate(amount)?.real();
    let least = match operator {
        ">=" => amount,
        // They are whole numbers.
        ">" => amount.floor() + 1.0,
        _ => return None,
    };
    Some(if least > 0.0 { Meaning::Resource(name, least) } else { Meaning::Nothing })
}

/// Both sides of a comparison and what is between them.
fn comparison(term: &str) -> Option<(&str, &str, &str)> {
    const OPERATORS: [&str; 8] = ["=?=", "=!=", "==", "!=", ">=", "<=", ">", "<"];
    let (at, ..) = outside_quotes(term).find(|(_, byte, _)| matches!(byte, b'=' | b'!' | b'<' | b'>'))?;
    let operator = OPERATORS.into_iter().find(|operator| term[at..].starts_with(operator))?;
    let (left, right) = (&term[..at], &term[at + operator.len()..]);
    Some((without_parentheses(left), operator, without_parentheses(right)))
}

fn mirrored(operator: &str) -> &str {
    match operator {
        ">=" => "<=",
        "<=" => ">=",
        ">" => "<",
        "<" => ">",
        other => other,
    }
}

/// The name of an attribute without whose it is.
fn attribute(text: &str) -> Option<&str> {
    let name = match text.split_once('.') {
        Some((whose, name)) if ["target", "my"].iter().any(|w| whose.eq_ignore_ascii_case(w)) => name,
        _ => text,
    };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some(name)
}

/// What is in the quotes of a text.
fn string(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.strip_suffix('"').filter(|inner| !inner.contains('"') && !inner.is_empty())
}
