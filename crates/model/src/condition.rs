//! Conditions of `when:`, such as `{min} > 1 and {mode} == 'fast'`.
//!
//! Small on purpose: it compares and combines values and always terminates.

use crate::Name;
use serde_json::Value;

/// A condition, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Condition {
    source: String,
    root: Expr,
}

#[derive(Clone, Debug)]
enum Expr {
    Value(Value),
    Name(Name),
    Not(Box<Expr>),
    Size(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    Add,
    Sub,
    Mul,
    Div,
}

impl Op {
    /// Binding strength; higher binds tighter.
    fn strength(self) -> u8 {
        match self {
            Op::Or => 1,
            Op::And => 2,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::In => 3,
            Op::Add | Op::Sub => 4,
            Op::Mul | Op::Div => 5,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Value(Value),
    Name(Name),
    Op(Op),
    Not,
    Size,
    Open,
    Close,
}

impl Condition {
    /// Reads a condition.
    pub fn parse(source: &str) -> Result<Self, String> {
        let tokens = tokens(source)?;
        let mut parser = ExprParser { tokens: &tokens, at: 0, depth: 0 };
        let root = parser.binary(0)?;
        if parser.at < tokens.len() {
            return Err(format!(
                "`{source}` goes on after the end of the condition; is an operator missing?"
            ));
        }
        Ok(Self { source: source.to_owned(), root })
    }

    /// The text it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The same condition with its names replaced.
    #[must_use]
    pub fn rename(&self, f: impl Fn(&str) -> Name) -> Self {
        fn walk(e: &Expr, f: &impl Fn(&str) -> Name) -> Expr {
            match e {
                Expr::Value(v) => Expr::Value(v.clone()),
                Expr::Name(n) => Expr::Name(f(n)),
                Expr::Not(e) => Expr::Not(Box::new(walk(e, f))),
                Expr::Size(e) => Expr::Size(Box::new(walk(e, f))),
                Expr::Binary(op, a, b) => Expr::Binary(*op, Box::new(walk(a, f)), Box::new(walk(b, f))),
            }
        }
        let mut source = self.source.clone();
        for name in self.names() {
            source = source.replace(&format!("{{{name}}}"), &format!("{{{}}}", f(&name)));
        }
        Self { source, root: walk(&self.root, &f) }
    }

    /// Holds if both hold.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let source = format!("({}) and ({})", self.source, other.source);
        Self { source, root: Expr::Binary(Op::And, Box::new(self.root), Box::new(other.root.clone())) }
    }

    /// Holds if this does not.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { source: format!("not ({})", self.source), root: Expr::Not(Box::new(self.root)) }
    }

