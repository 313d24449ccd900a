//! Writes priorities into DAGMan files and submit descriptions. Everything else stays as it is.

use super::parse::{Command, Statement, parse};
use super::{Name, Submit};
use crate::diag::Diagnostics;
use std::collections::BTreeSet;
use std::fmt::Write;

/// How priorities are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityMethod {
    /// With the command PRIORITY, which orders DAGMan's own queue and HTCondor's.
    pub command: bool,
    /// With the macro JOBPRIORITY, which submit descriptions use.
    pub macros: bool,
}

const HEADER: &str = "# Priorities";
const MACRO: &str = "JOBPRIORITY";
const LINE: &str = "priority = $(JOBPRIORITY)";

/// The text of a DAG file with priorities at its end; earlier ones are gone.
pub fn prioritised_dag(text: &str, priorities: &[(Name, usize)], method: PriorityMethod) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut dropped: BTreeSet<u32> = BTreeSet::new();
    // Where a line goes into a description in the file.
    let mut inserted: BTreeSet<u32> = BTreeSet::new();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    parse(text, 0, &mut Diagnostics::default(), |Statement { span, last, command }, _| match command {
        Command::Priority { .. } => dropped.extend(span.line..=last),
        Command::Vars { pairs, .. } if matches!(pairs.as_slice(), [(key, _)] if key == MACRO) => {
            dropped.extend(span.line..=last);
        }
        command if method.macros && is_inline(&command) => {
            let inside = span.line + 1..last;
            let line = |n: u32| lines[n as usize - 1];
            dropped.extend(inside.clone().filter(|n| is_key(line(*n), "priority")));
            inserted.insert(inside.clone().find(|n| is_queue(line(*n))).unwrap_or(inside.end));
        }
        _ => {}
    });
    let mut out = String::with_capacity(text.len() + priorities.len() * 32);
    for (number, line) in (1..).zip(&lines) {
        if inserted.contains(&number) {
            let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
            let _ = write!(out, "{indent}{LINE}{end}");
        }
        if !dropped.contains(&number) && line.trim_end() != HEADER {
            out += line;
        }
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out += end;
    }
    let _ = write!(out, "{HEADER}{end}");
    for (node, priority) in priorities {
        if method.command {
            let _ = write!(out, "PRIORITY {node} {priority}{end}");
        }
        if method.macros {
            let _ = write!(out, "VARS {node} {MACRO}=\"{priority}\"{end}");
        }
    }
    out
}

/// The text of a submit description that takes its priority from the macro; an earlier priority is gone.
pub fn prioritised_submit(text: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len() + 32);
    let mut inserted = false;
    for line in text.split_inclusive('\n') {
        if !inserted && is_queue(line) {
            let _ = write!(out, "{LINE}{end}");
            inserted = true;
        }
        if !is_key(line, "priority") {
            out += line;
        }
    }
    if !inserted {
        if !out.is_empty() && !out.ends_with('\n') {
            out += end;
        }
        let _ = write!(out, "{LINE}{end}");
    }
    out
}

/// Whether a command has a submit description in its lines.
fn is_inline(command: &Command) -> bool {
    match command {
        Command::Node(node) => matches!(node.submit, Submit::Inline { .. }),
        command => matches!(command, Command::Description { .. }),
    }
}

fn is_key(line: &str, key: &str) -> bool {
    line.split_once('=').is_some_and(|(k, _)| k.trim().eq_ignore_ascii_case(key))
}

fn is_queue(line: &str) -> bool {
    let word: String = line.trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    word.eq_ignore_ascii_case("queue") && !line.trim_start()[5..].trim_start().starts_with('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: PriorityMethod = PriorityMethod { command: true, macros: true };

    #[test]
    fn priorities_replace_earlier_ones_and_nothing_else() {
        let text = "# a\r\nJOB a a.sub\r\npriority \\\r\n  a 7\r\nJOB b {\r\n  executable = x\r\n  Priority = 3\r\n  queue\r\n}\r\n  VARS a x=\"1\"";
        let priorities = [(Name::new("a"), 2), (Name::new("b"), 1)];
        let once = prioritised_dag(text, &priorities, BOTH);
        let expected = "# a\r\nJOB a a.sub\r\nJOB b {\r\n  executable = x\r\n  priority = $(JOBPRIORITY)\r\n  queue\r\n}\r\n  VARS a x=\"1\"\r\n# Priorities\r\nPRIORITY a 2\r\nVARS a JOBPRIORITY=\"2\"\r\nPRIORITY b 1\r\nVARS b JOBPRIORITY=\"1\"\r\n";
        assert_eq!(once, expected);
        assert_eq!(prioritised_dag(&once, &priorities, BOTH), once);
    }

    #[test]
    fn submit_descriptions_say_it_before_queue_and_once() {
        let text = "executable = x\npriority=4\npriority_x = 1\n Queue 3 in (a b)\n";
        let once = prioritised_submit(text);
        assert_eq!(once, "executable = x\npriority_x = 1\npriority = $(JOBPRIORITY)\n Queue 3 in (a b)\n");
        assert_eq!(prioritised_submit(&once), once);
        assert_eq!(prioritised_submit("executable = x"), "executable = x\npriority = $(JOBPRIORITY)\n");
    }
}
