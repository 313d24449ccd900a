//! Workflows that were given in at a peer: how far they are, and what came of them. What must not be forgotten is written
//! down, so a peer that is started again still knows.

use crate::desk::Answer;
use crate::matter::{Finished, Over};
use crate::wire::Reply;
use catena_model::chain::Origin;
use catena_space::id::Id;
use catena_space::molecule::{Ending, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What came of workflows is kept so long for who gave them in.
const KEEP: Duration = Duration::from_hours(24);

/// The workflows that were given in here.
#[derive(Debug)]
pub(crate) struct Entries {
    directory: PathBuf,
    known: BTreeMap<Id, Entry>,
    /// Who waits to hear that a workflow is in.
    waiting: BTreeMap<Id, Reply>,
    /// What came of these is being brought here.
    gathering: BTreeSet<Id>,
}

#[derive(Debug, Default)]
struct Entry {
    ending: Option<Ending>,
    over_at: Option<SystemTime>,
    tasks: (u32, u32),
    blocked: Vec<(String, String)>,
}

impl Entries {
    /// Those that were written down below a directory.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        let mut known = BTreeMap::new();
        for file in fs::read_dir(&directory)? {
            let file = file?;
            let Some(id) = file.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let bytes = fs::read(file.path())?;
            // Whatever cannot be read was not written to its end, which nobody was told of.
            let ending: Option<Ending> = postcard::from_bytes(&bytes).unwrap_or_default();
            let over_at = ending.as_ref().map(|_| file.metadata().and_then(|m| m.modified())).transpose()?;
            known.insert(id, Entry { ending, over_at, ..Entry::default() });
        }
        Ok(Self { directory, known, waiting: BTreeMap::new(), gathering: BTreeSet::new() })
    }

    /// Somebody waits until a workflow is in.
    pub(crate) fn await_entry(&mut self, id: Id, reply: Reply) {
        self.waiting.insert(id, reply);
    }

    /// A workflow is in: whatever happens, peers look after it.
    pub(crate) fn entered(&mut self, id: Id) -> io::Result<()> {
        self.write(id, None)?;
        self.known.entry(id).or_default();
        if let Some(reply) = self.waiting.remove(&id) {
            Answer::In(id.to_string()).give(reply);
        }
        Ok(())
    }

    /// How far a workflow is.
    pub(crate) fn progress(&mut self, id: Id, tasks: (u32, u32), blocked: &[(Name, String)]) {
        if let Some(entry) = self.known.get_mut(&id) {
            entry.tasks = tasks;
            entry.blocked = blocked.iter().map(|(name, why)| (name.to_string(), why.clone())).collect();
        }
    }

    /// Nobody answers for a workflow.
    pub(crate) fn unheard(&mut self, id: Id) {
        let why =
            "no peer that keeps it answers; if two of the three do not come back, it stays so".to_owned();
        if let Some(entry) = self.known.get_mut(&id) {
            entry.blocked = vec![(Name::WORKFLOW.to_string(), why)];
        }
    }

    /// Whether what came of a workflow has to be brought here, and nobody does so yet.
    pub(crate) fn begin_gathering(&mut self, id: Id) -> bool {
        self.gathering.insert(id)
    }

    /// What came of a workflow could not be brought here; it is tried again when it is said again.
    pub(crate) fn stop_gathering(&mut self, id: Id) {
        self.gathering.remove(&id);
    }

    /// What came of a workflow is here.
    pub(crate) fn over(&mut self, id: Id, ending: Ending) -> io::Result<()> {
        self.gathering.remove(&id);
        self.write(id, Some(&ending))?;
        let entry = self.known.entry(id).or_default();
        (entry.ending, entry.over_at) = (Some(ending), Some(SystemTime::now()));
        Ok(())
    }

    /// Whether it is known what came of a workflow.
    pub(crate) fn is_over(&self, id: Id) -> bool {
        self.known.get(&id).is_some_and(|entry| entry.ending.is_some())
    }

    /// Whether a workflow was given in here and is remembered.
    pub(crate) fn has(&self, id: Id) -> bool {
        self.known.contains_key(&id)
    }

    /// What is known of a workflow. Its files are here.
    pub(crate) fn answer(&self, id: Id, here: &Origin) -> Answer {
        match self.known.get(&id) {
            Some(Entry { ending: Some(ending), .. }) => {
                let ending = match Over::read(ending) {
                    Over::Done(finished) => at(*finished, here).to_ending(),
                    _ => ending.clone(),
                };
                Answer::Over(ending.good, ending.matter.to_vec())
            }
            Some(entry) => Answer::Going { tasks: entry.tasks, blocked: entry.blocked.clone() },
            None => Answer::No(format!("no workflow {id} was given in here")),
        }
    }

    /// Forgets what has been here for long.
    pub(crate) fn tidy(&mut self) {
        let directory = &self.directory;
        self.known.retain(|id, entry| {
            let old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > KEEP);
            let keeps = !entry.over_at.is_some_and(old);
            if !keeps {
                let _ = fs::remove_file(directory.join(id.to_string()));
            }
            keeps
        });
    }

    fn write(&self, id: Id, ending: Option<&Ending>) -> io::Result<()> {
        let bytes = postcard::to_allocvec(&ending).map_err(io::Error::other)?;
        let path = self.directory.join(id.to_string());
        let new = self.directory.join("new");
        fs::write(&new, bytes)?;
        fs::rename(new, path)
    }
}

fn at(mut finished: Finished, here: &Origin) -> Finished {
    for file in &mut finished.files {
        file.supply.sources = vec![here.clone()];
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::chain::DataAddress;

    fn here() -> Origin {
        let address = DataAddress { url: "http://here:1".into(), token: "t".into() };
        Origin::Agent { name: "here".into(), address }
    }

    #[test]
    fn a_peer_that_is_started_again_knows_what_was_given_in_and_what_came_of_it() {
        let place = tempfile::tempdir().unwrap();
        let open = || Entries::open(place.path().join("entries")).unwrap();
        let mut entries = open();
        entries.entered(Id(1)).unwrap();
        entries.entered(Id(2)).unwrap();
        assert!(entries.begin_gathering(Id(2)) && !entries.begin_gathering(Id(2)));
        entries.over(Id(2), Ending { good: false, matter: b"why"[..].into() }).unwrap();
        let mut entries = open();
        assert!(entries.has(Id(1)) && !entries.is_over(Id(1)) && entries.is_over(Id(2)));
        assert!(matches!(entries.answer(Id(2), &here()), Answer::Over(false, why) if why == b"why"));
        entries.unheard(Id(1));
        let Answer::Going { blocked, .. } = entries.answer(Id(1), &here()) else { panic!("it goes on") };
        assert_eq!(blocked[0].0, "WF:0");
        entries.progress(Id(1), (1, 2), &[]);
        assert!(
            matches!(entries.answer(Id(1), &here()), Answer::Going { tasks: (1, 2), blocked } if blocked.is_empty())
        );
        assert!(matches!(entries.answer(Id(3), &here()), Answer::No(_)));
        entries.tidy();
        assert!(entries.is_over(Id(2)), "it is not old");
    }
}
