//! `catena serve` and `catena agent`: instances that others may join.

use super::run::agent_config;
use super::{EXIT_FAILED, EXIT_INTERRUPTED, Outcome, workbench};
use crate::arguments::{AgentArgs, AgentCommandArgs, Arguments, CacheArgs, ServeArgs};
use crate::project::instance_config;
use crate::remote::{HttpDesk, token_file};
use crate::time::now_millis;
use catena_agent::{Cache, end_leftovers};
use catena_bus::{Bus, LocalBus, LossyBus, NatsBus};
use catena_data::{Depot, DepotOptions, address_towards};
use catena_fleet::{ProcessProvider, Provider};
use catena_model::{Library, Name, parse_duration};
use catena_server::{
    Access, AgentSetup, Config, Desk, FleetSetup, Home, HttpSetup, InstanceSetup, Places, RemoteOptions,
    Role, StateDirectory, StoreDesk, TokenRole, default_agent_name, hash_token, host_name, new_token,
};
use catena_store::{PostgresStore, Store, Token};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long an orderly stop may take: longer than roles, tasks and farewells need at most.
const STOP_WITHIN: Duration = Duration::from_secs(15);

pub(crate) fn serve(args: &ServeArgs, arguments: &Arguments) -> Outcome {
    let (mut config, file) = instance_config(&args.config)?;
    if let Some(roles) = &args.roles {
        config.add_text("roles", roles)?;
    }
    if let Some(listen) = &args.listen {
        config.listen.clone_from(listen);
    }
    Starter { config, file, agent: &args.agent, cache: args.cache, arguments, open: args.open }.start()
}

pub(crate) fn agent(args: &AgentCommandArgs, arguments: &Arguments) -> Outcome {
    let (mut config, file) = instance_config(&args.config)?;
    config.roles = vec![Role::Agent];
    if let Some(name) = &args.name {
        config.agent.name = Some(name.clone());
    }
    if let Some(duration) = &args.idle_shutdown {
        config.agent.idle_shutdown = Some(parse_duration(duration)?);
    }
    if config.bus.url.is_empty() {
        return Err("an agent needs the `bus` of its cluster: set it in catena.yaml, as CATENA_BUS, or with --set bus=nats://…".to_owned());
    }
    Starter { config, file, agent: &args.agent, cache: args.cache, arguments, open: false }.start()
}

/// Puts an instance together.
struct Starter<'a> {
    config: Config,
    file: Option<PathBuf>,
    agent: &'a AgentArgs,
    cache: CacheArgs,
    arguments: &'a Arguments,
    /// Show the workbench in the browser.
    open: bool,
}

