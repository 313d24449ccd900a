//! One list of nodes from a file, what it includes, and what it splices in.

mod connect;

use super::lex::Token;
use super::parse::{Command, Definition, Statement, is, parse};
use super::{DagFile, DagNode, LoadedDag, NodeKind, ScriptKind};
use crate::Name;
use crate::diag::{Diagnostics, Sources, Span};
use smol_str::format_smolstr;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files deeper in each other than this are taken for a mistake.
const MAX_DEPTH: usize = 200;
/// So are more files than this, as a few that take in each other twice easily make.
const MAX_TAKEN_IN: usize = 1 << 17;
/// So many problems are told with a guess what was meant.
const MAX_HELPED: usize = 20;
/// And pins with higher numbers.
const MAX_PIN: u32 = 1 << 16;

pub(super) fn assemble(path: &Path, rescue: Option<&Path>) -> LoadedDag {
    let mut assembler = Assembler::default();
    assembler.dag.path = path.to_path_buf();
    let directory = Arc::from(path.parent().unwrap_or(Path::new("")));
    // What a rescue file says is said after everything else.
    let texts: Result<Vec<Text>, String> =
        std::iter::once(path).chain(rescue).map(|p| assembler.read(p)).collect();
    match texts {
        Ok(texts) => {
            let mut scope = Scope::new(String::new(), directory, vec![texts[0].file.clone()]);
            let sources: Vec<u16> = texts.iter().map(|text| text.source).collect();
            assembler.file(&sources, &mut scope);
        }
        Err(error) => _ = assembler.diags.error("unreadable", Span::default(), "", error),
    }
    assembler.unite_arcs();
    let Assembler { dag, diags, sources, .. } = assembler;
    LoadedDag { dag, diags, sources }
}

#[derive(Default)]
struct Assembler {
    dag: DagFile,
    diags: Diagnostics,
    sources: Sources,
    /// The files that were read, by the paths they were named by.
    texts: HashMap<PathBuf, Text>,
    /// There are nodes that nothing may wait for.
    has_special: bool,
    /// How many files were spliced in or included.
    taken_in: usize,
    /// Whether a node has parents, and children.
    connected: Vec<[bool; 2]>,
    /// Nodes of splices by their full names, once somebody asks.
    inner: HashMap<Name, u32>,
}

/// A file that was read.
#[derive(Clone)]
struct Text {
    source: u16,
    /// The one path that leads to it without detours, by which it is recognised.
    file: Arc<Path>,
}

/// A file in which names mean something: the DAG file, or one that is spliced in.
struct Scope {
    /// The names of the splices it is in, each with a `+`.
    prefix: String,
    directory: Arc<Path>,
    /// Files that are being read, from the outermost to this.
    files: Vec<Arc<Path>>,
    names: HashMap<Name, Named>,
    /// Nodes by the number of the pin they are connected to.
    pins: [Vec<Vec<u32>>; 2],
    /// A dependency was left for later, since it has names that are not defined yet. Those after it have to wait too, so
    /// that all keep their order.
    waits_for_names: bool,
    /// The nodes that were named last as a parent and as a child.
    recent: [Recent; 2],
}

#[derive(Clone, Copy, Default)]
struct Recent {
    node: u32,
    /// Whether it is the one that was named before it, or the next.
    follows: bool,
}

enum Named {
    Node(u32),
    Splice(Box<Spliced>),
}

/// What others can be connected to.
struct Spliced {
    initial: Vec<u32>,
    terminal: Vec<u32>,
    pins: [Vec<Vec<u32>>; 2],
}

impl Assembler {
    fn read(&mut self, path: &Path) -> Result<Text, String> {
        if let Some(text) = self.texts.get(path) {
            return Ok(text.clone());
        }
        if self.texts.len() >= usize::from(u16::MAX) {
            return Err(format!("{}: there are too many files", path.display()));
        }
        let content = self.sources.read(path)?;
        let file = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let text = Text { source: self.sources.add(path, content), file: file.into() };
        self.texts.insert(path.to_path_buf(), text.clone());
        Ok(text)
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diags.error(code, span, "", message);
    }

    /// Takes in a whole file, with what another says about it. Returns what others can be connected to.
    fn file(&mut self, sources: &[u16], scope: &mut Scope) -> Spliced {
        let first = self.dag.nodes.len() as u32;
        let mut later = Vec::new();
        for source in sources {
            self.statements(*source, scope, &mut later);
        }
        for statement in later {
            self.apply(statement, scope);
        }
        let own = first..self.dag.nodes.len() as u32;
        let loose = |side: usize| own.clone().filter(|n| !self.connected[*n as usize][side]).collect();
        Spliced { initial: loose(0), terminal: loose(1), pins: std::mem::take(&mut scope.pins) }
    }

