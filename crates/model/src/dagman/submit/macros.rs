//! Macros: what keys are worth, and what `$(name)` stands for.

use super::Place;
use super::functions;
use std::collections::HashMap;
use std::env::consts;
use std::path::Path;

/// No value may become longer than this, in bytes, and no more references may be followed for it: a few short
/// lines that refer to each other twice would fill the memory.
const MAX_SIZE: usize = 64 << 20;
const MAX_STEPS: usize = 4_000_000;
/// How deep macros may be in macros.
const MAX_DEPTH: usize = 100;
/// Starts the names of values that were replaced by a value that needs them.
const HIDDEN: char = '\0';

/// What was assigned so far. Names have no case.
#[derive(Debug, Default)]
pub(super) struct Macros {
    definitions: HashMap<String, Definition>,
    hidden: usize,
}

#[derive(Debug)]
struct Definition {
    text: String,
    place: Place,
}

/// Macros that have another value for each job: name in small letters, and text.
pub(super) type Live = [(String, String)];

impl Macros {
    /// Assigns a text. Where it refers to the name itself, the earlier text is meant.
    pub(super) fn define(&mut self, name: &str, text: &str, place: Place) -> Result<(), String> {
        let name = name.to_ascii_lowercase();
        let text = if text.contains('$') { self.without_self(&name, text)? } else { text.to_owned() };
        self.definitions.insert(name, Definition { text, place });
        Ok(())
    }

    /// Whether a name has a value that is not empty.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.definitions.get(&name.to_ascii_lowercase()).is_some_and(|d| !d.text.is_empty())
    }

    /// Where a name was assigned to last.
    pub(super) fn place(&self, name: &str) -> Option<Place> {
        self.definitions.get(&name.to_ascii_lowercase()).map(|d| d.place)
    }

    /// Puts the earlier text in for `$(name)`. In functions and before defaults it gets a name of its own.
    fn without_self(&mut self, name: &str, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut earlier_name = None;
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let tail = &rest[at..];
            let Some((open, end)) = self_reference(tail, name) else {
                let skip = if tail.starts_with("$$") { 2 } else { 1 };
                out += &rest[..at + skip];
                rest = &tail[skip..];
                continue;
            };
            out += &rest[..at];
            if open == "$(" && tail[end..].starts_with(')') {
                out += self.definitions.get(name).map_or("", |d| &d.text);
                rest = &tail[end + 1..];
            } else {
                let hidden = earlier_name.get_or_insert_with(|| {
                    self.hidden += 1;
                    format!("{HIDDEN}{}", self.hidden)
                });
                out += open;
                out += hidden;
                rest = &tail[end..];
            }
            if out.len() > MAX_SIZE {
                return Err(format!("the value of `{name}` becomes too long"));
            }
        }
        out += rest;
        if let (Some(hidden), Some(earlier)) = (earlier_name, self.definitions.remove(name)) {
            self.definitions.insert(hidden, earlier);
        }
        Ok(out)
    }
}

/// If a text starts with a reference to a name: what opens it, and the offset after the name.
fn self_reference<'t>(text: &'t str, name: &str) -> Option<(&'t str, usize)> {
    let open = opening(text).filter(|o| !matches!(*o, "$ENV(" | "$RANDOM_CHOICE(" | "$RANDOM_INTEGER("))?;
    let body = text[open.len()..].trim_start();
    let is_same = body.get(..name.len())?.eq_ignore_ascii_case(name);
    let rest = body[name.len()..].trim_start();
    (is_same && rest.starts_with([')', ':', ','])).then(|| (open, text.len() - rest.len()))
}

/// What opens a reference at the start of a text: `$(` or `$FUNCTION(`.
fn opening(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let letters = rest.bytes().take_while(|b| b.is_ascii_alphabetic() || *b == b'_').count();
    let (function, tail) = rest.split_at(letters);
    let known = function.is_empty() || functions::is_function(function);
    (known && tail.starts_with('(')).then(|| &text[..letters + 2])
}

/// What macros are worth at one place, for one job.
pub(super) struct Scope<'a> {
    macros: &'a Macros,
    live: &'a Live,
    /// Where relative paths start.
    pub(super) directory: &'a Path,
    /// The macros whose values are needed for the one that is looked up.
    active: Vec<String>,
    size: usize,
    steps: usize,
}

