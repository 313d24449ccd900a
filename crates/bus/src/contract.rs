//! Tests that every implementation of [`Bus`] must pass.

use crate::{Bus, Message, Subscription};
use catena_model::chain::RunId;
use std::time::Duration;

/// Runs all of them.
pub async fn all(bus: &dyn Bus) {
    everyone_on_a_subject_hears_everything_in_order(bus).await;
    names_may_be_anything(bus).await;
    nobody_listening_is_no_problem(bus).await;
}

async fn hear(subscription: &mut Subscription, n: usize) -> Vec<Message> {
    let mut heard = Vec::new();
    while heard.len() < n {
        let receive = subscription.receive(&mut heard, n);
        let got = tokio::time::timeout(Duration::from_secs(10), receive).await.expect("messages arrive");
        assert!(got > 0, "the bus has closed");
    }
    heard
}

fn runs(messages: &[Message]) -> Vec<i64> {
    messages.iter().map(|m| if let Message::Cancel(r) = m { r.0 } else { -1 }).collect()
}

async fn everyone_on_a_subject_hears_everything_in_order(bus: &dyn Bus) {
    let mut first = bus.subscribe("a").await;
    let mut second = bus.subscribe("a").await;
    let mut other = bus.subscribe("b").await;
    for n in 0..300 {
        bus.publish("a", Message::Cancel(RunId(n))).await;
    }
    bus.publish("b", Message::Interrupt).await;
    let expected: Vec<i64> = (0..300).collect();
    for subscription in [&mut first, &mut second] {
        assert_eq!(runs(&hear(subscription, 300).await), expected);
    }
    assert!(matches!(hear(&mut other, 1).await[..], [Message::Interrupt]));
    let mut nothing = Vec::new();
    assert_eq!(other.try_receive(&mut nothing, 10), 0);
}

async fn names_may_be_anything(bus: &dyn Bus) {
    let odd = "agent.a b.*>é\n";
    let mut heard = bus.subscribe(odd).await;
    let mut others = bus.subscribe("agent.a").await;
    bus.publish(odd, Message::Interrupt).await;
    bus.publish("agent.a", Message::KeepAlive).await;
    assert!(matches!(hear(&mut heard, 1).await[..], [Message::Interrupt]));
    assert!(matches!(hear(&mut others, 1).await[..], [Message::KeepAlive]));
}

async fn nobody_listening_is_no_problem(bus: &dyn Bus) {
    drop(bus.subscribe("c").await);
    bus.publish("c", Message::Interrupt).await;
    bus.publish("nobody", Message::Interrupt).await;
}
