//! What compositions mean: every construct, in every other, executed by the planner of the ordinary language.

use catena_compose::model::{
    self, Composition, RowChange, adopt, check, load_text, parse_composition, write,
};
use catena_model::{LoadOptions, Loaded, parse_yaml};
use catena_plan::{ChainPolicy, Order, PlanOptions, Planner, Program};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

fn problems(loaded: &Loaded) -> String {
    loaded.diags.iter().map(|d| d.render(&loaded.sources).to_string()).collect()
}

/// Executes a workflow. A task gives its first word and its inputs in brackets; `less` gives one less than its input. What
/// comes out is in the inputs of tasks that begin with `show`. Returns these, and all tasks with how often they ran.
fn executed(loaded: &Loaded) -> Result<(Vec<String>, BTreeMap<String, usize>), String> {
    let workflow = loaded.expanded.as_ref().unwrap_or_else(|| panic!("{}", problems(loaded)));
    let program = Arc::new(Program::new(workflow, &loaded.library).map_err(|e| e.to_string())?);
    let (tmp, out) = ("/tmp".to_owned(), "/out".to_owned());
    let options = PlanOptions { tmp, out, policy: ChainPolicy::Single, order: Order::Fifo };
    let mut planner = Planner::new(program, options);
    let (mut shown, mut ran) = (Vec::new(), BTreeMap::new());
    while let Some(chain) = planner.next_chain().map_err(|e| e.to_string())? {
        let number = planner.chain_count() - 1;
        let mut results = Vec::new();
        for task in &chain.executables {
            let inputs = task.arguments.iter().filter(|a| a.direction == catena_model::Direction::Input);
            let inputs: Vec<String> = inputs.map(|i| i.variable.value.to_string()).collect();
            let command = task.script.as_deref().unwrap_or(&task.path);
            let word = command.split(' ').next().unwrap_or_default();
            if word == "show" {
                shown.push(inputs.join(" "));
            }
            *ran.entry(word.to_owned()).or_default() += 1;
            let value = match word {
                "less" => (inputs[0].parse::<i64>().unwrap_or(0) - 1).to_string(),
                word => format!("{word}({})", inputs.join(" ")),
            };
            results.push(task.outputs().map(|_| vec![value.clone()]).collect());
        }
        planner.chain_succeeded(number, results);
    }
    assert!(planner.is_finished(), "{:?}", planner.counts());
    Ok((shown, ran))
}

const PARTS: &str = "
  f: {inputs: {x: string}, outputs: {y: string}, task: {run: 'f {x} {y}'}}
  g: {inputs: {x: string}, outputs: {y: string}, task: {run: 'g {x} {y}'}}
  pair: {inputs: {a: string, b: string}, outputs: {y: string}, task: {run: 'p {a} {b} {y}'}}
  less: {inputs: {n: integer}, outputs: {m: integer}, task: {run: 'less {n} {m}'}}
  show: {inputs: {r: any}, task: {run: 'show {r}'}}
";

