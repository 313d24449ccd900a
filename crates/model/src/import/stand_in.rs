//! A recorded workflow as one that runs: its tasks take as long, and read and write as much.
//!
//! Nobody has the programs and the data of a workflow that was recorded elsewhere or never ran at all. Their stand-ins
//! read all their inputs, wait, and write files of the right sizes. What is in a file depends on its name only, so that no
//! two files are alike, and every execution writes the same.

use super::{Trace, TraceJob};
use crate::Name;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files that come from outside are here, beside the workflow.
const DATA: &str = "data";

/// Tasks take so many times as long, if their agent says so in their environment.
const SLOW: &str = "${CATENA_TEST_SLOW:-1}";

/// A workflow that does nothing but take time and space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// The workflow in the short form.
    pub workflow: String,
    /// The names of its steps, in the order of the jobs.
    pub steps: Vec<String>,
    /// What it reads and does not write: where it is expected, beside the workflow.
    pub inputs: Vec<StandInFile>,
}

/// A file that a stand-in reads and does not write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandInFile {
    /// Where it is, beside the workflow.
    pub path: PathBuf,
    /// What it consists of, again and again.
    tag: String,
    /// How large it is.
    pub size: u64,
}

impl StandIn {
    /// The stand-in for a recorded workflow.
    pub fn new(trace: &Trace) -> Self {
        Writer::new(trace).stand_in()
    }

    /// Writes the workflow into a directory as `workflow.yaml`, with the files that it reads.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory.join(DATA))?;
        for input in &self.inputs {
            input.write(&directory.join(&input.path))?;
        }
        fs::write(directory.join("workflow.yaml"), &self.workflow)
    }
}

impl StandInFile {
    fn write(&self, path: &Path) -> io::Result<()> {
        let line = format!("{}\n", self.tag);
        let block = line.repeat((1 << 16) / line.len() + 1).into_bytes();
        let (mut file, mut left) = (File::create(path)?, self.size);
        while left > 0 {
            let part = left.min(block.len() as u64);
            file.write_all(&block[..part as usize])?;
            left -= part;
        }
        Ok(())
    }
}

/// Names that are none where they are needed, made into such. No two are the same.
#[derive(Default)]
struct Names {
    used: HashSet<String>,
}

impl Names {
    /// A name of letters, digits and what else is allowed, that begins with a letter.
    fn unique(&mut self, name: &str, also: &[char]) -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || also.contains(&c) { c } else { '_' };
        let mut plain: String = name.chars().map(allowed).collect();
        if !plain.starts_with(|c: char| c.is_ascii_alphabetic()) {
            plain.insert(0, 'x');
        }
        let mut unique = plain.clone();
        for n in 2.. {
            if self.used.insert(unique.clone()) {
                break;
            }
            unique = format!("{plain}-{n}");
        }
        unique
    }
}

/// What is the same for tasks that have a service in common: their program, how many files they write, what they need.
type Kind<'t> = (&'t Name, usize, &'t [Name]);

struct Writer<'t> {
    trace: &'t Trace,
    /// The names of steps.
    steps: Vec<String>,
    /// The names of files: no two are the same.
    files: Vec<String>,
    services: BTreeMap<Kind<'t>, String>,
    /// The job that writes each file, and which of its outputs it is.
    writers: HashMap<u32, (usize, usize)>,
    /// What stands for each file from outside.
    outside: BTreeMap<u32, String>,
}

impl<'t> Writer<'t> {
    fn new(trace: &'t Trace) -> Self {
        let mut names = Names::default();
        let steps = trace.jobs.iter().map(|job| names.unique(&job.id, &['-'])).collect();
        let mut writers = HashMap::new();
        for (number, job) in trace.jobs.iter().enumerate() {
            writers.extend(job.outputs.iter().enumerate().map(|(n, file)| (*file, (number, n))));
        }
        let read: BTreeSet<u32> = trace.jobs.iter().flat_map(|job| &job.inputs).copied().collect();
        let outside = read.into_iter().filter(|file| !writers.contains_key(file));
        let outside = outside.map(|f| (f, names.unique(&trace.files[f as usize].name, &['-']))).collect();
        let mut places = Names::default();
        let base = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        let files = trace.files.iter().map(|f| places.unique(&base(&f.name), &['-', '.'])).collect();
        let (mut ids, mut services) = (Names::default(), BTreeMap::new());
        for job in &trace.jobs {
            services.entry(kind(job)).or_insert_with(|| ids.unique(&job.program, &['-']));
        }
        Self { trace, steps, files, services, writers, outside }
    }

