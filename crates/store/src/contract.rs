//! Tests that every implementation of [`Store`] must pass.

use crate::{
    Batch, ChainFilter, Claim, Claimed, Counts, Feed, Finish, NewChain, NewChains, NewRun, Requeue,
    RunChange, RunState, Start, Store,
};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ChainState, RunId};

/// Runs all of them against an empty store.
pub async fn all(store: &dyn Store) {
    runs_are_kept_and_changed(store).await;
    chains_are_claimed_by_priority_then_age(store).await;
    only_the_live_attempt_commits_and_only_once(store).await;
    a_lost_agent_gives_its_chains_back(store).await;
    a_given_chain_is_running_once(store).await;
    pauses_end(store).await;
    feeds_keep_their_order(store).await;
    counts_equal_the_truth(store).await;
}

async fn new_run(store: &dyn Store, name: &str) -> RunId {
    let run = NewRun { name: name.to_owned(), created: 5, definition: b"text".to_vec(), ..NewRun::default() };
    store.create_run(&run).await.expect("a run can be created")
}

async fn add(store: &dyn Store, run: RunId, first: u64, class: &str, priorities: &[i32]) {
    let chain = |p: &i32| NewChain { class: class.into(), priority: *p, payload: vec![*p as u8] };
    let chains = NewChains { run, first, chains: priorities.iter().map(chain).collect() };
    store.apply(Batch { chains: vec![chains], ..Batch::default() }).await.expect("chains can be added");
}

async fn claim(store: &dyn Store, class: &str, limit: usize, now: i64) -> Vec<Claimed> {
    let claim = Claim { class: class.into(), limit, agent: Name::new("agent"), now };
    let applied = store.apply(Batch { claims: vec![claim], ..Batch::default() }).await;
    applied.expect("chains can be claimed").claimed.remove(0)
}

fn attempt(c: &Claimed) -> Attempt {
    Attempt { chain: c.key, number: c.attempt }
}

fn finish(attempt: Attempt, state: ChainState) -> Finish {
    Finish { attempt, state, started: 1, ended: 2, result: b"r".to_vec(), error: None }
}

async fn apply_finish(store: &dyn Store, f: Finish) -> bool {
    let applied = store.apply(Batch { finishes: vec![f], ..Batch::default() }).await;
    applied.expect("attempts can be finished").finished[0]
}

async fn runs_are_kept_and_changed(store: &dyn Store) {
    let id = new_run(store, "kept").await;
    let run = store.run(id).await.unwrap().unwrap();
    assert_eq!((run.state, run.definition.as_slice()), (RunState::Running, &b"text"[..]));
    let change = RunChange {
        state: Some(RunState::Failed),
        ended: Some(Some(9)),
        error: Some(Some("why".to_owned())),
        ..RunChange::default()
    };
    store.change_run(id, &change).await.unwrap();
    let run = store.run(id).await.unwrap().unwrap();
    assert_eq!((run.state, run.ended, run.error.as_deref()), (RunState::Failed, Some(9), Some("why")));
    assert_eq!(run.created, 5);
    let newer = new_run(store, "newer").await;
    assert_eq!(store.runs().await.unwrap()[0].id, newer);
    assert!(store.run(RunId(1_000_000)).await.unwrap().is_none());
}

async fn chains_are_claimed_by_priority_then_age(store: &dyn Store) {
    let run = new_run(store, "order").await;
    add(store, run, 0, "order/a", &[0, 5, 0, 9]).await;
    add(store, run, 4, "order/b", &[7]).await;
    let claimed = claim(store, "order/a", 3, 10).await;
    let seqs: Vec<u64> = claimed.iter().map(|c| c.key.seq).collect();
    assert_eq!(seqs, [3, 1, 0]);
    assert!(claimed.iter().all(|c| c.attempt == 1));
    assert_eq!(claim(store, "order/a", 3, 10).await.len(), 1);
    assert!(claim(store, "order/unknown", 3, 10).await.is_empty());
    let filter = ChainFilter { payload: true, state: Some(ChainState::Registered), ..ChainFilter::default() };
    let waiting = store.chains(run, &filter).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].payload.as_slice()), (1, &[7u8][..]));
}

async fn only_the_live_attempt_commits_and_only_once(store: &dyn Store) {
    let run = new_run(store, "fencing").await;
    add(store, run, 0, "fencing", &[0]).await;
    let first = claim(store, "fencing", 1, 1).await[0];
    let requeue = Requeue { attempt: attempt(&first), failure: None, not_before: 0 };
    store.apply(Batch { requeues: vec![requeue], ..Batch::default() }).await.unwrap();
    let second = claim(store, "fencing", 1, 2).await[0];
    assert_eq!(second.attempt, 2);
    assert!(
        !apply_finish(store, finish(attempt(&first), ChainState::Succeeded)).await,
        "a late answer must not count"
    );
    assert!(apply_finish(store, finish(attempt(&second), ChainState::Succeeded)).await);
    assert!(
        !apply_finish(store, finish(attempt(&second), ChainState::Failed)).await,
        "the second answer must not count"
    );
    let filter = ChainFilter { result: true, ..ChainFilter::default() };
    let chain = store.chains(run, &filter).await.unwrap().remove(0);
    assert_eq!(
        (chain.state, chain.result.as_slice(), chain.ended),
        (ChainState::Succeeded, &b"r"[..], Some(2))
    );
}

