//! Requests, answers and byte streams.

use crate::helper::{PATIENCE, Peer, key, member};
use catena_peer::wire::{AskError, Event, GroupKey, Identity, OpenError, Settings};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn guest() -> Peer {
    Peer::with(&Identity::fleeting(), key(), Settings::guest()).await
}

#[tokio::test]
async fn a_guest_asks_by_address_and_is_answered() {
    let (mut member, guest) = (Peer::start().await, guest().await);
    let place = member.address.to_string();
    let serve = async {
        for _ in 0..2 {
            let (from, bytes, reply) = member
                .wait(|event| match event {
                    Event::Request { from, bytes, reply } => Some((from, bytes, reply)),
                    Event::Connected { .. } => panic!("a guest is no member"),
                    _ => None,
                })
                .await;
            assert_eq!(from, guest.id());
            reply.send([b"you said ".as_slice(), &bytes].concat());
        }
    };
    let ask = async {
        for n in ["one", "two"] {
            let answer = guest.wire.ask(&*place, n.as_bytes(), PATIENCE).await.unwrap();
            assert_eq!(answer, format!("you said {n}").as_bytes());
        }
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn members_ask_each_other_and_large_answers_arrive() {
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    let id = b.id();
    let serve = b.wait(|event| match event {
        Event::Request { bytes, reply, .. } => {
            reply.send(vec![bytes[0]; 1 << 20]);
            Some(())
        }
        _ => None,
    });
    let (answer, ()) = tokio::join!(a.wire.ask(id, &[7], PATIENCE), serve);
    assert_eq!(answer.unwrap(), vec![7; 1 << 20]);
}

#[tokio::test]
async fn who_is_not_answered_is_told() {
    let (mut member, guest) = (Peer::start().await, guest().await);
    let place = member.address.to_string();
    let mut kept = None;
    let keep = member.wait(|event| match event {
        Event::Request { reply, .. } => Some(reply),
        _ => None,
    });
    let patience = Duration::from_millis(300);
    let (answer, reply) = tokio::join!(guest.wire.ask(&*place, b"?", patience), keep);
    kept.replace(reply);
    assert!(matches!(answer, Err(AskError::Late { .. })), "{answer:?}");
    let refuse = member.wait(|event| matches!(event, Event::Request { .. }).then_some(()));
    let (answer, ()) = tokio::join!(guest.wire.ask(&*place, b"?", PATIENCE), refuse);
    assert!(matches!(answer, Err(AskError::Silence)), "{answer:?}");
    let answer = guest.wire.ask(&*place, &vec![0; 2 << 20], PATIENCE).await;
    assert!(matches!(answer, Err(AskError::Send(_))), "{answer:?}");
}

#[tokio::test]
async fn a_guest_with_another_key_is_told_so() {
    let member = Peer::start().await;
    let other = GroupKey::from_secret(b"some other secret").unwrap();
    let guest = Peer::with(&Identity::fleeting(), other, Settings::guest()).await;
    let error = guest.wire.ask(member.address, b"?", PATIENCE).await.unwrap_err().to_string();
    assert!(error.contains("our group key is not its own"), "{error}");
}

#[tokio::test]
async fn a_connection_that_a_guest_no_longer_needs_ends() {
    let settings = Settings { idle: Duration::from_millis(200), ..member() };
    let mut member = Peer::with(&Identity::fleeting(), key(), settings).await;
    let (guest, place) = (guest().await, member.address);
    for _ in 0..2 {
        let serve = member.wait(|event| match event {
            Event::Request { reply, .. } => {
                reply.send(vec![]);
                Some(())
            }
            _ => None,
        });
        let (answer, ()) = tokio::join!(guest.wire.ask(place, b"?", PATIENCE), serve);
        answer.unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    let error = guest.wire.open(member.id()).await.unwrap_err();
    assert!(matches!(error, OpenError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn fifty_megabytes_are_copied_there_and_back() {
    const LENGTH: usize = 50 << 20;
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    let id = b.id();
    let echo = async {
        let (from, mut stream) = b
            .wait(|event| match event {
                Event::Stream { from, stream } => Some((from, stream)),
                _ => None,
            })
            .await;
        assert_eq!(from, a.id());
        let mut buffer = vec![0; 64 * 1024];
        while let length @ 1.. = stream.read(&mut buffer).await.unwrap() {
            stream.write_all(&buffer[..length]).await.unwrap();
        }
        stream.shutdown().await.unwrap();
    };
    let copy = async {
        let (mut from, mut to) = tokio::io::split(a.wire.open(id).await.unwrap());
        let write = async {
            let mut hash = blake3::Hasher::new();
            let mut block = vec![0; 1 << 20];
            for n in 0..LENGTH >> 20 {
                block.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 + n * 7 + i / 251) as u8);
                hash.update(&block);
                to.write_all(&block).await.unwrap();
            }
            to.shutdown().await.unwrap();
            hash.finalize()
        };
        let read = async {
            let (mut hash, mut length) = (blake3::Hasher::new(), 0);
            let mut buffer = vec![0; 64 * 1024];
            while let read @ 1.. = from.read(&mut buffer).await.unwrap() {
                hash.update(&buffer[..read]);
                length += read;
            }
            (hash.finalize(), length)
        };
        let (written, (read, length)) = tokio::join!(write, read);
        assert_eq!(length, LENGTH);
        assert_eq!(written, read);
    };
    tokio::join!(echo, copy);
}

#[tokio::test]
async fn messages_pass_a_stream_that_nobody_reads() {
    let (a, mut b) = (Peer::start().await, Peer::start().await);
    a.knows(&b);
    let mut stream = a.wire.open(b.id()).await.unwrap();
    let blocked = tokio::time::timeout(Duration::from_millis(500), async {
        loop {
            stream.write_all(&[0; 4096]).await.unwrap();
        }
    });
    blocked.await.unwrap_err();
    crate::helper::insist(&a, &mut b, "still there").await;
}

#[tokio::test]
async fn streams_to_nowhere_are_refused() {
    let a = Peer::start().await;
    let nobody = Identity::fleeting().id();
    assert!(matches!(a.wire.open(nobody).await, Err(OpenError::Unknown { .. })));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    a.wire.know(nobody, [free]);
    assert!(matches!(a.wire.open(nobody).await, Err(OpenError::Refused { .. })));
}

#[tokio::test]
async fn more_streams_than_allowed_wait_for_their_turn() {
    let settings = || Settings { streams: 4, ..member() };
    let a = Peer::with(&Identity::fleeting(), key(), settings()).await;
    let mut b = Peer::with(&Identity::fleeting(), key(), settings()).await;
    a.knows(&b);
    let id = b.id();
    let asks = (0..40_u8).map(|n| {
        let wire = a.wire.clone();
        tokio::spawn(async move { wire.ask(id, &[n], PATIENCE).await.unwrap() })
    });
    let asks: Vec<_> = asks.collect();
    for _ in 0..40 {
        b.wait(|event| match event {
            Event::Request { bytes, reply, .. } => {
                reply.send(bytes);
                Some(())
            }
            _ => None,
        })
        .await;
    }
    for (n, ask) in asks.into_iter().enumerate() {
        assert_eq!(ask.await.unwrap(), [n as u8]);
    }
}
