//! A workflow prepared for planning: names are resolved to places once, before any task exists.
//!
//! The actions of a workflow and of each for-each action form a *body*. A body is instantiated once per
//! iteration, in a *scope*; a place is "so many scopes up, then this slot".

use crate::graph::Dag;
use crate::planner::Order;
use crate::prio::{auto_order, prio_order};
use catena_model::{
    Action, Condition, DIRECTORY, Direction, Execute, ExecuteOptions, First, ForEach, Gather, InputSource,
    Library, Name, Reference, Resources, RetryPolicy, Service, Template, VALUE, Value, Workflow,
};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// A workflow prepared for planning.
#[derive(Debug)]
pub struct Program {
    pub(crate) bodies: Vec<Body>,
    pub(crate) services: Vec<PlannedService>,
    pub(crate) priority: i32,
    pub(crate) chain_retries: Option<RetryPolicy>,
    results: Vec<(Name, Source)>,
}

/// A service with what the planner derives from it once.
#[derive(Debug)]
pub(crate) struct PlannedService {
    pub(crate) service: Arc<Service>,
    pub(crate) script: Option<Name>,
    /// Sorted and without repetition, so that sets compare.
    pub(crate) capabilities: Vec<Name>,
}

#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) actions: Vec<ActionTemplate>,
    /// Variables that actions of this body produce.
    pub(crate) locals: Vec<Name>,
    pub(crate) enumerators: Vec<Name>,
    /// The body around this one, and the index in it of the for-each action this one belongs to.
    parent: Option<(usize, u32)>,
}

impl Body {
    /// The body around this one.
    pub(crate) fn parent(&self) -> Option<usize> {
        self.parent.map(|(body, _)| body)
    }
}

#[derive(Debug)]
pub(crate) enum ActionTemplate {
    Execute(ExecuteTemplate),
    For(ForTemplate),
    First(FirstTemplate),
}

#[derive(Debug)]
pub(crate) struct ExecuteTemplate {
    pub(crate) id: Name,
    pub(crate) service: usize,
    pub(crate) inputs: Vec<InputTemplate>,
    pub(crate) outputs: Vec<OutputTemplate>,
    pub(crate) waits_for: Vec<ActionPlace>,
    pub(crate) options: Option<Box<ExecuteOptions>>,
    pub(crate) when: Option<Box<ConditionTemplate>>,
    pub(crate) resources: Arc<Resources>,
}

#[derive(Debug)]
pub(crate) struct InputTemplate {
    /// Index of the parameter in the service.
    pub(crate) parameter: usize,
    pub(crate) source: Source,
    /// The variable's name without iteration numbers.
    pub(crate) var: Name,
}

#[derive(Debug)]
pub(crate) struct OutputTemplate {
    pub(crate) parameter: usize,
    pub(crate) slot: u32,
    pub(crate) var: Name,
    pub(crate) prefix: Option<Box<str>>,
    pub(crate) store: bool,
    pub(crate) name: Option<Arc<Template>>,
    pub(crate) directory: bool,
    /// What is in the file counts, so that nothing is known of it before the task has ended.
    pub(crate) value: bool,
}

#[derive(Debug)]
pub(crate) struct ForTemplate {
    pub(crate) id: Name,
    pub(crate) body: usize,
    /// The lists, one per enumerator of the body.
    pub(crate) inputs: Vec<Source>,
    pub(crate) outputs: Vec<u32>,
    /// What each output collects, seen from inside the body.
    pub(crate) yields: Vec<Source>,
    pub(crate) yield_to_input: Option<Source>,
    pub(crate) course: CourseTemplate,
    pub(crate) waits_for: Vec<ActionPlace>,
    pub(crate) when: Option<Box<ConditionTemplate>>,
}

/// How the iterations of a loop hang together, see [`Gather`].
#[derive(Debug)]
pub(crate) enum CourseTemplate {
    /// Not at all. A list that is yielded is one element, or is taken apart.
    Each {
        nested: bool,
    },
    /// Each gets what the one before it yields. The condition is seen from inside the body.
    Carry {
        inits: Vec<Source>,
        condition: Option<Box<ConditionTemplate>>,
    },
    Pairs,
}

