//! Durations, sizes, cardinalities and resource quantities as people write them.

use crate::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Reads a duration such as `1h 10minutes 5s`. Every number needs a unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("a duration must not be empty; write for example `10 min`".to_owned());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..digits].parse::<u64>();
        let number =
            number.map_err(|_| format!("expected a whole number at `{rest}` in the duration `{text}`"))?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let millis: u64 = match &rest[..letters] {
            "milliseconds" | "millisecond" | "millis" | "milli" | "ms" => 1,
            "seconds" | "second" | "secs" | "sec" | "s" => 1_000,
            "minutes" | "minute" | "mins" | "min" | "m" => 60_000,
            "hours" | "hour" | "hrs" | "hr" | "h" => 3_600_000,
            "days" | "day" | "d" => 86_400_000,
            "" => return Err(format!("the duration `{text}` needs a unit: ms, s, min, h or d")),
            unit => {
                return Err(format!(
                    "unknown unit `{unit}` in the duration `{text}`; use ms, s, min, h or d"
                ));
            }
        };
        let part = number.checked_mul(millis).map(Duration::from_millis);
        total = part
            .and_then(|p| total.checked_add(p))
            .ok_or_else(|| format!("the duration `{text}` is too long"))?;
        rest = rest[letters..].trim_start();
    }
    Ok(total)
}

/// Reads a size such as `2 GiB`, `500 MB` or a plain number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let number: f64 =
        number.parse().map_err(|_| format!("`{text}` is not a size; write for example `2 GiB`"))?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        other => {
            return Err(format!(
                "unknown unit `{other}` in the size `{text}`; use KiB, MiB, GiB, TiB or kB, MB, GB, TB"
            ));
        }
    };
    Ok((number * factor) as u64)
}

/// How often a parameter may be given: `min..max`, where `max` may be `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cardinality {
    /// At least this often.
    pub min: u32,
    /// At most this often.
    pub max: u32,
}

impl Cardinality {
    /// Exactly once.
    pub const ONE: Self = Self { min: 1, max: 1 };
    /// Any number of times.
    pub const ANY: Self = Self { min: 0, max: u32::MAX };

    /// Reads `min..max`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a cardinality; write `min..max`, for example `1..1` or `0..n`");
        let (min, max) = text.trim().split_once("..").ok_or_else(wrong)?;
        let min = min.trim().parse().map_err(|_| wrong())?;
        let max = match max.trim() {
            "n" => u32::MAX,
            max => max.parse().map_err(|_| wrong())?,
        };
        if min > max {
            return Err(format!("in the cardinality `{text}` the minimum is greater than the maximum"));
        }
        Ok(Self { min, max })
    }

    /// Whether a parameter may be given `n` times.
    pub fn allows(self, n: usize) -> bool {
        n >= self.min as usize && n <= self.max as usize
    }
}

impl fmt::Display for Cardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.max == u32::MAX {
            write!(f, "{}..n", self.min)
        } else {
            write!(f, "{}..{}", self.min, self.max)
        }
    }
}

/// What a task needs of an agent besides capabilities. Counts are in thousandths so that they compare
/// exactly; sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resources {
    /// Processors, in thousandths.
    pub cpus: u64,
    /// Main memory in bytes.
    #[serde(default)]
    pub memory: u64,
    /// Scratch space in bytes.
    #[serde(default)]
    pub disk: u64,
    /// Any other named quantity (`gpus`, licences, …), in thousandths.
    #[serde(default)]
    pub named: BTreeMap<Name, u64>,
}

impl Default for Resources {
    fn default() -> Self {
        Self { cpus: 1000, memory: 0, disk: 0, named: BTreeMap::new() }
    }
}

impl Resources {
    /// No resources at all; the start of a sum.
    pub fn zero() -> Self {
        Self { cpus: 0, ..Self::default() }
    }

    /// Whether `self` has room for `need`.
    pub fn fits(&self, need: &Self) -> bool {
        self.cpus >= need.cpus
            && self.memory >= need.memory
            && self.disk >= need.disk
            && need.named.iter().all(|(name, n)| self.named.get(name).copied().unwrap_or(0) >= *n)
    }

