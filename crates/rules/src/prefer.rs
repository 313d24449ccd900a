//! Rules with `prefer`: the best of all matches reacts.
//!
//! In general all matches are kept, those of each molecule together and the best on top. Where one molecule alone decides and nothing joins it to the others,
//! there would be as many as there are pairs; then only these molecules are kept in their order, and the first that has
//! a match is the best.

use crate::ast::Toward;
use crate::code::Bindings;
use crate::engine::{Engine, Run, Stop};
use crate::eval::{Fault, eval_pure};
use crate::functions::Host;
use crate::matching::{Flow, matches};
use crate::memory::Id;
use crate::rule::Rule;
use crate::value::Float;
use std::collections::BinaryHeap;

/// Molecules that can react, and how good that would be.
pub(crate) struct Match {
    score: Float,
    number: u64,
    molecules: Vec<Id>,
    bindings: Bindings,
}

impl Match {
    /// Lower is better: by the score, then by what was found first.
    fn key(&self) -> (Float, u64) {
        (self.score, self.number)
    }
}

/// The matches of one molecule with those that were there before it.
pub(crate) struct Group {
    seed: Id,
    matches: BinaryHeap<Match>,
}

impl PartialEq for Match {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Match {}

impl PartialOrd for Match {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Match {
    /// Greater is better.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.key().cmp(&self.key())
    }
}

/// A molecule that decides how good a match is.
pub(crate) struct Anchor {
    id: Id,
    /// It reacts with none of the molecules that were born before.
    tried: u64,
}

impl Engine {
    /// Adds all matches of a molecule with older ones to the matches of a rule with `prefer`.
    pub(crate) fn collect(
        &mut self,
        rule: usize,
        seed: Id,
        pattern: usize,
        run: &Run<'_>,
    ) -> Result<(), Stop> {
        if let Some(anchor) = self.network.rules[rule].anchor {
            return self.collect_anchor(rule, seed, pattern == anchor, run);
        }
        let before = self.memory.born(seed);
        let mut matches = Vec::new();
        let mut number = self.states[rule].found;
        let node = &self.network.rules[rule];
        self.each_match(rule, (seed, pattern), 0..before, run, &mut |molecules, bindings| {
            if let Some(score) = score(&node.rule, bindings, run.host)? {
                number += 1;
                let molecules = molecules.iter().flatten().copied().collect();
                matches.push(Match { score, number, molecules, bindings: bindings.clone() });
            }
            Ok(Flow::Continue(()))
        })?;
        let state = &mut self.states[rule];
        state.found = number;
        let group = Group { seed, matches: matches.into() };
        state.matches.extend(group.matches.peek().map(Match::key).map(|key| (key, group)));
        Ok(())
    }

    /// The best match of a rule whose molecules are all still there.
    pub(crate) fn best(&mut self, rule: usize) -> Option<(Vec<Id>, Bindings)> {
        let groups = &mut self.states[rule].matches;
        loop {
            let (_, mut group) = groups.pop_first()?;
            // Whoever is gone takes all its matches along.
            if self.memory.get(group.seed).is_none() {
                continue;
            }
            let best = group.matches.pop();
            groups.extend(group.matches.peek().map(Match::key).map(|key| (key, group)));
            if let Some(m) = best
                && m.molecules.iter().all(|id| self.memory.get(*id).is_some())
            {
                return Some((m.molecules, m.bindings));
            }
        }
    }

    /// Puts a molecule that decides how good matches are in its place, or notes that there is another to match it with.
    fn collect_anchor(&mut self, rule: usize, seed: Id, is_anchor: bool, run: &Run<'_>) -> Result<(), Stop> {
        let born = self.memory.born(seed);
        if !is_anchor {
            self.states[rule].youngest = self.states[rule].youngest.max(born);
            return Ok(());
        }
        let node = &self.network.rules[rule];
        let (Some(anchor), Some(value)) = (node.anchor, self.memory.get(seed)) else { return Ok(()) };
        let code = &node.rule.code;
        let mut scores = Vec::new();
        let mut end = Ok(());
        let _ = matches(&code.patterns[anchor], value, &mut code.bindings(), None, &mut |bindings| {
            match score(&node.rule, bindings, run.host) {
                Ok(score) => scores.extend(score),
                Err(fault) => end = Err(Stop::Fault(fault, node.rule.label())),
            }
            if end.is_ok() { Flow::Continue(()) } else { Flow::Break(()) }
        });
        let anchors = &mut self.states[rule].anchors;
        anchors.extend(scores.into_iter().map(|score| ((score, born), Anchor { id: seed, tried: 0 })));
        end
    }

    /// The match of the best molecule that has one.
    pub(crate) fn best_anchor(
        &mut self,
        rule: usize,
        run: &Run<'_>,
    ) -> Result<Option<(Vec<Id>, Bindings)>, Stop> {
        let network = self.network.clone();
        let node = &network.rules[rule];
        let Some(pattern) = node.anchor else { return Ok(None) };
        let youngest = self.states[rule].youngest;
        let mut anchors = std::mem::take(&mut self.states[rule].anchors);
        let mut gone = Vec::new();
        let mut first = Ok(None);
        for (key, anchor) in &mut anchors {
            if self.memory.get(anchor.id).is_none() {
                gone.push(*key);
                continue;
            }
            if anchor.tried > youngest {
                continue;
            }
            // With more than two patterns, molecules that were tried before may match together with a new one.
            let after = if node.patterns.len() == 2 { anchor.tried } else { 0 };
            let mut found = None;
            let end =
                self.each_match(rule, (anchor.id, pattern), after..u64::MAX, run, &mut |ids, bindings| {
                    if score(&node.rule, bindings, run.host)? != Some(key.0) {
                        return Ok(Flow::Continue(()));
                    }
                    found = Some((ids.iter().flatten().copied().collect(), bindings.clone()));
                    Ok(Flow::Break(()))
                });
            first = end.map(|()| found);
            match &first {
                Ok(None) => anchor.tried = youngest + 1,
                _ => break,
            }
        }
        for key in gone {
            anchors.remove(&key);
        }
        self.states[rule].anchors = anchors;
        first
    }
}

/// How good a match is: lower is better. `None` if it lacks an attribute.
pub(crate) fn score(rule: &Rule, bindings: &Bindings, host: &dyn Host) -> Result<Option<Float>, Fault> {
    let Some((toward, ex)) = &rule.code.prefer else { return Ok(None) };
    let value = match eval_pure(ex, bindings, host) {
        Ok(value) => value,
        Err(fault) if fault.is_missing() => return Ok(None),
        Err(fault) => return Err(fault),
    };
    let Some(number) = value.as_number() else {
        let message = format!("`prefer` compares numbers, not {}", value.kind());
        return Err(Fault::new("type", ex.span, message));
    };
    Ok(Float::new(if *toward == Toward::Max { -number } else { number }))
}
