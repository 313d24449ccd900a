//! Finds molecules that match all patterns of a rule, starting from one that is new.

use crate::code::Bindings;
use crate::eval::{Fault, holds};
use crate::functions::Host;
use crate::matching::{Dice, Flow, matches};
use crate::memory::{Bucket, Id, Memory, SMALL};
use crate::network::{Key, RuleNode};

/// What is called with a match: the molecule of each pattern, and what variables are bound to.
pub(crate) type Found<'f> = dyn FnMut(&[Option<Id>], &Bindings) -> Result<Flow, Fault> + 'f;

/// One search. The patterns are joined one after the other, that with the fewest candidates first.
pub(crate) struct Search<'s> {
    pub(crate) memory: &'s Memory,
    pub(crate) node: &'s RuleNode,
    pub(crate) host: &'s dyn Host,
    pub(crate) dice: Option<&'s Dice>,
    /// The molecule that the search starts from, and its pattern.
    pub(crate) seed: (Id, usize),
    /// The molecule of each pattern, as far as chosen.
    pub(crate) chosen: Vec<Option<Id>>,
    /// The copy of the rule itself, which cannot react with it.
    pub(crate) itself: Option<Id>,
    /// Only molecules born before can join.
    pub(crate) before: u64,
    /// Only molecules born after can join.
    pub(crate) after: u64,
    /// Called with every match; `Break` ends the search.
    pub(crate) found: &'s mut Found<'s>,
    pub(crate) fault: Option<Fault>,
}

impl Search<'_> {
    /// Looks for matches of the molecule it starts from.
    pub(crate) fn start(&mut self) -> Result<Flow, Fault> {
        let mut bindings = self.node.rule.code.bindings();
        let (seed, pattern) = self.seed;
        let flow = if self.node.patterns[pattern].fans {
            self.join(&mut bindings, 0)
        } else {
            self.choose(pattern, seed, &mut bindings, 0)
        };
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(flow),
        }
    }

    fn choose(&mut self, pattern: usize, id: Id, bindings: &mut Bindings, condition: usize) -> Flow {
        let memory = self.memory;
        if Some(id) == self.itself || self.chosen.contains(&Some(id)) {
            return Flow::Continue(());
        }
        let Some(value) = memory.get(id) else { return Flow::Continue(()) };
        let node = self.node;
        let dice = self.dice;
        self.chosen[pattern] = Some(id);
        let flow = matches(&node.rule.code.patterns[pattern], value, bindings, dice, &mut |bindings| {
            self.join(bindings, condition)
        });
        self.chosen[pattern] = None;
        flow
    }

    /// Chooses a molecule for the next pattern. Conditions are checked in their order, as soon as they can be.
    fn join(&mut self, bindings: &mut Bindings, mut condition: usize) -> Flow {
        let node = self.node;
        for (ex, needs) in &node.rule.code.conditions[condition..] {
            if needs.iter().any(|slot| bindings[usize::from(*slot)].is_none()) {
                break;
            }
            condition += 1;
            match holds(ex, bindings, self.host) {
                Ok(true) => {}
                Ok(false) => return Flow::Continue(()),
                Err(fault) => return self.stop(fault),
            }
        }
        let start = Bucket::One(self.seed.0);
        let mut next: Option<(usize, &Bucket, usize)> = None;
        for (at, pattern) in node.patterns.iter().enumerate() {
            if self.chosen[at].is_some() {
                continue;
            }
            if at == self.seed.1 {
                // A molecule that matches in many ways is better left until more is known, if that is quick.
                if next.is_none_or(|(.., best)| SMALL < best) {
                    next = Some((at, &start, SMALL));
                }
                continue;
            }
            let mut bucket = self.memory.of_shape(pattern.shape);
            for (index, key) in &pattern.keys {
                let key = match key {
                    Key::Value(value) => Some(value),
                    Key::Slot(slot) => bindings[usize::from(*slot)].as_ref(),
                };
                let Some(key) = key else { continue };
                let Some(found) = self.memory.with_key(*index, key) else { continue };
                if found.len() < bucket.len() {
                    bucket = found;
                }
            }
            if bucket.len() == 0 {
                return Flow::Continue(());
            }
            if next.is_none_or(|(.., best)| bucket.len() < best) {
                next = Some((at, bucket, bucket.len()));
            }
        }
        let Some((pattern, bucket, _)) = next else {
            return match (self.found)(&self.chosen, bindings) {
                Ok(flow) => flow,
                Err(fault) => self.stop(fault),
            };
        };
        let entries = bucket.entries();
        let first = if pattern == self.seed.1 { 0 } else { self.first_after(bucket) };
        let start = if first == 0 { self.dice.map_or(0, |d| d.below(entries)) } else { 0 };
        for i in first..entries {
            let at = if start == 0 { i } else { (start + i) % entries };
            let Some(id) = bucket.entry(at) else { continue };
            if pattern == self.seed.1 || (self.after..self.before).contains(&self.memory.born(id)) {
                self.choose(pattern, id, bindings, condition)?;
            }
        }
        Flow::Continue(())
    }

    /// Where the molecules begin that are young enough. They are at the end.
    fn first_after(&self, bucket: &Bucket) -> usize {
        let mut first = if self.after == 0 { 0 } else { bucket.entries() };
        while first > 0
            && bucket
                .entry(first - 1)
                .is_some_and(|id| self.memory.get(id).is_none() || self.memory.born(id) >= self.after)
        {
            first -= 1;
        }
        first
    }

    fn stop(&mut self, fault: Fault) -> Flow {
        self.fault = Some(fault);
        Flow::Break(())
    }
}
