//! The embedded store: one SQLite file.
//!
//! A transaction is written to the log with plain writes, so that what was applied survives the death of
//! the process at any moment. The disk is asked to keep it once a second and at the end of a run, not
//! once per task; a loss of power costs at most the last second, never consistency.

use crate::Store;
use crate::batch::{Applied, Batch, Claim, Claimed, Feed, Finish, NewChains, Requeue, Start};
use crate::error::StoreError;
use crate::record::{
    ChainFilter, ChainRecord, ClassCount, Counts, FailedAttempt, FeedRecord, NewRun, Run, RunChange, RunState,
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
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];
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
    next_feed: HashMap<i64, i64>,
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
        if !options.read_only {
            prepare(&mut connection, version).map_err(|e| match e.sqlite_error_code() {
                // A foreign database without a version may still have tables of its own.
                None | Some(rusqlite::ErrorCode::Unknown) => StoreError::Foreign { path: path.to_path_buf() },
                _ => fail(&e),
            })?;
        }
        connection.set_prepared_statement_cache_capacity(64);
        // Otherwise a statement with a bound LIMIT is compiled anew for every new limit.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(|e| fail(&e))?;
        let inner = Inner {
            connection,
            classes: HashMap::new(),
            next_feed: HashMap::new(),
            last_sync: Instant::now(),
        };
        Ok(Self { path: path.to_path_buf(), inner: Mutex::new(inner) })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        // A panic while the lock was held has rolled its transaction back.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut inner).map_err(|e| StoreError::from_sqlite(&self.path, &e))
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

fn id(run: RunId, seq: u64) -> i64 {
    (run.0 << 32) | seq as i64
}

fn key(id: i64) -> ChainKey {
    ChainKey { run: RunId(id >> 32), seq: (id & 0xffff_ffff) as u64 }
}

/// The ids of all chains of a run.
fn id_range(run: RunId) -> (i64, i64) {
    (id(run, 0), id(run, 0xffff_ffff))
}

/// Changes of the maintained counts, written once per transaction.
#[derive(Default)]
struct CountChanges(HashMap<(i64, i64, i64), i64>);

impl CountChanges {
    fn add(&mut self, chain: i64, class: i64, state: ChainState, n: i64) {
        *self.0.entry((chain >> 32, class, state.code())).or_insert(0) += n;
    }

    fn moved(&mut self, chain: i64, class: i64, from: ChainState, to: ChainState) {
        self.add(chain, class, from, -1);
        self.add(chain, class, to, 1);
    }

    fn write(self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut statement = tx.prepare_cached(
            "INSERT INTO class_count (run, class, state, count) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET count = count + ?4",
        )?;
        for ((run, class, state), n) in self.0 {
            if n != 0 {
                statement.execute(params![run, class, state, n])?;
            }
        }
        Ok(())
    }
}

impl Inner {
    fn apply(&mut self, batch: Batch) -> rusqlite::Result<Applied> {
        let Self { connection, classes, next_feed, .. } = self;
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut changes = CountChanges::default();
        let mut applied = Applied::default();
        let mut new_classes = Vec::new();
        for finish in &batch.finishes {
            applied.finished.push(apply_finish(&tx, &mut changes, finish)?);
        }
        for requeue in &batch.requeues {
            applied.requeued.push(apply_requeue(&tx, &mut changes, requeue)?);
        }
        let mut feeds = HashMap::new();
        for feed in &batch.feeds {
            let number = match feeds.get(&feed.run.0).or_else(|| next_feed.get(&feed.run.0)) {
                Some(n) => *n,
                None => {
                    let (first, last) = id_range(feed.run);
                    let sql = "SELECT COALESCE(MAX(number) + 1, 0) FROM result WHERE id BETWEEN ?1 AND ?2";
                    tx.query_row(sql, [first, last], |r| r.get(0))?
                }
            };
            apply_feed(&tx, feed, number)?;
            feeds.insert(feed.run.0, number + feed.chains.len() as i64);
        }
        for chains in &batch.chains {
            insert_chains(&tx, &mut changes, classes, &mut new_classes, chains)?;
        }
        for start in &batch.starts {
            apply_start(&tx, &mut changes, start)?;
        }
        for claim in &batch.claims {
            applied.claimed.push(apply_claim(&tx, &mut changes, claim)?);
        }
        changes.write(&tx)?;
        let committed = tx.commit();
        if committed.is_err() {
            // The ids of classes were rolled back with everything else.
            for class in new_classes {
                classes.remove(&class);
            }
        } else {
            next_feed.extend(feeds);
        }
        committed.map(|()| applied)
    }
}

