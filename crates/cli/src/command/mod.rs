//! One module per command.

pub(crate) mod chains;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod compose;
pub(crate) mod control;
pub(crate) mod convert;
mod dag;
pub(crate) mod fetch;
pub(crate) mod generate;
pub(crate) mod graph;
pub(crate) mod inspect;
pub(crate) mod logs;
pub(crate) mod peer;
pub(crate) mod plan;
pub(crate) mod prio;
pub(crate) mod react;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
mod send;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod simulate;
mod workbench;

use crate::arguments::{Arguments, SourceArgs};
use crate::project::load_source;
use catena_model::Loaded;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Tasks failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Wrong input or usage.
pub(crate) const EXIT_USAGE: u8 = 2;
/// The run was cancelled.
pub(crate) const EXIT_CANCELLED: u8 = 3;
/// The run was interrupted and can go on.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// What a command comes to, or a message for the user.
pub(crate) type Outcome = Result<ExitCode, String>;

/// Prints text to standard output. A reader that goes away, such as `head`, is not an error.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes to a file, or to standard output. A reader that goes away is not an error.
pub(crate) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), String> {
    let done = |out: &mut dyn Write| write(out).and_then(|()| out.flush());
    match path {
        Some(path) => std::fs::File::create(path)
            .and_then(|file| done(&mut BufWriter::new(file)))
            .map_err(|e| format!("{}: {e}", path.display())),
        None => match done(&mut BufWriter::new(std::io::stdout().lock())) {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {e}")),
            _ => Ok(()),
        },
    }
}

/// Loads a workflow that must be valid; its problems go to standard error.
pub(crate) fn load_valid(source: &SourceArgs) -> Result<Loaded, ExitCode> {
    let loaded = match load_source(source) {
        Ok((loaded, ..)) => loaded,
        Err(message) => {
            eprintln!("error: {message}");
            return Err(ExitCode::from(EXIT_USAGE));
        }
    };
    show_problems(&loaded);
    if loaded.diags.has_errors() { Err(ExitCode::from(EXIT_USAGE)) } else { Ok(loaded) }
}

/// Prints all problems of a document to standard error.
pub(crate) fn show_problems(loaded: &Loaded) {
    for d in loaded.diags.iter() {
        eprintln!("{}", d.render(&loaded.sources));
    }
    let errors = loaded.diags.error_count();
    if errors > 0 {
        eprintln!("{errors} {}", if errors == 1 { "error" } else { "errors" });
    }
}

pub(crate) fn schema(http: bool) -> Outcome {
    let schema = if http { catena_server::openapi() } else { catena_model::json_schema() };
    let schema = serde_json::to_string_pretty(&schema).map_err(|e| e.to_string())?;
    print(&format!("{schema}\n"));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "catena", &mut script);
    print(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}
