//! Whether a value has the shape of a pattern, in all the ways it can.
//!
//! A pattern of a solution can match in many ways. What is left to do is a list of goals on the stack; each way runs
//! through to the end of the list before the next is tried.

use crate::code::{Bindings, Pat, Slot};
use crate::solution::{Place, Solution};
use crate::value::Value;
use std::cell::Cell;
use std::ops::ControlFlow;

/// `Break` ends the search.
pub(crate) type Flow = ControlFlow<()>;

/// Numbers that look random and are the same for the same seed (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    /// A number below `n`, which is not zero.
    pub(crate) fn below(&self, n: usize) -> usize {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// What is left to match.
enum Goals<'a> {
    Done,
    Match(&'a Pat, &'a Value, &'a Goals<'a>),
    Parts(&'a [Pat], &'a [Value], &'a Goals<'a>),
    Pick(&'a [Pat], Option<Slot>, &'a Solution, Option<&'a Taken<'a>>, &'a Goals<'a>),
}

/// Elements of a solution that are spoken for.
struct Taken<'a> {
    place: Place,
    before: Option<&'a Taken<'a>>,
}

/// Calls `found` for every way in which a value matches, until it breaks.
pub(crate) fn matches(
    pattern: &Pat,
    value: &Value,
    bindings: &mut Bindings,
    dice: Option<&Dice>,
    found: &mut dyn FnMut(&mut Bindings) -> Flow,
) -> Flow {
    Matcher { bindings, dice, found }.solve(&Goals::Match(pattern, value, &Goals::Done))
}

struct Matcher<'m> {
    bindings: &'m mut Bindings,
    dice: Option<&'m Dice>,
    found: &'m mut dyn FnMut(&mut Bindings) -> Flow,
}

