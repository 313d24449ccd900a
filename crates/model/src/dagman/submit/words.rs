//! Values that are lists: arguments, variables of the environment, files.

use crate::Name;

/// The items of a list that has commas or space between them.
pub(super) fn list(text: &str) -> Vec<&str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty()).collect()
}

/// The items of a list that has commas or ends of lines between them, since names of files may have spaces.
pub(super) fn files(text: &str) -> Vec<&str> {
    let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    text.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Pairs such as `"a = b; c = d"`. A backslash before `;` or `=` makes it part of a name.
pub(super) fn pairs(value: &str) -> Result<Vec<(Name, Name)>, String> {
    let text = value.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(value);
    let plain = |part: &str| Name::new(part.trim().replace("\\;", ";").replace("\\=", "="));
    let mut pairs = Vec::new();
    for pair in split_unescaped(text, ';').into_iter().filter(|pair| !pair.trim().is_empty()) {
        match split_unescaped(pair, '=')[..] {
            [from, to] if !from.trim().is_empty() && !to.trim().is_empty() => {
                pairs.push((plain(from), plain(to)));
            }
            _ => return Err(format!("`{}` is not a name and a new one, `name = new name`", pair.trim())),
        }
    }
    Ok(pairs)
}

fn split_unescaped(text: &str, separator: char) -> Vec<&str> {
    let mut before = ' ';
    text.split(|c| {
        let escaped = std::mem::replace(&mut before, c) == '\\';
        c == separator && !escaped
    })
    .collect()
}

/// The arguments of a program, in the old or the new syntax.
pub(super) fn arguments(value: &str) -> Result<Vec<Name>, String> {
    match quoted(value)? {
        Some(inner) => Ok(new_words(&inner)?.into_iter().map(Name::from).collect()),
        None => Ok(old_arguments(value)?.split_whitespace().map(Name::new).collect()),
    }
}

/// The variables of an environment, in the old or the new syntax. The last value of a name counts.
pub(super) fn environment(value: &str) -> Result<Vec<(Name, String)>, String> {
    let entries = match quoted(value)? {
        Some(inner) => new_words(&inner)?,
        // Here quotes are characters as others are.
        None => value.split(';').map(|entry| entry.trim_start().to_owned()).collect(),
    };
    let mut variables: Vec<(Name, String)> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_empty()) {
        let pair = entry.split_once('=').filter(|(name, _)| !name.trim().is_empty());
        let Some((name, value)) = pair else {
            return Err(format!("`{entry}` is not a variable and its value, `name=value`"));
        };
        variables.push((Name::new(name.trim()), value.to_owned()));
    }
    Ok(last_of_each(variables))
}

fn last_of_each(mut variables: Vec<(Name, String)>) -> Vec<(Name, String)> {
    let mut seen = std::collections::HashSet::new();
    variables.reverse();
    variables.retain(|(name, _)| seen.insert(name.clone()));
    variables.reverse();
    variables
}

/// The old syntax of arguments knows one escape, that of the double quote.
fn old_arguments(value: &str) -> Result<String, String> {
    if value.split("\\\"").any(|part| part.contains('"')) {
        let message = "a double quote must be written \\\" here, or double quotes be around the whole value";
        return Err(message.to_owned());
    }
    Ok(value.replace("\\\"", "\""))
}

/// What is in the double quotes around a whole value, which mean the new syntax.
fn quoted(value: &str) -> Result<Option<String>, String> {
    let Some(rest) = value.strip_prefix('"') else { return Ok(None) };
    let not_closed = || "the double quote at the start is not closed at the end".to_owned();
    let inner = rest.strip_suffix('"').ok_or_else(not_closed)?;
    if inner.split("\"\"").any(|part| part.contains('"')) {
        return Err("a double quote must be written \"\" in double quotes".to_owned());
    }
    Ok(Some(inner.replace("\"\"", "\"")))
}

/// Words with space between them. Single quotes keep space; in them, two stand for one.
fn new_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut in_quotes = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' if in_quotes && rest.next_if_eq(&'\'').is_some() => {
                word.get_or_insert_default().push('\'');
            }
            '\'' => {
                in_quotes = !in_quotes;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !in_quotes => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if in_quotes { Err("a single quote is not closed".to_owned()) } else { Ok(words) }
}
