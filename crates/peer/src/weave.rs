//! Finds out what a workflow consists of: a planner that plans ahead of results.
//!
//! What a task will write is known before it runs, unless it is the content of a directory. So all chains that can be seen
//! from the beginning are given out at once, and who waits for whom with them; what is behind an unknown list follows when
//! the list is there.

mod gate;
#[cfg(test)]
mod tests;

use crate::catalogue::Catalogue;
use crate::matter::{Document, Finished, Task, TaskEnding};
use crate::offer::{about, wants};
use catena_model::Name;
use catena_model::chain::Argument;
use catena_model::chain::{Executable, ProcessChain, RunContext, TaskResult};
use catena_model::{DIRECTORY, VALUE};
use catena_plan::Planner;
use catena_server::chain_inputs;
use catena_space::Chemistry;
use catena_space::molecule::{self, Ending, Order};
use catena_space::node::{Host, NewTask, Weaver};
use gate::Gate;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes weavers of what is in molecules of workflows.
#[derive(Clone, Copy, Debug)]
pub struct Loom {
    pace: Pace,
}

/// When tasks are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as they can be foreseen. Who executes a task has to be told what those it waited for have given.
    Ahead,
    /// When all that were given out before are over.
    Levels,
}

impl Loom {
    /// Weaves as the rules of the peers need it: rules that let tasks wait for others than those they name, such as levels,
    /// do not tell who executes a task where to get what it reads. So it must be known when the task is given out.
    pub fn new(chemistry: &Chemistry) -> Self {
        let task = |number, sources| NewTask {
            number,
            sources,
            want: Vec::new(),
            about: about(&ProcessChain::new(Name::default(), Vec::new()), &BTreeMap::new()),
            order: Order { payload: [].into(), exclusive: false },
        };
        let parts = chemistry.weave(&[task(1, Vec::new()), task(2, vec![1])]).unwrap_or_default();
        let second = parts.iter().find(|p| p.name == molecule::Name::task(2));
        let is_told = second.is_some_and(|p| p.sources == [molecule::Name::task(1)]);
        Self { pace: if is_told { Pace::Ahead } else { Pace::Levels } }
    }
}

impl Host for Loom {
    fn weaver(&self, workflow: &[u8]) -> Result<Box<dyn Weaver>, String> {
        Ok(Box::new(Weave::new(Document::read(workflow)?, self.pace)?))
    }
}

/// A workflow that is planned among peers. Tasks are process chains; their numbers are those of the planner, from 1.
pub struct Weave {
    pace: Pace,
    planner: Planner,
    context: RunContext,
    usual: BTreeMap<Name, f64>,
    chains: Vec<Chain>,
    gate: Gate,
    catalogue: Catalogue,
    /// Chains that were made since the last time something was foreseen.
    fresh: Vec<u32>,
    /// Chains that are not over.
    open: usize,
    /// While more than so many are not over, there is nothing to plan.
    enough: usize,
}

/// A chain that was planned.
struct Chain {
    /// Until it is given out.
    unsent: Option<ProcessChain>,
    sources: Vec<u32>,
    foreseen: Outlook,
}

/// For each task of a chain what each of its outputs will be; nothing where only the run can tell.
type Outlook = Vec<Vec<Option<String>>>;

/// It is planned ahead until this many chains are not over: enough for many peers, and few enough to be in one message.
const AHEAD: usize = 8192;
/// So many names of actions are in an error.
const NAMED: usize = 3;

impl Weave {
    /// Reads a workflow.
    pub fn new(document: Document, pace: Pace) -> Result<Self, String> {
        let context = document.context();
        let program = document.definition.compile()?;
        let mut planner = Planner::new(Arc::new(program), document.definition.plan_options(&context));
        if pace == Pace::Ahead {
            planner.plan_ahead();
        }
        let mut catalogue = Catalogue::default();
        catalogue.add(0, &document.files, &document.holders);
        Ok(Self {
            pace,
            planner,
            context,
            usual: document.usual,
            chains: Vec::new(),
            gate: Gate::default(),
            catalogue,
            fresh: Vec::new(),
            open: 0,
            enough: AHEAD,
        })
    }

    /// Plans as far as can be seen.
    fn plan(&mut self) -> Result<(), String> {
        let enough = if self.pace == Pace::Levels { 0 } else { self.enough };
        if self.open > enough {
            return Ok(());
        }
        self.enough = AHEAD;
        while self.open < AHEAD {
            if let Some(chain) = self.planner.next_chain().map_err(|e| e.to_string())? {
                self.add(chain);
                continue;
            }
            if self.fresh.is_empty() || self.pace == Pace::Levels {
                self.fresh.clear();
                return Ok(());
            }
            // Only when nothing can be planned without: what follows alone after one chain belongs to it.
            for number in std::mem::take(&mut self.fresh) {
                let foreseen = &self.chains[number as usize - 1].foreseen;
                self.planner.foresee(u64::from(number) - 1, foreseen);
            }
        }
        // There may be more. Many chains at a time cost little more than one.
        self.enough = AHEAD - AHEAD / 8;
        Ok(())
    }

