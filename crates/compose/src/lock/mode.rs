//! The modes of locks, which of them are compatible, and what two of them make together.
//!
//! Tables I and II of Fei, Lu and Zhang ("A Granular Concurrency Control for Collaborative Scientific Workflow
//! Composition") are neither symmetric nor monotone where U is concerned: joining U with IX loses the intent to write.
//! Here U is above S and below SIX, so that U with IX is SIX, and U and IS, U and S go together in both directions.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How a unit is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[repr(u8)]
pub enum Mode {
    /// Something below is read.
    Is,
    /// Something below is written.
    Ix,
    /// It is read, with everything below, and nobody may write there.
    S,
    /// It is read and about to be written.
    U,
    /// It is read, and something below is written.
    Six,
    /// It is written.
    X,
}

use Mode::{Is, Ix, S, Six, U, X};

/// With which others each mode goes together, as bits.
const COMPATIBLE: [u8; 6] = [
    bit(Is) | bit(Ix) | bit(S) | bit(U) | bit(Six),
    bit(Is) | bit(Ix),
    bit(Is) | bit(S) | bit(U),
    bit(Is) | bit(S),
    bit(Is),
    0,
];

const fn bit(mode: Mode) -> u8 {
    1 << mode as u8
}

impl Mode {
    /// All of them, weaker ones first.
    pub const ALL: [Self; 6] = [Is, Ix, S, U, Six, X];

    /// Whether two sessions may have these modes at the same unit.
    pub const fn is_compatible(self, other: Self) -> bool {
        COMPATIBLE[self as usize] & bit(other) != 0
    }

    /// The weakest mode that allows what both allow.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        match (self, other) {
            (X, _) | (_, X) => X,
            (Six, _) | (_, Six) | (Ix, S | U) | (S | U, Ix) => Six,
            (U, _) | (_, U) => U,
            (S, _) | (_, S) => S,
            (Ix, _) | (_, Ix) => Ix,
            (Is, Is) => Is,
        }
    }

    /// Whether it allows everything the other allows.
    pub fn covers(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// Whether it allows reading everything below.
    pub const fn reads(self) -> bool {
        matches!(self, S | U | Six | X)
    }

    /// Whether all ancestors must know that something is written, or is going to be.
    pub const fn is_writing(self) -> bool {
        matches!(self, Ix | U | Six | X)
    }

    /// The mode that those above must have.
    #[must_use]
    pub const fn intent(self) -> Self {
        if self.is_writing() { Ix } else { Is }
    }

    /// Its place in a set of modes.
    pub(crate) const fn bit(self) -> u8 {
        bit(self)
    }

    /// The modes it does not go together with, as a set.
    pub(crate) const fn conflicts(self) -> u8 {
        !COMPATIBLE[self as usize] & 0b11_1111
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Is => "IS",
            Ix => "IX",
            S => "S",
            U => "U",
            Six => "SIX",
            X => "X",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|m| m.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| format!("unknown mode `{name}`; known are IS, IX, S, U, SIX and X"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatibility_is_symmetric_and_a_weaker_mode_is_compatible_with_more() {
        for a in Mode::ALL {
            for b in Mode::ALL {
                assert_eq!(a.is_compatible(b), b.is_compatible(a), "{a} {b}");
                for c in Mode::ALL {
                    assert!(!a.covers(b) || !a.is_compatible(c) || b.is_compatible(c), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn joins_form_a_semilattice() {
        for a in Mode::ALL {
            assert_eq!(a.join(a), a);
            for b in Mode::ALL {
                assert_eq!(a.join(b), b.join(a), "{a} {b}");
                assert!(a.join(b).covers(a));
                for c in Mode::ALL {
                    assert_eq!(a.join(b).join(c), a.join(b.join(c)), "{a} {b} {c}");
                }
            }
        }
    }

    #[test]
    fn joining_never_loses_an_intent_to_write_and_asks_no_more_than_both_ask() {
        for a in Mode::ALL {
            for b in Mode::ALL {
                let both = a.join(b);
                assert!(both.is_writing() || !(a.is_writing() || b.is_writing()), "{a} {b}");
                for c in Mode::ALL {
                    let apart = a.is_compatible(c) && b.is_compatible(c);
                    assert_eq!(both.is_compatible(c), apart, "{a} {b} beside {c}");
                }
            }
        }
    }
}
