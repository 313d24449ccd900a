//! Editing together over HTTP: which instance has which composition, and who is connected to whom.
//!
//! The instance that has a composition drives its [room](catena_compose::room::Room); the others pass on what their
//! sessions say and hear. When the owner falls silent, whoever has sessions for the composition takes it over from what
//! was written down, and brings its sessions along.

mod actor;

use crate::member::Member;
use actor::{Input, Via};
use catena_bus::{Message, Word, subject};
use catena_compose::lock::Session;
use catena_compose::room::{Ask, Code, Refused, Request, Role, Said};
use catena_model::Name;
use catena_store::{CompositionHead, StoreError};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// An instance that was not heard of for so long does not have its compositions any more.
const LEASE: Duration = Duration::from_millis(2500);
/// How often it says that it is there, and looks whether others are.
const BEAT: Duration = Duration::from_millis(500);
/// What a session has not yet taken in. One that lets more pile up is cut off, so that others need not wait for it.
const OUTBOX: usize = 4096;
/// So many compositions are looked after at the same time.
const AT_ONCE: usize = 16;
/// How long a request that comes without a session of its own may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Texts for a session.
pub(crate) type Outbox = mpsc::Sender<Arc<str>>;

/// The part of an instance that lets people edit together.
pub(crate) struct Studio {
    member: Arc<Member>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The rooms that this instance drives.
    rooms: HashMap<String, mpsc::UnboundedSender<Input>>,
    /// Who has the compositions that sessions of this instance edit.
    owners: HashMap<String, Name>,
    sessions: HashMap<Session, Connected>,
}

/// A session that is connected to this instance.
#[derive(Clone)]
struct Connected {
    composition: String,
    user: String,
    role: Role,
    outbox: Outbox,
}