    /// How often `need` fits at once; without end if it asks for nothing.
    pub fn times(&self, need: &Self) -> u64 {
        let named = need.named.iter().map(|(name, n)| (self.named.get(name).copied().unwrap_or(0), *n));
        let quantities = [(self.cpus, need.cpus), (self.memory, need.memory), (self.disk, need.disk)];
        let times = quantities
            .into_iter()
            .chain(named)
            .map(|(have, need)| have.checked_div(need).unwrap_or(u64::MAX));
        times.min().unwrap_or(u64::MAX)
    }

    /// Takes `need` away. The caller has checked that it fits.
    pub fn take(&mut self, need: &Self) {
        self.change(need, u64::saturating_sub);
    }

    /// Gives `need` back.
    pub fn give(&mut self, need: &Self) {
        self.change(need, u64::saturating_add);
    }

    /// The smallest resources that satisfy both: tasks of one chain run one after the other.
    #[must_use]
    pub fn max(mut self, other: &Self) -> Self {
        self.change(other, u64::max);
        self
    }

    fn change(&mut self, other: &Self, f: impl Fn(u64, u64) -> u64) {
        self.cpus = f(self.cpus, other.cpus);
        self.memory = f(self.memory, other.memory);
        self.disk = f(self.disk, other.disk);
        for (name, n) in &other.named {
            let mine = self.named.entry(name.clone()).or_insert(0);
            *mine = f(*mine, *n);
        }
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cpus", self.cpus as f64 / 1000.0)?;
        if self.memory > 0 {
            write!(f, ", {} memory", Bytes(self.memory))?;
        }
        if self.disk > 0 {
            write!(f, ", {} disk", Bytes(self.disk))?;
        }
        for (name, n) in &self.named {
            write!(f, ", {} {name}", *n as f64 / 1000.0)?;
        }
        Ok(())
    }
}

/// A size shown for people.
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut n = self.0 as f64;
        let mut unit = "B";
        for next in ["KiB", "MiB", "GiB", "TiB"] {
            if n < 1024.0 {
                break;
            }
            n /= 1024.0;
            unit = next;
        }
        if unit == "B" { write!(f, "{} B", self.0) } else { write!(f, "{n:.1} {unit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let ms = |t| parse_duration(t).map(|d| d.as_millis());
        assert_eq!(ms("10h 30 minutes"), Ok(37_800_000));
        assert_eq!(ms("1 hour 10minutes 5s"), Ok(4_205_000));
        assert_eq!(ms("100ms"), Ok(100));
        assert!(ms("10").unwrap_err().contains("unit"));
        assert!(ms("ten minutes").is_err());
        assert!(ms("5 parsecs").unwrap_err().contains("parsecs"));
        assert!(ms("99999999999999999999 s").is_err());
    }

    #[test]
    fn sizes_know_binary_and_decimal_units() {
        assert_eq!(parse_bytes("2 GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("1.5 kB"), Ok(1500));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert!(parse_bytes("2 apples").is_err());
    }

    #[test]
    fn cardinalities_have_a_minimum_and_a_maximum() {
        assert_eq!(Cardinality::parse("1..n").unwrap(), Cardinality { min: 1, max: u32::MAX });
        assert_eq!(Cardinality::parse(" 0 .. 3 ").unwrap().to_string(), "0..3");
        assert!(Cardinality::parse("3..1").is_err());
        assert!(Cardinality::parse("3").is_err());
    }

    #[test]
    fn resources_fit_only_if_every_quantity_fits() {
        let mut have = Resources { cpus: 2000, memory: 100, ..Resources::default() };
        let need = Resources { memory: 60, ..Resources::default() };
        assert!(have.fits(&need));
        have.take(&need);
        assert!(!have.fits(&need));
        have.give(&need);
        assert_eq!(have.memory, 100);
    }

    #[test]
    fn the_scarcest_quantity_says_how_often_resources_fit() {
        let gpus = |n| BTreeMap::from([(Name::new_static("gpus"), n)]);
        let have = Resources { cpus: 8000, memory: 100, disk: 50, named: gpus(2000) };
        let times = |need: Resources| have.times(&need);
        assert_eq!(times(Resources::default()), 8);
        assert_eq!(times(Resources { disk: 20, ..Resources::default() }), 2);
        assert_eq!(times(Resources { named: gpus(1000), ..Resources::default() }), 2);
        assert_eq!(times(Resources { named: gpus(3000), ..Resources::default() }), 0);
        assert_eq!(times(Resources::zero()), u64::MAX);
    }
}