fn apply_finish(tx: &Transaction<'_>, changes: &mut CountChanges, finish: &Finish) -> rusqlite::Result<bool> {
    let chain = id(finish.attempt.chain.run, finish.attempt.chain.seq);
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = ?3, started = ?4, ended = ?5
         WHERE id = ?1 AND attempt = ?2 AND state = 1 RETURNING class, agent",
    )?;
    let found: Option<(i64, Option<String>)> = statement
        .query_row(
            params![chain, finish.attempt.number, finish.state.code(), finish.started, finish.ended],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((class, agent)) = found else {
        return Ok(false);
    };
    changes.moved(chain, class, ChainState::Running, finish.state);
    if finish.state == ChainState::Succeeded {
        tx.prepare_cached("INSERT OR REPLACE INTO result (id, result) VALUES (?1, ?2)")?
            .execute(params![chain, finish.result])?;
    }
    if let Some(error) = &finish.error {
        insert_failure(tx, chain, finish.attempt.number, agent, finish.started, finish.ended, error)?;
    }
    Ok(true)
}

fn apply_requeue(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    requeue: &Requeue,
) -> rusqlite::Result<bool> {
    let chain = id(requeue.attempt.chain.run, requeue.attempt.chain.seq);
    let to = if requeue.failure.is_some() { ChainState::Paused } else { ChainState::Registered };
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = ?3, not_before = ?4 WHERE id = ?1 AND attempt = ?2 AND state = 1 RETURNING class, agent",
    )?;
    let found: Option<(i64, Option<String>)> = statement
        .query_row(params![chain, requeue.attempt.number, to.code(), requeue.not_before], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((class, agent)) = found else {
        return Ok(false);
    };
    changes.moved(chain, class, ChainState::Running, to);
    if let Some((started, ended, error)) = &requeue.failure {
        insert_failure(tx, chain, requeue.attempt.number, agent, *started, *ended, error)?;
    }
    Ok(true)
}

fn insert_failure(
    tx: &Transaction<'_>,
    chain: i64,
    attempt: u32,
    agent: Option<String>,
    started: i64,
    ended: i64,
    error: &str,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO failed_attempt (id, attempt, agent, started, ended, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.prepare_cached(sql)?.execute(params![chain, attempt, agent, started, ended, error]).map(|_| ())
}

fn apply_feed(tx: &Transaction<'_>, feed: &Feed, first: i64) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("UPDATE result SET number = ?2, after_chains = ?3 WHERE id = ?1")?;
    for (number, seq) in (first..).zip(&feed.chains) {
        statement.execute(params![id(feed.run, *seq), number, feed.after_chains as i64])?;
    }
    Ok(())
}

fn class_id(
    tx: &Transaction<'_>,
    classes: &mut HashMap<Name, i64>,
    fresh: &mut Vec<Name>,
    class: &Name,
) -> rusqlite::Result<i64> {
    if let Some(id) = classes.get(class) {
        return Ok(*id);
    }
    tx.execute("INSERT OR IGNORE INTO class (key) VALUES (?1)", [class.as_str()])?;
    let id = tx.query_row("SELECT id FROM class WHERE key = ?1", [class.as_str()], |r| r.get(0))?;
    classes.insert(class.clone(), id);
    fresh.push(class.clone());
    Ok(id)
}

fn insert_chains(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    classes: &mut HashMap<Name, i64>,
    fresh: &mut Vec<Name>,
    new: &NewChains,
) -> rusqlite::Result<()> {
    for (i, chain) in new.chains.iter().enumerate() {
        let class = class_id(tx, classes, fresh, &chain.class)?;
        let id = id(new.run, new.first + i as u64);
        let registered = ChainState::Registered;
        tx.prepare_cached("INSERT INTO chain (id, class, state, priority) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![id, class, registered.code(), chain.priority])?;
        tx.prepare_cached("INSERT INTO payload (id, chain) VALUES (?1, ?2)")?
            .execute(params![id, chain.payload])?;
        changes.add(id, class, registered, 1);
    }
    Ok(())
}

fn apply_start(tx: &Transaction<'_>, changes: &mut CountChanges, start: &Start) -> rusqlite::Result<()> {
    let chain = id(start.attempt.chain.run, start.attempt.chain.seq);
    let from: Option<(i64, i64)> = tx
        .prepare_cached("SELECT state, class FROM chain WHERE id = ?1 AND state IN (0, 2) AND attempt < ?2")?
        .query_row(params![chain, start.attempt.number], |r| Ok((r.get(0)?, r.get(1)?)))
        .optional()?;
    let Some((state, class)) = from else { return Ok(()) };
    tx.prepare_cached(
        "UPDATE chain SET state = 1, attempt = ?2, agent = ?3, started = ?4, ended = NULL WHERE id = ?1",
    )?
    .execute(params![chain, start.attempt.number, start.agent.as_str(), start.now])?;
    let from = ChainState::from_code(state).unwrap_or(ChainState::Registered);
    changes.moved(chain, class, from, ChainState::Running);
    Ok(())
}

fn apply_claim(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    claim: &Claim,
) -> rusqlite::Result<Vec<Claimed>> {
    let class: Option<i64> = tx
        .prepare_cached("SELECT id FROM class WHERE key = ?1")?
        .query_row([claim.class.as_str()], |r| r.get(0))
        .optional()?;
    let Some(class) = class else { return Ok(Vec::new()) };
    wake_paused(tx, changes, class, claim.now)?;
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 1, attempt = attempt + 1, agent = ?3, started = ?4, ended = NULL
         WHERE id IN (SELECT id FROM chain WHERE state = 0 AND class = ?1 ORDER BY priority DESC, id LIMIT ?2)
         RETURNING id, attempt, priority",
    )?;
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![class, limit, claim.agent.as_str(), claim.now], |row| {
        Ok(Claimed { key: key(row.get(0)?), attempt: row.get(1)?, priority: row.get(2)? })
    })?;
    let mut out = rows.collect::<rusqlite::Result<Vec<Claimed>>>()?;
    // RETURNING promises no order.
    out.sort_by_key(|c| (std::cmp::Reverse(c.priority), c.key));
    for claimed in &out {
        changes.moved(
            id(claimed.key.run, claimed.key.seq),
            class,
            ChainState::Registered,
            ChainState::Running,
        );
    }
    Ok(out)
}

