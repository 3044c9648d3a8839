//! Replaces the ciphertext of a pending exchange, so that devices that were added since can open it. Type, hash and expiry stay. The
//! statement does not wait for a lock.

use crate::protocol::artifact::Submission;
use crate::protocol::exchange::{ExchangeState, ResealFact};
use crate::protocol::id::{EnforcerId, TenantId};
use crate::store::ExchangeStore;
use crate::store::database::busy::{LockTries, RowLock};
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

impl ExchangeStore {
    pub async fn reseal(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        submission: &Submission,
    ) -> Result<ResealFact> {
        let (database, mut tries) = (&self.database, LockTries::new(self.database.lock_timeout));
        loop {
            let found = self.try_reseal(tenant, enforcer, submission).await?;
            let again = database.is_tried_again("reseal", &found, &mut tries);
            if !again.await {
                return found.locked();
            }
        }
    }

    async fn try_reseal(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        submission: &Submission,
    ) -> Result<RowLock<ResealFact>> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as request_id, $3::text as enforcer_id, $4::text as artifact_type,
                       $5::text as artifact_hash, $6::timestamptz as expires_at, $7::text::json as body,
                       $8::interval as clock_offset
            ),
            existing_exchange as (
                select e.tenant_id, e.request_id
                  from exchanges e
                  join input i on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                              and i.enforcer_id = e.enforcer_id
            ),
            locked_exchange as materialized (
                select e.tenant_id, e.request_id, e.state, e.expires_at,
                       e.form = 'sealed' and e.artifact_type = i.artifact_type and e.artifact_hash = i.artifact_hash
                       and e.expires_at = i.expires_at as same
                  from exchanges e
                  join input i on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                              and i.enforcer_id = e.enforcer_id
                   for no key update of e skip locked
            ),
            judged_exchange as materialized (
                select l.tenant_id, l.request_id, l.state, l.same, l.expires_at <= clock_timestamp() + i.clock_offset as past
                  from locked_exchange l
                 cross join input i
            ),
            deleted_payload as (
                delete from exchange_payloads y using judged_exchange j
                 where y.tenant_id = j.tenant_id and y.request_id = j.request_id and y.part = 'artifact'
                   and j.state = 'pendingApproval' and j.same and not j.past
                returning y.tenant_id, y.request_id, y.part, y.trace
            ),
            written_payload as (
                insert into exchange_payloads (tenant_id, request_id, part, body, trace)
                select d.tenant_id, d.request_id, d.part, i.body, d.trace
                  from deleted_payload d
                 cross join input i
                returning request_id
            )
            select j.state as "state?: ExchangeState", coalesce(j.past, false) as "past!", coalesce(j.same, false) as "same!",
                   exists (select from written_payload) as "written!"
              from existing_exchange k
              left join judged_exchange j on j.tenant_id = k.tenant_id and j.request_id = k.request_id
            "#,
            tenant.as_str(),
            submission.request_id.as_str(),
            enforcer.as_str(),
            submission.artifact_type,
            submission.artifact_hash.to_string(),
            submission.expires_at.inner(),
            submission.stored,
            clock_offset(&self.database.clock),
        );
        let Some(row) = self.database.pool.fetch_optional(tenant, query).await? else {
            return Ok(RowLock::Locked(ResealFact::Missing));
        };
        let Some(state) = row.state else {
            return Ok(RowLock::Busy);
        };
        Ok(RowLock::Locked(match state.at(row.past) {
            _ if row.written => ResealFact::Written,
            _ if !row.same => ResealFact::Other,
            state => ResealFact::Ended(state),
        }))
    }
}
