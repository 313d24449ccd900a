//! `cargo xtask bench local`: what a task costs, beside others who do the same.
//!
//! Every figure is a ratio to a peer measured in the same minute on the same machine, because machines
//! differ and are noisy. `docs/benchmarks.md` says what is measured and why.

use crate::{install, root, run, target};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const TASKS: usize = 10_000;
const CHAIN: usize = 1_000;
const MILLION: usize = 1_000_000;
/// Catena and its reference are measured this often, in turn; the middle counts.
const ROUNDS: usize = 3;
/// Peers written in Python, and how many times fewer tasks they get.
const PYTHON_PEERS: [(&str, &str, &str, usize); 4] = [
    ("HyperQueue", "hyperqueue", "hq_peer.py", 10),
    ("Dask", "distributed", "dask_peer.py", 10),
    ("Parsl", "parsl", "parsl_peer.py", 10),
    ("Snakemake", "snakemake", "", 100),
];

pub(crate) fn bench(arguments: &[&str]) -> Result<(), String> {
    let peers = match *arguments {
        ["local"] => true,
        ["local", "--no-python"] => false,
        ["cluster", ref rest @ ..] => return crate::cluster::bench(rest),
        ["data", ref rest @ ..] => {
            let example = ["run", "--release", "--package", "catena-data", "--example", "transfer", "--"];
            return run(Command::new("cargo").args(example).args(rest));
        }
        ["rules", ref rest @ ..] => {
            let example = ["run", "--release", "--package", "catena-rules", "--example", "reactions", "--"];
            return run(Command::new("cargo").args(example).args(rest));
        }
        ["compose"] => {
            let example = ["run", "--release", "--package", "catena-compose", "--example", "locks"];
            run(Command::new("cargo").args(example))?;
            install(&crate::SERVERS)?;
            let reproduce =
                ["run", "--release", "--", "reproduce", "collab", "--experiment", "live,load,death"];
            return run(Command::new("cargo").args(reproduce));
        }
        _ => {
            return Err(
                "cargo xtask bench local [--no-python] | cluster [--quick] [throughput latency recovery] | data [megabytes [directory]] | rules [molecules] | compose"
                    .to_owned(),
            );
        }
    };
    install(&[("make", "make"), ("ninja", "ninja-build"), ("xargs", "findutils")])?;
    run(Command::new("cargo").args(["build", "--release"]))?;
    let bench = Bench::new(peers)?;
    bench.independent()?;
    bench.chain()?;
    bench.diamonds()?;
    bench.million()?;
    bench.start_up()
}

struct Bench {
    catena: PathBuf,
    directory: PathBuf,
    python: Option<PathBuf>,
}

/// Something to measure, by its name.
type Subject<'a> = (&'a str, &'a mut dyn FnMut() -> Result<f64, String>);

/// A measured time, in seconds per task.
struct Figure {
    name: String,
    seconds: f64,
    tasks: usize,
}

impl Figure {
    fn per_task(&self) -> f64 {
        self.seconds / self.tasks as f64
    }
}

/// Prints figures as a table, with ratios to one of them.
fn table(title: &str, reference: &str, figures: &[Figure]) {
    let base = figures.iter().find(|f| f.name == reference).map_or(1.0, Figure::per_task);
    println!("\n### {title}\n\n| | tasks | seconds | µs per task | × {reference} |\n|---|---|---|---|---|");
    for f in figures {
        let each = f.per_task();
        println!("| {} | {} | {:.2} | {:.0} | {:.2} |", f.name, f.tasks, f.seconds, each * 1e6, each / base);
    }
}

