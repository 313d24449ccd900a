//! Whatever is wrong, there is a message that says what, where and what to do, and nothing is lost.

use crate::project::{Done, Project, finish, processes_with, wait_until};
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn check(text: impl AsRef<[u8]>) -> Done {
    let p = Project::new();
    p.write("w.yaml", text);
    p.catena(["check", "w.yaml"])
}

#[test]
fn a_file_that_is_not_utf8() {
    check(b"catena: 1\nname: caf\xe9\n").expect(2).says("w.yaml:2:10: the file is not UTF-8");
}

#[test]
fn a_hundred_megabytes_of_yaml() {
    let mut text = String::with_capacity(101 << 20);
    text.push_str("api: 4.7.0\nvars:\n");
    let line = format!("  - {{id: v, value: '{}'}}\n", "x".repeat(10_000));
    while text.len() < 100 << 20 {
        text.push_str(&line);
    }
    text.push_str("actions: [}\n");
    check(text).expect(2).says("error[yaml-syntax]");
}

#[test]
fn a_yaml_bomb() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..20 {
        let items = vec![format!("*a{}", i - 1); 9].join(", ");
        let _ = writeln!(text, "a{i}: &a{i} [{items}]");
    }
    check(text).expect(2).says("aliases");
}

#[test]
fn cycles_through_data_and_through_order() {
    check("catena: 1\nsteps:\n  a: { run: 'cat {b.out} > {out}', out: a }\n  b: { run: 'cat {a.out} > {out}', out: b }\n")
        .expect(2)
        .says("these actions wait for each other: `a`, `b`");
    check("catena: 1\nsteps:\n  a: { run: 'true', after: [b] }\n  b: { run: 'true', after: [a] }\n")
        .expect(2)
        .says("wait for each other");
}

#[test]
fn an_unknown_service() {
    check("api: 4.7.0\nactions:\n  - {type: execute, id: a, service: nope}\n")
        .expect(2)
        .says("there is no service `nope`");
}

#[test]
fn a_wrong_cardinality() {
    check("api: 4.7.0\nservices: [{id: s, path: cat, parameters: [{id: i, type: input, cardinality: 2..3}]}]\nactions:\n  - {type: execute, id: a, service: s, inputs: [{id: i, value: x}]}\n")
        .expect(2)
        .says("is given 1 times, but its cardinality is 2..3");
}

#[test]
fn a_cardinality_that_turns_out_wrong_during_the_run() {
    let p = Project::with(
        "api: 4.7.0\nservices: [{id: s, path: cat, parameters: [{id: i, type: input, cardinality: 1..1}]}]\nvars: [{id: l, value: [a, b]}]\nactions:\n  - {type: for, input: l, enumerator: e, output: all, yieldToOutput: o, actions: [{type: execute, id: t, run: 'echo > {o}', outputs: [{id: o, var: o, as: f}]}]}\n  - {type: execute, id: a, service: s, inputs: [{id: i, var: all}]}\n",
    );
    p.catena(["run", "."]).expect(1).says("is given 2 times, but its cardinality is 1..1 (action `a`)");
}

#[test]
fn a_missing_workflow_and_a_missing_input_file() {
    Project::new().catena(["run", "nowhere.yaml"]).expect(2).says("cannot read nowhere.yaml");
    Project::new().catena(["run", "."]).expect(2).says("is a directory without a workflow");
    check("catena: 1\ninputs: { x: { file: nowhere.txt } }\nsteps: {}\n").expect(2).says("there is no file");
}

const FILE_SERVICE: &str = "api: 4.7.0\nservices: [{id: s, path: cat, parameters: [{id: i, type: input, cardinality: 1..1, dataType: file}]}]\nactions:\n  - {type: execute, id: a, service: s, inputs: [{id: i, value: NAME}]}\n";

#[test]
fn an_input_that_is_not_there_or_a_directory() {
    let p = Project::with(&FILE_SERVICE.replace("NAME", "gone.txt"));
    p.catena(["run", "."]).expect(1).says("its input `i` cannot be read");
    let p = Project::with(&FILE_SERVICE.replace("NAME", "dir"));
    std::fs::create_dir(p.path("dir")).unwrap();
    p.catena(["run", "."]).expect(1).says("must be a file, but").says("is a directory");
}

#[test]
fn a_program_that_does_not_exist_or_is_not_executable() {
    let text = "api: 4.7.0\nservices: [{id: s, path: PATH, parameters: [], package: some-package}]\nactions:\n  - {type: execute, id: a, service: s}\n";
    let p = Project::with(&text.replace("PATH", "no-such-program"));
    p.catena(["run", "."])
        .expect(1)
        .says("`no-such-program` cannot be started")
        .says("in the package `some-package`");
    let p = Project::with(&text.replace("PATH", "./tool.sh"));
    p.write("tool.sh", "#!/bin/sh\n");
    std::fs::set_permissions(p.path("tool.sh"), PermissionsExt::from_mode(0o644)).unwrap();
    p.catena(["run", "."]).expect(1).says("chmod +x");
}

#[test]
fn an_output_that_is_missing_after_success() {
    let p = Project::with("catena: 1\nsteps:\n  a: { run: 'true', out: x.txt }\n");
    p.catena(["run", "."]).expect(1).says("it succeeded, but has not written its output `out`");
    let p = Project::with("catena: 1\nsteps:\n  a: { run: 'mkdir {out}', out: x.txt }\n");
    p.catena(["run", "."]).expect(1).says("must be a file, but it made a directory");
}

#[test]
fn a_task_that_is_killed() {
    let p = Project::with("catena: 1\nsteps:\n  a: { run: 'kill -SEGV $$' }\n");
    p.catena(["run", "."]).expect(1).says("killed by signal 11 (SIGSEGV)");
}

