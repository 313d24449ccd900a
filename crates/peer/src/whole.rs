//! Everything but the network: nodes of the space, weavers and executors execute real workflows together.

use crate::execute::{Assignment, Executed, Executor, ExecutorConfig};
use crate::matter::{Document, Finished, Over};
use crate::weave::Loom;
use catena_model::{LoadOptions, Loaded, Resources, Value, load, load_text};
use catena_server::Definition;
use catena_space::id::{Id, Peer};
use catena_space::molecule::{Ending, Matter};
use catena_space::route::{Contact, Effects, FullView};
use catena_space::time::{Micros, SECOND};
use catena_space::{Chemistry, Message, Node, Note, Output, Settings};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Peers in one process. Their messages are encoded as they would be on the way.
struct World {
    begun: Instant,
    peers: BTreeMap<Peer, Member>,
    mail: VecDeque<(Peer, Peer, Vec<u8>)>,
    reports: Receiver<(Peer, Executed)>,
    over: Option<Arc<Ending>>,
    notes: Vec<Note>,
    largest: usize,
    _places: tempfile::TempDir,
}

struct Member {
    node: Node,
    executor: Executor,
}

impl World {
    fn new(count: u64, rules: &str) -> Self {
        let places = tempfile::tempdir().unwrap();
        let chemistry = Arc::new(Chemistry::shipped(rules).unwrap());
        let peer = |n: u64| Peer(u64::MAX / count * n + 1);
        let contacts: Vec<Contact> = (0..count).map(|n| Contact::new(peer(n), String::new())).collect();
        let (sender, reports) = channel();
        let mut peers = BTreeMap::new();
        for contact in &contacts {
            let route = FullView::among(0, contact.clone(), &contacts, 1, &mut Effects::default());
            let settings = Settings { lease: 3 * SECOND, again: SECOND, ..Settings::default() };
            let loom = Box::new(Loom::new(&chemistry));
            let node = Node::new(0, contact.peer, Box::new(route), chemistry.clone(), loom, settings, 1);
            let executor = executor(&places.path().join(contact.peer.to_string()), contact.peer, &sender);
            peers.insert(contact.peer, Member { node, executor });
        }
        Self {
            begun: Instant::now(),
            peers,
            mail: VecDeque::new(),
            reports,
            over: None,
            notes: Vec::new(),
            largest: 0,
            _places: places,
        }
    }

    fn now(&self) -> Micros {
        self.begun.elapsed().as_micros() as Micros
    }

    /// Something happens at a peer, and what comes of it is done.
    fn at(&mut self, peer: Peer, act: impl FnOnce(&mut Node, Micros)) {
        let now = self.now();
        let Some(member) = self.peers.get_mut(&peer) else { return };
        act(&mut member.node, now);
        for output in member.node.outputs() {
            match output {
                Output::Send(to, message) => {
                    let bytes = postcard::to_allocvec(&message).unwrap();
                    self.largest = self.largest.max(bytes.len());
                    self.mail.push_back((peer, to, bytes));
                }
                Output::Start { task, epoch, body, inputs } => {
                    let Matter::Task(order) = &body.matter else { panic!("{body:?}") };
                    member.executor.assign(Assignment {
                        task,
                        epoch,
                        workflow: body.workflow.id,
                        payload: &order.payload,
                        inputs: &inputs,
                        others: Vec::new(),
                    });
                    member.node.offer(now, member.executor.resource(peer.0));
                }
                Output::Stop { task, epoch } => member.executor.stop(task, epoch),
                Output::Over { workflow, ending } => {
                    member.node.taken(now, workflow);
                    self.over = Some(ending);
                }
                Output::Note(note) => self.notes.push(note),
                Output::Met(_)
                | Output::Progress { .. }
                | Output::Unheard(_)
                | Output::Gone(_)
                | Output::Entered(_)
                | Output::Save(..) => {}
            }
        }
    }

