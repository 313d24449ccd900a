//! The hash tree of a large file, cut at its blocks: what makes each block verifiable by itself.
//!
//! BLAKE3 is a tree over chunks of 1 KiB. An [`Outline`] keeps the chaining values of the subtrees of 1 MiB; merged
//! up to the root they must give the id of the whole, so an outline can be had from anybody and checked before any
//! data is asked for. A block is then checked alone, in any order, from any source.

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use catena_model::content::ContentId;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The bytes of a block. A power of two, so that blocks are subtrees.
pub const BLOCK: u64 = 1 << 20;

/// How much is read and hashed at a time: it should still be in the cache of the processor when it is hashed.
pub(crate) const PIECE: usize = 128 << 10;

/// Files from this size on are hashed by several threads.
const MANY_THREADS: u64 = 16 * BLOCK;

/// What each block of some content must hash to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    id: ContentId,
    size: u64,
    /// None if there is but one block, which the id stands for.
    values: Vec<ChainingValue>,
}

impl Outline {
    /// The outline of content that fits into one block: its id says it all.
    pub(crate) fn of_small(id: ContentId, size: u64) -> Self {
        Self { id, size, values: Vec::new() }
    }

    /// Reads an outline that somebody else has written. `None` if it does not belong to this content.
    pub fn read(id: ContentId, size: u64, bytes: &[u8]) -> Option<Self> {
        if size <= BLOCK {
            return bytes.is_empty().then(|| Self::of_small(id, size));
        }
        if bytes.len() as u64 != Self::len(size)? {
            return None;
        }
        let values: Vec<ChainingValue> = bytes.as_chunks::<32>().0.to_vec();
        (root(&values)? == id).then_some(Self { id, size, values })
    }

    /// The bytes of an outline for content of some size: none if it fits into one block.
    pub(crate) fn len(size: u64) -> Option<u64> {
        if size <= BLOCK { Some(0) } else { size.div_ceil(BLOCK).checked_mul(32) }
    }

    /// What [`Outline::read`] reads.
    pub fn write(&self) -> &[u8] {
        self.values.as_flattened()
    }

    /// The id of the whole.
    pub const fn id(&self) -> ContentId {
        self.id
    }

    /// The size of the whole.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// How many blocks there are.
    pub const fn blocks(&self) -> u64 {
        self.size.div_ceil(BLOCK)
    }

    /// Where a block is.
    pub fn range(&self, block: u64) -> Range<u64> {
        block * BLOCK..((block + 1) * BLOCK).min(self.size)
    }

    /// Whether this is what the block must be.
    pub fn check(&self, block: u64, bytes: &[u8]) -> bool {
        let range = self.range(block);
        let mut check = self.begin(block);
        check.add(bytes);
        bytes.len() as u64 == range.end.saturating_sub(range.start) && check.holds()
    }

    /// Begins to check a block whose bytes arrive in pieces.
    pub(crate) fn begin(&self, block: u64) -> Check<'_> {
        let mut hasher = Hasher::new();
        if !self.values.is_empty() {
            hasher.set_input_offset(block * BLOCK);
        }
        Check { outline: self, block, hasher }
    }

    /// Hashes the first `size` bytes of a file, with several threads if it is worth it.
    pub fn of_file(file: &File, size: u64) -> io::Result<Self> {
        if size <= BLOCK {
            let mut hasher = Hasher::new();
            hash_range(file, 0..size, &mut hasher)?;
            return Ok(Self::of_small(hasher.finalize().into(), size));
        }
        let blocks = size.div_ceil(BLOCK);
        let next = AtomicU64::new(0);
        let work = || -> io::Result<Vec<(u64, ChainingValue)>> {
            let mut done = Vec::new();
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    return Ok(done);
                }
                let start = block * BLOCK;
                let mut hasher = Hasher::new();
                hasher.set_input_offset(start);
                hash_range(file, start..(start + BLOCK).min(size), &mut hasher)?;
                done.push((block, hasher.finalize_non_root()));
            }
        };
        let helpers = if size < MANY_THREADS { 0 } else { threads() - 1 };
        let parts = thread::scope(|scope| {
            let others: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
            let mut parts = vec![work()];
            let lost = || Err(io::Error::other("a thread that hashed has panicked"));
            parts.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| lost())));
            parts
        });
        let mut values = vec![[0; 32]; blocks as usize];
        for part in parts {
            for (block, value) in part? {
                values[block as usize] = value;
            }
        }
        let id = root(&values).ok_or_else(|| io::Error::other("a large file has more than one block"))?;
        Ok(Self { id, size, values })
    }
}

/// How many threads hash or copy together.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(8)
}

