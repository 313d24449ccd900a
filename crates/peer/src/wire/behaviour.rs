//! Streams for libp2p: opens them where the driver says and hands over those that others open.
//!
//! The crate `libp2p-stream` does almost this. It keeps room for one incoming stream per protocol and drops the others,
//! which loses streams whenever several peers connect at once; and it does not say which connection a stream belongs to.

use super::handshake::Local;
use super::settings::Role;
use futures_util::future::{Ready, ready};
use libp2p_core::transport::PortUse;
use libp2p_core::upgrade::{InboundUpgrade, ReadyUpgrade, UpgradeInfo};
use libp2p_core::{Endpoint, Multiaddr};
use libp2p_identity::PeerId;
use libp2p_swarm::handler::{
    ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound,
};
use libp2p_swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm, NetworkBehaviour,
    NotifyHandler, Stream, StreamUpgradeError, SubstreamProtocol, THandlerInEvent, ToSwarm,
};
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// How many connections may be in the middle of their handshake. More are hung up on: a port scan must not cost memory.
const SHAKING: usize = 256;

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Messages,
    Request,
    Bytes,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Messages, Self::Request, Self::Bytes];
}

/// Its name on the wire.
impl AsRef<str> for Purpose {
    fn as_ref(&self) -> &str {
        match self {
            Self::Messages => "/catena/message/1",
            Self::Request => "/catena/request/1",
            Self::Bytes => "/catena/stream/1",
        }
    }
}

/// Names a stream that is being opened.
pub(crate) type Ticket = u64;

/// What the driver hears.
#[derive(Debug)]
pub(crate) enum Streamed {
    Incoming { peer: PeerId, connection: ConnectionId, purpose: Purpose, stream: Stream },
    Opened { ticket: Ticket, stream: Result<Stream, String> },
}

pub(crate) struct Streams {
    local: Arc<Local>,
    out: VecDeque<ToSwarm<Streamed, Order>>,
    shaking: HashSet<ConnectionId>,
    tickets: Ticket,
    waker: Option<Waker>,
}

impl Streams {
    pub(crate) fn new(local: Arc<Local>) -> Self {
        Self { local, out: VecDeque::new(), shaking: HashSet::new(), tickets: 0, waker: None }
    }

    /// Opens a stream; what becomes of it is told with the ticket.
    pub(crate) fn open(&mut self, peer: PeerId, connection: ConnectionId, purpose: Purpose) -> Ticket {
        self.tickets += 1;
        self.order(peer, connection, Order::Open(self.tickets, purpose));
        self.tickets
    }

    /// Has a connection closed as soon as nothing uses it.
    pub(crate) fn retire(&mut self, peer: PeerId, connection: ConnectionId) {
        self.order(peer, connection, Order::Retire);
    }

    fn order(&mut self, peer_id: PeerId, connection: ConnectionId, event: Order) {
        self.out.push_back(ToSwarm::NotifyHandler {
            peer_id,
            handler: NotifyHandler::One(connection),
            event,
        });
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Connections between members stay; those of guests last as long as they are used.
    fn handler(&self, peer: PeerId) -> Handler {
        let keep = self.local.presence.profile(peer).is_some_and(|p| p.role == Role::Member);
        Handler { keep, orders: VecDeque::new(), out: VecDeque::new() }
    }
}

impl NetworkBehaviour for Streams {
    type ConnectionHandler = Handler;
    type ToSwarm = Streamed;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        if self.shaking.len() >= SHAKING {
            return Err(ConnectionDenied::new(std::io::Error::other("too many connect at once")));
        }
        self.shaking.insert(connection);
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<Handler, ConnectionDenied> {
        self.shaking.remove(&connection);
        Ok(self.handler(peer))
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<Handler, ConnectionDenied> {
        Ok(self.handler(peer))
    }

    fn on_swarm_event(&mut self, event: FromSwarm) {
        if let FromSwarm::ListenFailure(failure) = event {
            self.shaking.remove(&failure.connection_id);
        }
    }

    fn on_connection_handler_event(&mut self, peer: PeerId, connection: ConnectionId, event: Report) {
        self.out.push_back(ToSwarm::GenerateEvent(match event {
            Report::Incoming(purpose, stream) => Streamed::Incoming { peer, connection, purpose, stream },
            Report::Opened(ticket, stream) => Streamed::Opened { ticket, stream },
        }));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<ToSwarm<Streamed, THandlerInEvent<Self>>> {
        if let Some(event) = self.out.pop_front() {
            return Poll::Ready(event);
        }
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// What a connection is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    Open(Ticket, Purpose),
    Retire,
}

/// What a connection tells.
#[derive(Debug)]
pub(crate) enum Report {
    Incoming(Purpose, Stream),
    Opened(Ticket, Result<Stream, String>),
}

/// The streams of one connection.
pub(crate) struct Handler {
    keep: bool,
    orders: VecDeque<(Ticket, Purpose)>,
    out: VecDeque<Report>,
}

impl ConnectionHandler for Handler {
    type FromBehaviour = Order;
    type ToBehaviour = Report;
    type InboundProtocol = Accept;
    type OutboundProtocol = ReadyUpgrade<Purpose>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = Ticket;

    fn listen_protocol(&self) -> SubstreamProtocol<Accept> {
        SubstreamProtocol::new(Accept, ())
    }

    fn connection_keep_alive(&self) -> bool {
        self.keep
    }

    fn poll(
        &mut self,
        _: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Self::OutboundProtocol, Ticket, Report>> {
        if let Some(report) = self.out.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(report));
        }
        if let Some((ticket, purpose)) = self.orders.pop_front() {
            let protocol = SubstreamProtocol::new(ReadyUpgrade::new(purpose), ticket);
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        // Whatever fills these queues also wakes the connection that polls them.
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, order: Order) {
        match order {
            Order::Open(ticket, purpose) => self.orders.push_back((ticket, purpose)),
            Order::Retire => self.keep = false,
        }
    }

    fn on_connection_event(&mut self, event: ConnectionEvent<Accept, Self::OutboundProtocol, (), Ticket>) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound {
                protocol: (purpose, stream),
                info: (),
            }) => self.out.push_back(Report::Incoming(purpose, stream)),
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound {
                protocol: stream,
                info: ticket,
            }) => self.out.push_back(Report::Opened(ticket, Ok(stream))),
            ConnectionEvent::DialUpgradeError(DialUpgradeError { info: ticket, error }) => {
                let why = match error {
                    StreamUpgradeError::Timeout => "it did not answer in time".to_owned(),
                    StreamUpgradeError::NegotiationFailed => "it does not take such streams".to_owned(),
                    StreamUpgradeError::Io(error) => error.to_string(),
                    StreamUpgradeError::Apply(never) => match never {},
                };
                self.out.push_back(Report::Opened(ticket, Err(why)));
            }
            _ => {}
        }
    }
}

/// Takes streams for any purpose.
#[derive(Clone, Copy)]
pub(crate) struct Accept;

impl UpgradeInfo for Accept {
    type Info = Purpose;
    type InfoIter = std::array::IntoIter<Purpose, 3>;

    fn protocol_info(&self) -> Self::InfoIter {
        Purpose::ALL.into_iter()
    }
}

impl InboundUpgrade<Stream> for Accept {
    type Output = (Purpose, Stream);
    type Error = Infallible;
    type Future = Ready<Result<Self::Output, Infallible>>;

    fn upgrade_inbound(self, stream: Stream, purpose: Purpose) -> Self::Future {
        ready(Ok((purpose, stream)))
    }
}
