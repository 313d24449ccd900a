//! Chains that several agents execute.

use super::giving::{apply_gift, live, pick};
use super::{add, apply_finish, apply_requeue, chain, claim_for, finish, new_run};
use crate::{Batch, Claimed, Counts, Finish, Start, Store};
use catena_model::chain::{Attempt, ChainKey, ChainState, Phase, RunId};

pub(super) async fn all(store: &dyn Store) {
    the_first_of_several_attempts_counts(store).await;
    a_failure_ends_all_attempts(store).await;
    what_ends_together_counts_in_order(store).await;
    an_agent_executes_a_chain_once(store).await;
    an_attempt_that_is_given_back_leaves_the_others(store).await;
    a_lost_agent_takes_only_its_own_attempts_with_it(store).await;
    attempts_beside_others_can_be_given_away(store).await;
    no_copies_are_left_behind(store).await;
}

/// A run with one chain, which each of these agents executes.
async fn copied(store: &dyn Store, name: &str, agents: &[&str]) -> (RunId, Vec<Attempt>) {
    let run = new_run(store, name).await;
    add(store, run, 0, name, &[3]).await;
    let mut attempts = vec![claim_for(store, agents[0], name, 1, 1).await[0].attempt];
    for agent in &agents[1..] {
        attempts.push(copy(store, run, agent).await.expect("it can be copied").attempt);
    }
    (run, attempts)
}

async fn copy(store: &dyn Store, run: RunId, agent: &str) -> Option<Claimed> {
    let copies = vec![pick(run, &[0], agent)];
    let applied = store.apply(Batch { copies, ..Batch::default() }).await.expect("chains can be copied");
    applied.copied.into_iter().next().and_then(|mut copied| copied.pop())
}

async fn counts_are_true(store: &dyn Store, run: RunId, expected: Counts) {
    assert_eq!(store.counts(run).await.unwrap(), expected);
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
}

const RUNNING: Counts =
    Counts { registered: 0, running: 1, paused: 0, succeeded: 0, failed: 0, cancelled: 0 };

