//! What the scheduler promises, whatever happens.

use catena_model::{Name, Resources};
use catena_schedule::{AgentInfo, Class, Command, Event, Policy, Scheduler, Settings};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const AGING: i64 = 1000;

fn class(n: usize) -> Class {
    let capabilities = match n {
        0 => vec!["a"],
        1 => vec!["b"],
        2 => vec!["a", "b"],
        _ => vec![],
    };
    let cpus = if n == 3 { 2000 } else { 1000 };
    Class {
        capabilities: capabilities.into_iter().map(Name::new).collect(),
        resources: Resources { cpus, ..Resources::default() },
    }
}

fn agent(n: usize) -> AgentInfo {
    let (capabilities, cpus) =
        [(vec!["a"], 1), (vec!["b"], 2), (vec!["a", "b"], 3), (vec![], 4)][n % 4].clone();
    AgentInfo {
        id: Name::new(format!("agent{n}")),
        capabilities: capabilities.into_iter().map(Name::new).collect(),
        resources: Resources { cpus: cpus * 1000, memory: 1 << 40, ..Resources::default() },
    }
}

fn can(agent: &AgentInfo, class: &Class) -> bool {
    class.capabilities.iter().all(|c| agent.capabilities.contains(c))
        && agent.resources.cpus >= class.resources.cpus
}

#[derive(Clone, Debug)]
enum Happening {
    Register { class: usize, count: u64, priority: i64 },
    Join(usize),
    Leave(usize),
    End(u32),
    Wait(u16),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..4usize, 1..9u64, -3..4i64).prop_map(|(class, count, priority)| Happening::Register {
            class,
            count,
            priority
        }),
        (0..6usize).prop_map(Happening::Join),
        (0..6usize).prop_map(Happening::Leave),
        any::<u32>().prop_map(Happening::End),
        any::<u16>().prop_map(Happening::Wait),
    ]
}

/// What is true, kept beside what the scheduler believes.
#[derive(Default)]
struct Truth {
    now: i64,
    /// Waiting chains of each class: their ranks.
    waiting: BTreeMap<usize, Vec<i64>>,
    agents: BTreeMap<Name, AgentInfo>,
    /// What agents have.
    held: Vec<(Name, usize)>,
}

impl Truth {
    fn level(&self, class: usize) -> Option<i64> {
        let top = self.waiting.get(&class)?.iter().max()?;
        Some((top + self.now).div_euclid(AGING))
    }

