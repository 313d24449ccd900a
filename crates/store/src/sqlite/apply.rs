//! Applies a batch within a transaction.

use super::counts::CountChanges;
use super::{Inner, end, give};
use crate::batch::{Applied, Batch, Feed, NewChains};
use crate::record::id;
use catena_model::Name;
use catena_model::chain::ChainState;
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::HashMap;

impl Inner {
    /// Applies a batch. `None` if the instance that asks does not control a run it plans any more.
    pub(super) fn apply(&mut self, batch: Batch) -> rusqlite::Result<Option<Applied>> {
        let Self { connection, classes, .. } = self;
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if !controls_runs(&tx, &batch)? {
            return Ok(None);
        }
        let mut changes = CountChanges::default();
        let mut applied = Applied::default();
        let mut new_classes = Vec::new();
        for finish in &batch.finishes {
            applied.finished.push(end::finish(&tx, &mut changes, finish)?);
        }
        for requeue in &batch.requeues {
            applied.requeued.push(end::requeue(&tx, &mut changes, requeue)?);
        }
        for feed in &batch.feeds {
            apply_feed(&tx, feed)?;
        }
        for chains in &batch.chains {
            insert_chains(&tx, &mut changes, classes, &mut new_classes, chains)?;
        }
        for start in &batch.starts {
            give::start(&tx, &mut changes, start)?;
        }
        for gift in &batch.gifts {
            applied.given.push(give::gift(&tx, gift)?);
        }
        let instance = batch.instance.as_ref();
        for claim in &batch.claims {
            applied.claimed.push(give::claim(&tx, &mut changes, claim, instance)?);
        }
        for pick in &batch.picks {
            applied.picked.push(give::pick(&tx, &mut changes, pick, instance)?);
        }
        for copy in &batch.copies {
            applied.copied.push(give::copy(&tx, copy, instance)?);
        }
        changes.write(&tx)?;
        let committed = tx.commit();
        if committed.is_err() {
            // The ids of classes were rolled back with everything else.
            for class in new_classes {
                classes.remove(&class);
            }
        }
        committed.map(|()| Some(applied))
    }
}

/// Whether the instance that asks controls all runs that it plans.
fn controls_runs(tx: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<bool> {
    let Some(instance) = &batch.instance else { return Ok(true) };
    for run in batch.runs() {
        let sql = "SELECT 1 FROM run WHERE id = ?1 AND controller = ?2";
        let found: Option<i64> =
            tx.query_row(sql, params![run.0, instance.as_str()], |r| r.get(0)).optional()?;
        if found.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn apply_feed(tx: &Transaction<'_>, feed: &Feed) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("UPDATE result SET number = ?2, after_chains = ?3 WHERE id = ?1")?;
    for (number, seq) in (feed.first as i64..).zip(&feed.chains) {
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
        tx.prepare_cached(
            "INSERT INTO chain (id, class, state, priority, rank) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![id, class, registered.code(), chain.priority, chain.rank])?;
        tx.prepare_cached("INSERT INTO payload (id, chain) VALUES (?1, ?2)")?
            .execute(params![id, chain.payload])?;
        changes.add(id, class, registered, 1);
    }
    Ok(())
}
