//! Until when the files that variables name are needed: as long as some action may read them.
//!
//! Only what is certain counts. A variable that is read in an inner loop, in a condition, or that is a result is needed
//! until the end of the workflow.

use crate::program::{ActionTemplate, Body, Program, Source};

/// What is known of the variables of each body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifetimes(Vec<Vec<Lifetime>>);

/// How long the files of a variable are needed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetime {
    /// How often it is read by actions of its own body.
    pub(crate) reads: u32,
    /// It may be read elsewhere, too.
    pub(crate) is_open: bool,
    /// The loop that collects it, if one does: an action of the same body.
    pub(crate) collected_by: Option<u32>,
}

impl Lifetimes {
    /// How long the files of a variable of a body are needed, if that ends before the workflow does.
    pub(crate) fn of(&self, body: u32, slot: u32) -> Option<Lifetime> {
        self.0.get(body as usize)?.get(slot as usize).copied().filter(|l| !l.is_open)
    }

    fn read(&mut self, program: &Program, body: usize, source: &Source, by_task: bool) {
        let Source::Local { up, slot } = source else { return };
        let owner = (0..*up).try_fold(body, |at, _| program.bodies[at].parent());
        let Some(lifetime) = owner.and_then(|o| self.0[o].get_mut(*slot as usize)) else { return };
        lifetime.reads += 1;
        lifetime.is_open |= !by_task || *up > 0;
    }
}

impl Program {
    /// Who reads which variable.
    pub(crate) fn lifetimes(&self) -> Lifetimes {
        let empty = |b: &Body| vec![Lifetime::default(); b.locals.len()];
        let mut lifetimes = Lifetimes(self.bodies.iter().map(empty).collect());
        for (body, actions) in self.bodies.iter().map(|b| &b.actions).enumerate() {
            for action in actions {
                let when = match action {
                    ActionTemplate::Execute(t) => {
                        t.inputs.iter().for_each(|i| lifetimes.read(self, body, &i.source, true));
                        t.when.as_deref()
                    }
                    ActionTemplate::First(t) => {
                        t.inputs.iter().for_each(|s| lifetimes.read(self, body, s, false));
                        lifetimes.0[body][t.output as usize].is_open = true;
                        None
                    }
                    ActionTemplate::For(t) => {
                        t.inputs.iter().chain(t.inits()).for_each(|s| lifetimes.read(self, body, s, false));
                        let names = t.condition().into_iter().flat_map(|c| &c.names);
                        names.for_each(|(_, s)| lifetimes.read(self, t.body, s, false));
                        t.yield_to_input.iter().for_each(|s| lifetimes.read(self, t.body, s, false));
                        for source in &t.yields {
                            lifetimes.read(self, t.body, source, false);
                        }
                        t.when.as_deref()
                    }
                };
                let names = when.iter().flat_map(|w| &w.names);
                names.for_each(|(_, source)| lifetimes.read(self, body, source, false));
            }
        }
        for (_, source) in self.results() {
            lifetimes.read(self, 0, source, false);
        }
        // What a loop collects is named by other variables as well, unless it comes from a task in its body.
        for (body, actions) in self.bodies.iter().map(|b| &b.actions).enumerate() {
            for (index, action) in (0..).zip(actions) {
                let ActionTemplate::For(t) = action else { continue };
                for (number, slot) in t.outputs.iter().enumerate() {
                    let is_ours = t.collects()
                        && self.is_collected_once(t.body, &t.yields, number)
                        && t.yield_to_input.is_none();
                    let lifetime = &mut lifetimes.0[body][*slot as usize];
                    lifetime.collected_by = Some(index);
                    lifetime.is_open |= !is_ours;
                }
            }
        }
        lifetimes
    }

