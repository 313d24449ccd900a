//! Keys: where an entry stands in the order of a trie.

use super::label::mix;
use serde::{Deserialize, Serialize};

/// How many octaves the scale of values has: from 0 to about 2.8e14.
const OCTAVES: f64 = 48.0;
/// Steps of the scale, 1365 in each octave.
const STEPS: f64 = 65536.0;

/// Where an entry stands in a trie: the upper half comes from a value and keeps its order, the lower half spreads equal
/// values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub u32);

impl Key {
    /// The first key.
    pub const MIN: Self = Self(0);
    /// The last key.
    pub const MAX: Self = Self(u32::MAX);

    /// The key of a value. The scale is logarithmic, so values that differ by less than 0.05 % may count as equal. Negative
    /// values and NaN count as 0, values beyond the scale as its end. `tie` (usually the id) spreads equal values.
    pub fn new(value: f64, tie: u64) -> Self {
        Self(u32::from(Self::step(value)) << 16 | (mix(tie) >> 48) as u32)
    }

    /// The least key that a value can have, to be used as a bound.
    pub fn least(value: f64) -> Self {
        Self(u32::from(Self::step(value)) << 16)
    }

    /// The greatest key that a value can have, to be used as a bound.
    pub fn greatest(value: f64) -> Self {
        Self(u32::from(Self::step(value)) << 16 | 0xffff)
    }

    fn step(value: f64) -> u16 {
        // A float that is NaN or too large saturates when it is cast.
        ((1.0 + value.max(0.0)).log2() / OCTAVES * STEPS) as u16
    }

    /// The key after this one.
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// The key before this one.
    pub fn previous(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

/// Keys from the first to the second, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span(pub Key, pub Key);

impl Span {
    /// All keys.
    pub const ALL: Self = Self(Key::MIN, Key::MAX);

    /// Whether a key is in it.
    pub fn contains(self, key: Key) -> bool {
        self.0 <= key && key <= self.1
    }

    /// The key in it that is nearest to this one.
    pub fn nearest(self, key: Key) -> Key {
        key.max(self.0).min(self.1)
    }

    /// Both, and what is between them.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0.min(other.0), self.1.max(other.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_their_values() {
        let values = [-7.0, 0.0, 0.01, 0.5, 0.6, 1.0, 8.0, 9.0, 1e6, 1.01e6, 1e12, 2e14];
        for pair in values.windows(2) {
            let (a, b) = (Key::new(pair[0], 9), Key::new(pair[1], 9));
            assert!(a <= b, "{pair:?}");
            assert!(a < b || pair[1] <= 0.0, "{pair:?}");
        }
        assert_eq!(Key::new(f64::NAN, 1), Key::new(0.0, 1));
        assert_eq!(Key::new(f64::INFINITY, 1), Key::new(1e300, 1));
    }

    #[test]
    fn equal_values_spread_but_stay_together() {
        let keys: std::collections::BTreeSet<Key> = (0..1000).map(|tie| Key::new(4.0, tie)).collect();
        assert!(keys.len() > 950, "{}", keys.len());
        assert!(keys.iter().all(|k| Key::least(4.0) <= *k && *k <= Key::greatest(4.0)));
        assert!(Key::greatest(4.0) < Key::least(4.1));
    }
}