    fn stand_in(&self) -> StandIn {
        let mut out = "catena: 1\n".to_owned();
        if !self.trace.name.is_empty() {
            let _ = writeln!(out, "name: {}", json!(self.trace.name));
        }
        let input = |file: &u32| StandInFile {
            path: Path::new(DATA).join(&self.files[*file as usize]),
            tag: self.tag(*file),
            size: self.trace.files[*file as usize].size,
        };
        let inputs: Vec<StandInFile> = self.outside.keys().map(input).collect();
        if !inputs.is_empty() {
            out.push_str("inputs:\n");
        }
        for (name, input) in self.outside.values().zip(&inputs) {
            let _ = writeln!(out, "  {name}: {}", json!({ "file": input.path }));
        }
        out.push_str("services:\n");
        for (kind, id) in &self.services {
            service(&mut out, *kind, id);
        }
        out.push_str("steps:\n");
        let mut parents: Vec<Vec<u32>> = vec![Vec::new(); self.trace.jobs.len()];
        let mut is_last = vec![true; self.trace.jobs.len()];
        for (from, to) in &self.trace.arcs {
            parents[*to as usize].push(*from);
            is_last[*from as usize] = false;
        }
        for (number, parents) in parents.iter().enumerate() {
            self.step(&mut out, number, parents);
        }
        let last = || self.trace.jobs.iter().enumerate().filter(|(number, _)| is_last[*number]);
        if last().any(|(_, job)| !job.outputs.is_empty()) {
            out.push_str("results:\n");
        }
        for (number, job) in last() {
            for (n, file) in job.outputs.iter().enumerate() {
                let (name, step) = (json!(self.files[*file as usize]), &self.steps[number]);
                let _ = writeln!(out, "  {name}: \"{{{step}.w{n}}}\"");
            }
        }
        StandIn { workflow: out, steps: self.steps.clone(), inputs }
    }

    /// What a file consists of.
    fn tag(&self, file: u32) -> String {
        format!("{file}-{}", self.files[file as usize])
    }

    fn step(&self, out: &mut String, number: usize, parents: &[u32]) {
        let job = &self.trace.jobs[number];
        let place = |file: &u32| match self.writers.get(file) {
            Some((writer, n)) => format!("{{{}.w{n}}}", self.steps[*writer]),
            None => format!("{{{}}}", self.outside[file]),
        };
        let reads: Vec<String> = job.inputs.iter().map(place).collect();
        let mut values = json!({ "millis": (job.runtime.max(0.0) * 1e3).round() as u64 });
        if !reads.is_empty() {
            values["reads"] = json!(reads);
        }
        let mut written = json!({});
        for (n, file) in job.outputs.iter().enumerate() {
            values[format!("tag{n}")] = json!(self.tag(*file));
            values[format!("size{n}")] = json!(self.trace.files[*file as usize].size);
            written[format!("w{n}")] = json!(self.files[*file as usize]);
        }
        let mut step = json!({ "service": self.services[&kind(job)], "in": values });
        if !job.outputs.is_empty() {
            step["out"] = written;
        }
        let brings = |parent: &u32| {
            let writers = job.inputs.iter().filter_map(|f| self.writers.get(f));
            writers.into_iter().any(|(writer, _)| *writer == *parent as usize)
        };
        let after: Vec<&String> =
            parents.iter().filter(|p| !brings(p)).map(|p| &self.steps[*p as usize]).collect();
        if !after.is_empty() {
            step["after"] = json!(after);
        }
        if job.cores > 1.0 {
            step["cpus"] = json!(job.cores.ceil() as u64);
        }
        if job.memory > 0 {
            step["memory"] = json!(job.memory);
        }
        let _ = writeln!(out, "  {}: {step}", self.steps[number]);
    }
}

fn kind(job: &TraceJob) -> Kind<'_> {
    (&job.program, job.outputs.len(), &job.needs)
}

