//! The settings of a project and of an instance: `catena.yaml`, then the environment, then the command line.

mod fleet;

use self::fleet::{read_pool, read_setup};
use crate::instance::Role;
use crate::places::Storage;
use catena_bus::NatsOptions;
use catena_fleet::{Pool, Setup};
use catena_model::{
    Diagnostics, Name, Node, Span, nearest, parse_bytes, parse_duration, parse_yaml, read_text,
};
use catena_schedule::{Settings, Stages};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file with the settings.
pub const CONFIG_FILE: &str = "catena.yaml";

/// Everything that can be set, in the order of the documentation.
#[derive(Clone, Debug)]
pub struct Config {
    /// Files with services.
    pub services: Vec<PathBuf>,
    /// Files with macros.
    pub macros: Vec<PathBuf>,
    /// What the agent of this instance is and has.
    pub agent: AgentSettings,
    /// The parts that this instance plays.
    pub roles: Vec<Role>,
    /// Where this instance keeps what is its own.
    pub state: PathBuf,
    /// A directory that all instances and agents see under the same path; or where this instance puts results.
    pub storage: Option<PathBuf>,
    /// Files, where agents have files of their own.
    pub data: DataSettings,
    /// The address of a PostgreSQL database; without one, a file in `state`.
    pub store: Option<String>,
    /// The bus; without an address, messages stay within the process.
    pub bus: NatsOptions,
    /// The fraction of messages that are lost on purpose.
    pub bus_loss: f64,
    /// An instance counts as dead when it was not heard of for so long.
    pub lease: Duration,
    /// How often every role looks into the store.
    pub look: Duration,
    /// How the scheduler decides.
    pub scheduler: Settings,
    /// How it decides at each stage, if that was said.
    pub stages: Option<Stages>,
    /// Where the HTTP interface listens.
    pub listen: String,
    /// The largest request.
    pub max_request: u64,
    /// Whether everybody may do everything without a token. Only for the loopback device.
    pub open: bool,
    /// Where agents ask when messages do not arrive, and commands when nothing else is said.
    pub server: Option<String>,
    /// What they identify themselves with.
    pub token: Option<String>,
    /// What machines can be made from.
    pub setups: Vec<Setup>,
    /// Limits for machines.
    pub pools: Vec<Pool>,
}

/// Where files are, and how machines that have files of their own serve them.
#[derive(Clone, Debug)]
pub struct DataSettings {
    /// Where they are.
    pub mode: Storage,
    /// The object storage, if there is one.
    pub object: Option<String>,
    /// So many agents keep what chains write.
    pub copies: usize,
    /// A machine holds at most so many bytes.
    pub quota: Option<u64>,
    /// Where a machine serves what it holds.
    pub listen: SocketAddr,
    /// What others call the machine.
    pub host: Option<String>,
}

impl Default for DataSettings {
    fn default() -> Self {
        let listen = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { mode: Storage::Shared, object: None, copies: 1, quota: None, listen, host: None }
    }
}

/// What the agent of an instance is and has.
#[derive(Clone, Debug, Default)]
pub struct AgentSettings {
    /// Its name.
    pub name: Option<String>,
    /// Processors to use at once.
    pub cpus: Option<f64>,
    /// Memory to use at once.
    pub memory: Option<u64>,
    /// What it offers.
    pub capabilities: Vec<Name>,
    /// Named quantities it has.
    pub quantities: Vec<(Name, f64)>,
    /// End after so long without anything to do.
    pub idle_shutdown: Option<Duration>,
    /// Whether results of earlier runs are used.
    pub cache: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            services: Vec::new(),
            macros: Vec::new(),
            agent: AgentSettings { cache: true, ..AgentSettings::default() },
            roles: Role::ALL.to_vec(),
            state: PathBuf::from(".catena"),
            storage: None,
            data: DataSettings::default(),
            store: None,
            bus: NatsOptions::default(),
            bus_loss: 0.0,
            lease: Duration::from_secs(30),
            look: Duration::from_secs(20),
            // Far from its scheduler an agent needs more in advance.
            scheduler: Settings { look_ahead: Duration::from_millis(200), ..Settings::default() },
            stages: None,
            listen: "127.0.0.1:8080".to_owned(),
            max_request: 64 << 20,
            open: false,
            server: None,
            token: None,
            setups: Vec::new(),
            pools: Vec::new(),
        }
    }
}

