//! The heuristic against the letter of its specification, and against all orders where there are few.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// The heuristic without any of the shortcuts that make it fast.
mod literal {
    use super::*;

    pub(super) fn order(dag: &Dag) -> Vec<u32> {
        let reduced = reduce(dag);
        let components = decompose(&reduced);
        let parts: Vec<(Vec<u32>, Vec<u32>)> = components.iter().map(|c| schedule(&reduced, c)).collect();
        let mut sink_of: HashMap<u32, usize> = HashMap::new();
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); components.len()];
        let mut waits = vec![0; components.len()];
        for (i, c) in components.iter().enumerate() {
            let before: BTreeSet<usize> = c.0.iter().filter_map(|v| sink_of.get(v)).copied().collect();
            waits[i] = before.len();
            for b in before {
                after[b].push(i);
            }
            sink_of.extend(c.1.iter().map(|v| (*v, i)));
        }
        let mut list: Vec<usize> = (0..components.len()).filter(|i| waits[*i] == 0).collect();
        let mut order = Vec::new();
        while !list.is_empty() {
            let mut best: Option<((u64, u64), usize)> = None;
            for (at, i) in list.iter().enumerate() {
                let others = list.iter().filter(|j| *j != i);
                let least =
                    others.fold((1, 1), |least, j| smaller(least, priority(&parts[*i].1, &parts[*j].1)));
                if best.is_none_or(|(b, _)| least.0 * b.1 > b.0 * least.1) {
                    best = Some((least, at));
                }
            }
            let taken = list.remove(best.unwrap().1);
            order.extend(&parts[taken].0);
            for next in &after[taken] {
                waits[*next] -= 1;
                if waits[*next] == 0 {
                    list.push(*next);
                }
            }
        }
        order.extend((0..dag.len() as u32).filter(|v| dag.children(*v).is_empty()));
        order
    }

    fn smaller(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
        if b.0 * a.1 < a.0 * b.1 { b } else { a }
    }

    fn priority(f: &[u32], g: &[u32]) -> (u64, u64) {
        let mut least = (1, 1);
        for x in 0..f.len() {
            for y in 0..g.len() {
                let a = (x + y).min(f.len() - 1);
                let over = f[a] + g[x + y - a];
                least = smaller(least, (over.into(), (f[x] + g[y]).into()));
            }
        }
        least
    }

    fn reduce(dag: &Dag) -> Dag {
        let reaches = |from: u32, to: u32| {
            let mut stack = vec![from];
            while let Some(v) = stack.pop() {
                if v == to {
                    return true;
                }
                stack.extend(dag.children(v));
            }
            false
        };
        let is_shortcut = |u: u32, v: u32| dag.children(u).iter().any(|c| *c != v && reaches(*c, v));
        let arcs: Vec<(u32, u32)> = dag.arcs().filter(|(u, v)| !is_shortcut(*u, *v)).collect();
        Dag::new(dag.len(), &arcs).unwrap()
    }

    type Component = (Vec<u32>, Vec<u32>, bool);

    fn closure(dag: &Dag, gone: &BTreeSet<u32>, source: u32) -> (Vec<u32>, Vec<u32>) {
        let (mut above, mut below) = (vec![source], Vec::new());
        let (mut down, mut up) = (0, 0);
        while down < above.len() || up < below.len() {
            while down < above.len() {
                for c in dag.children(above[down]) {
                    if !below.contains(c) {
                        below.push(*c);
                    }
                }
                down += 1;
            }
            while up < below.len() {
                let mut queue = vec![below[up]];
                let mut at = 0;
                while at < queue.len() {
                    for p in dag.parents(queue[at]) {
                        if !gone.contains(p) && !above.contains(p) {
                            above.push(*p);
                            queue.push(*p);
                        }
                    }
                    at += 1;
                }
                up += 1;
            }
        }
        below.retain(|v| !above.contains(v));
        (above, below)
    }

    fn decompose(dag: &Dag) -> Vec<Component> {
        let mut gone: BTreeSet<u32> = BTreeSet::new();
        let mut out: Vec<Component> = Vec::new();
        loop {
            let is_source = |v: &u32| {
                !gone.contains(v)
                    && !dag.children(*v).is_empty()
                    && dag.parents(*v).iter().all(|p| gone.contains(p))
            };
            let sources: Vec<u32> = (0..dag.len() as u32).filter(is_source).collect();
            if sources.is_empty() {
                return out;
            }
            let closures: Vec<(Vec<u32>, Vec<u32>)> =
                sources.iter().map(|s| closure(dag, &gone, *s)).collect();
            let mut chosen: Vec<Component> = Vec::new();
            if let Some((a, b)) = closures.iter().find(|(a, _)| a.iter().all(|v| sources.contains(v))) {
                chosen.push((a.clone(), b.clone(), true));
            } else {
                let sets: Vec<BTreeSet<u32>> =
                    closures.iter().map(|(a, b)| a.iter().chain(b).copied().collect()).collect();
                let mut taken: Vec<&BTreeSet<u32>> = Vec::new();
                for (i, set) in sets.iter().enumerate() {
                    let minimal = !sets.iter().any(|other| other != set && other.is_subset(set));
                    if minimal && !taken.contains(&set) {
                        taken.push(set);
                        chosen.push((closures[i].0.clone(), closures[i].1.clone(), false));
                    }
                }
            }
            for (a, b, _) in &chosen {
                gone.extend(a);
                gone.extend(b.iter().filter(|v| dag.children(**v).is_empty()));
            }
            out.extend(chosen);
        }
    }

    /// Blocks are recognised by the code under test; the rule for the rest is spelled out.
    fn schedule(dag: &Dag, c: &Component) -> (Vec<u32>, Vec<u32>) {
        let component = decompose::Component { non_sinks: c.0.clone(), sinks: c.1.clone(), bipartite: c.2 };
        let (order, profile) = blocks::Scheduler::new(dag).schedule(&component);
        let all: Vec<u32> = c.0.iter().chain(&c.1).copied().collect();
        let eligible = |done: &[u32]| {
            let free = |v: &&u32| {
                !done.contains(v) && dag.parents(**v).iter().all(|p| done.contains(p) || !c.0.contains(p))
            };
            all.iter().filter(free).copied().collect::<Vec<u32>>()
        };
        let counted: Vec<u32> = (0..=order.len()).map(|x| eligible(&order[..x]).len() as u32).collect();
        assert_eq!(counted, profile);
        if !c.2 {
            let mut expected: Vec<u32> = Vec::new();
            while expected.len() < c.0.len() {
                let free = eligible(&expected).into_iter().filter(|v| c.0.contains(v));
                let most = free.rev().max_by_key(|v| dag.children(*v).len()).unwrap();
                expected.push(most);
            }
            assert_eq!(order, expected);
        }
        (order, profile)
    }
}

