//! Real files, real sockets, real trouble.

mod fetching;
mod holding;
mod properties;
mod proxy;
mod serving;
#[cfg(feature = "object")]
mod storage;
mod trouble;

use catena_data::{
    AgentSource, Artifact, FetchError, FetchOptions, Fetched, Holdings, Patience, Put, ServeOptions, Server,
    Source, fetch,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A machine that holds something and serves it.
struct Machine {
    directory: TempDir,
    holdings: Holdings,
    server: Server,
}

impl Machine {
    fn new() -> Self {
        Self::with(ServeOptions::default())
    }

    fn with(options: ServeOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let holdings = Holdings::open(&directory.path().join("holdings"), None).unwrap();
        let server = Server::start(&holdings, ([127, 0, 0, 1], 0).into(), options).unwrap();
        Self { directory, holdings, server }
    }

    /// A machine that holds a file with some content.
    fn holding(content: &[u8]) -> (Self, Artifact) {
        let machine = Self::new();
        let path = machine.path("file");
        fs::write(&path, content).unwrap();
        let (artifact, _) = machine.holdings.put(&path, Put::Copy).unwrap();
        (machine, artifact)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where an object is.
    fn object(&self, artifact: &Artifact) -> PathBuf {
        let id = artifact.id().to_string();
        self.path("holdings/objects").join(&id[..2]).join(&id[2..])
    }

    fn fetch(&self, artifact: &Artifact, from: &[Arc<dyn Source>]) -> Result<Fetched, FetchError> {
        fetch(&self.holdings, artifact, from, FetchOptions { streams: 2, tries: 2 })
    }

    fn content(&self, artifact: &Artifact) -> Vec<u8> {
        fs::read(self.object(artifact)).unwrap()
    }
}

/// Not patient: tests of those who stall would take long.
fn patience() -> Patience {
    Patience { stall: Duration::from_millis(400), slowest: 1 << 20 }
}

fn agent(url: &str) -> Arc<dyn Source> {
    Arc::new(AgentSource::new(url, None, Patience { stall: Duration::from_secs(20), slowest: 1 }))
}

/// Content that nothing else has.
fn content(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Everything below a directory, in a form that can be compared.
fn listing(directory: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().display().to_string();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else if meta.is_dir() {
                found.push(format!("{name}/"));
                open.push(path);
            } else {
                let executable = meta.permissions().mode() & 0o100 != 0;
                found.push(format!("{name} {executable} {}", blake3::hash(&fs::read(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

/// This test again, in a process of its own: told by a variable where to work.
fn this_test(name: &str, inside: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env("CATENA_DATA_INSIDE", inside);
    command
}

/// Where to work, if this is such a process.
fn inside() -> Option<PathBuf> {
    std::env::var_os("CATENA_DATA_INSIDE").map(PathBuf::from)
}
