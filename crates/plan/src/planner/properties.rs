//! What holds for every workflow, whatever the order in which its tasks end.

use crate::{ChainPolicy, Order, PlanOptions, Planner, Program};
use catena_model::chain::ProcessChain;
use catena_model::{Direction, LoadOptions, load_text};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// An action of a random workflow; numbers choose among what came before.
#[derive(Clone, Debug)]
struct Spec {
    inputs: Vec<prop::sample::Index>,
    waits: Vec<prop::sample::Index>,
    /// Whether it is a loop over a list: one that came before, or a constant of this length.
    loops: Option<(bool, usize)>,
    /// How the iterations of a loop hang together: not at all, one after the other, in pairs.
    course: usize,
    /// Which capability its service requires.
    capability: usize,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let spec = (
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        prop::collection::vec(any::<prop::sample::Index>(), 0..2),
        prop::option::weighted(0.35, (any::<bool>(), 0..4usize)),
        0..3usize,
        0..6usize,
    );
    let spec = spec.prop_map(|(inputs, waits, loops, capability, course)| Spec {
        inputs,
        waits,
        loops,
        course,
        capability,
    });
    prop::collection::vec(spec, 1..14)
}

/// The workflow: action `a3` writes `v3`, which is a list if the action is a loop.
fn workflow(specs: &[Spec]) -> String {
    let mut out = String::from("services:\n");
    for c in 0..3 {
        let _ = writeln!(
            out,
            "  - {{id: s{c}, path: x, requiredCapabilities: [c{c}], parameters: [{{id: i, type: input, cardinality: 0..n}}, {{id: o, type: output, cardinality: 1..1}}]}}"
        );
    }
    let constants: Vec<String> =
        (0..4).map(|n| format!("{{id: list{n}, value: {:?}}}", vec!["x"; n])).collect();
    let _ = writeln!(out, "vars: [{}]\nactions:", constants.join(", "));
    for (n, spec) in specs.iter().enumerate() {
        let mut inputs: BTreeSet<usize> = BTreeSet::new();
        let mut waits: BTreeSet<usize> = BTreeSet::new();
        if n > 0 {
            inputs.extend(spec.inputs.iter().map(|i| i.index(n)));
            waits.extend(spec.waits.iter().map(|i| i.index(n)));
        }
        let inputs: Vec<String> = inputs.iter().map(|i| format!("{{id: i, var: v{i}}}")).collect();
        let waits: Vec<String> = waits.iter().map(|w| format!("a{w}")).collect();
        let (inputs, waits) = (inputs.join(", "), waits.join(", "));
        let service = format!("s{}", spec.capability);
        match spec.loops {
            None => {
                let _ = writeln!(
                    out,
                    "  - {{type: execute, id: a{n}, service: {service}, dependsOn: [{waits}], inputs: [{inputs}], outputs: [{{id: o, var: v{n}}}]}}"
                );
            }
            Some((earlier, length)) => {
                let list = if earlier && n > 0 { format!("v{}", n - 1) } else { format!("list{length}") };
                let comma = if inputs.is_empty() { "" } else { ", " };
                // Nothing comes of pairing the elements of an empty list.
                let is_empty = length == 0 || list.starts_with('v');
                let (course, second) = match spec.course {
                    4 => (
                        format!("carry: [{{enumerator: c{n}, init: list1}}], "),
                        format!(", {{id: i, var: c{n}}}"),
                    ),
                    5 if !is_empty => (format!("pairs: c{n}, "), format!(", {{id: i, var: c{n}}}")),
                    3 => ("collect: nested, ".to_owned(), String::new()),
                    _ => (String::new(), String::new()),
                };
                let _ = writeln!(
                    out,
                    "  - {{type: for, id: a{n}, input: {list}, enumerator: e{n}, output: v{n}, yieldToOutput: o{n}, {course}dependsOn: [{waits}], actions: [{{type: execute, id: t{n}, service: {service}, inputs: [{{id: i, var: e{n}}}{second}{comma}{inputs}], outputs: [{{id: o, var: o{n}}}]}}]}}"
                );
            }
        }
    }
    out
}

fn program(text: &str) -> Arc<Program> {
    let loaded = load_text(Path::new("random.yaml"), text, &LoadOptions::default());
    let problems: Vec<String> = loaded.diags.iter().map(|d| d.render(&loaded.sources).to_string()).collect();
    let workflow = loaded.expanded.unwrap_or_else(|| panic!("{}\n{text}", problems.join("\n")));
    Arc::new(Program::new(&workflow, &loaded.library).unwrap())
}

fn planner(program: &Arc<Program>, policy: ChainPolicy) -> Planner {
    ordered(program, policy, Order::Fifo)
}

