//! Tests that every implementation of [`Store`] must pass.

mod catalogue;
mod compositions;
mod copies;
mod giving;
mod histories;

use crate::{
    AgentRecord, Batch, ChainFilter, ChainRecord, Claim, Claimed, Counts, Feed, Finish, Instance, Machine,
    MachineState, NewChain, NewChains, NewRun, Requeue, RunChange, RunState, Start, Store, StoreError, Token,
    rank,
};
use catena_model::chain::{Attempt, ChainKey, ChainState, DataAddress, RunId};
use catena_model::{Name, Resources};
use std::collections::HashSet;
use std::time::Duration;

/// The tables of both databases that are about runs, and how they name the run. Nothing of a run that was deleted may
/// be left in them.
pub const TABLES_OF_RUNS: [(&str, &str); 7] = [
    ("chain", "id >> 32"),
    ("payload", "id >> 32"),
    ("result", "id >> 32"),
    ("failed_attempt", "id >> 32"),
    ("copy", "id >> 32"),
    ("class_count", "run"),
    ("file", "run"),
];

/// Runs all of them against an empty store.
pub async fn all(store: &dyn Store) {
    runs_are_kept_and_changed(store).await;
    chains_are_claimed_by_rank(store).await;
    only_the_live_attempt_commits_and_only_once(store).await;
    a_failure_can_be_a_result(store).await;
    a_lost_agent_gives_its_chains_back(store).await;
    a_given_chain_is_running_once(store).await;
    pauses_end(store).await;
    feeds_keep_their_order(store).await;
    counts_equal_the_truth(store).await;
    results_wait_until_they_are_used(store).await;
    waiting_chains_are_known_by_class(store).await;
    a_run_can_be_held_reordered_and_deleted(store).await;
    the_number_of_a_run_is_never_given_out_again(store).await;
    a_run_has_one_controller(store).await;
    an_agent_has_one_scheduler(store).await;
    a_chain_that_loses_too_many_agents_is_given_up(store).await;
    a_duty_has_one_holder(store).await;
    machines_and_tokens_are_kept(store).await;
    giving::all(store).await;
    copies::all(store).await;
    catalogue::all(store).await;
    histories::all(store).await;
    compositions::all(store).await;
}

/// A store and another connection to the same one give each chain away once.
pub async fn claims_are_shared_without_overlap(store: &dyn Store, other: &dyn Store) {
    let run = new_run(store, "shared").await;
    add(store, run, 0, "shared", &[0; 200]).await;
    let mut seen = HashSet::new();
    for _ in 0..10 {
        let first = claim(store, "shared", 10, 1).await;
        let second = claim(other, "shared", 10, 1).await;
        assert!(first.iter().chain(&second).all(|c| seen.insert(c.attempt.chain)), "given away twice");
    }
    assert_eq!(seen.len(), 200);
}

async fn new_run(store: &dyn Store, name: &str) -> RunId {
    let run = NewRun { name: name.to_owned(), created: 5, definition: b"text".to_vec(), ..NewRun::default() };
    store.create_run(&run).await.expect("a run can be created")
}

async fn add(store: &dyn Store, run: RunId, first: u64, class: &str, priorities: &[i32]) {
    let chain = |p: &i32| NewChain {
        class: class.into(),
        priority: *p,
        rank: rank(*p, 0, Duration::from_secs(1)),
        payload: vec![*p as u8],
    };
    let chains = NewChains { run, first, chains: priorities.iter().map(chain).collect() };
    store.apply(Batch { chains: vec![chains], ..Batch::default() }).await.expect("chains can be added");
}

async fn claim(store: &dyn Store, class: &str, limit: usize, now: i64) -> Vec<Claimed> {
    claim_for(store, "agent", class, limit, now).await
}

async fn claim_for(store: &dyn Store, agent: &str, class: &str, limit: usize, now: i64) -> Vec<Claimed> {
    let claim = Claim { class: class.into(), limit, agent: agent.into(), now };
    let applied = store.apply(Batch { claims: vec![claim], ..Batch::default() }).await;
    applied.expect("chains can be claimed").claimed.remove(0)
}

