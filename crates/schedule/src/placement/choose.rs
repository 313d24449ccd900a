//! Who could execute a task, and when it would end there.

use super::decide::Step;
use super::entry::{Entry, Near};
use super::{Costs, Placement};
use crate::stages::Place;

/// Of agents that have nothing of a task's data and are alike so many are considered,
const FEW: usize = 3;
/// and so many of those at which lower levels wait.
const MANY: usize = 16;
/// Of those who could send a file so many are considered.
const SOURCES: usize = 8;
/// Agents get tasks so long before they have a slot, besides what it takes to decide and to bring the data.
const SOON: u64 = 500_000_000;
/// What is less than this part of the time that a task computes is not worth hiding: the later a task is given away, the
/// more is known of where its data are and of who has room.
const PART: u64 = 32;

/// How long before it can start an agent should have a task that computes for so long and whose data take so long: some
/// take longer than expected.
pub(super) fn lead(compute: u64, transfer: u64, costs: &dyn Costs) -> u64 {
    let hidden = transfer.saturating_add(costs.decision());
    if hidden.saturating_mul(PART) <= compute { 0 } else { hidden.saturating_mul(2).saturating_add(SOON) }
}

impl Placement {
    pub(super) fn executors(&self, task: u32) -> &[u32] {
        self.executors.get(&task).map_or(&[], Vec::as_slice)
    }

    /// How many slots of an agent a task takes.
    pub(super) fn width(&self, task: u32, agent: u32, costs: &dyn Costs) -> usize {
        let state = &self.agents[agent as usize];
        if state.ahead == 0 { 1 } else { costs.width(task, agent).clamp(1, state.slots) }
    }

