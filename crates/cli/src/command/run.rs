//! `catena run` and `catena retry`: an instance in this process, with all roles.

use super::dag::run_dag;
use super::inspect::{find_run, read_definition};
use super::workbench::Window;
use super::{EXIT_CANCELLED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, Outcome, show_problems};
use crate::arguments::{AgentArgs, Arguments, CacheArgs, DagArgs, RetryArgs, RunArgs, ShowArgs};
use crate::display::Display;
use crate::jobs::is_dagman;
use crate::project::{find_config, load_source};
use crate::remote::Server;
use crate::time::now_millis;
use catena_agent::{AgentConfig, Cache, Mode, Roster, end_leftovers};
use catena_bus::LocalBus;
use catena_model::chain::RunId;
use catena_model::{Loaded, Name, Resources, parse_bytes};
use catena_plan::Program;
use catena_server::{
    AgentRole, AgentSettings, Blueprint, Config, DagFiles, Definition, Driver, OpenDag, RunEvent, RunSummary,
    StateDirectory, StopWish, publish_results,
};
use catena_store::{NewRun, Run, RunState, Store};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

/// A no-op executor takes this many chains at a time.
const PRETEND_SLOTS: u64 = 512;

/// What to do in this session.
struct Session<'a> {
    work: Work,
    project: Config,
    agent: &'a AgentArgs,
    cache: CacheArgs,
    fail_fast: bool,
    show: ShowArgs,
    pretend: bool,
    new: bool,
    /// Let people watch it in the browser.
    open: bool,
    /// Go on with this very run.
    retry: Option<RunId>,
}

/// A workflow that is ready to run. The document it was read from is not kept: it may be large.
pub(super) struct Work {
    name: String,
    definition: Definition,
    fingerprint: String,
    kind: Kind,
    directory: PathBuf,
    priority: i32,
}

enum Kind {
    Workflow(Arc<Program>),
    Dag(Box<OpenDag>),
}

impl Work {
    fn new(loaded: Loaded, definition: Definition) -> Result<Self, String> {
        let workflow = loaded.expanded.as_ref().ok_or("only workflows can be run")?;
        let name = workflow.name.clone().unwrap_or_else(|| definition.default_name());
        let fingerprint = definition.fingerprint(&loaded);
        let directory = absolute(&loaded.directory)?;
        let definition = Definition { directory: directory.clone(), ..definition.with_text(&loaded.sources) };
        let program = Program::new(workflow, &loaded.library).map_err(|e| e.to_string())?;
        let priority = workflow.priority;
        let kind = Kind::Workflow(Arc::new(program));
        Ok(Self { name, definition, fingerprint, kind, directory, priority })
    }

    pub(super) fn of_dag(dag: OpenDag, definition: Definition) -> Self {
        let path = &definition.workflow;
        Self {
            name: definition.default_name(),
            fingerprint: definition.dag_fingerprint(&dag.loaded),
            directory: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            definition: definition.with_text(&dag.loaded.sources),
            kind: Kind::Dag(Box::new(dag)),
            priority: 0,
        }
    }
}

