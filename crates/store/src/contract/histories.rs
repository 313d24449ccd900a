//! Random histories of a few chains, compared with a model that says in a few lines what may happen to them.

use super::{add, finish, new_run};
use crate::{Applied, Batch, ChainFilter, Claim, Claimed, Finish, Gift, Pick, Requeue, Store};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ChainState, RunId};
use std::collections::BTreeMap;

const CLASS: &str = "histories";
const AGENTS: [&str; 4] = ["m0", "m1", "m2", "m3"];
const CHAINS: usize = 4;
const STEPS: usize = 500;
/// So many agents may be lost with a chain.
const MAX_LOSSES: u32 = 3;
const FINAL: [ChainState; 3] = [ChainState::Succeeded, ChainState::Failed, ChainState::Cancelled];

pub(super) async fn all(store: &dyn Store) {
    whatever_happens_is_what_the_model_says(store).await;
}

/// A chain of the model.
#[derive(Clone, Debug)]
struct Chain {
    state: ChainState,
    /// The highest number given out.
    given: u32,
    /// Who executes it, by the number of the attempt.
    live: BTreeMap<u32, Name>,
    failures: u32,
    losses: u32,
}

impl Chain {
    fn new() -> Self {
        Self { state: ChainState::Registered, given: 0, live: BTreeMap::new(), failures: 0, losses: 0 }
    }

    fn has(&self, agent: &Name) -> bool {
        self.live.values().any(|a| a == agent)
    }

    fn begin(&mut self, agent: &Name) {
        self.state = ChainState::Running;
        self.given += 1;
        self.live.insert(self.given, agent.clone());
    }

    fn finish(&mut self, f: &Finish) -> bool {
        let counts = self.live.contains_key(&f.attempt.number);
        if counts {
            self.state = f.state;
            self.live.clear();
        }
        counts
    }

    fn requeue(&mut self, r: &Requeue) -> bool {
        let counts = self.live.remove(&r.attempt.number).is_some();
        if counts {
            self.failures += u32::from(r.failure.is_some());
            if self.live.is_empty() {
                let waits = r.failure.is_some() || r.not_before > 0;
                self.state = if waits { ChainState::Paused } else { ChainState::Registered };
            }
        }
        counts
    }

    fn gift(&mut self, g: &Gift) -> bool {
        let counts = self.live.get(&g.attempt.number) == Some(&g.from) && !self.has(&g.to);
        if counts {
            self.live.insert(g.attempt.number, g.to.clone());
        }
        counts
    }

    fn lose(&mut self, agent: &Name) {
        if self.has(agent) {
            self.live.retain(|_, a| a != agent);
            if self.live.is_empty() {
                self.losses += 1;
                let too_many = self.losses >= MAX_LOSSES;
                self.state = if too_many { ChainState::Failed } else { ChainState::Registered };
            }
        }
    }
}

/// A small generator of numbers that look random, always the same ones.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn several<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }
}

struct History {
    run: RunId,
    chains: Vec<Chain>,
    dice: Dice,
}

impl History {
    fn agent(&mut self) -> Name {
        Name::new(AGENTS[self.dice.below(AGENTS.len())])
    }

    /// Any attempt, more often a young one; sometimes one that there never was.
    fn attempt(&mut self) -> Attempt {
        let seq = self.dice.below(CHAINS);
        let number = (self.chains[seq].given + 1).saturating_sub(self.dice.below(4) as u32);
        Attempt { chain: ChainKey { run: self.run, seq: seq as u64 }, number }
    }

    fn pick(&mut self) -> Pick {
        let run = self.run;
        let chains = self.dice.several(3, |d| ChainKey { run, seq: d.below(CHAINS) as u64 });
        Pick { chains, agent: self.agent(), now: 1 }
    }

    fn several<T>(&mut self, most: usize, make: fn(&mut Self) -> T) -> Vec<T> {
        (0..self.dice.below(most + 1)).map(|_| make(self)).collect()
    }

    fn batch(&mut self) -> Batch {
        let finishes = self.several(2, |h| finish(h.attempt(), FINAL[h.dice.below(FINAL.len())]));
        let requeues = self.several(3, |h| {
            let failure = (h.dice.below(2) == 0).then(|| (1, 2, "{}".to_owned()));
            Requeue { attempt: h.attempt(), failure, not_before: h.dice.below(2) as i64 }
        });
        let gifts = self.several(3, |h| Gift { attempt: h.attempt(), from: h.agent(), to: h.agent() });
        let claims = self.several(1, |h| Claim {
            class: CLASS.into(),
            limit: h.dice.below(3),
            agent: h.agent(),
            now: 1,
        });
        let picks = self.several(2, Self::pick);
        let copies = self.several(3, Self::pick);
        Batch { finishes, requeues, gifts, claims, picks, copies, ..Batch::default() }
    }

    fn chain(&mut self, attempt: Attempt) -> &mut Chain {
        &mut self.chains[attempt.chain.seq as usize]
    }

