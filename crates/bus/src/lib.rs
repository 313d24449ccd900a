//! How parts talk: one [`Bus`] trait; [`LocalBus`] within a process, [`NatsBus`] between machines.
//!
//! Messages are hints. Any of them may be lost, late or doubled; the store is the truth. [`LossyBus`] makes
//! sure that this stays so. The [`contract`] module has the tests every implementation must pass.

pub mod contract;
mod local;
mod lossy;
mod message;
mod nats;

pub use local::LocalBus;
pub use lossy::LossyBus;
pub use message::{AgentState, Assignment, Message, Registered, Word, subject};
pub use nats::{BusError, NatsBus, NatsOptions};

use async_trait::async_trait;
use tokio::sync::mpsc::UnboundedReceiver;

/// Carries messages from those who publish on a subject to those who subscribe to it.
#[async_trait]
pub trait Bus: Send + Sync {
    /// Sends a message to everyone who has subscribed to the subject.
    async fn publish(&self, subject: &str, message: Message);
    /// Receives what is published on the subject from now on.
    async fn subscribe(&self, subject: &str) -> Subscription;
}

/// Messages on a subject, in the order they were published.
pub struct Subscription {
    receiver: UnboundedReceiver<Message>,
}

impl Subscription {
    /// Makes a subscription from the receiving end of a channel.
    pub fn new(receiver: UnboundedReceiver<Message>) -> Self {
        Self { receiver }
    }

    /// Appends up to `limit` messages that are there already, without waiting.
    pub fn try_receive(&mut self, messages: &mut Vec<Message>, limit: usize) -> usize {
        let before = messages.len();
        while messages.len() - before < limit
            && let Ok(message) = self.receiver.try_recv()
        {
            messages.push(message);
        }
        messages.len() - before
    }

    /// Waits for messages and appends up to `limit` of them. Returns 0 when no more can come.
    pub async fn receive(&mut self, messages: &mut Vec<Message>, limit: usize) -> usize {
        self.receiver.recv_many(messages, limit).await
    }
}