impl ForTemplate {
    /// What the first iteration gets from outside, besides elements.
    pub(crate) fn inits(&self) -> &[Source] {
        if let CourseTemplate::Carry { inits, .. } = &self.course { inits } else { &[] }
    }

    /// The condition under which the next iteration begins.
    pub(crate) fn condition(&self) -> Option<&ConditionTemplate> {
        if let CourseTemplate::Carry { condition, .. } = &self.course { condition.as_deref() } else { None }
    }

    /// What decides besides elements and what is handed on whether the next iteration begins.
    pub(crate) fn deciding(&self) -> impl Iterator<Item = Source> {
        self.condition().into_iter().flat_map(|c| &c.names).filter_map(|(_, s)| s.outside())
    }

    /// Whether what iterations yield is collected, and not handed from one to another.
    pub(crate) fn collects(&self) -> bool {
        matches!(self.course, CourseTemplate::Each { .. })
    }
}

#[derive(Debug)]
pub(crate) struct FirstTemplate {
    pub(crate) id: Name,
    pub(crate) inputs: Vec<Source>,
    pub(crate) output: u32,
    pub(crate) waits_for: Vec<ActionPlace>,
}

#[derive(Debug)]
pub(crate) struct ConditionTemplate {
    pub(crate) condition: Condition,
    pub(crate) names: Vec<(Name, Source)>,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Constant(Arc<Value>),
    /// A variable: scopes up, then the slot.
    Local {
        up: u32,
        slot: u32,
    },
    /// A loop variable: scopes up, then which of the loop's enumerators.
    Enumerator {
        up: u32,
        index: u32,
    },
}

impl Source {
    /// The same seen from outside a loop, unless it belongs to the loop.
    pub(crate) fn outside(&self) -> Option<Self> {
        match self {
            Self::Constant(value) => Some(Self::Constant(value.clone())),
            Self::Local { up, slot } => Some(Self::Local { up: up.checked_sub(1)?, slot: *slot }),
            Self::Enumerator { up, index } => {
                Some(Self::Enumerator { up: up.checked_sub(1)?, index: *index })
            }
        }
    }
}

/// An action: scopes up, then its index in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActionPlace {
    pub(crate) up: u32,
    pub(crate) index: u32,
}

/// What an action needs of another.
enum Need {
    Variable(u32),
    Action(u32),
}

/// Why a workflow cannot be planned. Validation reports all of these earlier and with their place.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProgramError {
    /// A service is missing.
    #[error("the action `{action}` runs the service `{service}`, which does not exist")]
    UnknownService {
        /// The action.
        action: Name,
        /// The service.
        service: Name,
    },
    /// A parameter is missing.
    #[error("the action `{action}` gives the parameter `{parameter}`, which its service does not have")]
    UnknownParameter {
        /// The action.
        action: Name,
        /// The parameter.
        parameter: Name,
    },
    /// An action is missing.
    #[error("the action `{action}` depends on `{target}`, which does not exist")]
    UnknownDependency {
        /// The action.
        action: Name,
        /// The missing action.
        target: Name,
    },
    /// An include action is left.
    #[error("the include action `{0}` was not expanded")]
    Include(Name),
}

impl Program {
    /// Prepares a workflow without include actions.
    pub fn new(workflow: &Workflow, library: &Library) -> Result<Self, ProgramError> {
        let mut compiler = Compiler {
            library,
            bodies: vec![Body::default()],
            services: Vec::new(),
            service_index: HashMap::new(),
            slots: HashMap::new(),
            enumerators: HashMap::new(),
            actions: HashMap::new(),
            inner: HashMap::new(),
            constants: HashMap::new(),
            resources: Vec::new(),
        };
        for var in &workflow.vars {
            if let Some(value) = &var.value {
                compiler.constants.insert(&var.id, Arc::new(value.clone()));
            }
        }
        compiler.declare(&workflow.actions, 0);
        compiler.body(&workflow.actions, 0)?;
        let results = workflow.results.iter().map(|r| {
            let source = compiler.source(&r.var, 0);
            (r.name.clone(), source)
        });
        let results = results.collect();
        Ok(Self {
            bodies: compiler.bodies,
            services: compiler.services,
            priority: workflow.priority,
            chain_retries: workflow.chain_retries,
            results,
        })
    }

