//! The stream of messages of one connection: one task that reads and writes.

use super::event::{Event, Teller};
use super::frame::{self, Frame, FrameError};
use super::lane::{Lane, Lanes};
use super::presence::Pulse;
use super::settings::Settings;
use libp2p_identity::PeerId;
use libp2p_swarm::{ConnectionId, Stream};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;
use tokio_util::compat::FuturesAsyncReadCompatExt as _;

/// How much is written at once. As much as noise puts into few packets; more would only be copied more.
const BATCH: usize = 32 * 1024;
/// How much is read at once.
const READ: usize = 4 * 1024;

/// One connection that carries messages.
pub(crate) struct Link {
    pub(crate) peer: PeerId,
    pub(crate) address: SocketAddr,
    pub(crate) connection: ConnectionId,
    pub(crate) lane: Arc<Lane>,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) teller: Teller,
    pub(crate) settings: Arc<Settings>,
}

/// Why a link has ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The other side or the connection is gone.
    Gone,
    /// Nothing was heard for too long.
    Silent,
    /// A message was announced that is too large.
    TooLarge(u64),
}

impl Link {
    /// Carries messages until the connection ends.
    pub(crate) async fn run(self, mut stream: Stream) -> End {
        // Whether a connection is still needed is decided by the driver, not by this stream being there.
        stream.ignore_for_keep_alive();
        let wake = Arc::new(Notify::new());
        let asked = Notify::new();
        let (peer, address) = (self.peer, self.address);
        // Telling happens under the lock of the lane: else “connected” and “lost” of two connections could change places.
        let room = self.teller.room().await.ok();
        self.lane.link(self.connection, wake.clone(), || {
            if let Some(room) = room {
                room.tell(Event::Connected { peer, address });
            }
        });
        let (from, to) = tokio::io::split(stream.compat());
        let end = tokio::select! {
            end = self.read(BufReader::with_capacity(READ, from), &asked) => end,
            _ = self.write(to, &wake, &asked) => End::Gone,
        };
        let room = self.teller.room().await.ok();
        let waiting = self.lane.unlink(self.connection, self.settings.back_off, || {
            if let Some(room) = room {
                room.tell(Event::Lost { peer });
            }
        });
        if waiting {
            self.lanes.want(peer);
        }
        end
    }

    async fn read(&self, mut from: impl AsyncRead + Unpin, asked: &Notify) -> End {
        let Settings { largest_frame, silence, .. } = *self.settings;
        loop {
            let frame = match frame::read(&mut from, largest_frame, silence).await {
                Ok(Some(frame)) => frame,
                Err(FrameError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => return End::Silent,
                Ok(None) | Err(FrameError::Io(_)) => return End::Gone,
                Err(FrameError::TooLarge(bytes)) => return End::TooLarge(bytes),
            };
            self.pulse.beat();
            match frame {
                Frame::Beat => {}
                Frame::Probe => asked.notify_one(),
                Frame::Message(bytes) => {
                    let length = bytes.len();
                    self.lane.tally.received(length);
                    self.lanes.total.received(length);
                    // Who does not listen still takes part in the group: its messages are read and thrown away.
                    let _ = self.teller.tell(Event::Message { from: self.peer, bytes }, length).await;
                }
            }
        }
    }

    async fn write(&self, mut to: impl AsyncWrite + Unpin, wake: &Notify, asked: &Notify) -> io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            self.lane.take(self.connection, BATCH, &mut buffer, &self.lanes.total);
            if buffer.is_empty() {
                // An idle connection should cost little: there are as many as there are peers.
                buffer.shrink_to_fit();
                tokio::select! {
                    () = wake.notified() => continue,
                    () = asked.notified() => buffer.extend_from_slice(&frame::beat()),
                    () = self.pulse.probe.notified() => buffer.extend_from_slice(&frame::probe()),
                    () = tokio::time::sleep(self.settings.beat) => buffer.extend_from_slice(&frame::beat()),
                }
            }
            to.write_all(&buffer).await?;
            to.flush().await?;
            buffer.clear();
        }
    }
}
