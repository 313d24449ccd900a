//! Peers that do not exist, and what they are told of workflows.

use super::load::Load;
use super::trouble::Trouble;
use crate::random::Random;
use catena_rules::Value;
use catena_space::id::Peer;
use catena_space::molecule::{Ending, Order};
use catena_space::time::{MILLI, Micros, SECOND};
use catena_space::{Chemistry, Host, NewTask, Settings, Weaver};
use std::sync::Arc;

/// How peers find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Everybody knows everybody.
    Full,
    /// Everybody knows some.
    Ring,
}

/// Peers that do not exist.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// How many.
    pub peers: usize,
    /// Where they are on the ring; random if nothing is said. Those that are given have a speed of 1.
    pub places: Option<Vec<Peer>>,
    /// How they find their way.
    pub routing: Routing,
    /// How they behave.
    pub settings: Settings,
    /// The rules they follow.
    pub chemistry: Arc<Chemistry>,
    /// How long messages take: from, to.
    pub hop: (Micros, Micros),
    /// What goes wrong.
    pub trouble: Trouble,
    /// It goes on so long after all workflows are over.
    pub linger: Micros,
    /// The same seed gives the same simulation.
    pub seed: u64,
    /// The simulation ends then, whether all is done or not.
    pub end: Micros,
}

impl Swarm {
    /// Peers as they usually are. Their speeds are between 0.5 and 1.5.
    pub fn new(peers: usize, chemistry: Arc<Chemistry>, seed: u64) -> Self {
        let routing = if peers < 1024 { Routing::Full } else { Routing::Ring };
        // One part of the index for some hundred peers.
        let shards = (peers / 300).clamp(1, 1 << 12) as u16;
        Self {
            peers,
            places: None,
            routing,
            settings: Settings { shards, ..Settings::default() },
            chemistry,
            hop: (2 * MILLI, 20 * MILLI),
            trouble: Trouble::default(),
            linger: 0,
            seed,
            end: 24 * 3600 * SECOND,
        }
    }

    /// The speeds of its peers.
    pub fn speeds(&self) -> Vec<f64> {
        if self.places.is_some() {
            return vec![1.0; self.peers];
        }
        let mut random = Random::new(self.seed ^ 0x5bee_d5ee);
        (0..self.peers).map(|_| 0.5 + (random.below(1000) as f64) / 1000.0).collect()
    }
}

/// The resource that a peer is while it executes nothing.
pub(super) fn resource(peer: u64, speed: f64) -> Value {
    let pair = |tag: &str, value| Value::tuple([Value::tag(tag), value]).expect("two values");
    let features = [pair("SPEED", Value::float(speed).expect("finite")), pair("CPUS", Value::Int(1))];
    let features = Value::solution(features).expect("not deep");
    Value::tuple([Value::tag("RES"), Value::Int(peer as i64), features]).expect("three values")
}

/// The tasks of a workflow, as nodes want them.
pub(super) fn tasks_of(load: &Load, workflow: usize) -> Vec<NewTask> {
    let pair = |tag: &str, value| Value::tuple([Value::tag(tag), value]).expect("two values");
    let tasks = load.workflows[workflow].tasks.iter().enumerate();
    tasks
        .map(|(i, task)| {
            let number = i as u32 + 1;
            let mut payload = [0; 8];
            payload[..4].copy_from_slice(&(workflow as u32).to_le_bytes());
            payload[4..].copy_from_slice(&number.to_le_bytes());
            NewTask {
                number,
                sources: task.sources.clone(),
                want: vec![pair("CPUS", Value::Int(1))],
                about: vec![pair("WORK", Value::Int((task.length / MILLI) as i64))],
                order: Order { payload: payload.into(), exclusive: false },
            }
        })
        .collect()
}

/// Knows the workflows of a load by their numbers.
pub(super) struct Known(pub(super) Arc<Load>);

struct Woven(Arc<Load>, usize);

impl Host for Known {
    fn weaver(&self, workflow: &[u8]) -> Result<Box<dyn Weaver>, String> {
        let number =
            workflow.try_into().map(u32::from_le_bytes).map_err(|_| "no such workflow".to_owned())?;
        Ok(Box::new(Woven(self.0.clone(), number as usize)))
    }
}

impl Weaver for Woven {
    fn begin(&mut self) -> Result<Vec<NewTask>, String> {
        Ok(tasks_of(&self.0, self.1))
    }

    fn done(&mut self, _: u32, _: &Ending) -> Result<Vec<NewTask>, String> {
        Ok(Vec::new())
    }

    fn wants_all(&self) -> bool {
        true
    }

    fn ending(&self) -> Ending {
        Ending { good: true, matter: [].into() }
    }
}
