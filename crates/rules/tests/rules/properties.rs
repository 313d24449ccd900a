//! What holds for any text: what is printed can be read again, and nothing makes it panic.

use crate::Recorder;
use catena_rules::{Program, Value};
use proptest::prelude::*;
use std::path::Path;

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter_map("finite", Value::float),
        any::<bool>().prop_map(Value::Bool),
        ".{0,8}".prop_map(|t| Value::text(&t)),
        "[A-Z][A-Za-z0-9_]{0,4}".prop_map(|t| Value::tag(&t)),
        prop::sample::select(RULES).prop_map(|r| Value::parse(&format!("({r})")).unwrap()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_filter_map("flat", Value::tuple),
            prop::collection::vec(inner, 0..6).prop_filter_map("flat", Value::solution),
        ]
    })
}

const RULES: &[&str] = &[
    "replace x by",
    "replace-one A:x::int:(B:_), y@<C:z, ?w> keeping K:x by y:-x, <?w, z> if not (x > 1 or z == 2) and true",
    "replace T:i:<?a>, R:r by (replace-one U:i by r, ?a) prefer max -(i - 2 * 3) / r.speed priority -4",
    "replace A:(-1):(B:-2.5):\"q\\\"\" by",
];

proptest! {
    #[test]
    fn what_is_printed_can_be_read_again(v in values()) {
        let text = v.to_string();
        let again = Value::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        prop_assert_eq!(&again, &v);
        prop_assert_eq!(again.to_string(), text);
        let json = serde_json::to_string(&v).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), v);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = Program::read(Path::new("p"), &text);
        let _ = Value::parse(&text);
    }

    #[test]
    fn no_soup_of_tokens_makes_it_panic(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        let text = words.join(" ");
        if let Ok(program) = Program::read(Path::new("p"), &text) {
            let _ = program.engine().run(50, &mut Recorder::default());
        }
    }

    #[test]
    fn a_damaged_program_does_not_make_it_panic(at in 0_usize..2000, len in 0_usize..20, with in ".{0,3}") {
        let text = include_str!("../../../../examples/rules/diamond.hocl");
        let clip = |i: usize| (0..=i.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        let damaged = format!("{}{with}{}", &text[..clip(at)], &text[clip(at + len)..]);
        if let Ok(program) = Program::read(Path::new("p"), &damaged) {
            let _ = program.engine().run(200, &mut Recorder::default());
        }
    }
}

const WORDS: &[&str] = &[
    "let",
    "a",
    "b",
    "=",
    "replace",
    "replace-one",
    "x",
    "y",
    "?w",
    "by",
    "if",
    "prefer",
    "min",
    "max",
    "priority",
    "in",
    "<",
    ">",
    "<x, ?w>",
    ",",
    ";",
    ":",
    "::",
    "int",
    "@",
    "_",
    "(",
    ")",
    "1",
    "2.5",
    "\"t\"",
    "A",
    "B:x",
    "A:1",
    "and",
    "not",
    "or",
    "==",
    "+",
    "-",
    "/",
    ".",
    "size(",
    "print(x)",
    "keeping",
    "extern",
    "pure",
    "index",
    "true",
    "let r = replace x by x;",
    "let s = replace A:x by B:x;",
    "<A:1, A:2, 3>",
    "r in",
];
