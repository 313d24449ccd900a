//! Executors with directories of their own, real processes, and real transfers.

use super::*;
use crate::matter::{Document, Finished, Lost, Over};
use crate::results::{ResultsError, fetch_results};
use crate::weave::{Pace, Weave};
use catena_model::{LoadOptions, Value, load, load_text};
use catena_server::{Definition, PublishedResult};
use catena_space::molecule::Name as Molecule;
use catena_space::node::{NewTask, Weaver};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No task in these tests takes so long.
const LONG: Duration = Duration::from_mins(1);

impl Executor {
    /// Gets the results of a workflow that was given in here, and puts them below `out`, as a run on one machine does.
    pub(crate) fn fetch_results(
        &self,
        finished: &Finished,
        out: &Path,
    ) -> Result<Vec<PublishedResult>, ResultsError> {
        fetch_results(&self.shared.depot, finished, &self.shared.config.directory.join("results"), out)
    }
}

struct Peer {
    executor: Executor,
    reports: Receiver<Executed>,
    place: tempfile::TempDir,
    others: RefCell<Vec<Name>>,
}

impl Peer {
    fn new(name: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let config = ExecutorConfig {
            name: name.into(),
            directory: place.path().to_path_buf(),
            capabilities: vec!["x".into()],
            resources: Resources { cpus: 2000, memory: 1 << 30, disk: u64::MAX, named: BTreeMap::new() },
            speed: 1.0,
            listen: ([127, 0, 0, 1], 0).into(),
            host: None,
            quota: None,
        };
        let (sender, reports) = channel();
        let report = move |executed| drop(sender.send(executed));
        Self {
            executor: Executor::start(config, Box::new(report)).unwrap(),
            reports,
            place,
            others: RefCell::default(),
        }
    }

    fn assign(&self, task: Id, epoch: u32, payload: &[u8], inputs: &[(Molecule, Arc<Ending>)]) {
        let others = self.others.borrow().clone();
        self.executor.assign(Assignment { task, epoch, workflow: Id(7), payload, inputs, others });
    }

    /// Executes a task, and says what came of it.
    fn execute(&self, task: &NewTask, inputs: &[(Molecule, Arc<Ending>)]) -> Arc<Ending> {
        let id = Id(u128::from(task.number));
        self.assign(id, 3, &task.order.payload, inputs);
        let executed = self.reports.recv_timeout(LONG).expect("a report");
        assert_eq!((executed.task, executed.epoch), (id, 3));
        Arc::new(executed.ending)
    }

    fn document(&self, text: &str) -> Document {
        let loaded = load_text(&self.place.path().join("w.yaml"), text, &LoadOptions::default());
        assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags);
        Document::new(Definition::default(), &loaded, self.executor.depot(), &"entry".into()).unwrap()
    }
}

fn input(task: u32, ending: &Arc<Ending>) -> (Molecule, Arc<Ending>) {
    (Molecule::task(task), ending.clone())
}

/// Executes a workflow on some peers in turn.
fn execute(document: &Document, peers: &[&Peer]) -> Finished {
    let mut weave = Weave::new(document.clone(), Pace::Ahead).unwrap();
    let mut waiting = weave.begin().unwrap();
    let mut endings: BTreeMap<u32, Arc<Ending>> = BTreeMap::new();
    let mut turn = peers.iter().cycle();
    while let Some(place) = waiting.iter().position(|t| t.sources.iter().all(|s| endings.contains_key(s))) {
        let task = waiting.remove(place);
        let inputs: Vec<_> = task.sources.iter().map(|s| input(*s, &endings[s])).collect();
        let ending = turn.next().unwrap().execute(&task, &inputs);
        assert!(ending.good, "{:?}", TaskEnding::read(&ending));
        waiting.extend(weave.done(task.number, &ending).unwrap());
        endings.insert(task.number, ending);
    }
    assert!(waiting.is_empty());
    match Over::read(&weave.ending()) {
        Over::Done(finished) => *finished,
        other => panic!("{other:?}"),
    }
}

/// All files below a directory, with what is in them.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

const TWO: &str = "
catena: 1
inputs: { a: in.txt }
steps:
  one: { run: 'cat {a} > {out}; echo beside > {out}.index', out: one.txt }
  two: { run: 'cat {one.out} {one.out}.index > {out}', out: two.txt, cpus: 2 }