impl Starter<'_> {
    fn start(mut self) -> Outcome {
        if self.arguments.state != Path::new(".catena") {
            self.config.state.clone_from(&self.arguments.state);
        }
        self.config.server = self.arguments.server.clone().or(self.config.server);
        self.config.token = self.arguments.token.clone().or(self.config.token);
        let contradictions = self.config.contradictions();
        if !contradictions.is_empty() {
            return Err(contradictions.join("\n"));
        }
        std::fs::create_dir_all(&self.config.state)
            .map_err(|e| format!("{}: {e}", self.config.state.display()))?;
        self.config.state =
            self.config.state.canonicalize().map_err(|e| format!("{}: {e}", self.config.state.display()))?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let stop = watch_stop()?;
        let outcome = runtime.block_on(self.run(stop));
        // A name that is being looked up, or a request that nobody answers, is not worth waiting for.
        runtime.shutdown_background();
        outcome
    }

    async fn run(self, mut stop: watch::Receiver<bool>) -> Outcome {
        // The servers it needs may not be there yet, and need never be.
        let (setup, owned) = tokio::select! {
            ready = self.setup() => ready?,
            _ = stop.wait_for(|stop| *stop) => return Ok(ExitCode::SUCCESS),
        };
        let result = catena_server::serve(setup, stop).await;
        drop(owned);
        match result {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(e) => {
                eprintln!("error: {e}");
                Ok(ExitCode::from(EXIT_FAILED))
            }
        }
    }

    /// Connects to what the instance needs. The state directory is kept for as long as the instance lives.
    async fn setup(&self) -> Result<(InstanceSetup, Option<StateDirectory>), String> {
        let config = &self.config;
        let name = config.agent.name.as_ref().map_or_else(default_agent_name, Name::new);
        let id = Name::new(format!("{}-{:x}", host_name(), u64::from(std::process::id()) ^ started()));
        let only_agent = config.roles == [Role::Agent];
        let mut owned = None;
        let store = match &config.store {
            Some(url) => Some(connect(url).await?),
            None if only_agent => None,
            None => {
                let state = StateDirectory::own(&config.state, "serving").map_err(|e| e.to_string())?;
                let store: Arc<dyn Store> = Arc::new(state.store().map_err(|e| e.to_string())?);
                owned = Some(state);
                Some(store)
            }
        };
        let mut bus: Arc<dyn Bus> = if config.bus.url.is_empty() {
            Arc::new(LocalBus::default())
        } else {
            Arc::new(NatsBus::connect(&config.bus).await.map_err(|e| e.to_string())?)
        };
        if config.bus_loss > 0.0 {
            bus = Arc::new(LossyBus::new(bus, config.bus_loss));
        }
        let storage = config.storage.clone().unwrap_or_else(|| config.state.clone());
        std::fs::create_dir_all(&storage).map_err(|e| format!("{}: {e}", storage.display()))?;
        let storage = storage.canonicalize().map_err(|e| format!("{}: {e}", storage.display()))?;
        let mode = config.data.mode;
        let places = Arc::new(Places::new(storage, mode));
        let has = |role| config.roles.contains(&role);
        let agent = has(Role::Agent).then(|| self.agent_setup(name, store.as_ref(), &places)).transpose()?;
        let needs_home = mode.is_local() && (has(Role::Http) || has(Role::Controller));
        let home = needs_home.then(|| self.home().map(Arc::new)).transpose()?;
        let http = match &store {
            Some(store) if has(Role::Http) => Some(self.http_setup(&**store).await?),
            _ => None,
        };
        let fleet =
            (has(Role::Fleet) && !config.setups.is_empty()).then(|| self.fleet_setup(&places)).transpose()?;
        let roles: Vec<&str> = config.roles.iter().map(|r| r.name()).collect();
        eprintln!("instance {id}: {}", roles.join(", "));
        let setup = InstanceSetup {
            id,
            roles: config.roles.clone(),
            // An agent alone is no member: it uses the store only to ask when messages do not arrive.
            store: store.filter(|_| !only_agent),
            bus,
            places,
            lease: config.lease,
            look: config.look,
            settings: config.scheduler_settings(),
            copies: config.data.copies,
            home,
            agent,
            http,
            fleet,
        };
        Ok((setup, owned))
    }

    fn agent_setup(
        &self,
        name: Name,
        store: Option<&Arc<dyn Store>>,
        places: &Arc<Places>,
    ) -> Result<AgentSetup, String> {
        let config = &self.config;
        let directory = config.state.join("agents").join(name.as_str());
        let directory =
            StateDirectory::own(&directory, &format!("agent {name}")).map_err(|e| e.to_string())?;
        let ended = end_leftovers(directory.path());
        if ended > 0 {
            eprintln!("{ended} tasks of a killed agent were still running and have been ended");
        }
        let cache = if config.agent.cache && !self.cache.no_cache {
            Some(Arc::new(Cache::open(&directory.cache_file()).map_err(|e| e.to_string())?))
        } else {
            None
        };
        let desk: Option<Arc<dyn Desk>> = match (store, &config.server) {
            (Some(store), _) => Some(Arc::new(StoreDesk::new(store.clone(), places.clone()))),
            (None, Some(server)) => Some(Arc::new(HttpDesk::new(server, config.token.clone()))),
            (None, None) => None,
        };
        let local = config.data.mode.is_local();
        let depot =
            local.then(|| self.depot(&directory.path().join("data"), Some(directory.path().join("runs"))));
        Ok(AgentSetup {
            config: agent_config(&config.agent, self.agent, name)?,
            cache,
            depot: depot.transpose()?.map(Arc::new),
            directory,
            remote: RemoteOptions {
                lease: config.lease,
                look: config.look,
                idle_shutdown: config.agent.idle_shutdown,
                desk,
            },
        })
    }

    /// Opens the holdings in a directory and begins to serve them.
    fn depot(&self, directory: &Path, logs: Option<PathBuf>) -> Result<Depot, String> {
        let data = &self.config.data;
        let host = data.host.clone().or_else(|| own_address(&self.config));
        let options = DepotOptions {
            directory: directory.to_path_buf(),
            listen: data.listen,
            host,
            quota: data.quota,
            object: data.object.clone(),
            logs,
        };
        Depot::open(&options).map_err(|e| format!("{}: {e}", directory.display()))
    }

    /// Where what comes with runs and what comes of them is held.
    fn home(&self) -> Result<Home, String> {
        let directory = self.config.state.join("home");
        let depot = self.depot(&directory.join("data"), None)?;
        Home::new(depot, &directory).map_err(|e| format!("{}: {e}", directory.display()))
    }

    async fn http_setup(&self, store: &dyn Store) -> Result<HttpSetup, String> {
        let config = &self.config;
        let fail = |e: std::io::Error| format!("http.listen {}: {e}", config.listen);
        let addresses: Vec<_> = config.listen.to_socket_addrs().map_err(fail)?.collect();
        let loopback = !addresses.is_empty() && addresses.iter().all(|a| a.ip().is_loopback());
        if config.open && !loopback {
            return Err(format!(
                "`http.open` serves everybody without a token, and {} can be reached from other machines; remove `http.open`, or listen on 127.0.0.1",
                config.listen
            ));
        }
        let listener = TcpListener::bind(&addresses[..]).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let access = if config.open { Access::Open } else { Access::Tokens };
        let token = match access {
            Access::Tokens => Some(self.ensure_token(store).await?),
            Access::Open => None,
        };
        if self.open {
            workbench::open(&workbench::address(address, "", token.as_deref()));
        } else {
            eprintln!("workbench: {}", workbench::address(address, "", None));
        }
        let mut library = Library::default();
        for file in &config.services {
            let loaded = catena_model::load(file, &catena_model::LoadOptions::default());
            super::show_problems(&loaded);
            if loaded.diags.has_errors() {
                return Err(format!("{} cannot be used", file.display()));
            }
            for service in loaded.library.services() {
                let _ = library.add_service(service.clone());
            }
        }
        let absolute = |files: &[PathBuf]| -> Result<Vec<PathBuf>, String> {
            files
                .iter()
                .map(|f| std::path::absolute(f).map_err(|e| format!("{}: {e}", f.display())))
                .collect()
        };
        Ok(HttpSetup {
            listener,
            max_request: config.max_request,
            access,
            services: absolute(&config.services)?,
            macros: absolute(&config.macros)?,
            library,
            setups: config.setups.clone(),
            pools: config.pools.clone(),
            readable: Vec::new(),
            aging: config.scheduler.aging,
        })
    }

    /// Makes sure that whoever owns the state directory has a token, and returns it.
    async fn ensure_token(&self, store: &dyn Store) -> Result<String, String> {
        let file = token_file(&self.config.state);
        let tokens = store.tokens().await.map_err(|e| e.to_string())?;
        let known = std::fs::read_to_string(&file).ok().map(|t| t.trim().to_owned());
        if let Some(known) = known.filter(|known| tokens.iter().any(|t| t.hash == hash_token(known))) {
            return Ok(known);
        }
        let token = new_token().map_err(|e| format!("a token cannot be made: {e}"))?;
        let write = std::fs::File::options().create(true).write(true).truncate(true).mode(0o600).open(&file);
        write
            .and_then(|mut f| f.write_all(token.as_bytes()))
            .map_err(|e| format!("{}: {e}", file.display()))?;
        let kept = Token {
            name: format!("{}:{}", host_name(), self.config.state.display()),
            role: TokenRole::Operator.name().to_owned(),
            hash: hash_token(&token),
            created: store.now().await.map_err(|e| e.to_string())?,
            expires: None,
        };
        store.put_token(&kept).await.map_err(|e| e.to_string())?;
        Ok(token)
    }

    fn fleet_setup(&self, places: &Places) -> Result<FleetSetup, String> {
        let config = &self.config;
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut command = vec![program.into_os_string(), "agent".into()];
        if let Some(file) = &self.file {
            command.extend(["--config".into(), file.clone().into_os_string()]);
        }
        // What this instance was told on its command line or in its environment, its agents should know.
        let mut environment = vec![
            ("CATENA_BUS".to_owned(), config.bus.url.clone()),
            ("CATENA_STORAGE".to_owned(), places.storage().to_string_lossy().into_owned()),
            ("CATENA_LEASE".to_owned(), format!("{}ms", config.lease.as_millis())),
            ("CATENA_LOOK".to_owned(), format!("{}ms", config.look.as_millis())),
            ("CATENA_AGENT_CACHE".to_owned(), config.agent.cache.to_string()),
        ];
        if !config.bus.prefix.is_empty() {
            environment.push(("CATENA_BUS_PREFIX".to_owned(), config.bus.prefix.clone()));
        }
        environment.push(("CATENA_STORAGE_MODE".to_owned(), config.data.mode.name().to_owned()));
        if let Some(object) = &config.data.object {
            environment.push(("CATENA_STORAGE_OBJECT".to_owned(), object.clone()));
        }
        if let Some(quota) = config.data.quota {
            environment.push(("CATENA_STORAGE_QUOTA".to_owned(), quota.to_string()));
        }
        if let Some(store) = &config.store {
            environment.push(("CATENA_STORE".to_owned(), store.clone()));
        }
        command.extend(["--state".into(), config.state.clone().into_os_string()]);
        let provider = ProcessProvider {
            command,
            environment,
            cluster: format!(
                "{}|{}",
                config.store.as_deref().unwrap_or("sqlite"),
                places.storage().display()
            ),
            logs: config.state.join("machines"),
        };
        let provider: Arc<dyn Provider> = Arc::new(provider);
        Ok(FleetSetup {
            setups: config.setups.clone(),
            pools: config.pools.clone(),
            providers: BTreeMap::from([(Name::new_static("process"), provider)]),
        })
    }
}