/// Tasks of a program have a service in common, by which schedulers learn how long they take.
fn service(out: &mut String, (_, outputs, needs): Kind<'_>, id: &str) {
    let _ = writeln!(out, "  - id: {}", json!(id));
    if !needs.is_empty() {
        let _ = writeln!(out, "    requiredCapabilities: {}", json!(needs));
    }
    // What was recorded contains reading and writing, so time runs meanwhile.
    let _ = writeln!(
        out,
        "    run: |\n      ms=$(( {{millis}} * {SLOW} ))\n      sleep $(( ms / 1000 )).$(printf %03d $(( ms % 1000 ))) &\n      cat /dev/null {{reads}} > /dev/null"
    );
    for n in 0..outputs {
        // It is told that nobody wants more.
        let _ = writeln!(
            out,
            "      {{ yes {{tag{n}}} 2> /dev/null || true; }} | head -c {{size{n}}} > {{w{n}}}"
        );
    }
    out.push_str("      wait\n    parameters:\n");
    let mut parameter = |id: String, direction: &str, cardinality: &str, data_type: &str| {
        let _ = writeln!(
            out,
            "      - {{id: {id}, type: {direction}, cardinality: {cardinality}, dataType: {data_type}}}"
        );
    };
    parameter("millis".to_owned(), "input", "1..1", "integer");
    parameter("reads".to_owned(), "input", "0..n", "file");
    for n in 0..outputs {
        parameter(format!("tag{n}"), "input", "1..1", "string");
        parameter(format!("size{n}"), "input", "1..1", "integer");
        parameter(format!("w{n}"), "output", "1..1", "file");
    }
}

#[cfg(test)]
mod tests {
    use super::super::TraceFile;
    use super::*;
    use crate::{Action, InputSource, LoadOptions, load};

    fn file(name: &str, size: u64) -> TraceFile {
        TraceFile { name: Name::new(name), size }
    }

    fn job(id: &str, program: &str, inputs: &[u32], outputs: &[u32]) -> TraceJob {
        let (id, program) = (Name::new(id), Name::new(program));
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        TraceJob { id, program, runtime: 0.25, cores: 1.0, inputs, outputs, ..TraceJob::default() }
    }

    /// Names that are none in a workflow, two that become the same, and jobs that wait without a file.
    fn awkward() -> Trace {
        let files = [
            file("raw/{image}.fits", 100_000),
            file("a b", 10),
            file("out/a_b", 0),
            file("../evil: name", 70_000),
        ];
        let mut both = job("ID 2!", "mDiff:fit", &[0, 1, 2], &[3]);
        (both.cores, both.memory) = (2.5, 1 << 20);
        let jobs = vec![job("ID 1", "mProject", &[0], &[1, 2]), both, job("ID_1", "mProject", &[0], &[])];
        Trace { name: "awk: ward".to_owned(), jobs, files: files.to_vec(), arcs: vec![(0, 1), (1, 2)] }
    }

    #[test]
    fn a_stand_in_is_a_valid_workflow_with_the_same_files_and_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        let stand_in = StandIn::new(&awkward());
        stand_in.write(directory.path()).unwrap();
        let loaded = load(directory.path(), &LoadOptions::default());
        let problems: Vec<String> =
            loaded.diags.iter().map(|d| d.render(&loaded.sources).to_string()).collect();
        assert!(problems.is_empty(), "{problems:#?}\n{}", stand_in.workflow);
        let workflow = loaded.expanded.or(loaded.workflow).unwrap();
        let of = |n: usize| match &workflow.actions[n] {
            Action::Execute(e) => e,
            other => panic!("{other:?}"),
        };
        let reads = |n: usize| -> Vec<Name> {
            let var = |source: &InputSource| match source {
                InputSource::Var(var) => Some(var.clone()),
                InputSource::Value(_) => None,
            };
            of(n).inputs.iter().filter_map(|i| var(&i.source)).collect()
        };
        assert_eq!(reads(0), ["raw__image__fits"]);
        assert_eq!(reads(1), ["raw__image__fits", "ID_1.w0", "ID_1.w1"]);
        assert_eq!(of(2).id, "ID_1-2");
        assert_eq!(of(2).depends_on[0].id, "ID_2_");
        assert!(of(0).depends_on.is_empty() && of(1).depends_on.is_empty());
        let services: Vec<&Name> = (0..3).map(|n| &of(n).service).collect();
        assert_eq!(services, ["mProject", "mDiff_fit", "mProject-2"], "by program and number of outputs");
        assert_eq!(of(1).options.as_ref().unwrap().resources.as_ref().unwrap().cpus, 3000);
        assert!(workflow.results.is_empty(), "the last job writes nothing");
    }

    #[test]
    fn inputs_have_their_sizes_and_differ() {
        let directory = tempfile::tempdir().unwrap();
        let trace = Trace {
            files: vec![file("a", 200_000), file("b", 200_000), file("none", 0)],
            jobs: vec![job("reads", "cat", &[0, 1, 2], &[])],
            ..Trace::default()
        };
        StandIn::new(&trace).write(directory.path()).unwrap();
        let read = |name: &str| fs::read(directory.path().join("data").join(name)).unwrap();
        assert_eq!((read("a").len(), read("b").len(), read("none").len()), (200_000, 200_000, 0));
        assert_ne!(read("a"), read("b"));
        assert_eq!(StandIn::new(&trace), StandIn::new(&trace));
    }
}