/// What can be set, with its meaning. A dot separates a section from what is in it.
pub const SETTINGS: &[(&str, &str)] = &[
    ("services", "files with services"),
    ("macros", "files with macros"),
    ("roles", "the parts this instance plays: http, controller, scheduler, agent, fleet"),
    ("state", "the directory this instance keeps its own files in"),
    ("storage", "a directory that all instances and agents see under the same path; short for storage.path"),
    ("storage.path", "the same; unless files are shared, where this instance puts results"),
    (
        "storage.mode",
        "shared: all see the same files; local: agents have their own and get others; object: also in one",
    ),
    ("storage.object", "an object storage for the mode object: s3://bucket/prefix or file:///directory"),
    ("storage.copies", "so many agents keep what chains write; what is lost all the same is computed again"),
    ("storage.quota", "the most that a machine holds, such as 200 GiB; what nobody needs goes first"),
    ("storage.listen", "where a machine serves the files that it holds; port 0 is any free one"),
    ("storage.host", "what other machines call this one; found out by itself if nothing is said"),
    ("store", "postgres://user:password@host/database; without it, a file in `state`"),
    ("bus.url", "nats://host:4222, or several with commas; without it, messages stay in the process"),
    ("bus.prefix", "stands before all subjects, so that clusters can share a server"),
    ("bus.credentials", "a NATS credentials file"),
    ("bus.loss", "the fraction of messages to lose on purpose, for tests"),
    ("lease", "an instance or agent that was not heard of for so long counts as dead"),
    ("look", "how often every role looks into the store, whatever messages say"),
    ("scheduler.policy", "catena, steep, min-min, max-min or adage; or stages such as place:data+queue:2"),
    ("scheduler.aging", "so much waiting counts as much as one point of priority"),
    ("scheduler.lookAhead", "so much work agents hold in advance; 0s keeps priorities strict"),
    ("http.listen", "the address of the HTTP interface"),
    ("http.maxRequest", "the largest request, such as 64 MiB"),
    ("http.open", "serve without tokens; only on the loopback device"),
    ("server", "where agents and commands find the HTTP interface"),
    ("token", "what they identify themselves with there"),
    ("agent.name", "the name of the agent"),
    ("agent.cpus", "processors to use at once"),
    ("agent.memory", "memory to use at once"),
    ("agent.capabilities", "what the agent offers"),
    ("agent.idleShutdown", "the agent ends after so long without anything to do"),
    ("agent.cache", "whether results of earlier runs are used"),
    ("fleet.setups", "what machines can be made from"),
    ("fleet.pools", "limits for machines with certain capabilities"),
];

/// A mistake, and where it is if it is in a file.
type Mistake = (Option<Span>, String);

impl Config {
    /// The settings in a file.
    pub fn read(file: &Path) -> Result<Self, Vec<String>> {
        let mut config = Self::default();
        let mistakes = config.add_file(file);
        if mistakes.is_empty() { Ok(config) } else { Err(mistakes) }
    }

    /// Adds what a file says. Returns everything that is wrong with it.
    pub fn add_file(&mut self, file: &Path) -> Vec<String> {
        let text = match read_text(file) {
            Ok(text) => text,
            Err(message) => return vec![message],
        };
        let mut diags = Diagnostics::default();
        let nodes = parse_yaml(&text, 0, &mut diags);
        let place =
            |span: Span, what: &str| format!("{}:{}:{}: {what}", file.display(), span.line, span.column);
        if !diags.is_empty() {
            return diags.iter().map(|d| place(d.span, &d.message)).collect();
        }
        let Some(root) = nodes.first().filter(|n| !n.is_null()) else { return Vec::new() };
        let Some(entries) = root.as_map() else {
            return vec![place(root.span, "expected a mapping of settings to values")];
        };
        let directory = file.parent().unwrap_or(Path::new(""));
        let mut mistakes = Vec::new();
        for (key, value) in entries {
            let name = key.as_str().unwrap_or_default();
            let section = SETTINGS.iter().any(|(s, _)| s.starts_with(&format!("{name}.")));
            match value.as_map().filter(|_| section) {
                Some(entries) => {
                    for (key, value) in entries {
                        let name = format!("{name}.{}", key.as_str().unwrap_or_default());
                        let set = self.set(&name, value, directory);
                        mistakes.extend(set.err().map(|(at, what)| place(at.unwrap_or(key.span), &what)));
                    }
                }
                None => {
                    let set = self.set(name, value, directory);
                    mistakes.extend(set.err().map(|(at, what)| place(at.unwrap_or(key.span), &what)));
                }
            }
        }
        mistakes
    }

