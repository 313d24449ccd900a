//! How agents get chains.

use super::COUNT;
use super::apply::rows;
use super::chains::ALLOWED;
use super::end::{lock, turns};
use crate::batch::{Claim, Claimed, Gift, Pick, Start};
use crate::record::{id, key};
use catena_model::Name;
use catena_model::chain::Attempt;
use deadpool_postgres::Transaction;
use std::collections::HashSet;
use tokio_postgres::{Error, Row};

pub(super) async fn start(tx: &Transaction<'_>, starts: &[Start]) -> Result<(), Error> {
    let ids: Vec<i64> = starts.iter().map(|s| id(s.attempt.chain.run, s.attempt.chain.seq)).collect();
    let numbers: Vec<i32> = starts.iter().map(|s| s.attempt.number as i32).collect();
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

pub(super) async fn gift(tx: &Transaction<'_>, gifts: &[Gift]) -> Result<Vec<bool>, Error> {
    let ids: Vec<i64> = gifts.iter().map(|g| id(g.attempt.chain.run, g.attempt.chain.seq)).collect();
    let mut given = vec![false; gifts.len()];
    // Nobody can begin or end an attempt at these chains from here on.
    let running = lock(tx, &ids).await?;
    let places: Vec<usize> =
        (0..gifts.len()).filter(|p| running.contains(&ids[*p]) && gifts[*p].from != gifts[*p].to).collect();
    let sql = "WITH g AS (SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[])
                   AS g (id, attempt, giver, taker)),
               newest AS (UPDATE chain c SET agent = g.taker FROM g
                   WHERE c.id = g.id AND c.attempt = g.attempt AND c.agent = g.giver
                       AND NOT EXISTS (SELECT 1 FROM copy k WHERE k.id = g.id AND k.agent = g.taker)
                   RETURNING c.id),
               elder AS (UPDATE copy k SET agent = g.taker FROM g JOIN chain c ON c.id = g.id
                   WHERE k.id = g.id AND k.attempt = g.attempt AND k.agent = g.giver
                       AND c.agent IS DISTINCT FROM g.taker
                       AND NOT EXISTS (SELECT 1 FROM copy o WHERE o.id = g.id AND o.agent = g.taker)
                   RETURNING k.id)
               SELECT id FROM newest UNION ALL SELECT id FROM elder";
    for turn in turns(&ids, &places) {
        let here = || turn.iter().map(|p| &gifts[*p]);
        let chains: Vec<i64> = turn.iter().map(|p| ids[*p]).collect();
        let numbers: Vec<i32> = here().map(|g| g.attempt.number as i32).collect();
        let givers: Vec<&str> = here().map(|g| g.from.as_str()).collect();
        let takers: Vec<&str> = here().map(|g| g.to.as_str()).collect();
        let rows = rows(tx, sql, &[&chains, &numbers, &givers, &takers]).await?;
        let taken: HashSet<i64> = rows.iter().map(|r| r.get(0)).collect();
        for place in turn {
            given[place] = taken.contains(&ids[place]);
        }
    }
    Ok(given)
}

/// Whether an agent ($1) may be given something by the instance that asks ($2). While the agent's row is shared,
/// nobody can take the agent over.
const MINE: &str = "mine AS (SELECT 1 FROM agent WHERE id = $1 AND scheduler = $2 FOR SHARE)";
const MAY_GIVE: &str = "($2::text IS NULL OR EXISTS (SELECT 1 FROM mine))";

/// Follows `given (id, attempt, rank, failures)`, chains that an agent gets.
const DELIVER: &str =
    "SELECT g.id, g.attempt, g.rank, g.failures, p.chain FROM given g JOIN payload p ON p.id = g.id
    ORDER BY g.rank DESC, g.id";

