//! The short form: what a scientist writes. It compiles to the same model as the long form.
//!
//! A step becomes an execute action, in one for-each action per `for` list. Its outputs are variables
//! called `step.output`; inside a loop each task writes `step.output[]` and the loop collects them.

use crate::Name;
use crate::condition::Condition;
use crate::diag::{Sources, Span};
use crate::files::{absolute, glob};
use crate::long::{inline_service, inline_service_id};
use crate::policy::{RetryPolicy, TimeoutPolicy};
use crate::read::{Context, Fields, Note};
use crate::template::{Part, Template};
use crate::workflow::{
    Action, Direction, Execute, ExecuteOptions, ForEach, Gather, Include, Input, InputSource, Macro,
    MacroParameter, NamedResult, Output, Reference, Service, VarRef, Variable, Workflow,
};
use crate::yaml::{self, Node};
use serde_json::Value;
use smol_str::format_smolstr;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Sub-workflows may nest this deep.
const MAX_USE_DEPTH: usize = 16;

pub(crate) struct ShortReader<'a> {
    directory: PathBuf,
    overrides: &'a [(Name, Value)],
    sources: &'a mut Sources,
    /// Marks services of sub-workflows, so that equal step names do not clash.
    prefix: String,
    depth: usize,
    /// Names that steps can mention, and the variables they stand for.
    names: HashMap<Name, Name>,
    /// The results of used workflows: the macro's output parameter and the result's name.
    used: HashMap<Name, Vec<(Name, Name)>>,
    pub(crate) services: Vec<Service>,
    pub(crate) macros: Vec<Macro>,
}

/// A loop variable and the list it walks through.
struct Loop {
    variable: Name,
    list: Name,
    span: Span,
}

impl<'a> ShortReader<'a> {
    pub(crate) fn new(directory: &Path, overrides: &'a [(Name, Value)], sources: &'a mut Sources) -> Self {
        Self {
            directory: directory.to_path_buf(),
            overrides,
            sources,
            prefix: String::new(),
            depth: 0,
            names: HashMap::new(),
            used: HashMap::new(),
            services: Vec::new(),
            macros: Vec::new(),
        }
    }

    pub(crate) fn workflow(&mut self, ctx: &mut Context, node: &Node) -> Option<Workflow> {
        let mut f = Fields::new(ctx, node)?;
        match f.take("catena") {
            Some(n) if n.as_str() == Some("1") => {}
            Some(n) => {
                ctx.error("unsupported-version", n.span, "this version of the short form is not supported")
                    .help("write `catena: 1`");
            }
            None => {
                ctx.warning("missing-version", node.span, "the version of the language is missing")
                    .help("add `catena: 1` at the top");
            }
        }
        let name = f.string(ctx, "name").map(|n| n.to_string());
        let priority = f.take("priority").and_then(|n| ctx.integer(n)).unwrap_or(0) as i32;
        let vars = f.take("inputs").map_or_else(Vec::new, |n| self.inputs(ctx, n));
        self.check_overrides(ctx, &vars);
        f.take("services");
        f.take("macros");
        let steps = f.require(ctx, "steps").and_then(|n| {
            let steps = n.as_map();
            if steps.is_none() {
                ctx.wrong_type(n, "a mapping of step names to steps");
            }
            steps
        });
        let steps = steps.unwrap_or_default();
        self.declare_outputs(ctx, steps);
        let mut actions = Vec::new();
        for (key, step) in steps {
            let Some(id) = ctx.string(key) else { continue };
            ctx.enter("steps", None, Note::Name(id.clone()));
            actions.extend(self.step(ctx, id, key.span, step));
            ctx.leave();
        }
        let results = f.take("results").map_or_else(Vec::new, |n| self.results(ctx, n));
        f.finish(ctx);
        let api = Name::new_static("4.7.0");
        Some(Workflow { api, name, priority, chain_retries: None, vars, actions, results })
    }

