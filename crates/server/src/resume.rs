//! Rebuilds the planner of a run from what the store knows.
//!
//! Planning is deterministic, so the results that were used, in the order they were used, lead to the
//! same chains again. See `docs/decisions/0002-replay.md`.

use crate::driver::{Driver, DriverError};
use catena_model::chain::{ChainKey, ChainState, RunId, TaskResult};
use catena_plan::{PlanOptions, Planner, Program};
use catena_store::{Batch, ChainFilter, Feed, Store};
use std::collections::HashSet;
use std::sync::Arc;

/// How many chains are read at a time.
const PAGE: usize = 1024;

impl Driver<'_> {
    /// A planner that stands where the store stands. Chains that were with agents wait again.
    pub async fn replay(
        store: &dyn Store,
        run: RunId,
        program: Arc<Program>,
        options: PlanOptions,
    ) -> Result<Planner, DriverError> {
        store.release_running(run).await?;
        let mut planner = Planner::new(program, options);
        let mut used = HashSet::new();
        for feed in store.feeds(run).await? {
            advance(&mut planner, run, feed.after_chains)?;
            feed_result(store, &mut planner, run, feed.chain).await?;
            used.insert(feed.chain);
        }
        let known = store.counts(run).await?.total();
        advance(&mut planner, run, known)?;
        // Results that were written but not used: the process died in between.
        let mut from = 0;
        loop {
            let filter = ChainFilter {
                state: Some(ChainState::Succeeded),
                from,
                limit: PAGE,
                ..ChainFilter::default()
            };
            let page = store.chains(run, &filter).await?;
            let Some(last) = page.last() else { break };
            from = last.key.seq + 1;
            let late: Vec<u64> = page.iter().map(|c| c.key.seq).filter(|seq| !used.contains(seq)).collect();
            if late.is_empty() {
                continue;
            }
            let feed = Feed { run, after_chains: planner.chain_count(), chains: late.clone() };
            for seq in late {
                feed_result(store, &mut planner, run, seq).await?;
            }
            store.apply(Batch { feeds: vec![feed], ..Batch::default() }).await?;
        }
        Ok(planner)
    }
}

/// Plans until so many chains exist.
fn advance(planner: &mut Planner, run: RunId, chains: u64) -> Result<(), DriverError> {
    while planner.chain_count() < chains {
        match planner.next_chain() {
            Ok(Some(_)) => {}
            Ok(None) => {
                let detail = format!(
                    "it has {chains} chains, but only {} follow from its results",
                    planner.chain_count()
                );
                return Err(DriverError::Replay { run, detail });
            }
            Err(e) => {
                return Err(DriverError::Replay { run, detail: e.to_string() });
            }
        }
    }
    Ok(())
}

async fn feed_result(
    store: &dyn Store,
    planner: &mut Planner,
    run: RunId,
    seq: u64,
) -> Result<(), DriverError> {
    let fail = |detail: String| DriverError::Replay { run, detail };
    if seq >= planner.chain_count() {
        return Err(fail(format!("a result belongs to chain {seq}, which does not exist yet")));
    }
    let record = store.chain(ChainKey { run, seq }).await?;
    let record = record.ok_or_else(|| fail(format!("chain {seq} is missing")))?;
    let results: Vec<TaskResult> = serde_json::from_slice(&record.result)
        .map_err(|e| fail(format!("the result of chain {seq} is unreadable: {e}")))?;
    planner.chain_succeeded(seq, results.into_iter().map(|r| r.outputs).collect());
    Ok(())
}