fn ordered(program: &Arc<Program>, policy: ChainPolicy, order: Order) -> Planner {
    Planner::new(program.clone(), PlanOptions { tmp: "/t".into(), out: "/o".into(), policy, order })
}

/// What happened: a chain was made, or the one with this number succeeded.
#[derive(Clone, Debug)]
enum Event {
    Made(Box<ProcessChain>),
    Succeeded(u64),
}

fn results(chain: &ProcessChain) -> Vec<Vec<Vec<String>>> {
    let outputs = |e: &catena_model::chain::Executable| {
        e.outputs().map(|o| vec![o.variable.value.to_string()]).collect()
    };
    chain.executables.iter().map(outputs).collect()
}

/// Plans and executes to the end, ending chains in an order that `choices` decides.
fn drive(
    program: &Arc<Program>,
    policy: ChainPolicy,
    choices: &[prop::sample::Index],
) -> (Planner, Vec<Event>) {
    let mut planner = planner(program, policy);
    let mut history = Vec::new();
    let mut open: Vec<(u64, ProcessChain)> = Vec::new();
    let mut choices = choices.iter().cycle();
    loop {
        // Sometimes results arrive before everything that could run is planned.
        let eager = choices.next().is_some_and(|c| c.index(3) > 0);
        while eager || open.is_empty() {
            let seq = planner.chain_count();
            let Some(chain) = planner.next_chain().unwrap() else { break };
            history.push(Event::Made(Box::new(chain.clone())));
            open.push((seq, chain));
        }
        if open.is_empty() {
            return (planner, history);
        }
        let chosen = choices.next().map_or(0, |c| c.index(open.len()));
        let (seq, chain) = open.swap_remove(chosen);
        planner.chain_succeeded(seq, results(&chain));
        history.push(Event::Succeeded(seq));
    }
}

fn task_names(history: &[Event]) -> BTreeSet<String> {
    let made = history.iter().filter_map(|e| if let Event::Made(c) = e { Some(c) } else { None });
    made.flat_map(|c| c.executables.iter().map(|t| t.id.to_string())).collect()
}

/// What comes of a chain, as it is known before it runs.
fn foreseen(chain: &ProcessChain) -> Vec<Vec<Option<String>>> {
    results(chain).into_iter().map(|task| task.into_iter().map(|o| o.into_iter().next()).collect()).collect()
}

/// Plans as far as can be seen, then lets a chain end, and so on. Returns each chain with the number of those that had
/// ended when it was made, and these in order.
fn look_ahead(
    program: &Arc<Program>,
    choices: &[prop::sample::Index],
) -> (Planner, Vec<(ProcessChain, usize)>, Vec<u64>) {
    let mut planner = planner(program, ChainPolicy::Split);
    planner.plan_ahead();
    let mut made: Vec<(ProcessChain, usize)> = Vec::new();
    let mut open: Vec<u64> = Vec::new();
    let mut ended: Vec<u64> = Vec::new();
    let mut choices = choices.iter().cycle();
    loop {
        let first = planner.chain_count();
        while let Some(chain) = planner.next_chain().unwrap() {
            made.push((chain, ended.len()));
        }
        if first < planner.chain_count() {
            for seq in first..planner.chain_count() {
                planner.foresee(seq, &foreseen(&made[seq as usize].0));
                open.push(seq);
            }
            continue;
        }
        // Only what does not wait for others can end.
        let can_end = |seq: &u64| planner.sources(*seq).iter().all(|s| ended.contains(s));
        let able: Vec<u64> = open.iter().copied().filter(can_end).collect();
        if able.is_empty() {
            assert!(open.is_empty(), "they wait for each other");
            return (planner, made, ended);
        }
        let seq = able[choices.next().map_or(0, |c| c.index(able.len()))];
        open.retain(|s| *s != seq);
        ended.push(seq);
        planner.chain_succeeded(seq, results(&made[seq as usize].0));
    }
}

/// The action that a task is of.
fn action_of(task: &str) -> usize {
    task[1..].split('$').next().and_then(|n| n.parse().ok()).unwrap()
}

