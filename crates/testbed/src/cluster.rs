//! A whole cluster on this machine: a database, a message server, and instances of Catena.

use crate::nats::Nats;
use crate::postgres::Postgres;
use crate::server::{Server, TestbedError, free_port, wait_until};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A cluster. Everything in it ends with it.
pub struct Cluster {
    instances: BTreeMap<String, Server>,
    /// The message server.
    pub nats: Nats,
    /// The database.
    pub postgres: Postgres,
    program: PathBuf,
    port: u16,
    directory: TempDir,
}

impl Cluster {
    /// Starts database and message server, and prepares settings for instances: `settings` is added to them.
    /// `program` is the `catena` command.
    pub fn start(program: &Path, settings: &str) -> Result<Self, TestbedError> {
        let directory = tempfile::Builder::new().prefix("catena-cluster-").tempdir()?;
        let (postgres, nats, port) = (Postgres::start()?, Nats::start()?, free_port());
        let config = format!(
            "store: {}\nbus: {}\nstorage: {}\nstate: {}\nhttp: {{listen: '127.0.0.1:{port}'}}\n{settings}",
            postgres.url(),
            nats.url(),
            directory.path().join("storage").display(),
            directory.path().join("state").display(),
        );
        std::fs::write(directory.path().join("catena.yaml"), config)?;
        std::fs::create_dir_all(directory.path().join("logs"))?;
        let program = program.to_path_buf();
        Ok(Self { instances: BTreeMap::new(), nats, postgres, program, port, directory })
    }

    /// Where its files are.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join("catena.yaml")
    }

    fn launch(&mut self, name: &str, arguments: Vec<OsString>) -> Result<(), TestbedError> {
        let mut all = vec![self.program.clone().into_os_string()];
        all.extend(arguments);
        all.extend(["--config".into(), self.config().into_os_string()]);
        let log = self.path().join("logs").join(format!("{name}.log"));
        self.instances.insert(name.to_owned(), Server::start(all, &log)?);
        Ok(())
    }

    /// Starts an instance with some roles. Of those with the role http, one at a time should run.
    pub fn serve(&mut self, name: &str, roles: &str, more: &[&str]) -> Result<(), TestbedError> {
        let state = self.path().join("states").join(name);
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--roles".into(), roles.into()];
        arguments.extend(["--state".into(), state.into_os_string()]);
        arguments.extend(more.iter().map(Into::into));
        self.launch(name, arguments)
    }

    /// Starts an agent.
    pub fn agent(&mut self, name: &str, capabilities: &[&str], more: &[&str]) -> Result<(), TestbedError> {
        let mut arguments: Vec<OsString> = vec!["agent".into(), "--name".into(), name.into()];
        for capability in capabilities {
            arguments.extend(["--capability".into(), capability.into()]);
        }
        arguments.extend(more.iter().map(Into::into));
        self.launch(name, arguments)
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

    /// The HTTP interface.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What opens it.
    pub fn token(&self) -> Option<String> {
        let mut states = std::fs::read_dir(self.path().join("states")).into_iter().flatten().flatten();
        states.find_map(|d| std::fs::read_to_string(d.path().join("token")).ok())
    }

    /// A command that talks to the cluster.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
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
