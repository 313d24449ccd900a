//! Remembers what tasks produced, so that unchanged ones need not run again.
//!
//! The key of a task is a hash of everything that determines its result: the program or script, its
//! arguments, its environment, and the contents of its input files. Resources, retries and time limits
//! are not part of it. Contents are hashed once per file; its size, inode and modification time tell
//! whether it is still the same.

use crate::staging::{Staging, files_below, link};
use catena_model::Direction;
use catena_model::chain::{Argument, Executable};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Changes whenever keys are made in another way.
const KEY_VERSION: &str = "catena-task-1";
/// New entries are written together, at least this often.
const WRITE_INTERVAL: Duration = Duration::from_millis(200);
const WRITE_BATCH: usize = 512;

/// The cache cannot be opened.
#[derive(Debug, Error)]
#[error("the result cache {path} cannot be used: {detail}; remove the file to start a new one, or run with --no-cache")]
pub struct CacheError {
    /// The file.
    pub path: PathBuf,
    /// What the database says.
    pub detail: String,
}

/// What tasks produced.
pub struct Cache {
    inner: Mutex<Inner>,
    hashes: Mutex<HashMap<Stamp, blake3::Hash>>,
}

struct Inner {
    connection: Connection,
    unwritten: usize,
    last_write: Instant,
}

/// Tells whether a file is still the same, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i128,
}

impl Stamp {
    fn of(meta: &fs::Metadata) -> Self {
        let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified }
    }
}

/// The key of a task and the parts it is made of.
#[derive(Clone, Debug)]
pub(crate) struct TaskKey {
    pub(crate) key: String,
    parts: Parts,
}

/// Short hashes of what determines a result, kept to say what has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Parts {
    command: String,
    env: String,
    inputs: BTreeMap<String, String>,
}

/// An output as the cache knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CachedOutput {
    path: String,
    files: Vec<(String, Stamp)>,
    directory: bool,
}

/// What the cache says about a task.
pub(crate) enum Lookup {
    /// Its outputs are in place.
    Hit,
    /// It has to run, and why.
    Miss(String),
}

