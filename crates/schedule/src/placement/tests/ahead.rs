//! Agents that hold tasks in advance and bring their data while others compute.

use super::super::*;
use proptest::prelude::*;

/// Tasks that compute so long and read these files, at a byte per nanosecond.
#[derive(Clone, Debug)]
struct World {
    seconds: Vec<u64>,
    inputs: Vec<Vec<u32>>,
    sizes: Vec<u64>,
    widths: Vec<usize>,
    agents: u32,
    unstarted: u64,
}

impl Costs for World {
    fn can(&self, _: u32, agent: u32) -> bool {
        agent < self.agents
    }

    fn fits(&self, _: u32, _: u32, _: &[u32]) -> bool {
        panic!("who holds tasks in advance has room for more than fits");
    }

    fn compute(&self, task: u32, _: u32) -> u64 {
        self.seconds[task as usize]
    }

    fn transfer(&self, bytes: u64) -> u64 {
        bytes
    }

    fn inputs(&self, task: u32) -> &[u32] {
        &self.inputs[task as usize]
    }

    fn size(&self, file: u32) -> u64 {
        self.sizes[file as usize]
    }

    fn unstarted(&self) -> u64 {
        self.unstarted
    }

    fn width(&self, task: u32, _: u32) -> usize {
        self.widths[task as usize]
    }
}

/// Tasks that take so long and read files of these sizes, one each.
fn world(tasks: &[(u64, u64)], agents: u32) -> World {
    World {
        seconds: tasks.iter().map(|(seconds, _)| *seconds).collect(),
        inputs: (0..tasks.len() as u32).map(|t| vec![t]).collect(),
        sizes: tasks.iter().map(|(_, size)| *size).collect(),
        widths: vec![1; tasks.len()],
        agents,
        unstarted: 0,
    }
}

fn placement(place: Place, world: &World, slots: usize, ahead: usize) -> Placement {
    let mut placement = Placement::new(place);
    for agent in 0..world.agents {
        placement.join(agent, 0, slots, ahead, 0);
    }
    placement
}

/// When a task is expected to end on an agent.
fn end(p: &Placement, task: u32, agent: u32) -> Option<u64> {
    p.agents[agent as usize].given().iter().find(|g| g.task == task).map(|g| g.end)
}

#[test]
fn data_are_brought_while_others_compute() {
    let world = world(&[(10, 10), (10, 10), (10, 10), (10, 10)], 1);
    let mut p = placement(Place::EarliestFinish, &world, 1, 2);
    for task in 0..4 {
        p.add(task, 0, 20, &world);
    }
    assert_eq!(p.decide(0, &world), [(0, 0), (1, 0), (2, 0)], "one for the slot, and two that wait");
    let ends = |p: &Placement| (0..4).map(|t| end(p, t, 0)).collect::<Vec<_>>();
    assert_eq!(ends(&p), [Some(20), Some(30), Some(40), None]);
    p.started(0, 0, 10);
    // It is done sooner than expected.
    p.ended(0, 0, 15);
    assert_eq!(p.decide(15, &world), [(3, 0)]);
    assert_eq!(ends(&p), [None, Some(30), Some(40), Some(50)], "data come when they come");
    p.started(1, 0, 20);
    p.ended(1, 0, 50);
    assert_eq!(ends(&p), [None, None, Some(60), Some(70)], "all data are there");
}

#[test]
fn tasks_are_given_as_late_as_their_data_allow() {
    // Ten seconds on the only slot; then one that takes as long, with so much to bring.
    for (bytes, given) in
        [(0, None), (SECOND / 10, None), (SECOND, Some(15)), (3 * SECOND, Some(35)), (5 * SECOND, Some(0))]
    {
        let world = world(&[(10 * SECOND, 0), (10 * SECOND, bytes)], 1);
        let mut p = placement(Place::EarliestFinish, &world, 1, 4);
        p.add(0, 0, 10 * SECOND, &world);
        assert_eq!(p.decide(0, &world), [(0, 0)]);
        p.started(0, 0, 0);
        p.add(1, 0, 10 * SECOND, &world);
        let now = p.decide(0, &world);
        match given {
            Some(0) => assert_eq!((now, p.wake()), (vec![(1, 0)], None)),
            None => assert_eq!((now, p.wake()), (vec![], Some(10 * SECOND)), "not worth hiding"),
            Some(tenths) => {
                // Twice the time it takes to decide and to bring it, and a little more.
                let time = 10 * SECOND - (2 * (bytes + world.decision()) + SECOND / 2);
                assert_eq!((now, p.wake()), (vec![], Some(time)), "{tenths}");
                assert!(p.decide(time - 1, &world).is_empty());
                assert_eq!(p.decide(time, &world), [(1, 0)]);
                assert_eq!(end(&p, 1, 0), Some(20 * SECOND));
            }
        }
    }
}

