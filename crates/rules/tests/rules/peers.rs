//! How peers execute rules, none of which sees the whole solution.

use crate::{Recorder, read, value};
use catena_rules::{Class, Direction, Program, RangeRule, Side, classify};

const SCHEDULING: &str = "
extern pure fits/2;
extern effect deploy/2;
index RES by speed;
index TASK by since;
let workflowDecomp = replace-one WF:w:<?tasks> by ?tasks;
let arrive = replace TASK:j:<SRC:<i, ?rest>, ?t> keeping DONE:i by TASK:j:<SRC:<?rest>, ?t>;
let mapTaskRes = replace TASK:i:<SRC:<>, WANT:w, ?t>, RES:r:<?f> by deploy(i, r)
                 if fits(w, <?f>) and <?f>.cpu < 80 prefer max <?f>.speed;
let fastest = replace RES:r:<SPEED:s, ?f>, TASK:i:<SINCE:t, WANT:w, ?x> by STARTED:i:r
              if s >= w.least and t < 100 prefer min t + w.work / s;
";

fn class_of(program: &Program, rule: &str) -> Class {
    let homed = |tag: &str| ["WF", "LEVEL", "TASK", "DONE"].contains(&tag);
    let indexed = |tag: &str| program.indexes().iter().any(|i| i.tag == tag);
    classify(program.rule(rule).unwrap(), &homed, &indexed)
}

fn range(program: &Program, rule: &str) -> RangeRule {
    match class_of(program, rule) {
        Class::Range(range) => range,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rules_are_classified_by_what_they_need_to_see() {
    let program = read(SCHEDULING);
    assert!(matches!(class_of(&program, "workflowDecomp"), Class::Local));
    assert!(matches!(class_of(&program, "arrive"), Class::KeyRoutable));
    assert!(matches!(class_of(&program, "mapTaskRes"), Class::Range(_)));
    assert!(matches!(class_of(&program, "fastest"), Class::Range(_)));
}

#[test]
fn a_range_rule_is_executed_in_steps() {
    let host = Recorder::default();
    let rule = range(&read(SCHEDULING), "mapTaskRes");
    assert_eq!((rule.tag(Side::Homed), rule.tag(Side::Indexed)), ("TASK", "RES"));
    assert_eq!(rule.bind(&value("TASK:1:<SRC:<9>, WANT:<MEM:4>>")), None);
    let query =
        rule.bind(&value("TASK:1:<SRC:<>, WANT:<MEM:4>, CMD:\"long text that nobody needs\">")).unwrap();
    let sent = serde_json::to_string(&query).unwrap();
    assert!(!sent.contains("nobody"), "{sent}");
    let query = serde_json::from_str(&sent).unwrap();

    let good = value("RES:\"n1\":<SPEED:3, CPU:40, MEM:8>");
    for (resource, accepted) in [
        (&good, true),
        (&value("RES:\"n2\":<SPEED:9, CPU:90, MEM:8>"), false),
        (&value("RES:\"n3\":<SPEED:9, CPU:10, MEM:2>"), false),
        (&value("RES:\"n4\":<CPU:10, MEM:8>"), false),
        (&value("TASK:1:<>"), false),
    ] {
        assert_eq!(rule.accepts(&query, resource, &host), Ok(accepted), "{resource}");
    }
    assert_eq!(rule.score(&query, &good, &host), Ok(Some(-3.0)));
    assert_eq!(rule.bounds(&query, "cpu", &host), (None, Some(80.0)));
    assert_eq!(rule.bounds(&query, "speed", &host), (None, None));
    let products = rule.react(&query, &good, &host).unwrap().unwrap();
    assert!(products.molecules.is_empty());
    assert_eq!(products.calls[0].name, "deploy");
    assert_eq!(products.calls[0].arguments, [value("1"), value("\"n1\"")]);
}

#[test]
fn the_preference_says_from_which_end_to_look() {
    let program = read(SCHEDULING);
    let rule = range(&program, "mapTaskRes");
    assert_eq!(rule.direction(Side::Indexed, "speed"), Some(Direction::Down));
    assert_eq!(rule.direction(Side::Indexed, "cpu"), None);
    let rule = range(&program, "fastest");
    assert_eq!(rule.tag(Side::Homed), "TASK");
    assert_eq!(rule.direction(Side::Indexed, "speed"), Some(Direction::Down));
    assert_eq!(rule.direction(Side::Homed, "since"), Some(Direction::Up));
    let query = rule.bind(&value("TASK:1:<SINCE:5, WANT:<LEAST:2, WORK:60>>")).unwrap();
    assert_eq!(rule.bounds(&query, "speed", &Recorder::default()), (Some(2.0), None));
    assert_eq!(rule.score(&query, &value("RES:1:<SPEED:3>"), &Recorder::default()), Ok(Some(25.0)));
}

#[test]
fn preferences_are_understood_in_many_spellings() {
    for (prefer, speed) in [
        ("max <?f>.speed", Some(Direction::Down)),
        ("min <?f>.speed", Some(Direction::Up)),
        ("min w.work / <?f>.speed", Some(Direction::Down)),
        ("min w.work / <?f>.speed + <?f>.load", Some(Direction::Down)),
        ("max -w.work / <?f>.speed", Some(Direction::Down)),
        ("min 10 - 2 * <?f>.speed", Some(Direction::Down)),
        ("min sqrt(<?f>.speed)", Some(Direction::Up)),
        ("min <?f>.speed - <?f>.speed * 2", None),
        ("min r.speed", Some(Direction::Up)),
        ("min w.work % <?f>.speed", None),
        ("min w.work", None),
    ] {
        let program = read(&format!(
            "index RES by speed; let r1 = replace TASK:i:<WANT:w, ?t>, r@RES:_:<?f> by RUN:i prefer {prefer};"
        ));
        assert_eq!(range(&program, "r1").direction(Side::Indexed, "speed"), speed, "{prefer}");
    }
}

#[test]
fn what_peers_cannot_do_is_explained() {
    for (rule, reason) in [
        ("replace TASK:i:<?a>, TASK:j:<?b> by X", "captured at once"),
        ("replace x, y by x", "a TAG and an id"),
        ("replace OTHER:i:x by x", "no peer knows where OTHER"),
        ("replace RES:r:<?f> by X", "lives where its id says"),
        ("replace TASK:i:<?t> keeping DONE:j by X", "does not follow"),
        ("replace TASK:i:<?t> keeping RES:i:<?f> by X", "must live where"),
        ("replace TASK:i:<?t>, RES:r:<?f> keeping DONE:i by X", "cannot read others"),
        ("replace TASK:i:<?t>, RES:r:<?f>, DONE:i by X", "captured at once"),
        ("replace TASK:i:<?t>, RES:r:<?f> by X:run(i)", "value of an effect"),
    ] {
        let program = read(&format!("extern effect run/1; index RES by speed; let r1 = {rule};"));
        let Class::Global { why } = class_of(&program, "r1") else { panic!("{rule}") };
        assert!(why.message.contains(reason), "{rule}: {}", why.message);
        assert!(why.help.is_some() && why.span.line == 1, "{rule}");
    }
}

#[test]
fn programs_rules_and_values_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Program>();
    shared::<catena_rules::RuleSet>();
    shared::<catena_rules::Value>();
    shared::<Class>();
    moved::<catena_rules::Engine>();
}
