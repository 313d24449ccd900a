//! How two peers show each other that they belong to the same group.
//!
//! This runs inside the encrypted channel that noise has made, so both sides already know the [`PeerId`] of the other
//! and that it is not forged. What is missing is the key of the group:
//!
//! ```text
//! dialler → listener   hello: role, instance, port, 32 random bytes
//! listener → dialler   hello
//! dialler → listener   proof: hash, keyed with the group key, of side, both ids and both hellos
//! listener → dialler   verdict; if it is “welcome”, also its proof
//! dialler → listener   verdict
//! ```
//!
//! A proof holds for one direction of one conversation of one pair: the ids keep anyone in the middle from passing it
//! on, the random bytes from using it again, the side from sending it back. The dialler proves first, since it is the
//! one who wants something. Each side tells its verdict, so both can say why it did not work.
//!
//! libp2p's own pre-shared keys (`pnet`) were the alternative. They encrypt without authenticating: with a wrong key
//! both sides read noise, and which bytes they wait for then is chance. Nobody can be told what is wrong.

use super::key::GroupKey;
use super::presence::{Claim, Instance, Presence, Profile};
use super::settings::Role;
use futures_util::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use libp2p_identity::PeerId;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const NONCE: usize = 32;
const HELLO: usize = 1 + 8 + 16 + 2 + NONCE;
const PROOF: usize = 32;

/// What one side knows.
pub(crate) struct Local {
    pub(crate) id: PeerId,
    pub(crate) key: GroupKey,
    pub(crate) role: Role,
    pub(crate) instance: Instance,
    /// Where this peer listens; known once it does.
    pub(crate) port: AtomicU16,
    pub(crate) presence: Presence,
    pub(crate) probe: Duration,
}

/// Who has opened the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Dialler,
    Listener,
}

/// Why two peers did not come together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("it has another group key")]
    WrongKey,
    #[error("it says that our group key is another")]
    CalledWrongKey,
    #[error("it is this very peer")]
    Myself,
    /// Someone else has our identity.
    #[error("it has the identity of this peer")]
    Twin { we_are_later: bool },
    /// The other one has the identity of a third, which is connected.
    #[error("another process with its identity is connected")]
    TwinOfAnother,
    #[error("it does not keep to the protocol")]
    Malformed,
    #[error("it said nothing for too long")]
    Silent,
    #[error("it hung up: {0}")]
    Io(#[from] io::Error),
    #[error("no encrypted channel: {0}")]
    Noise(#[from] libp2p_noise::Error),
}

/// What one side thinks of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Welcome = 0,
    WrongKey = 1,
    Myself = 2,
    YouAreTheLaterTwin = 3,
    YouAreTheEarlierTwin = 4,
}

impl Verdict {
    fn read(byte: u8) -> Result<Self, HandshakeError> {
        let all = [
            Self::Welcome,
            Self::WrongKey,
            Self::Myself,
            Self::YouAreTheLaterTwin,
            Self::YouAreTheEarlierTwin,
        ];
        all.into_iter().find(|v| *v as u8 == byte).ok_or(HandshakeError::Malformed)
    }

    /// What it means to who is told.
    fn heard(self) -> Result<(), HandshakeError> {
        Err(match self {
            Self::Welcome => return Ok(()),
            Self::WrongKey => HandshakeError::CalledWrongKey,
            Self::Myself => HandshakeError::Myself,
            Self::YouAreTheLaterTwin => HandshakeError::Twin { we_are_later: true },
            Self::YouAreTheEarlierTwin => HandshakeError::Twin { we_are_later: false },
        })
    }
}

type Hello = [u8; HELLO];

fn write_hello(local: &Local) -> Result<Hello, HandshakeError> {
    let mut hello = [0; HELLO];
    hello[0] = match local.role {
        Role::Member => 0,
        Role::Guest => 1,
    };
    hello[1..9].copy_from_slice(&local.instance.since.to_be_bytes());
    hello[9..25].copy_from_slice(&local.instance.random);
    hello[25..27].copy_from_slice(&local.port.load(Ordering::Relaxed).to_be_bytes());
    getrandom::fill(&mut hello[27..]).map_err(io::Error::other)?;
    Ok(hello)
}

fn read_hello(hello: &Hello) -> Result<Profile, HandshakeError> {
    let role = match hello[0] {
        0 => Role::Member,
        1 => Role::Guest,
        _ => return Err(HandshakeError::Malformed),
    };
    let (mut since, mut random) = ([0; 8], [0; 16]);
    since.copy_from_slice(&hello[1..9]);
    random.copy_from_slice(&hello[9..25]);
    let instance = Instance { since: u64::from_be_bytes(since), random };
    Ok(Profile { role, instance, port: u16::from_be_bytes([hello[25], hello[26]]) })
}

