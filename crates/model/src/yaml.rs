//! YAML (and JSON, which is a part of it) as a tree that remembers where each node stood.
//!
//! Aliases share the node they refer to, so a document that multiplies itself through anchors costs
//! what it says, not what it means; a budget rejects it before anything walks the expansion.

use crate::Name;
use crate::diag::{Diagnostics, Span};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Nesting deeper than this is refused: nobody writes it, and it would exhaust the stack.
const MAX_DEPTH: usize = 256;
/// How many nodes the aliases of one document may stand for.
const MAX_ALIASED_NODES: u64 = 1_000_000;

/// A node of a document and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the node starts.
    pub span: Span,
    /// What it holds.
    pub data: Data,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub enum Data {
    /// A scalar as written; `plain` ones may be numbers, booleans or null.
    Scalar {
        /// The text without quotes.
        text: Name,
        /// Whether it stood without quotes.
        plain: bool,
    },
    /// A list.
    Seq(Rc<Vec<Node>>),
    /// A mapping, in the order it was written.
    Map(Rc<Vec<(Node, Node)>>),
}

/// Reads all documents of a text. Syntax errors go to `diags`; what was read before them is returned.
pub fn parse(text: &str, source: u16, diags: &mut Diagnostics) -> Vec<Node> {
    parse_streaming(text, source, diags, None)
}

/// Takes an item of the list under [`STREAMED_KEY`], and whether the mapping around it has an `id`.
pub(crate) type Consumer<'c> = &'c mut dyn FnMut(Node, bool);

/// The list of a document that may have very many items. A consumer gets them one by one, so that they are
/// never all in memory as nodes.
const STREAMED_KEY: &str = "actions";

/// Like [`parse`], but gives the items of the document's list of actions to `consumer` as soon as they are
/// read, and leaves the list empty.
pub(crate) fn parse_streaming(
    text: &str,
    source: u16,
    diags: &mut Diagnostics,
    consumer: Option<Consumer<'_>>,
) -> Vec<Node> {
    let mut builder = Builder { source, consumer, ..Builder::default() };
    for event in Parser::new_from_str(text) {
        let outcome = match event {
            Ok((event, span)) => builder.accept(event, span),
            Err(e) => Err((e.info().to_owned(), builder.place(*e.marker(), *e.marker()))),
        };
        if let Err((message, span)) = outcome {
            diags.error("yaml-syntax", span, "", message);
            break;
        }
    }
    builder.documents
}

#[derive(Default)]
struct Builder<'c> {
    source: u16,
    stack: Vec<Open>,
    documents: Vec<Node>,
    anchors: HashMap<usize, (Node, u64)>,
    nodes: u64,
    aliased: u64,
    consumer: Option<Consumer<'c>>,
}

struct Open {
    span: Span,
    anchor: usize,
    first_node: u64,
    kind: OpenKind,
}

enum OpenKind {
    Seq(Vec<Node>),
    Map(Vec<(Node, Node)>, Option<Node>),
}

type Problem = (String, Span);

impl Builder<'_> {
    fn place(&self, start: saphyr_parser::Marker, end: saphyr_parser::Marker) -> Span {
        let len = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
        Span {
            source: self.source,
            len: len.clamp(1, 200) as u16,
            line: start.line() as u32,
            column: start.col() as u32 + 1,
        }
    }

    fn accept(&mut self, event: Event<'_>, span: saphyr_parser::Span) -> Result<(), Problem> {
        let at = self.place(span.start, span.end);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let node = Node { span: at, data: Data::Scalar { text: Name::new(&text), plain } };
                self.nodes += 1;
                self.remember(anchor, &node, 1);
                self.add(node)
            }
            Event::SequenceStart(anchor, _) => self.open(at, anchor, OpenKind::Seq(Vec::new())),
            Event::MappingStart(anchor, _) => self.open(at, anchor, OpenKind::Map(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.stack.pop() else {
                    return Ok(());
                };
                let data = match open.kind {
                    OpenKind::Seq(items) => Data::Seq(Rc::new(items)),
                    OpenKind::Map(entries, _) => Data::Map(Rc::new(entries)),
                };
                let node = Node { span: open.span, data };
                let size = self.nodes - open.first_node;
                self.remember(open.anchor, &node, size);
                self.add(node)
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(("this alias refers to an anchor that encloses it".to_owned(), at));
                };
                self.aliased += size;
                self.nodes += size;
                if self.aliased > MAX_ALIASED_NODES {
                    let message =
                        format!("the aliases of this document stand for more than {MAX_ALIASED_NODES} nodes");
                    return Err((message, at));
                }
                self.add(Node { span: at, data: node.data })
            }
            Event::DocumentStart(_) => {
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    fn open(&mut self, span: Span, anchor: usize, kind: OpenKind) -> Result<(), Problem> {
        if self.stack.len() >= MAX_DEPTH {
            return Err((format!("nested more than {MAX_DEPTH} levels deep"), span));
        }
        let first_node = self.nodes;
        self.nodes += 1;
        self.stack.push(Open { span, anchor, first_node, kind });
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node, size: u64) {
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
    }

    /// Whether a node that is complete now is an item of the list that is streamed, and if so whether the
    /// mapping around the list has an `id`.
    fn is_streamed(&self) -> Option<bool> {
        let [Open { kind: OpenKind::Map(entries, Some(key)), .. }, Open { kind: OpenKind::Seq(_), .. }] =
            &self.stack[..]
        else {
            return None;
        };
        (key.as_str() == Some(STREAMED_KEY)).then(|| entries.iter().any(|(k, _)| k.as_str() == Some("id")))
    }

    fn add(&mut self, node: Node) -> Result<(), Problem> {
        if self.consumer.is_some()
            && self.documents.is_empty()
            && let Some(has_id) = self.is_streamed()
            && let Some(consumer) = &mut self.consumer
        {
            consumer(node, has_id);
            return Ok(());
        }
        match self.stack.last_mut().map(|open| &mut open.kind) {
            None => self.documents.push(node),
            Some(OpenKind::Seq(items)) => items.push(node),
            Some(OpenKind::Map(entries, key)) => match key.take() {
                None => *key = Some(node),
                Some(k) => {
                    // A linear look-up would be quadratic for mappings with very many keys, so large
                    // mappings are checked by their reader, which knows what the keys mean.
                    let name = k.as_str();
                    if entries.len() < 64 && name.is_some() && entries.iter().any(|(e, _)| e.as_str() == name)
                    {
                        let message = format!("the key `{}` stands here twice", name.unwrap_or_default());
                        return Err((message, k.span));
                    }
                    entries.push((k, node));
                }
            },
        }
        Ok(())
    }
}

