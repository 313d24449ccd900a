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
    use super::*;
    use catena_model::chain::RunId;

    #[tokio::test]
    async fn everyone_on_a_subject_hears_everything_in_order() {
        let bus = LocalBus::default();
        let mut first = bus.subscribe("a").await;
        let mut second = bus.subscribe("a").await;
        let mut other = bus.subscribe("b").await;
        for n in 0..3 {
            bus.publish("a", Message::Cancel(RunId(n))).await;
        }
        bus.publish("b", Message::Interrupt).await;
        for subscription in [&mut first, &mut second] {
            let mut heard = Vec::new();
            subscription.receive(&mut heard, 10).await;
            let runs: Vec<i64> =
                heard.iter().map(|m| if let Message::Cancel(r) = m { r.0 } else { -1 }).collect();
            assert_eq!(runs, [0, 1, 2]);
        }
        let mut heard = Vec::new();
        assert_eq!(other.receive(&mut heard, 10).await, 1);
    }
}
