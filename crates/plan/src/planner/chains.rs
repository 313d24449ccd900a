//! How chains are cut out of what can run.

use super::{Edge, NONE, PlanError, Planner, ROOT_SEARCH_LIMIT, State, Waiter};
use crate::planner::ChainPolicy;
use crate::program::{ActionPlace, ExecuteTemplate, OutputTemplate, Source};
use crate::value::{Slot, text_values};
use catena_model::chain::{Argument, ArgumentVariable, Executable, ProcessChain};
use catena_model::{Direction, Name, Resources, ServiceParameter, Value, value_to_text};
use smol_str::format_smolstr;
use std::collections::{HashMap, HashSet};

impl Planner {
    /// Builds the chain that starts at a ready action.
    pub(super) fn build_chain(&mut self, start: u32) -> Result<ProcessChain, PlanError> {
        let mut chain = Builder::default();
        let mut next = Some(start);
        while let Some(instance) = next {
            let executable = self.executable(instance, &mut chain)?;
            chain.executables.push(executable);
            chain.tasks.push(instance);
            self.note_task(instance);
            self.instances[instance as usize].state = State::Planned;
            self.counts.waiting -= 1;
            self.counts.planned += 1;
            next = match self.options.policy {
                ChainPolicy::Single => None,
                ChainPolicy::Split | ChainPolicy::Union => self.successor(instance, &chain),
            };
        }
        let written = chain.executables.iter().flat_map(Executable::outputs);
        self.note_chain(&chain.tasks, written.map(|o| o.variable.value.clone()));
        self.chains.insert(self.chain_count, chain.tasks.into_boxed_slice());
        self.chain_count += 1;
        let mut required_capabilities = chain.capabilities;
        required_capabilities.sort_unstable();
        required_capabilities.dedup();
        Ok(ProcessChain {
            id: self.new_id(),
            executables: chain.executables,
            required_capabilities,
            priority: self.program.priority,
            retries: self.program.chain_retries,
            resources: chain.resources.unwrap_or_default(),
            failure_is_result: false,
            ahead: 0,
            replicas: chain.replicas,
            exclusive: chain.exclusive,
        })
    }

    fn new_id(&mut self) -> Name {
        let id = format_smolstr!("{}", self.next_id);
        self.next_id += 1;
        id
    }

    /// Whether an action must not run: its condition fails, it may be tried zero times, or what it needs
    /// comes from an action that was skipped.
    pub(super) fn skips(&self, instance: u32) -> Result<bool, PlanError> {
        let scope = self.instances[instance as usize].scope;
        let program = self.program.clone();
        let Some(template) = Self::task_template(&program, &self.scopes, &self.instances[instance as usize])
        else {
            return Ok(false);
        };
        let from_skipped = template.inputs.iter().any(|i| {
            self.var_of(&i.source, scope).is_some_and(|v| matches!(self.vars[v as usize].slot, Slot::Skipped))
        });
        let never = template.options.as_ref().and_then(|o| o.retries).is_some_and(|r| r.max_attempts == 0);
        let error = |message| PlanError { action: self.instance_name(instance), message };
        Ok(from_skipped || never || !self.holds(template.when.as_deref(), scope).map_err(error)?)
    }

    pub(super) fn skip(&mut self, instance: u32) {
        self.counts.waiting -= 1;
        self.counts.skipped += 1;
        self.instances[instance as usize].state = State::Planned;
        self.note_skipped(instance);
        for var in self.output_vars(instance) {
            self.set(var, Slot::Skipped);
        }
        self.executed(instance);
    }