    /// Reads the commands of a file, with those of included files in their place. Definitions count at once; what
    /// refers to them may come before them, and is left for later.
    fn statements(&mut self, source: u16, scope: &mut Scope, later: &mut Vec<Statement>) {
        let Some(text) = self.sources.get(source).map(|s| s.text.clone()) else { return };
        let mut diags = std::mem::take(&mut self.diags);
        parse(&text, source, &mut diags, |statement, diags| {
            std::mem::swap(&mut self.diags, diags);
            match &statement.command {
                Command::Parent { names, parents, weak } if !scope.waits_for_names => {
                    let (parents, children) = names.split_at(*parents as usize);
                    scope.waits_for_names =
                        !self.connect_known(parents, children, *weak, statement.span, scope);
                    if scope.waits_for_names {
                        later.push(statement);
                    }
                }
                Command::Include(file) => self.include(file, scope, later),
                Command::Node(_) | Command::Description { .. } | Command::Splice { .. } => {
                    self.define(statement, scope);
                }
                _ => later.push(statement),
            }
            std::mem::swap(&mut self.diags, diags);
        });
        self.diags = diags;
    }

    fn include(&mut self, file: &Token, scope: &mut Scope, later: &mut Vec<Statement>) {
        let text = match self.take_in(&scope.directory.join(file.text.as_str()), scope) {
            Ok(text) => text,
            Err((code, error)) => {
                return self.error(code, file.span, format!("INCLUDE {}: {error}", file.text));
            }
        };
        scope.files.push(text.file);
        self.statements(text.source, scope, later);
        scope.files.pop();
    }

    /// A file that stands in a place of another, if that can end.
    fn take_in(&mut self, path: &Path, scope: &Scope) -> Result<Text, (&'static str, String)> {
        let text = self.read(path).map_err(|error| ("dag-file", error))?;
        if scope.files.contains(&text.file) || scope.files.len() > MAX_DEPTH {
            return Err(("dag-recursion", "the file takes in itself".to_owned()));
        }
        if self.taken_in >= MAX_TAKEN_IN {
            return Err(("dag-recursion", format!("more than {MAX_TAKEN_IN} files are taken in")));
        }
        self.taken_in += 1;
        Ok(text)
    }

    /// Gives names to nodes and splices.
    fn define(&mut self, statement: Statement, scope: &mut Scope) {
        match statement.command {
            Command::Node(definition) => self.define_node(*definition, scope),
            Command::Description { name, text } => {
                let before = self.dag.descriptions.insert(name.text.clone(), text);
                if before.is_some() {
                    let message = format!("there is another description `{}`; this one counts", name.text);
                    self.diags.warning("dag-description", name.span, "", message);
                }
            }
            Command::Splice { name, file, dir } => self.splice(&name, &file, dir.as_deref(), scope),
            _ => {}
        }
    }

    fn define_node(&mut self, definition: Definition, scope: &mut Scope) {
        let Definition { kind, name, submit, dir, noop, done } = definition;
        let only_one = matches!(kind, NodeKind::Final | NodeKind::Provisioner);
        if only_one && !scope.prefix.is_empty() {
            let message = format!("a DAG that is spliced in cannot have a {} node", kind.word());
            return self.error("dag-node", name.span, message);
        }
        if only_one && self.dag.nodes.iter().any(|n| n.kind == kind) {
            let message = format!("there is a {} node already, and there can be only one", kind.word());
            return self.error("dag-node", name.span, message);
        }
        if !self.is_free(&name, scope) {
            return;
        }
        self.has_special |= !kind.is_ordinary();
        scope.names.insert(name.text.clone(), Named::Node(self.dag.nodes.len() as u32));
        self.connected.push([false; 2]);
        let full = if scope.prefix.is_empty() {
            name.text
        } else {
            format_smolstr!("{}{}", scope.prefix, name.text)
        };
        let directory =
            dir.map_or_else(|| scope.directory.clone(), |d| scope.directory.join(d.as_str()).into());
        let (vars, rules) = (Vec::new(), None);
        let span = name.span;
        self.dag.nodes.push(DagNode {
            name: full,
            kind,
            noop,
            done,
            priority: 0,
            span,
            submit,
            directory,
            vars,
            rules,
        });
    }

