//! A host: a network namespace with one interface, and the link from it to the switch.

use super::link::{INTERFACE, Link, Rate, Trouble};
use super::namespace::Namespace;
use crate::server::TestbedError;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What went over the link of a host, with all headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that it sent.
    pub sent: u64,
    /// Bytes that it received.
    pub received: u64,
}

/// A host of a [`Net`](super::Net). It shares processors, files and clocks with all others, but not the network.
pub struct Host {
    pub(super) name: String,
    pub(super) namespace: Namespace,
    pub(super) address: Ipv4Addr,
    pub(super) link: Mutex<Link>,
}

impl Host {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where other hosts reach it.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Stands before a command that is to run on the host. The process remains the same one, so whoever watches or
    /// kills it need not know.
    pub fn prefix(&self) -> [OsString; 3] {
        let mut namespace = OsString::from("--net=");
        namespace.push(self.namespace.path());
        ["nsenter".into(), namespace, "--".into()]
    }

    /// A command that runs on the host.
    pub fn command<S: AsRef<OsStr>>(
        &self,
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let [enter, namespace, end] = self.prefix();
        let mut command = Command::new(enter);
        command.arg(namespace).arg(end).arg(program).args(arguments);
        command
    }

    /// Does something on a thread of this process that is on the host. Sockets stay there that it opens. Processes
    /// that end with their parent would end with the thread; [`Host::command`] is for those.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.namespace.enter(work)
    }

    /// A connection from the host to somewhere.
    pub fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.enter(|| TcpStream::connect(to))?
    }

    /// What went over its link since it was made.
    pub fn traffic(&self) -> Result<Traffic, TestbedError> {
        let devices = self.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
        let counters =
            devices.lines().find_map(|l| l.trim_start().strip_prefix(INTERFACE)?.strip_prefix(':'));
        let counters: Vec<u64> =
            counters.iter().flat_map(|c| c.split_whitespace()).flat_map(str::parse).collect();
        match counters[..] {
            [received, _, _, _, _, _, _, _, sent, ..] => Ok(Traffic { sent, received }),
            _ => Err(TestbedError::Network(format!("{} has no {INTERFACE}", self.name))),
        }
    }

    /// Limits what it sends and, independently, what it receives.
    pub fn set_rate(&self, rate: Option<Rate>) -> Result<(), TestbedError> {
        self.link().set_rate(rate)
    }

    /// Lets everything that it sends and everything that it receives arrive so much later, and a part of it (from 0
    /// to 1) not at all.
    ///
    /// If the kernel has no netem, this process carries the frames: good for several hundred Mbit/s.
    pub fn set_delay(&self, delay: Duration, loss: f64) -> Result<(), TestbedError> {
        self.link().set_trouble(Trouble { delay, loss })
    }

    /// Pulls its plug: nothing reaches it, and nobody is told.
    pub fn cut(&self) -> Result<(), TestbedError> {
        self.link().set_up(false)
    }

    /// Puts the plug back.
    pub fn mend(&self) -> Result<(), TestbedError> {
        self.link().set_up(true)
    }

    /// Kills everything that runs on it, as switching it off would.
    pub fn kill_all(&self) {
        self.namespace.kill_all();
    }

    /// Gives back what this process has of its link.
    pub(super) fn release(&self) {
        self.link().release();
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
