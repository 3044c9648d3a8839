//! Reads the log for clients: checkpoints, tiles, and proofs made from them.

use std::sync::Arc;

use super::builder::{BuildFailure, LogBuilder, column, load_tiles, number, stored_entry};
use crate::e2e::{
    self, LogProof, LogTiles, NeededTiles, SubtreeSource as _, TileId, TreeHash, verifier_key,
};
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result, found};
use crate::protocol::id::{RequestId, TenantId};
use crate::store::log::StoredHead;

/// The sizes and epochs that a call may name.
pub const LOG_NUMBER: &str = "a whole number within the log";

pub struct LogService {
    pub(super) context: Arc<GatewayContext>,
    /// `None` if no key is configured: then there is no log.
    pub(super) builder: Option<LogBuilder>,
}

/// An entry of an exchange, and the proof that the log has it.
#[derive(Debug)]
pub struct ProvenEntry {
    pub kind: String,
    /// Of the decision or the outcome as it is stored now, in hex. `None` if that is gone.
    pub digest: Option<String>,
    /// In the format of C2SP's tlog-proof.
    pub proof: String,
}

impl LogService {
    pub(in crate::gateway) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            builder: LogBuilder::open(&context.config.log, &context.store),
            context: Arc::clone(context),
        }
    }

    pub fn is_on(&self) -> bool {
        self.builder.is_some()
    }

    /// Refuses a call where there is no log.
    pub fn require(&self) -> Result<()> {
        found(self.is_on())
    }

    /// The newest signed checkpoint, and the key that verifies it.
    pub async fn checkpoint(&self, tenant: &TenantId) -> Result<(String, String)> {
        let head = self.head(tenant, None).await?;
        let builder = self.builder.as_ref().ok_or(Error::NotFound)?;
        let key = builder.signer().key();
        let key = key.and_then(|key| Ok(verifier_key(&builder.origin(tenant, head.epoch)?, &key)));
        Ok((
            head.note,
            key.map_err(|error| damaged(tenant, error.into()))?,
        ))
    }

    async fn head(&self, tenant: &TenantId, epoch: Option<i32>) -> Result<StoredHead> {
        self.require()?;
        let head = self.context.store.log.head(tenant, epoch).await?;
        head.ok_or(Error::NotFound)
    }

    /// The first hashes of a tile of the newest epoch.
    pub async fn tile(&self, tenant: &TenantId, path: &str) -> Result<Vec<u8>> {
        let (id, width) = TileId::parse(path).ok_or(Error::NotFound)?;
        let head = self.head(tenant, None).await?;
        let wanted = [(
            i32::try_from(id.level).unwrap_or(i32::MAX),
            column(id.index),
        )];
        let tiles = self.context.store.log.tiles(tenant, head.epoch, &wanted);
        let tile = tiles.await?.pop().ok_or(Error::NotFound)?;
        let bytes = usize::try_from(width)
            .unwrap_or(usize::MAX)
            .saturating_mul(32);
        let wanted = tile.hashes.get(..bytes).ok_or(Error::NotFound)?;
        Ok(wanted.to_vec())
    }

    /// Proves that the tree of `to` entries continues that of `from` entries.
    pub async fn consistency(
        &self,
        tenant: &TenantId,
        epoch: Option<i32>,
        from: u64,
        to: u64,
    ) -> Result<Vec<TreeHash>> {
        let head = self.head(tenant, epoch).await?;
        if from > to || to > number(head.size) {
            return Err(Error::Parameter {
                name: "to",
                expected: LOG_NUMBER,
            });
        }
        let proof = self.prove(
            tenant,
            &head,
            |tiles| tiles.prove_consistency(from, to),
            |tiles| tiles.prove_consistency(from, to),
        );
        proof.await
    }

    /// The entries of an exchange, each with its proof.
    pub async fn proofs(&self, tenant: &TenantId, request: &RequestId) -> Result<Vec<ProvenEntry>> {
        self.require()?;
        let mut proven = Vec::new();
        for entry in self.context.store.log.entries(tenant, request).await? {
            // Read after the entry, so that it covers it.
            let head = self.head(tenant, Some(entry.epoch)).await?;
            let (index, size) = (number(entry.leaf), number(head.size));
            let hashes = self.prove(
                tenant,
                &head,
                |tiles| tiles.prove_inclusion(index, size),
                |tiles| tiles.prove_inclusion(index, size),
            );
            let proof = LogProof {
                index,
                hashes: hashes.await?,
                checkpoint: head.note,
            };
            let stored = entry
                .text
                .map(|text| stored_entry(&entry.kind, request.clone(), &text));
            proven.push(ProvenEntry {
                kind: entry.kind,
                digest: stored.map(|stored| stored.digest.to_string()),
                proof: proof.to_text(),
            });
        }
        found(!proven.is_empty())?;
        Ok(proven)
    }

    /// Makes a proof: `plan` says which tiles it needs, and `make` makes it from these.
    async fn prove(
        &self,
        tenant: &TenantId,
        head: &StoredHead,
        plan: impl FnOnce(&mut NeededTiles) -> Result<Vec<TreeHash>, e2e::Error> + Send,
        make: impl FnOnce(&mut LogTiles) -> Result<Vec<TreeHash>, e2e::Error> + Send,
    ) -> Result<Vec<TreeHash>> {
        let failed = |error| damaged(tenant, error);
        let needed = LogTiles::needed(plan).map_err(|error| failed(error.into()))?;
        let tiles = load_tiles(&self.context.store, tenant, head.epoch, &needed).await;
        let mut tiles = tiles.map_err(failed)?;
        make(&mut tiles).map_err(|error| failed(error.into()))
    }
}

fn damaged(tenant: &TenantId, failure: BuildFailure) -> Error {
    match failure {
        BuildFailure::Store(error) => error.into(),
        BuildFailure::Damaged(error) => {
            tracing::error!(%tenant, %error, "a proof cannot be made from the log's tables");
            Error::Internal
        }
    }
}
