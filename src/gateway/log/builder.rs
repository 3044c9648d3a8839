//! Adds entries to the trees of a deployment, and signs them. Nothing is signed that does not continue
//! what was signed before.

use std::sync::Arc;

use crate::config;
use crate::e2e::{
    self, LogCheckpoint, LogEntry, LogOrigin, LogSigner, LogTiles, SubtreeSource as _, TileId,
};
use crate::protocol::id::{RequestId, TenantId};
use crate::protocol::json;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::log::{NewLeaf, NewTree, StoredHead, StoredTile};

/// Why nothing was added.
#[derive(Debug, thiserror::Error)]
pub enum BuildFailure {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tables do not have what was signed, or it was signed with another key.
    #[error("{0}; nothing is logged before `countersign log restart`")]
    Damaged(#[from] e2e::Error),
}

/// The key and the name of a deployment's logs.
pub struct LogBuilder {
    store: Arc<Store>,
    signer: LogSigner,
    deployment: String,
}

impl LogBuilder {
    /// `None` if no key is configured.
    pub fn open(config: &config::Log, store: &Arc<Store>) -> Option<Self> {
        Some(Self {
            store: Arc::clone(store),
            signer: LogSigner::from_secret(&config.signing_seed()?),
            deployment: config.origin.clone(),
        })
    }

    pub fn signer(&self) -> &LogSigner {
        &self.signer
    }

    pub fn origin(&self, tenant: &TenantId, epoch: i32) -> Result<LogOrigin, e2e::Error> {
        let epoch = u32::try_from(epoch).unwrap_or_default();
        let origin = LogOrigin::new(&self.deployment, tenant, epoch);
        origin.ok_or(e2e::Error::Log("the log has no usable name"))
    }

    /// Adds these entries to the newest tree. False if another node has added some meanwhile.
    pub async fn append(
        &self,
        tenant: &TenantId,
        entries: &[LogEntry],
    ) -> Result<bool, BuildFailure> {
        let head = self.store.log.head(tenant, None).await?;
        let mut tiles = LogTiles::default();
        let (mut epoch, mut size) = (1, 0);
        if let Some(head) = &head {
            (epoch, size) = (head.epoch, number(head.size));
            tiles = load_tiles(&self.store, tenant, epoch, &LogTiles::edge(size)).await?;
            self.check(tenant, head, &mut tiles)?;
        }
        self.add(tenant, epoch, size, tiles, entries).await
    }

    /// Begins the next epoch, with the old checkpoint as its first entry. Returns the new epoch; `None`
    /// if there is no log.
    pub async fn restart(&self, tenant: &TenantId) -> Result<Option<i32>, BuildFailure> {
        let Some(head) = self.store.log.head(tenant, None).await? else {
            return Ok(None);
        };
        self.store.log.go_back(tenant).await?;
        let (epoch, first) = (head.epoch + 1, LogEntry::of_checkpoint(&head.note));
        let tiles = LogTiles::default();
        self.add(tenant, epoch, 0, tiles, &[first]).await?;
        Ok(Some(epoch))
    }

    /// Whether the tables have what was signed.
    fn check(
        &self,
        tenant: &TenantId,
        head: &StoredHead,
        tiles: &mut LogTiles,
    ) -> Result<(), e2e::Error> {
        let signed = LogCheckpoint::open(&head.note, &self.signer.key()?)?;
        let stored = LogCheckpoint {
            origin: self.origin(tenant, head.epoch)?,
            size: number(head.size),
            root: tiles.root(number(head.size))?,
        };
        if signed == stored && head.root == stored.root.0 {
            Ok(())
        } else {
            Err(e2e::Error::Log(
                "the log's tables differ from what was signed",
            ))
        }
    }

    async fn add(
        &self,
        tenant: &TenantId,
        epoch: i32,
        old_size: u64,
        mut tiles: LogTiles,
        entries: &[LogEntry],
    ) -> Result<bool, BuildFailure> {
        let (mut size, mut leaves) = (old_size, Vec::new());
        for entry in entries {
            tiles.append(size, entry.leaf()?)?;
            if let Some(request_id) = entry.request_id.clone() {
                leaves.push(NewLeaf {
                    request_id,
                    kind: entry.kind.as_str().to_owned(),
                    leaf: column(size),
                });
            }
            size += 1;
        }
        let root = tiles.root(size)?;
        let origin = self.origin(tenant, epoch)?;
        let tree = NewTree {
            epoch,
            old_size: column(old_size),
            size: column(size),
            root: root.0.to_vec(),
            note: self.signer.sign(&LogCheckpoint { origin, size, root }),
            tiles: (tiles.changed())
                .map(|(id, hashes)| {
                    let (level, index) = place(id);
                    StoredTile {
                        level,
                        index,
                        hashes,
                    }
                })
                .collect(),
            leaves,
        };
        Ok(self.store.log.append(tenant, &tree).await?)
    }
}

/// Loads tiles. One that is missing is noticed where it is read.
pub(super) async fn load_tiles(
    store: &Store,
    tenant: &TenantId,
    epoch: i32,
    ids: &[TileId],
) -> Result<LogTiles, BuildFailure> {
    let wanted: Vec<_> = ids.iter().map(|id| place(*id)).collect();
    let mut tiles = LogTiles::default();
    for tile in store.log.tiles(tenant, epoch, &wanted).await? {
        let level = u32::try_from(tile.level).unwrap_or(u32::MAX);
        let index = number(tile.index);
        tiles.insert(TileId { level, index }, &tile.hashes)?;
    }
    Ok(tiles)
}

fn place(id: TileId) -> (i32, i64) {
    (
        i32::try_from(id.level).unwrap_or(i32::MAX),
        column(id.index),
    )
}

/// A number of entries as its column has it.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

/// The entry of a stored decision or outcome.
pub(super) fn stored_entry(kind: &str, request: RequestId, text: &str) -> LogEntry {
    match json::parse(text.as_bytes()) {
        Ok(decision) if kind == "decision" => LogEntry::of_decision(request, &decision),
        // An outcome is logged as a text. A decision was read as strict JSON before it was stored.
        _ => LogEntry::of_outcome(request, text),
    }
}