    pub(super) fn has_room(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> bool {
        let state = &self.agents[agent as usize];
        // Who executes a task already is no help.
        if self.executors(task).contains(&agent) {
            return false;
        }
        if state.ahead > 0 {
            return state.has_room(step.level) && costs.can(task, agent);
        }
        let others = step.on.get(&agent).map_or(&[][..], Vec::as_slice);
        state.is_open() && costs.fits(task, agent, others)
    }

    /// Whether an agent should be given a task now: it has room, and nothing is won by giving it later. A level that goes
    /// before others there must be there before their turn comes.
    pub(super) fn can_have(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> bool {
        let state = &self.agents[agent as usize];
        let is_time = || {
            state.ahead == 0
                || state.is_passed_by(step.level)
                || self.time_to_give(task, agent, step, costs) <= step.now
        };
        state.wanted.is_none() && self.has_room(task, agent, step, costs) && is_time()
    }

    /// When an agent should be given a task so that it does not wait for its data.
    pub(super) fn time_to_give(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> u64 {
        let Some(entry) = self.entry(task) else { return step.now };
        let slot = self.agents[agent as usize].slot(step.now, self.width(task, agent, costs), entry.level());
        let transfer = costs.transfer(entry.missing(entry.near(agent)));
        slot.saturating_sub(lead(entry.length - entry.transfer, transfer, costs))
    }

    /// When a task would end on an agent.
    pub(super) fn end(&self, task: u32, agent: u32, step: &Step, costs: &dyn Costs) -> u64 {
        let Some(entry) = self.entry(task) else { return step.now };
        let sent = self.sent_from(entry, step, costs);
        self.begins(task, (entry, sent), entry.near(agent), step, costs) + costs.compute(task, agent)
    }

    /// When an agent could compute a task of whose data it has something and the rest could be sent from then on.
    fn begins(
        &self,
        task: u32,
        (entry, sent): (&Entry, u64),
        near: Near,
        step: &Step,
        costs: &dyn Costs,
    ) -> u64 {
        let state = &self.agents[near.agent as usize];
        let transfer = costs.transfer(entry.missing(near));
        let slot = state.slot(step.now, self.width(task, near.agent, costs), entry.level());
        if state.ahead == 0 {
            return slot + transfer;
        }
        slot.max(self.arrival(near, transfer, (entry, sent), step, costs))
    }

    /// When data would be there that take so long to bring.
    pub(super) fn arrival(
        &self,
        near: Near,
        transfer: u64,
        (entry, sent): (&Entry, u64),
        step: &Step,
        costs: &dyn Costs,
    ) -> u64 {
        let mut begins = step.now;
        if transfer > 0 && costs.is_shared() {
            begins = begins.max(self.agents[near.agent as usize].link);
            if near.bytes <= entry.bytes / 2 {
                begins = begins.max(sent);
            }
        }
        (begins + transfer).max(near.since)
    }

    /// From when on a task's data could be sent by those who have them.
    pub(super) fn sent_from(&self, entry: &Entry, step: &Step, costs: &dyn Costs) -> u64 {
        if self.hoarders == 0 || !costs.is_shared() {
            return 0;
        }
        let out = |agent: u32| self.agents[agent as usize].out;
        let first = |file: u32| self.sources(file, step.now).map(out).min();
        entry.files().filter_map(first).max().unwrap_or(0)
    }

    /// Agents that could send a file. Where none could, it comes from where it came from before.
    fn sources(&self, file: u32, now: u64) -> impl Iterator<Item = u32> {
        self.files.holders(file).iter().take(SOURCES).filter(move |h| h.since <= now).map(|h| h.agent)
    }

    /// Agents send what another one does not have yet.
    pub(super) fn send(&mut self, entry: &Entry, to: u32, step: &Step, costs: &dyn Costs) {
        for file in entry.files().filter(|file| !self.files.has(to, *file)) {
            let from = self.sources(file, step.now).min_by_key(|agent| self.agents[*agent as usize].out);
            if let Some(from) = from {
                let state = &mut self.agents[from as usize];
                state.out = state.out.max(step.now) + costs.transfer(costs.size(file));
            }
        }
    }

    /// Agents that may have nothing of a task's data. Those of a kind are alike but for when they have room.
    fn far(&self, task: u32, step: &Step, costs: &dyn Costs) -> Vec<u32> {
        let is_able = |agent: &u32| costs.can(task, *agent) && self.has_room(task, *agent, step, costs);
        let mut far = Vec::new();
        for agents in self.open.values() {
            // One of those who have room at the same time, and a few who have it later but less to bring before.
            let mut from = 0;
            for _ in 0..FEW {
                if from > step.horizon {
                    break;
                }
                let later = agents.range((from, 0, 0)..=(step.horizon, u64::MAX, u32::MAX));
                let Some((when, agent)) = later.map(|(w, _, a)| (*w, *a)).find(|(_, a)| is_able(a)) else {
                    break;
                };
                far.push(agent);
                from = when + 1;
            }
        }
        if self.hoarders > 0
            && let Some(entry) = self.entry(task)
        {
            let yielding = self.yielding.range(..(entry.level(), 0, 0)).map(|(_, _, agent)| *agent);
            far.extend(yielding.take(MANY).filter(is_able));
        }
        far
    }

    /// Where a task should go, and when it would end there.
    pub(super) fn best(&self, task: u32, step: &Step, costs: &dyn Costs) -> Option<(u32, u64)> {
        let entry = self.entry(task)?;
        let executors = self.executors(task);
        let is_able = |near: &Near| {
            let is_up = self.agents[near.agent as usize].is_up;
            is_up && !executors.contains(&near.agent) && costs.can(task, near.agent)
        };
        let far = self.far(task, step, costs).into_iter();
        if self.place == Place::LongestIdle {
            let order = |agent: &u32| {
                let state = &self.agents[*agent as usize];
                (if state.is_idle() { 0 } else { state.when() }, state.idle_since, *agent)
            };
            return far.min_by_key(order).map(|agent| (agent, self.end(task, agent, step, costs)));
        }
        let near = entry.at_hand().iter().copied().filter(is_able);
        let all = near.chain(far.map(|agent| entry.near(agent)));
        let sent = self.sent_from(entry, step, costs);
        // Agents of a kind are equally fast.
        let mut known = (usize::MAX, 0);
        let mut end = |near: Near| {
            let kind = self.agents[near.agent as usize].kind;
            if known.0 != kind {
                known = (kind, costs.compute(task, near.agent));
            }
            self.begins(task, (entry, sent), near, step, costs) + known.1
        };
        if self.place == Place::Data {
            let open = all.filter(|near| self.has_room(task, near.agent, step, costs));
            let best = open.min_by_key(|near| (self.trouble(entry, *near, step, costs), near.agent))?;
            return Some((best.agent, end(best)));
        }
        let best = all.map(|near| (end(near), entry.missing(near), near.agent)).min();
        best.map(|(end, _, agent)| (agent, end))
    }

    /// What ADAGE's best node has least of: the time to bring what is missing, and that of what waits there. Where nothing
    /// waits, bytes decide.
    fn trouble(&self, entry: &Entry, near: Near, step: &Step, costs: &dyn Costs) -> u64 {
        let missing = entry.missing(near);
        if self.hoarders == 0 {
            return missing;
        }
        let slot = self.agents[near.agent as usize].slot(step.now, 1, entry.level());
        costs.transfer(missing) + (slot - step.now)
    }
}