async fn a_lost_agent_gives_its_chains_back(store: &dyn Store) {
    let run = new_run(store, "lost").await;
    add(store, run, 0, "lost", &[0, 0, 0]).await;
    let claimed = claim(store, "lost", 2, 1).await;
    assert!(apply_finish(store, finish(attempt(&claimed[0]), ChainState::Succeeded)).await);
    assert_eq!(store.release_running(run).await.unwrap(), 1);
    let counts = store.counts(run).await.unwrap();
    assert_eq!(counts, Counts { registered: 2, succeeded: 1, ..Counts::default() });
    assert!(!apply_finish(store, finish(attempt(&claimed[1]), ChainState::Succeeded)).await);
}

async fn a_given_chain_is_running_once(store: &dyn Store) {
    let run = new_run(store, "given").await;
    add(store, run, 0, "given", &[0, 0]).await;
    let start = |seq, number| {
        let attempt = Attempt { chain: ChainKey { run, seq }, number };
        Start { attempt, agent: Name::new("agent"), now: 1 }
    };
    let batch = Batch { starts: vec![start(0, 1), start(0, 1)], ..Batch::default() };
    store.apply(batch).await.unwrap();
    assert_eq!(store.counts(run).await.unwrap(), Counts { registered: 1, running: 1, ..Counts::default() });
    assert!(apply_finish(store, finish(start(0, 1).attempt, ChainState::Succeeded)).await);
    store.apply(Batch { starts: vec![start(0, 2)], ..Batch::default() }).await.unwrap();
    assert_eq!(store.counts(run).await.unwrap(), Counts { registered: 1, succeeded: 1, ..Counts::default() });
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
}

async fn pauses_end(store: &dyn Store) {
    let run = new_run(store, "pauses").await;
    add(store, run, 0, "pauses", &[0]).await;
    let first = claim(store, "pauses", 1, 1).await[0];
    let failure = Some((1, 2, "{}".to_owned()));
    let requeue = Requeue { attempt: attempt(&first), failure, not_before: 100 };
    store.apply(Batch { requeues: vec![requeue], ..Batch::default() }).await.unwrap();
    assert_eq!(store.counts(run).await.unwrap().paused, 1);
    assert!(claim(store, "pauses", 1, 99).await.is_empty());
    assert_eq!(claim(store, "pauses", 1, 100).await[0].attempt, 2);
    assert_eq!(store.failed_attempts(run).await.unwrap().len(), 1);
}

async fn feeds_keep_their_order(store: &dyn Store) {
    let run = new_run(store, "feeds").await;
    add(store, run, 0, "feeds", &[0; 6]).await;
    for c in claim(store, "feeds", 6, 1).await {
        apply_finish(store, finish(attempt(&c), ChainState::Succeeded)).await;
    }
    let feed = |after_chains, chains: &[u64]| Feed { run, after_chains, chains: chains.to_vec() };
    let batch = Batch { feeds: vec![feed(3, &[2, 0]), feed(3, &[1])], ..Batch::default() };
    store.apply(batch).await.unwrap();
    store.apply(Batch { feeds: vec![feed(7, &[5])], ..Batch::default() }).await.unwrap();
    let used: Vec<(u64, u64)> =
        store.feeds(run).await.unwrap().iter().map(|f| (f.chain, f.after_chains)).collect();
    assert_eq!(used, [(2, 3), (0, 3), (1, 3), (5, 7)]);
}

async fn counts_equal_the_truth(store: &dyn Store) {
    let run = new_run(store, "counts").await;
    add(store, run, 0, "counts/a", &[0; 10]).await;
    add(store, run, 10, "counts/b", &[0; 5]).await;
    let claimed = claim(store, "counts/a", 4, 1).await;
    apply_finish(store, finish(attempt(&claimed[0]), ChainState::Failed)).await;
    apply_finish(store, finish(attempt(&claimed[1]), ChainState::Succeeded)).await;
    assert_eq!(store.retry_failed(run).await.unwrap(), 1);
    let expected = Counts { registered: 12, running: 2, succeeded: 1, ..Counts::default() };
    assert_eq!(store.counts(run).await.unwrap(), expected);
    let by_class = store.class_counts(run).await.unwrap();
    let registered = by_class.iter().filter(|c| c.state == ChainState::Registered);
    assert_eq!(
        registered.map(|c| (c.class.as_str(), c.count)).collect::<Vec<_>>(),
        [("counts/a", 7), ("counts/b", 5)]
    );
    assert_eq!(store.repair_counts(run).await.unwrap(), 0, "maintained counts must equal the truth");
    assert!(store.chains(run, &ChainFilter::default()).await.unwrap().iter().all(|c| c.key.run == run));
    let from = ChainFilter { from: 12, ..ChainFilter::default() };
    assert_eq!(store.chains(run, &from).await.unwrap()[0].key, ChainKey { run, seq: 12 });
}
