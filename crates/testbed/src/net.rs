//! Hosts on this machine, with a network between them: it matters where something is.
//!
//! Each host is a network namespace. A switch, which is a namespace too, connects them. Nothing of it is in the
//! machine's own network, so interfaces and addresses can be the same in every net.

mod cable;
mod host;
mod link;
mod namespace;

pub use host::{Host, Traffic};
pub use link::Rate;

use crate::server::{TestbedError, find_program};
use link::{BRIDGE, Link};
use namespace::Namespace;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Names of namespaces begin with this; process, time of its start, and number follow.
const PREFIX: &str = "catena-net-";
/// A bridge has more ports, but addresses are simpler so.
const MOST: usize = 250;

/// Some hosts and a switch between them. They go away with this value, with all that runs on them.
pub struct Net {
    hosts: Vec<Arc<Host>>,
    /// What the names of all its namespaces begin with.
    name: String,
}

impl Net {
    /// Makes hosts. The link of each carries so much in each direction; without a rate, as much as the machine can.
    pub fn start(hosts: &[&str], rate: Option<Rate>) -> Result<Self, TestbedError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_leftovers();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let wrong = |name: &&&str| name.is_empty() || name.len() > 100 || !name.chars().all(allowed);
        if let Some(name) = hosts.iter().find(wrong) {
            return Err(TestbedError::Network(format!("`{name}` is no name for a host")));
        }
        if hosts.len() > MOST {
            return Err(TestbedError::Network(format!("{} hosts are too many: {MOST} at most", hosts.len())));
        }
        let process = std::process::id();
        let started = started(process).unwrap_or_default();
        let name = format!("{PREFIX}{process}-{started}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        // What is made so far goes away if anything fails.
        let mut net = Self { hosts: Vec::new(), name };
        let switch = Arc::new(Namespace::create(net.name.clone())?);
        switch.ip(&format!("link add {BRIDGE} type bridge mcast_snooping 0"))?;
        switch.ip(&format!("link set {BRIDGE} addrgenmode none up"))?;
        for (number, host) in hosts.iter().enumerate() {
            let host = net.add(host, number, &switch)?;
            if rate.is_some() {
                host.set_rate(rate)?;
            }
        }
        Ok(net)
    }

    fn add(&mut self, name: &str, number: usize, switch: &Arc<Namespace>) -> Result<Arc<Host>, TestbedError> {
        let namespace = Namespace::create(format!("{}.{name}", self.name))?;
        let address = Ipv4Addr::new(10, 83, 0, number as u8 + 1);
        let link = Link::connect(namespace.clone(), switch.clone(), number, &format!("{address}/24"))?;
        let host = Arc::new(Host { name: name.to_owned(), namespace, address, link: Mutex::new(link) });
        self.hosts.push(host.clone());
        Ok(host)
    }

    /// All hosts, in the order they were named.
    pub fn hosts(&self) -> &[Arc<Host>] {
        &self.hosts
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<Arc<Host>, TestbedError> {
        let host = self.hosts.iter().find(|h| h.name() == name).cloned();
        host.ok_or_else(|| TestbedError::Network(format!("there is no host `{name}`")))
    }

    /// Whether there can be nets here, and why not if not.
    pub fn is_possible() -> Result<(), String> {
        static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
        let try_it = || {
            if !rustix::process::geteuid().is_root() {
                return Err("network namespaces need root".to_owned());
            }
            find_program("nsenter", &[], "util-linux").map_err(|e| e.to_string())?;
            Self::start(&["probe"], Some(Rate::megabits(1))).map(drop).map_err(|e| e.to_string())
        };
        ANSWER.get_or_init(try_it).clone()
    }

    /// Whether the kernel can delay and lose packets by itself.
    pub fn has_netem() -> bool {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            let Ok(net) = Self::start(&[], None) else { return false };
            let try_it =
                |n: &Namespace| n.tc(&format!("qdisc add dev {BRIDGE} root netem delay 1ms")).is_ok();
            net.namespaces().any(|n| try_it(&n))
        })
    }

    /// The switch and the hosts, as far as they exist.
    fn namespaces(&self) -> impl Iterator<Item = Namespace> {
        Namespace::list(PREFIX).into_iter().filter(|n| net_of(n) == self.name)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in &self.hosts {
            host.release();
        }
        self.namespaces().for_each(|n| n.remove());
    }
}

/// The net that a namespace belongs to: a dot and the name of a host may follow.
fn net_of(namespace: &Namespace) -> &str {
    namespace.name().split('.').next().unwrap_or_default()
}

/// Takes down what processes have left that were killed, with all that still runs there.
fn remove_leftovers() {
    for namespace in Namespace::list(PREFIX) {
        let mut numbers = net_of(&namespace)[PREFIX.len()..].split('-').map(str::parse);
        if let (Some(Ok(process)), Some(Ok(start))) = (numbers.next(), numbers.next())
            && started(process as u32) != Some(start)
        {
            namespace.remove();
        }
    }
}

/// When a process was started, by the kernel's clock: numbers of processes are used again. `None` if it has ended.
fn started(process: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name comes second, in parentheses, and may be anything.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // One that was killed may wait long for its parent to take note.
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !ended)
}
