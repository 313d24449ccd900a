//! The long form: the Steep workflow language 4.x, and service and macro definitions.

use crate::Name;
use crate::condition::Condition;
use crate::diag::Span;
use crate::quantity::Cardinality;
use crate::read::{Context, Fields, Note};
use crate::template::Template;
use crate::workflow::{
    Action, Carried, Direction, Execute, ExecuteOptions, First, ForEach, Gather, Include, Input, InputSource,
    Macro, MacroParameter, NamedResult, Output, Reference, RuntimeArgument, Service, ServiceParameter,
    VarRef, Variable, Workflow,
};
use crate::yaml::Node;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Reads workflows, macros and services, and invents ids for actions that have none.
#[derive(Default)]
pub(crate) struct LongReader {
    anonymous: usize,
    /// Constants given in place of a variable's name: `var: {id: x, value: 1}`.
    inline: Vec<Variable>,
    inline_ids: HashSet<Name>,
    /// Services written inside actions with `run:`.
    pub(crate) inline_services: Vec<Service>,
    /// Actions that were read while the document was parsed.
    streamed: Vec<Action>,
    streamed_count: usize,
}

impl LongReader {
    pub(crate) fn workflow(&mut self, ctx: &mut Context, node: &Node) -> Option<Workflow> {
        let mut f = Fields::new(ctx, node)?;
        let api = f.take("api").map(|n| (n.as_str().unwrap_or(""), n.span));
        if let Some((api, span)) = api
            && !(api == "4" || api.starts_with("4."))
        {
            ctx.error("unsupported-api", span, format!("workflow language version `{api}` is not supported"))
                .help("Catena reads versions 4.0.0 to 4.7.0; write `api: 4.7.0`");
        }
        let name = f.string(ctx, "name").map(|n| n.to_string());
        let priority = f.take("priority").and_then(|n| ctx.integer(n)).unwrap_or(0) as i32;
        let chain_retries = f.take("retries").and_then(|n| {
            let mut r = Fields::new(ctx, n)?;
            let policy = r.take("processChains").and_then(|n| ctx.retry_policy(n));
            r.finish(ctx);
            policy
        });
        let vars = Self::variables(ctx, f.take("vars"));
        let mut actions = std::mem::take(&mut self.streamed);
        actions.extend(self.actions(ctx, f.take("actions")));
        let results = Self::results(ctx, f.take("results"));
        // Read by the loader, which knows about services and macros from elsewhere too.
        f.take("services");
        f.take("macros");
        f.finish(ctx);
        let mut vars = vars;
        vars.append(&mut self.inline);
        let api = api.map_or(Name::new("4.7.0"), |(api, _)| Name::new(api));
        Some(Workflow { api, name, priority, chain_retries, vars, actions, results })
    }

    fn results(ctx: &mut Context, node: Option<&Node>) -> Vec<NamedResult> {
        let Some(node) = node else { return Vec::new() };
        let Some(entries) = node.as_map() else {
            ctx.wrong_type(node, "a mapping of names to variables");
            return Vec::new();
        };
        let mut out = Vec::new();
        for (k, v) in entries {
            if let (Some(name), Some(var)) = (ctx.string(k), ctx.string(v)) {
                out.push(NamedResult { name, var, span: v.span });
            }
        }
        out
    }

    fn variables(ctx: &mut Context, node: Option<&Node>) -> Vec<Variable> {
        ctx.list(node, "vars", |ctx, n| {
            let mut f = Fields::new(ctx, n)?;
            let id = f.require_string(ctx, "id");
            let value = f.take("value").map(Node::to_value);
            f.finish(ctx);
            Some(Variable { id: id?, value, span: n.span })
        })
    }

    fn actions(&mut self, ctx: &mut Context, node: Option<&Node>) -> Vec<Action> {
        let Some(node) = node else { return Vec::new() };
        let items = ctx.seq(node);
        let mut out = Vec::with_capacity(items.len());
        for (i, n) in items.iter().enumerate() {
            out.extend(self.numbered_action(ctx, i, n));
        }
        out
    }

