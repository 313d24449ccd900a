//! Files by name and by pattern.

use std::path::{Path, PathBuf};

/// The full path, without touching symbolic links.
pub(crate) fn absolute(path: &Path) -> String {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut out = PathBuf::new();
    for part in full.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
    }
    out.to_string_lossy().into_owned()
}

/// Files below `directory` whose path matches `pattern`: `*` and `?` within a name, `**` across names.
pub(crate) fn glob(directory: &Path, pattern: &str) -> std::io::Result<Vec<String>> {
    fn walk(at: &Path, parts: &[&str], out: &mut Vec<String>) -> std::io::Result<()> {
        let Some((first, rest)) = parts.split_first() else {
            if at.is_file() {
                out.push(absolute(at));
            }
            return Ok(());
        };
        if *first == "**" {
            walk(at, rest, out)?;
        } else if !first.contains(['*', '?']) {
            return walk(&at.join(first), rest, out);
        }
        if !at.is_dir() {
            return Ok(());
        }
        for entry in std::fs::read_dir(at)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if *first == "**" {
                if entry.file_type()?.is_dir() && !name.starts_with('.') {
                    walk(&entry.path(), parts, out)?;
                }
            } else if name_matches(first, &name) && (!name.starts_with('.') || first.starts_with('.')) {
                walk(&entry.path(), rest, out)?;
            }
        }
        Ok(())
    }
    let parts: Vec<&str> = pattern.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    let start = if pattern.starts_with('/') { Path::new("/") } else { directory };
    let mut out = Vec::new();
    walk(start, &parts, &mut out)?;
    out.sort();
    out.dedup();
    Ok(out)
}

/// Whether a file name matches a pattern with `*` and `?`.
fn name_matches(pattern: &str, name: &str) -> bool {
    let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < n.len() {
        if i < p.len() && (p[i] == '?' || p[i] == n[j]) && p[i] != '*' {
            i += 1;
            j += 1;
        } else if i < p.len() && p[i] == '*' {
            star = Some((i, j));
            i += 1;
        } else if let Some((at, from)) = star {
            i = at + 1;
            j = from + 1;
            star = Some((at, from + 1));
        } else {
            return false;
        }
    }
    p[i..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        assert!(name_matches("*.txt", "a.txt"));
        assert!(name_matches("s?_*.fq*", "s1_R1.fq.gz"));
        assert!(!name_matches("*.txt", "a.txt.gz"));
        assert!(name_matches("*", ""));
    }
}
