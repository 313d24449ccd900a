//! How many reactions a second, with how many molecules in the solution.
//!
//! `cargo run --release -p catena-rules --example reactions [-- <molecules> [<words of a case>]]`
//!
//! Every case is measured several times in seconds of one processor; the middle counts. Loading puts molecules into their indexes, reacting is what
//! comes after. The cases are run once more with as many molecules again that concern no rule.

use catena_rules::{Engine, NoHost, Outcome, Program, RuleSet, Value};
use std::path::Path;

const ROUNDS: usize = 3;

const RULES: &str = "
extern pure fits/2;
extern effect deploy/2;
index RES by speed;
let join = replace A:i:x, B:i:y by C:i:(x + y);
let arrive = replace TASK:j:<SRC:<i, ?rest>, ?t> keeping DONE:i by TASK:j:<SRC:<?rest>, ?t>;
let pass = replace OUT:i:<DST:<j, ?d>, ?o>, IN:j:<SRC:<i, ?s>, ?n> by OUT:i:<DST:<?d>, ?o>, IN:j:<SRC:<?s>, ?n>;
let count = replace N:i:n by N:i:(n - 1) if n > 0;
let best = replace JOB:i, FREE:r:<SPEED:s> by RUN:i:r prefer max s;
let minMin = replace WORK:i:w, MACHINE:m:s:t by RUN:i:m, MACHINE:m:s:(t + w / s) prefer min t + w / s;
let decompose = replace-one WF:w:<?tasks> by ?tasks;
";

fn tuple<const N: usize>(parts: [Value; N]) -> Value {
    Value::tuple(parts).unwrap_or(Value::Bool(false))
}

fn solution(items: impl IntoIterator<Item = Value>) -> Value {
    Value::solution(items).unwrap_or(Value::Bool(false))
}

fn tag(name: &str) -> Value {
    Value::tag(name)
}

fn int(n: usize) -> Value {
    Value::Int(n as i64)
}

