//! Collaborators in virtual time: the experiment of Fei, Lu and Zhang (section IV), with the rooms of the live system.
//!
//! Each collaborator chooses something to edit, thinks, edits it, and begins anew. What is locked when, and what happens
//! on a conflict, the paper leaves open; the [`Policy`]s are the readings of it, and how Catena does it.

use crate::random::Random;
use catena_compose::lock::{Mode, Session, Timing};
use catena_compose::model::{Body, Composition, Graph, Interface, Node, NodeId, Task, Workflow, WorkflowId};
use catena_compose::room::{
    Ask, Change, Event, Operation, Output, Place, Request, Role, Room, Said, Saved, Wanted,
};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How the workflows of a composition depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Each is part of the one before it.
    VLinear,
    /// None is part of another. A root that nobody edits holds them together.
    HLinear,
    /// Each but the last ones has two others.
    HBinary,
}

impl Topology {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::VLinear, Self::HLinear, Self::HBinary];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::VLinear => "VLinear",
            Self::HLinear => "HLinear",
            Self::HBinary => "HBinary",
        }
    }

    /// The workflows that a workflow has.
    fn children(self, number: usize, workflows: usize) -> Vec<usize> {
        let children = match self {
            Self::VLinear => vec![number + 1],
            Self::HLinear => Vec::new(),
            Self::HBinary => vec![2 * number + 1, 2 * number + 2],
        };
        children.into_iter().filter(|c| *c < workflows).collect()
    }

    /// How many workflows the workflows depend on, all together.
    pub fn degree(self, workflows: usize) -> usize {
        fn below(topology: Topology, number: usize, workflows: usize) -> usize {
            let children = topology.children(number, workflows);
            children.iter().map(|c| 1 + below(topology, *c, workflows)).sum()
        }
        (0..workflows).map(|w| below(self, w, workflows)).sum()
    }
}

/// A composition of so many workflows with so many nodes of their own each.
pub fn composition(topology: Topology, workflows: usize, nodes: usize) -> Composition {
    let node =
        |workflow: WorkflowId| Node { workflow, label: String::new(), after: Vec::new(), x: 0.0, y: 0.0 };
    let graph = |nodes: Vec<(String, Node)>| Workflow {
        name: String::new(),
        description: String::new(),
        interface: Interface::default(),
        body: Body::Graph(Graph {
            nodes: nodes.into_iter().map(|(id, node)| (NodeId::new(id), node)).collect(),
            ..Graph::default()
        }),
    };
    let name = |n: usize| WorkflowId::new(format!("w{n}"));
    let mut composition = Composition { root: name(0), ..Composition::default() };
    for n in 0..workflows {
        let own = (0..nodes).map(|i| (format!("n{i}"), node(WorkflowId::new("step"))));
        let children = topology.children(n, workflows).into_iter().map(|c| (format!("w{c}"), node(name(c))));
        composition.workflows.insert(name(n), graph(own.chain(children).collect()));
    }
    if topology == Topology::HLinear {
        composition.root = WorkflowId::new("root");
        let all = (0..workflows).map(|n| (format!("w{n}"), node(name(n))));
        composition.workflows.insert(composition.root.clone(), graph(all.collect()));
    }
    let action = serde_json::Map::from_iter([("run".to_owned(), "true".into())]);
    let step = Workflow { body: Body::Task(Task { action, ..Task::default() }), ..graph(Vec::new()) };
    composition.workflows.insert(WorkflowId::new("step"), step);
    composition
}

/// When collaborators lock what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// The whole workflow, only while it is written, which takes so long. A conflict ends the attempt.
    Write {
        /// Seconds.
        takes: f64,
    },
    /// The whole workflow, shared while thinking and exclusively in the end. A conflict ends the attempt.
    Shared,
    /// The whole workflow, for update while thinking. A conflict ends the attempt.
    Update,
    /// The whole workflow, exclusively while thinking. Who meets a conflict waits.
    Queue,
    /// A part of a workflow, while thinking. A conflict ends the attempt.
    Parts,
    /// A part of a workflow, while thinking. Who meets a conflict waits.
    PartsQueue,
    /// A part of a workflow that nobody has locked, while thinking: people see what others have.
    Seen,
}

impl Policy {
    /// All of them: those of the paper first.
    pub const ALL: [Self; 8] = [
        Self::Write { takes: 0.1 },
        Self::Write { takes: 0.5 },
        Self::Shared,
        Self::Update,
        Self::Queue,
        Self::Parts,
        Self::PartsQueue,
        Self::Seen,
    ];

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Write { takes } => format!("whole, written in {takes} s"),
            Self::Shared => "whole, shared while thinking".to_owned(),
            Self::Update => "whole, for update".to_owned(),
            Self::Queue => "whole, waiting".to_owned(),
            Self::Parts => "parts".to_owned(),
            Self::PartsQueue => "parts, waiting".to_owned(),
            Self::Seen => "parts that are free".to_owned(),
        }
    }

    fn is_whole(self) -> bool {
        !matches!(self, Self::Parts | Self::PartsQueue | Self::Seen)
    }

    fn waits(self) -> bool {
        matches!(self, Self::Queue | Self::PartsQueue)
    }
}

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// How the workflows depend on each other.
    pub topology: Topology,
    /// How many workflows.
    pub workflows: usize,
    /// How many parts each has.
    pub parts: usize,
    /// How many collaborators.
    pub collaborators: usize,
    /// How long they think, in seconds.
    pub think: f64,
    /// When they lock what.
    pub policy: Policy,
    /// How long it goes on, in seconds, after
    pub lasts: f64,
    /// so long that does not count.
    pub warm_up: f64,
    /// What randomness starts from.
    pub seed: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            topology: Topology::VLinear,
            workflows: 20,
            parts: 10,
            collaborators: 10,
            think: 5.0,
            policy: Policy::Seen,
            lasts: 600.0,
            warm_up: 60.0,
            seed: 1,
        }
    }
}

