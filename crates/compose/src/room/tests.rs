//! What people who edit together can count on.

use super::place::parts;
use super::*;
use crate::model::{Body, End, Link, LinkId, Node, NodeId, WorkflowId, parse_composition};
use proptest::prelude::*;

const ANN: Session = Session(1);
const BOB: Session = Session(2);
const EVE: Session = Session(3);

fn composition() -> Composition {
    let text = "composition: 1
root: main
workflows:
  align: {name: Align, inputs: {reads: file}, outputs: {bam: file}, task: {run: 'align {reads} > {bam}'}}
  sort: {inputs: {bam: file}, outputs: {sorted: file}, task: {run: 'sort {bam} > {sorted}'}}
  all: {map: {of: prepare}}
  prepare:
    name: Prepare
    inputs: {reads: file}
    outputs: {sorted: file}
    graph:
      nodes: {a: {use: align}, s: {use: sort}}
      links: {l1: reads -> a.reads, l2: a.bam -> s.bam, l3: s.sorted -> sorted}
  main:
    inputs: {reads: '[file]'}
    outputs: {sorted: '[file]'}
    graph:
      nodes: {p: {use: all}}
      links: {l1: reads -> p.reads, l2: p.sorted -> sorted}
";
    parse_composition(text)
        .unwrap_or_else(|d| panic!("{:?}", d.iter().map(|d| &d.message).collect::<Vec<_>>()))
}

/// A room with Ann and Bob, who edit, and Eve, who looks.
struct Scene {
    room: Room,
    ids: u64,
    now: Millis,
}

impl Scene {
    fn new() -> Self {
        let mut room = Room::new(Saved { composition: composition(), ..Saved::default() }, Timing::default());
        room.join(ANN, "Ann", Role::Owner, 0);
        room.join(BOB, "Bob", Role::Editor, 0);
        room.join(EVE, "Eve", Role::Viewer, 0);
        room.take_output();
        Self { room, ids: 0, now: 1_000 }
    }

    /// Asks for something, and returns the answer and what everybody hears.
    fn ask(&mut self, session: Session, ask: Ask) -> (std::result::Result<Done, Refused>, Vec<Event>) {
        self.ids += 1;
        self.now += 1;
        self.room.handle(session, Request { id: self.ids, ask }, self.now);
        self.heard()
    }

    fn heard(&mut self) -> (std::result::Result<Done, Refused>, Vec<Event>) {
        let (mut answer, mut events) = (Ok(Done::default()), Vec::new());
        for output in self.room.take_output() {
            match output {
                Output::Say(_, Said::Done { ok, .. }) => answer = Ok(ok),
                Output::Say(_, Said::Refused { error, .. }) => answer = Err(error),
                Output::Say(_, Said::Event(event)) | Output::Tell(_, event) => events.push(event),
                Output::Record(_) => {}
            }
        }
        (answer, events)
    }

    fn lock(
        &mut self,
        session: Session,
        unit: &str,
        mode: Mode,
        wait: bool,
    ) -> std::result::Result<Done, Refused> {
        let wants = vec![Wanted { unit: unit.parse().unwrap(), mode, path: Vec::new() }];
        self.ask(session, Ask::Lock { wants, wait }).0
    }

    fn act(&mut self, session: Session, changes: Vec<Change>) -> std::result::Result<Done, Refused> {
        self.ask(session, Ask::Do(Operation { changes, ..Operation::default() })).0
    }

    fn script(&self, workflow: &str) -> String {
        let Body::Task(task) = &self.room.composition().workflows[&workflow.into()].body else {
            panic!("a task")
        };
        task.action["run"].as_str().unwrap_or_default().to_owned()
    }
}

fn run(workflow: &str, script: &str) -> Change {
    let action = serde_json::json!({"run": script}).as_object().cloned().unwrap_or_default();
    let task = crate::model::Task { action, ..Default::default() };
    Change::SetTask { workflow: workflow.into(), task }
}

fn place(text: &str) -> Place {
    text.parse().unwrap()
}