    /// For each action of the workflow its place in an order. Nothing if they come as they can.
    pub(crate) fn places(&self, order: Order) -> Vec<u32> {
        let dag = match order {
            Order::Fifo => return Vec::new(),
            Order::Prio | Order::Auto => self.dag(0),
        };
        let jobs = if order == Order::Prio { prio_order(&dag) } else { auto_order(&dag) };
        let mut places = vec![0; jobs.len()];
        for (place, job) in (0..).zip(jobs) {
            places[job as usize] = place;
        }
        places
    }

    /// Which action of a body waits for which. A loop is one action.
    pub(crate) fn dag(&self, body: usize) -> Dag {
        let actions = &self.bodies[body].actions;
        let mut producers = vec![u32::MAX; self.bodies[body].locals.len()];
        for (number, action) in (0..).zip(actions) {
            let outputs: Vec<u32> = match action {
                ActionTemplate::Execute(t) => t.outputs.iter().map(|o| o.slot).collect(),
                ActionTemplate::For(t) => t.outputs.clone(),
                ActionTemplate::First(t) => vec![t.output],
            };
            for slot in outputs {
                producers[slot as usize] = number;
            }
        }
        let mut arcs = Vec::new();
        for (number, action) in (0..).zip(actions) {
            self.needs(action, 0, &mut |need| {
                let from = match need {
                    Need::Variable(slot) => producers[slot as usize],
                    Need::Action(index) => index,
                };
                if from != u32::MAX && from != number {
                    arcs.push((from, number));
                }
            });
        }
        // What can be planned has no cycle.
        Dag::new(actions.len(), &arcs).unwrap_or_default()
    }

    /// What an action so many scopes down needs of the scope above all these.
    fn needs(&self, action: &ActionTemplate, depth: u32, say: &mut dyn FnMut(Need)) {
        let source = |source: &Source, depth: u32, say: &mut dyn FnMut(Need)| {
            if let Source::Local { up, slot } = source
                && *up == depth
            {
                say(Need::Variable(*slot));
            }
        };
        let (waits_for, when): (_, Option<&ConditionTemplate>) = match action {
            ActionTemplate::Execute(t) => {
                t.inputs.iter().for_each(|i| source(&i.source, depth, say));
                (&t.waits_for, t.when.as_deref())
            }
            ActionTemplate::First(t) => {
                t.inputs.iter().for_each(|s| source(s, depth, say));
                (&t.waits_for, None)
            }
            ActionTemplate::For(t) => {
                t.inputs.iter().chain(t.inits()).for_each(|s| source(s, depth, say));
                let names = t.condition().into_iter().flat_map(|c| &c.names);
                names.for_each(|(_, s)| source(s, depth + 1, say));
                t.yields.iter().chain(&t.yield_to_input).for_each(|s| source(s, depth + 1, say));
                for inner in &self.bodies[t.body].actions {
                    self.needs(inner, depth + 1, say);
                }
                (&t.waits_for, t.when.as_deref())
            }
        };
        when.iter().flat_map(|w| &w.names).for_each(|(_, s)| source(s, depth, say));
        waits_for.iter().filter(|p| p.up == depth).for_each(|p| say(Need::Action(p.index)));
    }

    /// The names and places of the workflow's results.
    pub(crate) fn results(&self) -> &[(Name, Source)] {
        &self.results
    }
}

struct Compiler<'w> {
    library: &'w Library,
    bodies: Vec<Body>,
    services: Vec<PlannedService>,
    service_index: HashMap<Name, usize>,
    /// Where variables live: body and slot.
    slots: HashMap<Name, (usize, u32)>,
    enumerators: HashMap<Name, (usize, u32)>,
    /// Where actions live: body and index.
    actions: HashMap<Name, (usize, u32)>,
    /// The body of the for-each action at a place.
    inner: HashMap<(usize, u32), usize>,
    constants: HashMap<&'w str, Arc<Value>>,
    resources: Vec<Arc<Resources>>,
}

impl<'w> Compiler<'w> {
    /// Gives every action, output and enumerator its place.
    fn declare(&mut self, actions: &'w [Action], body: usize) {
        for (i, action) in actions.iter().enumerate() {
            let index = i as u32;
            self.actions.entry(action.id().clone()).or_insert((body, index));
            for (var, _) in action.output_vars() {
                self.slot(var, body);
            }
            if let Action::For(a) = action {
                let inner = self.bodies.len();
                self.bodies.push(Body { parent: Some((body, index)), ..Body::default() });
                self.inner.insert((body, index), inner);
                for (n, e) in a.enumerators().enumerate() {
                    self.enumerators.insert(e.id.clone(), (inner, n as u32));
                    self.bodies[inner].enumerators.push(e.id.clone());
                }
                self.declare(&a.actions, inner);
            }
        }
    }