results: { end: '{two.out}' }
";

#[test]
fn a_task_reads_what_another_peer_has_written() {
    let (entry, a, b) = (Peer::new("entry"), Peer::new("a"), Peer::new("b"));
    fs::write(entry.place.path().join("in.txt"), "from the entry\n").unwrap();
    let document = entry.document(TWO);
    let mut weave = Weave::new(document.clone(), Pace::Ahead).unwrap();
    let tasks = weave.begin().unwrap();
    assert_eq!((tasks.len(), &tasks[1].sources[..]), (2, &[1][..]));
    let one = a.execute(&tasks[0], &[]);
    let TaskEnding::Done { results, holders } = TaskEnding::read(&one).unwrap() else { panic!("{one:?}") };
    assert_eq!((results.len(), &holders[..]), (1, &[a.executor.origin()][..]));
    let two = b.execute(&tasks[1], &[input(1, &one)]);
    weave.done(1, &one).unwrap();
    weave.done(2, &two).unwrap();
    let Over::Done(finished) = Over::read(&weave.ending()) else { panic!("{two:?}") };
    assert_eq!((finished.tasks, finished.run), (2, document.run));
    let out = entry.place.path().join("results");
    let published = entry.executor.fetch_results(&finished, &out).unwrap();
    assert_eq!(published[0].values, [out.join("two.txt").display().to_string()]);
    let expected = BTreeMap::from([("two.txt".to_owned(), b"from the entry\nbeside\n".to_vec())]);
    assert_eq!(files(&out), expected);
    for peer in [&entry, &a, &b] {
        peer.executor.forget(finished.run);
        assert!(peer.executor.depot().holdings().kept().is_empty());
        assert!(fs::read_dir(peer.place.path().join("runs")).unwrap().next().is_none());
    }
}

#[test]
fn many_peers_come_to_the_same_as_one() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first/workflow.yaml");
    let rows: Value = (0..8).map(Value::from).collect();
    let inputs = vec![("rows".into(), rows), ("height".into(), 8.into()), ("width".into(), 12.into())];
    let loaded = load(&example, &LoadOptions { inputs, ..LoadOptions::default() });
    let peers = ["a", "b", "c"].map(Peer::new);
    let out = |peers: &[&Peer]| {
        let document = Document::new(Definition::default(), &loaded, peers[0].executor.depot(), &"a".into());
        let finished = execute(&document.unwrap(), peers);
        let out = tempfile::tempdir().unwrap();
        peers[0].executor.fetch_results(&finished, out.path()).unwrap();
        files(out.path())
    };
    let (many, one) = (out(&[&peers[0], &peers[1], &peers[2]]), out(&[&peers[1]]));
    assert_eq!(many.keys().collect::<Vec<_>>(), ["mandelbrot.svg"]);
    assert!(many == one, "the pictures differ");
}

#[test]
fn what_is_behind_a_directory_and_what_is_stored_come_home() {
    let (a, b) = (Peer::new("a"), Peer::new("b"));
    let finished = execute(
        &a.document(
            "
services:
  - { id: make, path: sh, run: 'mkdir -p {o}/sub; echo 1 > {o}/1; echo 2 > {o}/sub/2', parameters: [{ id: o, type: output, cardinality: 1..1, dataType: directory }] }
  - { id: double, path: sh, run: 'cat {i} {i} > {o}', parameters: [{ id: i, type: input }, { id: o, type: output, fileSuffix: .txt }] }
actions:
  - { type: execute, service: make, outputs: [{ id: o, var: parts }] }
  - type: for
    input: parts
    enumerator: part
    output: all
    yieldToOutput: one
    actions: [{ type: execute, service: double, inputs: [{ id: i, var: part }], outputs: [{ id: o, var: one, store: true, prefix: kept/ }] }]
results: { all: all }
",
        ),
        &[&a, &b],
    );
    let out = tempfile::tempdir().unwrap();
    a.executor.fetch_results(&finished, out.path()).unwrap();
    let files = files(out.path());
    let (kept, named): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| name.starts_with("kept/"));
    let contents = |files: &[(&String, &Vec<u8>)]| files.iter().map(|f| f.1.clone()).collect::<BTreeSet<_>>();
    assert_eq!((kept.len(), named.len()), (2, 2), "{files:?}");
    assert_eq!(contents(&kept), BTreeSet::from([b"1\n1\n".to_vec(), b"2\n2\n".to_vec()]));
    assert!(named.iter().all(|(name, _)| name.starts_with("all/")));
    assert_eq!(contents(&kept), contents(&named));
}