/// A block of which some bytes have been seen.
pub(crate) struct Check<'o> {
    outline: &'o Outline,
    block: u64,
    hasher: Hasher,
}

impl Check<'_> {
    /// The next bytes. A block has no more than [`BLOCK`] of them.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.hasher.count() + bytes.len() as u64 <= BLOCK {
            self.hasher.update(bytes);
        }
    }

    /// Whether all bytes together are what the block must be.
    pub(crate) fn holds(&self) -> bool {
        if self.outline.values.is_empty() {
            return self.block == 0 && ContentId::from(self.hasher.finalize()) == self.outline.id;
        }
        let value = self.outline.values.get(self.block as usize);
        // Nothing has no chaining value.
        value.is_some_and(|value| self.hasher.count() > 0 && *value == self.hasher.finalize_non_root())
    }
}

fn hash_range(file: &File, range: Range<u64>, hasher: &mut Hasher) -> io::Result<()> {
    let mut buffer = vec![0; PIECE.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        let piece = buffer.len().min((range.end - at) as usize);
        file.read_exact_at(&mut buffer[..piece], at)?;
        hasher.update(&buffer[..piece]);
        at += piece as u64;
    }
    Ok(())
}

/// What the chaining values of all blocks merge to. `None` if there are fewer than two.
fn root(values: &[ChainingValue]) -> Option<ContentId> {
    if values.len() < 2 {
        return None;
    }
    let (left, right) = values.split_at(left(values.len()));
    Some(merge_subtrees_root(&merged(left), &merged(right), Mode::Hash).into())
}

fn merged(values: &[ChainingValue]) -> ChainingValue {
    match values {
        [one] => *one,
        _ => {
            let (left, right) = values.split_at(left(values.len()));
            merge_subtrees_non_root(&merged(left), &merged(right), Mode::Hash)
        }
    }
}

/// How many of several blocks belong to the left subtree: the largest power of two that leaves something.
fn left(blocks: usize) -> usize {
    blocks.div_ceil(2).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn content(size: usize) -> Vec<u8> {
        let mut reader = blake3::Hasher::new().update(b"some content").finalize_xof();
        let mut bytes = vec![0; size];
        reader.fill(&mut bytes);
        bytes
    }

    fn outline(content: &[u8]) -> Outline {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        Outline::of_file(&file, content.len() as u64).unwrap()
    }

    #[test]
    fn blocks_merge_to_the_hash_of_the_whole_at_every_boundary() {
        let all = content(21 * BLOCK as usize);
        for blocks in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20] {
            for off in [-1025_i64, -1024, -1, 0, 1, 1023, 1024, 1025] {
                let size = (blocks * BLOCK as i64 + off).max(0) as usize;
                assert_eq!(outline(&all[..size]).id(), ContentId::of(&all[..size]), "{size}");
            }
        }
    }

    #[test]
    fn a_block_is_known_alone_and_nothing_else_is_taken_for_it() {
        let all = content(3 * BLOCK as usize + 17);
        let outline = outline(&all);
        assert_eq!(outline.blocks(), 4);
        let block = |n: u64| &all[outline.range(n).start as usize..outline.range(n).end as usize];
        for n in 0..4 {
            assert!(outline.check(n, block(n)));
            let mut bad = block(n).to_vec();
            bad[5] ^= 1;
            assert!(!outline.check(n, &bad));
            assert!(!outline.check(n, &block(n)[1..]));
            assert!(!outline.check((n + 1) % 4, block(n)));
        }
        assert!(!outline.check(4, b""));
    }

    #[test]
    fn an_outline_of_somebody_else_is_checked_against_the_id() {
        let all = content(5 * BLOCK as usize);
        let whole = outline(&all);
        let read = |id, size, bytes: &[u8]| Outline::read(id, size, bytes);
        assert_eq!(read(whole.id(), whole.size(), whole.write()), Some(whole.clone()));
        let mut bad = whole.write().to_vec();
        bad[40] ^= 1;
        assert_eq!(read(whole.id(), whole.size(), &bad), None);
        assert_eq!(read(whole.id(), whole.size() + 1, whole.write()), None);
        assert_eq!(read(whole.id(), u64::MAX, whole.write()), None);
        assert_eq!(read(whole.id(), whole.size(), &whole.write()[1..]), None);
    }

    #[test]
    fn nothing_is_content_too() {
        let nothing = outline(b"");
        assert_eq!(nothing.id(), ContentId::of(b""));
        assert!(nothing.check(0, b""));
        assert!(!Outline::of_small(ContentId::of(b"x"), 0).check(0, b""));
    }
}
