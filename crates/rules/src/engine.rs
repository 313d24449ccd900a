//! Lets the molecules of a solution react until nothing can react any more.
//!
//! Every rule has an agenda of molecules that it has not tried yet. A rule whose agenda is empty has nothing to do: no
//! combination of molecules it has tried can react, because taking molecules away never makes a reaction possible. So
//! the solution is inert when all agendas are empty, and only what is new is ever looked at.

use crate::code::{Bindings, Product};
use crate::eval::{Fault, eval_full, eval_pure};
use crate::functions::Host;
use crate::matching::{Dice, Flow};
use crate::memory::{Id, Memory};
use crate::network::{Network, RuleSet};
use crate::outcome::{Outcome, Reaction, RunError};
use crate::prefer::{Anchor, Group};
use crate::rule::Rule;
use crate::search::{Found, Search};
use crate::settle::settle;
use crate::solution::Solution;
use crate::value::{Float, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// A solution whose molecules react.
pub struct Engine {
    pub(crate) network: Arc<Network>,
    pub(crate) memory: Memory,
    /// By number of the rule in the network.
    pub(crate) states: Vec<State>,
    /// Rules with something on their agenda, the first to try first.
    busy: BTreeSet<Turn>,
    /// Molecules that are not in yet: what is inside of them may have to react first.
    pub(crate) incoming: VecDeque<Value>,
    pub(crate) dice: Option<Dice>,
}

/// In which order rules are tried: higher priorities first, then as they are written.
type Turn = (Reverse<i64>, u32, u32, usize);

/// How it stands with a rule.
#[derive(Default)]
pub(crate) struct State {
    /// Whether the rule came with the rule set: it is there without being a molecule.
    given: bool,
    /// The molecules that are this rule.
    copies: Vec<Id>,
    /// Molecules that are new to the rule, and which pattern they are tried with.
    agenda: VecDeque<(Id, usize)>,
    /// For rules with `prefer`: all matches, by the best of each group. Some may have lost a molecule since.
    pub(crate) matches: BTreeMap<(Float, u64), Group>,
    /// How many matches were found.
    pub(crate) found: u64,
    /// For rules with `prefer` where one molecule alone decides: these molecules, the best first.
    pub(crate) anchors: BTreeMap<(Float, u64), Anchor>,
    /// When the youngest of the other molecules was born.
    pub(crate) youngest: u64,
}

impl State {
    fn is_there(&self) -> bool {
        self.given || !self.copies.is_empty()
    }
}

/// Why a run does not go on.
pub(crate) enum Stop {
    Limit,
    Fault(Fault, String),
}

/// What all solutions inside of each other share during a run.
pub(crate) struct Run<'h> {
    pub(crate) host: &'h mut dyn Host,
    limit: u64,
    reactions: u64,
    pub(crate) depth: usize,
    pub(crate) seed: Option<Dice>,
    /// Rule sets of inner solutions, which usually have the same rules again and again.
    pub(crate) networks: HashMap<Vec<usize>, Arc<Network>>,
    /// How often rules have fired of late.
    recent: Vec<(Arc<Rule>, u32)>,
}

/// After so many reactions, counting of recent ones begins anew.
const RECENT: u64 = 1000;

impl Run<'_> {
    fn count(&mut self, rule: &Arc<Rule>) {
        if self.reactions.is_multiple_of(RECENT) {
            self.recent.clear();
        }
        self.reactions += 1;
        match self.recent.iter_mut().find(|(r, _)| Arc::ptr_eq(r, rule)) {
            Some((_, times)) => *times += 1,
            None => self.recent.push((rule.clone(), 1)),
        }
    }
}

impl Engine {
    /// A solution with nothing in it, in which rules are at work.
    pub fn new(rules: &RuleSet) -> Self {
        let mut engine = Self::with(rules.0.clone());
        for state in &mut engine.states {
            state.given = true;
        }
        engine
    }

    pub(crate) fn with(network: Arc<Network>) -> Self {
        let mut memory = Memory::default();
        memory.grow(&network);
        let mut states = Vec::new();
        states.resize_with(network.rules.len(), State::default);
        Self { network, memory, states, busy: BTreeSet::new(), incoming: VecDeque::new(), dice: None }
    }

