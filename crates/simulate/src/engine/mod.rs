//! Virtual time: tasks start, end, and set others free; nodes come, die and go.
//!
//! What runs where is decided by a [`Strategy`], which sees what a scheduler could see and nothing else. The same
//! workload, cluster, strategy and seed give the same result on every machine.

mod ahead;
mod nodes;
mod staging;

use crate::cluster::{Cluster, Storage};
use crate::elastic::Elastic;
use crate::luck::Luck;
use crate::outcome::{Execution, Fate, Outcome};
use crate::time::{NEVER, Nanos};
use crate::transfer::Flows;
use crate::workload::Workload;
use crate::world::{State, World};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// All tasks that a task waits for have ended; or its only execution was in vain.
    Ready(u32),
    /// A task that was ready is not any more: what it reads was lost and is computed again.
    Withdrawn(u32),
    /// A task has ended, and its node has room again.
    Ended {
        /// The task.
        task: u32,
        /// Where.
        node: u32,
    },
    /// An execution was in vain: it failed, or another one was faster. Its node has room again.
    Freed {
        /// The task.
        task: u32,
        /// Where.
        node: u32,
    },
    /// A node that holds tasks in advance has begun to compute one.
    Began {
        /// The task.
        task: u32,
        /// Where.
        node: u32,
    },
    /// A node is there.
    Joined(u32),
    /// A node is gone, with everything on it.
    Left(u32),
}

