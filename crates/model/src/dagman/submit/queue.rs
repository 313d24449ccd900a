//! The command `queue`: how many jobs there are, and which items they are for.

use super::macros::Live;
use super::numbers::{Number, evaluate};
use super::words::list;
use crate::Name;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// No description makes more jobs than this: somebody mistyped the number.
const MAX_JOBS: usize = 100_000;

/// What `queue` says, before its items are known.
#[derive(Debug, PartialEq)]
pub(super) struct Queue {
    count: usize,
    variables: Vec<Name>,
    source: Source,
    slice: Slice,
    /// Items in parentheses, or what follows on the line.
    text: String,
    /// The lines of a list that goes over several.
    lines: Vec<String>,
    /// The list is in parentheses, and goes on in the next line.
    pub(super) is_open: bool,
    is_list: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Nothing,
    In,
    From,
    Matching { files: bool, directories: bool },
}

/// A choice of items, as in Python.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
}

impl Queue {
    /// Reads what follows the word `queue`, with macros replaced.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut queue = Self {
            count: 1,
            variables: Vec::new(),
            source: Source::Nothing,
            slice: Slice::default(),
            text: String::new(),
            lines: Vec::new(),
            is_open: false,
            is_list: false,
        };
        let (before, source, after) = keyword(text);
        queue.source = source;
        let names_at = before.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(before.len());
        let (count, names) = if source == Source::Nothing { (before, "") } else { before.split_at(names_at) };
        if !count.trim().is_empty() {
            let number = match evaluate(count) {
                Some(Number::Whole(number)) => usize::try_from(number).ok(),
                _ => None,
            };
            let wrong = || format!("`{}` is not a number of jobs", count.trim());
            queue.count = number.ok_or_else(wrong)?;
        }
        queue.variables = list(names).into_iter().map(Name::new).collect();
        queue.items(after.trim())?;
        Ok(queue)
    }

    /// Reads what follows `in`, `from` or `matching`.
    fn items(&mut self, text: &str) -> Result<(), String> {
        let mut rest = text;
        if let Source::Matching { files, directories } = &mut self.source {
            while let Some((word, tail)) = first_word(rest) {
                match word.to_ascii_lowercase().as_str() {
                    "files" => (*files, *directories) = (true, false),
                    "dirs" => (*files, *directories) = (false, true),
                    "any" => (*files, *directories) = (true, true),
                    _ => break,
                }
                rest = tail.trim_start();
            }
        }
        let is_matching = matches!(self.source, Source::Matching { .. });
        if let Some((slice, tail)) = Slice::parse(rest, is_matching)? {
            self.slice = slice;
            rest = tail.trim_start();
        }
        if let Some(inner) = rest.strip_prefix('(') {
            self.is_list = true;
            match inner.strip_suffix(')') {
                Some(inner) => inner.trim().clone_into(&mut self.text),
                None => {
                    self.is_open = true;
                    inner.trim().clone_into(&mut self.text);
                }
            }
        } else {
            rest.clone_into(&mut self.text);
        }
        if self.source != Source::Nothing && self.text.is_empty() && !self.is_open {
            return Err("`queue` has no items".to_owned());
        }
        Ok(())
    }

    /// Takes a line of a list that goes over several.
    pub(super) fn push(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    /// What differs between the jobs, for each job.
    pub(super) fn jobs(&self, directory: &Path, cluster: u64) -> Result<Vec<Box<Live>>, String> {
        let items = self.chosen_items(directory)?;
        let total = items.len().saturating_mul(self.count);
        if total == 0 {
            return Err("`queue` makes no job".to_owned());
        }
        if total > MAX_JOBS {
            return Err(format!("`queue` makes {total} jobs; more than {MAX_JOBS} are not possible"));
        }
        let mut jobs = Vec::with_capacity(total);
        for (index, item) in &items {
            for step in 0..self.count {
                jobs.push(self.live(cluster, jobs.len(), *index, step, item));
            }
        }
        Ok(jobs)
    }

    fn live(&self, cluster: u64, process: usize, index: usize, step: usize, item: &str) -> Box<Live> {
        let numbers = [
            ("cluster", cluster.to_string()),
            ("clusterid", cluster.to_string()),
            ("process", process.to_string()),
            ("procid", process.to_string()),
            ("itemindex", index.to_string()),
            ("row", index.to_string()),
            ("step", step.to_string()),
            ("node", String::new()),
        ];
        let mut live: Vec<(String, String)> = Vec::new();
        let mut rest = item;
        for (at, name) in self.variables.iter().enumerate() {
            let is_last = at + 1 == self.variables.len();
            let (value, tail) = if is_last { (rest, "") } else { first_value(rest) };
            live.push((name.to_ascii_lowercase(), value.to_owned()));
            rest = tail;
        }
        if self.variables.is_empty() {
            live.push(("item".to_owned(), item.to_owned()));
        }
        live.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
        live.into_boxed_slice()
    }

    /// The items that count, with their numbers in the list.
    fn chosen_items(&self, directory: &Path) -> Result<Vec<(usize, String)>, String> {
        if self.source == Source::Nothing {
            return Ok(vec![(0, String::new())]);
        }
        let items = self.all_items(directory)?;
        let chosen = self.slice.chosen(items.len());
        Ok(items.into_iter().enumerate().filter(|(index, _)| chosen(*index)).collect())
    }

    fn all_items(&self, directory: &Path) -> Result<Vec<String>, String> {
        let lines = || std::iter::once(&self.text).chain(&self.lines).filter(|line| !line.is_empty());
        let words = || lines().flat_map(|line| list(line));
        match self.source {
            Source::Nothing => Ok(Vec::new()),
            Source::In => Ok(words().map(str::to_owned).collect()),
            Source::From if self.is_list => Ok(lines().cloned().collect()),
            Source::From => {
                let text = match self.text.strip_suffix('|') {
                    Some(command) => output_of(command.trim(), directory)?,
                    None => {
                        let path = directory.join(&self.text);
                        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?
                    }
                };
                let lines = text.lines().map(str::trim);
                Ok(lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect())
            }
            Source::Matching { files, directories } => {
                let mut found: Vec<String> = Vec::new();
                for pattern in words() {
                    let paths = glob(pattern, directory).into_iter();
                    let kind = |path: &Path| if path.is_dir() { directories } else { files };
                    found.extend(paths.filter(|path| kind(&directory.join(path))));
                }
                let mut seen = std::collections::HashSet::new();
                found.retain(|path| seen.insert(path.clone()));
                Ok(found)
            }
        }
    }
}