    fn numbered_action(&mut self, ctx: &mut Context, number: usize, node: &Node) -> Option<Action> {
        let text = |key| Name::new(node.get(key).and_then(Node::as_str).unwrap_or(""));
        let note = match text("type").as_str() {
            "for" => Note::Kind("for-each", Name::default()),
            "include" => Note::Kind("include", text("macro")),
            "first" => Note::Kind("first", Name::default()),
            _ => Note::Kind("execute", text("service")),
        };
        ctx.enter("actions", Some(number), note);
        let action = self.action(ctx, node);
        ctx.leave();
        action
    }

    /// Reads an action of the document's own list while the document is still being parsed.
    pub(crate) fn stream_action(&mut self, ctx: &mut Context, node: &Node) {
        let number = self.streamed_count;
        self.streamed_count += 1;
        let action = self.numbered_action(ctx, number, node);
        self.streamed.extend(action);
    }

    fn action(&mut self, ctx: &mut Context, node: &Node) -> Option<Action> {
        let mut f = Fields::new(ctx, node)?;
        let kind = f.require(ctx, "type")?;
        let id = match f.take("id") {
            Some(n) => ctx.string(n)?,
            None => {
                self.anonymous += 1;
                smol_str::format_smolstr!("action#{}", self.anonymous)
            }
        };
        let depends_on = f.take("dependsOn").map_or_else(Vec::new, |n| {
            ctx.strings(n).into_iter().map(|(id, span)| Reference { id, span }).collect()
        });
        let action = match kind.as_str() {
            Some("execute") => self.execute(ctx, &mut f, id, depends_on).map(Box::new).map(Action::Execute),
            Some("for") => self.for_each(ctx, &mut f, id, depends_on).map(Box::new).map(Action::For),
            Some("include") => {
                let macro_id = f.require_string(ctx, "macro");
                let inputs = self.inputs(ctx, f.take("inputs"));
                let outputs = self.outputs(ctx, f.take("outputs"), false);
                let when = f.take("when").and_then(|n| condition(ctx, n));
                let span = node.span;
                let include = |macro_id| Include { id, macro_id, inputs, outputs, depends_on, when, span };
                macro_id.map(include).map(Box::new).map(Action::Include)
            }
            Some("first") => {
                let inputs = f.require(ctx, "inputs").map(|n| self.var_refs(ctx, Some(n)))?;
                let output = f.require(ctx, "output").and_then(|n| self.var_ref(ctx, n))?;
                Some(Action::First(Box::new(First { id, inputs, output, depends_on, span: node.span })))
            }
            other => {
                let other = other.unwrap_or("");
                ctx.error("unknown-action-type", kind.span, format!("unknown type of action `{other}`"))
                    .did_you_mean(other, ["execute", "for", "include", "first"]);
                return None;
            }
        };
        f.finish(ctx);
        action
    }

    fn execute(
        &mut self,
        ctx: &mut Context,
        f: &mut Fields<'_>,
        id: Name,
        depends_on: Vec<Reference>,
    ) -> Option<Execute> {
        let span = f.span;
        let run = f.take("run");
        let service = if run.is_some() { f.string(ctx, "service") } else { f.require_string(ctx, "service") };
        let mut inputs = self.inputs(ctx, f.take("inputs"));
        if let Some(legacy) = f.take("parameters") {
            ctx.warning(
                "legacy-parameters",
                legacy.span,
                "`parameters` is an old name; its entries are read as inputs",
            )
            .help("move them to `inputs`");
            inputs.extend(self.inputs(ctx, Some(legacy)));
        }
        let outputs = self.outputs(ctx, f.take("outputs"), true);
        let options = ExecuteOptions {
            retries: f.take("retries").and_then(|n| ctx.retry_policy(n)),
            max_inactivity: f.take("maxInactivity").and_then(|n| ctx.timeout_policy(n)),
            max_runtime: f.take("maxRuntime").and_then(|n| ctx.timeout_policy(n)),
            deadline: f.take("deadline").and_then(|n| ctx.timeout_policy(n)),
            when: f.take("when").and_then(|n| condition(ctx, n)),
            resources: f.take("resources").and_then(|n| ctx.resources(n)),
            env: ctx.environment(f.take("env")),
            cache: f.take("cache").and_then(|n| ctx.boolean(n)),
            replicas: f.take("replicas").and_then(|n| ctx.integer(n)).map(|n| n.max(1) as u32),
            exclusive: ctx.exclusive(f.take("start")),
        };
        let given = options.retries.is_some()
            || options.max_inactivity.is_some()
            || options.max_runtime.is_some()
            || options.deadline.is_some()
            || options.when.is_some()
            || options.resources.is_some()
            || !options.env.is_empty()
            || options.cache.is_some()
            || options.replicas.is_some()
            || options.exclusive;
        let needs = f.take("requiredCapabilities").map_or_else(Vec::new, |n| ctx.strings(n));
        let service = match run {
            None => service?,
            Some(run) => {
                if service.is_some() {
                    ctx.error(
                        "run-and-service",
                        run.span,
                        "an action has either `run` or `service`, not both",
                    );
                }
                let script = Template::parse(&ctx.string(run)?);
                let needs = needs.into_iter().map(|(n, _)| n).collect();
                let service = inline_service(&id, script, &inputs, &outputs, needs, span, ctx);
                self.inline_services.push(service);
                inline_service_id(&id)
            }
        };
        let options = given.then(|| Box::new(options));
        Some(Execute { id, service, inputs, outputs, depends_on, options, span })
    }

