//! From a TCP connection to an encrypted one with a member of the group: noise and then our handshake, as one step for
//! libp2p. Its name carries the version, so that peers of another version are told apart before anything else is said.

use super::handshake::{HandshakeError, Local, Side, shake_hands};
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::io::{AsyncRead, AsyncWrite};
use libp2p_core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade, UpgradeInfo};
use libp2p_identity::PeerId;
use libp2p_noise as noise;
use std::sync::Arc;
use std::time::Duration;

/// The version of everything peers say to each other.
pub(crate) const PROTOCOL: &str = "/catena/peer/1";

#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) noise: noise::Config,
    pub(crate) local: Arc<Local>,
    pub(crate) patience: Duration,
}

impl Admission {
    fn shake<S>(
        self,
        secured: impl Future<Output = Result<(PeerId, noise::Output<S>), noise::Error>> + Send + 'static,
        side: Side,
    ) -> BoxFuture<'static, Result<(PeerId, noise::Output<S>), HandshakeError>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shaking = async move {
            let (peer, mut socket) = secured.await?;
            shake_hands(&mut socket, &self.local, peer, side).await?;
            Ok((peer, socket))
        };
        async move {
            tokio::time::timeout(self.patience, shaking).await.unwrap_or(Err(HandshakeError::Silent))
        }
        .boxed()
    }
}

impl UpgradeInfo for Admission {
    type Info = &'static str;
    type InfoIter = std::iter::Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        std::iter::once(PROTOCOL)
    }
}

impl<S> InboundConnectionUpgrade<S> for Admission
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Output = (PeerId, noise::Output<S>);
    type Error = HandshakeError;
    type Future = BoxFuture<'static, Result<Self::Output, Self::Error>>;

    fn upgrade_inbound(self, socket: S, _: Self::Info) -> Self::Future {
        let secured = self.noise.clone().upgrade_inbound(socket, "/noise");
        self.shake(secured, Side::Listener)
    }
}

impl<S> OutboundConnectionUpgrade<S> for Admission
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Output = (PeerId, noise::Output<S>);
    type Error = HandshakeError;
    type Future = BoxFuture<'static, Result<Self::Output, Self::Error>>;

    fn upgrade_outbound(self, socket: S, _: Self::Info) -> Self::Future {
        let secured = self.noise.clone().upgrade_outbound(socket, "/noise");
        self.shake(secured, Side::Dialler)
    }
}
