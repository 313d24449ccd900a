//! Solutions: multisets of values that share what they have in common.
//!
//! The elements are sorted and lie in chunks. Taking an element out of a solution of ten thousand copies one chunk
//! and the list of chunks, so that `?rest` stays cheap. The order makes elements that start with the same TAG
//! neighbours: it serves as the index for matching inside of solutions.

use crate::value::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// Chunks with more elements are split.
const CHUNK: usize = 64;

/// A multiset of values. Copying it costs nothing.
#[derive(Clone, Default)]
pub struct Solution(Option<Arc<Body>>);

#[derive(Clone, Default)]
struct Body {
    items: Items,
    len: usize,
    /// How many elements are rules.
    rules: usize,
    /// How many elements have something in them that may still react.
    restless: usize,
    depth: u16,
    /// Whether the rules in here are known to have nothing left to do.
    settled: bool,
}

/// Sorted elements.
#[derive(Clone)]
enum Items {
    Few(Vec<Value>),
    /// None of the chunks is empty.
    Many(Vec<Arc<Vec<Value>>>),
}

impl Default for Items {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Items {
    fn chunks(&self) -> usize {
        match self {
            Self::Few(_) => 1,
            Self::Many(chunks) => chunks.len(),
        }
    }

    fn chunk(&self, at: usize) -> &[Value] {
        match self {
            Self::Few(items) if at == 0 => items,
            Self::Few(_) => &[],
            Self::Many(chunks) => chunks.get(at).map_or(&[], |c| c),
        }
    }

    fn insert(&mut self, value: Value) {
        match self {
            Self::Few(items) => {
                let at = items.partition_point(|v| *v < value);
                items.insert(at, value);
                if items.len() > CHUNK {
                    let tail = items.split_off(CHUNK / 2);
                    *self = Self::Many(vec![Arc::new(std::mem::take(items)), Arc::new(tail)]);
                }
            }
            Self::Many(chunks) => {
                let at = chunks.partition_point(|c| c.last().is_some_and(|last| *last < value));
                let at = at.min(chunks.len().saturating_sub(1));
                let chunk = Arc::make_mut(&mut chunks[at]);
                let offset = chunk.partition_point(|v| *v < value);
                chunk.insert(offset, value);
                if chunk.len() > CHUNK {
                    let tail = chunk.split_off(CHUNK / 2);
                    chunks.insert(at + 1, Arc::new(tail));
                }
            }
        }
    }
}

/// Where an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    chunk: u32,
    offset: u32,
}

