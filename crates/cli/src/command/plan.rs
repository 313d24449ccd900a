//! `catena plan`

use super::{EXIT_FAILED, Outcome, load_valid, print};
use crate::arguments::{Chains, PlanArgs};
use crate::project::read_yaml;
use catena_model::chain::ProcessChain;
use catena_model::{Node, Value};
use catena_plan::{ChainPolicy, PlanError, PlanOptions, Planner, Program};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Values of variables and names of actions that were executed.
#[derive(Clone, Default)]
struct Step {
    results: Vec<(String, Vec<Value>)>,
    executed: Vec<String>,
}

pub(crate) fn plan(args: &PlanArgs) -> Outcome {
    let loaded = match load_valid(&args.source) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let workflow = loaded.expanded.as_ref().ok_or("only workflows can be planned")?;
    let program = Arc::new(Program::new(workflow, &loaded.library).map_err(|e| e.to_string())?);
    let policy = match args.chains {
        Chains::Split => ChainPolicy::Split,
        Chains::Union => ChainPolicy::Union,
        Chains::Single => ChainPolicy::Single,
    };
    let order = args.order.into();
    let options = PlanOptions { tmp: args.tmp.clone(), out: args.out.clone(), policy, order };
    let steps = args.results.as_deref().map_or(Ok(Vec::new()), read_steps)?;

    let mut session = Session::new(program, options, args.reload);
    let mut planned = vec![session.step(&Step::default())];
    for step in &steps {
        if planned.last().is_some_and(Result::is_err) {
            break;
        }
        let chains = if args.one_by_one && !step.results.is_empty() {
            // Everything executed is said with each variable, as a controller that polls would.
            let calls = step
                .results
                .iter()
                .map(|r| Step { results: vec![r.clone()], executed: step.executed.clone() });
            calls.map(|call| session.step(&call)).collect::<Result<Vec<_>, _>>().map(|lists| lists.concat())
        } else {
            session.step(step)
        };
        planned.push(chains);
    }
    let finished = session.planner.is_finished();
    let error = planned.iter().find_map(|s| s.as_ref().err()).map(PlanError::to_string);
    let lists: Vec<&Vec<ProcessChain>> = planned.iter().filter_map(|s| s.as_ref().ok()).collect();
    if args.json {
        let steps: Vec<Value> = lists.iter().map(|chains| serde_json::json!({"chains": chains})).collect();
        let mut json = serde_json::json!({"steps": steps, "finished": finished});
        if let Some(error) = &error {
            json["error"] = serde_json::json!(error);
        }
        print(&format!("{json:#}\n"));
    } else {
        show(&lists, finished);
    }
    if let Some(error) = error {
        eprintln!("error: {error}");
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(steps: &[&Vec<ProcessChain>], finished: bool) {
    for (i, chains) in steps.iter().enumerate() {
        print(&format!("step {i}: {} chains\n", chains.len()));
        for chain in *chains {
            let tasks: Vec<&str> = chain.executables.iter().map(|e| e.id.as_str()).collect();
            let needs = if chain.required_capabilities.is_empty() {
                String::new()
            } else {
                format!("  {{{}}}", chain.required_capabilities.join(", "))
            };
            print(&format!("  {}: {}{needs}\n", chain.id, tasks.join(" -> ")));
        }
    }
    print(if finished { "complete\n" } else { "more follows when results are known (--results)\n" });
}

/// A planner whose whole history is known, so that it can be saved and loaded.
struct Session {
    program: Arc<Program>,
    options: PlanOptions,
    reload: bool,
    planner: Planner,
    /// What was fed, and how many chains there were before.
    journal: Vec<(u64, Step)>,
}

impl Session {
    fn new(program: Arc<Program>, options: PlanOptions, reload: bool) -> Self {
        let planner = Planner::new(program.clone(), options.clone());
        Self { program, options, reload, planner, journal: Vec::new() }
    }

    fn step(&mut self, step: &Step) -> Result<Vec<ProcessChain>, PlanError> {
        if self.reload {
            self.planner = self.load()?;
        }
        self.journal.push((self.planner.chain_count(), step.clone()));
        feed(&mut self.planner, step);
        let mut chains = Vec::new();
        while let Some(chain) = self.planner.next_chain()? {
            chains.push(chain);
        }
        Ok(chains)
    }

    /// A planner is saved as what it was fed; loading it means feeding it again.
    fn load(&self) -> Result<Planner, PlanError> {
        let mut planner = Planner::new(self.program.clone(), self.options.clone());
        for (after, step) in &self.journal {
            while planner.chain_count() < *after {
                planner.next_chain()?;
            }
            feed(&mut planner, step);
        }
        while planner.chain_count() < self.planner.chain_count() {
            planner.next_chain()?;
        }
        Ok(planner)
    }
}

fn feed(planner: &mut Planner, step: &Step) {
    let results = step.results.iter().map(|(name, values)| (name.as_str(), values.clone()));
    planner.feed(results, step.executed.iter().map(String::as_str));
}

fn read_steps(path: &Path) -> Result<Vec<Step>, String> {
    let nodes = read_yaml(path)?;
    let wrong =
        |n: &Node, what: &str| format!("{}:{}:{}: {what}", path.display(), n.span.line, n.span.column);
    let Some(root) = nodes.first() else {
        return Ok(Vec::new());
    };
    let steps = root.as_seq().ok_or_else(|| wrong(root, "expected a list of steps"))?;
    let mut out = Vec::new();
    for step in steps {
        let mut results = Vec::new();
        for (name, values) in step.get("results").and_then(Node::as_map).unwrap_or_default() {
            let name = name.as_str().ok_or_else(|| wrong(name, "expected the name of a variable"))?;
            let items = values.as_seq().unwrap_or(std::slice::from_ref(values));
            results.push((name.to_owned(), items.iter().map(Node::to_value).collect()));
        }
        let executed = step.get("executedExecutableIds").and_then(Node::as_seq).unwrap_or_default();
        let executed = executed.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
        out.push(Step { results, executed });
    }
    Ok(out)
}
