//! Decides which machines to make and which agents to keep.

use crate::breaker::Breaker;
use crate::setup::{Pool, Setup};
use catena_model::{Name, Resources};
use catena_schedule::Class;
use std::collections::{BTreeMap, BTreeSet};

/// Chains that wait although every agent has all it can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Their class.
    pub class: Class,
    /// How many.
    pub count: u64,
    /// The highest rank among them.
    pub rank: i64,
}

/// An agent that is there, whoever made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub id: Name,
    /// What it can do.
    pub capabilities: Vec<Name>,
    /// How much it can do at once.
    pub resources: Resources,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Make a machine.
    Create {
        /// The name of its agent.
        id: Name,
        /// What it is made from.
        setup: usize,
    },
    /// Take a machine down.
    Destroy {
        /// Which one.
        id: Name,
        /// Why.
        reason: String,
        /// Whether it never came up.
        failed: bool,
    },
    /// Ask an agent to stay although it has nothing to do.
    KeepAlive(Name),
    /// Say why chains wait.
    Explain {
        /// The class.
        class: Class,
        /// Why.
        reason: String,
    },
}

#[derive(Clone, Debug)]
struct Machine {
    setup: usize,
    created: i64,
    joined: bool,
}

/// The machines of a cluster.
#[derive(Debug, Default)]
pub struct Fleet {
    setups: Vec<Setup>,
    pools: Vec<Pool>,
    breakers: Vec<Breaker>,
    machines: BTreeMap<Name, Machine>,
    agents: BTreeMap<Name, Agent>,
    demand: Vec<Demand>,
    explained: BTreeSet<(Class, String)>,
    /// Distinguishes the names of machines.
    prefix: String,
    next: u64,
}

impl Fleet {
    /// A fleet of machines that can be made from these setups. Their names begin with `prefix`.
    pub fn new(setups: Vec<Setup>, pools: Vec<Pool>, prefix: &str) -> Self {
        let breakers = setups.iter().map(|_| Breaker::default()).collect();
        Self { setups, pools, breakers, prefix: prefix.to_owned(), ..Self::default() }
    }

    /// The setups.
    pub fn setups(&self) -> &[Setup] {
        &self.setups
    }

    /// A machine that was asked for earlier.
    pub fn remember(&mut self, id: Name, setup: &Name, created: i64, joined: bool) {
        if let Some(setup) = self.setups.iter().position(|s| s.id == *setup) {
            self.machines.insert(id, Machine { setup, created, joined });
        }
    }

    /// What waits now.
    pub fn demand(&mut self, demand: Vec<Demand>) {
        self.demand = demand;
        self.demand.sort_by_key(|d| std::cmp::Reverse(d.rank));
    }

    /// The agents that are there now. Returns the machines whose agents have just joined.
    pub fn agents(&mut self, agents: Vec<Agent>) -> Vec<Name> {
        self.agents = agents.into_iter().map(|a| (a.id.clone(), a)).collect();
        let mut joined = Vec::new();
        for (id, machine) in &mut self.machines {
            if !machine.joined && self.agents.contains_key(id) {
                machine.joined = true;
                self.breakers[machine.setup].succeeded();
                joined.push(id.clone());
            }
        }
        joined
    }

    /// A machine could not be made.
    pub fn failed(&mut self, id: &Name, reason: String, now: i64) {
        if let Some(machine) = self.machines.remove(id) {
            let setup = &self.setups[machine.setup];
            self.breakers[machine.setup].failed(
                reason,
                setup.attempts,
                setup.retry_delay,
                setup.lock_after_failures,
                now,
            );
        }
    }

    fn count(&self, which: impl Fn(&Setup, &Machine) -> bool) -> u32 {
        self.machines.values().filter(|m| which(&self.setups[m.setup], m)).count() as u32
    }

    /// How many more machines of a setup may be made now.
    fn room(&self, index: usize, now: i64) -> u32 {
        let setup = &self.setups[index];
        let same = |s: &Setup| s.id == setup.id;
        let existing = self.count(|s, _| same(s));
        let starting = self.count(|s, m| same(s) && !m.joined);
        let mut room = setup.max.saturating_sub(existing);
        room = room.min(setup.max_create_concurrent.saturating_sub(starting));
        // After a failure those that are being made are the tries.
        room = room.min(match self.breakers[index].allows(now) {
            u32::MAX => u32::MAX,
            tries => tries.saturating_sub(starting),
        });
        for pool in self.pools.iter().filter(|p| p.includes(setup)) {
            if let Some(max) = pool.max {
                room = room.min(max.saturating_sub(self.count(|s, _| pool.includes(s))));
            }
        }
        room
    }

