//! What a workflow consists of, as seen from the beginning.

use super::*;
use crate::matter::Over;
use catena_model::chain::{DataAddress, Origin, Produced};
use catena_model::content::{Artifact, ContentId, FileRef};
use catena_model::{Direction, LoadOptions, Loaded, Value, load, load_text};
use catena_server::Definition;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;

fn document(loaded: &Loaded) -> Document {
    assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags);
    let definition = Definition::default().with_files(loaded);
    Document { run: 7, definition, files: Vec::new(), holders: Vec::new(), usual: BTreeMap::new() }
}

fn text(text: &str) -> Document {
    document(&load_text(Path::new("w.yaml"), text, &LoadOptions::default()))
}

fn example(name: &str, inputs: &[(&str, Value)]) -> Document {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).join("workflow.yaml");
    let inputs = inputs.iter().map(|(name, value)| (Name::new(name), value.clone())).collect();
    document(&load(&file, &LoadOptions { inputs, ..LoadOptions::default() }))
}

fn examples() -> Vec<(&'static str, Document)> {
    let range = |n: u64| serde_json::json!((0..n).collect::<Vec<_>>());
    vec![
        ("first", example("first", &[("rows", range(12))])),
        ("mosaic", example("mosaic", &[])),
        ("variants", example("variants", &[])),
    ]
}

fn origin(name: &str) -> Origin {
    let url = format!("http://{name}").into();
    Origin::Agent { name: name.into(), address: DataAddress { url, token: "t".into() } }
}

/// What a task has given: of each directory two files.
fn ending(task: &Task) -> Ending {
    let results = task.chain.executables.iter().map(|t| {
        let mut result = TaskResult { attempts: 1, ..TaskResult::default() };
        for output in t.outputs() {
            let path = output.variable.value.as_str();
            let files = match output.data_type.as_str() {
                DIRECTORY => vec![format!("{path}/1"), format!("{path}/2")],
                _ => vec![path.to_owned()],
            };
            let file = FileRef { id: ContentId::of(path.as_bytes()), size: 1, executable: false };
            result.data.push(Produced { name: path.into(), artifact: Artifact::File(file) });
            result.outputs.push(files);
        }
        result
    });
    let holders = vec![origin(&format!("peer{}", task.number))];
    TaskEnding::Done { results: results.collect(), holders }.to_ending()
}

/// What came of weaving to the end.
struct Woven {
    /// Each task, whom it names as those it waits for, and in which batch it came.
    tasks: BTreeMap<u32, (Task, Vec<u32>, usize)>,
    batches: usize,
    order: Vec<u32>,
    over: Ending,
}

/// Weaves, and ends tasks as soon as they can, the last or the first of those that can first.
fn weave(document: &Document, last_first: bool) -> Woven {
    let mut weave = Weave::new(document.clone(), Pace::Ahead).unwrap();
    assert!(weave.wants_all());
    let mut woven = Woven {
        tasks: BTreeMap::new(),
        batches: 0,
        order: Vec::new(),
        over: Ending { good: false, matter: [].into() },
    };
    let mut batch = weave.begin().unwrap();
    let mut waiting: VecDeque<u32> = VecDeque::new();
    let mut over: BTreeSet<u32> = BTreeSet::new();
    loop {
        let numbers: BTreeSet<u32> = batch.iter().map(|t| t.number).collect();
        woven.batches += usize::from(!batch.is_empty());
        for new in std::mem::take(&mut batch) {
            assert!(new.sources.iter().all(|s| numbers.contains(s) && *s < new.number), "{new:?}");
            let task = Task::read(&new.order.payload).unwrap();
            assert_eq!((task.number, task.chain.exclusive), (new.number, new.order.exclusive));
            waiting.push_back(new.number);
            let known = woven.tasks.insert(new.number, (task, new.sources, woven.batches));
            assert!(known.is_none(), "{} comes twice", new.number);
        }
        let mut can = waiting.iter().copied().filter(|n| woven.tasks[n].1.iter().all(|s| over.contains(s)));
        let Some(number) = (if last_first { can.next_back() } else { can.next() }) else {
            assert!(waiting.is_empty(), "they wait for each other");
            woven.over = weave.ending();
            return woven;
        };
        waiting.retain(|n| *n != number);
        over.insert(number);
        woven.order.push(number);
        batch = weave.done(number, &ending(&woven.tasks[&number].0)).unwrap();
    }
}

