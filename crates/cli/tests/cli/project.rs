//! A directory with a workflow in it, and a catena to run it.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A private directory that disappears with the test.
pub(crate) struct Project {
    directory: TempDir,
}

/// What a command came to.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Done {
    fn from(o: Output) -> Self {
        Self {
            code: o.status.code(),
            signal: o.status.signal(),
            stdout: String::from_utf8_lossy(&o.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&o.stderr).into_owned(),
        }
    }
}

impl Done {
    /// Insists on an exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "signal {:?}\nstdout:\n{}\nstderr:\n{}",
            self.signal,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Insists that standard error has a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is missing in:\n{}", self.stderr);
        self
    }

    /// The events that `--json` has printed.
    pub(crate) fn events(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().filter_map(|l| serde_json::from_str(l).ok()).collect()
    }

    /// The names of tasks that were started and not taken from the cache.
    pub(crate) fn executed(&self) -> Vec<String> {
        let started =
            self.events().into_iter().filter(|e| e["event"] == "task-started" && e["cached"] == false);
        started.filter_map(|e| e["task"].as_str().map(str::to_owned)).collect()
    }
}

impl Project {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// A project with a workflow file, in which `@name` stands for the path of a file of the project.
    pub(crate) fn with(workflow: &str) -> Self {
        let project = Self::new();
        let root = format!("{}/", project.directory.path().display());
        project.write("workflow.yaml", workflow.replace('@', &root));
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
        command.args(arguments).current_dir(self.directory.path()).env_remove("CATENA_STATE_DIR");
        command
    }

    pub(crate) fn catena<const N: usize>(&self, arguments: [&str; N]) -> Done {
        self.command(arguments).output().expect("catena starts").into()
    }

    /// Starts catena and goes on.
    pub(crate) fn start<const N: usize>(&self, arguments: [&str; N]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("catena starts")
    }
}

/// Waits until something is true, but not for ever.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < Duration::from_mins(1), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.is_ok_and(|s| s.success()));
}

pub(crate) fn finish(child: Child) -> Done {
    child.wait_with_output().expect("catena ends").into()
}

/// Processes whose command line has a text.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if pid != std::process::id() && command.contains(text) {
            out.push(pid);
        }
    }
    out
}