#[test]
fn a_refusal_says_who_has_what_since_when_and_what_else_there_is() {
    let mut scene = Scene::new();
    scene.lock(BOB, "workflows/prepare/nodes/a/properties", Mode::X, false).unwrap();
    scene.now += 20_000;
    let refused = scene.lock(ANN, "workflows/prepare/nodes/a/properties", Mode::X, false).unwrap_err();
    assert_eq!(refused.code, Code::Locked);
    assert_eq!(
        refused.message,
        "Bob is editing *a* inside *Prepare* (20 s); wait, ask for it, or take *s* inside *Prepare*, which is free"
    );
    assert_eq!(refused.blockers[0].unit, place("workflows/prepare/nodes/a/properties"));
    assert_eq!(refused.alternative, Some(place("workflows/prepare/nodes/s/properties")));
}

#[test]
fn parts_of_one_workflow_are_edited_side_by_side_and_a_whole_one_excludes_them() {
    let mut scene = Scene::new();
    scene.lock(ANN, "workflows/prepare/nodes/a/properties", Mode::X, false).unwrap();
    scene.lock(BOB, "workflows/prepare/links/l1", Mode::X, false).unwrap();
    let refused = scene.lock(BOB, "workflows/main", Mode::X, false).unwrap_err();
    assert!(refused.message.starts_with("Ann is editing *a* inside *Prepare*"), "{}", refused.message);
    let refused = scene.lock(ANN, "workflows/all", Mode::S, false).unwrap_err();
    assert!(refused.message.starts_with("Bob is editing the link *l1*"), "{}", refused.message);
}

#[test]
fn who_waits_is_told_the_place_and_gets_the_lock_when_it_is_free() {
    let mut scene = Scene::new();
    scene.lock(ANN, "workflows/align/task", Mode::X, false).unwrap();
    let waits = scene.lock(BOB, "workflows/align/task", Mode::X, true).unwrap().waits.unwrap();
    assert_eq!((waits.position, waits.blockers[0].user.as_str()), (1, "Ann"));
    let (_, events) = scene.ask(BOB, Ask::HandOver { unit: place("workflows/align/task") });
    let unit = place("workflows/align/task");
    assert_eq!(events, [Event::Asked { unit: unit.clone(), by: "Bob".to_owned(), within: 15_000 }]);
    let (_, events) = scene.ask(ANN, Ask::Give { unit: unit.clone() });
    let released = Event::Released { session: ANN, unit: unit.clone(), why: Release::HandedOver };
    let view = LockView { session: BOB, user: "Bob".to_owned(), unit, mode: Mode::X, since: 0 };
    assert_eq!(events, [released, Event::Locked(view)]);
}

#[test]
fn an_operation_with_the_number_of_a_lock_that_is_over_changes_nothing() {
    let mut scene = Scene::new();
    let unit = place("workflows/align/task");
    let number = scene.lock(ANN, "workflows/align/task", Mode::X, false).unwrap().locks[&unit];
    let tokens: BTreeMap<Place, u64> = [(unit.clone(), number)].into();
    let operation = Operation { changes: vec![run("align", "new")], tokens, ..Operation::default() };
    assert!(scene.ask(ANN, Ask::Do(operation.clone())).0.is_ok());
    let (broken, _) = scene.ask(BOB, Ask::Break { unit: unit.clone() });
    assert_eq!(broken.unwrap_err().code, Code::NotAllowed, "Bob is no owner");
    scene.now += 31_000;
    scene.room.join(BOB, "Bob", Role::Editor, scene.now);
    scene.room.tick(scene.now);
    scene.lock(BOB, "workflows/align/task", Mode::X, false).unwrap();
    let refused = scene.ask(ANN, Ask::Do(operation)).0.unwrap_err();
    assert_eq!(refused.code, Code::StaleToken);
    assert!(refused.message.ends_with("the task of *Align* any more; Bob has it now"), "{}", refused.message);
    assert!(scene.ask(ANN, Ask::Break { unit }).0.is_ok(), "Ann is an owner");
}

