//! Remembers what tasks produced, so that unchanged ones need not run again.
//!
//! The key of a task is a hash of everything that determines its result: the program or script, its
//! arguments, its environment, and the contents of its input files. Resources, retries and time limits
//! are not part of it. Contents are hashed once per file; its size, inode and modification time tell
//! whether it is still the same.

use crate::staging::{Staging, files_below, link, own_directory};
use catena_data::{Depot, Place};
use catena_model::Direction;
use catena_model::chain::{Argument, Executable, Produced};
use catena_model::content::{Artifact, ContentId};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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
#[error(
    "the result cache {path} cannot be used: {detail}; remove the file to start a new one, or run with --no-cache"
)]
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
    key: [u8; 16],
    /// Short hashes of the command, the environment, and each input in order: enough to say what has
    /// changed, and small, because there is one per task.
    parts: Vec<u8>,
}

/// The length of a short hash.
const PART: usize = 8;

/// An output as the cache knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CachedOutput {
    path: String,
    files: Vec<(String, Stamp)>,
    directory: bool,
    /// Where agents have files of their own, what it is, and whether that is the directory that it has to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<(Artifact, bool)>,
}

/// What the cache says about a task.
pub(crate) enum Lookup {
    /// Its outputs are in place.
    Hit,
    /// It has to run; why, if somebody wants to know.
    Miss(Option<String>),
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
                 CREATE TABLE IF NOT EXISTS entry (key BLOB PRIMARY KEY, outputs TEXT NOT NULL) WITHOUT ROWID;
                 CREATE TABLE IF NOT EXISTS last (task INTEGER PRIMARY KEY, parts BLOB NOT NULL);
                 CREATE TABLE IF NOT EXISTS content (stamp TEXT PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;",
            )?;
            Ok(connection)
        };
        let connection =
            open().map_err(|e| CacheError { path: path.to_path_buf(), detail: e.to_string() })?;
        let inner = Inner { connection, unwritten: 0, last_write: Instant::now() };
        Ok(Self { inner: Mutex::new(inner), hashes: Mutex::new(HashMap::new()) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The key of a task whose inputs are all there.
    pub(crate) fn key(&self, task: &Executable, directory: &Path, staging: &Staging) -> io::Result<TaskKey> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(KEY_VERSION.as_bytes());
        let mut parts = Vec::with_capacity(PART * (2 + task.arguments.len()));
        let mut add = |hash: blake3::Hash| {
            hasher.update(hash.as_bytes());
            parts.extend_from_slice(&hash.as_bytes()[..PART]);
        };
        add(self.command(task, directory)?);
        let mut env = blake3::Hasher::new();
        for (name, value) in &task.env {
            env.update(name.as_bytes()).update(&[0]).update(value.as_bytes()).update(&[0]);
        }
        add(env.finalize());
        // Paths of intermediate files differ from run to run; only contents count.
        for argument in inputs(task) {
            let value = staging.locate(&argument.variable.value);
            let content = self.content_of(argument, &directory.join(value))?;
            add(content.unwrap_or_else(|| blake3::hash(value.as_bytes())));
        }
        let hash = hasher.finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Ok(TaskKey { key, parts })
    }

    /// What is started, without the values of inputs and the places of outputs.
    fn command(&self, task: &Executable, directory: &Path) -> io::Result<blake3::Hash> {
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
        // What produces nothing is run for what it does, so it is the same only if it is the same task.
        if task.outputs().next().is_none() {
            add(&task.id);
        }
        Ok(hasher.finalize())
    }

    /// The hash of the file or directory an argument names; `None` if it names none.
    fn content_of(&self, argument: &Argument, path: &Path) -> io::Result<Option<blake3::Hash>> {
        if matches!(argument.data_type.as_str(), "integer" | "float" | "boolean")
            || argument.variable.value.is_empty()
        {
            return Ok(None);
        }
        let Ok(meta) = fs::metadata(path) else {
            return Ok(None);
        };
        let mut hasher = blake3::Hasher::new();
        let (root, files) = if meta.is_dir() {
            (path, files_below(path)?)
        } else if meta.is_file() {
            // What a tool has put beside its output is part of it.
            let files = own_directory(path).map(files_below).transpose()?.filter(|files| files.len() > 1);
            let Some(files) = files else {
                return Ok(Some(self.file_hash(path, &meta)?));
            };
            hasher.update(path.file_name().unwrap_or_default().as_encoded_bytes()).update(&[0]);
            (path.parent().unwrap_or(path), files)
        } else {
            return Ok(None);
        };
        for file in files {
            let relative = file.strip_prefix(root).unwrap_or(&file);
            hasher.update(relative.as_os_str().as_encoded_bytes()).update(&[0]);
            if let Ok(meta) = fs::metadata(&file)
                && meta.is_file()
            {
                hasher.update(self.file_hash(&file, &meta)?.as_bytes());
            }
        }
        Ok(Some(hasher.finalize()))
    }

    /// What a file is, where that is known: it need not be hashed again.
    pub(crate) fn know(&self, path: &Path, id: ContentId) {
        if let Ok(meta) = fs::metadata(path) {
            let hash = blake3::Hash::from_bytes(*id.as_bytes());
            self.hashes.lock().unwrap_or_else(PoisonError::into_inner).insert(Stamp::of(&meta), hash);
        }
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
                self.write(
                    "INSERT OR REPLACE INTO content VALUES (?1, ?2)",
                    params![name, &hash.as_bytes()[..]],
                );
                hash
            }
        };
        hashes().insert(stamp, hash);
        Ok(hash)
    }

    /// Puts the outputs of an earlier run in place, if there was one just like this. `explain` asks for
    /// the reason if there was none.
    pub(crate) fn lookup(
        &self,
        name: &str,
        key: &TaskKey,
        task: &Executable,
        staging: &Staging,
        depot: Option<&Depot>,
        explain: bool,
    ) -> Lookup {
        let found: Option<String> = self
            .inner()
            .connection
            .prepare_cached("SELECT outputs FROM entry WHERE key = ?1")
            .and_then(|mut s| s.query_row([&key.key[..]], |r| r.get(0)).optional())
            .unwrap_or(None);
        let Some(found) = found else {
            return Lookup::Miss(explain.then(|| self.why(name, key, task)));
        };
        let miss = |reason| Lookup::Miss(Some(reason));
        let outputs: Vec<CachedOutput> = serde_json::from_str(&found).unwrap_or_default();
        let targets: Vec<&Argument> = task.outputs().collect();
        if outputs.len() != targets.len() {
            return miss("its outputs are described in another way now".to_owned());
        }
        for output in &outputs {
            let holds =
                |(artifact, _): &(Artifact, bool)| depot.is_some_and(|d| d.holdings().holds(artifact));
            if output.held.as_ref().is_some_and(|held| !holds(held))
                || output.held.is_none() && depot.is_some()
            {
                return miss(format!("its earlier output {} is not here any more", output.path));
            }
            for (file, stamp) in &output.files {
                match fs::metadata(file) {
                    Ok(meta) if Stamp::of(&meta) == *stamp => {}
                    Ok(_) => return miss(format!("its earlier output {file} was changed")),
                    Err(_) => return miss(format!("its earlier output {file} is gone")),
                }
            }
        }
        for (output, target) in outputs.iter().zip(targets) {
            let local = Path::new(staging.locate(&target.variable.value));
            if let (Some((artifact, is_unit)), Some(depot)) = (&output.held, depot) {
                let place = staging.unit(&target.variable.value).filter(|_| *is_unit).unwrap_or(local);
                if !place.exists()
                    && let Err(e) = depot.holdings().place(artifact, place, Place::Shared)
                {
                    return miss(format!("its earlier output {} cannot be used: {e}", output.path));
                }
                continue;
            }
            let path = Path::new(&output.path);
            let linked = match (own_directory(path), local.parent()) {
                _ if output.directory && !path.exists() => fs::create_dir_all(local),
                (Some(from), Some(to)) => link(from, to),
                _ => link(path, local),
            };
            if let Err(e) = linked {
                return miss(format!("its earlier output {} cannot be used: {e}", output.path));
            }
        }
        Lookup::Hit
    }

    /// Why a task has to run: what differs from the last time.
    fn why(&self, name: &str, key: &TaskKey, task: &Executable) -> String {
        let last: Option<Vec<u8>> = self
            .inner()
            .connection
            .prepare_cached("SELECT parts FROM last WHERE task = ?1")
            .and_then(|mut s| s.query_row([task_number(name)], |r| r.get(0)).optional())
            .unwrap_or(None);
        let Some(last) = last else {
            return "it has not run before".to_owned();
        };
        let (before, now): (Vec<&[u8]>, Vec<&[u8]>) =
            (last.chunks(PART).collect(), key.parts.chunks(PART).collect());
        if before.first() != now.first() {
            return "its command has changed".to_owned();
        }
        if before.get(1) != now.get(1) {
            return "its environment has changed".to_owned();
        }
        for (i, argument) in inputs(task).enumerate() {
            let input = format!("{} = {}", argument.id, argument.variable.value);
            match before.get(i + 2) {
                None => return format!("its input {input} is new"),
                Some(old) if now.get(i + 2) != Some(old) => return format!("its input {input} has changed"),
                Some(_) => {}
            }
        }
        if before.len() > now.len() {
            return "it has fewer inputs than before".to_owned();
        }
        "its earlier result was removed from the cache".to_owned()
    }

    /// Remembers the outputs of a task, which are in their final places.
    pub(crate) fn record(&self, name: &str, key: &TaskKey, task: &Executable) -> io::Result<()> {
        let mut outputs = Vec::new();
        for output in task.outputs() {
            let path = Path::new(output.variable.value.as_str());
            let directory = path.is_dir();
            let files = match own_directory(path) {
                Some(own) => files_below(own)?,
                None if directory => files_below(path)?,
                None => vec![path.to_path_buf()],
            };
            let mut stamped = Vec::with_capacity(files.len());
            for file in files {
                let stamp = Stamp::of(&fs::metadata(&file)?);
                stamped.push((file.to_string_lossy().into_owned(), stamp));
            }
            let path = output.variable.value.to_string();
            outputs.push(CachedOutput { path, files: stamped, directory, held: None });
        }
        self.record_outputs(name, key, &outputs)
    }

    /// Remembers the outputs of a task that are held by this agent.
    pub(crate) fn record_held(
        &self,
        name: &str,
        key: &TaskKey,
        task: &Executable,
        produced: &[Produced],
    ) -> io::Result<()> {
        let mut outputs = Vec::new();
        for output in task.outputs() {
            let path = output.variable.value.to_string();
            let found = produced.iter().find(|p| Path::new(&path).starts_with(p.name.as_str()));
            let held = found.map(|p| (p.artifact, p.name != path));
            outputs.push(CachedOutput { path, files: Vec::new(), directory: false, held });
        }
        self.record_outputs(name, key, &outputs)
    }

    fn record_outputs(&self, name: &str, key: &TaskKey, outputs: &[CachedOutput]) -> io::Result<()> {
        let outputs = serde_json::to_string(outputs)?;
        self.write("INSERT OR REPLACE INTO entry VALUES (?1, ?2)", params![&key.key[..], outputs]);
        self.write("INSERT OR REPLACE INTO last VALUES (?1, ?2)", params![task_number(name), key.parts]);
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

fn inputs(task: &Executable) -> impl Iterator<Item = &Argument> {
    task.arguments.iter().filter(|a| a.direction == Direction::Input)
}

/// Stands for a task's name where many of them are kept.
fn task_number(name: &str) -> i64 {
    let hash = blake3::hash(name.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}
