//! How rules see what tasks want and what peers have.

use catena_model::chain::ProcessChain;
use catena_model::{Name, Resources};
use catena_rules::Value;
use std::collections::BTreeMap;

/// What a chain wants of a peer: `CPUS:2`, `MEMORY:4096`, `GPUS:1`, `CAP:"name"`.
pub(crate) fn wants(chain: &ProcessChain) -> Vec<Value> {
    let mut wants = amounts(&chain.resources, false);
    wants.extend(chain.required_capabilities.iter().filter_map(capability));
    wants
}

/// What else rules may want to know of a chain: how urgent it is, and how much work, in seconds. A service of which nobody
/// knows how long it takes counts as one second: rules that compare need a number for each task.
pub(crate) fn about(chain: &ProcessChain, usual: &BTreeMap<Name, f64>) -> Vec<Value> {
    let work: f64 = chain.executables.iter().map(|t| usual.get(&t.service_id).copied().unwrap_or(1.0)).sum();
    let work = Value::float(work).unwrap_or(Value::Int(1));
    [pair("PRIORITY", Value::Int(i64::from(chain.priority))), pair("WORK", work)]
        .into_iter()
        .flatten()
        .collect()
}

/// What a peer has: `RES:id:<SPEED:1.0, CPUS:4, MEMORY:…, LOAD:0.5, CPU:50, CAP:"name">`.
pub(crate) fn resource(
    me: u64,
    speed: f64,
    (all, free): (&Resources, &Resources),
    capabilities: &[Name],
) -> Option<Value> {
    let load = 1.0 - free.cpus as f64 / all.cpus.max(1) as f64;
    let mut features = amounts(free, true);
    features.extend(pair("SPEED", Value::float(speed)?));
    features.extend(pair("LOAD", Value::float(load)?));
    features.extend(pair("CPU", Value::Int((load * 100.0).round() as i64)));
    features.extend(capabilities.iter().filter_map(capability));
    // Any number serves that no other peer has.
    Value::tuple([Value::tag("RES"), Value::Int(me as i64), Value::solution(features)?])
}

/// Quantities by their names; what there is none of only if asked for.
fn amounts(resources: &Resources, zero: bool) -> Vec<Value> {
    let bytes = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
    let mut out = vec![pair("CPUS", thousandths(resources.cpus))];
    out.extend((zero || resources.memory > 0).then(|| pair("MEMORY", bytes(resources.memory))));
    out.extend((zero || resources.disk > 0).then(|| pair("DISK", bytes(resources.disk))));
    let named = resources.named.iter().filter(|(_, n)| zero || **n > 0);
    out.extend(named.map(|(name, n)| pair(&tag(name), thousandths(*n))));
    out.into_iter().flatten().collect()
}

fn thousandths(n: u64) -> Value {
    let whole = n.is_multiple_of(1000).then_some(Value::Int((n / 1000) as i64));
    whole.or_else(|| Value::float(n as f64 / 1000.0)).unwrap_or(Value::Int(i64::MAX))
}

fn capability(name: &Name) -> Option<Value> {
    pair("CAP", Value::text(name))
}

/// A name as rules can write it.
fn tag(name: &str) -> String {
    let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let text: String = letters.collect();
    if text.starts_with(|c: char| c.is_ascii_uppercase()) { text } else { format!("R{text}") }
}

fn pair(tag: &str, value: Value) -> Option<Value> {
    Value::tuple([Value::tag(tag), value])
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_space::Chemistry;
    use catena_space::chemistry::Ripe;
    use catena_space::molecule::Order;
    use catena_space::node::NewTask;

    fn suits(chain: &ProcessChain, resource: &Value, rules: &str) -> bool {
        let order = Order { payload: [].into(), exclusive: false };
        let about = about(chain, &BTreeMap::new());
        let task = NewTask { number: 1, sources: Vec::new(), want: wants(chain), about, order };
        let chemistry = Chemistry::shipped(rules).unwrap();
        let parts = chemistry.weave(&[task]).unwrap();
        match chemistry.ripe(&parts[0].value, 0).unwrap() {
            Ripe::Search(query, _) => chemistry.accepts(&query, resource),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_task_takes_a_peer_that_has_what_it_wants() {
        let mut all = Resources { cpus: 4000, memory: 1 << 30, disk: u64::MAX, ..Resources::default() };
        all.named.insert("gpus".into(), 1000);
        let mut free = all.clone();
        let mut chain = ProcessChain::new("c".into(), Vec::new());
        let capabilities = [Name::new("blast"), Name::new("r")];
        let has = |free: &Resources| resource(u64::MAX, 1.5, (&all, free), &capabilities).unwrap();
        for rules in ["dependencies", "min-min"] {
            assert!(suits(&chain, &has(&free), rules));
        }
        let suits = |chain: &ProcessChain, free: &Resources| suits(chain, &has(free), "dependencies");
        chain.required_capabilities = vec!["blast".into()];
        chain.resources = free.clone();
        assert!(suits(&chain, &free));
        chain.required_capabilities.push("matlab".into());
        assert!(!suits(&chain, &free), "it cannot do that");
        chain.required_capabilities.pop();
        free.cpus -= 500;
        assert!(!suits(&chain, &free), "half a processor is taken");
        chain.resources.cpus = 3500;
        assert!(suits(&chain, &free));
        free.named.insert("gpus".into(), 0);
        assert!(!suits(&chain, &free), "the processor for graphics is taken");
        chain.resources = Resources::default();
        assert!(suits(&chain, &free));
        let text = has(&free).to_string();
        assert!(text.contains("CPU:13") && text.contains("SPEED:1.5"), "{text}");
    }
}
