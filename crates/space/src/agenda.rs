//! What is to be done when.

use crate::time::Micros;
use std::collections::BTreeSet;

/// Things to do, in the order of time. What comes first is at hand: peers are asked for it after every message.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    all: BTreeSet<(Micros, T)>,
    first: Option<(Micros, T)>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { all: BTreeSet::new(), first: None }
    }
}

impl<T: Ord + Copy> Agenda<T> {
    /// What comes first.
    pub(crate) fn first(&self) -> Option<&(Micros, T)> {
        self.first.as_ref()
    }

    pub(crate) fn insert(&mut self, what: (Micros, T)) {
        self.all.insert(what);
        if self.first.is_none_or(|first| what < first) {
            self.first = Some(what);
        }
    }

    pub(crate) fn remove(&mut self, what: &(Micros, T)) {
        self.all.remove(what);
        if self.first.as_ref() == Some(what) {
            self.first = self.all.first().copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_first_is_what_a_sorted_set_has_first(steps in prop::collection::vec((any::<bool>(), 0..20_u64, 0..4_u8), 0..200)) {
            let (mut agenda, mut set) = (Agenda::default(), BTreeSet::new());
            for (inserts, at, what) in steps {
                if inserts {
                    agenda.insert((at, what));
                    set.insert((at, what));
                } else {
                    agenda.remove(&(at, what));
                    set.remove(&(at, what));
                }
                prop_assert_eq!(agenda.first(), set.first());
            }
        }
    }
}
