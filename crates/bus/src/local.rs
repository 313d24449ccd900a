//! The bus within a process: channels, nothing is serialised.

use crate::{Bus, Message, Subscription};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A bus within a process.
#[derive(Default)]
pub struct LocalBus {
    subscribers: Mutex<HashMap<String, Vec<UnboundedSender<Message>>>>,
}

#[async_trait]
impl Bus for LocalBus {
    async fn publish(&self, subject: &str, message: Message) {
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(subscribers) = all.get_mut(subject) else {
            return;
        };
        subscribers.retain(|s| !s.is_closed());
        if let Some((last, others)) = subscribers.split_last() {
            for subscriber in others {
                let _ = subscriber.send(message.clone());
            }
            let _ = last.send(message);
        }
    }

    async fn subscribe(&self, subject: &str) -> Subscription {
        let (sender, receiver) = unbounded_channel();
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(subject.to_owned()).or_default().push(sender);
        Subscription::new(receiver)
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn keeps_the_contract() {
        crate::contract::all(&super::LocalBus::default()).await;
    }
}
