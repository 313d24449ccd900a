//! What the end of an attempt means for its chain.

use catena_model::RetryPolicy;
use catena_model::chain::{Attempt, ChainState, Outcome, ProcessChain, TaskFailure, TaskResult};
use catena_store::{Batch, Finish, Requeue};

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
