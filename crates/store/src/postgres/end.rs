//! How attempts end.
//!
//! The newest attempt at a chain is in the row of the chain, older ones that go on beside it are in the table `copy`.
//! Almost no chain has any of these, and the ends of all others are one statement. Only for what it does not find
//! chains are locked and looked at again: elders come and go under the lock of their chain, so a statement after the
//! lock sees them as they are. The first statement needs no lock, because an attempt becomes an elder only when the
//! chain gets a new number, and that it notices.

use super::apply::rows;
use super::chains::{code, state};
use super::{COUNT, PostgresStore, catalogue};
use crate::batch::{Finish, Requeue};
use crate::error::StoreError;
use crate::record::{ChainRecord, history_text, id};
use catena_model::Name;
use catena_model::chain::Attempt;
use deadpool_postgres::Transaction;
use std::collections::{HashMap, HashSet};
use tokio_postgres::{Error, Row};

/// Finds the live attempts among `e (id, attempt)`: `c` is the chain, and `k` the elder if it is one.
const LIVE: &str = "JOIN chain c ON c.id = e.id AND c.state = 1
    LEFT JOIN copy k ON k.id = e.id AND k.attempt = e.attempt
    WHERE (k.id IS NOT NULL OR c.attempt = e.attempt AND c.agent IS NOT NULL)";

/// Whether others go on with the chain when the live attempt `e` ends.
const OTHERS: &str = "(k.id IS NOT NULL AND c.agent IS NOT NULL
    OR EXISTS (SELECT 1 FROM copy o WHERE o.id = e.id AND o.attempt <> e.attempt))";

/// Who is noted with a chain `c` when an attempt `e` at it has ended: nobody has its newest attempt any more, or
/// nobody has it at all and this agent had it last.
const AGENT: &str = "CASE WHEN NOT e.others THEN e.agent WHEN e.elder THEN c.agent END";

/// Attempts of a batch, by their places in it.
struct Attempts {
    ids: Vec<i64>,
    numbers: Vec<i32>,
}

impl Attempts {
    fn new<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Self {
        let (ids, numbers) = attempts.map(|a| (id(a.chain.run, a.chain.seq), a.number as i32)).unzip();
        Self { ids, numbers }
    }

    /// The ids and numbers of those in some places.
    fn at(&self, places: &[usize]) -> (Vec<i64>, Vec<i32>) {
        places.iter().map(|p| (self.ids[*p], self.numbers[*p])).unzip()
    }

    /// Those in some places that are found in rows (id, attempt, …).
    fn found<'r>(&self, places: &[usize], rows: &'r [Row]) -> Vec<(usize, &'r Row)> {
        let rows: HashMap<(i64, i32), &Row> = rows.iter().map(|r| ((r.get(0), r.get(1)), r)).collect();
        let find = |p: &usize| Some((*p, *rows.get(&(self.ids[*p], self.numbers[*p]))?));
        places.iter().filter_map(find).collect()
    }

    /// The first about each chain, and all others.
    fn first(&self) -> (Vec<usize>, Vec<usize>) {
        let mut seen = HashSet::new();
        (0..self.ids.len()).partition(|p| seen.insert(self.ids[*p]))
    }

    /// Locks the chains of some attempts and says which have to be looked at in which turns.
    async fn lock(&self, tx: &Transaction<'_>, mut places: Vec<usize>) -> Result<Vec<Vec<usize>>, Error> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let running = lock(tx, &self.at(&places).0).await?;
        places.retain(|p| running.contains(&self.ids[*p]));
        places.sort_unstable();
        Ok(turns(&self.ids, &places))
    }
}

/// Locks those of some chains that are running.
pub(super) async fn lock(tx: &Transaction<'_>, ids: &[i64]) -> Result<HashSet<i64>, Error> {
    let sql = "SELECT id FROM chain WHERE id = ANY($1) AND state = 1 ORDER BY id FOR UPDATE";
    Ok(rows(tx, sql, &[&ids]).await?.iter().map(|r| r.get(0)).collect())
}

/// Splits places so that each part has a chain at most once. What is said first counts first, and a statement does
/// not see its own changes.
pub(super) fn turns(ids: &[i64], places: &[usize]) -> Vec<Vec<usize>> {
    let mut said: HashMap<i64, usize> = HashMap::new();
    let mut turns: Vec<Vec<usize>> = Vec::new();
    for place in places {
        let turn = said.entry(ids[*place]).or_insert(0);
        if *turn == turns.len() {
            turns.push(Vec::new());
        }
        turns[*turn].push(*place);
        *turn += 1;
    }
    turns
}

pub(super) async fn finish(tx: &Transaction<'_>, finishes: &[Finish]) -> Result<Vec<bool>, Error> {
    let attempts = Attempts::new(finishes.iter().map(|f| &f.attempt));
    let mut agents: Vec<Option<String>> = vec![None; finishes.len()];
    let (first, mut rest) = attempts.first();
    finish_at(tx, finishes, &attempts, &first, FINISH_ALONE, &mut agents).await?;
    rest.extend(first.into_iter().filter(|p| agents[*p].is_none()));
    for turn in attempts.lock(tx, rest).await? {
        finish_at(tx, finishes, &attempts, &turn, &finish_among(), &mut agents).await?;
    }
    catalogue::note_finished(tx, finishes.iter().zip(&agents)).await?;
    Ok(agents.iter().map(Option::is_some).collect())
}