/// What is before `in`, `from` or `matching`, which it is, and what is after it.
fn keyword(text: &str) -> (&str, Source, &str) {
    let mut start = 0;
    let separators = |c: char| c == ',' || c == '(' || c == '[' || c.is_whitespace();
    while start < text.len() {
        let end = text[start..].find(separators).map_or(text.len(), |at| start + at);
        let source = match text[start..end].to_ascii_lowercase().as_str() {
            "in" => Source::In,
            "from" => Source::From,
            "matching" => Source::Matching { files: true, directories: true },
            _ => Source::Nothing,
        };
        if source != Source::Nothing {
            return (&text[..start], source, &text[end..]);
        }
        start = end + text[end..].chars().next().map_or(1, char::len_utf8);
    }
    (text, Source::Nothing, "")
}

fn first_word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, '(' | '['));
    (ends && !word.is_empty()).then_some((word, rest))
}

/// The first of several values in a line, and the others. A comma or space is between them.
fn first_value(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let end = line.find(|c: char| c == ',' || c.is_whitespace()).unwrap_or(line.len());
    let (value, rest) = line.split_at(end);
    let rest = rest.trim_start();
    (value, rest.strip_prefix(',').unwrap_or(rest).trim_start())
}

impl Slice {
    /// Reads a slice, if there is one, and returns what follows it. Patterns of files may start like one.
    fn parse(text: &str, is_pattern: bool) -> Result<Option<(Self, &str)>, String> {
        let Some((inner, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) else {
            return Ok(None);
        };
        if is_pattern && !inner.contains(':') {
            return Ok(None);
        }
        let wrong = || format!("`[{inner}]` is not a slice such as [1:], [:5] or [::2]");
        let mut numbers: [Option<i64>; 3] = [None; 3];
        let parts: Vec<&str> = inner.split(':').map(str::trim).collect();
        if parts.len() > 3 || inner.trim().is_empty() {
            return Err(wrong());
        }
        for (number, part) in numbers.iter_mut().zip(&parts) {
            if !part.is_empty() {
                *number = Some(part.parse().map_err(|_| wrong())?);
            }
        }
        let [start, mut end, step] = numbers;
        if step.is_some_and(|step| step < 1) {
            return Err(format!("the step of the slice `[{inner}]` must be 1 or more"));
        }
        if parts.len() == 1 {
            end = start.filter(|index| *index != -1).map(|index| index.saturating_add(1));
        }
        Ok(Some((Self { start, end, step }, rest)))
    }

    /// Tells of each index of a list whether it is chosen.
    fn chosen(self, size: usize) -> impl Fn(usize) -> bool {
        let size = size as i64;
        let from_end = |n: i64| if n < 0 { size.saturating_add(n).max(0) } else { n };
        let start = from_end(self.start.unwrap_or(0));
        let end = from_end(self.end.unwrap_or(size));
        let step = self.step.unwrap_or(1);
        move |index| {
            let index = index as i64;
            (start..end).contains(&index) && (index - start) % step == 0
        }
    }
}

/// What a command writes. It must succeed.
fn output_of(command: &str, directory: &Path) -> Result<String, String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(directory).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = shell.output().map_err(|e| format!("cannot run `{command}`: {e}"))?;
    if !output.status.success() {
        return Err(format!("`{command}` ended with {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The paths that match a pattern with `*`, `?` and `[…]`, sorted, and relative as the pattern is.
fn glob(pattern: &str, directory: &Path) -> Vec<String> {
    let mut found = vec![if pattern.starts_with('/') { "/".to_owned() } else { String::new() }];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        let is_plain = !part.contains(['*', '?', '[']);
        let mut next = Vec::new();
        for base in found {
            if is_plain {
                next.extend(Some(joined(&base, part)).filter(|path| directory.join(path).exists()));
            } else {
                let names = names_in(&directory.join(&base));
                next.extend(names.iter().filter(|n| matches(part, n)).map(|n| joined(&base, n)));
            }
        }
        found = next;
    }
    found.retain(|path| !path.is_empty());
    found.sort();
    found
}

fn joined(base: &str, name: &str) -> String {
    let slash = if base.is_empty() || base.ends_with('/') { "" } else { "/" };
    format!("{base}{slash}{name}")
}

fn names_in(directory: &PathBuf) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Whether a name matches a pattern. A star is tried with as little as possible, and only the last one again.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (mut pattern, mut name) = (pattern, name);
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            retry = Some((rest, name));
            pattern = rest;
            continue;
        }
        let mut rest_of_name = name.chars();
        match rest_of_name.next() {
            None if pattern.is_empty() => return true,
            None => return false,
            Some(c) => {
                if let Some(rest) = one_matches(pattern, c) {
                    (pattern, name) = (rest, rest_of_name.as_str());
                    continue;
                }
            }
        }
        let Some((after_star, from)) = &mut retry else { return false };
        let mut skipped = from.chars();
        skipped.next();
        *from = skipped.as_str();
        (pattern, name) = (after_star, from);
    }
}

