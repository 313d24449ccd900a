//! The event-driven form of the lookup loop of Krämer's paper on Steep (section 5).
//!
//! The paper asks every agent which set it would like and assigns one chain per exchange. Here the
//! scheduler knows what agents offer, assigns a batch as large as the agent has room for, and reacts to
//! every event at once. Agents that offer the same are of one [`Kind`]; decisions are made per kind and class,
//! so their cost does not grow with the number of agents or chains.

use crate::class::Class;
use crate::policy::Policy;
use crate::stages::Stages;
use catena_model::{Name, Resources};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

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
    /// More chains of a class wait for an agent.
    Registered {
        /// The class.
        class: Class,
        /// How many more.
        count: u64,
        /// The highest rank among them.
        rank: i64,
    },
    /// So many chains of a class wait in all; none if the class is not known yet.
    Waiting {
        /// The class.
        class: Class,
        /// How many.
        count: u64,
        /// The highest rank among them.
        rank: i64,
    },
    /// An agent offers itself.
    AgentJoined(AgentInfo),
    /// An agent takes nothing new. What it has it finishes.
    AgentCloses(Name),
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
        /// The rank of the last of them: what still waits has no higher one.
        rank: Option<i64>,
    },
    /// An agent has chains from an earlier time.
    Has {
        /// The agent.
        agent: Name,
        /// Their class.
        class: Class,
        /// How many.
        count: u64,
    },
    /// An agent is done with a chain, whatever came of it.
    Ended {
        /// The agent.
        agent: Name,
        /// The chain's class.
        class: Name,
        /// How long the agent was busy with it, in milliseconds; `None` if it never started.
        millis: Option<f64>,
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
    /// Ask an agent to give chains back that it has not started, because another one is idle.
    Recall {
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

/// How the scheduler decides.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which class an agent takes.
    pub policy: Policy,
    /// So much waiting counts as much as one point of priority.
    pub aging: Duration,
    /// How much work an agent holds in advance: enough to hide a round trip. None if the order is strict.
    pub look_ahead: Duration,
    /// How each stage decides where agents have files of their own. Then chains are given away one by one by a
    /// [`Placer`](crate::Placer), and a scheduler only counts.
    pub placed: Option<Stages>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            aging: Duration::from_mins(10),
            look_ahead: Duration::from_millis(50),
            placed: None,
        }
    }
}

/// How long a chain is expected to take while nothing is known, in milliseconds.
const EXPECTED_MILLIS: f64 = 50.0;
/// An agent never holds more than this many times its capacity in advance.
const MAX_LOOK_AHEAD: f64 = 256.0;
/// Chains that take at least so long are worth being moved to an idle agent.
const RECALL_MILLIS: f64 = 50.0;
/// How much a new duration changes an expected one.
const LEARNING: f64 = 0.1;

/// Matches classes with agents.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    settings: Settings,
    classes: BTreeMap<Name, ClassState>,
    kinds: Vec<Kind>,
    agents: BTreeMap<Name, AgentState>,
    /// Counts decisions: who was served least recently is served first.
    turn: u64,
}

#[derive(Clone, Debug)]
struct ClassState {
    class: Class,
    registered: u64,
    rank: i64,
    /// Expected duration of a chain in milliseconds.
    mean_millis: Option<f64>,
    last_served: u64,
    reported: bool,
    /// For each kind how many chains one of its agents can run at once.
    slots: Vec<u64>,
}

impl ClassState {
    /// How many chains wait besides those that are claimed in this step.
    fn left(&self, key: &Name, claimed: &BTreeMap<Name, u64>) -> u64 {
        self.registered.saturating_sub(claimed.get(key).copied().unwrap_or(0))
    }

    /// The priority of the first waiting chain, raised by the time it has waited.
    fn level(&self, now: i64, aging: Duration) -> i64 {
        (self.rank.saturating_add(now)).div_euclid((aging.as_millis() as i64).max(1))
    }
}

/// Agents that offer the same.
#[derive(Clone, Debug)]
struct Kind {
    capabilities: Vec<Name>,
    resources: Resources,
    /// Those with room, the ones first that have waited longest.
    open: BTreeSet<(u64, Name)>,
    members: u64,
}

#[derive(Clone, Debug)]
struct AgentState {
    info: AgentInfo,
    kind: usize,
    assigned: BTreeMap<Name, Assigned>,
    /// What is assigned, in units of the agent's capacity.
    load: f64,
    /// Expected duration of a chain in milliseconds.
    mean_millis: f64,
    /// When it last got work.
    last_assigned: u64,
    /// It takes nothing new.
    closing: bool,
}

#[derive(Clone, Debug, Default)]
struct Assigned {
    count: u64,
    /// How many of them were asked back.
    recalled: u64,
}

