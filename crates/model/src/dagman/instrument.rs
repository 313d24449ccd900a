//! Writes priorities into DAGMan files and submit descriptions. Everything else stays as it is.

use super::parse::{Command, Statement, parse};
use super::{Name, NodeKind, Submit};
use crate::diag::Diagnostics;
use std::fmt::Write;

/// How priorities are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriorityMethod {
    /// With the command PRIORITY, which orders DAGMan's own queue and HTCondor's.
    pub command: bool,
    /// With the macro JOBPRIORITY, which submit descriptions use.
    pub macros: bool,
}

const HEADER: &str = "# Priorities, written by catena prio";
const MACRO: &str = "JOBPRIORITY";
const VALUE: &str = "$(JOBPRIORITY)";

/// The text of a DAG file with priorities at its end; earlier ones are gone. Nodes without a place in the order
/// get the usual priority where a description asks for one.
pub fn prioritised_dag(
    text: &str,
    priorities: &[(Name, usize)],
    others: &[Name],
    method: PriorityMethod,
) -> String {
    let end = line_end(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut dropped = vec![false; lines.len() + 2];
    // Descriptions in the file: their first lines and the lines after them.
    let mut descriptions: Vec<(usize, usize)> = Vec::new();
    parse(text, 0, &mut Diagnostics::default(), |Statement { span, last, command }, _| match command {
        Command::Priority { .. } => dropped[span.line as usize..=last as usize].fill(true),
        Command::Vars { pairs, .. } if matches!(pairs.as_slice(), [(key, _)] if key.eq_ignore_ascii_case(MACRO)) =>
        {
            dropped[span.line as usize..=last as usize].fill(true);
        }
        Command::Node(node) if node.kind == NodeKind::Job => {
            if let Submit::Inline { line, .. } = node.submit {
                descriptions.push((line as usize, last as usize));
            }
        }
        Command::Description { name, .. } => descriptions.push((name.span.line as usize + 1, last as usize)),
        _ => {}
    });
    let mut out = String::with_capacity(text.len() + priorities.len() * 32);
    let mut descriptions = descriptions.into_iter().peekable();
    let mut number = 1;
    while let Some(line) = lines.get(number - 1) {
        if let Some((first, after)) =
            descriptions.next_if(|(first, after)| *first == number && after >= first)
        {
            out += &prioritised_submit(&lines[first - 1..after - 1].concat(), method);
            number = after;
            continue;
        }
        if !dropped[number] && line.trim_end() != HEADER {
            out += line;
        }
        number += 1;
    }
    close_last_command(&mut out);
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
    for node in others.iter().filter(|_| method.macros) {
        let _ = write!(out, "VARS {node} {MACRO}=\"0\"{end}");
    }
    out
}

/// A command that would go on in the next line ends with the file; it must not go on in what is added.
fn close_last_command(text: &mut String) {
    let mut backslash = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if !content.is_empty() && !content.starts_with('#') && !content.starts_with("//") {
            backslash = content.ends_with('\\').then(|| start + line.trim_end().len() - 1);
        }
        start += line.len();
    }
    if let Some(at) = backslash {
        text.remove(at);
    }
}

/// The text of a submit description that takes its priority from the macro, in place of an earlier priority. If
/// priorities are told in another way, it does not take it from the macro any more.
pub fn prioritised_submit(text: &str, method: PriorityMethod) -> String {
    let end = line_end(text);
    let mut out = String::with_capacity(text.len() + 32);
    let mut missing = method.macros;
    for line in logical_lines(text) {
        if missing && is_queue(line) {
            let indent = &line[..line.len() - line.trim_start().len()];
            let _ = write!(out, "{indent}priority = {VALUE}{end}");
            missing = false;
        }
        let is_dropped = priority(line).is_some_and(|value| method.macros || value == VALUE);
        if !is_dropped {
            out += line;
        }
    }
    if missing {
        if !out.is_empty() && !out.ends_with('\n') {
            out += end;
        }
        let _ = write!(out, "priority = {VALUE}{end}");
    }
    out
}

/// Whether a submit description says a priority of its own, which counts more than the command PRIORITY.
pub fn has_own_priority(text: &str) -> bool {
    logical_lines(text).any(|line| priority(line).is_some_and(|value| value != VALUE))
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Lines with those in which they go on.
fn logical_lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            length += line.len();
            if !line.trim_end().ends_with('\\') || line.trim_start().starts_with('#') {
                break;
            }
        }
        let (line, after) = rest.split_at(length);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