/// The chains of a run in which every task succeeds at once, as planned on one machine.
fn ordinary(document: &Document) -> Vec<ProcessChain> {
    let program = Arc::new(document.definition.compile().unwrap());
    let mut planner = Planner::new(program, document.definition.plan_options(&document.context()));
    let mut chains: Vec<ProcessChain> = Vec::new();
    let mut used = 0;
    loop {
        while let Some(chain) = planner.next_chain().unwrap() {
            chains.push(chain);
        }
        if used == chains.len() {
            assert!(planner.is_finished());
            return chains;
        }
        for (seq, chain) in chains.iter().enumerate().skip(used) {
            let task =
                Task { number: 1, context: document.context(), chain: chain.clone(), items: Vec::new() };
            let TaskEnding::Done { results, .. } = TaskEnding::read(&ending(&task)).unwrap() else {
                panic!()
            };
            planner.chain_succeeded(seq as u64, results.into_iter().map(|r| r.outputs).collect());
        }
        used = chains.len();
    }
}

fn names(chain: &ProcessChain) -> Vec<String> {
    chain.executables.iter().map(|t| t.id.to_string()).collect()
}

#[test]
fn the_same_chains_come_as_on_one_machine() {
    for (name, document) in examples() {
        let woven = weave(&document, false);
        let mut ours: Vec<Vec<String>> = woven.tasks.values().map(|(t, ..)| names(&t.chain)).collect();
        let mut theirs: Vec<Vec<String>> = ordinary(&document).iter().map(names).collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{name}");
        assert!(woven.over.good);
    }
}

#[test]
fn all_that_can_be_foreseen_comes_at_once() {
    for (name, document) in examples() {
        let woven = weave(&document, false);
        let lists =
            woven.tasks.values().flat_map(|(t, ..)| &t.chain.executables).flat_map(Executable::outputs);
        let has_directories = lists.into_iter().any(|o| o.data_type == DIRECTORY);
        assert_eq!(woven.batches > 1, has_directories, "{name}: {} batches", woven.batches);
    }
}

/// No task reads what neither it nor one that it waits for has written, whatever the order in which tasks end.
#[test]
fn whoever_reads_something_waits_for_who_writes_it() {
    for ((name, document), last_first) in examples().into_iter().flat_map(|e| [(e.clone(), true), (e, false)])
    {
        let woven = weave(&document, last_first);
        let mut writers: HashMap<String, u32> = HashMap::new();
        for (number, (task, ..)) in &woven.tasks {
            for output in task.chain.executables.iter().flat_map(Executable::outputs) {
                writers.insert(output.variable.value.to_string(), *number);
            }
        }
        let mut checked = 0;
        for (number, (task, sources, _)) in &woven.tasks {
            for argument in task.chain.executables.iter().flat_map(|t| &t.arguments) {
                let value = argument.variable.value.as_str();
                let mut above = Path::new(value).ancestors().filter_map(Path::to_str);
                let writer = above.find_map(|a| writers.get(a));
                assert!(writer.is_some() || !value.starts_with("/catena/"), "{name}: nobody writes {value}");
                let Some(writer) = writer.filter(|w| argument.direction == Direction::Input && *w != number)
                else {
                    continue;
                };
                checked += 1;
                let item = task
                    .items
                    .iter()
                    .find(|i| i.of == *writer && Path::new(value).starts_with(&i.supply.name));
                match item {
                    Some(item) => assert_eq!(item.supply.sources, [origin(&format!("peer{writer}"))]),
                    None => assert!(sources.contains(writer), "{name}: {number} does not wait for {writer}"),
                }
            }
        }
        assert!(checked > 0, "{name}");
    }
}

