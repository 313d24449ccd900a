//! A bus that loses messages, to show that nothing depends on them.

use crate::{Bus, Message, Subscription};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Loses some of what is published on another bus.
pub struct LossyBus {
    inner: Arc<dyn Bus>,
    loss: f64,
    state: AtomicU64,
}

impl LossyBus {
    /// Loses this fraction of messages: 0 is none, 1 is all.
    pub fn new(inner: Arc<dyn Bus>, loss: f64) -> Self {
        Self { inner, loss, state: AtomicU64::new(0x9e37_79b9_7f4a_7c15) }
    }

    fn is_lost(&self) -> bool {
        // A Weyl sequence, mixed: evenly spread and in need of no more than a counter.
        let mut x = self.state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 31;
        (x >> 11) as f64 / (1u64 << 53) as f64 <= self.loss && self.loss > 0.0
    }
}

#[async_trait]
impl Bus for LossyBus {
    async fn publish(&self, subject: &str, message: Message) {
        if !self.is_lost() {
            self.inner.publish(subject, message).await;
        }
    }

    async fn subscribe(&self, subject: &str) -> Subscription {
        self.inner.subscribe(subject).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalBus;

    async fn arrived(loss: f64) -> usize {
        let inner = Arc::new(LocalBus::default());
        let mut heard = inner.subscribe("a").await;
        let bus = LossyBus::new(inner, loss);
        for n in 0..1000 {
            bus.publish("a", Message::Echo(n)).await;
        }
        heard.try_receive(&mut Vec::new(), 2000)
    }

    #[tokio::test]
    async fn as_much_is_lost_as_was_asked_for() {
        assert_eq!(arrived(0.0).await, 1000);
        assert_eq!(arrived(1.0).await, 0);
        let half = arrived(0.5).await;
        assert!((400..600).contains(&half), "{half}");
    }
}
