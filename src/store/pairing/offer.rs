//! Pairing sessions that an approver offers: a code that one enforcer claims. From then on a session
//! is like any other, but for the approver that offered it alone.

use crate::protocol::id::TenantId;
use crate::protocol::pairing::{InitiatePairing, Nonce};
use crate::protocol::timestamp::Timestamp;
use crate::store::PairingStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

/// An offer that was found, and whether this claim was the first.
#[derive(Debug)]
pub struct ClaimedOffer {
    pub nonce: Nonce,
    pub expires_at: Timestamp,
    pub is_first: bool,
}

impl PairingStore {
    /// Gives an offered session its enforcer, once. `None` if there is none, or it expired.
    pub async fn claim_offer(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        code_hash: &[u8],
        claim: &InitiatePairing,
    ) -> Result<Option<ClaimedOffer>> {
        let query = sqlx::query_as!(
            ClaimedOffer,
            r#"
            with locked_offer as materialized (
                select s.tenant_id, s.nonce, s.enforcer_id, s.expires_at
                  from pairing_sessions s
                 where s.tenant_id = $1 and s.code_hash = $2 and s.offered_by is not null
                   for no key update of s
            ),
            judged_offer as materialized (
                select l.tenant_id, l.nonce, l.enforcer_id, l.expires_at, clock_timestamp() + $3::interval as at
                  from locked_offer l
            ),
            claimed_offer as (
                update pairing_sessions s
                   set enforcer_id = $4, enforcer_label = $5, workspace_name = $6, enforcer_key = $7
                  from judged_offer j
                 where s.tenant_id = j.tenant_id and s.nonce = j.nonce
                   and s.enforcer_id is null and j.enforcer_id is null and j.expires_at > j.at
                returning s.tenant_id, s.nonce, s.enforcer_id, j.at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from claimed_offer c
                 cross join audit_event($8::text::json, c.tenant_id, c.at, 'pairing.initiated', c.enforcer_id) a
            )
            select j.nonce as "nonce!: Nonce", j.expires_at as "expires_at!: Timestamp", c.nonce is not null as "is_first!"
              from judged_offer j
              left join claimed_offer c on c.tenant_id = j.tenant_id and c.nonce = j.nonce
             where j.expires_at > j.at
            "#,
            tenant.as_str(),
            code_hash,
            clock_offset(&self.database.clock),
            claim.enforcer.as_str(),
            claim.label.as_deref(),
            claim.workspace.as_deref(),
            claim.public_key.as_deref(),
            self.database.audit_origin(actor),
        );
        self.database.pool.fetch_optional(tenant, query).await
    }
}