fn finish(attempt: Attempt, state: ChainState) -> Finish {
    Finish {
        attempt,
        state,
        started: 1,
        ended: 2,
        result: b"r".to_vec(),
        error: None,
        files: Vec::new(),
        history: Vec::new(),
    }
}

async fn apply_finish(store: &dyn Store, f: Finish) -> bool {
    let applied = store.apply(Batch { finishes: vec![f], ..Batch::default() }).await;
    applied.expect("attempts can be finished").finished[0]
}

async fn apply_requeue(store: &dyn Store, attempt: Attempt, failure: Option<&str>, not_before: i64) -> bool {
    let failure = failure.map(|error| (1, 2, error.to_owned()));
    let requeue = Requeue { attempt, failure, not_before };
    let applied = store.apply(Batch { requeues: vec![requeue], ..Batch::default() }).await;
    applied.expect("attempts can be given back").requeued[0]
}

async fn chain(store: &dyn Store, key: ChainKey) -> ChainRecord {
    store.chain(key).await.expect("chains can be read").expect("there is such a chain")
}

async fn runs_are_kept_and_changed(store: &dyn Store) {
    let id = new_run(store, "kept").await;
    let run = store.run(id).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::Running);
    assert_eq!(store.definition(id).await.unwrap().as_deref(), Some(&b"text"[..]));
    assert_eq!(store.definition(RunId(i64::from(u32::MAX))).await.unwrap(), None);
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

async fn chains_are_claimed_by_rank(store: &dyn Store) {
    let run = new_run(store, "order").await;
    add(store, run, 0, "order/a", &[0, 5, 0, 9]).await;
    add(store, run, 4, "order/b", &[7]).await;
    let claimed = claim(store, "order/a", 3, 10).await;
    let seqs: Vec<u64> = claimed.iter().map(|c| c.attempt.chain.seq).collect();
    assert_eq!(seqs, [3, 1, 0]);
    assert!(claimed.iter().all(|c| c.attempt.number == 1));
    assert_eq!(claimed[0].payload, [9]);
    assert_eq!(claim(store, "order/a", 3, 10).await.len(), 1);
    assert!(claim(store, "order/unknown", 3, 10).await.is_empty());
    let filter = ChainFilter { payload: true, state: Some(ChainState::Registered), ..ChainFilter::default() };
    let waiting = store.chains(run, &filter).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].payload.as_slice()), (1, &[7u8][..]));
}

async fn only_the_live_attempt_commits_and_only_once(store: &dyn Store) {
    let run = new_run(store, "fencing").await;
    add(store, run, 0, "fencing", &[0]).await;
    let first = claim(store, "fencing", 1, 1).await.remove(0);
    let requeue = Requeue { attempt: first.attempt, failure: None, not_before: 0 };
    store.apply(Batch { requeues: vec![requeue], ..Batch::default() }).await.unwrap();
    let second = claim(store, "fencing", 1, 2).await.remove(0);
    assert_eq!((second.attempt.number, second.failures), (2, 0), "what was given back has not failed");
    assert!(
        !apply_finish(store, finish(first.attempt, ChainState::Succeeded)).await,
        "a late answer must not count"
    );
    assert!(apply_finish(store, finish(second.attempt, ChainState::Succeeded)).await);
    assert!(
        !apply_finish(store, finish(second.attempt, ChainState::Failed)).await,
        "the second answer must not count"
    );
    let filter = ChainFilter { result: true, ..ChainFilter::default() };
    let chain = store.chains(run, &filter).await.unwrap().remove(0);
    assert_eq!(
        (chain.state, chain.result.as_slice(), chain.ended),
        (ChainState::Succeeded, &b"r"[..], Some(2))
    );
}

