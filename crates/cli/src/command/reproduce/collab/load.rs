//! Many real clients: how soon what they do is acknowledged, and what becomes of them when their instance is killed.

use super::client::{Client, Door};
use catena_compose::lock::Session;
use catena_compose::model::{NodeId, WorkflowId};
use catena_compose::room::{Ask, Change, Code, Operation, Said};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Every client changes something so often.
const EVERY: Duration = Duration::from_secs(5);
/// So many clients connect at the same time.
const AT_ONCE: usize = 64;

/// What came of a load.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// How long operations took to be acknowledged, in milliseconds.
    pub(super) millis: Vec<f64>,
    /// What went wrong.
    pub(super) errors: Vec<String>,
    /// Operations that were acknowledged and that the server does not know of.
    pub(super) lost: u64,
    /// How long after the kill each client had something acknowledged again, in seconds.
    pub(super) resumed: Vec<f64>,
}

/// What clients share.
pub(super) struct Crowd {
    pub(super) doors: Vec<Door>,
    pub(super) compositions: usize,
    pub(super) parts: usize,
    pub(super) lasts: Duration,
    /// Set when the first instance is killed.
    pub(super) killed: AtomicBool,
    connecting: Semaphore,
}

impl Crowd {
    pub(super) fn new(doors: Vec<Door>, compositions: usize, parts: usize, lasts: Duration) -> Arc<Self> {
        let (killed, connecting) = (AtomicBool::new(false), Semaphore::new(AT_ONCE));
        Arc::new(Self { doors, compositions, parts, lasts, killed, connecting })
    }

    /// The door that is open.
    fn door(&self) -> &Door {
        let first = usize::from(self.killed.load(Ordering::Relaxed) && self.doors.len() > 1);
        &self.doors[first]
    }

    async fn join(&self, number: usize, session: Option<Session>) -> Result<(Client, u64), String> {
        let composition = format!("c{}", number % self.compositions);
        let joined = {
            let _permit = self.connecting.acquire().await.map_err(|e| e.to_string())?;
            Client::join(self.door(), &composition, session, &format!("user{number}")).await
        };
        joined.map(|(client, state)| (client, state.last_op))
    }
}

/// What one client does, and what comes of it.
async fn client(crowd: Arc<Crowd>, number: usize) -> Loaded {
    let mut loaded = Loaded::default();
    let (mut client, _) = match crowd.join(number, None).await {
        Ok(joined) => joined,
        Err(e) => {
            loaded.errors.push(e);
            return loaded;
        }
    };
    let (mut acknowledged, mut op) = (0, 0);
    let spread = EVERY.mul_f64((number as f64 * 0.618_034).fract());
    let mut due = Instant::now() + spread;
    let end = Instant::now() + crowd.lasts;
    let mut cut = None;
    while due < end {
        let mut alive = client.pause(due).await.is_ok();
        op += 1;
        let asked = Instant::now();
        loop {
            if alive {
                match client.ask(Ask::Do(operation(&crowd, number, op))).await {
                    Ok(Said::Done { .. }) => break,
                    // It was done before the answer got lost.
                    Ok(Said::Refused { error, .. }) if error.code == Code::Replayed && cut.is_some() => break,
                    Ok(Said::Refused { error, .. }) if error.code == Code::Moved => {}
                    Ok(Said::Refused { error, .. }) => {
                        loaded.errors.push(error.message);
                        break;
                    }
                    Err(e) if !crowd.killed.load(Ordering::Relaxed) => {
                        loaded.errors.push(e);
                        return loaded;
                    }
                    Ok(Said::Event(_)) | Err(_) => {}
                }
            }
            // The instance is gone. Another one lets the session come back.
            cut.get_or_insert(asked);
            let session = Some(client.session);
            match crowd.join(number, session).await {
                Ok((again, last_op)) => {
                    loaded.lost += u64::from(last_op < acknowledged);
                    (client, alive) = (again, true);
                }
                Err(_) if Instant::now() < end + EVERY => {
                    alive = false;
                    sleep(Duration::from_millis(100)).await;
                }
                Err(e) => {
                    loaded.errors.push(e);
                    return loaded;
                }
            }
        }
        acknowledged = op;
        match cut.take() {
            Some(since) => loaded.resumed.push(since.elapsed().as_secs_f64()),
            None => loaded.millis.push(asked.elapsed().as_secs_f64() * 1e3),
        }
        due += EVERY;
    }
    if let Ok(Said::Done { ok, .. }) = client.ask(Ask::State).await
        && ok.state.is_none_or(|s| s.last_op < acknowledged)
    {
        loaded.lost += 1;
    }
    loaded
}

fn operation(crowd: &Crowd, number: usize, op: u64) -> Operation {
    let place = number / crowd.compositions;
    let change = Change::SetNode {
        workflow: WorkflowId::new(format!("w{}", place / crowd.parts)),
        id: NodeId::new(format!("n{}", place % crowd.parts)),
        label: format!("{number} {op}"),
        after: Vec::new(),
    };
    Operation { op, changes: vec![change], ..Operation::default() }
}

/// Lets all clients do what they do.
pub(super) async fn run(crowd: Arc<Crowd>, clients: usize) -> Loaded {
    let tasks: Vec<_> = (0..clients).map(|n| tokio::spawn(client(crowd.clone(), n))).collect();
    let mut all = Loaded::default();
    for task in tasks {
        match task.await {
            Ok(one) => {
                all.millis.extend(one.millis);
                all.errors.extend(one.errors);
                all.lost += one.lost;
                all.resumed.extend(one.resumed);
            }
            Err(e) => all.errors.push(e.to_string()),
        }
    }
    all.millis.sort_by(f64::total_cmp);
    all.resumed.sort_by(f64::total_cmp);
    all
}
