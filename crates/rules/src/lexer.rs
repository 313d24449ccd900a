//! Text into tokens, each with its place.

use catena_model::{Diagnostics, Span};
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Int(u64),
    Float(f64),
    Text(SmolStr),
    /// Starts with a lower-case letter or `_`.
    Name(SmolStr),
    /// Starts with an upper-case letter.
    Tag(SmolStr),
    /// `?name`
    Rest(SmolStr),
    /// A word of the language.
    Word(&'static str),
    Symbol(&'static str),
    End,
}

impl Token {
    /// How it is shown in messages.
    pub(crate) fn shown(&self) -> String {
        match self {
            Token::Int(n) => format!("`{n}`"),
            Token::Float(n) => format!("`{n}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::Name(n) | Token::Tag(n) => format!("`{n}`"),
            Token::Rest(n) => format!("`?{n}`"),
            Token::Word(w) | Token::Symbol(w) => format!("`{w}`"),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

const WORDS: [&str; 16] = [
    "let",
    "extern",
    "index",
    "replace",
    "replace-one",
    "keeping",
    "by",
    "if",
    "prefer",
    "priority",
    "in",
    "and",
    "or",
    "not",
    "true",
    "false",
];

/// Longer ones first.
const SYMBOLS: [&str; 21] = [
    "<=", ">=", "==", "!=", "::", "<", ">", "=", "@", ":", ",", ";", ".", "(", ")", "+", "-", "*", "/", "%",
    "_",
];

pub(crate) struct Lexer<'t> {
    rest: &'t str,
    line: u32,
    column: u32,
    source: u16,
}

/// All tokens of a text. What is no token is reported and left out.
pub(crate) fn tokens(text: &str, source: u16, diags: &mut Diagnostics) -> Vec<(Token, Span)> {
    let mut lexer = Lexer { rest: text, line: 1, column: 1, source };
    let mut out = Vec::new();
    loop {
        let next = lexer.next(diags);
        let end = matches!(next, Some((Token::End, _)));
        out.extend(next);
        if end {
            return out;
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Lexer<'_> {
    fn advance(&mut self, bytes: usize) {
        for c in self.rest[..bytes].chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.rest = &self.rest[bytes..];
    }

    fn skip_blanks(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with("//") {
                return;
            }
            self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn span(&self, bytes: usize) -> Span {
        let first_line = self.rest[..bytes].lines().next().unwrap_or("");
        let len = first_line.chars().count().clamp(1, usize::from(u16::MAX)) as u16;
        Span { source: self.source, len, line: self.line, column: self.column }
    }

    fn next(&mut self, diags: &mut Diagnostics) -> Option<(Token, Span)> {
        self.skip_blanks();
        let Some(first) = self.rest.chars().next() else {
            return Some((Token::End, self.span(0)));
        };
        let (token, bytes) = if first == '"' {
            self.text(diags)
        } else if first.is_ascii_digit() {
            self.number(diags)
        } else if first == '?' {
            self.remainder(diags)
        } else if first.is_alphabetic() || first == '_' {
            self.word()
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| self.rest.starts_with(**s)) {
            (Some(Token::Symbol(symbol)), symbol.len())
        } else {
            let bytes = first.len_utf8();
            diags
                .error("unknown-character", self.span(bytes), "", format!("`{first}` has no meaning here"))
                .help("text stands in double quotes, comments begin with //");
            (None, bytes)
        };
        let span = self.span(bytes);
        self.advance(bytes);
        token.map(|t| (t, span))
    }

    fn word_length(&self) -> usize {
        self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())
    }

    fn word(&self) -> (Option<Token>, usize) {
        let length = self.word_length();
        let word = &self.rest[..length];
        let after = &self.rest[length..];
        if word == "replace" && after.starts_with("-one") && !after[4..].starts_with(is_word) {
            return (Some(Token::Word("replace-one")), length + 4);
        }
        let token = if word == "_" {
            Token::Symbol("_")
        } else if let Some(known) = WORDS.iter().find(|w| **w == word) {
            Token::Word(known)
        } else if word.starts_with(char::is_uppercase) {
            Token::Tag(word.into())
        } else {
            Token::Name(word.into())
        };
        (Some(token), length)
    }

    /// `?name`
    fn remainder(&self, diags: &mut Diagnostics) -> (Option<Token>, usize) {
        let name = &self.rest[1..];
        let length = name.find(|c| !is_word(c)).unwrap_or(name.len());
        if length == 0 {
            diags
                .error("bad-rest", self.span(1), "", "a name is missing after `?`")
                .help("`?w` stands for what is left of a solution");
            return (None, 1);
        }
        (Some(Token::Rest(name[..length].into())), length + 1)
    }

    fn number(&self, diags: &mut Diagnostics) -> (Option<Token>, usize) {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let mut length = digits(self.rest);
        let mut whole = true;
        if let Some(fraction) = self.rest[length..].strip_prefix('.')
            && digits(fraction) > 0
        {
            length += 1 + digits(fraction);
            whole = false;
        }
        if let Some(exponent) = self.rest[length..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let number = digits(&exponent[sign..]);
            if number > 0 {
                length += 1 + sign + number;
                whole = false;
            }
        }
        let text = &self.rest[..length];
        let token = if whole {
            text.parse().ok().filter(|n| *n <= 1 << 63).map(Token::Int)
        } else {
            text.parse().ok().filter(|n: &f64| n.is_finite()).map(Token::Float)
        };
        if token.is_none() {
            diags.error("large-number", self.span(length), "", format!("the number {text} is too large"));
        }
        // Something must stand for it, or the text around it would seem wrong as well.
        (token.or(Some(Token::Int(0))), length)
    }

    fn text(&self, diags: &mut Diagnostics) -> (Option<Token>, usize) {
        let mut out = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return (Some(Token::Text(out.into())), at + 1),
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, 'u')) => {
                        let end = self.rest[at..].find('}').map(|e| at + e);
                        let code = end.and_then(|end| self.rest.get(at + 3..end));
                        let code =
                            code.and_then(|c| u32::from_str_radix(c, 16).ok()).and_then(char::from_u32);
                        let (Some(code), Some(end)) = (code, end) else {
                            diags.error(
                                "bad-escape",
                                self.span(at + 1),
                                "",
                                "expected \\u{…} with a number in it",
                            );
                            continue;
                        };
                        out.push(code);
                        while chars.next().is_some_and(|(i, _)| i < end) {}
                    }
                    Some((_, c @ ('"' | '\\'))) => out.push(c),
                    Some((_, other)) => {
                        diags
                            .error("bad-escape", self.span(at + 1), "", format!("`\\{other}` has no meaning"))
                            .help("known are \\n, \\t, \\r, \\\", \\\\ and \\u{…}");
                    }
                    None => break,
                },
                c => out.push(c),
            }
        }
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        diags.error("open-string", self.span(length), "", "the closing \" is missing");
        (Some(Token::Text(out.into())), length)
    }
}
