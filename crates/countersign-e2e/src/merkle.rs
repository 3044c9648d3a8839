//! The Merkle tree of RFC 6962 over the entries of a log: its root, proofs that an entry is in it, and
//! proofs that a later tree only adds entries.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::error::{Error, Result};

/// The hash of a leaf, of a node or of a whole tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeHash(pub [u8; 32]);

impl TreeHash {
    /// The root of a tree without entries.
    pub fn empty() -> Self {
        Self(Sha256::digest([]).into())
    }

    pub fn of_leaf(entry: &[u8]) -> Self {
        Self(
            Sha256::new()
                .chain_update([0])
                .chain_update(entry)
                .finalize()
                .into(),
        )
    }

    pub fn of_node(left: Self, right: Self) -> Self {
        let hash = Sha256::new().chain_update([1]);
        Self(
            hash.chain_update(left.0)
                .chain_update(right.0)
                .finalize()
                .into(),
        )
    }

    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        bytes.try_into().ok().map(Self)
    }
}

/// In standard base64, as checkpoints and proofs have it.
impl fmt::Display for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TreeHash({self})")
    }
}

/// The hashes of complete subtrees.
pub trait SubtreeSource {
    /// The root of the 2^`level` leaves that begin with leaf `index` · 2^`level`.
    fn subtree(&mut self, level: u32, index: u64) -> Result<TreeHash>;

    /// The root of the tree of the first `size` leaves.
    fn root(&mut self, size: u64) -> Result<TreeHash> {
        if size == 0 {
            return Ok(TreeHash::empty());
        }
        self.range(0, size)
    }

    /// The root of the leaves from `start` to before `end`; not none, and `start` is a multiple of the
    /// greatest power of two that they have.
    fn range(&mut self, start: u64, end: u64) -> Result<TreeHash> {
        let count = end - start;
        if count.is_power_of_two() {
            return self.subtree(count.trailing_zeros(), start / count);
        }
        let middle = start + left_count(count);
        let left = self.range(start, middle)?;
        Ok(TreeHash::of_node(left, self.range(middle, end)?))
    }

    /// Proves that leaf `index` is in the tree of `size` leaves.
    fn prove_inclusion(&mut self, index: u64, size: u64) -> Result<Vec<TreeHash>> {
        if index >= size {
            return Err(Error::Log("the entry is not in the tree"));
        }
        let (mut start, mut end, mut hashes) = (0, size, Vec::new());
        while end - start > 1 {
            let middle = start + left_count(end - start);
            if index < middle {
                hashes.push(self.range(middle, end)?);
                end = middle;
            } else {
                hashes.push(self.range(start, middle)?);
                start = middle;
            }
        }
        hashes.reverse();
        Ok(hashes)
    }

    /// Proves that the tree of `from` leaves is the beginning of that of `to` leaves.
    fn prove_consistency(&mut self, from: u64, to: u64) -> Result<Vec<TreeHash>> {
        if from > to {
            return Err(Error::Log("the later tree is smaller"));
        }
        let (mut start, mut end, mut hashes) = (0, to, Vec::new());
        if from == 0 {
            return Ok(hashes);
        }
        while from < end {
            let middle = start + left_count(end - start);
            if from <= middle {
                hashes.push(self.range(middle, end)?);
                end = middle;
            } else {
                hashes.push(self.range(start, middle)?);
                start = middle;
            }
        }
        // The verifier knows the root of a whole old tree.
        if start > 0 {
            hashes.push(self.range(start, end)?);
        }
        hashes.reverse();
        Ok(hashes)
    }
}

/// The leaves on the left side of a tree with more than one.
fn left_count(count: u64) -> u64 {
    1 << (count - 1).ilog2()
}

/// Checks that a leaf is entry `index` of the tree with this size and root.
pub fn verify_inclusion(
    leaf: TreeHash,
    index: u64,
    size: u64,
    hashes: &[TreeHash],
    root: TreeHash,
) -> Result<()> {
    const FAILED: Error = Error::Log("the proof does not show the entry in the tree");
    if index >= size {
        return Err(FAILED);
    }
    let (mut place, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in hashes {
        if last == 0 {
            return Err(FAILED);
        }
        if is_right(place, last) {
            hash = TreeHash::of_node(*sibling, hash);
        } else {
            hash = TreeHash::of_node(hash, *sibling);
        }
        (place, last) = parents(place, last);
    }
    if last == 0 && hash == root {
        Ok(())
    } else {
        Err(FAILED)
    }
}

/// A tree at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeState {
    pub size: u64,
    pub root: TreeHash,
}

/// Checks that the tree `old` is the beginning of the tree `new`.
pub fn verify_consistency(old: TreeState, new: TreeState, hashes: &[TreeHash]) -> Result<()> {
    const FAILED: Error = Error::Log("the proof does not show that the tree only grew");
    let (from, to, old, new) = (old.size, new.size, old.root, new.root);
    if from == 0 || from == to {
        let is_same = from != to || old == new;
        let is_empty = from != 0 || old == TreeHash::empty();
        return if is_same && is_empty && hashes.is_empty() {
            Ok(())
        } else {
            Err(FAILED)
        };
    }
    if from > to {
        return Err(FAILED);
    }
    let mut hashes = hashes.iter().copied();
    let first = if from.is_power_of_two() {
        Some(old)
    } else {
        hashes.next()
    };
    let first = first.ok_or(FAILED)?;
    let shift = (from - 1).trailing_ones();
    let (mut place, mut last) = ((from - 1) >> shift, (to - 1) >> shift);
    let (mut before, mut after) = (first, first);
    for sibling in hashes {
        if last == 0 {
            return Err(FAILED);
        }
        if is_right(place, last) {
            before = TreeHash::of_node(sibling, before);
            after = TreeHash::of_node(sibling, after);
        } else {
            after = TreeHash::of_node(after, sibling);
        }
        (place, last) = parents(place, last);
    }
    if last == 0 && before == old && after == new {
        Ok(())
    } else {
        Err(FAILED)
    }
}

/// Whether the sibling in a proof is on the left. The last node of a level that has none goes up.
fn is_right(place: u64, last: u64) -> bool {
    place & 1 == 1 || place == last
}

/// The places on the level of the next sibling.
fn parents(place: u64, last: u64) -> (u64, u64) {
    let mut shift = 1;
    if place == last && place & 1 == 0 {
        // Levels without a sibling are skipped.
        shift += if place == 0 {
            0
        } else {
            place.trailing_zeros()
        };
    }
    (place >> shift, last >> shift)
}
