//! Whether an expression grows or shrinks with an attribute: tells from which end to look through an ordered index.
//!
//! Attributes and variables are taken for quantities, which are not below zero. Where they are, the end of the index may
//! be the wrong one and the choice not the best; it is still one that the condition allows.

use crate::ast::{Expr, ExprKind, Item, Op, Pattern, PatternKind, Toward};
use crate::rule::Rule;
use smol_str::SmolStr;

/// One of the two molecules of a rule that finds one through an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that lives where its id says.
    Homed,
    /// The one that is found through an index.
    Indexed,
}

/// From which end an ordered index is looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Small values first.
    Up,
    /// Large values first.
    Down,
}

/// How an expression changes when the attribute grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Constant,
    Grows,
    Shrinks,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    NotNegative,
    NotPositive,
    Unknown,
}

impl Trend {
    fn flipped(self) -> Self {
        match self {
            Trend::Grows => Trend::Shrinks,
            Trend::Shrinks => Trend::Grows,
            other => other,
        }
    }

    /// With something that is positive, negative, or unknown as a factor.
    fn times(self, sign: Sign) -> Self {
        match (self, sign) {
            (Trend::Constant, _) => Trend::Constant,
            (trend, Sign::NotNegative) => trend,
            (trend, Sign::NotPositive) => trend.flipped(),
            (_, Sign::Unknown) => Trend::Unknown,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Trend::Constant, x) | (x, Trend::Constant) => x,
            (a, b) if a == b => a,
            _ => Trend::Unknown,
        }
    }
}

/// From which end to look through an index on an attribute so that the best matches come first.
pub(crate) fn direction(rule: &Rule, pattern: &Pattern, attribute: &str) -> Option<Direction> {
    let (toward, expr) = rule.ast.prefer.as_ref()?;
    let place = Place { pattern, attribute };
    match (place.trend(expr).0, toward) {
        (Trend::Grows, Toward::Min) | (Trend::Shrinks, Toward::Max) => Some(Direction::Up),
        (Trend::Grows, Toward::Max) | (Trend::Shrinks, Toward::Min) => Some(Direction::Down),
        _ => None,
    }
}

/// An attribute of the molecule that a pattern matches.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) pattern: &'p Pattern,
    pub(crate) attribute: &'p str,
}

