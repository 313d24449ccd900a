//! Who is below a node: lets it show the way to a leaf at once.

use super::key::Key;
use super::label::Label;
use serde::{Deserialize, Serialize};

/// How many leaves a map shows. A node that has more below it shows only itself, so maps stay small.
const MOST: usize = 24;

/// Leaves below a node, or nodes that know more, each with the first key that it looks after. It may be out of date: that costs
/// requests, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Map(Vec<(Key, Label)>);

impl Map {
    /// Shows one node.
    pub(super) fn of(label: Label, first: Key) -> Self {
        Self(vec![(first, label)])
    }

    /// What is below two children, or nothing if that is too much.
    pub(super) fn join(low: &Self, high: &Self) -> Option<Self> {
        (low.0.len() + high.0.len() <= MOST).then(|| Self(low.0.iter().chain(&high.0).copied().collect()))
    }

    /// Who looks after a key.
    pub(super) fn find(&self, key: Key) -> Option<Label> {
        let after = self.0.partition_point(|(first, _)| *first <= key);
        self.0.get(after.saturating_sub(1)).map(|(_, label)| *label)
    }
}
