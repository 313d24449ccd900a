//! Reading chains, and moving many of them from one state to another.

use super::apply::rows;
use super::{COUNT, PostgresStore};
use crate::error::StoreError;
use crate::record::{ChainFilter, ChainRecord, id, id_range, key, read_history};
use catena_model::Name;
use catena_model::chain::{ChainKey, ChainState, RunId};
use tokio_postgres::Row;

pub(super) fn state(code: i16) -> ChainState {
    ChainState::from_code(code.into()).unwrap_or(ChainState::Failed)
}

pub(super) fn code(state: ChainState) -> i16 {
    state.code() as i16
}

fn read_chain(row: &Row) -> ChainRecord {
    ChainRecord {
        key: key(row.get("id")),
        state: state(row.get("state")),
        attempt: row.get::<_, i32>("attempt") as u32,
        class: row.get::<_, String>("class_key").into(),
        priority: row.get("priority"),
        rank: row.get("rank"),
        losses: row.get::<_, i32>("losses") as u32,
        failures: row.get::<_, i32>("failures") as u32,
        agent: row.get::<_, Option<String>>("agent").map(Into::into),
        started: row.get("started"),
        ended: row.get("ended"),
        not_before: row.get("not_before"),
        history: read_history(row.get("history")),
        payload: row.get::<_, Option<Vec<u8>>>("payload").unwrap_or_default(),
        result: row.get::<_, Option<Vec<u8>>>("outcome").unwrap_or_default(),
    }
}

/// The classes of chains that wait for an agent, found by jumping from one to the next in the index.
pub(super) const WAITING: &str = "waiting (class) AS (
    (SELECT class FROM chain WHERE state = 0 ORDER BY class LIMIT 1)
    UNION ALL SELECT (SELECT class FROM chain WHERE state = 0 AND class > waiting.class
                      ORDER BY class LIMIT 1) FROM waiting WHERE waiting.class IS NOT NULL)";

/// Whether a chain belongs to a run that is neither held nor cancelled.
pub(super) const ALLOWED: &str = "id >> 32 NOT IN (SELECT id FROM run WHERE held OR cancel_requested)";

pub(super) async fn chains(
    store: &PostgresStore,
    run: RunId,
    filter: &ChainFilter,
) -> Result<Vec<ChainRecord>, StoreError> {
    let sql = format!(
        "SELECT chain.*, class.key AS class_key, {} AS payload, {} AS outcome
         FROM chain JOIN class ON class.id = chain.class {} {}
         WHERE chain.id BETWEEN $1 AND $2 AND ($3::smallint IS NULL OR chain.state = $3)
         ORDER BY chain.id LIMIT $4",
        if filter.payload { "payload.chain" } else { "NULL::bytea" },
        if filter.result { "result.result" } else { "NULL::bytea" },
        if filter.payload { "JOIN payload ON payload.id = chain.id" } else { "" },
        if filter.result { "LEFT JOIN result ON result.id = chain.id" } else { "" },
    );
    let (_, last) = id_range(run);
    let first = id(run, filter.from);
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rows = store.rows(&sql, &[&first, &last, &filter.state.map(code), &limit]).await?;
    Ok(rows.iter().map(read_chain).collect())
}

pub(super) async fn chain(store: &PostgresStore, key: ChainKey) -> Result<Option<ChainRecord>, StoreError> {
    let sql = "SELECT chain.*, class.key AS class_key, payload.chain AS payload, result.result AS outcome
               FROM chain JOIN class ON class.id = chain.class JOIN payload ON payload.id = chain.id
               LEFT JOIN result ON result.id = chain.id WHERE chain.id = $1";
    Ok(store.rows(sql, &[&id(key.run, key.seq)]).await?.first().map(read_chain))
}

