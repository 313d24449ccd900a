//! The store that instances share: a PostgreSQL database.
//!
//! Each part of a batch is one statement over arrays, so the cost of a batch grows slowly with its size.
//! Chains are claimed with `SKIP LOCKED`: schedulers never wait for one another. Counts are kept as changes
//! that are summed up, for the same reason.

mod apply;
mod catalogue;
mod chains;
mod compositions;
mod end;
mod give;
mod members;
mod tls;

use crate::batch::{Applied, Batch};
use crate::error::StoreError;
use crate::record::{
    ChainFilter, ChainRecord, ClassCount, Counts, FailedAttempt, FeedRecord, NewRun, RUN_COLUMNS, Run,
    RunChange, RunState, WaitingClass, id, id_range, key,
};
use crate::{Members, Store};
use async_trait::async_trait;
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, RunId};
use chains::{WAITING, state};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, Row};

/// Each entry brings a database from one format to the next.
const MIGRATIONS: [&str; 3] =
    [include_str!("format1.sql"), include_str!("format2.sql"), include_str!("format3.sql")];
/// Statements are short and follow an index, often one that has the order they ask for. As long as statistics lag
/// behind, which they do when chains come and go by the hundred thousand, the planner would rather collect and sort.
const PLANS: &str = "-c enable_bitmapscan=off -c jit=off";
/// How many connections an instance uses at most.
const CONNECTIONS: usize = 8;
/// How long to wait for a connection, and for an answer of the network below it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Counts are folded after this many batches.
const FOLD_AFTER: u64 = 256;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    pool: Pool,
    /// For people: where it is, without passwords.
    place: String,
    classes: Mutex<HashMap<Name, i32>>,
    batches: AtomicU64,
}

