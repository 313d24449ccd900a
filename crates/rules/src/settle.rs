//! Solutions inside of molecules react before anybody can look into them.

use crate::engine::{Engine, Run, Stop};
use crate::eval::Fault;
use crate::matching::Dice;
use crate::network::RuleSet;
use crate::solution::Solution;
use crate::value::{MAX_DEPTH, Tuple, Value};
use std::sync::Arc;

/// So many rule sets are kept.
const NETWORKS: usize = 256;

/// Lets the solutions inside of a value react. The value comes back in any case, as far as it got.
pub(crate) fn settle(value: Value, run: &mut Run<'_>) -> (Value, Result<(), Stop>) {
    let mut end = Ok(());
    let mut inner = |value: &Value, run: &mut Run<'_>| {
        if value.is_inert() || end.is_err() {
            return value.clone();
        }
        let (value, result) = settle(value.clone(), run);
        end = result;
        value
    };
    let value = match value {
        Value::Tuple(t) => {
            let items = t.items().iter().map(|i| inner(i, run)).collect();
            let Some(reacted) = Tuple::new(items) else { return (Value::Tuple(t), Err(too_deep())) };
            Value::Tuple(reacted)
        }
        Value::Solution(s) => {
            let mut s: Solution = s.iter().map(|v| inner(v, run)).collect();
            if end.is_ok() && s.has_rules() {
                let (reacted, result) = react_inside(&s, run);
                s = reacted;
                end = result;
            }
            Value::Solution(s)
        }
        other => other,
    };
    if value.depth() > MAX_DEPTH && end.is_ok() {
        end = Err(too_deep());
    }
    (value, end)
}

fn too_deep() -> Stop {
    let message = "reactions inside of a molecule have nested it too deeply";
    Stop::Fault(Fault::new("too-deep", catena_model::Span::default(), message), String::new())
}

fn react_inside(solution: &Solution, run: &mut Run<'_>) -> (Solution, Result<(), Stop>) {
    let rules = solution.iter().filter_map(|v| if let Value::Rule(r) = v { Some(r) } else { None });
    // The network keeps its rules alive, so their addresses stay theirs.
    let key: Vec<usize> = rules.clone().map(|r| Arc::as_ptr(r).addr()).collect();
    let network = run.networks.get(&key).cloned().unwrap_or_else(|| {
        let network = RuleSet::new(rules.cloned()).0;
        let kept = network.rules.len() == key.len();
        if run.networks.len() >= NETWORKS {
            run.networks.clear();
        }
        if kept {
            run.networks.insert(key, network.clone());
        }
        network
    });
    let mut engine = Engine::with(network);
    engine.dice = run.seed.as_ref().map(|dice| Dice::new(dice.below(usize::MAX) as u64));
    engine.incoming.extend(solution.iter().cloned());
    run.depth += 1;
    let end = engine.react(run);
    run.depth -= 1;
    let mut solution = engine.into_solution();
    if end.is_ok() {
        solution.settle();
    }
    (solution, end)
}