/// The best of each class, merged: there are few classes, and an index over all of them would have to be changed with
/// every chain that comes and goes.
pub(super) async fn registered(store: &PostgresStore, limit: usize) -> Result<Vec<ChainRecord>, StoreError> {
    let sql = format!(
        "WITH RECURSIVE {WAITING}
         SELECT best.*, class.key AS class_key, NULL::bytea AS payload, NULL::bytea AS outcome
         FROM waiting JOIN class ON class.id = waiting.class CROSS JOIN LATERAL (SELECT * FROM chain
             WHERE state = 0 AND class = waiting.class AND {ALLOWED} ORDER BY rank DESC, id LIMIT $1) AS best
         ORDER BY best.rank DESC, best.id LIMIT $1"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(store.rows(&sql, &[&limit]).await?.iter().map(read_chain).collect())
}

/// The live attempts of some agents, the newest ones at their chains and others.
pub(super) async fn chains_of(
    store: &PostgresStore,
    agents: &[Name],
) -> Result<Vec<ChainRecord>, StoreError> {
    let sql = "SELECT c.id, c.state, live.attempt, class.key AS class_key, c.priority, c.rank, c.losses, c.failures,
                   live.agent, live.started, c.ended, c.not_before, c.history, payload.chain AS payload,
                   NULL::bytea AS outcome
               FROM (SELECT id, attempt, agent, started FROM chain WHERE state = 1 AND agent = ANY($1)
                     UNION ALL SELECT id, attempt, agent, started FROM copy WHERE agent = ANY($1)) AS live
               JOIN chain c ON c.id = live.id JOIN class ON class.id = c.class JOIN payload ON payload.id = c.id
               WHERE c.state = 1 ORDER BY c.id, live.attempt";
    let agents: Vec<&str> = agents.iter().map(Name::as_str).collect();
    Ok(store.rows(sql, &[&agents]).await?.iter().map(read_chain).collect())
}

/// Moves all chains of a run from one state to another. Nobody executes them any more, and what came of a failure is
/// forgotten if it may end otherwise now.
pub(super) async fn move_all(
    store: &PostgresStore,
    run: RunId,
    from: ChainState,
    to: ChainState,
) -> Result<u64, StoreError> {
    let (first, last) = id_range(run);
    let over = match from {
        ChainState::Running => "over AS (DELETE FROM copy WHERE id BETWEEN $1 AND $2),",
        _ if from.is_final() && !to.is_final() => {
            "over AS (DELETE FROM result r USING moved m WHERE r.id = m.id AND r.failed),"
        }
        _ => "",
    };
    let sql = format!(
        "WITH moved AS (UPDATE chain SET state = $4, not_before = 0, history = NULL,
             failures = CASE WHEN $3 IN (4, 5) THEN 0 ELSE failures END
             WHERE id BETWEEN $1 AND $2 AND state = $3
             RETURNING id, class, $3::smallint AS old, $4::smallint AS new),
         {over} {COUNT} SELECT count(*) FROM moved"
    );
    let mut client = store.client().await?;
    let change = async {
        let tx = client.transaction().await?;
        if from == ChainState::Running {
            // Copies that somebody is starting right now are there when the statement below looks for them.
            let lock = "SELECT id FROM chain WHERE id BETWEEN $1 AND $2 AND state = 1 ORDER BY id FOR UPDATE";
            rows(&tx, lock, &[&first, &last]).await?;
        }
        let moved = rows(&tx, &sql, &[&first, &last, &code(from), &code(to)]).await?;
        tx.commit().await?;
        Ok(moved.first().map_or(0, |r| r.get::<_, i64>(0) as u64))
    };
    change.await.map_err(|e| store.error(&e))
}

/// Makes chains that have succeeded wait for an agent again.
pub(super) async fn reopen(
    store: &PostgresStore,
    run: RunId,
    chains: &[u64],
) -> Result<Vec<ChainRecord>, StoreError> {
    let ids: Vec<i64> = chains.iter().map(|seq| id(run, *seq)).collect();
    let sql = format!(
        "WITH moved AS (UPDATE chain SET state = 0, not_before = 0, losses = 0, failures = 0, history = NULL
             WHERE id = ANY($1) AND state = 3 RETURNING *, 3::smallint AS old, 0::smallint AS new),
         {COUNT}
         SELECT moved.*, class.key AS class_key, NULL::bytea AS payload, NULL::bytea AS outcome
         FROM moved JOIN class ON class.id = moved.class ORDER BY moved.id"
    );
    Ok(store.rows(&sql, &[&ids]).await?.iter().map(read_chain).collect())
}
