//! Helpers to read typed things out of YAML nodes while collecting every problem on the way.

use crate::Name;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::policy::{RetryPolicy, TimeoutPolicy};
use crate::quantity::{Resources, parse_bytes, parse_duration};
use crate::yaml::Node;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A step on the way from the root of a document to a node, written out only when a problem is found.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    name: &'static str,
    index: Option<usize>,
    note: Note,
}

/// What is said about a step of a path, put into words only when somebody reads it.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    None,
    /// A kind of action and what it is about, such as `execute cp`.
    Kind(&'static str, Name),
    /// A name.
    Name(Name),
}

/// Where the reader is, and what it found wrong so far.
#[derive(Default)]
pub(crate) struct Context {
    pub(crate) diags: Diagnostics,
    path: Vec<Segment>,
}

impl Context {
    pub(crate) fn new(root: &'static str) -> Self {
        let mut ctx = Self::default();
        ctx.enter(root, None, Note::None);
        ctx
    }

    pub(crate) fn enter(&mut self, name: &'static str, index: Option<usize>, note: Note) {
        self.path.push(Segment { name, index, note });
    }

    pub(crate) fn leave(&mut self) {
        self.path.pop();
    }

    /// Runs `f` one step further down.
    pub(crate) fn at<T>(
        &mut self,
        name: &'static str,
        index: Option<usize>,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.enter(name, index, Note::None);
        let result = f(self);
        self.leave();
        result
    }

    pub(crate) fn path(&self) -> String {
        let mut out = String::new();
        for segment in &self.path {
            if !out.is_empty() {
                out.push_str("->");
            }
            out.push_str(segment.name);
            if let Some(i) = segment.index {
                let _ = write!(out, "[{i}]");
            }
            let _ = match &segment.note {
                Note::None => Ok(()),
                Note::Kind(kind, name) if name.is_empty() => write!(out, "({kind})"),
                Note::Kind(kind, name) => write!(out, "({kind} {name})"),
                Note::Name(name) => write!(out, "({name})"),
            };
        }
        out
    }

    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let path = self.path();
        self.diags.error(code, span, path, message)
    }

    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let path = self.path();
        self.diags.warning(code, span, path, message)
    }

    pub(crate) fn wrong_type(&mut self, node: &Node, wanted: &str) {
        self.error("wrong-type", node.span, format!("expected {wanted}, found {}", node.kind()));
    }

    pub(crate) fn string(&mut self, node: &Node) -> Option<Name> {
        let text = node.as_str().map(Name::new);
        if text.is_none() {
            self.wrong_type(node, "a string");
        }
        text
    }

    pub(crate) fn boolean(&mut self, node: &Node) -> Option<bool> {
        let value = match node.to_value() {
            Value::Bool(b) => Some(b),
            Value::String(s) => s.parse().ok(),
            _ => None,
        };
        if value.is_none() {
            self.wrong_type(node, "true or false");
        }
        value
    }

    /// How a task is started: `start: exclusive`, or as usual if nothing is said.
    pub(crate) fn exclusive(&mut self, node: Option<&Node>) -> bool {
        let Some(node) = node else { return false };
        let Some(text) = self.string(node) else { return false };
        if text != "exclusive" {
            self.error("bad-start", node.span, format!("`{text}` is no way to start a task"))
                .help("write `start: exclusive` for a task that must not be started twice, or leave it out");
        }
        text == "exclusive"
    }

    pub(crate) fn integer(&mut self, node: &Node) -> Option<i64> {
        let value = node.as_str().and_then(|s| s.trim().parse().ok());
        if value.is_none() {
            self.wrong_type(node, "a whole number");
        }
        value
    }

    pub(crate) fn number(&mut self, node: &Node) -> Option<f64> {
        let value =
            node.as_str().and_then(|s| s.trim().parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
        if value.is_none() {
            self.wrong_type(node, "a number that is not negative");
        }
        value
    }

    pub(crate) fn seq<'n>(&mut self, node: &'n Node) -> &'n [Node] {
        if node.is_null() {
            return &[];
        }
        node.as_seq().unwrap_or_else(|| {
            self.wrong_type(node, "a list");
            &[]
        })
    }

    /// A list of strings, or one string.
    pub(crate) fn strings(&mut self, node: &Node) -> Vec<(Name, Span)> {
        if let Some(one) = node.as_str() {
            return vec![(Name::new(one), node.span)];
        }
        let items = self.seq(node);
        items.iter().filter_map(|item| Some((self.string(item)?, item.span))).collect()
    }

    /// Reads each item of a list with `f`, which may give up on an item after reporting why.
    pub(crate) fn list<T>(
        &mut self,
        node: Option<&Node>,
        name: &'static str,
        mut f: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<T> {
        let Some(node) = node else { return Vec::new() };
        let items = self.seq(node);
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            out.extend(self.at(name, Some(i), |ctx| f(ctx, item)));
        }
        out
    }

    /// A duration in milliseconds: `10 min`, or a plain number of milliseconds.
    pub(crate) fn millis(&mut self, node: &Node) -> Option<u64> {
        let text = self.string(node)?;
        if let Ok(ms) = text.trim().parse::<u64>() {
            return Some(ms);
        }
        match parse_duration(&text) {
            Ok(d) => Some(d.as_millis() as u64),
            Err(message) => {
                self.error("bad-duration", node.span, message);
                None
            }
        }
    }

    pub(crate) fn retry_policy(&mut self, node: &Node) -> Option<RetryPolicy> {
        let mut f = Fields::new(self, node)?;
        let mut policy = RetryPolicy::default();
        if let Some(n) = f.take("maxAttempts").and_then(|n| self.integer(n)) {
            policy.max_attempts = n as i32;
        }
        if let Some(ms) = f.take("delay").and_then(|n| self.millis(n)) {
            policy.delay = ms;
        }
        if let Some(n) = f.take("exponentialBackoff").and_then(|n| self.integer(n)) {
            policy.exponential_backoff = n.max(0) as u32;
        }
        policy.max_delay = f.take("maxDelay").and_then(|n| self.millis(n));
        f.finish(self);
        Some(policy)
    }

    pub(crate) fn timeout_policy(&mut self, node: &Node) -> Option<TimeoutPolicy> {
        if node.as_map().is_none() {
            return self.millis(node).map(|timeout| TimeoutPolicy { timeout, error_on_timeout: false });
        }
        let mut f = Fields::new(self, node)?;
        let timeout = f.require(self, "timeout").and_then(|n| self.millis(n));
        let error_on_timeout = f.take("errorOnTimeout").and_then(|n| self.boolean(n)).unwrap_or(false);
        f.finish(self);
        Some(TimeoutPolicy { timeout: timeout?, error_on_timeout })
    }

    pub(crate) fn resources(&mut self, node: &Node) -> Option<Resources> {
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, "a mapping such as `{cpus: 2, memory: 4 GiB}`");
            return None;
        };
        let mut resources = Resources::default();
        for (key, value) in entries {
            let Some(key) = self.string(key) else { continue };
            self.resource(&mut resources, &key, value);
        }
        Some(resources)
    }

    pub(crate) fn resource(&mut self, resources: &mut Resources, key: &str, value: &Node) {
        let thousandths = |n: f64| (n * 1000.0).round() as u64;
        match key {
            "cpus" => resources.cpus = self.number(value).map_or(1000, thousandths),
            "memory" => resources.memory = self.size(value).unwrap_or(0),
            "disk" => resources.disk = self.size(value).unwrap_or(0),
            name => {
                let n = self.number(value).map_or(0, thousandths);
                resources.named.insert(Name::new(name), n);
            }
        }
    }

    fn size(&mut self, node: &Node) -> Option<u64> {
        let text = self.string(node)?;
        match parse_bytes(&text) {
            Ok(n) => Some(n),
            Err(message) => {
                self.error("bad-size", node.span, message);
                None
            }
        }
    }

    /// Environment variables: a mapping of names to text.
    pub(crate) fn environment(&mut self, node: Option<&Node>) -> Vec<(Name, String)> {
        let Some(node) = node else { return Vec::new() };
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, "a mapping of names to values");
            return Vec::new();
        };
        let mut out = BTreeMap::new();
        for (k, v) in entries {
            if let (Some(k), Some(v)) = (self.string(k), self.string(v)) {
                if k.is_empty() || k.contains(['=', '\0']) {
                    self.error(
                        "bad-env",
                        node.span,
                        format!("`{k}` cannot be the name of an environment variable"),
                    );
                }
                out.insert(k, v.to_string());
            }
        }
        out.into_iter().collect()
    }
}