    fn slot(&mut self, var: &Name, body: usize) -> u32 {
        if let Some((_, slot)) = self.slots.get(var) {
            return *slot;
        }
        let slot = self.bodies[body].locals.len() as u32;
        self.bodies[body].locals.push(var.clone());
        self.slots.insert(var.clone(), (body, slot));
        slot
    }

    fn body(&mut self, actions: &'w [Action], body: usize) -> Result<(), ProgramError> {
        for (i, action) in actions.iter().enumerate() {
            let template = match action {
                Action::Execute(a) => ActionTemplate::Execute(self.execute(a, body)?),
                Action::For(a) => {
                    let inner = self.inner[&(body, i as u32)];
                    let template = self.for_each(a, body, inner)?;
                    self.body(&a.actions, inner)?;
                    ActionTemplate::For(template)
                }
                Action::First(a) => ActionTemplate::First(self.first(a, body)?),
                Action::Include(a) => return Err(ProgramError::Include(a.id.clone())),
            };
            self.bodies[body].actions.push(template);
        }
        Ok(())
    }

    /// How many scopes up from `from` the body `to` is, if it is around it.
    fn distance(&self, from: usize, to: usize) -> Option<u32> {
        let mut at = from;
        let mut up = 0;
        while at != to {
            at = self.bodies[at].parent?.0;
            up += 1;
        }
        Some(up)
    }

    /// Where a variable's value comes from, seen from inside a body.
    fn source(&mut self, var: &Name, body: usize) -> Source {
        if let Some((owner, index)) = self.enumerators.get(var)
            && let Some(up) = self.distance(body, *owner)
        {
            return Source::Enumerator { up, index: *index };
        }
        if let Some(value) = self.constants.get(var.as_str()) {
            return Source::Constant(value.clone());
        }
        if let Some((owner, slot)) = self.slots.get(var)
            && let Some(up) = self.distance(body, *owner)
        {
            return Source::Local { up, slot: *slot };
        }
        // Nothing visible produces it: a variable of the workflow that never gets a value.
        let slot = self.bodies[0].locals.len() as u32;
        self.bodies[0].locals.push(var.clone());
        let up = self.distance(body, 0).unwrap_or(0);
        Source::Local { up, slot }
    }

    /// The places of actions. One inside a loop that is not around us stands for the whole loop.
    fn places(
        &self,
        action: &Name,
        targets: &[Reference],
        body: usize,
    ) -> Result<Vec<ActionPlace>, ProgramError> {
        let mut out = Vec::new();
        for target in targets {
            let unknown =
                || ProgramError::UnknownDependency { action: action.clone(), target: target.id.clone() };
            let (mut owner, mut index) = *self.actions.get(&target.id).ok_or_else(unknown)?;
            let place = loop {
                if let Some(up) = self.distance(body, owner) {
                    break ActionPlace { up, index };
                }
                (owner, index) = self.bodies[owner].parent.ok_or_else(unknown)?;
            };
            if !out.contains(&place) {
                out.push(place);
            }
        }
        Ok(out)
    }

    fn condition(&mut self, condition: Option<&Condition>, body: usize) -> Option<Box<ConditionTemplate>> {
        condition.map(|c| {
            let names = c.names().into_iter().map(|n| (n.clone(), self.source(&n, body))).collect();
            Box::new(ConditionTemplate { condition: c.clone(), names })
        })
    }

    fn service(&mut self, a: &Execute) -> Result<usize, ProgramError> {
        if let Some(index) = self.service_index.get(&a.service) {
            return Ok(*index);
        }
        let service = self.library.service(&a.service);
        let unknown = || ProgramError::UnknownService { action: a.id.clone(), service: a.service.clone() };
        let service = Arc::new(service.ok_or_else(unknown)?.clone());
        let mut capabilities = service.required_capabilities.clone();
        capabilities.sort_unstable();
        capabilities.dedup();
        let script = service.script.as_ref().map(|t| Name::new(t.to_string()));
        self.services.push(PlannedService { service, script, capabilities });
        self.service_index.insert(a.service.clone(), self.services.len() - 1);
        Ok(self.services.len() - 1)
    }

