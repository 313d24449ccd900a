//! Functions of submit descriptions, such as `$Fn(path)`.

use super::macros::{Scope, is_name};
use super::numbers::{Number, evaluate, formatted};
use super::words::list;
use std::hash::{BuildHasher, RandomState};

/// Whether there is a function with this name. The case counts.
pub(super) fn is_function(name: &str) -> bool {
    match name {
        "ENV" | "INT" | "REAL" | "STRING" | "EVAL" | "SUBSTR" | "CHOICE" | "RANDOM_CHOICE"
        | "RANDOM_INTEGER" | "DIRNAME" | "BASENAME" => true,
        name => name.strip_prefix('F').is_some_and(|options| {
            options.len() <= 16 && options.bytes().all(|b| b"fpduwnxbqa".contains(&b))
        }),
    }
}

/// The value of a function. References in `body` are replaced already.
pub(super) fn call(scope: &mut Scope<'_>, function: &str, body: &str) -> Result<String, String> {
    match function {
        "ENV" => Ok(environment(body)),
        "INT" | "REAL" | "STRING" | "EVAL" => converted(scope, function, body),
        "SUBSTR" => substring(scope, body),
        "CHOICE" => choice(scope, body),
        "RANDOM_CHOICE" => {
            let items = list(body);
            let at = random(items.len() as u64) as usize;
            items
                .get(at)
                .map(|item| (*item).to_owned())
                .ok_or_else(|| "there is nothing to choose".to_owned())
        }
        "RANDOM_INTEGER" => random_integer(body),
        "DIRNAME" => file_name(scope, "p", body),
        "BASENAME" => file_name(scope, "nx", body),
        name => file_name(scope, &name[1..], body),
    }
}

fn environment(body: &str) -> String {
    let (name, default) = body.split_once(':').unwrap_or((body, "UNDEFINED"));
    let name = name.trim();
    let is_valid = !name.is_empty() && !name.contains(['=', '\0']);
    let value = if is_valid { std::env::var_os(name) } else { None };
    value.map_or_else(|| default.to_owned(), |value| value.to_string_lossy().into_owned())
}

/// The value of the macro with this name, or else the text itself.
fn meant(scope: &mut Scope<'_>, text: &str) -> Result<String, String> {
    let text = text.trim();
    let value = if is_name(text) { scope.value(text)? } else { None };
    Ok(value.unwrap_or_else(|| text.to_owned()))
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text)
}

fn converted(scope: &mut Scope<'_>, function: &str, body: &str) -> Result<String, String> {
    // Everything after the comma is the format, also the space.
    let (item, format) = match body.split_once(',') {
        Some((item, format)) if function != "EVAL" => (item, Some(format)),
        _ => (body, None),
    };
    let value = meant(scope, item)?;
    let number = || evaluate(&value).ok_or_else(|| format!("${function}: `{value}` is not a number"));
    match function {
        "INT" => formatted(format.unwrap_or("%d"), &number()?, ""),
        "REAL" => formatted(format.unwrap_or("%G"), &number()?, ""),
        "EVAL" => match evaluate(&value) {
            Some(Number::Whole(n)) => Ok(n.to_string()),
            Some(Number::Real(n)) => Ok(n.to_string()),
            None => Ok(unquoted(&value).to_owned()),
        },
        _ => formatted(format.unwrap_or("%s"), &Number::Whole(0), unquoted(&value)),
    }
}

fn substring(scope: &mut Scope<'_>, body: &str) -> Result<String, String> {
    let parts: Vec<&str> = body.split(',').map(str::trim).collect();
    let [name, positions @ ..] = parts.as_slice() else { return Ok(String::new()) };
    let mut numbers = Vec::new();
    for position in positions {
        numbers.push(whole(&meant(scope, position)?, "$SUBSTR")?);
    }
    let text: Vec<char> = meant(scope, name)?.chars().collect();
    let size = text.len() as i64;
    let from_end = |n: i64, base: i64| if n < 0 { size.saturating_add(n) } else { base.saturating_add(n) };
    let start = from_end(numbers.first().copied().unwrap_or(0), 0).clamp(0, size);
    let end = numbers.get(1).map_or(size, |n| from_end(*n, start)).clamp(start, size);
    Ok(text[start as usize..end as usize].iter().collect())
}

fn choice(scope: &mut Scope<'_>, body: &str) -> Result<String, String> {
    let (index, items) = body.split_once(',').ok_or("$CHOICE needs an index and a list")?;
    let index = whole(&meant(scope, index)?, "$CHOICE")?;
    // One word that is no item is the name of a list.
    let items = meant(scope, items)?;
    let items = list(&items);
    let item = usize::try_from(index).ok().and_then(|index| items.get(index));
    item.map(|item| (*item).to_owned())
        .ok_or_else(|| format!("$CHOICE: there is no item {index} in a list of {}", items.len()))
}

fn random_integer(body: &str) -> Result<String, String> {
    let numbers: Result<Vec<i64>, String> =
        body.split(',').map(|n| whole(n.trim(), "$RANDOM_INTEGER")).collect();
    let (min, max, step) = match numbers?[..] {
        [min, max] => (min, max, 1),
        [min, max, step] => (min, max, step),
        _ => return Err("$RANDOM_INTEGER needs a smallest and a greatest number".to_owned()),
    };
    if min > max || step < 1 {
        return Err(format!("$RANDOM_INTEGER: there is no number from {min} to {max} in steps of {step}"));
    }
    let count = (i128::from(max) - i128::from(min)) / i128::from(step) + 1;
    let at = random(u64::try_from(count).unwrap_or(u64::MAX));
    Ok((i128::from(min) + i128::from(at) * i128::from(step)).to_string())
}

/// A random number below a limit. The hasher of the standard library has other keys each time.
fn random(limit: u64) -> u64 {
    RandomState::new().hash_one(0) % limit.max(1)
}

fn whole(text: &str, function: &str) -> Result<i64, String> {
    match evaluate(text) {
        Some(Number::Whole(n)) => Ok(n),
        _ => Err(format!("{function}: `{text}` is not a whole number")),
    }
}

/// Parts of the name of a file; which is told by letters.
fn file_name(scope: &mut Scope<'_>, options: &str, body: &str) -> Result<String, String> {
    let has = |option| options.contains(option);
    let mut path = unquoted(&meant(scope, body)?).to_owned();
    if has('f') && !path.starts_with('/') {
        path = format!("{}/{path}", scope.directory.display());
    }
    let name_at = path.rfind('/').map_or(0, |at| at + 1);
    let (directory, name) = path.split_at(name_at);
    let (stem, extension) = name.split_at(name.rfind('.').unwrap_or(name.len()));
    let last = directory.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    let mut out = String::new();
    if !["p", "d", "n", "x"].iter().any(|part| options.contains(part)) {
        out.clone_from(&path);
    } else if has('p') {
        out += directory;
    } else if has('d') {
        out += if has('b') { directory[last..].trim_end_matches('/') } else { &directory[last..] };
    }
    if has('n') {
        out += stem;
    }
    if has('x') {
        out += if has('b') { extension.trim_start_matches('.') } else { extension };
    }
    if has('w') {
        out = out.replace('/', "\\");
    } else if has('u') {
        out = out.replace('\\', "/");
    }
    Ok(match (has('q'), has('a')) {
        (true, true) => format!("'{out}'"),
        (true, false) => format!("\"{out}\""),
        _ => out,
    })
}
