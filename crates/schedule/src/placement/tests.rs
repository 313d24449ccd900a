use super::*;

mod ahead;

/// Agents with one slot each, at a byte per nanosecond.
struct World {
    seconds: Vec<u64>,
    inputs: Vec<Vec<u32>>,
    sizes: Vec<u64>,
    /// How many times slower than others agents are.
    slow: Vec<u64>,
    unstarted: u64,
}

impl Costs for World {
    fn can(&self, _: u32, agent: u32) -> bool {
        (agent as usize) < self.slow.len()
    }

    fn fits(&self, _: u32, _: u32, others: &[u32]) -> bool {
        others.is_empty()
    }

    fn compute(&self, task: u32, agent: u32) -> u64 {
        self.seconds[task as usize] * self.slow[agent as usize]
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
}

/// Tasks that take so long and read files of these sizes, one each.
fn world(tasks: &[(u64, u64)], slow: &[u64]) -> World {
    World {
        seconds: tasks.iter().map(|(seconds, _)| *seconds).collect(),
        inputs: (0..tasks.len() as u32).map(|t| vec![t]).collect(),
        sizes: tasks.iter().map(|(_, size)| *size).collect(),
        slow: slow.to_vec(),
        unstarted: 0,
    }
}

fn placement(place: Place, world: &World) -> Placement {
    let mut placement = Placement::new(place);
    for agent in 0..world.slow.len() as u32 {
        // Those that are equally fast are of a kind.
        placement.join(agent, world.slow[agent as usize] as usize, 1, 0, 0);
    }
    placement
}

#[test]
fn a_task_goes_where_its_data_are() {
    let world = world(&[(100, 10)], &[1, 1, 1]);
    for place in [Place::EarliestFinish, Place::Data] {
        let mut p = placement(place, &world);
        p.hold(2, &[0]);
        p.add(0, 0, 110, &world);
        assert_eq!(p.decide(0, &world), [(0, 2)]);
    }
    let mut p = placement(Place::LongestIdle, &world);
    p.hold(2, &[0]);
    p.add(0, 0, 110, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)], "whoever has waited longest, wherever data are");
}