    fn for_each(
        &mut self,
        ctx: &mut Context,
        f: &mut Fields<'_>,
        id: Name,
        depends_on: Vec<Reference>,
    ) -> Option<ForEach> {
        let span = f.span;
        let input = f.require(ctx, "input").and_then(|n| self.var_ref(ctx, n));
        let enumerator = f.require(ctx, "enumerator").and_then(|n| self.var_ref(ctx, n));
        let output = self.var_refs(ctx, f.take("output"));
        let yield_to_output = self.var_refs(ctx, f.take("yieldToOutput"));
        let yield_to_input = f.take("yieldToInput").and_then(|n| self.var_ref(ctx, n));
        if output.len() > 1 && output.len() != yield_to_output.len() {
            ctx.error(
                "yield-count",
                span,
                "`output` and `yieldToOutput` must name the same number of variables",
            );
        }
        let zip = ctx.list(f.take("zip"), "zip", |ctx, n| {
            let mut f = Fields::new(ctx, n)?;
            let input = f.require(ctx, "input").and_then(|n| self.var_ref(ctx, n));
            let enumerator = f.require(ctx, "enumerator").and_then(|n| self.var_ref(ctx, n));
            f.finish(ctx);
            Some((input?, enumerator.map(unset)?))
        });
        let when = f.take("when").and_then(|n| condition(ctx, n));
        let gather = self.gather(ctx, f, &output, &yield_to_output);
        let actions = self.actions(ctx, f.take("actions"));
        Some(ForEach {
            id,
            input: input?,
            enumerator: enumerator.map(unset)?,
            gather,
            zip,
            output,
            actions,
            yield_to_output,
            yield_to_input,
            depends_on,
            when,
            span,
        })
    }

    /// What becomes of what iterations yield: `collect: nested`, `carry` with `while`, or `pairs`.
    fn gather(
        &mut self,
        ctx: &mut Context,
        f: &mut Fields<'_>,
        output: &[VarRef],
        yields: &[VarRef],
    ) -> Gather {
        let span = f.span;
        let nested = f.take("collect").and_then(|n| match ctx.string(n)?.as_str() {
            "joined" => Some(Gather::Join),
            "nested" => Some(Gather::Nest),
            other => {
                ctx.error("unknown-collect", n.span, format!("`{other}` is no way to collect lists"))
                    .did_you_mean(other, ["joined", "nested"]);
                None
            }
        });
        let carried = f.take("carry").map(|n| {
            ctx.list(Some(n), "carry", |ctx, n| {
                let mut f = Fields::new(ctx, n)?;
                let enumerator = f.require(ctx, "enumerator").and_then(|n| self.var_ref(ctx, n));
                let init = f.require(ctx, "init").and_then(|n| self.var_ref(ctx, n));
                f.finish(ctx);
                Some(Carried { enumerator: enumerator.map(unset)?, init: init? })
            })
        });
        let condition = f.take("while").and_then(|n| condition(ctx, n));
        let pairs = f.take("pairs").and_then(|n| self.var_ref(ctx, n));
        if usize::from(nested.is_some()) + usize::from(carried.is_some()) + usize::from(pairs.is_some()) > 1 {
            ctx.error("gather", span, "an action has at most one of `collect`, `carry` and `pairs`");
        }
        if condition.is_some() && carried.is_none() {
            ctx.error("while-without-carry", span, "`while` needs `carry`: something has to change")
                .help("use `when` to decide whether the action runs at all");
        }
        let expected = carried.as_ref().map(Vec::len).or(pairs.as_ref().map(|_| 1));
        if expected.is_some_and(|n| output.len() != n || yields.len() != n) {
            let message = "`output` and `yieldToOutput` must name one variable for each that is handed on";
            ctx.error("yield-count", span, message);
        }
        match (carried, pairs) {
            (Some(carried), _) => Gather::Carry { carried, condition },
            (None, Some(right)) => Gather::Pairs { right: unset(right) },
            (None, None) => nested.unwrap_or_default(),
        }
    }