#[test]
fn edits_made_elsewhere_meanwhile_are_offered_as_a_choice() {
    let mut scene = Scene::new();
    let seen: BTreeMap<Place, u64> = [(place("workflows/align/task"), 0)].into();
    scene.act(BOB, vec![run("align", "Bob's")]).unwrap();
    let mine = Operation { changes: vec![run("align", "Ann's")], seen, ..Operation::default() };
    let refused = scene.ask(ANN, Ask::Do(mine.clone())).0.unwrap_err();
    assert_eq!((refused.code, refused.theirs[0].by.as_str()), (Code::Stale, "Bob"));
    assert_eq!(refused.theirs[0].content["action"]["run"], "Bob's");
    assert_eq!(scene.script("align"), "Bob's");
    let again =
        Operation { seen: [(place("workflows/align/task"), refused.theirs[0].version)].into(), ..mine };
    assert!(scene.ask(ANN, Ask::Do(again)).0.is_ok());
    assert_eq!(scene.script("align"), "Ann's");
}

#[test]
fn everybody_takes_back_what_they_have_done_themselves() {
    let mut scene = Scene::new();
    scene.act(ANN, vec![run("align", "A1")]).unwrap();
    scene.act(BOB, vec![run("sort", "B1")]).unwrap();
    scene.act(ANN, vec![run("align", "A2")]).unwrap();
    for (expected, ask) in [
        ("A1", Ask::Undo { skip: false }),
        ("align {reads} > {bam}", Ask::Undo { skip: false }),
        ("A1", Ask::Redo),
        ("A2", Ask::Redo),
        ("A1", Ask::Undo { skip: false }),
    ] {
        assert!(scene.ask(ANN, ask).0.is_ok(), "{expected}");
        assert_eq!((scene.script("align").as_str(), scene.script("sort").as_str()), (expected, "B1"));
    }
    scene.act(BOB, vec![run("align", "B2")]).unwrap();
    let refused = scene.ask(ANN, Ask::Undo { skip: false }).0.unwrap_err();
    assert_eq!(refused.message, "Bob has changed the task of *Align* since; skip it, or talk to Bob");
    assert_eq!(scene.ask(ANN, Ask::Undo { skip: true }).0.unwrap_err().code, Code::Nothing);
    assert_eq!(scene.script("align"), "B2");
}

