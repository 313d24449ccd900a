//! Tokens into declarations and rules, with all mistakes at once: after one, reading goes on behind the
//! next `;`.

use crate::ast::{Expr, ExprKind, Item, RuleAst, Toward};
use crate::check;
use crate::functions::Extern;
use crate::lexer::{Token, tokens};
use crate::program::Index;
use crate::rule::Rule;
use crate::value::{MAX_DEPTH, Value};
use catena_model::{Diagnostic, Diagnostics, Span};
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Longer texts are not read.
pub(crate) const MAX_TEXT: usize = 64 << 20;
/// Nobody reads more mistakes than these.
const MAX_ERRORS: usize = 100;

/// A mistake has been reported; the caller leaves the declaration.
pub(crate) struct Failed;
pub(crate) type Parsed<T> = Result<T, Failed>;

/// What a text declares.
#[derive(Default)]
pub(crate) struct Declared {
    pub(crate) externs: BTreeMap<SmolStr, Extern>,
    pub(crate) indexes: Vec<(Index, Span)>,
    /// In the order of the text. `None` stands for a name whose declaration is wrong.
    pub(crate) lets: Vec<(SmolStr, Span, Option<Value>)>,
    by_name: HashMap<SmolStr, usize>,
    pub(crate) main: Option<Value>,
}

impl Declared {
    pub(crate) fn get(&self, name: &str) -> Option<&Option<Value>> {
        self.by_name.get(name).map(|i| &self.lets[*i].2)
    }
}

pub(crate) struct Parser<'d> {
    tokens: Vec<(Token, Span)>,
    pub(crate) at: usize,
    /// Names with a `let` further down, for better messages.
    later: HashMap<SmolStr, Span>,
    nesting: u16,
    /// How many parts the patterns of a rule have.
    pub(crate) parts: usize,
    pub(crate) declared: Declared,
    /// `let` names that something refers to.
    pub(crate) used: std::collections::HashSet<SmolStr>,
    pub(crate) diags: &'d mut Diagnostics,
}

impl<'d> Parser<'d> {
    pub(crate) fn new(text: &str, source: u16, diags: &'d mut Diagnostics) -> Self {
        let tokens = tokens(text, source, diags);
        let named = tokens.windows(2).filter_map(|w| match w {
            [(Token::Word("let"), _), (Token::Name(name), span)] => Some((name.clone(), *span)),
            _ => None,
        });
        let later = named.collect();
        let declared = Declared::default();
        let used = std::collections::HashSet::new();
        Self { tokens, at: 0, later, nesting: 0, parts: 0, declared, used, diags }
    }

    /// Reads a whole program.
    pub(crate) fn program(&mut self) {
        while *self.peek() != Token::End && self.diags.error_count() < MAX_ERRORS {
            let before = self.at;
            let done = match self.peek() {
                Token::Word("let" | "extern" | "index") => self.declaration(),
                Token::Word("replace" | "replace-one") | Token::Symbol("<") | Token::Name(_) => self.main(),
                other => {
                    let message = format!("expected a declaration or a solution, not {}", other.shown());
                    let help =
                        "declarations begin with `let`, `extern` or `index`; a solution is written <…>";
                    self.error("unexpected", message).help(help);
                    Err(Failed)
                }
            };
            if done.is_err() {
                self.recover(before);
            }
        }
    }

    /// Reads declarations and then one value.
    pub(crate) fn value(&mut self) -> Option<Value> {
        while matches!(self.peek(), Token::Word("let" | "extern" | "index")) {
            self.declaration().ok()?;
        }
        let expr = self.element().ok()?;
        if *self.peek() != Token::End {
            let message = format!("expected the end of the text, not {}", self.peek().shown());
            self.error("unexpected", message);
            return None;
        }
        self.constant(&expr)
    }

    fn declaration(&mut self) -> Parsed<()> {
        match self.peek() {
            Token::Word("let") => self.let_(),
            Token::Word("extern") => self.extern_(),
            _ => self.index(),
        }
    }

    /// Goes on behind the next `;`, or before the next declaration.
    fn recover(&mut self, before: usize) {
        self.nesting = 0;
        loop {
            match self.peek() {
                Token::End => return,
                Token::Symbol(";") => {
                    self.at += 1;
                    return;
                }
                Token::Word("let" | "extern" | "index") if self.at > before => return,
                _ => self.at += 1,
            }
        }
    }

