//! Steps 4 and 5: how much is lost if one component is executed before another.
//!
//! With profiles `f` and `g`, and `t` jobs executed, executing the first component before the second leaves
//! `N(t)` jobs eligible; the best mixture of both leaves `D(t)`. The priority of the first over the second is
//! the smallest `N(t) / D(t)`. `D` is a (max, +) convolution. It is bounded by that of the concave hulls, which
//! is cheap and exact at the corners, so only steps whose bound could lower the result are computed.

use std::cmp::Ordering;

/// A fraction of two counts, compared without rounding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    over: u64,
    under: u64,
}

impl Ratio {
    pub(super) const ONE: Self = Self { over: 1, under: 1 };
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.over, other.under).cmp(&product(other.over, self.under))
    }
}

/// The priority of a component with profile `f` over one with profile `g`.
pub(super) fn priority(f: &[u32], g: &[u32]) -> Ratio {
    let (of_f, of_g) = (f.len() - 1, g.len() - 1);
    let ordered = |t: usize| u64::from(f[t.min(of_f)]) + u64::from(g[t - t.min(of_f)]);
    let bound = hull_sum(&hull(f), &hull(g));
    let mut least = Ratio::ONE;
    for (t, most) in &bound {
        least = least.min(Ratio { over: ordered(*t as usize), under: *most as u64 });
    }
    for edge in bound.windows(2) {
        let [(start, low), (end, high)] = edge else { continue };
        for t in start + 1..*end {
            let most = low + ((high - low) * (t - start)).div_euclid(end - start);
            let t = t as usize;
            if (Ratio { over: ordered(t), under: most as u64 }) < least {
                let mixed =
                    (t.saturating_sub(of_g)..=t.min(of_f)).map(|x| u64::from(f[x]) + u64::from(g[t - x]));
                least = least.min(Ratio { over: ordered(t), under: mixed.max().unwrap_or(1) });
            }
        }
    }
    least
}

/// A number of executed jobs, and how many are eligible then. There are fewer than two to the 31 of them, so
/// that products fit.
type Point = (i64, i64);

/// The corners of the upper concave hull of a profile.
fn hull(profile: &[u32]) -> Vec<Point> {
    let mut corners: Vec<Point> = Vec::new();
    for (x, y) in (0..).zip(profile) {
        let point = (x, i64::from(*y));
        while let [.., before, middle] = corners.as_slice() {
            let is_above =
                (middle.1 - before.1) * (point.0 - before.0) > (point.1 - before.1) * (middle.0 - before.0);
            if is_above {
                break;
            }
            corners.pop();
        }
        corners.push(point);
    }
    corners
}

/// The corners of the sum of two hulls: their edges, steepest first. The bound is exact there.
fn hull_sum(one: &[Point], other: &[Point]) -> Vec<Point> {
    let edges = |hull: &[Point]| -> Vec<Point> {
        hull.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect()
    };
    let mut all = edges(one);
    all.extend(edges(other));
    all.sort_by(|a, b| (b.1 * a.0).cmp(&(a.1 * b.0)));
    let mut corner = (one[0].0 + other[0].0, one[0].1 + other[0].1);
    let mut corners = vec![corner];
    for (width, height) in all {
        corner = (corner.0 + width, corner.1 + height);
        corners.push(corner);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn literal(f: &[u32], g: &[u32]) -> Ratio {
        let mut least = Ratio::ONE;
        for x in 0..f.len() {
            for y in 0..g.len() {
                let first = (x + y).min(f.len() - 1);
                let over = u64::from(f[first] + g[x + y - first]);
                least = least.min(Ratio { over, under: u64::from(f[x] + g[y]) });
            }
        }
        least
    }

    proptest! {
        #[test]
        fn the_bound_changes_nothing(f in prop::collection::vec(1u32..60, 2..40), g in prop::collection::vec(1u32..60, 2..40)) {
            prop_assert_eq!(priority(&f, &g), literal(&f, &g));
        }
    }
}
