//! The part of a scheduler that gives certain chains to certain agents, where these have files of their own.

use crate::supplies::{Reads, Supplier};
use catena_bus::Assignment;
use catena_model::Name;
use catena_model::chain::{ChainKey, Origin, ProcessChain, Produced, RunId, Supply};
use catena_schedule::{
    AgentInfo, Class, Live, Place, Placed, Placer, ReadyChain, ReadyInput, Rebalance, Settings, Stages,
};
use catena_store::{ChainRecord, FileRecord, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many chains that wait are looked at, the most urgent ones. The others wait in the store.
const WINDOW: usize = 4096;

/// It is not decided more often than this for nothing but the time.
const SHORTEST: Duration = Duration::from_millis(2);

/// Knows the chains that wait, what they read, and who has it.
pub(crate) struct Placing {
    pub(crate) placer: Placer,
    supplier: Supplier,
    /// So many agents keep what chains have written.
    pub(crate) copies: usize,
    /// Chains may have come or gone since the store was looked at.
    stale: bool,
    /// Agents that have not said yet what they hold.
    unheard: BTreeSet<Name>,
    /// Chains that wait for something that nobody has.
    blocked: BTreeSet<ChainKey>,
    begun: Instant,
    stages: Stages,
    chance: u64,
}

/// What the placer wants, as it is written.
#[derive(Default)]
pub(crate) struct Wishes {
    pub(crate) picks: BTreeMap<Name, Vec<ChainKey>>,
    pub(crate) copies: BTreeMap<Name, Vec<ChainKey>>,
    pub(crate) recalls: Vec<(Name, ChainKey)>,
}

impl Placing {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        stages: Stages,
        settings: &Settings,
        copies: usize,
        has_object_storage: bool,
    ) -> Self {
        Self {
            placer: Placer::new(stages, settings.aging),
            supplier: Supplier::new(store, has_object_storage),
            copies,
            stale: true,
            unheard: BTreeSet::new(),
            blocked: BTreeSet::new(),
            begun: Instant::now(),
            stages,
            chance: u64::from(std::process::id()),
        }
    }

    /// The time by which it is decided.
    pub(crate) fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Whether agents give chains to each other. Where chains go where they end first, the scheduler itself asks back what
    /// waits while others are idle: it knows more than neighbours do, and moves less.
    pub(crate) fn gives(&self) -> bool {
        self.stages.rebalance == Rebalance::Give && self.stages.place != Place::EarliestFinish
    }

    /// Some of them, others each time: as many as the root of their number.
    pub(crate) fn some(&mut self, mut agents: Vec<Name>) -> Vec<Name> {
        let n = ((agents.len() + 1) as f64).sqrt().ceil() as usize;
        for place in 0..n.min(agents.len()) {
            // Whom somebody meets need not be hard to guess.
            self.chance =
                self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let other = place + (self.chance >> 33) as usize % (agents.len() - place);
            agents.swap(place, other);
        }
        agents.truncate(n);
        agents
    }

    /// How long until it has to be decided again, even if nothing happens.
    pub(crate) fn until_next(&mut self) -> Option<Duration> {
        let next = self.placer.wake()?;
        Some(Duration::from_nanos(next.saturating_sub(self.now())).max(SHORTEST))
    }

    /// Chains have come or gone.
    pub(crate) fn look(&mut self) {
        self.stale = true;
    }

    /// An attempt has ended: what others wait for may be there.
    pub(crate) fn something_ended(&mut self) {
        self.stale |= !self.blocked.is_empty();
    }

    /// An agent is there, with chains from an earlier time.
    pub(crate) fn join(&mut self, info: &AgentInfo, live: &BTreeMap<ChainKey, Live>) {
        let now = self.now();
        if !self.placer.has_agent(&info.id) {
            self.placer.join(info, now);
            // What waits may have its data there.
            self.reconsider();
        }
        for (key, live) in live {
            self.has(*key, live, &info.id);
        }
    }

    /// An agent has a chain.
    pub(crate) fn has(&mut self, key: ChainKey, live: &Live, agent: &Name) {
        let now = self.now();
        self.placer.has(&ready(key, live.rank, &live.chain, Vec::new()), agent, now);
    }

    /// An agent is gone, and what it held.
    pub(crate) fn leave(&mut self, agent: &Name) {
        self.placer.leave(agent);
        self.unheard.remove(agent);
        self.reconsider();
    }

    /// Who has what has changed: everything that waits is looked at again.
    pub(crate) fn reconsider(&mut self) {
        let waiting: Vec<ChainKey> = self.placer.waiting().collect();
        for key in waiting {
            self.placer.forget(key);
        }
        self.stale = true;
    }

    /// An agent has to say what it holds.
    pub(crate) fn ask(&mut self, agent: &Name) {
        self.unheard.insert(agent.clone());
    }

    /// Whether an agent has not said yet what it holds.
    pub(crate) fn wants_inventory(&self, agent: &Name) -> bool {
        self.unheard.contains(agent)
    }

    /// An agent says what it holds.
    pub(crate) fn heard(&mut self, agent: &Name) {
        if self.unheard.remove(agent) {
            self.stale = true;
        }
    }

    /// Reads which chains wait and what they read. What nobody has is computed again.
    pub(crate) async fn refresh(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        while std::mem::take(&mut self.stale) {
            let registered = store.registered(WINDOW).await?;
            if registered.len() < WINDOW {
                let there: HashSet<ChainKey> = registered.iter().map(|r| r.key).collect();
                let gone: Vec<ChainKey> = self.placer.waiting().filter(|k| !there.contains(k)).collect();
                for key in gone {
                    self.placer.forget(key);
                }
                self.blocked.retain(|k| there.contains(k));
            }
            let new: Vec<&ChainRecord> = registered.iter().filter(|r| !self.placer.knows(r.key)).collect();
            if new.is_empty() {
                return Ok(());
            }
            let keys: Vec<ChainKey> = new.iter().map(|r| r.key).collect();
            let payloads: HashMap<ChainKey, Vec<u8>> = store.payloads(&keys).await?.into_iter().collect();
            let mut by_run: BTreeMap<RunId, Vec<(&ChainRecord, ProcessChain)>> = BTreeMap::new();
            for record in new {
                let payload = payloads.get(&record.key).map(Vec::as_slice).unwrap_or_default();
                if let Ok(chain) = serde_json::from_slice(payload) {
                    by_run.entry(record.key.run).or_default().push((record, chain));
                }
            }
            for (run, chains) in by_run {
                self.take_in(store, run, &chains).await?;
            }
        }
        Ok(())
    }

    async fn take_in(
        &mut self,
        store: &dyn Store,
        run: RunId,
        chains: &[(&ChainRecord, ProcessChain)],
    ) -> Result<(), StoreError> {
        let plain: Vec<&ProcessChain> = chains.iter().map(|(_, chain)| chain).collect();
        let reads = self.supplier.chains(run, &plain).await?;
        let mut again: BTreeSet<u64> = BTreeSet::new();
        for ((record, chain), reads) in chains.iter().zip(reads) {
            if reads.missing.is_empty() {
                self.blocked.remove(&record.key);
                let inputs = reads.supplies.iter().map(|s| ReadyInput {
                    content: s.artifact.id(),
                    size: Reads::bytes(s),
                    holders: Reads::holders(s),
                });
                self.placer.ready(&ready(record.key, record.rank, chain, inputs.collect()));
                continue;
            }
            let is_new = self.blocked.insert(record.key);
            // Who has just come may have it.
            if self.unheard.is_empty() {
                again.extend(reads.missing.iter().filter_map(|f| f.chain));
                if let Some(lost) = reads.missing.iter().find(|f| f.chain.is_none()).filter(|_| is_new) {
                    eprintln!("{}", is_away(record.key, lost));
                }
            }
        }
        if !again.is_empty() {
            let again: Vec<u64> = again.into_iter().collect();
            let reopened = store.reopen(run, &again).await?;
            if !reopened.is_empty() {
                self.stale = true;
                eprintln!("run {run}: {} chains run again: what they wrote is gone", reopened.len());
            }
        }
        Ok(())
    }

    /// What to do now.
    pub(crate) fn decide(&mut self) -> Wishes {
        let mut wishes = Wishes::default();
        for placed in self.placer.decide(self.now()) {
            match placed {
                Placed::Pick { chain, agent } => wishes.picks.entry(agent).or_default().push(chain),
                Placed::Copy { chain, agent } => wishes.copies.entry(agent).or_default().push(chain),
                Placed::Recall { chain, agent } => wishes.recalls.push((agent, chain)),
            }
        }
        wishes
    }

    /// Says with each chain what it reads and where that can be had.
    pub(crate) async fn supply(&self, run: RunId, chains: &mut [Assignment]) -> Result<(), StoreError> {
        self.supplier.supply(run, chains).await
    }

    /// Something that an agent has written, as others can have it.
    pub(crate) fn offer(&self, produced: &Produced, agent: &Name) -> Option<Supply> {
        let origin = Origin::Agent { name: agent.clone(), address: self.supplier.address(agent)? };
        let (name, artifact) = (produced.name.clone(), produced.artifact);
        Some(Supply { name, artifact, parts: Vec::new(), sources: vec![origin] })
    }

    /// Where agents and homes serve what they hold is read anew.
    pub(crate) async fn learn_addresses(&self) -> Result<(), StoreError> {
        self.supplier.learn_addresses().await
    }
}

fn is_away(chain: ChainKey, lost: &FileRecord) -> String {
    format!("chain {chain} waits for {}, which came with the run: no machine that has it is there", lost.name)
}

fn ready(key: ChainKey, rank: i64, chain: &ProcessChain, inputs: Vec<ReadyInput>) -> ReadyChain {
    ReadyChain {
        key,
        rank,
        class: Class::of(chain),
        signature: ReadyChain::signature_of(chain),
        ahead: chain.ahead,
        replicas: chain.replicas,
        inputs,
    }
}