    fn inputs(&mut self, ctx: &mut Context, node: &Node) -> Vec<Variable> {
        let Some(entries) = node.as_map() else {
            ctx.wrong_type(node, "a mapping of input names to values");
            return Vec::new();
        };
        let mut out = Vec::new();
        for (key, value) in entries {
            let Some(id) = ctx.string(key) else { continue };
            ctx.enter("inputs", None, Note::Name(id.clone()));
            let given = self.overrides.iter().rev().find(|(name, _)| *name == id);
            let (value, span) =
                given.map_or_else(|| (value.to_value(), value.span), |(_, v)| (v.clone(), key.span));
            let value = self.input_value(ctx, value, span);
            ctx.leave();
            self.names.insert(id.clone(), id.clone());
            out.push(Variable { id, value, span: key.span });
        }
        out
    }

    fn check_overrides(&self, ctx: &mut Context, vars: &[Variable]) {
        if self.depth > 0 {
            return;
        }
        for (name, _) in self.overrides {
            if !vars.iter().any(|v| v.id == *name) {
                ctx.error("unknown-input", Span::default(), format!("the workflow has no input `{name}`"))
                    .did_you_mean(name, vars.iter().map(|v| v.id.as_str()));
            }
        }
    }

    /// A value, or one of `{glob: …}`, `{file: …}`, `{files: […]}`, `{range: …}`, `{value: …}`.
    fn input_value(&self, ctx: &mut Context, value: Value, span: Span) -> Option<Value> {
        let Value::Object(object) = &value else {
            return Some(self.locate(value));
        };
        let mut entries = object.iter();
        let (Some((key, argument)), None) = (entries.next(), entries.next()) else {
            return Some(self.locate(value));
        };
        let text = |ctx: &mut Context, v: &Value| {
            let text = v.as_str().map(str::to_owned);
            if text.is_none() {
                ctx.error("wrong-type", span, format!("`{key}` needs a string, not {v}"));
            }
            text
        };
        match key.as_str() {
            "value" => Some(argument.clone()),
            "glob" => {
                let pattern = text(ctx, argument)?;
                match glob(&self.directory, &pattern) {
                    Ok(files) => {
                        if files.is_empty() {
                            let message =
                                format!("no file matches `{pattern}` in {}", self.directory.display());
                            ctx.warning("empty-glob", span, message);
                        }
                        Some(files.into())
                    }
                    Err(e) => {
                        ctx.error("bad-glob", span, format!("cannot list files for `{pattern}`: {e}"));
                        None
                    }
                }
            }
            "file" => text(ctx, argument).and_then(|name| self.file(ctx, &name, span)).map(Value::String),
            "files" => {
                let names = argument.as_array().map_or(std::slice::from_ref(argument), Vec::as_slice);
                let files =
                    names.iter().filter_map(|n| text(ctx, n).and_then(|name| self.file(ctx, &name, span)));
                Some(files.collect::<Vec<String>>().into())
            }
            "range" => {
                let bounds = argument.as_array().map_or(std::slice::from_ref(argument), Vec::as_slice);
                let bounds: Vec<Option<i64>> = bounds.iter().map(Value::as_i64).collect();
                let (first, last) = match bounds[..] {
                    [Some(n)] => (1, n),
                    [Some(a), Some(b)] => (a, b),
                    _ => {
                        ctx.error(
                            "bad-range",
                            span,
                            "write `{range: 10}` for 1 to 10, or `{range: [5, 10]}`",
                        );
                        return None;
                    }
                };
                Some((first..=last).map(Value::from).collect())
            }
            _ => Some(self.locate(value)),
        }
    }

    fn file(&self, ctx: &mut Context, name: &str, span: Span) -> Option<String> {
        let path = absolute(&self.directory.join(name));
        if !Path::new(&path).exists() {
            ctx.error("missing-file", span, format!("there is no file {path}"))
                .help("relative paths start at the directory of the workflow");
            return None;
        }
        Some(path)
    }

    /// Tasks run in directories of their own, so text that names an existing file becomes its full path.
    fn locate(&self, value: Value) -> Value {
        match value {
            Value::String(s) if s.contains(['/', '.']) && !s.contains('\0') => {
                let path = self.directory.join(&s);
                Value::String(if path.is_file() { absolute(&path) } else { s })
            }
            Value::Array(items) => Value::Array(items.into_iter().map(|v| self.locate(v)).collect()),
            other => other,
        }
    }

