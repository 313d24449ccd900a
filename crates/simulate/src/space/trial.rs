//! Small groups in which everything goes wrong that can: what is promised must hold nevertheless.

use super::{Load, Routing, SpaceOutcome, Swarm, Trouble, simulate_space};
use crate::random::Random;
use catena_space::Chemistry;
use catena_space::time::{MILLI, SECOND};
use std::sync::Arc;

/// A small group with some workflows, and trouble that depends on the seed: peers die and come back, stand still, are cut
/// off; messages get lost and are late. After a while all is well again, and then all workflows must end.
pub fn trial(seed: u64, fencing: bool) -> (Load, SpaceOutcome) {
    let mut random = Random::new(seed ^ 0x0071_1a15);
    let rules = ["dependencies", "levels", "min-min"][random.below(3) as usize];
    let chemistry = Arc::new(Chemistry::shipped(rules).expect("shipped rules are good"));
    let peers = 4 + random.below(21) as usize;
    let mut swarm = Swarm::new(peers, chemistry, seed);
    swarm.routing = if random.below(2) == 0 { Routing::Full } else { Routing::Ring };
    swarm.settings.lease = 15 * SECOND;
    swarm.settings.fencing = fencing;
    swarm.settings.shards = 1 + random.below(2) as u16;
    let until = 120 + random.below(120);
    let mut some = |most: u64| if random.below(2) == 0 { 0 } else { random.below(most) };
    let trouble = Trouble {
        churn: some(200) as f64,
        absence: SECOND * (1 + some(60)),
        returns: true,
        cut: (some(2) > 0).then(|| (SECOND * (5 + some(60)), SECOND * until, 20 + some(40))),
        loss: some(100),
        late: (some(50), SECOND * (1 + some(30))),
        lost: some(60),
        pauses: (some(300) as f64, SECOND * (1 + some(60))),
        until: Some(SECOND * until),
    };
    swarm.trouble = trouble;
    swarm.hop = (MILLI, (1 + some(100)) * MILLI);
    swarm.end = 5400 * SECOND;
    let load = Load::random(1 + random.below(3) as usize, 10, 0.05, seed);
    let outcome = simulate_space(&swarm, &load);
    (load, outcome)
}

/// What is promised whatever happens: what does not hold, if anything.
pub fn broken(load: &Load, outcome: &SpaceOutcome) -> Option<String> {
    let tasks = load.tasks() as u64;
    if outcome.twice > 0 {
        return Some(format!("{} tasks were done twice", outcome.twice));
    }
    if outcome.stale > 0 {
        return Some(format!("{} results counted although their lease did not", outcome.stale));
    }
    if outcome.ended() < load.workflows.len() {
        return Some(format!("{} of {} workflows ended", outcome.ended(), load.workflows.len()));
    }
    if outcome.committed != tasks {
        return Some(format!("{} of {tasks} tasks were done", outcome.committed));
    }
    None
}
