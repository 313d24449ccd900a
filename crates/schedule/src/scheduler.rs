//! The event-driven form of the lookup loop of Krämer's paper on Steep (section 5).
//!
//! The paper asks every agent which set it would like and assigns one chain per exchange. Here the
//! scheduler knows what agents offer, assigns a batch as large as the agent has room for, and reacts to
//! every event at once.

use crate::class::Class;
use catena_model::{Name, Resources};
use std::collections::BTreeMap;

/// What an agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentInfo {
    /// Its name.
    pub id: Name,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Chains of a class wait for an agent.
    Registered {
        /// The class.
        class: Class,
        /// How many more.
        count: u64,
        /// The highest priority among them.
        priority: i32,
    },
    /// An agent offers itself.
    AgentJoined(AgentInfo),
    /// An agent is gone. What it had is registered again by whoever noticed.
    AgentLeft(Name),
    /// A claim was made: so many chains went to the agent.
    Claimed {
        /// The agent.
        agent: Name,
        /// The class.
        class: Name,
        /// How many were asked for.
        asked: u64,
        /// How many there were.
        got: u64,
    },
    /// An agent is done with a chain, whatever came of it.
    Ended {
        /// The agent.
        agent: Name,
        /// The chain's class.
        class: Name,
        /// How long the agent was busy with it, in milliseconds.
        millis: f64,
    },
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Claim up to `limit` chains of a class and send them to an agent.
    Claim {
        /// The agent.
        agent: Name,
        /// The class.
        class: Name,
        /// At most so many.
        limit: usize,
    },
    /// No agent can ever run chains of this class.
    Unsatisfiable {
        /// The class.
        class: Name,
        /// Why not, and who comes nearest.
        reason: String,
    },
}

/// How much work an agent holds in advance, in milliseconds: enough to hide a round trip.
const LOOK_AHEAD_MILLIS: f64 = 50.0;
/// An agent never holds more than this many times its capacity in advance.
const MAX_LOOK_AHEAD: f64 = 256.0;

/// Matches classes with agents.
#[derive(Debug, Default)]
pub struct Scheduler {
    classes: BTreeMap<Name, ClassState>,
    agents: BTreeMap<Name, AgentState>,
    /// Counts decisions, to serve classes of equal priority in turn.
    turn: u64,
}

#[derive(Debug)]
struct ClassState {
    class: Class,
    registered: u64,
    priority: i32,
    last_served: u64,
    reported: bool,
}

#[derive(Debug)]
struct AgentState {
    info: AgentInfo,
    assigned: BTreeMap<Name, u64>,
    /// Mean duration of recent chains in milliseconds.
    mean_millis: f64,
    /// When it last got work; the one that waits longest is served first.
    last_assigned: u64,
}

impl AgentState {
    fn offers(&self, class: &Class) -> bool {
        class.capabilities.iter().all(|c| self.info.capabilities.contains(c))
    }

    /// How many chains of a class the agent can run at once.
    fn slots(&self, class: &Class) -> u64 {
        let (have, need) = (&self.info.resources, &class.resources);
        let mut slots = u64::MAX;
        let named = need.named.iter().map(|(name, n)| (have.named.get(name).copied().unwrap_or(0), *n));
        let quantities = [(have.cpus, need.cpus), (have.memory, need.memory), (have.disk, need.disk)];
        for (have, need) in quantities.into_iter().chain(named) {
            slots = slots.min(have.checked_div(need).unwrap_or(u64::MAX));
        }
        // Something that needs nothing still needs somebody to run it.
        slots.min(have.cpus.max(1000) / 10)
    }

    /// How many more chains of a class to send: what fits now, and some ahead so that no slot waits.
    fn room(&self, class: &Class, classes: &BTreeMap<Name, ClassState>) -> u64 {
        if !self.offers(class) {
            return 0;
        }
        let slots = self.slots(class);
        if slots == 0 {
            return 0;
        }
        let load: f64 = self
            .assigned
            .iter()
            .filter_map(|(key, n)| Some(*n as f64 / self.slots(&classes.get(key)?.class).max(1) as f64))
            .sum();
        let ahead = (LOOK_AHEAD_MILLIS / self.mean_millis.max(0.001)).clamp(1.0, MAX_LOOK_AHEAD);
        ((1.0 + ahead - load) * slots as f64).max(0.0) as u64
    }
}