    /// The names it mentions.
    pub fn names(&self) -> Vec<Name> {
        fn walk(e: &Expr, out: &mut Vec<Name>) {
            match e {
                Expr::Value(_) => {}
                Expr::Name(n) => {
                    if !out.contains(n) {
                        out.push(n.clone());
                    }
                }
                Expr::Not(e) | Expr::Size(e) => walk(e, out),
                Expr::Binary(_, a, b) => {
                    walk(a, out);
                    walk(b, out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.root, &mut out);
        out
    }

    /// Whether the condition holds for these values.
    pub fn holds(&self, values: &impl Fn(&str) -> Value) -> Result<bool, String> {
        Ok(truth(&self.root.value(values)?))
    }
}

fn truth(v: &Value) -> bool {
    match v {
        Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => n.as_f64() != Some(0.0),
        Value::String(s) => !s.is_empty() && s != "false",
        Value::Array(a) => !a.is_empty(),
        Value::Object(o) => !o.is_empty(),
    }
}

/// A number, also if it came as text (outputs of tasks and `-i` values do).
fn number(v: &Value) -> Option<f64> {
    match v {
        Value::Number(n) => n.as_f64(),
        Value::String(s) => s.trim().parse().ok(),
        _ => None,
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() < f64::EPSILON,
        _ => a == b,
    }
}

impl Expr {
    fn value(&self, values: &impl Fn(&str) -> Value) -> Result<Value, String> {
        Ok(match self {
            Expr::Value(v) => v.clone(),
            Expr::Name(n) => values(n),
            Expr::Not(e) => Value::Bool(!truth(&e.value(values)?)),
            Expr::Size(e) => match e.value(values)? {
                Value::Array(a) => a.len().into(),
                Value::String(s) => s.chars().count().into(),
                Value::Null => 0.into(),
                _ => 1.into(),
            },
            Expr::Binary(Op::And, a, b) => Value::Bool(truth(&a.value(values)?) && truth(&b.value(values)?)),
            Expr::Binary(Op::Or, a, b) => Value::Bool(truth(&a.value(values)?) || truth(&b.value(values)?)),
            Expr::Binary(op, a, b) => binary(*op, &a.value(values)?, &b.value(values)?)?,
        })
    }
}

fn binary(op: Op, a: &Value, b: &Value) -> Result<Value, String> {
    let order = || match (number(a), number(b), a, b) {
        (Some(a), Some(b), ..) => a.partial_cmp(&b).ok_or_else(|| "not a number".to_owned()),
        (.., Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        _ => Err(format!("cannot compare {a} with {b}")),
    };
    let arithmetic = |f: fn(f64, f64) -> f64| {
        let result = number(a).zip(number(b)).map(|(a, b)| f(a, b));
        result.map(Value::from).ok_or_else(|| format!("cannot calculate with {a} and {b}"))
    };
    Ok(match op {
        Op::Eq => same(a, b).into(),
        Op::Ne => (!same(a, b)).into(),
        Op::Lt => order()?.is_lt().into(),
        Op::Le => order()?.is_le().into(),
        Op::Gt => order()?.is_gt().into(),
        Op::Ge => order()?.is_ge().into(),
        Op::In => match b {
            Value::Array(list) => list.iter().any(|item| same(a, item)).into(),
            Value::String(text) => a.as_str().is_some_and(|a| text.contains(a)).into(),
            _ => return Err(format!("`in` needs a list or a string on its right, not {b}")),
        },
        Op::Add => match (number(a).zip(number(b)), a, b) {
            (Some((a, b)), ..) => (a + b).into(),
            (None, Value::String(a), Value::String(b)) => format!("{a}{b}").into(),
            _ => return Err(format!("cannot add {a} and {b}")),
        },
        Op::Sub => arithmetic(|a, b| a - b)?,
        Op::Mul => arithmetic(|a, b| a * b)?,
        Op::Div => arithmetic(|a, b| a / b)?,
        Op::And | Op::Or => unreachable!("evaluated lazily by the caller"),
    })
}

struct ExprParser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: u32,
}

impl ExprParser<'_> {
    fn binary(&mut self, min: u8) -> Result<Expr, String> {
        let mut left = self.unary()?;
        while let Some(Token::Op(op)) = self.tokens.get(self.at) {
            if op.strength() < min {
                break;
            }
            self.at += 1;
            let right = self.binary(op.strength() + 1)?;
            left = Expr::Binary(*op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > 200 {
            return Err("the condition is nested too deeply".to_owned());
        }
        let token = self.tokens.get(self.at).ok_or("the condition ends too early")?;
        self.at += 1;
        Ok(match token {
            Token::Value(v) => Expr::Value(v.clone()),
            Token::Name(n) => Expr::Name(n.clone()),
            Token::Not => Expr::Not(Box::new(self.unary()?)),
            Token::Size => Expr::Size(Box::new(self.unary()?)),
            Token::Op(Op::Sub) => {
                Expr::Binary(Op::Sub, Box::new(Expr::Value(0.into())), Box::new(self.unary()?))
            }
            Token::Open => {
                let inner = self.binary(0)?;
                if self.tokens.get(self.at) != Some(&Token::Close) {
                    return Err("a closing parenthesis is missing".to_owned());
                }
                self.at += 1;
                inner
            }
            Token::Op(_) | Token::Close => {
                return Err("a value is missing before an operator or parenthesis".to_owned());
            }
        })
    }
}

fn tokens(source: &str) -> Result<Vec<Token>, String> {
    const SYMBOLS: [(&str, Token); 16] = [
        ("||", Token::Op(Op::Or)),
        ("&&", Token::Op(Op::And)),
        ("==", Token::Op(Op::Eq)),
        ("!=", Token::Op(Op::Ne)),
        ("<=", Token::Op(Op::Le)),
        (">=", Token::Op(Op::Ge)),
        ("<", Token::Op(Op::Lt)),
        (">", Token::Op(Op::Gt)),
        ("=", Token::Op(Op::Eq)),
        ("+", Token::Op(Op::Add)),
        ("-", Token::Op(Op::Sub)),
        ("*", Token::Op(Op::Mul)),
        ("/", Token::Op(Op::Div)),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
    ];
    let mut out = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if let Some((symbol, token)) = SYMBOLS.iter().find(|(s, _)| rest.starts_with(s)) {
            length = symbol.len();
            out.push(token.clone());
        } else if first == '{' {
            let end = rest.find('}').ok_or_else(|| format!("a `}}` is missing in `{source}`"))?;
            out.push(Token::Name(Name::new(rest[1..end].trim())));
            length = end + 1;
        } else if first == '\'' || first == '"' {
            let end =
                rest[1..].find(first).ok_or_else(|| format!("a closing {first} is missing in `{source}`"))?;
            out.push(Token::Value(rest[1..=end].into()));
            length = end + 2;
        } else if first.is_ascii_digit() {
            length = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
            let number: f64 =
                rest[..length].parse().map_err(|_| format!("`{}` is not a number", &rest[..length]))?;
            out.push(Token::Value(number.into()));
        } else if first.is_alphabetic() {
            length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            out.push(match &rest[..length] {
                "and" => Token::Op(Op::And),
                "or" => Token::Op(Op::Or),
                "in" => Token::Op(Op::In),
                "not" => Token::Not,
                "size" => Token::Size,
                "true" => Token::Value(true.into()),
                "false" => Token::Value(false.into()),
                "null" => Token::Value(Value::Null),
                word => {
                    return Err(format!(
                        "unknown word `{word}`; write `{{{word}}}` for a value or `'{word}'` for text"
                    ));
                }
            });
        } else {
            return Err(format!("unexpected `{first}` in the condition `{source}`"));
        }
        rest = rest[length..].trim_start();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(source: &str) -> Result<bool, String> {
        Condition::parse(source)?.holds(&|name| match name {
            "min" => Value::from(5),
            "text" => Value::from("7"),
            "mode" => Value::from("fast"),
            "list" => serde_json::json!(["a", "b"]),
            _ => Value::Null,
        })
    }

    #[test]
    fn conditions_compare_and_combine() {
        for yes in [
            "{min} > 1",
            "{min} + 2 == {text}",
            "{mode} == 'fast' and not ({min} < 2 or {min} > 9)",
            "'a' in {list} && size {list} = 2",
            "-{min} < 0",
            "{mode}",
        ] {
            assert_eq!(holds(yes), Ok(true), "{yes}");
        }
        for no in ["{min} * 2 < 3 + 1", "{missing}", "false or {missing} == 1", "{mode} != \"fast\""] {
            assert_eq!(holds(no), Ok(false), "{no}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for wrong in ["{min} >", "({min} > 1", "min > 1", "{min} 2", "{min", "", "{list} < 3"] {
            assert!(holds(wrong).is_err(), "{wrong}");
        }
    }
}