    /// Chooses among possible reactions at random: the same for the same seed.
    pub fn set_seed(&mut self, seed: u64) {
        self.dice = Some(Dice::new(seed));
    }

    /// Adds a molecule. Rules are molecules too.
    pub fn add(&mut self, molecule: Value) {
        self.incoming.push_back(molecule);
    }

    /// The molecules, in no particular order.
    pub fn molecules(&self) -> impl Iterator<Item = &Value> {
        self.memory.iter().chain(&self.incoming)
    }

    /// How many molecules there are.
    pub fn len(&self) -> usize {
        self.memory.len() + self.incoming.len()
    }

    /// Whether there are no molecules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The molecules as a value.
    pub fn into_solution(self) -> Solution {
        self.memory.into_values().chain(self.incoming).collect()
    }

    /// Lets molecules react until none can, or until there were so many reactions. It can be called again.
    pub fn run(&mut self, limit: u64, host: &mut dyn Host) -> Result<Outcome, RunError> {
        let seed = self.dice.clone();
        let mut run =
            Run { host, limit, reactions: 0, depth: 0, seed, networks: HashMap::new(), recent: Vec::new() };
        let end = self.react(&mut run);
        let reactions = run.reactions;
        match end {
            Ok(()) => Ok(Outcome::Inert { reactions }),
            Err(Stop::Fault(fault, rule)) => Err(RunError { fault, rule, reactions }),
            Err(Stop::Limit) => {
                let most = run.recent.iter().max_by_key(|(_, times)| *times);
                Ok(Outcome::Limit { reactions, rule: most.map(|(r, _)| r.label()).unwrap_or_default() })
            }
        }
    }

    pub(crate) fn react(&mut self, run: &mut Run<'_>) -> Result<(), Stop> {
        while let Some(molecule) = self.incoming.pop_front() {
            self.take_in(molecule, run)?;
        }
        while let Some(turn) = self.next_turn() {
            self.step(turn, run)?;
        }
        Ok(())
    }

    /// The rule that is tried next.
    fn next_turn(&self) -> Option<Turn> {
        let first = self.busy.first()?;
        let Some(dice) = &self.dice else { return Some(*first) };
        let equals: Vec<&Turn> = self.busy.iter().take_while(|t| t.0 == first.0).collect();
        Some(*equals[dice.below(equals.len())])
    }

    fn turn(&self, rule: usize) -> Turn {
        let r = &self.network.rules[rule].rule;
        (Reverse(r.priority()), r.span().line, r.span().column, rule)
    }