#[test]
fn who_is_late_is_expected_to_be_later_still() {
    let world = world(&[(10 * SECOND, 0), (10 * SECOND, 6 * SECOND)], 1);
    let mut p = placement(Place::EarliestFinish, &world, 1, 1);
    p.add(0, 0, 10 * SECOND, &world);
    p.decide(0, &world);
    p.started(0, 0, 0);
    p.add(1, 0, 10 * SECOND, &world);
    assert_eq!(p.decide(0, &world), [(1, 0)]);
    assert_eq!(end(&p, 1, 0), Some(20 * SECOND));
    p.catch_up(14 * SECOND);
    assert_eq!((end(&p, 0, 0), end(&p, 1, 0)), (Some(18 * SECOND), Some(28 * SECOND)));
}

#[test]
fn who_sends_to_many_is_slow() {
    // Everybody's data are at agent 0, which is busy; whoever gets them from there waits for others.
    let mut world = world(&[(100, 0), (10, 100), (10, 100), (10, 100)], 4);
    world.inputs[0].clear();
    let mut p = placement(Place::MinMin, &world, 1, 4);
    p.add(0, 0, 1000, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
    p.started(0, 0, 0);
    p.hold(0, &[1, 2, 3]);
    for task in 1..4 {
        p.add(task, 0, 110, &world);
    }
    p.decide(0, &world);
    let ends: Vec<Option<u64>> = (1..4).map(|task| (0..4).find_map(|a| end(&p, task, a))).collect();
    assert_eq!(ends, [Some(110), Some(110), Some(120)], "one of them gets its data elsewhere");
}

#[test]
fn files_on_their_way_are_not_brought_twice() {
    // Both read the same file.
    let mut world = world(&[(10, 100), (10, 100)], 2);
    world.inputs = vec![vec![0], vec![0]];
    let mut p = placement(Place::EarliestFinish, &world, 2, 1);
    p.add(0, 0, 110, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
    p.add(1, 0, 110, &world);
    assert_eq!(p.decide(50, &world), [(1, 0)], "110 here, 160 elsewhere");
    assert_eq!(end(&p, 1, 0), Some(110));
    assert_eq!(p.agents[0].link, 100);
}

#[test]
fn who_has_nothing_to_do_comes_first() {
    let world = world(&[(10, 5), (10, 5), (10, 5), (10, 5), (10, 5)], 2);
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::MinMin, Place::Data] {
        let mut p = placement(place, &world, 1, 2);
        for task in 0..5 {
            p.add(task, 0, 15, &world);
        }
        let mut on = [0, 0];
        for (n, (_, agent)) in p.decide(0, &world).into_iter().enumerate() {
            on[agent as usize] += 1;
            assert!(n % 2 == 0 || on[0] == on[1], "{place:?}: {n}");
        }
        assert_eq!(on[0] + on[1], 5, "{place:?}");
    }
}

#[test]
fn a_task_waits_where_its_data_are_only_if_nothing_is_later() {
    // Task 0 keeps agent 0 busy until 100; task 1 has its data there.
    let tasks = [(100, 0), (50, 60)];
    for (other, rank, unstarted, expected) in [(1000, 110, 0, 0), (100, 900, 0, 1), (100, 900, 5000, 0)] {
        let world = World { unstarted, ..world(&tasks, 2) };
        let mut p = placement(Place::EarliestFinish, &world, 1, 1);
        p.add(0, 0, other, &world);
        assert_eq!(p.decide(0, &world), [(0, 0)]);
        p.started(0, 0, 0);
        p.hold(0, &[1]);
        p.add(1, 0, rank, &world);
        assert_eq!(p.decide(0, &world), [(1, expected)], "rank {rank}, {unstarted} to come");
    }
}

#[test]
fn the_best_node_has_least_to_bring_and_to_do() {
    // Task 2 has its data at agent 0, where something computes until 100 and something waits that takes 100 more.
    let world = world(&[(100, 0), (100, 0), (10, 150)], 2);
    for (computes, expected) in [(100, 1), (20, 0)] {
        let world = World { seconds: vec![computes, computes, 10], ..world.clone() };
        let mut p = placement(Place::Data, &world, 1, 3);
        p.leave(1);
        p.add(0, 0, 100, &world);
        p.add(1, 0, 100, &world);
        assert_eq!(p.decide(0, &world), [(0, 0), (1, 0)]);
        p.started(0, 0, 0);
        p.join(1, 0, 1, 3, 0);
        p.hold(0, &[2]);
        p.add(2, 0, 1, &world);
        assert_eq!(p.decide(0, &world), [(2, expected)], "150 to bring against {} to wait", 2 * computes);
    }
}

#[test]
fn who_is_more_urgent_goes_before_what_waits() {
    let world = world(&[(100, 0), (100, 0), (10, 0)], 1);
    let mut p = placement(Place::EarliestFinish, &world, 1, 2);
    p.add(0, 0, 100, &world);
    p.add(1, 0, 100, &world);
    p.decide(0, &world);
    p.started(0, 0, 0);
    p.add(2, 0, 500, &world);
    assert_eq!(p.decide(50, &world), [(2, 0)]);
    assert_eq!((end(&p, 2, 0), end(&p, 1, 0)), (Some(110), Some(210)));
}

#[test]
fn a_higher_level_finds_room_where_lower_ones_wait() {
    let world = world(&[(100, 0); 6], 1);
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::Data] {
        let mut p = placement(place, &world, 1, 1);
        for task in 0..3 {
            p.add(task, 0, 100, &world);
        }
        assert_eq!(p.decide(0, &world), [(0, 0), (1, 0)]);
        p.started(0, 0, 0);
        p.add(3, 0, 900, &world);
        assert!(p.decide(0, &world).is_empty(), "{place:?}: a rank is no level");
        p.add(4, 1, 100, &world);
        p.add(5, 1, 100, &world);
        assert_eq!(p.decide(0, &world), [(4, 0)], "{place:?}: as many of them as may wait");
        assert_eq!((end(&p, 4, 0), end(&p, 1, 0)), (Some(200), Some(300)), "{place:?}");
    }
}

