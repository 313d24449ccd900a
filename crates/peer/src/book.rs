//! Where peers serve what they hold.

use catena_model::Name;
use catena_model::chain::{DataAddress, Origin};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where peers serve what they hold, by their names: whoever is started again serves it elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<HashMap<Name, Entry>>);

#[derive(Debug)]
struct Entry {
    address: DataAddress,
    /// It is known not to be there: to ask it would be to wait for nothing.
    is_gone: bool,
}

impl Book {
    /// A peer serves here now.
    pub(crate) fn note(&self, name: Name, address: DataAddress) {
        self.lock().insert(name, Entry { address, is_gone: false });
    }

    /// How to get what a peer has, if it is known.
    pub(crate) fn find(&self, name: &Name) -> Option<Origin> {
        let book = self.lock();
        let entry = book.get(name).filter(|entry| !entry.is_gone)?;
        Some(Origin::Agent { name: name.clone(), address: entry.address.clone() })
    }

    /// The same, now that it may have moved; nothing if it is gone.
    pub(crate) fn now(&self, origin: &Origin) -> Option<Origin> {
        match origin {
            Origin::Agent { name, .. } if self.lock().contains_key(name) => self.find(name),
            _ => Some(origin.clone()),
        }
    }

    /// Only these are there.
    pub(crate) fn set_there(&self, there: &HashSet<Name>) {
        for (name, entry) in self.lock().iter_mut() {
            entry.is_gone = !there.contains(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
