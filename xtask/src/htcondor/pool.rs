//! A pool of one slot.

use super::debian::USER;
use catena_testbed::wait_until;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Where the files of a run are in the root.
const WORK: &str = "/mnt";

/// One slot, on a network that is this pool's alone. What isolates jobs from each other needs rights that a
/// container lacks.
///
/// The slot takes another job only after a rest, and never because it had one of the same user: DAGMan must
/// have had the time to submit what has become eligible, or the order would say more about its speed than about
/// priorities.
const SETTINGS: &str = "\
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:9618
NETWORK_INTERFACE = 127.0.0.1
NETWORK_HOSTNAME = localhost
LOCAL_DIR = /mnt/condor
MOUNT_UNDER_SCRATCH =
PER_JOB_NAMESPACES = False
NUM_CPUS = 1
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = False
CLAIM_WORKLIFE = 0
START = State =!= \"Unclaimed\" || time() - EnteredCurrentState >= 5
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 1
SCHEDD_MIN_INTERVAL = 1
DAGMAN_USER_LOG_SCAN_INTERVAL = 1
";

/// Occupies the slot until there is a file named `go`.
const PLUG: &str = "\
executable = /bin/sh
arguments = \"-c 'until test -e go; do sleep 0.2; done'\"
log = plug.log
queue
";

pub(super) struct Pool {
    root: PathBuf,
    work: PathBuf,
    master: Child,
}

impl Pool {
    /// Starts HTCondor in this process's namespaces, with its files in `work`.
    pub(super) fn start(root: &Path, work: &Path) -> Result<Self, String> {
        println!("starting HTCondor");
        let fail = |e: std::io::Error| e.to_string();
        let spaces =
            ["run", "log", "lock", "spool", "lib"].map(|d| work.join("condor").join(d).join("condor"));
        for directory in spaces.iter().chain([&work.join("condor/lib/condor/execute")]) {
            fs::create_dir_all(directory).map_err(fail)?;
        }
        fs::write(root.join("etc/condor/config.d/99-catena"), SETTINGS).map_err(fail)?;
        system(Command::new("ip").args(["link", "set", "lo", "up"]))?;
        system(Command::new("mount").args(["-t", "proc", "proc"]).arg(root.join("proc")))?;
        system(Command::new("mount").arg("--bind").arg(work).arg(root.join(&WORK[1..])))?;
        system(chroot(root, "root").args(["chown", "-R", "condor:condor", "/mnt/condor"]))?;
        let mut master = chroot(root, "root");
        let master = master.args(["condor_master", "-f"]).stdin(Stdio::null()).spawn().map_err(fail)?;
        let mut pool = Self { root: root.to_path_buf(), work: work.to_path_buf(), master };
        pool.wait_until_ready()?;
        Ok(pool)
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let answers = |what: &str| {
            let said = chroot(&self.root, USER).args(["condor_status", what, "-af", "Name"]).output();
            said.is_ok_and(|o| o.status.success() && !o.stdout.is_empty())
        };
        let ready = wait_until(Duration::from_mins(2), || {
            (answers("-schedd") && answers("-startd") && answers("-negotiator")).then_some(())
        });
        let state = self.master.try_wait();
        ready.ok_or_else(|| format!("HTCondor does not start ({state:?}), see {}", self.work.display()))
    }

    pub(super) fn version(&self) -> Result<String, String> {
        let said = system(chroot(&self.root, USER).arg("condor_version"))?;
        Ok(String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or_default().to_owned())
    }

