//! `cargo xtask test --htcondor`: Catena beside a real HTCondor.
//!
//! What `catena check` says of DAGMan files is compared with HTCondor's own checker, and DAGMan runs jobs with the
//! priorities that `catena prio` has written. HTCondor comes from Debian and is alone: its processes, its network
//! and its mounts are in namespaces that end with this program, however it ends.

mod debian;
mod pool;

use crate::{install, is_root, root, run, target};
use pool::Pool;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NEEDED: [(&str, &str); 5] = [
    ("debootstrap", "debootstrap"),
    ("gpgv", "gpgv"),
    (debian::KEYRING, "debian-archive-keyring"),
    ("unshare", "util-linux"),
    ("ip", "iproute2"),
];

/// The example of the paper on prio: c should come first, because it sets two jobs free.
const FIVE: &str = "\
JOB a job.sub
JOB b job.sub
JOB c job.sub
JOB d job.sub
JOB e job.sub
PARENT a CHILD b
PARENT c CHILD d e
";

/// How the five jobs get their priorities, and the order in which one slot executes them. Without priorities it
/// is another order, so that the right one is no accident.
const ORDERS: [(&str, &[&str], &str); 3] = [
    ("none", &[], "a c b d e"),
    ("PRIORITY lines", &["--method", "priority"], "c a b d e"),
    ("VARS and submit files", &["--method", "vars"], "c a b d e"),
];

/// Dags for the checker, as arguments of `catena generate`.
const GENERATED: [&[&str]; 8] = [
    &["airsn"],
    &["airsn", "--width", "7", "--shuffle"],
    &["inspiral"],
    &["montage"],
    &["montage", "--side", "5", "--shuffle"],
    &["sdss"],
    &["layered"],
    &["layered", "--skips", "--shuffle"],
];

/// A file that splices in one of those, between nodes of its own.
const SPLICED: &str = "\
SPLICE one layered--skips--shuffle.dag
JOB a job.sub
SPLICE two layered--skips--shuffle.dag
JOB b job.sub
PARENT a CHILD one b
PARENT b one CHILD two
";

/// Each line with a mistake of another kind.
const WRONG: &str = "\
JOB a job.sub
JOB a job.sub
JOB all_nodes job.sub
JOB b+c job.sub
NODE d job.sub
RETRY
RETRY a many
PARENT a CHILD z
VARS a queue1=\"x\"
SCRIPT a x
PARENT a
VARS a k=\"open
DONE ALL_NODES
PRIORITY z 1
CATEGORY z big
SPLICE s missing.dag
INCLUDE missing.dag
REJECT
";

/// Nodes that wait for each other.
const CIRCLE: &str =
    "JOB a job.sub\nJOB b job.sub\nJOB c job.sub\nPARENT a CHILD b\nPARENT b CHILD c\nPARENT c CHILD b\n";

/// What has been found out so far.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn count(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("test {name} ... ok");
            }
            Err(message) => {
                self.failed += 1;
                println!("test {name} ... FAILED\n{message}");
            }
        }
    }

    fn close(&self) -> Result<(), String> {
        println!("\n{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        if self.failed == 0 { Ok(()) } else { Err(format!("tests failed: {}", self.failed)) }
    }
}

/// The Debian that HTCondor runs in.
fn debian() -> PathBuf {
    target().join("htcondor-root")
}

/// Where the files of a run are; they stay, for whoever wants to know why it failed.
fn work() -> PathBuf {
    target().join("htcondor-work")
}

/// Prepares everything and goes on in namespaces, see [`inside`].
pub(crate) fn test() -> Result<(), String> {
    if !is_root() {
        return Err("this needs root, for a Debian of its own and for namespaces: \
                    run it as root, or with `sudo -E env PATH=$PATH cargo xtask test --htcondor`"
            .to_owned());
    }
    install(&NEEDED)?;
    run(Command::new("cargo").arg("build"))?;
    // Two at once would share the root and the files of a run.
    let lock = fs::File::create(target().join("htcondor.lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if !debian().exists() {
        go_inside("make", &[])?;
    }
    go_inside("run", &["--net"])
}

/// Runs this program as the first process of new namespaces.
fn go_inside(part: &str, namespaces: &[&str]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(namespaces)
        .arg(program)
        .args(["test", "--htcondor", "--inside", part])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|e| format!("unshare: {e}"))?;
    // Waiting would close the pipe by which the child sees that this program lives.
    let pipe = child.stdin.take();
    let status = child.wait().map_err(|e| e.to_string())?;
    drop(pipe);
    if status.success() { Ok(()) } else { Err(format!("cargo xtask test --htcondor: {status}")) }
}

/// Does a part of the work as the first process of its namespaces: when it ends, all that it has started and
/// mounted goes with it.
pub(crate) fn inside(part: &str) -> Result<(), String> {
    // The first process of a namespace does not hear the interrupt key. This one ends with the one that started it.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    if part == "make" { debian::make(&debian()) } else { compare_all() }
}

fn compare_all() -> Result<(), String> {
    let _ = fs::remove_dir_all(work());
    let pool = Pool::start(&debian(), &work())?;
    println!("{}", pool.version()?);
    let mut tally = Tally::default();
    compare_generated(&pool, &mut tally)?;
    compare_given(&pool, &mut tally)?;
    for (how, arguments, expected) in ORDERS {
        let name = format!("order of five jobs, priorities: {how}");
        tally.count(&name, execution_order(&pool, arguments).and_then(|order| same_order(&order, expected)));
    }
    tally.close()
}

fn same_order(order: &str, expected: &str) -> Result<(), String> {
    println!("executed: {order}");
    if order == expected { Ok(()) } else { Err(format!("executed {order}, expected {expected}")) }
}

