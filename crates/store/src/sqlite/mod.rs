//! The embedded store: one SQLite file.
//!
//! A transaction is written to the log with plain writes, so that what was applied survives the death of
//! the process at any moment. The disk is asked to keep it once a second and at the end of a run, not
//! once per task; a loss of power costs at most the last second, never consistency.

mod apply;
mod catalogue;
mod chains;
mod compositions;
mod counts;
mod end;
mod give;
mod members;

use crate::Store;
use crate::batch::{Applied, Batch};
use crate::error::StoreError;
use crate::record::{
    ChainFilter, ChainRecord, ClassCount, Counts, FailedAttempt, FeedRecord, NewRun, RUN_COLUMNS, Run,
    RunChange, RunState, WaitingClass, id, id_range, key,
};
use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, RunId};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Marks the file as a Catena store ("cate").
const APPLICATION_ID: i64 = 0x6361_7465;
/// Each entry brings a store from one format to the next.
const MIGRATIONS: [&str; 5] = [
    include_str!("format1.sql"),
    include_str!("format2.sql"),
    include_str!("format3.sql"),
    include_str!("format4.sql"),
    include_str!("format5.sql"),
];
/// How long a commit may stay in the operating system's memory only.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// How to open a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqliteOptions {
    /// Only read; fails if there is no store.
    pub read_only: bool,
}

/// A store in an SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    connection: Connection,
    classes: HashMap<Name, i64>,
    last_sync: Instant,
}

impl SqliteStore {
    /// Opens a store, and makes it if there is none.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let fail = |e: &rusqlite::Error| StoreError::from_sqlite(path, e);
        if options.read_only && !path.exists() {
            return Err(StoreError::ReadOnly {
                path: path.to_path_buf(),
                detail: "there is no such file".to_owned(),
            });
        }
        if let Some(directory) = path.parent()
            && let Err(e) = std::fs::create_dir_all(directory)
        {
            return Err(StoreError::ReadOnly { path: path.to_path_buf(), detail: e.to_string() });
        }
        let mut connection = Connection::open(path).map_err(|e| fail(&e))?;
        connection.busy_timeout(Duration::from_secs(20)).map_err(|e| fail(&e))?;
        let (version, application): (i64, i64) = pragma(&connection, "user_version")
            .and_then(|v| Ok((v, pragma(&connection, "application_id")?)))
            .map_err(|e| fail(&e))?;
        let known = MIGRATIONS.len() as i64;
        if version > 0 && application != APPLICATION_ID {
            return Err(StoreError::Foreign { path: path.to_path_buf() });
        }
        if version > known {
            return Err(StoreError::Newer { path: path.to_path_buf(), found: version, known });
        }
        // Whoever reads knows only the newest format, so an older store is upgraded even if it is only read.
        if !options.read_only || (1..known).contains(&version) {
            prepare(&mut connection, version).map_err(|e| match e.sqlite_error_code() {
                // A foreign database without a version may still have tables of its own.
                None | Some(rusqlite::ErrorCode::Unknown) => StoreError::Foreign { path: path.to_path_buf() },
                _ => fail(&e),
            })?;
        }
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise a statement with a bound LIMIT is compiled anew for every new limit.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(|e| fail(&e))?;
        let inner = Inner { connection, classes: HashMap::new(), last_sync: Instant::now() };
        Ok(Self { path: path.to_path_buf(), inner: Mutex::new(inner) })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        // A panic while the lock was held has rolled its transaction back.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut inner).map_err(|e| StoreError::from_sqlite(&self.path, &e))
    }

    /// Does something as a whole or not at all.
    fn transact<T>(&self, f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = f(&tx)?;
            tx.commit()?;
            Ok(done)
        })
    }

    /// Asks the disk to keep the log.
    fn sync_log(&self) -> Result<(), StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push("-wal");
        let synced = match std::fs::File::open(&name) {
            Ok(log) => log.sync_data(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        };
        synced.map_err(|e| StoreError::Other { path: PathBuf::from(name), detail: e.to_string() })
    }
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
}

