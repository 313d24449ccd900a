//! Who is given what: certain chains, gifts, and what waits for an agent.

use super::{add, chain, claim, claim_for, enlist, finish, new_run};
use crate::{AgentRecord, Batch, Claimed, Counts, Gift, Pick, RunChange, Store};
use catena_model::chain::{Attempt, ChainKey, ChainState, RunId};

pub(super) async fn all(store: &dyn Store) {
    certain_chains_go_to_certain_agents(store).await;
    nobody_gets_certain_chains_of_a_run_that_waits(store).await;
    who_lost_an_agent_must_not_pick_for_it(store).await;
    an_attempt_can_be_given_away(store).await;
    waiting_chains_are_known_by_rank(store).await;
    payloads_are_read_alone(store).await;
}

pub(super) fn pick(run: RunId, chains: &[u64], agent: &str) -> Pick {
    let key = |seq: &u64| ChainKey { run, seq: *seq };
    Pick { chains: chains.iter().map(key).collect(), agent: agent.into(), now: 7 }
}

async fn apply_picks(store: &dyn Store, picks: Vec<Pick>) -> Vec<Vec<Claimed>> {
    store.apply(Batch { picks, ..Batch::default() }).await.expect("chains can be picked").picked
}

pub(super) async fn apply_gift(store: &dyn Store, attempt: Attempt, from: &str, to: &str) -> bool {
    let gift = Gift { attempt, from: from.into(), to: to.into() };
    let applied = store.apply(Batch { gifts: vec![gift], ..Batch::default() }).await;
    applied.expect("attempts can be given away").given[0]
}

/// The chains and attempts of an agent in a run.
pub(super) async fn live(store: &dyn Store, run: RunId, agent: &str) -> Vec<(u64, u32)> {
    let chains = store.chains_of(&[agent.into()]).await.unwrap();
    assert!(chains.iter().all(|c| c.agent.as_deref() == Some(agent) && c.state == ChainState::Running));
    chains.iter().filter(|c| c.key.run == run).map(|c| (c.key.seq, c.attempt)).collect()
}

fn seqs(claimed: &[Claimed]) -> Vec<u64> {
    claimed.iter().map(|c| c.attempt.chain.seq).collect()
}

async fn certain_chains_go_to_certain_agents(store: &dyn Store) {
    let run = new_run(store, "picks").await;
    add(store, run, 0, "picks/a", &[0, 1, 2]).await;
    add(store, run, 3, "picks/b", &[9]).await;
    let picks = vec![pick(run, &[0, 3, 2, 3, 17], "one"), pick(run, &[2, 1], "two")];
    let picked = apply_picks(store, picks).await;
    assert_eq!(seqs(&picked[0]), [3, 2, 0], "highest rank first");
    assert_eq!(seqs(&picked[1]), [1], "each chain goes to one agent");
    assert_eq!((picked[0][0].payload.as_slice(), picked[0][0].rank), (&[9u8][..], 9000));
    assert!(picked.iter().flatten().all(|c| c.attempt.number == 1 && c.failures == 0));
    assert_eq!(live(store, run, "one").await, [(0, 1), (2, 1), (3, 1)]);
    let given = chain(store, ChainKey { run, seq: 1 }).await;
    assert_eq!((given.agent.as_deref(), given.started, given.ended), (Some("two"), Some(7), None));
    assert_eq!(store.counts(run).await.unwrap(), Counts { running: 4, ..Counts::default() });
    assert_eq!(store.repair_counts(run).await.unwrap(), 0);
}

async fn nobody_gets_certain_chains_of_a_run_that_waits(store: &dyn Store) {
    for change in [
        RunChange { held: Some(true), ..RunChange::default() },
        RunChange { cancel_requested: Some(true), ..RunChange::default() },
    ] {
        let run = new_run(store, "stopped").await;
        add(store, run, 0, "stopped", &[0, 0]).await;
        apply_picks(store, vec![pick(run, &[1], "one")]).await;
        store.change_run(run, &change).await.unwrap();
        assert!(apply_picks(store, vec![pick(run, &[0], "one")]).await[0].is_empty());
        let copies = vec![pick(run, &[1], "two")];
        let applied = store.apply(Batch { copies, ..Batch::default() }).await.unwrap();
        assert!(applied.copied[0].is_empty(), "nothing new is started, whoever executes it already");
    }
}

