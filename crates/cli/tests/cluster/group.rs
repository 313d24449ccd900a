//! What the tests of peers do again and again.

use catena_testbed::{Peers, wait_until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

/// So many peers execute nothing that needs `work`: whoever is asked should not be the one who is killed.
pub(crate) const IDLE: usize = 3;
/// Nothing here takes so long.
pub(crate) const LONG: Duration = Duration::from_mins(4);

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_catena"))
}

/// Death is noticed soon, and the first ones do no work.
pub(crate) fn more(number: usize) -> Vec<String> {
    let mut words = vec!["--lease", "4s", "--cpus", "1"];
    if number >= IDLE {
        words.extend(["--capability", "work"]);
    }
    words.into_iter().map(str::to_owned).collect()
}

pub(crate) const SLOW: &str = "
catena: 1
steps:
  first: { run: 'echo one > {out}', out: first.txt, needs: work }
  slow: { run: 'cat {first.out} > {out}; sleep 3.14159; echo two >> {out}', out: slow.txt, needs: work }
  last: { run: 'cat {slow.out} {first.out} > {out}', out: last.txt }
results: { last: '{last.out}' }
";

pub(crate) fn write(peers: &Peers, name: &str, text: &str) -> PathBuf {
    let path = peers.path().join(name);
    std::fs::write(&path, text.replace('@', &format!("{}/", peers.path().display()))).unwrap();
    path
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Gives a workflow in at a peer, in the background.
pub(crate) fn begin(peers: &Peers, at: usize, workflow: &str) -> Child {
    let mut command = peers.command(at, &["run", workflow, "--out", "out", "--json", "--chains", "single"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a command is over.
pub(crate) fn end(peers: &Peers, mut child: Child) -> Output {
    if !is_over_within(&mut child, LONG) {
        let output = child.wait_with_output().unwrap();
        panic!("it does not end\n{}\n{}", text(&output), peers.logs());
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}\n{}", text(&output), peers.logs());
    output
}

/// Whether a command is over soon enough. Otherwise it is ended.
pub(crate) fn is_over_within(child: &mut Child, patience: Duration) -> bool {
    let is_over = wait_until(patience, || child.try_wait().unwrap()).is_some();
    if !is_over {
        child.kill().unwrap();
    }
    is_over
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the peers have said of this kind.
pub(crate) fn events(peers: &Peers, kind: &str) -> Vec<Value> {
    let lines: Vec<Value> = peers.logs().lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    lines.into_iter().filter(|event| event["event"] == kind).collect()
}

/// Each molecule has been committed with one lease only, whoever has said so; unless what it had given was lost since.
pub(crate) fn assert_committed_once(peers: &Peers, tasks: usize) {
    let mut leases: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for event in events(peers, "committed") {
        let molecule = event["molecule"].as_str().unwrap().to_owned();
        leases.entry(molecule).or_default().insert(event["epoch"].as_u64().unwrap());
    }
    assert_eq!(leases.len(), tasks, "{}", peers.logs());
    let again = events(peers, "again");
    for (molecule, epochs) in leases {
        let remade = again.iter().filter(|event| event["molecule"] == *molecule).count();
        assert!(epochs.len() <= 1 + remade, "{molecule}: {epochs:?}");
    }
}

/// Waits until a process with this word in its command line runs, and says which peer has started it.
pub(crate) fn executor(peers: &Peers, word: &str) -> usize {
    wait_until(LONG, || peers.executor_of(word)).unwrap_or_else(|| panic!("nobody runs it\n{}", peers.logs()))
}

pub(crate) fn end_well(peers: &Peers, run: Child) {
    end(peers, run);
    assert_eq!(read(peers.path().join("out/last.txt")), "one\ntwo\none\n");
}
