//! Binds client certificates to credentials: a one-time code for each, used over a connection that presents the certificate.

use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::listing::BoundCredential;
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::{AuditActor, AuditSource};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::identity::credential::{NewCode, RoleName};

impl CredentialStore {
    /// Gives a certificate credential of a tenant (any tenant: `None`), of one role where one is named, a new code. The code
    /// before it, and no other part of the credential, ends. False if there is no such credential, or it is revoked.
    pub async fn issue_code(
        &self,
        actor: &AuditActor,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        id: &CredentialId,
        code: &NewCode,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with issued as (
                update credentials c
                   set code_hash = $1, code_expires_at = $2
                  from tenants t
                 where c.credential_id = $3
                   and ($4::text is null or c.tenant_id = $4)
                   and ($5::text is null or c.role = $5)
                   and c.kind = 'certificate' and c.revoked_at is null
                   and t.tenant_id = c.tenant_id and t.disabled_at is null
                returning c.tenant_id, c.credential_id
            )
            insert into audit_events
            select a.*
              from issued i
             cross join audit_event($6::text::json, i.tenant_id,
                                    clock_timestamp() + $7::interval, 'credential.codeIssued',
                                    i.credential_id) a
            "#,
            code.hash.as_slice(),
            code.expires_at.inner(),
            id.as_str(),
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
        );
        let scope = TenantScope::one_or_all(tenant);
        Ok(self.database.background.execute(scope, query).await? == 1)
    }

    /// Binds a certificate to the credential that the code is for; nothing if the code is unknown, used or expired. The same
    /// code and certificate again change nothing. A certificate is taken away from a credential that ended, and from one whose
    /// thumbprint nobody proved to hold; that one is revoked. From any other it is not: the unique key refuses it.
    pub async fn bind_certificate(
        &self,
        actor: &AuditActor,
        id: &CredentialId,
        code_hash: &[u8; 32],
        thumbprint: &[u8; 32],
    ) -> Result<Option<BoundCredential>> {
        let holder = actor.with_credential(id);
        // For the other credential, perhaps of another tenant, which is not told from where.
        let stranger = AuditActor {
            name: actor.name.clone(),
            source: AuditSource::default(),
        };
        let query = sqlx::query_as!(
            BoundCredential,
            r#"
            with input as materialized (
                select $1::text as credential_id, $2::bytea as code_hash,
                       $3::bytea as thumbprint, $4::interval as clock_offset,
                       $5::text::json as holder_origin,
                       $6::text::json as stranger_origin
            ),
            pending_credential as materialized (
                select c.tenant_id, c.credential_id, i.thumbprint, i.clock_offset
                  from input i
                  join credentials c on c.credential_id = i.credential_id and c.code_hash = i.code_hash
                  join tenants t on t.tenant_id = c.tenant_id
                 where c.code_expires_at > clock_timestamp() + i.clock_offset and c.revoked_at is null
                   and (c.expires_at is null or c.expires_at > clock_timestamp() + i.clock_offset) and t.disabled_at is null
                   for update of c
            ),
            locked_holders as materialized (
                select c.tenant_id, c.credential_id, c.revoked_at is null as live
                  from pending_credential p
                  join credentials c on c.thumbprint = p.thumbprint and c.credential_id <> p.credential_id
                  join tenants t on t.tenant_id = c.tenant_id
                 where c.bound_at is null or c.revoked_at is not null or t.disabled_at is not null
                    or c.expires_at <= clock_timestamp() + p.clock_offset
                   for update of c
            ),
            released_credentials as (
                update credentials c
                   set thumbprint = null, revoked_at = coalesce(c.revoked_at, clock_timestamp()), changed_at = clock_timestamp()
                  from locked_holders h
                 where c.tenant_id = h.tenant_id and c.credential_id = h.credential_id
                returning c.tenant_id, c.credential_id, c.revoked_at, h.live
            ),
            bound_credential as (
                update credentials c
                   set thumbprint = p.thumbprint, bound_at = clock_timestamp(), code_expires_at = null,
                       changed_at = clock_timestamp()
                  from pending_credential p
                  -- First the other credential lets go of it: the count needs all of its rows.
                  cross join (select count(*) from released_credentials) r
                 where c.tenant_id = p.tenant_id and c.credential_id = p.credential_id
                returning c.tenant_id, c.credential_id, c.role, c.bound_id, c.expires_at, c.bound_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from input i
                 cross join bound_credential b
                 cross join audit_event(i.holder_origin, b.tenant_id, b.bound_at + i.clock_offset, 'credential.bound',
                                        b.credential_id) a
                union all
                select a.*
                  from input i
                 cross join released_credentials r
                 cross join audit_event(i.stranger_origin, r.tenant_id, r.revoked_at + i.clock_offset, 'credential.revoked',
                                        r.credential_id) a
                 where r.live
            )
            select b.tenant_id as "tenant_id!: TenantId", b.credential_id as "credential_id!: CredentialId",
                   b.role as "role!: RoleName", b.bound_id, b.expires_at as "expires_at: Timestamp"
              from bound_credential b
            "#,
            id.as_str(),
            code_hash.as_slice(),
            thumbprint.as_slice(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(&holder),
            self.database.audit_origin(&stranger),
        );
        // All: the code determines the tenant, and the certificate may be bound in another.
        let scope = TenantScope::All;
        match self.database.pool.fetch_optional(scope, query).await? {
            Some(bound) => Ok(Some(bound)),
            None => self.bound_before(id, code_hash, thumbprint).await,
        }
    }

    /// The credential that the same call has bound before. In a statement of its own: that call may have ended while this one waited for its
    /// lock, and a statement does not see what is newer than its snapshot.
    async fn bound_before(
        &self,
        id: &CredentialId,
        code_hash: &[u8; 32],
        thumbprint: &[u8; 32],
    ) -> Result<Option<BoundCredential>> {
        let query = sqlx::query_as!(
            BoundCredential,
            r#"
            select c.tenant_id as "tenant_id: TenantId", c.credential_id as "credential_id: CredentialId",
                   c.role as "role: RoleName", c.bound_id, c.expires_at as "expires_at: Timestamp"
              from credentials c
             where c.credential_id = $1 and c.code_hash = $2 and c.thumbprint = $3 and c.code_expires_at is null
               and c.revoked_at is null
            "#,
            id.as_str(),
            code_hash.as_slice(),
            thumbprint.as_slice(),
        );
        // All: the code determines the tenant.
        let scope = TenantScope::All;
        self.database.pool.fetch_optional(scope, query).await
    }
}