/// For each number of executed jobs, the most that can be eligible.
fn most_eligible(dag: &Dag) -> Vec<u32> {
    let n = dag.len() as u32;
    let needs: Vec<u32> = (0..n).map(|v| dag.parents(v).iter().fold(0, |m, p| m | 1 << p)).collect();
    let mut sets: BTreeSet<u32> = BTreeSet::from([0]);
    let mut most = Vec::new();
    loop {
        let free = |set: u32| {
            (0..n)
                .filter(move |v| set >> v & 1 == 0)
                .filter(|v| set & needs[*v as usize] == needs[*v as usize])
                .collect::<Vec<u32>>()
        };
        most.push(sets.iter().map(|s| free(*s).len() as u32).max().unwrap());
        if most.len() > dag.len() {
            return most;
        }
        sets = sets.iter().flat_map(|s| free(*s).into_iter().map(move |v| s | 1 << v)).collect();
    }
}

fn is_valid(dag: &Dag, order: &[u32]) -> bool {
    let mut place = vec![usize::MAX; dag.len()];
    for (i, v) in order.iter().enumerate() {
        place[*v as usize] = i;
    }
    order.len() == dag.len() && dag.arcs().all(|(u, v)| place[u as usize] < place[v as usize])
}

fn dags(jobs: std::ops::Range<u32>, density: usize) -> impl Strategy<Value = Dag> {
    let arcs = move |n: u32| prop::collection::vec((0..n, 0..n), 0..(n as usize * density / 4 + 2));
    // Jobs are not defined in an order in which they can run.
    let parts = jobs.prop_flat_map(move |n| (arcs(n), Just((0..n).collect::<Vec<u32>>()).prop_shuffle()));
    parts.prop_map(|(arcs, names)| {
        let forward = arcs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b)));
        let arcs: Vec<(u32, u32)> = forward.map(|(a, b)| (names[a as usize], names[b as usize])).collect();
        Dag::new(names.len(), &arcs).unwrap()
    })
}

