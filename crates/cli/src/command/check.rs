//! `catena check`

use super::{EXIT_USAGE, Outcome, print, show_problems};
use crate::arguments::CheckArgs;
use crate::jobs::{is_dagman, show};
use crate::project::load_source;
use catena_model::dagman::load_dag;
use catena_model::{Action, Diagnostics, DocumentKind, Loaded, Severity, Sources, Value};
use catena_plan::{DagShape, dag_of};
use std::process::ExitCode;

pub(crate) fn check(args: &CheckArgs) -> Outcome {
    if is_dagman(&args.source.workflow) {
        return Ok(check_dag(args));
    }
    let (loaded, ..) = load_source(&args.source)?;
    let valid = !loaded.diags.has_errors();
    if args.json {
        print(&format!("{:#}\n", judgement(&loaded.diags, &loaded.sources)));
    } else {
        show_problems(&loaded);
        if valid {
            print(&format!("{}\n", summary(&loaded)));
        }
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(EXIT_USAGE) })
}

/// Whether a document is valid, and what is wrong with it.
fn judgement(diags: &Diagnostics, sources: &Sources) -> Value {
    let of = |severity| -> Vec<_> {
        diags.iter().filter(|d| d.severity == severity).map(|d| d.to_json(sources)).collect()
    };
    serde_json::json!({
        "valid": !diags.has_errors(),
        "errors": of(Severity::Error),
        "warnings": of(Severity::Warning),
    })
}

/// A DAGMan file, with the numbers that HTCondor's checker gives.
fn check_dag(args: &CheckArgs) -> ExitCode {
    let mut loaded = load_dag(&args.source.workflow);
    dag_of(&mut loaded);
    let valid = !loaded.diags.has_errors();
    let shape = DagShape::new(&loaded.dag);
    if args.json {
        let mut json = judgement(&loaded.diags, &loaded.sources);
        if let (Some(json), Ok(Value::Object(shape))) = (json.as_object_mut(), serde_json::to_value(&shape)) {
            json.extend(shape);
        }
        print(&format!("{json:#}\n"));
    } else {
        show(&loaded.diags, &loaded.sources);
        if valid {
            print(&format!(
                "valid: {} nodes, {} dependencies, {} deep, at most {} side by side\n",
                shape.total_nodes, shape.arcs, shape.height, shape.width
            ));
        }
    }
    if valid { ExitCode::SUCCESS } else { ExitCode::from(EXIT_USAGE) }
}

fn summary(loaded: &Loaded) -> String {
    fn count(actions: &[Action]) -> (usize, usize) {
        actions.iter().fold((0, 0), |(tasks, loops), a| match a {
            Action::Execute(_) | Action::Include(_) => (tasks + 1, loops),
            Action::First(_) => (tasks, loops),
            Action::For(f) => {
                let (t, l) = count(&f.actions);
                (tasks + t, loops + l + 1)
            }
        })
    }
    match loaded.kind {
        DocumentKind::Workflow => {
            let (actions, loops) = loaded.expanded.as_ref().map(|w| count(&w.actions)).unwrap_or_default();
            format!("valid: {actions} actions in {loops} loops")
        }
        DocumentKind::Macros => format!("valid: {} macros", loaded.library.macros().count()),
        DocumentKind::Services => format!("valid: {} services", loaded.library.services().count()),
    }
}
