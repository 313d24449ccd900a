//! Text with places for values: shell commands and file names of the short form.
//!
//! `{name}` inserts a value, `{name.stem}` a part of a path, `{name:raw}` the value without quotes.
//! `{{` and `}}` are literal braces. Braces that hold anything but a name stay as they are, so that
//! `awk '{print $1}'` and `${HOME}` need no escaping.

use crate::Name;
use std::fmt;
use std::path::Path;

/// Text with places for values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// A place for a value.
    Insert(Insert),
}

/// A place for a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert {
    /// The dotted name of the value.
    pub name: Name,
    /// The part of the path to take.
    pub field: Option<Field>,
    /// Whether the value stands without quotes.
    pub raw: bool,
    /// Characters before it in the text, for messages.
    pub offset: usize,
}

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The file name without its last extension.
    Stem,
    /// The last extension without the dot.
    Ext,
    /// The file name.
    Name,
    /// The directory.
    Dir,
}

impl Field {
    /// The field with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "stem" => Field::Stem,
            "ext" => Field::Ext,
            "name" => Field::Name,
            "dir" => Field::Dir,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Field::Stem => "stem",
            Field::Ext => "ext",
            Field::Name => "name",
            Field::Dir => "dir",
        }
    }

    fn of(self, value: &str) -> String {
        let path = Path::new(value);
        let part = match self {
            Field::Stem => path.file_stem(),
            Field::Ext => path.extension(),
            Field::Name => path.file_name(),
            Field::Dir => path.parent().map(Path::as_os_str),
        };
        part.map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Template {
    /// Reads a template. `field` is not split off yet: only who knows the names can tell `count.name`,
    /// an output called `name`, from the name of `count`.
    pub fn parse(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(at);
            literal.push_str(before);
            if let Some(doubled) = ["{{", "}}"].into_iter().find(|d| after.starts_with(d)) {
                literal.push_str(&doubled[..1]);
                rest = &after[2..];
                continue;
            }
            let insert = if literal.ends_with('$') { None } else { Self::insert_at(after) };
            match insert {
                Some((name, raw, length)) => {
                    if !literal.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut literal)));
                    }
                    let offset = text[..text.len() - after.len()].chars().count();
                    parts.push(Part::Insert(Insert { name: Name::new(name), field: None, raw, offset }));
                    rest = &after[length..];
                }
                None => {
                    literal.push_str(&after[..1]);
                    rest = &after[1..];
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Self { parts }
    }

    /// An insertion at the beginning of `text`: its name, whether it is raw, and its length.
    fn insert_at(text: &str) -> Option<(&str, bool, usize)> {
        let inside = text.strip_prefix('{')?;
        let end = inside.find('}')?;
        let (name, raw) = match inside[..end].split_once(':') {
            Some((name, "raw")) => (name, true),
            Some(_) => return None,
            None => (&inside[..end], false),
        };
        let is_word = |w: &str| {
            let mut chars = w.chars();
            chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
                && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        };
        name.split('.').all(is_word).then_some((name, raw, end + 2))
    }

    /// The pieces in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The places for values.
    pub fn inserts(&self) -> impl Iterator<Item = &Insert> {
        self.parts.iter().filter_map(|p| match p {
            Part::Insert(i) => Some(i),
            Part::Text(_) => None,
        })
    }

    /// Changes the places for values, for example to split fields off names.
    pub fn inserts_mut(&mut self) -> impl Iterator<Item = &mut Insert> {
        self.parts.iter_mut().filter_map(|p| match p {
            Part::Insert(i) => Some(i),
            Part::Text(_) => None,
        })
    }

    /// Splits `.stem`, `.ext`, `.name` and `.dir` off every name that is not `known` as a whole.
    pub fn split_fields(&mut self, known: impl Fn(&str) -> bool) {
        for insert in self.inserts_mut() {
            if insert.field.is_some() || known(&insert.name) {
                continue;
            }
            let split = insert.name.rsplit_once('.');
            if let Some((name, field)) = split.and_then(|(n, f)| Some((Name::new(n), Field::parse(f)?))) {
                insert.name = name;
                insert.field = Some(field);
            }
        }
    }

    /// The text with all values in place, quoted for a shell where they are not raw. A list becomes
    /// separate words.
    pub fn render_shell<'v>(&self, values: impl Fn(&str) -> Vec<&'v str>) -> String {
        self.render(values, shell_quote)
    }

    /// The text with all values in place as they are.
    pub fn render_plain<'v>(&self, values: impl Fn(&str) -> Vec<&'v str>) -> String {
        self.render(values, str::to_owned)
    }

    fn render<'v>(&self, values: impl Fn(&str) -> Vec<&'v str>, quote: impl Fn(&str) -> String) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Insert(insert) => {
                    let words = values(&insert.name);
                    let words = words.iter().map(|v| {
                        let v = insert.field.map_or_else(|| (*v).to_owned(), |f| f.of(v));
                        if insert.raw { v } else { quote(&v) }
                    });
                    out.push_str(&words.collect::<Vec<_>>().join(" "));
                }
            }
        }
        out
    }
}

/// Writes the template so that reading it again gives the same template.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                Part::Insert(i) => {
                    write!(f, "{{{}", i.name)?;
                    if let Some(field) = i.field {
                        write!(f, ".{}", field.word())?;
                    }
                    write!(f, "{}}}", if i.raw { ":raw" } else { "" })?;
                }
            }
        }
        Ok(())
    }
}

/// A word quoted so that a shell takes it as it is, whatever it holds.
pub fn shell_quote(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> String {
        let mut t = Template::parse(text);
        t.split_fields(|n| n == "list" || n == "file");
        t.render_shell(|name| match name {
            "file" => vec!["data/it's here.txt"],
            "list" => vec!["a", "b c"],
            _ => vec![],
        })
    }

    #[test]
    fn values_are_quoted_and_lists_become_words() {
        assert_eq!(shell("wc {file} > x"), r"wc 'data/it'\''s here.txt' > x");
        assert_eq!(shell("cat {list}"), "cat a 'b c'");
        assert_eq!(shell("cat {list:raw}"), "cat a b c");
        assert_eq!(shell("echo {file.ext} {file.dir}"), "echo txt data");
    }

    #[test]
    fn other_braces_stay_as_they_are() {
        let text = "awk '{s += $1} END {print s}' ${HOME} {1..3} {{list}} {}";
        assert_eq!(shell(text), "awk '{s += $1} END {print s}' ${HOME} {1..3} {list} {}");
    }

    #[test]
    fn a_template_survives_writing_and_reading() {
        for text in ["a {b} {{c}} {d.stem:raw} ${E}", "}{", "{{{x}}}"] {
            let once = Template::parse(text);
            let again = Template::parse(&once.to_string());
            assert_eq!(once.to_string(), again.to_string());
            assert_eq!(once.inserts().count(), again.inserts().count());
        }
    }
}
