//! Lines of a submit description: assignments, conditions, files that are taken in, and `queue`.

use super::macros::{Macros, Scope};
use super::queue::Queue;
use super::{Place, Problem, SubmitContext};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// How deep files may be taken in, and how many in all.
const MAX_INCLUDES: usize = 20;
const MAX_FILES: usize = 1000;
/// Nobody reads more of a message than this, and it may show a value that is long.
const MAX_MESSAGE: usize = 400;
/// The version of HTCondor whose language this is.
const VERSION: [u32; 3] = [25, 0, 0];

/// What was read: the macros, and what makes jobs of them.
pub(super) struct Description {
    pub(super) macros: Macros,
    pub(super) queue: Queue,
    /// Where `queue` stands.
    pub(super) place: Place,
}

pub(super) struct Reader<'a> {
    pub(super) context: &'a SubmitContext<'a>,
    /// Where relative paths start, as an absolute path.
    pub(super) directory: PathBuf,
    files: Vec<PathBuf>,
    macros: Macros,
    queue: Option<(Queue, Place)>,
    warnings: Vec<String>,
    known_warnings: HashSet<String>,
}

/// Lines of a text, put together where they are continued.
struct Lines<'t> {
    rest: std::str::Split<'t, char>,
    number: u32,
    file: usize,
}

struct Line {
    text: String,
    place: Place,
}