    /// One variable or a list of them.
    fn var_refs(&mut self, ctx: &mut Context, node: Option<&Node>) -> Vec<VarRef> {
        let Some(node) = node else { return Vec::new() };
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        items.iter().filter_map(|n| self.var_ref(ctx, n)).collect()
    }

    /// A variable's name, or a variable written out in place.
    fn var_ref(&mut self, ctx: &mut Context, node: &Node) -> Option<VarRef> {
        let span = node.span;
        if node.as_map().is_none() {
            return ctx.string(node).map(|id| VarRef { id, span });
        }
        let mut f = Fields::new(ctx, node)?;
        let id = f.require_string(ctx, "id")?;
        let value = f.take("value").map(Node::to_value);
        f.finish(ctx);
        if !self.inline_ids.insert(id.clone()) {
            ctx.error("redeclared-variable", span, format!("the variable `{id}` is declared here again"))
                .help("give the variable once and refer to it by name elsewhere");
        }
        self.inline.push(Variable { id: id.clone(), value, span });
        Some(VarRef { id, span })
    }

    fn inputs(&mut self, ctx: &mut Context, node: Option<&Node>) -> Vec<Input> {
        ctx.list(node, "inputs", |ctx, n| {
            let mut f = Fields::new(ctx, n)?;
            let id = f.require_string(ctx, "id");
            let var = f.take("var").map(|n| self.var_ref(ctx, n));
            let value = f.take("value").map(Node::to_value);
            let has_value = n.get("value").is_some();
            f.finish(ctx);
            let source = match (var, has_value) {
                (Some(var), false) => InputSource::Var(var?.id),
                (None, true) => InputSource::Value(value.unwrap_or(Value::Null)),
                (None, false) | (Some(_), true) => {
                    ctx.error("input-source", n.span, "an input needs either `var` or `value`");
                    return None;
                }
            };
            Some(Input { id: id?, source, span: n.span })
        })
    }

    fn outputs(&mut self, ctx: &mut Context, node: Option<&Node>, full: bool) -> Vec<Output> {
        ctx.list(node, "outputs", |ctx, n| {
            let mut f = Fields::new(ctx, n)?;
            let id = f.require_string(ctx, "id");
            let var = f.require(ctx, "var").and_then(|n| self.var_ref(ctx, n));
            let mut output = Output {
                id: id?,
                var: var?.id,
                prefix: None,
                store: false,
                name: None,
                value: false,
                span: n.span,
            };
            if full {
                output.prefix = f.string(ctx, "prefix").map(|p| p.as_str().into());
                output.store = f.take("store").and_then(|n| ctx.boolean(n)).unwrap_or(false);
                output.name = f.string(ctx, "as").map(|t| Arc::new(output_name(&t)));
                output.value = f.take("value").and_then(|n| ctx.boolean(n)).unwrap_or(false);
            }
            f.finish(ctx);
            Some(output)
        })
    }

