//! Goes through every state that a few sessions can bring a small graph of units into.

use catena_compose::lock::{Mode, Session, Table, Unit, Units, Want};
use std::collections::HashSet;
use std::sync::Arc;

/// All graphs with one root and so many units, with the units in an order in which parents come first.
pub(crate) fn rooted_graphs(units: u32) -> Vec<Vec<(u32, u32)>> {
    let mut graphs = vec![Vec::new()];
    for child in 1..units {
        let choices = 1..1u32 << child;
        let extend = |graph: &Vec<(u32, u32)>| {
            let graph = graph.clone();
            choices.clone().map(move |parents| {
                let arcs = (0..child).filter(|p| parents >> p & 1 == 1).map(|p| (p, child));
                graph.iter().copied().chain(arcs).collect::<Vec<_>>()
            })
        };
        graphs = graphs.iter().flat_map(extend).collect();
    }
    graphs
}

pub(crate) fn units_of(count: u32, arcs: &[(u32, u32)]) -> Units {
    let mut units = Units::default();
    for unit in 0..count {
        let parents: Vec<Unit> = arcs.iter().filter(|(_, c)| *c == unit).map(|(p, _)| Unit(*p)).collect();
        units.add(&parents);
    }
    units
}

/// All ways from the root to a unit, without the unit.
fn chains(units: &Units, unit: Unit) -> Vec<Arc<[Unit]>> {
    if units.parents(unit).is_empty() {
        return vec![Arc::new([])];
    }
    let over = |parent: &Unit| {
        let parent = *parent;
        chains(units, parent).into_iter().map(move |c| c.iter().copied().chain([parent]).collect())
    };
    units.parents(unit).iter().flat_map(over).collect()
}

/// Something a session has locked: unit, mode, and by which of the ways to the unit.
type Entry = (u32, Mode, usize);
/// At most this many entries of a session.
const ENTRIES: usize = 2;

/// A small world: a graph, sessions, and the modes they ask for.
pub(crate) struct World {
    units: Units,
    chains: Vec<Vec<Arc<[Unit]>>>,
    above: Vec<Vec<Unit>>,
    sessions: u64,
    modes: Vec<Mode>,
}

impl World {
    pub(crate) fn new(count: u32, arcs: &[(u32, u32)], sessions: u64, modes: &[Mode]) -> Self {
        let mut units = units_of(count, arcs);
        let above = (0..count).map(|u| units.above(Unit(u)).to_vec()).collect();
        let chains = (0..count).map(|u| chains(&units, Unit(u))).collect();
        Self { units, chains, above, sessions, modes: modes.to_vec() }
    }

