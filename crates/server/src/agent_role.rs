//! Connects an agent to the bus.
//!
//! In the process of its scheduler an agent needs to be told nothing twice. Elsewhere it is attached to one: it
//! says that it is alive, keeps the end of an attempt until it is known, and looks into the store from time to
//! time, in case messages do not arrive.

use crate::clock::Clock;
use crate::desk::Desk;
use catena_agent::{Agent, AgentConfig, Backlog, Cache, Job, Roster};
use catena_bus::{AgentState, Assignment, Bus, Message, subject};
use catena_data::Depot;
use catena_model::Name;
use catena_model::chain::{AgentEvent, Neighbour, RunContext};
use catena_schedule::{Address, Attachment, Giver, Giving};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long reports are gathered while an agent is busy anyway.
const GATHER: Duration = Duration::from_millis(4);

/// The same, where a report is a message over a network.
const GATHER_REMOTE: Duration = Duration::from_millis(25);

/// How long after a task was started people hear of it at the latest.
const TELL_STARTS: Duration = Duration::from_millis(100);

/// How long an agent that was asked to stop waits for somebody to hear of it.
const FAREWELL: Duration = Duration::from_secs(3);

/// Where an agent with files of its own works on runs, below its directory.
pub(crate) const RUNS: &str = "runs";

/// How an agent far from its scheduler behaves.
#[derive(Clone)]
pub struct RemoteOptions {
    /// How long a scheduler is trusted to live without a word.
    pub lease: Duration,
    /// How often to look into the store.
    pub look: Duration,
    /// End after so long without anything to do.
    pub idle_shutdown: Option<Duration>,
    /// Where to look when messages do not arrive.
    pub desk: Option<Arc<dyn Desk>>,
}

/// An agent on a bus.
pub struct AgentRole {
    config: AgentConfig,
    agent: Agent,
    events: UnboundedReceiver<AgentEvent>,
    /// Tasks that were started since something ended. People want to know, but nobody has to act on it, so
    /// it does not wake anyone up.
    started: Arc<Mutex<Vec<AgentEvent>>>,
    bus: Arc<dyn Bus>,
    /// What it holds, if it has files of its own.
    depot: Option<Arc<Depot>>,
    /// Marks the processes of this agent, where several share a machine and the places of runs. An agent with files of
    /// its own works here.
    mark: Option<PathBuf>,
}

impl AgentRole {
    /// Starts an agent. It works once [`AgentRole::run`] or [`AgentRole::run_remote`] is polled.
    pub fn start(
        config: AgentConfig,
        cache: Option<Arc<Cache>>,
        depot: Option<Arc<Depot>>,
        roster: Roster,
        bus: Arc<dyn Bus>,
    ) -> Self {
        let (sender, events) = unbounded_channel();
        let started: Arc<Mutex<Vec<AgentEvent>>> = Arc::default();
        let noted = started.clone();
        let report = move |event| {
            let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(event, AgentEvent::TaskStarted { .. }) {
                noted.push(event);
            } else {
                for event in noted.drain(..).chain([event]) {
                    let _ = sender.send(event);
                }
            }
        };
        let agent = Agent::start(config.clone(), cache, depot.clone(), roster, report);
        Self { config, agent, events, started, bus, depot, mark: None }
    }

    fn state(&self) -> AgentState {
        let AgentConfig { id, capabilities, resources, .. } = self.config.clone();
        let data = self.depot.as_ref().map(|d| d.address().clone());
        AgentState { id, capabilities, resources, data, keeps: self.agent.keeps(), ..AgentState::default() }
    }