    fn let_(&mut self) -> Parsed<()> {
        self.at += 1;
        let span = self.span();
        let name = self.name("a name for what follows")?;
        self.later.remove(&name);
        let duplicate = self.declared.by_name.contains_key(&name);
        if duplicate {
            self.diags
                .error("duplicate-let", span, "", format!("`{name}` is declared already"))
                .help("every name stands for one thing; choose another");
        }
        let value = self.let_value(&name);
        if !duplicate {
            self.declared.by_name.insert(name.clone(), self.declared.lets.len());
            let value = value.as_ref().ok().cloned().flatten();
            self.declared.lets.push((name, span, value));
        }
        value?;
        self.expect(";")
    }

    fn let_value(&mut self, name: &SmolStr) -> Parsed<Option<Value>> {
        self.expect("=")?;
        if self.at_rule() {
            let ast = self.rule()?;
            Ok(self.checked(Some(name.clone()), ast).map(Value::Rule))
        } else {
            let expr = self.expr()?;
            Ok(self.constant(&expr))
        }
    }

    fn extern_(&mut self) -> Parsed<()> {
        self.at += 1;
        let effect = match self.peek() {
            Token::Name(n) if n == "pure" => false,
            Token::Name(n) if n == "effect" => true,
            other => {
                let message = format!("expected `pure` or `effect`, not {}", other.shown());
                let help = "a pure function only gives a value; one with an effect runs after the reaction";
                self.error("unexpected", message).help(help);
                return Err(Failed);
            }
        };
        self.at += 1;
        let span = self.span();
        let name = self.name("the name of a function")?;
        self.expect("/")?;
        let arity = self.int("the number of arguments")?;
        let arity = usize::try_from(arity).unwrap_or(usize::MAX);
        let new = Extern { name: name.clone(), arity, effect };
        if self.declared.externs.get(&name).is_some_and(|old| *old != new) {
            self.diags.error("duplicate-extern", span, "", format!("`{name}` is declared differently above"));
        }
        self.declared.externs.insert(name, new);
        self.expect(";")
    }

    fn index(&mut self) -> Parsed<()> {
        self.at += 1;
        let span = self.span();
        let Token::Tag(tag) = self.peek().clone() else {
            let message = format!("expected a TAG, not {}", self.peek().shown());
            self.error("unexpected", message).help("for example `index RES by speed;`");
            return Err(Failed);
        };
        self.at += 1;
        if *self.peek() != Token::Word("by") {
            let message = format!("expected `by`, not {}", self.peek().shown());
            self.error("unexpected", message).help("for example `index RES by speed;`");
            return Err(Failed);
        }
        self.at += 1;
        let mut attributes = vec![self.name("an attribute")?];
        while self.skip(",") {
            attributes.push(self.name("an attribute")?);
        }
        self.declared.indexes.push((Index { tag, attributes }, span));
        self.expect(";")
    }

    /// `[rule {"," rule} "in"] solution [";"]`
    fn main(&mut self) -> Parsed<()> {
        let span = self.span();
        let mut rules = Vec::new();
        while *self.peek() != Token::Symbol("<") {
            if self.at_rule() {
                let ast = self.rule()?;
                rules.extend(self.checked(None, ast));
            } else {
                let at = self.span();
                let name = self.name("a rule or a solution")?;
                self.used.insert(name.clone());
                match self.declared.get(&name) {
                    Some(Some(Value::Rule(rule))) => rules.push(rule.clone()),
                    Some(None) => {}
                    Some(Some(_)) => {
                        let message = format!("`{name}` is not a rule");
                        self.diags.error("not-a-rule", at, "", message).help("values stand inside of <…>");
                    }
                    None => {
                        self.unbound(&name, at, &[]);
                    }
                }
            }
            if *self.peek() == Token::Word("in") {
                self.at += 1;
                break;
            }
            if !self.skip(",") {
                let message = format!("expected `in` and a solution, not {}", self.peek().shown());
                self.error("unexpected", message).help("rules react in a solution: `replace … by … in <…>`");
                return Err(Failed);
            }
        }
        if *self.peek() != Token::Symbol("<") {
            let message = format!("expected a solution, not {}", self.peek().shown());
            self.error("unexpected", message);
            return Err(Failed);
        }
        let expr = self.element()?;
        if *self.peek() != Token::End {
            self.expect(";")?;
        }
        if self.declared.main.is_some() {
            let message = "a program has one solution only";
            self.diags.error("second-solution", span, "", message).help("put both into one: <…, …>");
            return Ok(());
        }
        if let Some(Value::Solution(mut solution)) = self.constant(&expr) {
            for rule in rules {
                solution.insert(Value::Rule(rule));
            }
            self.declared.main = Some(Value::Solution(solution));
        }
        Ok(())
    }

