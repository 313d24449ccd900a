//! Where it is computed: nodes, how files get to them, and what goes wrong.

mod read;

use crate::time::{Nanos, nanos};
use crate::workload::Workload;
use catena_model::{Name, Resources};
use catena_schedule::Class;

pub use read::read_cluster;

/// A cluster that does not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// The kinds of nodes it has.
    pub kinds: Vec<Kind>,
    /// Where files are.
    pub storage: Storage,
    /// How files travel.
    pub network: Network,
    /// No task computes for less than this.
    pub shortest: Nanos,
    /// Whether each task takes one processor, whatever it has recorded.
    pub uniform: bool,
    /// How many tasks a node holds in advance for each processor. It brings their files while others compute, and no
    /// processor is occupied by that.
    pub ahead: u32,
    /// How long it takes until a scheduler knows what has happened.
    pub scheduling: Nanos,
    /// Where files are that come with the work, if nodes have files of their own.
    pub inputs: Inputs,
    /// What nobody can know in advance.
    pub chance: Chance,
}

/// Where files are that come with the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Inputs {
    /// Somewhere that is as fast as is wanted.
    Outside,
    /// On one machine that sends so many bytes per second; as many as nodes, if nothing is said.
    Home(Option<f64>),
}

/// Nodes that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// What it is called.
    pub id: Name,
    /// So many there are from the beginning.
    pub count: u32,
    /// So many there may be; more than `count` are made when tasks wait, and go when they have nothing to do.
    pub max: u32,
    /// What a node has.
    pub resources: Resources,
    /// How fast it is, compared with the one on which runtimes were recorded.
    pub speed: f64,
    /// What it offers.
    pub capabilities: Vec<Name>,
    /// What it costs per hour.
    pub price: f64,
    /// How long it takes to make one.
    pub boot: Nanos,
    /// How long one that was made stays without anything to do.
    pub idle: Nanos,
}

/// Where files are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    /// On one file system, from which every node reads so many bytes per second.
    Shared(f64),
    /// On the nodes that wrote or read them; from others they come over the network. What comes from outside is on
    /// none of them in the beginning.
    Local,
}

/// How files travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// How many bytes per second a node receives, and sends.
    pub bandwidth: f64,
    /// What every transfer takes in addition.
    pub latency: Nanos,
    /// Whether transfers that go on at the same time share what nodes can send and receive, and what a shared file
    /// system can send. Otherwise they do not disturb each other.
    pub is_fair: bool,
    /// For how many tasks a node that holds tasks in advance brings files at the same time, the most urgent first, if
    /// transfers share links. For all of them, if nothing is said.
    pub at_once: Option<u32>,
}

/// What nobody can know in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chance {
    /// Durations are off by up to this fraction.
    pub spread: f64,
    /// The fraction of executions that are slow for no reason.
    pub stragglers: f64,
    /// How many times longer these take.
    pub factor: f64,
    /// The fraction of executions that fail, and are tried again.
    pub failures: f64,
    /// A node works for so long on average before it dies, and takes everything on it with it.
    pub lifetime: Option<Nanos>,
    /// How long it takes until it is back, empty.
    pub repair: Nanos,
}

impl Kind {
    /// One processor of the speed on which runtimes were recorded, and as much memory as is needed.
    pub fn new(count: u32) -> Self {
        Self {
            id: Name::new_static("node"),
            count,
            max: count,
            resources: Resources { cpus: 1000, memory: u64::MAX, ..Resources::default() },
            speed: 1.0,
            capabilities: Vec::new(),
            price: 0.0,
            boot: 0,
            idle: nanos(60.0),
        }
    }

    /// Whether a node can execute tasks of a class, if it has nothing else to do.
    pub fn can(&self, class: &Class) -> bool {
        class.capabilities.iter().all(|c| self.capabilities.contains(c))
            && self.resources.fits(&class.resources)
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            kinds: vec![Kind::new(1)],
            storage: Storage::Shared(1e9),
            network: Network { bandwidth: 1.25e8, latency: 0, is_fair: false, at_once: None },
            shortest: 0,
            uniform: false,
            ahead: 0,
            scheduling: 0,
            inputs: Inputs::Outside,
            chance: Chance::default(),
        }
    }
}

/// Clusters that have a name, and what they are.
pub const CLUSTERS: [(&str, &str); 3] = [
    ("plain", "one file system for all nodes, from which each reads 1 GB/s"),
    ("adage", "the model of the experiments with ADAGE: shared storage with 1,800 MB/s"),
    ("adage-local", "the same, with files on the nodes that wrote or read them"),
];