    fn create(&mut self, setup: usize, now: i64, orders: &mut Vec<Order>) {
        self.next += 1;
        let id = Name::new(format!("{}{}-{}", self.prefix, self.setups[setup].id, self.next));
        let machine = Machine { setup, created: now, joined: false };
        self.machines.insert(id.clone(), machine);
        orders.push(Order::Create { id, setup });
    }

    /// What to do now.
    pub fn decide(&mut self, now: i64) -> Vec<Order> {
        let mut orders = Vec::new();
        self.clean_up(now, &mut orders);
        self.keep_minimum(now, &mut orders);
        for demand in self.demand.clone() {
            self.serve(&demand, now, &mut orders);
        }
        orders
    }

    /// Takes down what has no agent any more, or never got one.
    fn clean_up(&mut self, now: i64, orders: &mut Vec<Order>) {
        let gone: Vec<(Name, Machine)> = self
            .machines
            .iter()
            .filter(|(id, m)| {
                let ready_within = self.setups[m.setup].ready_within.as_millis() as i64;
                let late = !m.joined && now - m.created > ready_within;
                let left = m.joined && !self.agents.contains_key(*id);
                late || left
            })
            .map(|(id, m)| (id.clone(), m.clone()))
            .collect();
        for (id, machine) in gone {
            let reason = if machine.joined {
                self.machines.remove(&id);
                "its agent has left".to_owned()
            } else {
                let reason = format!(
                    "its agent did not join within {} s",
                    self.setups[machine.setup].ready_within.as_secs()
                );
                self.failed(&id, reason.clone(), now);
                reason
            };
            orders.push(Order::Destroy { id, reason, failed: !machine.joined });
        }
    }

    /// Makes what should always be there, and asks it to stay.
    fn keep_minimum(&mut self, now: i64, orders: &mut Vec<Order>) {
        let mut kept: BTreeSet<Name> = BTreeSet::new();
        let mut keep = |fleet: &Self, min: u32, which: &dyn Fn(&Setup) -> bool| {
            let members = fleet.machines.iter().filter(|(_, m)| m.joined && which(&fleet.setups[m.setup]));
            let mut members: Vec<(i64, &Name)> = members.map(|(id, m)| (m.created, id)).collect();
            members.sort_unstable();
            kept.extend(members.iter().take(min as usize).map(|(_, id)| (*id).clone()));
        };
        for index in 0..self.setups.len() {
            let (id, min) = (self.setups[index].id.clone(), self.setups[index].min);
            keep(self, min, &|s| s.id == id);
            let missing = min.saturating_sub(self.count(|s, _| s.id == id));
            for _ in 0..missing.min(self.room(index, now)) {
                self.create(index, now, orders);
            }
        }
        for pool in self.pools.clone() {
            keep(self, pool.min, &|s| pool.includes(s));
            let mut missing = pool.min.saturating_sub(self.count(|s, _| pool.includes(s)));
            for index in 0..self.setups.len() {
                if !pool.includes(&self.setups[index]) {
                    continue;
                }
                let n = missing.min(self.room(index, now));
                missing -= n;
                for _ in 0..n {
                    self.create(index, now, orders);
                }
            }
        }
        orders.extend(kept.into_iter().map(Order::KeepAlive));
    }

    /// Makes machines for chains that wait.
    fn serve(&mut self, demand: &Demand, now: i64, orders: &mut Vec<Order>) {
        let class = &demand.class;
        // The best fit first: a machine with a GPU is not made for work that needs none.
        let mut able: Vec<(usize, usize)> = (0..self.setups.len())
            .filter(|i| self.setups[*i].slots(class) > 0)
            .map(|i| (self.setups[i].provides.len() - class.capabilities.len(), i))
            .collect();
        able.sort_unstable();
        let coming = |fleet: &Self| -> u64 {
            let starting = fleet.machines.values().filter(|m| !m.joined);
            starting.map(|m| fleet.setups[m.setup].slots(class)).sum()
        };
        let mut missing = demand.count.saturating_sub(coming(self));
        for (_, index) in &able {
            let slots = self.setups[*index].slots(class);
            let n = missing.div_ceil(slots).min(u64::from(self.room(*index, now)));
            for _ in 0..n {
                self.create(*index, now, orders);
            }
            missing = missing.saturating_sub(n * slots);
        }
        self.explain(class, &able, now, orders);
    }