async fn a_failure_can_be_a_result(store: &dyn Store) {
    let run = new_run(store, "failure").await;
    add(store, run, 0, "failure", &[0, 0]).await;
    let claimed = claim(store, "failure", 2, 1).await;
    assert!(apply_finish(store, finish(claimed[0].attempt, ChainState::Failed)).await);
    let silent = Finish { result: Vec::new(), ..finish(claimed[1].attempt, ChainState::Failed) };
    assert!(apply_finish(store, silent).await);
    assert_eq!(store.counts(run).await.unwrap(), Counts { failed: 2, ..Counts::default() });
    let unused = store.unused_results(run, 10).await.unwrap();
    assert_eq!(unused, [(claimed[0].attempt.chain.seq, b"r".to_vec())]);
    let feed = Feed { run, first: 0, after_chains: 2, chains: vec![claimed[0].attempt.chain.seq] };
    store.apply(Batch { feeds: vec![feed], ..Batch::default() }).await.unwrap();
    assert_eq!(store.retry_failed(run).await.unwrap(), 2);
    assert!(chain(store, claimed[0].attempt.chain).await.result.is_empty(), "it may end otherwise now");
    assert!(store.feeds(run).await.unwrap().is_empty());
    for c in claim(store, "failure", 2, 3).await {
        let success = Finish { result: b"s".to_vec(), ..finish(c.attempt, ChainState::Succeeded) };
        assert!(apply_finish(store, success).await);
    }
    let unused = store.unused_results(run, 10).await.unwrap();
    assert_eq!(unused, [(0, b"s".to_vec()), (1, b"s".to_vec())]);
}

async fn a_lost_agent_gives_its_chains_back(store: &dyn Store) {
    let run = new_run(store, "lost").await;
    add(store, run, 0, "lost", &[0, 0, 0]).await;
    let claimed = claim(store, "lost", 2, 1).await;
    assert!(apply_finish(store, finish(claimed[0].attempt, ChainState::Succeeded)).await);
    assert_eq!(store.release_running(run).await.unwrap(), 1);
    let counts = store.counts(run).await.unwrap();
    assert_eq!(counts, Counts { registered: 2, succeeded: 1, ..Counts::default() });
    assert!(!apply_finish(store, finish(claimed[1].attempt, ChainState::Succeeded)).await);
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
    let first = claim(store, "pauses", 1, 1).await.remove(0);
    let failure = Some((1, 2, "{}".to_owned()));
    let requeue = Requeue { attempt: first.attempt, failure, not_before: 100 };
    store.apply(Batch { requeues: vec![requeue], ..Batch::default() }).await.unwrap();
    assert_eq!(store.counts(run).await.unwrap().paused, 1);
    store.waiting(99).await.unwrap();
    assert!(claim(store, "pauses", 1, 99).await.is_empty());
    store.waiting(100).await.unwrap();
    let second = claim(store, "pauses", 1, 100).await.remove(0);
    assert_eq!((second.attempt.number, second.failures), (2, 1));
    assert_eq!(store.failed_attempts(run).await.unwrap().len(), 1);
    assert!(apply_requeue(store, second.attempt, None, 200).await);
    assert_eq!(store.counts(run).await.unwrap().paused, 1, "it may have to wait though it has not failed");
    store.waiting(199).await.unwrap();
    assert!(claim(store, "pauses", 1, 199).await.is_empty());
    store.waiting(200).await.unwrap();
    let third = claim(store, "pauses", 1, 200).await.remove(0);
    assert_eq!((third.attempt.number, third.failures), (3, 1));
    assert_eq!(store.failed_attempts(run).await.unwrap().len(), 1);
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
}

async fn feeds_keep_their_order(store: &dyn Store) {
    let run = new_run(store, "feeds").await;
    add(store, run, 0, "feeds", &[0; 6]).await;
    for c in claim(store, "feeds", 6, 1).await {
        apply_finish(store, finish(c.attempt, ChainState::Succeeded)).await;
    }
    let feed =
        |first, after_chains, chains: &[u64]| Feed { run, first, after_chains, chains: chains.to_vec() };
    let batch = Batch { feeds: vec![feed(0, 3, &[2, 0]), feed(2, 3, &[1])], ..Batch::default() };
    store.apply(batch).await.unwrap();
    store.apply(Batch { feeds: vec![feed(3, 7, &[5])], ..Batch::default() }).await.unwrap();
    let used: Vec<(u64, u64)> =
        store.feeds(run).await.unwrap().iter().map(|f| (f.chain, f.after_chains)).collect();
    assert_eq!(used, [(2, 3), (0, 3), (1, 3), (5, 7)]);
}