impl Studio {
    pub(crate) fn new(member: Arc<Member>) -> Arc<Self> {
        Arc::new(Self { member, state: Mutex::default() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease(&self) -> i64 {
        self.member.now() + LEASE.as_millis() as i64
    }

    /// Listens to other instances and keeps what this one has, until it is time to stop.
    pub(crate) async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
        let mut inbox = self.member.bus.subscribe(&subject::studio(&self.member.id)).await;
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut messages = Vec::new();
        loop {
            tokio::select! {
                received = inbox.receive(&mut messages, 1024) => {
                    if received == 0 {
                        return Ok(());
                    }
                    for message in messages.drain(..) {
                        if let Message::Compose { composition, word } = message {
                            self.hear(&composition, *word).await;
                        }
                    }
                }
                _ = beat.tick() => {
                    let keeps = !self.state().rooms.is_empty();
                    if keeps {
                        // What cannot be renewed now is renewed soon; writing decides who is right.
                        let _ = self.member.store.keep_compositions(&self.member.id, self.lease()).await;
                    }
                    self.look_after_sessions().await;
                }
                _ = stop.changed() => {
                    let _ = self.member.store.keep_compositions(&self.member.id, 0).await;
                    return Ok(());
                }
            }
        }
    }

    /// Something from another instance.
    async fn hear(self: &Arc<Self>, composition: &str, word: Word) {
        match word {
            Word::Join { session, user, role, from } => {
                let role = serde_json::from_value(role.into()).unwrap_or(Role::Viewer);
                let via = Via::Instance(from.clone());
                let join = Input::Join { session: Session(session), user, role, via };
                if !self.tell_room(composition, join) {
                    self.send(&from, composition, Word::Elsewhere).await;
                }
            }
            Word::Says { session, text } => {
                self.tell_room(composition, Input::Says { session: Session(session), text });
            }
            Word::Gone { session } => {
                self.tell_room(composition, Input::Gone { session: Session(session) });
            }
            Word::Hear { sessions, text } => {
                let text: Arc<str> = text.into();
                for session in sessions {
                    self.pass_on(Session(session), text.clone());
                }
            }
            Word::Elsewhere => {
                self.state().owners.remove(composition);
            }
        }
    }

    async fn send(&self, instance: &Name, composition: &str, word: Word) {
        let message = Message::Compose { composition: composition.to_owned(), word: Box::new(word) };
        self.member.bus.publish(&subject::studio(instance), message).await;
    }

    /// Gives something to a room of this instance. Whether there is one.
    fn tell_room(&self, composition: &str, input: Input) -> bool {
        self.state().rooms.get(composition).is_some_and(|room| room.send(input).is_ok())
    }

    /// Gives a text to a session of this instance. One that does not take in what it is told is cut off.
    fn pass_on(&self, session: Session, text: Arc<str>) {
        let outbox = self.state().sessions.get(&session).map(|c| c.outbox.clone());
        if let Some(outbox) = outbox
            && outbox.try_send(text).is_err()
        {
            self.state().sessions.remove(&session);
        }
    }

    /// A session connects. Texts for it come by the other end of its outbox, which closes when it is cut off.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        composition: &str,
        session: Session,
        user: &str,
        role: Role,
    ) -> Result<mpsc::Receiver<Arc<str>>, StoreError> {
        let (outbox, inbox) = mpsc::channel(OUTBOX);
        let connected =
            Connected { composition: composition.to_owned(), user: user.to_owned(), role, outbox };
        self.state().sessions.insert(session, connected.clone());
        self.bring(session, &connected).await?;
        Ok(inbox)
    }

    /// A session says something.
    pub(crate) async fn says(self: &Arc<Self>, session: Session, text: String) {
        let Some(connected) = self.state().sessions.get(&session).cloned() else { return };
        let composition = connected.composition;
        let owner = self.state().owners.get(&composition).cloned();
        match owner {
            Some(owner) if owner == self.member.id => {
                self.tell_room(&composition, Input::Says { session, text });
            }
            Some(owner) => self.send(&owner, &composition, Word::Says { session: session.0, text }).await,
            // Nobody has it at the moment. The session says it again when it has heard that somebody does.
            None => {}
        }
    }

    /// A session is not connected any more.
    pub(crate) async fn disconnect(self: &Arc<Self>, session: Session, inbox: mpsc::Receiver<Arc<str>>) {
        drop(inbox);
        // It may have come back by another connection before this one was found to be over.
        let is_over = |connected: &Connected| connected.outbox.is_closed();
        let gone = {
            let sessions = &mut self.state().sessions;
            if sessions.get(&session).is_some_and(is_over) { sessions.remove(&session) } else { None }
        };
        let Some(connected) = gone else { return };
        let owner = self.state().owners.get(&connected.composition).cloned();
        match owner {
            Some(owner) if owner == self.member.id => {
                self.tell_room(&connected.composition, Input::Gone { session });
            }
            Some(owner) => self.send(&owner, &connected.composition, Word::Gone { session: session.0 }).await,
            None => {}
        }
    }

    /// Brings a session to whoever has its composition.
    async fn bring(self: &Arc<Self>, session: Session, connected: &Connected) -> Result<(), StoreError> {
        let known = self.known_owner(&connected.composition);
        let found = if known.is_some() { known } else { self.find(&connected.composition).await? };
        let Some(owner) = found else { return Ok(()) };
        let (user, role) = (connected.user.clone(), connected.role);
        if owner == self.member.id {
            let via = Via::Here(connected.outbox.clone());
            self.tell_room(&connected.composition, Input::Join { session, user, role, via });
        } else {
            let role = serde_json::to_value(role).ok().and_then(|r| r.as_str().map(str::to_owned));
            let join = Word::Join {
                session: session.0,
                user,
                role: role.unwrap_or_default(),
                from: self.member.id.clone(),
            };
            self.send(&owner, &connected.composition, join).await;
        }
        Ok(())
    }

    /// Who has a composition, as far as is known here. That may be out of date, which is noticed soon.
    fn known_owner(&self, composition: &str) -> Option<Name> {
        let state = self.state();
        let is_driven = state.rooms.get(composition).is_some_and(|r| !r.is_closed());
        state.owners.get(composition).filter(|o| **o != self.member.id || is_driven).cloned()
    }

    /// Who has a composition. If nobody does, this instance takes it.
    async fn find(self: &Arc<Self>, composition: &str) -> Result<Option<Name>, StoreError> {
        let (store, id) = (&self.member.store, &self.member.id);
        let head = store.claim_composition(composition, id, self.member.now(), self.lease()).await?;
        let Some(head) = head else { return Ok(None) };
        let Some(owner) = head.owner else { return Ok(None) };
        if owner == *id {
            self.open(composition, head.term).await?;
        }
        self.state().owners.insert(composition.to_owned(), owner.clone());
        Ok(Some(owner))
    }

    /// Drives the room of a composition that this instance has.
    async fn open(self: &Arc<Self>, composition: &str, term: u64) -> Result<(), StoreError> {
        if self.state().rooms.get(composition).is_some_and(|room| !room.is_closed()) {
            return Ok(());
        }
        let Some(saved) = self.member.store.load_composition(composition).await? else { return Ok(()) };
        let (sender, receiver) = mpsc::unbounded_channel();
        {
            let mut state = self.state();
            if state.rooms.get(composition).is_some_and(|room| !room.is_closed()) {
                return Ok(());
            }
            state.rooms.insert(composition.to_owned(), sender);
        }
        let studio = self.clone();
        let name = composition.to_owned();
        tokio::spawn(async move {
            actor::drive(&studio, &name, term, saved, receiver).await;
            studio.close(&name);
        });
        Ok(())
    }

    fn close(&self, composition: &str) {
        let mut state = self.state();
        if state.rooms.get(composition).is_some_and(mpsc::UnboundedSender::is_closed) {
            state.rooms.remove(composition);
            if state.owners.get(composition) == Some(&self.member.id) {
                state.owners.remove(composition);
            }
        }
    }

    /// Brings sessions to the new owner of their composition, if it has one.
    async fn look_after_sessions(self: &Arc<Self>) {
        let sessions: Vec<(Session, Connected)> =
            self.state().sessions.iter().map(|(s, c)| (*s, c.clone())).collect();
        let mut compositions: HashMap<String, Vec<(Session, Connected)>> = HashMap::new();
        for (session, connected) in sessions {
            compositions.entry(connected.composition.clone()).or_default().push((session, connected));
        }
        if compositions.is_empty() {
            return;
        }
        let Ok(heads) = self.member.store.compositions().await else { return };
        let now = self.member.now();
        let looks = heads.into_iter().filter_map(|head| Some((compositions.remove(&head.id)?, head)));
        let looks = looks.map(|(sessions, head)| self.look_after(head, sessions, now));
        futures_util::stream::iter(looks).for_each_concurrent(AT_ONCE, |look| look).await;
    }

    /// Brings sessions to the owner of their composition, if that is another one than they know.
    async fn look_after(
        self: &Arc<Self>,
        head: CompositionHead,
        sessions: Vec<(Session, Connected)>,
        now: i64,
    ) {
        let before = self.state().owners.get(&head.id).cloned();
        let ours = Some(&self.member.id);
        if head.owner.as_ref() != ours && before.as_ref() == ours {
            // Somebody else has taken it. Who drives it here notices when nothing more comes in.
            self.state().rooms.remove(&head.id);
        }
        let is_driven = self.state().rooms.get(&head.id).is_some_and(|r| !r.is_closed());
        let is_alive = if head.owner.as_ref() == ours { is_driven } else { head.until > now };
        if is_alive && head.owner == before {
            return;
        }
        // Claiming says who has it, and takes it from one that has fallen silent.
        let Ok(Some(owner)) = self.find(&head.id).await else { return };
        if before.as_ref() != Some(&owner) || owner == self.member.id {
            for (session, connected) in sessions {
                let _ = self.bring(session, &connected).await;
            }
        }
    }

    /// Asks for something on behalf of a user who has no session: a request over HTTP, a command.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        composition: &str,
        user: &str,
        role: Role,
        ask: Ask,
    ) -> Result<Said, StoreError> {
        let session = Session(new_session());
        let mut inbox = self.connect(composition, session, user, role).await?;
        let asked = async {
            let mut said = None;
            while let Some(text) = inbox.recv().await {
                match serde_json::from_str(&text) {
                    Ok(Said::Done { re: 0, .. }) => {
                        // It has joined.
                        let request = Request { id: 1, ask: ask.clone() };
                        let text = serde_json::to_string(&request).unwrap_or_default();
                        self.says(session, text).await;
                    }
                    Ok(answer @ (Said::Done { re: 1, .. } | Said::Refused { .. })) => {
                        said = Some(answer);
                        break;
                    }
                    _ => {}
                }
            }
            said
        };
        let said = tokio::time::timeout(PATIENCE, asked).await.ok().flatten();
        let leave = serde_json::to_string(&Request { id: 2, ask: Ask::Leave }).unwrap_or_default();
        self.says(session, leave).await;
        self.disconnect(session, inbox).await;
        Ok(said.unwrap_or_else(|| {
            let message = "nobody has this composition at the moment; try again".to_owned();
            Said::Refused { re: 1, error: Refused { code: Code::Moved, message, ..Refused::default() } }
        }))
    }
}

/// A number that no other session has, and that JavaScript can count to.
pub(crate) fn new_session() -> u64 {
    let hex = catena_data::random_hex(6).unwrap_or_default();
    u64::from_str_radix(&hex, 16).unwrap_or(1).max(1)
}
