//! Running workflows: results, cache, failures, limits, control.

use crate::project::{Project, finish, processes_with, signal, wait_until};

const COUNT: &str = r#"
catena: 1
name: line-count
inputs:
  reads: { glob: "data/*.txt" }
  min: 5
steps:
  count:
    for: read in reads
    run: wc -l < {read} > {out}
    out: "{read.stem}.count"
  total:
    run: cat {count.out} | awk '{s += $1} END {print s}' > {out}
    out: total.txt
  never:
    when: "{min} > 100"
    run: echo never > {out}
    out: never.txt
  after_never:
    run: cat {never.out} > {out}
    out: x.txt
results:
  total: "{total.out}"
  counts: "{count.out}"
"#;

fn count() -> Project {
    let project = Project::with(COUNT);
    for (name, lines) in [("a", 3), ("b", 4), ("c", 5)] {
        project.write(&format!("data/{name}.txt"), "x\n".repeat(lines));
    }
    project
}

#[test]
fn a_workflow_runs_and_its_results_are_where_the_user_looks() {
    let p = count();
    let done = p.catena(["run", "."]).expect(0);
    assert_eq!(p.read("results/total.txt"), "12\n");
    assert_eq!(p.read("results/counts/b.count").trim(), "4");
    assert!(done.stdout.contains("total: "), "{}", done.stdout);
    assert!(done.stderr.contains("4 tasks, 2 skipped"), "{}", done.stderr);
}

#[test]
fn inputs_can_be_set_from_outside() {
    let p = count();
    p.write("set.yaml", "min: 1000\n");
    p.catena(["run", ".", "--inputs", "set.yaml"]).expect(0).says("6 tasks");
    p.catena(["run", ".", "-i", "mni=3"]).expect(2).says("did you mean `min`?");
}

#[test]
fn unchanged_tasks_are_not_run_again() {
    let p = count();
    p.catena(["run", "."]).expect(0);
    let again = p.catena(["run", ".", "--json"]).expect(0);
    assert!(again.executed().is_empty(), "{:?}", again.executed());

    p.write("data/b.txt", "x\n".repeat(40));
    let edited = p.catena(["run", ".", "--json"]).expect(0);
    assert_eq!(edited.executed(), ["count$1", "total"]);
    assert_eq!(p.read("results/total.txt"), "48\n");

    let explained = p.catena(["run", ".", "--explain", "--no-cache"]).expect(0);
    assert!(explained.stderr.contains("count$0: runs"), "{}", explained.stderr);
}

#[test]
fn only_what_depends_on_an_edited_step_runs_again_and_says_why() {
    let p = count();
    p.catena(["run", "."]).expect(0);
    p.write("workflow.yaml", COUNT.replace("print s", "print s * 2"));
    let edited = p.catena(["run", ".", "--explain"]).expect(0);
    assert!(edited.stderr.contains("total: runs because its command has changed"), "{}", edited.stderr);
    assert!(edited.stderr.contains("count$2: taken from the cache"), "{}", edited.stderr);
    assert_eq!(p.read("results/total.txt"), "24\n");
}

#[test]
fn a_lost_result_is_made_again() {
    let p = count();
    p.catena(["run", "."]).expect(0);
    std::fs::remove_dir_all(p.path(".catena/runs/1/data")).unwrap();
    p.catena(["run", "."]).expect(0);
    assert_eq!(p.read("results/total.txt"), "12\n");
}

#[test]
fn the_long_form_means_the_same() {
    let p = count();
    let long = p.catena(["convert", "workflow.yaml"]).expect(0).stdout;
    p.write("long.yaml", &long);
    p.catena(["run", "long.yaml", "--out", "long"]).expect(0);
    assert_eq!(p.read("long/total.txt"), "12\n");
}

#[test]
fn a_failure_tells_everything_needed_to_find_its_cause() {
    let p = Project::with(
        "catena: 1\nsteps:\n  bad: { run: 'echo some output; echo the cause >&2; exit 7', out: x }\n  good: { run: 'echo ok > {out}', out: y }\n  blocked: { run: 'cat {bad.out} > {out}', out: z }\n",
    );
    let done = p.catena(["run", "."]).expect(1);
    for text in
        ["task bad failed: it ended with exit code 7", "command: echo some output", "| the cause", ".err"]
    {
        assert!(done.stderr.contains(text), "`{text}` is missing in:\n{}", done.stderr);
    }
    let logs = p.catena(["logs", "bad"]).expect(0);
    assert!(logs.stdout.contains("some output") && logs.stdout.contains("the cause"), "{}", logs.stdout);
    let status = p.catena(["status", "--json"]).expect(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["failures"][0]["failure"]["exit_code"], 7);
    assert_eq!(status["chains"]["succeeded"], 1);
}

#[test]
fn retry_runs_only_what_failed() {
    let p = Project::with(
        "catena: 1\nsteps:\n  good: { run: 'echo ok > {out}', out: y }\n  flaky: { run: 'test -e @fixed && cp {good.out} {out}', out: x, cache: false }\n",
    );
    p.catena(["run", "."]).expect(1);
    p.write("fixed", "");
    let retried = p.catena(["retry", "--json"]).expect(0);
    assert_eq!(retried.executed(), ["flaky"]);
    p.catena(["retry", "99"]).expect(2).says("no run 99");
}