fn catena(directory: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(target().join("debug/catena"));
    let output = command.args(arguments).current_dir(directory).output().map_err(|e| e.to_string())?;
    // 2 says that the document has errors, which are what is asked for.
    if output.status.success() || (arguments[0] == "check" && output.status.code() == Some(2)) {
        Ok(output.stdout)
    } else {
        Err(format!("catena {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Runs the five jobs through DAGMan and tells in which order they were executed.
fn execution_order(pool: &Pool, priorities: &[&str]) -> Result<String, String> {
    let directory = pool.directory(&format!("five{}", priorities.concat()))?;
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).map_err(|e| e.to_string());
    write("five.dag", FIVE)?;
    write("job.sub", "executable = /bin/sleep\narguments = 1\nqueue\n")?;
    if !priorities.is_empty() {
        catena(&directory, &[&["prio", "five.dag", "--in-place"], priorities].concat())?;
    }
    pool.run_dag(&directory, "five.dag", 2)
}

fn compare_generated(pool: &Pool, tally: &mut Tally) -> Result<(), String> {
    let directory = pool.directory("generated")?;
    for arguments in GENERATED {
        let file = format!("{}.dag", arguments.concat());
        catena(&directory, &[&["generate"], arguments, &["-o", &file]].concat())?;
    }
    for (file, text) in [("spliced.dag", SPLICED), ("wrong.dag", WRONG), ("circle.dag", CIRCLE)] {
        fs::write(directory.join(file), text).map_err(|e| e.to_string())?;
    }
    compare(pool, &directory, tally)
}

/// Compares files of HTCondor's own tests, which are not part of this repository.
fn compare_given(pool: &Pool, tally: &mut Tally) -> Result<(), String> {
    let shared = std::env::var_os("CATENA_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let data = shared.join("data/dagman/condor_tests");
    let Ok(entries) = fs::read_dir(&data) else {
        tally.skipped += 1;
        println!("test DAG files of HTCondor's tests ... ignored, there is no {}", data.display());
        return Ok(());
    };
    let tree = pool.directory("given")?;
    let files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    for file in &files {
        fs::copy(file, tree.join(file.file_name().unwrap_or_default())).map_err(|e| e.to_string())?;
    }
    for file in &files {
        let text = fs::read(file).map_err(|e| e.to_string())?;
        plant(&data, &String::from_utf8_lossy(&text), &tree)?;
    }
    compare(pool, &tree, tally)
}

/// Puts files where a DAG file looks for them: those that it splices in from directories below are in one
/// directory with it here, and those that configure DAGMan are missing.
fn plant(data: &Path, text: &str, tree: &Path) -> Result<(), String> {
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (place, origin) = match words[..] {
            ["SPLICE", _, path] => {
                (tree.join(path), data.join(Path::new(path).file_name().unwrap_or_default()))
            }
            ["SPLICE", _, path, "DIR", directory] => (tree.join(directory).join(path), data.join(path)),
            [word, path] if word.eq_ignore_ascii_case("CONFIG") => {
                (tree.join(path), PathBuf::from("/dev/null"))
            }
            _ => continue,
        };
        if !place.exists() && origin.exists() {
            fs::create_dir_all(place.parent().unwrap_or(tree)).map_err(|e| e.to_string())?;
            let content = fs::read(origin).map_err(|e| e.to_string())?;
            fs::write(place, content).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}

/// Compares what Catena and HTCondor say of each DAG file in a directory.
fn compare(pool: &Pool, directory: &Path, tally: &mut Tally) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|e| e.to_string())?.flatten();
    let mut files: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    files.retain(|f| Path::new(f).extension().is_some_and(|e| e == "dag"));
    files.sort();
    for said in pool.check_dags(directory, &files)? {
        let file = said["DagFile"].as_str().unwrap_or_default();
        let answer = catena(directory, &["check", file, "--json"])?;
        let ours: Value = serde_json::from_slice(&answer).map_err(|e| format!("{file}: {e}"))?;
        let (ours, theirs) = (our_view(&ours), their_view(&said));
        let differ = || format!("Catena:   {ours}\nHTCondor: {theirs}");
        tally.count(file, if ours == theirs { Ok(()) } else { Err(differ()) });
        files.retain(|f| f != file);
    }
    for file in files {
        tally.count(&file, Err("HTCondor's checker says nothing of it".to_owned()));
    }
    Ok(())
}

/// Lines with errors, each once: one may have several, which the two need not tell apart in the same way. That
/// nodes wait for each other is no error of a line in HTCondor's eyes.
fn error_lines(errors: &Value, key: &str) -> Vec<u64> {
    let errors = errors.as_array().into_iter().flatten().filter(|e| e["code"] != "dag-cycle");
    let mut lines: Vec<u64> = errors.map(|e| e[key].as_u64().unwrap_or(0)).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn our_view(said: &Value) -> Value {
    let keys = ["nodes", "total_nodes", "subdags", "arcs", "width", "height", "width_by_depth", "cyclic"];
    let view: Vec<Value> = keys.iter().map(|key| said[key].clone()).collect();
    json!({"shape": view, "errors": error_lines(&said["errors"], "line")})
}

/// The same of HTCondor's checker, which leaves out what is zero or empty.
fn their_view(said: &Value) -> Value {
    let number = |key: &str| json!(said[key].as_u64().unwrap_or(0));
    let view = json!([
        number("NumNodes"),
        number("TotalNodes"),
        number("NumSubDAGs"),
        number("NumArcs"),
        number("GraphWidth"),
        number("GraphHeight"),
        said["WidthByDepth"].as_array().cloned().unwrap_or_default(),
        said["IsCyclic"].as_bool().unwrap_or(false),
    ]);
    json!({"shape": view, "errors": error_lines(&said["Errors"], "SourceLine")})
}
