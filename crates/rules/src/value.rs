//! Values: what molecules are made of.

use crate::rule::Rule;
use crate::solution::Solution;
use smol_str::SmolStr;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Values are not nested more deeply, so that no walk through one runs out of stack.
pub(crate) const MAX_DEPTH: u16 = 100;

/// A value, also called a molecule where it floats in a solution. Cheap to copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(Float),
    /// Text.
    Text(SmolStr),
    /// A name with an upper-case first letter.
    Tag(SmolStr),
    /// Several values in a row: `TASK:1:<>`.
    Tuple(Tuple),
    /// A multiset of values: `<1, 2, 2>`.
    Solution(Solution),
    /// A rule.
    Rule(Arc<Rule>),
}

/// Two or more values in a row.
#[derive(Clone, Debug)]
pub struct Tuple {
    items: Arc<[Value]>,
    depth: u16,
    inert: bool,
}

/// A number that is never infinite nor undefined, and therefore has an order.
#[derive(Clone, Copy, Debug)]
pub struct Float(f64);

impl Float {
    /// The number, unless it is infinite or undefined. There is one zero only.
    pub fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(if number == 0.0 { 0.0 } else { number }))
    }

    /// As a number of the machine.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Float {}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Float {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Tuple {
    /// A tuple of at least two values that is not nested too deeply; otherwise `None`.
    pub fn new(items: Vec<Value>) -> Option<Self> {
        if items.len() < 2 {
            return None;
        }
        let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
        let inert = items.iter().all(Value::is_inert);
        (depth <= MAX_DEPTH).then(|| Self { items: items.into(), depth, inert })
    }

    /// Its components.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// Its first component.
    pub(crate) fn first(&self) -> &Value {
        &self.items[0]
    }
}

impl PartialEq for Tuple {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.items, &other.items) || self.items == other.items
    }
}

impl Eq for Tuple {}

impl PartialOrd for Tuple {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Tuple {
    fn cmp(&self, other: &Self) -> Ordering {
        self.items.cmp(&other.items)
    }
}

impl Hash for Tuple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.items.hash(state);
    }
}

impl Value {
    /// A TAG.
    pub fn tag(name: &str) -> Self {
        Self::Tag(name.into())
    }

    /// Text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// A number with a fraction, unless it is infinite or undefined.
    pub fn float(number: f64) -> Option<Self> {
        Float::new(number).map(Self::Float)
    }

    /// Values in a row; a single one stands for itself. `None` for no values, or if they are nested too deeply.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Option<Self> {
        let mut items: Vec<Value> = items.into_iter().collect();
        if items.len() == 1 { items.pop() } else { Tuple::new(items).map(Self::Tuple) }
    }

    /// A solution of values. `None` if they are nested too deeply.
    pub fn solution(items: impl IntoIterator<Item = Value>) -> Option<Self> {
        Some(Self::Solution(items.into_iter().collect())).filter(|v| v.depth() <= MAX_DEPTH)
    }

    /// The TAG it starts with.
    pub fn head(&self) -> Option<&str> {
        match self {
            Self::Tag(tag) => Some(tag),
            Self::Tuple(t) => match t.first() {
                Self::Tag(tag) => Some(tag),
                _ => None,
            },
            _ => None,
        }
    }

    /// The second component: what molecules such as `TASK:id:…` are known by.
    pub fn id(&self) -> Option<&Value> {
        self.components().get(1)
    }

    /// Its components; what is no tuple has itself as the only one.
    pub fn components(&self) -> &[Value] {
        match self {
            Self::Tuple(t) => t.items(),
            other => std::slice::from_ref(other),
        }
    }

    /// The value of a pair `TAG:v`: of the value itself, or of the first solution in it that has one. The name of the
    /// attribute is that of the TAG in lower case.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.tagged_attribute(&name.to_ascii_uppercase())
    }

    pub(crate) fn tagged_attribute(&self, tag: &str) -> Option<&Value> {
        match self {
            Self::Solution(s) => s.attribute(tag),
            Self::Tuple(t) => match t.items() {
                [first, value] if first.is_tag(tag) => Some(value),
                items => items.iter().find_map(|i| match i {
                    Self::Solution(s) => s.attribute(tag),
                    _ => None,
                }),
            },
            _ => None,
        }
    }

    /// As a number, whichever kind it is.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Int(i) => Some(*i as f64),
            Self::Float(f) => Some(f.get()),
            _ => None,
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bool(_) => "a bool",
            Self::Int(_) => "an int",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::Tag(_) => "a TAG",
            Self::Tuple(_) => "a tuple",
            Self::Solution(_) => "a solution",
            Self::Rule(_) => "a rule",
        }
    }

    /// Whether nothing in it can react. Only such solutions can be matched.
    pub fn is_inert(&self) -> bool {
        match self {
            Self::Tuple(t) => t.inert,
            Self::Solution(s) => s.is_inert(),
            _ => true,
        }
    }

    /// How deeply it is nested.
    pub(crate) fn depth(&self) -> u16 {
        match self {
            Self::Tuple(t) => t.depth,
            Self::Solution(s) => s.depth(),
            Self::Rule(r) => r.depth(),
            _ => 0,
        }
    }

    pub(crate) fn is_tag(&self, name: &str) -> bool {
        matches!(self, Self::Tag(tag) if tag == name)
    }

    /// Like the order of values, against a TAG.
    pub(crate) fn cmp_tag(&self, name: &str) -> Ordering {
        match self {
            Self::Tag(tag) => tag.as_str().cmp(name),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => Ordering::Less,
            Self::Tuple(_) | Self::Solution(_) | Self::Rule(_) => Ordering::Greater,
        }
    }

    pub(crate) fn is_before_tuples(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::Tag(_))
    }
}
