//! Work giving, as in the paper on ADAGE (section III.D): an agent that has more to do than its neighbours offers them
//! some of it.
//!
//! The paper asks the whole neighbourhood in every round and keeps copies of what it gives. Here an agent asks only
//! while something waits that is its own, and what it gives it does not have any more: two executions of everything
//! cost more than they bring.

use catena_model::Name;
use catena_model::chain::Neighbour;
use std::collections::BTreeMap;

/// How soon an agent asks again: at first, and at most. It doubles with every round in vain.
const FIRST_WAIT: i64 = 1;
const LONGEST_WAIT: i64 = 1024;
/// How long answers may take.
const PATIENCE: i64 = 100;

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Giving {
    /// Nothing.
    Nothing,
    /// Ask these how much they have to do.
    Ask(Vec<Name>),
    /// Offer something to this one.
    Offer(Neighbour),
}

/// Decides when an agent gives something away, and to whom. Times are milliseconds.
#[derive(Clone, Debug)]
pub struct Giver {
    neighbours: Vec<Name>,
    wait: i64,
    next: i64,
    /// Those who were asked, and what they have answered.
    asked: Option<(i64, BTreeMap<Name, Option<Neighbour>>)>,
}

impl Default for Giver {
    fn default() -> Self {
        Self { neighbours: Vec::new(), wait: FIRST_WAIT, next: 0, asked: None }
    }
}

impl Giver {
    /// These are the neighbours from now on.
    pub fn set_neighbours(&mut self, neighbours: Vec<Name>) {
        self.neighbours = neighbours;
    }

    /// There is more to do than before: it may be worth asking at once.
    pub fn got_work(&mut self, now: i64) {
        self.wait = FIRST_WAIT;
        self.next = self.next.min(now + FIRST_WAIT);
    }

    /// A neighbour has answered.
    pub fn answered(&mut self, neighbour: Neighbour) {
        if let Some((_, answers)) = &mut self.asked
            && let Some(answer) = answers.get_mut(&neighbour.agent)
        {
            *answer = Some(neighbour);
        }
    }

    /// When to call [`Giver::tick`] again, if anything waits.
    pub fn next(&self) -> i64 {
        match &self.asked {
            Some((since, answers)) if answers.values().any(Option::is_none) => since + PATIENCE,
            Some((since, _)) => *since,
            None => self.next,
        }
    }

    /// Time has passed, or somebody has answered. So many chains of its own wait here, on so many processors.
    pub fn tick(&mut self, now: i64, own: usize, cpus: u64) -> Giving {
        if let Some((since, answers)) = &self.asked {
            let is_complete = answers.values().all(Option::is_some) || now - since >= PATIENCE;
            if !is_complete {
                return Giving::Nothing;
            }
            let answers = self.asked.take().map(|(_, a)| a).unwrap_or_default();
            return match Self::choose(answers.into_values().flatten(), own, cpus) {
                Some(neighbour) => Giving::Offer(neighbour),
                None => self.in_vain(now),
            };
        }
        if now < self.next {
            return Giving::Nothing;
        }
        if own == 0 || self.neighbours.is_empty() {
            return self.in_vain(now);
        }
        self.asked = Some((now, self.neighbours.iter().map(|n| (n.clone(), None)).collect()));
        Giving::Ask(self.neighbours.clone())
    }

    /// What was offered has come to something, or not.
    pub fn offered(&mut self, now: i64, gave: bool) {
        if gave {
            self.wait = FIRST_WAIT;
            self.next = now + FIRST_WAIT;
        } else {
            self.in_vain(now);
        }
    }

    fn in_vain(&mut self, now: i64) -> Giving {
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.next = now + self.wait;
        Giving::Nothing
    }

    /// The neighbour that has least to do, if nobody has more to do than this agent.
    fn choose(answers: impl Iterator<Item = Neighbour>, own: usize, cpus: u64) -> Option<Neighbour> {
        let load = own as f64 / (cpus.max(1) as f64 / 1000.0);
        let answers: Vec<Neighbour> = answers.collect();
        if answers.iter().any(|a| a.load() > load) {
            return None;
        }
        let key = |n: &Neighbour| (!n.is_idle, n.load());
        let least = answers.into_iter().min_by(|a, b| {
            let ((busy_a, load_a), (busy_b, load_b)) = (key(a), key(b));
            busy_a.cmp(&busy_b).then(load_a.total_cmp(&load_b))
        })?;
        (least.is_idle || least.load() + 1.0 < load).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_model::Resources;

    fn neighbour(agent: &str, waiting: usize, is_idle: bool) -> Neighbour {
        let (capabilities, resources) = (Vec::new(), Resources { cpus: 1000, ..Resources::default() });
        Neighbour { agent: agent.into(), capabilities, resources, waiting, is_idle }
    }

    fn giver() -> Giver {
        let mut giver = Giver::default();
        giver.set_neighbours(vec!["b".into(), "c".into()]);
        giver
    }

    #[test]
    fn who_has_most_to_do_offers_to_who_has_least() {
        let mut giver = giver();
        assert_eq!(giver.tick(0, 5, 1000), Giving::Ask(vec!["b".into(), "c".into()]));
        giver.answered(neighbour("b", 3, false));
        assert_eq!(giver.tick(1, 5, 1000), Giving::Nothing, "somebody has not answered yet");
        giver.answered(neighbour("c", 0, true));
        assert_eq!(giver.tick(2, 5, 1000), Giving::Offer(neighbour("c", 0, true)));
        giver.offered(2, true);
        assert_eq!(giver.next(), 3, "after a success at once again");
    }

    #[test]
    fn who_has_less_to_do_than_others_gives_nothing_and_waits_longer_and_longer() {
        let mut giver = giver();
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..12 {
            assert!(matches!(giver.tick(now, 2, 1000), Giving::Ask(_)));
            giver.answered(neighbour("b", 9, false));
            giver.answered(neighbour("c", 0, true));
            assert_eq!(giver.tick(now, 2, 1000), Giving::Nothing);
            waits.push(giver.next() - now);
            now = giver.next();
        }
        assert_eq!(waits[..4], [2, 4, 8, 16]);
        assert_eq!(waits[11], LONGEST_WAIT);
        giver.got_work(now);
        assert!(giver.next() <= now + FIRST_WAIT, "there is more to do");
    }

    #[test]
    fn who_does_not_answer_is_not_waited_for() {
        let mut giver = giver();
        giver.tick(0, 5, 1000);
        giver.answered(neighbour("b", 0, true));
        assert_eq!(giver.tick(PATIENCE - 1, 5, 1000), Giving::Nothing);
        assert_eq!(giver.tick(PATIENCE, 5, 1000), Giving::Offer(neighbour("b", 0, true)));
    }

    #[test]
    fn with_nothing_of_its_own_or_nobody_around_an_agent_asks_nobody() {
        assert_eq!(giver().tick(0, 0, 1000), Giving::Nothing);
        assert_eq!(Giver::default().tick(0, 9, 1000), Giving::Nothing);
    }

    #[test]
    fn what_would_wait_elsewhere_as_well_stays() {
        let mut giver = giver();
        giver.tick(0, 3, 1000);
        giver.answered(neighbour("b", 2, false));
        giver.answered(neighbour("c", 3, false));
        assert_eq!(giver.tick(1, 3, 1000), Giving::Nothing);
    }
}
