//! Problems in documents, told so that a reader can fix them: what, where, why, what to do.

use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a source document. Lines and columns count from 1; 0 means "no place".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which document of a [`Sources`] collection.
    pub source: u16,
    /// Length in characters, at least 1, on one line.
    pub len: u16,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

/// One text that was read, with the name to show for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// How the user named it.
    pub name: PathBuf,
    /// The whole text.
    pub text: Arc<str>,
}

/// All documents of one load, so that a [`Span`] can be shown with its line of text.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    list: Vec<Source>,
    /// Texts that are in memory already, by the path they would be read from.
    given: HashMap<PathBuf, Arc<str>>,
}

impl Sources {
    /// Sources that are read from memory where they can be.
    pub(crate) fn with(given: &[(PathBuf, Arc<str>)]) -> Self {
        Self { list: Vec::new(), given: given.iter().cloned().collect() }
    }

    /// The text at a path.
    pub(crate) fn read(&self, path: &Path) -> Result<Arc<str>, String> {
        self.given.get(path).cloned().map_or_else(|| crate::document::read_text(path), Ok)
    }

    /// Adds a document and returns its number for use in spans.
    pub fn add(&mut self, name: &Path, text: Arc<str>) -> u16 {
        self.list.push(Source { name: name.to_path_buf(), text });
        (self.list.len() - 1) as u16
    }

    /// The document a span points into.
    pub fn get(&self, source: u16) -> Option<&Source> {
        self.list.get(usize::from(source))
    }

    /// The text of the first document, which is the workflow itself.
    pub fn main(&self) -> Option<&Source> {
        self.list.first()
    }

    /// Shows another text in place of the first document, which was made from it.
    pub fn set_main(&mut self, text: Arc<str>) {
        if let Some(main) = self.list.first_mut() {
            main.text = text;
        }
    }

    /// All documents in the order they were read.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.list.iter()
    }
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The document cannot be run.
    Error,
    /// The document runs, but probably not as meant.
    Warning,
}

/// One problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable, short name for the kind of problem, such as `unknown-service`.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Where in the text.
    pub span: Span,
    /// Where in the workflow, such as `workflow->actions[4](for-each)->actions[0](execute cp)`.
    pub path: String,
}

/// A diagnostic with its place spelled out, for `--json`.
#[derive(Serialize)]
pub struct DiagnosticJson<'a> {
    severity: Severity,
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    line: u32,
    #[serde(skip_serializing_if = "is_zero")]
    column: u32,
    path: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Diagnostic {
    /// The form that `--json` prints.
    pub fn to_json<'a>(&'a self, sources: &Sources) -> DiagnosticJson<'a> {
        DiagnosticJson {
            severity: self.severity,
            code: self.code,
            message: &self.message,
            help: self.help.as_deref(),
            file: sources.get(self.span.source).map(|s| s.name.display().to_string()),
            line: self.span.line,
            column: self.span.column,
            path: &self.path,
        }
    }

    /// The form a terminal shows: message, place, the line of text, help.
    pub fn render<'a>(&'a self, sources: &'a Sources) -> impl fmt::Display + 'a {
        Rendered { diagnostic: self, sources }
    }
}

struct Rendered<'a> {
    diagnostic: &'a Diagnostic,
    sources: &'a Sources,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = self.diagnostic;
        let word = match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        writeln!(f, "{word}[{}]: {}", d.code, d.message)?;
        let source = self.sources.get(d.span.source).filter(|_| d.span.line > 0);
        if let Some(source) = source {
            let place = format!("{}:{}:{}", source.name.display(), d.span.line, d.span.column);
            writeln!(f, "  --> {place}")?;
            if let Some(line) = source.text.lines().nth(d.span.line as usize - 1) {
                let number = d.span.line.to_string();
                let margin = " ".repeat(number.len());
                let shown: String = line.chars().take(160).collect();
                let before = " ".repeat(d.span.column.saturating_sub(1) as usize);
                writeln!(f, " {margin} |\n {number} | {shown}")?;
                if (d.span.column as usize) <= 160 {
                    writeln!(f, " {margin} | {before}{}", "^".repeat(d.span.len.clamp(1, 80).into()))?;
                }
            }
        }
        if !d.path.is_empty() {
            writeln!(f, "  in {}", d.path)?;
        }
        if let Some(help) = &d.help {
            writeln!(f, "  help: {help}")?;
        }
        Ok(())
    }
}