#[test]
fn fail_fast_starts_nothing_more() {
    let p = Project::with(
        "catena: 1\ninputs: { xs: { range: 200 } }\nsteps:\n  t: { for: x in xs, run: 'sleep 0.02; exit 1' }\n",
    );
    let done = p.catena(["run", ".", "--fail-fast", "--json"]).expect(1);
    assert!(done.executed().len() < 200);
}

#[test]
fn tasks_are_tried_again_as_often_as_allowed() {
    let p = Project::with(
        "catena: 1\nsteps:\n  t:\n    run: |\n      echo x >> @count\n      test $(wc -l < @count) -ge 3\n      echo done > {out}\n    out: r\n    retries: { maxAttempts: 3, delay: 10ms, exponentialBackoff: 2 }\nresults: { r: '{t.out}' }\n",
    );
    p.catena(["run", "."]).expect(0);
    assert_eq!(p.read("count"), "x\nx\nx\n");
}

#[test]
fn whole_chains_are_tried_again_where_the_workflow_says_so() {
    let p = Project::new();
    p.write("t.sh", "#!/bin/sh\necho x >> \"$1\"\ntest $(wc -l < \"$1\") -ge 3\n");
    std::fs::set_permissions(p.path("t.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    p.write(
        "workflow.yaml",
        format!(
            "api: 4.7.0\nretries: {{processChains: {{maxAttempts: 3, delay: 10ms}}}}\nservices:\n  - {{id: t, path: ./t.sh, parameters: [{{id: i, type: input, cardinality: 1..1}}]}}\nactions:\n  - {{type: execute, id: a, service: t, inputs: [{{id: i, value: '{}'}}]}}\n",
            p.path("count").display()
        ),
    );
    p.catena(["run", "."]).expect(0).says("will be tried again");
    assert_eq!(p.read("count"), "x\nx\nx\n");
}

#[test]
fn time_limits_end_tasks() {
    for (field, message) in [
        ("timeout: 300ms", "it ran longer than its limit of 300ms"),
        (
            "maxInactivity: { timeout: 300ms, errorOnTimeout: true }",
            "it wrote nothing for its limit of 300ms",
        ),
        ("deadline: 300ms", "it was not done within its deadline of 300ms"),
    ] {
        let p = Project::with(&format!("catena: 1\nsteps:\n  t: {{ run: 'sleep 61.25', {field} }}\n"));
        p.catena(["run", "."]).expect(1).says(message);
        assert!(processes_with("sleep 61.25").is_empty());
    }
}

#[test]
fn a_limit_that_is_no_error_cancels() {
    let p = Project::with(
        "api: 4.7.0\nactions:\n  - {type: execute, id: a, run: sleep 62.25, maxRuntime: 200ms}\n",
    );
    p.catena(["run", "."]).expect(3);
}

#[test]
fn capabilities_must_be_offered_by_someone() {
    let p = Project::with("catena: 1\nsteps:\n  t: { run: 'true', needs: [gpu, ubuntu] }\n");
    p.catena(["run", ".", "--capability", "ubuntu"]).expect(1).says("lacks `gpu`");
    p.catena(["run", ".", "--capability", "ubuntu", "--capability", "gpu"]).expect(0);
}

#[test]
fn resources_limit_what_runs_at_once() {
    let p = Project::with(
        "catena: 1\ninputs: { xs: { range: 6 } }\nsteps:\n  t: { for: x in xs, run: 'mkdir @lock && sleep 0.05 && rmdir @lock', resources: { licences: 1, cpus: 0.1 } }\n",
    );
    p.catena(["run", ".", "--resource", "licences=1", "-j", "4"]).expect(0);
    p.catena(["run", ".", "--new", "--no-cache"]).expect(1).says("licences");
}

#[test]
fn a_run_can_be_cancelled_from_elsewhere() {
    let p = Project::with("catena: 1\nsteps:\n  t: { run: 'sleep 63.25' }\n");
    let run = p.start(["run", "."]);
    wait_until("the task runs", || !processes_with("sleep 63.25").is_empty());
    assert!(p.catena(["status"]).expect(0).stdout.contains("running"));
    assert!(p.catena(["cancel"]).expect(0).stdout.contains("cancelled"));
    finish(run).expect(3);
    assert!(processes_with("sleep 63.25").is_empty());
    p.catena(["cancel"]).expect(2).says("is over already");
}

#[test]
fn ctrl_c_stops_cleanly_and_the_run_goes_on_later() {
    let p = Project::with(
        "catena: 1\nsteps:\n  a: { run: 'echo a > {out}', out: a }\n  b: { run: 'cat {a.out}; test -e @flag || sleep 64.25; echo b > {out}', out: b, after: [a], cpus: 2 }\nresults: { b: '{b.out}' }\n",
    );
    let run = p.start(["run", ".", "-j", "2"]);
    wait_until("the task runs", || !processes_with("sleep 64.25").is_empty());
    signal(&run, "INT");
    finish(run).expect(130).says("run the same command again to go on");
    assert!(processes_with("sleep 64.25").is_empty());
    assert!(p.catena(["list"]).expect(0).stdout.contains("interrupted"));
    p.write("flag", "");
    let resumed = p.catena(["run", ".", "-j", "2", "--json"]).expect(0);
    assert_eq!(resumed.executed(), ["b"]);
}

#[test]
fn a_second_ctrl_c_ends_everything_at_once() {
    // The task takes no notice of being asked to end.
    let p = Project::with("catena: 1\nsteps:\n  t: { run: \"trap '' TERM; sleep 67.25; sleep 67.25\" }\n");
    let run = p.start(["run", "."]);
    wait_until("the task runs", || !processes_with("sleep 67.25").is_empty());
    signal(&run, "INT");
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(&run, "INT");
    finish(run).expect(130);
    wait_until("the task is gone", || processes_with("sleep 67.25").is_empty());
}

#[test]
fn logs_can_be_followed_while_a_task_writes() {
    let p = Project::with(
        "catena: 1\nsteps:\n  t: { run: 'for i in 1 2 3; do echo line $i; sleep 0.3; done' }\n",
    );
    let run = p.start(["run", "."]);
    wait_until("the log is there", || p.exists(".catena/runs/1/logs/0-1-0.out"));
    let followed = p.catena(["logs", "-f"]).expect(0);
    finish(run).expect(0);
    assert!(followed.stdout.contains("line 1") && followed.stdout.contains("line 3"), "{}", followed.stdout);
}

#[test]
fn a_report_is_one_page_with_everything() {
    let p = count();
    p.catena(["run", "."]).expect(0);
    p.catena(["report"]).expect(0);
    let page = p.read("report.html");
    for text in ["line-count", "Timeline", "Durations", "<svg", "total", "count$1"] {
        assert!(page.contains(text), "`{text}` is missing");
    }
    assert!(!page.contains("src=") && !page.contains("href="), "the page must not need anything else");
}

#[test]
fn graphs_come_in_three_formats() {
    let p = count();
    assert!(p.catena(["graph", ".", "--format", "dot"]).expect(0).stdout.contains("n0 -> n1"));
    assert!(p.catena(["graph", ".", "--format", "mermaid"]).expect(0).stdout.contains("n0 --> n1"));
    p.catena(["graph", ".", "-o", "g.svg"]).expect(0);
    assert!(p.read("g.svg").starts_with("<svg"));
}

#[test]
fn a_dry_run_starts_nothing_and_leaves_nothing() {
    let p = Project::with(
        "catena: 1\ninputs: { xs: { range: 5000 } }\nsteps:\n  t: { for: x in xs, run: 'touch BAD; echo > {out}', out: x }\n  u: { run: 'cat {t.out} > {out}', out: y }\n",
    );
    p.catena(["run", ".", "--dry-run=execute"]).expect(0).says("5001 tasks");
    assert!(!p.exists("BAD") && !p.exists("results"));
    assert!(p.catena(["list"]).code == Some(2));
}

#[test]
fn the_schema_and_completions_are_printed() {
    let p = Project::new();
    let schema: serde_json::Value = serde_json::from_str(&p.catena(["schema"]).expect(0).stdout).unwrap();
    assert!(schema["$defs"]["execute"].is_object());
    for shell in ["bash", "zsh", "fish"] {
        assert!(p.catena(["completions", shell]).expect(0).stdout.contains("catena"));
    }
}

#[test]
fn services_and_macros_may_stand_in_the_project_file() {
    let p = Project::new();
    p.write(
        "catena.yaml",
        "services: services.yaml\nmacros: [macros.yaml]\nagent: { capabilities: [copying] }\n",
    );
    p.write("services.yaml", "- {id: cp, name: cp, description: x, path: cp, runtime: other, requiredCapabilities: [copying], parameters: [{id: i, name: i, description: i, type: input, cardinality: 1..1, dataType: file}, {id: o, name: o, description: o, type: output, cardinality: 1..1, fileSuffix: .txt}]}\n");
    p.write("macros.yaml", "- {id: twice, name: t, description: t, parameters: [{id: from, name: f, description: f, type: input}, {id: to, name: t, description: t, type: output}], actions: [{type: execute, id: a, service: cp, inputs: [{id: i, var: from}], outputs: [{id: o, var: middle}]}, {type: execute, id: b, service: cp, inputs: [{id: i, var: middle}], outputs: [{id: o, var: to, store: true}]}]}\n");
    p.write("in.txt", "hello\n");
    p.write("workflow.yaml", "api: 4.7.0\nvars: [{id: x, value: in.txt}]\nactions:\n  - {type: include, macro: twice, inputs: [{id: from, var: x}], outputs: [{id: to, var: y}]}\nresults: {copy: y}\n");
    p.catena(["run", "."]).expect(0);
    let stored: Vec<_> = std::fs::read_dir(p.path("results/1")).unwrap().flatten().collect();
    assert_eq!(stored.len(), 1);
    assert_eq!(std::fs::read_to_string(stored[0].path()).unwrap(), "hello\n");
}