    /// Says, once, why nobody can run a class now.
    fn explain(&mut self, class: &Class, able: &[(usize, usize)], now: i64, orders: &mut Vec<Order>) {
        let offers = |a: &Agent| {
            class.capabilities.iter().all(|c| a.capabilities.contains(c))
                && a.resources.fits(&class.resources)
        };
        if self.agents.values().any(offers)
            || self.machines.values().any(|m| self.setups[m.setup].slots(class) > 0)
        {
            return;
        }
        let reason = if able.is_empty() {
            self.why_not(class)
        } else {
            let locked = able.iter().find_map(|(_, i)| Some((*i, self.breakers[*i].closed_again(now)?)));
            let Some((index, (until, why))) = locked else { return };
            let seconds = (until - now) / 1000;
            format!(
                "machines of setup {} cannot be made ({why}); trying again in {seconds} s",
                self.setups[index].id
            )
        };
        // A waiting time that changes is no news.
        let news = reason.split("; trying").next().unwrap_or_default().to_owned();
        if self.explained.insert((class.clone(), news)) {
            orders.push(Order::Explain { class: class.clone(), reason });
        }
    }

    /// Why no setup can ever satisfy a class, naming the one that comes nearest.
    pub fn why_not(&self, class: &Class) -> String {
        let wanted = class.show_capabilities();
        let nearest = self.setups.iter().min_by_key(|s| s.lacks(class).len());
        match nearest {
            Some(s) => {
                let lacks = s.lacks(class).join(", ");
                format!("no setup can satisfy {wanted}; the nearest, {}, lacks {lacks}", s.id)
            }
            None => format!("no setup can satisfy {wanted}: there are no setups"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn class(capabilities: &[&str]) -> Class {
        Class { capabilities: capabilities.iter().map(Name::new).collect(), ..Class::default() }
    }

    fn setup(id: &str, provides: &[&str], min: u32, max: u32) -> Setup {
        Setup {
            id: id.into(),
            provides: provides.iter().map(Name::new).collect(),
            min,
            max,
            ..Setup::default()
        }
    }

    fn demand(fleet: &mut Fleet, wanted: &[(&[&str], u64)]) {
        fleet.demand(wanted.iter().map(|(c, n)| Demand { class: class(c), count: *n, rank: 0 }).collect());
    }

    fn created(orders: &[Order]) -> Vec<usize> {
        let setup = |o: &Order| if let Order::Create { setup, .. } = o { Some(*setup) } else { None };
        orders.iter().filter_map(setup).collect()
    }

    fn ids(orders: &[Order]) -> Vec<Name> {
        let id = |o: &Order| if let Order::Create { id, .. } = o { Some(id.clone()) } else { None };
        orders.iter().filter_map(id).collect()
    }

    fn join(fleet: &mut Fleet, ids: &[Name]) {
        let agent = |id: &Name| Agent {
            id: id.clone(),
            capabilities: Vec::new(),
            resources: Resources { cpus: 1000, ..Resources::default() },
        };
        fleet.agents(ids.iter().map(agent).collect());
    }

    #[test]
    fn several_machines_are_made_at_once_but_no_more_than_allowed() {
        let mut f = Fleet::new(vec![setup("a", &["x"], 0, 3)], Vec::new(), "m-");
        demand(&mut f, &[(&["x"], 10)]);
        assert_eq!(created(&f.decide(0)), [0, 0, 0]);
        assert!(created(&f.decide(1)).is_empty(), "they are on their way");
    }

    #[test]
    fn what_is_on_its_way_is_not_asked_for_again() {
        let mut f = Fleet::new(vec![setup("a", &["x"], 0, 9)], Vec::new(), "m-");
        demand(&mut f, &[(&["x"], 2)]);
        assert_eq!(created(&f.decide(0)).len(), 2);
        demand(&mut f, &[(&["x"], 3)]);
        assert_eq!(created(&f.decide(1)).len(), 1);
    }

    #[test]
    fn the_best_fit_is_made() {
        let mut f =
            Fleet::new(vec![setup("big", &["x", "gpu"], 0, 5), setup("small", &["x"], 0, 1)], Vec::new(), "");
        demand(&mut f, &[(&["x"], 2)]);
        assert_eq!(created(&f.decide(0)), [1, 0]);
    }

    #[test]
    fn pools_limit_setups_together() {
        let pool = Pool { capabilities: vec!["x".into()], min: 1, max: Some(2) };
        let mut f = Fleet::new(vec![setup("a", &["x"], 0, 5), setup("b", &["x", "y"], 0, 5)], vec![pool], "");
        assert_eq!(created(&f.decide(0)), [0], "the minimum");
        demand(&mut f, &[(&["x"], 10), (&["x", "y"], 10)]);
        assert_eq!(created(&f.decide(1)).len(), 1, "the maximum");
    }

    #[test]
    fn the_minimum_is_made_and_kept() {
        let mut f = Fleet::new(vec![setup("a", &[], 2, 3)], Vec::new(), "");
        let made = ids(&f.decide(0));
        assert_eq!(made.len(), 2);
        join(&mut f, &made);
        let orders = f.decide(1);
        assert_eq!(orders, [Order::KeepAlive(made[0].clone()), Order::KeepAlive(made[1].clone())]);
        join(&mut f, &made[..1]);
        let orders = f.decide(2);
        assert!(orders.contains(&Order::Destroy {
            id: made[1].clone(),
            reason: "its agent has left".to_owned(),
            failed: false
        }));
        assert_eq!(created(&orders).len(), 1, "a new one in its place");
    }

    #[test]
    fn one_at_a_time_if_that_is_asked_for() {
        let one = Setup { max_create_concurrent: 1, ..setup("a", &["x"], 0, 3) };
        let mut f = Fleet::new(vec![one], Vec::new(), "");
        demand(&mut f, &[(&["x"], 10)]);
        let first = ids(&f.decide(0));
        assert_eq!(first.len(), 1);
        assert!(f.decide(1).is_empty());
        join(&mut f, &first);
        assert_eq!(created(&f.decide(2)).len(), 1);
    }

    #[test]
    fn failures_are_waited_out() {
        let mut f = Fleet::new(vec![setup("a", &["x"], 0, 3)], Vec::new(), "");
        demand(&mut f, &[(&["x"], 10)]);
        for id in ids(&f.decide(0)) {
            f.failed(&id, "no room".to_owned(), 0);
        }
        let orders = f.decide(1);
        let [Order::Explain { reason, .. }] = &orders[..] else { panic!("{orders:?}") };
        assert!(reason.contains("no room"), "{reason}");
        assert!(f.decide(2).is_empty(), "said once");
        let later = 1000 * 60 * 60;
        assert_eq!(created(&f.decide(later)).len(), 1, "one try");
        assert!(created(&f.decide(later + 1)).is_empty());
    }

    #[test]
    fn a_machine_without_an_agent_is_taken_down() {
        let late = Setup { ready_within: Duration::from_secs(1), ..setup("a", &["x"], 0, 1) };
        let mut f = Fleet::new(vec![late], Vec::new(), "");
        demand(&mut f, &[(&["x"], 1)]);
        let made = ids(&f.decide(0));
        assert!(f.decide(1000).is_empty());
        assert!(
            matches!(&f.decide(1001)[..], [Order::Destroy { id, failed: true, .. }, ..] if *id == made[0])
        );
    }

    #[test]
    fn what_no_setup_can_satisfy_is_said_once_with_the_nearest() {
        let mut f = Fleet::new(vec![setup("small", &["x"], 0, 1)], Vec::new(), "");
        demand(&mut f, &[(&["x", "gpu"], 1)]);
        let orders = f.decide(0);
        let [Order::Explain { reason, .. }] = &orders[..] else { panic!("{orders:?}") };
        assert_eq!(reason, "no setup can satisfy {x, gpu}; the nearest, small, lacks `gpu`");
        assert!(f.decide(1).is_empty());
    }
}
