//! Lines and tokens of DAGMan files.

use crate::Name;
use crate::diag::Span;
use smol_str::SmolStrBuilder;

/// A command, which may go over several lines of text.
#[derive(Debug, Default)]
pub(super) struct Line {
    text: String,
    /// Where its parts stood: the offset in `text`, line and column.
    parts: Vec<(usize, u32, u32)>,
}

/// A word of a command, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: Name,
    pub(super) span: Span,
}

/// Reads a text line by line.
pub(super) struct Lines<'t> {
    rest: std::str::Split<'t, char>,
    /// The number of the line that was read last.
    pub(super) number: u32,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text.split('\n'), number: 0 }
    }

    /// The next line that is neither blank nor a comment, without the space around it, and its column.
    pub(super) fn next_text(&mut self) -> Option<(&'t str, u32)> {
        loop {
            let line = self.rest.next()?;
            self.number += 1;
            let text = line.trim();
            if !text.is_empty() && !text.starts_with('#') && !text.starts_with("//") {
                let indent = line.len() - line.trim_start().len();
                return Some((text, line[..indent].chars().count() as u32 + 1));
            }
        }
    }

    /// Reads the next command. Returns whether there is one.
    pub(super) fn next_command(&mut self, command: &mut Line) -> bool {
        command.text.clear();
        command.parts.clear();
        while let Some((text, column)) = self.next_text() {
            command.parts.push((command.text.len(), self.number, column));
            match text.strip_suffix('\\') {
                Some(part) => {
                    command.text += part;
                    command.text.push(' ');
                }
                None => {
                    command.text += text;
                    break;
                }
            }
        }
        !command.parts.is_empty()
    }
}

/// Takes a command apart.
pub(super) struct Lexer<'l> {
    line: &'l Line,
    source: u16,
    at: usize,
    /// The part of the line that `at` is in, and where the last token of that part was: offset, column.
    part: usize,
    last: (usize, u32),
    is_ascii: bool,
}

impl<'l> Lexer<'l> {
    pub(super) fn new(line: &'l Line, source: u16) -> Self {
        let is_ascii = line.text.is_ascii();
        let mut this = Self { line, source, at: 0, part: 0, last: (0, 0), is_ascii };
        this.enter(0);
        this
    }

    fn enter(&mut self, part: usize) {
        self.part = part;
        if let Some((offset, _, column)) = self.line.parts.get(part) {
            self.last = (*offset, *column);
        }
    }

    fn skip_space(&mut self) {
        let space =
            self.line.text.as_bytes()[self.at..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r'));
        self.at += space.count();
    }

    /// The place from an offset to where reading has come.
    fn span(&mut self, from: usize) -> Span {
        while self.line.parts.get(self.part + 1).is_some_and(|(offset, ..)| *offset <= from) {
            self.enter(self.part + 1);
        }
        let column = self.last.1 + self.characters(self.last.0, from) as u32;
        self.last = (from, column);
        let line = self.line.parts.get(self.part).map_or(0, |p| p.1);
        // What is underlined need not be long, and a line may be.
        let len = self.characters(from, self.at).clamp(1, 1000) as u16;
        Span { source: self.source, len, line, column }
    }

    fn characters(&self, from: usize, to: usize) -> usize {
        if self.is_ascii { to - from } else { self.line.text[from..to].chars().count() }
    }

    /// The place of the whole command.
    pub(super) fn whole(&self) -> Span {
        let (_, line, column) = self.line.parts.first().copied().unwrap_or_default();
        let len = self.characters(0, self.line.text.trim_end().len()).clamp(1, 1000) as u16;
        Span { source: self.source, len, line, column }
    }

    /// The next word. `key = value` is one word without the space around the equals sign.
    pub(super) fn next(&mut self) -> Result<Option<Token>, &'static str> {
        self.skip_space();
        let start = self.at;
        if let Some(end) = self.plain_word() {
            self.at = end;
            return Ok(Some(Token { text: Name::new(&self.line.text[start..end]), span: self.span(start) }));
        }
        let mut text = SmolStrBuilder::new();
        let mut quote = None;
        let (mut is_pair, mut has_value) = (false, false);
        let bytes = self.line.text.as_bytes();
        let mut copied = start;
        while let Some(byte) = bytes.get(self.at).copied() {
            match (quote, byte) {
                (Some(_), b'\\') => {
                    text.push_str(&self.line.text[copied..self.at]);
                    copied = self.at + 1;
                    // Whatever comes is meant as it is.
                    let escaped = self.line.text[copied..].chars().next().map_or(0, char::len_utf8);
                    self.at += escaped;
                }
                (Some(open), byte) if byte == open => {
                    text.push_str(&self.line.text[copied..self.at]);
                    copied = self.at + 1;
                    quote = None;
                }
                (Some(_), _) => {}
                (None, b' ' | b'\t' | b'\r') => {
                    text.push_str(&self.line.text[copied..self.at]);
                    let end = self.at;
                    self.skip_space();
                    copied = self.at;
                    let equals_follows = bytes.get(self.at) == Some(&b'=');
                    let goes_on =
                        (!is_pair && equals_follows) || (is_pair && !has_value && self.at < bytes.len());
                    if !goes_on {
                        let next = std::mem::replace(&mut self.at, end);
                        let span = self.span(start);
                        self.at = next;
                        return Self::finish(text, span, is_pair && !has_value);
                    }
                    continue;
                }
                (None, b'=') if !is_pair => is_pair = true,
                (None, byte) => {
                    has_value |= is_pair;
                    if byte == b'"' || byte == b'\'' {
                        text.push_str(&self.line.text[copied..self.at]);
                        copied = self.at + 1;
                        quote = Some(byte);
                    }
                }
            }
            self.at += 1;
        }
        if quote.is_some() {
            return Err("a quote is not closed");
        }
        if start == self.at {
            return Ok(None);
        }
        text.push_str(&self.line.text[copied.min(self.at)..self.at]);
        let span = self.span(start);
        Self::finish(text, span, is_pair && !has_value)
    }