impl Matcher<'_> {
    fn solve(&mut self, goals: &Goals<'_>) -> Flow {
        match *goals {
            Goals::Done => (self.found)(self.bindings),
            Goals::Match(pattern, value, then) => self.one(pattern, value, then),
            Goals::Parts(patterns, values, then) => match (patterns, values) {
                ([], _) | (_, []) => self.solve(then),
                ([pattern, patterns @ ..], [value, values @ ..]) => {
                    self.one(pattern, value, &Goals::Parts(patterns, values, then))
                }
            },
            Goals::Pick(patterns, rest, solution, taken, then) => match patterns {
                [] => self.leave(rest, solution, taken, then),
                [first, others @ ..] => self.pick(first, others, rest, solution, taken, then),
            },
        }
    }

    fn one(&mut self, pattern: &Pat, value: &Value, then: &Goals<'_>) -> Flow {
        match pattern {
            Pat::Value(v) if v == value => self.solve(then),
            Pat::Var(slot, kind) => {
                let fits = match kind {
                    Some(kind) => kind.has(value),
                    // A rule is matched only where a rule is asked for.
                    None => !matches!(value, Value::Rule(_)) || self.bindings[usize::from(*slot)].is_some(),
                };
                if fits { self.bind(*slot, value, then) } else { Flow::Continue(()) }
            }
            Pat::Any if !matches!(value, Value::Rule(_)) => self.solve(then),
            Pat::As(slot, inner) => self.bind(*slot, value, &Goals::Match(inner, value, then)),
            Pat::Tuple(patterns) => match value {
                Value::Tuple(t) if t.items().len() == patterns.len() => {
                    self.solve(&Goals::Parts(patterns, t.items(), then))
                }
                _ => Flow::Continue(()),
            },
            Pat::Solution(patterns, rest) => match value {
                Value::Solution(s)
                    if s.is_inert()
                        && (patterns.len() == s.len() || rest.is_some() && patterns.len() < s.len()) =>
                {
                    self.solve(&Goals::Pick(patterns, *rest, s, None, then))
                }
                _ => Flow::Continue(()),
            },
            Pat::Value(_) | Pat::Any => Flow::Continue(()),
        }
    }

    /// Binds a variable, or compares if it is bound already.
    fn bind(&mut self, slot: Slot, value: &Value, then: &Goals<'_>) -> Flow {
        let slot = usize::from(slot);
        if let Some(bound) = &self.bindings[slot] {
            return if bound == value { self.solve(then) } else { Flow::Continue(()) };
        }
        self.bindings[slot] = Some(value.clone());
        let flow = self.solve(then);
        self.bindings[slot] = None;
        flow
    }

    /// All patterns have an element; the others are the rest.
    fn leave(
        &mut self,
        rest: Option<Slot>,
        solution: &Solution,
        taken: Option<&Taken<'_>>,
        then: &Goals<'_>,
    ) -> Flow {
        let Some(slot) = rest else { return self.solve(then) };
        let mut places = Vec::new();
        let mut next = taken;
        while let Some(t) = next {
            places.push(t.place);
            next = t.before;
        }
        let left = Value::Solution(solution.without(&mut places));
        self.bind(slot, &left, then)
    }

    fn pick(
        &mut self,
        first: &Pat,
        others: &[Pat],
        rest: Option<Slot>,
        solution: &Solution,
        taken: Option<&Taken<'_>>,
        then: &Goals<'_>,
    ) -> Flow {
        let candidates = Candidates::new(first, solution, self.bindings);
        let try_one = |m: &mut Self, place: Place| -> Flow {
            let Some(value) = solution.at(place) else { return Flow::Continue(()) };
            let taken = Taken { place, before: taken };
            let goals = Goals::Pick(others, rest, solution, Some(&taken), then);
            m.one(first, value, &goals)
        };
        let mut previous: Option<&Value> = None;
        let mut free = candidates.filter(|place| !is_taken(taken, *place)).filter(|place| {
            // The same value again would only give the same matches again.
            let value = solution.at(*place);
            let new = value != previous || value.is_none();
            previous = value;
            new
        });
        if let Some(dice) = self.dice {
            let mut all: Vec<Place> = free.collect();
            while !all.is_empty() {
                let place = all.swap_remove(dice.below(all.len()));
                try_one(self, place)?;
            }
            return Flow::Continue(());
        }
        free.try_for_each(|place| try_one(self, place))
    }
}

fn is_taken(mut taken: Option<&Taken<'_>>, place: Place) -> bool {
    while let Some(t) = taken {
        if t.place == place {
            return true;
        }
        taken = t.before;
    }
    false
}

/// The elements of a solution that a pattern could match.
struct Candidates<'a> {
    solution: &'a Solution,
    next: Option<Place>,
    only: Only<'a>,
}

enum Only<'a> {
    All,
    Equal(Value),
    Tagged(&'a str),
}

impl<'a> Candidates<'a> {
    fn new(pattern: &'a Pat, solution: &'a Solution, bindings: &Bindings) -> Self {
        let only = match pattern {
            Pat::Value(v) => Only::Equal(v.clone()),
            Pat::Var(slot, _) | Pat::As(slot, _) => match &bindings[usize::from(*slot)] {
                Some(value) => Only::Equal(value.clone()),
                None => Only::All,
            },
            Pat::Tuple(items) => match items.first() {
                Some(Pat::Value(Value::Tag(tag))) => Only::Tagged(tag),
                _ => Only::All,
            },
            _ => Only::All,
        };
        let next = match &only {
            Only::All => solution.start(),
            Only::Equal(value) => solution.find(value),
            Only::Tagged(tag) => solution.tagged(tag),
        };
        Self { solution, next, only }
    }
}

impl Iterator for Candidates<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let place = self.next?;
        let value = self.solution.at(place)?;
        let fits = match &self.only {
            Only::All => true,
            Only::Equal(v) => v == value,
            Only::Tagged(tag) => matches!(value, Value::Tuple(t) if t.first().is_tag(tag)),
        };
        self.next = if fits { self.solution.after(place) } else { None };
        fits.then_some(place)
    }
}