/// Executes a workflow `w` with one output, given the values of its inputs.
fn meaning(values: &str, workflows: &str) -> Result<Vec<String>, String> {
    let text = format!("composition: 1\nroot: main\nvalues: {values}\nworkflows:{PARTS}{workflows}");
    let text = text.replace("root: main\n", "root: main\nname: test\n");
    // The inputs of the root are those of `w`.
    let parsed = {
        let mut diags = catena_model::Diagnostics::default();
        let documents = parse_yaml(&text, 0, &mut diags);
        let values = documents[0].get("values").and_then(|v| v.as_map()).unwrap_or_default();
        values.iter().filter_map(|(k, _)| k.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let inputs: Vec<String> = parsed.iter().map(|i| format!("{i}: any")).collect();
    let mut links: Vec<String> = parsed.iter().map(|i| format!("i-{i}: {i} -> w.{i}")).collect();
    let output = if workflows.contains("# m") { "m" } else { "y" };
    links.push(format!("out: w.{output} -> s.r"));
    let text = format!(
        "{text}
  main:
    inputs: {{{}}}
    graph:
      nodes: {{w: {{use: w}}, s: {{use: show}}}}
      links: {{{}}}
",
        inputs.join(", "),
        links.join(", ")
    );
    let used: Vec<&str> =
        ["f", "g", "pair", "less"].into_iter().filter(|p| !mentions(workflows, p)).collect();
    let text = text.lines().filter(|l| !used.iter().any(|u| l.starts_with(&format!("  {u}:")))).fold(
        String::new(),
        |mut out, line| {
            let _ = writeln!(out, "{line}");
            out
        },
    );
    let loaded = load_text(Path::new("c.yaml"), &text, &LoadOptions::default());
    assert!(!loaded.diags.has_errors(), "{}\n{text}", problems(&loaded));
    executed(&loaded).map(|(shown, _)| shown)
}

fn mentions(workflows: &str, part: &str) -> bool {
    workflows.split(|c: char| !c.is_alphanumeric()).any(|w| w == part)
}

#[test]
fn a_map_is_applied_to_each_element_and_keeps_the_order() {
    assert_eq!(meaning("{x: [1, 2, 3]}", "\n  w: {map: {of: f}}").unwrap(), ["f(1) f(2) f(3)"]);
    assert_eq!(meaning("{x: []}", "\n  w: {map: {of: f}}").unwrap(), [""]);
    let some = "\n  w: {map: {of: pair, over: [b]}}";
    assert_eq!(meaning("{a: k, b: [1, 2]}", some).unwrap(), ["p(k 1) p(k 2)"]);
    let both = "\n  w: {map: {of: pair}}";
    assert_eq!(meaning("{a: [k, l], b: [1, 2]}", both).unwrap(), ["p(k 1) p(l 2)"]);
    let error = meaning("{a: [k], b: [1, 2]}", both).unwrap_err();
    assert!(error.contains("same length"), "{error}");
}

#[test]
fn a_reduction_goes_from_left_to_right() {
    let w = "\n  w: {reduce: {of: pair, carry: a, element: b}}";
    assert_eq!(meaning("{a: z, b: [1, 2, 3]}", w).unwrap(), ["p(p(p(z 1) 2) 3)"]);
    assert_eq!(meaning("{a: z, b: []}", w).unwrap(), ["z"]);
}

#[test]
fn a_tree_has_a_shape_that_follows_from_the_length() {
    let w = "\n  w: {tree: {of: pair, left: a, right: b}}";
    assert_eq!(meaning("{a: [1, 2, 3]}", w).unwrap(), ["p(p(1 2) 3)"]);
    assert_eq!(meaning("{a: [1]}", w).unwrap(), ["1"]);
    assert!(meaning("{a: []}", w).unwrap_err().contains("empty list"));
}

#[test]
fn a_conditional_has_one_arm_or_two() {
    let one = "\n  w: {conditional: {of: f, when: '{x} > 1'}}";
    assert_eq!(meaning("{x: 2}", one).unwrap(), ["f(2)"]);
    assert!(meaning("{x: 1}", one).unwrap().is_empty(), "what is absent makes absent what needs it");
    let two = "\n  w: {conditional: {of: f, when: '{x} > 1', else: g}}";
    assert_eq!(meaning("{x: 2}", two).unwrap(), ["f(2)"]);
    assert_eq!(meaning("{x: 1}", two).unwrap(), ["g(1)"]);
}

#[test]
fn a_loop_ends_when_its_condition_or_its_limit_says_so() {
    let w = |max| {
        format!("\n  w: {{loop: {{of: less, while: '{{n}} > 2', feedback: {{m: n}}, max: {max}}}}} # m")
    };
    assert_eq!(meaning("{n: 5}", &w(9)).unwrap(), ["2"]);
    assert_eq!(meaning("{n: 5}", &w(1)).unwrap(), ["4"]);
    assert_eq!(meaning("{n: 1}", &w(9)).unwrap(), ["1"], "nothing is done if it does not hold at first");
}

#[test]
fn currying_fixes_inputs_one_after_the_other() {
    let w = "\n  v: {curry: {of: pair, with: {a: k}}}\n  w: {curry: {of: v, with: {b: l}}}";
    assert_eq!(meaning("{}", w).unwrap(), ["p(k l)"]);
    let mapped = "\n  v: {curry: {of: pair, with: {a: k}}}\n  w: {map: {of: v}}";
    assert_eq!(meaning("{b: [1, 2]}", mapped).unwrap(), ["p(k 1) p(k 2)"]);
}

#[test]
fn constructs_nest_in_each_other() {
    let twice = "\n  v: {map: {of: f}}\n  t: {reduce: {of: pair, carry: a, element: b}}
  w:
    inputs: {x: '[[string]]', z: string}
    outputs: {y: '[string]'}
    graph:
      nodes: {m: {use: vv}, r: {use: each}}
      links: {a: x -> m.x, b: m.y -> r.b, c: z -> r.a, d: r.y -> y}
  vv: {map: {of: v}}
  each: {map: {of: t, over: [b]}}";
    let shown = meaning("{x: [[1, 2], [3], []], z: z}", twice).unwrap();
    assert_eq!(shown, ["p(p(z f(1)) f(2)) p(z f(3)) z"]);
    let deep = "\n  v: {conditional: {of: f, when: \"{x} != '2'\", else: g}}\n  w: {map: {of: v}}";
    assert_eq!(meaning("{x: ['1', '2', '3']}", deep).unwrap(), ["f(1) g(2) f(3)"]);
    let tree = "\n  v: {tree: {of: pair, left: a, right: b}}\n  w: {map: {of: v}}";
    assert_eq!(meaning("{a: [[1, 2, 3], [4]]}", tree).unwrap(), ["p(p(1 2) 3) 4"]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let text = "composition: 1
root: main
workflows:
  f: {inputs: {x: file}, outputs: {y: file}, task: {run: 'f {x} > {y}'}}
  main:
    inputs: {xs: '[file]'}
    outputs: {r: file}
    graph:
      nodes: {a: {use: f}, b: {use: g}}
      links:
        l1: xs -> a.x
        l2: a.y -> r
";
    let say = |text: &str| {
        let loaded = load_text(Path::new("c.yaml"), text, &LoadOptions::default());
        assert!(loaded.expanded.is_none());
        problems(&loaded)
    };
    let said = say(text);
    assert!(
        said.contains("there is no workflow `g`; did you mean `f`?") && said.contains("c.yaml:5:3"),
        "{said}"
    );
    let said = say(&text.replace("{use: g}", "{use: f}"));
    assert!(
        said.contains("`xs` gives `[file]`, but `a.x` takes `file`") && said.contains("c.yaml:11:9"),
        "{said}"
    );
    assert!(said.contains("nothing comes to `b.x`"), "{said}");
    let said = say(&text.replace("{use: g}", "{use: f}").replace("{a: {use", "{a: {usee"));
    assert!(said.contains("unknown field `usee`") && said.contains("did you mean `use`?"), "{said}");
    let said = say(&text.replace("b: {use: g}", "b: {use: main}"));
    assert!(said.contains("made of each other: main -> main"), "{said}");
    let said = say(&text
        .replace(", b: {use: g}", "")
        .replace("xs: '[file]'", "xs: file")
        .replace("'f {x}", "'f {z}"));
    assert!(
        said.contains("`{z}` is neither an input nor an output") && said.contains("c.yaml:4:3"),
        "{said}"
    );
}

#[test]
fn examples_mean_the_same_as_compositions() {
    let examples = ["first", "mosaic", "variants"];
    for name in examples {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        let loaded = catena_model::load(&path, &LoadOptions::default());
        same_as_composition(&loaded, &path.join("workflow.yaml"));
    }
}

/// Compares what a workflow does with what it does as a composition, which is also written and read.
fn same_as_composition(loaded: &Loaded, path: &Path) {
    assert!(!loaded.diags.has_errors(), "{}", problems(loaded));
    let text = &loaded.sources.main().expect("it was read").text;
    let document = parse_yaml(text, 0, &mut catena_model::Diagnostics::default());
    let services = document[0].get("services").map(catena_model::Node::to_value).unwrap_or_default();
    let composition = adopt(loaded, services).expect("it is a workflow");
    assert_eq!(check(&composition), [], "{}", write(&composition));
    let written = write(&composition);
    assert_eq!(parse_composition(&written).as_ref().ok(), Some(&composition), "{written}");
    let again = load_text(path, &written, &LoadOptions::default());
    assert!(!again.diags.has_errors(), "{}\n{written}", problems(&again));
    assert_eq!(executed(&again).unwrap(), executed(loaded).unwrap(), "{written}");
}

#[test]
fn workflows_of_the_long_form_mean_the_same_as_compositions() {
    let text = "
priority: 3
services: [{id: s, path: serve, parameters: [{id: i, type: input, cardinality: 0..n}, {id: o, type: output, cardinality: 1..1}]}]
macros:
  - id: twice
    parameters: [{id: x, type: input}, {id: k, type: input, default: 7}, {id: y, type: output}]
    vars: [{id: c, value: 5}]
    actions:
      - {type: execute, id: one, service: s, inputs: [{id: i, var: x}, {id: i, var: k}, {id: i, var: c}], outputs: [{id: o, var: m}]}
      - {type: execute, id: two, run: 'two {m} {y}', inputs: [{id: m, var: m}], outputs: [{id: y, var: y}]}
vars: [{id: xs, value: [a, b]}, {id: go, value: 1}, {id: q, value: q}]
actions:
  - {type: for, id: each, input: xs, enumerator: x, output: ys, yieldToOutput: y, actions: [{type: execute, id: t, run: 'each {x} {y} {q}', inputs: [{id: x, var: x}, {id: q, var: q}], outputs: [{id: y, var: y}]}]}
  - {type: for, id: flat, input: ys, enumerator: e, output: zs, yieldToOutput: z, actions: [{type: for, id: inner, input: xs, enumerator: f, output: z, yieldToOutput: w, actions: [{type: execute, id: u, run: 'flat {e} {f} {w}', inputs: [{id: e, var: e}, {id: f, var: f}], outputs: [{id: w, var: w}]}]}]}
  - {type: include, id: i1, macro: twice, inputs: [{id: x, var: q}], outputs: [{id: y, var: r1}]}
  - {type: include, id: i2, macro: twice, when: '{go} == 2', inputs: [{id: x, var: r1}, {id: k, value: 8}], outputs: [{id: y, var: r2}]}
  - {type: execute, id: when, run: 'when {q}', when: '{go} == 1', inputs: [{id: q, var: q}], dependsOn: [flat]}
  - {type: execute, id: s1, run: 'show {a} {b}', inputs: [{id: a, var: ys}, {id: b, var: zs}]}
  - {type: execute, id: s2, run: 'show {r}', inputs: [{id: r, var: r1}]}
  - {type: execute, id: s3, run: 'show {r}', inputs: [{id: r, var: r2}]}
results: {all: zs}
";
    let loaded = catena_model::load_text(Path::new("w.yaml"), text, &LoadOptions::default());
    assert_eq!(executed(&loaded).unwrap().0.len(), 2, "the condition does not hold");
    same_as_composition(&loaded, Path::new("w.yaml"));
}

/// What a random composition is made of: each step takes a workflow that came before and makes another of it.
fn steps() -> impl Strategy<Value = Vec<(usize, prop::sample::Index, prop::sample::Index)>> {
    prop::collection::vec((0..6usize, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..12)
}

/// Workflows with the inputs `a` and `b` and the output `y`, so that every construct can be applied to each.
fn random(steps: &[(usize, prop::sample::Index, prop::sample::Index)]) -> Composition {
    let mut text = String::from("composition: 1\nroot: main\nvalues: {a: '1', b: '2'}\nworkflows:\n");
    let part = |n: usize, body: &str| {
        format!("  w{n}: {{inputs: {{a: string, b: string}}, outputs: {{y: string}}, {body}}}\n")
    };
    text += &part(0, "task: {run: 'p {a} {b} {y}'}");
    for (n, (kind, of, other)) in (1..).zip(steps) {
        let (of, other) = (of.index(n), other.index(n));
        let graph =
            |nodes: &str, links: &str| part(n, &format!("graph: {{nodes: {{{nodes}}}, links: {{{links}}}}}"));
        let single = |id: &str| {
            let nodes = format!("z: {{use: {id}}}, l: {{use: list}}");
            graph(&nodes, "i: a -> l.a, j: b -> l.b, k: l.y -> z.b, m: a -> z.a, o: z.y -> y")
        };
        text += &match kind {
            0 => graph(
                &format!(
                    "p: {{use: w{of}, at: [1, 2]}}, q: {{use: w{other}, label: 'second: one', after: [p]}}"
                ),
                "i: a -> p.a, j: b -> p.b, k: p.y -> q.a, l: b -> q.b, m: q.y -> y",
            ),
            1 => {
                format!("  c{n}: {{conditional: {{of: w{of}, when: \"{{a}} != '1'\", else: w{other}}}}}\n")
                    + &graph(&format!("c: {{use: c{n}}}"), "i: a -> c.a, j: b -> c.b, k: c.y -> y")
            }
            2 => {
                format!("  c{n}: {{reduce: {{of: w{of}, carry: a, element: b}}}}\n")
                    + &single(&format!("c{n}"))
            }
            3 => {
                format!("  c{n}: {{curry: {{of: w{of}, with: {{a: k{n}}}}}}}\n")
                    + &graph(&format!("c: {{use: c{n}}}"), "j: b -> c.b, k: c.y -> y")
            }
            4 => {
                format!(
                    "  c{n}: {{loop: {{of: w{of}, while: \"{{b}} == '2'\", feedback: {{y: a}}, max: 2}}}}\n"
                ) + &graph(&format!("c: {{use: c{n}}}"), "i: a -> c.a, j: b -> c.b, k: c.y -> y")
            }
            _ => {
                format!(
                    "  d{n}: {{map: {{of: w{of}, over: [b]}}}}\n  c{n}: {{tree: {{of: w{other}, left: a, right: b}}}}\n"
                ) + &graph(
                    &format!("d: {{use: d{n}}}, c: {{use: c{n}}}, l: {{use: list}}"),
                    "i: a -> d.a, q: a -> l.a, j: b -> l.b, k: l.y -> d.b, m: d.y -> c.a, o: c.y -> y",
                )
            }
        };
    }
    let last = steps.len();
    let _ = write!(
        text,
        "  list: {{inputs: {{a: string, b: string}}, outputs: {{y: '[string]'}}, task: {{run: 'l {{a}} {{b}} {{y}}'}}}}
  all:
    inputs: {{a: string, b: string}}
    graph:
      nodes: {{{}}}
      links: {{{}}}
  main:
    inputs: {{a: string, b: string}}
    outputs: {{y: string}}
    graph:
      nodes: {{all: {{use: all}}, last: {{use: w{last}}}, list: {{use: list}}}}
      links: {{a1: a -> all.a, b1: b -> all.b, a2: a -> last.a, b2: b -> last.b, y: last.y -> y, a3: a -> list.a, b3: b -> list.b}}
",
        (0..=last).map(|n| format!("n{n}: {{use: w{n}}}")).collect::<Vec<_>>().join(", "),
        (0..=last).map(|n| format!("a{n}: a -> n{n}.a, b{n}: b -> n{n}.b")).collect::<Vec<_>>().join(", "),
    );
    parse_composition(&text)
        .unwrap_or_else(|d| panic!("{:?}\n{text}", d.iter().map(|d| &d.message).collect::<Vec<_>>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 200 }))]

    #[test]
    fn compositions_are_written_and_read_without_loss_and_can_always_be_executed(steps in steps()) {
        let composition = random(&steps);
        let written = write(&composition);
        let again = parse_composition(&written);
        prop_assert_eq!(again.as_ref().ok(), Some(&composition), "{}", written);
        let json = serde_json::to_value(&composition).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Composition>(json).unwrap(), &composition);
        let rows = model::rows(&composition);
        prop_assert_eq!(&model::from_rows(rows.clone()), &composition);
        // Changing rows makes one composition of another.
        let other = random(&steps[..steps.len() / 2]);
        let mut table: BTreeMap<_, _> =
            rows.into_iter().map(|r| ((r.table, r.key().to_vec()), r)).collect();
        for change in model::row_changes(&composition, &other) {
            match change {
                RowChange::Put(row) => table.insert((row.table, row.key().to_vec()), row),
                RowChange::Remove(row) => table.remove(&(row.table, row.key().to_vec())),
            };
        }
        prop_assert_eq!(&model::from_rows(table.into_values()), &other);
        let loaded = load_text(Path::new("c.yaml"), &written, &LoadOptions::default());
        prop_assert!(!loaded.diags.has_errors(), "{}\n{}", problems(&loaded), written);
        prop_assert!(executed(&loaded).is_ok());
        let compiled = model::compile(&composition).text;
        let long = catena_model::load_text(Path::new("c.yaml"), &compiled, &LoadOptions::default());
        prop_assert_eq!(executed(&long), executed(&loaded));
    }
}