impl PostgresStore {
    /// Prepares to use the database at a URL such as `postgres://user:password@host/database`. Nothing is
    /// connected before [`PostgresStore::prepare`].
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| StoreError::Other {
            path: PathBuf::from("(address)"),
            detail: format!("this is no PostgreSQL address: {e}"),
        })?;
        let options = config.get_options().map(|o| format!("{o} ")).unwrap_or_default();
        config
            .options(format!("{options}-c search_path=catena -c statement_timeout=60000 {PLANS}"))
            .application_name("catena")
            .connect_timeout(PATIENCE)
            .keepalives_idle(PATIENCE)
            .tcp_user_timeout(PATIENCE);
        let hosts: Vec<String> = config.get_hosts().iter().map(show_host).collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
        let place = format!("{}/{database}", hosts.join(","));
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config, tls::connector(), manager_config);
        let timeouts = Timeouts { wait: Some(PATIENCE), create: Some(PATIENCE), recycle: Some(PATIENCE) };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .timeouts(timeouts)
            .build()
            .map_err(|e| StoreError::Other { path: PathBuf::from(&place), detail: e.to_string() })?;
        Ok(Self { pool, place, classes: Mutex::default(), batches: AtomicU64::new(0) })
    }

    /// Makes the tables, if they are not there yet.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let migrate = async {
            let tx = client.transaction().await?;
            // Instances often start together.
            tx.execute("SELECT pg_advisory_xact_lock(7161842)", &[]).await?;
            tx.batch_execute(
                "CREATE SCHEMA IF NOT EXISTS catena; CREATE TABLE IF NOT EXISTS catena.format (version integer NOT NULL);",
            )
            .await?;
            let found = tx.query_opt("SELECT version FROM catena.format", &[]).await?;
            let version: i32 = found.as_ref().map_or(0, |r| r.get(0));
            let known = MIGRATIONS.len() as i32;
            if version < known {
                for migration in &MIGRATIONS[version as usize..] {
                    tx.batch_execute(migration).await?;
                }
                tx.batch_execute("DELETE FROM catena.format").await?;
                tx.execute("INSERT INTO catena.format VALUES ($1)", &[&known]).await?;
            }
            tx.commit().await?;
            Ok::<_, tokio_postgres::Error>(version)
        };
        let (found, known) = (migrate.await.map_err(|e| self.error(&e))?, MIGRATIONS.len() as i64);
        if i64::from(found) > known {
            return Err(StoreError::Newer { path: PathBuf::from(&self.place), found: found.into(), known });
        }
        Ok(())
    }

    /// Where the database is, without passwords.
    pub fn place(&self) -> &str {
        &self.place
    }

    async fn client(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(|e| match e {
            deadpool_postgres::PoolError::Backend(e) => self.error(&e),
            e => self.unavailable(e.to_string()),
        })
    }

    fn unavailable(&self, detail: String) -> StoreError {
        StoreError::Unavailable { store: self.place.clone(), detail }
    }

    /// Sorts a database error into the kinds somebody can do something about.
    fn error(&self, e: &tokio_postgres::Error) -> StoreError {
        let cause = std::error::Error::source(e);
        let detail = match (e.as_db_error(), cause) {
            (Some(answer), _) => answer.to_string(),
            (None, Some(cause)) => format!("{e}: {cause}"),
            (None, None) => e.to_string(),
        };
        let other = |detail| StoreError::Other { path: PathBuf::from(&self.place), detail };
        match e.code() {
            // What is no word of the server is about the connection, or a mistake in a statement of ours.
            None if cause.is_none_or(<dyn std::error::Error + 'static>::is::<std::io::Error>) => {
                self.unavailable(detail)
            }
            Some(code) if is_transient(code) => self.unavailable(detail),
            Some(&SqlState::DISK_FULL) => StoreError::Full { path: PathBuf::from(&self.place) },
            None | Some(_) => other(detail),
        }
    }

    async fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let query = async { client.query(&client.prepare_cached(sql).await?, values).await };
        query.await.map_err(|e| self.error(&e))
    }

    async fn change(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        let client = self.client().await?;
        let change = async { client.execute(&client.prepare_cached(sql).await?, values).await };
        change.await.map_err(|e| self.error(&e))
    }

    fn known_class(&self, class: &Name) -> Option<i32> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(class).copied()
    }

    /// The number of a class, which is given to it if it is new.
    async fn class(&self, class: &Name) -> Result<i32, StoreError> {
        if let Some(id) = self.known_class(class) {
            return Ok(id);
        }
        self.change("INSERT INTO class (key) VALUES ($1) ON CONFLICT DO NOTHING", &[&class.as_str()]).await?;
        let rows = self.rows("SELECT id FROM class WHERE key = $1", &[&class.as_str()]).await?;
        let id =
            rows.first().map(|r| r.get(0)).ok_or_else(|| self.unavailable("a class is gone".to_owned()))?;
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).insert(class.clone(), id);
        Ok(id)
    }

    /// Sums up the changes of the counts of some runs, now and then.
    async fn fold_counts(&self, runs: Vec<i64>) -> Result<(), StoreError> {
        if runs.is_empty() || !self.batches.fetch_add(1, Ordering::Relaxed).is_multiple_of(FOLD_AFTER) {
            return Ok(());
        }
        let sql = "WITH gone AS (DELETE FROM class_count WHERE run = ANY($1) RETURNING *)
                   INSERT INTO class_count SELECT run, class, state, sum(count)::bigint FROM gone
                   GROUP BY run, class, state HAVING sum(count) <> 0";
        self.change(sql, &[&runs]).await.map(|_| ())
    }
}

fn show_host(host: &tokio_postgres::config::Host) -> String {
    match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    }
}

/// Whether an error will go away when a server is back or another transaction is over.
fn is_transient(code: &SqlState) -> bool {
    let class = &code.code()[..2];
    // Connection, operator intervention, rollback, insufficient resources other than disk.
    matches!(class, "08" | "57" | "40" | "55") || (class == "53" && *code != SqlState::DISK_FULL)
}

fn read_run(row: &Row) -> Run {
    Run {
        id: RunId(row.get("id")),
        name: row.get("name"),
        source: row.get("source"),
        fingerprint: row.get("fingerprint"),
        state: RunState::from_code(row.get("state")).unwrap_or(RunState::Failed),
        created: row.get("created"),
        started: row.get("started"),
        ended: row.get("ended"),
        error: row.get("error"),
        cancel_requested: row.get("cancel_requested"),
        results: row.get("results"),
        tasks: row.get("tasks"),
        skipped: row.get("skipped"),
        priority: row.get("priority"),
        held: row.get("held"),
        controller: row.get::<_, Option<String>>("controller").map(Into::into),
    }
}

/// Follows a common table expression `moved (id, class, old, new)` and keeps the counts true.
const COUNT: &str = "counted AS (
    INSERT INTO class_count
    SELECT id >> 32, class, old, -count(*) FROM moved GROUP BY 1, 2, 3
    UNION ALL SELECT id >> 32, class, new, count(*) FROM moved GROUP BY 1, 2, 3)";

