//! What a scheduler does where agents have files of their own: it decides which chain goes to which agent, and notes who
//! holds what.

use super::{LOOK_AT_RUNS, SchedulerRole, Turn};
use crate::event::RunEvent;
use crate::placing::Wishes;
use catena_bus::{Assignment, Message, subject};
use catena_model::Name;
use catena_model::chain::{AgentEvent, Attempt, ChainKey, Outcome, Phase, ProcessChain, Produced};
use catena_schedule::{Class, Live};
use catena_store::{Batch, Claimed, Gift, HoldingChange, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

impl SchedulerRole {
    /// Some agents that this one may give chains to, others each time: as many as the root of their number.
    pub(super) fn neighbours(&mut self, agent: &Name) -> Option<Vec<Name>> {
        let placing = self.placing.as_mut().filter(|p| p.gives())?;
        let others: Vec<Name> = self.dispatch.agents().filter(|a| *a != agent).cloned().collect();
        Some(placing.some(others))
    }

    /// What else agents tell.
    pub(super) fn other_event(&mut self, agent: &Name, event: AgentEvent, turn: &mut Turn) {
        let Some(placing) = &mut self.placing else { return };
        match event {
            AgentEvent::Phase { attempt, phase, at } => {
                if phase == Phase::Running {
                    let now = placing.now();
                    placing.placer.started(attempt.chain, agent, now);
                }
                turn.events.push(RunEvent::Phase {
                    run: attempt.chain.run,
                    chain: attempt.chain.seq,
                    attempt: attempt.number,
                    agent: agent.clone(),
                    phase,
                    at,
                });
            }
            AgentEvent::Holdings { holds, lost, gone, moved, anew } => {
                placing.placer.brought(moved.0, moved.1);
                let ids: Vec<_> = holds.iter().map(|(id, _)| *id).collect();
                placing.placer.holds(agent, &ids);
                placing.placer.lost(agent, &lost);
                if anew {
                    placing.heard(agent);
                }
                for (other, id) in gone {
                    placing.placer.lost(&other, &[id]);
                    let change = HoldingChange { agent: other, lost: vec![id], ..HoldingChange::default() };
                    turn.holdings.push((change, false));
                }
                turn.holdings.push((HoldingChange { agent: agent.clone(), holds, lost }, anew));
            }
            AgentEvent::Notice { run, message } => {
                let message = format!("agent {agent}: {message}");
                eprintln!("run {run}: {message}");
                turn.events.push(RunEvent::Notice { run, message });
            }
            _ => {}
        }
    }

    /// An attempt of a placed chain has ended. Others who execute the chain are stopped, if it is over. Returns what it
    /// has written.
    pub(super) fn placed_end(
        &mut self,
        agent: &Name,
        attempt: Attempt,
        outcome: &Outcome,
        millis: f64,
        turn: &mut Turn,
    ) -> Vec<Produced> {
        let Some(placing) = &mut self.placing else { return Vec::new() };
        let now = placing.now();
        let mut files = Vec::new();
        let is_over = match outcome {
            Outcome::Succeeded(results) => {
                files.extend(results.iter().flat_map(|r| &r.data).cloned());
                placing.placer.ended(attempt.chain, agent, Some(millis), now);
                true
            }
            Outcome::Failed(_) | Outcome::Cancelled(_) => true,
            Outcome::Interrupted | Outcome::Unsupplied(_) => false,
        };
        if let Outcome::Unsupplied(why) = outcome {
            for (other, id) in &why.gone {
                placing.placer.lost(other, &[*id]);
                let change =
                    HoldingChange { agent: other.clone(), lost: vec![*id], ..HoldingChange::default() };
                turn.holdings.push((change, false));
            }
        }
        if is_over {
            placing.placer.overtaken(attempt.chain, agent, now);
            for other in placing.placer.with(attempt.chain).into_iter().filter(|o| o != agent) {
                if let Some(copy) = self.dispatch.dropped(&other, attempt.chain) {
                    turn.messages.push((other, Message::Void(vec![copy])));
                }
            }
            placing.placer.forget(attempt.chain);
        } else {
            placing.placer.ended(attempt.chain, agent, None, now);
            placing.look();
        }
        let ids: Vec<_> = files.iter().map(|f| f.artifact.id()).collect();
        placing.placer.holds(agent, &ids);
        placing.something_ended();
        let run = attempt.chain.run;
        turn.written.extend(files.iter().map(|f| (run, agent.clone(), f.clone())));
        files
    }

    /// Decides which chain goes to which agent, where that matters.
    pub(super) async fn place(&mut self, turn: &mut Turn) -> Result<Wishes, StoreError> {
        self.note_holdings(turn).await?;
        self.release_runs(turn).await?;
        let Some(placing) = &mut self.placing else { return Ok(Wishes::default()) };
        // What has ended is written first: what it has made possible may be among what waits.
        if !turn.batch.is_empty() {
            let batch = Batch { instance: Some(self.member.id.clone()), ..std::mem::take(&mut turn.batch) };
            self.member.store.apply(batch).await?;
        }
        placing.refresh(&*self.member.store).await?;
        let mut wishes = placing.decide();
        for (agent, chain) in std::mem::take(&mut wishes.recalls) {
            if let Some(attempt) = self.dispatch.attempt(&agent, chain) {
                turn.messages.push((agent, Message::Recall(vec![attempt])));
            }
        }
        Ok(wishes)
    }

    /// Notes who holds what.
    pub(super) async fn note_holdings(&mut self, turn: &mut Turn) -> Result<(), StoreError> {
        let mut changes = Vec::new();
        for (change, anew) in std::mem::take(&mut turn.holdings) {
            if anew {
                self.member.store.replace_holdings(&change.agent, &change.holds).await?;
                if let Some(placing) = &mut self.placing {
                    placing.reconsider();
                }
            } else {
                changes.push(change);
            }
        }
        if !changes.is_empty() {
            self.member.store.change_holdings(&changes).await?;
        }
        Ok(())
    }

    /// Chains went to certain agents.
    pub(super) fn placed(
        &mut self,
        wanted: BTreeMap<Name, Vec<ChainKey>>,
        got: Vec<Vec<Claimed>>,
        now: i64,
        has_waited: bool,
        turn: &mut Turn,
    ) {
        for ((agent, chains), got) in wanted.into_iter().zip(got) {
            let there: BTreeSet<ChainKey> = got.iter().map(|c| c.attempt.chain).collect();
            if let Some(placing) = &mut self.placing {
                let now = placing.now();
                for chain in chains.into_iter().filter(|c| !there.contains(c)) {
                    placing.placer.refused(chain, &agent, now);
                }
            }
            for claimed in got {
                let attempt = claimed.attempt;
                let Ok(chain) = serde_json::from_slice::<ProcessChain>(&claimed.payload) else { continue };
                let chain = Arc::new(chain);
                let assignment = Assignment::new(attempt, chain.clone());
                turn.resend.entry(agent.clone()).or_default().push(assignment);
                let class = Class::of(&chain).key();
                let live = Live::new(attempt.number, claimed.failures, class, claimed.rank, chain, now);
                self.dispatch.given(&agent, attempt.chain, live, has_waited);
            }
        }
    }

    /// An agent gives chains to another one. Both must be looked after by this scheduler.
    pub(super) fn give(&mut self, from: &Name, to: &Name, attempts: Vec<Attempt>, turn: &mut Turn) {
        if self.dispatch.agent(from).is_none() || self.dispatch.agent(to).is_none() {
            return;
        }
        let gift = |attempt: Attempt| Gift { attempt, from: from.clone(), to: to.clone() };
        let has = |a: &Attempt| self.dispatch.live(from, *a).is_some();
        turn.gifts.extend(attempts.into_iter().filter(has).map(gift));
    }

    /// Gifts were written.
    pub(super) fn given(&mut self, gifts: Vec<Gift>, counted: &[bool], now: i64, turn: &mut Turn) {
        for (gift, counted) in gifts.into_iter().zip(counted) {
            let Some(live) = self.dispatch.live(&gift.from, gift.attempt).filter(|_| *counted).cloned()
            else {
                continue;
            };
            let chain = gift.attempt.chain;
            self.dispatch.dropped(&gift.from, chain);
            let moved = Live::new(live.attempt, live.failures, live.class, live.rank, live.chain, now);
            if let Some(placing) = &mut self.placing {
                let ended = placing.now();
                placing.has(chain, &moved, &gift.to);
                placing.placer.ended(chain, &gift.from, None, ended);
            }
            let given = Assignment::new(gift.attempt, moved.chain.clone());
            let assignment = Assignment { received: true, ..given };
            turn.resend.entry(gift.to.clone()).or_default().push(assignment);
            self.dispatch.given(&gift.to, chain, moved, false);
        }
    }

    /// What chains have written should not be lost with one agent.
    pub(super) async fn keep_copies(&mut self, turn: &mut Turn) {
        let written = std::mem::take(&mut turn.written);
        let Some(placing) = self.placing.as_ref().filter(|p| p.copies > 1) else { return };
        let agents: Vec<Name> = self.dispatch.agents().cloned().collect();
        for (run, agent, produced) in written {
            let Some(supply) = placing.offer(&produced, &agent) else { continue };
            let others: Vec<&Name> = agents.iter().filter(|a| **a != agent).collect();
            let first = produced.artifact.id().as_bytes()[0] as usize;
            for n in 0..(placing.copies - 1).min(others.len()) {
                let to = others[(first + n) % others.len()];
                let message = Message::Keep { run, supply: Box::new(supply.clone()) };
                self.member.bus.publish(&subject::agent(to), message).await;
            }
        }
    }

    /// Agents need not keep anything for runs that are over.
    pub(super) async fn release_runs(&mut self, turn: &mut Turn) -> Result<(), StoreError> {
        for (agent, runs) in std::mem::take(&mut turn.keeps) {
            let mut over = Vec::new();
            for run in runs {
                let known = self.runs.get(&run).filter(|(over, at)| *over || at.elapsed() < LOOK_AT_RUNS);
                let is_over = match known {
                    Some((over, _)) => *over,
                    None => {
                        let found = self.member.store.run(run).await?;
                        found.is_none_or(|r| r.state.is_final())
                    }
                };
                if known.is_none() {
                    self.runs.insert(run, (is_over, Instant::now()));
                }
                if is_over {
                    over.push(run);
                }
            }
            if !over.is_empty() {
                turn.messages.push((agent, Message::Release { runs: over, files: Vec::new() }));
            }
        }
        Ok(())
    }
}
