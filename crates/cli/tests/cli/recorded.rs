//! Recorded workflows: generated, converted, refused.

use crate::project::Project;
use serde_json::Value;

/// What `simulate` says of a workflow.
fn makespan(project: &Project, file: &str) -> f64 {
    let said = project.catena(["simulate", file, "--nodes", "8", "--json"]).expect(0).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    said["results"][0]["makespan"].as_f64().unwrap()
}

#[test]
fn every_kind_can_be_generated_in_every_language() {
    let project = Project::new();
    let kinds = ["montage", "cybershake", "epigenomics", "inspiral", "sipht", "airsn", "sdss", "layered"];
    for kind in kinds {
        for file in ["x.xml", "x.json", "x.dag"] {
            project.catena(["generate", kind, "--jobs", "60", "--seed", "7", "-o", file]).expect(0);
        }
        let said =
            project.catena(["generate", kind, "--jobs", "60", "--seed", "7", "--format", "dax"]).expect(0);
        assert_eq!(said.stdout, project.read("x.xml"), "{kind}");
        let (dax, wfformat) = (makespan(&project, "x.xml"), makespan(&project, "x.json"));
        assert!((dax - wfformat).abs() < 1e-9 && dax > 1.0, "{kind}: {dax}, {wfformat}");
        project.catena(["check", "x.dag"]).expect(0);
    }
}

#[test]
fn what_is_recorded_can_be_converted_and_back() {
    let project = Project::new();
    project.catena(["generate", "cybershake", "--jobs", "40", "-o", "a.xml"]).expect(0);
    project.catena(["convert", "a.xml", "--to", "wfformat", "-o", "b.json"]).expect(0);
    project.catena(["convert", "b.json", "--to", "dax", "-o", "c.xml"]).expect(0);
    project.catena(["convert", "c.xml", "--to", "wfformat", "-o", "d.json"]).expect(0);
    let sorted = |file: &str| {
        let text = project.read(file);
        let mut lines: Vec<String> = text.lines().map(|l| l.trim_end_matches(',').to_owned()).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("a.xml"), sorted("c.xml"));
    assert_eq!(sorted("b.json"), sorted("d.json"));
    project.catena(["convert", "a.xml"]).expect(2).says("a recorded workflow has no commands");
}

#[test]
fn jobs_of_workflows_without_runtimes_can_be_converted() {
    let project = Project::new();
    project.write("w.yaml", "catena: 1\nsteps:\n  a: { run: 'true' }\n  b: { run: 'true', after: [a] }\n");
    let said = project.catena(["convert", "w.yaml", "--to", "dax"]).expect(0).stdout;
    assert!(said.contains("<child ref=\"b\">\n    <parent ref=\"a\"/>"), "{said}");
}

#[test]
fn what_is_wrong_in_a_recorded_workflow_has_file_line_and_column() {
    let project = Project::new();
    project.write("w.xml", "<adag>\n  <job id='a'/>\n  <child ref='b'/>\n</adag>\n");
    project.write(
        "w.json",
        "{\"schemaVersion\": \"1.5\",\n \"workflow\": {\"specification\": {\"tasks\": []}}}",
    );
    project.write("w.yml", "pegasus: '5.0'\njobs:\n- { id: a }\n- { id: a }\n");
    let cases = [
        ("w.xml", "w.xml:3:3: there is no job `b`"),
        ("w.json", "w.json:2:42: there are no jobs"),
        ("w.yml", "w.yml:4:9: there is another job `a`"),
    ];
    for (file, message) in cases {
        project.catena(["simulate", file]).expect(2).says(message);
        project.catena(["convert", file, "--to", "dax"]).expect(2).says(message);
        project.catena(["prio", file]).expect(2).says(message);
    }
}

#[test]
fn a_stand_in_takes_as_long_and_writes_as_much_as_was_recorded() {
    let project = Project::new();
    let job = |id: &str, seconds: f64, files: &str| {
        format!("<job id='{id}' name='work' runtime='{seconds}'>{files}</job>")
    };
    let file =
        |name: &str, link: &str, size: u64| format!("<uses file='{name}' link='{link}' size='{size}'/>");
    let [raw, half, whole] = [("raw.fits", 5000), ("half.fits", 70_000), ("whole.fits", 300_001)];
    let first = job("a", 0.3, &[file(raw.0, "input", raw.1), file(half.0, "output", half.1)].concat());
    let second = job("b", 0.2, &[file(half.0, "input", half.1), file(whole.0, "output", whole.1)].concat());
    let arc = "<child ref='b'><parent ref='a'/></child>";
    project.write("w.xml", format!("<adag>{first}{second}{arc}</adag>"));
    project.catena(["convert", "w.xml", "--to", "stand-in", "-o", "copy"]).expect(0);
    let started = std::time::Instant::now();
    project.catena(["run", "copy"]).expect(0);
    assert!(started.elapsed().as_secs_f64() >= 0.5);
    let written = project.read("results/whole.fits");
    assert_eq!(written.len() as u64, whole.1);
    assert!(written.starts_with("2-whole.fits\n2-whole.fits\n"), "{}", &written[..100]);
    assert_eq!(project.read("copy/data/raw.fits").len() as u64, raw.1);
    project.catena(["convert", "w.xml", "--to", "stand-in"]).expect(2).says("say which with -o DIR");
    project.write("w.yaml", "catena: 1\nsteps:\n  a: { run: 'true' }\n");
    project.catena(["convert", "w.yaml", "--to", "stand-in", "-o", "x"]).expect(2).says("with runtimes");
}
