//! Rules that bring a molecule together with one that is found through an ordered index, such as a task with a
//! resource, taken apart so that each step can happen at another peer.

use crate::ast::{Expr, ExprKind, Item, Op, Pattern};
use crate::code::{Bindings, ExKind, Product, Slot};
use crate::eval::{Fault, eval_pure, holds};
use crate::functions::Host;
use crate::matching::{Flow, matches};
use crate::prefer::score;
use crate::rule::Rule;
use crate::trend::{Direction, Place, Side, direction};
use crate::value::{Float, Value};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::sync::Arc;

/// A rule with one molecule that lives at a place and one that is found through an index.
#[derive(Clone, Debug)]
pub struct RangeRule {
    rule: Arc<Rule>,
    /// Which pattern is the molecule that lives at a place.
    homed: usize,
    /// The variables of that molecule that the other peers need.
    needed: Vec<Slot>,
}

/// What one has to know of the molecule that looks for another: the variables that are used with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Query(Vec<(u16, Value)>);

/// A call of a function with effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The name of the function.
    pub name: SmolStr,
    /// What it is called with.
    pub arguments: Vec<Value>,
}

/// What comes out of a reaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Products {
    /// The new molecules.
    pub molecules: Vec<Value>,
    /// What is to be done once the reaction is committed.
    pub calls: Vec<Call>,
}

impl RangeRule {
    pub(crate) fn new(rule: Arc<Rule>, homed: usize) -> Self {
        let ast = &rule.ast;
        let mut used: Vec<&SmolStr> = Vec::new();
        ast.expressions().for_each(|e| e.names(&mut |name, _| used.push(name)));
        ast.take[1 - homed].variables(&mut |bound| used.push(bound.name));
        used.extend(
            ast.give.iter().filter_map(|i| if let Item::Rest(name, _) = i { Some(name) } else { None }),
        );
        let mut needed = Vec::new();
        ast.take[homed].variables(&mut |bound| {
            if used.contains(&bound.name) {
                needed.extend(rule.code.slot(bound.name));
            }
        });
        needed.sort_unstable();
        needed.dedup();
        Self { homed, needed, rule: rule.clone() }
    }

    /// The rule.
    pub fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    /// What the molecule of a side starts with.
    pub fn tag(&self, side: Side) -> &str {
        self.pattern(side).head().unwrap_or_default()
    }

    fn pattern(&self, side: Side) -> &Pattern {
        match side {
            Side::Homed => &self.rule.ast.take[self.homed],
            Side::Indexed => &self.rule.ast.take[1 - self.homed],
        }
    }

    /// What a molecule that lives at a place looks for. `None` if the rule does not concern it, or if there are rules in
    /// it that may still react: it must have come to rest in an [`Engine`](crate::Engine) first.
    pub fn bind(&self, molecule: &Value) -> Option<Query> {
        let code = &self.rule.code;
        let mut query = None;
        let _ = matches(&code.patterns[self.homed], molecule, &mut code.bindings(), None, &mut |bindings| {
            let value = |slot: &Slot| Some((*slot, bindings[usize::from(*slot)].clone()?));
            query = Some(Query(self.needed.iter().filter_map(value).collect()));
            Flow::Break(())
        });
        query
    }

    /// Whether the two can react.
    pub fn accepts(&self, query: &Query, resource: &Value, host: &dyn Host) -> Result<bool, Fault> {
        Ok(self.best(query, resource, host)?.is_some())
    }

    /// How good it would be if the two reacted: lower is better. `None` if they cannot, or if the rule does not say.
    pub fn score(&self, query: &Query, resource: &Value, host: &dyn Host) -> Result<Option<f64>, Fault> {
        Ok(self.best(query, resource, host)?.and_then(|(score, _)| score).map(Float::get))
    }

    /// What comes out if the two react. `None` if they cannot.
    pub fn react(&self, query: &Query, resource: &Value, host: &dyn Host) -> Result<Option<Products>, Fault> {
        let Some((_, bindings)) = self.best(query, resource, host)? else { return Ok(None) };
        let mut products = Products::default();
        for product in &self.rule.code.give {
            match product {
                Product::One(ex) => products.molecules.push(eval_pure(ex, &bindings, host)?),
                Product::Rest(slot) => {
                    if let Some(Value::Solution(s)) = &bindings[usize::from(*slot)] {
                        products.molecules.extend(s.iter().cloned());
                    }
                }
                Product::Effect(name, arguments, _) => {
                    let arguments = arguments.iter().map(|a| eval_pure(a, &bindings, host));
                    let arguments = arguments.collect::<Result<_, _>>()?;
                    products.calls.push(Call { name: name.clone(), arguments });
                }
            }
        }
        Ok(Some(products))
    }