impl Cache {
    /// Opens the cache in a file, and makes it if there is none.
    pub fn open(path: &Path) -> Result<Self, CacheError> {
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(Duration::from_secs(20))?;
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            connection.execute_batch(
                "PRAGMA synchronous = OFF;
                 CREATE TABLE IF NOT EXISTS entry (
                     key TEXT PRIMARY KEY, task TEXT NOT NULL, parts TEXT NOT NULL, outputs TEXT NOT NULL, made INTEGER NOT NULL
                 ) WITHOUT ROWID;
                 CREATE INDEX IF NOT EXISTS entry_task ON entry (task, made);
                 CREATE TABLE IF NOT EXISTS content (stamp TEXT PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;",
            )?;
            Ok(connection)
        };
        let connection = open().map_err(|e| CacheError { path: path.to_path_buf(), detail: e.to_string() })?;
        let inner = Inner { connection, unwritten: 0, last_write: Instant::now() };
        Ok(Self { inner: Mutex::new(inner), hashes: Mutex::new(HashMap::new()) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a task whose inputs are all there.
    pub(crate) fn key(&self, task: &Executable, directory: &Path, staging: &Staging) -> io::Result<TaskKey> {
        let mut parts = Parts { command: self.command(task, directory)?, env: short(&format!("{:?}", task.env)), ..Parts::default() };
        for (i, argument) in task.arguments.iter().filter(|a| a.direction == Direction::Input).enumerate() {
            let value = staging.locate(&argument.variable.value);
            let content = self.content_of(argument, &directory.join(value))?;
            let name = format!("{} {} {i}", argument.id, argument.variable.value);
            parts.inputs.insert(name, content.unwrap_or_else(|| short(value)));
        }
        let mut hasher = blake3::Hasher::new();
        for piece in [KEY_VERSION, &parts.command, &parts.env] {
            hasher.update(piece.as_bytes()).update(&[0]);
        }
        // Paths of intermediate files differ from run to run; only contents count.
        let mut inputs: Vec<(&str, usize, &String)> = parts
            .inputs
            .iter()
            .map(|(name, hash)| {
                let order = name.rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
                (name.split(' ').next().unwrap_or(""), order, hash)
            })
            .collect();
        inputs.sort_by_key(|(_, order, _)| *order);
        for (name, _, hash) in inputs {
            hasher.update(name.as_bytes()).update(&[0]).update(hash.as_bytes()).update(&[0]);
        }
        Ok(TaskKey { key: hasher.finalize().to_hex().to_string(), parts })
    }

    /// What is started, without the values of inputs and the places of outputs.
    fn command(&self, task: &Executable, directory: &Path) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(text.as_bytes()).update(&[0]);
        };
        add(&task.runtime);
        add(task.script.as_deref().unwrap_or(&task.path));
        for a in &task.runtime_args {
            add(a.label.as_deref().unwrap_or(""));
            add(&a.variable.value);
        }
        for a in &task.arguments {
            add(&a.id);
            add(a.label.as_deref().unwrap_or(""));
            add(&a.data_type);
            if a.direction == Direction::Output {
                add(output_name(&a.variable.value));
            }
        }
        // A program that is part of the project is an input like any other.
        if task.script.is_none() && task.path.contains('/') {
            let program = directory.join(task.path.as_str());
            if let Ok(meta) = fs::metadata(&program)
                && meta.is_file()
            {
                add(&self.file_hash(&program, &meta)?.to_hex());
            }
        }
        Ok(hasher.finalize().to_hex()[..32].to_owned())
    }

    /// The hash of the file or directory an argument names; `None` if it names none.
    fn content_of(&self, argument: &Argument, path: &Path) -> io::Result<Option<String>> {
        if matches!(argument.data_type.as_str(), "integer" | "float" | "boolean") || argument.variable.value.is_empty() {
            return Ok(None);
        }
        let Ok(meta) = fs::metadata(path) else { return Ok(None) };
        if meta.is_file() {
            return Ok(Some(self.file_hash(path, &meta)?.to_hex().to_string()));
        }
        if !meta.is_dir() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        for file in files_below(path)? {
            let relative = file.strip_prefix(path).unwrap_or(&file);
            hasher.update(relative.as_os_str().as_encoded_bytes()).update(&[0]);
            if let Ok(meta) = fs::metadata(&file)
                && meta.is_file()
            {
                hasher.update(self.file_hash(&file, &meta)?.as_bytes());
            }
        }
        Ok(Some(hasher.finalize().to_hex().to_string()))
    }

    fn file_hash(&self, path: &Path, meta: &fs::Metadata) -> io::Result<blake3::Hash> {
        let stamp = Stamp::of(meta);
        let hashes = || self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = hashes().get(&stamp) {
            return Ok(*hash);
        }
        let name = format!("{stamp:?}");
        let known: Option<Vec<u8>> = self
            .inner()
            .connection
            .prepare_cached("SELECT hash FROM content WHERE stamp = ?1")
            .and_then(|mut s| s.query_row([&name], |r| r.get(0)).optional())
            .unwrap_or(None);
        let known = known.and_then(|bytes| bytes.try_into().ok()).map(blake3::Hash::from_bytes);
        let hash = match known {
            Some(hash) => hash,
            None => {
                let mut hasher = blake3::Hasher::new();
                let mut file = File::open(path)?;
                let mut buffer = vec![0; 256 << 10];
                loop {
                    let n = file.read(&mut buffer)?;
                    if n == 0 {
                        break;
                    }
                    hasher.update(&buffer[..n]);
                }
                let hash = hasher.finalize();
                self.write("INSERT OR REPLACE INTO content VALUES (?1, ?2)", params![name, &hash.as_bytes()[..]]);
                hash
            }
        };
        hashes().insert(stamp, hash);
        Ok(hash)
    }

    /// Puts the outputs of an earlier run in place, if there was one just like this.
    pub(crate) fn lookup(&self, name: &str, key: &TaskKey, task: &Executable, staging: &Staging) -> Lookup {
        let found: Option<String> = self
            .inner()
            .connection
            .prepare_cached("SELECT outputs FROM entry WHERE key = ?1")
            .and_then(|mut s| s.query_row([&key.key], |r| r.get(0)).optional())
            .unwrap_or(None);
        let Some(found) = found else { return Lookup::Miss(self.why(name, key)) };
        let outputs: Vec<CachedOutput> = serde_json::from_str(&found).unwrap_or_default();
        let targets: Vec<&Argument> = task.outputs().collect();
        if outputs.len() != targets.len() {
            return Lookup::Miss("its outputs are described in another way now".to_owned());
        }
        for output in &outputs {
            for (file, stamp) in &output.files {
                match fs::metadata(file) {
                    Ok(meta) if Stamp::of(&meta) == *stamp => {}
                    Ok(_) => return Lookup::Miss(format!("its earlier output {file} was changed")),
                    Err(_) => return Lookup::Miss(format!("its earlier output {file} is gone")),
                }
            }
        }
        for (output, target) in outputs.iter().zip(targets) {
            let local = Path::new(staging.locate(&target.variable.value));
            let linked = if output.directory && !Path::new(&output.path).exists() {
                fs::create_dir_all(local)
            } else {
                link(Path::new(&output.path), local)
            };
            if let Err(e) = linked {
                return Lookup::Miss(format!("its earlier output {} cannot be used: {e}", output.path));
            }
        }
        Lookup::Hit
    }

    /// Why a task has to run: what differs from its last entry.
    fn why(&self, name: &str, key: &TaskKey) -> String {
        let last: Option<String> = self
            .inner()
            .connection
            .prepare_cached("SELECT parts FROM entry WHERE task = ?1 ORDER BY made DESC LIMIT 1")
            .and_then(|mut s| s.query_row([name], |r| r.get(0)).optional())
            .unwrap_or(None);
        let Some(last) = last.and_then(|p| serde_json::from_str::<Parts>(&p).ok()) else {
            return "it has not run before".to_owned();
        };
        if last.command != key.parts.command {
            return "its command has changed".to_owned();
        }
        if last.env != key.parts.env {
            return "its environment has changed".to_owned();
        }
        let by_position = |parts: &Parts| -> BTreeMap<usize, (String, String)> {
            let split = |name: &str| {
                let (rest, position) = name.rsplit_once(' ').unwrap_or((name, "0"));
                (position.parse().unwrap_or(0), rest.to_owned())
            };
            parts.inputs.iter().map(|(n, h)| (split(n).0, (split(n).1, h.clone()))).collect()
        };
        let (before, now) = (by_position(&last), by_position(&key.parts));
        for (position, (name, hash)) in &now {
            match before.get(position) {
                Some((_, old)) if old == hash => {}
                Some(_) => return format!("its input {} has changed", name.replacen(' ', " = ", 1)),
                None => return format!("its input {} is new", name.replacen(' ', " = ", 1)),
            }
        }
        if before.len() > now.len() {
            return "it has fewer inputs than before".to_owned();
        }
        "it has not run with these inputs before".to_owned()
    }

    /// Remembers the outputs of a task, which are in their final places.
    pub(crate) fn record(&self, name: &str, key: &TaskKey, task: &Executable, made: i64) -> io::Result<()> {
        let mut outputs = Vec::new();
        for output in task.outputs() {
            let path = Path::new(output.variable.value.as_str());
            let directory = path.is_dir();
            let files = if directory { files_below(path)? } else { vec![path.to_path_buf()] };
            let mut stamped = Vec::with_capacity(files.len());
            for file in files {
                let stamp = Stamp::of(&fs::metadata(&file)?);
                stamped.push((file.to_string_lossy().into_owned(), stamp));
            }
            let path = output.variable.value.to_string();
            outputs.push(CachedOutput { path, files: stamped, directory });
        }
        let outputs = serde_json::to_string(&outputs)?;
        let parts = serde_json::to_string(&key.parts)?;
        self.write("INSERT OR REPLACE INTO entry VALUES (?1, ?2, ?3, ?4, ?5)", params![key.key, name, parts, outputs, made]);
        Ok(())
    }

    /// Writes an entry, soon. Losing one costs time, not correctness.
    fn write(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) {
        let mut inner = self.inner();
        let begun = inner.unwritten > 0 || inner.connection.execute_batch("BEGIN IMMEDIATE").is_ok();
        if begun && inner.connection.prepare_cached(sql).and_then(|mut s| s.execute(values)).is_ok() {
            inner.unwritten += 1;
        }
        if inner.unwritten >= WRITE_BATCH || inner.last_write.elapsed() >= WRITE_INTERVAL {
            inner.commit();
        }
    }

    /// Writes everything that is not written yet.
    pub fn flush(&self) {
        self.inner().commit();
    }
}

impl Inner {
    fn commit(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("COMMIT");
        }
        self.unwritten = 0;
        self.last_write = Instant::now();
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The part of an output's path that the user or the service has chosen: not the generated number.
fn output_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let (last, parent) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    if parent.parse::<u64>().is_ok() { last } else { last.trim_start_matches(|c: char| c.is_ascii_digit()) }
}

fn short(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}
