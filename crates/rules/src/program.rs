//! Programs: rules, indexes and a solution, read from one text.

use crate::ast::RuleAst;
use crate::engine::Engine;
use crate::functions::Extern;
use crate::network::RuleSet;
use crate::parser::{Declared, MAX_TEXT, Parser};
use crate::rule::Rule;
use crate::solution::Solution;
use crate::value::Value;
use catena_model::{Diagnostics, Sources, Span};
use smol_str::SmolStr;
use std::path::Path;
use std::sync::Arc;

/// What a text declares. Cheap to copy.
#[derive(Clone, Debug)]
pub struct Program(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lets: Vec<(SmolStr, Value)>,
    externs: Vec<Extern>,
    indexes: Vec<Index>,
    main: Option<Solution>,
    warnings: Diagnostics,
    sources: Sources,
}

/// `index TAG by attribute, …`: molecules that are found by the values of attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// What the molecules start with.
    pub tag: SmolStr,
    /// The attributes, in lower case: `speed` is the value of the pair `SPEED:v` in the molecule.
    pub attributes: Vec<SmolStr>,
}

/// A text that is no program, with everything that is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", first_message(diags))]
pub struct Rejected {
    /// The mistakes, and warnings.
    pub diags: Diagnostics,
    /// The text they are in.
    pub sources: Sources,
}

fn first_message(diags: &Diagnostics) -> String {
    diags.iter().next().map(|d| d.message.clone()).unwrap_or_default()
}

impl Program {
    /// Reads a program. The name is shown in messages.
    pub fn read(name: &Path, text: &str) -> Result<Self, Box<Rejected>> {
        let mut sources = Sources::default();
        let mut diags = Diagnostics::default();
        let source = sources.add(name, text.into());
        if text.len() > MAX_TEXT {
            let message = format!("the text has more than {} MiB", MAX_TEXT >> 20);
            diags.error("too-large", Span::default(), "", message);
            return Err(Box::new(Rejected { diags, sources }));
        }
        let mut parser = Parser::new(text, source, &mut diags);
        parser.program();
        let declared = std::mem::take(&mut parser.declared);
        let used = std::mem::take(&mut parser.used);
        warn(&declared, &|name| used.contains(name), &mut diags);
        if diags.has_errors() {
            return Err(Box::new(Rejected { diags, sources }));
        }
        let lets = declared.lets.into_iter().filter_map(|(name, _, value)| Some((name, value?))).collect();
        let main = match declared.main {
            Some(Value::Solution(s)) => Some(s),
            _ => None,
        };
        Ok(Self(Arc::new(Inner {
            lets,
            externs: declared.externs.into_values().collect(),
            indexes: declared.indexes.into_iter().map(|(index, _)| index).collect(),
            main,
            warnings: diags,
            sources,
        })))
    }

    /// The rule that `let` gives a name.
    pub fn rule(&self, name: &str) -> Option<&Arc<Rule>> {
        self.rules().find(|r| r.name() == Some(name))
    }

    /// The rules that have names, in the order of the text.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.0.lets.iter().filter_map(|(_, v)| if let Value::Rule(r) = v { Some(r) } else { None })
    }

    /// The values that have names, rules among them.
    pub fn lets(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.lets.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// The functions of the host that rules may call.
    pub fn externs(&self) -> &[Extern] {
        &self.0.externs
    }

    /// What is to be found by the values of attributes.
    pub fn indexes(&self) -> &[Index] {
        &self.0.indexes
    }

    /// The solution to begin with.
    pub fn main(&self) -> Option<&Solution> {
        self.0.main.as_ref()
    }

    /// What is probably not as meant.
    pub fn warnings(&self) -> &Diagnostics {
        &self.0.warnings
    }

    /// The text, for messages.
    pub fn sources(&self) -> &Sources {
        &self.0.sources
    }

    /// The solution of the program, ready to react.
    pub fn engine(&self) -> Engine {
        let mut engine = Engine::new(&RuleSet::default());
        for molecule in self.0.main.iter().flat_map(Solution::iter) {
            engine.add(molecule.clone());
        }
        engine
    }
}

/// Finds declarations that have no use.
fn warn(declared: &Declared, is_used: &dyn Fn(&str) -> bool, diags: &mut Diagnostics) {
    let rules =
        declared.lets.iter().filter_map(|(.., v)| if let Some(Value::Rule(r)) = v { Some(r) } else { None });
    let in_main =
        declared.main.iter().flat_map(|v| if let Value::Solution(s) = v { s.iter() } else { EMPTY.iter() });
    let floating = in_main.filter_map(|v| if let Value::Rule(r) = v { Some(r) } else { None });
    let asts: Vec<&RuleAst> = rules.chain(floating).map(|r| &r.ast).collect();
    for (index, span) in &declared.indexes {
        let mut known = false;
        for pattern in asts.iter().flat_map(|a| a.patterns()) {
            pattern.tags(&mut |tag| known |= tag == index.tag);
        }
        if !known {
            diags
                .warning("unused-index", *span, "", format!("no rule has a pattern with {}", index.tag))
                .help("only what rules look for needs an index");
        }
    }
    if declared.main.is_some() {
        for (name, span, value) in &declared.lets {
            if matches!(value, Some(Value::Rule(_))) && !is_used(name) {
                diags
                    .warning("unused-rule", *span, "", format!("the rule `{name}` is in no solution"))
                    .help(format!("rules react where they are: write <{name}, …> or `{name} in <…>`"));
            }
        }
    }
}

static EMPTY: std::sync::LazyLock<Solution> = std::sync::LazyLock::new(Solution::new);
