//! Puts traces together, and refuses what cannot be one.

use super::order::{Circle, in_order};
use super::{Trace, TraceFile, TraceJob};
use crate::Name;
use crate::diag::nearest;
use std::collections::{HashMap, HashSet};

/// More seconds than anything took: 30,000 years.
const MAX_SECONDS: f64 = 1e12;
/// More bytes than a file has, and few enough to be added up many thousand times.
const MAX_BYTES: f64 = 1e15;
/// More processors than a machine has.
const MAX_CORES: f64 = 1e6;

/// A trace that grows. What is wrong is returned as a message; its place is known to the caller.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) trace: Trace,
    jobs: HashMap<Name, u32>,
    /// Files by name, and whether their size is that of an input.
    files: HashMap<Name, (u32, bool)>,
}

impl Builder {
    pub(super) fn job(&mut self, job: TraceJob) -> Result<u32, String> {
        let number = self.trace.jobs.len() as u32;
        if job.id.is_empty() {
            return Err("the id of a job is empty: give each job an id of its own".to_owned());
        }
        if self.jobs.insert(job.id.clone(), number).is_some() {
            return Err(format!("there is another job `{}`: give each job an id of its own", job.id));
        }
        self.trace.jobs.push(job);
        Ok(number)
    }

    /// Gives a job another name by which others may refer to it, if no job has it.
    pub(super) fn alias(&mut self, name: &str, job: u32) {
        if !self.jobs.contains_key(name) {
            self.jobs.insert(Name::new(name), job);
        }
    }

    pub(super) fn find(&self, id: &str) -> Result<u32, String> {
        self.jobs.get(id).copied().ok_or_else(|| {
            // Among very many, the search for a similar one would take longer than a look at the file.
            let known = self.jobs.keys().take(10_000).map(Name::as_str);
            let help = nearest(id, known).filter(|_| id.len() > 2).map_or_else(
                || "define it, or leave out who waits for it".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            format!("there is no job `{id}`: {help}")
        })
    }

    /// A file, which may be known already.
    pub(super) fn file(&mut self, name: &str) -> u32 {
        let next = self.trace.files.len() as u32;
        if let Some((file, _)) = self.files.get(name) {
            return *file;
        }
        self.files.insert(Name::new(name), (next, false));
        self.trace.files.push(TraceFile { name: Name::new(name), size: 0 });
        next
    }

    /// A job uses a file. What its first reader says about its size counts, and what writers say only until then.
    pub(super) fn uses(&mut self, job: u32, name: &str, size: Option<u64>, is_input: bool) {
        let file = self.file(name);
        if let Some(size) = size
            && let Some((_, read)) = self.files.get_mut(name).filter(|(_, read)| !read)
        {
            *read = is_input;
            self.trace.files[file as usize].size = size;
        }
        let job = &mut self.trace.jobs[job as usize];
        if is_input { job.inputs.push(file) } else { job.outputs.push(file) }
    }

    /// The trace; or a job and what is wrong with it.
    pub(super) fn finish(mut self) -> Result<Trace, (u32, String)> {
        // Which job was the last to use a file.
        let mut last = vec![u32::MAX; self.trace.files.len()];
        for (number, job) in (0..).zip(&mut self.trace.jobs) {
            let mut is_new = |file: &u32| std::mem::replace(&mut last[*file as usize], number) != number;
            job.outputs.retain(&mut is_new);
            job.inputs.retain(&mut is_new);
        }
        // In the order in which they were said, which decides between jobs that are alike.
        let mut seen = HashSet::new();
        self.trace.arcs.retain(|arc| seen.insert(*arc));
        match in_order(&self.trace) {
            Ok(_) => Ok(self.trace),
            Err(Circle(jobs)) => {
                let ids = jobs.iter().chain(jobs.first()).take(20);
                let ids: Vec<&str> = ids.map(|j| self.trace.jobs[*j as usize].id.as_str()).collect();
                let message = format!("these wait for each other in a circle: {}", ids.join(" → "));
                Err((jobs[0], format!("{message}: leave out one of these dependencies")))
            }
        }
    }
}

/// A runtime. Clocks that are set back leave negative ones behind, which say nothing.
pub(super) fn seconds(value: f64) -> Result<f64, String> {
    if value.is_nan() || value > MAX_SECONDS {
        return Err(format!("`{}` is no runtime: give seconds, from 0 to 10^12", shown(value)));
    }
    Ok(value.max(0.0))
}

/// A size, whatever its sign.
pub(super) fn bytes(value: f64) -> Result<u64, String> {
    if value.is_nan() || value.abs() > MAX_BYTES {
        return Err(format!("`{}` is no size: give a number of bytes, from 0 to 10^15", shown(value)));
    }
    Ok(value.abs().round() as u64)
}

/// A number of processors; 0 says nothing.
pub(super) fn cores(value: f64) -> Result<f64, String> {
    if !(0.0..=MAX_CORES).contains(&value) {
        return Err(format!("`{}` is no number of processors: give one from 1 to 10^6", shown(value)));
    }
    Ok(if value == 0.0 { 1.0 } else { value })
}

/// A number without hundreds of digits.
fn shown(value: f64) -> String {
    if value.abs() < 1e15 { value.to_string() } else { format!("{value:e}") }
}

/// A number as text.
pub(super) fn number(text: &str, what: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is no {what}: give a number"))
}

/// A workflow in which nothing is to be done is a mistake.
pub(super) const NO_JOBS: &str = "there are no jobs: a workflow has at least one";