#[async_trait]
impl Store for PostgresStore {
    async fn create_run(&self, run: &NewRun) -> Result<RunId, StoreError> {
        let sql = "INSERT INTO run (name, source, fingerprint, definition, state, created, priority)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id";
        let state = RunState::Running.code();
        let values: [&(dyn ToSql + Sync); 7] =
            [&run.name, &run.source, &run.fingerprint, &run.definition, &state, &run.created, &run.priority];
        let mut client = self.client().await?;
        let create = async {
            let tx = client.transaction().await?;
            let id = RunId(tx.query_one(&tx.prepare_cached(sql).await?, &values).await?.get(0));
            // Nobody may plan the run before its files are known.
            catalogue::put_with_run(&tx, id, &run.files).await?;
            tx.commit().await?;
            Ok(id)
        };
        create.await.map_err(|e| self.error(&e))
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>, StoreError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM run WHERE id = $1");
        Ok(self.rows(&sql, &[&id.0]).await?.first().map(read_run))
    }

    async fn definition(&self, id: RunId) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.rows("SELECT definition FROM run WHERE id = $1", &[&id.0]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    async fn runs(&self) -> Result<Vec<Run>, StoreError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM run ORDER BY id DESC");
        Ok(self.rows(&sql, &[]).await?.iter().map(read_run).collect())
    }

    async fn change_run(&self, id: RunId, c: &RunChange) -> Result<(), StoreError> {
        let sql = "UPDATE run SET state = coalesce($2, state), started = coalesce($3, started),
                   ended = CASE WHEN $4 THEN $5 ELSE ended END, error = CASE WHEN $6 THEN $7 ELSE error END,
                   cancel_requested = coalesce($8, cancel_requested), results = coalesce($9, results),
                   tasks = coalesce($10, tasks), skipped = coalesce($11, skipped), held = coalesce($12, held),
                   controller = CASE WHEN $13 THEN $14 ELSE controller END WHERE id = $1";
        let controller = c.controller.as_ref().and_then(|c| c.as_ref().map(ToString::to_string));
        self.change(
            sql,
            &[
                &id.0,
                &c.state.map(RunState::code),
                &c.started,
                &c.ended.is_some(),
                &c.ended.flatten(),
                &c.error.is_some(),
                &c.error.as_ref().and_then(Clone::clone),
                &c.cancel_requested,
                &c.results,
                &c.tasks,
                &c.skipped,
                &c.held,
                &c.controller.is_some(),
                &controller,
            ],
        )
        .await
        .map(|_| ())
    }

    async fn delete_run(&self, run: RunId) -> Result<(), StoreError> {
        let (first, last) = id_range(run);
        let sql = "WITH a AS (DELETE FROM chain WHERE id BETWEEN $2 AND $3),
                   b AS (DELETE FROM payload WHERE id BETWEEN $2 AND $3),
                   c AS (DELETE FROM result WHERE id BETWEEN $2 AND $3),
                   d AS (DELETE FROM failed_attempt WHERE id BETWEEN $2 AND $3),
                   e AS (DELETE FROM class_count WHERE run = $1),
                   f AS (DELETE FROM copy WHERE id BETWEEN $2 AND $3),
                   g AS (DELETE FROM file WHERE run = $1)
                   DELETE FROM run WHERE id = $1";
        self.change(sql, &[&run.0, &first, &last]).await.map(|_| ())
    }

