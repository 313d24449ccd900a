//! Who has which files.
//!
//! What a task has where is looked up when somebody asks, and then only what is new: a file that everybody reads would
//! otherwise be counted for every task whenever somebody gets it.

use std::collections::HashSet;

#[derive(Debug, Default)]
pub(super) struct Files {
    all: Vec<File>,
    /// The files that agents have.
    held: Vec<HashSet<u32>>,
    /// Changes whenever anything does.
    version: u64,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Who has it, in the order in which they got it.
    holders: Vec<Holder>,
    /// Changes when somebody does not have it any more: their order is another one then.
    losses: u32,
}

/// Who has a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) agent: u32,
    /// When it is there, if it is on its way.
    pub(super) since: u64,
}

/// What somebody has seen of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) file: u32,
    holders: u32,
    losses: u32,
}

impl Files {
    /// An agent has a file, or will have it then.
    pub(super) fn hold(&mut self, file: u32, agent: u32, since: u64) {
        if self.held.len() <= agent as usize {
            self.held.resize_with(agent as usize + 1, HashSet::new);
        }
        if self.held[agent as usize].insert(file) {
            if self.all.len() <= file as usize {
                self.all.resize_with(file as usize + 1, File::default);
            }
            self.all[file as usize].holders.push(Holder { agent, since });
            self.version += 1;
        } else if since == 0 {
            // It was on its way.
            let mut holders = self.all[file as usize].holders.iter_mut();
            if let Some(holder) = holders.find(|h| h.agent == agent) {
                holder.since = 0;
            }
        }
    }

    /// An agent does not have a file any more.
    pub(super) fn unhold(&mut self, file: u32, agent: u32) {
        if self.held.get_mut(agent as usize).is_some_and(|held| held.remove(&file)) {
            self.lose(file, agent);
        }
    }

    /// An agent has nothing any more.
    pub(super) fn leave(&mut self, agent: u32) {
        let held = self.held.get_mut(agent as usize).map(std::mem::take);
        for file in held.unwrap_or_default() {
            self.lose(file, agent);
        }
    }

    /// Nobody has a file any more.
    pub(super) fn forget(&mut self, file: u32) {
        for holder in self.holders(file).to_vec() {
            self.unhold(file, holder.agent);
        }
    }

    fn lose(&mut self, file: u32, agent: u32) {
        let File { holders, losses } = &mut self.all[file as usize];
        holders.retain(|h| h.agent != agent);
        if holders.is_empty() {
            *holders = Vec::new();
        }
        // Who saw it that often ago has seen it since.
        *losses = losses.wrapping_add(1);
        self.version += 1;
    }

    /// Whether an agent has a file.
    pub(super) fn has(&self, agent: u32, file: u32) -> bool {
        self.held.get(agent as usize).is_some_and(|held| held.contains(&file))
    }

    /// Who has a file.
    pub(super) fn holders(&self, file: u32) -> &[Holder] {
        self.all.get(file as usize).map_or(&[], |f| &f.holders)
    }

    /// Changes whenever anything does.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// A file of which nothing was seen.
    pub(super) fn unseen(&self, file: u32) -> Seen {
        Seen { file, holders: 0, losses: self.all.get(file as usize).map_or(0, |f| f.losses) }
    }

    /// Whether what was seen of a file is still true, as far as it goes.
    pub(super) fn is_true(&self, seen: Seen) -> bool {
        self.all.get(seen.file as usize).is_none_or(|f| f.losses == seen.losses)
    }

    /// Who else has a file than was seen. They count as seen.
    pub(super) fn news(&self, seen: &mut Seen) -> &[Holder] {
        let holders = self.holders(seen.file);
        let new = &holders[seen.holders as usize..];
        seen.holders = holders.len() as u32;
        new
    }
}
