//! Nothing starves: everything that can happen within some steps is explored, with somebody in it who wants one chain
//! to wait for ever.
//!
//! The chain has a low priority and needs a whole agent. At every step more important chains may arrive that need only
//! half of one, or any chain may end, and an agent may come or go. Whoever arrives so late that the difference in
//! priority is made up for by the time waited must not overtake it.

use catena_model::{Name, Resources};
use catena_schedule::{AgentInfo, Class, Command, Event, Policy, Scheduler, Settings};
use std::collections::BTreeMap;
use std::time::Duration;

const AGING: i64 = 1000;
/// How much more important the others are.
const PRIORITY: i64 = 2;
/// How much time passes with every step.
const STEP: i64 = 600;

fn class(capabilities: &[&str], cpus: u64) -> Class {
    let capabilities = capabilities.iter().map(Name::new).collect();
    Class { capabilities, resources: Resources { cpus: cpus * 1000, ..Resources::default() } }
}

/// The chain that must not starve.
fn victim() -> Class {
    class(&[], 2)
}

fn rivals() -> [Class; 2] {
    [class(&[], 1), class(&["a"], 1)]
}

fn agent(n: usize) -> AgentInfo {
    let resources = Resources { cpus: 2000, memory: 1 << 30, ..Resources::default() };
    AgentInfo { id: Name::new(format!("agent{n}")), capabilities: vec![Name::new("a")], resources }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(usize),
    End(usize),
    Join,
    Leave,
}

#[derive(Clone, Debug)]
struct World {
    scheduler: Scheduler,
    now: i64,
    /// Ranks of what waits, by class.
    waiting: BTreeMap<Name, Vec<i64>>,
    held: Vec<(Name, Name)>,
    helped: bool,
    /// The victim has been claimed.
    served: bool,
}

impl World {
    fn new(policy: Policy, look_ahead: Duration) -> Self {
        let aging = Duration::from_millis(AGING as u64);
        let settings = Settings { policy, aging, look_ahead, placed: None };
        let mut world = Self {
            scheduler: Scheduler::new(settings),
            now: 0,
            waiting: BTreeMap::new(),
            held: Vec::new(),
            helped: false,
            served: false,
        };
        world.scheduler.handle(Event::AgentJoined(agent(0)));
        // The agent has as much as it can take when the victim arrives, and more waits.
        for n in 0..8 {
            world.register(&rivals()[n % 2], PRIORITY * AGING);
        }
        world.decide();
        world.register(&victim(), 0);
        world
    }

    fn register(&mut self, class: &Class, rank: i64) {
        self.waiting.entry(class.key()).or_default().push(rank);
        self.scheduler.handle(Event::Registered { class: class.clone(), count: 1, rank });
    }

    fn steps(&self) -> Vec<Step> {
        let arrivals = (0..rivals().len()).map(Step::Arrive);
        let ends = (0..self.held.len().min(3)).map(Step::End);
        let other = if self.helped { Step::Leave } else { Step::Join };
        arrivals.chain(ends).chain([other]).collect()
    }

    fn take(&mut self, step: Step) {
        self.now += STEP;
        match step {
            Step::Arrive(n) => self.register(&rivals()[n], PRIORITY * AGING - self.now),
            Step::End(n) => {
                let (agent, class) = self.held.remove(n);
                self.scheduler.handle(Event::Ended { agent, class, millis: Some(100.0) });
            }
            Step::Join => {
                self.helped = true;
                self.scheduler.handle(Event::AgentJoined(agent(1)));
            }
            Step::Leave => {
                self.helped = false;
                self.scheduler.handle(Event::AgentLeft(agent(1).id));
                let (lost, kept) =
                    std::mem::take(&mut self.held).into_iter().partition(|h| h.0 == agent(1).id);
                self.held = kept;
                let lost: Vec<(Name, Name)> = lost;
                for (_, key) in lost {
                    // What comes back is no newer than it was.
                    let class = Class::from_key(&key).unwrap();
                    self.register(&class, PRIORITY * AGING);
                }
            }
        }
        self.decide();
    }

    fn decide(&mut self) {
        let mut judged = Vec::new();
        for command in self.scheduler.decide(self.now) {
            let Command::Claim { agent, class, limit } = command else { continue };
            let waiting = self.waiting.entry(class.clone()).or_default();
            waiting.sort_unstable_by(|a, b| b.cmp(a));
            let got = limit.min(waiting.len());
            let taken: Vec<i64> = waiting.drain(..got).collect();
            let rank = waiting.first().or(taken.last()).copied();
            if class == victim().key() {
                self.served = true;
            } else if !self.served && !judged.contains(&class) {
                // Of a batch only the first is chosen; the rest comes with it.
                let arrived = PRIORITY * AGING - taken.first().copied().unwrap_or(PRIORITY * AGING);
                assert!(arrived < (PRIORITY + 1) * AGING, "{arrived} overtakes the victim: {self:#?}");
            }
            judged.push(class.clone());
            self.held.extend((0..got).map(|_| (agent.clone(), class.clone())));
            let (asked, got) = (limit as u64, got as u64);
            self.scheduler.handle(Event::Claimed { agent, class, asked, got, rank });
        }
    }

    /// Rivals go on arriving as fast as chains end: the victim gets its turn nevertheless.
    fn settle(mut self) {
        for n in 0..60 {
            if self.served {
                return;
            }
            self.take(Step::Arrive(n % 2));
            if !self.held.is_empty() {
                self.take(Step::End(0));
            }
        }
        panic!("the victim starves: {self:#?}");
    }
}

/// Returns how many states were looked at.
fn explore(world: &World, depth: usize) -> usize {
    if world.served {
        return 1;
    }
    if depth == 0 {
        world.clone().settle();
        return 1;
    }
    let mut states = 1;
    for step in world.steps() {
        let mut changed = world.clone();
        changed.take(step);
        states += explore(&changed, depth - 1);
    }
    states
}

#[test]
fn no_order_of_events_makes_a_chain_wait_for_ever() {
    for policy in [Policy::Catena, Policy::MinMin, Policy::MaxMin, Policy::Steep] {
        for look_ahead in [Duration::ZERO, Settings::default().look_ahead] {
            let states = explore(&World::new(policy, look_ahead), 6);
            assert!(states > 1000, "{policy:?} {look_ahead:?}: {states}");
        }
    }
}
