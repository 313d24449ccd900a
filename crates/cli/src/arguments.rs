//! What can be said on the command line.

use catena_plan::Order;
use catena_simulate::PolicyName;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

mod collab;
mod compose;
mod data;
mod generate;
mod peer;
mod reproduce;
mod space;

pub(crate) use collab::{CollabArgs, CollabExperiment};
pub(crate) use compose::{ComposeCommand, ComposeExportArgs, ComposeImportArgs, ComposeLogArgs};
pub(crate) use data::{DataArgs, DataExperiment};
pub(crate) use generate::{Format, GenerateArgs, Shape, Size};
pub(crate) use peer::{KeyArgs, PeerArgs, PeersArgs};
pub(crate) use reproduce::{AdageArgs, PaperDag, PrioEvaluationArgs, ReproduceCommand, SteepArgs};
pub(crate) use space::{SpaceArgs, SpaceExperiment};

/// Runs scientific workflows: on a laptop in a second, and on as many machines as you have.
#[derive(Debug, Parser)]
#[command(name = "catena", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success, 1 tasks failed, 2 wrong input or usage, 3 cancelled, 130 interrupted (run again to go on)."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Where runs, intermediate files, logs and the result cache are kept
    #[arg(long, global = true, value_name = "DIR", default_value = ".catena", env = "CATENA_STATE_DIR")]
    pub(crate) state: PathBuf,
    /// Talk to a server, such as http://localhost:8080, in place of the state directory
    #[arg(long, global = true, value_name = "URL", env = "CATENA_SERVER")]
    pub(crate) server: Option<String>,
    /// What to identify oneself with there [default: the token in the state directory]
    #[arg(long, global = true, value_name = "TOKEN", env = "CATENA_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a workflow, or go on with one that was interrupted
    Run(Box<RunArgs>),
    /// Check a workflow, macros or services and report everything that is wrong
    Check(CheckArgs),
    /// Show the process chains a workflow is cut into
    Plan(PlanArgs),
    /// Draw a workflow
    Graph(GraphArgs),
    /// Order the jobs of a workflow so that many can run at any time; write the order into DAGMan files
    Prio(PrioArgs),
    /// Make up a workflow with the shape of a published one, as a DAGMan, DAX or WfFormat file
    Generate(GenerateArgs),
    /// Execute workflows in virtual time: how long, on how many nodes, with which policy
    Simulate(SimulateArgs),
    /// Let the molecules of a rule program react until nothing can any more
    React(ReactArgs),
    /// Write a workflow in another form
    Convert(ConvertArgs),
    /// List runs
    List(ListArgs),
    /// Find runs by words in their name, workflow, state or error
    Search(SearchArgs),
    /// Show how a run stands
    Status(StatusArgs),
    /// Bring the results of a run on a server here
    Fetch(FetchArgs),
    /// List the chains of a run: where they were executed, and what they were at for how long
    Chains(ChainsArgs),
    /// Show what tasks have written
    Logs(LogsArgs),
    /// Stop a run for good
    Cancel(CancelArgs),
    /// Run the failed and cancelled tasks of a run again
    Retry(RetryArgs),
    /// Run an instance that takes workflows and runs them, alone or as part of a cluster
    Serve(Box<ServeArgs>),
    /// Run an instance that is only an agent
    Agent(Box<AgentCommandArgs>),
    /// Submit a workflow to a server
    Submit(Box<SubmitArgs>),
    /// Let a run on a server wait: what runs goes on, nothing new is started
    Pause(RunRef),
    /// Let a run on a server that waits go on
    Resume(RunRef),
    /// Change the priority of a run on a server
    Priority(PriorityArgs),
    /// Delete a run on a server that is over, with its files
    Delete(RunRef),
    /// Be a peer: execute tasks for a group that has no server, and let workflows in
    Peer(Box<PeerArgs>),
    /// Show the peers of a group: their places on the ring, load and molecules
    Peers(PeersArgs),
    /// List the agents of a server
    Agents(ListArgs),
    /// Let agents of a server end once they have nothing to do
    Dismiss(DismissArgs),
    /// List the instances of a server's cluster
    Instances(ListArgs),
    /// List the services that every workflow on a server may use
    Services(ListArgs),
    /// Show what machines a server can make, and those it has made
    Fleet(ListArgs),
    /// Show what waits on a server, and why
    Waiting(ListArgs),
    /// Compose workflows together with others on a server: bring them there, look at their history and locks
    #[command(subcommand)]
    Compose(ComposeCommand),
    /// Manage the tokens of a server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Look at the settings of an instance
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Repeat the experiments of a paper
    #[command(subcommand)]
    Reproduce(ReproduceCommand),
    /// Write a page with the graph, the timeline, durations and failures of a run
    Report(ReportArgs),
    /// Print the JSON Schema of workflows, for editors
    Schema {
        /// Print the OpenAPI description of the HTTP interface instead
        #[arg(long)]
        http: bool,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Where the settings of an instance come from: a file, then the environment, then these.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// The file with the settings [default: catena.yaml, if there is one]
    #[arg(long, short, value_name = "FILE", env = "CATENA_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Set something; `catena config settings` lists what
    #[arg(long, value_name = "SETTING=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The parts it plays, such as http,controller,scheduler [default: all]
    #[arg(long, value_name = "ROLES")]
    pub(crate) roles: Option<String>,
    /// Where the HTTP interface listens [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Open the workbench in the browser, signed in
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AgentCommandArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The name of the agent [default: of the machine and the process]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// End after so long without anything to do, such as 5m
    #[arg(long, value_name = "DURATION")]
    pub(crate) idle_shutdown: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// A name for the run [default: the workflow's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where results go: on a directory the server and its agents see, or here where agents have files of their own
    /// (with --wait) [default: the server's]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Higher ones come first [default: the workflow's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// How chains are cut
    #[arg(long, value_enum, default_value = "split")]
    pub(crate) chains: Chains,
    /// Which chains come first: those that can run first, those after which many others can run, or the better
    #[arg(long, value_enum, default_value = "fifo")]
    pub(crate) order: OrderName,
    /// Show the run until it ends, and end as `catena run` would
    #[arg(long, short)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

/// A run on a server.
#[derive(Debug, Args)]
pub(crate) struct RunRef {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct PriorityArgs {
    /// The run
    pub(crate) run: i64,
    /// Higher ones come first
    #[arg(allow_negative_numbers = true)]
    pub(crate) priority: i32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; it is shown only once
    Create {
        /// Who or what it is for
        name: String,
        /// What it allows: viewer, editor, operator or agent
        #[arg(long, default_value = "editor")]
        role: String,
        /// How long it is good for, such as 30d [default: until it is revoked]
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// List tokens, without what they are
    List {
        #[command(flatten)]
        config: ConfigArgs,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a token worthless
    Revoke {
        /// Who or what it was for
        name: String,
        #[command(flatten)]
        config: ConfigArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the settings and show what follows from them
    Check {
        /// The file with the settings [default: catena.yaml, if there is one]
        file: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigArgs,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// List everything that can be set
    Settings,
}

/// Where a workflow and what it uses are.
#[derive(Clone, Debug, Args)]
pub(crate) struct SourceArgs {
    /// The workflow file, or a directory with a workflow.yaml
    pub(crate) workflow: PathBuf,
    /// A file with services
    #[arg(long, value_name = "FILE")]
    pub(crate) services: Vec<PathBuf>,
    /// A file with macros
    #[arg(long, value_name = "FILE")]
    pub(crate) macros: Vec<PathBuf>,
    /// Set an input; the value is read as YAML
    #[arg(short, long = "input", value_name = "NAME=VALUE")]
    pub(crate) input: Vec<String>,
    /// Set inputs from a YAML or JSON file
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Chains {
    /// Cut where required capabilities or resources differ
    Split,
    /// Never cut: a chain requires all that its tasks require
    Union,
    /// Each task is a chain of its own
    Single,
}

impl Chains {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Chains::Split => "split",
            Chains::Union => "union",
            Chains::Single => "single",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// Plan and pretend that every task succeeds; nothing is started or kept
    Execute,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Stop at the first failure
    #[arg(long)]
    pub(crate) fail_fast: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    /// Start a new run, even if an earlier one could go on
    #[arg(long)]
    pub(crate) new: bool,
    /// How chains are cut
    #[arg(long, value_enum, default_value = "split")]
    pub(crate) chains: Chains,
    /// Which chains come first: those that can run first, those after which many others can run, or the better
    #[arg(long, value_enum, default_value = "fifo")]
    pub(crate) order: OrderName,
    /// Start nothing
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, default_missing_value = "execute", require_equals = true)]
    pub(crate) dry_run: Option<DryRun>,
    /// Watch the run in the browser; goes on until Ctrl-C
    #[arg(long, conflicts_with_all = ["dry_run", "peer"])]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) dag: DagArgs,
    /// Give the workflow to a group of peers, by way of this one, as HOST:PORT
    #[arg(long, value_name = "ADDR", conflicts_with = "dry_run")]
    pub(crate) peer: Option<String>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
}

/// What is only for DAG files.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Options for DAG files")]
pub(crate) struct DagArgs {
    /// How many nodes may have jobs at a time [default: no limit]
    #[arg(long, value_name = "N")]
    pub(crate) max_jobs: Option<u32>,
    /// How many PRE scripts may run at a time [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) max_pre: Option<u32>,
    /// How many POST scripts may run at a time [default: 20]
    #[arg(long, value_name = "N")]
    pub(crate) max_post: Option<u32>,
    /// A rescue file or save point to go on from, in place of the newest rescue file
    #[arg(long, value_name = "FILE", conflicts_with = "new")]
    pub(crate) rescue: Option<PathBuf>,
}

/// What the local agent offers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AgentArgs {
    /// Processors to use at once [default: all]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) cpus: Option<f64>,
    /// Memory to use at once, such as `8 GiB` [default: all]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// A named quantity this machine has, such as gpus=2
    #[arg(long = "resource", value_name = "NAME=N")]
    pub(crate) resources: Vec<String>,
    /// A capability this machine offers
    #[arg(long = "capability", visible_alias = "capabilities", value_name = "NAME", value_delimiter = ',')]
    pub(crate) capabilities: Vec<String>,
}

/// Whether what is known need not be computed again.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct CacheArgs {
    /// Run every task, even if its result is known
    #[arg(long)]
    pub(crate) no_cache: bool,
}

/// What is shown while a run goes on.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ShowArgs {
    /// Print events as JSON, one a line
    #[arg(long, conflicts_with_all = ["explain", "quiet"])]
    pub(crate) json: bool,
    /// Say why each task runs or does not
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show only failures and the end
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Print the problems as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReactArgs {
    /// A file with rules and a solution (.hocl), or - for standard input
    pub(crate) program: PathBuf,
    /// Show every reaction: the rule, what it consumed and what came out
    #[arg(long)]
    pub(crate) trace: bool,
    /// Print the end as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Choose among possible reactions at random: the same for the same number
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Stop after so many reactions
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Directory for intermediate files
    #[arg(long, value_name = "DIR", default_value = "/tmp/")]
    pub(crate) tmp: String,
    /// Directory for results
    #[arg(long, value_name = "DIR", default_value = "/out/")]
    pub(crate) out: String,
    /// Results to feed step by step: a YAML list of {results, executedExecutableIds}
    #[arg(long, value_name = "STEPS.yaml")]
    pub(crate) results: Option<PathBuf>,
    /// Save the state and load it again between steps
    #[arg(long)]
    pub(crate) reload: bool,
    /// Feed one variable at a time
    #[arg(long)]
    pub(crate) one_by_one: bool,
    /// How chains are cut
    #[arg(long, value_enum, default_value = "split")]
    pub(crate) chains: Chains,
    /// Which chains come first: those that can run first, those after which many others can run, or the better
    #[arg(long, value_enum, default_value = "fifo")]
    pub(crate) order: OrderName,
    /// Print the chains as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    Svg,
    Dot,
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// What to draw [default: by the name of the output file, else svg]
    #[arg(long, value_enum)]
    pub(crate) format: Option<GraphFormat>,
    /// Where to write it [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The form to write
    #[arg(long, value_enum, default_value = "long")]
    pub(crate) to: Form,
    /// Where to write it [default: standard output]; for a stand-in, a directory
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The long form (Steep 4.x)
    Long,
    /// A composition: workflows made of workflows, to be edited together
    Composition,
    /// Pegasus DAX 3: jobs, runtimes, files and dependencies
    Dax,
    /// WfCommons WfFormat 1.5: jobs, runtimes, files and dependencies
    Wfformat,
    /// A workflow that runs: its tasks take as long as recorded ones, and read and write as much
    StandIn,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words that must all occur; `name:word`, `state:word`, `error:word` and `workflow:word` look in one place only
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DismissArgs {
    /// The agents
    #[arg(required = true)]
    pub(crate) agents: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
    /// Where to put them
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ChainsArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
    /// Only those in this state: registered, running, paused, succeeded, failed, cancelled
    #[arg(long, value_name = "STATE")]
    pub(crate) only: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Tasks to show, by name; `*` stands for anything [default: all that have written something]
    pub(crate) tasks: Vec<String>,
    /// The run [default: the newest]
    #[arg(long, short, value_name = "N")]
    pub(crate) run: Option<i64>,
    /// Go on showing what is written until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only the last lines of each log
    #[arg(long, short = 'n', value_name = "LINES")]
    pub(crate) tail: Option<usize>,
    /// Only tasks that failed
    #[arg(long)]
    pub(crate) failed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The run [default: the one under way]
    pub(crate) run: Option<i64>,
}

#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Stop at the first failure
    #[arg(long)]
    pub(crate) fail_fast: bool,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<i64>,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PrioArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Which order: that of the paper, first come first served, or the better of them
    #[arg(long, value_enum, default_value = "prio")]
    pub(crate) order: OrderName,
    /// Print `{"order": [names], "priority": {name: n}}` and change nothing
    #[arg(long, conflicts_with_all = ["in_place", "out"])]
    pub(crate) json: bool,
    /// Write priorities into the DAG file, and into its submit files if these need to know
    #[arg(long, conflicts_with = "out")]
    pub(crate) in_place: bool,
    /// Write the files with priorities into another directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// How priorities are written: PRIORITY commands, the macro JOBPRIORITY in submit files, or both [default: priority]
    #[arg(long, value_enum)]
    pub(crate) method: Option<PriorityMethodName>,
    /// Compare the number of eligible jobs with first come, first served
    #[arg(long)]
    pub(crate) stats: bool,
    /// Draw that comparison, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

/// How priorities are written into files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriorityMethodName {
    Priority,
    Vars,
    Both,
}

/// An order of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OrderName {
    Prio,
    Fifo,
    Auto,
}

impl OrderName {
    pub(crate) fn name(self) -> &'static str {
        match self {
            OrderName::Prio => "prio",
            OrderName::Fifo => "fifo",
            OrderName::Auto => "auto",
        }
    }
}

impl From<OrderName> for Order {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Prio => Order::Prio,
            OrderName::Fifo => Order::Fifo,
            OrderName::Auto => Order::Auto,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// Workflows: Pegasus DAX or YAML, WfFormat, DAG files, your own; or a kind and a size, such as montage:1000
    #[arg(required_unless_present = "calibrate", value_name = "WORKFLOW")]
    pub(crate) workflows: Vec<PathBuf>,
    /// Where it runs: a file that describes a cluster; plain, nodes with one processor as fast as the recorded ones;
    /// adage, the model of the experiments with ADAGE; or adage-local, the same with data on the nodes
    /// [default: plain with --calibrate, else adage]
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) cluster: Option<String>,
    /// How many nodes of the first kind there are [default: as the file says, else 1,2,4,8,16,32,64]
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) nodes: Vec<u32>,
    /// Who runs what: fcfs, steep, min-min, max-min, heft, cpop, adage, matrix, albatross, catena; or catena with other
    /// choices at some stages, such as catena+order:prio+replicate:none
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "catena")]
    pub(crate) policy: Vec<PolicyName>,
    /// How often what is random is tried
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// Take durations from a run that has ended; without a workflow, simulate that run
    #[arg(long, value_name = "RUN")]
    pub(crate) calibrate: Option<i64>,
    /// How long jobs take of which nothing is known, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = not_negative)]
    pub(crate) runtime: f64,
    /// Durations are off by up to this fraction, whatever the cluster's file says
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub(crate) spread: Option<f64>,
    /// This fraction of executions takes much longer
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    pub(crate) stragglers: Option<f64>,
    /// How many times longer these take
    #[arg(long, value_name = "FACTOR", value_parser = not_negative)]
    pub(crate) factor: Option<f64>,
    /// Draw pictures into this directory: makespan, bytes, cost and busy nodes, and who was busy when
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| "must be a number that is not negative".to_owned())
}

/// Neither so small nor so large that nothing can be done with it.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| (1e-3..=1e6).contains(n));
    number.ok_or_else(|| "must be a number from 0.001 to 1000000".to_owned())
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| (0.0..1.0).contains(n));
    number.ok_or_else(|| "must be a number from 0 to less than 1, such as 0.05".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_documented() {
        let docs = include_str!("../../../docs/commands.md");
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            let is_told = [' ', '`'].iter().any(|end| docs.contains(&format!("`{name}{end}")));
            assert!(is_told, "{name} is missing in docs/commands.md");
        }
    }
}
