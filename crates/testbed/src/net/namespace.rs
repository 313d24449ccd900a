//! A network namespace with a name: an interface or a process in it sees nothing of the machine's own network.

use crate::server::{TestbedError, find_program, wait_until};
use rustix::process::{Pid, Signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where `ip` keeps names.
const DIRECTORY: &str = "/run/netns";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    pub(super) fn create(name: String) -> Result<Self, TestbedError> {
        run("ip", &["netns", "add", &name])?;
        let namespace = Self { name };
        namespace.ip("link set lo up").inspect_err(|_| namespace.remove())?;
        Ok(namespace)
    }

    /// Those whose names begin like this.
    pub(super) fn list(prefix: &str) -> Vec<Self> {
        let all = fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
        let names = all.filter_map(|e| e.file_name().into_string().ok());
        names.filter(|n| n.starts_with(prefix)).map(|name| Self { name }).collect()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// `ip` with these words, on what is in the namespace.
    pub(super) fn ip(&self, words: &str) -> Result<String, TestbedError> {
        self.run("ip", words)
    }

    /// `tc` likewise.
    pub(super) fn tc(&self, words: &str) -> Result<String, TestbedError> {
        self.run("tc", words)
    }

    fn run(&self, program: &str, words: &str) -> Result<String, TestbedError> {
        let mut arguments = vec!["-n", &self.name];
        arguments.extend(words.split_whitespace());
        run(program, &arguments)
    }

    /// Does something on a thread that is in the namespace.
    pub(super) fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let namespace = File::open(self.path())?;
        let inside = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        std::thread::scope(|scope| match scope.spawn(inside).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }

    /// Processes in it. Those that have ended and only wait for their parent are in none.
    fn processes(&self) -> Vec<Pid> {
        let Ok(own) = fs::metadata(self.path()) else { return Vec::new() };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        let inside = pids.filter(|pid| {
            let theirs = fs::metadata(format!("/proc/{pid}/ns/net"));
            theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (own.dev(), own.ino()))
        });
        inside.filter_map(Pid::from_raw).filter(|pid| *pid != rustix::process::getpid()).collect()
    }

    /// Kills whatever runs in it, and what that starts meanwhile.
    pub(super) fn kill_all(&self) {
        wait_until(Duration::from_secs(10), || {
            let processes = self.processes();
            for pid in &processes {
                let _ = rustix::process::kill_process(*pid, Signal::KILL);
            }
            processes.is_empty().then_some(())
        });
    }

    /// Kills whatever runs in it and takes it down, with its interfaces and theirs at the other end.
    pub(super) fn remove(&self) {
        if self.path().exists() {
            self.kill_all();
            let _ = run("ip", &["netns", "del", &self.name]);
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, TestbedError> {
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let path = find_program(program, &system, "iproute2")?;
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(TestbedError::Network(format!("{program} {}: {}", arguments.join(" "), said.trim())))
}