    /// The action a chain goes on with after `instance`: the only one that comes next, or the one all
    /// others that come next come after.
    fn successor(&self, instance: u32, chain: &Builder) -> Option<u32> {
        let successors = self.successors(instance);
        // Whoever could run now is not a descendant of another successor, so there can be only one.
        let mut candidates = successors.iter().copied().filter(|s| self.can_follow(*s, chain));
        let root = candidates.next()?;
        if candidates.next().is_some() || (successors.len() > 1 && !self.is_tree(root, &successors)) {
            return None;
        }
        (self.fits(root, chain)
            && self.adds_no_wait(root, &chain.tasks)
            && !matches!(self.skips(root), Ok(true) | Err(_)))
        .then_some(root)
    }

    /// Tasks that use an output of this one or depend on it.
    fn successors(&self, instance: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let vars = self.output_vars(instance);
        let heads = vars.iter().map(|v| self.vars[*v as usize].waiters);
        for head in heads.chain([self.instances[instance as usize].dependents]) {
            let mut edge = head;
            while edge != NONE {
                let Edge { to, next } = self.edges[edge as usize];
                edge = next;
                if let Waiter::Task(task) = to
                    && self.instances[task as usize].loop_index == NONE
                    && !out.contains(&task)
                {
                    out.push(task);
                    if out.len() > ROOT_SEARCH_LIMIT {
                        return out;
                    }
                }
            }
        }
        out
    }

    /// Whether everything a task waits for is known or produced by the chain.
    fn can_follow(&self, task: u32, chain: &Builder) -> bool {
        let instance = &self.instances[task as usize];
        let Some(template) = Self::task_template(&self.program, &self.scopes, instance) else {
            return false;
        };
        let scope = instance.scope;
        let known = |source: &Source| match self.var_of(source, scope) {
            None => true,
            Some(var) => self.vars[var as usize].slot.is_set() || chain.values.contains_key(&var),
        };
        let executed = |place: &ActionPlace| {
            let owner = self.scope_up(scope, place.up);
            let target = self.scopes[owner as usize].first_instance + place.index;
            self.instances[target as usize].state.is_past() || chain.tasks.contains(&target)
        };
        // A condition decides before the chain is built, so it must not depend on the chain.
        let decided = template.when.iter().flat_map(|w| &w.names).all(|(_, s)| self.is_known(s, scope));
        decided && template.inputs.iter().all(|i| known(&i.source)) && template.waits_for.iter().all(executed)
    }

    /// Whether every action that comes after the successors comes after `root`, by exactly one way.
    fn is_tree(&self, root: u32, successors: &[u32]) -> bool {
        let mut entries: HashMap<u32, u32> = HashMap::new();
        let mut visited = HashSet::new();
        let mut stack: Vec<u32> = successors.to_vec();
        while let Some(task) = stack.pop() {
            if !visited.insert(task) {
                continue;
            }
            if visited.len() > ROOT_SEARCH_LIMIT {
                return false;
            }
            for next in self.successors(task) {
                let n = entries.entry(next).or_insert(0);
                *n += 1;
                if *n > 1 {
                    return false;
                }
                stack.push(next);
            }
        }
        !entries.contains_key(&root) && successors.iter().all(|s| *s == root || entries.contains_key(s))
    }

    /// Whether a task may be in the same chain: same needs, and no list that is known only after the run.
    fn fits(&self, task: u32, chain: &Builder) -> bool {
        let instance = &self.instances[task as usize];
        let Some(template) = Self::task_template(&self.program, &self.scopes, instance) else {
            return false;
        };
        let service = &self.program.services[template.service];
        if self.options.policy == ChainPolicy::Split
            && (service.capabilities != chain.capabilities
                || Some(&*template.resources) != chain.resources.as_ref())
        {
            return false;
        }
        // A directory is a list of files to everyone but those who ask for a directory.
        template.inputs.iter().all(|input| {
            let parameter = &service.service.parameters[input.parameter];
            let var = self.var_of(&input.source, instance.scope);
            parameter.is_directory() || var.is_none_or(|v| !chain.directories.contains(&v))
        })
    }