#[test]
fn what_needs_much_has_somebody_wait_for_it() {
    // Without anything in advance, on one agent with two slots.
    struct Two<'a>(&'a World, usize);
    impl Costs for Two<'_> {
        fn can(&self, task: u32, agent: u32) -> bool {
            self.0.can(task, agent)
        }
        fn fits(&self, task: u32, _: u32, others: &[u32]) -> bool {
            let used: usize = others.iter().map(|t| self.0.widths[*t as usize]).sum();
            self.1 + used + self.0.widths[task as usize] <= 2
        }
        fn compute(&self, task: u32, agent: u32) -> u64 {
            self.0.compute(task, agent)
        }
        fn transfer(&self, bytes: u64) -> u64 {
            bytes
        }
        fn inputs(&self, _: u32) -> &[u32] {
            &[]
        }
        fn size(&self, file: u32) -> u64 {
            self.0.size(file)
        }
        fn unstarted(&self) -> u64 {
            0
        }
    }
    let mut world = world(&[(10, 0); 5], 1);
    world.widths[2] = 2;
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::Data] {
        for (level, expected) in [(1, 0), (0, 1)] {
            let mut p = Placement::new(place);
            p.join(0, 0, 2, 0, 0);
            p.add(0, 0, 10, &Two(&world, 0));
            assert_eq!(p.decide(0, &Two(&world, 0)), [(0, 0)]);
            p.add(2, level, 20, &Two(&world, 1));
            p.add(3, 0, 10, &Two(&world, 1));
            assert_eq!(p.decide(0, &Two(&world, 1)).len(), expected, "{place:?}, level {level}");
        }
    }
}

