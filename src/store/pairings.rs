//! Pairings, and the routing tokens that stand for them.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::batch::Batcher;
use super::database::Database;
use super::error::Result;
use super::pairing::{PairedRow, ReadPaired, ReadTokens, TokenFact, TokenRow};
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::pairing::RoutingToken;

pub struct PairingStore {
    pub(super) database: Arc<Database>,
    tokens: Batcher<ReadTokens>,
    paired: Batcher<ReadPaired>,
}

impl PairingStore {
    pub(super) fn new(database: &Arc<Database>, tasks: &TaskTracker) -> Self {
        Self {
            tokens: database.batch(ReadTokens, tasks),
            paired: database.batch(ReadPaired, tasks),
            database: Arc::clone(database),
        }
    }

    /// The approver that a routing token of an enforcer stands for.
    pub async fn token_of(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        token: &RoutingToken,
    ) -> Result<TokenFact> {
        let row = TokenRow {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            token_hash: token.hash(),
        };
        self.tokens.run(row).await
    }

    pub async fn paired_with(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
    ) -> Result<Vec<ApproverId>> {
        let (tenant, enforcer) = (tenant.clone(), enforcer.clone());
        self.paired.run(PairedRow { tenant, enforcer }).await
    }
}