    fn executable(&mut self, instance: u32, chain: &mut Builder) -> Result<Executable, PlanError> {
        let program = self.program.clone();
        let scope = self.instances[instance as usize].scope;
        let id = self.instance_name(instance);
        let Some(template) = Self::task_template(&program, &self.scopes, &self.instances[instance as usize])
        else {
            return Err(PlanError { action: id, message: "a for-each action cannot be executed".to_owned() });
        };
        let planned = &program.services[template.service];
        let service = &planned.service;
        let mut arguments = Vec::with_capacity(service.parameters.len());
        for (index, parameter) in service.parameters.iter().enumerate() {
            let before = arguments.len();
            match parameter.direction {
                Direction::Output => {
                    for output in template.outputs.iter().filter(|o| o.parameter == index) {
                        let value = self.output_path(output, parameter, template, scope, chain, &id)?;
                        let var = self.scopes[scope as usize].first_var + output.slot;
                        if !output.value {
                            chain.values.insert(var, value.clone());
                        }
                        if output.directory {
                            chain.directories.push(var);
                            self.directories.insert(var, value.clone());
                        }
                        arguments.push(argument(parameter, self.name_in(&output.var, scope), value));
                    }
                }
                Direction::Input => {
                    for input in template.inputs.iter().filter(|i| i.parameter == index) {
                        let name = self.source_name(&input.source, &input.var, scope);
                        let values = self.input_values(&input.source, parameter, scope, chain);
                        arguments.extend(values.into_iter().map(|v| argument(parameter, name.clone(), v)));
                    }
                    let given = template.inputs.iter().any(|i| i.parameter == index);
                    let once = parameter.cardinality.min == 1 && parameter.cardinality.max == 1;
                    if !given
                        && once
                        && let Some(default) = &parameter.default
                    {
                        let name = self.new_id();
                        arguments.push(argument(parameter, name, Name::new(value_to_text(default))));
                    }
                }
            }
            let count = arguments.len() - before;
            if !parameter.cardinality.allows(count) {
                let message = format!(
                    "the {} parameter `{}` is given {count} times, but its cardinality is {}",
                    parameter.direction, parameter.id, parameter.cardinality
                );
                return Err(PlanError { action: id, message });
            }
        }
        let runtime_args = service.runtime_args.iter().map(|a| Argument {
            id: self.new_id(),
            label: a.label.clone(),
            variable: ArgumentVariable {
                id: a.id.clone(),
                value: Name::new(a.value.as_deref().unwrap_or("")),
            },
            direction: Direction::Input,
            data_type: a.data_type.clone(),
        });
        let runtime_args = runtime_args.collect();
        chain.capabilities.extend(
            planned
                .capabilities
                .iter()
                .filter(|c| !chain.capabilities.contains(c))
                .cloned()
                .collect::<Vec<_>>(),
        );
        let replicas = template.options.as_ref().and_then(|o| o.replicas);
        chain.replicas = chain.replicas.max(replicas.filter(|n| *n > 1).unwrap_or(0));
        chain.exclusive |= service.exclusive || template.options.as_ref().is_some_and(|o| o.exclusive);
        chain.resources = Some(match chain.resources.take() {
            None => (*template.resources).clone(),
            Some(r) => r.max(&template.resources),
        });
        let options = template.options.as_deref();
        let mut env = service.env.clone();
        env.extend(options.map(|o| o.env.clone()).unwrap_or_default());
        Ok(Executable {
            id,
            path: service.path.clone(),
            service_id: service.id.clone(),
            arguments,
            runtime: service.runtime.clone(),
            runtime_args,
            retries: options.and_then(|o| o.retries).or(service.retries),
            max_inactivity: options.and_then(|o| o.max_inactivity).or(service.max_inactivity),
            max_runtime: options.and_then(|o| o.max_runtime).or(service.max_runtime),
            deadline: options.and_then(|o| o.deadline).or(service.deadline),
            script: planned.script.clone(),
            env,
            cache: options.and_then(|o| o.cache).unwrap_or(service.cache),
            package: service.package.clone(),
            surroundings: None,
        })
    }