impl AgentState {
    /// How much the agent may hold in advance, in units of its capacity.
    fn ahead(&self, settings: &Settings) -> f64 {
        if settings.policy == Policy::Steep || settings.look_ahead.is_zero() {
            return 0.0;
        }
        let look_ahead = settings.look_ahead.as_secs_f64() * 1e3;
        (look_ahead / self.mean_millis.max(0.001)).clamp(1.0, MAX_LOOK_AHEAD)
    }

    fn is_open(&self, settings: &Settings) -> bool {
        !self.closing && self.load < 1.0 + self.ahead(settings) - 1e-9
    }
}

impl Kind {
    fn offers(&self, class: &Class) -> bool {
        class.capabilities.iter().all(|c| self.capabilities.contains(c))
    }

    /// How many chains of a class one agent can run at once.
    fn slots(&self, class: &Class) -> u64 {
        if !self.offers(class) {
            return 0;
        }
        // Something that needs nothing still needs somebody to run it.
        self.resources.times(&class.resources).min(self.resources.cpus.max(1000) / 10)
    }
}

impl Scheduler {
    /// A scheduler that decides in this way.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes an event in.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Registered { class, count, rank } => {
                let state = self.class(class);
                state.rank = if state.registered == 0 { rank } else { state.rank.max(rank) };
                state.registered += count;
            }
            Event::Waiting { class, count, rank } => {
                let state = self.class(class);
                (state.registered, state.rank) = (count, rank);
            }
            Event::AgentJoined(info) => self.join(info),
            Event::AgentCloses(id) => self.close(&id),
            Event::AgentLeft(id) => self.leave(&id),
            Event::Claimed { agent, class, asked, got, rank } => {
                if let Some(state) = self.classes.get_mut(&class) {
                    // Fewer than asked for means that there are no more.
                    state.registered = if got < asked { 0 } else { state.registered.saturating_sub(got) };
                    state.rank = rank.unwrap_or(state.rank);
                }
                // The claim was counted as assigned when it was decided.
                self.unassign(&agent, &class, asked - got);
            }
            Event::Has { agent, class, count } => {
                let key = class.key();
                self.class(class);
                self.assign(&agent, &key, count);
            }
            Event::Ended { agent, class, millis } => {
                if let Some(millis) = millis {
                    if let Some(agent) = self.agents.get_mut(&agent) {
                        agent.mean_millis += (millis - agent.mean_millis) * LEARNING;
                    }
                    if let Some(class) = self.classes.get_mut(&class) {
                        let mean = class.mean_millis.get_or_insert(millis);
                        *mean += (millis - *mean) * LEARNING;
                    }
                }
                self.unassign(&agent, &class, 1);
            }
        }
    }

    fn class(&mut self, class: Class) -> &mut ClassState {
        let kinds = &self.kinds;
        self.classes.entry(class.key()).or_insert_with(|| ClassState {
            slots: kinds.iter().map(|k| k.slots(&class)).collect(),
            class,
            registered: 0,
            rank: 0,
            mean_millis: None,
            last_served: 0,
            reported: false,
        })
    }

    fn join(&mut self, info: AgentInfo) {
        // Who joins again is still as fast as before.
        let before = self.agents.get(&info.id).map(|a| (a.mean_millis, a.last_assigned));
        let (mean_millis, last_assigned) = before.unwrap_or((EXPECTED_MILLIS, 0));
        self.leave(&info.id);
        let same = |k: &Kind| k.capabilities == info.capabilities && k.resources == info.resources;
        let kind = self.kinds.iter().position(same).unwrap_or_else(|| {
            let (capabilities, resources) = (info.capabilities.clone(), info.resources.clone());
            let kind = Kind { capabilities, resources, open: BTreeSet::new(), members: 0 };
            for class in self.classes.values_mut() {
                class.slots.push(kind.slots(&class.class));
            }
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        self.kinds[kind].members += 1;
        self.kinds[kind].open.insert((last_assigned, info.id.clone()));
        let assigned = BTreeMap::new();
        let closing = false;
        let agent = AgentState { kind, assigned, load: 0.0, mean_millis, last_assigned, info, closing };
        self.agents.insert(agent.info.id.clone(), agent);
        for class in self.classes.values_mut() {
            class.reported = false;
        }
    }

    fn close(&mut self, id: &Name) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.closing = true;
            self.kinds[agent.kind].open.remove(&(agent.last_assigned, id.clone()));
        }
    }

    fn leave(&mut self, id: &Name) {
        if let Some(agent) = self.agents.remove(id) {
            let kind = &mut self.kinds[agent.kind];
            kind.members -= 1;
            kind.open.remove(&(agent.last_assigned, id.clone()));
        }
    }

    fn assign(&mut self, id: &Name, class: &Name, n: u64) {
        let (Some(agent), Some(state)) = (self.agents.get_mut(id), self.classes.get_mut(class)) else {
            return;
        };
        let open = &mut self.kinds[agent.kind].open;
        open.remove(&(agent.last_assigned, id.clone()));
        self.turn += 1;
        agent.last_assigned = self.turn;
        state.last_served = self.turn;
        agent.assigned.entry(class.clone()).or_default().count += n;
        agent.load += n as f64 / state.slots[agent.kind].max(1) as f64;
        if agent.is_open(&self.settings) {
            open.insert((agent.last_assigned, id.clone()));
        }
    }

    fn unassign(&mut self, id: &Name, class: &Name, n: u64) {
        let (Some(agent), Some(state)) = (self.agents.get_mut(id), self.classes.get(class)) else {
            return;
        };
        let Some(assigned) = agent.assigned.get_mut(class) else { return };
        let n = n.min(assigned.count);
        assigned.count -= n;
        assigned.recalled = assigned.recalled.min(assigned.count);
        agent.load -= n as f64 / state.slots[agent.kind].max(1) as f64;
        if agent.assigned.values().all(|a| a.count == 0) {
            // Fractions add up to nothing only nearly.
            agent.load = 0.0;
        }
        if agent.is_open(&self.settings) {
            self.kinds[agent.kind].open.insert((agent.last_assigned, id.clone()));
        }
    }

    /// How many chains wait for an agent.
    pub fn registered(&self) -> u64 {
        self.classes.values().map(|c| c.registered).sum()
    }

    /// Whether some agent could start something at once, had it anything to start.
    pub fn has_idle(&self) -> bool {
        let mut open = self.kinds.iter().flat_map(|k| &k.open);
        open.any(|(_, id)| self.agents.get(id).is_some_and(|a| a.load < 1.0 - 1e-9))
    }

    /// The classes that wait, how many chains of each, and the highest rank among them.
    pub fn waiting(&self) -> impl Iterator<Item = (&Name, u64, i64)> {
        self.classes.iter().filter(|(_, c)| c.registered > 0).map(|(k, c)| (k, c.registered, c.rank))
    }

    /// Forgets how many chains wait, before the truth about it is told.
    pub fn forget_waiting(&mut self) {
        for class in self.classes.values_mut() {
            class.registered = 0;
        }
    }

    /// What to do now. Each claim must be answered with [`Event::Claimed`].
    pub fn decide(&mut self, now: i64) -> Vec<Command> {
        let mut commands = Vec::new();
        if self.settings.placed.is_some() {
            self.complain(&mut commands);
            return commands;
        }
        // What is claimed in this step, by class: `registered` is told with the answer.
        let mut claimed: BTreeMap<Name, u64> = BTreeMap::new();
        // Who can do little chooses first; what remains is for those who can do much.
        let mut kinds: Vec<(usize, usize)> = (0..self.kinds.len())
            .filter(|k| !self.kinds[*k].open.is_empty())
            .map(|k| (self.classes.values().filter(|c| c.slots[k] > 0).count(), k))
            .collect();
        kinds.sort_unstable();
        for (_, kind) in kinds {
            let mut skipped = Vec::new();
            while let Some((turn, id)) = self.kinds[kind].open.pop_first() {
                match self.choose(kind, &id, now, &claimed) {
                    Some((class, limit)) => {
                        // `assign` puts the agent back if it still has room.
                        self.kinds[kind].open.insert((turn, id.clone()));
                        *claimed.entry(class.clone()).or_insert(0) += limit;
                        self.assign(&id, &class, limit);
                        commands.push(Command::Claim { agent: id, class, limit: limit as usize });
                    }
                    None => {
                        skipped.push((turn, id));
                        if !self.could_choose(kind, &claimed) {
                            break;
                        }
                    }
                }
            }
            self.kinds[kind].open.extend(skipped);
        }
        self.recall(&claimed, &mut commands);
        self.complain(&mut commands);
        commands
    }

    /// Whether there is anything for agents of a kind.
    fn could_choose(&self, kind: usize, claimed: &BTreeMap<Name, u64>) -> bool {
        self.classes.iter().any(|(key, c)| c.slots[kind] > 0 && c.left(key, claimed) > 0)
    }

    /// The class that an agent takes next, and how many chains of it.
    fn choose(&self, kind: usize, id: &Name, now: i64, claimed: &BTreeMap<Name, u64>) -> Option<(Name, u64)> {
        let agent = self.agents.get(id)?;
        let room = 1.0 + agent.ahead(&self.settings) - agent.load;
        let able = self.classes.iter().filter_map(|(key, c)| {
            let left = c.left(key, claimed);
            let fits = (room * c.slots[kind] as f64 + 1e-9) as u64;
            (left > 0 && c.slots[kind] > 0).then_some((key, c, left.min(fits), left))
        });
        let aging = self.settings.aging;
        let score = |c: &ClassState, left: u64| -> f64 {
            let mean = c.mean_millis.unwrap_or(EXPECTED_MILLIS);
            match self.settings.policy {
                Policy::Steep => c.class.capabilities.len() as f64,
                Policy::MinMin => -mean,
                Policy::MaxMin => mean,
                Policy::Catena | Policy::Adage => {
                    let able = self.kinds.iter().zip(&c.slots).map(|(k, slots)| k.members * slots);
                    left as f64 * mean / able.sum::<u64>().max(1) as f64
                }
            }
        };
        let best = able.max_by(|(ka, a, na, la), (kb, b, nb, lb)| {
            let level = a.level(now, aging).cmp(&b.level(now, aging)).then((*na > 0).cmp(&(*nb > 0)));
            // The paper's agents prefer the first of equal sets; others take turns.
            let fair = if self.settings.policy == Policy::Steep {
                kb.cmp(ka)
            } else {
                b.last_served.cmp(&a.last_served).then_with(|| kb.cmp(ka))
            };
            level.then_with(|| score(a, *la).total_cmp(&score(b, *lb))).then(fair)
        });
        let (key, class, n, left) = best?;
        if n == 0 {
            // It needs more than is free. To fill the gap with something less urgent would be to wait for ever.
            return None;
        }
        if self.settings.policy == Policy::Steep {
            // One agent per set and step. Who would like the same set has to wait for the next step.
            return (!claimed.contains_key(key)).then(|| (key.clone(), 1));
        }
        // What an agent can start at once it gets; of what it would only queue, no more than its share.
        let able = self.kinds.iter().zip(&class.slots).filter(|(_, slots)| **slots > 0);
        let others: u64 = able.map(|(k, _)| k.open.len() as u64).sum();
        let share = left.div_ceil(others + 1);
        let startable = ((1.0 - agent.load).max(0.0) * class.slots[kind] as f64 + 1e-9) as u64;
        Some((key.clone(), n.min(share.max(startable))))
    }

    /// Asks for chains back that wait behind others while an agent that could run them is idle.
    fn recall(&mut self, claimed: &BTreeMap<Name, u64>, commands: &mut Vec<Command>) {
        if self.settings.policy == Policy::Steep || self.settings.look_ahead.is_zero() {
            return;
        }
        for kind in 0..self.kinds.len() {
            if self.could_choose(kind, claimed) {
                continue;
            }
            let idle = self.kinds[kind].open.iter().filter_map(|(_, id)| self.agents.get(id));
            let mut wanted: u64 = idle.filter(|a| a.load < 1e-9).count() as u64;
            if wanted == 0 {
                continue;
            }
            for agent in self.agents.values_mut() {
                if agent.load <= 1.0 + 1e-9 || agent.mean_millis < RECALL_MILLIS {
                    continue;
                }
                for (key, assigned) in &mut agent.assigned {
                    let Some(class) = self.classes.get(key).filter(|c| c.slots[kind] > 0) else { continue };
                    let waiting = assigned.count.saturating_sub(class.slots[agent.kind]);
                    let limit = waiting.saturating_sub(assigned.recalled).min(wanted);
                    if limit > 0 {
                        assigned.recalled += limit;
                        wanted -= limit;
                        let agent = agent.info.id.clone();
                        commands.push(Command::Recall { agent, class: key.clone(), limit: limit as usize });
                    }
                }
                if wanted == 0 {
                    break;
                }
            }
        }
    }

    /// Names the classes that nobody can ever run, once.
    fn complain(&mut self, commands: &mut Vec<Command>) {
        let kinds = &self.kinds;
        let possible =
            |c: &ClassState| kinds.iter().zip(&c.slots).any(|(k, slots)| k.members > 0 && *slots > 0);
        let hopeless: Vec<Name> = self
            .classes
            .iter()
            .filter(|(_, c)| c.registered > 0 && !c.reported && !possible(c))
            .map(|(key, _)| key.clone())
            .collect();
        for key in hopeless {
            let Some(state) = self.classes.get_mut(&key) else { continue };
            state.reported = true;
            let class = state.class.clone();
            commands.push(Command::Unsatisfiable { class: key, reason: self.why_not(&class) });
        }
    }

    /// Why no agent can run a class, naming the one that comes nearest.
    pub fn why_not(&self, class: &Class) -> String {
        let missing = |k: &Kind| -> Vec<String> {
            let capabilities = class.capabilities.iter().filter(|c| !k.capabilities.contains(c));
            capabilities.map(|c| format!("`{c}`")).collect()
        };
        let nearest = self.agents.values().min_by_key(|a| missing(&self.kinds[a.kind]).len());
        let Some(nearest) = nearest else {
            return format!("there is no agent to run chains that require {}", class.show_capabilities());
        };
        let missing = missing(&self.kinds[nearest.kind]);
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
mod tests;