    fn turn(&mut self) {
        let mut idle = true;
        while let Some((from, to, bytes)) = self.mail.pop_front() {
            let message: Message = postcard::from_bytes(&bytes).unwrap();
            self.at(to, |node, now| node.receive(now, from, message));
            idle = false;
        }
        while let Ok((peer, Executed { task, epoch, ending })) = self.reports.try_recv() {
            self.at(peer, |node, now| node.finished(now, task, epoch, ending));
            idle = false;
        }
        for peer in self.peers.keys().copied().collect::<Vec<_>>() {
            let now = self.now();
            let resource = self.peers[&peer].executor.resource(peer.0);
            self.at(peer, |node, now| node.offer(now, resource));
            if self.peers[&peer].node.wake_at() <= now {
                self.at(peer, Node::wake);
            }
        }
        if idle && self.mail.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn run(&mut self, entry: Peer, loaded: &Loaded, mut watch: impl FnMut(&mut Self)) -> Over {
        assert!(!loaded.diags.has_errors(), "{:?}", loaded.diags);
        let depot = self.peers[&entry].executor.depot().clone();
        let document = Document::new(Definition::default(), loaded, &depot, &"entry".into()).unwrap();
        let bytes = document.to_bytes().unwrap();
        self.at(entry, |node, now| node.submit(now, Id::of(&bytes), bytes));
        while self.over.is_none() {
            assert!(self.begun.elapsed() < Duration::from_mins(2), "{:?}", self.notes);
            self.turn();
            watch(self);
        }
        Over::read(&self.over.take().unwrap())
    }
}

fn executor(directory: &Path, peer: Peer, sender: &Sender<(Peer, Executed)>) -> Executor {
    let config = ExecutorConfig {
        name: peer.to_string().into(),
        directory: directory.to_path_buf(),
        capabilities: Vec::new(),
        resources: Resources { cpus: 2000, ..Resources::default() },
        speed: 1.0,
        listen: ([127, 0, 0, 1], 0).into(),
        host: None,
        quota: None,
    };
    let sender = sender.clone();
    Executor::start(config, Box::new(move |executed| drop(sender.send((peer, executed))))).unwrap()
}

fn done(over: Over) -> Finished {
    match over {
        Over::Done(finished) => *finished,
        other => panic!("{other:?}"),
    }
}

fn picture(rows: u64) -> Loaded {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first/workflow.yaml");
    let list: Value = (0..rows).map(Value::from).collect();
    let inputs = vec![("rows".into(), list), ("height".into(), rows.into()), ("width".into(), 12.into())];
    load(&example, &LoadOptions { inputs, ..LoadOptions::default() })
}

#[test]
fn peers_execute_a_workflow_together_whatever_their_rules() {
    let loaded = picture(10);
    let mut pictures = Vec::new();
    for rules in ["dependencies", "levels", "min-min"] {
        let mut world = World::new(4, rules);
        let entry = *world.peers.keys().next().unwrap();
        let finished = done(world.run(entry, &loaded, |_| ()));
        assert_eq!(finished.tasks, 21, "a row, its paint, and the picture");
        let out = tempfile::tempdir().unwrap();
        world.peers[&entry].executor.fetch_results(&finished, out.path()).unwrap();
        pictures.push(std::fs::read(out.path().join("mandelbrot.svg")).unwrap());
        let leases =
            world.notes.iter().filter_map(|n| if let Note::Leased(_, _, p) = n { Some(*p) } else { None });
        assert!(leases.collect::<std::collections::BTreeSet<_>>().len() > 1, "one has done everything");
        assert!(world.largest < 64 << 10, "{} bytes in a message", world.largest);
    }
    assert!(pictures[0].starts_with(b"<svg") && pictures.iter().all(|p| *p == pictures[0]));
}

#[test]
fn a_task_whose_peer_dies_is_executed_elsewhere() {
    let text = "
catena: 1
steps:
  split: { run: 'for n in 1 2 3; do echo $n > {out}/$n; done', out: parts/ }
  slow: { for: part in split.out, run: 'sleep 1; cat {part} > {out}', out: slow.txt, cpus: 2 }
  sum: { run: 'cat {slow.out} > {out}', out: sum.txt }
results: { sum: '{sum.out}' }
";
    let mut world = World::new(6, "dependencies");
    let entry = *world.peers.keys().next().unwrap();
    let mut killed = false;
    let mut split = None;
    let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
    let over = world.run(entry, &loaded, |world| {
        for note in &world.notes {
            let Note::Leased(_, _, peer) = note else { continue };
            let peer = *peer;
            let holder = *split.get_or_insert(peer);
            // Not the one that has what others read: nothing in this test makes that again.
            if !killed && peer != holder && peer != entry {
                world.peers.remove(&peer);
                killed = true;
                return;
            }
        }
    });
    let finished = done(over);
    assert!(killed);
    let out = tempfile::tempdir().unwrap();
    world.peers[&entry].executor.fetch_results(&finished, out.path()).unwrap();
    assert_eq!(std::fs::read_to_string(out.path().join("sum.txt")).unwrap(), "1\n2\n3\n");
}

#[test]
fn a_workflow_with_a_task_that_fails_says_which() {
    let text = "{catena: 1, steps: {good: {run: 'true'}, bad: {run: 'echo why >&2; exit 3', after: good}, never: {run: 'true', after: bad}}}";
    let mut world = World::new(4, "dependencies");
    let entry = *world.peers.keys().last().unwrap();
    let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
    let Over::Failed(failure) = world.run(entry, &loaded, |_| ()) else { panic!("it must fail") };
    assert_eq!(
        (failure.task.as_str(), failure.exit_code, &failure.tail[..]),
        ("bad", Some(3), &["why".to_owned()][..])
    );
}