/// Seconds a command takes.
pub(crate) fn time(command: &mut Command) -> Result<f64, String> {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(start.elapsed().as_secs_f64()) } else { Err(format!("{command:?}: {status}")) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Bench {
    fn new(python: bool) -> Result<Self, String> {
        let target = target();
        let directory = target.join("bench");
        let _ = std::fs::remove_dir_all(directory.join("work"));
        std::fs::create_dir_all(directory.join("work")).map_err(|e| e.to_string())?;
        let bench =
            Self { catena: target.join("release/catena"), directory: directory.join("work"), python: None };
        let venv = directory.join("venv");
        if !python {
            return Ok(bench);
        }
        if !venv.join("bin/pip").exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        }
        let packages: Vec<&str> = PYTHON_PEERS.iter().map(|(_, package, ..)| *package).collect();
        run(Command::new(venv.join("bin/pip")).args(["install", "-q"]).args(packages))?;
        Ok(Self { python: Some(venv.join("bin/python")), ..bench })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }

    fn catena(&self, arguments: &[&str]) -> Result<f64, String> {
        let _ = std::fs::remove_dir_all(self.directory.join(".catena"));
        let mut command = Command::new(&self.catena);
        time(command.args(["run", "-q", "-j", "2"]).args(arguments).current_dir(&self.directory))
    }

    /// Measures the subject and its reference in turn, so that both see the same machine.
    fn in_turn(tasks: usize, subjects: &mut [Subject<'_>]) -> Result<Vec<Figure>, String> {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); subjects.len()];
        for _ in 0..ROUNDS {
            for (i, (_, measure)) in subjects.iter_mut().enumerate() {
                times[i].push(measure()?);
            }
        }
        let figures = subjects.iter().zip(times);
        Ok(figures
            .map(|((name, _), t)| Figure { name: (*name).to_owned(), seconds: median(t), tasks })
            .collect())
    }

    fn tool(&self, program: &str, arguments: &[&str]) -> Result<f64, String> {
        time(Command::new(program).args(arguments).current_dir(&self.directory))
    }

    fn xargs(&self, tasks: usize) -> Result<f64, String> {
        let numbers: String = (0..tasks).fold(String::new(), |mut out, n| {
            let _ = writeln!(out, "{n}");
            out
        });
        let input = self.write("numbers", &numbers)?;
        let input = std::fs::File::open(input).map_err(|e| e.to_string())?;
        time(Command::new("xargs").args(["-P2", "-n1", "/bin/true"]).stdin(input))
    }

    fn python_peers(&self, tasks: usize, shape: &str, figures: &mut Vec<Figure>) {
        let Some(python) = &self.python else { return };
        for (name, _, script, fewer) in PYTHON_PEERS {
            let n = tasks / fewer;
            let measured = if script.is_empty() {
                self.snakemake(python, n, shape)
            } else {
                Self::script(python, script, n, shape)
            };
            match measured {
                Ok(seconds) => figures.push(Figure { name: name.to_owned(), seconds, tasks: n }),
                Err(e) => println!("{name} could not be measured: {e}"),
            }
        }
    }

    fn script(python: &Path, script: &str, tasks: usize, shape: &str) -> Result<f64, String> {
        let script = root().join("xtask/src/peers").join(script);
        let mut command = Command::new("timeout");
        command.arg("600").arg(python).arg(script).args([&tasks.to_string(), shape]);
        // Some start helpers of their own by name.
        let bin = python.parent().map(Path::to_path_buf).into_iter();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(bin.chain(std::env::split_paths(&path))).map_err(|e| e.to_string())?;
        let output = command.env("PATH", path).output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().and_then(|l| l.trim().parse().ok());
        last.ok_or_else(|| {
            String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no answer").to_owned()
        })
    }

    fn snakemake(&self, python: &Path, tasks: usize, shape: &str) -> Result<f64, String> {
        let inputs =
            if shape == "chain" { "lambda w: f'o/{int(w.n) - 1}' if int(w.n) else []" } else { "[]" };
        let wanted = if shape == "chain" {
            format!("['o/{}']", tasks - 1)
        } else {
            format!("[f'o/{{n}}' for n in range({tasks})]")
        };
        self.write("Snakefile", &format!("rule all:\n    input: {wanted}\nrule t:\n    input: {inputs}\n    output: touch('o/{{n}}')\n    shell: '/bin/true'\n"))?;
        let _ = std::fs::remove_dir_all(self.directory.join("o"));
        let program = python.with_file_name("snakemake");
        time(
            Command::new("timeout")
                .arg("900")
                .arg(program)
                .args(["-j2", "-q", "all"])
                .current_dir(&self.directory),
        )
    }

    fn independent(&self) -> Result<(), String> {
        self.write("independent.yaml", &service_workflow(&format!("inputs: {{ xs: {{ range: {TASKS} }} }}\nsteps:\n  t: {{ for: x in xs, service: t, in: {{ n: '{{x}}' }} }}\n")))?;
        let targets: Vec<String> = (0..TASKS).map(|n| format!("t{n}")).collect();
        let targets = targets.join(" ");
        self.write(
            "independent.mk",
            &format!(".PHONY: all {targets}\nall: {targets}\n{targets}:\n\t@/bin/true\n"),
        )?;
        self.write("independent.ninja", &ninja((0..TASKS).map(|n| (n, None))))?;
        let mut figures = Self::in_turn(
            TASKS,
            &mut [
                ("Catena", &mut || self.catena(&["independent.yaml"])),
                ("xargs -P2", &mut || self.xargs(TASKS)),
                ("a bare spawn loop", &mut || Ok(spawn_loop(TASKS))),
                ("make -j2", &mut || self.tool("make", &["-s", "-j2", "-f", "independent.mk"])),
                ("ninja -j2", &mut || self.fresh_ninja("independent.ninja")),
            ],
        )?;
        self.python_peers(TASKS, "independent", &mut figures);
        table("Independent tasks", "xargs -P2", &figures);
        Ok(())
    }

    fn fresh_ninja(&self, file: &str) -> Result<f64, String> {
        let _ = std::fs::remove_file(self.directory.join(".ninja_log"));
        self.tool("ninja", &["-j2", "-f", file])
    }

    fn chain(&self) -> Result<(), String> {
        let mut text = String::from("steps:\n  t0: { service: e }\n");
        let mut makefile = format!("all: t{}\nt0:\n\t@/bin/true\n", CHAIN - 1);
        for n in 1..CHAIN {
            let _ = writeln!(text, "  t{n}: {{ service: e, after: [t{}] }}", n - 1);
            let _ = write!(makefile, "t{n}: t{}\n\t@/bin/true\n", n - 1);
        }
        self.write("chain.yaml", &service_workflow(&text))?;
        self.write("chain.mk", &makefile)?;
        self.write("chain.ninja", &ninja((0..CHAIN).map(|n| (n, n.checked_sub(1)))))?;
        let mut figures = Self::in_turn(
            CHAIN,
            &mut [
                ("Catena, a chain each", &mut || self.catena(&["chain.yaml", "--chains", "single"])),
                ("Catena, one chain", &mut || self.catena(&["chain.yaml"])),
                ("make", &mut || self.tool("make", &["-s", "-f", "chain.mk"])),
                ("ninja", &mut || self.fresh_ninja("chain.ninja")),
            ],
        )?;
        self.python_peers(CHAIN, "chain", &mut figures);
        table("Tasks that depend on each other", "make", &figures);
        Ok(())
    }

    fn diamonds(&self) -> Result<(), String> {
        let mut text = String::from("inputs: { xs: { range: 1000 } }\nsteps:\n");
        for d in 0..10 {
            let after = if d == 0 { String::new() } else { format!(", after: [join{}]", d - 1) };
            let _ = writeln!(text, "  fork{d}: {{ service: e{after} }}");
            let _ = writeln!(
                text,
                "  wide{d}: {{ for: x in xs, service: t, in: {{ n: '{{x}}' }}, after: [fork{d}] }}"
            );
            let _ = writeln!(text, "  join{d}: {{ service: e, after: [wide{d}] }}");
        }
        self.write("diamonds.yaml", &service_workflow(&text))?;
        self.write("diamonds.dag", &diamonds_dag())?;
        let tasks = 10 * 1002;
        let figures = Self::in_turn(
            tasks,
            &mut [
                ("Catena", &mut || self.catena(&["diamonds.yaml"])),
                ("Catena, as a DAG file", &mut || self.catena(&["diamonds.dag"])),
                ("xargs -P2", &mut || self.xargs(tasks)),
            ],
        )?;
        table("Ten times one, a thousand, one", "xargs -P2", &figures);
        Ok(())
    }

    fn million(&self) -> Result<(), String> {
        self.write("million.yaml", &service_workflow(&format!("inputs: {{ xs: {{ range: {MILLION} }} }}\nsteps:\n  t: {{ for: x in xs, service: t, in: {{ n: '{{x}}' }} }}\n")))?;
        let start = Instant::now();
        let memory = self.peak_memory(&["run", "-q", "--dry-run=execute", "million.yaml"])?;
        let seconds = start.elapsed().as_secs_f64();
        println!("\n### A million tasks through planner, store and a no-op executor\n");
        println!(
            "{seconds:.1} s, {:.1} µs per task, peak memory {memory} MiB",
            seconds / MILLION as f64 * 1e6
        );
        self.write("million.ninja", &ninja((0..MILLION).map(|n| (n, None))))?;
        let ninja = self.tool("ninja", &["-n", "--quiet", "-f", "million.ninja"])?;
        println!(
            "ninja loads and plans the same graph, keeping nothing: {:.1} µs per task",
            ninja / MILLION as f64 * 1e6
        );
        Ok(())
    }

    /// The largest memory a run needs, in MiB, by looking at it while it runs.
    fn peak_memory(&self, arguments: &[&str]) -> Result<u64, String> {
        let mut child = Command::new(&self.catena)
            .args(arguments)
            .current_dir(&self.directory)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut peak = 0;
        while child.try_wait().map_err(|e| e.to_string())?.is_none() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
            let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            peak = peak.max(kib / 1024);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(peak)
    }

    fn start_up(&self) -> Result<(), String> {
        self.write("one.yaml", &service_workflow("steps:\n  t: { service: e }\n"))?;
        let mut times = Vec::new();
        for _ in 0..11 {
            times.push(self.catena(&["one.yaml"])?);
        }
        println!("\n### One task, from start to end of the command\n\n{:.1} ms", median(times) * 1e3);
        Ok(())
    }
}

/// A short-form workflow that can run `/bin/true` with and without an argument.
/// Ten times one, a thousand, one, as a DAGMan file.
fn diamonds_dag() -> String {
    let mut text = String::from("SUBMIT-DESCRIPTION work {\n  executable = /bin/true\n}\n");
    for d in 0..10 {
        let _ = writeln!(text, "JOB fork{d} work\nJOB join{d} work");
        let wide: Vec<String> = (0..1000).map(|n| format!("wide{d}.{n}")).collect();
        for node in &wide {
            let _ = writeln!(text, "JOB {node} work");
        }
        let wide = wide.join(" ");
        let _ = writeln!(text, "PARENT fork{d} CHILD {wide}\nPARENT {wide} CHILD join{d}");
        if d > 0 {
            let _ = writeln!(text, "PARENT join{} CHILD fork{d}", d - 1);
        }
    }
    text
}

fn service_workflow(rest: &str) -> String {
    format!(
        "catena: 1\nservices:\n  - {{id: t, path: /bin/true, parameters: [{{id: n, type: input, cardinality: 1..1, dataType: integer}}]}}\n  - {{id: e, path: /bin/true, parameters: []}}\n{rest}"
    )
}

/// A ninja file of tasks, each with the one it depends on.
fn ninja(tasks: impl Iterator<Item = (usize, Option<usize>)>) -> String {
    let mut out = String::from("rule t\n  command = /bin/true\n");
    for (n, before) in tasks {
        let _ = match before {
            Some(before) => writeln!(out, "build t{n}: t t{before}"),
            None => writeln!(out, "build t{n}: t"),
        };
    }
    out
}

/// The least it can cost: two threads that start a process, wait for it, and start the next.
fn spawn_loop(tasks: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..tasks / 2 {
                    let _ = Command::new("/bin/true").stdin(Stdio::null()).status();
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}
