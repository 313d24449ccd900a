//! Numbers in submit descriptions: the little arithmetic they may need, and how they are written.

use std::iter::Peekable;
use std::str::Chars;

/// No format makes a number wider than this.
const MAX_WIDTH: usize = 1000;

/// A number of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    pub(super) fn real(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Real(n) => n,
        }
    }

    fn apply(self, operator: char, other: Self) -> Option<Self> {
        if let (Self::Whole(a), Self::Whole(b)) = (self, other) {
            let result = match operator {
                '+' => a.checked_add(b),
                '-' => a.checked_sub(b),
                '*' => a.checked_mul(b),
                '/' => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            return result.map(Self::Whole);
        }
        let (a, b) = (self.real(), other.real());
        let result = match operator {
            '+' => a + b,
            '-' => a - b,
            '*' => a * b,
            '/' => a / b,
            _ => a % b,
        };
        result.is_finite().then_some(Self::Real(result))
    }
}

/// The value of an expression of numbers, `+ - * / %` and parentheses.
pub(super) fn evaluate(text: &str) -> Option<Number> {
    let mut rest = text.chars().peekable();
    let value = sum(&mut rest, 0)?;
    skip_space(&mut rest);
    rest.next().is_none().then_some(value)
}

fn skip_space(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| c.is_whitespace()).is_some() {}
}

fn sum(rest: &mut Peekable<Chars<'_>>, depth: u32) -> Option<Number> {
    let mut value = product(rest, depth)?;
    loop {
        skip_space(rest);
        let Some(operator) = rest.next_if(|c| matches!(c, '+' | '-')) else { return Some(value) };
        value = value.apply(operator, product(rest, depth)?)?;
    }
}

fn product(rest: &mut Peekable<Chars<'_>>, depth: u32) -> Option<Number> {
    let mut value = factor(rest, depth)?;
    loop {
        skip_space(rest);
        let Some(operator) = rest.next_if(|c| matches!(c, '*' | '/' | '%')) else { return Some(value) };
        value = value.apply(operator, factor(rest, depth)?)?;
    }
}

fn factor(rest: &mut Peekable<Chars<'_>>, depth: u32) -> Option<Number> {
    let mut is_negative = false;
    skip_space(rest);
    while let Some(sign) = rest.next_if(|c| matches!(c, '+' | '-')) {
        is_negative ^= sign == '-';
        skip_space(rest);
    }
    let value = if rest.next_if_eq(&'(').is_some() {
        let inner = if depth < 50 { sum(rest, depth + 1)? } else { return None };
        rest.next_if_eq(&')')?;
        inner
    } else {
        literal(rest)?
    };
    if is_negative { Number::Whole(0).apply('-', value) } else { Some(value) }
}

fn literal(rest: &mut Peekable<Chars<'_>>) -> Option<Number> {
    let mut digits = String::new();
    while let Some(c) = rest.next_if(|c| c.is_ascii_digit() || *c == '.') {
        digits.push(c);
        if let Some(e) = rest.next_if(|c| matches!(c, 'e' | 'E')) {
            digits.push(e);
            digits.extend(rest.next_if(|c| matches!(c, '+' | '-')));
        }
    }
    let whole = digits.parse().ok().map(Number::Whole);
    whole.or_else(|| digits.parse().ok().filter(|n: &f64| n.is_finite()).map(Number::Real))
}

/// A number or a text in a format as those of the language C. What is around the format stays.
pub(super) fn formatted(format: &str, number: &Number, text: &str) -> Result<String, String> {
    let wrong = || format!("`{format}` is not a format such as %d, %04d, %.2f or %s");
    let mut out = String::new();
    let mut rest = format;
    let mut is_done = false;
    while let Some(at) = rest.find('%') {
        out += &rest[..at];
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix('%') {
            out.push('%');
            rest = tail;
            continue;
        }
        if std::mem::replace(&mut is_done, true) {
            return Err(wrong());
        }
        let end =
            rest.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'l' | 'h')).ok_or_else(wrong)?;
        let conversion = rest.as_bytes()[end];
        let specification = rest[..end].trim_end_matches(['l', 'h']);
        out += &conversion_of(specification, conversion, *number, text).ok_or_else(wrong)?;
        rest = &rest[end + 1..];
    }
    Ok(out + rest)
}