/// What is said in one conversation.
struct Talk<'a, S> {
    socket: &'a mut S,
    local: &'a Local,
    peer: PeerId,
    side: Side,
    mine: Hello,
    theirs: Hello,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Talk<'a, S> {
    async fn say(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        self.socket.write_all(bytes).await?;
        Ok(self.socket.flush().await?)
    }

    async fn hear<const N: usize>(&mut self) -> Result<[u8; N], HandshakeError> {
        let mut bytes = [0; N];
        self.socket.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    fn proof(&self, of: Side) -> blake3::Hash {
        let (me, peer) = (self.local.id.to_bytes(), self.peer.to_bytes());
        let mine = (me, &self.mine);
        let theirs = (peer, &self.theirs);
        let (dialler, listener) = match self.side {
            Side::Dialler => (mine, theirs),
            Side::Listener => (theirs, mine),
        };
        let mut about = b"catena peer proof 1 ".to_vec();
        about.push(match of {
            Side::Dialler => b'd',
            Side::Listener => b'l',
        });
        for (id, hello) in [dialler, listener] {
            about.push(id.len() as u8);
            about.extend_from_slice(&id);
            about.extend_from_slice(hello);
        }
        self.local.key.proof(&about)
    }

    /// Whether the other has shown that it knows the key. The comparison takes the same time wherever they differ.
    fn is_proven(&self, proof: [u8; PROOF]) -> bool {
        let of = match self.side {
            Side::Dialler => Side::Listener,
            Side::Listener => Side::Dialler,
        };
        self.proof(of) == blake3::Hash::from_bytes(proof)
    }

    /// What we think of a peer that has the key.
    async fn judge(&mut self) -> Result<(Verdict, Result<Claim<'a>, HandshakeError>), HandshakeError> {
        let profile = read_hello(&self.theirs)?;
        if self.peer == self.local.id {
            if profile.instance == self.local.instance {
                return Ok((Verdict::Myself, Err(HandshakeError::Myself)));
            }
            let we_are_later = self.local.instance > profile.instance;
            return Ok((twin(!we_are_later), Err(HandshakeError::Twin { we_are_later })));
        }
        match self.local.presence.admit(self.peer, profile, self.local.probe).await {
            Ok(claim) => Ok((Verdict::Welcome, Ok(claim))),
            Err(taken) => Ok((twin(taken.earlier), Err(HandshakeError::TwinOfAnother))),
        }
    }
}

fn twin(you_are_later: bool) -> Verdict {
    if you_are_later { Verdict::YouAreTheLaterTwin } else { Verdict::YouAreTheEarlierTwin }
}