    /// Adds what the environment says: `CATENA_HTTP_LISTEN` is `http.listen`.
    pub fn add_environment(&mut self, variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
        let variables: Vec<(String, String)> = variables.collect();
        let mut mistakes = Vec::new();
        // Tasks find the mark of their agent under the name that `state` would have.
        for (setting, _) in SETTINGS.iter().filter(|(s, _)| *s != "state") {
            let variable = format!("CATENA_{}", environment_name(setting));
            if let Some((_, value)) = variables.iter().find(|(name, _)| *name == variable) {
                mistakes.extend(self.add_text(setting, value).err().map(|e| format!("{variable}: {e}")));
            }
        }
        mistakes
    }

    /// Sets one thing to a value that is read as YAML.
    pub fn add_text(&mut self, setting: &str, value: &str) -> Result<(), String> {
        let mut diags = Diagnostics::default();
        let nodes = parse_yaml(value, 0, &mut diags);
        if let Some(problem) = diags.iter().next() {
            return Err(problem.message.clone());
        }
        let Some(node) = nodes.first() else {
            match setting {
                "store" => self.store = None,
                "server" => self.server = None,
                "token" => self.token = None,
                "bus" | "bus.url" => self.bus.url.clear(),
                _ => return Err("the value is empty".to_owned()),
            }
            return Ok(());
        };
        self.set(setting, node, Path::new("")).map_err(|(_, what)| what)
    }

