//! Reads a workflow from files, together with the services and macros it may use.

use crate::Name;
use crate::diag::{Diagnostics, Sources, Span};
use crate::expand::expand_macros;
use crate::library::Library;
use crate::long::{self, LongReader};
use crate::read::{Context, Note};
use crate::short::ShortReader;
use crate::validate::{included_macros, validate_macro, validate_workflow};
use crate::workflow::{Macro, Service, Workflow};
use crate::yaml::{self, Node};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File names that are tried when a directory is given in place of a workflow.
pub const WORKFLOW_FILES: [&str; 3] = ["workflow.yaml", "workflow.yml", "workflow.json"];
/// Documents larger than this are refused.
const MAX_BYTES: u64 = 512 << 20;

/// What to read besides the workflow itself.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Files with services.
    pub services: Vec<PathBuf>,
    /// Files with macros.
    pub macros: Vec<PathBuf>,
    /// Values for the workflow's inputs, in place of those in the document.
    pub inputs: Vec<(Name, Value)>,
    /// Texts that are in memory already and need not be read from their paths.
    pub texts: Vec<(PathBuf, Arc<str>)>,
}

/// What a document turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A workflow in either spelling.
    Workflow,
    /// One or more macros.
    Macros,
    /// A list of services.
    Services,
}

/// The outcome of a load. If `diags` has no errors, `workflow` is valid and free of include actions.
#[derive(Debug)]
pub struct Loaded {
    /// All texts that were read, for messages.
    pub sources: Sources,
    /// The workflow as written, with include actions; `None` for other documents or unreadable ones.
    pub workflow: Option<Workflow>,
    /// The workflow after macro expansion; `None` if anything is wrong.
    pub expanded: Option<Workflow>,
    /// Known services and macros.
    pub library: Library,
    /// Everything that is wrong.
    pub diags: Diagnostics,
    /// What the document is.
    pub kind: DocumentKind,
    /// The directory that relative paths in the workflow refer to.
    pub directory: PathBuf,
}

/// Reads and checks a workflow, or a file of macros or services. `path` may be a directory with a
/// `workflow.yaml` inside. Problems are reported in the result, never by panicking.
pub fn load(path: &Path, options: &LoadOptions) -> Loaded {
    let mut loader = Loader::new(options);
    let found = find_workflow(path);
    match found.and_then(|path| Ok((read_text(&path)?, path))) {
        Ok((text, path)) => loader.document(&path, text),
        Err(message) => {
            loader.diags.error("unreadable", Span::default(), "", message);
            loader.finish(path, DocumentKind::Workflow, None)
        }
    }
}

/// Like [`load`], for a text that is in memory already.
pub fn load_text(name: &Path, text: &str, options: &LoadOptions) -> Loaded {
    Loader::new(options).document(name, text.into())
}

fn find_workflow(path: &Path) -> Result<PathBuf, String> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let candidates = WORKFLOW_FILES.iter().map(|f| path.join(f));
    let found = candidates.into_iter().find(|f| f.is_file());
    found.ok_or_else(|| {
        let names = WORKFLOW_FILES.join(", ");
        format!("{} is a directory without a workflow; expected one of {names} in it", path.display())
    })
}

/// Reads a text file, with messages that say what to do.
pub fn read_text(path: &Path) -> Result<Arc<str>, String> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    if meta.is_dir() {
        return Err(format!("{shown} is a directory, but a file is expected"));
    }
    if meta.len() > MAX_BYTES {
        let size = crate::quantity::Bytes(meta.len());
        return Err(format!("{shown} has {size}; documents of more than 512 MiB are not read"));
    }
    let bytes = std::fs::read(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    String::from_utf8(bytes).map(Into::into).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|b| **b == b'\n').count() + 1;
        let column = valid.iter().rev().take_while(|b| **b != b'\n').count() + 1;
        format!("{shown}:{line}:{column}: the file is not UTF-8 text; convert it, for example with `iconv -t UTF-8`")
    })
}

