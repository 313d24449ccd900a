//! A private NATS server.

use crate::server::{Server, TestbedError, find_program, free_port, wait_until};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// A NATS server on a free port.
pub struct Nats {
    server: Server,
    port: u16,
    _directory: TempDir,
}

impl Nats {
    /// Starts one and waits until it accepts connections.
    pub fn start() -> Result<Self, TestbedError> {
        Self::start_with(free_port(), &[])
    }

    /// Starts several that form a cluster.
    pub fn start_cluster(size: usize) -> Result<Vec<Self>, TestbedError> {
        let routes: Vec<u16> = (0..size).map(|_| free_port()).collect();
        let list = routes.iter().map(|p| format!("nats://127.0.0.1:{p}")).collect::<Vec<_>>().join(",");
        let start = |route: &u16| {
            let cluster = format!("nats://127.0.0.1:{route}");
            Self::start_with(
                free_port(),
                &["--cluster_name", "catena", "--cluster", &cluster, "--routes", &list],
            )
        };
        routes.iter().map(start).collect()
    }

    fn start_with(port: u16, more: &[&str]) -> Result<Self, TestbedError> {
        let program = find_program("nats-server", &[PathBuf::from("/usr/sbin")], "nats-server")?;
        let directory = tempfile::Builder::new().prefix("catena-nats-").tempdir()?;
        let mut arguments = vec![program.into_os_string(), "-a".into(), "127.0.0.1".into(), "-p".into()];
        arguments.push(port.to_string().into());
        arguments.extend(more.iter().map(Into::into));
        let server = Server::start(arguments, &directory.path().join("log"))?;
        let nats = Self { server, port, _directory: directory };
        nats.wait()?;
        Ok(nats)
    }

    fn wait(&self) -> Result<(), TestbedError> {
        let connect = || TcpStream::connect(("127.0.0.1", self.port)).ok();
        wait_until(Duration::from_secs(20), connect)
            .map(|_| ())
            .ok_or_else(|| TestbedError::Start { what: "nats-server".to_owned(), detail: self.server.log() })
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Makes it silent: it neither answers nor goes away.
    pub fn freeze(&mut self) {
        self.server.freeze();
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again on the same port.
    pub fn start_again(&mut self) -> Result<(), TestbedError> {
        self.server.start_again()?;
        self.wait()
    }
}