    /// A new directory that HTCondor sees too and its user may write to.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.work.join(name);
        fs::create_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        system(chroot(&self.root, "root").args(["chown", USER]).arg(Path::new(WORK).join(name)))?;
        Ok(directory)
    }

    /// A command of the user in such a directory.
    fn user(&self, directory: &Path, program: &str) -> Command {
        let mut command = chroot(&self.root, USER);
        let directory = Path::new(WORK).join(directory.file_name().unwrap_or_default());
        command.arg("env").arg("-C").arg(directory).arg(format!("HOME=/home/{USER}")).arg(program);
        command
    }

    /// What HTCondor's checker says of DAG files. It counts as DAGMan does that makes no nodes of its own.
    pub(super) fn check_dags(&self, directory: &Path, files: &[String]) -> Result<Vec<Value>, String> {
        let mut command = self.user(directory, "condor_dag_checker");
        // It fails if one of the files is wrong.
        let said = command.args(["-json", "-NoJoinNodes"]).args(files).output().map_err(|e| e.to_string())?;
        serde_json::from_slice(&said.stdout)
            .map_err(|e| format!("condor_dag_checker: {e}\n{}", String::from_utf8_lossy(&said.stderr)))
    }

    /// Runs a DAG and tells the order in which its nodes were executed. The slot is occupied until all of its
    /// sources wait for it, or the first submitted would be the first executed whatever its priority.
    pub(super) fn run_dag(&self, directory: &Path, dag: &str, sources: usize) -> Result<String, String> {
        let fail = |e: std::io::Error| e.to_string();
        fs::write(directory.join("plug.sub"), PLUG).map_err(fail)?;
        system(self.user(directory, "condor_submit").arg("plug.sub"))?;
        wait_for_events(&directory.join("plug.log"), "001", 1)?;
        system(self.user(directory, "condor_submit_dag").arg(dag))?;
        let nodes = directory.join(format!("{dag}.nodes.log"));
        wait_for_events(&nodes, "000", sources)?;
        fs::write(directory.join("go"), "").map_err(fail)?;
        let log = format!("{dag}.dagman.log");
        system(self.user(directory, "condor_wait").args(["-wait", "300", &log]))?;
        let end = fs::read_to_string(directory.join(log)).map_err(fail)?;
        if !end.contains("(return value 0)") {
            return Err(format!(
                "DAGMan failed, see {}",
                directory.join(format!("{dag}.dagman.out")).display()
            ));
        }
        Ok(order(&fs::read_to_string(nodes).map_err(fail)?))
    }
}

/// A command in the root, as a user.
fn chroot(root: &Path, user: &str) -> Command {
    let mut command = Command::new("chroot");
    command.arg(format!("--userspec={user}")).arg(root).env_remove("CONDOR_CONFIG");
    command
}

/// Runs a command and shows what it says if it fails.
fn system(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}

/// Waits until a log of jobs has a number of events of a kind.
fn wait_for_events(log: &Path, kind: &str, count: usize) -> Result<(), String> {
    let found = || {
        let text = fs::read_to_string(log).unwrap_or_default();
        (text.lines().filter(|l| l.starts_with(kind)).count() >= count).then_some(())
    };
    wait_until(Duration::from_mins(1), found).ok_or_else(|| format!("{}: no event {kind}", log.display()))
}

/// The names of nodes in the order of execution, from DAGMan's log of their events: `000 (job)` with the name on
/// the next line when one is submitted, `001 (job)` when it is executed.
fn order(log: &str) -> String {
    let mut names = BTreeMap::new();
    let mut executed: Vec<&str> = Vec::new();
    let mut lines = log.lines();
    while let Some(line) = lines.next() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("000"), Some(job)) => {
                let name = lines.next().and_then(|l| l.split('"').nth(1)).unwrap_or_default();
                names.insert(job, name);
            }
            (Some("001"), Some(job)) => executed.push(names.get(job).copied().unwrap_or("?")),
            _ => {}
        }
    }
    executed.join(" ")
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn the_order_is_that_of_execution() {
        let log = "000 (2.0.0) now Job submitted\n    [ DAGNodeName = \"a\"; x = \"y\" ]\n...\n\
                   000 (3.0.0) now Job submitted\n    [ DAGNodeName = \"c\" ]\n...\n\
                   001 (3.0.0) now Job executing\n...\n005 (3.0.0) now Job terminated\n...\n001 (2.0.0) now\n";
        assert_eq!(order(log), "c a");
    }
}
