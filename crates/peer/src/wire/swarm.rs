//! How libp2p is put together: TCP, then [`Admission`], then yamux for many streams on one connection.

use super::behaviour::{Streamed, Streams};
use super::handshake::Local;
use super::settings::Settings;
use super::upgrade::Admission;
use libp2p_core::Transport as _;
use libp2p_core::upgrade::Version;
use libp2p_identity::Keypair;
use libp2p_mdns as mdns;
use libp2p_noise as noise;
use libp2p_swarm::behaviour::toggle::Toggle;
use libp2p_swarm::{NetworkBehaviour, Swarm};
use libp2p_tcp as tcp;
use libp2p_yamux as yamux;
use std::io;
use std::sync::Arc;

/// How many streams yamux plans for. It gives each a window of 256 KiB and lets fast ones grow into what is left of
/// 1 GiB, which cannot be set through libp2p. So a large plan leaves little: 16 MiB per connection, enough for 1 Gbit/s
/// over 100 ms. Windows are promises and no memory, and far fewer streams than planned are ever accepted.
const PLANNED: usize = 4096 - 64;
/// How many streams of one connection may be about to be opened by the other side.
const NEGOTIATING: usize = 32;

#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p_swarm::derive_prelude", to_swarm = "BehaviourEvent")]
pub(crate) struct Behaviour {
    pub(crate) streams: Streams,
    pub(crate) mdns: Toggle<mdns::tokio::Behaviour>,
}

pub(crate) enum BehaviourEvent {
    Streams(Streamed),
    Mdns(mdns::Event),
}

impl From<Streamed> for BehaviourEvent {
    fn from(event: Streamed) -> Self {
        Self::Streams(event)
    }
}

impl From<mdns::Event> for BehaviourEvent {
    fn from(event: mdns::Event) -> Self {
        Self::Mdns(event)
    }
}

pub(crate) fn swarm(pair: &Keypair, local: Arc<Local>, settings: &Settings) -> io::Result<Swarm<Behaviour>> {
    let admission = Admission {
        noise: noise::Config::new(pair).map_err(io::Error::other)?,
        local: local.clone(),
        patience: settings.handshake,
    };
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(PLANNED);
    // Negotiation is done step by step and not ahead of the answer: only so is another version told apart from a break.
    let transport = tcp::tokio::Transport::new(tcp::Config::new().nodelay(true))
        .upgrade(Version::V1)
        .authenticate(admission)
        .multiplex(yamux)
        .timeout(settings.handshake)
        .boxed();
    let mdns = if settings.mdns {
        Some(mdns::tokio::Behaviour::new(mdns::Config::default(), local.id)?)
    } else {
        None
    };
    let behaviour = Behaviour { streams: Streams::new(local.clone()), mdns: mdns.into() };
    let config = libp2p_swarm::Config::with_tokio_executor()
        .with_idle_connection_timeout(settings.idle)
        .with_max_negotiating_inbound_streams(NEGOTIATING)
        .with_per_connection_event_buffer_size(4);
    Ok(Swarm::new(transport, behaviour, local.id, config))
}