#[test]
fn a_chain_is_not_made_late_by_what_follows_in_it() {
    let mut text = String::from(
        "services: [{id: s, path: x, parameters: [{id: i, type: input, cardinality: 0..n}, {id: o, type: output, cardinality: 1..1}]}]\nactions:\n",
    );
    for (name, needs) in [("a", ""), ("c", ""), ("b", "a"), ("x", "a"), ("d", "bc"), ("e", "d")] {
        let inputs: Vec<String> = needs.chars().map(|n| format!("{{id: i, var: v{n}}}")).collect();
        let _ = writeln!(
            text,
            "  - {{type: execute, id: {name}, service: s, inputs: [{}], outputs: [{{id: o, var: v{name}}}]}}",
            inputs.join(", ")
        );
    }
    let program = program(&text);
    let (planner, made, _) = look_ahead(&program, &[]);
    let names: Vec<String> =
        made.iter().map(|(c, _)| c.executables.iter().map(|t| t.id.as_str()).collect()).collect();
    assert_eq!(names, ["a", "c", "b", "x", "de"], "b must not wait for c");
    let sources: Vec<&[u64]> = (0..5).map(|seq| planner.sources(seq)).collect();
    assert_eq!(sources, [&[][..], &[], &[0], &[0], &[1, 2]]);
    assert!(made.iter().all(|(_, ended)| *ended == 0), "all is known before anything has ended");
}

