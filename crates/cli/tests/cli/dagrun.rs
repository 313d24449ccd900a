//! DAG files, executed as DAGMan executes them.

use crate::project::{Project, finish, processes_with, signal, wait_until};

/// Every node writes its name into `journal`, and fails if there is a file `fail-NAME`.
const JOB: &str = "executable = job.sh\narguments = $(JOB) $(more)\nmore =\noutput = $(JOB).out\nerror = $(JOB).err\nlog = jobs.log\nqueue\n";

fn project(dag: &str) -> Project {
    let p = Project::new();
    p.write("x.dag", dag);
    p.write("job.sub", JOB);
    script(&p, "job.sh", "echo $1 >> journal; echo \"$@\"; if test -e fail-$1; then exit $(cat fail-$1); fi");
    p
}

fn script(p: &Project, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    p.write(name, format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(p.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn journal(p: &Project) -> Vec<String> {
    if p.exists("journal") { p.read("journal").lines().map(str::to_owned).collect() } else { Vec::new() }
}

fn jobs(names: &str) -> String {
    names.split_whitespace().flat_map(|n| ["JOB ", n, " job.sub\n"]).collect()
}

#[test]
fn a_dag_runs_and_its_jobs_find_their_files() {
    let p = project(&format!(
        "{}PARENT a CHILD b c\nPARENT b c CHILD d\nVARS b APPEND more=\"two words\"\n",
        jobs("a b c d")
    ));
    p.catena(["run", "x.dag", "-j", "1"]).expect(0).says("4 tasks");
    assert_eq!(journal(&p), ["a", "b", "c", "d"]);
    assert_eq!(p.read("b.out"), "b two words\n");
    assert_eq!(
        p.read("jobs.log").matches("\n005 (").count() + usize::from(p.read("jobs.log").starts_with("005")),
        4
    );
    assert!(!p.exists("x.dag.rescue001"));
}

#[test]
fn what_failed_goes_on_from_a_rescue_file() {
    let p = project(&format!("{}PARENT a CHILD b c\nPARENT b c CHILD d\n", jobs("a b c d")));
    p.write("fail-b", "3");
    p.catena(["run", "x.dag"])
        .expect(1)
        .says("1 of 4 nodes failed (b), 1 could not run")
        .says("x.dag.rescue001");
    assert!(p.read("x.dag.rescue001").contains("DONE a\nDONE c\n"), "{}", p.read("x.dag.rescue001"));
    p.catena(["run", "x.dag"]).expect(1).says("going on from").says("x.dag.rescue002");
    std::fs::remove_file(p.path("fail-b")).unwrap();
    p.catena(["run", "x.dag"]).expect(0).says("going on from").says("2 tasks");
    let all = journal(&p);
    assert_eq!((all.iter().filter(|n| *n == "a").count(), all.iter().filter(|n| *n == "b").count()), (1, 3));
    p.catena(["run", "x.dag", "--new"]).expect(0).says("4 tasks");
    assert!(p.exists("x.dag.rescue002.old") && !p.exists("x.dag.rescue001"));
}

#[test]
fn scripts_get_their_macros_and_decide() {
    let p = project(&format!(
        "{}SCRIPT PRE a pre.sh $NODE $RETRY $MAX_RETRIES\nSCRIPT POST a post.sh $RETURN $SUCCESS $JOB_COUNT\nRETRY a 2\nSCRIPT PRE b skip.sh\nPRE_SKIP b 7\n",
        jobs("a b")
    ));
    script(&p, "pre.sh", "echo pre $@ >> scripts");
    script(&p, "post.sh", "echo post $@ >> scripts; rm -f fail-a; exit $1");
    script(&p, "skip.sh", "exit 7");
    p.write("fail-a", "5");
    p.catena(["run", "x.dag"]).expect(0).says("node a is tried again (1 of 2) after exit code 5");
    assert_eq!(p.read("scripts"), "pre a 0 2\npost 5 False 1\npre a 1 2\npost 0 True 1\n");
    assert_eq!(journal(&p), ["a", "a"], "b was skipped");
}

#[test]
fn an_abort_returns_what_it_says_and_stops_what_runs() {
    let p = project(&format!(
        "{}JOB slow {{\n  executable = /bin/sleep\n  arguments = 64.125\n}}\nABORT-DAG-ON a 3 RETURN 42\nFINAL last job.sub\n",
        jobs("a")
    ));
    script(
        &p,
        "job.sh",
        "while test $1 = a && ! pgrep -f 'sleep 64.125' > /dev/null; do sleep 0.05; done; echo $1 >> journal; if test $1 = a; then exit 3; fi; exit 1",
    );
    p.catena(["run", "x.dag", "-j", "2"]).expect(1).says("node a stops the DAG, which returns 42");
    assert_eq!(journal(&p), ["a", "last"], "the final node comes in any case, and decides");
    assert!(processes_with("sleep 64.125").is_empty());
    p.write("y.dag", "JOB a job.sub\nJOB b job.sub\nPARENT a CHILD b\nABORT-DAG-ON a 3 RETURN 42\n");
    script(&p, "job.sh", "exit 3");
    p.catena(["run", "y.dag"]).expect(42);
}

#[test]
fn a_category_is_never_exceeded() {
    let many: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
    let mut dag = jobs(&many.join(" "));
    for n in &many {
        dag += &format!("CATEGORY {n} few\n");
    }
    let p = project(&format!("{dag}MAXJOBS few 2\n"));
    script(&p, "job.sh", "echo $1 > running-$1; ls running-* | wc -l >> counts; sleep 0.1; rm running-$1");
    p.catena(["run", "x.dag", "-j", "8"]).expect(0);
    let counts = p.read("counts");
    assert_eq!(counts.lines().count(), 8);
    assert!(counts.lines().all(|n| n.trim().parse::<u32>().unwrap() <= 2), "{counts}");
}

#[test]
fn splices_and_dags_within_dags_run_in_their_directories() {
    let p = project(
        "JOB a job.sub\nSPLICE s inner.dag DIR sub\nSUBDAG EXTERNAL d sub.dag DIR sub\nPARENT a CHILD s\nPARENT s CHILD d\n",
    );
    std::fs::create_dir(p.path("sub")).unwrap();
    let inner = "JOB x job.sub\nJOB y job.sub\nPARENT x CHILD y\n";
    for (name, text) in [("inner.dag", inner), ("sub.dag", inner), ("job.sub", JOB)] {
        p.write(&format!("sub/{name}"), text);
    }
    std::fs::copy(p.path("job.sh"), p.path("sub/job.sh")).unwrap();
    p.write("sub/fail-y", "1");
    p.catena(["run", "x.dag"]).expect(1);
    assert_eq!(p.read("sub/journal"), "s+x\ns+y\nx\ny\n");
    assert!(p.read("sub/sub.dag.rescue001").contains("DONE x\n"));
    std::fs::remove_file(p.path("sub/fail-y")).unwrap();
    p.catena(["run", "x.dag"]).expect(0);
    assert_eq!(p.read("sub/journal"), "s+x\ns+y\nx\ny\ny\n");
}

#[test]
fn submit_descriptions_mean_what_they_say() {
    let p = project("JOB a a.sub\n");
    p.write(
        "a.sub",
        "executable = show.sh\narguments = \"$(Process) $(item) 'two words' \"\"\"\nenvironment = \"ONE=1 TWO='2 3'\"\ninitialdir = home\ninput = in.txt\noutput = out.$(Process)\nshould_transfer_files = YES\ntransfer_input_files = data.txt\nrequest_memory = 1\nqueue item in (x, y)\n",
    );
    script(
        &p,
        "show.sh",
        "cat; cat data.txt; for a in \"$@\"; do echo \"[$a]\"; done; echo $ONE-$TWO; pwd > made.$1",
    );
    std::fs::create_dir(p.path("home")).unwrap();
    p.write("home/in.txt", "input\n");
    p.write("home/data.txt", "data\n");
    p.catena(["run", "x.dag"]).expect(0).says("2 tasks");
    assert_eq!(p.read("home/out.0"), "input\ndata\n[0]\n[x]\n[two words]\n[\"]\n1-2 3\n");
    assert!(p.read("home/out.1").contains("[1]\n[y]"));
    assert_ne!(
        p.read("home/made.0").trim(),
        p.path("home").to_str().unwrap(),
        "it ran in a directory of its own"
    );
}

#[test]
fn jobs_that_need_what_is_not_there_are_named() {
    let p = project("JOB a a.sub\n");
    p.write("a.sub", "executable = /bin/true\nrequirements = HasMagic && (Foo > 3)\nqueue\n");
    p.catena(["run", "x.dag"]).expect(1).says("HasMagic").says("Foo > 3");
    p.catena(["run", "x.dag", "--capability", "HasMagic"]).expect(0);
}

#[test]
fn bad_descriptions_fail_their_node_with_a_place() {
    let p = project("JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n");
    p.catena(["run", "x.dag"]).expect(2).says("a.sub of node a does not exist");
    p.write("a.sub", "executable = /bin/true\nqueue\n");
    p.write("b.sub", "executable = /bin/true\nrequest_cpus = many\nqueue\n");
    p.catena(["run", "x.dag"]).expect(1).says("b.sub:2:").says("node b cannot be submitted");
    p.write("b.sub", "executable = /bin/true\nuniverse = docker\nqueue\n");
    p.catena(["run", "x.dag", "--new"]).expect(1).says("b.sub:2:");
}

#[test]
fn users_can_watch_and_go_back() {
    let p = project(&format!(
        "{}PARENT a CHILD b\nWEAK PARENT b CHILD c\nNODE_STATUS_FILE status 0\nDOT graph.dot UPDATE\nJOBSTATE_LOG states\nSAVE_POINT_FILE b\n",
        jobs("a b c")
    ));
    p.write("fail-b", "1");
    p.catena(["run", "x.dag"]).expect(1);
    let status = p.read("status");
    assert!(status.contains("NodesDone = 2;") && status.contains("NodesFailed = 1;"), "{status}");
    assert!(status.contains("Node = \"b\";\n  NodeStatus = 6; /* \"STATUS_ERROR\" */"), "{status}");
    assert!(p.read("graph.dot").contains("\"b\" -> \"c\" [style=dashed];"));
    let states: Vec<String> = p
        .read("states")
        .lines()
        .map(|l| l.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(states[1..5], ["a SUBMIT", "a EXECUTE", "a JOB_TERMINATED", "a JOB_SUCCESS"]);
    std::fs::remove_file(p.path("fail-b")).unwrap();
    std::fs::remove_file(p.path("journal")).unwrap();
    p.catena(["run", "x.dag", "--rescue", "save_files/b-x.dag.save"]).expect(0);
    assert_eq!(journal(&p), ["b", "c"]);
}

#[test]
fn a_killed_dag_goes_on_and_repeats_nothing_that_is_committed() {
    let p = project(&format!(
        "{}PARENT a CHILD b c\nPARENT b c CHILD d\nSCRIPT POST b post.sh\n",
        jobs("a b c d")
    ));
    script(&p, "job.sh", "echo $1 >> journal; test $1 != c || test -e flag || sleep 64.375");
    script(&p, "post.sh", "echo post >> journal");
    let run = p.start(["run", "x.dag", "-j", "2"]);
    wait_until("b is done", || journal(&p).contains(&"post".to_owned()));
    wait_until("that is written down", || {
        let status = p.catena(["status", "--json"]).stdout;
        serde_json::from_str::<serde_json::Value>(&status).is_ok_and(|s| s["chains"]["succeeded"] == 3)
    });
    signal(&run, "KILL");
    finish(run);
    p.write("flag", "");
    p.catena(["run", "x.dag"]).expect(0).says("goes on");
    let mut all = journal(&p);
    all.sort();
    assert_eq!(all, ["a", "b", "c", "c", "d", "post"]);
    assert!(processes_with("sleep 64.375").is_empty());
    assert!(!p.exists("x.dag.rescue001"));
}

#[test]
fn ctrl_c_stops_a_dag_which_then_goes_on() {
    let p = project(&format!("{}PARENT a CHILD b\n", jobs("a b")));
    script(&p, "job.sh", "echo $1 >> journal; test $1 != b || test -e flag || sleep 64.625");
    let run = p.start(["run", "x.dag"]);
    wait_until("b runs", || !processes_with("sleep 64.625").is_empty());
    signal(&run, "INT");
    assert_eq!(finish(run).code, Some(130));
    assert!(processes_with("sleep 64.625").is_empty());
    p.write("flag", "");
    p.catena(["run", "x.dag"]).expect(0).says("goes on");
    assert_eq!(journal(&p), ["a", "b", "b"]);
}

#[test]
fn priorities_and_orders_decide_who_comes_first() {
    let p = project(&format!("{}PARENT a CHILD b\nPARENT c CHILD d e\n", jobs("a b c d e")));
    p.catena(["run", "x.dag", "-j", "1", "--order", "prio"]).expect(0);
    assert_eq!(journal(&p), ["c", "a", "b", "d", "e"]);
    std::fs::remove_file(p.path("journal")).unwrap();
    p.catena(["prio", "x.dag", "--in-place"]).expect(0);
    p.catena(["run", "x.dag", "-j", "1"]).expect(0);
    assert_eq!(journal(&p), ["c", "a", "b", "d", "e"]);
}

#[test]
fn what_cannot_be_done_with_a_dag_is_said() {
    let p = project(&jobs("a"));
    p.catena(["plan", "x.dag"]).expect(2).says("is a DAG file");
    p.write("w.yaml", "catena: 1\nsteps:\n  t: { run: 'true' }\n");
    p.catena(["run", "w.yaml", "--max-jobs", "2"]).expect(2).says("are for DAG files");
    p.write("y.dag", "SUBDAG EXTERNAL s y.dag\n");
    p.catena(["run", "y.dag"]).expect(1).says("is a node of itself");
    p.write("fail-a", "1");
    p.catena(["run", "x.dag"]).expect(1);
    p.catena(["retry"]).expect(2).says("goes on from its rescue file");
}
