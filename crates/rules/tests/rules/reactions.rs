//! How solutions react.

use crate::{Recorder, end_of, ends, reactions, read};
use catena_rules::Outcome;

#[test]
fn the_largest_number_stays() {
    ends("replace x, y by x if x >= y in <2, 4, 5, 7, 9>", "<9, (replace x, y by x if x >= y)>");
}

#[test]
fn untyped_variables_do_not_match_rules() {
    ends("let biggest = replace x, y by x if x >= y; biggest in <2, 4, 5, 7, 9>", "<9, biggest>");
}

#[test]
fn a_rule_that_is_not_in_the_solution_does_nothing() {
    ends("let biggest = replace x, y by x if x >= y; <1, 2>", "<1, 2>");
}

#[test]
fn replace_one_disappears_after_firing() {
    ends("let once = replace-one A:x by B:x; <once, A:1, A:2>", "<A:2, B:1>");
    ends("let once = replace-one A:x by B:x; <once, once, A:1, A:2, A:3>", "<A:3, B:1, B:2>");
}

#[test]
fn catalysts_are_read_and_stay() {
    ends("let r = replace A:i keeping K:i by B:i; <r, A:1, A:1, A:2, K:1>", "<A:2, B:1, B:1, K:1, r>");
}

#[test]
fn a_variable_that_is_bound_twice_joins() {
    ends(
        "let r = replace A:i:x, B:i:y by C:i:(x + y); <r, A:1:10, A:2:20, B:2:2, B:3:3>",
        "<A:1:10, B:3:3, C:2:22, r>",
    );
}

#[test]
fn two_molecules_that_are_equal_are_still_two() {
    ends("let r = replace A:x, A:x by B:x; <r, A:1, A:1, A:1, A:2>", "<A:1, A:2, B:1, r>");
}

#[test]
fn rests_take_what_is_left() {
    ends("let open = replace-one BOX:<A:x, ?w> by x, <?w>; <open, BOX:<A:1, B:2, B:2>>", "<1, <B:2, B:2>>");
    ends("let open = replace-one BOX:<?w> by ?w; <open, BOX:<1, 2, 2>>", "<1, 2, 2>");
    ends("let none = replace E:<> by GONE; <none, E:<>, E:<1>>", "<GONE, E:<1>, none>");
}

#[test]
fn molecules_vanish_if_there_is_nothing_after_by() {
    ends("let bin = replace A:_ by; <bin, A:1, A:2, B:3>", "<B:3, bin>");
}

#[test]
fn inner_solutions_react_first() {
    ends(
        "let big = replace x::int, y::int by x if x >= y; let open = replace-one <big, x::int> by x;\n\
         <open, <big, 3, 8, 5>>",
        "<8>",
    );
}

#[test]
fn a_solution_can_be_matched_only_when_it_is_inert() {
    // `?w` would take everything at once if the inner rule did not run first.
    ends(
        "let dec = replace N:n by N:(n - 1) if n > 0; let out = replace-one <dec, ?w> by ?w; <out, <dec, N:3, N:5>>",
        "<N:0, N:0>",
    );
}

#[test]
fn rules_are_molecules_that_rules_take_and_give() {
    ends(
        "let a = replace A:x by B:x; let swap = replace-one r::rule, SWITCH by; <swap, a, SWITCH, A:1>",
        // `a` comes first in the text and is therefore tried first.
        "<B:1>",
    );
    ends(
        "let inject = replace-one FAIL:i by RETRY:i, (replace-one RETRY:i by DONE:i); <inject, FAIL:7, RETRY:8>",
        "<DONE:7, RETRY:8>",
    );
}

#[test]
fn an_inner_rule_sees_the_variables_of_the_rule_around_it() {
    ends(
        "let make = replace-one K:n:<?w> by (replace-one X:x by Y:(x + n), ?w); <make, K:10:<P, Q>, X:1>",
        "<P, Q, Y:11>",
    );
}

#[test]
fn prefer_takes_the_best_of_all_matches() {
    ends(
        "let pick = replace-one T:t, M:m by PAIR:t:m prefer min t * m; <pick, T:4, T:2, M:7, M:3>",
        "<M:7, PAIR:2:3, T:4>",
    );
    ends(
        "let pick = replace-one T:t, M:m by PAIR:t:m prefer max t - m; <pick, T:4, T:2, M:7, M:3>",
        "<M:7, PAIR:4:3, T:2>",
    );
}

