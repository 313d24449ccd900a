//! Who knows whom: about the square root of all nodes, chosen at random each time.

use crate::random::Random;

/// So many of `nodes`, but not `own`.
pub(super) fn some(random: &mut Random, nodes: usize, own: u32) -> Vec<u32> {
    let n = nodes as u64;
    (0..n.isqrt()).map(|_| random.below(n) as u32).filter(|other| *other != own).collect()
}
