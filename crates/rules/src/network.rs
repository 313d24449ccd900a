//! What a set of rules wants to know about molecules: which shapes concern which rule, and what to index.
//!
//! There are buckets of molecules by shape and hash indexes on the variables that join patterns, but no stored partial
//! joins (TREAT, not RETE): molecules are consumed all the time, which would throw most of these away.

use crate::ast::Type;
use crate::code::{Pat, Slot};
use crate::rule::Rule;
use crate::value::Value;
use smol_str::SmolStr;
use std::collections::HashMap;
use std::sync::Arc;

/// Rules made ready for reactions. Cheap to copy: many small solutions can use the same.
#[derive(Clone, Default)]
pub struct RuleSet(pub(crate) Arc<Network>);

impl RuleSet {
    /// Makes rules ready.
    pub fn new(rules: impl IntoIterator<Item = Arc<Rule>>) -> Self {
        let mut network = Network::default();
        for rule in rules {
            network.add(&rule);
        }
        Self(Arc::new(network))
    }

    /// The rules in here.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.rules.iter().map(|n| &n.rule)
    }
}

impl std::fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.rules().map(|r| r.label())).finish()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Network {
    pub(crate) rules: Vec<RuleNode>,
    by_rule: HashMap<Arc<Rule>, usize>,
    shapes: Vec<ShapeNode>,
    indexes: Vec<Index>,
    any: Option<usize>,
    kinds: Vec<(Type, usize)>,
    arities: Vec<(usize, usize)>,
    heads: HashMap<SmolStr, Vec<(usize, usize)>>,
}

#[derive(Clone)]
pub(crate) struct RuleNode {
    pub(crate) rule: Arc<Rule>,
    pub(crate) patterns: Vec<PatternNode>,
    /// The pattern that alone decides how good a match is, if nothing joins the patterns: every molecule then matches
    /// many others, and only the order of this one's molecules is kept.
    pub(crate) anchor: Option<usize>,
}

#[derive(Clone)]
pub(crate) struct PatternNode {
    pub(crate) shape: usize,
    /// Indexes that can narrow down what may match.
    pub(crate) keys: Vec<(usize, Key)>,
    /// Whether variables that other patterns have too stand inside of a solution: one molecule then matches in many
    /// ways, and it is better to know the others first.
    pub(crate) fans: bool,
}

/// What to look up in an index.
#[derive(Clone)]
pub(crate) enum Key {
    Slot(Slot),
    Value(Value),
}

#[derive(Clone, Default)]
struct ShapeNode {
    /// Rules and the number of the pattern with this shape.
    subscribers: Vec<(usize, usize)>,
    indexes: Vec<usize>,
}

/// A hash index: the way to what molecules of a shape are indexed by.
#[derive(Clone, PartialEq)]
struct Index {
    shape: usize,
    path: Vec<Step>,
}

#[derive(Clone, PartialEq)]
enum Step {
    /// A component of a tuple.
    Part(usize),
    /// The elements of a solution that are tuples with a TAG and so many components.
    Tagged(SmolStr, usize),
    /// The elements of a solution.
    Each,
}

/// What distinguishes molecules at first sight.
enum Shape<'p> {
    Any,
    Kind(Type),
    Arity(usize),
    Head(&'p SmolStr, usize),
}

fn shape(pattern: &Pat) -> Shape<'_> {
    match pattern {
        Pat::Any | Pat::Var(_, None) => Shape::Any,
        Pat::Var(_, Some(kind)) => Shape::Kind(*kind),
        Pat::As(_, inner) => shape(inner),
        Pat::Solution(..) => Shape::Kind(Type::Solution),
        Pat::Tuple(items) => match items.first() {
            Some(Pat::Value(Value::Tag(tag))) => Shape::Head(tag, items.len()),
            _ => Shape::Arity(items.len()),
        },
        Pat::Value(v) => match v {
            Value::Tag(tag) => Shape::Head(tag, 1),
            Value::Tuple(t) => match t.first() {
                Value::Tag(tag) => Shape::Head(tag, t.items().len()),
                _ => Shape::Arity(t.items().len()),
            },
            Value::Int(_) => Shape::Kind(Type::Int),
            Value::Float(_) => Shape::Kind(Type::Float),
            Value::Text(_) => Shape::Kind(Type::Text),
            Value::Bool(_) => Shape::Kind(Type::Bool),
            Value::Solution(_) => Shape::Kind(Type::Solution),
            Value::Rule(_) => Shape::Kind(Type::Rule),
        },
    }
}

