//! Numbers that look random and are the same everywhere.

use catena_space::random::Random as Numbers;
use std::sync::LazyLock;

/// The numbers of the space, with ziggurats for what is normally and exponentially distributed (Marsaglia and Tsang, "The
/// Ziggurat Method for Generating Random Variables", 2000): a number falls into one of many layers of equal area
/// and is nearly always good at once.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    numbers: Numbers,
    shapes: &'static Shapes,
}

#[derive(Debug)]
struct Shapes {
    normal: Ziggurat<128>,
    exponential: Ziggurat<256>,
}

/// The layers under a falling curve: how wide each is per unit, below which part of its width a number is certainly
/// under the curve, and the height of the curve at its edge.
#[derive(Debug)]
struct Ziggurat<const N: usize> {
    width: [f64; N],
    certain: [f64; N],
    height: [f64; N],
}

/// Where the tails begin, and the area of a layer.
const NORMAL: (f64, f64) = (3.442_619_855_899, 9.912_563_035_262_17e-3);
const EXPONENTIAL: (f64, f64) = (7.697_117_470_131_05, 3.949_659_822_581_572e-3);

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes {
    normal: Ziggurat::new(NORMAL, |x| (-0.5 * x * x).exp(), |y| (-2.0 * y.ln()).sqrt()),
    exponential: Ziggurat::new(EXPONENTIAL, |x| (-x).exp(), |y| -y.ln()),
});

impl<const N: usize> Ziggurat<N> {
    fn new((tail, area): (f64, f64), curve: fn(f64) -> f64, inverse: fn(f64) -> f64) -> Self {
        let mut this = Self { width: [0.0; N], certain: [0.0; N], height: [0.0; N] };
        // The lowest layer has the tail, as if it were a rectangle of the same area.
        this.width[0] = area / curve(tail);
        this.certain[0] = tail / this.width[0];
        this.height[0] = 1.0;
        let mut edge = tail;
        for layer in (1..N).rev() {
            this.width[layer] = edge;
            this.height[layer] = curve(edge);
            let next = if layer > 1 { inverse(area / edge + curve(edge)) } else { 0.0 };
            this.certain[layer] = next / edge;
            edge = next;
        }
        this
    }
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { numbers: Numbers::new(seed), shapes: &SHAPES }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.numbers.number()
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.numbers.below(limit)
    }

    /// The numbers below `count` in a random order.
    pub(crate) fn places(&mut self, count: usize) -> Vec<u32> {
        let mut places: Vec<u32> = (0..count as u32).collect();
        for i in (1..count).rev() {
            places.swap(i, self.below(i as u64 + 1) as usize);
        }
        places
    }

    /// Above 0 and at most 1.
    pub(crate) fn unit(&mut self) -> f64 {
        above_zero(self.next())
    }

    /// Exponentially distributed with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        let mut beyond = 0.0;
        loop {
            let bits = self.next();
            let (layer, part) = (bits as usize % 256, above_zero(bits));
            let shape = &self.shapes.exponential;
            let value = part * shape.width[layer];
            if part < shape.certain[layer] {
                return beyond + value;
            }
            if layer == 0 {
                // The tail looks like the whole.
                beyond += EXPONENTIAL.0;
            } else if self.is_under(shape.height[layer], shape.height[layer - 1], (-value).exp()) {
                return beyond + value;
            }
        }
    }

    /// Normally distributed with mean 0 and deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let bits = self.next();
            let (layer, part) = (bits as usize % 128, above_zero(bits));
            let sign = if bits & 128 == 0 { 1.0 } else { -1.0 };
            let shape = &self.shapes.normal;
            let value = part * shape.width[layer];
            if part < shape.certain[layer] {
                return sign * value;
            }
            if layer == 0 {
                loop {
                    let x = -self.unit().ln() / NORMAL.0;
                    if -2.0 * self.unit().ln() >= x * x {
                        return sign * (NORMAL.0 + x);
                    }
                }
            }
            if self.is_under(shape.height[layer], shape.height[layer - 1], (-0.5 * value * value).exp()) {
                return sign * value;
            }
        }
    }

    /// Whether a random height within a layer is below the curve.
    fn is_under(&mut self, low: f64, high: f64, curve: f64) -> bool {
        low + self.unit() * (high - low) < curve
    }

    /// How many events there are, if `mean` are expected.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 64.0 {
            return (mean + mean.sqrt() * self.normal() + 0.5).max(0.0) as u64;
        }
        // Events come as long as the product of as many numbers is large enough.
        let least = (-mean).exp();
        let mut product = self.unit();
        let mut count = 0;
        while product > least {
            product *= self.unit();
            count += 1;
        }
        count
    }
}

fn above_zero(bits: u64) -> f64 {
    ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, variance, and how often a value is above each of some limits.
    fn describe(limits: [f64; 3], mut draw: impl FnMut() -> f64) -> (f64, f64, [f64; 3]) {
        let values: Vec<f64> = (0..2_000_000).map(|_| draw()).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let above = limits.map(|limit| values.iter().filter(|v| **v > limit).count() as f64 / count);
        (mean, variance, above)
    }

    #[test]
    fn normal_numbers_are_normal() {
        let mut random = Random::new(1);
        let (mean, variance, above) = describe([0.5, 2.0, 3.6], || random.normal());
        assert!(mean.abs() < 0.004 && (variance - 1.0).abs() < 0.006, "{mean} {variance}");
        let expected = [0.308_538, 0.022_750, 0.000_159];
        assert!(above.iter().zip(expected).all(|(a, e)| (a - e).abs() < 0.03 * e + 0.000_03), "{above:?}");
    }

    #[test]
    fn exponential_numbers_are_exponential() {
        let mut random = Random::new(2);
        let (mean, variance, above) = describe([0.1, 2.0, 8.0], || random.exponential());
        assert!((mean - 1.0).abs() < 0.004 && (variance - 1.0).abs() < 0.01, "{mean} {variance}");
        let expected = [0.904_837, 0.135_335, 0.000_335];
        assert!(above.iter().zip(expected).all(|(a, e)| (a - e).abs() < 0.02 * e + 0.000_04), "{above:?}");
    }

    #[test]
    fn counts_are_as_expected() {
        let mut random = Random::new(3);
        for expected in [0.5, 20.0, 500.0] {
            let (mean, variance, _) = describe([0.0; 3], || random.poisson(expected) as f64);
            assert!(
                (mean / expected - 1.0).abs() < 0.01 && (variance / expected - 1.0).abs() < 0.02,
                "{mean} {variance}"
            );
        }
    }
}