    pub(crate) fn at_rule(&self) -> bool {
        matches!(self.peek(), Token::Word("replace" | "replace-one"))
    }

    pub(crate) fn rule(&mut self) -> Parsed<RuleAst> {
        self.nested(|p| {
            let span = p.span();
            let once = *p.peek() == Token::Word("replace-one");
            p.at += 1;
            p.parts = 0;
            let take = p.patterns()?;
            let keep = if p.word("keeping") { p.patterns()? } else { Vec::new() };
            if !p.word("by") {
                let message = format!("expected `by`, not {}", p.peek().shown());
                p.error("unexpected", message)
                    .help("a rule reads `replace patterns by products if condition`");
                return Err(Failed);
            }
            let give = p.products()?;
            let when = if p.word("if") { Some(p.expr()?) } else { None };
            let prefer = if p.word("prefer") { Some((p.toward()?, p.expr()?)) } else { None };
            let priority = if p.word("priority") { p.signed("a number")? } else { 0 };
            let rule = RuleAst { once, take, keep, give, when, prefer, priority, span };
            if rule.depth() > MAX_DEPTH { p.too_deep() } else { Ok(rule) }
        })
    }

    fn toward(&mut self) -> Parsed<Toward> {
        let toward = match self.peek() {
            Token::Name(n) if n == "min" => Toward::Min,
            Token::Name(n) if n == "max" => Toward::Max,
            other => {
                let message = format!("expected `min` or `max`, not {}", other.shown());
                self.error("unexpected", message).help("for example `prefer max <?f>.speed`");
                return Err(Failed);
            }
        };
        self.at += 1;
        Ok(toward)
    }

    fn products(&mut self) -> Parsed<Vec<Item>> {
        let mut items = Vec::new();
        let ends = |p: &Self| {
            matches!(
                p.peek(),
                Token::Word("if" | "prefer" | "priority" | "in")
                    | Token::Symbol(";" | ")" | ">" | ",")
                    | Token::End
            )
        };
        if ends(self) {
            return Ok(items);
        }
        loop {
            items.push(self.item()?);
            // In a list of rules a comma may also end the rule.
            let more = *self.peek() == Token::Symbol(",")
                && !matches!(self.peek_after(), Token::Word("replace" | "replace-one"));
            if !more {
                return Ok(items);
            }
            self.at += 1;
        }
    }

    /// Checks a rule that stands for itself and makes it executable.
    pub(crate) fn checked(&mut self, name: Option<SmolStr>, ast: RuleAst) -> Option<Arc<Rule>> {
        let errors = self.diags.error_count();
        check::rule(self, &ast, &HashMap::new());
        if self.diags.error_count() > errors {
            return None;
        }
        let externs = check::externs(&ast, &self.declared.externs);
        Some(Rule::new(name, ast, externs))
    }

    /// The value of an expression without variables.
    fn constant(&mut self, expr: &Expr) -> Option<Value> {
        let errors = self.diags.error_count();
        check::constant(self, expr);
        if self.diags.error_count() > errors {
            return None;
        }
        let externs: Arc<[Extern]> = self.declared.externs.values().cloned().collect();
        match crate::code::constant(expr, &externs) {
            Ok(value) => Some(value),
            Err(e) => {
                self.diags.error(e.code, e.span, "", e.message);
                None
            }
        }
    }

