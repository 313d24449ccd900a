//! `catena react`

use super::{EXIT_FAILED, EXIT_USAGE, Outcome, print, write_to};
use crate::arguments::ReactArgs;
use crate::jobs::show;
use catena_model::read_text;
use catena_rules::{Engine, Extern, Host, Program, Reaction, Value};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Longer texts are not taken from standard input.
const MAX_INPUT: u64 = 64 << 20;

pub(crate) fn react(args: &ReactArgs) -> Outcome {
    let (name, text) = source(&args.program)?;
    let program = match Program::read(&name, &text) {
        Ok(program) => program,
        Err(rejected) => {
            show(&rejected.diags, &rejected.sources);
            let errors = rejected.diags.error_count();
            eprintln!("{errors} {}", if errors == 1 { "error" } else { "errors" });
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    show(program.warnings(), program.sources());
    if program.main().is_none() {
        return Err(format!(
            "{} has rules, but no solution that they could react in; add one: <…>",
            name.display()
        ));
    }
    let mut engine = program.engine();
    if let Some(seed) = args.seed {
        engine.set_seed(seed);
    }
    let mut host = Watcher { trace: args.trace && !args.json, externs: program.externs() };
    let end = engine.run(args.limit, &mut host);
    let (reactions, inert) = match &end {
        Ok(outcome) => (outcome.reactions(), outcome.is_inert()),
        Err(error) => (error.reactions, false),
    };
    write_to(None, |out| {
        if args.json {
            writeln!(out, "{:#}", json(&engine, reactions, inert))
        } else {
            molecules(&engine).iter().try_for_each(|m| writeln!(out, "{m:#}"))
        }
    })?;
    match end {
        Ok(catena_rules::Outcome::Inert { .. }) => Ok(ExitCode::SUCCESS),
        Ok(catena_rules::Outcome::Limit { reactions, rule }) => {
            eprintln!(
                "error: stopped after {reactions} reactions, and more are possible; of late mostly `{rule}`"
            );
            eprintln!("  help: --limit allows more, --trace shows each of them");
            Ok(ExitCode::from(EXIT_FAILED))
        }
        Err(error) => {
            eprintln!("{}", error.diagnostic().render(program.sources()));
            eprintln!(
                "stopped after {reactions} reactions; the solution is as it was before the one that failed"
            );
            Ok(ExitCode::from(EXIT_FAILED))
        }
    }
}

/// The text of a program, and the name to show for it.
fn source(program: &Path) -> Result<(std::path::PathBuf, Arc<str>), String> {
    if program != Path::new("-") {
        return Ok((program.to_path_buf(), read_text(program)?));
    }
    let mut text = String::new();
    let input = std::io::stdin().lock().take(MAX_INPUT + 1).read_to_string(&mut text);
    input.map_err(|e| format!("standard input: {e}"))?;
    Ok(("standard input".into(), text.into()))
}

/// All molecules in their order.
fn molecules(engine: &Engine) -> Vec<&Value> {
    let mut all: Vec<&Value> = engine.molecules().collect();
    all.sort_unstable();
    all
}

fn json(engine: &Engine, reactions: u64, inert: bool) -> serde_json::Value {
    let molecules: Vec<String> = molecules(engine).iter().map(|m| format!("{m:#}")).collect();
    serde_json::json!({ "inert": inert, "reactions": reactions, "molecules": molecules })
}

/// There is nothing here that could be deployed or called: effects are shown, and their values stand for themselves.
struct Watcher<'p> {
    trace: bool,
    externs: &'p [Extern],
}

impl Host for Watcher<'_> {
    fn pure(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        let known = self.externs.iter().any(|e| e.name == name);
        Err(format!(
            "`catena react` has no functions of its own{}",
            if known { "; peers and hosts that declare it do" } else { "" }
        ))
    }

    fn effect(&mut self, name: &str, arguments: &[Value]) -> Result<Option<Value>, String> {
        let shown: Vec<String> = arguments.iter().map(|a| format!("{a:#}")).collect();
        if name == "print" {
            eprintln!("{}", shown.join(" "));
            return Ok(None);
        }
        eprintln!("{name}({})", shown.join(", "));
        let parts = std::iter::once(Value::tag(&name.to_uppercase())).chain(arguments.iter().cloned());
        Ok(Value::tuple(parts))
    }

    fn reacted(&mut self, reaction: &Reaction<'_>) {
        if self.trace {
            let list = |values: &[Value]| {
                let shown: Vec<String> = values.iter().map(|v| format!("{v:#}")).collect();
                if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") }
            };
            let rule = reaction.rule.label();
            let indent = "  ".repeat(reaction.depth);
            print(&format!("{indent}{rule}: {} → {}\n", list(reaction.consumed), list(reaction.produced)));
        }
    }
}
