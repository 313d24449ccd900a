//! What a leaf holds: entries in the order of their keys, and memories of those that are gone.

use super::key::{Key, Span};
use super::message::{Direction, Entry, Item};
use std::collections::BTreeMap;

/// How many entries that are gone a leaf remembers. Beyond that the older half is forgotten.
const GRAVES: usize = 1024;

/// The entries of a leaf. One that was taken or removed stays as a grave, so that a late copy does not bring it back.
#[derive(Clone, Debug)]
pub(super) struct Entries<P> {
    slots: BTreeMap<(Key, u64), Slot<P>>,
    live: usize,
}

#[derive(Clone, Debug)]
struct Slot<P> {
    stamp: u64,
    until: u64,
    pointer: Option<P>,
}

impl<P> Default for Entries<P> {
    fn default() -> Self {
        Self { slots: BTreeMap::new(), live: 0 }
    }
}

impl<P: Clone> Entries<P> {
    /// How many can be taken.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Whether there is nothing, not even a grave.
    pub(super) fn is_bare(&self) -> bool {
        self.slots.is_empty()
    }

    /// The keys of what can be taken.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.slots.iter().filter(|(_, slot)| slot.pointer.is_some()).map(|((key, _), _)| *key)
    }

    /// Keeps an entry or a grave, unless more is known already. Returns whether it was news.
    pub(super) fn put(&mut self, now: u64, item: Item<P>) -> bool {
        let slot = Slot { stamp: item.stamp, until: now.saturating_add(item.life), pointer: item.pointer };
        let known = self.slots.get(&(item.key, item.id));
        // At the same stamp the grave wins: it is the same entry, and it was handed out.
        if known.is_some_and(|k| (k.stamp, k.pointer.is_none()) >= (slot.stamp, slot.pointer.is_none())) {
            return false;
        }
        let (was_live, is_live) = (known.is_some_and(|k| k.pointer.is_some()), slot.pointer.is_some());
        self.live = self.live + usize::from(is_live) - usize::from(was_live);
        self.slots.insert((item.key, item.id), slot);
        self.bound_graves();
        is_live || was_live
    }

    /// Hands out the best entry that fits, and keeps a grave for so long.
    pub(super) fn take(
        &mut self,
        now: u64,
        bounds: Span,
        direction: Direction,
        grave: u64,
        mut fits: impl FnMut(&P) -> bool,
    ) -> Option<Entry<P>> {
        if bounds.0 > bounds.1 {
            return None;
        }
        let range = self.slots.range_mut((bounds.0, 0)..=(bounds.1, u64::MAX));
        let mut is_good = |slot: &Slot<P>| slot.until > now && slot.pointer.as_ref().is_some_and(&mut fits);
        let (&(key, id), slot) = match direction {
            Direction::Up => range.into_iter().find(|(_, slot)| is_good(slot))?,
            Direction::Down => range.rev().find(|(_, slot)| is_good(slot))?,
        };
        let pointer = slot.pointer.take()?;
        let entry = Entry { key, id, stamp: slot.stamp, life: slot.until - now, pointer };
        slot.until = now.saturating_add(grave);
        self.live -= 1;
        self.bound_graves();
        Some(entry)
    }

    /// Takes out everything whose key is not in the span, graves too.
    pub(super) fn take_outside(&mut self, now: u64, span: Span) -> Vec<Item<P>> {
        let (inside, outside) =
            std::mem::take(&mut self.slots).into_iter().partition(|((key, _), _)| span.contains(*key));
        self.slots = inside;
        self.recount();
        Self::items(now, outside)
    }

    /// Takes out everything.
    pub(super) fn drain(&mut self, now: u64) -> Vec<Item<P>> {
        self.live = 0;
        Self::items(now, std::mem::take(&mut self.slots))
    }

    fn items(now: u64, slots: BTreeMap<(Key, u64), Slot<P>>) -> Vec<Item<P>> {
        let slots = slots.into_iter().filter(|(_, slot)| slot.until > now);
        let item = |((key, id), slot): ((Key, u64), Slot<P>)| Item {
            key,
            id,
            stamp: slot.stamp,
            life: slot.until - now,
            pointer: slot.pointer,
        };
        slots.map(item).collect()
    }

    fn recount(&mut self) {
        self.live = self.slots.values().filter(|slot| slot.pointer.is_some()).count();
    }

    /// Forgets what was not refreshed, and old graves.
    pub(super) fn expire(&mut self, now: u64) {
        self.slots.retain(|_, slot| slot.until > now);
        self.recount();
    }

    fn bound_graves(&mut self) {
        if self.slots.len() - self.live <= GRAVES {
            return;
        }
        let graves = self.slots.values().filter(|slot| slot.pointer.is_none());
        let mut untils: Vec<u64> = graves.map(|slot| slot.until).collect();
        untils.sort_unstable();
        let middle = untils[untils.len() / 2];
        self.slots.retain(|_, slot| slot.pointer.is_some() || slot.until > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: u32, stamp: u64, pointer: Option<u8>) -> Item<u8> {
        Item { key: Key(key), id: 7, stamp, life: 100, pointer }
    }

    #[test]
    fn what_was_taken_comes_back_only_with_a_later_stamp() {
        let mut entries = Entries::default();
        assert!(entries.put(0, item(1, 5, Some(1))));
        assert!(!entries.put(0, item(1, 5, Some(1))), "a copy is no news");
        let taken = entries.take(10, Span::ALL, Direction::Up, 30, |_| true).unwrap();
        assert_eq!((taken.stamp, taken.life), (5, 90));
        assert!(!entries.put(11, item(1, 5, Some(1))));
        assert_eq!(entries.live(), 0);
        assert!(entries.put(12, item(1, 6, Some(2))));
        assert_eq!(entries.live(), 1);
    }

    #[test]
    fn a_removal_that_overtakes_its_entry_wins() {
        let mut entries = Entries::default();
        assert!(!entries.put(0, item(1, 5, None)));
        assert!(!entries.put(1, item(1, 5, Some(1))));
        assert!(entries.take(2, Span::ALL, Direction::Up, 30, |_| true).is_none());
        entries.expire(100);
        assert!(entries.is_bare());
    }

    #[test]
    fn graves_are_bounded() {
        let mut entries = Entries::default();
        for id in 0..10_000 {
            entries.put(id, Item { key: Key(1), id, stamp: 1, life: 1_000_000, pointer: Some(0_u8) });
            entries.take(id, Span::ALL, Direction::Up, 1_000_000, |_| true).unwrap();
        }
        assert!(entries.slots.len() <= GRAVES);
    }
}
