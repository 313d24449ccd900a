//! Stops asking for machines that cannot be made.

use std::time::Duration;

/// A circuit breaker: waits longer after each failure, gives up for a while after several, then tries once.
#[derive(Clone, Debug, Default)]
pub struct Breaker {
    failures: u32,
    /// Nothing is tried before this time, in milliseconds.
    not_before: i64,
    reason: String,
}

impl Breaker {
    /// How many may be tried at this time.
    pub fn allows(&self, now: i64) -> u32 {
        match self.failures {
            0 => u32::MAX,
            _ if now < self.not_before => 0,
            _ => 1,
        }
    }

    /// When something may be tried again, and why not earlier.
    pub fn closed_again(&self, now: i64) -> Option<(i64, &str)> {
        (now < self.not_before).then_some((self.not_before, self.reason.as_str()))
    }

    /// It worked.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// It did not work.
    pub fn failed(&mut self, reason: String, attempts: u32, delay: Duration, lock: Duration, now: i64) {
        self.failures = self.failures.saturating_add(1);
        let pause = if self.failures >= attempts {
            lock
        } else {
            delay.saturating_mul(1 << (self.failures - 1).min(16)).min(lock)
        };
        self.not_before = now + pause.as_millis() as i64;
        self.reason = reason;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_it_gives_up_for_a_while_and_tries_once() {
        let mut b = Breaker::default();
        assert_eq!(b.allows(0), u32::MAX);
        let fail = |b: &mut Breaker, now| {
            b.failed("no room".to_owned(), 3, Duration::from_millis(10), Duration::from_secs(1), now);
        };
        fail(&mut b, 0);
        assert_eq!((b.allows(9), b.allows(10)), (0, 1));
        fail(&mut b, 10);
        assert_eq!((b.allows(29), b.allows(30)), (0, 1));
        fail(&mut b, 30);
        assert_eq!((b.allows(1029), b.allows(1030)), (0, 1));
        assert_eq!(b.closed_again(1029), Some((1030, "no room")));
        fail(&mut b, 1030);
        assert_eq!(b.allows(2029), 0, "one failure is enough now");
        b.succeeded();
        assert_eq!(b.allows(0), u32::MAX);
    }
}
