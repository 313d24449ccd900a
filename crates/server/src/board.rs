//! All chains of a run in few bytes: what pictures of runs are drawn from.
//!
//! A [`Board`] exists while somebody looks at a run. It reads payloads once, and then only what can have changed; those
//! who look are told what is new since they looked last.

use catena_model::Name;
use catena_model::chain::{ChainState, RunId, TaskFailure};
use catena_plan::step_name;
use catena_schedule::Class;
use catena_store::{ChainFilter, ChainRecord, FailedAttempt, Run, Store, StoreError};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use utoipa::ToSchema;

/// How many chains are read at a time. Others have their turn in between.
const PAGE: usize = 2000;
/// A board is not brought up to date more often than this, however many look at it.
const PATIENCE: Duration = Duration::from_millis(400);
/// Chains that have succeeded may have to be repeated, if what they wrote is lost. They are looked at this often.
const RECHECK: Duration = Duration::from_secs(15);
/// So many boards are kept.
const KEPT: usize = 8;

/// All chains of a run, or those that have changed since a version. Tables have only what is new since then. Times are
/// milliseconds after `origin`, -1 if there is none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Board)]
pub(crate) struct BoardView {
    /// Another one than before: what is known of the board is to be forgotten, and this is all.
    pub(crate) epoch: String,
    /// Ask with this one for what comes later.
    pub(crate) version: u64,
    /// What times refer to, in milliseconds since 1970.
    pub(crate) origin: i64,
    /// Whether nothing more will come.
    pub(crate) over: bool,
    /// Names of steps.
    #[schema(value_type = Vec<String>)]
    pub(crate) steps: Vec<Name>,
    /// Chains of a kind execute these steps, one after the other.
    pub(crate) kinds: Vec<Vec<u32>>,
    /// Names of agents.
    #[schema(value_type = Vec<String>)]
    pub(crate) agents: Vec<Name>,
    /// Sets of required capabilities.
    #[schema(value_type = Vec<Vec<String>>)]
    pub(crate) classes: Vec<Vec<Name>>,
    /// The chains.
    pub(crate) chains: Columns,
    /// What went wrong on the way.
    pub(crate) mishaps: Vec<Mishap>,
}

/// Chains, in columns of equal length.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Columns {
    chain: Vec<u64>,
    /// Which of `kinds`.
    kind: Vec<u32>,
    /// 0 registered, 1 running, 2 paused, 3 succeeded, 4 failed, 5 cancelled.
    state: Vec<u8>,
    /// Which of `classes`.
    class: Vec<u32>,
    /// Which of `agents`, -1 if none.
    agent: Vec<i64>,
    attempt: Vec<u32>,
    registered: Vec<i64>,
    started: Vec<i64>,
    ended: Vec<i64>,
}

/// An attempt that failed, or an agent that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Mishap {
    chain: u64,
    attempt: u32,
    #[schema(value_type = Option<String>, required)]
    agent: Option<Name>,
    /// In milliseconds since 1970.
    started: i64,
    /// In milliseconds since 1970.
    ended: i64,
    /// The agent was lost; nothing is wrong with the tasks.
    lost: bool,
    message: String,
}

impl Mishap {
    pub(crate) fn new(attempt: &FailedAttempt) -> Self {
        let lost = attempt.error.is_empty();
        let failure: Option<TaskFailure> = serde_json::from_str(&attempt.error).ok();
        let message = match failure {
            Some(failure) => format!("{}: {}", failure.task, failure.message),
            None => "the agent was lost".to_owned(),
        };
        Self {
            chain: attempt.key.seq,
            attempt: attempt.attempt,
            agent: attempt.agent.clone(),
            started: attempt.started,
            ended: attempt.ended,
            lost,
            message,
        }
    }
}

