//! Creates, changes and revokes tenants and credentials. The tables are small; every node caches
//! the credentials it uses.

use crate::protocol::credential::RoleName;
use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::identity::credential::{ChangedCredential, CredentialProof, NewCredential};

impl CredentialStore {
    pub async fn create_tenant(&self, actor: &AuditActor, id: &TenantId, name: &str) -> Result<()> {
        let query = sqlx::query!(
            r#"
            with made as (
                insert into tenants (tenant_id, name) values ($1, $2)
                returning tenant_id, created_at
            )
            insert into audit_events
            select a.*
              from made m
             cross join audit_event($3::text::json, m.tenant_id,
                                    m.created_at + $4::interval, 'tenant.created', m.tenant_id) a
            "#,
            id.as_str(),
            name,
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
        );
        self.database.background.execute(id, query).await?;
        Ok(())
    }

    /// Disables a tenant and, with it, its credentials. False if there is no such tenant.
    pub async fn disable_tenant(&self, actor: &AuditActor, id: &TenantId) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with named_tenant as (
                select t.tenant_id from tenants t where t.tenant_id = $1
            ),
            disabled_tenant as (
                update tenants t
                   set disabled_at = clock_timestamp()
                  from named_tenant n
                 where t.tenant_id = n.tenant_id and t.disabled_at is null
                returning t.tenant_id, t.disabled_at
            ),
            changed_credentials as (
                update credentials c set changed_at = clock_timestamp() from disabled_tenant d where c.tenant_id = d.tenant_id
            ),
            deleted_notifications as (
                delete from notifications n using disabled_tenant d where n.tenant_id = d.tenant_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from disabled_tenant d
                 cross join audit_event($2::text::json, d.tenant_id,
                                        d.disabled_at + $3::interval, 'tenant.disabled',
                                        d.tenant_id) a
            )
            select exists (select from named_tenant) as "known!"
            "#,
            id.as_str(),
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
        )
        .map(|row| row.known);
        self.database.background.fetch_one(id, query).await
    }

    /// Creates a credential. False if its tenant does not exist or is disabled.
    pub async fn create_credential(&self, actor: &AuditActor, new: &NewCredential) -> Result<bool> {
        let (kind, secret, code) = match &new.proof {
            CredentialProof::ApiKey(hash) => ("apiKey", Some(hash.as_slice()), None),
            CredentialProof::Certificate(code) => ("certificate", None, Some(code)),
        };
        let query = sqlx::query!(
            r#"
            with made as (
                insert into credentials (
                    tenant_id, credential_id, kind, role, bound_id, secret_hash, code_hash, code_expires_at, expires_at,
                    profile
                )
                select t.tenant_id, $1, $2, $3, $4, $5,
                       $6, $7,
                       $8, $12
                  from tenants t
                 where t.tenant_id = $9 and t.disabled_at is null
                   for share of t
                returning tenant_id, credential_id, role, bound_id, profile, created_at
            )
            insert into audit_events
            select a.*
              from made m
             cross join audit_event($10::text::json, m.tenant_id,
                                    m.created_at + $11::interval, 'credential.created',
                                    m.credential_id, concat_ws(' ', m.role, m.bound_id,
                                              case when m.profile <> 'strict' then '(' || m.profile || ')' end)) a
            "#,
            new.id.as_str(),
            kind,
            new.role.as_str(),
            new.bound_id.as_deref(),
            secret,
            code.map(|code| code.hash.as_slice()),
            code.map(|code| code.expires_at.inner()),
            new.expires_at.map(Timestamp::inner),
            new.tenant.as_str(),
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
            new.profile.as_str(),
        );
        Ok(self.database.background.execute(&new.tenant, query).await? == 1)
    }

    /// Revokes a credential of a tenant (any tenant: `None`), of one role where one is named. False
    /// if there is none.
    pub async fn revoke_credential(
        &self,
        actor: &AuditActor,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        id: &CredentialId,
    ) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with named_credential as (
                select c.tenant_id, c.credential_id
                  from credentials c
                 where c.credential_id = $1
                   and ($2::text is null or c.tenant_id = $2)
                   and ($3::text is null or c.role = $3)
            ),
            revoked_credential as (
                update credentials c
                   set revoked_at = clock_timestamp(), changed_at = clock_timestamp()
                  from named_credential n
                 where c.tenant_id = n.tenant_id and c.credential_id = n.credential_id and c.revoked_at is null
                returning c.tenant_id, c.credential_id, c.revoked_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from revoked_credential r
                 cross join audit_event($4::text::json, r.tenant_id,
                                        r.revoked_at + $5::interval, 'credential.revoked',
                                        r.credential_id) a
            )
            select exists (select from named_credential) as "known!"
            "#,
            id.as_str(),
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            self.database.audit_origin(actor),
            clock_offset(&self.database.clock),
        )
        .map(|row| row.known);
        self.database
            .background
            .fetch_one(TenantScope::one_or_all(tenant), query)
            .await
    }

    /// Credentials that changed lately, by the database's own clock.
    pub async fn changed_credentials(&self, within_seconds: f64) -> Result<Vec<ChangedCredential>> {
        let query = sqlx::query_as!(
            ChangedCredential,
            r#"
            select c.credential_id as "id: CredentialId", c.revoked_at is not null or t.disabled_at is not null as "revoked!"
              from credentials c
              join tenants t on t.tenant_id = c.tenant_id
             where c.changed_at > (select clock_timestamp() - make_interval(secs => $1))
            "#,
            within_seconds,
        );
        // All: a node keeps credentials of every tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }

    /// Records when credentials were last used.
    pub async fn note_uses(&self, uses: &[(CredentialId, Timestamp)]) -> Result<()> {
        let query = sqlx::query!(
            r#"
            with used as materialized (
                select c.credential_id, u.at
                  from credentials c
                  join unnest($1::text[], $2::timestamptz[]) as u (credential_id, at)
                    on u.credential_id = c.credential_id
                 order by c.credential_id
                   for no key update of c
            )
            update credentials c
               set last_used_at = greatest(c.last_used_at, u.at)
              from used u
             where c.credential_id = u.credential_id
            "#,
            column(uses, |(id, _)| id) as _,
            column(uses, |(_, at)| at) as _,
        );
        // All: a node has served every tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await?;
        Ok(())
    }
}