    /// Takes chains in and reports on them until the bus closes: in the process of the scheduler.
    pub async fn run(mut self) {
        let id = self.config.id.clone();
        let mut inbox = self.bus.subscribe(&subject::agent(&id)).await;
        self.bus.publish(subject::SCHEDULERS, Message::Hello(Box::new(self.state()))).await;
        let mut messages = Vec::new();
        let mut events = Vec::new();
        let mut tell = tokio::time::interval(TELL_STARTS);
        tell.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                n = inbox.receive(&mut messages, 64) => {
                    if n == 0 {
                        return;
                    }
                    for message in messages.drain(..) {
                        match message {
                            Message::Assign { chains, context } => self.assign(chains, &context),
                            Message::Void(attempts) => self.agent.stop_attempts(&attempts),
                            Message::Cancel(run) => self.agent.cancel(run),
                            Message::Interrupt => self.agent.interrupt(),
                            _ => {}
                        }
                    }
                }
                n = self.events.recv_many(&mut events, 4096) => {
                    if n == 0 {
                        return;
                    }
                    self.gather(&mut events, GATHER).await;
                    let events = std::mem::take(&mut events);
                    self.bus.publish(subject::SCHEDULERS, Message::Report { agent: id.clone(), events }).await;
                }
                _ = tell.tick() => {
                    let events = std::mem::take(&mut *self.started.lock().unwrap_or_else(PoisonError::into_inner));
                    if !events.is_empty() {
                        self.bus.publish(subject::SCHEDULERS, Message::Report { agent: id.clone(), events }).await;
                    }
                }
            }
        }
    }

    /// Marks processes with this directory, in place of the one that all agents share.
    #[must_use]
    pub fn marked(mut self, directory: PathBuf) -> Self {
        self.mark = Some(directory);
        self
    }

    fn assign(&self, chains: Vec<Assignment>, context: &Arc<RunContext>) {
        let context = match &self.mark {
            Some(mark) => {
                let mut own = RunContext { state: mark.clone(), ..(**context).clone() };
                if self.depot.is_some() {
                    let run = mark.join(RUNS).join(context.run.to_string());
                    (own.work, own.logs) = (run.join("work"), run.join("logs"));
                }
                &Arc::new(own)
            }
            None => context,
        };
        let job = |a: Assignment| Job {
            attempt: a.attempt,
            chain: a.chain,
            context: context.clone(),
            supplies: a.supplies,
            received: a.received,
        };
        self.agent.assign(chains.into_iter().map(job).collect());
    }

    /// While every slot has enough to do, nobody waits for a report: gathers more of it.
    async fn gather(&mut self, events: &mut Vec<AgentEvent>, how_long: Duration) {
        if self.agent.has_backlog() {
            tokio::time::sleep(how_long).await;
            while let Ok(event) = self.events.try_recv() {
                events.push(event);
            }
        }
    }

    /// Takes chains in and reports on them until it is asked to stop or has had nothing to do for long enough.
    pub async fn run_remote(self, options: RemoteOptions, incarnation: u64, mut stop: watch::Receiver<bool>) {
        let clock = Clock::start();
        let lease = options.lease.as_millis() as i64;
        let beat = (lease / 6).max(1);
        let mut remote = Remote {
            bond: Attachment::new(beat, lease, clock.now()),
            role: self,
            incarnation,
            clock,
            busy: Instant::now(),
            leaving: false,
            giver: Giver::default(),
        };
        let own = remote.role.bus.subscribe(&subject::agent(&remote.role.config.id)).await;
        let all = remote.role.bus.subscribe(subject::AGENTS).await;
        remote.serve(options, [own, all], &mut stop).await;
        remote.leave().await;
    }
}

/// An agent that is not in the process of its scheduler.
struct Remote {
    role: AgentRole,
    bond: Attachment<AgentEvent>,
    incarnation: u64,
    clock: Clock,
    /// When it last had something to do, or was asked to stay.
    busy: Instant,
    leaving: bool,
    /// Decides what it gives to others.
    giver: Giver,
}

