//! Drives a room: takes in what sessions say, writes down what must not be lost, and only then lets others hear of it.

use super::{Outbox, Studio};
use catena_bus::Word;
use catena_compose::lock::{Session, Timing};
use catena_compose::model::{RowChange, row_changes, workflow_changes};
use catena_compose::room::{Change, Output, Record, Role, Room, Said, Saved};
use catena_model::Name;
use catena_store::CompositionWrite;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Something for a room.
pub(super) enum Input {
    /// A session comes, or comes back.
    Join {
        session: Session,
        user: String,
        role: Role,
        via: Via,
    },
    Says {
        session: Session,
        text: String,
    },
    /// A session is not connected any more.
    Gone {
        session: Session,
    },
}

/// How a session is reached.
#[derive(Clone)]
pub(super) enum Via {
    Here(Outbox),
    Instance(Name),
}

/// So many inputs are handled before what came of them is written down.
const BATCH: usize = 256;
/// What is only for whoever asks later is written down after so long.
const LATER: Duration = Duration::from_millis(300);
/// How long to wait before writing again what could not be written.
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// A room without anybody is left after so long.
const EMPTY: Duration = Duration::from_secs(30);

/// Drives a room until somebody else has it, or nobody is there any more.
pub(super) async fn drive(
    studio: &Arc<Studio>,
    id: &str,
    term: u64,
    saved: Saved,
    mut inputs: mpsc::UnboundedReceiver<Input>,
) {
    // Numbers of locks grow with every owner.
    let saved = Saved { last_number: term << 32, ..saved };
    let mut actor = Actor {
        studio,
        id,
        term,
        written: saved.composition.clone(),
        room: Room::new(saved, Timing::default()),
        vias: HashMap::new(),
        later: CompositionWrite::default(),
        due: None,
    };
    let mut batch = Vec::new();
    let mut busy = Instant::now();
    loop {
        let pause = actor.pause();
        let received = tokio::time::timeout(pause, inputs.recv_many(&mut batch, BATCH)).await;
        let now = studio.member.now().max(0) as u64;
        for input in batch.drain(..) {
            actor.take(input, now);
        }
        actor.room.tick(now);
        if !actor.finish().await || received == Ok(0) {
            inputs.close();
            return;
        }
        if !actor.room.is_empty() {
            busy = Instant::now();
        }
        if busy.elapsed() > EMPTY && actor.due.is_none() {
            inputs.close();
            return;
        }
    }
}

struct Actor<'s> {
    studio: &'s Arc<Studio>,
    id: &'s str,
    term: u64,
    room: Room,
    /// What is in the tables.
    written: catena_compose::model::Composition,
    vias: HashMap<Session, Via>,
    /// What is written down together with the next operation, or when it is due.
    later: CompositionWrite,
    due: Option<Instant>,
}

