//! Applies a batch within a transaction.

use super::Inner;
use crate::batch::{Applied, Batch, Claim, Claimed, Feed, Finish, NewChains, Requeue, Start};
use crate::record::{ChainRecord, id, key};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainState};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::HashMap;

/// Changes of the maintained counts, written once per transaction.
#[derive(Default)]
pub(super) struct CountChanges(HashMap<(i64, i64, i64), i64>);

impl CountChanges {
    fn add(&mut self, chain: i64, class: i64, state: ChainState, n: i64) {
        *self.0.entry((chain >> 32, class, state.code())).or_insert(0) += n;
    }

    pub(super) fn moved(&mut self, chain: i64, class: i64, from: ChainState, to: ChainState) {
        self.add(chain, class, from, -1);
        self.add(chain, class, to, 1);
    }

    pub(super) fn write(self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
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
            applied.finished.push(apply_finish(&tx, &mut changes, finish)?);
        }
        for requeue in &batch.requeues {
            applied.requeued.push(apply_requeue(&tx, &mut changes, requeue)?);
        }
        for feed in &batch.feeds {
            apply_feed(&tx, feed)?;
        }
        for chains in &batch.chains {
            insert_chains(&tx, &mut changes, classes, &mut new_classes, chains)?;
        }
        for start in &batch.starts {
            apply_start(&tx, &mut changes, start)?;
        }
        for claim in &batch.claims {
            applied.claimed.push(apply_claim(&tx, &mut changes, claim, batch.instance.as_ref())?);
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
    if !finish.result.is_empty() {
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
        "UPDATE chain SET state = ?3, not_before = ?4, failures = failures + (?3 = 2)
         WHERE id = ?1 AND attempt = ?2 AND state = 1 RETURNING class, agent",
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
    instance: Option<&Name>,
) -> rusqlite::Result<Vec<Claimed>> {
    if let Some(instance) = instance {
        let sql = "SELECT 1 FROM agent WHERE id = ?1 AND scheduler = ?2";
        let names = [claim.agent.as_str(), instance.as_str()];
        if tx.prepare_cached(sql)?.query_row(names, |r| r.get::<_, i64>(0)).optional()?.is_none() {
            return Ok(Vec::new());
        }
    }
    let class: Option<i64> = tx
        .prepare_cached("SELECT id FROM class WHERE key = ?1")?
        .query_row([claim.class.as_str()], |r| r.get(0))
        .optional()?;
    let Some(class) = class else { return Ok(Vec::new()) };
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 1, attempt = attempt + 1, agent = ?3, started = ?4, ended = NULL
         WHERE id IN (SELECT id FROM chain WHERE state = 0 AND class = ?1
             AND id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)
             ORDER BY rank DESC, id LIMIT ?2)
         RETURNING id, attempt, rank, failures",
    )?;
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![class, limit, claim.agent.as_str(), claim.now], |row| {
        let attempt = Attempt { chain: key(row.get(0)?), number: row.get(1)? };
        Ok(Claimed { attempt, rank: row.get(2)?, failures: row.get(3)?, payload: Vec::new() })
    })?;
    let mut out = rows.collect::<rusqlite::Result<Vec<Claimed>>>()?;
    // RETURNING promises no order.
    out.sort_by_key(|c| (std::cmp::Reverse(c.rank), c.attempt.chain));
    for claimed in &mut out {
        let chain = id(claimed.attempt.chain.run, claimed.attempt.chain.seq);
        changes.moved(chain, class, ChainState::Registered, ChainState::Running);
        let mut statement = tx.prepare_cached("SELECT chain FROM payload WHERE id = ?1")?;
        claimed.payload = statement.query_row([chain], |r| r.get(0))?;
    }
    Ok(out)
}

/// Chains whose pause is over wait for an agent again, unless their run is held.
pub(super) fn wake_paused(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    let sql = "SELECT 1 FROM class_count WHERE state = 2 AND count > 0 LIMIT 1";
    let waiting: Option<i64> = tx.prepare_cached(sql)?.query_row([], |r| r.get(0)).optional()?;
    if waiting.is_none() {
        return Ok(());
    }
    let mut changes = CountChanges::default();
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 0 WHERE state = 2 AND not_before <= ?1
         AND id >> 32 NOT IN (SELECT id FROM run WHERE held) RETURNING id, class",
    )?;
    let woken = statement.query_map([now], |row| Ok((row.get(0)?, row.get(1)?)))?;
    for chain in woken {
        let (chain, class): (i64, i64) = chain?;
        changes.moved(chain, class, ChainState::Paused, ChainState::Registered);
    }
    changes.write(tx)
}

/// Makes chains of a lost agent available again, or gives them up if that has happened too often.
pub(super) fn release(
    tx: &Transaction<'_>,
    chains: &mut [ChainRecord],
    limit: u32,
    error: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let mut changes = CountChanges::default();
    for record in chains {
        record.losses += 1;
        record.state = if record.losses >= limit { ChainState::Failed } else { ChainState::Registered };
        let chain = id(record.key.run, record.key.seq);
        let class: i64 = tx
            .prepare_cached(
                "UPDATE chain SET state = ?2, losses = ?3, ended = ?4 WHERE id = ?1 RETURNING class",
            )?
            .query_row(params![chain, record.state.code(), record.losses, now], |r| r.get(0))?;
        changes.moved(chain, class, ChainState::Running, record.state);
        if record.state == ChainState::Failed {
            let agent = record.agent.as_ref().map(ToString::to_string);
            insert_failure(tx, chain, record.attempt, agent, record.started.unwrap_or(now), now, error)?;
        }
    }
    changes.write(tx)
}