pub(crate) fn run(args: &RunArgs, arguments: &Arguments) -> Outcome {
    if is_dagman(&args.source.workflow) {
        if args.peer.is_some() {
            return Err("--peer is for workflows; a DAG file runs on this machine or on a server".to_owned());
        }
        return run_dag(args, arguments);
    }
    let DagArgs { max_jobs, max_pre, max_post, rescue } = &args.dag;
    if max_jobs.or(*max_pre).or(*max_post).is_some() || rescue.is_some() {
        return Err("--max-jobs, --max-pre, --max-post and --rescue are for DAG files (*.dag)".to_owned());
    }
    let (loaded, options, project) = load_source(&args.source)?;
    show_problems(&loaded);
    if loaded.diags.has_errors() {
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    let definition = Definition {
        workflow: absolute(&args.source.workflow)?,
        services: options.services.iter().map(|p| absolute(p)).collect::<Result<_, _>>()?,
        macros: options.macros.iter().map(|p| absolute(p)).collect::<Result<_, _>>()?,
        inputs: options.inputs,
        out: absolute(&args.out)?,
        chains: args.chains.name().to_owned(),
        order: args.order.name().to_owned(),
        ..Definition::default()
    };
    if let Some(peer) = &args.peer {
        return super::peer::run_with_peer(args, arguments, peer, &loaded, definition);
    }
    start(args, arguments, Work::new(loaded, definition)?, project)
}

pub(super) fn start(args: &RunArgs, arguments: &Arguments, work: Work, project: Config) -> Outcome {
    let pretend = args.dry_run.is_some();
    let session = Session {
        work,
        project,
        agent: &args.agent,
        cache: args.cache,
        fail_fast: args.fail_fast,
        show: args.show,
        pretend,
        new: args.new,
        open: args.open,
        retry: None,
    };
    if !pretend {
        return session.start(&arguments.state);
    }
    // A pretended run must not be taken for a real one later, so it gets a place of its own.
    let state = arguments.state.join("dry-run");
    let _ = std::fs::remove_dir_all(&state);
    let outcome = session.start(&state);
    let _ = std::fs::remove_dir_all(&state);
    outcome
}

pub(crate) fn retry(args: &RetryArgs, arguments: &Arguments) -> Outcome {
    if let Some(server) = Server::find(arguments) {
        return super::cluster::retry(args, &server);
    }
    let look = StateDirectory::look(&arguments.state).map_err(|e| e.to_string())?;
    let store = look.store().map_err(|e| e.to_string())?;
    let run = find_run(&store, args.run)?;
    let definition = read_definition(&store, &run)?;
    drop(store);
    if is_dagman(&definition.workflow) {
        let file = definition.workflow.display();
        return Err(format!(
            "run {} is one of a DAG file: `catena run {file}` goes on from its rescue file",
            run.id
        ));
    }
    let project = find_config(&definition.workflow)?;
    let loaded = definition.load();
    show_problems(&loaded);
    if loaded.diags.has_errors() {
        return Ok(ExitCode::from(EXIT_USAGE));
    }
    if definition.fingerprint(&loaded) != run.fingerprint {
        return Err(format!(
            "{} has changed since run {}; use `catena run`, which takes unchanged results from the cache",
            definition.workflow.display(),
            run.id
        ));
    }
    let session = Session {
        work: Work::new(loaded, definition)?,
        project,
        agent: &args.agent,
        cache: args.cache,
        fail_fast: args.fail_fast,
        show: args.show,
        pretend: false,
        new: false,
        open: false,
        retry: Some(run.id),
    };
    session.start(&arguments.state)
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))
}