#[test]
fn whoever_depends_on_what_is_skipped_waits_for_what_that_would_have_waited_for() {
    let text = "
catena: 1
inputs: { mode: fast, xs: [a, b] }
steps:
  first: { run: 'true' }
  skipped: { run: 'true', after: first, when: \"{mode} == 'slow'\" }
  loop: { for: x in xs, run: 'echo {x}', after: skipped, when: \"{mode} == 'slow'\" }
  last: { run: 'true', after: loop }
";
    let (planner, made, _) = look_ahead(&program(text), &[]);
    assert_eq!((made.len(), made[1].0.executables[0].id.as_str()), (2, "last"));
    assert_eq!((planner.sources(1), made[1].1), (&[0][..], 0), "it is foreseen, and waits for the first");
}

#[test]
fn memory_is_that_of_what_is_going_on() {
    let list: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    let text = format!(
        "services:
  - {{id: s, path: x, parameters: [{{id: i, type: input, cardinality: 0..n}}, {{id: o, type: output, cardinality: 1..1}}]}}
vars: [{{id: list, value: [{}]}}, {{id: pair, value: [a, b]}}]
actions:
  - type: for
    input: list
    enumerator: e
    actions:
      - {{type: execute, id: first, service: s, inputs: [{{id: i, var: e}}], outputs: [{{id: o, var: made}}]}}
      - type: for
        input: pair
        enumerator: p
        output: both
        yieldToOutput: one
        actions: [{{type: execute, id: second, service: s, inputs: [{{id: i, var: p}}, {{id: i, var: made}}], outputs: [{{id: o, var: one}}]}}]
      - {{type: execute, id: third, service: s, inputs: [{{id: i, var: both}}], outputs: [{{id: o, var: end}}]}}
",
        list.join(",")
    );
    let program = program(&text);
    let mut planner = planner(&program, ChainPolicy::Single);
    assert!(planner.counts().waiting >= 2 * 2000, "what has no place yet counts too");
    let mut open = VecDeque::new();
    let mut most = 0;
    loop {
        while open.len() < 8
            && let Some(chain) = planner.next_chain().unwrap()
        {
            open.push_back((planner.chain_count() - 1, chain));
        }
        most = most.max(planner.scopes.len() + planner.edges.len() + planner.chains.len());
        let Some((seq, chain)) = open.pop_front() else { break };
        planner.chain_succeeded(seq, results(&chain));
    }
    assert!(planner.is_finished(), "{:?}", planner.waiting_actions(10));
    assert_eq!(planner.counts().planned, 4 * 2000);
    assert!(most < 100, "{most} parts for 8 chains at a time");
}

#[test]
fn chains_come_in_the_order_that_was_asked_for() {
    let mut text = String::from(
        "services: [{id: s, path: x, parameters: [{id: i, type: input, cardinality: 0..n}, {id: o, type: output, cardinality: 1..1}]}]\nactions:\n",
    );
    // The five jobs of the paper on prio.
    for (name, needs) in [("a", ""), ("b", "a"), ("c", ""), ("d", "c"), ("e", "c")] {
        let _ = writeln!(
            text,
            "  - {{type: execute, id: {name}, service: s, dependsOn: [{needs}], outputs: [{{id: o, var: v{name}}}]}}"
        );
    }
    let program = program(&text);
    let run = |order| {
        let mut planner = ordered(&program, ChainPolicy::Single, order);
        let mut made = String::new();
        while let Some(chain) = planner.next_chain().unwrap() {
            made += &chain.executables[0].id;
            planner.chain_succeeded(planner.chain_count() - 1, results(&chain));
        }
        made
    };
    assert_eq!((run(Order::Fifo).as_str(), run(Order::Prio).as_str()), ("abcde", "cabde"));
    assert_eq!(run(Order::Auto), "cabde");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_task_runs_once_and_after_what_it_needs(specs in specs(), choices in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let program = program(&workflow(&specs));
        let (planner, history) = drive(&program, ChainPolicy::Split, &choices);
        prop_assert!(planner.is_finished(), "{:?}", planner.waiting_actions(10));
        let mut produced: HashSet<String> = HashSet::from(["x".to_owned()]);
        let mut seen = HashSet::new();
        let mut chains: Vec<&ProcessChain> = Vec::new();
        for event in &history {
            match event {
                Event::Made(chain) => {
                    let mut inside = produced.clone();
                    for task in &chain.executables {
                        prop_assert!(seen.insert(task.id.clone()), "{} runs twice", task.id);
                        for a in &task.arguments {
                            let value = a.variable.value.to_string();
                            match a.direction {
                                Direction::Input => prop_assert!(inside.contains(&value), "{} uses {value} too early", task.id),
                                Direction::Output => { inside.insert(value); }
                            }
                        }
                    }
                    prop_assert!(chain.required_capabilities.len() == 1, "a chain was not cut");
                    chains.push(chain);
                }
                Event::Succeeded(seq) => {
                    produced.extend(results(chains[*seq as usize]).into_iter().flatten().flatten());
                }
            }
        }
    }

    #[test]
    fn neither_the_order_of_results_nor_the_cutting_changes_what_runs(specs in specs(), a in prop::collection::vec(any::<prop::sample::Index>(), 40), b in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let program = program(&workflow(&specs));
        let expected = task_names(&drive(&program, ChainPolicy::Split, &a).1);
        for policy in [ChainPolicy::Split, ChainPolicy::Union, ChainPolicy::Single] {
            prop_assert_eq!(&task_names(&drive(&program, policy, &b).1), &expected);
        }
    }

    #[test]
    fn a_chain_that_is_foreseen_says_whom_it_waits_for(specs in specs(), choices in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let program = program(&workflow(&specs));
        let expected = task_names(&drive(&program, ChainPolicy::Split, &choices).1);
        let (planner, made, ended) = look_ahead(&program, &choices);
        prop_assert!(planner.is_finished(), "{:?}", planner.waiting_actions(10));
        let tasks: Vec<&str> = made.iter().flat_map(|(c, _)| c.executables.iter().map(|t| t.id.as_str())).collect();
        prop_assert_eq!(tasks.len(), expected.len());
        prop_assert_eq!(tasks.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), expected);
        // All chains that have ended when a chain may start.
        let mut before: Vec<HashSet<u64>> = Vec::new();
        for (seq, (chain, over)) in made.iter().enumerate() {
            let sources = planner.sources(seq as u64);
            prop_assert!(sources.iter().all(|s| *s < seq as u64));
            let mut all: HashSet<u64> = ended[..*over].iter().copied().chain(sources.iter().copied()).collect();
            for source in sources {
                all.extend(&before[*source as usize]);
            }
            let written = |seqs: &mut dyn Iterator<Item = u64>| -> HashSet<String> {
                seqs.flat_map(|s| results(&made[s as usize].0)).flatten().flatten().collect()
            };
            let mut inside = written(&mut sources.iter().copied());
            inside.insert("x".to_owned());
            let mut past: HashSet<&str> = all.iter().flat_map(|s| &made[*s as usize].0.executables).map(|t| t.id.as_str()).collect();
            for task in &chain.executables {
                for a in &task.arguments {
                    let value = a.variable.value.to_string();
                    match a.direction {
                        Direction::Input => prop_assert!(inside.contains(&value), "{} reads {value} of nobody", task.id),
                        Direction::Output => { inside.insert(value); }
                    }
                }
                let action = action_of(&task.id);
                let waits = specs[action].waits.iter().filter(|_| action > 0).map(|w| w.index(action));
                for wait in waits {
                    let missing = tasks.iter().find(|t| action_of(t) == wait && !past.contains(**t));
                    prop_assert!(missing.is_none(), "{} does not wait for {missing:?}", task.id);
                }
                past.insert(&task.id);
            }
            before.push(all);
        }
    }

    #[test]
    fn a_replayed_planner_makes_the_same_chains(specs in specs(), choices in prop::collection::vec(any::<prop::sample::Index>(), 40)) {
        let program = program(&workflow(&specs));
        let (_, history) = drive(&program, ChainPolicy::Split, &choices);
        let mut again = planner(&program, ChainPolicy::Split);
        let mut chains: Vec<ProcessChain> = Vec::new();
        for event in &history {
            match event {
                Event::Made(chain) => {
                    let made = again.next_chain().unwrap();
                    prop_assert_eq!(made.as_ref(), Some(&**chain));
                    chains.extend(made);
                }
                Event::Succeeded(seq) => again.chain_succeeded(*seq, results(&chains[*seq as usize])),
            }
        }
        prop_assert!(again.is_finished());
    }
}