impl Lines<'_> {
    /// The next line that is neither blank nor a comment.
    fn next(&mut self) -> Option<Line> {
        loop {
            let raw = self.rest.next()?;
            self.number += 1;
            let text = raw.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let indent = raw.len() - raw.trim_start().len();
            let column = raw[..indent].chars().count() as u32 + 1;
            let place = Place { file: self.file, line: self.number, column };
            return Some(Line { text: self.continued(text), place });
        }
    }

    fn continued(&mut self, first: &str) -> String {
        let Some(part) = first.strip_suffix('\\') else { return first.to_owned() };
        let mut text = part.to_owned();
        for raw in self.rest.by_ref() {
            self.number += 1;
            let part = raw.trim();
            // A line of a long value may be commented out.
            if part.starts_with('#') {
                continue;
            }
            match part.strip_suffix('\\') {
                Some(part) => text += part,
                None => {
                    text += part;
                    break;
                }
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// The lines up to `@tag`, as they are.
    fn until_tag(&mut self, tag: &str) -> Option<String> {
        let mut text = String::new();
        for raw in self.rest.by_ref() {
            self.number += 1;
            if raw.trim().strip_prefix('@') == Some(tag) {
                return Some(text);
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text += raw.strip_suffix('\r').unwrap_or(raw);
        }
        None
    }
}

/// A part of `if … elif … else … endif`.
struct Branch {
    place: Place,
    /// It is read, and so is what it stands in.
    is_active: bool,
    /// One of the parts was read already, or none is to be.
    is_decided: bool,
    is_else: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(context: &'a SubmitContext<'a>) -> Self {
        let directory = std::path::absolute(context.directory);
        Self {
            context,
            directory: directory.unwrap_or_else(|_| context.directory.to_owned()),
            files: vec![context.name.to_owned()],
            macros: Macros::default(),
            queue: None,
            warnings: Vec::new(),
            known_warnings: HashSet::new(),
        }
    }

    /// A message with its place before it.
    pub(super) fn located(&self, place: Place, message: &str) -> String {
        let file = self.files.get(place.file).map_or(self.context.name, PathBuf::as_path);
        let shown = match message.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => format!("{}…", &message[..end]),
            None => message.to_owned(),
        };
        format!("{}:{}:{}: {shown}", file.display(), place.line, place.column)
    }

    /// Tells of something that is not honoured, once.
    pub(super) fn warn(&mut self, place: Place, message: &str) {
        let message = self.located(place, message);
        if self.known_warnings.insert(message.clone()) {
            self.warnings.push(message);
        }
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    pub(super) fn read(&mut self, text: &str) -> Result<Description, Problem> {
        let start = Place { file: 0, line: self.context.line, column: 1 };
        self.assign_all(&self.context.before, start)?;
        self.lines(text, 0, self.context.line, 0)?;
        let (queue, place) = match self.queue.take() {
            Some(queue) => queue,
            None => (self.queue_of("", start)?, start),
        };
        Ok(Description { macros: std::mem::take(&mut self.macros), queue, place })
    }

    fn assign_all(&mut self, pairs: &[(crate::Name, crate::Name)], place: Place) -> Result<(), Problem> {
        pairs.iter().try_for_each(|(name, value)| self.assign(name, value, place))
    }

    fn assign(&mut self, name: &str, value: &str, place: Place) -> Result<(), Problem> {
        let attribute = name.strip_prefix('+').map(|name| format!("my.{name}"));
        let name = attribute.as_deref().unwrap_or(name);
        self.macros.define(name, value, place).map_err(|message| place.problem(message))
    }

    fn expand(&self, text: &str, place: Place) -> Result<String, Problem> {
        Scope::new(&self.macros, &[], &self.directory).expand(text).map_err(|message| place.problem(message))
    }

    /// Reads the lines of a file.
    fn lines(&mut self, text: &str, file: usize, first: u32, depth: usize) -> Result<(), Problem> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = Lines { rest: text.split('\n'), number: first.saturating_sub(1), file };
        let mut branches: Vec<Branch> = Vec::new();
        while let Some(line) = lines.next() {
            let (word, rest) = first_word(&line.text);
            let is_active = branches.last().is_none_or(|branch| branch.is_active);
            if self.condition(&mut branches, &line, word, rest, is_active)? {
                continue;
            }
            self.statement(&mut lines, &line, is_active, depth)?;
        }
        match branches.last() {
            Some(branch) => Err(branch.place.problem("this `if` has no `endif`")),
            None => Ok(()),
        }
    }

    /// Reads a line of a condition, if it is one.
    fn condition(
        &mut self,
        branches: &mut Vec<Branch>,
        line: &Line,
        word: &str,
        rest: &str,
        is_active: bool,
    ) -> Result<bool, Problem> {
        let place = line.place;
        if rest.starts_with('=') {
            return Ok(false);
        }
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "if" => {
                let holds = is_active && self.holds(rest, place)?;
                branches.push(Branch {
                    place,
                    is_active: holds,
                    is_decided: holds || !is_active,
                    is_else: false,
                });
            }
            "elif" | "else" => {
                let Some(branch) = branches.last_mut().filter(|branch| !branch.is_else) else {
                    return Err(place.problem(format!("there is no `if` for this `{word}`")));
                };
                branch.is_else = word == "else";
                let holds = !branch.is_decided && (branch.is_else || self.holds(rest, place)?);
                branch.is_active = holds;
                branch.is_decided |= holds;
            }
            "endif" => {
                branches.pop().ok_or_else(|| place.problem("there is no `if` for this `endif`"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether a condition holds.
    fn holds(&self, condition: &str, place: Place) -> Result<bool, Problem> {
        let text = self.expand(condition, place)?;
        let condition = text.trim_start_matches(|c: char| c == '!' || c.is_whitespace());
        let is_negated = text[..text.len() - condition.len()].matches('!').count() % 2 == 1;
        let (word, rest) = first_word(condition.trim_end());
        let holds = match word.to_ascii_lowercase().as_str() {
            "defined" if !rest.contains(char::is_whitespace) => Some(self.macros.is_defined(rest)),
            "version" => version_holds(rest),
            "true" | "yes" | "t" if rest.is_empty() => Some(true),
            "false" | "no" | "f" if rest.is_empty() => Some(false),
            _ => condition.trim().parse::<f64>().ok().map(|number| number != 0.0),
        };
        let wrong = || {
            let message = "is not a condition: defined name, version >= x, true, false or a number";
            place.problem(format!("`{}` {message}", condition.trim()))
        };
        Ok(holds.ok_or_else(wrong)? != is_negated)
    }

    /// Reads a line that is not part of a condition. What is not active is only skipped.
    fn statement(
        &mut self,
        lines: &mut Lines<'_>,
        line: &Line,
        is_active: bool,
        depth: usize,
    ) -> Result<(), Problem> {
        let place = line.place;
        let (word, rest) = first_word(&line.text);
        let word = word.to_ascii_lowercase();
        if is_active && self.queue.is_some() {
            let message = match word.as_str() {
                "queue" => "a node has exactly one `queue`, and this is another",
                _ => "nothing may follow `queue`",
            };
            return Err(place.problem(message));
        }
        let is_assignment = rest.starts_with('=') || rest.starts_with("@=");
        match word.as_str() {
            "queue" if !is_assignment => self.queue(lines, rest, place, is_active),
            _ if !is_active => {
                if let Some((_, tag)) = tagged(&line.text) {
                    lines.until_tag(tag);
                }
                Ok(())
            }
            "include" if !is_assignment => self.include(rest, place, depth),
            "use" if !is_assignment => {
                self.warn(place, &format!("`use {rest}` is ignored"));
                Ok(())
            }
            "error" if rest.starts_with(':') => {
                let message = self.expand(rest[1..].trim(), place)?;
                Err(place.problem(message))
            }
            "warning" if rest.starts_with(':') => {
                let message = self.expand(rest[1..].trim(), place)?;
                self.warn(place, &message);
                Ok(())
            }
            _ => self.assignment(lines, line),
        }
    }

    fn assignment(&mut self, lines: &mut Lines<'_>, line: &Line) -> Result<(), Problem> {
        let place = line.place;
        if let Some((key, tag)) = tagged(&line.text) {
            let value = lines.until_tag(tag);
            let value =
                value.ok_or_else(|| place.problem(format!("this value is not closed by `@{tag}`")))?;
            return self.assign(key, &value, place);
        }
        let pair =
            line.text.split_once('=').map(|(key, value)| (key.trim(), value.trim_start(), value.len()));
        let Some((key, value, length)) = pair else {
            let word = first_word(&line.text).0;
            return Err(
                place.problem(format!("`{word}` is no command; an assignment is written `key = value`"))
            );
        };
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(place.problem(format!("`{key}` is not a key, which is one word")));
        }
        let before = line.text.len() - length + (length - value.len());
        let column = place.column + line.text[..before].chars().count() as u32;
        // What is told about a value is told where it starts, unless that is in another line.
        let place = if value.is_empty() { place } else { Place { column, ..place } };
        self.assign(key, value, place)
    }

    fn include(&mut self, rest: &str, place: Place, depth: usize) -> Result<(), Problem> {
        let (options, file) =
            rest.split_once(':').ok_or_else(|| place.problem("a file is missing: `include : file`"))?;
        let file = self.expand(file.trim(), place)?;
        let options = options.trim().to_ascii_lowercase();
        if options.starts_with("command") || file.trim_end().ends_with('|') {
            return Err(place.problem("`include` of what a command writes is not supported"));
        }
        if !options.is_empty() && options != "ifexist" {
            return Err(place.problem(format!("`include {options}` is not supported")));
        }
        if depth >= MAX_INCLUDES || self.files.len() >= MAX_FILES {
            return Err(place.problem(format!("too many files are taken in: {file}")));
        }
        let path = self.directory.join(file.trim().trim_matches('"'));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if options == "ifexist" && e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(place.problem(format!("{}: {e}", path.display()))),
        };
        self.files.push(path);
        self.lines(&text, self.files.len() - 1, 1, depth + 1)
    }

    fn queue(
        &mut self,
        lines: &mut Lines<'_>,
        rest: &str,
        place: Place,
        is_active: bool,
    ) -> Result<(), Problem> {
        let mut queue = if is_active { Some(self.queue_of(rest, place)?) } else { None };
        let seems_open = || rest.matches('(').count() > rest.matches(')').count();
        if queue.as_ref().map_or_else(seems_open, |queue| queue.is_open) {
            loop {
                let missing = || place.problem("the list of this `queue` is not closed by `)`");
                let line = lines.next().ok_or_else(missing)?;
                if let Some(after) = line.text.strip_prefix(')') {
                    if !after.trim().is_empty() {
                        return Err(line.place.problem("nothing may follow the list of `queue`"));
                    }
                    break;
                }
                if let Some(queue) = &mut queue {
                    queue.push(&line.text);
                }
            }
        }
        if let Some(queue) = queue {
            self.queue = Some((queue, place));
        }
        Ok(())
    }

    /// What `queue` says, when everything that comes before it is assigned.
    fn queue_of(&mut self, rest: &str, place: Place) -> Result<Queue, Problem> {
        self.assign_all(&self.context.after, Place { file: 0, line: self.context.line, column: 1 })?;
        let text = self.expand(rest, place)?;
        Queue::parse(text.trim()).map_err(|message| place.problem(message))
    }
}

/// The first word of a line, and what follows it.
fn first_word(line: &str) -> (&str, &str) {
    let end = line.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '+')));
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim())
}

