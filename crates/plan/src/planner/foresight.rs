//! Plans ahead of results: what a task will write is known before, unless it is the content of a directory.
//!
//! With foresight chains are made long before what they read is there, so it has to be said of each whom it waits for:
//! those that write what it reads, and those that must have ended before it.

use super::{NONE, Planner, State};
use crate::program::{ActionPlace, ActionTemplate, ConditionTemplate, Source};
use catena_model::Name;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

/// What is noted of chains, so that it can be said who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// The chain that writes to a path.
    writers: HashMap<Name, u64>,
    /// The chain of each task; of a skipped one those that it would have waited for.
    ends: HashMap<u32, Vec<u64>>,
    /// The same for tasks that were skipped in a loop.
    inside: HashMap<u32, Vec<u64>>,
    /// Whom each chain waits for.
    sources: Vec<Box<[u64]>>,
    /// Chains that have ended.
    ended: HashSet<u64>,
}

/// So many chains are looked at to find out whether one waits for another, also over others.
const SEARCH: usize = 256;

impl Planner {
    /// From now on it is noted which chains a chain waits for, and results may be [foreseen](Self::foresee). Nothing may
    /// have been planned yet.
    pub fn plan_ahead(&mut self) {
        self.origins = Some(Origins::default());
    }

    /// The chains that a chain waits for: they write what it reads, or must have ended before it. Their numbers are
    /// smaller than its own. Those that had ended when it was made count only if it reads what they have written.
    pub fn sources(&self, chain: u64) -> &[u64] {
        let sources = self.origins.as_ref().and_then(|o| o.sources.get(chain as usize));
        sources.map(|s| &s[..]).unwrap_or_default()
    }

    /// What comes of a chain that has not ended is known, as far as something is said: for each task the value of each of
    /// its outputs. Chains that wait for these, or for the end of the chain, can be made.
    pub fn foresee(&mut self, chain: u64, outputs: &[Vec<Option<String>>]) {
        let Some(tasks) = self.chains.get(&chain).cloned() else { return };
        for (task, outputs) in tasks.iter().zip(outputs) {
            for (var, value) in self.output_vars(*task).into_iter().zip(outputs) {
                if let Some(value) = value {
                    self.set_result(var, vec![value.clone().into()]);
                }
            }
        }
        for task in &tasks {
            let i = &mut self.instances[*task as usize];
            if i.state == State::Planned {
                i.state = State::Foreseen;
                self.tell_dependents(*task);
            }
        }
        self.settle();
    }

    /// Whether a task adds no chain to those that a chain waits for anyway. If it does, what comes before it in the chain
    /// would be late.
    pub(super) fn adds_no_wait(&self, task: u32, tasks: &[u32]) -> bool {
        let Some(origins) = &self.origins else { return true };
        let mut known = BTreeSet::new();
        for earlier in tasks {
            self.add_sources(*earlier, &mut known);
        }
        let mut wanted = BTreeSet::new();
        self.add_sources(task, &mut wanted);
        let is_open = |c: &u64| *c != self.chain_count && !origins.ended.contains(c);
        wanted.retain(is_open);
        known.retain(is_open);
        let mut open: Vec<u64> = known.iter().copied().collect();
        let mut seen = 0;
        while let Some(chain) = open.pop()
            && !wanted.is_subset(&known)
        {
            seen += 1;
            if seen > SEARCH {
                return false;
            }
            for source in self.sources(chain).iter().filter(|c| is_open(c)) {
                if known.insert(*source) {
                    open.push(*source);
                }
            }
        }
        wanted.is_subset(&known)
    }

    /// Notes of what the chain that is just made consists, and whom it waits for.
    pub(super) fn note_chain(&mut self, tasks: &[u32], written: impl Iterator<Item = Name>) {
        let chain = self.chain_count;
        if self.origins.is_none() {
            return;
        }
        let mut sources = BTreeSet::new();
        for task in tasks {
            self.add_sources(*task, &mut sources);
        }
        sources.remove(&chain);
        let Some(origins) = &mut self.origins else { return };
        origins.sources.push(sources.into_iter().collect());
        origins.writers.extend(written.map(|path| (path, chain)));
    }

    /// Notes in which chain a task is, so that those which follow in the same chain need not wait for it.
    pub(super) fn note_task(&mut self, task: u32) {
        let chain = self.chain_count;
        if let Some(origins) = &mut self.origins {
            origins.ends.insert(task, vec![chain]);
        }
    }