impl Cluster {
    /// The cluster with a name, if there is one: see [`CLUSTERS`].
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::default()),
            "adage" => Some(Self::adage()),
            "adage-local" => Some(Self::adage_local()),
            _ => None,
        }
    }

    /// The model of the experiments with ADAGE: 2,000 MIPS, where a second of a job is 1,000 million instructions;
    /// shared storage with 1,800 MB/s. The paper speaks of 4 cores per node; in its simulator a node executes one
    /// task at a time.
    pub fn adage() -> Self {
        Self {
            kinds: vec![Kind { speed: 2.0, ..Kind::new(1) }],
            storage: Storage::Shared(1.8e9),
            shortest: nanos(0.05),
            uniform: true,
            ..Self::default()
        }
    }

    /// The same nodes without shared storage, at a gigabit per second.
    pub fn adage_local() -> Self {
        Self { storage: Storage::Local, ..Self::adage() }
    }

    /// The same cluster with so many nodes of its first kind from the beginning.
    #[must_use]
    pub fn with_nodes(mut self, nodes: u32) -> Self {
        if let Some(kind) = self.kinds.first_mut() {
            kind.max = if kind.max == kind.count { nodes } else { kind.max.max(nodes) };
            kind.count = nodes;
        }
        self
    }

    /// How many nodes there are at most.
    pub fn nodes(&self) -> u32 {
        self.kinds.iter().map(|k| k.max).sum()
    }

    /// Whether all nodes are equally fast and there from beginning to end.
    pub fn is_even(&self) -> bool {
        self.kinds.windows(2).all(|pair| pair[0].speed.to_bits() == pair[1].speed.to_bits())
    }

    /// How long a task is expected to compute on a node of some speed.
    pub fn compute(&self, workload: &Workload, task: u32, speed: f64) -> Nanos {
        nanos(workload.tasks[task as usize].seconds / speed).max(self.shortest)
    }

    /// How long so many bytes take if nothing else is transferred.
    pub fn transfer(&self, bytes: u64) -> Nanos {
        if bytes == 0 {
            return 0;
        }
        let rate = match self.storage {
            Storage::Shared(rate) => rate,
            Storage::Local => self.network.bandwidth,
        };
        self.network.latency + nanos(bytes as f64 / rate)
    }

    /// The mean speed of its processors.
    pub fn mean_speed(&self) -> f64 {
        let (mut speed, mut cpus) = (0.0, 0.0);
        for kind in &self.kinds {
            let all = f64::from(kind.max) * kind.resources.cpus as f64;
            speed += all * kind.speed;
            cpus += all;
        }
        if cpus > 0.0 { speed / cpus } else { 1.0 }
    }

    /// How long a task takes at most on a node of mean speed: if no file is at hand.
    pub fn longest(&self, workload: &Workload, task: u32) -> Nanos {
        self.compute(workload, task, self.mean_speed()) + self.transfer(workload.bytes_read(task))
    }

    /// No schedule can be shorter: the longest path on the fastest nodes that can, and all work divided by all
    /// processors.
    pub fn lower_bound(&self, workload: &Workload) -> Nanos {
        let fastest: Vec<f64> = workload.classes.iter().map(|c| self.fastest(c)).collect();
        let cost = |t: u32| {
            let compute = self.compute(workload, t, fastest[workload.tasks[t as usize].class as usize]);
            match self.storage {
                Storage::Shared(_) => compute + self.transfer(workload.bytes_read(t)),
                Storage::Local => compute,
            }
        };
        let path = workload.upward(cost).into_iter().max().unwrap_or(0);
        // What is brought in advance occupies nobody.
        let busy = |t: u32| {
            let compute = || self.compute(workload, t, fastest[workload.tasks[t as usize].class as usize]);
            if self.ahead > 0 { compute() } else { cost(t) }
        };
        let work = |t: u32| busy(t) as f64 * workload.class(t).resources.cpus as f64;
        let work: f64 = (0..workload.len() as u32).map(work).sum();
        let cpus: f64 = self.kinds.iter().map(|k| f64::from(k.max) * k.resources.cpus as f64).sum();
        path.max((work / cpus.max(1.0)) as Nanos)
    }

    fn fastest(&self, class: &Class) -> f64 {
        let able = self.kinds.iter().filter(|k| k.can(class)).map(|k| k.speed);
        able.fold(f64::NEG_INFINITY, f64::max).max(1e-9)
    }
}