#[test]
fn a_command_that_fails_says_how() {
    let a = Peer::new("a");
    let document = a.document("{catena: 1, steps: {bad: {run: 'echo so it is >&2; exit 7', out: x}}}");
    let tasks = Weave::new(document, Pace::Ahead).unwrap().begin().unwrap();
    let ending = a.execute(&tasks[0], &[]);
    assert!(!ending.good);
    let Over::Failed(failure) = Over::read(&ending) else { panic!("{ending:?}") };
    assert_eq!((failure.task.as_str(), failure.exit_code), ("bad", Some(7)));
    assert_eq!(failure.tail, ["so it is"]);
    a.assign(Id(9), 1, b"no task", &[]);
    let ending = a.reports.recv_timeout(LONG).unwrap().ending;
    assert!(matches!(Over::read(&ending), Over::Failed(f) if f.message.contains("cannot be read")));
}

#[test]
fn a_task_that_is_stopped_is_killed_and_not_spoken_of() {
    let a = Peer::new("a");
    let mark = a.place.path().join("pid");
    let text = format!(
        "{{catena: 1, steps: {{long: {{run: 'echo $$ > {0}.new; mv {0}.new {0}; sleep 600', cpus: 2, needs: x}}}}}}",
        mark.display()
    );
    let tasks = Weave::new(a.document(&text), Pace::Ahead).unwrap().begin().unwrap();
    let free = a.executor.resource(5).expect("there is room");
    assert_eq!(free.attribute("cpus"), Some(&catena_rules::Value::Int(2)));
    a.assign(Id(1), 1, &tasks[0].order.payload, &[]);
    assert_eq!(a.executor.resource(5), None, "all is taken");
    let begun = Instant::now();
    let wait_for = |what: &dyn Fn() -> bool| {
        while !what() {
            assert!(begun.elapsed() < LONG);
            thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(&|| mark.exists());
    let pid = fs::read_to_string(&mark).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    a.executor.stop(Id(1), 2);
    assert_eq!(a.executor.resource(5), None, "that was another lease");
    a.executor.stop(Id(1), 1);
    wait_for(&|| !process.exists());
    wait_for(&|| a.executor.resource(5).is_some());
    assert_eq!(a.executor.resource(5), Some(free));
    assert_eq!(a.reports.recv_timeout(Duration::from_millis(100)).err(), Some(RecvTimeoutError::Timeout));
}

#[test]
fn what_nobody_has_any_more_is_named_and_can_be_made_again() {
    let (entry, a, b, c) = (Peer::new("entry"), Peer::new("a"), Peer::new("b"), Peer::new("c"));
    fs::write(entry.place.path().join("in.txt"), "x").unwrap();
    let document = entry.document(TWO);
    let tasks = Weave::new(document.clone(), Pace::Ahead).unwrap().begin().unwrap();
    let one = a.execute(&tasks[0], &[]);
    let (sender, kept) = channel();
    let TaskEnding::Done { results, holders } = TaskEnding::read(&one).unwrap() else { panic!("{one:?}") };
    let files = results.into_iter().flat_map(|r| r.data).collect();
    c.executor.keep((document.run, Id(7)), files, holders, move |result| sender.send(result).unwrap());
    assert_eq!(kept.recv_timeout(LONG).unwrap(), Ok(()));
    drop(a);
    let two = b.execute(&tasks[1], &[input(1, &one)]);
    let TaskEnding::Lost(Lost { of, name, .. }) = TaskEnding::read(&two).unwrap() else { panic!("{two:?}") };
    assert_eq!(of, 1);
    assert!(name.contains("/data/"), "{name}");
    // Either somebody is known to have a copy …
    b.others.borrow_mut().push("c".into());
    b.executor.know("c".into(), c.executor.depot().address().clone());
    assert!(b.execute(&tasks[1], &[input(1, &one)]).good);
    // … or it is made again.
    let again = c.execute(&tasks[0], &[]);
    let d = Peer::new("d");
    assert!(d.execute(&tasks[1], &[input(1, &again)]).good);
}
