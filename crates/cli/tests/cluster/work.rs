//! What a cluster does when nothing goes wrong.

use crate::{
    QUICK, assert_succeeded, counting, executions, small, start, status, submit, wait_for_chains,
    wait_for_end,
};
use catena_testbed::wait_until;
use std::time::Duration;

#[test]
fn a_workflow_is_submitted_watched_and_looked_at() {
    let cluster = small(2);
    let text = "catena: 1\nname: greetings\ninputs: {names: [anna, boris]}\nsteps:\n  greet:\n    for: n in names\n    run: \"echo hello {n}; echo hello {n} > {out}\"\n    out: \"{n}.txt\"\n  all: {run: \"cat {greet.out} > {out}\", out: all.txt}\nresults: {all: \"{all.out}\"}\n";
    std::fs::write(cluster.path().join("greet.yaml"), text).unwrap();
    let output = cluster.command(&["submit", "greet.yaml", "--wait", "--out", "results"]).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", cluster.logs());
    assert!(said.contains("succeeded: 3 tasks"), "{said}");
    let result = std::fs::read_to_string(cluster.path().join("results/1/all.txt")).unwrap();
    assert_eq!(result, "hello anna\nhello boris\n");
    let list = cluster.ask(&["list"]).unwrap();
    assert!(list.contains("greetings") && list.contains("succeeded"), "{list}");
    let logs = cluster.ask(&["logs", "greet"]).unwrap();
    assert!(logs.contains("hello anna") && logs.contains("hello boris"), "{logs}");
    let status = cluster.ask(&["status"]).unwrap();
    assert!(status.contains("3 done"), "{status}");
    let agents = cluster.ask(&["agents"]).unwrap();
    assert!(agents.contains("a0") && agents.contains("a1"), "{agents}");
    for words in [&["greetings"][..], &["GREET", "state:succeeded"], &["boris", "name:greet"]] {
        let found = cluster.ask(&[&["search"], words].concat()).unwrap();
        assert!(found.contains("greetings"), "{words:?}: {found}");
    }
    let found = cluster.ask(&["search", "state:failed", "a&b=c", "--json"]).unwrap();
    assert_eq!(found.trim(), "[]");
    let instances = cluster.ask(&["instances"]).unwrap();
    assert!(instances.contains("http, controller, scheduler"), "{instances}");
    assert!(cluster.ask(&["services"]).unwrap().contains("there are none"));
}

#[test]
fn an_agent_that_is_dismissed_finishes_what_it_has() {
    let mut cluster = small(2);
    counting(&cluster, "work", 8, 0.5);
    let run = submit(&cluster, "work.yaml");
    let running = || status(&cluster, run).filter(|s| s["chains"]["running"].as_u64() >= Some(2));
    wait_until(Duration::from_secs(30), running).unwrap();
    assert!(cluster.ask(&["dismiss", "a0"]).unwrap().contains("a0"));
    assert!(cluster.ask(&["dismiss", "nobody"]).is_none(), "there is no such agent");
    let ended = cluster.instance("a0").unwrap().wait(Duration::from_secs(30));
    assert_eq!(ended, Some(0), "{}", cluster.logs());
    assert_succeeded(&cluster, run, 8);
    assert_eq!(executions(&cluster, "work"), [1; 8], "{}", cluster.logs());
}

#[test]
fn chains_go_where_they_can_run_and_the_rest_waits_with_a_reason() {
    let mut cluster = start(QUICK);
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.agent("plain", &[], &[]).unwrap();
    cluster.agent("painter", &["gpu"], &[]).unwrap();
    cluster.wait_for_agents(2).unwrap();
    let text = "catena: 1\nsteps:\n  easy: {run: \"true\"}\n  paint: {run: \"true\", needs: [gpu]}\n  fly: {run: \"true\", needs: [wings]}\n";
    std::fs::write(cluster.path().join("mixed.yaml"), text).unwrap();
    let run = submit(&cluster, "mixed.yaml");
    let two = || status(&cluster, run).filter(|s| s["chains"]["succeeded"] == 2);
    let now = wait_until(Duration::from_secs(20), two).unwrap();
    // What nobody can do does not hold up the rest, and its reason is told.
    let reason = now["waiting"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("`wings`"), "{reason}");
    assert!(cluster.ask(&["waiting"]).unwrap().contains("wings"));
    cluster.agent("bird", &["wings"], &[]).unwrap();
    assert_succeeded(&cluster, run, 3);
}