impl Solution {
    /// The solution with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |b| b.len)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &Value> + Clone {
        let body = self.0.as_deref();
        let chunks = body.map_or(0, |b| b.items.chunks());
        (0..chunks).flat_map(move |at| body.map_or(&[][..], |b| b.items.chunk(at)))
    }

    /// Adds an element.
    pub fn insert(&mut self, value: Value) {
        let body = Arc::make_mut(self.0.get_or_insert_default());
        body.count(&value, true);
        body.items.insert(value);
    }

    /// Adds all elements of another solution.
    pub fn extend(&mut self, other: Solution) {
        let (mut large, mut small) = (std::mem::take(self), other);
        if large.len() < small.len() {
            std::mem::swap(&mut large, &mut small);
        }
        for value in small.iter() {
            large.insert(value.clone());
        }
        *self = large;
    }

    /// Whether an element is in here.
    pub fn contains(&self, value: &Value) -> bool {
        self.find(value).is_some()
    }

    /// The value `v` of the first pair `TAG:v`.
    pub fn attribute(&self, tag: &str) -> Option<&Value> {
        let mut at = self.tagged(tag)?;
        loop {
            match self.at(at)? {
                Value::Tuple(t) if t.first().is_tag(tag) => {
                    if let [_, value] = t.items() {
                        return Some(value);
                    }
                }
                _ => return None,
            }
            at = self.after(at)?;
        }
    }

    /// Whether nothing in here can react.
    pub fn is_inert(&self) -> bool {
        self.0.as_ref().is_none_or(|b| b.restless == 0 && (b.rules == 0 || b.settled))
    }

    /// Whether there are rules among the elements.
    pub(crate) fn has_rules(&self) -> bool {
        self.0.as_ref().is_some_and(|b| b.rules > 0)
    }

    /// Notes that the rules in here have been tried on everything.
    pub(crate) fn settle(&mut self) {
        if let Some(body) = &mut self.0
            && body.rules > 0
            && !body.settled
        {
            Arc::make_mut(body).settled = true;
        }
    }

    /// How deeply values are nested in here.
    pub(crate) fn depth(&self) -> u16 {
        self.0.as_ref().map_or(1, |b| b.depth.saturating_add(1))
    }

    /// Where the first element is.
    pub(crate) fn start(&self) -> Option<Place> {
        self.0.as_ref().map(|_| Place { chunk: 0, offset: 0 })
    }

    /// The place behind another.
    pub(crate) fn after(&self, place: Place) -> Option<Place> {
        let items = &self.0.as_ref()?.items;
        if place.offset as usize + 1 < items.chunk(place.chunk as usize).len() {
            return Some(Place { offset: place.offset + 1, ..place });
        }
        (place.chunk as usize + 1 < items.chunks()).then_some(Place { chunk: place.chunk + 1, offset: 0 })
    }

    /// The element at a place.
    pub(crate) fn at(&self, place: Place) -> Option<&Value> {
        self.0.as_ref()?.items.chunk(place.chunk as usize).get(place.offset as usize)
    }

    /// Where a value is.
    pub(crate) fn find(&self, value: &Value) -> Option<Place> {
        let place = self.lower_bound(|v| v < value)?;
        (self.at(place)? == value).then_some(place)
    }

    /// Where the tuples are whose first component is a TAG.
    pub(crate) fn tagged(&self, tag: &str) -> Option<Place> {
        self.lower_bound(|v| match v {
            Value::Tuple(t) => t.first().cmp_tag(tag) == Ordering::Less,
            other => other.is_before_tuples(),
        })
    }

    /// What is left without the elements at some places.
    pub(crate) fn without(&self, places: &mut [Place]) -> Solution {
        if places.is_empty() {
            return self.clone();
        }
        if places.len() == self.len() {
            return Solution::new();
        }
        places.sort_unstable();
        let Some(old) = &self.0 else { return Solution::new() };
        let mut body = match &old.items {
            Items::Few(items) => {
                let mut left = Vec::with_capacity(items.len() - places.len());
                let mut gone = places.iter().map(|p| p.offset as usize).peekable();
                for (at, value) in items.iter().enumerate() {
                    if gone.next_if_eq(&at).is_none() {
                        left.push(value.clone());
                    }
                }
                Body { items: Items::Few(left), ..**old }
            }
            Items::Many(chunks) => {
                let mut chunks = chunks.clone();
                for place in places.iter().rev() {
                    let chunk = Arc::make_mut(&mut chunks[place.chunk as usize]);
                    chunk.remove(place.offset as usize);
                    if chunk.is_empty() {
                        chunks.remove(place.chunk as usize);
                    }
                }
                Body { items: Items::Many(chunks), ..**old }
            }
        };
        for value in places.iter().filter_map(|p| self.at(*p)) {
            body.count(value, false);
        }
        Solution(Some(Arc::new(body)))
    }

    fn lower_bound(&self, before: impl Fn(&Value) -> bool) -> Option<Place> {
        let items = &self.0.as_ref()?.items;
        let chunk = match items {
            Items::Few(_) => 0,
            Items::Many(chunks) => chunks.partition_point(|c| c.last().is_some_and(&before)),
        };
        let elements = items.chunk(chunk);
        let offset = elements.partition_point(before);
        (offset < elements.len()).then_some(Place { chunk: chunk as u32, offset: offset as u32 })
    }
}

impl Body {
    /// Keeps the numbers about the elements right. What was settled may react again once something comes in.
    fn count(&mut self, value: &Value, added: bool) {
        let rule = usize::from(matches!(value, Value::Rule(_)));
        let restless = usize::from(!value.is_inert());
        if added {
            self.len += 1;
            self.rules += rule;
            self.restless += restless;
            self.depth = self.depth.max(value.depth());
            self.settled = false;
        } else {
            self.len -= 1;
            self.rules -= rule;
            self.restless -= restless;
        }
    }
}

impl FromIterator<Value> for Solution {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        let mut values: Vec<Value> = values.into_iter().collect();
        if values.is_empty() {
            return Self::new();
        }
        values.sort_unstable();
        let mut body = Body::default();
        for value in &values {
            body.count(value, true);
        }
        if values.len() > CHUNK {
            let mut chunks = Vec::with_capacity(values.len() / (CHUNK / 2) + 1);
            while values.len() > CHUNK {
                chunks.push(Arc::new(values.split_off(values.len() - CHUNK / 2)));
            }
            chunks.push(Arc::new(values));
            chunks.reverse();
            body.items = Items::Many(chunks);
        } else {
            body.items = Items::Few(values);
        }
        Self(Some(Arc::new(body)))
    }
}

impl PartialEq for Solution {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => true,
            _ => self.len() == other.len() && self.iter().eq(other.iter()),
        }
    }
}

impl Eq for Solution {}

impl PartialOrd for Solution {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Solution {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl std::hash::Hash for Solution {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        for value in self.iter() {
            value.hash(state);
        }
    }
}

impl std::fmt::Debug for Solution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