    /// Tries a rule with one molecule of its agenda, or its best match.
    fn step(&mut self, turn: Turn, run: &mut Run<'_>) -> Result<(), Stop> {
        let rule = turn.3;
        let prefers = self.network.rules[rule].rule.code.prefer.is_some();
        self.memory.make_indexes(&self.network, rule);
        let state = &mut self.states[rule];
        let seed = match &self.dice {
            Some(dice) if !prefers && !state.agenda.is_empty() => {
                let at = dice.below(state.agenda.len());
                state.agenda.swap_remove_back(at)
            }
            _ => state.agenda.pop_front(),
        };
        let found = match seed {
            Some((seed, _)) if self.memory.get(seed).is_none() => return Ok(()),
            Some((seed, pattern)) => {
                let found = if prefers {
                    self.collect(rule, seed, pattern, run).map(|()| None)
                } else {
                    self.search(rule, seed, pattern, run)
                };
                if !matches!(found, Ok(None)) {
                    // It may react once more if it is still there afterwards, or fail again.
                    self.states[rule].agenda.push_front((seed, pattern));
                }
                match found? {
                    None => return Ok(()),
                    found => found,
                }
            }
            None if self.network.rules[rule].anchor.is_some() => self.best_anchor(rule, run)?,
            None => self.best(rule),
        };
        match found {
            Some((molecules, bindings)) => self.fire(rule, &molecules, &bindings, run),
            None if self.states[rule].agenda.is_empty() && self.states[rule].matches.is_empty() => {
                self.busy.remove(&turn);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The first match with a molecule.
    fn search(
        &self,
        rule: usize,
        seed: Id,
        pattern: usize,
        run: &Run<'_>,
    ) -> Result<Option<(Vec<Id>, Bindings)>, Stop> {
        let mut first = None;
        self.each_match(rule, (seed, pattern), 0..u64::MAX, run, &mut |molecules, bindings| {
            first = Some((molecules.iter().flatten().copied().collect(), bindings.clone()));
            Ok(Flow::Break(()))
        })?;
        Ok(first)
    }

    pub(crate) fn each_match(
        &self,
        rule: usize,
        (seed, pattern): (Id, usize),
        born: Range<u64>,
        run: &Run<'_>,
        found: &mut Found<'_>,
    ) -> Result<(), Stop> {
        let node = &self.network.rules[rule];
        let mut search = Search {
            memory: &self.memory,
            node,
            host: run.host,
            dice: self.dice.as_ref(),
            seed: (seed, pattern),
            chosen: vec![None; node.patterns.len()],
            itself: self.states[rule].copies.first().copied(),
            before: born.end,
            after: born.start,
            found,
            fault: None,
        };
        match search.start() {
            Ok(_) => Ok(()),
            Err(fault) => Err(Stop::Fault(fault, node.rule.label())),
        }
    }

    fn fire(
        &mut self,
        rule: usize,
        molecules: &[Id],
        bindings: &Bindings,
        run: &mut Run<'_>,
    ) -> Result<(), Stop> {
        if run.reactions >= run.limit {
            // Nothing is lost: the match is found again when the run goes on.
            self.reconsider(rule, molecules);
            return Err(Stop::Limit);
        }
        let rule_ref = &self.network.rules[rule].rule.clone();
        let taken = &molecules[..rule_ref.code.take];
        let produced = match produce(rule_ref, bindings, run.host) {
            Ok(produced) => produced,
            Err(fault) => {
                self.reconsider(rule, molecules);
                return Err(Stop::Fault(fault, rule_ref.label()));
            }
        };
        let consumed: Vec<Value> = taken.iter().filter_map(|id| self.take_out(*id)).collect();
        if rule_ref.is_once() {
            self.spend(rule);
        }
        run.count(rule_ref);
        run.host.reacted(&Reaction {
            rule: rule_ref,
            consumed: &consumed,
            produced: &produced,
            depth: run.depth,
        });
        let mut produced = produced.into_iter();
        while let Some(molecule) = produced.next() {
            if let Err(stop) = self.take_in(molecule, run) {
                self.incoming.extend(produced);
                return Err(stop);
            }
        }
        Ok(())
    }

    /// Puts molecules that could not react after all back on the agenda.
    fn reconsider(&mut self, rule: usize, molecules: &[Id]) {
        let youngest = (0..molecules.len()).max_by_key(|at| self.memory.born(molecules[*at]));
        if let Some(at) = youngest {
            self.states[rule].agenda.push_front((molecules[at], at));
            let turn = self.turn(rule);
            self.busy.insert(turn);
        }
    }

    /// A rule that reacts once has done so.
    fn spend(&mut self, rule: usize) {
        match self.states[rule].copies.first().copied() {
            Some(copy) => {
                self.take_out(copy);
            }
            None => {
                self.states[rule].given = false;
                self.rest(rule);
            }
        }
    }

    /// A rule that is no longer there has nothing to do.
    fn rest(&mut self, rule: usize) {
        let state = &mut self.states[rule];
        if !state.is_there() {
            state.agenda.clear();
            state.matches.clear();
            state.anchors.clear();
            state.youngest = 0;
            let turn = self.turn(rule);
            self.busy.remove(&turn);
        }
    }

    fn take_out(&mut self, id: Id) -> Option<Value> {
        let value = self.memory.remove(&self.network, id)?;
        if let Value::Rule(rule) = &value
            && let Some(rule) = self.network.find(rule)
        {
            self.states[rule].copies.retain(|copy| *copy != id);
            self.rest(rule);
        }
        Some(value)
    }

    /// Lets what is inside of a molecule react, and adds it.
    fn take_in(&mut self, molecule: Value, run: &mut Run<'_>) -> Result<(), Stop> {
        let molecule = if molecule.is_inert() {
            molecule
        } else {
            let (molecule, end) = settle(molecule, run);
            if let Err(stop) = end {
                self.incoming.push_front(molecule);
                return Err(stop);
            }
            molecule
        };
        let rule = if let Value::Rule(rule) = &molecule { Some(self.know(rule)) } else { None };
        let network = self.network.clone();
        let shapes = network.shapes_of(&molecule);
        let id = self.memory.insert(&network, molecule);
        for shape in shapes {
            for (subscriber, pattern) in network.subscribers(shape) {
                let state = &mut self.states[*subscriber];
                if state.is_there() {
                    state.agenda.push_back((id, *pattern));
                    let turn = self.turn(*subscriber);
                    self.busy.insert(turn);
                }
            }
        }
        if let Some(rule) = rule {
            let was_there = self.states[rule].is_there();
            self.states[rule].copies.push(id);
            if !was_there {
                self.begin(rule);
            }
        }
        Ok(())
    }

    /// The number of a rule, which may be new.
    fn know(&mut self, rule: &Arc<Rule>) -> usize {
        if let Some(known) = self.network.find(rule) {
            return known;
        }
        let number = Arc::make_mut(&mut self.network).add(rule);
        self.memory.grow(&self.network);
        self.states.resize_with(self.network.rules.len(), State::default);
        number
    }

    /// A rule has come in: everything is new to it.
    fn begin(&mut self, rule: usize) {
        let mut agenda = Vec::new();
        for (pattern, node) in self.network.rules[rule].patterns.iter().enumerate() {
            let bucket = self.memory.of_shape(node.shape);
            let ids = (0..bucket.entries()).filter_map(|at| bucket.entry(at));
            agenda.extend(ids.filter(|id| self.memory.get(*id).is_some()).map(|id| (id, pattern)));
        }
        agenda.sort_unstable_by_key(|(id, pattern)| (self.memory.born(*id), *pattern));
        self.states[rule].agenda = agenda.into();
        let turn = self.turn(rule);
        self.busy.insert(turn);
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.molecules()).finish()
    }
}

/// The products of a reaction. What has no effect is done first, so that a fault in it comes before any effect.
fn produce(rule: &Rule, bindings: &Bindings, host: &mut dyn Host) -> Result<Vec<Value>, Fault> {
    enum Ready<'p> {
        Value(Value),
        All(Solution),
        Call(&'p str, Vec<Value>, catena_model::Span),
        Later(&'p crate::code::Ex),
    }
    let mut ready = Vec::with_capacity(rule.code.give.len());
    for product in &rule.code.give {
        ready.push(match product {
            Product::Rest(slot) => match bindings[usize::from(*slot)].clone() {
                Some(Value::Solution(s)) => Ready::All(s),
                other => Ready::All(other.into_iter().collect()),
            },
            Product::Effect(name, arguments, span) => {
                let arguments = arguments.iter().map(|a| {
                    if a.has_effect() { eval_full(a, bindings, host) } else { eval_pure(a, bindings, host) }
                });
                Ready::Call(name, arguments.collect::<Result<_, _>>()?, *span)
            }
            Product::One(ex) if ex.has_effect() => Ready::Later(ex),
            Product::One(ex) => Ready::Value(eval_pure(ex, bindings, host)?),
        });
    }
    let mut produced = Vec::with_capacity(ready.len());
    for one in ready {
        match one {
            Ready::Value(value) => produced.push(value),
            Ready::All(solution) => produced.extend(solution.iter().cloned()),
            Ready::Later(ex) => produced.push(eval_full(ex, bindings, host)?),
            Ready::Call(name, arguments, span) => {
                let result = host.effect(name, &arguments);
                let failed = |message| Fault::new("call", span, format!("`{name}`: {message}"));
                produced.extend(result.map_err(failed)?);
            }
        }
    }
    Ok(produced)
}