    /// Makes the outputs of all steps known before any step is read, so that order does not matter.
    fn declare_outputs(&mut self, ctx: &mut Context, steps: &[(Node, Node)]) {
        for (key, step) in steps {
            let Some(id) = key.as_str() else { continue };
            let outputs = self.step_outputs(ctx, id, step);
            if let [only] = &outputs[..] {
                self.names.entry(Name::new(id)).or_insert_with(|| format_smolstr!("{id}.{only}"));
            }
            for output in outputs {
                let name = format_smolstr!("{id}.{output}");
                self.names.insert(name.clone(), name);
            }
        }
    }

    /// The names of a step's outputs: from `out`, or the results of the workflow it uses.
    fn step_outputs(&mut self, ctx: &mut Context, id: &str, step: &Node) -> Vec<Name> {
        if let Some(file) = step.get("use") {
            return self.used_macro(ctx, id, file).unwrap_or_default();
        }
        match step.get("out") {
            Some(n) if n.as_str().is_some() => vec![Name::new_static("out")],
            Some(n) => {
                n.as_map().unwrap_or_default().iter().filter_map(|(k, _)| k.as_str().map(Name::new)).collect()
            }
            None => Vec::new(),
        }
    }

    fn results(&mut self, ctx: &mut Context, node: &Node) -> Vec<NamedResult> {
        let Some(entries) = node.as_map() else {
            ctx.wrong_type(node, "a mapping of result names to values such as `{step.out}`");
            return Vec::new();
        };
        let mut out = Vec::new();
        for (key, value) in entries {
            let (Some(name), Some(text)) = (ctx.string(key), ctx.string(value)) else {
                continue;
            };
            match &Template::parse(&text).parts() {
                [Part::Insert(insert)] => {
                    if let Some(var) = self.resolve(ctx, &insert.name, &[], value.span) {
                        out.push(NamedResult { name, var, span: value.span });
                    }
                }
                _ => {
                    ctx.error("bad-result", value.span, "a result is one value, such as `{step.out}`");
                }
            }
        }
        out
    }

    /// The variable a name stands for, seen from a step with these loops around it.
    fn resolve(&self, ctx: &mut Context, name: &str, loops: &[(Name, Name)], span: Span) -> Option<Name> {
        if let Some((_, variable)) = loops.iter().rev().find(|(n, _)| n == name) {
            return Some(variable.clone());
        }
        if let Some(variable) = self.names.get(name) {
            return Some(variable.clone());
        }
        let known = self.names.keys().map(Name::as_str).chain(loops.iter().map(|(n, _)| n.as_str()));
        let known: Vec<&str> = known.collect();
        let d = ctx.error("unknown-name", span, format!("nothing is called `{name}` here"));
        d.did_you_mean(name, known);
        if d.help.is_none() {
            d.help("write `{{` and `}}` for braces that belong to the command");
        }
        None
    }

