//! Virtual time from the command line.

use crate::project::{Done, Project};
use serde_json::Value;
use std::process::Command;

const CLUSTER: &str = "nodes:\n  - {id: small, count: 1, max: 5, cpus: 2, price: 1.5, boot: 30 s, idle: 1 min}\n  \
                       - {id: fast, count: 1, speed: 2, price: 0.5}\n\
                       storage: local\nnetwork: {bandwidth: 100 MB/s, latency: 1 ms, sharing: fair}\n\
                       chance: {spread: 20 %, stragglers: 5 %, failures: 2 %}\n";

fn catena(project: &Project, arguments: &[&str]) -> Done {
    project.command(arguments).output().unwrap().into()
}

fn results(text: &str) -> Vec<Value> {
    let said: Value = serde_json::from_str(text).unwrap();
    said["results"].as_array().unwrap().clone()
}

#[test]
fn a_described_cluster_is_simulated_and_drawn() {
    let project = Project::new();
    project.write("c.yaml", CLUSTER);
    let command =
        ["simulate", "montage:100", "--cluster", "c.yaml", "--policy", "catena,fcfs", "--seeds", "2"];
    let said = catena(&project, &[&command[..], &["--json", "--svg", "pictures"]].concat()).expect(0).stdout;
    let results = results(&said);
    assert_eq!(results.len(), 4);
    for result in &results {
        let number = |key: &str| result[key].as_f64().unwrap();
        assert!(number("makespan") > 0.0 && number("cost") > 0.0 && number("bytes_moved") > 0.0, "{result}");
        assert!((0.0..=1.0).contains(&number("utilisation")), "{result}");
        assert_eq!((number("tasks"), number("nodes")), (100.0, 6.0));
    }
    let again = catena(&project, &[&command[..], &["--json"]].concat());
    assert_eq!(said, again.expect(0).stdout, "repeatable");
    // On one processor the same comes out.
    let alone = project.command([&command[..], &["--json"]].concat());
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", "0"]).arg(alone.get_program()).args(alone.get_args()).current_dir(project.root());
    assert_eq!(
        said,
        Done::from(taskset.output().unwrap()).expect(0).stdout,
        "whatever the number of threads"
    );
    for picture in ["montage-100-busy.svg", "montage-100-catena-6-nodes.svg", "montage-100-fcfs-6-nodes.svg"]
    {
        assert!(project.read(&format!("pictures/{picture}")).contains("</svg>"), "{picture}");
    }
    let table = project.catena(command).expect(0).stdout;
    assert!(table.contains("cost") && table.contains("in vain"), "{table}");
}

#[test]
fn more_nodes_take_less_time_until_the_longest_path_decides() {
    let project = Project::new();
    let command =
        ["simulate", "sipht:300", "--nodes", "1,8,64,300", "--policy", "catena,heft", "--json", "--svg", "p"];
    let all = results(&project.catena(command).expect(0).stdout);
    let makespan = |n: usize| all[2 * n]["makespan"].as_f64().unwrap();
    assert!(makespan(0) > makespan(1) && makespan(1) > makespan(2) && makespan(2) >= makespan(3));
    let last = &all[6];
    assert_eq!(last["makespan"], last["lower_bound"], "the longest path: {last}");
    assert!(project.read("p/sipht-300-makespan.svg").contains("catena"));
    let csv = project.catena(["simulate", "sipht:300", "--nodes", "8", "--csv"]).expect(0).stdout;
    assert_eq!(csv.lines().count(), 2);
    assert!(csv.starts_with("workflow,tasks,nodes,policy,seed,makespan,"));
}

#[test]
fn a_run_that_has_ended_tells_how_long_it_would_take_elsewhere() {
    let project = Project::new();
    project.write(
        "wf.yaml",
        "catena: 1\ninputs: {xs: [1, 2, 3, 4]}\nsteps:\n  one:\n    for: x in xs\n    run: sleep 0.2; echo {x} > {out}\n    \
         out: \"{x}.txt\"\n  all:\n    run: cat {one.out} > {out}\n    out: all.txt\nresults: {all: \"{all.out}\"}\n",
    );
    project.catena(["run", "wf.yaml"]).expect(0);
    let all = results(
        &project.catena(["simulate", "--calibrate", "1", "--nodes", "1,4", "--json"]).expect(0).stdout,
    );
    let makespan = |n: usize| all[n]["makespan"].as_f64().unwrap();
    assert_eq!(all[0]["tasks"], 5);
    // Four tasks of a fifth of a second, one after the other or all at once, and one that waits for them.
    assert!(makespan(0) >= 0.8 && makespan(0) >= 2.0 * makespan(1), "{} {}", makespan(0), makespan(1));
    assert!(makespan(1) > 0.2);
    // The same steps in a workflow that was not recorded.
    let command = ["simulate", "wf.yaml", "--calibrate", "1", "--nodes", "1", "--json"];
    let own = results(&project.catena(command).expect(0).stdout);
    assert_eq!(own[0]["tasks"], 2);
    assert!(own[0]["makespan"].as_f64().unwrap() > 0.2);
    let none = project.catena(["simulate", "--calibrate", "7"]).expect(2).stderr;
    assert!(none.contains("there is no run 7"), "{none}");
}

#[test]
fn what_cannot_be_simulated_is_explained() {
    let project = Project::new();
    project.write("bad.yaml", "nodes:\n  cout: 3\nstorage: cloud\n");
    project.write("wide.json", r#"{"name": "x", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a", "parents": [], "children": []}], "files": []}, "execution": {"tasks": [{"id": "a", "runtimeInSeconds": 1, "coreCount": 64}]}}}"#);
    project.write("c.yaml", CLUSTER);
    let cases: [(&[&str], &[&str]); 8] = [
        (
            &["montage:100", "--cluster", "bad.yaml"],
            &["bad.yaml:2:3", "did you mean `count`", "bad.yaml:3:10"],
        ),
        (&["montage:100", "--cluster", "nowhere"], &["adage-local"]),
        (&["montage:100", "--cluster", "nowhere.yaml"], &["nowhere.yaml"]),
        (&["montage:100", "--cluster", "c.yaml", "--policy", "heft"], &["`heft`", "on demand"]),
        (&["wide.json", "--cluster", "c.yaml"], &["`a`", "64 cpus", "`small`"]),
        (&["montage:100", "--policy", "catena+order:random"], &["critical-path"]),
        (&["montage:many"], &["montage:1000"]),
        (&["montage:100", "--spread", "1.5"], &["less than 1"]),
    ];
    for (arguments, expected) in cases {
        let said = catena(&project, &[&["simulate"], arguments].concat()).expect(2).stderr;
        for part in expected {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn the_evaluation_of_adage_is_repeated() {
    let project = Project::new();
    let command = [
        "reproduce",
        "adage",
        "--nodes",
        "1,16",
        "--tasks",
        "100,200",
        "--seeds",
        "1",
        "--out",
        "o",
        "--json",
    ];
    let said: Value = serde_json::from_str(&project.catena(command).expect(0).stdout).unwrap();
    assert_eq!(said["results"].as_array().unwrap().len(), 5 * 2 * 5);
    for ratio in said["ratios"].as_array().unwrap() {
        assert!(ratio["worst"].as_f64().unwrap() < 1.05, "{ratio}");
    }
    for picture in
        ["adage-3-montage.svg", "adage-4-cybershake.svg", "adage-5-sipht.svg", "adage-6-inspiral.svg"]
    {
        assert!(project.read(&format!("o/{picture}")).contains("albatross"), "{picture}");
    }
}
