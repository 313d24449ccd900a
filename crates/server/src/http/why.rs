//! Why chains wait, in words.

use super::{Front, Problem, Shared};
use crate::view::WaitingView;
use axum::Json;
use axum::extract::{Path, State};
use catena_fleet::Fleet;
use catena_model::Name;
use catena_model::chain::{ChainState, RunId, TaskFailure};
use catena_schedule::{AgentInfo, Class, Event, Scheduler};
use catena_store::{AgentRecord, ChainRecord, Machine, MachineState, Run, RunState};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// So many of the chains that come before another are counted.
const MOST_COUNTED: usize = 10_000;
/// So many agents are named.
const NAMED: usize = 5;

/// Why a chain is as it is.
#[derive(Serialize, ToSchema)]
pub(super) struct Why {
    /// In words, the most important first.
    reasons: Vec<String>,
}

/// Who could run what.
struct Offers {
    agents: Vec<AgentRecord>,
    scheduler: Scheduler,
    fleet: Fleet,
    machines: Vec<Machine>,
}

impl Offers {
    fn able(&self, class: &Class) -> Vec<&AgentRecord> {
        let able = |a: &&AgentRecord| {
            class.capabilities.iter().all(|c| a.capabilities.contains(c))
                && a.resources.fits(&class.resources)
        };
        self.agents.iter().filter(able).collect()
    }

    /// Why chains of a class wait.
    fn reason(&self, class: &Class) -> String {
        let able = self.able(class).len();
        if able > 0 {
            format!("{able} agents can run them and have as much as they can take")
        } else if let Some(setup) = self.fleet.setups().iter().find(|s| s.slots(class) > 0) {
            let of = |m: &&Machine| m.setup == setup.id;
            let last = self.machines.iter().filter(of).max_by_key(|m| m.changed);
            match last.filter(|m| m.state == MachineState::Failed).and_then(|m| m.reason.as_ref()) {
                Some(reason) => format!(
                    "no agent can run them yet, and machines of setup {} cannot be made: {reason}",
                    setup.id
                ),
                None => "no agent can run them yet; machines that can are being made".to_owned(),
            }
        } else if self.fleet.setups().is_empty() {
            self.scheduler.why_not(class)
        } else {
            self.fleet.why_not(class)
        }
    }
}

impl Front {
    async fn offers(&self) -> Result<Offers, Problem> {
        let agents = self.member.store.agents().await?;
        let mut scheduler = Scheduler::default();
        for a in &agents {
            scheduler.handle(Event::AgentJoined(AgentInfo {
                id: a.id.clone(),
                capabilities: a.capabilities.clone(),
                resources: a.resources.clone(),
            }));
        }
        let machines = self.member.store.machines().await?;
        let fleet = Fleet::new(self.setup.setups.clone(), Vec::new(), "");
        Ok(Offers { agents, scheduler, fleet, machines })
    }

    /// Why chains wait, of one run or of all.
    pub(super) async fn why_waiting(&self, run: Option<RunId>) -> Result<Vec<WaitingView>, Problem> {
        let store = &self.member.store;
        let mut waiting: BTreeMap<Name, u64> = BTreeMap::new();
        if let Some(run) = run {
            let counts = store.class_counts(run).await?.into_iter();
            waiting.extend(counts.filter(|c| c.state == ChainState::Registered).map(|c| (c.class, c.count)));
        } else {
            waiting.extend(store.waiting(self.member.now()).await?.into_iter().map(|w| (w.class, w.count)));
        }
        let offers = self.offers().await?;
        let explain = |(key, count): (Name, u64)| {
            let class = Class::from_key(&key)?;
            let reason = offers.reason(&class);
            Some(WaitingView { capabilities: class.capabilities, resources: class.resources, count, reason })
        };
        Ok(waiting.into_iter().filter_map(explain).collect())
    }

    async fn why(&self, run: &Run, record: &ChainRecord) -> Result<Vec<String>, Problem> {
        let mut reasons = Vec::new();
        match record.state {
            ChainState::Succeeded => reasons.push(after(record, "It has succeeded")),
            ChainState::Failed => {
                reasons.push(after(record, "It has failed and is not tried again"));
                reasons.extend(self.last_failure(record).await?);
            }
            ChainState::Cancelled => reasons.push("It was stopped, or a time limit ended it.".to_owned()),
            ChainState::Paused => {
                let seconds = (record.not_before - self.member.now()).max(0) / 1000;
                reasons.push(format!(
                    "Its last attempt failed; the next one may begin in {seconds} s, as its retries say."
                ));
                reasons.extend(self.last_failure(record).await?);
            }
            ChainState::Running => reasons.extend(self.why_running(record).await?),
            ChainState::Registered => reasons.extend(self.why_registered(run, record).await?),
        }
        if record.losses > 0 {
            let times =
                if record.losses == 1 { "once".to_owned() } else { format!("{} times", record.losses) };
            reasons.push(format!("The agent that had it was lost {times}."));
        }
        Ok(reasons)
    }

