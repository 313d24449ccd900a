//! Tokens into patterns.

use crate::ast::{Pattern, PatternKind, Type};
use crate::lexer::Token;
use crate::parser::{Failed, Parsed, Parser};
use crate::value::Value;

/// Patterns with more parts are not matched in reasonable time, if at all.
const MAX_PARTS: usize = 200;

impl Parser<'_> {
    pub(crate) fn patterns(&mut self) -> Parsed<Vec<Pattern>> {
        let mut list = vec![self.pattern()?];
        while self.skip(",") {
            list.push(self.pattern()?);
        }
        Ok(list)
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        self.nested(|p| {
            let span = p.span();
            p.parts += 1;
            if p.parts > MAX_PARTS {
                p.error("too-long", format!("the patterns of a rule have at most {MAX_PARTS} parts"));
                return Err(Failed);
            }
            if let (Token::Name(name), Token::Symbol("@")) = (p.peek().clone(), p.peek_after().clone()) {
                p.at += 2;
                if p.declared.get(&name).is_some() {
                    let message = format!("`{name}` is declared with `let` and cannot be bound here");
                    p.diags.error("bound-let", span, "", message).help("choose another name");
                }
                let inner = p.pattern()?;
                return Ok(Pattern { kind: PatternKind::As(name, Box::new(inner)), span });
            }
            let mut parts = vec![p.part()?];
            while p.skip(":") {
                p.parts += 1;
                parts.push(p.part()?);
            }
            match parts.len() {
                1 => parts.pop().ok_or(Failed),
                _ => Ok(Pattern { kind: PatternKind::Tuple(parts), span }),
            }
        })
    }

    fn part(&mut self) -> Parsed<Pattern> {
        let span = self.span();
        let kind = match self.peek().clone() {
            Token::Symbol("_") => {
                self.at += 1;
                PatternKind::Any
            }
            Token::Symbol("(") => {
                self.at += 1;
                let inner = if self.at_rule() {
                    let ast = self.rule()?;
                    let rule = self.checked(None, ast).ok_or(Failed)?;
                    Pattern { kind: PatternKind::Value(Value::Rule(rule)), span }
                } else {
                    self.pattern()?
                };
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("<") => {
                self.at += 1;
                self.solution_pattern()?
            }
            Token::Tag(tag) => {
                self.at += 1;
                PatternKind::Value(Value::Tag(tag))
            }
            Token::Name(name) => {
                self.at += 1;
                let kind = if self.skip("::") { Some(self.type_()?) } else { None };
                self.used.insert(name.clone());
                match self.declared.get(&name) {
                    Some(value) => PatternKind::Value(value.clone().ok_or(Failed)?),
                    None => PatternKind::Var(name, kind),
                }
            }
            Token::Rest(name) => {
                let message = format!("`?{name}` stands for what is left of a solution");
                self.error("bad-rest", message)
                    .help(format!("write <?{name}>, or {name} for a single molecule"));
                return Err(Failed);
            }
            _ => match self.literal()? {
                Some(value) => PatternKind::Value(value),
                None => {
                    let message = format!("expected a pattern, not {}", self.peek().shown());
                    let help =
                        "a pattern is a literal, a TAG, a variable, `_`, or a solution <…>, joined with `:`";
                    self.error("unexpected", message).help(help);
                    return Err(Failed);
                }
            },
        };
        Ok(Pattern { kind, span })
    }

    fn solution_pattern(&mut self) -> Parsed<PatternKind> {
        let mut items = Vec::new();
        let mut rest = None;
        while *self.peek() != Token::Symbol(">") {
            let span = self.span();
            if let Token::Rest(name) = self.peek().clone() {
                self.at += 1;
                if rest.replace(name).is_some() {
                    let message = "a solution has one rest only";
                    let help = "which elements would go to the first `?`, and which to the second?";
                    self.diags.error("second-rest", span, "", message).help(help);
                }
            } else {
                items.push(self.pattern()?);
            }
            if !self.skip(",") && !matches!(self.peek(), Token::Rest(_) | Token::Symbol(">")) {
                let message = format!("expected `,` or `>`, not {}", self.peek().shown());
                self.error("unexpected", message);
                return Err(Failed);
            }
        }
        self.at += 1;
        Ok(PatternKind::Solution(items, rest))
    }

    fn type_(&mut self) -> Parsed<Type> {
        let Token::Name(name) = self.peek().clone() else {
            let message = format!("expected a type, not {}", self.peek().shown());
            self.error("unexpected", message).help("types are int, float, string, bool, sol and rule");
            return Err(Failed);
        };
        if let Some((_, kind)) = Type::ALL.iter().find(|(n, _)| *n == name) {
            self.at += 1;
            return Ok(*kind);
        }
        let known = Type::ALL.map(|(n, _)| n);
        self.error("unknown-type", format!("there is no type `{name}`")).did_you_mean(&name, known);
        Err(Failed)
    }
}
