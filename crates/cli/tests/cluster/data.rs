//! Agents that have files of their own.

use crate::http::call;
use crate::{assert_succeeded, start, status, submit, wait_for_chains, wait_for_end};
use catena_testbed::{Cluster, wait_until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings under which death is noticed soon, and nobody sees the files of others.
const LOCAL: &str =
    "lease: 1500ms\nlook: 1s\nstorage.mode: local\nagent: {cpus: 1, memory: 1 GiB, cache: false}\n";

/// A cluster with one instance and some agents, each with files of its own.
fn local(agents: usize, settings: &str) -> Cluster {
    let mut cluster = start(&format!("{LOCAL}{settings}"));
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    for n in 0..agents {
        cluster.agent(&format!("a{n}"), &[], &[]).unwrap();
    }
    cluster.wait_for_agents(agents).unwrap();
    cluster
}

fn write(cluster: &Cluster, name: &str, text: &str) {
    let path = cluster.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Where an agent holds objects.
fn objects(cluster: &Cluster, agent: &str) -> Vec<PathBuf> {
    let root = cluster.path().join("states").join(agent).join("agents").join(agent).join("data/objects");
    let below =
        |p: &Path| std::fs::read_dir(p).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
    below(&root).iter().flat_map(|group| below(group)).collect()
}

/// The chains of a run.
fn chains(cluster: &Cluster, run: i64) -> Vec<Value> {
    let chains = cluster.ask(&["chains", &run.to_string(), "--json"]).unwrap_or_default();
    serde_json::from_str(&chains).unwrap_or_default()
}

/// The agents that have executed each chain of a run, in the order of the chains.
fn executed_by(cluster: &Cluster, run: i64) -> Vec<String> {
    chains(cluster, run).iter().map(|c| c["agent"].as_str().unwrap_or_default().to_owned()).collect()
}

fn results(cluster: &Cluster, run: i64) -> PathBuf {
    cluster.path().join("storage/results").join(run.to_string())
}

#[test]
fn what_chains_read_is_brought_to_them_and_results_come_home() {
    let cluster = local(3, "");
    for n in 0..6 {
        write(&cluster, &format!("data/{n}.txt"), &format!("{n}\n").repeat(n + 1));
    }
    write(&cluster, "bin/upper.sh", "#!/bin/sh\ntr a-z A-Z < \"$1\" > \"$2\"\n");
    let program = cluster.path().join("bin/upper.sh");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    write(
        &cluster,
        "wf.yaml",
        r#"catena: 1
inputs:
  reads: { glob: "data/*.txt" }
steps:
  double:
    for: read in reads
    run: cat {read} {read} > {out}; echo beside > $(dirname {out})/beside.txt
    out: "{read.stem}.double"
  split:
    run: for f in {double.out}; do wc -l < $f > {out}/$(basename $f).n; cat $(dirname $f)/beside.txt >> {out}/notes; done
    out: parts/
  each:
    for: part in split.out
    run: sed 's/^/n=/' {part} > {out}
    out: "{part.name}.line"
  all:
    run: cat {each.out} > {out}
    out: all.txt
results:
  all: "{all.out}"
  doubled: "{double.out}"
"#,
    );
    let run = submit(&cluster, "wf.yaml");
    assert_succeeded(&cluster, run, 6 + 1 + 7 + 1);
    let results = results(&cluster, run);
    let all = read(results.join("all.txt"));
    assert_eq!(all.matches("n=beside").count(), 6, "{all}");
    for n in 0..6 {
        assert!(all.contains(&format!("n={}\n", 2 * (n + 1))), "{all}");
        assert_eq!(read(results.join(format!("doubled/{n}.double"))), format!("{n}\n").repeat(2 * (n + 1)));
    }
    // Somebody who does not see the server's files can have them too.
    let fetched = cluster.ask(&["fetch", "--out", "here"]).unwrap();
    assert!(fetched.contains("all.txt"), "{fetched}");
    assert_eq!(read(cluster.path().join("here/all.txt")), all);
    assert_eq!(read(cluster.path().join("here/doubled/5.double")), "5\n".repeat(12));
    // Files that only agents have are shown as well, and where results come from.
    let token = cluster.token().unwrap();
    let get = |path: &str| call("GET", &format!("{}/runs/{run}{path}", cluster.url()), Some(&token), "");
    let last: Value = serde_json::from_str(&get("/chains/14").1).unwrap();
    let arguments = last["files"][0]["arguments"].as_array().unwrap();
    let out = arguments.iter().position(|a| a["direction"] == "output").unwrap();
    assert_eq!(arguments[out]["files"], true, "{last:#}");
    assert_eq!(get(&format!("/chains/14/files/0/{out}/0")), (200, all.clone()));
    let (status, text) = get("/results/all/0/provenance");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("\"task\":\"double$0\""), "{text}");
    // What everything was at when is kept and shown.
    for chain in chains(&cluster, run) {
        let states: Vec<&str> =
            chain["history"].as_array().unwrap().iter().map(|m| m["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["ready", "queued", "stage-in", "running", "stage-out", "complete"]);
    }
    let shown = cluster.ask(&["chains", "--only", "succeeded"]).unwrap();
    assert!(shown.contains("stage-in") && shown.contains("double$0"), "{shown}");
    assert!(cluster.ask(&["chains", "--only", "happy"]).is_none(), "there is no such state");
}

#[test]
fn logs_are_read_from_the_agents_that_have_them() {
    let mut cluster = local(2, "");
    write(
        &cluster,
        "wf.yaml",
        "catena: 1\ninputs: {ns: {range: 4}}\nsteps:\n  say: {for: n in ns, run: \"echo hello {n}; echo oops {n} >&2\"}\n",
    );
    let run = submit(&cluster, "wf.yaml");
    assert_succeeded(&cluster, run, 4);
    let logs = cluster.ask(&["logs", "say"]).unwrap();
    for n in 1..=4 {
        assert!(logs.contains(&format!("hello {n}")) && logs.contains(&format!("oops {n}")), "{logs}");
    }
    write(
        &cluster,
        "slow.yaml",
        "catena: 1\nsteps:\n  count: {run: \"for n in 1 2 3 4 5 6; do echo line $n; sleep 0.2; done\"}\n",
    );
    let run = submit(&cluster, "slow.yaml");
    let running = || status(&cluster, run).filter(|s| s["chains"]["running"] == 1);
    wait_until(Duration::from_secs(20), running).unwrap();
    let followed = cluster.ask(&["logs", "count", "--follow"]).unwrap();
    assert_eq!(followed.matches("line").count(), 6, "{followed}");
    let agent = executed_by(&cluster, run).remove(0);
    cluster.kill(&agent);
    let gone = wait_until(Duration::from_secs(20), || {
        let output = cluster.command(&["logs", "count"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (!output.status.success()).then_some(said)
    });
    assert!(gone.unwrap().contains(&agent), "it says who has it");
}

#[test]
fn what_was_only_on_an_agent_that_died_is_computed_again() {
    let mut cluster = local(2, "");
    write(
        &cluster,
        "wf.yaml",
        r#"catena: 1
inputs: {ns: {range: 6}}
steps:
  make:
    for: n in ns
    run: "sleep 0.1; seq {n} 1000 > {out}"
    out: "{n}.txt"
  wait: {run: "sleep 4; cat {make.out} | wc -l > {out}", out: n.txt}
  all: {run: "cat {wait.out} {make.out} > {out}", out: all.txt}
results: {all: "{all.out}"}
"#,
    );
    let run = submit(&cluster, "wf.yaml");
    wait_for_chains(&cluster, run, 6);
    // Whoever executes what follows has copies of everything; so the other one dies and then this one.
    let running = || status(&cluster, run).filter(|s| s["chains"]["running"].as_u64() >= Some(1));
    wait_until(Duration::from_secs(20), running).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    cluster.kill("a0");
    cluster.kill("a1");
    cluster.agent("b0", &[], &[]).unwrap();
    assert_succeeded(&cluster, run, 7);
    let all = read(results(&cluster, run).join("all.txt"));
    assert_eq!(all.lines().count(), 1 + (1..=6).map(|n| 1001 - n).sum::<usize>());
    assert!(executed_by(&cluster, run).iter().all(|a| a == "b0"), "{:?}", executed_by(&cluster, run));
    assert!(!objects(&cluster, "b0").is_empty());
}

/// A workflow whose first part only `a` can do and whose second part only `b`, which takes its time first.
fn two_places(cluster: &mut Cluster, settings_of_b: &[&str]) -> i64 {
    cluster.agent("a", &["left"], &[]).unwrap();
    cluster.agent("b", &["right"], settings_of_b).unwrap();
    cluster.wait_for_agents(2).unwrap();
    write(
        cluster,
        "wf.yaml",
        r#"catena: 1
steps:
  make: {run: "seq 300000 > {out}", out: numbers.txt, needs: [left]}
  wait: {run: "sleep 2; echo go > {out}", out: go.txt, needs: [left]}
  use: {run: "cat {wait.out} {make.out} | wc -l > {out}", out: n.txt, needs: [right]}
results: {n: "{use.out}"}
"#,
    );
    submit(cluster, "wf.yaml")
}

fn two(settings: &str) -> Cluster {
    let mut cluster = start(&format!("{LOCAL}{settings}"));
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster
}

/// Damages the largest object of an agent without a trace in its size and times.
fn damage(cluster: &Cluster, agent: &str) {
    let size = |p: &PathBuf| std::fs::metadata(p).map_or(0, |m| m.len());
    let victim = objects(cluster, agent).into_iter().max_by_key(size).expect("it holds something");
    let meta = std::fs::metadata(&victim).unwrap();
    let mut bytes = std::fs::read(&victim).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // The file itself changes, as it does when a disk rots.
    let file = std::fs::OpenOptions::new().write(true).open(&victim).or_else(|_| {
        std::fs::set_permissions(&victim, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::OpenOptions::new().write(true).open(&victim)
    });
    let mut file = file.unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let times = std::fs::FileTimes::new().set_modified(meta.modified().unwrap());
    file.set_times(times).unwrap();
    std::fs::set_permissions(&victim, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
}

#[test]
fn what_has_rotted_is_noticed_and_computed_again() {
    let mut cluster = two("");
    let run = two_places(&mut cluster, &[]);
    wait_for_chains(&cluster, run, 1);
    damage(&cluster, "a");
    assert_succeeded(&cluster, run, 3);
    assert_eq!(read(results(&cluster, run).join("n.txt")).trim(), "300001");
    let logs = cluster.logs();
    assert!(logs.contains("run again") && logs.contains("was damaged on disk"), "{logs}");
}

#[test]
fn what_has_rotted_is_fetched_from_somebody_else_and_said() {
    let mut cluster = two("storage.copies: 2\n");
    cluster.agent("c", &["middle"], &[]).unwrap();
    let run = two_places(&mut cluster, &[]);
    wait_for_chains(&cluster, run, 1);
    // Whoever got the copy, the one who made it is damaged; `b` has to ask for it or has it already.
    let copied = || (!objects(&cluster, "b").is_empty() || !objects(&cluster, "c").is_empty()).then_some(());
    wait_until(Duration::from_secs(10), copied).expect("a copy is kept");
    damage(&cluster, "a");
    assert_succeeded(&cluster, run, 3);
    assert_eq!(read(results(&cluster, run).join("n.txt")).trim(), "300001");
    assert!(chains(&cluster, run).iter().all(|c| c["attempt"] == 1), "nothing ran again: {}", cluster.logs());
}

#[test]
fn copies_outlive_the_agent_that_made_them() {
    let mut cluster = two("storage.copies: 2\n");
    let run = two_places(&mut cluster, &[]);
    wait_for_chains(&cluster, run, 1);
    wait_until(Duration::from_secs(10), || (!objects(&cluster, "b").is_empty()).then_some(()))
        .expect("a copy");
    cluster.kill("a");
    cluster.agent("d", &["left"], &[]).unwrap();
    assert_succeeded(&cluster, run, 3);
    let first = chains(&cluster, run).into_iter().find(|c| c["tasks"][0] == "make").unwrap();
    assert_eq!((&first["attempt"], &first["agent"]), (&1.into(), &"a".into()), "{}", cluster.logs());
}

#[test]
fn an_agent_without_room_says_what_is_missing() {
    let mut cluster = two("");
    let run = two_places(&mut cluster, &["--set", "storage.quota=100 KiB"]);
    let end = wait_for_end(&cluster, run);
    assert_eq!(end["chains"]["failed"], 1, "{end:#}");
    let failure = end["failures"][0]["failure"].clone();
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("numbers.txt") && message.contains("102400"), "{message}");
    assert!(failure["help"].as_str().unwrap().contains("storage.quota"), "{failure}");
}

#[test]
fn what_leads_out_of_its_directory_is_refused() {
    let cluster = local(1, "");
    write(
        &cluster,
        "wf.yaml",
        "catena: 1\nsteps:\n  link: {run: \"ln -s /etc/passwd {out}\", out: secret.txt}\n  tree: {run: \"mkdir -p {out}; ln -s ../../../../etc {out}/etc\", out: tree/}\n",
    );
    let run = submit(&cluster, "wf.yaml");
    let end = wait_for_end(&cluster, run);
    assert_eq!(end["chains"]["failed"], 2, "{end:#}");
    for failure in end["failures"].as_array().unwrap() {
        let message = failure["failure"]["message"].as_str().unwrap();
        assert!(message.contains("leads out"), "{message}");
    }
}

#[test]
fn a_cluster_that_is_started_again_still_has_its_files() {
    let mut cluster = local(2, "");
    write(
        &cluster,
        "wf.yaml",
        "catena: 1\ninputs: {ns: {range: 4}}\nsteps:\n  make: {for: n in ns, run: \"seq {n} 1000 > {out}\", out: \"{n}.txt\"}\n  wait: {run: \"sleep 3; cat {make.out} | wc -l > {out}\", out: n.txt}\nresults: {n: \"{wait.out}\"}\n",
    );
    let run = submit(&cluster, "wf.yaml");
    wait_for_chains(&cluster, run, 4);
    for name in ["main", "a0", "a1"] {
        cluster.kill(name);
    }
    std::thread::sleep(Duration::from_secs(2));
    for name in ["a0", "main", "a1"] {
        cluster.start_again(name).unwrap();
    }
    assert_succeeded(&cluster, run, 5);
    let made = chains(&cluster, run);
    assert!(made[..4].iter().all(|c| c["attempt"] == 1), "nothing is computed twice: {}", cluster.logs());
    assert_eq!(read(results(&cluster, run).join("n.txt")).trim(), "3994");
}

#[test]
fn everything_is_in_the_object_storage_too() {
    let bucket = tempfile::tempdir().unwrap();
    let mut cluster = start(&format!(
        "{}storage.object: file://{}\n",
        LOCAL.replace("storage.mode: local", "storage.mode: object"),
        bucket.path().display()
    ));
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    let run = two_places(&mut cluster, &[]);
    wait_for_chains(&cluster, run, 1);
    cluster.kill("a");
    cluster.agent("d", &["left"], &[]).unwrap();
    assert_succeeded(&cluster, run, 3);
    let first = chains(&cluster, run).into_iter().find(|c| c["tasks"][0] == "make").unwrap();
    assert_eq!(first["attempt"], 1, "what is in the storage need not be computed again: {}", cluster.logs());
    assert_eq!(read(results(&cluster, run).join("n.txt")).trim(), "300001");
}

#[test]
fn who_has_much_to_do_gives_to_who_has_nothing() {
    let mut cluster = two("scheduler.policy: adage\n");
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    write(
        &cluster,
        "wf.yaml",
        "catena: 1\ninputs: {ns: {range: 12}}\nsteps:\n  work: {for: n in ns, run: \"sleep 0.4; echo {n} > {out}\", out: \"{n}.txt\"}\n",
    );
    let run = submit(&cluster, "wf.yaml");
    wait_for_chains(&cluster, run, 1);
    cluster.agent("a1", &[], &[]).unwrap();
    assert_succeeded(&cluster, run, 12);
    let by = executed_by(&cluster, run);
    let second = by.iter().filter(|a| *a == "a1").count();
    assert!((2..=8).contains(&second), "{by:?}\n{}", cluster.logs());
}

#[test]
fn a_straggler_is_overtaken_by_a_copy() {
    let mut cluster = two("");
    cluster.agent("fast", &[], &[]).unwrap();
    let environment = [("SLOW", "1")];
    cluster
        .agent_with("slow", catena_testbed::AgentStart { environment: &environment, ..Default::default() })
        .unwrap();
    cluster.wait_for_agents(2).unwrap();
    write(
        &cluster,
        "wf.yaml",
        "catena: 1\ninputs: {ns: {range: 8}}\nsteps:\n  work: {for: n in ns, run: \"if [ -n \\\"${SLOW:-}\\\" ]; then sleep 30; else sleep 0.6; fi; echo {n} > {out}\", out: \"{n}.txt\"}\n  all: {run: \"cat {work.out} > {out}\", out: all.txt}\nresults: {all: \"{all.out}\"}\n",
    );
    let begun = std::time::Instant::now();
    let run = submit(&cluster, "wf.yaml");
    assert_succeeded(&cluster, run, 9);
    assert!(executed_by(&cluster, run)[..8].iter().all(|a| a == "fast"), "{:?}", executed_by(&cluster, run));
    assert!(begun.elapsed() < Duration::from_secs(28), "nobody waits for who is slow");
    assert_eq!(read(results(&cluster, run).join("all.txt")).lines().count(), 8);
}

#[test]
fn a_directory_of_ten_thousand_files_is_brought_as_a_whole() {
    let mut cluster = two("");
    cluster.agent("a", &["left"], &[]).unwrap();
    cluster.agent("b", &["right"], &[]).unwrap();
    cluster.wait_for_agents(2).unwrap();
    write(
        &cluster,
        "wf.yaml",
        r#"api: 4.7.0
services:
  - id: make
    name: make
    run: "for n in $(seq 10000); do echo $n > {out}/$n; done"
    requiredCapabilities: [left]
    parameters: [{id: out, type: output, dataType: directory, cardinality: 1..1}]
  - id: sum
    name: sum
    run: "cat {in}/* | awk '{s += $1} END {print s}' > {out}"
    requiredCapabilities: [right]
    parameters:
      - {id: in, type: input, dataType: directory, cardinality: 1..1}
      - {id: out, type: output, dataType: file, cardinality: 1..1}
vars: [{id: many}, {id: n}]
actions:
  - {type: execute, service: make, outputs: [{id: out, var: many}]}
  - {type: execute, service: sum, inputs: [{id: in, var: many}], outputs: [{id: out, var: n, store: true}]}
"#,
    );
    let run = submit(&cluster, "wf.yaml");
    let end = wait_for_end(&cluster, run);
    assert_eq!(end["state"], "succeeded", "{end:#}\n{}", cluster.logs());
    let stored: Vec<_> = std::fs::read_dir(results(&cluster, run)).unwrap().flatten().collect();
    assert_eq!(stored.len(), 1, "what is to be stored comes home too");
    assert_eq!(read(stored[0].path()).trim(), "50005000");
}

#[test]
fn what_nobody_will_read_any_more_makes_room() {
    let mut cluster = two("");
    // Six files of 400 KiB do not fit, but more than three are never needed.
    cluster.agent("a", &[], &["--set", "storage.quota=1600 KiB"]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    let mut text =
        "catena: 1\nsteps:\n  s0: {run: \"head -c 409600 /dev/urandom > {out}\", out: 0.bin}\n".to_owned();
    for n in 1..6 {
        let before = n - 1;
        text += &format!(
            "  s{n}: {{run: \"sleep 0.3; head -c 409600 /dev/urandom > {{out}}; cat {{s{before}.out}} > /dev/null\", out: {n}.bin}}\n"
        );
    }
    write(&cluster, "wf.yaml", &(text + "results: {last: \"{s5.out}\"}\n"));
    assert!(cluster.ask(&["submit", "wf.yaml", "--out", "here"]).is_none(), "nobody would put it there");
    let words = ["submit", "wf.yaml", "--chains", "single", "--wait", "--out", "here"];
    let output = cluster.command(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}", cluster.logs());
    assert_eq!(std::fs::metadata(cluster.path().join("here/5.bin")).unwrap().len(), 409_600);
    // When the run is over nothing is kept at all.
    let kept = cluster.path().join("states/a/agents/a/data/kept");
    let empty = || (std::fs::read_dir(&kept).unwrap().count() == 0).then_some(());
    wait_until(Duration::from_secs(10), empty).expect("nothing is kept for a run that is over");
}

#[test]
fn files_from_the_web_are_downloaded_by_agents() {
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/numbers.txt", web.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in web.incoming().flatten() {
            let mut stream = std::io::BufReader::new(stream);
            let mut line = String::new();
            while std::io::BufRead::read_line(&mut stream, &mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n1\n2\n3\n";
            let _ = std::io::Write::write_all(stream.get_mut(), answer);
        }
    });
    let cluster = local(1, "");
    let text = format!(
        r#"api: 4.7.0
services:
  - id: count
    name: count
    run: "wc -l < {{in}} > {{out}}"
    parameters:
      - {{id: in, type: input, dataType: file, cardinality: 1..1}}
      - {{id: out, type: output, dataType: file, cardinality: 1..1}}
vars: [{{id: source, value: "{url}"}}, {{id: n}}]
actions:
  - {{type: execute, service: count, inputs: [{{id: in, var: source}}], outputs: [{{id: out, var: n, store: true}}]}}
"#
    );
    write(&cluster, "wf.yaml", &text);
    let run = submit(&cluster, "wf.yaml");
    assert_succeeded(&cluster, run, 1);
    let stored: Vec<_> = std::fs::read_dir(results(&cluster, run)).unwrap().flatten().collect();
    assert_eq!(read(stored[0].path()).trim(), "3");
}
