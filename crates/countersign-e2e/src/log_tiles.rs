//! The hashes of a log's tree in tiles of 256, as C2SP's tlog-tiles has them. A tile of level L has the
//! roots of complete tiles of level L − 1; those of level 0 have the leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::error::{Error, Result};
use super::merkle::{SubtreeSource, TreeHash};

/// Hashes in a full tile.
pub const TILE_WIDTH: u64 = 256;
const TILE_BITS: u32 = 8;
/// More than 2^63 entries need.
const MAX_LEVEL: u32 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TileId {
    pub level: u32,
    pub index: u64,
}

impl TileId {
    /// Reads `<L>/<N>` or `<L>/<N>.p/<W>`, with N in groups of three digits. Also returns how many
    /// hashes are wanted.
    pub fn parse(path: &str) -> Option<(Self, u64)> {
        let (level, rest) = path.split_once('/')?;
        let level = decimal(level).and_then(|level| u32::try_from(level).ok())?;
        let (groups, width) = match rest.split_once(".p/") {
            Some((groups, width)) => (groups, decimal(width).filter(|it| (1..256).contains(it))?),
            None => (rest, TILE_WIDTH),
        };
        let digits: String = groups
            .split('/')
            .map(|it| it.trim_start_matches('x'))
            .collect();
        let index = digits.parse().ok()?;
        let id = Self { level, index };
        // Each tile has one path.
        let is_own = id.to_string() == format!("{level}/{groups}");
        (level <= MAX_LEVEL && is_own).then_some((id, width))
    }
}

fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl fmt::Display for TileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups = format!("{:03}", self.index % 1_000);
        let mut rest = self.index / 1_000;
        while rest > 0 {
            groups = format!("x{:03}/{groups}", rest % 1_000);
            rest /= 1_000;
        }
        write!(f, "{}/{groups}", self.level)
    }
}

/// Some tiles of one tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogTiles {
    tiles: BTreeMap<TileId, Vec<TreeHash>>,
    changed: BTreeSet<TileId>,
}

impl LogTiles {
    /// The tiles on the right edge of a tree of `size` leaves. They suffice for its root, and to add
    /// leaves.
    pub fn edge(size: u64) -> Vec<TileId> {
        let levels = (0..=MAX_LEVEL).map(|level| (level, size >> (TILE_BITS * level)));
        let partial = levels.filter(|(_, count)| count % TILE_WIDTH > 0);
        let tile = |(level, count)| TileId {
            level,
            index: count / TILE_WIDTH,
        };
        partial.map(tile).collect()
    }

    /// The tiles that this work reads. It is tried with hashes that are all zero.
    pub fn needed<T>(work: impl FnOnce(&mut NeededTiles) -> Result<T>) -> Result<Vec<TileId>> {
        let mut needed = NeededTiles::default();
        work(&mut needed)?;
        Ok(needed.0.into_iter().collect())
    }

    /// Adds a tile as it is stored: its hashes, one after another.
    pub fn insert(&mut self, id: TileId, bytes: &[u8]) -> Result<()> {
        let (hashes, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() || hashes.is_empty() || hashes.len() > 256 {
            return Err(Error::Log("a tile does not consist of 1 to 256 hashes"));
        }
        self.tiles
            .insert(id, hashes.iter().copied().map(TreeHash).collect());
        Ok(())
    }

    /// Adds leaf number `size`. The tiles on the edge must be there.
    pub fn append(&mut self, size: u64, leaf: TreeHash) -> Result<()> {
        let (mut place, mut hash) = (size, leaf);
        for level in 0..=MAX_LEVEL {
            let id = TileId {
                level,
                index: place / TILE_WIDTH,
            };
            let tile = self.tiles.entry(id).or_default();
            if u64::try_from(tile.len()) != Ok(place % TILE_WIDTH) {
                return Err(Error::Log("a tile is missing or has another length"));
            }
            tile.push(hash);
            self.changed.insert(id);
            if tile.len() < 256 {
                break;
            }
            (place, hash) = (id.index, root_of(tile));
        }
        Ok(())
    }

    /// The tiles to which leaves were added, as they are stored.
    pub fn changed(&self) -> impl Iterator<Item = (TileId, Vec<u8>)> {
        let tiles = self
            .changed
            .iter()
            .filter_map(|id| Some((*id, self.tiles.get(id)?)));
        tiles.map(|(id, tile)| (id, tile.iter().flat_map(|hash| hash.0).collect()))
    }
}

/// The root of hashes whose number is a power of two.
fn root_of(hashes: &[TreeHash]) -> TreeHash {
    if let [hash] = hashes {
        return *hash;
    }
    let (left, right) = hashes.split_at(hashes.len() / 2);
    TreeHash::of_node(root_of(left), root_of(right))
}

/// The tile with the hashes under a subtree, and the place of the first.
fn place(level: u32, index: u64) -> (TileId, u64, usize) {
    let bits = level % TILE_BITS;
    let first = index << bits;
    let tile = TileId {
        level: level / TILE_BITS,
        index: first / TILE_WIDTH,
    };
    (tile, first % TILE_WIDTH, 1 << bits)
}

impl SubtreeSource for LogTiles {
    fn subtree(&mut self, level: u32, index: u64) -> Result<TreeHash> {
        let (id, first, count) = place(level, index);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        let tile = self.tiles.get(&id);
        let hashes = tile.and_then(|tile| tile.get(first..)?.get(..count));
        Ok(root_of(
            hashes.ok_or(Error::Log("a tile is missing or too short"))?,
        ))
    }
}

/// Notes the tiles that are read.
#[derive(Debug, Default)]
pub struct NeededTiles(BTreeSet<TileId>);

impl SubtreeSource for NeededTiles {
    fn subtree(&mut self, level: u32, index: u64) -> Result<TreeHash> {
        self.0.insert(place(level, index).0);
        Ok(TreeHash([0; 32]))
    }
}