    pub(crate) fn macro_definition(&mut self, ctx: &mut Context, node: &Node) -> Option<Macro> {
        let mut f = Fields::new(ctx, node)?;
        let id = f.require_string(ctx, "id");
        let name = f.string(ctx, "name").unwrap_or_default().to_string();
        let description = f.string(ctx, "description").unwrap_or_default().to_string();
        let parameters = ctx.list(f.take("parameters"), "parameters", |ctx, n| {
            let mut f = Fields::new(ctx, n)?;
            let id = f.require_string(ctx, "id");
            let direction = f.require(ctx, "type").and_then(|n| direction(ctx, n));
            let default = f.take("default").map(Node::to_value);
            f.take("name");
            f.take("description");
            f.finish(ctx);
            Some(MacroParameter { id: id?, direction: direction?, default, span: n.span })
        });
        let mut vars = Self::variables(ctx, f.take("vars"));
        let mut actions = std::mem::take(&mut self.streamed);
        actions.extend(self.actions(ctx, f.take("actions")));
        vars.append(&mut self.inline);
        f.finish(ctx);
        Some(Macro { id: id?, name, description, parameters, vars, actions, span: node.span })
    }
}

/// A variable that gets its value later.
fn unset(v: VarRef) -> Variable {
    Variable { id: v.id, value: None, span: v.span }
}

fn condition(ctx: &mut Context, node: &Node) -> Option<Condition> {
    let text = ctx.string(node)?;
    match Condition::parse(&text) {
        Ok(c) => Some(c),
        Err(message) => {
            ctx.error("bad-condition", node.span, message);
            None
        }
    }
}

fn direction(ctx: &mut Context, node: &Node) -> Option<Direction> {
    match node.as_str() {
        Some("input") => Some(Direction::Input),
        Some("output") => Some(Direction::Output),
        other => {
            let other = other.unwrap_or("");
            ctx.error("bad-direction", node.span, format!("`{other}` is neither `input` nor `output`"));
            None
        }
    }
}

/// A template for a file name, with `.stem` and the like split off the names of inputs.
pub(crate) fn output_name(text: &str) -> Template {
    let mut template = Template::parse(text);
    template.split_fields(|_| false);
    template
}

/// The id of the service an action with `run:` stands for.
pub(crate) fn inline_service_id(action: &str) -> Name {
    smol_str::format_smolstr!("run:{action}")
}

/// The service an action with `run:` stands for: a shell command whose parameters are the action's.
pub(crate) fn inline_service(
    action: &str,
    mut script: Template,
    inputs: &[Input],
    outputs: &[Output],
    required_capabilities: Vec<Name>,
    span: Span,
    ctx: &mut Context,
) -> Service {
    let parameter = |id: &Name, direction, cardinality, data_type| ServiceParameter {
        id: id.clone(),
        name: id.to_string(),
        description: String::new(),
        direction,
        cardinality,
        data_type,
        default: None,
        file_suffix: None,
        label: None,
    };
    let mut parameters: Vec<ServiceParameter> = Vec::new();
    for input in inputs {
        if !parameters.iter().any(|p| p.id == input.id) {
            let any = Name::new_static("string");
            parameters.push(parameter(&input.id, Direction::Input, Cardinality::ANY, any));
        }
    }
    for output in outputs {
        let directory = output.name.as_ref().is_some_and(|n| n.to_string().ends_with('/'));
        let data_type = Name::new_static(match output.value {
            true => crate::workflow::VALUE,
            false if directory => crate::workflow::DIRECTORY,
            false => "file",
        });
        parameters.push(parameter(&output.id, Direction::Output, Cardinality::ONE, data_type));
    }
    script.split_fields(|name| parameters.iter().any(|p| p.id == name));
    for insert in script.inserts() {
        if !parameters.iter().any(|p| p.id == insert.name) {
            let known = parameters.iter().map(|p| p.id.as_str());
            let d = ctx.error(
                "unknown-name",
                span,
                format!("`{{{}}}` is neither an input nor an output", insert.name),
            );
            d.did_you_mean(&insert.name, known);
            if d.help.is_none() {
                d.help("write `{{` and `}}` for braces that belong to the command");
            }
        }
    }
    Service {
        id: inline_service_id(action),
        name: action.to_owned(),
        description: String::new(),
        path: Name::new_static("sh"),
        runtime: Name::new_static("other"),
        script: Some(Arc::new(script)),
        parameters,
        runtime_args: Vec::new(),
        required_capabilities,
        resources: None,
        env: Vec::new(),
        retries: None,
        max_inactivity: None,
        max_runtime: None,
        deadline: None,
        cache: true,
        package: None,
        exclusive: false,
        span,
    }
}

