//! Applies a batch within a transaction.

use super::{COUNT, PostgresStore, code};
use crate::batch::{Applied, Batch, Claim, Claimed, Feed, Finish, NewChains, Requeue, Start};
use crate::error::StoreError;
use crate::record::{id, key};
use catena_model::Name;
use catena_model::chain::Attempt;
use deadpool_postgres::Transaction;
use std::collections::{HashMap, HashSet};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

impl PostgresStore {
    pub(super) async fn apply_batch(&self, batch: Batch) -> Result<Applied, StoreError> {
        // Before the transaction: a class that is new to everybody must not wait for this one to end.
        let mut classes = HashMap::new();
        for class in classes_of(&batch) {
            let number = self.class(&class).await?;
            classes.insert(class, number);
        }
        let mut client = self.client().await?;
        let apply = async {
            let tx = client.transaction().await?;
            if let Some(instance) = &batch.instance
                && !controls_runs(&tx, &batch, instance).await?
            {
                return Ok(None);
            }
            let mut applied = Applied::default();
            if !batch.finishes.is_empty() {
                applied.finished = finish(&tx, &batch.finishes).await?;
            }
            if !batch.requeues.is_empty() {
                applied.requeued = requeue(&tx, &batch.requeues).await?;
            }
            for feeds in &batch.feeds {
                feed(&tx, feeds).await?;
            }
            for chains in &batch.chains {
                insert(&tx, chains, &classes).await?;
            }
            if !batch.starts.is_empty() {
                start(&tx, &batch.starts).await?;
            }
            for one in &batch.claims {
                applied.claimed.push(claim(&tx, one, classes[&one.class], batch.instance.as_ref()).await?);
            }
            tx.commit().await?;
            Ok(Some(applied))
        };
        let applied = apply.await.map_err(|e| self.error(&e))?;
        applied.ok_or_else(|| StoreError::TakenOver { what: "a run".to_owned() })
    }
}

/// The classes that a batch names.
fn classes_of(batch: &Batch) -> HashSet<Name> {
    let new = batch.chains.iter().flat_map(|c| &c.chains).map(|c| &c.class);
    new.chain(batch.claims.iter().map(|c| &c.class)).cloned().collect()
}

async fn rows(tx: &Transaction<'_>, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
    tx.query(&tx.prepare_cached(sql).await?, values).await
}

/// Whether the instance that asks controls all runs that it plans. Nobody can take them over before the
/// transaction ends.
async fn controls_runs(tx: &Transaction<'_>, batch: &Batch, instance: &Name) -> Result<bool, Error> {
    let mut runs: Vec<i64> = batch.runs().map(|r| r.0).collect();
    runs.sort_unstable();
    runs.dedup();
    if runs.is_empty() {
        return Ok(true);
    }
    let sql = "SELECT 1 FROM run WHERE id = ANY($1) AND controller = $2 FOR SHARE";
    Ok(rows(tx, sql, &[&runs, &instance.as_str()]).await?.len() == runs.len())
}

fn ids<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> (Vec<i64>, Vec<i32>) {
    attempts.map(|a| (id(a.chain.run, a.chain.seq), a.number as i32)).unzip()
}

/// For each attempt whether it is among the rows.
fn found(ids: &[i64], rows: &[Row]) -> Vec<bool> {
    let mut left: HashMap<i64, usize> = HashMap::new();
    for row in rows {
        *left.entry(row.get(0)).or_insert(0) += 1;
    }
    let mut take = |id: &i64| left.get_mut(id).filter(|n| **n > 0).map(|n| *n -= 1).is_some();
    ids.iter().map(&mut take).collect()
}

