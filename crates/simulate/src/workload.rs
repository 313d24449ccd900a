//! What is to be computed: tasks with lengths, needs and files, and who waits for whom.

use catena_model::import::{Trace, TraceJob};
use catena_model::{Name, Resources};
use catena_plan::{Cycle, Dag};
use catena_schedule::Class;
use std::collections::HashMap;

/// A workflow whose tasks take known times on a node of speed 1.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// Sizes of its files, in bytes.
    pub files: Vec<u64>,
    /// Who waits for whom.
    pub dag: Dag,
    /// What tasks need of a node.
    pub classes: Vec<Class>,
    /// The task that writes each file; none writes what comes from outside.
    pub writers: Vec<Option<u32>>,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Identifies it.
    pub id: Name,
    /// What it runs.
    pub program: Name,
    /// How long it computes, in seconds.
    pub seconds: f64,
    /// What it needs of a node: one of the workload's classes.
    pub class: u32,
    /// The files it reads.
    pub inputs: Vec<u32>,
    /// The files it writes.
    pub outputs: Vec<u32>,
}

impl Workload {
    /// A workflow as it was recorded. If tasks are `uniform`, each takes one processor, whatever it has recorded.
    pub fn new(trace: &Trace, uniform: bool) -> Result<Self, Cycle> {
        let mut classes = Vec::new();
        let mut numbers: HashMap<Class, u32> = HashMap::new();
        let mut task = |job: &TraceJob| {
            let class = if uniform { Class::default() } else { class_of(job) };
            let class = *numbers.entry(class).or_insert_with_key(|class| {
                classes.push(class.clone());
                classes.len() as u32 - 1
            });
            Task {
                id: job.id.clone(),
                program: job.program.clone(),
                seconds: job.runtime,
                class,
                inputs: job.inputs.clone(),
                outputs: job.outputs.clone(),
            }
        };
        let tasks: Vec<Task> = trace.jobs.iter().map(&mut task).collect();
        let dag = Dag::new(trace.jobs.len(), &trace.arcs)?;
        let files = trace.files.iter().map(|f| f.size).collect();
        Ok(Self::of_tasks(trace.name.clone(), tasks, files, dag, classes))
    }

    /// Tasks, the sizes of their files, and who waits for whom.
    pub fn of_tasks(name: String, tasks: Vec<Task>, files: Vec<u64>, dag: Dag, classes: Vec<Class>) -> Self {
        let mut writers = vec![None; files.len()];
        for (number, task) in (0..).zip(&tasks) {
            for file in &task.outputs {
                writers[*file as usize] = Some(number);
            }
        }
        Self { name, tasks, files, dag, classes, writers }
    }

    /// How many tasks there are.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// What a task needs of a node.
    pub fn class(&self, task: u32) -> &Class {
        &self.classes[self.tasks[task as usize].class as usize]
    }

    /// How many bytes a task reads.
    pub fn bytes_read(&self, task: u32) -> u64 {
        self.tasks[task as usize].inputs.iter().map(|f| self.files[*f as usize]).sum()
    }

    /// For each task the length of the longest path from its beginning to the end, if tasks take `cost`.
    pub fn upward(&self, cost: impl Fn(u32) -> u64) -> Vec<u64> {
        let mut upward = vec![0; self.len()];
        for t in self.dag.topological_order().into_iter().rev() {
            let after = self.dag.children(t).iter().map(|c| upward[*c as usize]).max().unwrap_or(0);
            upward[t as usize] = cost(t) + after;
        }
        upward
    }

    /// For each task the length of the longest path from the start to its beginning.
    pub fn downward(&self, cost: impl Fn(u32) -> u64) -> Vec<u64> {
        let mut downward = vec![0; self.len()];
        for t in self.dag.topological_order() {
            let end = downward[t as usize] + cost(t);
            for child in self.dag.children(t) {
                downward[*child as usize] = downward[*child as usize].max(end);
            }
        }
        downward
    }
}

/// A job that was recorded with many processors needs as many.
fn class_of(job: &TraceJob) -> Class {
    let cpus = (job.cores.ceil() as u64).max(1) * 1000;
    let capabilities = job.needs.clone();
    Class { capabilities, resources: Resources { cpus, memory: job.memory, ..Resources::default() } }
}