async fn the_first_of_several_attempts_counts(store: &dyn Store) {
    // Whether it is the newest one or not.
    for (winner, agent) in ["one", "two", "three"].into_iter().enumerate() {
        let (run, attempts) = copied(store, "copies", &["one", "two", "three"]).await;
        assert_eq!(attempts.iter().map(|a| a.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(live(store, run, "one").await, [(0, 1)]);
        assert_eq!(live(store, run, "three").await, [(0, 3)]);
        counts_are_true(store, run, RUNNING).await;
        let history = vec![(Phase::StageIn, 4), (Phase::Running, 5)];
        let end = finish(attempts[winner], ChainState::Succeeded);
        assert!(
            apply_finish(store, Finish { started: 40, ended: 50, history: history.clone(), ..end }).await
        );
        for late in &attempts {
            assert!(!apply_finish(store, finish(*late, ChainState::Succeeded)).await);
            assert!(!apply_requeue(store, *late, None, 0).await);
        }
        let record = chain(store, attempts[0].chain).await;
        assert_eq!((record.state, record.agent.as_deref()), (ChainState::Succeeded, Some(agent)));
        assert_eq!((record.started, record.ended, record.history), (Some(40), Some(50), history));
        for agent in ["one", "two", "three"] {
            assert!(live(store, run, agent).await.is_empty());
        }
        counts_are_true(store, run, Counts { succeeded: 1, ..Counts::default() }).await;
    }
}

async fn a_failure_ends_all_attempts(store: &dyn Store) {
    for state in [ChainState::Failed, ChainState::Cancelled] {
        let (run, attempts) = copied(store, "failing copies", &["one", "two"]).await;
        let failure = Finish { error: Some("{}".to_owned()), ..finish(attempts[0], state) };
        assert!(apply_finish(store, failure).await);
        assert!(!apply_finish(store, finish(attempts[1], ChainState::Succeeded)).await);
        let failed = store.failed_attempts(run).await.unwrap();
        assert_eq!((failed.len(), failed[0].attempt, failed[0].agent.as_deref()), (1, 1, Some("one")));
        let mut expected = Counts::default();
        *expected.of(state) = 1;
        counts_are_true(store, run, expected).await;
        assert_eq!(store.retry_failed(run).await.unwrap(), 1);
        assert!(!apply_finish(store, finish(attempts[1], ChainState::Succeeded)).await);
        let again = claim_for(store, "one", "failing copies", 1, 1).await;
        assert_eq!(again[0].attempt.number, 3, "no number is given out twice");
        store.delete_run(run).await.unwrap();
    }
}

async fn what_ends_together_counts_in_order(store: &dyn Store) {
    let (_, attempts) = copied(store, "together", &["one", "two"]).await;
    let end =
        |attempt, result: &[u8]| Finish { result: result.to_vec(), ..finish(attempt, ChainState::Succeeded) };
    let nobody = Attempt { number: 9, ..attempts[0] };
    let finishes = vec![end(nobody, b"-"), end(attempts[0], b"first"), end(attempts[1], b"second")];
    let applied = store.apply(Batch { finishes, ..Batch::default() }).await.unwrap();
    assert_eq!(applied.finished, [false, true, false]);
    assert_eq!(chain(store, attempts[0].chain).await.result, b"first");

    let (_, attempts) = copied(store, "alone", &["one"]).await;
    let nobody = Attempt { number: 9, ..attempts[0] };
    let finishes = vec![end(nobody, b"-"), end(attempts[0], b"first"), end(attempts[0], b"second")];
    let applied = store.apply(Batch { finishes, ..Batch::default() }).await.unwrap();
    assert_eq!(applied.finished, [false, true, false]);
    assert_eq!(chain(store, attempts[0].chain).await.result, b"first");
}

async fn an_agent_executes_a_chain_once(store: &dyn Store) {
    let (run, attempts) = copied(store, "once", &["one", "two"]).await;
    assert_eq!(copy(store, run, "one").await, None);
    assert_eq!(copy(store, run, "two").await, None);
    let copies = vec![pick(run, &[0, 0], "three"), pick(run, &[0], "three"), pick(run, &[0], "four")];
    let applied = store.apply(Batch { copies, ..Batch::default() }).await.unwrap();
    let numbers = |c: &Vec<Claimed>| c.iter().map(|c| c.attempt.number).collect::<Vec<_>>();
    assert_eq!(applied.copied.iter().map(numbers).collect::<Vec<_>>(), [vec![3], vec![], vec![4]]);
    let copied = &applied.copied[0][0];
    assert_eq!((copied.rank, copied.failures, copied.payload.as_slice()), (3000, 0, &[3u8][..]));
    assert!(apply_finish(store, finish(attempts[1], ChainState::Succeeded)).await);
    assert_eq!(copy(store, run, "five").await, None, "it is over");
    add(store, run, 1, "once", &[0]).await;
    let copies = vec![pick(run, &[1], "five")];
    let applied = store.apply(Batch { copies, ..Batch::default() }).await.unwrap();
    assert!(applied.copied[0].is_empty(), "nobody executes it");
    let start = Start { attempt: attempts[0], agent: "five".into(), now: 1 };
    store.apply(Batch { starts: vec![start], ..Batch::default() }).await.unwrap();
    assert!(live(store, run, "five").await.is_empty());
    counts_are_true(store, run, Counts { registered: 1, succeeded: 1, ..Counts::default() }).await;
}

async fn an_attempt_that_is_given_back_leaves_the_others(store: &dyn Store) {
    let (run, attempts) = copied(store, "given back", &["one", "two", "three"]).await;
    assert!(apply_requeue(store, attempts[2], Some("{}"), 100).await, "the newest one");
    assert!(!apply_requeue(store, attempts[2], None, 0).await);
    let record = chain(store, attempts[0].chain).await;
    assert_eq!((record.state, record.attempt, record.agent), (ChainState::Running, 3, None));
    assert_eq!((record.failures, record.not_before), (1, 0));
    let again = copy(store, run, "three").await.unwrap();
    assert_eq!((again.attempt.number, again.failures), (4, 1), "it may try once more");
    assert!(apply_requeue(store, attempts[0], None, 0).await, "the oldest one");
    assert_eq!(live(store, run, "two").await, [(0, 2)]);
    assert!(apply_requeue(store, again.attempt, None, 0).await);
    counts_are_true(store, run, RUNNING).await;
    assert!(apply_requeue(store, attempts[1], None, 300).await, "the last one");
    let record = chain(store, attempts[0].chain).await;
    assert_eq!((record.state, record.not_before), (ChainState::Paused, 300));
    assert_eq!((record.agent.as_deref(), record.failures), (Some("two"), 1));
    counts_are_true(store, run, Counts { paused: 1, ..Counts::default() }).await;
    store.waiting(300).await.unwrap();
    let next = claim_for(store, "one", "given back", 1, 1).await;
    assert_eq!(next[0].attempt.number, 5);
    assert!(apply_requeue(store, next[0].attempt, None, 0).await);
    counts_are_true(store, run, Counts { registered: 1, ..Counts::default() }).await;
    let failed = store.failed_attempts(run).await.unwrap();
    assert_eq!((failed.len(), failed[0].attempt, failed[0].agent.as_deref()), (1, 3, Some("three")));

    let (run, attempts) = copied(store, "given back together", &["one", "two"]).await;
    let back = |attempt| crate::Requeue { attempt, failure: None, not_before: 0 };
    let requeues = vec![back(attempts[1]), back(attempts[0]), back(attempts[1])];
    let applied = store.apply(Batch { requeues, ..Batch::default() }).await.unwrap();
    assert_eq!(applied.requeued, [true, true, false]);
    counts_are_true(store, run, Counts { registered: 1, ..Counts::default() }).await;
}

async fn a_lost_agent_takes_only_its_own_attempts_with_it(store: &dyn Store) {
    let lose = async |agent: &str, run: RunId| {
        let released = store.release_agent(&agent.into(), 2, "{}", 60).await.unwrap();
        let ours = released.into_iter().filter(|c| c.key.run == run);
        ours.map(|c| (c.attempt, c.state, c.losses)).collect::<Vec<_>>()
    };
    let (run, attempts) = copied(store, "losses", &["elder", "middle", "newest"]).await;
    assert!(lose("elder", run).await.is_empty(), "others go on");
    assert!(!apply_finish(store, finish(attempts[0], ChainState::Succeeded)).await);
    assert!(lose("newest", run).await.is_empty());
    assert!(!apply_finish(store, finish(attempts[2], ChainState::Succeeded)).await);
    let record = chain(store, attempts[0].chain).await;
    assert_eq!((record.state, record.agent, record.losses), (ChainState::Running, None, 0));
    assert_eq!(lose("middle", run).await, [(2, ChainState::Registered, 1)]);
    counts_are_true(store, run, Counts { registered: 1, ..Counts::default() }).await;

    let fourth = claim_for(store, "elder", "losses", 1, 1).await[0].attempt;
    let fifth = copy(store, run, "newest").await.unwrap().attempt;
    assert_eq!((fourth.number, fifth.number), (4, 5));
    assert!(lose("newest", run).await.is_empty());
    assert_eq!(lose("elder", run).await, [(4, ChainState::Failed, 2)], "so many agents were lost");
    let failed = store.failed_attempts(run).await.unwrap();
    let mut lost: Vec<(u32, &str, &str)> =
        failed.iter().map(|f| (f.attempt, f.agent.as_deref().unwrap_or(""), f.error.as_str())).collect();
    lost.sort_unstable();
    let expected =
        [(1, "elder", ""), (2, "middle", ""), (3, "newest", ""), (4, "elder", "{}"), (5, "newest", "")];
    assert_eq!(lost, expected);
    let record = chain(store, attempts[0].chain).await;
    assert_eq!((record.agent.as_deref(), record.ended), (Some("elder"), Some(60)));
    counts_are_true(store, run, Counts { failed: 1, ..Counts::default() }).await;
}

async fn attempts_beside_others_can_be_given_away(store: &dyn Store) {
    let (run, attempts) = copied(store, "given copies", &["one", "two", "three"]).await;
    for (attempt, from, to) in [(0, "one", "two"), (0, "one", "three"), (2, "three", "one")] {
        assert!(!apply_gift(store, attempts[attempt], from, to).await, "{to} executes it already");
    }
    assert!(apply_gift(store, attempts[0], "one", "four").await);
    assert!(apply_gift(store, attempts[2], "three", "one").await);
    assert_eq!(live(store, run, "four").await, [(0, 1)]);
    assert_eq!(live(store, run, "one").await, [(0, 3)]);
    assert!(apply_requeue(store, attempts[2], None, 0).await);
    assert!(!apply_gift(store, attempts[2], "one", "five").await, "it is over");
    assert!(apply_finish(store, finish(attempts[0], ChainState::Succeeded)).await);
    assert_eq!(chain(store, attempts[0].chain).await.agent.as_deref(), Some("four"));
}

async fn no_copies_are_left_behind(store: &dyn Store) {
    let (run, attempts) = copied(store, "released", &["one", "two"]).await;
    assert_eq!(store.release_running(run).await.unwrap(), 1);
    counts_are_true(store, run, Counts { registered: 1, ..Counts::default() }).await;
    for attempt in attempts {
        assert!(!apply_finish(store, finish(attempt, ChainState::Succeeded)).await);
    }
    let third = claim_for(store, "three", "released", 1, 1).await[0].attempt;
    assert_eq!(third.number, 3);
    assert!(live(store, run, "one").await.is_empty());
    assert!(apply_requeue(store, third, None, 0).await);
    counts_are_true(store, run, Counts { registered: 1, ..Counts::default() }).await;

    let (run, _) = copied(store, "deleted", &["one", "two"]).await;
    store.delete_run(run).await.unwrap();
    assert!(live(store, run, "one").await.is_empty() && live(store, run, "two").await.is_empty());
    assert!(store.chain(ChainKey { run, seq: 0 }).await.unwrap().is_none());
}
