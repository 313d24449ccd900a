//! The fleet of a cluster: has machines made for chains that no agent can take.
//!
//! Several instances may play this role; one of them at a time holds the duty and acts.

use crate::event::RunEvent;
use crate::member::Member;
use catena_bus::{Message, Subscription, subject};
use catena_fleet::{Agent, Demand, Fleet, Order, Pool, Provider, Setup};
use catena_model::Name;
use catena_model::chain::RunId;
use catena_schedule::Class;
use catena_store::{Machine, MachineState, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// How often orphans are looked for.
const CLEAN_UP: Duration = Duration::from_secs(30);

/// How the fleet is set up.
pub struct FleetSetup {
    /// What machines can be made from.
    pub setups: Vec<Setup>,
    /// Limits.
    pub pools: Vec<Pool>,
    /// Who makes machines, by name.
    pub providers: BTreeMap<Name, Arc<dyn Provider>>,
}

/// What became of an order.
enum Outcome {
    Made { id: Name, handle: String },
    Failed { id: Name, reason: String },
}

/// Gets and releases agents.
pub(crate) struct FleetRole {
    member: Arc<Member>,
    setup: FleetSetup,
    fleet: Fleet,
    inbox: Subscription,
    outcomes: UnboundedReceiver<Outcome>,
    tell: UnboundedSender<Outcome>,
    on_duty: bool,
    machines: BTreeMap<Name, Machine>,
}

impl FleetRole {
    pub(crate) async fn new(member: Arc<Member>, setup: FleetSetup) -> Self {
        let inbox = member.bus.subscribe(subject::FLEET).await;
        let (tell, outcomes) = unbounded_channel();
        Self {
            fleet: Fleet::default(),
            member,
            setup,
            inbox,
            outcomes,
            tell,
            on_duty: false,
            machines: BTreeMap::new(),
        }
    }

    /// Works until it is time to stop.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
        let mut beat = tokio::time::interval(self.member.beat().min(Duration::from_secs(1)));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut clean_up = tokio::time::interval(CLEAN_UP.min(self.member.look));
        clean_up.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut messages, mut outcomes) = (Vec::new(), Vec::new());
        loop {
            let result = tokio::select! {
                n = self.inbox.receive(&mut messages, 256) => {
                    if n == 0 {
                        return Ok(());
                    }
                    messages.clear();
                    self.turn().await
                }
                n = self.outcomes.recv_many(&mut outcomes, 64) => {
                    if n == 0 {
                        return Ok(());
                    }
                    self.learn(std::mem::take(&mut outcomes)).await
                }
                _ = beat.tick() => self.beat().await,
                _ = clean_up.tick() => self.remove_orphans().await,
                _ = stop.changed() => return Ok(()),
            };
            if let Err(e) = result {
                self.on_duty = false;
                if !self.member.endure(e, &mut stop).await? {
                    return Ok(());
                }
            }
        }
    }

    /// Takes the duty or keeps it, then looks.
    async fn beat(&mut self) -> Result<(), StoreError> {
        let member = self.member.clone();
        let now = member.now();
        let until = now + member.lease_millis();
        let duty = member.store.take_duty("fleet", &member.id, until, member.judgement()).await?;
        if duty && !self.on_duty {
            self.begin().await?;
        }
        self.on_duty = duty;
        self.turn().await
    }

    /// Goes on where another one has stopped.
    async fn begin(&mut self) -> Result<(), StoreError> {
        // Names are never used again, also not by the next one on duty.
        let prefix = format!("m{:x}-", self.member.now() / 100);
        self.fleet = Fleet::new(self.setup.setups.clone(), self.setup.pools.clone(), &prefix);
        self.machines.clear();
        for machine in self.member.store.machines().await? {
            if machine.state.counts() {
                let joined = machine.state == MachineState::Running;
                self.fleet.remember(machine.id.clone(), &machine.setup, machine.created, joined);
                self.machines.insert(machine.id.clone(), machine);
            }
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), StoreError> {
        if !self.on_duty {
            return Ok(());
        }
        let member = self.member.clone();
        let agents = member.store.agents().await?.into_iter();
        let agents = agents.map(|a| Agent { id: a.id, capabilities: a.capabilities, resources: a.resources });
        for id in self.fleet.agents(agents.collect()) {
            self.note(&id, MachineState::Running, None).await?;
        }
        // The store knows what waits, whatever was said.
        let waiting = member.store.waiting(member.now()).await?;
        let demand = waiting
            .into_iter()
            .filter_map(|w| Some(Demand { class: Class::from_key(&w.class)?, count: w.count, rank: w.rank }));
        self.fleet.demand(demand.collect());
        for order in self.fleet.decide(member.now()) {
            self.obey(order).await?;
        }
        Ok(())
    }

    async fn obey(&mut self, order: Order) -> Result<(), StoreError> {
        let member = self.member.clone();
        match order {
            Order::Create { id, setup } => {
                let setup = self.fleet.setups()[setup].clone();
                let now = member.now();
                // The intention is known before anything exists, so that nothing can exist unknown.
                let machine = Machine {
                    id: id.clone(),
                    setup: setup.id.clone(),
                    state: MachineState::Creating,
                    handle: None,
                    created: now,
                    changed: now,
                    reason: None,
                };
                member.store.put_machine(&machine).await?;
                self.machines.insert(id.clone(), machine);
                let provider = self.setup.providers.get(&setup.provider).cloned();
                let tell = self.tell.clone();
                tokio::spawn(async move {
                    let made = match provider {
                        Some(provider) => provider.create(&id, &setup).await,
                        None => Err(format!("there is no provider `{}`", setup.provider)),
                    };
                    let _ = tell.send(match made {
                        Ok(handle) => Outcome::Made { id, handle },
                        Err(reason) => Outcome::Failed { id, reason },
                    });
                });
            }
            Order::Destroy { id, reason, failed } => {
                self.destroy(&id).await;
                let state = if failed { MachineState::Failed } else { MachineState::Destroyed };
                self.note(&id, state, Some(reason)).await?;
            }
            Order::KeepAlive(agent) => member.bus.publish(&subject::agent(&agent), Message::KeepAlive).await,
            Order::Explain { reason, .. } => {
                eprintln!("{reason}");
                let event = RunEvent::Notice { run: RunId(0), message: reason };
                if let Ok(event) = serde_json::to_value(event) {
                    member.bus.publish(subject::EVENTS, Message::Event(event)).await;
                }
            }
        }
        Ok(())
    }

    async fn destroy(&self, id: &Name) {
        let machine = self.machines.get(id);
        let setup = machine.and_then(|m| self.setup.setups.iter().find(|s| s.id == m.setup));
        let provider = setup.and_then(|s| self.setup.providers.get(&s.provider));
        if let Some(provider) = provider
            && let Err(e) = provider.destroy(id, machine.and_then(|m| m.handle.as_deref())).await
        {
            eprintln!("machine {id} cannot be taken down: {e}");
        }
    }

    async fn note(
        &mut self,
        id: &Name,
        state: MachineState,
        reason: Option<String>,
    ) -> Result<(), StoreError> {
        let Some(machine) = self.machines.get_mut(id) else { return Ok(()) };
        machine.state = state;
        machine.changed = self.member.now();
        machine.reason = reason;
        self.member.store.put_machine(machine).await?;
        if !state.counts() {
            self.machines.remove(id);
        }
        Ok(())
    }

    async fn learn(&mut self, outcomes: Vec<Outcome>) -> Result<(), StoreError> {
        for outcome in outcomes {
            match outcome {
                Outcome::Made { id, handle } => {
                    if let Some(machine) = self.machines.get_mut(&id) {
                        machine.handle = Some(handle);
                        self.member.store.put_machine(machine).await?;
                    }
                }
                Outcome::Failed { id, reason } => {
                    eprintln!("machine {id} cannot be made: {reason}");
                    self.fleet.failed(&id, reason.clone(), self.member.now());
                    self.note(&id, MachineState::Failed, Some(reason)).await?;
                }
            }
        }
        self.turn().await
    }

    /// Takes machines down that nobody knows of.
    async fn remove_orphans(&mut self) -> Result<(), StoreError> {
        if !self.on_duty {
            return Ok(());
        }
        let known: Vec<Name> = self
            .member
            .store
            .machines()
            .await?
            .into_iter()
            .filter(|m| m.state.counts())
            .map(|m| m.id)
            .collect();
        for provider in self.setup.providers.values() {
            for (id, handle) in provider.list().await.unwrap_or_default() {
                if !known.contains(&id) {
                    eprintln!("machine {id} belongs to nobody and is taken down");
                    let _ = provider.destroy(&id, Some(&handle)).await;
                }
            }
        }
        Ok(())
    }
}
