//! One identity, several processes.

use crate::helper::{PATIENCE, Peer, Relay, insist, key, member};
use catena_peer::wire::{Event, Identity, ReachError, Reason};
use std::time::Duration;

#[tokio::test]
async fn twins_that_meet_are_told_who_is_later() {
    let identity = Identity::fleeting();
    let mut first = Peer::with(&identity, key(), member()).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut second = Peer::with(&identity, key(), member()).await;
    let error = second.wire.reach(&first.address.to_string(), PATIENCE).await.unwrap_err();
    assert!(matches!(error, ReachError::Refused { reason: Reason::Twin, .. }), "{error}");
    assert!(second.twin().await);
    assert!(!first.twin().await);
}

#[tokio::test]
async fn a_twin_is_told_by_who_knows_the_other_one() {
    let mut witness = Peer::start().await;
    let identity = Identity::fleeting();
    let mut first = Peer::with(&identity, key(), member()).await;
    first.knows(&witness);
    insist(&first, &mut witness, "I am first").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut second = Peer::with(&identity, key(), member()).await;
    second.knows(&witness);
    second.send(&witness, "I am first");
    assert!(second.twin().await);
    assert_eq!(witness.refusal().await, Reason::TwinOfAnother);
    first.assert_none(|event| matches!(event, Event::Lost { .. } | Event::Twin { .. }));
    insist(&first, &mut witness, "and I stay").await;
}

#[tokio::test]
async fn a_successor_is_no_twin_of_a_process_that_is_cut_off() {
    let mut witness = Peer::start().await;
    let identity = Identity::fleeting();
    let first = Peer::with(&identity, key(), member()).await;
    let relay = Relay::to(witness.address).await;
    first.wire.know(witness.id(), [relay.address]);
    insist(&first, &mut witness, "hello").await;
    relay.freeze();
    let mut second = Peer::with(&identity, key(), member()).await;
    second.knows(&witness);
    insist(&second, &mut witness, "I took over").await;
    insist(&witness, &mut second, "welcome").await;
    second.assert_none(|event| matches!(event, Event::Twin { .. }));
}

#[tokio::test]
async fn an_own_address_is_no_twin() {
    let mut a = Peer::start().await;
    let relay = Relay::to(a.address).await;
    for address in [a.address, relay.address] {
        let error = a.wire.reach(&address.to_string(), PATIENCE).await.unwrap_err();
        assert!(matches!(error, ReachError::Myself), "{error:?}");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    a.assert_none(|event| matches!(event, Event::Twin { .. } | Event::Refused { .. }));
}
