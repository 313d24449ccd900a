//! DAGMan files: checked, prioritised, generated.

use crate::project::Project;
use serde_json::{Value, json};

const FIVE: &str = "# five jobs\nJOB a a.sub\nJOB b a.sub\nJOB c c.sub\nJOB d c.sub\nJOB e {\n  executable = /bin/true\n}\nPARENT a CHILD b\nPARENT c CHILD d e\n";
const SUBMIT: &str = "executable = /bin/true\npriority = 3\nqueue\n";

fn five() -> Project {
    let project = Project::new();
    project.write("five.dag", FIVE);
    project.write("a.sub", SUBMIT);
    project.write("c.sub", "executable = /bin/true\nqueue 2\n");
    project
}

fn check(project: &Project, code: i32) -> Value {
    serde_json::from_str(&project.catena(["check", "x.dag", "--json"]).expect(code).stdout).unwrap()
}

fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().concat()
}

/// Line and message of each error.
fn errors(text: &str) -> Vec<(u64, String)> {
    let project = Project::new();
    project.write("x.dag", text);
    let said = check(&project, 2);
    let errors = said["errors"].as_array().unwrap().iter();
    errors.map(|e| (e["line"].as_u64().unwrap_or(0), e["message"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn a_checked_file_tells_its_shape() {
    let project = five();
    let said: Value =
        serde_json::from_str(&project.catena(["check", "five.dag", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(
        (&said["nodes"], &said["arcs"], &said["height"], &said["width"]),
        (&json!(5), &json!(3), &json!(2), &json!(3))
    );
    assert_eq!(said["width_by_depth"], json!([2, 3]));
    assert!(project.catena(["check", "five.dag"]).expect(0).stdout.contains("5 nodes, 3 dependencies"));
}

#[test]
fn every_mistake_is_told_with_its_line() {
    let text = "JOB a x\nJOB a x\nJOB all_nodes x\nJOB b+c x\nNODE d x\nJBO d x\nRETRY\nRETRY a many\nPARENT a CHILD z\nVARS a queue1=\"x\"\nSCRIPT a x\nPARENT a\nVARS a k=\"open\nDONE ALL_NODES\nREJECT\n";
    let lines: Vec<u64> = errors(text).into_iter().map(|(line, _)| line).collect();
    let mut sorted = lines.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    let project = Project::new();
    project.write("x.dag", text);
    project
        .catena(["check", "x.dag"])
        .expect(2)
        .says("x.dag:9:16")
        .says("did you mean `JOB`?")
        .says("there is no node `z`");
}

#[test]
fn cycles_are_named() {
    let found = errors("JOB a x\nJOB b x\nJOB c x\nPARENT a CHILD b\nPARENT b CHILD c\nPARENT c CHILD a\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("wait for each other in a circle"), "{found:?}");
    assert!(["a", "b", "c"].iter().all(|n| found[0].1.contains(n)));
}

#[test]
fn files_that_take_in_themselves_are_refused() {
    assert!(errors("SPLICE s x.dag\n")[0].1.contains("SPLICE s: the file takes in itself"));
    assert!(errors("INCLUDE x.dag\n")[0].1.contains("INCLUDE x.dag: the file takes in itself"));
    let project = Project::new();
    project.write("x.dag", "SPLICE s y.dag\n");
    project.write("y.dag", "SPLICE s x.dag\n");
    assert_eq!(check(&project, 2)["errors"].as_array().unwrap().len(), 1);
    project.write("x.dag", "SPLICE s z.dag\n");
    project.catena(["check", "x.dag"]).expect(2).says("z.dag");
}

#[test]
fn files_are_recognised_by_whatever_path_they_are_named() {
    let project = Project::new();
    std::fs::create_dir(project.path("below")).unwrap();
    project.write("x.dag", "JOB a s\nSPLICE one ./x.dag\nSPLICE two below/../x.dag\n");
    let said = check(&project, 2);
    let errors = said["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().all(|e| e["message"].as_str().unwrap().contains("takes in itself")));
}

#[test]
fn splices_that_multiply_are_refused() {
    let project = Project::new();
    for level in 0..40 {
        let next = level + 1;
        project.write(&format!("{level}.dag"), format!("SPLICE a {next}.dag\nSPLICE b {next}.dag\n"));
    }
    project.write("40.dag", "");
    project.catena(["check", "0.dag"]).expect(2).says("more than 131072 files are taken in");
}

#[test]
fn more_splices_than_there_are_numbers_for_files_are_read() {
    let project = Project::new();
    project.write("one.dag", "JOB x s\n");
    let splices = lines(70_000, |i| format!("SPLICE s{i} one.dag\n"));
    project.write("x.dag", format!("{splices}JOB last s\nPARENT s69999 CHILD last\n"));
    let said = check(&project, 0);
    assert_eq!((&said["nodes"], &said["arcs"]), (&json!(70_001), &json!(1)));
}

#[test]
fn nonsense_is_told_in_a_few_lines() {
    let project = Project::new();
    project.write("x.dag", format!("{}\nJOB a {} oh\n", "X".repeat(10_000_000), "z".repeat(10_000_000)));
    let said = project.catena(["check", "x.dag"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.len() < 10_000, "{} bytes", said.stderr.len());
    let many = lines(20_000, |i| format!("JOB j{i} s\nPARENT j{i} CHILD k{i}\n"));
    project.write("x.dag", many);
    let said = project.catena(["check", "x.dag"]).expect(2).says("and 19900 problems more");
    assert!(said.stderr.lines().count() < 1000);
    assert_eq!(check(&project, 2)["errors"].as_array().unwrap().len(), 20_000);
    project.write("x.dag", "JOB a s\nPIN_IN a 4000000000\n");
    project.catena(["check", "x.dag"]).expect(0).says("pin 4000000000");
}

#[test]
fn dependencies_count_in_the_order_of_the_file_wherever_nodes_are_defined() {
    let jobs = lines(30, |i| format!("JOB j{i} s\n"));
    let arcs = lines(60, |i| format!("PARENT j{} CHILD j{}\n", i * 7 % 15, 15 + i * 11 % 15));
    let project = Project::new();
    let order = |text: String| {
        project.write("x.dag", text);
        project.catena(["prio", "x.dag", "--json"]).expect(0).stdout
    };
    let first = order(format!("{jobs}{arcs}"));
    assert_eq!(order(format!("{arcs}{jobs}")), first);
    let (some, rest) = jobs.split_at(jobs.len() / 2);
    let rest = &rest[rest.find('\n').unwrap() + 1..];
    let cut = &jobs[some.len()..jobs.len() - rest.len()];
    assert_eq!(order(format!("{some}{cut}{arcs}{rest}")), first);
}

#[test]
fn unusual_texts_are_read() {
    let project = Project::new();
    project.write("x.dag", "job A x\r\nJob a x\r\nParent A \\\r\n  # why\r\n  child a\r\n");
    assert_eq!(check(&project, 0)["nodes"], 2, "names that differ in case only are different");
    let long = format!("JOB a x\nJOB b x\nPARENT a CHILD {}\n", "b ".repeat(5_000_000));
    project.write("x.dag", &long);
    assert_eq!(check(&project, 0)["arcs"], 1);
    project.write("x.dag", format!("JOB {} x\n", "n".repeat(10_000_000)));
    assert_eq!(check(&project, 0)["nodes"], 1);
    project.write("x.dag", b"JOB a \xff\n".as_slice());
    assert_eq!(project.catena(["check", "x.dag"]).code, Some(2));
}

#[test]
fn splices_are_taken_in() {
    let project = Project::new();
    project.write("inner.dag", "JOB x s\nJOB y s\nPARENT x CHILD y\n");
    project.write("x.dag", "JOB a s\nSPLICE one inner.dag\nSPLICE two inner.dag\nPARENT a CHILD one\nPARENT one CHILD two\nVARS one+x k=\"v\"\n");
    let said = check(&project, 0);
    assert_eq!((&said["nodes"], &said["arcs"], &said["splices"]), (&json!(5), &json!(4), &json!(2)));
    let order: Value =
        serde_json::from_str(&project.catena(["prio", "x.dag", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(order["order"], json!(["a", "one+x", "one+y", "two+x", "two+y"]));
}

#[test]
fn depth_is_where_htcondor_comes_first() {
    let project = Project::new();
    let arcs = "PARENT a CHILD b c\nPARENT b CHILD c\n";
    project.write("x.dag", format!("JOB a s\nJOB b s\nJOB c s\n{arcs}"));
    assert_eq!(check(&project, 0)["width_by_depth"], json!([1, 1, 1]));
    project.write("x.dag", format!("JOB a s\nJOB c s\nJOB b s\n{arcs}"));
    assert_eq!(check(&project, 0)["width_by_depth"], json!([1, 2]));
    project.write("inner.dag", "JOB c s\n");
    project.write("x.dag", "JOB a s\nSPLICE i inner.dag\nJOB b s\nPARENT a CHILD b i\nPARENT i CHILD b\n");
    assert_eq!(check(&project, 0)["width_by_depth"], json!([1, 1, 1]), "spliced nodes come where they are");
}

#[test]
fn the_order_of_the_paper_is_printed_and_changes_nothing() {
    let project = five();
    let said: Value =
        serde_json::from_str(&project.catena(["prio", "five.dag", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(said["order"], json!(["c", "a", "b", "d", "e"]));
    assert_eq!(said["priority"], json!({"a": 4, "b": 3, "c": 5, "d": 2, "e": 1}));
    assert_eq!(project.read("five.dag"), FIVE);
    assert!(project.catena(["prio", "five.dag", "--stats"]).expect(0).stdout.contains("fewer in 0 steps"));
    project.catena(["prio", "five.dag", "--plot", "five.svg"]).expect(0);
    assert!(project.read("five.svg").starts_with("<svg"));
}

#[test]
fn priorities_are_written_once() {
    let project = five();
    project.catena(["prio", "five.dag", "--in-place", "--method", "both"]).expect(0);
    let dag = project.read("five.dag");
    assert!(dag.starts_with("# five jobs\nJOB a a.sub\n"));
    assert!(dag.contains("PRIORITY c 5\nVARS c JOBPRIORITY=\"5\"\n"), "{dag}");
    assert!(dag.contains("  executable = /bin/true\npriority = $(JOBPRIORITY)\n}"), "{dag}");
    assert_eq!(project.read("a.sub"), "executable = /bin/true\npriority = $(JOBPRIORITY)\nqueue\n");
    project.catena(["prio", "five.dag", "--in-place", "--method", "both"]).expect(0);
    assert_eq!(project.read("five.dag"), dag);
    project.catena(["check", "five.dag"]).expect(0);
}

#[test]
fn a_submit_file_is_written_once_whatever_it_is_called() {
    let project = Project::new();
    project
        .write("x.dag", "JOB a a.sub\nJOB b ./a.sub\nJOB c link.sub\nJOB d gone.sub NOOP\nFINAL f a.sub\n");
    project.write("a.sub", SUBMIT);
    std::os::unix::fs::symlink("a.sub", project.path("link.sub")).unwrap();
    project.catena(["prio", "x.dag", "--in-place", "--method", "vars"]).expect(0);
    assert_eq!(project.read("a.sub"), "executable = /bin/true\npriority = $(JOBPRIORITY)\nqueue\n");
    assert!(project.path("link.sub").is_symlink());
    assert!(project.read("x.dag").ends_with("VARS f JOBPRIORITY=\"0\"\n"));
    let files = std::fs::read_dir(project.path(".")).unwrap().flatten().map(|e| e.file_name());
    assert!(files.into_iter().all(|f| !f.to_string_lossy().contains(".prio-")));
}

#[test]
fn one_method_takes_the_place_of_another() {
    let project = five();
    project.catena(["prio", "five.dag", "--in-place"]).expect(0).says("a.sub says a priority itself");
    project.catena(["prio", "five.dag", "--in-place", "--method", "vars"]).expect(0);
    assert!(!project.read("five.dag").contains("\nPRIORITY"));
    project.catena(["prio", "five.dag", "--in-place", "--method", "priority"]).expect(0);
    assert!(!project.read("five.dag").contains("JOBPRIORITY"));
    assert_eq!(project.read("a.sub"), "executable = /bin/true\nqueue\n");
}

#[test]
fn nothing_is_changed_if_a_submit_file_is_missing() {
    let project = five();
    std::fs::remove_file(project.path("c.sub")).unwrap();
    project.catena(["prio", "five.dag", "--in-place", "--method", "vars"]).expect(2).says("c.sub");
    assert_eq!((project.read("five.dag").as_str(), project.read("a.sub").as_str()), (FIVE, SUBMIT));
}

#[test]
fn another_directory_gets_all_files() {
    let project = five();
    project.catena(["prio", "five.dag", "--out", "ordered"]).expect(0);
    assert!(project.read("ordered/five.dag").contains("PRIORITY c 5\n"));
    assert_eq!(project.read("ordered/a.sub"), SUBMIT);
    assert_eq!(project.read("five.dag"), FIVE);
}

#[test]
fn other_languages_have_an_order_too() {
    let project = Project::new();
    project.write(
        "x.xml",
        "<adag><job id='a'/><job id='b'/><job id='c'/><child ref='a'><parent ref='c'/></child></adag>",
    );
    project.write("x.json", r#"{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a", "id": "a"}, {"name": "c", "id": "c", "children": ["a"]}]}}}"#);
    project.write(
        "x.yaml",
        "catena: 1\nsteps:\n  a: {run: 'cat {c.out} > {out}', out: t}\n  c: {run: 'echo > {out}', out: t}\n",
    );
    let order = |file: &str| {
        let said = project.catena(["prio", file, "--json"]).expect(0).stdout;
        serde_json::from_str::<Value>(&said).unwrap()["order"].clone()
    };
    assert_eq!(order("x.xml"), json!(["c", "a", "b"]));
    assert_eq!(order("x.json"), json!(["c", "a"]));
    assert_eq!(order("x.yaml"), json!(["c", "a"]));
    project.catena(["prio", "x.xml", "--in-place"]).expect(2).says("DAGMan files only");
}

#[test]
fn generated_files_are_valid_and_have_the_priorities_of_the_paper() {
    let project = Project::new();
    project.catena(["generate", "airsn", "-o", "airsn.dag"]).expect(0);
    let said: Value =
        serde_json::from_str(&project.catena(["prio", "airsn.dag", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(said["priority"]["handle0020"], 753);
    for shape in ["inspiral", "montage", "sdss", "layered"] {
        project.catena(["generate", shape, "-o", "x.dag"]).expect(0);
        project.catena(["check", "x.dag"]).expect(0);
    }
}

#[test]
fn the_evaluation_is_drawn() {
    let project = Project::new();
    let said = project.catena([
        "reproduce",
        "prio",
        "--dag",
        "airsn",
        "--bit",
        "0",
        "--bs",
        "3,4",
        "-p",
        "5",
        "-q",
        "5",
        "--out",
        "o",
        "--json",
    ]);
    let said: Value = serde_json::from_str(&said.expect(0).stdout).unwrap();
    assert_eq!(said["results"][0]["cells"], 2);
    assert_eq!(project.read("o/airsn.csv").lines().count(), 1 + 2 * 3);
    assert!(project.exists("o/airsn-time.svg") && project.exists("o/airsn-eligible.svg"));
}

#[test]
fn a_run_can_follow_the_order() {
    let mut text = String::from("catena: 1\nsteps:\n");
    for (name, after) in [("a", ""), ("b", "a"), ("c", ""), ("d", "c"), ("e", "c")] {
        text += &format!("  {name}: {{run: 'true', after: [{after}]}}\n");
    }
    let project = Project::with(&text);
    let order = |name: &str| {
        let done = project.catena([
            "run",
            "workflow.yaml",
            "--json",
            "--new",
            "--no-cache",
            "--cpus",
            "1",
            "--chains",
            "single",
            "--order",
            name,
        ]);
        done.expect(0).executed().concat()
    };
    // What an agent has in advance is not called back, so only what could run at first is certain.
    assert!(order("fifo").starts_with("ac"));
    assert!(order("prio").starts_with("ca"));
}