/// Things that get a number when they are seen for the first time, and the version of the board at that moment.
#[derive(Debug)]
struct Table<T> {
    numbers: HashMap<T, u32>,
    items: Vec<(T, u64)>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), items: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn number(&mut self, item: &T, version: u64) -> u32 {
        if let Some(number) = self.numbers.get(item) {
            return *number;
        }
        let number = self.items.len() as u32;
        self.numbers.insert(item.clone(), number);
        self.items.push((item.clone(), version));
        number
    }

    fn since(&self, version: u64) -> Vec<T> {
        let known = self.items.partition_point(|(_, added)| *added <= version);
        self.items[known..].iter().map(|(item, _)| item.clone()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    kind: u32,
    state: ChainState,
    class: u32,
    agent: Option<u32>,
    attempt: u32,
    registered: i64,
    started: Option<i64>,
    ended: Option<i64>,
    /// Its agent has it, but only in advance.
    is_held: bool,
}

/// All chains of a run.
#[derive(Debug)]
pub(crate) struct Board {
    epoch: String,
    version: u64,
    origin: i64,
    over: bool,
    steps: Table<Name>,
    kinds: Table<Vec<u32>>,
    agents: Table<Name>,
    classes: Table<Name>,
    /// Each with the version that changed it last. Chains of a run are numbered without gaps.
    rows: Vec<(Row, u64)>,
    mishaps: Vec<(Mishap, u64)>,
    known_mishaps: HashSet<(u64, u32)>,
    looked: Option<Instant>,
    rechecked: Instant,
}

/// What is read of a payload.
#[derive(Deserialize)]
struct Tasks {
    executables: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    id: Name,
}

impl Board {
    fn new(run: &Run) -> Self {
        Self {
            epoch: catena_data::random_hex(8).unwrap_or_default(),
            version: 0,
            origin: run.created,
            over: false,
            steps: Table::default(),
            kinds: Table::default(),
            agents: Table::default(),
            classes: Table::default(),
            rows: Vec::new(),
            mishaps: Vec::new(),
            known_mishaps: HashSet::new(),
            looked: None,
            rechecked: Instant::now(),
        }
    }

    /// Takes in what the store knows, unless that was done just now.
    async fn refresh(&mut self, store: &dyn Store, run: &Run, aging: Duration) -> Result<(), StoreError> {
        if self.looked.is_some_and(|at| at.elapsed() < PATIENCE) {
            return Ok(());
        }
        self.version += 1;
        let known = self.rows.len() as u64;
        let first_open = if self.rechecked.elapsed() > RECHECK {
            self.rechecked = Instant::now();
            0
        } else {
            let open = |(row, _): &(Row, u64)| row.state != ChainState::Succeeded;
            self.rows.iter().position(open).map_or(known, |i| i as u64)
        };
        self.read(store, run.id, first_open..known, false, aging).await?;
        self.read(store, run.id, known..u64::MAX, true, aging).await?;
        let agents = store.agents().await?;
        self.tell_held(|agent| agents.iter().find(|a| a.id == *agent).map(|a| a.resources.cpus));
        for attempt in store.failed_attempts(run.id).await? {
            if self.known_mishaps.insert((attempt.key.seq, attempt.attempt)) {
                self.mishaps.push((Mishap::new(&attempt), self.version));
            }
        }
        self.over = run.state.is_final();
        self.looked = Some(Instant::now());
        Ok(())
    }

    async fn read(
        &mut self,
        store: &dyn Store,
        run: RunId,
        range: std::ops::Range<u64>,
        payload: bool,
        aging: Duration,
    ) -> Result<(), StoreError> {
        let mut from = range.start;
        while from < range.end {
            let limit = PAGE.min(usize::try_from(range.end - from).unwrap_or(PAGE));
            let filter = ChainFilter { from, limit, payload, ..ChainFilter::default() };
            let page = store.chains(run, &filter).await?;
            let Some(last) = page.last() else { break };
            from = last.key.seq + 1;
            for record in page.iter().take_while(|r| r.key.seq < range.end) {
                self.take(record, aging);
            }
            if page.len() < limit {
                break;
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn take(&mut self, record: &ChainRecord, aging: Duration) {
        let version = self.version;
        let place = record.key.seq as usize;
        let old = self.rows.get(place).copied();
        let kind = match old {
            Some((row, _)) => row.kind,
            None => self.kind(&record.payload),
        };
        let row = Row {
            kind,
            state: record.state,
            class: self.classes.number(&record.class, version),
            agent: record.agent.as_ref().map(|a| self.agents.number(a, version)),
            attempt: record.attempt,
            registered: i64::from(record.priority) * (aging.as_millis() as i64) - record.rank,
            started: record.started,
            ended: record.ended,
            is_held: old.is_some_and(|(row, _)| row.is_held && record.state == ChainState::Running),
        };
        match old {
            Some((known, _)) if known == row => {}
            Some(_) => self.rows[place] = (row, version),
            // Chains are numbered without gaps; one that follows a gap nevertheless is not shown before the gap is filled.
            None if place == self.rows.len() => self.rows.push((row, version)),
            None => {}
        }
    }

    /// Agents are given more than they can execute at once, so that they need not wait. Nobody tells when they begin with
    /// what they hold in advance; it is taken to be what was given last and does not fit beside the rest.
    fn tell_held(&mut self, cpus: impl Fn(&Name) -> Option<u64>) {
        let needs = |class: &Name| Class::from_key(class).map_or(1000, |c| c.resources.cpus);
        let needs: Vec<u64> = self.classes.items.iter().map(|(class, _)| needs(class)).collect();
        let mut free: Vec<u64> =
            self.agents.items.iter().map(|(agent, _)| cpus(agent).unwrap_or(u64::MAX)).collect();
        let running = self.rows.iter().enumerate().filter(|(_, (row, _))| row.state == ChainState::Running);
        let mut running: Vec<(Option<i64>, usize)> = running.map(|(i, (row, _))| (row.started, i)).collect();
        running.sort_unstable();
        for (_, place) in running {
            let (row, changed) = &mut self.rows[place];
            let Some(agent) = row.agent else { continue };
            let rest = free[agent as usize].checked_sub(needs[row.class as usize]);
            free[agent as usize] = rest.unwrap_or(0);
            if row.is_held != rest.is_none() {
                row.is_held = rest.is_none();
                *changed = self.version;
            }
        }
    }

    fn kind(&mut self, payload: &[u8]) -> u32 {
        let version = self.version;
        let tasks = serde_json::from_slice(payload).unwrap_or(Tasks { executables: Vec::new() });
        let steps = &mut self.steps;
        let name = |task: &Task| steps.number(&Name::new(step_name(&task.id)), version);
        let kind: Vec<u32> = tasks.executables.iter().map(name).collect();
        self.kinds.number(&kind, version)
    }

    /// What has changed since a version of this board; everything if that is not one of its versions.
    fn since(&self, epoch: Option<&str>, after: u64) -> BoardView {
        let after = if epoch == Some(&self.epoch) { after } else { 0 };
        let mut chains = Columns::default();
        let time = |t: i64| t - self.origin;
        for (number, (row, _)) in self.rows.iter().enumerate().filter(|(_, (_, changed))| *changed > after) {
            chains.chain.push(number as u64);
            chains.kind.push(row.kind);
            chains.state.push(row.state.code() as u8);
            chains.class.push(row.class);
            chains.agent.push(row.agent.map_or(-1, i64::from));
            chains.attempt.push(row.attempt);
            chains.registered.push(time(row.registered));
            chains.started.push(row.started.filter(|_| !row.is_held).map_or(-1, time));
            chains.ended.push(row.ended.filter(|_| row.state.is_final()).map_or(-1, time));
        }
        let capabilities = |key: Name| Class::from_key(&key).map(|c| c.capabilities).unwrap_or_default();
        BoardView {
            epoch: self.epoch.clone(),
            version: self.version,
            origin: self.origin,
            over: self.over,
            steps: self.steps.since(after),
            kinds: self.kinds.since(after),
            agents: self.agents.since(after),
            classes: self.classes.since(after).into_iter().map(capabilities).collect(),
            chains,
            mishaps: self.mishaps.iter().filter(|(_, at)| *at > after).map(|(m, _)| m.clone()).collect(),
        }
    }
}

/// The boards of runs that somebody looks at.
#[derive(Default)]
pub(crate) struct Boards {
    /// The one that was asked for last comes last.
    kept: Mutex<Vec<(RunId, Arc<tokio::sync::Mutex<Board>>)>>,
}

impl Boards {
    /// What is new on the board of a run.
    pub(crate) async fn since(
        &self,
        store: &dyn Store,
        run: &Run,
        aging: Duration,
        (epoch, after): (Option<&str>, u64),
    ) -> Result<BoardView, StoreError> {
        let board = self.board(run);
        let mut board = board.lock().await;
        board.refresh(store, run, aging).await?;
        Ok(board.since(epoch, after))
    }

    fn board(&self, run: &Run) -> Arc<tokio::sync::Mutex<Board>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(id, _)| *id == run.id);
        let found = match place {
            Some(place) => kept.remove(place),
            None => (run.id, Arc::new(tokio::sync::Mutex::new(Board::new(run)))),
        };
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(found.clone());
        found.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::chain::ChainKey;
    use catena_store::RunState;

    fn run() -> Run {
        Run {
            id: RunId(1),
            name: String::new(),
            source: String::new(),
            fingerprint: String::new(),
            state: RunState::Running,
            created: 1000,
            started: None,
            ended: None,
            error: None,
            cancel_requested: false,
            results: None,
            tasks: 0,
            skipped: 0,
            priority: 0,
            held: false,
            controller: None,
        }
    }

    fn record(seq: u64, state: ChainState, task: &str) -> ChainRecord {
        ChainRecord {
            key: ChainKey { run: RunId(1), seq },
            state,
            attempt: 1,
            class: "{}".into(),
            priority: 0,
            rank: -1500,
            losses: 0,
            failures: 0,
            agent: Some("a".into()),
            started: Some(1600),
            ended: Some(1700),
            not_before: 0,
            history: Vec::new(),
            payload: format!(r#"{{"id": "c", "executables": [{{"id": "{task}"}}]}}"#).into_bytes(),
            result: Vec::new(),
        }
    }

    #[test]
    fn what_an_agent_holds_in_advance_has_not_started() {
        let mut board = Board::new(&run());
        board.version = 1;
        for seq in 0..3 {
            board.take(&record(seq, ChainState::Running, "cp"), Duration::ZERO);
        }
        board.tell_held(|_| Some(2000));
        assert_eq!(board.since(None, 0).chains.started, [600, 600, -1]);
        board.version = 2;
        board.take(&record(0, ChainState::Succeeded, ""), Duration::ZERO);
        board.take(&record(2, ChainState::Running, ""), Duration::ZERO);
        board.tell_held(|_| Some(2000));
        let new = board.since(Some(&board.epoch), 1);
        assert_eq!((&new.chains.chain[..], &new.chains.started[..]), (&[0, 2][..], &[600, 600][..]));
    }

    #[test]
    fn those_who_look_are_told_what_is_new_since_they_looked_last() {
        let mut board = Board::new(&run());
        board.version = 1;
        for seq in 0..3 {
            board.take(&record(seq, ChainState::Running, &format!("cp${seq}")), Duration::ZERO);
        }
        let all = board.since(None, 7);
        assert_eq!((all.chains.chain.len(), &all.steps[..]), (3, &["cp".into()][..]));
        assert_eq!((all.chains.registered[0], all.chains.started[0], all.chains.ended[0]), (500, 600, -1));
        board.version = 2;
        board.take(&record(0, ChainState::Running, ""), Duration::ZERO);
        board.take(&record(1, ChainState::Succeeded, ""), Duration::ZERO);
        board.take(&record(3, ChainState::Registered, "sort"), Duration::ZERO);
        let new = board.since(Some(&board.epoch), 1);
        assert_eq!((&new.chains.chain[..], &new.chains.state[..]), (&[1, 3][..], &[3, 0][..]));
        assert_eq!((new.steps.len(), new.agents.len(), new.chains.ended[0]), (1, 0, 700));
        assert_eq!(board.since(Some("another"), 2).chains.chain.len(), 4, "it begins anew");
    }
}