    fn step(&mut self, ctx: &mut Context, id: Name, key: Span, node: &Node) -> Option<Action> {
        let mut f = Fields::new(ctx, node)?;
        let pairs = f.take("for").map_or_else(Vec::new, |n| Self::loops(ctx, n));
        let zipped = f.take("zip").map_or_else(Vec::new, |n| Self::loops(ctx, n));
        // The name of a loop variable is local to the step; its variable is not.
        let mut loops: Vec<(Name, Name)> = Vec::new();
        let mut lists: Vec<Vec<(VarRef, Variable)>> = Vec::new();
        for group in pairs.into_iter().map(|p| vec![p]).chain((!zipped.is_empty()).then_some(zipped)) {
            let mut level = Vec::new();
            let mut declared = Vec::new();
            for Loop { variable, list, span } in group {
                let Some(list) = self.resolve(ctx, &list, &loops, span) else {
                    continue;
                };
                let enumerator = format_smolstr!("{id}:{variable}");
                declared.push((variable, enumerator.clone()));
                level.push((VarRef { id: list, span }, Variable { id: enumerator, value: None, span }));
            }
            loops.extend(declared);
            if level.is_empty() {
                return None;
            }
            lists.push(level);
        }
        let after = f.take("after").map_or_else(Vec::new, |n| ctx.strings(n));
        let depends_on: Vec<Reference> = after.into_iter().map(|(id, span)| Reference { id, span }).collect();
        let when = f.take("when").and_then(|n| self.condition(ctx, n, &loops));
        let in_loop = !lists.is_empty();
        // Each loop around a step takes one pair of brackets off the names of its outputs.
        let suffix = "[]".repeat(lists.len());
        let loop_condition =
            when.as_ref().is_some_and(|c| c.names().iter().all(|n| !loops.iter().any(|(_, v)| v == n)));
        let (outer_when, inner_when) = if in_loop && loop_condition { (when, None) } else { (None, when) };

        let use_file = f.take("use");
        let body = if use_file.is_some() {
            let include = self.use_step(ctx, &mut f, &id, use_file, &loops, &suffix);
            include.map(|mut a| {
                a.span = key;
                a.when = inner_when;
                if !in_loop {
                    a.depends_on.clone_from(&depends_on);
                }
                Action::Include(Box::new(a))
            })
        } else {
            let execute = self.execute_step(ctx, &mut f, &id, &loops, &suffix, inner_when);
            execute.map(|mut a| {
                a.span = key;
                if !in_loop {
                    a.depends_on.clone_from(&depends_on);
                }
                Action::Execute(Box::new(a))
            })
        };
        f.finish(ctx);
        let mut action = body?;
        let levels = lists.len();
        for (level, mut group) in lists.into_iter().enumerate().rev() {
            let yields: Vec<(Name, Span)> = action.output_vars().map(|(v, s)| (v.clone(), s)).collect();
            let yield_to_output =
                yields.iter().map(|(v, span)| VarRef { id: v.clone(), span: *span }).collect();
            let output = yields
                .iter()
                .map(|(v, span)| VarRef { id: Name::new(v.strip_suffix("[]").unwrap_or(v)), span: *span });
            let (input, enumerator) = group.remove(0);
            let loop_id = if levels == 1 {
                format_smolstr!("{id}.loop")
            } else {
                format_smolstr!("{id}.loop{}", level + 1)
            };
            action = Action::For(Box::new(ForEach {
                id: loop_id,
                input,
                enumerator,
                zip: group,
                gather: Gather::Join,
                output: output.collect(),
                actions: vec![action],
                yield_to_output,
                yield_to_input: None,
                depends_on: if level == 0 { depends_on.clone() } else { Vec::new() },
                when: if level == 0 { outer_when.clone() } else { None },
                span: key,
            }));
        }
        Some(action)
    }

