//! Those who do not belong, and those who do not behave.

use crate::helper::{PATIENCE, Peer, Relay, here, insist, key, member};
use catena_peer::wire::{Event, GroupKey, Identity, ReachError, Reason, Settings};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Whether the other side hangs up.
async fn is_hung_up_on(mut socket: TcpStream) -> bool {
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, socket.read_to_end(&mut rest)).await.is_ok()
}

/// Messages of the negotiation, as libp2p writes them.
fn negotiation(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| [&[line.len() as u8 + 1], line.as_bytes(), b"\n"].concat()).collect()
}

#[tokio::test]
async fn a_wrong_key_is_told_on_both_sides() {
    let mut a = Peer::start().await;
    let other = GroupKey::from_secret(b"another secret of another group").unwrap();
    let mut b = Peer::with(&Identity::fleeting(), other, member()).await;
    let error = b.wire.reach(&a.address.to_string(), PATIENCE).await.unwrap_err();
    assert!(matches!(error, ReachError::Refused { reason: Reason::OurKeyIsWrong, .. }), "{error}");
    assert_eq!(b.refusal().await, Reason::OurKeyIsWrong);
    assert_eq!(a.refusal().await, Reason::WrongKey);
    b.knows(&a);
    b.send(&a, "let me in");
    assert_eq!(a.refusal().await, Reason::WrongKey);
    a.assert_none(|event| matches!(event, Event::Message { .. } | Event::Connected { .. }));
    assert!(a.wire.connected().is_empty() && b.wire.connected().is_empty());
}

#[tokio::test]
async fn the_same_refusal_is_not_told_again_and_again() {
    let settings = Settings { refusals: Duration::from_mins(1), ..member() };
    let mut a = Peer::with(&Identity::fleeting(), key(), settings).await;
    let other = GroupKey::from_secret(b"another secret of another group").unwrap();
    let b = Peer::with(&Identity::fleeting(), other, member()).await;
    for _ in 0..5 {
        b.wire.reach(&a.address.to_string(), PATIENCE).await.unwrap_err();
    }
    assert_eq!(a.refusal().await, Reason::WrongKey);
    tokio::time::sleep(Duration::from_millis(200)).await;
    a.assert_none(|event| matches!(event, Event::Refused { .. }));
}

#[tokio::test]
async fn a_caller_of_another_version_is_refused() {
    let mut a = Peer::start().await;
    let mut socket = TcpStream::connect(a.address).await.unwrap();
    socket.write_all(&negotiation(&["/multistream/1.0.0", "/catena/peer/2"])).await.unwrap();
    let expected = negotiation(&["/multistream/1.0.0", "na"]);
    let mut answer = vec![0; expected.len()];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, expected);
    drop(socket);
    let reason = a.refusal().await;
    assert_eq!(reason, Reason::OtherVersion);
    assert_eq!(reason.to_string(), "it speaks another version of the protocol");
}

#[tokio::test]
async fn a_called_one_of_another_version_is_refused() {
    let mut a = Peer::start().await;
    let listener = TcpListener::bind(here()).await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let other = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut asked = vec![0; negotiation(&["/multistream/1.0.0", "/catena/peer/1"]).len()];
        socket.read_exact(&mut asked).await.unwrap();
        socket.write_all(&negotiation(&["/multistream/1.0.0", "na"])).await.unwrap();
        is_hung_up_on(socket).await
    };
    let (reached, hung_up) = tokio::join!(a.wire.reach(&place, PATIENCE), other);
    assert!(matches!(reached, Err(ReachError::Refused { reason: Reason::OtherVersion, .. })), "{reached:?}");
    assert!(hung_up);
    assert_eq!(a.refusal().await, Reason::OtherVersion);
}

#[tokio::test]
async fn garbage_from_outside_harms_nobody() {
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    insist(&a, &mut b, "before").await;
    let noise = negotiation(&["/multistream/1.0.0", "/catena/peer/1"]);
    let mut seed = 1_u64;
    for n in 0..40 {
        let mut socket = TcpStream::connect(b.address).await.unwrap();
        let mut bytes = if n % 2 == 0 { Vec::new() } else { noise.clone() };
        for _ in 0..n * 50 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.push((seed >> 56) as u8);
        }
        // It may hang up before it has read everything.
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        assert!(is_hung_up_on(socket).await);
    }
    assert!(matches!(b.refusal().await, Reason::Malformed | Reason::Broken(_) | Reason::OtherVersion));
    insist(&a, &mut b, "after").await;
}