/// Finds out whether the other belongs to the group, and shows it that we do.
pub(crate) async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    local: &Local,
    peer: PeerId,
    side: Side,
) -> Result<(), HandshakeError> {
    let mine = write_hello(local)?;
    let mut talk = Talk { socket, local, peer, side, mine, theirs: [0; HELLO] };
    match side {
        Side::Dialler => {
            talk.say(&mine).await?;
            talk.theirs = talk.hear().await?;
            let proof = talk.proof(side);
            talk.say(proof.as_bytes()).await?;
            Verdict::read(talk.hear::<1>().await?[0])?.heard()?;
            let proof = talk.hear().await?;
            if !talk.is_proven(proof) {
                talk.say(&[Verdict::WrongKey as u8]).await?;
                return Err(HandshakeError::WrongKey);
            }
            let (verdict, claim) = talk.judge().await?;
            talk.say(&[verdict as u8]).await?;
            claim?.keep();
            Ok(())
        }
        Side::Listener => {
            talk.theirs = talk.hear().await?;
            talk.say(&mine).await?;
            let proof = talk.hear().await?;
            let (verdict, claim) = if talk.is_proven(proof) {
                talk.judge().await?
            } else {
                (Verdict::WrongKey, Err(HandshakeError::WrongKey))
            };
            let mut answer = vec![verdict as u8];
            if verdict == Verdict::Welcome {
                answer.extend_from_slice(talk.proof(side).as_bytes());
            }
            talk.say(&answer).await?;
            let claim = claim?;
            Verdict::read(talk.hear::<1>().await?[0])?.heard()?;
            claim.keep();
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::io::Cursor;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio_util::compat::{Compat, TokioAsyncReadCompatExt as _};

    fn local(secret: &[u8]) -> Local {
        let mut random = [0; 16];
        getrandom::fill(&mut random).unwrap();
        Local {
            id: PeerId::random(),
            key: GroupKey::from_secret(secret).unwrap(),
            role: Role::Member,
            instance: Instance { since: 1, random },
            port: AtomicU16::new(7),
            presence: Presence::default(),
            probe: Duration::from_millis(50),
        }
    }

    fn pipe() -> (Compat<tokio::io::DuplexStream>, Compat<tokio::io::DuplexStream>) {
        let (near, far) = tokio::io::duplex(1024);
        (near.compat(), far.compat())
    }

    const SECRET: &[u8] = b"sixteen bytes ok";

    type Shaken = Result<(), HandshakeError>;

    /// Each side as the other one believes it to be.
    async fn meet(dialler: &Local, listener: &Local, believed: (PeerId, PeerId)) -> (Shaken, Shaken) {
        let (mut near, mut far) = pipe();
        let dialling = async {
            let shaken = shake_hands(&mut near, dialler, believed.1, Side::Dialler).await;
            drop(near);
            shaken
        };
        let listening = async {
            let shaken = shake_hands(&mut far, listener, believed.0, Side::Listener).await;
            drop(far);
            shaken
        };
        tokio::join!(dialling, listening)
    }

    #[tokio::test]
    async fn those_with_the_same_key_come_together() {
        let (a, b) = (local(SECRET), local(SECRET));
        let shaken = meet(&a, &b, (a.id, b.id)).await;
        assert!(matches!(shaken, (Ok(()), Ok(()))), "{shaken:?}");
        assert_eq!(a.presence.profile(b.id).unwrap().instance, b.instance);
        assert_eq!(b.presence.profile(a.id).unwrap().port, 7);
    }

    #[tokio::test]
    async fn those_with_different_keys_are_both_told() {
        let (a, b) = (local(SECRET), local(b"another sixteen bytes"));
        let shaken = meet(&a, &b, (a.id, b.id)).await;
        assert!(
            matches!(shaken, (Err(HandshakeError::CalledWrongKey), Err(HandshakeError::WrongKey))),
            "{shaken:?}"
        );
        assert!(a.presence.profile(b.id).is_none() && b.presence.profile(a.id).is_none());
    }

    #[tokio::test]
    async fn nobody_in_the_middle_can_pass_proofs_on() {
        // Noise tells each side the identity of the one in the middle and not that of the other end.
        let (a, b, middle) = (local(SECRET), local(SECRET), PeerId::random());
        let shaken = meet(&a, &b, (middle, middle)).await;
        assert!(matches!(shaken.1, Err(HandshakeError::WrongKey)), "{shaken:?}");
        assert!(shaken.0.is_err());
    }

    /// Hears what was once said and listens to nobody.
    struct Recording(Cursor<Vec<u8>>);

    impl AsyncRead for Recording {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Recording {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_proof_that_was_heard_once_is_worth_nothing() {
        let (a, b) = (local(SECRET), local(SECRET));
        // What `a` says to `b`, recorded by whoever could read inside of the encrypted channel.
        let (mut near, mut far) = pipe();
        let recorded = async {
            let mut talk = Vec::new();
            let mine = write_hello(&b).unwrap();
            let mut hello = [0; HELLO];
            far.read_exact(&mut hello).await.unwrap();
            far.write_all(&mine).await.unwrap();
            let mut proof = [0; PROOF];
            far.read_exact(&mut proof).await.unwrap();
            talk.extend_from_slice(&hello);
            talk.extend_from_slice(&proof);
            talk.push(Verdict::Welcome as u8);
            drop(far);
            talk
        };
        let (_, recorded) = tokio::join!(shake_hands(&mut near, &a, b.id, Side::Dialler), recorded);
        let mut recording = Recording(Cursor::new(recorded));
        let shaken = shake_hands(&mut recording, &b, a.id, Side::Listener).await;
        assert!(matches!(shaken, Err(HandshakeError::WrongKey)), "{shaken:?}");
    }

    #[tokio::test]
    async fn a_proof_cannot_be_sent_back() {
        // The other one mirrors everything, so both hellos are the same and only the side differs.
        let a = local(SECRET);
        let (mut near, mut far) = pipe();
        let mirror = async {
            let (mut hello, mut proof) = ([0; HELLO], [0; PROOF]);
            far.read_exact(&mut hello).await.unwrap();
            far.write_all(&hello).await.unwrap();
            far.read_exact(&mut proof).await.unwrap();
            far.write_all(&[Verdict::Welcome as u8]).await.unwrap();
            far.write_all(&proof).await.unwrap();
            let mut verdict = [0];
            far.read_exact(&mut verdict).await.unwrap();
            verdict[0]
        };
        let (shaken, verdict) =
            tokio::join!(shake_hands(&mut near, &a, PeerId::random(), Side::Dialler), mirror);
        assert!(matches!(shaken, Err(HandshakeError::WrongKey)), "{shaken:?}");
        assert_eq!(verdict, Verdict::WrongKey as u8);
    }

    #[tokio::test]
    async fn any_bytes_are_refused() {
        let b = local(SECRET);
        for length in 0..200 {
            let mut bytes = vec![0; length];
            getrandom::fill(&mut bytes).unwrap();
            let peer = PeerId::random();
            for side in [Side::Dialler, Side::Listener] {
                let mut recording = Recording(Cursor::new(bytes.clone()));
                assert!(shake_hands(&mut recording, &b, peer, side).await.is_err());
            }
            assert!(b.presence.profile(peer).is_none());
        }
    }
}