/// Chains whose pause is over wait for an agent again.
fn wake_paused(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    class: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let waiting: Option<i64> = tx
        .prepare_cached("SELECT 1 FROM class_count WHERE class = ?1 AND state = 2 AND count > 0 LIMIT 1")?
        .query_row([class], |r| r.get(0))
        .optional()?;
    if waiting.is_none() {
        return Ok(());
    }
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 0 WHERE state = 2 AND class = ?1 AND not_before <= ?2 RETURNING id",
    )?;
    let woken = statement.query_map(params![class, now], |row| row.get::<_, i64>(0))?;
    for chain in woken {
        changes.moved(chain?, class, ChainState::Paused, ChainState::Registered);
    }
    Ok(())
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: RunId(row.get("id")?),
        name: row.get("name")?,
        source: row.get("source")?,
        fingerprint: row.get("fingerprint")?,
        definition: row.get("definition")?,
        state: RunState::from_code(row.get("state")?).unwrap_or(RunState::Failed),
        created: row.get("created")?,
        started: row.get("started")?,
        ended: row.get("ended")?,
        error: row.get("error")?,
        cancel_requested: row.get("cancel_requested")?,
        results: row.get("results")?,
        tasks: row.get("tasks")?,
        skipped: row.get("skipped")?,
    })
}

fn read_chain(row: &Row<'_>) -> rusqlite::Result<ChainRecord> {
    let class: String = row.get("class_key")?;
    let agent: Option<String> = row.get("agent")?;
    Ok(ChainRecord {
        key: key(row.get("id")?),
        state: ChainState::from_code(row.get("state")?).unwrap_or(ChainState::Failed),
        attempt: row.get("attempt")?,
        class: class.into(),
        priority: row.get("priority")?,
        agent: agent.map(Into::into),
        started: row.get("started")?,
        ended: row.get("ended")?,
        not_before: row.get("not_before")?,
        payload: row.get::<_, Option<Vec<u8>>>("payload")?.unwrap_or_default(),
        result: row.get::<_, Option<Vec<u8>>>("outcome")?.unwrap_or_default(),
    })
}

