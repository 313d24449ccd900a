//! Connects an agent to the bus.

use catena_agent::{Agent, AgentConfig, Cache, Job, Roster};
use catena_bus::{Bus, Message, subject};
use catena_model::chain::AgentEvent;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long reports are gathered while an agent is busy anyway.
const GATHER: Duration = Duration::from_millis(4);

/// How long after a task was started people hear of it at the latest.
const TELL_STARTS: Duration = Duration::from_millis(100);

/// An agent on a bus.
pub struct AgentRole {
    config: AgentConfig,
    agent: Agent,
    events: UnboundedReceiver<AgentEvent>,
    /// Tasks that were started since something ended. People want to know, but nobody has to act on it, so
    /// it does not wake anyone up.
    started: Arc<Mutex<Vec<AgentEvent>>>,
    bus: Arc<dyn Bus>,
}

impl AgentRole {
    /// Starts an agent. It works once [`AgentRole::run`] is polled.
    pub fn start(config: AgentConfig, cache: Option<Arc<Cache>>, roster: Roster, bus: Arc<dyn Bus>) -> Self {
        let (sender, events) = unbounded_channel();
        let started: Arc<Mutex<Vec<AgentEvent>>> = Arc::default();
        let noted = started.clone();
        let report = move |event| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(event, AgentEvent::Ended { .. }) {
                for event in noted.drain(..).chain([event]) {
                    let _ = sender.send(event);
                }
            } else {
                noted.push(event);
            }
        };
        let agent = Agent::start(config.clone(), cache, roster, report);
        Self { config, agent, events, started, bus }
    }

    /// Takes chains in and reports on them until the bus closes.
    pub async fn run(mut self) {
        let mut inbox = self.bus.subscribe(&subject::agent(&self.config.id)).await;
        let AgentConfig { id, capabilities, resources, .. } = self.config.clone();
        self.bus
            .publish(subject::SCHEDULER, Message::AgentJoined { id: id.clone(), capabilities, resources })
            .await;
        let mut messages = Vec::new();
        let mut events = Vec::new();
        let mut tell = tokio::time::interval(TELL_STARTS);
        tell.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                n = inbox.receive(&mut messages, 64) => {
                    if n == 0 {
                        return;
                    }
                    for message in messages.drain(..) {
                        self.handle(message);
                    }
                }
                n = self.events.recv_many(&mut events, 4096) => {
                    if n == 0 {
                        return;
                    }
                    // While every slot has enough to do, nobody waits for the report: gather more of it.
                    if self.agent.has_backlog() {
                        tokio::time::sleep(GATHER).await;
                        while let Ok(event) = self.events.try_recv() {
                            events.push(event);
                        }
                    }
                    let message = Message::Agent { id: id.clone(), events: std::mem::take(&mut events) };
                    self.bus.publish(subject::SCHEDULER, message).await;
                }
                _ = tell.tick() => {
                    let events = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
                    if !events.is_empty() {
                        self.bus.publish(subject::SCHEDULER, Message::Agent { id: id.clone(), events }).await;
                    }
                }
            }
        }
    }

    fn handle(&self, message: Message) {
        match message {
            Message::Assign { chains, context } => {
                let jobs = chains.into_iter().map(|a| Job {
                    attempt: a.attempt,
                    chain: a.chain,
                    context: context.clone(),
                });
                self.agent.assign(jobs.collect());
            }
            Message::Cancel(run) => self.agent.cancel(run),
            Message::Interrupt => self.agent.interrupt(),
            Message::AgentJoined { .. } | Message::Agent { .. } | Message::Look => {}
        }
    }
}
