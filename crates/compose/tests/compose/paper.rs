//! The algorithms of the paper, to the letter, and what goes wrong with them. They are here so that nobody mends ours back
//! to them. The numbers of lines are those of Figures 4 to 7.

use catena_compose::lock::{Mode, Session, Table, Unit, Want};
use std::collections::HashMap;

/// Table I: whether `requested` may be granted beside `granted`.
fn may(granted: Mode, requested: Mode) -> bool {
    use Mode::{Is, Ix, S, Six, U, X};
    match requested {
        Is => matches!(granted, Is | Ix | S | Six),
        Ix => matches!(granted, Is | Ix),
        S => matches!(granted, Is | S),
        Six => matches!(granted, Is),
        U => matches!(granted, S),
        X => false,
    }
}

/// Table II: the mode that two make together.
fn convert(held: Option<Mode>, mode: Mode) -> Mode {
    use Mode::{Is, Ix, S, Six, U, X};
    let order = |m| match m {
        Is => 0,
        Ix | S => 1,
        Six => 2,
        U => 3,
        X => 4,
    };
    match (held, mode) {
        (None, mode) => mode,
        (Some(Ix), S) | (Some(S), Ix) => Six,
        (Some(held), mode) => {
            if order(held) >= order(mode) {
                held
            } else {
                mode
            }
        }
    }
}

/// How literally the algorithms are taken. Each step mends one obvious slip of the one before.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Reading {
    /// As printed.
    Literal,
    /// Transactions are not compared with themselves (lines 4 and 5 of Figure 4).
    Others,
    /// Lines 11 and 18 of Figure 4 look at the transaction itself, and line 13 of Figure 5 releases.
    Mended,
}

/// The locking table of the paper: one mode for each transaction and workflow.
struct Paper {
    parents: Vec<Vec<usize>>,
    locks: HashMap<(usize, usize), Mode>,
    transactions: usize,
    reading: Reading,
}

impl Paper {
    fn new(parents: &[&[usize]], reading: Reading) -> Self {
        let parents = parents.iter().map(|p| p.to_vec()).collect();
        Self { parents, locks: HashMap::new(), transactions: 2, reading }
    }

    /// Figure 4.
    fn lock(&mut self, t: usize, w: usize, mode: Mode) -> Result<(), ()> {
        if self.locks.get(&(t, w)) == Some(&mode) {
            return Ok(());
        }
        let mut last = t;
        for other in 0..self.transactions {
            if other == t && self.reading >= Reading::Others {
                continue;
            }
            last = other;
            if self.locks.get(&(other, w)).is_some_and(|held| !may(*held, mode)) {
                return Err(());
            }
        }
        // The variable of the loop above is used on after its end.
        let looked_at = if self.reading == Reading::Mended { t } else { last };
        for parent in self.parents[w].clone() {
            let held = self.locks.get(&(looked_at, parent)).copied();
            if matches!(mode, Mode::Is | Mode::S | Mode::U) {
                if held.is_none() {
                    self.lock(t, parent, Mode::Is)?;
                }
            } else if !matches!(held, Some(Mode::Ix | Mode::Six | Mode::X)) {
                self.lock(t, parent, Mode::Ix)?;
            }
        }
        let held = self.locks.get(&(t, w)).copied();
        self.locks.insert((t, w), convert(held, mode));
        Ok(())
    }

    /// Figure 5.
    fn release(&mut self, t: usize, w: usize, mode: Mode) {
        if self.locks.get(&(t, w)) != Some(&mode) {
            return;
        }
        self.locks.remove(&(t, w));
        for parent in self.parents[w].clone() {
            if matches!(mode, Mode::Is | Mode::S | Mode::U) {
                self.release(t, parent, Mode::Is);
            } else if self.reading == Reading::Mended {
                self.release(t, parent, Mode::Ix);
            } else {
                let _ = self.lock(t, parent, Mode::Ix);
            }
        }
    }

