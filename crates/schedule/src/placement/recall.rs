//! Tasks that wait at an agent while another one has nothing to do.
//!
//! What was given in advance was given by what was expected then. If others are done sooner than that, or somebody new is
//! there, it may end earlier elsewhere. ADAGE has agents give work away in doubling intervals; here idleness is what
//! starts it, and nothing is moved unless that is worth it.

use super::agent::{Agent, Given};
use super::{Costs, Placement};
use crate::stages::Place;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What is moved must end earlier by a part of the time that is left: one in so many,
const PART: u64 = 8;
/// and by so many nanoseconds: asking takes a way there and one back.
const LEAST: u64 = 10_000_000;
/// Nothing is asked back more often than this.
const TIMES: u8 = 3;
/// No more than so many tasks are considered at a time, those first that would end last.
const MOST: usize = 64;

/// An agent with nothing to do.
struct Idle {
    agent: u32,
    /// How many small tasks it could execute at once.
    room: usize,
    link: u64,
}

impl Placement {
    /// Tasks that should be asked back from agents at which they wait, because another agent that could execute them got
    /// nothing when it was [decided](Self::decide) and would be done with them earlier. Each is named once until it is
    /// placed again. An agent that gives a task back is done with it ([`ended`](Self::ended)), and the task is ready again
    /// ([`add`](Self::add)), before the next decision.
    pub fn recall(&mut self, now: u64, costs: &dyn Costs) -> Vec<(u32, u32)> {
        if self.yielding.is_empty() {
            return Vec::new();
        }
        let mut idle = self.idle();
        if idle.is_empty() {
            return Vec::new();
        }
        self.catch_up(now);
        let limit = self.in_time(now, costs);
        let mut waiting: Vec<(u64, u32, u32)> = Vec::new();
        // What only waits for its data waits where it should.
        for (number, agent) in (0..).zip(&self.agents) {
            let may_go = |g: &&Given| g.asked_for.is_none() && g.returns < TIMES && !g.is_settled;
            let late = agent.waiting().filter(may_go).filter(|g| g.end + g.after > limit);
            waiting.extend(late.map(|g| (g.end + g.after, g.task, number)));
        }
        waiting.sort_unstable_by_key(|(over, task, _)| (Reverse(*over), *task));
        let mut recalled = Vec::new();
        for (_, task, from) in waiting.into_iter().take(MOST) {
            if let Some(place) = self.better(task, from, &idle, now, costs) {
                let to = &mut idle[place];
                self.agents[from as usize].ask(task, to.agent);
                recalled.push((task, from));
                to.room = to.room.saturating_sub(self.width(task, to.agent, costs));
                if to.room == 0 {
                    idle.swap_remove(place);
                }
            }
        }
        recalled
    }

    /// Agents that have a slot, and not for something that was asked back for them already.
    fn idle(&self) -> Vec<Idle> {
        let mut expected: HashMap<u32, usize> = HashMap::new();
        for agent in self.agents.iter().flat_map(Agent::given).filter_map(|g| g.asked_for) {
            *expected.entry(agent).or_default() += 1;
        }
        let mut idle = Vec::new();
        for (agent, state) in (0..).zip(&self.agents).filter(|(_, a)| a.is_idle()) {
            let room = state.slots - state.busy();
            let room = room.saturating_sub(expected.get(&agent).copied().unwrap_or(0));
            if room > 0 {
                idle.push(Idle { agent, room, link: state.link });
            }
        }
        idle
    }

    /// Until when everything may be over that follows from what waits, so that nothing is later than it has to be. Who
    /// is thrifty lets tasks wait for their data until then.
    fn in_time(&self, now: u64, costs: &dyn Costs) -> u64 {
        if self.place != Place::EarliestFinish {
            return 0;
        }
        let settled = self.agents.iter().flat_map(Agent::settled);
        let follows = settled.map(|g| g.end + g.after).max().unwrap_or(now);
        let mut lanes = Vec::new();
        for agent in self.agents.iter().filter(|a| a.is_up) {
            agent.settled_lanes(now, &mut lanes);
        }
        let busy: u64 = lanes.iter().map(|free| free - now).sum();
        let waiting: u64 =
            self.agents.iter().flat_map(Agent::waiting).map(|g| g.compute * g.width as u64).sum();
        follows.max(now + (busy + waiting + costs.unstarted()) / self.slots.max(1))
    }

    /// The idle agent that would be done with a task first, if that is worth it.
    fn better(&self, task: u32, from: u32, idle: &[Idle], now: u64, costs: &dyn Costs) -> Option<usize> {
        let given = self.agents[from as usize].given().iter().find(|g| g.task == task)?;
        let inputs = costs.inputs(task);
        let bytes: u64 = inputs.iter().map(|file| costs.size(*file)).sum();
        let mut at_hand: HashMap<u32, u64> = HashMap::new();
        for file in inputs {
            for holder in self.files.holders(*file) {
                *at_hand.entry(holder.agent).or_default() += costs.size(*file);
            }
        }
        let executors = self.executors(task);
        let end = |(place, other): (usize, &Idle)| {
            let fits = || match self.agents[other.agent as usize].ahead {
                0 => costs.fits(task, other.agent, &[]),
                _ => self.width(task, other.agent, costs) <= other.room,
            };
            let can = !executors.contains(&other.agent) && costs.can(task, other.agent) && fits();
            let missing = bytes.saturating_sub(at_hand.get(&other.agent).copied().unwrap_or(0));
            let transfer = costs.transfer(missing);
            let link = if transfer > 0 && costs.is_shared() { other.link.max(now) } else { now };
            can.then(|| (link + transfer + costs.compute(task, other.agent), other.agent, place))
        };
        let (end, _, place) = idle.iter().enumerate().filter_map(end).min()?;
        let gain = given.end.saturating_sub(end);
        let is_worth = gain >= LEAST && gain >= given.end.saturating_sub(now) / PART;
        // A thrifty one would let it wait here again if it ended here as early as where none of its data are.
        let anywhere = now + costs.transfer(bytes) + given.compute;
        let stays = self.place == Place::EarliestFinish && given.end <= anywhere;
        (is_worth && !stays).then_some(place)
    }
}
