//! What happens when catena is killed.

use crate::project::{Project, finish, processes_with, signal, wait_until};
use std::collections::{HashMap, HashSet};

/// A workflow whose tasks write down that they ran.
fn workflow(p: &Project, tasks: usize) -> String {
    format!(
        "catena: 1\ninputs: {{ xs: {{ range: {tasks} }} }}\nsteps:\n  t: {{ for: x in xs, run: 'echo {{x}} >> {0}; sleep 0.01; echo {{x}} > {{out}}', out: '{{x}}.txt', cache: false }}\n  sum: {{ run: 'cat {{t.out}} | wc -l > {{out}}', out: sum.txt }}\nresults: {{ sum: '{{sum.out}}' }}\n",
        p.path("journal").display()
    )
}

#[test]
fn after_a_sigkill_nothing_is_lost_and_nothing_committed_is_repeated() {
    for kill_after in [1, 25, 60] {
        let p = Project::new();
        let text = workflow(&p, 120);
        p.write("workflow.yaml", text);
        let run = p.start(["run", "."]);
        wait_until("some tasks have run", || {
            std::fs::read_to_string(p.path("journal")).is_ok_and(|j| j.lines().count() >= kill_after)
        });
        signal(&run, "KILL");
        assert_eq!(finish(run).signal, Some(9));
        let status: serde_json::Value =
            serde_json::from_str(&p.catena(["status", "--json"]).expect(0).stdout).unwrap();
        assert_eq!(status["state"], "interrupted");
        let committed = status["chains"]["succeeded"].as_u64().unwrap();

        let resumed = p.catena(["run", ".", "--json"]).expect(0);
        assert_eq!(p.read("results/sum.txt").trim(), "120");
        let repeated: HashSet<String> = resumed.executed().into_iter().collect();
        assert!(
            repeated.len() as u64 <= 121 - committed,
            "{} ran after {committed} were committed",
            repeated.len()
        );
        let mut runs: HashMap<String, usize> = HashMap::new();
        for line in p.read("journal").lines() {
            *runs.entry(line.to_owned()).or_default() += 1;
        }
        for x in 1..=120 {
            let n = runs.get(&x.to_string()).copied().unwrap_or(0);
            let again = repeated.contains(&format!("t${}", x - 1));
            assert!(n >= 1, "task {x} was lost");
            assert!(n == 1 || again, "task {x} was committed and ran {n} times");
        }
    }
}

#[test]
fn tasks_of_a_killed_catena_are_ended_before_anything_runs_again() {
    let p = Project::with(
        "catena: 1\nsteps:\n  t: { run: 'test -e @flag || sleep 65.25; echo > {out}', out: x }\n",
    );
    let run = p.start(["run", "."]);
    wait_until("the task runs", || !processes_with("sleep 65.25").is_empty());
    signal(&run, "KILL");
    finish(run);
    assert!(!processes_with("sleep 65.25").is_empty());
    p.write("flag", "");
    p.catena(["run", "."]).expect(0).says("were still running");
    assert!(processes_with("sleep 65.25").is_empty());
}

#[test]
fn loops_with_unknown_lengths_go_on_where_they_were() {
    let p = Project::new();
    p.write(
        "workflow.yaml",
        format!(
            "catena: 1\nsteps:\n  make: {{ run: 'for i in 1 2 3 4 5 6; do echo $i > {{out}}/$i; done', out: parts/ }}\n  use: {{ for: part in make.out, run: 'n=$(cat {{part}}); echo $n >> {0}; test $n -lt 4 || test -e {1} || sleep 66.25; cp {{part}} {{out}}', out: '{{part.name}}', cache: false }}\n  all: {{ run: 'cat {{use.out}} > {{out}}', out: all }}\nresults: {{ all: '{{all.out}}' }}\n",
            p.path("journal").display(),
            p.path("flag").display()
        ),
    );
    let run = p.start(["run", ".", "-j", "2"]);
    wait_until("the loop is half done", || !processes_with("sleep 66.25").is_empty());
    wait_until("the others are committed", || {
        p.catena(["status", "--json"]).stdout.contains("\"succeeded\": 4")
    });
    signal(&run, "KILL");
    finish(run);
    p.write("flag", "");
    p.catena(["run", ".", "-j", "2"]).expect(0);
    assert_eq!(p.read("results/all"), "1\n2\n3\n4\n5\n6\n");
    let journal = p.read("journal");
    assert_eq!(journal.lines().filter(|l| *l == "1").count(), 1);
}
