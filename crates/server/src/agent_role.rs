//! Connects an agent to the bus.

use catena_agent::{Agent, AgentConfig, Cache, Job, Roster};
use catena_bus::{Bus, Message, subject};
use catena_model::chain::AgentEvent;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long reports are gathered while an agent is busy anyway.
const GATHER: Duration = Duration::from_millis(4);

/// An agent on a bus.
pub struct AgentRole {
    config: AgentConfig,
    agent: Agent,
    events: UnboundedReceiver<AgentEvent>,
    bus: Arc<dyn Bus>,
}

impl AgentRole {
    /// Starts an agent. It works once [`AgentRole::run`] is polled.
    pub fn start(config: AgentConfig, cache: Option<Arc<Cache>>, roster: Roster, bus: Arc<dyn Bus>) -> Self {
        let (sender, events) = unbounded_channel();
        let report = move |event| {
            let _ = sender.send(event);
        };
        let agent = Agent::start(config.clone(), cache, roster, report);
        Self { config, agent, events, bus }
    }

    /// Takes chains in and reports on them until the bus closes.
    pub async fn run(mut self) {
        let mut inbox = self.bus.subscribe(&subject::agent(&self.config.id)).await;
        let AgentConfig { id, capabilities, resources, .. } = self.config.clone();
        self.bus.publish(subject::SCHEDULER, Message::AgentJoined { id: id.clone(), capabilities, resources }).await;
        let mut messages = Vec::new();
        let mut events = Vec::new();
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
            }
        }
    }

    fn handle(&self, message: Message) {
        match message {
            Message::Assign { chains, context } => {
                let jobs = chains.into_iter().map(|a| Job { attempt: a.attempt, chain: a.chain, context: context.clone() });
                self.agent.assign(jobs.collect());
            }
            Message::Cancel(run) => self.agent.cancel(run),
            Message::Interrupt => self.agent.interrupt(),
            Message::AgentJoined { .. } | Message::Agent { .. } | Message::Look => {}
        }
    }
}