/// Moves all chains of a run that are in one of `from` to `Registered`.
fn register_again(tx: &Transaction<'_>, run: RunId, from: &[ChainState]) -> rusqlite::Result<u64> {
    let (first, last) = id_range(run);
    let mut changes = CountChanges::default();
    let mut n = 0;
    for state in from {
        let mut statement =
            tx.prepare_cached("UPDATE chain SET state = 0, not_before = 0 WHERE id BETWEEN ?1 AND ?2 AND state = ?3 RETURNING id, class")?;
        let rows =
            statement.query_map(params![first, last, state.code()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (chain, class): (i64, i64) = row?;
            changes.moved(chain, class, *state, ChainState::Registered);
            n += 1;
        }
    }
    changes.write(tx)?;
    Ok(n)
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_run(&self, run: &NewRun) -> Result<RunId, StoreError> {
        self.with(|inner| {
            inner.connection.execute(
                "INSERT INTO run (name, source, fingerprint, definition, state, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![run.name, run.source, run.fingerprint, run.definition, RunState::Running.code(), run.created],
            )?;
            Ok(RunId(inner.connection.last_insert_rowid()))
        })
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, StoreError> {
        self.with(|inner| {
            inner.connection.query_row("SELECT * FROM run WHERE id = ?1", [id.0], read_run).optional()
        })
    }

    async fn runs(&self) -> Result<Vec<Run>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare("SELECT * FROM run ORDER BY id DESC")?;
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
            tx.commit()
        })
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, StoreError> {
        if batch.is_empty() {
            return Ok(Applied::default());
        }
        let (applied, due) = self.with(|inner| {
            let applied = inner.apply(batch)?;
            let due = inner.last_sync.elapsed() >= SYNC_INTERVAL;
            if due {
                inner.last_sync = Instant::now();
            }
            Ok((applied, due))
        })?;
        if due {
            self.sync_log()?;
        }
        Ok(applied)
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
        self.with(|inner| {
            let (_, last) = id_range(run);
            let sql = format!(
                "SELECT chain.*, class.key AS class_key, {} AS payload, {} AS outcome
                 FROM chain JOIN class ON class.id = chain.class {} {}
                 WHERE chain.id BETWEEN ?1 AND ?2 AND (?3 IS NULL OR chain.state = ?3) ORDER BY chain.id LIMIT ?4",
                if filter.payload { "payload.chain" } else { "NULL" },
                if filter.result { "result.result" } else { "NULL" },
                if filter.payload { "JOIN payload ON payload.id = chain.id" } else { "" },
                if filter.result { "LEFT JOIN result ON result.id = chain.id" } else { "" },
            );
            let mut statement = inner.connection.prepare_cached(&sql)?;
            let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
            let state = filter.state.map(ChainState::code);
            let rows = statement.query_map(params![id(run, filter.from), last, state, limit], read_chain)?;
            rows.collect()
        })
    }

    async fn chain(&self, key: ChainKey) -> Result<Option<ChainRecord>, StoreError> {
        self.with(|inner| {
            let mut statement = inner.connection.prepare_cached(
                "SELECT chain.*, class.key AS class_key, payload.chain AS payload, result.result AS outcome
                 FROM chain JOIN class ON class.id = chain.class JOIN payload ON payload.id = chain.id
                 LEFT JOIN result ON result.id = chain.id WHERE chain.id = ?1",
            )?;
            statement.query_row([id(key.run, key.seq)], read_chain).optional()
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
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let n = register_again(&tx, run, &[ChainState::Running, ChainState::Paused])?;
            tx.commit()?;
            Ok(n)
        })
    }

    async fn retry_failed(&self, run: RunId) -> Result<u64, StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let n = register_again(&tx, run, &[ChainState::Failed, ChainState::Cancelled])?;
            tx.commit()?;
            Ok(n)
        })
    }

    async fn repair_counts(&self, run: RunId) -> Result<u64, StoreError> {
        self.with(|inner| {
            let tx = inner.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (first, last) = id_range(run);
            let read = |sql: &str| -> rusqlite::Result<HashMap<(i64, i64), i64>> {
                let mut statement = tx.prepare(sql)?;
                let rows = statement.query_map(params![run.0, first, last], |r| Ok(((r.get(0)?, r.get(1)?), r.get(2)?)))?;
                rows.collect()
            };
            let truth = read("SELECT class, state, COUNT(*) FROM chain WHERE id BETWEEN ?2 AND ?3 AND ?1 = ?1 GROUP BY class, state")?;
            let kept = read("SELECT class, state, count FROM class_count WHERE run = ?1 AND count <> 0 AND ?2 < ?3")?;
            let wrong = truth.iter().filter(|(k, n)| kept.get(k) != Some(n)).count()
                + kept.keys().filter(|k| !truth.contains_key(k)).count();
            if wrong > 0 {
                tx.execute("DELETE FROM class_count WHERE run = ?1", [run.0])?;
                for ((class, state), n) in &truth {
                    tx.execute("INSERT INTO class_count VALUES (?1, ?2, ?3, ?4)", params![run.0, class, state, n])?;
                }
            }
            tx.commit()?;
            Ok(wrong as u64)
        })
    }

    async fn foreign_changes(&self) -> Result<u64, StoreError> {
        self.with(|inner| pragma(&inner.connection, "data_version").map(|v| v as u64))
    }

    async fn sync(&self) -> Result<(), StoreError> {
        self.sync_log()
    }
}