impl Place<'_> {
    /// Whether an expression is the attribute itself.
    pub(crate) fn is(self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Attribute(inner, name) if name.eq_ignore_ascii_case(self.attribute) => {
                match &inner.kind {
                    ExprKind::Var(name) => self.parts().any(|p| binds(p, name)) || self.is_whole(name),
                    ExprKind::Solution(items) => match &items[..] {
                        [Item::Rest(name, _)] => self
                            .parts()
                            .any(|p| matches!(&p.kind, PatternKind::Solution(_, Some(rest)) if rest == name)),
                        _ => false,
                    },
                    _ => false,
                }
            }
            // `s` of `RES:r:<SPEED:s, ?f>`
            ExprKind::Var(name) => self.parts().any(|p| {
                let PatternKind::Solution(items, _) = &p.kind else { return false };
                items.iter().any(|i| {
                    let PatternKind::Tuple(pair) = &i.kind else { return false };
                    let tagged = i.head().is_some_and(|h| h.eq_ignore_ascii_case(self.attribute));
                    tagged && pair.len() == 2 && binds(&pair[1], name)
                })
            }),
            _ => false,
        }
    }

    /// Whether an expression can be calculated without the molecule.
    pub(crate) fn is_free(self, expr: &Expr) -> bool {
        let mut free = true;
        expr.names(&mut |name, _| self.pattern.variables(&mut |bound| free &= bound.name != name));
        free
    }

    fn parts(&self) -> impl Iterator<Item = &Pattern> {
        let mut pattern = self.pattern;
        while let PatternKind::As(_, inner) = &pattern.kind {
            pattern = inner;
        }
        let items: &[Pattern] = if let PatternKind::Tuple(items) = &pattern.kind { items } else { &[] };
        items.iter()
    }

    fn is_whole(&self, name: &SmolStr) -> bool {
        matches!(&self.pattern.kind, PatternKind::As(n, _) if n == name)
    }

    fn trend(self, e: &Expr) -> (Trend, Sign) {
        if self.is(e) {
            return (Trend::Grows, Sign::NotNegative);
        }
        match &e.kind {
            ExprKind::Value(v) => {
                let sign = match v.as_number() {
                    Some(n) if n < 0.0 => Sign::NotPositive,
                    Some(_) => Sign::NotNegative,
                    None => Sign::Unknown,
                };
                (Trend::Constant, sign)
            }
            ExprKind::Var(_) | ExprKind::Attribute(..) => (self.constant(e), Sign::NotNegative),
            ExprKind::Neg(inner) => {
                let (trend, sign) = self.trend(inner);
                (trend.flipped(), opposite(sign))
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            ExprKind::Call(name, arguments) => self.call(name, arguments, e),
            _ => (self.constant(e), Sign::Unknown),
        }
    }

    /// What depends on the molecule in some other way is not known to grow or shrink. Other attributes of the same
    /// molecule are: they do not follow from this one.
    fn constant(self, e: &Expr) -> Trend {
        let whole = |name: &SmolStr| self.is_whole(name) || self.parts().any(|p| binds(p, name));
        match &e.kind {
            ExprKind::Attribute(..) => Trend::Constant,
            ExprKind::Var(name) if !whole(name) => Trend::Constant,
            _ if self.is_free(e) => Trend::Constant,
            _ => Trend::Unknown,
        }
    }

    fn binary(self, op: Op, a: &Expr, b: &Expr) -> (Trend, Sign) {
        let ((a, sign_a), (b, sign_b)) = (self.trend(a), self.trend(b));
        let both = if sign_a == sign_b { sign_a } else { Sign::Unknown };
        let product = match (sign_a, sign_b) {
            (Sign::Unknown, _) | (_, Sign::Unknown) => Sign::Unknown,
            (x, y) if x == y => Sign::NotNegative,
            _ => Sign::NotPositive,
        };
        match op {
            Op::Add => (a.and(b), both),
            Op::Sub => (a.and(b.flipped()), if opposite(sign_b) == sign_a { sign_a } else { Sign::Unknown }),
            Op::Mul => (a.times(sign_b).and(b.times(sign_a)), product),
            // For a positive divisor: it grows with what is divided and shrinks with the divisor.
            Op::Div if sign_b == Sign::NotNegative => (a.and(b.times(sign_a).flipped()), product),
            _ if a == Trend::Constant && b == Trend::Constant => (Trend::Constant, Sign::Unknown),
            _ => (Trend::Unknown, Sign::Unknown),
        }
    }

    fn call(self, name: &str, arguments: &[Expr], e: &Expr) -> (Trend, Sign) {
        let parts = arguments.iter().map(|a| self.trend(a));
        let both =
            |a: (Trend, Sign), b: (Trend, Sign)| (a.0.and(b.0), if a.1 == b.1 { a.1 } else { Sign::Unknown });
        match name {
            "min" | "max" | "sqrt" | "floor" | "ceil" | "round" | "int" | "float" => {
                parts.reduce(both).unwrap_or((Trend::Unknown, Sign::Unknown))
            }
            "exp" | "log" => (parts.map(|p| p.0).reduce(Trend::and).unwrap_or(Trend::Unknown), Sign::Unknown),
            "abs" => match arguments.first().map(|a| self.trend(a)) {
                Some((trend, sign)) => (trend.times(sign), Sign::NotNegative),
                None => (Trend::Unknown, Sign::Unknown),
            },
            _ => {
                let trend = if self.is_free(e) { Trend::Constant } else { Trend::Unknown };
                (trend, Sign::Unknown)
            }
        }
    }
}

fn opposite(sign: Sign) -> Sign {
    match sign {
        Sign::NotNegative => Sign::NotPositive,
        Sign::NotPositive => Sign::NotNegative,
        Sign::Unknown => Sign::Unknown,
    }
}

fn binds(pattern: &Pattern, name: &str) -> bool {
    matches!(&pattern.kind, PatternKind::Var(n, _) | PatternKind::As(n, _) if n == name)
}
