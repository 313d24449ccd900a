//! The scheduler of a cluster: gives the agents it looks after chains of any run, and takes results in.
//!
//! A turn takes in everything that has arrived, decides, and writes ends and claims in one transaction. Only
//! what was claimed is sent. If the store fails in between, nobody knows what was written; then everything is
//! read again, and agents are asked what they have.

mod placed;

use crate::event::RunEvent;
use crate::member::Member;
use crate::places::{Places, Storage};
use crate::placing::Placing;
use crate::settle::Ended;
use catena_bus::{AgentState, Assignment, Message, Registered, Subscription, subject};
use catena_model::Name;
use catena_model::chain::{
    AgentEvent, Attempt, ChainKey, ChainState, Outcome, ProcessChain, Produced, RunId, TaskFailure,
};
use catena_schedule::{AgentInfo, Class, Command, Dispatch, Event, Live, Settings};
use catena_store::{AgentRecord, Batch, ChainRecord, Claim, Claimed, Gift, HoldingChange, Pick, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A chain that has lost so many agents is not given to another one.
const MAX_LOSSES: u32 = 4;
/// How often the fleet is told what is missing.
const TELL_FLEET: Duration = Duration::from_millis(250);
/// How long messages are gathered while every agent is busy.
const GATHER: Duration = Duration::from_millis(8);
/// How often it is looked up whether a run is over for which agents keep files.
const LOOK_AT_RUNS: Duration = Duration::from_secs(2);
/// How many messages are taken in at a time.
const MESSAGES: usize = 4096;

/// Gives agents work.
pub(crate) struct SchedulerRole {
    member: Arc<Member>,
    places: Arc<Places>,
    dispatch: Dispatch,
    /// What is said to all schedulers, and to this one.
    inboxes: [Subscription; 2],
    /// What is known may not be what is true.
    stale: bool,
    /// Agents that have got no answer yet.
    greeted: BTreeSet<Name>,
    echo: Echo,
    told_fleet: Option<Instant>,
    /// Which agent gets which chain, where that matters.
    placing: Option<Placing>,
    /// Runs for which agents keep files, and whether they are over, as it was when that was last looked up.
    runs: HashMap<RunId, (bool, Instant)>,
}

/// Whether messages arrive, found out by sending some to oneself.
struct Echo {
    number: u64,
    heard: i64,
    /// Messages arrive since then.
    since: i64,
}

/// What a turn leads to once it is written.
#[derive(Default)]
struct Turn {
    batch: Batch,
    known: BTreeMap<Name, Vec<Attempt>>,
    ended: BTreeSet<RunId>,
    events: Vec<RunEvent>,
    hellos: Vec<AgentState>,
    leaving: Vec<(Name, u64)>,
    messages: Vec<(Name, Message)>,
    resend: BTreeMap<Name, Vec<Assignment>>,
    /// What agents hold now or not any more; all that they hold, if they begin to say so anew.
    holdings: Vec<(HoldingChange, bool)>,
    /// Runs for which agents keep files.
    keeps: Vec<(Name, Vec<RunId>)>,
    /// What chains have written, and who has it.
    written: Vec<(RunId, Name, Produced)>,
    gifts: Vec<Gift>,
}

impl SchedulerRole {
    pub(crate) async fn new(
        member: Arc<Member>,
        places: Arc<Places>,
        settings: Settings,
        copies: usize,
    ) -> Self {
        let inboxes = [
            member.bus.subscribe(subject::SCHEDULERS).await,
            member.bus.subscribe(&subject::scheduler(&member.id)).await,
        ];
        // An agent says what it has once a beat, and what it does not have then may be on its way for a moment.
        let patience = (member.beat().as_millis() as i64).max(1000);
        let now = member.now();
        let placing = settings.placed.map(|stages| {
            let object = places.mode() == Storage::Object;
            Placing::new(member.store.clone(), stages, &settings, copies, object)
        });
        Self {
            dispatch: Dispatch::new(settings, patience),
            placing,
            runs: HashMap::new(),
            member,
            places,
            inboxes,
            stale: true,
            greeted: BTreeSet::new(),
            echo: Echo { number: 0, heard: now, since: now },
            told_fleet: None,
        }
    }

    /// Schedules until it is time to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
        let mut look = tokio::time::interval(self.member.look);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut beat = tokio::time::interval(self.member.beat());
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Pauses of chains end by the clock.
        let mut wake = tokio::time::interval(Duration::from_secs(1).min(self.member.look));
        wake.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut all, mut own) = (Vec::new(), Vec::new());
        loop {
            let result = if std::mem::take(&mut self.stale) { self.look(true).await } else { Ok(()) };
            let result = match result {
                Ok(()) => self.take_in(all.drain(..).chain(own.drain(..)).collect()).await,
                failed => failed,
            };
            if let Err(e) = result {
                self.stale = true;
                if !self.member.endure(e, &mut stop).await? {
                    return Ok(());
                }
                continue;
            }
            let busy = !self.dispatch.scheduler().has_idle();
            let next = self.placing.as_mut().and_then(Placing::until_next);
            let [to_all, to_me] = &mut self.inboxes;
            let result = tokio::select! {
                n = to_all.receive(&mut all, MESSAGES) => if n == 0 { return Ok(()) } else { Ok(()) },
                n = to_me.receive(&mut own, MESSAGES) => if n == 0 { return Ok(()) } else { Ok(()) },
                _ = look.tick() => self.look(false).await,
                _ = beat.tick() => self.beat().await,
                _ = wake.tick() => self.count_waiting().await,
                () = tokio::time::sleep(next.unwrap_or(Duration::MAX)), if next.is_some() => Ok(()),
                _ = stop.changed() => return Ok(()),
            };
            if let Err(e) = result {
                self.stale = true;
                if !self.member.endure(e, &mut stop).await? {
                    return Ok(());
                }
            } else if busy && !(all.is_empty() && own.is_empty()) {
                // Every agent has enough to do: many reports cost little more than one.
                tokio::time::sleep(GATHER).await;
                self.inboxes[0].try_receive(&mut all, MESSAGES);
                self.inboxes[1].try_receive(&mut own, MESSAGES);
            }
        }
    }

    // ----- the store -------------------------------------------------------------------------

    /// Reads everything from the store. After a failure agents are also asked what they have.
    async fn look(&mut self, ask: bool) -> Result<(), StoreError> {
        let member = self.member.clone();
        let mut orphans = member.store.adopt_orphans(&member.id, member.judgement()).await?;
        orphans.retain(|a| !self.dispatch.has(&a.id, a.incarnation));
        let agents = member.store.agents().await?;
        let mine: Vec<&AgentRecord> =
            agents.iter().filter(|a| a.scheduler.as_ref() == Some(&member.id)).collect();
        let names: Vec<Name> = mine.iter().map(|a| a.id.clone()).collect();
        let mut chains: HashMap<Name, BTreeMap<ChainKey, Live>> = HashMap::new();
        for record in member.store.chains_of(&names).await? {
            let (Some(agent), Some(live)) = (record.agent.clone(), live(&record)) else { continue };
            chains.entry(agent).or_default().insert(record.key, live);
        }
        let gone: Vec<Name> = self.dispatch.agents().filter(|a| !names.contains(a)).cloned().collect();
        for agent in gone {
            self.leave(&agent);
        }
        if let Some(placing) = &mut self.placing {
            placing.look();
            placing.learn_addresses().await?;
        }
        let now = member.now();
        for agent in mine {
            let info = AgentInfo {
                id: agent.id.clone(),
                capabilities: agent.capabilities.clone(),
                resources: agent.resources.clone(),
            };
            // After a failure nobody could be heard. What the store says of those that are known is what this scheduler
            // has told it: whoever believed that would never miss anybody.
            let is_known = self.dispatch.has(&agent.id, agent.incarnation);
            let heard = if ask {
                now
            } else if is_known {
                i64::MIN
            } else {
                agent.seen
            };
            self.adopt(info, agent.incarnation, chains.remove(&agent.id).unwrap_or_default(), heard);
            if ask || orphans.iter().any(|o| o.id == agent.id) {
                self.greet(&agent.id).await;
            }
        }
        self.count_waiting().await
    }

    /// Takes an agent on, or again.
    fn adopt(&mut self, info: AgentInfo, incarnation: u64, live: BTreeMap<ChainKey, Live>, heard: i64) {
        if let Some(placing) = &mut self.placing {
            placing.join(&info, &live);
        }
        self.dispatch.adopt(info, incarnation, live, heard);
    }

    /// An agent is gone, or somebody else looks after it.
    fn leave(&mut self, agent: &Name) {
        self.dispatch.leave(agent);
        if let Some(placing) = &mut self.placing {
            placing.leave(agent);
        }
    }

    async fn greet(&self, agent: &Name) {
        let message = Message::Attached { scheduler: self.member.id.clone() };
        self.member.bus.publish(&subject::agent(agent), message).await;
    }

    async fn count_waiting(&mut self) -> Result<(), StoreError> {
        let waiting = self.member.store.waiting(self.member.now()).await?;
        if let Some(placing) = &mut self.placing {
            placing.look();
        }
        let scheduler = self.dispatch.scheduler();
        scheduler.forget_waiting();
        for w in waiting {
            if let Some(class) = Class::from_key(&w.class) {
                scheduler.handle(Event::Waiting { class, count: w.count, rank: w.rank });
            }
        }
        self.assign(Turn::default()).await
    }

    /// Renews the bond with agents and looks for those who are gone.
    async fn beat(&mut self) -> Result<(), StoreError> {
        let member = self.member.clone();
        let now = member.now();
        let lease = member.lease_millis();
        if now - self.echo.heard > 2 * member.beat().as_millis() as i64 + 100 {
            self.echo.since = i64::MAX;
        }
        self.echo.number += 1;
        let echo = Message::Echo(self.echo.number);
        member.bus.publish(&subject::scheduler(&member.id), echo).await;
        // Who cannot be heard may be well. Without a bus only the store tells, and it is asked less often.
        let messages_arrive = self.echo.since <= now - lease / 2;
        let patience = if messages_arrive { lease } else { 3 * (lease + member.look.as_millis() as i64) };
        for agent in self.dispatch.silent(patience, now) {
            let seen = member.store.agents().await?.iter().find(|a| a.id == agent).map_or(0, |a| a.seen);
            if now - seen > lease || messages_arrive && now - seen > lease / 2 {
                let incarnation = self.dispatch.agent(&agent).map_or(0, |a| a.1);
                self.lose(&agent, incarnation).await?;
            } else {
                self.dispatch.heard(&agent, seen);
            }
        }
        let silent: BTreeSet<Name> = self.dispatch.silent(lease / 2, now).into_iter().collect();
        let heard: Vec<Name> = self.dispatch.agents().filter(|a| !silent.contains(*a)).cloned().collect();
        let mine = member.store.agents_seen(&member.id, &heard, now).await?;
        for agent in heard.iter().filter(|a| !mine.contains(a)) {
            self.leave(agent);
        }
        let orphans = member.store.adopt_orphans(&member.id, member.judgement()).await?;
        if orphans.iter().any(|a| !self.dispatch.has(&a.id, a.incarnation)) {
            return self.look(true).await;
        }
        Ok(())
    }

    /// An agent is gone: what it had can run elsewhere, and what it held is lost.
    async fn lose(&mut self, agent: &Name, incarnation: u64) -> Result<(), StoreError> {
        self.release(agent).await?;
        self.member.store.remove_agent(agent, incarnation).await
    }

    /// What an agent had can run elsewhere.
    async fn release(&mut self, agent: &Name) -> Result<(), StoreError> {
        let failure = TaskFailure {
            message: format!("{MAX_LOSSES} agents were lost while they ran this chain"),
            help: Some(
                "it may use more memory than there is; ask for what it needs, or look at the agents' logs"
                    .to_owned(),
            ),
            ..TaskFailure::default()
        };
        let error = serde_json::to_string(&failure).unwrap_or_default();
        let store = &self.member.store;
        let released = store.release_agent(agent, MAX_LOSSES, &error, self.member.now()).await?;
        self.leave(agent);
        if !released.is_empty() {
            eprintln!("agent {agent} is gone; {} chains go back to the queue", released.len());
        }
        let (given_up, waiting): (Vec<_>, Vec<_>) =
            released.into_iter().partition(|c| c.state == ChainState::Failed);
        let runs: BTreeSet<RunId> = given_up.iter().map(|c| c.key.run).collect();
        if !runs.is_empty() {
            let ended = Message::Ended(runs.into_iter().collect());
            self.member.bus.publish(subject::CONTROLLERS, ended).await;
        }
        // Everybody may have them, this scheduler too.
        let registered = Registered::count(waiting.into_iter().map(|c| (c.class, c.rank)));
        self.member.bus.publish(subject::SCHEDULERS, Message::Registered(registered)).await;
        Ok(())
    }

    // ----- messages --------------------------------------------------------------------------

    async fn take_in(&mut self, messages: Vec<Message>) -> Result<(), StoreError> {
        let mut turn = Turn::default();
        for message in messages {
            self.hear(message, &mut turn);
        }
        let hellos = std::mem::take(&mut turn.hellos);
        for (agent, incarnation) in std::mem::take(&mut turn.leaving) {
            if self.dispatch.has(&agent, incarnation) {
                // What it told before it left comes first.
                self.assign(std::mem::take(&mut turn)).await?;
                self.lose(&agent, incarnation).await?;
            }
        }
        for agent in hellos {
            self.welcome(agent, &mut turn).await?;
        }
        self.assign(turn).await
    }

    fn hear(&mut self, message: Message, turn: &mut Turn) {
        let now = self.member.now();
        match message {
            Message::Registered(classes) => {
                for r in classes {
                    if let Some(class) = Class::from_key(&r.class) {
                        let registered = Event::Registered { class, count: r.count, rank: r.rank };
                        self.dispatch.scheduler().handle(registered);
                    }
                }
                if let Some(placing) = &mut self.placing {
                    placing.look();
                }
            }
            Message::Give { from, to, attempts } => self.give(&from, &to, attempts, turn),
            Message::Report { agent, events } => {
                self.dispatch.heard(&agent, now);
                self.events(&agent, events, turn);
            }
            Message::Beat(state) => self.state(*state, turn),
            Message::Hello(state) if self.dispatch.has(&state.id, state.incarnation) => {
                self.state(*state, turn);
            }
            Message::Hello(state) => turn.hellos.push(*state),
            Message::Leaving { agent, incarnation } => turn.leaving.push((agent, incarnation)),
            Message::Echo(_) => {
                self.echo.heard = now;
                self.echo.since = self.echo.since.min(now);
            }
            _ => {}
        }
    }

    /// An agent says what it has.
    fn state(&mut self, state: AgentState, turn: &mut Turn) {
        if !self.dispatch.has(&state.id, state.incarnation) {
            return;
        }
        self.greeted.insert(state.id.clone());
        if state.leaving {
            self.dispatch.scheduler().handle(Event::AgentCloses(state.id.clone()));
        }
        if self.placing.as_ref().is_some_and(|p| p.wants_inventory(&state.id)) {
            turn.messages.push((state.id.clone(), Message::Inventory));
        }
        if let Some(neighbours) = self.neighbours(&state.id) {
            turn.messages.push((state.id.clone(), Message::Neighbours(neighbours)));
        }
        if !state.keeps.is_empty() {
            turn.keeps.push((state.id.clone(), state.keeps));
        }
        let told: Vec<Attempt> = state.ended.iter().filter_map(AgentEvent::attempt).collect();
        let reconciled = self.dispatch.beat(&state.id, &state.holding, &told, self.member.now());
        if !reconciled.void.is_empty() {
            turn.messages.push((state.id.clone(), Message::Void(reconciled.void)));
        }
        for (attempt, chain) in reconciled.resend {
            let assignment = Assignment::new(attempt, chain);
            turn.resend.entry(state.id.clone()).or_default().push(assignment);
        }
        self.events(&state.id, state.ended, turn);
    }

    fn events(&mut self, agent: &Name, events: Vec<AgentEvent>, turn: &mut Turn) {
        if self.dispatch.agent(agent).is_none() {
            // It is looked after by somebody else, who will hear of this too.
            return;
        }
        for event in events {
            let event = match event {
                AgentEvent::Ended { .. } => event,
                other => {
                    self.other_event(agent, other, turn);
                    continue;
                }
            };
            let AgentEvent::Ended { attempt, outcome, started, ended, millis, history } = event else {
                continue;
            };
            // Also if it is not news: the agent has to stop telling it.
            turn.known.entry(agent.clone()).or_default().push(attempt);
            let busy = (!matches!(outcome, Outcome::Interrupted)).then_some(millis);
            let Some(live) = self.dispatch.ended(agent, attempt, busy) else { continue };
            let results = match &outcome {
                Outcome::Succeeded(results) => serde_json::to_vec(results).unwrap_or_default(),
                _ => Vec::new(),
            };
            let files = self.placed_end(agent, attempt, &outcome, millis, turn);
            let end = Ended {
                attempt,
                chain: &live.chain,
                failures: live.failures,
                time: (started, ended),
                files,
                history,
            };
            let settled = end.settle(outcome, results, true, self.member.now(), &mut turn.batch);
            if settled.state == ChainState::Registered {
                let class = Class::of(&live.chain);
                let registered = Event::Registered { class, count: 1, rank: live.rank };
                self.dispatch.scheduler().handle(registered);
            }
            turn.ended.insert(attempt.chain.run);
            if settled.failure.is_some() {
                turn.events.push(RunEvent::ChainEnded {
                    run: attempt.chain.run,
                    chain: attempt.chain.seq,
                    attempt: attempt.number,
                    state: settled.state,
                    tasks: live.chain.executables.iter().map(|t| t.id.clone()).collect(),
                    cached: 0,
                    millis,
                    failure: settled.failure,
                });
            }
        }
    }

    /// An agent looks for a scheduler.
    async fn welcome(&mut self, state: AgentState, turn: &mut Turn) -> Result<(), StoreError> {
        let member = self.member.clone();
        let record = AgentRecord {
            id: state.id.clone(),
            incarnation: state.incarnation,
            capabilities: state.capabilities.clone(),
            resources: state.resources.clone(),
            scheduler: Some(member.id.clone()),
            data: state.data.clone(),
            ..AgentRecord::default()
        };
        let Some(before) = member.store.adopt_agent(&record, member.judgement()).await? else {
            return Ok(());
        };
        if before != state.incarnation {
            // It was started again. What it was doing before went with it; what it held may still be there.
            self.release(&state.id).await?;
        }
        if let Some(placing) = &mut self.placing {
            placing.ask(&state.id);
            placing.learn_addresses().await?;
        }
        let chains = member.store.chains_of(std::slice::from_ref(&state.id)).await?;
        let chains = chains.iter().filter_map(|c| Some((c.key, live(c)?))).collect();
        let AgentState { id, capabilities, resources, .. } = state.clone();
        let info = AgentInfo { id, capabilities, resources };
        self.adopt(info, state.incarnation, chains, member.now());
        self.state(state, turn);
        Ok(())
    }

    // ----- assigning -------------------------------------------------------------------------

    /// Decides, writes, and says what follows. Goes on until nothing more can be assigned.
    async fn assign(&mut self, mut turn: Turn) -> Result<(), StoreError> {
        loop {
            let now = self.member.now();
            let mut claims = Vec::new();
            for command in self.dispatch.decide(now) {
                match command {
                    Command::Claim { agent, class, limit } => claims.push(Claim { class, limit, agent, now }),
                    Command::Recall { agent, class, limit } => {
                        let attempts = self.dispatch.recall(&agent, &class, limit);
                        if !attempts.is_empty() {
                            turn.messages.push((agent, Message::Recall(attempts)));
                        }
                    }
                    // The fleet may be able to help; if not, it says so.
                    Command::Unsatisfiable { .. } => {}
                }
            }
            let wishes = self.place(&mut turn).await?;
            let more = !(claims.is_empty() && wishes.picks.is_empty() && wishes.copies.is_empty());
            let mut batch = std::mem::take(&mut turn.batch);
            batch.claims.clone_from(&claims);
            let pick = |(agent, chains): (&Name, &Vec<ChainKey>)| Pick {
                chains: chains.clone(),
                agent: agent.clone(),
                now,
            };
            batch.picks = wishes.picks.iter().map(pick).collect();
            batch.copies = wishes.copies.iter().map(pick).collect();
            batch.gifts = std::mem::take(&mut turn.gifts);
            let gifts = batch.gifts.clone();
            batch.instance = Some(self.member.id.clone());
            let applied = self.member.store.apply(batch).await?;
            for (claim, chains) in claims.into_iter().zip(applied.claimed) {
                self.claimed(claim, chains, &mut turn);
            }
            self.given(gifts, &applied.given, now, &mut turn);
            self.placed(wishes.picks, applied.picked, now, true, &mut turn);
            self.placed(wishes.copies, applied.copied, now, false, &mut turn);
            self.say(&mut turn).await?;
            if !more {
                break;
            }
        }
        self.tell_fleet().await;
        Ok(())
    }

    fn claimed(&mut self, claim: Claim, chains: Vec<Claimed>, turn: &mut Turn) {
        let rank = chains.last().map(|c| c.rank);
        let asked = claim.limit;
        let mut live = Vec::new();
        for claimed in chains {
            let attempt = claimed.attempt;
            let Ok(chain) = serde_json::from_slice::<ProcessChain>(&claimed.payload) else { continue };
            let chain = Arc::new(chain);
            let assignment = Assignment::new(attempt, chain.clone());
            turn.resend.entry(claim.agent.clone()).or_default().push(assignment);
            let one = Live::new(
                attempt.number,
                claimed.failures,
                claim.class.clone(),
                claimed.rank,
                chain,
                claim.now,
            );
            live.push((attempt.chain, one));
        }
        self.dispatch.claimed(&claim.agent, &claim.class, asked, live, rank);
    }

    /// Says what follows from what was written.
    async fn say(&mut self, turn: &mut Turn) -> Result<(), StoreError> {
        let member = self.member.clone();
        for agent in std::mem::take(&mut self.greeted) {
            self.greet(&agent).await;
        }
        for (agent, attempts) in std::mem::take(&mut turn.known) {
            member.bus.publish(&subject::agent(&agent), Message::Known(attempts)).await;
        }
        for (agent, chains) in std::mem::take(&mut turn.resend) {
            let mut by_run: BTreeMap<RunId, Vec<Assignment>> = BTreeMap::new();
            for assignment in chains {
                by_run.entry(assignment.attempt.chain.run).or_default().push(assignment);
            }
            for (run, mut chains) in by_run {
                if let Some(placing) = &self.placing {
                    placing.supply(run, &mut chains).await?;
                }
                if let Some(context) = self.places.context(&*member.store, run).await? {
                    let message = Message::Assign { chains, context };
                    member.bus.publish(&subject::agent(&agent), message).await;
                }
            }
        }
        self.keep_copies(turn).await;
        for (agent, message) in std::mem::take(&mut turn.messages) {
            member.bus.publish(&subject::agent(&agent), message).await;
        }
        if !turn.ended.is_empty() {
            let ended = Message::Ended(std::mem::take(&mut turn.ended).into_iter().collect());
            member.bus.publish(subject::CONTROLLERS, ended).await;
        }
        for event in std::mem::take(&mut turn.events) {
            if let Ok(event) = serde_json::to_value(&event) {
                member.bus.publish(subject::EVENTS, Message::Event(event)).await;
            }
        }
        Ok(())
    }

    /// Tells the fleet what waits although every agent has all it can take.
    async fn tell_fleet(&mut self) {
        if self.told_fleet.is_some_and(|t| t.elapsed() < TELL_FLEET) {
            return;
        }
        let waiting = self.dispatch.scheduler().waiting();
        let missing: Vec<Registered> =
            waiting.map(|(class, count, rank)| Registered { class: class.clone(), count, rank }).collect();
        if !missing.is_empty() {
            self.told_fleet = Some(Instant::now());
            self.member.bus.publish(subject::FLEET, Message::Missing(missing)).await;
        }
    }
}

/// A chain that an agent should have. It is sent if the agent does not have it.
fn live(record: &ChainRecord) -> Option<Live> {
    let chain = serde_json::from_slice(&record.payload).ok()?;
    Some(Live::new(record.attempt, record.failures, record.class.clone(), record.rank, Arc::new(chain), 0))
}