impl Network {
    pub(crate) fn find(&self, rule: &Arc<Rule>) -> Option<usize> {
        let same = |n: &RuleNode| Arc::ptr_eq(&n.rule, rule);
        if self.rules.len() <= 8
            && let Some(at) = self.rules.iter().position(same)
        {
            return Some(at);
        }
        self.by_rule.get(rule).copied()
    }

    /// Adds a rule that is not in here yet; returns its number.
    pub(crate) fn add(&mut self, rule: &Arc<Rule>) -> usize {
        if let Some(known) = self.find(rule) {
            return known;
        }
        let number = self.rules.len();
        let code = &rule.code;
        let mut uses = vec![0_usize; code.slots.len()];
        for pattern in &code.patterns {
            let mut seen = vec![false; code.slots.len()];
            walk(pattern, &mut Vec::new(), &mut |slot, _| seen[usize::from(slot)] = true);
            seen.iter().zip(&mut uses).for_each(|(seen, uses)| *uses += usize::from(*seen));
        }
        let mut patterns = Vec::new();
        for (at, pattern) in code.patterns.iter().enumerate() {
            let shape = self.shape(&shape(pattern));
            self.shapes[shape].subscribers.push((number, at));
            let mut keys = Vec::new();
            if code.patterns.len() > 1 {
                self.join_keys(pattern, shape, &uses, &mut keys);
            }
            let fans = keys.iter().any(|(index, _)| self.indexes[*index].path.len() > 1);
            patterns.push(PatternNode { shape, keys, fans });
        }
        let joined = uses.iter().any(|n| *n > 1);
        let anchor = if joined || patterns.len() < 2 { None } else { anchor(rule) };
        self.rules.push(RuleNode { rule: rule.clone(), patterns, anchor });
        self.by_rule.insert(rule.clone(), number);
        number
    }

    fn join_keys(&mut self, pattern: &Pat, shape: usize, uses: &[usize], keys: &mut Vec<(usize, Key)>) {
        let mut found: Vec<(Slot, Vec<Step>)> = Vec::new();
        walk(pattern, &mut Vec::new(), &mut |slot, path| {
            let joins = uses[usize::from(slot)] > 1 && !path.is_empty();
            if joins && !found.iter().any(|(s, _)| *s == slot) {
                found.push((slot, path.to_vec()));
            }
        });
        for (slot, path) in found {
            keys.push((self.index(shape, path), Key::Slot(slot)));
        }
        if let Pat::Tuple(items) = pattern {
            for (at, item) in items.iter().enumerate().skip(1) {
                if let Pat::Value(v) = item {
                    keys.push((self.index(shape, vec![Step::Part(at)]), Key::Value(v.clone())));
                }
            }
        }
    }

    fn index(&mut self, shape: usize, path: Vec<Step>) -> usize {
        let index = Index { shape, path };
        if let Some(known) = self.indexes.iter().position(|i| *i == index) {
            return known;
        }
        self.indexes.push(index);
        self.shapes[shape].indexes.push(self.indexes.len() - 1);
        self.indexes.len() - 1
    }

    fn shape(&mut self, shape: &Shape<'_>) -> usize {
        fn known<K: PartialEq>(list: &mut Vec<(K, usize)>, key: K, new: usize) -> usize {
            if let Some((_, at)) = list.iter().find(|(k, _)| *k == key) {
                return *at;
            }
            list.push((key, new));
            new
        }
        let new = self.shapes.len();
        let at = match shape {
            Shape::Any => *self.any.get_or_insert(new),
            Shape::Kind(kind) => known(&mut self.kinds, *kind, new),
            Shape::Arity(arity) => known(&mut self.arities, *arity, new),
            Shape::Head(tag, arity) => known(self.heads.entry((*tag).clone()).or_default(), *arity, new),
        };
        if at == new {
            self.shapes.push(ShapeNode::default());
        }
        at
    }