#[test]
fn wide_tasks_take_the_slots_of_several() {
    let mut world = world(&[(100, 0), (100, 0), (100, 0)], 2);
    world.widths = vec![2, 2, 1];
    let mut p = placement(Place::EarliestFinish, &world, 2, 2);
    for task in 0..3 {
        p.add(task, 0, 100, &world);
    }
    assert_eq!(p.decide(0, &world), [(0, 0), (1, 1), (2, 0)]);
    assert_eq!(end(&p, 2, 0), Some(200));
}

const SECOND: u64 = 1_000_000_000;

/// Task 0 computes on agent 0 for ten seconds, and the data of task 1 are brought there meanwhile; then agent 1 is there.
fn waiting(place: Place, bytes: u64) -> (World, Placement) {
    let world = world(&[(10 * SECOND, 0), (10 * SECOND, bytes)], 2);
    let mut p = Placement::new(place);
    p.join(0, 0, 1, 1, 0);
    p.add(0, 0, 10 * SECOND, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
    p.started(0, 0, 0);
    p.add(1, 0, 10 * SECOND, &world);
    assert_eq!(p.decide(0, &world), [(1, 0)]);
    p.join(1, 0, 1, 1, 0);
    (world, p)
}

#[test]
fn what_waits_is_asked_back_for_somebody_idle() {
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::MinMin] {
        let (world, mut p) = waiting(place, 5 * SECOND);
        assert_eq!(p.recall(0, &world), [(1, 0)], "{place:?}: 20 s here, 15 s there");
        assert!(p.recall(0, &world).is_empty(), "{place:?}: once");
        p.ended(1, 0, 0);
        p.add(1, 0, 10 * SECOND, &world);
        assert_eq!(p.decide(0, &world), [(1, 1)], "{place:?}");
        assert!(p.recall(0, &world).is_empty(), "{place:?}");
    }
}

#[test]
fn what_is_asked_back_must_be_worth_it() {
    for seconds in [9, 12] {
        let (world, mut p) = waiting(Place::EarliestFinish, seconds * SECOND);
        assert!(p.recall(0, &world).is_empty(), "20 s here, {} s there", seconds + 10);
    }
    // Nor does a task move that has started, or that may wait.
    let (world, mut p) = waiting(Place::EarliestFinish, 5 * SECOND);
    p.started(1, 0, 0);
    assert!(p.recall(0, &world).is_empty());
    let (world, mut p) = waiting(Place::EarliestFinish, 5 * SECOND);
    assert!(p.recall(0, &World { unstarted: 100 * SECOND, ..world }).is_empty());
}

#[test]
fn who_keeps_a_task_that_was_asked_back_is_not_asked_again() {
    // It started before it was told, and ends as if nothing had been.
    let (world, mut p) = waiting(Place::MinMin, 5 * SECOND);
    assert_eq!(p.recall(0, &world), [(1, 0)]);
    p.ended(0, 0, 5);
    p.started(1, 0, 5);
    assert!(p.recall(5, &world).is_empty());
    p.ended(1, 0, 15);
    p.decide(15, &world);
    assert!(p.returned.is_empty() && p.executors.is_empty());
    // It came back, and nobody else is there any more: it stays where it is.
    let tenth = SECOND / 10;
    let world = self::world(&[(4 * tenth, 0), (4 * tenth, 2 * tenth)], 2);
    let mut p = placement(Place::MinMin, &world, 1, 1);
    p.leave(1);
    p.add(0, 0, 9, &world);
    p.add(1, 0, 1, &world);
    assert_eq!(p.decide(0, &world), [(0, 0), (1, 0)]);
    p.started(0, 0, 0);
    p.join(1, 0, 1, 1, 0);
    assert_eq!(p.recall(0, &world), [(1, 0)]);
    p.ended(1, 0, 0);
    p.add(1, 0, 1, &world);
    p.leave(1);
    assert_eq!(p.decide(0, &world), [(1, 0)]);
    p.join(1, 0, 1, 1, 0);
    assert!(p.recall(0, &world).is_empty());
}

