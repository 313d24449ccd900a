//! What a link carries: how much of it, how late, and how much gets lost.

use super::cable::Cable;
use super::namespace::Namespace;
use crate::server::TestbedError;
use std::sync::Arc;
use std::time::Duration;

/// The bridge of a switch.
pub(super) const BRIDGE: &str = "br0";
/// The interface of a host.
pub(super) const INTERFACE: &str = "eth0";

/// So much of a second may pass at once, at full speed. Less than the kernel's clock needs would make it slower.
const BURST: f64 = 0.01;
/// So much of a second waits in front of a link before more is lost.
const QUEUE: f64 = 0.1;

/// How much a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// So many bits per second.
    pub const fn bits(bits: u64) -> Self {
        Self(bits)
    }

    /// So many million bits per second.
    pub const fn megabits(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// How many bytes that are per second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// A token bucket filter as `tc` wants it. It holds a few packets at least, however slow it is.
    fn words(self) -> String {
        let bytes = self.bytes_per_second() as f64;
        let (burst, queue) = ((bytes * BURST).max(4096.0), (bytes * QUEUE).max(65_536.0));
        format!("tbf rate {}bit burst {}b limit {}b", self.0, burst as u64, (burst + queue) as u64)
    }
}

/// How late frames arrive, and how many do not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Trouble {
    pub(super) delay: Duration,
    /// From 0 to 1.
    pub(super) loss: f64,
}

impl Trouble {
    fn is_none(self) -> bool {
        self == Self::default()
    }

    /// As `tc` wants it. What is delayed has to be kept: as much as a fast link brings.
    fn words(self) -> String {
        format!("netem delay {}us loss {}% limit 20000", self.delay.as_micros(), self.loss * 100.0)
    }
}

/// The link from a host to the switch. Both ends are treated alike: each only decides on what it sends.
pub(super) struct Link {
    host: Namespace,
    switch: Arc<Namespace>,
    /// Its end at the switch.
    port: String,
    rate: Option<Rate>,
    trouble: Trouble,
    cable: Option<Cable>,
}

impl Link {
    /// Connects a host with the switch. Its end there has this number.
    pub(super) fn connect(
        host: Namespace,
        switch: Arc<Namespace>,
        number: usize,
        address: &str,
    ) -> Result<Self, TestbedError> {
        let port = format!("h{number}");
        switch.ip(&format!("link add {port} type veth peer name {INTERFACE} netns {}", host.name()))?;
        // Nobody talks here unless asked to: what is counted is what programs send.
        switch.ip(&format!("link set {port} addrgenmode none master {BRIDGE} up"))?;
        host.ip(&format!("addr add {address} dev {INTERFACE}"))?;
        host.ip(&format!("link set {INTERFACE} addrgenmode none up"))?;
        Ok(Self { host, switch, port, rate: None, trouble: Trouble::default(), cable: None })
    }

    pub(super) fn set_rate(&mut self, rate: Option<Rate>) -> Result<(), TestbedError> {
        self.rate = rate;
        self.shape()
    }

    pub(super) fn set_trouble(&mut self, trouble: Trouble) -> Result<(), TestbedError> {
        self.trouble = trouble;
        if super::Net::has_netem() {
            return self.shape();
        }
        match &self.cable {
            _ if trouble.is_none() => self.release(),
            Some(cable) => cable.set_trouble(trouble),
            None => self.cable = Some(Cable::insert(self.switch.clone(), &self.port, trouble)?),
        }
        Ok(())
    }

    /// Lets the kernel do what is wanted of the link, as far as it can.
    fn shape(&self) -> Result<(), TestbedError> {
        let by_kernel = !self.trouble.is_none() && super::Net::has_netem();
        let trouble = by_kernel.then(|| self.trouble.words());
        for (namespace, device) in [(&self.host, INTERFACE), (&*self.switch, &*self.port)] {
            // There may be none.
            let _ = namespace.tc(&format!("qdisc del dev {device} root"));
            if let Some(rate) = self.rate {
                namespace.tc(&format!("qdisc add dev {device} root handle 1: {}", rate.words()))?;
            }
            if let Some(trouble) = &trouble {
                let place = if self.rate.is_some() { "parent 1:1" } else { "root" };
                namespace.tc(&format!("qdisc add dev {device} {place} handle 2: {trouble}"))?;
            }
        }
        Ok(())
    }

    /// Takes this process out of the link.
    pub(super) fn release(&mut self) {
        self.cable = None;
    }

    /// Pulls the plug, or puts it back.
    pub(super) fn set_up(&self, up: bool) -> Result<(), TestbedError> {
        self.switch.ip(&format!("link set {} {}", self.port, if up { "up" } else { "down" }))?;
        Ok(())
    }
}