fn prepare(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16000;",
    )?;
    if version < MIGRATIONS.len() as i64 {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have done it while we waited for the lock.
        let version = pragma(&tx, "user_version")?;
        for migration in &MIGRATIONS[version as usize..] {
            tx.execute_batch(migration)?;
        }
        let stamp =
            format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};", MIGRATIONS.len());
        tx.execute_batch(&stamp)?;
        tx.commit()?;
    }
    Ok(())
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: RunId(row.get("id")?),
        name: row.get("name")?,
        source: row.get("source")?,
        fingerprint: row.get("fingerprint")?,
        state: RunState::from_code(row.get("state")?).unwrap_or(RunState::Failed),
        created: row.get("created")?,
        started: row.get("started")?,
        ended: row.get("ended")?,
        error: row.get("error")?,
        cancel_requested: row.get("cancel_requested")?,
        results: row.get("results")?,
        tasks: row.get("tasks")?,
        skipped: row.get("skipped")?,
        priority: row.get("priority")?,
        held: row.get("held")?,
        controller: row.get::<_, Option<String>>("controller")?.map(Into::into),
    })
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_run(&self, run: &NewRun) -> Result<RunId, StoreError> {
        self.transact(|tx| {
            let sql = "UPDATE number SET last = last + 1 WHERE name = 'run' RETURNING last";
            let id = RunId(tx.query_row(sql, [], |row| row.get(0))?);
            tx.execute(
                "INSERT INTO run (id, name, source, fingerprint, definition, state, created, priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![id.0, run.name, run.source, run.fingerprint, run.definition, RunState::Running.code(), run.created, run.priority],
            )?;
            // Nobody may plan the run before its files are known.
            run.files.iter().try_for_each(|file| catalogue::put_file(tx, id, None, file))?;
            Ok(id)
        })
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, StoreError> {
        self.with(|inner| {
            let sql = format!("SELECT {RUN_COLUMNS} FROM run WHERE id = ?1");
            inner.connection.query_row(&sql, [id.0], read_run).optional()
        })
    }

    async fn definition(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|inner| {
            let sql = "SELECT definition FROM run WHERE id = ?1";
            inner.connection.query_row(sql, [id.0], |row| row.get(0)).optional()
        })
    }

    async fn runs(&self) -> Result<Vec<Run>, StoreError> {
        self.with(|inner| {
            let sql = format!("SELECT {RUN_COLUMNS} FROM run ORDER BY id DESC");
            let mut statement = inner.connection.prepare(&sql)?;
            let rows = statement.query_map([], read_run)?;
            rows.collect()
        })
    }

    async fn change_run(&self, id: RunId, c: &RunChange) -> Result<(), StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let set = |column: &str, value: &dyn rusqlite::ToSql| {
                tx.execute(&format!("UPDATE run SET {column} = ?2 WHERE id = ?1"), params![id.0, value])
                    .map(|_| ())
            };
            if let Some(state) = c.state {
                set("state", &state.code())?;
            }
            if let Some(started) = c.started {
                set("started", &started)?;
            }
            if let Some(ended) = c.ended {
                set("ended", &ended)?;
            }
            if let Some(error) = &c.error {
                set("error", error)?;
            }
            if let Some(cancel) = c.cancel_requested {
                set("cancel_requested", &cancel)?;
            }
            if let Some(results) = &c.results {
                set("results", results)?;
            }
            if let Some(tasks) = c.tasks {
                set("tasks", &tasks)?;
            }
            if let Some(skipped) = c.skipped {
                set("skipped", &skipped)?;
            }
            if let Some(held) = c.held {
                set("held", &held)?;
            }
            if let Some(controller) = &c.controller {
                set("controller", &controller.as_deref())?;
            }
            tx.commit()
        })
    }

    async fn delete_run(&self, run: RunId) -> Result<(), StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (first, last) = id_range(run);
            for table in ["chain", "payload", "result", "failed_attempt", "copy"] {
                tx.execute(&format!("DELETE FROM {table} WHERE id BETWEEN ?1 AND ?2"), [first, last])?;
            }
            for table in ["class_count", "file"] {
                tx.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run.0])?;
            }
            tx.execute("DELETE FROM run WHERE id = ?1", [run.0])?;
            tx.commit()
        })
    }

    async fn adopt_runs(&self, controller: &Name, has: &[RunId], now: i64) -> Result<Vec<Run>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached(&format!(
                "UPDATE run SET controller = ?1 WHERE state = ?3 AND (controller IS NULL OR controller = ?1
                 OR controller NOT IN (SELECT id FROM instance WHERE until > ?2)) RETURNING {RUN_COLUMNS}"
            ))?;
            let rows =
                statement.query_map(params![controller.as_str(), now, RunState::Running.code()], read_run)?;
            let runs = rows.collect::<rusqlite::Result<Vec<Run>>>()?;
            Ok(runs.into_iter().filter(|r| !has.contains(&r.id)).collect())
        })
    }

    async fn prioritise(&self, run: RunId, priority: i32, aging: Duration) -> Result<(), StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (first, last) = id_range(run);
            tx.execute("UPDATE run SET priority = ?2 WHERE id = ?1", params![run.0, priority])?;
            tx.execute(
                "UPDATE chain SET priority = ?3, rank = rank + (?3 - priority) * ?4
                 WHERE id BETWEEN ?1 AND ?2 AND state IN (0, 2)",
                params![first, last, priority, aging.as_millis() as i64],
            )?;
            tx.commit()
        })
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, StoreError> {
        if batch.is_empty() {
            return Ok(Applied::default());
        }
        let (applied, due) = self.with(|inner| {
            let Some(applied) = inner.apply(batch)? else { return Ok((None, false)) };
            let due = inner.last_sync.elapsed() >= SYNC_INTERVAL;
            if due {
                inner.last_sync = Instant::now();
            }
            Ok((Some(applied), due))
        })?;
        if due {
            self.sync_log()?;
        }
        applied.ok_or_else(|| StoreError::TakenOver { what: "a run".to_owned() })
    }

    async fn waiting(&self, now: i64) -> Result<Vec<WaitingClass>, StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            chains::wake_paused(&tx, now)?;
            let mut statement = tx.prepare_cached(
                "SELECT class.key, n.count, (SELECT rank FROM chain WHERE state = 0 AND chain.class = n.class
                                             ORDER BY rank DESC, id LIMIT 1)
                 FROM (SELECT class, SUM(count) AS count FROM class_count WHERE state = 0 GROUP BY class) AS n
                 JOIN class ON class.id = n.class WHERE n.count > 0",
            )?;
            let rows = statement.query_map([], |row| {
                let class: String = row.get(0)?;
                let rank: Option<i64> = row.get(2)?;
                let count: i64 = row.get(1)?;
                Ok(WaitingClass { class: class.into(), count: count as u64, rank: rank.unwrap_or(0) })
            })?;
            let waiting = rows.collect::<rusqlite::Result<_>>()?;
            drop(statement);
            tx.commit()?;
            Ok(waiting)
        })
    }

    async fn counts(&self, run: RunId) -> Result<Counts, StoreError> {
        self.with(|inner| {
            let mut statement = inner
                .connection
                .prepare_cached("SELECT state, SUM(count) FROM class_count WHERE run = ?1 GROUP BY state")?;
            let rows =
                statement.query_map([run.0], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
            let mut counts = Counts::default();
            for row in rows {
                let (state, n) = row?;
                if let Some(state) = ChainState::from_code(state) {
                    *counts.of(state) = n.max(0) as u64;
                }
            }
            Ok(counts)
        })
    }

    async fn class_counts(&self, run: RunId) -> Result<Vec<ClassCount>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached(
                "SELECT class.key, state, count FROM class_count JOIN class ON class.id = class_count.class
                 WHERE run = ?1 AND count > 0 ORDER BY class.key, state",
            )?;
            let rows = statement.query_map([run.0], |row| {
                let class: String = row.get(0)?;
                let state = ChainState::from_code(row.get(1)?).unwrap_or(ChainState::Failed);
                Ok(ClassCount { class: class.into(), state, count: row.get::<_, i64>(2)? as u64 })
            })?;
            rows.collect()
        })
    }

    async fn chains(&self, run: RunId, filter: &ChainFilter) -> Result<Vec<ChainRecord>, StoreError> {
        self.with(|inner| chains::chains(&inner.connection, run, filter))
    }

    async fn chain(&self, key: ChainKey) -> Result<Option<ChainRecord>, StoreError> {
        self.with(|inner| chains::chain(&inner.connection, key))
    }

    async fn registered(&self, limit: usize) -> Result<Vec<ChainRecord>, StoreError> {
        self.with(|inner| chains::registered(&inner.connection, limit))
    }

    async fn payloads(&self, chains: &[ChainKey]) -> Result<Vec<(ChainKey, Vec<u8>)>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached("SELECT chain FROM payload WHERE id = ?1")?;
            let mut payloads = Vec::new();
            for key in chains {
                let payload = statement.query_row([id(key.run, key.seq)], |r| r.get(0)).optional()?;
                payloads.extend(payload.map(|p| (*key, p)));
            }
            Ok(payloads)
        })
    }

    async fn chains_of(&self, agents: &[Name]) -> Result<Vec<ChainRecord>, StoreError> {
        self.with(|inner| chains::chains_of(&inner.connection, agents))
    }

    async fn unused_results(&self, run: RunId, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.with(|inner| {
            let (first, last) = id_range(run);
            let mut statement = inner.connection.prepare_cached(
                "SELECT id, result FROM result WHERE id BETWEEN ?1 AND ?2 AND number IS NULL ORDER BY id LIMIT ?3",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows =
                statement.query_map(params![first, last, limit], |r| Ok((key(r.get(0)?).seq, r.get(1)?)))?;
            rows.collect()
        })
    }

    async fn feeds(&self, run: RunId) -> Result<Vec<FeedRecord>, StoreError> {
        self.with(|inner| {
            let (first, last) = id_range(run);
            let mut statement = inner.connection.prepare_cached(
                "SELECT id, after_chains FROM result WHERE id BETWEEN ?1 AND ?2 AND number IS NOT NULL ORDER BY number",
            )?;
            let rows = statement.query_map([first, last], |row| {
                Ok(FeedRecord { chain: key(row.get(0)?).seq, after_chains: row.get::<_, i64>(1)? as u64 })
            })?;
            rows.collect()
        })
    }

    async fn results(&self, run: RunId, chains: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached("SELECT result FROM result WHERE id = ?1")?;
            let mut results = Vec::new();
            for seq in chains {
                if let Some(result) = statement.query_row([id(run, *seq)], |r| r.get(0)).optional()? {
                    results.push((*seq, result));
                }
            }
            Ok(results)
        })
    }

    async fn failed_attempts(&self, run: RunId) -> Result<Vec<FailedAttempt>, StoreError> {
        self.with(|inner| {
            let (first, last) = id_range(run);
            let mut statement = inner.connection.prepare_cached(
                "SELECT * FROM failed_attempt WHERE id BETWEEN ?1 AND ?2 ORDER BY ended, id, attempt",
            )?;
            let rows = statement.query_map(params![first, last], |row| {
                let agent: Option<String> = row.get("agent")?;
                Ok(FailedAttempt {
                    key: key(row.get("id")?),
                    attempt: row.get("attempt")?,
                    agent: agent.map(Into::into),
                    started: row.get("started")?,
                    ended: row.get("ended")?,
                    error: row.get("error")?,
                })
            })?;
            rows.collect()
        })
    }

    async fn release_running(&self, run: RunId) -> Result<u64, StoreError> {
        let from = [ChainState::Running, ChainState::Paused];
        self.transact(|tx| chains::move_all(tx, run, &from, ChainState::Registered))
    }

    async fn release_agent(
        &self,
        agent: &Name,
        limit: u32,
        error: &str,
        now: i64,
    ) -> Result<Vec<ChainRecord>, StoreError> {
        self.transact(|tx| {
            let attempts = chains::chains_of(tx, std::slice::from_ref(agent))?;
            end::release(tx, attempts, limit, error, now)
        })
    }

    async fn retry_failed(&self, run: RunId) -> Result<u64, StoreError> {
        let from = [ChainState::Failed, ChainState::Cancelled];
        self.transact(|tx| chains::move_all(tx, run, &from, ChainState::Registered))
    }

    async fn move_chains(&self, run: RunId, from: ChainState, to: ChainState) -> Result<u64, StoreError> {
        self.transact(|tx| chains::move_all(tx, run, &[from], to))
    }

    async fn repair_counts(&self, run: RunId) -> Result<u64, StoreError> {
        self.transact(|tx| counts::repair(tx, run)).map(|wrong| wrong as u64)
    }

    async fn foreign_changes(&self) -> Result<u64, StoreError> {
        self.with(|inner| pragma(&inner.connection, "data_version").map(|v| v as u64))
    }

    async fn sync(&self) -> Result<(), StoreError> {
        self.sync_log()
    }
}
