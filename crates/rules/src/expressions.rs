//! Tokens into expressions.

use crate::ast::{Expr, ExprKind, Item, Op};
use crate::lexer::Token;
use crate::parser::{Failed, Parsed, Parser};

impl Parser<'_> {
    /// Any expression.
    pub(crate) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| p.binary(1))
    }

    /// An expression without comparisons and logic, as it stands in solutions.
    fn tuple(&mut self) -> Parsed<Expr> {
        self.nested(|p| p.binary(5))
    }

    /// What can stand in a solution: a tuple or a rule.
    pub(crate) fn element(&mut self) -> Parsed<Expr> {
        if self.at_rule() {
            let span = self.span();
            let rule = self.rule()?;
            return self.node(ExprKind::Rule(Box::new(rule)), span);
        }
        self.tuple()
    }

    /// An element, or all elements of a rest.
    pub(crate) fn item(&mut self) -> Parsed<Item> {
        if let Token::Rest(name) = self.peek().clone() {
            let span = self.span();
            self.advance();
            return Ok(Item::Rest(name, span));
        }
        self.element().map(Item::One)
    }

    /// Operators of at least a strength. Comparisons do not chain, `:` makes one tuple of all.
    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        if least <= 3 && *self.peek() == Token::Word("not") {
            let span = self.span();
            self.advance();
            let inner = self.nested(|p| p.binary(4))?;
            let left = self.node(ExprKind::Not(Box::new(inner)), span)?;
            return self.operators(left, least, 3);
        }
        let left = self.unary()?;
        self.operators(left, least, 8)
    }

    /// Goes on after a first operand that was read with some strength.
    fn operators(&mut self, mut left: Expr, least: u8, mut most: u8) -> Parsed<Expr> {
        loop {
            let span = self.span();
            if *self.peek() == Token::Symbol(":") && least <= 5 && most > 5 {
                let mut items = vec![left];
                while self.skip(":") {
                    items.push(self.nested(|p| p.binary(6))?);
                }
                let start = items[0].span;
                left = self.node(ExprKind::Tuple(items), start)?;
                most = 5;
                continue;
            }
            let symbol = match self.peek() {
                Token::Symbol(s) | Token::Word(s) => *s,
                _ => return Ok(left),
            };
            let Some((_, op)) = Op::ALL.iter().find(|(s, _)| *s == symbol) else { return Ok(left) };
            let strength = op.strength();
            if strength < least || strength > most {
                return Ok(left);
            }
            self.advance();
            let right = self.nested(|p| p.binary(strength + 1))?;
            // A chain of operators leans to the left; a comparison takes no further one.
            most = if strength == 4 { 3 } else { strength };
            left = self.node(ExprKind::Binary(*op, Box::new(left), Box::new(right)), span)?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let mut expr = if let Some(value) = self.literal()? {
            self.node(ExprKind::Value(value), span)?
        } else if self.skip("-") {
            let inner = self.nested(Self::unary)?;
            return self.node(ExprKind::Neg(Box::new(inner)), span);
        } else {
            self.atom()?
        };
        while self.skip(".") {
            let attribute = self.name("an attribute")?;
            expr = self.node(ExprKind::Attribute(Box::new(expr), attribute), span)?;
        }
        Ok(expr)
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let kind = match self.peek().clone() {
            Token::Tag(tag) => {
                self.advance();
                ExprKind::Value(crate::Value::Tag(tag))
            }
            Token::Name(name) => {
                self.advance();
                if self.skip("(") {
                    ExprKind::Call(name, self.arguments()?)
                } else {
                    self.used.insert(name.clone());
                    match self.declared.get(&name) {
                        Some(Some(value)) => ExprKind::Value(value.clone()),
                        Some(None) => return Err(Failed),
                        None => ExprKind::Var(name),
                    }
                }
            }
            Token::Symbol("(") => {
                self.advance();
                let inner = if self.at_rule() { self.element()? } else { self.expr()? };
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("<") => {
                self.advance();
                self.solution()?
            }
            Token::Rest(name) => {
                let message = format!("`?{name}` stands for several molecules and cannot be used here");
                self.error("bad-rest", message).help(format!("write <?{name}> for the solution of them"));
                return Err(Failed);
            }
            other => {
                let message = format!("expected a value, not {}", other.shown());
                self.error("unexpected", message);
                return Err(Failed);
            }
        };
        self.node(kind, span)
    }

    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        let mut list = Vec::new();
        if self.skip(")") {
            return Ok(list);
        }
        loop {
            list.push(self.expr()?);
            if !self.skip(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(list)
    }

    fn solution(&mut self) -> Parsed<ExprKind> {
        self.nested(|p| {
            let mut items = Vec::new();
            if p.skip(">") {
                return Ok(ExprKind::Solution(items));
            }
            loop {
                items.push(p.item()?);
                if !p.skip(",") {
                    break;
                }
            }
            p.expect(">")?;
            Ok(ExprKind::Solution(items))
        })
    }
}