impl Remote {
    async fn serve(
        &mut self,
        options: RemoteOptions,
        [mut own, mut all]: [catena_bus::Subscription; 2],
        stop: &mut watch::Receiver<bool>,
    ) {
        let (mut messages, mut shared, mut events) = (Vec::new(), Vec::new(), Vec::new());
        let mut look = tokio::time::interval(options.look);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let until = |when: i64| Duration::from_millis((when - self.clock.now()).max(0) as u64);
            let until_beat = until(self.bond.next());
            // Who has nothing to give need not think about it.
            let gives = self.role.depot.is_some() && self.role.agent.backlog().own > 0;
            let until_gift = until(self.giver.next());
            tokio::select! {
                n = own.receive(&mut messages, 256) => if n == 0 { return },
                n = all.receive(&mut shared, 256) => if n == 0 { return },
                n = self.role.events.recv_many(&mut events, 4096) => {
                    if n == 0 {
                        return;
                    }
                    self.role.gather(&mut events, GATHER_REMOTE).await;
                    self.report(std::mem::take(&mut events)).await;
                }
                () = tokio::time::sleep(until_beat) => self.tick().await,
                () = tokio::time::sleep(until_gift), if gives => self.consider_giving().await,
                _ = look.tick() => if let Some(desk) = &options.desk {
                    // A desk that is silent must not make the agent silent too.
                    let _ = tokio::time::timeout(options.lease / 2, self.visit(&**desk)).await;
                },
                Ok(()) = stop.changed() => return,
            }
            for message in messages.drain(..).chain(shared.drain(..)) {
                self.handle(message).await;
            }
            // What it keeps others may need.
            if !self.bond.is_idle() || options.idle_shutdown.is_some() && !self.role.agent.keeps().is_empty()
            {
                self.busy = Instant::now();
            }
            let idle = self.busy.elapsed();
            if self.leaving && self.bond.is_idle() || options.idle_shutdown.is_some_and(|limit| idle >= limit)
            {
                return;
            }
        }
    }

    async fn handle(&mut self, message: Message) {
        let now = self.clock.now();
        match message {
            Message::Attached { scheduler } if self.bond.attached(&scheduler, now) => {
                self.say(Address::Scheduler(scheduler), true).await;
            }
            Message::Assign { chains, context } => self.take(chains, &context),
            Message::Known(attempts) => self.bond.known(&attempts, now),
            Message::Recall(attempts) => self.role.agent.give_back(&attempts),
            Message::Void(attempts) => self.role.agent.stop_attempts(&attempts),
            Message::Cancel(run) => self.role.agent.cancel(run),
            Message::Hold(run) => self.role.agent.hold(run),
            Message::Interrupt => self.role.agent.interrupt(),
            Message::Inventory => self.role.agent.inventory(),
            Message::Keep { run, supply } => self.role.agent.keep(run, *supply),
            Message::Release { runs, files } => self.role.agent.release(&runs, &files),
            Message::Neighbours(names) => self.giver.set_neighbours(names),
            Message::HowBusy { agent } => self.say_how_busy(&agent).await,
            Message::Busy(busy) => {
                self.giver.answered(*busy);
                self.consider_giving().await;
            }
            Message::KeepAlive => self.busy = Instant::now(),
            Message::ShutDown => self.begin_to_leave().await,
            _ => {}
        }
    }

    fn take(&mut self, mut chains: Vec<Assignment>, context: &Arc<RunContext>) {
        let now = self.clock.now();
        chains.retain(|a| self.bond.assigned(a.attempt, now));
        if chains.iter().any(|a| !a.received) {
            self.giver.got_work(now);
        }
        self.role.assign(chains, context);
        if self.leaving {
            self.give_back_waiting();
        }
    }

    async fn say_how_busy(&self, to: &Name) {
        let AgentConfig { id, capabilities, resources, .. } = self.role.config.clone();
        let Backlog { waiting, is_idle, .. } = self.role.agent.backlog();
        // Who is about to leave is no help.
        let (agent, is_idle, waiting) =
            (id, is_idle && !self.leaving, if self.leaving { usize::MAX } else { waiting });
        let busy = Neighbour { agent, capabilities, resources, waiting, is_idle };
        self.role.bus.publish(&subject::agent(to), Message::Busy(Box::new(busy))).await;
    }

    /// Gives chains to another agent, if it has more to do than others. The scheduler of both hands them over.
    async fn consider_giving(&mut self) {
        let now = self.clock.now();
        let Address::Scheduler(scheduler) = self.bond.address() else { return };
        let own = self.role.agent.backlog().own;
        match self.giver.tick(now, own, self.role.config.resources.cpus) {
            Giving::Nothing => {}
            Giving::Ask(neighbours) => {
                for neighbour in neighbours {
                    let message = Message::HowBusy { agent: self.role.config.id.clone() };
                    self.role.bus.publish(&subject::agent(&neighbour), message).await;
                }
            }
            Giving::Offer(neighbour) => {
                let attempts = self.role.agent.gift(&neighbour);
                self.giver.offered(now, !attempts.is_empty());
                if !attempts.is_empty() {
                    for attempt in &attempts {
                        self.bond.gave(*attempt);
                    }
                    let from = self.role.config.id.clone();
                    let message = Message::Give { from, to: neighbour.agent, attempts };
                    self.role.bus.publish(&subject::scheduler(&scheduler), message).await;
                }
            }
        }
    }

    /// Finishes what it has started, and says that it takes nothing new.
    async fn begin_to_leave(&mut self) {
        self.leaving = true;
        self.give_back_waiting();
        self.say(self.bond.address(), false).await;
    }

    /// Somebody else may be able to run what has not started here.
    fn give_back_waiting(&self) {
        let waiting: Vec<_> = self.bond.holding().collect();
        self.role.agent.give_back(&waiting);
    }

    /// Something happened here: the end of an attempt is kept until it is known.
    async fn report(&mut self, mut events: Vec<AgentEvent>) {
        let now = self.clock.now();
        // Far away nobody watches single tasks.
        events.retain(|e| !matches!(e, AgentEvent::TaskStarted { .. }));
        if events.is_empty() {
            return;
        }
        for event in &events {
            if let AgentEvent::Ended { attempt, .. } = event {
                self.bond.ended(*attempt, event.clone(), now);
            }
        }
        if let Address::Scheduler(scheduler) = self.bond.address() {
            let message = Message::Report { agent: self.role.config.id.clone(), events };
            self.role.bus.publish(&subject::scheduler(&scheduler), message).await;
        }
    }

    async fn tick(&mut self) {
        let heard = self.bond.tick(self.clock.now());
        if heard.free {
            self.give_back_waiting();
        }
        if let Some(address) = heard.say {
            self.say(address, false).await;
        }
    }

    /// Says everything.
    async fn say(&mut self, address: Address, all: bool) {
        let mut state = self.state();
        state.ended = if all { self.bond.all_untold() } else { self.bond.untold(self.clock.now()) };
        let state = Box::new(state);
        let (to, message) = match address {
            Address::Everyone => (subject::SCHEDULERS.to_owned(), Message::Hello(state)),
            Address::Scheduler(id) => (subject::scheduler(&id), Message::Beat(state)),
        };
        self.role.bus.publish(&to, message).await;
    }

    fn state(&self) -> AgentState {
        let holding = self.bond.holding().collect();
        let (incarnation, leaving) = (self.incarnation, self.leaving);
        AgentState { incarnation, leaving, holding, ..self.role.state() }
    }

    /// Looks into the store: whether there is work, and whether the ends of attempts are known.
    async fn visit(&mut self, desk: &dyn Desk) {
        let mut state = self.state();
        // Also what was told a moment ago: perhaps nobody has heard it.
        state.ended = self.bond.all_untold();
        let Ok(answer) = desk.visit(&state).await else { return };
        self.bond.known(&answer.known, self.clock.now());
        self.role.agent.stop_attempts(&answer.void);
        for (chains, context) in answer.assigned {
            self.take(chains, &context);
        }
    }

    /// Gives everything back and says so, for a moment also if nobody answers.
    async fn leave(&mut self) {
        self.role.agent.interrupt();
        let deadline = Instant::now() + FAREWELL;
        while self.bond.holding().next().is_some() && Instant::now() < deadline {
            let mut events = Vec::new();
            let received = self.role.events.recv_many(&mut events, 4096);
            if tokio::time::timeout(Duration::from_millis(200), received).await.is_ok() {
                self.report(events).await;
            }
        }
        if let Address::Scheduler(scheduler) = self.bond.address() {
            let agent: Name = self.role.config.id.clone();
            let message = Message::Leaving { agent, incarnation: self.incarnation };
            self.role.bus.publish(&subject::scheduler(&scheduler), message).await;
            // The message has to leave before the process does.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