struct Loader<'o> {
    options: &'o LoadOptions,
    sources: Sources,
    library: Library,
    diags: Diagnostics,
}

impl<'o> Loader<'o> {
    fn new(options: &'o LoadOptions) -> Self {
        Self {
            options,
            sources: Sources::with(&options.texts),
            library: Library::default(),
            diags: Diagnostics::default(),
        }
    }

    fn document(mut self, path: &Path, text: Arc<str>) -> Loaded {
        let source = self.sources.add(path, text.clone());
        let mut reader = LongReader::default();
        let mut ctx: Option<Context> = None;
        let mut read_action = |node: Node, has_id: bool| {
            let ctx = ctx.get_or_insert_with(|| Context::new(if has_id { "macro" } else { "workflow" }));
            reader.stream_action(ctx, &node);
        };
        let mut documents = yaml::parse_streaming(&text, source, &mut self.diags, Some(&mut read_action));
        drop(text);
        let early = ctx.map(|ctx| ctx.diags).unwrap_or_default();
        documents.retain(|d| !d.is_null());
        let directory =
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        for file in self.options.services.clone() {
            self.file(&file, Self::services);
        }
        for file in self.options.macros.clone() {
            self.file(&file, Self::macros);
        }
        let Some(node) = documents.first() else {
            if !self.diags.has_errors() {
                let span = Span { source, len: 1, line: 1, column: 1 };
                self.diags
                    .error("empty-document", span, "", "the document is empty")
                    .help("a workflow has `actions:` (long form) or `catena: 1` and `steps:` (short form)");
            }
            return self.finish(path, DocumentKind::Workflow, None);
        };
        match kind_of(node) {
            DocumentKind::Services => {
                self.services(node);
                self.finish(path, DocumentKind::Services, None)
            }
            DocumentKind::Macros => {
                self.diags.extend(early);
                self.macros_with(node, reader);
                let macros: Vec<Macro> =
                    self.library.macros().filter(|m| m.span.source == source).cloned().collect();
                for m in macros {
                    let found = validate_macro(&m, &self.library, true);
                    self.diags.extend(found);
                }
                self.finish(path, DocumentKind::Macros, None)
            }
            DocumentKind::Workflow => {
                if let Some(services) = node.get("services") {
                    self.services_or_files(services, &directory);
                }
                if let Some(macros) = node.get("macros") {
                    self.macros(macros);
                }
                self.diags.extend(early);
                let workflow = self.workflow(node, &directory, reader);
                drop(documents);
                self.finish(path, DocumentKind::Workflow, workflow)
            }
        }
    }

    /// `reader` has read the actions already.
    fn workflow(&mut self, node: &Node, directory: &Path, mut reader: LongReader) -> Option<Workflow> {
        let mut ctx = Context::new("workflow");
        let (workflow, services, macros) = if is_short_form(node) {
            let mut reader = ShortReader::new(directory, &self.options.inputs, &mut self.sources);
            let workflow = reader.workflow(&mut ctx, node);
            (workflow, reader.services, reader.macros)
        } else {
            let mut workflow = reader.workflow(&mut ctx, node);
            if let Some(workflow) = &mut workflow {
                override_variables(&mut ctx, workflow, &self.options.inputs);
            }
            (workflow, reader.inline_services, Vec::new())
        };
        self.diags.extend(ctx.diags);
        for s in services {
            self.add_service(s);
        }
        for m in macros {
            self.add_macro(m);
        }
        workflow
    }

    fn finish(mut self, path: &Path, kind: DocumentKind, workflow: Option<Workflow>) -> Loaded {
        let mut expanded = None;
        if let Some(workflow) = &workflow {
            let found = validate_workflow(workflow, &self.library);
            self.diags.extend(found);
            // Macros nobody includes may well use services this workflow knows nothing about.
            let valid = !self.diags.has_errors();
            let included = included_macros(&workflow.actions, &self.library);
            for m in self.library.macros() {
                let with_services = valid && included.iter().any(|i| i.id == m.id);
                let found = validate_macro(m, &self.library, with_services);
                self.diags.extend(found);
            }
        }
        let directory =
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        let mut workflow = workflow;
        if !self.diags.has_errors() {
            // Without include actions the expansion is the workflow itself; do not keep it twice.
            let has_macros = self.library.macros().next().is_some();
            let source = if has_macros { workflow.clone() } else { workflow.take() };
            match source.map(|w| expand_macros(w, &self.library)) {
                Some(Ok(w)) => expanded = Some(w),
                Some(Err(found)) => self.diags.extend(found),
                None => {}
            }
        }
        let Self { sources, library, diags, .. } = self;
        Loaded { sources, workflow, expanded, library, diags, kind, directory }
    }