#[test]
fn whoever_takes_over_comes_to_the_same() {
    for (name, document) in examples() {
        let woven = weave(&document, true);
        let mut again =
            Weave::new(Document::read(&document.to_bytes().unwrap()).unwrap(), Pace::Ahead).unwrap();
        let mut tasks = again.begin().unwrap();
        for number in &woven.order {
            tasks.extend(again.done(*number, &ending(&woven.tasks[number].0)).unwrap());
            assert!(again.done(*number, &ending(&woven.tasks[number].0)).unwrap().is_empty(), "again");
        }
        assert_eq!(tasks.len(), woven.tasks.len(), "{name}");
        for task in tasks {
            let (other, sources, _) = &woven.tasks[&task.number];
            assert_eq!(task.order.payload, other.to_bytes().unwrap());
            assert_eq!(task.sources, *sources);
        }
        assert_eq!(again.ending(), woven.over);
    }
}

const SPLIT: &str = "
catena: 1
steps:
  split: { run: 'split {out}', out: parts/ }
  beside: { run: 'echo > {out}', out: b.txt }
  count: { for: part in split.out, run: 'wc {part} {beside.out} > {out}', out: n.txt }
  sum: { run: 'cat {count.out} > {out}', out: sum.txt }
results: { sum: '{sum.out}', parts: '{split.out}' }
";

#[test]
fn what_is_behind_a_directory_comes_when_it_is_known() {
    for last_first in [true, false] {
        let woven = weave(&text(SPLIT), last_first);
        let batch = |id: &str| {
            let found = woven.tasks.values().find(|(t, ..)| names(&t.chain).iter().any(|n| n == id));
            found.map(|(_, _, batch)| *batch).unwrap()
        };
        assert_eq!((batch("split"), batch("beside")), (1, 1));
        assert_eq!((batch("count$0"), batch("count$1"), batch("sum")), (2, 2, 2), "all the rest at once");
        let Over::Done(finished) = Over::read(&woven.over) else { panic!("{:?}", woven.over) };
        assert_eq!(finished.tasks, 5);
        let parts = &finished.results.iter().find(|(name, _)| name == "parts").unwrap().1;
        assert_eq!(parts.len(), 2);
        assert_eq!(finished.files.len(), 2, "the sum, and the directory");
    }
}

#[test]
fn steps_that_come_after_others_wait_for_these() {
    let woven = weave(
        &text(
            "
catena: 1
inputs: { xs: [a, b] }
steps:
  one: { run: 'echo > {out}', out: 1.txt }
  two: { run: 'true', after: one, needs: other }
  loop: { for: x in xs, run: 'echo {x}', after: two }
  last: { run: 'true', after: loop }
",
        ),
        false,
    );
    let number = |id: &str| *woven.tasks.iter().find(|(_, (t, ..))| names(&t.chain)[0] == id).unwrap().0;
    let sources = |id: &str| woven.tasks[&number(id)].1.clone();
    assert_eq!(sources("two"), [number("one")]);
    assert_eq!((sources("loop$0"), sources("loop$1")), (vec![number("two")], vec![number("two")]));
    assert_eq!(woven.tasks[&number("last")].2, 2, "the end of a loop cannot be foreseen");
}

#[test]
fn a_chain_with_a_task_that_must_not_be_started_twice_is_exclusive() {
    let woven = weave(
        &text(
            "{catena: 1, steps: {pay: {run: 'pay > {out}', out: bill, start: exclusive}, look: {run: 'cat {pay.out}'}, other: {run: 'true'}}}",
        ),
        false,
    );
    let exclusive: Vec<(Vec<String>, bool)> =
        woven.tasks.values().map(|(t, ..)| (names(&t.chain), t.chain.exclusive)).collect();
    assert_eq!(exclusive, [(vec!["pay".into(), "look".into()], true), (vec!["other".into()], false)]);
}

