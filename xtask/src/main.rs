//! Tasks for working on Catena: `cargo xtask test | bench | soak | web | docs | deny`.

mod bench;
mod cluster;
mod htcondor;
mod web;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Programs that tests run, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 7] = [
    ("mProject", "montage"),
    ("bwa", "bwa"),
    ("samtools", "samtools"),
    ("bcftools", "bcftools"),
    ("faketime", "faketime"),
    ("unshare", "util-linux"),
    ("git", "git"),
];

/// Servers that clusters use, and what one like S3 is installed with. Distributions keep some of it off the path.
const SERVERS: [(&str, &str); 5] = [
    ("/usr/lib/postgresql/*/bin/initdb", "postgresql"),
    ("nats-server", "nats-server"),
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("/usr/lib/*/ensurepip/__init__.py", "python3-venv"),
];

const HELP: &str = "\
cargo xtask test            install what tests need and run all of them
cargo xtask test --web      only those of the workbench, in a browser; words after it choose among them
cargo xtask test --htcondor compare with a real HTCondor in place of it (needs root; docs/dagman.md)
cargo xtask bench local     measure against xargs, make, ninja and others (docs/benchmarks.md)
cargo xtask bench cluster   measure a cluster with PostgreSQL and NATS; --quick for a tenth of it
cargo xtask bench data      measure the transfer of files between agents, beside a raw socket and cp
cargo xtask bench rules     measure how many reactions a second rules make among a million molecules
cargo xtask bench compose   measure locks, 2,000 people who edit together, and the death of their instance
cargo xtask soak space      10,000 small groups of peers in which everything goes wrong; or FIRST SEED and HOW MANY
cargo xtask soak compose    every state that locks can be in on graphs of five workflows
cargo xtask web types       write the description of the HTTP interface down for the workbench
cargo xtask web pictures    take the pictures of the workbench that are in the book, with its tests
cargo xtask docs            build the book (needs mdbook)
cargo xtask deny            check licences and sources of dependencies (needs cargo-deny)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test", "--htcondor"] => htcondor::test(),
        ["test", "--htcondor", "--inside", part] => htcondor::inside(part),
        ["test", "--web", ref rest @ ..] => web::only(rest),
        ["test", ref rest @ ..] => test(rest),
        ["bench", ref rest @ ..] => bench::bench(rest),
        ["soak", "space", ref rest @ ..] => soak_space(rest),
        ["soak", "compose"] => soak_compose(),
        ["web", "types"] => web::types(),
        ["web", "pictures"] => web::pictures(),
        ["docs"] => run(Command::new("mdbook").args(["build", "docs"])),
        ["deny"] => run(Command::new("cargo").args(["deny", "check", "licenses", "bans", "sources"])),
        _ => Err(HELP.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Small groups of simulated peers with all kinds of trouble, one for each seed.
fn soak_space(seeds: &[&str]) -> Result<(), String> {
    let example = ["run", "--release", "--package", "catena-simulate", "--example", "soak", "--"];
    run(Command::new("cargo").args(example).args(seeds))
}

/// Locks in every state that sessions can come into on graphs that are too large for the tests.
fn soak_compose() -> Result<(), String> {
    run(Command::new("cargo").args([
        "run",
        "--release",
        "--package",
        "catena-compose",
        "--example",
        "states",
    ]))
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs a command in the root of the repository.
fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}").replace('"', "");
    forget_cargo(command);
    println!("$ {shown}");
    let status = command.current_dir(root()).status().map_err(|e| format!("{shown}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// What cargo tells this program about itself must not reach the builds it starts: some look at it and would be
/// done anew.
fn forget_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

fn is_on_path(program: &str) -> bool {
    if let Some((before, after)) = program.split_once("*/") {
        let versions = std::fs::read_dir(before).into_iter().flatten().flatten();
        return versions.into_iter().any(|v| v.path().join(after).is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers and tools of the system are not on everybody's path.
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|d| d.join(program).is_file())
}

/// Installs packages whose programs are missing.
fn install(programs: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        programs.iter().filter(|(p, _)| !is_on_path(p)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_on_path("apt-get") {
        return Err(format!("please install these first: {}", missing.join(" ")));
    }
    let apt = |arguments: &[&str]| {
        // Not everyone who tests is root.
        let mut command = if is_root() { Command::new("apt-get") } else { Command::new("sudo") };
        if !is_root() {
            command.arg("apt-get");
        }
        run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(missing);
    apt(&arguments)
}

fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|s| s.lines().any(|l| l.starts_with("Uid:\t0\t")))
}

fn test(filter: &[&str]) -> Result<(), String> {
    install(&PROGRAMS)?;
    install(&SERVERS)?;
    if filter.is_empty() {
        run(Command::new("cargo").args(["fmt", "--all", "--check"]))?;
        let lints = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "catena-data/object",
            "--",
            "-D",
            "warnings",
        ];
        run(Command::new("cargo").args(lints))?;
    }
    let features = ["test", "--workspace", "--features", "catena-data/object"];
    let moto = moto()?;
    let mut counts = count_tests(Command::new("cargo").args(features).env("CATENA_MOTO", moto).args(filter))?;
    if filter.is_empty() {
        counts.add(web::test(&[])?);
    }
    counts.close()
}

/// A server like S3, for the tests of object storage.
fn moto() -> Result<PathBuf, String> {
    let venv = target().join("moto");
    let program = venv.join("bin/moto_server");
    if !program.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        run(Command::new(venv.join("bin/pip")).args(["install", "-q", "moto[s3,server]"]))?;
    }
    Ok(program)
}

/// How tests went.
#[derive(Clone, Copy, Default)]
struct Tests {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// What ran them was not content, whatever was counted.
    is_broken: bool,
}

impl Tests {
    fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
        self.is_broken |= more.is_broken;
    }

    /// Closes with one line for all of them.
    fn close(self) -> Result<(), String> {
        let Self { passed, failed, skipped, is_broken } = self;
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if is_broken || failed > 0 { Err("tests failed".to_owned()) } else { Ok(()) }
    }
}

/// Runs tests of Rust and shows what they print.
fn count_tests(command: &mut Command) -> Result<Tests, String> {
    forget_cargo(command);
    let mut child = command.current_dir(root()).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
    let mut counts = Tests::default();
    for line in BufReader::new(child.stdout.take().ok_or("no output")?).lines() {
        let line = line.map_err(|e| e.to_string())?;
        println!("{line}");
        let Some(result) = line.trim().strip_prefix("test result: ") else { continue };
        let number = |word: &str| {
            let before = result.split(&format!(" {word}")).next().unwrap_or("");
            let last = before.rsplit(|c: char| !c.is_ascii_digit()).next();
            last.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0)
        };
        let (passed, failed, skipped) = (number("passed"), number("failed"), number("ignored"));
        counts.add(Tests { passed, failed, skipped, is_broken: false });
    }
    counts.is_broken = !child.wait().map_err(|e| e.to_string())?.success();
    Ok(counts)
}