    /// Notes that a task is skipped: who depends on it waits for what it would have waited for.
    pub(super) fn note_skipped(&mut self, task: u32) {
        if self.origins.is_none() {
            return;
        }
        let mut sources = BTreeSet::new();
        self.add_sources(task, &mut sources);
        let loops = self.loops_around(task);
        let Some(origins) = &mut self.origins else { return };
        sources.retain(|c| !origins.ended.contains(c));
        for l in loops {
            origins.inside.entry(l).or_default().extend(&sources);
        }
        origins.ends.insert(task, sources.into_iter().collect());
    }

    /// What is noted of the last use of a place does not count for the next.
    pub(super) fn note_place_taken(&mut self, instance: u32, loop_index: u32) {
        if let Some(origins) = &mut self.origins {
            origins.ends.remove(&instance);
            origins.inside.remove(&loop_index);
        }
    }

    pub(super) fn note_ended(&mut self, chain: u64) {
        if let Some(origins) = &mut self.origins {
            origins.ended.insert(chain);
        }
    }

    fn loops_around(&self, instance: u32) -> Vec<u32> {
        let mut loops = Vec::new();
        let mut at = instance;
        loop {
            let in_loop = self.scopes[self.instances[at as usize].scope as usize].in_loop;
            if in_loop == NONE {
                return loops;
            }
            loops.push(in_loop);
            at = self.loops[in_loop as usize].instance;
        }
    }

    /// The chains that a task waits for by itself and because of the loops around it.
    fn add_sources(&self, task: u32, out: &mut BTreeSet<u64>) {
        let own = std::iter::once(task);
        let around = self.loops_around(task).into_iter().map(|l| self.loops[l as usize].instance);
        for instance in own.chain(around) {
            self.add_own_sources(instance, out);
        }
    }

    fn add_own_sources(&self, instance: u32, out: &mut BTreeSet<u64>) {
        let scope = self.instances[instance as usize].scope;
        let body = self.scopes[scope as usize].body as usize;
        let action = self.instances[instance as usize].action as usize;
        match &self.program.bodies[body].actions[action] {
            ActionTemplate::Execute(t) => {
                for input in &t.inputs {
                    self.add_writers(&input.source, scope, out);
                }
                self.add_conditions(t.when.as_deref(), scope, out);
                self.add_awaited(&t.waits_for, scope, out);
            }
            ActionTemplate::First(t) => self.add_awaited(&t.waits_for, scope, out),
            // Of its list a loop only has to know what is in it.
            ActionTemplate::For(t) => {
                self.add_conditions(t.when.as_deref(), scope, out);
                self.add_awaited(&t.waits_for, scope, out);
            }
        }
    }

    fn add_conditions(&self, when: Option<&ConditionTemplate>, scope: u32, out: &mut BTreeSet<u64>) {
        for (_, source) in when.iter().flat_map(|w| &w.names) {
            self.add_writers(source, scope, out);
        }
    }

    /// The chains that write what a value names.
    fn add_writers(&self, source: &Source, scope: u32, out: &mut BTreeSet<u64>) {
        let Some(origins) = &self.origins else { return };
        if origins.writers.is_empty() || matches!(source, Source::Constant(_)) {
            return;
        }
        for text in self.texts(source, scope).unwrap_or_default() {
            let mut above = Path::new(&text).ancestors().filter_map(Path::to_str);
            out.extend(above.find_map(|path| origins.writers.get(path)));
        }
    }

    /// The chains whose end is waited for, if these have not ended.
    fn add_awaited(&self, places: &[ActionPlace], scope: u32, out: &mut BTreeSet<u64>) {
        let Some(origins) = &self.origins else { return };
        let is_open = |c: &&u64| !origins.ended.contains(c);
        for place in places {
            let owner = self.scope_up(scope, place.up);
            let target = self.scopes[owner as usize].first_instance + place.index;
            out.extend(origins.ends.get(&target).into_iter().flatten().filter(is_open));
            let l = self.instances[target as usize].loop_index;
            if l != NONE {
                // All that was executed in it has ended. It may have been skipped, or have had nothing to do.
                out.extend(origins.inside.get(&l).into_iter().flatten().filter(is_open));
                self.add_own_sources(target, out);
            }
        }
    }
}