fn conversion_of(specification: &str, conversion: u8, number: Number, text: &str) -> Option<String> {
    let size = specification.trim_start_matches(['-', '+', ' ', '0', '#']);
    let flags = &specification[..specification.len() - size.len()];
    let (width, precision) = size.split_once('.').map_or((size, None), |(w, p)| (w, Some(p)));
    let limited = |digits: &str| match digits {
        "" => Some(0),
        digits => digits.parse().ok().filter(|n| *n <= MAX_WIDTH),
    };
    let width = limited(width)?;
    let precision = match precision {
        Some(digits) => Some(limited(digits)?),
        None => None,
    };
    let mut body = match conversion {
        b'd' | b'i' | b'u' => (number.real().trunc() as i64).to_string(),
        b'x' => format!("{:x}", number.real() as i64),
        b'X' => format!("{:X}", number.real() as i64),
        b'o' => format!("{:o}", number.real() as i64),
        b'f' | b'F' => format!("{:.*}", precision.unwrap_or(6), number.real()),
        b'e' | b'E' => scientific(number.real(), precision.unwrap_or(6)),
        b'g' | b'G' => general(number.real(), precision.unwrap_or(6).max(1)),
        b's' | b'v' => text.chars().take(precision.unwrap_or(usize::MAX)).collect(),
        _ => return None,
    };
    // A double holds every number that people write, but not every whole number.
    if let (Number::Whole(n), b'd' | b'i' | b'u') = (number, conversion) {
        body = n.to_string();
    }
    if matches!(conversion, b'E' | b'G') {
        body.make_ascii_uppercase();
    }
    if flags.contains('+') && !body.starts_with('-') {
        body.insert(0, '+');
    }
    Some(padded(body, width, flags))
}

fn padded(body: String, width: usize, flags: &str) -> String {
    let missing = width.saturating_sub(body.chars().count());
    if flags.contains('-') {
        body + &" ".repeat(missing)
    } else if flags.contains('0') {
        let sign = usize::from(body.starts_with(['-', '+']));
        format!("{}{}{}", &body[..sign], "0".repeat(missing), &body[sign..])
    } else {
        " ".repeat(missing) + &body
    }
}

/// With an exponent of two digits or more, as C writes it.
fn scientific(number: f64, precision: usize) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Whichever is shorter of the two notations, as C chooses.
fn general(number: f64, precision: usize) -> String {
    let text = scientific(number, precision - 1);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let without_zeros = |digits: &str| {
        let short = if digits.contains('.') { digits.trim_end_matches('0') } else { digits };
        short.trim_end_matches('.').to_owned()
    };
    if (-4..precision as i64).contains(&exponent) {
        let decimals = (precision as i64 - 1 - exponent) as usize;
        without_zeros(&format!("{number:.decimals$}"))
    } else {
        format!("{}{}", without_zeros(digits), &text[digits.len()..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_c() {
        let of = |format, number| formatted(format, &number, "").unwrap();
        assert_eq!(of("%04d", Number::Whole(-12)), "-012");
        assert_eq!(of("Area=%d%%", Number::Whole(12)), "Area=12%");
        assert_eq!(of("%6.2f|", Number::Real(2.7051)), "  2.71|");
        assert_eq!(of("%-4d|", Number::Whole(7)), "7   |");
        assert_eq!(of("%e", Number::Real(12345.0)), "1.234500e+04");
        assert_eq!(of("%G", Number::Real(1e-7)), "1E-07");
        assert_eq!(of("%g", Number::Real(0.5)), "0.5");
        assert_eq!(of("%g", Number::Whole(100)), "100");
        assert!(formatted("%q", &Number::Whole(1), "").is_err());
        assert!(formatted("%99999999d", &Number::Whole(1), "").is_err());
    }

    #[test]
    fn expressions_have_the_usual_order() {
        assert_eq!(evaluate("2 * (3 + 4) - -1"), Some(Number::Whole(15)));
        assert_eq!(evaluate("7 / 2"), Some(Number::Whole(3)));
        assert_eq!(evaluate("7 / 2.0"), Some(Number::Real(3.5)));
        assert_eq!(evaluate("1e3"), Some(Number::Real(1000.0)));
        for wrong in ["", "1 2", "1 / 0", "(1", "x", "9223372036854775807 + 1", "--", "."] {
            assert_eq!(evaluate(wrong), None, "{wrong}");
        }
        assert_eq!(evaluate(&"(".repeat(1_000_000)), None);
    }
}