/// Decides what runs where.
pub trait Strategy {
    /// Takes an event in.
    fn handle(&mut self, event: Event, now: Nanos, world: &World<'_>);
    /// Which tasks start now, on which nodes, or are given to nodes that hold tasks in advance. Called whenever something
    /// has happened.
    fn start(&mut self, now: Nanos, world: &World<'_>) -> Vec<(u32, u32)>;
    /// How urgent a task is compared with others that a node was given.
    fn rank(&self, _task: u32) -> u64 {
        0
    }
    /// Tasks whose files nodes should bring although they were not given the tasks.
    fn prefetch(&mut self, _now: Nanos, _world: &World<'_>) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Tasks that nodes should give back, if they have not begun to compute them.
    fn recall(&mut self, _now: Nanos, _world: &World<'_>) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// When it wants to be asked again, even if nothing happens before.
    fn wake(&self) -> Option<Nanos> {
        None
    }
}

/// What is to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// An execution has computed.
    Computed(u32),
    /// An execution fails.
    Fails(u32),
    /// The files of an execution are there.
    Staged(u32),
    /// A transfer is over, if this was still true of it.
    Arrived(u64, u32),
    /// A node dies, if it has died so often before.
    Dies(u32, u32),
    /// A node that died is back.
    Returns(u32),
    /// A node that was asked for is there.
    Booted(u32),
    /// Somebody may have been idle for long enough.
    Look,
}

/// More executions than this per task mean that they are lost faster than they end.
const VAIN: usize = 200;

struct Engine<'a> {
    world: World<'a>,
    now: Nanos,
    luck: Luck,
    agenda: BinaryHeap<Reverse<(Nanos, u64, What)>>,
    order: u64,
    /// What strategies have not been told yet, and when they are.
    news: VecDeque<(Nanos, Event)>,
    /// How many parents each task waits for.
    waits: Vec<u32>,
    done: usize,
    /// How often each task was executed.
    tries: Vec<u32>,
    /// The executions that go on, by task.
    live: HashMap<u32, Vec<u32>>,
    /// How many nodes have each file, where nodes have files.
    holders: Vec<u32>,
    /// Transfers that share links, if they do.
    flows: Option<Flows>,
    /// How many files or transfers an execution waits for.
    pending: HashMap<u32, usize>,
    /// Who waits for a file on a node.
    awaited: BTreeMap<(u32, u32), Vec<u32>>,
    /// How urgent each execution is, where tasks are given in advance.
    ranks: Vec<u64>,
    /// Nodes that may be able to compute something that they were given in advance.
    stirred: BTreeSet<u32>,
    elastic: Option<Elastic>,
    outcome: Outcome,
}

/// Executes a workload in virtual time. An error says why it cannot come to an end.
pub fn simulate(
    workload: &Workload,
    cluster: &Cluster,
    strategy: &mut dyn Strategy,
    seed: u64,
) -> Result<Outcome, String> {
    for (number, task) in (0..).zip(&workload.tasks) {
        let class = workload.class(number);
        if !cluster.kinds.iter().any(|k| k.can(class)) {
            let largest = cluster.kinds.iter().max_by_key(|k| k.resources.cpus);
            let largest = largest.map_or(String::new(), |k| format!("; `{}` has {}", k.id, k.resources));
            let needs = format!("{} and {}", class.resources, class.show_capabilities());
            return Err(format!("no node can execute `{}`, which needs {needs}{largest}", task.id));
        }
    }
    let mut engine = Engine::new(workload, cluster, seed);
    engine.run(strategy)
}

impl<'a> Engine<'a> {
    fn new(workload: &'a Workload, cluster: &'a Cluster, seed: u64) -> Self {
        let n = workload.len();
        let is_local = cluster.storage == Storage::Local;
        let speed = cluster.mean_speed();
        let world = World {
            workload,
            cluster,
            nodes: Vec::new(),
            speed,
            unstarted: (0..n as u32).map(|t| cluster.compute(workload, t, speed)).sum(),
            states: vec![State::Waiting; n],
            ready: vec![0; workload.classes.len()],
            copies: vec![0; n],
        };
        let mut engine = Self {
            world,
            now: 0,
            luck: Luck::new(cluster.chance, seed),
            agenda: BinaryHeap::new(),
            order: 0,
            news: VecDeque::new(),
            waits: (0..n as u32).map(|t| workload.dag.parents(t).len() as u32).collect(),
            done: 0,
            tries: vec![0; n],
            live: HashMap::new(),
            holders: vec![0; if is_local { workload.files.len() } else { 0 }],
            flows: cluster.network.is_fair.then(|| Flows::new(cluster)),
            pending: HashMap::new(),
            awaited: BTreeMap::new(),
            ranks: Vec::new(),
            stirred: BTreeSet::new(),
            elastic: Elastic::new(cluster),
            outcome: Outcome { executions: Vec::with_capacity(n), ..Outcome::default() },
        };
        for (kind, k) in cluster.kinds.iter().enumerate() {
            for _ in 0..k.count {
                let node = engine.add_node(kind);
                engine.join(node);
            }
        }
        for task in 0..n as u32 {
            if engine.waits[task as usize] == 0 {
                engine.make_ready(task);
            }
        }
        engine
    }

    fn run(&mut self, strategy: &mut dyn Strategy) -> Result<Outcome, String> {
        let n = self.world.workload.len();
        loop {
            self.tell(strategy);
            for (task, node) in strategy.start(self.now, &self.world) {
                self.start(task, node, strategy.rank(task));
            }
            if self.world.cluster.ahead > 0 {
                for (task, node) in strategy.prefetch(self.now, &self.world) {
                    self.prefetch(task, node);
                }
                for (task, node) in strategy.recall(self.now, &self.world) {
                    self.give_back(task, node);
                }
            }
            if self.done == n {
                return Ok(self.finish());
            }
            if self.outcome.executions.len() > VAIN * n.max(100) {
                return Err(format!("tasks are lost faster than they end: {} of {n} have ended", self.done));
            }
            self.look_at_fleet()?;
            let next = self.agenda.peek().map_or(NEVER, |Reverse((time, ..))| *time);
            // That an idle node went is soon enough known when something else happens.
            let is_due = self.world.cluster.scheduling > 0 || self.world.cluster.ahead > 0;
            let next = self.news.front().filter(|_| is_due).map_or(next, |(time, _)| next.min(*time));
            let wake = strategy.wake().unwrap_or(NEVER);
            if wake < next {
                // Time goes on, whatever a strategy wishes.
                self.now = wake.max(self.now + 1);
            } else if next < NEVER {
                self.now = next;
                // Everything that happens at the same time happens before anything starts.
                while let Some(Reverse((time, _, what))) = self.agenda.peek().copied()
                    && time <= self.now
                {
                    self.agenda.pop();
                    self.happen(what);
                }
                self.serve();
            } else {
                return Err(format!("{} of {n} tasks never start", n - self.done));
            }
        }
    }

    fn tell(&mut self, strategy: &mut dyn Strategy) {
        while let Some((_, event)) = self.news.pop_front_if(|(time, _)| *time <= self.now) {
            // What is known late may not be true any more.
            let is_late = self.world.cluster.scheduling > 0;
            if let Event::Ready(task) = event
                && is_late
                && self.world.state(task) != State::Ready
            {
                continue;
            }
            strategy.handle(event, self.now, &self.world);
        }
    }

    /// Strategies are told as soon as they can know. That nodes come and go, and what follows from that, they know at once
    /// and together with everything that was before.
    fn say(&mut self, event: Event) {
        let takes_time = matches!(
            event,
            Event::Ready(_) | Event::Ended { .. } | Event::Freed { .. } | Event::Began { .. }
        );
        if takes_time {
            self.news.push_back((self.now + self.world.cluster.scheduling, event));
        } else {
            for (time, _) in &mut self.news {
                *time = self.now;
            }
            self.news.push_back((self.now, event));
        }
    }

    fn plan(&mut self, time: Nanos, what: What) {
        self.order += 1;
        self.agenda.push(Reverse((time, self.order, what)));
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Computed(execution) => self.computed(execution),
            What::Fails(execution) => {
                if self.is_running(execution) {
                    self.give_up(execution, Fate::Failed);
                }
            }
            What::Staged(execution) => self.staged(execution),
            What::Arrived(flow, version) => self.arrived(flow, version),
            What::Dies(node, deaths) => {
                let state = &self.world.nodes[node as usize];
                if state.is_up && state.deaths == deaths {
                    self.lose(node);
                    if self.elastic.as_ref().is_some_and(|e| e.expects(node)) {
                        // Another one is made if it is needed.
                        self.outcome.stays[node as usize].to = self.now;
                    } else {
                        self.plan(self.now + self.luck.repair(), What::Returns(node));
                    }
                }
            }
            What::Returns(node) => self.join(node),
            What::Booted(node) => {
                if self.elastic.as_ref().is_some_and(|e| e.expects(node)) {
                    self.join(node);
                }
            }
            What::Look => {}
        }
    }

    fn make_ready(&mut self, task: u32) {
        self.world.set(task, State::Ready);
        self.say(Event::Ready(task));
    }

    /// A task of which no execution goes on waits for a node again, or for others.
    fn reconsider(&mut self, task: u32) {
        if self.world.copies(task) == 0 && self.world.state(task) != State::Done {
            self.world.set(task, State::Waiting);
            if self.waits[task as usize] == 0 {
                self.make_ready(task);
            } else {
                self.say(Event::Withdrawn(task));
            }
        }
    }

    fn is_running(&self, execution: u32) -> bool {
        self.outcome.executions[execution as usize].fate == Fate::Running
    }

    fn execution_on(&self, task: u32, node: u32) -> Option<u32> {
        let live = self.live.get(&task)?;
        live.iter().copied().find(|e| self.outcome.executions[*e as usize].node == node)
    }

    fn start(&mut self, task: u32, node: u32, rank: u64) {
        let state = self.world.state(task);
        if state == State::Done && self.world.cluster.scheduling > 0 {
            // Who knew that late has learned it now.
            return self.say(Event::Freed { task, node });
        }
        assert!(matches!(state, State::Ready | State::Running), "a task starts when it is ready");
        assert!(!self.world.nodes[node as usize].running.contains(&task), "a node executes a task once");
        let is_ahead = self.world.cluster.ahead > 0;
        assert!(self.world.fits(task, node) || is_ahead, "a node executes what it has room for");
        assert!(self.world.can_take(task, node), "a node holds no more in advance than it may");
        let need = &self.world.workload.class(task).resources;
        self.world.nodes[node as usize].take(task, need);
        self.world.set(task, State::Running);
        self.world.copies[task as usize] += 1;
        self.tries[task as usize] += 1;
        let execution = self.outcome.executions.len() as u32;
        let (start, busy) = (self.now, if is_ahead { NEVER } else { self.now });
        let record = Execution { task, node, start, staged: NEVER, busy, end: NEVER, fate: Fate::Running };
        self.outcome.executions.push(record);
        self.ranks.push(rank);
        self.live.entry(task).or_default().push(execution);
        if self.flows.is_some() && is_ahead {
            self.world.nodes[node as usize].unstaged.push(task, rank, 0, true);
            self.fetch(node);
        } else if self.flows.is_some() {
            self.bring(execution);
        } else {
            let staged = self.stage(task, node);
            self.expect_staged(execution, staged);
        }
    }

    /// The files of an execution will be there: it computes then, or, if it was given in advance, when it is its turn.
    fn expect_staged(&mut self, execution: u32, staged: Nanos) {
        self.outcome.executions[execution as usize].staged = staged;
        if self.world.cluster.ahead > 0 {
            self.plan(staged, What::Staged(execution));
        } else {
            self.compute(execution, staged);
        }
    }

    fn compute(&mut self, execution: u32, from: Nanos) {
        let Execution { task, node, .. } = self.outcome.executions[execution as usize];
        let time = self.tries[task as usize];
        let duration = self.luck.duration(task, time, self.world.compute(task, node));
        match self.luck.failure(task, time, duration) {
            Some(after) => self.plan(from + after, What::Fails(execution)),
            None => self.plan(from + duration, What::Computed(execution)),
        }
    }

    /// An execution is over.
    fn close(&mut self, execution: u32, fate: Fate) {
        let record = &mut self.outcome.executions[execution as usize];
        let has_begun = record.busy != NEVER;
        (record.end, record.fate) = (self.now, fate);
        record.staged = record.staged.min(self.now);
        record.busy = record.busy.min(self.now);
        let Execution { task, node, .. } = *record;
        if let Some(live) = self.live.get_mut(&task) {
            live.retain(|e| *e != execution);
            if live.is_empty() {
                self.live.remove(&task);
            }
        }
        self.pending.remove(&execution);
        self.world.copies[task as usize] -= 1;
        let workload = self.world.workload;
        let need = |task: u32| &workload.class(task).resources;
        if self.world.nodes[node as usize].give_up(task, has_begun, need) {
            self.world.nodes[node as usize].idle_since = self.now;
            if self.world.cluster.ahead > 0 {
                self.stirred.insert(node);
                self.fetch(node);
            }
        }
    }

    /// An execution was in vain, on a node that goes on.
    fn give_up(&mut self, execution: u32, fate: Fate) {
        self.close(execution, fate);
        let Execution { task, node, .. } = self.outcome.executions[execution as usize];
        self.say(Event::Freed { task, node });
        self.reconsider(task);
    }

    fn computed(&mut self, execution: u32) {
        if !self.is_running(execution) {
            return;
        }
        self.close(execution, Fate::Succeeded);
        let Execution { task, node, .. } = self.outcome.executions[execution as usize];
        let workload = self.world.workload;
        self.world.set(task, State::Done);
        self.done += 1;
        if self.world.cluster.storage == Storage::Local {
            for file in &workload.tasks[task as usize].outputs {
                self.hold(node, *file);
            }
        }
        self.say(Event::Ended { task, node });
        for other in self.live.get(&task).cloned().unwrap_or_default() {
            self.give_up(other, Fate::Stopped);
        }
        for child in workload.dag.children(task) {
            if self.world.state(*child) != State::Done {
                self.waits[*child as usize] -= 1;
                if self.waits[*child as usize] == 0 && self.world.state(*child) == State::Waiting {
                    self.make_ready(*child);
                }
            }
        }
    }

    fn finish(&mut self) -> Outcome {
        self.outcome.makespan = self.now;
        for stay in &mut self.outcome.stays {
            stay.to = stay.to.min(self.now);
        }
        std::mem::take(&mut self.outcome)
    }
}
