//! Step 6: which component comes next.
//!
//! Of the components that nothing else has to come before, the one whose smallest priority over the others is
//! largest; of equal ones the one that has waited longest. Components with equal profiles are
//! interchangeable, so the choice is one among kinds, and a priority is computed once for a pair of kinds,
//! and only if both are there together.

use super::decompose::Component;
use super::priority::{Ratio, priority};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The order in which components are executed.
pub(super) fn order(components: &[Component], profiles: Vec<Vec<u32>>, jobs: usize) -> Vec<u32> {
    let after = followers(components, jobs);
    let mut waits = vec![0u32; components.len()];
    for component in after.iter().flatten() {
        waits[*component as usize] += 1;
    }
    let (kinds, kind_of) = kinds(profiles);
    let mut choice = Choice::new(kinds);
    for component in 0..components.len() as u32 {
        if waits[component as usize] == 0 {
            choice.add(kind_of[component as usize], component);
        }
    }
    let mut order = Vec::with_capacity(components.len());
    while let Some(next) = choice.take() {
        order.push(next);
        for component in &after[next as usize] {
            waits[*component as usize] -= 1;
            if waits[*component as usize] == 0 {
                choice.add(kind_of[*component as usize], *component);
            }
        }
    }
    order
}

/// For each component those with a non-sink that is a sink of it.
fn followers(components: &[Component], jobs: usize) -> Vec<Vec<u32>> {
    let mut sink_of = vec![u32::MAX; jobs];
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); components.len()];
    for (number, component) in components.iter().enumerate() {
        let number = number as u32;
        for job in &component.non_sinks {
            let before = sink_of[*job as usize];
            if before != u32::MAX && after[before as usize].last() != Some(&number) {
                after[before as usize].push(number);
            }
        }
        for job in &component.sinks {
            sink_of[*job as usize] = number;
        }
    }
    after
}

/// The distinct profiles, and which of them each component has.
fn kinds(profiles: Vec<Vec<u32>>) -> (Vec<Vec<u32>>, Vec<usize>) {
    let mut numbers: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut kind_of = Vec::with_capacity(profiles.len());
    for profile in profiles {
        let next = numbers.len();
        kind_of.push(*numbers.entry(profile).or_insert(next));
    }
    let mut kinds = vec![Vec::new(); numbers.len()];
    for (profile, number) in numbers {
        kinds[number] = profile;
    }
    (kinds, kind_of)
}

/// The components to choose from.
struct Choice {
    kinds: Vec<Vec<u32>>,
    /// Components by kind, each with the number of those that came before.
    waiting: Vec<VecDeque<(u32, u32)>>,
    came: u32,
    /// Kinds with a component.
    present: BTreeSet<usize>,
    /// Priorities of kinds over kinds.
    known: HashMap<(usize, usize), Ratio>,
    /// The smallest priority over another one that is there, and over which kind.
    least: Vec<Option<(Ratio, usize)>>,
}

impl Choice {
    fn new(kinds: Vec<Vec<u32>>) -> Self {
        let n = kinds.len();
        Self {
            kinds,
            waiting: vec![VecDeque::new(); n],
            came: 0,
            present: BTreeSet::new(),
            known: HashMap::new(),
            least: vec![None; n],
        }
    }

    fn priority(&mut self, kind: usize, over: usize) -> Ratio {
        let kinds = &self.kinds;
        *self.known.entry((kind, over)).or_insert_with(|| priority(&kinds[kind], &kinds[over]))
    }

    fn add(&mut self, kind: usize, component: u32) {
        self.waiting[kind].push_back((self.came, component));
        self.came += 1;
        match self.waiting[kind].len() {
            1 => {
                self.present.insert(kind);
                self.find_least(kind);
                for other in self.present.clone() {
                    if other != kind {
                        self.lower(other, kind);
                    }
                }
            }
            2 => self.lower(kind, kind),
            _ => {}
        }
    }

    fn lower(&mut self, kind: usize, over: usize) {
        let priority = self.priority(kind, over);
        if self.least[kind].is_none_or(|(least, _)| priority < least) {
            self.least[kind] = Some((priority, over));
        }
    }

    fn find_least(&mut self, kind: usize) {
        self.least[kind] = None;
        for other in self.present.clone() {
            if other != kind || self.waiting[kind].len() > 1 {
                self.lower(kind, other);
            }
        }
    }

    fn take(&mut self) -> Option<u32> {
        let rank = |kind: usize| {
            let least = self.least[kind].map_or(Ratio::ONE, |(least, _)| least);
            let came = self.waiting[kind].front().map_or(u32::MAX, |(came, _)| *came);
            (least, std::cmp::Reverse(came))
        };
        let kind = self.present.iter().copied().max_by_key(|kind| rank(*kind))?;
        let (_, component) = self.waiting[kind].pop_front()?;
        match self.waiting[kind].len() {
            0 => {
                self.present.remove(&kind);
                for other in self.present.clone() {
                    if self.least[other].is_some_and(|(_, over)| over == kind) {
                        self.find_least(other);
                    }
                }
            }
            1 if self.least[kind].is_some_and(|(_, over)| over == kind) => self.find_least(kind),
            _ => {}
        }
        Some(component)
    }
}
