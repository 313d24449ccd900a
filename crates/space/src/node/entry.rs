//! Gives workflows in and gets results back.

use super::call::{Purpose, To};
use super::{Node, Output};
use crate::id::{Group, Id, Peer};
use crate::message::{Reply, Request};
use crate::molecule::{Body, Ending, Matter, Name, Ref};
use crate::time::Micros;
use std::sync::Arc;

/// A workflow that was given in here.
#[derive(Debug, Default)]
pub(super) struct Entry {
    /// What it is, until it is in.
    workflow: Option<Arc<[u8]>>,
    /// Who waits to hear that what came of it is taken.
    giver: Option<(Peer, u64)>,
}

impl Node {
    /// Gives a workflow in. What came of it is told here.
    pub fn submit(&mut self, now: Micros, id: Id, workflow: Arc<[u8]>) {
        self.entries.insert(id, Entry { workflow: Some(workflow), giver: None });
        match self.route.homes(id.position()) {
            Some(homes) => self.enter(now, id, homes),
            None => drop(self.call(now, To::Place(id.position()), Purpose::Enter(id), Request::Find)),
        }
        self.settle(now);
    }

    /// Finds out how far a workflow is.
    pub fn ask_progress(&mut self, now: Micros, id: Id) {
        let homes = self.route.homes(id.position()).unwrap_or_default();
        let workflow = Ref { id, name: Name::WORKFLOW, homes };
        self.call(now, To::Molecule(workflow), Purpose::Progress(id), Request::Progress);
        self.settle(now);
    }

    /// Whether a workflow that was given in here is not in the space yet: it would be lost with this peer.
    pub fn is_entering(&self) -> bool {
        self.entries.values().any(|entry| entry.workflow.is_some())
    }

    pub(super) fn enter(&mut self, now: Micros, id: Id, homes: Group) {
        let Some(bytes) = self.entries.get(&id).and_then(|e| e.workflow.clone()) else { return };
        let name = Name::WORKFLOW;
        let workflow = Ref { id, name, homes };
        let body = Body {
            name,
            workflow,
            parent: None,
            sources: Vec::new(),
            targets: Vec::new(),
            value: catena_rules::Value::tag(name.kind.tag()),
            reports: false,
            matter: Matter::Workflow(bytes, self.me),
        };
        let what = Request::Create(id, homes, Arc::new(body));
        self.call(now, To::Home(workflow), Purpose::Enter(id), what);
    }

    /// The workflow is in: its homes look after it.
    pub(super) fn entered(&mut self, id: Id) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.workflow = None;
            self.out.push(Output::Entered(id));
        }
    }

    /// What came of a workflow. Whoever was started again does not know that it was given in here, but wants it too.
    pub(super) fn result(&mut self, from: (Peer, u64), workflow: Id, ending: Arc<Ending>) {
        let entry = self.entries.entry(workflow).or_default();
        if entry.giver.replace(from).is_none_or(|before| before != from) {
            self.out.push(Output::Over { workflow, ending });
        }
    }

    /// What came of a workflow is here, with everything that belongs to it: peers may forget it.
    pub fn taken(&mut self, now: Micros, workflow: Id) {
        if let Some(giver) = self.entries.remove(&workflow).and_then(|e| e.giver) {
            self.reply(giver, Reply::Yes);
        }
        self.settle(now);
    }

    /// What this task of a workflow has given is part of what came of it, and nobody has it.
    pub fn lacking(&mut self, now: Micros, workflow: Id, task: Name) {
        if let Some(giver) = self.entries.get_mut(&workflow).and_then(|e| e.giver.take()) {
            self.reply(giver, Reply::Lacks(task));
        }
        self.settle(now);
    }

    /// Finds out whether a workflow is still there: if not, that is told.
    pub fn ask_exists(&mut self, now: Micros, id: Id) {
        let workflow = Ref { id, name: Name::WORKFLOW, homes: Group::default() };
        self.call(now, To::Molecule(workflow), Purpose::Exists(id), Request::Exists);
        self.settle(now);
    }
}