/// Ends the only attempts at their chains.
const FINISH_ALONE: &str = "moved AS (UPDATE chain c
        SET state = e.new, started = e.started, ended = e.ended, history = e.history
    FROM ended e WHERE c.id = e.id AND c.attempt = e.attempt AND c.state = 1 AND c.agent IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM copy k WHERE k.id = c.id)
    RETURNING c.id, e.attempt, c.agent, c.class, 1::smallint AS old, e.new, e.started, e.ended, e.result, e.error)";

/// Ends some of several attempts. The others are over too, even if one has failed: that a task fails is a failure of
/// its chain, whoever else executes it. Whether it is tried again is for its retry policy, not for chance.
fn finish_among() -> String {
    format!(
        "live AS (SELECT e.*, coalesce(k.agent, c.agent) AS agent FROM ended e {LIVE}),
         over AS (DELETE FROM copy k USING live e WHERE k.id = e.id),
         moved AS (UPDATE chain c
                 SET state = e.new, started = e.started, ended = e.ended, history = e.history, agent = e.agent
             FROM live e WHERE c.id = e.id
             RETURNING c.id, e.attempt, e.agent, c.class, 1::smallint AS old, e.new, e.started, e.ended, e.result,
                 e.error)"
    )
}

/// Writes the ends in some places, and notes whose attempts they were if they counted.
async fn finish_at(
    tx: &Transaction<'_>,
    finishes: &[Finish],
    attempts: &Attempts,
    places: &[usize],
    moved: &str,
    agents: &mut [Option<String>],
) -> Result<(), Error> {
    let (ids, numbers) = attempts.at(places);
    let here = || places.iter().map(|p| &finishes[*p]);
    let states: Vec<i16> = here().map(|f| code(f.state)).collect();
    let started: Vec<i64> = here().map(|f| f.started).collect();
    let ended: Vec<i64> = here().map(|f| f.ended).collect();
    let results: Vec<&[u8]> = here().map(|f| f.result.as_slice()).collect();
    let errors: Vec<Option<&str>> = here().map(|f| f.error.as_deref()).collect();
    let histories: Vec<Option<String>> = here().map(|f| history_text(&f.history)).collect();
    // There is a result already if the chain has succeeded before, and it may have been used.
    let sql = format!(
        "WITH ended AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::bigint[],
                 $5::bigint[], $6::bytea[], $7::text[], $8::text[])
             AS e (id, attempt, new, started, ended, result, error, history)),
         {moved},
         kept AS (INSERT INTO result (id, result, failed) SELECT id, result, new <> 3 FROM moved
             WHERE length(result) > 0 ON CONFLICT DO NOTHING),
         failed AS (INSERT INTO failed_attempt (id, attempt, agent, started, ended, error)
             SELECT id, attempt, agent, started, ended, error FROM moved WHERE error IS NOT NULL
             ON CONFLICT DO NOTHING),
         {COUNT} SELECT id, attempt, agent FROM moved"
    );
    let moved =
        rows(tx, &sql, &[&ids, &numbers, &states, &started, &ended, &results, &errors, &histories]).await?;
    for (place, row) in attempts.found(places, &moved) {
        agents[place] = row.get(2);
    }
    Ok(())
}

pub(super) async fn requeue(tx: &Transaction<'_>, requeues: &[Requeue]) -> Result<Vec<bool>, Error> {
    let attempts = Attempts::new(requeues.iter().map(|r| &r.attempt));
    let mut counted = vec![false; requeues.len()];
    let (first, mut rest) = attempts.first();
    requeue_at(tx, requeues, &attempts, &first, REQUEUE_ALONE, &mut counted).await?;
    rest.extend(first.into_iter().filter(|p| !counted[*p]));
    for turn in attempts.lock(tx, rest).await? {
        requeue_at(tx, requeues, &attempts, &turn, &requeue_among(), &mut counted).await?;
    }
    Ok(counted)
}

/// The only attempts at their chains end.
const REQUEUE_ALONE: &str = "parted AS (UPDATE chain c
        SET state = e.new, not_before = e.pause, failures = failures + CASE WHEN e.error IS NULL THEN 0 ELSE 1 END
    FROM ended e WHERE c.id = e.id AND c.attempt = e.attempt AND c.state = 1 AND c.agent IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM copy k WHERE k.id = c.id)
    RETURNING c.id, e.attempt, c.agent, c.class, c.state AS new, e.started, e.ended, e.error)";