/// A component made of rows and the like, whose best order is known.
fn block(kind: u32, s: u32, d: u32) -> Dag {
    let arcs: Vec<(u32, u32)> = match kind {
        0 => (0..s).flat_map(|i| (0..d).map(move |j| (i, s + i * (d - 1) + j))).collect(),
        1 => (0..s).flat_map(|i| (0..d).map(move |j| (s + i * (d - 1) + j, i))).collect(),
        2 => (0..s).flat_map(|i| [(i, s + i), (i, s + i + 1)]).filter(|(_, v)| *v < 2 * s).collect(),
        3 => (0..s).flat_map(|i| [(i, s + i), (i, s + (i + 1) % s)]).collect(),
        _ => (0..s).flat_map(|i| (0..d).map(move |j| (i, s + j))).collect(),
    };
    let jobs = arcs.iter().map(|(u, v)| u.max(v) + 1).max().unwrap_or(0);
    Dag::new(jobs as usize, &arcs).unwrap()
}

#[test]
fn the_five_jobs_of_the_paper() {
    let dag = Dag::new(5, &[(0, 1), (2, 3), (2, 4)]).unwrap();
    assert_eq!(prio_order(&dag), [2, 0, 1, 3, 4]);
}

#[test]
fn blocks_are_ordered_optimally() {
    for kind in 0..5 {
        for s in 1..=5 {
            for d in 2..=4 {
                if (kind == 2 || kind == 3) && s < 2 {
                    continue;
                }
                let dag = block(kind, s, d);
                if dag.len() <= 17 {
                    assert_eq!(
                        eligible(&dag, &prio_order(&dag)),
                        most_eligible(&dag),
                        "kind {kind}, {s}, {d}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_literal_agree(dag in prop_oneof![dags(1..16, 5), dags(10..45, 5), dags(10..45, 9)]) {
        let order = prio_order(&dag);
        prop_assert!(is_valid(&dag, &order));
        prop_assert_eq!(order, literal::order(&dag));
    }

    #[test]
    fn auto_is_never_behind(dag in dags(1..60, 6)) {
        let sum = |order: &[u32]| eligible(&dag, order).iter().sum::<u32>();
        let auto = auto_order(&dag);
        prop_assert!(is_valid(&dag, &auto));
        prop_assert!(sum(&auto) >= sum(&prio_order(&dag)).max(sum(&fifo_order(&dag))));
    }

    /// Where every component is optimal in itself and one of two always comes first without loss, so is the whole.
    #[test]
    fn independent_blocks_are_ordered_optimally_if_that_is_possible(blocks in prop::collection::vec((0u32..5, 2u32..4, 2u32..4), 1..3)) {
        let mut arcs = Vec::new();
        let mut jobs = 0;
        let mut profiles: Vec<Vec<u32>> = Vec::new();
        for (kind, s, d) in blocks {
            let part = block(kind, s, d);
            arcs.extend(part.arcs().map(|(u, v)| (u + jobs, v + jobs)));
            jobs += part.len() as u32;
            let non_sinks = (0..part.len() as u32).filter(|v| !part.children(*v).is_empty()).count();
            profiles.push(eligible(&part, &prio_order(&part))[..=non_sinks].to_vec());
        }
        let dag = Dag::new(jobs as usize, &arcs).unwrap();
        let linear = match profiles.as_slice() {
            [f, g] => [priority::priority(f, g), priority::priority(g, f)].contains(&priority::Ratio::ONE),
            _ => true,
        };
        if linear && jobs <= 16 {
            prop_assert_eq!(eligible(&dag, &prio_order(&dag)), most_eligible(&dag));
        }
    }
}