    pub(crate) fn shapes(&self) -> usize {
        self.shapes.len()
    }

    pub(crate) fn indexes(&self) -> usize {
        self.indexes.len()
    }

    /// The shapes that a molecule has, of those that rules ask for.
    pub(crate) fn shapes_of(&self, value: &Value) -> impl Iterator<Item = usize> + use<> {
        let of_kind = self.kinds.iter().find(|(kind, _)| kind.has(value)).map(|(_, s)| *s);
        let mut found = [of_kind, None, None, None];
        if !matches!(value, Value::Rule(_)) {
            found[1] = self.any;
        }
        let arity = value.components().len();
        if arity > 1 {
            found[2] = self.arities.iter().find(|(a, _)| *a == arity).map(|(_, s)| *s);
        }
        if let Some(list) = value.head().and_then(|tag| self.heads.get(tag)) {
            found[3] = list.iter().find(|(a, _)| *a == arity).map(|(_, s)| *s);
        }
        found.into_iter().flatten()
    }

    /// Who wants to know of molecules with a shape: rules and the numbers of their patterns.
    pub(crate) fn subscribers(&self, shape: usize) -> &[(usize, usize)] {
        &self.shapes[shape].subscribers
    }

    pub(crate) fn indexes_of(&self, shape: usize) -> impl Iterator<Item = usize> + '_ {
        self.shapes[shape].indexes.iter().copied()
    }

    /// What a molecule is indexed by, each value once.
    pub(crate) fn keys(&self, index: usize, value: &Value, f: &mut dyn FnMut(&Value)) {
        let path = &self.indexes[index].path;
        if path.iter().all(|step| matches!(step, Step::Part(_))) {
            return follow(path, value, &mut |key| f(key));
        }
        let mut keys = Vec::new();
        follow(path, value, &mut |key| keys.push(key));
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().for_each(f);
    }
}

/// The pattern that has all variables of `prefer`.
fn anchor(rule: &Rule) -> Option<usize> {
    let (_, prefer) = rule.ast.prefer.as_ref()?;
    rule.ast.patterns().position(|pattern| {
        let mut all = true;
        prefer.names(&mut |name, _| {
            let mut found = false;
            pattern.variables(&mut |bound| found |= bound.name == name);
            all &= found;
        });
        all
    })
}

fn follow<'v>(path: &[Step], value: &'v Value, f: &mut dyn FnMut(&'v Value)) {
    let [step, path @ ..] = path else { return f(value) };
    match (step, value) {
        (Step::Part(at), Value::Tuple(t)) => {
            if let Some(part) = t.items().get(*at) {
                follow(path, part, f);
            }
        }
        (Step::Tagged(tag, arity), Value::Solution(s)) => {
            let mut next = s.tagged(tag);
            while let Some(place) = next
                && let Some(element @ Value::Tuple(t)) = s.at(place)
                && t.first().is_tag(tag)
            {
                if t.items().len() == *arity {
                    follow(path, element, f);
                }
                next = s.after(place);
            }
        }
        (Step::Each, Value::Solution(s)) => {
            for element in s.iter() {
                follow(path, element, f);
            }
        }
        _ => {}
    }
}

/// Calls `f` with each variable of a pattern and the way to it.
fn walk(pattern: &Pat, path: &mut Vec<Step>, f: &mut dyn FnMut(Slot, &[Step])) {
    match pattern {
        Pat::Value(_) | Pat::Any => {}
        Pat::Var(slot, _) => f(*slot, path),
        Pat::As(slot, inner) => {
            f(*slot, path);
            walk(inner, path, f);
        }
        Pat::Tuple(items) => {
            for (at, item) in items.iter().enumerate() {
                path.push(Step::Part(at));
                walk(item, path, f);
                path.pop();
            }
        }
        Pat::Solution(items, _) => {
            for item in items {
                path.push(match shape(item) {
                    Shape::Head(tag, arity) if arity > 1 => Step::Tagged(tag.clone(), arity),
                    _ => Step::Each,
                });
                walk(item, path, f);
                path.pop();
            }
        }
    }
}