/// Messages are cut off after so many characters.
const MAX_MESSAGE: usize = 1000;

/// Collects problems so that all of them are reported, not just the first.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds an error and returns it for refinement with [`Diagnostic::help`].
    pub fn error(
        &mut self,
        code: &'static str,
        span: Span,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Error, code, span, path.into(), message.into())
    }

    /// Adds a warning.
    pub fn warning(
        &mut self,
        code: &'static str,
        span: Span,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.push(Severity::Warning, code, span, path.into(), message.into())
    }

    fn push(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Span,
        path: String,
        message: String,
    ) -> &mut Diagnostic {
        let message = shortened(message);
        self.list.push(Diagnostic { severity, code, message, help: None, span, path });
        self.list.last_mut().expect("just pushed")
    }

    /// Whether anything in here prevents running.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// How many errors there are.
    pub fn error_count(&self) -> usize {
        self.list.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// Changes the problem found last.
    pub(crate) fn amend_last(&mut self, f: impl FnOnce(&mut Diagnostic)) {
        if let Some(last) = self.list.last_mut() {
            f(last);
        }
    }

    /// Points to other places of the first document, which was made from another.
    pub fn relocate(&mut self, to: impl Fn(Span) -> Span) {
        self.list
            .iter_mut()
            .filter(|d| d.span.source == 0 && d.span.line > 0)
            .for_each(|d| d.span = to(d.span));
    }

    /// All problems in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Takes over the problems of another collection that are not known already.
    pub fn extend(&mut self, other: Diagnostics) {
        for d in other.list {
            // Beyond a few hundred problems a repetition does no more harm than the search for it.
            if self.list.len() > 500 || !self.list.contains(&d) {
                self.list.push(d);
            }
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Diagnostic {
    /// Says what to do about the problem.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Points to the nearest known name, if one is near enough to be a slip of the pen.
    pub fn did_you_mean<'a>(&mut self, wrong: &str, known: impl IntoIterator<Item = &'a str>) -> &mut Self {
        let mut names: Vec<&str> = known.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        if let Some(near) = nearest(wrong, names.iter().copied()) {
            self.help = Some(format!("did you mean `{near}`?"));
        } else if !names.is_empty() && names.len() <= 12 {
            self.help = Some(format!("known names: {}", names.join(", ")));
        }
        self
    }
}

/// A message that can be read, also if it has a name of millions of characters.
fn shortened(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// The known name with the smallest edit distance to `wrong`, if it is close.
pub fn nearest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes words that are longer, and comparing them would take long.
    if wrong.len() > 200 {
        return None;
    }
    let length = wrong.chars().count();
    let limit = (length / 3).clamp(1, 4);
    let wrong_lower = wrong.to_lowercase();
    known
        .filter(|k| *k != wrong && k.len() <= 800 && k.chars().count().abs_diff(length) <= limit)
        .map(|k| (edit_distance(&wrong_lower, &k.to_lowercase()), k))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, k)| k)
}

/// Number of insertions, deletions, substitutions and swaps of neighbours between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_slip_of_the_pen_away_or_none() {
        let known = ["align", "sort", "call_variants"];
        assert_eq!(nearest("aling", known.into_iter()), Some("align"));
        assert_eq!(nearest("call_variant", known.into_iter()), Some("call_variants"));
        assert_eq!(nearest("plot", known.into_iter()), None);
    }
}
