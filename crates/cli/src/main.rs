//! The `catena` command.

mod arguments;
mod command;
mod display;
mod jobs;
mod parallel;
mod project;
mod remote;
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
        Command::Prio(a) => command::prio::prio(a),
        Command::Generate(a) => command::generate::generate(a),
        Command::Simulate(a) => command::simulate::simulate(a, &arguments),
        Command::React(a) => command::react::react(a),
        Command::Convert(a) => command::convert::convert(a),
        Command::List(a) => command::inspect::list(a, &arguments),
        Command::Search(a) => command::inspect::search(a, &arguments),
        Command::Status(a) => command::inspect::status(a, &arguments),
        Command::Fetch(a) => command::fetch::fetch(a, &arguments),
        Command::Chains(a) => command::chains::chains(a, &arguments),
        Command::Logs(a) => command::logs::logs(a, &arguments),
        Command::Cancel(a) => command::control::cancel(a, &arguments),
        Command::Retry(a) => command::run::retry(a, &arguments),
        Command::Report(a) => command::report::report(a, &arguments),
        Command::Serve(a) => command::serve::serve(a, &arguments),
        Command::Agent(a) => command::serve::agent(a, &arguments),
        Command::Submit(a) => command::cluster::submit(a, &arguments),
        Command::Pause(a) => command::cluster::pause(a, &arguments),
        Command::Resume(a) => command::cluster::resume(a, &arguments),
        Command::Priority(a) => command::cluster::priority(a, &arguments),
        Command::Delete(a) => command::cluster::delete(a, &arguments),
        Command::Peer(a) => command::peer::peer(a, &arguments),
        Command::Peers(a) => command::peer::peers(a, &arguments),
        Command::Agents(a) => command::cluster::agents(a, &arguments),
        Command::Dismiss(a) => command::cluster::dismiss(a, &arguments),
        Command::Instances(a) => command::cluster::instances(a, &arguments),
        Command::Services(a) => command::cluster::services(a, &arguments),
        Command::Fleet(a) => command::cluster::fleet(a, &arguments),
        Command::Waiting(a) => command::cluster::waiting(a, &arguments),
        Command::Compose(c) => command::compose::compose(c, &arguments),
        Command::Token(c) => command::settings::token(c, &arguments),
        Command::Config(c) => command::settings::config(c),
        Command::Reproduce(c) => command::reproduce::reproduce(c),
        Command::Schema { http } => command::schema(*http),
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
