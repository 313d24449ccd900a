//! Arguments of `catena compose`.

use super::SourceArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ComposeCommand {
    /// List the compositions of a server
    List(ComposeListArgs),
    /// Bring a composition, or any workflow as one, to a server; changes the one there is
    Import(Box<ComposeImportArgs>),
    /// Write a composition of a server to a file
    Export(ComposeExportArgs),
    /// Show what was done to a composition, or what happened to its locks
    Log(ComposeLogArgs),
    /// List the versions of a composition that have names
    Versions(ComposeRef),
    /// Show who has locked what
    Locks(ComposeRef),
    /// Give what a composition is now a name
    Name(ComposeNameArgs),
    /// Make a version, or what there is now, the one that runs
    Publish(ComposePublishArgs),
    /// Remove a composition with its history
    Remove(ComposeRef),
}

#[derive(Debug, Args)]
pub(crate) struct ComposeListArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ComposeRef {
    /// The composition
    pub(crate) id: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ComposeImportArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// What it is called on the server [default: as the file or its directory]
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ComposeExportArgs {
    /// The composition
    pub(crate) id: String,
    /// A version of it [default: what it is now]
    #[arg(long, value_name = "NAME")]
    pub(crate) version: Option<String>,
    /// The form to write
    #[arg(long, value_enum, default_value = "yaml")]
    pub(crate) to: ComposeForm,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ComposeForm {
    /// The form of compositions
    Yaml,
    /// The same as JSON
    Json,
    /// The ordinary language, as it is executed
    Long,
}

impl ComposeForm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Yaml => "yaml",
            Self::Json => "json",
            Self::Long => "long",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ComposeLogArgs {
    /// The composition
    pub(crate) id: String,
    /// What happened to locks, in place of what was done
    #[arg(long)]
    pub(crate) locks: bool,
    /// Only what was done after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) after: u64,
    /// How many entries
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: usize,
    /// Print as JSON, one entry a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ComposeNameArgs {
    /// The composition
    pub(crate) id: String,
    /// The name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ComposePublishArgs {
    /// The composition
    pub(crate) id: String,
    /// The version [default: what there is now]
    pub(crate) version: Option<String>,
}
