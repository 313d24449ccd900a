//! What can be locked, and what is part of what: a graph without cycles, whose nodes are workflows, constructs, node
//! instances and the leaves below them.

use std::sync::Arc;

/// Something that can be locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(pub u32);

impl Unit {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All units and what they are parts of.
#[derive(Clone, Debug, Default)]
pub struct Units {
    nodes: Vec<Node>,
    free: Vec<Unit>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    parents: Vec<Unit>,
    children: Vec<Unit>,
    /// Everything above, looked for when somebody first asks.
    above: Option<Arc<[Unit]>>,
}

impl Units {
    /// A new unit below some others.
    pub fn add(&mut self, parents: &[Unit]) -> Unit {
        let unit = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            Unit(self.nodes.len() as u32 - 1)
        });
        for parent in parents {
            self.connect(*parent, unit);
        }
        unit
    }

    /// How many places for units there are; numbers of units are below it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no units.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == self.free.len()
    }

    /// What a unit is directly part of.
    pub fn parents(&self, unit: Unit) -> &[Unit] {
        &self.nodes[unit.index()].parents
    }

    /// What is directly part of a unit.
    pub fn children(&self, unit: Unit) -> &[Unit] {
        &self.nodes[unit.index()].children
    }

    /// Everything a unit is part of, on every path.
    pub fn above(&mut self, unit: Unit) -> Arc<[Unit]> {
        if let Some(above) = &self.nodes[unit.index()].above {
            return above.clone();
        }
        let found: Arc<[Unit]> = self.reach(unit, |n| &n.parents).into();
        self.nodes[unit.index()].above = Some(found.clone());
        found
    }

    /// Everything that is part of a unit.
    pub fn below(&self, unit: Unit) -> Vec<Unit> {
        self.reach(unit, |n| &n.children)
    }

    fn reach(&self, unit: Unit, next: impl Fn(&Node) -> &Vec<Unit>) -> Vec<Unit> {
        let mut found: Vec<Unit> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut open = vec![unit];
        while let Some(at) = open.pop() {
            for other in next(&self.nodes[at.index()]) {
                if seen.insert(*other) {
                    found.push(*other);
                    open.push(*other);
                }
            }
        }
        found
    }

    /// The way from a root down to a unit, without the unit itself, over the first parent of each.
    pub fn first_chain(&self, unit: Unit) -> Vec<Unit> {
        let mut chain: Vec<Unit> =
            std::iter::successors(self.parents(unit).first(), |u| self.parents(**u).first())
                .copied()
                .collect();
        chain.reverse();
        chain
    }

    /// Whether this is a way from a root down to a unit, without the unit itself.
    pub fn is_chain(&self, chain: &[Unit], unit: Unit) -> bool {
        let top = chain.first().copied().unwrap_or(unit);
        let steps = chain.iter().zip(chain.iter().skip(1).chain([&unit]));
        self.exists(top)
            && self.parents(top).is_empty()
            && steps.into_iter().all(|(p, c)| self.exists(*c) && self.parents(*c).contains(p))
    }

    /// Whether there is such a unit.
    pub fn exists(&self, unit: Unit) -> bool {
        unit.index() < self.nodes.len() && !self.free.contains(&unit)
    }

    /// Whether a unit would become part of itself if `child` were part of `parent`.
    pub fn closes_cycle(&self, parent: Unit, child: Unit) -> bool {
        parent == child || self.below(child).contains(&parent)
    }

    /// Makes `child` part of `parent`. The caller has looked whether that [closes a cycle](Self::closes_cycle).
    pub fn connect(&mut self, parent: Unit, child: Unit) {
        if !self.parents(child).contains(&parent) {
            self.nodes[child.index()].parents.push(parent);
            self.nodes[parent.index()].children.push(child);
            self.forget(child);
        }
    }

    /// `child` is no part of `parent` any more.
    pub fn disconnect(&mut self, parent: Unit, child: Unit) {
        self.nodes[child.index()].parents.retain(|p| *p != parent);
        self.nodes[parent.index()].children.retain(|c| *c != child);
        self.forget(child);
    }

    /// A unit is no more. Its number may come again.
    pub fn remove(&mut self, unit: Unit) {
        for parent in self.parents(unit).to_vec() {
            self.disconnect(parent, unit);
        }
        for child in self.children(unit).to_vec() {
            self.disconnect(unit, child);
        }
        self.nodes[unit.index()].above = None;
        self.free.push(unit);
    }

    fn forget(&mut self, unit: Unit) {
        self.nodes[unit.index()].above = None;
        for below in self.below(unit) {
            self.nodes[below.index()].above = None;
        }
    }
}
