//! What nobody can know in advance. It depends on the seed and on what it is about, never on who asks when, so that every
//! strategy meets the same fate.

use crate::cluster::Chance;
use crate::random::Random;
use crate::time::{Nanos, nanos, seconds};

/// Draws what [`Chance`] leaves open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Luck {
    chance: Chance,
    seed: u64,
}

/// What a number is for; different things must not be alike.
#[derive(Clone, Copy)]
enum Purpose {
    Duration = 1,
    Straggler,
    Failure,
    Lifetime,
}

impl Luck {
    pub(crate) fn new(chance: Chance, seed: u64) -> Self {
        Self { chance, seed }
    }

    fn random(&self, purpose: Purpose, what: u32, time: u32) -> Random {
        let about = (purpose as u64) << 60 ^ u64::from(time) << 32 ^ u64::from(what);
        let mut random = Random::new(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ about);
        // Neighbours begin alike.
        random.next();
        random
    }

    /// How long an execution really computes.
    pub(crate) fn duration(&self, task: u32, execution: u32, expected: Nanos) -> Nanos {
        let Chance { spread, stragglers, factor, .. } = self.chance;
        let mut times = 1.0;
        if spread > 0.0 {
            times += spread * (2.0 * self.random(Purpose::Duration, task, 0).unit() - 1.0);
        }
        if stragglers > 0.0 && self.random(Purpose::Straggler, task, execution).unit() <= stragglers {
            times *= factor;
        }
        // What is certain stays exact.
        if times.to_bits() == 1f64.to_bits() { expected } else { nanos(seconds(expected) * times) }
    }

    /// After how much of its time an execution fails, if it does.
    pub(crate) fn failure(&self, task: u32, execution: u32, duration: Nanos) -> Option<Nanos> {
        if self.chance.failures <= 0.0 {
            return None;
        }
        let mut random = self.random(Purpose::Failure, task, execution);
        let fails = random.unit() <= self.chance.failures;
        fails.then(|| nanos(seconds(duration) * random.unit()))
    }

    /// How long a node lives this time, if nodes die.
    pub(crate) fn lifetime(&self, node: u32, deaths: u32) -> Option<Nanos> {
        let mean = seconds(self.chance.lifetime?);
        Some(nanos(mean * self.random(Purpose::Lifetime, node, deaths).exponential()).max(1))
    }

    pub(crate) fn repair(&self) -> Nanos {
        self.chance.repair
    }
}
