//! Byte streams, and requests with their answers, which are short ones.

use super::event::{Event, Teller};
use super::frame::{self, Frame};
use libp2p_identity::PeerId;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _};

/// How long an answer may take to be thought of. Who asks has usually given up long before.
const LONGEST_THOUGHT: Duration = Duration::from_mins(10);
/// How long a request may take to arrive, and its answer to leave.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of bytes to or from another peer, encrypted, with back-pressure. Shut it down to end one's own direction.
pub struct ByteStream {
    inner: Compat<libp2p_swarm::Stream>,
    _one_of_many: OwnedSemaphorePermit,
}

impl ByteStream {
    pub(crate) fn new(stream: libp2p_swarm::Stream, permit: OwnedSemaphorePermit) -> Self {
        Self { inner: stream.compat(), _one_of_many: permit }
    }
}

impl std::fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByteStream(..)")
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Takes the answer to a request.
#[derive(Debug)]
pub struct Reply {
    answer: oneshot::Sender<Vec<u8>>,
    largest: usize,
}

impl Reply {
    /// Answers. What happens to the answer is not told: who asked may be gone. One that is too large counts as none.
    pub fn send(self, answer: Vec<u8>) {
        if answer.len() <= self.largest {
            let _ = self.answer.send(answer);
        }
    }
}

/// Sends a request and waits for its answer; `None` if there is none.
pub(crate) async fn ask(
    mut stream: ByteStream,
    request: &[u8],
    largest: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = Vec::with_capacity(request.len() + 4);
    frame::put_message(&mut buffer, request);
    stream.write_all(&buffer).await?;
    stream.shutdown().await?;
    match frame::read(&mut stream, largest, LONGEST_THOUGHT).await {
        Ok(Some(Frame::Message(answer))) => Ok(Some(answer)),
        Ok(_) => Ok(None),
        Err(frame::FrameError::Io(error)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Takes one request and has it answered.
pub(crate) async fn answer(mut stream: ByteStream, from: PeerId, largest: usize, teller: Teller) {
    let Ok(Some(Frame::Message(bytes))) = frame::read(&mut stream, largest, PATIENCE).await else {
        return;
    };
    let (sender, answer) = oneshot::channel();
    let length = bytes.len();
    let reply = Reply { answer: sender, largest };
    if teller.tell(Event::Request { from, bytes, reply }, length).await.is_err() {
        return;
    }
    drop(teller);
    let answer = tokio::time::timeout(LONGEST_THOUGHT, answer).await;
    let mut buffer = Vec::new();
    if let Ok(Ok(answer)) = answer {
        frame::put_message(&mut buffer, &answer);
    }
    let _ = tokio::time::timeout(PATIENCE, async {
        stream.write_all(&buffer).await?;
        stream.shutdown().await
    })
    .await;
}
