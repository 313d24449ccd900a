//! Peers on free ports, and a relay between them that can be cut, frozen, overheard and disturbed.

use catena_peer::wire::{Event, Events, GroupKey, Identity, PeerId, Reason, Settings, Wire};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Nothing here takes that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn key() -> GroupKey {
    GroupKey::from_secret(b"the secret of the tests").unwrap()
}

pub(crate) fn here() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Settings for impatient tests.
pub(crate) fn member() -> Settings {
    Settings {
        handshake: Duration::from_secs(3),
        probe: Duration::from_millis(300),
        back_off: Duration::from_millis(50),
        longest_back_off: Duration::from_millis(500),
        refusals: Duration::ZERO,
        ..Settings::member([here()])
    }
}

pub(crate) struct Peer {
    pub(crate) wire: Wire,
    pub(crate) events: Events,
    pub(crate) address: SocketAddr,
}

impl Peer {
    pub(crate) async fn start() -> Self {
        Self::with(&Identity::fleeting(), key(), member()).await
    }

    pub(crate) async fn with(identity: &Identity, key: GroupKey, settings: Settings) -> Self {
        let listens = !settings.listen.is_empty();
        let (wire, mut events) = Wire::start(identity, key, settings).unwrap();
        let address = if listens {
            let Some(Event::Listening(address)) = events.next().await else { panic!("does not listen") };
            address
        } else {
            here()
        };
        Self { wire, events, address }
    }

    pub(crate) fn id(&self) -> PeerId {
        self.wire.id()
    }

    pub(crate) fn knows(&self, other: &Peer) {
        self.wire.know(other.id(), [other.address]);
    }

    pub(crate) fn send(&self, to: &Peer, text: &str) {
        self.wire.send(to.id(), text.as_bytes().to_vec()).unwrap();
    }

    /// The first event that is wanted; others are passed over.
    pub(crate) async fn wait<T>(&mut self, mut wanted: impl FnMut(Event) -> Option<T>) -> T {
        let wait = async {
            loop {
                let event = self.events.next().await.expect("the wire has ended");
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("what was awaited did not happen")
    }

    pub(crate) async fn message(&mut self) -> (PeerId, String) {
        self.wait(|event| match event {
            Event::Message { from, bytes } => Some((from, String::from_utf8(bytes).unwrap())),
            _ => None,
        })
        .await
    }

    pub(crate) async fn refusal(&mut self) -> Reason {
        self.wait(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        })
        .await
    }

    pub(crate) async fn twin(&mut self) -> bool {
        self.wait(|event| match event {
            Event::Twin { we_are_later, .. } => Some(we_are_later),
            _ => None,
        })
        .await
    }

    pub(crate) async fn connected(&mut self) -> PeerId {
        self.wait(|event| match event {
            Event::Connected { peer, .. } => Some(peer),
            _ => None,
        })
        .await
    }

    pub(crate) async fn lost(&mut self) -> PeerId {
        self.wait(|event| match event {
            Event::Lost { peer } => Some(peer),
            _ => None,
        })
        .await
    }

    /// Nothing has happened that `unwanted` finds.
    pub(crate) fn assert_none(&mut self, mut unwanted: impl FnMut(&Event) -> bool) {
        while let Some(event) = self.events.next_now() {
            assert!(!unwanted(&event), "{event:?}");
        }
    }
}

/// Sends until it arrives: messages may get lost.
pub(crate) async fn insist(from: &Peer, to: &mut Peer, text: &str) {
    let target = to.id();
    let sending = async {
        loop {
            from.wire.send(target, text.as_bytes().to_vec()).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let arriving = async { while to.message().await != (from.id(), text.to_owned()) {} };
    tokio::select! {
        () = sending => {}
        () = arriving => {}
    }
}

/// Passes bytes on.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    frozen: Arc<AtomicBool>,
    disturbed: Arc<AtomicBool>,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(here()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, disturbed, heard) = <(Arc<AtomicBool>, Arc<AtomicBool>, Arc<Mutex<Vec<u8>>>)>::default();
        let relay = Self { address, frozen, disturbed, heard };
        let (frozen, disturbed, heard) = (relay.frozen.clone(), relay.disturbed.clone(), relay.heard.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(target).await.unwrap();
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pass(near_in, far_out, frozen.clone(), disturbed.clone(), Some(heard.clone())));
                tokio::spawn(pass(far_in, near_out, frozen.clone(), disturbed.clone(), None));
            }
        });
        relay
    }

    /// Stops passing anything on, without closing anything.
    pub(crate) fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    /// Changes what passes.
    pub(crate) fn disturb(&self) {
        self.disturbed.store(true, Ordering::Relaxed);
    }

    /// What was said by who connected.
    pub(crate) fn heard(&self) -> Vec<u8> {
        self.heard.lock().unwrap().clone()
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    frozen: Arc<AtomicBool>,
    disturbed: Arc<AtomicBool>,
    heard: Option<Arc<Mutex<Vec<u8>>>>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if let Some(heard) = &heard {
            heard.lock().unwrap().extend_from_slice(&buffer[..length]);
        }
        while frozen.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if disturbed.load(Ordering::Relaxed) {
            buffer[length / 2] ^= 0x55;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
