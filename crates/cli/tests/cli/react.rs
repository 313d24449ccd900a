//! `catena react`: rule programs run to their end.

use crate::project::{Done, Project};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rules").join(name).display().to_string()
}

fn react(text: &str, options: &[&str]) -> Done {
    let p = Project::new();
    p.write("p.hocl", text);
    p.command(["react", "p.hocl"].iter().chain(options)).output().unwrap().into()
}

#[test]
fn the_largest_number_stays() {
    let done = Project::new().catena(["react", &example("max.hocl")]).expect(0);
    assert_eq!(done.stdout, "9\n(replace x, y by x if x >= y)\n");
}

#[test]
fn a_trace_shows_every_reaction() {
    let done = Project::new().catena(["react", &example("max.hocl"), "--trace"]).expect(0);
    assert_eq!(
        done.stdout,
        "\
rule at 5:1: 4, 2 → 4
rule at 5:1: 5, 4 → 5
rule at 5:1: 7, 5 → 7
rule at 5:1: 9, 7 → 9
9
(replace x, y by x if x >= y)
"
    );
}

#[test]
fn a_diamond_becomes_three_levels() {
    let done = Project::new().catena(["react", &example("levels.hocl")]).expect(0);
    assert_eq!(
        done.stdout,
        "\
LEVEL:0:<TASK:1:\"split\">
LEVEL:1:<TASK:2:\"left\", TASK:3:\"right\">
LEVEL:2:<TASK:4:\"merge\">
forget
gather
place
"
    );
}

#[test]
fn every_service_of_a_diamond_is_called_once() {
    let done = Project::new().catena(["react", &example("diamond.hocl")]).expect(0);
    let called: Vec<&str> = done.stderr.lines().filter_map(|l| l.split('"').nth(1)).collect();
    assert_eq!(called, ["split", "left", "right", "merge"]);
    assert_eq!(done.stdout.lines().count(), 5);
}

#[test]
fn min_min_maps_the_task_that_is_finished_first() {
    let done = Project::new().catena(["react", &example("min-min.hocl")]).expect(0);
    assert_eq!(
        done.stdout,
        "\
MACHINE:\"fast\":2:17.0
MACHINE:\"slow\":1:30.0
RUN:\"align\":\"slow\":30.0
RUN:\"call\":\"fast\":17.0
RUN:\"plot\":\"fast\":2.0
RUN:\"sort\":\"fast\":7.0
map
"
    );
}

#[test]
fn failures_put_rules_into_the_solution() {
    let done = Project::new().catena(["react", &example("retry.hocl")]).expect(0);
    assert_eq!(
        done.stdout,
        "\
FREE:\"node1\"
GIVEN_UP:\"plot\"
RUNNING:\"align\":\"node2\"
SKIPPED:\"poster\"
SKIPPED:\"report\"
TRIES:\"align\":1
giveUp
again
(replace WAITS:w:\"plot\" by SKIPPED:w)
"
    );
}

#[test]
fn json_is_for_programs() {
    let done = react("let r = replace A:x by B:x; <r, A:1, A:2>", &["--json"]).expect(0);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json, serde_json::json!({"inert": true, "reactions": 2, "molecules": ["B:1", "B:2", "r"]}));
}

#[test]
fn programs_come_from_standard_input_too() {
    let p = Project::new();
    let mut child = p.command(["react", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"let r = replace A by B; <r, A>").unwrap();
    let done: Done = child.wait_with_output().unwrap().into();
    assert_eq!(done.expect(0).stdout, "B\nr\n");
}

#[test]
fn all_mistakes_are_shown_at_once() {
    let done =
        react("let a = replace x by y;\nlet b = replace X:z by siez(z);\nlet c = ;\n<a, b>\n", &[]).expect(2);
    assert_eq!(
        done.stderr,
        "\
error[unbound]: `y` is not bound by a pattern and not declared
  --> p.hocl:1:22
   |
 1 | let a = replace x by y;
   |                      ^
  help: known names: x

error[unknown-function]: there is no function `siez`
  --> p.hocl:2:24
   |
 2 | let b = replace X:z by siez(z);
   |                        ^^^^
  help: did you mean `size`?

error[unexpected]: expected a value, not `;`
  --> p.hocl:3:9
   |
 3 | let c = ;
   |         ^

3 errors
"
    );
}

#[test]
fn a_program_that_never_ends_is_stopped() {
    let done = react("let tick = replace N:n by N:(n + 1); <tick, N:0>", &["--limit", "50"]).expect(1);
    assert_eq!(done.stdout, "N:50\ntick\n");
    assert_eq!(
        done.stderr,
        "\
error: stopped after 50 reactions, and more are possible; of late mostly `tick`
  help: --limit allows more, --trace shows each of them
"
    );
}

#[test]
fn a_fault_is_shown_with_its_place_and_nothing_is_lost() {
    let done = react("let half = replace A:x by B:(10 / x);\n<half, A:0>\n", &[]).expect(1);
    assert_eq!(done.stdout, "A:0\nhalf\n");
    assert_eq!(
        done.stderr,
        "\
error[division-by-zero]: division by zero
  --> p.hocl:1:33
   |
 1 | let half = replace A:x by B:(10 / x);
   |                                 ^
  in half

stopped after 0 reactions; the solution is as it was before the one that failed
"
    );
}

#[test]
fn rules_alone_do_not_react() {
    react("let a = replace x by x;", &[]).expect(2).says("no solution that they could react in");
    Project::new().catena(["react", "nowhere.hocl"]).expect(2).says("cannot read nowhere.hocl");
}

#[test]
fn the_same_seed_gives_the_same_end() {
    let text = "let any = replace x, y by x; any in <1, 2, 3, 4, 5, 6, 7, 8>";
    let end = |seed: &str| react(text, &["--seed", seed]).expect(0).stdout;
    assert_eq!(end("3"), end("3"));
    assert!((1..20).any(|seed| end(&seed.to_string()) != end("3")));
}