async fn counts_equal_the_truth(store: &dyn Store) {
    let run = new_run(store, "counts").await;
    add(store, run, 0, "counts/a", &[0; 10]).await;
    add(store, run, 10, "counts/b", &[0; 5]).await;
    let claimed = claim(store, "counts/a", 4, 1).await;
    apply_finish(store, finish(claimed[0].attempt, ChainState::Failed)).await;
    apply_finish(store, finish(claimed[1].attempt, ChainState::Succeeded)).await;
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

async fn results_wait_until_they_are_used(store: &dyn Store) {
    let run = new_run(store, "unused").await;
    add(store, run, 0, "unused", &[0; 3]).await;
    for c in claim(store, "unused", 3, 1).await {
        apply_finish(store, finish(c.attempt, ChainState::Succeeded)).await;
    }
    let all: Vec<u64> = store.unused_results(run, 10).await.unwrap().iter().map(|r| r.0).collect();
    assert_eq!(all, [0, 1, 2]);
    let feed = Feed { run, first: 0, after_chains: 3, chains: vec![1] };
    store.apply(Batch { feeds: vec![feed], ..Batch::default() }).await.unwrap();
    assert_eq!(store.unused_results(run, 1).await.unwrap(), [(0, b"r".to_vec())]);
    assert_eq!(store.unused_results(run, 10).await.unwrap().len(), 2);
    assert_eq!(store.results(run, &[2, 7]).await.unwrap(), [(2, b"r".to_vec())]);
}

async fn waiting_of(store: &dyn Store, class: &str) -> Option<(u64, i64)> {
    let waiting = store.waiting(0).await.unwrap();
    waiting.iter().find(|w| w.class == class).map(|w| (w.count, w.rank))
}

async fn waiting_chains_are_known_by_class(store: &dyn Store) {
    let (one, two) = (new_run(store, "waiting").await, new_run(store, "waiting too").await);
    add(store, one, 0, "waiting/a", &[1, 2]).await;
    add(store, two, 0, "waiting/a", &[3]).await;
    assert_eq!(waiting_of(store, "waiting/a").await, Some((3, 3000)));
    claim(store, "waiting/a", 2, 1).await;
    assert_eq!(waiting_of(store, "waiting/a").await, Some((1, 1000)));
    claim(store, "waiting/a", 2, 1).await;
    assert_eq!(waiting_of(store, "waiting/a").await, None);
}

async fn a_run_can_be_held_reordered_and_deleted(store: &dyn Store) {
    let run = new_run(store, "held").await;
    add(store, run, 0, "held", &[0, 0]).await;
    store.change_run(run, &RunChange { held: Some(true), ..RunChange::default() }).await.unwrap();
    assert!(claim(store, "held", 2, 1).await.is_empty(), "nobody gets chains of a run that is held");
    assert_eq!(store.move_chains(run, ChainState::Registered, ChainState::Paused).await.unwrap(), 2);
    assert_eq!(waiting_of(store, "held").await, None, "a held run does not wait for agents");
    store.prioritise(run, 5, Duration::from_secs(1)).await.unwrap();
    store.change_run(run, &RunChange { held: Some(false), ..RunChange::default() }).await.unwrap();
    assert_eq!(waiting_of(store, "held").await, Some((2, 5000)));
    assert_eq!(store.run(run).await.unwrap().unwrap().priority, 5);
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
    store.delete_run(run).await.unwrap();
    assert!(store.run(run).await.unwrap().is_none());
    assert_eq!(waiting_of(store, "held").await, None);
    assert_eq!(store.counts(run).await.unwrap(), Counts::default());
}

async fn enlist(store: &dyn Store, id: &str, until: i64) -> Name {
    let instance = Instance { id: id.into(), roles: "scheduler".to_owned(), until, ..Instance::default() };
    store.enlist(&instance).await.unwrap();
    instance.id
}

async fn a_run_has_one_controller(store: &dyn Store) {
    let run = new_run(store, "controlled").await;
    let (first, second) = (enlist(store, "c1", 100).await, enlist(store, "c2", 300).await);
    let ours = |runs: Vec<crate::Run>| runs.iter().any(|r| r.id == run);
    assert!(ours(store.adopt_runs(&first, &[], 50).await.unwrap()));
    assert!(!ours(store.adopt_runs(&second, &[], 50).await.unwrap()), "its controller is alive");
    let plan = |instance: &Name, first| {
        let chain = NewChain { class: "controlled".into(), priority: 0, rank: 0, payload: Vec::new() };
        let chains = vec![NewChains { run, first, chains: vec![chain] }];
        store.apply(Batch { chains, instance: Some(instance.clone()), ..Batch::default() })
    };
    assert!(ours(store.adopt_runs(&first, &[], 50).await.unwrap()), "its own it may have again");
    assert!(!ours(store.adopt_runs(&first, &[run], 50).await.unwrap()), "unless it has them");
    plan(&first, 0).await.unwrap();
    assert!(ours(store.adopt_runs(&second, &[], 150).await.unwrap()), "its controller is dead");
    assert!(
        matches!(plan(&first, 1).await, Err(StoreError::TakenOver { .. })),
        "a dead controller must not plan"
    );
    plan(&second, 1).await.unwrap();
    assert_eq!(store.counts(run).await.unwrap().registered, 2);
    store.resign(&second).await.unwrap();
    assert!(ours(store.adopt_runs(&first, &[], 50).await.unwrap()), "who resigns frees everything at once");
    let instances = store.instances(50).await.unwrap();
    assert!(instances.iter().any(|i| i.id == first) && instances.iter().all(|i| i.id != second));
    let end = RunChange { state: Some(RunState::Succeeded), ..RunChange::default() };
    store.change_run(run, &end).await.unwrap();
}

async fn an_agent_has_one_scheduler(store: &dyn Store) {
    let (first, second) = (enlist(store, "s1", 100).await, enlist(store, "s2", 300).await);
    let agent = |incarnation, scheduler: &Name| AgentRecord {
        id: "worker".into(),
        incarnation,
        capabilities: vec!["gpu".into()],
        resources: Resources { cpus: 2000, ..Resources::default() },
        scheduler: Some(scheduler.clone()),
        data: Some(DataAddress { url: "http://worker:1".into(), token: incarnation.to_string().into() }),
        ..AgentRecord::default()
    };
    store.greet_agent(&agent(7, &first), 5).await.unwrap();
    store.greet_agent(&AgentRecord { data: None, ..agent(7, &first) }, 6).await.unwrap();
    let known = store.agents().await.unwrap().into_iter().find(|a| a.id == "worker").unwrap();
    assert_eq!((known.scheduler, known.seen), (None, 6), "nobody looks after it yet");
    assert_eq!(known.data, agent(7, &first).data, "where it serves it need not say every time");
    store.remove_agent(&"worker".into(), 7).await.unwrap();
    assert_eq!(store.adopt_agent(&agent(6, &first), 9).await.unwrap(), Some(6));
    assert_eq!(store.adopt_agent(&agent(7, &first), 10).await.unwrap(), Some(6), "it was started again");
    assert_eq!(store.adopt_agent(&agent(7, &second), 20).await.unwrap(), None, "its scheduler is alive");
    let known = store.agents().await.unwrap().into_iter().find(|a| a.id == "worker").unwrap();
    assert_eq!((known.joined, known.incarnation, known.resources.cpus), (10, 7, 2000));
    assert_eq!(known.data.unwrap().token, "7");
    let run = new_run(store, "schedulers").await;
    add(store, run, 0, "schedulers", &[0; 4]).await;
    let claim = |instance: &Name| {
        let claim = Claim { class: "schedulers".into(), limit: 1, agent: "worker".into(), now: 1 };
        store.apply(Batch { claims: vec![claim], instance: Some(instance.clone()), ..Batch::default() })
    };
    assert_eq!(claim(&first).await.unwrap().claimed[0].len(), 1);
    assert!(store.adopt_orphans(&second, 50).await.unwrap().is_empty());
    let orphans = store.adopt_orphans(&second, 150).await.unwrap();
    assert!(orphans.iter().any(|a| a.id == "worker"));
    assert!(claim(&first).await.unwrap().claimed[0].is_empty(), "who lost an agent must not give it work");
    assert_eq!(claim(&second).await.unwrap().claimed[0].len(), 1);
    assert_eq!(store.chains_of(&["worker".into()]).await.unwrap().len(), 2);
    let names = [Name::new("worker"), Name::new("nobody")];
    assert!(store.agents_seen(&first, &names, 160).await.unwrap().is_empty());
    assert_eq!(store.agents_seen(&second, &names, 160).await.unwrap(), ["worker"]);
    store.remove_agent(&"worker".into(), 6).await.unwrap();
    assert!(store.agents().await.unwrap().iter().any(|a| a.id == "worker"), "another incarnation stays");
    store.remove_agent(&"worker".into(), 7).await.unwrap();
    assert!(store.agents().await.unwrap().iter().all(|a| a.id != "worker"));
}

async fn the_number_of_a_run_is_never_given_out_again(store: &dyn Store) {
    let gone = new_run(store, "gone").await;
    store.delete_run(gone).await.unwrap();
    assert!(new_run(store, "next").await > gone, "somebody may still speak of the one that is gone");
}

async fn a_chain_that_loses_too_many_agents_is_given_up(store: &dyn Store) {
    let run = new_run(store, "poison").await;
    add(store, run, 0, "poison", &[0]).await;
    for loss in 1..=2 {
        let claimed = claim(store, "poison", 1, loss).await;
        let released = store.release_agent(&"agent".into(), 2, "{}", 5).await.unwrap();
        let ours: Vec<_> = released.iter().filter(|c| c.key.run == run).collect();
        assert_eq!(ours.len(), 1);
        let expected = if loss == 2 { ChainState::Failed } else { ChainState::Registered };
        assert_eq!((ours[0].state, i64::from(ours[0].losses)), (expected, loss));
        assert!(!apply_finish(store, finish(claimed[0].attempt, ChainState::Succeeded)).await);
    }
    let failed = store.failed_attempts(run).await.unwrap();
    let errors: Vec<(u32, &str)> = failed.iter().map(|f| (f.attempt, f.error.as_str())).collect();
    assert_eq!(errors, [(1, ""), (2, "{}")], "a loss that costs nothing is noted as well");
    assert_eq!(store.counts(run).await.unwrap(), Counts { failed: 1, ..Counts::default() });
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
}

async fn a_duty_has_one_holder(store: &dyn Store) {
    let (a, b) = (Name::new("a"), Name::new("b"));
    assert!(store.take_duty("fleet", &a, 100, 0).await.unwrap());
    assert!(!store.take_duty("fleet", &b, 150, 50).await.unwrap());
    assert!(store.take_duty("fleet", &a, 200, 90).await.unwrap());
    assert!(store.take_duty("fleet", &b, 300, 200).await.unwrap());
    store.resign(&b).await.unwrap();
    assert!(store.take_duty("fleet", &a, 300, 201).await.unwrap());
}

async fn machines_and_tokens_are_kept(store: &dyn Store) {
    let mut machine = Machine {
        id: "m1".into(),
        setup: "small".into(),
        state: MachineState::Creating,
        handle: None,
        created: 1,
        changed: 1,
        reason: None,
    };
    store.put_machine(&machine).await.unwrap();
    machine.state = MachineState::Failed;
    machine.handle = Some("4711".to_owned());
    machine.reason = Some("no room".to_owned());
    store.put_machine(&machine).await.unwrap();
    assert_eq!(store.machines().await.unwrap(), [machine]);
    let mut token = Token {
        name: "ci".to_owned(),
        role: "viewer".to_owned(),
        hash: "abc".to_owned(),
        created: 1,
        expires: None,
    };
    store.put_token(&token).await.unwrap();
    token.expires = Some(9);
    store.put_token(&token).await.unwrap();
    assert_eq!(store.tokens().await.unwrap(), [token]);
    assert!(store.remove_token("ci").await.unwrap());
    assert!(!store.remove_token("ci").await.unwrap());
}
