//! A private PostgreSQL server.

use crate::net::Host;
use crate::place::Place;
use crate::server::{Server, TestbedError, find_program, free_port, wait_until};
use rustix::process::Signal;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A PostgreSQL server on a free port. Commits are written to the disk, as they would be anywhere.
pub struct Postgres {
    server: Server,
    place: Place,
    port: u16,
    programs: Vec<PathBuf>,
    _directory: TempDir,
}

/// PostgreSQL refuses to run as root.
const USER: &str = "postgres";
const PACKAGE: &str = "postgresql";

impl Postgres {
    /// Makes an empty database, starts a server, and waits until it accepts connections.
    pub fn start() -> Result<Self, TestbedError> {
        Self::start_at(Place::Here)
    }

    /// Does so on a host. Everybody on its net reaches it.
    pub fn start_on(host: Arc<Host>) -> Result<Self, TestbedError> {
        Self::start_at(Place::On(host))
    }

    pub(crate) fn start_at(place: Place) -> Result<Self, TestbedError> {
        let programs = installed();
        let directory = tempfile::Builder::new().prefix("catena-postgres-").tempdir()?;
        let path = directory.path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
        let data = path.join("data");
        std::fs::create_dir(&data)?;
        let user = as_user();
        if !user.is_empty() {
            Command::new("chown").args(["-R", USER]).arg(path).status()?;
        }
        let mut initialise = user.clone();
        initialise.push(find_program("initdb", &programs, PACKAGE)?.into());
        for argument in ["-A", "trust", "-U", USER, "--no-sync", "-E", "UTF8", "--locale", "C", "-D"] {
            initialise.push(argument.into());
        }
        initialise.push(data.clone().into());
        let output = Command::new(&initialise[0])
            .args(&initialise[1..])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()?;
        if !output.status.success() {
            let detail = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(TestbedError::Start { what: "initdb".to_owned(), detail });
        }
        if let Place::On(_) = place {
            let mut rules = File::options().append(true).open(data.join("pg_hba.conf"))?;
            writeln!(rules, "host all all samenet trust")?;
        }
        let port = free_port();
        let mut arguments = place.prefix();
        arguments.extend(user);
        arguments.push(find_program("postgres", &programs, PACKAGE)?.into());
        arguments.push("-D".into());
        arguments.push(data.into());
        let settings = [
            format!("port={port}"),
            format!("listen_addresses={}", place.listen()),
            format!("unix_socket_directories={}", path.display()),
            "max_connections=200".to_owned(),
            "shared_buffers=256MB".to_owned(),
            "max_wal_size=2GB".to_owned(),
        ];
        for setting in settings {
            arguments.push("-c".into());
            arguments.push(setting.into());
        }
        // Immediate shutdown on QUIT: nobody wants to wait for a database that is thrown away.
        let server = Server::start_stopped_by(arguments, Vec::new(), &path.join("log"), Signal::QUIT)?;
        let mut postgres = Self { server, place, port, programs, _directory: directory };
        postgres.wait()?;
        Ok(postgres)
    }

    /// Waits until it accepts connections, or has ended because it cannot.
    fn wait(&mut self) -> Result<(), TestbedError> {
        let ready = find_program("pg_isready", &self.programs, PACKAGE)?;
        let port = self.port.to_string();
        let ask = || {
            let arguments = ["-q", "-h", "127.0.0.1", "-p", &port];
            let status = self.place.command(&ready).args(arguments).status().ok()?;
            if status.success() { Some(true) } else { (!self.server.is_alive()).then_some(false) }
        };
        match wait_until(Duration::from_mins(1), ask) {
            Some(true) => Ok(()),
            _ => Err(TestbedError::Start { what: "postgres".to_owned(), detail: self.server.log() }),
        }
    }

    /// Where clients connect to.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}@{}:{}/{database}", self.place.address(), self.port)
    }

    /// Makes a database of its own for somebody and tells where it is.
    pub fn create_database(&self, name: &str) -> Result<String, TestbedError> {
        let program = find_program("createdb", &self.programs, PACKAGE)?;
        let port = self.port.to_string();
        let arguments = ["-h", "127.0.0.1", "-p", &port, "-U", USER, name];
        let output = self.place.command(program).args(arguments).output()?;
        if output.status.success() {
            return Ok(self.url_of(name));
        }
        let detail = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(TestbedError::Start { what: format!("database {name}"), detail })
    }

    /// Makes it silent: it neither answers nor goes away.
    pub fn freeze(&mut self) {
        self.server.freeze();
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Starts it again with the same data on the same port.
    pub fn start_again(&mut self) -> Result<(), TestbedError> {
        // What a killed server leaves behind ends by itself, but not at once. Until then a new one refuses to start.
        let mut last = Ok(());
        wait_until(Duration::from_secs(30), || {
            last = self.server.start_again().and_then(|()| self.wait());
            last.is_ok().then_some(())
        });
        last
    }
}

/// Where distributions put the programs of a server.
fn installed() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut places: Vec<PathBuf> = versions.map(|v| v.path().join("bin")).collect();
    places.sort();
    places.reverse();
    places
}

/// How to become another user than root, and to end with the process that started it.
fn as_user() -> Vec<OsString> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    // Changing the user takes the wish to die with the parent away, so it is given again.
    let uid = format!("--reuid={USER}");
    let gid = format!("--regid={USER}");
    let words = ["setpriv", &uid, &gid, "--clear-groups", "--pdeathsig", "QUIT", "--"];
    words.iter().map(OsString::from).collect()
}
