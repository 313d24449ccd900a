//! Rules: values that say what reacts with what.

use crate::ast::{Known, RuleAst};
use crate::code::Code;
use crate::functions::Extern;
use smol_str::SmolStr;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A rule. Two rules are the same if they read the same, whatever they are called.
pub struct Rule {
    pub(crate) name: Option<SmolStr>,
    pub(crate) ast: RuleAst,
    pub(crate) code: Code,
    /// The functions of the host that it calls, in the order of their names.
    pub(crate) externs: Arc<[Extern]>,
    depth: u16,
    text: Box<str>,
}

impl Rule {
    pub(crate) fn new(name: Option<SmolStr>, ast: RuleAst, externs: Arc<[Extern]>) -> Arc<Self> {
        let code = Code::new(&ast, &externs);
        let depth = ast.depth();
        let text = crate::print::rule_text(&ast).into();
        Arc::new(Self { name, ast, code, externs, depth, text })
    }

    /// The rule with values in place of some variables.
    pub(crate) fn closed(ast: &RuleAst, known: &Known, externs: &Arc<[Extern]>) -> Arc<Self> {
        Self::new(None, ast.replaced(known), externs.clone())
    }

    /// What `let` calls it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How it is called in traces and messages: its name, or where it is written.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => name.to_string(),
            None => format!("rule at {}:{}", self.ast.span.line, self.ast.span.column),
        }
    }

    /// How it reads.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it is written.
    pub fn span(&self) -> catena_model::Span {
        self.ast.span
    }

    /// Whether it disappears after one reaction.
    pub fn is_once(&self) -> bool {
        self.ast.once
    }

    /// Rules with a higher number come first.
    pub fn priority(&self) -> i64 {
        self.ast.priority
    }

    /// The TAGs its patterns start with: of what is consumed, then of what is kept. `None` for patterns without.
    pub fn heads(&self) -> impl Iterator<Item = Option<&str>> {
        self.ast.patterns().map(crate::ast::Pattern::head)
    }

    /// The functions of the host that it calls.
    pub fn externs(&self) -> &[Extern] {
        &self.externs
    }

    pub(crate) fn depth(&self) -> u16 {
        self.depth
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.text() == other.text()
    }
}

impl Eq for Rule {}

impl PartialOrd for Rule {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rule {
    fn cmp(&self, other: &Self) -> Ordering {
        if std::ptr::eq(self, other) { Ordering::Equal } else { self.text().cmp(other.text()) }
    }
}

impl Hash for Rule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}
