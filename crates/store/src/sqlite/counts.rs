//! How many chains of which class are in which state.

use crate::record::id_range;
use catena_model::chain::{ChainState, RunId};
use rusqlite::{Transaction, params};
use std::collections::HashMap;

/// Changes of the maintained counts, written once per transaction.
#[derive(Default)]
pub(super) struct CountChanges(HashMap<(i64, i64, i64), i64>);

impl CountChanges {
    pub(super) fn add(&mut self, chain: i64, class: i64, state: ChainState, n: i64) {
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

/// Replaces the counts of a run by the truth, if they differ. Returns how many did.
pub(super) fn repair(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<usize> {
    let (first, last) = id_range(run);
    let read = |sql: &str| -> rusqlite::Result<HashMap<(i64, i64), i64>> {
        let mut statement = tx.prepare(sql)?;
        let rows =
            statement.query_map(params![run.0, first, last], |r| Ok(((r.get(0)?, r.get(1)?), r.get(2)?)))?;
        rows.collect()
    };
    let truth = read(
        "SELECT class, state, COUNT(*) FROM chain WHERE id BETWEEN ?2 AND ?3 AND ?1 = ?1 GROUP BY class, state",
    )?;
    let kept = read("SELECT class, state, count FROM class_count WHERE run = ?1 AND count <> 0 AND ?2 < ?3")?;
    let wrong = truth.iter().filter(|(k, n)| kept.get(k) != Some(n)).count()
        + kept.keys().filter(|k| !truth.contains_key(k)).count();
    if wrong > 0 {
        tx.execute("DELETE FROM class_count WHERE run = ?1", [run.0])?;
        for ((class, state), n) in &truth {
            tx.execute("INSERT INTO class_count VALUES (?1, ?2, ?3, ?4)", params![run.0, class, state, n])?;
        }
    }
    Ok(wrong)
}
