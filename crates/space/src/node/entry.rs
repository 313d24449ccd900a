//! Gives workflows in and gets results back.

use super::call::{Purpose, To};
use super::{Node, Output};
use crate::id::{Group, Id, Peer};
use crate::message::{Reply, Request};
use crate::molecule::{Body, Ending, Matter, Name, Ref};
use crate::time::Micros;
use std::sync::Arc;

/// A workflow that was given in here.
#[derive(Debug)]
pub(super) struct Entry {
    workflow: Arc<[u8]>,
    is_in: bool,
}

impl Node {
    /// Gives a workflow in. What came of it is told here.
    pub fn submit(&mut self, now: Micros, id: Id, workflow: Arc<[u8]>) {
        self.entries.insert(id, Entry { workflow, is_in: false });
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
        self.entries.values().any(|entry| !entry.is_in)
    }

    pub(super) fn enter(&mut self, now: Micros, id: Id, homes: Group) {
        let Some(entry) = self.entries.get(&id) else { return };
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
            matter: Matter::Workflow(entry.workflow.clone(), self.me),
        };
        let what = Request::Create(id, homes, Arc::new(body));
        self.call(now, To::Home(workflow), Purpose::Enter(id), what);
    }

    /// The workflow is in: its homes look after it.
    pub(super) fn entered(&mut self, id: Id) {
        if let Some(entry) = self.entries.get_mut(&id) {
            *entry = Entry { workflow: [].into(), is_in: true };
            self.out.push(Output::Entered(id));
        }
    }

    pub(super) fn result(&mut self, from: (Peer, u64), workflow: Id, ending: Arc<Ending>) {
        self.reply(from, Reply::Yes);
        if self.entries.remove(&workflow).is_some() {
            self.out.push(Output::Over { workflow, ending });
        }
    }
}