    fn apply(&mut self, s: &mut Scheduler, policy: Policy) -> Result<(), TestCaseError> {
        // The scheduler knows the most urgent chain of a class; how urgent the next one is, the store tells it with
        // the answer to a claim. So within a step only the first claim of a class can be judged.
        let mut judged = std::collections::BTreeSet::new();
        for command in s.decide(self.now) {
            let Command::Claim { agent, class: key, limit } = command else { continue };
            let n = (0..4).find(|n| class(*n).key() == key).unwrap();
            let info = self.agents.get(&agent).unwrap();
            prop_assert!(can(info, &class(n)), "{agent} cannot run {key}");
            // Nothing more urgent that the agent could run is left behind.
            let level = self.level(n);
            let first = judged.insert(n);
            for other in (0..4).filter(|o| can(info, &class(*o))) {
                // The claims of a step are answered after it: only what this claim leaves counts.
                prop_assert!(
                    !first || self.level(other) <= level || policy == Policy::Steep || other == n,
                    "{key} overtakes {}",
                    class(other).key()
                );
            }
            let waiting = self.waiting.entry(n).or_default();
            waiting.sort_unstable_by(|a, b| b.cmp(a));
            let got = limit.min(waiting.len());
            prop_assert_eq!(got, limit, "more is claimed than waits");
            let taken: Vec<i64> = waiting.drain(..got).collect();
            self.held.extend((0..got).map(|_| (agent.clone(), n)));
            s.handle(Event::Claimed {
                agent,
                class: key,
                asked: limit as u64,
                got: got as u64,
                rank: waiting.first().or(taken.last()).copied(),
            });
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn chains_go_to_able_agents_the_most_urgent_first_and_no_able_agent_idles(
        happenings in prop::collection::vec(happening(), 1..60),
        policy in prop::sample::select(vec![Policy::Catena, Policy::MinMin, Policy::MaxMin]),
    ) {
        let aging = Duration::from_millis(AGING as u64);
        let mut s = Scheduler::new(Settings { policy, aging, ..Settings::default() });
        let mut truth = Truth::default();
        for happening in happenings {
            match happening {
                Happening::Register { class: n, count, priority } => {
                    let rank = priority * AGING - truth.now;
                    truth.waiting.entry(n).or_default().extend((0..count).map(|_| rank));
                    s.handle(Event::Registered { class: class(n), count, rank });
                }
                Happening::Join(n) => {
                    let info = agent(n);
                    if truth.agents.insert(info.id.clone(), info.clone()).is_none() {
                        s.handle(Event::AgentJoined(info));
                    }
                }
                Happening::Leave(n) => {
                    let id = agent(n).id;
                    if truth.agents.remove(&id).is_some() {
                        s.handle(Event::AgentLeft(id.clone()));
                        let (lost, kept) = truth.held.drain(..).partition(|(a, _)| *a == id);
                        truth.held = kept;
                        for (_, n) in lost as Vec<(Name, usize)> {
                            let rank = -truth.now;
                            truth.waiting.entry(n).or_default().push(rank);
                            s.handle(Event::Registered { class: class(n), count: 1, rank });
                        }
                    }
                }
                Happening::End(choice) if !truth.held.is_empty() => {
                    let i = choice as usize % truth.held.len();
                    let (agent, n) = truth.held.swap_remove(i);
                    s.handle(Event::Ended { agent, class: class(n).key(), millis: Some(f64::from(choice % 300)) });
                }
                Happening::End(_) => {}
                Happening::Wait(millis) => truth.now += i64::from(millis % 5000),
            }
            truth.apply(&mut s, policy)?;
            let believed: u64 = s.registered();
            let real: usize = truth.waiting.values().map(Vec::len).sum();
            prop_assert_eq!(believed, real as u64, "counts equal the truth");
            for (id, info) in &truth.agents {
                let idle = !truth.held.iter().any(|(a, _)| a == id);
                let work = truth.waiting.iter().any(|(n, w)| !w.is_empty() && can(info, &class(*n)));
                prop_assert!(!(idle && work), "{} idles although it could work", id);
            }
        }
    }
}

#[test]
fn nothing_waits_for_ever() {
    let aging = Duration::from_millis(AGING as u64);
    let mut s = Scheduler::new(Settings { aging, ..Settings::default() });
    let mut truth = Truth::default();
    truth.agents.insert(agent(0).id, agent(0));
    s.handle(Event::AgentJoined(agent(0)));
    let (low, high) = (Class { resources: Resources::default(), ..class(0) }, class(0));
    s.handle(Event::Registered { class: low.clone(), count: 1, rank: 0 });
    // Each step something far more important arrives, and one chain ends.
    for step in 0..100 {
        let now = step * 200;
        s.handle(Event::Registered { class: high.clone(), count: 1, rank: 5 * AGING - now });
        let mut served = false;
        for command in s.decide(now) {
            if let Command::Claim { agent, class, limit } = command {
                served |= class == low.key();
                let (asked, got) = (limit as u64, limit as u64);
                s.handle(Event::Claimed {
                    agent: agent.clone(),
                    class: class.clone(),
                    asked,
                    got,
                    rank: None,
                });
                s.handle(Event::Ended { agent, class, millis: Some(200.0) });
            }
        }
        if served {
            // Five points of priority are made up for by five times the aging.
            assert!(now <= 6 * AGING, "{now}");
            return;
        }
    }
    panic!("it is never served");
}

#[test]
fn an_agent_that_closes_gets_nothing_new_until_it_joins_again() {
    let mut s = Scheduler::new(Settings::default());
    s.handle(Event::AgentJoined(agent(0)));
    s.handle(Event::AgentCloses(agent(0).id));
    s.handle(Event::Registered { class: class(0), count: 5, rank: 0 });
    assert!(s.decide(0).is_empty(), "it takes nothing, but there still is somebody who could");
    // Nor does room make it open again.
    s.handle(Event::Has { agent: agent(0).id, class: class(0), count: 1 });
    s.handle(Event::Ended { agent: agent(0).id, class: class(0).key(), millis: Some(1.0) });
    assert!(s.decide(0).is_empty());
    s.handle(Event::AgentJoined(agent(0)));
    assert!(!s.decide(0).is_empty());
}