impl Session<'_> {
    fn start(self, state: &Path) -> Outcome {
        let state =
            StateDirectory::own(state, &format!("running {}", self.work.name)).map_err(|e| e.to_string())?;
        let ended = end_leftovers(state.path());
        if ended > 0 {
            eprintln!("note: {ended} tasks of a killed catena were still running and have been ended");
        }
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // Only who is watched needs a network.
        let runtime = if self.open { runtime.enable_all() } else { runtime.enable_time() };
        let runtime = runtime.build().map_err(|e| e.to_string())?;
        let stop = watch_signals(state.path().to_path_buf())?;
        let mut display = Display::new(self.show);
        let summary = runtime.block_on(self.drive(&state, &mut display, stop));
        display.close();
        let summary = summary?;
        Ok(match summary.state {
            RunState::Succeeded => ExitCode::SUCCESS,
            RunState::Interrupted => ExitCode::from(EXIT_INTERRUPTED),
            RunState::Cancelled => ExitCode::from(EXIT_CANCELLED),
            RunState::Running | RunState::PartiallySucceeded | RunState::Failed => {
                let own = summary.exit_code.and_then(|code| u8::try_from(code).ok());
                ExitCode::from(own.unwrap_or(EXIT_FAILED))
            }
        })
    }

    async fn drive(
        self,
        state: &StateDirectory,
        display: &mut Display,
        mut stop: watch::Receiver<StopWish>,
    ) -> Result<RunSummary, String> {
        let store: Arc<dyn Store> = Arc::new(state.store().map_err(|e| e.to_string())?);
        let (run, resumed) = self.find_or_create(&*store).await?;
        let definition = &self.work.definition;
        let context = state.context(run.id, &definition.workflow, &self.work.directory, &definition.out);
        let is_dag = matches!(self.work.kind, Kind::Dag(_));
        if (self.retry.is_some() || resumed) && !is_dag {
            let again = store.retry_failed(run.id).await.map_err(|e| e.to_string())?;
            if again > 0 {
                display.note(&format!("{again} chains that had failed are tried again"));
            }
        }
        let bus: Arc<LocalBus> = Arc::new(LocalBus::default());
        let cache = self.open_cache(state)?;
        let agent = AgentRole::start(
            self.agent_config()?,
            cache.clone(),
            None,
            Roster::create(state.path()),
            bus.clone(),
        );
        let window = if self.open {
            let directory = self.work.directory.clone();
            Some(Window::open(store.clone(), bus.clone(), state.path(), directory, run.id).await?)
        } else {
            None
        };
        let watchers = window.as_ref().map(|w| w.events.clone());
        let mut observer = |event: RunEvent| {
            display.show(&event);
            if let Some(watchers) = &watchers {
                let _ = serde_json::to_value(&event).map(|event| watchers.send(event));
            }
        };
        let options = definition.plan_options(&context);
        let blueprint = match self.work.kind {
            Kind::Workflow(program) => Blueprint::Workflow { program, options },
            Kind::Dag(dag) => Blueprint::Dag {
                options: dag.options,
                file: Box::new(dag.loaded.dag),
                files: if self.pretend { None } else { Some(DagFiles::default()) },
            },
        };
        let driver = Driver::open(store, bus, run, blueprint, context, &mut observer).await;
        let driver = driver.map_err(|e| e.to_string())?.fail_fast(self.fail_fast);
        let summary = {
            let agent = agent.run();
            tokio::pin!(agent);
            let drive = driver.drive(stop.clone(), resumed);
            tokio::pin!(drive);
            tokio::select! {
                summary = &mut drive => summary,
                () = &mut agent => drive.await,
            }
        };
        if let Some(cache) = cache {
            cache.flush();
        }
        let summary = summary.map_err(|e| e.to_string())?;
        let results = if summary.state == RunState::Succeeded && !self.pretend {
            publish_results(&summary.results, &definition.out)
                .map_err(|e| format!("results cannot be put in their place: {e}"))?
        } else {
            Vec::new()
        };
        display.end(&summary, &results);
        match window {
            Some(window) if summary.state == RunState::Interrupted => window.close().await,
            Some(window) => window.stay(&mut stop).await,
            None => {}
        }
        Ok(summary)
    }

    /// The run to go on with, or a new one. Returns whether it goes on.
    async fn find_or_create(&self, store: &dyn Store) -> Result<(Run, bool), String> {
        let fail = |e: catena_store::StoreError| e.to_string();
        let Work { name, definition, fingerprint, .. } = &self.work;
        if let Some(id) = self.retry {
            let run = store.run(id).await.map_err(fail)?.ok_or("the run is gone")?;
            return Ok((run, true));
        }
        let runs = store.runs().await.map_err(fail)?;
        // Only the newest run of this work: older ones were given up for it.
        let same = runs.into_iter().find(|r| r.fingerprint == *fingerprint);
        let goes_on = |state: RunState| match self.work.kind {
            Kind::Workflow(_) => state != RunState::Succeeded,
            // One that has come to an end goes on from its rescue file.
            Kind::Dag(_) => matches!(state, RunState::Running | RunState::Interrupted),
        };
        if let Some(run) = same.filter(|r| !self.new && goes_on(r.state)) {
            return Ok((run, true));
        }
        let new = NewRun {
            name: name.clone(),
            source: definition.workflow.to_string_lossy().into_owned(),
            fingerprint: fingerprint.clone(),
            definition: serde_json::to_vec(definition).map_err(|e| e.to_string())?,
            created: now_millis(),
            priority: self.work.priority,
            files: Vec::new(),
        };
        let id = store.create_run(&new).await.map_err(fail)?;
        let run = store.run(id).await.map_err(fail)?.ok_or("the new run is gone")?;
        Ok((run, false))
    }

    fn open_cache(&self, state: &StateDirectory) -> Result<Option<Arc<Cache>>, String> {
        if self.cache.no_cache || self.pretend {
            return Ok(None);
        }
        Cache::open(&state.cache_file()).map(Arc::new).map(Some).map_err(|e| e.to_string())
    }

    fn agent_config(&self) -> Result<AgentConfig, String> {
        let mut config = agent_config(&self.project.agent, self.agent, Name::new_static("local"))?;
        if self.pretend {
            config.resources.cpus = PRETEND_SLOTS * 1000;
            config.resources.memory = u64::MAX;
            config.mode = Mode::Pretend;
        }
        config.explain = self.show.explain || self.show.json;
        Ok(config)
    }
}