async fn finish(tx: &Transaction<'_>, finishes: &[Finish]) -> Result<Vec<bool>, Error> {
    let (ids, numbers) = ids(finishes.iter().map(|f| &f.attempt));
    let states: Vec<i16> = finishes.iter().map(|f| code(f.state)).collect();
    let started: Vec<i64> = finishes.iter().map(|f| f.started).collect();
    let ended: Vec<i64> = finishes.iter().map(|f| f.ended).collect();
    let results: Vec<&[u8]> = finishes.iter().map(|f| f.result.as_slice()).collect();
    let errors: Vec<Option<&str>> = finishes.iter().map(|f| f.error.as_deref()).collect();
    let sql = format!(
        "WITH ended AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::smallint[], $4::bigint[],
                 $5::bigint[], $6::bytea[], $7::text[]) AS e (id, attempt, new, started, ended, result, error)),
         moved AS (UPDATE chain c SET state = e.new, started = e.started, ended = e.ended FROM ended e
             WHERE c.id = e.id AND c.attempt = e.attempt AND c.state = 1
             RETURNING c.id, c.class, 1::smallint AS old, e.new, c.attempt, c.agent, e.started, e.ended,
                 e.result, e.error),
         kept AS (INSERT INTO result (id, result) SELECT id, result FROM moved WHERE length(result) > 0
             ON CONFLICT (id) DO UPDATE SET result = excluded.result, number = NULL, after_chains = NULL),
         failed AS (INSERT INTO failed_attempt (id, attempt, agent, started, ended, error)
             SELECT id, attempt, agent, started, ended, error FROM moved WHERE error IS NOT NULL
             ON CONFLICT DO NOTHING),
         {COUNT} SELECT id FROM moved"
    );
    let moved = rows(tx, &sql, &[&ids, &numbers, &states, &started, &ended, &results, &errors]).await?;
    Ok(found(&ids, &moved))
}

async fn requeue(tx: &Transaction<'_>, requeues: &[Requeue]) -> Result<Vec<bool>, Error> {
    let (ids, numbers) = ids(requeues.iter().map(|r| &r.attempt));
    let pauses: Vec<i64> = requeues.iter().map(|r| r.not_before).collect();
    let failure = |r: &Requeue| r.failure.clone().unwrap_or_default();
    let started: Vec<i64> = requeues.iter().map(|r| failure(r).0).collect();
    let ended: Vec<i64> = requeues.iter().map(|r| failure(r).1).collect();
    let errors: Vec<Option<String>> =
        requeues.iter().map(|r| r.failure.as_ref().map(|f| f.2.clone())).collect();
    let sql = format!(
        "WITH back AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[],
                 $5::bigint[], $6::text[]) AS b (id, attempt, pause, started, ended, error)),
         moved AS (UPDATE chain c SET state = CASE WHEN b.error IS NULL THEN 0 ELSE 2 END, not_before = b.pause,
                 failures = failures + CASE WHEN b.error IS NULL THEN 0 ELSE 1 END
             FROM back b WHERE c.id = b.id AND c.attempt = b.attempt AND c.state = 1
             RETURNING c.id, c.class, 1::smallint AS old, c.state AS new, c.attempt, c.agent, b.started,
                 b.ended, b.error),
         failed AS (INSERT INTO failed_attempt (id, attempt, agent, started, ended, error)
             SELECT id, attempt, agent, started, ended, error FROM moved WHERE error IS NOT NULL
             ON CONFLICT DO NOTHING),
         {COUNT} SELECT id FROM moved"
    );
    let moved = rows(tx, &sql, &[&ids, &numbers, &pauses, &started, &ended, &errors]).await?;
    Ok(found(&ids, &moved))
}

async fn feed(tx: &Transaction<'_>, feed: &Feed) -> Result<(), Error> {
    let ids: Vec<i64> = feed.chains.iter().map(|seq| id(feed.run, *seq)).collect();
    let sql = "UPDATE result r SET number = $2 + f.place - 1, after_chains = $3
               FROM unnest($1::bigint[]) WITH ORDINALITY AS f (id, place) WHERE r.id = f.id";
    let (first, after) = (feed.first as i64, feed.after_chains as i64);
    rows(tx, sql, &[&ids, &first, &after]).await.map(|_| ())
}