/// What came of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Collaboration {
    /// Updates per minute.
    pub updates: f64,
    /// Attempts per minute that a conflict has ended.
    pub failures: f64,
    /// Seconds that who has waited for a lock has waited, on average.
    pub wait: f64,
}

/// What a collaborator is about to do.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// Choose something.
    Choose,
    /// It has been thought about: write it.
    Write,
    /// It is written: let go.
    End,
}

/// What a collaborator edits.
#[derive(Clone, Debug)]
struct Collaborator {
    workflow: usize,
    part: usize,
    requests: u64,
    /// Waits for a lock since then.
    waits: Option<f64>,
}

struct Scene<'s> {
    setting: &'s Setting,
    room: Room,
    people: Vec<Collaborator>,
    random: Random,
    /// What happens when: the time in microseconds, the collaborator, and what.
    agenda: BinaryHeap<Reverse<(u64, usize, u8)>>,
    /// How many have locked each part, as people see it.
    taken: Vec<u32>,
    outcome: (u64, u64, f64, u64),
    now: f64,
}

/// Lets collaborators edit, and tells what came of it.
pub fn collaborate(setting: &Setting) -> Collaboration {
    let composition = composition(setting.topology, setting.workflows, setting.parts);
    let saved = Saved { composition, ..Saved::default() };
    // People think for as long as the experiment says, and do not lose their locks over it.
    let lease = ((setting.lasts + setting.warm_up + 60.0) * 1000.0) as u64 * 10;
    let timing = Timing { lease, idle: lease, warning: 0, hand_over: lease };
    let mut scene = Scene {
        setting,
        room: Room::new(saved, timing),
        people: Vec::new(),
        random: Random::new(setting.seed),
        agenda: BinaryHeap::new(),
        taken: vec![0; setting.workflows * setting.parts],
        outcome: (0, 0, 0.0, 0),
        now: 0.0,
    };
    for person in 0..setting.collaborators {
        scene.room.join(session(person), &format!("user{person}"), Role::Editor, 0);
        scene.people.push(Collaborator { workflow: 0, part: 0, requests: 0, waits: None });
        // They do not all begin at once.
        let begin = scene.random.unit() * setting.think;
        scene.later(person, begin, Next::Choose);
    }
    scene.room.take_output();
    let end = setting.warm_up + setting.lasts;
    while let Some(Reverse((time, person, next))) = scene.agenda.pop() {
        scene.now = time as f64 / 1e6;
        if scene.now > end {
            break;
        }
        match next {
            0 => scene.choose(person),
            1 => scene.write(person),
            _ => scene.end(person),
        }
    }
    let minutes = setting.lasts / 60.0;
    let (updates, failures, waited, waits) = scene.outcome;
    Collaboration {
        updates: updates as f64 / minutes,
        failures: failures as f64 / minutes,
        wait: if waits == 0 { 0.0 } else { waited / waits as f64 },
    }
}

fn session(person: usize) -> Session {
    Session(person as u64 + 1)
}

