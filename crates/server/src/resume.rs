//! Rebuilds the planner of a run from what the store knows.
//!
//! Planning is deterministic, so the results that were used, in the order they were used, lead to the
//! same chains again. See `docs/decisions/0002-replay.md`.

use crate::control::RunControl;
use crate::dagman::DiskSubmitter;
use crate::driver::DriverError;
use crate::plan::{Blueprint, Plan};
use catena_model::chain::{ProcessChain, RunId, TaskResult};
use catena_model::dagman::DagFile;
use catena_plan::{DagOptions, DagPlan, KnownChain, Planner};
use catena_store::{ChainFilter, Run, Store};
use std::collections::HashMap;
use std::time::Duration;

/// How many results are read at a time.
const PAGE: usize = 1024;

/// A run that stands where the store stands. Results that were written but not used, because a process died in
/// between, are used now.
pub(crate) async fn replay(
    store: &dyn Store,
    run: Run,
    blueprint: Blueprint,
    aging: Duration,
) -> Result<RunControl, DriverError> {
    // How many chains there are decides how far the plan is played back.
    let wrong = store.repair_counts(run.id).await?;
    if wrong > 0 {
        eprintln!("run {}: {wrong} counts of chains were wrong and have been repaired", run.id);
    }
    match blueprint {
        Blueprint::Workflow { program, options } => {
            replay_workflow(store, run, Planner::new(program, options), aging).await
        }
        Blueprint::Dag { file, options, .. } => adopt_dag(store, run, *file, options, aging).await,
    }
}

/// A DAG goes on from the chains that are known, see [`DagPlan`].
async fn adopt_dag(
    store: &dyn Store,
    run: Run,
    file: DagFile,
    options: DagOptions,
    aging: Duration,
) -> Result<RunControl, DriverError> {
    let id = run.id;
    let mut known = Vec::new();
    let mut tasks = 0;
    loop {
        let from = known.last().map_or(0, |k: &KnownChain| k.seq + 1);
        let filter = ChainFilter { from, limit: PAGE, payload: true, result: true, ..ChainFilter::default() };
        let page = store.chains(id, &filter).await?;
        if page.is_empty() {
            break;
        }
        for record in page {
            let seq = record.key.seq;
            let unreadable =
                |e| DriverError::Replay { run: id, detail: format!("chain {seq} is unreadable: {e}") };
            let chain: ProcessChain = serde_json::from_slice(&record.payload).map_err(unreadable)?;
            let results = Some(&record.result).filter(|r| !r.is_empty());
            let results = results.map(|r| read_result(id, seq, r)).transpose()?;
            tasks += u64::from(results.is_some());
            known.push(KnownChain { seq, id: chain.id, results });
        }
    }
    let used = store.feeds(id).await?.len() as u64;
    let plan = Plan::Dag(Box::new(DagPlan::new(file, options, Box::new(DiskSubmitter), known)));
    let mut control = RunControl::new(run, plan, used, (tasks, 0), aging);
    for (seq, _) in store.unused_results(id, usize::MAX).await? {
        control.note_used(seq);
    }
    Ok(control)
}

async fn replay_workflow(
    store: &dyn Store,
    run: Run,
    mut planner: Planner,
    aging: Duration,
) -> Result<RunControl, DriverError> {
    let id = run.id;
    let feeds = store.feeds(id).await?;
    let mut tasks = (0, 0);
    for page in feeds.chunks(PAGE) {
        let chains: Vec<u64> = page.iter().map(|f| f.chain).collect();
        let mut results: HashMap<u64, Vec<u8>> = store.results(id, &chains).await?.into_iter().collect();
        for feed in page {
            advance(&mut planner, id, feed.after_chains)?;
            let fail = |detail: String| DriverError::Replay { run: id, detail };
            if feed.chain >= planner.chain_count() {
                return Err(fail(format!(
                    "a result belongs to chain {}, which does not exist yet",
                    feed.chain
                )));
            }
            let result = results.remove(&feed.chain);
            let result =
                result.ok_or_else(|| fail(format!("the result of chain {} is missing", feed.chain)))?;
            let results = read_result(id, feed.chain, &result)?;
            tasks.0 += results.len() as u64;
            tasks.1 += results.iter().filter(|r| r.cached).count() as u64;
            planner.chain_succeeded(feed.chain, results.into_iter().map(|r| r.outputs).collect());
        }
    }
    let known = store.counts(id).await?.total();
    advance(&mut planner, id, known)?;
    let mut control =
        RunControl::new(run, Plan::Workflow(Box::new(planner)), feeds.len() as u64, tasks, aging);
    use_results(store, &mut control, usize::MAX).await?;
    Ok(control)
}

/// Uses up to `limit` results that were not used yet. Returns how many there were.
pub(crate) async fn use_results(
    store: &dyn Store,
    control: &mut RunControl,
    limit: usize,
) -> Result<usize, DriverError> {
    let unused = store.unused_results(control.id(), limit).await?;
    let n = unused.len();
    for (seq, result) in unused {
        let results = read_result(control.id(), seq, &result)?;
        control.use_result(seq, results);
    }
    Ok(n)
}

fn read_result(run: RunId, seq: u64, result: &[u8]) -> Result<Vec<TaskResult>, DriverError> {
    serde_json::from_slice(result).map_err(|e| DriverError::Replay {
        run,
        detail: format!("the result of chain {seq} is unreadable: {e}"),
    })
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
