//! Groups of real peers with no server, and what is promised when some of them die, stand still or are cut off.

use crate::group::{
    LONG, SLOW, assert_committed_once, begin, end, end_well, events, executor, more, program, read, text,
    write,
};
use catena_testbed::{Peers, wait_until};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};

fn group(count: usize) -> Peers {
    let peers = Peers::start(program(), count, &more).unwrap();
    (0..count).for_each(|number| peers.wait_for(number, count).unwrap());
    peers
}

fn wait_for_event(peers: &Peers, kind: &str) {
    wait_until(LONG, || (!events(peers, kind).is_empty()).then_some(()))
        .unwrap_or_else(|| panic!("no event `{kind}`\n{}", peers.logs()));
}

/// Waits until a command has said that something happened.
fn hear(child: &mut Child, kind: &str) {
    let event = format!("\"event\":\"{kind}\"");
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(&event)), "it ended without saying {kind}");
}

#[test]
fn a_workflow_comes_to_the_same_among_peers_as_on_one_machine() {
    let peers = group(5);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first");
    let small = ["--input", "rows=[0,1,2,3,4,5]", "--input", "height=6", "--input", "width=20"];
    let mut words = vec!["run", example.to_str().unwrap(), "--out", "out"];
    words.extend(small);
    let output = peers.command(3, &words).output().unwrap();
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), peers.logs());
    let mut local = Command::new(program());
    local.args(["run", example.to_str().unwrap(), "--out", "local", "--state", "here"]).args(small);
    assert!(local.current_dir(peers.path()).output().unwrap().status.success());
    assert_eq!(
        read(peers.path().join("out/mandelbrot.svg")),
        read(peers.path().join("local/mandelbrot.svg"))
    );
    assert_committed_once(&peers, 13);
    let leased = events(&peers, "leased");
    let by: BTreeSet<&str> = leased.iter().map(|e| e["peer"].as_str().unwrap()).collect();
    assert!(by.len() > 1, "{by:?}");
    assert!(events(&peers, "wasted").is_empty());
    // Nobody has failed: each task was started once.
    write(
        &peers,
        "count.yaml",
        "{catena: 1, inputs: {ns: {range: 20}}, steps: {count: {for: n in ns, run: 'echo {n} >> @starts'}}}",
    );
    end(&peers, begin(&peers, 0, "count.yaml"));
    let starts = read(peers.path().join("starts"));
    assert_eq!((starts.lines().count(), starts.lines().collect::<BTreeSet<_>>().len()), (20, 20), "{starts}");
    let shown = peers.command(1, &["peers", "--picture", "ring.svg"]).output().unwrap();
    assert_eq!(text(&shown).lines().count(), 1 + 5, "{}", text(&shown));
    let picture = read(peers.path().join("ring.svg"));
    assert!((0..5).all(|n| picture.contains(peers.address(n))) && picture.contains("5 peers"), "{picture}");
}

#[test]
fn a_composition_comes_to_the_same_among_peers_as_on_one_machine() {
    let peers = group(3);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/composition");
    let output = peers.command(1, &["run", example.to_str().unwrap(), "--out", "out"]).output().unwrap();
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), peers.logs());
    let report = "numbers: 3 4 12 84 have the length 85.000000, which is long\n";
    assert_eq!(read(peers.path().join("out/length.txt")), report);
}

#[test]
fn a_task_whose_peer_is_killed_is_executed_elsewhere_and_lost_data_are_made_again() {
    let mut peers = group(6);
    write(&peers, "wf.yaml", SLOW);
    let run = begin(&peers, 0, "wf.yaml");
    let busy = executor(&peers, "3.14159");
    peers.member(busy).kill();
    end_well(&peers, run);
    assert!(events(&peers, "leased").len() > 3, "it was started once more\n{}", peers.logs());
}

#[test]
fn a_peer_that_stands_still_beyond_its_lease_commits_nothing() {
    let mut peers = group(6);
    write(&peers, "wf.yaml", &SLOW.replace("3.14159", "6.28318"));
    let run = begin(&peers, 0, "wf.yaml");
    let busy = executor(&peers, "6.28318");
    peers.pause(busy, true);
    let again = wait_until(LONG, || (0..6).any(|n| n != busy && peers.executes(n, "6.28318")).then_some(()));
    assert!(again.is_some(), "nobody else has taken it\n{}", peers.logs());
    peers.pause(busy, false);
    end_well(&peers, run);
    wait_for_event(&peers, "wasted");
    assert_committed_once(&peers, 3);
}