/// A case: its name, its rules, and its molecules for a number of them.
type Case = (&'static str, &'static [&'static str], fn(usize) -> Vec<Value>, usize);

const CASES: [Case; 7] = [
    ("join two molecules by an id", &["join"], joined, 1),
    ("a task meets what it waits for", &["arrive"], arriving, 1),
    ("a task waits for very many", &["arrive"], waiting, 100),
    ("pass results from task to task", &["pass"], passing, 1),
    ("change one molecule", &["count"], counting, 1),
    ("the best resource for any job", &["best"], choosing, 100),
    ("min-min", &["minMin"], mapping, 500),
];

fn joined(n: usize) -> Vec<Value> {
    let one = |name, i| tuple([tag(name), int(i), int(i)]);
    (0..n / 2).flat_map(|i| [one("A", i), one("B", n / 2 - 1 - i)]).collect()
}

fn arriving(n: usize) -> Vec<Value> {
    let half = n / 2;
    let sources = |i: usize| solution([int(i), int((i * 7 + 1) % half)]);
    let task = |i: usize| {
        let parts = [
            tuple([tag("SRC"), sources(i)]),
            tuple([tag("WANT"), solution([tuple([tag("MEM"), int(4)])])]),
            tuple([tag("SINCE"), int(i)]),
        ];
        tuple([tag("TASK"), int(i), solution(parts)])
    };
    (0..half).flat_map(|i| [task(i), tuple([tag("DONE"), int(half - 1 - i)])]).collect()
}

fn waiting(n: usize) -> Vec<Value> {
    let sources = tuple([tag("SRC"), solution((0..n).map(int))]);
    let task = tuple([tag("TASK"), int(0), solution([sources])]);
    (0..n).map(|i| tuple([tag("DONE"), int(i)])).chain([task]).collect()
}

fn passing(n: usize) -> Vec<Value> {
    let half = n / 2;
    let one = |name, i: usize, list, j: usize| {
        let parts = [tuple([tag(list), solution([int(j)])]), tuple([tag("CMD"), Value::text("cp a b")])];
        tuple([tag(name), int(i), solution(parts)])
    };
    (0..half).flat_map(|i| [one("OUT", i, "DST", half - 1 - i), one("IN", i, "SRC", half - 1 - i)]).collect()
}

fn counting(n: usize) -> Vec<Value> {
    (0..n).map(|i| tuple([tag("N"), int(i), int(1)])).collect()
}

fn choosing(n: usize) -> Vec<Value> {
    let resource = |i: usize| {
        let speed = tuple([tag("SPEED"), int(i * 7919 % 1009)]);
        tuple([tag("FREE"), int(i), solution([speed])])
    };
    (0..n / 2).flat_map(|i| [tuple([tag("JOB"), int(i)]), resource(i)]).collect()
}

fn mapping(n: usize) -> Vec<Value> {
    let work = (0..n).map(|i| tuple([tag("WORK"), int(i), int(1 + i * 7919 % 1009)]));
    let machines = (0..50).map(|m| tuple([tag("MACHINE"), int(m), int(1 + m % 7), int(0)]));
    work.chain(machines).collect()
}

/// How long this program has had a processor: others may use the machine too.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n = std::env::args().nth(1).map_or(Ok(1_000_000), |a| a.parse())?;
    let only = std::env::args().nth(2).unwrap_or_default();
    let program = Program::read(Path::new("bench.hocl"), RULES)?;
    println!(
        "| | molecules | others | load, s | reactions | react, s | reactions/s |\n|---|---|---|---|---|---|---|"
    );
    for (name, rules, molecules, fewer) in CASES.into_iter().filter(|case| case.0.contains(&only)) {
        let rules = RuleSet::new(rules.iter().filter_map(|r| program.rule(r).cloned()));
        for others in [0, n] {
            let mut measured = Vec::new();
            for _ in 0..ROUNDS {
                let mut engine = Engine::new(&rules);
                let molecules = molecules(n / fewer);
                let count = molecules.len();
                let other = |i| tuple([tag("OTHER"), int(i), solution([int(i)])]);
                let others: Vec<Value> = (0..others).map(other).collect();
                let start = processor_seconds();
                molecules.into_iter().chain(others).for_each(|m| engine.add(m));
                engine.run(0, &mut NoHost)?;
                let load = processor_seconds() - start;
                let start = processor_seconds();
                let Outcome::Inert { reactions } = engine.run(u64::MAX, &mut NoHost)? else { unreachable!() };
                measured.push((processor_seconds() - start, load, reactions, count));
            }
            measured.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (react, load, reactions, count) = measured[ROUNDS / 2];
            println!(
                "| {name} | {count} | {others} | {load:.2} | {reactions} | {react:.2} | {:.0} |",
                reactions as f64 / react
            );
        }
    }
    small(&program)
}

/// What a peer does all the time: a solution of its own for a handful of molecules.
fn small(program: &Program) -> Result<(), Box<dyn std::error::Error>> {
    const TIMES: usize = 200_000;
    let names = ["join", "arrive", "pass", "count", "decompose"];
    let rules = RuleSet::new(names.iter().filter_map(|r| program.rule(r).cloned()));
    let molecules = [
        Value::parse("TASK:7:<SRC:<3, 4>, WANT:<MEM:4>, CMD:\"cp a b\">")?,
        Value::parse("DONE:3")?,
        Value::parse("RES:1:<SPEED:3, MEM:8>")?,
    ];
    let start = processor_seconds();
    let mut reactions = 0;
    for _ in 0..TIMES {
        let mut engine = Engine::new(&rules);
        for molecule in &molecules {
            engine.add(molecule.clone());
        }
        reactions += engine.run(100, &mut NoHost)?.reactions();
    }
    let each = (processor_seconds() - start) / TIMES as f64;
    println!(
        "\na small solution with 5 rules and one reaction, made, run and dropped: {:.2} µs ({reactions})",
        each * 1e6
    );
    Ok(())
}