#[test]
fn runs_are_paused_reordered_cancelled_retried_and_deleted() {
    let cluster = small(1);
    counting(&cluster, "slow", 20, 0.4);
    let id = submit(&cluster, "slow.yaml");
    let run = id.to_string();
    wait_for_chains(&cluster, id, 1);
    cluster.ask(&["pause", &run]).unwrap();
    let resting =
        || status(&cluster, id).filter(|s| s["chains"]["paused"] != 0 && s["chains"]["running"] == 0);
    wait_until(Duration::from_secs(30), resting)
        .unwrap_or_else(|| panic!("{:#?}\n{}", status(&cluster, id), cluster.logs()));
    let held = executions(&cluster, "slow").len();
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(executions(&cluster, "slow").len(), held, "nothing new is started");
    assert!(held < 20);
    assert!(cluster.ask(&["priority", &run, "7"]).unwrap().contains("priority 7"));
    cluster.ask(&["resume", &run]).unwrap();
    assert_succeeded(&cluster, id, 20);
    assert_eq!(executions(&cluster, "slow"), [1; 20]);
    counting(&cluster, "long", 3, 30.0);
    let long = submit(&cluster, "long.yaml");
    wait_until(Duration::from_secs(20), || {
        status(&cluster, long).filter(|s| s["chains"]["running"].as_u64() >= Some(1))
    })
    .unwrap();
    let cancelled = cluster.ask(&["cancel", &long.to_string()]).unwrap();
    assert!(cancelled.contains("is cancelled"), "{cancelled}");
    assert_eq!(wait_for_end(&cluster, long)["chains"]["cancelled"], 3);
    assert!(executions(&cluster, "long").is_empty());
    cluster.ask(&["delete", &run]).unwrap();
    assert!(status(&cluster, id).is_none());
    assert!(!cluster.path().join("storage/runs").join(&run).exists(), "its files are gone too");
    // What fails can be tried again once its reason is gone.
    let missing = cluster.path().join("missing");
    let text = format!("catena: 1\nsteps:\n  look: {{run: \"cat {}\"}}\n", missing.display());
    std::fs::write(cluster.path().join("fails.yaml"), text).unwrap();
    let output = cluster.command(&["submit", "fails.yaml", "--wait"]).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("No such file"), "{said}");
    std::fs::write(&missing, "here").unwrap();
    let output = cluster.command(&["retry"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn higher_priorities_run_first() {
    // What an agent holds in advance cannot be overtaken, so it should hold nothing.
    let mut cluster = start(&format!("{QUICK}scheduler: {{lookAhead: 0s}}\n"));
    cluster.serve("main", "http,controller,scheduler", &[]).unwrap();
    cluster.agent("a0", &[], &[]).unwrap();
    cluster.wait_for_agents(1).unwrap();
    // The agent is busy until all of them wait.
    let go = cluster.path().join("go");
    let text = format!(
        "catena: 1\nsteps:\n  wait: {{run: \"while [ ! -e {} ]; do sleep 0.05; done\"}}\n",
        go.display()
    );
    std::fs::write(cluster.path().join("blocker.yaml"), text).unwrap();
    let blocker = submit(&cluster, "blocker.yaml");
    let until = |run: i64, state: &str, chains: u64| {
        let reached = || status(&cluster, run).filter(|s| s["chains"][state] == chains);
        wait_until(Duration::from_secs(30), reached).unwrap_or_else(|| panic!("{}", cluster.logs()));
    };
    until(blocker, "running", 1);
    let order = cluster.path().join("order.txt");
    let mut last = 0;
    for priority in [1, 3, 8] {
        let file = format!("p{priority}.yaml");
        let text = format!(
            "catena: 1\ninputs: {{ns: {{range: 2}}}}\nsteps:\n  work: {{for: n in ns, run: \"echo {priority} >> {}\"}}\n",
            order.display()
        );
        std::fs::write(cluster.path().join(&file), text).unwrap();
        let said = cluster.ask(&["submit", &file, "--priority", &priority.to_string()]).unwrap();
        last = said.trim().strip_prefix("run ").unwrap().parse().unwrap();
        until(last, "registered", 2);
    }
    std::fs::write(&go, "").unwrap();
    assert_succeeded(&cluster, last, 2);
    let run = || std::fs::read_to_string(&order).ok().filter(|t| t.lines().count() == 6);
    let text = wait_until(Duration::from_secs(20), run).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), ["8", "8", "3", "3", "1", "1"]);
}

#[test]
fn one_process_on_sqlite_is_a_server_too() {
    let dir = tempfile::tempdir().unwrap();
    let port = catena_testbed::free_port();
    let program = env!("CARGO_BIN_EXE_catena");
    let listen = format!("127.0.0.1:{port}");
    let arguments = [program, "serve", "--listen", &listen, "--state", dir.path().to_str().unwrap()];
    let mut server = catena_testbed::Server::start(arguments, &dir.path().join("log")).unwrap();
    std::fs::write(dir.path().join("wf.yaml"), "catena: 1\nsteps:\n  a: {run: \"echo hi\"}\n").unwrap();
    let url = format!("http://{listen}");
    let run = || {
        let output = std::process::Command::new(program)
            .args(["submit", "wf.yaml", "--wait", "--server", &url, "--state", "."])
            .current_dir(dir.path())
            .output()
            .ok()?;
        output.status.success().then_some(())
    };
    wait_until(Duration::from_secs(20), run).unwrap_or_else(|| panic!("{}", server.log()));
    server.stop();
}