#[test]
fn results_wait_for_the_return_of_the_peer_that_was_asked() {
    let mut peers = group(5);
    write(&peers, "wf.yaml", SLOW);
    let run = begin(&peers, 2, "wf.yaml");
    wait_for_event(&peers, "leased");
    // The person goes, and then the peer.
    let pid = rustix::process::Pid::from_raw(run.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(run.wait_with_output().unwrap().status.code(), Some(130));
    peers.member(2).kill();
    wait_for_event(&peers, "over");
    peers.member(2).start_again().unwrap();
    peers.wait_for(2, 5).unwrap();
    let output = end(&peers, begin(&peers, 2, "wf.yaml"));
    assert!(text(&output).contains("\"again\""), "{}", text(&output));
    assert_eq!(read(peers.path().join("out/last.txt")), "one\ntwo\none\n");
    assert_committed_once(&peers, 3);
}

#[test]
fn with_two_of_three_homes_gone_the_workflow_blocks_and_says_so_until_they_are_back() {
    let mut peers = group(3);
    write(&peers, "wf.yaml", &SLOW.replace(", needs: work", ""));
    let mut run = begin(&peers, 0, "wf.yaml");
    executor(&peers, "3.14159");
    for gone in [1, 2] {
        peers.member(gone).kill();
    }
    wait_for_event(&peers, "blocked");
    hear(&mut run, "blocked");
    assert!(events(&peers, "over").is_empty(), "one of three must not decide anything");
    for gone in [1, 2] {
        peers.member(gone).start_again().unwrap();
    }
    end_well(&peers, run);
}

#[test]
fn a_task_that_must_not_be_started_twice_is_not_and_it_is_said_that_it_blocks() {
    let mut peers = group(6);
    write(
        &peers,
        "wf.yaml",
        "catena: 1\nsteps:\n  once: { run: 'echo started >> @starts; sleep 27.1828', start: exclusive, needs: work }\n",
    );
    let mut run = begin(&peers, 0, "wf.yaml");
    let busy = executor(&peers, "27.1828");
    peers.member(busy).kill();
    wait_for_event(&peers, "blocked");
    let why = events(&peers, "blocked")[0]["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("must not be started twice"), "{why}");
    assert_eq!(read(peers.path().join("starts")), "started\n");
    assert!(run.try_wait().unwrap().is_none(), "it waits");
    run.kill().unwrap();
    run.wait().unwrap();
}

#[test]
fn what_is_wrong_is_said_and_harms_nobody() {
    let peers = group(3);
    let peer = |words: &[&str]| {
        let mut command = Command::new(program());
        command.args(["peer", "--listen", "127.0.0.1:0", "--state", "other"]).args(words);
        let output = command.current_dir(peers.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let key = peers.key();
    let key = key.to_str().unwrap();
    write(&peers, "bad.hocl", "let a = replace TASK:i by ;\nlet b = replace x by y;\n");
    let said = peer(&["--key", key, "--rules", "bad.hocl"]);
    assert!(said.contains("bad.hocl:2:"), "{said}");
    let said = peer(&["--key", key, "--rules", "fastest"]);
    assert!(said.contains("dependencies, levels, min-min"), "{said}");
    let said = peer(&["--key", "none", "--join", peers.address(0)]);
    assert!(said.contains("none") && said.contains("copy it"), "{said}");
    let said = peer(&["--key", key, "--lease", "soon"]);
    assert!(said.contains("--lease soon"), "{said}");
    // Two with one identity: the later one gives way.
    let twin = peers.state(1).join("peer");
    let said = peer(&["--key", key, "--join", peers.address(0), "--directory", twin.to_str().unwrap()]);
    assert!(said.contains("each peer needs a directory of its own") || said.contains("another"), "{said}");
    // Somebody who does not know the key is told so, and learns nothing.
    std::fs::write(peers.path().join("wrong"), "another secret, as long as the right one\n").unwrap();
    let mut asks = Command::new(program());
    asks.args(["peers", "--peer", peers.address(0), "--key", "wrong"]).current_dir(peers.path());
    let output = asks.output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("group key"), "{said}");
    // A workflow that does not fit into a message is refused before anything happens.
    let long = format!("{{catena: 1, steps: {{a: {{run: 'echo {}'}}}}}}", "x".repeat(40 << 20));
    write(&peers, "large.yaml", &long);
    let output = peers.command(0, &["run", "large.yaml"]).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("MiB") || said.contains("too large") || said.contains("at most"),
        "{}",
        &said[..said.len().min(2000)]
    );
    // They are all still there.
    peers.wait_for(2, 3).unwrap();
}