    /// `x in xs`, or a list of these.
    fn loops(ctx: &mut Context, node: &Node) -> Vec<Loop> {
        let mut out = Vec::new();
        for (text, span) in ctx.strings(node) {
            let mut words = text.split_whitespace();
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some(variable), Some("in"), Some(list), None) => {
                    let list = list.trim_start_matches('{').trim_end_matches('}');
                    out.push(Loop { variable: variable.into(), list: list.into(), span });
                }
                _ => {
                    ctx.error(
                        "bad-loop",
                        span,
                        format!("`{text}` is not a loop; write for example `read in reads`"),
                    );
                }
            }
        }
        out
    }

    fn condition(&self, ctx: &mut Context, node: &Node, loops: &[(Name, Name)]) -> Option<Condition> {
        let text = ctx.string(node)?;
        let parsed =
            Condition::parse(&text).map_err(|m| ctx.error("bad-condition", node.span, m).code).ok()?;
        let mut complete = true;
        for name in parsed.names() {
            complete &= self.resolve(ctx, &name, loops, node.span).is_some();
        }
        let variable = |n: &str| {
            let local = loops.iter().rev().find(|(name, _)| name == n).map(|(_, v)| v.clone());
            local.or_else(|| self.names.get(n).cloned()).unwrap_or_else(|| Name::new(n))
        };
        complete.then(|| parsed.rename(variable))
    }

    fn execute_step(
        &mut self,
        ctx: &mut Context,
        f: &mut Fields<'_>,
        id: &Name,
        loops: &[(Name, Name)],
        suffix: &str,
        when: Option<Condition>,
    ) -> Option<Execute> {
        let span = f.span;
        let run = f.take("run");
        let service = f.string(ctx, "service");
        let mut inputs = f.take("in").map_or_else(Vec::new, |n| self.given(ctx, n, loops));
        let mut outputs = f.take("out").map_or_else(Vec::new, |n| Self::outputs(ctx, n, id, suffix));
        let package = f.string(ctx, "package");
        let needs: Vec<Name> =
            f.take("needs").map_or_else(Vec::new, |n| ctx.strings(n).into_iter().map(|(n, _)| n).collect());
        let mut resources = f.take("resources").and_then(|n| ctx.resources(n));
        for key in ["cpus", "memory", "disk", "gpus"] {
            if let Some(n) = f.take(key) {
                ctx.resource(resources.get_or_insert_default(), key, n);
            }
        }
        let options = ExecuteOptions {
            retries: f.take("retries").and_then(|n| retries(ctx, n)),
            max_inactivity: f.take("maxInactivity").and_then(|n| ctx.timeout_policy(n)),
            max_runtime: f.take("timeout").and_then(|n| ctx.timeout_policy(n)).map(as_error),
            deadline: f.take("deadline").and_then(|n| ctx.timeout_policy(n)).map(as_error),
            when,
            resources,
            env: ctx.environment(f.take("env")),
            cache: f.take("cache").and_then(|n| ctx.boolean(n)),
            replicas: f.take("replicas").and_then(|n| ctx.integer(n)).map(|n| n.max(1) as u32),
            exclusive: ctx.exclusive(f.take("start")),
        };
        let service = match (run, service) {
            (Some(run), None) => {
                let text = ctx.string(run)?;
                let mut script = Template::parse(&text);
                let own = |n: &str| outputs.iter().any(|o| o.id == n) || inputs.iter().any(|i| i.id == n);
                let local = |n: &str| loops.iter().any(|(l, _)| l == n);
                script.split_fields(|n| own(n) || local(n) || self.names.contains_key(n));
                self.mention(ctx, &script, run.span, &outputs, &mut inputs, loops);
                self.name_outputs(ctx, &mut outputs, &mut inputs, loops);
                let id = format!("{}{id}", self.prefix);
                let service = inline_service(&id, script, &inputs, &outputs, needs, span, ctx);
                self.services.push(Service { package, ..service });
                inline_service_id(&id)
            }
            (None, Some(service)) => {
                if !needs.is_empty() {
                    ctx.warning(
                        "ignored-needs",
                        span,
                        "the service says what it needs; `needs` is for `run` steps",
                    );
                }
                self.name_outputs(ctx, &mut outputs, &mut inputs, loops);
                service
            }
            (Some(_), Some(_)) | (None, None) => {
                ctx.error("step-kind", span, "a step needs exactly one of `run`, `service` and `use`");
                return None;
            }
        };
        let options = Some(Box::new(options));
        Some(Execute { id: id.clone(), service, inputs, outputs, depends_on: Vec::new(), options, span })
    }

    /// Makes an input of every name a command mentions that is not one already.
    fn mention(
        &self,
        ctx: &mut Context,
        template: &Template,
        span: Span,
        outputs: &[Output],
        inputs: &mut Vec<Input>,
        loops: &[(Name, Name)],
    ) {
        for insert in template.inserts() {
            let known =
                outputs.iter().any(|o| o.id == insert.name) || inputs.iter().any(|i| i.id == insert.name);
            if !known && let Some(var) = self.resolve(ctx, &insert.name, loops, span) {
                inputs.push(Input { id: insert.name.clone(), source: InputSource::Var(var), span });
            }
        }
    }

    /// Resolves the names in file names of outputs. They become inputs, so that they are known when the
    /// file is named.
    fn name_outputs(
        &self,
        ctx: &mut Context,
        outputs: &mut [Output],
        inputs: &mut Vec<Input>,
        loops: &[(Name, Name)],
    ) {
        for output in outputs {
            let Some(name) = output.name.as_mut().map(Arc::make_mut) else {
                continue;
            };
            let known = |n: &str| inputs.iter().any(|i| i.id == n) || loops.iter().any(|(l, _)| l == n);
            name.split_fields(|n| known(n) || self.names.contains_key(n));
            let name = name.clone();
            self.mention(ctx, &name, output.span, &[], inputs, loops);
        }
    }

    /// `in:`: parameter names with constants, values such as `{step.out}`, or lists of both.
    fn given(&self, ctx: &mut Context, node: &Node, loops: &[(Name, Name)]) -> Vec<Input> {
        let Some(entries) = node.as_map() else {
            ctx.wrong_type(node, "a mapping of parameters to values");
            return Vec::new();
        };
        let mut out = Vec::new();
        for (key, value) in entries {
            let Some(id) = ctx.string(key) else { continue };
            let items = value.as_seq().unwrap_or(std::slice::from_ref(value));
            for item in items {
                let source = self.source(ctx, item, loops);
                out.extend(source.map(|source| Input { id: id.clone(), source, span: item.span }));
            }
        }
        out
    }

    fn source(&self, ctx: &mut Context, node: &Node, loops: &[(Name, Name)]) -> Option<InputSource> {
        let Some(text) = node.as_str() else {
            return Some(InputSource::Value(node.to_value()));
        };
        let template = Template::parse(text);
        match template.parts() {
            [Part::Insert(insert)] => self.resolve(ctx, &insert.name, loops, node.span).map(InputSource::Var),
            parts if parts.iter().any(|p| matches!(p, Part::Insert(_))) => {
                ctx.error("mixed-input", node.span, "an input is either a value or one `{name}`")
                    .help("put the text together in a `run` step");
                None
            }
            _ => Some(InputSource::Value(self.locate(node.to_value()))),
        }
    }

    fn outputs(ctx: &mut Context, node: &Node, id: &Name, suffix: &str) -> Vec<Output> {
        let one = |ctx: &mut Context, name: &str, n: &Node| {
            let (n, value) = n.get("value").map_or((n, false), |n| (n, true));
            let file = ctx.string(n)?;
            let literal = file.trim_end_matches('/');
            if literal.is_empty() || file.starts_with('/') || literal.split('/').any(|part| part == "..") {
                ctx.error("bad-file-name", n.span, format!("`{file}` cannot be the name of an output"))
                    .help("outputs are named relative to a directory of their own; `..` and absolute paths are not allowed");
                return None;
            }
            Some(Output {
                id: Name::new(name),
                var: format_smolstr!("{id}.{name}{suffix}"),
                prefix: None,
                store: false,
                name: Some(Arc::new(Template::parse(&file))),
                value,
                span: n.span,
            })
        };
        match node.as_map() {
            None => one(ctx, "out", node).into_iter().collect(),
            Some(entries) => {
                entries.iter().filter_map(|(k, v)| ctx.string(k).and_then(|k| one(ctx, &k, v))).collect()
            }
        }
    }

    fn use_step(
        &mut self,
        ctx: &mut Context,
        f: &mut Fields<'_>,
        id: &Name,
        file: Option<&Node>,
        loops: &[(Name, Name)],
        suffix: &str,
    ) -> Option<Include> {
        let span = f.span;
        let inputs = f.take("in").map_or_else(Vec::new, |n| self.given(ctx, n, loops));
        let macro_id = self.macro_id(id, file?.as_str()?);
        let outputs = self.used.get(&macro_id)?.iter().map(|(parameter, result)| Output {
            id: parameter.clone(),
            var: format_smolstr!("{id}.{result}{suffix}"),
            prefix: None,
            store: false,
            name: None,
            value: false,
            span,
        });
        let outputs = outputs.collect();
        Some(Include { id: id.clone(), macro_id, inputs, outputs, depends_on: Vec::new(), when: None, span })
    }

    fn macro_id(&self, step: &str, file: &str) -> Name {
        format_smolstr!("{}{step}:{file}", self.prefix)
    }

    /// Reads the workflow a step uses and keeps it as a macro. Returns the names of its results.
    fn used_macro(&mut self, ctx: &mut Context, step: &str, file: &Node) -> Option<Vec<Name>> {
        let name = ctx.string(file)?;
        let path = self.directory.join(name.as_str());
        if self.depth >= MAX_USE_DEPTH {
            ctx.error(
                "use-depth",
                file.span,
                format!("workflows use each other more than {MAX_USE_DEPTH} levels deep"),
            )
            .help("a workflow must not use itself");
            return None;
        }
        let text = self.sources.read(&path).map_err(|m| ctx.error("unreadable", file.span, m).code).ok()?;
        let source = self.sources.add(&path, text.clone());
        let documents = yaml::parse(&text, source, &mut ctx.diags);
        let node = documents.first()?;
        let macro_id = self.macro_id(step, &name);
        let directory = path.parent().unwrap_or(Path::new(".")).to_path_buf();
        let mut inner = ShortReader::new(&directory, &[], self.sources);
        inner.prefix = format!("{macro_id}/");
        inner.depth = self.depth + 1;
        let workflow = inner.workflow(ctx, node)?;
        let (services, macros) = (inner.services, inner.macros);
        self.services.extend(services);
        self.macros.extend(macros);
        let results: Vec<(Name, Name)> =
            workflow.results.iter().map(|r| (r.var.clone(), r.name.clone())).collect();
        let names = results.iter().map(|(_, name)| name.clone()).collect();
        self.used.insert(macro_id.clone(), results);
        self.macros.push(sub_workflow(macro_id, workflow, node.span));
        Some(names)
    }
}