/// Connects to a database, for as long as it takes.
pub(crate) async fn connect(url: &str) -> Result<Arc<dyn Store>, String> {
    let store = PostgresStore::new(url).map_err(|e| e.to_string())?;
    let mut told = false;
    loop {
        match store.prepare().await {
            Ok(()) => return Ok(Arc::new(store)),
            Err(e) if e.is_transient() => {
                if !std::mem::replace(&mut told, true) {
                    eprintln!("waiting: {e}");
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Distinguishes processes that have the same number at different times.
fn started() -> u64 {
    (now_millis() as u64) << 16
}

/// The first signal stops in an orderly way, the second at once. An instance that cannot end in an orderly way,
/// whatever holds it up, ends nevertheless: nothing is lost with it.
pub(crate) fn watch_stop() -> Result<watch::Receiver<bool>, String> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let (sender, receiver) = watch::channel(false);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(|e| e.to_string())?;
    let watch = move || {
        let mut signals = signals.forever();
        if signals.next().is_none() {
            return;
        }
        eprintln!("stopping …");
        let _ = sender.send(true);
        let give_up = || {
            std::thread::sleep(STOP_WITHIN);
            eprintln!("stopping takes too long; ending at once");
            std::process::exit(0);
        };
        let _ = std::thread::Builder::new().name("stopping".to_owned()).spawn(give_up);
        if signals.next().is_some() {
            std::process::exit(i32::from(EXIT_INTERRUPTED));
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(|e| e.to_string())?;
    Ok(receiver)
}

/// The address under which this machine reaches the message server: the others reach it there too.
fn own_address(config: &Config) -> Option<String> {
    let first = config.bus.url.split(',').next()?.trim();
    let server = first.rsplit('@').next()?.trim_start_matches("nats://").trim_start_matches("tls://");
    let has_port = server.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let server = if has_port { server.to_owned() } else { format!("{server}:4222") };
    address_towards(server).map(|ip| ip.to_string())
}