    /// The variable's name with the numbers of the loops it belongs to.
    fn source_name(&self, source: &Source, var: &Name, scope: u32) -> Name {
        match source {
            Source::Constant(_) => var.clone(),
            Source::Local { up, .. } | Source::Enumerator { up, .. } => {
                self.name_in(var, self.scope_up(scope, *up))
            }
        }
    }

    fn input_values(
        &self,
        source: &Source,
        parameter: &ServiceParameter,
        scope: u32,
        chain: &Builder,
    ) -> Vec<Name> {
        if let Some(var) = self.var_of(source, scope) {
            return match (&self.vars[var as usize].slot, chain.values.get(&var)) {
                (Slot::Unset | Slot::Growing { .. }, Some(value)) => vec![value.clone()],
                (slot, _) => slot.to_arguments(parameter.is_directory()),
            };
        }
        let value = match source {
            Source::Enumerator { up, index } => self.enumerator(scope, *up, *index),
            Source::Constant(value) => value,
            Source::Local { .. } => return Vec::new(),
        };
        match value {
            Value::String(s) => vec![Name::new(s)],
            other => text_values(other).into_iter().map(Name::new).collect(),
        }
    }

    fn output_path(
        &mut self,
        output: &OutputTemplate,
        parameter: &ServiceParameter,
        template: &ExecuteTemplate,
        scope: u32,
        chain: &Builder,
        action: &Name,
    ) -> Result<Name, PlanError> {
        let base = if output.store { &self.options.out } else { &self.options.tmp };
        let start = match output.prefix.as_deref() {
            Some(prefix) if prefix.starts_with('/') => prefix.to_owned(),
            Some(prefix) => format!("{base}/{prefix}"),
            None => format!("{base}/"),
        };
        let id = self.new_id();
        let Some(name) = &output.name else {
            let suffix = parameter.file_suffix.as_deref().unwrap_or("");
            return Ok(Name::new(normalize(&format!("{start}{id}{suffix}"))));
        };
        let service = self.program.services[template.service].service.clone();
        let values: HashMap<&str, Vec<Name>> = template
            .inputs
            .iter()
            .map(|i| {
                let p = &service.parameters[i.parameter];
                (p.id.as_str(), self.input_values(&i.source, p, scope, chain))
            })
            .collect();
        let name = name
            .render_plain(|n| values.get(n).map_or_else(Vec::new, |v| v.iter().map(Name::as_str).collect()));
        let trimmed = name.trim_end_matches('/');
        if trimmed.is_empty()
            || trimmed.starts_with('/')
            || trimmed.contains('\0')
            || trimmed.split('/').any(|p| p == "..")
        {
            let message =
                format!("the output `{}` would be called `{name}`, which leaves its directory", parameter.id);
            return Err(PlanError { action: action.clone(), message });
        }
        Ok(Name::new(normalize(&format!("{start}{id}/{trimmed}"))))
    }
}

/// A chain while it grows.
#[derive(Default)]
struct Builder {
    executables: Vec<Executable>,
    tasks: Vec<u32>,
    capabilities: Vec<Name>,
    resources: Option<Resources>,
    /// The most that any of its tasks asks for.
    replicas: u32,
    /// One of them must not be started twice.
    exclusive: bool,
    /// What its tasks will produce, by variable.
    values: HashMap<u32, Name>,
    directories: Vec<u32>,
}

fn argument(parameter: &ServiceParameter, variable: Name, value: Name) -> Argument {
    Argument {
        id: parameter.id.clone(),
        label: parameter.label.clone(),
        variable: ArgumentVariable { id: variable, value },
        direction: parameter.direction,
        data_type: parameter.data_type.clone(),
    }
}

/// A path without `//`, `.` and `..`.
fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}