    fn file(&mut self, path: &Path, read: fn(&mut Self, &Node)) {
        match self.sources.read(path) {
            Ok(text) => {
                let source = self.sources.add(path, text.clone());
                for node in yaml::parse(&text, source, &mut self.diags) {
                    read(self, &node);
                }
            }
            Err(message) => {
                self.diags.error("unreadable", Span::default(), "", message);
            }
        }
    }

    /// `services:` in a workflow: definitions, or names of files that hold them.
    fn services_or_files(&mut self, node: &Node, directory: &Path) {
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        if !items.is_empty() && items.iter().all(|n| n.as_str().is_some()) {
            for name in items.iter().filter_map(Node::as_str) {
                self.file(&directory.join(name), Self::services);
            }
        } else {
            self.services(node);
        }
    }

    fn services(&mut self, node: &Node) {
        let mut ctx = Context::new("services");
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        for (i, item) in items.iter().enumerate() {
            if item.is_null() {
                continue;
            }
            ctx.enter("services", Some(i), Note::None);
            if let Some(s) = long::service(&mut ctx, item) {
                self.add_service(s);
            }
            ctx.leave();
        }
        self.diags.extend(ctx.diags);
    }

    fn macros(&mut self, node: &Node) {
        self.macros_with(node, LongReader::default());
    }

    /// `reader` may have read the actions of a single macro already.
    fn macros_with(&mut self, node: &Node, mut reader: LongReader) {
        let mut ctx = Context::new("macro");
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        for item in items.iter().filter(|n| !n.is_null()) {
            if let Some(m) = reader.macro_definition(&mut ctx, item) {
                self.add_macro(m);
            }
        }
        for s in reader.inline_services {
            self.add_service(s);
        }
        self.diags.extend(ctx.diags);
    }

    fn add_service(&mut self, service: Service) {
        if let Err(s) = self.library.add_service(service) {
            self.diags.error(
                "duplicate-service",
                s.span,
                "",
                format!("the service `{}` is defined twice", s.id),
            );
        }
    }

    fn add_macro(&mut self, m: Macro) {
        if let Err(m) = self.library.add_macro(m) {
            self.diags.error("duplicate-macro", m.span, "", format!("the macro `{}` is defined twice", m.id));
        }
    }
}

fn kind_of(node: &Node) -> DocumentKind {
    let sample = node.as_seq().and_then(<[Node]>::first).unwrap_or(node);
    let has = |key| sample.get(key).is_some();
    if has("id") && has("actions") {
        DocumentKind::Macros
    } else if has("id") && (has("path") || has("run")) {
        DocumentKind::Services
    } else {
        DocumentKind::Workflow
    }
}

fn is_short_form(node: &Node) -> bool {
    node.get("catena").is_some() || (node.get("steps").is_some() && node.get("actions").is_none())
}

/// Sets constants of a long-form workflow from outside.
fn override_variables(ctx: &mut Context, workflow: &mut Workflow, inputs: &[(Name, Value)]) {
    for (name, value) in inputs {
        if let Some(var) = workflow.vars.iter_mut().find(|v| v.id == *name) {
            var.value = Some(value.clone());
        } else {
            let known = workflow.vars.iter().map(|v| v.id.as_str());
            ctx.error(
                "unknown-input",
                Span::default(),
                format!("the workflow has no variable `{name}` to set"),
            )
            .did_you_mean(name, known);
        }
    }
}
