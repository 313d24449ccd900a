//! Values of variables while a workflow is planned.

use catena_model::{Name, Value, value_to_text};
use std::sync::Arc;

/// What is known about a variable. Most values are one string, so that case is kept small.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    Unset,
    /// The output of a loop that still collects.
    Growing {
        in_loop: u32,
        output: u32,
    },
    Text(Name),
    Value(Arc<Value>),
    /// The files of a directory, and the directory itself.
    Directory(Arc<(Name, Vec<Value>)>),
    /// The action that would have produced it was skipped.
    Skipped,
}

impl From<Value> for Slot {
    fn from(value: Value) -> Self {
        match value {
            Value::String(s) => Slot::Text(s.into()),
            other => Slot::Value(Arc::new(other)),
        }
    }
}

impl Slot {
    pub(crate) fn directory(path: Name, files: Vec<Value>) -> Self {
        Slot::Directory(Arc::new((path, files)))
    }

    pub(crate) fn is_set(&self) -> bool {
        !matches!(self, Slot::Unset | Slot::Growing { .. })
    }

    /// The value, `Null` if it was skipped, `None` if it is not known.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Slot::Unset | Slot::Growing { .. } => None,
            Slot::Text(s) => Some(Value::String(s.to_string())),
            Slot::Value(v) => Some((**v).clone()),
            Slot::Directory(d) => Some(Value::Array(d.1.clone())),
            Slot::Skipped => Some(Value::Null),
        }
    }

    /// The value as items of a list: lists are taken apart, skipped values vanish.
    pub(crate) fn to_items(&self) -> Vec<Value> {
        match self.to_value() {
            Some(Value::Array(items)) => items,
            Some(Value::Null) | None => Vec::new(),
            Some(other) => vec![other],
        }
    }

    /// The value as one element of a list, which a list can be as well; nothing if it was skipped.
    pub(crate) fn to_element(&self) -> Option<Value> {
        self.to_value().filter(|v| !v.is_null())
    }

    /// How many elements it has as a list, `None` if it is not known.
    pub(crate) fn length(&self) -> Option<usize> {
        match self {
            Slot::Unset | Slot::Growing { .. } => None,
            Slot::Text(_) => Some(1),
            Slot::Value(v) => Some(list_length(v)),
            Slot::Directory(d) => Some(d.1.len()),
            Slot::Skipped => Some(0),
        }
    }

    /// An element of it as a list.
    pub(crate) fn element(&self, index: usize) -> Value {
        match self {
            Slot::Unset | Slot::Growing { .. } | Slot::Skipped => Value::Null,
            Slot::Text(s) => Value::String(s.to_string()),
            Slot::Value(v) => list_element(v, index),
            Slot::Directory(d) => d.1[index].clone(),
        }
    }

    /// The value as arguments of a task; `directory` asks for the directory a list of files is in.
    pub(crate) fn to_arguments(&self, directory: bool) -> Vec<Name> {
        match self {
            Slot::Text(s) => vec![s.clone()],
            Slot::Directory(d) if directory => vec![d.0.clone()],
            Slot::Value(v) if directory && v.is_array() => {
                let files = text_values(v);
                common_directory(&files).map(Name::new).into_iter().collect()
            }
            other => other
                .to_value()
                .map(|v| text_values(&v))
                .unwrap_or_default()
                .into_iter()
                .map(Name::new)
                .collect(),
        }
    }
}

/// How many elements a value has as a list; one value is a list of itself.
pub(crate) fn list_length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Null => 0,
        _ => 1,
    }
}

/// An element of a value as a list.
pub(crate) fn list_element(value: &Value, index: usize) -> Value {
    match value {
        Value::Array(items) => items[index].clone(),
        other => other.clone(),
    }
}

/// A value as texts: lists are flattened.
pub(crate) fn text_values(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(text_values).collect(),
        Value::Null => Vec::new(),
        other => vec![value_to_text(other)],
    }
}

/// The longest directory that all files are in.
fn common_directory(files: &[String]) -> Option<String> {
    let (first, rest) = files.split_first()?;
    let shared = rest
        .iter()
        .fold(first.len(), |n, f| first.bytes().zip(f.bytes()).take(n).take_while(|(a, b)| a == b).count());
    let mut end = shared;
    while !first.is_char_boundary(end) {
        end -= 1;
    }
    first[..end].rfind('/').map(|at| first[..at].to_owned())
}
