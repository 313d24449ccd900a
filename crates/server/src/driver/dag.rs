//! What the driver does besides for a DAG: it stops what is not needed any more, and writes what users look at.

use super::{Driver, DriverError, Live, Waiting};
use crate::control::Verdict;
use crate::event::RunEvent;
use catena_bus::{Message, subject};
use catena_model::Name;
use catena_model::chain::{Attempt, ChainKey, ChainState};
use catena_plan::{DagPlan, Happening};
use catena_schedule::Event;
use catena_store::{Batch, RunState, Start};
use std::cmp::Reverse;

impl Driver<'_> {
    /// Stops chains that a DAG has no use for any more.
    pub(super) async fn remove_unwanted(&mut self) -> Result<(), DriverError> {
        let run = self.control.id();
        let unwanted = self.control.dag().map(DagPlan::take_unwanted).unwrap_or_default();
        if unwanted.is_empty() {
            return Ok(());
        }
        let mut stopped = Vec::new();
        let mut starts = Vec::new();
        for chain in unwanted.into_iter().map(|seq| ChainKey { run, seq }) {
            self.unwanted.insert(chain);
            if let Some(live) = self.live.get(&chain) {
                stopped.push(Attempt { chain, number: live.attempt });
            } else if let Some((key, waiting)) = self.take_waiting(chain.seq) {
                // Only an attempt can end.
                let attempt = Attempt { chain, number: waiting.attempts + 1 };
                starts.push(Start { attempt, agent: Name::new_static("-"), now: self.clock.now() });
                self.live.insert(chain, Live { attempt: attempt.number, key, waiting });
                self.moved(ChainState::Registered, ChainState::Running);
                self.removed.push(attempt);
            }
        }
        self.store.apply(Batch { starts, ..Batch::default() }).await?;
        for agent in &self.agents {
            self.bus.publish(&subject::agent(agent), Message::Void(stopped.clone())).await;
        }
        Ok(())
    }

    /// Takes a chain away from those that wait.
    fn take_waiting(&mut self, seq: u64) -> Option<(Name, Waiting)> {
        if let Some(place) = self.paused.keys().find(|(_, s)| *s == seq).copied() {
            let waiting = self.paused.remove(&place)?;
            self.moved(ChainState::Paused, ChainState::Registered);
            return Some((waiting.class.key(), waiting));
        }
        let (key, place) = self.waiting.iter().find_map(|(key, chains)| {
            let place = chains.keys().find(|(_, s)| *s == seq)?;
            Some((key.clone(), *place))
        })?;
        let waiting = self.waiting.get_mut(&key)?.remove(&place)?;
        let left = self.waiting.get(&key);
        let rank = left.and_then(|l| l.keys().next()).map_or(i64::MIN, |(Reverse(rank), _)| *rank);
        let count = left.map_or(0, |l| l.len() as u64);
        self.scheduler.handle(Event::Waiting { class: waiting.class.clone(), count, rank });
        Some((key, waiting))
    }

    /// Writes and says what has happened to the nodes of a DAG.
    pub(super) fn tell_about_nodes(&mut self) {
        let run = self.control.id();
        let now = self.clock.now();
        let (Some(plan), Some(files)) = (self.control.dag(), &mut self.files) else { return };
        let events = plan.take_events();
        files.happened(plan, &events, now);
        let mut notices = files.take_problems();
        for event in &events {
            let view = plan.view(event.dag);
            let node = &view.file().nodes[event.node as usize];
            let name = format!("{}{}", view.label(), node.name);
            match &event.what {
                Happening::Retried { retry, code } => {
                    let max = node.rules().retry.map_or(0, |(max, _)| max);
                    let message =
                        format!("node {name} is tried again ({retry} of {max}) after exit code {code}");
                    (self.observer)(RunEvent::Note { run, message });
                }
                Happening::Warned(message) if self.warned.insert(message.clone()) => {
                    (self.observer)(RunEvent::Note { run, message: format!("warning: {message}") });
                }
                Happening::NotSubmitted(error) => {
                    notices.push(format!("node {name} cannot be submitted: {error}"));
                }
                Happening::Aborted(code) => {
                    notices.push(format!("node {name} stops the DAG, which returns {code}"));
                }
                _ => {}
            }
        }
        for message in notices {
            (self.observer)(RunEvent::Notice { run, message });
        }
    }

    /// Writes what is kept about a DAG that ends. Returns what DAGMan would return.
    pub(super) fn end_dag(&mut self, verdict: &mut Verdict) -> Option<i64> {
        let (run, now) = (self.control.id(), self.clock.now());
        let (Some(plan), Some(files)) = (self.control.dag(), &mut self.files) else { return None };
        // One that was interrupted goes on from what the store knows.
        let rescue = !matches!(verdict.state, RunState::Succeeded | RunState::Interrupted);
        let rescue = files.ended(plan, rescue, now);
        for problem in files.take_problems() {
            (self.observer)(RunEvent::Notice { run, message: problem });
        }
        let end = plan.view(0).end();
        if let Some(file) = rescue {
            let how = verdict.error.take().map(|e| format!("{e}; ")).unwrap_or_default();
            verdict.error = Some(format!("{how}the next run goes on from {}", file.display()));
        }
        end.filter(|_| verdict.state != RunState::Interrupted).map(|e| e.code)
    }
}
