//! Messages between members.

use crate::helper::{PATIENCE, Peer, Relay, insist, member};
use catena_peer::wire::{Event, Identity, ReachError, SendError, Settings, Wire};
use std::collections::HashMap;
use std::time::Duration;

#[tokio::test]
async fn two_peers_exchange_messages() {
    let (mut a, mut b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    a.send(&b, "hello");
    assert_eq!(b.connected().await, a.id());
    assert_eq!(b.message().await, (a.id(), "hello".to_owned()));
    // Who was called can answer at once: it has learned where the other one is.
    b.send(&a, "hello yourself");
    assert_eq!(a.message().await, (b.id(), "hello yourself".to_owned()));
    assert_eq!(a.wire.connected(), [b.id()]);
    let (sent, received) = (a.wire.counts(), b.wire.counts());
    assert_eq!((sent.sent, sent.sent_bytes, sent.dropped), (1, 5, 0));
    assert_eq!((received.received, received.received_bytes, received.sent), (1, 5, 1));
    assert_eq!(b.wire.counts_by_peer(), [(a.id(), received)]);
}

#[tokio::test]
async fn who_is_connected_can_be_dialled_where_it_listens() {
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    assert_eq!(a.wire.reach(&b.address.to_string(), PATIENCE).await.unwrap(), b.id());
    let address =
        b.wait(|event| if let Event::Connected { address, .. } = event { Some(address) } else { None });
    assert_eq!(address.await, a.address);
}

#[tokio::test]
async fn a_name_is_resolved_and_asked_who_it_is() {
    let (mut a, b) = (Peer::start().await, Peer::start().await);
    let place = format!("localhost:{}", b.address.port());
    assert_eq!(a.wire.reach(&place, PATIENCE).await.unwrap(), b.id());
    assert_eq!(a.connected().await, b.id());
    assert_eq!(a.wire.reach(&place, PATIENCE).await.unwrap(), b.id(), "again, without a second connection");
    a.assert_none(|event| matches!(event, Event::Connected { .. }));
}

#[tokio::test]
async fn reaching_nobody_says_why() {
    let a = Peer::start().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = a.wire.reach(&free.to_string(), PATIENCE).await.unwrap_err().to_string();
    assert!(error.contains(&free.to_string()) && error.contains("refused"), "{error}");
    let error = a.wire.reach("no port", PATIENCE).await.unwrap_err().to_string();
    assert!(error.contains("cannot find no port"), "{error}");
    let error = a.wire.reach(&a.address.to_string(), PATIENCE).await.unwrap_err();
    assert!(matches!(error, ReachError::Myself), "{error}");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap().to_string();
    let error = a.wire.reach(&place, Duration::from_millis(200)).await.unwrap_err().to_string();
    assert!(error.contains("did not answer within 0.2 s"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_told() {
    let a = Peer::start().await;
    let error = Wire::start(&Identity::fleeting(), crate::helper::key(), Settings::member([a.address]));
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&a.address.to_string()) && error.contains("in use"), "{error}");
}

#[tokio::test]
async fn messages_reach_a_peer_that_was_restarted_at_the_same_port() {
    let mut a = Peer::start().await;
    let identity = Identity::fleeting();
    let mut b = Peer::with(&identity, crate::helper::key(), member()).await;
    a.knows(&b);
    insist(&a, &mut b, "before").await;
    let address = b.address;
    b.wire.stop().await;
    assert_eq!(a.lost().await, identity.id());
    for n in 0..5 {
        a.wire.send(identity.id(), vec![n]).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let settings = Settings { listen: vec![address], ..member() };
    let mut b = Peer::with(&identity, crate::helper::key(), settings).await;
    let text = "after";
    insist(&a, &mut b, text).await;
    assert!(a.wire.counts().dropped > 0, "what could not be sent was counted");
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_lost() {
    let quick =
        || Settings { beat: Duration::from_millis(100), silence: Duration::from_millis(500), ..member() };
    let mut a = Peer::with(&Identity::fleeting(), crate::helper::key(), quick()).await;
    let mut b = Peer::with(&Identity::fleeting(), crate::helper::key(), quick()).await;
    let relay = Relay::to(b.address).await;
    a.wire.know(b.id(), [relay.address]);
    insist(&a, &mut b, "hello").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    a.assert_none(|event| matches!(event, Event::Lost { .. }));
    relay.freeze();
    assert_eq!(a.lost().await, b.id());
    assert_eq!(b.lost().await, a.id());
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_at_the_source() {
    let (a, b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    let error = a.wire.send(b.id(), vec![0; (1 << 20) + 1]).unwrap_err();
    assert_eq!(error, SendError::TooLarge { bytes: (1 << 20) + 1, largest: 1 << 20 });
    a.wire.send(b.id(), vec![0; 1 << 20]).unwrap();
}

#[tokio::test]
async fn a_guest_sends_no_messages() {
    let b = Peer::start().await;
    let guest = Peer::with(&Identity::fleeting(), crate::helper::key(), Settings::guest()).await;
    assert_eq!(guest.wire.send(b.id(), vec![]), Err(SendError::Guest));
}

#[tokio::test]
async fn twenty_peers_send_each_other_a_hundred_messages() {
    const PEERS: usize = 20;
    const MESSAGES: u32 = 100;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(Peer::start().await);
    }
    for peer in &peers {
        for other in peers.iter().filter(|other| other.id() != peer.id()) {
            peer.knows(other);
            for n in 0..MESSAGES {
                peer.wire.send(other.id(), n.to_be_bytes().to_vec()).unwrap();
            }
        }
    }
    for peer in &mut peers {
        let mut missing = (PEERS - 1) * MESSAGES as usize;
        let mut heard: HashMap<_, Vec<bool>> = HashMap::new();
        while missing > 0 {
            let (from, n) = peer
                .wait(|event| match event {
                    Event::Message { from, bytes } => {
                        Some((from, u32::from_be_bytes(bytes.try_into().unwrap())))
                    }
                    _ => None,
                })
                .await;
            let heard = heard.entry(from).or_insert_with(|| vec![false; MESSAGES as usize]);
            assert!(!std::mem::replace(&mut heard[n as usize], true), "twice");
            missing -= 1;
        }
    }
    for peer in &peers {
        assert_eq!(peer.wire.counts().dropped, 0);
    }
}

#[tokio::test]
async fn a_peer_that_does_not_read_costs_bounded_memory_and_drops_are_counted() {
    let settings = Settings { event_frames: 64, event_bytes: 64 * 1024, ..member() };
    let mut slow = Peer::with(&Identity::fleeting(), crate::helper::key(), settings).await;
    let fast = Peer::with(
        &Identity::fleeting(),
        crate::helper::key(),
        Settings { queue_frames: 100, queue_bytes: 200 * 1024, ..member() },
    )
    .await;
    fast.knows(&slow);
    insist(&fast, &mut slow, "hello").await;
    for n in 0..20_000_u32 {
        let mut message = vec![0; 1000];
        message[..4].copy_from_slice(&n.to_be_bytes());
        fast.wire.send(slow.id(), message).unwrap();
        if n % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let (sent, received) = (fast.wire.counts(), slow.wire.counts());
    assert!(received.received < 200, "read ahead of who listens: {received:?}");
    assert!(sent.sent_bytes < 2_000_000, "more on its way than a window: {sent:?}");
    assert!(sent.dropped > 15_000, "{sent:?}");
    assert!(sent.dropped + sent.sent <= 20_100, "{sent:?}");
    // The newest are there in the end, and the connection has held.
    loop {
        let n = slow.wait(|event| match event {
            Event::Message { bytes, .. } if bytes.len() == 1000 => {
                Some(u32::from_be_bytes(bytes[..4].try_into().unwrap()))
            }
            Event::Lost { .. } => panic!("lost"),
            _ => None,
        });
        if n.await == 19_999 {
            break;
        }
    }
}