/// An agent that does what agents do: it brings one thing after the other, and starts what is there.
#[derive(Default)]
struct Node {
    link: u64,
    files: BTreeMap<u32, u64>,
    /// What waits: its urgency, and when its data are there.
    waits: BTreeMap<u32, (Urgency, u64)>,
    runs: BTreeMap<u32, u64>,
}

/// Executes everything. Returns when it is over, and how often each task was given and asked back.
fn execute(world: &World, levels: &[i64], place: Place, (slots, ahead): (usize, usize), late: &[u64]) -> u64 {
    let mut p = placement(place, world, slots, ahead);
    let tasks = world.seconds.len();
    let mut nodes: Vec<Node> = (0..world.agents).map(|_| Node::default()).collect();
    let mut asked = vec![0; tasks];
    let (mut done, mut now) = (0, 0);
    for task in 0..tasks as u32 {
        p.add(task, levels[task as usize], world.seconds[task as usize] + world.sizes[task as usize], world);
    }
    while done < tasks {
        for (task, agent) in p.decide(now, world) {
            let node = &mut nodes[agent as usize];
            let mut data = now;
            for file in &world.inputs[task as usize] {
                data = data.max(*node.files.entry(*file).or_insert_with(|| {
                    node.link = node.link.max(now) + world.sizes[*file as usize];
                    node.link
                }));
            }
            let given = p.agents[agent as usize].given().iter().find(|g| g.task == task);
            let urgency = given.map(|g| g.urgency).expect("it was given");
            assert!(node.waits.insert(task, (urgency, data)).is_none() && !node.runs.contains_key(&task));
            let used: usize =
                node.waits.keys().chain(node.runs.keys()).map(|t| world.widths[*t as usize].min(slots)).sum();
            let levels: BTreeSet<i64> = levels.iter().copied().collect();
            assert!(used < (slots + ahead) * levels.len() + 2, "no more than may wait");
        }
        let mut returned = false;
        for (task, agent) in p.recall(now, world) {
            asked[task as usize] += 1;
            assert!(asked[task as usize] <= 3, "asked back again and again");
            if nodes[agent as usize].waits.remove(&task).is_some() {
                returned = true;
                p.ended(task, agent, now);
                let rank = world.seconds[task as usize] + world.sizes[task as usize];
                p.add(task, levels[task as usize], rank, world);
            }
        }
        for (agent, node) in (0..).zip(&mut nodes) {
            let mut order: Vec<_> = node.waits.iter().map(|(t, (u, data))| (*u, *t, *data)).collect();
            order.sort_unstable();
            for (_, task, data) in order {
                let used: usize = node.runs.keys().map(|t| world.widths[*t as usize].min(slots)).sum();
                if data <= now && used + world.widths[task as usize].min(slots) <= slots {
                    node.waits.remove(&task);
                    let seconds = world.seconds[task as usize] * late[task as usize % late.len()] / 100;
                    node.runs.insert(task, now + seconds.max(1));
                    p.started(task, agent, now);
                }
            }
        }
        // What was asked back can go elsewhere at once.
        if returned {
            continue;
        }
        let events = nodes.iter().flat_map(|n| n.runs.values().chain(n.waits.values().map(|(_, d)| d)));
        let wake = p.wake();
        assert!(wake.is_none_or(|wake| wake > now), "what should be done now is done");
        now = events.chain(&wake).copied().filter(|t| *t > now).min().expect("something goes on");
        for (agent, node) in (0..).zip(&mut nodes) {
            let ended: Vec<u32> = node.runs.iter().filter(|(_, end)| **end <= now).map(|(t, _)| *t).collect();
            for task in ended {
                node.runs.remove(&task);
                p.ended(task, agent, now);
                done += 1;
            }
        }
    }
    p.decide(now, world);
    assert!(p.ready.is_empty() && p.executors.is_empty() && p.returned.is_empty());
    assert!(p.yielding.is_empty());
    assert!(p.agents.iter().all(|a| a.given().is_empty() && a.busy() == 0));
    now
}