#[test]
fn a_task_that_writes_ten_gigabytes() {
    let p = Project::with(
        "catena: 1\nsteps:\n  a: { run: 'echo begin; head -c 10000000000 /dev/zero; echo; echo end' }\n",
    );
    p.catena(["run", "."]).expect(0);
    let log = std::fs::read(p.path(".catena/runs/1/logs/0-1-0.out")).unwrap();
    assert!(
        log.len() < 20 << 20 && log.starts_with(b"begin\n") && log.ends_with(b"\nend\n"),
        "{} bytes",
        log.len()
    );
}

#[test]
fn a_task_that_leaves_children_behind() {
    let p = Project::with(
        "catena: 1\nsteps:\n  a: { run: 'sleep 71.25 & setsid sleep 72.25 & sleep 0.1; echo done > {out}', out: x }\n  b: { run: 'sleep 0.5; cat {a.out}' }\n",
    );
    p.catena(["run", "."]).expect(0);
    wait_until("the children are gone", || {
        processes_with("sleep 71.25").is_empty() && processes_with("sleep 72.25").is_empty()
    });
}

#[test]
fn names_with_spaces_quotes_newlines_and_dots() {
    let p = Project::with(
        "catena: 1\ninputs: { files: { glob: 'data/*' }, text: \"it's $(touch BAD) `touch BAD` \\\"x\\\"\\n; touch BAD\" }\nsteps:\n  copy: { for: f in files, run: 'cat {f} > {out}', out: '{f.name}' }\n  say: { run: 'printf %s {text} > {out}', out: said }\nresults: { copies: '{copy.out}', said: '{say.out}' }\n",
    );
    let names = ["a b.txt", "it's", "\"quoted\"", "new\nline", "$(touch BAD)", "-rf", "x..y", "*", "ünïcode"];
    for name in names {
        p.write(&format!("data/{name}"), name);
    }
    p.catena(["run", "."]).expect(0);
    for name in names {
        assert_eq!(p.read(&format!("results/copies/{name}")), name);
    }
    assert_eq!(p.read("results/said"), "it's $(touch BAD) `touch BAD` \"x\"\n; touch BAD");
    assert!(!p.exists("BAD"));
}

#[test]
fn outputs_that_would_leave_their_directory() {
    check("catena: 1\nsteps:\n  a: { run: 'true', out: ../x }\n")
        .expect(2)
        .says("cannot be the name of an output");
    let p = Project::with(
        "catena: 1\ninputs: { n: '../../x' }\nsteps:\n  a: { run: 'echo > {out}', out: '{n}' }\n",
    );
    p.catena(["run", "."]).expect(1).says("leaves its directory");
}

#[test]
fn two_runs_in_the_same_directory() {
    let p = Project::with(
        "catena: 1\nsteps:\n  a: { run: 'test -e @flag || sleep 73.25; echo > {out}', out: x }\n",
    );
    let first = p.start(["run", "."]);
    wait_until("the first runs", || !processes_with("sleep 73.25").is_empty());
    p.catena(["run", "."]).expect(2).says("another catena is working in").says("--state");
    p.write("flag", "");
    p.catena(["run", ".", "--state", "other"]).expect(0);
    for pid in processes_with("sleep 73.25") {
        Command::new("kill").arg(pid.to_string()).status().unwrap();
    }
    finish(first);
    p.catena(["run", "."]).expect(0);
}

#[test]
fn a_full_disk() {
    let p = Project::with(
        "catena: 1\ninputs: { xs: { range: 400 } }\nsteps:\n  a: { for: x in xs, run: 'head -c 20000 /dev/zero > {out}', out: '{x}' }\n",
    );
    // A small disk of our own, in a namespace that goes away with the process.
    let script = format!(
        "mkdir -p small && mount -t tmpfs -o size=3m none small && {0} run . --state small/state > log 2>&1; echo $? > code; rm -rf small/state/runs; {0} list --state small/state > list 2>&1; echo $? > code2",
        env!("CARGO_BIN_EXE_catena")
    );
    let status =
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(p.root()).status().unwrap();
    assert!(status.success());
    let log = p.read("log");
    assert!(["1\n", "2\n"].contains(&p.read("code").as_str()), "{log}");
    assert!(log.to_lowercase().contains("space"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert_eq!(p.read("code2"), "0\n", "{}", p.read("list"));
}

#[test]
fn a_clock_that_jumps() {
    let p = Project::with(
        "catena: 1\nsteps:\n  a: { run: 'sleep 1.5; echo > {out}', out: x, timeout: 20s, retries: 1 }\n  b: { run: 'cat {a.out}; sleep 0.3', timeout: 20s }\n",
    );
    p.write("clock", "+0\n");
    let library = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ];
    let library = library.iter().find(|f| std::path::Path::new(f).exists()).expect("the package faketime");
    let mut command = p.command(["run", "."]);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", p.path("clock"))
        .env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let run = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    for jump in ["+3h", "-2d", "+400d"] {
        std::thread::sleep(std::time::Duration::from_millis(400));
        p.write("clock", jump);
    }
    finish(run).expect(0);
}

#[test]
fn an_unusable_state_directory() {
    let p = Project::with("catena: 1\nsteps: {}\n");
    p.write("file", "");
    p.catena(["run", ".", "--state", "file/state"]).expect(2).says("cannot be used");
    p.write(".catena/catena.db", "this is no database, but it is long enough to look like one ".repeat(100));
    p.catena(["run", "."]).expect(2).says("is not a Catena store");
    assert!(p.read(".catena/catena.db").starts_with("this is no database"));
}

#[test]
fn an_empty_workflow_succeeds() {
    let p = Project::with("catena: 1\nsteps: {}\n");
    p.catena(["run", "."]).expect(0).says("0 tasks");
}
