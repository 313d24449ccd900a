//! Applies a batch within a transaction.

use super::{PostgresStore, end, give};
use crate::batch::{Applied, Batch, Feed, NewChains};
use crate::error::StoreError;
use crate::record::id;
use catena_model::Name;
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
                applied.finished = end::finish(&tx, &batch.finishes).await?;
            }
            if !batch.requeues.is_empty() {
                applied.requeued = end::requeue(&tx, &batch.requeues).await?;
            }
            for feeds in &batch.feeds {
                feed(&tx, feeds).await?;
            }
            for chains in &batch.chains {
                insert(&tx, chains, &classes).await?;
            }
            if !batch.starts.is_empty() {
                give::start(&tx, &batch.starts).await?;
            }
            if !batch.gifts.is_empty() {
                applied.given = give::gift(&tx, &batch.gifts).await?;
            }
            let instance = batch.instance.as_ref();
            for claim in &batch.claims {
                applied.claimed.push(give::claim(&tx, claim, classes[&claim.class], instance).await?);
            }
            for pick in &batch.picks {
                applied.picked.push(give::pick(&tx, pick, instance).await?);
            }
            for copy in &batch.copies {
                applied.copied.push(give::copy(&tx, copy, instance).await?);
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

pub(super) async fn rows(
    tx: &Transaction<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
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