/// Some of several attempts end.
fn requeue_among() -> String {
    format!(
        "live AS (SELECT e.*, coalesce(k.agent, c.agent) AS agent, k.id IS NOT NULL AS elder, {OTHERS} AS others
             FROM ended e {LIVE}),
         over AS (DELETE FROM copy k USING live e WHERE k.id = e.id AND k.attempt = e.attempt),
         parted AS (UPDATE chain c
                 SET state = CASE WHEN e.others THEN 1 ELSE e.new END, agent = {AGENT},
                     not_before = CASE WHEN e.others THEN not_before ELSE e.pause END,
                     failures = failures + CASE WHEN e.error IS NULL THEN 0 ELSE 1 END
             FROM live e WHERE c.id = e.id
             RETURNING c.id, e.attempt, e.agent, c.class, c.state AS new, e.started, e.ended, e.error)"
    )
}

/// Writes the ends in some places, and notes which of them counted.
async fn requeue_at(
    tx: &Transaction<'_>,
    requeues: &[Requeue],
    attempts: &Attempts,
    places: &[usize],
    parted: &str,
    counted: &mut [bool],
) -> Result<(), Error> {
    let (ids, numbers) = attempts.at(places);
    let here = || places.iter().map(|p| &requeues[*p]);
    let pauses: Vec<i64> = here().map(|r| r.not_before).collect();
    let started: Vec<i64> = here().map(|r| r.failure.as_ref().map_or(0, |f| f.0)).collect();
    let ended: Vec<i64> = here().map(|r| r.failure.as_ref().map_or(0, |f| f.1)).collect();
    let errors: Vec<Option<&str>> = here().map(|r| r.failure.as_ref().map(|f| f.2.as_str())).collect();
    let sql = format!(
        "WITH ended AS (SELECT *, CASE WHEN error IS NULL AND pause <= 0 THEN 0 ELSE 2 END::smallint AS new
             FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[])
             AS e (id, attempt, pause, started, ended, error)),
         {parted},
         moved AS (SELECT id, class, 1::smallint AS old, new FROM parted WHERE new <> 1),
         failed AS (INSERT INTO failed_attempt (id, attempt, agent, started, ended, error)
             SELECT id, attempt, agent, started, ended, error FROM parted WHERE error IS NOT NULL
             ON CONFLICT DO NOTHING),
         {COUNT} SELECT id, attempt FROM parted"
    );
    let parted = rows(tx, &sql, &[&ids, &numbers, &pauses, &started, &ended, &errors]).await?;
    for (place, _) in attempts.found(places, &parted) {
        counted[place] = true;
    }
    Ok(())
}

impl PostgresStore {
    /// Ends attempts of a lost agent. Chains that nobody else executes are available again, or given up if that has
    /// happened too often; these are returned.
    pub(super) async fn release(
        &self,
        agent: &Name,
        mut attempts: Vec<ChainRecord>,
        limit: u32,
        error: &str,
        now: i64,
    ) -> Result<Vec<ChainRecord>, StoreError> {
        let ids: Vec<i64> = attempts.iter().map(|c| id(c.key.run, c.key.seq)).collect();
        let numbers: Vec<i32> = attempts.iter().map(|c| c.attempt as i32).collect();
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let sql = format!(
            "WITH live AS (SELECT e.*, $1::text AS agent, k.id IS NOT NULL AS elder, {OTHERS} AS others,
                     coalesce(k.started, c.started, $6) AS started
                 FROM unnest($2::bigint[], $3::integer[]) AS e (id, attempt) {LIVE}
                     AND coalesce(k.agent, c.agent) = $1),
             over AS (DELETE FROM copy k USING live e WHERE k.id = e.id AND k.attempt = e.attempt),
             parted AS (UPDATE chain c
                     SET state = CASE WHEN e.others THEN 1 WHEN losses + 1 >= $4 THEN 4 ELSE 0 END, agent = {AGENT},
                         losses = losses + CASE WHEN e.others THEN 0 ELSE 1 END,
                         ended = CASE WHEN e.others THEN ended ELSE $6::bigint END
                 FROM live e WHERE c.id = e.id
                 RETURNING c.id, c.class, c.state AS new, e.attempt, e.started),
             moved AS (SELECT *, 1::smallint AS old FROM parted WHERE new <> 1),
             failed AS (INSERT INTO failed_attempt (id, attempt, agent, started, ended, error)
                 SELECT id, attempt, $1, started, $6, CASE WHEN new = 4 THEN $5 ELSE '' END FROM parted
                 ON CONFLICT DO NOTHING),
             {COUNT} SELECT id, new FROM moved"
        );
        let mut client = self.client().await?;
        let release = async {
            let tx = client.transaction().await?;
            lock(&tx, &ids).await?;
            let moved = rows(&tx, &sql, &[&agent.as_str(), &ids, &numbers, &limit, &error, &now]).await?;
            tx.commit().await?;
            Ok(moved)
        };
        let moved = release.await.map_err(|e| self.error(&e))?;
        let moved: HashMap<i64, i16> = moved.iter().map(|r| (r.get(0), r.get(1))).collect();
        attempts.retain_mut(|c| {
            let new = moved.get(&id(c.key.run, c.key.seq)).copied();
            c.losses += 1;
            c.state = state(new.unwrap_or_default());
            new.is_some()
        });
        Ok(attempts)
    }
}
