//! The engine against a search that tries everything: every rule, with every choice of molecules in every order, without
//! agendas or indexes. Where the engine ends must be one of the places where the search can end.

use crate::code::{Bindings, Product};
use crate::engine::Engine;
use crate::eval::{eval_pure, holds};
use crate::functions::NoHost;
use crate::matching::{Flow, matches};
use crate::network::RuleSet;
use crate::prefer::score;
use crate::rule::Rule;
use crate::solution::Solution;
use crate::value::{Float, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every reaction of these makes the solution smaller, or closer to its end in another way.
const RULES: &[&str] = &[
    "replace x::int, y::int by x if x > y",
    "replace A:x, A:y by B:(x + y)",
    "replace A:x, B:x by x",
    "replace A:x keeping B:x by C:x",
    "replace A:x keeping A:x by",
    "replace C:x, x::int by B:x",
    "replace S:<x, ?w> by x, ?w",
    "replace S:<A:x, ?w>, B:x by S:<?w>",
    "replace S:<x::int, ?w> keeping C:x by S:<?w>",
    "replace-one x::int by C:x",
    "replace A:x, B:y by C:x if x < y",
    "replace S:<?v>, S:<?w> by S:<?v, ?w>",
    "replace C:x by if x == 2",
    "replace A:x, x::int, B:x by C:x",
    "replace A:x, B:y by C:(x - y) prefer max x - y",
    "replace A:x, B:y by C:x prefer min y",
    "replace A:x, B:x by C:x prefer min x",
    "replace C:x, x::int by priority 3",
    "replace S:<A:x, ?w>, x::int by S:<?w> prefer max x priority 1",
    "replace-one r::rule, A:0 by",
    "replace B:x by (replace-one A:x by) if x > 1",
];

fn molecules() -> impl Strategy<Value = Value> {
    let small = (0_i64..3).prop_map(Value::Int);
    let tagged = (prop::sample::select(&["A", "B", "C"][..]), 0_i64..3)
        .prop_filter_map("", |(t, n)| Value::tuple([Value::tag(t), Value::Int(n)]));
    let inner = prop::collection::vec(prop_oneof![small.clone(), tagged.clone()], 0..3);
    let sub = inner.prop_filter_map("", |items| Value::tuple([Value::tag("S"), Value::solution(items)?]));
    prop_oneof![2 => small, 4 => tagged, 2 => sub]
}

/// A reaction that is possible: how good it is, and the solution after it.
type Possible = (Option<Float>, Solution);

/// All reactions of the rule at a place in the list of molecules.
fn reactions(all: &[&Value], at: usize, rule: &Arc<Rule>) -> Vec<Possible> {
    let mut found = Vec::new();
    let mut bindings = rule.code.bindings();
    choose(all, at, rule, &mut Vec::new(), &mut bindings, &mut found);
    found
}

fn choose(
    all: &[&Value],
    itself: usize,
    rule: &Arc<Rule>,
    chosen: &mut Vec<usize>,
    bindings: &mut Bindings,
    found: &mut Vec<Possible>,
) {
    let Some(pattern) = rule.code.patterns.get(chosen.len()) else {
        let holds = |(ex, _): &(_, _)| holds(ex, bindings, &NoHost) == Ok(true);
        if rule.code.conditions.iter().all(holds) {
            let score = score(rule, bindings, &NoHost).expect("numbers");
            found.push((score, after(all, itself, rule, chosen, bindings)));
        }
        return;
    };
    for at in (0..all.len()).filter(|at| *at != itself) {
        if chosen.contains(&at) {
            continue;
        }
        chosen.push(at);
        let _ = matches(pattern, all[at], bindings, None, &mut |bindings| {
            choose(all, itself, rule, chosen, bindings, found);
            Flow::Continue(())
        });
        chosen.pop();
    }
}

fn after(all: &[&Value], itself: usize, rule: &Arc<Rule>, chosen: &[usize], bindings: &Bindings) -> Solution {
    let gone = |at: usize| chosen[..rule.code.take].contains(&at) || (rule.is_once() && at == itself);
    let left = (0..all.len()).filter(|at| !gone(*at)).map(|at| all[at].clone());
    let mut left: Solution = left.collect();
    for product in &rule.code.give {
        match product {
            Product::One(ex) => left.insert(eval_pure(ex, bindings, &NoHost).expect("a value")),
            Product::Rest(slot) => match &bindings[usize::from(*slot)] {
                Some(Value::Solution(s)) => left.extend(s.clone()),
                other => panic!("{other:?} is no rest"),
            },
            Product::Effect(..) => panic!("no effects here"),
        }
    }
    left
}

/// All solutions that can come next: of the rules with the highest priority that can react, the best reactions.
fn successors(solution: &Solution) -> BTreeSet<Solution> {
    let all: Vec<&Value> = solution.iter().collect();
    let rules = all
        .iter()
        .enumerate()
        .filter_map(|(at, v)| if let Value::Rule(r) = v { Some((at, r)) } else { None });
    let possible: Vec<(i64, Vec<Possible>)> = rules
        .map(|(at, r)| (r.priority(), reactions(&all, at, r)))
        .filter(|(_, list)| !list.is_empty())
        .collect();
    let highest = possible.iter().map(|(p, _)| *p).max();
    let mut next = BTreeSet::new();
    for (_, list) in possible.into_iter().filter(|(p, _)| Some(*p) == highest) {
        let best = list.iter().map(|(score, _)| *score).min().flatten();
        next.extend(list.into_iter().filter(|(score, _)| *score == best).map(|(_, s)| s));
    }
    next
}

/// All solutions a program can end with, unless they are too many to try.
fn all_ends(start: &Solution) -> Option<BTreeSet<Solution>> {
    let mut seen = BTreeSet::from([start.clone()]);
    let mut open = vec![start.clone()];
    let mut ends = BTreeSet::new();
    while let Some(solution) = open.pop() {
        if seen.len() > 2000 {
            return None;
        }
        let next = successors(&solution);
        if next.is_empty() {
            ends.insert(solution);
        }
        open.extend(next.into_iter().filter(|s| seen.insert(s.clone())));
    }
    Some(ends)
}

/// Adds molecules to what has come to rest already, lets them react, and compares with what is possible.
fn go_on(engine: &mut Engine, more: &[Value], step: u64) -> Result<(), TestCaseError> {
    let start: Solution = engine.molecules().chain(more).cloned().collect();
    for molecule in more {
        engine.add(molecule.clone());
    }
    while !engine.run(step, &mut NoHost).expect("no faults").is_inert() {}
    let end: Solution = engine.molecules().cloned().collect();
    if let Some(ends) = all_ends(&start) {
        prop_assert!(ends.contains(&end), "{} ends as {}, which is not among {:?}", start, end, ends);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5000) })]
    #[test]
    fn the_engine_ends_where_an_exhaustive_search_can_end(
        rules in prop::sample::subsequence(RULES, 1..5),
        first in prop::collection::vec(molecules(), 0..7),
        then in prop::collection::vec(molecules(), 0..4),
    ) {
        let rules = rules.iter().map(|r| Value::parse(&format!("({r})")).expect("a rule"));
        let first: Vec<Value> = rules.chain(first).collect();
        for seed in [None, Some(1), Some(2), Some(3)] {
            let mut engine = Engine::new(&RuleSet::default());
            if let Some(seed) = seed {
                engine.set_seed(seed);
            }
            // Whoever stops often must come to the same ends.
            let step = if seed == Some(3) { 1 } else { 10_000 };
            go_on(&mut engine, &first, step)?;
            go_on(&mut engine, &then, step)?;
        }
    }
}
