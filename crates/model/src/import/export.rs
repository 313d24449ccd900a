//! Traces as files that other systems read.

use super::Trace;
use crate::Name;
use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes a trace as WfFormat 1.5.
///
/// Its schema allows few characters in the ids of tasks and files. Others are written as `#` and their codes, so that
/// every file is valid; names that the schema allows stay as they are.
pub fn write_wfformat(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut parents = vec![Vec::new(); trace.jobs.len()];
    let mut children = vec![Vec::new(); trace.jobs.len()];
    for (from, to) in &trace.arcs {
        parents[*to as usize].push(*from);
        children[*from as usize].push(*to);
    }
    let of_jobs = |list| Ids(list, |j: u32| id(&trace.jobs[j as usize].id, TASK));
    let of_files = |list| Ids(list, |f: u32| id(&trace.files[f as usize].name, FILE));
    let specified =
        trace.jobs.iter().zip(parents.iter().zip(&children)).map(|(job, (parents, children))| Task {
            name: &job.program,
            id: id(&job.id, TASK),
            parents: of_jobs(parents),
            children: of_jobs(children),
            input_files: of_files(&job.inputs),
            output_files: of_files(&job.outputs),
        });
    let files = trace.files.iter().map(|f| File { id: id(&f.name, FILE), size_in_bytes: f.size });
    let executed = trace.jobs.iter().map(|job| Executed {
        id: id(&job.id, TASK),
        runtime_in_seconds: job.runtime,
        command: Command { program: &job.program },
        // The schema knows no parts of processors.
        core_count: Some(job.cores).filter(|c| *c >= 1.0),
        memory_in_bytes: Some(job.memory).filter(|m| *m > 0),
    });
    let document = Document {
        name: if trace.name.is_empty() { "workflow" } else { &trace.name },
        schema_version: "1.5",
        workflow: Workflow {
            specification: Specification { tasks: Each(specified), files: Each(files) },
            execution: Execution {
                makespan_in_seconds: trace.critical_path(),
                executed_at: "1970-01-01T00:00:00Z",
                tasks: Each(executed),
            },
        },
    };
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, Lines::default()))?;
    out.write_all(b"\n")
}

/// JSON with a line for each task and each file: half as long as with a line for each value, and still to be read.
#[derive(Default)]
struct Lines {
    depth: usize,
}

impl Lines {
    /// How deep the lists of tasks and files are.
    const DEEPEST: usize = 4;

    fn open<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        out.write_all(bracket)
    }

    fn close<W: Write + ?Sized>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < Self::DEEPEST {
            self.line(out)?;
        }
        out.write_all(bracket)
    }

    fn next<W: Write + ?Sized>(&self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        match self.depth {
            0..=Self::DEEPEST => self.line(out),
            _ if first => Ok(()),
            _ => out.write_all(b" "),
        }
    }

    fn line<W: Write + ?Sized>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(&b"\n        "[..=2 * self.depth.min(Self::DEEPEST)])
    }
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// A list that is written item by item, so that it is never in memory as a whole.
struct Each<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Each<I> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.clone())
    }
}

/// The ids of jobs or files.
struct Ids<'a, F>(&'a [u32], F);

impl<'a, F: Fn(u32) -> Cow<'a, str>> Serialize for Ids<'a, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(|n| self.1(*n)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, W> {
    name: &'a str,
    schema_version: &'static str,
    workflow: W,
}

#[derive(Serialize)]
struct Workflow<S, E> {
    specification: S,
    execution: E,
}

#[derive(Serialize)]
struct Specification<T, F> {
    tasks: T,
    files: F,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<T> {
    makespan_in_seconds: f64,
    executed_at: &'static str,
    tasks: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a, J, F> {
    name: &'a Name,
    id: Cow<'a, str>,
    parents: J,
    children: J,
    input_files: F,
    output_files: F,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    id: Cow<'a, str>,
    size_in_bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Executed<'a> {
    id: Cow<'a, str>,
    runtime_in_seconds: f64,
    command: Command<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core_count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_in_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Command<'a> {
    program: &'a Name,
}

/// What the ids of tasks and of files may have besides letters and digits.
const TASK: &str = "-_.#";
const FILE: &str = "-_./:#";

/// An id in the characters that are allowed.
fn id<'a>(name: &'a str, allowed: &str) -> Cow<'a, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || allowed.contains(c);
    if name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let mut out = String::new();
    for c in name.chars() {
        if is_allowed(c) && c != '#' {
            out.push(c);
        } else {
            let _ = write!(out, "#{:X}", u32::from(c));
        }
    }
    Cow::Owned(out)
}

/// Writes a trace as Pegasus DAX 3, with runtimes as attributes of the jobs, where simulators look for them.
pub fn write_dax(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut arcs = trace.arcs.clone();
    arcs.sort_by_key(|(_, to)| *to);
    let children = arcs.chunk_by(|a, b| a.1 == b.1).count();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<adag xmlns=\"http://pegasus.isi.edu/schema/DAX\" version=\"3.6\" name=\"{}\" jobCount=\"{}\" childCount=\"{children}\">",
        escape(&trace.name),
        trace.jobs.len(),
    )?;
    for job in &trace.jobs {
        let (id, program) = (escape(&job.id), escape(&job.program));
        writeln!(out, "  <job id=\"{id}\" name=\"{program}\" runtime=\"{}\">", job.runtime)?;
        let mut profile = |key: &str, value: f64| {
            writeln!(out, "    <profile namespace=\"pegasus\" key=\"{key}\">{value}</profile>")
        };
        if job.cores.to_bits() != 1.0_f64.to_bits() {
            profile("cores", job.cores)?;
        }
        if job.memory > 0 {
            // In megabytes.
            profile("memory", job.memory as f64 / 1e6)?;
        }
        for (files, link) in [(&job.inputs, "input"), (&job.outputs, "output")] {
            for file in files.iter().map(|f| &trace.files[*f as usize]) {
                let name = escape(&file.name);
                writeln!(out, "    <uses name=\"{name}\" link=\"{link}\" size=\"{}\"/>", file.size)?;
            }
        }
        writeln!(out, "  </job>")?;
    }
    for group in arcs.chunk_by(|a, b| a.1 == b.1) {
        writeln!(out, "  <child ref=\"{}\">", escape(&trace.jobs[group[0].1 as usize].id))?;
        for (from, _) in group {
            writeln!(out, "    <parent ref=\"{}\"/>", escape(&trace.jobs[*from as usize].id))?;
        }
        writeln!(out, "  </child>")?;
    }
    writeln!(out, "</adag>")
}

/// A text as the value of an attribute. What XML cannot say becomes the sign for what cannot be said.
fn escape(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !matches!(c, '&' | '<' | '>' | '"' | '\u{fffe}' | '\u{ffff}') && c >= ' ';
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // As they are, they would become blanks.
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if plain(c) => out.push(c),
            _ => out.push('\u{fffd}'),
        }
    }
    Cow::Owned(out)
}