    /// From which end to look through an index on an attribute, so that the best come first. `None` if the rule has no
    /// preference that grows or shrinks with it.
    pub fn direction(&self, side: Side, attribute: &str) -> Option<Direction> {
        direction(&self.rule, self.pattern(side), attribute)
    }

    /// The least and the greatest value that an attribute of the molecule in the index can have, as far as the
    /// condition says. Bounds are included, also where the condition leaves them out.
    pub fn bounds(&self, query: &Query, attribute: &str, host: &dyn Host) -> (Option<f64>, Option<f64>) {
        let Some(when) = &self.rule.ast.when else { return (None, None) };
        let bindings = self.bindings(query);
        let place = Place { pattern: self.pattern(Side::Indexed), attribute };
        let mut conjuncts = Vec::new();
        flatten(when, &mut conjuncts);
        let mut bounds: (Option<f64>, Option<f64>) = (None, None);
        for (expr, (ex, _)) in conjuncts.iter().zip(&self.rule.code.conditions) {
            let (ExprKind::Binary(op, a, b), ExKind::Binary(_, ex_a, ex_b)) = (&expr.kind, &ex.kind) else {
                continue;
            };
            let (op, other) = if place.is(a) && place.is_free(b) {
                (*op, ex_b)
            } else if place.is(b) && place.is_free(a) {
                (mirrored(*op), ex_a)
            } else {
                continue;
            };
            let Some(limit) = eval_pure(other, &bindings, host).ok().and_then(|v| v.as_number()) else {
                continue;
            };
            if matches!(op, Op::Gt | Op::Ge | Op::Eq) {
                bounds.0 = Some(bounds.0.map_or(limit, |old| old.max(limit)));
            }
            if matches!(op, Op::Lt | Op::Le | Op::Eq) {
                bounds.1 = Some(bounds.1.map_or(limit, |old| old.min(limit)));
            }
        }
        bounds
    }

    fn bindings(&self, query: &Query) -> Bindings {
        let mut bindings = self.rule.code.bindings();
        for (slot, value) in &query.0 {
            // A query may come from far away.
            if let Some(place) = bindings.get_mut(usize::from(*slot)) {
                *place = Some(value.clone());
            }
        }
        bindings
    }

    /// The best way in which two molecules match.
    fn best(
        &self,
        query: &Query,
        resource: &Value,
        host: &dyn Host,
    ) -> Result<Option<(Option<Float>, Bindings)>, Fault> {
        let code = &self.rule.code;
        let mut best: Option<(Option<Float>, Bindings)> = None;
        let mut fault = None;
        let mut one = |bindings: &Bindings| -> Result<Flow, Fault> {
            for (condition, _) in &code.conditions {
                if !holds(condition, bindings, host)? {
                    return Ok(Flow::Continue(()));
                }
            }
            if code.prefer.is_none() {
                best = Some((None, bindings.clone()));
                return Ok(Flow::Break(()));
            }
            let score = score(&self.rule, bindings, host)?;
            if score.is_some() && best.as_ref().is_none_or(|(old, _)| score < *old) {
                best = Some((score, bindings.clone()));
            }
            Ok(Flow::Continue(()))
        };
        let pattern = &code.patterns[1 - self.homed];
        let _ = matches(pattern, resource, &mut self.bindings(query), None, &mut |bindings| match one(
            bindings,
        ) {
            Ok(flow) => flow,
            Err(f) => {
                fault = Some(f);
                Flow::Break(())
            }
        });
        fault.map_or(Ok(best), Err)
    }
}

fn flatten<'e>(e: &'e Expr, out: &mut Vec<&'e Expr>) {
    match &e.kind {
        ExprKind::Binary(Op::And, a, b) => {
            flatten(a, out);
            flatten(b, out);
        }
        _ => out.push(e),
    }
}

/// The same comparison with its sides exchanged.
fn mirrored(op: Op) -> Op {
    match op {
        Op::Lt => Op::Gt,
        Op::Le => Op::Ge,
        Op::Gt => Op::Lt,
        Op::Ge => Op::Le,
        other => other,
    }
}
