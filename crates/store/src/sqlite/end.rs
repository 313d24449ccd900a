//! How attempts end.
//!
//! The newest attempt at a chain is in the row of the chain, older ones that go on beside it are in the table `copy`.
//! Almost no chain has any of these, and then an end is one statement. Only what it does not find is looked for
//! further.

use super::catalogue;
use super::counts::CountChanges;
use crate::batch::{Finish, Requeue};
use crate::record::{ChainRecord, history_text, id};
use catena_model::chain::ChainState;
use rusqlite::{OptionalExtension, Row, Transaction, params};

/// The class of a chain and who has it.
type Holder = (i64, String);

fn read_holder(row: &Row<'_>) -> rusqlite::Result<Holder> {
    Ok((row.get(0)?, row.get(1)?))
}

/// An attempt that may end its chain.
struct Live {
    class: i64,
    agent: String,
    /// A newer one was started.
    is_elder: bool,
}

fn find_live(tx: &Transaction<'_>, chain: i64, attempt: u32) -> rusqlite::Result<Option<Live>> {
    let mut statement = tx.prepare_cached(
        "SELECT chain.class, coalesce(copy.agent, chain.agent), copy.agent IS NOT NULL
         FROM chain LEFT JOIN copy ON copy.id = chain.id AND copy.attempt = ?2
         WHERE chain.id = ?1 AND chain.state = 1
             AND (copy.agent IS NOT NULL OR chain.attempt = ?2 AND chain.agent IS NOT NULL)",
    )?;
    let read = |row: &Row<'_>| Ok(Live { class: row.get(0)?, agent: row.get(1)?, is_elder: row.get(2)? });
    statement.query_row(params![chain, attempt], read).optional()
}

/// Takes a live attempt away from its chain. Returns whether others go on.
fn leave(tx: &Transaction<'_>, chain: i64, attempt: u32, live: &Live) -> rusqlite::Result<bool> {
    if live.is_elder {
        let sql = "DELETE FROM copy WHERE id = ?1 AND attempt = ?2";
        tx.prepare_cached(sql)?.execute(params![chain, attempt])?;
    } else {
        tx.prepare_cached("UPDATE chain SET agent = NULL WHERE id = ?1")?.execute([chain])?;
    }
    let sql = "SELECT agent IS NOT NULL OR EXISTS (SELECT 1 FROM copy WHERE copy.id = chain.id)
               FROM chain WHERE id = ?1";
    tx.prepare_cached(sql)?.query_row([chain], |row| row.get(0))
}

pub(super) fn finish(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    finish: &Finish,
) -> rusqlite::Result<bool> {
    let chain = id(finish.attempt.chain.run, finish.attempt.chain.seq);
    let found = match finish_alone(tx, chain, finish)? {
        Some(found) => Some(found),
        None => finish_among(tx, chain, finish)?,
    };
    let Some((class, agent)) = found else { return Ok(false) };
    changes.moved(chain, class, ChainState::Running, finish.state);
    if !finish.result.is_empty() {
        // There is one already if the chain has succeeded before, and it may have been used.
        let sql = "INSERT OR IGNORE INTO result (id, result, failed) VALUES (?1, ?2, ?3)";
        let failed = finish.state != ChainState::Succeeded;
        tx.prepare_cached(sql)?.execute(params![chain, finish.result, failed])?;
    }
    for file in &finish.files {
        catalogue::put_file(tx, finish.attempt.chain.run, Some(finish.attempt.chain.seq), file)?;
        catalogue::put_holder(tx, file.artifact.id(), &agent, true)?;
    }
    if let Some(error) = &finish.error {
        insert_failure(tx, chain, finish.attempt.number, &agent, finish.started, finish.ended, error)?;
    }
    Ok(true)
}

/// The end of the only attempt at a chain.
fn finish_alone(tx: &Transaction<'_>, chain: i64, finish: &Finish) -> rusqlite::Result<Option<Holder>> {
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = ?3, started = ?4, ended = ?5, history = ?6
         WHERE id = ?1 AND attempt = ?2 AND state = 1 AND agent IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM copy WHERE id = ?1)
         RETURNING class, agent",
    )?;
    let (number, state, history) =
        (finish.attempt.number, finish.state.code(), history_text(&finish.history));
    let values = params![chain, number, state, finish.started, finish.ended, history];
    statement.query_row(values, read_holder).optional()
}

