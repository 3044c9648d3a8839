//! Invitations by which a device in force adds another device of its approver. The new device leaves its request in the row; only the
//! credential that the invitation gave may write it.

use crate::protocol::device::{
    DEVICE_INVITATION_LIFETIME, DeviceInvitationLine, MAX_DEVICE_INVITATIONS,
};
use crate::protocol::id::{ApproverId, CredentialId, InvitationId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;
use crate::store::seconds;

#[derive(Debug)]
pub struct NewDeviceInvitation<'a> {
    pub id: &'a InvitationId,
    /// The device that invites.
    pub device: &'a str,
    /// SHA-256 of the code.
    pub code_hash: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceInvitationFact {
    Written {
        expires_at: Timestamp,
    },
    NoTenant,
    /// The device's key is not, or no longer, in force.
    NoSigner,
    TooMany,
}

impl CredentialStore {
    /// Writes an invitation whose signature was verified.
    pub async fn invite_device(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        new: &NewDeviceInvitation<'_>,
    ) -> Result<DeviceInvitationFact> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as approver_id, $3::text as invitation_id, $4::text as device_id,
                       $5::bytea as code_hash, $6::interval as lifetime, $7::bigint as most, $8::text as created_by,
                       clock_timestamp() + $9::interval as at, $10::text::json as origin
            ),
            live_tenant as materialized (
                select t.tenant_id
                  from tenants t
                  join input i on i.tenant_id = t.tenant_id
                 where t.disabled_at is null
                   for share of t
            ),
            signer as materialized (
                select k.signer_key_id
                  from signing_keys k
                  join input i on i.tenant_id = k.tenant_id and i.approver_id = k.approver_id and i.device_id = k.signer_key_id
                 where k.revoked_at is null
                   for share of k
            ),
            state as materialized (
                select exists (select from live_tenant) as tenant,
                       exists (select from signer) as signer,
                       (select count(*) from invitations v
                         where v.tenant_id = i.tenant_id and v.bound_id = i.approver_id and v.device_id is not null
                           and v.created_at > i.at - i.lifetime) < i.most as room
                  from input i
            ),
            written_invitation as (
                insert into invitations (tenant_id, invitation_id, role, bound_id, code_hash, created_at, created_by, expires_at,
                                         device_id)
                select i.tenant_id, i.invitation_id, 'approver', i.approver_id, i.code_hash, i.at, i.created_by,
                       i.at + i.lifetime, i.device_id
                  from input i
                 cross join state s
                 where s.tenant and s.signer and s.room
                returning tenant_id, invitation_id, bound_id, device_id, created_at, expires_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_invitation w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.created_at, 'invitation.created', w.invitation_id,
                                        'approver ' || w.bound_id || ' by device ' || w.device_id) a
            )
            select s.tenant as "tenant!", s.signer as "signer!",
                   (select w.expires_at from written_invitation w) as "expires_at?: Timestamp"
              from state s
            "#,
            tenant.as_str(),
            approver.as_str(),
            new.id.as_str(),
            new.device,
            new.code_hash.as_slice(),
            seconds(DEVICE_INVITATION_LIFETIME.as_secs()),
            i64::try_from(MAX_DEVICE_INVITATIONS).unwrap_or(i64::MAX),
            actor.name,
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self
            .database
            .pool
            .fetch_one_in_turn(tenant, approver, query);
        let found = found.await?;
        Ok(match found.expires_at {
            Some(expires_at) => DeviceInvitationFact::Written { expires_at },
            None if !found.tenant => DeviceInvitationFact::NoTenant,
            None if !found.signer => DeviceInvitationFact::NoSigner,
            None => DeviceInvitationFact::TooMany,
        })
    }

    /// An invitation that a device of this approver has made.
    pub async fn device_invitation(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        id: &InvitationId,
    ) -> Result<Option<DeviceInvitationLine>> {
        let query = sqlx::query_as!(
            DeviceInvitationLine,
            r#"
            select i.invitation_id as "invitation_id: InvitationId", i.expires_at as "expires_at: Timestamp",
                   i.used_at as "used_at: Timestamp", i.device_request as request, i.device_proof as proof
              from invitations i
             where i.tenant_id = $1 and i.invitation_id = $2 and i.bound_id = $3 and i.device_id is not null
            "#,
            tenant.as_str(),
            id.as_str(),
            approver.as_str(),
        );
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// Withdraws an invitation of a short while ago that was not used. `None` if there is none; the credential that it gave, if it was
    /// used.
    pub async fn end_device_invitation(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        approver: &ApproverId,
        id: &InvitationId,
    ) -> Result<Option<Option<CredentialId>>> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as invitation_id, $3::text as approver_id, $4::interval as lifetime,
                       clock_timestamp() + $5::interval as at, $6::text::json as origin
            ),
            named_invitation as materialized (
                select v.tenant_id, v.invitation_id, v.credential_id
                  from invitations v
                  join input i on i.tenant_id = v.tenant_id and i.invitation_id = v.invitation_id
                              and i.approver_id = v.bound_id
                 where v.device_id is not null and v.created_at > i.at - 2 * i.lifetime
                   for no key update of v
            ),
            withdrawn_invitation as (
                update invitations v
                   set withdrawn_at = i.at
                  from named_invitation n
                 cross join input i
                 where v.tenant_id = n.tenant_id and v.invitation_id = n.invitation_id and v.used_at is null
                   and v.withdrawn_at is null
                returning v.tenant_id, v.invitation_id, v.withdrawn_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from withdrawn_invitation w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.withdrawn_at, 'invitation.withdrawn', w.invitation_id) a
            )
            select n.credential_id as "credential_id?: CredentialId"
              from named_invitation n
            "#,
            tenant.as_str(),
            id.as_str(),
            approver.as_str(),
            seconds(DEVICE_INVITATION_LIFETIME.as_secs()),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        )
        .map(|row| row.credential_id);
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// Keeps the request of a new device that joined by this invitation, with this credential, a short while ago. A later request
    /// replaces it.
    pub async fn answer_device_invitation(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        id: &InvitationId,
        credential: &str,
        (request, proof): (&str, &str),
    ) -> Result<Option<DeviceInvitationLine>> {
        let query = sqlx::query_as!(
            DeviceInvitationLine,
            r#"
            update invitations i
               set device_request = $5, device_proof = $6
             where i.tenant_id = $1 and i.invitation_id = $2 and i.bound_id = $3 and i.device_id is not null
               and i.credential_id = $4
               and i.used_at > clock_timestamp() + $7::interval - $8::interval
            returning i.invitation_id as "invitation_id: InvitationId", i.expires_at as "expires_at: Timestamp",
                      i.used_at as "used_at: Timestamp", i.device_request as request, i.device_proof as proof
            "#,
            tenant.as_str(),
            id.as_str(),
            approver.as_str(),
            credential,
            request,
            proof,
            clock_offset(&self.database.clock),
            seconds(DEVICE_INVITATION_LIFETIME.as_secs()),
        );
        self.database.pool.fetch_optional(tenant, query).await
    }
}
