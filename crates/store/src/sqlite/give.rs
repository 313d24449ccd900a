//! How agents get chains.

use super::counts::CountChanges;
use crate::batch::{Claim, Claimed, Gift, Pick, Start};
use crate::record::{id, key};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainState};
use rusqlite::{OptionalExtension, Row, Transaction, params};

pub(super) fn start(tx: &Transaction<'_>, changes: &mut CountChanges, start: &Start) -> rusqlite::Result<()> {
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

pub(super) fn gift(tx: &Transaction<'_>, gift: &Gift) -> rusqlite::Result<bool> {
    if gift.from == gift.to {
        return Ok(false);
    }
    let chain = id(gift.attempt.chain.run, gift.attempt.chain.seq);
    let values = params![chain, gift.attempt.number, gift.from.as_str(), gift.to.as_str()];
    let newest = "UPDATE chain SET agent = ?4 WHERE id = ?1 AND attempt = ?2 AND agent = ?3 AND state = 1
                  AND NOT EXISTS (SELECT 1 FROM copy WHERE id = ?1 AND agent = ?4)";
    if tx.prepare_cached(newest)?.execute(values)? > 0 {
        return Ok(true);
    }
    let elder = "UPDATE copy SET agent = ?4 WHERE id = ?1 AND attempt = ?2 AND agent = ?3
                 AND NOT EXISTS (SELECT 1 FROM chain WHERE id = ?1 AND agent = ?4)
                 AND NOT EXISTS (SELECT 1 FROM copy AS other WHERE other.id = ?1 AND other.agent = ?4)";
    Ok(tx.prepare_cached(elder)?.execute(values)? > 0)
}

/// Whether an agent may be given something by the instance that asks.
fn may_give(tx: &Transaction<'_>, agent: &Name, instance: Option<&Name>) -> rusqlite::Result<bool> {
    let Some(instance) = instance else { return Ok(true) };
    let sql = "SELECT 1 FROM agent WHERE id = ?1 AND scheduler = ?2";
    let found = tx
        .prepare_cached(sql)?
        .query_row([agent.as_str(), instance.as_str()], |r| r.get::<_, i64>(0))
        .optional()?;
    Ok(found.is_some())
}

/// Reads id, attempt, rank and failures.
fn read_claimed(row: &Row<'_>) -> rusqlite::Result<Claimed> {
    let attempt = Attempt { chain: key(row.get(0)?), number: row.get(1)? };
    Ok(Claimed { attempt, rank: row.get(2)?, failures: row.get(3)?, payload: Vec::new() })
}

/// Completes what an agent gets, highest rank first.
fn deliver(tx: &Transaction<'_>, mut claimed: Vec<Claimed>) -> rusqlite::Result<Vec<Claimed>> {
    claimed.sort_by_key(|c| (std::cmp::Reverse(c.rank), c.attempt.chain));
    for one in &mut claimed {
        let chain = id(one.attempt.chain.run, one.attempt.chain.seq);
        let mut statement = tx.prepare_cached("SELECT chain FROM payload WHERE id = ?1")?;
        one.payload = statement.query_row([chain], |r| r.get(0))?;
    }
    Ok(claimed)
}

pub(super) fn claim(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    claim: &Claim,
    instance: Option<&Name>,
) -> rusqlite::Result<Vec<Claimed>> {
    if !may_give(tx, &claim.agent, instance)? {
        return Ok(Vec::new());
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
    let rows = statement.query_map(params![class, limit, claim.agent.as_str(), claim.now], read_claimed)?;
    let claimed = rows.collect::<rusqlite::Result<Vec<Claimed>>>()?;
    for one in &claimed {
        let chain = id(one.attempt.chain.run, one.attempt.chain.seq);
        changes.moved(chain, class, ChainState::Registered, ChainState::Running);
    }
    deliver(tx, claimed)
}

pub(super) fn pick(
    tx: &Transaction<'_>,
    changes: &mut CountChanges,
    pick: &Pick,
    instance: Option<&Name>,
) -> rusqlite::Result<Vec<Claimed>> {
    if !may_give(tx, &pick.agent, instance)? {
        return Ok(Vec::new());
    }
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 1, attempt = attempt + 1, agent = ?2, started = ?3, ended = NULL
         WHERE id = ?1 AND state = 0 AND id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)
         RETURNING id, attempt, rank, failures, class",
    )?;
    let mut picked = Vec::new();
    for key in &pick.chains {
        let chain = id(key.run, key.seq);
        let values = params![chain, pick.agent.as_str(), pick.now];
        let read = |row: &Row<'_>| Ok((read_claimed(row)?, row.get(4)?));
        let found: Option<(Claimed, i64)> = statement.query_row(values, read).optional()?;
        if let Some((claimed, class)) = found {
            changes.moved(chain, class, ChainState::Registered, ChainState::Running);
            picked.push(claimed);
        }
    }
    deliver(tx, picked)
}

/// Starts one more attempt at chains that others execute. The one that was the newest goes on as an elder of it.
pub(super) fn copy(
    tx: &Transaction<'_>,
    pick: &Pick,
    instance: Option<&Name>,
) -> rusqlite::Result<Vec<Claimed>> {
    if !may_give(tx, &pick.agent, instance)? {
        return Ok(Vec::new());
    }
    let mut may_have = tx.prepare_cached(
        "SELECT 1 FROM chain WHERE id = ?1 AND state = 1 AND agent IS NOT ?2
         AND NOT EXISTS (SELECT 1 FROM copy WHERE id = ?1 AND agent = ?2)
         AND id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)",
    )?;
    let mut keep_elder = tx.prepare_cached(
        "INSERT INTO copy (id, attempt, agent, started)
         SELECT id, attempt, agent, started FROM chain WHERE id = ?1 AND agent IS NOT NULL",
    )?;
    let mut start = tx.prepare_cached(
        "UPDATE chain SET attempt = attempt + 1, agent = ?2, started = ?3 WHERE id = ?1
         RETURNING id, attempt, rank, failures",
    )?;
    let mut copied = Vec::new();
    for key in &pick.chains {
        let chain = id(key.run, key.seq);
        if may_have.exists(params![chain, pick.agent.as_str()])? {
            keep_elder.execute([chain])?;
            copied.push(start.query_row(params![chain, pick.agent.as_str(), pick.now], read_claimed)?);
        }
    }
    deliver(tx, copied)
}