    fn set(&mut self, setting: &str, value: &Node, directory: &Path) -> Result<(), Mistake> {
        let fail = |what: String| (Some(value.span), what);
        let text =
            || value.as_str().map(str::to_owned).ok_or_else(|| fail(format!("`{setting}` must be a text")));
        let number = || {
            let number =
                value.as_str().and_then(|s| s.parse::<f64>().ok()).filter(|n| n.is_finite() && *n >= 0.0);
            number.ok_or_else(|| fail(format!("`{setting}` must be a number")))
        };
        let duration =
            || text().and_then(|t| parse_duration(&t).map_err(|e| fail(format!("`{setting}`: {e}"))));
        let flag = || match value.as_str() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(fail(format!("`{setting}` must be true or false"))),
        };
        let bytes = || text().and_then(|t| parse_bytes(&t).map_err(|e| fail(format!("`{setting}`: {e}"))));
        match setting {
            "services" => self.services = texts(value).map(|f| directory.join(f)).collect(),
            "macros" => self.macros = texts(value).map(|f| directory.join(f)).collect(),
            "roles" => {
                let names =
                    texts(value).flat_map(|t| t.split(',').map(|r| r.trim().to_owned()).collect::<Vec<_>>());
                self.roles = names.map(|r| r.parse().map_err(fail)).collect::<Result<_, _>>()?;
            }
            "state" => self.state = directory.join(text()?),
            "storage" | "storage.path" => self.storage = Some(directory.join(text()?)),
            "storage.mode" => self.data.mode = text()?.parse().map_err(fail)?,
            "storage.object" => self.data.object = Some(text()?),
            "storage.copies" => self.data.copies = number()?.max(1.0) as usize,
            "storage.quota" => self.data.quota = Some(bytes()?),
            "storage.listen" => {
                let address = text()?.parse();
                self.data.listen = address.map_err(|_| {
                    fail("`storage.listen` must be an address such as 0.0.0.0:7070".to_owned())
                })?;
            }
            "storage.host" => self.data.host = Some(text()?),
            "store" | "store.url" => self.store = Some(text()?).filter(|u| u != "sqlite"),
            "bus" | "bus.url" => self.bus.url = text()?,
            "bus.prefix" => self.bus.prefix = text()?,
            "bus.credentials" => self.bus.credentials = Some(directory.join(text()?)),
            "bus.loss" => self.bus_loss = number()?,
            "lease" => self.lease = duration()?,
            "look" => self.look = duration()?,
            "scheduler.policy" => {
                let name = text()?;
                // A choice for each stage, or a policy that has made them all.
                if name.contains(':') {
                    self.stages = Some(name.parse().map_err(fail)?);
                } else {
                    (self.scheduler.policy, self.stages) = (name.parse().map_err(fail)?, None);
                }
            }
            "scheduler.aging" => self.scheduler.aging = duration()?,
            // Once it was the only setting with a hyphen, which no environment variable may have.
            "scheduler.lookAhead" | "scheduler.look-ahead" => self.scheduler.look_ahead = duration()?,
            "http.listen" => self.listen = text()?,
            "http.maxRequest" => self.max_request = bytes()?,
            "http.open" => self.open = flag()?,
            "server" => self.server = Some(text()?),
            "token" => self.token = Some(text()?),
            "agent.name" => self.agent.name = Some(text()?),
            "agent.cpus" => self.agent.cpus = Some(number()?),
            "agent.memory" => self.agent.memory = Some(bytes()?),
            "agent.capabilities" => self.agent.capabilities = texts(value).map(Name::new).collect(),
            "agent.idleShutdown" => self.agent.idle_shutdown = Some(duration()?),
            "agent.cache" => self.agent.cache = flag()?,
            "fleet.setups" => {
                let items = value.as_seq().unwrap_or_default();
                self.setups = items.iter().map(read_setup).collect::<Result<_, _>>()?;
                self.check_setups(value)?;
            }
            "fleet.pools" => {
                let items = value.as_seq().unwrap_or_default();
                self.pools = items.iter().map(read_pool).collect::<Result<_, _>>()?;
            }
            other => match other.strip_prefix("agent.") {
                // Whatever else an agent has is a quantity.
                Some(name) if value.as_str().is_some_and(|v| v.parse::<f64>().is_ok()) => {
                    self.agent.quantities.push((Name::new(name), number()?));
                }
                _ => return Err((None, unknown("setting", other, SETTINGS.iter().map(|s| s.0)))),
            },
        }
        Ok(())
    }

    fn check_setups(&self, value: &Node) -> Result<(), Mistake> {
        for (i, setup) in self.setups.iter().enumerate() {
            if self.setups[..i].iter().any(|s| s.id == setup.id) {
                return Err((Some(value.span), format!("there are two setups `{}`", setup.id)));
            }
        }
        Ok(())
    }

    /// How the scheduler decides, with everything that it depends on.
    pub fn scheduler_settings(&self) -> Settings {
        let stages = self.stages.unwrap_or_else(|| self.scheduler.policy.stages());
        Settings { placed: self.data.mode.is_local().then_some(stages), ..self.scheduler }
    }

    /// What does not fit together.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.bus.url.is_empty() && self.store.is_none() && self.roles.iter().any(|r| *r != Role::Agent) {
            found.push(
                "`bus` is set but `store` is not: instances that share a bus must share a database"
                    .to_owned(),
            );
        }
        if self.store.is_some() && self.bus.url.is_empty() {
            found.push(
                "`store` is set but `bus` is not: set `bus` to the address of a NATS server".to_owned(),
            );
        }
        match (self.data.mode, &self.data.object) {
            (Storage::Object, None) => {
                found.push("`storage.mode` is object: say where it is with `storage.object`".to_owned());
            }
            (Storage::Shared | Storage::Local, Some(_)) => {
                found.push("`storage.object` is set, but `storage.mode` is not object".to_owned());
            }
            _ => {}
        }
        if self.stages.is_some() && !self.data.mode.is_local() {
            found.push(
                "`scheduler.policy` chooses stages, which counts only where agents have files of their own (`storage.mode`)"
                    .to_owned(),
            );
        }
        if self.lease < Duration::from_millis(300) {
            found.push("`lease` must be at least 300 ms".to_owned());
        }
        if self.look < Duration::from_millis(10) {
            found.push("`look` must be at least 10 ms".to_owned());
        }
        if self.max_request == 0 {
            found.push("`http.maxRequest` must be more than 0".to_owned());
        }
        for setup in &self.setups {
            if setup.min > setup.max {
                found.push(format!("setup `{}`: `min` is more than `max`", setup.id));
            }
            if setup.provider != "process" {
                found.push(format!(
                    "setup `{}`: unknown provider `{}`; known is `process`",
                    setup.id, setup.provider
                ));
            }
        }
        found
    }
}