    async fn adopt_runs(&self, controller: &Name, has: &[RunId], now: i64) -> Result<Vec<Run>, StoreError> {
        let sql = format!(
            "UPDATE run SET controller = $1 WHERE state = $3 AND id <> ALL($4) AND (controller IS NULL
             OR controller = $1 OR controller NOT IN (SELECT id FROM instance WHERE until > $2))
             RETURNING {RUN_COLUMNS}"
        );
        let running = RunState::Running.code();
        let has: Vec<i64> = has.iter().map(|r| r.0).collect();
        let rows = self.rows(&sql, &[&controller.as_str(), &now, &running, &has]).await?;
        Ok(rows.iter().map(read_run).collect())
    }

    async fn prioritise(&self, run: RunId, priority: i32, aging: Duration) -> Result<(), StoreError> {
        let (first, last) = id_range(run);
        let sql = "WITH a AS (UPDATE run SET priority = $2 WHERE id = $1)
                   UPDATE chain SET priority = $2, rank = rank + ($2 - priority)::bigint * $5
                   WHERE id BETWEEN $3 AND $4 AND state IN (0, 2)";
        let aging = aging.as_millis() as i64;
        self.change(sql, &[&run.0, &priority, &first, &last, &aging]).await.map(|_| ())
    }

    async fn apply(&self, batch: Batch) -> Result<Applied, StoreError> {
        if batch.is_empty() {
            return Ok(Applied::default());
        }
        let runs: Vec<i64> = batch.runs().map(|r| r.0).collect();
        let applied = self.apply_batch(batch).await?;
        self.fold_counts(runs).await?;
        Ok(applied)
    }

    async fn counts(&self, run: RunId) -> Result<Counts, StoreError> {
        let sql = "SELECT state, sum(count)::bigint FROM class_count WHERE run = $1 GROUP BY state";
        let mut counts = Counts::default();
        for row in self.rows(sql, &[&run.0]).await? {
            *counts.of(state(row.get(0))) = row.get::<_, i64>(1).max(0) as u64;
        }
        Ok(counts)
    }

    async fn class_counts(&self, run: RunId) -> Result<Vec<ClassCount>, StoreError> {
        let sql =
            "SELECT class.key, state, sum(count)::bigint FROM class_count JOIN class ON class.id = class
                   WHERE run = $1 GROUP BY class.key, state HAVING sum(count) > 0 ORDER BY class.key, state";
        let read = |row: &Row| ClassCount {
            class: row.get::<_, String>(0).into(),
            state: state(row.get(1)),
            count: row.get::<_, i64>(2) as u64,
        };
        Ok(self.rows(sql, &[&run.0]).await?.iter().map(read).collect())
    }

    async fn waiting(&self, now: i64) -> Result<Vec<WaitingClass>, StoreError> {
        let due = "SELECT 1 FROM chain WHERE state = 2 AND not_before <= $1
                   AND id >> 32 NOT IN (SELECT id FROM run WHERE held) LIMIT 1";
        if !self.rows(due, &[&now]).await?.is_empty() {
            let wake = format!(
                "WITH due AS (SELECT id FROM chain WHERE state = 2 AND not_before <= $1
                     AND id >> 32 NOT IN (SELECT id FROM run WHERE held) FOR UPDATE SKIP LOCKED),
                 moved AS (UPDATE chain c SET state = 0 FROM due WHERE c.id = due.id
                     RETURNING c.id, c.class, 2::smallint AS old, 0::smallint AS new),
                 {COUNT} SELECT 1"
            );
            self.rows(&wake, &[&now]).await?;
        }
        let sql = format!(
            "WITH RECURSIVE {WAITING},
             counts AS (SELECT class, sum(count)::bigint AS n FROM class_count WHERE state = 0 GROUP BY class)
             SELECT class.key, greatest(counts.n, 1),
                 (SELECT rank FROM chain WHERE state = 0 AND chain.class = class.id ORDER BY rank DESC, id LIMIT 1)
             FROM waiting JOIN class ON class.id = waiting.class LEFT JOIN counts ON counts.class = class.id"
        );
        let read = |row: &Row| WaitingClass {
            class: row.get::<_, String>(0).into(),
            count: row.get::<_, Option<i64>>(1).unwrap_or(1) as u64,
            rank: row.get::<_, Option<i64>>(2).unwrap_or(0),
        };
        Ok(self.rows(&sql, &[]).await?.iter().map(read).collect())
    }

    async fn chains(&self, run: RunId, filter: &ChainFilter) -> Result<Vec<ChainRecord>, StoreError> {
        chains::chains(self, run, filter).await
    }

    async fn chain(&self, key: ChainKey) -> Result<Option<ChainRecord>, StoreError> {
        chains::chain(self, key).await
    }

    async fn registered(&self, limit: usize) -> Result<Vec<ChainRecord>, StoreError> {
        chains::registered(self, limit).await
    }

    async fn payloads(&self, chains: &[ChainKey]) -> Result<Vec<(ChainKey, Vec<u8>)>, StoreError> {
        let ids: Vec<i64> = chains.iter().map(|key| id(key.run, key.seq)).collect();
        let rows = self.rows("SELECT id, chain FROM payload WHERE id = ANY($1)", &[&ids]).await?;
        Ok(rows.iter().map(|r| (key(r.get(0)), r.get(1))).collect())
    }

    async fn chains_of(&self, agents: &[Name]) -> Result<Vec<ChainRecord>, StoreError> {
        chains::chains_of(self, agents).await
    }

    async fn feeds(&self, run: RunId) -> Result<Vec<FeedRecord>, StoreError> {
        let (first, last) = id_range(run);
        let sql = "SELECT id, after_chains FROM result
                   WHERE id BETWEEN $1 AND $2 AND number IS NOT NULL ORDER BY number";
        let read =
            |row: &Row| FeedRecord { chain: key(row.get(0)).seq, after_chains: row.get::<_, i64>(1) as u64 };
        Ok(self.rows(sql, &[&first, &last]).await?.iter().map(read).collect())
    }

    async fn unused_results(&self, run: RunId, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let (first, last) = id_range(run);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT id, result FROM result
                   WHERE id BETWEEN $1 AND $2 AND number IS NULL ORDER BY id LIMIT $3";
        let rows = self.rows(sql, &[&first, &last, &limit]).await?;
        Ok(rows.iter().map(|r| (key(r.get(0)).seq, r.get(1))).collect())
    }

    async fn results(&self, run: RunId, chains: &[u64]) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let ids: Vec<i64> = chains.iter().map(|seq| id(run, *seq)).collect();
        let rows = self.rows("SELECT id, result FROM result WHERE id = ANY($1)", &[&ids]).await?;
        Ok(rows.iter().map(|r| (key(r.get(0)).seq, r.get(1))).collect())
    }

    async fn failed_attempts(&self, run: RunId) -> Result<Vec<FailedAttempt>, StoreError> {
        let (first, last) = id_range(run);
        let sql = "SELECT * FROM failed_attempt WHERE id BETWEEN $1 AND $2 ORDER BY ended, id, attempt";
        let read = |row: &Row| FailedAttempt {
            key: key(row.get("id")),
            attempt: row.get::<_, i32>("attempt") as u32,
            agent: row.get::<_, Option<String>>("agent").map(Into::into),
            started: row.get("started"),
            ended: row.get("ended"),
            error: row.get("error"),
        };
        Ok(self.rows(sql, &[&first, &last]).await?.iter().map(read).collect())
    }

    async fn release_running(&self, run: RunId) -> Result<u64, StoreError> {
        let running = self.move_chains(run, ChainState::Running, ChainState::Registered).await?;
        Ok(running + self.move_chains(run, ChainState::Paused, ChainState::Registered).await?)
    }

    async fn release_agent(
        &self,
        agent: &Name,
        limit: u32,
        error: &str,
        now: i64,
    ) -> Result<Vec<ChainRecord>, StoreError> {
        let attempts = self.chains_of(std::slice::from_ref(agent)).await?;
        self.release(agent, attempts, limit, error, now).await
    }

    async fn retry_failed(&self, run: RunId) -> Result<u64, StoreError> {
        let failed = self.move_chains(run, ChainState::Failed, ChainState::Registered).await?;
        Ok(failed + self.move_chains(run, ChainState::Cancelled, ChainState::Registered).await?)
    }

    async fn move_chains(&self, run: RunId, from: ChainState, to: ChainState) -> Result<u64, StoreError> {
        chains::move_all(self, run, from, to).await
    }

    async fn repair_counts(&self, run: RunId) -> Result<u64, StoreError> {
        let (first, last) = id_range(run);
        let sql = "WITH truth AS (SELECT class, state, count(*) AS n FROM chain
                       WHERE id BETWEEN $2 AND $3 GROUP BY class, state),
                   kept AS (SELECT class, state, sum(count)::bigint AS n FROM class_count
                       WHERE run = $1 GROUP BY class, state),
                   wrong AS (SELECT class, state, coalesce(truth.n, 0) - coalesce(kept.n, 0) AS n
                       FROM truth FULL JOIN kept USING (class, state)
                       WHERE coalesce(truth.n, 0) <> coalesce(kept.n, 0))
                   INSERT INTO class_count SELECT $1, class, state, n FROM wrong";
        self.change(sql, &[&run.0, &first, &last]).await
    }

    async fn foreign_changes(&self) -> Result<u64, StoreError> {
        // Others change it all the time.
        self.now().await.map(|n| n as u64)
    }

    async fn sync(&self) -> Result<(), StoreError> {
        // Every commit has done so.
        Ok(())
    }
}