    fn is_free(&mut self, name: &Token, scope: &Scope) -> bool {
        let what = match scope.names.get(&name.text) {
            None => return true,
            Some(Named::Node(_)) => "node",
            Some(Named::Splice(_)) => "splice",
        };
        self.error("dag-name", name.span, format!("there is another {what} `{}`", name.text));
        false
    }

    fn splice(&mut self, name: &Token, file: &str, dir: Option<&str>, scope: &mut Scope) {
        let directory: Arc<Path> =
            dir.map_or_else(|| scope.directory.clone(), |d| scope.directory.join(d).into());
        if !self.is_free(name, scope) {
            return;
        }
        let text = match self.take_in(&directory.join(file), scope) {
            Ok(text) => text,
            Err((code, error)) => {
                return self.error(code, name.span, format!("SPLICE {}: {error}", name.text));
            }
        };
        let prefix = format!("{}{}+", scope.prefix, name.text);
        let mut files = scope.files.clone();
        files.push(text.file);
        let mut inner = Scope::new(prefix, directory, files);
        self.dag.splices += 1;
        let spliced = self.file(&[text.source], &mut inner);
        scope.names.insert(name.text.clone(), Named::Splice(Box::new(spliced)));
    }

    /// Says what commands say about nodes that are defined.
    fn apply(&mut self, statement: Statement, scope: &mut Scope) {
        let Statement { span, command, .. } = statement;
        let is_root = scope.prefix.is_empty();
        match command {
            Command::Parent { names, parents, weak } => {
                let (parents, children) = names.split_at(parents as usize);
                self.connect(parents, children, weak, span, scope);
            }
            Command::Script { kind, node, script } => {
                self.each(&node, "SCRIPT", scope, |n| {
                    let place = match kind {
                        ScriptKind::Pre => &mut n.rules_mut().pre,
                        ScriptKind::Post => &mut n.rules_mut().post,
                        ScriptKind::Hold => &mut n.rules_mut().hold,
                    };
                    *place = Some((*script).clone());
                });
            }
            Command::PreSkip { node, code } => {
                self.each(&node, "PRE_SKIP", scope, |n| n.rules_mut().pre_skip = Some(code));
            }
            Command::Retry { node, max, unless } => {
                self.each(&node, "RETRY", scope, |n| n.rules_mut().retry = Some((max, unless)));
            }
            Command::Abort { node, code, returns } => {
                self.each(&node, "ABORT-DAG-ON", scope, |n| n.rules_mut().abort = Some((code, returns)));
            }
            Command::Tolerance { node, tolerance } => {
                self.each(&node, "TOLERANCE", scope, |n| n.rules_mut().tolerance = Some(tolerance));
            }
            Command::Vars { node, append, pairs } => {
                self.each(&node, "VARS", scope, |n| {
                    for (key, value) in &pairs {
                        n.vars.retain(|(known, ..)| !known.eq_ignore_ascii_case(key));
                        n.vars.push((key.clone(), value.clone(), append.unwrap_or(false)));
                    }
                });
            }
            Command::Priority { node, value } => self.each(&node, "PRIORITY", scope, |n| n.priority = value),
            Command::Category { node, name } => {
                let category = scope.category(&name);
                self.each(&node, "CATEGORY", scope, |n| n.rules_mut().category = Some(category.clone()));
            }
            Command::MaxJobs { category, limit } => {
                // What is said further up counts.
                self.dag
                    .categories
                    .entry(scope.category(&category))
                    .and_modify(|l| *l = limit)
                    .or_insert(limit);
            }
            Command::Done(node) => self.one(&node, "DONE", scope, |n| n.done = true),
            Command::SavePoint { node, file } => {
                self.one(&node, "SAVE_POINT_FILE", scope, |n| {
                    n.rules_mut().save_point = Some(file.unwrap_or_default());
                });
            }
            Command::Config(file) if is_root => self.config(&file, scope),
            Command::Env { set, text } if is_root => self.dag.env.push((set, text)),
            Command::JobAttribute(text) if is_root => self.dag.job_attributes.push(text),
            Command::Dot(dot) if is_root => self.dag.dot = Some(*dot),
            Command::NodeStatus(file) if is_root => self.dag.node_status = Some(file),
            Command::JobStateLog(file) if is_root => self.dag.jobstate_log = Some(file),
            Command::Reject => {
                self.diags
                    .error("dag-reject", span, "", "the file is marked as not to be run")
                    .help("remove the command REJECT when the file is ready");
            }
            Command::Connect(splices) => self.connect_pins(&splices.0, &splices.1, span, scope),
            Command::Pin { node, number, .. } if number > MAX_PIN => {
                self.pin_problem(
                    node.span,
                    format!("pin {number} is more than {MAX_PIN}, the highest there can be"),
                );
            }
            Command::Pin { node, number, input } => {
                let nodes = match scope.names.get(&node.text) {
                    Some(Named::Node(n)) => vec![*n],
                    Some(Named::Splice(s)) if input => s.initial.clone(),
                    Some(Named::Splice(s)) => s.terminal.clone(),
                    None => {
                        let message = format!("there is no node `{}` to connect", node.text);
                        return self.pin_problem(node.span, message);
                    }
                };
                let pins = &mut scope.pins[usize::from(input)];
                let at = number as usize - 1;
                if pins.len() <= at {
                    pins.resize(at + 1, Vec::new());
                }
                pins[at].extend(nodes);
            }
            _ => {}
        }
    }

