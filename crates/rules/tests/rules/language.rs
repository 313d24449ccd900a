//! What is wrong with a program is said at once, with its place and what to do.

use catena_model::Severity;
use catena_rules::Program;
use std::path::Path;

/// The codes, lines and columns of all problems.
fn problems(text: &str) -> Vec<(&'static str, u32, u32)> {
    let place = |d: &catena_model::Diagnostic| (d.code, d.span.line, d.span.column);
    match Program::read(Path::new("p.hocl"), text) {
        Ok(program) => program.warnings().iter().map(place).collect(),
        Err(rejected) => rejected.diags.iter().map(place).collect(),
    }
}

/// The help for the first problem.
fn help(text: &str) -> String {
    let rejected = Program::read(Path::new("p.hocl"), text).unwrap_err();
    rejected.diags.iter().next().and_then(|d| d.help.clone()).unwrap_or_default()
}

#[test]
fn a_program_declares_rules_functions_indexes_and_a_solution() {
    let text = "extern pure fits/2; extern effect go/1; index RES by speed, cpu; let n = 2 + 3;\n\
                let r = replace RES:i:<?f> by go(i) if fits(i, <?f>); <r, n>";
    let program = Program::read(Path::new("p.hocl"), text).unwrap();
    assert_eq!(program.rules().map(|r| r.label()).collect::<Vec<_>>(), ["r"]);
    assert_eq!(program.externs().len(), 2);
    assert_eq!(program.indexes()[0].attributes, ["speed", "cpu"]);
    assert_eq!(format!("{:#}", program.main().unwrap()), "<5, r>");
    assert_eq!(program.rule("r").unwrap().text(), "replace RES:i:<?f> by go(i) if fits(i, <?f>)");
}

#[test]
fn all_mistakes_are_found_at_once() {
    let text = "let a = replace x by y;\nlet b replace;\nlet c = replace X:z by siez(z);\nindex by q;\n<1";
    assert_eq!(
        problems(text),
        [
            ("unbound", 1, 22),
            ("unexpected", 2, 7),
            ("unknown-function", 3, 24),
            ("unexpected", 4, 7),
            ("unexpected", 5, 3)
        ]
    );
}

#[test]
fn every_mistake_has_its_code() {
    for (text, code) in [
        ("let a = replace x by y;", "unbound"),
        ("let a = replace x by ?x;", "not-a-rest"),
        ("let a = replace <?w> by w;", "not-a-molecule"),
        ("let a = replace <?w> by ?v;", "unbound"),
        ("let a = replace <?v, ?w> by ?v;", "second-rest"),
        ("let a = replace x, <?x> by x;", "two-kinds"),
        ("let a = replace x by x if print(x);", "effect-in-condition"),
        ("let a = replace x by x prefer min print(x);", "effect-in-condition"),
        ("let a = replace x by fits(x);", "unknown-function"),
        ("extern pure fits/2; let a = replace x by fits(x);", "arity"),
        ("extern pure f/2; extern effect f/1;", "duplicate-extern"),
        ("let a = 1; let a = 2;", "duplicate-let"),
        ("let a = 1; let r = replace a@x by x;", "bound-let"),
        ("let r = replace x::number by x;", "unknown-type"),
        ("let a = \"text;", "open-string"),
        ("let a = \"\\q\";", "bad-escape"),
        ("let a = 99999999999999999999;", "large-number"),
        ("let a = 1 / 0;", "division-by-zero"),
        ("let a = ?w;", "bad-rest"),
        ("let a = $;", "unknown-character"),
        ("let a = print(1);", "not-constant"),
        ("<1> <2>", "unexpected"),
        ("<1>; <2>", "second-solution"),
        ("let a = 1; a in <2>", "not-a-rule"),
        ("let r = replace x by x prefer best x;", "unexpected"),
        ("extern f/2;", "unexpected"),
    ] {
        assert_eq!(problems(text).first().map(|p| p.0), Some(code), "{text}");
    }
}

#[test]
fn warnings_do_not_prevent_anything() {
    for (text, code) in [
        ("index RES by speed; let r = replace A:x by x;", "unused-index"),
        ("let r = replace A:x by x; <A:1>", "unused-rule"),
        ("let r = replace A:x by x if 1 > 2;", "never-fires"),
        ("let r = replace A:x by x if x > 1 and false;", "never-fires"),
        ("let r = replace A:x::int, B:x::string by x;", "never-fires"),
    ] {
        let program = Program::read(Path::new("p.hocl"), text).unwrap();
        let all: Vec<_> = program.warnings().iter().map(|d| (d.code, d.severity)).collect();
        assert_eq!(all, [(code, Severity::Warning)], "{text}");
    }
}

#[test]
fn help_says_what_to_write() {
    for (text, expected) in [
        ("let a = replace x by siez(x);", "did you mean `size`?"),
        ("let a = replace number by numbre;", "did you mean `number`?"),
        ("let a = replace <?w> by w;", "write <?w>"),
        ("let a = <late>; let late = 1;", "`let late` comes later; move it up"),
        ("let a = replace x by run(x);", "declare it if the host has it: `extern pure run/1;`"),
        ("let a = <1 < 2>;", "inside of <…>, comparisons stand in parentheses"),
    ] {
        assert_eq!(help(text), expected, "{text}");
    }
}

#[test]
fn a_wrong_declaration_is_reported_once_however_often_its_name_is_used() {
    assert_eq!(problems("let a = replace x by y; let b = <a>; <a, b>"), [("unbound", 1, 22)]);
}

#[test]
fn a_let_name_in_a_pattern_stands_for_its_value() {
    crate::ends("let k = 7; let r = replace A:k by HIT; <r, A:7, A:8>", "<HIT, A:8, r>");
}

#[test]
fn rules_in_a_list_end_where_the_next_begins() {
    crate::ends(
        "replace A:x by B:x, C:x, replace B:x by D:x in <A:1>",
        "<C:1, D:1, (replace A:x by B:x, C:x), (replace B:x by D:x)>",
    );
}

#[test]
fn comments_and_unusual_spacing_do_not_matter() {
    crate::ends("// one\nlet r=replace A:x by<x>;// two\n<r,A:1>// three", "<<1>, r>");
}