#[test]
fn bringing_and_computing_at_once_takes_half_the_time() {
    let world = world(&[(1_000_000, 1_000_000); 40], 2);
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::MinMin, Place::Data] {
        let over = execute(&world, &[0; 40], place, (1, 2), &[100]);
        assert_eq!(over, 21_000_000, "{place:?}: 20 each, and the first has to be brought");
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let task = (1..50u64, prop::collection::vec(0..12u32, 0..3), 1..3usize);
    (prop::collection::vec(task, 1..40), prop::collection::vec(0..40u64, 40), 1..5u32, 0..200u64).prop_map(
        |(tasks, sizes, agents, unstarted)| World {
            seconds: tasks.iter().map(|(seconds, ..)| seconds * SECOND).collect(),
            inputs: tasks.iter().map(|(_, inputs, _)| inputs.clone()).collect(),
            widths: tasks.iter().map(|(_, _, width)| *width).collect(),
            sizes: sizes.iter().map(|size| size * SECOND).collect(),
            agents,
            unstarted: unstarted * SECOND,
        },
    )
}

proptest! {
    #[test]
    fn everything_is_executed_once_wherever_it_waits(
        world in worlds(),
        levels in prop::collection::vec(prop_oneof![4 => Just(0i64), 1 => -2..3i64], 40),
        place in prop::sample::select(vec![Place::EarliestFinish, Place::LongestIdle, Place::MinMin, Place::Data]),
        room in (1..4usize, 1..5usize),
        late in prop::collection::vec(prop_oneof![Just(100u64), 20..500u64], 1..6),
    ) {
        execute(&world, &levels, place, room, &late);
    }

    /// Nobody waits at one agent while another one idles that would be done no later, unless who decides is thrifty.
    #[test]
    fn nobody_waits_while_somebody_idles(world in worlds(), slots in 1..4usize, ahead in 1..5usize) {
        let world = World { widths: vec![1; world.seconds.len()], ..world };
        let mut p = placement(Place::MinMin, &world, slots, ahead);
        for task in 0..world.seconds.len() as u32 {
            p.add(task, 0, u64::from(100 - task), &world);
        }
        let mut given = vec![0; world.agents as usize];
        for (task, agent) in p.decide(0, &world) {
            if given[agent as usize] >= slots {
                let there = end(&p, task, agent).unwrap();
                for idle in (0..world.agents).filter(|a| given[*a as usize] == 0) {
                    let bytes: u64 = world.inputs[task as usize].iter().map(|f| world.sizes[*f as usize]).sum();
                    prop_assert!(there <= bytes + world.seconds[task as usize], "{} waits for {}, not {}", task, agent, idle);
                }
            }
            given[agent as usize] += 1;
        }
    }

    /// No lower level is started or held where a higher one is left over.
    #[test]
    fn no_level_is_passed_by(
        world in worlds(),
        levels in prop::collection::vec(-2..3i64, 40),
        place in prop::sample::select(vec![Place::LongestIdle, Place::MinMin, Place::EarliestFinish]),
        (slots, ahead) in (1..3usize, 1..3usize),
    ) {
        // What is over soon is given at once. Who has data somewhere may wait for that.
        let inputs = if place == Place::LongestIdle { world.inputs.clone() } else { vec![vec![]; 40] };
        let nanos = |all: &[u64]| all.iter().map(|s| s / SECOND).collect();
        let world = World { inputs, seconds: nanos(&world.seconds), sizes: nanos(&world.sizes), ..world };
        let mut p = placement(place, &world, slots, ahead);
        // They come a few at a time.
        let all: Vec<u32> = (0..world.seconds.len() as u32).collect();
        for (now, tasks) in (0..).zip(all.chunks(7)) {
            for task in tasks {
                p.add(*task, levels[*task as usize], world.seconds[*task as usize], &world);
            }
            p.decide(now, &world);
            let left = p.ready.first().map(|((Reverse(level), ..), _)| *level);
            for agent in 0..world.agents {
                let state = &p.agents[agent as usize];
                let waits = state.given().iter().filter(|g| !g.has_started).map(|g| g.urgency.0.0);
                let lower = waits.filter(|l| left.is_some_and(|left| *l < left)).count();
                prop_assert!(lower == 0 || !state.has_room(left.unwrap_or(0)), "{:?} has room for {:?}", agent, left);
            }
        }
    }
}