    /// "Any locks applied on w should be inherited by w'": whether a transaction has a workflow, itself or with what it is
    /// part of.
    fn inherits(&self, t: usize, w: usize, modes: &[Mode]) -> bool {
        self.locks.get(&(t, w)).is_some_and(|m| modes.contains(m))
            || self.parents[w].iter().any(|p| self.inherits(t, *p, modes))
    }

    fn writes(&self, t: usize, w: usize) -> bool {
        self.inherits(t, w, &[Mode::X])
    }

    fn reads(&self, t: usize, w: usize) -> bool {
        self.inherits(t, w, &[Mode::S, Mode::U, Mode::Six, Mode::X])
    }
}

const DIAMOND: [&[usize]; 4] = [&[], &[0], &[0], &[1, 2]];
const CHAIN: [&[usize]; 2] = [&[], &[0]];
const FORK: [&[usize]; 3] = [&[], &[0], &[0]];

#[test]
fn on_the_diamond_the_paper_lets_one_write_what_another_reads() {
    // Whoever locks W1 or W2 has W3 as well, and nothing compares the two.
    let mut paper = Paper::new(&DIAMOND, Reading::Mended);
    assert_eq!(paper.lock(0, 1, Mode::S), Ok(()));
    assert_eq!(paper.lock(1, 2, Mode::X), Ok(()));
    assert!(paper.reads(0, 3) && paper.writes(1, 3), "both have W3");
    let mut paper = Paper::new(&DIAMOND, Reading::Mended);
    assert_eq!(paper.lock(0, 1, Mode::X), Ok(()));
    assert_eq!(paper.lock(1, 2, Mode::X), Ok(()));
    assert!(paper.writes(0, 3) && paper.writes(1, 3), "both write W3");
}

#[test]
fn on_the_diamond_ours_lets_nobody_write_what_is_shared_without_locking_it() {
    let mut table = Table::new(crate::explore::units_of(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]));
    let [one, two] = [Session(1), Session(2)];
    assert_eq!(table.lock(one, &[Want::new(Unit(1), Mode::S)]), Ok(()));
    assert_eq!(table.lock(two, &[Want::new(Unit(2), Mode::X)]), Ok(()));
    assert!(table.may_read(one, Unit(3)) && !table.may_write(two, Unit(3)));
    assert!(table.lock(two, &[Want::new(Unit(3), Mode::X)]).is_err(), "it is read over the other path");
}

#[test]
fn as_printed_nobody_can_ever_lock_more_than_before() {
    let mut paper = Paper::new(&CHAIN, Reading::Literal);
    assert_eq!(paper.lock(0, 0, Mode::S), Ok(()));
    assert_eq!(paper.lock(0, 0, Mode::X), Err(()), "it is compared with itself");
}

#[test]
fn as_printed_a_stale_variable_lets_one_read_below_what_another_writes() {
    let mut paper = Paper::new(&CHAIN, Reading::Others);
    assert_eq!(paper.lock(0, 0, Mode::X), Ok(()));
    assert_eq!(paper.lock(1, 1, Mode::S), Ok(()));
    assert!(paper.writes(0, 1) && paper.reads(1, 1));
}

#[test]
fn as_printed_releasing_locks() {
    let mut paper = Paper::new(&CHAIN, Reading::Others);
    assert_eq!(paper.lock(0, 1, Mode::X), Ok(()));
    paper.release(0, 1, Mode::X);
    assert_eq!(paper.locks.get(&(0, 0)), Some(&Mode::Ix), "an intent is left for ever");
}

#[test]
fn without_counting_an_intent_is_lost_that_is_still_needed() {
    let mut paper = Paper::new(&FORK, Reading::Mended);
    assert_eq!(paper.lock(0, 1, Mode::X), Ok(()));
    assert_eq!(paper.lock(0, 2, Mode::X), Ok(()));
    paper.release(0, 2, Mode::X);
    assert_eq!(paper.lock(1, 0, Mode::X), Ok(()), "W1 is still being written");
    assert!(paper.writes(0, 1) && paper.writes(1, 1));
}
