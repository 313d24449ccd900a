//! A process that is started, killed, and started again.

use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A server could not be started.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The program is missing.
    #[error("{program} is not installed; on Debian: apt-get install {package}")]
    Missing {
        /// The program.
        program: String,
        /// Where it comes from.
        package: &'static str,
    },
    /// It did not come up.
    #[error("{what} did not start: {detail}")]
    Start {
        /// What.
        what: String,
        /// Why, as far as is known.
        detail: String,
    },
    /// There is no such network.
    #[error("the network cannot be made or changed: {0}")]
    Network(String),
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Between two questions the machine has stood still if more time has passed.
const STANDSTILL: Duration = Duration::from_secs(2);

/// A command that can be started again and again.
pub struct Server {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
    child: Option<Child>,
    /// Children of it whose clock stands still.
    frozen: Vec<Pid>,
    /// Ends it in an orderly way.
    farewell: Signal,
}

impl Server {
    /// Starts a command. What it writes goes to `log`.
    pub fn start<S: Into<OsString>>(
        arguments: impl IntoIterator<Item = S>,
        log: &Path,
    ) -> Result<Self, TestbedError> {
        Self::start_with(arguments, Vec::new(), log)
    }

    /// Starts a command with additional environment variables.
    pub fn start_with<S: Into<OsString>>(
        arguments: impl IntoIterator<Item = S>,
        environment: Vec<(OsString, OsString)>,
        log: &Path,
    ) -> Result<Self, TestbedError> {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self::start_stopped_by(arguments, environment, log, Signal::TERM)
    }

    /// Starts a command that is stopped by another signal than TERM.
    pub(crate) fn start_stopped_by(
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
        log: &Path,
        farewell: Signal,
    ) -> Result<Self, TestbedError> {
        let mut server = Self {
            arguments,
            environment,
            log: log.to_path_buf(),
            child: None,
            frozen: Vec::new(),
            farewell,
        };
        server.spawn()?;
        Ok(server)
    }

    fn spawn(&mut self) -> Result<(), TestbedError> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        // It should not outlive the one who started it, however that one ends.
        let mut words = Vec::new();
        if find_program("setpriv", &[], "util-linux").is_ok() {
            let signal = if self.farewell == Signal::QUIT { "QUIT" } else { "TERM" };
            words.extend(["setpriv", "--pdeathsig", signal, "--"].map(OsString::from));
        }
        words.extend(self.arguments.iter().cloned());
        let Some((program, arguments)) = words.split_first() else {
            return Err(TestbedError::Start { what: "nothing".to_owned(), detail: "no command".to_owned() });
        };
        let child = Command::new(program)
            .args(arguments)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|e| TestbedError::Start {
                what: program.to_string_lossy().into_owned(),
                detail: e.to_string(),
            })?;
        self.child = Some(child);
        Ok(())
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|c| matches!(c.try_wait(), Ok(None)))
    }

    /// What it has written.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal, if it still runs.
    pub fn signal(&mut self, signal: Signal) {
        // Whoever has the number of a process that has ended is none of our business.
        if !self.is_alive() {
            return;
        }
        if let Some(pid) = self.pid().and_then(|p| Pid::from_raw(p as i32)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Stops the clock for it and its children: it neither answers nor goes away, until it is killed.
    pub fn freeze(&mut self) {
        self.signal(Signal::STOP);
        let Some(pid) = self.pid() else { return };
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|c| Pid::from_raw(c.parse().ok()?));
        self.frozen.extend(children);
        self.signal_frozen(Signal::STOP);
    }

    fn signal_frozen(&self, signal: Signal) {
        for child in &self.frozen {
            let _ = rustix::process::kill_process(*child, signal);
        }
    }

    /// Whoever is to end has to be awake.
    fn thaw(&mut self) {
        self.signal(Signal::CONT);
        self.signal_frozen(Signal::CONT);
        self.frozen.clear();
    }

    /// Kills it, as a failing machine would.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.thaw();
        self.child = None;
    }

    /// Stops it in an orderly way, or kills it if it does not want to.
    pub fn stop(&mut self) {
        self.signal(self.farewell);
        self.thaw();
        let start = Instant::now();
        while self.is_alive() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }

    /// Waits until it ends by itself; `None` if it does not in time.
    pub fn wait(&mut self, patience: Duration) -> Option<i32> {
        wait_until(patience, || {
            let status = self.child.as_mut()?.try_wait().ok()??;
            Some(status.code().unwrap_or(-1))
        })
    }

    /// Starts it again after it was killed or stopped.
    pub fn start_again(&mut self) -> Result<(), TestbedError> {
        self.kill();
        self.spawn()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ports below those that the operating system gives to outgoing connections: nobody gets one by chance while the
/// server that it belongs to is dead.
const PORTS: std::ops::Range<u16> = 11_000..32_000;

/// A port of the loopback device that nobody uses right now. No two calls in a process have the same answer.
pub fn free_port() -> u16 {
    static NEXT: OnceLock<AtomicU16> = OnceLock::new();
    let next = NEXT.get_or_init(|| {
        // Processes that run at the same time begin in different places.
        let random = RandomState::new().hash_one(std::process::id());
        AtomicU16::new((random % PORTS.len() as u64) as u16)
    });
    let mut candidates =
        PORTS.map(|_| PORTS.start + next.fetch_add(1, Ordering::Relaxed) % PORTS.len() as u16);
    candidates.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap_or(0)
}

/// Asks again and again until there is an answer. Time in which the machine stood still does not count, for nobody
/// could do anything then.
pub fn wait_until<T>(patience: Duration, mut answer: impl FnMut() -> Option<T>) -> Option<T> {
    let (mut waited, mut last) = (Duration::ZERO, Instant::now());
    loop {
        if let Some(answer) = answer() {
            return Some(answer);
        }
        if waited > patience {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
        waited += last.elapsed().min(STANDSTILL);
        last = Instant::now();
    }
}

/// Finds a program on the path or in one of the given directories.
pub(crate) fn find_program(
    name: &str,
    directories: &[PathBuf],
    package: &'static str,
) -> Result<PathBuf, TestbedError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = directories.iter().cloned().chain(std::env::split_paths(&path));
    places
        .find_map(|d| Some(d.join(name)).filter(|f| f.is_file()))
        .ok_or_else(|| TestbedError::Missing { program: name.to_owned(), package })
}