#[test]
fn min_min_maps_the_shortest_task_first() {
    ends(
        "let map = replace TASK:t:w, M:m:s:ready by RUN:t:m, M:m:s:(ready + w / s) prefer min ready + w / s;\n\
         <map, TASK:1:30, TASK:2:10, TASK:3:20, M:1:1:0.0, M:2:2:0.0>",
        "<M:1:1:30.0, M:2:2:15.0, RUN:1:1, RUN:2:2, RUN:3:2, map>",
    );
}

#[test]
fn what_lacks_an_attribute_does_not_match_a_condition() {
    ends(
        "let r = replace RES:i:<?f> by GOOD:i if <?f>.cpu < 80; <r, RES:1:<CPU:20>, RES:2:<CPU:90>, RES:3:<>>",
        "<GOOD:1, RES:2:<CPU:90>, RES:3:<>, r>",
    );
}

#[test]
fn higher_priorities_come_first() {
    ends(
        "let low = replace-one A:x by LOW:x; let high = replace A:x by HIGH:x if x > 1 priority 5; <low, high, A:1, A:2>",
        "<HIGH:2, LOW:1, high>",
    );
}

#[test]
fn a_thousand_tasks_wait_for_each_other_and_all_arrive() {
    let tasks: Vec<String> = (0..1000)
        .map(|i| format!("TASK:{i}:<SRC:<{}, {}>, N:{i}>, DONE:{}", i * 7 % 1000, i * 31 % 1000, 999 - i))
        .collect();
    let end = end_of(&format!(
        "let arrive = replace TASK:j:<SRC:<i, ?rest>, ?t> keeping DONE:i by TASK:j:<SRC:<?rest>, ?t>; <arrive, {}>",
        tasks.join(", ")
    ));
    let waiting =
        end.iter().filter(|m| m.to_string().starts_with("TASK") && !m.to_string().contains("SRC:<>"));
    assert_eq!((end.len(), waiting.count()), (2001, 0));
}

#[test]
fn a_value_may_stand_in_a_molecule_more_than_once() {
    let many: Vec<String> = (0..20).map(|i| format!("S:<A:{i}:1, A:{i}:2, A:{i}:2>, B:{i}, B:{i}")).collect();
    let end = end_of(&format!("let r = replace S:<A:x:_, ?w>, B:x by S:<?w>; <r, {}>", many.join(", ")));
    assert_eq!((end.len(), end.iter().filter(|m| m.head() == Some("B")).count()), (21, 0));
}

#[test]
fn a_task_may_wait_for_thousands() {
    let sources: Vec<String> = (0..3000).map(|i| i.to_string()).collect();
    let done: Vec<String> = (0..3000).map(|i| format!("DONE:{i}")).collect();
    let end = end_of(&format!(
        "let arrive = replace TASK:j:<SRC:<i, ?rest>, ?t> keeping DONE:i by TASK:j:<SRC:<?rest>, ?t>;\n\
         <arrive, TASK:1:<SRC:<{}>>, {}>",
        sources.join(", "),
        done.join(", ")
    ));
    assert!(end.iter().any(|m| m.to_string() == "TASK:1:<SRC:<>>"));
}

#[test]
fn a_diamond_of_tasks_calls_every_service_once_and_in_order() {
    let text = include_str!("../../../../examples/rules/diamond.hocl");
    let program = read(text);
    let mut engine = program.engine();
    let mut host = Recorder::default();
    assert!(engine.run(1000, &mut host).unwrap().is_inert());
    let expected = [
        r#"invoke("split", LIST:5)"#,
        r#"invoke("left", LIST:(OUT:"split"))"#,
        r#"invoke("right", LIST:(OUT:"split"))"#,
        r#"invoke("merge", LIST:(OUT:"left"):(OUT:"right"))"#,
    ];
    assert_eq!(host.calls, expected);
}

#[test]
fn a_program_that_never_ends_is_stopped_and_names_its_rule() {
    let program = read("let tick = replace N:n by N:(n + 1); <tick, N:0>");
    let mut engine = program.engine();
    let end = engine.run(100, &mut Recorder::default()).unwrap();
    assert_eq!(end, Outcome::Limit { reactions: 100, rule: "tick".into() });
    assert_eq!(format!("{:#}", catena_rules::Value::Solution(engine.into_solution())), "<N:100, tick>");
}

