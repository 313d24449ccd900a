//! Dags with the shapes and sizes of published workflows.
//!
//! Of the four dags in the evaluation of prio none is public. These have every size and every shape that
//! the paper tells of them.

use crate::random::Random;
use catena_plan::{Cycle, Dag};

/// Jobs with names, and arcs from each to those that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    /// The names of the jobs, in the order of their definition.
    pub names: Vec<String>,
    /// Pairs of jobs; the second waits for the first.
    pub arcs: Vec<(u32, u32)>,
}

impl Generated {
    fn job(&mut self, name: String) -> u32 {
        self.names.push(name);
        self.names.len() as u32 - 1
    }

    fn jobs(&mut self, name: &str, count: usize) -> Vec<u32> {
        (0..count).map(|i| self.job(format!("{name}{i:04}"))).collect()
    }

    fn each(&mut self, from: &[u32], to: &[u32]) {
        self.arcs.extend(from.iter().copied().zip(to.iter().copied()));
    }

    fn fork(&mut self, from: u32, to: &[u32]) {
        self.arcs.extend(to.iter().map(|t| (from, *t)));
    }

    fn join(&mut self, from: &[u32], to: u32) {
        self.arcs.extend(from.iter().map(|f| (*f, to)));
    }

    /// Without the names.
    pub fn dag(&self) -> Result<Dag, Cycle> {
        Dag::new(self.names.len(), &self.arcs)
    }
}

/// Functional magnetic resonance imaging: a double umbrella with fringes. A handle of jobs one after the other,
/// a fork each of whose jobs also waits for a job of its own, a join, another fork and the last join.
pub fn airsn(width: usize, handle: usize) -> Generated {
    let mut g = Generated::default();
    let fringes = g.jobs("fringe", width);
    let handle = g.jobs("handle", handle.max(1));
    let first = g.jobs("first", width);
    let middle = g.job("middle".to_owned());
    let second = g.jobs("second", width);
    let last = g.job("last".to_owned());
    g.each(&handle, &handle[1..]);
    g.fork(handle[handle.len() - 1], &first);
    g.each(&fringes, &first);
    g.join(&first, middle);
    g.fork(middle, &second);
    g.join(&second, last);
    g
}

/// The search for gravitational waves: groups of template bank, inspiral, coincidence, trigger bank, inspiral,
/// coincidence. Those of the first `ring` groups are tied together: a template bank also feeds the next group's
/// trigger bank.
pub fn inspiral(widths: &[usize], ring: usize) -> Generated {
    let mut g = Generated::default();
    let mut banks = Vec::new();
    let mut triggers = Vec::new();
    for (n, width) in widths.iter().enumerate() {
        let bank = g.jobs(&format!("tmpltbank{n:02}_"), *width);
        let first = g.jobs(&format!("inspiral{n:02}_"), *width);
        let thinca = g.job(format!("thinca{n:02}"));
        let trigger = g.jobs(&format!("trigbank{n:02}_"), *width);
        let second = g.jobs(&format!("inspiral2{n:02}_"), *width);
        let end = g.job(format!("thinca2{n:02}"));
        g.each(&bank, &first);
        g.join(&first, thinca);
        g.fork(thinca, &trigger);
        g.each(&trigger, &second);
        g.join(&second, end);
        banks.push(bank);
        triggers.push(trigger);
    }
    let ring = ring.min(widths.len());
    for n in 0..ring {
        g.each(&banks[n], &triggers[(n + 1) % ring]);
    }
    g
}

/// A mosaic of `side` × `side` images of the sky: each is projected, neighbours are compared, the background is
/// modelled and removed from each, and everything is put together. `overlaps` bounds the comparisons.
pub fn montage(side: usize, overlaps: usize) -> Generated {
    let mut g = Generated::default();
    let images = side * side;
    let project = g.jobs("mProject", images);
    let mut pairs = Vec::new();
    for row in 0..side {
        for column in 0..side {
            let neighbours = [
                (row, column + 1),
                (row + 1, column.wrapping_sub(1)),
                (row + 1, column),
                (row + 1, column + 1),
            ];
            let inside = neighbours.into_iter().filter(|(r, c)| *r < side && *c < side);
            pairs.extend(inside.map(|(r, c)| (project[row * side + column], project[r * side + c])));
        }
    }
    // Leave out as many as there are too many, spread over the picture.
    let surplus = pairs.len().saturating_sub(overlaps);
    let total = pairs.len().max(1);
    let pairs =
        pairs.into_iter().enumerate().filter(|(i, _)| (i + 1) * surplus / total == i * surplus / total);
    let pairs: Vec<(u32, u32)> = pairs.map(|(_, pair)| pair).collect();
    let compare = g.jobs("mDiffFit", pairs.len());
    let concat = g.job("mConcatFit".to_owned());
    let model = g.job("mBgModel".to_owned());
    let background = g.jobs("mBackground", images);
    let ends: Vec<u32> = ["mImgtbl", "mAdd", "mShrink", "mJPEG"].map(|n| g.job(n.to_owned())).to_vec();
    for (job, (a, b)) in compare.iter().zip(pairs) {
        g.join(&[a, b], *job);
    }
    g.join(&compare, concat);
    g.arcs.push((concat, model));
    g.fork(model, &background);
    g.each(&project, &background);
    g.join(&background, ends[0]);
    g.join(&background, ends[1]);
    g.each(&ends, &ends[1..]);
    g
}