/// What is left of a pattern if its first element matches a character.
fn one_matches(pattern: &str, c: char) -> Option<&str> {
    let mut rest = pattern.chars();
    let element = rest.next()?;
    let set = pattern.strip_prefix('[').and_then(|set| {
        let first = usize::from(set.starts_with(['!', '^']));
        // A bracket that comes first is one of the characters.
        let end = set.char_indices().skip(first + 1).find(|(_, c)| *c == ']')?.0;
        Some((first == 1, &set[first..end], &set[end + 1..]))
    });
    match (element, set) {
        ('[', Some((negated, set, rest))) => (in_set(set, c) != negated).then_some(rest),
        ('?', _) => Some(rest.as_str()),
        (element, _) => (element == c).then_some(rest.as_str()),
    }
}

fn in_set(set: &str, c: char) -> bool {
    let set: Vec<char> = set.chars().collect();
    let mut at = 0;
    while at < set.len() {
        let is_range = set.get(at + 1) == Some(&'-') && at + 2 < set.len();
        let last = if is_range { set[at + 2] } else { set[at] };
        if (set[at]..=last).contains(&c) {
            return true;
        }
        at += if is_range { 3 } else { 1 };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_files_know_stars_question_marks_and_sets() {
        for (pattern, name) in
            [("*.dat", "a.dat"), ("a?c", "abc"), ("[a-c]*[!x]", "b12"), ("*a*b*", "xxaxbx"), ("[]]", "]")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.dat", ".dat"), ("a?c", "ac"), ("[a-c]", "d"), ("*b", "abc"), ("[", "")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        assert!(!matches(&"a*".repeat(50), &"a".repeat(40)));
    }

    #[test]
    fn slices_choose_as_in_python() {
        let of = |text| {
            let (slice, rest) = Slice::parse(text, false).unwrap().unwrap();
            assert_eq!(rest, "");
            (0..6).filter(|index| slice.chosen(6)(*index)).collect::<Vec<_>>()
        };
        assert_eq!(of("[1:3]"), [1, 2]);
        assert_eq!(of("[::2]"), [0, 2, 4]);
        assert_eq!(of("[-2:]"), [4, 5]);
        assert_eq!(of("[:-4]"), [0, 1]);
        assert_eq!(of("[-1]"), [5]);
        assert_eq!(of("[ 2 : 100 : 3 ]"), [2, 5]);
        assert!(Slice::parse("[::-1]", false).is_err());
        assert!(Slice::parse("[a]", false).is_err());
        assert_eq!(Slice::parse("[ab]*.dat", true), Ok(None));
    }
}