    /// Says that a name means nothing.
    pub(crate) fn unbound(&mut self, name: &str, span: Span, known: &[&str]) {
        let later = self.later.contains_key(name);
        let message = format!("`{name}` is not bound by a pattern and not declared");
        let d = self.diags.error("unbound", span, "", message);
        if later {
            d.help(format!("`let {name}` comes later; move it up"));
        } else {
            // Any letter is near to any other.
            let near = |n: &&str| name.len() > 1 && n.len() > 1;
            let lets = self.declared.lets.iter().map(|(n, ..)| n.as_str());
            let known: Vec<&str> = lets.chain(known.iter().copied()).collect();
            if known.iter().any(near) {
                d.did_you_mean(name, known);
            } else if !known.is_empty() {
                d.help(format!("known names: {}", known.join(", ")));
            }
        }
    }

    pub(crate) fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }

    pub(crate) fn peek_after(&self) -> &Token {
        self.tokens.get(self.at + 1).map_or(&Token::End, |t| &t.0)
    }

    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    pub(crate) fn span(&self) -> Span {
        self.tokens.get(self.at).or(self.tokens.last()).map(|t| t.1).unwrap_or_default()
    }

    pub(crate) fn error(&mut self, code: &'static str, message: impl Into<String>) -> &mut Diagnostic {
        let span = self.span();
        self.diags.error(code, span, "", message)
    }

    /// Skips a symbol if it is next.
    pub(crate) fn skip(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if *w == word);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.skip(symbol) {
            return Ok(());
        }
        let message = format!("expected `{symbol}`, not {}", self.peek().shown());
        let compared = symbol == ">" && matches!(self.peek(), Token::Symbol("<" | "<=" | ">=" | "==" | "!="));
        let d = self.error("unexpected", message);
        if compared {
            d.help("inside of <…>, comparisons stand in parentheses");
        }
        Err(Failed)
    }

    pub(crate) fn name(&mut self, what: &str) -> Parsed<SmolStr> {
        if let Token::Name(name) = self.peek().clone() {
            self.at += 1;
            return Ok(name);
        }
        let message = format!("expected {what}, not {}", self.peek().shown());
        let d = self.error("unexpected", message);
        d.help("names begin with a lower-case letter");
        Err(Failed)
    }

    fn int(&mut self, what: &str) -> Parsed<i64> {
        if let Token::Int(n) = *self.peek()
            && let Ok(n) = i64::try_from(n)
        {
            self.at += 1;
            return Ok(n);
        }
        let message = format!("expected {what}, not {}", self.peek().shown());
        self.error("unexpected", message);
        Err(Failed)
    }

    fn signed(&mut self, what: &str) -> Parsed<i64> {
        let negative = self.skip("-");
        let n = self.int(what)?;
        Ok(if negative { -n } else { n })
    }

    /// A number, text or truth value, if one is next.
    pub(crate) fn literal(&mut self) -> Parsed<Option<Value>> {
        let negative = *self.peek() == Token::Symbol("-");
        let token = if negative { self.peek_after() } else { self.peek() };
        let value = match token.clone() {
            Token::Int(n) => {
                let number = if negative { 0_i64.checked_sub_unsigned(n) } else { i64::try_from(n).ok() };
                let Some(number) = number else {
                    self.error("large-number", format!("the number {n} is too large"));
                    return Err(Failed);
                };
                Value::Int(number)
            }
            Token::Float(n) => {
                let Some(number) = Value::float(if negative { -n } else { n }) else { return Err(Failed) };
                number
            }
            Token::Text(text) if !negative => Value::Text(text),
            Token::Word("true") if !negative => Value::Bool(true),
            Token::Word("false") if !negative => Value::Bool(false),
            _ => return Ok(None),
        };
        self.at += 1 + usize::from(negative);
        Ok(Some(value))
    }

    /// Runs `f` one level further down, unless that is too deep.
    pub(crate) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.nesting += 1;
        if self.nesting > 2 * MAX_DEPTH + 10 {
            return self.too_deep();
        }
        let result = f(self);
        // After a mistake, reading goes on at the outermost level.
        self.nesting = self.nesting.saturating_sub(1);
        result
    }

    pub(crate) fn too_deep<T>(&mut self) -> Parsed<T> {
        self.error("too-deep", "this is nested too deeply").help("name the inner parts with `let`");
        Err(Failed)
    }

    /// An expression node, unless it is nested too deeply.
    pub(crate) fn node(&mut self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let expr = Expr::new(kind, span);
        if expr.depth > MAX_DEPTH { self.too_deep() } else { Ok(expr) }
    }
}
