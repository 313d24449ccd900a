//! Reads workflows of every form: compositions are compiled, everything else is read as it is.

use super::compile::compile;
use super::composition::Composition;
use super::document::{is_composition, read};
use catena_model::{Diagnostics, LoadOptions, Loaded, WORKFLOW_FILES, parse_yaml, read_text};
use std::path::{Path, PathBuf};

/// Like [`catena_model::load`], also for compositions.
pub fn load(path: &Path, options: &LoadOptions) -> Loaded {
    let file = workflow_file(path);
    match read_text(&file) {
        Ok(text) if is_composition_text(&text) => load_text(&file, &text, options),
        _ => catena_model::load(path, options),
    }
}

/// The file that a path stands for: a directory has a `workflow.yaml` or the like.
pub fn workflow_file(path: &Path) -> PathBuf {
    let inside = || WORKFLOW_FILES.iter().map(|f| path.join(f)).find(|f| f.is_file());
    let found = if path.is_dir() { inside() } else { None };
    found.unwrap_or_else(|| path.to_path_buf())
}

/// Like [`catena_model::load_text`], also for compositions.
pub fn load_text(name: &Path, text: &str, options: &LoadOptions) -> Loaded {
    if !is_composition_text(text) {
        return catena_model::load_text(name, text, options);
    }
    let mut diags = Diagnostics::default();
    let documents = parse_yaml(text, 0, &mut diags);
    let Some(document) = documents.first().filter(|d| is_composition(d)) else {
        return catena_model::load_text(name, text, options);
    };
    let composition = read(document, &mut diags);
    // What is wrong is told; nothing is compiled then.
    let compiled = compile(composition.as_ref().unwrap_or(&Composition::default()));
    let mut loaded = catena_model::load_text(name, &compiled.text, options);
    if composition.is_none() {
        (loaded.workflow, loaded.expanded) = (None, None);
        loaded.diags = diags;
    } else {
        let spans = workflow_spans(document);
        loaded.diags.relocate(|span| {
            let at = compiled
                .workflow_at(span.line)
                .and_then(|id| spans.iter().find(|(known, _)| known == id.as_str()));
            at.map_or(document.span, |(_, span)| *span)
        });
    }
    loaded.sources.set_main(text.into());
    loaded
}

/// Reads a composition from a file.
pub fn read_composition(path: &Path) -> Result<Composition, (Diagnostics, catena_model::Sources)> {
    let mut diags = Diagnostics::default();
    let mut sources = catena_model::Sources::default();
    let text = match read_text(path) {
        Ok(text) => text,
        Err(message) => {
            diags.error("unreadable", catena_model::Span::default(), "", message);
            return Err((diags, sources));
        }
    };
    parse_composition(&text).map_err(|diags| {
        sources.add(path, text.clone());
        (diags, sources)
    })
}

/// Reads a composition from a text.
pub fn parse_composition(text: &str) -> Result<Composition, Diagnostics> {
    let mut diags = Diagnostics::default();
    let documents = parse_yaml(text, 0, &mut diags);
    let composition = documents.first().and_then(|d| read(d, &mut diags));
    composition.ok_or(diags)
}

fn workflow_spans(document: &catena_model::Node) -> Vec<(String, catena_model::Span)> {
    let workflows = document.get("workflows").and_then(catena_model::Node::as_map).unwrap_or_default();
    workflows.iter().filter_map(|(k, _)| Some((k.as_str()?.to_owned(), k.span))).collect()
}

/// Whether a text is that of a composition, as far as its first lines tell: large workflows of other forms are not parsed
/// twice.
pub fn is_composition_text(text: &str) -> bool {
    let start = |line: &str| line.trim_start_matches(['{', ' ', '"']).starts_with("composition");
    text.lines().take(50).any(start)
}
