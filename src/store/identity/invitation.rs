//! Invitations: a code that gives a credential, once. Only its hash is stored.

use crate::protocol::cursor::PagePosition;
use crate::protocol::id::{CredentialId, InvitationId, TenantId};
use crate::protocol::listing::InvitationLine;
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::listing::ListPart;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::identity::credential::RoleName;

#[derive(Debug)]
pub struct NewInvitation {
    pub tenant: TenantId,
    pub id: InvitationId,
    pub role: RoleName,
    pub bound_id: Option<String>,
    pub name: Option<String>,
    /// SHA-256 of the code.
    pub code_hash: [u8; 32],
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationWithdrawal {
    /// Now or before.
    Withdrawn,
    NotFound,
    Used,
}

/// The credential that somebody got by an invitation.
#[derive(Debug)]
pub struct JoinedCredential {
    pub tenant: TenantId,
    pub invitation: InvitationId,
    pub role: RoleName,
    pub bound_id: Option<String>,
}

impl CredentialStore {
    /// Creates an invitation. False if its tenant does not exist or is disabled.
    pub async fn create_invitation(&self, actor: &AuditActor, new: &NewInvitation) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with made as (
                insert into invitations (tenant_id, invitation_id, role, bound_id, name, code_hash, created_at, created_by,
                                         expires_at)
                select t.tenant_id, $1, $2, $3, $4,
                       $5, clock_timestamp() + $6::interval,
                       $7, $8
                  from tenants t
                 where t.tenant_id = $9 and t.disabled_at is null
                   for share of t
                returning tenant_id, invitation_id, role, bound_id, created_at
            )
            insert into audit_events
            select a.*
              from made m
             cross join audit_event($10::text::json, m.tenant_id, m.created_at,
                                    'invitation.created', m.invitation_id, concat_ws(' ', m.role, m.bound_id)) a
            "#,
            new.id.as_str(),
            new.role.as_str(),
            new.bound_id.as_deref(),
            new.name.as_deref(),
            new.code_hash.as_slice(),
            clock_offset(&self.database.clock),
            actor.name,
            new.expires_at.inner(),
            new.tenant.as_str(),
            self.database.audit_origin(actor),
        );
        Ok(self.database.background.execute(&new.tenant, query).await? == 1)
    }

    /// Withdraws an invitation of a tenant (any tenant: `None`), for one role where one is named, unless it was used.
    pub async fn withdraw_invitation(
        &self,
        actor: &AuditActor,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        id: &InvitationId,
    ) -> Result<InvitationWithdrawal> {
        let query = sqlx::query!(
            r#"
            with named_invitation as materialized (
                select i.tenant_id, i.invitation_id, i.used_at
                  from invitations i
                 where i.invitation_id = $1
                   and ($2::text is null or i.tenant_id = $2)
                   and ($3::text is null or i.role = $3)
                   for no key update of i
            ),
            withdrawn_invitation as (
                update invitations i
                   set withdrawn_at = clock_timestamp() + $4::interval
                  from named_invitation n
                 where i.tenant_id = n.tenant_id and i.invitation_id = n.invitation_id and n.used_at is null
                   and i.withdrawn_at is null
                returning i.tenant_id, i.invitation_id, i.withdrawn_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from withdrawn_invitation w
                 cross join audit_event($5::text::json, w.tenant_id, w.withdrawn_at,
                                        'invitation.withdrawn', w.invitation_id) a
            )
            select exists (select from named_invitation) as "known!",
                   exists (select from named_invitation n where n.used_at is not null) as "used!"
            "#,
            id.as_str(),
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        )
        .map(|row| match row {
            row if !row.known => InvitationWithdrawal::NotFound,
            row if row.used => InvitationWithdrawal::Used,
            _ => InvitationWithdrawal::Withdrawn,
        });
        let scope = TenantScope::one_or_all(tenant);
        self.database.background.fetch_one(scope, query).await
    }

    /// Invitations of a tenant (any tenant: `None`), for one role where one is named, and where the next page starts.
    pub async fn invitations(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        part: &ListPart,
    ) -> Result<(Vec<InvitationLine>, Option<PagePosition>)> {
        let (at, id) = part.start();
        let query = sqlx::query_as!(
            InvitationLine,
            r#"
            select invitation_id as "invitation_id: InvitationId", tenant_id as "tenant_id: TenantId",
                   role as "role: RoleName", bound_id, name, created_at, created_by,
                   expires_at as "expires_at: Timestamp", used_at as "used_at: Timestamp",
                   credential_id as "credential_id: CredentialId", withdrawn_at as "withdrawn_at: Timestamp"
              from invitations
             where ($1::text is null or tenant_id = $1) and ($2::text is null or role = $2)
               and ($3::timestamptz is null or (created_at, invitation_id) > ($3, $4::text))
             order by created_at, invitation_id
             limit $5::bigint
            "#,
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            at,
            id,
            part.count(),
        );
        let scope = TenantScope::one_or_all(tenant);
        let found = self.database.background.fetch_all(scope, query).await?;
        Ok(part.cut(found, |last| PagePosition {
            at: last.created_at.inner(),
            id: last.invitation_id.to_string(),
        }))
    }

    /// Makes the credential that a code stands for, and uses the code up. Nothing if there is no invitation with this code that
    /// is still valid. Of several at once one gets it: the others wait for the row, and find it used.
    pub async fn join(
        &self,
        actor: &AuditActor,
        code_hash: &[u8; 32],
        credential: &CredentialId,
        secret_hash: &[u8; 32],
    ) -> Result<Option<JoinedCredential>> {
        let holder = actor.with_credential(credential);
        let query = sqlx::query_as!(
            JoinedCredential,
            r#"
            with input as materialized (
                select $1::bytea as code_hash, $2::text as credential_id,
                       $3::bytea as secret_hash, $4::interval as clock_offset,
                       $5::text::json as used_origin,
                       $6::text::json as created_origin
            ),
            pending_invitation as materialized (
                select i.tenant_id, i.invitation_id
                  from input p
                  join invitations i on i.code_hash = p.code_hash
                  join tenants t on t.tenant_id = i.tenant_id
                 where i.used_at is null and i.withdrawn_at is null
                   and i.expires_at > clock_timestamp() + p.clock_offset and t.disabled_at is null
                   for no key update of i for share of t
            ),
            used_invitation as (
                update invitations i
                   set used_at = clock_timestamp() + n.clock_offset, credential_id = n.credential_id
                  from pending_invitation p
                 cross join input n
                 where i.tenant_id = p.tenant_id and i.invitation_id = p.invitation_id
                returning i.tenant_id, i.invitation_id, i.role, i.bound_id, i.used_at, i.credential_id
            ),
            inserted_credential as (
                insert into credentials (tenant_id, credential_id, kind, role, bound_id, secret_hash)
                select u.tenant_id, u.credential_id, 'apiKey', u.role, u.bound_id, n.secret_hash
                  from used_invitation u
                 cross join input n
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from used_invitation u
                 cross join input n
                 cross join audit_event(n.used_origin, u.tenant_id, u.used_at, 'invitation.used', u.invitation_id,
                                        'credential ' || u.credential_id) a
                union all
                select a.*
                  from used_invitation u
                 cross join input n
                 cross join audit_event(n.created_origin, u.tenant_id, u.used_at, 'credential.created', u.credential_id,
                                        concat_ws(' ', u.role, u.bound_id)) a
            )
            select u.tenant_id as "tenant: TenantId", u.invitation_id as "invitation: InvitationId",
                   u.role as "role: RoleName", u.bound_id
              from used_invitation u
            "#,
            code_hash.as_slice(),
            credential.as_str(),
            secret_hash.as_slice(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(&holder),
            self.database.audit_origin(&holder),
        );
        // All: the code determines the tenant.
        let scope = TenantScope::All;
        self.database.pool.fetch_optional(scope, query).await
    }
}