async fn who_lost_an_agent_must_not_pick_for_it(store: &dyn Store) {
    let (first, second) = (enlist(store, "p1", 100).await, enlist(store, "p2", 100).await);
    let agent =
        AgentRecord { id: "picker".into(), scheduler: Some(second.clone()), ..AgentRecord::default() };
    assert!(store.adopt_agent(&agent, 50).await.unwrap().is_some());
    let run = new_run(store, "own agents").await;
    add(store, run, 0, "own agents", &[0, 0]).await;
    claim_for(store, "other", "own agents", 1, 1).await;
    for (instance, n) in [(first, 0), (second, 1)] {
        let picks = vec![pick(run, &[1], "picker")];
        let copies = vec![pick(run, &[0], "picker")];
        let batch = Batch { picks, copies, instance: Some(instance), ..Batch::default() };
        let applied = store.apply(batch).await.unwrap();
        assert_eq!((applied.picked[0].len(), applied.copied[0].len()), (n, n));
    }
    store.remove_agent(&"picker".into(), 0).await.unwrap();
}

async fn an_attempt_can_be_given_away(store: &dyn Store) {
    let run = new_run(store, "gifts").await;
    add(store, run, 0, "gifts", &[0, 0]).await;
    let claimed = claim_for(store, "giver", "gifts", 1, 1).await;
    let attempt = claimed[0].attempt;
    assert!(!apply_gift(store, attempt, "stranger", "taker").await, "nobody gives what it has not");
    assert!(!apply_gift(store, attempt, "giver", "giver").await);
    assert!(!apply_gift(store, Attempt { number: 2, ..attempt }, "giver", "taker").await);
    assert!(apply_gift(store, attempt, "giver", "taker").await);
    assert!(live(store, run, "giver").await.is_empty());
    assert_eq!(live(store, run, "taker").await, [(0, 1)], "the number stays");
    let gift = |from: &str, to: &str| Gift { attempt, from: from.into(), to: to.into() };
    let gifts = vec![gift("taker", "third"), gift("taker", "fourth"), gift("third", "fifth")];
    let applied = store.apply(Batch { gifts, ..Batch::default() }).await.unwrap();
    assert_eq!(applied.given, [true, false, true], "one after the other");
    assert!(super::apply_finish(store, finish(attempt, ChainState::Succeeded)).await);
    assert_eq!(chain(store, attempt.chain).await.agent.as_deref(), Some("fifth"));
    assert!(!apply_gift(store, attempt, "fifth", "giver").await, "it is over");
}

async fn waiting_chains_are_known_by_rank(store: &dyn Store) {
    let (one, two) = (new_run(store, "ranks").await, new_run(store, "more ranks").await);
    // Higher than all that other tests have left.
    add(store, one, 0, "ranks/a", &[1_000_004, 1_000_001]).await;
    add(store, two, 0, "ranks/a", &[1_000_003, 1_000_001]).await;
    add(store, two, 2, "ranks/b", &[1_000_002, 1_000_009]).await;
    let found = store.registered(5).await.unwrap();
    let keys: Vec<(RunId, u64)> = found.iter().map(|c| (c.key.run, c.key.seq)).collect();
    assert_eq!(keys, [(two, 3), (one, 0), (two, 0), (two, 2), (one, 1)]);
    assert_eq!((found[0].class.as_str(), found[0].rank), ("ranks/b", 1_000_009_000));
    assert!(found.iter().all(|c| c.state == ChainState::Registered && c.payload.is_empty()));
    store.change_run(two, &RunChange { held: Some(true), ..RunChange::default() }).await.unwrap();
    let stop = RunChange { cancel_requested: Some(true), ..RunChange::default() };
    claim(store, "ranks/a", 1, 1).await;
    let found = store.registered(1).await.unwrap();
    assert_eq!(found[0].key, ChainKey { run: one, seq: 1 }, "others run or are held");
    store.change_run(one, &stop).await.unwrap();
    let found = store.registered(usize::MAX).await.unwrap();
    assert!(found.iter().all(|c| c.key.run != one && c.key.run != two));
    assert!(found.windows(2).all(|w| w[0].rank >= w[1].rank));
    assert!(store.registered(0).await.unwrap().is_empty());
    store.delete_run(one).await.unwrap();
    store.delete_run(two).await.unwrap();
}

async fn payloads_are_read_alone(store: &dyn Store) {
    let run = new_run(store, "payloads").await;
    add(store, run, 0, "payloads", &[5, 6, 7]).await;
    let key = |seq| ChainKey { run, seq };
    let mut payloads = store.payloads(&[key(2), key(0), key(9)]).await.unwrap();
    payloads.sort();
    assert_eq!(payloads, [(key(0), vec![5]), (key(2), vec![7])]);
}
