//! Reading chains, and moving many of them from one state to another.

use super::counts::CountChanges;
use crate::record::{ChainFilter, ChainRecord, id, id_range, key, read_history};
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, RunId};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::cmp::Reverse;

fn read_chain(row: &Row<'_>) -> rusqlite::Result<ChainRecord> {
    let class: String = row.get("class_key")?;
    let agent: Option<String> = row.get("agent")?;
    let history: Option<String> = row.get("history")?;
    Ok(ChainRecord {
        key: key(row.get("id")?),
        state: ChainState::from_code(row.get("state")?).unwrap_or(ChainState::Failed),
        attempt: row.get("attempt")?,
        class: class.into(),
        priority: row.get("priority")?,
        rank: row.get("rank")?,
        losses: row.get("losses")?,
        failures: row.get("failures")?,
        agent: agent.map(Into::into),
        started: row.get("started")?,
        ended: row.get("ended")?,
        not_before: row.get("not_before")?,
        history: read_history(history.as_deref()),
        payload: row.get::<_, Option<Vec<u8>>>("payload")?.unwrap_or_default(),
        result: row.get::<_, Option<Vec<u8>>>("outcome")?.unwrap_or_default(),
    })
}

pub(super) fn chains(
    connection: &Connection,
    run: RunId,
    filter: &ChainFilter,
) -> rusqlite::Result<Vec<ChainRecord>> {
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
    let mut statement = connection.prepare_cached(&sql)?;
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let state = filter.state.map(ChainState::code);
    let rows = statement.query_map(params![id(run, filter.from), last, state, limit], read_chain)?;
    rows.collect()
}

pub(super) fn chain(connection: &Connection, key: ChainKey) -> rusqlite::Result<Option<ChainRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT chain.*, class.key AS class_key, payload.chain AS payload, result.result AS outcome
         FROM chain JOIN class ON class.id = chain.class JOIN payload ON payload.id = chain.id
         LEFT JOIN result ON result.id = chain.id WHERE chain.id = ?1",
    )?;
    statement.query_row([id(key.run, key.seq)], read_chain).optional()
}

/// A chain without payload and result.
fn plain_chain(connection: &Connection, id: i64) -> rusqlite::Result<ChainRecord> {
    let sql = "SELECT chain.*, class.key AS class_key, NULL AS payload, NULL AS outcome
               FROM chain JOIN class ON class.id = chain.class WHERE chain.id = ?1";
    connection.prepare_cached(sql)?.query_row([id], read_chain)
}

/// The best of each class, merged: there are few classes, and an index over all of them would have to be changed with
/// every chain that comes and goes.
pub(super) fn registered(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<ChainRecord>> {
    let sql = "SELECT class FROM class_count WHERE state = 0 AND count > 0 GROUP BY class";
    let mut statement = connection.prepare_cached(sql)?;
    let classes = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    let mut statement = connection.prepare_cached(
        "SELECT rank, id FROM chain WHERE state = 0 AND class = ?1
         AND id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)
         ORDER BY rank DESC, id LIMIT ?2",
    )?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut best: Vec<(Reverse<i64>, i64)> = Vec::new();
    for class in classes {
        for row in statement.query_map([class, most], |row| Ok((Reverse(row.get(0)?), row.get(1)?)))? {
            best.push(row?);
        }
    }
    best.sort_unstable();
    best.truncate(limit);
    best.into_iter().map(|(_, id)| plain_chain(connection, id)).collect()
}

/// The live attempts of some agents, the newest ones at their chains and others.
pub(super) fn chains_of(connection: &Connection, agents: &[Name]) -> rusqlite::Result<Vec<ChainRecord>> {
    let mut statement = connection.prepare_cached(
        "SELECT chain.id, state, live.attempt, class.key AS class_key, priority, rank, losses, failures, live.agent,
             live.started, ended, not_before, history, payload.chain AS payload, NULL AS outcome
         FROM (SELECT id, attempt, agent, started FROM chain WHERE state = 1 AND agent = ?1
               UNION ALL SELECT id, attempt, agent, started FROM copy WHERE agent = ?1) AS live
         JOIN chain ON chain.id = live.id JOIN class ON class.id = chain.class
         JOIN payload ON payload.id = chain.id WHERE chain.state = 1 ORDER BY chain.id",
    )?;
    let mut chains = Vec::new();
    for agent in agents {
        for chain in statement.query_map([agent.as_str()], read_chain)? {
            chains.push(chain?);
        }
    }
    Ok(chains)
}

/// Moves all chains of a run from one of some states to another. Nobody executes them any more, and what came of a
/// failure is forgotten if it may end otherwise now.
pub(super) fn move_all(
    tx: &Transaction<'_>,
    run: RunId,
    from: &[ChainState],
    to: ChainState,
) -> rusqlite::Result<u64> {
    let (first, last) = id_range(run);
    let mut changes = CountChanges::default();
    let mut n = 0;
    for state in from {
        if *state == ChainState::Running {
            tx.execute("DELETE FROM copy WHERE id BETWEEN ?1 AND ?2", [first, last])?;
        }
        if state.is_final() && !to.is_final() {
            let sql = "DELETE FROM result WHERE failed AND id IN
                       (SELECT id FROM chain WHERE id BETWEEN ?1 AND ?2 AND state = ?3)";
            tx.execute(sql, params![first, last, state.code()])?;
        }
        let mut statement = tx.prepare_cached(
            "UPDATE chain SET state = ?4, not_before = 0, history = NULL,
                 failures = CASE WHEN ?3 IN (4, 5) THEN 0 ELSE failures END
             WHERE id BETWEEN ?1 AND ?2 AND state = ?3 RETURNING id, class",
        )?;
        let rows = statement
            .query_map(params![first, last, state.code(), to.code()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (chain, class): (i64, i64) = row?;
            changes.moved(chain, class, *state, to);
            n += 1;
        }
    }
    changes.write(tx)?;
    Ok(n)
}

/// Makes chains that have succeeded wait for an agent again.
pub(super) fn reopen(tx: &Transaction<'_>, run: RunId, chains: &[u64]) -> rusqlite::Result<Vec<ChainRecord>> {
    let mut ids: Vec<i64> = chains.iter().map(|seq| id(run, *seq)).collect();
    ids.sort_unstable();
    let mut changes = CountChanges::default();
    let mut statement = tx.prepare_cached(
        "UPDATE chain SET state = 0, not_before = 0, losses = 0, failures = 0, history = NULL
         WHERE id = ?1 AND state = 3 RETURNING class",
    )?;
    let mut reopened = Vec::new();
    for id in ids {
        if let Some(class) = statement.query_row([id], |row| row.get(0)).optional()? {
            changes.moved(id, class, ChainState::Succeeded, ChainState::Registered);
            reopened.push(plain_chain(tx, id)?);
        }
    }
    changes.write(tx)?;
    Ok(reopened)
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