/// A reference that is not closed yet.
#[derive(Default)]
struct Open<'t> {
    /// What opened it.
    with: &'t str,
    /// What is in it, with its own references replaced.
    text: String,
    /// How many ordinary parentheses are open in it.
    parentheses: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(macros: &'a Macros, live: &'a Live, directory: &'a Path) -> Self {
        Self { macros, live, directory, active: Vec::new(), size: 0, steps: 0 }
    }

    /// A text with its references replaced, from the inside out.
    pub(super) fn expand(&mut self, text: &str) -> Result<String, String> {
        let mut outside = Open::default();
        let mut open: Vec<Open<'_>> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['$', '(', ')']) {
            let (plain, tail) = rest.split_at(at);
            let top = open.last_mut().unwrap_or(&mut outside);
            top.text += plain;
            if tail.starts_with(')')
                && top.parentheses == 0
                && let Some(closed) = open.pop()
            {
                let value = self.evaluate(&closed)?;
                self.count(value.len())?;
                open.last_mut().unwrap_or(&mut outside).text += &value;
                rest = &tail[1..];
            } else if let Some(with) = opening(tail) {
                if open.len() == MAX_DEPTH {
                    return Err("macros are nested too deep".to_owned());
                }
                open.push(Open { with, ..Open::default() });
                rest = &tail[with.len()..];
            } else {
                let top = open.last_mut().unwrap_or(&mut outside);
                // What stands for an attribute of the machine stays: two signs open nothing.
                let plain = if tail.starts_with("$$") { 2 } else { 1 };
                match tail.as_bytes()[0] {
                    b'(' => top.parentheses += 1,
                    b')' => top.parentheses = top.parentheses.saturating_sub(1),
                    _ => {}
                }
                top.text += &tail[..plain];
                rest = &tail[plain..];
            }
        }
        open.last_mut().unwrap_or(&mut outside).text += rest;
        // What is not closed is no reference.
        for unclosed in open {
            outside.text += unclosed.with;
            outside.text += &unclosed.text;
        }
        Ok(outside.text)
    }

    fn count(&mut self, bytes: usize) -> Result<(), String> {
        self.size += bytes;
        self.steps += 1;
        let is_fine = self.size <= MAX_SIZE && self.steps <= MAX_STEPS;
        if is_fine { Ok(()) } else { Err("the value becomes too long".to_owned()) }
    }

    fn evaluate(&mut self, reference: &Open<'_>) -> Result<String, String> {
        let function = &reference.with[1..reference.with.len() - 1];
        if !function.is_empty() {
            return functions::call(self, function, &reference.text);
        }
        let (name, default) = match reference.text.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (reference.text.as_str(), None),
        };
        let name = name.trim();
        if !is_name(name) {
            // Such as a command of the shell.
            return Ok(format!("{}{})", reference.with, reference.text));
        }
        let value = self.value(name)?.filter(|value| default.is_none() || !value.is_empty());
        Ok(value.unwrap_or_else(|| default.unwrap_or_default().to_owned()))
    }

    /// The value of a macro, if it has one.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let name = name.to_ascii_lowercase();
        let live = self.live.iter().find(|(key, _)| *key == name).map(|(_, text)| text);
        let Some(text) = live.or_else(|| self.macros.definitions.get(&name).map(|d| &d.text)) else {
            return Ok(automatic(&name));
        };
        if !text.contains('$') {
            return Ok(Some(text.clone()));
        }
        if self.active.contains(&name) {
            return Err(format!("the value of the macro `{name}` needs that value itself"));
        }
        if self.active.len() == MAX_DEPTH {
            return Err("macros are nested too deep".to_owned());
        }
        self.active.push(name);
        let value = self.expand(text);
        self.active.pop();
        value.map(Some)
    }
}

/// Macros that have a value without an assignment.
fn automatic(name: &str) -> Option<String> {
    let number = |holds: bool| if holds { "1" } else { "0" }.to_owned();
    match name {
        "dollar" => Some("$".to_owned()),
        "arch" => Some(consts::ARCH.to_uppercase()),
        "opsys" => Some(consts::OS.to_uppercase()),
        "islinux" => Some(number(consts::OS == "linux")),
        "iswindows" => Some(number(consts::OS == "windows")),
        _ => None,
    }
}

/// Whether a text can be the name of a macro.
pub(super) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | HIDDEN);
    !text.is_empty() && text.chars().all(allowed)
}
