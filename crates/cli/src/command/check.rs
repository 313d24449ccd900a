//! `catena check`

use super::{EXIT_USAGE, Outcome, print, show_problems};
use crate::arguments::CheckArgs;
use crate::project::load_source;
use catena_model::{Action, DocumentKind, Loaded, Severity};
use std::process::ExitCode;

pub(crate) fn check(args: &CheckArgs) -> Outcome {
    let (loaded, ..) = load_source(&args.source)?;
    let valid = !loaded.diags.has_errors();
    if args.json {
        let of = |severity| -> Vec<_> {
            loaded
                .diags
                .iter()
                .filter(|d| d.severity == severity)
                .map(|d| d.to_json(&loaded.sources))
                .collect()
        };
        let json = serde_json::json!({
            "valid": valid,
            "errors": of(Severity::Error),
            "warnings": of(Severity::Warning),
        });
        print(&format!("{json:#}\n"));
    } else {
        show_problems(&loaded);
        if valid {
            print(&format!("{}\n", summary(&loaded)));
        }
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(EXIT_USAGE) })
}

fn summary(loaded: &Loaded) -> String {
    fn count(actions: &[Action]) -> (usize, usize) {
        actions.iter().fold((0, 0), |(tasks, loops), a| match a {
            Action::Execute(_) | Action::Include(_) => (tasks + 1, loops),
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
