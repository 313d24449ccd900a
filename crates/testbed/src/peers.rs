//! A group of peers on this machine, with no server at all.

use crate::net::{Host, Net};
use crate::server::{Server, TestbedError, free_port, wait_until};
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A group of peers. They end with it.
pub struct Peers {
    members: Vec<Server>,
    addresses: Vec<String>,
    net: Option<Net>,
    program: PathBuf,
    directory: TempDir,
}

/// What else the command line of a peer has.
type More<'a> = &'a dyn Fn(usize) -> Vec<String>;

impl Peers {
    /// Starts so many peers, each with arguments of its own. `program` is the `catena` command.
    pub fn start(program: &Path, count: usize, more: More<'_>) -> Result<Self, TestbedError> {
        let addresses = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        Self::start_at(addresses, None, program, more)
    }

    /// Starts so many peers on each host of a net.
    pub fn start_on(net: Net, each: usize, program: &Path, more: More<'_>) -> Result<Self, TestbedError> {
        let all = (0..each).flat_map(|n| net.hosts().iter().map(move |host| (host.address(), 7746 + n)));
        let addresses = all.map(|(address, port)| format!("{address}:{port}")).collect();
        Self::start_at(addresses, Some(net), program, more)
    }

    fn start_at(
        addresses: Vec<String>,
        net: Option<Net>,
        program: &Path,
        more: More<'_>,
    ) -> Result<Self, TestbedError> {
        let directory = tempfile::Builder::new().prefix("catena-peers-").tempdir()?;
        std::fs::write(directory.path().join("key"), "a secret that only the peers of this test know\n")?;
        std::fs::create_dir_all(directory.path().join("logs"))?;
        let (members, program) = (Vec::new(), program.to_path_buf());
        let mut peers = Self { members, addresses, net, program, directory };
        for number in 0..peers.addresses.len() {
            let first = peers.addresses[0].clone();
            let mut words = vec!["peer", "--json", "--listen", &peers.addresses[number]];
            if number > 0 {
                words.extend(["--join", &first]);
            }
            let more = more(number);
            words.extend(more.iter().map(String::as_str));
            let arguments = peers.arguments(number, &words);
            let log = peers.log_path(number);
            peers.members.push(Server::start(arguments, &log)?);
        }
        Ok(peers)
    }

    /// A command of a peer: its state is its own, the key that of all.
    fn arguments(&self, number: usize, words: &[&str]) -> Vec<OsString> {
        let host = self.host(number);
        let mut all: Vec<OsString> = host.iter().flat_map(|h| h.prefix()).collect();
        all.push(self.program.clone().into());
        all.extend(words.iter().map(OsString::from));
        all.extend(["--key".into(), self.key().into(), "--state".into(), self.state(number).into()]);
        all
    }

    fn host(&self, number: usize) -> Option<Arc<Host>> {
        self.net.as_ref().map(|net| net.hosts()[number % net.hosts().len()].clone())
    }

    fn log_path(&self, number: usize) -> PathBuf {
        self.path().join(format!("logs/{number}.log"))
    }

    /// How many there are, dead ones included.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The net they are on, if they are on one.
    pub fn net(&self) -> Option<&Net> {
        self.net.as_ref()
    }

    /// Where their files are.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where one keeps what it must not forget.
    pub fn state(&self, number: usize) -> PathBuf {
        self.path().join(format!("states/{number}"))
    }

    /// The file with the key of the group.
    pub fn key(&self) -> PathBuf {
        self.path().join("key")
    }

    /// Where one listens.
    pub fn address(&self, number: usize) -> &str {
        &self.addresses[number]
    }

    /// One of them.
    pub fn member(&mut self, number: usize) -> &mut Server {
        &mut self.members[number]
    }

    /// A command that talks to one of them, given where it is.
    pub fn command(&self, number: usize, words: &[&str]) -> Command {
        let mut all = words.to_vec();
        all.extend(["--peer", self.address(number)]);
        let arguments = self.arguments(number, &all);
        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).current_dir(self.path());
        command
    }

    /// Waits until this many are known to one of them, itself included.
    pub fn wait_for(&self, number: usize, count: usize) -> Result<(), TestbedError> {
        let known = || {
            let output = self.command(number, &["peers", "--json"]).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            (text.matches("\"identity\"").count() == count).then_some(())
        };
        wait_until(Duration::from_mins(1), known).ok_or_else(|| TestbedError::Start {
            what: format!("{count} peers"),
            detail: format!("they do not find each other\n{}", self.log(number)),
        })
    }

    /// What one has written.
    pub fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.log_path(number)).unwrap_or_default()
    }

    /// What all have written.
    pub fn logs(&self) -> String {
        let logs: Vec<String> = (0..self.len()).map(|n| format!("--- peer {n}\n{}", self.log(n))).collect();
        logs.concat()
    }

    /// Whether one executes a process in whose command line this word stands.
    pub fn executes(&self, number: usize, word: &str) -> bool {
        has_child(self.members[number].pid(), word)
    }

    /// Who executes such a process.
    pub fn executor_of(&self, word: &str) -> Option<usize> {
        (0..self.len()).find(|number| self.executes(*number, word))
    }

    /// How much memory one uses, in bytes.
    pub fn memory(&self, number: usize) -> Option<u64> {
        let pid = self.members[number].pid()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    }

    /// Lets one stand still, or go on.
    pub fn pause(&mut self, number: usize, still: bool) {
        self.members[number].signal(if still { Signal::STOP } else { Signal::CONT });
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // One after the other would take long.
        for member in &mut self.members {
            member.kill();
        }
    }
}

/// Whether a child of a process, or one of its own children, has a word in its command line.
fn has_child(pid: Option<u32>, word: &str) -> bool {
    let Some(pid) = pid else { return false };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| {
        let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let children: Vec<u32> = children.split_whitespace().filter_map(|c| c.parse().ok()).collect();
        children.into_iter().any(|child| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(word) || has_child(Some(child), word)
        })
    })
}
