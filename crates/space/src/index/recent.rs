//! What happened lately: a memory that is bounded in time and size.

use std::collections::{BTreeMap, VecDeque};

/// Remembers values for a while, and not more than so many.
#[derive(Clone, Debug)]
pub(super) struct Recent<K, V> {
    life: u64,
    most: usize,
    values: BTreeMap<K, V>,
    order: VecDeque<(u64, K)>,
}

impl<K: Ord + Copy, V> Recent<K, V> {
    pub(super) fn new(life: u64, most: usize) -> Self {
        Self { life, most, values: BTreeMap::new(), order: VecDeque::new() }
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.values.get(&key)
    }

    /// Remembers a value. Returns whether the key is new.
    pub(super) fn insert(&mut self, now: u64, key: K, value: V) -> bool {
        if self.values.insert(key, value).is_some() {
            return false;
        }
        self.order.push_back((now.saturating_add(self.life), key));
        while self.order.len() > self.most || self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.pop();
        }
        true
    }

    pub(super) fn expire(&mut self, now: u64) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.values.remove(&key);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_values_and_too_many_are_forgotten() {
        let mut recent = Recent::new(10, 3);
        assert!(recent.insert(0, 1, 'a'));
        assert!(!recent.insert(1, 1, 'b'));
        for key in 2..5 {
            recent.insert(5, key, 'c');
        }
        assert_eq!((recent.get(1), recent.len()), (None, 3));
        recent.expire(15);
        assert_eq!(recent.len(), 0);
    }
}