/// The search for clusters of galaxies: in each stripe, fields are searched for bright red galaxies, then each
/// field with its two neighbours for the brightest galaxy of a cluster; what is found is put together.
pub fn sdss(stripes: usize, fields: usize) -> Generated {
    let mut g = Generated::default();
    let mut joins = Vec::new();
    for stripe in 0..stripes {
        let steps = ["brg", "bcg", "coalesce", "get"].map(|s| g.jobs(&format!("{s}{stripe:02}_"), fields));
        let [brg, bcg, coalesce, get] = &steps;
        for (field, job) in brg.iter().enumerate() {
            let around = [field, (field + 1) % fields, (field + fields - 1) % fields];
            g.fork(*job, &around.map(|f| bcg[f]));
        }
        g.each(bcg, coalesce);
        g.each(coalesce, get);
        let join = g.job(format!("stripe{stripe:02}"));
        g.join(get, join);
        joins.push(join);
    }
    let last = g.job("clusters".to_owned());
    g.join(&joins, last);
    g
}

/// Layers of jobs, each of which waits for about `parents` random ones of the layer before; with `skips` some
/// of these come from earlier layers.
pub fn layered(jobs: usize, width: usize, parents: usize, skips: bool, seed: u64) -> Generated {
    let mut g = Generated::default();
    let mut random = Random::new(seed);
    let width = width.max(1);
    g.jobs("job", jobs);
    for job in width..jobs {
        let layer = job / width;
        for _ in 0..=random.below(2 * parents.max(1) as u64 - 1) {
            let back =
                if skips && random.below(8) == 0 { 1 + random.below(layer as u64) as usize } else { 1 };
            let from = (layer - back) * width + random.below(width as u64) as usize;
            g.arcs.push((from as u32, job as u32));
        }
    }
    g
}

#[cfg(test)]
mod tests {
    use super::*;
    use catena_plan::{eligible_gain, prio_order};

    fn differences(g: &Generated) -> Vec<i64> {
        let dag = g.dag().unwrap();
        eligible_gain(&dag, &prio_order(&dag))
    }

    #[test]
    fn the_dags_of_the_paper_have_their_sizes() {
        let sizes = [
            airsn(250, 21).names.len(),
            inspiral(&[62, 62, 62, 62, 62, 62, 92, 92, 93, 93], 6).names.len(),
            montage(37, 5137).names.len(),
            sdss(12, 1000).names.len(),
        ];
        assert_eq!(sizes, [773, 2988, 7881, 48_013]);
    }

    #[test]
    fn the_bottleneck_of_airsn_has_the_priority_of_the_paper() {
        let g = airsn(250, 21);
        let order = prio_order(&g.dag().unwrap());
        let bottleneck = g.names.iter().position(|n| n == "handle0020").unwrap() as u32;
        let place = order.iter().position(|j| *j == bottleneck).unwrap();
        assert_eq!(g.names.len() - place, 753);
    }

    #[test]
    fn prio_is_ahead_on_airsn_and_equal_on_sdss() {
        let ahead = differences(&airsn(250, 21));
        assert!(ahead.iter().all(|d| *d >= 0));
        assert_eq!(ahead.iter().max(), Some(&249));
        assert!(differences(&sdss(12, 100)).iter().all(|d| *d == 0));
    }

    #[test]
    fn prio_is_behind_on_inspiral() {
        let behind = differences(&inspiral(&[62, 62, 62, 62, 62, 62, 92, 92, 93, 93], 6));
        assert!(behind.iter().sum::<i64>() < 0);
    }
}