    /// The end of a word without quotes and equals signs, which most are.
    fn plain_word(&self) -> Option<usize> {
        let bytes = self.line.text.as_bytes();
        let mut end = self.at;
        while let Some(byte) = bytes.get(end) {
            match byte {
                b' ' | b'\t' | b'\r' => break,
                b'"' | b'\'' | b'=' => return None,
                _ => end += 1,
            }
        }
        let next = bytes[end..].iter().find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        (end > self.at && next != Some(&b'=')).then_some(end)
    }

    fn finish(text: SmolStrBuilder, span: Span, incomplete: bool) -> Result<Option<Token>, &'static str> {
        let text = text.finish();
        if incomplete { Err("a value is missing after `=`") } else { Ok(Some(Token { text, span })) }
    }

    /// Everything that is left, as it is written.
    pub(super) fn rest(&mut self) -> Option<Token> {
        self.skip_space();
        let start = self.at;
        self.at = self.line.text.len();
        let text = Name::new(self.line.text[start..].trim_end());
        (!text.is_empty()).then(|| Token { span: self.span(start), text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<String>, &'static str> {
        let mut line = Line::default();
        Lines::new(text).next_command(&mut line);
        let mut lexer = Lexer::new(&line, 0);
        let mut out = Vec::new();
        while let Some(token) = lexer.next()? {
            out.push(token.text.to_string());
        }
        Ok(out)
    }

    #[test]
    fn words_are_split_at_space_and_joined_by_quotes() {
        assert_eq!(words("JOB  A\tx.sub \r").unwrap(), ["JOB", "A", "x.sub"]);
        assert_eq!(
            words(r#"VARS A a="b \"c\" \\" d='e f'"#).unwrap(),
            ["VARS", "A", r#"a=b "c" \"#, "d=e f"]
        );
        assert_eq!(words("VARS A name = \"x y\" z").unwrap(), ["VARS", "A", "name=x y", "z"]);
        assert_eq!(words("VARS A name =").unwrap_err(), "a value is missing after `=`");
        assert_eq!(words("VARS A name=\"x").unwrap_err(), "a quote is not closed");
        assert_eq!(words("VARS A é=\"\\é\"").unwrap(), ["VARS", "A", "é=é"]);
    }

    #[test]
    fn lines_go_on_after_a_backslash_and_comments() {
        assert_eq!(words("\n# c\nJOB \\\n  # c\n  A \\\n\n x.sub").unwrap(), ["JOB", "A", "x.sub"]);
    }

    #[test]
    fn places_are_those_in_the_text() {
        let mut line = Line::default();
        Lines::new("\n  JOB \\\n   Ä \\\n b").next_command(&mut line);
        let mut lexer = Lexer::new(&line, 0);
        let mut places = Vec::new();
        while let Some(t) = lexer.next().unwrap() {
            places.push((t.span.line, t.span.column, t.span.len));
        }
        assert_eq!(places, [(2, 3, 3), (3, 4, 1), (4, 2, 1)]);
    }
}