    /// Whether an output of a loop collects what tasks of its body have written, and no other output does.
    fn is_collected_once(&self, body: usize, yields: &[Source], number: usize) -> bool {
        let Some(Source::Local { up: 0, slot }) = yields.get(number) else { return false };
        let same = |s: &&Source| matches!(s, Source::Local { up: 0, slot: other } if other == slot);
        let by_task = self.bodies[body].actions.iter().any(|a| {
            matches!(a, ActionTemplate::Execute(t) if t.outputs.iter().any(|o| o.slot == *slot && !o.store))
        });
        by_task && yields.iter().filter(same).count() == 1
    }
}

#[cfg(test)]
mod tests {
    use crate::{ChainPolicy, Order, PlanOptions, Planner, Program};
    use catena_model::chain::ProcessChain;
    use catena_model::{LoadOptions, load_text};
    use std::path::Path;
    use std::sync::Arc;

    /// Executes a workflow chain by chain. Returns the tasks in their order, each with the files that nobody needed any
    /// more after it, by their last parts.
    fn executed(text: &str) -> Vec<(String, Vec<String>)> {
        let loaded = load_text(Path::new("w.yaml"), text, &LoadOptions::default());
        let workflow = loaded.expanded.as_ref().expect("it is a workflow");
        let program = Arc::new(Program::new(workflow, &loaded.library).unwrap());
        let (tmp, out) = ("/tmp".to_owned(), "/out".to_owned());
        let options = PlanOptions { tmp, out, policy: ChainPolicy::Single, order: Order::Fifo };
        let mut planner = Planner::new(program, options);
        planner.track_files();
        let mut done = Vec::new();
        while let Some(chain) = planner.next_chain().unwrap() {
            let number = planner.chain_count() - 1;
            let outputs = |c: &ProcessChain| {
                let of = |t: &catena_model::chain::Executable| {
                    t.outputs().map(|o| vec![o.variable.value.to_string()]).collect()
                };
                c.executables.iter().map(of).collect()
            };
            planner.chain_succeeded(number, outputs(&chain));
            let released = planner.take_released();
            let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
            let mut released: Vec<String> = released.iter().map(name).collect();
            released.sort();
            done.push((chain.executables[0].id.to_string(), released));
        }
        done
    }

    #[test]
    fn a_file_is_needed_until_its_last_reader_has_read_it() {
        let done = executed(
            "catena: 1\ninputs: {ns: {range: 3}}\nsteps:\n  make: {for: n in ns, run: \"x {n} > {out}\", out: \"{n}.txt\"}\n  sum: {run: \"cat {make.out} > {out}\", out: sum.txt}\n  one: {run: \"cat {sum.out} > {out}\", out: one.txt}\n  two: {run: \"cat {sum.out} {sum.out} > {out}\", out: two.txt}\n  end: {run: \"cat {one.out} {two.out} > {out}\", out: end.txt}\nresults: {end: \"{end.out}\"}\n",
        );
        let released = |task: &str| done.iter().find(|(t, _)| t == task).unwrap().1.clone();
        assert!(released("make$2").is_empty());
        assert_eq!(
            released("sum"),
            ["1.txt", "2.txt", "3.txt"],
            "the loop is over, and nobody else reads it"
        );
        let (one, two) = (released("one"), released("two"));
        assert_eq!([one, two].concat(), ["sum.txt"], "after the second of both, once");
        assert_eq!(released("end"), ["one.txt", "two.txt"], "but not what is a result");
    }

    #[test]
    fn what_may_be_read_elsewhere_stays() {
        let done = executed(
            "catena: 1\ninputs: {ns: {range: 2}}\nsteps:\n  base: {run: \"x > {out}\", out: base.txt}\n  look: {run: \"cat {base.out}\"}\n  each: {for: n in ns, run: \"cat {base.out} {n} > {out}\", out: \"{n}.txt\"}\nresults: {all: \"{each.out}\"}\n",
        );
        assert!(done.iter().all(|(_, released)| released.is_empty()), "{done:?}");
    }
}