impl Node {
    /// The text of a scalar, whatever it could mean; `None` for lists, mappings and null.
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar { text, plain } if !(*plain && is_null(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether nothing was written, or `null`, or `~`.
    pub fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar { text, plain: true } if is_null(text))
    }

    /// The items of a list.
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.data {
            Data::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub fn as_map(&self) -> Option<&[(Node, Node)]> {
        match &self.data {
            Data::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
    }

    /// What kind of node this is, in words for messages.
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::Seq(_) => "a list",
            Data::Map(_) => "a mapping",
            Data::Scalar { .. } if self.is_null() => "nothing",
            Data::Scalar { .. } => match self.to_value() {
                Value::Number(_) => "a number",
                Value::Bool(_) => "a boolean",
                _ => "a string",
            },
        }
    }

    /// The node as a plain value, with scalars resolved by the YAML 1.2 core schema.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Scalar { text, plain } => {
                if *plain {
                    resolve(text)
                } else {
                    Value::String(text.to_string())
                }
            }
            Data::Seq(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Data::Map(entries) => {
                let entries = entries.iter();
                let entries = entries.map(|(k, v)| (k.as_str().unwrap_or("null").to_owned(), v.to_value()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The meaning of an unquoted scalar in YAML 1.2's core schema.
fn resolve(text: &str) -> Value {
    if is_null(text) {
        return Value::Null;
    }
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let first = text.as_bytes()[0];
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return Value::String(text.to_owned());
    }
    if let Ok(n) = text.strip_prefix('+').unwrap_or(text).parse::<i64>() {
        return Value::Number(n.into());
    }
    if let Ok(n) = text.parse::<u64>() {
        return Value::Number(n.into());
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(n) = text.strip_prefix(prefix).and_then(|t| i64::from_str_radix(t, radix).ok()) {
            return Value::Number(n.into());
        }
    }
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    let number = text.parse::<f64>().ok().filter(|_| numeric).and_then(Number::from_f64);
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Node>, Diagnostics) {
        let mut diags = Diagnostics::default();
        let nodes = parse(text, 0, &mut diags);
        (nodes, diags)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let (nodes, _) = read("[1, -2, 0x10, 1.5, 1e3, true, ~, 4.7.0, 'true', yes, 12ab]");
        let expected =
            serde_json::json!([1, -2, 16, 1.5, 1000.0, true, null, "4.7.0", "true", "yes", "12ab"]);
        assert_eq!(nodes[0].to_value(), expected);
    }

    #[test]
    fn places_count_from_one() {
        let (nodes, _) = read("a: 1\nb:\n  - x\n");
        let span = nodes[0].get("b").unwrap().as_seq().unwrap()[0].span;
        assert_eq!((span.line, span.column), (3, 5));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        use std::fmt::Write;
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..12 {
            let items = vec![format!("*a{}", i - 1); 10].join(", ");
            writeln!(text, "a{i}: &a{i} [{items}]").unwrap();
        }
        let (_, diags) = read(&text);
        assert!(diags.iter().next().unwrap().message.contains("aliases"));
    }

    #[test]
    fn very_deep_nesting_is_refused() {
        let (_, diags) = read(&"[".repeat(100_000));
        assert!(diags.has_errors());
    }

    #[test]
    fn a_repeated_key_is_an_error_with_its_place() {
        let (_, diags) = read("a: 1\na: 2\n");
        let d = diags.iter().next().unwrap();
        assert_eq!((d.span.line, d.span.column), (2, 1));
    }
}
