//! How peers can execute a rule, none of which sees the whole solution.

use crate::ast::{Pattern, PatternKind};
use crate::code::Product;
use crate::range::RangeRule;
use crate::rule::Rule;
use catena_model::{Diagnostic, Severity, Span};
use std::sync::Arc;

/// How a rule can be executed where molecules live at the places their ids say, and some are in ordered indexes.
#[derive(Clone, Debug)]
pub enum Class {
    /// One molecule, at the place where it lives.
    Local,
    /// One molecule, and others that are only read and whose ids it knows.
    KeyRoutable,
    /// One molecule that lives at a place, and one that is found through an index.
    Range(RangeRule),
    /// Anything else: only somebody who sees all molecules could do it.
    Global {
        /// Why, and what to write instead.
        why: Diagnostic,
    },
}

/// Says how peers can execute a rule: `homed` are TAGs of molecules that live where their id says, `indexed` those of
/// molecules that are found by the value of an attribute.
pub fn classify(rule: &Arc<Rule>, homed: &dyn Fn(&str) -> bool, indexed: &dyn Fn(&str) -> bool) -> Class {
    let ast = &rule.ast;
    let global = |span: Span, message: String, help: &str| Class::Global {
        why: Diagnostic {
            severity: Severity::Error,
            code: "not-for-peers",
            message,
            help: Some(help.to_owned()),
            span,
            path: rule.label(),
        },
    };
    for pattern in ast.patterns() {
        let Some(tag) = pattern.head().filter(|_| id_of(pattern).is_some()) else {
            let message = "peers find molecules by a TAG and an id, and this pattern has none".to_owned();
            return global(pattern.span, message, "write TAG:id:…, for example TASK:i:<?t>");
        };
        if !homed(tag) && !indexed(tag) {
            let message = format!("no peer knows where {tag} molecules are");
            let help = format!("declare `index {tag} by …;` to have them found by an attribute");
            return global(pattern.span, message, &help);
        }
    }
    let is_homed = |p: &Pattern| p.head().is_some_and(homed);
    let consumed: Vec<&Pattern> = ast.take.iter().collect();
    match consumed[..] {
        [one] if is_homed(one) => {
            for kept in &ast.keep {
                if !is_homed(kept) {
                    let message = "molecules that are kept must live where their id says".to_owned();
                    return global(kept.span, message, "consume it, and produce it again");
                }
                if !knows_id(one, kept) {
                    let message =
                        "the id of this molecule does not follow from the one that is consumed".to_owned();
                    let help = "use a variable of the consumed molecule as the id, as in `TASK:j:<SRC:<i, ?s>, ?t> keeping DONE:i`";
                    return global(kept.span, message, help);
                }
            }
            if ast.keep.is_empty() { Class::Local } else { Class::KeyRoutable }
        }
        [a, b] if is_homed(a) != is_homed(b) => {
            if let Some(kept) = ast.keep.first() {
                let message = "a rule that finds a molecule through an index cannot read others".to_owned();
                return global(
                    kept.span,
                    message,
                    "bring what is read into the molecule with a rule of its own",
                );
            }
            let nested = rule.code.give.iter().find_map(|p| match p {
                Product::One(ex) if ex.has_effect() => Some(ex.span),
                Product::Effect(_, arguments, span) if arguments.iter().any(crate::code::Ex::has_effect) => {
                    Some(*span)
                }
                _ => None,
            });
            if let Some(span) = nested {
                let message =
                    "the value of an effect cannot be used by a rule that finds molecules through an index";
                return global(
                    span,
                    message.to_owned(),
                    "let the effect produce a molecule, and take it up with another rule",
                );
            }
            Class::Range(RangeRule::new(rule.clone(), usize::from(!is_homed(a))))
        }
        [one] => {
            let message = "a rule must consume a molecule that lives where its id says".to_owned();
            global(one.span, message, "consume a molecule such as TASK:i:… together with it")
        }
        [_, b, ..] if consumed.len() == 2 && is_homed(b) => {
            let message =
                "two molecules that live at different places would have to be captured at once".to_owned();
            global(b.span, message, "consume one and read the other (`keeping`), or do it in two steps")
        }
        [_, b, ..] => {
            let message = "several molecules would have to be captured at once".to_owned();
            global(
                b.span,
                message,
                "consume one molecule that lives at a place, and at most one that has an index",
            )
        }
        [] => global(ast.span, "nothing is consumed".to_owned(), "consume a molecule such as TASK:i:…"),
    }
}

/// The part of a pattern that is the id.
fn id_of(pattern: &Pattern) -> Option<&Pattern> {
    match &pattern.kind {
        PatternKind::Tuple(items) => items.get(1),
        PatternKind::As(_, inner) => id_of(inner),
        _ => None,
    }
}

/// Whether the id of a molecule is known once another is.
fn knows_id(from: &Pattern, to: &Pattern) -> bool {
    match id_of(to).map(|p| &p.kind) {
        Some(PatternKind::Value(_)) => true,
        Some(PatternKind::Var(name, _)) => {
            let mut found = false;
            from.variables(&mut |bound| found |= bound.name == name && !bound.rest);
            found
        }
        _ => false,
    }
}