fn read_claimed(row: &Row) -> Claimed {
    Claimed {
        attempt: Attempt { chain: key(row.get(0)), number: row.get::<_, i32>(1) as u32 },
        rank: row.get(2),
        failures: row.get::<_, i32>(3) as u32,
        payload: row.get(4),
    }
}

/// Gives registered chains to an agent ($1) at a time ($3), chosen by a query.
fn take(chosen: &str) -> String {
    format!(
        "WITH {MINE}, chosen AS ({chosen} FOR UPDATE SKIP LOCKED),
         given AS (UPDATE chain c SET state = 1, attempt = attempt + 1, agent = $1, started = $3, ended = NULL
             FROM chosen WHERE c.id = chosen.id RETURNING c.id, c.class, c.attempt, c.rank, c.failures),
         moved AS (SELECT id, class, 0::smallint AS old, 1::smallint AS new FROM given),
         {COUNT} {DELIVER}"
    )
}

pub(super) async fn claim(
    tx: &Transaction<'_>,
    claim: &Claim,
    class: i32,
    instance: Option<&Name>,
) -> Result<Vec<Claimed>, Error> {
    let sql = take(&format!(
        "SELECT id FROM chain WHERE state = 0 AND class = $4 AND {MAY_GIVE} AND {ALLOWED}
         ORDER BY rank DESC, id LIMIT $5"
    ));
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let instance = instance.map(Name::as_str);
    let rows = rows(tx, &sql, &[&claim.agent.as_str(), &instance, &claim.now, &class, &limit]).await?;
    Ok(rows.iter().map(read_claimed).collect())
}

fn ids_of(pick: &Pick) -> Vec<i64> {
    pick.chains.iter().map(|key| id(key.run, key.seq)).collect()
}

pub(super) async fn pick(
    tx: &Transaction<'_>,
    pick: &Pick,
    instance: Option<&Name>,
) -> Result<Vec<Claimed>, Error> {
    let sql =
        take(&format!("SELECT id FROM chain WHERE state = 0 AND id = ANY($4) AND {MAY_GIVE} AND {ALLOWED}"));
    let instance = instance.map(Name::as_str);
    let rows = rows(tx, &sql, &[&pick.agent.as_str(), &instance, &pick.now, &ids_of(pick)]).await?;
    Ok(rows.iter().map(read_claimed).collect())
}

/// Starts one more attempt at chains that others execute. The one that was the newest goes on as an elder of it.
pub(super) async fn copy(
    tx: &Transaction<'_>,
    pick: &Pick,
    instance: Option<&Name>,
) -> Result<Vec<Claimed>, Error> {
    let agent = pick.agent.as_str();
    // Somebody who has locked a chain is about to end it, or to start a copy.
    let sql = format!(
        "WITH {MINE} SELECT id FROM chain WHERE state = 1 AND id = ANY($3) AND {MAY_GIVE} AND {ALLOWED}
         FOR UPDATE SKIP LOCKED"
    );
    let locked = rows(tx, &sql, &[&agent, &instance.map(Name::as_str), &ids_of(pick)]).await?;
    let locked: Vec<i64> = locked.iter().map(|r| r.get(0)).collect();
    if locked.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "WITH had AS (SELECT id, attempt, agent, started FROM chain c
             WHERE id = ANY($3) AND agent IS DISTINCT FROM $1
                 AND NOT EXISTS (SELECT 1 FROM copy k WHERE k.id = c.id AND k.agent = $1)),
         elders AS (INSERT INTO copy (id, attempt, agent, started)
             SELECT id, attempt, agent, started FROM had WHERE agent IS NOT NULL),
         given AS (UPDATE chain c SET attempt = c.attempt + 1, agent = $1, started = $2
             FROM had WHERE c.id = had.id RETURNING c.id, c.attempt, c.rank, c.failures)
         {DELIVER}"
    );
    let rows = rows(tx, &sql, &[&agent, &pick.now, &locked]).await?;
    Ok(rows.iter().map(read_claimed).collect())
}
