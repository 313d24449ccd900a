//! Tests with a member that has the key and does not behave: it says anything on any stream.

use super::address::{multiaddr, socket};
use super::behaviour::{Purpose, Streamed};
use super::handshake::Local;
use super::presence::Presence;
use super::swarm::{BehaviourEvent, swarm};
use super::{Event, Events, GroupKey, Identity, Settings, Wire, instance};
use futures_util::StreamExt as _;
use futures_util::io::{AsyncReadExt as _, AsyncWriteExt as _};
use libp2p_swarm::dial_opts::DialOpts;
use libp2p_swarm::{Stream, SwarmEvent};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::time::Duration;

fn key() -> GroupKey {
    GroupKey::from_secret(b"the secret of the tests").unwrap()
}

fn settings() -> Settings {
    Settings { refusals: Duration::ZERO, ..Settings::member(["127.0.0.1:0".parse().unwrap()]) }
}

async fn start() -> (Wire, Events, SocketAddr) {
    let (wire, mut events) = Wire::start(&Identity::fleeting(), key(), settings()).unwrap();
    let Some(Event::Listening(address)) = events.next().await else { panic!("does not listen") };
    (wire, events, address)
}

/// Connects as a proper member would, opens a stream and does with it what it likes.
async fn misbehave(at: SocketAddr, purpose: Purpose, with: impl AsyncFnOnce(&mut Stream)) {
    let identity = Identity::fleeting();
    let settings = settings();
    let local = Arc::new(Local {
        id: identity.id(),
        key: key(),
        role: settings.role,
        instance: instance().unwrap(),
        port: AtomicU16::new(0),
        presence: Presence::default(),
        probe: settings.probe,
    });
    let mut swarm = swarm(identity.pair(), local, &settings).unwrap();
    swarm.dial(DialOpts::unknown_peer_id().address(multiaddr(at)).build()).unwrap();
    let mut stream = loop {
        match swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                assert_eq!(socket(endpoint.get_remote_address()), Some(at));
                swarm.behaviour_mut().streams.open(peer_id, connection_id, purpose);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Streams(Streamed::Opened { stream, .. })) => {
                break stream.unwrap();
            }
            _ => {}
        }
    };
    let doing = async {
        with(&mut stream).await;
        // Whether the other side hangs up, answers or waits is its business: it only must not break.
        let mut rest = [0; 1024];
        while let Ok(Ok(1..)) = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut rest)).await
        {
        }
    };
    tokio::pin!(doing);
    loop {
        tokio::select! {
            () = &mut doing => return,
            _ = swarm.select_next_some() => {}
        }
    }
}

fn random(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn whatever_a_member_says_the_others_go_on() {
    let ((victim, mut events, address), (good, _kept, _)) = (start().await, start().await);
    good.know(victim.id(), [address]);
    for purpose in [Purpose::Messages, Purpose::Request, Purpose::Bytes] {
        for length in [0, 1, 3, 4, 5, 100, 10_000, 300_000] {
            misbehave(address, purpose, async |stream: &mut Stream| {
                // It may hang up at any time, and need not take everything.
                let bytes = random(length);
                let writing = async {
                    stream.write_all(&bytes).await?;
                    stream.flush().await
                };
                let _ = tokio::time::timeout(Duration::from_millis(100), writing).await;
            })
            .await;
        }
        // A frame that never comes, one that is cut short, and small ones that mean nothing.
        for bytes in [vec![0, 1, 0, 0], vec![0, 1, 0, 0, 1, 2, 3], vec![0; 4000], vec![0xff; 4000]] {
            misbehave(address, purpose, async |stream: &mut Stream| {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.close().await;
            })
            .await;
        }
        good.send(victim.id(), b"well?".to_vec()).unwrap();
        loop {
            let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await.unwrap();
            if matches!(&event, Some(Event::Message { from, .. }) if *from == good.id()) {
                break;
            }
            assert!(event.is_some());
        }
    }
}

#[tokio::test]
async fn a_member_that_announces_too_much_is_hung_up_on() {
    let (_victim, mut events, address) = start().await;
    misbehave(address, Purpose::Messages, async |stream: &mut Stream| {
        stream.write_all(&(1_u32 << 30).to_be_bytes()).await.unwrap();
        let mut rest = [0; 16];
        while let Ok(1..) = stream.read(&mut rest).await {}
    })
    .await;
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await.unwrap().unwrap();
        if let Event::Refused { reason, .. } = event {
            assert_eq!(reason, super::Reason::TooLarge { bytes: 1 << 30 });
            break;
        }
    }
}