    /// How many states there are. Panics, with the state, where something does not hold.
    pub(crate) fn explore(&self) -> usize {
        let start = vec![Vec::new(); self.sessions as usize];
        let mut seen = HashSet::with_hasher(rustc_hash::FxBuildHasher);
        seen.insert(key(&start));
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            let mut table = self.table(&state);
            self.check(&mut table, &state);
            for session in 0..state.len() {
                // Sessions are alike: those that have nothing need not all try.
                if session > 0 && state[session].is_empty() && state[session - 1].is_empty() {
                    continue;
                }
                for (unit, mode, chain) in self.wishes() {
                    let Some(next) = self.after(&mut table, &state, session, (unit, mode, chain)) else {
                        continue;
                    };
                    if seen.insert(key(&next)) {
                        open.push(next);
                    }
                }
            }
        }
        seen.len()
    }

    fn wishes(&self) -> impl Iterator<Item = Entry> {
        let of = |unit: u32, mode: Mode| {
            let ways = if mode.is_writing() { 1 } else { self.chains[unit as usize].len() };
            (0..ways).map(move |chain| (unit, mode, chain))
        };
        let modes = move |unit: u32| self.modes.iter().flat_map(move |m| of(unit, *m));
        (0..self.chains.len() as u32).flat_map(modes)
    }

    fn want(&self, (unit, mode, chain): Entry) -> Want {
        let path = Some(self.chains[unit as usize][chain].clone());
        Want { unit: Unit(unit), mode, path }
    }

    fn table(&self, state: &[Vec<Entry>]) -> Table {
        let mut table = Table::new(self.units.clone());
        for (session, entries) in (0..).zip(state) {
            for entry in entries {
                let locked = table.lock(Session(session), &[self.want(*entry)]);
                assert_eq!(locked, Ok(()), "{state:?} cannot be reached in another order");
            }
        }
        table
    }

    /// The state after a request, if it is granted. The table is as before afterwards.
    fn after(
        &self,
        table: &mut Table,
        state: &[Vec<Entry>],
        who: usize,
        wish: Entry,
    ) -> Option<Vec<Vec<Entry>>> {
        let session = Session(who as u64);
        let before = state[who].iter().find(|e| e.0 == wish.0).copied();
        if before.is_none() && state[who].len() == ENTRIES {
            return None;
        }
        table.lock(session, &[self.want(wish)]).ok()?;
        let mode = table.entry(session, Unit(wish.0)).expect("it was granted");
        let mut next = state.to_vec();
        next[who].retain(|e| e.0 != wish.0);
        let kept = before.filter(|b| b.1 == mode);
        next[who].push(kept.unwrap_or((wish.0, mode, if mode.is_writing() { 0 } else { wish.2 })));
        next[who].sort_unstable();
        next.sort();
        table.release(session, Unit(wish.0));
        if let Some(before) = before {
            assert_eq!(table.lock(session, &[self.want(before)]), Ok(()), "{state:?} is not as it was");
        }
        Some(next)
    }

    fn check(&self, table: &mut Table, state: &[Vec<Entry>]) {
        let all = || (0..self.chains.len() as u32).map(Unit);
        let sessions = || (0..self.sessions).map(Session);
        for unit in all() {
            for a in sessions() {
                for b in sessions().filter(|b| *b != a) {
                    let clash =
                        table.may_write(a, unit) && (table.may_read(b, unit) || table.may_write(b, unit));
                    assert!(!clash, "{a:?} writes {unit:?} beside {b:?}: {state:?}");
                    if let (Some(m), Some(n)) = (table.mode(a, unit), table.mode(b, unit)) {
                        assert!(m.is_compatible(n), "{m} beside {n} at {unit:?}: {state:?}");
                    }
                }
            }
        }
        for (session, entries) in sessions().zip(state) {
            for (unit, mode, chain) in entries {
                let unit = Unit(*unit);
                assert_eq!(table.entry(session, unit), Some(*mode), "an entry is lost: {state:?}");
                let index = unit.0 as usize;
                let above =
                    if mode.is_writing() { &self.above[index][..] } else { &self.chains[index][*chain] };
                for up in above.iter().copied() {
                    let held = table.mode(session, up);
                    let knows =
                        held.is_some_and(|m| if mode.is_writing() { m.covers(Mode::Ix) } else { true });
                    assert!(knows, "{up:?} does not know of {unit:?}: {state:?}");
                    // Whoever is about to write finds nobody above who is in the way.
                    let others = sessions().filter(|s| *s != session).filter_map(|s| table.mode(s, up));
                    assert!(*mode != Mode::U || { others }.all(|m| m.is_compatible(Mode::Ix)), "{state:?}");
                }
            }
        }
        let mut empty = table.clone();
        for (session, entries) in sessions().zip(state) {
            for entry in entries {
                assert!(empty.release(session, Unit(entry.0)));
            }
        }
        let left = all().any(|u| empty.holders(u).next().is_some());
        assert!(!left && empty.sessions().next().is_none(), "something is left of {state:?}");
        for unit in all() {
            assert_eq!(empty.lock(Session(99), &[Want::new(unit, Mode::X)]), Ok(()), "{state:?}");
            empty.release(Session(99), unit);
        }
    }
}

/// A state in a number: nine bits for each entry.
fn key(state: &[Vec<Entry>]) -> u64 {
    let entry = |e: Option<&Entry>| {
        e.map_or(0, |(u, m, c)| (u64::from(*u) << 6) | ((*m as u64 + 1) << 3) | *c as u64)
    };
    let slots = state.iter().flat_map(|s| (0..ENTRIES).map(move |i| entry(s.get(i))));
    slots.fold(0, |key, slot| key << 9 | slot)
}
