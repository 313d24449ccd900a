//! What happens when a task fails, hangs or takes too long.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How often, and after which pause, something that failed is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryPolicy {
    /// Attempts in total; -1 means no limit, 0 means the task is skipped.
    pub max_attempts: i32,
    /// Pause before the second attempt, in milliseconds.
    #[serde(default)]
    pub delay: u64,
    /// Each further pause is this many times longer.
    #[serde(default = "one")]
    pub exponential_backoff: u32,
    /// No pause is longer than this, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<u64>,
    /// After which exit codes it is tried again; after all, unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitRule>,
}

/// Exit codes after which something is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExitRule {
    /// Only this one.
    Only(i32),
    /// All but this one.
    Except(i32),
}

fn one() -> u32 {
    1
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 1, delay: 0, exponential_backoff: 1, max_delay: None, exit: None }
    }
}

impl RetryPolicy {
    /// Whether another attempt may follow `attempts` failed ones.
    pub fn allows_another(&self, attempts: u32) -> bool {
        self.max_attempts < 0 || i64::from(attempts) < i64::from(self.max_attempts)
    }

    /// Whether it is tried again after this exit code, if it exited.
    pub fn applies_to(&self, code: Option<i32>) -> bool {
        match self.exit {
            None => true,
            Some(ExitRule::Only(wanted)) => code == Some(wanted),
            Some(ExitRule::Except(unwanted)) => code != Some(unwanted),
        }
    }

    /// The pause after the given number of failed attempts: `delay * backoff^(n-1)`, capped.
    pub fn pause_after(&self, attempts: u32) -> Duration {
        let factor = u64::from(self.exponential_backoff).saturating_pow(attempts.saturating_sub(1));
        let pause = self.delay.saturating_mul(factor);
        Duration::from_millis(self.max_delay.map_or(pause, |max| pause.min(max)))
    }
}

/// A limit in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeoutPolicy {
    /// The limit in milliseconds.
    pub timeout: u64,
    /// Whether reaching the limit is an error; otherwise the task counts as cancelled.
    #[serde(default)]
    pub error_on_timeout: bool,
}

impl TimeoutPolicy {
    /// The limit as a duration.
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_capped() {
        let p = RetryPolicy {
            max_attempts: 5,
            delay: 1000,
            exponential_backoff: 2,
            max_delay: Some(3000),
            exit: None,
        };
        let pauses: Vec<u64> = (1..5).map(|n| p.pause_after(n).as_millis() as u64).collect();
        assert_eq!(pauses, [1000, 2000, 3000, 3000]);
        assert!(p.allows_another(4) && !p.allows_another(5));
        assert!(RetryPolicy { max_attempts: -1, ..p }.allows_another(1_000_000));
    }
}
