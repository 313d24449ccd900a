//! Where agents can ask in person, should messages not arrive.

use crate::clock::Clock;
use crate::places::{Places, Storage};
use crate::settle::Ended;
use crate::supplies::Supplier;
use async_trait::async_trait;
use catena_bus::{AgentState, Assignment};
use catena_model::Name;
use catena_model::chain::{AgentEvent, Attempt, Outcome, ProcessChain, RunContext, RunId};
use catena_store::{AgentRecord, Batch, ChainRecord, Store};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What an agent is told.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Chains that it should have and does not.
    pub assigned: Vec<(Vec<Assignment>, Arc<RunContext>)>,
    /// Attempts whose end is known.
    pub known: Vec<Attempt>,
    /// Attempts that it should not have.
    pub void: Vec<Attempt>,
}

/// A place where an agent can tell what it has and hear what it should have.
#[async_trait]
pub trait Desk: Send + Sync {
    /// Tells and hears.
    async fn visit(&self, agent: &AgentState) -> Result<Answer, String>;
}

/// A desk at the store itself.
pub struct StoreDesk {
    store: Arc<dyn Store>,
    places: Arc<Places>,
    /// Finds out what chains read, where agents have files of their own.
    supplier: Option<Supplier>,
}

impl StoreDesk {
    /// A desk for agents of runs that live in these places.
    pub fn new(store: Arc<dyn Store>, places: Arc<Places>) -> Self {
        let mode = places.mode();
        let supplier = mode.is_local().then(|| Supplier::new(store.clone(), mode == Storage::Object));
        Self { store, places, supplier }
    }
}

#[async_trait]
impl Desk for StoreDesk {
    async fn visit(&self, agent: &AgentState) -> Result<Answer, String> {
        let fail = |e: catena_store::StoreError| e.to_string();
        let now = Clock::of(&*self.store).await.map_err(fail)?.now();
        // A scheduler finds the agent here even if it never hears of it.
        let record = AgentRecord {
            id: agent.id.clone(),
            incarnation: agent.incarnation,
            capabilities: agent.capabilities.clone(),
            resources: agent.resources.clone(),
            data: agent.data.clone(),
            ..AgentRecord::default()
        };
        self.store.greet_agent(&record, now).await.map_err(fail)?;
        let should_have = self.store.chains_of(std::slice::from_ref(&agent.id)).await.map_err(fail)?;
        let mut answer = Answer::default();
        self.settle(agent, &should_have, now, &mut answer).await?;
        let there: BTreeSet<Attempt> = agent.holding.iter().chain(&answer.known).copied().collect();
        let attempt = |c: &ChainRecord| Attempt { chain: c.key, number: c.attempt };
        let wanted: BTreeSet<Attempt> = should_have.iter().map(attempt).collect();
        answer.void = agent.holding.iter().filter(|a| !wanted.contains(a)).copied().collect();
        let mut missing: BTreeMap<RunId, Vec<Assignment>> = BTreeMap::new();
        for record in should_have.iter().filter(|c| !there.contains(&attempt(c))) {
            if let Ok(chain) = serde_json::from_slice::<ProcessChain>(&record.payload) {
                let (attempt, chain) = (attempt(record), Arc::new(chain));
                let assignment = Assignment::new(attempt, chain);
                missing.entry(record.key.run).or_default().push(assignment);
            }
        }
        for (run, mut chains) in missing {
            if let Some(supplier) = &self.supplier {
                supplier.supply(run, &mut chains).await.map_err(fail)?;
            }
            if let Some(context) = self.places.context(&*self.store, run).await.map_err(fail)? {
                answer.assigned.push((chains, context));
            }
        }
        Ok(answer)
    }
}

impl StoreDesk {
    /// Takes the ends of attempts in.
    async fn settle(
        &self,
        agent: &AgentState,
        should_have: &[ChainRecord],
        now: i64,
        answer: &mut Answer,
    ) -> Result<(), String> {
        let known: HashMap<Attempt, &ChainRecord> =
            should_have.iter().map(|c| (Attempt { chain: c.key, number: c.attempt }, c)).collect();
        let mut batch = Batch::default();
        for event in &agent.ended {
            let AgentEvent::Ended { attempt, outcome, started, ended, history, .. } = event else { continue };
            answer.known.push(*attempt);
            let record = known.get(attempt);
            let Some(chain) = record.and_then(|r| serde_json::from_slice::<ProcessChain>(&r.payload).ok())
            else {
                continue;
            };
            let results = match outcome {
                Outcome::Succeeded(results) => serde_json::to_vec(results).unwrap_or_default(),
                _ => Vec::new(),
            };
            let failures = record.map_or(0, |r| r.failures);
            let files = match outcome {
                Outcome::Succeeded(results) => results.iter().flat_map(|r| &r.data).cloned().collect(),
                _ => Vec::new(),
            };
            let (time, history) = ((*started, *ended), history.clone());
            let end = Ended { attempt: *attempt, chain: &chain, failures, time, files, history };
            end.settle(outcome.clone(), results, true, now, &mut batch);
        }
        self.store.apply(batch).await.map(|_| ()).map_err(|e| e.to_string())
    }
}

/// What this machine calls itself.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Names an agent on this machine, if nobody has named it.
pub fn default_agent_name() -> Name {
    Name::new(format!("{}-{}", host_name(), std::process::id()))
}