#[test]
fn a_run_can_go_on_after_its_limit() {
    let program = read("let down = replace N:n by N:(n - 1) if n > 0; <down, N:10>");
    let mut engine = program.engine();
    assert!(!engine.run(4, &mut Recorder::default()).unwrap().is_inert());
    let end = engine.run(100, &mut Recorder::default()).unwrap();
    assert_eq!(end, Outcome::Inert { reactions: 6 });
}

#[test]
fn a_fault_stops_the_run_and_loses_nothing() {
    for (text, code, column) in [
        ("let r = replace A:x by B:(1 / x); <r, A:0>", "division-by-zero", 29),
        ("let r = replace A:x by B if x > 1; <r, A:\"text\">", "type", 31),
        ("let r = replace A:x by A:(x * 2); <r, A:9000000000000000000>", "overflow", 29),
        ("extern effect fail/0; let r = replace A:x by fail(); <r, A:1>", "call", 46),
    ] {
        let mut engine = read(text).engine();
        let error = engine.run(1000, &mut Recorder::default()).unwrap_err();
        assert_eq!((error.fault.code, error.fault.span.column), (code, column), "{text}");
        assert_eq!(engine.len(), 2, "{text}");
    }
}

#[test]
fn effects_happen_once_for_each_reaction() {
    let program = read(
        "extern effect deploy/2; let r = replace T:i, R:r by deploy(i, r), BUSY:r; <r, T:1, T:2, R:\"a\", R:\"b\">",
    );
    let mut engine = program.engine();
    let mut host = Recorder::default();
    let end = engine.run(1000, &mut host).unwrap();
    assert_eq!(reactions(&end), 2);
    assert_eq!(host.calls, ["deploy(1, \"a\")", "deploy(2, \"b\")"]);
}

#[test]
fn the_same_seed_gives_the_same_run_and_others_differ() {
    let program = read("let r = replace x::int, y::int by x; <r, 1, 2, 3, 4, 5, 6, 7, 8>");
    let end = |seed| {
        let mut engine = program.engine();
        engine.set_seed(seed);
        engine.run(100, &mut Recorder::default()).unwrap();
        engine.into_solution()
    };
    assert_eq!(end(1), end(1));
    let ends: std::collections::BTreeSet<_> = (0..20).map(end).collect();
    assert!(ends.len() > 2, "{ends:?}");
}

#[test]
fn values_that_would_be_nested_without_end_stop_the_run() {
    let program = read("let r = replace X:v by X:(A:v); <r, X:1>");
    let error = program.engine().run(1_000_000, &mut Recorder::default()).unwrap_err();
    assert_eq!(error.fault.code, "too-deep");
    let program = read("let r = replace v::sol by <v>; <r, <>>");
    let error = program.engine().run(1_000_000, &mut Recorder::default()).unwrap_err();
    assert_eq!(error.fault.code, "too-deep");
}

#[test]
fn solutions_react_at_any_depth() {
    let text = format!("let r = replace A:x by B:x; {}A:1{}", "<r, ".repeat(90), ">".repeat(90));
    let end = format!("{:#}", end_of(&text));
    assert!(end.contains("B:1") && !end.contains("A:1"), "{end}");
}

#[test]
fn built_in_functions() {
    for (text, expected) in [
        ("abs(-3)", "3"),
        ("7 / 2", "3.5"),
        ("div(7, 2)", "3"),
        ("7 % 2", "1"),
        ("min(3, 1, 2)", "1"),
        ("max(1.5, 1)", "1.5"),
        ("size(<1, 1>)", "2"),
        ("size(\"abc\")", "3"),
        ("list(<2, 1>)", "LIST:1:2"),
        ("list(<>)", "LIST"),
        ("contains(<1, 2>, 2)", "true"),
        ("floor(1.7)", "1"),
        ("sqrt(9)", "3.0"),
        ("pow(2, 10)", "1024"),
        ("\"a\" + \"b\"", "\"ab\""),
        ("text(1.5)", "\"1.5\""),
        ("sum(<1, 2, 3>)", "6"),
        ("nth(A:2:3, 2)", "3"),
        ("1 == 1.0 and not (2 < 1)", "true"),
        ("-(2 + 3) * 2", "-10"),
        ("<A:1, CPU:40>.cpu", "40"),
    ] {
        assert_eq!(end_of(&format!("let x = {text}; <x>")).to_string(), format!("<{expected}>"), "{text}");
    }
}
