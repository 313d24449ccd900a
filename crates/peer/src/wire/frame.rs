//! Messages on a stream: the length in four bytes, then the bytes. Lengths that no message can have are signs of life.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// “I am here.”
const BEAT: u32 = u32::MAX;
/// “Are you there? Answer with a beat.”
const PROBE: u32 = u32::MAX - 1;
/// What is set aside before bytes have come: an announcement alone must not cost memory.
const STEP: usize = 64 * 1024;
/// The largest message that can be allowed.
pub(crate) const LIMIT: usize = 1 << 30;

/// What comes on a stream of messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(Vec<u8>),
    Beat,
    Probe,
}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a message of {0} bytes is too large")]
    TooLarge(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The next frame, `None` at a clean end. Something must come every now and then: `patience` is for each piece, so a
/// large message may be slow.
pub(crate) async fn read(
    from: &mut (impl AsyncRead + Unpin),
    largest: usize,
    patience: Duration,
) -> Result<Option<Frame>, FrameError> {
    let mut head = Vec::with_capacity(4);
    if !fill(from, &mut head, 4, patience).await? {
        return if head.is_empty() { Ok(None) } else { Err(torn()) };
    }
    match u32::from_be_bytes([head[0], head[1], head[2], head[3]]) {
        BEAT => Ok(Some(Frame::Beat)),
        PROBE => Ok(Some(Frame::Probe)),
        length if length as usize > largest => Err(FrameError::TooLarge(length.into())),
        length => {
            let mut bytes = Vec::with_capacity((length as usize).min(STEP));
            if !fill(from, &mut bytes, length as usize, patience).await? {
                return Err(torn());
            }
            Ok(Some(Frame::Message(bytes)))
        }
    }
}

/// Reads until there are so many bytes; whether there are.
async fn fill(
    from: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    length: usize,
    patience: Duration,
) -> io::Result<bool> {
    while bytes.len() < length {
        let missing = length - bytes.len();
        let read = async { (&mut *from).take(missing as u64).read_buf(bytes).await };
        if timeout(patience, read).await?? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

fn torn() -> FrameError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

/// Adds a message to what is to be written.
pub(crate) fn put_message(buffer: &mut Vec<u8>, message: &[u8]) {
    buffer.extend_from_slice(&(message.len() as u32).to_be_bytes());
    buffer.extend_from_slice(message);
}

/// A beat, as it is written.
pub(crate) fn beat() -> [u8; 4] {
    BEAT.to_be_bytes()
}

/// A probe, as it is written.
pub(crate) fn probe() -> [u8; 4] {
    PROBE.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn all(mut bytes: &[u8], largest: usize) -> Result<Vec<Frame>, FrameError> {
        let mut frames = Vec::new();
        while let Some(frame) = read(&mut bytes, largest, Duration::from_secs(9)).await? {
            frames.push(frame);
        }
        Ok(frames)
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(messages: Vec<Vec<u8>>) {
            let mut bytes = Vec::new();
            for message in &messages {
                put_message(&mut bytes, message);
                bytes.extend_from_slice(&beat());
            }
            bytes.extend_from_slice(&probe());
            let mut expected: Vec<_> =
                messages.into_iter().flat_map(|m| [Frame::Message(m), Frame::Beat]).collect();
            expected.push(Frame::Probe);
            prop_assert_eq!(now(all(&bytes, 1 << 20)).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes: Vec<u8>) {
            for frame in now(all(&bytes, 64)).into_iter().flatten() {
                if let Frame::Message(message) = frame {
                    prop_assert!(message.len() <= 64);
                }
            }
        }
    }

    #[test]
    fn a_large_announcement_costs_no_memory() {
        let mut bytes = (1_u32 << 29).to_be_bytes().to_vec();
        bytes.push(0);
        assert!(matches!(now(all(&bytes, LIMIT)), Err(FrameError::Io(_))));
        assert!(matches!(now(all(&bytes, 1 << 20)), Err(FrameError::TooLarge(n)) if n == 1 << 29));
    }
}
