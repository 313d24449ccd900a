//! `catena check` and `catena plan`: what documents mean.

use crate::project::Project;
use serde_json::Value;

const CP: &str = "
- id: cp
  path: cp
  parameters:
    - {id: input_file, type: input, cardinality: 1..1}
    - {id: output_file, type: output, cardinality: 1..1}
- id: join
  path: cat
  parameters:
    - {id: i, type: input, cardinality: 0..n}
    - {id: o, type: output, cardinality: 1..1}
- id: gpu
  path: cp
  requiredCapabilities: [gpu]
  parameters:
    - {id: input_file, type: input, cardinality: 1..1}
    - {id: output_file, type: output, cardinality: 1..1}
- id: unpack
  path: tar
  parameters:
    - {id: i, type: input, cardinality: 1..1}
    - {id: o, type: output, cardinality: 1..1, dataType: directory}
- id: pack
  path: tar
  parameters:
    - {id: i, type: input, cardinality: 1..1, dataType: directory}
    - {id: o, type: output, cardinality: 1..1}
";

fn project(workflow: &str) -> Project {
    let p = Project::with(workflow);
    p.write("services.yaml", CP);
    p
}

fn plan(p: &Project, arguments: &[&str]) -> Value {
    let all = ["plan", ".", "--services", "services.yaml", "--json"].iter().chain(arguments).copied();
    let output = p.command(all).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The names of tasks by step and chain.
fn tasks(plan: &Value) -> Vec<Vec<Vec<String>>> {
    let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
    let ids =
        |c: &Value| list(&c["executables"]).iter().map(|e| e["id"].as_str().unwrap().to_owned()).collect();
    list(&plan["steps"]).iter().map(|s| list(&s["chains"]).iter().map(ids).collect()).collect()
}

#[test]
fn all_problems_are_reported_with_place_path_and_nearest_name() {
    let p = project(
        "api: 4.7.0\nvars:\n  - id: a\n    value: x\nactions:\n  - type: execute\n    id: one\n    service: pc\n    inputs: [{id: input_file, var: a}]\n    outputs: [{id: output_file, var: b}]\n  - type: execute\n    id: two\n    service: cp\n    inputs: [{id: input_fiel, var: a}]\n    outputs: [{id: output_file, var: c}]\n  - type: execute\n    id: three\n    service: cp\n    dependsOn: [tow]\n    inputs: [{id: input_file, var: aa}]\n    outputs: [{id: output_file, var: d}]\n",
    );
    let done = p.catena(["check", ".", "--services", "services.yaml", "--json"]).expect(2);
    let json: Value = serde_json::from_str(&done.stdout).unwrap();
    let errors = json["errors"].as_array().unwrap();
    let find = |code: &str| {
        errors.iter().find(|e| e["code"] == code).unwrap_or_else(|| panic!("{code} in {json:#}"))
    };
    let service = find("unknown-service");
    assert_eq!((service["line"].as_u64(), service["help"].as_str()), (Some(6), Some("did you mean `cp`?")));
    assert_eq!(service["path"], "workflow->actions[0](execute pc)");
    assert_eq!(find("unknown-parameter")["help"], "did you mean `input_file`?");
    assert_eq!(find("unknown-dependency")["help"], "did you mean `two`?");
    assert_eq!(find("missing-value")["line"], 20);
    let shown = p.catena(["check", ".", "--services", "services.yaml"]).expect(2);
    assert!(
        shown.stderr.contains("workflow.yaml:6:5") && shown.stderr.contains("5 errors"),
        "{}",
        shown.stderr
    );
}

#[test]
fn an_empty_fan_out_completes() {
    let p = project(
        "vars: [{id: list, value: []}]\nactions:\n  - {type: for, id: f, input: list, enumerator: e, output: outs, yieldToOutput: o, actions: [{type: execute, id: c, service: cp, inputs: [{id: input_file, var: e}], outputs: [{id: output_file, var: o}]}]}\n  - {type: execute, id: j, service: join, inputs: [{id: i, var: outs}], outputs: [{id: o, var: all}]}\n  - {type: execute, id: after, service: join, dependsOn: f, outputs: [{id: o, var: x}]}\n",
    );
    let plan = plan(&p, &[]);
    assert_eq!(tasks(&plan), [[["j"], ["after"]]]);
    assert_eq!(plan["finished"], true);
}

#[test]
fn depends_on_waits_for_a_recursive_loop() {
    let p = project(
        "vars: [{id: list, value: [a]}]\nactions:\n  - {type: for, id: f, input: list, enumerator: e, yieldToInput: o, actions: [{type: execute, id: c, service: cp, inputs: [{id: input_file, var: e}], outputs: [{id: output_file, var: o}]}]}\n  - {type: execute, id: after, service: join, dependsOn: f, outputs: [{id: o, var: x}]}\n",
    );
    p.write("steps.yaml", "- {results: {o$0: [b]}, executedExecutableIds: [c$0]}\n- {results: {o$1: []}, executedExecutableIds: [c$1]}\n");
    let plan = plan(&p, &["--results", "steps.yaml"]);
    assert_eq!(tasks(&plan), [vec![vec!["c$0"]], vec![vec!["c$1"]], vec![vec!["after"]]]);
    assert_eq!(plan["finished"], true);
}

#[test]
fn depends_on_waits_for_an_include_that_contains_a_loop() {
    let p = project(
        "macros: [{id: m, name: m, description: m, parameters: [{id: list, name: l, description: l, type: input}], actions: [{type: for, id: f, input: list, enumerator: e, actions: [{type: execute, id: c, service: cp, inputs: [{id: input_file, var: e}], outputs: [{id: output_file, var: o}]}]}]}]\nvars: [{id: list, value: [a, b]}]\nactions:\n  - {type: include, id: inc, macro: m, inputs: [{id: list, var: list}]}\n  - {type: execute, id: after, service: join, dependsOn: inc, outputs: [{id: o, var: x}]}\n",
    );
    p.write("steps.yaml", "- {results: {$inc$m$o$0: [a]}, executedExecutableIds: [$inc$m$c$0]}\n- {results: {$inc$m$o$1: [b]}, executedExecutableIds: [$inc$m$c$1]}\n");
    let plan = plan(&p, &["--results", "steps.yaml", "--reload"]);
    assert_eq!(tasks(&plan), [vec![vec!["$inc$m$c$0"], vec!["$inc$m$c$1"]], vec![], vec![vec!["after"]]]);
}

#[test]
fn a_directory_means_the_same_inside_and_between_chains() {
    let text = "vars: [{id: a, value: x.tar}]\nactions:\n  - {type: execute, id: u, service: unpack, inputs: [{id: i, var: a}], outputs: [{id: o, var: d}]}\n  - {type: execute, id: next, service: NEXT, inputs: [{id: IN, var: d}], outputs: [{id: OUT, var: r}]}\n";
    // A consumer that wants files has to wait until they are known.
    let p = project(&text.replace("NEXT", "join").replace("IN", "i").replace("OUT", "o"));
    p.write("steps.yaml", "- {results: {d: [/tmp/0/sub/1, /tmp/0/sub/2]}, executedExecutableIds: [u]}\n");
    let files = plan(&p, &["--results", "steps.yaml"]);
    assert_eq!(tasks(&files), [vec![vec!["u"]], vec![vec!["next"]]]);
    let values: Vec<&str> = files["steps"][1]["chains"][0]["executables"][0]["arguments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["variable"]["value"].as_str().unwrap())
        .collect();
    assert_eq!(&values[..2], ["/tmp/0/sub/1", "/tmp/0/sub/2"]);
    // One that wants the directory gets the same path in one chain and in two.
    let p = project(&text.replace("NEXT", "pack").replace("IN", "i").replace("OUT", "o"));
    p.write("steps.yaml", "- {results: {d: [/tmp/0/sub/1, /tmp/0/sub/2]}, executedExecutableIds: [u]}\n");
    let one = plan(&p, &[]);
    let two = plan(&p, &["--chains", "single", "--results", "steps.yaml"]);
    let value = |plan: &Value, step: usize, task: usize| {
        plan["steps"][step]["chains"][0]["executables"][task]["arguments"][0]["variable"]["value"].clone()
    };
    assert_eq!(value(&one, 0, 1), "/tmp/0");
    assert_eq!(value(&two, 1, 0), "/tmp/0");
}

#[test]
fn chains_are_cut_where_required_capabilities_differ() {
    let p = project(
        "vars: [{id: a, value: x}]\nactions:\n  - {type: execute, id: one, service: cp, inputs: [{id: input_file, var: a}], outputs: [{id: output_file, var: b}]}\n  - {type: execute, id: two, service: gpu, inputs: [{id: input_file, var: b}], outputs: [{id: output_file, var: c}]}\n  - {type: execute, id: three, service: cp, inputs: [{id: input_file, var: c}], outputs: [{id: output_file, var: d}]}\n",
    );
    assert_eq!(tasks(&plan(&p, &[])), [[["one"]]]);
    let union = plan(&p, &["--chains", "union"]);
    assert_eq!(tasks(&union), [[["one", "two", "three"]]]);
    assert_eq!(union["steps"][0]["chains"][0]["requiredCapabilities"], serde_json::json!(["gpu"]));
}

#[test]
fn lists_come_back_in_the_order_of_their_elements() {
    let p = project(
        "vars: [{id: list, value: [a, b, c]}]\nactions:\n  - {type: for, input: list, enumerator: e, output: outs, yieldToOutput: o, actions: [{type: execute, id: c, service: cp, inputs: [{id: input_file, var: e}], outputs: [{id: output_file, var: o}]}]}\n  - {type: for, input: outs, enumerator: f, output: more, yieldToOutput: o2, actions: [{type: execute, id: d, service: cp, inputs: [{id: input_file, var: f}], outputs: [{id: output_file, var: o2}]}]}\n  - {type: execute, id: j, service: join, inputs: [{id: i, var: more}], outputs: [{id: o, var: all}]}\n",
    );
    p.write("steps.yaml", "- {results: {o$2: [C]}}\n- {results: {o$0: [A], o$1: [B]}}\n- {results: {o2$0: [CC], o2$1: [AA], o2$2: [BB]}}\n");
    let plan = plan(&p, &["--results", "steps.yaml"]);
    let last = &plan["steps"][3]["chains"][0]["executables"][0]["arguments"];
    let values: Vec<&str> =
        last.as_array().unwrap().iter().map(|a| a["variable"]["value"].as_str().unwrap()).collect();
    assert_eq!(&values[..3], ["AA", "BB", "CC"]);
}

#[test]
fn sub_workflows_zips_and_products_run() {
    let p = Project::with(
        "catena: 1\ninputs: { xs: [1, 2], ys: [a, b] }\nsteps:\n  product: { for: [x in xs, y in ys], run: 'echo {x}{y} > {out}', out: '{x}{y}' }\n  pairs: { zip: [x in xs, y in ys], run: 'echo {x}-{y} > {out}', out: '{x}-{y}' }\n  sub: { use: inner.yaml, in: { word: '{pairs.out}' } }\n  all: { run: 'cat {product.out} {sub.loud} > {out}', out: all }\nresults: { all: '{all.out}' }\n",
    );
    p.write("inner.yaml", "catena: 1\ninputs: { word: none }\nsteps:\n  up: { run: \"cat {word} | tr a-z A-Z > {out}\", out: up }\nresults: { loud: '{up.out}' }\n");
    p.catena(["run", "."]).expect(0);
    assert_eq!(p.read("results/all"), "1a\n1b\n2a\n2b\n1-A\n2-B\n");
}

#[test]
fn many_actions_in_one_workflow_are_planned() {
    // `cargo xtask bench local` plans a million.
    use std::fmt::Write;
    let n = 20_000;
    let mut text = String::from("actions:\n");
    for i in 0..n {
        let _ =
            writeln!(text, "- {{type: execute, id: a{i}, service: join, outputs: [{{id: o, var: v{i}}}]}}");
    }
    let p = project(&text);
    let plan = plan(&p, &[]);
    assert_eq!(plan["steps"][0]["chains"].as_array().unwrap().len(), n);
}
