//! The stages of scheduling, and what there is to choose from at each of them.

use std::fmt;
use std::str::FromStr;

/// How a scheduler decides: one choice for each stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Which ready task comes first.
    pub order: Order,
    /// Where it goes.
    pub place: Place,
    /// How many tasks wait at agents, besides those that are executed.
    pub queue: Queue,
    /// What happens if an agent has more to do than others.
    pub rebalance: Rebalance,
    /// What happens if one is slow or lost.
    pub replicate: Replicate,
}

/// Which ready task comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The one that was ready first.
    Fifo,
    /// The one with the highest priority that a user has given.
    Priority,
    /// The one after which many others can run: see `plan`.
    Prio,
    /// The one with the longest way to the end.
    CriticalPath,
    /// By priority; then the longest way to the end where durations are known, else `prio`.
    Auto,
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// To an agent with room that has been without work for longest.
    LongestIdle,
    /// Where it ends first, and the task that ends first before all others.
    MinMin,
    /// Where it ends first, and the task that takes longest before all others.
    MaxMin,
    /// To an agent with room that lacks least of its data; where tasks wait at agents, to the one where bringing what is
    /// missing and waiting for the others takes least, which is ADAGE's best node.
    Data,
    /// Where it ends first, with everything that has to be waited for.
    #[default]
    EarliestFinish,
}

/// How many tasks wait at agents, besides those that are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// As many as it takes to hide the way from the scheduler and back: none if that takes no time.
    Batch,
    /// So many for each processor.
    Depth(u32),
    /// All of them.
    All,
}

/// What happens if an agent has more to do than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebalance {
    /// Nothing.
    None,
    /// Who has nothing to do takes from others.
    Steal,
    /// Who has much to do gives to others.
    Give,
}

/// What happens if an agent is slow or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicate {
    /// Nothing: what is lost starts again.
    None,
    /// So many agents execute each task, if they have nothing else to do.
    Copies(u8),
    /// What takes much longer than expected is executed once more.
    Speculative,
}

impl Default for Stages {
    fn default() -> Self {
        Self {
            order: Order::Auto,
            place: Place::EarliestFinish,
            queue: Queue::Batch,
            rebalance: Rebalance::Give,
            replicate: Replicate::Speculative,
        }
    }
}

/// The choices of a stage, with their names.
type Choices<T> = &'static [(&'static str, T)];

const ORDERS: Choices<Order> = &[
    ("fifo", Order::Fifo),
    ("priority", Order::Priority),
    ("prio", Order::Prio),
    ("critical-path", Order::CriticalPath),
    ("auto", Order::Auto),
];
const PLACES: Choices<Place> = &[
    ("longest-idle", Place::LongestIdle),
    ("min-min", Place::MinMin),
    ("max-min", Place::MaxMin),
    ("data", Place::Data),
    ("earliest-finish", Place::EarliestFinish),
];
const REBALANCES: Choices<Rebalance> =
    &[("none", Rebalance::None), ("steal", Rebalance::Steal), ("give", Rebalance::Give)];

fn choose<T: Copy>(stage: &str, name: &str, choices: Choices<T>) -> Result<T, String> {
    choices.iter().find(|(n, _)| *n == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(n, _)| *n).collect();
        format!("`{name}` is no choice for `{stage}`; there are {}", names.join(", "))
    })
}

fn name_of<T: PartialEq>(value: T, choices: Choices<T>) -> &'static str {
    choices.iter().find(|(_, v)| *v == value).map_or("", |(name, _)| name)
}

impl Stages {
    /// Changes one stage: `order:prio`, `queue:3`.
    pub fn set(&mut self, choice: &str) -> Result<(), String> {
        let (stage, name) = choice
            .split_once(':')
            .ok_or_else(|| format!("`{choice}` is not of the form stage:choice, such as order:prio"))?;
        let number = |what: &str| {
            name.parse().map_err(|_| format!("`{name}` is no choice for `{stage}`; there are {what}"))
        };
        match stage {
            "order" => self.order = choose(stage, name, ORDERS)?,
            "place" => self.place = choose(stage, name, PLACES)?,
            "rebalance" => self.rebalance = choose(stage, name, REBALANCES)?,
            "queue" => {
                self.queue = match name {
                    "batch" => Queue::Batch,
                    "all" => Queue::All,
                    _ => Queue::Depth(number("batch, all and numbers")?),
                }
            }
            "replicate" => {
                self.replicate = match name {
                    "none" => Replicate::None,
                    "speculative" => Replicate::Speculative,
                    _ => Replicate::Copies(u8::max(1, number("none, speculative and numbers")? as u8)),
                }
            }
            _ => {
                return Err(format!(
                    "there is no stage `{stage}`; there are order, place, queue, rebalance, replicate"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Stages {
    type Err = String;

    /// Reads `order:prio+place:data`; what is not said is as usual.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut stages = Self::default();
        for choice in text.split('+') {
            stages.set(choice)?;
        }
        Ok(stages)
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (order, place) = (name_of(self.order, ORDERS), name_of(self.place, PLACES));
        write!(f, "order:{order}+place:{place}+queue:")?;
        match self.queue {
            Queue::Batch => f.write_str("batch")?,
            Queue::Depth(n) => write!(f, "{n}")?,
            Queue::All => f.write_str("all")?,
        }
        write!(f, "+rebalance:{}+replicate:", name_of(self.rebalance, REBALANCES))?;
        match self.replicate {
            Replicate::None => f.write_str("none"),
            Replicate::Copies(n) => write!(f, "{n}"),
            Replicate::Speculative => f.write_str("speculative"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_as_they_are_written() {
        let texts = [
            "order:prio+place:data+queue:3+rebalance:steal+replicate:2",
            "order:auto+place:earliest-finish+queue:batch+rebalance:give+replicate:speculative",
            "order:fifo+place:longest-idle+queue:all+rebalance:none+replicate:none",
        ];
        for text in texts {
            assert_eq!(text.parse::<Stages>().unwrap().to_string(), text);
        }
        assert_eq!("place:min-min".parse::<Stages>().unwrap().order, Order::Auto);
    }

    #[test]
    fn what_there_is_not_is_named_with_what_there_is() {
        let error = |text: &str| text.parse::<Stages>().unwrap_err();
        assert!(error("order:random").contains("critical-path"));
        assert!(error("colour:red").contains("rebalance"));
        assert!(error("queue:many").contains("batch"));
        assert!(error("prio").contains("stage:choice"));
    }
}