/// The priority that a line of a submit description says.
fn priority(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=')?;
    let is_priority = ["priority", "prio"].iter().any(|name| key.trim().eq_ignore_ascii_case(name));
    is_priority.then(|| value.trim())
}

fn is_queue(line: &str) -> bool {
    let line = line.trim_start();
    let word: String = line.chars().take_while(|c| c.is_alphabetic()).collect();
    word.eq_ignore_ascii_case("queue") && !line[5..].trim_start().starts_with('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: PriorityMethod = PriorityMethod { command: true, macros: true };
    const COMMAND: PriorityMethod = PriorityMethod { command: true, macros: false };

    #[test]
    fn priorities_replace_earlier_ones_and_nothing_else() {
        let text = "# a\r\nJOB a a.sub\r\npriority \\\r\n  a 7\r\nJOB b {\r\n  executable = x\r\n  Priority = 3\r\n  queue\r\n}\r\n# Priorities\r\n  VARS a x=\"1\"";
        let priorities = [(Name::new("a"), 2), (Name::new("b"), 1)];
        let once = prioritised_dag(text, &priorities, &[], BOTH);
        let expected = "# a\r\nJOB a a.sub\r\nJOB b {\r\n  executable = x\r\n  priority = $(JOBPRIORITY)\r\n  queue\r\n}\r\n# Priorities\r\n  VARS a x=\"1\"\r\n# Priorities, written by catena prio\r\nPRIORITY a 2\r\nVARS a JOBPRIORITY=\"2\"\r\nPRIORITY b 1\r\nVARS b JOBPRIORITY=\"1\"\r\n";
        assert_eq!(once, expected);
        assert_eq!(prioritised_dag(&once, &priorities, &[], BOTH), once);
        let command = prioritised_dag(&once, &priorities, &[], COMMAND);
        assert!(!command.contains("JOBPRIORITY"), "{command}");
    }

    #[test]
    fn only_ordinary_jobs_need_a_priority() {
        let text = "JOB a d\nFINAL f {\n queue\n}\nSUBMIT-DESCRIPTION d @=x\n queue\n@x\nFINAL g d";
        let out = prioritised_dag(text, &[(Name::new("a"), 1)], &[Name::new("g")], BOTH);
        assert!(out.starts_with("JOB a d\nFINAL f {\n queue\n}\nSUBMIT-DESCRIPTION d @=x\n priority = $(JOBPRIORITY)\n queue\n@x\nFINAL g d\n"), "{out}");
        assert!(out.ends_with("PRIORITY a 1\nVARS a JOBPRIORITY=\"1\"\nVARS g JOBPRIORITY=\"0\"\n"), "{out}");
    }

    #[test]
    fn a_command_that_goes_on_at_the_end_ends_there() {
        let out = prioritised_dag("JOB a x\nJOB b x\nPARENT a CHILD b \\\n# end \\", &[], &[], COMMAND);
        assert!(out.starts_with("JOB a x\nJOB b x\nPARENT a CHILD b \n# end \\\n# Prio"), "{out}");
    }

    #[test]
    fn submit_descriptions_say_it_before_queue_and_once() {
        let text = "executable = x\npriority=4\nPRIO = \\\n 3\npriority_x = 1\narguments = a \\\n queue\n Queue 3 in (a b)\n";
        let once = prioritised_submit(text, BOTH);
        assert_eq!(
            once,
            "executable = x\npriority_x = 1\narguments = a \\\n queue\n priority = $(JOBPRIORITY)\n Queue 3 in (a b)\n"
        );
        assert_eq!(prioritised_submit(&once, BOTH), once);
        assert_eq!(prioritised_submit("executable = x", BOTH), "executable = x\npriority = $(JOBPRIORITY)\n");
    }

    #[test]
    fn a_priority_of_its_own_stays_if_priorities_are_commands() {
        let text = "priority = 4\nqueue\n";
        assert_eq!(prioritised_submit(text, COMMAND), text);
        assert!(has_own_priority(text));
        let instrumented = prioritised_submit(text, BOTH);
        assert!(!has_own_priority(&instrumented));
        assert_eq!(prioritised_submit(&instrumented, COMMAND), "queue\n");
    }
}
