//! An instance of Catena: the roles, wired to a store and a bus.
//!
//! - [`Definition`] says what a run is; its fingerprint tells whether two runs are the same work.
//! - [`Driver`] is controller and scheduler of one run in one process that owns its store: what `catena run`
//!   uses. It talks to agents over the bus only.
//! - [`Blueprint`] says what is planned: a workflow, or a DAG of DAGMan, which [`open_dag`] reads.
//! - [`History`] is what a run tells about how long its tasks took.
//! - [`serve`] runs an instance of a cluster: any of the [`Role`]s, against a store and a bus that others share.
//! - [`AgentRole`] connects an agent to the bus; a [`Desk`] is where it asks when messages do not arrive.
//! - [`StateDirectory`] is where an embedded instance keeps everything; one instance at a time owns it.
//!   [`Places`] are where the runs of a cluster live.

mod agent_role;
mod board;
mod clock;
mod config;
mod control;
mod controller_role;
mod dagman;
mod definition;
mod desk;
mod driver;
mod event;
mod fleet_role;
mod history;
mod home;
mod http;
mod instance;
mod lineage;
mod logs;
mod member;
mod memory;
mod named;
mod places;
mod placing;
mod plan;
mod publish;
mod resume;
mod scheduler_role;
mod search;
mod settle;
mod state;
mod studio;
mod supplies;
mod urgency;
mod view;

pub use agent_role::{AgentRole, RemoteOptions};
pub use catena_workbench::missing as workbench_missing;
pub use config::{AgentSettings, CONFIG_FILE, Config, DataSettings, SETTINGS};
pub use dagman::{DagFiles, OpenDag, Rescue, open_dag, retire_rescues};
pub use definition::Definition;
pub use desk::{Answer, Desk, StoreDesk, default_agent_name, host_name};
pub use driver::{Driver, DriverError, StopWish};
pub use event::{FailedTask, RunEvent, RunSummary};
pub use fleet_role::FleetSetup;
pub use history::History;
pub use home::{Home, bring_results};
pub use http::{Access, HttpSetup, Submission, TokenRole, hash_token, new_token, openapi};
pub use instance::{AgentSetup, InstanceSetup, Role, serve, serve_beside};
pub use logs::log_file;
pub use named::named_files;
pub use places::{Places, Storage};
pub use plan::Blueprint;
pub use publish::{PublishedResult, publish_results};
pub use search::search;
pub use state::{StateDirectory, StateError};
pub use supplies::{chain_inputs, wanted_parts};
pub use view::{ChainView, FailureView, MomentView, RunView, RunningView, StatusView, WaitingView, status};
