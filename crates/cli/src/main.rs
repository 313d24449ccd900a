//! The `catena` command.

mod arguments;
mod command;
mod display;
mod project;
mod render;
mod time;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Run(a) => command::run::run(a, &arguments),
        Command::Check(a) => command::check::check(a),
        Command::Plan(a) => command::plan::plan(a),
        Command::Graph(a) => command::graph::graph(a),
        Command::Convert(a) => command::convert::convert(a),
        Command::List(a) => command::inspect::list(a, &arguments),
        Command::Status(a) => command::inspect::status(a, &arguments),
        Command::Logs(a) => command::logs::logs(a, &arguments),
        Command::Cancel(a) => command::control::cancel(a, &arguments),
        Command::Retry(a) => command::run::retry(a, &arguments),
        Command::Report(a) => command::report::report(a, &arguments),
        Command::Schema => command::schema(),
        Command::Completions { shell } => Ok(command::completions(*shell)),
    };
    match result {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(command::EXIT_USAGE)
        }
    }
}
