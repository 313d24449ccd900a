//! What happens on the wire.

use super::refusal::Reason;
use super::stream::{ByteStream, Reply};
use libp2p_identity::PeerId;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// What happens on the wire.
#[derive(Debug)]
pub enum Event {
    /// Peers can connect here. One per network interface.
    Listening(SocketAddr),
    /// A member can be sent messages now. Comes before its first message.
    Connected {
        /// Who.
        peer: PeerId,
        /// Where it can be dialled, if it listens.
        address: SocketAddr,
    },
    /// A member cannot be reached any more. It is connected again when there is something to send.
    Lost {
        /// Who.
        peer: PeerId,
    },
    /// A message of a member.
    Message {
        /// Who has sent it: proven, not claimed.
        from: PeerId,
        /// What.
        bytes: Vec<u8>,
    },
    /// Someone who knows the group key wants an answer.
    Request {
        /// Who asks: a member or a guest.
        from: PeerId,
        /// What.
        bytes: Vec<u8>,
        /// Takes the answer. Dropped, it tells the other that there is none.
        reply: Reply,
    },
    /// Someone who knows the group key has opened a byte stream.
    Stream {
        /// Who.
        from: PeerId,
        /// Both directions.
        stream: ByteStream,
    },
    /// A connection did not come about, or was closed for a reason. The same reason is not told again and again.
    Refused {
        /// The other side.
        address: SocketAddr,
        /// Why.
        reason: Reason,
    },
    /// Another process has the identity of this peer.
    Twin {
        /// Where it was found, or who said so.
        address: SocketAddr,
        /// This process was started after the other one: it is the one to give way.
        we_are_later: bool,
    },
    /// Someone is on the local network; whether it belongs to the group is not known yet.
    Discovered {
        /// Who.
        peer: PeerId,
        /// Where.
        addresses: Vec<SocketAddr>,
    },
}

/// What happens, in order. At the end nothing more does.
#[derive(Debug)]
pub struct Events {
    events: mpsc::Receiver<(Event, Option<OwnedSemaphorePermit>)>,
}

impl Events {
    /// The next event.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await.map(|(event, _)| event)
    }

    /// The next event, if it has happened already.
    pub fn next_now(&mut self) -> Option<Event> {
        self.events.try_recv().ok().map(|(event, _)| event)
    }
}

/// Where events are told. Who tells waits until there is room, which keeps memory bounded by the one who listens.
#[derive(Clone)]
pub(crate) struct Teller {
    events: mpsc::Sender<(Event, Option<OwnedSemaphorePermit>)>,
    budget: Arc<Semaphore>,
    most: usize,
}

/// Nobody listens any more.
#[derive(Debug)]
pub(crate) struct Deaf;

impl Teller {
    pub(crate) fn new(frames: usize, bytes: usize) -> (Self, Events) {
        let (sender, events) = mpsc::channel(frames.max(1));
        let most = bytes.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        (Self { events: sender, budget: Arc::new(Semaphore::new(most)), most }, Events { events })
    }

    /// Tells something that holds so many bytes.
    pub(crate) async fn tell(&self, event: Event, bytes: usize) -> Result<(), Deaf> {
        let share = bytes.min(self.most) as u32;
        let permit = tokio::select! {
            permit = self.budget.clone().acquire_many_owned(share) => permit.ok(),
            () = self.events.closed() => None,
        };
        self.events.send((event, permit)).await.map_err(|_| Deaf)
    }

    /// Waits for room for one event, which can then be told at once.
    pub(crate) async fn room(&self) -> Result<Room<'_>, Deaf> {
        self.events.reserve().await.map(Room).map_err(|_| Deaf)
    }
}

/// Room for one event.
pub(crate) struct Room<'a>(mpsc::Permit<'a, (Event, Option<OwnedSemaphorePermit>)>);

impl Room<'_> {
    pub(crate) fn tell(self, event: Event) {
        self.0.send((event, None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn message(length: usize) -> Event {
        Event::Message { from: PeerId::random(), bytes: vec![0; length] }
    }

    #[tokio::test]
    async fn who_tells_waits_for_who_listens() {
        let (teller, mut events) = Teller::new(10, 100);
        teller.tell(message(60), 60).await.unwrap();
        assert!(teller.tell(message(60), 60).now_or_never().is_none(), "no room");
        events.next().await.unwrap();
        teller.tell(message(60), 60).await.unwrap();
        events.next().await.unwrap();
        teller.tell(message(1000), 1000).await.unwrap();
        drop(events);
        assert!(teller.tell(message(1), 1).await.is_err());
    }
}
