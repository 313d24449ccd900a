//! Dependencies that come and go while they are locked, and sessions that wait: again every state.

use catena_compose::lock::{Answer, Mode, Patience, Queue, Session, Table, Unit, Units, Want};
use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

/// The state of a table in a text: arcs, and what sessions have locked by which path.
fn describe(table: &Table, units: u32, sessions: u64) -> String {
    let mut out = String::new();
    for unit in (0..units).map(Unit) {
        let mut parents: Vec<u32> = table.units().parents(unit).iter().map(|u| u.0).collect();
        parents.sort_unstable();
        let _ = write!(out, "{parents:?}");
    }
    for session in (0..sessions).map(Session) {
        let mut entries: Vec<(Unit, Mode)> = table.entries(session).collect();
        entries.sort_unstable();
        for (unit, mode) in entries {
            let mut above: Vec<u32> = table.announced_at(session, unit).iter().map(|u| u.0).collect();
            if mode.is_writing() {
                above.sort_unstable();
            }
            let _ = write!(out, " {}{mode}{}{above:?}", session.0, unit.0);
        }
        out.push('|');
    }
    out
}

/// What must hold in every state.
fn check(table: &Table, units: u32, sessions: u64, state: &str) {
    let all = || (0..units).map(Unit);
    for a in (0..sessions).map(Session) {
        for b in (0..sessions).map(Session).filter(|b| *b != a) {
            for unit in all() {
                let clash = table.may_write(a, unit) && (table.may_read(b, unit) || table.may_write(b, unit));
                assert!(!clash, "{a:?} writes {unit:?} beside {b:?}: {state}");
                if let (Some(m), Some(n)) = (table.mode(a, unit), table.mode(b, unit)) {
                    assert!(m.is_compatible(n), "{m} beside {n} at {unit:?}: {state}");
                }
            }
        }
        for (unit, mode) in table.entries(a) {
            let above = table.announced_at(a, unit);
            if mode.is_writing() {
                let truth: BTreeSet<Unit> = table.units().clone().above(unit).iter().copied().collect();
                assert_eq!(
                    above.iter().copied().collect::<BTreeSet<_>>(),
                    truth,
                    "not all above know: {state}"
                );
            } else {
                assert!(table.units().is_chain(above, unit), "{unit:?} is not reached by {above:?}: {state}");
            }
        }
    }
}

/// Explores what sessions can do with locks and dependencies. Returns how many states there are.
fn explore(units: u32, arcs: &[(u32, u32)], sessions: u64, modes: &[Mode], entries: usize) -> usize {
    let start = Table::new(crate::explore::units_of(units, arcs));
    let mut seen = HashSet::new();
    seen.insert(describe(&start, units, sessions));
    let mut open = vec![start];
    while let Some(table) = open.pop() {
        let state = describe(&table, units, sessions);
        check(&table, units, sessions, &state);
        let mut reach = |next: Table| {
            if seen.insert(describe(&next, units, sessions)) {
                open.push(next);
            }
        };
        for session in (0..sessions).map(Session) {
            for unit in (0..units).map(Unit) {
                let is_known = table.entry(session, unit).is_some();
                if is_known || table.entries(session).count() < entries {
                    for mode in modes {
                        let mut next = table.clone();
                        if next.lock(session, &[Want::new(unit, *mode)]).is_ok() {
                            reach(next);
                        }
                    }
                }
                let mut next = table.clone();
                if next.release(session, unit) {
                    reach(next);
                }
                for other in (0..units).map(Unit).filter(|o| *o != unit) {
                    let mut next = table.clone();
                    let is_part = table.units().parents(other).contains(&unit);
                    let keeps_another = table.units().parents(other).len() > 1;
                    // There is one root, and it stays the root.
                    let may_join = !is_part && other.0 != 0;
                    let may_part = is_part && keeps_another;
                    if may_join && next.connect(session, unit, other).is_ok()
                        || may_part && next.disconnect(session, unit, other).is_ok()
                    {
                        reach(next);
                    }
                }
            }
        }
    }
    seen.len()
}

#[test]
fn dependencies_come_and_go_without_breaking_locks() {
    let line = [(0, 1), (1, 2)];
    let states = explore(3, &line, 3, &[Mode::S, Mode::U, Mode::X], 2);
    println!("{states} states");
    let diamond = [(0, 1), (0, 2), (1, 3)];
    let states = explore(4, &diamond, 2, &[Mode::S, Mode::U, Mode::X], 2);
    println!("{states} states");
    assert!(states > 10_000, "{states}");
}

/// What a queue is like: who has what, and who waits for what in which order.
fn describe_queue(queue: &Queue, sessions: u64) -> String {
    let mut out = describe(queue.table(), 3, sessions);
    for (session, wants) in queue.waiting() {
        let _ =
            write!(out, " {}:{:?}", session.0, wants.iter().map(|w| (w.unit.0, w.mode)).collect::<Vec<_>>());
    }
    out
}

#[test]
fn whoever_waits_is_served_once_the_others_let_go() {
    const SESSIONS: u64 = 3;
    let mut units = Units::default();
    let root = units.add(&[]);
    units.add(&[root]);
    units.add(&[root]);
    let start = Queue::new(Table::new(units));
    let mut seen = HashSet::new();
    seen.insert(describe_queue(&start, SESSIONS));
    let mut open = vec![start];
    while let Some(queue) = open.pop() {
        let state = describe_queue(&queue, SESSIONS);
        check(queue.table(), 3, SESSIONS, &state);
        everybody_is_served(queue.clone(), &state);
        for session in (0..SESSIONS).map(Session) {
            if queue.waiting().any(|(s, _)| s == session) {
                continue;
            }
            for unit in (0..3).map(Unit) {
                let mut after = Vec::new();
                let is_known = queue.table().entry(session, unit).is_some();
                if is_known || queue.table().entries(session).count() < 2 {
                    for mode in [Mode::S, Mode::U, Mode::X] {
                        let mut next = queue.clone();
                        let answer = next.request(session, &[Want::new(unit, mode)], Patience::Wait);
                        if matches!(answer, Answer::Refused(_)) {
                            assert_eq!(describe_queue(&next, SESSIONS), state, "a refusal changes nothing");
                        }
                        after.push(next);
                    }
                }
                let mut next = queue.clone();
                if next.release(session, unit) {
                    next.pump();
                    after.push(next);
                }
                for next in after {
                    if seen.insert(describe_queue(&next, SESSIONS)) {
                        open.push(next);
                    }
                }
            }
        }
    }
    println!("{} states", seen.len());
    assert!(seen.len() > 10_000, "{}", seen.len());
}

/// Those who do not wait let go, again and again: in the end nobody waits.
fn everybody_is_served(mut queue: Queue, state: &str) {
    while !queue.is_calm() {
        let waiting: Vec<Session> = queue.waiting().map(|(s, _)| s).collect();
        let busy: Vec<Session> = queue.table().sessions().filter(|s| !waiting.contains(s)).collect();
        assert!(!busy.is_empty(), "they wait for each other: {state}");
        for session in busy {
            let entries: Vec<Unit> = queue.table().entries(session).map(|(u, _)| u).collect();
            for unit in entries {
                queue.release(session, unit);
            }
        }
        assert!(!queue.pump().is_empty(), "nobody gets what nobody has: {state}");
    }
}