    /// Gives those of some chains to an agent that it may have. Chains are numbered by rank.
    fn give(
        &mut self,
        agent: &Name,
        seqs: impl Iterator<Item = usize>,
        may_have: fn(&Chain, &Name) -> bool,
    ) -> Vec<Claimed> {
        let mut seqs: Vec<usize> = seqs.filter(|seq| may_have(&self.chains[*seq], agent)).collect();
        seqs.sort_unstable();
        seqs.dedup();
        let mut give = |seq: usize| {
            self.chains[seq].begin(agent);
            let chain = ChainKey { run: self.run, seq: seq as u64 };
            let attempt = Attempt { chain, number: self.chains[seq].given };
            let priority = CHAINS - seq;
            let failures = self.chains[seq].failures;
            Claimed { attempt, rank: priority as i64 * 1000, failures, payload: vec![priority as u8] }
        };
        seqs.into_iter().map(&mut give).collect()
    }

    fn apply(&mut self, batch: &Batch) -> Applied {
        let waits = |chain: &Chain, _: &Name| chain.state == ChainState::Registered;
        let others_have = |chain: &Chain, agent: &Name| !chain.live.is_empty() && !chain.has(agent);
        let seqs = |p: &Pick| p.chains.iter().map(|key| key.seq as usize).collect::<Vec<_>>();
        let mut applied = Applied::default();
        for f in &batch.finishes {
            applied.finished.push(self.chain(f.attempt).finish(f));
        }
        for r in &batch.requeues {
            applied.requeued.push(self.chain(r.attempt).requeue(r));
        }
        for g in &batch.gifts {
            applied.given.push(self.chain(g.attempt).gift(g));
        }
        for c in &batch.claims {
            let free = (0..CHAINS).filter(|seq| self.chains[*seq].state == ChainState::Registered);
            let best: Vec<usize> = free.take(c.limit).collect();
            applied.claimed.push(self.give(&c.agent, best.into_iter(), waits));
        }
        for p in &batch.picks {
            applied.picked.push(self.give(&p.agent, seqs(p).into_iter(), waits));
        }
        for p in &batch.copies {
            applied.copied.push(self.give(&p.agent, seqs(p).into_iter(), others_have));
        }
        applied
    }

    /// Something that is no batch.
    async fn other(&mut self, store: &dyn Store) {
        let change = |chains: &mut [Chain], from: &[ChainState], f: fn(&mut Chain)| {
            for chain in chains.iter_mut().filter(|c| from.contains(&c.state)) {
                f(chain);
                chain.state = ChainState::Registered;
                chain.live.clear();
            }
        };
        match self.dice.below(8) {
            0 => {
                store.retry_failed(self.run).await.unwrap();
                change(&mut self.chains, &FINAL[1..], |c| c.failures = 0);
            }
            1 => {
                store.reopen(self.run, &[0, 1, 2, 3]).await.unwrap();
                change(&mut self.chains, &FINAL[..1], |c| (c.failures, c.losses) = (0, 0));
            }
            2 if self.dice.below(4) == 0 => {
                store.release_running(self.run).await.unwrap();
                change(&mut self.chains, &[ChainState::Running, ChainState::Paused], |_| {});
            }
            3 => {
                let agent = self.agent();
                store.release_agent(&agent, MAX_LOSSES, "{}", 1).await.unwrap();
                self.chains.iter_mut().for_each(|c| c.lose(&agent));
            }
            _ => {
                store.waiting(1).await.unwrap();
                change(&mut self.chains, &[ChainState::Paused], |_| {});
            }
        }
    }

    async fn compare(&self, store: &dyn Store) {
        for record in store.chains(self.run, &ChainFilter::default()).await.unwrap() {
            let chain = &self.chains[record.key.seq as usize];
            let found = (record.state, record.attempt, record.failures, record.losses);
            assert_eq!(found, (chain.state, chain.given, chain.failures, chain.losses), "{}", record.key);
            if chain.state == ChainState::Running {
                assert_eq!(record.agent.as_ref(), chain.live.get(&chain.given), "who has the newest attempt");
            }
        }
        let mut live: Vec<(u64, u32, Name)> = Vec::new();
        for record in store.chains_of(&AGENTS.map(Name::new)).await.unwrap() {
            live.push((record.key.seq, record.attempt, record.agent.unwrap()));
        }
        live.sort();
        let expected = (0..).zip(&self.chains);
        let expected = expected.flat_map(|(seq, c)| c.live.iter().map(move |(n, a)| (seq, *n, a.clone())));
        assert_eq!(live, expected.collect::<Vec<_>>());
        assert_eq!(store.repair_counts(self.run).await.unwrap(), 0);
    }
}

async fn whatever_happens_is_what_the_model_says(store: &dyn Store) {
    let run = new_run(store, CLASS).await;
    add(store, run, 0, CLASS, &[4, 3, 2, 1]).await;
    let mut history = History { run, chains: vec![Chain::new(); CHAINS], dice: Dice(7) };
    for step in 0..STEPS {
        let batch = history.batch();
        let applied = store.apply(batch.clone()).await.unwrap();
        assert_eq!(applied, history.apply(&batch), "step {step}: {batch:?}");
        history.compare(store).await;
        if history.dice.below(2) == 0 {
            history.other(store).await;
            history.compare(store).await;
        }
    }
    store.delete_run(run).await.unwrap();
}