    async fn last_failure(&self, record: &ChainRecord) -> Result<Option<String>, Problem> {
        let failed = self.member.store.failed_attempts(record.key.run).await?;
        let last = failed.iter().rfind(|f| f.key == record.key && !f.error.is_empty());
        let failure: Option<TaskFailure> = last.and_then(|f| serde_json::from_str(&f.error).ok());
        Ok(failure.map(|f| format!("{}: {}", f.task, f.message)))
    }

    async fn why_running(&self, record: &ChainRecord) -> Result<Vec<String>, Problem> {
        let Some(agent) = &record.agent else { return Ok(vec!["Several agents execute it.".to_owned()]) };
        let seconds = record.started.map_or(0, |s| (self.member.now() - s).max(0) / 1000);
        let mut said = vec![format!("Agent {agent} has had it for {seconds} s.")];
        let agents = self.member.store.agents().await?;
        let Some(found) = agents.iter().find(|a| a.id == *agent) else {
            said.push(format!("Agent {agent} is not there any more; it will run elsewhere."));
            return Ok(said);
        };
        let needs = |c: &ChainRecord| Class::from_key(&c.class).map_or(1000, |c| c.resources.cpus);
        let chains = self.member.store.chains_of(std::slice::from_ref(agent)).await?;
        let earlier = chains.iter().filter(|c| c.key != record.key && c.started <= record.started);
        let busy: u64 = earlier.clone().map(needs).sum();
        if busy + needs(record) > found.resources.cpus {
            let count = earlier.count();
            said.push(format!(
                "It has {count} chains that it was given earlier and {} processors, so this one may still wait for its turn there.",
                found.resources.cpus / 1000
            ));
        }
        Ok(said)
    }

    async fn why_registered(&self, run: &Run, record: &ChainRecord) -> Result<Vec<String>, Problem> {
        if run.cancel_requested {
            return Ok(vec!["Its run is being cancelled.".to_owned()]);
        }
        if run.held {
            return Ok(vec!["Its run is paused; resume it to let the chain run.".to_owned()]);
        }
        if run.state == RunState::Interrupted {
            return Ok(vec!["Its run was interrupted and has not gone on yet.".to_owned()]);
        }
        let Some(class) = Class::from_key(&record.class) else { return Ok(Vec::new()) };
        let offers = self.offers().await?;
        let able = offers.able(&class);
        if able.is_empty() {
            let reason = offers.reason(&class);
            return Ok(vec![format!("It requires {}: {reason}.", class.show_capabilities())]);
        }
        let names: Vec<&str> = able.iter().take(NAMED).map(|a| a.id.as_str()).collect();
        let more =
            if able.len() > NAMED { format!(" and {} more", able.len() - NAMED) } else { String::new() };
        let mut said =
            vec![format!("{}{more} can execute it and have as much as they can take.", names.join(", "))];
        let registered = self.member.store.registered(MOST_COUNTED).await?;
        let ahead = registered.iter().take_while(|c| c.key != record.key).count();
        said.push(match ahead {
            0 => "It is the next one.".to_owned(),
            n if n == registered.len() => format!("More than {n} chains come before it."),
            1 => "One chain comes before it.".to_owned(),
            n => format!("{n} chains come before it, by priority and by how long they have waited."),
        });
        Ok(said)
    }
}

fn after(record: &ChainRecord, what: &str) -> String {
    match record.attempt {
        0 | 1 => format!("{what}."),
        n => format!("{what}, at attempt {n}."),
    }
}

#[utoipa::path(get, path = "/runs/{id}/chains/{chain}/why", params(("id" = i64, Path), ("chain" = u64, Path)),
    responses((status = 200, body = Why), (status = 404, body = Problem)))]
/// Says why a chain waits, or how it came to where it is
pub(super) async fn why(
    State(front): Shared,
    Path((id, seq)): Path<(i64, u64)>,
) -> Result<Json<Why>, Problem> {
    let run = front.find(id).await?;
    let record = front.chain(id, seq).await?;
    Ok(Json(Why { reasons: front.why(&run, &record).await? }))
}

#[utoipa::path(get, path = "/waiting", responses((status = 200, body = Vec<WaitingView>)))]
/// Says what waits, and why
pub(super) async fn waiting(State(front): Shared) -> Result<Json<Vec<WaitingView>>, Problem> {
    Ok(Json(front.why_waiting(None).await?))
}