/// A workflow as a macro: its inputs are parameters with defaults, its results are outputs.
fn sub_workflow(id: Name, workflow: Workflow, span: Span) -> Macro {
    let inputs = workflow.vars.iter().map(|v| MacroParameter {
        id: v.id.clone(),
        direction: Direction::Input,
        default: v.value.clone(),
        span: v.span,
    });
    let outputs = workflow.results.iter().map(|r| MacroParameter {
        id: r.var.clone(),
        direction: Direction::Output,
        default: None,
        span: r.span,
    });
    let parameters = inputs.chain(outputs).collect();
    let name = workflow.name.unwrap_or_else(|| id.to_string());
    Macro {
        id,
        name,
        description: String::new(),
        parameters,
        vars: Vec::new(),
        actions: workflow.actions,
        span,
    }
}

/// `retries: 2` means two more attempts, with growing pauses; a mapping says it exactly.
fn retries(ctx: &mut Context, node: &Node) -> Option<RetryPolicy> {
    if node.as_map().is_some() {
        return ctx.retry_policy(node);
    }
    let n = ctx.integer(node)?;
    Some(RetryPolicy {
        max_attempts: n.max(0) as i32 + 1,
        delay: 500,
        exponential_backoff: 2,
        max_delay: Some(60_000),
        exit: None,
    })
}

