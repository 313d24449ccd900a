//! What rules do, told by programs.

mod language;
mod peers;
mod properties;
mod reactions;
mod values;

use catena_rules::{Host, Outcome, Program, Reaction, Solution, Value};
use std::path::Path;

/// A host that remembers what it is asked to do.
#[derive(Default)]
struct Recorder {
    calls: Vec<String>,
    trace: Vec<String>,
}

impl Host for Recorder {
    fn pure(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        match (name, arguments) {
            ("fits", [want, have]) => {
                let need = want.attribute("mem").and_then(Value::as_number).unwrap_or(0.0);
                let has = have.attribute("mem").and_then(Value::as_number).unwrap_or(0.0);
                Ok(Value::Bool(has >= need))
            }
            _ => Err(format!("no {name}")),
        }
    }

    fn effect(&mut self, name: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
        let shown: Vec<String> = arguments.iter().map(Value::to_string).collect();
        self.calls.push(format!("{name}({})", shown.join(", ")));
        match name {
            "invoke" => Ok(Value::tuple([Value::tag("OUT"), arguments[0].clone()])),
            "fail" => Err("it does not work".to_owned()),
            _ => Ok(None),
        }
    }

    fn reacted(&mut self, reaction: &Reaction<'_>) {
        self.trace.push(reaction.rule.label());
    }
}

fn read(text: &str) -> Program {
    Program::read(Path::new("test.hocl"), text).unwrap_or_else(|rejected| {
        let all: Vec<String> =
            rejected.diags.iter().map(|d| d.render(&rejected.sources).to_string()).collect();
        panic!("{}", all.join("\n"))
    })
}

fn value(text: &str) -> Value {
    Value::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Runs a program to its end.
fn end_of(text: &str) -> Solution {
    let mut engine = read(text).engine();
    let outcome = engine.run(100_000, &mut Recorder::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.is_inert(), "{outcome:?}");
    engine.into_solution()
}

/// Runs a program and compares its end with a solution.
#[track_caller]
fn ends(text: &str, expected: &str) {
    assert_eq!(format!("{:#}", end_of(text)), expected);
}

fn reactions(outcome: &Outcome) -> u64 {
    outcome.reactions()
}