#[test]
fn a_task_goes_to_the_fastest_agent_that_has_room() {
    let world = world(&[(100, 0), (100, 0)], &[3, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.add(0, 0, 100, &world);
    assert_eq!(p.decide(0, &world), [(0, 1)]);
    p.add(1, 0, 100, &world);
    assert_eq!(p.decide(0, &world), [(1, 0)], "200 on the fast one, which is busy, but 300 here");
}

#[test]
fn the_most_urgent_task_comes_first() {
    let world = world(&[(10, 0), (10, 0)], &[1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.add(0, 0, 10, &world);
    p.add(1, 0, 500, &world);
    assert_eq!(p.decide(0, &world), [(1, 0)]);
    p.ended(1, 0, 10);
    assert_eq!(p.decide(10, &world), [(0, 0)]);
}

#[test]
fn a_task_waits_for_its_data_if_that_makes_nothing_later() {
    // Task 0 keeps agent 0 busy until 100, and much follows from it. Task 1 has its data there.
    let world = world(&[(100, 0), (50, 400)], &[1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.add(0, 0, 1000, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
    p.hold(0, &[1]);
    p.add(1, 0, 450, &world);
    assert!(p.decide(0, &world).is_empty(), "150 there, 450 elsewhere");
    // Also if it would end sooner elsewhere: there is time.
    let world = World { sizes: vec![0, 60], ..world };
    let mut p = placement(Place::EarliestFinish, &world);
    p.add(0, 0, 1000, &world);
    p.decide(0, &world);
    p.hold(0, &[1]);
    p.add(1, 0, 110, &world);
    assert!(p.decide(0, &world).is_empty(), "110 elsewhere, but nobody waits for it");
    p.ended(0, 0, 100);
    assert_eq!(p.decide(100, &world), [(1, 0)]);
}

#[test]
fn an_urgent_task_does_not_wait_for_its_data() {
    let world = world(&[(100, 0), (50, 60)], &[1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.add(0, 0, 100, &world);
    p.decide(0, &world);
    p.hold(0, &[1]);
    p.add(1, 0, 900, &world);
    assert_eq!(p.decide(0, &world), [(1, 1)], "110 instead of 150, and everything waits for it");
}

#[test]
fn an_idle_agent_prefers_what_it_has_while_there_is_other_work() {
    // Much work is to come, so that the order of these two does not matter.
    let mut world = world(&[(10, 5), (10, 5)], &[1]);
    world.unstarted = 10_000;
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(0, &[1]);
    p.add(0, 0, 40, &world);
    p.add(1, 0, 20, &world);
    assert_eq!(p.decide(0, &world), [(1, 0)]);
    // Without it, rank decides.
    world.unstarted = 0;
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(0, &[1]);
    p.add(0, 0, 40, &world);
    p.add(1, 0, 20, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
}

#[test]
fn who_is_gone_has_nothing_and_gets_nothing() {
    let world = world(&[(100, 10)], &[1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(1, &[0]);
    p.add(0, 0, 110, &world);
    p.leave(1);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
}

#[test]
fn a_second_execution_goes_elsewhere() {
    let world = world(&[(100, 10)], &[1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(0, &[0]);
    p.add(0, 0, 110, &world);
    assert_eq!(p.decide(0, &world), [(0, 0)]);
    p.add(0, 0, 110, &world);
    assert_eq!(p.decide(150, &world), [(0, 1)]);
}

#[test]
fn a_higher_level_comes_first_whatever_the_rank() {
    let world = world(&[(10, 0), (10, 0), (10, 5)], &[1]);
    for place in [Place::EarliestFinish, Place::LongestIdle, Place::MinMin] {
        let mut p = placement(place, &world);
        // Task 2 is the most urgent of its level, and its data are there.
        p.hold(0, &[2]);
        p.add(2, -1, 900, &world);
        p.add(0, 0, 10, &world);
        p.add(1, 7, 5, &world);
        let mut now = 0;
        for expected in [1, 0, 2] {
            assert_eq!(p.decide(now, &world), [(expected, 0)], "{place:?}");
            now += 10;
            p.ended(expected, 0, now);
        }
    }
}

#[test]
fn files_are_where_somebody_has_them() {
    let world = world(&[(100, 10), (100, 10)], &[1, 1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(1, &[0]);
    p.hold(2, &[0, 1]);
    assert_eq!(p.holders(0).collect::<Vec<_>>(), [1, 2]);
    p.add(0, 0, 110, &world);
    p.unhold(1, &[0, 1]);
    assert_eq!(p.decide(0, &world), [(0, 2)]);
    // The number of a file that is forgotten stands for nothing.
    p.add(1, 0, 110, &world);
    p.forget_file(1);
    assert_eq!(p.holders(1).count(), 0);
    assert_eq!(p.decide(0, &world), [(1, 0)], "nobody has it, and agent 2 is busy");
}

#[test]
fn what_is_gone_leaves_nothing_behind() {
    let world = world(&[(100, 10), (100, 10)], &[1, 1]);
    let mut p = placement(Place::EarliestFinish, &world);
    p.hold(1, &[0, 1]);
    for round in 0..10 {
        p.add(0, 0, 110, &world);
        p.add(1, 0, 110, &world);
        p.remove(1);
        for (task, agent) in p.decide(round, &world) {
            p.ended(task, agent, round);
        }
        p.unhold(0, &[0, 1]);
        p.leave(1);
        p.join(1, 1, 1, 0, round);
    }
    p.forget_file(0);
    assert!(p.ready.is_empty() && p.entries.iter().all(Option::is_none) && p.executors.is_empty());
    assert!((0..2).all(|file| p.holders(file).count() == 0));
    assert_eq!(p.slots, 2);
}