#[tokio::test]
async fn who_connects_and_says_nothing_is_hung_up_on() {
    let settings = Settings { handshake: Duration::from_millis(300), ..member() };
    let mut a = Peer::with(&Identity::fleeting(), key(), settings).await;
    let silent = TcpStream::connect(a.address).await.unwrap();
    let mut stuck = TcpStream::connect(a.address).await.unwrap();
    stuck.write_all(&negotiation(&["/multistream/1.0.0", "/catena/peer/1"])).await.unwrap();
    assert!(is_hung_up_on(silent).await);
    assert!(is_hung_up_on(stuck).await);
    assert!(matches!(a.refusal().await, Reason::Broken(_)));
}

#[tokio::test]
async fn a_thousand_silent_callers_do_not_keep_members_out() {
    let settings = Settings { handshake: Duration::from_millis(500), ..member() };
    let mut a = Peer::with(&Identity::fleeting(), key(), settings).await;
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(TcpStream::connect(a.address).await.unwrap());
    }
    let b = Peer::start().await;
    b.knows(&a);
    insist(&b, &mut a, "let me through").await;
}

#[tokio::test]
async fn a_recorded_conversation_cannot_be_replayed() {
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    let relay = Relay::to(b.address).await;
    a.wire.know(b.id(), [relay.address]);
    insist(&a, &mut b, "pay ten").await;
    let recorded = relay.heard();
    assert!(!recorded.windows(7).any(|bytes| bytes == b"pay ten"), "readable on the wire");
    a.wire.stop().await;
    b.lost().await;
    b.assert_none(|_| false);
    let mut socket = TcpStream::connect(b.address).await.unwrap();
    socket.write_all(&recorded).await.unwrap();
    assert!(is_hung_up_on(socket).await);
    assert_eq!(b.refusal().await, Reason::Malformed);
    b.assert_none(|event| matches!(event, Event::Message { .. } | Event::Connected { .. }));
}

#[tokio::test]
async fn what_is_changed_on_the_way_ends_the_connection() {
    let (mut a, mut b) = (Peer::start().await, Peer::start().await);
    let relay = Relay::to(b.address).await;
    a.wire.know(b.id(), [relay.address]);
    insist(&a, &mut b, "pay ten").await;
    relay.disturb();
    a.send(&b, "pay ten more");
    assert_eq!(a.lost().await, b.id());
    assert_eq!(b.lost().await, a.id());
    b.assert_none(|event| matches!(event, Event::Message { .. }));
}

#[tokio::test]
async fn another_peer_at_a_known_address_gets_nothing() {
    let (mut a, b, mut c) = (Peer::start().await, Peer::start().await, Peer::start().await);
    a.wire.know(b.id(), [c.address]);
    a.send(&b, "for b only");
    assert_eq!(a.refusal().await, Reason::OtherPeer);
    tokio::time::sleep(Duration::from_millis(100)).await;
    c.assert_none(|event| matches!(event, Event::Message { .. }));
    assert_eq!(a.wire.counts().dropped, 1);
}

#[tokio::test]
async fn the_sender_of_a_message_is_who_has_its_key() {
    let (a, b, mut c) = (Peer::start().await, Peer::start().await, Peer::start().await);
    a.knows(&c);
    b.knows(&c);
    for _ in 0..2 {
        insist(&a, &mut c, "I am b").await;
        insist(&b, &mut c, "I am a").await;
    }
}

#[tokio::test]
async fn a_member_that_sends_too_large_a_message_is_hung_up_on() {
    let mut a = Peer::with(&Identity::fleeting(), key(), Settings { largest_frame: 1000, ..member() }).await;
    let (b, c) = (Peer::start().await, Peer::start().await);
    b.knows(&a);
    c.knows(&a);
    insist(&c, &mut a, "hello").await;
    insist(&b, &mut a, "hello").await;
    b.wire.send(a.id(), vec![0; 1001]).unwrap();
    assert_eq!(a.lost().await, b.id());
    assert_eq!(a.refusal().await, Reason::TooLarge { bytes: 1001 });
    insist(&c, &mut a, "still here").await;
    insist(&b, &mut a, "sorry").await;
}