/// Reads one entry of a services file.
pub(crate) fn service(ctx: &mut Context, node: &Node) -> Option<Service> {
    let mut f = Fields::new(ctx, node)?;
    let id = f.require_string(ctx, "id");
    let name = f.string(ctx, "name").unwrap_or_default().to_string();
    let description = f.string(ctx, "description").unwrap_or_default().to_string();
    let run = f.string(ctx, "run");
    let path = if run.is_some() { f.string(ctx, "path") } else { f.require_string(ctx, "path") };
    let runtime = f.string(ctx, "runtime").unwrap_or(Name::new_static("other"));
    let parameters = ctx.list(f.take("parameters"), "parameters", service_parameter);
    let runtime_args = ctx.list(f.take("runtimeArgs"), "runtimeArgs", |ctx, n| {
        let mut f = Fields::new(ctx, n)?;
        let id = f.require_string(ctx, "id");
        f.take("name");
        f.take("description");
        let data_type = f.string(ctx, "dataType").unwrap_or(Name::new_static("string"));
        let label = f.string(ctx, "label");
        let value =
            f.take("value").map(|n| n.as_str().map_or_else(|| n.to_value().to_string(), str::to_owned));
        f.finish(ctx);
        Some(RuntimeArgument { id: id?, data_type, label, value })
    });
    let required_capabilities = f
        .take("requiredCapabilities")
        .map_or_else(Vec::new, |n| ctx.strings(n).into_iter().map(|(name, _)| name).collect());
    let retries = f.take("retries").and_then(|n| ctx.retry_policy(n));
    let max_inactivity = f.take("maxInactivity").and_then(|n| ctx.timeout_policy(n));
    let max_runtime = f.take("maxRuntime").and_then(|n| ctx.timeout_policy(n));
    let deadline = f.take("deadline").and_then(|n| ctx.timeout_policy(n));
    let resources = f.take("resources").and_then(|n| ctx.resources(n));
    let env = ctx.environment(f.take("env"));
    let cache = f.take("cache").and_then(|n| ctx.boolean(n)).unwrap_or(true);
    let package = f.string(ctx, "package");
    let exclusive = ctx.exclusive(f.take("start"));
    f.finish(ctx);
    let script = run.map(|run| {
        let mut template = Template::parse(&run);
        template.split_fields(|n| parameters.iter().any(|p: &ServiceParameter| p.id == n));
        Arc::new(template)
    });
    Some(Service {
        id: id?,
        name,
        description,
        path: path.or_else(|| script.as_ref().map(|_| Name::new_static("sh")))?,
        runtime,
        script,
        parameters,
        runtime_args,
        required_capabilities,
        resources,
        env,
        retries,
        max_inactivity,
        max_runtime,
        deadline,
        cache,
        package,
        exclusive,
        span: node.span,
    })
}

fn service_parameter(ctx: &mut Context, node: &Node) -> Option<ServiceParameter> {
    let mut f = Fields::new(ctx, node)?;
    let id = f.require_string(ctx, "id");
    let name = f.string(ctx, "name").unwrap_or_default().to_string();
    let description = f.string(ctx, "description").unwrap_or_default().to_string();
    let direction = f.require(ctx, "type").and_then(|n| direction(ctx, n));
    let cardinality = f.take("cardinality").map_or(Some(Cardinality::ONE), |n| {
        let text = ctx.string(n)?;
        Cardinality::parse(&text).map_err(|m| ctx.error("bad-cardinality", n.span, m).code).ok()
    });
    let data_type = f.string(ctx, "dataType").unwrap_or(Name::new_static("string"));
    let default = f.take("default").map(Node::to_value);
    let file_suffix = f.string(ctx, "fileSuffix");
    let label = f.string(ctx, "label");
    f.finish(ctx);
    Some(ServiceParameter {
        id: id?,
        name,
        description,
        direction: direction?,
        cardinality: cardinality?,
        data_type,
        default,
        file_suffix,
        label,
    })
}