    /// Few actions need something special, so those that need the same share it.
    fn shared_resources(&mut self, resources: Option<&Resources>) -> Arc<Resources> {
        let default = Resources::default();
        let wanted = resources.unwrap_or(&default);
        if let Some(known) = self.resources.iter().find(|r| ***r == *wanted) {
            return known.clone();
        }
        let fresh = Arc::new(wanted.clone());
        self.resources.push(fresh.clone());
        fresh
    }

    fn execute(&mut self, a: &Execute, body: usize) -> Result<ExecuteTemplate, ProgramError> {
        let service = self.service(a)?;
        let definition = self.services[service].service.clone();
        let parameter = |id: &Name, direction| {
            let position = definition.parameters.iter().position(|p| p.id == *id && p.direction == direction);
            position
                .ok_or_else(|| ProgramError::UnknownParameter { action: a.id.clone(), parameter: id.clone() })
        };
        let mut inputs = Vec::with_capacity(a.inputs.len());
        for input in &a.inputs {
            let (source, var) = match &input.source {
                InputSource::Var(var) => (self.source(var, body), var.clone()),
                InputSource::Value(value) => {
                    let var = smol_str::format_smolstr!("{}.{}", a.id, input.id);
                    (Source::Constant(Arc::new(value.clone())), var)
                }
            };
            inputs.push(InputTemplate { parameter: parameter(&input.id, Direction::Input)?, source, var });
        }
        let mut outputs = Vec::with_capacity(a.outputs.len());
        for output in &a.outputs {
            let parameter = parameter(&output.id, Direction::Output)?;
            outputs.push(OutputTemplate {
                parameter,
                slot: self.slot(&output.var, body),
                var: output.var.clone(),
                prefix: output.prefix.clone(),
                store: output.store,
                name: output.name.clone(),
                directory: definition.parameters[parameter].data_type == DIRECTORY,
                value: definition.parameters[parameter].data_type == VALUE,
            });
        }
        let options = a.options();
        let resources = options.resources.as_ref().or(definition.resources.as_ref());
        let resources = self.shared_resources(resources);
        Ok(ExecuteTemplate {
            id: a.id.clone(),
            service,
            inputs,
            outputs,
            waits_for: self.places(&a.id, &a.depends_on, body)?,
            when: self.condition(options.when.as_ref(), body),
            options: a.options.clone(),
            resources,
        })
    }

    fn first(&mut self, a: &First, body: usize) -> Result<FirstTemplate, ProgramError> {
        Ok(FirstTemplate {
            id: a.id.clone(),
            inputs: a.inputs.iter().map(|v| self.source(&v.id, body)).collect(),
            output: self.slot(&a.output.id, body),
            waits_for: self.places(&a.id, &a.depends_on, body)?,
        })
    }

    fn for_each(&mut self, a: &ForEach, body: usize, inner: usize) -> Result<ForTemplate, ProgramError> {
        let lists: Vec<Name> = a.lists().map(|(list, _)| list.id.clone()).collect();
        let course = match &a.gather {
            Gather::Join => CourseTemplate::Each { nested: false },
            Gather::Nest => CourseTemplate::Each { nested: true },
            Gather::Carry { carried, condition } => CourseTemplate::Carry {
                inits: carried.iter().map(|c| self.source(&c.init.id, body)).collect(),
                condition: self.condition(condition.as_ref(), inner),
            },
            Gather::Pairs { .. } => CourseTemplate::Pairs,
        };
        Ok(ForTemplate {
            course,
            id: a.id.clone(),
            body: inner,
            inputs: lists.iter().map(|list| self.source(list, body)).collect(),
            outputs: a.output.iter().map(|v| self.slot(&v.id, body)).collect(),
            yields: a.yield_to_output.iter().map(|v| self.source(&v.id, inner)).collect(),
            yield_to_input: a.yield_to_input.as_ref().map(|v| self.source(&v.id, inner)),
            waits_for: self.places(&a.id, &a.depends_on, body)?,
            when: self.condition(a.when.as_ref(), body),
        })
    }
}