/// Key and tag of a value that goes over several lines.
fn tagged(line: &str) -> Option<(&str, &str)> {
    let (key, tag) = line.split_once("@=")?;
    let (key, tag) = (key.trim(), tag.trim());
    let is_one_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_one_word(key) && is_one_word(tag) && !key.contains('=')).then_some((key, tag))
}

/// Whether a comparison with the version of the language holds. `None` if it is none.
fn version_holds(comparison: &str) -> Option<bool> {
    let digits = comparison.find(|c: char| c.is_ascii_digit())?;
    let (operator, version) = comparison.split_at(digits);
    let numbers: Option<Vec<u32>> = version.trim().split('.').map(|n| n.parse().ok()).collect();
    let numbers = numbers.filter(|numbers| numbers.len() <= VERSION.len())?;
    // Numbers that are not told do not count.
    let order = VERSION[..numbers.len()].cmp(&numbers[..]);
    match operator.trim() {
        ">=" => Some(order.is_ge()),
        ">" => Some(order.is_gt()),
        "<=" => Some(order.is_le()),
        "<" => Some(order.is_lt()),
        "==" | "=" => Some(order.is_eq()),
        "!=" => Some(order.is_ne()),
        _ => None,
    }
}

/// A path as it is meant in a directory, without needless dots.
pub(super) fn resolved(directory: &Path, path: &str) -> PathBuf {
    directory.join(path).components().collect()
}