/// The end of one of several attempts. The others are over too, even if this one has failed: that a task fails is a
/// failure of its chain, whoever else executes it. Whether it is tried again is for its retry policy, not for chance.
fn finish_among(tx: &Transaction<'_>, chain: i64, finish: &Finish) -> rusqlite::Result<Option<Holder>> {
    let Some(live) = find_live(tx, chain, finish.attempt.number)? else { return Ok(None) };
    let sql = "UPDATE chain SET state = ?2, started = ?3, ended = ?4, history = ?5, agent = ?6 WHERE id = ?1";
    let (state, history) = (finish.state.code(), history_text(&finish.history));
    let values = params![chain, state, finish.started, finish.ended, history, live.agent];
    tx.prepare_cached(sql)?.execute(values)?;
    tx.prepare_cached("DELETE FROM copy WHERE id = ?1")?.execute([chain])?;
    Ok(Some((live.class, live.agent)))
}

pub(super) fn requeue(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    requeue: &Requeue,
) -> rusqlite::Result<bool> {
    let chain = id(requeue.attempt.chain.run, requeue.attempt.chain.seq);
    let to = if requeue.failure.is_some() || requeue.not_before > 0 {
        ChainState::Paused
    } else {
        ChainState::Registered
    };
    let agent = if let Some((class, agent)) = requeue_alone(tx, chain, requeue, to)? {
        changes.moved(chain, class, ChainState::Running, to);
        agent
    } else {
        let number = requeue.attempt.number;
        let Some(live) = find_live(tx, chain, number)? else { return Ok(false) };
        let failed = requeue.failure.is_some();
        if leave(tx, chain, number, &live)? {
            let sql = "UPDATE chain SET failures = failures + ?2 WHERE id = ?1";
            tx.prepare_cached(sql)?.execute(params![chain, failed])?;
        } else {
            let sql = "UPDATE chain SET state = ?2, not_before = ?3, failures = failures + ?4, agent = ?5 WHERE id = ?1";
            let values = params![chain, to.code(), requeue.not_before, failed, live.agent];
            tx.prepare_cached(sql)?.execute(values)?;
            changes.moved(chain, live.class, ChainState::Running, to);
        }
        live.agent
    };
    if let Some((started, ended, error)) = &requeue.failure {
        insert_failure(tx, chain, requeue.attempt.number, &agent, *started, *ended, error)?;
    }
    Ok(true)
}

/// The only attempt at a chain ends, and the chain waits for another.
fn requeue_alone(
    tx: &Transaction<'_>,
    chain: i64,
    requeue: &Requeue,
    to: ChainState,
) -> rusqlite::Result<Option<Holder>> {
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = ?3, not_before = ?4, failures = failures + ?5
         WHERE id = ?1 AND attempt = ?2 AND state = 1 AND agent IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM copy WHERE id = ?1)
         RETURNING class, agent",
    )?;
    let failed = requeue.failure.is_some();
    let values = params![chain, requeue.attempt.number, to.code(), requeue.not_before, failed];
    statement.query_row(values, read_holder).optional()
}

fn insert_failure(
    tx: &Transaction<'_>,
    chain: i64,
    attempt: u32,
    agent: &str,
    started: i64,
    ended: i64,
    error: &str,
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO failed_attempt (id, attempt, agent, started, ended, error) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.prepare_cached(sql)?.execute(params![chain, attempt, agent, started, ended, error]).map(|_| ())
}

/// Ends attempts of a lost agent. Chains that nobody else executes are available again, or given up if that has
/// happened too often; these are returned.
pub(super) fn release(
    tx: &Transaction<'_>,
    attempts: Vec<ChainRecord>,
    limit: u32,
    error: &str,
    now: i64,
) -> rusqlite::Result<Vec<ChainRecord>> {
    let mut changes = CountChanges::default();
    let mut released = Vec::new();
    for mut record in attempts {
        let chain = id(record.key.run, record.key.seq);
        let Some(live) = find_live(tx, chain, record.attempt)? else { continue };
        let started = record.started.unwrap_or(now);
        if leave(tx, chain, record.attempt, &live)? {
            insert_failure(tx, chain, record.attempt, &live.agent, started, now, "")?;
            continue;
        }
        record.losses += 1;
        record.state = if record.losses >= limit { ChainState::Failed } else { ChainState::Registered };
        let sql = "UPDATE chain SET state = ?2, losses = ?3, ended = ?4, agent = ?5 WHERE id = ?1";
        let values = params![chain, record.state.code(), record.losses, now, live.agent];
        tx.prepare_cached(sql)?.execute(values)?;
        changes.moved(chain, live.class, ChainState::Running, record.state);
        let error = if record.state == ChainState::Failed { error } else { "" };
        insert_failure(tx, chain, record.attempt, &live.agent, started, now, error)?;
        released.push(record);
    }
    changes.write(tx)?;
    Ok(released)
}
