//! Where peers serve what they hold.

use catena_model::Name;
use catena_model::chain::{DataAddress, Origin};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Where peers serve what they hold, by their names: whoever is started again serves it elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Book(Mutex<HashMap<Name, DataAddress>>);

impl Book {
    /// A peer serves here now.
    pub(crate) fn note(&self, name: Name, address: DataAddress) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, address);
    }

    /// How to get what a peer has, if it is known.
    pub(crate) fn find(&self, name: &Name) -> Option<Origin> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.get(name).map(|address| Origin::Agent { name: name.clone(), address: address.clone() })
    }

    /// The same, now that it may have moved.
    pub(crate) fn now(&self, origin: &Origin) -> Origin {
        let found = if let Origin::Agent { name, .. } = origin { self.find(name) } else { None };
        found.unwrap_or_else(|| origin.clone())
    }
}