impl Scene<'_> {
    fn later(&mut self, person: usize, after: f64, next: Next) {
        let time = ((self.now + after) * 1e6) as u64;
        self.agenda.push(Reverse((time, person, next as u8)));
    }

    fn counts(&self) -> bool {
        self.now >= self.setting.warm_up
    }

    /// Asks the room, and lets those go on who got what they have waited for. Whether it was granted at once.
    fn ask(&mut self, person: usize, ask: Ask) -> Option<bool> {
        self.people[person].requests += 1;
        let id = self.people[person].requests;
        self.room.handle(session(person), Request { id, ask }, (self.now * 1000.0) as u64);
        let mut answer = None;
        for output in self.room.take_output() {
            match output {
                Output::Say(_, Said::Done { ok, .. }) => answer = Some(ok.waits.is_none()),
                Output::Tell(_, Event::Locked(view)) => {
                    let other = view.session.0 as usize - 1;
                    if let Some(since) = self.people[other].waits.take() {
                        if self.counts() {
                            self.outcome.2 += self.now - since;
                            self.outcome.3 += 1;
                        }
                        self.take(other);
                        self.later(other, self.setting.think, Next::Write);
                    }
                }
                _ => {}
            }
        }
        answer
    }

    fn index(&self, person: usize) -> usize {
        self.people[person].workflow * self.setting.parts + self.people[person].part
    }

    fn take(&mut self, person: usize) {
        let index = self.index(person);
        self.taken[index] += 1;
    }

    fn place(&self, person: usize) -> Place {
        let workflow = WorkflowId::new(format!("w{}", self.people[person].workflow));
        if self.setting.policy.is_whole() {
            Place::Workflow(workflow)
        } else {
            Place::Properties(workflow, NodeId::new(format!("n{}", self.people[person].part)))
        }
    }

    fn lock(&mut self, person: usize, mode: Mode) -> Option<bool> {
        let wants = vec![Wanted { unit: self.place(person), mode, path: Vec::new() }];
        self.ask(person, Ask::Lock { wants, wait: self.setting.policy.waits() })
    }

    fn choose(&mut self, person: usize) {
        let parts = self.taken.len() as u64;
        let mut choice = self.random.below(parts) as usize;
        if self.setting.policy == Policy::Seen {
            let free: Vec<usize> = (0..self.taken.len()).filter(|p| self.taken[*p] == 0).collect();
            if !free.is_empty() {
                choice = free[self.random.below(free.len() as u64) as usize];
            }
        }
        self.people[person].workflow = choice / self.setting.parts;
        self.people[person].part = choice % self.setting.parts;
        let mode = match self.setting.policy {
            Policy::Write { .. } => return self.later(person, self.setting.think, Next::Write),
            Policy::Shared => Mode::S,
            Policy::Update => Mode::U,
            Policy::Queue | Policy::Parts | Policy::PartsQueue | Policy::Seen => Mode::X,
        };
        match self.lock(person, mode) {
            Some(true) => {
                self.take(person);
                self.later(person, self.setting.think, Next::Write);
            }
            Some(false) => self.people[person].waits = Some(self.now),
            None => self.fail(person),
        }
    }

    /// A conflict has ended an attempt. The next one begins after some thought.
    fn fail(&mut self, person: usize) {
        if self.counts() {
            self.outcome.1 += 1;
        }
        let pause = match self.setting.policy {
            // It was thought about already.
            Policy::Write { .. } | Policy::Shared => 0.0,
            _ => self.setting.think,
        };
        self.later(person, pause, Next::Choose);
    }

    fn write(&mut self, person: usize) {
        let policy = self.setting.policy;
        let needs_more = matches!(policy, Policy::Write { .. } | Policy::Shared | Policy::Update);
        if needs_more && self.lock(person, Mode::X) != Some(true) {
            if matches!(policy, Policy::Shared | Policy::Update) {
                self.release(person);
            }
            return self.fail(person);
        }
        match policy {
            Policy::Write { takes } => self.later(person, takes, Next::End),
            _ => self.end(person),
        }
    }

    fn end(&mut self, person: usize) {
        let workflow = WorkflowId::new(format!("w{}", self.people[person].workflow));
        let id = NodeId::new(format!("n{}", self.people[person].part));
        let label = format!("{}", self.people[person].requests);
        let changes = vec![Change::SetNode { workflow, id, label, after: Vec::new() }];
        let done = self.ask(person, Ask::Do(Operation { changes, ..Operation::default() }));
        if done == Some(true) && self.counts() {
            self.outcome.0 += 1;
        }
        self.release(person);
        self.choose_again(person);
    }

    fn choose_again(&mut self, person: usize) {
        self.later(person, 0.0, Next::Choose);
    }

    fn release(&mut self, person: usize) {
        let index = self.index(person);
        self.taken[index] = self.taken[index].saturating_sub(1);
        let units = vec![self.place(person)];
        self.ask(person, Ask::Release { units });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_have_the_degrees_of_the_paper_as_they_should_be() {
        let degrees = Topology::ALL.map(|t| t.degree(20));
        assert_eq!(degrees, [190, 0, 54]);
    }

    #[test]
    fn people_who_see_what_is_locked_never_meet_a_conflict_whatever_depends_on_what() {
        for topology in Topology::ALL {
            let setting =
                Setting { topology, collaborators: 150, lasts: 60.0, warm_up: 10.0, ..Setting::default() };
            let came = collaborate(&setting);
            assert!(came.failures == 0.0 && came.updates >= 0.98 * 12.0 * 150.0, "{topology:?} {came:?}");
        }
    }

    #[test]
    fn whole_workflows_let_one_person_work_at_a_time_where_each_is_part_of_another() {
        let setting = Setting {
            policy: Policy::Queue,
            collaborators: 20,
            lasts: 120.0,
            warm_up: 10.0,
            ..Setting::default()
        };
        let came = collaborate(&setting);
        assert!((came.updates - 12.0).abs() < 1.0, "{came:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same() {
        let setting = Setting {
            policy: Policy::Parts,
            collaborators: 60,
            lasts: 60.0,
            warm_up: 5.0,
            ..Setting::default()
        };
        assert_eq!(collaborate(&setting), collaborate(&setting));
        let other = collaborate(&Setting { seed: 2, ..setting });
        assert!(other.failures > 0.0);
    }
}