#[test]
fn what_differs_from_what_was_foreseen_is_an_error() {
    let mut weave = Weave::new(text(SPLIT), Pace::Ahead).unwrap();
    let tasks = weave.begin().unwrap();
    let task =
        tasks.iter().map(|t| Task::read(&t.order.payload).unwrap()).find(|t| names(&t.chain) == ["beside"]);
    let task = task.unwrap();
    let TaskEnding::Done { mut results, holders } = TaskEnding::read(&ending(&task)).unwrap() else {
        panic!()
    };
    results[0].outputs[0].push("/catena/another".into());
    let why = weave.done(task.number, &TaskEnding::Done { results, holders }.to_ending()).unwrap_err();
    assert!(why.contains("something else"), "{why}");
    assert!(weave.done(1, &Ending { good: true, matter: b"?".to_vec().into() }).is_err());
}

#[test]
fn files_that_came_with_the_workflow_are_named_with_who_has_them() {
    let mut document =
        text("{catena: 1, inputs: {a: data/in.txt}, steps: {s: {run: 'cat {a} > {out}', out: o}}}");
    let file = FileRef { id: ContentId::of(b"x"), size: 1, executable: false };
    document.files.push(Produced { name: "data/in.txt".into(), artifact: Artifact::File(file) });
    document.holders.push(origin("entry"));
    let woven = weave(&document, false);
    let items = &woven.tasks[&1].0.items;
    assert_eq!((items.len(), items[0].of, &items[0].supply.sources[..]), (1, 0, &[origin("entry")][..]));
}

#[test]
fn many_tasks_come_in_parts() {
    let list: Vec<String> = (0..AHEAD as u64 + 500).map(|n| n.to_string()).collect();
    let text = text(&format!(
        "{{catena: 1, inputs: {{xs: [{}]}}, steps: {{a: {{for: x in xs, run: 'echo {{x}} > {{out}}', out: o}}}}}}",
        list.join(",")
    ));
    let mut weave = Weave::new(text, Pace::Ahead).unwrap();
    let first = weave.begin().unwrap();
    assert_eq!(first.len(), AHEAD);
    let mut done = |task: &NewTask| {
        let task = Task::read(&task.order.payload).unwrap();
        weave.done(task.number, &ending(&task)).unwrap().len()
    };
    let next: Vec<usize> = first.iter().take(AHEAD / 8).map(&mut done).collect();
    assert_eq!(next.iter().sum::<usize>(), 500, "the rest");
    assert_eq!(*next.last().unwrap(), 500, "and at once");
}

#[test]
fn rules_that_do_not_pass_on_what_tasks_have_given_get_them_level_by_level() {
    let pace = |rules: &str| Loom::new(&Chemistry::shipped(rules).unwrap()).pace;
    assert_eq!(
        (pace("dependencies"), pace("min-min"), pace("levels")),
        (Pace::Ahead, Pace::Ahead, Pace::Levels)
    );
    let document = example("first", &[("rows", serde_json::json!([1, 2, 3]))]);
    let mut weave = Weave::new(document, Pace::Levels).unwrap();
    let mut batch = weave.begin().unwrap();
    let mut sizes = Vec::new();
    while !batch.is_empty() {
        sizes.push(batch.len());
        assert!(batch.iter().all(|t| t.sources.is_empty()));
        for task in std::mem::take(&mut batch) {
            let task = Task::read(&task.order.payload).unwrap();
            let read = chain_inputs(&task.chain);
            let made = read.iter().filter(|name| name.starts_with("/catena/")).count();
            assert_eq!(task.items.len(), made, "it is said where everything is");
            batch.extend(weave.done(task.number, &ending(&task)).unwrap());
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
}