async fn insert(tx: &Transaction<'_>, new: &NewChains, classes: &HashMap<Name, i32>) -> Result<(), Error> {
    let first = id(new.run, new.first);
    let class: Vec<i32> = new.chains.iter().map(|c| classes[&c.class]).collect();
    let priorities: Vec<i32> = new.chains.iter().map(|c| c.priority).collect();
    let ranks: Vec<i64> = new.chains.iter().map(|c| c.rank).collect();
    let payloads: Vec<&[u8]> = new.chains.iter().map(|c| c.payload.as_slice()).collect();
    let sql = "WITH new AS (SELECT $1 + place - 1 AS id, class, priority, rank, payload
                   FROM unnest($3::integer[], $4::integer[], $5::bigint[], $6::bytea[])
                   WITH ORDINALITY AS n (class, priority, rank, payload, place)),
               chains AS (INSERT INTO chain (id, class, state, priority, rank)
                   SELECT id, class, 0, priority, rank FROM new),
               payloads AS (INSERT INTO payload (id, chain) SELECT id, payload FROM new)
               INSERT INTO class_count SELECT $2, class, 0, count(*) FROM new GROUP BY class";
    rows(tx, sql, &[&first, &new.run.0, &class, &priorities, &ranks, &payloads]).await.map(|_| ())
}

async fn start(tx: &Transaction<'_>, starts: &[Start]) -> Result<(), Error> {
    let (ids, numbers) = ids(starts.iter().map(|s| &s.attempt));
    let agents: Vec<&str> = starts.iter().map(|s| s.agent.as_str()).collect();
    let times: Vec<i64> = starts.iter().map(|s| s.now).collect();
    let sql = format!(
        "WITH given AS (SELECT g.*, c.state AS old FROM unnest($1::bigint[], $2::integer[],
                 $3::text[], $4::bigint[]) AS g (id, attempt, agent, now)
             JOIN chain c ON c.id = g.id AND c.state IN (0, 2) AND c.attempt < g.attempt FOR UPDATE OF c),
         moved AS (UPDATE chain c SET state = 1, attempt = g.attempt, agent = g.agent, started = g.now, ended = NULL
             FROM given g WHERE c.id = g.id RETURNING c.id, c.class, g.old, 1::smallint AS new),
         {COUNT} SELECT id FROM moved"
    );
    rows(tx, &sql, &[&ids, &numbers, &agents, &times]).await.map(|_| ())
}

async fn claim(
    tx: &Transaction<'_>,
    claim: &Claim,
    class: i32,
    instance: Option<&Name>,
) -> Result<Vec<Claimed>, Error> {
    // While the agent's row is shared, nobody can take the agent over.
    let sql = format!(
        "WITH mine AS (SELECT 1 FROM agent WHERE id = $3 AND scheduler = $5 FOR SHARE),
         picked AS (SELECT id FROM chain WHERE state = 0 AND class = $1
                 AND ($5::text IS NULL OR EXISTS (SELECT 1 FROM mine))
                 AND id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)
             ORDER BY rank DESC, id LIMIT $2 FOR UPDATE SKIP LOCKED),
         moved AS (UPDATE chain c SET state = 1, attempt = attempt + 1, agent = $3, started = $4, ended = NULL
             FROM picked WHERE c.id = picked.id
             RETURNING c.id, c.class, 0::smallint AS old, 1::smallint AS new, c.attempt, c.rank, c.failures),
         {COUNT}
         SELECT m.id, m.attempt, m.rank, p.chain, m.failures FROM moved m JOIN payload p ON p.id = m.id
         ORDER BY m.rank DESC, m.id"
    );
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let instance = instance.map(Name::as_str);
    let rows = rows(tx, &sql, &[&class, &limit, &claim.agent.as_str(), &claim.now, &instance]).await?;
    let read = |row: &Row| {
        let attempt = Attempt { chain: key(row.get(0)), number: row.get::<_, i32>(1) as u32 };
        Claimed { attempt, rank: row.get(2), failures: row.get::<_, i32>(4) as u32, payload: row.get(3) }
    };
    Ok(rows.iter().map(read).collect())
}