/// What an agent on this machine is and has, by the settings and the command line.
pub(crate) fn agent_config(
    settings: &AgentSettings,
    args: &AgentArgs,
    id: Name,
) -> Result<AgentConfig, String> {
    let detected = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let cpus = args.cpus.or(settings.cpus).unwrap_or(detected);
    if !(cpus > 0.0 && cpus.is_finite()) {
        return Err(format!("--cpus must be greater than 0, not {cpus}"));
    }
    let memory = match &args.memory {
        Some(text) => parse_bytes(text)?,
        None => settings.memory.unwrap_or_else(total_memory),
    };
    let mut resources =
        Resources { cpus: (cpus * 1000.0) as u64, memory, disk: u64::MAX, ..Resources::default() };
    for (name, n) in &settings.quantities {
        resources.named.insert(name.clone(), (n * 1000.0) as u64);
    }
    for given in &args.resources {
        let parsed = given.split_once('=').and_then(|(name, n)| Some((name, n.parse::<f64>().ok()?)));
        let (name, n) = parsed.ok_or_else(|| format!("`--resource {given}`: expected NAME=NUMBER"))?;
        resources.named.insert(Name::new(name), (n * 1000.0) as u64);
    }
    let given = args.capabilities.iter().map(Name::new);
    let capabilities = settings.capabilities.iter().cloned().chain(given).collect();
    Ok(AgentConfig {
        id,
        capabilities,
        resources,
        explain: false,
        mode: Mode::Execute,
        shell: AgentConfig::find_shell(),
    })
}

/// The memory of this machine in bytes.
fn total_memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit).max(1))
}

/// The first Ctrl-C stops tasks and leaves the run so that it can go on; the second ends at once.
fn watch_signals(state: PathBuf) -> Result<watch::Receiver<StopWish>, String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let (sender, receiver) = watch::channel(StopWish::No);
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|e| e.to_string())?;
    let watch = move || {
        let mut count = 0;
        for _ in signals.forever() {
            count += 1;
            if count == 1 {
                eprintln!("\nstopping tasks … (press Ctrl-C again to end at once)");
                let _ = sender.send(StopWish::Interrupt);
            } else {
                end_leftovers(&state);
                std::process::exit(i32::from(EXIT_INTERRUPTED));
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(|e| e.to_string())?;
    Ok(receiver)
}
