//! Agents as processes of this machine, if wanted each in a network namespace of its own.

use crate::Provider;
use crate::setup::{Network, Setup};
use async_trait::async_trait;
use catena_model::Name;
use rustix::process::{Pid, Signal};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Names the machine in the environment of its processes.
const MACHINE: &str = "CATENA_MACHINE";
/// Names the cluster there.
const CLUSTER: &str = "CATENA_CLUSTER";

/// Starts agents as processes.
pub struct ProcessProvider {
    /// The command that starts an agent, without what differs from agent to agent.
    pub command: Vec<OsString>,
    /// What it finds in its environment: everybody can read command lines.
    pub environment: Vec<(String, String)>,
    /// Distinguishes this cluster from others on the machine.
    pub cluster: String,
    /// Where agents write their logs.
    pub logs: PathBuf,
}

impl ProcessProvider {
    fn command(&self, id: &Name, setup: &Setup) -> Result<Command, String> {
        let mut words: Vec<OsString> = Vec::new();
        if let Some(network) = &setup.network {
            let namespace = prepare_network(id, network)?;
            words.extend(["ip", "netns", "exec", &namespace].map(OsString::from));
        }
        words.extend(self.command.iter().cloned());
        let mut add = |flag: &str, value: String| words.extend([OsString::from(flag), value.into()]);
        add("--name", id.to_string());
        for capability in &setup.provides {
            add("--capability", capability.to_string());
        }
        add("--cpus", format!("{}", setup.resources.cpus as f64 / 1000.0));
        if setup.resources.memory > 0 {
            add("--memory", setup.resources.memory.to_string());
        }
        for (name, n) in &setup.resources.named {
            add("--resource", format!("{name}={}", *n as f64 / 1000.0));
        }
        add("--idle-shutdown", format!("{}ms", setup.idle_shutdown.as_millis()));
        for (key, value) in &setup.settings {
            add("--set", format!("{key}={value}"));
        }
        let Some((program, arguments)) = words.split_first() else {
            return Err("there is no command to start agents with".to_owned());
        };
        let mut command = Command::new(program);
        command.args(arguments).env(MACHINE, id.as_str()).env(CLUSTER, &self.cluster).stdin(Stdio::null());
        command.envs(self.environment.iter().cloned());
        Ok(command)
    }
}

#[async_trait]
impl Provider for ProcessProvider {
    async fn create(&self, id: &Name, setup: &Setup) -> Result<String, String> {
        tokio::time::sleep(setup.boot_delay).await;
        for script in &setup.provisioning {
            let output = Command::new("/bin/sh")
                .args(["-euc", script])
                .env(MACHINE, id.as_str())
                .stdin(Stdio::null())
                .output()
                .map_err(|e| format!("provisioning: {e}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("provisioning `{script}`: {}: {}", output.status, said.trim()));
            }
        }
        std::fs::create_dir_all(&self.logs).map_err(|e| format!("{}: {e}", self.logs.display()))?;
        let log = self.logs.join(format!("{id}.log"));
        let log = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let mut command = self.command(id, setup)?;
        let mut child = command
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("the agent cannot be started: {e}"))?;
        let pid = child.id();
        // Somebody has to take note of its end.
        std::thread::Builder::new()
            .name("machine".to_owned())
            .spawn(move || child.wait())
            .map_err(|e| e.to_string())?;
        Ok(pid.to_string())
    }

    async fn destroy(&self, id: &Name, handle: Option<&str>) -> Result<(), String> {
        let pids: BTreeSet<i32> = self.processes().filter(|(m, _)| m == id).map(|(_, pid)| pid).collect();
        // Only what carries the name of the machine: numbers of processes are used again.
        let _ = handle;
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        remove_network(id);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<(Name, String)>, String> {
        Ok(self.processes().map(|(id, pid)| (id, pid.to_string())).collect())
    }
}

impl ProcessProvider {
    /// Processes that belong to machines of this cluster.
    fn processes(&self) -> impl Iterator<Item = (Name, i32)> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|e| e.file_name().to_string_lossy().parse::<i32>().ok());
        pids.filter_map(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let value = |name: &str| {
                let mut entries = environment.split(|b| *b == 0);
                entries.find_map(|e| {
                    String::from_utf8_lossy(e).strip_prefix(&format!("{name}=")).map(str::to_owned)
                })
            };
            (value(CLUSTER)? == self.cluster).then_some(())?;
            Some((Name::new(value(MACHINE)?), pid))
        })
    }
}

/// A short name that no other machine has: names of network devices are limited to 15 letters.
fn device(id: &Name) -> String {
    let hash =
        id.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    format!("ct{:010x}", hash & 0xff_ffff_ffff)
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|e| format!("ip: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// Makes a network namespace that is connected to the bridge. Returns its name.
fn prepare_network(id: &Name, network: &Network) -> Result<String, String> {
    let (name, prefix, bridge) = (device(id), &network.prefix, &network.bridge);
    if ip(&["link", "show", bridge]).is_err() {
        ip(&["link", "add", bridge, "type", "bridge"])?;
        ip(&["addr", "add", &format!("{prefix}.1/24"), "dev", bridge])?;
        ip(&["link", "set", bridge, "up"])?;
    }
    remove_network(id);
    ip(&["netns", "add", &name])?;
    ip(&["link", "add", &name, "type", "veth", "peer", "name", "eth0", "netns", &name])?;
    ip(&["link", "set", &name, "master", bridge, "up"])?;
    ip(&["-n", &name, "link", "set", "lo", "up"])?;
    let address = free_address(prefix)?;
    ip(&["-n", &name, "addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
    ip(&["-n", &name, "link", "set", "eth0", "up"])?;
    ip(&["-n", &name, "route", "add", "default", "via", &format!("{prefix}.1")])?;
    Ok(name)
}

/// An address that no namespace has.
fn free_address(prefix: &str) -> Result<String, String> {
    let output = Command::new("ip").args(["-all", "netns", "exec", "ip", "-4", "-o", "addr"]).output();
    let used = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).map_err(|e| e.to_string())?;
    let free = (2..255).map(|n| format!("{prefix}.{n}")).find(|a| !used.contains(&format!(" {a}/")));
    free.ok_or_else(|| format!("all addresses of {prefix}.0/24 are in use"))
}

fn remove_network(id: &Name) {
    let name = device(id);
    let _ = ip(&["netns", "del", &name]);
    let _ = ip(&["link", "del", &name]);
}
