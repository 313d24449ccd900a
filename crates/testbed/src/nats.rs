//! A private NATS server.

use crate::net::Host;
use crate::place::Place;
use crate::server::{Server, TestbedError, find_program, free_port, wait_until};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A NATS server on a free port.
pub struct Nats {
    server: Server,
    place: Place,
    port: u16,
    _directory: TempDir,
}

impl Nats {
    /// Starts one and waits until it accepts connections.
    pub fn start() -> Result<Self, TestbedError> {
        Self::start_at(Place::Here)
    }

    /// Starts one on a host. Everybody on its net reaches it.
    pub fn start_on(host: Arc<Host>) -> Result<Self, TestbedError> {
        Self::start_at(Place::On(host))
    }

    pub(crate) fn start_at(place: Place) -> Result<Self, TestbedError> {
        Self::start_with(place, free_port(), &[])
    }

    /// Starts several that form a cluster.
    pub fn start_cluster(size: usize) -> Result<Vec<Self>, TestbedError> {
        let routes: Vec<u16> = (0..size).map(|_| free_port()).collect();
        let list = routes.iter().map(|p| format!("nats://127.0.0.1:{p}")).collect::<Vec<_>>().join(",");
        let start = |route: &u16| {
            let cluster = format!("nats://127.0.0.1:{route}");
            Self::start_with(
                Place::Here,
                free_port(),
                &["--cluster_name", "catena", "--cluster", &cluster, "--routes", &list],
            )
        };
        routes.iter().map(start).collect()
    }

    fn start_with(place: Place, port: u16, more: &[&str]) -> Result<Self, TestbedError> {
        let program = find_program("nats-server", &[PathBuf::from("/usr/sbin")], "nats-server")?;
        let directory = tempfile::Builder::new().prefix("catena-nats-").tempdir()?;
        let mut arguments = place.prefix();
        arguments.extend([program.into_os_string(), "-a".into(), place.listen().to_string().into()]);
        arguments.extend(["-p".into(), port.to_string().into()]);
        arguments.extend(more.iter().map(Into::into));
        let server = Server::start(arguments, &directory.path().join("log"))?;
        let nats = Self { server, place, port, _directory: directory };
        nats.wait()?;
        Ok(nats)
    }

    fn wait(&self) -> Result<(), TestbedError> {
        let connect = || self.place.connect(self.port).ok();
        wait_until(Duration::from_secs(20), connect)
            .map(|_| ())
            .ok_or_else(|| TestbedError::Start { what: "nats-server".to_owned(), detail: self.server.log() })
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.place.address(), self.port)
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