    fn config(&mut self, file: &Token, scope: &Scope) {
        let path = scope.directory.join(file.text.as_str());
        if self.dag.config.is_some() {
            self.error("dag-config", file.span, "CONFIG: there is another file with settings already");
        } else if !path.exists() {
            let message = format!("CONFIG: {} does not exist", path.display());
            self.diags.warning("dag-file", file.span, "", message);
        }
        self.dag.config.get_or_insert(path);
    }

    fn undefined(&mut self, node: &Token, command: &str, scope: &Scope) {
        let message = format!("{command}: there is no node `{}`", node.text);
        // Looking for similar names takes a while if there are many, and helps only somebody who can read it all.
        let is_helped = self.diags.iter().take(MAX_HELPED).count() < MAX_HELPED;
        let error = self.diags.error("dag-undefined", node.span, "", message);
        if is_helped {
            error.did_you_mean(&node.text, scope.names.keys().map(Name::as_str));
        }
    }

    /// Changes one node.
    fn one(&mut self, node: &Token, command: &str, scope: &Scope, change: impl FnOnce(&mut DagNode)) {
        match scope.names.get(&node.text) {
            Some(Named::Node(n)) => change(&mut self.dag.nodes[*n as usize]),
            None if let Some(n) = self.inner(node, scope) => change(&mut self.dag.nodes[n as usize]),
            Some(Named::Splice(_)) => {
                let message = format!("{command} cannot be said of the splice `{}`", node.text);
                self.error("dag-splice", node.span, message);
            }
            None if is(node, "ALL_NODES") => {
                self.error("dag-all-nodes", node.span, format!("{command} cannot be said of ALL_NODES"));
            }
            None => self.undefined(node, command, scope),
        }
    }

    /// A node of a splice, which goes by its full name.
    fn inner(&mut self, node: &Token, scope: &Scope) -> Option<u32> {
        if !node.text.contains('+') {
            return None;
        }
        if self.inner.len() < self.dag.nodes.len() {
            self.inner = (0..).zip(&self.dag.nodes).map(|(i, n)| (n.name.clone(), i)).collect();
        }
        self.inner.get(format!("{}{}", scope.prefix, node.text).as_str()).copied()
    }

    /// Changes one node, or all ordinary ones of the file.
    fn each(&mut self, node: &Token, command: &str, scope: &Scope, mut change: impl FnMut(&mut DagNode)) {
        if !is(node, "ALL_NODES") {
            return self.one(node, command, scope, change);
        }
        for named in scope.names.values() {
            if let Named::Node(n) = named {
                let node = &mut self.dag.nodes[*n as usize];
                if !matches!(node.kind, NodeKind::Final | NodeKind::Service) {
                    change(node);
                }
            }
        }
    }
}

impl Scope {
    fn new(prefix: String, directory: Arc<Path>, files: Vec<Arc<Path>>) -> Self {
        Self {
            prefix,
            directory,
            files,
            names: HashMap::new(),
            pins: Default::default(),
            waits_for_names: false,
            recent: Default::default(),
        }
    }

    /// The full name of a category. One with a `+` is the same everywhere.
    fn category(&self, name: &str) -> Name {
        if name.starts_with('+') { Name::new(name) } else { Name::new(format!("{}{name}", self.prefix)) }
    }
}

impl NodeKind {
    /// Whether it can wait for others, and others for it.
    fn is_ordinary(self) -> bool {
        matches!(self, NodeKind::Job | NodeKind::SubDag)
    }

    fn word(self) -> &'static str {
        match self {
            NodeKind::Job => "JOB",
            NodeKind::Final => "FINAL",
            NodeKind::Provisioner => "PROVISIONER",
            NodeKind::Service => "SERVICE",
            NodeKind::SubDag => "SUBDAG",
        }
    }
}
