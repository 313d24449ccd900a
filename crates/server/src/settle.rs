//! What the end of an attempt means for its chain.

use catena_model::RetryPolicy;
use catena_model::chain::{
    Attempt, ChainState, History, Outcome, ProcessChain, Produced, TaskFailure, TaskResult, Unsupplied,
};
use catena_store::{Batch, Finish, Requeue};

/// So many agents in vain are given a chain whose inputs cannot be brought to them.
const MAX_UNSUPPLIED: u32 = 8;
/// The same, if they have no room.
const MAX_NO_ROOM: u32 = 3;
/// How long such a chain waits after the first of them, in milliseconds. It doubles with every one.
const UNSUPPLIED_PAUSE: i64 = 100;

/// An attempt has ended.
pub(crate) struct Ended<'a> {
    /// Which one.
    pub(crate) attempt: Attempt,
    /// At which chain.
    pub(crate) chain: &'a ProcessChain,
    /// How many attempts had failed before.
    pub(crate) failures: u32,
    /// When it started and ended, in milliseconds since 1970.
    pub(crate) time: (i64, i64),
    /// What it has written, where agents have files of their own.
    pub(crate) files: Vec<Produced>,
    /// When it began what.
    pub(crate) history: History,
}

/// How a chain stands after an attempt, and why it failed, if it did.
pub(crate) struct Settled {
    pub(crate) state: ChainState,
    pub(crate) failure: Option<Box<TaskFailure>>,
}

impl Ended<'_> {
    /// Decides, and adds what follows to a batch. `results` is the result of a success as it is kept.
    pub(crate) fn settle(
        &self,
        outcome: Outcome,
        results: Vec<u8>,
        may_retry: bool,
        now: i64,
        batch: &mut Batch,
    ) -> Settled {
        let (started, ended) = self.time;
        let finish = |state, failure: Option<&TaskFailure>, result| Finish {
            attempt: self.attempt,
            state,
            started,
            ended,
            result,
            error: failure.and_then(|f| serde_json::to_string(f).ok()),
            files: self.files.clone(),
            history: self.history.clone(),
        };
        // A failure that is a result is kept as one.
        let kept = |failure: &TaskFailure| {
            let millis = (ended - started) as f64;
            let failed = TaskResult {
                started,
                millis,
                failure: Some(Box::new(failure.clone())),
                ..TaskResult::default()
            };
            let kept =
                self.chain.failure_is_result.then(|| serde_json::to_vec(&[failed]).unwrap_or_default());
            kept.unwrap_or_default()
        };
        let settled = |state, failure| Settled { state, failure };
        match outcome {
            Outcome::Succeeded(_) => {
                batch.finishes.push(finish(ChainState::Succeeded, None, results));
                settled(ChainState::Succeeded, None)
            }
            Outcome::Interrupted => {
                batch.requeues.push(Requeue { attempt: self.attempt, failure: None, not_before: 0 });
                settled(ChainState::Registered, None)
            }
            Outcome::Unsupplied(why) => {
                // Whoever has what it reads may be on the way back, or others may be able to take it.
                let vain = self.attempt.number.saturating_sub(self.failures);
                if vain < if why.no_room { MAX_NO_ROOM } else { MAX_UNSUPPLIED } {
                    let not_before = now + (UNSUPPLIED_PAUSE << vain);
                    batch.requeues.push(Requeue { attempt: self.attempt, failure: None, not_before });
                    return settled(ChainState::Paused, None);
                }
                let task = self.chain.executables.first().map(|t| t.id.clone()).unwrap_or_default();
                let Unsupplied { message, help, .. } = *why;
                let failure = TaskFailure { task, message, help, ..TaskFailure::default() };
                batch.finishes.push(finish(ChainState::Failed, Some(&failure), kept(&failure)));
                settled(ChainState::Failed, Some(Box::new(failure)))
            }
            Outcome::Cancelled(failure) => {
                batch.finishes.push(finish(ChainState::Cancelled, Some(&failure), kept(&failure)));
                settled(ChainState::Cancelled, Some(failure))
            }
            Outcome::Failed(failure) => {
                let tries = self.failures + 1;
                let again = |r: &RetryPolicy| r.allows_another(tries) && r.applies_to(failure.exit_code);
                let policy = self.chain.retries.filter(|r| may_retry && again(r));
                let Some(policy) = policy else {
                    batch.finishes.push(finish(ChainState::Failed, Some(&failure), kept(&failure)));
                    return settled(ChainState::Failed, Some(failure));
                };
                let not_before = now + policy.pause_after(tries).as_millis() as i64;
                let error = serde_json::to_string(&failure).unwrap_or_default();
                let failed = Some((started, ended, error));
                batch.requeues.push(Requeue { attempt: self.attempt, failure: failed, not_before });
                settled(ChainState::Paused, Some(failure))
            }
        }
    }
}
