//! Simulations that differ only in their seed, seen together.

use super::trial::{Row, Scheduler};

/// The mean of several, the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Spread {
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { mean, least, most }
    }
}

/// Rows that differ only in their seed, and what a central scheduler did with the same work, seed by seed.
pub(super) struct Group<'a> {
    pub(super) rows: Vec<&'a Row>,
    pub(super) central: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    /// All groups, in the order in which they were simulated.
    pub(super) fn all(rows: &'a [Row]) -> Vec<Self> {
        let key = |r: &Row| (r.experiment, r.variant.clone(), r.rules, r.nodes, r.workflows);
        let mut groups: Vec<Self> = Vec::new();
        for row in rows.iter().filter(|r| r.scheduler == Scheduler::Space) {
            let same =
                |c: &&Row| key(c) == key(row) && c.seed == row.seed && c.scheduler == Scheduler::Central;
            let central = rows.iter().find(same);
            let place = groups.iter().position(|g| key(g.first()) == key(row)).unwrap_or_else(|| {
                groups.push(Self { rows: Vec::new(), central: Vec::new() });
                groups.len() - 1
            });
            groups[place].rows.push(row);
            groups[place].central.extend(central);
        }
        groups
    }

    /// What they have in common can be read from any of them.
    pub(super) fn first(&self) -> &'a Row {
        self.rows[0]
    }

    pub(super) fn spread(&self, of: impl Fn(&Row) -> f64) -> Spread {
        Spread::of(self.rows.iter().map(|r| of(r)))
    }

    pub(super) fn mean(&self, of: impl Fn(&Row) -> f64) -> f64 {
        self.spread(of).mean
    }

    pub(super) fn sum(&self, of: impl Fn(&Row) -> u64) -> u64 {
        self.rows.iter().map(|r| of(r)).sum()
    }

    /// How much more it is than with a central scheduler, in percent.
    pub(super) fn beyond_central(&self, of: impl Fn(&Row) -> f64) -> Option<Spread> {
        let beyond = |(row, central): (&&Row, &&Row)| 100.0 * (of(row) / of(central).max(1e-9) - 1.0);
        (self.central.len() == self.rows.len())
            .then(|| Spread::of(self.rows.iter().zip(&self.central).map(beyond)))
    }

    pub(super) fn central_mean(&self, of: impl Fn(&Row) -> f64) -> f64 {
        Spread::of(self.central.iter().map(|r| of(r))).mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_ends() {
        assert_eq!(Spread::of([2.0, 6.0, 1.0]), Spread { mean: 3.0, least: 1.0, most: 6.0 });
    }
}