/// In the short form, running out of time is a failure.
fn as_error(policy: TimeoutPolicy) -> TimeoutPolicy {
    TimeoutPolicy { error_on_timeout: true, ..policy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_mentions_what_it_needs() {
        let text = "
catena: 1
inputs: { xs: [a, b], n: 3 }
steps:
  one: { for: x in xs, run: 'echo {x} {n} > {out}', out: '{x}.txt' }
  two: { run: 'cat {one.out} > {out}', out: all.txt }
results: { all: '{two.out}' }
";
        let mut ctx = Context::new("workflow");
        let mut sources = Sources::default();
        let nodes = yaml::parse(text, 0, &mut ctx.diags);
        let mut reader = ShortReader::new(Path::new("."), &[], &mut sources);
        let workflow = reader.workflow(&mut ctx, &nodes[0]).unwrap();
        assert!(ctx.diags.is_empty(), "{:?}", ctx.diags);
        let mut library = crate::Library::default();
        for s in reader.services {
            library.add_service(s).unwrap();
        }
        let found = crate::validate_workflow(&workflow, &library);
        assert!(found.is_empty(), "{found:?}");
        let Action::For(f) = &workflow.actions[0] else { panic!("a loop") };
        assert_eq!(f.output[0].id, "one.out");
        assert_eq!(f.yield_to_output[0].id, "one.out[]");
    }

    #[test]
    fn a_task_is_started_as_usual_or_exclusively() {
        let read = |start: &str| {
            let text = format!("catena: 1\nsteps: {{ one: {{ run: 'pay', start: {start} }} }}\n");
            let mut ctx = Context::new("workflow");
            let mut sources = Sources::default();
            let nodes = yaml::parse(&text, 0, &mut ctx.diags);
            let workflow = ShortReader::new(Path::new("."), &[], &mut sources).workflow(&mut ctx, &nodes[0]);
            let workflow = workflow.unwrap();
            let Action::Execute(e) = &workflow.actions[0] else { panic!("a step") };
            (e.options().exclusive, ctx.diags.iter().map(|d| d.code).collect::<Vec<_>>())
        };
        assert_eq!(read("exclusive"), (true, vec![]));
        assert_eq!(read("twice"), (false, vec!["bad-start"]));
    }
}
