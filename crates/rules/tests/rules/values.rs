//! What values are, and how they are written.

use crate::value;
use catena_rules::{Solution, Value};

#[test]
fn values_print_as_they_are_written() {
    for text in [
        "1",
        "-9223372036854775808",
        "1.5",
        "1e300",
        "\"a \\\"quoted\\\" text\\n\"",
        "TASK:1:<SRC:<>, WANT:<MEM:4>>",
        "A:(B:C):-1",
        "<1, 1, 2>",
        "<(replace x by x:1 if x > 2)>",
        "true",
    ] {
        assert_eq!(value(text).to_string(), text);
    }
}

#[test]
fn solutions_have_no_order() {
    assert_eq!(value("<3, 1, A:2, <>>"), value("<A:2, <>, 1, 3>"));
    assert_ne!(value("<1, 1>"), value("<1>"));
}

#[test]
fn large_solutions_share_and_stay_sorted() {
    let mut all: Solution = (0..1000).map(|i| Value::Int(i * 7 % 1000)).collect();
    all.insert(Value::Int(500));
    let copy = all.clone();
    all.insert(Value::Int(-1));
    assert_eq!((copy.len(), all.len()), (1001, 1002));
    assert!(all.iter().is_sorted());
    assert!(all.contains(&Value::Int(-1)) && !copy.contains(&Value::Int(-1)));
}

#[test]
fn attributes_are_pairs() {
    let resource = value("RES:\"n1\":<SPEED:3, CPU:40.5>");
    assert_eq!(resource.attribute("speed").and_then(Value::as_number), Some(3.0));
    assert_eq!(resource.attribute("cpu").and_then(Value::as_number), Some(40.5));
    assert_eq!(resource.attribute("memory"), None);
    assert_eq!(resource.head(), Some("RES"));
    assert_eq!(resource.id(), Some(&Value::text("n1")));
}

#[test]
fn values_travel_as_text_and_keep_the_names_of_rules() {
    for text in [
        "TASK:1:<SRC:<>>",
        "extern effect deploy/2; let go = replace T:i, R:r by deploy(i, r); <go, T:1>",
        "let a = replace X:x by x; let b = replace Y:y by (replace Z:z by a); <a, b>",
    ] {
        let before = value(text);
        let json = serde_json::to_string(&before).unwrap();
        let after: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(before, after);
        assert_eq!(format!("{before:#}"), format!("{after:#}"));
    }
}

#[test]
fn no_value_is_read_that_is_nested_without_end() {
    for (open, close) in [("<", ">"), ("(", ")"), ("A:<", ">"), ("-", ""), ("<(replace ", ""), ("f(", "")] {
        let text = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(Value::parse(&text).is_err(), "{open}");
    }
    assert!(Value::parse(&vec!["1"; 100_000].join("+")).is_err());
    assert!(Value::parse(&vec!["a"; 100_000].join(".")).is_err());
}