/// The name of an environment variable for a setting, without what all of them begin with.
fn environment_name(setting: &str) -> String {
    let mut name = String::new();
    for c in setting.chars() {
        match c {
            '.' => name.push('_'),
            c if c.is_ascii_uppercase() => name.extend(['_', c]),
            c => name.push(c.to_ascii_uppercase()),
        }
    }
    // The address of the bus is what people mean by the bus.
    name.strip_suffix("_URL").map_or(name.clone(), str::to_owned)
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("unknown {what} `{name}`; did you mean `{near}`?"),
        None => format!("unknown {what} `{name}`; known are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// One text or a list of them.
fn texts(node: &Node) -> impl Iterator<Item = &str> {
    node.as_seq().unwrap_or(std::slice::from_ref(node)).iter().filter_map(Node::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("catena.yaml");
        std::fs::write(&file, text).unwrap();
        Config::read(&file)
            .map_err(|all| all.iter().map(|m| m.replace(&format!("{}:", file.display()), "")).collect())
    }

    #[test]
    fn a_whole_configuration_is_read() {
        let config = read(
            "roles: [http, scheduler]\nstore: postgres://localhost/catena\nbus:\n  url: nats://a,nats://b\n  prefix: lab\n\
             lease: 10s\nscheduler: {policy: min-min, aging: 1m, lookAhead: 0s}\nagent: {cpus: 2, gpus: 1, capabilities: [gpu]}\n\
             fleet:\n  setups:\n    - {id: small, provides: [x], max: 4, bootDelay: 2s, cpus: 2}\n  pools:\n    - {capabilities: [x], max: 2}\n",
        )
        .unwrap();
        assert_eq!(config.roles, [Role::Http, Role::Scheduler]);
        assert_eq!((config.bus.url.as_str(), config.bus.prefix.as_str()), ("nats://a,nats://b", "lab"));
        assert_eq!(config.lease, Duration::from_secs(10));
        assert_eq!(config.agent.quantities, [(Name::new("gpus"), 1.0)]);
        assert_eq!((config.setups[0].max, config.setups[0].resources.cpus), (4, 2000));
        assert_eq!(config.pools[0].max, Some(2));
        assert!(config.contradictions().is_empty());
    }

    #[test]
    fn all_mistakes_are_named_with_their_places() {
        let mistakes = read(
            "rolls: [http]\nlease: soon\nhttp:\n  listn: 1\nfleet:\n  setups:\n    - {id: a, maxx: 3}\nroles: [cook]\n",
        )
        .unwrap_err();
        assert_eq!(mistakes.len(), 5, "{mistakes:#?}");
        assert!(
            mistakes[0].starts_with("1:1: unknown setting `rolls`; did you mean `roles`?"),
            "{}",
            mistakes[0]
        );
        assert!(mistakes[1].starts_with("2:8: `lease`"), "{}", mistakes[1]);
        assert!(mistakes[2].contains("`http.listen`"), "{}", mistakes[2]);
        assert!(mistakes[3].starts_with("7:15: unknown key `maxx`; did you mean `max`?"), "{}", mistakes[3]);
        assert!(mistakes[4].contains("unknown role `cook`"), "{}", mistakes[4]);
    }

    #[test]
    fn the_environment_comes_after_the_file_and_the_command_line_after_both() {
        let mut config = read("look: 5s\nlease: 6s\nhttp: {listen: 'a:1', maxRequest: 1 MiB}").unwrap();
        let variables =
            [("CATENA_LOOK", "7s"), ("CATENA_HTTP_MAX_REQUEST", "2 MiB"), ("CATENA_BUS", "nats://x")];
        let variables = variables.map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert!(config.add_environment(variables.into_iter()).is_empty());
        config.add_text("look", "9s").unwrap();
        assert_eq!((config.look, config.lease), (Duration::from_secs(9), Duration::from_secs(6)));
        assert_eq!((config.max_request, config.bus.url.as_str()), (2 << 20, "nats://x"));
        assert!(config.add_text("lok", "9s").unwrap_err().contains("did you mean `look`"));
    }

    #[test]
    fn every_setting_can_be_an_environment_variable() {
        for (setting, _) in SETTINGS {
            let name = environment_name(setting);
            assert!(name.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{setting}: {name}");
        }
        let mut config = Config::default();
        let variable = ("CATENA_SCHEDULER_LOOK_AHEAD".to_owned(), "3s".to_owned());
        assert!(config.add_environment([variable].into_iter()).is_empty());
        assert_eq!(config.scheduler.look_ahead, Duration::from_secs(3));
        config.add_text("scheduler.look-ahead", "4s").unwrap();
        assert_eq!(config.scheduler.look_ahead, Duration::from_secs(4));
    }

    #[test]
    fn what_does_not_fit_together_is_said() {
        let config =
            read("bus: nats://x\nfleet: {setups: [{id: a, min: 3, max: 1, provider: magic}]}").unwrap();
        assert_eq!(config.contradictions().len(), 3);
    }
}