    fn add(&mut self, chain: ProcessChain) {
        let number = self.chains.len() as u32 + 1;
        let sources = self.planner.sources(u64::from(number) - 1).iter().map(|s| *s as u32 + 1);
        let sources: Vec<u32> = sources.collect();
        self.gate.add(&sources);
        let foreseen = chain.executables.iter().map(outlook).collect();
        self.chains.push(Chain { unsent: Some(chain), sources, foreseen });
        self.fresh.push(number);
        self.open += 1;
    }

    /// What can be given out now.
    fn batch(&mut self) -> Result<Vec<NewTask>, String> {
        let given = self.gate.take();
        given.into_iter().map(|number| self.task(number)).collect()
    }

    fn task(&mut self, number: u32) -> Result<NewTask, String> {
        let Chain { unsent, sources, .. } = &mut self.chains[number as usize - 1];
        let chain = unsent.take().ok_or_else(|| format!("the task {number} is given out twice"))?;
        let sources = sources.iter().copied().filter(|s| !self.gate.is_over(*s)).collect();
        let (want, about, exclusive) = (wants(&chain), about(&chain, &self.usual), chain.exclusive);
        // What comes from tasks that are not over is not known here; who executes it is told.
        let items = self.catalogue.reads(&chain_inputs(&chain));
        let task = Task { number, context: self.context.clone(), chain, items };
        let order = Order { payload: task.to_bytes()?, exclusive };
        Ok(NewTask { number, sources, want, about, order })
    }

    /// Makes sure that a task has given what was foreseen.
    fn check(&self, number: u32, results: &[TaskResult]) -> Result<(), String> {
        let foreseen = &self.chains[number as usize - 1].foreseen;
        let same = |task: &Vec<Option<String>>, result: &TaskResult| {
            let fits = |(foreseen, is): (&Option<String>, &Vec<String>)| {
                foreseen.as_ref().is_none_or(|f| is.len() == 1 && is[0] == *f)
            };
            task.len() == result.outputs.len() && task.iter().zip(&result.outputs).all(fits)
        };
        if foreseen.len() == results.len() && foreseen.iter().zip(results).all(|(f, r)| same(f, r)) {
            return Ok(());
        }
        Err(format!("the task {number} has given something else than what others were told that it would"))
    }
}

/// What the outputs of a task will be, as far as it is known before.
fn outlook(task: &Executable) -> Vec<Option<String>> {
    let is_foreseen = |o: &Argument| o.data_type != DIRECTORY && o.data_type != VALUE;
    let path = |o: &Argument| is_foreseen(o).then(|| o.variable.value.to_string());
    task.outputs().map(path).collect()
}

impl Weaver for Weave {
    fn begin(&mut self) -> Result<Vec<NewTask>, String> {
        self.plan()?;
        self.batch()
    }

    fn done(&mut self, task: u32, ending: &Ending) -> Result<Vec<NewTask>, String> {
        let (results, holders) = match TaskEnding::read(ending)? {
            TaskEnding::Done { results, holders } => (results, holders),
            TaskEnding::Failed(failure) => return Err(failure.message),
            TaskEnding::Lost(lost) => return Err(lost.message),
        };
        let is_first = self.gate.over(task);
        if !is_first && !self.gate.is_over(task) {
            return Err(format!("the task {task} is over, but was never given out"));
        }
        self.check(task, &results)?;
        self.catalogue.add(task, results.iter().flat_map(|r| &r.data), &holders);
        if !is_first {
            // What it had written was lost and has been made again.
            return Ok(Vec::new());
        }
        self.open -= 1;
        let outputs = results.into_iter().map(|r| r.outputs).collect();
        self.planner.chain_succeeded(u64::from(task) - 1, outputs);
        self.plan()?;
        self.batch()
    }

    fn wants_all(&self) -> bool {
        true
    }

    fn ending(&self) -> Ending {
        if !self.planner.is_finished() {
            let waiting = self.planner.waiting_actions(NAMED).join(", ");
            let why = format!("nothing is left to do, but these still wait for something: {waiting}");
            return Ending { good: false, matter: why.into_bytes().into() };
        }
        let results = self.planner.results();
        let paths: Vec<Name> = results.iter().flat_map(|(_, values)| values).map(Name::new).collect();
        let mut files = self.catalogue.reads(&paths.iter().collect::<Vec<_>>());
        for item in self.catalogue.below(&self.context.out) {
            match files.iter_mut().find(|f| f.supply.name == item.supply.name) {
                // All of it was to be stored.
                Some(known) => *known = item,
                None => files.push(item),
            }
        }
        let tasks = self.chains.len() as u32;
        Finished { run: self.context.run.0, tasks, results, files, stored: self.context.out.clone() }
            .to_ending()
    }
}
