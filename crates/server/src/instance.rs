//! One instance with some of the roles, against a store and a bus that others may share.

use crate::agent_role::{AgentRole, RemoteOptions};
use crate::controller_role::ControllerRole;
use crate::desk::host_name;
use crate::fleet_role::{FleetRole, FleetSetup};
use crate::home::Home;
use crate::http::{Front, HttpSetup};
use crate::member::Member;
use crate::places::Places;
use crate::scheduler_role::SchedulerRole;
use crate::state::StateDirectory;
use catena_agent::{AgentConfig, Cache, Roster};
use catena_bus::Bus;
use catena_data::Depot;
use catena_model::Name;
use catena_schedule::Settings;
use catena_store::{Instance, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A part that an instance plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Takes workflows and serves state.
    Http,
    /// Turns workflows into chains.
    Controller,
    /// Gives chains to agents.
    Scheduler,
    /// Executes chains.
    Agent,
    /// Gets and releases agents.
    Fleet,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Http, Self::Controller, Self::Scheduler, Self::Agent, Self::Fleet];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Controller => "controller",
            Self::Scheduler => "scheduler",
            Self::Agent => "agent",
            Self::Fleet => "fleet",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|r| r.name() == name);
        found.ok_or_else(|| {
            format!("unknown role `{name}`; known are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// An agent of an instance.
pub struct AgentSetup {
    /// What it is and has.
    pub config: AgentConfig,
    /// Where it remembers results.
    pub cache: Option<Arc<Cache>>,
    /// What it holds, if it has files of its own.
    pub depot: Option<Arc<Depot>>,
    /// Where it notes its processes. No other agent may use it.
    pub directory: StateDirectory,
    /// How it behaves.
    pub remote: RemoteOptions,
}

/// What an instance is made of.
pub struct InstanceSetup {
    /// Its name, different with every start.
    pub id: Name,
    /// The parts it plays.
    pub roles: Vec<Role>,
    /// The truth. An instance that is only an agent needs none.
    pub store: Option<Arc<dyn Store>>,
    /// How it talks to others.
    pub bus: Arc<dyn Bus>,
    /// Where runs live.
    pub places: Arc<Places>,
    /// It counts as dead when it was not heard of for so long.
    pub lease: Duration,
    /// How often every role looks into the store, whatever messages say.
    pub look: Duration,
    /// How the scheduler decides.
    pub settings: Settings,
    /// So many agents keep what chains write, where they have files of their own.
    pub copies: usize,
    /// Where what comes with runs and what comes of them is held, where agents have files of their own.
    pub home: Option<Arc<Home>>,
    /// Its agent.
    pub agent: Option<AgentSetup>,
    /// Its HTTP interface.
    pub http: Option<HttpSetup>,
    /// Its fleet.
    pub fleet: Option<FleetSetup>,
}

/// How long its roles may take to stop. What is unfinished then, others finish: an instance may die at any time.
const GRACE: Duration = Duration::from_secs(5);
/// How long a farewell to the store may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs an instance until it is asked to stop. Then it ends soon, whether or not store and bus answer.
pub async fn serve(setup: InstanceSetup, stop: watch::Receiver<bool>) -> Result<(), StoreError> {
    let membership = setup.store.clone().map(|store| (store, setup.id.clone()));
    let result = tokio::select! {
        ended = play(setup, stop.clone()) => ended,
        () = overdue(stop) => Ok(()),
    };
    if let Some((store, id)) = membership {
        // What it had is free at once.
        let _ = tokio::time::timeout(FAREWELL, store.resign(&id)).await;
    }
    result
}

/// Serves the HTTP interface beside a driver in the same process, which has the store for itself, until it is asked to
/// stop.
pub async fn serve_beside(
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    places: Arc<Places>,
    http: HttpSetup,
    stop: watch::Receiver<bool>,
) -> Result<(), StoreError> {
    // Nobody else looks at its lease.
    let (lease, look) = (Duration::from_secs(30), Duration::from_secs(20));
    let member = Member::new(Name::new_static("beside"), store, bus, lease, look);
    Front::new(Arc::new(member), places, None, http).run(stop).await
}

/// Waits until the roles should have stopped long ago.
async fn overdue(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // Nobody can ask any more.
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(GRACE).await;
}

/// Plays the roles of an instance.
async fn play(setup: InstanceSetup, mut stop: watch::Receiver<bool>) -> Result<(), StoreError> {
    let mut tasks: JoinSet<Result<(), StoreError>> = JoinSet::new();
    let has = |role| setup.roles.contains(&role);
    if let Some(agent) = setup.agent {
        let directory = agent.directory;
        let roster = Roster::create(directory.path());
        let role = AgentRole::start(agent.config, agent.cache, agent.depot, roster, setup.bus.clone());
        let role = role.marked(directory.path().to_path_buf());
        let (remote, stop) = (agent.remote, stop.clone());
        let incarnation = incarnation();
        tasks.spawn(async move {
            role.run_remote(remote, incarnation, stop).await;
            drop(directory);
            Ok(())
        });
    }
    if let Some(store) = setup.store {
        let member = Member::new(setup.id.clone(), store.clone(), setup.bus, setup.lease, setup.look);
        let member = Arc::new(member);
        let instance = Instance {
            id: setup.id.clone(),
            roles: setup.roles.iter().map(|r| r.name()).collect::<Vec<_>>().join(","),
            host: host_name(),
            since: store.now().await.unwrap_or_default(),
            until: 0,
        };
        if !member.join(&instance, &mut stop).await? {
            return Ok(());
        }
        if let Some(home) = &setup.home {
            home.announce(&*store).await?;
        }
        let keeper = member.clone();
        let keep = stop.clone();
        tasks.spawn(async move {
            keeper.stay(instance, keep).await;
            Ok(())
        });
        if has(Role::Controller) {
            let (places, home) = (setup.places.clone(), setup.home.clone());
            let role = ControllerRole::new(member.clone(), places, home, setup.settings.aging).await;
            tasks.spawn(role.run(stop.clone()));
        }
        if has(Role::Scheduler) {
            let (places, copies) = (setup.places.clone(), setup.copies);
            let role = SchedulerRole::new(member.clone(), places, setup.settings, copies).await;
            tasks.spawn(role.run(stop.clone()));
        }
        if let Some(http) = setup.http {
            let (places, home) = (setup.places.clone(), setup.home.clone());
            tasks.spawn(Front::new(member.clone(), places, home, http).run(stop.clone()));
        }
        if let Some(fleet) = setup.fleet {
            tasks.spawn(FleetRole::new(member.clone(), fleet).await.run(stop.clone()));
        }
    }
    wait(&mut tasks, stop).await
}

/// Waits until a role has failed, or all have stopped because they were asked to. An instance that consists of
/// an agent ends with it.
async fn wait(
    tasks: &mut JoinSet<Result<(), StoreError>>,
    stop: watch::Receiver<bool>,
) -> Result<(), StoreError> {
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Err(e)) => return Err(e),
            Ok(Ok(())) if !*stop.borrow() && tasks.is_empty() => return Ok(()),
            Ok(Ok(())) => {}
            Err(e) => {
                return Err(StoreError::Other { path: PathBuf::from("instance"), detail: e.to_string() });
            }
        }
    }
    Ok(())
}

/// A number that differs with every start.
fn incarnation() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |d| d.as_nanos() as u64);
    (nanos ^ (u64::from(std::process::id()) << 40)) >> 1
}