/// The fields of a mapping, each taken once; what is left over is reported.
pub(crate) struct Fields<'n> {
    pub(crate) span: Span,
    entries: &'n [(Node, Node)],
    asked: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    pub(crate) fn new(ctx: &mut Context, node: &'n Node) -> Option<Self> {
        let Some(entries) = node.as_map() else {
            ctx.wrong_type(node, "a mapping");
            return None;
        };
        Some(Self { span: node.span, entries, asked: Vec::with_capacity(12) })
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.asked.push(key);
        self.entries.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v).filter(|v| !v.is_null())
    }

    pub(crate) fn require(&mut self, ctx: &mut Context, key: &'static str) -> Option<&'n Node> {
        let found = self.take(key);
        if found.is_none() {
            ctx.error("missing-field", self.span, format!("the field `{key}` is missing"));
        }
        found
    }

    pub(crate) fn string(&mut self, ctx: &mut Context, key: &'static str) -> Option<Name> {
        self.take(key).and_then(|n| ctx.string(n))
    }

    pub(crate) fn require_string(&mut self, ctx: &mut Context, key: &'static str) -> Option<Name> {
        self.require(ctx, key).and_then(|n| ctx.string(n))
    }

    /// Reports every field nobody asked for.
    pub(crate) fn finish(self, ctx: &mut Context) {
        for (key, _) in self.entries {
            let name = key.as_str().unwrap_or("");
            if !self.asked.contains(&name) {
                ctx.error("unknown-field", key.span, format!("unknown field `{name}`"))
                    .did_you_mean(name, self.asked.iter().copied());
            }
        }
    }
}

impl Context {
    /// Replaces the help of the problem reported last.
    pub(crate) fn last_help(&mut self, help: String) {
        self.diags.amend_last(|d| d.help = Some(help));
    }
}