impl Scheduler {
    /// Takes an event in.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Registered { class, count, priority } => {
                let state = self.classes.entry(class.key()).or_insert_with(|| ClassState {
                    class,
                    registered: 0,
                    priority,
                    last_served: 0,
                    reported: false,
                });
                state.priority = if state.registered == 0 { priority } else { state.priority.max(priority) };
                state.registered += count;
            }
            Event::AgentJoined(info) => {
                let id = info.id.clone();
                let agent = AgentState {
                    info,
                    assigned: BTreeMap::new(),
                    mean_millis: LOOK_AHEAD_MILLIS,
                    last_assigned: 0,
                };
                self.agents.insert(id, agent);
                for class in self.classes.values_mut() {
                    class.reported = false;
                }
            }
            Event::AgentLeft(id) => {
                self.agents.remove(&id);
            }
            Event::Claimed { agent, class, asked, got } => {
                if let Some(state) = self.classes.get_mut(&class) {
                    // Fewer than asked for means that there are no more.
                    state.registered = if got < asked { 0 } else { state.registered.saturating_sub(got) };
                }
                // The claim was counted as assigned when it was decided.
                self.unassign(&agent, &class, asked - got);
            }
            Event::Ended { agent, class, millis } => {
                self.unassign(&agent, &class, 1);
                if let Some(agent) = self.agents.get_mut(&agent) {
                    agent.mean_millis += (millis - agent.mean_millis) * 0.05;
                }
            }
        }
    }

    fn unassign(&mut self, agent: &Name, class: &Name, n: u64) {
        let assigned = self.agents.get_mut(agent).and_then(|a| a.assigned.get_mut(class));
        if let Some(assigned) = assigned {
            *assigned = assigned.saturating_sub(n);
        }
    }

    /// How many chains wait for an agent.
    pub fn registered(&self) -> u64 {
        self.classes.values().map(|c| c.registered).sum()
    }

    /// What to do now. Each claim must be answered with [`Event::Claimed`].
    pub fn decide(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        let mut order: Vec<(i32, u64, Name)> = self
            .classes
            .iter()
            .filter(|(_, c)| c.registered > 0)
            .map(|(key, c)| (-c.priority, c.last_served, key.clone()))
            .collect();
        order.sort();
        for (_, _, key) in order {
            self.serve(&key, &mut commands);
        }
        commands
    }

    fn serve(&mut self, key: &Name, commands: &mut Vec<Command>) {
        let Some(state) = self.classes.get(key) else {
            return;
        };
        if !self.agents.values().any(|a| a.offers(&state.class) && a.slots(&state.class) > 0) {
            let reason = self.why_not(&state.class);
            let state = self.classes.get_mut(key).filter(|s| !s.reported);
            if let Some(state) = state {
                state.reported = true;
                commands.push(Command::Unsatisfiable { class: key.clone(), reason });
            }
            return;
        }
        // A claim that is under way has not been subtracted from `registered` yet.
        let mut left = state.registered;
        let mut agents: Vec<(u64, Name)> =
            self.agents.values().map(|a| (a.last_assigned, a.info.id.clone())).collect();
        agents.sort();
        for (_, id) in agents {
            let (Some(agent), Some(state)) = (self.agents.get(&id), self.classes.get(key)) else {
                continue;
            };
            let limit = agent.room(&state.class, &self.classes).min(left);
            if limit == 0 {
                continue;
            }
            left -= limit;
            self.turn += 1;
            if let Some(agent) = self.agents.get_mut(&id) {
                agent.last_assigned = self.turn;
                *agent.assigned.entry(key.clone()).or_insert(0) += limit;
            }
            if let Some(state) = self.classes.get_mut(key) {
                state.last_served = self.turn;
            }
            commands.push(Command::Claim { agent: id, class: key.clone(), limit: limit as usize });
        }
    }

    /// Why no agent can run a class, naming the one that comes nearest.
    fn why_not(&self, class: &Class) -> String {
        let missing = |a: &AgentState| -> Vec<String> {
            let capabilities = class.capabilities.iter().filter(|c| !a.info.capabilities.contains(c));
            capabilities.map(|c| format!("`{c}`")).collect()
        };
        let nearest = self.agents.values().min_by_key(|a| (missing(a).len(), a.slots(&class.clone()) == 0));
        let Some(nearest) = nearest else {
            return format!("there is no agent to run chains that require {}", class.show_capabilities());
        };
        let missing = missing(nearest);
        if missing.is_empty() {
            format!(
                "no agent has {}; the largest, {}, has {}",
                class.resources, nearest.info.id, nearest.info.resources
            )
        } else {
            format!(
                "no agent offers {}; the nearest, {}, lacks {}",
                class.show_capabilities(),
                nearest.info.id,
                missing.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, capabilities: &[&str], cpus: u64) -> Event {
        Event::AgentJoined(AgentInfo {
            id: id.into(),
            capabilities: capabilities.iter().map(Name::new).collect(),
            resources: Resources { cpus: cpus * 1000, memory: 1000, ..Resources::default() },
        })
    }

    fn class(capabilities: &[&str]) -> Class {
        Class { capabilities: capabilities.iter().map(Name::new).collect(), ..Class::default() }
    }

    fn registered(class: &Class, count: u64, priority: i32) -> Event {
        Event::Registered { class: class.clone(), count, priority }
    }

    fn claims(commands: &[Command]) -> Vec<(String, String, usize)> {
        let claim = |c: &Command| match c {
            Command::Claim { agent, class, limit } => Some((agent.to_string(), class.to_string(), *limit)),
            Command::Unsatisfiable { .. } => None,
        };
        commands.iter().filter_map(claim).collect()
    }

    #[test]
    fn an_agent_gets_what_it_has_room_for_and_no_more() {
        let mut s = Scheduler::default();
        let c = class(&[]);
        s.handle(agent("a", &[], 2));
        s.handle(registered(&c, 100, 0));
        let first = claims(&s.decide());
        assert_eq!(first, [("a".into(), c.key().to_string(), 4)]);
        s.handle(Event::Claimed { agent: "a".into(), class: c.key(), asked: 4, got: 4 });
        assert!(s.decide().is_empty());
        s.handle(Event::Ended { agent: "a".into(), class: c.key(), millis: 60.0 });
        assert_eq!(claims(&s.decide())[0].2, 1);
    }

    #[test]
    fn short_tasks_are_sent_far_ahead() {
        let mut s = Scheduler::default();
        let c = class(&[]);
        s.handle(agent("a", &[], 2));
        s.handle(registered(&c, 1_000_000, 0));
        for _ in 0..200 {
            for (agent, class, n) in claims(&s.decide()) {
                s.handle(Event::Claimed {
                    agent: agent.into(),
                    class: class.into(),
                    asked: n as u64,
                    got: n as u64,
                });
            }
            s.handle(Event::Ended { agent: "a".into(), class: c.key(), millis: 1.0 });
        }
        assert!(s.agents["a"].assigned[&c.key()] > 50);
    }

    #[test]
    fn higher_priorities_come_first() {
        let mut s = Scheduler::default();
        let (low, high) = (class(&["x"]), class(&["y"]));
        s.handle(agent("a", &["x", "y"], 1));
        s.handle(registered(&low, 10, 1));
        s.handle(registered(&high, 10, 7));
        assert_eq!(claims(&s.decide())[0].1, high.key().to_string());
    }

    #[test]
    fn what_nobody_offers_is_said_once_with_the_nearest_agent() {
        let mut s = Scheduler::default();
        s.handle(agent("small", &["ubuntu"], 2));
        s.handle(registered(&class(&["gpu", "ubuntu"]), 3, 0));
        let commands = s.decide();
        let Command::Unsatisfiable { reason, .. } = &commands[0] else { panic!("{commands:?}") };
        assert!(reason.contains("small") && reason.contains("`gpu`"), "{reason}");
        assert!(s.decide().is_empty());
        s.handle(agent("big", &["gpu", "ubuntu"], 2));
        assert_eq!(claims(&s.decide())[0].0, "big");
    }

    #[test]
    fn resources_limit_how_many_run() {
        let mut s = Scheduler::default();
        let c = Class { resources: Resources { memory: 400, ..Resources::default() }, ..Class::default() };
        s.handle(agent("a", &[], 64));
        s.handle(registered(&c, 100, 0));
        // Two fit into the memory, two wait ahead.
        assert_eq!(claims(&s.decide())[0].2, 4);
        let too_big =
            Class { resources: Resources { memory: 4000, ..Resources::default() }, ..Class::default() };
        s.handle(registered(&too_big, 1, 0));
        assert!(matches!(&s.decide()[..], [Command::Unsatisfiable { .. }]));
    }

    #[test]
    fn a_claim_that_finds_less_ends_the_search() {
        let mut s = Scheduler::default();
        let c = class(&[]);
        s.handle(agent("a", &[], 2));
        s.handle(registered(&c, 100, 0));
        let n = claims(&s.decide())[0].2 as u64;
        s.handle(Event::Claimed { agent: "a".into(), class: c.key(), asked: n, got: 1 });
        assert_eq!(s.registered(), 0);
        assert_eq!(s.agents["a"].assigned[&c.key()], 1);
    }
}