#[test]
fn undoing_needs_locks_like_everything_else() {
    let mut scene = Scene::new();
    scene.act(ANN, vec![run("align", "A1")]).unwrap();
    scene.lock(BOB, "workflows/align", Mode::X, false).unwrap();
    assert_eq!(scene.ask(ANN, Ask::Undo { skip: false }).0.unwrap_err().code, Code::Locked);
    scene.ask(BOB, Ask::Release { units: vec![place("workflows/align")] }).0.unwrap();
    assert!(scene.ask(ANN, Ask::Undo { skip: false }).0.is_ok());
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason_and_changes_nothing() {
    let mut scene = Scene::new();
    let before = scene.room.composition().clone();
    let node = |workflow: &str| Node {
        workflow: workflow.into(),
        label: String::new(),
        after: Vec::new(),
        x: 0.0,
        y: 0.0,
    };
    let add = |workflow: &str, of: &str| Change::AddNode {
        workflow: workflow.into(),
        id: NodeId::new("new"),
        node: node(of),
    };
    let link = |from: End, to: End| Change::AddLink {
        workflow: "prepare".into(),
        id: LinkId::new("new"),
        link: Link { from, to },
    };
    let cases = [
        (vec![add("prepare", "main")], "made of each other"),
        (vec![add("prepare", "nothing")], "no workflow `nothing`"),
        (vec![link(End::this("reads"), End::of("s", "bam"))], "2 links come to `s.bam`"),
        (vec![link(End::this("reads"), End::of("s", "nothing"))], "has no such port"),
        (vec![Change::RemoveWorkflow { id: "sort".into() }], "no workflow `sort`"),
        (
            vec![Change::RemoveNode { workflow: "prepare".into(), id: NodeId::new("s") }],
            "nothing uses the workflow `sort`",
        ),
        (vec![Change::RemoveNode { workflow: "align".into(), id: NodeId::new("s") }], "is no graph"),
        (Vec::new(), "at least one change"),
    ];
    for (changes, reason) in cases {
        let refused = scene.act(ANN, changes).unwrap_err();
        assert!(refused.message.contains(reason), "{} should be {reason}", refused.message);
    }
    let eve = scene.act(EVE, vec![run("align", "x")]).unwrap_err();
    assert_eq!((eve.code, eve.message.as_str()), (Code::NotAllowed, "you may look, but not change anything"));
    for (text, code) in [
        ("not json".to_owned(), Code::Malformed),
        ("{\"id\": 9999, \"type\": \"dance\"}".to_owned(), Code::Malformed),
        ("{\"id\": 1, \"type\": \"renew\"}".to_owned(), Code::Replayed),
        (
            format!("{{\"id\": 99999, \"type\": \"point\", \"cursor\": \"{}\"}}", "x".repeat(2000)),
            Code::TooLarge,
        ),
        (format!("\"{}\"", "x".repeat(LARGEST_MESSAGE)), Code::TooLarge),
        ("{\"id\": 99999999, \"type\": \"release\", \"units\": [\"nonsense\"]}".to_owned(), Code::Malformed),
    ] {
        scene.room.receive(ANN, &text, scene.now);
        assert_eq!(scene.heard().0.unwrap_err().code, code, "{}", &text[..text.len().min(60)]);
    }
    assert_eq!(*scene.room.composition(), before);
    assert_eq!(scene.room.seq(), 0);
}

#[test]
fn an_operation_whose_answer_was_lost_is_not_done_twice() {
    let mut scene = Scene::new();
    let operation = Operation { op: 7, changes: vec![run("align", "once")], ..Operation::default() };
    assert_eq!(scene.ask(ANN, Ask::Do(operation.clone())).0.unwrap().seq, Some(1));
    assert_eq!(scene.ask(ANN, Ask::Do(operation)).0.unwrap_err().code, Code::Replayed);
    assert_eq!(scene.room.seq(), 1);
}

#[test]
fn a_node_is_inserted_while_others_work_in_what_it_uses_but_not_while_they_write_there() {
    let mut scene = Scene::new();
    let node = Node { workflow: "sort".into(), label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
    let add =
        |id: &str| Change::AddNode { workflow: "prepare".into(), id: NodeId::new(id), node: node.clone() };
    scene.lock(BOB, "workflows/sort", Mode::S, false).unwrap();
    assert!(scene.act(ANN, vec![add("n1")]).is_ok());
    scene.ask(BOB, Ask::Release { units: vec![place("workflows/sort")] }).0.unwrap();
    scene.lock(BOB, "workflows/sort/task", Mode::X, false).unwrap();
    assert_eq!(scene.act(ANN, vec![add("n2")]).unwrap_err().code, Code::Locked);
    scene.ask(BOB, Ask::Release { units: vec![place("workflows/sort/task")] }).0.unwrap();
    scene.lock(BOB, "workflows/sort", Mode::U, false).unwrap();
    assert_eq!(scene.act(ANN, vec![add("n2")]).unwrap_err().code, Code::Locked, "Bob is about to write");
}

#[test]
fn a_construct_is_put_around_what_a_node_uses_in_one_operation_and_taken_away_again() {
    let mut scene = Scene::new();
    let text = serde_json::json!({"body": {"kind": "construct", "of": "sort", "construct": "map"}});
    let mapped: crate::model::Workflow = serde_json::from_value(text).unwrap();
    let node =
        |uses: &str| Node { workflow: uses.into(), label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
    let wrap = || {
        let link = |id: &str| Change::RemoveLink { workflow: "prepare".into(), id: LinkId::new(id) };
        vec![
            Change::AddWorkflow { id: "sorts".into(), workflow: mapped.clone() },
            link("l2"),
            link("l3"),
            Change::RemoveNode { workflow: "prepare".into(), id: NodeId::new("s") },
            Change::AddNode { workflow: "prepare".into(), id: NodeId::new("s"), node: node("sorts") },
        ]
    };
    // Who has come to it over the node is in the way, also if it is oneself.
    scene.lock(BOB, "workflows/sort", Mode::S, false).unwrap();
    assert_eq!(scene.act(ANN, wrap()).unwrap_err().code, Code::Locked);
    scene.ask(BOB, Ask::Release { units: vec![place("workflows/sort")] }).0.unwrap();
    let before = scene.room.composition().clone();
    scene.act(ANN, wrap()).unwrap();
    assert_ne!(*scene.room.composition(), before);
    scene.ask(ANN, Ask::Undo { skip: false }).0.unwrap();
    assert_eq!(*scene.room.composition(), before);
    assert!(scene.lock(BOB, "workflows/prepare", Mode::X, false).is_ok(), "nothing stays locked");
}

#[test]
fn versions_are_named_published_and_come_back() {
    let mut scene = Scene::new();
    scene.act(ANN, vec![run("align", "one")]).unwrap();
    scene.ask(BOB, Ask::Name { name: "first".to_owned() }).0.unwrap();
    scene.act(BOB, vec![run("align", "two")]).unwrap();
    let (_, events) = scene.ask(ANN, Ask::Publish { name: Some("first".to_owned()) });
    let Some(Event::Published(version)) = events.last() else { panic!("{events:?}") };
    assert_eq!((version.seq, version.user.as_str()), (1, "Bob"));
    scene.ask(ANN, Ask::Restore { name: "first".to_owned() }).0.unwrap();
    assert_eq!(scene.script("align"), "one");
    scene.ask(ANN, Ask::Undo { skip: false }).0.unwrap();
    assert_eq!(scene.script("align"), "two");
    let node = Node { workflow: "sort".into(), label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
    scene.act(ANN, vec![Change::AddNode { workflow: "prepare".into(), id: NodeId::new("n"), node }]).unwrap();
    let refused = scene.ask(ANN, Ask::Publish { name: None }).0.unwrap_err();
    assert!(refused.message.contains("nothing comes to `n.bam`"), "{}", refused.message);
}

/// Something a random session does: who, what, and some numbers to choose with.
type Deed = (u64, usize, prop::sample::Index, prop::sample::Index);

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (1..4u64, 0..14usize, any::<prop::sample::Index>(), any::<prop::sample::Index>());
    prop::collection::vec(deed, 1..80)
}

fn deed((_, kind, a, b): &Deed, room: &Room, number: usize) -> Ask {
    let composition = room.composition();
    let places: Vec<Place> = parts(composition).into_keys().collect();
    let workflows: Vec<WorkflowId> = composition.workflows.keys().cloned().collect();
    let graphs: Vec<&WorkflowId> =
        workflows.iter().filter(|w| matches!(composition.workflows[w].body, Body::Graph(_))).collect();
    let graph = (*graphs[a.index(graphs.len())]).clone();
    let Body::Graph(inside) = &composition.workflows[&graph].body else { panic!("a graph") };
    let node = inside.nodes.keys().nth(b.index(inside.nodes.len().max(1))).cloned().unwrap_or_default();
    let unit = a.get(&places).clone();
    let act = |changes| Ask::Do(Operation { changes, ..Operation::default() });
    let id = format!("x{number}");
    match kind {
        0 | 1 => {
            let mode = Mode::ALL[b.index(6)];
            Ask::Lock { wants: vec![Wanted { unit, mode, path: Vec::new() }], wait: *kind == 1 }
        }
        2 => Ask::Release { units: room.lock_views(0).into_iter().map(|v| v.unit).collect() },
        3 => act(vec![run(b.get(&workflows).as_str(), &id)]),
        4 => {
            let node = Node {
                workflow: b.get(&workflows).clone(),
                label: id.clone(),
                after: Vec::new(),
                x: 1.0,
                y: 2.0,
            };
            act(vec![Change::AddNode { workflow: graph, id: NodeId::new(&id), node }])
        }
        5 => {
            let links = inside
                .links
                .iter()
                .filter(|(_, l)| l.from.node.as_ref() == Some(&node) || l.to.node.as_ref() == Some(&node));
            let mut changes: Vec<Change> =
                links.map(|(l, _)| Change::RemoveLink { workflow: graph.clone(), id: l.clone() }).collect();
            changes.push(Change::RemoveNode { workflow: graph, id: node });
            act(changes)
        }
        6 => {
            let workflow = crate::model::Workflow {
                name: id.clone(),
                description: String::new(),
                interface: crate::model::Interface::default(),
                body: Body::Construct(crate::model::Construct {
                    of: b.get(&workflows).clone(),
                    how: crate::model::How::Map { over: Vec::new() },
                }),
            };
            let node = Node {
                workflow: WorkflowId::new(&id),
                label: String::new(),
                after: Vec::new(),
                x: 0.0,
                y: 0.0,
            };
            act(vec![
                Change::AddWorkflow { id: WorkflowId::new(&id), workflow },
                Change::AddNode { workflow: graph, id: NodeId::new(&id), node },
            ])
        }
        7 => act(vec![Change::SetAbout {
            workflow: b.get(&workflows).clone(),
            name: id.clone(),
            description: id,
        }]),
        8 => Ask::Undo { skip: b.index(2) == 0 },
        9 => Ask::Redo,
        10 => Ask::Name { name: id },
        11 => Ask::Restore { name: format!("x{}", b.index(number.max(1))) },
        12 => Ask::HandOver { unit },
        _ => Ask::Cancel,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_people_do_the_composition_stays_sound_and_the_history_tells_all_of_it(deeds in deeds()) {
        let first = composition();
        let mut room = Room::new(Saved { composition: first.clone(), ..Saved::default() }, Timing::default());
        let mut records = Vec::new();
        for session in 1..4 {
            room.join(Session(session), &format!("user{session}"), Role::Editor, 0);
        }
        for (number, deed_) in deeds.iter().enumerate() {
            let now = 1_000 * number as u64;
            room.tick(now);
            let ask = deed(deed_, &room, number);
            let before = (room.composition().clone(), room.seq());
            room.handle(Session(deed_.0), Request { id: number as u64 + 1, ask }, now);
            let output = room.take_output();
            let refused = output.iter().any(|o| matches!(o, Output::Say(_, Said::Refused { .. })));
            prop_assert!(!refused || before == (room.composition().clone(), room.seq()), "a refusal changes nothing");
            records.extend(output.into_iter().filter_map(|o| match o {
                Output::Record(Record::Applied(applied)) => Some(applied),
                _ => None,
            }));
            // Locks are on what there is, and in nobody's way.
            let flaws: Vec<_> = check(room.composition()).into_iter().filter(|f| !f.is_gap).collect();
            prop_assert!(flaws.is_empty(), "{:?}", flaws);
            let (fresh, units) = Atlas::new(room.composition());
            for (place, parents) in parts(room.composition()) {
                let unit = room.atlas.unit(&place);
                prop_assert!(unit.is_some(), "{} has no unit", place);
                let known: BTreeSet<&Place> = unit.into_iter()
                    .flat_map(|u| room.locks.table().units().parents(u))
                    .filter_map(|u| room.atlas.place(*u)).collect();
                prop_assert_eq!(known, parents.iter().collect::<BTreeSet<_>>(), "{}", place);
                for a in (1..4).map(Session) {
                    for b in (1..4).map(Session).filter(|b| *b != a) {
                        let table = room.locks.table();
                        let unit = unit.unwrap();
                        let clash = table.may_write(a, unit) && (table.may_read(b, unit) || table.may_write(b, unit));
                        prop_assert!(!clash, "{:?} writes {} beside {:?}", a, place, b);
                    }
                }
            }
            prop_assert!(fresh.unit(&Place::Settings).is_some() && !units.is_empty());
        }
        let mut again = first;
        for applied in &records {
            for change in &applied.changes {
                prop_assert!(change.apply(&mut again).is_ok());
            }
        }
        prop_assert_eq!(&again, room.composition());
        let saved = Saved { composition: again.clone(), operations: records.clone(), seq: room.seq(), ..Saved::default() };
        let restored = Room::new(saved, Timing::default());
        prop_assert_eq!(restored.seq(), room.seq());
        prop_assert_eq!(restored.history.versions(), room.history.versions());
        for applied in records.iter().rev() {
            for change in &applied.inverse {
                prop_assert!(change.apply(&mut again).is_ok());
            }
        }
        prop_assert_eq!(again, composition());
    }
}