impl Actor<'_> {
    /// How long nothing happens by itself.
    fn pause(&self) -> Duration {
        let now = self.studio.member.now().max(0) as u64;
        let moment = self.room.next_moment().map(|m| Duration::from_millis(m.saturating_sub(now)));
        let due = self.due.map(|d| d.saturating_duration_since(Instant::now()));
        [moment, due, Some(EMPTY)].into_iter().flatten().min().unwrap_or(EMPTY).max(Duration::from_millis(1))
    }

    fn take(&mut self, input: Input, now: u64) {
        match input {
            Input::Join { session, user, role, via } => {
                self.vias.insert(session, via);
                self.room.join(session, &user, role, now);
            }
            Input::Says { session, text } => self.room.receive(session, &text, now),
            Input::Gone { session } => {
                self.room.disconnected(session);
                self.vias.remove(&session);
            }
        }
    }

    /// Writes down what must not be lost and delivers the rest. Whether the room is still ours.
    async fn finish(&mut self) -> bool {
        let outputs = self.room.take_output();
        let mut said = Vec::with_capacity(outputs.len());
        let mut must = false;
        for output in outputs {
            match output {
                Output::Record(record) => must |= self.note(record),
                output => said.push(output),
            }
        }
        let overdue = self.due.is_some_and(|d| d <= Instant::now());
        if (must || overdue) && !self.write().await {
            let gone = Said::Refused {
                re: 0,
                error: catena_compose::room::Refused {
                    code: catena_compose::room::Code::Moved,
                    message: "another instance has this composition now".to_owned(),
                    ..Default::default()
                },
            };
            let all: Vec<Session> = self.vias.keys().copied().collect();
            self.deliver(&all, &gone).await;
            return false;
        }
        for output in said {
            match output {
                Output::Say(session, said) => self.deliver(&[session], &said).await,
                Output::Tell(except, event) => {
                    let all: Vec<Session> =
                        self.vias.keys().copied().filter(|s| Some(*s) != except).collect();
                    self.deliver(&all, &Said::Event(event)).await;
                }
                Output::Record(_) => {}
            }
        }
        true
    }

    /// Adds a record to what is written down next. Whether that has to be now.
    fn note(&mut self, record: Record) -> bool {
        match record {
            Record::Applied(applied) => {
                for change in &applied.changes {
                    let rows = self.rows_of(change);
                    self.later.rows.extend(rows);
                }
                let text = serde_json::to_string(&applied).unwrap_or_default();
                self.later.operations.push((applied.seq, text));
                true
            }
            Record::Named { version, composition } => {
                self.later.versions.push((version, composition));
                true
            }
            Record::Published { version } => {
                self.later.published = Some(version.name);
                true
            }
            Record::Lock(lock) => {
                self.later.locks.push(lock);
                self.due.get_or_insert(Instant::now() + LATER);
                false
            }
        }
    }

    /// What a change means for the tables.
    fn rows_of(&mut self, change: &Change) -> Vec<RowChange> {
        let Some(id) = change.workflow() else {
            let before = self.written.clone();
            let _: Result<Change, String> = change.apply(&mut self.written);
            return row_changes(&before, &self.written);
        };
        let before = self.written.workflows.get(id).cloned();
        let _: Result<Change, String> = change.apply(&mut self.written);
        workflow_changes(id, before.as_ref(), self.written.workflows.get(id))
    }

    /// Writes down what was noted, however long that takes. Whether the room is still ours.
    async fn write(&mut self) -> bool {
        let mut write = std::mem::take(&mut self.later);
        (write.seq, write.last_number) = (self.room.seq(), self.room.last_number());
        write.name.clone_from(&self.written.name);
        self.due = None;
        let member = &self.studio.member;
        loop {
            match member.store.write_composition(self.id, &member.id, self.term, &write).await {
                Ok(ours) => return ours,
                Err(e) if e.is_transient() => tokio::time::sleep(TRY_AGAIN).await,
                Err(e) => {
                    eprintln!("the composition {} cannot be written: {e}", self.id);
                    return false;
                }
            }
        }
    }

    async fn deliver(&mut self, sessions: &[Session], said: &Said) {
        let text: Arc<str> = serde_json::to_string(said).unwrap_or_default().into();
        let mut elsewhere: BTreeMap<Name, Vec<u64>> = BTreeMap::new();
        let mut cut = Vec::new();
        for session in sessions {
            match self.vias.get(session) {
                Some(Via::Here(outbox)) => {
                    cut.extend(outbox.try_send(text.clone()).is_err().then_some(*session));
                }
                Some(Via::Instance(instance)) => {
                    elsewhere.entry(instance.clone()).or_default().push(session.0);
                }
                None => {}
            }
        }
        // One that does not take in what it is told is not waited for.
        for session in cut {
            self.vias.remove(&session);
            self.room.disconnected(session);
        }
        for (instance, sessions) in elsewhere {
            let word = Word::Hear { sessions, text: text.to_string() };
            self.studio.send(&instance, self.id, word).await;
        }
    }
}
