//! A whole cluster on this machine: a database, a message server, and instances of Catena.

use crate::nats::Nats;
use crate::net::{Host, Net};
use crate::place::Place;
use crate::postgres::Postgres;
use crate::relay::Relay;
use crate::server::{Server, TestbedError, free_port, wait_until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A cluster. Everything in it ends with it.
pub struct Cluster {
    instances: BTreeMap<String, Server>,
    _relay: Option<Relay>,
    /// The message server.
    pub nats: Nats,
    /// The database.
    pub postgres: Postgres,
    net: Option<Net>,
    /// Where the servers are.
    home: Place,
    program: PathBuf,
    port: u16,
    directory: TempDir,
}

/// How an agent is started.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentStart<'a> {
    /// The host it runs on; without one, where the servers are.
    pub on: Option<&'a str>,
    /// What it offers.
    pub capabilities: &'a [&'a str],
    /// What it and its tasks find in their environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// More arguments.
    pub more: &'a [&'a str],
}

impl Cluster {
    /// Starts database and message server, and prepares settings for instances: `settings` is added to them.
    /// `program` is the `catena` command.
    pub fn start(program: &Path, settings: &str) -> Result<Self, TestbedError> {
        Self::start_at(Place::Here, program, settings, None)
    }

    /// Starts them on a host of a net, from which commands are given too. Instances and agents can then be started on
    /// its hosts. The HTTP interface is reached from the machine as well.
    pub fn start_on(net: Net, home: &str, program: &Path, settings: &str) -> Result<Self, TestbedError> {
        Self::start_at(Place::On(net.host(home)?), program, settings, Some(net))
    }

    fn start_at(home: Place, program: &Path, settings: &str, net: Option<Net>) -> Result<Self, TestbedError> {
        let directory = tempfile::Builder::new().prefix("catena-cluster-").tempdir()?;
        let (postgres, nats) = (Postgres::start_at(home.clone())?, Nats::start_at(home.clone())?);
        let port = free_port();
        let relay = net.as_ref().map(|_| Relay::start(home.clone(), port)).transpose()?;
        let config = format!(
            "store: {}\nbus: {}\nstorage: {}\nstate: {}\nhttp: {{listen: '{}:{port}'}}\n{settings}",
            postgres.url(),
            nats.url(),
            directory.path().join("storage").display(),
            directory.path().join("state").display(),
            home.listen(),
        );
        std::fs::write(directory.path().join("catena.yaml"), config)?;
        std::fs::create_dir_all(directory.path().join("logs"))?;
        let (instances, program) = (BTreeMap::new(), program.to_path_buf());
        Ok(Self { instances, _relay: relay, nats, postgres, net, home, program, port, directory })
    }

    /// The net it is on, if it is on one.
    pub fn net(&self) -> Option<&Net> {
        self.net.as_ref()
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<Arc<Host>, TestbedError> {
        let net = self.net().ok_or_else(|| TestbedError::Network("the cluster is on no net".to_owned()))?;
        net.host(name)
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("catena.yaml")
    }

    fn launch(
        &mut self,
        name: &str,
        on: Option<&str>,
        arguments: Vec<OsString>,
        environment: &[(&str, &str)],
    ) -> Result<(), TestbedError> {
        let place = on.map_or_else(|| Ok(self.home.clone()), |host| self.host(host).map(Place::On))?;
        let mut all = place.prefix();
        all.push(self.program.clone().into());
        all.extend(arguments);
        all.extend(["--config".into(), self.config().into()]);
        // On a machine of its own nobody would see the files of others.
        all.extend(["--state".into(), self.path().join("states").join(name).into()]);
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let log = self.path().join("logs").join(format!("{name}.log"));
        self.instances.insert(name.to_owned(), Server::start_with(all, environment, &log)?);
        Ok(())
    }

    /// Starts an instance with some roles. Of those with the role http, one at a time should run.
    pub fn serve(&mut self, name: &str, roles: &str, more: &[&str]) -> Result<(), TestbedError> {
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--roles".into(), roles.into()];
        arguments.extend(more.iter().map(Into::into));
        self.launch(name, None, arguments, &[])
    }

    /// Starts an agent.
    pub fn agent(&mut self, name: &str, capabilities: &[&str], more: &[&str]) -> Result<(), TestbedError> {
        self.agent_with(name, AgentStart { capabilities, more, ..AgentStart::default() })
    }

    /// Starts an agent on a host.
    pub fn agent_on(
        &mut self,
        name: &str,
        on: &str,
        capabilities: &[&str],
        more: &[&str],
    ) -> Result<(), TestbedError> {
        self.agent_with(name, AgentStart { on: Some(on), capabilities, more, ..AgentStart::default() })
    }

    /// Starts an agent in a certain way.
    pub fn agent_with(&mut self, name: &str, start: AgentStart) -> Result<(), TestbedError> {
        let mut arguments: Vec<OsString> = vec!["agent".into(), "--name".into(), name.into()];
        for capability in start.capabilities {
            arguments.extend(["--capability".into(), capability.into()]);
        }
        arguments.extend(start.more.iter().map(Into::into));
        self.launch(name, start.on, arguments, start.environment)
    }

    /// An instance or agent that was started here.
    pub fn instance(&mut self, name: &str) -> Option<&mut Server> {
        self.instances.get_mut(name)
    }

    /// Kills an instance or agent, as a failing machine would. Returns whether there was one.
    pub fn kill(&mut self, name: &str) -> bool {
        self.instances.get_mut(name).map(Server::kill).is_some()
    }

    /// Starts it again.
    pub fn start_again(&mut self, name: &str) -> Result<(), TestbedError> {
        self.instances.get_mut(name).map_or(Ok(()), Server::start_again)
    }

    /// Sends a signal to it.
    pub fn signal(&mut self, name: &str, signal: Signal) {
        if let Some(instance) = self.instances.get_mut(name) {
            instance.signal(signal);
        }
    }

    /// The HTTP interface, for programs on the machine and where the servers are.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The HTTP interface, for programs on hosts.
    pub fn url_for_hosts(&self) -> String {
        format!("http://{}:{}", self.home.address(), self.port)
    }

    /// What opens it.
    pub fn token(&self) -> Option<String> {
        let mut states = std::fs::read_dir(self.path().join("states")).into_iter().flatten().flatten();
        states.find_map(|d| std::fs::read_to_string(d.path().join("token")).ok())
    }

    /// A command that talks to the cluster.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(&self.program);
        command.args(arguments).env("CATENA_SERVER", self.url());
        if let Some(token) = self.token() {
            command.env("CATENA_TOKEN", token);
        }
        command.current_dir(self.path());
        command
    }

    /// What a command says, if it succeeds.
    pub fn ask(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits until the HTTP interface answers and this many agents have joined.
    pub fn wait_for_agents(&self, agents: usize) -> Result<(), TestbedError> {
        let joined = || {
            let list = self.ask(&["agents", "--json"])?;
            (list.matches("\"incarnation\"").count() >= agents).then_some(())
        };
        wait_until(Duration::from_mins(1), joined).ok_or_else(|| TestbedError::Start {
            what: format!("a cluster of {agents} agents"),
            detail: self.logs(),
        })
    }

    /// What all instances have written.
    pub fn logs(&self) -> String {
        let files = std::fs::read_dir(self.path().join("logs")).into_iter().flatten().flatten();
        let mut out = String::new();
        for file in files {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            out += &format!("--- {}\n{text}", file.file_name().to_string_lossy());
        }
        out
    }
}
